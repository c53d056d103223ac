/* cli/cli.h: what every verb of the command shares. */
#ifndef GNOMON_CLI_H
#define GNOMON_CLI_H

#include "options.h"

#include <gnomon.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>

/* The command's exit codes; documented in gnomon.1. */
enum {
    CLI_EXIT_DONE = 0,
    CLI_EXIT_NEGATIVE = 1,
    CLI_EXIT_USAGE = 2,
    CLI_EXIT_DATA = 3,
    CLI_EXIT_FILE = 4,
    CLI_EXIT_MEMORY = 5,
    CLI_EXIT_DEVICE = 6,
    CLI_EXIT_DEFECT = 70,
    CLI_EXIT_INTERRUPTED = 130,
    CLI_EXIT_PIPE = 141 /* standard output's reader is gone: the shell's code for SIGPIPE */
};

/* What the process needs beside chunks of input and output: the code, the libraries and
 * the library's working memory. --memory counts it in. */
#define CLI_OVERHEAD_BYTES ((int64_t)64 << 20)

/* A progress bar on standard error: 'done' of 'total' units (-1: unknown) are behind, and
 * the library is now at work on the next 'span'. */
typedef struct cli_bar {
    int mode; /* enum cli_bar_mode */
    int shown;
    double last; /* seconds, when it was last drawn */
    int64_t done, span, total;
    const char *what;
} cli_bar;

enum cli_bar_mode { CLI_BAR_AUTO, CLI_BAR_ALWAYS, CLI_BAR_NEVER };

/* A run of one verb. */
typedef struct cli_app {
    const char *verb;
    gnomon_context *ctx; /* NULL until cli_start */
    double started;      /* seconds on the monotonic clock */
    cli_bar bar;
    /* the options every verb has */
    const char *device; /* what --device says, as the library takes it */
    int64_t threads, memory;
    int64_t working; /* bytes for the library's own work; 0: half of CLI_OVERHEAD_BYTES */
    int json, quiet;
    const char *comm_name; /* what --comm says; NULL: nothing */
    gnomon_comm comm;      /* of one rank where it says nothing */
    int agreed;            /* all ranks end with the same exit code, by cli_comm_agree */
} cli_app;

/* app.c */
enum { CLI_COMMON_OPTIONS = 7 };
void cli_init(cli_app *app, const char *verb);
/* The table of the common options, which set app's members. */
void cli_common_options(cli_app *app, cli_option table[CLI_COMMON_OPTIONS]);
/* Makes the context; -1 or an exit code. */
int cli_start(cli_app *app);
/* Frees the context and takes the bar away; returns code. */
int cli_end(cli_app *app, int code);

/* comm.c: a verb on several ranks. Their codes are -1 or an exit code. */
/* Opens what --comm names, and refuses a verb that runs in one process; part of cli_start. */
int cli_comm_open(cli_app *app);
/* The first rank's code that is not -1, for all ranks: what one fails by ends all, told by that one
 * alone. */
int cli_comm_agree(cli_app *app, int code);
/* Does a part of the work on rank 0, then on the others: what is wrong for all is told once. */
int cli_comm_begin(cli_app *app, int (*work)(void *user), void *user);
/* Refuses, under --comm, a file whose rows can't be read from any one on. */
int cli_comm_check_input(cli_app *app, const char *path, const gnomon_data_info *info);
/* Ends with the others, or ends them; part of cli_end. Returns what the process is to end with. */
int cli_comm_close(cli_app *app, int code);
/* A rank that has ended with this code before it met the others says so, and tells the launcher, as
 * the others would wait for it. Returns code. */
int cli_comm_refuse(int argc, char **argv, int code);

/* clock.c: seconds of a clock that only goes on. */
double cli_seconds(void);

/* messages.c */
/* Words on standard error, unless --quiet. */
void cli_say(cli_app *app, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* "gnomon VERB: text" on standard error; returns code. */
int cli_fail(cli_app *app, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* A usage error, with the hint at --help; returns CLI_EXIT_USAGE. */
int cli_usage(cli_app *app, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Whether the library's last error is about that argument or file. */
int cli_error_about(const cli_app *app, const char *argument);
/* The last error's text behind the argument that it begins with; all of it where it begins with
 * none. */
const char *cli_error_rest(const cli_app *app);
/* Tells the context's last error; returns the exit code that belongs to status. */
int cli_fail_status(cli_app *app, gnomon_status status);

/* pipe.c */
/* Flushes standard output; CLI_EXIT_DONE, or CLI_EXIT_FILE after saying why it failed. */
int cli_flush_output(const char *verb);
/* Prints the text and a line end, and flushes: the same codes. */
int cli_print_line(const char *verb, const char *text);

/* bar.c */
void cli_bar_begin(cli_app *app, const char *what, int64_t total);
/* 'done' units are behind, the next call of the library deals with 'span' more. */
void cli_bar_at(cli_app *app, int64_t done, int64_t span);
void cli_bar_clear(cli_app *app);
/* The context's progress callback; user is the cli_app. */
int cli_bar_progress(void *user, const char *phase, int64_t done, int64_t total);

/* signals.c: the first SIGINT, SIGTERM, SIGHUP or SIGXCPU asks for an orderly end; a second one, or
 * a call that does not come back within two seconds, removes the temporary files and ends at once.
 * SIGPIPE and SIGXFSZ are ignored: a closed pipe and a limit on files are errors of a write. */
void cli_signals_install(void);
int cli_interrupted(void);
/* Whether standard output is a pipe whose reader is gone. */
int cli_pipe_closed(void);
/* What main returns: code, or the death by SIGPIPE that CLI_EXIT_PIPE stands for. */
int cli_leave(int code);

/* report.c: --json */
/* Before any JSON: what jansson loses where memory is out makes cli_print_report fail. */
void cli_json_open(void);
/* Prints one object to standard output: the run's facts (gnomon, verb, device and the GPU's name,
 * isa, threads, seconds), then the figures, which are dropped; NULL: memory was out. Reals have the
 * fewest digits that read back the same. Returns the exit code. */
int cli_print_report(cli_app *app, json_t *figures);
/* A value's text, which free() releases; NULL when memory is out. json_dumps loses keys then, and
 * fails silently. */
char *cli_json_text(const json_t *value, size_t flags);
/* The first object with the members that it lacks of the second, which is dropped; NULL, with both
 * dropped, when either is. */
json_t *cli_json_join(json_t *first, json_t *second);
/* null for what JSON has no number for: NaN and infinities. */
json_t *cli_json_real(double value);
/* To the microsecond: more digits would only be noise. */
double cli_json_seconds(double seconds);
/* The operator's descriptor, every default filled in; NULL when memory is out, also where op is
 * NULL for that reason: the report then fails. */
json_t *cli_descriptor_json(cli_app *app, const gnomon_operator *op);

/* metrics.c: what the library tells of its metrics. */
/* The metrics that have all of these flags (GNOMON_METRIC_...) by name, aliases after them. Static
 * storage. */
const cli_choice *cli_metrics(unsigned flags);
/* The same as a help text: "l2 or euclidean (default), cosine (1 - cos), ...". Static storage. */
const char *cli_metrics_help(unsigned flags);
/* NULL for a number that is no metric. */
const gnomon_metric_info *cli_metric(gnomon_metric metric);
int cli_metric_is(gnomon_metric metric, unsigned flag);
/* Whether it takes such points (GNOMON_POINTS_...). */
int cli_metric_takes(gnomon_metric metric, unsigned points);
/* How points are read: as dense rows; as they are stored, sparse rows from files that hold such; as
 * sparse rows from any file. */
typedef enum cli_form { CLI_FORM_DENSE = 0, CLI_FORM_SPARSE = 1, CLI_FORM_ANY = 2 } cli_form;
/* What the metric needs: SPARSE where it takes no dense rows, DENSE where it takes those. */
cli_form cli_metric_form(gnomon_metric metric);
/* How files are read that are compared under a metric: as they are stored where it takes both, but
 * for a GPU named by --device, which compares dense rows. */
cli_form cli_points_form(const cli_app *app, gnomon_metric metric);
/* "cosine or jaccard": the metrics that have all of these flags. */
typedef struct cli_metrics_text {
    char text[256];
} cli_metrics_text;
cli_metrics_text cli_metrics_that(unsigned flags);

/* input.c */
typedef struct cli_input_options {
    const char *format;
    cli_shape shape;
    int dtype;
    char delimiter;
    int header;
    int zero_based;
    int64_t features;
    int shape_given;
    int text_dtype; /* as which type numbers written as text count; 0: float32 */
    int tensor;     /* arrays of any number of dimensions, as they lie */
} cli_input_options;

enum { CLI_INPUT_OPTIONS = 9 };
void cli_input_init(cli_input_options *in);
void cli_input_table(cli_input_options *in, cli_option table[CLI_INPUT_OPTIONS]);
/* Opens path for reading and tells about it; in may be NULL. -1 or an exit code. */
int cli_open_input(cli_app *app, const char *path, const cli_input_options *in,
                   gnomon_reader **reader, gnomon_data_info *info);
/* The file that path, which may name a member (info's, "" for none), is in; free() it. */
char *cli_input_file(const char *path, const char *member);
/* All input options as a JSON object: how the input was to be read. */
json_t *cli_input_json(const cli_input_options *in);
/* The same for queries: of an HDF5 file in the layout of ann-benchmarks, with no dataset named,
 * they are /test, where the points are /train. */
int cli_open_queries(cli_app *app, const char *path, const cli_input_options *in,
                     gnomon_reader **reader, gnomon_data_info *info);
/* Refuses points of two files that differ in dimensions. -1 or an exit code. */
int cli_same_width(cli_app *app, const char *path, int64_t cols, const char *other,
                   int64_t other_cols);
/* Refuses points that hold no bits where the metric takes them. -1 or an exit code. */
int cli_check_bits(cli_app *app, int metric, const char *path, const gnomon_data_info *info);
/* NumPy's long name: "float32". */
const char *cli_dtype_name(gnomon_dtype dtype);
extern const cli_choice cli_dtypes[];

/* formats.c: what the library tells of its formats. */
enum { CLI_FORMATS_TEXT = 512 };

/* The format of that number, from 0 on; 0 past the end. */
int cli_format_info(int index, gnomon_format_info *info);

/* "npy, npz, ...": the formats that hold and take all of these (sums of GNOMON_HOLDS_...,
 * GNOMON_TAKES_...), with written those alone that are written. Returns text. */
const char *cli_formats(char text[CLI_FORMATS_TEXT], int holds, int takes, int written);

/* Whether the format of that name (NULL: none) holds and takes all of these. */
int cli_format_is(const char *name, int holds, int takes);

/* The element type that a format of that name stores: best, or next where it stores that alone. */
gnomon_dtype cli_format_type(const char *name, gnomon_dtype best, gnomon_dtype next);

/* The first format that takes these; NULL when none does. */
const char *cli_format_taking(int takes);

/* "file.npz:KEY, file.h5:/DATASET": how members are named. Returns text. */
const char *cli_format_members(char text[CLI_FORMATS_TEXT]);

/* Entries that points have as sparse rows at most, 0 when it isn't known. */
double cli_entries(const gnomon_data_info *info);
/* Bytes that a reader itself holds of sparse points that do not lie row by row; 0 of others. */
double cli_gathered_bytes(const gnomon_data_info *info);
/* Refuses dense points of path where the metric takes sparse ones alone. -1 or an exit code. */
int cli_check_form(cli_app *app, const char *path, const gnomon_data_info *info,
                   gnomon_metric metric);

/* output.c */
/* A file that a verb reads or writes: the option or operand that names it, and its path (NULL: it
 * is not given; "-": a standard stream). */
typedef struct cli_file {
    const char *title, *path;
    int written;
} cli_file;
/* Refuses two that are one file, by whatever names, when one of them is written. -1 or an exit
 * code. */
int cli_check_apart(cli_app *app, const cli_file *files, int count);
/* Refuses an output (a plain file, of rows, or -1 for an unknown number, x cols) that is far larger
 * than the file it comes of, or than what is free where it goes: a few bytes can declare any size.
 * For verbs with --large, without it. -1 or an exit code. */
int cli_check_room(cli_app *app, const char *input, const char *output, const char *format,
                   int64_t rows, int64_t cols, gnomon_dtype dtype);
/* --large itself, for a verb's table. */
cli_option cli_large_option(int *large);
/* Refuses --quiet where neither a file ('told': there is one) nor --json holds the result. -1 or an
 * exit code. */
int cli_check_told(cli_app *app, int told);
/* Refuses binary data on a terminal, --json beside data on standard output, and an output
 * that is one of the inputs. -1 or an exit code. */
/* Sets *format to what path and a format's name (NULL: none) stand for; refuses what is not written
 * or does not hold 'holds', GNOMON_HOLDS_DENSE or _SPARSE, naming the option. -1 or an exit code.
 */
int cli_output_is(cli_app *app, const char *option, const char *path, const char *name, int holds,
                  const char **format);
int cli_check_output(cli_app *app, const char *path, const char *format, const char *const *inputs,
                     int input_count);

/* names.c: names of points. Zeroed before use; dropped whatever came of it. */
typedef struct cli_names {
    int64_t count, room;
    char **name;
} cli_names;
/* After getline's last call: -1 at the end of the file, else an exit code. */
int cli_lines_end(cli_app *app, const char *path, FILE *file);
/* 0 when memory is out. */
int cli_names_add(cli_names *names, const char *name);
/* Adds the lines of a file. -1 or an exit code. */
int cli_names_read(cli_app *app, const char *path, cli_names *names);
/* Refuses other than a name for each of so many points (negative: not known) of the file 'of'; a
 * path of NULL is one of no names. -1 or an exit code. */
int cli_names_check(cli_app *app, const char *option, const char *path, const char *of,
                    int64_t points, const cli_names *names);
void cli_names_drop(cli_names *names);

/* operator_options.c: --operator and its parameters */
typedef struct cli_operator_options {
    gnomon_descriptor descriptor;
    int kind, inner, precision, scaling;
    const char *load, *save;
    int kind_given, k_given, seed_given, other_given;
} cli_operator_options;

enum { CLI_OPERATOR_OPTIONS = 8 + GNOMON_PARAMETERS };
/* The kinds that have all of these flags (GNOMON_KIND_...), by name; with "auto" before them for
 * who can choose. Static storage. */
const cli_choice *cli_kinds(unsigned flags, int with_auto);
/* Help on an option that takes a kind: 'before', the list of kinds with the default one marked (0:
 * none is) and, if asked for, what is to know of each, and 'after'. Returns text. */
typedef struct cli_kinds_help {
    char text[512];
} cli_kinds_help;
const char *cli_kinds_help_make(cli_kinds_help *help, const char *before, gnomon_kind normal,
                                int remarks, const char *after);
/* A kind's GNOMON_KIND_..., and whether it uses a member of the descriptor (GNOMON_USES_...). */
unsigned cli_kind_flags(gnomon_kind kind);
int cli_kind_uses(gnomon_kind kind, unsigned uses);
/* "sjlt or block": the kinds that use such a member. */
typedef struct cli_kinds_text {
    char text[128];
} cli_kinds_text;
cli_kinds_text cli_kinds_that_use(unsigned uses, const char *last);
void cli_operator_init(cli_operator_options *options);
void cli_operator_table(cli_operator_options *options, cli_option table[CLI_OPERATOR_OPTIONS]);
/* Makes the operator from the options (d and k filled in by the caller unless loaded). -1 or
 * an exit code. */
int cli_operator_make(cli_app *app, cli_operator_options *options, gnomon_operator **op);
/* Reads --load-operator's file. -1 or an exit code. */
int cli_operator_load(cli_app *app, const cli_operator_options *options, gnomon_operator **op);
/* The descriptor as --describe and --save-operator tell it, a line at the end; free() it. */
gnomon_status cli_operator_text(cli_app *app, const gnomon_operator *op, char **text);
/* Writes --save-operator's file, when asked to. -1 or an exit code. */
int cli_operator_save(cli_app *app, const cli_operator_options *options, const gnomon_operator *op);
/* "very-sparse, density 0.0357, seed 7": for words. */
void cli_operator_words(const gnomon_operator *op, char *buffer, size_t size);

/* bound_options.c: --eps, --delta, --beta, --points, --bound */
typedef struct cli_bound_options {
    int64_t points;
    double eps, delta, beta;
    int bound;
    int points_given, eps_given, delta_given, beta_given, bound_given;
} cli_bound_options;
/* One line on a bound: its source. */
const char *cli_bound_source(gnomon_bound bound);

/* Bytes of so many elements of so many bytes, one at least, for malloc; so many that none can be
 * had where that is no number. */
size_t cli_bytes(int64_t count, int64_t size);

static inline int64_t cli_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t cli_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* text.c: reads a file (or -) of at most 64 KiB; free(*text). -1 or an exit code. */
int cli_read_text(cli_app *app, const char *path, char **text, size_t *length);

/* escape.c */
/* How a name (a file's, a text's) is shown on a terminal and in records: tab, newline and backslash
 * are \t, \n and \\, other control characters and bytes that are no UTF-8 are \xHH. free() it; NULL
 * when memory is out. */
char *cli_escape(const char *text);
/* A message in which all but the format's own line ends and backslashes is shown that way; free()
 * it, NULL when memory is out. */
char *cli_vmessage(const char *format, va_list arguments);
/* A name in JSON: itself when it is UTF-8, else escaped as above; NULL for NULL. */
json_t *cli_json_name(const char *name);

/* choose.c: --operator auto */
typedef struct cli_choose_options {
    int assume, assume_given;
    const char *model; /* a file; NULL: that of $GNOMON_MODEL, else the one shipped */
    int64_t nonzeros;  /* set by cli_choose: as how many it took sparse points; -1: dense ones */
} cli_choose_options;
/* What --operator auto is to the option's parser; no kind has this number. */
enum { CLI_OPERATOR_AUTO = 0, CLI_CHOOSE_OPTIONS = 2 };
void cli_choose_table(cli_choose_options *options, cli_option table[CLI_CHOOSE_OPTIONS]);
/* Chooses for so many points of info's kind, tells the choice and why in words, and puts it into
 * operator. k of the descriptor is given, or 0 with bound. dtype: as which the points count. -1 or
 * an exit code. */
int cli_choose(cli_app *app, cli_choose_options *options, const cli_bound_options *bound,
               const gnomon_data_info *info, int64_t points, gnomon_dtype dtype,
               cli_operator_options *chosen, gnomon_choice *choice);
/* The choice and all candidates; NULL when memory is out. */
json_t *cli_choice_json(const cli_app *app, const cli_choose_options *options,
                        const gnomon_choice *choice);

/* points.c: all points of a file in memory: dense, or sparse as the reader's own. Zeroed before
 * use; to be dropped whatever came of it. */
typedef struct cli_points {
    gnomon_reader *reader;
    gnomon_data_info info;
    gnomon_dtype wanted; /* of dense points; 0: as stored */
    void *data;
    gnomon_matrix dense;
    gnomon_csr sparse;
    int is_sparse;
} cli_points;
/* Opens and reads all, lowering *budget (bytes) by what that takes. -1 or an exit code. */
int cli_points_load(cli_app *app, const char *path, const cli_input_options *in, int may_be_sparse,
                    cli_points *p, int64_t *budget);
/* The same for a reader that is open already. */
int cli_points_read(cli_app *app, const char *path, int may_be_sparse, cli_points *p,
                    int64_t *budget);
/* Whether the reader has no more sparse points than it has given. */
int cli_points_at_end(cli_points *p);
/* The type that a file's points are held in as dense ones: as stored, but those of sparse files in
 * floating point. */
gnomon_dtype cli_held_dtype(const gnomon_data_info *info);
/* Reads all rows of 'to' from where the reader is. TRUNCATED where the file has fewer, and
 * CANCELLED. */
gnomon_status cli_read_rows(gnomon_reader *reader, const gnomon_matrix *to);
/* The least magnitude that becomes infinite as an element of this type; infinity where none does.
 */
double cli_beyond(gnomon_dtype dtype);
/* How much memory would do: "--memory 67M or more", or that this machine has not as much. */
typedef struct cli_room {
    char text[64];
} cli_room;
cli_room cli_memory_words(double bytes);
/* Says how much memory would do; an exit code. */
int cli_points_too_large(cli_app *app, const char *path, double bytes);
void cli_points_drop(cli_points *p);

/* index.c: indexes in files */
/* An index of hash tables, an inverted one of sparse points, or one of codes: the others are NULL.
 */
typedef struct cli_index_file {
    gnomon_lsh *hashed;
    gnomon_sparse_index *inverted;
    gnomon_rabitq *coded;
} cli_index_file;
/* Opens an index's file. -1 or an exit code. */
int cli_index_open(cli_app *app, const char *path, cli_index_file *index);
void cli_index_close(cli_index_file *index);
/* Of the others metric, dimensions, points and removed are told. */
void cli_index_describe(const cli_index_file *index, gnomon_lsh_info *info);
/* A failure whose fault is the file's. An exit code. */
int cli_index_fail(cli_app *app, const char *path, gnomon_status status);
/* What it takes beside the points. */
int64_t cli_index_bytes(const gnomon_lsh_info *info);
/* Reads all points, in the metric's form or sparse ones as such, of a reader that is open, lowering
 * *budget (bytes) by what that takes. -1 or an exit code. */
int cli_index_read(cli_app *app, const char *path, gnomon_metric metric, int sparse, cli_points *p,
                   int64_t *budget);

/* factor.c: what svd, hosvd and lstsq share */
/* Tells a failure with the file whose numbers or shape it is about, if that is what it is. -1 for
 * OK, or an exit code. */
int cli_fail_of_file(cli_app *app, gnomon_status status, const char *path);
/* f4 and f8, by both their names. */
extern const cli_choice cli_float_types[];
/* The type to work in: as asked (not 0), else F64 for data that F32 would not hold, else F32. */
gnomon_dtype cli_work_dtype(int asked, const gnomon_data_info *info);
/* A reader as the library wants rows, and the time that reading took. */
typedef struct cli_stream {
    gnomon_reader *reader;
    double seconds;
} cli_stream;
/* The rows that s reads, in type dtype; they can be read again if info says that the file can. */
gnomon_svd_rows cli_stream_rows(cli_stream *s, const gnomon_data_info *info, gnomon_dtype dtype);
/* gnomon_svd_rank_rows, gnomon_hosvd_rank_rows. */
typedef gnomon_status (*cli_rank_rows_fn)(gnomon_context *ctx, const struct gnomon_comm *comm,
                                          int64_t rows, int64_t cols, int64_t stretch,
                                          int64_t *first, int64_t *count);
/* Rows of a rank: those of the file that the library tells, one stretch behind the other. */
typedef struct cli_rank_rows {
    cli_app *app;
    cli_rank_rows_fn tells; /* of dense rows */
    gnomon_reader *reader;
    const gnomon_data_info *info;
    int64_t rows;              /* of this rank, in all */
    int64_t stretch, at, left; /* the next stretch; where it stands, and how many are left there */
    int streams;               /* 1: they come piece by piece; 0: they are in memory */
    double seconds;            /* that reading took */
    gnomon_csr sparse;         /* sparse rows, in memory of this process's: */
    int64_t *offsets, *indices;
    char *values;
    int is_sparse;
    int64_t room; /* of entries */
} cli_rank_rows;
/* Under --comm, for the file that p has open. -1 or an exit code. */
int cli_rank_rows_begin(cli_app *app, const char *path, const cli_points *p, cli_rank_rows_fn tells,
                        cli_rank_rows *r);
void cli_rank_rows_drop(cli_rank_rows *r);
/* Sets r->streams, on all ranks alike, and where they fit well into 'budget' bytes reads them in
 * type dtype to p->data and p->dense; sparse ones in any case, to r->sparse, as they are stored. -1
 * or an exit code, on all ranks. */
int cli_rank_rows_hold(cli_rank_rows *r, const char *path, gnomon_dtype dtype, int64_t budget,
                       cli_points *p);
/* They as the library wants them piece by piece, in type dtype. */
gnomon_svd_rows cli_rank_rows_stream(cli_rank_rows *r, gnomon_dtype dtype);
/* After the library's call: -1, or the exit code of all. Rank 0 tells what is wrong. */
int cli_rank_rows_end(cli_app *app, gnomon_status status, const char *path);
/* The exit code of all: what rank 0 ends with, once it has written; the others give -1. */
int cli_rank_done(cli_app *app, int code);
/* The same of sparse rows, which can be read again. */
gnomon_svd_sparse_rows cli_stream_sparse(cli_stream *s, const gnomon_data_info *info);
/* The operator that the work is sketched by; what its options' defaults mean depends on the verb.
 */
typedef struct cli_sketch_options {
    gnomon_descriptor descriptor;
    int kind;
    int kind_given, density_given, nonzeros_given;
} cli_sketch_options;
/* Help on --operator, --seed, --density, --nonzeros. */
typedef struct cli_sketch_words {
    const char *kind, *seed, *density, *nonzeros;
} cli_sketch_words;
enum { CLI_SKETCH_OPTIONS = 4 };
void cli_sketch_init(cli_sketch_options *s, gnomon_kind kind);
void cli_sketch_table(cli_sketch_options *s, const cli_sketch_words *words,
                      cli_option table[CLI_SKETCH_OPTIONS]);
/* Puts the kind into the descriptor. -1 or an exit code. */
int cli_sketch_check(cli_app *app, cli_sketch_options *s);
/* Refuses an output (NULL: none) of several arrays that is no .npz. -1 or an exit code. */
int cli_check_arrays_output(cli_app *app, const char *output, const char *input);
/* Bytes of a whole matrix in a type; -1 when its rows are not known yet. */
double cli_dense_bytes(const gnomon_data_info *info, gnomon_dtype dtype);
/* Prints the report where --json asks for it (its words have been said otherwise), and says where
 * the tolerance was not reached. An exit code. */
int cli_factor_end(cli_app *app, json_t *report, int converged, double tolerance);

/* gnuplot.c: what a name's ending stands for; 0: neither. */
enum { CLI_SVG = 1, CLI_PNG = 2 };
int cli_is_picture(const char *path);
/* The first lines of a script, for path's format. */
void cli_plot_terminal(FILE *script, const char *path);
/* Runs the script (NULL: memory was out), frees it and writes the picture to path. -1 or an exit
 * code. */
int cli_gnuplot(cli_app *app, const char *path, char *script, size_t length);

/* svd_report.c: what came of a factorisation. residual figures are relative to the norm. */
typedef struct cli_svd_facts {
    const char *input, *output; /* output NULL: none */
    const gnomon_data_info *info;
    const gnomon_svd *svd;
    int test_power;
    const char *held; /* how the rows came: "memory", "pieces", "sparse" */
    double tolerance; /* 0: none was asked for */
    double read_seconds, svd_seconds, write_seconds;
} cli_svd_facts;
void cli_svd_words(cli_app *app, const cli_svd_facts *facts);
json_t *cli_svd_json(cli_app *app, const cli_svd_facts *facts);
/* The singular values as a picture. -1 or an exit code. */
int cli_plot_spectrum(cli_app *app, const char *path, const cli_svd_facts *facts);

/* lstsq_report.c: what came of least squares. */
typedef struct cli_lstsq_facts {
    const char *input, *right, *output, *residual; /* the last two NULL: none */
    const gnomon_data_info *info;
    const gnomon_lstsq *lstsq;
    const char *held; /* how the rows came: "memory", "pieces", "sparse" */
    double damp, tolerance;
    double read_seconds, solve_seconds, write_seconds;
} cli_lstsq_facts;
void cli_lstsq_words(cli_app *app, const cli_lstsq_facts *facts);
json_t *cli_lstsq_json(cli_app *app, const cli_lstsq_facts *facts);

/* hosvd_report.c: what came of a tensor. */
typedef struct cli_hosvd_facts {
    const char *input, *output; /* output NULL: none */
    const gnomon_data_info *info;
    const gnomon_hosvd *hosvd;
    const char *held; /* how the tensor came: "memory" or "pieces" */
    double tolerance; /* 0: none was asked for */
    double read_seconds, hosvd_seconds, write_seconds;
} cli_hosvd_facts;
void cli_hosvd_words(cli_app *app, const cli_hosvd_facts *facts);
json_t *cli_hosvd_json(const cli_hosvd_facts *facts);

/* plot.c: a histogram of distortion by gnuplot, as SVG or PNG by path's ending, and as lines
 * of text. */
int cli_plot_distortion(cli_app *app, const char *path, const gnomon_distortion *norms,
                        const gnomon_distortion *pairs, double eps);
void cli_print_histogram(const gnomon_distortion *d, double eps);

/* verbs.c: verbs by name; a list ends with a NULL name. */
typedef struct cli_named {
    const char *name;
    int (*run)(int argc, char **argv); /* NULL: only a name that may have been meant */
    const char *about;                 /* NULL: not listed */
} cli_named;
void cli_list_verbs(FILE *stream, const cli_named *verbs);
/* Runs the verb argv[0] of a command ("gnomon"), or says that there is none. An exit code. */
int cli_run_verb(const char *command, const cli_named *verbs, int argc, char **argv);

/* The verbs: one file each. argv[0] is the verb. */
int cli_project(int argc, char **argv);
int cli_dim(int argc, char **argv);
int cli_operator(int argc, char **argv);
int cli_distortion(int argc, char **argv);
int cli_svd(int argc, char **argv);
int cli_transform(int argc, char **argv);
int cli_lstsq(int argc, char **argv);
int cli_hosvd(int argc, char **argv);
int cli_neighbors_run(int argc, char **argv);
int cli_index(int argc, char **argv);
int cli_join_run(int argc, char **argv);
int cli_dedup(int argc, char **argv);
int cli_convert(int argc, char **argv);
int cli_info(int argc, char **argv);

#endif

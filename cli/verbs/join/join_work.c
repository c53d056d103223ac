/* Reading P and Q, into memory where they fit, and the join. */
#include "verbs/join/join.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- pairs as they come ---- */

static int add_batch(void *user, const gnomon_join_batch *batch)
{
    cli_join *j = user;
    const double begin = cli_seconds();
    /* with a checkpoint the library counts a part of them only */
    for (int64_t at = 0; at < batch->count && j->counts != NULL && j->checkpoint != NULL; at++) {
        j->point_counts[batch->pairs[at].i]++;
        if (j->q_path == NULL) j->point_counts[batch->pairs[at].j]++;
    }
    for (int64_t at = 0; at < batch->count && j->groups != NULL; at++)
        gnomon_clusters_add(j->groups, batch->pairs[at].i, batch->pairs[at].j);
    if (cli_pairs_are_open(&j->pairs)) {
        const gnomon_status status = cli_pairs_add(&j->pairs, batch);
        if (status != GNOMON_OK) j->failed = cli_fail_status(j->app, status);
    }
    j->write_seconds += cli_seconds() - begin;
    snprintf(j->bar, sizeof j->bar, "joining, %lld pairs", (long long)j->result.pairs);
    return j->failed > 0;
}

/* ---- points that are read ---- */

typedef struct reading {
    cli_join *j;
    gnomon_reader *reader;
    int64_t next; /* the row that the reader is at */
} reading;

static gnomon_status read_points(void *user, int64_t first, const gnomon_matrix *to)
{
    reading *r = user;
    const double begin = cli_seconds();
    gnomon_status status = GNOMON_OK;
    if (r->next != first) status = gnomon_reader_seek(r->reader, first);
    if (status == GNOMON_OK) status = cli_read_rows(r->reader, to);
    r->next = first + to->rows;
    r->j->read_seconds += cli_seconds() - begin;
    return status;
}

/* In memory, as dense rows or as sparse ones. */
static double bytes_of(const gnomon_data_info *info, cli_form form)
{
    if (form != CLI_FORM_DENSE && (info->access & GNOMON_ACCESS_SPARSE) != 0)
        return 32 * cli_entries(info);
    return (double)info->rows * (double)info->cols *
           (double)gnomon_dtype_size(cli_held_dtype(info));
}

static gnomon_join_points points_of(reading *r, const gnomon_data_info *info)
{
    return (gnomon_join_points){.user = r,
                                .rows = info->rows,
                                .cols = info->cols,
                                .dtype = cli_held_dtype(info),
                                .read = read_points};
}

static gnomon_status join_files(cli_join *j)
{
    reading p = {j, j->p.reader, 0}, q = {j, j->q.reader, 0};
    /* A self-join reads bands and pieces of the same file in turn. */
    const gnomon_join_points first = points_of(&p, &j->p_info);
    gnomon_join_points second = {0};
    if (j->q_path != NULL) second = points_of(&q, &j->q_info);
    return gnomon_join_stream(j->app->ctx, &first, j->q_path != NULL ? &second : NULL, &j->options,
                              &j->result);
}

/* ---- points in memory ---- */

/* How both sides are read. */
static cli_form form_of(const cli_join *j)
{
    if (j->text != CLI_TEXT_NONE) return CLI_FORM_SPARSE;
    return cli_points_form(j->app, j->options.metric);
}

static int load(cli_join *j)
{
    const cli_form form = form_of(j);
    int64_t budget = (j->app->memory - CLI_OVERHEAD_BYTES) / 2;
    const double begin = cli_seconds();
    j->p.info = j->p_info;
    j->q.info = j->q_info;
    int code = cli_points_read(j->app, j->p_path, (int)form, &j->p, &budget);
    if (code < 0 && j->q_path != NULL)
        code = cli_points_read(j->app, j->q_path, (int)form, &j->q, &budget);
    if (code < 0 && !cli_points_at_end(&j->p))
        return cli_points_too_large(j->app, j->p_path, 2.0 * (double)j->app->memory);
    if (code < 0 && j->q_path != NULL && !cli_points_at_end(&j->q))
        return cli_points_too_large(j->app, j->q_path, 2.0 * (double)j->app->memory);
    j->p_info.rows = j->p.is_sparse ? j->p.sparse.rows : j->p.dense.rows;
    j->q_info.rows = j->q.is_sparse ? j->q.sparse.rows : j->q.dense.rows;
    j->read_seconds += cli_seconds() - begin;
    return code;
}

static int load_texts(cli_join *j)
{
    const double begin = cli_seconds();
    const char *const outputs[] = {j->output, j->distances, j->counts, j->clusters};
    j->texts.outputs = outputs;
    j->texts.output_count = 4;
    const int code = cli_texts_read(j->app, j->p_path, j->text, &j->ngram, &j->texts);
    j->texts.output_count = 0;
    j->p.sparse = j->texts.sets;
    j->p.is_sparse = 1;
    j->p_info.rows = j->texts.count;
    j->p_info.cols = j->texts.sets.cols;
    j->read_seconds += cli_seconds() - begin;
    return code;
}

static gnomon_join_side side_in_memory(const cli_points *p)
{
    const gnomon_join_side side = {p->is_sparse ? NULL : &p->dense,
                                   p->is_sparse ? &p->sparse : NULL};
    return side;
}

static gnomon_status join_memory(cli_join *j)
{
    const gnomon_join_side p = side_in_memory(&j->p), q = side_in_memory(&j->q);
    return gnomon_join_sides(j->app->ctx, &p, j->q_path != NULL ? &q : NULL, &j->options,
                             &j->result);
}

/* Where the points are while they are joined. */
typedef enum place { IN_MEMORY, IN_FILES, ROWS_IN_FILES } place;

static int is_sparse(const gnomon_data_info *info)
{
    return (info->access & GNOMON_ACCESS_SPARSE) != 0;
}

/* Points that are too large are read again and again: sparse rows where all are, else dense ones.
 */
static place place_of(const cli_join *j)
{
    const cli_form form = form_of(j);
    const gnomon_data_info *p = &j->p_info, *q = j->q_path != NULL ? &j->q_info : NULL;
    double bytes = bytes_of(p, form) + cli_gathered_bytes(p);
    if (q != NULL) bytes += bytes_of(q, form) + cli_gathered_bytes(q);
    if (bytes <= (double)(j->app->memory - CLI_OVERHEAD_BYTES) / 2) return IN_MEMORY;
    const int access = q != NULL ? p->access & q->access : p->access;
    if (cli_metric_form(j->options.metric) != CLI_FORM_DENSE || (access & GNOMON_ACCESS_SEEK) == 0)
        return IN_MEMORY;
    if (form == CLI_FORM_SPARSE && is_sparse(p) && (q == NULL || is_sparse(q)))
        return ROWS_IN_FILES;
    return p->rows >= 0 && (q == NULL || q->rows >= 0) ? IN_FILES : IN_MEMORY;
}

static place where_of(const cli_join *j)
{
    return j->text == CLI_TEXT_NONE ? place_of(j) : IN_MEMORY;
}

/* What the readers hold themselves must fit beside the work. */
static int check_gathered(cli_join *j)
{
    const double p = cli_gathered_bytes(&j->p_info);
    const double q = j->q_path != NULL ? cli_gathered_bytes(&j->q_info) : 0;
    if (p + q <= (double)(j->app->memory - CLI_OVERHEAD_BYTES) / 2) return -1;
    return cli_fail(j->app, CLI_EXIT_MEMORY,
                    "%s: entries that do not lie row by row are put in order in memory: they need "
                    "%s; gnomon convert writes them row by row",
                    p >= q ? j->p_path : j->q_path,
                    cli_memory_words(2 * (p + q) + (double)CLI_OVERHEAD_BYTES + (1 << 20)).text);
}

/* Points that are read have a piece of each side in memory. */
static int check_row(cli_join *j, const char *path, const gnomon_data_info *info)
{
    enum { LEAST = 64 }; /* rows in all */
    const double row = (double)info->cols * (double)gnomon_dtype_size(cli_held_dtype(info));
    if (LEAST * row <= (double)(j->app->memory - CLI_OVERHEAD_BYTES) / 2) return -1;
    return cli_fail(
        j->app, CLI_EXIT_MEMORY, "%s: points of %lld dimensions need %s", path,
        (long long)info->cols,
        cli_memory_words(2 * LEAST * row + (double)CLI_OVERHEAD_BYTES + (1 << 20)).text);
}

/* ---- what went wrong ---- */

static int fail(cli_join *j, gnomon_status status)
{
    cli_app *app = j->app;
    const gnomon_join_result *r = &j->result;
    if (j->failed > 0) {
        cli_say(app,
                "gnomon join: %lld pairs were found, all of those of rows below %lld; nothing of "
                "them was kept. With more room run it again, keep what is found by --checkpoint "
                "FILE, or join in parts: --max-pairs N, then --from-row.\n",
                (long long)r->pairs, (long long)r->rows_done);
        return j->failed;
    }
    if (cli_error_about(app, "options.method"))
        return cli_fail(app, CLI_EXIT_USAGE, "--method lsh: %s", gnomon_last_error(app->ctx));
    /* what the library says of its p or q is about a file's points */
    const int p = cli_error_about(app, "p"), q = cli_error_about(app, "q");
    if ((p || q) && status != GNOMON_ERROR_CANCELLED)
        return cli_fail(app, CLI_EXIT_DATA, "%s%s", q && j->q_path != NULL ? j->q_path : j->p_path,
                        cli_error_rest(app));
    return cli_fail_status(app, status);
}

/* What became of the join on all ranks: rank 0 tells it. */
static int agree(cli_join *j, gnomon_status status)
{
    cli_app *app = j->app;
    int code = status == GNOMON_OK ? -1 : CLI_EXIT_DEFECT;
    if (status != GNOMON_OK && (app->comm.rank == 0 || status == GNOMON_ERROR_COMM))
        code = fail(j, status);
    return status == GNOMON_ERROR_COMM ? code : cli_comm_agree(app, code);
}

/* ---- the join ---- */

static gnomon_status run(cli_join *j, place where)
{
    const double start = cli_seconds(), read = j->read_seconds, written = j->write_seconds;
    j->options.user = j;
    j->options.comm = j->app->comm.size > 1 ? &j->app->comm : NULL;
    j->result.struct_size = sizeof j->result;
    snprintf(j->bar, sizeof j->bar, "joining");
    cli_bar_begin(j->app, j->bar, 1);
    cli_bar_at(j->app, 0, 1);
    const gnomon_status status = where == IN_FILES        ? join_files(j)
                                 : where == ROWS_IN_FILES ? cli_join_rows(j)
                                                          : join_memory(j);
    j->join_seconds =
        cli_seconds() - start - (j->read_seconds - read) - (j->write_seconds - written);
    return status;
}

/* Of points whose number is known by now. */
static int check_names(const cli_join *j)
{
    const int code =
        cli_names_check(j->app, "--names", j->p_names_path, j->p_path, j->p_info.rows, &j->p_names);
    if (code >= 0 || j->q_path == NULL) return code;
    return cli_names_check(j->app, "--q-names", j->q_names_path, j->q_path, j->q_info.rows,
                           &j->q_names);
}

/* Everything that receives pairs is made ready. */
static int begin(cli_join *j)
{
    const int64_t rows = j->p_info.rows;
    const int64_t cols = j->q_path != NULL ? j->q_info.rows : rows;
    gnomon_status status = GNOMON_OK;
    const int code = check_names(j);
    if (code >= 0) return code;
    if (j->counts != NULL) {
        j->point_counts = calloc((size_t)rows + 1, sizeof *j->point_counts);
        if (j->point_counts == NULL)
            return cli_fail(j->app, CLI_EXIT_MEMORY, "out of memory for %lld counts",
                            (long long)rows);
    }
    if (j->clusters != NULL) status = gnomon_clusters_create(j->app->ctx, rows, &j->groups);
    if (status == GNOMON_OK && j->output != NULL) status = cli_pairs_open(&j->pairs, j, rows, cols);
    if (status != GNOMON_OK) return cli_fail_status(j->app, status);
    return -1;
}

/* ---- with a checkpoint ---- */

static int keep(void *user, const gnomon_join_batch *batch)
{
    cli_join *j = user;
    const double begin = cli_seconds();
    const int stop = cli_checkpoint_add(&j->kept, batch);
    j->write_seconds += cli_seconds() - begin;
    snprintf(j->bar, sizeof j->bar, "joining, %lld pairs", (long long)j->kept.written);
    return stop;
}

/* A file as it is now, by facts whose names begin with 'which'. */
static json_t *describe(const char *which, const char *path, const gnomon_data_info *info)
{
    struct stat file = {0};
    char modified[40], changed[40], key[40];
    char *name = cli_input_file(path, info->member);
    char *real = name != NULL ? realpath(name, NULL) : NULL;
    if (name != NULL && stat(name, &file) != 0) memset(&file, 0, sizeof file);
    snprintf(modified, sizeof modified, "%lld.%09ld", (long long)file.st_mtim.tv_sec,
             file.st_mtim.tv_nsec);
    /* a file that was put in its place, or whose time was set back, has this of its own */
    snprintf(changed, sizeof changed, "%lld.%09ld", (long long)file.st_ctim.tv_sec,
             file.st_ctim.tv_nsec);
    const struct {
        const char *name;
        json_t *value;
    } facts[] = {{"file", cli_json_name(real != NULL ? real : path)},
                 {"member", cli_json_name(info->member)},
                 {"format", json_string(info->format)},
                 {"bytes", json_integer(file.st_size)},
                 {"time of change", json_string(modified)},
                 {"time of the file's own change", json_string(changed)},
                 {"dimensions", json_integer(info->cols)}};
    json_t *all = json_object();
    int bad = all == NULL;
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++) {
        snprintf(key, sizeof key, "%s's %s", which, facts[i].name);
        bad |= json_object_set_new(all, key, facts[i].value) != 0;
    }
    free(real);
    free(name);
    if (!bad) return all;
    json_decref(all);
    return NULL;
}

/* All that the pairs and their order depend on. */
static json_t *identity_of(const cli_join *j)
{
    char threshold[40], recall[40], seed[40];
    const gnomon_join_options *o = &j->options;
    snprintf(threshold, sizeof threshold, "%.17g", o->threshold);
    snprintf(recall, sizeof recall, "%.17g", o->recall);
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)o->seed);
    json_t *join = json_pack("{s:s, s:s, s:s}", "version", gnomon_version(), "metric",
                             gnomon_metric_name(o->metric), "threshold", threshold);
    join = cli_json_join(join, cli_input_json(&j->p_input));
    join = cli_json_join(join, describe("P", j->p_path, &j->p_info));
    join = cli_json_join(join, j->q_path != NULL ? describe("Q", j->q_path, &j->q_info)
                                                 : json_pack("{s:b}", "Q is P", 1));
    if (o->recall == 1) return join;
    /* what decides which pairs are missed */
    return cli_json_join(join, json_pack("{s:s, s:s, s:s}", "recall", recall, "method",
                                         gnomon_join_method_name(o->method), "seed", seed));
}

/* So many bands of an LSH join: what an interruption may cost, against sorting its tables again. */
enum { BANDS = 8 };

static int join_kept(cli_join *j, place where, json_t *identity)
{
    cli_app *app = j->app;
    int64_t first = 0;
    int code = -1;
    const cli_pair_limits limits = {.rows = j->p_info.rows,
                                    .cols = j->q_path != NULL ? j->q_info.rows : j->p_info.rows,
                                    .threshold = j->options.threshold,
                                    .self = j->q_path == NULL,
                                    .at_least =
                                        cli_metric_is(j->options.metric, GNOMON_METRIC_LARGER)};
    if (app->comm.rank == 0)
        code = cli_checkpoint_open(&j->kept, app, j->checkpoint, identity, &limits, &first);
    else
        json_decref(identity);
    code = cli_comm_agree(app, code);
    if (code >= 0) return code;
    gnomon_status status = GNOMON_OK;
    if (app->comm.size > 1)
        status = gnomon_comm_broadcast(app->ctx, &app->comm, &first, sizeof first);
    if (status != GNOMON_OK) return cli_fail_status(app, status);
    j->options.sink = app->comm.rank == 0 ? keep : NULL;
    j->options.first_row = first;
    j->options.band_rows = j->p_info.rows / BANDS + 1;
    status = run(j, where);
    if (app->comm.rank > 0) return agree(j, status);
    code = j->kept.failed;
    if (status != GNOMON_OK && code == 0) code = fail(j, status);
    if (j->kept.failed == 0) {
        const int saved = cli_checkpoint_save(&j->kept);
        if (code == 0) code = saved;
    }
    if (status != GNOMON_ERROR_COMM) code = cli_comm_agree(app, code > 0 ? code : -1);
    if (status != GNOMON_OK || code > 0) {
        cli_say(app,
                "gnomon join: %lld pairs, all of those of rows below %lld, are kept in %s: the "
                "same command goes on there.\n",
                (long long)j->kept.kept, (long long)j->kept.kept_rows, j->kept.pairs_path);
        return code;
    }
    code = begin(j);
    if (code < 0) code = cli_checkpoint_replay(&j->kept, add_batch, j);
    if (j->failed > 0) code = j->failed;
    j->result.pairs = j->kept.complete;
    j->result.rows_done = j->p_info.rows;
    j->result.complete = 1;
    return code;
}

int cli_join_prepare(cli_join *j)
{
    cli_app *app = j->app;
    int code = -1;
    if (j->q_path != NULL)
        code = cli_same_width(app, j->p_path, j->p_info.cols, j->q_path, j->q_info.cols);
    if (code < 0 && j->p_names_path != NULL)
        code = cli_names_read(app, j->p_names_path, &j->p_names);
    if (code < 0 && j->q_names_path != NULL)
        code = cli_names_read(app, j->q_names_path, &j->q_names);
    if (code < 0 && j->text == CLI_TEXT_NONE) code = check_names(j);
    if (code >= 0) return code;
    if (j->text == CLI_TEXT_NONE)
        code = cli_check_form(app, j->p_path, &j->p_info, j->options.metric);
    if (code < 0 && j->q_path != NULL)
        code = cli_check_form(app, j->q_path, &j->q_info, j->options.metric);
    if (code >= 0) return code;
    const place where = where_of(j);
    if (j->text == CLI_TEXT_NONE) code = check_gathered(j);
    if (code < 0 && where == IN_FILES) code = check_row(j, j->p_path, &j->p_info);
    if (code < 0 && where == IN_FILES && j->q_path != NULL)
        code = check_row(j, j->q_path, &j->q_info);
    return code;
}

int cli_join_work(cli_join *j)
{
    cli_app *app = j->app;
    const place where = where_of(j);
    int code;
    /* the files as they were before they were read: a change under way makes another join */
    json_t *identity = j->checkpoint != NULL ? identity_of(j) : NULL;
    code = j->text != CLI_TEXT_NONE ? load_texts(j)
           : where == IN_MEMORY     ? load(j)
           : where == ROWS_IN_FILES ? cli_join_open_rows(j)
                                    : -1;
    code = cli_comm_agree(app, code);
    if (code < 0 && j->checkpoint != NULL) return join_kept(j, where, identity);
    json_decref(identity);
    if (code >= 0) return code;
    code = cli_comm_agree(app, begin(j));
    if (code >= 0) return code;
    /* pairs that nobody wants need not come from the other ranks */
    if (app->comm.size == 1 || j->output != NULL || j->groups != NULL) j->options.sink = add_batch;
    j->options.p_counts = j->point_counts;
    return agree(j, run(j, where));
}

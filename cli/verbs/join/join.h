/* cli/verbs/join/join.h: the parts of gnomon join. */
#ifndef GNOMON_CLI_JOIN_H
#define GNOMON_CLI_JOIN_H

#include "verbs/join/join_checkpoint.h"
#include "verbs/join/join_text.h"

enum cli_pair_values { CLI_DISTANCE, CLI_SIMILARITY };

/* Where pairs go. */
typedef struct cli_pairs {
    cli_app *app;
    const char *path, *format; /* path NULL: nowhere */
    gnomon_writer *writer, *distances;
    gnomon_table *table;                /* csv and tsv */
    const cli_names *p_names, *q_names; /* NULL: none */
    int similar;                        /* 1 - distance is written */
    int sparse;                         /* a matrix of distances, row by row */
    gnomon_pair *pending;               /* of rows that are not complete */
    int64_t pending_count, pending_room;
    int64_t row, rows, cols; /* of the sparse matrix: written so far, in all */
} cli_pairs;

struct rows_reading;

typedef struct cli_join {
    cli_app *app;
    const char *p_path, *q_path; /* q_path NULL: a self-join */
    cli_input_options p_input, q_input;
    gnomon_join_options options;
    int threshold_given, similarity_given, count_only;
    double similarity; /* where it is given */
    const char *output, *distances, *format, *counts, *clusters, *checkpoint;
    const char *p_names_path, *q_names_path;
    cli_names p_names, q_names;
    int values; /* enum cli_pair_values */
    gnomon_data_info p_info, q_info;
    cli_points p, q;           /* in memory */
    struct rows_reading *rows; /* NULL, or sparse ones that are read: of P and of Q */
    int text;                  /* enum cli_text_mode */
    cli_ngram ngram;
    cli_texts texts;
    gnomon_join_result result;
    cli_pairs pairs;
    cli_checkpoint kept;
    gnomon_clusters *groups;
    int64_t *point_counts;
    int64_t cluster_count, clustered; /* clusters of two points or more, and points in them */
    double read_seconds, join_seconds, write_seconds;
    int failed; /* the exit code when pairs could not be written */
    char bar[80];
} cli_join;

/* join_work.c: checks what was opened; reads and joins, on all ranks. -1 or an exit code. */
int cli_join_prepare(cli_join *j);
int cli_join_work(cli_join *j);

/* join_rows.c: sparse points that are read, joined. Opening counts the rows; -1 or an exit code. */
int cli_join_open_rows(cli_join *j);
gnomon_status cli_join_rows(cli_join *j);
void cli_join_drop_rows(cli_join *j);

/* join_output.c: what may be written where, and the writing. -1 or an exit code. */
int cli_join_check_output(cli_join *j);
gnomon_status cli_pairs_open(cli_pairs *out, const cli_join *j, int64_t rows, int64_t cols);
gnomon_status cli_pairs_add(cli_pairs *out, const gnomon_join_batch *batch);
gnomon_status cli_pairs_finish(cli_pairs *out);
int cli_pairs_are_open(const cli_pairs *out);
void cli_pairs_drop(cli_pairs *out);
int cli_join_write(cli_join *j);
/* Names of P's points and of Q's, NULL where there are none. */
const cli_names *cli_join_p_names(const cli_join *j);
const cli_names *cli_join_q_names(const cli_join *j);

#endif

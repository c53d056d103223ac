/* cli/verbs/neighbors/neighbors.h: the parts of gnomon neighbors. */
#ifndef GNOMON_CLI_NEIGHBORS_H
#define GNOMON_CLI_NEIGHBORS_H

#include "cli.h"

/* All answers: queries in order. */
typedef struct cli_answers {
    int64_t queries, k; /* k 0: by radius */
    int64_t base, dimensions;
    int64_t *offsets, *ids;
    double *distances;
    int64_t compared, verified;
    char why[GNOMON_SEARCH_WHY]; /* of the last part of the base */
} cli_answers;

/* How much work a query by an index's file does; what is not told is the index's own. */
typedef struct cli_search_params {
    gnomon_lsh_search_params value;
    double wanted;                                          /* recall, of RaBitQ codes */
    int tables, probes, coarse, candidates, rerank, recall; /* are told */
} cli_search_params;

typedef struct cli_neighbors {
    cli_app *app;
    const char *base_path, *queries_path;
    cli_input_options base_input, queries_input;
    gnomon_search_options options;
    int exclude_self;
    const char *filter, *truth;
    int64_t mask; /* truth values in 'filter'; 0: it holds ids */
    const char *output, *distances, *format;
    const char *names_path, *query_names_path;
    cli_names names, query_names;
    gnomon_data_info base_info, queries_info;
    gnomon_reader *base, *queries;
    cli_answers answers;
    int64_t groups; /* of queries that were in memory at a time */
    double read_seconds, search_seconds, write_seconds;
    double recall; /* negative: not measured */
    /* by hashing */
    double guarantee; /* the recall to keep; 0: exactly */
    uint64_t seed;
    gnomon_lsh *index; /* gone after the search, but not NULL when there was one */
    gnomon_lsh_info index_info;
    gnomon_lsh_tuning tuning;
    double tune_seconds;
    /* by an index's file, which base_path names */
    int by_index;
    cli_search_params search_params;
    gnomon_lsh_work work;
} cli_neighbors;

/* neighbors.c: recall, output and report, after a search that came to -1 or an exit code, which it
 * returns then. */
int cli_neighbors_finish(cli_neighbors *n, int code);

/* neighbors_search.c: reads and searches. -1 or an exit code. */
int cli_neighbors_search(cli_neighbors *n);
/* A failure of the library's, told with the file that it is about. */
int cli_neighbors_fail(cli_neighbors *n, gnomon_status status);
/* Takes a group's answers over. */
int cli_neighbors_keep(cli_neighbors *n, gnomon_neighbors *found);
/* Sets the options' bitmap, for free(), of the ids in n->filter, where that is given; 'points' are
 * the base's, -1 where not known. */
int cli_neighbors_allow(cli_neighbors *n, int64_t points, uint8_t **bitmap);
void cli_neighbors_drop(cli_neighbors *n);

/* neighbors_guarantee.c: everything in memory, an index tuned to the guarantee. -1 or an exit code.
 */
int cli_neighbors_guarantee(cli_neighbors *n);
void cli_neighbors_print_guarantee(const cli_neighbors *n);
json_t *cli_neighbors_guarantee_json(const cli_neighbors *n);

/* neighbors_index.c: by an index's file. -1 or an exit code. */
int cli_neighbors_by_index(cli_neighbors *n);
void cli_neighbors_print_index(const cli_neighbors *n);
json_t *cli_neighbors_index_json(const cli_neighbors *n);

/* neighbors_output.c: options on answers, what may be written where, and the writing. -1 or an exit
 * code. */
enum { CLI_ANSWER_OPTIONS = 6 };
void cli_answer_table(cli_neighbors *n, cli_option table[CLI_ANSWER_OPTIONS]);
int cli_neighbors_check_output(cli_neighbors *n);
/* Names of points and queries: refuses others than one for each of so many points and queries
 * (negative: not known). */
/* Reads them, before the search. */
int cli_neighbors_read_names(cli_neighbors *n, int64_t points, int64_t queries);
int cli_neighbors_check_names(const cli_neighbors *n, int64_t points, int64_t queries);
int cli_neighbors_write(cli_neighbors *n);
/* The share of the true neighbours, read from the ground truth, that were found. */
int cli_neighbors_recall(cli_neighbors *n);

#endif

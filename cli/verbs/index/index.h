/* cli/verbs/index/index.h: the parts of gnomon index. */
#ifndef GNOMON_CLI_INDEX_H
#define GNOMON_CLI_INDEX_H

#include "verbs/neighbors/neighbors.h"

/* The verbs of an index: argv[0] is the verb's own name. */
int cli_index_build(int argc, char **argv);
int cli_index_tune(int argc, char **argv);
int cli_index_query(int argc, char **argv);
int cli_index_add(int argc, char **argv);
int cli_index_remove(int argc, char **argv);
int cli_index_compact(int argc, char **argv);
int cli_index_info(int argc, char **argv);
int cli_index_check(int argc, char **argv);

/* What an index takes, and what it is made of, as words and for a program. */
void cli_index_words(FILE *stream, const cli_index_file *index);
json_t *cli_index_json(const cli_index_file *index);

/* After BUSY: waits a moment for the process that is changing the index at path, which is said
 * once. -1 or an exit code. */
int cli_index_wait(cli_app *app, const char *path, int *waiting);

/* Trains centres for functions->family on points of the file at path, which is read for that alone:
 * centre_count of them, where it is 0 the root of the number of points. functions point at *centres
 * then; free() it, whatever is returned. -1 or an exit code. */
int cli_index_train(cli_app *app, const char *path, const cli_input_options *input,
                    gnomon_lsh_functions *functions, float **centres);

/* What writes an index of the one kind or the other, which is NULL. */
typedef struct cli_builder {
    gnomon_lsh_builder *hashed;
    gnomon_sparse_builder *inverted;
} cli_builder;
gnomon_status cli_index_extend(cli_app *app, const cli_index_file *index, const char *path,
                               int compact, cli_builder *builder);
/* Completes the file after code -1, else discards it. -1 or an exit code. */
int cli_index_complete(cli_app *app, cli_builder *builder, int code);

/* Hands the reader's points, piece by piece, to the builder; coded: the first ones determine the
 * codes. -1 or an exit code. */
int cli_index_add_points(cli_app *app, const char *path, gnomon_reader *reader,
                         const gnomon_data_info *info, gnomon_metric metric, int coded,
                         const cli_builder *builder, int64_t *points);

#endif

/* cli/join_checkpoint.h: a join that can be interrupted. What it is and how far it came stand in
 * FILE, the pairs in FILE.pairs, until the output is written. */
#ifndef GNOMON_CLI_JOIN_CHECKPOINT_H
#define GNOMON_CLI_JOIN_CHECKPOINT_H

#include "cli.h"

typedef struct cli_checkpoint {
    cli_app *app;
    const char *path; /* NULL: there is none */
    char *pairs_path;
    FILE *pairs;
    char *identity;                       /* of the join: what must be the same to go on with it */
    int64_t written, complete, rows_done; /* complete: pairs of rows before rows_done */
    int64_t kept, kept_rows;              /* on disk for good */
    double saved;                         /* when, on cli_seconds' clock */
    int failed;                           /* the exit code when it could not be written */
} cli_checkpoint;

/* Takes up the join of this identity where FILE left it, or begins it. *rows_done: the rows that
 * need not be joined any more. -1 or an exit code. */
int cli_checkpoint_open(cli_checkpoint *c, cli_app *app, const char *path, char *identity,
                        int64_t *rows_done);
/* Keeps a batch; nonzero when it could not. */
int cli_checkpoint_take(cli_checkpoint *c, const gnomon_join_batch *batch);
/* Puts on disk how far it came. -1 or an exit code. */
int cli_checkpoint_save(cli_checkpoint *c);
/* Hands all pairs to the sink, in batches. -1 or an exit code. */
int cli_checkpoint_replay(cli_checkpoint *c, int64_t rows, gnomon_join_sink sink, void *user);
/* Removes the files: the output is written. */
void cli_checkpoint_remove(cli_checkpoint *c);
void cli_checkpoint_drop(cli_checkpoint *c);

#endif

/* cli/verbs/join/join_checkpoint.h: a join that can be interrupted. What it is and how far it came
 * stand in FILE (JSON, replaced as a whole through FILE.new), the pairs in FILE.pairs (a header,
 * then gnomon_pair after gnomon_pair), until the output is written. One run at a time has the lock
 * of FILE.pairs. Both files are read as hostile: a checksum binds them to each other and to the
 * join, and every pair is checked against what a pair of this join can be. */
#ifndef GNOMON_CLI_JOIN_CHECKPOINT_H
#define GNOMON_CLI_JOIN_CHECKPOINT_H

#include "cli.h"

/* What a pair of the join can be. */
typedef struct cli_pair_limits {
    int64_t rows, cols; /* points of P and of Q */
    double threshold;
    int self;     /* of P with itself: i < j */
    int at_least; /* distances are products, of threshold or more */
} cli_pair_limits;

typedef struct cli_checkpoint {
    cli_app *app;
    const char *path; /* NULL: there is none */
    char *pairs_path, *new_path;
    int fd; /* of FILE.pairs, locked; valid with path */
    cli_pair_limits limits;
    json_t *identity;                     /* of the join: what must be the same to go on with it */
    uint64_t seed;                        /* of the checksum: the identity's hash */
    uint64_t hash, complete_hash;         /* of the pairs written, and of the complete ones */
    int64_t written, complete, rows_done; /* complete: pairs of rows before rows_done */
    int64_t kept, kept_rows;              /* on disk for good */
    double saved;                         /* when, on cli_seconds' clock */
    int failed;                           /* the exit code when it could not be written */
} cli_checkpoint;

/* Takes up the join of this identity (taken over) where FILE left it, or begins it. *rows_done:
 * the rows that need not be joined any more. -1 or an exit code. */
int cli_checkpoint_open(cli_checkpoint *c, cli_app *app, const char *path, json_t *identity,
                        const cli_pair_limits *limits, int64_t *rows_done);
/* Keeps a batch; nonzero when it could not. */
int cli_checkpoint_add(cli_checkpoint *c, const gnomon_join_batch *batch);
/* Puts on disk how far it came. -1 or an exit code. */
int cli_checkpoint_save(cli_checkpoint *c);
/* Hands all pairs to the sink, in batches. -1 or an exit code. */
int cli_checkpoint_replay(cli_checkpoint *c, gnomon_join_sink sink, void *user);
/* Removes the files: the output is written. */
void cli_checkpoint_remove(cli_checkpoint *c);
void cli_checkpoint_drop(cli_checkpoint *c);

#endif

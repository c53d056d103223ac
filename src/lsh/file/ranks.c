/* An index that several ranks build: each reads and hashes pieces of the points; rank 0 takes them
 * in their order, as a builder of one process takes what it is given, and writes the file.
 *
 * A piece is a message of its rows and, table by table, of their keys. So the other ranks need no
 * place for the file, and rank 0 does not read what it is to write. */
#include "lsh/file/file.h"

#include "comm/comm.h"

#include "base/arithmetic.h"
#include "base/memory.h"
#include "points/view.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PIECE = 8 << 20, /* bytes of a message, about */
    SHARE = 8,       /* of the memory limit, at most */
    EACH = 4,        /* pieces to a rank, where there are rows enough */
    LEAST = 256      /* rows */
};

/* What rank 0 tells: docs/reference/formats.md. */
typedef struct terms {
    int64_t rows, cols, dtype, tables, piece;
    uint64_t settings; /* the checksum of their text */
} terms;

typedef struct building {
    gnomon_context *ctx;
    const gnomon_join_points *points;
    gnomon_lsh *shape; /* hashes; of rank 0 the builder's */
    gnomon_lsh_builder *builder;
    int ranks;
    gnomon_status status; /* why this rank can't begin */
    char why[480];
    terms t;
    int64_t row; /* bytes */
    char *body;
} building;

/* ---- pieces ---- */

static int64_t rows_in(const building *b, int64_t piece)
{
    int64_t first;
    if (!gnomon_mul(piece, b->t.piece, &first) || first >= b->t.rows) return 0;
    return gnomon_min(b->t.piece, b->t.rows - first);
}

static uint64_t *keys_in(const building *b, char *body, int64_t rows)
{
    /* behind rows of any length, in whole words */
    return (uint64_t *)(void *)(body + gnomon_round_up(rows * b->row, 8));
}

static int64_t bytes_of(const building *b, int64_t rows)
{
    return gnomon_round_up(rows * b->row, 8) + rows * b->t.tables * 8;
}

static gnomon_status make(void *user, int64_t piece, const void **data, int64_t *bytes)
{
    building *b = user;
    const int64_t rows = rows_in(b, piece), first = piece * b->t.piece;
    if (rows == 0) return GNOMON_OK;
    if (b->body == NULL)
        GNOMON_TRY(gnomon_alloc_zero(b->ctx, bytes_of(b, b->t.piece), 1, "points", &b->body));
    const gnomon_matrix m = gnomon_matrix_rowmajor(b->body, b->points->dtype, rows, b->t.cols);
    const gnomon_points some = {&m, NULL};
    GNOMON_TRY(b->points->read(b->points->user, first, &m));
    if (!gnomon_metric_takes(b->shape->options.metric, GNOMON_POINTS_BITS))
        GNOMON_TRY(gnomon_check_rows(b->ctx, &m, "points", first));
    GNOMON_TRY(gnomon_hasher_check(b->ctx, b->shape->hasher, &some, "points"));
    GNOMON_TRY(gnomon_lsh_keys(b->ctx, b->shape, &some, keys_in(b, b->body, rows)));
    *data = b->body;
    *bytes = bytes_of(b, rows);
    return GNOMON_OK;
}

static gnomon_status take(void *user, int64_t piece, const void *data, int64_t bytes)
{
    building *b = user;
    const int64_t rows = rows_in(b, piece);
    GNOMON_FAIL_IF(rows == 0 || bytes != bytes_of(b, rows), b->ctx, GNOMON_ERROR_DATA,
                   "a piece of %" PRId64 " bytes came where %" PRId64 " points are due", bytes,
                   rows);
    char *body = (char *)(uintptr_t)data;
    const gnomon_matrix m = gnomon_matrix_rowmajor(body, b->points->dtype, rows, b->t.cols);
    GNOMON_TRY(gnomon_lsh_builder_take(b->builder, &m, keys_in(b, body, rows)));
    return gnomon_progress(b->ctx, "points", piece * b->t.piece + rows, b->t.rows);
}

/* ---- the call ---- */

/* A piece of no bytes of each rank, or why it can't begin. */
static gnomon_status make_ready(void *user, int64_t piece, const void **data, int64_t *bytes)
{
    const building *b = user;
    (void)data;
    if (piece >= b->ranks) return GNOMON_OK;
    if (b->status != GNOMON_OK) return gnomon_fail(b->ctx, b->status, "%s", b->why);
    *bytes = 0;
    return GNOMON_OK;
}

static gnomon_status take_ready(void *user, int64_t piece, const void *data, int64_t bytes)
{
    (void)user;
    (void)piece;
    (void)data;
    return bytes == 0 ? GNOMON_OK : GNOMON_ERROR_DATA;
}

static gnomon_status plan(building *b, int size)
{
    terms *t = &b->t;
    int64_t each;
    *t = (terms){.rows = b->points->rows,
                 .cols = b->points->cols,
                 .dtype = (int64_t)b->points->dtype,
                 .tables = b->shape->options.tables};
    GNOMON_FAIL_IF(!gnomon_mul(t->cols, (int64_t)gnomon_dtype_size(b->points->dtype), &b->row) ||
                       !gnomon_add(b->row, 8 * t->tables + 8, &each) ||
                       !gnomon_mul(each, PIECE, &(int64_t){0}),
                   b->ctx, GNOMON_ERROR_OVERFLOW,
                   GNOMON_ARG("points") " has %" PRId64
                                        " columns: a piece is more than memory can count",
                   t->cols);
    const int64_t fit = gnomon_min(gnomon_memory_limit(b->ctx) / SHARE, PIECE) / each;
    const int64_t share = gnomon_max(t->rows / ((int64_t)EACH * size), LEAST);
    t->piece = gnomon_max(gnomon_min(fit, share), 1);
    return GNOMON_OK;
}

/* What hashes and is written must be the same on all ranks, centres too. */
static gnomon_status sum_settings(building *b)
{
    char *json;
    GNOMON_TRY(gnomon_lsh_settings_to_json(b->ctx, b->shape, &json));
    b->t.settings = gnomon_lsh_checksum(json, strlen(json));
    free(json);
    const gnomon_hasher *h = b->shape->hasher;
    if (h->centres != NULL)
        b->t.settings ^= gnomon_lsh_checksum(h->centres, (size_t)gnomon_hasher_centre_bytes(h));
    return GNOMON_OK;
}

/* What this rank needs, before the others are heard. */
static gnomon_status prepare(building *b, const gnomon_comm *comm,
                             const gnomon_lsh_options *options, const char *path)
{
    GNOMON_NEED(b->ctx, options, "options");
    GNOMON_TRY(gnomon_lsh_check_stream(b->ctx, b->points));
    if (comm->rank == 0) {
        GNOMON_TRY(gnomon_lsh_builder_create(b->ctx, options, path, &b->builder));
        b->shape = gnomon_lsh_builder_shape(b->builder);
    } else {
        GNOMON_TRY(gnomon_lsh_create(b->ctx, options, &b->shape));
    }
    GNOMON_FAIL_IF(gnomon_metric_of_sets(b->shape->options.metric), b->ctx,
                   GNOMON_ERROR_UNSUPPORTED,
                   GNOMON_ARG("options.metric") " is %s; several ranks index dense points",
                   gnomon_metric_name(b->shape->options.metric));
    GNOMON_FAIL_IF(b->shape->options.codes > 0, b->ctx, GNOMON_ERROR_UNSUPPORTED,
                   GNOMON_ARG("options.codes") " is %" PRId64
                                               "; several ranks build indexes without codes",
                   b->shape->options.codes);
    GNOMON_TRY(plan(b, comm->size));
    return sum_settings(b);
}

static void note(building *b, gnomon_status status)
{
    b->status = status;
    snprintf(b->why, sizeof b->why, "%s", gnomon_last_error(b->ctx));
}

/* The others do as rank 0 says, where that fits. */
static void follow(building *b, const terms *told)
{
    const terms own = b->t;
    b->t = *told;
    if (b->status != GNOMON_OK || told->piece == 0) return; /* rank 0 has failed, and tells why */
    if (own.rows == told->rows && own.cols == told->cols && own.dtype == told->dtype &&
        own.tables == told->tables && own.settings == told->settings && told->piece > 0 &&
        told->piece <= PIECE)
        return;
    note(b, gnomon_fail(b->ctx, GNOMON_ERROR_SHAPE,
                        "it indexes other points than rank 0, or by other options"));
}

static gnomon_status build(building *b, const gnomon_comm *comm, const gnomon_lsh_options *options,
                           const char *path)
{
    gnomon_comm_failure bad = {0};
    const gnomon_status ready = prepare(b, comm, options, path);
    if (ready != GNOMON_OK) {
        note(b, ready);
        b->t = (terms){0};
    }
    terms told = b->t;
    GNOMON_TRY(gnomon_comm_broadcast(b->ctx, comm, &told, sizeof told));
    if (comm->rank > 0) follow(b, &told);
    GNOMON_TRY(gnomon_comm_deal(b->ctx, comm, make_ready, take_ready, b));
    GNOMON_TRY(gnomon_comm_deal(b->ctx, comm, make, take, b));
    if (comm->rank == 0) {
        gnomon_lsh_builder *builder = b->builder;
        b->builder = NULL;
        gnomon_comm_note(b->ctx, &bad, gnomon_lsh_builder_finish(builder), 0, NULL);
    }
    return gnomon_comm_end(b->ctx, comm, &bad);
}

gnomon_status gnomon_comm_lsh_build(gnomon_context *ctx, const gnomon_comm *given,
                                    const gnomon_lsh_options *options,
                                    const gnomon_join_points *points, const char *path)
{
    gnomon_comm comm;
    GNOMON_TRY(gnomon_comm_take(ctx, given, &comm));
    building b = {.ctx = ctx, .points = points, .ranks = comm.size};
    const gnomon_status status = build(&b, &comm, options, path);
    gnomon_free(ctx, b.body);
    if (comm.rank > 0) gnomon_lsh_destroy(b.shape);
    gnomon_lsh_builder_abort(b.builder);
    return status;
}

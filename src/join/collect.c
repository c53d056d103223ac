/* A join whose pairs are kept, in compressed rows. */
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"

#include <gnomon/join.h>

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

typedef struct collector {
    gnomon_context *ctx;
    gnomon_pair *pairs;
    int64_t count, room;
    gnomon_status status;
} collector;

static int keep(void *user, const gnomon_join_batch *batch)
{
    collector *c = user;
    if (batch->count > c->room - c->count) {
        const int64_t room = (c->count + batch->count) / 2 * 3 + 1024;
        c->status = gnomon_grow(c->ctx, &c->pairs, c->count, room, sizeof *c->pairs, "pairs");
        if (c->status != GNOMON_OK) return 1;
        c->room = room;
    }
    if (batch->count > 0)
        memcpy(c->pairs + c->count, batch->pairs, (size_t)batch->count * sizeof *c->pairs);
    c->count += batch->count;
    return 0;
}

void gnomon_pairs_free(gnomon_context *ctx, gnomon_pairs *pairs)
{
    gnomon_pairs kept;
    if (ctx == NULL || !gnomon_load_result(pairs, &kept, sizeof kept)) return;
    gnomon_free(ctx, kept.offsets);
    gnomon_free(ctx, kept.columns);
    gnomon_free(ctx, kept.distances);
    gnomon_clear_result(pairs);
}

/* Pairs come by (i, j). The mirrored ones of a row, columns below it, come before its own: they are
 * placed first, and in the order of their columns as the pairs are. */
static gnomon_status compress(const collector *c, bool both, gnomon_pairs *out)
{
    int64_t *offsets;
    out->count = both ? 2 * c->count : c->count;
    GNOMON_TRY(gnomon_alloc_zero(c->ctx, out->rows + 1, sizeof *offsets, "rows", &out->offsets));
    GNOMON_TRY(gnomon_alloc(c->ctx, out->count, sizeof *out->columns, "pairs", &out->columns));
    GNOMON_TRY(gnomon_alloc(c->ctx, out->count, sizeof *out->distances, "pairs", &out->distances));
    offsets = out->offsets;
    for (int64_t at = 0; at < c->count; at++) {
        offsets[c->pairs[at].i + 1]++;
        if (both) offsets[c->pairs[at].j + 1]++;
    }
    for (int64_t row = 0; row < out->rows; row++)
        offsets[row + 1] += offsets[row];
    for (int round = both ? 0 : 1; round < 2; round++) {
        for (int64_t at = 0; at < c->count; at++) {
            const gnomon_pair *pair = &c->pairs[at];
            const int64_t place = offsets[round == 0 ? pair->j : pair->i]++;
            out->columns[place] = round == 0 ? pair->i : pair->j;
            out->distances[place] = pair->distance;
        }
    }
    for (int64_t row = out->rows; row > 0; row--)
        offsets[row] = offsets[row - 1];
    offsets[0] = 0;
    return GNOMON_OK;
}

static gnomon_status prepare(gnomon_context *ctx, const gnomon_join_options *options, int both,
                             bool self, gnomon_pairs *out, gnomon_join_options *o)
{
    GNOMON_TRY(GNOMON_OPEN_RESULT(ctx, "out", gnomon_pairs, out));
    GNOMON_FAIL_IF(
        both && !self, ctx, GNOMON_ERROR_ARGUMENT,
        GNOMON_ARG("both") " is %d and q not NULL; only a self-join's pairs can be there twice",
        both);
    *o = (gnomon_join_options)GNOMON_JOIN_OPTIONS_INIT;
    if (options == NULL) return GNOMON_OK;
    GNOMON_TRY(GNOMON_COPY_OPTIONS(ctx, "options", gnomon_join_options, options, o));
    GNOMON_FAIL_IF(o->sink != NULL || o->top != 0, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("options.sink") " or top is set; collecting takes neither");
    return GNOMON_OK;
}

static gnomon_status finish(collector *c, gnomon_status status, bool both, int64_t rows,
                            int64_t cols, gnomon_pairs *out)
{
    gnomon_pairs kept = {.struct_size = sizeof kept, .rows = rows, .cols = cols};
    if (c->status != GNOMON_OK) status = c->status;
    if (status == GNOMON_OK) status = compress(c, both, &kept);
    gnomon_free(c->ctx, c->pairs);
    if (status == GNOMON_OK) gnomon_return_result(out, &kept, sizeof kept);
    gnomon_pairs_free(c->ctx, &kept);
    return status;
}

static int64_t rows_of(const gnomon_join_side *side)
{
    return side->dense != NULL ? side->dense->rows : side->sparse->rows;
}

gnomon_status gnomon_join_collect_sides(gnomon_context *ctx, const gnomon_join_side *p,
                                        const gnomon_join_side *q,
                                        const gnomon_join_options *options, int both,
                                        gnomon_pairs *out, gnomon_join_result *result)
{
    collector c = {.ctx = ctx};
    gnomon_join_options o;
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_TRY(prepare(ctx, options, both, q == NULL, out, &o));
    o.sink = keep;
    o.user = &c;
    const gnomon_status status = gnomon_join_sides(ctx, p, q, options == NULL ? NULL : &o, result);
    if (status != GNOMON_OK) return finish(&c, status, both != 0, 0, 0, out);
    return finish(&c, status, both != 0, rows_of(p), rows_of(q == NULL ? p : q), out);
}

gnomon_status gnomon_join_collect(gnomon_context *ctx, const gnomon_matrix *p,
                                  const gnomon_matrix *q, const gnomon_join_options *options,
                                  int both, gnomon_pairs *out, gnomon_join_result *result)
{
    const gnomon_join_side first = {.dense = p}, second = {.dense = q};
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_FAIL_IF(p == NULL, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("p") " is NULL");
    return gnomon_join_collect_sides(ctx, &first, q == NULL ? NULL : &second, options, both, out,
                                     result);
}

gnomon_status gnomon_join_collect_csr(gnomon_context *ctx, const gnomon_csr *p, const gnomon_csr *q,
                                      const gnomon_join_options *options, int both,
                                      gnomon_pairs *out, gnomon_join_result *result)
{
    const gnomon_join_side first = {.sparse = p}, second = {.sparse = q};
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_FAIL_IF(p == NULL, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("p") " is NULL");
    return gnomon_join_collect_sides(ctx, &first, q == NULL ? NULL : &second, options, both, out,
                                     result);
}

/* How coherent points and their differences are. */
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/threads.h"
#include "points/view.h"
#include "quality/lengths.h"
#include "quality/pairs.h"

#include <gnomon/quality.h>

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { BLOCK = 16 }; /* values a task */

typedef struct scan {
    const gnomon_matrix *dense;       /* the points, or */
    const gnomon_sorted_rows *sparse; /* these */
    gnomon_pairs pairs;
    bool of_pairs; /* else of the points themselves */
    int64_t count;
    double *values;
    double *scratch; /* 2 pieces a worker */
} scan;

static void scan_block_pairs(void *arg, int64_t task, int worker)
{
    const scan *l = arg;
    double *scratch = l->scratch + (int64_t)worker * 2 * GNOMON_LENGTH_PIECE;
    const int64_t begin = task * BLOCK, end = l->count - begin < BLOCK ? l->count : begin + BLOCK;
    for (int64_t t = begin; t < end; t++) {
        int64_t i = t, j = -1;
        if (l->of_pairs) gnomon_pairs_get(&l->pairs, t, &i, &j);
        l->values[t] = l->sparse ? gnomon_coherence_sparse(l->sparse, i, j)
                                 : gnomon_coherence_dense(l->dense, i, j, scratch);
    }
}

/* Mean and largest of the values that are numbers, and where that is. */
static void summarize(const double *values, int64_t count, int64_t *measured, double *mean,
                      double *most, int64_t *where)
{
    double sum = 0;
    *measured = 0;
    *mean = *most = 0;
    *where = -1;
    for (int64_t t = 0; t < count; t++) {
        if (!isfinite(values[t])) continue;
        sum += values[t];
        ++*measured;
        if (*where < 0 || values[t] > *most) {
            *most = values[t];
            *where = t;
        }
    }
    if (*measured > 0) *mean = sum / (double)*measured;
}

static gnomon_status run_scan(gnomon_context *ctx, scan *l, int64_t points, int64_t max_pairs,
                              uint64_t seed, gnomon_coherence *out)
{
    l->pairs = gnomon_pairs_choose(points, max_pairs, seed);
    const int64_t pairs = l->pairs.count, room = points > pairs ? points : pairs;
    int64_t where;
    GNOMON_TRY(gnomon_alloc(ctx, room, sizeof *l->values, "coherences", &l->values));
    GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(gnomon_context_threads(ctx), 2 * GNOMON_LENGTH_PIECE),
                            sizeof *l->scratch, "rows in double precision", &l->scratch));
    l->count = points;
    gnomon_parallel(ctx, (l->count + BLOCK - 1) / BLOCK, scan_block_pairs, l);
    summarize(l->values, l->count, &out->points, &out->point_mean, &out->point_most, &where);
    GNOMON_TRY(gnomon_progress(ctx, "coherence", points, points + pairs));
    l->of_pairs = true;
    l->count = pairs;
    gnomon_parallel(ctx, (l->count + BLOCK - 1) / BLOCK, scan_block_pairs, l);
    summarize(l->values, l->count, &out->pairs, &out->pair_mean, &out->pair_most, &where);
    out->pair_most_i = out->pair_most_j = -1;
    if (where >= 0) gnomon_pairs_get(&l->pairs, where, &out->pair_most_i, &out->pair_most_j);
    return GNOMON_OK;
}

static gnomon_status run(gnomon_context *ctx, scan *l, int64_t points, int64_t max_pairs,
                         uint64_t seed, gnomon_coherence *out)
{
    gnomon_coherence found = {.struct_size = sizeof found, .pair_most_i = -1, .pair_most_j = -1};
    GNOMON_TRY(GNOMON_OPEN_RESULT(ctx, "out", gnomon_coherence, out));
    GNOMON_FAIL_IF(max_pairs < 1, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("max_pairs") " is %" PRId64 "; it must be at least 1", max_pairs);
    gnomon_status status = GNOMON_OK;
    if (points > 0) status = run_scan(ctx, l, points, max_pairs, seed, &found);
    gnomon_free(ctx, l->values);
    gnomon_free(ctx, l->scratch);
    if (status == GNOMON_OK) gnomon_write_result(out, &found, sizeof found);
    return status;
}

gnomon_status gnomon_measure_coherence(gnomon_context *ctx, const gnomon_matrix *x,
                                       int64_t max_pairs, uint64_t seed, gnomon_coherence *out)
{
    GNOMON_FAIL_IF(!ctx, NULL, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("ctx") " is NULL");
    GNOMON_TRY(gnomon_check_view(ctx, x, "x"));
    scan l = {.dense = x};
    return run(ctx, &l, x->rows, max_pairs, seed, out);
}

gnomon_status gnomon_measure_coherence_csr(gnomon_context *ctx, const gnomon_csr *x,
                                           int64_t max_pairs, uint64_t seed, gnomon_coherence *out)
{
    GNOMON_FAIL_IF(!ctx, NULL, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("ctx") " is NULL");
    GNOMON_FAIL_IF(!x, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("x") " is NULL");
    gnomon_sorted_rows rows = {0};
    GNOMON_TRY(gnomon_sorted_rows_make(ctx, x, &rows));
    scan l = {.sparse = &rows};
    const gnomon_status status = run(ctx, &l, x->rows, max_pairs, seed, out);
    gnomon_sorted_rows_free(ctx, &rows);
    return status;
}

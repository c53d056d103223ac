/* What a sketch did to norms and distances. */
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/threads.h"
#include "points/view.h"
#include "quality/lengths.h"
#include "quality/pairs.h"
#include "quality/summary.h"

#include <inttypes.h>
#include <math.h>

GNOMON_OPTIONS_INIT(gnomon_distortion_options, GNOMON_DISTORTION_OPTIONS_INIT)

enum { BLOCK = 64 }; /* pairs a task */

typedef struct measure {
    const gnomon_matrix *dense;       /* the original, or */
    const gnomon_sorted_rows *sparse; /* this one */
    const gnomon_matrix *sketch;
    const gnomon_pairs *pairs; /* NULL: norms */
    int64_t begin, end;        /* of values, of this batch of tasks */
    double *values;
    double *scratch; /* 2 pieces a worker */
} measure;

static void measure_block(void *arg, int64_t task, int worker)
{
    const measure *m = arg;
    double *scratch = m->scratch + (int64_t)worker * 2 * GNOMON_LENGTH_PIECE;
    const int64_t begin = m->begin + task * BLOCK;
    const int64_t end = begin + BLOCK < m->end ? begin + BLOCK : m->end;
    for (int64_t t = begin; t < end; t++) {
        int64_t i = t, j = -1;
        if (m->pairs) gnomon_pairs_get(m->pairs, t, &i, &j);
        const gnomon_length original = m->sparse ? gnomon_length_sparse(m->sparse, i, j)
                                                 : gnomon_length_dense(m->dense, i, j, scratch);
        const gnomon_length image = gnomon_length_dense(m->sketch, i, j, scratch);
        m->values[t] = gnomon_length_distortion(image, original);
    }
}

/* Measures count norms or pairs and summarises them. */
static gnomon_status measure_all(gnomon_context *ctx, measure *m, int64_t count, double eps,
                                 const char *phase, gnomon_distortion *out)
{
    gnomon_status status = gnomon_alloc(ctx, count, sizeof *m->values, phase, &m->values);
    if (status == GNOMON_OK)
        status = gnomon_alloc(ctx,
                              gnomon_times(gnomon_times((int64_t)gnomon_context_threads(ctx), 2),
                                           GNOMON_LENGTH_PIECE),
                              sizeof *m->scratch, "rows in double precision", &m->scratch);
    const int64_t batch = INT64_C(1) << 14; /* between calls of the progress callback */
    for (m->begin = 0; m->begin < count && status == GNOMON_OK; m->begin = m->end) {
        m->end = count - m->begin < batch ? count : m->begin + batch;
        gnomon_parallel(ctx, (m->end - m->begin + BLOCK - 1) / BLOCK, measure_block, m);
        status = gnomon_progress(ctx, phase, m->end, count);
    }
    if (status == GNOMON_OK) {
        int64_t worst;
        gnomon_summarize(m->values, count, eps, out, &worst);
        if (worst >= 0 && m->pairs)
            gnomon_pairs_get(m->pairs, worst, &out->worst_i, &out->worst_j);
        else
            out->worst_i = worst;
    }
    gnomon_free(ctx, m->values);
    gnomon_free(ctx, m->scratch);
    m->values = m->scratch = NULL;
    return status;
}

static gnomon_status check_finite(gnomon_context *ctx, const gnomon_matrix *m, const char *name)
{
    int64_t row = 0, col = 0;
    const gnomon_status status = gnomon_matrix_check_finite(ctx, m, &row, &col);
    if (status != GNOMON_ERROR_NONFINITE) return status;
    return gnomon_fail(ctx, status,
                       GNOMON_ARG("%s") " has NaN or infinity at row " GNOMON_AT_ROW "%" PRId64
                                        ", column " GNOMON_AT_COL "%" PRId64
                                        "; distances need finite values",
                       name, row, col);
}

static gnomon_status run(gnomon_context *ctx, const gnomon_matrix *dense, const gnomon_csr *sparse,
                         const gnomon_matrix *sketch, const gnomon_distortion_options *options,
                         gnomon_distortion *norms, gnomon_distortion *pairs, int *all_pairs)
{
    gnomon_distortion_options o = GNOMON_DISTORTION_OPTIONS_INIT;
    if (options)
        GNOMON_TRY(GNOMON_COPY_OPTIONS(ctx, "options", gnomon_distortion_options, options, &o));
    GNOMON_FAIL_IF(!(o.eps > 0) || isinf(o.eps), ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("options.eps") " is %g; it must be a positive number", o.eps);
    GNOMON_FAIL_IF(o.max_pairs < 1, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("options.max_pairs") " is %" PRId64 "; it must be at least 1",
                   o.max_pairs);
    GNOMON_TRY(gnomon_check_view(ctx, sketch, "sketch"));
    const int64_t points = dense ? dense->rows : sparse->rows;
    GNOMON_FAIL_IF(points != sketch->rows, ctx, GNOMON_ERROR_SHAPE,
                   GNOMON_ARG("original") " has %" PRId64 " points and sketch %" PRId64
                                          "; they must be the same",
                   points, sketch->rows);
    if (dense) GNOMON_TRY(check_finite(ctx, dense, "original"));
    GNOMON_TRY(check_finite(ctx, sketch, "sketch"));

    gnomon_sorted_rows rows = {0};
    if (sparse) GNOMON_TRY(gnomon_sorted_rows_make(ctx, sparse, &rows));
    measure m = {.dense = dense, .sparse = sparse ? &rows : NULL, .sketch = sketch};
    gnomon_status status = GNOMON_OK;
    if (norms) status = measure_all(ctx, &m, points, o.eps, "norms", norms);
    const gnomon_pairs choice = gnomon_pairs_choose(points, o.max_pairs, o.seed);
    m.pairs = &choice;
    if (pairs && status == GNOMON_OK)
        status = measure_all(ctx, &m, choice.count, o.eps, "pairs", pairs);
    if (all_pairs) *all_pairs = choice.all;
    gnomon_sorted_rows_free(ctx, &rows);
    return status;
}

gnomon_status gnomon_measure_distortion(gnomon_context *ctx, const gnomon_matrix *original,
                                        const gnomon_matrix *sketch,
                                        const gnomon_distortion_options *options,
                                        gnomon_distortion *norms, gnomon_distortion *pairs,
                                        int *all_pairs)
{
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_TRY(gnomon_check_view(ctx, original, "original"));
    return run(ctx, original, NULL, sketch, options, norms, pairs, all_pairs);
}

gnomon_status gnomon_measure_distortion_csr(gnomon_context *ctx, const gnomon_csr *original,
                                            const gnomon_matrix *sketch,
                                            const gnomon_distortion_options *options,
                                            gnomon_distortion *norms, gnomon_distortion *pairs,
                                            int *all_pairs)
{
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_FAIL_IF(!original, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("original") " is NULL");
    return run(ctx, NULL, original, sketch, options, norms, pairs, all_pairs);
}

/* The public calls. */
#include "base/error.h"
#include "gemm/job.h"
#include "project/job.h"

#include <inttypes.h>

gnomon_status gnomon_gemm_at(gnomon_context *ctx, gnomon_where where, const gnomon_matrix *a,
                             const gnomon_matrix *b, const gnomon_matrix *c,
                             const gnomon_gemm_options *options)
{
    gnomon_gemm_job job;
    bool done;
    GNOMON_TRY(gnomon_gemm_check(ctx, a, b, c, options, &job));
    GNOMON_TRY(gnomon_gemm_on_device(ctx, where, &job, &done));
    return done ? GNOMON_OK : gnomon_gemm_on_cpu(ctx, &job);
}

gnomon_status gnomon_gemm(gnomon_context *ctx, const gnomon_matrix *a, const gnomon_matrix *b,
                          const gnomon_matrix *c, const gnomon_gemm_options *options)
{
    return gnomon_gemm_at(ctx, GNOMON_BY_CONTEXT, a, b, c, options);
}

gnomon_status gnomon_gemm_operator(gnomon_context *ctx, const gnomon_operator *s,
                                   gnomon_gemm_side side, const gnomon_matrix *a,
                                   const gnomon_matrix *c, const gnomon_gemm_options *options)
{
    gnomon_gemm_options o;
    GNOMON_FAIL_IF(!ctx, NULL, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("ctx") " is NULL");
    GNOMON_FAIL_IF(!s, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("s") " is NULL");
    GNOMON_TRY(gnomon_gemm_read_options(ctx, options, &o));
    GNOMON_FAIL_IF(o.form != GNOMON_GEMM_AUTO, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("options.form") " is %d; with an operator it must be 0 (auto)",
                   (int)o.form);
    GNOMON_FAIL_IF((int)side < GNOMON_GEMM_ST_RIGHT || (int)side > GNOMON_GEMM_ST_LEFT, ctx,
                   GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("side") " is %d; it must be one of gnomon_gemm_side", (int)side);
    GNOMON_TRY(gnomon_check_anywhere(ctx, a, "a", false));
    GNOMON_TRY(gnomon_check_anywhere(ctx, c, "c", true));
    const bool left = side == GNOMON_GEMM_S_LEFT || side == GNOMON_GEMM_ST_LEFT;
    const bool sketch = side == GNOMON_GEMM_ST_RIGHT || side == GNOMON_GEMM_S_LEFT;
    const gnomon_matrix in = left ? gnomon_matrix_transposed(a) : *a,
                        out = left ? gnomon_matrix_transposed(c) : *c;
    const int64_t k = s->descriptor.k, d = s->descriptor.d;
    GNOMON_FAIL_IF(in.rows != out.rows || in.cols != (sketch ? d : k) ||
                       out.cols != (sketch ? k : d),
                   ctx, GNOMON_ERROR_SHAPE,
                   GNOMON_ARG("a") " is %" PRId64 " x %" PRId64 ", s (%s) %" PRId64 " x %" PRId64
                                   " and c %" PRId64 " x %" PRId64 "; they do not fit",
                   a->rows, a->cols, left == sketch ? "as it is" : "transposed",
                   left == sketch ? k : d, left == sketch ? d : k, c->rows, c->cols);
    GNOMON_FAIL_IF(gnomon_views_overlap(a, c), ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("c") " shares memory with a; the output must lie apart");
    gnomon_sketch_options work = GNOMON_SKETCH_OPTIONS_INIT;
    work.alpha = o.alpha;
    work.beta = o.beta;
    work.allow_nonfinite = 1;
    work.device_stream = o.device_stream;
    return sketch ? gnomon_sketch(ctx, s, &in, &out, &work)
                  : gnomon_adjoint(ctx, s, &in, &out, &work);
}

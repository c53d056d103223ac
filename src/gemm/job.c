#include "gemm/job.h"

#include "base/error.h"
#include "base/options.h"
#include "base/threads.h"
#include "project/job.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

GNOMON_OPTIONS_INIT(gnomon_gemm_options, GNOMON_GEMM_OPTIONS_INIT)

gnomon_status gnomon_gemm_read_options(gnomon_context *ctx, const gnomon_gemm_options *options,
                                       gnomon_gemm_options *out)
{
    *out = (gnomon_gemm_options)GNOMON_GEMM_OPTIONS_INIT;
    if (options) GNOMON_TRY(GNOMON_COPY_OPTIONS(ctx, "options", gnomon_gemm_options, options, out));
    GNOMON_FAIL_IF(!isfinite(out->alpha), ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("options.alpha") " is %g; it must be finite", out->alpha);
    GNOMON_FAIL_IF(!isfinite(out->beta), ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("options.beta") " is %g; it must be finite", out->beta);
    GNOMON_FAIL_IF(
        (int)out->form < GNOMON_GEMM_AUTO || (int)out->form > GNOMON_GEMM_BF16, ctx,
        GNOMON_ERROR_ARGUMENT,
        GNOMON_ARG("options.form") " is %d; it must be 0 (auto), 1 (fp16), 2 (tf32), 3 (scaled) "
                                   "or 4 (bf16)",
        (int)out->form);
    return GNOMON_OK;
}

static gnomon_status check_input(gnomon_context *ctx, const gnomon_matrix *m, const char *name)
{
    GNOMON_TRY(gnomon_check_anywhere(ctx, m, name, false));
    GNOMON_FAIL_IF(m->dtype != GNOMON_F32 && m->dtype != GNOMON_F16, ctx, GNOMON_ERROR_DTYPE,
                   GNOMON_ARG("%s.dtype") " is %s; it must be f32 or f16", name,
                   gnomon_dtype_name(m->dtype));
    return GNOMON_OK;
}

gnomon_status gnomon_gemm_check(gnomon_context *ctx, const gnomon_matrix *a, const gnomon_matrix *b,
                                const gnomon_matrix *c, const gnomon_gemm_options *options,
                                gnomon_gemm_job *job)
{
    gnomon_gemm_options o;
    GNOMON_FAIL_IF(!ctx, NULL, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("ctx") " is NULL");
    GNOMON_TRY(gnomon_gemm_read_options(ctx, options, &o));
    GNOMON_TRY(check_input(ctx, a, "a"));
    GNOMON_TRY(check_input(ctx, b, "b"));
    GNOMON_TRY(gnomon_check_anywhere(ctx, c, "c", true));
    GNOMON_FAIL_IF(a->cols != b->rows, ctx, GNOMON_ERROR_SHAPE,
                   GNOMON_ARG("a") " has %" PRId64 " columns and b has %" PRId64
                                   " rows; they must be as many",
                   a->cols, b->rows);
    GNOMON_FAIL_IF(c->rows != a->rows || c->cols != b->cols, ctx, GNOMON_ERROR_SHAPE,
                   GNOMON_ARG("c") " is %" PRId64 " x %" PRId64 "; the product is %" PRId64
                                   " x %" PRId64,
                   c->rows, c->cols, a->rows, b->cols);
    GNOMON_FAIL_IF(gnomon_views_overlap(a, c) || gnomon_views_overlap(b, c), ctx,
                   GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("c") " shares memory with %s; the output must lie apart",
                   gnomon_views_overlap(a, c) ? "a" : "b");
    *job = (gnomon_gemm_job){.a = a,
                             .b = b,
                             .c = c,
                             .alpha = o.alpha,
                             .beta = o.beta,
                             .form = o.form,
                             .memory_limit = gnomon_memory_limit(ctx),
                             .stream = o.device_stream};
    return GNOMON_OK;
}

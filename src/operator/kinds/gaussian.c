/* gaussian, precision fp32: Box and Muller 1958, with fixed fp32 operations. */
#include "base/error.h"
#include "operator/kinds/kinds.h"
#include "operator/philox.h"
#include "operator/quarter.h"

#include <math.h>

static void box_muller(uint32_t p, uint32_t q, float *even, float *odd)
{
    const float r = sqrtf(2.0f * gnomon_neglog(p >> 1));
    const uint32_t within = q << 2; /* the position in the quadrant, as a signed fraction */
    const int64_t centred =
        within < UINT32_C(0x80000000) ? (int64_t)within : (int64_t)within - INT64_C(0x100000000);
    const float z = (float)(int32_t)centred * 0x1p-31f;
    float c, s;
    gnomon_quarter(z, &c, &s);

    switch (q >> 30) {
    case 0:
        *even = r * c;
        *odd = r * s;
        break;
    case 1:
        *even = r * -s;
        *odd = r * c;
        break;
    case 2:
        *even = r * -c;
        *odd = r * -s;
        break;
    default:
        *even = r * s;
        *odd = r * -c;
        break;
    }
}

static void tile(const gnomon_simple *a, uint32_t group, int64_t col, int64_t cols, gnomon_tile out)
{
    if (a->precision == GNOMON_F16) {
        gnomon_gaussian16_tile(a, group, col, cols, out);
        return;
    }
    for (int64_t c = 0; c < cols; c++) {
        const gnomon_words call =
            gnomon_call(a, GNOMON_TAG_GAUSSIAN, group, (uint64_t)col + (uint64_t)c);
        box_muller(call.w[0], call.w[1], &out[0][c], &out[1][c]);
        box_muller(call.w[2], call.w[3], &out[2][c], &out[3][c]);
    }
}

static gnomon_status check(gnomon_context *ctx, gnomon_descriptor *d)
{
    if (d->precision == 0) d->precision = GNOMON_F32;
    GNOMON_FAIL_IF(d->precision != GNOMON_F32 && d->precision != GNOMON_F16, ctx,
                   GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("precision") " is %d; it must be %d (fp32) or %d (fp16)",
                   (int)d->precision, GNOMON_F32, GNOMON_F16);
    return GNOMON_OK;
}

const gnomon_kind_row gnomon_kind_row_gaussian = {
    .info = {.kind = GNOMON_GAUSSIAN,
             .name = "gaussian",
             .about = "",
             .uses = GNOMON_USES_PRECISION,
             .flags = GNOMON_KIND_INNER | GNOMON_KIND_ANY_POINTS},
    .check = check,
    .column_norm = gnomon_norm_of_rows,
    .unscaled = 1.0,
    .tile = tile,
};

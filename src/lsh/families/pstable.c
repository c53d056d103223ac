/* Steps of products with normal directions, for l2 (Datar, Immorlica, Indyk & Mirrokni 2004). */
#include "base/error.h"
#include "lsh/families/family.h"
#include "operator/philox.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

gnomon_status gnomon_make_offsets(gnomon_context *ctx, gnomon_hasher *h)
{
    h->offset = calloc((size_t)h->f.count, sizeof *h->offset);
    GNOMON_FAIL_IF(!h->offset, ctx, GNOMON_ERROR_MEMORY, "no memory for %" PRId64 " offsets",
                   h->f.count);
    for (int64_t i = 0; i < h->f.count; i++) {
        const gnomon_words w = gnomon_call(&h->key, GNOMON_TAG_LSH_OFFSET, (uint32_t)(i / 4), 0);
        h->offset[i] = (float)(w.w[i % 4] >> 8) * 0x1p-24f;
    }
    return GNOMON_OK;
}

static int32_t as_value(double t)
{
    if (t >= 0x1p31) return INT32_MAX;
    return t >= -0x1p31 ? (int32_t)t : INT32_MIN;
}

/* floor(t), without the call. */
static int32_t value_of(double t)
{
    if (!(fabs(t) < 0x1p31)) return as_value(floor(t));
    const int32_t whole = (int32_t)t;
    return whole - ((double)whole > t);
}

void gnomon_hash_steps(const gnomon_hash_batch *b, int64_t point, int64_t at)
{
    const float *x = (const float *)b->products + point * b->h->products;
    for (int64_t i = 0; i < b->h->f.count; i++, at++) {
        const double t = (double)x[i] / b->h->f.width + (double)b->h->offset[i];
        const int32_t value = value_of(t);
        b->out->values[at] = value;
        if (!b->out->others) continue;
        const float low = (float)(t - floor(t)), high = 1 - low;
        const int up = high < low;
        const int32_t above = value < INT32_MAX ? value + 1 : value;
        const int32_t below = value > INT32_MIN ? value - 1 : value;
        gnomon_set_other(b, at, !up, above, high * high);
        gnomon_set_other(b, at, up, below, low * low);
    }
}

static double pstable(double t)
{
    /* erf(t / sqrt 2) is 1 - 2 F(-t); so small t loses no digits */
    return erf(t * sqrt(0.5)) + 2 * expm1(-0.5 * t * t) / (sqrt(2 * acos(-1.0)) * t);
}

static double collision(const gnomon_lsh_functions *f, double distance)
{
    const double t = distance > 0 ? f->width / distance : INFINITY;
    return isinf(t) ? 1 : t > 0 ? pstable(t) : 0;
}

/* A value differs between points whose sums are off by e with probability e / w more, a point: the
 * offset is uniform. */
static double rounding(const gnomon_lsh_functions *f, double error, double length)
{
    return 2 * error * length / f->width;
}

const gnomon_family_row gnomon_family_row_pstable = {
    .family = GNOMON_LSH_PSTABLE,
    .name = "p-stable",
    .points = GNOMON_POINTS_DENSE | GNOMON_POINTS_SPARSE,
    .width = true,
    .directions = true,
    .others = 2,
    .products = 1,
    .most = INFINITY,
    .setup = gnomon_make_offsets,
    .hash = gnomon_hash_steps,
    .collision = collision,
    .rounding = rounding,
};

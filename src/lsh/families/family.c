/* Families by name, their functions checked and made. */
#include "base/error.h"
#include "base/options.h"
#include "lsh/hasher.h"
#include "operator/philox.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

GNOMON_OPTIONS_INIT(gnomon_lsh_functions, GNOMON_LSH_FUNCTIONS_INIT)

static const char *const names[] = {
    "?", "p-stable", "p-stable-l1", "simhash", "cross-polytope", "bit-sampling", "minhash"};
enum { FAMILIES = sizeof names / sizeof names[0] };

static const int64_t most_functions = (int64_t)1 << 24;
static const int64_t most_dim = (int64_t)1 << 56;

const char *gnomon_lsh_family_name(gnomon_lsh_family family)
{
    return (int)family > 0 && (int)family < FAMILIES ? names[family] : names[0];
}

gnomon_lsh_family gnomon_lsh_family_from_name(const char *name)
{
    for (int i = 1; name && i < FAMILIES; i++)
        if (strcmp(name, names[i]) == 0) return (gnomon_lsh_family)i;
    return (gnomon_lsh_family)0;
}

static bool has_width(gnomon_lsh_family family)
{
    return family == GNOMON_LSH_PSTABLE || family == GNOMON_LSH_PSTABLE_L1;
}

static bool has_operator(gnomon_lsh_family family)
{
    return family == GNOMON_LSH_PSTABLE || family == GNOMON_LSH_SIMHASH ||
           family == GNOMON_LSH_CROSS_POLYTOPE;
}

static gnomon_status check_family(gnomon_context *ctx, const gnomon_lsh_functions *f)
{
    GNOMON_FAIL_IF((int)f->family <= 0 || (int)f->family >= FAMILIES, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("functions.family") " is %d; it must be one of gnomon_lsh_family",
                   (int)f->family);
    if (has_width(f->family))
        GNOMON_FAIL_IF(!(f->width > 0) || !isfinite(f->width), ctx, GNOMON_ERROR_ARGUMENT,
                       GNOMON_ARG("functions.width") " is %g; it must be above 0 and finite",
                       f->width);
    else
        GNOMON_FAIL_IF(f->width != 0, ctx, GNOMON_ERROR_ARGUMENT,
                       GNOMON_ARG("functions.width") " is %g; %s takes none", f->width,
                       names[f->family]);
    if (f->family == GNOMON_LSH_CROSS_POLYTOPE)
        GNOMON_FAIL_IF(
            f->sides != 0 && (f->sides < 2 || f->sides > 4096), ctx, GNOMON_ERROR_ARGUMENT,
            GNOMON_ARG("functions.sides") " is %" PRId64 "; it must be 2 to 4096, or 0 for 16",
            f->sides);
    else
        GNOMON_FAIL_IF(f->sides != 0, ctx, GNOMON_ERROR_ARGUMENT,
                       GNOMON_ARG("functions.sides") " is %" PRId64 "; %s takes none", f->sides,
                       names[f->family]);
    return GNOMON_OK;
}

static gnomon_status check_functions(gnomon_context *ctx, const gnomon_lsh_functions *f)
{
    GNOMON_TRY(check_family(ctx, f));
    GNOMON_FAIL_IF(f->dim < 1, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("functions.dim") " is %" PRId64 "; it must be at least 1", f->dim);
    /* a member of a set is any number: texts hash their shingles to 62 bits */
    GNOMON_FAIL_IF(f->dim > most_dim && f->family != GNOMON_LSH_MINHASH, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("functions.dim") " is %" PRId64 "; of %s it must be at most 2^56",
                   f->dim, names[f->family]);
    GNOMON_FAIL_IF(f->count < 1 || f->count > most_functions / (f->sides > 0 ? f->sides : 1), ctx,
                   GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("functions.count") " is %" PRId64 "; it must be 1 to 2^24%s",
                   f->count, f->sides > 0 ? " / sides" : "");
    GNOMON_FAIL_IF(f->descriptor && !has_operator(f->family), ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("functions.descriptor") " is set; %s takes no operator",
                   names[f->family]);
    GNOMON_FAIL_IF(
        f->descriptor && f->descriptor->kind == GNOMON_KRONECKER, ctx, GNOMON_ERROR_ARGUMENT,
        GNOMON_ARG("functions.descriptor.kind") " is kronecker; it must be a simple kind or block");
    return GNOMON_OK;
}

static gnomon_status make_operator(gnomon_context *ctx, gnomon_hasher *h)
{
    gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
    if (h->f.descriptor) {
        d = h->descriptor;
    } else {
        d.kind = GNOMON_GAUSSIAN;
        d.seed = h->f.seed;
    }
    d.k = h->products;
    d.d = h->f.dim > d.k ? h->f.dim : d.k;
    d.scaling = GNOMON_ISOMETRIC;
    GNOMON_TRY(gnomon_operator_create(ctx, &d, &h->op));
    gnomon_operator_describe(h->op, &h->descriptor);
    h->f.descriptor = &h->descriptor;
    /* a gaussian's own entries are what is wanted: no rounding by a scale and back */
    if (d.kind == GNOMON_GAUSSIAN) {
        gnomon_operator_destroy(h->op);
        h->op = NULL;
        d.scaling = GNOMON_UNSCALED;
        GNOMON_TRY(gnomon_operator_create(ctx, &d, &h->op));
        h->factor = 1;
    } else {
        h->factor = sqrt((double)d.k);
    }
    return GNOMON_OK;
}

static gnomon_status make_samples(gnomon_context *ctx, gnomon_hasher *h)
{
    if (has_width(h->f.family)) {
        h->offset = calloc((size_t)h->f.count, sizeof *h->offset);
        GNOMON_FAIL_IF(!h->offset, ctx, GNOMON_ERROR_MEMORY, "no memory for %" PRId64 " offsets",
                       h->f.count);
        for (int64_t i = 0; i < h->f.count; i++) {
            const gnomon_words w =
                gnomon_call(&h->key, GNOMON_TAG_LSH_OFFSET, (uint32_t)(i / 4), 0);
            h->offset[i] = (float)(w.w[i % 4] >> 8) * 0x1p-24f;
        }
    }
    if (h->f.family == GNOMON_LSH_BIT_SAMPLING) {
        h->bit = calloc((size_t)h->f.count, sizeof *h->bit);
        GNOMON_FAIL_IF(!h->bit, ctx, GNOMON_ERROR_MEMORY, "no memory for %" PRId64 " bits",
                       h->f.count);
        for (int64_t i = 0; i < h->f.count; i++) {
            const gnomon_words w = gnomon_call(&h->key, GNOMON_TAG_LSH_BIT, (uint32_t)(i / 2), 0);
            const int first = (int)(i % 2) * 2;
            const uint64_t word = (uint64_t)w.w[first] << 32 | w.w[first + 1];
            h->bit[i] =
                (int64_t)((unsigned __int128)word * ((unsigned __int128)h->f.dim * 8) >> 64);
        }
    }
    return GNOMON_OK;
}

gnomon_status gnomon_hasher_create(gnomon_context *ctx, const gnomon_lsh_functions *functions,
                                   gnomon_hasher **out)
{
    static const int others[FAMILIES] = {0, 2, 2, 1, 3, 1, 1};
    GNOMON_FAIL_IF(!out, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("out") " is NULL");
    *out = NULL;
    GNOMON_NEED(NULL, ctx, "ctx");
    gnomon_lsh_functions f = GNOMON_LSH_FUNCTIONS_INIT;
    gnomon_descriptor descriptor = GNOMON_DESCRIPTOR_INIT;
    GNOMON_TRY(GNOMON_COPY_OPTIONS(ctx, "functions", gnomon_lsh_functions, functions, &f));
    if (f.descriptor) {
        GNOMON_TRY(GNOMON_COPY_OPTIONS(ctx, "functions.descriptor", gnomon_descriptor, f.descriptor,
                                       &descriptor));
        f.descriptor = &descriptor;
    }
    GNOMON_TRY(check_functions(ctx, &f));
    gnomon_hasher *h = calloc(1, sizeof *h);
    GNOMON_FAIL_IF(!h, ctx, GNOMON_ERROR_MEMORY, "no memory for hash functions");
    h->f = f;
    h->descriptor = descriptor;
    if (h->f.descriptor) h->f.descriptor = &h->descriptor;
    h->key.key0 = (uint32_t)f.seed;
    h->key.key1 = (uint32_t)(f.seed >> 32);
    h->products = h->f.count;
    h->others = others[h->f.family];
    if (h->f.family == GNOMON_LSH_CROSS_POLYTOPE) {
        if (h->f.sides == 0) h->f.sides = 16;
        h->products = h->f.count * h->f.sides;
    }
    if (h->f.family == GNOMON_LSH_MINHASH) h->products = 2 * h->f.count;
    gnomon_status status = make_samples(ctx, h);
    if (status == GNOMON_OK && has_operator(h->f.family)) status = make_operator(ctx, h);
    if (status != GNOMON_OK) {
        gnomon_hasher_destroy(h);
        return status;
    }
    *out = h;
    return GNOMON_OK;
}

void gnomon_hasher_destroy(gnomon_hasher *hasher)
{
    if (!hasher) return;
    gnomon_operator_destroy(hasher->op);
    free(hasher->offset);
    free(hasher->bit);
    free(hasher);
}

static double pstable(double t)
{
    /* erf(t / sqrt 2) is 1 - 2 F(-t); so small t loses no digits */
    return erf(t * sqrt(0.5)) + 2 * expm1(-0.5 * t * t) / (sqrt(2 * acos(-1.0)) * t);
}

static double pstable_l1(double t)
{
    return (2 * atan(t) - log1p(t * t) / t) / acos(-1.0);
}

gnomon_status gnomon_lsh_collision(gnomon_context *ctx, const gnomon_lsh_functions *given,
                                   double distance, double *p)
{
    gnomon_lsh_functions functions = GNOMON_LSH_FUNCTIONS_INIT;
    GNOMON_FAIL_IF(!ctx, NULL, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("ctx") " is NULL");
    GNOMON_FAIL_IF(!p, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("p") " is NULL");
    GNOMON_TRY(GNOMON_COPY_OPTIONS(ctx, "functions", gnomon_lsh_functions, given, &functions));
    GNOMON_TRY(check_family(ctx, &functions));
    const gnomon_lsh_family family = functions.family;
    double most = INFINITY;
    if (family == GNOMON_LSH_SIMHASH || family == GNOMON_LSH_CROSS_POLYTOPE) most = 2;
    if (family == GNOMON_LSH_MINHASH) most = 1;
    if (family == GNOMON_LSH_BIT_SAMPLING) {
        GNOMON_FAIL_IF(functions.dim < 1, ctx, GNOMON_ERROR_ARGUMENT,
                       GNOMON_ARG("functions.dim") " is %" PRId64 "; it must be at least 1",
                       functions.dim);
        most = 8 * (double)functions.dim;
    }
    GNOMON_FAIL_IF(!(distance >= 0 && distance <= most), ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("distance") " is %g; it must be 0 to %g", distance, most);
    const double t = distance > 0 ? functions.width / distance : INFINITY;
    switch (family) {
    case GNOMON_LSH_PSTABLE:
        *p = isinf(t) ? 1 : t > 0 ? pstable(t) : 0;
        break;
    case GNOMON_LSH_PSTABLE_L1:
        *p = isinf(t) ? 1 : t > 0 ? pstable_l1(t) : 0;
        break;
    case GNOMON_LSH_SIMHASH:
        /* acos(1 - r) by the half angle: exact to the last digits for small r */
        *p = 1 - 2 * asin(sqrt(distance / 2)) / acos(-1.0);
        break;
    case GNOMON_LSH_CROSS_POLYTOPE:
        *p = gnomon_cross_polytope_collision(functions.sides > 0 ? functions.sides : 16,
                                             1 - distance);
        break;
    case GNOMON_LSH_BIT_SAMPLING:
        *p = 1 - distance / most;
        break;
    case GNOMON_LSH_MINHASH:
        *p = 1 - distance;
        break;
    }
    return GNOMON_OK;
}

/* Values of hash functions, from products or bits or least hashes. */
#include "lsh/hasher.h"

#include "base/context.h"
#include "base/device.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "points/view.h"
#include "project/job.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

gnomon_status gnomon_lsh_check_device(gnomon_context *ctx)
{
    GNOMON_TRY(gnomon_device_refuse(ctx, GNOMON_BY_CONTEXT,
                                    "queries of an index and tuning run on the CPU"));
    gnomon_context_set_worked(ctx, NULL);
    return GNOMON_OK;
}

int64_t gnomon_points_rows(const gnomon_points *p)
{
    return p->dense ? p->dense->rows : p->sparse->rows;
}

int64_t gnomon_points_cols(const gnomon_points *p)
{
    return p->dense ? p->dense->cols : p->sparse->cols;
}

static gnomon_status check_csr(gnomon_context *ctx, const gnomon_csr *m, const char *name)
{
    GNOMON_TRY(gnomon_check_csr(ctx, m, name));
    const int64_t entries = m->rows > 0 ? m->offsets[m->rows] - m->offsets[0] : 0;
    for (int64_t e = 0; e < entries; e++)
        GNOMON_FAIL_IF(m->indices[e] < 0 || m->indices[e] >= m->cols, ctx, GNOMON_ERROR_DATA,
                       GNOMON_ARG("%s.indices") "[%" PRId64 "] is %" PRId64
                                                "; it must be 0 to %" PRId64,
                       name, e, m->indices[e], m->cols - 1);
    return GNOMON_OK;
}

gnomon_status gnomon_points_check(gnomon_context *ctx, const gnomon_points *p, const char *name)
{
    return p->dense ? gnomon_check_view(ctx, p->dense, name) : check_csr(ctx, p->sparse, name);
}

gnomon_status gnomon_hasher_check(gnomon_context *ctx, const gnomon_hasher *h,
                                  const gnomon_points *points, const char *name)
{
    const gnomon_lsh_family family = h->f.family;
    const char *of = gnomon_lsh_family_name(family);
    if (points->dense) {
        GNOMON_FAIL_IF(family == GNOMON_LSH_MINHASH, ctx, GNOMON_ERROR_UNSUPPORTED,
                       GNOMON_ARG("%s") " is dense; minhash takes sets as sparse points", name);
        GNOMON_FAIL_IF(family == GNOMON_LSH_BIT_SAMPLING && points->dense->dtype != GNOMON_U8, ctx,
                       GNOMON_ERROR_DTYPE,
                       GNOMON_ARG("%s.dtype") " is %s; bit-sampling takes u8, eight bits each",
                       name, gnomon_dtype_name(points->dense->dtype));
    } else {
        GNOMON_FAIL_IF(family == GNOMON_LSH_PSTABLE_L1 || family == GNOMON_LSH_BIT_SAMPLING, ctx,
                       GNOMON_ERROR_UNSUPPORTED,
                       GNOMON_ARG("%s") " is sparse; %s takes dense points", name, of);
    }
    GNOMON_TRY(gnomon_points_check(ctx, points, name));
    GNOMON_FAIL_IF(gnomon_points_cols(points) != h->f.dim, ctx, GNOMON_ERROR_SHAPE,
                   GNOMON_ARG("%s") " has %" PRId64 " columns; the hash functions are for %" PRId64,
                   name, gnomon_points_cols(points), h->f.dim);
    return GNOMON_OK;
}

int64_t gnomon_hasher_point_bytes(const gnomon_hasher *h)
{
    if (h->f.family == GNOMON_LSH_BIT_SAMPLING) return 0;
    /* the l1 family also holds sums in fp64 and a piece of the points */
    const int64_t more = h->f.family == GNOMON_LSH_PSTABLE_L1
                             ? 8 * h->f.count + 4 * (h->f.dim < 4096 ? h->f.dim : 4096)
                             : 0;
    return 4 * h->products + more;
}

typedef struct batch {
    const gnomon_hasher *h;
    const gnomon_points *points;
    int64_t first;
    const void *products;
    const gnomon_hashes *out;
} batch;

static int32_t as_value(double t)
{
    if (t >= 0x1p31) return INT32_MAX;
    return t >= -0x1p31 ? (int32_t)t : INT32_MIN;
}

/* Sets other value 'which' of function i of a point. */
static void set_other(const batch *b, int64_t at, int which, int32_t value, float cost)
{
    const int64_t place = at * b->h->others + which;
    b->out->others[place] = value;
    b->out->costs[place] = cost;
}

static void hash_steps(const batch *b, const float *x, int64_t at)
{
    for (int64_t i = 0; i < b->h->f.count; i++, at++) {
        const double t = (double)x[i] / b->h->f.width + (double)b->h->offset[i];
        const int32_t value = as_value(floor(t));
        b->out->values[at] = value;
        if (!b->out->others) continue;
        const float low = (float)(t - floor(t)), high = 1 - low;
        const int up = high < low;
        const int32_t above = value < INT32_MAX ? value + 1 : value;
        const int32_t below = value > INT32_MIN ? value - 1 : value;
        set_other(b, at, !up, above, high * high);
        set_other(b, at, up, below, low * low);
    }
}

static void hash_signs(const batch *b, const float *x, int64_t at)
{
    for (int64_t i = 0; i < b->h->f.count; i++, at++) {
        b->out->values[at] = x[i] < 0;
        if (b->out->others) set_other(b, at, 0, !(x[i] < 0), x[i] * x[i]);
    }
}

/* The largest magnitudes first; equal ones by direction. */
static void hash_directions(const batch *b, const float *x, int64_t at)
{
    const int64_t sides = b->h->f.sides;
    for (int64_t i = 0; i < b->h->f.count; i++, at++, x += sides) {
        int64_t best[GNOMON_LSH_OTHERS + 1] = {0};
        int kept = 0;
        const int room = b->out->others ? b->h->others + 1 : 1;
        for (int64_t s = 0; s < sides; s++) {
            const float size = fabsf(x[s]);
            if (kept == room && !(size > fabsf(x[best[kept - 1]]))) continue;
            int place = kept < room ? kept++ : room - 1;
            for (; place > 0 && size > fabsf(x[best[place - 1]]); place--)
                best[place] = best[place - 1];
            best[place] = s;
        }
        b->out->values[at] = (int32_t)(2 * best[0] + (x[best[0]] < 0));
        for (int which = 0; b->out->others && which < b->h->others; which++) {
            /* with fewer directions than that: the opposite of the nearest */
            const int64_t s = which + 1 < kept ? best[which + 1] : best[0];
            const float gap =
                fabsf(x[best[0]]) - (which + 1 < kept ? fabsf(x[s]) : -fabsf(x[best[0]]));
            const bool opposite = which + 1 >= kept;
            set_other(b, at, which, (int32_t)(2 * s + ((x[s] < 0) != opposite)), gap * gap);
        }
    }
}

static void hash_bits(const batch *b, int64_t point, int64_t at)
{
    const gnomon_matrix *m = b->points->dense;
    const uint8_t *row = (const uint8_t *)m->data + (b->first + point) * m->row_stride;
    for (int64_t i = 0; i < b->h->f.count; i++, at++) {
        const int64_t bit = b->h->bit[i];
        const int32_t value = row[bit / 8 * m->col_stride] >> (bit % 8) & 1;
        b->out->values[at] = value;
        if (b->out->others) set_other(b, at, 0, !value, 1);
    }
}

static void hash_sets(const batch *b, const uint32_t (*least)[2], int64_t at)
{
    for (int64_t i = 0; i < b->h->f.count; i++, at++) {
        b->out->values[at] = (int32_t)least[i][0];
        if (b->out->others) set_other(b, at, 0, (int32_t)least[i][1], 1);
    }
}

static void hash_point(void *arg, int64_t point, int worker)
{
    (void)worker;
    const batch *b = arg;
    const int64_t at = point * b->h->f.count;
    const float *x = (const float *)b->products + (b->products ? point * b->h->products : 0);
    switch (b->h->f.family) {
    case GNOMON_LSH_PSTABLE:
    case GNOMON_LSH_PSTABLE_L1:
        hash_steps(b, x, at);
        break;
    case GNOMON_LSH_SIMHASH:
        hash_signs(b, x, at);
        break;
    case GNOMON_LSH_CROSS_POLYTOPE:
        hash_directions(b, x, at);
        break;
    case GNOMON_LSH_BIT_SAMPLING:
        hash_bits(b, point, at);
        break;
    case GNOMON_LSH_MINHASH:
        hash_sets(b, (const uint32_t(*)[2])(const void *)x, at);
        break;
    }
}

static gnomon_status sketch(gnomon_context *ctx, const gnomon_hasher *h,
                            const gnomon_points *points, int64_t first, int64_t n, float *products)
{
    const gnomon_matrix y = gnomon_matrix_rowmajor(products, GNOMON_F32, n, h->products);
    gnomon_sketch_options o = GNOMON_SKETCH_OPTIONS_INIT;
    o.alpha = h->factor;
    o.col = 0;             /* the operator may have more columns than the points */
    o.allow_nonfinite = 1; /* they have been looked at */
    if (points->dense) {
        const gnomon_matrix x = gnomon_rows(points->dense, first, n);
        return gnomon_sketch_at(ctx, GNOMON_ON_CPU, h->op, &x, &y, &o);
    }
    const gnomon_csr x = gnomon_csr_rows(points->sparse, first, n);
    return gnomon_sketch_csr_at(ctx, GNOMON_ON_CPU, h->op, &x, &y, &o);
}

gnomon_status gnomon_hasher_batch(gnomon_context *ctx, const gnomon_hasher *h,
                                  const gnomon_points *points, int64_t first, int64_t n,
                                  const gnomon_hashes *out)
{
    void *products = NULL;
    gnomon_status status = GNOMON_OK;
    if (h->f.family != GNOMON_LSH_BIT_SAMPLING)
        status =
            gnomon_alloc(ctx, gnomon_times(n, h->products), sizeof(float), "products", &products);
    if (status == GNOMON_OK && h->op) status = sketch(ctx, h, points, first, n, products);
    if (status == GNOMON_OK && h->f.family == GNOMON_LSH_PSTABLE_L1)
        status = gnomon_cauchy_products(ctx, h, points->dense, first, n, products);
    if (status == GNOMON_OK && h->f.family == GNOMON_LSH_MINHASH)
        gnomon_minhash_products(ctx, h, points->sparse, first, n, products);
    if (status == GNOMON_OK) {
        batch b = {h, points, first, products, out};
        gnomon_parallel(ctx, n, hash_point, &b);
    }
    gnomon_free(ctx, products);
    return status;
}

int64_t gnomon_hasher_batch_points(gnomon_context *ctx, int64_t point_bytes, int64_t n)
{
    /* products take their own memory, up to the limit; a quarter of it is for what comes out */
    const int64_t room = gnomon_memory_limit(ctx) / 4 / (point_bytes > 0 ? point_bytes : 1);
    const int64_t points = room < 1 ? 1 : room > 65536 ? 65536 : room;
    return points < n ? points : n;
}

gnomon_status gnomon_hasher_all(gnomon_context *ctx, const gnomon_hasher *h,
                                const gnomon_points *points, gnomon_values_sink *sink, void *arg)
{
    const int64_t n = gnomon_points_rows(points), count = h->f.count;
    const int64_t size =
        gnomon_hasher_batch_points(ctx, gnomon_hasher_point_bytes(h) + 4 * count, n);
    gnomon_hashes out = {0};
    GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(size, count), sizeof *out.values, "hash values",
                            &out.values));
    gnomon_status status = GNOMON_OK;
    for (int64_t first = 0; first < n && status == GNOMON_OK; first += size) {
        const int64_t here = n - first < size ? n - first : size;
        status = gnomon_hasher_batch(ctx, h, points, first, here, &out);
        if (status != GNOMON_OK) break;
        sink(arg, out.values, first, here);
        status = gnomon_progress(ctx, "hashing", first + here, n);
    }
    gnomon_free(ctx, out.values);
    return status;
}

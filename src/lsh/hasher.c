/* Values of hash functions, from products or bits or least hashes. */
#include "lsh/families/family.h"

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
    const gnomon_family_row *row = gnomon_family_row_of(h->f.family);
    const bool bits = row->points == GNOMON_POINTS_BITS;
    const unsigned given = points->sparse ? GNOMON_POINTS_SPARSE
                           : bits         ? GNOMON_POINTS_BITS
                                          : GNOMON_POINTS_DENSE;
    GNOMON_FAIL_IF(!(row->points & given), ctx, GNOMON_ERROR_UNSUPPORTED,
                   GNOMON_ARG("%s") " is %s; %s takes %s", name,
                   points->sparse ? "sparse" : "dense", row->name, row->refusal);
    GNOMON_FAIL_IF(points->dense && bits && points->dense->dtype != GNOMON_U8, ctx,
                   GNOMON_ERROR_DTYPE,
                   GNOMON_ARG("%s.dtype") " is %s; %s takes u8, eight bits each", name,
                   gnomon_dtype_name(points->dense->dtype), row->name);
    GNOMON_TRY(gnomon_points_check(ctx, points, name));
    GNOMON_FAIL_IF(gnomon_points_cols(points) != h->f.dim, ctx, GNOMON_ERROR_SHAPE,
                   GNOMON_ARG("%s") " has %" PRId64 " columns; the hash functions are for %" PRId64,
                   name, gnomon_points_cols(points), h->f.dim);
    return GNOMON_OK;
}

int64_t gnomon_hasher_point_bytes(const gnomon_hasher *h)
{
    const gnomon_family_row *row = gnomon_family_row_of(h->f.family);
    return 4 * h->products + (row->more_bytes ? row->more_bytes(h) : 0);
}

static void hash_point(void *arg, int64_t point, int worker)
{
    (void)worker;
    const gnomon_hash_batch *b = arg;
    gnomon_family_row_of(b->h->f.family)->hash(b, point, point * b->h->f.count);
}

static gnomon_status sketch(gnomon_context *ctx, const gnomon_hasher *h,
                            const gnomon_points *points, int64_t first, int64_t n, float *products)
{
    const gnomon_matrix y = gnomon_matrix_rowmajor(products, GNOMON_F32, n, h->products);
    gnomon_sketch_options o = GNOMON_SKETCH_OPTIONS_INIT;
    o.alpha = h->factor;
    o.col = 0;             /* the operator may have more columns than the points */
    o.allow_nonfinite = 1; /* they have been checked */
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
    const gnomon_family_row *row = gnomon_family_row_of(h->f.family);
    void *products = NULL;
    gnomon_status status = GNOMON_OK;
    if (h->products > 0)
        status =
            gnomon_alloc(ctx, gnomon_times(n, h->products), sizeof(float), "products", &products);
    if (status == GNOMON_OK)
        gnomon_expect_use(ctx, products, gnomon_times(n, h->products * (int64_t)sizeof(float)));
    if (status == GNOMON_OK && row->project)
        status = row->project(ctx, h, points, first, n, products);
    else if (status == GNOMON_OK && h->op)
        status = sketch(ctx, h, points, first, n, products);
    if (status == GNOMON_OK) {
        gnomon_hash_batch b = {h, points, first, products, out};
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

int64_t gnomon_hasher_batch_part(gnomon_context *ctx, const gnomon_hasher *h,
                                 const gnomon_points *points, int64_t first, int64_t n)
{
    const int64_t each = gnomon_family_row_of(h->f.family)->member_bytes;
    if (points->sparse == NULL || each == 0) return n;
    const int64_t *offsets = points->sparse->offsets + first;
    const int64_t most = gnomon_memory_limit(ctx) / 4 / each;
    int64_t low = 1, high = n; /* one row at least */
    while (low < high) {
        const int64_t middle = high - (high - low) / 2;
        if (offsets[middle] - offsets[0] <= most)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
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
    gnomon_expect_use(ctx, out.values, gnomon_times(size, count * (int64_t)sizeof *out.values));
    gnomon_status status = GNOMON_OK;
    for (int64_t first = 0, here; first < n && status == GNOMON_OK; first += here) {
        here = n - first < size ? n - first : size;
        here = gnomon_hasher_batch_part(ctx, h, points, first, here);
        status = gnomon_hasher_batch(ctx, h, points, first, here, &out);
        if (status != GNOMON_OK) break;
        sink(arg, out.values, first, here);
        status = gnomon_progress(ctx, "hashing", first + here, n);
    }
    gnomon_free(ctx, out.values);
    return status;
}

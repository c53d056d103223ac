/* A^T A z of sparse rows. */
#include "svd/normal.h"

#include "base/arithmetic.h"
#include "base/context.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "project/blocks.h"
#include "svd/row_pass.h"

#include <math.h>
#include <string.h>

enum { BLOCK = GNOMON_NORMAL, HALF = BLOCK / 2, SLAB = 512 /* rows of a sum a task */ };

static void *at(const gnomon_tall *t, int64_t row, int64_t col)
{
    return (char *)gnomon_tall_row(t, row) + (size_t)col * gnomon_tall_size(t->f64);
}

/* The rows of the piece that are the part's, of some columns. */
static void multiply_part(void *arg, int64_t task, int worker)
{
    (void)worker;
    const gnomon_normal *n = arg;
    const gnomon_csr *a = &n->piece.csr;
    const bool f64 = n->source->f64, half = n->widths > 1;
    const size_t size = gnomon_tall_size(f64);
    const int64_t part = task / n->widths, col = task % n->widths * HALF;
    const void *less = (const char *)n->less + (size_t)col * size, *z = at(n->z, 0, col);
    void *w = at(&n->sums[part], 0, col);
    for (int64_t from = 0, end; from < n->piece.rows; from = end) {
        const int64_t own = n->piece.own + from;
        end = gnomon_min(from + GNOMON_CHUNK - own % GNOMON_CHUNK, n->piece.rows);
        if (gnomon_part_of(n->source, own) != part) continue;
        const int64_t skip = a->offsets[from] - a->offsets[0];
        const void *values = (const char *)n->piece_values + (size_t)skip * size;
        if (f64)
            (half ? n->kernels->half_f64 : n->kernels->normal_f64)(
                end - from, a->offsets + from, a->indices + skip, values, less, BLOCK, z, w);
        else
            (half ? n->kernels->half_f32 : n->kernels->normal_f32)(
                end - from, a->offsets + from, a->indices + skip, values, less, BLOCK, z, w);
    }
}

/* less = mean^T z */
static void sum_mean(void *arg, int64_t task, int worker)
{
    (void)worker;
    const gnomon_normal *n = arg;
    const gnomon_row_source *source = n->source;
    const int64_t col = task * GNOMON_LANES;
    const double *mean = source->center.offset;
    double sums[GNOMON_LANES] = {0};
    for (int64_t i = 0; i < n->z->rows; i++) {
        for (int64_t l = 0; l < GNOMON_LANES; l++)
            sums[l] += mean[i] * (source->f64 ? ((const double *)at(n->z, i, col))[l]
                                              : (double)((const float *)at(n->z, i, col))[l]);
    }
    for (int64_t l = 0; l < GNOMON_LANES; l++)
        sums[l] = ldexp(sums[l], -source->exponent);
    gnomon_f64_to_type(source->f64, GNOMON_LANES, sums,
                       (char *)n->less + (size_t)col * gnomon_tall_size(source->f64));
}

/* The numbers of the piece in the work's type. */
static gnomon_status convert(gnomon_normal *n)
{
    gnomon_context *ctx = n->source->ctx;
    const gnomon_csr *a = &n->piece.csr;
    const bool f64 = n->source->f64;
    const int64_t count = a->offsets[a->rows] - a->offsets[0];
    n->piece_values = a->values;
    if ((a->dtype == GNOMON_F64) == f64) return GNOMON_OK;
    GNOMON_TRY(gnomon_renew(ctx, &n->values, &n->values_room, count, gnomon_tall_size(f64),
                            "sparse values"));
    for (int64_t i = 0; i < count; i++) {
        if (f64)
            ((double *)n->values)[i] = (double)((const float *)a->values)[i];
        else
            ((float *)n->values)[i] = (float)((const double *)a->values)[i];
    }
    n->piece_values = n->values;
    return GNOMON_OK;
}

static gnomon_status sum_parts(void *user, gnomon_status status)
{
    gnomon_normal *n = user;
    gnomon_row_source *source = n->source;
    const int parts = gnomon_parts_here(source);
    GNOMON_TRY(status);
    n->widths = gnomon_context_threads(source->ctx) > parts ? BLOCK / HALF : 1;
    for (int part = 0; part < parts; part++)
        memset(n->sums[part].data, 0,
               (size_t)(source->cols * BLOCK) * gnomon_tall_size(source->f64));
    GNOMON_TRY(gnomon_row_source_rewind(source));
    for (;;) {
        GNOMON_TRY(gnomon_row_source_next(source, &n->piece));
        if (n->piece.rows == 0) return GNOMON_OK;
        GNOMON_TRY(convert(n));
        gnomon_parallel(source->ctx, parts * n->widths, multiply_part, n);
    }
}

static const void *part_sums(void *user, int part)
{
    const gnomon_normal *n = user;
    return n->sums[part].data;
}

static gnomon_status take_sums(void *user, int part, const void *result, bool own)
{
    const gnomon_normal *n = user;
    (void)own;
    if (part > 0)
        gnomon_row_pass_sum(n->source->ctx, n->source->f64, n->source->cols * BLOCK, result,
                            n->sums[0].data);
    return GNOMON_OK;
}

/* Rank 0 gives the others z and mean^T z, and all do their parts. */
static gnomon_status multiply(gnomon_normal *n, gnomon_status status)
{
    gnomon_row_source *source = n->source;
    const int64_t line = BLOCK * (int64_t)gnomon_tall_size(source->f64);
    const gnomon_part_pass pass = {.user = n,
                                   .run = sum_parts,
                                   .result = part_sums,
                                   .take = take_sums,
                                   .bytes = source->cols * line};
    GNOMON_TRY(gnomon_row_step_tell(source, GNOMON_STEP_NORMAL, NULL));
    GNOMON_TRY(gnomon_row_step_ready(source, status));
    GNOMON_TRY(gnomon_row_step_share(source, n->z->data, source->cols * line));
    GNOMON_TRY(gnomon_row_step_share(source, n->less, line));
    return gnomon_part_pass_run(source, &pass, GNOMON_OK);
}

gnomon_status gnomon_normal_multiply(gnomon_normal *n, const gnomon_tall *z, const gnomon_tall *w)
{
    n->z = z;
    n->sums = w;
    memset(n->less, 0, BLOCK * gnomon_tall_size(n->source->f64));
    if (n->source->centered) gnomon_parallel(n->source->ctx, BLOCK / GNOMON_LANES, sum_mean, n);
    return multiply(n, GNOMON_OK);
}

gnomon_status gnomon_normal_serve(gnomon_row_source *source)
{
    gnomon_tall z = {0}, sums[GNOMON_PARTS] = {{0}};
    gnomon_normal n = {.z = &z, .sums = sums};
    gnomon_status status = gnomon_normal_open(source, &n);
    if (status == GNOMON_OK)
        status = gnomon_tall_make(source->ctx, source->f64, source->cols, BLOCK, false,
                                  "a block of a basis", &z);
    for (int part = 0; part < source->parts && status == GNOMON_OK; part++)
        status = gnomon_tall_make(source->ctx, source->f64, source->cols, BLOCK, false,
                                  "sums over rows", &sums[part]);
    status = multiply(&n, status);
    for (int part = 0; part < GNOMON_PARTS; part++)
        gnomon_tall_drop(source->ctx, &sums[part]);
    gnomon_tall_drop(source->ctx, &z);
    gnomon_normal_close(&n);
    return status;
}

gnomon_status gnomon_normal_open(gnomon_row_source *source, gnomon_normal *n)
{
    n->source = source;
    n->kernels = gnomon_context_kernels(source->ctx);
    return gnomon_alloc(source->ctx, BLOCK, gnomon_tall_size(source->f64), "the mean's products",
                        &n->less);
}

void gnomon_normal_close(gnomon_normal *n)
{
    gnomon_free(n->source->ctx, n->less);
    gnomon_free(n->source->ctx, n->values);
}

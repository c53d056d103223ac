/* As many columns as a tolerance asks for, some at a time (Martinsson & Voronin 2016).
 *
 * Their loop deflates the matrix, Yu, Gu & Li's (2018) subtracts squared norms instead, which says
 * nothing below the square root of the unit roundoff. Here a few Gaussian vectors that the columns
 * do not depend on are carried along, and what is left of A times them tells when to measure:
 * dense matrices are then measured in full, sparse ones by fresh vectors and a bound. */
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "svd/factor.h"

#include <math.h>

enum { SPARSE_TEST_VECTORS = 40, DENSE_TEST_VECTORS = 10 };

typedef struct blocks {
    gnomon_factor *f;
    gnomon_tall *q, *bt; /* count of each */
    int64_t count, capacity, columns, most;
    gnomon_tall left; /* (I - Q Q^T) A G */
    int64_t checks;
} blocks;

static gnomon_status room(blocks *b)
{
    if (b->count < b->capacity) return GNOMON_OK;
    const int64_t capacity = b->capacity > 0 ? 2 * b->capacity : 16;
    GNOMON_TRY(gnomon_grow(b->f->ctx, &b->q, b->capacity, capacity, sizeof *b->q, "blocks"));
    GNOMON_TRY(gnomon_grow(b->f->ctx, &b->bt, b->capacity, capacity, sizeof *b->bt, "blocks"));
    b->capacity = capacity;
    return GNOMON_OK;
}

static gnomon_status deflate(const blocks *b, const gnomon_tall *y)
{
    for (int64_t i = 0; i < b->count; i++)
        GNOMON_TRY(gnomon_tall_deflate(b->f->ctx, &b->q[i], y));
    return GNOMON_OK;
}

static gnomon_status fill(blocks *b, const gnomon_tall *y, const gnomon_tall *z)
{
    gnomon_factor *f = b->f;
    GNOMON_TRY(gnomon_row_source_sketch(&f->source, f->op, b->columns, y));
    f->out->project_seconds += gnomon_lap(&f->clock);
    for (int i = 0; i < f->options.power; i++) {
        /* Twice: the first makes what is left of unit length, the second takes out what rounding
         * had left of the earlier columns, which A would blow up. */
        GNOMON_TRY(deflate(b, y));
        GNOMON_TRY(gnomon_condition(f->ctx, y, NULL, NULL, &f->orth));
        GNOMON_TRY(deflate(b, y));
        GNOMON_TRY(gnomon_row_source_adjoint(&f->source, y, z));
        GNOMON_TRY(gnomon_condition(f->ctx, z, NULL, NULL, &f->orth));
        GNOMON_TRY(gnomon_row_source_apply(&f->source, z, y));
    }
    f->out->power_seconds += gnomon_lap(&f->clock);
    GNOMON_TRY(gnomon_orthonormalise_against(f->ctx, b->q, b->count, y, &f->orth));
    f->out->orthonormalise_seconds += gnomon_lap(&f->clock);
    GNOMON_TRY(gnomon_row_source_adjoint(&f->source, y, z));
    f->out->power_seconds += gnomon_lap(&f->clock);
    return GNOMON_OK;
}

static gnomon_status add_block(blocks *b)
{
    gnomon_factor *f = b->f;
    const int64_t wanted = f->options.block, rest = b->most - b->columns;
    const int64_t width = wanted < rest ? wanted : rest;
    gnomon_tall y = {0}, z = {0};
    GNOMON_TRY(room(b));
    gnomon_status status =
        gnomon_tall_make(f->ctx, f->f64, f->source.rows, width, false, "the range", &y);
    if (status == GNOMON_OK)
        status = gnomon_tall_make(f->ctx, f->f64, f->source.cols, width, false,
                                  "the projected matrix", &z);
    if (status == GNOMON_OK) status = fill(b, &y, &z);
    if (status == GNOMON_OK) status = gnomon_tall_deflate(f->ctx, &y, &b->left);
    if (status != GNOMON_OK) {
        gnomon_tall_drop(f->ctx, &y);
        gnomon_tall_drop(f->ctx, &z);
        return status;
    }
    b->q[b->count] = y;
    b->bt[b->count++] = z;
    b->columns += width;
    return GNOMON_OK;
}

/* Puts the blocks together in f->q and f->bt. */
static gnomon_status assemble(blocks *b)
{
    gnomon_factor *f = b->f;
    GNOMON_TRY(
        gnomon_tall_make(f->ctx, f->f64, f->source.rows, b->columns, false, "the range", &f->q));
    GNOMON_TRY(gnomon_tall_make(f->ctx, f->f64, f->source.cols, b->columns, false,
                                "the projected matrix", &f->bt));
    int64_t col = 0;
    for (int64_t i = 0; i < b->count; i++) {
        gnomon_tall_copy(f->ctx, &b->q[i], 0, b->q[i].cols, &f->q, col);
        gnomon_tall_copy(f->ctx, &b->bt[i], 0, b->bt[i].cols, &f->bt, col);
        col += b->q[i].cols;
    }
    return GNOMON_OK;
}

/* f->rest: what |A - Q B|_F is, or is below. */
static gnomon_status measure(blocks *b)
{
    gnomon_factor *f = b->f;
    b->checks++;
    if (!f->source.sparse) return gnomon_row_source_residual(&f->source, &f->q, &f->bt, &f->rest);
    gnomon_tall g = {0}, e = {0};
    double estimate;
    gnomon_status status = gnomon_test_vectors(f, b->checks << 20, SPARSE_TEST_VECTORS, &g);
    if (status == GNOMON_OK) status = gnomon_test_residual(f, &g, &f->q, NULL, &f->bt, &e);
    if (status == GNOMON_OK) status = gnomon_test_frobenius(f, &e, &estimate, &f->rest);
    gnomon_tall_drop(f->ctx, &g);
    gnomon_tall_drop(f->ctx, &e);
    return status;
}

static gnomon_status loop(blocks *b)
{
    gnomon_factor *f = b->f;
    const double u = f->f64 ? 0x1p-53 : 0x1p-24;
    const double wanted = f->options.tolerance * f->source.norm;
    double threshold = wanted, before = INFINITY, estimate, unused;
    for (;;) {
        GNOMON_TRY(add_block(b));
        GNOMON_TRY(gnomon_test_frobenius(f, &b->left, &estimate, &unused));
        /* Rounding is all that is left, and more columns would only follow it. */
        const bool floor = estimate <= 2 * u * f->source.norm ||
                           (estimate > 0.7 * before && estimate < 4096 * u * f->source.norm);
        const bool last = b->columns == b->most || floor;
        before = estimate;
        if (estimate > threshold && !last) continue;
        GNOMON_TRY(assemble(b));
        GNOMON_TRY(measure(b));
        f->out->certify_seconds += gnomon_lap(&f->clock);
        if (f->rest <= wanted || last) return GNOMON_OK;
        threshold = fmin(threshold, 0.95 * estimate * wanted / f->rest);
        gnomon_tall_drop(f->ctx, &f->q);
        gnomon_tall_drop(f->ctx, &f->bt);
    }
}

static gnomon_status run(blocks *b)
{
    gnomon_factor *f = b->f;
    gnomon_tall g = {0};
    GNOMON_TRY(gnomon_factor_operator(f, b->most, false));
    /* Far from those of the certificate, and of the closer looks. */
    gnomon_status status = gnomon_test_vectors(
        f, (int64_t)1 << 19, f->source.sparse ? SPARSE_TEST_VECTORS : DENSE_TEST_VECTORS, &g);
    if (status == GNOMON_OK)
        status = gnomon_tall_make(f->ctx, f->f64, f->source.rows, g.cols, false, "test vectors",
                                  &b->left);
    if (status == GNOMON_OK) status = gnomon_row_source_apply(&f->source, &g, &b->left);
    gnomon_tall_drop(f->ctx, &g);
    f->out->certify_seconds += gnomon_lap(&f->clock);
    return status == GNOMON_OK ? loop(b) : status;
}

gnomon_status gnomon_range_adaptive(gnomon_factor *f)
{
    blocks b = {.f = f, .most = gnomon_factor_columns(f)};
    bool reached;
    GNOMON_TRY(gnomon_range_energy(f, &reached));
    if (reached) return GNOMON_OK;
    gnomon_status status = run(&b);
    f->out->columns = b.columns;
    for (int64_t i = 0; i < b.count; i++) {
        gnomon_tall_drop(f->ctx, &b.q[i]);
        gnomon_tall_drop(f->ctx, &b.bt[i]);
    }
    gnomon_free(f->ctx, b.q);
    gnomon_free(f->ctx, b.bt);
    gnomon_tall_drop(f->ctx, &b.left);
    return status;
}

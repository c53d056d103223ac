/* What the tests of the operators share. */
#ifndef GNOMON_TESTS_OPERATOR_TESTING_H
#define GNOMON_TESTS_OPERATOR_TESTING_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <gnomon/operator.h>

__attribute__((unused)) static gnomon_context *new_context(int threads)
{
    gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
    o.threads = threads;
    o.device = "cpu";
    gnomon_context *ctx;
    assert_int_equal(gnomon_context_create(&o, &ctx), GNOMON_OK);
    return ctx;
}

__attribute__((unused)) static gnomon_operator *new_operator(gnomon_context *ctx,
                                                             const gnomon_descriptor *d)
{
    gnomon_operator *op;
    const gnomon_status status = gnomon_operator_create(ctx, d, &op);
    if (status != GNOMON_OK) fail_msg("%s", gnomon_last_error(ctx));
    return op;
}

/* A descriptor of each kind and parameter that matters, of k rows and d columns. */
typedef struct variant {
    gnomon_kind kind, inner;
    gnomon_dtype precision;
    double density;
    int64_t nonzeros, blocks, zeta, width, wiring;
} variant;

static const variant variants[] = {
    {GNOMON_GAUSSIAN, 0, GNOMON_F32, 0, 0, 0, 0, 0, 0},
    {GNOMON_GAUSSIAN, 0, GNOMON_F16, 0, 0, 0, 0, 0, 0},
    {GNOMON_RADEMACHER, 0, 0, 0, 0, 0, 0, 0, 0},
    {GNOMON_ACHLIOPTAS, 0, 0, 0, 0, 0, 0, 0, 0},
    {GNOMON_VERY_SPARSE, 0, 0, 0, 0, 0, 0, 0, 0},
    {GNOMON_VERY_SPARSE, 0, 0, 1.0, 0, 0, 0, 0, 0},
    {GNOMON_VERY_SPARSE, 0, 0, 0.1, 0, 0, 0, 0, 0},
    {GNOMON_SJLT, 0, 0, 0, 0, 0, 0, 0, 0},
    {GNOMON_SJLT, 0, 0, 0, 1, 0, 0, 0, 0},
    {GNOMON_SJLT, 0, 0, 0, 7, 0, 0, 0, 0},
    {GNOMON_SRHT, 0, 0, 0, 0, 0, 0, 0, 0},
    {GNOMON_BLOCKPERM_SJLT, 0, 0, 0, 0, 0, 0, 0, 0},
    {GNOMON_BLOCKPERM_SJLT, 0, 0, 0, 1, 4, 0, 0, 3},
    {GNOMON_BLOCK, GNOMON_GAUSSIAN, 0, 0, 0, 5, 0, 0, 0},
    {GNOMON_BLOCK, GNOMON_VERY_SPARSE, 0, 0.05, 0, 7, 0, 0, 0},
    {GNOMON_BLOCK, GNOMON_SJLT, 0, 0, 2, 2, 0, 0, 0},
    {GNOMON_KRONECKER, 0, 0, 0, 0, 0, 0, 0, 0},
    {GNOMON_KRONECKER, GNOMON_GAUSSIAN, GNOMON_F16, 0, 0, 0, 5, 23, 0},
    {GNOMON_KRONECKER, GNOMON_SJLT, 0, 0, 3, 0, 3, 0, 0},
    {GNOMON_KRONECKER, GNOMON_VERY_SPARSE, 0, 0, 0, 0, 2, 0, 0},
};

enum { VARIANTS = sizeof variants / sizeof variants[0] };

__attribute__((unused)) static gnomon_descriptor describe_variant(int number, int64_t k, int64_t d)
{
    const variant *v = &variants[number];
    gnomon_descriptor x = GNOMON_DESCRIPTOR_INIT;
    x.kind = v->kind;
    x.inner = v->inner;
    x.precision = v->precision;
    x.density = v->density;
    x.nonzeros = v->nonzeros;
    x.blocks = v->blocks;
    x.zeta = v->zeta;
    x.width = v->width;
    x.wiring = v->wiring;
    x.seed = UINT64_C(0x9E3779B97F4A7C15) + (uint64_t)number;
    x.k = k;
    x.d = d;
    return x;
}

/* A small generator for the tests' own choices. */
__attribute__((unused)) static int64_t draw(uint64_t *state, int64_t below)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)((*state >> 11) % (uint64_t)below);
}

#endif

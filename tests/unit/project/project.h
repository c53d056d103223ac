/* What the tests of src/project share: operators, points of every type and layout, and an FP64
 * reference made from gnomon_operator_block. Each test program uses a part of it. */
#ifndef TESTS_PROJECT_H
#define TESTS_PROJECT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <float.h>
#include <gnomon.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "operator_cases.h"

static MAYBE_UNUSED gnomon_context *make_context(int threads, int64_t memory_limit)
{
    gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
    o.device = "cpu";
    o.threads = threads;
    o.memory_limit = memory_limit;
    gnomon_context *ctx = NULL;
    assert_int_equal(gnomon_context_create(&o, &ctx), GNOMON_OK);
    return ctx;
}

#define ASSERT_OK(ctx, call)                                                                    \
    do {                                                                                        \
        const gnomon_status status_ = (call);                                                   \
        if (status_ != GNOMON_OK)                                                               \
            fail_msg("%s: %s: %s", #call, gnomon_status_name(status_), gnomon_last_error(ctx)); \
    } while (0)

/* The call fails with that status and a text that holds 'part'. */
#define ASSERT_FAILS(ctx, call, status, part)                                           \
    do {                                                                                \
        assert_int_equal((call), (status));                                             \
        if (!strstr(gnomon_last_error(ctx), (part)))                                    \
            fail_msg("%s: '%s' is not in '%s'", #call, (part), gnomon_last_error(ctx)); \
    } while (0)

static MAYBE_UNUSED gnomon_operator *make_operator(gnomon_context *ctx, const any_operator *a,
                                                   int64_t k, int64_t d)
{
    gnomon_descriptor s = GNOMON_DESCRIPTOR_INIT;
    s.kind = a->kind;
    s.inner = a->inner;
    s.precision = a->precision;
    s.density = a->density;
    s.nonzeros = a->nonzeros;
    s.blocks = a->blocks;
    s.zeta = a->zeta;
    s.wiring = a->wiring;
    s.width = a->width > k ? a->width : 0;
    s.k = k;
    s.d = d;
    s.seed = 12345;
    gnomon_operator *op = NULL;
    ASSERT_OK(ctx, gnomon_operator_create(ctx, &s, &op));
    return op;
}

/* A small generator of test data: splitmix64. */
static MAYBE_UNUSED uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static MAYBE_UNUSED double next_uniform(uint64_t *state) /* in [-1, 1) */
{
    return (double)(next_random(state) >> 11) / 4503599627370496.0 - 1.0;
}

static MAYBE_UNUSED uint16_t half_of(float x) /* normal halves only */
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint32_t sign = bits >> 16 & 0x8000u;
    const int exponent = (int)(bits >> 23 & 0xff) - 127 + 15;
    if (exponent <= 0) return (uint16_t)sign;
    return (uint16_t)(sign | (uint32_t)exponent << 10 | (bits >> 13 & 0x3ffu));
}

static MAYBE_UNUSED double half_value(uint16_t h)
{
    const int exponent = h >> 10 & 31, mantissa = h & 0x3ff;
    const double m = exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24);
    return h & 0x8000 ? -m : m;
}

static MAYBE_UNUSED void put(void *data, gnomon_dtype dtype, int64_t at, double v)
{
    switch (dtype) {
    case GNOMON_F32:
        ((float *)data)[at] = (float)v;
        break;
    case GNOMON_F64:
        ((double *)data)[at] = v;
        break;
    case GNOMON_F16:
        ((uint16_t *)data)[at] = half_of((float)v);
        break;
    case GNOMON_BF16: {
        const float f = (float)v;
        uint32_t bits;
        memcpy(&bits, &f, sizeof bits);
        ((uint16_t *)data)[at] = (uint16_t)(bits >> 16);
        break;
    }
    case GNOMON_I8:
        ((int8_t *)data)[at] = (int8_t)(v * 100);
        break;
    case GNOMON_U8:
        ((uint8_t *)data)[at] = (uint8_t)(fabs(v) * 200);
        break;
    case GNOMON_I16:
        ((int16_t *)data)[at] = (int16_t)(v * 30000);
        break;
    case GNOMON_U16:
        ((uint16_t *)data)[at] = (uint16_t)(fabs(v) * 60000);
        break;
    case GNOMON_I32:
        ((int32_t *)data)[at] = (int32_t)(v * 2e9);
        break;
    case GNOMON_U32:
        ((uint32_t *)data)[at] = (uint32_t)(fabs(v) * 4e9);
        break;
    case GNOMON_I64:
        ((int64_t *)data)[at] = (int64_t)(v * 1e15);
        break;
    case GNOMON_U64:
        ((uint64_t *)data)[at] = (uint64_t)(fabs(v) * 1e15);
        break;
    }
}

static MAYBE_UNUSED double get(const void *data, gnomon_dtype dtype, int64_t at)
{
    switch (dtype) {
    case GNOMON_F32:
        return (double)((const float *)data)[at];
    case GNOMON_F64:
        return ((const double *)data)[at];
    case GNOMON_F16:
        return half_value(((const uint16_t *)data)[at]);
    case GNOMON_BF16: {
        const uint32_t bits = (uint32_t)((const uint16_t *)data)[at] << 16;
        float f;
        memcpy(&f, &bits, sizeof f);
        return (double)f;
    }
    case GNOMON_I8:
        return ((const int8_t *)data)[at];
    case GNOMON_U8:
        return ((const uint8_t *)data)[at];
    case GNOMON_I16:
        return ((const int16_t *)data)[at];
    case GNOMON_U16:
        return ((const uint16_t *)data)[at];
    case GNOMON_I32:
        return ((const int32_t *)data)[at];
    case GNOMON_U32:
        return ((const uint32_t *)data)[at];
    case GNOMON_I64:
        return (double)((const int64_t *)data)[at];
    case GNOMON_U64:
        return (double)((const uint64_t *)data)[at];
    }
    return 0;
}

static MAYBE_UNUSED double element(const gnomon_matrix *m, int64_t i, int64_t j)
{
    return get(m->data, m->dtype, i * m->row_stride + j * m->col_stride);
}

static MAYBE_UNUSED void set_element(const gnomon_matrix *m, int64_t i, int64_t j, double v)
{
    put(m->data, m->dtype, i * m->row_stride + j * m->col_stride, v);
}

/* Layouts of a view. */
enum { ROW_MAJOR, COL_MAJOR, ROW_PADDED, COL_PADDED, ROW_REVERSED, COL_REVERSED, SPREAD, LAYOUTS };

/* A matrix in memory of its own, with sentinels around it and in its gaps. */
typedef struct owned {
    gnomon_matrix m;
    void *block;
    int64_t elements; /* of the block */
} owned;

enum { GUARD = 64, SENTINEL = 0x5a };

static MAYBE_UNUSED owned make_matrix(int64_t rows, int64_t cols, gnomon_dtype dtype, int layout)
{
    int64_t rs = cols, cs = 1;
    switch (layout) {
    case COL_MAJOR:
        rs = 1, cs = rows;
        break;
    case ROW_PADDED:
        rs = cols + 5;
        break;
    case COL_PADDED:
        rs = 1, cs = rows + 3;
        break;
    case ROW_REVERSED:
        rs = cols + 1, cs = -1;
        break;
    case COL_REVERSED:
        rs = -1, cs = rows;
        break;
    case SPREAD:
        rs = -(2 * cols + 1), cs = 2;
        break;
    default:
        break;
    }
    const int64_t row_reach = rows > 0 ? (rows - 1) * rs : 0;
    const int64_t col_reach = cols > 0 ? (cols - 1) * cs : 0;
    const int64_t before = (row_reach < 0 ? -row_reach : 0) + (col_reach < 0 ? -col_reach : 0);
    const int64_t after = (row_reach > 0 ? row_reach : 0) + (col_reach > 0 ? col_reach : 0);
    owned o;
    const size_t size = gnomon_dtype_size(dtype);
    o.elements = before + after + 1 + 2 * GUARD;
    o.block = malloc((size_t)o.elements * size);
    assert_non_null(o.block);
    memset(o.block, SENTINEL, (size_t)o.elements * size);
    o.m = (gnomon_matrix){
        (char *)o.block + (size_t)(GUARD + before) * size, dtype, GNOMON_HOST, rows, cols, rs, cs};
    return o;
}

static MAYBE_UNUSED void fill_random(const gnomon_matrix *m, uint64_t seed)
{
    for (int64_t i = 0; i < m->rows; i++) {
        uint64_t state = seed + (uint64_t)i * 1000003u; /* the same for every layout */
        for (int64_t j = 0; j < m->cols; j++)
            set_element(m, i, j, next_uniform(&state));
    }
}

/* Every byte that belongs to no element is as make_matrix left it. */
static MAYBE_UNUSED void check_sentinels(const owned *o)
{
    const size_t size = gnomon_dtype_size(o->m.dtype);
    unsigned char *mine = calloc((size_t)o->elements, 1);
    assert_non_null(mine);
    const int64_t base = ((const char *)o->m.data - (const char *)o->block) / (int64_t)size;
    for (int64_t i = 0; i < o->m.rows; i++)
        for (int64_t j = 0; j < o->m.cols; j++)
            mine[base + i * o->m.row_stride + j * o->m.col_stride] = 1;
    for (int64_t e = 0; e < o->elements; e++) {
        if (mine[e]) continue;
        for (size_t b = 0; b < size; b++)
            assert_int_equal(((const unsigned char *)o->block)[(size_t)e * size + b], SENTINEL);
    }
    free(mine);
}

static MAYBE_UNUSED void free_matrix(owned *o)
{
    free(o->block);
}

/* Copies of the same points in another layout. */
static MAYBE_UNUSED void copy_matrix(const gnomon_matrix *from, const gnomon_matrix *to)
{
    const size_t size = gnomon_dtype_size(from->dtype);
    for (int64_t i = 0; i < from->rows; i++)
        for (int64_t j = 0; j < from->cols; j++)
            memcpy((char *)to->data + (i * to->row_stride + j * to->col_stride) * (int64_t)size,
                   (const char *)from->data +
                       (i * from->row_stride + j * from->col_stride) * (int64_t)size,
                   size);
}

static MAYBE_UNUSED void assert_same_bits(const gnomon_matrix *a, const gnomon_matrix *b,
                                          const char *what)
{
    const size_t size = gnomon_dtype_size(a->dtype);
    assert_int_equal(a->rows, b->rows);
    assert_int_equal(a->cols, b->cols);
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t j = 0; j < a->cols; j++) {
            const char *p =
                (const char *)a->data + (i * a->row_stride + j * a->col_stride) * (int64_t)size;
            const char *q =
                (const char *)b->data + (i * b->row_stride + j * b->col_stride) * (int64_t)size;
            if (memcmp(p, q, size) != 0)
                fail_msg("%s: (%lld, %lld) is %.17g and %.17g", what, (long long)i, (long long)j,
                         element(a, i, j), element(b, i, j));
        }
}

/* The scaled operator's block as doubles, row-major, and the same of absolute values of what it
 * is made of (kronecker: the product of the absolute factors). */
static MAYBE_UNUSED double *operator_block(gnomon_context *ctx, const gnomon_operator *op,
                                           int64_t row, int64_t rows, int64_t col, int64_t cols)
{
    double *s = malloc((size_t)(rows * cols) * sizeof *s + 8);
    assert_non_null(s);
    const gnomon_matrix m = gnomon_matrix_rowmajor(s, GNOMON_F64, rows, cols);
    if (cols > 0) ASSERT_OK(ctx, gnomon_operator_block(ctx, op, row, col, &m));
    return s;
}

#endif

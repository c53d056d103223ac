/* Points of many kinds, and all their pairs in fp64. */
#ifndef JOIN_POINTS_H
#define JOIN_POINTS_H

#include "join_testing.h"

/* What points are like. */
typedef enum kind {
    BELL,
    OFFSET,     /* far from the origin */
    DUPLICATES, /* few distinct points */
    ZEROS,      /* a third are zero vectors */
    TERNARY,    /* ties everywhere */
    HUGE_ONES,
    TINY,
    WILD,  /* each point of a scale of its own */
    ALIKE, /* all within rounding of fp32 of each other */
    LOW,   /* near a subspace, in clusters */
    KINDS,
    /* the same, changed in ways that a sketch must bear */
    LOW_OFFSET = KINDS,
    LOW_ZEROS,
    LOW_DOUBLES, /* each point twice */
    LOW_HUGE,
    LOW_TINY,
    LOW_WILD,
    LOW_FLAT, /* some coordinates nearly constant */
    LOW_SAME, /* all rows are equal */
    ALL_KINDS
} kind;

static const char *const kind_names[] = {
    "bell",         "offset",    "duplicates", "zeros",     "ternary",     "huge",
    "tiny",         "wild",      "alike",      "low",       "low, offset", "low, zeros",
    "low, doubles", "low, huge", "low, tiny",  "low, wild", "low, flat",   "low, same"};

typedef struct points {
    int64_t rows, cols, stride; /* stride: elements between rows */
    gnomon_dtype dtype;
    void *data;
    double *values; /* rows x cols */
} points;

static inline double low_value(kind like, bool f64, int64_t row, int64_t col, uint64_t *state)
{
    const double noise = draw(state);
    if (like == LOW_DOUBLES) row /= 2;
    uint64_t s = (uint64_t)(row % 211);
    uint64_t own = (uint64_t)row * 7919 + (uint64_t)col;
    double x = (like == LOW_DOUBLES ? draw(&own) : noise) * 2e-2;
    for (int64_t k = 0; k < 5; k++)
        x += draw(&s) * cos((double)((k + 1) * (col + 3)));
    switch (like) {
    case LOW_SAME:
        return cos((double)col);
    case LOW_OFFSET:
        return x + 500;
    case LOW_ZEROS:
        return row % 5 == 1 ? 0 : x;
    case LOW_HUGE:
        return x * (f64 ? 1e140 : 1e36);
    case LOW_TINY:
        return x * (f64 ? 1e-290 : 1e-38);
    case LOW_WILD:
        return ldexp(x, (int)(row % 61 - 30) * (f64 ? 6 : 3));
    case LOW_FLAT:
        return col % 4 == 0 ? x : 3 + 1e-6 * noise;
    default:
        return x;
    }
}

static inline double value_of(kind like, bool f64, int64_t row, int64_t col, uint64_t *state)
{
    if (like > LOW) return low_value(like, f64, row, col, state);
    const double x = draw(state);
    switch (like) {
    case OFFSET:
        return x + 1000;
    case DUPLICATES: {
        uint64_t s = (uint64_t)(row % 7) * 1000 + (uint64_t)col;
        return draw(&s);
    }
    case ZEROS:
        return row % 3 == 1 ? 0 : x;
    case TERNARY:
        return (double)(draw_bits(state) % 3);
    case HUGE_ONES:
        return x * (f64 ? 1e140 : 1e37);
    case TINY:
        return x * (f64 ? 1e-290 : 1e-41);
    case WILD:
        return ldexp(x, (int)(row % 61 - 30) * (f64 ? 6 : 3));
    case ALIKE:
        return 1 + x * (f64 ? 1e-12 : 3e-7);
    case LOW: {
        uint64_t s = (uint64_t)(row % 97);
        double sum = x * 1e-2;
        for (int64_t k = 0; k < 4; k++)
            sum += draw(&s) * cos((double)((k + 1) * (col + 3)));
        return sum;
    }
    default:
        return x;
    }
}

static inline points make(kind like, gnomon_dtype dtype, int64_t rows, int64_t cols, uint64_t seed)
{
    const int64_t stride = cols + seed % 3;
    points p = {rows, cols, stride, dtype, NULL, NULL};
    p.data = calloc((size_t)(rows * stride + 1), gnomon_dtype_size(dtype));
    p.values = malloc((size_t)(rows * cols + 1) * sizeof *p.values);
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < cols; j++) {
            const double x = value_of(like, dtype == GNOMON_F64, i, j, &seed);
            double *v = &p.values[i * cols + j];
            if (dtype == GNOMON_F64)
                *v = ((double *)p.data)[i * stride + j] = x;
            else if (dtype == GNOMON_F32)
                *v = (double)(((float *)p.data)[i * stride + j] = (float)x);
            else
                *v = ((uint8_t *)p.data)[i * stride + j] = (uint8_t)fmin(fabs(x) * 100, 255);
        }
    }
    return p;
}

static inline gnomon_matrix view(const points *p)
{
    return (gnomon_matrix){p->data, p->dtype, GNOMON_HOST, p->rows, p->cols, p->stride, 1};
}

static inline void drop(points *p)
{
    free(p->data);
    free(p->values);
}

/* Every pair, in order. */
static inline gathered brute(gnomon_metric metric, const points *p, const points *q)
{
    gathered all = {0};
    for (int64_t i = 0; i < p->rows; i++) {
        for (int64_t j = q == NULL ? i + 1 : 0; j < (q == NULL ? p : q)->rows; j++) {
            const double d = distance_of(metric, p->values + i * p->cols,
                                         (q == NULL ? p : q)->values + j * p->cols, p->cols);
            const gnomon_pair pair = {i, j, d};
            const gnomon_join_batch batch = {&pair, 1, i};
            gather(&all, &batch);
        }
    }
    return all;
}

/* The rank-th smallest distance (largest product). */
static int sign;
static inline int by_size(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return sign * ((a > b) - (a < b));
}

static inline double rank_of(gnomon_metric metric, const gathered *all, int64_t rank)
{
    double *d = malloc((size_t)(all->count + 1) * sizeof *d);
    for (int64_t at = 0; at < all->count; at++)
        d[at] = all->pairs[at].distance;
    sign = metric == GNOMON_IP ? -1 : 1;
    qsort(d, (size_t)all->count, sizeof *d, by_size);
    const double value = all->count == 0 ? 0 : d[rank < all->count ? rank : all->count - 1];
    free(d);
    return value;
}

/* Those within the threshold; the brute force's array is used. */
static inline gathered within(gnomon_metric metric, const gathered *all, double threshold)
{
    gathered some = {0};
    for (int64_t at = 0; at < all->count; at++) {
        const gnomon_join_batch batch = {&all->pairs[at], 1, all->pairs[at].i};
        const double d = all->pairs[at].distance;
        if (metric == GNOMON_IP ? d >= threshold : d <= threshold) gather(&some, &batch);
    }
    return some;
}

static inline gathered joined(gnomon_context *ctx, const points *p, const points *q,
                              gnomon_join_options o, gnomon_join_result *result)
{
    gathered got = {0};
    const gnomon_matrix a = view(p), b = q == NULL ? a : view(q);
    o.sink = gather;
    o.user = &got;
    *result = (gnomon_join_result){.struct_size = sizeof *result};
    expect(ctx, gnomon_join(ctx, &a, q == NULL ? NULL : &b, &o, result), GNOMON_OK);
    assert_int_equal(result->rows_done, p->rows);
    assert_int_equal(result->pairs, got.count);
    assert_int_equal(result->complete, 1);
    return got;
}

#endif

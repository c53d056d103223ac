/* Least squares by LAPACK, and what the tests of ours compare. */
#ifndef LSTSQ_TESTING_H
#define LSTSQ_TESTING_H

#include "svd_testing.h"

#include <gnomon/lstsq.h>

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

typedef void (*dgelsd_fn)(const int *, const int *, const int *, double *, const int *, double *,
                          const int *, double *, const double *, int *, double *, const int *,
                          int *, int *);

static inline void expect(gnomon_context *ctx, gnomon_status got, gnomon_status want)
{
    if (got != want)
        fail_msg("status %s, want %s: %s", gnomon_status_name(got), gnomon_status_name(want),
                 gnomon_last_error(ctx));
}

static inline gnomon_context *context_of(int threads)
{
    gnomon_context *ctx = NULL;
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    options.device = "cpu";
    options.threads = threads;
    assert_int_equal(gnomon_context_create(&options, &ctx), GNOMON_OK);
    return ctx;
}

/* A context of two threads for all tests of a group, in *state. */
static inline int make_context(void **state)
{
    *state = context_of(2);
    return 0;
}

static inline int drop_context(void **state)
{
    gnomon_context_destroy(*state);
    return 0;
}

/* x (d), the shortest solution by dgelsd; singular values up to 'share' of the largest count as 0.
 */
static inline void lapack_solve(int n, int d, const double *a, const double *b, double share,
                                double *x)
{
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    void *symbol = library != NULL ? dlsym(library, "dgelsd_") : NULL;
    dgelsd_fn dgelsd;
    assert_non_null(symbol);
    memcpy(&dgelsd, &symbol, sizeof dgelsd);
    const int one = 1, query = -1, most = n > d ? n : d;
    double size, *columns = malloc(sizeof *columns * (size_t)n * (size_t)d);
    double *right = calloc((size_t)most, sizeof *right), *s = malloc(sizeof *s * (size_t)d);
    int rank, info, index_size = 0;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < d; j++)
            columns[j * n + i] = a[i * d + j];
        right[i] = b[i];
    }
    dgelsd(&n, &d, &one, columns, &n, right, &most, s, &share, &rank, &size, &query, &index_size,
           &info);
    double *work = malloc(sizeof *work * ((size_t)size + 1));
    int *index = malloc(sizeof *index * ((size_t)index_size + 1)), count = (int)size;
    gnomon_blas_enter();
    dgelsd(&n, &d, &one, columns, &n, right, &most, s, &share, &rank, work, &count, index, &info);
    gnomon_blas_leave();
    assert_int_equal(info, 0);
    memcpy(x, right, (size_t)d * sizeof *x);
    free(columns);
    free(right);
    free(s);
    free(work);
    free(index);
    dlclose(library);
}

static inline double length_of(const double *v, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum = hypot(sum, v[i]);
    return sum;
}

/* |b - A x| for column j of x. */
static inline double left_by(int64_t n, int64_t d, const double *a, const double *b,
                             const gnomon_matrix *x, int64_t j)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        double r = b[i];
        for (int64_t l = 0; l < d; l++)
            r -= a[i * d + l] * at(x, l, j);
        sum = hypot(sum, r);
    }
    return sum;
}

/* |A (x - y)| for column j of x. */
static inline double fit_between(int64_t n, int64_t d, const double *a, const gnomon_matrix *x,
                                 int64_t j, const double *y)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        double r = 0;
        for (int64_t l = 0; l < d; l++)
            r += a[i * d + l] * (at(x, l, j) - y[l]);
        sum = hypot(sum, r);
    }
    return sum;
}

static inline double distance_of(int64_t d, const gnomon_matrix *x, int64_t j, const double *y)
{
    double sum = 0;
    for (int64_t l = 0; l < d; l++)
        sum = hypot(sum, at(x, l, j) - y[l]);
    return sum;
}

/* A problem whose solution is known: A with singular values from 1 to 1 / condition, b = A x + r
 * with r orthogonal to A's columns and of a given length. */
typedef struct problem {
    int64_t n, d;
    double *a, *b, *x;
} problem;

static inline problem make_problem(int64_t n, int64_t d, double condition, double residual,
                                   uint64_t seed)
{
    uint64_t state = seed;
    problem p = {n, d, calloc((size_t)(n * d), sizeof(double)), calloc((size_t)n, sizeof(double)),
                 calloc((size_t)d, sizeof(double))};
    double *u = draw_orthonormal(n, d + 1, &state), *v = draw_orthonormal(d, d, &state);
    for (int64_t j = 0; j < d; j++)
        p.x[j] = draw_normal(&state);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t l = 0; l < d; l++) {
            const double s = u[i * (d + 1) + l] * pow(condition, -(double)l / (double)(d - 1));
            for (int64_t j = 0; j < d; j++)
                p.a[i * d + j] += s * v[j * d + l];
        }
        p.b[i] = residual * u[i * (d + 1) + d];
        for (int64_t j = 0; j < d; j++)
            p.b[i] += p.a[i * d + j] * p.x[j];
    }
    free(u);
    free(v);
    return p;
}

static inline void drop_problem(problem *p)
{
    free(p->a);
    free(p->b);
    free(p->x);
}

#endif

/* Matrices with known singular values, and what the tests of the SVD compare. */
#ifndef SVD_TESTING_H
#define SVD_TESTING_H

#include "linalg/blas.h"

#include <gnomon/svd.h>

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline double draw_uniform(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

static inline double draw_normal(uint64_t *state)
{
    const double u = 1 - draw_uniform(state), v = draw_uniform(state);
    return sqrt(-2 * log(u)) * cos(2 * acos(-1.0) * v);
}

/* m x k with orthonormal columns, row-major, by Gram and Schmidt twice. */
static inline double *draw_orthonormal(int64_t m, int64_t k, uint64_t *state)
{
    double *q = malloc((size_t)(m * k) * sizeof *q);
    for (int64_t i = 0; i < m * k; i++)
        q[i] = draw_normal(state);
    for (int64_t j = 0; j < k; j++) {
        for (int round = 0; round < 2; round++) {
            for (int64_t l = 0; l < j; l++) {
                double dot = 0;
                for (int64_t i = 0; i < m; i++)
                    dot += q[i * k + l] * q[i * k + j];
                for (int64_t i = 0; i < m; i++)
                    q[i * k + j] -= dot * q[i * k + l];
            }
        }
        double norm = 0;
        for (int64_t i = 0; i < m; i++)
            norm += q[i * k + j] * q[i * k + j];
        for (int64_t i = 0; i < m; i++)
            q[i * k + j] /= sqrt(norm);
    }
    return q;
}

/* m x n, row-major, with the singular values s[0 .. min(m, n)). */
static inline double *matrix_with(int64_t m, int64_t n, const double *s, uint64_t seed)
{
    const int64_t k = m < n ? m : n;
    uint64_t state = seed;
    double *u = draw_orthonormal(m, k, &state), *v = draw_orthonormal(n, k, &state);
    double *a = calloc((size_t)(m * n), sizeof *a);
    for (int64_t i = 0; i < m; i++) {
        for (int64_t l = 0; l < k; l++) {
            const double x = u[i * k + l] * s[l];
            for (int64_t j = 0; j < n; j++)
                a[i * n + j] += x * v[j * k + l];
        }
    }
    free(u);
    free(v);
    return a;
}

/* All singular values of an n x n matrix by LAPACK, to be freed. */
static inline double *exact_values(int64_t n, const double *a)
{
    const int64_t work = gnomon_blas_svd_work(n);
    double *s = malloc((size_t)n * sizeof *s), *copy = malloc((size_t)(n * n) * sizeof *s);
    double *u = malloc((size_t)(n * n) * sizeof *s), *vt = malloc((size_t)(n * n) * sizeof *s);
    double *w = malloc((size_t)work * sizeof *s);
    int *index = malloc((size_t)(8 * n) * sizeof *index);
    gnomon_blas_enter(); /* its threads' handshakes look like races to the thread sanitizer */
    if (!gnomon_blas_svd(n, copy, a, s, u, vt, w, work, index)) s[0] = (double)NAN;
    gnomon_blas_leave();
    free(copy);
    free(u);
    free(vt);
    free(w);
    free(index);
    return s;
}

static inline double tail_of(const double *s, int64_t from, int64_t count)
{
    double sum = 0;
    for (int64_t i = from; i < count; i++)
        sum += s[i] * s[i];
    return sqrt(sum);
}

static inline double at(const gnomon_matrix *m, int64_t i, int64_t j)
{
    const int64_t k = i * m->row_stride + j * m->col_stride;
    return m->dtype == GNOMON_F64 ? ((const double *)m->data)[k]
                                  : (double)((const float *)m->data)[k];
}

/* |A - U S Vt|_F in fp64. */
static inline double residual_of(const gnomon_svd *svd, const double *a)
{
    double sum = 0;
    for (int64_t i = 0; i < svd->rows; i++) {
        for (int64_t j = 0; j < svd->cols; j++) {
            double x = a[i * svd->cols + j];
            for (int64_t l = 0; l < svd->rank; l++)
                x -= at(&svd->u, i, l) * svd->s[l] * at(&svd->vt, l, j);
            sum += x * x;
        }
    }
    return sqrt(sum);
}

/* The largest entry of I - Q^T Q over U's columns and Vt's rows. */
static inline double off_orthonormal(const gnomon_svd *svd)
{
    double worst = 0;
    for (int64_t p = 0; p < svd->rank; p++) {
        for (int64_t q = 0; q <= p; q++) {
            double u = p == q ? -1 : 0, v = u;
            for (int64_t i = 0; i < svd->rows; i++)
                u += at(&svd->u, i, p) * at(&svd->u, i, q);
            for (int64_t j = 0; j < svd->cols; j++)
                v += at(&svd->vt, p, j) * at(&svd->vt, q, j);
            worst = fmax(worst, fmax(fabs(u), fabs(v)));
        }
    }
    return worst;
}

static inline float *as_floats(const double *a, int64_t count)
{
    float *f = malloc((size_t)count * sizeof *f);
    for (int64_t i = 0; i < count; i++)
        f[i] = (float)a[i];
    return f;
}

#endif

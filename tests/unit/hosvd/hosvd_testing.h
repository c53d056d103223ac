/* Tensors with known parts, and a factorisation of them by LAPACK in double precision. Everything
 * here is in C order and fp64. */
#ifndef HOSVD_TESTING_H
#define HOSVD_TESTING_H

#include "svd_testing.h"

#include <gnomon/hosvd.h>

typedef struct cube {
    int modes;
    int64_t size[GNOMON_TENSOR_MODES];
    double *data;
} cube;

static inline int64_t cube_count(const cube *c)
{
    int64_t count = 1;
    for (int n = 0; n < c->modes; n++)
        count *= c->size[n];
    return count;
}

static inline cube cube_of(int modes, const int64_t *size)
{
    cube c = {.modes = modes};
    memcpy(c.size, size, (size_t)modes * sizeof *size);
    c.data = calloc((size_t)cube_count(&c), sizeof *c.data);
    return c;
}

/* c x_mode f, f: rows x c's size (transposed: the other way round); frees c's data. */
static inline void cube_times(cube *c, int mode, int64_t rows, const double *f, int transposed)
{
    cube out = *c;
    int64_t left = 1, right = 1;
    const int64_t length = c->size[mode];
    for (int n = 0; n < mode; n++)
        left *= c->size[n];
    for (int n = mode + 1; n < c->modes; n++)
        right *= c->size[n];
    out.size[mode] = rows;
    out.data = calloc((size_t)(left * rows * right), sizeof *out.data);
    for (int64_t l = 0; l < left; l++)
        for (int64_t j = 0; j < rows; j++)
            for (int64_t i = 0; i < length; i++) {
                const double x = transposed ? f[i * rows + j] : f[j * length + i];
                const double *from = c->data + (l * length + i) * right;
                double *to = out.data + (l * rows + j) * right;
                for (int64_t r = 0; r < right; r++)
                    to[r] += x * from[r];
            }
    free(c->data);
    *c = out;
}

static inline double cube_norm(const cube *c)
{
    double sum = 0;
    for (int64_t i = 0; i < cube_count(c); i++)
        sum += c->data[i] * c->data[i];
    return sqrt(sum);
}

static inline double *draw_matrix(int64_t rows, int64_t cols, uint64_t *state)
{
    double *m = malloc((size_t)(rows * cols) * sizeof *m);
    for (int64_t i = 0; i < rows * cols; i++)
        m[i] = 2 * draw_uniform(state) - 1;
    return m;
}

/* Ootomo & Yokota 2023, algorithm 3: ranks J_n - p. */
static inline cube algorithm_3(int modes, const int64_t *size, const int64_t *rank, int64_t p,
                               uint64_t seed)
{
    uint64_t state = seed;
    cube c = cube_of(modes, rank);
    for (int64_t i = 0; i < cube_count(&c); i++)
        c.data[i] = 2 * draw_uniform(&state) - 1;
    for (int n = 0; n < modes; n++) {
        double *a = draw_matrix(rank[n], rank[n] - p, &state);
        double *b = draw_matrix(rank[n] - p, size[n], &state);
        cube_times(&c, n, rank[n] - p, a, 1);
        cube_times(&c, n, size[n], b, 1);
        free(a);
        free(b);
    }
    return c;
}

/* Random with entry (i, j, ...) of the core falling as exp(-fall (i + j + ...)), and turned. */
static inline cube falling(int modes, const int64_t *size, double fall, uint64_t seed)
{
    uint64_t state = seed;
    cube c = cube_of(modes, size);
    for (int64_t i = 0; i < cube_count(&c); i++) {
        int64_t rest = i, sum = 0;
        for (int n = modes - 1; n >= 0; n--) {
            sum += rest % size[n];
            rest /= size[n];
        }
        c.data[i] = draw_normal(&state) * exp(-fall * (double)sum);
    }
    for (int n = 0; n < modes; n++) {
        double *q = draw_orthonormal(size[n], size[n], &state);
        cube_times(&c, n, size[n], q, 0);
        free(q);
    }
    return c;
}

/* The leading left singular vectors of c's unfolding, size x rank, by LAPACK from its Gram matrix;
 * the singular values into values when it is not NULL. */
static inline double *exact_basis(const cube *c, int mode, int64_t rank, double *values)
{
    const int64_t n = c->size[mode], work = gnomon_blas_svd_work(n);
    int64_t right = 1;
    for (int k = mode + 1; k < c->modes; k++)
        right *= c->size[k];
    const int64_t left = cube_count(c) / n / right;
    double *gram = calloc((size_t)(n * n), sizeof *gram), *copy = malloc((size_t)(n * n) * 8);
    double *s = malloc((size_t)n * 8), *u = malloc((size_t)(n * n) * 8);
    double *vt = malloc((size_t)(n * n) * 8), *w = malloc((size_t)work * 8);
    int *index = malloc((size_t)(8 * n) * sizeof *index);
    for (int64_t l = 0; l < left; l++)
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++) {
                const double *a = c->data + (l * n + i) * right, *b = c->data + (l * n + j) * right;
                for (int64_t r = 0; r < right; r++)
                    gram[i * n + j] += a[r] * b[r];
            }
    gnomon_blas_enter();
    if (!gnomon_blas_svd(n, copy, gram, s, u, vt, w, work, index)) s[0] = (double)NAN;
    gnomon_blas_leave();
    double *basis = malloc((size_t)(n * rank) * sizeof *basis);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < rank; j++)
            basis[i * rank + j] = u[i * n + j];
    for (int64_t j = 0; j < n && values != NULL; j++)
        values[j] = sqrt(s[j]);
    free(gram);
    free(copy);
    free(s);
    free(u);
    free(vt);
    free(w);
    free(index);
    return basis;
}

/* |X - X'|_F of the HOSVD of De Lathauwer, De Moor & Vandewalle. */
static inline double exact_residual(const cube *x, const int64_t *rank)
{
    cube g = *x;
    double *basis[GNOMON_TENSOR_MODES], sum = 0;
    g.data = malloc((size_t)cube_count(x) * sizeof *g.data);
    memcpy(g.data, x->data, (size_t)cube_count(x) * sizeof *g.data);
    for (int n = 0; n < x->modes; n++)
        basis[n] = exact_basis(x, n, rank[n], NULL);
    for (int n = 0; n < x->modes; n++)
        cube_times(&g, n, rank[n], basis[n], 1);
    for (int n = 0; n < x->modes; n++) {
        cube_times(&g, n, x->size[n], basis[n], 0);
        free(basis[n]);
    }
    for (int64_t i = 0; i < cube_count(x); i++)
        sum += (x->data[i] - g.data[i]) * (x->data[i] - g.data[i]);
    free(g.data);
    return sqrt(sum);
}

static inline double number(const void *data, gnomon_dtype dtype, int64_t i)
{
    return dtype == GNOMON_F64 ? ((const double *)data)[i] : (double)((const float *)data)[i];
}

static inline double *factor_as_f64(const gnomon_hosvd *h, int n)
{
    double *f = malloc((size_t)(h->size[n] * h->rank[n]) * sizeof *f);
    for (int64_t i = 0; i < h->size[n] * h->rank[n]; i++)
        f[i] = number(h->factor[n].data, h->factor[n].dtype, i);
    return f;
}

static inline cube core_as_f64(const gnomon_hosvd *h)
{
    cube g = cube_of(h->modes, h->rank);
    for (int64_t i = 0; i < cube_count(&g); i++)
        g.data[i] = number(h->core.data, h->core.dtype, i);
    return g;
}

/* |X - G x_1 Q_1 ...|_F of what was returned, in fp64. */
static inline double hosvd_residual(const gnomon_hosvd *h, const cube *x)
{
    cube g = core_as_f64(h);
    double sum = 0;
    for (int n = 0; n < h->modes; n++) {
        double *f = factor_as_f64(h, n);
        cube_times(&g, n, h->size[n], f, 0);
        free(f);
    }
    for (int64_t i = 0; i < cube_count(x); i++)
        sum += (x->data[i] - g.data[i]) * (x->data[i] - g.data[i]);
    free(g.data);
    return sqrt(sum);
}

/* The largest entry of I - Q^T Q over all factors. */
static inline double hosvd_off(const gnomon_hosvd *h)
{
    double worst = 0;
    for (int n = 0; n < h->modes; n++)
        for (int64_t p = 0; p < h->rank[n]; p++)
            for (int64_t q = 0; q <= p; q++) {
                double dot = p == q ? -1 : 0;
                for (int64_t i = 0; i < h->size[n]; i++)
                    dot += at(&h->factor[n], i, p) * at(&h->factor[n], i, q);
                worst = fmax(worst, fabs(dot));
            }
    return worst;
}

#endif

#include "linalg/orth.h"

#include "base/arithmetic.h"
#include "base/error.h"
#include "base/memory.h"
#include "linalg/blas.h"

#include <math.h>
#include <string.h>

enum {
    ROUNDS = 8, /* of inverse iterations */
    PASSES = 8  /* of subtracting the part in a span */
};

/* The Frobenius norm of Y^T Y - I up to which a second step leaves Y orthonormal. */
#define NEAR 0.1

static gnomon_status gram(gnomon_context *ctx, const gnomon_tall *y, double *r)
{
    bool finite;
    GNOMON_TRY(gnomon_tall_gram(ctx, y, r, &finite));
    GNOMON_FAIL_IF(!finite, ctx, GNOMON_ERROR_NONFINITE,
                   "a product of the matrix overflows its type; compute in double precision, or "
                   "scale the data");
    return GNOMON_OK;
}

static double least_diagonal(int64_t n, const double *r)
{
    double least = INFINITY;
    for (int64_t i = 0; i < n; i++)
        least = r[i * n + i] < least ? r[i * n + i] : least;
    return least;
}

/* The smallest number on the diagonal over the largest. */
static double span_of(int64_t n, const double *r)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++)
        most = r[i * n + i] > most ? r[i * n + i] : most;
    return least_diagonal(n, r) / most;
}

/* r, a Gram matrix, to its Cholesky factor; whether that is safe: its diagonal spans less than
 * 1 / span and holds nothing that a number of the type can't divide by. */
static bool factor(int64_t n, bool f64, double span, double *r)
{
    if (!gnomon_blas_cholesky(n, r)) return false;
    for (int64_t i = 0; i < n; i++)
        memset(r + i * n, 0, (size_t)i * sizeof *r);
    return span_of(n, r) > span && least_diagonal(n, r) > (f64 ? 1e-290 : 1e-36);
}

gnomon_status gnomon_triangle(gnomon_context *ctx, const gnomon_tall *y, double span, double *r,
                              double *squares, bool *safe)
{
    *safe = false;
    GNOMON_TRY(gram(ctx, y, r));
    memcpy(squares, r, (size_t)(y->cols * y->cols) * sizeof *r);
    *safe = factor(y->cols, y->f64, span, r);
    return GNOMON_OK;
}

/* The sum of x[i] y[i], some of them side by side. */
static double dot(int64_t n, const double *x, const double *y)
{
    enum { LANES = 8 };
    double sums[LANES] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++)
            sums[l] += x[i + l] * y[i + l];
    for (; i < n; i++)
        sum += x[i] * y[i];
    for (int l = 0; l < LANES; l++)
        sum += sums[l];
    return sum;
}

/* One step: Y = Y R^-1 with R^T R = Y^T Y. *safe tells whether Y was well enough conditioned; else
 * Y is as before. *off (may be NULL): the Frobenius norm of Y^T Y - I before the step. */
static gnomon_status step(gnomon_context *ctx, const gnomon_tall *y, double *r, bool *safe,
                          double *off)
{
    const int64_t n = y->cols;
    GNOMON_TRY(gram(ctx, y, r));
    if (off != NULL) {
        double sum = 0;
        for (int64_t i = 0; i < n; i++) {
            const double *row = r + i * n, *after = row + i + 1, d = row[i] - 1;
            sum += dot(i, row, row) + d * d + dot(n - i - 1, after, after);
        }
        *off = sqrt(sum);
    }
    /* Beyond this the Gram matrix has lost the shortest direction. */
    *safe = factor(n, y->f64, y->f64 ? 0x1p-24 : 0x1p-20, r);
    if (!*safe) return GNOMON_OK;
    bool done = false;
    /* Near the identity the inverse is as good as a division, and takes half the time. */
    if (y->f64 && off != NULL && *off < NEAR) GNOMON_TRY(gnomon_tall_divide_f64(ctx, y, r, &done));
    return done ? GNOMON_OK : gnomon_tall_divide(ctx, y, r);
}

/* r = later * r, upper triangles. */
static gnomon_status accumulate(gnomon_context *ctx, int64_t n, double *later, double *r)
{
    double *copy = NULL;
    GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(n, n), sizeof *copy, "a triangle", &copy));
    memcpy(copy, r, (size_t)(n * n) * sizeof *r);
    const gnomon_tall left = {later, n, n, true}, out = {r, n, n, true};
    gnomon_tall_multiply(ctx, 1.0, &left, copy, 0.0, &out);
    gnomon_free(ctx, copy);
    return GNOMON_OK;
}

/* Where the least singular value is not below 2^-10 of the longest column, whose square times 2^-53
 * rounding leaves in each number of the Gram matrix, Y R^-1 in double precision is orthonormal to
 * 2^-25, beside the last rounding (n < 2^16, roundings that are independent): a second step by
 * single precision's columns would not better it. The longest number on R's diagonal would not do:
 * columns may be far longer than those. Y is F32. */
static gnomon_status step_closely(gnomon_context *ctx, const gnomon_tall *y, double *r, bool *safe,
                                  bool *done)
{
    const int64_t n = y->cols;
    double *work = NULL, longest = 0, most = 0;
    *done = false;
    GNOMON_TRY(gram(ctx, y, r));
    for (int64_t i = 0; i < n; i++)
        longest = fmax(longest, r[i * n + i]);
    *safe = factor(n, y->f64, 0x1p-20, r);
    if (!*safe) return GNOMON_OK;
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, r[i * n + i]);
    GNOMON_TRY(gnomon_alloc(ctx, n, sizeof *work, "singular vectors", &work));
    const bool near = gnomon_least_square(n, r, work) > 0x1p-20 * (longest / most / most);
    gnomon_free(ctx, work);
    if (near) GNOMON_TRY(gnomon_tall_divide_f64(ctx, y, r, done));
    return *done ? GNOMON_OK : gnomon_tall_divide(ctx, y, r);
}

/* wanted: whether 'total' is to be R in the end, or no more than scratch. */
static gnomon_status orthonormalise(gnomon_context *ctx, const gnomon_tall *y, bool wanted,
                                    double *total, double *r, gnomon_orth_count *count)
{
    const int64_t n = y->cols;
    bool safe = false;
    double off = 0;
    bool done = false;
    GNOMON_TRY(y->f64 ? step(ctx, y, total, &safe, NULL)
                      : step_closely(ctx, y, total, &safe, &done));
    if (done) {
        count->cholesky++;
        return GNOMON_OK;
    }
    const bool divided = safe;
    if (safe) {
        /* Near the identity the second step repairs what rounding left, to the last place. */
        GNOMON_TRY(step(ctx, y, r, &safe, &off));
        if (safe && wanted) GNOMON_TRY(accumulate(ctx, n, r, total));
        if (safe && off < NEAR) {
            count->cholesky++;
            return GNOMON_OK;
        }
    }
    GNOMON_TRY(gnomon_tsqr(ctx, y, r));
    count->householder++;
    if (divided && wanted)
        GNOMON_TRY(accumulate(ctx, n, r, total));
    else
        memcpy(total, r, (size_t)(n * n) * sizeof *r);
    /* Reflections leave a few times the roundoff, which a step by the Gram matrix takes away. */
    GNOMON_TRY(step(ctx, y, r, &safe, NULL));
    return safe && wanted ? accumulate(ctx, n, r, total) : GNOMON_OK;
}

gnomon_status gnomon_orthonormalise(gnomon_context *ctx, const gnomon_tall *y, double *r,
                                    gnomon_orth_count *count)
{
    const int64_t n = y->cols;
    double *scratch = NULL, *total = NULL;
    if (n == 0) return GNOMON_OK;
    gnomon_status status =
        gnomon_alloc(ctx, gnomon_times(n, n), sizeof *scratch, "a triangle", &scratch);
    if (status == GNOMON_OK)
        status = gnomon_alloc(ctx, gnomon_times(n, n), sizeof *total, "a triangle", &total);
    if (status == GNOMON_OK) status = orthonormalise(ctx, y, r != NULL, total, scratch, count);
    if (status == GNOMON_OK && r != NULL) memcpy(r, total, (size_t)(n * n) * sizeof *r);
    gnomon_free(ctx, scratch);
    gnomon_free(ctx, total);
    return status;
}

/* Uniform in [-1, 1), by the place in a block. Signs alone would not
 * do: two equal ones have no part in the difference of two coordinates. */
static double uniform_at(int64_t pass, int64_t row, int64_t col)
{
    const uint64_t place = (uint64_t)row * 0x9e3779b97f4a7c15U + (uint64_t)(pass << 32 ^ col);
    return (double)(int64_t)gnomon_mix64(place) * 0x1p-63;
}

static void randomise(const gnomon_tall *y, int64_t pass, int64_t col)
{
    for (int64_t i = 0; i < y->rows; i++) {
        if (y->f64)
            ((double *)y->data)[i * y->cols + col] = uniform_at(pass, i, col);
        else
            ((float *)y->data)[i * y->cols + col] = (float)uniform_at(pass, i, col);
    }
}

/* The passes below; norms: room for y's columns. */
static gnomon_status against(gnomon_context *ctx, const gnomon_tall *q, int64_t count,
                             const gnomon_tall *y, double *norms, gnomon_orth_count *orth)
{
    for (int pass = 0; pass < PASSES; pass++) {
        for (int64_t i = 0; i < count; i++)
            GNOMON_TRY(gnomon_tall_deflate(ctx, &q[i], y));
        bool apart = pass > 0;
        if (pass > 0) gnomon_tall_norms(ctx, y, norms);
        for (int64_t j = 0; pass > 0 && j < y->cols; j++) {
            if (norms[j] * norms[j] > 0.5) continue;
            apart = false;
            if (pass % 2 == 0) randomise(y, pass, j);
        }
        GNOMON_TRY(gnomon_orthonormalise(ctx, y, NULL, orth));
        if (apart) return GNOMON_OK;
    }
    return GNOMON_OK;
}

/* Twice is enough (Kahan and Parlett) for columns that lie mostly outside the span of Q. Where the
 * rank of [Q Y] is less than its columns, some of Y become rounding alone, which lies mostly
 * inside that span again, and all of it where all points have a coordinate that is zero. Such a
 * column is first tried again and then replaced by a random one. */
gnomon_status gnomon_orthonormalise_against(gnomon_context *ctx, const gnomon_tall *q,
                                            int64_t count, const gnomon_tall *y,
                                            gnomon_orth_count *orth)
{
    double *norms = NULL;
    GNOMON_TRY(gnomon_alloc(ctx, y->cols, sizeof *norms, "norms", &norms));
    const gnomon_status status = against(ctx, q, count, y, norms, orth);
    gnomon_free(ctx, norms);
    return status;
}

/* x = (r^T r)^-1 x / share^2 */
static void divide_twice(int64_t n, const double *r, double share, double *x)
{
    for (int64_t i = 0; i < n; i++) {
        const double *row = r + i * n;
        x[i] /= row[i] * share;
        const double part = x[i] * share;
        for (int64_t j = i + 1; j < n; j++)
            x[j] -= row[j] * part;
    }
    for (int64_t i = n - 1; i >= 0; i--) {
        const double *row = r + i * n;
        const double sum = dot(n - i - 1, row + i + 1, x + i + 1) * share;
        x[i] = (x[i] - sum) / (row[i] * share);
    }
}

double gnomon_least_square(int64_t n, const double *r, double *x)
{
    double most = 0, length = sqrt((double)n);
    for (int64_t i = 0; i < n; i++) {
        most = r[i * n + i] > most ? r[i * n + i] : most;
        x[i] = 1;
    }
    for (int round = 0; round < ROUNDS; round++) {
        double squares = 0;
        for (int64_t i = 0; i < n; i++)
            x[i] /= length;
        divide_twice(n, r, 1 / most, x);
        for (int64_t i = 0; i < n; i++)
            squares += x[i] * x[i];
        length = sqrt(squares);
    }
    return 1 / length;
}

gnomon_status gnomon_condition(gnomon_context *ctx, const gnomon_tall *y, double *span,
                               double *given, gnomon_orth_count *count)
{
    const int64_t n = y->cols;
    double *own = NULL;
    bool safe = false;
    if (given == NULL)
        GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(n, n), sizeof *own, "a triangle", &own));
    double *r = given != NULL ? given : own;
    gnomon_status status = step(ctx, y, r, &safe, NULL);
    if (span != NULL) *span = safe ? span_of(n, r) : 0;
    if (status == GNOMON_OK && safe) {
        count->cholesky++;
    } else if (status == GNOMON_OK) {
        status = gnomon_tsqr(ctx, y, r);
        count->householder++;
    }
    gnomon_free(ctx, own);
    return status;
}

/* linalg/tall.h: matrices of many rows and few columns, row-major without gaps, cut into fixed
 * blocks of rows that the context's threads share. */
#ifndef GNOMON_SVD_TALL_H
#define GNOMON_SVD_TALL_H

#include <gnomon/base.h>

#include <stdbool.h>
#include <stddef.h>

typedef struct gnomon_tall {
    void *data;
    int64_t rows, cols;
    bool f64; /* double, else float */
} gnomon_tall;

static inline size_t gnomon_tall_size(bool f64)
{
    return f64 ? sizeof(double) : sizeof(float);
}

/* Row 'row' of t. */
static inline void *gnomon_tall_row(const gnomon_tall *t, int64_t row)
{
    return (char *)t->data + (size_t)(row * t->cols) * gnomon_tall_size(t->f64);
}

/* Allocates (cleared when zero) and frees. */
gnomon_status gnomon_tall_make(gnomon_context *ctx, bool f64, int64_t rows, int64_t cols, bool zero,
                               const char *what, gnomon_tall *t);
void gnomon_tall_drop(gnomon_context *ctx, gnomon_tall *t);

/* gram (cols x cols, double) = T^T T, both triangles; sums in double. *finite tells whether it is.
 */
gnomon_status gnomon_tall_gram(gnomon_context *ctx, const gnomon_tall *t, double *gram,
                               bool *finite);
/* T = T R^-1; r: cols x cols double, upper triangular. */
gnomon_status gnomon_tall_divide(gnomon_context *ctx, const gnomon_tall *t, const double *r);
/* The same in double precision, each number rounded once. *done false: R has no inverse in that
 * range, and T is as before. */
gnomon_status gnomon_tall_divide_f64(gnomon_context *ctx, const gnomon_tall *t, const double *r,
                                     bool *done);
/* c (a.cols x b.cols, T's type) = A^T B, sums over blocks of rows in double. */
gnomon_status gnomon_tall_cross(gnomon_context *ctx, const gnomon_tall *a, const gnomon_tall *b,
                                void *c);
/* out = alpha * A m + beta * out, m: a.cols x out.cols of the same type. */
void gnomon_tall_multiply(gnomon_context *ctx, double alpha, const gnomon_tall *a, const void *m,
                          double beta, const gnomon_tall *out);
/* out = A m, m: a.cols x out.cols double; computed in double precision, then rounded. */
gnomon_status gnomon_tall_multiply_f64(gnomon_context *ctx, const gnomon_tall *a, const double *m,
                                       const gnomon_tall *out);
/* B -= A (A^T B). */
gnomon_status gnomon_tall_deflate(gnomon_context *ctx, const gnomon_tall *a, const gnomon_tall *b);
/* norms[j] = the length of column j, without overflow or underflow on the way. */
void gnomon_tall_norms(gnomon_context *ctx, const gnomon_tall *t, double *norms);
/* Copies a's columns [from, from + count) to out's from 'to' on. */
void gnomon_tall_copy(gnomon_context *ctx, const gnomon_tall *a, int64_t from, int64_t count,
                      const gnomon_tall *out, int64_t to);

/* Copies a to out, of the same shape, between the types. */
void gnomon_tall_convert(gnomon_context *ctx, const gnomon_tall *a, const gnomon_tall *out);

/* Flips the sign of columns whose entry of largest magnitude, the first such, is negative; down[j]
 * tells whether it did. */
gnomon_status gnomon_tall_fix_signs(gnomon_context *ctx, const gnomon_tall *t, bool *down);

/* Doubles to the type of a tall matrix. */
void gnomon_f64_to_type(bool f64, int64_t count, const double *from, void *to);

#endif

/* quality/lengths.h: squared norms and distances in fp64, safe over the whole range. */
#ifndef GNOMON_QUALITY_LENGTHS_H
#define GNOMON_QUALITY_LENGTHS_H

#include <gnomon/matrix.h>

/* sum * scale^2, kept apart so that neither overflows nor underflows. sum is 0 only when
 * every difference is. */
typedef struct gnomon_length {
    double sum, scale;
} gnomon_length;

enum { GNOMON_LENGTH_PIECE = 4096 }; /* columns converted at a time */

/* Squared distance of rows i and j of m, or squared norm of row i when j < 0. scratch holds
 * 2 * GNOMON_LENGTH_PIECE numbers. Sums run over columns in order in four interleaved
 * chains: relative error below (cols / 4 + 8) 2^-53. */
gnomon_length gnomon_length_dense(const gnomon_matrix *m, int64_t i, int64_t j, double *scratch);

/* Sparse rows with ascending, distinct columns. */
typedef struct gnomon_sorted_rows {
    int64_t rows;
    int64_t *offsets; /* rows + 1, the first 0 */
    int64_t *columns;
    double *values;
} gnomon_sorted_rows;

gnomon_length gnomon_length_sparse(const gnomon_sorted_rows *m, int64_t i, int64_t j);

/* Sorts and adds up duplicates. Checks the view's rules: DATA. Errors: also MEMORY. */
gnomon_status gnomon_sorted_rows_make(gnomon_context *ctx, const gnomon_csr *csr,
                                      gnomon_sorted_rows *out);
void gnomon_sorted_rows_free(gnomon_context *ctx, gnomon_sorted_rows *rows);

/* |x|_4^4 / |x|_2^4 of the same rows, or of row i; NaN when it is zero. */
double gnomon_coherence_dense(const gnomon_matrix *m, int64_t i, int64_t j, double *scratch);
double gnomon_coherence_sparse(const gnomon_sorted_rows *m, int64_t i, int64_t j);

/* a / b - 1 of the squared lengths; NaN when b is zero. */
double gnomon_length_distortion(gnomon_length a, gnomon_length b);

#endif

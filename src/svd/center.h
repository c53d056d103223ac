/* svd/center.h: A - 1 mean^T without a copy of it.
 *
 * Rows of dense data are handed out less the mean, piece by piece, by a subtraction in fp64 that
 * is rounded once to the work's type: A W - 1 (mean^T W) would lose the digits in which a row and
 * the mean agree. Sparse rows stay as they are, and their products have the second term taken off,
 * in fp64 sums whose rounding center.rounding bounds.
 *
 * Standardized, the columns are also divided by their standard deviations, n - 1 in the
 * denominator: of dense rows before they are rounded to the work's type, of sparse rows before the
 * products, whose second term is of the mean over them. A column of equal numbers is 0.
 *
 * A column's sum is that of pairs of numbers (Dekker 1971; Ogita, Rump & Oishi 2005): to about
 * 2^-100 of the sum of magnitudes it is exact. Rows are cut by the shape alone. */
#ifndef GNOMON_SVD_CENTER_H
#define GNOMON_SVD_CENTER_H

#include "svd/row_source.h"

/* One pass that refuses NaN and infinity and finds center.mean, and another that finds center.scale
 * of standardized ones; of sparse rows also norm and rounding. Sets the exponent that the
 * magnitudes ask for before anything is taken off. Once the mean is known it does nothing. */
gnomon_status gnomon_center_find(gnomon_row_source *source);
/* A step of that on a rank that serves. */
struct gnomon_row_step;
gnomon_status gnomon_center_serve(gnomon_row_source *source, const struct gnomon_row_step *told);
/* Room for the mean, and how rows are summed, which is all that a device needs that finds it. */
gnomon_status gnomon_center_open(gnomon_row_source *source);
/* Fills the buffer with the next rows less the mean. Of rows that are read once it is less the mean
 * of the first ones, which also determine the exponent, and checks for NaN and infinity. */
gnomon_status gnomon_center_next(gnomon_row_source *source, gnomon_piece *piece);
/* When all rows were read once: center.mean and norm of all of them; *offset: cols numbers, the
 * mean less what was taken off, scaled, to be freed. */
gnomon_status gnomon_center_end(gnomon_row_source *source, double **offset);
void gnomon_center_close(gnomon_row_source *source);

/* Whether the terms of a centred product may be so many times as long as their difference that fp32
 * loses too much of it. */
static inline bool gnomon_center_is_far(const gnomon_row_source *source)
{
    enum { LONGEST_ROWS = 8 };
    return source->centered && source->center.magnitude > LONGEST_ROWS * source->norm;
}

/* x of column j over its standard deviation; 0 where that is 0. */
double gnomon_center_unit(const gnomon_row_source *source, int64_t j, double x);

/* correction[j] = sum over i of x[i] w_ij (x NULL: of w_ij), for w's columns j, in pairs of
 * numbers.
 */
void gnomon_center_sums(gnomon_context *ctx, const gnomon_tall *w, const double *x,
                        double *correction);
/* t (rows x cols) less the correction in each row. */
void gnomon_center_subtract(gnomon_context *ctx, const gnomon_tall *t, const double *correction);
/* correction (count of them) = rows [row, row + count) of the operator times x (its d numbers). */
gnomon_status gnomon_center_sketch(gnomon_context *ctx, const gnomon_operator *op, int64_t row,
                                   const double *x, int64_t count, double *correction);

#endif

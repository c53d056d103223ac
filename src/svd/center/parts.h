/* svd/center/parts.h: what the means' passes and the rows less them share. */
#ifndef GNOMON_SVD_CENTER_PARTS_H
#define GNOMON_SVD_CENTER_PARTS_H

#include "svd/center.h"

#include <math.h>

enum { GNOMON_SUM_FIGURES = 3 }; /* behind the sums of columns */

/* (*high, *low) += x */
static inline void gnomon_pair_add(double x, double *high, double *low)
{
    const double sum = *high + x, rest = sum - *high;
    *low += (*high - (sum - rest)) + (x - rest);
    *high = sum;
}

/* (high + low) / count, rounded once but for ties. */
static inline double gnomon_pair_quotient(double high, double low, double count)
{
    const double sum = high + low, rest = low - (sum - high), q = sum / count;
    return q + (fma(-q, count, sum) + rest) / count;
}

/* What differences of two finite numbers are taken times so that they are finite. */
static inline double gnomon_center_halving(const gnomon_row_source *s)
{
    return s->center.halved ? 0.5 : 1;
}

/* What a number and its column's mean are taken times before one is taken off the other. */
static inline double gnomon_center_factor(const gnomon_row_source *s)
{
    return s->standardized ? gnomon_center_halving(s) : ldexp(1.0, -s->exponent);
}

static inline double gnomon_over(double x, double by)
{
    return by > 0 ? x / by : 0;
}

/* Rows [row, row + rows) of the stored numbers to center.rows; fewer only at the end. */
gnomon_status gnomon_center_read(gnomon_row_source *s, int64_t row, int64_t rows, int64_t *got);
/* Fails with NONFINITE where one of those is not finite; *largest: at least their magnitudes. */
gnomon_status gnomon_center_check(gnomon_row_source *s, int64_t row, int64_t rows, double *largest);
/* center.parts: sums of parts of these rows, times 2^-shift, in pairs; adds them to sums. */
void gnomon_center_sum(gnomon_row_source *s, int64_t rows, int shift);
void gnomon_center_add(const gnomon_row_source *s, int64_t rows, double *sums);

#endif

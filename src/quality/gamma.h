/* quality/gamma.h: the chi-square law's tails, for the exact bound on k. */
#ifndef GNOMON_QUALITY_GAMMA_H
#define GNOMON_QUALITY_GAMMA_H

/* ln P(X < x) and ln P(X > x) for X chi-square with k degrees of freedom, k > 0, x > 0.
 * Absolute error of the logarithm about 1e-15 k, so that a probability far below what a
 * double holds is still good.
 * Series and continued fraction of the incomplete gamma function (Abramowitz and Stegun
 * 1964, 6.5.29 and 6.5.31). */
double gnomon_chi2_log_below(double k, double x);
double gnomon_chi2_log_above(double k, double x);

#endif

/* svd/factor.h: the steps between the source and the result. */
#ifndef GNOMON_SVD_FACTOR_H
#define GNOMON_SVD_FACTOR_H

#include "linalg/orth.h"
#include "svd/row_source.h"

/* One factorisation at work. Numbers are those of the scaled matrix until the end. */
typedef struct gnomon_factor {
    gnomon_context *ctx;
    gnomon_row_source source;
    gnomon_svd_options options; /* defaults filled in */
    bool f64;
    gnomon_orth_count orth;
    gnomon_svd *out; /* figures go here as they come */

    gnomon_operator *op; /* of the projection */
    gnomon_operator
        *test_vectors; /* gaussian, not scaled, far more rows and columns than are used */

    /* A is nearly Q B with Q: m x s orthonormal and B^T: n x s. With of_transpose A^T is, with Q: n
     * x s and B^T: m x s. */
    gnomon_tall q, bt;
    bool of_transpose;
    double rest;     /* with a tolerance: a figure that |A - Q B|_F does not exceed; else NaN */
    double rounding; /* what of its square is allowance for rounding */

    gnomon_tall u, v; /* m x rank, n x rank */
    double *s;        /* of all columns */

    double longest_test_vector; /* the length of the longest that was drawn */
    gnomon_tall seen; /* A times the test vectors, when rows are read once; else no data */
    double clock;
} gnomon_factor;

/* Offers it to the context's device, as base/device.h says. */
gnomon_status gnomon_factor_on_device(gnomon_factor *f, bool *done);

/* How many columns a projection has for the rank that is asked for. */
int64_t gnomon_factor_columns(const gnomon_factor *f);
/* Draws the operator: 'columns' rows, with 'start' at least 8. Without one in the options it is
 * gaussian, or sparse where it is no more than the start of iterations. */
gnomon_status gnomon_factor_operator(gnomon_factor *f, int64_t columns, bool start);

/* Fills q and bt: a fixed number of columns; as many as the tolerance asks for; reading once. */
gnomon_status gnomon_range_fixed(gnomon_factor *f);
/* Makes z (cols x columns), orthonormal, of sparse rows by a Krylov space of about the accuracy
 * that options.power iterations have. *done false: it does not suit the matrix, z is not made. */
gnomon_status gnomon_range_krylov(gnomon_factor *f, int64_t columns, gnomon_tall *z, bool *done);
/* Whether the shape, the columns and the power may suit it; how many columns the space has, in
 * whole blocks, the last GNOMON_KRYLOV_AGAIN of them from a second start. */
bool gnomon_krylov_suits(int64_t rows, int64_t cols, int64_t columns, int power);
int64_t gnomon_krylov_columns(int64_t columns, int power);
enum { GNOMON_KRYLOV_AGAIN = 2 };
/* Whether it fits the context's memory limit, or takes no more than other steps; and of sparse
 * rows, once their number is known, whether the smallest form fits. Errors: MEMORY. */
bool gnomon_factor_krylov_fits(const gnomon_factor *f);
gnomon_status gnomon_factor_check_memory(const gnomon_factor *f, bool iterates);
/* What gnomon_svd_memory tells; the options are checked. */
int64_t gnomon_factor_memory(gnomon_context *ctx, int64_t rows, int64_t cols, bool f64,
                             const gnomon_svd_options *options);
gnomon_status gnomon_range_adaptive(gnomon_factor *f);
gnomon_status gnomon_range_single(gnomon_factor *f);
/* As many columns as the tolerance asks for, found by the squares of the singular values. *met
 * false: the tolerance is too small for that, or rounding came in between, and nothing is filled.
 */
gnomon_status gnomon_range_energy(gnomon_factor *f, bool *reached);

/* What part of l is the shift of an iteration, 1 ... power - 1, out of 'power'; iteration 0 has
 * none. */
double gnomon_shift_share(int power, int iteration);
/* z = -shift z r^-1, what is to be added to A^T q so that it spans (A^T A - shift) z; q r = A z.
 * Zero when no shift can be had. r is overwritten. */
gnomon_status gnomon_shift_begin(gnomon_factor *f, const gnomon_tall *z, double shift, double *r);
/* The operator of the second sketch of rows that are read once: gaussian, not scaled, for any
 * number of them. The caller destroys it. */
gnomon_status gnomon_factor_psi(gnomon_factor *f, gnomon_operator **psi);

/* How many of f->s to keep, and, with a tolerance, whether that meets it. */
int64_t gnomon_choose_rank(gnomon_factor *f, int64_t columns);
/* Memory for U or Vt as the caller wants it: 'given' or of the context's allocator. */
gnomon_status gnomon_factor_room(gnomon_factor *f, const gnomon_matrix *given, int64_t rows,
                                 int64_t cols, const char *what, gnomon_matrix *out);
/* From q and bt to u, s and v; drops q. */
gnomon_status gnomon_small_svd(gnomon_factor *f);

/* g (cols x count) = test vectors 'first', ... as columns. */
gnomon_status gnomon_test_vectors(gnomon_factor *f, int64_t first, int64_t count, gnomon_tall *g);
/* e = A g - b (diag(s) (c^T g)), a source pass; s NULL: ones. */
gnomon_status gnomon_test_residual(gnomon_factor *f, const gnomon_tall *g, const gnomon_tall *b,
                                   const double *s, const gnomon_tall *c, gnomon_tall *e);
/* Estimate and bound of |E|_F from the columns of e = E g. */
gnomon_status gnomon_test_frobenius(gnomon_factor *f, const gnomon_tall *e, double *estimate,
                                    double *bound);
/* The same from their lengths, each off by 'rounding' at most. */
void gnomon_frobenius_of(const double *norms, int64_t count, double rounding, double *estimate,
                         double *bound);
/* The same bound, but with probability 'failure', of an E with |E|_2 <= spectral. */
double gnomon_frobenius_bound(double estimate, double spectral, int64_t count, double failure);
/* The columns of E g, and of 'power' pairs of products beyond, each begun with what the one before
 * gave divided by its longest. */
typedef struct gnomon_lengths {
    int power;
    double logarithms; /* of the longest, summed; -infinity when one was 0 */
    double ratio;      /* the largest by which a column grew in the last pair: at most |E|_2^2 */
    double longest;    /* of the last */
} gnomon_lengths;

void gnomon_lengths_begin(gnomon_lengths *l, int power);
/* The next ones; before: the ones before, NULL for the first. */
void gnomon_lengths_add(gnomon_lengths *l, const double *now, const double *before, int64_t count);
/* What |E|_F does not exceed whatever the test vectors say, but for a factor that is no projection:
 * |A - U S V^T|_F^2 is |A|_F^2 less the squares of S, with an allowance for rounding. */
double gnomon_certain_bound(const gnomon_factor *f);
/* Estimate of |E|_2 and both bounds, that of |E|_F from its estimate, none above 'certain'. The
 * products were off by at most 'rounding', for test vectors as long as they are. */
void gnomon_bounds_of(gnomon_svd *out, const gnomon_lengths *l, int64_t count, double rounding,
                      double certain);
/* The certificate of u, s and v, and the measured residual. */
gnomon_status gnomon_certify(gnomon_factor *f);

/* The probability by which a bound may fail. */
#define GNOMON_FAILURE 1e-6

#endif

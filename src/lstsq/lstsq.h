/* lstsq/lstsq.h: one least-squares problem at work, and the steps between its data and its result.
 *
 * Numbers are those of the scaled problem until the end: A times 2^-exponent, column j of b times
 * 2^-exponent[j]. Small matrices are double, row-major, without gaps. */
#ifndef GNOMON_LSTSQ_LSTSQ_H
#define GNOMON_LSTSQ_LSTSQ_H

#include <gnomon/lstsq.h>

#include "linalg/orth.h"
#include "svd/row_pass.h"

/* Gaussian vectors by which |I - omega H| is bounded, H the preconditioned A^T A; test_vectors.c.
 */
typedef struct gnomon_h_test_vectors {
    double *now,
        *before; /* rank x count: Chebyshev polynomials of I - omega H, times the vectors */
    int64_t count, steps;
    double omega, guess;
    double bound; /* |I - omega H| is at most this but with probability GNOMON_LSTSQ_FAILURE */
} gnomon_h_test_vectors;

typedef struct gnomon_underdetermined gnomon_underdetermined; /* underdetermined.h */

typedef struct gnomon_solver {
    gnomon_context *ctx;
    gnomon_lstsq *out; /* figures go here as they come */
    gnomon_lstsq_options options;
    gnomon_row_source source;
    const gnomon_matrix *b;
    int64_t n, d, m;
    int *exponent;          /* of each b */
    double *norm_b;         /* of each b, scaled */
    double lambda;          /* scaled */
    double norm;            /* |A|_F, with lambda of A above lambda I; scaled */
    double norm_of_columns; /* the same of A D^-1 */
    double clock;

    gnomon_operator *op;      /* NULL: A itself is factored */
    gnomon_descriptor wanted; /* of the operator, but for its k and d */
    gnomon_tall sa, sb;       /* S A (k x d) and S b (k x m) */
    double *r, *qb; /* from A^T A in their place: R of A D^-1 (with lambda: of that above lambda
                       D^-1), Q^T b; else NULL */

    /* Columns of very different lengths are brought to like ones: D^-1 has powers of two on its
     * diagonal. S A D^-1 = Q U diag(sigma) V^T; P = D^-1 V / sigma, of the first rank columns, is
     * the preconditioner. */
    double *columns; /* d: D^-1; NULL: D = I */
    double *sigma;   /* d, falling; with lambda: those of S A above lambda I, times D^-1 */
    double *v;       /* d x d */
    int64_t rank;
    double largest, least; /* of S A, with lambda above lambda I: of those that count */

    double *x; /* d x m */
    gnomon_h_test_vectors test_vectors;

    gnomon_underdetermined *underdetermined; /* NULL, or A had more columns than rows and is its
                                                transpose from here on */
} gnomon_solver;

/* One pass over A. Rows of A come by blocks; of each block t = A in, or t = b - A in with
 * against_b, and then z += A^T t. */
typedef struct gnomon_sweep {
    const double *in; /* d x cols */
    int64_t cols;     /* with against_b: m */
    bool against_b;
    double *z;               /* out: d x cols, A^T t */
    double *squares;         /* out, unless NULL: cols, |t_j|^2 */
    gnomon_matrix *residual; /* out, unless NULL: n x m, t, unscaled */
    double *gram;            /* out, unless NULL: d x d, A^T A, A dense; then
                                t = b and in is NULL */
} gnomon_sweep;
gnomon_status gnomon_sweep_rows(gnomon_solver *s, const gnomon_sweep *sweep);
/* The part of a rank that serves, of a sweep and of a sketch. */
gnomon_status gnomon_sweep_serve(gnomon_solver *s, const gnomon_row_step *step);
gnomon_status gnomon_solver_sketch_serve(gnomon_solver *s, const gnomon_row_step *step);

/* Copies columns of rows [row, row + rows) of b to out (rows x m), scaled. */
void gnomon_solver_read_b(const gnomon_solver *s, int64_t row, int64_t rows, double *out);
/* Looks through b: finite, its exponents, its norms. */
gnomon_status gnomon_solver_scan_b(gnomon_solver *s);

/* How many rows the operator is to have; 0: none, A itself is factored. */
int64_t gnomon_solver_rows(const gnomon_solver *s);
/* Whether A^T A is likely to take less time than a sketch. */
bool gnomon_solver_gram_is_cheaper(const gnomon_solver *s);
/* Where it is, and A's columns are far from dependent: fills r and qb, and scales the columns. */
gnomon_status gnomon_gram_precondition(gnomon_solver *s);
/* Fills sa and sb. */
gnomon_status gnomon_solver_sketch(gnomon_solver *s);
/* From these to sigma, v, rank, p, and to the x of the sketched problem; drops them. */
gnomon_status gnomon_solver_precondition(gnomon_solver *s);

/* a (d x cols) = D^-1 a. */
void gnomon_solver_scale(const gnomon_solver *s, double *a, int64_t cols);
/* Makes s->columns from the columns' norms where these differ much. */
gnomon_status gnomon_columns_scale(gnomon_solver *s, const double *norms);
/* Brings the columns of sa to like lengths where they differ much (columns.c): then s->columns is
 * there. *nonzero: the columns that are not 0, with lambda below them. */
gnomon_status gnomon_columns_level(gnomon_solver *s, int64_t *nonzero);
/* r and qb (Q^T S b) of the sketch become those of the sketch above lambda D^-1. */
gnomon_status gnomon_columns_lambda(gnomon_solver *s, double *r, double *qb);
/* r becomes that of A's own columns, and s->columns NULL. */
void gnomon_columns_back(gnomon_solver *s, double *r);
/* Finds s->largest and s->least; r is destroyed. */
gnomon_status gnomon_columns_figures(gnomon_solver *s, double *r);

/* out (d x cols) = P y. scaled: rank x cols. */
void gnomon_solver_multiply_p(const gnomon_solver *s, const double *y, int64_t cols, double *scaled,
                              double *out);
/* h (rank x cols) = H y, H = P^T (A^T A + lambda^2 I) P: one pass. */
gnomon_status gnomon_solver_apply(gnomon_solver *s, const double *y, int64_t cols, double *h);
/* The same in memory of the caller's: scratch is 2 d x cols. */
gnomon_status gnomon_solver_apply_in(gnomon_solver *s, const double *y, int64_t cols,
                                     double *scratch, double *h);

/* Draws the test vectors (rank x options.test_vectors), when there are any. */
gnomon_status gnomon_test_vectors_draw(gnomon_solver *s);
/* Takes one step with h, rank x cols, whose columns from 'first' on are H times the test vectors.
 */
void gnomon_test_vectors_step(gnomon_solver *s, const double *h, int64_t cols, int64_t first);
/* Steps until the bound is good or no longer gets better. */
gnomon_status gnomon_test_vectors_estimate(gnomon_solver *s);
void gnomon_test_vectors_drop(gnomon_solver *s);

/* What is known of s->x; all scaled. */
typedef struct gnomon_state {
    double *plain;      /* m: |b - A x|^2 */
    double *squares;    /* m: with lambda^2 |x|^2 */
    double *norm_x;     /* m */
    double *norm_dx;    /* m: |D x| */
    double *g;          /* d x m: V^T D^-1 (A^T (b - A x) - lambda^2 x) */
    double *transposed; /* d x m: V^T D x */
    double *error;      /* m: the backward error, relative */
} gnomon_state;
/* a / b, where 0 / 0 is 0. */
static inline double gnomon_ratio(double a, double b)
{
    return a == 0 ? 0 : a / b;
}
/* What a figure that is a sum of so many terms may have lost by rounding, relative to what it is
 * the sum of: 4 units of roundoff times the root of their number, as independent errors add up. */
double gnomon_solver_loss(double terms);
/* The same of a sum over rows, cut as a sweep cuts it. */
double gnomon_solver_loss_of_rows(const gnomon_solver *s);

/* Computes state from s->x by one pass; residual may be NULL. */
gnomon_status gnomon_solver_evaluate(gnomon_solver *s, gnomon_state *state,
                                     gnomon_matrix *residual);
/* Conjugate gradients on what is left, again and again; leaves the best x in s->x, and state of it.
 */
gnomon_status gnomon_solver_iterate(gnomon_solver *s, gnomon_state *state);
/* Rounds x to the type wanted, scales back, and fills the result's figures. */
gnomon_status gnomon_solver_finish(gnomon_solver *s, gnomon_state *state);
/* Those that are not a single solution's. */
void gnomon_solver_tell(gnomon_solver *s);

/* The probability by which a bound may fail. */
#define GNOMON_LSTSQ_FAILURE 1e-6
/* As many steps of the test vectors at most; each has its share of that probability. */
enum { GNOMON_TEST_STEPS = 32 };

#endif

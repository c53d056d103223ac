/* underdetermined.h: A with more columns than rows. The solver works on the transpose T = A^T,
 * which is tall: s->x is y (as long as A has rows) and the solution x = T y, the shortest there is.
 */
#ifndef GNOMON_LSTSQ_UNDERDETERMINED_H
#define GNOMON_LSTSQ_UNDERDETERMINED_H

#include "lstsq/lstsq.h"

struct gnomon_underdetermined {
    int *exponent;      /* of each b */
    double *right;      /* b, scaled: n x m, n the rows of A */
    double *change;     /* of y, transposed, that x does not have yet: n x m */
    double *left;       /* b - A x, n x m */
    double *x, *best;   /* columns of A x m */
    gnomon_matrix view; /* of x: the right-hand side that a sweep reads and writes */
};

/* Takes b, and puts a solution of zeros in its place for the sweeps. */
gnomon_status gnomon_underdetermined_begin(gnomon_solver *s);
void gnomon_underdetermined_drop(gnomon_solver *s);

/* Takes y's change, n x m, as it is before y is rounded. */
void gnomon_underdetermined_change(gnomon_solver *s, const double *change);
/* Column j of the best x is this one; goes back to it. */
void gnomon_underdetermined_keep(gnomon_solver *s, int64_t j);
void gnomon_underdetermined_go_back(gnomon_solver *s, int64_t j);

/* What gnomon_solver_evaluate, the error it foresees and gnomon_solver_finish are here. squares:
 * |what is left of b in the directions that count|^2. */
gnomon_status gnomon_underdetermined_evaluate(gnomon_solver *s, gnomon_state *state);
double gnomon_underdetermined_error(const gnomon_solver *s, const gnomon_state *state, int64_t j,
                                    double squares);
gnomon_status gnomon_underdetermined_finish(gnomon_solver *s, gnomon_state *state);

/* to: the transpose of a, for gnomon_csr_free. */
gnomon_status gnomon_underdetermined_transpose(gnomon_context *ctx, const gnomon_csr *a,
                                               gnomon_csr *to);

#endif

/* Figures of the problem as a whole, and what rounding may take from a sum. */
#include "lstsq/lstsq.h"

#include <math.h>

double gnomon_solver_loss(double terms)
{
    return 4 * sqrt(terms + 1) * 0x1p-53;
}

double gnomon_solver_loss_of_rows(const gnomon_solver *s)
{
    enum { PART = 256, FEWEST_RANGES = 2, RANGES = 16 };
    const double parts = (double)s->n / (PART * FEWEST_RANGES) + 2 * RANGES;
    return gnomon_solver_loss(PART) + gnomon_solver_loss(parts);
}

void gnomon_solver_tell(gnomon_solver *s)
{
    gnomon_lstsq *out = s->out;
    const double scale = ldexp(1.0, s->source.exponent), p = s->test_vectors.bound;
    out->rank = s->rank;
    out->norm = s->source.norm * scale;
    out->largest = s->rank > 0 ? s->largest * scale : 0;
    out->least = s->rank > 0 ? s->least * scale : 0;
    out->condition = s->rank > 0 ? s->largest / s->least : 1;
    if (s->test_vectors.count == 0 && s->rank > 0) {
        out->low = out->high = (double)NAN;
    } else {
        out->low = p < 1 ? sqrt((1 - p) / s->test_vectors.omega) : 0;
        out->high = sqrt((1 + p) / s->test_vectors.omega);
    }
}

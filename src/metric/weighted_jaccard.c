/* 1 less the sum of the smaller weights by that of the larger ones. */
#include "metric/metric.h"

#include <math.h>

/* The sum of |a - b| by that of max(a, b): no digits cancel, equal rows are at 0 and rows that
 * share nothing at 1, exactly. Members ascend, whichever rows they come from. */
static double weighted_apart(const gnomon_sets *a, int64_t i, const gnomon_sets *b, int64_t j)
{
    int64_t x = a->offsets[i], y = b->offsets[j];
    const int64_t x_end = a->offsets[i + 1], y_end = b->offsets[j + 1];
    double apart = 0, larger = 0;
    while (x < x_end || y < y_end) {
        const bool of_a = x < x_end && (y == y_end || a->members[x] <= b->members[y]);
        const bool of_b = y < y_end && (x == x_end || b->members[y] <= a->members[x]);
        const double u = of_a ? a->weights[x] : 0, v = of_b ? b->weights[y] : 0;
        apart += fabs(u - v);
        larger += fmax(u, v);
        x += of_a;
        y += of_b;
    }
    return larger == 0 ? 0 : apart / larger;
}

const gnomon_metric_row gnomon_metric_row_weighted_jaccard = {
    .info = {.metric = GNOMON_WEIGHTED_JACCARD,
             .name = "weighted-jaccard",
             .aliases = "ruzicka",
             .about = "weights",
             .unit = "possible members",
             .points = GNOMON_POINTS_DENSE | GNOMON_POINTS_SPARSE,
             .flags = GNOMON_METRIC_JOINS | GNOMON_METRIC_HASHED | GNOMON_METRIC_SIMILARITY |
                      GNOMON_METRIC_WEIGHTS},
    .families = {GNOMON_LSH_ICWS},
    .verify_cost = {40, 8, 0},
    .exact_cost = {0.1, 0.5, 0},
    .sets = weighted_apart,
    .by_sums = true,
};

/* One less the share of all members of two sets that both have. */
#include "metric/metric.h"

static double counts(int64_t size, int64_t shared)
{
    return gnomon_jaccard(size, shared);
}

static double sets_apart(const gnomon_sets *a, int64_t i, const gnomon_sets *b, int64_t j)
{
    int64_t x = a->offsets[i], y = b->offsets[j], shared = 0;
    const int64_t x_end = a->offsets[i + 1], y_end = b->offsets[j + 1];
    const int64_t size = x_end - x + y_end - y;
    while (x < x_end && y < y_end) {
        const int64_t u = a->members[x], v = b->members[y];
        shared += u == v;
        x += u <= v;
        y += v <= u;
    }
    return gnomon_jaccard(size, shared);
}

const gnomon_metric_row gnomon_metric_row_jaccard = {
    .info = {.metric = GNOMON_JACCARD,
             .name = "jaccard",
             .aliases = "",
             .about = "sets: sparse points",
             .unit = "possible members",
             .points = GNOMON_POINTS_SPARSE,
             .flags = GNOMON_METRIC_JOINS | GNOMON_METRIC_HASHED | GNOMON_METRIC_DEVICE |
                      GNOMON_METRIC_SIMILARITY},
    .families = {GNOMON_LSH_MINHASH},
    .verify_cost = {40, 6, 0},
    .exact_cost = {0.1, 0.06, 0},
    .sets = sets_apart,
    .counts = counts,
};

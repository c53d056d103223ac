/* Points of many kinds for the tests of codes. */
#ifndef RABITQ_TESTING_H
#define RABITQ_TESTING_H

#include <gnomon/rabitq.h>

#include "search_testing.h"

typedef enum kind {
    BELL,
    CLUSTERS, /* of nonnegative coordinates, many of them 0, as pixels are */
    TAILS,    /* Cauchy */
    COLUMN,   /* one column alone is not 0 */
    EQUAL,
    PAIRS,  /* sums of two axes */
    OFFSET, /* far from 0, close together */
    WILD,   /* each point of a scale of its own */
    ZEROS,  /* a third are zero vectors */
    TERNARY,
    TINY,
    HUGE_ONES,
    KINDS
} kind;

static const char *const kind_names[] = {"bell",   "clusters", "tails", "column",  "equal", "pairs",
                                         "offset", "wild",     "zeros", "ternary", "tiny",  "huge"};

static inline double value_of(kind like, int64_t row, int64_t col, int64_t dim, uint64_t *state)
{
    const double x = draw(state);
    uint64_t cluster = (uint64_t)(row % 5) * 1000003 + (uint64_t)col;
    switch (like) {
    case CLUSTERS: {
        const double centre = draw(&cluster);
        return centre > 0.1 ? fmax(0, 255 * (centre + 0.4 * x)) : 0;
    }
    case TAILS:
        return x / (fabs(draw(state)) + 1e-6);
    case COLUMN:
        return col == dim / 3 ? x : 0;
    case EQUAL:
        return (double)(col % 7) - 3;
    case PAIRS:
        return col == row % dim || col == (row * 7 + 1) % dim ? 1 : 0;
    case OFFSET:
        return 1000 + 1e-3 * x;
    case WILD:
        return ldexp(x, (int)(row % 61 - 30) * 3);
    case ZEROS:
        return row % 3 == 1 ? 0 : x;
    case TERNARY:
        return (double)(draw_bits(state) % 3);
    case TINY:
        return x * 1e-40;
    case HUGE_ONES:
        return x * 1e37;
    default:
        return x;
    }
}

/* Row-major, fp32 or fp64; free its data. */
static inline gnomon_matrix make_points(kind like, gnomon_dtype dtype, int64_t rows, int64_t dim,
                                        uint64_t seed)
{
    uint64_t state = seed;
    void *data = malloc((size_t)(rows * dim + 1) * 8);
    assert_non_null(data);
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < dim; j++) {
            const double x = value_of(like, i + (int64_t)(seed % 3), j, dim, &state);
            if (dtype == GNOMON_F32)
                ((float *)data)[i * dim + j] = (float)x;
            else
                ((double *)data)[i * dim + j] = x;
        }
    }
    return gnomon_matrix_rowmajor(data, dtype, rows, dim);
}

static inline double at(const gnomon_matrix *m, int64_t i, int64_t j)
{
    const int64_t place = i * m->row_stride + j * m->col_stride;
    return m->dtype == GNOMON_F32 ? (double)((const float *)m->data)[place]
                                  : ((const double *)m->data)[place];
}

static inline gnomon_rabitq *index_of(gnomon_context *ctx, gnomon_metric metric, int64_t bits,
                                      uint64_t seed, const gnomon_matrix *base)
{
    gnomon_rabitq_options o = GNOMON_RABITQ_OPTIONS_INIT;
    gnomon_rabitq *index = NULL;
    o.metric = metric;
    o.bits = bits;
    o.seed = seed;
    expect(ctx, gnomon_rabitq_create(ctx, &o, base, &index), GNOMON_OK);
    return index;
}

static inline void same_answers(const gnomon_neighbors *a, const gnomon_neighbors *b,
                                const char *what)
{
    assert_int_equal(a->queries, b->queries);
    assert_int_equal(a->k, b->k);
    for (int64_t i = 0; i < a->queries * a->k; i++)
        if (a->ids[i] != b->ids[i] || memcmp(&a->distances[i], &b->distances[i], 8) != 0)
            fail_msg("%s: answer %d of query %d is %d at %.17g, not %d at %.17g", what,
                     (int)(i % a->k), (int)(i / a->k), (int)a->ids[i], a->distances[i],
                     (int)b->ids[i], b->distances[i]);
}

static inline gnomon_neighbors search(gnomon_context *ctx, const gnomon_rabitq *index,
                                      const gnomon_matrix *queries, const gnomon_search_options *o,
                                      double recall, int64_t rerank)
{
    gnomon_neighbors found = {.struct_size = sizeof found};
    gnomon_rabitq_params p = GNOMON_RABITQ_PARAMS_INIT;
    p.recall = recall;
    p.rerank = rerank;
    expect(ctx, gnomon_rabitq_query(ctx, index, queries, o, &p, &found), GNOMON_OK);
    return found;
}

static inline gnomon_search_options wish(gnomon_metric metric, int64_t k)
{
    gnomon_search_options o = GNOMON_SEARCH_OPTIONS_INIT;
    o.metric = metric;
    o.k = k;
    return o;
}

#endif

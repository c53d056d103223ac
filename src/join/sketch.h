/* join/sketch.h: points in a few coordinates, whose products bound the points' own from above.
 *
 * With the rows of V orthonormal and R(X) = |X - V^T V X|, the Cauchy-Schwarz inequality gives
 *   P.B <= (V P).(V B) + R(P) R(B),
 * so that the points (V X, R(X)) may stand for the points X wherever a product is only to be
 * bounded from above: they are no farther from each other than X are, and their norms are the same.
 * V holds leading directions of some of the points, by orthogonal iteration; whatever it is, no
 * pair is lost. sketch.c has the bound on what rounding does to this. */
#ifndef GNOMON_JOIN_SKETCH_H
#define GNOMON_JOIN_SKETCH_H

#include "join/state.h"
#include "search/filter.h"

enum { GNOMON_SKETCH_MOST = 128 }; /* directions */

typedef struct gnomon_join_sketch {
    gnomon_search search; /* metric, kernels, centre: what keys and errors read of one */
    const gnomon_kernels *kernels;
    float *v;           /* directions as the lanes of tiles: tiles x cols x GNOMON_LANES */
    int64_t directions; /* of the filter; 0: none pays */
    int64_t second;     /* of the second filter, at least as many */
    bool twice;         /* there is a second filter */
    int64_t steps;      /* of the filter: directions, the rest, and two under COSINE */
    int64_t bytes_ld;  /* bytes of a point for the second filter: its directions, the rest, zeros */
    double scale;      /* of these */
    int64_t chain;     /* steps of fp32 sums */
    int64_t words, ld; /* words of a point, and of a packed query */
    int bits;          /* of the filter's coordinates: 32 (fp32), 16 or 8 */
    int most;          /* the largest of 16 or 8 bits */
    double defect;     /* how far from the truth products in these coordinates may be, as a share of
                          the norms' product */
    double pass;       /* share of some pairs that went through */
} gnomon_join_sketch;

/* A point's place in it. */
typedef struct gnomon_sketched {
    gnomon_filter_query facts;
    gnomon_filter filter; /* slack, norm, floor, scale */
    double bias, squares, norm;
    float lost;           /* by rounding to the second filter's bytes */
    float moved;          /* the same of a query of the filter */
    double moved_squares; /* of the query as it is then */
    float rest;           /* outside the filter's directions */
    bool zero;            /* a zero vector under COSINE */
} gnomon_sketched;

/* Points as queries and as tiles. */
typedef struct gnomon_sketch_block {
    int64_t first, count, room;
    int8_t *bytes; /* count x bytes_ld: V X, and the rest, turned */
    gnomon_sketched *points;
    uint32_t *queries; /* count x ld */
    void *tiles;       /* padded count x words */
    float *bias;
    gnomon_blur *blurs;
} gnomon_sketch_block;

/* Finds V from a sample of q's points and decides whether it pays at the threshold. Errors:
 * MEMORY. */
gnomon_status gnomon_sketch_open(gnomon_join_sketch *sketch, const gnomon_join_state *join,
                                 const gnomon_matrix *some);
void gnomon_sketch_close(gnomon_join_sketch *sketch);

/* Fills a block with m's points; as_queries, as_tiles: what they will be. Errors: MEMORY. */
gnomon_status gnomon_sketch_fill(gnomon_join_sketch *sketch, const gnomon_matrix *m,
                                 bool as_queries, bool as_tiles, gnomon_sketch_block *block);
void gnomon_sketch_drop(gnomon_join_sketch *sketch, gnomon_sketch_block *block);
/* Bytes of a point in a block. */
int64_t gnomon_sketch_bytes(const gnomon_join_sketch *sketch);

/* Whether the filter is one of distances between rounded points, else of products. */
static inline bool gnomon_sketch_by_distance(const gnomon_join_sketch *sketch)
{
    return sketch->bits == 8 && sketch->search.options.metric != GNOMON_IP;
}

/* The filter of a query for keys up to 'key'. */
void gnomon_sketch_ask(const gnomon_join_sketch *sketch, const gnomon_sketched *point, double key,
                       gnomon_filter *filter);

/* The second filter: whether point 'first' of p and point 'at' of q may be within the threshold.
 * least: the score of that, as gnomon_filter_least tells. */
bool gnomon_sketch_may(const gnomon_join_sketch *sketch, const gnomon_sketch_block *p,
                       int64_t first, const gnomon_sketch_block *q, int64_t at, double least);

/* ---- sketch_pairs.c ---- */
/* Adds the pairs of rows [row, row + count) of 'band' (whose points are in 'p') with all points of
 * 'piece' (in 'q'), within the threshold; *fits is cleared when they are more than
 * join->pair_room. */
gnomon_status gnomon_sketch_pairs(gnomon_join_sketch *sketch, gnomon_join_state *join,
                                  const gnomon_matrix *band, const gnomon_sketch_block *p,
                                  int64_t row, int64_t count, const gnomon_matrix *piece,
                                  const gnomon_sketch_block *q, bool *fits);

#endif

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
    double *v;            /* directions x cols, row-major */
    int64_t directions;   /* of the filter; 0: none pays */
    int64_t second;       /* of the second filter, at least as many */
    int64_t steps;        /* of the filter: directions, the rest, and two under COSINE */
    int64_t ld;           /* words of a packed query */
    int most;             /* the largest 16-bit coordinate; 0: coordinates stay fp32 */
    double defect; /* how far from the truth products in these coordinates may be, as a share of
                      the norms' product */
    double pass;   /* share of some pairs that went through */
} gnomon_join_sketch;

/* A point's place in it. */
typedef struct gnomon_sketched {
    gnomon_filter_query facts;
    gnomon_filter filter; /* slack, norm, floor, scale */
    double bias, squares, norm;
    float rest; /* outside the filter's directions */
    bool zero;  /* a zero vector under COSINE */
} gnomon_sketched;

/* Points as queries and as tiles. */
typedef struct gnomon_sketch_block {
    int64_t first, count, room;
    float *rows; /* count x (second + 1): V X, and the rest */
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

/* The second filter: whether a pair may be within the threshold. f64: the first point's row in
 * fp64; least: the score it asks for. */
bool gnomon_sketch_may(const gnomon_join_sketch *sketch, const double *f64,
                       const gnomon_sketched *p, float least, const gnomon_sketch_block *q,
                       int64_t at);

/* ---- sketch_pairs.c ---- */
/* Adds the pairs of rows [row, row + count) of 'band' (whose points are in 'p') with all points of
 * 'piece' (in 'q'), within the threshold; *fits is cleared when they are more than
 * join->pair_room. */
gnomon_status gnomon_sketch_pairs(gnomon_join_sketch *sketch, gnomon_join_state *join,
                                  const gnomon_matrix *band, const gnomon_sketch_block *p,
                                  int64_t row, int64_t count, const gnomon_matrix *piece,
                                  const gnomon_sketch_block *q, bool *fits);

#endif

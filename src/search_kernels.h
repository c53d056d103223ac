/* search_kernels.h: the kernels that src/search/ drives. All levels give the same bits.
 *
 * A search compares scores, larger for nearer points: the product of two centred points plus a
 * number of the base point's own (its bias). Scores in fp32 are a filter: each comes with a bound
 * on its error, and candidates are verified by sums in fp64.
 *
 * Base points come in tiles of GNOMON_LANES, coordinate-major as in kernels.h; queries row-major.
 */
#ifndef GNOMON_SEARCH_KERNELS_H
#define GNOMON_SEARCH_KERNELS_H

#include <gnomon/matrix.h>

#include <stdbool.h>
#include <stdint.h>

/* Points of a tile. */
enum { GNOMON_LANES = 16 };

/* Kernels may take so many queries at a time. */
#define GNOMON_SIFT_QUERIES 32

/* A point that passed: its score lies in [low, high]. */
typedef struct gnomon_survivor {
    float low, high;
    uint32_t row;
} gnomon_survivor;

/* What a query lets pass. The error of its scores with a tile's points is at most slack * reach +
 * norm * fuzz + blur + floor, and nothing at all where the tile's 'whole' is not below the query's.
 */
typedef struct gnomon_filter {
    float least; /* scores that may reach it pass */
    float slack, norm, floor;
    float scale;   /* of integer coordinates */
    int32_t start; /* what sums of 8-bit coordinates begin with */
    float whole;   /* the query's norm when its centred coordinates are integers, else infinite */
    uint32_t self; /* a row that never passes; UINT32_MAX: none */
    int32_t count, room;
    gnomon_survivor *kept; /* room of them */
} gnomon_filter;

/* A tile's part of the error; 'whole': up to which norm of an integer query its scores are exact;
 * negative when its coordinates are not all integers. */
typedef struct gnomon_blur {
    float reach, fuzz, blur, whole;
    float scale; /* of integer coordinates */
} gnomon_blur;

/* Queries against tiles: of floats, or of pairs of 16-bit integers, a pair a word and a step, or of
 * four 8-bit integers. Steps (coordinates) may come in parts: then 'sums' carries the products
 * from one part to the next, tile by tile, GNOMON_LANES a query. */
typedef struct gnomon_sift {
    const void *queries; /* query q's steps at queries + q * ld; integers' can be read up to a
                          * multiple of GNOMON_SIFT_QUERIES */
    int64_t ld, count;
    gnomon_filter *filters; /* count */
    const void *tiles;      /* tile t's steps at tiles + t * steps * GNOMON_LANES */
    int64_t tile_count, steps;
    const float *bias;        /* tile_count x GNOMON_LANES; read with 'last' */
    const gnomon_blur *blurs; /* tile_count; read with 'last' */
    float *sums;              /* sums_ld x GNOMON_LANES a tile; NULL: all steps come at once */
    int64_t sums_ld;
    bool first, last;
    uint32_t row,
        rows; /* number of the first point, and how many there are: later lanes are none */
    /* Makes room for one more survivor of query q at least; may raise its 'least'. */
    void (*full)(void *arg, int64_t q);
    void *arg;
} gnomon_sift;

/* Bits: queries and points as rows of words. A score is minus the number of bits that differ. */
typedef struct gnomon_sift_bits {
    const uint64_t *queries, *points; /* words each */
    int64_t words, count;
    gnomon_filter *filters;
    uint32_t row, rows;
    void (*full)(void *arg, int64_t q);
    void *arg;
} gnomon_sift_bits;

/* Bits by planes: plane b of a block of points holds bit b of each, GNOMON_PLANES of them at a time
 * (a part of the bits). */
enum {
    GNOMON_PLANE_POINTS = 512,
    GNOMON_PLANES = 512,
    GNOMON_PLANE_LEVELS = 25, /* bits of a sum, of up to 2^24 */
};

typedef struct gnomon_bit_planes {
    /* and one of zeros */
    uint32_t planes[(GNOMON_PLANES + 1) * (GNOMON_PLANE_POINTS / 32)];
    /* how many ones points have in the parts so far: the sum's bits, as planes */
    uint32_t weights[GNOMON_PLANE_LEVELS * (GNOMON_PLANE_POINTS / 32)];
} gnomon_bit_planes;

/* Bits of a sum, which goes up to one more than the points have. */
static inline int gnomon_plane_levels(int64_t bits)
{
    int levels = 6;
    while ((int64_t)1 << levels < bits + 2)
        levels++;
    return levels;
}

/* A query as a list of planes: words before the list, and in all. */
static inline int64_t gnomon_picks_head(int64_t bits)
{
    return ((bits + GNOMON_PLANES - 1) / GNOMON_PLANES + 3 + 3) / 4 * 4;
}
static inline int64_t gnomon_picks_words(int64_t bits)
{
    /* half the bits at the most, two bytes each; those of a part come in groups of eight */
    return gnomon_picks_head(bits) + (bits / 16 + (bits + GNOMON_PLANES - 1) / GNOMON_PLANES) * 4;
}

/* Queries against a part of a block's bits; scores as sift_bits'. Parts come in order. */
typedef struct gnomon_sift_planes {
    const uint32_t *picks; /* query q's at picks + q * ld */
    int64_t ld, count;
    gnomon_filter *filters;
    const gnomon_bit_planes *planes;
    int64_t bits, part;
    int64_t k;          /* 0, or: a point that so many come before need not pass */
    uint32_t *sums;     /* gnomon_plane_levels(bits) planes a query; NULL: one part is all */
    uint32_t row, rows; /* of the block: GNOMON_PLANE_POINTS at most */
    void (*full)(void *arg, int64_t q);
    void *arg;
} gnomon_sift_planes;

/* A sparse row: columns ascend, and each stands once. Its coordinates are values times factor. */
typedef struct gnomon_sparse_row {
    const int64_t *cols;
    const double *values;
    int64_t count;
    double factor;
} gnomon_sparse_row;

/* Which of a piece's rows to compare: those with scores + by_bias * bias + by_heavy * heavy +
 * by_norm * norm not below least. Each array can be read for GNOMON_LANES more than there are. */
typedef struct gnomon_scores {
    const float *scores, *norm;
    const float *bias, *heavy; /* NULL: zeros */
    float by_bias, by_heavy, by_norm, least;
} gnomon_scores;

/* How a level sees 8-bit coordinates. */
typedef struct gnomon_quads {
    int most;         /* the largest */
    int shift;        /* added to a point's to be positive, which 'start' of a filter undoes */
    int words;        /* a point's come in multiples of so many, four coordinates each */
    int halves;       /* 0, or products with so many words of a point are summed in 16 bits, the
                       * first two and the last two coordinates of each apart */
    float product_ns; /* a multiply-add takes on one thread, about */
    float compare_ns; /* and the comparison of a sum */
} gnomon_quads;

/* GNOMON_LANES points of fp32, rows of d adjacent coordinates x * factor - mean, that become
 * integers of 8 bits, at most 'most' large. */
typedef struct gnomon_packing {
    const float *lane[GNOMON_LANES];
    int64_t d;
    const float *mean, *with; /* with: NULL, or what products with them are wanted */
    float factor;
    int most;
    bool integers; /* all x * factor may be integers: else it is not asked */
    /* Of the peak, as points before had it: the first pass makes integers by it, which serve where
     * it holds. 0 to begin with; negative: it did not hold. */
    float guess;
    int8_t *bytes; /* room for them: d in multiples of 64 */
    /* what is told: the largest magnitude, whether all x * factor are integers, what rounding took
     */
    double squares[GNOMON_LANES], dots[GNOMON_LANES];
    float peak, lost[GNOMON_LANES];
    bool whole;
} gnomon_packing;

typedef struct gnomon_search_kernels {
    gnomon_quads quads;
    /* Packs w coordinates of GNOMON_LANES points into a tile: x * factor - mean, in fp32 (for types
     * that fp32 holds, factor the same for all) or in fp64 and then rounded. lane[l] points at the
     * first wanted element of a point; elements are col_stride apart. Returns whether all x *
     * factor are integers. */
    bool (*centre_f32)(const void *const *lane, gnomon_dtype dtype, int64_t col_stride, int64_t w,
                       float factor, const float *mean, float *tile);
    bool (*centre_f64)(const void *const *lane, gnomon_dtype dtype, int64_t col_stride, int64_t w,
                       const double *factor, const double *mean, float *tile);
    /* Adds each lane's squares to 'squares', and its products with 'mean' to 'dots' unless mean is
     * NULL, in fp64. */
    void (*tile_sums)(const float *tile, int64_t w, const float *mean, double *squares,
                      double *dots);
    /* Turns a centred tile of w coordinates into pairs of 16-bit integers, the numbers divided by
     * the scale that it returns and rounded; the largest is 'most', or the scale 1 when 'whole' and
     * they fit. Of an odd number of coordinates the last stands beside zero. Adds to 'lost' the
     * squares of what rounding took, a little more than less. The scale is NaN when a number is not
     * finite. */
    float (*halve)(const float *tile, int64_t w, int most, bool whole, uint32_t *out, float *lost);
    /* The same in 8 bits, four coordinates a word, as 'quads' tells. */
    float (*quarter)(const float *tile, int64_t w, int most, bool whole, uint32_t *out,
                     float *lost);
    /* The same of one point, a query: w numbers, with what rounding took of all of them, to
     * integers of 16 or 8 bits side by side; sum: theirs. Where the scale is NaN none are written.
     */
    float (*round_row)(const float *x, int64_t w, int bits, int most, bool whole, uint32_t *out,
                       float *lost, int32_t *sum);
    /* NULL, or those 8 bits of points of fp32 without a tile: first what there is to tell of them,
     * then the integers, with the scale and what rounding took as 'quarter' tells them. */
    void (*survey_rows)(gnomon_packing *rows);
    float (*quarter_rows)(gnomon_packing *rows, bool whole, uint32_t *out);
    /* A query: out = x * scale - mean, rounded from fp64, of which 'sums' are the squares and the
     * products with the mean, in sixteen interleaved chains. Returns whether all x are integers,
     * and all of out below 2^22. */
    bool (*centre_query)(const double *x, int64_t d, double scale, const double *mean, float *out,
                         double sums[2]);
    void (*sift)(const gnomon_sift *s);
    void (*sift_halves)(const gnomon_sift *s);
    void (*sift_quarters)(const gnomon_sift *s);
    void (*sift_bits)(const gnomon_sift_bits *s);
    /* The same by planes: what a query is made to, 'picks' of gnomon_picks_words; a part of some
     * points' bits, whose rows begin at 'rows' with bytes col_stride apart; and the sift. */
    void (*pick_bits)(const uint64_t *query, int64_t bits, uint32_t *picks);
    void (*turn_bits)(const uint8_t *const *rows, int64_t count, int64_t col_stride, int64_t bits,
                      int64_t part, gnomon_bit_planes *to);
    void (*sift_planes)(const gnomon_sift_planes *s);
    /* Sums in fp64 over d coordinates of one point x, in sixteen interleaved chains of fused
     * multiply-adds that a fixed tree joins: relative error below (d / 16 + 8) 2^-53 of the sum of
     * magnitudes. Of (q - x * factor)^2, of q * x, of (x * factor)^2. */
    double (*differences)(const double *q, const void *x, gnomon_dtype dtype, int64_t col_stride,
                          int64_t d, double factor);
    double (*products)(const double *q, const void *x, gnomon_dtype dtype, int64_t col_stride,
                       int64_t d, double factor);
    double (*squares)(const void *x, gnomon_dtype dtype, int64_t col_stride, int64_t d,
                      double factor);
    /* The first two, with factor 1, of some rows of fp32, adjacent coordinates each. */
    void (*differences_rows)(const double *q, const float *const *rows, int64_t count, int64_t d,
                             double *sums);
    void (*products_rows)(const double *q, const float *const *rows, int64_t count, int64_t d,
                          double *sums);
    /* The sum of (a - b)^2 over d bytes, signed or not, adjacent; below 2^63. */
    int64_t (*differences_bytes)(const void *a, const void *b, bool is_signed, int64_t d);
    /* The first of these in fp32, of fp32: a chain has d / 16 + 1 steps of two roundings, the tree
     * four. */
    float (*differences_f32)(const float *q, const float *x, int64_t d);
    /* As fp64. */
    void (*to_f64)(const void *x, gnomon_dtype dtype, int64_t col_stride, int64_t d, double *out);
    /* 'differences' and 'products' of two sparse rows, with the bits of dense ones, whose factors
     * are q's, multiplied into its coordinates beforehand, and x's. */
    double (*sparse_differences)(const gnomon_sparse_row *q, const gnomon_sparse_row *x);
    double (*sparse_products)(const gnomon_sparse_row *q, const gnomon_sparse_row *x);
    /* scores[rows[i] - first] += by * values[i], each row once; a product and a sum. */
    void (*add_list)(float by, const uint32_t *rows, const float *values, int64_t count,
                     uint32_t first, float *scores);
    /* The same of 2 min(|by|, |values[i]|) where both have one sign: |by| + |v| - |by - v|. */
    void (*add_smaller)(float by, const uint32_t *rows, const float *values, int64_t count,
                        uint32_t first, float *scores);
    /* scores[rows[i]] += the product of 'by' and values + rows[i] * width; width is a multiple of
     * GNOMON_LANES. */
    void (*add_dense)(const float *by, const float *values, int64_t width, const uint32_t *rows,
                      int64_t count, float *scores);
    /* sums[i] = the sum over terms of by * column[first + i], for i in [0, count), of columns of
     * 8-bit numbers. sums has room for the next multiple of GNOMON_LANES, and columns can be read
     * for GNOMON_LANES more than there are. */
    void (*sum_codes)(const float *by, const int8_t *const *columns, int64_t first, int64_t terms,
                      int64_t count, float *sums);
    /* The rows of [0, count) that may reach, ascending; how many. */
    int64_t (*find_rows)(const gnomon_scores *reach, int64_t count, uint32_t *rows);
} gnomon_search_kernels;

#endif

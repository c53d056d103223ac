/* rabitq_kernels.h: the kernels that src/rabitq/ drives. All levels give the same bits.
 *
 * m, the number of rotated coordinates, is a multiple of 16. A code u of b bits stands for the
 * number u - (2^b - 1) / 2. */
#ifndef GNOMON_RABITQ_KERNELS_H
#define GNOMON_RABITQ_KERNELS_H

#include <stdint.h>

enum {
    GNOMON_RABITQ_ROUNDS = 4,
    GNOMON_RABITQ_QUERIES = 32,
    GNOMON_RABITQ_FEW = 2 /* bits, up to which a query's integers are smaller */
};

/* The largest integer of a query: of few bits the sum of four fits into a byte, which tables hold,
 * and what a code takes is much more than what rounding the query does. */
static inline int gnomon_rabitq_most(int bits)
{
    return bits <= GNOMON_RABITQ_FEW ? 31 : 127;
}

/* Bytes of a point's code: plane after plane, coordinate j's bit p in bit j % 8 of byte j / 8 of
 * plane p. */
static inline int64_t gnomon_rabitq_bytes(int64_t m, int bits)
{
    return m / 8 * bits;
}

/* What is known of a code: the estimate of a squared distance, less the query's own square, is
 * base - by * (product of code and query). */
typedef struct gnomon_rabitq_hit {
    float low;          /* that estimate */
    float reach, width; /* the point's part of the error */
    uint32_t row;
} gnomon_rabitq_hit;

/* A query: passes unless low > limit + width * spread + reach * slope. */
typedef struct gnomon_rabitq_filter {
    float limit, slope, spread;
    float scale, half; /* a sum S of the query's integers stands for S * scale + half */
    int32_t start;     /* what sums begin with */
    uint32_t self;     /* a row that never passes; UINT32_MAX: none */
    int32_t count, room;
    gnomon_rabitq_hit *kept; /* room of them */
} gnomon_rabitq_filter;

/* A tile's points: base, -by, reach and width. */
typedef struct gnomon_rabitq_lanes {
    float base[16], by[16], reach[16], width[16];
} gnomon_rabitq_lanes;

typedef struct gnomon_rabitq_sift {
    const uint32_t *queries; /* query q's words at queries + q * steps * scan's query_words; can be
                              * read up to a multiple of GNOMON_RABITQ_QUERIES */
    int64_t count;
    gnomon_rabitq_filter *filters; /* count */
    const uint32_t *tiles;         /* tile t's words at tiles + t * steps * scan's tile_words */
    const gnomon_rabitq_lanes *lanes;
    int64_t tile_count, steps;
    int bits;
    uint32_t row,
        rows; /* number of the first point, and how many there are: later lanes are none */
    /* Makes room for one more hit of query q at least; may lower its limit. */
    void (*full)(void *arg, int64_t q);
    void *arg;
} gnomon_rabitq_sift;

/* A way to scan codes. */
typedef struct gnomon_rabitq_scan {
    int coordinates; /* that a step takes */
    int multiple;    /* steps come in multiples of so many */
    int query_words; /* of a query, a step */
    int tile_words;  /* of 16 points, a step */
    int flip;        /* to be XORed to codes of 8 bits: the way takes signed ones */
    /* A query's integers, zeros up to the last step's end, to its words. */
    void (*query)(const int8_t *integers, int64_t steps, uint32_t *words);
    /* Up to 16 codes, one behind the other, to a tile of so many steps; zeros where there is none.
     * spare: 16 * m bytes. */
    void (*tile)(const uint8_t *codes, int64_t points, int64_t m, int bits, int flip, int64_t steps,
                 uint8_t *spare, uint32_t *tile);
    void (*sift)(const gnomon_rabitq_sift *s);
} gnomon_rabitq_scan;

typedef struct gnomon_rabitq_kernels {
    /* The way for codes of so many bits on this processor. */
    const gnomon_rabitq_scan *(*scan)(int bits);
    /* Rotates x in place; signs: GNOMON_RABITQ_ROUNDS x m of 1 or -1; spare: m numbers. */
    void (*rotate)(double *x, int64_t m, const double *signs, double *spare);
    /* Codes of x to u; the product of code and x, and four times the code's square. spare: m. */
    void (*round)(const double *x, int64_t m, int bits, uint8_t *u, float *spare, double *product,
                  int64_t *square);
    void (*pack)(const uint8_t *u, int64_t m, int bits, uint8_t *code);
    void (*unpack)(const uint8_t *code, int64_t m, int bits, uint8_t *u);
    /* The product of a code and a query. */
    double (*product)(const uint8_t *u, const double *query, int64_t m, int bits);
} gnomon_rabitq_kernels;

#endif

/* operator/operator.h: the operator as the rest of the library sees it. */
#ifndef GNOMON_OPERATOR_INTERNAL_H
#define GNOMON_OPERATOR_INTERNAL_H

#include <gnomon/operator.h>

#include <stdbool.h>

enum {
    GNOMON_TAG_GAUSSIAN = 1,
    GNOMON_TAG_GAUSSIAN16 = 2,
    GNOMON_TAG_SIGN = 3,
    GNOMON_TAG_ACHLIOPTAS = 4,
    GNOMON_TAG_VERY_SPARSE = 5,
    GNOMON_TAG_SJLT_KEYS = 6,
    GNOMON_TAG_SJLT_SIGNS = 7,
    GNOMON_TAG_SRHT_KEYS = 8,
    GNOMON_TAG_SRHT_SIGNS = 9,
    GNOMON_TAG_GAUSSIAN16_TAIL = 10,
    GNOMON_TAG_BLOCKPERM_KEYS = 11,
    GNOMON_TAG_BLOCKPERM_SIGNS = 12,
    GNOMON_TAG_BLOCKPERM_WIRING = 13,
    GNOMON_TAG_SAMPLE = 128
};

/* A simple (not composed) random matrix: what kernels are made for. Columns and rows are
 * those of docs/reference/operators.md, section 4; values are raw (unscaled). */
typedef struct gnomon_simple {
    gnomon_kind kind;
    gnomon_dtype precision;
    uint32_t key0, key1;
    uint32_t level;
    int64_t rows, cols;
    double density;   /* very-sparse */
    float jump_scale; /* very-sparse: c */
    int64_t chunk;    /* very-sparse: L; sjlt: C; columns of a chunk */
    int chunk_log2;   /* kinds with bands: g; a chunk has 2^g slots, at least its columns */
    int64_t nonzeros; /* sjlt: s */
    int64_t bands;    /* sjlt: s, blockperm-sjlt: M s; band b begins at row floor(b rows / bands) */
    uint32_t key_tag, sign_tag; /* kinds with bands: of their permutations' keys, of signs */
    int64_t wiring;             /* blockperm-sjlt: kappa */
    int64_t chunks_a_block;     /* blockperm-sjlt: Q */
    int blocks_log2;            /* blockperm-sjlt: b */
    uint32_t wiring_key[2][6];  /* blockperm-sjlt: K and K' */
    int order_log2;             /* srht: b */
    uint32_t srht_key[6];
    double fill;            /* expected share of nonzeros */
    int64_t column_entries; /* nonzeros of every column, 0 where they are random or all */
    double scale;           /* by which raw values are multiplied */
    double scale_short;     /* that of the same kind with one row less */
} gnomon_simple;

enum { GNOMON_MAX_LEVELS = 56 };

struct gnomon_operator {
    gnomon_descriptor descriptor; /* completed */
    /* simple kinds: levels == 1 and factor[0] is the operator itself.
     * block: levels == 1, factor[0] is A, blocks = r.
     * kronecker: factor[t - 1] is A_t, repeat[t - 1] is r_t. */
    int levels;
    gnomon_simple factor[GNOMON_MAX_LEVELS];
    int64_t repeat[GNOMON_MAX_LEVELS];
    int64_t blocks;     /* block: r, else 1 */
    int64_t block_cols; /* block: c, else d */
    double scale;       /* of every row, but for block with unequal blocks */
};

/* First row of block a of a block operator: floor(a k / r). */
int64_t gnomon_block_first_row(const gnomon_operator *op, int64_t a);

/* The scale of a simple operator like a with so many rows: a->rows, or one less. */
static inline double gnomon_simple_scale(const gnomon_simple *a, int64_t rows)
{
    return rows == a->rows ? a->scale : a->scale_short;
}

/* The place of a simple kind in the list of kinds/list.h; -1 for others. */
int gnomon_kind_place(gnomon_kind kind);

/* Portable, scalar generation: the reference for every faster kernel. */

/* Raw values of [row, row+rows) x [col, col+cols) into out[(i - row) * row_stride + (j - col) *
 * col_stride]; srht, sjlt and very-sparse too (zeros written). */
void gnomon_simple_values(const gnomon_simple *a, int64_t row, int64_t rows, int64_t col,
                          int64_t cols, float *out, int64_t row_stride, int64_t col_stride);

/* very-sparse: walks one row of one chunk; writes the columns (counted from the chunk's first)
 * and signs, ascending; returns how many. positions and negative have room for
 * a->chunk entries. Columns at or beyond a->cols are dropped. */
int64_t gnomon_very_sparse_walk(const gnomon_simple *a, int64_t row, int64_t chunk,
                                uint32_t *positions, uint8_t *negative);

/* Kinds with bands: keys of (chunk, band); row of column j in band b. */
void gnomon_sjlt_keys(const gnomon_simple *a, int64_t chunk, int64_t band, uint32_t key[6]);
int64_t gnomon_sjlt_row(const gnomon_simple *a, int64_t col, int64_t band);
static inline int64_t gnomon_sjlt_band_first(const gnomon_simple *a, int64_t band)
{
    return (int64_t)(((unsigned __int128)band * (unsigned __int128)a->rows) /
                     (unsigned __int128)a->bands);
}

/* blockperm-sjlt: the row block that the column block of a chunk meets by permutation l, and
 * whether the row block of a band is one of those. */
int64_t gnomon_blockperm_row_block(const gnomon_simple *a, int64_t chunk, int64_t l);
bool gnomon_blockperm_wired(const gnomon_simple *a, int64_t chunk, int64_t band);

/* section 3.2 and its inverse; 0 <= bits <= 56 */
uint64_t gnomon_perm(uint64_t x, int bits, const uint32_t key[6]);
uint64_t gnomon_perm_inverse(uint64_t x, int bits, const uint32_t key[6]);

/* The 32 sign bits of columns 32q ... 32q+31 of a row. */
uint32_t gnomon_sign_word(const gnomon_simple *a, uint32_t tag, int64_t row, int64_t q);

/* section 3.1 */
float gnomon_neglog(uint32_t h);

/* Tables of section 4.2, made once (thread-safe): magnitude of v as fp32, 2^15 of them (the last
 * is NaN: use the tail), and the tail's thresholds. */
const float *gnomon_gaussian16_table(void);
float gnomon_gaussian16_tail(uint32_t t);

#endif

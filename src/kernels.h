/* kernels.h: the table of CPU kernels that src/project/ drives. One table an instruction
 * set; all tables give the same bits. Callers take it from gnomon_cpu_kernels and know
 * nothing of instruction sets.
 *
 * The tile: GNOMON_LANES points, one per lane. A tile of w coordinates is T[w][GNOMON_LANES],
 * coordinate-major, T float or double; lanes past the last point hold zeros. Accumulators are
 * T[rows][GNOMON_LANES] a tile. Lanes never mix, so a point's result does not depend on its
 * neighbours. Every sum runs along coordinates in an order fixed by the operator alone.
 *
 * A panel is what a kind needs of the operator for rows [row, row + rows) and the columns [col, col
 * + cols) of one chunk, in the kind's own form. */
#ifndef GNOMON_KERNELS_H
#define GNOMON_KERNELS_H

#include "operator/kinds/list.h"
#include "operator/operator.h"
#include "rabitq_kernels.h"
#include "search_kernels.h"

#include <stdbool.h>

/* Columns of a product with A^T A: two lines of the cache in single precision. */
enum { GNOMON_NORMAL = 2 * GNOMON_LANES };

/* Tiles that so many points take. */
static inline int64_t gnomon_tiles_of(int64_t points)
{
    return (points + GNOMON_LANES - 1) / GNOMON_LANES;
}

typedef struct gnomon_panel {
    const gnomon_simple *a;
    int64_t row, rows;
    int64_t col, cols; /* columns of the operator; never crosses a multiple of chunk_cols */
    void *data;        /* panel_bytes, GNOMON_ALIGN-aligned, filled piece by piece */
} gnomon_panel;

/* A group of tiles, for one worker. Tile t's coordinates are at x + t * x_stride (elements),
 * its accumulators at acc + t * acc_stride. */
typedef struct gnomon_tiles {
    int64_t count;
    void *x;
    int64_t x_stride;
    void *acc;
    int64_t acc_stride;
    void *scratch; /* scratch_bytes of the kind, this worker's own */
} gnomon_tiles;

#define GNOMON_GATHERED 16 /* rows */

typedef struct gnomon_kind_kernels {
    /* Columns a chunk, for this operator: chunks begin at its multiples. */
    int64_t (*chunk_cols)(const gnomon_simple *a);
    /* Rows of one panel at most, and the multiple at which rows may be cut (between panels and
     * between workers): every panel's row is a multiple of it, and so is panel_rows. rows_multiple
     * 0: rows are never cut, and a panel holds any one range of rows that is wanted. */
    int64_t (*panel_rows)(const gnomon_simple *a);
    int64_t rows_multiple;
    /* Bytes of a panel of so many rows and columns; an upper bound. */
    int64_t (*panel_bytes)(const gnomon_simple *a, int64_t rows, int64_t cols);
    /* The panel is filled in 'pieces' independent pieces, by any workers. A kind whose panel needs
     * a second pass over the whole (a prefix sum, say) does it in 'seal', called once after all
     * pieces (may be NULL). */
    int64_t (*pieces)(const gnomon_panel *panel);
    void (*fill)(const gnomon_panel *panel, int64_t piece);
    void (*seal)(const gnomon_panel *panel);
    int64_t (*scratch_bytes)(const gnomon_simple *a);
    /* acc[i] += sum over the panel's columns of value(row + i, j) * x[j - col], for i in
     * [first, first + count) of the panel's rows (multiples of rows_multiple, or all). */
    void (*sketch_f32)(const gnomon_panel *panel, int64_t first, int64_t count,
                       const gnomon_tiles *tiles);
    void (*sketch_f64)(const gnomon_panel *panel, int64_t first, int64_t count,
                       const gnomon_tiles *tiles);
    /* Whether it begins the panel's sum at zero and adds it to acc as a whole, so that sums of
     * chunks can be made apart and added to acc in order. */
    bool adds_sums;
    /* NULL, or the same in two steps, for kinds whose rows can't be cut because they share work: a
     * tile of a whole chunk, where column j is at j - j mod chunk_cols, is prepared in place in
     * 'steps' independent steps, and then any rows (first a multiple of GNOMON_GATHERED) are
     * gathered from it. */
    int64_t (*steps)(const gnomon_panel *panel);
    void (*prepare_f32)(const gnomon_panel *panel, int64_t step, void *tile);
    void (*prepare_f64)(const gnomon_panel *panel, int64_t step, void *tile);
    void (*gather_f32)(const gnomon_panel *panel, int64_t first, int64_t count,
                       const gnomon_tiles *tiles);
    void (*gather_f64)(const gnomon_panel *panel, int64_t first, int64_t count,
                       const gnomon_tiles *tiles);
    /* Adjoint: here 'x' is the input side's partner: for every column of the panel
     * x[j - col] += sum over the panel's rows of value(row + i, j) * acc[i], in an order fixed by
     * the operator (not by where panels are cut); acc is read only. */
    void (*adjoint_f32)(const gnomon_panel *panel, const gnomon_tiles *tiles);
    void (*adjoint_f64)(const gnomon_panel *panel, const gnomon_tiles *tiles);
    /* Raw values of single columns for sparse points: for every c, out[c * rows + i] is
     * value(row + i, cols[c]); cols ascending, any rows. NULL for sparse kinds (they have lists).
     */
    void (*columns_f32)(const gnomon_simple *a, int64_t row, int64_t rows, const int64_t *cols,
                        int64_t count, float *out);
    /* The nonzeros of single columns for sparse points, sparse kinds only (else NULL): those of
     * cols[c] within rows [row, row + rows) are entries[start[c]] ... entries[start[c + 1]
     * - 1], in any order: i for a +1 in row + i, ~i for a -1. cols ascending, all of one chunk
     * (lists_cols columns, at its multiples); start has room for count + 1. Writes no more
     * than 'room' entries and returns how many there are; when that is more than room, entries and
     * start are to be thrown away and the call made again. scratch: lists_scratch bytes. */
    int64_t (*lists_cols)(const gnomon_simple *a);
    int64_t (*lists_scratch)(const gnomon_simple *a);
    int64_t (*lists)(const gnomon_simple *a, int64_t row, int64_t rows, const int64_t *cols,
                     int64_t count, int64_t room, int64_t *start, int64_t *entries, void *scratch);
    /* Kinds whose panel is that of src/cpu/project/nonzeros.inc (else NULL): makes piece 'number'
     * at 'piece', which has room for so many positions. */
    void (*make)(const gnomon_panel *panel, int64_t number, void *piece, int64_t room);
} gnomon_kind_kernels;

enum { GNOMON_FIGURES = 8 }; /* lanes of figures_f32 and figures_f64 */

/* Products of fp32 numbers by bf16 matrix units (src/cpu/gemm/slices.inc). An fp32 number becomes
 * three slices, an fp16 number two; powers of two that they are to be multiplied by go beside. */
#define GNOMON_SLICE_CHUNK 256 /* steps at a time, at most */
#define GNOMON_SLICE_BAND  32  /* rows */

/* A chunk of a band of rows, ld numbers apart. */
typedef struct gnomon_slice_rows {
    const float *from;
    int64_t ld, rows, steps;
    int64_t more; /* rows that follow in memory, which may be fetched early */
    int slices;
    uint16_t *to; /* GNOMON_SLICE_BAND x steps numbers a slice, steps rounded up to 32's multiple */
    double *scales; /* GNOMON_SLICE_BAND */
} gnomon_slice_rows;

/* The product of a chunk of up to GNOMON_SLICE_BAND rows with tiles of columns. */
typedef struct gnomon_sliced {
    int64_t steps, rows;
    int left_slices, right_slices;
    const uint16_t *left, *right; /* by the kernels 'rows' and 'cols' below */
    int64_t right_stride, tiles;
    const double *left_scales, *right_scales;
    double *sums; /* += [tiles][GNOMON_SLICE_BAND, or 16 of up to 16 rows][GNOMON_LANES] */
    int64_t sums_stride;
    bool turned; /* left and right have changed places, which leaves the bits as they are */
    const gnomon_slice_rows *next; /* NULL, or rows that become slices meanwhile */
} gnomon_sliced;

/* A coarse product (src/cpu/gemm/coarse.inc): 32 lines of a matrix, a part, with panels of 32
 * columns, both of so many steps at most. */
#define GNOMON_COARSE_STEPS 128
#define GNOMON_COARSE_LINES 32
#define GNOMON_COARSE_PART  (2 * GNOMON_COARSE_LINES * GNOMON_COARSE_STEPS) /* numbers */
#define GNOMON_COARSE_PANEL (GNOMON_COARSE_LINES * GNOMON_COARSE_STEPS)

/* 32 lines from[line * ld + step], turned: from[step * ld + line], that become a part. What lies
 * past lines and steps becomes 0. */
typedef struct gnomon_coarse_part {
    const float *from;
    int64_t ld, lines, steps;
    bool turned;
    uint16_t *to;
} gnomon_coarse_part;

typedef struct gnomon_coarse {
    int64_t steps, count; /* count: panels, one after the other */
    const uint16_t *part, *panels;
    float *sums; /* += [count][32 lines][32 columns]; turned: [count][32 columns][32 lines] */
    bool turned; /* part, panels and sums are */
    const gnomon_coarse_part *next; /* NULL, or a part that is made meanwhile, as turned as this */
    /* What is fetched early: ahead_rows times ahead_bytes, ahead_stride apart. */
    const char *ahead;
    int64_t ahead_stride, ahead_rows, ahead_bytes;
} gnomon_coarse;

typedef struct gnomon_slice_kernels {
    void (*begin)(void); /* before and after a thread's products */
    void (*end)(void);
    /* What is not finite becomes 0; bit r of the result: row r had such. */
    uint32_t (*rows)(const gnomon_slice_rows *p);
    /* The same for a tile of columns, tile[steps][GNOMON_LANES]; to: 16 x steps numbers a slice. */
    uint32_t (*cols)(const float *tile, int64_t steps, int slices, uint16_t *to, double *scales);
    uint32_t (*product)(const gnomon_sliced *p); /* returns what 'rows' does of next; else 0 */

    void (*coarse_part)(const gnomon_coarse_part *p);
    /* A panel of from[step * ld + col]; what lies past cols and steps becomes 0. */
    void (*coarse_panel)(const float *from, int64_t ld, int64_t cols, int64_t steps, bool turned,
                         uint16_t *to);
    void (*coarse_product)(const gnomon_coarse *p);
} gnomon_slice_kernels;

typedef struct gnomon_kernels {
    const char *isa;
    const gnomon_kind_kernels *kind[GNOMON_SIMPLE_KIND_COUNT]; /* by the place of kinds/list.h */
    const gnomon_kind_kernels *gaussian16;                     /* gaussian, precision fp16 */

    /* Packs up to GNOMON_LANES points into a tile. lane[l] points at the first wanted element of
     * point l, NULL for a lane to be zeroed; elements of a point are col_stride apart. valid[l] is
     * how many of the w coordinates are there, the rest is zero. adjacent: lanes are consecutive
     * elements in memory (coordinates contiguous); lanes that are not NULL come first then.
     * Converts from any dtype. Returns false when an element it took is NaN or infinite (the tile
     * is complete all the same). */
    bool (*pack_f32)(const void *const lane[GNOMON_LANES], const int64_t valid[GNOMON_LANES],
                     gnomon_dtype dtype, int64_t col_stride, bool adjacent, int64_t w, float *tile);
    bool (*pack_f64)(const void *const lane[GNOMON_LANES], const int64_t valid[GNOMON_LANES],
                     gnomon_dtype dtype, int64_t col_stride, bool adjacent, int64_t w,
                     double *tile);
    /* Adds factor * src[0 .. count-1] to y: the sparse points' kernel. y[i] = fma(factor, src[i],
     * y[i]). */
    void (*axpy_f32)(int64_t count, float factor, const float *src, float *y);
    void (*axpy_f64)(int64_t count, double factor, const float *src, double *y);
    /* The product of rows with packed tiles: sums[t][r][l] += sum over s < steps of a[r * across +
     * s
     * * along] * b[t][s][l], for r < rows, l < GNOMON_LANES and t < tiles: chains of fp32 fused
     * multiply-adds over 'chain' steps each, added in fp64; what was there before is left out
     * unless 'onto'. b's tiles are b_stride floats apart, those of sums sums_stride doubles. */
    void (*product)(int64_t steps, int64_t chain, const float *a, int64_t across, int64_t along,
                    int64_t rows, const float *b, int64_t b_stride, int64_t tiles, double *sums,
                    int64_t sums_stride, bool onto);
    /* out[i] = halves[i] as fp32, for i < count. */
    void (*to_f32)(const uint16_t *halves, int64_t count, float *out);

    /* w += A^T (A z - 1 less^T) for GNOMON_NORMAL columns of z and w, whose rows are stride numbers
     * apart. A: so many rows; offsets[0] belongs to indices[0] and values[0]. A row's sums run over
     * its nonzeros in order, by fused multiply-adds. */
    void (*normal_f32)(int64_t rows, const int64_t *offsets, const int64_t *indices,
                       const float *values, const float *less, int64_t stride, const float *z,
                       float *w);
    void (*normal_f64)(int64_t rows, const int64_t *offsets, const int64_t *indices,
                       const double *values, const double *less, int64_t stride, const double *z,
                       double *w);
    /* The same for GNOMON_NORMAL / 2 columns, with the same numbers. */
    void (*half_f32)(int64_t rows, const int64_t *offsets, const int64_t *indices,
                     const float *values, const float *less, int64_t stride, const float *z,
                     float *w);
    void (*half_f64)(int64_t rows, const int64_t *offsets, const int64_t *indices,
                     const double *values, const double *less, int64_t stride, const double *z,
                     double *w);
    /* Of 'count' numbers, a multiple of GNOMON_FIGURES: the square of number i is added to
     * squares[i % GNOMON_FIGURES], in order, and *most becomes the largest magnitude where that is
     * more. NaN is seen in the squares. */
    void (*figures_f32)(const float *p, int64_t count, double *squares, double *most);
    void (*figures_f64)(const double *p, int64_t count, double *squares, double *most);
    /* out[r * ldo + c] = the sum over s < steps of a[r * lda + s] w[c * ldw + s], or += with
     * 'onto', for so many rows and columns: as GNOMON_LANES sums of rounded products, in order,
     * that are added in halves. */
    void (*few_f32)(int64_t rows, int64_t cols, int64_t steps, const float *a, int64_t lda,
                    const float *w, int64_t ldw, bool onto, float *out, int64_t ldo);
    void (*few_f64)(int64_t rows, int64_t cols, int64_t steps, const double *a, int64_t lda,
                    const double *w, int64_t ldw, bool onto, double *out, int64_t ldo);
    /* A row at a time, of either precision's values: GNOMON_LANES sums in fp64 of values[i]
     * z[indices[i] * stride + l], and w[indices[i] * stride + l] += values[i] y[l]. Both run over
     * i < count in order, by fused multiply-adds. 'known' of the indices may be read, count or
     * more: what the next ones name is fetched early. */
    void (*gather_f32)(int64_t count, int64_t known, const int64_t *indices, const void *values,
                       bool f64, int64_t stride, const float *z, double *sums);
    void (*gather_f64)(int64_t count, int64_t known, const int64_t *indices, const void *values,
                       bool f64, int64_t stride, const double *z, double *sums);
    void (*scatter_f32)(int64_t count, int64_t known, const int64_t *indices, const void *values,
                        bool f64, int64_t stride, const float *y, float *w);
    void (*scatter_f64)(int64_t count, int64_t known, const int64_t *indices, const void *values,
                        bool f64, int64_t stride, const double *y, double *w);
    /* Of blocks of GNOMON_NORMAL columns without gaps: sums (GNOMON_NORMAL x GNOMON_NORMAL) = a^T b
     * over so many rows, and b += a m. Sums run over rows, and over a's columns, in order, by fused
     * multiply-adds. */
    void (*cross_f32)(int64_t rows, const float *a, const float *b, float *sums);
    void (*cross_f64)(int64_t rows, const double *a, const double *b, double *sums);
    void (*combine_f32)(int64_t rows, const float *a, const float *m, float *b);
    void (*combine_f64)(int64_t rows, const double *a, const double *m, double *b);

    /* Of two tiles of double, of so many rows: sums[i * GNOMON_LANES + l] = the sum over s < steps
     * of left[s * GNOMON_LANES + i] right[s * GNOMON_LANES + l], in order, by fused multiply-adds;
     * with 'onto' this is added to what was there. floats: so all numbers are, whose products are
     * exact in double. */
    void (*gram)(int64_t steps, const double *left, const double *right, bool floats, bool onto,
                 double *sums);

    const gnomon_search_kernels *search;
    const gnomon_rabitq_kernels *rabitq;
    const gnomon_slice_kernels *slices; /* NULL: the level has no such units */
    /* ranked[i] = 2^32 * (the squared distance of query from the code of ids[i]) + ids[i], for i <
     * n. A code is 'count' signed bytes, at most 1024, and point p's is at codes + p * count. */
    void (*rank_codes)(const int8_t *query, const int8_t *codes, int64_t count, const uint32_t *ids,
                       int64_t n, uint64_t *ranked);
} gnomon_kernels;

/* The table for an instruction set level of src/base/isa.h ("portable", "avx2", "avx512",
 * "avx512_vnni", "amx", "neon"), NULL when this build has none of that name. */
const gnomon_kernels *gnomon_cpu_kernels(const char *isa);

/* The table for the context's instruction set. */
const gnomon_kernels *gnomon_context_kernels(const gnomon_context *ctx);

static inline const gnomon_kind_kernels *gnomon_kernels_for(const gnomon_kernels *k,
                                                            const gnomon_simple *a)
{
    return a->kind == GNOMON_GAUSSIAN && a->precision == GNOMON_F16
               ? k->gaussian16
               : k->kind[gnomon_kind_place(a->kind)];
}

#endif

#include "gemm/slices.h"

#include "base/arithmetic.h"
#include "gemm/pack.h"
#include "points/rows.h"

#include <math.h>
#include <string.h>

enum {
    CHUNK = GNOMON_SLICE_CHUNK,
    BAND = GNOMON_SLICE_BAND,
    SLICES = 3,
    GROUP = 8,                            /* tiles of columns that are packed at a time */
    TILE = CHUNK * GNOMON_LANES * SLICES, /* numbers of a tile's slices, of a chunk */
    LEFT = CHUNK * BAND * SLICES
};

/* A chunk's columns: tiles of slices, and for each tile the powers of two and which columns had
 * numbers that are not finite. */
typedef struct columns {
    uint16_t *slices;
    double *scales;
    uint32_t *wild;
    float *plain; /* GROUP tiles in fp32 */
} columns;

static columns columns_of(const gnomon_slices *s)
{
    columns c;
    c.slices = (uint16_t *)(void *)s->right;
    c.scales = (double *)(void *)(s->right + s->tiles * TILE / 2);
    c.plain = (float *)(void *)(c.scales + s->tiles * GNOMON_LANES);
    c.wild = (uint32_t *)(void *)(c.plain + gnomon_min(GROUP, s->tiles) * CHUNK * GNOMON_LANES);
    return c;
}

int64_t gnomon_slices_right(int64_t tiles)
{
    return tiles * (TILE / 2 + 2 * GNOMON_LANES) + gnomon_min(GROUP, tiles) * CHUNK * GNOMON_LANES +
           gnomon_ceil_div(tiles, 16) * 16;
}

/* A band's slices, powers of two and which rows had numbers that are not finite; two of these. */
typedef struct band {
    uint16_t slices[LEFT];
    double scales[BAND];
    uint32_t wild, unused[15];
} band;

enum { BAND_FLOATS = sizeof(band) / sizeof(float) };

static band *band_of(const gnomon_slices *s, int which)
{
    return (band *)(void *)(s->left + which * BAND_FLOATS);
}

/* Beside them a band's rows in fp32, a tile of them, and a square. */
int64_t gnomon_slices_left(void)
{
    return 2 * BAND_FLOATS + BAND * CHUNK + CHUNK * GNOMON_LANES + GNOMON_LANES * GNOMON_LANES;
}

static int slices_of(const gnomon_fold *f)
{
    return f->dtype == GNOMON_F16 ? 2 : SLICES; /* the bits of fp16 fit in two */
}

void gnomon_slices_columns(const gnomon_slices *s, int64_t tile, int64_t tiles, int64_t step,
                           int64_t steps)
{
    const columns c = columns_of(s);
    for (int64_t from = 0; from < tiles; from += GROUP) {
        const int64_t some = gnomon_min(GROUP, tiles - from);
        gnomon_gemm_columns(s->cols, s->kernels, tile + from, some, step, steps, CHUNK, c.plain);
        for (int64_t t = 0; t < some; t++)
            c.wild[from + t] = s->kernels->slices->cols(
                c.plain + t * CHUNK * GNOMON_LANES, steps, slices_of(s->cols),
                c.slices + (from + t) * TILE, c.scales + (from + t) * GNOMON_LANES);
    }
}

/* Rows that do not lie as lines: tiles are made of them as of columns, and turned. */
static void turn_tiles(const gnomon_slices *s, int64_t row, int64_t rows, int64_t step,
                       int64_t steps, float *tile, float *lines)
{
    float *square = tile + CHUNK * GNOMON_LANES;
    for (int64_t i = 0; i < rows; i += GNOMON_LANES, lines += GNOMON_LANES * CHUNK) {
        gnomon_fold_pack(s->rows, s->kernels, false, (row + i) / GNOMON_LANES, step, steps, tile);
        for (int64_t j = 0; j < steps; j += GNOMON_LANES) {
            gnomon_gemm_turn(s->kernels, tile + j * GNOMON_LANES, GNOMON_LANES, steps - j, square);
            for (int64_t l = 0; l < GNOMON_LANES; l++)
                memcpy(lines + l * CHUNK + j, square + l * GNOMON_LANES,
                       GNOMON_LANES * sizeof *lines);
        }
    }
}

static double value_of(const gnomon_fold *f, int64_t point, int64_t step)
{
    return gnomon_value_as_f64(f->data, f->dtype, point * f->row_stride + step * f->col_stride);
}

/* What slices left out: the products of numbers that are not finite, one by one. point: a row of
 * one factor; line[l * apart] is its sum with the other's point first + l. */
static void add_wild(const gnomon_fold *f, int64_t point, int64_t step, int64_t steps,
                     const gnomon_fold *other, int64_t first, int64_t count, double *sums,
                     int64_t (*at)(int64_t, int64_t), int64_t apart)
{
    for (int64_t p = step; p < step + steps; p++) {
        const double x = value_of(f, point, p);
        if (isfinite(x)) continue;
        for (int64_t l = 0; l < count; l++)
            sums[at(l, apart)] += isnan(x) ? x : x * value_of(other, first + l, p);
        if (isnan(x)) return;
    }
}

static int64_t along_row(int64_t l, int64_t apart)
{
    return l / GNOMON_LANES * apart + l % GNOMON_LANES;
}

static int64_t along_column(int64_t l, int64_t apart)
{
    (void)apart;
    return l * GNOMON_LANES;
}

typedef struct place {
    int64_t row, rows, tile, tiles, step, steps;
} place;

static void add_all_wild(const gnomon_slices *s, const place *at, uint32_t wild, const columns *c,
                         double *sums, int64_t apart)
{
    const int64_t first = at->tile * GNOMON_LANES;
    const int64_t cols = gnomon_min(at->tiles * GNOMON_LANES, s->cols->points - first);
    for (; wild != 0; wild &= wild - 1) {
        const int r = __builtin_ctz(wild);
        add_wild(s->rows, at->row + r, at->step, at->steps, s->cols, first, cols,
                 sums + r * GNOMON_LANES, along_row, apart);
    }
    for (int64_t t = 0; t < at->tiles; t++) {
        for (uint32_t lanes = c->wild[t]; lanes != 0; lanes &= lanes - 1) {
            const int l = __builtin_ctz(lanes);
            add_wild(s->cols, first + t * GNOMON_LANES + l, at->step, at->steps, s->rows, at->row,
                     at->rows, sums + t * apart + l, along_column, apart);
        }
    }
}

/* The rows as the kernel takes them. */
static gnomon_slice_rows rows_of(const gnomon_slices *s, int which, int64_t row, int64_t rows,
                                 int64_t step, int64_t steps)
{
    float *lines = s->left + 2 * BAND_FLOATS;
    band *to = band_of(s, which);
    gnomon_slice_rows r = {.from = lines,
                           .ld = CHUNK,
                           .rows = rows,
                           .steps = steps,
                           .slices = slices_of(s->rows),
                           .to = to->slices,
                           .scales = to->scales};
    if (s->a == NULL) {
        turn_tiles(s, row, rows, step, steps, lines + BAND * CHUNK, lines);
    } else if (s->a->dtype == GNOMON_F32) {
        r.from = (const float *)s->a->data + row * s->a->row_stride + step;
        r.ld = s->a->row_stride;
        r.more = s->a->rows - row - rows;
    } else {
        gnomon_gemm_lines(s->a, s->kernels, row, rows, step, steps, CHUNK, lines);
    }
    return r;
}

void gnomon_slices_rows(const gnomon_slices *s, int which, int64_t row, int64_t rows, int64_t step,
                        int64_t steps)
{
    const gnomon_slice_rows r = rows_of(s, which, row, rows, step, steps);
    band_of(s, which)->wild = s->kernels->slices->rows(&r);
}

void gnomon_slices_band(const gnomon_slices *s, int which, int64_t row, int64_t rows, int64_t next,
                        int64_t tile, int64_t tiles, int64_t step, int64_t steps, double *sums,
                        int64_t apart)
{
    const place at = {row, rows, tile, tiles, step, steps};
    const columns c = columns_of(s);
    const band *left = band_of(s, which);
    gnomon_slice_rows after = {0};
    if (next > 0) after = rows_of(s, !which, row + rows, next, step, steps);
    const gnomon_sliced product = {.steps = steps,
                                   .rows = rows,
                                   .left_slices = slices_of(s->rows),
                                   .right_slices = slices_of(s->cols),
                                   .left = left->slices,
                                   .right = c.slices,
                                   .right_stride = TILE,
                                   .tiles = tiles,
                                   .left_scales = left->scales,
                                   .right_scales = c.scales,
                                   .sums = sums,
                                   .sums_stride = apart,
                                   .turned = s->turned,
                                   .next = next > 0 ? &after : NULL};
    band_of(s, !which)->wild = s->kernels->slices->product(&product);
    uint32_t any = left->wild;
    for (int64_t t = 0; t < tiles; t++)
        any |= c.wild[t];
    if (any != 0) add_all_wild(s, &at, left->wild, &c, sums, apart);
}

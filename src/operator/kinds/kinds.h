/* operator/kinds/kinds.h: what a kind is: one row per kind, at the end of the kind's file.
 *
 * Dense kinds make four rows at a time, because four consecutive rows share a call; sparse
 * kinds list their nonzeros. */
#ifndef GNOMON_OPERATOR_KINDS_H
#define GNOMON_OPERATOR_KINDS_H

#include "operator/kinds/list.h"
#include "operator/operator.h"

#include <stdbool.h>

/* Columns of a tile of four rows: a multiple of every call's columns. */
enum { GNOMON_TILE_COLS = 256 };

typedef float gnomon_tile[4][GNOMON_TILE_COLS];

typedef void (*gnomon_entry_fn)(void *arg, int64_t row, int64_t col, bool negative);

typedef struct gnomon_kind_row {
    gnomon_kind_info info;
    /* Checks the members of the descriptor that are the kind's own, and fills in the defaults that
     * depend on nothing but k and d. d's sizes and kinds are checked. NULL: there are none. */
    gnomon_status (*check)(gnomon_context *ctx, gnomon_descriptor *d);

    /* Simple kinds. What follows from the descriptor for a matrix of a->rows x a->cols at a->level:
     * the kind's own members of a, fill (preset: 1) and column_entries (0). NULL: nothing. */
    gnomon_status (*set_up)(gnomon_context *ctx, gnomon_simple *a, const gnomon_descriptor *d);
    /* The expected squared norm of an unscaled column, were there so many rows (section 6). */
    double (*column_norm)(const gnomon_simple *a, double rows);
    double unscaled; /* the scale of unscaled operators */
    /* As inner kind of block: blocks of floor(k / r) rows are not isometric, r must divide k. */
    bool needs_equal_blocks;
    /* Raw values of rows 4 group ... 4 group + 3 (whether or not the operator has them all) and
     * columns [col, col + cols), cols <= GNOMON_TILE_COLS, to out[row][0 .. cols - 1]. NULL for
     * sparse kinds, whose values are 0, 1 and -1: */
    void (*tile)(const gnomon_simple *a, uint32_t group, int64_t col, int64_t cols,
                 gnomon_tile out);
    /* Calls fn for every nonzero of [row, row + rows) x [col, col + cols); within a row the columns
     * ascend, rows come interleaved. The block lies inside the matrix. */
    void (*each)(const gnomon_simple *a, int64_t row, int64_t rows, int64_t col, int64_t cols,
                 gnomon_entry_fn fn, void *arg);

    /* Composed kinds: sets up the factors of an operator whose descriptor is complete. */
    gnomon_status (*compose)(gnomon_context *ctx, gnomon_operator *op);
} gnomon_kind_row;

#define GNOMON_ROW(name) extern const gnomon_kind_row gnomon_kind_row_##name;
GNOMON_SIMPLE_KINDS(GNOMON_ROW)
GNOMON_COMPOSED_KINDS(GNOMON_ROW)
#undef GNOMON_ROW

/* The row of a kind, NULL when there is none. */
const gnomon_kind_row *gnomon_kind_row_of(gnomon_kind kind);

/* "gaussian, rademacher or srht": the kinds that have all of the flags, for error texts. */
typedef struct gnomon_kind_names {
    char text[256];
} gnomon_kind_names;
gnomon_kind_names gnomon_kind_names_with(unsigned flags);

/* The number of type int64_t or double that a parameter has in a descriptor. */
static inline int64_t *gnomon_parameter_count(const gnomon_parameter_info *p, gnomon_descriptor *d)
{
    return (int64_t *)(void *)((char *)d + p->offset);
}
static inline double *gnomon_parameter_real(const gnomon_parameter_info *p, gnomon_descriptor *d)
{
    return (double *)(void *)((char *)d + p->offset);
}

/* Sets up factor 'number' of op: rows x cols of the inner kind (of a simple operator: its kind). */
gnomon_status gnomon_set_factor(gnomon_context *ctx, gnomon_operator *op, int number, int64_t rows,
                                int64_t cols, uint32_t level);

enum { GNOMON_ROWS_LOG2_MAX = 32, GNOMON_COLS_LOG2_MAX = 56 };

static inline int gnomon_log2_at_least(int64_t n)
{
    int bits = 0;
    while ((INT64_C(1) << bits) < n)
        bits++;
    return bits;
}

/* gnomon_kind_row.column_norm of the kinds whose entries have variance 1. */
double gnomon_norm_of_rows(const gnomon_simple *a, double rows);

/* The tile of any dense kind; nonzeros of any sparse kind. */
void gnomon_simple_tile(const gnomon_simple *a, uint32_t group, int64_t col, int64_t cols,
                        gnomon_tile out);
bool gnomon_simple_is_sparse(const gnomon_simple *a);
void gnomon_simple_each(const gnomon_simple *a, int64_t row, int64_t rows, int64_t col,
                        int64_t cols, gnomon_entry_fn fn, void *arg);

/* Kinds with bands (bands.c): the nonzeros as each() gives them; wired says which bands meet which
 * chunks of columns, NULL: all do. */
#define GNOMON_BAND_MAX (INT64_C(1) << 28) /* rows of a band */
typedef bool (*gnomon_wired_fn)(const gnomon_simple *a, int64_t chunk, int64_t band);
void gnomon_bands_each(const gnomon_simple *a, gnomon_wired_fn wired, int64_t row, int64_t rows,
                       int64_t col, int64_t cols, gnomon_entry_fn fn, void *arg);

/* gaussian, precision fp16 */
void gnomon_gaussian16_tile(const gnomon_simple *a, uint32_t group, int64_t col, int64_t cols,
                            gnomon_tile out);

/* Section 4.5: c for a density in [2^-30, 1]. */
float gnomon_jump_scale(double p);

/* The block that owns a row of a block operator. */
int64_t gnomon_block_of_row(const gnomon_operator *op, int64_t row);

#endif

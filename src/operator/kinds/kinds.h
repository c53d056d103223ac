/* operator/kinds/kinds.h: what each kind's file offers to values.c, block.c and csr.c.
 *
 * Dense kinds make four rows at a time, because four consecutive rows share a call; sparse
 * kinds list their nonzeros. */
#ifndef GNOMON_OPERATOR_KINDS_H
#define GNOMON_OPERATOR_KINDS_H

#include "operator/operator.h"

#include <stdbool.h>

/* Columns of a tile of four rows: a multiple of every call's columns. */
enum { GNOMON_TILE_COLS = 256 };

typedef float gnomon_tile[4][GNOMON_TILE_COLS];

/* Raw values of rows 4 group ... 4 group + 3 (whether or not the operator has them all) and
 * columns [col, col + cols), cols <= GNOMON_TILE_COLS, to out[row][0 .. cols - 1]. */
void gnomon_gaussian_tile(const gnomon_simple *a, uint32_t group, int64_t col, int64_t cols,
                          gnomon_tile out);
void gnomon_gaussian16_tile(const gnomon_simple *a, uint32_t group, int64_t col, int64_t cols,
                            gnomon_tile out);
void gnomon_rademacher_tile(const gnomon_simple *a, uint32_t group, int64_t col, int64_t cols,
                            gnomon_tile out);
void gnomon_achlioptas_tile(const gnomon_simple *a, uint32_t group, int64_t col, int64_t cols,
                            gnomon_tile out);
void gnomon_srht_tile(const gnomon_simple *a, uint32_t group, int64_t col, int64_t cols,
                      gnomon_tile out);
/* Whichever of the above a's kind is; not for the sparse kinds. */
void gnomon_simple_tile(const gnomon_simple *a, uint32_t group, int64_t col, int64_t cols,
                        gnomon_tile out);

/* very-sparse and sjlt: they have no tile but a list. */
bool gnomon_simple_is_sparse(const gnomon_simple *a);

typedef void (*gnomon_entry_fn)(void *arg, int64_t row, int64_t col, bool negative);

/* Calls fn for every nonzero of [row, row + rows) x [col, col + cols); within a row the columns
 * ascend, rows come interleaved. The block lies inside the matrix. */
void gnomon_very_sparse_each(const gnomon_simple *a, int64_t row, int64_t rows, int64_t col,
                             int64_t cols, gnomon_entry_fn fn, void *arg);
void gnomon_sjlt_each(const gnomon_simple *a, int64_t row, int64_t rows, int64_t col, int64_t cols,
                      gnomon_entry_fn fn, void *arg);
void gnomon_simple_each(const gnomon_simple *a, int64_t row, int64_t rows, int64_t col,
                        int64_t cols, gnomon_entry_fn fn, void *arg);

/* Section 4.5: c for a density in [2^-30, 1]. */
float gnomon_jump_scale(double p);

/* Section 4.7's keys of a->level and seed into a->srht_key. */
void gnomon_srht_set_keys(gnomon_simple *a);

/* Section 6: the scale of a simple operator like a with this many rows. */
double gnomon_simple_scale(const gnomon_simple *a, int64_t rows, gnomon_scaling scaling);

/* The block that owns a row of a block operator. */
int64_t gnomon_block_of_row(const gnomon_operator *op, int64_t row);

#endif

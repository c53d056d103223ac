/* io/arrays/convert.h: elements of any type to and from what callers use, and byte swapping. */
#ifndef GNOMON_IO_CONVERT_H
#define GNOMON_IO_CONVERT_H

#include <gnomon/matrix.h>

#include "base/error.h"

#include <stdbool.h>

/* Half precision and its truncated-F32 cousin, each rounded once, to nearest even;
 * overflow gives infinity, a NaN stays a (quiet) NaN. */
uint16_t gnomon_f16_from_f64(double value);
double gnomon_f64_from_f16(uint16_t bits);
uint16_t gnomon_bf16_from_f64(double value);
double gnomon_f64_from_bf16(uint16_t bits);

/* Reverses the bytes of count elements of size 1, 2, 4 or 8, in place. */
void gnomon_swap_bytes(void *data, int64_t count, size_t size);

/* Whether this machine's bytes run from the high end. */
bool gnomon_big_endian(void);

/* dst(i, j) = src(i, j) for views of one shape, host memory, any strides, that do not
 * overlap. Takes: any type to itself, to F32 and to F64; F32 and F64 to any type.
 * One rounding each: to nearest even. Integer targets: after rounding the value must be in
 * range, else DATA naming row first_row + i and column first_col + j (NaN and infinity are out
 * of range) and 'name', the file; dst is then half-written. Errors: DATA, DTYPE, SHAPE. */
gnomon_status gnomon_convert(gnomon_context *ctx, const gnomon_matrix *src,
                             const gnomon_matrix *dst, int64_t first_row, int64_t first_col,
                             const char *name);

#endif

/* linalg/gram.h: sums of A^T A in double precision, some rows at a time. */
#ifndef GNOMON_LINALG_GRAM_H
#define GNOMON_LINALG_GRAM_H

#include <gnomon/base.h>

#include <stdbool.h>

/* Numbers of the sums for so many columns, and of the room that adding to them takes. */
int64_t gnomon_gram_numbers(int64_t cols);
int64_t gnomon_gram_room(int64_t cols);

/* sums += A^T A for so many rows of A, ld numbers apart, all of them floats or not; room:
 * gnomon_gram_room numbers. */
void gnomon_gram_add(const gnomon_context *ctx, bool floats, int64_t rows, int64_t cols,
                     const double *a, int64_t ld, double *room, double *sums);

/* A row of A^T A, both triangles, from the sums. */
void gnomon_gram_row(int64_t cols, const double *sums, int64_t row, double *to);

#endif

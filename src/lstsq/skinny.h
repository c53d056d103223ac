/* lstsq/skinny.h: a block of rows times few columns, and its transpose times what comes of that,
 * four rows at a time, so that a row is read from memory once. Sums run in four lanes and rows in
 * their order at every instruction set level, so all levels give the same bits. */
#ifndef GNOMON_LSTSQ_SKINNY_H
#define GNOMON_LSTSQ_SKINNY_H

#include "base/isa.h"

/* t (rows x cols) = sign * A w^T + start * t, then z (cols x d) += t^T A. A: rows x d, w: cols x d.
 */
typedef struct gnomon_skinny_job {
    int64_t rows, d, cols, lda;
    const double *a, *w;
    double sign;
    bool add; /* start from t as it is; else from 0 */
    double *t, *z;
} gnomon_skinny_job;

typedef void (*gnomon_skinny_fn)(const gnomon_skinny_job *job);
gnomon_skinny_fn gnomon_skinny_kernel(gnomon_isa isa);

#endif

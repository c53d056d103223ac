/* gemm/slices.h: a task's products by bf16 matrix units (kernels.h), where cpu.c's own product has
 * fused multiply-adds in fp32. */
#ifndef GNOMON_GEMM_SLICES_H
#define GNOMON_GEMM_SLICES_H

#include "project/fold.h"

/* What a task has at hand. */
typedef struct gnomon_slices {
    const gnomon_kernels *kernels;
    const gnomon_matrix *a; /* whose rows lie with col_stride 1; NULL: they don't */
    const gnomon_fold *rows, *cols;
    bool turned;         /* the rows are the product's columns */
    int64_t tiles;       /* of columns at a time, at most */
    float *right, *left; /* gnomon_slices_right and gnomon_slices_left numbers */
} gnomon_slices;

int64_t gnomon_slices_right(int64_t tiles);
int64_t gnomon_slices_left(void);

/* Makes the slices of steps [step, step + steps), GNOMON_SLICE_CHUNK at most, of so many tiles'
 * columns. */
void gnomon_slices_columns(const gnomon_slices *s, int64_t tile, int64_t tiles, int64_t step,
                           int64_t steps);

/* Makes those of up to GNOMON_SLICE_BAND rows. which: 0 or 1, of two that there is room for. */
void gnomon_slices_rows(const gnomon_slices *s, int which, int64_t row, int64_t rows, int64_t step,
                        int64_t steps);

/* sums += these steps' products of those rows with those columns; a tile's are apart numbers from
 * the next one's. Then makes the slices of the next rows, if any, the other of the two. */
void gnomon_slices_band(const gnomon_slices *s, int which, int64_t row, int64_t rows, int64_t next,
                        int64_t tile, int64_t tiles, int64_t step, int64_t steps, double *sums,
                        int64_t apart);

#endif

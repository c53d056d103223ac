#include "gemm/pack.h"

#include "base/arithmetic.h"

#include <string.h>

/* The columns of a step as they lie: each line of B is spread over the tiles. */
static void spread_lines(const gnomon_fold *f, const gnomon_kernels *kernels, int64_t tile,
                         int64_t tiles, int64_t step, int64_t steps, int64_t depth, float *right)
{
    enum { AHEAD = 8 };
    float line[GNOMON_GEMM_TILES * GNOMON_LANES];
    const int64_t col = tile * GNOMON_LANES, lanes = tiles * GNOMON_LANES;
    const int64_t cols = gnomon_min(lanes, f->points - col);
    memset(line, 0, sizeof line);
    for (int64_t s = 0; s < steps; s++, right += GNOMON_LANES) {
        const char *from = f->data + (col + (step + s) * f->col_stride) * f->size;
        for (int64_t j = 0; s + AHEAD < steps && j < cols * f->size; j += 64)
            __builtin_prefetch(from + AHEAD * f->col_stride * f->size + j);
        if (f->dtype == GNOMON_F16)
            kernels->to_f32((const uint16_t *)(const void *)from, cols, line);
        else
            memcpy(line, from, (size_t)cols * sizeof *line);
        for (int64_t i = 0; i < tiles; i++)
            memcpy(right + i * depth * GNOMON_LANES, line + i * GNOMON_LANES,
                   GNOMON_LANES * sizeof *line);
    }
}

void gnomon_gemm_columns(const gnomon_fold *f, const gnomon_kernels *kernels, int64_t tile,
                         int64_t tiles, int64_t step, int64_t steps, int64_t depth, float *right)
{
    if (f->row_stride == 1) {
        spread_lines(f, kernels, tile, tiles, step, steps, depth, right);
        return;
    }
    for (int64_t i = 0; i < tiles; i++)
        gnomon_fold_pack(f, kernels, false, tile + i, step, steps,
                         right + i * depth * GNOMON_LANES);
}

/* Each line is short and far from the last: the machine must be told what comes. */
void gnomon_gemm_lines(const gnomon_matrix *a, const gnomon_kernels *kernels, int64_t row,
                       int64_t rows, int64_t step, int64_t steps, int64_t ld, float *left)
{
    enum { AHEAD = 4 };
    const int64_t size = a->dtype == GNOMON_F32 ? 4 : 2;
    for (int64_t i = 0; i < rows; i++, left += ld) {
        const char *from = (const char *)a->data + ((row + i) * a->row_stride + step) * size;
        for (int64_t j = 0; i + AHEAD < rows && j < steps * size; j += 64)
            __builtin_prefetch(from + AHEAD * a->row_stride * size + j);
        if (a->dtype == GNOMON_F32)
            memcpy(left, from, (size_t)steps * sizeof *left);
        else
            kernels->to_f32((const uint16_t *)(const void *)from, steps, left);
    }
}

void gnomon_gemm_turn(const gnomon_kernels *kernels, const float *in, int64_t ld, int64_t rows,
                      float *out)
{
    const void *lane[GNOMON_LANES];
    int64_t valid[GNOMON_LANES];
    for (int64_t l = 0; l < GNOMON_LANES; l++) {
        lane[l] = l < rows ? in + l * ld : NULL;
        valid[l] = l < rows ? GNOMON_LANES : 0;
    }
    (void)kernels->pack_f32(lane, valid, GNOMON_F32, 1, false, GNOMON_LANES, out);
}

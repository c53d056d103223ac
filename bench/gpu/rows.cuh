/* Sets as sparse rows in page-locked memory, and the numbers that they are drawn by. */
#ifndef GNOMON_BENCH_CUDA_ROWS_H
#define GNOMON_BENCH_CUDA_ROWS_H

#include "bench.cuh"

struct rows {
    int64_t count, entries;
    int64_t *offsets, *indices;
    uint8_t *values;
};

static uint64_t seed; /* the program's */

static double draw()
{
    return ((double)(bench_mix(seed++) >> 12) + 0.5) * 0x1p-52;
}

static int64_t below(int64_t n)
{
    return (int64_t)(draw() * (double)n);
}

#endif

/* Sparse rows and the same points dense: what the tests of sparse search and joins share. */
#ifndef SPARSE_TESTING_H
#define SPARSE_TESTING_H

#include "search_testing.h"

static const gnomon_metric sparse_metrics[] = {GNOMON_L2, GNOMON_COSINE, GNOMON_IP, GNOMON_L1};
enum { SPARSE_METRICS = sizeof sparse_metrics / sizeof *sparse_metrics };

typedef enum sparse_kind {
    SPARSE_TEXT,    /* columns by Zipf's law, weights above 0; some rows are copies */
    SPARSE_SIGNED,  /* the same with both signs, scales from 2^-300 to 2^300 among the rows */
    SPARSE_ONE_HOT, /* four ones a row: ties everywhere */
    SPARSE_DENSE,   /* nine of ten columns; one that all rows have */
    SPARSE_EQUAL,   /* all rows are the same */
    SPARSE_KINDS
} sparse_kind;

typedef struct sparse_rows {
    gnomon_csr csr;
    double *dense; /* rows x d */
    int64_t d;
} sparse_rows;

/* Column j of d where 'wide': of 2^56, with the same remainder by 16, which decides the order of
 * sums. */
static inline int64_t sparse_column(int64_t j, bool wide)
{
    return wide ? (j / 16 << 50) + j % 16 : j;
}

static inline double sparse_value(sparse_kind kind, int64_t row, int64_t j, uint64_t *state)
{
    const double u = (double)(draw_bits(state) >> 11) * 0x1p-53;
    const double v = (double)(draw_bits(state) % 1000 + 1) / 64;
    switch (kind) {
    case SPARSE_TEXT:
        return u < 2.0 / (double)(j + 2) ? v : 0;
    case SPARSE_SIGNED:
        return u < 2.0 / (double)(j + 2)
                   ? ldexp(draw_bits(state) % 2 ? v : -v, (int)(row % 7 * 100) - 300)
                   : 0;
    case SPARSE_ONE_HOT:
        return j % 12 == (row * 7 + j / 12 * (row % 5)) % 12 ? 1 : 0;
    case SPARSE_DENSE:
        return j == 5 || u < 0.9 ? v - 4 : 0;
    default:
        return j % 3 == 0 ? (double)j / 8 + 1 : 0;
    }
}

/* Rows whose entries come in no order, some in two parts and some as zeros. Row 3 has no entries
 * and row 4 one of zero alone; row 6 has all columns. */
static inline sparse_rows sparse_make(sparse_kind kind, int64_t rows, int64_t d, bool wide,
                                      uint64_t seed)
{
    sparse_rows r = {.d = d, .dense = calloc((size_t)(rows * d + 1), sizeof *r.dense)};
    int64_t *offsets = malloc((size_t)(rows + 1) * sizeof *offsets), count = 0;
    int64_t *indices = malloc((size_t)(2 * rows * d + 1) * sizeof *indices);
    double *values = malloc((size_t)(2 * rows * d + 1) * sizeof *values);
    uint64_t state = seed;
    offsets[0] = 0;
    for (int64_t i = 0; i < rows; i++) {
        double *x = r.dense + i * d;
        for (int64_t j = 0; j < d; j++)
            x[j] = sparse_value(kind, i, j, &state);
        if (kind <= SPARSE_SIGNED && i % 9 == 8) memcpy(x, x - 5 * d, (size_t)d * sizeof *x);
        if (kind != SPARSE_EQUAL && (i == 3 || i == 4)) memset(x, 0, (size_t)d * sizeof *x);
        for (int64_t j = 0; j < d && i == 6 && kind != SPARSE_EQUAL; j++)
            x[j] = (double)(j % 5 + 1);
        for (int64_t n = 0; n < d; n++) { /* 101 steps from column to column, and 101 is a prime */
            const int64_t j = (n * 101 + i) % d;
            const bool zero = i != 3 && draw_bits(&state) % 16 == 0;
            if (x[j] == 0 && !zero) continue;
            const bool parts = x[j] != 0 && draw_bits(&state) % 8 == 0;
            for (int part = 0; part <= parts; part++) {
                indices[count] = sparse_column(j, wide);
                values[count++] = parts ? x[j] / 2 : x[j];
            }
        }
        offsets[i + 1] = count;
    }
    r.csr = (gnomon_csr){rows, wide ? (int64_t)1 << 56 : d, offsets, indices, values, GNOMON_F64};
    return r;
}

static inline void sparse_drop(sparse_rows *r)
{
    free((void *)r->csr.offsets);
    free((void *)r->csr.indices);
    free((void *)r->csr.values);
    free(r->dense);
}

/* Rows [from, from + rows). */
static inline gnomon_csr sparse_part(const gnomon_csr *csr, int64_t from, int64_t rows)
{
    gnomon_csr part = *csr;
    const int64_t begin = csr->offsets[from] - csr->offsets[0];
    part.rows = rows;
    part.offsets = csr->offsets + from;
    part.indices = csr->indices + begin;
    part.values = (const double *)csr->values + begin;
    return part;
}

static inline bool sparse_larger(gnomon_metric metric)
{
    return metric == GNOMON_IP;
}

static inline bool sparse_within(gnomon_metric metric, double distance, double limit)
{
    return sparse_larger(metric) ? distance >= limit : distance <= limit;
}

#endif

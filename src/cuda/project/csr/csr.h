/* cuda/project/csr/csr.h: sketches of sparse rows.
 *
 * Every sum runs over its row's nonzeros by ascending column, those of one column in the order in
 * which they stand, with the CPU's operations (src/project/sparse): a sketch has the CPU's bits.
 * So how the work is divided, and whether entries are drawn once a column or once a nonzero, is
 * free:
 *
 *  - kinds with few nonzeros a column (sjlt, blockperm-sjlt, very-sparse): a warp takes a row, its
 *    sums in shared memory. 32 entries of S's columns at a time find their sums; those that meet
 *    in one sum are added in turn.
 *  - dense kinds: a thread takes some of S's rows and walks along the row, its sums in registers.
 *
 * Columns of S are made once where x has at least about as many nonzeros as columns: signs as bits,
 * fp16 and fp32 entries as they are, the nonzeros of sparse kinds as lists. */
#ifndef GNOMON_CUDA_CSR_H
#define GNOMON_CUDA_CSR_H

#include "cuda/project/entries.cuh"
#include "cuda/runtime/state.h"

/* Rows with more nonzeros are shared among several warps. */
enum { GCU_CSR_LONG = 32768 };

/* Sparse rows in the GPU's memory. Nonzero e of row i is one of offsets[i] - *base <= e <
 * offsets[i + 1] - *base. */
struct gcu_csr {
    int64_t rows, nonzeros; /* nonzeros: of all rows from *base on */
    const int64_t *offsets, *base;
    const int64_t *cols; /* ascending in a row, those of one column in stored order */
    const void *values;  /* float, or double in f64 jobs */
};

enum gcu_csr_way {
    GCU_CSR_BITS,   /* signs of 32 rows a word */
    GCU_CSR_HALVES, /* fp16 entries, four rows together */
    GCU_CSR_FLOATS,
    GCU_CSR_DRAWN,             /* nothing is kept */
    GCU_CSR_CODES,             /* codes of a column's nonzeros, as many in each */
    GCU_CSR_CODES_OF_NONZEROS, /* the same for each nonzero of x */
    GCU_CSR_LISTS              /* codes of a column's nonzeros */
};

/* Columns [first, first + cols) of S's rows [row, row + rows). A code is a row of S, doubled, plus
 * 1 for a -1. */
struct gcu_csr_table {
    gcu_csr_way way;
    int64_t first, cols;
    int64_t row, rows;
    int64_t width;   /* BITS: words a column; HALVES, FLOATS: groups of four rows a column */
    int64_t threads; /* BITS: words that stand for 32 threads' rows, see gcu_csr_bit_row */
    int64_t each;    /* codes a column */
    int each_log2;   /* -1: no power of two */
    void *data;
    uint32_t *start; /* LISTS: cols + 1 */
};

/* The job, but for the points. */
struct gcu_csr_sketch {
    const gnomon_simple *a;
    gcu_matrix m;
    const gcu_gpu *gpu;
    gcu_csr_table table;
    int64_t row, rows; /* of S */
    int64_t col;       /* of S: that of x's column 0 */
    bool f64;
    double factor, beta;
    cudaStream_t stream;
};

/* Where sums go: element (i, r) at i * row_stride + r * col_stride. */
struct gcu_csr_out {
    void *y;
    gnomon_dtype dtype;
    int64_t row_stride, col_stride;
    double factor, beta;
};

/* What of x a check in the GPU's memory finds: places are the lowest, or ~0. */
struct gcu_csr_findings {
    unsigned long long bad_offset, bad_index, nonfinite;
    unsigned long long descents, breaks; /* steps down; those that are from one row to the next */
    long long first, nonzeros;
};

/* ---- scan.cu ---- */

/* Offsets, then indices and, when asked, values; enqueued, *findings in the GPU's memory. */
cudaError_t gcu_csr_scan(const gcu_csr *x, int64_t cols, gnomon_dtype dtype, bool values,
                         gcu_csr_findings *findings, cudaStream_t stream);
/* to = from as float or double. */
cudaError_t gcu_csr_convert(const void *from, gnomon_dtype dtype, int64_t count, bool f64, void *to,
                            cudaStream_t stream);
/* Every row's nonzeros in ascending order of their columns, stable, into cols and values. */
size_t gcu_csr_sort_bytes(int64_t nonzeros);
cudaError_t gcu_csr_sort(const gcu_csr *x, int64_t width, bool f64, int64_t *cols, void *values,
                         void *work, size_t work_bytes, cudaStream_t stream);
/* The numbers of the rows with more than GCU_CSR_LONG nonzeros, in any order; *count of them. */
cudaError_t gcu_csr_find_long(const gcu_csr *x, uint32_t *rows, unsigned *count,
                              cudaStream_t stream);

/* ---- tables.cu ---- */

/* Chooses the way and the shape of s->table for x's columns and so many nonzeros; the table may
 * take so many bytes. False when there is no way: why says so. */
bool gcu_csr_plan_table(gcu_csr_sketch *s, int64_t cols, int64_t nonzeros, size_t bytes, char *why,
                        size_t why_size);
/* Of data, but for LISTS, whose number is not known before they are counted. */
size_t gcu_csr_table_bytes(const gcu_csr_table *t);
/* LISTS: counts into t->start and sums up; the last is the number of codes. work: the next. */
size_t gcu_csr_count_bytes(const gcu_csr_table *t);
cudaError_t gcu_csr_count_lists(const gcu_csr_sketch *s, void *work, size_t work_bytes);
/* Bytes of work for the next: permutation keys, cursors. */
size_t gcu_csr_fill_bytes(const gcu_csr_sketch *s);
cudaError_t gcu_csr_fill_table(const gcu_csr_sketch *s, void *work);
/* CODES_OF_NONZEROS: of all of x's, into codes. work as above. */
cudaError_t gcu_csr_code_nonzeros(const gcu_csr_sketch *s, const gcu_csr *x, uint32_t *codes,
                                  void *work);

/* ---- scatter.cu, columns.cu ---- */

/* y = sums of x's rows. longs: room for nonzeros / GCU_CSR_LONG + 2 numbers. codes: of
 * CODES_OF_NONZEROS. */
cudaError_t gcu_csr_scatter(const gcu_csr_sketch *s, const gcu_csr *x, const uint32_t *codes,
                            const gcu_csr_out *out, uint32_t *longs);
cudaError_t gcu_csr_columns(const gcu_csr_sketch *s, const gcu_csr *x, const gcu_csr_out *out,
                            uint32_t *longs);
static inline cudaError_t gcu_csr_sums(const gcu_csr_sketch *s, const gcu_csr *x,
                                       const uint32_t *codes, const gcu_csr_out *out,
                                       uint32_t *longs)
{
    switch (s->table.way) {
    case GCU_CSR_CODES:
    case GCU_CSR_CODES_OF_NONZEROS:
    case GCU_CSR_LISTS:
        return gcu_csr_scatter(s, x, codes, out, longs);
    default:
        return gcu_csr_columns(s, x, out, longs);
    }
}

/* ---- for kernels ---- */

#ifdef __CUDACC__

/* The row, counted from the table's first, of bit i of word w. Neighbouring words have neighbouring
 * rows, so that threads write side by side. */
static __host__ __device__ __forceinline__ int64_t gcu_csr_bit_row(const gcu_csr_table &t,
                                                                   int64_t w, int i)
{
    return w / t.threads * (32 * t.threads) + i * t.threads + w % t.threads;
}

/* The CPU's gnomon_store_rows. */
template <typename V>
static __device__ __forceinline__ void gcu_csr_emit(const gcu_csr_out &out, int64_t i, int64_t r,
                                                    V sum)
{
    const int64_t at = i * out.row_stride + r * out.col_stride;
    if (out.dtype == GNOMON_F64) {
        double *y = static_cast<double *>(out.y) + at;
        *y = gcu_finished(out.factor, (double)sum, out.beta, y);
    } else {
        float *y = static_cast<float *>(out.y) + at;
        *y = gcu_finished(out.factor, (double)sum, out.beta, y);
    }
}

#endif
#endif

/* gnomon/matrix.h: views of dense and sparse matrices. A view does not own its memory.
 *
 * Points are rows: X is n x D, with n points of D coordinates. Two layouts are equally supported:
 * 'points contiguous' (col_stride 1, NumPy's order) and 'coordinates contiguous' (row_stride 1, the
 * D x n matrix of texts that write points as columns).
 *
 * The smallest complete program:
 *
 *     #include <gnomon/matrix.h>
 *     #include <stdio.h>
 *
 *     int main(void)
 *     {
 *         float points[2 * 3] = {1, 2, 3, 4, 5, 6};
 *         const gnomon_matrix x = gnomon_matrix_rowmajor(points, GNOMON_F32, 2, 3);
 *         const gnomon_matrix t = gnomon_matrix_transposed(&x);
 *         printf("%d x %d\n", (int)t.rows, (int)t.cols); // 3 x 2
 *         return 0;
 *     } */
#ifndef GNOMON_MATRIX_H
#define GNOMON_MATRIX_H

#include <gnomon/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Element types; the numbers never change. BF16 is the upper half of an F32. */
typedef enum gnomon_dtype {
    GNOMON_F32 = 1,
    GNOMON_F64 = 2,
    GNOMON_F16 = 3,
    GNOMON_BF16 = 4,
    GNOMON_I8 = 5,
    GNOMON_U8 = 6,
    GNOMON_I16 = 7,
    GNOMON_U16 = 8,
    GNOMON_I32 = 9,
    GNOMON_U32 = 10,
    GNOMON_I64 = 11,
    GNOMON_U64 = 12
} gnomon_dtype;

/* Bytes per element; 0 for an unknown type. */
GNOMON_API size_t gnomon_dtype_size(gnomon_dtype dtype);
/* "f32", "u8", ...; "?" for a number that is no type; static storage. */
GNOMON_API const char *gnomon_dtype_name(gnomon_dtype dtype);

/* Where a view's memory is. */
typedef enum gnomon_memory { GNOMON_HOST = 0, GNOMON_DEVICE_MEMORY = 1 } gnomon_memory;

/* A dense view: element (i, j) is data[i * row_stride + j * col_stride], strides counted in
 * elements, any sign, 0 allowed for inputs. data is aligned to the element's size, and may be NULL
 * only when rows or cols is 0. Integers are converted without scaling. */
typedef struct gnomon_matrix {
    void *data;
    gnomon_dtype dtype;
    gnomon_memory memory;
    int64_t rows, cols;
    int64_t row_stride, col_stride;
} gnomon_matrix;

/* A row-major (points contiguous) host view: strides cols and 1. */
static inline gnomon_matrix gnomon_matrix_rowmajor(void *data, gnomon_dtype dtype, int64_t rows,
                                                   int64_t cols)
{
    gnomon_matrix m = {data, dtype, GNOMON_HOST, rows, cols, cols, 1};
    return m;
}

/* A column-major (coordinates contiguous) host view: strides 1 and rows. */
static inline gnomon_matrix gnomon_matrix_colmajor(void *data, gnomon_dtype dtype, int64_t rows,
                                                   int64_t cols)
{
    gnomon_matrix m = {data, dtype, GNOMON_HOST, rows, cols, 1, rows};
    return m;
}

/* The transpose: a view of the same data with rows and columns exchanged. */
static inline gnomon_matrix gnomon_matrix_transposed(const gnomon_matrix *m)
{
    gnomon_matrix t = *m;
    t.rows = m->cols;
    t.cols = m->rows;
    t.row_stride = m->col_stride;
    t.col_stride = m->row_stride;
    return t;
}

/* Compressed sparse rows: point i's nonzeros are entries offsets[i] - offsets[0] to offsets[i+1] -
 * offsets[0] of indices and values. Column indices need not be sorted; duplicates are added, in
 * stored order. indices and values may be NULL if there are no entries. Host memory only, but for
 * gnomon_sketch_csr (options.csr_memory). */
typedef struct gnomon_csr {
    int64_t rows, cols;
    const int64_t *offsets; /* rows + 1, not negative, not decreasing; may be NULL with 0 rows */
    const int64_t *indices; /* each in [0, cols) */
    const void *values;
    gnomon_dtype dtype; /* of values */
} gnomon_csr;

/* Coordinate triplets in any order; duplicates are added, in stored order. Host memory only. */
typedef struct gnomon_coo {
    int64_t rows, cols, nonzeros;
    const int64_t *row_indices; /* each in [0, rows) */
    const int64_t *col_indices; /* each in [0, cols) */
    const void *values;
    gnomon_dtype dtype;
} gnomon_coo;

/* Checks for NaN and infinity. With GNOMON_ERROR_NONFINITE *row and *col (may be NULL) are the
 * position of the first such element in row order. Integers are always finite. Threads: see
 * gnomon_context.
 * Errors: also ARGUMENT for a bad view. */
GNOMON_API gnomon_status gnomon_matrix_check_finite(gnomon_context *ctx, const gnomon_matrix *m,
                                                    int64_t *row, int64_t *col);

#ifdef __cplusplus
}
#endif
#endif

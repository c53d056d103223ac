/* cuda/svd/f64.h: the steps that differ in double precision. */
#ifndef GNOMON_CUDA_SVD_F64_H
#define GNOMON_CUDA_SVD_F64_H

#include "cuda/svd/svd.h"

enum { GCU_SVD_F64_PARTS = 1024 };
struct gcu_svd_f64_figures {
    double most, squares; /* most: NaN or infinity when there is one */
};

/* ---- svd/f64_kernels.cu: enqueue on stream ---- */

/* As gcu_svd_convert. */
cudaError_t gcu_svd_f64_convert(const gnomon_matrix *from, const double *mean, int exponent,
                                bool across, int64_t pitch, double *to, cudaStream_t stream);
/* figures[0] = those of all lines; GCU_SVD_F64_PARTS places behind it are worked in. */
cudaError_t gcu_svd_f64_scan(const double *data, int64_t lines, int64_t length, int64_t pitch,
                             gcu_svd_f64_figures *figures, cudaStream_t stream);
/* to (s x s, column-major) = the upper triangle of a column-major matrix of so many rows. */
cudaError_t gcu_svd_f64_triangle(const double *from, int64_t rows, int64_t s, double *to,
                                 cudaStream_t stream);
/* Each row times the sign by which its entry of largest magnitude, the first such, is not negative;
 * sign[j] = that. */
cudaError_t gcu_svd_f64_signs(double *data, int64_t rows, int64_t cols, double *sign,
                              cudaStream_t stream);
/* to = from with row i (by_rows) or column j times s[i]. */
cudaError_t gcu_svd_f64_scale(const double *from, int64_t rows, int64_t cols, const double *s,
                              bool by_rows, double *to, cudaStream_t stream);
/* What columns have in common that are nearly orthogonal (svd/f64_small.cu); parts of sums of
 * squares. */
enum { GCU_SVD_F64_OVERLAP_PARTS = 32 };
struct gcu_svd_f64_overlap {
    double off;    /* of F */
    double near;   /* of those F_ij whose columns' lengths are too near to each other */
    double angles; /* of the angles E that take the others away */
    double cosine; /* of K_ij / (d_i d_j), 1 where there is no length */
    int64_t first; /* column from which on F is not small beside the lengths; else s */
};
/* angles (s x s, by rows) = E, rotation = I + E, of the Gram matrix of columns. */
cudaError_t gcu_svd_f64_overlaps(const double *gram, int64_t s, double *angles, double *rotation,
                                 gcu_svd_f64_overlap *part, cudaStream_t stream);
/* root = diag(d) + F; among columns from 'first' on, K over the first one's length. */
cudaError_t gcu_svd_f64_root(const double *gram, int64_t s, int64_t first, double *root,
                             cudaStream_t stream);
/* to (s x k, by rows): columns times it are of length 1 (0 stays 0) and, with 'close', orthogonal
 * but for the square of what they had in common. */
cudaError_t gcu_svd_f64_normalise(const double *gram, int64_t s, int64_t k, bool close, double *to,
                                  cudaStream_t stream);
/* As gcu_svd_lengths. */
cudaError_t gcu_svd_f64_lengths(double *e, int64_t rows, int64_t cols, double *lengths,
                                cudaStream_t stream);

/* ---- svd/f64.cu ---- */

/* Takes what the steps need for so many columns. */
gnomon_status gcu_svd_f64_alloc(gcu_svd *v, int64_t columns);
/* 'to' = the columns of v->tall[0] (rows x v->columns) made orthonormal or, with 'rough', only fit
 * for a product. */
gnomon_status gcu_svd_f64_orthonormalise(gcu_svd *v, int64_t rows, bool rough, double *to);
/* The columns of v->q are an orthonormal basis of nearly A's range. */
gnomon_status gcu_svd_f64_span(gcu_svd *v);
/* The same, and v->z64 = A^T Q. */
gnomon_status gcu_svd_f64_range(gcu_svd *v, int64_t columns);
/* What all that takes, beside the matrix. */
double gcu_svd_f64_bytes(const gcu_svd *v, int64_t columns);

/* ---- svd/f64_small.cu ---- */

/* From these to the singular values, rank of them, U in v->q's place and Vt in v->z64's. */
gnomon_status gcu_svd_f64_small(gcu_svd *v, int64_t *rank);

#endif

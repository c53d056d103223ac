/* cuda/svd_wide.h: factorisations in double precision. */
#ifndef GNOMON_CUDA_SVD_WIDE_H
#define GNOMON_CUDA_SVD_WIDE_H

#include "cuda/svd.h"

enum { GCU_SVD_WIDE_PARTS = 1024 };
struct gcu_svd_wide_figures {
    double most, squares; /* most: NaN or infinity when there is one */
};

struct gcu_svd_wide {
    gcu_svd v; /* the job, small problems, tall matrices; its own matrix and fp32 are not used */
    gnomon_matrix a; /* on the GPU, F64, one stride 1 and the other no shorter than a line */
    double *q, *z;   /* m x columns, n x columns; U and Vt in the end */
    gcu_svd_wide_figures *figures;
};

/* ---- svd_wide_kernels.cu: enqueue on stream ---- */

/* As gcu_svd_convert. */
cudaError_t gcu_svd_wide_convert(const gnomon_matrix *from, int exponent, bool across,
                                 int64_t pitch, double *to, cudaStream_t stream);
/* figures[0] = those of all lines; GCU_SVD_WIDE_PARTS places behind it are worked in. */
cudaError_t gcu_svd_wide_scan(const double *data, int64_t lines, int64_t length, int64_t pitch,
                              gcu_svd_wide_figures *figures, cudaStream_t stream);
/* to (s x s, column-major) = the upper triangle of a column-major matrix of so many rows. */
cudaError_t gcu_svd_wide_triangle(const double *from, int64_t rows, int64_t s, double *to,
                                  cudaStream_t stream);
/* Each row times the sign by which its entry of largest magnitude, the first such, is not negative;
 * sign[j] = that. */
cudaError_t gcu_svd_wide_signs(double *data, int64_t rows, int64_t cols, double *sign,
                               cudaStream_t stream);
/* to = from with row i (by_rows) or column j times s[i]. */
cudaError_t gcu_svd_wide_scale(const double *from, int64_t rows, int64_t cols, const double *s,
                               bool by_rows, double *to, cudaStream_t stream);
/* As gcu_svd_lengths. */
cudaError_t gcu_svd_wide_lengths(double *e, int64_t rows, int64_t cols, double *lengths,
                                 cudaStream_t stream);

/* ---- svd_wide.cu ---- */

/* The work of gcu_svd_job; what it takes on the GPU; why it is not taken there, or NULL. */
gnomon_status gcu_svd_wide_work(gcu_svd *v);
double gcu_svd_wide_bytes(const gnomon_svd_job *job, int64_t columns);
const char *gcu_svd_wide_reason(const gnomon_svd_job *job);

#endif

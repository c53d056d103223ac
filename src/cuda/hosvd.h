/* cuda/hosvd.h: the HOSVD on the GPU: the steps of docs/hosvd.md, for ranks that are given.
 *
 * The tensor is gone through as matrices only: the unfolding of the first mode is one as it lies,
 * that of the last one as well, transposed. A product along the first mode is written with that
 * mode last, so that the next one is first: after a product along each the modes lie as at the
 * beginning, and nothing was ever put in another order by itself. Projections of the modes between
 * go through the tensor as it lies where their lines are whole chunks of the product (cuda/gemm.h),
 * else through an unfolding that is made. */
#ifndef GNOMON_CUDA_HOSVD_H
#define GNOMON_CUDA_HOSVD_H

#include "cuda/svd.h"

extern "C" {
#include "hosvd/job.h"
}

struct gcu_hosvd {
    gnomon_hosvd_job *job;
    gcu_svd v;            /* the range of one mode, and the clock */
    gcu_svd e;            /* small problems */
    gnomon_svd_job range; /* what v is told */
    gnomon_svd_options options;

    int modes, place[GNOMON_TENSOR_MODES]; /* which mode lies where, outermost first */
    int64_t length[GNOMON_TENSOR_MODES];   /* of each mode, as far as it has shrunk */
    gnomon_matrix whole;                   /* X as the job has it, without gaps */
    bool unseen;                           /* nobody has looked for NaN in it */
    float *x, *now;                        /* X's numbers; the tensor as far as it has shrunk */
    bool own;                              /* now is to be given back */
    double *q[GNOMON_TENSOR_MODES];        /* size x width */
    int64_t width[GNOMON_TENSOR_MODES];    /* 0: the identity */
    double *spare;                         /* as large as the largest of q */
    float *narrow;                         /* likewise */
    double *piece;                         /* of an unfolding in fp64 */
    double *rising;                        /* host: eigenvalues */
    gcu_svd_problem problem[GNOMON_TENSOR_MODES]; /* of each mode, where it is small */
};

/* ---- hosvd_cube.cu: the tensor as far as it has shrunk ---- */

int64_t gcu_hosvd_numbers(const gcu_hosvd *h);
/* The first or last mode times f (its length x columns); a mode that was first is last then. */
gnomon_status gcu_hosvd_multiply(gcu_hosvd *h, int mode, gcu_gemm_view f, int64_t columns);
/* Puts the first mode last. */
gnomon_status gcu_hosvd_rotate(gcu_hosvd *h);
/* To where the core is all-orthogonal; the modes lie as before. Fills the job's values. */
gnomon_status gcu_hosvd_turn_all(gcu_hosvd *h);
/* Cuts the first or last mode to 'rank' columns, those of its leading singular vectors; values (may
 * be NULL): its singular values, as many. */
gnomon_status gcu_hosvd_cut(gcu_hosvd *h, int mode, int64_t rank, double *values);
/* Takes what these need, for small problems of at most n x n. */
gnomon_status gcu_hosvd_take(gcu_hosvd *h, int64_t n);

/* ---- hosvd_end.cu: what is left of X, and the result on the host ---- */

gnomon_status gcu_hosvd_measure(gcu_hosvd *h);
gnomon_status gcu_hosvd_hand_out(gcu_hosvd *h);

/* ---- hosvd_kernels.cu: enqueue on stream ---- */

/* to (cols x rows, without gaps) = from (rows x cols, lines 'pitch' apart), transposed. */
cudaError_t gcu_hosvd_turn(const float *from, int64_t rows, int64_t cols, int64_t pitch, float *to,
                           cudaStream_t stream);
cudaError_t gcu_hosvd_turn(const float *from, int64_t rows, int64_t cols, int64_t pitch, double *to,
                           cudaStream_t stream);
/* to (length x left x right) = from (left x length x right). */
cudaError_t gcu_hosvd_unfold(const float *from, int64_t left, int64_t length, int64_t right,
                             float *to, cudaStream_t stream);
/* An element's way to the caller's core: index i of the mode at place p steps by step[p] and is
 * multiplied by sign[p][i]. */
struct gcu_hosvd_way {
    int modes;
    int64_t size[GNOMON_TENSOR_MODES], step[GNOMON_TENSOR_MODES];
    const float *sign[GNOMON_TENSOR_MODES];
};
/* to = from times signs and factor; *large (cleared before) is set when fp32 can't hold one. */
cudaError_t gcu_hosvd_put(const float *from, int64_t count, const gcu_hosvd_way *way, double factor,
                          float *to, int *large, cudaStream_t stream);

/* ---- hosvd.cu ---- */

bool gcu_hosvd_supported(gcu_state *s, const gnomon_hosvd_job *job, gcu_why why);
gnomon_status gcu_hosvd_job(gcu_state *s, gnomon_hosvd_job *job, gcu_why why);

#endif

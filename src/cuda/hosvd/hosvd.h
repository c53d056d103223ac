/* cuda/hosvd/hosvd.h: the HOSVD on the GPU: the steps of docs/reference/hosvd.md, for ranks that
 * are given.
 *
 * The tensor is gone through as matrices only: the unfolding of the first mode is one as it lies,
 * that of the last one as well, transposed. A product along the first mode is written with that
 * mode last, so that the next one is first: after a product along each the modes lie as at the
 * beginning, and nothing was ever put in another order by itself. Projections of the modes between
 * go through the tensor as it lies where their lines are whole chunks of the product
 * (cuda/gemm/gemm.h), else through an unfolding that is made. */
#ifndef GNOMON_CUDA_HOSVD_H
#define GNOMON_CUDA_HOSVD_H

#include "cuda/svd/condition.h"

extern "C" {
#include "hosvd/job.h"
}

/* ---- hosvd/tall.cu: several modes at once; enqueue on stream ---- */

enum { GCU_HOSVD_TALL_MOST = GCU_SVD_CONDITION_MOST, GCU_HOSVD_TALL_CHUNKS = 16 };
#define GCU_HOSVD_NEAR 0x1p-26 /* |Q^T Q - I|_F, below the rounding of fp32 */

/* Matrices of rows x cols (at most GCU_HOSVD_TALL_MOST), row-major. */
struct gcu_hosvd_tall {
    int64_t rows;
    int cols;
    const float *y;  /* what is made orthonormal */
    double *other;   /* room for it */
    double *tall;    /* the result */
    float *f32;      /* the same in fp32 */
    double *parts;   /* gcu_hosvd_tall_parts(rows, cols) */
    double *inverse; /* cols x cols */
    int *found;      /* of each of three rounds: gcu_svd_found; ORTHONORMAL last when all is well */
};
int64_t gcu_hosvd_tall_parts(int64_t rows, int64_t cols);
cudaError_t gcu_hosvd_orthonormalise(const gcu_hosvd_tall *tall, int count, cudaStream_t stream);

/* to (rows x rank) = from (rows x n; NULL: the identity) times the last 'rank' of the vectors that
 * are the columns of an n x n column-major matrix, last first. */
struct gcu_hosvd_basis {
    int64_t rows;
    int n, rank;
    const double *from, *vectors;
    double *to;
};
cudaError_t gcu_hosvd_change_basis(const gcu_hosvd_basis *basis, int count, cudaStream_t stream);

/* to = from (rows x rank) in fp32, its columns times sign[], such that the entry of largest
 * magnitude of each, the first such, is not negative. */
struct gcu_hosvd_signed {
    int64_t rows, rank;
    const double *from;
    float *to, *sign;
};
cudaError_t gcu_hosvd_sign(const gcu_hosvd_signed *factor, int count, cudaStream_t stream);

/* ---- hosvd/core.cu: a small tensor as left x n x right; enqueue on stream ---- */

enum { GCU_HOSVD_CORE_CHUNKS = 64 };
struct gcu_hosvd_unfolding {
    int64_t left, right; /* their product is below 2^31 */
    int n;
    double *parts; /* gcu_hosvd_core_parts(left * right, n) */
    double *gram;  /* n x n */
};
int64_t gcu_hosvd_core_parts(int64_t lines, int64_t n);
/* The Gram matrices of unfoldings of x. */
cudaError_t gcu_hosvd_core_grams(const float *x, const gcu_hosvd_unfolding *of, int count,
                                 cudaStream_t stream);
/* to (left x rank x right) = x times the last 'rank' of the vectors, as above, along its mode. */
cudaError_t gcu_hosvd_core_product(const float *x, const gcu_hosvd_unfolding *of, int rank,
                                   const double *vectors, float *to, cudaStream_t stream);

/* ---- one factorisation at work ---- */

/* What the host reads at the end, in one go. */
struct gcu_hosvd_notes {
    double squares; /* of X, as the first projection has seen it */
    int found[GNOMON_TENSOR_MODES][4];
    int large; /* the core has a number that fp32 can't hold */
    double values[GNOMON_TENSOR_MODES][GCU_SVD_JACOBI_MOST]; /* squares, rising */
};

struct gcu_hosvd {
    gnomon_hosvd_job *job;
    gcu_svd v;            /* the range of one mode, and the clock */
    gcu_svd e;            /* small problems */
    gnomon_svd_job range; /* what v is told */
    gnomon_svd_options options;

    int modes, place[GNOMON_TENSOR_MODES]; /* which mode lies where, outermost first */
    int64_t length[GNOMON_TENSOR_MODES];   /* of each mode, as far as it has shrunk */
    gnomon_matrix whole;                   /* X as the job has it, without gaps */
    bool unseen;                           /* it has not been scanned for NaN */
    float *x, *now;                        /* X's numbers; the tensor as far as it has shrunk */
    bool own;                              /* now is to be given back */
    double *q[GNOMON_TENSOR_MODES];        /* size x width */
    double *other[GNOMON_TENSOR_MODES];    /* as large, for another basis */
    int64_t width[GNOMON_TENSOR_MODES];    /* 0: the identity */
    double *spare;                         /* as large as the largest of q */
    float *f32;                            /* likewise */
    double *piece;                         /* of an unfolding in fp64 */
    double *rising;                        /* host: eigenvalues */
    gcu_svd_problem problem[GNOMON_TENSOR_MODES]; /* of each mode, where it is small */

    /* Nothing waits for the host until the end, which tells whether all went well: whether X's
     * squares (pending) show that it needs no closer look, and the ranges are orthonormal. */
    bool deferred, pending;
    gcu_hosvd_tall tall[GNOMON_TENSOR_MODES];
    gcu_hosvd_notes *notes, *seen; /* on the GPU; on the host */
    bool core_squares;             /* notes have the core's squares by each mode */
};

/* ---- hosvd/cube.cu: the tensor as far as it has shrunk ---- */

int64_t gcu_hosvd_numbers(const gcu_hosvd *h);
/* The first or last mode times f (its length x columns); a mode that was first is last then. */
gnomon_status gcu_hosvd_multiply(gcu_hosvd *h, int mode, gcu_gemm_view f, int64_t columns);
/* Puts the first mode last. */
gnomon_status gcu_hosvd_rotate(gcu_hosvd *h);
/* To where the core is all-orthogonal; the modes lie as before. Fills the job's values or, with
 * 'core_squares', the notes'. */
gnomon_status gcu_hosvd_orthogonalise_core(gcu_hosvd *h);
/* Cuts all modes that are longer to their ranks, one after the other, each to its leading singular
 * vectors; the modes lie as before. */
gnomon_status gcu_hosvd_cut_all(gcu_hosvd *h);
/* Cuts the first or last mode likewise; it is last then. */
gnomon_status gcu_hosvd_cut(gcu_hosvd *h, int mode);
/* Cuts the first or last mode to the fewest columns, at most 'most', that leave no more than a
 * budget, whose square is what is left; *spent grows by what they do leave. It is last then. */
gnomon_status gcu_hosvd_cut_to_budget(gcu_hosvd *h, int mode, int64_t most, double budget,
                                      double *spent);
/* Takes what each mode's problem needs where it is small, of at most n x n. */
gnomon_status gcu_hosvd_alloc(gcu_hosvd *h, int64_t n);
/* The most columns that a factor has on the way, and any small problem. */
int64_t gcu_hosvd_width_of(const gnomon_hosvd_job *job, int n);
enum { GCU_HOSVD_SMALL_MOST = 8192 };
int64_t gcu_hosvd_small_most(const gnomon_hosvd_job *job);

/* ---- hosvd/range.cu: a mode's range ---- */

/* Norm, scaling, NaN and infinity, by a pass of its own. */
gnomon_status gcu_hosvd_scan(gcu_hosvd *h);
/* h->q of the mode, by projection of the tensor as it is now; waits, and so takes what it finds. */
gnomon_status gcu_hosvd_find_range(gcu_hosvd *h, int mode);
/* Whether the modes' ranges can be found without a check of intermediate results. */
bool gcu_hosvd_can_defer(const gcu_hosvd *h);
/* Memory for all modes' ranges, in one piece. */
gnomon_status gcu_hosvd_alloc_tall(gcu_hosvd *h);
/* h->q and what multiplies of all these modes, by projection of the tensor as it is now. */
gnomon_status gcu_hosvd_find_ranges(gcu_hosvd *h, const int *modes, int count);
/* Whether what came out is what it should be, h->seen being there. */
bool gcu_hosvd_is_proved(gcu_hosvd *h);

/* ---- hosvd/tolerance.cu ---- */

/* Finds ranks for the job's tolerance, and shrinks the tensor to them; X has been scanned. */
gnomon_status gcu_hosvd_tolerance(gcu_hosvd *h);

/* ---- hosvd/end.cu: what is left of X, and the result on the host ---- */

gnomon_status gcu_hosvd_measure(gcu_hosvd *h);
/* Hands out core and factors, and waits; h->seen has the notes then. */
gnomon_status gcu_hosvd_hand_out(gcu_hosvd *h);
/* What the job tells of the work. */
void gcu_hosvd_report(gnomon_hosvd_job *job, const gnomon_svd_job *range,
                      const double seconds[GCU_PHASES]);

/* ---- hosvd/kernels.cu: enqueue on stream ---- */

/* to (cols x rows, without gaps) = from (rows x cols, lines 'pitch' apart), transposed. */
cudaError_t gcu_hosvd_transpose(const float *from, int64_t rows, int64_t cols, int64_t pitch,
                                float *to, cudaStream_t stream);
cudaError_t gcu_hosvd_transpose(const float *from, int64_t rows, int64_t cols, int64_t pitch,
                                double *to, cudaStream_t stream);
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
/* The same of doubles, without signs. */
cudaError_t gcu_hosvd_put(const double *from, int64_t count, const gcu_hosvd_way *way,
                          double factor, double *to, cudaStream_t stream);

/* ---- hosvd/f64.cu: in double precision ---- */

gnomon_status gcu_hosvd_f64_job(gcu_state *s, gnomon_hosvd_job *job, gcu_why why);
/* What it takes of the GPU's memory, nearly. */
double gcu_hosvd_f64_bytes(const gnomon_hosvd_job *job);

/* ---- hosvd/hosvd.cu ---- */

bool gcu_hosvd_supported(gcu_state *s, const gnomon_hosvd_job *job, gcu_why why);
gnomon_status gcu_hosvd_job(gcu_state *s, gnomon_hosvd_job *job, gcu_why why);

#endif

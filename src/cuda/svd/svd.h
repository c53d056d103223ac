/* cuda/svd/svd.h: the randomized SVD on the GPU: the steps of docs/reference/svd.md with what is
 * long and thin in double precision, in which Hopper's matrix units multiply too, and the products
 * with the matrix on half-precision ones; or all of it in double precision ("f64"). "The work's
 * type" is F32, or F64 when the work is f64.
 *
 * Tall matrices are row-major without gaps: rows x columns is what cuBLAS calls columns x rows. */
#ifndef GNOMON_CUDA_SVD_H
#define GNOMON_CUDA_SVD_H

#include "cuda/gemm/gemm.h"
#include "cuda/linalg/blas.h"
#include "cuda/linalg/small.h"
#include "cuda/runtime/transfer.h"

extern "C" {
#include "svd/job.h"
}

enum { GCU_SVD_CHUNKS = 16 }; /* of rows in a Gram matrix */

/* Device memory of one factorisation, given back from the end. */
enum { GCU_BAG_MOST = 64 };
struct gcu_bag {
    void *held[GCU_BAG_MOST];
    int count;
};

/* Where time goes: events between phases, read at the end. */
enum gcu_phase {
    GCU_PROJECT,
    GCU_POWER,
    GCU_ORTHONORMALISE,
    GCU_SMALL,
    GCU_CERTIFY,
    GCU_SCAN,
    GCU_SHRINK,
    GCU_PHASES
};
struct gcu_laps {
    cudaEvent_t *event; /* event[0] is the beginning */
    gcu_phase *phase;   /* of the time before event[i] */
    int count, room;
};

/* A matrix that stays on the host, or comes row by row (svd/blocks.cu). */
struct gcu_svd_blocks {
    int64_t rows;    /* of a block; 0: the matrix is on the GPU as a whole */
    gcu_place place; /* of the host's view */
    void *raw[2];    /* blocks on the GPU, as they come */
    void *converted; /* a block in the work's type, scaled, where that is not the same */
    void *page[2];   /* page-locked: rows as a stream gives them */
    cudaEvent_t arrived[2], idle[2];
    bool begun;
};

/* Lists that are long, of more entries than LONG, cut into parts of PART. */
enum { GCU_SVD_LIST_PART = 1024, GCU_SVD_LIST_LONG = 4096 /* a multiple of it */ };
struct gcu_svd_long {
    unsigned *counts; /* of lines and parts, while they are found */
    uint32_t *line;   /* which ones */
    uint32_t *first;  /* part of each */
    uint32_t *place;  /* of each part: among those lines */
    int64_t lines, parts;
};

/* A sparse matrix's rows, or columns: entry e of line i, for e in [offsets[i], offsets[i + 1]), is
 * value[e] in column, or row, other[e]. */
struct gcu_svd_lists {
    int64_t lines, *offsets;
    uint32_t *other;
    void *value; /* of the work's type */
    gcu_svd_long many;
};

/* What one of several GPUs has of A: rows, whose products are rows of A w, and columns, whose
 * products are rows of A^T w. So no sum is cut. */
enum gcu_svd_side { GCU_SVD_ROWS, GCU_SVD_COLUMNS, GCU_SVD_SIDES };
enum { GCU_SVD_SHARES_MOST = 16 };
struct gcu_svd;
struct gcu_svd_share {
    gcu_state *s;
    int64_t first[GCU_SVD_SIDES], count[GCU_SVD_SIDES];
    gnomon_matrix side[GCU_SVD_SIDES]; /* in its own memory */
    void *held[GCU_SVD_SIDES];         /* that was taken for it */
    bool there[GCU_SVD_SIDES];
    cudaEvent_t came[GCU_SVD_SIDES], done;
    void *w, *work; /* the other factor; work space */
    float *out;
    size_t w_bytes, work_bytes, out_bytes;
    gcu_svd *at;                        /* its work on another GPU than the factorisation's own */
    gcu_svd_lists lists[GCU_SVD_SIDES]; /* of sparse rows, instead of 'side' */
};
struct gcu_svd_shares {
    int count;   /* 0: nothing is divided */
    bool spread; /* A lies in the memory of several GPUs */
    cudaEvent_t asked;
    gcu_svd_share of[GCU_SVD_SHARES_MOST]; /* the first one is that of the factorisation's own */
};

struct gcu_svd_sparse {
    int64_t nonzeros;
    gcu_svd_lists by_row, by_column;
};

/* What kernels leave for the host to decide by. */
enum { GCU_SVD_STATS_PARTS = 64 };
struct gcu_svd_stats {
    double off_part[GCU_SVD_STATS_PARTS];   /* of |G - I|_F^2 */
    double trace_part[GCU_SVD_STATS_PARTS]; /* of G's trace */
    double fewest, most;                    /* on the diagonal of its Cholesky factor */
    int info;                               /* of the factorisation */
    int found[3];                           /* by rounds: gcu_svd_found */
};

struct gcu_svd {
    gcu_state *s;
    gnomon_svd_job *job;
    gcu_why why;
    cudaStream_t stream;
    gcu_blas *blas;
    gcu_bag bag;
    gcu_laps laps;

    gcu_svd_blocks blocks;
    gcu_svd_shares shares;
    bool f64;

    double *mean; /* on the GPU: what a's rows are to be less, of the unscaled matrix or, of sparse
                     rows, the scaled one; NULL: nothing */
    gcu_svd_sparse sparse; /* of a job with a csr, instead of a */
    gnomon_matrix a; /* where it is there as a whole: on the GPU, of the work's type, one stride 1
                        and the other no shorter than a line */
    int64_t m, n;
    int64_t run, run_stride;  /* when not 0, a's columns come in runs: gemm/gemm.h */
    double *squares;          /* on the GPU; see gcu_svd_project */
    int64_t bad_row, bad_col; /* of the first element that is not finite, after NONFINITE */

    /* Of so many columns of the projection: */
    int64_t columns;
    float *y, *z;    /* m x columns, n x columns; U and Vt in the end */
    double *z64;     /* of f64 work instead of z; q is instead of y */
    void *tested;    /* A times the test vectors, of rows that are read once; else NULL */
    int64_t checks;  /* of a tolerance on sparse rows, each by test vectors of its own */
    void *half;      /* max(m, n) x columns halves, where many columns are made fit for a product */
    double *q;       /* the orthonormal range; like tall[] */
    double *tall[2]; /* max(m, n) x columns, and a few rows more */
    double *chunks;  /* of a Gram matrix, and one more */
    double *gram, *factor, *vectors, *kept; /* columns x columns */
    double *values;                         /* columns */
    float *sign;
    double *work; /* of cuSOLVER */
    int64_t work_count;
    void *eigen_device, *eigen_host;
    size_t eigen_device_bytes, eigen_host_bytes;
    void *product_work; /* of gcu_gemm_run */
    size_t product_bytes;
    int *info;
    gcu_svd_stats *stats, *seen; /* on the GPU; page-locked */
};

static inline gnomon_dtype gcu_svd_type(const gcu_svd *v)
{
    return v->f64 ? GNOMON_F64 : GNOMON_F32;
}
static inline size_t gcu_svd_size(const gcu_svd *v)
{
    return v->f64 ? sizeof(double) : sizeof(float);
}
/* Q, U in the end; B^T, Vt in the end: in the work's type. */
static inline void *gcu_svd_left(const gcu_svd *v)
{
    return v->f64 ? (void *)v->q : (void *)v->y;
}
static inline void *gcu_svd_right(const gcu_svd *v)
{
    return v->f64 ? (void *)v->z64 : (void *)v->z;
}

/* Device memory until the factorisation ends; MEMORY when there is none. */
gnomon_status gcu_svd_alloc(gcu_svd *v, size_t bytes, void **data);
/* Gives back what was taken since the bag held so many. */
void gcu_svd_free(gcu_svd *v, int count);
template <typename T> static inline gnomon_status gcu_svd_room(gcu_svd *v, int64_t count, T **data)
{
    void *memory = nullptr;
    const gnomon_status status = gcu_svd_alloc(v, (size_t)count * sizeof(T), &memory);
    *data = static_cast<T *>(memory);
    return status;
}
/* Ends a lap that belongs to a phase. */
gnomon_status gcu_svd_lap(gcu_svd *v, gcu_phase phase);
/* Tells the caller how far the work is; CANCELLED when it is to stop. */
gnomon_status gcu_svd_tell(gcu_svd *v);
/* Gives back all that the work took, waits for the stream, and sums the laps of each phase; status,
 * or what went wrong there. */
gnomon_status gcu_svd_close(gcu_svd *v, double seconds[GCU_PHASES], gnomon_status status);

/* Takes what problems of n x n need: chunks to info, eigen. */
gnomon_status gcu_svd_alloc_small(gcu_svd *v, int64_t n);
/* Takes that, and what the steps need, for so many columns: z, and room for matrices as tall as A
 * is wide, with 'both' only. */
gnomon_status gcu_svd_alloc_columns(gcu_svd *v, int64_t columns, bool both);
/* Projection, v->y; power iterations, v->y again, which need 'both' sides; and those with the last
 * of the steps, after which the columns of v->q, in fp64, are an orthonormal basis of nearly A's
 * range. */
gnomon_status gcu_svd_begin_span(gcu_svd *v);
gnomon_status gcu_svd_iterate(gcu_svd *v);
gnomon_status gcu_svd_end_span(gcu_svd *v);
/* Copies a packed matrix on the GPU, of the same type, to where the caller wants it. */
gnomon_status gcu_svd_hand_out(gcu_svd *v, const gnomon_matrix *to, void *data);

/* ---- svd/figures.cu: numbers of the work's type ---- */

/* Whether a matrix lies by columns. */
static inline bool gcu_svd_is_across(const gnomon_matrix *a)
{
    return a->row_stride == 1 && a->col_stride != 1;
}
/* to = from * 2^-exponent in the work's type; 'to' lies as v->a does. */
gnomon_status gcu_svd_scaled_copy(gcu_svd *v, const gnomon_matrix *from, int exponent,
                                  const gnomon_matrix *to);
/* The same by the job's exponent, and less v->mean, where there is one. */
gnomon_status gcu_svd_centered_copy(gcu_svd *v, const gnomon_matrix *from, const gnomon_matrix *to);
/* What was seen so far: largest is infinite or NaN when a number is. */
struct gcu_svd_scan_state {
    void *figures; /* on the GPU */
    double squares, largest;
};
/* Room for the figures of so many units (of fp32 numbers), and for their total. */
gnomon_status gcu_svd_alloc_figures(gcu_svd *v, int64_t units, void **figures);
/* Adds a view's figures up in those of *l; NaN passes. */
gnomon_status gcu_svd_add_figures(gcu_svd *v, const gnomon_matrix *a, gcu_svd_scan_state *l);
/* *l = that of so many numbers on the GPU, of the work's type. */
gnomon_status gcu_svd_figures_of(gcu_svd *v, const void *data, int64_t count,
                                 gcu_svd_scan_state *l);
/* The norm of A as it came, or as job->exponent made it; the further scaling by its largest
 * magnitude, and the norm after it: of f64 work only where there is none, since squares of what is
 * not scaled may overflow. */
void gcu_svd_set_scale(gcu_svd *v, double norm, double largest);

/* ---- svd/matrix.cu: the matrix and what is multiplied with it ---- */

/* Calls fn with all rows of A on the GPU, in their order, block by block; 'row' is the first. */
typedef gnomon_status (*gcu_svd_block_fn)(gcu_svd *v, const gnomon_matrix *block, int64_t row,
                                          void *arg);
gnomon_status gcu_svd_each(gcu_svd *v, gcu_svd_block_fn fn, void *arg);
/* Rows [row, row + rows) of a matrix. */
gnomon_matrix gcu_svd_part(const gnomon_matrix *a, int64_t row, int64_t rows);
/* How many rows a block has. */
int64_t gcu_svd_block_rows(int64_t rows, int64_t cols);
gnomon_status gcu_svd_blocks_open(gcu_svd *v);
/* Room for blocks that are converted or scaled. */
gnomon_status gcu_svd_blocks_converted(gcu_svd *v);
/* A block's place in that room. */
gnomon_matrix gcu_svd_converted_block(const gcu_svd *v, const gnomon_matrix *block);
void gcu_svd_blocks_close(gcu_svd *v);

/* C (m x n, row-major) = alpha A B + beta C. */
gnomon_status gcu_svd_product(gcu_svd *v, int64_t m, int64_t n, int64_t k, float alpha,
                              gcu_gemm_view a, gcu_gemm_view b, float beta, float *c);
/* A row-major matrix of so many columns, and its transpose, as operands. */
static inline gcu_gemm_view gcu_svd_rows(const float *data, int64_t cols)
{
    return {data, GNOMON_F32, cols, 1};
}
static inline gcu_gemm_view gcu_svd_transposed(const float *data, int64_t cols)
{
    return {data, GNOMON_F32, 1, cols};
}
/* A view of fp32, or its transpose, as an operand. */
static inline gcu_gemm_view gcu_svd_operand(const gnomon_matrix *a, bool transposed)
{
    return {a->data, GNOMON_F32, transposed ? a->col_stride : a->row_stride,
            transposed ? a->row_stride : a->col_stride};
}

/* c (m x n) = alpha op(a) op(b) + beta c in the work's type, all of them row-major without gaps: a
 * is m x k or, transposed, k x m; b is k x n or, transposed, n x k. */
gnomon_status gcu_svd_times(gcu_svd *v, int64_t m, int64_t n, int64_t k, double alpha,
                            const void *a, bool a_transposed, const void *b, bool b_transposed,
                            double beta, void *c);

/* Brings A to the GPU in the work's type or, with 'apart', readies its blocks. */
gnomon_status gcu_svd_bring(gcu_svd *v, bool apart);
/* Refuses NaN and infinity, finds norm and scaling. */
gnomon_status gcu_svd_check(gcu_svd *v);
/* gcu_svd_check for a block of rows that are read once, in their order, whose first numbers
 * determine the scaling: *block is scaled then. *l begins as zeros. */
gnomon_status gcu_svd_note(gcu_svd *v, gnomon_matrix *block, int64_t row, gcu_svd_scan_state *l);
/* Fails with NONFINITE, naming the first such element of a block of A's rows from 'row' on. */
gnomon_status gcu_svd_name_nonfinite(gcu_svd *v, const gnomon_matrix *block, int64_t row);
/* How the operator's entries are multiplied: F16, F32, or 0 where they are never made. */
gnomon_dtype gcu_svd_entry_dtype(const gnomon_operator *op);
/* The same of a projection that power iterations follow: rounded to F16, since it is no more than
 * where they start, and random all the same. */
gnomon_dtype gcu_svd_start_dtype(const gcu_svd *v);
/* v->y, or of f64 work v->tall[0], = A S^T, S being the operator's rows [0, columns). With
 * v->squares, where it looks, that gets the sum of A's squares (gemm/gemm.h). */
gnomon_status gcu_svd_project(gcu_svd *v, int64_t columns);
bool gcu_svd_sums_squares(const gcu_svd *v, int64_t columns);
/* y (x's rows x columns, row-major) = x S^T by the projections' own kernels, for any operator. */
gnomon_status gcu_svd_sketch(gcu_svd *v, const gnomon_matrix *x, void *y, gnomon_dtype dtype,
                             int64_t columns);
/* to (n x columns, of the work's type) = those rows of any operator, transposed. */
gnomon_status gcu_svd_operator_rows(gcu_svd *v, int64_t columns, void *to);
/* out (m x columns) = A w, or out (n x columns) = A^T w; w of the work's type or, of fp32 work, of
 * halves. */
gnomon_status gcu_svd_multiply(gcu_svd *v, bool transposed, const void *w, gnomon_dtype dtype,
                               int64_t columns, void *out);
/* How w, of halves, is to be packed for the same; false where it is not. */
bool gcu_svd_packing(const gcu_svd *v, bool transposed, int64_t columns, gcu_gemm_packing *packing);
gnomon_status gcu_svd_multiply_packed(gcu_svd *v, bool transposed, const void *w, int64_t columns,
                                      float *out);
/* out = part w, or part^T w, to which that is added with 'add'; a part is some rows of A on the
 * GPU, in the work's type. */
gnomon_status gcu_svd_multiply_part(gcu_svd *v, bool transposed, const gnomon_matrix *part,
                                    const void *w, gnomon_dtype dtype, int64_t columns, bool add,
                                    void *out);
/* What a block gives of y = A S^T for an operator that is not multiplied with. */
struct gcu_svd_sketching {
    int64_t columns;
    void *y;
};
gnomon_status gcu_svd_sketch_block(gcu_svd *v, const gnomon_matrix *block, int64_t row,
                                   void *sketching);
/* Whether A w, or A^T w, can be had where A's columns come in runs. */
bool gcu_svd_runs_supported(const gcu_svd *v, bool transposed, int64_t columns, gnomon_dtype dtype);
/* How many of so many rows are worked with at a time where a residual is measured. */
int64_t gcu_svd_tile_rows(const gcu_svd *v, int64_t rows);
/* *residual = |A - B C|_F: b m x k, c k x n or, transposed, n x k. Not of sparse rows. */
gnomon_status gcu_svd_residual(gcu_svd *v, const void *b, const void *c, bool c_transposed,
                               int64_t k, double *residual);
/* to (cols x count) = rows [first, first + count) and columns [col, col + cols) of a dense simple
 * operator, transposed, raw, in the work's type. */
gnomon_status gcu_svd_draw(gcu_svd *v, const gnomon_operator *op, int64_t first, int64_t count,
                           int64_t col, int64_t cols, void *to);

/* ---- svd/shares.cu: products that several GPUs divide ---- */

/* Decides whether they do, before A comes, and how. */
gnomon_status gcu_svd_shares_open(gcu_svd *v);
/* A dense matrix of the work's type on the host to v->a, whose memory is there: each GPU's link
 * brings some rows. *done false: it is not divided. */
gnomon_status gcu_svd_shares_bring(gcu_svd *v, gcu_place place, bool *done);
/* Every GPU gets what it lacks of v->a, which is as it stays; 'scaled': other numbers than those
 * that came. */
gnomon_status gcu_svd_shares_fill(gcu_svd *v, bool scaled);
/* The product g of all of A, or A^T, by all of them; *done false: by none. */
gnomon_status gcu_svd_shares_product(gcu_svd *v, bool transposed, const gcu_gemm *g, bool *done);
/* The figures of all of v->a, of whose units each scans those of its rows. */
gnomon_status gcu_svd_shares_scan(gcu_svd *v, int64_t lines, int64_t length, int64_t pitch,
                                  void *figures, bool *done);
gnomon_status gcu_svd_shares_close(gcu_svd *v, gnomon_status status);

/* ---- svd/f64_shares.cu: products in double precision, which several GPUs divide ---- */

/* Gives each other GPU the rows and columns of v->a that it multiplies with, or divides nothing. */
gnomon_status gcu_svd_f64_share(gcu_svd *v);
/* out (a's rows or columns x columns) = op(a) w + beta out in doubles. */
gnomon_status gcu_svd_f64_multiply(gcu_svd *v, bool transposed, const gnomon_matrix *a,
                                   const void *w, int64_t columns, double beta, void *out);

/* ---- svd/center.cu: the mean of the columns ---- */

/* v->mean = the job's. */
gnomon_status gcu_svd_bring_mean(gcu_svd *v);
/* v->mean, and the job's, = that of a matrix in the GPU's memory, of finite numbers. */
gnomon_status gcu_svd_find_mean(gcu_svd *v);
/* v->mean times 2^-job->exponent. */
gnomon_status gcu_svd_scale_mean(gcu_svd *v);
/* sums (columns, on the GPU) = x^T w, x (lines numbers) or, NULL, ones; w: lines x columns. */
gnomon_status gcu_svd_column_sums(gcu_svd *v, const double *x, const void *w, gnomon_dtype dtype,
                                  int64_t lines, int64_t columns, double *sums);

/* ---- svd/lists.cu: lists of a sparse matrix's lines ---- */

/* What a product of rows less their mean has to be less in a line and column: the product of both,
 * of_line NULL standing for ones; of_column NULL: nothing. */
struct gcu_svd_less {
    const double *of_line, *of_column;
};
/* out (lines x columns) = the lists times w, less that. */
gnomon_status gcu_svd_lists_multiply(gcu_svd *v, const gcu_svd_lists *l, const void *w,
                                     gnomon_dtype dtype, int64_t columns, gcu_svd_less less,
                                     void *out);
/* Offsets that begin at 'first' begin at 0. */
gnomon_status gcu_svd_lists_begin_at_zero(gcu_svd *v, const gcu_svd_lists *l, int64_t first);
/* Finds the long ones, l->many, among lists of so many entries; waits. */
gnomon_status gcu_svd_lists_find_long(gcu_svd *v, gcu_svd_lists *l, int64_t entries);
/* Cuts lists into 'count' runs of about as many entries and lines, of which the first has so many
 * 'more': line[i] is the first of run i, entry[i] its first entry, line[count] and entry[count] how
 * many there are; on the host, waits. */
gnomon_status gcu_svd_lists_cut(gcu_svd *v, const gcu_svd_lists *l, int64_t entries, int64_t more,
                                int count, int64_t *line, int64_t *entry);
/* Whether several GPUs gain by dividing products of sparse rows with so many columns. */
bool gcu_svd_sparse_is_long(int64_t lines, int64_t entries, int64_t columns);

/* ---- svd/sparse.cu: the same of sparse rows ---- */

gnomon_status gcu_svd_sparse_bring(gcu_svd *v);
gnomon_status gcu_svd_sparse_check(gcu_svd *v);
gnomon_status gcu_svd_sparse_multiply(gcu_svd *v, bool transposed, const void *w,
                                      gnomon_dtype dtype, int64_t columns, void *out);
/* What sparse rows take on the GPU; why they are not taken there, or NULL. */
double gcu_svd_sparse_bytes(const gnomon_svd_job *job);
const char *gcu_svd_sparse_reason(const gnomon_svd_job *job);

/* ---- svd/sparse_shares.cu: products of sparse rows that several GPUs divide ---- */

/* Gives each GPU its rows' and columns' lists, which are as they stay. Nothing is divided where
 * that is no gain, or where there is no memory for it. */
gnomon_status gcu_svd_sparse_share(gcu_svd *v);
/* gcu_svd_lists_multiply by all of them; sums: the columns' that mean products are less, or NULL.
 */
gnomon_status gcu_svd_sparse_shares_multiply(gcu_svd *v, bool transposed, const void *w,
                                             gnomon_dtype dtype, int64_t columns, gcu_svd_less less,
                                             void *out);

/* ---- svd/orth.cu ---- */

/* gram = T^T T. */
gnomon_status gcu_svd_gram(gcu_svd *v, double *tall, int64_t rows, int64_t cols);
/* Makes the columns of *tall orthonormal, or (once) only well-conditioned enough for a power
 * iteration; *tall, one of v->tall, may become the other one. The order of columns counts: each is
 * changed by those before it only. */
gnomon_status gcu_svd_orthonormalise(gcu_svd *v, double **tall, int64_t rows, int64_t cols,
                                     bool single_step);
/* Columns that are orthonormal to half of fp64's digits, to all of them. */
gnomon_status gcu_svd_polish(gcu_svd *v, double **tall, int64_t rows, int64_t cols);
/* v->kept = the inverse of v->gram; INTERNAL when that is not safely positive definite. */
gnomon_status gcu_svd_invert_gram(gcu_svd *v, int64_t cols);
double *gcu_svd_other(const gcu_svd *v, const double *tall);
/* v->q = the columns of v->y made orthonormal. */
gnomon_status gcu_svd_orthonormal_range(gcu_svd *v);

/* ---- svd/eigen.cu ---- */

/* The eigenvectors of the n x n v->gram as columns of v->vectors, its eigenvalues, rising, in
 * v->values and, on the host, in 'rising'. */
gnomon_status gcu_svd_eigen(gcu_svd *v, int64_t n, double *rising);
/* to (host) = v->values, as a solver of an n x n problem has left them with v->info; INTERNAL when
 * it did not converge. */
gnomon_status gcu_svd_read_values(gcu_svd *v, int64_t n, double *to);

/* ---- svd/small.cu ---- */

/* From v->q and v->z, A nearly Q Z^T, to the singular values, rank of them, U in v->y and Vt in
 * v->z. */
gnomon_status gcu_svd_small(gcu_svd *v, int64_t *rank);
/* The test vectors of U, S and Vt, and what they leave where that is to be measured. */
gnomon_status gcu_svd_certify(gcu_svd *v, int64_t rank);
/* job->rest = |A - Q B|_F or, of sparse rows, a bound of it by fresh test vectors; *about: nearly
 * that.
 */
gnomon_status gcu_svd_measure_rest(gcu_svd *v, double *about);

/* ---- svd/single.cu ---- */

/* v->q spans nearly A's range, and v->z or v->z64 = B^T, with every row read once. */
gnomon_status gcu_svd_single_pass(gcu_svd *v);
/* What that takes beside what the steps of other ways do. */
double gcu_svd_single_pass_bytes(const gcu_svd *v, int64_t columns);

/* ---- svd/kernels.cu: enqueue on v->stream ---- */

cudaError_t gcu_svd_to_f64(const float *from, int64_t count, double *to, cudaStream_t stream);
cudaError_t gcu_svd_to_f32(const double *from, int64_t count, float *to, cudaStream_t stream);
/* Halves of from * factor. */
cudaError_t gcu_svd_halve(const double *from, int64_t count, double factor, void *to,
                          cudaStream_t stream);
/* to (cols x rows) = from (rows x cols), transposed, both without gaps. */
cudaError_t gcu_svd_transpose(const double *from, int64_t rows, int64_t cols, double *to,
                              cudaStream_t stream);
/* sum = the chunks, added in ascending order. */
cudaError_t gcu_svd_add_chunks(const double *chunks, int count, int64_t each, double *sum,
                               cudaStream_t stream);
/* The parts of |G - I|_F^2 and the trace of a Gram matrix. */
cudaError_t gcu_svd_gram_stats(const double *gram, int64_t n, gcu_svd_stats *stats,
                               cudaStream_t stream);
/* look->fewest, most and info of a Cholesky factor. */
cudaError_t gcu_svd_factor_stats(const double *factor, int64_t n, const int *info,
                                 gcu_svd_stats *stats, cudaStream_t stream);
/* to = gram + shift I. */
cudaError_t gcu_svd_shift(const double *gram, int64_t n, double shift, double *to,
                          cudaStream_t stream);
/* Column j of tall (rows x cols) times the sign of r[j]. */
cudaError_t gcu_svd_sign_columns(double *tall, int64_t rows, int64_t cols, const double *r,
                                 cudaStream_t stream);
/* to (n x k, row-major) = the last k of the vectors in the columns of an n x n column-major matrix,
 * last first; column j divided by the root of its eigenvalue when divide is set (0 stays). */
cudaError_t gcu_svd_leading(const double *vectors, const double *values, int64_t n, int64_t k,
                            bool divide, double *to, cudaStream_t stream);
/* Row j of to = row j of from as fp32, its sign such that the entry of largest magnitude, the first
 * such, is not negative; sign[j] = the factor. */
cudaError_t gcu_svd_sign_rows(const double *from, int64_t rows, int64_t cols, float *to,
                              float *sign, cudaStream_t stream);
/* to = from as fp32, column j times sign[j]. */
cudaError_t gcu_svd_to_f32_signed(const double *from, int64_t rows, int64_t cols, const float *sign,
                                  float *to, cudaStream_t stream);
/* to = from with row i (by_rows) or column j times s[i]. */
cudaError_t gcu_svd_scale(const float *from, int64_t rows, int64_t cols, const double *s,
                          bool by_rows, float *to, cudaStream_t stream);
/* lengths[j] = the length of column j of e (rows x cols); then e is divided by the longest. */
cudaError_t gcu_svd_lengths(float *e, int64_t rows, int64_t cols, double *lengths,
                            cudaStream_t stream);
/* Largest magnitude's bits and sum of squares of a view of fp32 lines: partial has
 * gcu_svd_units(lines, length) places. */
int64_t gcu_svd_units(int64_t lines, int64_t length);
struct gcu_svd_figures {
    double squares;
    unsigned most; /* bits of the largest magnitude; at least 0x7f800000: NaN or infinity */
};
cudaError_t gcu_svd_scan(const float *data, int64_t lines, int64_t length, int64_t pitch,
                         gcu_svd_figures *partial, gcu_svd_figures *total, cudaStream_t stream);
/* The two steps of that: partial[first, end), and the total of all of them. */
cudaError_t gcu_svd_scan_units(const float *data, int64_t length, int64_t pitch, int64_t first,
                               int64_t end, gcu_svd_figures *partial, cudaStream_t stream);
cudaError_t gcu_svd_scan_total(const gcu_svd_figures *partial, int64_t units,
                               gcu_svd_figures *total, cudaStream_t stream);
/* to (row-major or, with across, column-major, pitch elements a line) = (from - mean) * 2^-exponent
 * with a mean for each column; NULL: none. */
cudaError_t gcu_svd_convert(const gnomon_matrix *from, const double *mean, int exponent,
                            bool across, int64_t pitch, float *to, cudaStream_t stream);
/* to (cols x count, row-major; halves or floats) = rows [first, first + count) and columns [col,
 * col
 * + cols) of a dense simple operator, transposed, raw. */
cudaError_t gcu_svd_entries(const gcu_gpu *gpu, const gnomon_simple *a, int64_t first,
                            int64_t count, int64_t col, int64_t cols, bool halves, void *to,
                            cudaStream_t stream);

/* ---- svd/svd.cu ---- */

bool gcu_svd_supported(gcu_state *s, const gnomon_svd_job *job, gcu_why why);
gnomon_status gcu_svd_job(gcu_state *s, gnomon_svd_job *job, gcu_why why);

#endif

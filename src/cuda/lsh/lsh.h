/* cuda/lsh/lsh.h: hashing on the GPU: a job (lsh/job.cu), products (lsh/chain.cu), values and keys
 * of them (lsh/values.cu), all three at once on Hopper (lsh/hopper.cu), tables (lsh/tables.cu).
 *
 * Values of gaussian directions are those of the CPU, bit for bit. A product there is, for each 256
 * columns, a chain of fused multiply-adds that starts from zero, and the chains' sum in ascending
 * order. lsh/chain.cu computes just that. lsh/hopper.cu computes products on tensor cores, which
 * differ from the CPU's by no more than a bound of the point's length; what that much might change
 * (a floor, a sign), it leaves to the chain. Products of other kinds are gnomon_sketch's, whose
 * last bits may differ from the CPU's. Bits and least hashes are integers. */
#ifndef GNOMON_CUDA_LSH_H
#define GNOMON_CUDA_LSH_H

#include "cuda/project/entries.cuh"
#include "cuda/runtime/state.h"

extern "C" {
#include "lsh/job.h"
}

/* What kernels need of hash functions. Device memory. */
struct gcu_lsh_functions {
    gnomon_lsh_family family;
    int64_t count, sides, products;
    double width;
    const float *offset;
    const int64_t *bit;
};

/* What values are made of: products [n][products], or least hashes [n][count], or the points'
 * bytes. */
struct gcu_lsh_source {
    gcu_lsh_functions f;
    const float *products;
    const uint32_t *least;
    const uint8_t *bytes;
    int64_t row_stride, col_stride; /* of bytes */
    int64_t n;
};

/* keys[t * stride + first + i] of table table + t of 'tables'. */
struct gcu_lsh_keys {
    uint64_t *keys;
    int64_t stride, first;
    int64_t table, tables, depth, coarse;
    const uint64_t *multipliers; /* device memory, of depth positions */
};

#ifdef __CUDACC__

/* gnomon_key_half */
__device__ __forceinline__ uint32_t gcu_lsh_key_half(uint64_t sum)
{
    sum ^= sum >> 32;
    sum *= UINT64_C(0xd6e8feb86659fd93);
    sum ^= sum >> 32;
    sum *= UINT64_C(0xd6e8feb86659fd93);
    return (uint32_t)(sum >> 32);
}

/* The floor of p-stable from a product, as the CPU makes it. */
__device__ __forceinline__ int32_t gcu_lsh_step(float product, double width, float offset)
{
    const double t = floor(__dadd_rn(__ddiv_rn((double)product, width), (double)offset));
    if (t >= 0x1p31) return INT32_MAX;
    return t >= -0x1p31 ? (int32_t)t : INT32_MIN;
}

#endif

/* ---- lsh/values.cu ---- */

/* values: I32 in the device's memory. */
cudaError_t gcu_lsh_store_values(const gcu_lsh_source *s, const gnomon_matrix *values,
                                 cudaStream_t stream);
cudaError_t gcu_lsh_make_keys(const gcu_lsh_source *s, const gcu_lsh_keys *k, cudaStream_t stream);
/* least[i * count + f]; the arrays are those of n sets, offsets[0] being that of indices[0]. */
cudaError_t gcu_lsh_least_hashes(const int64_t *offsets, const int64_t *indices, const void *values,
                                 gnomon_dtype dtype, int64_t n, int64_t count, uint32_t key0,
                                 uint32_t key1, uint32_t *least, cudaStream_t stream);

/* ---- lsh/chain.cu ---- */

/* to[f * cols + j] = entry (f, col + j) of a gaussian operator, f < rows. */
cudaError_t gcu_lsh_directions(const gnomon_simple *a, const gcu_gpu *gpu, int64_t rows,
                               int64_t col, int64_t cols, float *to, cudaStream_t stream);
/* sums[i * rows + f] (+)= the CPU's sums over the view's columns, whose first is a multiple of 256;
 * double when f64. 'begins': they were not there before. */
cudaError_t gcu_lsh_chain(const gnomon_matrix *x, const float *directions, int64_t rows, bool f64,
                          bool begins, void *sums, cudaStream_t stream);
/* fp32 of sums in fp64. */
cudaError_t gcu_lsh_to_f32(const double *sums, int64_t count, float *to, cudaStream_t stream);

/* ---- lsh/tables.cu ---- */

/* Buffers of n entries in which a table is made. */
struct gcu_lsh_sorter {
    int64_t n;
    bool coarse_only; /* the lower halves of all keys are alike */
    uint64_t *sorted, *unique;
    uint32_t *halves[2], *ids[2], *first, *directory;
    int64_t *buckets;
    void *work;
    size_t work_bytes;
};

/* Bytes of the buffers, and where they lie in 'memory' of so many bytes. */
size_t gcu_lsh_sorter_bytes(int64_t n);
void gcu_lsh_sorter_place(gcu_lsh_sorter *s, int64_t n, bool coarse_only, void *memory);
/* Sorts a table's keys, which stay, into sorted and ids[1]; unique, first and *buckets follow. */
cudaError_t gcu_lsh_sort(const gcu_lsh_sorter *s, const uint64_t *keys, uint32_t first_id,
                         cudaStream_t stream);
/* The directory and the last of 'first', once the number of buckets is known. */
cudaError_t gcu_lsh_index(const gcu_lsh_sorter *s, int64_t buckets, int bits, cudaStream_t stream);

/* ---- lsh/points.cu ---- */

/* Lowers *first to row * dim + column of every NaN or infinity. For n points as they lie on the
 * GPU, with numbers that fp32 holds: copies them to 'to', rows of 'stride' numbers, when that is
 * not NULL, and sets reach[i] to how far a product of theirs on tensor cores may be from the CPU's,
 * the directions being at most *longest long. */
cudaError_t gcu_lsh_load_points(const gnomon_matrix *x, int64_t row, const double *longest,
                                float *reach, float *to, int64_t stride, unsigned long long *first,
                                cudaStream_t stream);
/* *longest = the length of the longest of these rows. */
cudaError_t gcu_lsh_longest(const float *directions, int64_t rows, int64_t cols, double *longest,
                            cudaStream_t stream);

/* ---- lsh/hopper.cu: products, values and keys in one pass ---- */

struct gcu_lsh_fused {
    const gcu_gpu *gpu;
    gcu_lsh_functions f;     /* p-stable or simhash */
    const float *directions; /* [count][dim] */
    int64_t dim;
    int64_t most; /* points at a time */
    /* keys, whose 'first' is set for each run; or values, when there are no tables */
    gcu_lsh_keys keys;
    void *work;
    /* of a run: */
    const float *x; /* [n][x_stride], 16-byte aligned, x_stride a multiple of 4 */
    int64_t n, x_stride;
    const float *reach; /* n */
    gnomon_matrix values;
};

/* Whether it is for this GPU, these functions and tables of that many (depth 0: values). */
bool gcu_lsh_fused_supports(const gcu_gpu *gpu, const gnomon_hasher *h, int64_t depth,
                            int64_t coarse);
/* Bytes of work; its preparation; n points, n at most 'most'. */
size_t gcu_lsh_fused_work(const gcu_lsh_fused *c);
cudaError_t gcu_lsh_fused_prepare(const gcu_lsh_fused *c, cudaStream_t stream);
cudaError_t gcu_lsh_fused_run(const gcu_lsh_fused *c, cudaStream_t stream);

/* ---- lsh/job.cu ---- */

bool gcu_lsh_supported(const gcu_state *s, const gnomon_lsh_job *job, gcu_why why);
gnomon_status gcu_lsh_job(gcu_state *s, const gnomon_lsh_job *job, gcu_why why);

/* Takes keys of tables [table, table + tables) on the GPU, keys[t * n + i] of table + t, by work on
 * the stream. */
struct gcu_lsh_key_sink {
    void *user;
    cudaError_t (*put)(void *user, const uint64_t *keys, int64_t table, int64_t tables,
                       cudaStream_t stream);
};
/* A job of neither values, keys nor rooms, whose keys stay on the GPU; tables are of the hasher's
 * functions from 'function' on. */
gnomon_status gcu_lsh_hand_keys(gcu_state *s, const gnomon_lsh_job *job, int64_t function,
                                const gcu_lsh_key_sink *sink, gcu_why why);

#endif

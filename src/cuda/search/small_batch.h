/* cuda/search/small_batch.h: the k nearest of a few queries in one read of the base, without the
 * host's help on the way.
 *
 * Keys are taken in fp32 first, straight from the points as they lie, with a bound on their error;
 * from some queries on in TF32, by tensor cores, whose bound search/small_batch_tensor.cu derives.
 * Some rows, far apart, are compared before all others: the k-th least of the keys' upper bounds
 * there, one a group of rows, is above the k-th nearest's key, whatever the other rows are. Then
 * all rows are read; those whose lower bound does not reach it are passed over, the few others get
 * their key in fp64 at once, with the CPU's bits, and are sorted at the end by (key, id).
 *
 * Bounds. A sum of n fp32 numbers not negative, each rounded to fp32 three times, is within
 * (n + 3) 2^-24 of the true one, which is all that L2's squared differences need; a product of
 * vectors is within n 2^-24 |q||x| of the true one, |x| being summed alike. Twice that is allowed
 * for. What overflows in fp32 passes. */
#ifndef GNOMON_CUDA_SEARCH_SMALL_BATCH_H
#define GNOMON_CUDA_SEARCH_SMALL_BATCH_H

#include "cuda/search/search.h"

enum {
    GCU_SMALL_BATCH_QUERIES = 128, /* at most: above, the filter is faster */
    GCU_SMALL_BATCH_NEAREST = 128,
    GCU_SMALL_BATCH_ROOM = 3840 /* rows per query whose keys are taken in fp64, at most */
};

struct gcu_small_batch {
    gcu_search_pairs pairs; /* no map, step 1; inverse NULL */
    int64_t rows, queries, k;
    bool fresh;   /* there is no list yet: it, limits and radii are set up */
    bool tensors; /* the first keys by tensor cores */
    gcu_search_lists list;
    double *limits, *radii;
    void *work;  /* gcu_small_batch_work bytes of the GPU's memory */
    void *notes; /* gcu_small_batch_notes_bytes of page-locked memory */
};

/* What is read when the stream is there; the answers so far follow. */
struct gcu_small_batch_notes {
    unsigned long long fault;      /* not all ones: a query's row * cols + col that is refused */
    unsigned long long base_fault; /* not all ones: a base point has NaN or infinity */
    unsigned long long declined;   /* not 0: too many rows to tell apart, nothing was changed */
    unsigned long long verified;   /* keys taken in fp64 */
    int64_t counts[GCU_SMALL_BATCH_QUERIES]; /* k or less */
};
static inline int64_t *gcu_small_batch_ids(gcu_small_batch_notes *notes)
{
    return reinterpret_cast<int64_t *>(notes + 1);
}
/* Distances, or products, behind the ids: k places per query each. */
static inline double *gcu_small_batch_distances(gcu_small_batch_notes *notes, int64_t queries,
                                                int64_t k)
{
    return reinterpret_cast<double *>(gcu_small_batch_ids(notes) + queries * k);
}

/* Whether such queries may go this way at all, and such a base too. */
bool gcu_small_batch_supported(const gnomon_search_job *job);
bool gcu_small_batch_base_supported(const gnomon_search_job *job, const gnomon_matrix *base);
/* Whether tensor cores are the faster way; where that is declined, the other may tell more apart.
 */
bool gcu_small_batch_by_tensors(int64_t queries, int64_t cols, const gcu_gpu *gpu);
size_t gcu_small_batch_work(int64_t queries, int64_t cols);
size_t gcu_small_batch_notes_bytes(void);
/* Enqueues all of it. */
cudaError_t gcu_small_batch_search(const gcu_small_batch *small_batch, const gcu_gpu *gpu,
                                   cudaStream_t stream);

#endif

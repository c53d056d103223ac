/* cuda/sets/sets.h: sets in the GPU's memory (sets/sets.cu), and the sorting that they need
 * (sets/sort.cu).
 *
 * Sparse rows of the host are checked, lose their zeros and what stands twice, and have their
 * members numbered by how often they occur, rarest first: so the first members of a set say most
 * about it. Both sides of a join are numbered alike. */
#ifndef GNOMON_CUDA_SETS_H
#define GNOMON_CUDA_SETS_H

#include "cuda/runtime/transfer.h"

/* Device memory of one job, given back from the end. */
enum { GCU_SET_PARTS = 40 };
struct gcu_set_memory {
    gcu_state *s;
    cudaStream_t stream;
    gcu_why why;
    size_t bytes; /* in all */
    int count;
    void *part[GCU_SET_PARTS];
    size_t part_bytes[GCU_SET_PARTS];
};

gnomon_status gcu_set_alloc(gcu_set_memory *m, size_t bytes, void **data);
/* Gives back what was taken since there were so many parts. */
void gcu_set_free(gcu_set_memory *m, int count);
template <typename T>
static inline gnomon_status gcu_set_room(gcu_set_memory *m, int64_t count, T **data)
{
    void *memory = nullptr;
    const gnomon_status status = gcu_set_alloc(m, (size_t)count * sizeof(T), &memory);
    *data = static_cast<T *>(memory);
    return status;
}

/* Rows of one side after the other's. */
struct gcu_sets {
    int64_t rows, entries;
    int64_t numbers;   /* members are numbered below it */
    int64_t most;      /* members of the largest set */
    int64_t *offsets;  /* rows + 1 */
    uint32_t *members; /* ascending in each set; behind them one that is no set's: 'numbers' */
};

/* Entries of a sparse view. */
static inline int64_t gcu_set_entries(const gnomon_csr *csr)
{
    return csr->rows > 0 ? csr->offsets[csr->rows] - csr->offsets[0] : 0;
}
/* The most of the GPU's memory that gcu_sets_bring takes at a time. */
double gcu_sets_bytes(const gnomon_csr *p, const gnomon_csr *q);
/* Brings P's sets and Q's (q NULL: P's alone), rows and entries of both below 2^31. *faulty: there
 * is something no search or join takes, and nothing was made. */
gnomon_status gcu_sets_bring(gcu_set_memory *m, gcu_transfer transfer, const gnomon_csr *p,
                             const gnomon_csr *q, gcu_sets *out, bool *faulty);

/* ---- sets/sort.cu: what is taken for work is given back ---- */

/* Bits that hold 0 ... count - 1. */
static inline int gcu_set_bits(int64_t count)
{
    int bits = 1;
    while (bits < 62 && (int64_t)1 << bits < count)
        bits++;
    return bits;
}
/* keys[1] = keys[0] by bits [low, high), equal ones in their order. */
gnomon_status gcu_set_sort(gcu_set_memory *m, uint64_t *const keys[2], int64_t count, int low,
                           int high);
/* The same with a value each. */
gnomon_status gcu_set_sort_pairs(gcu_set_memory *m, uint64_t *const keys[2],
                                 uint32_t *const values[2], int64_t count, int low, int high);
/* values[i] becomes the sum of those before. */
gnomon_status gcu_set_sum(gcu_set_memory *m, int64_t *values, int64_t count);
/* to = from without what equals the one before; how many are left. */
gnomon_status gcu_set_unite(gcu_set_memory *m, const uint64_t *from, uint64_t *to, int64_t count,
                            int64_t *left);

/* ---- for kernels ---- */

#ifdef __CUDACC__

/* The last of rising starts, from 'low' on and before 'high', that is not above 'at'. */
static __device__ __forceinline__ int64_t gcu_line_at(const int64_t *starts, int64_t low,
                                                      int64_t high, int64_t at)
{
    while (high - low > 1) {
        const int64_t middle = (low + high) / 2;
        if (__ldg(starts + middle) <= at)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* How many of rising keys are below 'key'. */
static __device__ __forceinline__ int64_t gcu_keys_below(const uint64_t *keys, int64_t count,
                                                         uint64_t key)
{
    int64_t low = 0, high = count;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (__ldg(keys + middle) < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

#endif
#endif

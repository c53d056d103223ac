/* cuda/filter/filter.h: all pairs of points near enough to each other, on tensor cores, exactly.
 *
 * P (rows i) and Q (rows j) are packed once, in fp16, with a proven bound on what that loses of
 * each point. The filter multiplies the packed points and emits every pair whose product reaches
 * p_limits[i] + q_limits[j]. The limits are lowered by all that packing and summing may lose, so
 * that no true pair is missed; the few false positives are dropped by verification, which computes
 * the survivors in fp64 from the original points, with the bits of the CPU's search
 * (src/search/exact.c).
 *
 * Bits (HAMMING) are coordinates 0 and 1, and their distance the square of L2's. X is x * scale -
 * mean, or x / |x| * scale - mean (COSINE), and x, below, what fp16 holds of it. X itself is taken
 * in fp64, that of floats for L2 in fp32 where scale and means are ordinary numbers there: what
 * that loses is in |X - x|'s bound, and far below what fp16 loses. A coordinate, or the square of
 * what it loses, that overflows there makes the bound infinite, and the point passes.
 *
 * Errors. With p, q for P, Q and e = |P - p|, f = |Q - q|: a distance |P - Q| is at least |p - q| -
 * e - f, and a product P.Q at most p.q + |p| f + |q| e + e f. The tensor cores' sums are within
 * gamma |p||q| of p.q, gamma = 1.25 (d + 64) 2^-23: each addend of a group of eight or sixteen is
 * cut off below 2^-23 of the largest, which is at most |p||q| (Fasi, Higham, Mikaitis and Pranesh
 * 2021, for GPUs that keep fewer bits than Hopper's do). Products of a number of i and one of j are
 * bounded by sums (2 x y <= m x^2
 * + y^2 / m, m from typical x and y), so that a limit is one of i plus one of j. Values that fp16
 * can't hold make e large, and such points pass: correct, but slow.
 *
 * All calls enqueue work on the stream and do not wait. Views lie in the device's memory, with any
 * strides and types; rows of a view are at most GCU_FILTER_ROWS. */
#ifndef GNOMON_CUDA_FILTER_H
#define GNOMON_CUDA_FILTER_H

#include "cuda/runtime/gpu.h"

#include <gnomon/search.h>

static const int64_t GCU_FILTER_ROWS = (int64_t)1 << 30;

enum {
    GCU_FILTER_CHUNK = 64, /* of coordinates */
    GCU_FILTER_PAD = 256   /* packed points are a multiple of it */
};

/* ---- packing ---- */

/* What coordinates become. In device memory: mean (cols numbers), facts. */
struct gcu_filter_centre {
    gnomon_metric metric; /* L2, COSINE, IP or HAMMING */
    int64_t cols;         /* coordinates: HAMMING has eight in an element, of type U8 */
    double *mean;
    struct gcu_filter_facts *facts;
};
struct gcu_filter_facts {
    double scale;   /* a power of two */
    double squares; /* |mean|^2 */
    bool plain;     /* scale and means are within 2^100, and 2^-100, and means are floats */
};

/* Bytes of device memory of a centre of so many coordinates. */
size_t gcu_filter_centre_bytes(int64_t cols);
/* Estimates the centre in that memory from some of the points. Any points will do: whatever
 * the centre is, nothing is lost, but points far from it make many false positives. P and Q, and
 * all pieces of them, must be packed on the same one. */
cudaError_t gcu_filter_estimate_centre(gnomon_metric metric, const gnomon_matrix *points,
                                       void *memory, gcu_filter_centre *out, const gcu_gpu *gpu,
                                       cudaStream_t stream);

/* Packed points, in device memory. halves: for each chunk of 64 coordinates and each of 'padded'
 * points 128 bytes, whose 16-byte parts are exchanged by the point (part c of point i stands at c ^
 * (i & 7)); zeros beyond the coordinates and points. */
struct gcu_filter_points {
    int64_t rows, padded, cols, chunks;
    uint8_t *halves;
    double *norm;    /* |x| */
    double *error;   /* at least |X - x| */
    double *own;     /* IP: -(X + mean / 2).mean, else |x|^2 / 2 */
    double *inverse; /* COSINE: 1 / |x| of the original point, 0 for none; else NULL */
};

#ifdef __CUDACC__
/* Part 'part' of the point at 'place' of a chunk in shared memory. */
static __device__ __forceinline__ uint32_t gcu_filter_part(uint32_t chunk, int place, int part)
{
    return chunk + place * 128 + ((part ^ (place & 7)) << 4);
}
#endif

size_t gcu_filter_pack_bytes(gnomon_metric metric, int64_t rows, int64_t cols);
/* Packs points into that memory. Lowers *fault (device memory, may be NULL) to row * cols + col of
 * every coordinate that is NaN, infinite or above 2^500 in magnitude. */
cudaError_t gcu_filter_pack(const gcu_filter_centre *centre, const gnomon_matrix *points,
                            void *memory, gcu_filter_points *out, unsigned long long *fault,
                            const gcu_gpu *gpu, cudaStream_t stream);

/* ---- limits ---- */

/* What pairs must reach (limits lie at multiples of 16 bytes). Row i's radius, inclusive, is
 * radii[i] (device memory) or, when radii is NULL, 'radius': the largest distance (L2, COSINE) or
 * the least product (IP), as gnomon_search_options has it; +-infinity let everything pass or
 * nothing. p_limits and q_limits have 'padded' numbers each. work: gcu_filter_limits_work bytes of
 * device memory. */
size_t gcu_filter_limits_work(void);
cudaError_t gcu_filter_limits(const gcu_filter_centre *centre, const gcu_filter_points *p,
                              const gcu_filter_points *q, const double *radii, double radius,
                              float *p_limits, float *q_limits, void *work, cudaStream_t stream);

/* ---- the filter ---- */

/* Pairs come as i << 32 | j, in any order. 'count' (device memory, set to 0 by the caller) goes on
 * past 'room', where nothing more is written: then the caller takes fewer rows and does it again. A
 * room of q->rows is always enough for one row. */
struct gcu_filter_sink {
    uint64_t *pairs;
    int64_t room;
    unsigned long long *count;
};

struct gcu_filter_call {
    const gcu_filter_points *p, *q;
    const float *p_limits, *q_limits;
    int64_t row, rows; /* of P; full speed from some thousands on */
    bool half;         /* P and Q are the same points: only pairs with j > i */
};

cudaError_t gcu_filter(const gcu_filter_call *call, gcu_filter_sink sink, const gcu_gpu *gpu,
                       cudaStream_t stream);

/* ---- verification ---- */

/* Distances (products for IP) in fp64 of the original points, the CPU's bits. */
struct gcu_verify {
    gnomon_metric metric;
    const gnomon_matrix *p, *q;
    const double *p_inverse, *q_inverse; /* COSINE: as packed */
    const double *radii;                 /* as for limits */
    double radius;
    int64_t above; /* pairs with j - i not above it are dropped; INT64_MIN: none */
};

/* Bytes of device memory to verify so many pairs in. */
size_t gcu_verify_work(int64_t count);
/* Puts count pairs into the order of (i, j), in place, with their distances, keeping those within
 * the radius; *kept (device memory) is how many. distances may be NULL. */
cudaError_t gcu_verify_pairs(const gcu_verify *verify, uint64_t *pairs, int64_t count,
                             double *distances, unsigned long long *kept, void *work,
                             size_t work_bytes, const gcu_gpu *gpu, cudaStream_t stream);
/* The distances alone, of pairs in any order. */
cudaError_t gcu_verify_distances(const gcu_verify *verify, const uint64_t *pairs, int64_t count,
                                 double *distances, const gcu_gpu *gpu, cudaStream_t stream);

#endif

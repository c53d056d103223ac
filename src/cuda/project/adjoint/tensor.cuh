/* cuda/project/adjoint/tensor.cuh: the launch of a level of an adjoint on Hopper's matrix unit, S^T
 * made in the register operand (columns.cuh), Z brought to shared memory by bulk copies. Each kind
 * is compiled by itself (tensor_<kind>.cu).
 *
 * Z is packed (tensor.cu) into tiles of POINTS folded points: of each 32 rows of A, a stage, POINTS
 * lines of 128 bytes, 32 halves high and 32 low, z 2^s = high + low, whose 16-byte chunks are
 * swizzled (chunk c of line r stands at c ^ (r & 7)), and for each point 2^-s over what the
 * fragments are multiples of. 2^s brings the largest magnitude of the point's 128 rows into [2^14,
 * 2^15); of types that fp16 holds it is 1. Row 16 u + 4 q + i of a stage stands at half 16 u + 8 (i
 * div 2) + 2 q + i mod 2. */
#ifndef GNOMON_CUDA_ADJOINT_TENSOR_CUH
#define GNOMON_CUDA_ADJOINT_TENSOR_CUH

#include "cuda/project/adjoint/columns.cuh"
#include "cuda/project/family.h"
#include "cuda/runtime/bulk.cuh"
#include "cuda/runtime/wgmma.cuh"

enum {
    GCU_STAGE_ROWS = 32,
    GCU_TENSOR_ROWS = 64, /* rows are padded to multiples: the most that a fragment unit has */
    GCU_TENSOR_COLS = 128 /* of a block of threads: two warpgroups */
};

/* Where a folded point's output goes: A's column j to x[to + j * x_col_stride], low <= j < high. */
struct gcu_tensor_exit {
    int64_t to, low, high;
    double factor;
};

/* Which numbers of a whole tile lie in pairs in the output's memory, aligned so. */
enum gcu_tensor_pairs { GCU_TENSOR_NO_PAIRS, GCU_TENSOR_POINTS_LIE, GCU_TENSOR_COLUMNS_LIE };

struct gcu_tensor_launch {
    gcu_entries entries;
    const uint8_t *tiles;
    const gcu_tensor_exit *exits; /* of all points of the tiles */
    int64_t stages;               /* of a tile; even */
    int64_t col_tiles, point_tiles;
    uint64_t col;   /* A's, of the first tile; a multiple of GCU_TENSOR_COLS */
    uint32_t block; /* A's first row div 4 */
    void *x;
    gnomon_dtype x_dtype;
    int64_t x_col_stride;
    double beta;
    /* With pairs: column j of point v goes to x[to + v * x_row_stride + j * x_col_stride], low <= j
     * < high, v < points, as a number of F32 by one factor ('fp32': it is such a number), without
     * beta. */
    gcu_tensor_pairs pairs;
    bool fp32;
    int64_t to, x_row_stride, low, high, points;
    double factor;
};

static __host__ __device__ constexpr int gcu_stage_bytes(int points)
{
    return points * (4 * GCU_STAGE_ROWS + 4);
}

/* One launch for tiles of 8, 32, 128 or 256 points. */
typedef cudaError_t gcu_tensor_run(const gcu_tensor_launch &l, int points, const gcu_gpu *gpu,
                                   cudaStream_t stream);
gcu_tensor_run gcu_tensor_signs, gcu_tensor_ternary, gcu_tensor_gaussian16, gcu_tensor_gaussian32;

#endif

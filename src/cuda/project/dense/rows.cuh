/* cuda/project/dense/rows.cuh: the launch that both ways of the product share. */
#ifndef GNOMON_CUDA_DENSE_ROWS_CUH
#define GNOMON_CUDA_DENSE_ROWS_CUH

#include "cuda/project/dense/entries.cuh"
#include "cuda/project/dense/tile.h"

/* Sums over segments of rows x folded points. Work is cut into items: (segment, group of points,
 * tile of rows), rows fastest, so that blocks that run together read the same tiles of points from
 * L2. */
struct gcu_rows_launch {
    gcu_entries entries;
    const uint8_t *tiles;
    int64_t blocks;         /* K-blocks in the tiles of a group */
    int64_t segment_blocks; /* of a segment */
    int64_t segments, groups, row_tiles;
    uint64_t block128; /* of the first K-block: column / 128 */
    int64_t row, rows; /* A's; row is a multiple of four */
    int64_t points;    /* folded points of this launch */
    float *sums;       /* [segment][row - first][point - first] */
};

static __device__ __forceinline__ void gcu_rows_store(const gcu_rows_launch &l, int64_t segment,
                                                      int64_t a, int64_t v, float sum)
{
    if (a < l.row + l.rows && v < l.points)
        l.sums[(segment * l.rows + a - l.row) * l.points + v] = sum;
}

/* The order in which a block meets its tiles: items blockIdx.x, + gridDim.x, ..., each a run of
 * consecutive tiles. */
template <int STRIDE> struct gcu_tile_walk {
    const uint8_t *at;
    int left, item;
    __device__ __forceinline__ bool next(const gcu_rows_launch &l, int items)
    {
        if (left > 0) {
            at += STRIDE;
            left--;
            return true;
        }
        if (item >= items) return false;
        const int part = item / (int)l.row_tiles, group = part % (int)l.groups;
        const int64_t first = part / (int)l.groups * l.segment_blocks;
        left = (int)min(l.segment_blocks, l.blocks - first) - 1;
        at = l.tiles + (group * l.blocks + first) * STRIDE;
        item += (int)gridDim.x;
        return true;
    }
};

/* Warpgroups of a block on Hopper that multiply, each 128 rows; one more fetches. Three may use 160
 * registers per thread, four 112. */
static __host__ __device__ constexpr int gcu_rows_groups(gcu_dense_kind kind, int points,
                                                         bool split)
{
    return kind == GCU_DENSE_GAUSSIAN32 || gcu_tile_rows(points, split) > 16 ? 3 : 4;
}

enum { GCU_ROWS_MMA_TILE = 256 }; /* rows of a block elsewhere */

/* One launch for tiles of so many points, by the way that the GPU has. */
typedef cudaError_t gcu_rows_run(const gcu_rows_launch &l, int points, bool split,
                                 const gcu_gpu *gpu, cudaStream_t stream);
gcu_rows_run gcu_rows_signs, gcu_rows_sign_pairs, gcu_rows_ternary, gcu_rows_gaussian16,
    gcu_rows_gaussian32;

#endif

/* cuda/project/dense/tile.h: points packed for products whose other operand is made in registers.
 *
 * A tile holds the 128 columns of one K-block of up to 32 points, as the image in shared memory
 * that the matrix instructions read: N rows of 128 halves, in two panels of 64 halves (128 bytes) a
 * row, with the 16-byte chunks of a row swizzled (chunk c of row r stands at c ^ (r & 7)). With
 * 'split', row p has the high and row points + p the low halves of x: x 2^s = hi + lo 2^-11, where
 * 2^s brings the largest magnitude of the point's block into [2^14, 2^15); so the whole exponent
 * range of fp32 works, and what is lost of an entry is at most 2^-23 of the entry or 2^-50 of the
 * block's largest (bf16, not split: 2^-39). After the halves: 2^-s of each point as fp32, and a
 * word that is 0 when the whole tile is zero.
 *
 * The order of the columns in a block is free, since S is made to match: the column with the
 * fragment's place (m, q, e), 0 <= m < 16, 0 <= q < 4, e = 0, 1, stands at half 8 m + 2 q + e. It
 * is column 32 q + 2 m + e (GCU_TILE_PAIRS) or 32 q + (m ^ 8) + 16 e (GCU_TILE_SIGNS: two bits of
 * one word, the upper ones of each half first). GCU_TILE_SUMS, of split tiles only, has sums and
 * differences of columns 32 q + 8 + i + 16 e and 32 q + i + 16 e, i = 0 ... 7: the sum at half 32
 * (i mod 4) + 16 (i div 4) + 4 q + 2 e, the difference, first less second, after it; 2^s is then
 * half of the above, a sum rounds (2^-24), and 2^-49 of the block's largest may be lost. */
#ifndef GNOMON_CUDA_DENSE_TILE_H
#define GNOMON_CUDA_DENSE_TILE_H

#include "cuda/project/family.h"

enum { GCU_KBLOCK = 128 };

enum gcu_tile_order { GCU_TILE_PAIRS, GCU_TILE_SIGNS, GCU_TILE_SUMS };

struct gcu_tile_shape {
    int points; /* 8, 16 or 32 */
    bool split;
    gcu_tile_order order;
};

static __host__ __device__ constexpr int gcu_tile_rows(int points, bool split)
{
    return split ? 2 * points : points;
}

/* Bytes fetched of a tile, and from one tile to the next. */
static __host__ __device__ constexpr int gcu_tile_bytes(int points, bool split)
{
    return gcu_tile_rows(points, split) * 2 * GCU_KBLOCK + points * 4 + 16;
}

static __host__ __device__ constexpr int gcu_tile_stride(int points, bool split)
{
    return (gcu_tile_bytes(points, split) + 127) / 128 * 128;
}

/* Whether fp16 holds every value of the type (and so no split and no scale is needed), or every
 * value after scaling by a power of two (bf16). */
bool gcu_tile_split(gnomon_dtype dtype);

/* Packs folded points [point, point + points) of x, coordinates [col, col + 128 * blocks), into
 * tiles: tile (t, b) of the t-th group of shape.points points and block b at
 * tiles + (t * blocks + b) * stride. Reads zero outside of x. */
cudaError_t gcu_tile_pack(const gcu_points *x, gcu_tile_shape shape, int64_t point, int64_t points,
                          int64_t col, int64_t blocks, void *tiles, cudaStream_t stream);

#endif

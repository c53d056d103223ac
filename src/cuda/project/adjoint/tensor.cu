/* A level of an adjoint on Hopper's matrix unit, in fp32: Z is packed, and multiplied by tiles of
 * points (tensor.cuh). The size of the tiles changes no bit of a sum. */
#include "cuda/project/adjoint/tensor.cuh"

#include "base/arithmetic.h"
#include "cuda/project/adjoint/adjoint.h"
#include "cuda/project/dense/scale.cuh"

enum { THREADS = 256, PACK_ROWS = 128 };

struct pack_args {
    gcu_level l;
    int64_t v_first, v_end; /* folded points, of which the last tiles may lack some */
    int64_t first_row;      /* A's, a multiple of four */
    int64_t stages, row_blocks;
    int tile;    /* points of one */
    float over;  /* what the fragments are multiples of */
    bool scaled; /* of types that fp16 does not hold */
    uint8_t *tiles;
    gcu_tensor_exit *exits;
};

/* Where the point's output goes; nowhere when it is not there. */
static __device__ gcu_tensor_exit exit_of(const gcu_level &l, int64_t b, int64_t i, bool there)
{
    gcu_tensor_exit e = {0, 0, 0, 0.0};
    if (!there) return e;
    const int64_t first = (l.block + b) * l.c - l.col; /* x's column of A's first */
    e.to = i * l.x_row_stride + first * l.x_col_stride;
    e.low = max(l.a_col, -first);
    e.high = min(min(l.c, l.a_col_end), l.cols - first);
    e.factor = l.factor_most;
    if (l.factor_most != l.factor_least) {
        const int64_t from = gcu_mul_div(l.block + b, l.k, l.r);
        const int64_t to = gcu_mul_div(l.block + b + 1, l.k, l.r);
        if (to - from != (l.k + l.r - 1) / l.r) e.factor = l.factor_least;
    }
    return e;
}

/* A block of threads packs POINTS points of 128 rows. */
template <int POINTS> static __global__ void __launch_bounds__(THREADS) pack(const pack_args args)
{
    __shared__ float block[PACK_ROWS][POINTS + 1];
    __shared__ int64_t base[POINTS];
    __shared__ int low[POINTS], high[POINTS]; /* of the 128 rows those that are there */
    __shared__ float2 scale[POINTS];          /* two factors of it */
    __shared__ float over[POINTS];
    const gcu_level &l = args.l;
    const int64_t group = blockIdx.x / args.row_blocks, row_block = blockIdx.x % args.row_blocks;
    const int64_t v0 = group * POINTS, row0 = args.first_row + row_block * PACK_ROWS;
    const int tid = (int)threadIdx.x;
    if (tid < POINTS) {
        const int64_t v = args.v_first + v0 + tid;
        const bool there = v < args.v_end;
        const int64_t b = there ? gcu_level_block(l, v) : 0, i = there ? v - b * l.n : 0;
        const int64_t first = gcu_mul_div(l.block + b, l.k, l.r);
        const int64_t last = gcu_mul_div(l.block + b + 1, l.k, l.r);
        const int64_t from = max(max((int64_t)0, l.row - first), l.a_row) - row0;
        const int64_t to = min(min(last, l.row + l.rows) - first, l.a_row_end) - row0;
        low[tid] = (int)min(max(from, (int64_t)0), (int64_t)PACK_ROWS);
        high[tid] = there ? (int)min(max(to, (int64_t)0), (int64_t)PACK_ROWS) : 0;
        base[tid] = i * l.z_row_stride + (first + row0 - l.row) * l.z_col_stride;
        if (row_block == 0) args.exits[v0 + tid] = exit_of(l, b, i, there);
    }
    __syncthreads();
    const bool by_rows = l.z_col_stride == 1;
    for (int e = tid; e < PACK_ROWS * POINTS; e += THREADS) {
        const int a = by_rows ? e % PACK_ROWS : e / POINTS;
        const int p = by_rows ? e / PACK_ROWS : e % POINTS;
        float z = 0.0f;
        if (a >= low[p] && a < high[p])
            z = gcu_element<float>(l.z, l.z_dtype, base[p] + a * l.z_col_stride);
        block[a][p] = z;
    }
    __syncthreads();
    for (int p = tid / 32; p < POINTS; p += THREADS / 32) {
        float most = 0.0f;
        for (int a = tid % 32; a < PACK_ROWS; a += 32) {
            const float z = fabsf(block[a][p]);
            most = z > most && z <= 0x1.fffffep127f ? z : most;
        }
#pragma unroll
        for (int step = 16; step > 0; step /= 2)
            most = fmaxf(most, __shfl_xor_sync(0xFFFFFFFFu, most, step));
        if (tid % 32 == 0) {
            /* at most 136, so that 2^-s over 2^13 is a number */
            const int s = args.scaled ? gcu_scale_of(most, 14, 136) : 0;
            scale[p] = make_float2(gcu_power(s / 2), gcu_power(s - s / 2));
            over[p] = gcu_power(-s) / args.over;
        }
    }
    __syncthreads();
    const int64_t tile = v0 / args.tile;
    const int line0 = (int)(v0 % args.tile);
    const int64_t bytes = gcu_stage_bytes(args.tile);
    for (int e = tid; e < PACK_ROWS / GCU_STAGE_ROWS * POINTS; e += THREADS) {
        const int64_t stage = row_block * (PACK_ROWS / GCU_STAGE_ROWS) + e / POINTS;
        if (stage >= args.stages) break;
        uint8_t *to = args.tiles + (tile * args.stages + stage) * bytes + args.tile * 128;
        reinterpret_cast<float *>(to)[line0 + e % POINTS] = over[e % POINTS];
    }
    /* sixteen bytes of high halves, and the low ones, at a time */
    for (int e = tid; e < PACK_ROWS / 8 * POINTS; e += THREADS) {
        const int p = e / (PACK_ROWS / 8), part = e % (PACK_ROWS / 8), chunk = part % 4;
        const int64_t stage = row_block * (PACK_ROWS / GCU_STAGE_ROWS) + part / 4;
        if (stage >= args.stages) continue;
        const int a0 = part / 4 * GCU_STAGE_ROWS + chunk / 2 * 16 + chunk % 2 * 2;
        __half2 high_part[4], low_part[4];
#pragma unroll
        for (int q = 0; q < 4; q++) {
            /* exactly but for results below the least fp32 number */
            const float x = block[a0 + 4 * q][p] * scale[p].x * scale[p].y;
            const float y = block[a0 + 4 * q + 1][p] * scale[p].x * scale[p].y;
            const __half2 h = __floats2half2_rn(x, y);
            high_part[q] = h;
            /* infinities have no low part */
            low_part[q] = __floats2half2_rn(isfinite(x) ? x - __low2float(h) : 0.0f,
                                            isfinite(y) ? y - __high2float(h) : 0.0f);
        }
        const int line = line0 + p;
        uint8_t *to = args.tiles + (tile * args.stages + stage) * bytes + line * 128;
        *reinterpret_cast<uint4 *>(to + ((chunk ^ (line & 7)) * 16)) =
            *reinterpret_cast<uint4 *>(high_part);
        *reinterpret_cast<uint4 *>(to + (((chunk + 4) ^ (line & 7)) * 16)) =
            *reinterpret_cast<uint4 *>(low_part);
    }
}

static int64_t stages_of(int64_t rows)
{
    return gnomon_ceil_div(rows, GCU_TENSOR_ROWS) * (GCU_TENSOR_ROWS / GCU_STAGE_ROWS);
}

/* Bytes of a packed point. */
static int64_t point_bytes(int64_t stages)
{
    return stages * gcu_stage_bytes(1) + (int64_t)sizeof(gcu_tensor_exit);
}

size_t gcu_adjoint_tensor_bytes(int64_t rows, int64_t points)
{
    return (size_t)(point_bytes(stages_of(rows + 3)) * points);
}

static gcu_tensor_run *run_of(gcu_dense_kind kind)
{
    switch (kind) {
    case GCU_DENSE_SIGNS:
        return gcu_tensor_signs;
    case GCU_DENSE_TERNARY:
        return gcu_tensor_ternary;
    case GCU_DENSE_GAUSSIAN16:
        return gcu_tensor_gaussian16;
    default:
        return gcu_tensor_gaussian32;
    }
}

/* Points of a tile: an entry is made once for these, unless GPUs would stand idle. */
static int tile_of(int64_t points, int64_t col_tiles, int64_t room, int64_t sms)
{
    static const int tiles[] = {256, 128, 32, 8};
    int i = points > 128 ? 0 : points > 32 ? 1 : points > 8 ? 2 : 3;
    while (i < 3 &&
           (tiles[i] > room || col_tiles * gnomon_ceil_div(points, (int64_t)tiles[i]) < sms))
        i++;
    return tiles[i];
}

static gcu_tensor_pairs pairs_of(const gcu_level &l, int64_t to)
{
    const bool plain = l.blocks == 1 && l.r == 1 && l.x_dtype == GNOMON_F32 && l.beta == 0.0 &&
                       l.factor_most == l.factor_least &&
                       (reinterpret_cast<uintptr_t>(l.x) / 4 + (uint64_t)to) % 2 == 0;
    return plain && l.x_row_stride == 1 && l.x_col_stride % 2 == 0   ? GCU_TENSOR_POINTS_LIE
           : plain && l.x_col_stride == 1 && l.x_row_stride % 2 == 0 ? GCU_TENSOR_COLUMNS_LIE
                                                                     : GCU_TENSOR_NO_PAIRS;
}

cudaError_t gcu_adjoint_tensor(const gcu_level &level, const gnomon_simple *a, void *work,
                               size_t work_bytes, const gcu_gpu *gpu, cudaStream_t stream)
{
    gcu_dense_kind kind;
    if (!gcu_dense_kind_of(a, &kind)) return cudaErrorInvalidValue;
    const int64_t first_row = level.a_row - level.a_row % 4;
    const int64_t first_col = level.a_col - level.a_col % GCU_TENSOR_COLS;
    pack_args p = {};
    p.l = level;
    p.first_row = first_row;
    p.stages = stages_of(level.a_row_end - first_row);
    p.row_blocks = gnomon_ceil_div(p.stages * GCU_STAGE_ROWS, PACK_ROWS);
    p.over = gcu_column_scale(kind);
    p.scaled =
        level.z_dtype != GNOMON_F16 && level.z_dtype != GNOMON_I8 && level.z_dtype != GNOMON_U8;
    p.tiles = static_cast<uint8_t *>(work);
    gcu_tensor_launch t;
    t.entries = gcu_entries_of(a, gpu->gaussian16);
    t.tiles = p.tiles;
    t.stages = p.stages;
    t.col_tiles = gnomon_ceil_div(level.a_col_end - first_col, GCU_TENSOR_COLS);
    t.col = (uint64_t)first_col;
    t.block = (uint32_t)(first_row / 4);
    t.x = level.x;
    t.x_dtype = level.x_dtype;
    t.x_col_stride = level.x_col_stride;
    t.beta = level.beta;
    t.x_row_stride = level.x_row_stride;
    t.low = level.a_col;
    t.high = gnomon_min(level.a_col_end, level.col + level.cols);
    t.factor = level.factor_most;
    t.fp32 = (double)(float)t.factor == t.factor;
    const int64_t points = level.n * level.blocks;
    /* tiles and blocks of a launch are counted in 32 bits */
    int64_t room = (int64_t)work_bytes / point_bytes(p.stages);
    room = gnomon_min(room, 8 * (INT32_MAX / 2 / gnomon_max(t.col_tiles, p.row_blocks)));
    if (room < 8) return cudaErrorMemoryAllocation;
    for (int64_t v = 0; v < points;) {
        p.tile = tile_of(points - v, t.col_tiles, room, gpu->sms);
        int64_t count = gnomon_min(points - v, room / p.tile * p.tile);
        if (count > 256 && p.tile == 256 && count % 256 != 0 && count % 256 <= 128)
            count -= count % 256; /* the rest in smaller tiles */
        t.point_tiles = gnomon_ceil_div(count, p.tile);
        p.v_first = v;
        p.v_end = v + count;
        p.exits = reinterpret_cast<gcu_tensor_exit *>(p.tiles + t.point_tiles * p.stages *
                                                                    gcu_stage_bytes(p.tile));
        t.exits = p.exits;
        t.to = v * level.x_row_stride - level.col * level.x_col_stride;
        t.points = count;
        t.pairs = pairs_of(level, t.to);
        const int64_t groups = t.point_tiles * p.tile / (p.tile < 32 ? 8 : 32);
        const unsigned grid = (unsigned)(groups * p.row_blocks);
        if (p.tile < 32)
            pack<8><<<grid, THREADS, 0, stream>>>(p);
        else
            pack<32><<<grid, THREADS, 0, stream>>>(p);
        cudaError_t error = cudaGetLastError();
        if (error == cudaSuccess) error = run_of(kind)(t, p.tile, gpu, stream);
        if (error != cudaSuccess) return error;
        v += count;
    }
    return cudaSuccess;
}

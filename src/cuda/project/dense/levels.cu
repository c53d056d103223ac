/* Two levels of a kronecker operator at once (levels.h), as points.cuh multiplies points by one.
 *
 * A and B have so few entries that both lie in shared memory as the matrix unit takes them, made
 * once for a block of threads. A warpgroup's sums of A's 64 rows are 64 neighbouring coordinates of
 * its points at B's level, so they are one step of it: rows of A lie in such an order that a
 * thread's sums are the coordinates that a left operand has in that thread. */
#include "cuda/project/dense/levels.h"

#include "cuda/project/dense/points.cuh"

namespace
{

enum { A_ROWS = 64, B_ROWS = 128, ZETA_MOST = 4, WARPS = 8, DEPTH = 3 };
enum { A_TILE = A_ROWS * POINTS_STEP * 2, B_TILE = B_ROWS * POINTS_STEP * 2 }; /* bytes */

using shape = points_shape<A_ROWS, POINTS_F32, false, true>;
static_assert(WARPS == 4 * shape::consumers && DEPTH == shape::deep, "as points.cuh has them");

size_t shared_bytes(int64_t zeta)
{
    return 1024 + (size_t)zeta * (A_TILE + B_TILE) + DEPTH * shape::x_step + shape::info_bytes;
}

template <int N, bool PAIRED>
__device__ __forceinline__ void make(const points_params &p, uint32_t tile, int lane, int step)
{
    const uint64_t col = (uint64_t)step * POINTS_STEP;
    if (p.kind == POINTS_KIND_SIGN)
        points_make_signs<N, POINTS_STEP, PAIRED>(p, tile, lane, 0, col);
    else
        points_make_achlioptas<N, POINTS_STEP, PAIRED>(p, tile, lane, 0, col);
}

__global__ void __launch_bounds__(32 * WARPS, 1)
    two_levels(const __grid_constant__ points_params a, const __grid_constant__ points_params b,
               int zeta)
{
#if !defined(__CUDA_ARCH_FEAT_SM90_ALL)
    __trap();
#else
    extern __shared__ unsigned char shared_memory[];
    const uint32_t base = (gcu_shared_address(shared_memory) + 1023) & ~1023u;
    const uint32_t a_tiles = base, b_tiles = a_tiles + zeta * A_TILE;
    const uint32_t x_ring = b_tiles + zeta * B_TILE, info = x_ring + DEPTH * shape::x_step;
    unsigned char *generic = shared_memory + (base - gcu_shared_address(shared_memory));
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    if (warp < zeta) make<A_ROWS, true>(a, a_tiles + warp * A_TILE, lane, warp);
    if (warp >= ZETA_MOST && warp < ZETA_MOST + zeta)
        make<B_ROWS, false>(b, b_tiles + (warp - ZETA_MOST) * B_TILE, lane, warp - ZETA_MOST);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();

    const uint32_t ring = x_ring + warp * DEPTH * shape::x_bytes;
    points_row *rows =
        reinterpret_cast<points_row *>(generic + (info - base)) + warp * POINTS_WARP_POINTS;
    points_cursor ahead;
    ahead.unit = blockIdx.x;
    points_aim<A_ROWS, POINTS_F32, false, true>(a, &ahead, rows, warp, lane);
    points_unit u = ahead.u;
    int64_t number = blockIdx.x;
    bool more = ahead.more;
    int step = 0, block = 0; /* of A's columns, of B's */
    int slot = 0;
    float inner[A_ROWS / 2], outer[B_ROWS / 2];
#pragma unroll
    for (int j = 0; j < A_ROWS / 2; j++)
        inner[j] = 0.0f;
#pragma unroll
    for (int j = 0; j < B_ROWS / 2; j++)
        outer[j] = 0.0f;
    const auto fetch = [&]() {
        if (ahead.more) points_fetch<4, false>(a, &ahead, rows, ring + slot * shape::x_bytes, lane);
        gcu_copies_commit();
        slot = slot + 1 == DEPTH ? 0 : slot + 1;
    };
    const auto fetched = [&]() {
        if (!ahead.more || ++ahead.step < ahead.steps) return;
        ahead.unit += gridDim.x;
        points_aim<A_ROWS, POINTS_F32, false, true>(a, &ahead, rows, warp, lane);
    };
    const auto read = [&](points_raw<4, false> *raw) {
        gcu_copies_wait<DEPTH - 1>();
        __syncwarp();
        raw->read(ring + slot * shape::x_bytes, lane);
        __syncwarp();
    };
    points_fragments f;
    for (int stage = 0; stage < DEPTH; stage++) {
        fetch();
        fetched();
    }
    {
        points_raw<4, false> raw;
        read(&raw);
        points_convert<POINTS_F32, false, 4>(raw, GNOMON_F32, &f);
    }
    while (more) {
        points_raw<4, false> raw; /* of the next step, or of nothing */
        {
            float part[A_ROWS / 2];
            points_multiply<A_ROWS, true, true>(part, f, a_tiles + step * A_TILE, lane);
            fetch(); /* into the slot whose stage has become fragments */
            read(&raw);
            points_multiplied<A_ROWS, true, true>(part, f);
#pragma unroll
            for (int j = 0; j < A_ROWS / 2; j++)
                inner[j] = fmaf(part[j], f.unscale[(j >> 1) & 1], inner[j]);
        }
        fetched();
        if (++step < zeta) {
            points_convert<POINTS_F32, false, 4>(raw, GNOMON_F32, &f);
            continue;
        }
        step = 0;
        points_fragments g;
        {
            float x[32];
#pragma unroll
            for (int j = 0; j < 32; j++) { /* coordinates 32 g + 16 h + 4 t + c, as points_raw's */
                const int m = j >> 4, four = (j >> 3 & 1) * 4 + (j & 3), h = j >> 2 & 1;
                x[j] = inner[4 * four + 2 * m + h];
            }
            points_split(x, &g);
#pragma unroll
            for (int j = 0; j < A_ROWS / 2; j++)
                inner[j] = 0.0f;
        }
        float part[B_ROWS / 2];
        points_multiply<B_ROWS, true, true>(part, g, b_tiles + block * B_TILE, lane);
        points_convert<POINTS_F32, false, 4>(raw, GNOMON_F32, &f);
        points_multiplied<B_ROWS, true, true>(part, g);
#pragma unroll
        for (int j = 0; j < B_ROWS / 2; j++)
            outer[j] = fmaf(part[j], g.unscale[(j >> 1) & 1], outer[j]);
        if (++block < zeta) continue;
        block = 0;
        const int64_t point = u.first + warp * POINTS_WARP_POINTS + (lane >> 2);
        const int64_t v[2] = {point, point + 8};
        points_emit<B_ROWS>(b, 0, 0, v, lane, outer);
#pragma unroll
        for (int j = 0; j < B_ROWS / 2; j++)
            outer[j] = 0.0f;
        number += gridDim.x;
        more = points_unit_of<shape::block_points>(a, number, &u);
    }
#endif
}

int kind_of(const gnomon_simple *a)
{
    return a->kind == GNOMON_RADEMACHER   ? POINTS_KIND_SIGN
           : a->kind == GNOMON_ACHLIOPTAS ? POINTS_KIND_ACHLIOPTAS
                                          : -1;
}

points_params params_of(const gcu_two_levels *t, const gnomon_simple *a, int64_t rows)
{
    points_params p = {};
    p.kind = kind_of(a);
    p.stream =
        gcu_stream_of(a, p.kind == POINTS_KIND_SIGN ? GNOMON_TAG_SIGN : GNOMON_TAG_ACHLIOPTAS);
    p.x = t->x;
    p.out = t->out;
    p.task_rows = rows;
    p.total = p.points = t->x.n * t->x.blocks;
    p.passes = p.splits = 1;
    p.groups = (p.points + shape::block_points - 1) / shape::block_points;
    p.unit_cols = t->x.block_cols;
    return p;
}

} // namespace

bool gcu_two_levels_supports(const gcu_two_levels *t)
{
    const int64_t zeta = t->a->cols / A_ROWS;
    return t->gpu->major == 9 && t->x.dtype == GNOMON_F32 && t->x.col_stride == 1 &&
           t->out.dtype == GNOMON_F32 && kind_of(t->a) >= 0 && kind_of(t->b) >= 0 &&
           t->a->rows == A_ROWS && t->b->rows == B_ROWS && zeta <= ZETA_MOST &&
           t->a->cols == zeta * A_ROWS && t->b->cols == t->a->cols &&
           shared_bytes(zeta) <= t->gpu->smem_bytes;
}

cudaError_t gcu_two_levels_run(const gcu_two_levels *t)
{
    points_params a = params_of(t, t->a, A_ROWS), b = params_of(t, t->b, B_ROWS);
    if (a.total == 0) return cudaSuccess;
    const gcu_points *x = &t->x;
    a.vector = (uintptr_t)x->data % 16 == 0 && x->row_stride % 4 == 0 && x->first % 4 == 0;
    const int64_t zeta = t->a->cols / A_ROWS;
    const size_t bytes = shared_bytes(zeta);
    const cudaError_t error =
        cudaFuncSetAttribute(two_levels, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    if (error != cudaSuccess) return error;
    const int blocks = a.groups < t->gpu->sms ? (int)a.groups : t->gpu->sms;
    two_levels<<<blocks, 32 * WARPS, bytes, t->stream>>>(a, b, (int)zeta);
    return cudaGetLastError();
}

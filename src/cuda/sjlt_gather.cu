/* sjlt's sums from memory: fp32 coordinates whose points are adjacent, each coordinate's 32 points
 * a line of 128 bytes. Eight lanes share a row, four points each; the chunks to come are asked
 * into the L2 cache in order, so that memory is read in order though rows gather out of order. */
#include "cuda/sjlt.h"

enum { THREADS = 256, GROUPS = THREADS / 8 };

static __device__ __forceinline__ void ask(const void *from, uint32_t bytes)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes) : "memory");
#else
    asm volatile("prefetch.global.L2 [%0];" ::"l"(from) : "memory");
    (void)bytes;
#endif
}

static __device__ __forceinline__ void add(float4 &sum, float sign, float4 x)
{
    sum.x = fmaf(sign, x.x, sum.x);
    sum.y = fmaf(sign, x.y, sum.y);
    sum.z = fmaf(sign, x.z, sum.z);
    sum.w = fmaf(sign, x.w, sum.w);
}

template <int ROWS, int PAIRS, bool WIDE>
static __global__ void __launch_bounds__(THREADS)
    gather_kernel(sjlt_shape s, sjlt_lists lists, sjlt_sum sum, int row_blocks, int64_t tiles)
{
    const int tid = threadIdx.x, eighth = tid & 7, group = tid >> 3;
    const int64_t row_block = blockIdx.x % row_blocks;
    const int64_t tile = blockIdx.x / row_blocks % tiles;
    const int64_t segment = blockIdx.x / row_blocks / tiles;
    const int64_t row0 = row_block * (ROWS * GROUPS);
    const int64_t chunk0 = segment * s.segment_chunks;
    const int64_t chunk_end =
        chunk0 + s.segment_chunks < lists.count ? chunk0 + s.segment_chunks : lists.count;
    const gcu_points &x = sum.x;
    const int64_t v = tile * SJLT_WIDE_POINTS + eighth * 4; /* from sum.point on */
    const int64_t left = sum.points - v;
    const float *const base =
        static_cast<const float *>(x.data) + (sum.point + (left > 0 ? v : 0)) * x.row_stride;
    const int64_t end = x.end < x.block_cols ? x.end : x.block_cols;
    const uint32_t none = WIDE ? 0xFFFFFFFFu : 0xFFFFu;
    constexpr int COUNT = 2 * PAIRS;

    float4 acc[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        acc[r] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);

    /* a chunk's list comes while the one before it is summed */
    constexpr int WORDS = WIDE ? COUNT : PAIRS;
    uint32_t coming[ROWS][WORDS];
    auto look_up = [&](int64_t chunk) {
        const uint32_t *words = lists.words + chunk * WORDS * lists.rows;
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const int64_t row = row0 + r * GROUPS + group;
#pragma unroll
            for (int i = 0; i < WORDS; i++)
                coming[r][i] = __ldg(words + i * lists.rows + (row < lists.rows ? row : 0));
        }
    };
    look_up(chunk0);
    for (int64_t chunk = chunk0; chunk < chunk_end; chunk++) {
        uint32_t list[ROWS][COUNT];
#pragma unroll
        for (int r = 0; r < ROWS; r++)
#pragma unroll
            for (int i = 0; i < COUNT; i++)
                list[r][i] = WIDE         ? coming[r][WIDE ? i : 0]
                             : i % 2 == 0 ? coming[r][i / 2] & 0xFFFFu
                                          : coming[r][i / 2] >> 16;
        if (chunk + 1 < chunk_end) look_up(chunk + 1);
        const int64_t q0 = ((lists.first + chunk) << s.chunk_log2) - sum.origin;
        { /* this block's share of the next chunk, in bytes that start where coordinates do */
            const int64_t share = (s.chunk + row_blocks - 1) / row_blocks;
            const int64_t p = q0 + s.chunk + row_block * share;
            const int64_t cols_a_thread = (share + THREADS - 1) / THREADS;
            if (x.col_stride <= SJLT_WIDE_POINTS) { /* one run of bytes: 16 KB pieces */
                const int64_t floats = share * x.col_stride;
                if (tid * 1024 < floats && chunk + 1 < chunk_end && p >= x.first &&
                    p + share < end) {
                    const int64_t n = floats - tid * 1024 < 1024 ? floats - tid * 1024 : 1024;
                    ask(static_cast<const float *>(x.data) + p * x.col_stride + tid * 1024,
                        (uint32_t)n * 4);
                }
            } else {
                for (int64_t c = 0; c < cols_a_thread; c++) {
                    const int64_t q = p + c * THREADS + tid;
                    if (c * THREADS + tid < share && chunk + 1 < chunk_end && q >= x.first &&
                        q < end && left > 0)
                        ask(static_cast<const float *>(x.data) + sum.point +
                                tile * SJLT_WIDE_POINTS + q * x.col_stride,
                            sum.points - tile * SJLT_WIDE_POINTS >= SJLT_WIDE_POINTS ? 128 : 16);
                }
            }
        }
        float4 got[ROWS][COUNT];
#pragma unroll
        for (int r = 0; r < ROWS; r++)
#pragma unroll
            for (int i = 0; i < COUNT; i++) {
                const int64_t q = q0 + (list[r][i] & none >> 1);
                got[r][i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
                if (list[r][i] != none && q >= x.first && q < end) {
                    const float *from = base + q * x.col_stride;
                    if (left >= 4) {
                        got[r][i] = *reinterpret_cast<const float4 *>(from);
                    } else {
                        if (left > 0) got[r][i].x = from[0];
                        if (left > 1) got[r][i].y = from[1];
                        if (left > 2) got[r][i].z = from[2];
                    }
                }
            }
#pragma unroll
        for (int r = 0; r < ROWS; r++)
#pragma unroll
            for (int i = 0; i < COUNT; i++) {
                const uint32_t sign =
                    WIDE ? list[r][i] & 0x80000000u : (list[r][i] & 0x8000u) << 16;
                add(acc[r], __uint_as_float(sign | 0x3F800000u), got[r][i]);
            }
    }
    if (left <= 0) return;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const int64_t row = row0 + r * GROUPS + group;
        if (row < lists.rows)
            *reinterpret_cast<float4 *>(sum.partial + (segment * lists.rows + row) * sum.width +
                                        v) = acc[r];
    }
}

bool sjlt_can_gather(const gcu_points &x)
{
    return x.dtype == GNOMON_F32 && x.row_stride == 1 && x.blocks == 1 && x.col_stride % 4 == 0 &&
           reinterpret_cast<uintptr_t>(x.data) % 16 == 0;
}

template <int ROWS, int PAIRS, bool WIDE>
static cudaError_t launch(const sjlt_shape &s, const sjlt_lists &lists, const sjlt_sum &sum,
                          cudaStream_t stream)
{
    const int64_t tiles = (sum.points + SJLT_WIDE_POINTS - 1) / SJLT_WIDE_POINTS;
    const int64_t row_blocks = (lists.rows + ROWS * GROUPS - 1) / (ROWS * GROUPS);
    const int64_t segments = (lists.count + s.segment_chunks - 1) / s.segment_chunks;
    gather_kernel<ROWS, PAIRS, WIDE>
        <<<(unsigned)(tiles * row_blocks * segments), THREADS, 0, stream>>>(s, lists, sum,
                                                                            (int)row_blocks, tiles);
    return cudaGetLastError();
}

template <bool WIDE>
static cudaError_t choose(const sjlt_shape &s, const sjlt_lists &lists, const sjlt_sum &sum,
                          cudaStream_t stream)
{
    if (s.pairs == 2) return launch<2, 2, WIDE>(s, lists, sum, stream);
    return launch<1, 4, WIDE>(s, lists, sum, stream);
}

cudaError_t sjlt_sum_gather(const sjlt_shape &s, const sjlt_lists &lists, const sjlt_sum &sum,
                            cudaStream_t stream)
{
    return lists.wide ? choose<true>(s, lists, sum, stream) : choose<false>(s, lists, sum, stream);
}

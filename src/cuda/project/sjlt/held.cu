/* sjlt's sums of few points, or of ones in 16 bits, whose coordinates are adjacent. A block takes
 * up to four points, a segment of chunks and some virtual rows, whose sums stay in registers. It
 * brings whole chunks of one point after the other into shared memory as they lie, two ahead, and a
 * row, a thread's, takes what its list names there. A thread holds a chunk's lists for all points
 * of the block. It reads those that stand or, of a single point, computes them.
 *
 * (project/sjlt/stage.cu has parts of a chunk of four points at once in shared memory: more for a
 * barrier, but each list is looked through for every part.) */
#include "cuda/project/points.cuh"
#include "cuda/project/sjlt/lists.cuh"
#include "cuda/runtime/mma.cuh"

#include "base/arithmetic.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

enum {
    MOST_THREADS = 1024,
    BUFFERS = 3,     /* a chunk of a point each, */
    BUFFER_MORE = 16 /* bytes: with a zero behind it */
};
enum { MOST_BANDS = 4 /* of a block's rows, where their lists are computed */ };

struct held_course {
    int64_t groups; /* of points */
    int row_blocks;
    uint32_t buffer_bytes;
};

static __device__ __forceinline__ float held_load(const float *x)
{
    return *x;
}
static __device__ __forceinline__ float held_load(const __half *x)
{
    return __half2float(*x);
}
static __device__ __forceinline__ float held_load(const __nv_bfloat16 *x)
{
    return __bfloat162float(*x);
}

/* Entry i of a list's step: two words of two. */
static __device__ __forceinline__ uint32_t held_entry(uint2 step, int i)
{
    const uint32_t word = i < 2 ? step.x : step.y;
    return i % 2 ? word >> 16 : word & 0xFFFFu;
}

/* POINTS points of a block, ROWS rows of a thread; COMPUTED: lists of one step. */
template <typename T, int POINTS, int ROWS, bool COMPUTED>
static __global__ void __launch_bounds__(MOST_THREADS, 1)
    held_kernel(const __grid_constant__ sjlt_shape s, const __grid_constant__ sjlt_lists lists,
                const __grid_constant__ sjlt_sum sum, const __grid_constant__ held_course course)
{
    constexpr int EACH = 16 / (int)sizeof(T);
    extern __shared__ __align__(128) unsigned char memory[];
    __shared__ gcu_line lines[POINTS];
    __shared__ uint4 key[2][MOST_BANDS][2];
    const int tid = threadIdx.x, threads = blockDim.x, chunk = (int)s.chunk;
    const int64_t row_block = blockIdx.x % course.row_blocks;
    const int64_t group = blockIdx.x / course.row_blocks % course.groups;
    const int64_t segment = blockIdx.x / course.row_blocks / course.groups;
    const int64_t block_row = row_block * (ROWS * threads), row0 = block_row + tid;
    const int64_t chunk0 = segment * s.segment_chunks; /* counted from the lists' first */
    const int chunks = (int)min(s.segment_chunks, lists.count - chunk0);
    const int64_t q0 = ((lists.first + chunk0) << s.chunk_log2) - sum.origin;
    const int64_t v0 = group * POINTS;
    const int points = (int)min((int64_t)POINTS, sum.points - v0);
    const uint32_t address = gcu_shared_address(memory);
    if (tid < POINTS)
        lines[tid] = gcu_line_of<T>(sum.x, sum.point + v0 + tid, sum.point + sum.points);
    if (tid < BUFFERS)
        *reinterpret_cast<uint4 *>(memory + (tid + 1) * course.buffer_bytes - 16) =
            make_uint4(0, 0, 0, 0);

    /* the next chunk of a point that is to come, and where it goes */
    int coming_chunk = 0, coming_point = 0, coming_buffer = 0;
    auto bring = [&]() {
        if (coming_chunk < chunks) {
            const uint32_t to = address + coming_buffer * course.buffer_bytes;
            const gcu_line &l = lines[coming_point];
            const int64_t from = q0 + ((int64_t)coming_chunk << s.chunk_log2);
            for (int y = tid * EACH; y < chunk; y += threads * EACH) {
                const int64_t q = from + y, left = (l.high - q) * (int64_t)sizeof(T);
                const int bytes = q < l.low || left <= 0 ? 0 : left < 16 ? (int)left : 16;
                gcu_copy16(to + y * (int)sizeof(T),
                           bytes ? l.base + q * (int64_t)sizeof(T) : sum.x.data, bytes);
            }
            if (++coming_point == points) coming_point = 0, coming_chunk++;
            if (++coming_buffer == BUFFERS) coming_buffer = 0;
        }
        gcu_copies_commit();
    };

    /* what lists are computed from: a row's slots and its band, the bands' keys and signs */
    uint32_t *const signs = reinterpret_cast<uint32_t *>(memory + BUFFERS * course.buffer_bytes);
    const uint32_t words_log2 = (uint32_t)s.chunk_log2 - 5;
    int64_t band0 = 0;
    int bands = 0;
    uint32_t row_slots[ROWS]; /* the first, how many, and the band: 16, 8, 8 bits */
    if constexpr (COMPUTED) {
        const int64_t last = min(block_row + ROWS * threads, lists.rows) - 1;
        band0 = sjlt_slots_of(s, lists.row + block_row).band;
        bands = (int)(sjlt_slots_of(s, lists.row + last).band - band0) + 1;
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const int64_t row = row0 + r * threads;
            const sjlt_slots l = sjlt_slots_of(s, lists.row + min(row, lists.rows - 1));
            const uint32_t count = row < lists.rows ? l.end - l.begin : 0;
            row_slots[r] = l.begin | count << 16 | (uint32_t)(l.band - band0) << 24;
        }
    }
    auto make_keys = [&](int c) {
        const int lane = tid - (threads - 32);
        if (lane < 0 || lane >= 2 * bands || c >= chunks) return;
        const uint4 w = gcu_call_general(s.keys, (uint32_t)(band0 + lane / 2),
                                         (uint64_t)(lists.first + chunk0 + c), lane % 2);
        const uint32_t m = 0x9E3779B1u;
        key[c & 1][lane / 2][lane % 2] = make_uint4(w.x * m, w.y * m, w.z * m, w.w * m);
    };
    auto make_signs = [&](int c) {
        if (c >= chunks) return;
        const uint32_t quad0 = (uint32_t)(band0 / 4);
        const uint32_t quads = (uint32_t)((band0 + bands + 3) / 4) - quad0;
        const uint64_t at = (uint64_t)(lists.first + chunk0 + c) << words_log2;
        uint32_t *const to = signs + ((c & 1) * MOST_BANDS << words_log2);
        for (uint32_t t = tid; t < quads << words_log2; t += threads) {
            const uint32_t word = t & ((1u << words_log2) - 1), quad = quad0 + (t >> words_log2);
            const uint4 w = gcu_call(s.signs, quad, at | word);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int64_t b = (int64_t)quad * 4 + i - band0;
                if (b >= 0 && b < bands) to[(uint32_t)b << words_log2 | word] = gcu_word(w, i);
            }
        }
    };

    uint2 now[ROWS];
    auto compute_lists = [&](int c) {
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const uint32_t slot = row_slots[r] & 0xFFFFu, count = row_slots[r] >> 16 & 0xFFu;
            const uint32_t band = row_slots[r] >> 24;
            const uint4 k0 = key[c & 1][band][0], k1 = key[c & 1][band][1];
            const uint32_t *const sign = signs + ((c & 1) * MOST_BANDS + band << words_log2);
            uint32_t y[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const uint32_t column =
                    sjlt_column(slot + i & (uint32_t)(chunk - 1), s.chunk_log2, k0, k1);
                y[i] = i < (int)count ? column << 1 | (sign[column >> 5] >> (column & 31) & 1)
                                      : (uint32_t)chunk << 1; /* the zero */
            }
            sjlt_sort<4>(y);
            now[r] = make_uint2(y[0] | y[1] << 16, y[2] | y[3] << 16);
        }
    };
    const uint2 *entries = nullptr;
    int behind[ROWS]; /* a row's first step, counted from row0's */
    if constexpr (!COMPUTED) {
        entries = static_cast<const uint2 *>(lists.entries) +
                  (chunk0 * lists.rows + min(row0, lists.rows - 1)) * s.steps;
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            behind[r] = row0 + r * threads < lists.rows ? r * threads * s.steps : 0;
    }
    auto read_lists = [&](int t) {
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            now[r] = __ldg(entries + behind[r] + t);
    };

    float acc[ROWS][POINTS];
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int p = 0; p < POINTS; p++)
            acc[r][p] = 0.0f;
    int buffer = 0;
    auto add = [&](int p) {
        const T *const from = reinterpret_cast<const T *>(memory + buffer * course.buffer_bytes);
#pragma unroll
        for (int r = 0; r < ROWS; r++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const uint32_t e = held_entry(now[r], i);
                const uint32_t y = COMPUTED ? e >> 1 : min(e >> 1, (uint32_t)chunk);
                acc[r][p] =
                    fmaf(__uint_as_float(e << 31 | 0x3F800000u), held_load(from + y), acc[r][p]);
            }
    };

    if constexpr (COMPUTED) {
        make_keys(0);
        make_signs(0);
    }
    __syncthreads();
    for (int i = 1; i < BUFFERS; i++)
        bring();
#pragma unroll 1
    for (int c = 0; c < chunks; c++) {
        if constexpr (COMPUTED) {
            compute_lists(c);
            make_signs(c + 1);
            make_keys(c + 1);
        } else {
            read_lists(0);
        }
#pragma unroll
        for (int p = 0; p < POINTS; p++) {
            if (p > 0 && p >= points) break;
            gcu_copies_wait<BUFFERS - 2>();
            __syncthreads(); /* it is there, and what lies where the next goes has been summed */
            bring();
            add(p);
            if (!COMPUTED && s.steps > 1) {
#pragma unroll 1
                for (int t = 1; t < s.steps; t++) {
                    read_lists(t);
                    add(p);
                }
                if (p + 1 < POINTS) read_lists(0);
            }
            if (++buffer == BUFFERS) buffer = 0;
        }
        if (!COMPUTED) entries += lists.rows * s.steps;
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const int64_t row = row0 + r * threads;
        if (row >= lists.rows) continue;
        float *const to = sum.partial + (segment * lists.rows + row) * sum.width + v0;
#pragma unroll
        for (int p = 0; p < POINTS; p++)
            if (p < points) to[p] = acc[r][p];
    }
}

/* ---- which kernel ---- */

static int64_t size_of(gnomon_dtype dtype)
{
    return dtype == GNOMON_F32 ? 4 : 2;
}

static size_t memory_of(const sjlt_shape &s, int64_t size, bool computed)
{
    return (size_t)(s.chunk * size + BUFFER_MORE) * BUFFERS +
           (computed ? (size_t)(2 * MOST_BANDS * (s.chunk / 32) * 4) : 0);
}

bool sjlt_can_hold(const sjlt_shape &s, const gcu_points &x, const gcu_gpu *gpu)
{
    if (x.dtype != GNOMON_F32 && x.dtype != GNOMON_F16 && x.dtype != GNOMON_BF16) return false;
    const int64_t each = 16 / size_of(x.dtype);
    const size_t own = 1024; /* that the kernel has besides */
    return !s.bits32 && memory_of(s, size_of(x.dtype), true) + own <= gpu->smem_bytes &&
           x.col_stride == 1 && reinterpret_cast<uintptr_t>(x.data) % 16 == 0 &&
           (x.n == 1 || x.row_stride % each == 0) &&
           (x.blocks == 1 || x.block_stride % each == 0) && (x.first == 0 || x.blocks == 1) &&
           x.first % each == 0;
}

bool sjlt_held_computes(const sjlt_shape &s, int64_t points)
{
    return points == 1 && s.steps == 1;
}

template <typename T, int POINTS, int ROWS, bool COMPUTED>
static cudaError_t launch(const sjlt_shape &s, const sjlt_lists &lists, const sjlt_sum &sum,
                          int threads, cudaStream_t stream)
{
    held_course course = {};
    course.groups = (sum.points + POINTS - 1) / POINTS;
    course.row_blocks = (int)((lists.rows + ROWS * threads - 1) / (ROWS * threads));
    course.buffer_bytes = (uint32_t)(s.chunk * (int64_t)sizeof(T) + BUFFER_MORE);
    const size_t memory = memory_of(s, (int64_t)sizeof(T), COMPUTED);
    const auto kernel = held_kernel<T, POINTS, ROWS, COMPUTED>;
    const cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)memory);
    if (error != cudaSuccess) return error;
    const int64_t segments = (lists.count + s.segment_chunks - 1) / s.segment_chunks;
    kernel<<<(unsigned)(course.groups * course.row_blocks * segments), threads, memory, stream>>>(
        s, lists, sum, course);
    return cudaGetLastError();
}

/* As measured on an H100: a point a block reads lists again for each, and fills a GPU sooner. */
template <typename T>
static cudaError_t launch_for(const sjlt_shape &s, const sjlt_lists &lists, const sjlt_sum &sum,
                              cudaStream_t stream)
{
    const int64_t quarter = (lists.rows + 3) / 4; /* a thread has four rows */
    const int threads = quarter <= 256 ? 256 : quarter <= 768 ? 512 : MOST_THREADS;
    if (sjlt_held_computes(s, sum.points))
        return launch<T, 1, 2, true>(s, lists, sum, MOST_THREADS / 2, stream);
    return sum.points <= 8 ? launch<T, 1, 4, false>(s, lists, sum, threads, stream)
                           : launch<T, 4, 4, false>(s, lists, sum, threads, stream);
}

cudaError_t sjlt_sum_held(const sjlt_shape &s, const sjlt_lists &lists, const sjlt_sum &sum,
                          cudaStream_t stream)
{
    switch (sum.x.dtype) {
    case GNOMON_F32:
        return launch_for<float>(s, lists, sum, stream);
    case GNOMON_F16:
        return launch_for<__half>(s, lists, sum, stream);
    default:
        return launch_for<__nv_bfloat16>(s, lists, sum, stream);
    }
}

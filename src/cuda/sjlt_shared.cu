/* sjlt's sums from shared memory. A block takes 8 points, a segment of chunks and up to 4096
 * virtual rows, whose sums stay in registers. It brings the chunks' columns in, piece by piece, and
 * in each pass over a piece a row takes what its list names there: memory is read once, and the
 * s-fold traffic stays in shared memory. Two threads share a row, four points each. */
#include "cuda/points.cuh"
#include "cuda/sjlt.h"

enum { THREADS = 512, OWNERS = THREADS / 2 };
enum { HALF = SJLT_PIECE / 2, HALF_BYTES = HALF * SJLT_POINTS * 4 };

/* How a piece comes in. */
enum way {
    BY_HAND, /* through registers: any type and layout */
    IN_LINES /* fp32, adjacent points, aligned: asynchronously */
};

/* Into [column][8 points]: the lanes of a warp hold four columns each of 4 x 8 (column, point)
 * pairs and write in turns so that no two meet in a bank. */
static __device__ __forceinline__ void store4(float *piece, int col, int point, int turn, float4 v)
{
    float a = v.x, b = v.y, c = v.z, d = v.w;
    if (turn & 1) {
        const float t = a;
        a = b, b = c, c = d, d = t;
    }
    if (turn & 2) {
        float t = a;
        a = c, c = t;
        t = b, b = d, d = t;
    }
    float *to = piece + col * SJLT_POINTS + point;
    to[(0 + turn & 3) * SJLT_POINTS] = a;
    to[(1 + turn & 3) * SJLT_POINTS] = b;
    to[(2 + turn & 3) * SJLT_POINTS] = c;
    to[(3 + turn & 3) * SJLT_POINTS] = d;
}

static __device__ __forceinline__ void copy16(uint32_t to, const void *from, int bytes)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes)
                 : "memory");
}

static __device__ __forceinline__ void copy4(uint32_t to, const void *from, int bytes)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(bytes)
                 : "memory");
}

static __device__ __forceinline__ void commit(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int LEFT> static __device__ __forceinline__ void arrive(void)
{
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}

/* Four points of the column at this shared address, or zeros. Predicated, for a branch would wait
 * for each load by itself. */
template <bool ALWAYS> static __device__ __forceinline__ float4 load_if(bool there, uint32_t from)
{
    float4 x;
    if (ALWAYS) {
        asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
                     : "r"(from)
                     : "memory");
        return x;
    }
    x = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    asm volatile("{.reg .pred p; setp.ne.u32 p, %4, 0;"
                 "@p ld.shared.v4.f32 {%0, %1, %2, %3}, [%5];}"
                 : "+f"(x.x), "+f"(x.y), "+f"(x.z), "+f"(x.w)
                 : "r"((uint32_t)there), "r"(from)
                 : "memory");
    return x;
}

static __device__ __forceinline__ void add(float4 &sum, uint32_t sign, float4 x)
{
    const float s = __uint_as_float((sign & 0x80000000u) | 0x3F800000u);
    sum.x = fmaf(s, x.x, sum.x);
    sum.y = fmaf(s, x.y, sum.y);
    sum.z = fmaf(s, x.z, sum.z);
    sum.w = fmaf(s, x.w, sum.w);
}

/* What the entries of COUNT words name, added if it lies in the piece at shared address 'from'.
 * 'number' holds, in the place of a column in either half of a word, the piece's number in the
 * chunk and, in bit 11, whether the piece's halves lie in turned order. ALL: everything does lie
 * in the piece. */
template <int COUNT, bool ALL>
static __device__ __forceinline__ void take(float4 &sum, uint32_t from, const uint32_t *word,
                                            uint32_t number)
{
    float4 low[COUNT], high[COUNT];
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        const uint32_t x = word[i] ^ number;
        low[i] = load_if<ALL>((x & 0x00007000u) == 0, from + ((x & 0xFFFu) << 5));
        high[i] = load_if<ALL>((x & 0x70000000u) == 0, from + (x >> 11 & 0x1FFE0u));
    }
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        add(sum, word[i] << 16, low[i]);
        add(sum, word[i], high[i]);
    }
}

/* ROWS rows an owner (a pair of threads). PAIRS words of a list in registers, or 0: read again in
 * each pass. ALL: one piece a chunk, and lists without gaps. */
template <typename T, int ROWS, int PAIRS, bool ALL, way WAY>
static __global__ void __launch_bounds__(THREADS, 1)
    sum_kernel(sjlt_shape s, sjlt_lists lists, sjlt_sum sum, int row_blocks, int64_t groups)
{
    extern __shared__ __align__(128) unsigned char raw[];
    constexpr int stage_bytes = (WAY == IN_LINES ? 3 : 2) * HALF_BYTES;
    float *const stage = reinterpret_cast<float *>(raw);
    uint32_t *const words = reinterpret_cast<uint32_t *>(raw + stage_bytes);
    const uint32_t stage_address = (uint32_t)__cvta_generic_to_shared(stage);
    const uint32_t words_address = (uint32_t)__cvta_generic_to_shared(words);

    const int tid = threadIdx.x, owner = tid >> 1, part = tid & 1;
    const int64_t group = blockIdx.x % groups;
    const int64_t row0 = (int64_t)(blockIdx.x / groups % row_blocks) * (ROWS * OWNERS);
    const int64_t segment = blockIdx.x / groups / row_blocks;
    const int64_t chunk0 = segment * s.segment_chunks; /* counted from the lists' first */
    const int64_t chunk_end = min(chunk0 + s.segment_chunks, lists.count);
    const int passes = ALL ? 1 : (int)(s.chunk >> SJLT_PIECE_LOG2);
    const int64_t pieces = (chunk_end - chunk0) * passes;
    const int64_t q0 = ((lists.first + chunk0) << s.chunk_log2) - sum.origin;
    const int64_t v0 = sum.point + group * SJLT_POINTS, v_end = sum.point + sum.points;

    /* By hand: this thread's point; in lines: the first point, whose block all of them share. */
    const int point = tid & 7, turn = tid >> 3 & 3;
    const gcu_line line = gcu_line_of<T>(sum.x, WAY == IN_LINES ? v0 : v0 + point, v_end);

    /* Half h of the pieces, two a piece: the first halves go by turns to the first and the last
     * third of the stage, the second halves to the middle. */
    auto bring = [&](int64_t h) {
        const int64_t q = q0 + h * HALF;
        const uint32_t to = stage_address + ((h & 1) != 0   ? HALF_BYTES
                                             : (h & 2) != 0 ? 2 * HALF_BYTES
                                                            : 0);
        int bytes = (int)(min(v_end - v0, (int64_t)8) * 4 - part * 16);
        bytes = max(0, min(bytes, 16));
#pragma unroll
        for (int j = 0; j < HALF_BYTES / 16 / THREADS; j++) {
            const int item = j * THREADS + tid;
            const int64_t at = q + (item >> 1);
            const bool there = at >= line.low && at < line.high && bytes > 0;
            copy16(to + item * 16, there ? line.base + at * line.stride + part * 16 : line.base,
                   there ? bytes : 0);
        }
    };
    auto fill = [&](int64_t piece) {
#pragma unroll 1
        for (int f = 0; f < 4; f++) {
            const int col0 = f * (SJLT_PIECE / 4) + (tid >> 5) * 16 + turn * 4;
            const int64_t q = q0 + (piece << SJLT_PIECE_LOG2) + col0;
            float4 v[4];
#pragma unroll
            for (int j = 0; j < 4; j++)
                v[j] = gcu_load4<T>(line, q + j * 256);
#pragma unroll
            for (int j = 0; j < 4; j++)
                store4(stage, col0 + j * 256, point, turn, v[j]);
        }
    };
    auto ask = [&](int64_t piece) { /* a piece's lines of adjacent coordinates into the L2 cache */
                                    const int64_t q = q0 + (piece << SJLT_PIECE_LOG2);
                                    if (line.stride != sizeof(T)) return;
#pragma unroll
                                    for (int j = 0; j < (int)sizeof(T) / 2; j++) {
                                        const int64_t at =
                                            q + ((tid >> 3) + j * 64) * (128 / (int)sizeof(T));
                                        if (at >= line.low && at < line.high)
                                            asm volatile("prefetch.global.L2 [%0];" ::"l"(
                                                line.base + at * sizeof(T)));
                                    }
    };
    auto bring_lists = [&](int64_t chunk) {
        const uint32_t *from = lists.words + chunk * s.pairs * lists.rows + row0;
        const int64_t rows = lists.rows - row0;
#pragma unroll
        for (int p = 0; p < PAIRS; p++)
            for (int r = tid; r < ROWS * OWNERS; r += THREADS)
                copy4(words_address + (p * ROWS * OWNERS + r) * 4,
                      r < rows ? from + p * lists.rows + r : from, r < rows ? 4 : 0);
    };

    float4 acc[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        acc[r] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    uint32_t list[ROWS][PAIRS > 0 ? PAIRS : 1];

    if (PAIRS > 0) bring_lists(chunk0);
    if (WAY == IN_LINES) {
        for (int h = 0; h < 3; h++) {
            if (h < 2 * pieces) bring(h);
            commit();
        }
    } else {
        commit();
        fill(0);
    }
    int64_t piece = 0;
    for (int64_t chunk = chunk0; chunk < chunk_end; chunk++) {
        for (int pass = 0; pass < passes; pass++, piece++) {
            arrive<WAY == IN_LINES ? 1 : 0>();
            __syncthreads();
            if (PAIRS > 0 && pass == 0) {
#pragma unroll
                for (int r = 0; r < ROWS; r++)
#pragma unroll
                    for (int p = 0; p < PAIRS; p++)
                        list[r][p] = words[p * ROWS * OWNERS + r * OWNERS + owner];
                __syncthreads();
                if (chunk + 1 < chunk_end) bring_lists(chunk + 1);
                if (WAY == BY_HAND) commit();
            }
            if (WAY == BY_HAND && piece + 1 < pieces) ask(piece + 1);
            const uint32_t turned = WAY == IN_LINES ? (uint32_t)(piece & 1) : 0;
            const uint32_t from = stage_address + turned * HALF_BYTES + part * 16;
            const uint32_t number = ((uint32_t)pass << 12 | turned << 11) * 0x10001u;
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                if (PAIRS > 0) {
#pragma unroll
                    for (int p = 0; p + 1 < PAIRS; p += 2)
                        take<2, ALL>(acc[r], from, list[r] + p, number);
                } else {
                    const int64_t row = row0 + r * OWNERS + owner;
                    const uint32_t *w = lists.words + chunk * s.pairs * lists.rows + row;
                    if (row < lists.rows)
                        for (int p = 0; p < s.pairs; p++)
                            take<1, false>(acc[r], from, w + p * lists.rows, number);
                }
            }
            __syncthreads();
            if (WAY == IN_LINES) {
                for (int64_t h = 2 * piece + 3; h < 2 * piece + 5; h++) {
                    if (h < 2 * pieces) bring(h);
                    commit();
                }
            } else if (piece + 1 < pieces) {
                fill(piece + 1);
            }
        }
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const int64_t row = row0 + r * OWNERS + owner;
        if (row < lists.rows)
            *reinterpret_cast<float4 *>(sum.partial + (segment * lists.rows + row) * sum.width +
                                        group * SJLT_POINTS + part * 4) = acc[r];
    }
}

static bool can_copy(const gcu_points &x, int64_t point)
{
    return x.dtype == GNOMON_F32 && x.row_stride == 1 && x.col_stride % 4 == 0 &&
           reinterpret_cast<uintptr_t>(x.data) % 16 == 0 && point % 4 == 0 &&
           (x.blocks == 1 || (x.n % SJLT_POINTS == 0 && x.block_stride % 4 == 0));
}

template <typename T, int ROWS, int PAIRS, bool ALL, way WAY>
static cudaError_t launch(const sjlt_shape &s, const sjlt_lists &lists, const sjlt_sum &sum,
                          cudaStream_t stream)
{
    const size_t bytes = (WAY == IN_LINES ? 3 : 2) * HALF_BYTES + (size_t)PAIRS * ROWS * OWNERS * 4;
    const auto kernel = sum_kernel<T, ROWS, PAIRS, ALL, WAY>;
    const cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    if (error != cudaSuccess) return error;
    const int64_t groups = (sum.points + SJLT_POINTS - 1) / SJLT_POINTS;
    const int64_t row_blocks = (lists.rows + ROWS * OWNERS - 1) / (ROWS * OWNERS);
    const int64_t segments = (lists.count + s.segment_chunks - 1) / s.segment_chunks;
    kernel<<<(unsigned)(groups * row_blocks * segments), THREADS, bytes, stream>>>(
        s, lists, sum, (int)row_blocks, groups);
    return cudaGetLastError();
}

template <typename T, way WAY>
static cudaError_t choose(const sjlt_shape &s, const sjlt_lists &lists, const sjlt_sum &sum,
                          cudaStream_t stream)
{
    if (s.pairs == 2 && s.full && s.chunk == SJLT_PIECE)
        return launch<T, 16, 2, true, WAY>(s, lists, sum, stream);
    if (s.pairs == 2) return launch<T, 16, 2, false, WAY>(s, lists, sum, stream);
    if (s.pairs == 4) return launch<T, 8, 4, false, WAY>(s, lists, sum, stream);
    return launch<T, 16, 0, false, WAY>(s, lists, sum, stream);
}

cudaError_t sjlt_sum_shared(const sjlt_shape &s, const sjlt_lists &lists, const sjlt_sum &sum,
                            cudaStream_t stream)
{
    if (can_copy(sum.x, sum.point)) return choose<float, IN_LINES>(s, lists, sum, stream);
    switch (sum.x.dtype) {
    case GNOMON_F32:
        return choose<float, BY_HAND>(s, lists, sum, stream);
    case GNOMON_F16:
        return choose<__half, BY_HAND>(s, lists, sum, stream);
    case GNOMON_BF16:
        return choose<__nv_bfloat16, BY_HAND>(s, lists, sum, stream);
    case GNOMON_I8:
        return choose<int8_t, BY_HAND>(s, lists, sum, stream);
    case GNOMON_U8:
        return choose<uint8_t, BY_HAND>(s, lists, sum, stream);
    case GNOMON_I16:
        return choose<int16_t, BY_HAND>(s, lists, sum, stream);
    case GNOMON_U16:
        return choose<uint16_t, BY_HAND>(s, lists, sum, stream);
    default:
        return cudaErrorInvalidValue;
    }
}

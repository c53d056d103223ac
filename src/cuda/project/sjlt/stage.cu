/* sjlt's sums of fp32 points whose coordinates are adjacent. A block takes 4 points, a segment of
 * chunks and up to 4096 virtual rows, whose sums stay in registers. It brings the points'
 * coordinates into shared memory as they lie, SJLT_STAGE of each point at a time, and a row, a
 * thread's, takes what its list names there: memory is read once, in order, and what is out of
 * order stays in shared memory, whose banks, met at random, are what bounds it. */
#include "cuda/project/points.cuh"
#include "cuda/project/sjlt/sjlt.h"
#include "cuda/project/sjlt/sum.cuh"
#include "cuda/runtime/mma.cuh"

enum { THREADS = 1024, STAGES = 3, MANY_ROWS = 4 /* of a thread */, FEW_BLOCKS = 96 };
enum { STAGE_BYTES = SJLT_STAGE_POINTS * SJLT_STAGE * 4 };
static_assert(SJLT_STAGE == 4 * THREADS, "a thread brings four coordinates of each point");

/* Coordinates of the stage's points at this address, or zeros. Predicated, for a branch would wait
 * for each load by itself. */
static __device__ __forceinline__ float4 load_if(bool there, uint32_t from)
{
    float4 x = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    asm volatile("{.reg .pred p; setp.ne.u32 p, %4, 0;"
                 "@p ld.shared.f32 %0, [%5];"
                 "@p ld.shared.f32 %1, [%5 + 16384];"
                 "@p ld.shared.f32 %2, [%5 + 32768];"
                 "@p ld.shared.f32 %3, [%5 + 49152];}"
                 : "+f"(x.x), "+f"(x.y), "+f"(x.z), "+f"(x.w)
                 : "r"((uint32_t)there), "r"(from)
                 : "memory");
    return x;
}

/* What a word's two entries name, if it lies in the stage at 'from': 'number' is the stage's in the
 * chunk, where the entries have it. */
static __device__ __forceinline__ void accumulate(float4 &sum, uint32_t from, uint32_t word,
                                                  uint32_t number)
{
    const uint32_t x = word ^ number;
    const float4 low = load_if((x & 0x0000E000u) == 0, from + ((x & 0x1FFEu) << 1));
    const float4 high = load_if((x & 0xE0000000u) == 0, from + (x >> 15 & 0x3FFCu));
    sjlt_add(sum, word & 1, low);
    sjlt_add(sum, word >> 16 & 1, high);
}

/* ROWS rows per thread. */
template <int ROWS>
static __global__ void __launch_bounds__(THREADS, 1)
    stage_kernel(sjlt_shape s, sjlt_lists lists, sjlt_sum sum, int row_blocks, int64_t groups)
{
    extern __shared__ __align__(128) unsigned char stages[];
    __shared__ gcu_line lines[SJLT_STAGE_POINTS];
    const int tid = threadIdx.x;
    const int64_t group = blockIdx.x % groups;
    const int64_t row0 = (int64_t)(blockIdx.x / groups % row_blocks) * (ROWS * THREADS) + tid;
    const int64_t segment = blockIdx.x / groups / row_blocks;
    const int64_t chunk0 = segment * s.segment_chunks; /* counted from the lists' first */
    const int chunks = (int)min(s.segment_chunks, lists.count - chunk0);
    const int passes = (int)(s.chunk >> SJLT_STAGE_LOG2), pieces = chunks * passes;
    const int64_t q0 = ((lists.first + chunk0) << s.chunk_log2) - sum.origin + 4 * tid;
    const int64_t v0 = group * SJLT_STAGE_POINTS;
    const uint32_t address = gcu_shared_address(stages);
    if (tid < SJLT_STAGE_POINTS)
        lines[tid] = gcu_line_of<float>(sum.x, sum.point + v0 + tid, sum.point + sum.points);
    __syncthreads();

    auto bring = [&](int piece) {
        if (piece < pieces) {
            const int64_t q = q0 + (int64_t)piece * SJLT_STAGE;
            const uint32_t to = address + piece % STAGES * STAGE_BYTES + tid * 16;
#pragma unroll
            for (int p = 0; p < SJLT_STAGE_POINTS; p++) {
                const gcu_line &l = lines[p];
                const int64_t left = (l.high - q) * 4;
                const int bytes = q < l.low || left <= 0 ? 0 : left < 16 ? (int)left : 16;
                gcu_copy16(to + p * SJLT_STAGE * 4, bytes ? l.base + q * 4 : sum.x.data, bytes);
            }
        }
        gcu_copies_commit();
    };
    /* A step comes while the one before it is summed; a chunk's only step stays for all passes. */
    const uint2 *entries = static_cast<const uint2 *>(lists.entries) +
                           (chunk0 * lists.rows + min(row0, lists.rows - 1)) * s.steps;
    int behind[ROWS]; /* a row's first step, counted from row0's */
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        behind[r] = row0 + r * THREADS < lists.rows ? r * THREADS * s.steps : 0;
    uint2 now[ROWS], coming[ROWS];
    auto lookup = [&](int t) {
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            coming[r] = __ldg(entries + behind[r] + t);
    };

    float4 acc[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        acc[r] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    lookup(0);
    bring(0);
    bring(1);
    int piece = 0;
#pragma unroll 1
    for (int chunk = 0; chunk < chunks; chunk++) {
#pragma unroll 1
        for (int pass = 0; pass < passes; pass++, piece++) {
            gcu_copies_wait<1>();
            __syncthreads(); /* this piece is there, and the one before it is done with */
            bring(piece + 2);
            const uint32_t from = address + piece % STAGES * STAGE_BYTES;
            const uint32_t number = (uint32_t)pass * 0x20002000u;
#pragma unroll 1
            for (int t = 0; t < s.steps; t++) {
                if (pass == 0 || s.steps > 1) {
#pragma unroll
                    for (int r = 0; r < ROWS; r++)
                        now[r] = coming[r];
                    if (t + 1 < s.steps) {
                        lookup(t + 1);
                    } else if (s.steps > 1 && pass + 1 < passes) {
                        lookup(0);
                    } else if (chunk + 1 < chunks) {
                        entries += lists.rows * s.steps;
                        lookup(0);
                    }
                }
#pragma unroll
                for (int r = 0; r < ROWS; r++) {
                    accumulate(acc[r], from, now[r].x, number);
                    accumulate(acc[r], from, now[r].y, number);
                }
            }
        }
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const int64_t row = row0 + r * THREADS;
        if (row < lists.rows)
            *reinterpret_cast<float4 *>(sum.partial + (segment * lists.rows + row) * sum.width +
                                        v0) = acc[r];
    }
}

bool sjlt_can_stage(const gcu_points &x)
{
    return x.dtype == GNOMON_F32 && x.col_stride == 1 &&
           reinterpret_cast<uintptr_t>(x.data) % 16 == 0 && (x.n == 1 || x.row_stride % 4 == 0) &&
           (x.blocks == 1 || x.block_stride % 4 == 0) && (x.first == 0 || x.blocks == 1) &&
           x.first % 4 == 0;
}

template <int ROWS>
static cudaError_t launch(const sjlt_shape &s, const sjlt_lists &lists, const sjlt_sum &sum,
                          int64_t groups, int64_t segments, cudaStream_t stream)
{
    const cudaError_t error = cudaFuncSetAttribute(
        stage_kernel<ROWS>, cudaFuncAttributeMaxDynamicSharedMemorySize, STAGES * STAGE_BYTES);
    if (error != cudaSuccess) return error;
    const int64_t row_blocks = (lists.rows + ROWS * THREADS - 1) / (ROWS * THREADS);
    stage_kernel<ROWS>
        <<<(unsigned)(groups * row_blocks * segments), THREADS, STAGES * STAGE_BYTES, stream>>>(
            s, lists, sum, (int)row_blocks, groups);
    return cudaGetLastError();
}

cudaError_t sjlt_sum_stage(const sjlt_shape &s, const sjlt_lists &lists, const sjlt_sum &sum,
                           cudaStream_t stream)
{
    const int64_t groups = (sum.points + SJLT_STAGE_POINTS - 1) / SJLT_STAGE_POINTS;
    const int64_t segments = (lists.count + s.segment_chunks - 1) / s.segment_chunks;
    /* few points would leave most of a GPU idle: their coordinates are rather read again */
    return groups * segments < FEW_BLOCKS
               ? launch<1>(s, lists, sum, groups, segments, stream)
               : launch<MANY_ROWS>(s, lists, sum, groups, segments, stream);
}

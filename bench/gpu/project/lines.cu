/* bench/gpu/project/lines.cu: what very-sparse sketches of points contiguous could take if the
 * points were turned into lines that stay in L2 (project/sparse/transpose.cuh).
 *
 * Blocks of threads read tiles of 32 points x 128 columns, write them as lines of 32 points to a
 * ring of memory and gather lines from random places of it, 1.64 for each column, as k = 16384 rows
 * of density 1e-4 do. Nothing is waited for and no sum is right: a bound of what overlaps best. */
#include "bench.cuh"

enum { POINTS = 32, COLS = 128, THREADS = 256 };

static const int64_t D = 10000000;
static const float USES = 1.64f;

template <bool READ, bool WRITE, bool GATHER>
static __global__ void __launch_bounds__(THREADS, 8)
    pass(const float *x, float *ring, uint32_t ring_cols, int64_t tiles, float *sink)
{
    __shared__ __align__(16) float tile[POINTS * COLS];
    float sum = 0;
    for (int64_t at = blockIdx.x; at < tiles; at += gridDim.x) {
        if (READ) {
            const int four = threadIdx.x % 32, first = threadIdx.x / 32;
            float4 v[4];
            for (int u = 0; u < 4; u++)
                v[u] = __ldcs(
                    reinterpret_cast<const float4 *>(x + (first + 8 * u) * D + at * COLS) + four);
            for (int u = 0; u < 4; u++) {
                const int p = first + 8 * u;
                *reinterpret_cast<float4 *>(tile + p * COLS + (four ^ (p >> 2 & 7)) * 4) = v[u];
            }
            __syncthreads();
        }
        if (WRITE) {
            const int p = threadIdx.x % 8 * 4, c = threadIdx.x / 8 * 4;
            float4 v[4];
            for (int k = 0; k < 4; k++)
                v[k] = *reinterpret_cast<const float4 *>(tile + (p + k) * COLS +
                                                         (c / 4 ^ ((p + k) >> 2 & 7)) * 4);
            float4 *line =
                reinterpret_cast<float4 *>(ring + (at * COLS + c) % ring_cols * POINTS + p);
            line[0] = make_float4(v[0].x, v[1].x, v[2].x, v[3].x);
            line[8] = make_float4(v[0].y, v[1].y, v[2].y, v[3].y);
            line[16] = make_float4(v[0].z, v[1].z, v[2].z, v[3].z);
            line[24] = make_float4(v[0].w, v[1].w, v[2].w, v[3].w);
        } else if (READ) {
            sum += tile[threadIdx.x];
        }
        if (READ) __syncthreads();
        if (GATHER) { /* eight lanes a line */
            uint32_t h = (uint32_t)at * 2654435761u + threadIdx.x / 8 * 40503u;
#pragma unroll 7
            for (int i = threadIdx.x / 8; i < (int)(COLS * USES); i += THREADS / 8) {
                h = h * 1664525u + 1013904223u;
                const float *from = ring + (uint64_t)__umulhi(h, ring_cols) * POINTS;
                const float4 v = __ldcg(reinterpret_cast<const float4 *>(from) + threadIdx.x % 8);
                sum += v.x + v.y + v.z + v.w;
            }
        }
    }
    if (sum == 1.2345f) *sink = sum; /* never: keeps the loads */
}

int main(int argc, char **argv)
{
    bench_json json = bench_open("lines", argc, argv);
    float *x, *ring, *sink;
    const size_t bytes = (size_t)D * POINTS * 4;
    BENCH_CHECK(cudaMalloc(&x, bytes));
    BENCH_CHECK(cudaMalloc(&ring, bytes));
    BENCH_CHECK(cudaMalloc(&sink, 4));
    bench_fill(x, bytes / 4, 1);
    bench_fill(ring, bytes / 4, 2);
    int sms;
    BENCH_CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    const double read_ms = bench_read_ms(x, bytes);
    printf("%lld columns of %d points; one read %.4f ms\n", (long long)D, (int)POINTS, read_ms);
    for (const int64_t mb : {4, 8, 16, 24, 1280}) {
        const uint32_t cols = (uint32_t)(mb * 1000000 / (4 * POINTS) / COLS * COLS);
        const auto record = [&](const char *what, auto kernel) {
            const bench_time t = bench_run(
                [&](int) { kernel<<<sms * 8, THREADS>>>(x, ring, cols, D / COLS, sink); });
            printf("ring of %5lld MB, %-26s %8.4f ms\n", (long long)mb, what, t.median_ms);
            bench_record(&json,
                         "\"ring_mb\": %lld, \"what\": \"%s\", \"ms\": %.5f, \"runs\": %d, "
                         "\"read_ms\": %.5f",
                         (long long)mb, what, t.median_ms, t.runs, read_ms);
        };
        record("read and written", pass<true, true, false>);
        record("gathered", pass<false, false, true>);
        record("read, written and gathered", pass<true, true, true>);
    }
    bench_close(&json);
    return 0;
}

/* Checks the dense families against a slow product in fp64 with entries by random.cuh.
 * GNOMON_TEST_REDUCED=1 runs a part, for slow checkers. */
#include "cuda/project/family.h"
#include "must.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vector>

static __device__ double entry(const gnomon_simple &a, gcu_gaussian16 g, int64_t i, int64_t j)
{
    const uint32_t level = a.level << 16, block = (uint32_t)(i / 4);
    const int w = (int)(i % 4);
    if (a.kind == GNOMON_RADEMACHER) {
        gcu_stream s = {a.key0, a.key1, (uint32_t)GNOMON_TAG_SIGN << 24 | level};
        return gcu_word(gcu_call(s, block, (uint64_t)j / 32), w) >> (j % 32) & 1 ? -1.0 : 1.0;
    }
    if (a.kind == GNOMON_ACHLIOPTAS) {
        gcu_stream s = {a.key0, a.key1, (uint32_t)GNOMON_TAG_ACHLIOPTAS << 24 | level};
        return gcu_achlioptas_digit(gcu_word(gcu_call(s, block, (uint64_t)j / 8), w), (int)(j % 8));
    }
    if (a.precision == GNOMON_F16) {
        gcu_stream s = {a.key0, a.key1, (uint32_t)GNOMON_TAG_GAUSSIAN16 << 24 | level};
        gcu_stream t = {a.key0, a.key1, (uint32_t)GNOMON_TAG_GAUSSIAN16_TAIL << 24 | level};
        const uint32_t word = gcu_word(gcu_call(s, block, (uint64_t)j / 2), w);
        const uint32_t h = j % 2 ? word >> 16 : word & 0xFFFF;
        uint16_t bits = g.magnitude[h & 0x7FFF];
        if ((h & 0x7FFF) == 0x7FFF)
            bits = gcu_gaussian16_tail(g, gcu_word(gcu_call(t, block, (uint64_t)j), w));
        const double m = (double)__half2float(__ushort_as_half(bits));
        return h >> 15 ? -m : m;
    }
    gcu_stream s = {a.key0, a.key1, (uint32_t)GNOMON_TAG_GAUSSIAN << 24 | level};
    const uint4 c = gcu_call(s, block, (uint64_t)j);
    const float2 p = w < 2 ? gcu_box_muller(c.x, c.y) : gcu_box_muller(c.z, c.w);
    return w % 2 ? p.y : p.x;
}

template <typename T> static __device__ double number(T x)
{
    return (double)x;
}
static __device__ double number(__half x)
{
    return (double)__half2float(x);
}
static __device__ double number(__nv_bfloat16 x)
{
    return (double)__bfloat162float(x);
}

/* y[a][v] for the task's rows row + a * every; one block a row and 8 points. */
template <typename T>
static __global__ void reference(gnomon_simple a, gcu_gaussian16 g, int64_t row, int64_t every,
                                 int64_t col, gcu_points x, double *y, double *norm)
{
    const int64_t i = row + (int64_t)blockIdx.x * every, points = x.n * x.blocks;
    const int64_t v0 = (int64_t)blockIdx.y * 8;
    double sum[8] = {0}, size[8] = {0};
    for (int64_t q = threadIdx.x; q < x.block_cols; q += blockDim.x) {
        const double s = entry(a, g, i, col + q);
        for (int p = 0; p < 8; p++) {
            const int64_t v = v0 + p;
            if (v >= points) break;
            const int64_t at = v / x.n * x.block_cols + q;
            if (at < x.first || at >= x.end) continue;
            const double e = number(static_cast<const T *>(
                x.data)[v % x.n * x.row_stride + v / x.n * x.block_stride + q * x.col_stride]);
            sum[p] += s * e;
            size[p] += s * s * e * e;
        }
    }
    __shared__ double all[256];
    for (int p = 0; p < 16; p++) {
        all[threadIdx.x] = p < 8 ? sum[p] : size[p - 8];
        __syncthreads();
        for (int step = 128; step; step /= 2) {
            if (threadIdx.x < step) all[threadIdx.x] += all[threadIdx.x + step];
            __syncthreads();
        }
        if (threadIdx.x == 0 && v0 + p % 8 < points)
            (p < 8 ? y : norm)[blockIdx.x * points + v0 + p % 8] = all[0];
        __syncthreads();
    }
}

enum shape { UNIFORM, NORMAL, HUGE_RANGE, TINY, SPARSE };

static __device__ float draw(int shape, uint64_t at, uint32_t seed)
{
    const uint4 w = gcu_philox((uint32_t)at, (uint32_t)(at >> 32), 7, 128u << 24, seed, 99);
    const float u = (float)(w.x >> 8) * 0x1p-24f;
    const float2 g = gcu_box_muller(w.z, w.w);
    switch (shape) {
    case UNIFORM:
        return u;
    case NORMAL:
        return g.x;
    case HUGE_RANGE:
        return (u - 0.5f) * expf(4.0f * g.x);
    case TINY:
        return g.x * 0x1p-140f;
    default:
        return (at / 4096) % 4 == 1 ? g.x : 0.0f;
    }
}

template <typename T> static __device__ T make(float x)
{
    return (T)x;
}
template <> __device__ __half make<__half>(float x)
{
    return __float2half_rn(x);
}
template <> __device__ __nv_bfloat16 make<__nv_bfloat16>(float x)
{
    return __float2bfloat16_rn(x);
}
template <> __device__ int8_t make<int8_t>(float x)
{
    return (int8_t)(x * 100.0f);
}
template <> __device__ uint16_t make<uint16_t>(float x)
{
    return (uint16_t)(fabsf(x) * 30000.0f);
}

template <typename T> static __global__ void fill(T *x, int64_t n, int shape, uint32_t seed)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
         i += (int64_t)gridDim.x * blockDim.x)
        x[i] = make<T>(draw(shape, (uint64_t)i, seed));
}

struct job {
    gnomon_kind kind;
    gnomon_dtype precision;
    gnomon_dtype dtype;
    int64_t k, n, d, row, rows;
    int blocks, shape;
    bool points_first;
    size_t work; /* 0: best */
    int pieces;
    int64_t col;        /* the operator's column at which the task begins */
    int64_t pad;        /* elements between rows, and before the first */
    int64_t first, cut; /* coordinates that are not there, at both ends */
};

static int64_t row_stride(const job &j)
{
    return j.points_first ? 1 : j.d + j.pad;
}

static int64_t col_stride(const job &j)
{
    return j.points_first ? j.n + j.pad : 1;
}

static const char *kind_name(const job &j)
{
    return j.kind == GNOMON_RADEMACHER   ? "sign"
           : j.kind == GNOMON_ACHLIOPTAS ? "tern"
           : j.precision == GNOMON_F16   ? "g16"
                                         : "g32";
}

/* Runs the job; y: rows x points, columns of points first. */
static void project(const gcu_gpu &gpu, const gcu_family &family, const job &j,
                    const gnomon_simple &a, const void *x, size_t size, int64_t n_of, int64_t point,
                    std::vector<float> &y)
{
    const int64_t n = n_of, cols = j.d / j.blocks;
    gcu_task t;
    memset(&t, 0, sizeof t);
    t.a = &a;
    t.row = j.row;
    t.rows = j.rows;
    t.gpu = &gpu;
    float *out, *carry;
    /* r blocks: k_a = a.rows each; y is n x (rows of all blocks) */
    const int64_t all_rows = a.rows * j.blocks;
    MUST(cudaMalloc(&out, (size_t)(n * all_rows) * 4));
    MUST(cudaMemset(out, 0xFF, (size_t)(n * all_rows) * 4));
    MUST(cudaMalloc(&carry, (size_t)(j.rows * n * j.blocks) * 4));
    MUST(cudaMemset(carry, 0xFF, (size_t)(j.rows * n * j.blocks) * 4));
    t.out.y = out;
    t.out.dtype = GNOMON_F32;
    t.out.row_stride = all_rows;
    t.out.col_stride = 1;
    /* blocks before and after these */
    const int64_t others = j.blocks > 1 ? 2 : 0;
    t.out.k = all_rows + others * a.rows;
    t.out.r = j.blocks + others;
    t.out.block = others / 2;
    t.out.row = t.out.block * a.rows;
    t.out.rows = all_rows;
    t.out.factor_most = t.out.factor_least = 1.0;
    t.out.carry = carry;
    const int64_t unit = family.granule(&a), units = (cols + unit - 1) / unit;
    const int64_t turn = (units + j.pieces - 1) / j.pieces;
    void *work = nullptr;
    size_t have = 0;
    for (int64_t u = 0; u < units; u += turn) {
        const int64_t from = u * unit, to = (u + turn) * unit < cols ? (u + turn) * unit : cols;
        t.col = j.col + from;
        t.x.data = (const char *)x + (size_t)(point * row_stride(j) + from * col_stride(j)) * size;
        t.x.dtype = j.dtype;
        t.x.row_stride = row_stride(j);
        t.x.col_stride = col_stride(j);
        t.x.block_stride = cols * col_stride(j);
        t.x.n = n;
        t.x.blocks = j.blocks;
        t.x.block_cols = to - from;
        t.x.first = j.first > from ? j.first - from : 0;
        t.x.end = j.d - j.cut - from < j.blocks * (to - from) ? j.d - j.cut - from
                                                              : j.blocks * (to - from);
        if (t.x.end < t.x.first) t.x.end = t.x.first;
        t.out.begins = u == 0;
        t.out.finishes = to == cols;
        char why[200] = "";
        if (!family.supports(&t, why, sizeof why)) {
            printf("%s declined: %s\n", family.name, why);
            exit(1);
        }
        t.work_bytes =
            j.work ? (j.work == 1 ? family.least_work(&t) : j.work) : family.best_work(&t);
        if (t.work_bytes > have) {
            MUST(cudaDeviceSynchronize());
            cudaFree(work);
            MUST(cudaMalloc(&work, t.work_bytes));
            have = t.work_bytes;
        }
        MUST(cudaMemset(work, 0xFF, t.work_bytes));
        t.work = work;
        MUST(family.run(&t));
    }
    MUST(cudaDeviceSynchronize());
    y.resize((size_t)(n * all_rows));
    MUST(cudaMemcpy(y.data(), out, y.size() * 4, cudaMemcpyDeviceToHost));
    cudaFree(out);
    cudaFree(carry);
    cudaFree(work);
}

template <typename T> static int check(const gcu_gpu &gpu, const gcu_family &family, const job &j)
{
    T *memory;
    const int64_t count = (j.points_first ? j.d : j.n) * (row_stride(j) + col_stride(j) - 1);
    MUST(cudaMalloc(&memory, (size_t)(j.pad + count) * sizeof(T)));
    fill<T><<<1024, 256>>>(memory, j.pad + count, j.shape, (uint32_t)(j.d + j.n));
    T *x = memory + j.pad;
    gnomon_simple a;
    memset(&a, 0, sizeof a);
    a.kind = j.kind;
    a.precision = j.precision;
    a.key0 = 0x12345678u;
    a.key1 = 0x9ABCDEF0u;
    a.rows = j.k;
    a.cols = j.col + j.d / j.blocks;
    const int64_t cols = j.d / j.blocks, points = j.n * j.blocks;
    gcu_points px = {x,   j.dtype,  row_stride(j), col_stride(j), col_stride(j) * cols,
                     j.n, j.blocks, cols,          j.first,       j.d - j.cut};
    const int64_t every = j.rows > 256 ? j.rows / 256 : 1, checked = (j.rows + every - 1) / every;
    double *ref, *norm;
    MUST(cudaMalloc(&ref, (size_t)(checked * points) * 8));
    MUST(cudaMalloc(&norm, (size_t)(checked * points) * 8));
    reference<T><<<dim3((unsigned)checked, (unsigned)((points + 7) / 8)), 256>>>(
        a, gpu.gaussian16, j.row, every, j.col, px, ref, norm);
    MUST(cudaGetLastError());
    std::vector<double> r((size_t)(checked * points)), s(r.size());
    MUST(cudaMemcpy(r.data(), ref, r.size() * 8, cudaMemcpyDeviceToHost));
    MUST(cudaMemcpy(s.data(), norm, s.size() * 8, cudaMemcpyDeviceToHost));
    std::vector<float> y, z;
    project(gpu, family, j, a, x, sizeof(T), j.n, 0, y);
    const int64_t all_rows = j.k * j.blocks;
    double most = 0, sum = 0, size = 0;
    int64_t bad = 0, unwritten = 0;
    for (int64_t c = 0; c < checked; c++)
        for (int64_t v = 0; v < points; v++) {
            const int64_t i = j.row + c * every;
            const double got = y[(size_t)(v % j.n * all_rows + v / j.n * j.k + i)];
            const double want = r[(size_t)(c * points + v)],
                         scale = sqrt(s[(size_t)(c * points + v)]);
            const double e = fabs(got - want);
            if (!(e == e)) unwritten++;
            if (scale > 0 && e / scale > most) most = e / scale;
            if (!(e <= 3e-6 * scale)) bad++;
            sum += e * e;
            size += want * want;
        }
    /* the bits must depend neither on the number of points nor on pieces and work memory */
    int64_t differ = 0;
    if (j.n > 1) {
        const int64_t half = j.n / 3 + 1, from = j.n - half;
        project(gpu, family, j, a, x, sizeof(T), half, from, z);
        for (int64_t p = 0; p < half; p++)
            for (int64_t i = 0; i < all_rows; i++)
                differ += memcmp(&z[(size_t)(p * all_rows + i)],
                                 &y[(size_t)((from + p) * all_rows + i)], 4) != 0;
    }
    job other = j;
    other.work = 1;
    other.pieces = 3;
    project(gpu, family, other, a, x, sizeof(T), j.n, 0, z);
    int64_t differ2 = memcmp(z.data(), y.data(), y.size() * 4) != 0;
    const bool ok = bad == 0 && differ == 0 && differ2 == 0;
    printf(
        "%s %s, %-4s type %d k %lld rows %lld+%lld n %lld r %d D %lld in %d %s: rms %.1e max %.1e "
        "bad %lld nan %lld other bits %lld %lld\n",
        ok ? "ok  " : "FAIL", family.name, kind_name(j), (int)j.dtype, (long long)j.k,
        (long long)j.row, (long long)j.rows, (long long)j.n, j.blocks, (long long)j.d, j.shape,
        j.points_first ? "col" : "row", sqrt(sum / (size > 0 ? size : 1)), most, (long long)bad,
        (long long)unwritten, (long long)differ, (long long)differ2);
    cudaFree(memory);
    cudaFree(ref);
    cudaFree(norm);
    return !ok;
}

static int check_one(const gcu_gpu &gpu, const gcu_family &family, const job &j)
{
    switch (j.dtype) {
    case GNOMON_F32:
        return check<float>(gpu, family, j);
    case GNOMON_F16:
        return check<__half>(gpu, family, j);
    case GNOMON_BF16:
        return check<__nv_bfloat16>(gpu, family, j);
    case GNOMON_I8:
        return check<int8_t>(gpu, family, j);
    default:
        return check<uint16_t>(gpu, family, j);
    }
}

/* gcu_radius beside the correctly rounded root, all 2^31 arguments */
static __global__ void compare_radii(unsigned long long *differ)
{
    unsigned long long mine = 0;
    for (uint64_t h = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; h < (uint64_t)1 << 31;
         h += (uint64_t)gridDim.x * blockDim.x)
        mine += __float_as_uint(gcu_radius((uint32_t)h << 1 | (uint32_t)(h & 1))) !=
                __float_as_uint(__fsqrt_rn(__fmul_rn(2.0f, gcu_neglog((uint32_t)h))));
    if (mine) atomicAdd(differ, mine);
}

static int check_radii(void)
{
    unsigned long long *differ, count = 0;
    MUST(cudaMalloc(&differ, sizeof *differ));
    MUST(cudaMemset(differ, 0, sizeof *differ));
    compare_radii<<<1024, 256>>>(differ);
    MUST(cudaGetLastError());
    MUST(cudaMemcpy(&count, differ, sizeof count, cudaMemcpyDeviceToHost));
    cudaFree(differ);
    printf("%s radii of gaussian: %llu of 2^31 differ\n", count ? "FAIL" : "ok  ", count);
    return count != 0;
}

int main(void)
{
    gcu_gpu gpu;
    char why[256];
    if (gcu_gpu_open(0, &gpu, why, sizeof why)) {
        printf("%s\n", why);
        return 77; /* no GPU */
    }
    printf("%s, path %d\n", why, gpu.major);
    const gnomon_dtype P32 = GNOMON_F32, P16 = GNOMON_F16;
    const gnomon_kind S = GNOMON_RADEMACHER, T = GNOMON_ACHLIOPTAS, G = GNOMON_GAUSSIAN;
    const job many_rows[] = {
        {S, P32, GNOMON_F32, 512, 32, 1024, 0, 512, 1, NORMAL, true, 0, 1, 0},
        {S, P32, GNOMON_F32, 512, 32, 50000, 0, 512, 1, UNIFORM, true, 0, 1, 0},
        {S, P32, GNOMON_F32, 1000, 8, 40000, 0, 1000, 1, NORMAL, false, 0, 1, 0},
        {S, P32, GNOMON_F32, 300, 13, 12345, 101, 170, 1, HUGE_RANGE, false, 0, 1, 0},
        {S, P32, GNOMON_F32, 300, 70, 12345, 0, 300, 1, TINY, true, 0, 1, 0},
        {S, P32, GNOMON_F32, 128, 9, 40000, 0, 128, 8, NORMAL, false, 0, 1, 0},
        {S, P32, GNOMON_F32, 128, 32, 40000, 0, 128, 1, SPARSE, false, 0, 1, 0},
        {S, P32, GNOMON_F32, 128, 3, 10000, 0, 128, 1, NORMAL, false, 0, 1, (int64_t)1 << 40},
        {S, P32, GNOMON_F32, 5, 1, 1, 0, 5, 1, NORMAL, true, 0, 1, 0},
        {S, P32, GNOMON_F32, 130, 33, 129, 2, 127, 1, HUGE_RANGE, true, 0, 1, 0},
        {S, P32, GNOMON_F32, 400, 17, 300001, 0, 400, 1, UNIFORM, true, 0, 1, (int64_t)1 << 44},
        {S, P32, GNOMON_F32, 2000, 4, 70000, 0, 2000, 1, SPARSE, false, 0, 1, 0},
        {S, P32, GNOMON_F16, 512, 32, 20000, 0, 512, 1, NORMAL, true, 0, 1, 0},
        {S, P32, GNOMON_BF16, 512, 16, 20000, 0, 512, 1, HUGE_RANGE, true, 0, 1, 0},
        {S, P32, GNOMON_I8, 512, 5, 20000, 0, 512, 1, UNIFORM, false, 0, 1, 0},
        {S, P32, GNOMON_U16, 512, 40, 20000, 0, 512, 1, UNIFORM, false, 0, 1, 0},
        {T, P32, GNOMON_F32, 512, 32, 20000, 0, 512, 1, NORMAL, true, 0, 1, 0},
        {T, P32, GNOMON_F16, 512, 32, 20000, 0, 512, 1, NORMAL, true, 0, 1, 0},
        {T, P32, GNOMON_F32, 200, 12, 20000, 0, 200, 1, HUGE_RANGE, false, 0, 1, (int64_t)1 << 36},
        {G, P16, GNOMON_F32, 512, 32, 50000, 0, 512, 1, NORMAL, true, 0, 1, 0},
        {G, P16, GNOMON_F16, 512, 16, 50000, 0, 512, 1, NORMAL, true, 0, 1, 0},
        {G, P16, GNOMON_F32, 200, 7, 20000, 0, 200, 1, HUGE_RANGE, false, 0, 1, (int64_t)1 << 36},
        {G, P32, GNOMON_F32, 512, 32, 50000, 0, 512, 1, NORMAL, true, 0, 1, 0},
        {G, P32, GNOMON_F16, 512, 32, 50000, 0, 512, 1, UNIFORM, true, 0, 1, 0},
        {G, P32, GNOMON_F32, 200, 7, 20000, 0, 200, 1, HUGE_RANGE, false, 0, 1, (int64_t)1 << 36},
    };
    const gnomon_dtype F = GNOMON_F32;
    const job many_points[] = {
        {S, P32, F, 32, 256, 1024, 0, 32, 1, NORMAL, false, 0, 1, 0},
        {S, P32, F, 8, 40, 40000, 0, 8, 5, UNIFORM, false, 0, 1, 0},
        {S, P32, F, 66, 300, 1003, 5, 61, 1, NORMAL, false, 0, 1, 8192},
        {S, P32, F, 128, 257, 12388, 0, 128, 1, NORMAL, false, 0, 1, 0},
        {S, P32, F, 100, 65, 12388, 33, 50, 1, NORMAL, true, 0, 1, 40960},
        {S, P32, F, 24, 33, 3640, 0, 24, 7, NORMAL, false, 0, 1, 0, 0, 4, 11},
        {S, P32, F, 24, 36, 3640, 0, 24, 7, NORMAL, true, 0, 1, 0, 0, 3, 11},
        {S, P32, F, 16, 50, 9000, 0, 16, 1, NORMAL, false, 0, 1, 0, 3, 5, 4097},
        {S, P32, F, 64, 1001, 1000, 0, 64, 1, NORMAL, true, 0, 1, 0},
        {S, P32, F, 20, 1000, 300, 0, 20, 1, HUGE_RANGE, false, 0, 1, 0, 1},
        {S, P32, F, 40, 1000, 300, 0, 40, 1, HUGE_RANGE, true, 0, 1, 0, 1},
        {S, P32, F, 20, 1000, 300, 0, 20, 1, TINY, false, 0, 1, 0},
        {S, P32, F, 20, 64, 20000, 0, 20, 1, SPARSE, true, 0, 1, 0},
        {S, P32, GNOMON_F16, 32, 208, 1008, 0, 32, 1, NORMAL, false, 0, 1, 0},
        {S, P32, GNOMON_F16, 128, 208, 1008, 0, 128, 1, NORMAL, true, 0, 1, 0, 1},
        {S, P32, GNOMON_BF16, 32, 208, 1008, 0, 32, 1, HUGE_RANGE, true, 0, 1, 0},
        {S, P32, GNOMON_BF16, 128, 208, 1008, 0, 128, 1, NORMAL, false, 0, 1, 0, 1},
        {S, P32, GNOMON_I8, 128, 208, 1008, 0, 128, 1, UNIFORM, false, 0, 1, 0},
        {S, P32, GNOMON_I8, 16, 208, 1008, 0, 16, 1, NORMAL, true, 0, 1, 0, 1},
        {S, P32, GNOMON_U16, 128, 208, 1008, 0, 128, 1, UNIFORM, false, 0, 1, 0, 1},
        {S, P32, GNOMON_U16, 32, 208, 1008, 0, 32, 1, UNIFORM, true, 0, 1, 0},
        {T, P32, F, 128, 300, 3000, 0, 128, 1, NORMAL, false, 0, 1, 0},
        {T, P32, F, 19, 300, 9000, 3, 16, 3, NORMAL, true, 0, 1, 4096},
        {T, P32, F, 60, 200, 9000, 0, 60, 1, HUGE_RANGE, false, 0, 1, 0},
        {G, P16, F, 32, 300, 3000, 0, 32, 1, NORMAL, false, 0, 1, 0},
        {G, P16, F, 32, 1000, 40000, 0, 32, 1, NORMAL, false, 0, 1, 0},
        {G, P16, GNOMON_F16, 30, 300, 9000, 0, 30, 1, NORMAL, true, 0, 1, 0},
        {G, P16, F, 9, 300, 3000, 0, 9, 1, HUGE_RANGE, true, 0, 1, 8192},
    };
    const job passes[] = {
        {S, P32, F, 300, 200, 9000, 0, 300, 1, NORMAL, false, 0, 1, 0},
        {T, P32, GNOMON_F16, 520, 150, 1000, 3, 510, 1, NORMAL, true, 0, 1, 0, 1},
        {S, P32, F, 140, 30, 20000, 0, 140, 4, HUGE_RANGE, true, 0, 1, 0},
    };
    const char *word = getenv("GNOMON_TEST_REDUCED");
    const int every = word && *word && *word != '0' ? 4 : 1;
    int failed = every == 1 ? check_radii() : 0, at = 0;
    for (const job &j : many_rows)
        failed += at++ % every == 0 ? check_one(gpu, gcu_dense_rows, j) : 0;
    for (const job &j : many_points)
        failed += at++ % every == 0 ? check_one(gpu, gcu_dense_points, j) : 0;
    for (const job &j : passes) /* elsewhere the other family's */
        failed += gpu.major == 9 && at++ % every == 0 ? check_one(gpu, gcu_dense_points, j) : 0;
    printf("%d failed\n", failed);
    return failed != 0;
}

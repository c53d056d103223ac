/* The first keys of search/small_batch.h by tensor cores, for some queries at a time.
 *
 * Points and queries, for L2 less a centre that any 16 rows tell of, are rounded to TF32; a warp
 * multiplies 16 rows, straight from memory, with up to 128 queries, which lie in shared memory. A
 * pair goes on when its product reaches u(row) w(query) + v(query). Only then is its key taken in
 * fp64, by a kernel of its own, so that the pass over all rows never waits for that.
 *
 * The floor, for 100 queries and a million rows of 128 floats on an H200: 512 MB are read, 0.115
 * ms; 2.7e10 flops in TF32, 0.09 ms at what mma.sync reaches; queries from shared memory, a tile of
 * 16 rows 53 KB, 0.11 ms at 128 bytes a cycle. The three go side by side.
 *
 * Errors, X and Q being a row and a query less the centre, in fp32: each is within 2^-24 of the
 * true difference, by coordinate. TF32 keeps 11 bits, so that the product of the rounded vectors is
 * within (2^-10 + 2^-22) |X||Q| of theirs, and the sums within gamma |X||Q| of that
 * (filter/filter.h), 2 |X||Q| <= |X|^2 + |Q|^2. Squares are summed in fp32. 'share' is all of that,
 * of |X|^2 + |Q|^2 for L2 and of |x||q| for products; 'least' what underflow may take. Where fp32
 * can't tell, u or v is NaN, and such pairs go on. */
#include "cuda/runtime/mma.cuh"
#include "cuda/search/small_batch.cuh"

enum {
    ROWS = 16,  /* of a warp at a time */
    CHUNK = 64, /* coordinates of them on their way */
    STEPS = CHUNK / 16,
    GAP = 16,    /* numbers between queries in shared memory, so that no bank is asked twice */
    CENTRE = 16, /* rows that tell of it */
    MOST_SHARED = 160 << 10, /* bytes, where a GPU has so many */
    VERIFIERS = 256,         /* threads */
    VERIFYING = 8            /* blocks of them for a query */
};

/* Tiles of eight queries, and how many threads share them. */
template <int TILES> struct shape_of {
    enum { QUERIES = 8 * TILES, THREADS = TILES < 8 ? 256 : 384, BLOCKS = TILES < 8 ? 2 : 1 };
};

/* Four coordinates of a row, as they lie. */
template <typename T> struct four_of;
template <> struct four_of<float> {
    float4 data;
    __device__ __forceinline__ void load(const float *from)
    {
        data = __ldg(reinterpret_cast<const float4 *>(from));
    }
    __device__ __forceinline__ void set(int i, float x)
    {
        (i == 0 ? data.x : i == 1 ? data.y : i == 2 ? data.z : data.w) = x;
    }
    __device__ __forceinline__ float4 get() const
    {
        return data;
    }
};
template <> struct four_of<__half> {
    uint2 data;
    __device__ __forceinline__ void load(const __half *from)
    {
        data = __ldg(reinterpret_cast<const uint2 *>(from));
    }
    __device__ __forceinline__ void set(int i, __half x)
    {
        uint32_t &word = i < 2 ? data.x : data.y;
        word |= (uint32_t)__half_as_ushort(x) << i % 2 * 16;
    }
    __device__ __forceinline__ float4 get() const
    {
        const float2 low = __half22float2(*reinterpret_cast<const __half2 *>(&data.x));
        const float2 high = __half22float2(*reinterpret_cast<const __half2 *>(&data.y));
        return {low.x, low.y, high.x, high.y};
    }
};

/* To 11 bits, ties away from zero. */
__device__ __forceinline__ uint32_t to_tf32(float x)
{
    return (__float_as_uint(x) + 0x1000u) & ~0x1FFFu;
}

/* What a tile's products are held to: see scores. */
struct query_words {
    float w, v, o;
};

/* Coordinates [4 t, 4 t + 4) of each 16 of a chunk, t a lane's number of four, of a row. */
template <typename T>
__device__ __forceinline__ void fetch(const batch_call &c, int64_t row, int chunk,
                                      four_of<T> (*x)[2], int r)
{
    const int lane = threadIdx.x % 4;
    const T *from = static_cast<const T *>(c.k.base.data) + row * c.k.base.row_stride;
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
        const int64_t col = (int64_t)chunk * CHUNK + s * 16 + lane * 4;
        x[s][r].data = {};
        if (c.vectors && col + 4 <= c.cols) {
            x[s][r].load(from + col);
        } else {
#pragma unroll
            for (int e = 0; e < 4; e++)
                if (col + e < c.cols) x[s][r].set(e, from[col + e]);
        }
    }
}

/* The queries in shared memory, rounded, the centre, and what products are held to. */
template <typename T, int TILES, bool SAMPLE>
__device__ void set_up(const batch_call &c, float *queries, float *centre, query_words *words)
{
    using shape = shape_of<TILES>;
    const gcu_search_view &from = c.k.queries;
    const bool first = SAMPLE && blockIdx.x == 0, products = c.k.metric != GNOMON_L2;
    const int64_t stride = c.padded + GAP;
    __shared__ unsigned long long fault;
    if (threadIdx.x == 0) fault = ~0ull;
    const int64_t apart = c.rows / CENTRE;
    for (int64_t j = threadIdx.x; j < c.padded; j += shape::THREADS) {
        float sum = 0;
        if (!products && j < c.cols) {
            const T *x = static_cast<const T *>(c.k.base.data) + j;
            float some[CENTRE];
#pragma unroll
            for (int i = 0; i < CENTRE; i++)
                some[i] = batch_float(x[i * apart * c.k.base.row_stride]);
#pragma unroll
            for (int i = 0; i < CENTRE; i++)
                sum = fmaf(some[i], 1.0f / CENTRE, sum);
        }
        centre[j] = sum;
    }
    __syncthreads();
#pragma unroll 4
    for (int64_t e = threadIdx.x; e < shape::QUERIES * c.padded; e += shape::THREADS) {
        const int n = (int)(e / c.padded);
        const int64_t j = e % c.padded, query = c.query + n;
        float v = 0;
        if (n < c.queries && j < c.cols)
            v = batch_coordinate(from.data, from.dtype,
                                 query * from.row_stride + j * from.col_stride);
        if (first && n < c.queries) {
            c.f32[query * c.padded + j] = v;
            if (!(fabsf(v) < INFINITY)) atomicMin(&fault, (unsigned long long)(query * c.cols + j));
        }
        queries[n * stride + j] = v - centre[j];
    }
    __syncthreads();
    if (first && products) { /* as norms_kernel has it */
        for (int n = threadIdx.x / BATCH_CHAINS; n < shape::QUERIES;
             n += shape::THREADS / BATCH_CHAINS) {
            double chain = 0;
            for (int64_t j = threadIdx.x % BATCH_CHAINS; j < c.cols; j += BATCH_CHAINS) {
                const double v = (double)queries[n * stride + j];
                chain = fma(v, v, chain);
            }
            const double norm = sqrt(batch_join_chains(chain, batch_half_mask()));
            if (threadIdx.x % BATCH_CHAINS == 0 && n < c.queries)
                c.inverse[c.query + n] = norm < 0x1p-1000 ? 0 : __ddiv_rn(1, norm);
        }
    }
    if (first) {
        for (int n = threadIdx.x; n < c.queries; n += shape::THREADS)
            batch_begin_query(c, c.query + n);
        if (threadIdx.x == 0) batch_begin_words(c, fault);
        __syncthreads();
    }
    if (!SAMPLE) batch_await_predecessor();
    /* a query a warp: its norm, and rounding */
    for (int n = threadIdx.x / 32; n < shape::QUERIES; n += shape::THREADS / 32) {
        float squares = 0;
        for (int64_t j = threadIdx.x % 32; j < c.padded; j += 32) {
            const float v = queries[n * stride + j];
            squares = fmaf(v, v, squares);
            queries[n * stride + j] = __uint_as_float(to_tf32(v));
        }
#pragma unroll
        for (int half = 16; half > 0; half /= 2)
            squares += __shfl_xor_sync(~0u, squares, half);
        if (threadIdx.x % 32 > 0) continue;
        /* of IP at least the true one; a cosine may err to either side, by the share at most */
        const float norm = c.k.metric == GNOMON_COSINE ? sqrtf(fmaxf(squares, c.least))
                                                       : sqrtf(squares * (1 + c.share) + c.least);
        query_words q;
        if (SAMPLE) {
            if (c.k.metric == GNOMON_L2)
                q = {1, 1, (1 + c.share) * squares + c.least};
            else if (c.k.metric == GNOMON_IP)
                q = {c.share * norm, 1, c.least};
            else
                q = {0, 1 / norm, 1 + c.share};
            const bool told =
                c.k.metric == GNOMON_COSINE ? squares > 1e-30f && squares < 1e30f : squares < 1e36f;
            if (!told) q.o = INFINITY;
        } else {
            const float reach = n < c.queries ? c.reach[c.query + n] : -INFINITY;
            if (c.k.metric == GNOMON_L2)
                q = {1, 0.5f * ((1 - c.share) * squares - reach - c.least), 0};
            else if (c.k.metric == GNOMON_IP)
                q = {-c.share * norm, -reach - c.least, 0};
            else
                q = {(1 - reach - c.share) * norm, -c.least, 0};
            const bool told =
                c.k.metric == GNOMON_COSINE ? squares > 1e-30f && squares < 1e30f : squares < 1e36f;
            if (!told && n < c.queries) q.v = NAN;
        }
        words[n] = q;
    }
    __syncthreads();
}

/* A row's number in scores, from the sum of its squares; NaN where fp32 can't tell. */
__device__ __forceinline__ float row_word(const batch_call &c, float squares)
{
    if (c.k.metric == GNOMON_L2) return squares < 1e36f ? squares : NAN;
    if (c.k.metric == GNOMON_IP)
        return squares < 1e36f ? sqrtf(squares * (1 + c.share) + c.least) : NAN;
    return squares > 1e-30f && squares < 1e30f ? sqrtf(squares) : NAN;
}

/* A lane's pairs whose bit is set: element 4 n + 2 r + x is row 'row' + 8 r, query 8 n + 2 t + x. A
 * query's own row is left out; whether that has NaN, the other queries' pairs with it tell. */
__device__ __noinline__ void collect(const batch_call &c, uint64_t passed, int64_t row)
{
    while (passed) {
        const int e = __ffsll((long long)passed) - 1, r = e / 2 % 2;
        passed &= passed - 1;
        const int n = e / 4 * 8 + (int)threadIdx.x % 4 * 2 + e % 2, query = c.query + n;
        const int64_t at_row = row + 8 * r, id = c.k.first + at_row;
        if (n >= c.queries || at_row >= c.rows) continue;
        if (c.k.exclude >= 0 && id == c.k.exclude + query) continue;
        const unsigned at = atomicAdd(&c.counts[query], 1u);
        if (at < GCU_SMALL_BATCH_ROOM)
            c.found[(int64_t)query * GCU_SMALL_BATCH_ROOM + at].id = at_row;
        else
            c.words->declined = 1;
    }
}

/* Rows are taken by units of 16, one warp each: in a row, or as the sample has them. */
template <typename T, int TILES, bool SAMPLE>
__global__ void __launch_bounds__(shape_of<TILES>::THREADS, shape_of<TILES>::BLOCKS)
    tensor_kernel(const __grid_constant__ batch_call c)
{
    using shape = shape_of<TILES>;
    extern __shared__ float4 shared[];
    const int64_t stride = c.padded + GAP;
    float *queries = reinterpret_cast<float *>(shared);
    float *centre = queries + shape::QUERIES * stride;
    query_words *words = reinterpret_cast<query_words *>(centre + c.padded);
#if __CUDA_ARCH__ >= 900
    if (SAMPLE) cudaTriggerProgrammaticLaunchCompletion();
#endif
    set_up<T, TILES, SAMPLE>(c, queries, centre, words);
    const int lane = threadIdx.x % 4, line = threadIdx.x % 32 / 4;
    const int64_t units = SAMPLE ? c.groups : (c.rows + ROWS - 1) / ROWS;
    const int64_t apart = SAMPLE ? c.groups * c.spacing : 1, every = SAMPLE ? c.spacing : ROWS;
    const int64_t jump = (int64_t)gridDim.x * (shape::THREADS / 32);
    const int64_t rounds = SAMPLE ? c.group_rows / ROWS : 1;
    const int chunks = (int)(c.padded / CHUNK);
    const volatile unsigned *declined = &c.words->declined;
    int64_t unit = (int64_t)blockIdx.x * (shape::THREADS / 32) + threadIdx.x / 32, round = 0;
    four_of<T> x[STEPS][2];
    int64_t row = unit * every + line * apart;
    if (unit < units)
#pragma unroll
        for (int r = 0; r < 2; r++)
            fetch<T>(c, min(row + 8 * r * apart, c.rows - 1), 0, x, r);
#pragma unroll 1
    while (unit < units) {
        float sum[TILES][4] = {}, squares[2] = {};
        const unsigned over = SAMPLE ? 0 : *declined;
        const int64_t here = row, this_unit = unit, this_round = round;
#pragma unroll 1
        for (int chunk = 0; chunk < chunks; chunk++) {
            uint32_t p[STEPS][2][4];
#pragma unroll
            for (int s = 0; s < STEPS; s++) {
                const float4 middle =
                    *reinterpret_cast<const float4 *>(centre + chunk * CHUNK + s * 16 + lane * 4);
#pragma unroll
                for (int r = 0; r < 2; r++) {
                    float4 v = x[s][r].get();
                    v.x -= middle.x, v.y -= middle.y, v.z -= middle.z, v.w -= middle.w;
                    squares[r] = fmaf(v.x, v.x, squares[r]);
                    squares[r] = fmaf(v.y, v.y, squares[r]);
                    squares[r] = fmaf(v.z, v.z, squares[r]);
                    squares[r] = fmaf(v.w, v.w, squares[r]);
                    p[s][r][0] = to_tf32(v.x), p[s][r][1] = to_tf32(v.y);
                    p[s][r][2] = to_tf32(v.z), p[s][r][3] = to_tf32(v.w);
                }
            }
            /* what comes next is on its way meanwhile */
            int next = chunk + 1;
            if (next == chunks) {
                next = 0;
                if (++round == rounds) {
                    round = 0;
                    unit += jump;
                }
                row = unit * every + (round * ROWS + line) * apart;
            }
            if (unit < units)
#pragma unroll
                for (int r = 0; r < 2; r++)
                    fetch<T>(c, min(row + 8 * r * apart, c.rows - 1), next, x, r);
            const float *y = queries + line * stride + chunk * CHUNK + lane * 4;
#pragma unroll
            for (int s = 0; s < STEPS; s++)
#pragma unroll
                for (int n = 0; n < TILES; n++) {
                    const uint4 q = *reinterpret_cast<const uint4 *>(y + n * 8 * stride + s * 16);
                    const uint32_t low[4] = {p[s][0][0], p[s][1][0], p[s][0][1], p[s][1][1]};
                    const uint32_t high[4] = {p[s][0][2], p[s][1][2], p[s][0][3], p[s][1][3]};
                    gcu_mma_tf32(sum[n], low, q.x, q.y);
                    gcu_mma_tf32(sum[n], high, q.z, q.w);
                }
        }
        float u[2];
#pragma unroll
        for (int r = 0; r < 2; r++) {
            squares[r] += __shfl_xor_sync(~0u, squares[r], 1);
            squares[r] += __shfl_xor_sync(~0u, squares[r], 2);
            u[r] = row_word(c, squares[r]);
        }
        if (SAMPLE) {
            /* the least of the keys' upper bounds: NaN is passed over */
            float of_product = 1, of_row[2], factor[2];
            if (c.k.metric == GNOMON_L2) of_product = 2;
#pragma unroll
            for (int r = 0; r < 2; r++) {
                of_row[r] = c.k.metric == GNOMON_L2 ? u[r] * (1 + c.share) : u[r];
                factor[r] = c.k.metric == GNOMON_COSINE ? -1 / u[r] : -of_product;
            }
#pragma unroll
            for (int n = 0; n < TILES; n++)
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    const query_words q = words[8 * n + 2 * lane + e];
                    float least = fminf(fmaf(sum[n][e], factor[0] * q.v, of_row[0] * q.w),
                                        fmaf(sum[n][e + 2], factor[1] * q.v, of_row[1] * q.w));
#pragma unroll
                    for (int half = 4; half < 32; half *= 2)
                        least = fminf(least, __shfl_xor_sync(~0u, least, half));
                    least += q.o;
                    if (!(least < INFINITY)) least = INFINITY;
                    const int query = 8 * n + 2 * lane + e;
                    if (line > 0 || query >= c.queries) continue;
                    float *to =
                        c.minima + (int64_t)(c.query + query) * BATCH_MOST_GROUPS + this_unit;
                    *to = this_round > 0 ? fminf(*to, least) : least;
                }
            continue;
        }
        if (c.k.metric == GNOMON_L2) u[0] *= 0.5f * (1 - c.share), u[1] *= 0.5f * (1 - c.share);
        uint64_t passed = 0;
#pragma unroll
        for (int n = 0; n < TILES; n++) {
            uint32_t some = 0;
#pragma unroll
            for (int e = 0; e < 2; e++) {
                const query_words q = words[8 * n + 2 * lane + e];
#pragma unroll
                for (int r = 0; r < 2; r++)
                    some |= sum[n][2 * r + e] < fmaf(u[r], q.w, q.v) ? 0 : 1u << (2 * r + e);
            }
            passed |= (uint64_t)some << (4 * n);
        }
        if (passed) collect(c, passed, here);
        __syncwarp();
        if (__any_sync(~0u, over)) break;
    }
}

/* Half a warp a pair. */
template <typename T>
__global__ void __launch_bounds__(VERIFIERS) verify_kernel(const __grid_constant__ batch_call c)
{
    const int query = (int)blockIdx.x / VERIFYING;
    batch_await_predecessor();
    const unsigned count = c.counts[query];
    if (c.words->declined || count > GCU_SMALL_BATCH_ROOM) return;
    gnomon_ranked *found = c.found + (int64_t)query * GCU_SMALL_BATCH_ROOM;
    const float *q = c.f32 + query * c.padded;
    constexpr int EACH = VERIFIERS / BATCH_CHAINS;
    for (unsigned at = blockIdx.x % VERIFYING * EACH + threadIdx.x / BATCH_CHAINS; at < count;
         at += VERIFYING * EACH) {
        bool broken;
        const int64_t row = found[at].id;
        const double key = batch_key<T>(c, q, query, row, &broken);
        if (threadIdx.x % BATCH_CHAINS > 0) continue;
        if (broken) c.words->base_fault = 0;
        found[at] = {key, c.k.first + row};
    }
}

/* ---- launches ---- */

static int tiles_of(int64_t queries)
{
    const int sizes[] = {1, 2, 4, 8, 13, 16};
    for (int tiles : sizes)
        if (8 * tiles >= queries) return tiles;
    return 16;
}

static size_t shared_of(int tiles, int64_t padded)
{
    return ((size_t)(8 * tiles) * (size_t)(padded + GAP) + (size_t)padded) * sizeof(float) +
           (size_t)(8 * tiles) * sizeof(query_words);
}

/* Of a block; what is not dynamic takes less than 1 KB. */
static int64_t most_shared_of(const gcu_gpu *gpu)
{
    return gnomon_min((int64_t)gpu->smem_bytes - (1 << 10), (int64_t)MOST_SHARED);
}

int gcu_batch_tensor_queries(int64_t left, int64_t padded, const gcu_gpu *gpu)
{
    int tiles = tiles_of(left);
    while (tiles > 0 && (int64_t)shared_of(tiles, padded) > most_shared_of(gpu))
        tiles = tiles == 13 ? 8 : tiles / 2;
    return tiles * 8;
}

template <typename T, int TILES>
static cudaError_t start(const batch_call &c, bool sample, const gcu_gpu *gpu, bool after,
                         cudaStream_t stream)
{
    using shape = shape_of<TILES>;
    const int64_t units = sample ? c.groups : (c.rows + ROWS - 1) / ROWS;
    const int64_t warps = shape::THREADS / 32;
    int64_t grid = (units + warps - 1) / warps;
    if (!sample) grid = gnomon_min(grid, (int64_t)gpu->sms * shape::BLOCKS);
    if (grid < 1) grid = 1; /* the queries are set up at any rate */
    return batch_launch(sample ? tensor_kernel<T, TILES, true> : tensor_kernel<T, TILES, false>,
                        grid, shape::THREADS, shared_of(TILES, c.padded), most_shared_of(gpu),
                        after, stream, c);
}

template <typename T>
static cudaError_t start_any(const batch_call &c, bool sample, const gcu_gpu *gpu, bool after,
                             cudaStream_t stream)
{
    switch (tiles_of(c.queries)) {
    case 1:
        return start<T, 1>(c, sample, gpu, after, stream);
    case 2:
        return start<T, 2>(c, sample, gpu, after, stream);
    case 4:
        return start<T, 4>(c, sample, gpu, after, stream);
    case 8:
        return start<T, 8>(c, sample, gpu, after, stream);
    case 13:
        return start<T, 13>(c, sample, gpu, after, stream);
    default:
        return start<T, 16>(c, sample, gpu, after, stream);
    }
}

/* The bound with twice what fp32 may lose. */
static batch_call bounded(const batch_call &call)
{
    batch_call c = call;
    const double d = (double)c.padded;
    const double products = 0x1p-10 * (1 + 0x1p-9) + 1.25 * (d + 64) * 0x1p-23;
    c.share = (float)(1.01 * (products + (d / 4 + 32) * 0x1p-23));
    c.least = (float)(d * 0x1p-120);
    return c;
}

cudaError_t gcu_batch_tensor_sample(const batch_call &call, const gcu_gpu *gpu, bool after,
                                    cudaStream_t stream)
{
    const batch_call c = bounded(call);
    return c.k.base.dtype == GNOMON_F16 ? start_any<__half>(c, true, gpu, after, stream)
                                        : start_any<float>(c, true, gpu, after, stream);
}

cudaError_t gcu_batch_tensor_scan(const batch_call &call, const gcu_gpu *gpu, bool after,
                                  cudaStream_t stream)
{
    const batch_call c = bounded(call);
    return c.k.base.dtype == GNOMON_F16 ? start_any<__half>(c, false, gpu, after, stream)
                                        : start_any<float>(c, false, gpu, after, stream);
}

cudaError_t gcu_batch_tensor_verify(const batch_call &c, int64_t queries, bool after,
                                    cudaStream_t stream)
{
    const auto kernel = c.k.base.dtype == GNOMON_F16 ? verify_kernel<__half> : verify_kernel<float>;
    return batch_launch(kernel, queries * VERIFYING, VERIFIERS, 0, 0, after, stream, c);
}

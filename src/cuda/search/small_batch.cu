/* A few queries in one read of the base: see search/small_batch.h. */
#include "cuda/search/small_batch.cuh"

enum {
    THREADS = 256,
    WARPS = THREADS / 32,
    LANES = 8,        /* that share a row */
    ROWS = 4,         /* of a lane at a time */
    STEP = ROWS * 4,  /* rows of a warp at a time */
    BLOCKS = 2,       /* a multiprocessor */
    ALIGN = 64,       /* of a query's coordinates */
    SAMPLE = 1 << 15, /* rows, at least */
    WHOLE = 2048,     /* up to so many rows there is no sample: all keys are taken in fp64 */
    EXPECTED = 1024,  /* rows that pass, at most as far as the sample's size determines it */
    SORTED = 4096,    /* points that are sorted in shared memory */
    SORTERS = 512,    /* threads of what sorts */
    TENSORS_FROM = 5  /* queries */
};

static const int64_t most_shared = 96 << 10; /* bytes of queries in shared memory */

/* Sixteen bytes of a row. */
template <typename T> struct piece_of;
template <> struct piece_of<float> {
    enum { COUNT = 4 };
    float4 data;
    __device__ __forceinline__ float at(int i) const
    {
        return i == 0 ? data.x : i == 1 ? data.y : i == 2 ? data.z : data.w;
    }
    __device__ __forceinline__ void load(const float *from)
    {
        data = __ldg(reinterpret_cast<const float4 *>(from));
    }
};
template <> struct piece_of<__half> {
    enum { COUNT = 8 };
    uint4 data;
    __device__ __forceinline__ float at(int i) const
    {
        const uint32_t word = i < 2 ? data.x : i < 4 ? data.y : i < 6 ? data.z : data.w;
        const __half2 both = *reinterpret_cast<const __half2 *>(&word);
        return i % 2 ? __high2float(both) : __low2float(both);
    }
    __device__ __forceinline__ void load(const __half *from)
    {
        data = __ldg(reinterpret_cast<const uint4 *>(from));
    }
};

/* ---- keys in fp32 ---- */

/* A lane's pieces of ROWS rows, met with NQ queries. y: the queries' same coordinates. */
template <typename T, bool PRODUCTS, int NQ>
__device__ __forceinline__ void accumulate(const piece_of<T> *x, const float *y, int64_t padded,
                                           float (*sum)[NQ], float *squares)
{
    constexpr int COUNT = piece_of<T>::COUNT;
#pragma unroll
    for (int from = 0; from < COUNT; from += 4) {
        float v[ROWS][4];
#pragma unroll
        for (int r = 0; r < ROWS; r++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                v[r][e] = x[r].at(from + e);
                if (PRODUCTS) squares[r] = fmaf(v[r][e], v[r][e], squares[r]);
            }
#pragma unroll
        for (int n = 0; n < NQ; n++) {
            const float4 q = *reinterpret_cast<const float4 *>(y + n * padded + from);
            const float w[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
            for (int r = 0; r < ROWS; r++)
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    const float d = w[e] - v[r][e];
                    sum[r][n] = PRODUCTS ? fmaf(w[e], v[r][e], sum[r][n]) : fmaf(d, d, sum[r][n]);
                }
        }
    }
}

/* Sums of eight lanes for NQ queries: KEEP of them stay in a lane, those of query_of on. */
template <int NQ> struct kept {
    enum { COUNT = NQ < LANES ? 1 : NQ / LANES, SHARING = NQ < LANES ? LANES / NQ : 1 };
    /* 'lane' of eight */
    static __device__ __forceinline__ int query(int lane)
    {
        return lane / SHARING * COUNT;
    }
    /* whether the lane is the first that has them */
    static __device__ __forceinline__ bool owns(int lane)
    {
        return lane % SHARING == 0;
    }
};

/* SOME sums over runs of 2 * HALF lanes: where there are several, half of them go to either side.
 */
template <int SOME, int HALF> __device__ __forceinline__ void join_lanes(float *sum)
{
    constexpr int LEFT = SOME > 1 ? SOME / 2 : 1;
    const bool upper = (threadIdx.x & HALF) != 0;
#pragma unroll
    for (int n = 0; n < LEFT; n++) {
        const float low = sum[n], high = SOME > 1 ? sum[n + LEFT] : low;
        sum[n] = (upper ? high : low) + __shfl_xor_sync(~0u, upper ? low : high, HALF);
    }
    if constexpr (HALF > 1) join_lanes<LEFT, HALF / 2>(sum);
}

/* Rows first + (r * 4 + lane / 8) * apart of a warp, r < ROWS; beyond the last row that one again.
 * sum[r]: what the lane keeps. */
template <typename T, bool PRODUCTS, int NQ>
__device__ __forceinline__ void add_rows(const batch_call &c, const float *queries, int64_t first,
                                         int64_t apart, float (*sum)[NQ], float *squares)
{
    constexpr int COUNT = piece_of<T>::COUNT, CHUNK = LANES * COUNT;
    constexpr int AHEAD = (NQ == 1 ? 16 : NQ <= 8 ? 8 : 4) / COUNT;
    const int lane = threadIdx.x % LANES, line = threadIdx.x % 32 / LANES;
    const T *x[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const int64_t row = min(first + (r * 4 + line) * apart, c.rows - 1);
        x[r] = static_cast<const T *>(c.k.base.data) + row * c.k.base.row_stride + lane * COUNT;
        squares[r] = 0;
#pragma unroll
        for (int n = 0; n < NQ; n++)
            sum[r][n] = 0;
    }
    const float *y = queries + lane * COUNT;
    const int chunks = (int)((c.cols + CHUNK - 1) / CHUNK);
    const int whole = c.vectors ? (int)(c.cols / CHUNK) : 0;
    int chunk = 0;
#pragma unroll 1
    for (; chunk + AHEAD <= whole; chunk += AHEAD) {
        piece_of<T> some[AHEAD][ROWS];
#pragma unroll
        for (int a = 0; a < AHEAD; a++)
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                some[a][r].load(x[r] + (int64_t)(chunk + a) * CHUNK);
#pragma unroll
        for (int a = 0; a < AHEAD; a++)
            accumulate<T, PRODUCTS, NQ>(some[a], y + (chunk + a) * CHUNK, c.padded, sum, squares);
    }
#pragma unroll 1
    for (; chunk < chunks; chunk++) {
        union {
            piece_of<T> piece;
            T each[COUNT];
        } some;
        piece_of<T> all[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            some.piece.data = {};
            if (chunk < whole) {
                some.piece.load(x[r] + (int64_t)chunk * CHUNK);
            } else {
#pragma unroll
                for (int e = 0; e < COUNT; e++)
                    if (chunk * CHUNK + lane * COUNT + e < c.cols)
                        some.each[e] = x[r][(int64_t)chunk * CHUNK + e];
            }
            all[r] = some.piece;
        }
        accumulate<T, PRODUCTS, NQ>(all, y + chunk * CHUNK, c.padded, sum, squares);
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        join_lanes<NQ, LANES / 2>(sum[r]);
        if (PRODUCTS)
#pragma unroll
            for (int half = LANES / 2; half > 0; half /= 2)
                squares[r] += __shfl_xor_sync(~0u, squares[r], half);
    }
}

/* What a key (of L2: its square) is at least and at most; -inf and inf where fp32 can't tell. */
struct bounds {
    float low, high;
};

template <bool PRODUCTS>
__device__ __forceinline__ bounds bounds_of(const batch_call &c, float sum, float squares,
                                            float norm)
{
    float middle = sum, error;
    bool told;
    if (!PRODUCTS) {
        error = sum * c.share + c.least;
        told = sum < 1e38f;
    } else if (c.k.metric == GNOMON_IP) {
        middle = -sum;
        error = c.share * norm * sqrtf(squares * (1 + c.share) + c.least) + c.least;
        told = squares < 1e36f && error < 1e30f; /* so that the sum has not overflowed */
    } else {
        middle = 1 - sum / (norm * sqrtf(squares));
        error = c.share;
        told = squares > 1e-30f && squares < 1e30f && norm > 1e-15f && norm < 1e15f;
    }
    if (!told) return {-INFINITY, INFINITY};
    return {middle - error, middle + error};
}

/* ---- the queries, and some rows ---- */

template <typename T, bool PRODUCTS, int NQ>
__global__ void __launch_bounds__(THREADS) sample_kernel(const __grid_constant__ batch_call c)
{
    extern __shared__ float4 shared[];
    __shared__ float norms[BATCH_CHAINS];
    __shared__ unsigned long long fault;
    float *queries = reinterpret_cast<float *>(shared);
    const bool first = blockIdx.x == 0;
    const gcu_search_view &from = c.k.queries;
    if (threadIdx.x == 0) fault = ~0ull;
    __syncthreads();
#if __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
#endif
#pragma unroll 4
    for (int n = 0; n < NQ; n++)
        for (int64_t j = threadIdx.x; j < c.padded; j += THREADS) {
            const int64_t query = c.query + n;
            float v = 0;
            if (n < c.queries && j < c.cols) {
                v = batch_coordinate(from.data, from.dtype,
                                     query * from.row_stride + j * from.col_stride);
                if (first && !(fabsf(v) < INFINITY))
                    atomicMin(&fault, (unsigned long long)(query * c.cols + j));
            }
            queries[n * c.padded + j] = v;
            if (first && n < c.queries) c.f32[query * c.padded + j] = v;
        }
    __syncthreads();
    if (PRODUCTS && threadIdx.x / BATCH_CHAINS < NQ) { /* as norms_kernel has it */
        const int n = threadIdx.x / BATCH_CHAINS, lane = threadIdx.x % BATCH_CHAINS;
        double chain = 0;
        for (int64_t j = lane; j < c.cols; j += BATCH_CHAINS) {
            const double v = (double)queries[n * c.padded + j];
            chain = fma(v, v, chain);
        }
        const double norm = sqrt(batch_join_chains(chain, batch_half_mask()));
        if (lane == 0) {
            norms[n] = __double2float_ru(norm);
            if (first && n < c.queries) {
                c.inverse[c.query + n] = norm < 0x1p-1000 ? 0 : __ddiv_rn(1, norm);
                c.norms[c.query + n] = norms[n];
            }
        }
    }
    __syncthreads();
    if (first && threadIdx.x < c.queries) batch_begin_query(c, c.query + (int)threadIdx.x);
    if (first && threadIdx.x == 0) batch_begin_words(c, fault);
    const int64_t group = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;
    if (group >= c.groups) return;
    using keeps = kept<NQ>;
    const int lane = threadIdx.x % LANES, mine = keeps::query(lane);
    float least[keeps::COUNT];
#pragma unroll
    for (int e = 0; e < keeps::COUNT; e++)
        least[e] = INFINITY;
    const int64_t apart = c.groups * c.spacing;
    for (int64_t at = 0; at < c.group_rows; at += STEP) {
        float sum[ROWS][NQ], squares[ROWS];
        add_rows<T, PRODUCTS, NQ>(c, queries, at * apart + group * c.spacing, apart, sum, squares);
#pragma unroll
        for (int r = 0; r < ROWS; r++)
#pragma unroll
            for (int e = 0; e < keeps::COUNT; e++)
                least[e] = fminf(least[e], bounds_of<PRODUCTS>(c, sum[r][e], squares[r],
                                                               PRODUCTS ? norms[mine + e] : 0)
                                               .high);
    }
#pragma unroll
    for (int e = 0; e < keeps::COUNT; e++) {
#pragma unroll
        for (int half = LANES; half < 32; half *= 2)
            least[e] = fminf(least[e], __shfl_xor_sync(~0u, least[e], half));
        if (threadIdx.x % 32 < LANES && keeps::owns(lane) && mine + e < c.queries)
            c.minima[(int64_t)(c.query + mine + e) * BATCH_MOST_GROUPS + group] = least[e];
    }
}

/* The rank-th least of a query's minima, one per thread after the least of several have been taken
 * together, and what its list says already. */
__global__ void __launch_bounds__(SORTERS) reach_kernel(batch_call c, int rank)
{
    __shared__ __align__(16) float least[SORTERS];
    const int query = (int)blockIdx.x;
    const float *minima = c.minima + (int64_t)query * BATCH_MOST_GROUPS;
    float own = INFINITY;
    batch_await_predecessor();
    for (int64_t group = threadIdx.x; group < c.groups; group += blockDim.x)
        own = fminf(own, minima[group]);
    least[threadIdx.x] = own;
    __syncthreads();
    int before = 0;
#pragma unroll 4
    for (int e = 0; e < (int)blockDim.x; e += 4) {
        const float4 x = *reinterpret_cast<const float4 *>(least + e);
        const int me = (int)threadIdx.x - e;
        before += x.x < own || (x.x == own && 0 < me);
        before += x.y < own || (x.y == own && 1 < me);
        before += x.z < own || (x.z == own && 2 < me);
        before += x.w < own || (x.w == own && 3 < me);
    }
    if (before != rank - 1) return;
    const double limit = c.fresh ? (double)INFINITY : c.limits[query];
    const double known = c.k.metric == GNOMON_L2 ? limit * limit * (1 + 0x1p-20) : limit;
    c.reach[query] = fminf(own, __double2float_ru(known));
}

/* ---- all rows ---- */

/* The key in fp64 of a query and a row, a half of a warp each; 'counts': it is wanted. */
template <typename T>
static __device__ __noinline__ void verify_pair(const batch_call &c, const float *q, int query,
                                                int64_t row, bool counts)
{
    bool broken;
    const double key = batch_key<T>(c, q, query, row, &broken);
    if (threadIdx.x % BATCH_CHAINS > 0 || !counts) return;
    if (broken) c.words->base_fault = 0;
    const int64_t id = c.k.first + row;
    if (c.k.exclude >= 0 && id == c.k.exclude + query) return;
    const unsigned at = atomicAdd(&c.counts[query], 1u);
    if (at < GCU_SMALL_BATCH_ROOM) c.found[(int64_t)query * GCU_SMALL_BATCH_ROOM + at] = {key, id};
}

template <typename T, bool PRODUCTS, int NQ>
__global__ void __launch_bounds__(THREADS, BLOCKS) scan_kernel(const __grid_constant__ batch_call c)
{
    extern __shared__ float4 shared[];
    float *queries = reinterpret_cast<float *>(shared);
    using keeps = kept<NQ>;
    const int lane = threadIdx.x % LANES, line = threadIdx.x % 32 / LANES;
    const int mine = keeps::query(lane);
    batch_await_predecessor();
    for (int64_t e = threadIdx.x; e < NQ * c.padded / 4; e += THREADS)
        shared[e] = e < c.queries * c.padded / 4
                        ? reinterpret_cast<const float4 *>(c.f32 + c.query * c.padded)[e]
                        : float4{};
    float reach[keeps::COUNT], norm[keeps::COUNT];
    bool owns[keeps::COUNT];
#pragma unroll
    for (int e = 0; e < keeps::COUNT; e++) {
        owns[e] = keeps::owns(lane) && mine + e < c.queries;
        reach[e] = owns[e] ? c.reach[c.query + mine + e] : 0;
        norm[e] = PRODUCTS && owns[e] ? c.norms[c.query + mine + e] : 0;
    }
    __syncthreads();
    const int64_t jump = (int64_t)gridDim.x * WARPS * STEP;
    for (int64_t first = ((int64_t)blockIdx.x * WARPS + threadIdx.x / 32) * STEP; first < c.rows;
         first += jump) {
        float sum[ROWS][NQ], squares[ROWS];
        add_rows<T, PRODUCTS, NQ>(c, queries, first, 1, sum, squares);
        unsigned passed = 0;
#pragma unroll
        for (int r = 0; r < ROWS; r++)
#pragma unroll
            for (int e = 0; e < keeps::COUNT; e++) {
                const float low = bounds_of<PRODUCTS>(c, sum[r][e], squares[r], norm[e]).low;
                if (owns[e] && first + r * 4 + line < c.rows && !(low > reach[e]))
                    passed |= 1u << (r * keeps::COUNT + e);
            }
        if (!__any_sync(~0u, passed != 0)) continue;
#pragma unroll 1
        for (int bit = 0; bit < ROWS * keeps::COUNT; bit++) {
            unsigned who = __ballot_sync(~0u, passed >> bit & 1);
            const int r = bit / keeps::COUNT, e = bit % keeps::COUNT;
            while (who) { /* two at a time */
                const int one = __ffs((int)who) - 1;
                who &= who - 1;
                const int other = who ? __ffs((int)who) - 1 : one;
                who &= who - 1;
                const bool upper = threadIdx.x % 32 >= BATCH_CHAINS;
                const int from = upper ? other : one;
                const int n = keeps::query(from % LANES) + e;
                verify_pair<T>(c, queries + n * c.padded, c.query + n, first + r * 4 + from / LANES,
                               !upper || other != one);
                __syncwarp();
            }
        }
    }
}

/* ---- the answers ---- */

struct batch_end {
    const unsigned *counts;
    const gnomon_ranked *found;
    const batch_words *words;
    gcu_search_lists list;
    double *limits, *radii;
    int queries;
    bool products;
    gcu_small_batch_notes *notes; /* in the host's memory, as are: */
    int64_t *ids;
    double *distances;
};

/* Batcher's bitonic network over 'size' points, a power of two, in shared memory. */
__device__ void sort_points(gnomon_ranked *points, int size)
{
    for (int run = 2; run <= size; run *= 2)
        for (int step = run / 2; step > 0; step /= 2) {
            __syncthreads();
            for (int t = threadIdx.x; t < size / 2; t += SORTERS) {
                const int at = t / step * 2 * step + t % step;
                const gnomon_ranked a = points[at], b = points[at + step];
                if (gcu_ranked_before(b, a) != ((at & run) == 0)) continue;
                points[at] = b;
                points[at + step] = a;
            }
        }
    __syncthreads();
}

/* A query's answer number 'at' of so many. */
__device__ __forceinline__ void put(const batch_end &c, int query, int at,
                                    const gnomon_ranked &point, int count)
{
    const int64_t place = query * c.list.k + at;
    c.list.points[place] = point;
    c.ids[place] = point.id;
    c.distances[place] = c.products ? -point.key : point.key;
    if (at < count - 1) return;
    c.list.counts[query] = count;
    c.notes->counts[query] = count;
    if (count < c.list.k) return;
    c.limits[query] = point.key;
    c.radii[query] = c.products ? -point.key : point.key;
}

__global__ void __launch_bounds__(SORTERS) answer_kernel(batch_end c)
{
    extern __shared__ double2 held[];
    gnomon_ranked *points = reinterpret_cast<gnomon_ranked *>(held);
    const int query = (int)blockIdx.x;
    const int64_t k = c.list.k;
    batch_await_predecessor();
    const unsigned mine = (int)threadIdx.x < c.queries ? c.counts[threadIdx.x] : 0;
    const bool broken = c.words->fault != ~0ull || c.words->base_fault != ~0ull;
    const bool declined = __syncthreads_or(mine > GCU_SMALL_BATCH_ROOM) != 0;
    if (query == 0) {
        __shared__ unsigned long long sum;
        if (threadIdx.x == 0) sum = 0;
        __syncthreads();
        if (mine > 0) atomicAdd(&sum, (unsigned long long)mine);
        __syncthreads();
        if (threadIdx.x == 0) {
            c.notes->fault = c.words->fault;
            c.notes->base_fault = c.words->base_fault;
            c.notes->declined = declined;
            c.notes->verified = sum;
        }
    }
    if (broken || declined) return;
    const int news = (int)c.counts[query], olds = (int)c.list.counts[query], all = news + olds;
    const int count = all < k ? all : (int)k;
    int size = 2;
    while (size < all)
        size *= 2;
    gnomon_ranked own = {INFINITY, INT64_MAX};
    for (int e = threadIdx.x; e < size; e += SORTERS) {
        own = {INFINITY, INT64_MAX};
        if (e < olds)
            own = c.list.points[query * k + e];
        else if (e < all)
            own = c.found[(int64_t)query * GCU_SMALL_BATCH_ROOM + e - olds];
        points[e] = own;
    }
    __syncthreads();
    if (all <= SORTERS) { /* each counts those before it */
        int before = 0;
        if ((int)threadIdx.x / 32 * 32 < all)
#pragma unroll 4
            for (int e = 0; e < all; e++)
                before += gcu_ranked_before(points[e], own);
        if ((int)threadIdx.x < all && before < count) put(c, query, before, own, count);
        return;
    }
    sort_points(points, size);
    for (int e = threadIdx.x; e < count; e += SORTERS)
        put(c, query, e, points[e], count);
}

/* ---- the call ---- */

static bool exact_in_floats(gnomon_dtype dtype)
{
    switch (dtype) {
    case GNOMON_F32:
    case GNOMON_F16:
    case GNOMON_BF16:
    case GNOMON_I8:
    case GNOMON_U8:
    case GNOMON_I16:
    case GNOMON_U16:
        return true;
    default:
        return false;
    }
}

bool gcu_small_batch_supported(const gnomon_search_job *job)
{
    const gnomon_search_options *o = job->options;
    const gnomon_matrix *q = job->queries;
    return (o->metric == GNOMON_L2 || o->metric == GNOMON_COSINE || o->metric == GNOMON_IP) &&
           o->k > 0 && o->k <= GCU_SMALL_BATCH_NEAREST && !o->filter && q->rows > 0 &&
           q->rows <= GCU_SMALL_BATCH_QUERIES && q->cols > 0 && exact_in_floats(q->dtype) &&
           gnomon_round_up(q->cols, ALIGN) * (int64_t)sizeof(float) <= most_shared;
}

/* Rows that are compared first. */
static int64_t sample_of(int64_t rows, int64_t k)
{
    int64_t sample = SAMPLE;
    if (sample < 2 * STEP * (k + 1)) sample = 2 * STEP * (k + 1);
    if (sample < rows / EXPECTED * k) sample = rows / EXPECTED * k;
    return sample < rows / 2 ? sample : rows / 2;
}

bool gcu_small_batch_base_supported(const gnomon_search_job *job, const gnomon_matrix *base)
{
    if (base->memory != GNOMON_DEVICE_MEMORY || base->col_stride != 1 || base->rows > INT32_MAX ||
        (base->dtype != GNOMON_F32 && base->dtype != GNOMON_F16))
        return false;
    const int64_t k = job->options->k;
    return base->rows <= WHOLE || sample_of(base->rows, k) / STEP >= 2 * (k + 1);
}

/* The parts of the work memory. */
static size_t lay_out(int64_t queries, int64_t cols, void *memory, batch_call *c)
{
    char *base = static_cast<char *>(memory);
    size_t at = 0;
    const auto carve = [&](size_t bytes) {
        void *part = base + at;
        at += (bytes + 255) / 256 * 256;
        return part;
    };
    const size_t n = (size_t)queries;
    c->padded = gnomon_round_up(cols, ALIGN);
    c->f32 = static_cast<float *>(carve(n * (size_t)c->padded * sizeof(float)));
    c->inverse = static_cast<double *>(carve(n * sizeof(double)));
    c->norms = static_cast<float *>(carve(n * sizeof(float)));
    c->minima = static_cast<float *>(carve(n * BATCH_MOST_GROUPS * sizeof(float)));
    c->reach = static_cast<float *>(carve(n * sizeof(float)));
    c->counts = static_cast<unsigned *>(carve(n * sizeof(unsigned)));
    c->found =
        static_cast<gnomon_ranked *>(carve(n * GCU_SMALL_BATCH_ROOM * sizeof(gnomon_ranked)));
    c->words = static_cast<batch_words *>(carve(sizeof(batch_words)));
    return at;
}

bool gcu_small_batch_by_tensors(int64_t queries, int64_t cols, const gcu_gpu *gpu)
{
    return queries >= TENSORS_FROM &&
           gcu_batch_tensor_queries(queries, gnomon_round_up(cols, ALIGN), gpu) > 0;
}

size_t gcu_small_batch_work(int64_t queries, int64_t cols)
{
    batch_call c = {};
    return lay_out(queries, cols, nullptr, &c);
}

size_t gcu_small_batch_notes_bytes(void)
{
    return sizeof(gcu_small_batch_notes) +
           (size_t)GCU_SMALL_BATCH_QUERIES * GCU_SMALL_BATCH_NEAREST * 16;
}

struct batch_kernels {
    void (*sample)(batch_call);
    void (*scan)(batch_call);
};

template <typename T, bool PRODUCTS> static batch_kernels kernels_of(int queries)
{
    if (queries == 1) return {sample_kernel<T, PRODUCTS, 1>, scan_kernel<T, PRODUCTS, 1>};
    if (queries == 4) return {sample_kernel<T, PRODUCTS, 4>, scan_kernel<T, PRODUCTS, 4>};
    if constexpr (piece_of<T>::COUNT == 4)
        if (queries == 16) return {sample_kernel<T, PRODUCTS, 16>, scan_kernel<T, PRODUCTS, 16>};
    return {sample_kernel<T, PRODUCTS, 8>, scan_kernel<T, PRODUCTS, 8>};
}

static batch_kernels kernels_for(const batch_call *c, int queries)
{
    const bool products = c->k.metric != GNOMON_L2;
    if (c->k.base.dtype == GNOMON_F16)
        return products ? kernels_of<__half, true>(queries) : kernels_of<__half, false>(queries);
    return products ? kernels_of<float, true>(queries) : kernels_of<float, false>(queries);
}

/* Queries that go through one launch: 1, 4, 8 or, with points in fp32, 16. */
static int at_once(int64_t left, int64_t padded, gnomon_dtype dtype)
{
    const int64_t room = most_shared / (padded * (int64_t)sizeof(float));
    const int64_t fit = dtype == GNOMON_F32 || room < 8 ? room : 8;
    const int64_t n = left < fit ? left : fit;
    if (n >= 16 || (n > 8 && fit >= 16)) return 16;
    if (n >= 8 || (n > 4 && fit >= 8)) return 8;
    if (n >= 4 || (n > 1 && fit >= 4)) return 4;
    return 1;
}

cudaError_t gcu_small_batch_search(const gcu_small_batch *o, const gcu_gpu *gpu,
                                   cudaStream_t stream)
{
    batch_call c = {};
    lay_out(o->queries, o->pairs.base.cols, o->work, &c);
    c.k = o->pairs;
    c.rows = o->rows;
    c.cols = o->pairs.base.cols;
    const int64_t size = (int64_t)gnomon_dtype_size(c.k.base.dtype);
    c.vectors = (uintptr_t)c.k.base.data % 16 == 0 && c.k.base.row_stride * size % 16 == 0;
    c.share = (float)(c.padded / LANES + 16) * 0x1p-23f;
    c.least = (float)c.padded * 0x1p-147f;
    c.fresh = o->fresh;
    c.list_counts = o->list.counts;
    c.limits = o->limits;
    c.radii = o->radii;
    if (o->rows > WHOLE) {
        const int64_t sample = sample_of(o->rows, o->k) / STEP;
        c.group_rows = STEP * ((sample + BATCH_MOST_GROUPS - 1) / BATCH_MOST_GROUPS);
        c.groups = sample * STEP / c.group_rows;
        c.spacing = o->rows / (c.groups * c.group_rows);
    }
    const int64_t sampling = c.groups > 0 ? (c.groups + WARPS - 1) / WARPS : 1;
    const int64_t steps = (o->rows + STEP - 1) / STEP, most = (int64_t)gpu->sms * BLOCKS;
    const int64_t scanning =
        (steps + WARPS - 1) / WARPS < most ? (steps + WARPS - 1) / WARPS : most;
    const bool after = gpu->major >= 9;
    cudaError_t error = cudaSuccess;
    for (int round = 0; round < 2; round++) {
        for (int64_t query = 0; query < o->queries && error == cudaSuccess; query += c.queries) {
            const int64_t left = o->queries - query;
            const int some = o->tensors ? gcu_batch_tensor_queries(left, c.padded, gpu)
                                        : at_once(left, c.padded, c.k.base.dtype);
            c.query = (int)query;
            c.queries = (int)(left < some ? left : some);
            if (o->tensors) {
                error = round == 0 ? gcu_batch_tensor_sample(c, gpu, false, stream)
                                   : gcu_batch_tensor_scan(c, gpu, after, stream);
                continue;
            }
            const batch_kernels kernels = kernels_for(&c, some);
            const size_t shared = (size_t)some * (size_t)c.padded * sizeof(float);
            error = round == 0 ? batch_launch(kernels.sample, sampling, THREADS, shared,
                                              most_shared, false, stream, c)
                               : batch_launch(kernels.scan, scanning, THREADS, shared, most_shared,
                                              after, stream, c);
        }
        if (error != cudaSuccess) return error;
        const int rank = (int)o->k + (c.k.exclude >= 0 ? 1 : 0);
        const int threads = rank <= 32 ? 128 : rank <= 64 ? 256 : SORTERS;
        if (round == 0)
            error = batch_launch(reach_kernel, o->queries, threads, 0, 0, after, stream, c, rank);
    }
    if (error == cudaSuccess && o->tensors)
        error = gcu_batch_tensor_verify(c, o->queries, after, stream);
    if (error != cudaSuccess) return error;
    gcu_small_batch_notes *notes = static_cast<gcu_small_batch_notes *>(o->notes);
    const batch_end end = {c.counts,
                           c.found,
                           c.words,
                           o->list,
                           o->limits,
                           o->radii,
                           (int)o->queries,
                           c.k.metric == GNOMON_IP,
                           notes,
                           gcu_small_batch_ids(notes),
                           gcu_small_batch_distances(notes, o->queries, o->k)};
    return batch_launch(answer_kernel, o->queries, SORTERS, SORTED * sizeof(gnomon_ranked),
                        most_shared, after, stream, end);
}

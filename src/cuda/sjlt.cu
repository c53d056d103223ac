/* The family gcu_sjlt: how a task is cut into windows of chunks and batches of points (sjlt.h). */
#include "cuda/sjlt.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <stdio.h>

enum { SHARED_CHUNK = 16384, SEGMENTS = 33 };

#define LIST_BYTES ((int64_t)64 << 20) /* of a segment's lists, about, at most */
#define WINDOW_BYTES \
    ((int64_t)1 << 29) /* of a window's lists, of its partial sums, of its points */

static int64_t up(int64_t a, int64_t b)
{
    return (a + b - 1) / b * b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static bool wide_lists(const sjlt_shape &s)
{
    return s.chunk > SHARED_CHUNK;
}

sjlt_shape sjlt_shape_of(const gnomon_simple *a)
{
    sjlt_shape s = {};
    s.keys = gcu_stream_of(a, GNOMON_TAG_SJLT_KEYS);
    s.signs = gcu_stream_of(a, GNOMON_TAG_SJLT_SIGNS);
    s.k = a->rows;
    s.cols = a->cols;
    s.bands = a->nonzeros;
    s.chunk = a->chunk;
    s.chunk_log2 = a->chunk_log2;
    s.chunks = (a->cols + a->chunk - 1) / a->chunk;
    const int64_t m_most = (s.k + s.bands - 1) / s.bands, m_least = s.k / s.bands;
    s.split = 1;
    while (m_most * s.split * 2 <= s.chunk / 4 && s.k * s.split * 2 <= SJLT_VIRTUAL_ROWS)
        s.split *= 2;
    const int64_t slots = (s.chunk + m_least * s.split - 1) / (m_least * s.split);
    s.pairs = (int)(slots <= 4 ? 2 : most((slots + 1) / 2, 4));
    s.full = s.k % s.bands == 0 && s.chunk == 2 * s.pairs * m_least * s.split;
    const int64_t virtual_rows = s.k * s.split;
    const int64_t list = virtual_rows * sjlt_list_words(s, wide_lists(s)) * 4;
    /* enough segments to fill a GPU with few points, long enough that partial sums cost little */
    s.segment_chunks =
        most((s.chunks + SEGMENTS - 1) / SEGMENTS, (8 * virtual_rows + s.chunk - 1) / s.chunk);
    s.segment_chunks = most(1, least(s.segment_chunks, most(LIST_BYTES / list, 1)));
    return s;
}

/* ---- joining ---- */

static __global__ void __launch_bounds__(256)
    join(const float *partial, int64_t segments, int64_t rows, int split, int64_t width,
         int64_t points, float *total, bool first, bool last, int64_t point, int64_t task_row,
         int64_t n, int64_t blocks, gcu_out out)
{
    const int64_t t = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    const int64_t v = t % points, a = t / points;
    if (a >= rows) return;
    float sum = first ? gcu_carried<float>(out, a, n * blocks, point + v) : total[a * width + v];
    for (int64_t s = 0; s < segments; s++) {
        const float *p = partial + ((s * rows + a) * split) * width + v;
        float one = 0.0f;
#pragma unroll 4
        for (int i = 0; i < split; i++)
            one += p[i * width];
        sum += one;
    }
    if (!last) {
        total[a * width + v] = sum;
        return;
    }
    const int64_t b = (point + v) / n;
    gcu_emit<float>(out, task_row, task_row + a, b, point + v - b * n, n, blocks, sum);
}

/* ---- points of any layout as lines of fp32 ---- */

enum { TILE = 32 };

template <typename T>
static __global__ void __launch_bounds__(256)
    pack(gcu_points x, int64_t point, int64_t points, int64_t q0, int64_t cols, float *to,
         int64_t width)
{
    __shared__ float tile[TILE][TILE + 1];
    const int64_t col0 = blockIdx.x * (int64_t)TILE, v0 = blockIdx.y * (int64_t)TILE;
    const bool by_points = x.row_stride == 1;
    for (int j = threadIdx.x / TILE; j < TILE; j += 256 / TILE) {
        const int c = by_points ? j : threadIdx.x % TILE, p = by_points ? threadIdx.x % TILE : j;
        const int64_t v = point + v0 + p;
        const int64_t b = v / x.n, q = q0 + col0 + c;
        tile[c][p] =
            v0 + p < points && col0 + c < cols && q >= 0 ? gcu_load<T>(x, b, v - b * x.n, q) : 0.0f;
    }
    __syncthreads();
    for (int c = threadIdx.x / TILE; c < TILE; c += 256 / TILE) {
        const int p = threadIdx.x % TILE;
        if (col0 + c < cols && v0 + p < width) to[(col0 + c) * width + v0 + p] = tile[c][p];
    }
}

template <typename T>
static cudaError_t launch_pack(const gcu_points &x, int64_t point, int64_t points, int64_t q0,
                               int64_t cols, float *to, int64_t width, cudaStream_t stream)
{
    const dim3 grid((unsigned)((cols + TILE - 1) / TILE), (unsigned)((width + TILE - 1) / TILE));
    pack<T><<<grid, 256, 0, stream>>>(x, point, points, q0, cols, to, width);
    return cudaGetLastError();
}

static cudaError_t pack_any(const gcu_points &x, int64_t point, int64_t points, int64_t q0,
                            int64_t cols, float *to, int64_t width, cudaStream_t stream)
{
    switch (x.dtype) {
    case GNOMON_F32:
        return launch_pack<float>(x, point, points, q0, cols, to, width, stream);
    case GNOMON_F16:
        return launch_pack<__half>(x, point, points, q0, cols, to, width, stream);
    case GNOMON_BF16:
        return launch_pack<__nv_bfloat16>(x, point, points, q0, cols, to, width, stream);
    case GNOMON_I8:
        return launch_pack<int8_t>(x, point, points, q0, cols, to, width, stream);
    case GNOMON_U8:
        return launch_pack<uint8_t>(x, point, points, q0, cols, to, width, stream);
    case GNOMON_I16:
        return launch_pack<int16_t>(x, point, points, q0, cols, to, width, stream);
    case GNOMON_U16:
        return launch_pack<uint16_t>(x, point, points, q0, cols, to, width, stream);
    default:
        return cudaErrorInvalidValue;
    }
}

/* ---- the task ---- */

/* How a task goes: windows of whole segments, batches of points. */
struct course {
    sjlt_shape s;
    bool wide, packed;
    int64_t first, count;  /* chunks of the task */
    int64_t row, rows;     /* virtual rows */
    int64_t window;        /* chunks */
    int64_t points, width; /* a batch's; width a multiple of 8, or 32 when packed */
    size_t key_at, sign_at, words_at, partial_at, total_at, pack_at, bytes;
};

static size_t place(size_t *at, int64_t bytes)
{
    const size_t here = *at;
    *at += (size_t)up(bytes, 256);
    return here;
}

static void lay_out(course *c)
{
    size_t at = 0;
    const int64_t segments = (c->window + c->s.segment_chunks - 1) / c->s.segment_chunks;
    c->width = up(c->points, c->packed ? SJLT_WIDE_POINTS : SJLT_POINTS);
    c->key_at = place(&at, c->window * c->s.bands * 32);
    c->sign_at = place(&at, c->window * c->s.bands * (c->s.chunk / 8));
    c->words_at = place(&at, c->window * sjlt_list_words(c->s, c->wide) * c->rows * 4);
    c->partial_at = place(&at, segments * c->rows * c->width * 4);
    c->total_at = place(&at, c->window < c->count ? c->rows / c->s.split * c->width * 4 : 0);
    c->pack_at = place(&at, c->packed ? c->window * c->s.chunk * c->width * 4 : 0);
    c->bytes = at;
}

static course start_course(const gcu_task *t)
{
    course c = {};
    c.s = sjlt_shape_of(t->a);
    c.wide = wide_lists(c.s);
    c.packed = c.wide && !sjlt_can_gather(t->x);
    c.first = t->col / c.s.chunk;
    c.count = (t->x.block_cols + c.s.chunk - 1) / c.s.chunk;
    c.row = t->row * c.s.split;
    c.rows = t->rows * c.s.split;
    c.window = least(c.count, c.s.segment_chunks);
    c.points = least(t->x.n * t->x.blocks, c.packed ? SJLT_WIDE_POINTS : SJLT_POINTS);
    lay_out(&c);
    return c;
}

/* The most points, then the longest window, for which everything fits. */
static course plan(const gcu_task *t, size_t room)
{
    course c = start_course(t);
    const int64_t all = t->x.n * t->x.blocks, step = c.packed ? SJLT_WIDE_POINTS : SJLT_POINTS;
    const int64_t point_bytes = c.rows * 4 + (c.packed ? c.window * c.s.chunk * 4 : 0);
    int64_t points = least(all, most(c.points, WINDOW_BYTES / point_bytes / step * step));
    for (course d = c; points > c.points; points = points / 2 / step * step) {
        d.points = points;
        lay_out(&d);
        if (d.bytes <= room) {
            c = d;
            break;
        }
    }
    const int64_t list =
        sjlt_list_words(c.s, c.wide) * c.rows * 4 + c.s.bands * (c.s.chunk / 8 + 32);
    const int64_t segment =
        c.rows * c.width * 4 + (c.packed ? c.s.segment_chunks * c.s.chunk * c.width * 4 : 0);
    int64_t segments = (c.count + c.s.segment_chunks - 1) / c.s.segment_chunks;
    segments = least(segments, most(1, WINDOW_BYTES / (list * c.s.segment_chunks)));
    segments = least(segments, most(1, WINDOW_BYTES / segment));
    for (course d = c; segments > 1; segments = (segments + 1) / 2) {
        d.window = least(c.count, segments * c.s.segment_chunks);
        lay_out(&d);
        if (d.bytes <= room) return d;
    }
    return c;
}

static bool supports(const gcu_task *t, char *why, size_t why_size)
{
    if (t->a->kind != GNOMON_SJLT) {
        snprintf(why, why_size, "the kind is not sjlt");
        return false;
    }
    if (t->wide) {
        snprintf(why, why_size, "sjlt sums in fp32 only");
        return false;
    }
    switch (t->x.dtype) {
    case GNOMON_F32:
    case GNOMON_F16:
    case GNOMON_BF16:
    case GNOMON_I8:
    case GNOMON_U8:
    case GNOMON_I16:
    case GNOMON_U16:
        return true;
    default:
        snprintf(why, why_size, "sjlt takes no points of this type");
        return false;
    }
}

static int64_t granule(const gnomon_simple *a)
{
    const sjlt_shape s = sjlt_shape_of(a);
    return s.segment_chunks * s.chunk;
}

static size_t best_work(const gcu_task *t)
{
    return plan(t, SIZE_MAX).bytes;
}

static size_t least_work(const gcu_task *t)
{
    const course c = start_course(t);
    course d = c;
    d.count = c.count + 1; /* with totals kept, as when there are several windows */
    lay_out(&d);
    return d.bytes;
}

static bool gathers(const gcu_task *t, const course &c)
{
    /* with few nonzeros a column there is little to keep in shared memory for; the bits are the
     * same either way */
    return c.wide || (c.s.bands <= 2 && c.s.pairs <= 4 && sjlt_can_gather(t->x) &&
                      t->x.n * t->x.blocks >= SJLT_WIDE_POINTS);
}

static cudaError_t run_window(const gcu_task *t, const course &c, int64_t begin, int64_t end,
                              int64_t point, int64_t points, bool lists_stand)
{
    char *work = static_cast<char *>(t->work);
    sjlt_lists lists = {};
    lists.words = reinterpret_cast<uint32_t *>(work + c.words_at);
    lists.key = reinterpret_cast<uint32_t *>(work + c.key_at);
    lists.sign = reinterpret_cast<uint32_t *>(work + c.sign_at);
    lists.first = c.first + begin;
    lists.count = end - begin;
    lists.row = c.row;
    lists.rows = c.rows;
    lists.wide = c.wide;
    cudaError_t error = lists_stand ? cudaSuccess : sjlt_make_lists(c.s, lists, t->stream);
    if (error != cudaSuccess) return error;
    sjlt_sum sum = {};
    sum.x = t->x;
    sum.origin = t->col;
    sum.point = point;
    sum.points = points;
    sum.width = c.width;
    sum.partial = reinterpret_cast<float *>(work + c.partial_at);
    if (c.packed) {
        float *to = reinterpret_cast<float *>(work + c.pack_at);
        const int64_t q0 = begin * c.s.chunk;
        const int64_t cols = least(t->x.block_cols - q0, (end - begin) * c.s.chunk);
        error = pack_any(t->x, point, points, q0, cols, to, c.width, t->stream);
        if (error != cudaSuccess) return error;
        sum.origin = lists.first * c.s.chunk;
        sum.point = 0;
        sum.x = gcu_points{to, GNOMON_F32, 1, c.width, 0, points, 1, cols, 0, cols};
    }
    error = gathers(t, c) ? sjlt_sum_gather(c.s, lists, sum, t->stream)
                          : sjlt_sum_shared(c.s, lists, sum, t->stream);
    if (error != cudaSuccess) return error;
    const int64_t rows = c.rows / c.s.split;
    join<<<(unsigned)((rows * points + 255) / 256), 256, 0, t->stream>>>(
        sum.partial, (lists.count + c.s.segment_chunks - 1) / c.s.segment_chunks, rows,
        (int)c.s.split, c.width, points, reinterpret_cast<float *>(work + c.total_at), begin == 0,
        end == c.count, point, t->row, t->x.n, t->x.blocks, t->out);
    return cudaGetLastError();
}

static cudaError_t run(const gcu_task *t)
{
    const course c = plan(t, t->work_bytes);
    if (c.bytes > t->work_bytes) return cudaErrorMemoryAllocation;
    const int64_t all = t->x.n * t->x.blocks;
    for (int64_t point = 0; point < all; point += c.points)
        for (int64_t begin = 0; begin < c.count; begin += c.window) {
            const cudaError_t error =
                run_window(t, c, begin, least(c.count, begin + c.window), point,
                           least(c.points, all - point), point > 0 && c.window >= c.count);
            if (error != cudaSuccess) return error;
        }
    return cudaSuccess;
}

const gcu_family gcu_sjlt = {"sjlt", supports, granule, best_work, least_work, run};

/* The family gcu_sjlt: how a task is cut into windows of chunks and batches of points
 * (project/sjlt/sjlt.h). */
#include "cuda/project/sjlt/sjlt.h"

#include "base/arithmetic.h"

#include <stdio.h>

enum { CHUNK_16 = 16384 /* longest whose columns, with a sign, fit in 16 bits */, SEGMENTS = 33 };
enum {
    FEW = 32,  /* points, up to which ways for few are quicker */
    LONG = 64, /* chunks, from which HELD is quicker for any points in 16 bits */
    RING = 6   /* turns of LINED */
};

#define LIST_BYTES ((int64_t)64 << 20) /* of a segment's lists, about, at most */
#define WINDOW_BYTES \
    ((int64_t)1 << 29) /* of a window's lists, of its partial sums, of its points */

sjlt_shape sjlt_shape_of(const gnomon_simple *a)
{
    sjlt_shape s = {};
    s.keys = gcu_stream_of(a, GNOMON_TAG_SJLT_KEYS);
    s.signs = gcu_stream_of(a, GNOMON_TAG_SJLT_SIGNS);
    s.k = a->rows;
    s.bands = a->nonzeros;
    s.chunk = a->chunk;
    s.chunk_log2 = a->chunk_log2;
    s.chunks = (a->cols + a->chunk - 1) / a->chunk;
    const int64_t m_most = (s.k + s.bands - 1) / s.bands, m_least = s.k / s.bands;
    s.split = 1;
    while (m_most * s.split * 2 <= s.chunk / 4 && s.k * s.split * 2 <= SJLT_VIRTUAL_ROWS)
        s.split *= 2;
    const int64_t slots = (s.chunk + m_least * s.split - 1) / (m_least * s.split);
    s.steps = (int)((slots + 3) / 4);
    s.bits32 = s.chunk > CHUNK_16;
    s.full = s.k % s.bands == 0 && s.chunk == 4 * s.steps * m_least * s.split;
    const int64_t virtual_rows = s.k * s.split;
    const int64_t list = virtual_rows * s.steps * (s.bits32 ? 16 : 8);
    /* enough segments to fill a GPU with few points, long enough that partial sums cost little */
    s.segment_chunks = gnomon_max((s.chunks + SEGMENTS - 1) / SEGMENTS,
                                  (8 * virtual_rows + s.chunk - 1) / s.chunk);
    s.segment_chunks =
        gnomon_max(1, gnomon_min(s.segment_chunks, gnomon_max(LIST_BYTES / list, 1)));
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
    if (split == 1) { /* loads go ahead of the sums that wait for each other */
#pragma unroll 8
        for (int64_t s = 0; s < segments; s++)
            sum += partial[(s * rows + a) * width + v];
    } else {
        for (int64_t s = 0; s < segments; s++) {
            const float *p = partial + (s * rows + a) * split * width + v;
            float one = 0.0f;
#pragma unroll 8
            for (int i = 0; i < split; i++)
                one += p[i * width];
            sum += one;
        }
    }
    if (!last) {
        total[a * width + v] = sum;
        return;
    }
    const int64_t b = (point + v) / n;
    gcu_emit<float>(out, task_row, task_row + a, b, point + v - b * n, n, blocks, sum);
}

/* ---- the task ---- */

/* How a task's coordinates reach the sums; the bits are the same either way. */
enum way {
    GATHERED,
    STAGED,
    HELD,
    PACKED, /* into lines first, which are then gathered */
    LINED   /* the same on the way, for few points */
};

/* How a task goes: windows of whole segments, batches of points. */
struct course {
    sjlt_shape s;
    enum way way;
    int64_t first, count;  /* chunks of the task */
    int64_t row, rows;     /* virtual rows */
    int64_t window;        /* chunks */
    int64_t points, width; /* a batch's; width a multiple of 4, or 32 when packed */
    int64_t line, ring;    /* LINED: points of a line, and turns whose lines are kept */
    size_t lists_at, tickets_at, partial_at, total_at, pack_at, bytes;
};

static size_t place(size_t *at, int64_t bytes)
{
    const size_t here = *at;
    *at += (size_t)gnomon_round_up(bytes, 256);
    return here;
}

static int64_t entry_bytes(const sjlt_shape &s)
{
    return s.bits32 ? 4 : 2;
}

static void lay_out(course *c)
{
    size_t at = 0;
    const int64_t segments = (c->window + c->s.segment_chunks - 1) / c->s.segment_chunks;
    c->line = c->points <= 4 ? 4 : SJLT_LINE;
    int64_t unit = 4;
    if (c->way == PACKED) unit = SJLT_POINTS;
    if (c->way == LINED) unit = c->line;
    c->width = gnomon_round_up(c->points, unit);
    const int64_t turns = segments * (c->way == LINED ? c->width / c->line : 1);
    c->ring = gnomon_min(turns, RING);
    int64_t lines = 0; /* coordinates' numbers */
    if (c->way == PACKED) lines = c->window * c->s.chunk * c->width;
    if (c->way == LINED) lines = c->ring * c->s.segment_chunks * c->s.chunk * c->line;
    c->lists_at = place(&at, c->window * c->rows * c->s.steps * 4 * entry_bytes(c->s));
    c->tickets_at = place(&at, (1 + 2 * turns) * 4);
    c->partial_at = place(&at, segments * c->rows * c->width * 4);
    c->total_at = place(&at, c->window < c->count ? c->rows / c->s.split * c->width * 4 : 0);
    c->pack_at = place(&at, lines * 4);
    c->bytes = at;
}

/* As measured on an H100. */
static enum way way_of(const gcu_task *t)
{
    const sjlt_shape s = sjlt_shape_of(t->a);
    const int64_t points = t->x.n * t->x.blocks;
    if (sjlt_can_gather(t->x)) return GATHERED;
    const bool stages = !s.bits32 && sjlt_can_stage(t->x);
    const bool many =
        points > FEW || (points > FEW / 2 && s.chunk == SJLT_STAGE && t->rows * s.split >= s.chunk);
    if (stages && many) return STAGED;
    if ((points <= FEW || s.chunks >= LONG) && sjlt_can_hold(s, t->x, t->gpu)) return HELD;
    if (stages) return STAGED;
    return points <= SJLT_LINE || (points <= FEW && t->x.row_stride != 1) ? LINED : PACKED;
}

static course start_course(const gcu_task *t, enum way way)
{
    course c = {};
    c.s = sjlt_shape_of(t->a);
    c.way = way;
    c.first = t->col / c.s.chunk;
    c.count = (t->x.block_cols + c.s.chunk - 1) / c.s.chunk;
    c.row = t->row * c.s.split;
    c.rows = t->rows * c.s.split;
    c.window = gnomon_min(c.count, c.s.segment_chunks);
    c.points = gnomon_min(t->x.n * t->x.blocks, SJLT_POINTS);
    lay_out(&c);
    return c;
}

/* The most points, then the longest window, for which everything fits. */
static course plan(const gcu_task *t, enum way way, size_t room)
{
    course c = start_course(t, way);
    const int64_t all = t->x.n * t->x.blocks;
    const int64_t point_bytes = c.rows * 4 + (c.way == PACKED ? c.window * c.s.chunk * 4 : 0);
    int64_t points = gnomon_min(
        all, gnomon_max(c.points, WINDOW_BYTES / point_bytes / SJLT_POINTS * SJLT_POINTS));
    for (course d = c; points > c.points; points = points / 2 / SJLT_POINTS * SJLT_POINTS) {
        d.points = points;
        lay_out(&d);
        if (d.bytes <= room) {
            c = d;
            break;
        }
    }
    const int64_t list = c.rows * c.s.steps * 4 * entry_bytes(c.s);
    const int64_t segment =
        c.rows * c.width * 4 + (c.way == PACKED ? c.s.segment_chunks * c.s.chunk * c.width * 4 : 0);
    int64_t segments = (c.count + c.s.segment_chunks - 1) / c.s.segment_chunks;
    segments = gnomon_min(segments, gnomon_max(1, WINDOW_BYTES / (list * c.s.segment_chunks)));
    segments = gnomon_min(segments, gnomon_max(1, WINDOW_BYTES / segment));
    for (course d = c; segments > 1; segments = (segments + 1) / 2) {
        d.window = gnomon_min(c.count, segments * c.s.segment_chunks);
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
    return gcu_sums_in_fp32(t, why, why_size);
}

static int64_t granule(const gnomon_simple *a)
{
    const sjlt_shape s = sjlt_shape_of(a);
    return s.segment_chunks * s.chunk;
}

/* Who asks for memory has no points yet, or others: where these lie decides the way, so the bytes
 * are enough for any. */
static size_t best_work(const gcu_task *t)
{
    int64_t most = 0;
    for (enum way way : {GATHERED, PACKED, LINED})
        most = gnomon_max(most, (int64_t)plan(t, way, SIZE_MAX).bytes);
    return (size_t)most;
}

static size_t least_work(const gcu_task *t)
{
    size_t most = 0;
    for (enum way way : {PACKED, LINED}) { /* which need the most */
        course c = start_course(t, way);
        c.count++; /* with totals kept, as when there are several windows */
        lay_out(&c);
        if (c.bytes > most) most = c.bytes;
    }
    return most;
}

static cudaError_t run_window(const gcu_task *t, const course &c, int64_t begin, int64_t end,
                              int64_t point, int64_t points, bool lists_stand)
{
    char *work = static_cast<char *>(t->work);
    const sjlt_lists lists = {work + c.lists_at, c.first + begin, end - begin, c.row, c.rows};
    sjlt_sum sum = {};
    sum.x = t->x;
    sum.origin = t->col;
    sum.point = point;
    sum.points = points;
    sum.width = c.width;
    sum.partial = reinterpret_cast<float *>(work + c.partial_at);
    sum.tickets = reinterpret_cast<uint32_t *>(work + c.tickets_at);
    sum.listed = lists_stand;
    cudaError_t error = cudaSuccess;
    if (c.way == STAGED || c.way == HELD) {
        const bool held = c.way == HELD;
        if (!lists_stand && !(held && sjlt_held_computes(c.s, points)))
            error = sjlt_make_lists(c.s, lists, t->stream);
        if (error == cudaSuccess)
            error = held ? sjlt_sum_held(c.s, lists, sum, t->stream)
                         : sjlt_sum_stage(c.s, lists, sum, t->stream);
    } else {
        float *const to = reinterpret_cast<float *>(work + c.pack_at);
        if (c.way == LINED) sum.pack = sjlt_pack_room{to, c.line, c.ring};
        if (c.way == PACKED) {
            const int64_t q0 = begin * c.s.chunk;
            const int64_t cols = gnomon_min(t->x.block_cols - q0, (end - begin) * c.s.chunk);
            error = sjlt_pack(t->x, point, points, q0, cols, to, c.width, t->stream);
            sum.origin = lists.first * c.s.chunk;
            sum.point = 0;
            sum.x = gcu_points{to, GNOMON_F32, 1, c.width, 0, points, 1, cols, 0, cols};
        }
        if (error == cudaSuccess) error = sjlt_sum_gather(c.s, lists, sum, t->stream);
    }
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
    const course c = plan(t, way_of(t), t->work_bytes);
    if (c.bytes > t->work_bytes) return cudaErrorMemoryAllocation;
    const int64_t all = t->x.n * t->x.blocks;
    for (int64_t point = 0; point < all; point += c.points)
        for (int64_t begin = 0; begin < c.count; begin += c.window) {
            const cudaError_t error =
                run_window(t, c, begin, gnomon_min(c.count, begin + c.window), point,
                           gnomon_min(c.points, all - point), point > 0 && c.window >= c.count);
            if (error != cudaSuccess) return error;
        }
    return cudaSuccess;
}

const gcu_family gcu_sjlt = {"sjlt", supports, granule, best_work, least_work, run};

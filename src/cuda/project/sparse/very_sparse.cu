/* Very sparse operators (Li, Hastie and Church 2006): the family, and which kernel does what. */
#include "base/arithmetic.h"
#include "cuda/project/sparse/transpose.cuh"
#include "cuda/project/sparse/walk.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <stdio.h>
#include <stdlib.h>

/* Warps' worth of rows that fill a GPU. Fewer rows than that go through several segments of the
 * columns at once; how many is a matter of A alone. */
enum { FULL_QUADS = 4096 };

/* Of points that one launch goes through, where all rows walk the same columns. */
static const int64_t LAUNCH_BYTES = (int64_t)4 << 30;

/* Of the sums of few points' segments. */
static const size_t SPREAD_BYTES = (size_t)64 << 20;

/* Of lines that are transposed at a time. */
static const size_t TRANSPOSED_BYTES = (size_t)1 << 30;

/* Chunks of a segment; 0 when A is one segment. */
static int64_t segment_chunks(const gnomon_simple *a)
{
    const int64_t quads = gnomon_ceil_div(a->rows, 4), chunks = gnomon_ceil_div(a->cols, a->chunk);
    const int64_t segments = FULL_QUADS / quads;
    if (segments <= 1 || chunks == 1) return 0;
    return gnomon_ceil_div(chunks, segments < chunks ? segments : chunks);
}

static bool supports(const gcu_task *task, char *why, size_t why_size)
{
    if (task->a->kind != GNOMON_VERY_SPARSE) {
        snprintf(why, why_size, "the operator is not very-sparse");
        return false;
    }
    return gcu_sums_in_fp32(task, why, why_size);
}

static int64_t granule(const gnomon_simple *a)
{
    const int64_t segment = segment_chunks(a);
    return (segment ? segment : (int64_t)VS_CHUNKS) * a->chunk;
}

/* How a task is gathered. The bits are the same. */
enum way {
    LINES,      /* X has lines */
    TRANSPOSED, /* X's values are transposed into lines, a piece of the columns at a time */
    SCATTERED   /* value by value */
};

struct plan {
    way how;
    int lanes;   /* points of a tile / 4, but where they are few */
    int few;     /* points of the tile of few points, scattered; else 0 */
    bool spread; /* few points: each VS_CHUNKS chunks are a segment */
    vs_task t;
};

/* Whether a coordinate's points lie side by side, aligned. */
static bool has_lines(const gcu_points *x)
{
    return x->dtype == GNOMON_F32 && x->row_stride == 1 && x->n % 4 == 0 && x->col_stride > 0 &&
           x->col_stride % 4 == 0 && x->col_stride < INT64_C(1) << 29 &&
           (uintptr_t)x->data % 16 == 0 && (x->blocks == 1 || x->block_stride % 4 == 0);
}

/* Points of the tile where there are few of them; else 0. */
static int few_points(const gcu_points *x)
{
    if (x->dtype != GNOMON_F32 || x->blocks != 1 || x->n > VS_FEW) return 0;
    return x->n <= 2 ? (int)x->n : x->n <= 4 ? 4 : VS_FEW;
}

/* Whether transposing all values into lines costs less than gathering single ones; picoseconds for
 * a coordinate of all points, as measured on an H200, of few points on an H100. */
static bool wants_transpose(const gcu_task *task)
{
    const gcu_points *x = &task->x;
    const double size = (double)gnomon_dtype_size(x->dtype), n = (double)x->n;
    const double apart = (double)llabs(x->row_stride) * size;
    const double touched = apart < 32 ? apart > 4 ? apart : 4 : 32;
    const double uses = (double)task->rows * task->a->density;
    if (few_points(x)) { /* of its sectors the fewer stay in L2, the more there are */
        const double use = apart < 32 ? 7.0 + 2.3 * n : 7.5 * n * (1.0 + 0.2 * n);
        return x->block_cols >= 1 << 14 && 13.0 + 1.2 * n + 13.0 * uses < use * uses;
    }
    const double scattered = uses * n * 0.7 * touched;
    const double transposed = n * (1.0 + 0.25 * size) + uses * (13.0 > 0.6 * n ? 13.0 : 0.6 * n);
    return x->block_cols >= 1 << 14 && transposed < scattered;
}

static void set_tile(plan *p)
{
    const gcu_points *x = &p->t.x;
    p->few = p->how == SCATTERED ? few_points(x) : 0;
    p->lanes = p->how != SCATTERED && x->n <= 16 ? 4 : 8;
    if (p->how == SCATTERED && !p->few) {
        p->t.tiles_a_block = 0;
        p->t.tiles = gnomon_ceil_div(x->n * x->blocks, 32);
    } else {
        p->t.tiles_a_block = p->few ? 1 : gnomon_ceil_div(x->n, 4 * p->lanes);
        p->t.tiles = p->t.tiles_a_block * x->blocks;
    }
    p->t.line = x->n <= VS_FEW ? VS_FEW : 4 * p->lanes;
}

/* Bytes of sums that wait between launches or for other segments', for one tile of points. */
static size_t sums_bytes(const plan *p)
{
    const size_t points = p->few ? (size_t)p->few : 4 * (size_t)p->lanes;
    return (size_t)p->t.segments * (size_t)p->t.rows * points * sizeof(float);
}

static void gather_in(plan *p)
{
    if (!p->spread) return;
    p->spread = false;
    p->t.segment_chunks = 0;
    p->t.segments = 1;
}

/* Few points leave registers for more warps than there are rows. The sums that a row's running sum
 * takes up one after the other are then made at once; adding them up later gives the same bits. */
static void spread(plan *p)
{
    if (!p->few || p->t.segment_chunks) return;
    p->spread = true;
    p->t.segment_chunks = VS_CHUNKS;
    p->t.segments = gnomon_ceil_div(p->t.chunks, (int64_t)VS_CHUNKS);
    if (p->t.segments <= 1 || sums_bytes(p) > SPREAD_BYTES) gather_in(p);
}

static plan plan_of(const gcu_task *task)
{
    const gnomon_simple *a = task->a;
    const gcu_points *x = &task->x;
    plan p = {};
    p.how = has_lines(x) ? LINES : wants_transpose(task) ? TRANSPOSED : SCATTERED;
    vs_task *t = &p.t;
    t->keys = vs_keys_of(gcu_stream_of(a, GNOMON_TAG_VERY_SPARSE));
    t->jump_scale = a->jump_scale;
    t->chunk = (int)a->chunk;
    t->x = *x;
    t->out = task->out;
    t->row = task->row;
    t->rows = task->rows;
    t->first_chunk = task->col / a->chunk;
    t->chunks = (int)gnomon_ceil_div(x->block_cols, a->chunk);
    t->segment_chunks = (int)segment_chunks(a);
    t->segments = t->segment_chunks ? gnomon_ceil_div(t->chunks, t->segment_chunks) : 1;
    t->quad = task->row / 4;
    t->quads = (task->row + task->rows - 1) / 4 - t->quad + 1;
    t->stride_bytes = (uint32_t)(x->col_stride * (int64_t)sizeof(float));
    t->end = t->chunks;
    set_tile(&p);
    spread(&p);
    return p;
}

/* When memory is short. */
static void scatter(plan *p)
{
    p->how = SCATTERED;
    set_tile(p);
}

/* Chunks that one launch goes through: all, or so few that warps cannot drift far apart. */
static int chunks_a_launch(const plan *p)
{
    const int64_t chunk = (int64_t)p->t.chunk * p->lanes * 16;
    const int64_t most = LAUNCH_BYTES / chunk / VS_CHUNKS * VS_CHUNKS;
    if (p->how != LINES || p->t.segment_chunks || p->t.chunks <= most) return p->t.chunks;
    return most < VS_CHUNKS ? (int)VS_CHUNKS : (int)most;
}

static size_t tile_work(const plan *p)
{
    return p->t.segment_chunks || chunks_a_launch(p) < p->t.chunks ? sums_bytes(p) : 0;
}

/* Whether warps wait for each other: where all rows are resident at once, and use X's columns so
 * often that reading it more than once costs more than waiting. */
static bool paced(const plan *p, const gcu_task *task)
{
    return p->how == LINES && !p->t.segment_chunks &&
           p->t.quads <= (int64_t)2 * task->gpu->sms * VS_WARPS &&
           (double)p->t.rows * task->a->density >= 3.0;
}

static size_t pace_bytes(const plan *p)
{
    return sizeof(unsigned) * (size_t)chunks_a_launch(p);
}

/* Tiles of a launch: as many as are resident at once. What the rows of one tile gather from stays
 * in L2, and other tiles' lines don't come between. */
static int64_t tiles_a_launch(const plan *p, const gcu_task *task)
{
    const int64_t items = p->t.quads * p->t.segments, most = (INT64_C(1) << 31) / items;
    if (p->how == SCATTERED || (p->how == LINES && p->t.segment_chunks)) return most;
    const int64_t resident = (int64_t)2 * task->gpu->sms * VS_WARPS / items;
    return resident < 1 ? 1 : resident < most ? resident : most;
}

/* Of lines: the chunks that are transposed at a time come in fewest such steps. */
static int transposed_unit(const plan *p)
{
    const int unit = p->t.segment_chunks ? p->t.segment_chunks : (int)VS_CHUNKS;
    return unit < p->t.chunks ? unit : p->t.chunks;
}

static size_t unit_bytes(const plan *p)
{
    return (size_t)transposed_unit(p) * (size_t)p->t.chunk * (size_t)p->t.line * sizeof(float);
}

static size_t least_work(const gcu_task *task)
{
    plan p = plan_of(task);
    if (p.how == TRANSPOSED) scatter(&p);
    gather_in(&p);
    return tile_work(&p);
}

static size_t best_work(const gcu_task *task)
{
    const plan p = plan_of(task);
    if (p.how == TRANSPOSED) {
        const int64_t together = tiles_a_launch(&p, task);
        const size_t tiles = (size_t)(p.t.tiles < together ? p.t.tiles : together);
        const size_t units = (size_t)gnomon_ceil_div(p.t.chunks, transposed_unit(&p));
        const size_t all = units * unit_bytes(&p) * tiles, unit = unit_bytes(&p);
        const size_t lines = all < TRANSPOSED_BYTES    ? all
                             : unit > TRANSPOSED_BYTES ? unit
                                                       : TRANSPOSED_BYTES;
        const size_t transposed = lines + sums_bytes(&p) * tiles, least = least_work(task);
        return transposed > least ? transposed : least;
    }
    const size_t one = tile_work(&p), most = (size_t)256 << 20;
    if (paced(&p, task)) return one + pace_bytes(&p);
    return one * (size_t)p.t.tiles < most ? one * (size_t)p.t.tiles : one > most ? one : most;
}

/* Adds the segments' sums in ascending order. */
template <int P> static __global__ void add_segments(const __grid_constant__ vs_task t)
{
    const int64_t index = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    const int p = (int)(index % P);
    const int64_t tile = t.tile + index / P % t.tiles, row = t.row + index / P / t.tiles;
    int64_t b, i;
    if (row >= t.row + t.rows || !vs_locate<P>(t, tile, p, &b, &i)) return;
    float sum = gcu_carried<float>(t.out, row - t.row, t.x.n * t.x.blocks, b * t.x.n + i);
    for (int64_t s = 0; s < t.segments; s++)
        sum += t.partial[vs_partial<P>(t, s, row, tile, p)];
    gcu_emit<float>(t.out, t.row, row, b, i, t.x.n, t.x.blocks, sum);
}

template <typename Gather> static void launch(const vs_task *t, cudaStream_t stream)
{
    const int64_t items = t->quads * t->walked * t->tiles;
    vs_walk_kernel<Gather>
        <<<(unsigned)gnomon_ceil_div(items, VS_WARPS), 32 * VS_WARPS, 0, stream>>>(*t);
    if (t->segment_chunks && t->end == t->chunks)
        add_segments<Gather::P>
            <<<(unsigned)gnomon_ceil_div(t->rows * t->tiles * Gather::P, 256), 256, 0, stream>>>(
                *t);
}

static void launch_scattered(const vs_task *t, cudaStream_t stream)
{
    switch (t->x.dtype) {
    case GNOMON_F16:
        return launch<vs_scattered<__half>>(t, stream);
    case GNOMON_BF16:
        return launch<vs_scattered<__nv_bfloat16>>(t, stream);
    case GNOMON_I8:
        return launch<vs_scattered<int8_t>>(t, stream);
    case GNOMON_U8:
        return launch<vs_scattered<uint8_t>>(t, stream);
    case GNOMON_I16:
        return launch<vs_scattered<int16_t>>(t, stream);
    case GNOMON_U16:
        return launch<vs_scattered<uint16_t>>(t, stream);
    default:
        return launch<vs_scattered<float>>(t, stream);
    }
}

template <int P> static void transpose(const vs_task *t, float *lines, cudaStream_t stream)
{
    const gcu_points *x = &t->x;
    const int64_t chunks = t->end - t->begin, all = chunks * t->chunk;
    const int64_t left = x->block_cols - (int64_t)t->begin * t->chunk;
    const dim3 grid((unsigned)gnomon_ceil_div(all < left ? all : left, VS_TRANSPOSE_COLS),
                    (unsigned)t->tiles);
    switch (x->dtype) {
    case GNOMON_F16:
        return vs_transpose_kernel<__half, P, false>
            <<<grid, VS_TRANSPOSE_THREADS, 0, stream>>>(*t, lines);
    case GNOMON_BF16:
        return vs_transpose_kernel<__nv_bfloat16, P, false>
            <<<grid, VS_TRANSPOSE_THREADS, 0, stream>>>(*t, lines);
    case GNOMON_I8:
        return vs_transpose_kernel<int8_t, P, false>
            <<<grid, VS_TRANSPOSE_THREADS, 0, stream>>>(*t, lines);
    case GNOMON_U8:
        return vs_transpose_kernel<uint8_t, P, false>
            <<<grid, VS_TRANSPOSE_THREADS, 0, stream>>>(*t, lines);
    case GNOMON_I16:
        return vs_transpose_kernel<int16_t, P, false>
            <<<grid, VS_TRANSPOSE_THREADS, 0, stream>>>(*t, lines);
    case GNOMON_U16:
        return vs_transpose_kernel<uint16_t, P, false>
            <<<grid, VS_TRANSPOSE_THREADS, 0, stream>>>(*t, lines);
    default:
        break;
    }
    if (x->col_stride == 1 && (uintptr_t)x->data % 16 == 0 && x->row_stride % 4 == 0 &&
        x->block_stride % 4 == 0)
        vs_transpose_kernel<float, P, true><<<grid, VS_TRANSPOSE_THREADS, 0, stream>>>(*t, lines);
    else
        vs_transpose_kernel<float, P, false><<<grid, VS_TRANSPOSE_THREADS, 0, stream>>>(*t, lines);
}

static void launch_tiles(const plan *p, const vs_task *t, cudaStream_t stream)
{
    if (p->few == 1)
        launch<vs_few<1>>(t, stream);
    else if (p->few == 2)
        launch<vs_few<2>>(t, stream);
    else if (p->few == 4)
        launch<vs_few<4>>(t, stream);
    else if (p->few)
        launch<vs_few<VS_FEW>>(t, stream);
    else if (p->how == SCATTERED)
        launch_scattered(t, stream);
    else if (p->lanes == 8)
        launch<vs_lines<8>>(t, stream);
    else
        launch<vs_lines<4>>(t, stream);
}

/* Chunks and tiles of a launch. */
struct step {
    int chunks;
    int64_t tiles;
};

/* What the grid and the work take; no tiles when the work is too small. Lays out the work. */
static step step_of(plan *p, const gcu_task *task, float **lines)
{
    vs_task *t = &p->t;
    char *work = static_cast<char *>(task->work);
    size_t bytes = task->work_bytes;
    if (p->how == TRANSPOSED) {
        const size_t unit = unit_bytes(p), sums = sums_bytes(p);
        int64_t tiles = (int64_t)(bytes / (unit + sums));
        if (tiles > 0) {
            const int64_t together = tiles_a_launch(p, task);
            if (tiles > together) tiles = together;
            if (tiles > t->tiles) tiles = t->tiles;
            const size_t units = (bytes - sums * (size_t)tiles) / (unit * (size_t)tiles);
            const int64_t chunks = (int64_t)units * transposed_unit(p);
            t->partial = reinterpret_cast<float *>(work);
            *lines = reinterpret_cast<float *>(work + sums * (size_t)tiles);
            return {chunks < t->chunks ? (int)chunks : t->chunks, tiles};
        }
        scatter(p);
    }
    if (bytes < tile_work(p)) gather_in(p);
    const int chunks = chunks_a_launch(p);
    if (paced(p, task) && bytes >= tile_work(p) + pace_bytes(p)) {
        t->pace = reinterpret_cast<unsigned *>(work + tile_work(p));
        t->partial = reinterpret_cast<float *>(work);
        return {chunks, 1};
    }
    int64_t tiles = chunks < t->chunks ? 1 : tiles_a_launch(p, task);
    if (tiles < 1) tiles = 1;
    if (tile_work(p)) {
        const int64_t fit = (int64_t)(bytes / tile_work(p));
        if (fit < tiles) tiles = fit;
        t->partial = reinterpret_cast<float *>(work);
    }
    return {chunks, tiles};
}

static cudaError_t run(const gcu_task *task)
{
    plan p = plan_of(task);
    vs_task *t = &p.t;
    float *lines = nullptr;
    const step s = step_of(&p, task, &lines);
    if (s.tiles < 1) return cudaErrorInvalidValue;
    const int64_t tiles = t->tiles;
    for (t->tile = 0; t->tile < tiles; t->tile += t->tiles) {
        t->tiles = tiles - t->tile < s.tiles ? tiles - t->tile : s.tiles;
        for (t->begin = 0; t->begin < t->chunks; t->begin = t->end) {
            t->end = t->chunks - t->begin < s.chunks ? t->chunks : t->begin + s.chunks;
            t->walked =
                t->segment_chunks ? gnomon_ceil_div(t->end - t->begin, t->segment_chunks) : 1;
            if (p.how == TRANSPOSED) {
                t->transposed = lines;
                t->stride_bytes = (uint32_t)t->tiles * (uint32_t)t->line * sizeof(float);
                if (t->line == VS_FEW)
                    transpose<VS_FEW>(t, lines, task->stream);
                else if (p.lanes == 8)
                    transpose<32>(t, lines, task->stream);
                else
                    transpose<16>(t, lines, task->stream);
            }
            if (t->pace) {
                const cudaError_t error = cudaMemsetAsync(t->pace, 0, pace_bytes(&p), task->stream);
                if (error != cudaSuccess) return error;
            }
            launch_tiles(&p, t, task->stream);
        }
        const cudaError_t error = cudaGetLastError();
        if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
}

const gcu_family gcu_very_sparse = {"very-sparse", supports, granule, best_work, least_work, run};

/* The product on the CPU. C is cut into tasks, some rows and columns each, that share nothing and
 * wait for nothing: a task walks the inner dimension in steps, packs its columns of B, 16 a tile,
 * so that they stay in the second cache, and lets its rows of A pass by in bands. Sums are in fp64.
 * Longer inner dimensions come in pieces, sums of their own that are added in order; tasks share
 * out the pieces too, so that small outputs occupy all threads. How the sums of an entry run
 * depends on the inner dimension alone. */
#include "base/arithmetic.h"
#include "base/context.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "gemm/alone.h"
#include "gemm/job.h"
#include "gemm/pack.h"
#include "gemm/slices.h"
#include "gemm/tasks.h"
#include "project/blocks.h"
#include "project/slots.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    CHAIN = 64,  /* products that are summed in fp32 */
    SHORT = 128, /* inner sizes for which these are fewer */
    SHORT_CHAIN = 32,
    PIECE = 4096,      /* steps whose sums begin at zero */
    DEPTH = 256,       /* steps at a time, a multiple of CHAIN; for few columns */
    DEEPEST = 1024,    /* more */
    BAND = 48,         /* rows at a time, a multiple of every kernel's and of GNOMON_LANES */
    TASK_BANDS = 10,   /* of a task, at most */
    TASK_TILES = 16,   /* likewise, of columns */
    SLICED_STEPS = 32, /* by slices: least inner size, ... */
    SLICED_BANDS = 32, /* bands of a task, ... */
    SLICED_TILES = GNOMON_GEMM_TILES,
    LEAST_BANDS = 2, /* of a task that is made smaller: with fewer, packing costs */
    LEAST_TILES = 4,
    HELD = 1 << 19,  /* sums of pieces that are held at once, if they are small */
    GRAIN = 1 << 21, /* multiplications for which a thread is woken */
    SLACK = 4096     /* heads of allocations */
};

typedef struct run {
    const gnomon_kernels *kernels;
    gnomon_matrix a, c;     /* a: m x k */
    gnomon_fold rows, cols; /* the rows of A and the columns of B as points */
    double alpha, beta;
    int64_t k, chain, pieces;
    bool lines;  /* rows of A are copied as they lie; else they are packed as tiles */
    bool turned; /* it is C^T = B^T A^T, which has the same bits */
    bool sliced; /* products by bf16 slices */

    int64_t depth, band;      /* steps and rows at a time, at most */
    int64_t bands, tiles;     /* of a task, at most */
    int64_t row_tasks, tasks; /* tasks that the rows are cut into; all */
    int64_t places;           /* with pieces: sums of a piece that are held at once */
    int64_t slots;            /* tasks at once */
    float *right, *left;      /* of a slot: tiles x depth x GNOMON_LANES and band x depth */
    double *sums; /* of a slot or, with pieces, of a place; then of 'group' tasks' totals */

    int64_t first, group;          /* the tasks at hand */
    int64_t first_piece, together; /* and their pieces */
} run;

/* What a task multiplies. */
typedef struct area {
    int64_t row, rows, col, tiles; /* col: a tile */
} area;

static int64_t tiles_of(int64_t lanes)
{
    return gnomon_ceil_div(lanes, GNOMON_LANES);
}

static area area_of(const run *r, int64_t task)
{
    const int64_t col_tasks = r->tasks / r->row_tasks;
    const int64_t row = task % r->row_tasks, col = task / r->row_tasks;
    const int64_t bands = gnomon_ceil_div(r->rows.points, r->band),
                  tiles = tiles_of(r->cols.points);
    const int64_t begin = gnomon_part_begin(bands, row, r->row_tasks) * r->band;
    const int64_t end =
        gnomon_min(gnomon_part_begin(bands, row + 1, r->row_tasks) * r->band, r->rows.points);
    const int64_t left = gnomon_part_begin(tiles, col, col_tasks),
                  right = gnomon_part_begin(tiles, col + 1, col_tasks);
    return (area){begin, end - begin, left, right - left};
}

/* Numbers of a band's sums, and of a task's. */
static int64_t band_sums(const run *r)
{
    return r->tiles * r->band * GNOMON_LANES;
}

static int64_t task_sums(const run *r)
{
    /* A task whose steps are done at once needs no more than a band's. */
    return band_sums(r) * (r->pieces == 1 && r->k <= r->depth ? 1 : r->bands);
}

/* Lines a power of two apart would all want the same places of the first cache. */
static int64_t left_stride(const run *r)
{
    return r->depth + GNOMON_LANES;
}

/* Numbers of a slot's packed columns and rows. */
static int64_t right_floats(const run *r)
{
    return r->sliced ? gnomon_slices_right(r->tiles) : r->depth * r->tiles * GNOMON_LANES;
}

static int64_t left_floats(const run *r)
{
    return r->sliced ? gnomon_slices_left() : r->band * left_stride(r);
}

static double *total_of(const run *r, int64_t task)
{
    return r->sums + (r->places + task - r->first) * task_sums(r);
}

/* ---- a task ---- */

static void multiply_band(const run *r, const area *t, int64_t row, int64_t rows, int64_t step,
                          int64_t steps, float *left, const float *right, double *sums, bool onto)
{
    const int64_t stride = r->depth * GNOMON_LANES, apart = r->band * GNOMON_LANES;
    if (r->lines) {
        gnomon_gemm_lines(&r->a, r->kernels, row, rows, step, steps, left_stride(r), left);
        r->kernels->product(steps, r->chain, left, left_stride(r), 1, rows, right, stride, t->tiles,
                            sums, apart, onto);
        return;
    }
    for (int64_t i = 0; i < rows; i += GNOMON_LANES) {
        gnomon_fold_pack(&r->rows, r->kernels, false, (row + i) / GNOMON_LANES, step, steps, left);
        r->kernels->product(steps, r->chain, left, 1, GNOMON_LANES,
                            gnomon_min(GNOMON_LANES, rows - i), right, stride, t->tiles,
                            sums + i * GNOMON_LANES, apart, onto);
    }
}

/* One line of C's elements, whichever way they lie closer. Sums of nothing but zeros may carry
 * either sign: adding +0 makes them one. */
#define DEFINE_STORE(name, type)                                                               \
    static void name(type *to, int64_t step, const double *sums, int64_t apart, int64_t count, \
                     double alpha, double beta)                                                \
    {                                                                                          \
        if (beta == 0 && step == 1 && apart == 1 && count == GNOMON_LANES) {                   \
            for (int64_t i = 0; i < GNOMON_LANES; i++)                                         \
                to[i] = (type)(alpha * (sums[i] + 0.0));                                       \
        } else if (beta == 0) {                                                                \
            for (int64_t i = 0; i < count; i++)                                                \
                to[i * step] = (type)(alpha * (sums[i * apart] + 0.0));                        \
        } else {                                                                               \
            for (int64_t i = 0; i < count; i++)                                                \
                to[i * step] =                                                                 \
                    (type)(alpha * (sums[i * apart] + 0.0) + beta * (double)to[i * step]);     \
        }                                                                                      \
    }

DEFINE_STORE(store_f32, float)
DEFINE_STORE(store_f64, double)

static void store(const run *r, int64_t row, int64_t col, int64_t step, const double *sums,
                  int64_t apart, int64_t count)
{
    const gnomon_matrix *c = &r->c;
    const int64_t at = row * c->row_stride + col * c->col_stride;
    if (c->dtype == GNOMON_F32)
        store_f32((float *)c->data + at, step, sums, apart, count, r->alpha, r->beta);
    else
        store_f64((double *)c->data + at, step, sums, apart, count, r->alpha, r->beta);
}

/* A band's sums to C. */
static void store_band(const run *r, const area *t, int64_t row, int64_t rows, const double *sums)
{
    const gnomon_matrix *c = &r->c;
    const int64_t apart = r->band * GNOMON_LANES;
    const int64_t col = t->col * GNOMON_LANES,
                  end = gnomon_min(c->cols, col + t->tiles * GNOMON_LANES);
    if (llabs(c->col_stride) <= llabs(c->row_stride)) {
        for (int64_t l = 0; l < rows; l++, sums += GNOMON_LANES)
            for (int64_t j = col, i = 0; j < end; j += GNOMON_LANES, i += apart)
                store(r, row + l, j, c->col_stride, sums + i, 1, gnomon_min(GNOMON_LANES, end - j));
    } else {
        for (int64_t j = 0; j < end - col; j++)
            store(r, row, col + j, c->row_stride,
                  sums + j / GNOMON_LANES * apart + j % GNOMON_LANES, GNOMON_LANES, rows);
    }
}

/* walk() by slices. */
static void walk_sliced(const run *r, int64_t slot, const area *t, int64_t from, int64_t end,
                        double *sums, bool finished)
{
    const gnomon_slices slices = {.kernels = r->kernels,
                                  .a = r->lines ? &r->a : NULL,
                                  .rows = &r->rows,
                                  .cols = &r->cols,
                                  .turned = r->turned,
                                  .tiles = r->tiles,
                                  .right = r->right + slot * right_floats(r),
                                  .left = r->left + slot * left_floats(r)};
    const int64_t next = task_sums(r) > band_sums(r) ? band_sums(r) : 0;
    r->kernels->slices->begin();
    for (int64_t step = from; step < end; step += r->depth) {
        const int64_t steps = gnomon_min(r->depth, end - step);
        double *at = sums;
        int which = 0;
        gnomon_slices_columns(&slices, t->col, t->tiles, step, steps);
        gnomon_slices_rows(&slices, which, t->row, gnomon_min(r->band, t->rows), step, steps);
        for (int64_t i = 0; i < t->rows; i += r->band, at += next, which ^= 1) {
            const int64_t row = t->row + i, rows = gnomon_min(r->band, t->rows - i);
            const int64_t after = gnomon_max(0, gnomon_min(r->band, t->rows - i - r->band));
            if (step == from) memset(at, 0, (size_t)band_sums(r) * sizeof *at);
            gnomon_slices_band(&slices, which, row, rows, after, t->col, t->tiles, step, steps, at,
                               r->band * GNOMON_LANES);
            if (finished && step + steps == end) store_band(r, t, row, rows, at);
        }
    }
    r->kernels->slices->end();
}

/* sums = those of the steps [from, end), band by band; finished: they go to C. */
static void walk(const run *r, int64_t slot, const area *t, int64_t from, int64_t end, double *sums,
                 bool finished)
{
    if (r->sliced) {
        walk_sliced(r, slot, t, from, end, sums, finished);
        return;
    }
    float *right = r->right + slot * right_floats(r), *left = r->left + slot * left_floats(r);
    const int64_t next = task_sums(r) > band_sums(r) ? band_sums(r) : 0;
    for (int64_t step = from; step < end; step += r->depth) {
        const int64_t steps = gnomon_min(r->depth, end - step);
        double *at = sums;
        gnomon_gemm_columns(&r->cols, r->kernels, t->col, t->tiles, step, steps, r->depth, right);
        for (int64_t i = 0; i < t->rows; i += r->band, at += next) {
            const int64_t row = t->row + i, rows = gnomon_min(r->band, t->rows - i);
            multiply_band(r, t, row, rows, step, steps, left, right, at, step > from);
            if (finished && step + steps == end) store_band(r, t, row, rows, at);
        }
    }
}

static void whole_task(void *arg, int64_t task, int64_t slot)
{
    const run *r = arg;
    const area t = area_of(r, r->first + task);
    walk(r, slot, &t, 0, r->k, r->sums + slot * task_sums(r), true);
}

static void piece_task(void *arg, int64_t number, int64_t slot)
{
    const run *r = arg;
    const area t = area_of(r, r->first + number / r->together);
    const int64_t from = (r->first_piece + number % r->together) * PIECE;
    walk(r, slot, &t, from, gnomon_min(from + PIECE, r->k), r->sums + number * task_sums(r), false);
}

/* The pieces at hand of a task's band, in order; the last ones' total goes to C. */
static void add_task(void *arg, int64_t number, int worker)
{
    (void)worker;
    const run *r = arg;
    const int64_t task = r->first + number / r->bands, band = number % r->bands;
    const area t = area_of(r, task);
    const int64_t i = band * r->band, count = band_sums(r);
    if (i >= t.rows) return;
    double *total = total_of(r, task) + band * count;
    const double *from = r->sums + (number / r->bands * r->together * r->bands + band) * count;
    for (int64_t p = 0; p < r->together; p++, from += task_sums(r)) {
        if (r->first_piece + p == 0)
            memcpy(total, from, (size_t)count * sizeof *total);
        else
            for (int64_t j = 0; j < count; j++)
                total[j] += from[j];
    }
    if (r->first_piece + r->together == r->pieces)
        store_band(r, &t, t.row + i, gnomon_min(r->band, t.rows - i), total);
}

/* ---- the whole ---- */

static bool bytes_of(const run *r, int64_t *bytes)
{
    const int64_t scratch = right_floats(r) + left_floats(r);
    const int64_t held = r->pieces > 1 ? 2 * r->places : r->slots;
    int64_t sums;
    *bytes = SLACK + r->slots * scratch * (int64_t)sizeof(float);
    return gnomon_mul(held, task_sums(r) * (int64_t)sizeof(double), &sums) &&
           gnomon_add(*bytes, sums, bytes);
}

/* Tasks as large as is useful. */
static void widest_tasks(run *r)
{
    if (r->sliced) {
        r->band = r->rows.points <= GNOMON_LANES ? GNOMON_LANES : GNOMON_SLICE_BAND;
        r->bands = gnomon_min(SLICED_BANDS, gnomon_ceil_div(r->rows.points, r->band));
        r->tiles = gnomon_min(SLICED_TILES, tiles_of(r->cols.points));
        r->depth = gnomon_min(GNOMON_SLICE_CHUNK, r->k);
        return;
    }
    r->band = gnomon_min(BAND, tiles_of(r->rows.points) * GNOMON_LANES);
    if (r->lines) r->band = gnomon_min(r->band, r->rows.points);
    r->bands = gnomon_min(TASK_BANDS, gnomon_ceil_div(r->rows.points, r->band));
    r->tiles = gnomon_min(TASK_TILES, tiles_of(r->cols.points));
    r->depth = gnomon_min(DEEPEST, DEPTH * TASK_TILES / r->tiles / CHAIN * CHAIN);
    r->depth = gnomon_min(r->depth, r->k);
}

/* False when tasks are more than can be counted. */
static bool count_tasks(run *r)
{
    r->row_tasks = gnomon_ceil_div(gnomon_ceil_div(r->rows.points, r->band), r->bands);
    return gnomon_mul(r->row_tasks, gnomon_ceil_div(tiles_of(r->cols.points), r->tiles), &r->tasks);
}

/* As large as the memory limit allows, too. */
static gnomon_status choose_sizes(gnomon_context *ctx, const gnomon_gemm_job *job, run *r)
{
    r->slots = gnomon_context_threads(ctx);
    widest_tasks(r);
    r->places = gnomon_max(2 * r->slots, HELD / task_sums(r));
    int64_t bytes;
    while (!bytes_of(r, &bytes) || bytes > job->memory_limit) {
        if (r->pieces > 1 && r->places > r->slots)
            r->places = r->slots;
        else if (r->bands > 1)
            r->bands = (r->bands + 1) / 2;
        else if (r->tiles > LEAST_TILES)
            r->tiles = (r->tiles + 1) / 2;
        else if (r->slots > 1)
            r->places = r->slots = (r->slots + 1) / 2;
        else if (r->depth > CHAIN && !r->sliced)
            r->depth = CHAIN;
        else if (r->tiles > 1)
            r->tiles = (r->tiles + 1) / 2;
        else if (r->band > GNOMON_LANES)
            r->band = GNOMON_LANES;
        else
            return gnomon_gemm_no_room(ctx, job->memory_limit, bytes);
    }
    return GNOMON_OK;
}

/* Smaller ones where they are too few for the threads. */
static gnomon_status choose_tasks(gnomon_context *ctx, run *r)
{
    const int64_t threads = r->slots;
    for (;;) {
        GNOMON_FAIL_IF(!count_tasks(r), ctx, GNOMON_ERROR_OVERFLOW,
                       "a product of %" PRId64 " x %" PRId64 " has more tasks than can be counted",
                       r->c.rows, r->c.cols);
        const int64_t steps = gnomon_min(r->k, PIECE), lanes = r->tiles * GNOMON_LANES;
        if (threads == 1 || r->tasks >= 4 * threads || r->pieces >= 4 * threads) return GNOMON_OK;
        if (r->bands * r->band * lanes * steps < 2 * GRAIN) return GNOMON_OK;
        if (r->bands > LEAST_BANDS)
            r->bands = (r->bands + 1) / 2;
        else if (r->tiles > LEAST_TILES)
            r->tiles = (r->tiles + 1) / 2;
        else if (r->bands > 1)
            r->bands = 1;
        else if (r->band > GNOMON_LANES && r->rows.points > GNOMON_LANES)
            r->band = GNOMON_LANES;
        else
            return GNOMON_OK;
    }
}

static int64_t wave_of(gnomon_context *ctx, const run *r)
{
    const double task = (double)(r->bands * r->band) * (double)(r->tiles * GNOMON_LANES);
    return gnomon_gemm_wave(ctx, r->tasks, r->slots, 2e9, task * (double)r->k);
}

static gnomon_status run_whole(gnomon_context *ctx, run *r)
{
    const int64_t wave = wave_of(ctx, r);
    for (r->first = 0; r->first < r->tasks; r->first += r->group) {
        r->group = gnomon_min(wave, r->tasks - r->first);
        GNOMON_TRY(gnomon_progress(ctx, "multiply", r->first, r->tasks));
        gnomon_in_slots(ctx, r->slots, r->group, whole_task, r);
    }
    return gnomon_progress(ctx, "multiply", r->tasks, r->tasks);
}

static gnomon_status run_pieces(gnomon_context *ctx, run *r)
{
    const int64_t together = gnomon_min(r->places, r->pieces), group = r->places / together;
    for (r->first = 0; r->first < r->tasks; r->first += r->group) {
        r->group = gnomon_min(group, r->tasks - r->first);
        for (r->first_piece = 0; r->first_piece < r->pieces; r->first_piece += r->together) {
            r->together = gnomon_min(together, r->pieces - r->first_piece);
            GNOMON_TRY(gnomon_progress(ctx, "multiply", r->first, r->tasks));
            gnomon_in_slots(ctx, r->slots, r->group * r->together, piece_task, r);
            gnomon_parallel(ctx, r->group * r->bands, add_task, r);
        }
    }
    return gnomon_progress(ctx, "multiply", r->tasks, r->tasks);
}

static gnomon_status run_all(gnomon_context *ctx, run *r)
{
    const int64_t held = r->pieces > 1 ? 2 * r->places : r->slots;
    GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(r->slots, left_floats(r)), sizeof(float),
                            "packed rows", &r->left));
    GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(r->slots, right_floats(r)), sizeof(float),
                            "packed columns", &r->right));
    GNOMON_TRY(
        gnomon_alloc(ctx, gnomon_times(held, task_sums(r)), sizeof(double), "the sums", &r->sums));
    return r->pieces > 1 ? run_pieces(ctx, r) : run_whole(ctx, r);
}

/* What a step of the product takes, in units of a row with a tile: as rows come one at a time and
 * columns 16, and as packing reads where lines lie. */
static double cost_of(bool sliced, const gnomon_matrix *a, const gnomon_matrix *b)
{
    if (sliced)
        return (double)a->rows * (a->col_stride == 1 ? 0.35 : 1) *
                   (double)gnomon_ceil_div(b->rows, SLICED_TILES * GNOMON_LANES) +
               (double)b->rows * (b->row_stride == 1 ? 0.45 : 0.7) *
                   (double)gnomon_ceil_div(a->rows, SLICED_BANDS * GNOMON_SLICE_BAND);
    const double rows = (double)a->rows, tiles = (double)tiles_of(b->rows);
    const double left = a->col_stride == 1 ? 0.15 : a->row_stride == 1 ? 0.25 : 1;
    const double right = b->row_stride == 1 ? 0.25 : 1;
    return rows * tiles + left * rows * (double)gnomon_ceil_div((int64_t)tiles, TASK_TILES) +
           right * tiles * GNOMON_LANES * (double)gnomon_ceil_div(a->rows, TASK_BANDS * BAND);
}

/* The product of a and b's transpose, neither of them empty. */
static run start(const gnomon_kernels *kernels, const gnomon_gemm_job *job, gnomon_matrix a,
                 gnomon_matrix b)
{
    gnomon_matrix c = *job->c;
    const bool sliced =
        job->form == GNOMON_GEMM_BF16 && kernels->slices != NULL && a.cols >= SLICED_STEPS;
    const bool turned = cost_of(sliced, &b, &a) < cost_of(sliced, &a, &b);
    if (turned) {
        const gnomon_matrix other = a;
        a = b;
        b = other;
        c = gnomon_matrix_transposed(job->c);
    }
    return (run){.kernels = kernels,
                 .a = a,
                 .c = c,
                 .rows = gnomon_fold_view(&a, 0),
                 .cols = gnomon_fold_view(&b, 0),
                 .alpha = job->alpha,
                 .beta = job->beta,
                 .k = a.cols,
                 .chain = a.cols <= SHORT ? SHORT_CHAIN : CHAIN,
                 .pieces = gnomon_ceil_div(a.cols, PIECE),
                 .lines = a.col_stride == 1,
                 .turned = turned,
                 .sliced = sliced};
}

gnomon_status gnomon_gemm_on_cpu(gnomon_context *ctx, const gnomon_gemm_job *job)
{
    if (job->c->rows == 0 || job->c->cols == 0) return GNOMON_OK;
    if (job->a->cols == 0 || job->alpha == 0) {
        gnomon_scale_view(ctx, job->c, job->beta, NULL);
        return GNOMON_OK;
    }
    run r = start(gnomon_context_kernels(ctx), job, *job->a, gnomon_matrix_transposed(job->b));
    GNOMON_TRY(choose_sizes(ctx, job, &r));
    gnomon_status status = choose_tasks(ctx, &r);
    if (r.pieces == 1) r.slots = gnomon_min(r.slots, r.tasks);
    if (status == GNOMON_OK) status = run_all(ctx, &r);
    gnomon_free(ctx, r.left);
    gnomon_free(ctx, r.right);
    gnomon_free(ctx, r.sums);
    return status;
}

enum {
    RIGHT = TASK_TILES * DEPTH * GNOMON_LANES,
    LEFT = BAND * (DEEPEST + GNOMON_LANES),
    SUMS = TASK_BANDS * BAND * TASK_TILES * GNOMON_LANES
};

int64_t gnomon_gemm_alone_bytes(void)
{
    return (RIGHT + LEFT) * (int64_t)sizeof(float) + SUMS * (int64_t)sizeof(double);
}

void gnomon_gemm_alone(const gnomon_kernels *kernels, const gnomon_gemm_job *job, void *scratch)
{
    const gnomon_matrix b = gnomon_matrix_transposed(job->b);
    const int64_t k = job->a->cols;
    gnomon_gemm_job piece = *job;
    for (int64_t from = 0; from < k; from += PIECE, piece.beta = 1) {
        const int64_t steps = gnomon_min(PIECE, k - from);
        run r = start(kernels, &piece, gnomon_columns(job->a, from, steps),
                      gnomon_columns(&b, from, steps));
        widest_tasks(&r);
        (void)count_tasks(&r);
        r.sums = scratch;
        r.right = (float *)(r.sums + SUMS);
        r.left = r.right + RIGHT;
        for (int64_t task = 0; task < r.tasks; task++)
            whole_task(&r, task, 0);
    }
}

/* A task takes some lines of A and goes through the steps a chunk at a time: 32 lines' numbers of a
 * chunk become slices, a part, which stays in the first cache while the columns pass by in panels,
 * made beforehand and shared by all tasks; the vector units make the next part meanwhile. Of A's
 * columns (turned) the sums are C's transpose. They are in fp32, in a task's own memory, and are
 * added to C a group of chunks at a time: sums of many equal numbers, which go on for millions of
 * steps, would all be rounded to the same side. Columns are cut between groups alone, so no cut
 * shows in the bits. */
#include "gemm/coarse.h"

#include "base/arithmetic.h"
#include "base/context.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "gemm/pack.h"
#include "gemm/tasks.h"
#include "kernels.h"
#include "project/blocks.h"
#include "project/slots.h"

#include <string.h>

enum {
    STEPS = GNOMON_COARSE_STEPS,
    LINES = GNOMON_COARSE_LINES,
    SUMS = LINES * LINES,
    PARTS = 8,       /* of a task, at most; whole ones where threads would have few */
    LEAST_PARTS = 2, /* where the task's panels are read often enough */
    GROUP = 64       /* chunks of steps whose sums are added to C together */
};

typedef struct coarse {
    const gnomon_kernels *kernels;
    const float *a;
    int64_t ld, lines, steps;
    bool turned, onto;
    const gnomon_matrix *b, *c;
    int64_t chunks, parts, panels; /* at once, at most */
    int64_t slots;
    int64_t chunk, chunk_end, panel, panel_end; /* at hand */
    int64_t first;                              /* task */
    uint16_t *packed, *part; /* packed: [chunk][panel] at hand; part: two of a slot */
    float *sums;             /* parts x panels of a slot */
} coarse;

bool gnomon_gemm_has_coarse(gnomon_context *ctx)
{
    return gnomon_context_kernels(ctx)->slices != NULL;
}

static int64_t steps_of(const coarse *c, int64_t chunk)
{
    return gnomon_min(STEPS, c->steps - chunk * STEPS);
}

static void pack(void *arg, int64_t task, int worker)
{
    (void)worker;
    const coarse *c = arg;
    const int64_t chunk = c->chunk + task, step = chunk * STEPS, count = c->panel_end - c->panel;
    for (int64_t i = 0; i < count; i++) {
        const int64_t col = (c->panel + i) * LINES;
        c->kernels->slices->coarse_panel((const float *)c->b->data + step * c->b->row_stride + col,
                                         c->b->row_stride, gnomon_min(LINES, c->b->cols - col),
                                         steps_of(c, chunk), c->turned,
                                         c->packed + (task * count + i) * GNOMON_COARSE_PANEL);
    }
}

/* ---- sums to C ---- */

/* Lines [line, line + lines) and columns [col, col + cols) of C. */
typedef struct area {
    int64_t line, lines, col, cols;
} area;

static float *place(const coarse *c, const area *at, int64_t line, int64_t col)
{
    return (float *)c->c->data + (at->line + line) * c->c->row_stride + at->col + col;
}

/* to = from, or to += from. */
static void put_line(bool fresh, int64_t count, const float *from, float *to)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = fresh ? from[i] : to[i] + from[i];
}

static void put(const coarse *c, const area *at, bool fresh, const float *sums)
{
    float square[GNOMON_LANES * GNOMON_LANES];
    if (!c->turned) {
        for (int64_t i = 0; i < at->lines; i++)
            put_line(fresh, at->cols, sums + i * LINES, place(c, at, i, 0));
        return;
    }
    for (int64_t i = 0; i < at->lines; i += GNOMON_LANES) {
        for (int64_t j = 0; j < at->cols; j += GNOMON_LANES) {
            const int64_t cols = gnomon_min(GNOMON_LANES, at->cols - j);
            gnomon_gemm_turn(c->kernels, sums + j * LINES + i, LINES, GNOMON_LANES, square);
            for (int64_t l = 0; l < gnomon_min(GNOMON_LANES, at->lines - i); l++)
                put_line(fresh, cols, square + l * GNOMON_LANES, place(c, at, i + l, j));
        }
    }
}

/* ---- a task ---- */

static const float *numbers(const coarse *c, int64_t line, int64_t step)
{
    return c->turned ? c->a + step * c->ld + line : c->a + line * c->ld + step;
}

/* How far a task has come: a part of its lines in a chunk. The other parts of the chunk follow, and
 * then those of the next one. */
typedef struct turn {
    int64_t line, lines, parts; /* of the task */
    int64_t chunk, part;
} turn;

static turn after(const turn *t)
{
    turn next = *t;
    if (++next.part == t->parts) {
        next.part = 0;
        next.chunk++;
    }
    return next;
}

static gnomon_coarse_part part_of(const coarse *c, const turn *t, uint16_t *to)
{
    const int64_t line = t->part * LINES;
    return (gnomon_coarse_part){.from = numbers(c, t->line + line, t->chunk * STEPS),
                                .ld = c->ld,
                                .lines = gnomon_min(LINES, t->lines - line),
                                .steps = steps_of(c, t->chunk),
                                .turned = c->turned,
                                .to = to};
}

/* The part's numbers are fetched meanwhile. */
static void look_ahead(const coarse *c, const turn *t, gnomon_coarse *p)
{
    const gnomon_coarse_part q = part_of(c, t, NULL);
    p->ahead = (const char *)q.from;
    p->ahead_stride = c->ld * (int64_t)sizeof(float);
    p->ahead_rows = c->turned ? q.steps : q.lines;
    p->ahead_bytes = (c->turned ? q.lines : q.steps) * (int64_t)sizeof(float);
}

/* The part of this turn, made before, with all panels. */
static void multiply_part(const coarse *c, const turn *t, uint16_t *part[2], float *sums)
{
    const turn next = after(t), later = after(&next);
    const int64_t panels = c->panel_end - c->panel;
    const gnomon_coarse_part q =
        next.chunk < c->chunk_end ? part_of(c, &next, part[1]) : (gnomon_coarse_part){0};
    gnomon_coarse p = {.steps = steps_of(c, t->chunk),
                       .count = panels,
                       .part = part[0],
                       .panels = c->packed + (t->chunk - c->chunk) * panels * GNOMON_COARSE_PANEL,
                       .sums = sums + t->part * panels * SUMS,
                       .turned = c->turned,
                       .next = next.chunk < c->chunk_end ? &q : NULL};
    if (later.chunk < c->chunk_end) look_ahead(c, &later, &p);
    c->kernels->slices->coarse_product(&p);
}

static void multiply(void *arg, int64_t task, int64_t slot)
{
    const coarse *c = arg;
    const int64_t panels = c->panel_end - c->panel, line = (c->first + task) * c->parts * LINES;
    const int64_t lines = gnomon_min(c->parts * LINES, c->lines - line);
    const int64_t parts = gnomon_ceil_div(lines, LINES);
    float *sums = c->sums + slot * c->parts * c->panels * SUMS;
    uint16_t *part[2] = {c->part + slot * 2 * GNOMON_COARSE_PART};
    part[1] = part[0] + GNOMON_COARSE_PART;
    turn t = {.line = line, .lines = lines, .parts = parts, .chunk = c->chunk};
    const gnomon_coarse_part begin = part_of(c, &t, part[0]);
    c->kernels->slices->begin();
    c->kernels->slices->coarse_part(&begin);
    for (int64_t first = c->chunk; first < c->chunk_end; first += GROUP) {
        const int64_t end = gnomon_min(first + GROUP, c->chunk_end);
        memset(sums, 0, (size_t)(parts * panels * SUMS) * sizeof *sums);
        for (; t.chunk < end; t = after(&t)) {
            uint16_t *made = part[1];
            multiply_part(c, &t, part, sums);
            part[1] = part[0];
            part[0] = made;
        }
        for (int64_t i = 0; i < parts * panels; i++) {
            const int64_t col = (c->panel + i % panels) * LINES, of_part = i / panels * LINES;
            const area at = {line + of_part, gnomon_min(LINES, lines - of_part), col,
                             gnomon_min(LINES, c->b->cols - col)};
            put(c, &at, !c->onto && first == 0, sums + i * SUMS);
        }
    }
    c->kernels->slices->end();
}

/* ---- the whole ---- */

static bool bytes_of(const coarse *c, int64_t *bytes)
{
    int64_t packed;
    *bytes = 4096 + c->slots * (2 * GNOMON_COARSE_PART * (int64_t)sizeof *c->part +
                                c->parts * c->panels * SUMS * (int64_t)sizeof *c->sums);
    return gnomon_mul(c->chunks, c->panels * GNOMON_COARSE_PANEL * (int64_t)sizeof *c->packed,
                      &packed) &&
           gnomon_add(*bytes, packed, bytes);
}

static gnomon_status choose_sizes(gnomon_context *ctx, coarse *c, int64_t limit)
{
    int64_t bytes;
    c->chunks = gnomon_ceil_div(c->steps, STEPS);
    c->panels = gnomon_ceil_div(c->b->cols, LINES);
    c->slots = gnomon_context_threads(ctx);
    c->parts = PARTS;
    while (c->parts > LEAST_PARTS && gnomon_ceil_div(c->lines, c->parts * LINES) < 2 * c->slots &&
           c->slots > 1)
        c->parts /= 2;
    while (!bytes_of(c, &bytes) || bytes > limit) {
        if (c->chunks > GROUP)
            c->chunks = gnomon_round_up((c->chunks + 1) / 2, GROUP);
        else if (c->panels > 1)
            c->panels = (c->panels + 1) / 2;
        else if (c->slots > 1)
            c->slots = (c->slots + 1) / 2;
        else if (c->parts > 1)
            c->parts /= 2;
        else
            return gnomon_gemm_no_room(ctx, limit, bytes);
    }
    return GNOMON_OK;
}

static int64_t wave_of(gnomon_context *ctx, const coarse *c, int64_t tasks)
{
    const double work =
        (double)(c->parts * LINES) * (double)(c->panels * LINES) * (double)(c->chunks * STEPS);
    return gnomon_gemm_wave(ctx, tasks, c->slots, 5e9, work);
}

static gnomon_status run_all(gnomon_context *ctx, coarse *c)
{
    const int64_t chunks = gnomon_ceil_div(c->steps, STEPS),
                  panels = gnomon_ceil_div(c->b->cols, LINES);
    const int64_t tasks = gnomon_ceil_div(c->lines, c->parts * LINES),
                  wave = wave_of(ctx, c, tasks);
    for (c->panel = 0; c->panel < panels; c->panel = c->panel_end) {
        c->panel_end = gnomon_min(panels, c->panel + c->panels);
        for (c->chunk = 0; c->chunk < chunks; c->chunk = c->chunk_end) {
            c->chunk_end = gnomon_min(chunks, c->chunk + c->chunks);
            gnomon_parallel(ctx, c->chunk_end - c->chunk, pack, c);
            for (c->first = 0; c->first < tasks; c->first += wave) {
                GNOMON_TRY(gnomon_progress(ctx, "multiply", c->panel * chunks + c->chunk,
                                           panels * chunks));
                gnomon_in_slots(ctx, c->slots, gnomon_min(wave, tasks - c->first), multiply, c);
            }
        }
    }
    return gnomon_progress(ctx, "multiply", panels * chunks, panels * chunks);
}

static gnomon_status allocate(gnomon_context *ctx, coarse *c)
{
    GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(c->chunks, c->panels * GNOMON_COARSE_PANEL),
                            sizeof *c->packed, "packed columns", &c->packed));
    GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(c->slots, 2 * GNOMON_COARSE_PART), sizeof *c->part,
                            "packed rows", &c->part));
    return gnomon_alloc(ctx, gnomon_times(c->slots, c->parts * c->panels * SUMS), sizeof *c->sums,
                        "the sums", &c->sums);
}

gnomon_status gnomon_gemm_coarse(gnomon_context *ctx, const gnomon_matrix *a,
                                 const gnomon_matrix *b, bool onto, const gnomon_matrix *c,
                                 int64_t memory_limit)
{
    const bool turned = a->col_stride != 1;
    coarse run = {.kernels = gnomon_context_kernels(ctx),
                  .a = a->data,
                  .ld = turned ? a->col_stride : a->row_stride,
                  .lines = a->rows,
                  .steps = a->cols,
                  .turned = turned,
                  .onto = onto,
                  .b = b,
                  .c = c};
    GNOMON_TRY(choose_sizes(ctx, &run, memory_limit));
    gnomon_status status = allocate(ctx, &run);
    if (status == GNOMON_OK) status = run_all(ctx, &run);
    gnomon_free(ctx, run.packed);
    gnomon_free(ctx, run.part);
    gnomon_free(ctx, run.sums);
    return status;
}

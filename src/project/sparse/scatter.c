#include "project/sparse/scatter.h"

#include "base/arithmetic.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "project/slots.h"
#include "project/sparse/distinct.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum {
    GROUP = 8 << 20, /* bytes of columns that are made at once */
    COLUMNS = 64,    /* dense columns a task */
    POINTS = 16,     /* points a task */
    ROWS = 64        /* the multiple at which the rows of dense columns are cut */
};

/* Columns [begin, end) of the list of touched ones, which are made now. */
typedef struct scatter_run {
    const gnomon_scatter *s;
    const gnomon_kind_kernels *kind;
    gnomon_distinct distinct;
    int64_t begin, end;
    int64_t room_columns; /* of a group */
    int64_t cuts;         /* of the rows */
    float *columns;       /* dense kinds */
    /* sparse kinds: the nonzeros of column c of the group are entries[from[c]] .. [to[c] - 1] */
    int64_t *entries, *from, *to;
    int64_t entries_room;
    int64_t *starts;      /* what the kernels write: task t's from column + t on */
    int64_t *task_column; /* where the columns of task t begin in the group */
    int64_t *task_entry;  /* and its entries */
    int64_t *task_found;  /* how many entries there were */
    int64_t tasks;
    char *scratch;
    int64_t scratch_bytes, slots;
} scatter_run;

static void column_task(void *arg, int64_t task, int worker)
{
    (void)worker;
    const scatter_run *r = arg;
    const gnomon_scatter *s = r->s;
    const int64_t at = r->begin + task * COLUMNS, count = gnomon_min(COLUMNS, r->end - at);
    r->kind->columns_f32(s->a, s->row, s->rows, r->distinct.list + at, count,
                         r->columns + task * COLUMNS * s->rows);
}

static void list_task(void *arg, int64_t task, int64_t slot)
{
    scatter_run *r = arg;
    const gnomon_scatter *s = r->s;
    const int64_t first = r->task_column[task], count = r->task_column[task + 1] - first;
    const int64_t entry = r->task_entry[task], room = r->task_entry[task + 1] - entry;
    int64_t *start = r->starts + first + task;
    r->task_found[task] =
        r->kind->lists(s->a, s->row, s->rows, r->distinct.list + r->begin + first, count, room,
                       start, r->entries + entry, r->scratch + slot * r->scratch_bytes);
    if (r->task_found[task] > room) return;
    for (int64_t c = 0; c < count; c++) {
        r->from[first + c] = entry + start[c];
        r->to[first + c] = entry + start[c + 1];
    }
}

/* Entries that so many columns will hardly exceed. */
static int64_t expected_entries(const gnomon_scatter *s, int64_t columns)
{
    if (s->a->column_entries > 0) return columns * gnomon_min(s->a->column_entries, s->rows);
    const double mean = (double)columns * (double)s->rows * s->a->fill;
    const double most = (double)columns * (double)s->rows;
    const double guess = mean + 8 * sqrt(mean) + 16;
    return (int64_t)(guess < most ? guess : most);
}

/* Cuts the group's columns into tasks, one a chunk of the kernels. */
static void cut_lists(scatter_run *r)
{
    const int64_t chunk = r->kind->lists_cols(r->s->a);
    const int64_t *list = r->distinct.list + r->begin;
    r->tasks = 0;
    for (int64_t c = 0; c < r->end - r->begin; c++) {
        if (c == 0 || list[c] / chunk != list[c - 1] / chunk) r->task_column[r->tasks++] = c;
    }
    r->task_column[r->tasks] = r->end - r->begin;
}

static gnomon_status make_lists(scatter_run *r)
{
    const gnomon_scatter *s = r->s;
    cut_lists(r);
    for (int64_t t = 0; t < r->tasks; t++)
        r->task_found[t] = expected_entries(s, r->task_column[t + 1] - r->task_column[t]);
    for (bool again = true; again;) {
        r->task_entry[0] = 0;
        for (int64_t t = 0; t < r->tasks; t++)
            r->task_entry[t + 1] = r->task_entry[t] + r->task_found[t];
        const int64_t needed = r->task_entry[r->tasks];
        GNOMON_TRY(gnomon_renew(s->ctx, &r->entries, &r->entries_room, needed, sizeof *r->entries,
                                "the nonzeros of columns"));
        gnomon_in_slots(s->ctx, r->slots, r->tasks, list_task, r);
        again = false;
        for (int64_t t = 0; t < r->tasks; t++) {
            const int64_t room = r->task_entry[t + 1] - r->task_entry[t];
            if (r->task_found[t] > room)
                again = true;
            else
                r->task_found[t] = room;
        }
    }
    return GNOMON_OK;
}

/* The first of a point's entries whose column is not before col. */
static int64_t first_entry(const gnomon_scatter *s, int64_t point, int64_t col)
{
    int64_t lo = s->start[point], hi = s->stop[point];
    while (lo < hi) {
        const int64_t middle = lo + (hi - lo) / 2;
        if (s->col[middle] < col)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

static void add_column(const scatter_run *r, int64_t entry, int64_t c, int64_t row, int64_t rows,
                       int64_t to)
{
    const gnomon_scatter *s = r->s;
    const float *column = r->columns + c * s->rows + row;
    if (s->f64)
        s->kernels->axpy_f64(rows, ((const double *)(const void *)s->value)[entry], column,
                             (double *)(void *)s->sums + to);
    else
        s->kernels->axpy_f32(rows, ((const float *)(const void *)s->value)[entry], column,
                             (float *)(void *)s->sums + to);
}

/* The column's nonzeros in rows [row, row + rows). */
static void add_list(const scatter_run *r, int64_t entry, int64_t c, int64_t row, int64_t rows,
                     int64_t to)
{
    const gnomon_scatter *s = r->s;
    for (int64_t e = r->from[c]; e < r->to[c]; e++) {
        const bool negative = r->entries[e] < 0;
        const int64_t i = (negative ? ~r->entries[e] : r->entries[e]) - row;
        if (i < 0 || i >= rows) continue;
        if (s->f64) {
            const double x = ((const double *)(const void *)s->value)[entry];
            ((double *)(void *)s->sums)[to + i] += negative ? -x : x;
        } else {
            const float x = ((const float *)(const void *)s->value)[entry];
            ((float *)(void *)s->sums)[to + i] += negative ? -x : x;
        }
    }
}

static void point_task(void *arg, int64_t task, int worker)
{
    (void)worker;
    const scatter_run *r = arg;
    const gnomon_scatter *s = r->s;
    const int64_t first_col = r->distinct.list[r->begin], cut = task % r->cuts;
    const int64_t last_col = r->distinct.list[r->end - 1];
    const int64_t end = gnomon_min(s->points, (task / r->cuts + 1) * POINTS);
    for (int64_t v = task / r->cuts * POINTS; v < end; v++) {
        int64_t row = s->uneven ? s->uneven[2 * v] : 0, to = s->to[v];
        int64_t rows = s->uneven ? s->uneven[2 * v + 1] : s->rows;
        if (r->cuts > 1) {
            const int64_t units = (rows + ROWS - 1) / ROWS;
            const int64_t from = units * cut / r->cuts * ROWS;
            rows = gnomon_min(units * (cut + 1) / r->cuts * ROWS, rows) - from;
            row += from;
            to += from;
        }
        if (rows <= 0) continue;
        for (int64_t e = first_entry(s, v, first_col); e < s->stop[v]; e++) {
            if (s->col[e] > last_col) break;
            const int64_t c = gnomon_distinct_rank(&r->distinct, s->col[e]) - r->begin;
            if (r->columns)
                add_column(r, e, c, row, rows, to);
            else
                add_list(r, e, c, row, rows, to);
        }
    }
}

/* Columns of a group, and what they need. */
static gnomon_status open_group(scatter_run *r)
{
    const gnomon_scatter *s = r->s;
    gnomon_context *ctx = s->ctx;
    const int64_t budget = gnomon_min(GROUP, s->memory / 2), threads = gnomon_context_threads(ctx);
    int64_t each = s->rows * (int64_t)sizeof *r->columns;
    if (!r->kind->columns_f32)
        each = 8 * (4 + 3) + 8 * (expected_entries(s, COLUMNS) / COLUMNS + 1);
    r->room_columns = gnomon_min(r->distinct.count, budget / each > 0 ? budget / each : 1);
    GNOMON_FAIL_IF(
        each > s->memory, ctx, GNOMON_ERROR_MEMORY,
        GNOMON_ARG("memory_limit") " is too low for this operator: %" PRId64
                                   " bytes of it are left for one column, which takes %" PRId64,
        s->memory, each);
    if (r->kind->columns_f32)
        return gnomon_alloc(ctx, r->room_columns, (size_t)each, "columns of the operator",
                            &r->columns);
    r->scratch_bytes =
        (r->kind->lists_scratch(s->a) + GNOMON_ALIGN - 1) / GNOMON_ALIGN * GNOMON_ALIGN;
    r->slots = threads;
    if (r->scratch_bytes > 0 && s->memory / 4 / r->scratch_bytes < threads)
        r->slots = s->memory / 4 / r->scratch_bytes;
    GNOMON_FAIL_IF(r->slots < 1, ctx, GNOMON_ERROR_MEMORY,
                   GNOMON_ARG("memory_limit") " is too low for this operator: %" PRId64
                                              " bytes of it are left for the nonzeros of one "
                                              "chunk, which take %" PRId64,
                   s->memory / 4, r->scratch_bytes);
    const int64_t n = r->room_columns;
    GNOMON_TRY(gnomon_alloc(ctx, r->slots, (size_t)r->scratch_bytes, "scratch", &r->scratch));
    GNOMON_TRY(gnomon_alloc(ctx, n, 8, "the nonzeros of columns", &r->from));
    GNOMON_TRY(gnomon_alloc(ctx, n, 8, "the nonzeros of columns", &r->to));
    GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(2, n), 8, "the nonzeros of columns", &r->starts));
    GNOMON_TRY(gnomon_alloc(ctx, n + 1, 8, "the nonzeros of columns", &r->task_column));
    GNOMON_TRY(gnomon_alloc(ctx, n + 1, 8, "the nonzeros of columns", &r->task_entry));
    return gnomon_alloc(ctx, n, 8, "the nonzeros of columns", &r->task_found);
}

static gnomon_status run_groups(scatter_run *r)
{
    const gnomon_scatter *s = r->s;
    GNOMON_TRY(gnomon_distinct_open(s->ctx, &r->distinct, s->points, s->start, s->stop, s->col,
                                    s->memory / 8));
    if (r->distinct.count == 0) return GNOMON_OK;
    GNOMON_TRY(open_group(r));
    const int64_t tasks = (s->points + POINTS - 1) / POINTS;
    const int64_t threads = gnomon_context_threads(s->ctx);
    r->cuts = 1;
    if (r->columns && tasks < 4 * threads)
        r->cuts = gnomon_min((s->rows + ROWS - 1) / ROWS, (4 * threads + tasks - 1) / tasks);
    for (; r->begin < r->distinct.count; r->begin = r->end) {
        GNOMON_TRY(gnomon_progress(s->ctx, "project", s->report_at, s->report_of));
        r->end = gnomon_min(r->distinct.count, r->begin + r->room_columns);
        if (r->columns)
            gnomon_parallel(s->ctx, (r->end - r->begin + COLUMNS - 1) / COLUMNS, column_task, r);
        else
            GNOMON_TRY(make_lists(r));
        gnomon_parallel(s->ctx, tasks * r->cuts, point_task, r);
    }
    return GNOMON_OK;
}

gnomon_status gnomon_scatter_run(const gnomon_scatter *s)
{
    scatter_run r = {.s = s, .kind = gnomon_kernels_for(s->kernels, s->a)};
    const gnomon_status status = run_groups(&r);
    gnomon_distinct_close(s->ctx, &r.distinct);
    gnomon_free(s->ctx, r.columns);
    gnomon_free(s->ctx, r.entries);
    gnomon_free(s->ctx, r.from);
    gnomon_free(s->ctx, r.to);
    gnomon_free(s->ctx, r.starts);
    gnomon_free(s->ctx, r.task_column);
    gnomon_free(s->ctx, r.task_entry);
    gnomon_free(s->ctx, r.task_found);
    gnomon_free(s->ctx, r.scratch);
    return status;
}

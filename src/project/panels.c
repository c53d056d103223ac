#include "project/panels.h"

#include "base/arithmetic.h"
#include "base/memory.h"
#include "base/threads.h"

enum { NOTE = sizeof(gnomon_panel) + sizeof(int64_t) }; /* bytes beside a panel's data */

void gnomon_panels_cut(gnomon_panels *p, const gnomon_kind_kernels *kind, const gnomon_simple *a,
                       int64_t row, int64_t rows, int64_t col, int64_t cols, bool smallest)
{
    *p = (gnomon_panels){.kind = kind, .a = a, .row = row, .rows = rows, .col = col, .cols = cols};
    p->chunk = kind->chunk_cols(a);
    p->panel_rows = rows;
    if (kind->rows_multiple > 0) {
        const int64_t most = smallest ? kind->rows_multiple : kind->panel_rows(a);
        p->panel_rows = gnomon_min(rows, most);
    }
    p->per_chunk = (rows - 1) / p->panel_rows + 1;
    p->chunks = (col + cols - 1) / p->chunk - col / p->chunk + 1;
    p->total = p->per_chunk * p->chunks;
}

gnomon_panel gnomon_panels_at(const gnomon_panels *p, int64_t number)
{
    const int64_t c = p->col / p->chunk + number / p->per_chunk;
    const int64_t r = number % p->per_chunk * p->panel_rows;
    const int64_t begin = c * p->chunk > p->col ? c * p->chunk : p->col;
    const int64_t end = gnomon_min((c + 1) * p->chunk, p->col + p->cols);
    return (gnomon_panel){.a = p->a,
                          .row = p->row + r,
                          .rows = gnomon_min(p->panel_rows, p->rows - r),
                          .col = begin,
                          .cols = end - begin};
}

void gnomon_panel_fill(const gnomon_kind_kernels *kind, const gnomon_panel *panel)
{
    const int64_t pieces = kind->pieces(panel);
    for (int64_t i = 0; i < pieces; i++)
        kind->fill(panel, i);
    if (kind->seal) kind->seal(panel);
}

static int64_t bytes_of(const gnomon_panels *p, int64_t rows, int64_t cols)
{
    return gnomon_round_up(p->kind->panel_bytes(p->a, rows, cols), GNOMON_ALIGN);
}

int64_t gnomon_panels_largest(const gnomon_panels *p)
{
    return bytes_of(p, p->panel_rows, gnomon_min(p->chunk, p->cols)) + 2 * NOTE;
}

int64_t gnomon_panels_chunk_bytes(const gnomon_panels *p)
{
    int64_t bytes;
    return gnomon_mul(gnomon_panels_largest(p), p->per_chunk, &bytes) ? bytes : INT64_MAX;
}

int64_t gnomon_panels_bytes(const gnomon_panels *p, int64_t limit)
{
    const int64_t each = gnomon_panels_largest(p);
    int64_t bytes;
    if (gnomon_mul(each, p->total, &bytes) && bytes <= limit) return bytes;
    return INT64_MAX;
}

gnomon_status gnomon_panels_open(gnomon_context *ctx, gnomon_panels *p, int64_t bytes)
{
    const int64_t each = gnomon_panels_largest(p);
    p->room = gnomon_min(p->total, bytes / each);
    if (p->room < 1) p->room = 1;
    p->data_room = p->room * (each - 2 * NOTE);
    p->first = -1;
    p->count = 0;
    gnomon_status status = gnomon_alloc(ctx, p->data_room, 1, "a window of the operator", &p->data);
    if (status == GNOMON_OK)
        status = gnomon_alloc(ctx, p->room, sizeof *p->panel, "the panels' table", &p->panel);
    if (status == GNOMON_OK)
        status =
            gnomon_alloc(ctx, p->room + 1, sizeof *p->pieces, "the panels' pieces", &p->pieces);
    if (status != GNOMON_OK) gnomon_panels_close(ctx, p);
    return status;
}

void gnomon_panels_close(gnomon_context *ctx, gnomon_panels *p)
{
    gnomon_free(ctx, p->data);
    gnomon_free(ctx, p->panel);
    gnomon_free(ctx, p->pieces);
    p->data = NULL;
    p->panel = NULL;
    p->pieces = NULL;
    p->room = 0;
    p->first = -1;
}

static void fill_piece(void *arg, int64_t task, int worker)
{
    (void)worker;
    const gnomon_panels *p = arg;
    int64_t lo = 0, hi = p->count; /* the panel whose piece it is lies in [lo, hi) */
    while (hi - lo > 1) {
        const int64_t middle = lo + (hi - lo) / 2;
        if (p->pieces[middle] <= task)
            lo = middle;
        else
            hi = middle;
    }
    p->kind->fill(&p->panel[lo], task - p->pieces[lo]);
}

static void seal_panel(void *arg, int64_t task, int worker)
{
    (void)worker;
    const gnomon_panels *p = arg;
    p->kind->seal(&p->panel[task]);
}

void gnomon_panels_load(gnomon_context *ctx, gnomon_panels *p, int64_t first)
{
    if (p->first == first) return;
    int64_t count = gnomon_min(p->room, p->total - first);
    const int64_t past = (first + count) % p->per_chunk; /* panels of a chunk that would be cut */
    if (count > past)
        count -= past;
    else
        count = gnomon_min(count, p->per_chunk - first % p->per_chunk);
    p->first = first;
    p->count = count;
    int64_t pieces = 0, used = 0;
    for (int64_t i = 0; i < count; i++) {
        p->panel[i] = gnomon_panels_at(p, first + i);
        p->panel[i].data = p->data + used;
        used += bytes_of(p, p->panel[i].rows, p->panel[i].cols);
        p->pieces[i] = pieces;
        pieces += p->kind->pieces(&p->panel[i]);
    }
    p->pieces[count] = pieces;
    gnomon_parallel(ctx, pieces, fill_piece, p);
    if (p->kind->seal) gnomon_parallel(ctx, count, seal_panel, p);
}

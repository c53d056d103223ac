/* Projections of unfoldings, several modes in one pass. The columns of mode n's unfolding are
 * numbered as they lie, so a slab holds a range of them, and so does a segment; gnomon_stream takes
 * those in any pieces with the bits of one call. */
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "hosvd/slab_pass.h"
#include "hosvd/work.h"
#include "project/job.h"

#include <string.h>

/* Lines of at least LONG_LINE columns go to the stream as they lie; shorter ones are put together
 * to about PUSH numbers. */
enum { LONG_LINE = 2048, PUSH = 1 << 20 };

typedef struct gather {
    const gnomon_cube *slab;
    int mode;
    int64_t right, first, count; /* lines [first, first + count) of 'left' */
    char *out;
} gather;

static void gather_row(void *arg, int64_t row, int worker)
{
    (void)worker;
    const gather *g = arg;
    const size_t line = (size_t)g->right * gnomon_tall_size(g->slab->f64);
    const int64_t length = g->slab->size[g->mode];
    char *to = g->out + (size_t)(row * g->count) * line;
    const char *from = (const char *)g->slab->data + (size_t)(g->first * length + row) * line;
    for (int64_t l = 0; l < g->count; l++)
        memcpy(to + (size_t)l * line, from + (size_t)(l * length) * line, line);
}

static gnomon_status push(gnomon_context *ctx, const gnomon_cube *slab, int mode,
                          gnomon_stream *stream)
{
    const gnomon_strips s = gnomon_strips_cut(slab, mode, 1, 0);
    const int64_t length = slab->size[mode];
    const size_t size = gnomon_tall_size(slab->f64);
    const gnomon_dtype dtype = slab->f64 ? GNOMON_F64 : GNOMON_F32;
    gnomon_matrix piece = {slab->data, dtype, GNOMON_HOST, length, s.right, s.right, 1};
    if (s.column_major) {
        piece.cols = s.left;
        piece.row_stride = 1;
        piece.col_stride = length;
        return gnomon_stream_push(stream, &piece);
    }
    if (s.right >= LONG_LINE || s.left == 1) {
        for (int64_t l = 0; l < s.left; l++) {
            piece.data = (char *)slab->data + (size_t)(l * length * s.right) * size;
            GNOMON_TRY(gnomon_stream_push(stream, &piece));
        }
        return GNOMON_OK;
    }
    int64_t together = PUSH / (length * s.right);
    together = together < 1 ? 1 : together < s.left ? together : s.left;
    gather g = {slab, mode, s.right, 0, 0, NULL};
    GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(gnomon_times(together, length), s.right), size,
                            "a piece of an unfolding", &g.out));
    gnomon_status status = GNOMON_OK;
    for (; g.first < s.left && status == GNOMON_OK; g.first += g.count) {
        g.count = s.left - g.first < together ? s.left - g.first : together;
        gnomon_parallel(ctx, length, gather_row, &g);
        piece.data = g.out;
        piece.cols = piece.row_stride = g.count * s.right;
        status = gnomon_stream_push(stream, &piece);
    }
    gnomon_free(ctx, g.out);
    return status;
}

static gnomon_sketch_options options_for(int64_t row, int64_t rows)
{
    gnomon_sketch_options options = GNOMON_SKETCH_OPTIONS_INIT;
    options.row = row;
    options.rows = rows;
    options.allow_nonfinite = 1; /* it was scanned already */
    return options;
}

/* The outermost mode: a slab has whole rows of its unfolding. */
static gnomon_status sketch_rows(gnomon_context *ctx, const gnomon_cube *slab,
                                 const gnomon_operator *op, int64_t row, int64_t count, void *y)
{
    const gnomon_sketch_options options = options_for(row, count);
    const gnomon_dtype dtype = slab->f64 ? GNOMON_F64 : GNOMON_F32;
    const gnomon_matrix x = gnomon_matrix_rowmajor(slab->data, dtype, slab->size[0],
                                                   gnomon_cube_count(slab) / slab->size[0]);
    const gnomon_matrix out = gnomon_matrix_rowmajor(y, dtype, slab->size[0], count);
    return gnomon_sketch_at(ctx, GNOMON_ON_CPU, op, &x, &out, &options);
}

/* A segment's result is its sums for each mode but the outermost, by the list, and then rows of
 * that one. On rank 0 these go to their places. */
static gnomon_status shape_project(gnomon_slab_pass *p)
{
    const int64_t size = (int64_t)gnomon_tall_size(p->x->source.f64);
    p->rows_in_place = true;
    for (int i = 0; i < p->list; i++) {
        const gnomon_tall *y = &p->factor[p->modes[i]];
        if (p->modes[i] == 0)
            p->row_bytes = y->cols * size;
        else
            p->numbers = gnomon_plus(p->numbers, gnomon_times(y->rows, y->cols));
    }
    return GNOMON_OK;
}

/* The columns of the segment are a range of those of all. */
static gnomon_status open_stream(gnomon_slab_pass *p, int i, const gnomon_slab *slab)
{
    const gnomon_tall *y = &p->factor[p->modes[i]];
    gnomon_sketch_options options = options_for(p->row, y->cols);
    gnomon_cube cube = slab->cube;
    cube.size[0] = slab->end - slab->begin;
    const int64_t columns = gnomon_cube_count(&cube) / y->rows;
    cube.size[0] = 1;
    options.col = slab->begin * (gnomon_cube_count(&cube) / y->rows);
    return gnomon_stream_at(p->x->source.ctx, GNOMON_ON_CPU, p->op[i], y->rows, columns,
                            y->f64 ? GNOMON_F64 : GNOMON_F32, &options, &p->stream[i]);
}

static gnomon_status finish_stream(gnomon_slab_pass *p, int i, void *result)
{
    const gnomon_tall *y = &p->factor[p->modes[i]];
    const gnomon_matrix out =
        gnomon_matrix_rowmajor(result, y->f64 ? GNOMON_F64 : GNOMON_F32, y->rows, y->cols);
    const gnomon_status status = gnomon_stream_finish(p->stream[i], &out);
    gnomon_stream_destroy(p->stream[i]);
    p->stream[i] = NULL;
    return status;
}

/* Where rows of the outermost mode's projection go. */
static void *row_place(const gnomon_slab_pass *p, const gnomon_slab *slab, void *result)
{
    const gnomon_tall *y = &p->factor[0];
    if (!gnomon_row_serves(&p->x->source)) return gnomon_tall_row(y, slab->row);
    return (char *)result + p->numbers * (int64_t)gnomon_tall_size(y->f64) +
           (slab->row - slab->begin) * p->row_bytes;
}

static gnomon_status add_projected(gnomon_slab_pass *p, const gnomon_slab *slab, void *result)
{
    gnomon_context *ctx = p->x->source.ctx;
    gnomon_slab all = *slab;
    bool last = slab->row + slab->cube.size[0] == slab->end;
    char *sums = result;
    /* Of a tensor in place a segment is a slab too, with the same bits, so that operators are made
     * once; and all of one that is not divided, for the outermost mode. */
    const gnomon_cube whole = gnomon_slabs_in_place(p->x);
    if (whole.data != NULL) {
        if (!slab->first) return GNOMON_OK;
        all.cube = gnomon_part_of_cube(&whole, slab->own, slab->end - slab->begin);
        last = true;
    }
    for (int i = 0; i < p->list; i++) {
        const int mode = p->modes[i];
        const gnomon_tall *y = &p->factor[mode];
        if (mode == 0) {
            const bool divided = whole.data == NULL || gnomon_row_divided(&p->x->source);
            if (divided || slab->begin == 0)
                GNOMON_TRY(sketch_rows(ctx, divided ? &all.cube : &whole, p->op[i], p->row, y->cols,
                                       row_place(p, slab, result)));
            continue;
        }
        if (slab->first) GNOMON_TRY(open_stream(p, i, slab));
        GNOMON_TRY(push(ctx, &all.cube, mode, p->stream[i]));
        if (last) GNOMON_TRY(finish_stream(p, i, sums));
        sums += y->rows * y->cols * (int64_t)gnomon_tall_size(y->f64);
    }
    return GNOMON_OK;
}

static gnomon_status take_projected(gnomon_slab_pass *p, int64_t row, int64_t rows,
                                    const void *result, bool own)
{
    const char *sums = result;
    for (int i = 0; i < p->list; i++) {
        const gnomon_tall *y = &p->factor[p->modes[i]];
        const int64_t count = y->rows * y->cols, bytes = count * (int64_t)gnomon_tall_size(y->f64);
        if (p->modes[i] == 0) continue;
        if (row == 0)
            memcpy(y->data, sums, (size_t)bytes);
        else
            gnomon_row_pass_sum(p->x->source.ctx, y->f64, count, sums, y->data);
        sums += bytes;
    }
    if (p->row_bytes > 0 && !own)
        memcpy(gnomon_tall_row(&p->factor[0], row), sums, (size_t)(rows * p->row_bytes));
    return GNOMON_OK;
}

const gnomon_slab_step gnomon_step_project = {.kind = GNOMON_STEP_TENSOR_PROJECT,
                                              .shape = shape_project,
                                              .add = add_projected,
                                              .take = take_projected};

gnomon_status gnomon_slabs_sketch(gnomon_slabs *x, const int *modes, int list,
                                  gnomon_operator *const *op, int64_t row, const gnomon_tall *y)
{
    gnomon_slab_pass p = {.x = x, .kind = GNOMON_STEP_TENSOR_PROJECT, .list = list, .row = row};
    for (int i = 0; i < list; i++) {
        p.modes[i] = modes[i];
        p.factor[modes[i]] = y[i];
        p.op[i] = op[i];
    }
    return gnomon_slab_pass_run(&p);
}

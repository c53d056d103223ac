/* Projections of unfoldings, several modes in one pass. The columns of mode n's unfolding are
 * numbered as they lie, so a slab holds a range of them; gnomon_stream takes them in any pieces
 * with the bits of one call. */
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
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
static gnomon_status sketch_rows(gnomon_context *ctx, const gnomon_cube *slab, int64_t first,
                                 const gnomon_operator *op, int64_t row, const gnomon_tall *y)
{
    const gnomon_sketch_options options = options_for(row, y->cols);
    const gnomon_dtype dtype = slab->f64 ? GNOMON_F64 : GNOMON_F32;
    const gnomon_matrix x = gnomon_matrix_rowmajor(slab->data, dtype, slab->size[0],
                                                   gnomon_cube_count(slab) / slab->size[0]);
    const gnomon_matrix out =
        gnomon_matrix_rowmajor(gnomon_tall_row(y, first), dtype, slab->size[0], y->cols);
    return gnomon_sketch_at(ctx, GNOMON_ON_CPU, op, &x, &out, &options);
}

static gnomon_status pass(gnomon_slabs *x, const int *modes, int list, gnomon_operator *const *op,
                          gnomon_stream *const *stream, int64_t row, const gnomon_tall *y)
{
    gnomon_context *ctx = x->source.ctx;
    gnomon_cube slab = gnomon_slabs_in_place(x);
    const bool whole = slab.data != NULL; /* the same bits, and the operators are made once */
    int64_t first = 0;
    GNOMON_TRY(gnomon_slabs_rewind(x));
    for (bool more = true; more; more = !whole) {
        if (!whole) GNOMON_TRY(gnomon_slabs_next(x, &slab, &first));
        if (slab.size[0] == 0) break;
        for (int i = 0; i < list; i++)
            GNOMON_TRY(modes[i] == 0 ? sketch_rows(ctx, &slab, first, op[i], row, &y[i])
                                     : push(ctx, &slab, modes[i], stream[i]));
    }
    x->source.passes += whole;
    for (int i = 0; i < list; i++) {
        const gnomon_matrix out = gnomon_matrix_rowmajor(
            y[i].data, y[i].f64 ? GNOMON_F64 : GNOMON_F32, y[i].rows, y[i].cols);
        if (modes[i] > 0) GNOMON_TRY(gnomon_stream_finish(stream[i], &out));
    }
    return GNOMON_OK;
}

gnomon_status gnomon_slabs_sketch(gnomon_slabs *x, const int *modes, int list,
                                  gnomon_operator *const *op, int64_t row, const gnomon_tall *y)
{
    gnomon_stream *stream[GNOMON_TENSOR_MODES] = {NULL};
    gnomon_status status = GNOMON_OK;
    for (int i = 0; i < list && status == GNOMON_OK; i++) {
        const gnomon_sketch_options options = options_for(row, y[i].cols);
        if (modes[i] > 0)
            status = gnomon_stream_at(x->source.ctx, GNOMON_ON_CPU, op[i], y[i].rows,
                                      y[i].f64 ? GNOMON_F64 : GNOMON_F32, &options, &stream[i]);
    }
    if (status == GNOMON_OK) status = pass(x, modes, list, op, stream, row, y);
    for (int i = 0; i < list; i++)
        gnomon_stream_destroy(stream[i]);
    return status;
}

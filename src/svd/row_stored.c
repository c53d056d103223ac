/* Sparse rows as they are stored, in memory or from a stream: checked, and cut into pieces. */
#include "base/arithmetic.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "points/view.h"
#include "svd/row_source.h"

#include <inttypes.h>
#include <string.h>

enum {
    INDICES = 1 << 18, /* that a task checks */
    /* Of a stream's piece: a share of the memory limit, about 32 bytes each with their reader's. */
    PIECE_SHARE = 512,
    LEAST_NONZEROS = 1 << 14,
    PIECE_NONZEROS = 1 << 18
};

/* The first index of a task's that is no column, or -1. */
typedef struct indices {
    const gnomon_csr *a;
    int64_t count, *bad; /* one a task */
} indices;

static void find_bad(void *arg, int64_t task, int worker)
{
    (void)worker;
    const indices *x = arg;
    const int64_t from = task * INDICES;
    const int64_t end = x->count - from < INDICES ? x->count : from + INDICES;
    x->bad[task] = -1;
    for (int64_t i = from; i < end && x->bad[task] < 0; i++)
        if (x->a->indices[i] < 0 || x->a->indices[i] >= x->a->cols) x->bad[task] = i;
}

static gnomon_status check_indices(gnomon_context *ctx, const gnomon_csr *a, int64_t count,
                                   const char *name)
{
    const int64_t tasks = (count + INDICES - 1) / INDICES;
    indices x = {.a = a, .count = count};
    int64_t first = -1;
    GNOMON_TRY(gnomon_alloc(ctx, tasks, sizeof *x.bad, "the check of indices", &x.bad));
    gnomon_parallel(ctx, tasks, find_bad, &x);
    for (int64_t task = 0; task < tasks && first < 0; task++)
        first = x.bad[task];
    gnomon_free(ctx, x.bad);
    GNOMON_FAIL_IF(first >= 0, ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("%s.indices") "[%" PRId64 "] is %" PRId64 "; %s has %" PRId64
                                            " columns",
                   name, first, a->indices[first], name, a->cols);
    return GNOMON_OK;
}

gnomon_status gnomon_row_source_check_csr(gnomon_context *ctx, const gnomon_csr *a,
                                          const char *name)
{
    GNOMON_TRY(gnomon_check_csr(ctx, a, name));
    const int64_t count = a->rows > 0 ? a->offsets[a->rows] - a->offsets[0] : 0;
    return check_indices(ctx, a, count, name);
}

/* The rows of a stream from s->row on. */
static gnomon_status next_of_sparse_stream(gnomon_row_source *s, gnomon_piece *piece)
{
    const int64_t limit = gnomon_memory_limit(s->ctx) / PIECE_SHARE;
    const int64_t most =
        gnomon_min(PIECE_NONZEROS, limit > LEAST_NONZEROS ? limit : LEAST_NONZEROS);
    gnomon_csr *a = &piece->csr;
    memset(a, 0, sizeof *a);
    GNOMON_TRY(s->sparse_stream->next(s->sparse_stream->user, s->piece_rows, most, a));
    GNOMON_FAIL_IF(a->rows < 0 || a->rows > s->piece_rows, s->ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("rows.next") " gave %" PRId64 " rows; at most %" PRId64
                                           " were asked for",
                   a->rows, s->piece_rows);
    const int64_t have = s->row + a->rows;
    const bool wrong = s->rows >= 0 && (a->rows == 0 ? have != s->rows : have > s->rows);
    GNOMON_FAIL_IF(wrong, s->ctx, GNOMON_ERROR_SHAPE,
                   GNOMON_ARG("rows.next") " gave %" PRId64 " rows %s; %" PRId64 " were due", have,
                   a->rows == 0 ? "in all" : "and may give more", s->rows);
    piece->rows = a->rows;
    if (a->rows == 0) {
        s->rows = have;
        return GNOMON_OK;
    }
    GNOMON_FAIL_IF(a->cols != s->cols || a->dtype != s->stored, s->ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("rows.next") " gave rows of %" PRId64 " columns and the type %s; "
                                           "rows.cols and rows.dtype say %" PRId64 " and %s",
                   a->cols, gnomon_dtype_name(a->dtype), s->cols, gnomon_dtype_name(s->stored));
    return gnomon_row_source_check_csr(s->ctx, a, "rows.next");
}

/* Rows from 'row' on with PIECE_NONZEROS entries at most, but one of them. */
static int64_t rows_of_piece(const gnomon_csr *a, int64_t row, int64_t most)
{
    int64_t low = row + 1, high = row + most;
    while (low < high) {
        const int64_t middle = low + (high - low + 1) / 2;
        if (a->offsets[middle] - a->offsets[row] <= PIECE_NONZEROS)
            low = middle;
        else
            high = middle - 1;
    }
    return most > 0 ? low - row : 0;
}

gnomon_status gnomon_row_source_next_stored(gnomon_row_source *s, gnomon_piece *piece)
{
    memset(piece, 0, sizeof *piece);
    /* Within a pass too the work can be ended. */
    GNOMON_TRY(gnomon_progress(s->ctx, "passes", s->passes, -1));
    piece->row = piece->own = s->row;
    piece->sparse = true;
    if (s->sparse_stream != NULL) {
        GNOMON_TRY(next_of_sparse_stream(s, piece));
    } else {
        const int64_t here = s->ranks != NULL ? s->own_rows : s->rows;
        piece->rows = rows_of_piece(s->csr, s->row, gnomon_min(s->piece_rows, here - s->row));
        piece->csr = gnomon_csr_rows(s->csr, piece->row, piece->rows);
    }
    s->row += piece->rows;
    s->own = s->row;
    return GNOMON_OK;
}

/* Looking for NaN and infinity. A floating-point number is not finite exactly when its
 * exponent bits are all ones; adding the lowest exponent bit to the exponent field then
 * carries into the sign's place. OR-ing that over a run tells whether any element is bad
 * in integer steps that every compiler vectorises. */
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "points/view.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* True when any of count elements, step bytes apart, is not finite. */
typedef bool (*run_fn)(const unsigned char *p, int64_t count, int64_t step);

#define DEFINE_RUN(name, type, exponent)                                  \
    static bool name(const unsigned char *p, int64_t count, int64_t step) \
    {                                                                     \
        const type low = (type)((exponent) & (~(exponent) + 1));          \
        type carry = 0;                                                   \
        if (step == (int64_t)sizeof(type)) {                              \
            for (int64_t i = 0; i < count; i++) {                         \
                type bits;                                                \
                memcpy(&bits, p + i * (int64_t)sizeof bits, sizeof bits); \
                carry = (type)(carry | ((bits & (exponent)) + low));      \
            }                                                             \
        } else {                                                          \
            for (int64_t i = 0; i < count; i++) {                         \
                type bits;                                                \
                memcpy(&bits, p + i * step, sizeof bits);                 \
                carry = (type)(carry | ((bits & (exponent)) + low));      \
            }                                                             \
        }                                                                 \
        return carry >> (8 * sizeof(type) - 1);                           \
    }

DEFINE_RUN(run_f64, uint64_t, UINT64_C(0x7ff0000000000000))
DEFINE_RUN(run_f32, uint32_t, UINT32_C(0x7f800000))
DEFINE_RUN(run_f16, uint16_t, 0x7c00u)
DEFINE_RUN(run_bf16, uint16_t, 0x7f80u)

enum { LONG_SIDE = 4096, SHORT_SIDE = 64 }; /* of a tile, along and across the memory */

typedef struct search {
    const gnomon_matrix *m;
    run_fn run;
    int64_t size;
    bool by_rows;                    /* runs go along a row */
    int64_t tile_rows, tile_cols;    /* shape of a tile */
    int64_t tiles_across;            /* tiles in a band of rows */
    atomic_int_least64_t found_band; /* the first band known to hold a bad element */
    pthread_mutex_t lock;
    int64_t row, col; /* the first known bad element in row order; rows: none */
} search;

static const unsigned char *at(const search *s, int64_t row, int64_t col)
{
    const gnomon_matrix *m = s->m;
    return (const unsigned char *)m->data + (row * m->row_stride + col * m->col_stride) * s->size;
}

/* The index of the first bad one of count elements, or count. */
static int64_t first_bad(const search *s, const unsigned char *p, int64_t count, int64_t step)
{
    for (int64_t i = 0; i < count; i++)
        if (s->run(p + i * step, 1, step)) return i;
    return count;
}

/* Offers a bad element to the search. */
static void offer(search *s, int64_t row, int64_t col)
{
    pthread_mutex_lock(&s->lock);
    if (row < s->row || (row == s->row && col < s->col)) {
        s->row = row;
        s->col = col;
        atomic_store(&s->found_band, row / s->tile_rows);
    }
    pthread_mutex_unlock(&s->lock);
}

/* Offers the first bad element, in row order, of rows [row, row_end) x [col, col_end). */
static void search_tile(void *arg, int64_t task, int worker)
{
    (void)worker;
    search *s = arg;
    const gnomon_matrix *m = s->m;
    const int64_t band = task / s->tiles_across;
    if (band > atomic_load(&s->found_band)) return;
    const int64_t row = band * s->tile_rows, col = task % s->tiles_across * s->tile_cols;
    int64_t row_end = m->rows - row < s->tile_rows ? m->rows : row + s->tile_rows;
    const int64_t col_end = m->cols - col < s->tile_cols ? m->cols : col + s->tile_cols;
    if (s->by_rows) {
        const int64_t step = m->col_stride * s->size;
        for (int64_t i = row; i < row_end; i++) {
            const unsigned char *p = at(s, i, col);
            if (!s->run(p, col_end - col, step)) continue;
            offer(s, i, col + first_bad(s, p, col_end - col, step));
            return;
        }
        return;
    }
    const int64_t step = m->row_stride * s->size;
    for (int64_t j = col; j < col_end && row_end > row; j++) {
        const unsigned char *p = at(s, row, j);
        if (!s->run(p, row_end - row, step)) continue;
        /* Only an earlier row can now come before what this column holds. */
        row_end = row + first_bad(s, p, row_end - row, step);
        offer(s, row_end, j);
    }
}

static run_fn run_of(gnomon_dtype dtype)
{
    switch (dtype) {
    case GNOMON_F32:
        return run_f32;
    case GNOMON_F64:
        return run_f64;
    case GNOMON_F16:
        return run_f16;
    case GNOMON_BF16:
        return run_bf16;
    default:
        return NULL; /* integers are finite */
    }
}

gnomon_status gnomon_matrix_check_finite(gnomon_context *ctx, const gnomon_matrix *m, int64_t *row,
                                         int64_t *col)
{
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_TRY(gnomon_check_view(ctx, m, "m"));
    search s = {.m = m, .run = run_of(m->dtype), .size = (int64_t)gnomon_dtype_size(m->dtype)};
    if (!s.run || m->rows == 0 || m->cols == 0) return GNOMON_OK;
    const int64_t row_step = m->row_stride < 0 ? -m->row_stride : m->row_stride;
    const int64_t col_step = m->col_stride < 0 ? -m->col_stride : m->col_stride;
    s.by_rows = col_step <= row_step;
    /* A side of one element (or of stride 0) leaves the other as long as it is. */
    if (m->cols == 1) s.by_rows = false;
    if (m->rows == 1) s.by_rows = true;
    s.tile_rows = s.by_rows ? SHORT_SIDE : LONG_SIDE;
    s.tile_cols = s.by_rows ? LONG_SIDE : SHORT_SIDE;
    const int64_t bands = (m->rows - 1) / s.tile_rows + 1;
    s.tiles_across = (m->cols - 1) / s.tile_cols + 1;
    s.row = m->rows;
    atomic_init(&s.found_band, bands);
    int64_t tasks;
    GNOMON_FAIL_IF(!gnomon_mul(bands, s.tiles_across, &tasks), ctx, GNOMON_ERROR_OVERFLOW,
                   GNOMON_ARG("m") " is %" PRId64 " x %" PRId64
                                   ", more elements than can be counted",
                   m->rows, m->cols);
    pthread_mutex_init(&s.lock, NULL);
    gnomon_parallel(ctx, tasks, search_tile, &s);
    pthread_mutex_destroy(&s.lock);
    if (s.row == m->rows) return GNOMON_OK;
    if (row) *row = s.row;
    if (col) *col = s.col;
    return gnomon_fail(ctx, GNOMON_ERROR_NONFINITE,
                       "element (%" PRId64 ", %" PRId64 ") is NaN or infinite", s.row, s.col);
}

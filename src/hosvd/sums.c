/* Sums over the columns of an unfolding: they are cut into a few ranges, each task sums one into a
 * place of its own, and the places are added in their order. */
#include "hosvd/product.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "svd/blas.h"

#include <string.h>

enum { WIDTH = 512, SLICE = 256, GROUP = 1024, RANGES = 32, PLACES = 1 << 22 };

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

typedef struct sums {
    gnomon_strips strips;
    int mode;
    const gnomon_cube *a, *b; /* b NULL: a's Gram matrix */
    int64_t ranges, units;    /* units: strips, or slices of columns */
    int64_t numbers;          /* a place's */
    double *places;
    char *scratch; /* one a worker */
    size_t scratch_bytes, a_at, b_at;
} sums;

static void add_single(int64_t count, const void *part, bool wide, double *place)
{
    for (int64_t i = 0; i < count; i++)
        place[i] += wide ? ((const double *)part)[i] : (double)((const float *)part)[i];
}

/* A few strips' product in the work's type, then to the place. */
static void cross_range(const sums *s, int64_t from, int64_t end, char *scratch, double *place)
{
    const bool wide = s->a->wide;
    for (int64_t i = from; i < end;) {
        int64_t taken = 0;
        for (; i < end && taken < GROUP; i++) {
            const gnomon_sheet a =
                gnomon_strip_open(&s->strips, i, s->a, s->mode, scratch + s->a_at, true);
            const gnomon_sheet b =
                gnomon_strip_open(&s->strips, i, s->b, s->mode, scratch + s->b_at, true);
            gnomon_blas_gemm(wide, a.turned, !b.turned, a.rows, b.rows, a.cols, 1.0, a.data,
                             a.stride, b.data, b.stride, taken > 0 ? 1.0 : 0.0, scratch, b.rows);
            taken += a.cols;
        }
        add_single(s->numbers, scratch, wide, place);
    }
}

static void gram_range(const sums *s, int64_t from, int64_t end, char *scratch, double *place)
{
    const int64_t length = s->a->size[s->mode];
    for (int64_t i = from; i < end; i++) {
        const int64_t cols = least(SLICE, s->strips.columns - i * SLICE);
        gnomon_strip_widen(&s->strips, s->a, s->mode, i * SLICE, cols, (double *)(void *)scratch);
        gnomon_blas_gram(length, cols, (const double *)(const void *)scratch, place);
    }
}

static void sum_range(void *arg, int64_t task, int worker)
{
    const sums *s = arg;
    double *place = s->places + task * s->numbers;
    char *scratch = s->scratch + (size_t)worker * s->scratch_bytes;
    const int64_t from = task * s->units / s->ranges, end = (task + 1) * s->units / s->ranges;
    memset(place, 0, (size_t)s->numbers * sizeof *place);
    if (s->b != NULL)
        cross_range(s, from, end, scratch, place);
    else
        gram_range(s, from, end, scratch, place);
}

static gnomon_status add_up(gnomon_context *ctx, sums *s, double *sum)
{
    s->ranges = PLACES / (s->numbers > 0 ? s->numbers : 1);
    s->ranges = s->ranges < 2 ? 2 : s->ranges > RANGES ? RANGES : s->ranges;
    if (s->ranges > s->units) s->ranges = s->units;
    int64_t total;
    GNOMON_FAIL_IF(!gnomon_mul(s->ranges, s->numbers, &total), ctx, GNOMON_ERROR_OVERFLOW,
                   "sums over columns do not fit 63 bits");
    gnomon_status status =
        gnomon_alloc(ctx, total, sizeof(double), "sums over columns", &s->places);
    if (status == GNOMON_OK)
        status = gnomon_alloc(ctx, gnomon_context_threads(ctx), s->scratch_bytes,
                              "strips of a tensor", &s->scratch);
    if (status == GNOMON_OK) {
        gnomon_parallel(ctx, s->ranges, sum_range, s);
        for (int64_t r = 0; r < s->ranges; r++) {
            const double *place = s->places + r * s->numbers;
            for (int64_t i = 0; i < s->numbers; i++)
                sum[i] += place[i];
        }
    }
    gnomon_free(ctx, s->places);
    gnomon_free(ctx, s->scratch);
    return status;
}

gnomon_status gnomon_mode_cross(gnomon_context *ctx, const gnomon_cube *a, const gnomon_cube *b,
                                int mode, double *sum)
{
    const int64_t rows = a->size[mode], cols = b->size[mode];
    const size_t size = gnomon_tall_size(a->wide);
    sums s = {.mode = mode, .a = a, .b = b};
    GNOMON_FAIL_IF(!gnomon_mul(rows, cols, &s.numbers), ctx, GNOMON_ERROR_OVERFLOW,
                   "a mode's product does not fit 63 bits");
    s.strips = gnomon_strips_cut(a, mode, WIDTH, 0);
    if (s.strips.gathered) s.strips = gnomon_strips_cut(a, mode, WIDTH, rows + cols);
    s.units = s.strips.count;
    s.scratch_bytes = s.a_at = s.b_at = (size_t)s.numbers * size;
    if (s.strips.gathered) {
        s.b_at = s.a_at + (size_t)(rows * s.strips.width) * size;
        s.scratch_bytes = s.b_at + (size_t)(cols * s.strips.width) * size;
    }
    return add_up(ctx, &s, sum);
}

gnomon_status gnomon_mode_gram(gnomon_context *ctx, const gnomon_cube *a, int mode, double *gram)
{
    const int64_t length = a->size[mode];
    sums s = {.mode = mode, .a = a};
    GNOMON_FAIL_IF(!gnomon_mul(length, length, &s.numbers), ctx, GNOMON_ERROR_OVERFLOW,
                   "a mode's Gram matrix does not fit 63 bits");
    s.strips = gnomon_strips_cut(a, mode, WIDTH, 0);
    s.units = (s.strips.columns + SLICE - 1) / SLICE;
    s.scratch_bytes = (size_t)(SLICE * length) * sizeof(double);
    return add_up(ctx, &s, gram);
}

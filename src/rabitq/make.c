/* Points become codes. */
#include "rabitq/rabitq.h"

#include "base/arithmetic.h"
#include "base/context.h"
#include "base/device.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/threads.h"
#include "metric/metric.h"
#include "operator/philox.h"
#include "points/view.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

GNOMON_OPTIONS_INIT(gnomon_rabitq_options, GNOMON_RABITQ_OPTIONS_INIT)

/* ---- an index without codes ---- */

gnomon_status gnomon_rabitq_check_options(gnomon_context *ctx, const gnomon_rabitq_options *given,
                                          gnomon_rabitq_options *o)
{
    *o = (gnomon_rabitq_options)GNOMON_RABITQ_OPTIONS_INIT;
    if (given != NULL)
        GNOMON_TRY(GNOMON_COPY_OPTIONS(ctx, "options", gnomon_rabitq_options, given, o));
    GNOMON_FAIL_IF(o->metric != GNOMON_L2 && o->metric != GNOMON_COSINE, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("options.metric") " is %s; codes are for l2 and cosine",
                   gnomon_metric_name(o->metric));
    GNOMON_FAIL_IF(o->bits < 1 || o->bits > 8, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("options.bits") " is %" PRId64 "; it must be from 1 to 8", o->bits);
    GNOMON_FAIL_IF(o->codes_only != 0 && o->codes_only != 1, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("options.codes_only") " is %d; it must be 0 or 1", o->codes_only);
    return GNOMON_OK;
}

enum { TAG_SIGNS = 0x72616269, TAG_DITHER = 0x7261646f };

static void draw_signs(gnomon_rabitq *index)
{
    const uint64_t seed = index->options.seed;
    const uint32_t low = (uint32_t)seed, high = (uint32_t)(seed >> 32);
    for (int64_t i = 0; i < GNOMON_RABITQ_ROUNDS * index->m; i += 128) {
        const gnomon_words w = gnomon_philox((uint32_t)(i / 128), 0, 0, TAG_SIGNS, low, high);
        for (int64_t j = 0; j < 128 && i + j < GNOMON_RABITQ_ROUNDS * index->m; j++)
            index->signs[i + j] = (w.w[j / 32] >> (j % 32) & 1) != 0 ? -1 : 1;
    }
    for (int64_t j = 0; j < index->m; j++) {
        const gnomon_words w = gnomon_philox((uint32_t)j, 0, 0, TAG_DITHER, low, high);
        index->dither[j] = (double)w.w[0] * 0x1p-32;
    }
}

gnomon_status gnomon_rabitq_open_empty(gnomon_context *ctx, const gnomon_rabitq_options *o,
                                       int64_t points, int64_t dim, gnomon_rabitq **out)
{
    gnomon_rabitq *index;
    *out = NULL;
    GNOMON_FAIL_IF(dim < 1 || dim > GNOMON_RABITQ_MOST_DIM, ctx,
                   dim < 1 ? GNOMON_ERROR_ARGUMENT : GNOMON_ERROR_UNSUPPORTED,
                   GNOMON_ARG("points") " has %" PRId64 " columns; codes are for 1 to %d", dim,
                   GNOMON_RABITQ_MOST_DIM);
    GNOMON_FAIL_IF(points < 1, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("points") " has no rows; there must be one at least");
    GNOMON_FAIL_IF(points > UINT32_MAX - 1, ctx, GNOMON_ERROR_UNSUPPORTED,
                   GNOMON_ARG("points") " has %" PRId64 " rows; at most 2^32 - 2 are possible",
                   points);
    GNOMON_TRY(gnomon_alloc_zero(ctx, 1, sizeof *index, "an index", &index));
    index->ctx = ctx;
    index->options = *o;
    index->points = points;
    index->dim = dim;
    index->m = gnomon_rabitq_width(dim);
    index->scale = 1;
    gnomon_status status = gnomon_alloc(ctx, gnomon_times(GNOMON_RABITQ_ROUNDS, index->m),
                                        sizeof *index->signs, "a rotation", &index->signs);
    if (status == GNOMON_OK)
        status = gnomon_alloc(ctx, index->m, sizeof *index->dither, "a rotation", &index->dither);
    if (status != GNOMON_OK) {
        gnomon_rabitq_destroy(index);
        return status;
    }
    draw_signs(index);
    *out = index;
    return GNOMON_OK;
}

gnomon_status gnomon_rabitq_rooms(gnomon_context *ctx, int64_t m, gnomon_rabitq_room **rooms,
                                  double **numbers)
{
    const int threads = gnomon_context_threads(ctx);
    *rooms = NULL;
    *numbers = NULL;
    GNOMON_TRY(gnomon_alloc(ctx, threads, sizeof **rooms, "threads' memory", rooms));
    GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(threads, 2 * m), sizeof **numbers, "threads' memory",
                            numbers));
    for (int i = 0; i < threads; i++)
        (*rooms)[i] = (gnomon_rabitq_room){*numbers + 2 * m * i, *numbers + 2 * m * i + m};
    return GNOMON_OK;
}

/* ---- one point ---- */

static double factor_of(const gnomon_rabitq *index, const gnomon_kernels *k, const gnomon_matrix *x,
                        int64_t i)
{
    return index->options.metric == GNOMON_COSINE ? gnomon_inverse_norm(k->search, x, i) : 1;
}

void gnomon_rabitq_turn(const gnomon_rabitq *index, const gnomon_kernels *k, const gnomon_matrix *x,
                        int64_t i, gnomon_rabitq_room *room)
{
    const double factor = factor_of(index, k, x, i);
    k->search->to_f64(gnomon_row_at(x, i), x->dtype, x->col_stride, x->cols, room->x);
    for (int64_t j = 0; j < index->dim; j++)
        room->x[j] = (room->x[j] * factor - index->centre[j]) * index->scale;
    for (int64_t j = index->dim; j < index->m; j++)
        room->x[j] = 0;
    k->rabitq->rotate(room->x, index->m, index->signs, room->spare);
}

void gnomon_rabitq_encode(const gnomon_rabitq *index, const gnomon_kernels *k,
                          const gnomon_matrix *x, int64_t i, gnomon_rabitq_room *room, uint8_t *u,
                          float *floats, uint8_t *code, float *factors)
{
    double product;
    int64_t square;
    gnomon_rabitq_turn(index, k, x, i, room);
    const double norm = k->search->squares(room->x, GNOMON_F64, 1, index->m, 1);
    k->rabitq->round(room->x, index->m, (int)index->options.bits, u, floats, &product, &square);
    k->rabitq->pack(u, index->m, (int)index->options.bits, code);
    const bool there = product > 0x1p-100;
    const double by = there ? norm / product : 0;
    factors[0] = (float)norm;
    factors[1] = (float)(2 * by);
    if (index->options.bits == 1) return;
    /* |e|^2 = (by |y|)^2 - |o|^2; of a point so near the centre that it has no code, o itself */
    const double length = by * by * (double)square / 4, error = there ? length - norm : norm;
    factors[2] = gnomon_rabitq_above(2 * sqrt(error > 0 ? error : 0) + 1e-7 * sqrt(length));
}

void gnomon_rabitq_lanes_of(const gnomon_rabitq *index, int64_t row, int64_t count,
                            gnomon_rabitq_lanes *lanes)
{
    const float more = 1 + 0x1p-20f, less = 1 - 0x1p-20f;
    const int each = gnomon_rabitq_factors(index->options.bits);
    const float *factors = index->factors + row * each;
    const float quarter = (float)index->m / 4;
    for (int64_t l = 0; l < 16; l++) {
        const float *f = factors + (l < count ? l : 0) * each;
        float reach, length; /* of e, and of by / 2 * y, twice and squared */
        if (each == 2) {
            length = f[1] * f[1] * quarter * more;
            const float rest = length - 4 * f[0] * less;
            /* a point without a code is its own error */
            reach = f[1] > 0 ? sqrtf(rest > 0 ? rest : 0) * more : 2 * sqrtf(f[0]) * more;
        } else {
            reach = f[2];
            length = 4 * f[0] * more + f[2] * f[2];
        }
        /* the scan's roundings: below a share of 2^-20 of the squares */
        lanes->base[l] = f[0] * less - length * 0x1p-20f - 0x1p-100f;
        lanes->by[l] = -f[1];
        lanes->reach[l] = reach * more + 0x1p-60f;
        lanes->width[l] = sqrtf(length) * more;
    }
}

/* ---- all points ---- */

typedef struct making {
    gnomon_rabitq *index;
    const gnomon_kernels *k;
    const gnomon_matrix *x;
    double *norms; /* |x - centre|^2; before, factors */
    gnomon_rabitq_room *rooms;
    uint8_t *u;    /* m a thread */
    float *floats; /* m a thread */
    gnomon_asking asking;
} making;

enum { SOME_COLS = 64, SOME_ROWS = 64 };

/* The mean of some columns, each a sum over all points in order. */
static void find_mean(void *arg, int64_t task, int worker)
{
    making *w = arg;
    const int64_t from = task * SOME_COLS;
    const int64_t count = gnomon_min(SOME_COLS, w->index->dim - from);
    const int64_t step = w->x->col_stride * (int64_t)gnomon_dtype_size(w->x->dtype);
    double sum[SOME_COLS] = {0}, row[SOME_COLS];
    for (int64_t i = 0; i < w->x->rows; i++) {
        if (i % 4096 == 0 && gnomon_asking_stops(&w->asking, worker)) return;
        w->k->search->to_f64((const char *)gnomon_row_at(w->x, i) + from * step, w->x->dtype,
                             w->x->col_stride, count, row);
        const double factor = w->norms != NULL ? w->norms[i] : 1;
        for (int64_t j = 0; j < count; j++)
            sum[j] += row[j] * factor;
    }
    for (int64_t j = 0; j < count; j++)
        w->index->centre[from + j] = sum[j] / (double)w->x->rows;
}

static void find_factors(void *arg, int64_t task, int worker)
{
    making *w = arg;
    (void)worker;
    const int64_t end = gnomon_min(w->x->rows, (task + 1) * SOME_ROWS);
    for (int64_t i = task * SOME_ROWS; i < end; i++)
        w->norms[i] = gnomon_inverse_norm(w->k->search, w->x, i);
}

static void find_norms(void *arg, int64_t task, int worker)
{
    making *w = arg;
    if (gnomon_asking_stops(&w->asking, worker)) return;
    const int64_t end = gnomon_min(w->x->rows, (task + 1) * SOME_ROWS);
    double *row = w->rooms[worker].x;
    for (int64_t i = task * SOME_ROWS; i < end; i++) {
        w->k->search->to_f64(gnomon_row_at(w->x, i), w->x->dtype, w->x->col_stride, w->x->cols,
                             row);
        /* |x factor - centre|, the same to a few units */
        w->norms[i] = w->k->search->differences(w->index->centre, row, GNOMON_F64, 1, w->index->dim,
                                                factor_of(w->index, w->k, w->x, i));
    }
}

static void encode_some(void *arg, int64_t task, int worker)
{
    making *w = arg;
    gnomon_rabitq *index = w->index;
    if (gnomon_asking_stops(&w->asking, worker)) return;
    const int64_t bytes = gnomon_rabitq_bytes(index->m, (int)index->options.bits);
    const int each = gnomon_rabitq_factors(index->options.bits);
    const int64_t end = gnomon_min(w->x->rows, (task + 1) * SOME_ROWS);
    for (int64_t i = task * SOME_ROWS; i < end; i++)
        gnomon_rabitq_encode(index, w->k, w->x, i, &w->rooms[worker], w->u + worker * index->m,
                             w->floats + worker * index->m, index->codes + i * bytes,
                             index->factors + i * each);
}

/* The power of two by which the farthest point's norm is at most 1. */
static double scale_of(const double *norms, int64_t n)
{
    double most = 0;
    int exponent;
    for (int64_t i = 0; i < n; i++)
        most = norms[i] > most ? norms[i] : most;
    if (!(most > 0)) return 1;
    (void)frexp(sqrt(most), &exponent);
    /* what is nearer than this is as good as at the centre */
    return ldexp(1, exponent > -900 ? -exponent : 900);
}

static gnomon_status run(making *w, gnomon_task_fn fn, int64_t tasks, const char *phase, int stage)
{
    enum { STAGES = 4 };
    gnomon_context *ctx = w->asking.ctx;
    w->asking = (gnomon_asking){.ctx = ctx, .phase = phase, .done = stage, .total = STAGES};
    gnomon_parallel(ctx, tasks, fn, w);
    return w->asking.status;
}

static gnomon_status make(gnomon_context *ctx, making *w)
{
    gnomon_rabitq *index = w->index;
    const int64_t n = index->points, threads = gnomon_context_threads(ctx);
    const int64_t tasks = (n + SOME_ROWS - 1) / SOME_ROWS;
    double *norms = NULL;
    GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(threads, index->m), 1, "threads' memory", &w->u));
    GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(threads, index->m), sizeof *w->floats,
                            "threads' memory", &w->floats));
    GNOMON_TRY(gnomon_alloc(ctx, index->dim, sizeof *index->centre, "a centre", &index->centre));
    GNOMON_TRY(gnomon_alloc(ctx, n, (size_t)gnomon_rabitq_bytes(index->m, (int)index->options.bits),
                            "codes", &index->codes));
    GNOMON_TRY(gnomon_alloc(ctx, n,
                            sizeof(float) * (size_t)gnomon_rabitq_factors(index->options.bits),
                            "codes", &index->factors));
    GNOMON_TRY(gnomon_alloc(ctx, n, sizeof *norms, "norms", &norms));
    gnomon_status status = GNOMON_OK;
    if (index->options.metric == GNOMON_COSINE) {
        w->norms = norms;
        status = run(w, find_factors, tasks, "mean", 0);
    }
    if (status == GNOMON_OK)
        status = run(w, find_mean, (index->dim + SOME_COLS - 1) / SOME_COLS, "mean", 1);
    w->norms = norms;
    if (status == GNOMON_OK) status = run(w, find_norms, tasks, "norms", 2);
    if (status == GNOMON_OK) index->scale = scale_of(norms, n);
    gnomon_free(ctx, norms);
    if (status == GNOMON_OK) status = run(w, encode_some, tasks, "codes", 3);
    return status;
}

gnomon_status gnomon_rabitq_create(gnomon_context *ctx, const gnomon_rabitq_options *options,
                                   const gnomon_matrix *points, gnomon_rabitq **out)
{
    gnomon_rabitq_options o;
    GNOMON_FAIL_IF(out == NULL, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("out") " is NULL");
    *out = NULL;
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_NEED(ctx, points, "points");
    GNOMON_FAIL_IF(gnomon_context_device(ctx) == GNOMON_DEVICE_PLUGIN, ctx, GNOMON_ERROR_DEVICE,
                   "codes are made on the CPU; use the device cpu or auto");
    GNOMON_TRY(gnomon_rabitq_check_options(ctx, options, &o));
    GNOMON_TRY(gnomon_check_view(ctx, points, "points"));
    gnomon_rabitq *index;
    GNOMON_TRY(gnomon_rabitq_open_empty(ctx, &o, points->rows, points->cols, &index));
    double *numbers = NULL;
    making w = {.index = index,
                .k = gnomon_cpu_kernels(gnomon_context_isa(ctx)),
                .x = points,
                .asking = {.ctx = ctx}};
    gnomon_status status = gnomon_check_rows(ctx, points, "points", 0);
    if (status == GNOMON_OK) status = gnomon_rabitq_rooms(ctx, index->m, &w.rooms, &numbers);
    if (status == GNOMON_OK) status = make(ctx, &w);
    gnomon_free(ctx, w.rooms);
    gnomon_free(ctx, numbers);
    gnomon_free(ctx, w.u);
    gnomon_free(ctx, w.floats);
    if (status != GNOMON_OK) {
        gnomon_rabitq_destroy(index);
        return status;
    }
    if (!o.codes_only) index->x = *points;
    *out = index;
    return GNOMON_OK;
}

void gnomon_rabitq_describe(const gnomon_rabitq *index, gnomon_rabitq_info *info)
{
    if (index == NULL) return;
    const int64_t bits = index->options.bits;
    const gnomon_rabitq_info full = {
        .struct_size = sizeof full,
        .options = index->options,
        .points = index->points,
        .dim = index->dim,
        .code_bytes = index->points * (gnomon_rabitq_bytes(index->m, (int)bits) +
                                       (int64_t)sizeof(float) * gnomon_rabitq_factors(bits))};
    gnomon_write_result(info, &full, sizeof full);
}

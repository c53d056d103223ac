/* Estimates of squared distances, with their bounds. */
#include "rabitq/rabitq.h"

#include "base/arithmetic.h"
#include "base/context.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "metric/metric.h"
#include "points/view.h"

#include <inttypes.h>
#include <math.h>

typedef struct estimating {
    const gnomon_rabitq *index;
    const gnomon_kernels *k;
    const gnomon_matrix *queries, *estimates, *bounds; /* bounds NULL: not wanted */
    double sure;
    gnomon_rabitq_room *rooms;
    uint8_t *u;
    gnomon_asking asking;
} estimating;

static void put(const gnomon_matrix *m, int64_t i, int64_t j, double value)
{
    const int64_t at = i * m->row_stride + j * m->col_stride;
    if (m->dtype == GNOMON_F64)
        ((double *)m->data)[at] = value;
    else
        ((float *)m->data)[at] = (float)value;
}

static void estimate_query(void *arg, int64_t q, int worker)
{
    enum { SOME = 1024 };
    estimating *w = arg;
    const gnomon_rabitq *index = w->index;
    const int bits = (int)index->options.bits, each = gnomon_rabitq_factors(bits);
    const int64_t bytes = gnomon_rabitq_bytes(index->m, bits);
    const double unit = 1 / index->scale;
    gnomon_rabitq_room *room = &w->rooms[worker];
    uint8_t *u = w->u + worker * index->m;
    gnomon_rabitq_turn(index, w->k, w->queries, q, room);
    const double square = w->k->search->squares(room->x, GNOMON_F64, 1, index->m, 1);
    for (int64_t i = 0; i < index->points; i++) {
        if (i % SOME == 0 && gnomon_asking_stops(&w->asking, worker)) return;
        const float *f = index->factors + i * each;
        w->k->rabitq->unpack(index->codes + i * bytes, index->m, bits, u);
        const double product = w->k->rabitq->product(u, room->x, index->m, bits);
        const double estimate =
            isfinite(square) ? (double)f[0] + square - (double)f[1] * product : INFINITY;
        put(w->estimates, q, i, estimate * unit * unit);
        if (w->bounds == NULL) continue;
        gnomon_rabitq_lanes lanes;
        gnomon_rabitq_lanes_of(index, i, 1, &lanes);
        /* |estimate - d^2| <= error min(norm, d), so that d is at most the root of a square; what
         * rounding to fp32 takes is a share of 2^-20 of both squares */
        const double error = (double)lanes.reach[0] * w->sure, width = (double)lanes.width[0];
        const double from = estimate > 0 ? estimate : 0;
        const double d = (error + sqrt(error * error + 4 * from)) / 2, norm = sqrt(square);
        double bound =
            error * (d < norm ? d : norm) + 0x1p-20 * (square + width * width + from) + 0x1p-100;
        if (!isfinite(square)) bound = INFINITY;
        const double wide = bound * unit * unit * (1 + 0x1p-20);
        put(w->bounds, q, i,
            w->bounds->dtype == GNOMON_F64 ? wide : (double)gnomon_rabitq_above(wide));
    }
}

static gnomon_status check_out(gnomon_context *ctx, const gnomon_rabitq *index,
                               const gnomon_matrix *queries, const gnomon_matrix *m,
                               const char *name)
{
    GNOMON_TRY(gnomon_check_view(ctx, m, name));
    GNOMON_FAIL_IF(m->rows != queries->rows || m->cols != index->points, ctx, GNOMON_ERROR_SHAPE,
                   GNOMON_ARG("%s") " is %" PRId64 " x %" PRId64 "; it must be %" PRId64
                                    " x %" PRId64 ", queries x points",
                   name, m->rows, m->cols, queries->rows, index->points);
    GNOMON_FAIL_IF(m->dtype != GNOMON_F32 && m->dtype != GNOMON_F64, ctx, GNOMON_ERROR_DTYPE,
                   GNOMON_ARG("%s") " is of type %s; it must be f32 or f64", name,
                   gnomon_dtype_name(m->dtype));
    GNOMON_FAIL_IF((m->rows > 1 && m->row_stride == 0) || (m->cols > 1 && m->col_stride == 0), ctx,
                   GNOMON_ERROR_ARGUMENT, GNOMON_ARG("%s") " has a stride of 0", name);
    return GNOMON_OK;
}

gnomon_status gnomon_rabitq_estimate(gnomon_context *ctx, const gnomon_rabitq *index,
                                     const gnomon_matrix *queries, double failure,
                                     const gnomon_matrix *estimates, const gnomon_matrix *bounds)
{
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_NEED(ctx, index, "index");
    GNOMON_NEED(ctx, queries, "queries");
    GNOMON_NEED(ctx, estimates, "estimates");
    GNOMON_FAIL_IF(gnomon_context_device(ctx) == GNOMON_DEVICE_PLUGIN, ctx, GNOMON_ERROR_DEVICE,
                   "estimates are made on the CPU; use the device cpu or auto");
    GNOMON_TRY(gnomon_check_view(ctx, queries, "queries"));
    GNOMON_FAIL_IF(queries->cols != index->dim, ctx, GNOMON_ERROR_SHAPE,
                   GNOMON_ARG("queries") " has %" PRId64
                                         " columns; the index's points have %" PRId64,
                   queries->cols, index->dim);
    GNOMON_TRY(check_out(ctx, index, queries, estimates, "estimates"));
    if (bounds != NULL) GNOMON_TRY(check_out(ctx, index, queries, bounds, "bounds"));
    GNOMON_FAIL_IF(bounds != NULL && !(failure >= 0 && failure < 1), ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("failure") " is %g; it must be at least 0 and below 1", failure);
    GNOMON_TRY(gnomon_check_rows(ctx, queries, "queries", 0));
    if (queries->rows == 0) return GNOMON_OK;
    double *numbers = NULL;
    estimating w = {.index = index,
                    .k = gnomon_cpu_kernels(gnomon_context_isa(ctx)),
                    .queries = queries,
                    .estimates = estimates,
                    .bounds = bounds,
                    .asking = {.ctx = ctx, .phase = "estimates", .total = queries->rows}};
    /* on both sides */
    if (bounds != NULL) w.sure = gnomon_rabitq_quantile(index->m - 1, failure / 2);
    gnomon_status status = gnomon_rabitq_rooms(ctx, index->m, &w.rooms, &numbers);
    if (status == GNOMON_OK)
        status = gnomon_alloc(ctx, gnomon_context_threads(ctx), (size_t)index->m, "codes", &w.u);
    if (status == GNOMON_OK) {
        gnomon_parallel(ctx, queries->rows, estimate_query, &w);
        status = w.asking.status;
    }
    gnomon_free(ctx, w.rooms);
    gnomon_free(ctx, numbers);
    gnomon_free(ctx, w.u);
    return status;
}

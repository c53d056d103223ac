/* The calls: checking what is asked for, and who does it. */
#include "join/state.h"

#include "base/device.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "join/bands.h"
#include "join/device.h"
#include "join/lsh/lsh.h"
#include "join/out.h"
#include "join/sets.h"
#include "join/sparse.h"
#include "points/view.h"
#include "project/job.h"
#include "search/form.h"
#include "search/jaccard.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

GNOMON_OPTIONS_INIT(gnomon_join_options, GNOMON_JOIN_OPTIONS_INIT)

const char *gnomon_join_method_name(gnomon_join_method method)
{
    switch (method) {
    case GNOMON_JOIN_AUTO:
        return "auto";
    case GNOMON_JOIN_EXACT:
        return "exact";
    case GNOMON_JOIN_LSH:
        return "lsh";
    }
    return "?";
}

/* ---- what is asked for ---- */

static gnomon_status check_threshold(gnomon_context *ctx, const gnomon_join_options *o)
{
    const bool ip = gnomon_metric_is(o->metric, GNOMON_METRIC_LARGER);
    if (o->top > 0 && o->threshold == (ip ? -INFINITY : INFINITY)) return GNOMON_OK;
    GNOMON_FAIL_IF(!isfinite(o->threshold), ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("threshold") " is %g; it must be finite", o->threshold);
    GNOMON_FAIL_IF(o->threshold < 0 && !ip, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("threshold") " is %g; a distance is not negative", o->threshold);
    return GNOMON_OK;
}

static gnomon_status copy_options(gnomon_context *ctx, const gnomon_join_options *given,
                                  gnomon_join_options *o)
{
    *o = (gnomon_join_options)GNOMON_JOIN_OPTIONS_INIT;
    GNOMON_FAIL_IF(given == NULL, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("options") " is NULL; options.threshold must be set");
    GNOMON_TRY(GNOMON_COPY_OPTIONS(ctx, "options", gnomon_join_options, given, o));
    GNOMON_FAIL_IF(gnomon_metric_row_of(o->metric) == NULL, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("metric") " is %d; it must be one of gnomon_metric", (int)o->metric);
    GNOMON_FAIL_IF(!gnomon_metric_is(o->metric, GNOMON_METRIC_JOINS), ctx, GNOMON_ERROR_UNSUPPORTED,
                   GNOMON_ARG("metric") " is %s, for which there is no join",
                   gnomon_metric_name(o->metric));
    GNOMON_FAIL_IF(o->top < 0, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("top") " is %" PRId64 "; it must be at least 1, or 0 for all pairs",
                   o->top);
    GNOMON_TRY(check_threshold(ctx, o));
    GNOMON_FAIL_IF(o->max_pairs < 0, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("max_pairs") " is %" PRId64
                                           "; it must be at least 1, or 0 for any number",
                   o->max_pairs);
    GNOMON_FAIL_IF(o->first_row < 0, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("first_row") " is %" PRId64 "; it must not be negative",
                   o->first_row);
    GNOMON_FAIL_IF(o->band_rows < 0, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("band_rows") " is %" PRId64
                                           "; it must be at least 1, or 0 for any number",
                   o->band_rows);
    const bool counts = o->p_counts != NULL || o->q_counts != NULL;
    GNOMON_TRY(gnomon_check_aligned(ctx, o->p_counts, sizeof *o->p_counts, "options", "p_counts"));
    GNOMON_TRY(gnomon_check_aligned(ctx, o->q_counts, sizeof *o->q_counts, "options", "q_counts"));
    GNOMON_FAIL_IF(o->top > 0 && (o->max_pairs > 0 || counts), ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("top") " is %" PRId64 "; it excludes max_pairs and counts", o->top);
    GNOMON_FAIL_IF(!(o->recall > 0 && o->recall <= 1), ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("recall") " is %g; it must be above 0 and at most 1", o->recall);
    GNOMON_FAIL_IF(
        o->method < GNOMON_JOIN_AUTO || o->method > GNOMON_JOIN_LSH, ctx, GNOMON_ERROR_ARGUMENT,
        GNOMON_ARG("method") " is %d; it must be one of gnomon_join_method", (int)o->method);
    return GNOMON_OK;
}

static gnomon_status check_bits(const gnomon_join_state *join, const gnomon_side *side)
{
    if (!gnomon_metric_takes(join->options.metric, GNOMON_POINTS_BITS)) return GNOMON_OK;
    GNOMON_FAIL_IF(side->dtype != GNOMON_U8, join->ctx, GNOMON_ERROR_DTYPE,
                   GNOMON_ARG("%s") " is of type %s; %s takes bits, eight in an element of type u8",
                   side->name, gnomon_dtype_name(side->dtype),
                   gnomon_metric_name(join->options.metric));
    GNOMON_FAIL_IF(side->cols > 1 << 21, join->ctx, GNOMON_ERROR_UNSUPPORTED,
                   GNOMON_ARG("%s") " has %" PRId64 " x 8 bits; %s takes at most 2^24", side->name,
                   side->cols, gnomon_metric_name(join->options.metric));
    return GNOMON_OK;
}

static gnomon_status check_sides(gnomon_join_state *join)
{
    GNOMON_FAIL_IF(join->p.cols != join->q.cols, join->ctx, GNOMON_ERROR_SHAPE,
                   GNOMON_ARG("p") " has %" PRId64 " dimensions and q %" PRId64
                                   "; they must be the same",
                   join->p.cols, join->q.cols);
    GNOMON_FAIL_IF(join->options.first_row > join->p.rows, join->ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("first_row") " is %" PRId64 " and p has %" PRId64
                                           " rows; it must not be larger",
                   join->options.first_row, join->p.rows);
    GNOMON_TRY(check_bits(join, &join->p));
    return check_bits(join, &join->q);
}

/* ---- the join ---- */

/* Points in memory: by the device, if it takes them, else they are checked. Sparse rows are made
 * whole only where hashing is thought of: an exact join makes them piece by piece. */
static gnomon_status try_device(gnomon_join_state *join, bool *done)
{
    if (gnomon_join_divided(join->ranks)) {
        GNOMON_TRY(gnomon_join_refuse_device(join));
    } else {
        GNOMON_TRY(gnomon_join_on_device(join, done));
        if (*done) return GNOMON_OK;
    }
    if (join->p.csr == NULL) return gnomon_join_check(join);
    const bool whole =
        gnomon_metric_of_sets(join->options.metric) || gnomon_join_wants_hashes(join);
    return whole ? gnomon_join_make_sets(join) : GNOMON_OK;
}

/* By the device, else by hashes, else exactly. */
static gnomon_status work(gnomon_join_state *join)
{
    bool done = false;
    if (join->p.from != NULL) {
        if (gnomon_join_wants_hashes(join))
            GNOMON_TRY(gnomon_join_no_hashing(join, "the points are read in pieces"));
        return gnomon_join_sparse(join);
    }
    if (join->p.to == NULL && join->q.to == NULL) GNOMON_TRY(try_device(join, &done));
    if (!done) GNOMON_TRY(gnomon_join_by_hashes(join, &done));
    if (done) return GNOMON_OK;
    return gnomon_metric_of_sets(join->options.metric) ? gnomon_join_sets(join)
           : join->p.csr != NULL                       ? gnomon_join_sparse(join)
                                                       : gnomon_join_dense(join);
}

/* With sides set, does everything. */
static gnomon_status run(gnomon_join_state *join)
{
    gnomon_join_result *r = join->result;
    r->method = GNOMON_JOIN_EXACT;
    r->recall = 1;
    r->rows_done = join->options.first_row;
    const bool divided = gnomon_join_divided(join->ranks);
    gnomon_status status = check_sides(join);
    if (status == GNOMON_OK && divided) status = gnomon_join_ranks_begin(join);
    if (status == GNOMON_OK) status = gnomon_join_out_open(join);
    if (status == GNOMON_OK) status = work(join);
    if (status == GNOMON_OK && divided) status = gnomon_join_ranks_collect(join);
    if (status == GNOMON_OK && (!divided || join->ranks->comm.rank == 0))
        status = gnomon_join_finish(join);
    if (divided) status = gnomon_join_ranks_end(join->ranks, r, status);
    gnomon_join_drop_prefix(join);
    gnomon_join_out_close(join);
    if (join->p.rows == join->options.first_row) r->rows_done = join->p.rows;
    r->complete = status == GNOMON_OK && r->rows_done == join->p.rows;
    gnomon_join_tell_result(join);
    return status;
}

static gnomon_status open_state(gnomon_join_state *join, gnomon_context *ctx,
                                gnomon_join_ranks *ranks, const gnomon_join_options *options,
                                gnomon_join_result *result, gnomon_join_result *own)
{
    *own = (gnomon_join_result){.struct_size = sizeof *own};
    *join = (gnomon_join_state){.ctx = ctx, .ranks = ranks, .result = own, .given = result};
    if (result != NULL) GNOMON_TRY(GNOMON_OPEN_RESULT(ctx, "result", gnomon_join_result, result));
    return copy_options(ctx, options, &join->options);
}

static gnomon_side side_of(const gnomon_matrix *m, const char *name)
{
    return (gnomon_side){
        .name = name, .dense = m, .rows = m->rows, .cols = m->cols, .dtype = m->dtype};
}

static gnomon_status join_csr(gnomon_context *ctx, gnomon_join_ranks *ranks, const gnomon_csr *p,
                              const gnomon_csr *q, const gnomon_join_options *options,
                              gnomon_join_result *result)
{
    gnomon_join_state join;
    gnomon_join_result own;
    GNOMON_TRY(open_state(&join, ctx, ranks, options, result, &own));
    const gnomon_metric_row *metric = gnomon_metric_row_of(join.options.metric);
    GNOMON_FAIL_IF(metric->sets == NULL && metric->sparse == NULL, ctx, GNOMON_ERROR_UNSUPPORTED,
                   "%s takes dense points", gnomon_metric_name(join.options.metric));
    GNOMON_FAIL_IF(p == NULL, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("p") " is NULL");
    GNOMON_TRY(gnomon_check_csr(ctx, p, "p"));
    if (q != NULL) GNOMON_TRY(gnomon_check_csr(ctx, q, "q"));
    join.self = q == NULL;
    join.p = (gnomon_side){.name = "p", .csr = p, .rows = p->rows, .cols = p->cols};
    join.q = join.p;
    if (q != NULL) join.q = (gnomon_side){.name = "q", .csr = q, .rows = q->rows, .cols = q->cols};
    const gnomon_status status = run(&join);
    if (q != NULL) gnomon_sets_free(ctx, &join.q.sets);
    gnomon_sets_free(ctx, &join.p.sets);
    return status;
}

/* Dense rows of weights are taken as sparse ones. */
static gnomon_status join_as_sparse(gnomon_context *ctx, gnomon_join_ranks *ranks,
                                    const gnomon_matrix *p, const gnomon_matrix *q,
                                    const gnomon_join_options *options, gnomon_join_result *result)
{
    const bool there = p->memory != GNOMON_HOST || (q != NULL && q->memory != GNOMON_HOST);
    GNOMON_FAIL_IF(
        there, ctx, GNOMON_ERROR_DEVICE,
        GNOMON_ARG("%s") " lies in a device's memory; joins by this metric run on the CPU",
        p->memory != GNOMON_HOST ? "p" : "q");
    gnomon_csr p_rows = {0}, q_rows = {0};
    gnomon_status status = gnomon_csr_from_dense(ctx, p, 0, p->rows, &p_rows);
    if (status == GNOMON_OK && q != NULL)
        status = gnomon_csr_from_dense(ctx, q, 0, q->rows, &q_rows);
    if (status == GNOMON_OK)
        status = join_csr(ctx, ranks, &p_rows, q != NULL ? &q_rows : NULL, options, result);
    gnomon_csr_drop(ctx, &p_rows);
    gnomon_csr_drop(ctx, &q_rows);
    return status;
}

static gnomon_status join_dense(gnomon_context *ctx, gnomon_join_ranks *ranks,
                                const gnomon_matrix *p, const gnomon_matrix *q,
                                const gnomon_join_options *options, gnomon_join_result *result)
{
    gnomon_join_state join;
    gnomon_join_result own;
    GNOMON_TRY(open_state(&join, ctx, ranks, options, result, &own));
    const gnomon_metric metric = join.options.metric;
    const bool sets = gnomon_metric_of_sets(metric);
    GNOMON_FAIL_IF(sets && !gnomon_metric_takes(metric, GNOMON_POINTS_DENSE), ctx,
                   GNOMON_ERROR_UNSUPPORTED, "%s takes sparse points", gnomon_metric_name(metric));
    GNOMON_TRY(gnomon_check_anywhere(ctx, p, "p", false));
    if (q != NULL) GNOMON_TRY(gnomon_check_anywhere(ctx, q, "q", false));
    if (sets) return join_as_sparse(ctx, ranks, p, q, options, result);
    join.self = q == NULL;
    join.p = side_of(p, "p");
    join.q = q == NULL ? join.p : side_of(q, "q");
    return run(&join);
}

static gnomon_status check_join_side(gnomon_context *ctx, const gnomon_join_side *side,
                                     const char *name)
{
    GNOMON_FAIL_IF((side->dense == NULL) == (side->sparse == NULL), ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("%s") " has %s; one of dense and sparse must be NULL", name,
                   side->dense == NULL ? "no view" : "two views");
    return side->dense != NULL ? gnomon_check_view(ctx, side->dense, name)
                               : gnomon_check_csr(ctx, side->sparse, name);
}

/* The dense rows of one side as sparse ones. */
static gnomon_status join_mixed_as_sparse(gnomon_context *ctx, gnomon_join_ranks *ranks,
                                          const gnomon_join_side *p, const gnomon_join_side *q,
                                          const gnomon_join_options *options,
                                          gnomon_join_result *result)
{
    const gnomon_matrix *dense = p->dense != NULL ? p->dense : q->dense;
    gnomon_csr rows = {0};
    gnomon_status status = gnomon_csr_from_dense(ctx, dense, 0, dense->rows, &rows);
    if (status == GNOMON_OK)
        status = join_csr(ctx, ranks, p->dense != NULL ? &rows : p->sparse,
                          q->dense != NULL ? &rows : q->sparse, options, result);
    gnomon_csr_drop(ctx, &rows);
    return status;
}

static gnomon_status join_mixed(gnomon_join_state *join, const gnomon_join_side *p,
                                const gnomon_join_side *q, const char *why)
{
    gnomon_join_copies copies;
    const gnomon_csr *rows = p->sparse != NULL ? p->sparse : q->sparse;
    gnomon_side sparse = {
        .name = p->sparse != NULL ? "p" : "q", .csr = rows, .rows = rows->rows, .cols = rows->cols};
    join->p = p->dense != NULL ? side_of(p->dense, "p") : sparse;
    join->q = q->dense != NULL ? side_of(q->dense, "q") : sparse;
    gnomon_join_say(join, "sparse rows as dense copies: %s", why);
    GNOMON_TRY(check_sides(join));
    GNOMON_TRY(gnomon_join_check(join));
    GNOMON_TRY(gnomon_join_copy_side(join, p->sparse != NULL ? &join->p : &join->q, &copies));
    return run(join);
}

static gnomon_status join_sides(gnomon_context *ctx, gnomon_join_ranks *ranks,
                                const gnomon_join_side *p, const gnomon_join_side *q,
                                const gnomon_join_options *options, gnomon_join_result *result)
{
    gnomon_join_state join;
    gnomon_join_result own;
    gnomon_form form = {0};
    GNOMON_FAIL_IF(p == NULL, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("p") " is NULL");
    if (p->sparse == NULL && p->dense != NULL && (q == NULL || (q->sparse == NULL && q->dense)))
        return join_dense(ctx, ranks, p->dense, q != NULL ? q->dense : NULL, options, result);
    if (p->dense == NULL && p->sparse != NULL && (q == NULL || (q->dense == NULL && q->sparse)))
        return join_csr(ctx, ranks, p->sparse, q != NULL ? q->sparse : NULL, options, result);
    GNOMON_TRY(open_state(&join, ctx, ranks, options, result, &own));
    GNOMON_TRY(check_join_side(ctx, p, "p"));
    if (q == NULL) return GNOMON_OK;
    GNOMON_TRY(check_join_side(ctx, q, "q"));
    const gnomon_metric metric = join.options.metric;
    const gnomon_metric_row *row = gnomon_metric_row_of(metric);
    GNOMON_FAIL_IF(row->sparse == NULL &&
                       !(row->sets != NULL && gnomon_metric_takes(metric, GNOMON_POINTS_DENSE)),
                   ctx, GNOMON_ERROR_UNSUPPORTED, "%s takes no dense and sparse points together",
                   gnomon_metric_name(metric));
    GNOMON_TRY(gnomon_device_refuse(ctx, GNOMON_BY_CONTEXT,
                                    "dense and sparse points are joined on the CPU"));
    const gnomon_matrix *dense = p->dense != NULL ? p->dense : q->dense;
    if (row->sparse != NULL) {
        GNOMON_TRY(gnomon_form_choose(ctx, metric, (gnomon_form_side){p->sparse, p->dense, false},
                                      (gnomon_form_side){q->sparse, q->dense, false},
                                      GNOMON_FORM_THRESHOLD, &form));
        /* rows that become sparse are held all at once */
        const int64_t bytes = gnomon_times(gnomon_times(dense->rows, dense->cols), 16);
        if (!form.dense && (bytes < 0 || bytes > gnomon_memory_limit(ctx) / 2)) {
            form.dense = true;
            snprintf(form.why, sizeof form.why,
                     "the dense rows as sparse ones would take too much memory");
        }
    }
    return form.dense ? join_mixed(&join, p, q, form.why)
                      : join_mixed_as_sparse(ctx, ranks, p, q, options, result);
}

static gnomon_status side_to_read(gnomon_context *ctx, const gnomon_join_points *points,
                                  const char *name, gnomon_side *out)
{
    GNOMON_FAIL_IF(points->read == NULL, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("%s.read") " is NULL", name);
    GNOMON_FAIL_IF(points->rows < 0 || points->cols < 0, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("%s") " is %" PRId64 " x %" PRId64 "; sizes must not be negative",
                   name, points->rows, points->cols);
    GNOMON_FAIL_IF(gnomon_dtype_size(points->dtype) == 0, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("%s.dtype") " is %d; it must be one of gnomon_dtype", name,
                   (int)points->dtype);
    GNOMON_FAIL_IF(points->cols > (int64_t)1 << 56, ctx, GNOMON_ERROR_OVERFLOW,
                   GNOMON_ARG("%s") " has %" PRId64 " columns; it must be at most 2^56", name,
                   points->cols);
    *out = (gnomon_side){.name = name,
                         .to = points,
                         .rows = points->rows,
                         .cols = points->cols,
                         .dtype = points->dtype};
    return GNOMON_OK;
}

static gnomon_status join_stream(gnomon_context *ctx, gnomon_join_ranks *ranks,
                                 const gnomon_join_points *p, const gnomon_join_points *q,
                                 const gnomon_join_options *options, gnomon_join_result *result)
{
    gnomon_join_state join;
    gnomon_join_result own;
    GNOMON_TRY(open_state(&join, ctx, ranks, options, result, &own));
    GNOMON_FAIL_IF(gnomon_metric_of_sets(join.options.metric), ctx, GNOMON_ERROR_UNSUPPORTED,
                   "%s takes sparse points", gnomon_metric_name(join.options.metric));
    GNOMON_TRY(gnomon_device_refuse(ctx, GNOMON_BY_CONTEXT,
                                    "points that are read in pieces are joined on the CPU"));
    GNOMON_FAIL_IF(p == NULL, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("p") " is NULL");
    join.self = q == NULL;
    GNOMON_TRY(side_to_read(ctx, p, "p", &join.p));
    join.q = join.p;
    if (q != NULL) GNOMON_TRY(side_to_read(ctx, q, "q", &join.q));
    return run(&join);
}

static gnomon_status sparse_side_to_read(gnomon_context *ctx, const gnomon_join_rows *rows,
                                         const char *name, gnomon_csr *shell, gnomon_side *out)
{
    GNOMON_FAIL_IF(rows->read == NULL, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("%s.read") " is NULL",
                   name);
    /* the checks of a view, but for the entries that are not there */
    *shell = (gnomon_csr){rows->rows, rows->cols, rows->offsets, NULL, NULL, GNOMON_F64};
    GNOMON_TRY(gnomon_check_offsets(ctx, shell, name));
    *out = (gnomon_side){
        .name = name, .csr = shell, .from = rows, .rows = rows->rows, .cols = rows->cols};
    return GNOMON_OK;
}

static gnomon_status join_stream_csr(gnomon_context *ctx, gnomon_join_ranks *ranks,
                                     const gnomon_join_rows *p, const gnomon_join_rows *q,
                                     const gnomon_join_options *options, gnomon_join_result *result)
{
    gnomon_join_state join;
    gnomon_join_result own;
    gnomon_csr p_shell, q_shell;
    GNOMON_TRY(open_state(&join, ctx, ranks, options, result, &own));
    GNOMON_FAIL_IF(gnomon_metric_row_of(join.options.metric)->sparse == NULL, ctx,
                   GNOMON_ERROR_UNSUPPORTED,
                   "sparse points that are read in pieces are not joined by %s",
                   gnomon_metric_name(join.options.metric));
    GNOMON_TRY(gnomon_device_refuse(ctx, GNOMON_BY_CONTEXT,
                                    "points that are read in pieces are joined on the CPU"));
    GNOMON_FAIL_IF(p == NULL, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("p") " is NULL");
    join.self = q == NULL;
    GNOMON_TRY(sparse_side_to_read(ctx, p, "p", &p_shell, &join.p));
    join.q = join.p;
    if (q != NULL) GNOMON_TRY(sparse_side_to_read(ctx, q, "q", &q_shell, &join.q));
    return run(&join);
}

/* ---- the same on the ranks of options.comm ---- */

/* Declares 'ranks' and does the work; how it ended is that of all ranks. */
#define ON_RANKS(work)                                        \
    gnomon_join_ranks ranks;                                  \
    GNOMON_NEED(NULL, ctx, "ctx");                            \
    GNOMON_TRY(gnomon_join_ranks_open(ctx, options, &ranks)); \
    return gnomon_join_ranks_close(&ranks, work)

gnomon_status gnomon_join(gnomon_context *ctx, const gnomon_matrix *p, const gnomon_matrix *q,
                          const gnomon_join_options *options, gnomon_join_result *result)
{
    ON_RANKS(join_dense(ctx, &ranks, p, q, options, result));
}

gnomon_status gnomon_join_csr(gnomon_context *ctx, const gnomon_csr *p, const gnomon_csr *q,
                              const gnomon_join_options *options, gnomon_join_result *result)
{
    ON_RANKS(join_csr(ctx, &ranks, p, q, options, result));
}

gnomon_status gnomon_join_sides(gnomon_context *ctx, const gnomon_join_side *p,
                                const gnomon_join_side *q, const gnomon_join_options *options,
                                gnomon_join_result *result)
{
    ON_RANKS(join_sides(ctx, &ranks, p, q, options, result));
}

gnomon_status gnomon_join_stream(gnomon_context *ctx, const gnomon_join_points *p,
                                 const gnomon_join_points *q, const gnomon_join_options *options,
                                 gnomon_join_result *result)
{
    ON_RANKS(join_stream(ctx, &ranks, p, q, options, result));
}

gnomon_status gnomon_join_stream_csr(gnomon_context *ctx, const gnomon_join_rows *p,
                                     const gnomon_join_rows *q, const gnomon_join_options *options,
                                     gnomon_join_result *result)
{
    ON_RANKS(join_stream_csr(ctx, &ranks, p, q, options, result));
}

/* The calls: checking what is asked for, the order of the steps, the answers. */
#include "search/device.h"
#include "search/form.h"
#include "search/jaccard.h"
#include "search/scan.h"
#include "search/sparse.h"
#include "search/state.h"

#include "base/arithmetic.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/threads.h"
#include "points/view.h"
#include "project/job.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

GNOMON_OPTIONS_INIT(gnomon_search_options, GNOMON_SEARCH_OPTIONS_INIT)

static gnomon_status copy_options(gnomon_context *ctx, const gnomon_search_options *given,
                                  gnomon_search_options *o)
{
    *o = (gnomon_search_options)GNOMON_SEARCH_OPTIONS_INIT;
    GNOMON_FAIL_IF(given == NULL, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("options") " is NULL; options.k or options.radius must be set");
    GNOMON_TRY(GNOMON_COPY_OPTIONS(ctx, "options", gnomon_search_options, given, o));
    GNOMON_FAIL_IF(gnomon_metric_row_of(o->metric) == NULL, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("metric") " is %d; it must be one of gnomon_metric", (int)o->metric);
    GNOMON_FAIL_IF(o->k < 0, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("k") " is %" PRId64 "; it must be at least 1, or 0 for a radius",
                   o->k);
    GNOMON_FAIL_IF(o->k == 0 && !isfinite(o->radius), ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("radius") " is %g; it must be finite", o->radius);
    GNOMON_FAIL_IF(o->k == 0 && o->radius < 0 && !gnomon_metric_is(o->metric, GNOMON_METRIC_LARGER),
                   ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("radius") " is %g; it must not be negative", o->radius);
    GNOMON_FAIL_IF(o->filter_bits < 0 || (o->filter == NULL && o->filter_bits > 0), ctx,
                   GNOMON_ERROR_ARGUMENT, GNOMON_ARG("filter_bits") " is %" PRId64 " and filter %s",
                   o->filter_bits, o->filter == NULL ? "NULL" : "not NULL");
    GNOMON_FAIL_IF(o->exclude < -1, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("exclude") " is %" PRId64 "; it must be an id, or -1 for none",
                   o->exclude);
    GNOMON_FAIL_IF(!gnomon_metric_is(o->metric, GNOMON_METRIC_DEVICE) &&
                       gnomon_context_device(ctx) == GNOMON_DEVICE_PLUGIN,
                   ctx, GNOMON_ERROR_DEVICE,
                   "exact search by %s runs on the CPU; use the device cpu or auto",
                   gnomon_metric_name(o->metric));
    return GNOMON_OK;
}

static gnomon_status check_bits(gnomon_search *s, const gnomon_matrix *m, const char *name)
{
    if (!gnomon_metric_takes(s->options.metric, GNOMON_POINTS_BITS)) return GNOMON_OK;
    GNOMON_FAIL_IF(m->dtype != GNOMON_U8, s->ctx, GNOMON_ERROR_DTYPE,
                   GNOMON_ARG("%s") " is of type %s; %s takes bits, eight in an element of type u8",
                   name, gnomon_dtype_name(m->dtype), gnomon_metric_name(s->options.metric));
    GNOMON_FAIL_IF(m->cols > 1 << 21, s->ctx, GNOMON_ERROR_UNSUPPORTED,
                   GNOMON_ARG("%s") " has %" PRId64 " x 8 bits; %s takes at most 2^24", name,
                   m->cols, gnomon_metric_name(s->options.metric));
    return GNOMON_OK;
}

/* The largest key within the radius. */
static double limit_of(const gnomon_search_options *o)
{
    return gnomon_metric_turn(o->metric, o->radius);
}

static gnomon_status begin(gnomon_search *s)
{
    s->whole = true;
    s->limit = limit_of(&s->options);
    s->kernels = gnomon_cpu_kernels(gnomon_context_isa(s->ctx))->search;
    if (s->options.k == 0) return GNOMON_OK;
    int64_t places;
    GNOMON_FAIL_IF(!gnomon_mul(s->count, s->options.k, &places), s->ctx, GNOMON_ERROR_OVERFLOW,
                   "%" PRId64 " queries with k %" PRId64 " are more than can be counted", s->count,
                   s->options.k);
    GNOMON_TRY(gnomon_alloc(s->ctx, places, sizeof *s->heaps, "neighbours", &s->heaps));
    GNOMON_TRY(gnomon_alloc(s->ctx, s->count, sizeof *s->nearest, "neighbours", &s->nearest));
    for (int64_t q = 0; q < s->count; q++)
        s->nearest[q] = (gnomon_nearest){s->heaps + q * s->options.k, s->options.k, 0};
    return GNOMON_OK;
}

static gnomon_status check_layout(gnomon_context *ctx, gnomon_metric metric, bool sparse)
{
    const bool sets = gnomon_metric_of_sets(metric);
    const bool can = sparse ? sets || gnomon_metric_row_of(metric)->sparse != NULL
                            : !sets || gnomon_metric_takes(metric, GNOMON_POINTS_DENSE);
    GNOMON_FAIL_IF(!can, ctx, GNOMON_ERROR_UNSUPPORTED, "%s takes %s points",
                   gnomon_metric_name(metric), sparse ? "dense" : "sparse");
    GNOMON_FAIL_IF(sparse && !sets && gnomon_context_device(ctx) == GNOMON_DEVICE_PLUGIN, ctx,
                   GNOMON_ERROR_DEVICE,
                   "exact search of sparse points by %s runs on the CPU; take the device cpu or "
                   "auto",
                   gnomon_metric_name(metric));
    return GNOMON_OK;
}

static gnomon_status create(gnomon_context *ctx, const gnomon_matrix *dense, const gnomon_csr *csr,
                            const gnomon_search_options *given, gnomon_search **out)
{
    gnomon_search_options options;
    *out = NULL;
    GNOMON_TRY(copy_options(ctx, given, &options));
    GNOMON_TRY(check_layout(ctx, options.metric, csr != NULL));
    gnomon_search *s;
    GNOMON_TRY(gnomon_alloc_zero(ctx, 1, sizeof *s, "a search", &s));
    s->ctx = ctx;
    s->options = options;
    s->later = -1;
    gnomon_status status;
    if (csr != NULL) {
        s->count = csr->rows;
        s->cols = csr->cols;
        s->sparse = !gnomon_metric_of_sets(options.metric);
        status = (s->sparse ? gnomon_sparse_make : gnomon_sets_make)(ctx, csr, "queries", 0,
                                                                     options.metric, &s->sets);
    } else {
        s->queries = *dense;
        s->dense = true;
        s->count = dense->rows;
        s->cols = dense->cols;
        status = check_bits(s, dense, "queries");
        if (status == GNOMON_OK && dense->memory == GNOMON_HOST &&
            gnomon_metric_takes(options.metric, GNOMON_POINTS_DENSE))
            status = gnomon_check_rows(ctx, &s->queries, "queries", 0);
    }
    if (status == GNOMON_OK) status = begin(s);
    const bool must = gnomon_context_device(ctx) == GNOMON_DEVICE_PLUGIN;
    if (status == GNOMON_OK && dense != NULL && dense->memory != GNOMON_HOST &&
        !gnomon_metric_is(options.metric, GNOMON_METRIC_DEVICE))
        status = gnomon_fail(ctx, GNOMON_ERROR_DEVICE,
                             GNOMON_ARG("queries") " lies in a device's memory; %s runs on the CPU",
                             gnomon_metric_name(options.metric));
    if (status == GNOMON_OK && (must || (dense != NULL && dense->memory != GNOMON_HOST)))
        status = gnomon_search_to_device(s, "queries", true);
    if (status != GNOMON_OK)
        gnomon_search_destroy(s);
    else
        *out = s;
    return status;
}

/* Dense rows of weights are taken as sparse ones: their zeros are no members. */
static bool takes_dense_as_sparse(gnomon_metric metric)
{
    return gnomon_metric_of_sets(metric) && gnomon_metric_takes(metric, GNOMON_POINTS_DENSE);
}

static gnomon_status check_on_host(gnomon_context *ctx, const gnomon_matrix *m, const char *name)
{
    GNOMON_FAIL_IF(
        m->memory != GNOMON_HOST, ctx, GNOMON_ERROR_DEVICE,
        GNOMON_ARG("%s") " lies in a device's memory; this metric's rows are searched on "
                         "the CPU",
        name);
    return GNOMON_OK;
}

gnomon_status gnomon_search_create(gnomon_context *ctx, const gnomon_matrix *queries,
                                   const gnomon_search_options *options, gnomon_search **out)
{
    GNOMON_FAIL_IF(out == NULL, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("out") " is NULL");
    *out = NULL;
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_TRY(gnomon_check_anywhere(ctx, queries, "queries", false));
    gnomon_search_options own;
    gnomon_csr rows;
    GNOMON_TRY(copy_options(ctx, options, &own));
    if (!takes_dense_as_sparse(own.metric)) return create(ctx, queries, NULL, options, out);
    GNOMON_TRY(check_on_host(ctx, queries, "queries"));
    gnomon_status status = gnomon_csr_from_dense(ctx, queries, 0, queries->rows, &rows);
    if (status == GNOMON_OK) status = create(ctx, NULL, &rows, options, out);
    gnomon_csr_drop(ctx, &rows);
    return status;
}

gnomon_status gnomon_search_create_csr(gnomon_context *ctx, const gnomon_csr *queries,
                                       const gnomon_search_options *options, gnomon_search **out)
{
    GNOMON_FAIL_IF(out == NULL, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("out") " is NULL");
    *out = NULL;
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_FAIL_IF(queries == NULL, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("queries") " is NULL");
    return create(ctx, NULL, queries, options, out);
}

void gnomon_search_destroy(gnomon_search *s)
{
    if (s == NULL) return;
    gnomon_context *ctx = s->ctx;
    gnomon_search_close_on_device(s);
    gnomon_sets_free(ctx, &s->sets);
    gnomon_free(ctx, s->copies);
    gnomon_free(ctx, s->nearest);
    gnomon_free(ctx, s->heaps);
    gnomon_free(ctx, s->hits);
    gnomon_free(ctx, s->centre.mean);
    gnomon_free(ctx, s->centre.mean64);
    gnomon_free(ctx, s);
}

gnomon_status gnomon_search_first_id(gnomon_search *s, int64_t id)
{
    GNOMON_NEED(NULL, s, "search");
    GNOMON_FAIL_IF(id < 0, s->ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("id") " is %" PRId64 "; it must not be negative", id);
    GNOMON_FAIL_IF(s->base != s->first || s->finished, s->ctx, GNOMON_ERROR_ARGUMENT,
                   "base points have been added to the search");
    s->first = s->base = id;
    return GNOMON_OK;
}

static gnomon_status check_add(gnomon_search *s, int64_t rows, int64_t cols)
{
    GNOMON_FAIL_IF(s->finished, s->ctx, GNOMON_ERROR_ARGUMENT,
                   "the search has handed out its answers");
    GNOMON_FAIL_IF(cols != s->cols, s->ctx, GNOMON_ERROR_SHAPE,
                   GNOMON_ARG("base") " has %" PRId64 " dimensions and queries %" PRId64
                                      "; they must be the same",
                   cols, s->cols);
    int64_t all;
    GNOMON_FAIL_IF(!gnomon_add(s->base, rows, &all), s->ctx, GNOMON_ERROR_OVERFLOW,
                   GNOMON_ARG("base") " has more points than can be counted");
    return GNOMON_OK;
}

/* The allowed rows of a piece, by pieces of 2^24 that go through the scan one after another. */
static gnomon_status scan_allowed(gnomon_search *s, const gnomon_matrix *base)
{
    const int64_t most = (int64_t)1 << 24;
    const int64_t room = base->rows < most ? base->rows : most;
    uint32_t *rows;
    GNOMON_TRY(gnomon_alloc(s->ctx, room, sizeof *rows, "allowed rows", &rows));
    gnomon_status status = GNOMON_OK;
    const int64_t first = s->base;
    for (int64_t from = 0; from < base->rows && status == GNOMON_OK; from += most) {
        const int64_t here = base->rows - from < most ? base->rows - from : most;
        const gnomon_matrix part = gnomon_rows(base, from, here);
        int64_t count = 0;
        for (int64_t i = 0; i < part.rows; i++)
            if (gnomon_search_allows(&s->options, first + from + i)) rows[count++] = (uint32_t)i;
        s->base = first + from;
        status = gnomon_scan(s, &part, rows, count);
    }
    s->base = first;
    gnomon_free(s->ctx, rows);
    return status;
}

/* ---- sparse rows ---- */

static gnomon_status add_sparse_rows(gnomon_search *s, const gnomon_csr *base)
{
    int64_t done;
    gnomon_context_set_worked(s->ctx, NULL);
    GNOMON_TRY(gnomon_scan_sparse_one(s, base, &done));
    s->base += done;
    for (int64_t from = done, rows; from < base->rows; from += rows) {
        rows = gnomon_inverted_rows(base, from, gnomon_memory_limit(s->ctx) / 2);
        const gnomon_csr part = gnomon_csr_rows(base, from, rows);
        gnomon_sets sets = {0};
        gnomon_inverted index = {0};
        GNOMON_TRY(gnomon_sparse_make(s->ctx, &part, "base", s->base, s->options.metric, &sets));
        GNOMON_TRY(gnomon_inverted_open(s->ctx, s->options.metric, &sets, s->cols, &index));
        const gnomon_status status = gnomon_scan_sparse(s, &index);
        gnomon_inverted_close(s->ctx, &index);
        GNOMON_TRY(status);
        s->base += rows;
    }
    return GNOMON_OK;
}

/* Dense rows as sparse ones, some at a time, each to 'use'. */
static gnomon_status convert_rows(gnomon_search *s, const gnomon_matrix *dense, int64_t most,
                                  gnomon_status (*use)(gnomon_search *s, const gnomon_csr *rows))
{
    gnomon_status status = GNOMON_OK;
    for (int64_t from = 0, rows; from < dense->rows && status == GNOMON_OK; from += rows) {
        gnomon_csr csr;
        rows = gnomon_min(most, dense->rows - from);
        status = gnomon_csr_from_dense(s->ctx, dense, from, rows, &csr);
        if (status == GNOMON_OK) status = use(s, &csr);
        gnomon_csr_drop(s->ctx, &csr);
    }
    return status;
}

/* Dense rows that are converted at a time. */
static int64_t rows_as_sparse(const gnomon_search *s, const gnomon_matrix *base)
{
    const int64_t row = gnomon_max(gnomon_times(base->cols, 64), 1);
    return gnomon_max(gnomon_memory_limit(s->ctx) / 2 / row, 1);
}

static gnomon_status add_dense_as_sparse(gnomon_search *s, const gnomon_matrix *base)
{
    return convert_rows(s, base, rows_as_sparse(s, base), add_sparse_rows);
}

static gnomon_status set_queries(gnomon_search *s, const gnomon_csr *rows)
{
    return gnomon_sparse_make(s->ctx, rows, "queries", 0, s->options.metric, &s->sets);
}

/* ---- dense rows ---- */

static gnomon_status add_dense(gnomon_search *s, const gnomon_matrix *base)
{
    const bool there = base->memory != GNOMON_HOST;
    if (s->device.part == NULL && s->base == s->first &&
        gnomon_metric_is(s->options.metric, GNOMON_METRIC_DEVICE) &&
        (there || gnomon_search_worth_device(s, base)))
        GNOMON_TRY(gnomon_search_to_device(s, "base", there));
    GNOMON_FAIL_IF(s->device.part == NULL && there, s->ctx, GNOMON_ERROR_DEVICE,
                   GNOMON_ARG("base") " lies in a device's memory, and the search runs on the CPU");
    if (s->device.part != NULL) {
        GNOMON_TRY(gnomon_search_add_on_device(s, base, NULL));
    } else {
        gnomon_context_set_worked(s->ctx, NULL);
        GNOMON_TRY(s->options.filter != NULL ? scan_allowed(s, base)
                                             : gnomon_scan(s, base, NULL, base->rows));
    }
    s->base += base->rows;
    return GNOMON_OK;
}

/* Dense copies of sparse rows, some at a time. */
static gnomon_status add_sparse_as_dense(gnomon_search *s, const gnomon_csr *base)
{
    const int64_t most = gnomon_min(gnomon_form_rows(s->ctx, s->cols), gnomon_max(base->rows, 1));
    double *data;
    GNOMON_TRY(
        gnomon_alloc(s->ctx, gnomon_times(most, s->cols), sizeof *data, "dense copies", &data));
    gnomon_status status = GNOMON_OK;
    for (int64_t from = 0, rows; from < base->rows && status == GNOMON_OK; from += rows) {
        rows = gnomon_min(most, base->rows - from);
        const gnomon_matrix part = gnomon_matrix_rowmajor(data, GNOMON_F64, rows, s->cols);
        status =
            gnomon_form_copy(s->ctx, base, "base", s->base - from, s->options.metric, from, &part);
        if (status == GNOMON_OK) status = add_dense(s, &part);
    }
    gnomon_free(s->ctx, data);
    return status;
}

/* ---- the form in which a part of the base is searched ---- */

static gnomon_status choose_form(gnomon_search *s, gnomon_form_side base, bool *dense)
{
    const gnomon_csr rows = {s->sets.count,   s->cols,         s->sets.offsets,
                             s->sets.members, s->sets.weights, GNOMON_F64};
    const gnomon_form_side queries = {s->sparse ? &rows : NULL, s->dense ? &s->queries : NULL,
                                      s->sparse && s->dense};
    gnomon_form form;
    GNOMON_TRY(gnomon_form_choose(
        s->ctx, s->options.metric,
        (gnomon_form_side){queries.sparse, s->sparse ? NULL : queries.dense, queries.copied}, base,
        s->options.k > 0 ? GNOMON_FORM_NEAREST : GNOMON_FORM_THRESHOLD, &form));
    *dense = form.dense;
    /* copies of queries are kept to the end */
    if (form.dense && !s->dense && s->count > gnomon_form_rows(s->ctx, s->cols)) {
        *dense = false;
        snprintf(s->why, sizeof s->why,
                 "sparse rows through an inverted index: dense copies of the queries take too much "
                 "memory");
        return GNOMON_OK;
    }
    snprintf(s->why, sizeof s->why, "%s: %s",
             form.dense ? "dense rows" : "sparse rows through an inverted index", form.why);
    return GNOMON_OK;
}

/* The queries in the form chosen; they stay in the other one too. */
static gnomon_status make_queries(gnomon_search *s, bool dense)
{
    if (dense && !s->dense) {
        GNOMON_TRY(gnomon_alloc(s->ctx, gnomon_times(s->count, s->cols), sizeof *s->copies,
                                "dense copies", &s->copies));
        s->queries = gnomon_matrix_rowmajor(s->copies, GNOMON_F64, s->count, s->cols);
        gnomon_form_fill(s->ctx, &s->sets, &s->queries);
        s->dense = true;
    }
    if (!dense && !s->sparse) {
        if (s->count > 0) GNOMON_TRY(convert_rows(s, &s->queries, s->count, set_queries));
        s->sparse = true;
    }
    return GNOMON_OK;
}

gnomon_status gnomon_search_add(gnomon_search *s, const gnomon_matrix *base)
{
    GNOMON_NEED(NULL, s, "search");
    GNOMON_TRY(check_layout(s->ctx, s->options.metric, false));
    GNOMON_TRY(gnomon_check_anywhere(s->ctx, base, "base", false));
    GNOMON_TRY(check_add(s, base->rows, base->cols));
    if (takes_dense_as_sparse(s->options.metric)) {
        GNOMON_TRY(check_on_host(s->ctx, base, "base"));
        return convert_rows(s, base, rows_as_sparse(s, base), gnomon_search_add_csr);
    }
    GNOMON_TRY(check_bits(s, base, "base"));
    bool dense = true;
    if (!s->dense || s->sparse) {
        GNOMON_FAIL_IF(base->memory != GNOMON_HOST, s->ctx, GNOMON_ERROR_DEVICE,
                       GNOMON_ARG("base") " lies in a device's memory, and sparse queries are "
                                          "searched on the CPU");
        GNOMON_TRY(choose_form(s, (gnomon_form_side){.dense = base}, &dense));
        GNOMON_TRY(make_queries(s, dense));
    }
    return dense ? add_dense(s, base) : add_dense_as_sparse(s, base);
}

gnomon_status gnomon_search_add_csr(gnomon_search *s, const gnomon_csr *base)
{
    GNOMON_NEED(NULL, s, "search");
    GNOMON_TRY(check_layout(s->ctx, s->options.metric, true));
    GNOMON_FAIL_IF(base == NULL, s->ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("base") " is NULL");
    GNOMON_TRY(check_add(s, base->rows, base->cols));
    GNOMON_TRY(gnomon_check_csr(s->ctx, base, "base"));
    if (!gnomon_metric_of_sets(s->options.metric)) {
        bool dense;
        GNOMON_FAIL_IF(s->device.part != NULL && s->copies == NULL, s->ctx, GNOMON_ERROR_DEVICE,
                       GNOMON_ARG("base") " is sparse, and the search runs on a device; sparse "
                                          "points are searched on the CPU");
        GNOMON_TRY(choose_form(s, (gnomon_form_side){.sparse = base}, &dense));
        dense |= s->device.part != NULL;
        GNOMON_TRY(make_queries(s, dense));
        return dense ? add_sparse_as_dense(s, base) : add_sparse_rows(s, base);
    }
    if (s->device.part == NULL && s->base == s->first &&
        gnomon_metric_is(s->options.metric, GNOMON_METRIC_DEVICE) &&
        gnomon_sets_worth_device(s, base))
        GNOMON_TRY(gnomon_search_to_device(s, "base", false));
    if (s->device.part != NULL) {
        GNOMON_TRY(gnomon_search_add_on_device(s, NULL, base));
    } else {
        gnomon_sets sets = {0};
        gnomon_context_set_worked(s->ctx, NULL);
        gnomon_status status =
            gnomon_sets_make(s->ctx, base, "base", s->base, s->options.metric, &sets);
        if (status == GNOMON_OK) status = gnomon_scan_sets(s, &sets);
        gnomon_sets_free(s->ctx, &sets);
        GNOMON_TRY(status);
    }
    s->base += base->rows;
    return GNOMON_OK;
}

gnomon_status gnomon_search_add_inverted(gnomon_search *s, const gnomon_inverted *base)
{
    GNOMON_TRY(check_add(s, base->rows.count, base->cols));
    GNOMON_FAIL_IF(s->device.part != NULL, s->ctx, GNOMON_ERROR_DEVICE,
                   GNOMON_ARG("base") " is sparse, and the search runs on a device; sparse points "
                                      "are searched on the CPU");
    GNOMON_TRY(make_queries(s, false));
    gnomon_context_set_worked(s->ctx, NULL);
    GNOMON_TRY(gnomon_scan_sparse(s, base));
    s->base += base->rows.count;
    return GNOMON_OK;
}

/* ---- the answers ---- */

static double distance_of(const gnomon_search *s, double key)
{
    return gnomon_metric_turn(s->options.metric, key);
}

typedef struct answer {
    gnomon_search *s;
    gnomon_neighbors *out;
    gnomon_ranked *sorted; /* by radius: the hits, query by query */
} answer;

static void hand_out(void *arg, int64_t q, int number)
{
    (void)number;
    const answer *a = arg;
    const int64_t first = a->out->offsets[q], count = a->out->offsets[q + 1] - first;
    gnomon_ranked *points = a->s->options.k > 0 ? a->s->nearest[q].heap : a->sorted + first;
    gnomon_ranked_sort(points, count);
    for (int64_t i = 0; i < count; i++) {
        a->out->ids[first + i] = points[i].id;
        a->out->distances[first + i] = distance_of(a->s, points[i].key);
    }
}

static gnomon_status check_count(const gnomon_search *s, int64_t q, int64_t count, int64_t base)
{
    GNOMON_FAIL_IF(count < s->options.k, s->ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("k") " is %" PRId64 ", and %" PRId64 " of base's %" PRId64
                                   " points may be neighbours of query %" PRId64,
                   s->options.k, count, base, q);
    return GNOMON_OK;
}

static gnomon_status make_room(gnomon_search *s, gnomon_neighbors *out, int64_t answers)
{
    GNOMON_TRY(gnomon_alloc(s->ctx, answers, sizeof *out->ids, "ids", &out->ids));
    GNOMON_TRY(gnomon_alloc(s->ctx, answers, sizeof *out->distances, "distances", &out->distances));
    gnomon_expect_use(s->ctx, out->ids, answers * (int64_t)sizeof *out->ids);
    gnomon_expect_use(s->ctx, out->distances, answers * (int64_t)sizeof *out->distances);
    return GNOMON_OK;
}

/* The k nearest that a device found. */
static gnomon_status bring(gnomon_search *s, gnomon_neighbors *out)
{
    const int64_t k = s->options.k;
    GNOMON_TRY(gnomon_alloc(s->ctx, s->count + 1, sizeof *out->offsets, "offsets", &out->offsets));
    GNOMON_TRY(make_room(s, out, s->count * k));
    int64_t *counts = out->offsets;
    GNOMON_TRY(gnomon_search_finish_on_device(s, counts, out->ids, out->distances));
    if (gnomon_metric_of_sets(s->options.metric))
        GNOMON_TRY(gnomon_sets_fill(s, counts, out->ids, out->distances));
    int64_t next = 0;
    for (int64_t q = 0; q < s->count; q++) {
        const int64_t count = counts[q];
        if (next < q * k) {
            memmove(out->ids + next, out->ids + q * k, (size_t)count * sizeof *out->ids);
            memmove(out->distances + next, out->distances + q * k,
                    (size_t)count * sizeof *out->distances);
        }
        out->offsets[q] = next;
        next += count;
    }
    out->offsets[s->count] = next;
    return GNOMON_OK;
}

static gnomon_status collect(answer *a)
{
    gnomon_search *s = a->s;
    gnomon_neighbors *out = a->out;
    GNOMON_TRY(
        gnomon_alloc_zero(s->ctx, s->count + 1, sizeof *out->offsets, "offsets", &out->offsets));
    for (int64_t q = 0; q < s->count && s->options.k > 0; q++)
        out->offsets[q + 1] = out->offsets[q] + s->nearest[q].count;
    if (s->options.k == 0) {
        for (int64_t i = 0; i < s->hit_count; i++)
            out->offsets[s->hits[i].query + 1]++;
        for (int64_t q = 0; q < s->count; q++)
            out->offsets[q + 1] += out->offsets[q];
        GNOMON_TRY(
            gnomon_alloc(s->ctx, s->hit_count, sizeof *a->sorted, "sorted hits", &a->sorted));
        /* offsets serve as the places to fill and are turned back */
        for (int64_t i = 0; i < s->hit_count; i++)
            a->sorted[out->offsets[s->hits[i].query]++] = s->hits[i].point;
        for (int64_t q = s->count; q > 0; q--)
            out->offsets[q] = out->offsets[q - 1];
        out->offsets[0] = 0;
        gnomon_free(s->ctx, s->hits);
        s->hits = NULL;
    }
    GNOMON_TRY(make_room(s, out, out->offsets[s->count]));
    gnomon_parallel(s->ctx, s->count, hand_out, a);
    return GNOMON_OK;
}

gnomon_status gnomon_neighbors_check(gnomon_search *s, const gnomon_neighbors *found)
{
    for (int64_t q = 0; q < s->count && s->options.k > 0; q++)
        GNOMON_TRY(check_count(s, q, found->offsets[q + 1] - found->offsets[q], found->base));
    return GNOMON_OK;
}

/* What sets without a common member are missing of the k nearest; a device adds them itself. */
static gnomon_status complete(gnomon_search *s)
{
    const bool here = gnomon_metric_of_sets(s->options.metric) && s->device.part == NULL;
    return here ? gnomon_sets_complete(s) : GNOMON_OK;
}

/* The answers as they are; what could be allocated of them is freed on failure. */
static gnomon_status find(gnomon_search *s, gnomon_neighbors *found)
{
    const bool there = s->device.part != NULL && s->options.k > 0;
    answer a = {s, found, NULL};
    const gnomon_status status = there ? bring(s, found) : collect(&a);
    gnomon_free(s->ctx, a.sorted);
    found->queries = s->count;
    found->k = s->options.k;
    found->base = s->base - s->first;
    found->compared = s->compared;
    found->verified = s->verified;
    memcpy(found->why, s->why, sizeof found->why);
    if (status != GNOMON_OK) gnomon_neighbors_free(s->ctx, found);
    return status;
}

gnomon_status gnomon_search_finish_partial(gnomon_search *s, gnomon_neighbors *out)
{
    GNOMON_FAIL_IF(s->finished, s->ctx, GNOMON_ERROR_ARGUMENT,
                   "the search has handed out its answers");
    s->finished = true;
    GNOMON_TRY(complete(s));
    return find(s, out);
}

/* Refuses, before any work on answers, that of k nearest some are missing. */
static gnomon_status check_found(gnomon_search *s)
{
    if (s->options.k == 0 || s->device.part != NULL) return GNOMON_OK;
    GNOMON_TRY(complete(s));
    for (int64_t q = 0; q < s->count; q++)
        GNOMON_TRY(check_count(s, q, s->nearest[q].count, s->base - s->first));
    return GNOMON_OK;
}

gnomon_status gnomon_search_finish(gnomon_search *s, gnomon_neighbors *out)
{
    GNOMON_NEED(NULL, s, "search");
    gnomon_neighbors found = {.struct_size = sizeof found};
    GNOMON_TRY(GNOMON_OPEN_RESULT(s->ctx, "out", gnomon_neighbors, out));
    GNOMON_FAIL_IF(s->finished, s->ctx, GNOMON_ERROR_ARGUMENT,
                   "the search has handed out its answers");
    GNOMON_TRY(check_found(s));
    s->finished = true;
    gnomon_status status = find(s, &found);
    if (status == GNOMON_OK) status = gnomon_neighbors_check(s, &found);
    if (status == GNOMON_OK) gnomon_return_result(out, &found, sizeof found);
    gnomon_neighbors_free(s->ctx, &found);
    return status;
}

/* ---- the answers of two parts ---- */

typedef struct both {
    const gnomon_search *s;
    const gnomon_neighbors *a, *b;
    gnomon_neighbors *out;
} both;

static gnomon_ranked ranked_at(const both *m, const gnomon_neighbors *n, int64_t at)
{
    return (gnomon_ranked){gnomon_metric_turn(m->s->options.metric, n->distances[at]), n->ids[at]};
}

static void merge_query(void *arg, int64_t q, int worker)
{
    (void)worker;
    const both *m = arg;
    int64_t a = m->a->offsets[q], b = m->b->offsets[q];
    for (int64_t at = m->out->offsets[q]; at < m->out->offsets[q + 1]; at++) {
        const bool first = b == m->b->offsets[q + 1] ||
                           (a < m->a->offsets[q + 1] &&
                            gnomon_ranked_before(ranked_at(m, m->a, a), ranked_at(m, m->b, b)));
        const gnomon_neighbors *from = first ? m->a : m->b;
        const int64_t next = first ? a++ : b++;
        m->out->ids[at] = from->ids[next];
        m->out->distances[at] = from->distances[next];
    }
}

gnomon_status gnomon_neighbors_merge(gnomon_search *s, const gnomon_neighbors *a,
                                     const gnomon_neighbors *b, gnomon_neighbors *out)
{
    *out = (gnomon_neighbors){.struct_size = sizeof *out, .queries = s->count, .k = s->options.k};
    GNOMON_TRY(gnomon_alloc(s->ctx, s->count + 1, sizeof *out->offsets, "offsets", &out->offsets));
    out->offsets[0] = 0;
    for (int64_t q = 0; q < s->count; q++) {
        int64_t count = a->offsets[q + 1] - a->offsets[q] + b->offsets[q + 1] - b->offsets[q];
        if (s->options.k > 0) count = gnomon_min(count, s->options.k);
        out->offsets[q + 1] = out->offsets[q] + count;
    }
    const gnomon_status status = make_room(s, out, out->offsets[s->count]);
    if (status != GNOMON_OK) {
        gnomon_neighbors_free(s->ctx, out);
        return status;
    }
    both m = {s, a, b, out};
    gnomon_parallel(s->ctx, s->count, merge_query, &m);
    out->base = a->base + b->base;
    out->compared = a->compared + b->compared;
    out->verified = a->verified + b->verified;
    memcpy(out->why, a->base > 0 ? a->why : b->why, sizeof out->why);
    return GNOMON_OK;
}

void gnomon_neighbors_free(gnomon_context *ctx, gnomon_neighbors *neighbors)
{
    gnomon_neighbors found;
    if (ctx == NULL || !gnomon_load_result(neighbors, &found, sizeof found)) return;
    gnomon_free(ctx, found.offsets);
    gnomon_free(ctx, found.ids);
    gnomon_free(ctx, found.distances);
    gnomon_clear_result(neighbors);
}

/* Says at once what finish would say after all the work. */
static gnomon_status check_k(gnomon_context *ctx, const gnomon_search_options *given, int64_t rows)
{
    gnomon_search_options o = GNOMON_SEARCH_OPTIONS_INIT;
    GNOMON_TRY(GNOMON_COPY_OPTIONS(ctx, "options", gnomon_search_options, given, &o));
    GNOMON_FAIL_IF(o.k > rows, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("k") " is %" PRId64 " and base has %" PRId64
                                   " points; k must not be larger",
                   o.k, rows);
    return GNOMON_OK;
}

gnomon_status gnomon_neighbors_exact(gnomon_context *ctx, const gnomon_matrix *base,
                                     const gnomon_matrix *queries,
                                     const gnomon_search_options *options, gnomon_neighbors *out)
{
    GNOMON_NEED(NULL, ctx, "ctx");
    gnomon_search *s = NULL;
    GNOMON_TRY(gnomon_check_anywhere(ctx, base, "base", false));
    GNOMON_TRY(check_k(ctx, options, base->rows));
    GNOMON_TRY(GNOMON_OPEN_RESULT(ctx, "out", gnomon_neighbors, out));
    gnomon_status status = gnomon_search_create(ctx, queries, options, &s);
    if (status == GNOMON_OK) status = gnomon_search_add(s, base);
    if (status == GNOMON_OK) status = gnomon_search_finish(s, out);
    gnomon_search_destroy(s);
    return status;
}

gnomon_status gnomon_neighbors_exact_csr(gnomon_context *ctx, const gnomon_csr *base,
                                         const gnomon_csr *queries,
                                         const gnomon_search_options *options,
                                         gnomon_neighbors *out)
{
    GNOMON_NEED(NULL, ctx, "ctx");
    gnomon_search *s = NULL;
    GNOMON_FAIL_IF(base == NULL, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("base") " is NULL");
    GNOMON_TRY(check_k(ctx, options, base->rows));
    GNOMON_TRY(GNOMON_OPEN_RESULT(ctx, "out", gnomon_neighbors, out));
    gnomon_status status = gnomon_search_create_csr(ctx, queries, options, &s);
    if (status == GNOMON_OK) status = gnomon_search_add_csr(s, base);
    if (status == GNOMON_OK) status = gnomon_search_finish(s, out);
    gnomon_search_destroy(s);
    return status;
}

/* Indexes in memory, what they tell of themselves, and queries. */
#include "inverted/index.h"

#include "base/arithmetic.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "lsh/index.h"
#include "search/jaccard.h"
#include "search/sparse.h"

#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

gnomon_status gnomon_sparse_index_check_metric(gnomon_context *ctx, gnomon_metric metric)
{
    const gnomon_metric_row *row = gnomon_metric_row_of(metric);
    GNOMON_FAIL_IF(row == NULL || row->sparse == NULL, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("metric") " is %d (%s); an index of sparse points takes l2, cosine, "
                                        "ip and l1",
                   (int)metric, gnomon_metric_name(metric));
    return GNOMON_OK;
}

static gnomon_status create(gnomon_sparse_index *index, gnomon_metric metric,
                            const gnomon_csr *points)
{
    gnomon_sets rows = {0};
    GNOMON_TRY(gnomon_sparse_make(index->ctx, points, "points", 0, metric, &rows));
    return gnomon_inverted_open(index->ctx, metric, &rows, points->cols, &index->inverted);
}

gnomon_status gnomon_sparse_index_create(gnomon_context *ctx, gnomon_metric metric,
                                         const gnomon_csr *points, gnomon_sparse_index **out)
{
    GNOMON_FAIL_IF(out == NULL, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("out") " is NULL");
    *out = NULL;
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_TRY(gnomon_sparse_index_check_metric(ctx, metric));
    GNOMON_FAIL_IF(points == NULL, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("points") " is NULL");
    GNOMON_FAIL_IF(points->rows >= UINT32_MAX, ctx, GNOMON_ERROR_UNSUPPORTED,
                   GNOMON_ARG("points") " has %" PRId64 " rows; an index takes at most 2^32 - 2",
                   points->rows);
    gnomon_sparse_index *index;
    GNOMON_TRY(gnomon_alloc_zero(ctx, 1, sizeof *index, "an index", &index));
    index->ctx = ctx;
    const gnomon_status status = create(index, metric, points);
    if (status != GNOMON_OK)
        gnomon_sparse_index_destroy(index);
    else
        *out = index;
    return status;
}

void gnomon_sparse_index_destroy(gnomon_sparse_index *index)
{
    if (index == NULL) return;
    gnomon_context *ctx = index->ctx;
    gnomon_inverted_close(ctx, &index->inverted);
    gnomon_free(ctx, index->allowed);
    if (index->map != NULL) munmap((void *)index->map, (size_t)index->map_bytes);
    if (index->origin != NULL) gnomon_free(ctx, index->origin->path);
    gnomon_free(ctx, index->origin);
    gnomon_free(ctx, index);
}

void gnomon_sparse_index_describe(const gnomon_sparse_index *index, gnomon_sparse_index_info *info)
{
    if (index == NULL || info == NULL) return;
    const gnomon_inverted *x = &index->inverted;
    const int64_t n = x->rows.count, nonzeros = x->rows.offsets[n];
    const int64_t norms = 1 + (x->width > 0) + (x->bias != NULL);
    const gnomon_sparse_index_info told = {
        .struct_size = sizeof told,
        .metric = x->metric,
        .points = n,
        .removed = index->removed,
        .dim = x->cols,
        .nonzeros = nonzeros,
        .columns = x->columns.used,
        .heavy_columns = x->columns.used - x->heavy_from,
        .point_bytes = 16 * nonzeros + 8 * (n + 1) + (x->rows.factors != NULL ? 8 * n : 0),
        .index_bytes = 8 * x->lists[x->heavy_from] + 8 * (x->heavy_from + 1) +
                       12 * x->columns.used + 4 * n * x->width +
                       (x->columns.used - x->heavy_from) * (gnomon_inverted_padded(n) + 4) +
                       4 * norms * gnomon_inverted_padded(n)};
    gnomon_write_result(info, &told, sizeof told);
}

/* ---- queries ---- */

/* Bits of points that are not removed and that the caller allows. */
static gnomon_status make_filter(gnomon_context *ctx, const gnomon_sparse_index *index,
                                 gnomon_search_options *o, uint8_t **both)
{
    const int64_t n = index->inverted.rows.count, bytes = (n + 7) / 8;
    *both = NULL;
    if (index->allowed == NULL || o->filter_bits < 0) return GNOMON_OK;
    if (o->filter == NULL) {
        o->filter = index->allowed;
        o->filter_bits = n;
        return GNOMON_OK;
    }
    GNOMON_TRY(gnomon_alloc_zero(ctx, bytes, 1, "a filter", both));
    const int64_t here = gnomon_min((o->filter_bits + 7) / 8, bytes);
    for (int64_t i = 0; i < here; i++)
        (*both)[i] = index->allowed[i] & o->filter[i];
    o->filter = *both;
    o->filter_bits = gnomon_min(o->filter_bits, n);
    return GNOMON_OK;
}

static gnomon_status search(gnomon_context *ctx, const gnomon_sparse_index *index,
                            const gnomon_matrix *dense, const gnomon_csr *sparse,
                            const gnomon_search_options *o, gnomon_neighbors *out)
{
    gnomon_search *s = NULL;
    gnomon_status status = sparse != NULL ? gnomon_search_create_csr(ctx, sparse, o, &s)
                                          : gnomon_search_create(ctx, dense, o, &s);
    if (status == GNOMON_OK) status = gnomon_search_add_inverted(s, &index->inverted);
    const bool complete = status == GNOMON_OK && o->filter == index->allowed && o->exclude < 0;
    if (status == GNOMON_OK) status = gnomon_search_finish(s, out);
    gnomon_search_destroy(s);
    /* k is at most the points that are there, so NaN among the file's norms has lost one */
    if (status == GNOMON_ERROR_ARGUMENT && complete)
        status = gnomon_fail(ctx, GNOMON_ERROR_DATA, "a norm is not a number: the file is damaged");
    if (status == GNOMON_ERROR_DATA && gnomon_last_error_argument(ctx)[0] == '\0' &&
        index->origin != NULL)
        status = gnomon_fail_prefix(ctx, status, GNOMON_ARG("%s"), index->origin->path);
    return status;
}

static gnomon_status query(gnomon_context *ctx, const gnomon_sparse_index *index,
                           const gnomon_matrix *dense, const gnomon_csr *sparse,
                           const gnomon_search_options *given, gnomon_neighbors *out)
{
    gnomon_search_options o = GNOMON_SEARCH_OPTIONS_INIT;
    uint8_t *both;
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_FAIL_IF(index == NULL, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("index") " is NULL");
    GNOMON_FAIL_IF(dense == NULL && sparse == NULL, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("queries") " is NULL");
    GNOMON_FAIL_IF(given == NULL, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("options") " is NULL");
    GNOMON_TRY(GNOMON_COPY_OPTIONS(ctx, "options", gnomon_search_options, given, &o));
    const gnomon_metric metric = index->inverted.metric;
    GNOMON_FAIL_IF(o.metric != metric, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("metric") " is %s; the index is for %s", gnomon_metric_name(o.metric),
                   gnomon_metric_name(metric));
    GNOMON_FAIL_IF(gnomon_context_device(ctx) == GNOMON_DEVICE_PLUGIN, ctx, GNOMON_ERROR_DEVICE,
                   "an index of sparse points is searched on the CPU; take the device cpu or auto");
    const int64_t live = index->inverted.rows.count - index->removed;
    GNOMON_FAIL_IF(o.k > live, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("k") " is %" PRId64 " and the index has %" PRId64
                                   " points; k must not be larger",
                   o.k, live);
    GNOMON_TRY(GNOMON_OPEN_RESULT(ctx, "out", gnomon_neighbors, out));
    GNOMON_TRY(make_filter(ctx, index, &o, &both));
    const gnomon_status status = search(ctx, index, dense, sparse, &o, out);
    gnomon_free(ctx, both);
    return status;
}

gnomon_status gnomon_sparse_index_query(gnomon_context *ctx, const gnomon_sparse_index *index,
                                        const gnomon_matrix *queries,
                                        const gnomon_search_options *options, gnomon_neighbors *out)
{
    return query(ctx, index, queries, NULL, options, out);
}

gnomon_status gnomon_sparse_index_query_csr(gnomon_context *ctx, const gnomon_sparse_index *index,
                                            const gnomon_csr *queries,
                                            const gnomon_search_options *options,
                                            gnomon_neighbors *out)
{
    return query(ctx, index, NULL, queries, options, out);
}

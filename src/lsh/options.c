/* What an index may be made of. */
#include "base/options.h"
#include "base/error.h"
#include "lsh/families/family.h"
#include "lsh/index.h"

#include <inttypes.h>
#include <string.h>

bool gnomon_lsh_of_metric(gnomon_metric metric, gnomon_lsh_family family)
{
    for (int i = 0; gnomon_metric_family(metric, i) != 0; i++)
        if (gnomon_metric_family(metric, i) == family) return true;
    return false;
}

static gnomon_status check_range(gnomon_context *ctx, const char *name, int64_t value, int64_t low,
                                 int64_t high)
{
    GNOMON_FAIL_IF(value < low || value > high, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("options.%s") " is %" PRId64 "; it must be %" PRId64 " to %" PRId64,
                   name, value, low, high);
    return GNOMON_OK;
}

gnomon_status gnomon_lsh_check_search_params(gnomon_context *ctx, const gnomon_lsh_options *o,
                                             const gnomon_lsh_search_params *e)
{
    const int64_t most = (int64_t)1 << 24;
    GNOMON_FAIL_IF(e->tables < 0 || e->tables > o->tables, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("search_params.tables") " is %" PRId64 "; it must be 0 to %" PRId64
                                                      ", the index's tables",
                   e->tables, o->tables);
    GNOMON_FAIL_IF(e->probes < 0 || e->probes > most, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("search_params.probes") " is %" PRId64 "; it must be 0 to 2^24",
                   e->probes);
    GNOMON_FAIL_IF(e->coarse < 0 || e->coarse > most, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("search_params.coarse") " is %" PRId64 "; it must be 0 to 2^24",
                   e->coarse);
    GNOMON_FAIL_IF(
        e->coarse > 0 && o->fine == 0, ctx, GNOMON_ERROR_ARGUMENT,
        GNOMON_ARG("search_params.coarse") " is %" PRId64
                                           "; in an index without fine functions all buckets "
                                           "are coarse, so it must be 0",
        e->coarse);
    GNOMON_FAIL_IF(e->candidates < 0, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("search_params.candidates") " is %" PRId64
                                                          "; it must not be negative",
                   e->candidates);
    GNOMON_FAIL_IF(e->rerank < 0, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("search_params.rerank") " is %" PRId64 "; it must not be negative",
                   e->rerank);
    GNOMON_FAIL_IF(
        e->rerank > 0 && o->codes == 0, ctx, GNOMON_ERROR_ARGUMENT,
        GNOMON_ARG("search_params.rerank") " is %" PRId64
                                           "; an index without codes verifies all, so it must be 0",
        e->rerank);
    return GNOMON_OK;
}

gnomon_status gnomon_lsh_check_stream(gnomon_context *ctx, const gnomon_join_points *p)
{
    GNOMON_NEED(ctx, p, "points");
    GNOMON_FAIL_IF(p->read == NULL, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("points.read") " is NULL");
    GNOMON_FAIL_IF(p->rows < 0 || p->cols < 0, ctx, GNOMON_ERROR_SHAPE,
                   GNOMON_ARG("points") " is %" PRId64 " x %" PRId64 "; it must not be negative",
                   p->rows, p->cols);
    GNOMON_FAIL_IF(gnomon_dtype_size(p->dtype) == 0, ctx, GNOMON_ERROR_DTYPE,
                   GNOMON_ARG("points") " is of type %d; it must be one of gnomon_dtype",
                   (int)p->dtype);
    return GNOMON_OK;
}

/* One function makes all lists; what orders candidates before they are verified is not for these.
 */
static gnomon_status check_lists(gnomon_context *ctx, const gnomon_lsh_options *o)
{
    const gnomon_family_row *row = gnomon_family_row_of(o->functions.family);
    const char *const names[] = {"tables", "coarse", "fine", "codes"};
    const int64_t given[] = {o->tables, o->coarse, o->fine, o->codes}, wanted[] = {1, 1, 0, 0};
    for (int i = 0; i < 4; i++)
        GNOMON_FAIL_IF(row->centres != 0 && given[i] != wanted[i], ctx, GNOMON_ERROR_ARGUMENT,
                       GNOMON_ARG("options.%s") " is %" PRId64 "; of %s it must be %" PRId64,
                       names[i], given[i], row->name, wanted[i]);
    return GNOMON_OK;
}

gnomon_status gnomon_lsh_check_options(gnomon_context *ctx, const gnomon_lsh_options *given,
                                       gnomon_lsh_options *o)
{
    const gnomon_lsh_options defaults = GNOMON_LSH_OPTIONS_INIT;
    *o = defaults;
    GNOMON_TRY(GNOMON_COPY_OPTIONS(ctx, "options", gnomon_lsh_options, given, o));
    GNOMON_TRY(GNOMON_COMPLETE_OPTIONS(ctx, "options.functions", gnomon_lsh_functions,
                                       &o->functions, &defaults.functions));
    GNOMON_TRY(GNOMON_COMPLETE_OPTIONS(ctx, "options.search_params", gnomon_lsh_search_params,
                                       &o->search_params, &defaults.search_params));
    GNOMON_FAIL_IF(gnomon_metric_row_of(o->metric) != NULL &&
                       gnomon_metric_family(o->metric, 0) == 0,
                   ctx, GNOMON_ERROR_UNSUPPORTED,
                   GNOMON_ARG("options.metric") " is %s, for which there are no hash functions",
                   gnomon_metric_name(o->metric));
    GNOMON_FAIL_IF(!gnomon_lsh_of_metric(o->metric, o->functions.family), ctx,
                   GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("options.functions.family") " is %s; the metric is %s",
                   gnomon_lsh_family_name(o->functions.family), gnomon_metric_name(o->metric));
    GNOMON_TRY(check_range(ctx, "tables", o->tables, 1, 4096));
    GNOMON_TRY(check_range(ctx, "coarse", o->coarse, 1, GNOMON_LSH_MOST_DEPTH));
    GNOMON_TRY(check_range(ctx, "fine", o->fine, 0, GNOMON_LSH_MOST_DEPTH - o->coarse));
    const bool may = gnomon_metric_is(o->metric, GNOMON_METRIC_CODES);
    GNOMON_FAIL_IF(o->codes != 0 && !may, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("options.codes") " is %" PRId64 "; %s takes none", o->codes,
                   gnomon_metric_name(o->metric));
    GNOMON_TRY(check_range(ctx, "codes", o->codes, 0, 1024));
    GNOMON_FAIL_IF(o->memory < 0, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("options.memory") " is %" PRId64 "; it must not be negative",
                   o->memory);
    GNOMON_TRY(check_lists(ctx, o));
    o->functions.count = o->tables * (o->coarse + o->fine);
    return gnomon_lsh_check_search_params(ctx, o, &o->search_params);
}

/* sjlt (Kane and Nelson 2014): every band of rows gets one nonzero of every column (bands.c). */
#include "base/error.h"
#include "operator/kinds/kinds.h"

#include <inttypes.h>

static gnomon_status check(gnomon_context *ctx, gnomon_descriptor *d)
{
    GNOMON_FAIL_IF(d->nonzeros < 0 || d->nonzeros > d->k, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("nonzeros") " is %" PRId64
                                          "; it must be at least 1 and at most k, which is "
                                          "%" PRId64,
                   d->nonzeros, d->k);
    return GNOMON_OK;
}

static gnomon_status set_up(gnomon_context *ctx, gnomon_simple *a, const gnomon_descriptor *d)
{
    a->nonzeros = d->nonzeros != 0 ? d->nonzeros : a->rows < 4 ? a->rows : 4;
    GNOMON_FAIL_IF(a->nonzeros > a->rows, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("nonzeros") " is %" PRId64 "; it must be at most the %" PRId64
                                          " rows of every inner matrix",
                   a->nonzeros, a->rows);
    const int64_t band = (a->rows - 1) / a->nonzeros + 1;
    GNOMON_FAIL_IF(band > GNOMON_BAND_MAX, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("nonzeros") " is %" PRId64 "; with %" PRId64
                                          " rows it must be at least %" PRId64
                                          ", so that a band has at most 2^28 rows",
                   a->nonzeros, a->rows, (a->rows - 1) / GNOMON_BAND_MAX + 1);
    a->bands = a->column_entries = a->nonzeros;
    a->key_tag = GNOMON_TAG_SJLT_KEYS;
    a->sign_tag = GNOMON_TAG_SJLT_SIGNS;
    a->fill = (double)a->nonzeros / (double)a->rows;
    a->chunk_log2 = gnomon_log2_at_least(4 * band > 4096 ? 4 * band : 4096);
    a->chunk = INT64_C(1) << a->chunk_log2;
    return GNOMON_OK;
}

static void each(const gnomon_simple *a, int64_t row, int64_t rows, int64_t col, int64_t cols,
                 gnomon_entry_fn fn, void *arg)
{
    gnomon_bands_each(a, NULL, row, rows, col, cols, fn, arg);
}

static double column_norm(const gnomon_simple *a, double rows)
{
    (void)rows;
    return (double)a->nonzeros;
}

const gnomon_kind_row gnomon_kind_row_sjlt = {
    .info = {.kind = GNOMON_SJLT,
             .name = "sjlt",
             .about = "",
             .uses = GNOMON_USES_NONZEROS,
             .flags = GNOMON_KIND_INNER | GNOMON_KIND_FAST},
    .check = check,
    .set_up = set_up,
    .column_norm = column_norm,
    .unscaled = 1.0,
    .needs_equal_blocks = true,
    .each = each,
};

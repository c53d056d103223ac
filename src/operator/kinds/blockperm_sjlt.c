/* blockperm-sjlt (Dwaraknath, Kim and Pilanci 2026): M x M blocks, of which permutations choose a
 * few in each row and column of blocks; each of those is an sjlt of its own (bands.c). */
#include "base/arithmetic.h"
#include "base/error.h"
#include "operator/kinds/kinds.h"
#include "operator/philox.h"

#include <inttypes.h>

enum { ROWS_A_BLOCK = 16, CHUNK_MOST = 4096 };

int64_t gnomon_blockperm_row_block(const gnomon_simple *a, int64_t chunk, int64_t l)
{
    const uint64_t column_block = (uint64_t)(chunk / a->chunks_a_block);
    const uint64_t from = gnomon_perm(column_block, a->blocks_log2, a->wiring_key[0]);
    const uint64_t by = gnomon_perm((uint64_t)l, a->blocks_log2, a->wiring_key[1]);
    return (int64_t)((from + by) & ((UINT64_C(1) << a->blocks_log2) - 1));
}

bool gnomon_blockperm_wired(const gnomon_simple *a, int64_t chunk, int64_t band)
{
    const uint64_t row_block = (uint64_t)(band / a->nonzeros);
    const uint64_t column_block = (uint64_t)(chunk / a->chunks_a_block);
    const uint64_t from = gnomon_perm(column_block, a->blocks_log2, a->wiring_key[0]);
    const uint64_t by = (row_block - from) & ((UINT64_C(1) << a->blocks_log2) - 1);
    return gnomon_perm_inverse(by, a->blocks_log2, a->wiring_key[1]) < (uint64_t)a->wiring;
}

static void each(const gnomon_simple *a, int64_t row, int64_t rows, int64_t col, int64_t cols,
                 gnomon_entry_fn fn, void *arg)
{
    gnomon_bands_each(a, gnomon_blockperm_wired, row, rows, col, cols, fn, arg);
}

static gnomon_status check(gnomon_context *ctx, gnomon_descriptor *d)
{
    if (d->blocks == 0)
        for (d->blocks = 1; 2 * d->blocks <= d->k / ROWS_A_BLOCK;)
            d->blocks *= 2;
    GNOMON_FAIL_IF(
        d->blocks < 1 || d->blocks > d->k || (d->blocks & (d->blocks - 1)) != 0, ctx,
        GNOMON_ERROR_ARGUMENT,
        GNOMON_ARG("blocks") " is %" PRId64
                             "; it must be a power of two, at least 1 and at most k, which "
                             "is %" PRId64,
        d->blocks, d->k);
    const int64_t rows = d->k / d->blocks;
    if (d->nonzeros == 0) d->nonzeros = rows < 2 ? rows : 2;
    GNOMON_FAIL_IF(
        d->nonzeros < 1 || d->nonzeros > rows, ctx, GNOMON_ERROR_ARGUMENT,
        GNOMON_ARG("nonzeros") " is %" PRId64
                               "; it must be at least 1 and at most k / blocks, which is "
                               "%" PRId64,
        d->nonzeros, rows);
    if (d->wiring == 0) d->wiring = d->blocks < 4 ? d->blocks : 4;
    GNOMON_FAIL_IF(d->wiring < 1 || d->wiring > d->blocks, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("wiring") " is %" PRId64
                                        "; it must be at least 1 and at most blocks, which is "
                                        "%" PRId64,
                   d->wiring, d->blocks);
    GNOMON_FAIL_IF(gnomon_ceil_div(d->k, d->blocks * d->nonzeros) > GNOMON_BAND_MAX, ctx,
                   GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("nonzeros") " is %" PRId64 "; with %" PRId64 " rows and %" PRId64
                                          " blocks it must be at least %" PRId64
                                          ", so that a band has at most 2^28 rows",
                   d->nonzeros, d->k, d->blocks,
                   gnomon_ceil_div(gnomon_ceil_div(d->k, GNOMON_BAND_MAX), d->blocks));
    return GNOMON_OK;
}

static void wiring_keys(gnomon_simple *a, int which)
{
    const gnomon_words first =
        gnomon_call(a, GNOMON_TAG_BLOCKPERM_WIRING, 0, (uint64_t)(2 * which));
    const gnomon_words second =
        gnomon_call(a, GNOMON_TAG_BLOCKPERM_WIRING, 0, (uint64_t)(2 * which + 1));
    for (int i = 0; i < 4; i++)
        a->wiring_key[which][i] = first.w[i];
    a->wiring_key[which][4] = second.w[0];
    a->wiring_key[which][5] = second.w[1];
}

static gnomon_status set_up(gnomon_context *ctx, gnomon_simple *a, const gnomon_descriptor *d)
{
    (void)ctx;
    a->nonzeros = d->nonzeros;
    a->wiring = d->wiring;
    a->bands = d->blocks * d->nonzeros;
    a->blocks_log2 = gnomon_log2_at_least(d->blocks);
    a->chunks_a_block = gnomon_ceil_div(gnomon_ceil_div(a->cols, d->blocks), CHUNK_MOST);
    a->chunk = gnomon_ceil_div(a->cols, d->blocks * a->chunks_a_block);
    const int64_t band = gnomon_ceil_div(a->rows, a->bands);
    a->chunk_log2 = gnomon_log2_at_least(4 * band > a->chunk ? 4 * band : a->chunk);
    a->column_entries = d->wiring * d->nonzeros;
    a->fill = (double)a->column_entries / (double)a->rows;
    a->key_tag = GNOMON_TAG_BLOCKPERM_KEYS;
    a->sign_tag = GNOMON_TAG_BLOCKPERM_SIGNS;
    wiring_keys(a, 0);
    wiring_keys(a, 1);
    return GNOMON_OK;
}

static double column_norm(const gnomon_simple *a, double rows)
{
    (void)rows;
    return (double)a->column_entries;
}

const gnomon_kind_row gnomon_kind_row_blockperm_sjlt = {
    .info = {.kind = GNOMON_BLOCKPERM_SJLT,
             .name = "blockperm-sjlt",
             .about = "",
             .uses = GNOMON_USES_NONZEROS | GNOMON_USES_BLOCKS | GNOMON_USES_WIRING,
             .flags = GNOMON_KIND_FAST},
    .check = check,
    .set_up = set_up,
    .column_norm = column_norm,
    .unscaled = 1.0,
    .each = each,
};

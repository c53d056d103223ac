/* An index of sparse points in a mapped file. What is per column is checked here; lists and rows
 * are checked by the queries that read them (search/inverted.c). */
#include "inverted/file/file.h"

#include "base/arithmetic.h"
#include "base/memory.h"
#include "kernels.h"

#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

typedef struct loading {
    gnomon_context *ctx;
    const gnomon_layout *l;
    gnomon_inverted *x;
    int64_t next; /* section */
} loading;

/* The next section, which has 'count' elements of so many bytes; -1: any number, which *count is
 * then. */
static gnomon_status load_section(loading *w, gnomon_section_kind kind, int64_t size,
                                  int64_t *count, void *pointer)
{
    const gnomon_section_name name = gnomon_section_name_of(kind, 0);
    const bool there = w->next < w->l->sections;
    const gnomon_section s =
        there ? gnomon_layout_section(w->l, w->next) : (gnomon_section){.length = -1};
    GNOMON_FAIL_IF(
        !there || s.kind != kind || s.number != 0 || s.dtype != 0, w->ctx, GNOMON_ERROR_DATA,
        "section %" PRId64 " is not that of the %s, which is due there", w->next, name.text);
    w->next++;
    const int64_t due = *count < 0 ? s.length / size : *count;
    int64_t bytes;
    GNOMON_FAIL_IF(!gnomon_mul(due, size, &bytes) || bytes != s.length, w->ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("%s") ": %" PRId64 " bytes long, which are not %" PRId64
                                    " elements of %" PRId64 " bytes",
                   name.text, s.length, due, size);
    *count = due;
    *(const void **)pointer = w->l->map + s.offset;
    return GNOMON_OK;
}

static gnomon_status load_array(loading *w, gnomon_section_kind kind, int64_t size, int64_t count,
                                void *pointer)
{
    return load_section(w, kind, size, &count, pointer);
}

static gnomon_status load_settings(loading *w)
{
    const gnomon_layout *l = w->l;
    const gnomon_section s = gnomon_layout_section(l, l->sections - 1);
    int64_t told[GNOMON_SPARSE_NUMBERS];
    gnomon_inverted *x = w->x;
    GNOMON_FAIL_IF(s.kind != GNOMON_SECTION_SPARSE_SETTINGS || s.number != 0 || s.dtype != 0 ||
                       s.length != (int64_t)sizeof told,
                   w->ctx, GNOMON_ERROR_DATA, "the last section is not that of the settings");
    GNOMON_FAIL_IF(gnomon_lsh_checksum(l->map + s.offset, (size_t)s.length) != s.checksum, w->ctx,
                   GNOMON_ERROR_DATA,
                   GNOMON_ARG("settings") ": the section is damaged: its checksum does not fit");
    memcpy(told, l->map + s.offset, sizeof told);
    const int64_t metric = told[GNOMON_SPARSE_METRIC];
    GNOMON_FAIL_IF(metric < 0 || metric > INT32_MAX ||
                       gnomon_sparse_index_check_metric(w->ctx, (gnomon_metric)metric) != GNOMON_OK,
                   w->ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("settings") ": the metric %" PRId64 " is none of sparse points",
                   metric);
    const int64_t exponent = told[GNOMON_SPARSE_EXPONENT], columns = told[GNOMON_SPARSE_COLUMNS];
    const int64_t heavy_from = told[GNOMON_SPARSE_HEAVY_FROM];
    GNOMON_FAIL_IF(
        told[GNOMON_SPARSE_DIM] < 1 || told[GNOMON_SPARSE_DIM] > (int64_t)1 << 56 ||
            exponent < -4096 || exponent > 4096 || columns < 0 || heavy_from < 0 ||
            heavy_from > columns || columns - heavy_from > 4096 || columns >= UINT32_MAX ||
            told[GNOMON_SPARSE_LONGEST] < 0 || told[GNOMON_SPARSE_LONGEST] > (int64_t)1 << 56,
        w->ctx, GNOMON_ERROR_DATA,
        GNOMON_ARG("settings") ": %" PRId64 " columns, %" PRId64 " of them listed, of %" PRId64
                               " dimensions, exponent %" PRId64 ": out of bounds",
        columns, heavy_from, told[GNOMON_SPARSE_DIM], exponent);
    x->metric = (gnomon_metric)metric;
    x->cols = told[GNOMON_SPARSE_DIM];
    x->exponent = (int)exponent;
    x->longest = told[GNOMON_SPARSE_LONGEST];
    x->heavy_from = heavy_from;
    x->width = gnomon_round_up(columns - heavy_from, GNOMON_LANES);
    x->columns = (gnomon_numbering){.sorted = true, .used = columns};
    return GNOMON_OK;
}

static gnomon_status load_rows(loading *w)
{
    gnomon_sets *rows = &w->x->rows;
    const int64_t n = w->l->points;
    int64_t nonzeros = -1;
    rows->count = n;
    GNOMON_TRY(load_section(w, GNOMON_SECTION_ROW_COLUMNS, 8, &nonzeros, &rows->members));
    GNOMON_TRY(load_array(w, GNOMON_SECTION_ROW_VALUES, 8, nonzeros, &rows->weights));
    GNOMON_TRY(load_array(w, GNOMON_SECTION_ROW_OFFSETS, 8, n + 1, &rows->offsets));
    const bool cosine = w->x->metric == GNOMON_COSINE;
    GNOMON_TRY(load_array(w, GNOMON_SECTION_ROW_FACTORS, 8, cosine ? n : 0, &rows->factors));
    if (!cosine) rows->factors = NULL;
    GNOMON_FAIL_IF(rows->offsets[0] != 0 || rows->offsets[n] != nonzeros, w->ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("rows' offsets") ": from %" PRId64 " to %" PRId64 " for %" PRId64
                                               " nonzeros",
                   rows->offsets[0], rows->offsets[n], nonzeros);
    return GNOMON_OK;
}

/* The allowed points, from the bits of the removed ones. */
static gnomon_status load_removed(loading *w, gnomon_sparse_index *index)
{
    const int64_t n = w->l->points, bytes = (n + 7) / 8;
    const uint8_t *gone;
    int64_t removed = 0;
    GNOMON_TRY(load_array(w, GNOMON_SECTION_GONE, 1, w->l->removed > 0 ? bytes : 0, &gone));
    index->removed = w->l->removed;
    if (w->l->removed == 0) return GNOMON_OK;
    GNOMON_TRY(gnomon_alloc(w->ctx, bytes, 1, "removed points", &index->allowed));
    for (int64_t i = 0; i < bytes; i++) {
        removed += __builtin_popcount(gone[i]);
        index->allowed[i] = (uint8_t)~gone[i];
    }
    GNOMON_FAIL_IF(removed != w->l->removed || (n % 8 != 0 && gone[bytes - 1] >> (n % 8) != 0),
                   w->ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("removed") ": the bits of %" PRId64
                                         " points do not tell of the %" PRId64
                                         " that the header does",
                   n, w->l->removed);
    return GNOMON_OK;
}

static gnomon_status load_columns(loading *w)
{
    gnomon_inverted *x = w->x;
    const int64_t used = x->columns.used;
    GNOMON_TRY(load_array(w, GNOMON_SECTION_COLUMNS, 8, used, &x->columns.keys));
    GNOMON_TRY(load_array(w, GNOMON_SECTION_NUMBERS, 4, used, &x->columns.numbers));
    const int64_t *keys = x->columns.keys;
    for (int64_t i = 0; i < used; i++)
        GNOMON_FAIL_IF(keys[i] < 0 || keys[i] >= x->cols || (i > 0 && keys[i] <= keys[i - 1]) ||
                           x->columns.numbers[i] >= used,
                       w->ctx, GNOMON_ERROR_DATA,
                       GNOMON_ARG("columns") ": entry %" PRId64 " does not fit the others", i);
    return GNOMON_OK;
}

static gnomon_status load_codes(loading *w)
{
    gnomon_inverted *x = w->x;
    const int64_t columns = x->columns.used - x->heavy_from;
    int64_t codes;
    GNOMON_FAIL_IF(!gnomon_mul(gnomon_inverted_padded(x->rows.count), columns, &codes), w->ctx,
                   GNOMON_ERROR_DATA, GNOMON_ARG("block's codes") ": larger than can be counted");
    GNOMON_TRY(load_array(w, GNOMON_SECTION_STEPS, 4, columns, &x->steps));
    GNOMON_TRY(load_array(w, GNOMON_SECTION_BLOCK_CODES, 1, codes, &x->codes));
    for (int64_t c = 0; c < columns; c++)
        GNOMON_FAIL_IF(!(x->steps[c] >= 0x1p-100F && x->steps[c] <= 1), w->ctx, GNOMON_ERROR_DATA,
                       GNOMON_ARG("block's steps") ": that of column %" PRId64 " is %g", c,
                       (double)x->steps[c]);
    return GNOMON_OK;
}

static gnomon_status load_lists(loading *w)
{
    gnomon_inverted *x = w->x;
    const int64_t n = x->rows.count, padded = gnomon_inverted_padded(n);
    int64_t block, listed = -1;
    GNOMON_TRY(load_array(w, GNOMON_SECTION_LISTS, 8, x->heavy_from + 1, &x->lists));
    GNOMON_TRY(load_section(w, GNOMON_SECTION_LIST_IDS, 4, &listed, &x->ids));
    GNOMON_TRY(load_array(w, GNOMON_SECTION_LIST_VALUES, 4, listed, &x->values));
    GNOMON_FAIL_IF(!gnomon_mul(n, x->width, &block), w->ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("block") ": larger than can be counted");
    GNOMON_TRY(load_array(w, GNOMON_SECTION_BLOCK, 4, block, &x->block));
    GNOMON_TRY(load_codes(w));
    GNOMON_TRY(load_array(w, GNOMON_SECTION_NORMS, 4, padded, &x->norm));
    GNOMON_TRY(load_array(w, GNOMON_SECTION_BLOCK_NORMS, 4, x->width > 0 ? padded : 0, &x->heavy));
    const bool biased = x->metric == GNOMON_L2 || x->metric == GNOMON_L1;
    GNOMON_TRY(load_array(w, GNOMON_SECTION_BIAS, 4, biased ? padded : 0, &x->bias));
    if (x->width == 0) x->heavy = NULL;
    if (!biased) x->bias = NULL;
    GNOMON_FAIL_IF(x->lists[0] != 0 || x->lists[x->heavy_from] != listed, w->ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("lists") ": from %" PRId64 " to %" PRId64 " for %" PRId64 " entries",
                   x->lists[0], x->lists[x->heavy_from], listed);
    for (int64_t c = 0; c < x->heavy_from; c++)
        GNOMON_FAIL_IF(x->lists[c] > x->lists[c + 1], w->ctx, GNOMON_ERROR_DATA,
                       GNOMON_ARG("lists") ": they fall after list %" PRId64, c);
    return GNOMON_OK;
}

static gnomon_status load(loading *w, gnomon_sparse_index *index)
{
    const uint64_t due = w->l->removed > 0 ? GNOMON_LSH_REMOVED : 0;
    /* what close frees, whatever comes */
    GNOMON_TRY(gnomon_alloc_zero(w->ctx, 1, 1, "lists", &w->x->sound));
    GNOMON_TRY(load_settings(w));
    GNOMON_FAIL_IF(w->l->features != due, w->ctx, GNOMON_ERROR_DATA,
                   "the header's flags are 0x%" PRIx64 "; 0x%" PRIx64 " are due", w->l->features,
                   due);
    GNOMON_TRY(load_rows(w));
    GNOMON_TRY(load_removed(w, index));
    GNOMON_TRY(load_columns(w));
    GNOMON_TRY(load_lists(w));
    GNOMON_FAIL_IF(w->next != w->l->sections - 1, w->ctx, GNOMON_ERROR_DATA,
                   "there are %" PRId64 " sections; %" PRId64 " are due", w->l->sections,
                   w->next + 1);
    return gnomon_grow(w->ctx, &w->x->sound, 1, w->x->heavy_from / 8 + 1, 1, "lists");
}

gnomon_status gnomon_sparse_load(gnomon_context *ctx, const gnomon_layout *layout,
                                 gnomon_sparse_index **out)
{
    gnomon_sparse_index *index;
    gnomon_status status = gnomon_alloc_zero(ctx, 1, sizeof *index, "an index", &index);
    if (status != GNOMON_OK) {
        munmap((void *)layout->map, (size_t)layout->bytes);
        return status;
    }
    index->ctx = ctx;
    index->map = layout->map;
    index->map_bytes = layout->bytes;
    loading w = {ctx, layout, &index->inverted, 0};
    status = load(&w, index);
    if (status == GNOMON_OK) {
        memset((void *)index->inverted.sound, 0, (size_t)(index->inverted.heavy_from / 8 + 1));
        *out = index;
    } else {
        if (index->inverted.sound == NULL) index->inverted = (gnomon_inverted){0};
        gnomon_sparse_index_destroy(index);
    }
    return status;
}

gnomon_status gnomon_sparse_index_open(gnomon_context *ctx, const char *path,
                                       gnomon_sparse_index **out)
{
    gnomon_layout layout;
    GNOMON_FAIL_IF(out == NULL, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("out") " is NULL");
    *out = NULL;
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_TRY(gnomon_layout_map(ctx, &gnomon_sparse_file, path, &layout));
    gnomon_status status = gnomon_sparse_load(ctx, &layout, out);
    if (status != GNOMON_OK) return gnomon_fail_prefix(ctx, status, GNOMON_ARG("%s"), path);
    status = gnomon_origin_open(ctx, path, &layout, &(*out)->origin);
    if (status != GNOMON_OK) {
        gnomon_sparse_index_destroy(*out);
        *out = NULL;
    }
    return status;
}

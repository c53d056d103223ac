/* An index of sparse points written to a file. Rows are kept in temporary files until the last has
 * come; columns are then numbered, and the lists are filled as many at a time as memory holds, each
 * time from all rows. */
#include "inverted/file/file.h"

#include "base/arithmetic.h"
#include "base/memory.h"
#include "points/view.h"
#include "search/jaccard.h"
#include "search/sparse.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    SECTIONS = GNOMON_SECTION_LAST - GNOMON_SECTION_ROW_COLUMNS + 1,
    PIECE = 1 << 20,     /* nonzeros that are made ready at a time */
    LEAST_ROOM = 1 << 16 /* bytes */
};

struct gnomon_sparse_builder {
    gnomon_context *ctx;
    gnomon_metric metric;
    int64_t dim;
    const gnomon_sparse_index *from; /* NULL: none */
    gnomon_sink *sink;
    gnomon_status failed;
    gnomon_spool columns, values, offsets, factors; /* of rows */
    int64_t points, nonzeros;
    uint8_t *gone; /* gone_bytes; bits behind them are 0 */
    int64_t gone_bytes;
    gnomon_section sections[SECTIONS];
    int64_t count, end;
    int lock;   /* on the file that is replaced by what was made of it; -1: none */
    int target; /* the lock on any other file that is replaced; -1: none */
};

/* ---- rows ---- */

/* Rows [from, to) of others, as they are. */
static gnomon_status append_rows(gnomon_sparse_builder *b, const gnomon_sets *rows, int64_t from,
                                 int64_t to)
{
    enum { SOME = 1024 };
    const int64_t begin = rows->offsets[from], count = rows->offsets[to] - begin;
    int64_t offsets[SOME];
    if (count > 0) {
        GNOMON_TRY(gnomon_spool_append(&b->columns, rows->members + begin, count * 8));
        GNOMON_TRY(gnomon_spool_append(&b->values, rows->weights + begin, count * 8));
    }
    for (int64_t at = from; at < to; at += SOME) {
        const int64_t here = gnomon_min(SOME, to - at);
        for (int64_t i = 0; i < here; i++)
            offsets[i] = b->nonzeros + rows->offsets[at + i + 1] - begin;
        GNOMON_TRY(gnomon_spool_append(&b->offsets, offsets, here * 8));
    }
    if (rows->factors != NULL && to > from)
        GNOMON_TRY(gnomon_spool_append(&b->factors, rows->factors + from, (to - from) * 8));
    b->nonzeros += count;
    b->points += to - from;
    return GNOMON_OK;
}

/* A row without columns, whose factor is that of a zero vector. */
static gnomon_status append_empty(gnomon_sparse_builder *b)
{
    static const double zero = 0;
    GNOMON_TRY(gnomon_spool_append(&b->offsets, &b->nonzeros, 8));
    if (b->metric == GNOMON_COSINE) GNOMON_TRY(gnomon_spool_append(&b->factors, &zero, 8));
    b->points++;
    return GNOMON_OK;
}

static bool is_gone(const gnomon_sparse_builder *b, int64_t id)
{
    return id / 8 < b->gone_bytes && (b->gone[id / 8] >> (id % 8) & 1) != 0;
}

/* What a file of another's making may hold although its checksums fit. */
static gnomon_status check_rows(gnomon_sparse_builder *b, const gnomon_inverted *x)
{
    for (int64_t i = 0; i < x->rows.count && x->sound != NULL; i++) {
        bool sound = gnomon_inverted_row_sound(x, i);
        for (int64_t e = x->rows.offsets[i]; sound && e < x->rows.offsets[i + 1]; e++)
            sound = fabs(x->rows.weights[e]) <= 0x1p500;
        GNOMON_FAIL_IF(!sound, b->ctx, GNOMON_ERROR_DATA,
                       GNOMON_ARG("rows' columns") ": row %" PRId64 " is damaged", i);
    }
    return GNOMON_OK;
}

static gnomon_status copy_rows(gnomon_sparse_builder *b, bool compact)
{
    const gnomon_inverted *x = &b->from->inverted;
    const int64_t n = x->rows.count, bytes = (n + 7) / 8;
    GNOMON_TRY(check_rows(b, x));
    if (b->from->allowed != NULL) {
        GNOMON_TRY(gnomon_alloc(b->ctx, bytes, 1, "removed points", &b->gone));
        b->gone_bytes = bytes;
        for (int64_t i = 0; i < bytes; i++)
            b->gone[i] = (uint8_t)~b->from->allowed[i];
    }
    for (int64_t at = 0; at < n;) {
        int64_t to = at;
        while (to < n && !(compact && is_gone(b, to)))
            to++;
        if (to > at) GNOMON_TRY(append_rows(b, &x->rows, at, to));
        if (to < n) GNOMON_TRY(append_empty(b));
        at = to + 1;
    }
    return GNOMON_OK;
}

static gnomon_status add_rows(gnomon_sparse_builder *b, const gnomon_csr *points)
{
    for (int64_t at = 0, rows; at < points->rows; at += rows) {
        gnomon_sets sets = {0};
        rows = 1;
        while (at + rows < points->rows &&
               points->offsets[at + rows + 1] - points->offsets[at] <= PIECE)
            rows++;
        const gnomon_csr part = gnomon_csr_rows(points, at, rows);
        GNOMON_TRY(gnomon_sparse_make(b->ctx, &part, "points", at, b->metric, &sets));
        const gnomon_status status = append_rows(b, &sets, 0, rows);
        gnomon_sets_free(b->ctx, &sets);
        GNOMON_TRY(status);
    }
    return GNOMON_OK;
}

gnomon_status gnomon_sparse_builder_add_csr(gnomon_sparse_builder *b, const gnomon_csr *points)
{
    GNOMON_NEED(NULL, b, "builder");
    GNOMON_FAIL_IF(points == NULL, b->ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("points") " is NULL");
    GNOMON_FAIL_IF(b->failed != GNOMON_OK, b->ctx, b->failed,
                   "an earlier call on the builder failed; it can only be finished or aborted");
    GNOMON_TRY(gnomon_check_csr(b->ctx, points, "points"));
    GNOMON_FAIL_IF(points->cols != b->dim, b->ctx, GNOMON_ERROR_SHAPE,
                   GNOMON_ARG("points") " has %" PRId64 " columns and the index %" PRId64
                                        "; they must be the same",
                   points->cols, b->dim);
    GNOMON_FAIL_IF(points->rows >= UINT32_MAX - b->points, b->ctx, GNOMON_ERROR_UNSUPPORTED,
                   GNOMON_ARG("points") " has %" PRId64 " rows and the index %" PRId64
                                        "; together at most 2^32 - 2 may be",
                   points->rows, b->points);
    const gnomon_sparse_builder before = *b;
    const gnomon_status status = add_rows(b, points);
    if (status == GNOMON_ERROR_IO) return b->failed = status;
    if (status != GNOMON_OK) { /* as if none had come */
        b->points = before.points;
        b->nonzeros = before.nonzeros;
        b->columns.end = before.columns.end;
        b->values.end = before.values.end;
        b->offsets.end = before.offsets.end;
        b->factors.end = before.factors.end;
    }
    return status;
}

gnomon_status gnomon_sparse_builder_remove(gnomon_sparse_builder *b, const int64_t *ids,
                                           int64_t count)
{
    GNOMON_NEED(NULL, b, "builder");
    GNOMON_FAIL_IF(count < 0 || (ids == NULL && count > 0), b->ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("ids") " is NULL, or count %" PRId64 " negative", count);
    for (int64_t i = 0; i < count; i++)
        GNOMON_FAIL_IF(ids[i] < 0 || ids[i] >= b->points, b->ctx, GNOMON_ERROR_ARGUMENT,
                       GNOMON_ARG("ids") "[%" PRId64 "] is %" PRId64
                                         "; it must be from 0 to below %" PRId64,
                       i, ids[i], b->points);
    const int64_t bytes = (b->points + 7) / 8;
    if (bytes > b->gone_bytes) {
        GNOMON_TRY(gnomon_grow(b->ctx, &b->gone, b->gone_bytes, bytes, 1, "removed points"));
        memset(b->gone + b->gone_bytes, 0, (size_t)(bytes - b->gone_bytes));
        b->gone_bytes = bytes;
    }
    for (int64_t i = 0; i < count; i++)
        b->gone[ids[i] / 8] |= (uint8_t)(1u << (ids[i] % 8));
    return GNOMON_OK;
}

/* ---- sections ---- */

static gnomon_status open_section(gnomon_sparse_builder *b, gnomon_stream_out **stream)
{
    return gnomon_stream_out_open(b->ctx, b->sink, gnomon_section_place(b->end), stream);
}

/* Closes or, after a failure, drops. */
static gnomon_status close_section(gnomon_sparse_builder *b, gnomon_stream_out *stream,
                                   gnomon_section_kind kind, gnomon_status status)
{
    gnomon_section *s = &b->sections[b->count];
    if (status != GNOMON_OK) {
        gnomon_stream_out_drop(stream);
        return status;
    }
    *s = (gnomon_section){.kind = kind};
    GNOMON_TRY(gnomon_stream_out_close(stream, s));
    b->end = s->offset + s->length;
    b->count++;
    return GNOMON_OK;
}

static gnomon_status write_section(gnomon_sparse_builder *b, gnomon_section_kind kind,
                                   const void *data, int64_t size)
{
    gnomon_stream_out *stream;
    GNOMON_TRY(open_section(b, &stream));
    return close_section(b, stream, kind, gnomon_stream_out_put(stream, data, size));
}

static gnomon_status write_rows(gnomon_sparse_builder *b, const gnomon_sets *rows)
{
    const int64_t nonzeros = b->nonzeros * 8, n = b->points;
    GNOMON_TRY(write_section(b, GNOMON_SECTION_ROW_COLUMNS, rows->members, nonzeros));
    GNOMON_TRY(write_section(b, GNOMON_SECTION_ROW_VALUES, rows->weights, nonzeros));
    GNOMON_TRY(write_section(b, GNOMON_SECTION_ROW_OFFSETS, rows->offsets, (n + 1) * 8));
    return write_section(b, GNOMON_SECTION_ROW_FACTORS, rows->factors,
                         rows->factors != NULL ? n * 8 : 0);
}

static int64_t count_gone(const gnomon_sparse_builder *b)
{
    int64_t count = 0;
    for (int64_t i = 0; i < b->gone_bytes; i++)
        count += __builtin_popcount(b->gone[i]);
    return count;
}

static gnomon_status write_gone(gnomon_sparse_builder *b)
{
    const int64_t bytes = count_gone(b) > 0 ? (b->points + 7) / 8 : 0;
    const int64_t known = gnomon_min(b->gone_bytes, bytes);
    gnomon_stream_out *stream;
    GNOMON_TRY(open_section(b, &stream));
    gnomon_status status = gnomon_stream_out_put(stream, b->gone, known);
    if (status == GNOMON_OK) status = gnomon_stream_out_zeros(stream, bytes - known);
    return close_section(b, stream, GNOMON_SECTION_GONE, status);
}

static gnomon_status write_columns(gnomon_sparse_builder *b, const gnomon_inverted *x)
{
    const int64_t used = x->columns.used;
    int64_t *members = NULL;
    uint32_t *numbers = NULL;
    gnomon_status status = gnomon_alloc(b->ctx, used, sizeof *members, "columns", &members);
    if (status == GNOMON_OK)
        status = gnomon_alloc(b->ctx, used, sizeof *numbers, "columns", &numbers);
    if (status == GNOMON_OK) status = gnomon_numbering_list(b->ctx, &x->columns, members, numbers);
    if (status == GNOMON_OK) status = write_section(b, GNOMON_SECTION_COLUMNS, members, used * 8);
    if (status == GNOMON_OK) status = write_section(b, GNOMON_SECTION_NUMBERS, numbers, used * 4);
    gnomon_free(b->ctx, members);
    gnomon_free(b->ctx, numbers);
    return status;
}

static int64_t room_of(gnomon_context *ctx)
{
    return gnomon_max(gnomon_memory_limit(ctx) / 4, LEAST_ROOM);
}

/* Lists [from, to) to the stream and the spool. */
static gnomon_status write_some_lists(gnomon_sparse_builder *b, gnomon_inverted *x, int64_t from,
                                      int64_t to, gnomon_stream_out *stream, gnomon_spool *spool)
{
    const int64_t count = x->lists[to + 1] - x->lists[from + 1];
    uint32_t *ids = NULL;
    float *values = NULL;
    gnomon_status status = gnomon_alloc(b->ctx, count, sizeof *ids, "lists", &ids);
    if (status == GNOMON_OK) status = gnomon_alloc(b->ctx, count, sizeof *values, "lists", &values);
    if (status == GNOMON_OK) {
        gnomon_inverted_fill_lists(x, from, to, ids, values);
        status = gnomon_stream_out_put(stream, ids, count * (int64_t)sizeof *ids);
    }
    if (status == GNOMON_OK)
        status = gnomon_spool_append(spool, values, count * (int64_t)sizeof *values);
    gnomon_free(b->ctx, ids);
    gnomon_free(b->ctx, values);
    return status;
}

static gnomon_status write_ids(gnomon_sparse_builder *b, gnomon_inverted *x, gnomon_spool *values)
{
    const int64_t all = x->lists[x->heavy_from + 1];
    gnomon_stream_out *stream;
    gnomon_status status = GNOMON_OK;
    GNOMON_TRY(open_section(b, &stream));
    for (int64_t from = 0; from < x->heavy_from && status == GNOMON_OK;) {
        const int64_t to = from + gnomon_inverted_lists_at_once(x, from, room_of(b->ctx));
        status = write_some_lists(b, x, from, to, stream, values);
        from = to;
        if (status == GNOMON_OK) status = gnomon_progress(b->ctx, "lists", x->lists[to], all);
    }
    return close_section(b, stream, GNOMON_SECTION_LIST_IDS, status);
}

static gnomon_status write_values(gnomon_sparse_builder *b, gnomon_spool *values)
{
    enum { SOME = 1 << 16 };
    gnomon_stream_out *stream;
    char *some;
    GNOMON_TRY(gnomon_alloc(b->ctx, SOME, 1, "a buffer", &some));
    gnomon_status status = open_section(b, &stream);
    if (status != GNOMON_OK) {
        gnomon_free(b->ctx, some);
        return status;
    }
    for (int64_t at = 0; at < values->end && status == GNOMON_OK; at += SOME) {
        const int64_t here = gnomon_min(SOME, values->end - at);
        status = gnomon_spool_read(values, at, some, here);
        if (status == GNOMON_OK) status = gnomon_stream_out_put(stream, some, here);
    }
    gnomon_free(b->ctx, some);
    return close_section(b, stream, GNOMON_SECTION_LIST_VALUES, status);
}

static gnomon_status write_lists(gnomon_sparse_builder *b, gnomon_inverted *x)
{
    gnomon_spool values = {b->ctx, -1, 0};
    /* where lists begin before they are filled, which is where they end up */
    GNOMON_TRY(write_section(b, GNOMON_SECTION_LISTS, x->lists + 1, (x->heavy_from + 1) * 8));
    gnomon_status status = write_ids(b, x, &values);
    if (status == GNOMON_OK) status = write_values(b, &values);
    gnomon_spool_close(&values);
    return status;
}

/* How many rows of the block are made at a time. */
static int64_t block_rows(const gnomon_sparse_builder *b, const gnomon_inverted *x)
{
    const int64_t row = x->width * (int64_t)sizeof *x->block;
    return row > 0 ? gnomon_min(gnomon_max(room_of(b->ctx) / row, 1), b->points) : 0;
}

/* The codes of columns [from, to) of the block, which is made again. */
static gnomon_status write_some_codes(gnomon_sparse_builder *b, const gnomon_inverted *x,
                                      const float *steps, int64_t from, int64_t to,
                                      gnomon_stream_out *stream)
{
    const int64_t most = block_rows(b, x), bytes = (to - from) * gnomon_inverted_padded(b->points);
    float *block = NULL, *heavy = NULL;
    int8_t *codes = NULL;
    gnomon_status status =
        gnomon_alloc(b->ctx, most, (size_t)x->width * sizeof *block, "heavy columns", &block);
    if (status == GNOMON_OK) status = gnomon_alloc(b->ctx, most, sizeof *heavy, "norms", &heavy);
    if (status == GNOMON_OK)
        status = gnomon_alloc_zero(b->ctx, bytes, sizeof *codes, "heavy columns", &codes);
    for (int64_t at = 0; at < b->points && status == GNOMON_OK; at += most) {
        const int64_t here = gnomon_min(most, b->points - at);
        gnomon_inverted_fill_block(x, at, here, block, heavy);
        gnomon_inverted_fill_codes(x, steps, block, at, here, from, to, codes);
    }
    if (status == GNOMON_OK) status = gnomon_stream_out_put(stream, codes, bytes);
    gnomon_free(b->ctx, block);
    gnomon_free(b->ctx, heavy);
    gnomon_free(b->ctx, codes);
    return status;
}

/* As many columns at a time as memory holds, one at least. */
static gnomon_status write_codes(gnomon_sparse_builder *b, const gnomon_inverted *x,
                                 const float *most)
{
    const int64_t columns = x->columns.used - x->heavy_from;
    const int64_t some = gnomon_max(room_of(b->ctx) / gnomon_inverted_padded(b->points), 1);
    gnomon_stream_out *stream;
    float *steps;
    GNOMON_TRY(gnomon_alloc(b->ctx, columns, sizeof *steps, "heavy columns", &steps));
    gnomon_inverted_set_steps(x, most, steps);
    gnomon_status status =
        write_section(b, GNOMON_SECTION_STEPS, steps, columns * (int64_t)sizeof *steps);
    if (status == GNOMON_OK) status = open_section(b, &stream);
    if (status == GNOMON_OK) {
        for (int64_t from = 0; from < columns && status == GNOMON_OK; from += some)
            status = write_some_codes(b, x, steps, from, gnomon_min(from + some, columns), stream);
        status = close_section(b, stream, GNOMON_SECTION_BLOCK_CODES, status);
    }
    gnomon_free(b->ctx, steps);
    return status;
}

/* The block, into heavy its norms, and into largest each column's largest magnitude. */
static gnomon_status write_block(gnomon_sparse_builder *b, const gnomon_inverted *x, float *heavy,
                                 float *largest)
{
    const int64_t n = b->points, row = x->width * (int64_t)sizeof *x->block;
    const int64_t most = block_rows(b, x);
    gnomon_stream_out *stream;
    float *block;
    GNOMON_TRY(gnomon_alloc(b->ctx, most, (size_t)row, "heavy columns", &block));
    gnomon_status status = open_section(b, &stream);
    if (status != GNOMON_OK) {
        gnomon_free(b->ctx, block);
        return status;
    }
    for (int64_t at = 0; at < n && row > 0 && status == GNOMON_OK; at += most) {
        const int64_t here = gnomon_min(most, n - at);
        gnomon_inverted_fill_block(x, at, here, block, heavy + at);
        gnomon_inverted_take_most(x, block, here, 0, x->width, largest);
        status = gnomon_stream_out_put(stream, block, here * row);
    }
    gnomon_free(b->ctx, block);
    return close_section(b, stream, GNOMON_SECTION_BLOCK, status);
}

static gnomon_status write_norms(gnomon_sparse_builder *b, const gnomon_inverted *x)
{
    const int64_t bytes = gnomon_inverted_padded(b->points) * (int64_t)sizeof(float);
    float *heavy = NULL, *largest = NULL;
    if (x->width > 0)
        GNOMON_TRY(gnomon_alloc_zero(b->ctx, bytes / (int64_t)sizeof *heavy, sizeof *heavy, "norms",
                                     &heavy));
    gnomon_status status =
        gnomon_alloc_zero(b->ctx, x->width, sizeof *largest, "heavy columns", &largest);
    if (status == GNOMON_OK) status = write_block(b, x, heavy, largest);
    if (status == GNOMON_OK) status = write_codes(b, x, largest);
    gnomon_free(b->ctx, largest);
    if (status == GNOMON_OK) status = write_section(b, GNOMON_SECTION_NORMS, x->norm, bytes);
    if (status == GNOMON_OK)
        status = write_section(b, GNOMON_SECTION_BLOCK_NORMS, heavy, heavy != NULL ? bytes : 0);
    gnomon_free(b->ctx, heavy);
    GNOMON_TRY(status);
    return write_section(b, GNOMON_SECTION_BIAS, x->bias, x->bias != NULL ? bytes : 0);
}

static gnomon_status write_settings(gnomon_sparse_builder *b, const gnomon_inverted *x)
{
    const int64_t told[GNOMON_SPARSE_NUMBERS] = {
        [GNOMON_SPARSE_METRIC] = (int64_t)x->metric, [GNOMON_SPARSE_DIM] = b->dim,
        [GNOMON_SPARSE_EXPONENT] = x->exponent,      [GNOMON_SPARSE_COLUMNS] = x->columns.used,
        [GNOMON_SPARSE_HEAVY_FROM] = x->heavy_from,  [GNOMON_SPARSE_LONGEST] = x->longest};
    return write_section(b, GNOMON_SECTION_SPARSE_SETTINGS, told, (int64_t)sizeof told);
}

static gnomon_status write_layout(gnomon_sparse_builder *b)
{
    unsigned char header[GNOMON_LSH_HEADER], entries[SECTIONS * GNOMON_LSH_ENTRY];
    gnomon_layout l = {.kind = &gnomon_sparse_file,
                       .points = b->points,
                       .removed = count_gone(b),
                       .sections = b->count,
                       .table = gnomon_section_place(b->end)};
    l.bytes = l.table + l.sections * GNOMON_LSH_ENTRY;
    if (l.removed > 0) l.features = GNOMON_LSH_REMOVED;
    gnomon_layout_write(&l, b->sections, entries, header);
    GNOMON_TRY(
        gnomon_sink_write_at(b->sink, l.table, entries, (size_t)(l.sections * GNOMON_LSH_ENTRY)));
    return gnomon_sink_write_at(b->sink, 0, header, GNOMON_LSH_HEADER);
}

static gnomon_status write_all(gnomon_sparse_builder *b, gnomon_sets *rows)
{
    gnomon_inverted x;
    gnomon_sets lent = *rows;
    GNOMON_TRY(write_rows(b, rows));
    GNOMON_TRY(write_gone(b));
    GNOMON_TRY(gnomon_inverted_begin(b->ctx, b->metric, &lent, true, b->dim, &x));
    gnomon_status status = write_columns(b, &x);
    if (status == GNOMON_OK) status = write_lists(b, &x);
    if (status == GNOMON_OK) status = write_norms(b, &x);
    if (status == GNOMON_OK) status = write_settings(b, &x);
    gnomon_inverted_close(b->ctx, &x);
    GNOMON_TRY(status);
    return write_layout(b);
}

/* ---- the calls ---- */

static gnomon_status create(gnomon_context *ctx, gnomon_metric metric, int64_t dim,
                            const gnomon_sparse_index *from, const char *path,
                            gnomon_sparse_builder **out)
{
    static const gnomon_sink_options safe = {.overwrite_ok = true, .revisit = true};
    static const int64_t zero = 0;
    GNOMON_FAIL_IF(path == NULL, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("path") " is NULL");
    GNOMON_FAIL_IF(__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__, ctx, GNOMON_ERROR_UNSUPPORTED,
                   "index files are little-endian, and this machine is not");
    GNOMON_FAIL_IF(dim < 1 || dim > (int64_t)1 << 56, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("dim") " is %" PRId64 "; it must be from 1 to 2^56", dim);
    gnomon_sparse_builder *b;
    GNOMON_TRY(gnomon_alloc_zero(ctx, 1, sizeof *b, "a builder", &b));
    b->ctx = ctx;
    b->metric = metric;
    b->dim = dim;
    b->from = from;
    b->end = GNOMON_LSH_HEADER;
    b->lock = b->target = -1;
    b->columns = b->values = b->offsets = b->factors = (gnomon_spool){ctx, -1, 0};
    *out = b;
    if (from != NULL) {
        GNOMON_TRY(gnomon_origin_lock(ctx, from->origin, path, &b->lock));
        const gnomon_status status = gnomon_sparse_check_bytes(ctx, from);
        if (status != GNOMON_OK)
            return gnomon_fail_prefix(ctx, status, GNOMON_ARG("%s"),
                                      from->origin != NULL ? from->origin->path : "the index");
    }
    if (b->lock < 0) GNOMON_TRY(gnomon_target_lock(ctx, path, &b->target));
    GNOMON_TRY(gnomon_sink_open(ctx, path, &safe, &b->sink));
    return gnomon_spool_append(&b->offsets, &zero, 8);
}

gnomon_status gnomon_sparse_builder_create(gnomon_context *ctx, gnomon_metric metric, int64_t dim,
                                           const char *path, gnomon_sparse_builder **out)
{
    GNOMON_FAIL_IF(out == NULL, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("out") " is NULL");
    *out = NULL;
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_TRY(gnomon_sparse_index_check_metric(ctx, metric));
    gnomon_sparse_builder *b = NULL;
    const gnomon_status status = create(ctx, metric, dim, NULL, path, &b);
    if (status != GNOMON_OK)
        gnomon_sparse_builder_abort(b);
    else
        *out = b;
    return status;
}

gnomon_status gnomon_sparse_builder_extend(gnomon_context *ctx, const gnomon_sparse_index *index,
                                           const char *path, int compact,
                                           gnomon_sparse_builder **out)
{
    GNOMON_FAIL_IF(out == NULL, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("out") " is NULL");
    *out = NULL;
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_FAIL_IF(index == NULL, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("index") " is NULL");
    gnomon_sparse_builder *b = NULL;
    gnomon_status status =
        create(ctx, index->inverted.metric, index->inverted.cols, index, path, &b);
    if (status == GNOMON_OK) status = copy_rows(b, compact != 0);
    if (status != GNOMON_OK)
        gnomon_sparse_builder_abort(b);
    else
        *out = b;
    return status;
}

/* A spool's bytes, NULL of none. */
static gnomon_status map_spool(gnomon_spool *spool, void *pointer)
{
    *(void **)pointer = NULL;
    if (spool->end == 0) return GNOMON_OK;
    void *map = mmap(NULL, (size_t)spool->end, PROT_READ, MAP_SHARED, spool->fd, 0);
    GNOMON_FAIL_IF(map == MAP_FAILED, spool->ctx, GNOMON_ERROR_IO,
                   "can't map a temporary file into memory: %s", strerror(errno));
    *(void **)pointer = map;
    return GNOMON_OK;
}

static void unmap_spool(const gnomon_spool *spool, void *map)
{
    if (map != NULL) munmap(map, (size_t)spool->end);
}

static gnomon_status finish(gnomon_sparse_builder *b)
{
    gnomon_sets rows = {.count = b->points};
    GNOMON_FAIL_IF(b->failed != GNOMON_OK, b->ctx, b->failed,
                   "an earlier call on the builder failed");
    gnomon_status status = map_spool(&b->columns, &rows.members);
    if (status == GNOMON_OK) status = map_spool(&b->values, &rows.weights);
    if (status == GNOMON_OK) status = map_spool(&b->offsets, &rows.offsets);
    if (status == GNOMON_OK) status = map_spool(&b->factors, &rows.factors);
    if (status == GNOMON_OK) status = write_all(b, &rows);
    unmap_spool(&b->columns, rows.members);
    unmap_spool(&b->values, rows.weights);
    unmap_spool(&b->offsets, rows.offsets);
    unmap_spool(&b->factors, rows.factors);
    GNOMON_TRY(status);
    if (b->lock >= 0) GNOMON_TRY(gnomon_origin_still(b->ctx, b->from->origin));
    gnomon_sink *sink = b->sink;
    b->sink = NULL;
    return gnomon_sink_finish(sink);
}

gnomon_status gnomon_sparse_builder_finish(gnomon_sparse_builder *builder)
{
    GNOMON_NEED(NULL, builder, "builder");
    const gnomon_status status = finish(builder);
    gnomon_sparse_builder_abort(builder);
    return status;
}

void gnomon_sparse_builder_abort(gnomon_sparse_builder *b)
{
    if (b == NULL) return;
    gnomon_context *ctx = b->ctx;
    gnomon_sink_abort(b->sink);
    gnomon_spool_close(&b->columns);
    gnomon_spool_close(&b->values);
    gnomon_spool_close(&b->offsets);
    gnomon_spool_close(&b->factors);
    gnomon_free(ctx, b->gone);
    if (b->lock >= 0) close(b->lock);
    if (b->target >= 0) close(b->target);
    gnomon_free(ctx, b);
}

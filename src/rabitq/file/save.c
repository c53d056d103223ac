/* Codes to a file. */
#include "rabitq/file/file.h"

#include "base/memory.h"
#include "base/threads.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

enum { SECTIONS = 5 };

typedef struct saving {
    gnomon_context *ctx;
    gnomon_sink *sink;
    int64_t end; /* of the sections so far */
    gnomon_section sections[SECTIONS];
    int count;
} saving;

static gnomon_status begin(const saving *w, gnomon_stream_out **stream)
{
    return gnomon_stream_out_open(w->ctx, w->sink, gnomon_section_place(w->end), stream);
}

static gnomon_status end(saving *w, gnomon_stream_out *stream, gnomon_section_kind kind,
                         gnomon_dtype dtype, gnomon_status status)
{
    gnomon_section *s = &w->sections[w->count];
    if (status != GNOMON_OK) {
        gnomon_stream_out_drop(stream);
        return status;
    }
    *s = (gnomon_section){.kind = kind, .dtype = dtype};
    GNOMON_TRY(gnomon_stream_out_close(stream, s));
    w->end = s->offset + s->length;
    w->count++;
    return GNOMON_OK;
}

static gnomon_status write_section(saving *w, gnomon_section_kind kind, const void *data,
                                   int64_t bytes)
{
    gnomon_stream_out *stream;
    GNOMON_TRY(begin(w, &stream));
    return end(w, stream, kind, (gnomon_dtype)0, gnomon_stream_out_put(stream, data, bytes));
}

/* Row after row, whatever the strides. */
static gnomon_status write_points(saving *w, const gnomon_matrix *x)
{
    enum { ROWS = 256 };
    const int64_t size = (int64_t)gnomon_dtype_size(x->dtype), row = x->cols * size;
    gnomon_stream_out *stream;
    char *copy;
    GNOMON_TRY(gnomon_alloc(w->ctx, 1, (size_t)row, "a row", &copy));
    gnomon_status status = begin(w, &stream);
    if (status == GNOMON_OK) {
        for (int64_t i = 0; i < x->rows && status == GNOMON_OK; i++) {
            const char *from = gnomon_row_at(x, i);
            for (int64_t j = 0; j < x->cols && x->col_stride != 1; j++)
                memcpy(copy + j * size, from + j * x->col_stride * size, (size_t)size);
            status = gnomon_stream_out_put(stream, x->col_stride == 1 ? from : copy, row);
            if (status == GNOMON_OK && i % ROWS == 0)
                status = gnomon_progress(w->ctx, "writing", i, x->rows + 1);
        }
        status = end(w, stream, GNOMON_SECTION_POINTS, x->dtype, status);
    }
    gnomon_free(w->ctx, copy);
    return status;
}

static gnomon_status write_all(saving *w, const gnomon_rabitq *index)
{
    int exponent;
    const gnomon_rabitq_options *o = &index->options;
    (void)frexp(index->scale, &exponent);
    const int64_t numbers[GNOMON_RABITQ_NUMBERS] = {[GNOMON_RABITQ_METRIC] = (int64_t)o->metric,
                                                    [GNOMON_RABITQ_BITS] = o->bits,
                                                    [GNOMON_RABITQ_DIM] = index->dim,
                                                    [GNOMON_RABITQ_EXPONENT] = exponent - 1,
                                                    [GNOMON_RABITQ_SEED] = (int64_t)o->seed};
    const int64_t factors = (int64_t)sizeof(float) * gnomon_rabitq_factors(o->bits);
    if (index->x.data != NULL) GNOMON_TRY(write_points(w, &index->x));
    GNOMON_TRY(write_section(w, GNOMON_SECTION_CENTRE, index->centre,
                             index->dim * (int64_t)sizeof *index->centre));
    GNOMON_TRY(write_section(w, GNOMON_SECTION_RABITQ_CODES, index->codes,
                             index->points * gnomon_rabitq_bytes(index->m, (int)o->bits)));
    GNOMON_TRY(write_section(w, GNOMON_SECTION_FACTORS, index->factors, index->points * factors));
    GNOMON_TRY(write_section(w, GNOMON_SECTION_RABITQ_SETTINGS, numbers, (int64_t)sizeof numbers));
    unsigned char header[GNOMON_LSH_HEADER], entries[SECTIONS * GNOMON_LSH_ENTRY];
    gnomon_layout l = {.kind = &gnomon_rabitq_file,
                       .points = index->points,
                       .sections = w->count,
                       .table = gnomon_section_place(w->end)};
    l.bytes = l.table + l.sections * GNOMON_LSH_ENTRY;
    gnomon_layout_write(&l, w->sections, entries, header);
    GNOMON_TRY(
        gnomon_sink_write_at(w->sink, l.table, entries, (size_t)(l.sections * GNOMON_LSH_ENTRY)));
    return gnomon_sink_write_at(w->sink, 0, header, GNOMON_LSH_HEADER);
}

static gnomon_status save(gnomon_context *ctx, const gnomon_rabitq *index, const char *path,
                          int *lock)
{
    static const gnomon_sink_options safe = {.overwrite_ok = true, .revisit = true};
    saving w = {.ctx = ctx, .end = GNOMON_LSH_HEADER};
    GNOMON_TRY(gnomon_origin_lock(ctx, index->origin, path, lock));
    const bool own = *lock >= 0;
    gnomon_status status = gnomon_rabitq_check_bytes(ctx, index);
    if (status != GNOMON_OK)
        return gnomon_fail_prefix(ctx, status, GNOMON_ARG("%s"),
                                  index->origin != NULL ? index->origin->path : "the index");
    if (!own) GNOMON_TRY(gnomon_target_lock(ctx, path, lock));
    GNOMON_TRY(gnomon_sink_open(ctx, path, &safe, &w.sink));
    status = write_all(&w, index);
    if (status == GNOMON_OK && own) status = gnomon_origin_still(ctx, index->origin);
    if (status == GNOMON_OK) return gnomon_sink_finish(w.sink);
    gnomon_sink_abort(w.sink);
    return status;
}

gnomon_status gnomon_rabitq_save(gnomon_context *ctx, const gnomon_rabitq *index, const char *path)
{
    int lock = -1;
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_NEED(ctx, index, "index");
    GNOMON_NEED(ctx, path, "path");
    GNOMON_FAIL_IF(__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__, ctx, GNOMON_ERROR_UNSUPPORTED,
                   "index files are little-endian, and this machine is not");
    const gnomon_status status = save(ctx, index, path, &lock);
    if (lock >= 0) close(lock);
    return status;
}

#include "base/options.h"
#include "io/compress/unpack.h"
#include "io/format.h"
#include "points/view.h"

#include <string.h>

GNOMON_OPTIONS_INIT(gnomon_write_options, GNOMON_WRITE_OPTIONS_INIT)

static gnomon_status copy_options(gnomon_context *ctx, const gnomon_write_options *given,
                                  gnomon_write_options *options)
{
    *options = (gnomon_write_options)GNOMON_WRITE_OPTIONS_INIT;
    if (given == NULL) return GNOMON_OK;
    GNOMON_TRY(GNOMON_COPY_OPTIONS(ctx, "options", gnomon_write_options, given, options));
    GNOMON_FAIL_IF(options->csv_digits < 0 || options->csv_digits > 17, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("options.csv_digits") " is %d; allowed are 0 (shortest) to 17",
                   options->csv_digits);
    return GNOMON_OK;
}

static gnomon_status choose_format(gnomon_writer *writer)
{
    gnomon_context *ctx = writer->ctx;
    const char *path = writer->path, *name = writer->options.format;
    if (name != NULL) {
        writer->format = gnomon_format_find(name);
        GNOMON_FAIL_IF(writer->format == NULL, ctx, GNOMON_ERROR_ARGUMENT,
                       "unknown format '%s'; known are %s", name, gnomon_format_names());
    } else {
        const gnomon_codec *codec;
        gnomon_codec_ending(path, &codec);
        GNOMON_FAIL_IF(codec != NULL, ctx, GNOMON_ERROR_ARGUMENT,
                       "%s: %s is read but not written; leave off the %s or name a format", path,
                       codec->name, codec->ending);
        const char *ending = gnomon_unknown_ending(path);
        GNOMON_FAIL_IF(ending != NULL, ctx, GNOMON_ERROR_ARGUMENT,
                       GNOMON_ARG("%s") ": no format has the ending %s; known are %s", path, ending,
                       gnomon_format_names());
        writer->format = gnomon_format_by_ending(path, false);
        if (writer->format == NULL) writer->format = gnomon_format_find("npy");
    }
    const gnomon_format *format = writer->format;
    GNOMON_FAIL_IF(format == NULL || format->writes == 0, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("%s") ": the format %s can't be written", path,
                   format != NULL ? format->name : "npy");
    GNOMON_FAIL_IF(writer->member[0] != '\0' && format->member == NULL, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("%s") ": the member '%s' is asked for, but %s has none", path,
                   writer->member, format->name);
    bool sparse = writer->options.sparse != 0;
    GNOMON_FAIL_IF((format->holds & (sparse ? GNOMON_HOLDS_SPARSE : GNOMON_HOLDS_DENSE)) == 0, ctx,
                   GNOMON_ERROR_ARGUMENT, GNOMON_ARG("%s") ": %s can't hold %s points", path,
                   format->name, sparse ? "sparse" : "dense");
    GNOMON_FAIL_IF(writer->options.coordinates_contiguous &&
                       (format->takes & GNOMON_TAKES_ORDER) == 0,
                   ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("%s") ": %s can't be stored column-major",
                   path, format->name);
    GNOMON_FAIL_IF(
        writer->options.coordinates_contiguous && writer->rows < 0, ctx, GNOMON_ERROR_ARGUMENT,
        GNOMON_ARG("%s") ": column-major output needs the number of points from the start", path);
    return GNOMON_OK;
}

static gnomon_status check_dtype(gnomon_writer *writer)
{
    unsigned known = writer->format->writes;
    if (gnomon_dtype_size(writer->dtype) != 0 && (known & GNOMON_DTYPE_BIT(writer->dtype)) != 0)
        return GNOMON_OK;
    char list[128] = "";
    for (int d = GNOMON_F32; d <= GNOMON_U64; d++) {
        if ((known & GNOMON_DTYPE_BIT(d)) == 0) continue;
        if (list[0] != '\0') strcat(list, ", ");
        strcat(list, gnomon_dtype_name((gnomon_dtype)d));
    }
    return gnomon_fail(writer->ctx, GNOMON_ERROR_ARGUMENT,
                       GNOMON_ARG("%s") ": %s can't hold elements of type %s; it holds %s",
                       writer->path, writer->format->name, gnomon_dtype_name(writer->dtype), list);
}

static gnomon_status open_writer(gnomon_writer *writer, const char *path)
{
    gnomon_context *ctx = writer->ctx;
    if (strcmp(path, "-") == 0) {
        GNOMON_TRY(gnomon_copy_text(ctx, path, &writer->path));
        GNOMON_TRY(gnomon_copy_text(ctx, "", &writer->member));
    } else {
        GNOMON_TRY(gnomon_split_member(ctx, path, true, &writer->path, &writer->member));
    }
    GNOMON_TRY(choose_format(writer));
    GNOMON_TRY(check_dtype(writer));
    int64_t elements;
    GNOMON_FAIL_IF(
        !writer->options.sparse &&
            (!gnomon_mul(writer->rows > 0 ? writer->rows : 0, writer->cols, &elements) ||
             !gnomon_mul(elements, (int64_t)gnomon_dtype_size(writer->dtype), &elements)),
        ctx, GNOMON_ERROR_OVERFLOW,
        GNOMON_ARG("%s") ": %lld x %lld elements of %s are too many bytes", path,
        (long long)writer->rows, (long long)writer->cols, gnomon_dtype_name(writer->dtype));
    gnomon_sink_options options = {writer->options.overwrite_ok != 0,
                                   writer->format->revisits != NULL &&
                                       writer->format->revisits(writer)};
    GNOMON_TRY(gnomon_sink_open(ctx, writer->path, &options, &writer->sink));
    return writer->format->create(writer);
}

gnomon_status gnomon_writer_open(gnomon_context *ctx, const char *path, int64_t rows, int64_t cols,
                                 gnomon_dtype dtype, const gnomon_write_options *options,
                                 gnomon_writer **out)
{
    GNOMON_FAIL_IF(out == NULL, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("out") " is NULL");
    *out = NULL;
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_FAIL_IF(path == NULL, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("path") " is NULL");
    GNOMON_FAIL_IF(
        rows < -1 || cols < 0, ctx, GNOMON_ERROR_ARGUMENT,
        GNOMON_ARG("rows") " is %lld and cols %lld; allowed are rows >= -1 and cols >= 0",
        (long long)rows, (long long)cols);
    gnomon_write_options complete;
    GNOMON_TRY(copy_options(ctx, options, &complete));
    gnomon_writer *writer = NULL;
    GNOMON_TRY(gnomon_alloc_zero(ctx, 1, sizeof *writer, "a writer", &writer));
    writer->ctx = ctx;
    writer->rows = rows;
    writer->cols = cols;
    writer->dtype = dtype;
    writer->options = complete;
    gnomon_status status = open_writer(writer, path);
    if (status != GNOMON_OK) {
        gnomon_writer_abort(writer);
        return status;
    }
    writer->options.format = writer->format->name; /* the caller's string may go */
    *out = writer;
    return GNOMON_OK;
}

static gnomon_status check_more(gnomon_writer *writer, int64_t rows, int64_t cols, bool sparse)
{
    gnomon_context *ctx = writer->ctx;
    GNOMON_FAIL_IF(writer->failed != GNOMON_OK, ctx, writer->failed,
                   GNOMON_ARG("%s") ": an earlier write to it failed", writer->path);
    GNOMON_FAIL_IF(sparse != (writer->options.sparse != 0), ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("%s") ": was opened for %s points", writer->path,
                   sparse ? "dense" : "sparse");
    GNOMON_FAIL_IF(cols != writer->cols, ctx, GNOMON_ERROR_SHAPE,
                   GNOMON_ARG("src.cols") " is %lld; %s was opened for points of %lld coordinates",
                   (long long)cols, writer->path, (long long)writer->cols);
    GNOMON_FAIL_IF(writer->rows >= 0 && rows > writer->rows - writer->written, ctx,
                   GNOMON_ERROR_SHAPE, "%lld points after %lld are more than the %lld of %s",
                   (long long)rows, (long long)writer->written, (long long)writer->rows,
                   writer->path);
    int64_t total;
    GNOMON_FAIL_IF(!gnomon_add(writer->written, rows, &total), ctx, GNOMON_ERROR_OVERFLOW,
                   GNOMON_ARG("%s") ": too many points", writer->path);
    return GNOMON_OK;
}

static gnomon_status check_element_type(gnomon_writer *writer, gnomon_dtype dtype)
{
    GNOMON_FAIL_IF(dtype != GNOMON_F32 && dtype != GNOMON_F64 && dtype != writer->dtype,
                   writer->ctx, GNOMON_ERROR_DTYPE,
                   GNOMON_ARG("src.dtype") " is %s; allowed are f32, f64 and the stored type, %s",
                   gnomon_dtype_name(dtype), gnomon_dtype_name(writer->dtype));
    return GNOMON_OK;
}

gnomon_status gnomon_writer_rows(gnomon_writer *writer, const gnomon_matrix *src)
{
    if (writer == NULL)
        return gnomon_fail(NULL, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("writer") " is NULL");
    GNOMON_TRY(gnomon_check_view(writer->ctx, src, "src"));
    GNOMON_TRY(check_element_type(writer, src->dtype));
    GNOMON_TRY(check_more(writer, src->rows, src->cols, false));
    if (src->rows == 0) return GNOMON_OK;
    gnomon_status status = writer->format->put(writer, src);
    if (status == GNOMON_OK)
        writer->written += src->rows;
    else
        writer->failed = status;
    return status;
}

static gnomon_status check_csr(gnomon_writer *writer, const gnomon_csr *src)
{
    gnomon_context *ctx = writer->ctx;
    GNOMON_TRY(gnomon_check_csr(ctx, src, "src"));
    GNOMON_TRY(check_element_type(writer, src->dtype));
    int64_t entries = src->rows > 0 ? src->offsets[src->rows] - src->offsets[0] : 0;
    for (int64_t e = 0; e < entries; e++)
        GNOMON_FAIL_IF(src->indices[e] < 0 || src->indices[e] >= src->cols, ctx,
                       GNOMON_ERROR_ARGUMENT,
                       GNOMON_ARG("src.indices") "[%lld] is %lld; allowed are 0 to %lld",
                       (long long)e, (long long)src->indices[e], (long long)src->cols - 1);
    return GNOMON_OK;
}

gnomon_status gnomon_writer_csr(gnomon_writer *writer, const gnomon_csr *src)
{
    if (writer == NULL)
        return gnomon_fail(NULL, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("writer") " is NULL");
    GNOMON_TRY(check_csr(writer, src));
    GNOMON_TRY(check_more(writer, src->rows, src->cols, true));
    if (src->rows == 0) return GNOMON_OK;
    gnomon_status status = writer->format->put_csr(writer, src);
    if (status == GNOMON_OK)
        writer->written += src->rows;
    else
        writer->failed = status;
    return status;
}

static void free_writer(gnomon_writer *writer)
{
    gnomon_context *ctx = writer->ctx;
    gnomon_free(ctx, writer->path);
    gnomon_free(ctx, writer->member);
    gnomon_free(ctx, writer);
}

static gnomon_status complete(gnomon_writer *writer)
{
    gnomon_context *ctx = writer->ctx;
    GNOMON_FAIL_IF(writer->failed != GNOMON_OK, ctx, writer->failed,
                   GNOMON_ARG("%s") ": not written, an earlier write failed", writer->path);
    GNOMON_FAIL_IF(writer->rows >= 0 && writer->written != writer->rows, ctx, GNOMON_ERROR_SHAPE,
                   GNOMON_ARG("%s") ": %lld points were written; it was opened for %lld",
                   writer->path, (long long)writer->written, (long long)writer->rows);
    return writer->format->complete != NULL ? writer->format->complete(writer) : GNOMON_OK;
}

gnomon_status gnomon_writer_finish(gnomon_writer *writer)
{
    if (writer == NULL)
        return gnomon_fail(NULL, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("writer") " is NULL");
    gnomon_status status = complete(writer);
    if (status != GNOMON_OK) {
        gnomon_writer_abort(writer);
        return status;
    }
    if (writer->format->discard != NULL) writer->format->discard(writer);
    status = gnomon_sink_finish(writer->sink);
    free_writer(writer);
    return status;
}

void gnomon_writer_abort(gnomon_writer *writer)
{
    if (writer == NULL) return;
    /* state is only ever made by create, which comes after the sink */
    if (writer->sink != NULL && writer->format->discard != NULL) writer->format->discard(writer);
    gnomon_sink_abort(writer->sink);
    free_writer(writer);
}

gnomon_status gnomon_write_text(gnomon_context *ctx, const char *path, const char *text,
                                size_t length)
{
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_FAIL_IF(path == NULL || (text == NULL && length > 0), ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("path") " or text is NULL");
    const gnomon_sink_options options = {.overwrite_ok = true, .revisit = false};
    gnomon_sink *sink = NULL;
    GNOMON_TRY(gnomon_sink_open(ctx, path, &options, &sink));
    gnomon_status status = gnomon_sink_write(sink, text, length);
    if (status != GNOMON_OK) {
        gnomon_sink_abort(sink);
        return status;
    }
    return gnomon_sink_finish(sink);
}

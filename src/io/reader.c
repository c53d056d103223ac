#include "base/options.h"
#include "io/dense_csr.h"
#include "io/format.h"
#include "io/open.h"
#include "points/view.h"

#include <stdio.h>
#include <string.h>

GNOMON_OPTIONS_INIT(gnomon_read_options, GNOMON_READ_OPTIONS_INIT)

static gnomon_status copy_options(gnomon_context *ctx, const gnomon_read_options *given,
                                  gnomon_read_options *options)
{
    *options = (gnomon_read_options)GNOMON_READ_OPTIONS_INIT;
    if (given == NULL) return GNOMON_OK;
    GNOMON_TRY(GNOMON_COPY_OPTIONS(ctx, "options", gnomon_read_options, given, options));
    GNOMON_FAIL_IF(options->csv_header < -1 || options->csv_header > 1, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("options.csv_header") " is %d; allowed are -1, 0 and 1",
                   options->csv_header);
    GNOMON_FAIL_IF(options->svmlight_zero_based < -1 || options->svmlight_zero_based > 1, ctx,
                   GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("options.svmlight_zero_based") " is %d; allowed are -1, 0 and 1",
                   options->svmlight_zero_based);
    GNOMON_FAIL_IF(
        options->svmlight_cols < 0, ctx, GNOMON_ERROR_ARGUMENT,
        GNOMON_ARG("options.svmlight_cols") " is %lld; allowed are 0 (find out) and more",
        (long long)options->svmlight_cols);
    GNOMON_FAIL_IF(options->format != NULL && gnomon_format_find(options->format) == NULL, ctx,
                   GNOMON_ERROR_ARGUMENT, "unknown format '%s'; known are %s", options->format,
                   gnomon_format_names());
    return GNOMON_OK;
}

/* By content, then by extension, then by what the content might be. */
static gnomon_status recognise(gnomon_reader *reader)
{
    const unsigned char *head;
    size_t length;
    const gnomon_format *maybe = NULL;
    GNOMON_TRY(gnomon_source_peek(reader->source, GNOMON_SOURCE_PEEK, &head, &length));
    if (length > GNOMON_SOURCE_PEEK) length = GNOMON_SOURCE_PEEK;
    int64_t size = gnomon_source_size(reader->source);
    const gnomon_format *format;
    for (int i = 0; (format = gnomon_format_at(i)) != NULL; i++) {
        int answer = format->sniff != NULL && length > 0 ? format->sniff(head, length, size)
                                                         : GNOMON_SNIFF_NO;
        if (answer == GNOMON_SNIFF_YES) {
            reader->format = format;
            return GNOMON_OK;
        }
        if (answer == GNOMON_SNIFF_MAYBE && maybe == NULL) maybe = format;
    }
    reader->format = gnomon_format_by_ending(reader->path, gnomon_source_packed(reader->source));
    if (reader->format == NULL) reader->format = maybe;
    const char *name = gnomon_source_name(reader->source);
    GNOMON_FAIL_IF(reader->format == NULL && length == 0, reader->ctx, GNOMON_ERROR_FORMAT,
                   GNOMON_ARG("%s") ": is empty", name);
    GNOMON_FAIL_IF(
        reader->format == NULL, reader->ctx, GNOMON_ERROR_FORMAT,
        GNOMON_ARG("%s") ": neither content nor extension tells its format; name one of %s", name,
        gnomon_format_names());
    return GNOMON_OK;
}

/* Everything before the header: path, source and format. */
static gnomon_status open_source(gnomon_reader *reader, const char *path)
{
    gnomon_context *ctx = reader->ctx;
    if (strcmp(path, "-") == 0) {
        GNOMON_TRY(gnomon_copy_text(ctx, path, &reader->path));
        GNOMON_TRY(gnomon_copy_text(ctx, "", &reader->member));
    } else {
        GNOMON_TRY(gnomon_split_member(ctx, path, false, &reader->path, &reader->member));
    }
    if (reader->options.format != NULL) reader->format = gnomon_format_find(reader->options.format);
    const gnomon_format *expected =
        reader->format != NULL ? reader->format : gnomon_format_by_ending(reader->path, true);
    bool headless = expected != NULL && expected->headless;
    GNOMON_TRY(gnomon_source_open(
        ctx, reader->path, headless ? GNOMON_UNPACK_NAMED : GNOMON_UNPACK_AUTO, &reader->source));
    if (reader->format == NULL) GNOMON_TRY(recognise(reader));
    GNOMON_FAIL_IF(reader->member[0] != '\0' && reader->format->member == NULL, ctx,
                   GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("%s") ": the member '%s' is asked for, but %s has none", reader->path,
                   reader->member, reader->format->name);
    return GNOMON_OK;
}

static void tell_shape(gnomon_data_info *info, int dimensions, const int64_t *shape, bool fortran)
{
    info->dimensions = dimensions;
    info->fortran_order = fortran;
    for (int i = 0; i < dimensions && i < GNOMON_TENSOR_MODES; i++)
        info->shape[i] = shape[i];
}

gnomon_status gnomon_reader_shape(gnomon_reader *reader, int dimensions, const int64_t *shape,
                                  bool fortran)
{
    int64_t count = 1;
    for (int i = 0; i < dimensions; i++)
        GNOMON_FAIL_IF(shape[i] != 0 && !gnomon_mul(count, shape[i], &count), reader->ctx,
                       GNOMON_ERROR_DATA,
                       GNOMON_ARG("%s") ": the array's shape is more than any file holds",
                       gnomon_source_name(reader->source));
    tell_shape(&reader->info, dimensions, shape, fortran);
    return GNOMON_OK;
}

static gnomon_status open_reader(gnomon_reader *reader, const char *path)
{
    GNOMON_TRY(open_source(reader, path));
    reader->info.struct_size = sizeof reader->info;
    reader->info.rows = -1;
    reader->info.nonzeros = -1;
    reader->info.member = "";
    GNOMON_TRY(reader->format->open(reader));
    reader->info.format = reader->format->name;
    const int64_t shape[] = {reader->info.rows, reader->info.cols};
    if (reader->info.dimensions == 0)
        tell_shape(&reader->info, 2, shape, reader->info.coordinates_contiguous != 0);
    return GNOMON_OK;
}

gnomon_status gnomon_reader_open(gnomon_context *ctx, const char *path,
                                 const gnomon_read_options *options, gnomon_reader **out)
{
    GNOMON_FAIL_IF(out == NULL, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("out") " is NULL");
    *out = NULL;
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_FAIL_IF(path == NULL, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("path") " is NULL");
    gnomon_read_options complete;
    GNOMON_TRY(copy_options(ctx, options, &complete));
    gnomon_reader *reader = NULL;
    GNOMON_TRY(gnomon_alloc_zero(ctx, 1, sizeof *reader, "a reader", &reader));
    reader->ctx = ctx;
    reader->options = complete;
    gnomon_status status = open_reader(reader, path);
    if (status != GNOMON_OK) {
        gnomon_reader_close(reader);
        return status;
    }
    reader->options.format = reader->format->name; /* the caller's string may go */
    *out = reader;
    return GNOMON_OK;
}

void gnomon_reader_close(gnomon_reader *reader)
{
    if (reader == NULL) return;
    gnomon_context *ctx = reader->ctx;
    if (reader->format != NULL && reader->format->close != NULL) reader->format->close(reader);
    gnomon_source_close(reader->source);
    gnomon_dense_csr_free(ctx, &reader->dense);
    gnomon_free(ctx, reader->path);
    gnomon_free(ctx, reader->member);
    gnomon_free(ctx, reader);
}

/* A reader of which nothing but the source is open. */
static gnomon_status open_unread(gnomon_context *ctx, const char *path, gnomon_reader **out)
{
    gnomon_reader *reader = NULL;
    GNOMON_TRY(gnomon_alloc_zero(ctx, 1, sizeof *reader, "a reader", &reader));
    reader->ctx = ctx;
    reader->options = (gnomon_read_options)GNOMON_READ_OPTIONS_INIT;
    *out = reader;
    return open_source(reader, path);
}

static void close_unread(gnomon_reader *reader)
{
    if (reader != NULL) reader->format = NULL; /* nothing was opened that its close would free */
    gnomon_reader_close(reader);
}

gnomon_status gnomon_file_members(gnomon_context *ctx, const char *path, gnomon_member_fn fn,
                                  void *user)
{
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_FAIL_IF(path == NULL || fn == NULL, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("path") " or fn is NULL");
    gnomon_reader *reader = NULL;
    gnomon_status status = open_unread(ctx, path, &reader);
    if (status == GNOMON_OK && reader->format->members != NULL)
        status = reader->format->members(reader, fn, user);
    close_unread(reader);
    return status;
}

/* Members that are opened in turn, once all are known: a format lists them under its own lock. */
typedef struct named {
    struct named *next;
    char path[]; /* file:member */
} named;

typedef struct listing {
    gnomon_context *ctx;
    const char *file;
    named *first, **last;
    gnomon_status status;
} listing;

static void list_member(void *user, const char *name)
{
    listing *l = user;
    named *one = NULL;
    const size_t length = strlen(l->file) + strlen(name) + 2;
    if (l->status != GNOMON_OK) return;
    l->status = gnomon_alloc(l->ctx, (int64_t)(sizeof *one + length), 1, "a name", &one);
    if (l->status != GNOMON_OK) return;
    one->next = NULL;
    snprintf(one->path, length, "%s:%s", l->file, name);
    *l->last = one;
    l->last = &one->next;
}

static gnomon_status describe_member(gnomon_context *ctx, const char *path, const char *name,
                                     gnomon_describe_fn fn, void *user)
{
    gnomon_reader *reader = NULL;
    const gnomon_status status = gnomon_reader_open(ctx, path, NULL, &reader);
    const bool fatal = status == GNOMON_ERROR_MEMORY || status == GNOMON_ERROR_IO;
    if (!fatal) fn(user, name, status == GNOMON_OK ? &reader->info : NULL);
    gnomon_reader_close(reader);
    return fatal ? status : GNOMON_OK;
}

static gnomon_status describe_in_turn(gnomon_reader *reader, gnomon_describe_fn fn, void *user)
{
    listing l = {.ctx = reader->ctx, .file = reader->path, .last = &l.first};
    gnomon_status status = reader->format->members(reader, list_member, &l);
    if (status == GNOMON_OK) status = l.status;
    while (l.first != NULL) {
        named *one = l.first;
        if (status == GNOMON_OK)
            status = describe_member(l.ctx, one->path, one->path + strlen(l.file) + 1, fn, user);
        l.first = one->next;
        gnomon_free(l.ctx, one);
    }
    return status;
}

gnomon_status gnomon_file_describe(gnomon_context *ctx, const char *path, gnomon_describe_fn fn,
                                   void *user)
{
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_FAIL_IF(path == NULL || fn == NULL, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("path") " or fn is NULL");
    gnomon_reader *reader = NULL;
    gnomon_status status = open_unread(ctx, path, &reader);
    if (status == GNOMON_OK && reader->format->describe != NULL) {
        status = reader->format->describe(reader, fn, user);
    } else if (status == GNOMON_OK && reader->format->members != NULL) {
        status = describe_in_turn(reader, fn, user);
    }
    close_unread(reader);
    return status;
}

gnomon_status gnomon_reader_info(gnomon_reader *reader, gnomon_data_info *info)
{
    GNOMON_NEED(NULL, reader, "reader");
    GNOMON_TRY(GNOMON_OPEN_RESULT(reader->ctx, "info", gnomon_data_info, info));
    gnomon_write_result(info, &reader->info, sizeof reader->info);
    return GNOMON_OK;
}

static gnomon_status check_spent(gnomon_reader *reader)
{
    GNOMON_FAIL_IF(reader->spent != GNOMON_OK, reader->ctx, reader->spent,
                   GNOMON_ARG("%s") ": an earlier read of it failed",
                   gnomon_source_name(reader->source));
    return GNOMON_OK;
}

static gnomon_status check_dst(gnomon_reader *reader, const gnomon_matrix *dst, bool whole_rows)
{
    gnomon_context *ctx = reader->ctx;
    const gnomon_data_info *info = &reader->info;
    GNOMON_TRY(gnomon_check_view(ctx, dst, "dst"));
    bool sparse = (info->access & GNOMON_ACCESS_SPARSE) != 0;
    GNOMON_FAIL_IF(dst->dtype != GNOMON_F32 && dst->dtype != GNOMON_F64 &&
                       (sparse || dst->dtype != info->dtype),
                   ctx, GNOMON_ERROR_DTYPE,
                   GNOMON_ARG("dst.dtype") " is %s; allowed are f32, f64 and the stored type, %s",
                   gnomon_dtype_name(dst->dtype), gnomon_dtype_name(info->dtype));
    GNOMON_FAIL_IF(whole_rows && dst->cols != info->cols, ctx, GNOMON_ERROR_SHAPE,
                   GNOMON_ARG("dst.cols") " is %lld; the points have %lld coordinates",
                   (long long)dst->cols, (long long)info->cols);
    return GNOMON_OK;
}

#define FILL_ROW(to, from)                                                                \
    do {                                                                                  \
        to *row = (to *)dst->data + i * dst->row_stride;                                  \
        for (int64_t j = 0; j < dst->cols; j++)                                           \
            row[j * dst->col_stride] = 0;                                                 \
        for (int64_t e = begin; e < end; e++)                                             \
            row[csr->indices[e] * dst->col_stride] += (to)((const from *)csr->values)[e]; \
    } while (0)

/* Point 'point' of csr becomes row i of dst, zeros filled in. */
static void fill_row(const gnomon_csr *csr, int64_t point, const gnomon_matrix *dst, int64_t i)
{
    int64_t begin = csr->offsets[point] - csr->offsets[0];
    int64_t end = csr->offsets[point + 1] - csr->offsets[0];
    if (dst->dtype == GNOMON_F32 && csr->dtype == GNOMON_F32)
        FILL_ROW(float, float);
    else if (dst->dtype == GNOMON_F32)
        FILL_ROW(float, double);
    else if (csr->dtype == GNOMON_F32)
        FILL_ROW(double, float);
    else
        FILL_ROW(double, double);
}

static gnomon_status next_filled(gnomon_reader *reader, const gnomon_matrix *dst, int64_t *got)
{
    enum { ENTRIES = 1 << 20 };
    reader->csr_dtype = dst->dtype;
    while (*got < dst->rows) {
        gnomon_csr csr = {0};
        GNOMON_TRY(reader->format->next_csr(reader, dst->rows - *got, ENTRIES, &csr));
        if (csr.rows == 0) break;
        for (int64_t i = 0; i < csr.rows; i++)
            fill_row(&csr, i, dst, *got + i);
        *got += csr.rows;
    }
    return GNOMON_OK;
}

gnomon_status gnomon_reader_next(gnomon_reader *reader, const gnomon_matrix *dst, int64_t *got)
{
    if (reader == NULL || got == NULL)
        return gnomon_fail(reader != NULL ? reader->ctx : NULL, GNOMON_ERROR_ARGUMENT,
                           GNOMON_ARG("reader") " or got is NULL");
    *got = 0;
    GNOMON_TRY(check_dst(reader, dst, true));
    GNOMON_TRY(check_spent(reader));
    if (dst->rows == 0) return GNOMON_OK;
    gnomon_status status = reader->format->next != NULL ? reader->format->next(reader, dst, got)
                                                        : next_filled(reader, dst, got);
    if (status != GNOMON_OK) {
        reader->spent = status;
        *got = 0;
    }
    return status;
}

gnomon_status gnomon_reader_next_csr(gnomon_reader *reader, int64_t max_rows, int64_t max_nonzeros,
                                     gnomon_csr *csr)
{
    if (reader == NULL || csr == NULL)
        return gnomon_fail(reader != NULL ? reader->ctx : NULL, GNOMON_ERROR_ARGUMENT,
                           GNOMON_ARG("reader") " or csr is NULL");
    memset(csr, 0, sizeof *csr);
    GNOMON_FAIL_IF(max_rows < 1 || max_nonzeros < 1, reader->ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("max_rows") " is %lld and max_nonzeros %lld; both must be at least 1",
                   (long long)max_rows, (long long)max_nonzeros);
    GNOMON_TRY(check_spent(reader));
    reader->csr_dtype = reader->info.dtype;
    gnomon_status status =
        (reader->info.access & GNOMON_ACCESS_SPARSE) != 0
            ? reader->format->next_csr(reader, max_rows, max_nonzeros, csr)
            : gnomon_dense_csr_next(reader, &reader->dense, max_rows, max_nonzeros, csr);
    if (status != GNOMON_OK) {
        reader->spent = status;
        memset(csr, 0, sizeof *csr);
    }
    return status;
}

gnomon_status gnomon_reader_seek(gnomon_reader *reader, int64_t row)
{
    if (reader == NULL)
        return gnomon_fail(NULL, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("reader") " is NULL");
    GNOMON_FAIL_IF((reader->info.access & GNOMON_ACCESS_SEEK) == 0, reader->ctx,
                   GNOMON_ERROR_UNSUPPORTED, GNOMON_ARG("%s") ": can't go to a point of a stream",
                   gnomon_source_name(reader->source));
    GNOMON_FAIL_IF(row < 0 || (reader->info.rows >= 0 && row > reader->info.rows), reader->ctx,
                   GNOMON_ERROR_ARGUMENT, GNOMON_ARG("row") " is %lld; there are %lld points",
                   (long long)row, (long long)reader->info.rows);
    GNOMON_TRY(check_spent(reader));
    gnomon_status status = reader->format->seek(reader, row);
    if (status != GNOMON_OK) reader->spent = status;
    return status;
}

gnomon_status gnomon_reader_block(gnomon_reader *reader, int64_t row, int64_t col,
                                  const gnomon_matrix *dst)
{
    if (reader == NULL)
        return gnomon_fail(NULL, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("reader") " is NULL");
    gnomon_context *ctx = reader->ctx;
    const gnomon_data_info *info = &reader->info;
    GNOMON_FAIL_IF((info->access & GNOMON_ACCESS_COLUMNS) == 0, ctx, GNOMON_ERROR_UNSUPPORTED,
                   GNOMON_ARG("%s") ": blocks of it can't be read, only points in order",
                   gnomon_source_name(reader->source));
    GNOMON_TRY(check_dst(reader, dst, false));
    GNOMON_FAIL_IF(row < 0 || row > info->rows || dst->rows > info->rows - row, ctx,
                   GNOMON_ERROR_ARGUMENT,
                   "%lld rows from row %lld on are not within the %lld points",
                   (long long)dst->rows, (long long)row, (long long)info->rows);
    GNOMON_FAIL_IF(col < 0 || col > info->cols || dst->cols > info->cols - col, ctx,
                   GNOMON_ERROR_ARGUMENT,
                   "%lld columns from column %lld on are not within the %lld coordinates",
                   (long long)dst->cols, (long long)col, (long long)info->cols);
    GNOMON_TRY(check_spent(reader));
    if (dst->rows == 0 || dst->cols == 0) return GNOMON_OK;
    return reader->format->block(reader, row, col, dst);
}

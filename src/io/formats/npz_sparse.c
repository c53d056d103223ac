/* scipy.sparse.save_npz: the arrays format, shape and data, and for csr and csc indptr and
 * indices, for coo row and col. csr is read as it comes; the others hold no points in a row,
 * so they are gathered in memory. csr is what is written. */
#include "io/formats/npz_sparse.h"
#include "base/dtype.h"
#include "io/arrays/sparse.h"
#include "io/formats/npy.h"
#include "io/temporaries.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool gnomon_npz_is_sparse(const gnomon_zip *zip)
{
    return gnomon_zip_find(zip, "format.npy") >= 0 && gnomon_zip_find(zip, "shape.npy") >= 0 &&
           gnomon_zip_find(zip, "data.npy") >= 0;
}

/* ---- reading ---- */

typedef struct sparse_reader {
    gnomon_zip *zip;
    bool csc;
    bool loaded;            /* csc, coo: gathered */
    gnomon_npz_array major; /* indptr, or row of coo */
    gnomon_npz_array minor; /* indices, or col of coo */
    gnomon_npz_array data;
    gnomon_gather gather; /* csc, coo */
    /* csr */
    gnomon_batch batch;
    int64_t row;      /* the next point */
    int64_t at;       /* its first entry */
    int64_t *offsets; /* the ends of some points from row on */
    int64_t ends, used;
} sparse_reader;

enum { ENDS = 4096, PIECE = 4096 };

static const gnomon_format gathered;

/* Reads the member format.npy, a text of no dimension. */
static gnomon_status read_format(gnomon_reader *reader, gnomon_zip *zip, char text[8])
{
    gnomon_source *source = NULL;
    gnomon_npy_header header = {0};
    gnomon_status status = gnomon_zip_member(zip, gnomon_zip_find(zip, "format.npy"), &source);
    if (status == GNOMON_OK) status = gnomon_npy_read_header(source, &header);
    memset(text, 0, 8);
    if (status == GNOMON_OK && header.elements == 1 && header.text_bytes >= 1 &&
        header.text_bytes < 8)
        status = gnomon_source_exact(source, text, (size_t)header.text_bytes,
                                     "the format of the matrix");
    gnomon_source_close(source);
    if (status != GNOMON_OK) return status;
    GNOMON_FAIL_IF(text[0] == '\0', reader->ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("%s") ": its array 'format' is no short text, as of a sparse matrix",
                   reader->path);
    return GNOMON_OK;
}

static gnomon_status read_shape(gnomon_reader *reader, gnomon_zip *zip)
{
    gnomon_npz_array shape = {0};
    int64_t sizes[2] = {0, 0};
    gnomon_status status = gnomon_npz_array_open(zip, reader->path, "shape", true, &shape);
    if (status == GNOMON_OK && shape.count != 2)
        status = gnomon_fail(reader->ctx, GNOMON_ERROR_DATA,
                             GNOMON_ARG("%s") ": its shape has %lld sizes, not 2", reader->path,
                             (long long)shape.count);
    if (status == GNOMON_OK) status = gnomon_npz_array_integers(&shape, 2, sizes);
    gnomon_npz_array_close(reader->ctx, &shape);
    if (status != GNOMON_OK) return status;
    GNOMON_FAIL_IF(sizes[0] < 0 || sizes[1] < 0, reader->ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("%s") ": its shape is %lld x %lld", reader->path, (long long)sizes[0],
                   (long long)sizes[1]);
    reader->info.rows = sizes[0];
    reader->info.cols = sizes[1];
    return GNOMON_OK;
}

static gnomon_status check_members(gnomon_reader *reader, const gnomon_zip *zip, const char *major,
                                   const char *minor)
{
    char name[32];
    const char *const members[] = {major, minor};
    for (int i = 0; i < 2; i++) {
        strcpy(name, members[i]);
        strcat(name, ".npy");
        GNOMON_FAIL_IF(gnomon_zip_find(zip, name) < 0, reader->ctx, GNOMON_ERROR_DATA,
                       GNOMON_ARG("%s") ": a sparse matrix without its array '%s'", reader->path,
                       members[i]);
    }
    return GNOMON_OK;
}

/* F64 when F32 would not hold every value of the type. */
static gnomon_dtype value_type(gnomon_dtype stored)
{
    return gnomon_dtype_needs_f64(stored) ? GNOMON_F64 : GNOMON_F32;
}

/* indptr has one element more than the matrix has rows (columns), begins with 0 and ends at
 * the number of entries, which indices and data must hold. */
static gnomon_status check_indptr(gnomon_reader *reader)
{
    sparse_reader *sparse = reader->state;
    int64_t lines = sparse->csc ? reader->info.cols : reader->info.rows, first = 0, last = 0;
    GNOMON_FAIL_IF(sparse->major.count < 1 || sparse->major.count - 1 != lines, reader->ctx,
                   GNOMON_ERROR_DATA,
                   GNOMON_ARG("%s") ": indptr has %lld elements, a matrix of %lld x %lld in %s "
                                    "has %lld and 1 more",
                   reader->path, (long long)sparse->major.count, (long long)reader->info.rows,
                   (long long)reader->info.cols, sparse->csc ? "csc" : "csr", (long long)lines);
    GNOMON_TRY(gnomon_npz_array_integers(&sparse->major, 1, &first));
    GNOMON_TRY(gnomon_npz_array_seek(&sparse->major, lines));
    GNOMON_TRY(gnomon_npz_array_integers(&sparse->major, 1, &last));
    GNOMON_TRY(gnomon_npz_array_seek(&sparse->major, 1));
    GNOMON_FAIL_IF(first != 0, reader->ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("%s") ": indptr begins with %lld, not 0", reader->path,
                   (long long)first);
    GNOMON_FAIL_IF(last < 0 || last > sparse->minor.count || last > sparse->data.count, reader->ctx,
                   GNOMON_ERROR_DATA,
                   GNOMON_ARG("%s") ": indptr ends with %lld, with %lld indices and %lld values",
                   reader->path, (long long)last, (long long)sparse->minor.count,
                   (long long)sparse->data.count);
    reader->info.nonzeros = last;
    return GNOMON_OK;
}

static gnomon_status sparse_open(gnomon_reader *reader)
{
    sparse_reader *sparse;
    GNOMON_TRY(gnomon_alloc_zero(reader->ctx, 1, sizeof *sparse, "the reader of npz", &sparse));
    reader->state = sparse;
    gnomon_gather_start(&sparse->gather, reader->ctx);
    gnomon_batch_start(&sparse->batch, reader->ctx);
    GNOMON_TRY(gnomon_zip_open(reader->source, &sparse->zip));
    char format[8];
    GNOMON_TRY(read_format(reader, sparse->zip, format));
    sparse->csc = strcmp(format, "csc") == 0;
    bool coo = strcmp(format, "coo") == 0;
    GNOMON_FAIL_IF(
        !coo && !sparse->csc && strcmp(format, "csr") != 0, reader->ctx, GNOMON_ERROR_UNSUPPORTED,
        "%s: a sparse matrix of format '%s'; read are csr, csc and coo", reader->path, format);
    const char *major = coo ? "row" : "indptr", *minor = coo ? "col" : "indices";
    GNOMON_TRY(check_members(reader, sparse->zip, major, minor));
    GNOMON_TRY(read_shape(reader, sparse->zip));
    GNOMON_TRY(gnomon_npz_array_open(sparse->zip, reader->path, major, true, &sparse->major));
    GNOMON_TRY(gnomon_npz_array_open(sparse->zip, reader->path, minor, true, &sparse->minor));
    GNOMON_TRY(gnomon_npz_array_open(sparse->zip, reader->path, "data", false, &sparse->data));
    reader->info.dtype = value_type(sparse->data.dtype);
    reader->info.access = GNOMON_ACCESS_SEEK | GNOMON_ACCESS_SPARSE;
    if (!coo) {
        GNOMON_TRY(check_indptr(reader));
    } else {
        GNOMON_FAIL_IF(sparse->major.count != sparse->data.count ||
                           sparse->minor.count != sparse->data.count,
                       reader->ctx, GNOMON_ERROR_DATA,
                       GNOMON_ARG("%s") ": row, col and data have %lld, %lld and %lld elements",
                       reader->path, (long long)sparse->major.count, (long long)sparse->minor.count,
                       (long long)sparse->data.count);
        reader->info.nonzeros = sparse->data.count;
    }
    if (coo || sparse->csc) {
        reader->info.access |= GNOMON_ACCESS_GATHERED;
        reader->format = &gathered;
        return GNOMON_OK;
    }
    return gnomon_alloc(reader->ctx, ENDS, sizeof(int64_t), "row offsets", &sparse->offsets);
}

static void sparse_close(gnomon_reader *reader)
{
    sparse_reader *sparse = reader->state;
    if (sparse == NULL) return;
    gnomon_npz_array_close(reader->ctx, &sparse->major);
    gnomon_npz_array_close(reader->ctx, &sparse->minor);
    gnomon_npz_array_close(reader->ctx, &sparse->data);
    gnomon_zip_close(sparse->zip);
    gnomon_gather_free(&sparse->gather);
    gnomon_batch_free(&sparse->batch);
    gnomon_free(reader->ctx, sparse->offsets);
    gnomon_free(reader->ctx, sparse);
    reader->state = NULL;
}

/* Where the next point's entries end. */
static gnomon_status next_end(gnomon_reader *reader, int64_t *end)
{
    sparse_reader *sparse = reader->state;
    if (sparse->used == sparse->ends) {
        int64_t left = reader->info.rows - sparse->row;
        sparse->ends = left < ENDS ? left : ENDS;
        sparse->used = 0;
        GNOMON_TRY(gnomon_npz_array_integers(&sparse->major, sparse->ends, sparse->offsets));
    }
    *end = sparse->offsets[sparse->used];
    GNOMON_FAIL_IF(
        *end < sparse->at || *end > reader->info.nonzeros, reader->ctx, GNOMON_ERROR_DATA,
        GNOMON_ARG("%s") ": indptr goes from %lld to %lld at row %lld, with %lld entries in all",
        reader->path, (long long)sparse->at, (long long)*end, (long long)sparse->row,
        (long long)reader->info.nonzeros);
    return GNOMON_OK;
}

/* The last 'count' elements that were read of an array, as indices below a limit. */
static gnomon_status check_indices(gnomon_reader *reader, const gnomon_npz_array *array,
                                   const int64_t *indices, int64_t count, int64_t below,
                                   const char *what)
{
    for (int64_t i = 0; i < count; i++) {
        char number[32];
        if (indices[i] >= 0 && indices[i] < below) continue;
        if (array->dtype == GNOMON_U64)
            snprintf(number, sizeof number, "%" PRIu64, (uint64_t)indices[i]);
        else
            snprintf(number, sizeof number, "%" PRId64, indices[i]);
        return gnomon_fail(
            reader->ctx, GNOMON_ERROR_DATA,
            GNOMON_ARG("%s") ": %s %s is outside 0 to %" PRId64 " (element %" PRId64 " of %s)",
            reader->path, what, number, below - 1, array->next - count + i, array->name);
    }
    return GNOMON_OK;
}

/* Adds count entries from where the arrays stand to the batch, piece by piece, so that memory
 * follows what is read. */
static gnomon_status read_entries(gnomon_reader *reader, int64_t count)
{
    sparse_reader *sparse = reader->state;
    gnomon_batch *batch = &sparse->batch;
    while (count > 0) {
        int64_t piece = count < PIECE ? count : PIECE;
        GNOMON_TRY(gnomon_batch_reserve(batch, piece));
        int64_t *indices = batch->indices + batch->nonzeros;
        unsigned char *values = (unsigned char *)batch->values +
                                (size_t)batch->nonzeros * gnomon_dtype_size(batch->dtype);
        GNOMON_TRY(gnomon_npz_array_integers(&sparse->minor, piece, indices));
        GNOMON_TRY(
            check_indices(reader, &sparse->minor, indices, piece, reader->info.cols, "the column"));
        GNOMON_TRY(gnomon_npz_array_values(&sparse->data, piece, batch->dtype, values));
        batch->nonzeros += piece;
        count -= piece;
    }
    return GNOMON_OK;
}

static gnomon_status csr_next(gnomon_reader *reader, int64_t max_rows, int64_t max_nonzeros,
                              gnomon_csr *csr)
{
    sparse_reader *sparse = reader->state;
    gnomon_batch *batch = &sparse->batch;
    gnomon_batch_clear(batch, reader->csr_dtype);
    GNOMON_TRY(gnomon_npz_array_seek(&sparse->minor, sparse->at));
    GNOMON_TRY(gnomon_npz_array_seek(&sparse->data, sparse->at));
    /* the points first, then their entries in one go */
    int64_t first = sparse->at;
    while (sparse->row < reader->info.rows && batch->rows < max_rows) {
        int64_t end = 0;
        GNOMON_TRY(next_end(reader, &end));
        if (batch->rows > 0 && end - first > max_nonzeros) break;
        batch->nonzeros = end - first;
        GNOMON_TRY(gnomon_batch_end_row(batch));
        sparse->at = end;
        sparse->used++;
        sparse->row++;
    }
    batch->nonzeros = 0;
    GNOMON_TRY(read_entries(reader, sparse->at - first));
    *csr = gnomon_batch_csr(batch, reader->info.cols);
    return GNOMON_OK;
}

static gnomon_status csr_seek(gnomon_reader *reader, int64_t row)
{
    sparse_reader *sparse = reader->state;
    sparse->used = sparse->ends = 0;
    sparse->row = row;
    GNOMON_TRY(gnomon_npz_array_seek(&sparse->major, row));
    GNOMON_TRY(gnomon_npz_array_integers(&sparse->major, 1, &sparse->at));
    GNOMON_FAIL_IF(
        sparse->at < 0 || sparse->at > reader->info.nonzeros, reader->ctx, GNOMON_ERROR_DATA,
        GNOMON_ARG("%s") ": indptr holds %lld at row %lld, with %lld entries in all", reader->path,
        (long long)sparse->at, (long long)row, (long long)reader->info.nonzeros);
    return GNOMON_OK;
}

/* ---- csc and coo ---- */

/* The next count entries; col is what column of csc they are in. */
static gnomon_status gather_entries(gnomon_reader *reader, int64_t count, int64_t col)
{
    sparse_reader *sparse = reader->state;
    int64_t major[256] = {0}, minor[256];
    double values[256];
    while (count > 0) {
        int64_t piece = count < 256 ? count : 256;
        GNOMON_TRY(gnomon_npz_array_integers(&sparse->minor, piece, minor));
        GNOMON_TRY(gnomon_npz_array_values(&sparse->data, piece, GNOMON_F64, values));
        if (sparse->csc) {
            GNOMON_TRY(
                check_indices(reader, &sparse->minor, minor, piece, reader->info.rows, "the row"));
        } else {
            GNOMON_TRY(gnomon_npz_array_integers(&sparse->major, piece, major));
            GNOMON_TRY(
                check_indices(reader, &sparse->major, major, piece, reader->info.rows, "the row"));
            GNOMON_TRY(check_indices(reader, &sparse->minor, minor, piece, reader->info.cols,
                                     "the column"));
        }
        for (int64_t i = 0; i < piece; i++)
            GNOMON_TRY(gnomon_gather_add(&sparse->gather, sparse->csc ? minor[i] : major[i],
                                         sparse->csc ? col : minor[i], values[i]));
        count -= piece;
    }
    return GNOMON_OK;
}

static gnomon_status gather_all(gnomon_reader *reader)
{
    sparse_reader *sparse = reader->state;
    if (sparse->loaded) return GNOMON_OK;
    if (!sparse->csc) {
        GNOMON_TRY(gather_entries(reader, sparse->data.count, 0));
    } else {
        int64_t ends[256], at = 0;
        for (int64_t j = 0; j < reader->info.cols; j++) {
            if (j % 256 == 0) {
                int64_t left = reader->info.cols - j;
                GNOMON_TRY(
                    gnomon_npz_array_integers(&sparse->major, left < 256 ? left : 256, ends));
            }
            int64_t end = ends[j % 256];
            GNOMON_FAIL_IF(
                end < at || end > reader->info.nonzeros, reader->ctx, GNOMON_ERROR_DATA,
                GNOMON_ARG(
                    "%s") ": indptr goes from %lld to %lld at column %lld, with %lld entries in "
                          "all",
                reader->path, (long long)at, (long long)end, (long long)j,
                (long long)reader->info.nonzeros);
            GNOMON_TRY(gather_entries(reader, end - at, j));
            at = end;
        }
    }
    GNOMON_TRY(gnomon_gather_finish(&sparse->gather));
    sparse->loaded = true;
    return GNOMON_OK;
}

static gnomon_status gathered_next(gnomon_reader *reader, int64_t max_rows, int64_t max_nonzeros,
                                   gnomon_csr *csr)
{
    sparse_reader *sparse = reader->state;
    GNOMON_TRY(gather_all(reader));
    return gnomon_gather_next(&sparse->gather, reader, max_rows, max_nonzeros, csr);
}

static gnomon_status gathered_seek(gnomon_reader *reader, int64_t row)
{
    sparse_reader *sparse = reader->state;
    GNOMON_TRY(gather_all(reader));
    gnomon_gather_seek(&sparse->gather, row);
    return GNOMON_OK;
}

/* ---- writing ---- */

/* indices go straight into the archive; values and offsets wait in temporary files for
 * their turn. */
typedef struct spool {
    int fd; /* -1: none */
    size_t used;
    unsigned char buffer[64 * 1024];
} spool;

typedef struct sparse_writer {
    gnomon_zip_writer *zip;
    bool i32; /* indices are I32 */
    int64_t nonzeros;
    spool values, offsets;
} sparse_writer;

static gnomon_status spool_flush(gnomon_writer *writer, spool *s)
{
    for (size_t done = 0; done < s->used;) {
        ssize_t n = write(s->fd, s->buffer + done, s->used - done);
        if (n < 0 && errno == EINTR) continue;
        GNOMON_FAIL_IF(n < 0, writer->ctx, GNOMON_ERROR_IO,
                       GNOMON_ARG("%s") ": can't keep it in a temporary file: %s", writer->path,
                       strerror(errno));
        done += (size_t)n;
    }
    s->used = 0;
    return GNOMON_OK;
}

static gnomon_status spool_add(gnomon_writer *writer, spool *s, const void *data, size_t size)
{
    if (s->used + size > sizeof s->buffer) GNOMON_TRY(spool_flush(writer, s));
    memcpy(s->buffer + s->used, data, size);
    s->used += size;
    return GNOMON_OK;
}

/* Copies all of it into the archive's open member. */
static gnomon_status spool_copy(gnomon_writer *writer, spool *s)
{
    sparse_writer *sparse = writer->state;
    GNOMON_TRY(spool_flush(writer, s));
    for (off_t offset = 0;;) {
        ssize_t n = pread(s->fd, s->buffer, sizeof s->buffer, offset);
        if (n < 0 && errno == EINTR) continue;
        GNOMON_FAIL_IF(n < 0, writer->ctx, GNOMON_ERROR_IO,
                       GNOMON_ARG("%s") ": can't read its temporary file: %s", writer->path,
                       strerror(errno));
        if (n == 0) return GNOMON_OK;
        GNOMON_TRY(gnomon_zip_writer_write(sparse->zip, s->buffer, (size_t)n));
        offset += n;
    }
}

static gnomon_status sparse_create(gnomon_writer *writer)
{
    GNOMON_FAIL_IF(writer->dtype != GNOMON_F32 && writer->dtype != GNOMON_F64, writer->ctx,
                   GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("dtype") " is %s, sparse points are written as f32 or f64",
                   gnomon_dtype_name(writer->dtype));
    GNOMON_FAIL_IF(
        writer->member[0] != '\0', writer->ctx, GNOMON_ERROR_ARGUMENT,
        GNOMON_ARG("%s") ": the member '%s' is named, but a sparse matrix takes the whole archive",
        writer->path, writer->member);
    sparse_writer *sparse;
    GNOMON_TRY(gnomon_alloc_zero(writer->ctx, 1, sizeof *sparse, "the writer of npz", &sparse));
    sparse->values.fd = sparse->offsets.fd = -1;
    writer->state = sparse;
    GNOMON_TRY(gnomon_temporary_nameless(writer->ctx, &sparse->values.fd));
    GNOMON_TRY(gnomon_temporary_nameless(writer->ctx, &sparse->offsets.fd));
    GNOMON_TRY(gnomon_zip_writer_open(writer->ctx, writer->sink, writer->options.compress != 0,
                                      &sparse->zip));
    sparse->i32 = writer->cols <= INT32_MAX;
    unsigned char header[GNOMON_NPY_HEADER];
    gnomon_npy_make_header(header, sparse->i32 ? GNOMON_I32 : GNOMON_I64, 1, 0, 0, false);
    const int64_t zero = 0;
    GNOMON_TRY(spool_add(writer, &sparse->offsets, &zero, sizeof zero));
    return gnomon_zip_writer_begin(sparse->zip, "indices.npy", header, sizeof header);
}

static gnomon_status put_entry(gnomon_writer *writer, const gnomon_csr *src, int64_t at)
{
    sparse_writer *sparse = writer->state;
    int32_t i32 = (int32_t)(sparse->i32 ? src->indices[at] : 0);
    GNOMON_TRY(gnomon_zip_writer_write(sparse->zip,
                                       sparse->i32 ? (const void *)&i32 : &src->indices[at],
                                       sparse->i32 ? sizeof i32 : sizeof(int64_t)));
    double f64 = src->dtype == GNOMON_F64 ? ((const double *)src->values)[at]
                                          : (double)((const float *)src->values)[at];
    float f32 = (float)f64;
    sparse->nonzeros++;
    return spool_add(writer, &sparse->values,
                     writer->dtype == GNOMON_F64 ? (const void *)&f64 : &f32,
                     gnomon_dtype_size(writer->dtype));
}

static gnomon_status sparse_put_csr(gnomon_writer *writer, const gnomon_csr *src)
{
    sparse_writer *sparse = writer->state;
    for (int64_t i = 0; i < src->rows; i++) {
        for (int64_t e = src->offsets[i]; e < src->offsets[i + 1]; e++)
            GNOMON_TRY(put_entry(writer, src, e - src->offsets[0]));
        GNOMON_TRY(spool_add(writer, &sparse->offsets, &sparse->nonzeros, sizeof(int64_t)));
    }
    return GNOMON_OK;
}

static gnomon_status put_member(gnomon_writer *writer, const char *name, gnomon_dtype dtype,
                                int64_t count, spool *from, const void *data)
{
    sparse_writer *sparse = writer->state;
    unsigned char header[GNOMON_NPY_HEADER];
    gnomon_npy_make_header(header, dtype, 1, count, 0, false);
    GNOMON_TRY(gnomon_zip_writer_begin(sparse->zip, name, header, sizeof header));
    if (from != NULL)
        GNOMON_TRY(spool_copy(writer, from));
    else
        GNOMON_TRY(
            gnomon_zip_writer_write(sparse->zip, data, (size_t)count * gnomon_dtype_size(dtype)));
    return gnomon_zip_writer_end(sparse->zip, NULL);
}

/* A text of no dimension, as scipy has it. */
static gnomon_status put_format(sparse_writer *sparse)
{
    static const char dictionary[] = "{'descr': '|S3', 'fortran_order': False, 'shape': (), }";
    unsigned char member[GNOMON_NPY_HEADER + 3];
    memset(member, ' ', sizeof member);
    memcpy(member, "\x93NUMPY\1\0", 8);
    member[8] = GNOMON_NPY_HEADER - 10;
    member[9] = 0;
    memcpy(member + 10, dictionary, sizeof dictionary - 1);
    member[GNOMON_NPY_HEADER - 1] = '\n';
    memcpy(member + GNOMON_NPY_HEADER, "csr", 3);
    GNOMON_TRY(gnomon_zip_writer_begin(sparse->zip, "format.npy", NULL, 0));
    GNOMON_TRY(gnomon_zip_writer_write(sparse->zip, member, sizeof member));
    return gnomon_zip_writer_end(sparse->zip, NULL);
}

static gnomon_status sparse_complete(gnomon_writer *writer)
{
    sparse_writer *sparse = writer->state;
    unsigned char header[GNOMON_NPY_HEADER];
    gnomon_npy_make_header(header, sparse->i32 ? GNOMON_I32 : GNOMON_I64, 1, sparse->nonzeros, 0,
                           false);
    GNOMON_TRY(gnomon_zip_writer_end(sparse->zip, header));
    GNOMON_TRY(
        put_member(writer, "indptr.npy", GNOMON_I64, writer->written + 1, &sparse->offsets, NULL));
    GNOMON_TRY(put_format(sparse));
    const int64_t shape[2] = {writer->written, writer->cols};
    GNOMON_TRY(put_member(writer, "shape.npy", GNOMON_I64, 2, NULL, shape));
    GNOMON_TRY(
        put_member(writer, "data.npy", writer->dtype, sparse->nonzeros, &sparse->values, NULL));
    return gnomon_zip_writer_complete(sparse->zip);
}

static void sparse_discard(gnomon_writer *writer)
{
    sparse_writer *sparse = writer->state;
    if (sparse == NULL) return;
    gnomon_zip_writer_close(sparse->zip);
    if (sparse->values.fd >= 0) close(sparse->values.fd);
    if (sparse->offsets.fd >= 0) close(sparse->offsets.fd);
    gnomon_free(writer->ctx, sparse);
    writer->state = NULL;
}

const gnomon_format gnomon_format_npz_csr = {
    .name = "npz",
    .open = sparse_open,
    .next_csr = csr_next,
    .seek = csr_seek,
    .close = sparse_close,
    .create = sparse_create,
    .put_csr = sparse_put_csr,
    .complete = sparse_complete,
    .discard = sparse_discard,
};

static const gnomon_format gathered = {
    .name = "npz",
    .next_csr = gathered_next,
    .seek = gathered_seek,
    .close = sparse_close,
};

#include "io/compress/zip.h"
#include "io/formats/npy.h"
#include "io/formats/npy_points.h"
#include "io/formats/npz_sparse.h"
#include "io/temporaries.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* begins with the array, so that gnomon_array_next and its kin work on it */
typedef struct npz_state {
    gnomon_array array;
    gnomon_zip *zip;
    gnomon_source *member;
    char *key;
} npz_state;

static int npz_sniff(const unsigned char *head, size_t length, int64_t size)
{
    (void)size;
    return length >= 4 && (memcmp(head, "PK\3\4", 4) == 0 || memcmp(head, "PK\5\6", 4) == 0)
               ? GNOMON_SNIFF_YES
               : GNOMON_SNIFF_NO;
}

static bool is_array(const char *name)
{
    size_t length = strlen(name);
    return length > 4 && strcmp(name + length - 4, ".npy") == 0;
}

/* "a, b, c" of the arrays in the archive, cut when it gets long. */
static void list_keys(const gnomon_zip *zip, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int64_t i = 0; i < gnomon_zip_count(zip); i++) {
        const char *name = gnomon_zip_name(zip, i);
        if (!is_array(name)) continue;
        int n = snprintf(text + used, size - used, "%s%.*s", used > 0 ? ", " : "",
                         (int)(strlen(name) - 4), name);
        if (n < 0 || used + (size_t)n >= size) return;
        used += (size_t)n;
    }
}

static gnomon_status find_key(gnomon_reader *reader, const gnomon_zip *zip, int64_t *index)
{
    const char *key = reader->member;
    size_t length = strlen(key) + 5;
    char *name = NULL;
    GNOMON_TRY(gnomon_alloc(reader->ctx, (int64_t)length, 1, "a name", &name));
    snprintf(name, length, "%s.npy", key);
    *index = gnomon_zip_find(zip, name);
    gnomon_free(reader->ctx, name);
    if (*index < 0) *index = gnomon_zip_find(zip, key);
    if (*index >= 0) return GNOMON_OK;
    char keys[400];
    list_keys(zip, keys, sizeof keys);
    return gnomon_fail(reader->ctx, GNOMON_ERROR_DATA,
                       GNOMON_ARG("%s") ": has no array '%s'; it has %s", reader->path, key,
                       keys[0] != '\0' ? keys : "none at all");
}

/* How many dimensions an array of numbers has; 0 for one of something else. */
static gnomon_status count_dimensions(gnomon_zip *zip, int64_t index, int *dimensions)
{
    gnomon_source *source = NULL;
    gnomon_npy_header header;
    *dimensions = 0;
    gnomon_status status = gnomon_zip_member(zip, index, &source);
    if (status == GNOMON_OK) status = gnomon_npy_read_header(source, &header);
    if (status == GNOMON_OK && header.text_bytes == 0) *dimensions = header.dimensions;
    gnomon_source_close(source);
    return status;
}

/* Whether a failure is not the member's. */
static bool is_fatal(gnomon_status status)
{
    return status == GNOMON_ERROR_MEMORY || status == GNOMON_ERROR_IO;
}

/* The only array, or the only one of two dimensions. */
static gnomon_status choose_key(gnomon_reader *reader, gnomon_zip *zip, int64_t *index)
{
    int64_t arrays = 0, points = 0, last = -1;
    for (int64_t i = 0; i < gnomon_zip_count(zip); i++) {
        if (!is_array(gnomon_zip_name(zip, i))) continue;
        arrays++;
        last = i;
    }
    *index = last;
    if (arrays == 1) return GNOMON_OK;
    for (int64_t i = 0; i < gnomon_zip_count(zip) && points < 2; i++) {
        int dimensions = 0;
        if (!is_array(gnomon_zip_name(zip, i))) continue;
        const gnomon_status status = count_dimensions(zip, i, &dimensions);
        if (is_fatal(status)) return status;
        if (status != GNOMON_OK || dimensions < 2) continue;
        points++;
        *index = i;
    }
    if (points == 1) return GNOMON_OK;
    char keys[400];
    list_keys(zip, keys, sizeof keys);
    GNOMON_FAIL_IF(arrays == 0, reader->ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("%s") ": is an archive without arrays", reader->path);
    return gnomon_fail(
        reader->ctx, GNOMON_ERROR_ARGUMENT,
        GNOMON_ARG("%s") ": has several arrays; name one as %s:KEY, KEY being one of %s",
        reader->path, reader->path, keys);
}

static gnomon_status npz_open(gnomon_reader *reader)
{
    gnomon_context *ctx = reader->ctx;
    npz_state *state = NULL;
    GNOMON_TRY(gnomon_alloc_zero(ctx, 1, sizeof *state, "a reader", &state));
    reader->state = state;
    GNOMON_TRY(gnomon_zip_open(reader->source, &state->zip));
    if (reader->member[0] == '\0' && gnomon_npz_is_sparse(state->zip)) {
        reader->format->close(reader);
        reader->format = &gnomon_format_npz_csr;
        return reader->format->open(reader);
    }
    int64_t index;
    if (reader->member[0] != '\0')
        GNOMON_TRY(find_key(reader, state->zip, &index));
    else
        GNOMON_TRY(choose_key(reader, state->zip, &index));
    GNOMON_TRY(gnomon_copy_text(ctx, gnomon_zip_name(state->zip, index), &state->key));
    if (is_array(state->key)) state->key[strlen(state->key) - 4] = '\0';
    GNOMON_TRY(gnomon_zip_member(state->zip, index, &state->member));
    GNOMON_TRY(gnomon_npy_points(reader, state->member, &state->array));
    reader->info.member = state->key;
    return gnomon_array_start(reader, &state->array);
}

static gnomon_status npz_members(gnomon_reader *reader, gnomon_member_fn fn, void *user)
{
    gnomon_zip *zip = NULL;
    GNOMON_TRY(gnomon_zip_open(reader->source, &zip));
    gnomon_status status = GNOMON_OK;
    for (int64_t i = 0; i < gnomon_zip_count(zip) && status == GNOMON_OK; i++) {
        const char *name = gnomon_zip_name(zip, i);
        int dimensions = 0;
        char *key = NULL;
        if (!is_array(name)) continue;
        status = count_dimensions(zip, i, &dimensions);
        if (status != GNOMON_OK && !is_fatal(status)) {
            status = GNOMON_OK;
            continue;
        }
        if (status != GNOMON_OK || dimensions == 0) continue;
        status = gnomon_copy_text(reader->ctx, name, &key);
        if (status != GNOMON_OK) continue;
        key[strlen(key) - 4] = '\0';
        fn(user, key);
        gnomon_free(reader->ctx, key);
    }
    gnomon_zip_close(zip);
    return status;
}

/* The arrays are read as those of a reader that was opened for one of them, from one archive. */
static gnomon_status describe_array(const gnomon_reader *reader, gnomon_zip *zip, int64_t index,
                                    gnomon_data_info *info)
{
    gnomon_reader one = *reader;
    gnomon_source *member = NULL;
    gnomon_array array = {0};
    one.info = (gnomon_data_info){
        .struct_size = sizeof one.info, .nonzeros = -1, .format = reader->format->name};
    gnomon_status status = gnomon_zip_member(zip, index, &member);
    if (status == GNOMON_OK) status = gnomon_npy_points(&one, member, &array);
    if (status == GNOMON_OK) status = gnomon_array_start(&one, &array);
    gnomon_array_stop(reader->ctx, &array);
    gnomon_source_close(member);
    *info = one.info;
    return status;
}

static gnomon_status npz_describe(gnomon_reader *reader, gnomon_describe_fn fn, void *user)
{
    gnomon_zip *zip = NULL;
    GNOMON_TRY(gnomon_zip_open(reader->source, &zip));
    gnomon_status status = GNOMON_OK;
    for (int64_t i = 0; i < gnomon_zip_count(zip) && status == GNOMON_OK; i++) {
        const char *name = gnomon_zip_name(zip, i);
        gnomon_data_info info;
        int dimensions = 0;
        char *key = NULL;
        if (!is_array(name)) continue;
        const gnomon_status counted = count_dimensions(zip, i, &dimensions);
        if (counted == GNOMON_OK && dimensions == 0) continue;
        status = is_fatal(counted) ? counted : gnomon_copy_text(reader->ctx, name, &key);
        if (status != GNOMON_OK) continue;
        key[strlen(key) - 4] = '\0';
        status = counted == GNOMON_OK ? describe_array(reader, zip, i, &info) : counted;
        info.member = key;
        if (!is_fatal(status)) {
            fn(user, key, status == GNOMON_OK ? &info : NULL);
            status = GNOMON_OK;
        }
        gnomon_free(reader->ctx, key);
    }
    gnomon_zip_close(zip);
    return status;
}

static void npz_close(gnomon_reader *reader)
{
    npz_state *state = reader->state;
    if (state == NULL) return;
    gnomon_array_stop(reader->ctx, &state->array);
    gnomon_source_close(state->member);
    gnomon_zip_close(state->zip);
    gnomon_free(reader->ctx, state->key);
    gnomon_free(reader->ctx, state);
    reader->state = NULL;
}

/* Column-major points come piecewise all over the array, which a stream to be compressed can't
 * take: they are put together in a temporary file first. */
typedef struct npz_out {
    gnomon_array_out out;
    gnomon_zip_writer *zip;
    int columns; /* the temporary file, -1 when there is none */
    const char *path;
    gnomon_context *ctx;
} npz_out;

static bool npz_revisits(const gnomon_writer *writer)
{
    (void)writer;
    return true;
}

static gnomon_status npz_append(void *to, const void *data, size_t size)
{
    npz_out *state = to;
    return gnomon_zip_writer_write(state->zip, data, size);
}

static gnomon_status npz_place(void *to, int64_t offset, const void *data, size_t size)
{
    npz_out *state = to;
    const char *bytes = data;
    while (size > 0) {
        ssize_t n = pwrite(state->columns, bytes, size, (off_t)offset);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0)
            return gnomon_fail(state->ctx, GNOMON_ERROR_IO,
                               GNOMON_ARG("%s") ": can't keep it in a temporary file: %s",
                               state->path, strerror(errno));
        bytes += n;
        offset += n;
        size -= (size_t)n;
    }
    return GNOMON_OK;
}

static void make_header(const gnomon_writer *writer, int64_t rows,
                        unsigned char header[GNOMON_NPY_HEADER])
{
    gnomon_npy_make_header(header, writer->dtype, 2, rows, writer->cols,
                           writer->options.coordinates_contiguous != 0);
}

static gnomon_status npz_create(gnomon_writer *writer)
{
    gnomon_context *ctx = writer->ctx;
    if (writer->options.sparse) {
        writer->format = &gnomon_format_npz_csr;
        return writer->format->create(writer);
    }
    npz_out *state = NULL;
    GNOMON_TRY(gnomon_alloc_zero(ctx, 1, sizeof *state, "a writer", &state));
    state->columns = -1;
    state->path = writer->path;
    state->ctx = ctx;
    writer->state = state;
    GNOMON_TRY(gnomon_array_out_start(writer, &state->out));
    state->out.to = state;
    state->out.append = npz_append;
    state->out.place = npz_place;
    state->out.offset = 0;
    if (writer->options.coordinates_contiguous)
        GNOMON_TRY(gnomon_temporary_nameless(ctx, &state->columns));
    GNOMON_TRY(
        gnomon_zip_writer_open(ctx, writer->sink, writer->options.compress != 0, &state->zip));
    const char *key = writer->member[0] != '\0' ? writer->member : "data";
    size_t length = strlen(key) + 5;
    char *name = NULL;
    GNOMON_TRY(gnomon_alloc(ctx, (int64_t)length, 1, "a name", &name));
    snprintf(name, length, "%s%s", key, is_array(key) ? "" : ".npy");
    unsigned char header[GNOMON_NPY_HEADER];
    make_header(writer, writer->rows < 0 ? 0 : writer->rows, header);
    gnomon_status status = gnomon_zip_writer_begin(state->zip, name, header, sizeof header);
    gnomon_free(ctx, name);
    return status;
}

static gnomon_status npz_put(gnomon_writer *writer, const gnomon_matrix *src)
{
    npz_out *state = writer->state;
    return gnomon_array_out_put(writer, &state->out, src);
}

static gnomon_status copy_columns(npz_out *state)
{
    enum { PIECE = 256 * 1024 };
    for (off_t offset = 0;;) {
        ssize_t n = pread(state->columns, state->out.scratch, PIECE, offset);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0)
            return gnomon_fail(state->ctx, GNOMON_ERROR_IO,
                               GNOMON_ARG("%s") ": can't read its temporary file: %s", state->path,
                               strerror(errno));
        if (n == 0) return GNOMON_OK;
        GNOMON_TRY(gnomon_zip_writer_write(state->zip, state->out.scratch, (size_t)n));
        offset += n;
    }
}

static gnomon_status npz_complete(gnomon_writer *writer)
{
    npz_out *state = writer->state;
    if (state->columns >= 0) GNOMON_TRY(copy_columns(state));
    unsigned char header[GNOMON_NPY_HEADER];
    make_header(writer, writer->written, header);
    GNOMON_TRY(gnomon_zip_writer_end(state->zip, writer->rows < 0 ? header : NULL));
    return gnomon_zip_writer_complete(state->zip);
}

static void npz_discard(gnomon_writer *writer)
{
    npz_out *state = writer->state;
    if (state == NULL) return;
    if (state->columns >= 0) close(state->columns);
    gnomon_zip_writer_close(state->zip);
    gnomon_array_out_stop(writer->ctx, &state->out);
    gnomon_free(writer->ctx, state);
    writer->state = NULL;
}

const gnomon_format gnomon_format_npz = {
    .name = "npz",
    .about = "archive of NumPy arrays, or of scipy's sparse matrix",
    .endings = ".npz",
    .member = "KEY",
    .holds = GNOMON_HOLDS_DENSE | GNOMON_HOLDS_SPARSE | GNOMON_HOLDS_TENSOR,
    .takes = GNOMON_TAKES_ORDER | GNOMON_TAKES_COMPRESS,
    .writes = GNOMON_NPY_WRITES,
    .sniff = npz_sniff,
    .open = npz_open,
    .next = gnomon_array_next,
    .seek = gnomon_array_seek,
    .block = gnomon_array_block,
    .close = npz_close,
    .members = npz_members,
    .describe = npz_describe,
    .revisits = npz_revisits,
    .create = npz_create,
    .put = npz_put,
    .complete = npz_complete,
    .discard = npz_discard,
};

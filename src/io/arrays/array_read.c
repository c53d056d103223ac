#include "io/arrays/array.h"
#include "io/arrays/convert.h"

enum { SCRATCH = 512 * 1024, PREFIX = 4 };
/* so many lines are turned over together: as many cache lines as stay in the first level */
enum { TRANSPOSED = 256 };

static int64_t element_size(const gnomon_array *array)
{
    return (int64_t)gnomon_dtype_size(array->dtype);
}

static int64_t line_elements(const gnomon_array *array)
{
    return array->fortran ? array->rows : array->cols;
}

static int64_t prefix_size(const gnomon_array *array)
{
    return array->prefixed ? PREFIX : 0;
}

static int64_t line_bytes(const gnomon_array *array)
{
    return line_elements(array) * element_size(array) + prefix_size(array);
}

/* The header's sizes against what the source holds or can hold. */
static gnomon_status check_size(gnomon_context *ctx, gnomon_array *array)
{
    const char *name = gnomon_source_name(array->source);
    int64_t size = gnomon_source_size(array->source), limit = gnomon_source_limit(array->source);
    int64_t line, total;
    bool fits = gnomon_mul(array->cols, element_size(array), &line) &&
                gnomon_add(line, prefix_size(array), &line);
    if (fits && array->rows < 0 && size >= 0 && line > 0) {
        int64_t rest = (size - array->offset) % line;
        array->rows = (size - array->offset) / line;
        GNOMON_FAIL_IF(
            rest != 0, ctx, GNOMON_ERROR_TRUNCATED,
            GNOMON_ARG(
                "%s") ": %lld bytes are left after %lld points of %lld bytes each: it is cut "
                      "short, or not all points have %lld coordinates",
            name, (long long)rest, (long long)array->rows, (long long)line, (long long)array->cols);
    }
    fits = fits && gnomon_mul(array->rows > 0 ? array->rows : 0, line, &total) &&
           gnomon_add(total, array->offset, &total);
    GNOMON_FAIL_IF(
        !fits, ctx, GNOMON_ERROR_DATA,
        GNOMON_ARG("%s") ": the header's %lld x %lld elements of %s are more than any file holds",
        name, (long long)array->rows, (long long)array->cols, gnomon_dtype_name(array->dtype));
    if (array->rows < 0) { /* at least one line must be possible */
        int64_t end;
        GNOMON_FAIL_IF(!gnomon_add(line, array->offset, &end) || end > limit, ctx,
                       GNOMON_ERROR_TRUNCATED,
                       GNOMON_ARG("%s") ": a point of %lld bytes is more than it can hold", name,
                       (long long)line);
        return GNOMON_OK;
    }
    GNOMON_FAIL_IF(
        total > limit, ctx, GNOMON_ERROR_TRUNCATED,
        GNOMON_ARG(
            "%s") ": %lld x %lld elements of %s end at byte %lld, but it has at most %lld bytes",
        name, (long long)array->rows, (long long)array->cols, gnomon_dtype_name(array->dtype),
        (long long)total, (long long)limit);
    GNOMON_FAIL_IF(
        array->whole && size >= 0 && total != size, ctx, GNOMON_ERROR_DATA,
        GNOMON_ARG("%s") ": %lld x %lld elements of %s end at byte %lld, but it has %lld bytes",
        name, (long long)array->rows, (long long)array->cols, gnomon_dtype_name(array->dtype),
        (long long)total, (long long)size);
    return GNOMON_OK;
}

gnomon_status gnomon_array_start(gnomon_reader *reader, gnomon_array *array)
{
    gnomon_context *ctx = reader->ctx;
    GNOMON_TRY(check_size(ctx, array));
    /* one line or less is both layouts */
    if (array->fortran && (array->rows <= 1 || array->cols <= 1)) array->fortran = false;
    if (array->fortran) GNOMON_TRY(gnomon_source_make_random(array->source));
    if (array->fortran) GNOMON_TRY(check_size(ctx, array)); /* now that the size is known */
    GNOMON_TRY(gnomon_alloc(ctx, SCRATCH, 1, "a read buffer", &array->scratch));
    gnomon_source_kind kind = gnomon_source_get_kind(array->source);
    reader->info.rows = array->rows;
    reader->info.cols = array->cols;
    reader->info.dtype = array->dtype;
    reader->info.coordinates_contiguous = array->fortran;
    reader->info.access = kind == GNOMON_SOURCE_RANDOM ? GNOMON_ACCESS_SEEK | GNOMON_ACCESS_COLUMNS
                          : kind == GNOMON_SOURCE_REWINDABLE ? GNOMON_ACCESS_SEEK
                                                             : 0;
    if (array->boolean) reader->info.access |= GNOMON_ACCESS_BOOLEAN;
    return GNOMON_OK;
}

void gnomon_array_stop(gnomon_context *ctx, gnomon_array *array)
{
    gnomon_free(ctx, array->scratch);
    array->scratch = NULL;
}

gnomon_status gnomon_array_open(gnomon_reader *reader, const gnomon_array *header)
{
    gnomon_array *array = NULL;
    GNOMON_TRY(gnomon_alloc_zero(reader->ctx, 1, sizeof *array, "a reader", &array));
    *array = *header;
    reader->state = array;
    return gnomon_array_start(reader, array);
}

void gnomon_array_close(gnomon_reader *reader)
{
    if (reader->state == NULL) return;
    gnomon_array_stop(reader->ctx, reader->state);
    gnomon_free(reader->ctx, reader->state);
    reader->state = NULL;
}

static gnomon_status fetch(gnomon_array *array, int64_t offset, void *data, int64_t size)
{
    if (gnomon_source_get_kind(array->source) == GNOMON_SOURCE_RANDOM)
        return gnomon_source_read_at(array->source, offset, data, (size_t)size, "the points");
    GNOMON_TRY(gnomon_source_seek(array->source, offset));
    return gnomon_source_exact(array->source, data, (size_t)size, "the points");
}

static gnomon_status check_prefix(gnomon_reader *reader, const gnomon_array *array,
                                  const unsigned char *p, int64_t row)
{
    uint32_t bits =
        (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
    int64_t dimension = (int32_t)bits;
    GNOMON_FAIL_IF(
        dimension != array->cols, reader->ctx, GNOMON_ERROR_DATA,
        GNOMON_ARG(
            "%s") ": the point of row %lld (byte %lld) says it has %lld coordinates, the first "
                  "one %lld",
        gnomon_source_name(array->source), (long long)row,
        (long long)(array->offset + row * line_bytes(array)), (long long)dimension,
        (long long)array->cols);
    return GNOMON_OK;
}

/* dst's part [line, line + lines) x [element, element + elements), in lines, of a view of it. */
static gnomon_matrix part_of(const gnomon_array *array, const gnomon_matrix *dst, int64_t line,
                             int64_t lines, int64_t element, int64_t elements)
{
    gnomon_matrix part = *dst;
    int64_t row = array->fortran ? element : line, col = array->fortran ? line : element;
    part.rows = array->fortran ? elements : lines;
    part.cols = array->fortran ? lines : elements;
    part.data = (char *)dst->data + (row * dst->row_stride + col * dst->col_stride) *
                                        (int64_t)gnomon_dtype_size(dst->dtype);
    return part;
}

/* Lines of the scratch, line_stride elements apart, to a part of dst. */
static gnomon_status deliver(gnomon_reader *reader, gnomon_array *array, unsigned char *from,
                             int64_t line_stride, int64_t scanned, const gnomon_matrix *part)
{
    if (array->swapped) gnomon_swap_bytes(from, scanned, gnomon_dtype_size(array->dtype));
    gnomon_matrix src = {from,
                         array->dtype,
                         GNOMON_HOST,
                         part->rows,
                         part->cols,
                         array->fortran ? 1 : line_stride,
                         array->fortran ? line_stride : 1};
    return gnomon_convert(reader->ctx, &src, part, 0, 0, gnomon_source_name(array->source));
}

/* Several lines at once, what lies between them too. */
static gnomon_status read_together(gnomon_reader *reader, gnomon_array *array, int64_t line,
                                   int64_t lines, int64_t element, const gnomon_matrix *part)
{
    int64_t size = element_size(array), step = line_bytes(array), prefix = prefix_size(array);
    int64_t elements = array->fortran ? part->rows : part->cols;
    /* a row's prefix is read with it, to be checked */
    int64_t skip = array->prefixed ? prefix + element * size : 0;
    int64_t from = array->offset + line * step + (array->prefixed ? 0 : element * size);
    int64_t bytes = (lines - 1) * step + skip + elements * size;
    GNOMON_TRY(fetch(array, from, array->scratch, bytes));
    for (int64_t i = 0; i < lines && array->prefixed; i++)
        GNOMON_TRY(check_prefix(reader, array, array->scratch + i * step, line + i));
    return deliver(reader, array, array->scratch + skip, step / size, (bytes - skip) / size, part);
}

/* One line in pieces. */
static gnomon_status read_line(gnomon_reader *reader, gnomon_array *array, int64_t line,
                               int64_t element, int64_t elements, const gnomon_matrix *dst,
                               int64_t dst_line)
{
    int64_t size = element_size(array), most = SCRATCH / size;
    int64_t start = array->offset + line * line_bytes(array);
    if (array->prefixed) {
        GNOMON_TRY(fetch(array, start, array->scratch, PREFIX));
        GNOMON_TRY(check_prefix(reader, array, array->scratch, line));
        start += PREFIX;
    }
    for (int64_t done = 0; done < elements;) {
        int64_t n = elements - done < most ? elements - done : most;
        gnomon_matrix part = part_of(array, dst, dst_line, 1, done, n);
        GNOMON_TRY(fetch(array, start + (element + done) * size, array->scratch, n * size));
        GNOMON_TRY(deliver(reader, array, array->scratch, n, n, &part));
        done += n;
    }
    return GNOMON_OK;
}

/* Short pieces of several lines, each fetched by itself, so that they are converted together:
 * one column after another to rows would touch every row for each. */
static gnomon_status read_pieces(gnomon_reader *reader, gnomon_array *array, int64_t line,
                                 int64_t lines, int64_t element, int64_t elements,
                                 const gnomon_matrix *part)
{
    int64_t size = element_size(array), wanted = elements * size;
    for (int64_t i = 0; i < lines; i++) {
        int64_t start = array->offset + (line + i) * line_bytes(array);
        unsigned char *at = array->scratch + i * wanted;
        if (array->prefixed) {
            unsigned char prefix[PREFIX];
            GNOMON_TRY(fetch(array, start, prefix, PREFIX));
            GNOMON_TRY(check_prefix(reader, array, prefix, line + i));
            start += PREFIX;
        }
        GNOMON_TRY(fetch(array, start + element * size, at, wanted));
    }
    return deliver(reader, array, array->scratch, elements, lines * elements, part);
}

/* Whether dst's lines are the file's bytes as they are. */
static bool as_stored(const gnomon_array *array, const gnomon_matrix *dst, int64_t elements)
{
    int64_t across = array->fortran ? dst->col_stride : dst->row_stride;
    int64_t along = array->fortran ? dst->row_stride : dst->col_stride;
    return dst->dtype == array->dtype && !array->swapped && !array->prefixed && along == 1 &&
           across == elements && elements == line_elements(array);
}

static gnomon_status read_part(gnomon_reader *reader, gnomon_array *array, int64_t row, int64_t col,
                               const gnomon_matrix *dst)
{
    int64_t line = array->fortran ? col : row, element = array->fortran ? row : col;
    int64_t lines = array->fortran ? dst->cols : dst->rows;
    int64_t elements = array->fortran ? dst->rows : dst->cols;
    int64_t step = line_bytes(array), wanted = elements * element_size(array);
    if (step == 0 || lines == 0) return GNOMON_OK;
    if (as_stored(array, dst, elements))
        return fetch(array, array->offset + line * step, dst->data, lines * step);
    /* Reading over a gap is cheaper than another call when it is short. */
    int64_t together = SCRATCH / step;
    bool over_gaps = together > 1 && lines > 1 && (step - wanted <= 4096 || step <= 4 * wanted);
    if (!over_gaps) together = wanted > 0 ? SCRATCH / wanted : 0;
    if (!over_gaps && together > TRANSPOSED) together = TRANSPOSED;
    for (int64_t done = 0; done < lines;) {
        int64_t n = lines - done < together ? lines - done : together;
        gnomon_matrix part = part_of(array, dst, done, n > 0 ? n : 1, 0, elements);
        if (n == 0)
            GNOMON_TRY(read_line(reader, array, line + done, element, elements, dst, done));
        else if (over_gaps)
            GNOMON_TRY(read_together(reader, array, line + done, n, element, &part));
        else
            GNOMON_TRY(read_pieces(reader, array, line + done, n, element, elements, &part));
        done += n > 0 ? n : 1;
    }
    return GNOMON_OK;
}

/* Once past the last point: nothing may follow where the format is complete, and a compressed
 * stream checks its sum only when it is read to its end. */
static gnomon_status check_end(gnomon_reader *reader, gnomon_array *array)
{
    gnomon_source_kind kind = gnomon_source_get_kind(array->source);
    int64_t start, lines = array->fortran ? array->cols : array->rows;
    if (array->ended || gnomon_source_fd(array->source, &start) >= 0) return GNOMON_OK;
    /* what follows in an open pipe is not waited for when it does not matter */
    if (!array->whole && kind == GNOMON_SOURCE_STREAM && !gnomon_source_packed(array->source))
        return GNOMON_OK;
    array->ended = true;
    const unsigned char *data;
    size_t got;
    GNOMON_TRY(gnomon_source_seek(array->source, array->offset + lines * line_bytes(array)));
    GNOMON_TRY(gnomon_source_peek(array->source, 1, &data, &got));
    GNOMON_FAIL_IF(got > 0 && array->whole, reader->ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("%s") ": more bytes follow the %lld points at byte %lld",
                   gnomon_source_name(array->source), (long long)array->rows,
                   (long long)gnomon_source_tell(array->source));
    return GNOMON_OK;
}

gnomon_status gnomon_array_next(gnomon_reader *reader, const gnomon_matrix *dst, int64_t *got)
{
    gnomon_array *array = reader->state;
    if (array->rows >= 0) {
        int64_t left = array->rows - array->next_row;
        gnomon_matrix part = *dst;
        if (part.rows > left) part.rows = left;
        GNOMON_TRY(read_part(reader, array, array->next_row, 0, &part));
        array->next_row += part.rows;
        *got = part.rows;
        return array->next_row == array->rows ? check_end(reader, array) : GNOMON_OK;
    }
    /* A stream whose end tells the number of points: a line at a time. */
    while (*got < dst->rows) {
        const unsigned char *data;
        size_t more;
        GNOMON_TRY(
            gnomon_source_seek(array->source, array->offset + array->next_row * line_bytes(array)));
        GNOMON_TRY(gnomon_source_peek(array->source, 1, &data, &more));
        if (more == 0) break;
        gnomon_matrix part = part_of(array, dst, *got, 1, 0, dst->cols);
        GNOMON_TRY(read_part(reader, array, array->next_row, 0, &part));
        array->next_row++;
        *got += 1;
    }
    return GNOMON_OK;
}

gnomon_status gnomon_array_seek(gnomon_reader *reader, int64_t row)
{
    gnomon_array *array = reader->state;
    int64_t place;
    GNOMON_FAIL_IF(
        !gnomon_mul(row, line_bytes(array), &place) || !gnomon_add(place, array->offset, &place),
        reader->ctx, GNOMON_ERROR_ARGUMENT, "row %lld lies beyond any file", (long long)row);
    array->next_row = row;
    return GNOMON_OK;
}

gnomon_status gnomon_array_block(gnomon_reader *reader, int64_t row, int64_t col,
                                 const gnomon_matrix *dst)
{
    return read_part(reader, reader->state, row, col, dst);
}

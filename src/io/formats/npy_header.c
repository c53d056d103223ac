#include "base/memory.h"
#include "io/arrays/convert.h"
#include "io/formats/npy.h"

#include <stdio.h>
#include <string.h>

/* NumPy itself refuses to parse more than 10000 characters; only structured types come near. */
enum { TEXT_MOST = 65535 };

/* The header is the text of a Python dictionary. Only what NumPy writes is understood: three
 * keys, quoted strings, True and False, a tuple of whole numbers. */
typedef struct parser {
    gnomon_context *ctx;
    const char *name;
    const char *at, *end;
    const char *begin;
    int64_t offset; /* of begin in the file */
} parser;

static gnomon_status bad(const parser *p, const char *wanted)
{
    return gnomon_fail(p->ctx, GNOMON_ERROR_DATA,
                       GNOMON_ARG("%s") ": bad npy header at byte %lld: %s", p->name,
                       (long long)(p->offset + (p->at - p->begin)), wanted);
}

static void skip_space(parser *p)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r'))
        p->at++;
}

static bool accept(parser *p, char c)
{
    skip_space(p);
    if (p->at >= p->end || *p->at != c) return false;
    p->at++;
    return true;
}

static bool accept_word(parser *p, const char *word)
{
    skip_space(p);
    size_t length = strlen(word);
    if ((size_t)(p->end - p->at) < length || memcmp(p->at, word, length) != 0) return false;
    p->at += length;
    return true;
}

static gnomon_status parse_string(parser *p, char text[32])
{
    skip_space(p);
    if (p->at >= p->end || (*p->at != '\'' && *p->at != '"')) return bad(p, "a string is due");
    char quote = *p->at;
    const char *from = p->at + 1, *to = from;
    while (to < p->end && *to != quote && *to != '\\')
        to++;
    if (to >= p->end || *to != quote || to - from > 31) return bad(p, "a short string is due");
    memcpy(text, from, (size_t)(to - from));
    text[to - from] = '\0';
    p->at = to + 1;
    return GNOMON_OK;
}

static gnomon_status parse_size(parser *p, int64_t *size)
{
    skip_space(p);
    if (p->at < p->end && *p->at == '-') return bad(p, "a size is negative");
    if (p->at >= p->end || *p->at < '0' || *p->at > '9') return bad(p, "a size is due");
    *size = 0;
    for (; p->at < p->end && *p->at >= '0' && *p->at <= '9'; p->at++)
        if (!gnomon_mul(*size, 10, size) || !gnomon_add(*size, *p->at - '0', size))
            return bad(p, "a size does not fit 63 bits");
    if (p->at < p->end && *p->at == 'L') p->at++; /* Python 2 wrote long numbers so */
    return GNOMON_OK;
}

static gnomon_status parse_shape(parser *p, gnomon_npy_header *header)
{
    if (!accept(p, '(')) return bad(p, "the shape must be a tuple");
    header->dimensions = 0;
    while (!accept(p, ')')) {
        if (header->dimensions == GNOMON_NPY_DIMENSIONS) return bad(p, "more than 32 dimensions");
        GNOMON_TRY(parse_size(p, &header->shape[header->dimensions]));
        header->dimensions++;
        if (accept(p, ',')) continue;
        if (!accept(p, ')')) return bad(p, "a comma or the end of the shape is due");
        if (header->dimensions == 1) return bad(p, "the shape must be a tuple");
        break;
    }
    return GNOMON_OK;
}

static gnomon_status parse_dtype(parser *p, gnomon_npy_header *header)
{
    static const struct {
        char kind;
        char size;
        gnomon_dtype dtype;
    } known[] = {{'f', '2', GNOMON_F16}, {'f', '4', GNOMON_F32}, {'f', '8', GNOMON_F64},
                 {'i', '1', GNOMON_I8},  {'i', '2', GNOMON_I16}, {'i', '4', GNOMON_I32},
                 {'i', '8', GNOMON_I64}, {'u', '1', GNOMON_U8},  {'u', '2', GNOMON_U16},
                 {'u', '4', GNOMON_U32}, {'u', '8', GNOMON_U64}, {'b', '1', GNOMON_U8}};
    skip_space(p);
    if (p->at < p->end && (*p->at == '[' || *p->at == '('))
        return gnomon_fail(p->ctx, GNOMON_ERROR_UNSUPPORTED,
                           GNOMON_ARG("%s") ": holds a structured array; points are plain numbers",
                           p->name);
    char text[32];
    GNOMON_TRY(parse_string(p, text));
    const char *rest = text;
    char order = '=';
    if (*rest != '\0' && strchr("<>|=", *rest) != NULL) order = *rest++;
    if (*rest == 'O')
        return gnomon_fail(
            p->ctx, GNOMON_ERROR_UNSUPPORTED,
            GNOMON_ARG("%s") ": holds Python objects (dtype '%s'), which are never read; save "
                             "numbers instead",
            p->name, text);
    header->swapped =
        (order == '<' && gnomon_big_endian()) || (order == '>' && !gnomon_big_endian());
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (rest[0] != known[i].kind || rest[1] != known[i].size || rest[2] != '\0') continue;
        header->dtype = known[i].dtype;
        header->boolean = rest[0] == 'b';
        if (rest[1] == '1') header->swapped = false;
        return GNOMON_OK;
    }
    int bytes = 0;
    char more;
    if (sscanf(rest, "S%4d%c", &bytes, &more) == 1 && bytes > 0) {
        header->text_bytes = bytes;
        header->swapped = false;
        return GNOMON_OK;
    }
    return gnomon_fail(
        p->ctx, GNOMON_ERROR_UNSUPPORTED,
        GNOMON_ARG("%s") ": holds elements of dtype '%s'; read are f2, f4, f8, i1 to i8, u1 to u8 "
                         "and b1",
        p->name, text);
}

static gnomon_status parse_dictionary(parser *p, gnomon_npy_header *header)
{
    bool descr = false, order = false, shape = false;
    if (!accept(p, '{')) return bad(p, "it must begin with '{'");
    while (!accept(p, '}')) {
        char key[32];
        GNOMON_TRY(parse_string(p, key));
        if (!accept(p, ':')) return bad(p, "a ':' is due");
        bool *seen = strcmp(key, "descr") == 0           ? &descr
                     : strcmp(key, "fortran_order") == 0 ? &order
                     : strcmp(key, "shape") == 0         ? &shape
                                                         : NULL;
        if (seen == NULL || *seen) return bad(p, "an unknown or repeated key");
        *seen = true;
        if (seen == &descr) {
            GNOMON_TRY(parse_dtype(p, header));
        } else if (seen == &order) {
            header->fortran = accept_word(p, "True");
            if (!header->fortran && !accept_word(p, "False")) return bad(p, "True or False is due");
        } else {
            GNOMON_TRY(parse_shape(p, header));
        }
        if (accept(p, ',')) continue;
        if (!accept(p, '}')) return bad(p, "a ',' or '}' is due");
        break;
    }
    skip_space(p);
    if (p->at != p->end) return bad(p, "something follows the '}'");
    if (!descr || !order || !shape) return bad(p, "descr, fortran_order and shape are due");
    return GNOMON_OK;
}

static gnomon_status check_elements(gnomon_source *source, gnomon_npy_header *header)
{
    gnomon_context *ctx = gnomon_source_context(source);
    int64_t size =
        header->text_bytes > 0 ? header->text_bytes : (int64_t)gnomon_dtype_size(header->dtype);
    int64_t bytes, end;
    header->elements = 1;
    bool fits = true, empty = false;
    for (int i = 0; i < header->dimensions; i++) {
        empty = empty || header->shape[i] == 0;
        fits = fits && (header->shape[i] == 0 ||
                        gnomon_mul(header->elements, header->shape[i], &header->elements));
    }
    GNOMON_FAIL_IF(!fits || !gnomon_mul(header->elements, size, &bytes) ||
                       !gnomon_add(bytes, header->offset, &end),
                   ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("%s") ": the npy header's shape is more than any file holds",
                   gnomon_source_name(source));
    if (empty) {
        header->elements = 0;
        return GNOMON_OK;
    }
    GNOMON_FAIL_IF(
        end > gnomon_source_limit(source), ctx, GNOMON_ERROR_TRUNCATED,
        GNOMON_ARG(
            "%s") ": the npy header's %lld elements end at byte %lld, but it has at most %lld "
                  "bytes",
        gnomon_source_name(source), (long long)header->elements, (long long)end,
        (long long)gnomon_source_limit(source));
    return GNOMON_OK;
}

gnomon_status gnomon_npy_read_header(gnomon_source *source, gnomon_npy_header *header)
{
    gnomon_context *ctx = gnomon_source_context(source);
    const char *name = gnomon_source_name(source);
    memset(header, 0, sizeof *header);
    int64_t start = gnomon_source_tell(source);
    unsigned char lead[12];
    GNOMON_TRY(gnomon_source_exact(source, lead, 8, "the npy magic"));
    GNOMON_FAIL_IF(memcmp(lead, "\x93NUMPY", 6) != 0, ctx, GNOMON_ERROR_DATA,
                   "%s: does not begin with the magic of an npy file", name);
    GNOMON_FAIL_IF(lead[6] < 1 || lead[6] > 3, ctx, GNOMON_ERROR_UNSUPPORTED,
                   GNOMON_ARG("%s") ": is npy of version %d.%d; read are 1, 2 and 3", name, lead[6],
                   lead[7]);
    size_t count = lead[6] == 1 ? 2 : 4;
    GNOMON_TRY(gnomon_source_exact(source, lead + 8, count, "the npy header's length"));
    uint32_t length = (uint32_t)lead[8] | (uint32_t)lead[9] << 8;
    if (count == 4) length |= (uint32_t)lead[10] << 16 | (uint32_t)lead[11] << 24;
    GNOMON_FAIL_IF(
        length > TEXT_MOST, ctx, GNOMON_ERROR_DATA,
        GNOMON_ARG("%s") ": the npy header says it is %lu bytes long; at most %d are read", name,
        (unsigned long)length, (int)TEXT_MOST);
    char *text = NULL;
    GNOMON_TRY(gnomon_alloc(ctx, (int64_t)length + 1, 1, "an npy header", &text));
    gnomon_status status = gnomon_source_exact(source, text, length, "the npy header");
    if (status == GNOMON_OK) {
        parser p = {ctx, name, text, text + length, text, start + 8 + (int64_t)count};
        status = parse_dictionary(&p, header);
    }
    gnomon_free(ctx, text);
    GNOMON_TRY(status);
    header->offset = gnomon_source_tell(source);
    return check_elements(source, header);
}

size_t gnomon_npy_make_shape(unsigned char header[GNOMON_NPY_LONGEST], gnomon_dtype dtype,
                             int dimensions, const int64_t *shape, bool fortran)
{
    static const char *const names[] = {
        [GNOMON_F32] = "f4", [GNOMON_F64] = "f8", [GNOMON_F16] = "f2", [GNOMON_I8] = "i1",
        [GNOMON_U8] = "u1",  [GNOMON_I16] = "i2", [GNOMON_U16] = "u2", [GNOMON_I32] = "i4",
        [GNOMON_U32] = "u4", [GNOMON_I64] = "i8", [GNOMON_U64] = "u8"};
    enum { LEAD = 10, UNIT = 64 };
    const char order = gnomon_dtype_size(dtype) == 1 ? '|' : gnomon_big_endian() ? '>' : '<';
    char text[GNOMON_NPY_LONGEST];
    size_t n =
        (size_t)snprintf(text, sizeof text, "{'descr': '%c%s', 'fortran_order': %s, 'shape': (",
                         order, names[dtype], fortran ? "True" : "False");
    for (int i = 0; i < dimensions; i++)
        n += (size_t)snprintf(text + n, sizeof text - n,
                              dimensions == 1 ? "%lld,"
                              : i > 0         ? ", %lld"
                                              : "%lld",
                              (long long)shape[i]);
    n += (size_t)snprintf(text + n, sizeof text - n, "), }");
    size_t size = (LEAD + n + 1 + UNIT - 1) / UNIT * UNIT;
    if (size < GNOMON_NPY_HEADER) size = GNOMON_NPY_HEADER;
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    header[8] = (unsigned char)((size - LEAD) & 255);
    header[9] = (unsigned char)((size - LEAD) >> 8);
    memset(header + LEAD, ' ', size - LEAD - 1);
    memcpy(header + LEAD, text, n);
    header[size - 1] = '\n';
    return size;
}

void gnomon_npy_make_header(unsigned char header[GNOMON_NPY_HEADER], gnomon_dtype dtype,
                            int dimensions, int64_t rows, int64_t cols, bool fortran)
{
    const int64_t shape[] = {rows, cols};
    unsigned char longest[GNOMON_NPY_LONGEST];
    (void)gnomon_npy_make_shape(longest, dtype, dimensions, shape, fortran);
    memcpy(header, longest, GNOMON_NPY_HEADER); /* two sizes always fit */
}

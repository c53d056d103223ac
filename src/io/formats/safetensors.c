/* safetensors: an 8-byte length, low end first, a JSON header that tells type, shape and place of
 * each tensor, then the tensors' elements without gaps, low end first, in C order. */
#include "base/text_json.h"
#include "io/arrays/array.h"
#include "io/arrays/convert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define METADATA "__metadata__" /* the one name that is no tensor's */
enum { LENGTH = 8, DIMENSIONS = 32, NESTING = 4, UNIT = 64, PIECE = 64 * 1024 };
/* A tensor's entry as text: without its members' values, and with sizes of 20 digits. */
enum { ENTRY_LEAST = 44, ENTRY_MOST = 4096 };
/* The reference implementation refuses longer headers too. */
#define HEADER_MOST INT64_C(100000000)

static const struct {
    const char *name;
    int bits;           /* of an element */
    gnomon_dtype dtype; /* 0: not read */
} types[] = {
    {"F32", 32, GNOMON_F32},
    {"F64", 64, GNOMON_F64},
    {"F16", 16, GNOMON_F16},
    {"BF16", 16, GNOMON_BF16},
    {"I8", 8, GNOMON_I8},
    {"U8", 8, GNOMON_U8},
    {"I16", 16, GNOMON_I16},
    {"U16", 16, GNOMON_U16},
    {"I32", 32, GNOMON_I32},
    {"U32", 32, GNOMON_U32},
    {"I64", 64, GNOMON_I64},
    {"U64", 64, GNOMON_U64},
    {"BOOL", 8, GNOMON_U8},
    {"F8_E4M3", 8, (gnomon_dtype)0},
    {"F8_E5M2", 8, (gnomon_dtype)0},
    {"F8_E8M0", 8, (gnomon_dtype)0},
    {"F6_E2M3", 6, (gnomon_dtype)0},
    {"F6_E3M2", 6, (gnomon_dtype)0},
    {"F4", 4, (gnomon_dtype)0},
    {"C64", 64, (gnomon_dtype)0},
};
enum { TYPES = sizeof types / sizeof types[0] };

/* What an entry of the header tells. */
typedef struct tensor {
    const char *type;
    int known; /* its number in types, TYPES when it is none of them */
    int dimensions;
    int64_t shape[DIMENSIONS];
    int64_t begin, end; /* in the data */
} tensor;

/* An entry of the header, which stays as text until it is wanted. */
typedef struct entry {
    const char *name, *text;
    int64_t length; /* of text */
    int64_t begin, end;
} entry;

typedef struct header {
    gnomon_context *ctx;
    const char *file;
    char *text;
    int64_t length;
    entry *entries;
    int64_t count;
} header;

/* A place in the header's text. */
typedef struct cursor {
    const header *h;
    char *at, *end;
} cursor;

static gnomon_status bad(const cursor *c, const char *what)
{
    return gnomon_fail(c->h->ctx, GNOMON_ERROR_DATA,
                       GNOMON_ARG("%s") ": bad safetensors header at byte %lld: %s", c->h->file,
                       (long long)(LENGTH + (c->at - c->h->text)), what);
}

/* The bytes of the UTF-8 character at text, 0 when there is none. */
static int character(const unsigned char *text, const unsigned char *end)
{
    const int more = *text < 0x80                    ? 0
                     : *text >= 0xc2 && *text < 0xe0 ? 1
                     : *text >= 0xe0 && *text < 0xf0 ? 2
                     : *text >= 0xf0 && *text < 0xf5 ? 3
                                                     : -1;
    if (more < 0 || end - text <= more) return 0;
    for (int i = 1; i <= more; i++)
        if ((text[i] & 0xc0) != 0x80) return 0;
    if ((*text == 0xe0 && text[1] < 0xa0) || (*text == 0xed && text[1] > 0x9f) ||
        (*text == 0xf0 && text[1] < 0x90) || (*text == 0xf4 && text[1] > 0x8f))
        return 0;
    return more + 1;
}

/* The first byte that is no UTF-8, NULL when all are. */
static const char *first_bad(const char *text, size_t length)
{
    const unsigned char *at = (const unsigned char *)text, *end = at + length;
    while (at < end) {
        const int n = character(at, end);
        if (n == 0) return (const char *)at;
        at += n;
    }
    return NULL;
}

static void skip_space(cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\t' || *c->at == '\n' || *c->at == '\r'))
        c->at++;
}

static bool accept(cursor *c, char what)
{
    skip_space(c);
    if (c->at >= c->end || *c->at != what) return false;
    c->at++;
    return true;
}

/* The bytes of the escape at text, 0 when it is none. */
static int escape(const char *text, const char *end)
{
    if (end - text < 2 || text[1] == '\0') return 0;
    if (strchr("\"\\/bfnrt", text[1]) != NULL) return 2;
    if (text[1] != 'u' || end - text < 6) return 0;
    for (int i = 2; i < 6; i++)
        if (strchr("0123456789abcdefABCDEF", text[i]) == NULL || text[i] == '\0') return 0;
    return 6;
}

/* A string with its quotes; escapes are left as they are. */
static gnomon_status parse_string(cursor *c, char **from)
{
    skip_space(c);
    *from = c->at;
    if (c->at >= c->end || *c->at != '"') return bad(c, "a string is due");
    for (c->at++; c->at < c->end && *c->at != '"';) {
        const int n = *c->at == '\\' ? escape(c->at, c->end) : (unsigned char)*c->at >= ' ';
        if (n == 0) return bad(c, "a control character or unknown escape in a string");
        c->at += n;
    }
    if (c->at >= c->end) return bad(c, "a string does not end");
    c->at++;
    return GNOMON_OK;
}

/* Turns a string with its quotes into its text, which is never longer, in place. */
static gnomon_status decode(cursor *c, char *from)
{
    json_error_t error;
    bool memory;
    json_t *value =
        gnomon_json_read(from, (size_t)(c->at - from), JSON_DECODE_ANY, &error, &memory);
    GNOMON_FAIL_IF(memory, c->h->ctx, GNOMON_ERROR_MEMORY, "no memory for a tensor's name");
    if (value == NULL) return bad(c, error.text);
    memcpy(from, json_string_value(value), json_string_length(value) + 1);
    json_decref(value);
    return strcmp(from, METADATA) != 0 ? GNOMON_OK : bad(c, METADATA " is not to be escaped");
}

/* A tensor's entry as text: an object, however its members are ordered. */
static gnomon_status parse_entry(cursor *c, entry *e)
{
    char *unused;
    int depth = 0;
    skip_space(c);
    e->text = c->at;
    if (c->at >= c->end || *c->at != '{') return bad(c, "a tensor's entry must be an object");
    do {
        skip_space(c);
        if (c->at >= c->end) return bad(c, "a tensor's entry does not end");
        if (c->at - e->text >= ENTRY_MOST) return bad(c, "a tensor's entry is too long");
        if (*c->at == '"') {
            GNOMON_TRY(parse_string(c, &unused));
            continue;
        }
        if (*c->at == '{' || *c->at == '[') depth++;
        if (*c->at == '}' || *c->at == ']') depth--;
        if (depth > NESTING) return bad(c, "a tensor's entry is nested too deep");
        c->at++;
    } while (depth > 0);
    e->length = c->at - e->text;
    if (e->length < ENTRY_LEAST) return bad(c, "a tensor's entry is too short");
    return GNOMON_OK;
}

/* __metadata__: an object of texts, which are passed over. */
static gnomon_status pass_metadata(cursor *c)
{
    char *unused;
    if (!accept(c, '{')) return bad(c, METADATA " must be an object of texts");
    if (accept(c, '}')) return GNOMON_OK;
    do {
        GNOMON_TRY(parse_string(c, &unused));
        if (!accept(c, ':')) return bad(c, "a ':' is due");
        GNOMON_TRY(parse_string(c, &unused));
    } while (accept(c, ','));
    return accept(c, '}') ? GNOMON_OK : bad(c, "a ',' or '}' is due");
}

/* Goes through the header; keep: fills in h->entries, else only counts them. */
static gnomon_status scan(header *h, bool keep)
{
    static const char metadata[] = "\"" METADATA "\"";
    cursor c = {h, h->text, h->text + h->length};
    bool had_metadata = false;
    if (h->length == 0 || *c.at != '{') return bad(&c, "it must begin with '{'");
    c.at++;
    h->count = 0;
    for (bool more = !accept(&c, '}'); more;) {
        entry e = {0};
        char *name;
        GNOMON_TRY(parse_string(&c, &name));
        const bool is_metadata = (size_t)(c.at - name) == sizeof metadata - 1 &&
                                 memcmp(name, metadata, sizeof metadata - 1) == 0;
        if (is_metadata && had_metadata) return bad(&c, METADATA " stands there twice");
        had_metadata = had_metadata || is_metadata;
        if (keep && !is_metadata) GNOMON_TRY(decode(&c, name));
        e.name = name;
        if (!accept(&c, ':')) return bad(&c, "a ':' is due");
        GNOMON_TRY(is_metadata ? pass_metadata(&c) : parse_entry(&c, &e));
        if (keep && !is_metadata) h->entries[h->count] = e;
        if (!is_metadata) h->count++;
        more = accept(&c, ',');
        if (!more && !accept(&c, '}')) return bad(&c, "a ',' or '}' is due");
    }
    skip_space(&c);
    return c.at == c.end ? GNOMON_OK : bad(&c, "something follows the '}'");
}

static gnomon_status bad_entry(const header *h, const entry *e, const char *what)
{
    return gnomon_fail(h->ctx, GNOMON_ERROR_DATA, GNOMON_ARG("%s") ": tensor '%s': %s", h->file,
                       e->name, what);
}

static bool parse_number(const json_t *value, int64_t *number)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0) return false;
    *number = (int64_t)json_integer_value(value);
    return true;
}

static gnomon_status parse_members(const header *h, const entry *e, const json_t *root, tensor *t)
{
    const json_t *type = json_object_get(root, "dtype"), *shape = json_object_get(root, "shape"),
                 *places = json_object_get(root, "data_offsets");
    if (!json_is_string(type) || !json_is_array(shape) || json_array_size(places) != 2)
        return bad_entry(h, e, "dtype, shape and data_offsets with two numbers are due");
    GNOMON_FAIL_IF(json_array_size(shape) > DIMENSIONS, h->ctx, GNOMON_ERROR_UNSUPPORTED,
                   GNOMON_ARG("%s") ": tensor '%s' has %zu dimensions; at most %d are read",
                   h->file, e->name, json_array_size(shape), (int)DIMENSIONS);
    t->dimensions = (int)json_array_size(shape);
    for (int i = 0; i < t->dimensions; i++)
        if (!parse_number(json_array_get(shape, (size_t)i), &t->shape[i]))
            return bad_entry(h, e, "a size is no whole number that is not negative");
    if (!parse_number(json_array_get(places, 0), &t->begin) ||
        !parse_number(json_array_get(places, 1), &t->end) || t->end < t->begin)
        return bad_entry(h, e, "data_offsets are no ascending whole numbers");
    while (t->known < TYPES && strcmp(json_string_value(type), types[t->known].name) != 0)
        t->known++;
    return GNOMON_OK;
}

/* The entry's bytes are as many as its type and shape take. */
static gnomon_status check_bytes(const header *h, const entry *e, const tensor *t)
{
    int64_t elements = 1, bits;
    bool fits = true;
    for (int i = 0; i < t->dimensions; i++)
        fits = fits && gnomon_mul(elements, t->shape[i], &elements);
    if (!fits) return bad_entry(h, e, "its shape is more than any file holds");
    if (t->known == TYPES) return GNOMON_OK;
    if (!gnomon_mul(elements, types[t->known].bits, &bits))
        return bad_entry(h, e, "its shape is more than any file holds");
    GNOMON_FAIL_IF(
        bits % 8 != 0 || bits / 8 != t->end - t->begin, h->ctx, GNOMON_ERROR_DATA,
        GNOMON_ARG(
            "%s") ": tensor '%s': %lld elements of %s are not the %lld bytes of its data_offsets",
        h->file, e->name, (long long)elements, types[t->known].name,
        (long long)(t->end - t->begin));
    return GNOMON_OK;
}

static gnomon_status read_entry(const header *h, const entry *e, tensor *t)
{
    json_error_t error;
    *t = (tensor){0};
    bool memory;
    json_t *root =
        gnomon_json_read(e->text, (size_t)e->length, JSON_REJECT_DUPLICATES, &error, &memory);
    if (root == NULL) {
        GNOMON_FAIL_IF(memory, h->ctx, GNOMON_ERROR_MEMORY, "no memory for a tensor's entry");
        return bad_entry(h, e, error.text);
    }
    gnomon_status status = parse_members(h, e, root, t);
    json_decref(root);
    return status == GNOMON_OK ? check_bytes(h, e, t) : status;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const entry *)a)->name, ((const entry *)b)->name);
}

static int by_place(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end) return x->end < y->end ? -1 : 1;
    return by_name(a, b);
}

/* No name twice; in the order of their data. */
static gnomon_status order_entries(header *h)
{
    for (int64_t i = 0; i < h->count; i++) {
        tensor t;
        GNOMON_TRY(read_entry(h, &h->entries[i], &t));
        h->entries[i].begin = t.begin;
        h->entries[i].end = t.end;
    }
    qsort(h->entries, (size_t)h->count, sizeof *h->entries, by_name);
    for (int64_t i = 1; i < h->count; i++)
        if (strcmp(h->entries[i - 1].name, h->entries[i].name) == 0)
            return bad_entry(h, &h->entries[i], "stands there twice");
    qsort(h->entries, (size_t)h->count, sizeof *h->entries, by_place);
    return GNOMON_OK;
}

/* The tensors' bytes follow one another from the first to the last of the file. */
static gnomon_status check_entries(header *h, const gnomon_source *source)
{
    const int64_t size = gnomon_source_size(source), limit = gnomon_source_limit(source);
    int64_t end = 0, last;
    if (h->count > 0) GNOMON_TRY(order_entries(h));
    for (int64_t i = 0; i < h->count; i++) {
        const entry *e = &h->entries[i];
        GNOMON_FAIL_IF(
            e->begin != end, h->ctx, GNOMON_ERROR_DATA,
            GNOMON_ARG(
                "%s") ": tensor '%s': its data begins at byte %lld of the data, where byte %lld "
                      "is due: data must not overlap or leave gaps",
            h->file, e->name, (long long)e->begin, (long long)end);
        end = e->end;
    }
    if (!gnomon_add(end, LENGTH + h->length, &last)) last = INT64_MAX;
    GNOMON_FAIL_IF(last > limit || last == INT64_MAX, h->ctx, GNOMON_ERROR_TRUNCATED,
                   GNOMON_ARG("%s") ": the tensors end at byte %lld, but it has at most %lld bytes",
                   h->file, (long long)last, (long long)limit);
    GNOMON_FAIL_IF(size >= 0 && last != size, h->ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("%s") ": the tensors end at byte %lld, but it has %lld bytes",
                   h->file, (long long)last, (long long)size);
    return GNOMON_OK;
}

static void drop_header(header *h)
{
    gnomon_free(h->ctx, h->text);
    gnomon_free(h->ctx, h->entries);
    h->text = NULL;
    h->entries = NULL;
}

/* The header's text, for which memory is taken as it comes: the length of a pipe is not known. */
static gnomon_status read_text(gnomon_source *source, header *h)
{
    int64_t room = 0;
    for (int64_t got = 0; got < h->length || room == 0;) {
        int64_t wanted = room > 0 ? 2 * room : PIECE;
        if (wanted > h->length + 1) wanted = h->length + 1;
        GNOMON_TRY(gnomon_grow(h->ctx, &h->text, room, wanted, 1, "a safetensors header"));
        room = wanted;
        const int64_t n = (room > h->length ? h->length : room) - got;
        GNOMON_TRY(gnomon_source_exact(source, h->text + got, (size_t)n, "the safetensors header"));
        got += n;
    }
    return GNOMON_OK;
}

/* On failure, too, drop_header is due. */
static gnomon_status read_header(gnomon_source *source, header *h)
{
    unsigned char lead[LENGTH];
    uint64_t length = 0;
    *h = (header){.ctx = gnomon_source_context(source), .file = gnomon_source_name(source)};
    GNOMON_TRY(gnomon_source_exact(source, lead, LENGTH, "the safetensors header's length"));
    for (int i = LENGTH - 1; i >= 0; i--)
        length = length << 8 | lead[i];
    GNOMON_FAIL_IF(
        length > HEADER_MOST, h->ctx, GNOMON_ERROR_DATA,
        GNOMON_ARG(
            "%s") ": the safetensors header says it is %llu bytes long; at most %lld are read",
        h->file, (unsigned long long)length, (long long)HEADER_MOST);
    h->length = (int64_t)length;
    GNOMON_FAIL_IF(
        LENGTH + h->length > gnomon_source_limit(source), h->ctx, GNOMON_ERROR_TRUNCATED,
        GNOMON_ARG(
            "%s") ": the safetensors header ends at byte %lld, but it has at most %lld bytes",
        h->file, (long long)(LENGTH + h->length), (long long)gnomon_source_limit(source));
    GNOMON_TRY(read_text(source, h));
    const char *wrong = first_bad(h->text, (size_t)h->length);
    GNOMON_FAIL_IF(wrong != NULL, h->ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("%s") ": bad safetensors header at byte %lld: it is no UTF-8",
                   h->file, (long long)(LENGTH + (wrong - h->text)));
    GNOMON_TRY(scan(h, false));
    GNOMON_TRY(
        gnomon_alloc(h->ctx, h->count, sizeof *h->entries, "a list of tensors", &h->entries));
    GNOMON_TRY(scan(h, true));
    return check_entries(h, source);
}

/* What kind of tensor can't be points; NULL when it can. */
static const char *unread(const tensor *t)
{
    if (t->known == TYPES) return "its type is unknown";
    if (types[t->known].dtype == 0) return types[t->known].name;
    return NULL;
}

/* Takes a tensor as points: one dimension is one point, more than two are flattened. */
static gnomon_status as_points(gnomon_reader *reader, const header *h, const entry *e,
                               gnomon_array *array)
{
    tensor t;
    int64_t cols = 1;
    GNOMON_TRY(read_entry(h, e, &t));
    GNOMON_FAIL_IF(
        unread(&t) != NULL, h->ctx, GNOMON_ERROR_UNSUPPORTED,
        GNOMON_ARG(
            "%s") ": tensor '%s' is not read: %s; read are F16, BF16, F32, F64, I8 to I64, U8 "
                  "to U64 and BOOL",
        h->file, e->name, unread(&t));
    GNOMON_FAIL_IF(
        t.dimensions == 0, h->ctx, GNOMON_ERROR_DATA,
        GNOMON_ARG(
            "%s") ": tensor '%s' is a single number without dimensions; points have one or two",
        h->file, e->name);
    for (int i = t.dimensions == 1 ? 0 : 1; i < t.dimensions; i++)
        if (!gnomon_mul(cols, t.shape[i], &cols))
            return bad_entry(h, e, "its shape is more than any file holds");
    GNOMON_TRY(gnomon_reader_shape(reader, t.dimensions, t.shape, false));
    *array = (gnomon_array){.source = reader->source,
                            .offset = LENGTH + h->length + t.begin,
                            .rows = t.dimensions == 1 ? 1 : t.shape[0],
                            .cols = cols,
                            .dtype = types[t.known].dtype,
                            .boolean = strcmp(types[t.known].name, "BOOL") == 0,
                            .swapped = gnomon_big_endian()};
    return GNOMON_OK;
}

static void list_names(const header *h, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int64_t i = 0; i < h->count && used + 8 < size; i++) {
        const int n =
            snprintf(text + used, size - used, "%s%s", used > 0 ? ", " : "", h->entries[i].name);
        if (n < 0 || used + (size_t)n + 8 >= size) {
            snprintf(text + used, size - used, "%s...", used > 0 ? ", " : "");
            return;
        }
        used += (size_t)n;
    }
}

/* The one that was asked for; else the only one, else the only one of two dimensions or more. */
static gnomon_status choose(const gnomon_reader *reader, const header *h, int64_t *index)
{
    const char *asked = reader->member;
    char names[400];
    list_names(h, names, sizeof names);
    GNOMON_FAIL_IF(h->count == 0, h->ctx, GNOMON_ERROR_DATA, GNOMON_ARG("%s") ": holds no tensors",
                   reader->path);
    if (asked[0] != '\0') {
        for (*index = 0; *index < h->count; (*index)++)
            if (strcmp(h->entries[*index].name, asked) == 0) return GNOMON_OK;
        return gnomon_fail(h->ctx, GNOMON_ERROR_DATA,
                           GNOMON_ARG("%s") ": has no tensor '%s'; it has %s", reader->path, asked,
                           names);
    }
    int64_t points = 0;
    *index = 0;
    for (int64_t i = 0; i < h->count && h->count > 1 && points < 2; i++) {
        tensor t;
        GNOMON_TRY(read_entry(h, &h->entries[i], &t));
        if (t.dimensions < 2 || unread(&t) != NULL) continue;
        points++;
        *index = i;
    }
    GNOMON_FAIL_IF(
        h->count > 1 && points != 1, h->ctx, GNOMON_ERROR_ARGUMENT,
        GNOMON_ARG("%s") ": has several tensors; name one as %s:TENSOR, TENSOR being one of %s",
        reader->path, reader->path, names);
    return GNOMON_OK;
}

typedef struct safetensors_state {
    gnomon_array array; /* first: the array's own functions take the state for it */
    char *name;
} safetensors_state;

static gnomon_status open_tensor(gnomon_reader *reader, safetensors_state *state, const header *h)
{
    int64_t index;
    GNOMON_TRY(choose(reader, h, &index));
    GNOMON_TRY(gnomon_copy_text(h->ctx, h->entries[index].name, &state->name));
    GNOMON_TRY(as_points(reader, h, &h->entries[index], &state->array));
    reader->info.member = state->name;
    return gnomon_array_start(reader, &state->array);
}

static gnomon_status safetensors_open(gnomon_reader *reader)
{
    safetensors_state *state = NULL;
    header h;
    GNOMON_TRY(gnomon_alloc_zero(reader->ctx, 1, sizeof *state, "a reader", &state));
    reader->state = state;
    gnomon_status status = read_header(reader->source, &h);
    if (status == GNOMON_OK) status = open_tensor(reader, state, &h);
    drop_header(&h);
    return status;
}

static void safetensors_close(gnomon_reader *reader)
{
    safetensors_state *state = reader->state;
    if (state != NULL) gnomon_free(reader->ctx, state->name);
    gnomon_array_close(reader);
}

static gnomon_status safetensors_members(gnomon_reader *reader, gnomon_member_fn fn, void *user)
{
    header h;
    gnomon_status status = read_header(reader->source, &h);
    for (int64_t i = 0; i < h.count && status == GNOMON_OK; i++) {
        tensor t;
        status = read_entry(&h, &h.entries[i], &t);
        if (status == GNOMON_OK && t.dimensions > 0 && unread(&t) == NULL)
            fn(user, h.entries[i].name);
    }
    drop_header(&h);
    return status;
}

/* Each as of a reader that was opened for it. */
static gnomon_status safetensors_describe(gnomon_reader *reader, gnomon_describe_fn fn, void *user)
{
    header h;
    gnomon_status status = read_header(reader->source, &h);
    for (int64_t i = 0; i < h.count && status == GNOMON_OK; i++) {
        gnomon_reader one = *reader;
        gnomon_array array = {0};
        one.info = (gnomon_data_info){.struct_size = sizeof one.info,
                                      .nonzeros = -1,
                                      .format = reader->format->name,
                                      .member = h.entries[i].name};
        status = as_points(&one, &h, &h.entries[i], &array);
        if (status == GNOMON_OK) status = gnomon_array_start(&one, &array);
        gnomon_array_stop(reader->ctx, &array);
        if (status == GNOMON_ERROR_MEMORY || status == GNOMON_ERROR_IO) break;
        fn(user, h.entries[i].name, status == GNOMON_OK ? &one.info : NULL);
        status = GNOMON_OK;
    }
    drop_header(&h);
    return status;
}

/* A header of a believable length that begins as one does. */
static int safetensors_sniff(const unsigned char *head, size_t length, int64_t size)
{
    uint64_t bytes = 0;
    if (length < LENGTH + 2) return GNOMON_SNIFF_NO;
    for (int i = LENGTH - 1; i >= 0; i--)
        bytes = bytes << 8 | head[i];
    if (bytes < 2 || bytes > HEADER_MOST || (size >= 0 && (int64_t)bytes > size - LENGTH) ||
        head[LENGTH] != '{')
        return GNOMON_SNIFF_NO;
    size_t seen = length - LENGTH;
    if (seen > bytes) seen = (size_t)bytes;
    if (memmem(head + LENGTH, seen, "\"dtype\"", 7) != NULL ||
        memmem(head + LENGTH, seen, "\"" METADATA "\"", 14) != NULL)
        return GNOMON_SNIFF_YES;
    return GNOMON_SNIFF_NO;
}

/* The header of one tensor, with room for any number of points, so that the same points give the
 * same bytes whether their number was told or not. To be given to gnomon_free. */
static gnomon_status make_header(const gnomon_writer *writer, int64_t rows, char **out,
                                 size_t *size)
{
    gnomon_context *ctx = writer->ctx;
    const char *name = writer->member[0] != '\0' ? writer->member : "data";
    enum { LONGEST = 256 }; /* of everything but the name */
    int known = 0;
    GNOMON_FAIL_IF(first_bad(name, strlen(name)) != NULL || strcmp(name, METADATA) == 0, ctx,
                   GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("%s") ": a tensor's name must be UTF-8 and not " METADATA,
                   writer->path);
    while (types[known].dtype != writer->dtype)
        known++;
    int64_t bytes;
    GNOMON_FAIL_IF(!gnomon_mul(rows, writer->cols, &bytes) ||
                       !gnomon_mul(bytes, types[known].bits / 8, &bytes),
                   ctx, GNOMON_ERROR_OVERFLOW,
                   GNOMON_ARG("%s") ": %lld x %lld elements are too many bytes", writer->path,
                   (long long)rows, (long long)writer->cols);
    json_t *value = json_string(name);
    char *quoted = value != NULL ? gnomon_json_text(value, JSON_ENCODE_ANY) : NULL;
    json_decref(value);
    GNOMON_FAIL_IF(quoted == NULL, ctx, GNOMON_ERROR_MEMORY, "no memory for a tensor's name");
    *size = (LENGTH + strlen(quoted) + LONGEST - 1) / UNIT * UNIT;
    gnomon_status status = gnomon_alloc(ctx, (int64_t)*size + 1, 1, "a header", out);
    if (status == GNOMON_OK) {
        memset(*out, ' ', *size);
        const int n = snprintf(*out + LENGTH, *size - LENGTH,
                               "{%s:{\"dtype\":\"%s\",\"shape\":[%lld,%lld],\"data_offsets\":[0,"
                               "%lld]}}",
                               quoted, types[known].name, (long long)rows, (long long)writer->cols,
                               (long long)bytes);
        (*out)[LENGTH + n] = ' ';
        for (int i = 0; i < LENGTH; i++)
            (*out)[i] = (char)((*size - LENGTH) >> (8 * i) & 255);
    }
    free(quoted);
    return status;
}

static bool safetensors_revisits(const gnomon_writer *writer)
{
    return writer->rows < 0;
}

static gnomon_status safetensors_create(gnomon_writer *writer)
{
    char *text = NULL;
    size_t size;
    GNOMON_TRY(make_header(writer, writer->rows < 0 ? 0 : writer->rows, &text, &size));
    gnomon_status status = gnomon_sink_write(writer->sink, text, size);
    gnomon_free(writer->ctx, text);
    GNOMON_TRY(status);
    return gnomon_array_create(writer, gnomon_big_endian(), false);
}

static gnomon_status safetensors_complete(gnomon_writer *writer)
{
    char *text = NULL;
    size_t size;
    if (writer->rows >= 0) return GNOMON_OK;
    GNOMON_TRY(make_header(writer, writer->written, &text, &size));
    gnomon_status status = gnomon_sink_write_at(writer->sink, 0, text, size);
    gnomon_free(writer->ctx, text);
    return status;
}

const gnomon_format gnomon_format_safetensors = {
    .name = "safetensors",
    .about = "tensors of a neural network's weights",
    .endings = ".safetensors",
    .member = "TENSOR",
    .holds = GNOMON_HOLDS_DENSE | GNOMON_HOLDS_TENSOR,
    .writes = (2u << GNOMON_U64) - 2u, /* every type */
    .sniff = safetensors_sniff,
    .open = safetensors_open,
    .next = gnomon_array_next,
    .seek = gnomon_array_seek,
    .block = gnomon_array_block,
    .close = safetensors_close,
    .members = safetensors_members,
    .describe = safetensors_describe,
    .revisits = safetensors_revisits,
    .create = safetensors_create,
    .put = gnomon_array_put,
    .complete = safetensors_complete,
    .discard = gnomon_array_discard,
};

/* Repeated parts of documents: against a list of parts that is searched from its beginning; any
 * memory, threads and division into calls; JSON; arguments; each allocation refused in turn. */
#include "refusal.h"

#include <gnomon/dedup.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { DOCUMENTS = 400, LONGEST = 2000, PARTS = 40000 };

static char text[DOCUMENTS * LONGEST];
static int64_t begins[DOCUMENTS], ends[DOCUMENTS];
static uint64_t state = 7;

static int below(int n)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (int)((state >> 33) % (uint64_t)n);
}

static void make(void)
{
    static const char *const lines[] = {
        "", " \t", "home", "a line that is longer than others", "\xc3\xa4 line", "home ", "x"};
    static const char *const line_ends[] = {"\n", "\n", "\r\n", "\n\n"};
    int64_t at = 0;
    state = 7;
    for (int i = 0; i < DOCUMENTS; i++) {
        begins[i] = at;
        for (int l = below(14); l > 0; l--) {
            at += below(3) > 0 ? sprintf(text + at, "%s", lines[below(7)])
                               : sprintf(text + at, "line %d of few", below(500));
            if (l > 1 || below(2) == 0) at += sprintf(text + at, "%s", line_ends[below(4)]);
        }
        ends[i] = at;
    }
}

static gnomon_documents documents_of(int64_t from, int64_t to)
{
    return (gnomon_documents){.struct_size = sizeof(gnomon_documents),
                              .count = to - from,
                              .text = text,
                              .begins = begins + from,
                              .ends = ends + from};
}

/* ---- the reference ---- */

typedef struct known {
    const char *text;
    int64_t bytes;
} known;

typedef struct reference {
    known parts[PARTS];
    int64_t count, seen, removed, removed_bytes;
} reference;

static bool blank(const char *at, int64_t bytes)
{
    int64_t spaces = 0;
    for (int64_t i = 0; i < bytes; i++)
        spaces += strchr(" \t\n\v\f\r", at[i]) != NULL;
    return spaces == bytes;
}

/* The first of them stays. */
static bool repeats(reference *r, const char *at, int64_t bytes, int64_t least)
{
    if (bytes < least || bytes == 0) return false;
    r->seen++;
    for (int64_t k = 0; k < r->count; k++) {
        if (r->parts[k].bytes == bytes && memcmp(r->parts[k].text, at, (size_t)bytes) == 0) {
            r->removed++;
            r->removed_bytes += bytes;
            return true;
        }
    }
    assert_true(r->count < PARTS);
    r->parts[r->count++] = (known){at, bytes};
    return false;
}

/* What is left of a document, in out; -1: nothing. */
static int64_t reduce(reference *r, int64_t i, int part, int64_t least, char *out)
{
    struct {
        int64_t begin, end, next;
    } lines[LONGEST];
    int64_t count = 0, made = 0, from = begins[i];
    const int64_t removed = r->removed;
    while (from < ends[i]) {
        int64_t next = from;
        while (next < ends[i] && text[next] != '\n')
            next++;
        int64_t end = next;
        if (next < ends[i]) {
            if (end > from && text[end - 1] == '\r') end--;
            next++;
        }
        lines[count].begin = from;
        lines[count].end = end;
        lines[count++].next = next;
        from = next;
    }
    for (int64_t l = 0; l < count;) {
        int64_t last = l, next = l + 1;
        const bool empty = blank(text + lines[l].begin, lines[l].end - lines[l].begin);
        if (part == GNOMON_PART_PARAGRAPH && !empty) {
            while (next < count &&
                   !blank(text + lines[next].begin, lines[next].end - lines[next].begin))
                last = next++;
            while (next < count &&
                   blank(text + lines[next].begin, lines[next].end - lines[next].begin))
                next++;
        }
        const int64_t bytes = empty ? 0 : lines[last].end - lines[l].begin;
        if (!repeats(r, text + lines[l].begin, bytes, least)) {
            const int64_t all = lines[next - 1].next - lines[l].begin;
            memcpy(out + made, text + lines[l].begin, (size_t)all);
            made += all;
        }
        l = next;
    }
    return r->removed > removed && blank(out, made) ? -1 : made;
}

/* ---- the comparison ---- */

static void compare(const gnomon_parts_options *o, int64_t limit, int threads, int64_t step)
{
    static char want[LONGEST];
    static reference r;
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context *ctx;
    gnomon_parts *p;
    gnomon_parts_result result = {.struct_size = sizeof result};
    int64_t kept = 0, changed = 0;
    options.memory_limit = limit;
    options.threads = threads;
    assert_int_equal(gnomon_context_create(&options, &ctx), GNOMON_OK);
    assert_int_equal(gnomon_parts_create(ctx, o, &p), GNOMON_OK);
    for (int64_t i = 0; i < DOCUMENTS; i += step) {
        static const char *const names[DOCUMENTS]; /* not used */
        gnomon_documents some = documents_of(i, i + step < DOCUMENTS ? i + step : DOCUMENTS);
        if (i % 2 == 1) some.names = names;
        assert_int_equal(gnomon_parts_add(p, &some), GNOMON_OK);
    }
    assert_int_equal(gnomon_parts_run(p, &result), GNOMON_OK);
    r.count = r.seen = r.removed = r.removed_bytes = 0;
    for (int64_t i = 0; i < DOCUMENTS; i++) {
        const char *got;
        int64_t bytes;
        const int64_t wanted = reduce(&r, i, o->part, o->min_bytes, want);
        assert_int_equal(gnomon_parts_left(p, i, &got, &bytes), GNOMON_OK);
        assert_int_equal(got == NULL, wanted < 0);
        if (wanted < 0) continue;
        assert_int_equal(bytes, wanted);
        assert_memory_equal(got, want, (size_t)wanted);
        kept++;
        changed += wanted < ends[i] - begins[i];
    }
    assert_int_equal(result.documents, DOCUMENTS);
    assert_int_equal(result.text_bytes, ends[DOCUMENTS - 1]);
    assert_int_equal(result.kept, kept);
    assert_int_equal(result.changed, changed);
    assert_int_equal(result.parts, r.seen);
    assert_int_equal(result.distinct, r.count);
    assert_int_equal(result.removed, r.removed);
    assert_int_equal(result.removed_bytes, r.removed_bytes);
    assert_true(result.removed > 100 && result.kept < DOCUMENTS && result.changed > 10);
    gnomon_parts_destroy(p);
    gnomon_context_destroy(ctx);
}

static void as_the_reference(void **unused)
{
    (void)unused;
    make();
    for (int part = GNOMON_PART_LINE; part <= GNOMON_PART_PARAGRAPH; part++) {
        for (int64_t least = 1; least < 12; least += 5) {
            gnomon_parts_options o = GNOMON_PARTS_OPTIONS_INIT;
            o.part = part;
            o.min_bytes = least;
            o.work = ".";
            compare(&o, 0, 1, DOCUMENTS);
            compare(&o, 1 << 16, 3, 7); /* in files */
        }
    }
}

static void json(void **unused)
{
    (void)unused;
    static const char lines[] =
        "\xef\xbb\xbf{\"n\":1e-5,\"t\\u0065xt\":\"Home\\nabout \\\"cats\\\"\\u000aend\", \"a\": "
        "[\"}\"]}\n"
        "{\"text\": \"no\", \"text\":\"Home\\nabout dogs\",\"x\":{\"text\":\"Home\"}}\n"
        "{\"text\":\"Home\"}\n";
    static const char wanted[] =
        "\xef\xbb\xbf{\"n\":1e-5,\"t\\u0065xt\":\"Home\\nabout \\\"cats\\\"\\u000aend\", \"a\": "
        "[\"}\"]}\n"
        "{\"text\": \"no\", \"text\":\"about dogs\",\"x\":{\"text\":\"Home\"}}\n";
    static const char texts[] = "Home\nabout \"cats\"\nendHome\nabout dogsHome";
    const int64_t text_ends[] = {21, 36, 40};
    char both[sizeof lines + sizeof texts], got[sizeof wanted];
    int64_t from[3], to[3], raw_from[3], raw_to[3];
    const char *at = lines;
    memcpy(both, lines, sizeof lines);
    memcpy(both + sizeof lines, texts, sizeof texts);
    for (int i = 0; i < 3; i++) {
        from[i] = (int64_t)sizeof lines + (i > 0 ? text_ends[i - 1] : 0);
        to[i] = (int64_t)sizeof lines + text_ends[i];
        raw_from[i] = at - lines;
        at = strchr(at, '\n') + 1;
        raw_to[i] = at - lines;
    }
    const gnomon_documents all = {sizeof all, 3, both, from, to, raw_from, raw_to, NULL};
    gnomon_parts_options o = GNOMON_PARTS_OPTIONS_INIT;
    gnomon_context *ctx;
    gnomon_parts *p;
    o.field = "text";
    assert_int_equal(gnomon_context_create(NULL, &ctx), GNOMON_OK);
    assert_int_equal(gnomon_parts_create(ctx, &o, &p), GNOMON_OK);
    assert_int_equal(gnomon_parts_add(p, &all), GNOMON_OK);
    assert_int_equal(gnomon_parts_write(p, "test_parts.out"), GNOMON_ERROR_ARGUMENT);
    assert_int_equal(gnomon_parts_run(p, NULL), GNOMON_OK);
    assert_int_equal(gnomon_parts_run(p, NULL), GNOMON_ERROR_ARGUMENT);
    assert_int_equal(gnomon_parts_write(p, "test_parts.out"), GNOMON_OK);
    FILE *file = fopen("test_parts.out", "rb");
    assert_non_null(file);
    assert_int_equal(fread(got, 1, sizeof got, file), sizeof wanted - 1);
    fclose(file);
    remove("test_parts.out");
    assert_memory_equal(got, wanted, sizeof wanted - 1);
    gnomon_parts_destroy(p);
    /* texts that the raw bytes don't hold: another of as many bytes, a shorter one */
    both[from[2]] = 'h';
    assert_int_equal(gnomon_parts_create(ctx, &o, &p), GNOMON_OK);
    assert_int_equal(gnomon_parts_add(p, &all), GNOMON_ERROR_ARGUMENT);
    assert_non_null(strstr(gnomon_last_error(ctx), "raw bytes of document 2 are no JSON object"));
    gnomon_parts_destroy(p);
    both[from[2]] = 'H';
    to[2]--;
    assert_int_equal(gnomon_parts_create(ctx, &o, &p), GNOMON_OK);
    assert_int_equal(gnomon_parts_add(p, &all), GNOMON_ERROR_ARGUMENT);
    assert_int_equal(gnomon_parts_run(p, NULL), GNOMON_ERROR_ARGUMENT);
    gnomon_parts_destroy(p);
    o.field = NULL;
    assert_int_equal(gnomon_parts_create(ctx, &o, &p), GNOMON_OK);
    assert_int_equal(gnomon_parts_add(p, &all), GNOMON_ERROR_ARGUMENT);
    gnomon_parts_destroy(p);
    o.part = 3;
    assert_int_equal(gnomon_parts_create(ctx, &o, &p), GNOMON_ERROR_ARGUMENT);
    assert_null(p);
    o.part = GNOMON_PART_LINE;
    o.min_bytes = 0;
    assert_int_equal(gnomon_parts_create(ctx, &o, &p), GNOMON_ERROR_ARGUMENT);
    gnomon_context_destroy(ctx);
}

/* A text that isn't UTF-8 is told by its document's number, short and blank parts too. */
static void not_utf8(void **unused)
{
    (void)unused;
    static const char texts[] = "a line\nanother\n\nx\xff";
    const int64_t from[] = {0, 16}, to[] = {16, 18};
    const gnomon_documents all = {
        .struct_size = sizeof all, .count = 2, .text = texts, .begins = from, .ends = to};
    gnomon_parts_options o = GNOMON_PARTS_OPTIONS_INIT;
    gnomon_context *ctx;
    assert_int_equal(gnomon_context_create(NULL, &ctx), GNOMON_OK);
    for (o.min_bytes = 1; o.min_bytes < 4; o.min_bytes++) {
        gnomon_parts *p;
        assert_int_equal(gnomon_parts_create(ctx, &o, &p), GNOMON_OK);
        assert_int_equal(gnomon_parts_add(p, &all), GNOMON_ERROR_DATA);
        assert_string_equal(gnomon_last_error(ctx), "documents: document 1 is not UTF-8");
        gnomon_parts_destroy(p);
    }
    gnomon_context_destroy(ctx);
}

static void each_allocation_fails(void **unused)
{
    (void)unused;
    enum { SOME = 40 };
    make();
    const gnomon_documents some = documents_of(0, SOME);
    bool done = false;
    for (long at = 0; !done; at++) {
        refusal r = {.at = -1};
        const gnomon_allocator allocator = {&r, refusing, releasing};
        gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
        gnomon_context *ctx;
        gnomon_parts *p = NULL;
        const char *left;
        int64_t bytes;
        options.threads = 1;
        options.allocator = &allocator;
        assert_int_equal(gnomon_context_create(&options, &ctx), GNOMON_OK);
        const long out = r.out;
        r.calls = 0;
        r.at = at;
        gnomon_status status = gnomon_parts_create(ctx, NULL, &p);
        if (status == GNOMON_OK) status = gnomon_parts_add(p, &some);
        if (status == GNOMON_OK) status = gnomon_parts_run(p, NULL);
        for (int64_t i = 0; i < SOME && status == GNOMON_OK; i++)
            status = gnomon_parts_left(p, i, &left, &bytes);
        done = r.calls <= at;
        assert_int_equal(status, done ? GNOMON_OK : GNOMON_ERROR_MEMORY);
        gnomon_parts_destroy(p);
        r.at = -1;
        assert_int_equal(r.out, out);
        gnomon_context_destroy(ctx);
        assert_true(at < 10000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_the_reference),
        cmocka_unit_test(json),
        cmocka_unit_test(not_utf8),
        cmocka_unit_test(each_allocation_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Documents to deduplicate: lines and JSON lines, compressed or not. The first byte says which, and
 * how they count. */
#include "fuzz_io.h"

#include <gnomon/dedup.h>

static void count_bad(void *user, const char *file, int64_t line, const char *why)
{
    CHECK(file != NULL && line >= 0 && why[0] != '\0');
    ++*(int64_t *)user;
}

/* Every document is one of those that a text without them would have, and stands in its line. */
static void check_batch(const gnomon_documents *d, const char *const *names)
{
    for (int64_t i = 0; i < d->count; i++) {
        CHECK(d->begins[i] >= 0 && d->begins[i] < d->ends[i]);
        CHECK(d->raw_begins[i] >= 0 && d->raw_begins[i] < d->raw_ends[i]);
        CHECK(d->text[d->raw_ends[i] - 1] == '\n');
        CHECK(names[i] != NULL);
    }
}

static gnomon_status read_all(gnomon_context *ctx, const char *path, uint8_t how, gnomon_dedup *d,
                              gnomon_parts *parts, int64_t *count)
{
    gnomon_corpus_options o = GNOMON_CORPUS_OPTIONS_INIT;
    gnomon_corpus *corpus;
    gnomon_documents batch = {.struct_size = sizeof batch};
    const char *const *names;
    int64_t bad = 0;
    o.kind = how & 1 ? GNOMON_CORPUS_JSON : GNOMON_CORPUS_LINES;
    o.id = how & 2 ? "id" : NULL;
    o.names = 1;
    o.max_bytes = 5000;
    if (how & 4) {
        o.bad = count_bad;
        o.user = &bad;
    }
    gnomon_status status = gnomon_corpus_open(ctx, path, &o, &corpus);
    CHECK((status == GNOMON_OK) == (corpus != NULL));
    while (status == GNOMON_OK) {
        status = gnomon_corpus_next(corpus, &batch, &names);
        if (status != GNOMON_OK || batch.count == 0) break;
        check_batch(&batch, names);
        *count += batch.count;
        status = gnomon_dedup_add(d, &batch);
        if (status == GNOMON_OK) status = gnomon_parts_add(parts, &batch);
    }
    gnomon_corpus_close(corpus);
    return status;
}

/* Of a document is left what it was, or less. */
static void check_parts(gnomon_parts *parts, int64_t count)
{
    gnomon_parts_result r = {.struct_size = sizeof r};
    int64_t left = 0;
    CHECK(gnomon_parts_run(parts, &r) == GNOMON_OK);
    CHECK(r.documents == count && r.kept <= count && r.removed + r.distinct == r.parts);
    for (int64_t i = 0; i < count; i++) {
        const char *text;
        int64_t bytes;
        CHECK(gnomon_parts_left(parts, i, &text, &bytes) == GNOMON_OK);
        CHECK(text == NULL || bytes > 0);
        left += text != NULL;
    }
    CHECK(left == r.kept);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) return 0;
    fuzz_memory memory = {0, (128u << 20) + 2000 * size};
    gnomon_allocator allocator = {&memory, fuzz_allocate, fuzz_release};
    gnomon_context_options context = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_dedup_options o = GNOMON_DEDUP_OPTIONS_INIT;
    gnomon_context *ctx;
    gnomon_parts_options part = GNOMON_PARTS_OPTIONS_INIT;
    gnomon_dedup *d;
    gnomon_parts *parts;
    char path[64];
    int64_t count = 0;
    context.allocator = &allocator;
    context.threads = 1;
    context.device = "cpu";
    context.memory_limit = 16 << 20;
    CHECK(gnomon_context_create(&context, &ctx) == GNOMON_OK);
    o.ngram = 2;
    o.characters = data[0] >> 3 & 1;
    o.lower = data[0] >> 4 & 1;
    if (gnomon_unicode_version() != NULL) {
        o.lower *= 2;
        o.punctuation = data[0] >> 5 & 1 ? GNOMON_PUNCTUATION_DROP_ALL : GNOMON_PUNCTUATION_DROP;
        o.normalize = data[0] >> 6 & 1 ? GNOMON_NORMAL_NFKC : GNOMON_NORMAL_NONE;
    }
    o.weighted = size & 1;
    o.containment = size >> 1 & 1;
    part.part = data[0] >> 7 ? GNOMON_PART_PARAGRAPH : GNOMON_PART_LINE;
    part.field = data[0] & 1 ? "text" : NULL;
    CHECK(gnomon_dedup_create(ctx, &o, &d) == GNOMON_OK);
    CHECK(gnomon_parts_create(ctx, &part, &parts) == GNOMON_OK);
    const int fd = fuzz_file(data + 1, size - 1, path);
    gnomon_status status = read_all(ctx, path, data[0], d, parts, &count);
    CHECK(status != GNOMON_ERROR_INTERNAL && status != GNOMON_ERROR_MEMORY);
    if (status == GNOMON_OK) {
        gnomon_dedup_result result = {.struct_size = sizeof result};
        CHECK(gnomon_dedup_run(d, &result) == GNOMON_OK);
        CHECK(result.documents == count && result.kept <= count);
        const int64_t *kept = gnomon_dedup_representatives(d);
        for (int64_t i = 0; i < count; i++)
            CHECK(kept[i] >= 0 && kept[i] <= i && kept[kept[i]] == kept[i]);
        check_parts(parts, count);
    }
    gnomon_dedup_destroy(d);
    gnomon_parts_destroy(parts);
    close(fd);
    gnomon_context_destroy(ctx);
    CHECK(memory.held == 0);
    return 0;
}

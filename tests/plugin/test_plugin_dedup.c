/* Sets that a device makes: the result is the CPU's, byte for byte, whatever part of the texts is
 * the device's. */
#include <gnomon/dedup.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TEXTS = 600, LENGTH = 200000 };

/* Documents with gaps between them. */
typedef struct corpus {
    char *text;
    int64_t bytes, count, begins[TEXTS], ends[TEXTS], raw_begins[TEXTS], raw_ends[TEXTS];
    char names[TEXTS][16];
    const char *name_list[TEXTS];
} corpus;

static uint64_t random_below(uint64_t *state, uint64_t most)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*state >> 33) % most;
}

static void add_words(corpus *c, uint64_t *state, int64_t words)
{
    static const char *const some[] = {"one", "Two", "three-four",   "é",
                                       "ﬁne", "x,y", "longer words", "\t"};
    for (int64_t w = 0; w < words; w++) {
        const uint64_t r = random_below(state, 40);
        if (r < 8)
            c->bytes += sprintf(c->text + c->bytes, "%s ", some[r]);
        else
            c->bytes += sprintf(c->text + c->bytes, "w%d ", (int)random_below(state, 90));
    }
}

static void make(corpus *c, uint64_t seed)
{
    uint64_t state = seed;
    memset(c, 0, sizeof *c);
    c->text = calloc(1, (size_t)TEXTS * LENGTH / 50);
    assert_non_null(c->text);
    for (int64_t i = 0; i < TEXTS; i++) {
        c->raw_begins[i] = c->bytes;
        if (i % 50 == 7) c->bytes++; /* a gap: of raw bytes too */
        c->begins[i] = c->bytes;
        if (i % 9 == 8) {
            const int64_t from = (int64_t)random_below(&state, (uint64_t)i);
            const int64_t bytes = c->ends[from] - c->begins[from];
            memcpy(c->text + c->bytes, c->text + c->begins[from], (size_t)bytes);
            c->bytes += bytes;
            if (i % 2 == 0) add_words(c, &state, 1);
        } else if (i % 150 == 40) {
            add_words(c, &state, 15000); /* more than the device takes */
        } else {
            add_words(c, &state, (int64_t)random_below(&state, 60));
        }
        c->ends[i] = c->bytes;
        if (i % 3 == 0) c->text[c->bytes++] = '\n';
        c->raw_ends[i] = c->bytes;
        sprintf(c->names[i], "n%d", (int)(i * 7 % 601));
        c->name_list[i] = c->names[i];
    }
    c->count = TEXTS;
}

static int64_t memory_limit; /* of contexts; 0: the default */

static gnomon_context *context(const char *device)
{
    gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context *ctx;
    o.device = device;
    o.threads = 2;
    if (memory_limit > 0) o.memory_limit = memory_limit;
    assert_int_equal(gnomon_context_create(&o, &ctx), GNOMON_OK);
    return ctx;
}

static gnomon_documents part_of(const corpus *c, int64_t first, int64_t count)
{
    return (gnomon_documents){sizeof(gnomon_documents),
                              count,
                              c->text,
                              c->begins + first,
                              c->ends + first,
                              c->raw_begins + first,
                              c->raw_ends + first,
                              c->name_list + first};
}

static gnomon_status add(gnomon_dedup *d, const corpus *c, int64_t each)
{
    gnomon_status status = GNOMON_OK;
    for (int64_t at = 0; at < c->count && status == GNOMON_OK; at += each) {
        const gnomon_documents part = part_of(c, at, c->count - at < each ? c->count - at : each);
        status = gnomon_dedup_add(d, &part);
    }
    return status;
}

typedef struct found {
    gnomon_dedup_result result;
    char *kept, *sets;
    int64_t kept_bytes, set_bytes, pair_count;
    gnomon_dedup_pair *pairs;
    int64_t representatives[TEXTS];
} found;

static char *read_file(const char *path, int64_t *bytes)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    *bytes = ftell(file);
    rewind(file);
    char *data = malloc((size_t)*bytes + 1);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, (size_t)*bytes, file), *bytes);
    fclose(file);
    remove(path);
    return data;
}

static void find(const char *device, const corpus *c, gnomon_dedup_options o, int64_t each,
                 found *out)
{
    static const char kept[] = "test_plugin_dedup.kept", sets[] = "test_plugin_dedup.sig";
    gnomon_context *ctx = context(device);
    gnomon_dedup *d;
    memset(out, 0, sizeof *out);
    out->result.struct_size = sizeof out->result;
    assert_int_equal(gnomon_dedup_create(ctx, &o, &d), GNOMON_OK);
    assert_int_equal(add(d, c, each), GNOMON_OK);
    assert_int_equal(gnomon_dedup_sign(d, NULL, sets), GNOMON_OK);
    assert_int_equal(gnomon_dedup_run(d, &out->result), GNOMON_OK);
    assert_int_equal(gnomon_dedup_write(d, kept), GNOMON_OK);
    assert_string_equal(gnomon_context_device_kind(ctx), strcmp(device, "cpu") == 0 ? "" : "cuda");
    const gnomon_dedup_pair *pairs = gnomon_dedup_pairs(d, &out->pair_count);
    out->pairs = malloc((size_t)(out->pair_count + 1) * sizeof *out->pairs);
    assert_non_null(out->pairs);
    if (out->pair_count > 0)
        memcpy(out->pairs, pairs, (size_t)out->pair_count * sizeof *out->pairs);
    memcpy(out->representatives, gnomon_dedup_representatives(d), sizeof out->representatives);
    out->kept = read_file(kept, &out->kept_bytes);
    out->sets = read_file(sets, &out->set_bytes);
    gnomon_dedup_destroy(d);
    gnomon_context_destroy(ctx);
}

static void let_go(found *f)
{
    free(f->kept);
    free(f->sets);
    free(f->pairs);
}

static void same(const corpus *c, gnomon_dedup_options o)
{
    found cpu, device;
    find("cpu", c, o, TEXTS, &cpu);
    for (int64_t each = 1; each <= TEXTS; each = each * 13 + 11) {
        find("cuda", c, o, each, &device);
        assert_int_equal(device.set_bytes, cpu.set_bytes);
        assert_memory_equal(device.sets, cpu.sets, (size_t)cpu.set_bytes);
        assert_int_equal(device.pair_count, cpu.pair_count);
        assert_memory_equal(device.pairs, cpu.pairs, (size_t)cpu.pair_count * sizeof *cpu.pairs);
        assert_memory_equal(device.representatives, cpu.representatives,
                            sizeof cpu.representatives);
        assert_int_equal(device.kept_bytes, cpu.kept_bytes);
        assert_memory_equal(device.kept, cpu.kept, (size_t)cpu.kept_bytes);
        assert_int_equal(device.result.text_bytes, cpu.result.text_bytes);
        assert_int_equal(device.result.ngrams, cpu.result.ngrams);
        let_go(&device);
    }
    assert_true(cpu.pair_count > 20);
    let_go(&cpu);
}

static void the_result_is_the_same(void **state)
{
    static const int64_t lengths[] = {1, 3, 64};
    (void)state;
    corpus c;
    make(&c, 1);
    for (int k = 0; k < 3; k++)
        for (int characters = 0; characters < 2; characters++) {
            gnomon_dedup_options o = GNOMON_DEDUP_OPTIONS_INIT;
            o.keep_raw = 1;
            o.ngram = lengths[k];
            o.characters = characters;
            o.similarity = 0.6;
            o.lower = k == 1;
            o.punctuation = k == 2 ? GNOMON_PUNCTUATION_KEEP : GNOMON_PUNCTUATION_DROP;
            same(&c, o);
        }
    free(c.text);
}

/* So many functions that the device makes the keys of all bands, or of some at a time. */
static void keys_are_the_same(void **state)
{
    static const int64_t limits[] = {0, 4 << 20};
    (void)state;
    corpus c;
    gnomon_dedup_options o = GNOMON_DEDUP_OPTIONS_INIT;
    make(&c, 4);
    o.keep_raw = 1;
    o.ngram = 2;
    o.similarity = 0.5;
    o.bands = 301;
    o.rows = 3;
    for (int k = 0; k < 2; k++) {
        memory_limit = limits[k];
        same(&c, o);
    }
    memory_limit = 0;
    /* it was the device */
    gnomon_context *ctx = context("cuda");
    gnomon_dedup *d;
    o.rows = 61;
    assert_int_equal(gnomon_dedup_create(ctx, &o, &d), GNOMON_OK);
    assert_int_equal(add(d, &c, TEXTS), GNOMON_OK);
    assert_int_equal(gnomon_dedup_run(d, NULL), GNOMON_ERROR_MEMORY);
    assert_non_null(strstr(gnomon_last_error(ctx), "61 rows"));
    gnomon_dedup_destroy(d);
    gnomon_context_destroy(ctx);
    free(c.text);
}

/* Those that are normalised are the CPU's. */
static void unicode_is_the_same(void **state)
{
    (void)state;
    corpus c;
    gnomon_dedup_options o = GNOMON_DEDUP_OPTIONS_INIT;
    if (gnomon_unicode_version() == NULL) skip();
    make(&c, 2);
    o.keep_raw = 1;
    o.normalize = GNOMON_NORMAL_NFKC;
    o.lower = GNOMON_LOWER_FOLD;
    o.punctuation = GNOMON_PUNCTUATION_DROP_ALL;
    same(&c, o);
    free(c.text);
}

/* The files of a checkpoint have what was added, and another device goes on with them. */
static void a_checkpoint_goes_on(void **state)
{
    static const char file[] = "test_plugin_dedup.state";
    static const char *const devices[] = {"cuda", "cpu", "cuda"};
    (void)state;
    corpus c;
    found cpu;
    gnomon_dedup_options o = GNOMON_DEDUP_OPTIONS_INIT;
    make(&c, 3);
    o.keep_raw = 1;
    find("cpu", &c, o, TEXTS, &cpu);
    o.checkpoint = file;
    for (int step = 0; step < 3; step++) {
        gnomon_context *ctx = context(devices[step]);
        gnomon_dedup *d;
        assert_int_equal(gnomon_dedup_create(ctx, &o, &d), GNOMON_OK);
        assert_int_equal(gnomon_dedup_restored(d), step * 200);
        const gnomon_documents part = part_of(&c, 0, (step + 1) * 200);
        assert_int_equal(gnomon_dedup_add(d, &part), GNOMON_OK);
        if (step == 2) {
            int64_t count;
            assert_int_equal(gnomon_dedup_run(d, NULL), GNOMON_OK);
            const gnomon_dedup_pair *pairs = gnomon_dedup_pairs(d, &count);
            assert_int_equal(count, cpu.pair_count);
            assert_memory_equal(pairs, cpu.pairs, (size_t)count * sizeof *pairs);
            gnomon_dedup_forget(d);
        }
        gnomon_dedup_destroy(d);
        gnomon_context_destroy(ctx);
    }
    let_go(&cpu);
    free(c.text);
}

static void says(const gnomon_context *ctx, const char *part)
{
    if (strstr(gnomon_last_error(ctx), part) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", gnomon_last_error(ctx), part);
}

static void faults_are_told(void **state)
{
    static const char text[] = "good\xff"
                               "FAULT";
    static const int64_t begins[] = {0, 0, 4, 5}, ends[] = {4, 4, 5, 10};
    (void)state;
    gnomon_documents documents = {.struct_size = sizeof documents, .count = 3, .text = text};
    gnomon_dedup_options o = GNOMON_DEDUP_OPTIONS_INIT;
    gnomon_context *ctx = context("cuda");
    gnomon_dedup *d;
    documents.begins = begins;
    documents.ends = ends;
    /* the number is of all documents, those on their way too */
    assert_int_equal(gnomon_dedup_create(ctx, &o, &d), GNOMON_OK);
    documents.count = 2;
    assert_int_equal(gnomon_dedup_add(d, &documents), GNOMON_OK);
    documents.count = 3;
    assert_int_equal(gnomon_dedup_add(d, &documents), GNOMON_ERROR_DATA);
    says(ctx, "document 4 is not UTF-8");
    assert_int_equal(gnomon_dedup_run(d, NULL), GNOMON_ERROR_ARGUMENT);
    gnomon_dedup_destroy(d);
    /* the device's failure comes with a later call */
    assert_int_equal(gnomon_dedup_create(ctx, &o, &d), GNOMON_OK);
    documents.count = 1;
    documents.begins = begins + 3;
    documents.ends = ends + 3;
    assert_int_equal(gnomon_dedup_add(d, &documents), GNOMON_OK);
    assert_int_equal(gnomon_dedup_run(d, NULL), GNOMON_ERROR_DEVICE);
    says(ctx, "out of order");
    gnomon_dedup_destroy(d);
    /* and leaves nothing that could be run without the texts that were there */
    static const char file[] = "test_plugin_dedup.bad";
    static const char *const names[] = {"a"};
    assert_int_equal(gnomon_dedup_create(ctx, &o, &d), GNOMON_OK);
    assert_int_equal(gnomon_dedup_add(d, &documents), GNOMON_OK);
    assert_int_equal(gnomon_dedup_sign(d, names, file), GNOMON_ERROR_DEVICE);
    assert_int_equal(gnomon_dedup_run(d, NULL), GNOMON_ERROR_ARGUMENT);
    says(ctx, "is of no use after a failure");
    gnomon_dedup_destroy(d);
    /* what the device declines, and what it is not asked for */
    o.ngram = 63;
    assert_int_equal(gnomon_dedup_create(ctx, &o, &d), GNOMON_ERROR_DEVICE);
    says(ctx, "no n-grams of 63");
    assert_null(d);
    o.ngram = 3;
    o.recall = 1;
    assert_int_equal(gnomon_dedup_create(ctx, &o, &d), GNOMON_ERROR_DEVICE);
    says(ctx, "recall 1");
    o.recall = 0.95;
    o.exact = 1;
    assert_int_equal(gnomon_dedup_create(ctx, &o, &d), GNOMON_ERROR_DEVICE);
    says(ctx, "equal bytes");
    gnomon_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_result_is_the_same), cmocka_unit_test(unicode_is_the_same),
        cmocka_unit_test(keys_are_the_same), cmocka_unit_test(a_checkpoint_goes_on),
        cmocka_unit_test(faults_are_told)};
    if (setenv("GNOMON_PLUGIN_DIR", PLUGINS "/texts", 1) != 0) return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

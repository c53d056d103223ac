/* Deduplication: every pair against sets that are compared one by one; the same bits for any
 * memory, threads and instruction set; large buckets; arguments; each allocation refused in turn.
 */
#include "dedup/minhash.h"
#include "dedup/sort.h"
#include "dedup/state.h"
#include "dedup/wide/wide.h"
#include "refusal.h"

#include <gnomon/dedup.h>

#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { DOCUMENTS = 3000, WORDS = 60, LONGEST = WORDS * 8 };

typedef struct corpus {
    char text[DOCUMENTS * LONGEST];
    int64_t begins[DOCUMENTS], ends[DOCUMENTS];
    int words[DOCUMENTS][WORDS];
} corpus;

static uint64_t state = 1;

static int below(int n)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (int)((state >> 33) % (uint64_t)n);
}

/* Every second document changes a few words of an earlier one; the last third are of one template.
 */
static corpus *make(int documents)
{
    corpus *c = calloc(1, sizeof *c);
    int64_t at = 0;
    assert_non_null(c);
    state = 1;
    for (int i = 0; i < documents; i++) {
        const int of = i > 2 * documents / 3 ? 2 * documents / 3 : i > 0 ? below(i) : 0;
        const bool fresh = i < 2 || (i <= 2 * documents / 3 && i % 2 == 0);
        for (int w = 0; w < WORDS; w++)
            c->words[i][w] = fresh || below(WORDS) < 2 ? below(5000) : c->words[of][w];
        c->begins[i] = at;
        for (int w = 0; w < WORDS; w++)
            at += sprintf(c->text + at, "w%d ", c->words[i][w]);
        c->ends[i] = at;
    }
    return c;
}

static gnomon_documents documents_of(const corpus *c, int first, int count)
{
    return (gnomon_documents){sizeof(gnomon_documents), count, c->text, c->begins + first,
                              c->ends + first,          NULL,  NULL,    NULL};
}

static gnomon_context *context(int threads, int64_t memory)
{
    gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context *ctx;
    o.threads = threads;
    o.memory_limit = memory;
    o.device = "cpu";
    assert_int_equal(gnomon_context_create(&o, &ctx), GNOMON_OK);
    return ctx;
}

typedef struct outcome {
    gnomon_context *ctx;
    gnomon_dedup *d;
    gnomon_dedup_result result;
    const gnomon_dedup_pair *pairs;
    int64_t count;
} outcome;

static outcome run(const corpus *c, int documents, int each, const gnomon_dedup_options *o,
                   int threads, int64_t memory)
{
    outcome r = {.ctx = context(threads, memory), .result = {.struct_size = sizeof r.result}};
    assert_int_equal(gnomon_dedup_create(r.ctx, o, &r.d), GNOMON_OK);
    for (int first = 0; first < documents; first += each) {
        const gnomon_documents some =
            documents_of(c, first, documents - first < each ? documents - first : each);
        assert_int_equal(gnomon_dedup_add(r.d, &some), GNOMON_OK);
    }
    assert_int_equal(gnomon_dedup_run(r.d, &r.result), GNOMON_OK);
    r.pairs = gnomon_dedup_pairs(r.d, &r.count);
    assert_int_equal(r.count, r.result.pairs);
    return r;
}

static void end(outcome *r)
{
    gnomon_dedup_destroy(r->d);
    gnomon_context_destroy(r->ctx);
}

/* The similarity of two documents' trigrams, by comparing each with each. */
static double similarity(const corpus *c, int64_t a, int64_t b)
{
    int shared = 0, sizes[2] = {0, 0};
    const int(*sets[2])[WORDS] = {&c->words[a], &c->words[b]};
    for (int side = 0; side < 2; side++) {
        for (int i = 0; i + 3 <= WORDS; i++) {
            bool before = false, other = false;
            for (int j = 0; j < i; j++)
                before |= memcmp(*sets[side] + i, *sets[side] + j, 3 * sizeof(int)) == 0;
            for (int j = 0; j + 3 <= WORDS; j++)
                other |= memcmp(*sets[side] + i, *sets[1 - side] + j, 3 * sizeof(int)) == 0;
            sizes[side] += !before;
            shared += side == 0 && !before && other;
        }
    }
    return (double)shared / (sizes[0] + sizes[1] - shared);
}

static void finds_the_pairs(void **unused)
{
    (void)unused;
    enum { SOME = 300 };
    corpus *c = make(SOME);
    gnomon_dedup_options o = GNOMON_DEDUP_OPTIONS_INIT;
    o.similarity = 0.5;
    o.bucket = 1 << 20;
    for (int exact = 0; exact < 2; exact++) {
        o.recall = exact ? 1 : 0.95;
        outcome r = run(c, SOME, SOME, &o, 2, 0);
        int64_t at = 0, all = 0;
        bool equal[SOME] = {false};
        for (int i = 0; i < SOME; i++)
            for (int j = 0; j < i && !equal[i]; j++)
                equal[i] = similarity(c, i, j) == 1;
        for (int i = 0; i < SOME; i++) {
            for (int j = i + 1; j < SOME; j++) {
                const double s = similarity(c, i, j);
                const bool there =
                    at < r.count && r.pairs[at].i == (uint32_t)i && r.pairs[at].j == (uint32_t)j;
                /* of equal documents the others are paired with the first one alone */
                all += s >= o.similarity && !equal[i] && (!equal[j] || s == 1);
                if (!there) continue;
                assert_true(s >= o.similarity && s == r.pairs[at].similarity);
                at++;
            }
        }
        assert_int_equal(at, r.count);
        if (all < 1000 || (double)at < o.recall * (double)all)
            fail_msg("%d of %d pairs", (int)at, (int)all);
        assert_int_equal(r.result.uncompared, 0);
        assert_true(exact || r.result.recall_bound >= 0.95);
        end(&r);
    }
    free(c);
}

static void same_bits(void **unused)
{
    (void)unused;
    corpus *c = make(DOCUMENTS);
    gnomon_dedup_options o = GNOMON_DEDUP_OPTIONS_INIT;
    o.similarity = 0.6;
    o.bucket = 16;
    outcome one = run(c, DOCUMENTS, DOCUMENTS, &o, 1, 0);
    assert_false(one.result.spilled);
    assert_true(one.result.large > 0 && one.result.uncompared > 0);
    for (int64_t at = 0; at < one.count; at++)
        assert_true(similarity(c, one.pairs[at].i, one.pairs[at].j) == one.pairs[at].similarity);
    static const int64_t limits[] = {1, 1 << 20, 1 << 20, 1 << 22, 1 << 24};
    for (int way = 0; way < 5; way++) {
        if (way == 2) setenv("GNOMON_ISA", "portable", 1);
        outcome r = run(c, DOCUMENTS, way == 0 ? 7 : 1000, &o, way % 3 + 1, limits[way]);
        unsetenv("GNOMON_ISA");
        assert_true(r.result.spilled || way > 2);
        assert_int_equal(r.count, one.count);
        assert_memory_equal(r.pairs, one.pairs, (size_t)r.count * sizeof *r.pairs);
        assert_memory_equal(gnomon_dedup_representatives(r.d), gnomon_dedup_representatives(one.d),
                            DOCUMENTS * sizeof(int64_t));
        assert_int_equal(r.result.uncompared, one.result.uncompared);
        assert_int_equal(r.result.kept, one.result.kept);
        end(&r);
    }
    end(&one);
    free(c);
}

/* Values of the portable and the best level, and how often the least ones of two sets agree. */
static void minhash(void **unused)
{
    (void)unused;
    enum { BLOCKS = 500, MEMBERS = 90 };
    gnomon_minhash *blocks = malloc(BLOCKS * sizeof *blocks);
    uint32_t *one = malloc(BLOCKS * GNOMON_MINHASH_LANES * sizeof *one);
    uint32_t *two = malloc(BLOCKS * GNOMON_MINHASH_LANES * sizeof *two);
    uint64_t set[MEMBERS];
    gnomon_context *ctx = context(1, 0);
    const gnomon_isa isa = gnomon_context_isa_level(ctx);
    assert_true(blocks != NULL && one != NULL && two != NULL);
    for (int k = 0; k < BLOCKS; k++)
        gnomon_minhash_block(&blocks[k], 3, k);
    for (int e = 0; e < MEMBERS; e++)
        set[e] = gnomon_mix64((uint64_t)e + 1);
    for (int count = 1; count < 4; count++) {
        gnomon_minhash_set(isa, blocks, BLOCKS, set, count, one);
        gnomon_minhash_set(GNOMON_ISA_PORTABLE, blocks, BLOCKS, set, count, two);
        assert_memory_equal(one, two, BLOCKS * GNOMON_MINHASH_LANES * sizeof *one);
    }
    /* members 0 to 79 and 10 to 89: 70 of 90 shared; six standard deviations of 4000 functions */
    gnomon_minhash_set(isa, blocks, BLOCKS, set, 80, one);
    gnomon_minhash_set(isa, blocks, BLOCKS, set + 10, 80, two);
    int same = 0;
    for (int i = 0; i < BLOCKS * GNOMON_MINHASH_LANES; i++)
        same += one[i] == two[i];
    assert_true(abs(same - 3111) < 158);
    gnomon_context_destroy(ctx);
    free(blocks);
    free(one);
    free(two);
}

static int by_value(const void *x, const void *y)
{
    const uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return (a > b) - (a < b);
}

static void sorts(void **unused)
{
    (void)unused;
    static const int counts[] = {0,   1,   12,  13,   24,   25,   63,   64,   65,   100,  127,
                                 128, 129, 700, 1023, 1024, 4095, 4096, 8191, 8192, 20000};
    uint64_t *a = malloc(20000 * 8), *b = malloc(20000 * 8), *scratch = malloc(20000 * 8);
    for (int law = 0; law < 6; law++) {
        for (size_t n = 0; n < sizeof counts / sizeof counts[0]; n++) {
            for (int way = gnomon_isa_available(GNOMON_ISA_AVX512) ? 0 : 1; way < 4; way++) {
                const int count = counts[n];
                for (int i = 0; i < count; i++) {
                    const uint64_t x = gnomon_mix64((uint64_t)i + 1);
                    a[i] = b[i] = law == 0   ? x
                                  : law == 1 ? 7
                                  : law == 2 ? x % 5
                                  : law == 3 ? x >> 40
                                  : law == 4 ? UINT64_MAX - x % 2
                                             : (uint64_t)(count - i) << 57;
                }
                if (way == 0) gnomon_wide_sort(a, scratch, count);
                if (way == 1) gnomon_sort_hashes(a, scratch, count);
                if (way == 2) gnomon_sort_digits(a, scratch, count);
                if (way == 3) gnomon_sort_numbers(a, count);
                qsort(b, (size_t)count, sizeof *b, by_value);
                assert_memory_equal(a, b, (size_t)count * sizeof *a);
            }
        }
    }
    free(a);
    free(b);
    free(scratch);
}

/* Runs in a file, merged, against the order of the keys and of adding. */
static void sorts_in_runs(void **unused)
{
    (void)unused;
    static const int64_t bytes[] = {1, 1 << 14, 1 << 20, 1 << 22};
    static const int counts[] = {0, 1, 255, 256, 257, 5000, 32768, 150000};
    gnomon_context *ctx = context(3, 0);
    for (size_t b = 0; b < sizeof bytes / sizeof bytes[0]; b++) {
        for (size_t n = 0; n < sizeof counts / sizeof counts[0]; n++) {
            for (int law = 0; law < 5; law++) {
                gnomon_sorter s;
                const gnomon_record *r;
                gnomon_record last = {0};
                uint64_t sum = 0, wanted = 0;
                gnomon_sorter_start(&s, ctx, NULL, bytes[b]);
                for (int i = 0; i < counts[n]; i++) {
                    const uint64_t x = gnomon_mix64((uint64_t)i + 9);
                    const uint64_t key = law == 0   ? x
                                         : law == 1 ? x % 7
                                         : law == 2 ? UINT64_MAX
                                         : law == 3 ? (x % 9000) << 32 | (uint64_t)i
                                                    : UINT64_C(5) << 60 | x % 300;
                    wanted += gnomon_mix64(key + (uint64_t)i);
                    assert_int_equal(gnomon_sorter_add(&s, key, (uint64_t)i), GNOMON_OK);
                }
                assert_int_equal(gnomon_sorter_finish(&s), GNOMON_OK);
                assert_true(s.runs > 1 || counts[n] < 257 || b > 0);
                for (int i = 0; i < counts[n]; i++) {
                    assert_int_equal(gnomon_sorter_next(&s, &r), GNOMON_OK);
                    assert_non_null(r);
                    assert_true(i == 0 || last.key < r->key ||
                                (last.key == r->key && last.value < r->value));
                    last = *r;
                    sum += gnomon_mix64(r->key + r->value);
                }
                assert_int_equal(gnomon_sorter_next(&s, &r), GNOMON_OK);
                assert_null(r);
                assert_true(sum == wanted);
                gnomon_sorter_end(&s);
            }
        }
    }
    gnomon_context_destroy(ctx);
}

static void utf8(void **unused)
{
    (void)unused;
    static const struct {
        const char *text;
        int64_t bytes, fault;
    } cases[] = {{"plain text of ascii", 19, -1},
                 {"caf\xc3\xa9", 5, -1},
                 {"\xe2\x82\xac \xf0\x9f\x98\x80", 8, -1},
                 {"12345678\xff", 9, 8},
                 {"\xc3", 1, 0},
                 {"a\xe2\x82", 3, 1},
                 {"\xc0\x80", 2, 0},
                 {"\xed\xa0\x80", 3, 0},
                 {"\xf4\x90\x80\x80", 4, 0},
                 {"", 0, -1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(gnomon_utf8_fault(cases[i].text, cases[i].bytes), cases[i].fault);
}

static void refuses(void **unused)
{
    (void)unused;
    gnomon_context *ctx = context(1, 0);
    gnomon_dedup *d;
    gnomon_dedup_result result = {.struct_size = sizeof result};
    static const char text[] = "a b\xff";
    const int64_t begins[] = {0, 2}, ends[] = {1, 4}, back[] = {1, 1};
    gnomon_documents some = {sizeof some, 1, text, begins, ends, NULL, NULL, NULL};
#define BAD(field, value)                                                          \
    do {                                                                           \
        gnomon_dedup_options o = GNOMON_DEDUP_OPTIONS_INIT;                        \
        o.field = value;                                                           \
        assert_int_equal(gnomon_dedup_create(ctx, &o, &d), GNOMON_ERROR_ARGUMENT); \
        assert_null(d);                                                            \
    } while (0)
    BAD(ngram, -1);
    BAD(ngram, 65);
    BAD(similarity, 0);
    BAD(similarity, 1.01);
    BAD(similarity, (double)NAN);
    BAD(recall, 0);
    BAD(bands, 3);
    BAD(rows, 3);
    BAD(bucket, 1);
    BAD(keep, (gnomon_dedup_keep)2);
    BAD(keep_raw, 3);
    gnomon_dedup_options o = GNOMON_DEDUP_OPTIONS_INIT;
    o.containment = o.exact = 1;
    assert_int_equal(gnomon_dedup_create(ctx, &o, &d), GNOMON_ERROR_ARGUMENT);
    o.containment = o.exact = 0;
    o.work = "/no/such/folder";
    assert_int_equal(gnomon_dedup_create(ctx, &o, &d), GNOMON_ERROR_NOT_FOUND);
    assert_int_equal(gnomon_dedup_create(ctx, NULL, &d), GNOMON_OK);
    assert_null(gnomon_dedup_representatives(d));
    assert_int_equal(gnomon_dedup_write(d, "none"), GNOMON_ERROR_ARGUMENT);
    some.ends = back;
    some.begins = begins + 1;
    assert_int_equal(gnomon_dedup_add(d, &some), GNOMON_ERROR_ARGUMENT);
    gnomon_dedup_destroy(d);
    assert_int_equal(gnomon_dedup_create(ctx, NULL, &d), GNOMON_OK);
    some = (gnomon_documents){sizeof some, 2, text, begins, ends, NULL, NULL, NULL};
    assert_int_equal(gnomon_dedup_add(d, &some), GNOMON_ERROR_DATA);
    assert_non_null(strstr(gnomon_last_error(ctx), "document 1"));
    assert_int_equal(gnomon_dedup_run(d, &result), GNOMON_ERROR_ARGUMENT);
    gnomon_dedup_destroy(d);
    assert_int_equal(gnomon_dedup_create(ctx, NULL, &d), GNOMON_OK);
    assert_int_equal(gnomon_dedup_run(d, &result), GNOMON_OK);
    assert_int_equal(result.documents, 0);
    assert_int_equal(gnomon_dedup_run(d, &result), GNOMON_ERROR_ARGUMENT);
    assert_int_equal(gnomon_dedup_add(d, &some), GNOMON_ERROR_ARGUMENT);
    gnomon_dedup_destroy(d);
    gnomon_dedup_destroy(NULL);
    gnomon_context_destroy(ctx);
}

static void each_allocation_fails(void **unused)
{
    (void)unused;
    enum { SOME = 200 };
    corpus *c = make(SOME);
    const gnomon_documents some = documents_of(c, 0, SOME);
    for (int way = 0; way < 3; way++) {
        const bool exact = way == 1;
        gnomon_dedup_options o = GNOMON_DEDUP_OPTIONS_INIT;
        o.recall = exact ? 1 : 0.95;
        o.weighted = o.containment = way == 2;
        o.keep_raw = 1;
        o.bucket = 8;
        o.work = ".";
        bool done = false;
        for (long at = 0; !done; at++) {
            refusal r = {.at = -1};
            const gnomon_allocator allocator = {&r, refusing, releasing};
            gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
            gnomon_context *ctx;
            gnomon_dedup *d = NULL;
            options.threads = 1;
            options.allocator = &allocator;
            assert_int_equal(gnomon_context_create(&options, &ctx), GNOMON_OK);
            const long out = r.out;
            r.calls = 0;
            r.at = at;
            gnomon_status status = gnomon_dedup_create(ctx, &o, &d);
            if (status == GNOMON_OK) status = gnomon_dedup_add(d, &some);
            if (status == GNOMON_OK) status = gnomon_dedup_run(d, NULL);
            done = r.calls <= at;
            assert_int_equal(status, done ? GNOMON_OK : GNOMON_ERROR_MEMORY);
            gnomon_dedup_destroy(d);
            r.at = -1;
            assert_true(exact || r.out == out);
            gnomon_context_destroy(ctx);
            assert_int_equal(r.out, 0);
            assert_true(at < 1000);
        }
    }
    free(c);
}

/* ---- signature files ---- */

static const char SIGNED[] = "test_dedup.sig";

/* Signs documents [first, first + count), named by their numbers from 1000 on. */
static void sign_some(const corpus *c, int first, int count, const char *path)
{
    gnomon_context *ctx = context(1, 0);
    gnomon_dedup *d;
    const gnomon_documents some = documents_of(c, first, count);
    char(*text)[16] = calloc((size_t)count, sizeof *text);
    const char **names = calloc((size_t)count, sizeof *names);
    assert_non_null(text);
    assert_non_null(names);
    for (int i = 0; i < count; i++) {
        snprintf(text[i], sizeof text[i], "%d", 1000 + first + i);
        names[i] = text[i];
    }
    assert_int_equal(gnomon_dedup_create(ctx, NULL, &d), GNOMON_OK);
    assert_int_equal(gnomon_dedup_add(d, &some), GNOMON_OK);
    assert_int_equal(gnomon_dedup_sign(d, NULL, path), GNOMON_ERROR_ARGUMENT);
    assert_int_equal(gnomon_dedup_sign(d, names, path), GNOMON_OK);
    assert_int_equal(gnomon_dedup_add(d, &some), GNOMON_ERROR_ARGUMENT);
    gnomon_dedup_destroy(d);
    gnomon_context_destroy(ctx);
    free(names);
    free(text);
}

static void merges(void **unused)
{
    (void)unused;
    enum { SOME = 900, PARTS = 3 };
    static const char *const paths[PARTS] = {"test_dedup-2.sig", "test_dedup-0.sig",
                                             "test_dedup-1.sig"};
    corpus *c = make(SOME);
    gnomon_dedup_options o = GNOMON_DEDUP_OPTIONS_INIT;
    outcome whole = run(c, SOME, SOME, &o, 1, 0);
    for (int p = 0; p < PARTS; p++)
        sign_some(c, p * SOME / PARTS, SOME / PARTS, paths[(p + 1) % PARTS]);
    gnomon_context *ctx = context(2, 1 << 16);
    gnomon_dedup *d;
    gnomon_dedup_result result = {.struct_size = sizeof result};
    int64_t count;
    assert_int_equal(gnomon_dedup_create(ctx, &o, &d), GNOMON_OK);
    assert_int_equal(gnomon_dedup_add_signed(d, paths, PARTS), GNOMON_OK);
    assert_null(gnomon_dedup_name(d, 0));
    assert_int_equal(gnomon_dedup_run(d, &result), GNOMON_OK);
    assert_int_equal(result.documents, SOME);
    assert_int_equal(result.text_bytes, whole.result.text_bytes);
    for (int i = 0; i < SOME; i++)
        assert_int_equal(atoi(gnomon_dedup_name(d, i)), 1000 + i);
    assert_null(gnomon_dedup_name(d, SOME));
    assert_null(gnomon_dedup_name(d, -1));
    const gnomon_dedup_pair *pairs = gnomon_dedup_pairs(d, &count);
    assert_int_equal(count, whole.count);
    assert_memory_equal(pairs, whole.pairs, (size_t)count * sizeof *pairs);
    assert_memory_equal(gnomon_dedup_representatives(d), gnomon_dedup_representatives(whole.d),
                        SOME * sizeof(int64_t));
    gnomon_dedup_destroy(d);

    const gnomon_documents some = documents_of(c, 0, 1);
    o.ngram = 0; /* whatever the files have */
    assert_int_equal(gnomon_dedup_create(ctx, &o, &d), GNOMON_OK);
    assert_int_equal(gnomon_dedup_add(d, &some), GNOMON_ERROR_ARGUMENT);
    assert_int_equal(gnomon_dedup_sign(d, NULL, SIGNED), GNOMON_ERROR_ARGUMENT);
    assert_int_equal(gnomon_dedup_add_signed(d, paths, PARTS), GNOMON_OK);
    assert_int_equal(gnomon_dedup_add_signed(d, paths, PARTS), GNOMON_ERROR_ARGUMENT);
    assert_int_equal(gnomon_dedup_run(d, &result), GNOMON_OK);
    assert_int_equal(result.pairs, whole.count);
    gnomon_dedup_destroy(d);
    o.ngram = 4;
    assert_int_equal(gnomon_dedup_create(ctx, &o, &d), GNOMON_OK);
    assert_int_equal(gnomon_dedup_add_signed(d, paths, 1), GNOMON_ERROR_DATA);
    assert_int_equal(gnomon_dedup_run(d, NULL), GNOMON_ERROR_ARGUMENT);
    gnomon_dedup_destroy(d);
    gnomon_context_destroy(ctx);
    end(&whole);
    for (int p = 0; p < PARTS; p++)
        remove(paths[p]);
    free(c);
}

static void each_allocation_of_a_merge_fails(void **unused)
{
    (void)unused;
    enum { SOME = 50 };
    corpus *c = make(SOME);
    const char *const twice[] = {SIGNED, SIGNED};
    sign_some(c, 0, SOME, SIGNED);
    bool done = false;
    for (long at = 0; !done; at++) {
        refusal r = {.at = -1};
        const gnomon_allocator allocator = {&r, refusing, releasing};
        gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
        gnomon_context *ctx;
        gnomon_dedup *d = NULL;
        options.threads = 1;
        options.allocator = &allocator;
        assert_int_equal(gnomon_context_create(&options, &ctx), GNOMON_OK);
        r.calls = 0;
        r.at = at;
        gnomon_status status = gnomon_dedup_create(ctx, NULL, &d);
        if (status == GNOMON_OK) status = gnomon_dedup_add_signed(d, twice, 2);
        if (status == GNOMON_OK) status = gnomon_dedup_sign(d, NULL, "test_dedup-both.sig");
        done = r.calls <= at;
        assert_int_equal(status, done ? GNOMON_OK : GNOMON_ERROR_MEMORY);
        gnomon_dedup_destroy(d);
        r.at = -1;
        gnomon_context_destroy(ctx);
        assert_int_equal(r.out, 0);
        assert_true(at < 1000);
    }
    remove("test_dedup-both.sig");
    remove(SIGNED);
    free(c);
}

/* ---- checkpoints ---- */

static const char STATE[] = "test_dedup.state";

/* One process's try, which saves whenever it can: adds documents by parts, and writes what it
 * found. */
static void try_once(const corpus *c, int documents, const gnomon_dedup_options *options,
                     const char *path)
{
    gnomon_context *ctx = context(2, options->recall == 1 ? 1 << 24 : 1 << 20);
    gnomon_dedup_options o = *options;
    gnomon_dedup *d;
    gnomon_dedup_result result = {.struct_size = sizeof result};
    int64_t count;
    o.checkpoint = STATE;
    o.identity = "this";
    assert_int_equal(gnomon_dedup_create(ctx, &o, &d), GNOMON_OK);
    d->checkpoint.interval = 0;
    for (int first = 0; first < documents; first += 100) {
        const gnomon_documents some = documents_of(c, first, 100);
        assert_int_equal(gnomon_dedup_add(d, &some), GNOMON_OK);
    }
    assert_int_equal(gnomon_dedup_run(d, &result), GNOMON_OK);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    const gnomon_dedup_pair *pairs = gnomon_dedup_pairs(d, &count);
    assert_int_equal(fwrite(pairs, sizeof *pairs, (size_t)count, file), count);
    assert_int_equal(
        fwrite(gnomon_dedup_representatives(d), sizeof(int64_t), (size_t)documents, file),
        documents);
    assert_int_equal(fwrite(&result.uncompared, sizeof result.uncompared, 1, file), 1);
    assert_int_equal(fclose(file), 0);
    gnomon_dedup_forget(d);
    gnomon_dedup_destroy(d);
    gnomon_context_destroy(ctx);
}

/* Whether a process in which 'try_once' runs comes to its end before it is killed. */
static bool survives(const corpus *c, int documents, const gnomon_dedup_options *o,
                     const char *path, useconds_t microseconds)
{
    int status;
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        try_once(c, documents, o, path);
        _exit(0);
    }
    usleep(microseconds);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFSIGNALED(status)) assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return !WIFSIGNALED(status);
}

static int64_t read_file(const char *path, char *data, size_t room)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    const size_t got = fread(data, 1, room, file);
    fclose(file);
    return (int64_t)got;
}

/* Killed at ten random moments each way, and taken up again. */
static void goes_on(void **unused)
{
    (void)unused;
    enum { ROOM = 1 << 20 };
    static const char *const ends[] = {"",       ".documents", ".sets", ".texts",
                                       ".names", ".pairs",     ".new"};
    corpus *c = make(DOCUMENTS);
    char *want = malloc(ROOM), *got = malloc(ROOM), name[64];
    assert_true(want != NULL && got != NULL);
    for (int exact = 0; exact < 2; exact++) {
        gnomon_dedup_options o = GNOMON_DEDUP_OPTIONS_INIT;
        o.similarity = 0.6;
        o.bucket = 16;
        o.keep_raw = 1;
        if (exact) o.recall = 1;
        try_once(c, DOCUMENTS, &o, "test_dedup.want");
        const int64_t size = read_file("test_dedup.want", want, ROOM);
        assert_true(size > DOCUMENTS * 8);
        int kills = 0, rounds = 0;
        for (useconds_t most = 100000; kills < 10; rounds++) {
            assert_true(rounds < 1000);
            if (!survives(c, DOCUMENTS, &o, "test_dedup.got",
                          1000 + (useconds_t)below((int)most))) {
                kills++;
                most += 20000;
                continue;
            }
            /* another from the start */
            most = 100000;
            assert_int_equal(read_file("test_dedup.got", got, ROOM), size);
            assert_memory_equal(got, want, (size_t)size);
        }
        try_once(c, DOCUMENTS, &o, "test_dedup.got");
        assert_int_equal(read_file("test_dedup.got", got, ROOM), size);
        assert_memory_equal(got, want, (size_t)size);
        for (size_t e = 0; e < sizeof ends / sizeof ends[0]; e++) {
            snprintf(name, sizeof name, "%s%s", STATE, ends[e]);
            assert_int_equal(access(name, F_OK), -1);
        }
    }
    remove("test_dedup.want");
    remove("test_dedup.got");
    free(want);
    free(got);
    free(c);
}

/* ---- lines ---- */

/* What a file of lines holds, found a line at a time. */
typedef struct reading {
    const char *bytes;
    int64_t size, at, line; /* of the next line */
    int64_t bad;
    int64_t most; /* bytes of a document */
} reading;

/* The next line that is a document; false: none is left. */
static bool next_line(reading *r, int64_t *begin, int64_t *end, int64_t *raw, int64_t *behind)
{
    while (r->at < r->size) {
        const char *newline = memchr(r->bytes + r->at, '\n', (size_t)(r->size - r->at));
        *raw = *begin = r->at;
        *end = newline != NULL ? newline - r->bytes : r->size;
        *behind = r->at = *end + 1;
        r->line++;
        if (*end > *begin && r->bytes[*end - 1] == '\r') --*end;
        if (r->line == 1 && *end - *begin >= 3 && memcmp(r->bytes, "\xef\xbb\xbf", 3) == 0)
            *begin += 3;
        bool blank = true;
        for (int64_t i = *begin; i < *end && blank; i++)
            blank = r->bytes[i] == ' ';
        if (!blank && *end - *begin <= r->most) return true;
        r->bad++;
    }
    return false;
}

static void count_bad(void *user, const char *file, int64_t line, const char *why)
{
    (void)file, (void)line, (void)why;
    ((reading *)user)->bad--;
}

static void read_lines(const char *bytes, int64_t size, int threads, int64_t limit)
{
    static const char path[] = "test_dedup.lines";
    reading r = {.bytes = bytes, .size = size, .most = 70000};
    gnomon_corpus_options o = GNOMON_CORPUS_OPTIONS_INIT;
    gnomon_context *ctx = context(threads, limit);
    gnomon_corpus *in;
    o.kind = GNOMON_CORPUS_LINES;
    o.names = 1;
    o.max_bytes = r.most;
    o.bad = count_bad;
    o.user = &r;
    assert_int_equal(gnomon_corpus_open(ctx, path, &o, &in), GNOMON_OK);
    int64_t begin, end, raw, behind;
    for (;;) {
        gnomon_documents batch = {.struct_size = sizeof batch};
        const char *const *names;
        assert_int_equal(gnomon_corpus_next(in, &batch, &names), GNOMON_OK);
        if (batch.count == 0) break;
        for (int64_t i = 0; i < batch.count; i++) {
            char name[64];
            assert_true(next_line(&r, &begin, &end, &raw, &behind));
            assert_int_equal(batch.ends[i] - batch.begins[i], end - begin);
            assert_memory_equal(batch.text + batch.begins[i], bytes + begin, (size_t)(end - begin));
            assert_int_equal(batch.raw_ends[i] - batch.raw_begins[i], behind - raw);
            if (behind <= size)
                assert_memory_equal(batch.text + batch.raw_begins[i], bytes + raw,
                                    (size_t)(behind - raw));
            snprintf(name, sizeof name, "%s:%lld", path, (long long)r.line);
            assert_string_equal(names[i], name);
        }
    }
    assert_false(next_line(&r, &begin, &end, &raw, &behind));
    assert_int_equal(r.bad, 0);
    gnomon_corpus_close(in);
    gnomon_context_destroy(ctx);
}

/* Lines of all lengths, which end anywhere in what is looked at at a time, and more short ones than
 * a batch has. */
static void cuts_lines(void **unused)
{
    (void)unused;
    enum { SIZE = 9 << 20 };
    static const int64_t limits[] = {0, 1 << 20, 40 << 20};
    static const int threads[] = {1, 2, 3, 16};
    char *bytes = malloc(SIZE);
    uint64_t random = 7;
    assert_non_null(bytes);
    memcpy(bytes, "\xef\xbb\xbf", 3);
    for (int64_t at = 3, line = 0; at < SIZE; line++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        const uint64_t r = random >> 33;
        int64_t length = (int64_t)(r % 300);
        if (line % 4001 == 4000) length = 66000 + (int64_t)(r % 140000);
        if (at > SIZE / 2 && at < SIZE / 2 + 300000) length = (int64_t)(r % 3);
        for (; length > 0 && at < SIZE - 1; length--, at++)
            bytes[at] = r % 50 == 0 ? ' ' : (char)('a' + (at * 7 + line) % 23);
        if (r % 9 == 0 && at < SIZE - 1) bytes[at++] = '\r';
        if (at < SIZE) bytes[at++] = '\n';
    }
    for (int last = 0; last < 2; last++) { /* the last line ends, or does not */
        bytes[SIZE - 1] = last ? '\n' : 'x';
        FILE *file = fopen("test_dedup.lines", "wb");
        assert_non_null(file);
        assert_int_equal(fwrite(bytes, 1, SIZE, file), SIZE);
        assert_int_equal(fclose(file), 0);
        for (size_t t = 0; t < sizeof threads / sizeof threads[0]; t++)
            for (size_t m = 0; m < sizeof limits / sizeof limits[0]; m++)
                read_lines(bytes, SIZE, threads[t], limits[m]);
    }
    remove("test_dedup.lines");
    free(bytes);
}

/* ---- kept documents, read again ---- */

static const char *const FILES[] = {"test_dedup.txt", "test_dedup.jsonl"};

static void pass_over(void *user, const char *file, int64_t line, const char *why)
{
    (void)file, (void)line, (void)why;
    ++*(int64_t *)user;
}

/* Texts of a corpus as lines and as JSON, with blank and broken ones between. */
static void write_files(const corpus *c, int count)
{
    for (int f = 0; f < 2; f++) {
        FILE *file = fopen(FILES[f], "wb");
        assert_non_null(file);
        for (int i = f; i < count; i += 2) {
            const int length = (int)(c->ends[i] - c->begins[i]);
            if (i % 7 == 0) fputs(f == 0 ? " \t\n" : "{\"text\": \n", file);
            if (i % 11 == 0) fputs("\xff\xfe\r\n", file);
            fprintf(file, f == 0 ? "%.*s" : "{\"n\": 1, \"text\": \"%.*s\"}", length,
                    c->text + c->begins[i]);
            fputs(i % 5 == 0 ? "\r\n" : i + 2 < count ? "\n" : "", file);
        }
        assert_int_equal(fclose(file), 0);
    }
}

/* Adds the documents of the files, which the caller has, and runs. */
static gnomon_status add_files(gnomon_context *ctx, const gnomon_corpus_options *o, int raw,
                               gnomon_dedup **d)
{
    gnomon_dedup_options options = GNOMON_DEDUP_OPTIONS_INIT;
    options.similarity = 0.6;
    options.keep_raw = raw;
    gnomon_status status = gnomon_dedup_create(ctx, &options, d);
    for (int f = 0; f < 2 && status == GNOMON_OK; f++) {
        gnomon_corpus *in;
        gnomon_documents batch = {.struct_size = sizeof batch, .count = 1};
        status = gnomon_corpus_open(ctx, FILES[f], o, &in);
        if (status != GNOMON_OK) return status;
        while (status == GNOMON_OK && batch.count > 0) {
            status = gnomon_corpus_next(in, &batch, NULL);
            if (status == GNOMON_OK) status = gnomon_dedup_add(*d, &batch);
        }
        gnomon_corpus_close(in);
    }
    return status == GNOMON_OK ? gnomon_dedup_run(*d, NULL) : status;
}

static void reads_again(void **unused)
{
    (void)unused;
    enum { SOME = 2000, ROOM = 1 << 20 };
    static const char want_path[] = "test_dedup.want", got_path[] = "test_dedup.got";
    corpus *c = make(SOME);
    char *want = malloc(ROOM), *got = malloc(ROOM);
    int64_t bad = 0;
    gnomon_corpus_options o = GNOMON_CORPUS_OPTIONS_INIT;
    gnomon_dedup *d = NULL;
    assert_true(want != NULL && got != NULL);
    o.bad = pass_over;
    o.user = &bad;
    write_files(c, SOME);
    gnomon_context *ctx = context(2, 1 << 20);
    assert_int_equal(add_files(ctx, &o, GNOMON_RAW_HELD, &d), GNOMON_OK);
    assert_int_equal(bad, SOME / 7 + 1 + SOME / 11 + 1);
    assert_int_equal(gnomon_dedup_write_again(d, FILES, 2, &o, got_path), GNOMON_ERROR_ARGUMENT);
    assert_int_equal(gnomon_dedup_write(d, want_path), GNOMON_OK);
    const int64_t size = read_file(want_path, want, ROOM);
    assert_true(size > SOME * 8);
    gnomon_dedup_destroy(d);

    for (int threads = 1; threads <= 3; threads += 2) {
        gnomon_context *one = context(threads, (int64_t)threads << 20);
        assert_int_equal(add_files(one, &o, GNOMON_RAW_SUM, &d), GNOMON_OK);
        bad = 0;
        assert_int_equal(gnomon_dedup_write(d, got_path), GNOMON_ERROR_ARGUMENT);
        assert_int_equal(gnomon_dedup_write_again(d, FILES, 2, &o, got_path), GNOMON_OK);
        assert_int_equal(bad, 0);
        assert_int_equal(read_file(got_path, got, ROOM), size);
        assert_memory_equal(got, want, (size_t)size);
        gnomon_dedup_destroy(d);
        gnomon_context_destroy(one);
    }

    /* other files, or changed ones: what was there stays */
    assert_int_equal(add_files(ctx, &o, GNOMON_RAW_SUM, &d), GNOMON_OK);
    const char *const swapped[] = {FILES[1], FILES[0], FILES[0]};
    assert_int_equal(gnomon_dedup_write_again(d, swapped, 2, &o, got_path), GNOMON_ERROR_DATA);
    assert_int_equal(gnomon_dedup_write_again(d, swapped, 3, &o, got_path), GNOMON_ERROR_DATA);
    assert_int_equal(gnomon_dedup_write_again(d, FILES, 1, &o, got_path), GNOMON_ERROR_DATA);
    assert_int_equal(gnomon_dedup_write_again(d, FILES, -1, &o, got_path), GNOMON_ERROR_ARGUMENT);
    assert_int_equal(gnomon_dedup_write_again(d, NULL, 0, &o, got_path), GNOMON_ERROR_DATA);
    assert_string_equal(gnomon_last_error_argument(ctx), "count");
    FILE *file = fopen(FILES[1], "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, -8, SEEK_END), 0);
    assert_int_equal(fputc('~', file), '~'); /* of the last word */
    assert_int_equal(fclose(file), 0);
    assert_int_equal(gnomon_dedup_write_again(d, FILES, 2, &o, got_path), GNOMON_ERROR_DATA);
    assert_non_null(strstr(gnomon_last_error(ctx), FILES[0]));
    assert_int_equal(read_file(got_path, got, ROOM), size);
    assert_memory_equal(got, want, (size_t)size);
    gnomon_dedup_destroy(d);
    gnomon_context_destroy(ctx);

    write_files(c, SOME);
    bool done = false;
    for (long at = 0; !done; at++) {
        refusal r = {.at = -1};
        const gnomon_allocator allocator = {&r, refusing, releasing};
        gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
        options.threads = 1;
        options.allocator = &allocator;
        remove(got_path);
        assert_int_equal(gnomon_context_create(&options, &ctx), GNOMON_OK);
        const gnomon_status added = add_files(ctx, &o, GNOMON_RAW_SUM, &d);
        assert_int_equal(added, GNOMON_OK);
        r.calls = 0;
        r.at = at;
        const gnomon_status status = gnomon_dedup_write_again(d, FILES, 2, &o, got_path);
        done = r.calls <= at;
        assert_int_equal(status, done ? GNOMON_OK : GNOMON_ERROR_MEMORY);
        assert_int_equal(access(got_path, F_OK), done ? 0 : -1);
        r.at = -1;
        gnomon_dedup_destroy(d);
        gnomon_context_destroy(ctx);
        assert_int_equal(r.out, 0);
        assert_true(at < 100);
    }
    remove(want_path);
    remove(got_path);
    remove(FILES[0]);
    remove(FILES[1]);
    free(want);
    free(got);
    free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_pairs), cmocka_unit_test(same_bits),
        cmocka_unit_test(minhash),         cmocka_unit_test(sorts),
        cmocka_unit_test(sorts_in_runs),   cmocka_unit_test(utf8),
        cmocka_unit_test(refuses),         cmocka_unit_test(each_allocation_fails),
        cmocka_unit_test(merges),          cmocka_unit_test(each_allocation_of_a_merge_fails),
        cmocka_unit_test(goes_on),         cmocka_unit_test(cuts_lines),
        cmocka_unit_test(reads_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

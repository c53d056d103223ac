/* Codes in files: the same answers, the same bytes, and damage of every kind. */
#include "rabitq_testing.h"

#include <sys/stat.h>
#include <unistd.h>

static char *contents(const char *path, long *size)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    *size = ftell(file);
    rewind(file);
    char *data = malloc((size_t)*size + 1);
    assert_int_equal(fread(data, 1, (size_t)*size, file), (size_t)*size);
    fclose(file);
    return data;
}

static void put(const char *path, const char *data, long size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, (size_t)size, file), (size_t)size);
    fclose(file);
}

static gnomon_neighbors ask(gnomon_context *ctx, const gnomon_rabitq *index,
                            const gnomon_matrix *queries, gnomon_metric metric)
{
    gnomon_neighbors found = {.struct_size = sizeof found};
    gnomon_search_options o = GNOMON_SEARCH_OPTIONS_INIT;
    o.k = 5;
    o.metric = metric;
    expect(ctx, gnomon_rabitq_query(ctx, index, queries, &o, NULL, &found), GNOMON_OK);
    return found;
}

static void saved_and_opened(void **state)
{
    (void)state;
    gnomon_context *ctx = context_of(2, 0);
    for (int64_t bits = 1; bits <= 8; bits++) {
        gnomon_rabitq_options o = GNOMON_RABITQ_OPTIONS_INIT;
        o.bits = bits;
        o.metric = bits % 2 == 0 ? GNOMON_COSINE : GNOMON_L2;
        o.seed = UINT64_C(0xffffffff00000001) - (uint64_t)bits;
        o.codes_only = bits % 3 == 2;
        gnomon_matrix base = make_points(CLUSTERS, bits < 5 ? GNOMON_F32 : GNOMON_F64, 150, 37, 1);
        const gnomon_matrix queries = make_points(CLUSTERS, GNOMON_F32, 9, 37, 2);
        if (bits == 4) { /* coordinates contiguous: the file is row-major */
            base.rows = 37;
            base.row_stride = 1;
            base.col_stride = 37;
            base.cols = 37;
        }
        gnomon_rabitq *index, *again;
        gnomon_rabitq_info info = {.struct_size = sizeof info}, told = {.struct_size = sizeof told};
        expect(ctx, gnomon_rabitq_create(ctx, &o, &base, &index), GNOMON_OK);
        expect(ctx, gnomon_rabitq_save(ctx, index, "a.rbq"), GNOMON_OK);
        expect(ctx, gnomon_rabitq_check(ctx, "a.rbq", NULL, NULL), GNOMON_OK);
        expect(ctx, gnomon_rabitq_open(ctx, "a.rbq", &again), GNOMON_OK);
        gnomon_rabitq_describe(index, &info);
        gnomon_rabitq_describe(again, &told);
        assert_int_equal(info.options.metric, told.options.metric);
        assert_int_equal(info.options.bits, told.options.bits);
        assert_true(info.options.seed == told.options.seed);
        assert_int_equal(info.options.codes_only, told.options.codes_only);
        assert_int_equal(info.points, told.points);
        assert_int_equal(info.code_bytes, told.code_bytes);
        gnomon_neighbors want = ask(ctx, index, &queries, o.metric);
        gnomon_neighbors got = ask(ctx, again, &queries, o.metric);
        same_answers(&got, &want, "an opened index");
        /* in its own place, too */
        expect(ctx, gnomon_rabitq_save(ctx, again, "b.rbq"), GNOMON_OK);
        expect(ctx, gnomon_rabitq_save(ctx, again, "a.rbq"), GNOMON_OK);
        long a, b;
        char *first = contents("a.rbq", &a), *second = contents("b.rbq", &b);
        assert_int_equal(a, b);
        assert_memory_equal(first, second, (size_t)a);
        free(first);
        free(second);
        gnomon_neighbors_free(ctx, &got);
        gnomon_neighbors_free(ctx, &want);
        gnomon_rabitq_destroy(index);
        gnomon_rabitq_destroy(again);
        free(base.data);
        free(queries.data);
    }
    expect(ctx, gnomon_rabitq_open(ctx, "nowhere.rbq", &(gnomon_rabitq *){NULL}),
           GNOMON_ERROR_NOT_FOUND);
    put("a.rbq", "no index at all", 15);
    expect(ctx, gnomon_rabitq_open(ctx, "a.rbq", &(gnomon_rabitq *){NULL}), GNOMON_ERROR_FORMAT);
    gnomon_context_destroy(ctx);
}

/* Every byte changed, and every length: an error, or what 'check' finds; never a crash. */
static void damage(void **state)
{
    (void)state;
    gnomon_context *ctx = context_of(1, 0);
    for (int64_t bits = 1; bits <= 3; bits += 2) {
        gnomon_matrix base = make_points(CLUSTERS, GNOMON_F32, 9, 5, 1);
        gnomon_rabitq_options o = GNOMON_RABITQ_OPTIONS_INIT;
        gnomon_rabitq *index;
        long size;
        o.bits = bits;
        expect(ctx, gnomon_rabitq_create(ctx, &o, &base, &index), GNOMON_OK);
        expect(ctx, gnomon_rabitq_save(ctx, index, "a.rbq"), GNOMON_OK);
        gnomon_rabitq_destroy(index);
        char *sound = contents("a.rbq", &size);
        for (long at = 0; at < size; at++) {
            for (int change = 0; change < 2; change++) {
                sound[at] ^= change == 0 ? 1 : (char)0x80;
                put("b.rbq", sound, size);
                const gnomon_status status = gnomon_rabitq_open(ctx, "b.rbq", &index);
                if (status == GNOMON_OK) {
                    gnomon_neighbors found = ask(ctx, index, &base, GNOMON_L2);
                    gnomon_neighbors_free(ctx, &found);
                    /* and is not written again as a sound one */
                    expect(ctx, gnomon_rabitq_save(ctx, index, "c.rbq"), GNOMON_ERROR_DATA);
                    gnomon_rabitq_destroy(index);
                }
                if (gnomon_rabitq_check(ctx, "b.rbq", NULL, NULL) == GNOMON_OK)
                    fail_msg("byte %ld changed, and the file is sound", at);
                sound[at] ^= change == 0 ? 1 : (char)0x80;
            }
        }
        for (long cut = 0; cut < size; cut++) {
            put("b.rbq", sound, cut);
            if (gnomon_rabitq_open(ctx, "b.rbq", &index) == GNOMON_OK)
                fail_msg("%ld of %ld bytes were taken", cut, size);
        }
        free(sound);
        free(base.data);
    }
    gnomon_context_destroy(ctx);
}

static int begin(void **state)
{
    static char folder[] = "/tmp/gnomon-rabitq-XXXXXX";
    *state = folder;
    return mkdtemp(folder) == NULL || chdir(folder) != 0;
}

static int end(void **state)
{
    unlink("a.rbq");
    unlink("b.rbq");
    unlink("c.rbq");
    return chdir("/") != 0 || rmdir(*state) != 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(saved_and_opened),
        cmocka_unit_test(damage),
    };
    return cmocka_run_group_tests(tests, begin, end);
}

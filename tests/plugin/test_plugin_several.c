/* Several devices as one: what their parts make is what one makes, and the CPU; a part that fails
 * fails the job, by its device's number, with nothing written. */
#include <gnomon.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>
#include <unistd.h>

static gnomon_context *make(const char *device, int64_t memory, gnomon_progress_fn progress)
{
    gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context *ctx = NULL;
    o.device = device;
    o.threads = 2;
    o.memory_limit = memory;
    o.progress = progress;
    if (gnomon_context_create(&o, &ctx) != GNOMON_OK) fail_msg("%s", gnomon_last_error(NULL));
    return ctx;
}

static void says(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) fail_msg("\"%s\" does not say \"%s\"", text, part);
}

#define OK(ctx, call)                                                    \
    do {                                                                 \
        if ((call) != GNOMON_OK) fail_msg("%s", gnomon_last_error(ctx)); \
    } while (0)

/* Whole numbers, so that sums are exact whatever their order, with many ties. */
static gnomon_matrix points(int64_t rows, int64_t cols, int most, uint64_t seed)
{
    float *data = malloc((size_t)(rows * cols) * sizeof *data + 1);
    assert_non_null(data);
    for (int64_t i = 0; i < rows * cols; i++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        data[i] = (float)((seed >> 33) % (uint64_t)most);
    }
    return gnomon_matrix_rowmajor(data, GNOMON_F32, rows, cols);
}

static const char *const sets[] = {"slow:0", "slow:3,1", "slow:0,1,2", "slow:all", "slow:all"};
enum { SETS = sizeof sets / sizeof *sets };

static void which(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        gnomon_status status;
        const char *part;
    } cases[] = {{"slow:0,0", GNOMON_ERROR_ARGUMENT, "it names device 0 twice"},
                 {"slow:", GNOMON_ERROR_ARGUMENT, "behind the colon come indices"},
                 {"slow:1,", GNOMON_ERROR_ARGUMENT, "behind the colon come indices"},
                 {"slow:,1", GNOMON_ERROR_ARGUMENT, "behind the colon come indices"},
                 {"slow:all,1", GNOMON_ERROR_ARGUMENT, "behind the colon come indices"},
                 {"slow:1,x", GNOMON_ERROR_ARGUMENT, "behind the colon come indices"},
                 {"slow:0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16", GNOMON_ERROR_ARGUMENT,
                  "names more than 16 devices"},
                 {"slow:9", GNOMON_ERROR_DEVICE, "there are 4 devices"},
                 {"slow:0,9", GNOMON_ERROR_DEVICE, "device 9: there are 4 devices"}};
    gnomon_context *ctx;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
        o.device = cases[i].text;
        assert_int_equal(gnomon_context_create(&o, &ctx), cases[i].status);
        says(gnomon_last_error(NULL), cases[i].part);
    }
    for (int s = 0; s < SETS; s++) {
        ctx = make(sets[s], 0, NULL);
        gnomon_context_device_reason(ctx);
        static const char *const names[] = {"slow device", "2 x slow device", "3 x slow device",
                                            "4 x slow device", "4 x slow device"};
        assert_string_equal(gnomon_context_device_name(ctx), names[s]);
        assert_string_equal(gnomon_context_device_kind(ctx), "slow");
        gnomon_context_destroy(ctx);
    }
    /* A named one that is missing is an error; auto goes on without it, and says so. */
    setenv("GNOMON_TEST_MISSING", "2", 1);
    gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
    o.device = "slow:all";
    assert_int_equal(gnomon_context_create(&o, &ctx), GNOMON_ERROR_DEVICE);
    says(gnomon_last_error(NULL), "device 2: it is missing");
    ctx = make("auto:all", 0, NULL);
    says(gnomon_context_device_reason(ctx), "device 2 is left out: it is missing");
    assert_string_equal(gnomon_context_device_name(ctx), "3 x slow device");
    gnomon_context_destroy(ctx);
    unsetenv("GNOMON_TEST_MISSING");
}

/* ---- sketches ---- */

static gnomon_operator *operator_of(gnomon_context *ctx, int64_t k, int64_t d)
{
    gnomon_descriptor descriptor = GNOMON_DESCRIPTOR_INIT;
    gnomon_operator *op;
    descriptor.kind = GNOMON_GAUSSIAN;
    descriptor.k = k;
    descriptor.d = d;
    OK(ctx, gnomon_operator_create(ctx, &descriptor, &op));
    return op;
}

static void sketches(void **state)
{
    (void)state;
    static const int64_t rows[] = {0, 1, 127, 128, 129, 1000};
    for (int s = 0; s < SETS; s++) {
        gnomon_context *ctx = make(sets[s], 0, NULL);
        gnomon_operator *op = operator_of(ctx, 3, 20);
        for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
            gnomon_matrix x = points(rows[r], 20, 100, 1), y = points(rows[r], 3, 2, 2);
            OK(ctx, gnomon_sketch(ctx, op, &x, &y, NULL));
            assert_int_equal(gnomon_context_worked_on(ctx), GNOMON_DEVICE_PLUGIN);
            for (int64_t i = 0; i < rows[r]; i++) {
                double sum = 0;
                for (int c = 0; c < 20; c++)
                    sum += ((const float *)x.data)[i * 20 + c];
                for (int j = 0; j < 3; j++)
                    assert_true(((const float *)y.data)[i * 3 + j] == (float)((j + 1) * sum));
            }
            free(x.data);
            free(y.data);
        }
        gnomon_operator_destroy(op);
        gnomon_context_destroy(ctx);
    }
}

static int stops(void *user, const char *phase, int64_t done, int64_t total)
{
    (void)user;
    (void)phase;
    (void)done;
    (void)total;
    return 1;
}

/* The first bad row is told, whichever device has it, and nothing is written. */
static void failing(void **state)
{
    (void)state;
    gnomon_context *ctx = make("slow:3,1,2", 0, NULL);
    gnomon_operator *op = operator_of(ctx, 3, 20);
    gnomon_matrix x = points(1000, 20, 100, 1), y = points(1000, 3, 2, 2);
    float *const old = malloc(3000 * sizeof *old);
    assert_non_null(old);
    memcpy(old, y.data, 3000 * sizeof *old);
    ((float *)x.data)[700 * 20 + 3] = NAN;
    ((float *)x.data)[400 * 20 + 5] = NAN;
    for (int i = 0; i < 50; i++) {
        int64_t row, col;
        assert_int_equal(gnomon_sketch(ctx, op, &x, &y, NULL), GNOMON_ERROR_NONFINITE);
        assert_string_equal(gnomon_last_error(ctx), "x: element (400, 5) is not finite");
        gnomon_last_error_place(ctx, &row, &col);
        assert_int_equal(row, 400);
        assert_int_equal(col, 5);
        assert_memory_equal(y.data, old, 3000 * sizeof *old);
    }
    ((float *)x.data)[700 * 20 + 3] = ((float *)x.data)[400 * 20 + 5] = 0;
    for (int bad = 1; bad <= 3; bad++) {
        char name[16], text[64];
        snprintf(name, sizeof name, "%d", bad);
        snprintf(text, sizeof text, "slow: device %d: it is on fire", bad);
        setenv("GNOMON_TEST_FAILS", name, 1);
        assert_int_equal(gnomon_sketch(ctx, op, &x, &y, NULL), GNOMON_ERROR_DEVICE);
        assert_string_equal(gnomon_last_error(ctx), text);
        assert_memory_equal(y.data, old, 3000 * sizeof *old);
    }
    /* auto goes on without them, and says why */
    gnomon_context *automatic = make("auto:all", 0, NULL), *cpu = make("cpu", 0, NULL);
    float *const wanted = malloc(3000 * sizeof *wanted);
    assert_non_null(wanted);
    gnomon_matrix by_cpu = gnomon_matrix_rowmajor(wanted, GNOMON_F32, 1000, 3);
    OK(cpu, gnomon_sketch(cpu, op, &x, &by_cpu, NULL));
    OK(automatic, gnomon_sketch(automatic, op, &x, &y, NULL));
    assert_int_equal(gnomon_context_worked_on(automatic), GNOMON_DEVICE_CPU);
    assert_string_equal(gnomon_context_declined(automatic), "slow failed: device 3: it is on fire");
    assert_memory_equal(y.data, wanted, 3000 * sizeof *wanted);
    /* but not where what they have written already would be added to once more */
    gnomon_sketch_options adding = GNOMON_SKETCH_OPTIONS_INIT;
    adding.beta = 2;
    setenv("GNOMON_TEST_LATE", "1", 1);
    const gnomon_status added = gnomon_sketch(automatic, op, &x, &y, &adding);
    const gnomon_status again = gnomon_sketch(automatic, op, &x, &y, NULL);
    unsetenv("GNOMON_TEST_LATE");
    unsetenv("GNOMON_TEST_FAILS");
    assert_int_equal(added, GNOMON_ERROR_DEVICE);
    assert_int_equal(again, GNOMON_OK);
    assert_memory_equal(y.data, wanted, 3000 * sizeof *wanted);
    OK(automatic, gnomon_sketch(automatic, op, &x, &y, NULL));
    assert_int_equal(gnomon_context_worked_on(automatic), GNOMON_DEVICE_PLUGIN);
    assert_string_equal(gnomon_context_declined(automatic), "");
    gnomon_context_destroy(automatic);
    gnomon_context_destroy(cpu);
    free(wanted);
    gnomon_context *stopping = make("slow:all", 0, stops);
    assert_int_equal(gnomon_sketch(stopping, op, &x, &y, NULL), GNOMON_ERROR_CANCELLED);
    gnomon_operator_destroy(op);
    gnomon_context_destroy(stopping);
    gnomon_context_destroy(ctx);
    free(x.data);
    free(y.data);
    free(old);
}

/* ---- searches ---- */

static void search_in(gnomon_context *ctx, const gnomon_matrix *base, const gnomon_matrix *queries,
                      const gnomon_search_options *o, gnomon_neighbors *out)
{
    gnomon_search *search;
    *out = (gnomon_neighbors){.struct_size = sizeof *out};
    OK(ctx, gnomon_search_create(ctx, queries, o, &search));
    for (int64_t first = 0; first < base->rows; first += 301) {
        gnomon_matrix piece = *base;
        piece.data = (float *)base->data + first * base->row_stride;
        piece.rows = base->rows - first < 301 ? base->rows - first : 301;
        OK(ctx, gnomon_search_add(search, &piece));
    }
    OK(ctx, gnomon_search_finish(search, out));
    gnomon_search_destroy(search);
}

static void searches(void **state)
{
    (void)state;
    static const int64_t queries[] = {1, 40, 2100};
    gnomon_context *cpu = make("cpu", 0, NULL);
    gnomon_matrix base = points(700, 6, 5, 3);
    uint8_t filter[88];
    for (int i = 0; i < 88; i++)
        filter[i] = (uint8_t)(37 * i + 11);
    for (int s = 0; s < SETS; s++) {
        gnomon_context *ctx = make(sets[s], 0, NULL);
        for (size_t n = 0; n < 3; n++)
            for (int form = 0; form < 5; form++) {
                gnomon_matrix asked = points(queries[n], 6, 5, 4);
                gnomon_search_options o = GNOMON_SEARCH_OPTIONS_INIT;
                o.k = form < 3 ? 1 + 6 * form : 0;
                o.radius = form == 3 ? 2 : 3;
                if (form % 2) {
                    o.exclude = 5;
                    o.filter = filter;
                    o.filter_bits = 690;
                }
                gnomon_neighbors a, b;
                search_in(cpu, &base, &asked, &o, &a);
                search_in(ctx, &base, &asked, &o, &b);
                assert_int_equal(gnomon_context_worked_on(ctx), GNOMON_DEVICE_PLUGIN);
                const size_t found = (size_t)a.offsets[a.queries];
                assert_memory_equal(a.offsets, b.offsets, (size_t)(a.queries + 1) * 8);
                assert_memory_equal(a.ids, b.ids, found * 8);
                assert_memory_equal(a.distances, b.distances, found * 8);
                assert_int_equal(b.compared, queries[n] * base.rows);
                gnomon_neighbors_free(cpu, &a);
                gnomon_neighbors_free(ctx, &b);
                free(asked.data);
            }
        gnomon_context_destroy(ctx);
    }
    gnomon_context *ctx = make("slow:0,2", 0, NULL);
    gnomon_search_options o = GNOMON_SEARCH_OPTIONS_INIT;
    gnomon_neighbors none = {.struct_size = sizeof none};
    o.k = 2;
    setenv("GNOMON_TEST_FAILS", "2", 1);
    assert_int_equal(gnomon_neighbors_exact(ctx, &base, &base, &o, &none), GNOMON_ERROR_DEVICE);
    assert_string_equal(gnomon_last_error(ctx), "slow: device 2: it is on fire");
    unsetenv("GNOMON_TEST_FAILS");
    gnomon_context_destroy(ctx);
    gnomon_context_destroy(cpu);
    free(base.data);
}

/* ---- joins ---- */

static void same_pairs(const gnomon_pairs *a, const gnomon_pairs *b)
{
    assert_int_equal(a->count, b->count);
    assert_memory_equal(a->offsets, b->offsets, (size_t)(a->rows + 1) * 8);
    assert_memory_equal(a->columns, b->columns, (size_t)a->count * 8);
    assert_memory_equal(a->distances, b->distances, (size_t)a->count * 8);
}

/* In order, whatever may wait: with little memory devices stop for those before. */
static void joins(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 2, 200, 1700}, memories[] = {0, 1 << 20};
    gnomon_context *cpu = make("cpu", 0, NULL);
    for (int s = 0; s < SETS; s++)
        for (int m = 0; m < 2; m++) {
            gnomon_context *ctx = make(sets[s], memories[m], NULL);
            for (int n = 0; n < 8; n++) {
                gnomon_matrix p = points(sizes[n / 2], 5, 6, 7), q = points(900, 5, 6, 8);
                gnomon_join_options o = GNOMON_JOIN_OPTIONS_INIT;
                gnomon_join_result told = {.struct_size = sizeof told};
                gnomon_pairs a = {.struct_size = sizeof a}, b = {.struct_size = sizeof b};
                o.threshold = 2.5;
                o.first_row = n > 4 ? 101 : 0;
                const gnomon_matrix *other = n % 2 ? &q : NULL;
                OK(cpu, gnomon_join_collect(cpu, &p, other, &o, 0, &a, NULL));
                OK(ctx, gnomon_join_collect(ctx, &p, other, &o, 0, &b, &told));
                assert_int_equal(gnomon_context_worked_on(ctx), GNOMON_DEVICE_PLUGIN);
                same_pairs(&a, &b);
                assert_int_equal(told.pairs, a.count);
                assert_int_equal(told.rows_done, p.rows);
                OK(ctx, gnomon_join(ctx, &p, other, &o, &told)); /* counted */
                assert_int_equal(told.pairs, a.count);
                if (a.count > 10) { /* an end in the middle */
                    gnomon_pairs_free(cpu, &a);
                    gnomon_pairs_free(ctx, &b);
                    o.max_pairs = told.pairs / 2;
                    OK(cpu, gnomon_join_collect(cpu, &p, other, &o, 0, &a, NULL));
                    OK(ctx, gnomon_join_collect(ctx, &p, other, &o, 0, &b, &told));
                    assert_int_equal(told.complete, 0);
                    says(told.why, "by definition");
                    assert_true(told.compared >= told.pairs);
                    same_pairs(&a, &b);
                }
                gnomon_pairs_free(cpu, &a);
                gnomon_pairs_free(ctx, &b);
                free(p.data);
                free(q.data);
            }
            gnomon_context_destroy(ctx);
        }
    gnomon_context_destroy(cpu);
}

static void joins_that_fail(void **state)
{
    (void)state;
    gnomon_matrix p = points(1700, 5, 6, 7);
    gnomon_join_options o = GNOMON_JOIN_OPTIONS_INIT;
    gnomon_pairs none = {.struct_size = sizeof none};
    o.threshold = 2.5;
    for (int memory = 0; memory < 2; memory++) {
        gnomon_context *ctx = make("slow:all", memory << 20, NULL);
        setenv("GNOMON_TEST_FAILS", memory ? "0" : "3", 1);
        for (int i = 0; i < 20; i++) {
            assert_int_equal(gnomon_join_collect(ctx, &p, NULL, &o, 0, &none, NULL),
                             GNOMON_ERROR_DEVICE);
            says(gnomon_last_error(ctx),
                 memory ? "slow: device 0: it is on fire" : "slow: device 3: it is on fire");
        }
        unsetenv("GNOMON_TEST_FAILS");
        gnomon_context *stopping = make("slow:all", memory << 20, stops);
        assert_int_equal(gnomon_join_collect(stopping, &p, NULL, &o, 0, &none, NULL),
                         GNOMON_ERROR_CANCELLED);
        ((float *)p.data)[1000] = INFINITY;
        assert_int_equal(gnomon_join_collect(ctx, &p, NULL, &o, 0, &none, NULL),
                         GNOMON_ERROR_NONFINITE);
        says(gnomon_last_error(ctx), "row 200, column 0");
        ((float *)p.data)[1000] = 1;
        gnomon_context_destroy(stopping);
        gnomon_context_destroy(ctx);
    }
    free(p.data);
}

/* Devices that wait for the rows of one that refuses its own give up. */
static void joins_that_refuse(void **state)
{
    (void)state;
    gnomon_matrix p = points(1700, 5, 6, 7);
    gnomon_join_options o = GNOMON_JOIN_OPTIONS_INIT;
    gnomon_pairs none = {.struct_size = sizeof none};
    o.threshold = 2.5;
    alarm(100); /* or they wait for ever */
    for (int bad = 0; bad < 4; bad++) {
        gnomon_context *ctx = make("slow:all", 1 << 20, NULL);
        char name[8];
        snprintf(name, sizeof name, "%d", bad);
        setenv("GNOMON_TEST_REFUSES", name, 1);
        for (int i = 0; i < 20; i++) {
            assert_int_equal(gnomon_join_collect(ctx, &p, NULL, &o, 0, &none, NULL),
                             GNOMON_ERROR_NONFINITE);
            says(gnomon_last_error(ctx), "p has NaN or infinity in row 0, column 0");
        }
        unsetenv("GNOMON_TEST_REFUSES");
        gnomon_context_destroy(ctx);
    }
    alarm(0);
    free(p.data);
}

/* The entry that is not finite is told as it is counted in all sets. */
static void hashes(void **state)
{
    (void)state;
    enum { ROWS = 1000, EACH = 3, COUNT = 2 };
    static int64_t offsets[ROWS + 1], indices[ROWS * EACH];
    static float weights[ROWS * EACH];
    static int32_t values[ROWS * COUNT];
    for (int i = 0; i <= ROWS; i++)
        offsets[i] = i * EACH + 5;
    for (int e = 0; e < ROWS * EACH; e++) {
        indices[e] = e % EACH * 10;
        weights[e] = 1;
    }
    const gnomon_csr sets_of = {ROWS, 100, offsets, indices, weights, GNOMON_F32};
    const gnomon_matrix out = gnomon_matrix_rowmajor(values, GNOMON_I32, ROWS, COUNT);
    gnomon_lsh_functions f = GNOMON_LSH_FUNCTIONS_INIT;
    f.family = GNOMON_LSH_MINHASH;
    f.dim = 100;
    f.count = COUNT;
    for (int s = 0; s < SETS; s++) {
        gnomon_context *ctx = make(sets[s], 0, NULL);
        gnomon_hasher *hasher;
        OK(ctx, gnomon_hasher_create(ctx, &f, &hasher));
        memset(values, 0, sizeof values);
        OK(ctx, gnomon_hasher_apply_csr(ctx, hasher, &sets_of, &out));
        for (int i = 0; i < ROWS * COUNT; i++)
            assert_int_equal(values[i], 7);
        weights[2900] = NAN;
        assert_int_equal(gnomon_hasher_apply_csr(ctx, hasher, &sets_of, &out),
                         GNOMON_ERROR_NONFINITE);
        says(gnomon_last_error(ctx), "in entry 2900");
        weights[2900] = 1;
        gnomon_hasher_destroy(hasher);
        gnomon_context_destroy(ctx);
    }
}

/* A factorisation is the first device's, with the others to help: together they have the memory
 * of one, and a view in a device's memory is read behind what all of them have to do. */
static void factorisations(void **state)
{
    (void)state;
    gnomon_context *ctx = make("slow:3,1,0", (int64_t)48 << 20, NULL);
    gnomon_matrix a = points(20, 12, 9, 5);
    const int64_t size[] = {5, 4, 12}, ranks[] = {2, 2, 2};
    gnomon_tensor x = gnomon_tensor_packed(a.data, GNOMON_F32, 3, size, 0);
    gnomon_svd_options o = GNOMON_SVD_OPTIONS_INIT;
    o.rank = 2;
    gnomon_hosvd_options h = GNOMON_HOSVD_OPTIONS_INIT;
    h.ranks = ranks;
    h.rank_count = 3;
    for (int there = 0; there < 2; there++) {
        gnomon_svd svd = {.struct_size = sizeof svd};
        gnomon_hosvd hosvd = {.struct_size = sizeof hosvd};
        const char *const text = there
                                     ? "device 3 with 2 others and 16777216 bytes behind 3 devices"
                                     : "device 3 with 2 others and 16777216 bytes behind 0 devices";
        a.memory = x.memory = there ? GNOMON_DEVICE_MEMORY : GNOMON_HOST;
        assert_int_equal(gnomon_svd_dense(ctx, &a, &o, &svd), GNOMON_ERROR_DEVICE);
        says(gnomon_last_error(ctx), text);
        assert_int_equal(gnomon_hosvd_dense(ctx, &x, &h, &hosvd), GNOMON_ERROR_DEVICE);
        says(gnomon_last_error(ctx), text);
    }
    free(a.data);
    gnomon_context_destroy(ctx);
}

int main(void)
{
    setenv("GNOMON_PLUGIN_DIR", PLUGINS "/several", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(which),
        cmocka_unit_test(sketches),
        cmocka_unit_test(failing),
        cmocka_unit_test(searches),
        cmocka_unit_test(joins),
        cmocka_unit_test(joins_that_fail),
        cmocka_unit_test(joins_that_refuse),
        cmocka_unit_test(hashes),
        cmocka_unit_test(factorisations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

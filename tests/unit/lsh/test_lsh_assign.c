/* Points to centres: as exact search tells them, whatever is guessed, of all levels, memory limits
 * and threads; of centres that are equal, in one place, and very large; every allocation refused in
 * turn. And queries made ready: the same bits of all levels, as the definitions have them. */
#include "miser.h"
#include "search_testing.h"

#include "kernels.h"
#include "lsh/tune/assign.h"

static const char *const levels[] = {"portable", "avx2", "avx512", "avx512_vnni", "amx"};

enum { N = 240, COUNT = 67, MOST_D = 400, LEVELS = 5, FORMS = 5 };

typedef enum form { ANY, WHOLE, ONE_PLACE, LARGE, FAR_APART } form;

static void fill(form of, float *x, int64_t count, uint64_t *seed)
{
    for (int64_t i = 0; i < count; i++) {
        const double v = draw(seed);
        x[i] = (float)(of == WHOLE       ? rint(v * 2)
                       : of == ONE_PLACE ? 0.375
                       : of == LARGE     ? v * 0x1p120
                       : of == FAR_APART ? ldexp(v, (int)(draw_bits(seed) % 60) - 30)
                                         : v);
    }
}

static gnomon_context *context_at(const char *level, int threads, int64_t memory)
{
    gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context *ctx = NULL;
    o.device = "cpu";
    o.threads = threads;
    o.memory_limit = memory;
    if (level != NULL) setenv("GNOMON_ISA", level, 1);
    const gnomon_status status = gnomon_context_create(&o, &ctx);
    unsetenv("GNOMON_ISA");
    return status == GNOMON_OK ? ctx : NULL; /* not this processor's */
}

/* What the call tells of some rows, or all, against exact search. */
static void check_rows(gnomon_context *ctx, gnomon_assign *a, const gnomon_neighbors *wanted,
                       float *centres, const int64_t *rows, int64_t n, uint64_t *seed)
{
    int32_t nearest[N];
    double keys[N];
    for (int guess = 0; guess < 3; guess++) {
        for (int64_t i = 0; i < n; i++) {
            const int64_t row = rows != NULL ? rows[i] : i;
            nearest[i] = guess == 0 ? -1
                         : guess == 1 || draw_bits(seed) % 3 > 0
                             ? (int32_t)wanted->ids[row]
                             : (int32_t)(draw_bits(seed) % COUNT);
        }
        expect(ctx, gnomon_assign_nearest(a, centres, COUNT, rows, n, nearest, guess ? keys : NULL),
               GNOMON_OK);
        for (int64_t i = 0; i < n; i++) {
            const int64_t row = rows != NULL ? rows[i] : i;
            assert_int_equal(nearest[i], wanted->ids[row]);
            if (guess > 0) assert_true(keys[i] == wanted->distances[row]);
        }
    }
}

static void check(gnomon_context *ctx, gnomon_metric metric, const gnomon_matrix *points,
                  float *centres, uint64_t seed)
{
    const gnomon_matrix base = gnomon_matrix_rowmajor(centres, GNOMON_F32, COUNT, points->cols);
    gnomon_search_options o = GNOMON_SEARCH_OPTIONS_INIT;
    gnomon_neighbors wanted = {.struct_size = sizeof wanted};
    gnomon_assign *a;
    int64_t rows[N / 3];
    o.metric = metric;
    o.k = 1;
    expect(ctx, gnomon_neighbors_exact(ctx, &base, points, &o, &wanted), GNOMON_OK);
    expect(ctx, gnomon_assign_open(ctx, metric, points, &a), GNOMON_OK);
    for (int i = 0; i < N / 3; i++)
        rows[i] = (int64_t)(draw_bits(&seed) % N);
    check_rows(ctx, a, &wanted, centres, NULL, N, &seed);
    check_rows(ctx, a, &wanted, centres, rows, N / 3, &seed);
    gnomon_assign_close(a);
    gnomon_neighbors_free(ctx, &wanted);
}

static void as_exact_search(void **state)
{
    (void)state;
    static const int64_t dims[] = {3, 16, 37, 130, MOST_D};
    float *x = malloc(N * MOST_D * sizeof *x), *centres = malloc(COUNT * MOST_D * sizeof *centres);
    double *doubles = malloc(N * MOST_D * sizeof *doubles);
    assert_true(x != NULL && centres != NULL && doubles != NULL);
    for (int round = 0; round < 2 * 5 * FORMS; round++) {
        const gnomon_metric metric = round % 2 ? GNOMON_COSINE : GNOMON_L2;
        const int64_t d = dims[round / 2 % 5];
        const form of = (enum form)(round / 10);
        uint64_t seed = (uint64_t)round;
        fill(of, x, N * d, &seed);
        fill(of, centres, COUNT * d, &seed);
        memset(x + 3 * d, 0, (size_t)d * sizeof *x);
        memcpy(centres + 50 * d, centres + 4 * d, (size_t)d * sizeof *x); /* twice */
        memcpy(centres + 5 * d, x, (size_t)d * sizeof *x);
        memset(centres + 7 * d, 0, (size_t)d * sizeof *x);
        for (int64_t i = 0; i < N * d; i++)
            doubles[i] = (double)x[i];
        const gnomon_matrix f32 = gnomon_matrix_rowmajor(x, GNOMON_F32, N, d);
        const gnomon_matrix f64 = gnomon_matrix_rowmajor(doubles, GNOMON_F64, N, d);
        for (int way = 0; way < LEVELS + 2; way++) {
            gnomon_context *ctx = way < LEVELS ? context_at(levels[way], 2, 0)
                                               : context_at(NULL, 1, way == LEVELS ? 20000 : 0);
            if (ctx == NULL) continue;
            check(ctx, metric, way % 2 ? &f64 : &f32, centres, seed);
            gnomon_context_destroy(ctx);
        }
    }
    free(x);
    free(centres);
    free(doubles);
}

/* ---- memory ---- */

static void every_allocation_refused_in_turn(void **state)
{
    (void)state;
    enum { D = 20 };
    float x[64 * D], centres[COUNT * D];
    int32_t nearest[64];
    int64_t rows[64];
    uint64_t seed = 1;
    fill(ANY, x, 64 * D, &seed);
    fill(ANY, centres, COUNT * D, &seed);
    for (int i = 0; i < 64; i++)
        rows[i] = 63 - i;
    for (int cols = 4; cols <= D; cols += D - 4) {
        const gnomon_matrix m = gnomon_matrix_rowmajor(x, GNOMON_F32, 64, cols);
        gnomon_status status = GNOMON_ERROR_MEMORY;
        for (int64_t n = 0; status != GNOMON_OK; n++) {
            misers miser = {1000, 0};
            const gnomon_allocator allocator = {&miser, miser_allocate, miser_release};
            gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
            gnomon_context *ctx;
            gnomon_assign *a;
            o.device = "cpu";
            o.threads = 2;
            o.allocator = &allocator;
            assert_int_equal(gnomon_context_create(&o, &ctx), GNOMON_OK);
            miser.left = n;
            status = gnomon_assign_open(ctx, GNOMON_L2, &m, &a);
            for (int i = 0; i < 64; i++)
                nearest[i] = -1;
            if (status == GNOMON_OK) {
                status = gnomon_assign_nearest(a, centres, COUNT, rows, 64, nearest, NULL);
                gnomon_assign_close(a);
            }
            assert_true(status == GNOMON_OK || status == GNOMON_ERROR_MEMORY);
            gnomon_context_destroy(ctx);
            assert_int_equal(miser.out, 0);
        }
    }
}

/* ---- queries made ready ---- */

static bool slow_centre(const double *x, int64_t d, double scale, const double *mean, float *out,
                        double sums[2])
{
    double chain[2][16] = {{0}};
    bool whole = true;
    for (int64_t j = 0; j < d; j++) {
        const double c = x[j] * scale - mean[j];
        out[j] = (float)c;
        whole = whole && x[j] == rint(x[j]) && fabs(c) < 0x1p22;
        chain[0][j % 16] = fma(c, c, chain[0][j % 16]);
        chain[1][j % 16] = fma(c, mean[j], chain[1][j % 16]);
    }
    for (int s = 0; s < 2; s++) {
        for (int half = 8; half > 0; half /= 2)
            for (int l = 0; l < half; l++)
                chain[s][l] += chain[s][l + half];
        sums[s] = chain[s][0];
    }
    return whole;
}

static void queries_are_centred(void **state)
{
    (void)state;
    double x[100], mean[100];
    for (int round = 0; round < 300; round++) {
        uint64_t seed = (uint64_t)round;
        const int64_t d = 1 + round % 100;
        for (int64_t j = 0; j < d; j++) {
            x[j] = round % 3 ? rint(draw(&seed) * 1000) : draw(&seed);
            mean[j] = round % 2 ? rint(draw(&seed) * 4) : draw(&seed);
        }
        if (round % 3 == 1) x[draw_bits(&seed) % (uint64_t)d] = round % 7 ? 0x1p-1074 : 0x1p30;
        const double scale = round % 5 ? 1 : 0x1p-20;
        float wanted[100], out[100];
        double sums[2], slow[2];
        const bool whole = slow_centre(x, d, scale, mean, wanted, slow);
        for (int l = 0; l < LEVELS; l++) {
            const gnomon_kernels *k = gnomon_cpu_kernels(levels[l]);
            gnomon_context *ctx = context_at(levels[l], 1, 0);
            if (ctx == NULL) continue;
            assert_int_equal(k->search->centre_query(x, d, scale, mean, out, sums), whole);
            assert_memory_equal(out, wanted, (size_t)d * sizeof *out);
            assert_memory_equal(sums, slow, sizeof sums);
            gnomon_context_destroy(ctx);
        }
    }
}

/* Integers within half a scale of the numbers, and what that takes. */
static void queries_are_rounded(void **state)
{
    (void)state;
    enum { MOST = 45 };
    for (int round = 0; round < 400; round++) {
        uint64_t seed = (uint64_t)round;
        const int64_t d = 1 + round % 70;
        const int bits = round % 2 ? 8 : 16, most = bits == 8 ? MOST : 2000;
        const bool whole = round % 3 == 0;
        float x[70], first_scale = 0;
        int16_t first[70] = {0};
        int64_t levels_seen = 0;
        fill(whole ? WHOLE : round % 5 ? ANY : LARGE, x, d, &seed);
        for (int l = 0; l < LEVELS; l++) {
            gnomon_context *ctx = context_at(levels[l], 1, 0);
            if (ctx == NULL) continue;
            gnomon_context_destroy(ctx);
            uint32_t words[70 / 2 + 1] = {0};
            int16_t *out = (int16_t *)words, integers[70] = {0};
            int32_t sum, all = 0;
            float lost;
            double squares = 0;
            out[d] = 77;
            const float scale = gnomon_cpu_kernels(levels[l])->search->round_row(
                x, d, bits, most, whole, words, &lost, &sum);
            assert_int_equal(out[d], 77);
            for (int64_t j = 0; j < d; j++) {
                integers[j] = (int16_t)(bits == 8 ? ((const int8_t *)out)[j] : out[j]);
                const double rest = (double)x[j] - (double)scale * integers[j];
                assert_in_range(integers[j] + most, 0, 2 * most);
                if (scale > 0) assert_true(fabs(rest) <= 0.5001 * (double)scale);
                squares += rest * rest;
                all += integers[j];
            }
            assert_int_equal(all, sum);
            assert_true(squares <=
                            (double)lost * (1 + (double)d * 0x1p-22) + (double)d * 0x1p-124 ||
                        isinf(lost));
            if (whole) assert_true(scale == 1 && lost == 0);
            if (levels_seen++ == 0) {
                memcpy(first, integers, sizeof first);
                first_scale = scale;
            }
            assert_memory_equal(first, integers, sizeof first);
            assert_true(first_scale == scale);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_exact_search),
        cmocka_unit_test(every_allocation_refused_in_turn),
        cmocka_unit_test(queries_are_centred),
        cmocka_unit_test(queries_are_rounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

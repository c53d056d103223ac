/* The pieces that entries are made of: the logarithm, the permutation, the walks. */
#include "operator_testing.h"

#include "operator/operator.h"

#include <stdbool.h>

static void neglog_is_near_the_logarithm(void **state)
{
    (void)state;
    uint64_t random = 1;
    double worst = 0;
    for (int i = 0; i < 300000; i++) {
        /* all magnitudes of the argument, and of its distance from 1 */
        const int64_t span = INT64_C(1) << (1 + draw(&random, 31));
        int64_t h = draw(&random, span);
        if (i & 1) h = INT64_C(0x7FFFFFFF) - h;
        const double argument = ((double)h + 0.5) * 0x1p-31;
        const double exact = argument > 0.5 ? -log1p(argument - 1.0) : -log(argument);
        const double got = gnomon_neglog((uint32_t)h);
        assert_true(got > 0.0);
        const double error = fabs(got - exact) / exact;
        if (error > worst) worst = error;
    }
    assert_true(worst < 0x1p-21);
}

static void table_of_fp16_rises_and_joins_its_tail(void **state)
{
    (void)state;
    const float *table = gnomon_gaussian16_table();
    assert_ptr_equal(table, gnomon_gaussian16_table());
    assert_true(table[0] > 0.0f);
    for (int v = 1; v < 32767; v++)
        assert_true(table[v] >= table[v - 1]);
    assert_true(isnan(table[32767]));
    float last = gnomon_gaussian16_tail(UINT32_MAX);
    assert_true(last >= table[32766]);
    for (uint32_t t = UINT32_MAX; t > 0; t = (uint32_t)(t * 0.999)) {
        const float x = gnomon_gaussian16_tail(t);
        assert_true(x >= last);
        last = x;
    }
    assert_true(gnomon_gaussian16_tail(0) > 7.5f && gnomon_gaussian16_tail(0) < 8.5f);
    /* the quartiles, and one standard deviation */
    assert_true(fabs(table[16384] - 0.6745) < 0.0005);
    assert_true(fabs(table[22370] - 1.0) < 0.0005);
}

static const uint32_t permutation_key[6] = {0x01234567, 0x89ABCDEF, 0xDEADBEEF,
                                            0x00000000, 0xFFFFFFFF, 0x31415926};

static void permutation_is_a_bijection(void **state)
{
    (void)state;
    for (int bits = 0; bits <= 16; bits++) {
        const uint64_t size = UINT64_C(1) << bits;
        unsigned char *seen = calloc(1, size);
        assert_non_null(seen);
        for (uint64_t x = 0; x < size; x++) {
            const uint64_t y = gnomon_perm(x, bits, permutation_key);
            assert_true(y < size);
            assert_int_equal(seen[y], 0);
            seen[y] = 1;
            assert_true(gnomon_perm_inverse(y, bits, permutation_key) == x);
        }
        free(seen);
    }
}

static void permutation_is_inverted_at_every_width(void **state)
{
    (void)state;
    uint64_t random = 2;
    for (int bits = 17; bits <= 56; bits++) {
        for (int i = 0; i < 2000; i++) {
            const uint64_t x =
                (uint64_t)draw(&random, INT64_C(1) << bits > 0x1FFFFFFFFFFFFF ? 0x1FFFFFFFFFFFFF
                                                                              : INT64_C(1) << bits)
                << (bits > 53 ? bits - 53 : 0);
            const uint64_t y = gnomon_perm(x, bits, permutation_key);
            assert_true(y >> bits == 0);
            assert_true(gnomon_perm_inverse(y, bits, permutation_key) == x);
        }
    }
}

static gnomon_operator *simple(gnomon_context *ctx, gnomon_kind kind, int64_t k, int64_t d,
                               double density, int64_t nonzeros)
{
    gnomon_descriptor x = GNOMON_DESCRIPTOR_INIT;
    x.kind = kind;
    x.k = k;
    x.d = d;
    x.seed = 12345;
    x.density = density;
    x.nonzeros = nonzeros;
    return new_operator(ctx, &x);
}

static void sjlt_spreads_a_chunk_evenly(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{64, 4}, {65, 4}, {1000, 3}, {3, 1}, {5, 5}, {5000, 2}};
    gnomon_context *ctx = new_context(1);
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        gnomon_operator *op = simple(ctx, GNOMON_SJLT, shapes[i][0], 1 << 20, 0, shapes[i][1]);
        const gnomon_simple *a = &op->factor[0];
        int64_t *count = calloc((size_t)a->rows, sizeof *count);
        assert_non_null(count);
        const int64_t chunk = 3;
        for (int64_t j = chunk * a->chunk; j < (chunk + 1) * a->chunk; j++) {
            for (int64_t b = 0; b < a->nonzeros; b++) {
                const int64_t row = gnomon_sjlt_row(a, j, b);
                assert_true(row >= gnomon_sjlt_band_first(a, b));
                assert_true(row < gnomon_sjlt_band_first(a, b + 1));
                count[row]++;
            }
        }
        for (int64_t b = 0; b < a->nonzeros; b++) {
            const int64_t first = gnomon_sjlt_band_first(a, b);
            const int64_t end = gnomon_sjlt_band_first(a, b + 1);
            for (int64_t r = first; r < end; r++) {
                assert_true(count[r] >= a->chunk / (end - first));
                assert_true(count[r] <= (a->chunk + end - first - 1) / (end - first));
            }
        }
        free(count);
        gnomon_operator_destroy(op);
    }
    gnomon_context_destroy(ctx);
}

static void sjlt_columns_have_their_nonzeros(void **state)
{
    (void)state;
    enum { ROWS = 130, COLS = 40 };
    gnomon_context *ctx = new_context(1);
    gnomon_operator *op = simple(ctx, GNOMON_SJLT, ROWS, INT64_C(1) << 40, 0, 7);
    const gnomon_simple *a = &op->factor[0];
    static float value[ROWS][COLS];
    const int64_t col = (INT64_C(1) << 39) - 11;
    gnomon_simple_values(a, 0, ROWS, col, COLS, &value[0][0], COLS, 1);
    for (int j = 0; j < COLS; j++) {
        for (int64_t b = 0; b < 7; b++) {
            const int64_t at = gnomon_sjlt_row(a, col + j, b);
            for (int64_t i = gnomon_sjlt_band_first(a, b); i < gnomon_sjlt_band_first(a, b + 1);
                 i++) {
                const uint32_t signs =
                    gnomon_sign_word(a, GNOMON_TAG_SJLT_SIGNS, b, (col + j) >> 5);
                const float sign = (signs >> ((col + j) & 31) & 1) != 0 ? -1.0f : 1.0f;
                assert_true(value[i][j] == (i == at ? sign : 0.0f));
            }
        }
    }
    gnomon_operator_destroy(op);
    gnomon_context_destroy(ctx);
}

/* Walks of whole chunks against single values, and the share of nonzeros against the density. */
static void very_sparse_walks_agree_at_every_density(void **state)
{
    (void)state;
    gnomon_context *ctx = new_context(1);
    static const double density[] = {1.0, 0.5, 0.1, 1e-3, 0 /* 1/sqrt(d) */, 0x1p-30};
    for (size_t n = 0; n < sizeof density / sizeof density[0]; n++) {
        gnomon_operator *op =
            simple(ctx, GNOMON_VERY_SPARSE, 8, INT64_C(1000000000000), density[n], 0);
        const gnomon_simple *a = &op->factor[0];
        assert_true(a->chunk >= 256 && a->chunk <= 1 << 22 && a->chunk % 256 == 0);
        uint32_t *position = malloc((size_t)a->chunk * sizeof *position);
        uint8_t *negative = malloc((size_t)a->chunk);
        float *value = malloc((size_t)a->chunk * sizeof *value);
        assert_true(position != NULL && negative != NULL && value != NULL);
        int64_t found = 0, walked = 0;
        const int64_t last_chunk = (a->cols - 1) / a->chunk;
        for (int64_t chunk = last_chunk > 6 ? last_chunk - 6 : 0; chunk <= last_chunk; chunk++) {
            const int64_t left = a->cols - chunk * a->chunk;
            const int64_t cols = left < a->chunk ? left : a->chunk;
            for (int64_t row = 0; row < 8; row++) {
                const int64_t count = gnomon_very_sparse_walk(a, row, chunk, position, negative);
                gnomon_simple_values(a, row, 1, chunk * a->chunk, cols, value, cols, 1);
                int64_t at = 0;
                for (int64_t j = 0; j < cols; j++) {
                    const bool here = at < count && position[at] == j;
                    const float expected = !here ? 0.0f : negative[at] ? -1.0f : 1.0f;
                    if (value[j] != expected) fail_msg("column %lld", (long long)j);
                    at += here;
                }
                assert_int_equal(at, count);
                found += count;
                walked += cols;
            }
        }
        /* six standard deviations */
        const double expected = (double)walked * a->density;
        assert_true(fabs((double)found - expected) <= 6.0 * sqrt(expected) + 1.0);
        if (a->density == 1.0) assert_int_equal(found, walked);
        free(value);
        free(negative);
        free(position);
        gnomon_operator_destroy(op);
    }
    gnomon_context_destroy(ctx);
}

/* Any sub-rectangle and any strides give what single values give. */
static void values_do_not_depend_on_the_rectangle(void **state)
{
    (void)state;
    gnomon_context *ctx = new_context(1);
    uint64_t random = 3;
    for (int n = 0; n < VARIANTS; n++) {
        if (gnomon_kind_place(variants[n].kind) < 0) continue;
        const gnomon_descriptor d = describe_variant(n, 37, INT64_C(1) << 56);
        gnomon_operator *op = new_operator(ctx, &d);
        const gnomon_simple *a = &op->factor[0];
        for (int i = 0; i < 20; i++) {
            float block[40 * 40], one;
            const int64_t row = draw(&random, 37);
            const int64_t rows = 1 + draw(&random, 37 - row);
            const int64_t cols = 1 + draw(&random, 40);
            const int64_t col = (INT64_C(1) << 56) - cols - (i == 0 ? 0 : draw(&random, 100000));
            const int64_t row_stride = i & 1 ? cols : 1;
            const int64_t col_stride = i & 1 ? 1 : rows;
            gnomon_simple_values(a, row, rows, col, cols, block, row_stride, col_stride);
            for (int repeat = 0; repeat < 30; repeat++) {
                const int64_t r = draw(&random, rows), c = draw(&random, cols);
                gnomon_simple_values(a, row + r, 1, col + c, 1, &one, 1, 1);
                assert_true(one == block[r * row_stride + c * col_stride]);
            }
        }
        gnomon_operator_destroy(op);
    }
    gnomon_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neglog_is_near_the_logarithm),
        cmocka_unit_test(table_of_fp16_rises_and_joins_its_tail),
        cmocka_unit_test(permutation_is_a_bijection),
        cmocka_unit_test(permutation_is_inverted_at_every_width),
        cmocka_unit_test(sjlt_spreads_a_chunk_evenly),
        cmocka_unit_test(sjlt_columns_have_their_nonzeros),
        cmocka_unit_test(very_sparse_walks_agree_at_every_density),
        cmocka_unit_test(values_do_not_depend_on_the_rectangle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

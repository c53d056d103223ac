/* The error bound of single-precision scores: the formula beside chains of fused multiply-adds
 * whose every rounding goes the same way, and a search whose nearest point such a chain puts behind
 * others. */
#include "search_testing.h"

#include "search/centre.h"
#include "search/filter.h"

static const double u = 0x1p-24;

/* Coordinates (1, e, e, ...) with e * e just below half a unit in the last place of 1: each product
 * after the first is lost. */
static const double e_squared = 0.499 * 0x1p-23;

/* The score of the kernels: chains over parts of at most 'most' coordinates, added, less half the
 * squared norm. */
static float score_of(const float *p, const float *b, int64_t steps, int64_t most, float bias)
{
    float sum = 0;
    for (int64_t from = 0; from < steps; from += most) {
        float part = 0;
        for (int64_t j = from; j < steps && j < from + most; j++)
            part = fmaf(p[j], b[j], part);
        sum += part;
    }
    return sum + bias;
}

static void the_bound_holds_where_every_rounding_goes_one_way(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 2, 17, 255, 256, 257, 1000, 5000};
    for (int s = 0; s < 8; s++) {
        for (int64_t most = 64; most <= 256; most *= 4) {
            const int64_t steps = sizes[s];
            float *p = malloc((size_t)steps * sizeof *p);
            /* a 1 at the head of every part */
            for (int64_t j = 0; j < steps; j++)
                p[j] = j % most == 0 ? 1 : (float)sqrt(e_squared);
            long double squares = 0;
            for (int64_t j = 0; j < steps; j++)
                squares += (long double)p[j] * p[j];
            const float bias = (float)(-squares / 2);
            const long double off =
                fabsl((long double)score_of(p, p, steps, most, bias) - squares / 2);
            const double gamma = gnomon_filter_gamma(steps, most);
            /* half of the bound of src/search/filter.c, gamma |P||B| + gamma |B|^2, whose other
             * half is the bias' */
            assert_true((double)off <= gamma * (double)squares);
            /* and it is no more than a few times what such chains lose */
            const int64_t chain = steps < most ? steps : most;
            if (chain > 100)
                assert_true((double)off >= 0.3 * (double)(chain - 1) * u * (double)squares);
            /* the formula: gamma = 1.01 (n + 16) u, n = chain + parts + 1 roundings */
            const int64_t roundings = chain + (steps + most - 1) / most + 1;
            assert_true(fabs(gnomon_filter_gamma(steps, most) -
                             1.01 * (double)(roundings + 16) * u) < 1e-12);
            free(p);
        }
    }
    assert_true(gnomon_filter_gamma(1000, 0) >=
                40 * u); /* integers: what is exact has fewer roundings */
}

static void a_nearest_point_that_rounding_hides_is_found(void **state)
{
    (void)state;
    enum { N = 4000, D = 256, Q = 16 };
    float *base = calloc((size_t)N * D, sizeof *base),
          *asked = calloc((size_t)Q * D, sizeof *asked);
    for (int64_t i = 0; i < N; i++)
        base[i * D] = 1; /* (1, 0, 0, ...), which the scores put before the query's own twin */
    for (int64_t q = 0; q < Q; q++)
        for (int64_t j = 0; j < D; j++)
            asked[q * D + j] = j == 0 ? 1 : (float)sqrt(e_squared);
    memcpy(base + (size_t)(N - 1) * D, asked, D * sizeof *base);
    for (int way = 0; way < 2; way++) {
        gnomon_context *ctx = context_of(1, 0);
        const gnomon_matrix b = gnomon_matrix_rowmajor(base, GNOMON_F32, N, D);
        const gnomon_matrix a = gnomon_matrix_rowmajor(asked, GNOMON_F32, Q, D);
        gnomon_search_options o = GNOMON_SEARCH_OPTIONS_INIT;
        gnomon_neighbors found = {.struct_size = sizeof found};
        gnomon_search *search;
        o.metric = way ? GNOMON_IP : GNOMON_L2;
        o.k = 1;
        expect(ctx, gnomon_search_create(ctx, &a, &o, &search), GNOMON_OK);
        /* single precision about the origin: whatever the centre is, the answers are exact */
        expect(ctx, gnomon_centre_estimate(search, &b), GNOMON_OK);
        search->centre.bits = 32;
        search->centre.scale = 1;
        search->centre.norm = 0;
        search->centre.whole = false;
        memset(search->centre.mean, 0, D * sizeof *search->centre.mean);
        memset(search->centre.mean64, 0, D * sizeof *search->centre.mean64);
        expect(ctx, gnomon_search_add(search, &b), GNOMON_OK);
        expect(ctx, gnomon_search_finish(search, &found), GNOMON_OK);
        for (int64_t q = 0; q < Q; q++)
            assert_int_equal(found.ids[q], N - 1);
        gnomon_search_destroy(search);
        gnomon_neighbors_free(ctx, &found);
        gnomon_context_destroy(ctx);
    }
    free(base);
    free(asked);
}

/* Coordinates of a query that fp32 does not hold are infinite: integers of them are in their range
 * all the same. */
static void coordinates_beyond_fp32_are_rounded(void **state)
{
    (void)state;
    enum { STEPS = 48, MOST = 100 };
    gnomon_search_kernels kernels = *gnomon_cpu_kernels("portable")->search;
    kernels.quads = (gnomon_quads){.most = MOST, .shift = 128, .words = 1};
    const gnomon_filter_query facts = {.norm = INFINITY};
    for (int bits = 8; bits <= 16; bits += 8) {
        float x[STEPS];
        uint32_t out[STEPS];
        gnomon_filter filter = {0};
        for (int j = 0; j < STEPS; j++)
            x[j] = j % 3 == 0 ? (float)(j - 20) : j % 3 == 1 ? INFINITY : -INFINITY;
        gnomon_filter_round(x, STEPS, bits, MOST, &kernels, &facts, &filter, out);
        int sum = 0;
        for (int j = 0; j < STEPS; j++) {
            const int v = bits == 8 ? ((const int8_t *)out)[j] : ((const int16_t *)out)[j];
            assert_in_range(v + MOST, 0, 2 * MOST);
            sum += v;
        }
        if (bits == 8) assert_int_equal(filter.start, -kernels.quads.shift * sum);
        x[1] = x[4] = 1; /* an odd number of them */
        gnomon_filter_round(x, STEPS, bits, MOST, &kernels, &facts, &filter, out);
        assert_true(bits == 16 || abs(filter.start) <= kernels.quads.shift * STEPS * MOST);
    }
}

/* Where products are summed in 16 bits a query's integers are as large as these sums hold, whatever
 * their signs, and no smaller than that asks for. */
static void products_of_a_query_fit_in_16_bits(void **state)
{
    (void)state;
    enum { STEPS = 200, PATTERNS = 5 };
    const gnomon_search_kernels *kernels = gnomon_cpu_kernels("portable")->search;
    const gnomon_quads *quads = &kernels->quads;
    const int run = 4 * quads->halves, room = 2 * quads->most;
    uint64_t drawn = 5;
    assert_true(run > 0);
    for (int pattern = 0; pattern < PATTERNS; pattern++) {
        float x[STEPS];
        uint32_t out[STEPS];
        const gnomon_filter_query facts = {.norm = 10, .whole = pattern == 4};
        gnomon_filter filter = {0};
        for (int j = 0; j < STEPS; j++)
            x[j] = pattern == 0   ? 1
                   : pattern == 1 ? (float)(1 - j % 2 * 2)
                   : pattern == 2 ? (float)(draw(&drawn) - 0.5)
                   : pattern == 3 ? (j == 17 ? -1 : 0.01F)
                                  : (float)(j % 120);
        gnomon_filter_round(x, STEPS, 8, quads->most, kernels, &facts, &filter, out);
        const int8_t *bytes = (const int8_t *)out;
        int largest = 0;
        for (int j = 0; j < (STEPS + run - 1) / run * run; j += 2) {
            int most[2] = {0};
            for (int i = j / run * run + j / 2 % 2 * 2; i < (j / run + 1) * run; i += 4) {
                for (int c = 0; c < 2; c++)
                    most[bytes[i + c] < 0] += abs(bytes[i + c]);
            }
            largest = most[0] > largest ? most[0] : largest;
            largest = most[1] > largest ? most[1] : largest;
        }
        assert_true(largest * room <= INT16_MAX);
        if (pattern < 3) assert_true(largest * room > INT16_MAX * 9 / 10);
        if (pattern == 3) assert_int_equal(bytes[17], -127);
        for (int j = 0; j < STEPS; j++)
            assert_true(fabsf(x[j] - filter.scale * bytes[j]) <= 0.501F * filter.scale);
        assert_true(pattern != 4 || filter.whole == INFINITY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bound_holds_where_every_rounding_goes_one_way),
        cmocka_unit_test(a_nearest_point_that_rounding_hides_is_found),
        cmocka_unit_test(coordinates_beyond_fp32_are_rounded),
        cmocka_unit_test(products_of_a_query_fit_in_16_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

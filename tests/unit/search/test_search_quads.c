/* Filters of 8-bit coordinates, and bits, at every level the machine has, against every pair in
 * fp64: answers, order, bits. */
#include "search_testing.h"

#include "base/isa.h"
#include "search/centre.h"

#include <sys/mman.h>
#include <unistd.h>

typedef enum kind {
    BELL,
    BYTES,
    SIGNS,
    ZEROS,
    TAILS,
    ONE_COLUMN,
    SCALES,
    TINY,
    EQUAL,
    ONE_SIGN,
    KINDS
} kind;

static const char *const names[] = {"bell",       "bytes",  "signs", "zeros", "tails",
                                    "one column", "scales", "tiny",  "equal", "one sign"};

static float value_of(kind like, int64_t row, int64_t col, uint64_t *state)
{
    const double x = draw(state);
    switch (like) {
    case BYTES:
        return (float)(draw_bits(state) % 256);
    case SIGNS:
        return draw_bits(state) % 2 ? 1 : -1;
    case ZEROS:
        return row % 3 == 1 ? 0 : (float)x;
    case TAILS:
        return (float)(x * x * x * x * x * 100);
    case ONE_COLUMN:
        return col == 3 ? (float)x : 0;
    case SCALES:
        return (float)ldexp(x, (int)(row % 61 - 30) * 3);
    case TINY:
        return (float)(x * 1e-41);
    case EQUAL:
        return 0.3F;
    case ONE_SIGN: /* of all of a point: sums of products are as large as can be */
        return (float)((row % 2 ? 1 : -1) * (1 + 0.01 * x));
    default:
        return (float)x;
    }
}

static float *make(kind like, int64_t rows, int64_t cols, uint64_t seed)
{
    float *x = malloc((size_t)(rows * cols) * sizeof *x);
    uint64_t state = seed;
    for (int64_t i = 0; i < rows * cols; i++)
        x[i] = value_of(like, i / cols, i % cols, &state);
    return x;
}

enum { MOST_N = 1100, MOST_D = 200 };

/* All answers of one query, sorted. */
static void answers_of(gnomon_metric metric, const float *base, int64_t n, const float *query,
                       int64_t d, answer *out)
{
    double q[MOST_D], b[MOST_D];
    for (int64_t j = 0; j < d; j++)
        q[j] = (double)query[j];
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < d; j++)
            b[j] = (double)base[i * d + j];
        out[i] = (answer){distance_of(metric, q, b, d), i};
    }
    answer_sign = metric == GNOMON_IP ? -1 : 1;
    qsort(out, (size_t)n, sizeof *out, by_distance);
}

typedef struct job {
    kind like;
    gnomon_metric metric;
    int64_t n, d, queries, piece;
} job;

static gnomon_neighbors search_in(gnomon_context *ctx, const job *w, const float *base,
                                  const float *asked, const gnomon_search_options *o)
{
    const gnomon_matrix a = gnomon_matrix_rowmajor((void *)asked, GNOMON_F32, w->queries, w->d);
    gnomon_neighbors found = {.struct_size = sizeof found};
    gnomon_search *s;
    expect(ctx, gnomon_search_create(ctx, &a, o, &s), GNOMON_OK);
    for (int64_t from = 0; from < w->n; from += w->piece) {
        const int64_t rows = w->n - from < w->piece ? w->n - from : w->piece;
        const gnomon_matrix b =
            gnomon_matrix_rowmajor((void *)(base + from * w->d), GNOMON_F32, rows, w->d);
        expect(ctx, gnomon_centre_estimate(s, &b), GNOMON_OK);
        s->centre.bits = 8;
        s->centre.most = s->kernels->quads.most;
        expect(ctx, gnomon_search_add(s, &b), GNOMON_OK);
    }
    expect(ctx, gnomon_search_finish(s, &found), GNOMON_OK);
    gnomon_search_destroy(s);
    return found;
}

static void check_job(const job *w)
{
    float *base = make(w->like, w->n, w->d, 1), *asked = make(w->like, w->queries, w->d, 2);
    answer *all = malloc((size_t)(w->queries * w->n) * sizeof *all);
    for (int64_t q = 0; q < w->queries; q++)
        answers_of(w->metric, base, w->n, asked + q * w->d, w->d, all + q * w->n);
    for (int level = 0; level < GNOMON_ISA_COUNT; level++) {
        if (!gnomon_isa_available((gnomon_isa)level)) continue;
        const char *isa = gnomon_isa_name((gnomon_isa)level);
        for (int way = 0; way < 3; way++) {
            gnomon_search_options o = GNOMON_SEARCH_OPTIONS_INIT;
            o.metric = w->metric;
            o.k = way == 0 ? 1 : way == 1 ? 7 : 0;
            if (way == 2) o.radius = all[w->n / 40].distance;
            assert_int_equal(setenv("GNOMON_ISA", isa, 1), 0);
            gnomon_context *ctx = context_of(1 + way % 2, 0);
            gnomon_neighbors found = search_in(ctx, w, base, asked, &o);
            for (int64_t q = 0; q < w->queries; q++) {
                const answer *right = all + q * w->n;
                int64_t count = o.k;
                while (way == 2 && count < w->n &&
                       !(answer_sign * right[count].distance > answer_sign * o.radius))
                    count++;
                const int64_t at = found.offsets[q], got = found.offsets[q + 1] - at;
                if (got != count)
                    fail_msg("%s, %s: %lld answers, not %lld", isa, names[w->like], (long long)got,
                             (long long)count);
                for (int64_t i = 0; i < count; i++)
                    if (found.ids[at + i] != right[i].id ||
                        found.distances[at + i] != right[i].distance)
                        fail_msg("%s, %s, metric %d, query %lld, answer %lld: %lld at %a, not %lld "
                                 "at %a",
                                 isa, names[w->like], (int)w->metric, (long long)q, (long long)i,
                                 (long long)found.ids[at + i], found.distances[at + i],
                                 (long long)right[i].id, right[i].distance);
            }
            gnomon_neighbors_free(ctx, &found);
            gnomon_context_destroy(ctx);
        }
    }
    unsetenv("GNOMON_ISA");
    free(base);
    free(asked);
    free(all);
}

static void every_level_finds_the_same(void **state)
{
    (void)state;
    static const gnomon_metric metrics[] = {GNOMON_L2, GNOMON_COSINE, GNOMON_IP};
    for (int like = 0; like < KINDS; like++)
        for (int m = 0; m < 3; m++)
            check_job(&(job){(kind)like, metrics[m], 700, 17 + 16 * m, 33, 450});
}

/* Rows and columns that fill the kernels' blocks, and one more or less. */
static void every_size_of_block(void **state)
{
    (void)state;
    static const int64_t dims[] = {16, 63, 64, 65, 130, MOST_D};
    static const int64_t queries[] = {2, 12, 31, 32, 64, 71};
    static const int64_t rows[] = {15, 16, 17, 48, 1030, MOST_N};
    for (int i = 0; i < 6; i++)
        check_job(&(job){BELL, GNOMON_L2, rows[i], dims[i], queries[5 - i], MOST_N});
}

/* Bits in rows of some words and a few bytes, of a number that fills no group; many ties. */
static void check_bits(gnomon_context *ctx, int64_t bytes, int64_t n, int64_t queries)
{
    uint8_t *x = malloc((size_t)((n + queries) * bytes)), *asked = x + n * bytes;
    answer *all = malloc((size_t)n * sizeof *all);
    uint64_t state = 3;
    for (int64_t i = 0; i < (n + queries) * bytes; i++)
        x[i] = (uint8_t)(draw_bits(&state) & draw_bits(&state));
    const gnomon_matrix b = gnomon_matrix_rowmajor(x, GNOMON_U8, n, bytes);
    const gnomon_matrix a = gnomon_matrix_rowmajor(asked, GNOMON_U8, queries, bytes);
    gnomon_search_options o = GNOMON_SEARCH_OPTIONS_INIT;
    gnomon_neighbors found = {.struct_size = sizeof found};
    o.metric = GNOMON_HAMMING;
    o.k = n < 9 ? n : 9;
    expect(ctx, gnomon_neighbors_exact(ctx, &b, &a, &o, &found), GNOMON_OK);
    answer_sign = 1;
    for (int64_t q = 0; q < queries; q++) {
        for (int64_t i = 0; i < n; i++) {
            int differ = 0;
            for (int64_t j = 0; j < bytes; j++)
                differ += __builtin_popcount(x[i * bytes + j] ^ asked[q * bytes + j]);
            all[i] = (answer){differ, i};
        }
        qsort(all, (size_t)n, sizeof *all, by_distance);
        for (int64_t i = 0; i < o.k; i++)
            if (found.ids[q * o.k + i] != all[i].id ||
                found.distances[q * o.k + i] != all[i].distance)
                fail_msg("%lld bytes, %lld points, query %lld, answer %lld", (long long)bytes,
                         (long long)n, (long long)q, (long long)i);
    }
    gnomon_neighbors_free(ctx, &found);
    free(x);
    free(all);
}

static void bits_at_every_level(void **state)
{
    (void)state;
    static const int64_t bytes[] = {1, 8, 13, 16, 24, 32, 64, 100, 512, 520};
    for (int level = 0; level < GNOMON_ISA_COUNT; level++) {
        if (!gnomon_isa_available((gnomon_isa)level)) continue;
        assert_int_equal(setenv("GNOMON_ISA", gnomon_isa_name((gnomon_isa)level), 1), 0);
        gnomon_context *ctx = context_of(2, 0);
        for (int i = 0; i < 10; i++) {
            check_bits(ctx, bytes[i], 1003, 9);
            check_bits(ctx, bytes[i], 33, 4);
            check_bits(ctx, bytes[i], 5, 3);
        }
        gnomon_context_destroy(ctx);
    }
    unsetenv("GNOMON_ISA");
}

/* Sums of several rows at once have the bits of one row's sum. */
static void sums_of_several_rows(void **state)
{
    (void)state;
    enum { ROWS = 11, MOST = 100 };
    static const int64_t sizes[] = {1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 47, 64, MOST};
    uint64_t drawn = 3;
    for (int level = 0; level < GNOMON_ISA_COUNT; level++) {
        if (!gnomon_isa_available((gnomon_isa)level)) continue;
        const gnomon_search_kernels *k =
            gnomon_cpu_kernels(gnomon_isa_name((gnomon_isa)level))->search;
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            const int64_t d = sizes[i];
            float x[ROWS * MOST];
            double q[MOST];
            const float *rows[ROWS];
            for (int64_t j = 0; j < d; j++)
                q[j] = draw(&drawn);
            for (int64_t j = 0; j < ROWS * d; j++)
                x[j] = (float)ldexp(draw(&drawn), (int)(draw_bits(&drawn) % 60) - 30);
            for (int64_t r = 0; r < ROWS; r++)
                rows[r] = x + (ROWS - 1 - r) * d;
            for (int64_t count = 0; count <= ROWS; count++) {
                double apart[ROWS + 1], along[ROWS + 1];
                apart[count] = along[count] = -7;
                k->differences_rows(q, rows, count, d, apart);
                k->products_rows(q, rows, count, d, along);
                for (int64_t r = 0; r < count; r++) {
                    const double one = k->differences(q, rows[r], GNOMON_F32, 1, d, 1);
                    const double other = k->products(q, rows[r], GNOMON_F32, 1, d, 1);
                    assert_memory_equal(&apart[r], &one, sizeof one);
                    assert_memory_equal(&along[r], &other, sizeof other);
                }
                assert_true(apart[count] == -7 && along[count] == -7);
            }
        }
    }
}

static void check_bytes(const gnomon_search_kernels *k, gnomon_packing *rows, const float *with,
                        bool integers, int64_t words, uint32_t *out)
{
    enum { LANES = GNOMON_LANES };
    const int64_t d = rows->d;
    const float scale = k->quarter_rows(rows, integers, out);
    for (int l = 0; l < LANES; l++) {
        long double square = 0, dot = 0, gone = 0;
        for (int64_t j = 0; j < words * 4; j++) {
            const float by = j < d ? rows->lane[l][j] * rows->factor : 0;
            const float c = j < d ? by - rows->mean[j] : 0;
            const uint32_t word = out[j / 4 * LANES + l];
            const int q = (int8_t)((word >> j % 4 * 8) - (uint32_t)k->quads.shift);
            const long double rest = (long double)c - (long double)scale * q;
            assert_true(q >= -k->quads.most && q <= k->quads.most && (j < d || q == 0));
            square += (long double)c * c;
            dot += j < d ? (long double)c * with[j] : 0;
            gone += rest * rest;
        }
        const long double share = (long double)d * 0x1p-22L, under = (long double)d * 0x1p-124L;
        assert_true(fabsl(rows->squares[l] - square) <= (long double)d * 0x1p-52L * square);
        if (rows->with != NULL)
            assert_true(fabsl(rows->dots[l] - dot) <=
                        (long double)d * 0x1p-52L * (square + 100 * 100 * d));
        assert_true(gone <= rows->lost[l] * (1 + share) + under);
        assert_true(gone > 0x1p126L || rows->lost[l] <= gone * (1 + 4 * share) + under);
    }
}

/* Points straight from their rows: what is told of them is so, and nothing behind a row is read. */
static void check_rows(const gnomon_search_kernels *k, kind like, int64_t d, char *end)
{
    enum { LANES = GNOMON_LANES };
    float mean[MOST_D], with[MOST_D], most = 0;
    uint64_t drawn = (uint64_t)d + 7;
    const float factor = like == BYTES ? 1 : 0.5F;
    bool whole = true;
    float *x = (float *)(void *)end - LANES * d;
    for (int64_t j = 0; j < d; j++)
        mean[j] = like == BYTES ? 100 : (float)(0.3 * draw(&drawn));
    for (int64_t j = 0; j < d; j++)
        with[j] = (float)j * mean[d - 1 - j] / (float)d;
    for (int64_t i = 0; i < LANES * d; i++)
        x[i] = value_of(like, i / d, i % d, &drawn);
    const int64_t padded = (d + k->quads.words * 4 - 1) / (k->quads.words * 4);
    const int64_t words = padded * k->quads.words;
    uint32_t *out = malloc((size_t)(words * LANES) * sizeof *out);
    int8_t *bytes = malloc((size_t)(LANES * (d + 64)));
    gnomon_packing rows = {.d = d,
                           .mean = mean,
                           .with = d % 3 == 0 ? NULL : with,
                           .factor = factor,
                           .most = k->quads.most,
                           .integers = d % 2 == 0,
                           .bytes = bytes};
    for (int l = 0; l < LANES; l++)
        rows.lane[l] = x + (LANES - 1 - l) * d;
    for (int64_t i = 0; i < LANES * d; i++) {
        const float by = x[i] * factor;
        whole = whole && by == rintf(by);
        most = fmaxf(most, fabsf(by - mean[i % d]));
    }
    /* without a guess, by what followed, and by some that do not hold */
    const float guesses[] = {0, 0, 2 * most, 0.999F * most, -1};
    for (int i = 0; i < 5; i++) {
        if (i != 1) rows.guess = guesses[i];
        k->survey_rows(&rows);
        assert_true(rows.peak == most);
        assert_true(rows.whole == (whole && (rows.integers || rows.with != NULL)));
        check_bytes(k, &rows, with, like == BYTES, words, out);
    }
    /* a number that is none is seen */
    x[LANES * d - 1] = like == BELL ? NAN : INFINITY;
    for (int i = 0; i < 2; i++) {
        rows.guess = i == 0 ? 0 : 1;
        k->survey_rows(&rows);
        assert_false(rows.whole);
        assert_false(rows.peak < HUGE_VALF || rows.squares[0] < HUGE_VAL);
        assert_true(isnan(k->quarter_rows(&rows, false, out)));
    }
    free(bytes);
    free(out);
}

static void points_straight_from_rows(void **state)
{
    (void)state;
    static const kind kinds[] = {BELL, BYTES, ZEROS, TINY, SCALES};
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), room = 8 * page;
    char *map = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(map != MAP_FAILED);
    assert_int_equal(mprotect(map + room, page, PROT_NONE), 0);
    for (int level = 0; level < GNOMON_ISA_COUNT; level++) {
        if (!gnomon_isa_available((gnomon_isa)level)) continue;
        const gnomon_search_kernels *k =
            gnomon_cpu_kernels(gnomon_isa_name((gnomon_isa)level))->search;
        for (int64_t d = 1; d <= MOST_D && k->survey_rows != NULL; d++)
            for (int i = 0; i < 5; i++)
                check_rows(k, kinds[i], d, map + room);
    }
    assert_int_equal(munmap(map, room + page), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_of_several_rows), cmocka_unit_test(points_straight_from_rows),
        cmocka_unit_test(bits_at_every_level),  cmocka_unit_test(every_level_finds_the_same),
        cmocka_unit_test(every_size_of_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

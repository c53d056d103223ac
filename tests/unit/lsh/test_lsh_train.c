/* Centres by training: against slow iterations in fp64; the same whatever the threads, the level,
 * the layout and how points come; points with few places, or beyond fp32; what is refused; every
 * allocation refused in turn. */
#include "lsh/families/family.h"
#include "lsh/tune/tune.h"
#include "miser.h"
#include "project.h"

#include <float.h>

static gnomon_context *ctx;

static int open_context(void **state)
{
    (void)state;
    ctx = make_context(2, 0);
    return 0;
}

static int close_context(void **state)
{
    (void)state;
    gnomon_context_destroy(ctx);
    return 0;
}

enum { N = 700, D = 9, MOST = 40, EACH = 32, FIRST_EACH = 16, FIRST = 2, ROUNDS = 6 };

static const gnomon_lsh_family families[] = {GNOMON_LSH_KMEANS, GNOMON_LSH_SPHERICAL_KMEANS};

/* Clusters of numbers in [-1, 1), 'whole' of sixteenths: then many distances are equal. */
static float *make_points(uint64_t seed, bool whole)
{
    float *x = malloc(N * D * sizeof *x), centres[12 * D];
    assert_non_null(x);
    for (int i = 0; i < 12 * D; i++)
        centres[i] = (float)(next_uniform(&seed) * 0.75);
    for (int i = 0; i < N; i++) {
        const int c = (int)(next_random(&seed) % 12);
        for (int j = 0; j < D; j++) {
            const float v = centres[c * D + j] + (float)next_uniform(&seed) / 4;
            x[i * D + j] = whole ? floorf(v * 4) / 16 : v;
        }
    }
    return x;
}

/* ---- slow iterations ---- */

static double norm_of(const double *x)
{
    double sum = 0;
    for (int j = 0; j < D; j++)
        sum += x[j] * x[j];
    return sqrt(sum);
}

/* By l2, or 1 - cos. */
static double distance_of(const double *x, const float *c, bool cosine)
{
    double sum = 0, y[D];
    for (int j = 0; j < D; j++) {
        y[j] = (double)c[j];
        sum += cosine ? x[j] * y[j] : (x[j] - y[j]) * (x[j] - y[j]);
    }
    if (!cosine) return sqrt(sum);
    const double both = norm_of(x) * norm_of(y);
    return both > 0 ? 1 - sum / both : 1;
}

static void slow_round(const double *x, int64_t n, int count, bool cosine, float *centres)
{
    int *own = malloc((size_t)n * sizeof *own);
    double *far = malloc((size_t)n * sizeof *far);
    int members[MOST] = {0};
    double sums[MOST][D] = {{0}};
    assert_true(own != NULL && far != NULL);
    for (int64_t i = 0; i < n; i++) {
        far[i] = INFINITY;
        for (int c = 0; c < count; c++) {
            const double d = distance_of(x + i * D, centres + c * D, cosine);
            if (d < far[i]) {
                far[i] = d;
                own[i] = c;
            }
        }
        members[own[i]]++;
    }
    for (int64_t i = 0; i < n; i++) {
        double factor = 1 / (double)members[own[i]];
        if (cosine) factor *= 1 / norm_of(x + i * D);
        for (int j = 0; j < D; j++)
            sums[own[i]][j] += x[i * D + j] * factor;
    }
    for (int c = 0; c < count; c++)
        for (int j = 0; j < D && members[c] > 0; j++)
            centres[c * D + j] = (float)sums[c][j];
    for (int c = 0; c < count; c++) {
        int64_t best = 0;
        if (members[c] > 0) continue;
        for (int64_t i = 1; i < n; i++)
            if (far[i] > far[best]) best = i;
        if (!(far[best] > 0)) break;
        for (int j = 0; j < D; j++)
            centres[c * D + j] = (float)x[best * D + j];
        far[best] = 0;
    }
    free(own);
    free(far);
}

static void slow_train(const gnomon_matrix *m, int count, uint64_t seed, bool cosine,
                       float *centres)
{
    const int64_t n = m->rows < count * EACH ? m->rows : count * EACH;
    int64_t *rows = malloc((size_t)n * sizeof *rows);
    double *x = malloc((size_t)n * D * sizeof *x);
    assert_true(rows != NULL && x != NULL);
    gnomon_some_rows_draw(m->rows, seed, 0, n, rows);
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < D; j++)
            x[i * D + j] = element(m, rows[i], j);
    for (int i = 0; i < count * D; i++)
        centres[i] = (float)x[i];
    for (int round = 0; round < ROUNDS; round++)
        slow_round(x, round < FIRST && n > count * FIRST_EACH ? count * FIRST_EACH : n, count,
                   cosine, centres);
    free(rows);
    free(x);
}

static void centres_are_those_of_slow_iterations(void **state)
{
    (void)state;
    for (int round = 0; round < 12; round++) {
        const bool cosine = round % 2 == 1;
        const int count = round < 4 ? 5 : round < 8 ? 11 : MOST;
        float *x = make_points((uint64_t)round, !cosine && round % 4 == 2);
        const gnomon_matrix m = gnomon_matrix_rowmajor(x, GNOMON_F32, N, D);
        float centres[MOST * D], slow[MOST * D];
        ASSERT_OK(ctx,
                  gnomon_lsh_train(ctx, families[cosine], &m, count, (uint64_t)round + 7, centres));
        slow_train(&m, count, (uint64_t)round + 7, cosine, slow);
        /* of cosine norms are added in another order */
        if (!cosine) assert_memory_equal(centres, slow, (size_t)(count * D) * sizeof *slow);
        for (int i = 0; i < count * D; i++)
            assert_true(fabsf(centres[i] - slow[i]) <= 1e-6f);
        free(x);
    }
}

/* ---- the same ---- */

static void same_whatever_threads_and_level(void **state)
{
    (void)state;
    static const char *const levels[] = {"portable", "avx2", "avx512", "avx512_vnni", "amx"};
    float *x = make_points(1, false);
    const gnomon_matrix m = gnomon_matrix_rowmajor(x, GNOMON_F32, N, D);
    for (int f = 0; f < 2; f++) {
        float first[MOST * D], centres[MOST * D];
        ASSERT_OK(ctx, gnomon_lsh_train(ctx, families[f], &m, MOST, 3, first));
        for (int round = 0; round < 8; round++) {
            gnomon_context *other;
            gnomon_context_options c = GNOMON_CONTEXT_OPTIONS_INIT;
            c.device = "cpu";
            c.threads = round == 0 ? 1 : round == 1 ? 4 : 2;
            c.memory_limit = round == 2 ? 20000 : 0;
            if (round > 2) setenv("GNOMON_ISA", levels[round - 3], 1);
            const gnomon_status status = gnomon_context_create(&c, &other);
            unsetenv("GNOMON_ISA");
            if (status != GNOMON_OK) continue; /* not this processor's */
            ASSERT_OK(other, gnomon_lsh_train(other, families[f], &m, MOST, 3, centres));
            assert_memory_equal(centres, first, sizeof first);
            gnomon_context_destroy(other);
        }
        ASSERT_OK(ctx, gnomon_lsh_train(ctx, families[f], &m, MOST, 4, centres));
        assert_memory_not_equal(centres, first, sizeof first);
    }
    free(x);
}

/* Points are as good as their numbers, in any type and layout. */
static void same_of_every_type_and_layout(void **state)
{
    (void)state;
    for (int f = 0; f < 2; f++)
        for (int type = GNOMON_F32; type <= GNOMON_U64; type++)
            for (int layout = 0; layout < LAYOUTS; layout += 3) {
                uint64_t seed = 5;
                owned x = make_matrix(N, D, (gnomon_dtype)type, layout);
                double *numbers = malloc(N * D * sizeof *numbers);
                assert_non_null(numbers);
                for (int i = 0; i < N; i++)
                    for (int j = 0; j < D; j++) {
                        set_element(&x.m, i, j, 0.125 + (double)(next_random(&seed) % 6) / 8);
                        numbers[i * D + j] = element(&x.m, i, j);
                    }
                const gnomon_matrix same = gnomon_matrix_rowmajor(numbers, GNOMON_F64, N, D);
                float centres[7 * D], wanted[7 * D];
                ASSERT_OK(ctx, gnomon_lsh_train(ctx, families[f], &same, 7, 3, wanted));
                ASSERT_OK(ctx, gnomon_lsh_train(ctx, families[f], &x.m, 7, 3, centres));
                assert_memory_equal(centres, wanted, sizeof wanted);
                free(numbers);
                free_matrix(&x);
            }
}

/* ---- read piece by piece ---- */

typedef struct rows {
    const gnomon_matrix *m;
    int64_t before, reads, failing; /* the read that fails; -1: none */
} rows;

static gnomon_status read_row(void *user, int64_t first, const gnomon_matrix *to)
{
    rows *r = user;
    assert_true(first > r->before && first + to->rows <= r->m->rows);
    assert_true(to->cols == D && to->col_stride == 1 && to->dtype == r->m->dtype);
    r->before = first + to->rows - 1;
    if (r->reads == r->failing) return GNOMON_ERROR_TRUNCATED;
    r->reads += to->rows;
    for (int64_t i = 0; i < to->rows; i++)
        memcpy((float *)to->data + i * to->row_stride, (float *)r->m->data + (first + i) * D,
               D * sizeof(float));
    return GNOMON_OK;
}

static void read_piece_by_piece(void **state)
{
    (void)state;
    float *x = make_points(2, false), centres[MOST * D], wanted[MOST * D];
    const gnomon_matrix m = gnomon_matrix_rowmajor(x, GNOMON_F32, N, D);
    gnomon_join_points p = {.rows = N, .cols = D, .dtype = GNOMON_F32, .read = read_row};
    for (int count = 2; count <= MOST; count += 9) {
        rows r = {&m, -1, 0, -1};
        p.user = &r;
        const gnomon_lsh_family family = families[count % 2];
        ASSERT_OK(ctx, gnomon_lsh_train(ctx, family, &m, count, 9, wanted));
        ASSERT_OK(ctx, gnomon_lsh_train_stream(ctx, family, &p, count, 9, centres));
        assert_memory_equal(centres, wanted, (size_t)(count * D) * sizeof *wanted);
        assert_int_equal(r.reads, count * EACH < N ? count * EACH : N);
    }
    rows r = {&m, -1, 0, 3};
    p.user = &r;
    assert_int_equal(gnomon_lsh_train_stream(ctx, families[0], &p, 4, 9, centres),
                     GNOMON_ERROR_TRUNCATED);
    x[333 * D + 4] = NAN;
    r = (rows){&m, -1, 0, -1};
    ASSERT_FAILS(ctx, gnomon_lsh_train_stream(ctx, families[0], &p, MOST, 9, centres),
                 GNOMON_ERROR_NONFINITE, "points has NaN or infinity in row 333, column 4");
    ASSERT_FAILS(ctx, gnomon_lsh_train(ctx, families[0], &m, MOST, 9, centres),
                 GNOMON_ERROR_NONFINITE, "points has NaN or infinity in row 333, column 4");
    p.read = NULL;
    ASSERT_FAILS(ctx, gnomon_lsh_train_stream(ctx, families[0], &p, 4, 9, centres),
                 GNOMON_ERROR_ARGUMENT, "points.read is NULL");
    p.read = read_row;
    p.rows = -1;
    ASSERT_FAILS(ctx, gnomon_lsh_train_stream(ctx, families[0], &p, 4, 9, centres),
                 GNOMON_ERROR_SHAPE, "negative");
    p.rows = 3;
    ASSERT_FAILS(ctx, gnomon_lsh_train_stream(ctx, families[0], &p, 4, 9, centres),
                 GNOMON_ERROR_ARGUMENT, "at most the 3 points");
    p.dtype = (gnomon_dtype)99;
    ASSERT_FAILS(ctx, gnomon_lsh_train_stream(ctx, families[0], &p, 2, 9, centres),
                 GNOMON_ERROR_DTYPE, "99");
    free(x);
}

static void train_behind(const gnomon_matrix *m, gnomon_lsh_family family, int64_t count,
                         int64_t skip, float *centres)
{
    gnomon_lsh_behind behind = {.points = m, .seed = 4, .skip = skip};
    int32_t lists[N];
    for (int i = 0; i < N; i++)
        lists[i] = -1;
    ASSERT_OK(ctx,
              gnomon_assign_open(ctx, gnomon_family_row_of(family)->centres, m, &behind.assign));
    ASSERT_OK(ctx, gnomon_lsh_train_behind(ctx, family, &behind, count, 0, GNOMON_LSH_BRIEF_ROUNDS,
                                           centres, lists));
    ASSERT_OK(ctx, gnomon_lsh_train_behind(ctx, family, &behind, count, GNOMON_LSH_BRIEF_ROUNDS,
                                           GNOMON_LSH_ROUNDS, centres, lists));
    gnomon_assign_close(behind.assign);
}

/* Points that come first in the seed's order are not looked at, whatever they are; and without such
 * these are the centres of all. */
static void behind_some_points(void **state)
{
    (void)state;
    enum { SKIP = 350, COUNT = 8 };
    float *x = make_points(6, false), centres[COUNT * D], wanted[COUNT * D];
    const gnomon_matrix m = gnomon_matrix_rowmajor(x, GNOMON_F32, N, D);
    const gnomon_lsh_behind behind = {.points = &m, .seed = 4, .skip = N - 2};
    int64_t first[SKIP];
    gnomon_some_rows_draw(N, 4, 0, SKIP, first);
    for (int f = 0; f < 2; f++) {
        train_behind(&m, families[f], COUNT, SKIP, wanted);
        for (int i = 0; i < SKIP; i++)
            for (int j = 0; j < D; j++)
                x[first[i] * D + j] = (float)(f + j) * -3;
        train_behind(&m, families[f], COUNT, SKIP, centres);
        assert_memory_equal(centres, wanted, sizeof wanted);
        ASSERT_OK(ctx, gnomon_lsh_train(ctx, families[f], &m, COUNT, 4, centres));
        assert_true(memcmp(centres, wanted, sizeof wanted) != 0);
        train_behind(&m, families[f], COUNT, 0, wanted);
        assert_memory_equal(centres, wanted, sizeof wanted);
    }
    ASSERT_FAILS(ctx, gnomon_lsh_train_behind(ctx, families[0], &behind, 3, 0, 1, centres, NULL),
                 GNOMON_ERROR_ARGUMENT, "at most the 2 points");
    free(x);
}

/* ---- odd points ---- */

/* Each place has a centre of its own; the centres that are over stay where they began. */
static void fewer_places_than_centres(void **state)
{
    (void)state;
    for (int f = 0; f < 2; f++)
        for (int places = 1; places <= 4; places++) {
            float x[60 * D], centres[10 * D];
            for (int i = 0; i < 60; i++)
                for (int j = 0; j < D; j++)
                    x[i * D + j] = j == i % places ? 3 : 0;
            const gnomon_matrix m = gnomon_matrix_rowmajor(x, GNOMON_F32, 60, D);
            ASSERT_OK(ctx, gnomon_lsh_train(ctx, families[f], &m, 10, 0, centres));
            for (int p = 0; p < places; p++) {
                int there = 0;
                for (int c = 0; c < 10; c++) {
                    bool same = true;
                    for (int j = 0; j < D; j++) /* of cosine the directions are the same */
                        same = same && (centres[c * D + j] > 0) == (j == p) &&
                               (f == 1 || centres[c * D + j] == x[p * D + j]);
                    there += same;
                }
                assert_true(there > 0);
            }
        }
}

static void beyond_fp32(void **state)
{
    (void)state;
    double x[40 * D];
    float centres[4 * D];
    uint64_t seed = 3;
    for (int i = 0; i < 40 * D; i++)
        x[i] = next_uniform(&seed) * 1e140;
    const gnomon_matrix m = gnomon_matrix_rowmajor(x, GNOMON_F64, 40, D);
    for (int f = 0; f < 2; f++) {
        ASSERT_OK(ctx, gnomon_lsh_train(ctx, families[f], &m, 4, 0, centres));
        for (int i = 0; i < 4 * D; i++)
            assert_true(fabsf(centres[i]) <= (f == 0 ? FLT_MAX : 1.0f));
    }
    x[11] = 1e200;
    ASSERT_FAILS(ctx, gnomon_lsh_train(ctx, families[0], &m, 4, 0, centres),
                 GNOMON_ERROR_UNSUPPORTED, "2^500");
}

/* Points of cosine without a length, and some that cancel each other. */
static void points_without_direction(void **state)
{
    (void)state;
    float x[40 * D] = {0}, centres[4 * D];
    for (int i = 0; i < 40; i++)
        if (i % 3 > 0) x[i * D] = i % 3 == 1 ? 1.0f : -1.0f;
    const gnomon_matrix m = gnomon_matrix_rowmajor(x, GNOMON_F32, 40, D);
    ASSERT_OK(ctx, gnomon_lsh_train(ctx, families[1], &m, 4, 0, centres));
    for (int i = 0; i < 4 * D; i++)
        assert_true(isfinite(centres[i]) && fabsf(centres[i]) <= 1);
}

static void what_is_refused(void **state)
{
    (void)state;
    float *x = make_points(4, false), *centres = malloc(65537 * sizeof *centres);
    gnomon_matrix m = gnomon_matrix_rowmajor(x, GNOMON_F32, N, D);
    assert_non_null(centres);
    static const int64_t counts[] = {-1, 0, 1, N + 1, 65537};
    for (int i = 0; i < 5; i++)
        ASSERT_FAILS(ctx, gnomon_lsh_train(ctx, families[0], &m, counts[i], 0, centres),
                     GNOMON_ERROR_ARGUMENT, "it must be 2 to 65536, and at most the 700 points");
    const gnomon_matrix thin = gnomon_matrix_rowmajor(x, GNOMON_F32, N * D, 1);
    ASSERT_FAILS(ctx, gnomon_lsh_train(ctx, families[0], &thin, 65537, 0, centres),
                 GNOMON_ERROR_ARGUMENT, "65536");
    ASSERT_FAILS(ctx, gnomon_lsh_train(ctx, GNOMON_LSH_SIMHASH, &m, 4, 0, centres),
                 GNOMON_ERROR_ARGUMENT, "family is simhash");
    ASSERT_FAILS(ctx, gnomon_lsh_train(ctx, (gnomon_lsh_family)0, &m, 4, 0, centres),
                 GNOMON_ERROR_ARGUMENT, "family is ?");
    m.rows = -1;
    assert_int_not_equal(gnomon_lsh_train(ctx, families[0], &m, 4, 0, centres), GNOMON_OK);
    free(x);
    free(centres);
}

/* ---- memory ---- */

static void every_allocation_may_fail(void **state)
{
    (void)state;
    float *x = make_points(6, false), centres[6 * D];
    const gnomon_matrix m = gnomon_matrix_rowmajor(x, GNOMON_F32, 80, D);
    for (int stream = 0; stream < 2; stream++) {
        int failures = 0;
        for (int64_t n = 0;; n++) {
            misers miser = {n, 0};
            const gnomon_allocator a = {&miser, miser_allocate, miser_release};
            gnomon_context_options c = GNOMON_CONTEXT_OPTIONS_INIT;
            c.allocator = &a;
            c.threads = 2;
            c.device = "cpu";
            gnomon_context *poor;
            if (gnomon_context_create(&c, &poor) != GNOMON_OK) continue;
            rows r = {&m, -1, 0, -1};
            const gnomon_join_points p = {&r, 80, D, GNOMON_F32, read_row};
            const gnomon_status status =
                stream ? gnomon_lsh_train_stream(poor, families[0], &p, 6, 0, centres)
                       : gnomon_lsh_train(poor, families[0], &m, 6, 0, centres);
            gnomon_context_destroy(poor);
            assert_int_equal(miser.out, 0);
            if (status == GNOMON_OK) break;
            assert_int_equal(status, GNOMON_ERROR_MEMORY);
            failures++;
        }
        assert_true(failures > 20);
    }
    free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(centres_are_those_of_slow_iterations),
                                       cmocka_unit_test(same_whatever_threads_and_level),
                                       cmocka_unit_test(same_of_every_type_and_layout),
                                       cmocka_unit_test(read_piece_by_piece),
                                       cmocka_unit_test(behind_some_points),
                                       cmocka_unit_test(fewer_places_than_centres),
                                       cmocka_unit_test(beyond_fp32),
                                       cmocka_unit_test(points_without_direction),
                                       cmocka_unit_test(what_is_refused),
                                       cmocka_unit_test(every_allocation_may_fail)};
    return cmocka_run_group_tests(tests, open_context, close_context);
}

/* Hash functions: how often they agree, against the law and against plain sums; the same bits
 * whatever the threads, pieces, layout and level; what is refused. */
#include "lsh/hasher.h"
#include "project.h"

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

static gnomon_lsh_functions functions_of(gnomon_lsh_family family, int64_t dim, int64_t count)
{
    gnomon_lsh_functions f = GNOMON_LSH_FUNCTIONS_INIT;
    f.family = family;
    f.dim = dim;
    f.count = count;
    f.seed = 77;
    if (family == GNOMON_LSH_PSTABLE || family == GNOMON_LSH_PSTABLE_L1) f.width = 4;
    return f;
}

static gnomon_hasher *hasher_of(const gnomon_lsh_functions *f)
{
    gnomon_hasher *h = NULL;
    ASSERT_OK(ctx, gnomon_hasher_create(ctx, f, &h));
    return h;
}

static double normal(uint64_t *state)
{
    const double u = (next_uniform(state) + 1) / 2, v = next_uniform(state);
    return sqrt(-2 * log1p(-u)) * cos(acos(-1.0) * v);
}

/* The share of functions that give rows 0 and 1 of m the same value. */
static double agreement(const gnomon_lsh_functions *f, const gnomon_matrix *m)
{
    gnomon_hasher *h = hasher_of(f);
    int32_t *values = malloc((size_t)(2 * f->count) * sizeof *values);
    const gnomon_matrix out = gnomon_matrix_rowmajor(values, GNOMON_I32, 2, f->count);
    ASSERT_OK(ctx, gnomon_hasher_apply(ctx, h, m, &out));
    int64_t same = 0;
    for (int64_t i = 0; i < f->count; i++)
        same += values[i] == values[f->count + i];
    free(values);
    gnomon_hasher_destroy(h);
    return (double)same / (double)f->count;
}

/* A frequency of 'count' draws lies within 4.5 standard deviations of p. */
static void check_rate(const char *what, double distance, double found, double p, int64_t count)
{
    const double spread = sqrt(p * (1 - p) / (double)count);
    if (!(fabs(found - p) <= 4.5 * spread + 1e-9))
        fail_msg("%s at distance %g: %g of %d functions agree, the law says %g (+- %g)", what,
                 distance, found, (int)count, p, spread);
}

enum { DIM = 40, COUNT = 20000 };

static double l2_of(const float *x)
{
    double sum = 0;
    for (int j = 0; j < DIM; j++)
        sum += ((double)x[j] - (double)x[DIM + j]) * ((double)x[j] - (double)x[DIM + j]);
    return sqrt(sum);
}

static double l1_of(const float *x)
{
    double sum = 0;
    for (int j = 0; j < DIM; j++)
        sum += fabs((double)x[j] - (double)x[DIM + j]);
    return sum;
}

static double cosine_of(const float *x)
{
    double xy = 0, xx = 0, yy = 0;
    for (int j = 0; j < DIM; j++) {
        xy += (double)x[j] * (double)x[DIM + j];
        xx += (double)x[j] * (double)x[j];
        yy += (double)x[DIM + j] * (double)x[DIM + j];
    }
    return 1 - xy / sqrt(xx * yy);
}

static void dense_families_follow_their_laws(void **state)
{
    (void)state;
    static const struct {
        gnomon_lsh_family family;
        int64_t sides;
        double (*distance)(const float *);
    } cases[] = {{GNOMON_LSH_PSTABLE, 0, l2_of},
                 {GNOMON_LSH_PSTABLE_L1, 0, l1_of},
                 {GNOMON_LSH_SIMHASH, 0, cosine_of},
                 {GNOMON_LSH_CROSS_POLYTOPE, 0, cosine_of},
                 {GNOMON_LSH_CROSS_POLYTOPE, 2, cosine_of},
                 {GNOMON_LSH_CROSS_POLYTOPE, 37, cosine_of}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        for (int far = 0; far < 5; far++) {
            uint64_t seed = 100 * c + (uint64_t)far;
            float x[2 * DIM];
            for (int j = 0; j < DIM; j++) {
                x[j] = (float)normal(&seed);
                x[DIM + j] = x[j] * (far == 4 ? -0.3f : 1) +
                             (float)(normal(&seed) * (far == 0 ? 0.02 : 0.3 * far));
            }
            gnomon_lsh_functions f = functions_of(cases[c].family, DIM, COUNT);
            f.sides = cases[c].sides;
            if (f.sides == 37) f.count = 5000;
            if (f.family == GNOMON_LSH_PSTABLE_L1) f.width = 20;
            const gnomon_matrix m = gnomon_matrix_rowmajor(x, GNOMON_F32, 2, DIM);
            double p;
            ASSERT_OK(ctx, gnomon_lsh_collision(ctx, &f, cases[c].distance(x), &p));
            check_rate(gnomon_lsh_family_name(f.family), cases[c].distance(x), agreement(&f, &m), p,
                       f.count);
        }
    }
}

static void operators_follow_the_law_nearly(void **state)
{
    (void)state;
    enum { MANY_COLS = 1024, MANY = 512 };
    static const gnomon_kind kinds[] = {GNOMON_RADEMACHER, GNOMON_ACHLIOPTAS, GNOMON_VERY_SPARSE,
                                        GNOMON_SJLT,       GNOMON_SRHT,       GNOMON_BLOCK};
    float *x = malloc(2 * MANY_COLS * sizeof *x);
    uint64_t seed = 5;
    double sum = 0;
    for (int j = 0; j < MANY_COLS; j++) {
        x[j] = (float)normal(&seed);
        x[MANY_COLS + j] = x[j] + 0.2f * (float)normal(&seed);
        sum +=
            ((double)x[j] - (double)x[MANY_COLS + j]) * ((double)x[j] - (double)x[MANY_COLS + j]);
    }
    const gnomon_matrix m = gnomon_matrix_rowmajor(x, GNOMON_F32, 2, MANY_COLS);
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
        d.kind = kinds[k];
        d.blocks = d.kind == GNOMON_BLOCK ? 2 : 0;
        d.density = d.kind == GNOMON_VERY_SPARSE ? 0.1 : 0;
        d.nonzeros = d.kind == GNOMON_SJLT ? 64 : 0;
        double found = 0, p;
        gnomon_lsh_functions f = functions_of(GNOMON_LSH_PSTABLE, MANY_COLS, MANY);
        f.width = 10;
        f.descriptor = &d;
        for (int s = 0; s < 10; s++) {
            d.seed = f.seed = (uint64_t)s;
            found += agreement(&f, &m) / 10;
        }
        ASSERT_OK(ctx, gnomon_lsh_collision(ctx, &f, sqrt(sum), &p));
        if (fabs(found - p) > 0.04)
            fail_msg("%s: %g agree, %g with normal directions", gnomon_kind_name(d.kind), found, p);
    }
    free(x);
}

static void bits_follow_the_law(void **state)
{
    (void)state;
    uint8_t x[2 * DIM];
    uint64_t seed = 9;
    int differ = 0;
    for (int j = 0; j < DIM; j++) {
        x[j] = (uint8_t)next_random(&seed);
        const uint8_t mask = (uint8_t)(next_random(&seed) & next_random(&seed));
        x[DIM + j] = x[j] ^ mask;
        differ += __builtin_popcount(mask);
    }
    gnomon_lsh_functions f = functions_of(GNOMON_LSH_BIT_SAMPLING, DIM, COUNT);
    const gnomon_matrix m = gnomon_matrix_rowmajor(x, GNOMON_U8, 2, DIM);
    double p;
    ASSERT_OK(ctx, gnomon_lsh_collision(ctx, &f, differ, &p));
    assert_true(fabs(p - (1 - differ / (8.0 * DIM))) < 1e-15);
    check_rate("bit-sampling", differ, agreement(&f, &m), p, COUNT);
}

static void sets_follow_the_law(void **state)
{
    (void)state;
    /* 60 members in both, 25 and 15 in one; an entry of 0 is no member, one that stands twice is
     * one */
    int64_t indices[200], offsets[4] = {0, 0, 0, 0};
    float values[200];
    int64_t at = 0;
    for (int set = 0; set < 2; set++) {
        const int64_t own = set == 0 ? 25 : 15;
        for (int64_t i = 0; i < 60 + own; i++, at++) {
            indices[at] = i < 60 ? i * 1000003 : (1 + set) * (int64_t)100000000000 + i;
            values[at] = i % 2 ? 1 : -3;
        }
        indices[at] = 7 + set;
        values[at++] = 0;
        indices[at] = 0;
        values[at++] = 2;
        offsets[set + 1] = at;
    }
    offsets[3] = at; /* and an empty set */
    const gnomon_csr m = {3, (int64_t)1 << 40, offsets, indices, values, GNOMON_F32};
    gnomon_lsh_functions f = functions_of(GNOMON_LSH_MINHASH, m.cols, COUNT);
    gnomon_hasher *h = hasher_of(&f);
    int32_t *v = malloc(3 * COUNT * sizeof *v);
    const gnomon_matrix out = gnomon_matrix_colmajor(v, GNOMON_I32, 3, COUNT);
    ASSERT_OK(ctx, gnomon_hasher_apply_csr(ctx, h, &m, &out));
    int64_t same = 0;
    for (int64_t i = 0; i < COUNT; i++) {
        same += v[3 * i] == v[3 * i + 1];
        assert_int_equal(v[3 * i + 2], -1);
    }
    check_rate("minhash", 0.4, (double)same / COUNT, 0.6, COUNT);
    free(v);
    gnomon_hasher_destroy(h);
}

static void laws_at_their_ends(void **state)
{
    (void)state;
    double p, before = 1;
    gnomon_lsh_functions f = functions_of(GNOMON_LSH_CROSS_POLYTOPE, 1, 1);
    static const int64_t sides[] = {2, 16, 128, 4096};
    for (int s = 0; s < 4; s++) {
        f.sides = sides[s];
        before = 1;
        for (int i = 0; i <= 40; i++) {
            ASSERT_OK(ctx, gnomon_lsh_collision(ctx, &f, i / 20.0, &p));
            assert_true(i == 0 ? p == 1 : p >= 0 && (p < before || p < 1e-9));
            if (i == 20) assert_true(fabs(p - 0.5 / (double)sides[s]) < 1e-6); /* independent */
            if (i == 40) assert_true(p == 0);
            before = p;
        }
    }
    /* in two dimensions the directions cut the circle in four, and p is linear in the angle */
    f.sides = 2;
    ASSERT_OK(ctx, gnomon_lsh_collision(ctx, &f, 1 - cos(0.05), &p));
    assert_true(p > 0.9 && p < 1);
    for (int family = 1; family <= 2; family++) {
        f = functions_of((gnomon_lsh_family)family, 1, 1);
        before = 1;
        for (double r = 1e-12; r < 1e12; r *= 3) {
            ASSERT_OK(ctx, gnomon_lsh_collision(ctx, &f, r, &p));
            assert_true(p >= 0 && p <= before);
            before = p;
        }
        /* far away: t / sqrt(2 pi) and t / pi */
        const double t = 1e-9, far = family == 1 ? t / sqrt(2 * acos(-1.0)) : t / acos(-1.0);
        ASSERT_OK(ctx, gnomon_lsh_collision(ctx, &f, f.width / t, &p));
        assert_true(fabs(p / far - 1) < 1e-6);
    }
    f = functions_of(GNOMON_LSH_SIMHASH, 1, 1);
    ASSERT_OK(ctx, gnomon_lsh_collision(ctx, &f, 1e-18, &p));
    assert_true(p <= 1 && 1 - p < 1e-8);
    ASSERT_OK(ctx, gnomon_lsh_collision(ctx, &f, 1, &p));
    assert_true(fabs(p - 0.5) < 1e-15);
    ASSERT_FAILS(ctx, gnomon_lsh_collision(ctx, &f, 2.5, &p), GNOMON_ERROR_ARGUMENT, "distance");
    ASSERT_FAILS(ctx, gnomon_lsh_collision(ctx, &f, NAN, &p), GNOMON_ERROR_ARGUMENT, "distance");
    ASSERT_FAILS(ctx, gnomon_lsh_collision(ctx, &f, -1, &p), GNOMON_ERROR_ARGUMENT, "distance");
}

/* The Cauchy law by Kolmogorov and Smirnov's distance. */
static int ascending(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static void cauchy_numbers_are_cauchy(void **state)
{
    (void)state;
    enum { N = 100000 };
    float *x = malloc(N * sizeof *x), part[3 * 7];
    gnomon_simple key = {0};
    key.key0 = 3;
    gnomon_cauchy_block(&key, 0, 100, 0, 1000, x);
    gnomon_cauchy_block(&key, 42, 3, 901, 7, part);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 7; j++)
            assert_true(part[i * 7 + j] == x[(42 + i) * 1000 + 901 + j]);
    qsort(x, N, sizeof *x, ascending);
    double worst = 0;
    for (int i = 0; i < N; i++) {
        const double law = 0.5 + atan((double)x[i]) / acos(-1.0);
        assert_true(isfinite(x[i]) && x[i] != 0);
        worst = fmax(worst, fmax(fabs(law - i / (double)N), fabs(law - (i + 1) / (double)N)));
    }
    assert_true(worst * sqrt(N) < 1.95); /* 0.1 % */
    free(x);
}

/* All families' values at n points, in one array to be freed. */
static int32_t *all_values(gnomon_context *with, const gnomon_matrix *m, const gnomon_matrix *bytes,
                           int64_t count)
{
    const int64_t n = m->rows;
    int32_t *values = malloc((size_t)(5 * n * count) * sizeof *values);
    for (int family = 1; family <= 5; family++) {
        gnomon_lsh_functions f = functions_of((gnomon_lsh_family)family, m->cols, count);
        gnomon_hasher *h = hasher_of(&f);
        const gnomon_matrix out =
            gnomon_matrix_rowmajor(values + (family - 1) * n * count, GNOMON_I32, n, count);
        ASSERT_OK(with, gnomon_hasher_apply(with, h,
                                            f.family == GNOMON_LSH_BIT_SAMPLING ? bytes : m, &out));
        gnomon_hasher_destroy(h);
    }
    return values;
}

static void the_same_bits(void **state)
{
    (void)state;
    enum { N = 83, D = 61, M = 90 }; /* more functions than dimensions */
    float *x = malloc(N * D * sizeof *x), *transposed = malloc(N * D * sizeof *x);
    uint8_t *bytes = malloc(N * D);
    uint64_t seed = 11;
    for (int i = 0; i < N * D; i++) {
        x[i] = (float)(10 * next_uniform(&seed));
        bytes[i] = (uint8_t)next_random(&seed);
    }
    for (int i = 0; i < N; i++)
        for (int j = 0; j < D; j++)
            transposed[j * N + i] = x[i * D + j];
    const gnomon_matrix m = gnomon_matrix_rowmajor(x, GNOMON_F32, N, D);
    const gnomon_matrix across = gnomon_matrix_colmajor(transposed, GNOMON_F32, N, D);
    const gnomon_matrix b = gnomon_matrix_rowmajor(bytes, GNOMON_U8, N, D);
    const size_t size = 5 * N * M * sizeof(int32_t);
    int32_t *reference = all_values(ctx, &m, &b, M);
    static const char *const levels[] = {"portable", "avx2", "neon"};
    for (int round = 0; round < 6; round++) {
        const char *level = round < 3 ? NULL : levels[round - 3];
        gnomon_context *other;
        if (level) setenv("GNOMON_ISA", level, 1);
        gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
        o.threads = round == 0 ? 1 : 5;
        o.memory_limit = round == 1 ? 400000 : 0;
        o.device = "cpu";
        const gnomon_status status = gnomon_context_create(&o, &other);
        unsetenv("GNOMON_ISA");
        if (status != GNOMON_OK) continue; /* not this processor's */
        int32_t *values = all_values(other, round == 2 ? &across : &m, &b, M);
        assert_memory_equal(values, reference, size);
        free(values);
        gnomon_context_destroy(other);
    }
    free(reference);
    free(bytes);
    free(transposed);
    free(x);
}

/* Sparse and dense points have the same values, but where a sum's last bits decide. */
static void sparse_points(void **state)
{
    (void)state;
    enum { N = 30, D = 200, M = 64 };
    float dense[N * D] = {0}, values[N * 20];
    int64_t offsets[N + 1], indices[N * 20], at = 0;
    uint64_t seed = 21;
    for (int i = 0; i < N; i++) {
        offsets[i] = at;
        for (int e = 0; e < 20; e++, at++) {
            indices[at] = (int64_t)(next_random(&seed) % D);
            values[at] = (float)next_uniform(&seed);
            dense[i * D + indices[at]] += values[at];
        }
    }
    offsets[N] = at;
    const gnomon_csr sparse = {N, D, offsets, indices, values, GNOMON_F32};
    const gnomon_matrix m = gnomon_matrix_rowmajor(dense, GNOMON_F32, N, D);
    static const gnomon_lsh_family families[] = {GNOMON_LSH_PSTABLE, GNOMON_LSH_SIMHASH,
                                                 GNOMON_LSH_CROSS_POLYTOPE};
    for (int f = 0; f < 3; f++) {
        gnomon_lsh_functions o = functions_of(families[f], D, M);
        gnomon_hasher *h = hasher_of(&o);
        int32_t a[N * M], b[N * M];
        const gnomon_matrix first = gnomon_matrix_rowmajor(a, GNOMON_I32, N, M);
        const gnomon_matrix second = gnomon_matrix_rowmajor(b, GNOMON_I32, N, M);
        ASSERT_OK(ctx, gnomon_hasher_apply(ctx, h, &m, &first));
        ASSERT_OK(ctx, gnomon_hasher_apply_csr(ctx, h, &sparse, &second));
        int differ = 0;
        for (int i = 0; i < N * M; i++)
            differ += a[i] != b[i];
        assert_true(differ <= 2);
        gnomon_hasher_destroy(h);
    }
}

/* Other values: of a point near to where the value changes it is the neighbour's; costs ascend. */
static void other_values(void **state)
{
    (void)state;
    enum { N = 50, D = 32, M = 24 };
    float x[N * D];
    uint64_t seed = 31;
    for (int i = 0; i < N * D; i++)
        x[i] = (float)(3 * next_uniform(&seed));
    const gnomon_matrix m = gnomon_matrix_rowmajor(x, GNOMON_F32, N, D);
    const gnomon_points points = {&m, NULL};
    for (int family = 1; family <= 4; family++) {
        gnomon_lsh_functions f = functions_of((gnomon_lsh_family)family, D, M);
        gnomon_hasher *h = hasher_of(&f);
        int32_t values[N * M], others[N * M * GNOMON_LSH_OTHERS];
        float costs[N * M * GNOMON_LSH_OTHERS];
        const gnomon_hashes out = {values, others, costs};
        ASSERT_OK(ctx, gnomon_hasher_batch(ctx, h, &points, 0, N, &out));
        for (int i = 0; i < N * M; i++) {
            float last = 0;
            for (int o = 0; o < h->others; o++) {
                const int at = i * h->others + o;
                assert_true(others[at] != values[i]);
                assert_true(costs[at] >= last);
                last = costs[at];
                if (family <= 2) {
                    assert_int_equal(abs(others[at] - values[i]), 1);
                    assert_true(costs[at] <= 1);
                }
                for (int earlier = 0; earlier < o; earlier++)
                    assert_int_not_equal(others[at], others[i * h->others + earlier]);
            }
        }
        gnomon_hasher_destroy(h);
    }
}

static void bad_arguments(void **state)
{
    (void)state;
    gnomon_hasher *h;
    gnomon_lsh_functions f = functions_of(GNOMON_LSH_PSTABLE, 4, 3);
    static const double widths[] = {0, -1, NAN, INFINITY};
    for (int i = 0; i < 4; i++) {
        f.width = widths[i];
        ASSERT_FAILS(ctx, gnomon_hasher_create(ctx, &f, &h), GNOMON_ERROR_ARGUMENT, "width");
        assert_null(h);
    }
    f = functions_of(GNOMON_LSH_SIMHASH, 4, 3);
    f.width = 1;
    ASSERT_FAILS(ctx, gnomon_hasher_create(ctx, &f, &h), GNOMON_ERROR_ARGUMENT, "takes none");
    f = functions_of(GNOMON_LSH_SIMHASH, 4, 3);
    f.sides = 4;
    ASSERT_FAILS(ctx, gnomon_hasher_create(ctx, &f, &h), GNOMON_ERROR_ARGUMENT, "takes none");
    f = functions_of(GNOMON_LSH_CROSS_POLYTOPE, 4, 3);
    f.sides = 1;
    ASSERT_FAILS(ctx, gnomon_hasher_create(ctx, &f, &h), GNOMON_ERROR_ARGUMENT, "sides");
    f.sides = 4096;
    f.count = 5000;
    ASSERT_FAILS(ctx, gnomon_hasher_create(ctx, &f, &h), GNOMON_ERROR_ARGUMENT, "count");
    f = functions_of(GNOMON_LSH_SIMHASH, 0, 3);
    ASSERT_FAILS(ctx, gnomon_hasher_create(ctx, &f, &h), GNOMON_ERROR_ARGUMENT, "dim");
    f = functions_of(GNOMON_LSH_SIMHASH, 4, 0);
    ASSERT_FAILS(ctx, gnomon_hasher_create(ctx, &f, &h), GNOMON_ERROR_ARGUMENT, "count");
    f = functions_of((gnomon_lsh_family)99, 4, 1);
    ASSERT_FAILS(ctx, gnomon_hasher_create(ctx, &f, &h), GNOMON_ERROR_ARGUMENT, "family");
    gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
    d.kind = GNOMON_KRONECKER;
    f = functions_of(GNOMON_LSH_SIMHASH, 4, 1);
    f.descriptor = &d;
    ASSERT_FAILS(ctx, gnomon_hasher_create(ctx, &f, &h), GNOMON_ERROR_ARGUMENT, "kronecker");
    f = functions_of(GNOMON_LSH_MINHASH, 4, 1);
    f.descriptor = &d;
    ASSERT_FAILS(ctx, gnomon_hasher_create(ctx, &f, &h), GNOMON_ERROR_ARGUMENT, "no operator");

    f = functions_of(GNOMON_LSH_PSTABLE, 4, 3);
    h = hasher_of(&f);
    float x[8] = {1, 2, 3, 4, 5, 6, NAN, 8};
    int32_t v[6];
    gnomon_matrix m = gnomon_matrix_rowmajor(x, GNOMON_F32, 2, 4);
    gnomon_matrix out = gnomon_matrix_rowmajor(v, GNOMON_I32, 2, 3);
    ASSERT_FAILS(ctx, gnomon_hasher_apply(ctx, h, &m, &out), GNOMON_ERROR_NONFINITE,
                 "row 1, column 2");
    x[6] = 7;
    out.dtype = GNOMON_F32;
    ASSERT_FAILS(ctx, gnomon_hasher_apply(ctx, h, &m, &out), GNOMON_ERROR_DTYPE, "i32");
    out = gnomon_matrix_rowmajor(v, GNOMON_I32, 1, 3);
    ASSERT_FAILS(ctx, gnomon_hasher_apply(ctx, h, &m, &out), GNOMON_ERROR_SHAPE, "2 points");
    m.cols = 3;
    ASSERT_FAILS(ctx, gnomon_hasher_apply(ctx, h, &m, &out), GNOMON_ERROR_SHAPE, "columns");
    m = gnomon_matrix_rowmajor(NULL, GNOMON_F32, 0, 4);
    out = gnomon_matrix_rowmajor(NULL, GNOMON_I32, 0, 3);
    ASSERT_OK(ctx, gnomon_hasher_apply(ctx, h, &m, &out));
    gnomon_hasher_destroy(h);

    /* products beyond the range of values and of fp32 */
    f.width = 1e-30;
    h = hasher_of(&f);
    x[0] = 3e38f;
    x[1] = -3e38f;
    m = gnomon_matrix_rowmajor(x, GNOMON_F32, 2, 4);
    out = gnomon_matrix_rowmajor(v, GNOMON_I32, 2, 3);
    ASSERT_OK(ctx, gnomon_hasher_apply(ctx, h, &m, &out));
    for (int i = 0; i < 6; i++)
        assert_true(v[i] == INT32_MAX || v[i] == INT32_MIN);
    gnomon_hasher_destroy(h);

    f = functions_of(GNOMON_LSH_MINHASH, 4, 3);
    h = hasher_of(&f);
    ASSERT_FAILS(ctx, gnomon_hasher_apply(ctx, h, &m, &out), GNOMON_ERROR_UNSUPPORTED, "dense");
    int64_t offsets[3] = {0, 2, 1}, indices[2] = {0, 4};
    gnomon_csr sets = {2, 4, offsets, indices, x, GNOMON_F32};
    ASSERT_FAILS(ctx, gnomon_hasher_apply_csr(ctx, h, &sets, &out), GNOMON_ERROR_DATA, "offsets");
    offsets[2] = 2;
    ASSERT_FAILS(ctx, gnomon_hasher_apply_csr(ctx, h, &sets, &out), GNOMON_ERROR_DATA,
                 "indices[1]");
    gnomon_hasher_destroy(h);
    f = functions_of(GNOMON_LSH_BIT_SAMPLING, 4, 3);
    h = hasher_of(&f);
    ASSERT_FAILS(ctx, gnomon_hasher_apply(ctx, h, &m, &out), GNOMON_ERROR_DTYPE, "u8");
    ASSERT_FAILS(ctx, gnomon_hasher_apply_csr(ctx, h, &sets, &out), GNOMON_ERROR_UNSUPPORTED,
                 "sparse");
    gnomon_hasher_destroy(h);
    gnomon_hasher_destroy(NULL);

    for (int i = 1; i <= 6; i++)
        assert_int_equal(gnomon_lsh_family_from_name(gnomon_lsh_family_name((gnomon_lsh_family)i)),
                         i);
    assert_string_equal(gnomon_lsh_family_name((gnomon_lsh_family)0), "?");
    assert_int_equal(gnomon_lsh_family_from_name("?"), 0);
    assert_int_equal(gnomon_lsh_family_from_name(NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(dense_families_follow_their_laws),
                                       cmocka_unit_test(operators_follow_the_law_nearly),
                                       cmocka_unit_test(bits_follow_the_law),
                                       cmocka_unit_test(sets_follow_the_law),
                                       cmocka_unit_test(laws_at_their_ends),
                                       cmocka_unit_test(cauchy_numbers_are_cauchy),
                                       cmocka_unit_test(the_same_bits),
                                       cmocka_unit_test(sparse_points),
                                       cmocka_unit_test(other_values),
                                       cmocka_unit_test(bad_arguments)};
    return cmocka_run_group_tests(tests, open_context, close_context);
}

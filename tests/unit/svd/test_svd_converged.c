/* How many values have converged, beside what the factors themselves tell: no more, but where
 * rounding decides, and one less at most, while only the vectors where the count ends are
 * multiplied; also where a few test vectors tell little, as of a matrix with one direction behind
 * its rank. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "svd/row_source.h"
#include "svd_testing.h"

#include <cmocka.h>

enum { SIZE = 300, RANK = 200, COLUMNS = RANK + 10, TESTS = 10, BEFORE_ONE = 120 };

/* Dense products with A^T go through here (the linker's --wrap). */
gnomon_status __real_gnomon_row_source_adjoint(gnomon_row_source *source, const gnomon_tall *q,
                                               const gnomon_tall *z);
gnomon_status __wrap_gnomon_row_source_adjoint(gnomon_row_source *source, const gnomon_tall *q,
                                               const gnomon_tall *z);

static int64_t last_columns;

gnomon_status __wrap_gnomon_row_source_adjoint(gnomon_row_source *source, const gnomon_tall *q,
                                               const gnomon_tall *z)
{
    last_columns = q->cols;
    return __real_gnomon_row_source_adjoint(source, q, z);
}

typedef enum law { FAST, SLOW, FLAT, DEFICIENT, STEP, LAWS, ONE = LAWS } law;

static double value_of(law of, int i)
{
    switch (of) {
    case FAST:
        return pow(10, -4.0 * i / COLUMNS);
    case SLOW:
        return 1 / sqrt(i + 1);
    case FLAT:
        return sqrt(1 - (double)i / (2 * SIZE));
    case DEFICIENT:
        return i < 60 ? pow(0.97, i) : 0;
    case ONE:
        return i < BEFORE_ONE ? 1 - 0.01 * i / BEFORE_ONE : i == BEFORE_ONE ? 0.3 : 1e-6;
    default:
        return i < COLUMNS + 10 ? 1 - 0.5 * i / COLUMNS : 1e-3;
    }
}

/* The sum of squares up to each value, by the returned factors in double precision. */
static void misfits(const gnomon_svd *svd, const double *a, double *sums)
{
    double sum = 0;
    for (int64_t l = 0; l < svd->rank; l++) {
        for (int64_t i = 0; i < SIZE; i++) {
            double right = -svd->s[l] * at(&svd->u, i, l), left = -svd->s[l] * at(&svd->vt, l, i);
            for (int64_t j = 0; j < SIZE; j++) {
                right += a[i * SIZE + j] * at(&svd->vt, l, j);
                left += a[j * SIZE + i] * at(&svd->u, j, l);
            }
            sum += 0.5 * (right * right + left * left);
        }
        sums[l] = sum;
    }
}

static int64_t count_of(const gnomon_svd *svd, const double *sums)
{
    int64_t count = 0;
    while (count < svd->rank && svd->s[count] > 0 &&
           sqrt(sums[count]) <= GNOMON_SVD_CONVERGED * svd->s[count])
        count++;
    return count;
}

typedef struct setting {
    law of;
    int power;
    bool f64, sparse;
    int64_t rank, tests;
    uint64_t seed;
} setting;

static void check(gnomon_context *ctx, const double *wide, const setting *g)
{
    const law of = g->of;
    const bool f64 = g->f64, sparse = g->sparse;
    double sums[RANK];
    int64_t offsets[SIZE + 1], *indices = malloc(SIZE * SIZE * sizeof *indices);
    double *a = malloc(SIZE * SIZE * sizeof *a);
    float *single = as_floats(wide, SIZE * SIZE);
    for (int i = 0; i < SIZE * SIZE; i++) {
        a[i] = f64 ? wide[i] : (double)single[i];
        indices[i] = i % SIZE;
    }
    for (int i = 0; i <= SIZE; i++)
        offsets[i] = (int64_t)i * SIZE;
    void *data = f64 ? (void *)a : single;
    const gnomon_dtype dtype = f64 ? GNOMON_F64 : GNOMON_F32;
    const gnomon_matrix dense = gnomon_matrix_rowmajor(data, dtype, SIZE, SIZE);
    const gnomon_csr rows = {.values = data,
                             .indices = indices,
                             .offsets = offsets,
                             .dtype = dtype,
                             .rows = SIZE,
                             .cols = SIZE};
    gnomon_svd_options o = GNOMON_SVD_OPTIONS_INIT;
    gnomon_svd svd = {.struct_size = sizeof svd};
    o.rank = g->rank;
    o.oversample = of == ONE ? 0 : COLUMNS - RANK;
    o.power = g->power;
    o.seed = g->seed;
    o.test_vectors = g->tests;
    o.test_power = 1;
    if ((sparse ? gnomon_svd_csr(ctx, &rows, &o, &svd) : gnomon_svd_dense(ctx, &dense, &o, &svd)) !=
        GNOMON_OK)
        fail_msg("%s", gnomon_last_error(ctx));
    misfits(&svd, a, sums);
    const int64_t due = count_of(&svd, sums), got = svd.converged_values;
    /* rounding of the products may decide one more */
    if (got > due + !f64 || got < due - 1)
        fail_msg("law %d, power %d, f64 %d, sparse %d, seed %d: %lld have converged, not %lld", of,
                 g->power, f64, sparse, (int)g->seed, (long long)got, (long long)due);
    /* beside the test vectors some are multiplied, where iterations have made them; of STEP's
     * leading ones combinations */
    const int64_t beside = last_columns - g->tests;
    if (!sparse && of != ONE && g->power > 1 && (f64 || of != FAST))
        assert_true(beside <= (of == STEP ? 3 * RANK / 4 : of == SLOW ? RANK / 2 : RANK / 4));
    gnomon_svd_free(ctx, &svd);
    free(a);
    free(single);
    free(indices);
}

static void count_is_that_of_the_factors(void **unused)
{
    (void)unused;
    if (gnomon_svd_missing() != NULL) skip();
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context *ctx = NULL;
    options.device = "cpu";
    assert_int_equal(gnomon_context_create(&options, &ctx), GNOMON_OK);
    for (law of = 0; of < LAWS; of++) {
        double s[SIZE];
        for (int i = 0; i < SIZE; i++)
            s[i] = value_of(of, i);
        double *a = matrix_with(SIZE, SIZE, s, 20 + (uint64_t)of);
        for (int power = 1; power < 5; power += power)
            for (int way = 0; way < 4; way++)
                check(ctx, a,
                      &(setting){.of = of,
                                 .power = power,
                                 .f64 = way % 2 != 0,
                                 .sparse = way > 1,
                                 .rank = RANK,
                                 .tests = TESTS});
        free(a);
    }
    gnomon_context_destroy(ctx);
}

static void few_test_vectors_cost_no_run_of_values(void **unused)
{
    (void)unused;
    if (gnomon_svd_missing() != NULL) skip();
    enum { SEEDS = 10 };
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context *ctx = NULL;
    double s[SIZE];
    options.device = "cpu";
    assert_int_equal(gnomon_context_create(&options, &ctx), GNOMON_OK);
    for (int i = 0; i < SIZE; i++)
        s[i] = value_of(ONE, i);
    double *a = matrix_with(SIZE, SIZE, s, 30);
    for (uint64_t seed = 0; seed < SEEDS; seed++)
        for (int64_t vectors = 1; vectors < 3; vectors++)
            check(ctx, a,
                  &(setting){.of = ONE,
                             .power = 2,
                             .f64 = true,
                             .rank = BEFORE_ONE,
                             .tests = vectors,
                             .seed = seed});
    free(a);
    gnomon_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(count_is_that_of_the_factors),
                                       cmocka_unit_test(few_test_vectors_cost_no_run_of_values)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

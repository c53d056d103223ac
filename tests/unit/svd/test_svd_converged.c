/* How many values have converged, beside what the factors themselves tell: never more, and one less
 * at most, while only the vectors where the count ends are multiplied. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "svd/row_source.h"
#include "svd_testing.h"

#include <cmocka.h>

enum { SIZE = 300, RANK = 200, COLUMNS = RANK + 10, TESTS = 10 };

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

typedef enum law { FAST, SLOW, FLAT, DEFICIENT, STEP, LAWS } law;

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

static void check(gnomon_context *ctx, law of, const double *wide, int power, bool f64, bool sparse)
{
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
    o.rank = RANK;
    o.oversample = COLUMNS - RANK;
    o.power = power;
    o.test_vectors = TESTS;
    o.test_power = 1;
    if ((sparse ? gnomon_svd_csr(ctx, &rows, &o, &svd) : gnomon_svd_dense(ctx, &dense, &o, &svd)) !=
        GNOMON_OK)
        fail_msg("%s", gnomon_last_error(ctx));
    misfits(&svd, a, sums);
    const int64_t due = count_of(&svd, sums), got = svd.converged_values;
    /* rounding of the products may decide one more */
    if (got > due + !f64 || got < due - 1)
        fail_msg("law %d, power %d, f64 %d, sparse %d: %lld have converged, not %lld", of, power,
                 f64, sparse, (long long)got, (long long)due);
    /* beside the test vectors some are multiplied, where iterations have made them; of STEP's
     * leading ones combinations */
    const int64_t beside = last_columns - TESTS;
    if (!sparse && power > 1 && (f64 || of != FAST))
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
                check(ctx, of, a, power, way % 2 != 0, way > 1);
        free(a);
    }
    gnomon_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(count_is_that_of_the_factors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

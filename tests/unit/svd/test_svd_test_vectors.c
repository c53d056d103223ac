/* Which normal vectors a factorisation draws: those that it stops by, those that it is looked at
 * closely by and those of its certificate are others, so that what it was made by does not judge
 * it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "linalg/blas.h"
#include "svd/factor.h"

enum { ROWS = 60, COLS = 40, MOST = 64 };

/* Calls of gnomon_operator_block go through here (the linker's --wrap). */
gnomon_status __real_gnomon_operator_block(gnomon_context *ctx, const gnomon_operator *op,
                                           int64_t row, int64_t col, const gnomon_matrix *out);
gnomon_status __wrap_gnomon_operator_block(gnomon_context *ctx, const gnomon_operator *op,
                                           int64_t row, int64_t col, const gnomon_matrix *out);

static struct {
    int64_t first, count;
} drawn[MOST];
static int draws;

gnomon_status __wrap_gnomon_operator_block(gnomon_context *ctx, const gnomon_operator *op,
                                           int64_t row, int64_t col, const gnomon_matrix *out)
{
    gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
    gnomon_operator_describe(op, &d);
    if (d.scaling == GNOMON_UNSCALED) { /* the projection is scaled */
        assert_true(draws < MOST);
        drawn[draws].first = row;
        drawn[draws++].count = out->rows;
    }
    return __real_gnomon_operator_block(ctx, op, row, col, out);
}

static void assert_apart(int least)
{
    assert_true(draws >= least);
    for (int i = 0; i < draws; i++) {
        for (int j = 0; j < i; j++)
            assert_true(drawn[i].first >= drawn[j].first + drawn[j].count ||
                        drawn[j].first >= drawn[i].first + drawn[i].count);
    }
}

static void each_use_has_vectors_of_its_own(void **unused)
{
    (void)unused;
    if (gnomon_svd_missing() != NULL) skip();
    gnomon_context *ctx = NULL;
    assert_int_equal(gnomon_context_create(NULL, &ctx), GNOMON_OK);
    double values[ROWS * COLS];
    int64_t offsets[ROWS + 1], indices[ROWS * COLS];
    uint64_t state = 1;
    for (int i = 0; i < ROWS * COLS; i++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
        values[i] = (double)(state >> 40) * 0x1p-24 - 0.5;
        indices[i] = i % COLS;
    }
    for (int i = 0; i <= ROWS; i++)
        offsets[i] = (int64_t)i * COLS;
    const gnomon_matrix dense = gnomon_matrix_rowmajor(values, GNOMON_F64, ROWS, COLS);
    const gnomon_csr sparse = {.values = values,
                               .indices = indices,
                               .offsets = offsets,
                               .dtype = GNOMON_F64,
                               .rows = ROWS,
                               .cols = COLS};
    for (int way = 0; way < 4; way++) {
        gnomon_svd_options options = GNOMON_SVD_OPTIONS_INIT;
        gnomon_svd svd = {.struct_size = sizeof svd};
        options.tolerance = 1e-3;
        options.block = 8;
        options.test_vectors = 1000;      /* as many as may be asked for */
        options.power = way < 2 ? 0 : -1; /* 0: by blocks, which stop by vectors */
        draws = 0;
        assert_int_equal(way % 2 != 0 ? gnomon_svd_csr(ctx, &sparse, &options, &svd)
                                      : gnomon_svd_dense(ctx, &dense, &options, &svd),
                         GNOMON_OK);
        assert_apart(way == 1 ? 3 : way == 0 ? 2 : 1);
        gnomon_svd_free(ctx, &svd);
    }
    gnomon_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_use_has_vectors_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

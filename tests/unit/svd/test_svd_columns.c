/* Singular values of matrices whose weight lies in their last column: no column is lost where work
 * is cut, whatever their number. */
#include <gnomon/svd.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static void the_last_column(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 15, 16, 17, 63, 65, 511, 512, 513, 1023, 1025, 1537};
    gnomon_context_options settings = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context *ctx;
    settings.device = "cpu";
    settings.threads = 2;
    assert_int_equal(gnomon_context_create(&settings, &ctx), GNOMON_OK);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        for (int transposed = 0; transposed < 2; transposed++) {
            const int64_t longer = sizes[s], other = 30, rows = transposed ? longer : other;
            const int64_t cols = transposed ? other : longer;
            double *x = calloc((size_t)(rows * cols), sizeof *x);
            assert_non_null(x);
            double squares = 0;
            for (int64_t i = 0; i < other; i++) {
                const double v = 1 + (double)(i % 4);
                x[transposed ? (longer - 1) * cols + i : i * cols + longer - 1] = v;
                squares += v * v;
            }
            const gnomon_matrix a = gnomon_matrix_rowmajor(x, GNOMON_F64, rows, cols);
            gnomon_svd_options o = GNOMON_SVD_OPTIONS_INIT;
            gnomon_svd out = {.struct_size = sizeof out};
            o.rank = 1;
            o.power = 1;
            if (gnomon_svd_dense(ctx, &a, &o, &out) != GNOMON_OK)
                fail_msg("%s", gnomon_last_error(ctx));
            assert_true(fabs(out.s[0] / sqrt(squares) - 1) < 1e-12);
            const double *of = transposed ? out.u.data : out.vt.data;
            assert_true(fabs(fabs(of[longer - 1]) - 1) < 1e-12);
            assert_true(out.residual_estimate < 1e-10);
            gnomon_svd_free(ctx, &out);
            free(x);
        }
    }
    gnomon_context_destroy(ctx);
}

int main(void)
{
    if (gnomon_svd_missing() != NULL) {
        print_message("left out: %s\n", gnomon_svd_missing());
        return 0;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_last_column)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

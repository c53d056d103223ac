/* Output that no block reaches, views that begin inside larger arrays, and how full an operator is.
 */
#include "project.h"

enum { N = 5, D = 90, K = 12, BLOCKS = 6 }; /* blocks of 15 columns and 2 rows */

static gnomon_operator *six_blocks(gnomon_context *ctx)
{
    const any_operator a = {"block", GNOMON_BLOCK, GNOMON_RADEMACHER, 0, 0, 0, BLOCKS, 0, 0, 0};
    return make_operator(ctx, &a, K, D);
}

static void fill_with(const gnomon_matrix *m, double value)
{
    for (int64_t i = 0; i < m->rows; i++)
        for (int64_t j = 0; j < m->cols; j++)
            set_element(m, i, j, value);
}

/* With beta 0 the output is not read, not even where it only becomes zeros: outputs of NaN, of both
 * types, in every layout, by every call that leaves a part of the output to no block. */
static void unreached_output_is_not_read(void **state)
{
    (void)state;
    gnomon_context *ctx = make_context(2, 0);
    gnomon_operator *op = six_blocks(ctx);
    static const struct {
        int64_t col, cols;
    } parts[] = {{0, 0}, {0, 15}, {30, 20}, {75, 15}, {90, 0}};
    for (int dtype = GNOMON_F32; dtype <= GNOMON_F64; dtype++)
        for (int layout = 0; layout < LAYOUTS; layout++)
            for (size_t p = 0; p < sizeof parts / sizeof *parts; p++) {
                gnomon_sketch_options o = GNOMON_SKETCH_OPTIONS_INIT;
                o.col = parts[p].col;
                owned x = make_matrix(N, parts[p].cols, GNOMON_F32, ROW_MAJOR);
                owned y = make_matrix(N, K, (gnomon_dtype)dtype, layout);
                owned back = make_matrix(N, D, (gnomon_dtype)dtype, layout);
                fill_random(&x.m, 1);
                fill_with(&y.m, NAN);
                fill_with(&back.m, NAN);
                ASSERT_OK(ctx, gnomon_sketch(ctx, op, &x.m, &y.m, &o));
                const int64_t first = o.col / 15, last = (o.col + parts[p].cols + 14) / 15;
                for (int64_t i = 0; i < N; i++)
                    for (int64_t j = 0; j < K; j++) {
                        const double v = element(&y.m, i, j);
                        const bool reached = parts[p].cols > 0 && j / 2 >= first && j / 2 < last;
                        if (!(reached ? isfinite(v) : v == 0))
                            fail_msg("%s, layout %d, columns %lld + %lld: (%lld, %lld) is %g",
                                     gnomon_dtype_name(y.m.dtype), layout, (long long)o.col,
                                     (long long)parts[p].cols, (long long)i, (long long)j, v);
                    }
                /* rows 4 and 5 are block 2's: all other columns of the adjoint are zeros */
                gnomon_sketch_options two = GNOMON_SKETCH_OPTIONS_INIT;
                two.row = 4;
                two.rows = 2;
                gnomon_matrix rows = y.m;
                rows.cols = 2;
                fill_with(&rows, 1);
                ASSERT_OK(ctx, gnomon_adjoint(ctx, op, &rows, &back.m, &two));
                for (int64_t i = 0; i < N; i++)
                    for (int64_t j = 0; j < D; j++) {
                        const double v = element(&back.m, i, j);
                        assert_true(j / 15 == 2 ? isfinite(v) : v == 0);
                    }
                /* a stream all of whose columns lie in other blocks */
                gnomon_stream *s = NULL;
                const gnomon_matrix none = gnomon_matrix_rowmajor(NULL, GNOMON_F32, N, 0);
                gnomon_sketch_options end = GNOMON_SKETCH_OPTIONS_INIT;
                end.col = D;
                fill_with(&y.m, NAN);
                ASSERT_OK(ctx, gnomon_stream_create(ctx, op, N, y.m.dtype, &end, &s));
                ASSERT_OK(ctx, gnomon_stream_push(s, &none));
                ASSERT_OK(ctx, gnomon_stream_finish(s, &y.m));
                for (int64_t i = 0; i < N; i++)
                    for (int64_t j = 0; j < K; j++)
                        assert_true(element(&y.m, i, j) == 0);
                gnomon_stream_destroy(s);
                free_matrix(&x);
                free_matrix(&y);
                free_matrix(&back);
            }
    gnomon_operator_destroy(op);
    gnomon_context_destroy(ctx);
}

/* A view of the last rows of a csr: its offsets do not begin with 0, and indices and values are
 * those of offsets[0] on. */
static void a_view_names_its_own_rows(void **state)
{
    (void)state;
    gnomon_context *ctx = make_context(1, 0);
    const any_operator a = {"rademacher", GNOMON_RADEMACHER, 0, 0, 0, 0, 0, 0, 0, 0};
    gnomon_operator *op = make_operator(ctx, &a, 3, 20);
    static const int64_t offsets[] = {0, 4, 5, 7, 7, 10}; /* of five rows */
    static const int64_t indices[] = {0, 5, 9, 19, 3, 1, 2, 4, 8, 16};
    for (int64_t from = 0; from < 5; from++) {
        for (int64_t e = offsets[from]; e < 10; e++) {
            float values[10], y[15];
            for (int i = 0; i < 10; i++)
                values[i] = 1;
            values[e] = NAN;
            int64_t row = from;
            while (offsets[row + 1] <= e)
                row++;
            const gnomon_csr x = {
                5 - from,  20, offsets + from, indices + offsets[from], values + offsets[from],
                GNOMON_F32};
            const gnomon_matrix out = gnomon_matrix_rowmajor(y, GNOMON_F32, 5 - from, 3);
            char words[64];
            snprintf(words, sizeof words, "x: element (%lld, %lld), x.values[%lld]",
                     (long long)(row - from), (long long)indices[e],
                     (long long)(e - offsets[from]));
            ASSERT_FAILS(ctx, gnomon_sketch_csr(ctx, op, &x, &out, NULL), GNOMON_ERROR_NONFINITE,
                         words);
        }
    }
    gnomon_operator_destroy(op);
    gnomon_context_destroy(ctx);
}

/* The share of entries that are not 0, counted. Levels of different heights tell whether each is
 * given the fill and the height of the one below it. */
static void fill_is_that_of_the_entries(void **state)
{
    (void)state;
    gnomon_context *ctx = make_context(2, 0);
    static const struct {
        any_operator a;
        int64_t k, d;
        double
            slack; /* relative; entries of one level share factors, so they are not independent */
    } cases[] = {
        {{"sparse, width above k", GNOMON_KRONECKER, GNOMON_VERY_SPARSE, 0, 0.04, 0, 0, 2, 90, 0},
         9,
         350,
         0.15},
        {{"sparse, three levels", GNOMON_KRONECKER, GNOMON_VERY_SPARSE, 0, 0.05, 0, 0, 2, 60, 0},
         20,
         470,
         0.3},
        {{"sparse, width is k", GNOMON_KRONECKER, GNOMON_VERY_SPARSE, 0, 0.02, 0, 0, 3, 64, 0},
         64,
         570,
         0.15},
        {{"countsketch", GNOMON_KRONECKER, GNOMON_SJLT, 0, 0, 1, 0, 2, 64, 0}, 16, 256, 0.05},
        {{"block", GNOMON_BLOCK, GNOMON_VERY_SPARSE, 0, 0.1, 0, 7, 0, 0, 0}, 30, 1000, 0.05},
        {{"sjlt", GNOMON_SJLT, 0, 0, 0, 3, 0, 0, 0, 0}, 40, 300, 1e-12},
        {{"very-sparse", GNOMON_VERY_SPARSE, 0, 0, 0.03, 0, 0, 0, 0, 0}, 60, 2000, 0.05},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        gnomon_operator *op = make_operator(ctx, &cases[c].a, cases[c].k, cases[c].d);
        double *s = operator_block(ctx, op, 0, cases[c].k, 0, cases[c].d);
        int64_t count = 0;
        for (int64_t e = 0; e < cases[c].k * cases[c].d; e++)
            count += s[e] != 0;
        const double there = (double)count / (double)(cases[c].k * cases[c].d);
        const double fill = gnomon_operator_fill(op);
        if (!(fabs(fill / there - 1) <= cases[c].slack))
            fail_msg("%s: the fill is %g, counted %g", cases[c].a.name, fill, there);
        free(s);
        gnomon_operator_destroy(op);
    }
    gnomon_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unreached_output_is_not_read),
        cmocka_unit_test(a_view_names_its_own_rows),
        cmocka_unit_test(fill_is_that_of_the_entries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Factorisations and least squares whose rows are divided among ranks give the bits of one process.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "comm_testing.h"

#include <gnomon/lstsq.h>
#include <gnomon/svd.h>

#include <math.h>

/* Pieces have 65536 rows, so that segments need many. */
enum { COLS = 4, MANY = 5 * 65536 + 17, TARGETS = 2 };

typedef enum input { MEMORY, CONVERTED, STREAM, INPUTS } input;

typedef struct job {
    int64_t rows;
    gnomon_dtype dtype;
    input form;
    bool lstsq;
    gnomon_svd_options svd_options;
    gnomon_lstsq_options lstsq_options;
    const double *numbers, *b;
    gnomon_svd svd;
    gnomon_lstsq solved;
    gnomon_context *ctx; /* of rank 0's result */
    int odd, way;        /* the rank that fails, and by what */
    int at;              /* or the allocation that it is refused */
} job;

enum { NOTHING, OTHER_ROWS, OTHER_COLS, FAILS, ENDS_EARLY };

/* Rows of a rank, one stretch behind the other. */
typedef struct part {
    int64_t rows, cols;
    void *data;
    int64_t at, reads;
    gnomon_status fails;
    bool short_pass;
} part;

static void copy(const job *j, int64_t first, int64_t count, void *to)
{
    for (int64_t i = 0; i < count * COLS; i++) {
        const double x = j->numbers[first * COLS + i];
        if (j->dtype == GNOMON_F64)
            ((double *)to)[i] = x;
        else if (j->dtype == GNOMON_F32)
            ((float *)to)[i] = (float)x;
        else
            ((int8_t *)to)[i] = (int8_t)lrint(fmin(fmax(9 * x, -120), 120));
    }
}

static part make_part(gnomon_context *ctx, const gnomon_comm *comm, const job *j)
{
    part p = {.cols = COLS};
    const int64_t size = (int64_t)gnomon_dtype_size(j->dtype);
    p.data = malloc((size_t)(j->rows * COLS * size) + 1);
    assert_non_null(p.data);
    for (int64_t stretch = 0;; stretch++) {
        int64_t first, count;
        assert_int_equal(gnomon_svd_rank_rows(ctx, comm, j->rows, COLS, stretch, &first, &count),
                         GNOMON_OK);
        if (count == 0) break;
        copy(j, first, count, (char *)p.data + p.rows * COLS * size);
        p.rows += count;
    }
    return p;
}

static gnomon_status next(void *user, const gnomon_matrix *dst, int64_t *got)
{
    part *p = user;
    const int64_t size = (int64_t)gnomon_dtype_size(dst->dtype);
    if (p->fails != GNOMON_OK && p->reads > 2) return p->fails;
    p->reads++;
    *got = dst->rows < 40000 ? dst->rows : 40000; /* pieces of its own */
    if (*got > p->rows - p->at) *got = p->rows - p->at;
    memcpy(dst->data, (char *)p->data + p->at * COLS * size, (size_t)(*got * COLS * size));
    p->at += *got;
    return GNOMON_OK;
}

static gnomon_status back(void *user)
{
    part *p = user;
    p->at = 0;
    if (p->short_pass && p->rows > 0) p->rows--;
    return GNOMON_OK;
}

static gnomon_status run(gnomon_context *ctx, const gnomon_comm *comm, const job *j, part *p,
                         gnomon_svd *svd, gnomon_lstsq *solved)
{
    const gnomon_matrix a = gnomon_matrix_rowmajor(p->data, j->dtype, p->rows, p->cols);
    const gnomon_matrix b =
        gnomon_matrix_rowmajor((void *)(uintptr_t)j->b, GNOMON_F64, j->rows, TARGETS);
    const gnomon_svd_rows rows = {p, p->rows, p->cols, j->dtype, next, back};
    gnomon_svd_options o = j->svd_options;
    gnomon_lstsq_options l = j->lstsq_options;
    o.comm = l.comm = comm;
    if (j->form == STREAM)
        return j->lstsq ? gnomon_lstsq_stream(ctx, &rows, &b, &l, solved)
                        : gnomon_svd_stream(ctx, &rows, &o, svd);
    return j->lstsq ? gnomon_lstsq_dense(ctx, &a, &b, &l, solved)
                    : gnomon_svd_dense(ctx, &a, &o, svd);
}

static void run_whole(job *j)
{
    const gnomon_comm alone = GNOMON_COMM_INIT;
    gnomon_context_options c = GNOMON_CONTEXT_OPTIONS_INIT;
    c.device = "cpu";
    assert_int_equal(gnomon_context_create(&c, &j->ctx), GNOMON_OK);
    part p = make_part(j->ctx, &alone, j);
    assert_int_equal(p.rows, j->rows);
    assert_int_equal(run(j->ctx, NULL, j, &p, &j->svd, &j->solved), GNOMON_OK);
    free(p.data);
}

static void check_svd(const job *j, const gnomon_svd *got)
{
    const gnomon_svd *due = &j->svd;
    const size_t size = gnomon_dtype_size(due->u.dtype);
    assert_int_equal(got->rank, due->rank);
    assert_int_equal(got->u.rows, j->rows);
    assert_memory_equal(got->s, due->s, (size_t)due->rank * sizeof *due->s);
    assert_memory_equal(got->u.data, due->u.data, (size_t)(j->rows * due->rank) * size);
    assert_memory_equal(got->vt.data, due->vt.data, (size_t)(COLS * due->rank) * size);
    const double figures[] = {got->norm, got->residual, got->residual_bound, got->spectral_bound},
                 wanted[] = {due->norm, due->residual, due->residual_bound, due->spectral_bound};
    assert_memory_equal(figures, wanted, sizeof figures);
    assert_int_equal(got->passes, due->passes);
    assert_int_equal(got->cols, due->cols);
}

static void check_lstsq(const job *j, const gnomon_lstsq *got)
{
    const gnomon_lstsq *due = &j->solved;
    assert_memory_equal(got->x.data, due->x.data, COLS * TARGETS * sizeof(double));
    assert_int_equal(got->residual.rows, due->residual.rows);
    if (due->residual.data != NULL)
        assert_memory_equal(got->residual.data, due->residual.data,
                            (size_t)(j->rows * TARGETS) * sizeof(double));
    assert_memory_equal(got->target, due->target, TARGETS * sizeof *due->target);
    assert_int_equal(got->passes, due->passes);
    assert_int_equal(got->iterations, due->iterations);
    assert_int_equal(got->k, due->k);
}

static void run_rank_of(rank_run *r)
{
    job *j = r->arg;
    gnomon_svd svd = {.struct_size = sizeof svd};
    gnomon_lstsq solved = {.struct_size = sizeof solved};
    part p = make_part(r->ctx, &r->comm, j);
    if (j->way != NOTHING && r->comm.rank == j->odd) {
        if (j->way == OTHER_ROWS) p.rows += 100000;
        if (j->way == OTHER_COLS) p.cols--;
        if (j->way == FAILS) p.fails = GNOMON_ERROR_IO;
        if (j->way == ENDS_EARLY) p.short_pass = true;
    }
    r->status = run(r->ctx, &r->comm, j, &p, &svd, &solved);
    if (r->status == GNOMON_OK && r->comm.rank == 0) {
        if (j->lstsq)
            check_lstsq(j, &solved);
        else
            check_svd(j, &svd);
    }
    if (r->status != GNOMON_OK || r->comm.rank > 0) {
        assert_null(svd.u.data);
        assert_null(svd.s);
        assert_null(solved.x.data);
    }
    gnomon_svd_free(r->ctx, &svd);
    gnomon_lstsq_free(r->ctx, &solved);
    free(p.data);
}

static double *draw(int64_t count)
{
    double *x = malloc((size_t)count * sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < count; i++)
        x[i] = uniform() + uniform();
    return x;
}

static job new_job(int64_t rows, bool lstsq)
{
    const gnomon_svd_options o = GNOMON_SVD_OPTIONS_INIT;
    const gnomon_lstsq_options l = GNOMON_LSTSQ_OPTIONS_INIT;
    return (job){.rows = rows,
                 .dtype = GNOMON_F32,
                 .lstsq = lstsq,
                 .svd_options = o,
                 .lstsq_options = l,
                 .numbers = draw(rows * COLS),
                 .b = draw(rows * TARGETS),
                 .svd = {.struct_size = sizeof(gnomon_svd)},
                 .solved = {.struct_size = sizeof(gnomon_lstsq)}};
}

static void drop(job *j)
{
    gnomon_svd_free(j->ctx, &j->svd);
    gnomon_lstsq_free(j->ctx, &j->solved);
    gnomon_context_destroy(j->ctx);
    free((void *)(uintptr_t)j->numbers);
    free((void *)(uintptr_t)j->b);
}

static void same_for_all_ranks(job *j)
{
    static const int sizes[] = {1, 2, 3, 4, 7};
    run_whole(j);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        all_succeed(sizes[i], run_rank_of, j);
    drop(j);
}

static void skip_without_blas(void)
{
    if (gnomon_svd_missing() != NULL) skip();
}

static void test_svd(void **state)
{
    (void)state;
    skip_without_blas();
    for (int way = 0; way < 7; way++) {
        job j = new_job(way == 3 ? 3 : MANY, false);
        j.svd_options.rank = 2;
        j.svd_options.oversample = 1;
        j.svd_options.measure = way % 2;
        j.form = (input)(way % INPUTS);
        if (way == 1) j.dtype = GNOMON_F64;
        if (way == 4) j.svd_options.power = 0; /* ends on the side of the rows */
        if (way == 5) j.svd_options.tolerance = 0.6;
        if (way == 6) {
            j.svd_options.tolerance = 0.5;
            j.svd_options.power = 0;
            j.svd_options.block = 1;
        }
        if (j.svd_options.tolerance > 0) j.svd_options.rank = 0;
        if (j.form == CONVERTED && way != 1) j.dtype = GNOMON_I8;
        same_for_all_ranks(&j);
    }
}

/* Numbers that have to be scaled, so that rows are checked twice. */
static void test_scaled(void **state)
{
    (void)state;
    skip_without_blas();
    job j = new_job(MANY, false);
    j.dtype = GNOMON_F64;
    j.form = STREAM;
    j.svd_options.rank = 2;
    for (int64_t i = 0; i < MANY * COLS; i++)
        ((double *)(uintptr_t)j.numbers)[i] *= 0x1p400;
    same_for_all_ranks(&j);
}

static void test_lstsq(void **state)
{
    (void)state;
    skip_without_blas();
    for (int way = 0; way < 6; way++) {
        job j = new_job(way == 3 ? 5 : MANY, true);
        j.form = (input)(way % INPUTS);
        j.dtype = way == 0 ? GNOMON_F32 : GNOMON_F64;
        if (j.form == CONVERTED) j.dtype = GNOMON_I8;
        j.lstsq_options.keep_residual = way % 2 == 0;
        if (way == 1) j.lstsq_options.sketch_size = 40;      /* a sketch for A^T A */
        if (way == 2) j.lstsq_options.sketch_size = 1 << 20; /* A itself */
        if (way == 4) j.lstsq_options.damp = 3;
        if (way == 5) j.lstsq_options.rcond = 1e-9;
        same_for_all_ranks(&j);
    }
}

static void test_failures(void **state)
{
    (void)state;
    skip_without_blas();
    for (int lstsq = 0; lstsq < 2; lstsq++) {
        for (int odd = 0; odd < 3; odd++) {
            job j = new_job(MANY, lstsq);
            double *numbers = (double *)(uintptr_t)j.numbers;
            char text[64];
            j.svd_options.rank = 2;
            j.odd = odd;
            j.way = OTHER_ROWS;
            all_fail(3, run_rank_of, &j, GNOMON_ERROR_SHAPE, "");
            if (odd > 0) {
                j.way = OTHER_COLS;
                all_fail(3, run_rank_of, &j, GNOMON_ERROR_SHAPE, "");
            }
            j.form = STREAM;
            j.way = FAILS;
            all_fail(3, run_rank_of, &j, GNOMON_ERROR_IO, odd == 0 ? "" : "IO");
            j.way = ENDS_EARLY;
            all_fail(3, run_rank_of, &j, GNOMON_ERROR_SHAPE, "");
            j.way = NOTHING;
            numbers[(int64_t)odd * 65536 * COLS + 2] = odd == 1 ? INFINITY : NAN;
            snprintf(text, sizeof text, "NaN or infinity in row %d, column 2", odd * 65536);
            all_fail(3, run_rank_of, &j, GNOMON_ERROR_NONFINITE, text);
            drop(&j);
        }
    }
}

/* What ranks don't do, and what is wrong for all. */
static void test_refusals(void **state)
{
    (void)state;
    skip_without_blas();
    job j = new_job(MANY, false);
    j.svd_options.rank = COLS + 1;
    all_fail(3, run_rank_of, &j, GNOMON_ERROR_ARGUMENT, "rank");
    j.svd_options.rank = 2;
    j.svd_options.single_pass = 1;
    all_fail(3, run_rank_of, &j, GNOMON_ERROR_UNSUPPORTED, "single_pass");
    drop(&j);
    j = new_job(0, false);
    j.svd_options.rank = 1;
    all_fail(3, run_rank_of, &j, GNOMON_ERROR_SHAPE, "must have rows");
    drop(&j);
    j = new_job(3, true);
    all_fail(3, run_rank_of, &j, GNOMON_ERROR_SHAPE, "at least as many as columns");
    drop(&j);
}

/* ---- a rank without memory ---- */

static void run_without_memory(rank_run *r)
{
    const job *j = r->arg;
    run_limited(r, r->comm.rank == j->odd ? j->at : -1, run_rank_of);
}

/* An allocation that a rank is refused: all are told of it, or that rank ends all. */
static void test_memory(void **state)
{
    (void)state;
    skip_without_blas();
    for (int lstsq = 0; lstsq < 2; lstsq++) {
        job j = new_job(3 * 65536, lstsq);
        j.svd_options.rank = 2;
        j.svd_options.power = 2;
        j.svd_options.measure = 1;
        j.lstsq_options.keep_residual = 1;
        run_whole(&j);
        for (j.odd = 0; j.odd < 2; j.odd++) {
            int told = 0;
            for (j.at = 0;; j.at += 3) {
                const gnomon_status status = run_refused(3, run_without_memory, &j, j.odd);
                if (status == GNOMON_OK) break;
                told += status == GNOMON_ERROR_MEMORY;
                assert_true(j.at < 1000);
            }
            assert_true(told > 3);
        }
        drop(&j);
    }
}

static void test_damage(void **state)
{
    (void)state;
    skip_without_blas();
    for (int way = 0; way < 4; way++) {
        job j = new_job(3 * 65536, way > 1);
        j.svd_options.rank = way == 0 ? 2 : 0;
        j.svd_options.tolerance = way == 0 ? 0 : 0.6;
        j.svd_options.measure = 1;
        j.lstsq_options.keep_residual = 1;
        if (way == 3) j.lstsq_options.sketch_size = 40;
        run_whole(&j);
        all_end_by_damage(3, run_rank_of, &j, 10);
        drop(&j);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_svd),      cmocka_unit_test(test_scaled),
        cmocka_unit_test(test_lstsq),    cmocka_unit_test(test_failures),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_memory),
        cmocka_unit_test(test_damage)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

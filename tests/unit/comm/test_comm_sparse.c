/* Factorisations of sparse rows, and of rows less their mean, that are divided among ranks give the
 * bits of one process. */
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

enum { NOTHING, OTHER_ROWS, OTHER_TYPE, OTHER_MEANS, DENSE };

typedef struct job {
    gnomon_csr whole; /* without values: dense, from 'numbers' */
    int64_t rows, cols;
    gnomon_dtype dtype;
    bool streams; /* dense rows */
    const double *numbers;
    gnomon_svd_options options;
    gnomon_svd svd; /* of one process */
    gnomon_context *ctx;
    int odd, way; /* the rank that is wrong, and how */
    int at;       /* or the allocation that it is refused */
} job;

/* A rank's rows. */
typedef struct part {
    gnomon_csr csr;
    gnomon_matrix dense;
    int64_t at;
} part;

static size_t size_of(gnomon_dtype dtype)
{
    return gnomon_dtype_size(dtype);
}

static bool stretch_of(gnomon_context *ctx, const gnomon_comm *comm, const job *j, int64_t stretch,
                       int64_t *first, int64_t *count)
{
    const gnomon_status status =
        j->whole.values != NULL
            ? gnomon_svd_rank_sparse_rows(ctx, comm, j->rows, stretch, first, count)
            : gnomon_svd_rank_rows(ctx, comm, j->rows, j->cols, stretch, first, count);
    assert_int_equal(status, GNOMON_OK);
    return *count > 0;
}

static part make_part(gnomon_context *ctx, const gnomon_comm *comm, const job *j)
{
    part p = {.csr = j->whole};
    const size_t size = size_of(j->dtype);
    int64_t first, count, rows = 0, entries = 0;
    for (int64_t stretch = 0; stretch_of(ctx, comm, j, stretch, &first, &count); stretch++)
        rows += count;
    p.dense = gnomon_matrix_rowmajor(malloc((size_t)(rows * j->cols) * size + 1), j->dtype, rows,
                                     j->cols);
    p.csr.rows = rows;
    if (j->whole.values == NULL) {
        rows = 0;
        for (int64_t stretch = 0; stretch_of(ctx, comm, j, stretch, &first, &count); stretch++) {
            for (int64_t i = 0; i < count * j->cols; i++) {
                const double x = j->numbers[first * j->cols + i];
                if (j->dtype == GNOMON_F64)
                    ((double *)p.dense.data)[rows * j->cols + i] = x;
                else
                    ((float *)p.dense.data)[rows * j->cols + i] = (float)x;
            }
            rows += count;
        }
        return p;
    }
    const int64_t all = j->whole.offsets[j->rows];
    int64_t *offsets = malloc((size_t)(rows + 1) * sizeof *offsets);
    int64_t *indices = malloc((size_t)all * sizeof *indices + 1);
    char *values = malloc((size_t)all * size + 1);
    assert_true(offsets != NULL && indices != NULL && values != NULL);
    offsets[0] = rows = 0;
    for (int64_t stretch = 0; stretch_of(ctx, comm, j, stretch, &first, &count); stretch++) {
        for (int64_t i = first; i < first + count; i++) {
            const int64_t from = j->whole.offsets[i], n = j->whole.offsets[i + 1] - from;
            memcpy(indices + entries, j->whole.indices + from, (size_t)n * sizeof *indices);
            memcpy(values + (size_t)entries * size,
                   (const char *)j->whole.values + (size_t)from * size, (size_t)n * size);
            entries += n;
            offsets[++rows] = entries;
        }
    }
    p.csr.offsets = offsets;
    p.csr.indices = indices;
    p.csr.values = values;
    return p;
}

static void drop_part(const job *j, part *p)
{
    free(p->dense.data);
    if (j->whole.values == NULL) return;
    free((void *)(uintptr_t)p->csr.offsets);
    free((void *)(uintptr_t)p->csr.indices);
    free((void *)(uintptr_t)p->csr.values);
}

static gnomon_status next(void *user, const gnomon_matrix *dst, int64_t *got)
{
    part *p = user;
    *got = p->dense.rows - p->at < 30000 ? p->dense.rows - p->at : 30000;
    if (*got > dst->rows) *got = dst->rows;
    for (int64_t i = 0; i < *got * dst->cols; i++) {
        const int64_t at = p->at * dst->cols + i;
        const double x = p->dense.dtype == GNOMON_F64 ? ((const double *)p->dense.data)[at]
                                                      : (double)((const float *)p->dense.data)[at];
        if (dst->dtype == GNOMON_F64)
            ((double *)dst->data)[i] = x;
        else
            ((float *)dst->data)[i] = (float)x;
    }
    p->at += *got;
    return GNOMON_OK;
}

static gnomon_status back(void *user)
{
    ((part *)user)->at = 0;
    return GNOMON_OK;
}

static gnomon_status run(gnomon_context *ctx, const gnomon_comm *comm, const job *j, part *p,
                         gnomon_svd *svd)
{
    const gnomon_svd_rows rows = {p, p->dense.rows, j->cols, j->dtype, next, back};
    gnomon_svd_options o = j->options;
    o.comm = comm;
    if (j->way == OTHER_MEANS && comm->rank == j->odd) o.center = o.standardize = !o.center;
    if (j->way == DENSE && comm->rank == j->odd) {
        memset(p->dense.data, 0, (size_t)(p->dense.rows * j->cols) * size_of(j->dtype));
        return gnomon_svd_dense(ctx, &p->dense, &o, svd);
    }
    if (j->whole.values != NULL) return gnomon_svd_csr(ctx, &p->csr, &o, svd);
    return j->streams ? gnomon_svd_stream(ctx, &rows, &o, svd)
                      : gnomon_svd_dense(ctx, &p->dense, &o, svd);
}

static void same(const void *got, const void *due, int64_t count, size_t size)
{
    assert_int_equal(got == NULL, due == NULL);
    if (due != NULL) assert_memory_equal(got, due, (size_t)count * size);
}

static void check(const job *j, const gnomon_svd *got)
{
    const gnomon_svd *due = &j->svd;
    const size_t size = size_of(due->u.dtype);
    assert_int_equal(got->rank, due->rank);
    assert_int_equal(got->u.rows, j->rows);
    assert_int_equal(got->columns, due->columns);
    same(got->mean, due->mean, j->cols, sizeof *due->mean);
    same(got->scale, due->scale, j->cols, sizeof *due->scale);
    same(got->s, due->s, due->rank, sizeof *due->s);
    same(got->u.data, due->u.data, j->rows * due->rank, size);
    same(got->vt.data, due->vt.data, j->cols * due->rank, size);
    const double figures[] = {got->norm, got->residual_estimate, got->residual_bound,
                              got->spectral_estimate, got->spectral_bound};
    const double wanted[] = {due->norm, due->residual_estimate, due->residual_bound,
                             due->spectral_estimate, due->spectral_bound};
    assert_memory_equal(figures, wanted, sizeof figures);
    assert_int_equal(got->passes, due->passes);
    assert_int_equal(got->converged_values, due->converged_values);
}

static void run_rank_of(rank_run *r)
{
    const job *j = r->arg;
    gnomon_svd svd = {.struct_size = sizeof svd};
    part p = make_part(r->ctx, &r->comm, j);
    if (r->comm.rank == j->odd && j->way == OTHER_ROWS) p.csr.rows -= 200;
    if (r->comm.rank == j->odd && j->way == OTHER_TYPE) p.csr.dtype = GNOMON_F32;
    r->status = run(r->ctx, &r->comm, j, &p, &svd);
    if (r->status == GNOMON_OK && r->comm.rank == 0)
        check(j, &svd);
    else
        assert_null(svd.u.data);
    gnomon_svd_free(r->ctx, &svd);
    drop_part(j, &p);
}

static void run_whole(job *j)
{
    const gnomon_comm alone = GNOMON_COMM_INIT;
    gnomon_context_options c = GNOMON_CONTEXT_OPTIONS_INIT;
    c.device = "cpu";
    assert_int_equal(gnomon_context_create(&c, &j->ctx), GNOMON_OK);
    part p = make_part(j->ctx, &alone, j);
    if (run(j->ctx, &alone, j, &p, &j->svd) != GNOMON_OK) fail_msg("%s", gnomon_last_error(j->ctx));
    drop_part(j, &p);
}

static void same_for_all_ranks(job *j)
{
    static const int sizes[] = {1, 2, 3, 4, 6};
    run_whole(j);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        all_succeed(sizes[i], run_rank_of, j);
    gnomon_svd_free(j->ctx, &j->svd);
    gnomon_context_destroy(j->ctx);
}

/* Rows of very different lengths, some empty, some with two entries of one place; columns of
 * falling weight. */
static job sparse_job(int64_t rows, int64_t cols, gnomon_dtype dtype)
{
    const gnomon_svd_options o = GNOMON_SVD_OPTIONS_INIT;
    job j = {.rows = rows,
             .cols = cols,
             .dtype = dtype,
             .options = o,
             .svd = {.struct_size = sizeof(gnomon_svd)}};
    const int64_t most = rows * 30;
    int64_t *offsets = malloc((size_t)(rows + 1) * sizeof *offsets);
    int64_t *indices = malloc((size_t)most * sizeof *indices);
    char *values = malloc((size_t)most * size_of(dtype));
    assert_true(offsets != NULL && indices != NULL && values != NULL);
    offsets[0] = 0;
    for (int64_t i = 0; i < rows; i++) {
        int64_t at = offsets[i];
        for (int64_t n = next_random() % (i % 97 == 0 ? 30 : 9); n > 0; n--) {
            const double u = uniform() + 0.5;
            indices[at] = (int64_t)(u * u * (double)cols);
            const double x = (uniform() + 1) / sqrt(1 + (double)indices[at]);
            if (dtype == GNOMON_F64)
                ((double *)(void *)values)[at] = x;
            else
                ((float *)(void *)values)[at] = (float)x;
            at++;
        }
        offsets[i + 1] = at;
    }
    j.whole = (gnomon_csr){.rows = rows,
                           .cols = cols,
                           .offsets = offsets,
                           .indices = indices,
                           .values = values,
                           .dtype = dtype};
    return j;
}

static void drop(job *j)
{
    free((void *)(uintptr_t)j->whole.offsets);
    free((void *)(uintptr_t)j->whole.indices);
    free((void *)(uintptr_t)j->whole.values);
    free((void *)(uintptr_t)j->numbers);
}

static void center(job *j, int how)
{
    j->options.center = how > 0;
    j->options.standardize = how > 1;
}

static void test_sparse(void **state)
{
    static const int64_t rows[] = {1, 3, 256, 257, 1500, 3111};
    (void)state;
    if (gnomon_svd_missing() != NULL) skip();
    for (int i = 0; i < 6; i++) {
        for (int how = 0; how < 3; how++) {
            job j = sparse_job(rows[i], 41, (i + how) % 2 == 0 ? GNOMON_F32 : GNOMON_F64);
            j.options.rank = rows[i] < 5 ? 1 : 5;
            j.options.oversample = rows[i] < 5 ? 0 : 20; /* several panels */
            if (i == 3) j.options.power = 0;
            if (i == 4) j.options.tolerance = 0.4 + 0.2 * how;
            if (i == 4) j.options.rank = 0;
            center(&j, how);
            same_for_all_ranks(&j);
            drop(&j);
        }
    }
}

/* By a Krylov space. */
static void test_krylov(void **state)
{
    (void)state;
    if (gnomon_svd_missing() != NULL) skip();
    for (int how = 0; how < 3; how++) {
        job j = sparse_job(1700, 1500, how == 1 ? GNOMON_F64 : GNOMON_F32);
        j.options.rank = 54;
        j.options.power = 2;
        if (how == 2) j.options.dtype = GNOMON_F64;
        center(&j, how);
        same_for_all_ranks(&j);
        drop(&j);
    }
}

/* Numbers whose sums overflow, and that have to be scaled. */
static void test_huge(void **state)
{
    (void)state;
    if (gnomon_svd_missing() != NULL) skip();
    for (int how = 0; how < 2; how++) {
        job j = sparse_job(900, 20, GNOMON_F64);
        for (int64_t i = 0; i < j.whole.offsets[900]; i++)
            ((double *)(uintptr_t)j.whole.values)[i] *= how > 0 ? 0x1p1022 : 0x1p400;
        j.options.rank = 3;
        center(&j, how);
        same_for_all_ranks(&j);
        drop(&j);
    }
}

/* Dense rows less their mean; pieces have 65536 rows. */
static void test_dense(void **state)
{
    enum { COLS = 3, MANY = 3 * 65536 + 19 };
    (void)state;
    if (gnomon_svd_missing() != NULL) skip();
    for (int way = 0; way < 5; way++) {
        const gnomon_svd_options o = GNOMON_SVD_OPTIONS_INIT;
        const int64_t rows = way == 4 ? 2 : MANY;
        double *numbers = malloc((size_t)(rows * COLS) * sizeof *numbers);
        assert_non_null(numbers);
        for (int64_t i = 0; i < rows * COLS; i++)
            numbers[i] = (uniform() + 3 * (double)(i % COLS)) * (way == 3 ? 0x1p1020 : 1);
        job j = {.rows = rows,
                 .cols = COLS,
                 .dtype = way == 1 || way == 3 ? GNOMON_F64 : GNOMON_F32,
                 .streams = way % 2 == 1,
                 .numbers = numbers,
                 .options = o,
                 .svd = {.struct_size = sizeof(gnomon_svd)}};
        j.options.rank = 2;
        j.options.oversample = 0;
        j.options.power = way == 0 ? 0 : 2;
        center(&j, way == 0 || way == 3 ? 1 : 2);
        same_for_all_ranks(&j);
        drop(&j);
    }
}

/* ---- least squares ---- */

enum { TARGETS = 2 };
typedef struct fit {
    job rows;
    const double *b;
    gnomon_lstsq_options options;
    gnomon_lstsq due;
} fit;

static gnomon_status solve(gnomon_context *ctx, const gnomon_comm *comm, const fit *f, part *p,
                           gnomon_lstsq *out)
{
    const gnomon_matrix b =
        gnomon_matrix_rowmajor((void *)(uintptr_t)f->b, GNOMON_F64, f->rows.rows, TARGETS);
    gnomon_lstsq_options o = f->options;
    o.comm = comm;
    return gnomon_lstsq_csr(ctx, &p->csr, &b, &o, out);
}

static void solve_rank_of(rank_run *r)
{
    const fit *f = r->arg;
    gnomon_lstsq got = {.struct_size = sizeof got};
    part p = make_part(r->ctx, &r->comm, &f->rows);
    r->status = solve(r->ctx, &r->comm, f, &p, &got);
    if (r->status == GNOMON_OK && r->comm.rank == 0) {
        const gnomon_lstsq *due = &f->due;
        same(got.x.data, due->x.data, f->rows.cols * TARGETS, sizeof(double));
        same(got.residual.data, due->residual.data, f->rows.rows * TARGETS, sizeof(double));
        assert_memory_equal(got.target, due->target, TARGETS * sizeof *due->target);
        assert_int_equal(got.passes, due->passes);
        assert_int_equal(got.iterations, due->iterations);
        assert_int_equal(got.k, due->k);
    } else {
        assert_null(got.x.data);
    }
    gnomon_lstsq_free(r->ctx, &got);
    drop_part(&f->rows, &p);
}

static void test_lstsq(void **state)
{
    static const int sizes[] = {1, 2, 3, 4, 6};
    static const int64_t rows[] = {40, 200, 700, 3100, 2999};
    const gnomon_comm alone = GNOMON_COMM_INIT;
    (void)state;
    if (gnomon_svd_missing() != NULL) skip();
    for (int way = 0; way < 5; way++) {
        const gnomon_lstsq_options o = GNOMON_LSTSQ_OPTIONS_INIT;
        gnomon_context_options c = GNOMON_CONTEXT_OPTIONS_INIT;
        gnomon_context *ctx;
        fit f = {.rows = sparse_job(rows[way], 17, way % 2 == 0 ? GNOMON_F32 : GNOMON_F64),
                 .options = o,
                 .due = {.struct_size = sizeof(gnomon_lstsq)}};
        double *b = malloc((size_t)(rows[way] * TARGETS) * sizeof *b);
        assert_non_null(b);
        for (int64_t i = 0; i < rows[way] * TARGETS; i++)
            b[i] = uniform();
        f.b = b;
        f.options.keep_residual = way != 1;
        f.options.damp = way == 3 ? 0.1 : 0;
        if (way == 2) f.options.sketch_size = 1 << 20; /* A itself */
        if (way > 2) f.options.sketch_size = 60;
        c.device = "cpu";
        assert_int_equal(gnomon_context_create(&c, &ctx), GNOMON_OK);
        part p = make_part(ctx, &alone, &f.rows);
        if (solve(ctx, &alone, &f, &p, &f.due) != GNOMON_OK) fail_msg("%s", gnomon_last_error(ctx));
        drop_part(&f.rows, &p);
        for (int i = 0; i < 5; i++)
            all_succeed(sizes[i], solve_rank_of, &f);
        if (way > 1) all_end_by_damage(3, solve_rank_of, &f, 20);
        gnomon_lstsq_free(ctx, &f.due);
        gnomon_context_destroy(ctx);
        free(b);
        drop(&f.rows);
    }
}

static void test_failures(void **state)
{
    (void)state;
    if (gnomon_svd_missing() != NULL) skip();
    for (int how = 0; how < 3; how++) {
        job j = sparse_job(1400, 30, GNOMON_F64);
        double *values = (double *)(uintptr_t)j.whole.values;
        char text[80];
        int64_t row = 256 * how + 7;
        j.options.rank = 2;
        j.options.dtype = GNOMON_F64;
        center(&j, how);
        j.odd = how;
        j.way = OTHER_ROWS;
        all_fail(3, run_rank_of, &j, GNOMON_ERROR_SHAPE, "");
        j.way = OTHER_TYPE;
        all_fail(3, run_rank_of, &j, GNOMON_ERROR_DTYPE, "");
        j.way = OTHER_MEANS;
        all_fail(3, run_rank_of, &j, GNOMON_ERROR_ARGUMENT, "");
        j.way = DENSE; /* of rank 0, all others would be wrong */
        if (j.odd > 0) all_fail(3, run_rank_of, &j, GNOMON_ERROR_DTYPE, "");
        j.way = NOTHING;
        while (j.whole.offsets[row + 1] == j.whole.offsets[row])
            row++;
        values[j.whole.offsets[row]] = how == 1 ? INFINITY : NAN;
        snprintf(text, sizeof text, "NaN or infinity in row %d, column %d", (int)row,
                 (int)j.whole.indices[j.whole.offsets[row]]);
        all_fail(3, run_rank_of, &j, GNOMON_ERROR_NONFINITE, text);
        drop(&j);
    }
}

/* ---- a rank without memory ---- */

static void run_without_memory(rank_run *r)
{
    const job *j = r->arg;
    run_limited(r, r->comm.rank == j->odd ? j->at : -1, run_rank_of);
}

/* An allocation that a rank is refused: all are told of it, or that rank ends all. Of the four
 * ranks the last has no rows. */
static void test_memory(void **state)
{
    (void)state;
    if (gnomon_svd_missing() != NULL) skip();
    job jobs[] = {sparse_job(600, 30, GNOMON_F32), sparse_job(1700, 1500, GNOMON_F32)};
    for (int krylov = 0; krylov < 2; krylov++) {
        job *j = &jobs[krylov];
        j->options.rank = krylov ? 54 : 2;
        j->options.power = 2;
        center(j, 2 - krylov);
        run_whole(j);
        for (j->odd = 0; j->odd < 2; j->odd++) {
            int told = 0;
            for (j->at = krylov * j->odd * 9;; j->at += krylov ? 37 : 1) {
                const gnomon_status status =
                    run_refused(krylov ? 3 : 4, run_without_memory, j, j->odd);
                if (status == GNOMON_OK) break;
                told += status == GNOMON_ERROR_MEMORY;
                assert_true(j->at < 3000);
            }
            assert_true(told > 1);
        }
        gnomon_svd_free(j->ctx, &j->svd);
        gnomon_context_destroy(j->ctx);
        drop(j);
    }
}

static void test_damage(void **state)
{
    (void)state;
    if (gnomon_svd_missing() != NULL) skip();
    for (int way = 0; way < 4; way++) {
        job j = way < 2 ? sparse_job(1400, 30, GNOMON_F32) : sparse_job(1700, 1500, GNOMON_F32);
        j.options.rank = way < 2 ? 2 : 54;
        j.options.power = 2;
        center(&j, way == 0 ? 2 : way % 2);
        run_whole(&j);
        all_end_by_damage(3, run_rank_of, &j, 40);
        gnomon_svd_free(j.ctx, &j.svd);
        gnomon_context_destroy(j.ctx);
        drop(&j);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sparse), cmocka_unit_test(test_krylov),
        cmocka_unit_test(test_huge),   cmocka_unit_test(test_dense),
        cmocka_unit_test(test_lstsq),  cmocka_unit_test(test_failures),
        cmocka_unit_test(test_memory), cmocka_unit_test(test_damage)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

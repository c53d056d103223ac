/* Tensors whose slices are divided among ranks give the bits of one process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "comm_testing.h"

#include <gnomon/hosvd.h>

#include <math.h>

enum { MODES = 3 };
enum { NOTHING, OTHER_ROWS, OTHER_SHAPE, OTHER_TYPE, NO_DATA, FAILS, ENDS_EARLY };

typedef struct job {
    int64_t size[MODES], ranks[MODES]; /* the slices are along the first mode, or the last one */
    int fortran;
    gnomon_dtype dtype;
    bool streams, gaps;
    gnomon_hosvd_options options;
    void *numbers; /* of the whole, slice behind slice */
    gnomon_context *ctx;
    gnomon_hosvd due;
    int odd, way; /* the rank that fails, and by what */
    int at;       /* or the allocation that it is refused */
} job;

static int64_t slices(const job *j)
{
    return j->size[j->fortran ? MODES - 1 : 0];
}

static int64_t slice(const job *j)
{
    return j->size[0] * j->size[1] * j->size[2] / slices(j);
}

/* A tensor of low rank, and noise. */
static job new_job(const int64_t size[MODES], const int64_t ranks[MODES], gnomon_dtype dtype,
                   double noise)
{
    enum { TERMS = 3 };
    const gnomon_hosvd_options o = GNOMON_HOSVD_OPTIONS_INIT;
    job j = {.dtype = dtype, .options = o, .due = {.struct_size = sizeof(gnomon_hosvd)}};
    double *terms[MODES];
    for (int n = 0; n < MODES; n++) {
        j.size[n] = size[n];
        j.ranks[n] = ranks[n];
        terms[n] = malloc((size_t)(size[n] * TERMS) * sizeof(double));
        assert_non_null(terms[n]);
        for (int64_t i = 0; i < size[n] * TERMS; i++)
            terms[n][i] = uniform() + 0.2;
    }
    const size_t count = (size_t)(size[0] * size[1] * size[2]);
    j.numbers = malloc(count * gnomon_dtype_size(dtype));
    assert_non_null(j.numbers);
    for (size_t i = 0; i < count; i++) {
        const int64_t c = (int64_t)i % size[2], b = (int64_t)i / size[2] % size[1],
                      a = (int64_t)i / size[2] / size[1];
        double x = noise > 0 ? noise * uniform() : 0;
        for (int t = 0; t < TERMS; t++)
            x += terms[0][a * TERMS + t] * terms[1][b * TERMS + t] * terms[2][c * TERMS + t] /
                 (t + 1);
        if (dtype == GNOMON_F64)
            ((double *)j.numbers)[i] = x;
        else if (dtype == GNOMON_F32)
            ((float *)j.numbers)[i] = (float)x;
        else
            ((int8_t *)j.numbers)[i] = (int8_t)lrint(fmin(fmax(90 * x, -120), 120));
    }
    for (int n = 0; n < MODES; n++)
        free(terms[n]);
    return j;
}

static void drop(job *j)
{
    if (j->ctx != NULL) gnomon_hosvd_free(j->ctx, &j->due);
    gnomon_context_destroy(j->ctx);
    free(j->numbers);
}

/* Slices of a rank, one stretch behind the other. */
typedef struct part {
    int64_t rows, cols, at, reads;
    size_t size;
    char *data;
    gnomon_status fails;
    bool short_pass;
} part;

/* gaps: each slice is followed by an unused one, so that strides are not those of a matrix. */
static part make_part(gnomon_context *ctx, const gnomon_comm *comm, const job *j)
{
    part p = {.cols = slice(j), .size = gnomon_dtype_size(j->dtype)};
    const size_t line = (size_t)p.cols * p.size, step = line * (j->gaps ? 2 : 1);
    for (int fill = 0; fill < 2; fill++) {
        if (fill) p.data = malloc((size_t)p.rows * step + 8);
        p.rows = 0;
        for (int64_t stretch = 0;; stretch++) {
            int64_t first, count;
            assert_int_equal(
                gnomon_hosvd_rank_rows(ctx, comm, slices(j), slice(j), stretch, &first, &count),
                GNOMON_OK);
            if (count == 0) break;
            for (int64_t i = 0; fill && i < count; i++)
                memcpy(p.data + (size_t)(p.rows + i) * step,
                       (char *)j->numbers + (size_t)(first + i) * line, line);
            p.rows += count;
        }
    }
    assert_non_null(p.data);
    return p;
}

static gnomon_status next(void *user, const gnomon_matrix *dst, int64_t *got)
{
    part *p = user;
    assert_true(gnomon_dtype_size(dst->dtype) == p->size);
    if (p->fails != GNOMON_OK && p->reads > 2) return p->fails;
    p->reads++;
    *got = dst->rows < 2 ? dst->rows : 2; /* pieces of its own */
    if (*got > p->rows - p->at) *got = p->rows - p->at;
    memcpy(dst->data, p->data + (size_t)(p->at * p->cols) * p->size,
           (size_t)(*got * p->cols) * p->size);
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
                         gnomon_hosvd *out)
{
    const bool odd = comm != NULL && comm->size > 1 && comm->rank == j->odd;
    int64_t size[MODES] = {j->size[0], j->size[1], j->size[2]};
    if (odd && j->way == OTHER_SHAPE) { /* as many elements */
        size[1] = j->size[2];
        size[2] = j->size[1];
    }
    gnomon_tensor x = gnomon_tensor_packed(p->data, j->dtype, MODES, size, j->fortran);
    if (j->gaps) x.stride[j->fortran ? MODES - 1 : 0] *= 2;
    if ((comm != NULL && p->rows == 0) || (odd && j->way == NO_DATA)) x.data = NULL;
    const gnomon_svd_rows rows = {p, p->rows, p->cols, j->dtype, next, back};
    gnomon_hosvd_options o = j->options;
    o.ranks = o.tolerance > 0 ? NULL : j->ranks;
    o.rank_count = o.tolerance > 0 ? 0 : MODES;
    o.comm = comm;
    if (odd && j->way == OTHER_TYPE) o.dtype = GNOMON_F64;
    return j->streams ? gnomon_hosvd_stream(ctx, &x, &rows, &o, out)
                      : gnomon_hosvd_dense(ctx, &x, &o, out);
}

static void check(const gnomon_hosvd *due, const gnomon_hosvd *got)
{
    int64_t core = 1;
    const size_t size = gnomon_dtype_size(due->core.dtype);
    assert_int_equal(got->modes, due->modes);
    assert_int_equal(got->core.dtype, due->core.dtype);
    for (int n = 0; n < MODES; n++) {
        const int64_t rank = due->rank[n];
        assert_int_equal(got->rank[n], rank);
        assert_int_equal(got->size[n], due->size[n]);
        assert_int_equal(got->order[n], due->order[n]);
        assert_int_equal(got->columns[n], due->columns[n]);
        assert_memory_equal(got->factor[n].data, due->factor[n].data,
                            (size_t)(due->size[n] * rank) * size);
        assert_memory_equal(got->values[n], due->values[n], (size_t)rank * sizeof(double));
        core *= rank;
    }
    assert_memory_equal(got->core.data, due->core.data, (size_t)core * size);
    assert_true(got->norm == due->norm && got->residual == due->residual);
    assert_int_equal(got->residual_by, due->residual_by);
    assert_int_equal(got->converged, due->converged);
    assert_int_equal(got->passes, due->passes);
    assert_int_equal(got->cholesky, due->cholesky);
    assert_int_equal(got->householder, due->householder);
}

static void run_rank_of(rank_run *r)
{
    job *j = r->arg;
    gnomon_hosvd got = {.struct_size = sizeof got};
    part p = make_part(r->ctx, &r->comm, j);
    if (j->way != NOTHING && r->comm.rank == j->odd) {
        if (j->way == OTHER_ROWS) p.rows++;
        if (j->way == FAILS) p.fails = GNOMON_ERROR_IO;
        if (j->way == ENDS_EARLY) p.short_pass = true;
    }
    r->status = run(r->ctx, &r->comm, j, &p, &got);
    if (r->status == GNOMON_OK && r->comm.rank == 0)
        check(&j->due, &got);
    else
        assert_null(got.core.data);
    gnomon_hosvd_free(r->ctx, &got);
    free(p.data);
}

static void run_whole(job *j)
{
    gnomon_context_options c = GNOMON_CONTEXT_OPTIONS_INIT;
    const gnomon_comm alone = GNOMON_COMM_INIT;
    c.device = "cpu";
    c.threads = 2;
    assert_int_equal(gnomon_context_create(&c, &j->ctx), GNOMON_OK);
    part p = make_part(j->ctx, &alone, j);
    assert_int_equal(p.rows, slices(j));
    job whole = *j;
    whole.streams = false;
    if (run(j->ctx, NULL, &whole, &p, &j->due) != GNOMON_OK)
        fail_msg("%s", gnomon_last_error(j->ctx));
    free(p.data);
}

static void same_for_all_ranks(job *j, const int *sizes, int count)
{
    run_whole(j);
    for (int i = 0; i < count; i++)
        all_succeed(sizes[i], run_rank_of, j);
}

static void skip_without_blas(void)
{
    if (gnomon_svd_missing() != NULL) skip();
}

/* A slab has at most 2^23 numbers, here one slice: as many segments as slices. */
static const int64_t few_slices[MODES] = {3, 1031, 4073}, few_ranks[MODES] = {2, 2, 3};
/* Here 61 slices of 66 (or 599 of 600). */
static const int64_t many_slices[MODES] = {70, 370, 340};

static void test_fixed(void **state)
{
    static const int sizes[] = {1, 2, 3, 4, 7};
    (void)state;
    skip_without_blas();
    for (int way = 0; way < 4; way++) {
        job j = new_job(few_slices, few_ranks, way == 1 ? GNOMON_I8 : GNOMON_F32, 0.3);
        j.options.oversample = 2;
        j.options.power = way == 3 ? 2 : way < 2;
        j.options.measure = way != 2;
        j.options.sequential = way == 2;
        j.options.seed = (uint64_t)way;
        j.streams = way == 0 || way == 2;
        j.gaps = way == 3;
        same_for_all_ranks(&j, way == 0 ? sizes : sizes + 1 + way % 3, way == 0 ? 5 : 1);
        drop(&j);
    }
}

/* Slices along the last mode, other operators, doubles that have to be scaled. */
static void test_orders(void **state)
{
    static const int sizes[] = {3, 2};
    static const int64_t size[MODES] = {23, 31, 4100}, ranks[MODES] = {4, 3, 5};
    (void)state;
    skip_without_blas();
    for (int kind = 0; kind < 3; kind++) {
        gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
        const int64_t wide[MODES] = {size[0], size[1] * 3, size[2]};
        job j = new_job(wide, ranks, GNOMON_F64, 0.2);
        d.kind = kind == 0 ? GNOMON_SRHT : kind == 1 ? GNOMON_KRONECKER : GNOMON_SJLT;
        d.seed = 4;
        j.fortran = 1;
        j.options.descriptor = &d;
        j.options.power = kind == 2;
        j.streams = kind == 1;
        for (int64_t i = 0; kind == 0 && i < slices(&j) * slice(&j); i++)
            ((double *)j.numbers)[i] *= 0x1p400;
        same_for_all_ranks(&j, sizes + kind % 2, 1);
        drop(&j);
    }
}

/* Modes that are cut by their Gram matrix, by QR, or whose tensor comes to rank 0 as a whole. */
static void test_unprojected(void **state)
{
    static const int sizes[] = {2};
    static const int64_t size[][MODES] = {{70, 31, 4000}, {70, 31, 4000}, {600, 14, 1000}};
    static const int64_t ranks[][MODES] = {{40, 2, 3}, {40, 4, 3}, {5, 14, 70}};
    (void)state;
    skip_without_blas();
    for (int way = 0; way < 3; way++) {
        job j =
            new_job(size[way], ranks[way], way == 1 ? GNOMON_F64 : GNOMON_F32, way == 1 ? 0 : 0.1);
        j.options.sequential = 1;
        j.options.oversample = way == 2 ? 2000 : 40;
        j.options.power = 0;
        same_for_all_ranks(&j, sizes, 1);
        drop(&j);
    }
}

static void test_tolerance(void **state)
{
    static const int sizes[] = {2, 3};
    (void)state;
    skip_without_blas();
    for (int way = 1; way < 4; way++) {
        job j = new_job(way < 2 ? many_slices : few_slices, few_ranks, GNOMON_F32, 0.01);
        j.options.tolerance = 0.3;
        j.options.power = way % 2;
        j.options.sequential = way > 0;
        j.streams = way == 1;
        same_for_all_ranks(&j, sizes + way % 2, 1);
        drop(&j);
    }
}

/* ---- failures ---- */

static void test_failures(void **state)
{
    (void)state;
    skip_without_blas();
    job j = new_job(few_slices, few_ranks, GNOMON_F32, 0.3);
    for (j.odd = 0; j.odd < 3; j.odd++) {
        char text[64];
        const int64_t at = j.odd * slice(&j) + 2 * j.size[2] + 7;
        float *numbers = j.numbers;
        const float before = numbers[at];
        j.streams = false;
        if (j.odd > 0) {
            j.way = OTHER_SHAPE;
            all_fail(3, run_rank_of, &j, GNOMON_ERROR_SHAPE, "");
            j.way = OTHER_TYPE;
            all_fail(3, run_rank_of, &j, GNOMON_ERROR_SHAPE, "");
        }
        j.way = NO_DATA;
        all_fail(3, run_rank_of, &j, GNOMON_ERROR_ARGUMENT, "");
        j.streams = true;
        j.way = OTHER_ROWS;
        all_fail(3, run_rank_of, &j, GNOMON_ERROR_SHAPE, "");
        j.way = FAILS;
        all_fail(3, run_rank_of, &j, GNOMON_ERROR_IO, j.odd == 0 ? "" : "IO");
        j.way = ENDS_EARLY;
        all_fail(3, run_rank_of, &j, GNOMON_ERROR_SHAPE, "");
        j.way = NOTHING;
        numbers[at] = j.odd == 1 ? INFINITY : NAN;
        snprintf(text, sizeof text, "NaN or infinity in element (%d, 2, 7)", j.odd);
        all_fail(3, run_rank_of, &j, GNOMON_ERROR_NONFINITE, text);
        numbers[at] = before;
    }
    j.ranks[1] = 2000;
    all_fail(3, run_rank_of, &j, GNOMON_ERROR_ARGUMENT, "ranks");
    j.ranks[1] = 2;
    j.options.memory = 1000;
    all_fail(3, run_rank_of, &j, GNOMON_ERROR_MEMORY, "");
    drop(&j);
}

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
    job j = new_job(few_slices, few_ranks, GNOMON_F32, 0.3);
    j.options.oversample = 1;
    j.options.measure = 1;
    run_whole(&j);
    for (j.odd = 0; j.odd < 2; j.odd++) {
        int told = 0;
        for (j.at = 0;; j.at += 23) {
            const gnomon_status status = run_refused(2, run_without_memory, &j, j.odd);
            if (status == GNOMON_OK) break;
            told += status == GNOMON_ERROR_MEMORY;
            assert_true(j.at < 3000);
        }
        assert_true(told > 1);
    }
    drop(&j);
}

static void test_damage(void **state)
{
    (void)state;
    skip_without_blas();
    for (int way = 0; way < 2; way++) {
        job j = new_job(few_slices, few_ranks, GNOMON_F32, way == 0 ? 0.3 : 0.01);
        j.options.measure = 1;
        if (way == 1) j.options.tolerance = 0.3;
        run_whole(&j);
        all_end_by_damage(3, run_rank_of, &j, 8);
        drop(&j);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fixed),       cmocka_unit_test(test_orders),
        cmocka_unit_test(test_unprojected), cmocka_unit_test(test_tolerance),
        cmocka_unit_test(test_failures),    cmocka_unit_test(test_memory),
        cmocka_unit_test(test_damage)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

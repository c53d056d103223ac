/* The SVD of rows that come in pieces, once or again and again, of sparse rows, and its bits. */
#include "linalg/orth.h"
#include "points/view.h"
#include "refusal.h"
#include "svd_testing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static gnomon_context *make_context(int threads)
{
    gnomon_context *ctx = NULL;
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    options.device = "cpu";
    options.threads = threads;
    assert_int_equal(gnomon_context_create(&options, &ctx), GNOMON_OK);
    return ctx;
}

static void expect(gnomon_context *ctx, gnomon_status got, gnomon_status want)
{
    if (got != want)
        fail_msg("status %s, want %s: %s", gnomon_status_name(got), gnomon_status_name(want),
                 gnomon_last_error(ctx));
}

/* Rows of a matrix in memory, handed out a few at a time. */
typedef struct pieces {
    const float *data;
    int64_t rows, cols, at, step, rewinds;
} pieces;

static gnomon_status pieces_next(void *user, const gnomon_matrix *dst, int64_t *got)
{
    pieces *f = user;
    int64_t n = f->rows - f->at < f->step ? f->rows - f->at : f->step;
    if (n > dst->rows) n = dst->rows;
    for (int64_t i = 0; i < n * f->cols; i++) {
        const float x = f->data[f->at * f->cols + i];
        const int64_t to = i / f->cols * dst->row_stride + i % f->cols * dst->col_stride;
        if (dst->dtype == GNOMON_F64)
            ((double *)dst->data)[to] = x;
        else
            ((float *)dst->data)[to] = x;
    }
    f->at += n;
    *got = n;
    return GNOMON_OK;
}

static gnomon_status pieces_rewind(void *user)
{
    pieces *f = user;
    f->at = 0;
    f->rewinds++;
    return GNOMON_OK;
}

static void same_bits(const gnomon_svd *a, const gnomon_svd *b)
{
    const size_t size = gnomon_dtype_size(a->u.dtype);
    assert_int_equal(a->rank, b->rank);
    assert_memory_equal(a->s, b->s, (size_t)a->rank * sizeof *a->s);
    assert_memory_equal(a->u.data, b->u.data, (size_t)(a->rows * a->rank) * size);
    assert_memory_equal(a->vt.data, b->vt.data, (size_t)(a->cols * a->rank) * size);
    assert_true(a->residual_bound == b->residual_bound);
    assert_true(a->spectral_bound == b->spectral_bound);
}

enum { ROWS = 1500, COLS = 70, RANK = 9 };

/* Low rank, and noise. */
static float *make_data(uint64_t seed)
{
    uint64_t state = seed;
    double *l = draw_orthonormal(ROWS, 12, &state), *r = draw_orthonormal(COLS, 12, &state);
    float *a = malloc(sizeof *a * ROWS * COLS);
    for (int i = 0; i < ROWS * COLS; i++) {
        double x = 1e-4 * draw_normal(&state);
        for (int k = 0; k < 12; k++)
            x += l[i / COLS * 12 + k] * pow(0.5, k) * r[i % COLS * 12 + k];
        a[i] = (float)x;
    }
    free(l);
    free(r);
    return a;
}

static void test_threads_and_streams(void **state)
{
    (void)state;
    float *a = make_data(3);
    gnomon_matrix view = gnomon_matrix_rowmajor(a, GNOMON_F32, ROWS, COLS);
    gnomon_svd_options options = GNOMON_SVD_OPTIONS_INIT;
    gnomon_context *one = make_context(1), *three = make_context(3);
    for (int way = 0; way < 3; way++) {
        gnomon_svd p = {.struct_size = sizeof p}, q = {.struct_size = sizeof q};
        gnomon_svd r = {.struct_size = sizeof r};
        pieces source = {.data = a, .rows = ROWS, .cols = COLS, .step = 37};
        gnomon_svd_rows rows = {&source,    way == 0 ? -1 : ROWS, COLS,
                                GNOMON_F32, pieces_next,          pieces_rewind};
        options.rank = RANK;
        options.single_pass = way == 1;
        options.tolerance = way == 2 ? 0.01 : 0;
        expect(one, gnomon_svd_dense(one, &view, &options, &p), GNOMON_OK);
        expect(three, gnomon_svd_dense(three, &view, &options, &q), GNOMON_OK);
        expect(three, gnomon_svd_stream(three, &rows, &options, &r), GNOMON_OK);
        same_bits(&p, &q);
        same_bits(&p, &r);
        if (way == 1) {
            assert_int_equal(source.rewinds, 0);
            assert_int_equal(r.passes, 1);
        }
        gnomon_svd_free(one, &p);
        gnomon_svd_free(three, &q);
        gnomon_svd_free(three, &r);
    }
    gnomon_context_destroy(one);
    gnomon_context_destroy(three);
    free(a);
}

static void test_single_pass(void **state)
{
    (void)state;
    float *a = make_data(4);
    double *d = malloc(sizeof *d * ROWS * COLS);
    for (int i = 0; i < ROWS * COLS; i++)
        d[i] = (double)a[i];
    gnomon_context *ctx = make_context(2);
    pieces source = {.data = a, .rows = ROWS, .cols = COLS, .step = 500};
    gnomon_svd_rows rows = {&source, -1, COLS, GNOMON_F32, pieces_next, NULL};
    gnomon_svd_options options = GNOMON_SVD_OPTIONS_INIT;
    gnomon_svd svd = {.struct_size = sizeof svd};
    options.rank = 12;
    expect(ctx, gnomon_svd_stream(ctx, &rows, &options, &svd), GNOMON_ERROR_ARGUMENT);
    options.single_pass = 1;
    expect(ctx, gnomon_svd_stream(ctx, &rows, &options, &svd), GNOMON_OK);
    const double residual = residual_of(&svd, d);
    /* noise of ROWS * COLS entries, less what 12 directions take of it */
    const double noise = 1e-4 * sqrt((double)ROWS * COLS);
    assert_true(residual >= 0.8 * noise && residual <= 2 * noise);
    assert_true(svd.residual_bound >= residual && svd.residual_estimate <= 2 * residual);
    assert_true(off_orthonormal(&svd) <= 2e-6);
    gnomon_svd_free(ctx, &svd);
    /* more columns than rows came */
    source.at = 0;
    source.rows = 11;
    expect(ctx, gnomon_svd_stream(ctx, &rows, &options, &svd), GNOMON_ERROR_ARGUMENT);
    gnomon_context_destroy(ctx);
    free(a);
    free(d);
}

static void test_sparse(void **state)
{
    (void)state;
    static int64_t offsets[ROWS + 1], indices[ROWS * COLS];
    static float values[ROWS * COLS], dense[ROWS * COLS];
    static double d[ROWS * COLS];
    uint64_t draws = 12;
    int64_t count = 0;
    for (int i = 0; i < ROWS; i++) {
        offsets[i] = count + 5; /* offsets need not begin at 0 */
        for (int j = 0; j < COLS; j++) {
            if (draw_uniform(&draws) > 0.08 / (1 + 0.2 * (j % 20))) continue;
            indices[count] = j;
            values[count] = (float)(1 + draw_normal(&draws));
            dense[i * COLS + j] = values[count++];
        }
    }
    offsets[ROWS] = count + 5;
    for (int i = 0; i < ROWS * COLS; i++)
        d[i] = (double)dense[i];
    gnomon_csr csr = {ROWS, COLS, offsets, indices, values, GNOMON_F32};
    gnomon_matrix view = gnomon_matrix_rowmajor(dense, GNOMON_F32, ROWS, COLS);
    gnomon_context *ctx = make_context(2), *one = make_context(1);
    gnomon_svd p = {.struct_size = sizeof p}, q = {.struct_size = sizeof q};
    gnomon_svd_options options = GNOMON_SVD_OPTIONS_INIT;
    options.rank = RANK;
    options.power = 3;
    for (int one_pass = 0; one_pass < 2; one_pass++) {
        options.single_pass = one_pass;
        expect(ctx, gnomon_svd_csr(ctx, &csr, &options, &p), GNOMON_OK);
        expect(ctx, gnomon_svd_dense(ctx, &view, &options, &q), GNOMON_OK);
        for (int i = 0; i < RANK; i++)
            assert_true(fabs(p.s[i] - q.s[i]) <= 1e-4 * q.s[0]);
        assert_true(fabs(residual_of(&p, d) - residual_of(&q, d)) <= 1e-4 * p.norm);
        assert_true(off_orthonormal(&p) <= 2e-6);
        assert_true(p.residual_bound >= residual_of(&p, d));
        gnomon_svd_free(ctx, &q);
        expect(one, gnomon_svd_csr(one, &csr, &options, &q), GNOMON_OK);
        same_bits(&p, &q);
        gnomon_svd_free(ctx, &p);
        gnomon_svd_free(one, &q);
    }
    options.single_pass = 0;
    options.rank = 0;
    options.tolerance = 0.7;
    expect(ctx, gnomon_svd_csr(ctx, &csr, &options, &p), GNOMON_OK);
    assert_true(p.converged && residual_of(&p, d) <= 0.7 * p.norm);
    gnomon_svd_free(ctx, &p);
    /* broken views */
    indices[3] = COLS;
    expect(ctx, gnomon_svd_csr(ctx, &csr, &options, &p), GNOMON_ERROR_DATA);
    indices[3] = 2;
    values[7] = NAN;
    expect(ctx, gnomon_svd_csr(ctx, &csr, &options, &p), GNOMON_ERROR_NONFINITE);
    values[7] = 1;
    offsets[4] = 0;
    expect(ctx, gnomon_svd_csr(ctx, &csr, &options, &p), GNOMON_ERROR_DATA);
    gnomon_context_destroy(ctx);
    gnomon_context_destroy(one);
}

/* Columns that lean on each other to any degree, by both ways. */
/* Sparse rows, handed out a few at a time; some tell what is not so. */
typedef struct sparse_pieces {
    gnomon_csr all;
    int64_t at, step, passes;
    int64_t most_rows, most_nonzeros; /* that were asked for */
    enum { HONEST, SHORT, LONG, WIDE, OTHER_TYPE, BROKEN, FAILING, TOO_MANY } how;
} sparse_pieces;

static gnomon_status sparse_next(void *user, int64_t max_rows, int64_t max_nonzeros,
                                 gnomon_csr *csr)
{
    sparse_pieces *f = user;
    int64_t rows = 0, most = f->step < max_rows ? f->step : max_rows;
    const int64_t all = f->all.rows - (f->how == SHORT && f->passes > 0);
    while (f->at + rows < all && rows < most &&
           (rows == 0 || f->all.offsets[f->at + rows + 1] - f->all.offsets[f->at] <= max_nonzeros))
        rows++;
    *csr = gnomon_csr_rows(&f->all, f->at, rows);
    f->at += rows;
    if (rows == 0 && f->how == LONG && f->passes > 0) *csr = gnomon_csr_rows(&f->all, 0, 1);
    if (f->how == WIDE) csr->cols++;
    if (f->how == OTHER_TYPE) csr->dtype = GNOMON_F64;
    if (f->how == TOO_MANY) csr->rows = max_rows + 1;
    if (f->how == FAILING && f->passes > 1) return GNOMON_ERROR_IO;
    f->most_rows = max_rows;
    f->most_nonzeros = max_nonzeros;
    return GNOMON_OK;
}

static gnomon_status sparse_rewind(void *user)
{
    sparse_pieces *f = user;
    f->at = 0;
    f->passes++;
    return GNOMON_OK;
}

enum { SPARSE_M = 700, SPARSE_D = 660, SPARSE_EACH = 24 };

/* Rows by a law with heavy columns, a full one, empty ones, some with a column twice. */
static gnomon_csr make_sparse(int64_t *offsets, int64_t *indices, float *values)
{
    uint64_t draws = 17;
    int64_t count = 0;
    for (int row = 0; row < SPARSE_M; row++) {
        offsets[row] = count;
        const int each = row % 50 == 7 ? 0 : row == 99 ? SPARSE_D : row % SPARSE_EACH + 1;
        for (int i = 0; i < each; i++) {
            const double u = draw_uniform(&draws);
            indices[count] = each == SPARSE_D ? i : (int64_t)(SPARSE_D * u * u * u);
            values[count++] = (float)((1 + row % 5) * draw_normal(&draws) + 0.3);
        }
    }
    offsets[SPARSE_M] = count;
    return (gnomon_csr){SPARSE_M, SPARSE_D, offsets, indices, values, GNOMON_F32};
}

/* The bits of rows in memory, by a Krylov space, by iterations, by a tolerance, in both types,
 * centred and standardized, wherever pieces end. */
static void test_sparse_stream(void **state)
{
    (void)state;
    static int64_t offsets[SPARSE_M + 1], indices[SPARSE_M * SPARSE_EACH + SPARSE_D];
    static float values[SPARSE_M * SPARSE_EACH + SPARSE_D];
    const gnomon_csr csr = make_sparse(offsets, indices, values);
    static const int64_t steps[] = {1, 37, 300, SPARSE_M};
    for (int way = 0; way < 12; way++) {
        gnomon_svd_options options = GNOMON_SVD_OPTIONS_INIT;
        gnomon_svd whole = {.struct_size = sizeof whole}, svd = {.struct_size = sizeof svd};
        gnomon_context *two = make_context(2);
        options.rank = way % 4 == 0 ? 55 : 9;
        options.power = way % 4 == 0 ? 2 : way % 4 == 1 ? 3 : way % 4 == 2 ? 1 : -1;
        options.tolerance = way % 4 == 3 ? 0.9 : 0;
        options.dtype = way % 2 == 0 ? GNOMON_F32 : GNOMON_F64;
        options.center = way >= 4;
        options.standardize = way >= 8;
        expect(two, gnomon_svd_csr(two, &csr, &options, &whole), GNOMON_OK);
        for (int i = 0; i < 4; i++) {
            gnomon_context *ctx = make_context(1 + i);
            sparse_pieces source = {.all = csr, .step = steps[i]};
            const gnomon_svd_sparse_rows rows = {&source,     i % 2 == 0 ? SPARSE_M : -1,
                                                 SPARSE_D,    GNOMON_F32,
                                                 sparse_next, sparse_rewind};
            expect(ctx, gnomon_svd_csr_stream(ctx, &rows, &options, &svd), GNOMON_OK);
            same_bits(&whole, &svd);
            assert_int_equal(svd.passes, whole.passes);
            assert_int_equal(svd.converged_values, whole.converged_values);
            /* what checks the rows is no pass of the result; each but the first begins anew */
            assert_in_range(source.passes, svd.passes, svd.passes + 3);
            gnomon_svd_free(ctx, &svd);
            gnomon_context_destroy(ctx);
        }
        gnomon_svd_free(two, &whole);
        gnomon_context_destroy(two);
    }
}

/* Where the sums of all parts find no room at a time the rows are read for each, which is told. */
static void test_sparse_stream_parts(void **state)
{
    (void)state;
    static int64_t offsets[SPARSE_M + 1], indices[SPARSE_M * SPARSE_EACH + SPARSE_D];
    static float values[SPARSE_M * SPARSE_EACH + SPARSE_D];
    const gnomon_csr csr = make_sparse(offsets, indices, values);
    gnomon_svd_options options = GNOMON_SVD_OPTIONS_INIT;
    gnomon_svd whole = {.struct_size = sizeof whole}, svd = {.struct_size = sizeof svd};
    gnomon_context_options c = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context *two = make_context(2), *ctx;
    sparse_pieces source = {.all = csr, .step = 300};
    const gnomon_svd_sparse_rows rows = {&source,    SPARSE_M,    SPARSE_D,
                                         GNOMON_F32, sparse_next, sparse_rewind};
    c.memory_limit = 1 << 20;
    c.device = "cpu";
    assert_int_equal(gnomon_context_create(&c, &ctx), GNOMON_OK);
    options.rank = 9;
    options.power = 1;
    expect(two, gnomon_svd_csr(two, &csr, &options, &whole), GNOMON_OK);
    expect(ctx, gnomon_svd_csr_stream(ctx, &rows, &options, &svd), GNOMON_OK);
    same_bits(&whole, &svd);
    assert_true(svd.passes > whole.passes);
    assert_in_range(source.passes, svd.passes, svd.passes + 1);
    gnomon_svd_free(ctx, &svd);
    gnomon_svd_free(two, &whole);
    gnomon_context_destroy(ctx);
    gnomon_context_destroy(two);
}

static void test_sparse_stream_refusals(void **state)
{
    (void)state;
    static int64_t offsets[SPARSE_M + 1], indices[SPARSE_M * SPARSE_EACH + SPARSE_D];
    static float values[SPARSE_M * SPARSE_EACH + SPARSE_D];
    const gnomon_csr csr = make_sparse(offsets, indices, values);
    static const gnomon_status due[] = {[HONEST] = GNOMON_OK,
                                        [SHORT] = GNOMON_ERROR_SHAPE,
                                        [LONG] = GNOMON_ERROR_SHAPE,
                                        [WIDE] = GNOMON_ERROR_ARGUMENT,
                                        [OTHER_TYPE] = GNOMON_ERROR_ARGUMENT,
                                        [BROKEN] = GNOMON_ERROR_DATA,
                                        [FAILING] = GNOMON_ERROR_IO,
                                        [TOO_MANY] = GNOMON_ERROR_ARGUMENT};
    gnomon_context *ctx = make_context(1);
    for (int how = HONEST; how <= TOO_MANY; how++) {
        gnomon_svd_options options = GNOMON_SVD_OPTIONS_INIT;
        gnomon_svd svd = {.struct_size = sizeof svd};
        sparse_pieces source = {.all = csr, .step = 100, .how = how};
        const gnomon_svd_sparse_rows rows = {&source,    -1,          SPARSE_D,
                                             GNOMON_F32, sparse_next, sparse_rewind};
        const int64_t kept = indices[900];
        options.rank = 5;
        if (how == BROKEN) indices[900] = SPARSE_D;
        expect(ctx, gnomon_svd_csr_stream(ctx, &rows, &options, &svd), due[how]);
        indices[900] = kept;
        if (how == HONEST) assert_true(source.most_rows > 0 && source.most_nonzeros > 0);
        if (how != HONEST) assert_null(svd.u.data);
        gnomon_svd_free(ctx, &svd);
        options.single_pass = 1;
        source.how = HONEST;
        expect(ctx, gnomon_svd_csr_stream(ctx, &rows, &options, &svd), GNOMON_ERROR_UNSUPPORTED);
    }
    gnomon_svd_options options = GNOMON_SVD_OPTIONS_INIT;
    gnomon_svd svd = {.struct_size = sizeof svd};
    sparse_pieces source = {.all = csr, .step = 100};
    gnomon_svd_sparse_rows rows = {&source,    SPARSE_M + 1, SPARSE_D,
                                   GNOMON_F32, sparse_next,  sparse_rewind};
    options.rank = 5;
    expect(ctx, gnomon_svd_csr_stream(ctx, &rows, &options, &svd), GNOMON_ERROR_SHAPE);
    rows.rows = SPARSE_M - 1;
    source.at = 0;
    expect(ctx, gnomon_svd_csr_stream(ctx, &rows, &options, &svd), GNOMON_ERROR_SHAPE);
    rows.rows = SPARSE_M;
    values[300] = NAN;
    source.at = 0;
    expect(ctx, gnomon_svd_csr_stream(ctx, &rows, &options, &svd), GNOMON_ERROR_NONFINITE);
    rows.dtype = GNOMON_F16;
    expect(ctx, gnomon_svd_csr_stream(ctx, &rows, &options, &svd), GNOMON_ERROR_DTYPE);
    rows.cols = 0;
    rows.dtype = GNOMON_F32;
    expect(ctx, gnomon_svd_csr_stream(ctx, &rows, &options, &svd), GNOMON_ERROR_SHAPE);
    gnomon_context_destroy(ctx);
}

/* Bytes that are out, and the most there were. */
typedef struct counter {
    size_t now, most;
} counter;

static void *counting(void *user, size_t size, size_t alignment)
{
    counter *c = user;
    c->now += size;
    if (c->now > c->most) c->most = c->now;
    return aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

static void uncounting(void *user, void *pointer, size_t size)
{
    ((counter *)user)->now -= size;
    free(pointer);
}

/* What a call takes is what gnomon_svd_memory says, hardly less; under a limit a smaller form,
 * whose values are within its bound, then a refusal. */
static void test_memory(void **state)
{
    (void)state;
    enum { M = 30000, D = 14000, EACH = 5, K = 60 };
    int64_t *offsets = malloc((M + 1) * sizeof *offsets),
            *indices = malloc(M * EACH * sizeof *indices);
    float *values = malloc(M * EACH * sizeof *values);
    uint64_t draws = 5;
    offsets[0] = 0;
    for (int64_t i = 0; i < M * EACH; i++) {
        const double u = draw_uniform(&draws);
        indices[i] = (int64_t)(D * u * u);
        values[i] = (float)draw_normal(&draws);
        offsets[i / EACH + 1] = i + 1;
    }
    const gnomon_csr csr = {M, D, offsets, indices, values, GNOMON_F32};
    int64_t all = 0;
    double bound = 0;
    for (int way = 0; way < 6; way++) {
        counter c = {0};
        const gnomon_allocator allocator = {&c, counting, uncounting};
        gnomon_context_options context = GNOMON_CONTEXT_OPTIONS_INIT;
        gnomon_context *ctx = NULL;
        gnomon_svd_options options = GNOMON_SVD_OPTIONS_INIT;
        gnomon_svd svd = {.struct_size = sizeof svd};
        sparse_pieces source = {.all = csr, .step = M};
        const gnomon_svd_sparse_rows rows = {&source, M, D, GNOMON_F32, sparse_next, sparse_rewind};
        const int limited = way == 4, refused = way == 5;
        context.device = "cpu";
        context.threads = 1;
        context.allocator = &allocator;
        context.memory_limit = limited ? all - 1 : refused ? all / 3 : 0;
        options.rank = K;
        options.power = 12; /* many columns of the space */
        options.center = way == 1 || way == 3;
        assert_int_equal(gnomon_context_create(&context, &ctx), GNOMON_OK);
        const size_t before = c.now;
        const int64_t told = gnomon_svd_memory(ctx, M, D, GNOMON_F32, &options);
        c.most = c.now;
        const gnomon_status status = way == 2 || way == 3
                                         ? gnomon_svd_csr_stream(ctx, &rows, &options, &svd)
                                         : gnomon_svd_csr(ctx, &csr, &options, &svd);
        const int64_t taken = (int64_t)(c.most - before);
        expect(ctx, status, refused ? GNOMON_ERROR_MEMORY : GNOMON_OK);
        if (refused) {
            assert_string_equal(gnomon_last_error_argument(ctx), "memory_limit");
        } else {
            assert_in_range(taken, told / 2, told + (4 << 20)); /* and a piece */
            assert_true(way != 4 || (told < all && svd.residual_bound < 1.02 * bound));
        }
        if (way == 0) {
            all = told;
            bound = svd.residual_bound;
        }
        assert_int_equal(gnomon_svd_memory(ctx, 0, D, GNOMON_F32, &options), -1);
        assert_int_equal(gnomon_svd_memory(ctx, INT64_MAX, INT64_MAX, GNOMON_F32, &options), -1);
        assert_int_equal(gnomon_svd_memory(ctx, M, D, GNOMON_F32, NULL), -1);
        gnomon_svd_free(ctx, &svd);
        gnomon_context_destroy(ctx);
        assert_true(c.now == 0);
    }
    free(offsets);
    free(indices);
    free(values);
}

static void test_orthonormalise(void **state)
{
    (void)state;
    enum { M = 3000, S = 12 };
    gnomon_context *ctx = make_context(2);
    gnomon_blas_enter();
    for (int f64 = 0; f64 < 2; f64++) {
        for (int kind = 0; kind < 4; kind++) { /* well, badly conditioned, dependent, zero */
            gnomon_tall y, was;
            double r[S * S];
            uint64_t draws = 31;
            gnomon_orth_count count = {0, 0};
            expect(ctx, gnomon_tall_make(ctx, f64, M, S, false, "y", &y), GNOMON_OK);
            expect(ctx, gnomon_tall_make(ctx, f64, M, S, false, "y", &was), GNOMON_OK);
            for (int i = 0; i < M * S; i++) {
                double x = draw_normal(&draws);
                if (kind == 1) x *= pow(0.01, i % S);
                if (kind == 2) x = i % S < 4 ? x : (double)(i / S % (i % 2 + 2));
                if (kind == 3) x = 0;
                gnomon_f64_to_type(f64, 1, &x, (char *)y.data + (size_t)i * gnomon_tall_size(f64));
            }
            memcpy(was.data, y.data, (size_t)(M * S) * gnomon_tall_size(f64));
            expect(ctx, gnomon_orthonormalise(ctx, &y, r, &count), GNOMON_OK);
            assert_int_equal(count.cholesky + count.householder, 1);
            assert_int_equal(count.cholesky, kind == 0);
            const double u = f64 ? 0x1p-53 : 0x1p-24;
            gnomon_matrix q = gnomon_matrix_rowmajor(y.data, f64 ? GNOMON_F64 : GNOMON_F32, M, S);
            gnomon_matrix a = q;
            a.data = was.data;
            for (int i = 0; i < S; i++) {
                for (int j = 0; j < S; j++) {
                    double dot = 0;
                    for (int l = 0; l < M; l++)
                        dot += at(&q, l, i) * at(&q, l, j);
                    assert_true(fabs(dot - (i == j)) <= 64 * u);
                    if (i > j) assert_true(r[i * S + j] == 0);
                }
            }
            for (int l = 0; l < M; l++) {
                for (int j = 0; j < S; j++) {
                    double x = 0;
                    for (int i = 0; i <= j; i++)
                        x += at(&q, l, i) * r[i * S + j];
                    assert_true(fabs(x - at(&a, l, j)) <= 512 * u * 4);
                }
            }
            gnomon_tall_drop(ctx, &y);
            gnomon_tall_drop(ctx, &was);
        }
    }
    gnomon_blas_leave();
    gnomon_context_destroy(ctx);
}

/* Columns that grow by themselves: R's diagonal is all ones and its least singular value above
 * 2^-7, but the last columns are far longer than that, and their Gram matrix has lost the rest. */
static void test_long_columns(void **state)
{
    (void)state;
    enum { M = 400, S = 5, T = 64 };
    gnomon_context *ctx = make_context(1);
    gnomon_blas_enter();
    for (int n = 2; n <= S; n++) {
        uint64_t draws = 7;
        double *q = draw_orthonormal(M, n, &draws);
        gnomon_orth_count count = {0, 0};
        gnomon_tall y;
        expect(ctx, gnomon_tall_make(ctx, false, M, n, false, "y", &y), GNOMON_OK);
        float *at_y = y.data;
        for (int64_t i = 0; i < M; i++) {
            double x = 0;
            for (int64_t j = 0; j < n; j++) {
                x = q[i * n + j] - T * x;
                at_y[i * n + j] = (float)x;
            }
        }
        expect(ctx, gnomon_orthonormalise(ctx, &y, NULL, &count), GNOMON_OK);
        for (int64_t i = 0; i < n; i++) {
            for (int64_t j = 0; j <= i; j++) {
                double dot = 0;
                for (int64_t l = 0; l < M; l++)
                    dot += (double)at_y[l * n + i] * at_y[l * n + j];
                assert_true(fabs(dot - (i == j)) <= 64 * 0x1p-24);
            }
        }
        gnomon_tall_drop(ctx, &y);
        free(q);
    }
    gnomon_blas_leave();
    gnomon_context_destroy(ctx);
}

/* From below it would let a shift reorder directions. */
static void test_least_square(void **state)
{
    (void)state;
    enum { S = 24 };
    double r[S * S] = {0}, work[S], most = 0;
    uint64_t draws = 5;
    for (int i = 0; i < S; i++) {
        r[i * S + i] = 1e30 * pow(0.7, i % 9);
        most = fmax(most, r[i * S + i]);
        for (int j = i + 1; j < S; j++)
            r[i * S + j] = 1e29 * draw_normal(&draws);
    }
    double *exact = exact_values(S, r);
    const double share = exact[S - 1] / most;
    const double got = gnomon_least_square(S, r, work);
    assert_true(got >= share * share * (1 - 1e-9) && got <= share * share * 1.1);
    free(exact);
}

/* A tail that all has one length: where the shift helps most. Without it the residual is above the
 * best by 0.009 and 0.003 after two and three iterations. */
static void test_shift(void **state)
{
    (void)state;
    enum { N = 160, K = 16 };
    double s[N];
    for (int i = 0; i < N; i++)
        s[i] = fmax(1 - 0.7 * i / K, 0.3);
    double *a = matrix_with(N, N, s, 3);
    gnomon_context *ctx = make_context(2);
    gnomon_matrix view = gnomon_matrix_rowmajor(a, GNOMON_F64, N, N);
    double over[4];
    for (int power = 0; power < 4; power++) {
        gnomon_svd svd = {.struct_size = sizeof svd};
        gnomon_svd_options options = GNOMON_SVD_OPTIONS_INIT;
        options.rank = K;
        options.power = power;
        options.test_vectors = 0;
        expect(ctx, gnomon_svd_dense(ctx, &view, &options, &svd), GNOMON_OK);
        over[power] = residual_of(&svd, a) / tail_of(s, K, N) - 1;
        print_message("%d iterations: %g\n", power, over[power]);
        assert_int_equal(svd.passes, power < 2 ? 2 * power + 2 : 2 * power + 1);
        assert_true(off_orthonormal(&svd) <= 1e-14);
        gnomon_svd_free(ctx, &svd);
    }
    assert_true(over[2] < 0.005);
    assert_true(over[3] < 0.0012);
    gnomon_context_destroy(ctx);
    free(a);
}

/* Which operator a call takes that names none, and that it makes no difference to what is found,
 * even where singular vectors are coordinates. */
static void test_start(void **state)
{
    (void)state;
    enum { N = 160, K = 54 };
    gnomon_context *ctx = make_context(2);
    double *a = calloc((size_t)N * N, sizeof *a), s[N];
    for (int i = 0; i < N; i++) {
        s[i] = pow(0.1, (double)i / K);
        a[i * N + (i * 47 + 5) % N] = s[i];
    }
    gnomon_matrix view = gnomon_matrix_rowmajor(a, GNOMON_F64, N, N);
    for (int way = 0; way < 4; way++) {
        gnomon_svd svd = {.struct_size = sizeof svd};
        gnomon_svd_options options = GNOMON_SVD_OPTIONS_INIT;
        gnomon_descriptor rademacher = GNOMON_DESCRIPTOR_INIT;
        rademacher.kind = GNOMON_RADEMACHER;
        options.rank = way == 1 ? K - 1 : K;
        options.power = way == 2 ? 1 : 2;
        options.descriptor = way == 3 ? &rademacher : NULL;
        options.seed = 9;
        options.test_vectors = 0;
        expect(ctx, gnomon_svd_dense(ctx, &view, &options, &svd), GNOMON_OK);
        assert_int_equal(svd.descriptor.kind, way == 0   ? GNOMON_SJLT
                                              : way == 3 ? GNOMON_RADEMACHER
                                                         : GNOMON_GAUSSIAN);
        assert_int_equal(svd.descriptor.nonzeros, way == 0 ? 8 : 0);
        assert_int_equal(svd.descriptor.seed, way == 3 ? 0 : 9);
        if (way != 2) assert_true(residual_of(&svd, a) <= 1.01 * tail_of(s, options.rank, N));
        gnomon_svd_free(ctx, &svd);
    }
    gnomon_context_destroy(ctx);
    free(a);
}

static void test_every_allocation(void **state)
{
    (void)state;
    enum { M = 40, D = 30 };
    static float a[M * D];
    static int64_t offsets[M + 1], indices[M * D];
    uint64_t draws = 2;
    for (int i = 0; i < M * D; i++) {
        a[i] = (float)draw_normal(&draws);
        indices[i] = i % D;
        offsets[i / D + 1] = i + 1;
    }
    /* rank, tolerance, once, sparse, in pieces and once; the same less the mean */
    for (int all = 0; all < 10; all++) {
        const int way = all % 5;
        for (long at = -1, done = 0; !done; at++) {
            refusal r = {.at = -1};
            const gnomon_allocator allocator = {&r, refusing, releasing};
            gnomon_context_options context = GNOMON_CONTEXT_OPTIONS_INIT;
            gnomon_context *ctx = NULL;
            context.device = "cpu";
            context.threads = 1;
            context.allocator = &allocator;
            assert_int_equal(gnomon_context_create(&context, &ctx), GNOMON_OK);
            const long before = r.out, start = r.calls;
            if (at >= 0) r.at = start + at;
            gnomon_matrix view = gnomon_matrix_rowmajor(a, GNOMON_F32, M, D);
            gnomon_csr csr = {M, D, offsets, indices, a, GNOMON_F32};
            pieces source = {.data = a, .rows = M, .cols = D, .step = 7};
            gnomon_svd_rows rows = {&source, -1, D, GNOMON_F32, pieces_next, NULL};
            gnomon_svd_options options = GNOMON_SVD_OPTIONS_INIT;
            gnomon_svd svd = {.struct_size = sizeof svd};
            options.rank = 6;
            options.measure = way == 0;
            options.dtype = way == 3 ? GNOMON_F64 : (gnomon_dtype)0;
            options.tolerance = way == 1 ? 0.5 : 0;
            options.single_pass = way == 2 || way == 4;
            options.block = 3;
            options.center = all >= 5;
            gnomon_status status = way == 3   ? gnomon_svd_csr(ctx, &csr, &options, &svd)
                                   : way == 4 ? gnomon_svd_stream(ctx, &rows, &options, &svd)
                                              : gnomon_svd_dense(ctx, &view, &options, &svd);
            if (at < 0) expect(ctx, status, GNOMON_OK);
            done = at >= 0 && status == GNOMON_OK;
            if (at >= 0 && !done) {
                assert_int_equal(status, GNOMON_ERROR_MEMORY);
                assert_null(svd.u.data);
                assert_null(svd.s);
                assert_null(svd.mean);
            }
            gnomon_svd_free(ctx, &svd);
            assert_true(r.out == before);
            gnomon_context_destroy(ctx);
            assert_true(r.out == 0);
        }
    }
}

/* The same of sparse rows that a Krylov space suits, of another type than the work's, less their
 * mean. */
static void test_every_allocation_of_krylov(void **state)
{
    (void)state;
    enum { M = 800, D = 780, EACH = 4, K = 54, PASSES = 9 };
    static double values[M * EACH];
    static int64_t offsets[M + 1], indices[M * EACH];
    uint64_t draws = 3;
    for (int i = 0; i < M * EACH; i++) {
        const int row = i / EACH, place = i % EACH;
        values[i] = draw_normal(&draws) * (1 + row % 7);
        indices[i] = D / EACH * place + (row * (2 * place + 1) + place) % (D / EACH);
        offsets[row + 1] = i + 1;
    }
    const gnomon_csr csr = {M, D, offsets, indices, values, GNOMON_F64};
    for (long at = -1, done = 0, stream = 0; stream < 2; at = done ? -1 : at + 1, stream += done) {
        refusal r = {.at = -1};
        const gnomon_allocator allocator = {&r, refusing, releasing};
        gnomon_context_options context = GNOMON_CONTEXT_OPTIONS_INIT;
        gnomon_context *ctx = NULL;
        context.device = "cpu";
        context.threads = 1;
        context.allocator = &allocator;
        assert_int_equal(gnomon_context_create(&context, &ctx), GNOMON_OK);
        if (at >= 0) r.at = r.calls + at;
        gnomon_svd_options options = GNOMON_SVD_OPTIONS_INIT;
        gnomon_svd svd = {.struct_size = sizeof svd};
        sparse_pieces source = {.all = csr, .step = 500};
        const gnomon_svd_sparse_rows rows = {&source, M, D, GNOMON_F64, sparse_next, sparse_rewind};
        options.rank = K;
        options.power = 2;
        options.dtype = GNOMON_F32;
        options.center = true;
        options.standardize = stream;
        options.test_vectors = stream ? 3 : 0;
        const gnomon_status status = stream ? gnomon_svd_csr_stream(ctx, &rows, &options, &svd)
                                            : gnomon_svd_csr(ctx, &csr, &options, &svd);
        if (at < 0) {
            expect(ctx, status, GNOMON_OK);
            assert_int_equal(svd.passes, PASSES + (stream ? 3 : 0));
        }
        done = at >= 0 && status == GNOMON_OK;
        if (at >= 0 && !done) {
            assert_int_equal(status, GNOMON_ERROR_MEMORY);
            assert_null(svd.u.data);
            assert_null(svd.s);
        }
        gnomon_svd_free(ctx, &svd);
        gnomon_context_destroy(ctx);
        assert_true(r.out == 0);
    }
}

int main(void)
{
    if (gnomon_svd_missing() != NULL) {
        print_message("left out: %s\n", gnomon_svd_missing());
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_and_streams),
        cmocka_unit_test(test_single_pass),
        cmocka_unit_test(test_sparse),
        cmocka_unit_test(test_sparse_stream),
        cmocka_unit_test(test_sparse_stream_parts),
        cmocka_unit_test(test_sparse_stream_refusals),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_orthonormalise),
        cmocka_unit_test(test_long_columns),
        cmocka_unit_test(test_least_square),
        cmocka_unit_test(test_shift),
        cmocka_unit_test(test_start),
        cmocka_unit_test(test_every_allocation),
        cmocka_unit_test(test_every_allocation_of_krylov),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Least squares of rows in pieces, sparse rows, other types and layouts, many right-hand sides; its
 * bits; what it refuses. */
#include "lstsq_testing.h"
#include "refusal.h"

#include <time.h>

enum { ROWS = 3000, COLS = 21, RIGHTS = 13 };

/* Numbers that every type holds. */
static void make_data(double *a, double *b)
{
    uint64_t state = 15;
    for (int i = 0; i < ROWS * COLS; i++)
        a[i] = floor(100 * draw_uniform(&state));
    for (int i = 0; i < ROWS * RIGHTS; i++)
        b[i] = floor(100 * draw_uniform(&state) * (1 + i % RIGHTS));
}

static double a[ROWS * COLS], b[ROWS * RIGHTS];

static void same_bits(const gnomon_lstsq *p, const gnomon_lstsq *q)
{
    assert_memory_equal(p->x.data, q->x.data, (size_t)(p->cols * p->targets) * sizeof(double));
    assert_memory_equal(p->target, q->target, (size_t)p->targets * sizeof *p->target);
    assert_true(p->iterations == q->iterations && p->low == q->low && p->rank == q->rank);
}

/* Rows handed out a few at a time. */
typedef struct pieces {
    int64_t at, step, rows;
    bool broken, slow;
} pieces;

static gnomon_status pieces_next(void *user, const gnomon_matrix *dst, int64_t *got)
{
    pieces *f = user;
    int64_t n = f->rows - f->at < f->step ? f->rows - f->at : f->step;
    if (n > dst->rows) n = dst->rows;
    if (f->broken && f->at > 1000) return GNOMON_ERROR_IO;
    if (f->slow && f->at == 0) nanosleep(&(struct timespec){0, 120000000}, NULL);
    memcpy(dst->data, a + f->at * COLS, (size_t)(n * COLS) * sizeof *a);
    f->at += n;
    *got = n;
    return GNOMON_OK;
}

static gnomon_status pieces_rewind(void *user)
{
    ((pieces *)user)->at = 0;
    return GNOMON_OK;
}

/* Threads, pieces, instruction sets and layouts. */
static void test_bits(void **state)
{
    (void)state;
    gnomon_context *one = context_of(1), *three = context_of(3);
    setenv("GNOMON_ISA", "portable", 1);
    gnomon_context *portable = context_of(2);
    unsetenv("GNOMON_ISA");
    static double transposed[ROWS * COLS];
    for (int way = 0; way < 5; way++) { /* the last two: columns of very different lengths */
        for (int i = 0; i < ROWS * COLS; i++) {
            if (way == 3) a[i] = ldexp(a[i], i % COLS * 2 - 20);
            transposed[i % COLS * ROWS + i / COLS] = a[i];
        }
        const int64_t m = way == 2 ? RIGHTS : 1;
        const gnomon_matrix view = gnomon_matrix_rowmajor(a, GNOMON_F64, ROWS, COLS);
        const gnomon_matrix columns = gnomon_matrix_colmajor(transposed, GNOMON_F64, ROWS, COLS);
        gnomon_matrix right = gnomon_matrix_rowmajor(b, GNOMON_F64, ROWS, m);
        gnomon_lstsq_options options = GNOMON_LSTSQ_OPTIONS_INIT;
        gnomon_lstsq p = {.struct_size = sizeof p}, q = {.struct_size = sizeof q};
        pieces source = {.step = 37, .rows = ROWS};
        gnomon_svd_rows rows = {&source,    way ? -1 : ROWS, COLS,
                                GNOMON_F64, pieces_next,     pieces_rewind};
        options.sketch_size = 200;
        options.damp = way % 3 == 1 ? 30 : 0;
        expect(one, gnomon_lstsq_dense(one, &view, &right, &options, &p), GNOMON_OK);
        assert_true(p.converged && p.iterations > 5);
        expect(three, gnomon_lstsq_dense(three, &view, &right, &options, &q), GNOMON_OK);
        same_bits(&p, &q);
        gnomon_lstsq_free(three, &q);
        expect(three, gnomon_lstsq_stream(three, &rows, &right, &options, &q), GNOMON_OK);
        same_bits(&p, &q);
        gnomon_lstsq_free(three, &q);
        expect(portable, gnomon_lstsq_dense(portable, &view, &right, &options, &q), GNOMON_OK);
        same_bits(&p, &q);
        gnomon_lstsq_free(portable, &q);
        expect(three, gnomon_lstsq_dense(three, &columns, &right, &options, &q), GNOMON_OK);
        for (int i = 0; i < COLS; i++) {
            const double length = way >= 3 ? ldexp(1, i * 2 - 20) : 1;
            assert_true(length * fabs(at(&p.x, i, 0) - at(&q.x, i, 0)) <= 1e-12);
        }
        gnomon_lstsq_free(three, &q);
        gnomon_lstsq_free(one, &p);
    }
    for (int i = 0; i < ROWS * COLS; i++)
        a[i] = ldexp(a[i], 20 - i % COLS * 2);
    gnomon_context_destroy(one);
    gnomon_context_destroy(three);
    gnomon_context_destroy(portable);
}

/* Each right-hand side gets what it would get alone, of any scale. */
static void test_many(void **state)
{
    (void)state;
    gnomon_context *ctx = context_of(2);
    static double right[ROWS * 40];
    double y[COLS], single[ROWS];
    for (int64_t m = 1; m <= 40; m = 2 * m + 3) {
        for (int i = 0; i < ROWS * m; i++)
            right[i] = ldexp(b[i % (ROWS * RIGHTS)], (int)(i % m) * 20 - 100);
        const gnomon_matrix view = gnomon_matrix_rowmajor(a, GNOMON_F64, ROWS, COLS);
        const gnomon_matrix rights = gnomon_matrix_rowmajor(right, GNOMON_F64, ROWS, m);
        for (int way = 0; way < 2; way++) {
            gnomon_lstsq_options options = GNOMON_LSTSQ_OPTIONS_INIT;
            gnomon_lstsq out = {.struct_size = sizeof out};
            options.sketch_size = way ? 300 : ROWS;
            options.keep_residual = 1;
            expect(ctx, gnomon_lstsq_dense(ctx, &view, &rights, &options, &out), GNOMON_OK);
            assert_true(out.converged && out.targets == m);
            for (int64_t j = 0; j < m; j++) {
                for (int i = 0; i < ROWS; i++)
                    single[i] = right[i * m + j];
                lapack_solve(ROWS, COLS, a, single, 0x1p-52, y);
                assert_true(distance_of(COLS, &out.x, j, y) <= 1e-11 * length_of(y, COLS));
                const double r = left_by(ROWS, COLS, a, single, &out.x, j);
                assert_true(fabs(out.target[j].residual - r) <= 1e-12 * r);
                double sum = 0;
                for (int i = 0; i < ROWS; i++)
                    sum = hypot(sum, at(&out.residual, i, j));
                assert_true(fabs(sum - r) <= 1e-12 * r);
            }
            gnomon_lstsq_free(ctx, &out);
        }
    }
    gnomon_context_destroy(ctx);
}

static void put(gnomon_dtype dtype, void *data, int64_t i, double x)
{
    switch (dtype) {
    case GNOMON_F32:
        ((float *)data)[i] = (float)x;
        break;
    case GNOMON_F64:
        ((double *)data)[i] = x;
        break;
    case GNOMON_U8:
        ((uint8_t *)data)[i] = (uint8_t)x;
        break;
    case GNOMON_I8:
        ((int8_t *)data)[i] = (int8_t)x;
        break;
    case GNOMON_I16:
        ((int16_t *)data)[i] = (int16_t)x;
        break;
    case GNOMON_U16:
        ((uint16_t *)data)[i] = (uint16_t)x;
        break;
    case GNOMON_I32:
        ((int32_t *)data)[i] = (int32_t)x;
        break;
    case GNOMON_I64:
        ((int64_t *)data)[i] = (int64_t)x;
        break;
    default:
        fail_msg("no such type here");
    }
}

static void test_types_and_strides(void **state)
{
    (void)state;
    static const gnomon_dtype types[] = {GNOMON_F32, GNOMON_F64, GNOMON_U8,  GNOMON_I8,
                                         GNOMON_I16, GNOMON_U16, GNOMON_I32, GNOMON_I64};
    static const int64_t strides[][2] = {{COLS, 1},     {1, ROWS},  {COLS + 5, 1},  {1, ROWS + 3},
                                         {2 * COLS, 2}, {-COLS, 1}, {COLS + 2, -1}, {-1, -ROWS}};
    gnomon_context *ctx = context_of(2);
    double y[COLS];
    static double first[ROWS];
    for (int i = 0; i < ROWS; i++)
        first[i] = b[i * RIGHTS];
    lapack_solve(ROWS, COLS, a, first, 0x1p-52, y);
    for (int t = 0; t < 8; t++) {
        const size_t size = gnomon_dtype_size(types[t]);
        for (int s = 0; s < 8; s++) {
            const int64_t rs = strides[s][0], cs = strides[s][1];
            const int64_t low = (rs < 0 ? rs * (ROWS - 1) : 0) + (cs < 0 ? cs * (COLS - 1) : 0);
            char *data = calloc((size_t)(2 * ROWS * (COLS + 5)), size);
            char *zero = data + (size_t)-low * size;
            for (int i = 0; i < ROWS * COLS; i++)
                put(types[t], zero, i / COLS * rs + i % COLS * cs, a[i]);
            gnomon_matrix view = {zero, types[t], GNOMON_HOST, ROWS, COLS, rs, cs};
            gnomon_matrix right = {b, GNOMON_F64, GNOMON_HOST, ROWS, 1, RIGHTS, 1};
            gnomon_lstsq_options options = GNOMON_LSTSQ_OPTIONS_INIT;
            gnomon_lstsq out = {.struct_size = sizeof out};
            options.sketch_size = 250;
            options.dtype = t % 2 ? GNOMON_F32 : GNOMON_F64;
            options.keep_residual = 1;
            expect(ctx, gnomon_lstsq_dense(ctx, &view, &right, &options, &out), GNOMON_OK);
            assert_true(out.converged);
            assert_int_equal(out.x.dtype, options.dtype);
            const double loss = t % 2 ? 1e-7 : 1e-12;
            assert_true(distance_of(COLS, &out.x, 0, y) <= loss * length_of(y, COLS));
            /* the figures are those of the x that is returned */
            const double r = left_by(ROWS, COLS, a, first, &out.x, 0);
            assert_true(fabs(out.target[0].residual - r) <= 1e-12 * r);
            assert_true(distance_of(COLS, &out.x, 0, y) <=
                        out.target[0].forward_bound + 1e-12 * length_of(y, COLS));
            gnomon_lstsq_free(ctx, &out);
            free(data);
        }
    }
    gnomon_context_destroy(ctx);
}

static void test_sparse(void **state)
{
    (void)state;
    static int64_t offsets[ROWS + 1], indices[ROWS * COLS + ROWS];
    static double values[ROWS * COLS + ROWS], dense[ROWS * COLS];
    static float floats[ROWS * COLS + ROWS];
    uint64_t draws = 12;
    int64_t count = 0;
    memset(dense, 0, sizeof dense);
    for (int i = 0; i < ROWS; i++) {
        offsets[i] = count + 5; /* offsets need not begin at 0 */
        for (int j = COLS - 1; j >= 0; j--) {
            if (draw_uniform(&draws) > 0.2) continue;
            for (int twice = 0; twice <= (i % 9 == 0); twice++) { /* duplicates add up */
                indices[count] = j;
                values[count] = floats[count] = (float)draw_normal(&draws);
                dense[i * COLS + j] += values[count++];
            }
        }
    }
    offsets[ROWS] = count + 5;
    gnomon_context *ctx = context_of(2), *one = context_of(1);
    const gnomon_matrix right = gnomon_matrix_rowmajor(b, GNOMON_F64, ROWS, RIGHTS);
    double y[COLS], single[ROWS];
    for (int way = 0; way < 6; way++) {
        const gnomon_csr csr = {ROWS,
                                COLS,
                                offsets,
                                indices,
                                way % 2 ? (void *)floats : values,
                                way % 2 ? GNOMON_F32 : GNOMON_F64};
        gnomon_lstsq_options options = GNOMON_LSTSQ_OPTIONS_INIT;
        gnomon_descriptor descriptor = GNOMON_DESCRIPTOR_INIT;
        gnomon_lstsq p = {.struct_size = sizeof p}, q = {.struct_size = sizeof q};
        descriptor.kind = way < 4 ? GNOMON_SJLT : GNOMON_GAUSSIAN;
        options.descriptor = &descriptor;
        options.sketch_size = way < 2 ? 0 : 200;
        expect(ctx, gnomon_lstsq_csr(ctx, &csr, &right, &options, &p), GNOMON_OK);
        expect(one, gnomon_lstsq_csr(one, &csr, &right, &options, &q), GNOMON_OK);
        same_bits(&p, &q);
        assert_true(p.converged);
        for (int64_t j = 0; j < RIGHTS; j++) {
            for (int i = 0; i < ROWS; i++)
                single[i] = b[i * RIGHTS + j];
            lapack_solve(ROWS, COLS, dense, single, 0x1p-52, y);
            assert_true(distance_of(COLS, &p.x, j, y) <= 1e-11 * length_of(y, COLS));
        }
        gnomon_lstsq_free(ctx, &p);
        gnomon_lstsq_free(one, &q);
    }
    const gnomon_csr csr = {ROWS, COLS, offsets, indices, values, GNOMON_F64};
    gnomon_lstsq out = {.struct_size = sizeof out};
    indices[3] = COLS;
    expect(ctx, gnomon_lstsq_csr(ctx, &csr, &right, NULL, &out), GNOMON_ERROR_DATA);
    indices[3] = 2;
    values[7] = NAN;
    expect(ctx, gnomon_lstsq_csr(ctx, &csr, &right, NULL, &out), GNOMON_ERROR_NONFINITE);
    gnomon_context_destroy(ctx);
    gnomon_context_destroy(one);
}

/* So many rows that their pieces, which end by their nonzeros, end elsewhere than those of dense
 * rows. */
static void test_many_sparse_rows(void **state)
{
    (void)state;
    enum { MANY = 140000, WIDTH = 8, NONZEROS = 5 };
    int64_t *offsets = calloc(MANY + 1, sizeof *offsets);
    int64_t *indices = calloc(MANY * NONZEROS, sizeof *indices);
    double *values = calloc(MANY * NONZEROS, sizeof *values);
    double *dense = calloc(MANY * WIDTH, sizeof *dense), *rest = calloc(MANY, sizeof *rest);
    uint64_t draws = 31;
    for (int64_t i = 0; i < MANY; i++) {
        const int64_t first = (int64_t)(draw_uniform(&draws) * (WIDTH - NONZEROS + 1));
        for (int64_t e = i * NONZEROS, j = first; j < first + NONZEROS; e++, j++) {
            indices[e] = j;
            dense[i * WIDTH + j] = values[e] = draw_normal(&draws);
        }
        offsets[i + 1] = (i + 1) * NONZEROS;
        rest[i] = draw_normal(&draws) + (double)(i / 20000) * dense[i * WIDTH + 3];
    }
    gnomon_context *ctx = context_of(2);
    const gnomon_csr csr = {MANY, WIDTH, offsets, indices, values, GNOMON_F64};
    const gnomon_matrix a_dense = gnomon_matrix_rowmajor(dense, GNOMON_F64, MANY, WIDTH);
    const gnomon_matrix right = gnomon_matrix_rowmajor(rest, GNOMON_F64, MANY, 1);
    gnomon_lstsq_options options = GNOMON_LSTSQ_OPTIONS_INIT;
    gnomon_lstsq p = {.struct_size = sizeof p}, q = {.struct_size = sizeof q};
    options.sketch_size = 100;
    options.keep_residual = 1;
    expect(ctx, gnomon_lstsq_csr(ctx, &csr, &right, &options, &p), GNOMON_OK);
    expect(ctx, gnomon_lstsq_dense(ctx, &a_dense, &right, &options, &q), GNOMON_OK);
    const double *y = q.x.data, *left = p.residual.data;
    assert_true(p.converged && q.converged);
    assert_true(distance_of(WIDTH, &p.x, 0, y) <= 1e-11 * length_of(y, WIDTH));
    assert_true(fabs(p.target->residual - length_of(left, MANY)) <= 1e-11 * p.target->residual);
    assert_true(fabs(p.target->residual - q.target->residual) <= 1e-11 * q.target->residual);
    for (int64_t i = 0; i < MANY; i++)
        assert_true(fabs(left[i] - ((const double *)q.residual.data)[i]) < 1e-9);
    gnomon_lstsq_free(ctx, &p);
    gnomon_lstsq_free(ctx, &q);
    gnomon_context_destroy(ctx);
    free(offsets);
    free(indices);
    free(values);
    free(dense);
    free(rest);
}

static void test_refusals(void **state)
{
    (void)state;
    gnomon_context *ctx = context_of(2);
    const gnomon_matrix view = gnomon_matrix_rowmajor(a, GNOMON_F64, ROWS, COLS);
    const gnomon_matrix right = gnomon_matrix_rowmajor(b, GNOMON_F64, ROWS, 1);
    const gnomon_lstsq_options fresh = GNOMON_LSTSQ_OPTIONS_INIT;
    gnomon_lstsq out = {.struct_size = sizeof out};
    gnomon_lstsq_options options = fresh;
#define REFUSED(member, value, status)                                           \
    options = fresh;                                                             \
    options.member = value;                                                      \
    expect(ctx, gnomon_lstsq_dense(ctx, &view, &right, &options, &out), status); \
    assert_non_null(strstr(gnomon_last_error(ctx), #member))
    REFUSED(damp, -1, GNOMON_ERROR_ARGUMENT);
    REFUSED(damp, INFINITY, GNOMON_ERROR_ARGUMENT);
    REFUSED(damp, NAN, GNOMON_ERROR_ARGUMENT);
    REFUSED(tolerance, 0, GNOMON_ERROR_ARGUMENT);
    REFUSED(tolerance, 1, GNOMON_ERROR_ARGUMENT);
    REFUSED(tolerance, NAN, GNOMON_ERROR_ARGUMENT);
    REFUSED(rcond, 1, GNOMON_ERROR_ARGUMENT);
    REFUSED(rcond, -1, GNOMON_ERROR_ARGUMENT);
    REFUSED(iterations, -1, GNOMON_ERROR_ARGUMENT);
    REFUSED(sketch_size, COLS - 1, GNOMON_ERROR_ARGUMENT);
    REFUSED(sketch_size, -1, GNOMON_ERROR_ARGUMENT);
    REFUSED(test_vectors, 101, GNOMON_ERROR_ARGUMENT);
    REFUSED(dtype, GNOMON_U8, GNOMON_ERROR_DTYPE);
    REFUSED(struct_size, 1, GNOMON_ERROR_ARGUMENT);
    gnomon_descriptor descriptor = GNOMON_DESCRIPTOR_INIT;
    options = fresh;
    options.sketch_size = 100;
    options.descriptor = &descriptor; /* no kind */
    expect(ctx, gnomon_lstsq_dense(ctx, &view, &right, &options, &out), GNOMON_ERROR_ARGUMENT);
    gnomon_matrix m = right;
    m.rows--;
    expect(ctx, gnomon_lstsq_dense(ctx, &view, &m, NULL, &out), GNOMON_ERROR_SHAPE);
    m = right;
    m.cols = 0;
    expect(ctx, gnomon_lstsq_dense(ctx, &view, &m, NULL, &out), GNOMON_ERROR_SHAPE);
    m = view;
    m.rows = 0;
    expect(ctx, gnomon_lstsq_dense(ctx, &m, &right, NULL, &out), GNOMON_ERROR_SHAPE);
    m = view;
    m.cols = 0;
    expect(ctx, gnomon_lstsq_dense(ctx, &m, &right, NULL, &out), GNOMON_ERROR_SHAPE);
    gnomon_matrix few = right;
    m.rows = m.cols = few.rows = (int64_t)1 << 32; /* more than BLAS counts; never read */
    m.row_stride = m.col_stride = few.row_stride = 0;
    expect(ctx, gnomon_lstsq_dense(ctx, &m, &few, NULL, &out), GNOMON_ERROR_UNSUPPORTED);
    expect(ctx, gnomon_lstsq_dense(ctx, NULL, &right, NULL, &out), GNOMON_ERROR_ARGUMENT);
    expect(ctx, gnomon_lstsq_dense(ctx, &view, NULL, NULL, &out), GNOMON_ERROR_ARGUMENT);
    expect(ctx, gnomon_lstsq_dense(ctx, &view, &right, NULL, NULL), GNOMON_ERROR_ARGUMENT);
    expect(ctx, gnomon_lstsq_csr(ctx, NULL, &right, NULL, &out), GNOMON_ERROR_ARGUMENT);
    expect(ctx, gnomon_lstsq_stream(ctx, NULL, &right, NULL, &out), GNOMON_ERROR_ARGUMENT);
    const double kept = a[1000 * COLS + 4];
    a[1000 * COLS + 4] = NAN;
    expect(ctx, gnomon_lstsq_dense(ctx, &view, &right, NULL, &out), GNOMON_ERROR_NONFINITE);
    assert_non_null(strstr(gnomon_last_error(ctx), "a has NaN or infinity in row 1000, column 4"));
    a[1000 * COLS + 4] = kept;
    b[2000] = -INFINITY;
    expect(ctx, gnomon_lstsq_dense(ctx, &view, &right, NULL, &out), GNOMON_ERROR_NONFINITE);
    assert_non_null(strstr(gnomon_last_error(ctx), "b has NaN or infinity in row 2000, column 0"));
    b[2000] = 1;
    assert_null(out.x.data);
    /* rows that fail, that are read once, that are too few */
    pieces source = {.step = 100, .rows = ROWS, .broken = true};
    gnomon_svd_rows rows = {&source, ROWS, COLS, GNOMON_F64, pieces_next, pieces_rewind};
    expect(ctx, gnomon_lstsq_stream(ctx, &rows, &right, NULL, &out), GNOMON_ERROR_IO);
    source = (pieces){.step = 100, .rows = ROWS - 1};
    expect(ctx, gnomon_lstsq_stream(ctx, &rows, &right, NULL, &out), GNOMON_ERROR_SHAPE);
    source = (pieces){.step = 100, .rows = ROWS - 1};
    rows.rows = -1;
    expect(ctx, gnomon_lstsq_stream(ctx, &rows, &right, NULL, &out), GNOMON_ERROR_SHAPE);
    rows.rewind = NULL;
    expect(ctx, gnomon_lstsq_stream(ctx, &rows, &right, NULL, &out), GNOMON_ERROR_ARGUMENT);
    gnomon_context_destroy(ctx);
}

/* Asks for an end once so many passes were reported. */
static int stop_at(void *user, const char *phase, int64_t done, int64_t total)
{
    (void)phase;
    (void)total;
    return done >= *(const int64_t *)user;
}

static void test_cancelled(void **state)
{
    (void)state;
    for (int64_t passes = 1; passes < 9; passes += 3) {
        gnomon_context *ctx = NULL;
        gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
        options.device = "cpu";
        options.progress = stop_at;
        options.progress_user = &passes;
        assert_int_equal(gnomon_context_create(&options, &ctx), GNOMON_OK);
        const gnomon_matrix right = gnomon_matrix_rowmajor(b, GNOMON_F64, ROWS, 1);
        gnomon_lstsq_options what = GNOMON_LSTSQ_OPTIONS_INIT;
        gnomon_lstsq out = {.struct_size = sizeof out};
        /* slow rows, so that the reports, which are held back, come */
        pieces source = {.step = 300, .rows = ROWS, .slow = true};
        gnomon_svd_rows rows = {&source, ROWS, COLS, GNOMON_F64, pieces_next, pieces_rewind};
        what.sketch_size = 200;
        expect(ctx, gnomon_lstsq_stream(ctx, &rows, &right, &what, &out), GNOMON_ERROR_CANCELLED);
        assert_null(out.x.data);
        gnomon_context_destroy(ctx);
    }
}

/* Within a pass too: the second piece of the first pass is never asked for. */
static gnomon_status slow_next(void *user, const gnomon_matrix *dst, int64_t *got)
{
    int64_t *given = user;
    if (*given == 0) nanosleep(&(struct timespec){0, 150000000}, NULL);
    memset(dst->data, 0, (size_t)(dst->rows * dst->cols) * sizeof(double));
    *got = dst->rows;
    *given += dst->rows;
    return GNOMON_OK;
}

static gnomon_status slow_rewind(void *user)
{
    *(int64_t *)user = 0;
    return GNOMON_OK;
}

static void test_cancelled_within_a_pass(void **state)
{
    (void)state;
    enum { WIDTH = 4096, PIECE = (1 << 24) / WIDTH };
    const int64_t at_once = 0;
    int64_t given = 0;
    gnomon_context *ctx = NULL;
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    options.device = "cpu";
    options.progress = stop_at;
    options.progress_user = (void *)(uintptr_t)&at_once;
    assert_int_equal(gnomon_context_create(&options, &ctx), GNOMON_OK);
    static double right[3 * PIECE];
    const gnomon_matrix view = gnomon_matrix_rowmajor(right, GNOMON_F64, 3 * PIECE, 1);
    gnomon_svd_rows rows = {&given, 3 * PIECE, WIDTH, GNOMON_F64, slow_next, slow_rewind};
    gnomon_lstsq out = {.struct_size = sizeof out};
    expect(ctx, gnomon_lstsq_stream(ctx, &rows, &view, NULL, &out), GNOMON_ERROR_CANCELLED);
    assert_true(given <= PIECE);
    gnomon_context_destroy(ctx);
}

static void test_every_allocation(void **state)
{
    (void)state;
    enum { M = 120, D = 4 };
    static float few[M * D];
    static int64_t offsets[M + 1], indices[M * D];
    uint64_t draws = 2;
    for (int i = 0; i < M * D; i++) {
        few[i] = (float)draw_normal(&draws);
        indices[i] = i % D;
        offsets[i / D + 1] = i + 1;
    }
    for (int way = 0; way < 5; way++) { /* dense, sparse, A itself with a residual */
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
            gnomon_matrix view = gnomon_matrix_rowmajor(few, GNOMON_F32, M, D);
            gnomon_matrix right = gnomon_matrix_rowmajor(b, GNOMON_F64, M, 2);
            gnomon_csr csr = {M, D, offsets, indices, few, GNOMON_F32};
            if (way >= 3) { /* wide */
                view = (gnomon_matrix){few, GNOMON_F32, GNOMON_HOST, D, M, 1, D};
                csr.rows = right.rows = D;
                csr.cols = M;
            }
            gnomon_lstsq_options options = GNOMON_LSTSQ_OPTIONS_INIT;
            gnomon_lstsq out = {.struct_size = sizeof out};
            options.sketch_size = way == 2 ? 0 : 40;
            options.keep_residual = way >= 2;
            gnomon_status status = way == 1 || way == 4
                                       ? gnomon_lstsq_csr(ctx, &csr, &right, &options, &out)
                                       : gnomon_lstsq_dense(ctx, &view, &right, &options, &out);
            if (at < 0) expect(ctx, status, GNOMON_OK);
            done = at >= 0 && status == GNOMON_OK;
            if (at >= 0 && !done) {
                assert_int_equal(status, GNOMON_ERROR_MEMORY);
                assert_null(out.x.data);
                assert_null(out.target);
            }
            gnomon_lstsq_free(ctx, &out);
            assert_true(r.out == before);
            gnomon_context_destroy(ctx);
            assert_true(r.out == 0);
        }
    }
}

int main(void)
{
    if (gnomon_svd_missing() != NULL) {
        print_message("left out: %s\n", gnomon_svd_missing());
        return 0;
    }
    make_data(a, b);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_types_and_strides),
        cmocka_unit_test(test_sparse),
        cmocka_unit_test(test_many_sparse_rows),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_every_allocation),
        cmocka_unit_test(test_cancelled),
        cmocka_unit_test(test_cancelled_within_a_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

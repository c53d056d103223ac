/* The GPU beside the CPU: every kind of operator, layout and element type, sizes that fit nothing,
 * ranges, pieces and batches, on fresh random points. What is exact is the CPU's sketch in fp64.
 * Exits with 77 where there is no GPU. GNOMON_TEST_REDUCED=1 runs a part, for slow checkers. */
#include "conformance.h"
#include "device.h"

#include <gnomon/gemm.h>

#include <cuda_runtime_api.h>
#include <time.h>

static gnomon_context *gpu, *cpu;
static gnomon_context *small; /* may take little of the GPU's memory: many pieces */
static bool reduced;
static uint64_t seed;
static double worst[OPERATORS + 1]; /* error over bound */

#define CUDA_OK(call)                                                                     \
    do {                                                                                  \
        const cudaError_t error_ = (call);                                                \
        if (error_ != cudaSuccess) fail_msg("%s: %s", #call, cudaGetErrorString(error_)); \
    } while (0)

static gnomon_context *open_gpu(void)
{
    gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
    o.device = tested_device();
    gnomon_context *ctx = NULL;
    return gnomon_context_create(&o, &ctx) == GNOMON_OK ? ctx : NULL;
}

enum { PAGEABLE, PINNED, DEVICE, PLACES };

/* A copy of m, with all that lies around it, in another kind of memory. */
static owned move(const owned *m, int place)
{
    owned copy = *m;
    const size_t bytes = (size_t)m->elements * gnomon_dtype_size(m->m.dtype);
    copy.block = NULL;
    if (place == DEVICE)
        CUDA_OK(cudaMalloc(&copy.block, bytes));
    else if (place == PINNED)
        CUDA_OK(cudaMallocHost(&copy.block, bytes));
    else
        copy.block = malloc(bytes);
    assert_non_null(copy.block);
    CUDA_OK(cudaMemcpy(copy.block, m->block, bytes, cudaMemcpyDefault));
    copy.m.data = (char *)copy.block + ((char *)m->m.data - (char *)m->block);
    copy.m.memory = place == DEVICE ? GNOMON_DEVICE_MEMORY : GNOMON_HOST;
    return copy;
}

static void drop(owned *m, int place)
{
    if (place == DEVICE)
        CUDA_OK(cudaFree(m->block));
    else if (place == PINNED)
        CUDA_OK(cudaFreeHost(m->block));
    else
        free(m->block);
}

/* What came back, on the host; frees m. */
static owned fetch(owned *m, int place)
{
    owned back = move(m, PAGEABLE);
    drop(m, place);
    return back;
}

static bool is_f64(gnomon_dtype dtype)
{
    return dtype == GNOMON_F64 || dtype == GNOMON_I32 || dtype == GNOMON_U32 ||
           dtype == GNOMON_I64 || dtype == GNOMON_U64;
}

/* Both sides of a comparison: the exact y, and what an error is measured by. */
typedef struct exact {
    double *y, *size;
} exact;

static gnomon_matrix doubles(const gnomon_matrix *m, double *data)
{
    for (int64_t i = 0; i < m->rows; i++)
        for (int64_t j = 0; j < m->cols; j++)
            data[i * m->cols + j] = element(m, i, j);
    return gnomon_matrix_rowmajor(data, GNOMON_F64, m->rows, m->cols);
}

static double *room(int64_t rows, int64_t cols)
{
    double *data = malloc(((size_t)(rows * cols) + 1) * sizeof *data);
    assert_non_null(data);
    return data;
}

/* size = |alpha| |S| |x| + |beta y|, where |S| of a cascade is bounded by norms. */
static exact make_exact(const gnomon_operator *op, const any_operator *kind, const gnomon_matrix *x,
                        const gnomon_matrix *y, const gnomon_sketch_options *o)
{
    exact e = {room(y->rows, y->cols), room(y->rows, y->cols)};
    double *xs = room(x->rows, x->cols);
    const gnomon_matrix points = doubles(x, xs);
    gnomon_matrix out = doubles(y, e.y);
    for (int64_t i = 0; i < y->rows * y->cols; i++)
        e.size[i] = o->beta == 0 ? 0 : fabs(o->beta * e.y[i]);
    ASSERT_OK(cpu, gnomon_sketch(cpu, op, &points, &out, o));
    if (kind->kind == GNOMON_KRONECKER) {
        for (int64_t i = 0; i < x->rows; i++) {
            double norm = 0;
            for (int64_t j = 0; j < x->cols; j++)
                norm += xs[i * x->cols + j] * xs[i * x->cols + j];
            for (int64_t a = 0; a < y->cols; a++)
                e.size[i * y->cols + a] += 16 * fabs(o->alpha) * sqrt(norm);
        }
    } else {
        double *s = operator_block(cpu, op, o->row, y->cols, o->col < 0 ? 0 : o->col, x->cols);
        for (int64_t i = 0; i < x->rows; i++)
            for (int64_t a = 0; a < y->cols; a++) {
                double sum = 0;
                for (int64_t j = 0; j < x->cols; j++)
                    sum += fabs(s[a * x->cols + j] * xs[i * x->cols + j]);
                e.size[i * y->cols + a] += fabs(o->alpha) * sum;
            }
        free(s);
    }
    free(xs);
    return e;
}

static void free_exact(exact *e)
{
    free(e->y);
    free(e->size);
}

/* Every entry within c u of its size, c growing with the square root of the terms: rounding errors
 * that all have one sign would pass a bound proportional to them. */
static void check_near(const exact *e, const gnomon_matrix *y, bool f64, int64_t terms, int which,
                       const char *what)
{
    const double u = f64 && y->dtype == GNOMON_F64 ? 0x1p-53 : 0x1p-24;
    const double c = 4 + 0.5 * sqrt((double)terms);
    for (int64_t i = 0; i < y->rows; i++)
        for (int64_t a = 0; a < y->cols; a++) {
            const double got = element(y, i, a), want = e->y[i * y->cols + a];
            const double bound = c * u * e->size[i * y->cols + a] + 0x1p-149;
            const double error = fabs(got - want);
            if (error / bound > worst[which]) worst[which] = error / bound;
            if (!(error <= bound))
                fail_msg("%s: (%lld, %lld) is %.9g, not %.9g: off by %.3g, %.3g is allowed", what,
                         (long long)i, (long long)a, got, want, error, bound);
        }
}

typedef struct job {
    int kind; /* of all_operators */
    int64_t n, k, d;
    int64_t row, rows, col, cols; /* cols 0: all */
    gnomon_dtype x_type, y_type;
    int x_layout, y_layout;
    int x_place, y_place;
    double alpha, beta;
    bool huge; /* exponents all over */
} job;

static void make_huge(const gnomon_matrix *x)
{
    for (int64_t i = 0; i < x->rows; i++) {
        uint64_t state = seed + 77u * (uint64_t)i;
        for (int64_t j = 0; j < x->cols; j++) {
            const int exponent = (int)(next_random(&state) % 180) - 110;
            set_element(x, i, j, ldexp(next_uniform(&state), exponent));
        }
    }
}

static gnomon_sketch_options options_of(const job *t)
{
    gnomon_sketch_options o = GNOMON_SKETCH_OPTIONS_INIT;
    o.alpha = t->alpha;
    o.beta = t->beta;
    o.row = t->row;
    o.rows = t->rows;
    o.col = t->cols ? t->col : -1;
    return o;
}

static const char *describe(const job *t)
{
    static char text[256];
    snprintf(text, sizeof text,
             "%s n %lld k %lld D %lld rows %lld+%lld cols %lld+%lld %s to %s layouts %d %d "
             "places %d %d beta %g%s",
             all_operators[t->kind].name, (long long)t->n, (long long)t->k, (long long)t->d,
             (long long)t->row, (long long)t->rows, (long long)t->col, (long long)t->cols,
             gnomon_dtype_name(t->x_type), gnomon_dtype_name(t->y_type), t->x_layout, t->y_layout,
             t->x_place, t->y_place, t->beta, t->huge ? " huge" : "");
    return text;
}

/* Points and an output for the job. An output that is not read holds NaN. */
static void make_views(const job *t, owned *x, owned *y)
{
    const int64_t rows = t->rows ? t->rows : t->k - t->row;
    *x = make_matrix(t->n, t->cols ? t->cols : t->d, t->x_type, t->x_layout);
    *y = make_matrix(t->n, rows, t->y_type, t->y_layout);
    if (t->huge)
        make_huge(&x->m);
    else
        fill_random(&x->m, seed++);
    fill_random(&y->m, seed++);
    if (t->beta != 0) return;
    for (int64_t i = 0; i < t->n; i++)
        for (int64_t a = 0; a < rows; a++)
            set_element(&y->m, i, a, NAN);
}

static owned on_gpu(gnomon_context *ctx, const gnomon_operator *op, const job *t, const owned *x,
                    const owned *y, const gnomon_sketch_options *o)
{
    owned from = move(x, t->x_place), to = move(y, t->y_place);
    const gnomon_status status = gnomon_sketch(ctx, op, &from.m, &to.m, o);
    if (status != GNOMON_OK) fail_msg("%s: %s", describe(t), gnomon_last_error(ctx));
    owned read = fetch(&from, t->x_place), back = fetch(&to, t->y_place);
    read.m.memory = back.m.memory = GNOMON_HOST;
    assert_memory_equal(read.block, x->block, (size_t)x->elements * gnomon_dtype_size(x->m.dtype));
    check_sentinels(&back);
    free_matrix(&read);
    return back;
}

static void one(const job *t)
{
    const any_operator *kind = &all_operators[t->kind];
    gnomon_operator *op = make_operator(cpu, kind, t->k, t->d);
    const gnomon_sketch_options o = options_of(t);
    owned x, y;
    make_views(t, &x, &y);
    gnomon_matrix exact_y = y.m;
    exact e = make_exact(op, kind, &x.m, &exact_y, &o);
    owned got = on_gpu(gpu, op, t, &x, &y, &o);
    check_near(&e, &got.m, is_f64(t->x_type) || t->y_type == GNOMON_F64, x.m.cols, t->kind,
               describe(t));
    free_matrix(&got);
    free_exact(&e);
    free_matrix(&x);
    free_matrix(&y);
    gnomon_operator_destroy(op);
}

static job plain(int kind, int64_t n, int64_t k, int64_t d)
{
    return (job){.kind = kind,
                 .n = n,
                 .k = k,
                 .d = d,
                 .x_type = GNOMON_F32,
                 .y_type = GNOMON_F32,
                 .x_place = DEVICE,
                 .y_place = DEVICE,
                 .alpha = 1};
}

/* Sizes for which operators of all kinds exist. */
static const int64_t sizes[][3] = {
    {1, 5, 97},      {32, 64, 4096},  {33, 130, 5001}, {3, 129, 257},    {257, 24, 700},
    {8, 130, 20011}, {64, 256, 1024}, {5, 31, 33000},  {130, 200, 1030}, {16, 1024, 2048},
};

/* The list that the CPU's levels go through (tests/unit/project/test_conformance.c). */
static void conforms(void **state)
{
    (void)state;
    for (int o = 0; o < OPERATORS; o++) {
        if (reduced && o % 3 != 0) continue;
        conformance c = {.ctx = gpu, .cpu = cpu, .product = 8};
        conformance_run(&c, &all_operators[o]);
    }
}

static void every_kind(void **state)
{
    (void)state;
    const int count = reduced ? 3 : (int)(sizeof sizes / sizeof *sizes);
    for (int kind = 0; kind < OPERATORS; kind++)
        for (int s = 0; s < count; s++)
            for (int layout = ROW_MAJOR; layout <= COL_MAJOR; layout++) {
                job t = plain(kind, sizes[s][0], sizes[s][1], sizes[s][2]);
                t.x_layout = layout;
                t.y_layout = (layout + s) % 2;
                one(&t);
            }
}

static void every_layout_and_type(void **state)
{
    (void)state;
    for (int kind = 0; kind < OPERATORS; kind++)
        for (int type = GNOMON_F32; type <= GNOMON_U64; type++)
            for (int layout = 0; layout < LAYOUTS; layout++) {
                if (reduced && (type + layout + kind) % 9 != 0) continue;
                job t = plain(kind, 19, 37, 611);
                t.x_type = (gnomon_dtype)type;
                t.y_type = is_f64(t.x_type) || layout == SPREAD ? GNOMON_F64 : GNOMON_F32;
                t.x_layout = layout;
                t.y_layout = (layout + type) % LAYOUTS;
                t.beta = (layout + kind) % 3 == 0 ? 0.5 : 0;
                t.alpha = -2;
                one(&t);
            }
}

static void ranges(void **state)
{
    (void)state;
    static const int64_t parts[][4] = {
        {3, 17, 0, 0},  {0, 0, 100, 900},   {40, 9, 1999, 1}, {1, 0, 513, 1487},
        {63, 1, 0, 64}, {8, 32, 256, 1024}, {0, 4, 2000, 0},
    };
    const int count = reduced ? 2 : (int)(sizeof parts / sizeof *parts);
    for (int kind = 0; kind < OPERATORS; kind++)
        for (int p = 0; p < count; p++) {
            job t = plain(kind, 21, 64, 2000);
            t.row = parts[p][0];
            t.rows = parts[p][1];
            t.col = parts[p][2];
            t.cols = parts[p][3];
            t.x_layout = p % 2;
            t.beta = p % 3 ? 0.75 : 0;
            one(&t);
        }
}

static void huge_range(void **state)
{
    (void)state;
    for (int kind = 0; kind < OPERATORS; kind++)
        for (int layout = ROW_MAJOR; layout <= COL_MAJOR; layout++)
            for (int s = 0; s < (reduced ? 1 : 3); s++) {
                job t = plain(kind, s == 1 ? 7 : 40, s == 2 ? 33 : 128, s == 0 ? 777 : 4096);
                t.x_layout = layout;
                t.huge = true;
                one(&t);
            }
}

/* The same bits in one call on the device, point by point or in halves, from pageable and pinned
 * memory, and in as many pieces as little memory asks for. */
static void same_bits(void **state)
{
    (void)state;
    for (int kind = 0; kind < OPERATORS; kind++)
        for (int s = 0; s < (reduced ? 2 : 8); s++) {
            const gnomon_dtype types[] = {GNOMON_F32, GNOMON_F32, GNOMON_F16, GNOMON_F64};
            /* the last two: points wider, and more of them, than the small context's memory */
            const int64_t ds[] = {3001, 4096, 40000, 700}, ns[] = {50, 300, 33, 3000};
            job t = plain(kind, ns[s % 4], s % 4 == 3 ? 24 : 160, ds[s % 4]);
            t.x_layout = s < 4 ? ROW_MAJOR : COL_MAJOR;
            t.x_type = types[s % 4];
            t.y_type = is_f64(t.x_type) ? GNOMON_F64 : GNOMON_F32;
            t.beta = s % 2 ? 0.5 : 0;
            gnomon_operator *op = make_operator(cpu, &all_operators[kind], t.k, t.d);
            const gnomon_sketch_options o = options_of(&t);
            owned x, y;
            make_views(&t, &x, &y);
            owned whole = on_gpu(gpu, op, &t, &x, &y, &o);
            owned again = on_gpu(gpu, op, &t, &x, &y, &o);
            assert_same_bits(&again.m, &whole.m, describe(&t));
            free_matrix(&again);
            for (int64_t cut = 1; cut < t.n; cut += t.n / 2) {
                owned parts = move(&y, PAGEABLE);
                owned from = move(&x, DEVICE), to = move(&parts, DEVICE);
                gnomon_matrix a = from.m, b = to.m;
                a.rows = b.rows = cut;
                ASSERT_OK(gpu, gnomon_sketch(gpu, op, &a, &b, &o));
                a.rows = b.rows = t.n - cut;
                const int64_t step = (int64_t)gnomon_dtype_size(a.dtype) * cut * a.row_stride;
                a.data = (char *)a.data + step;
                b.data = (char *)b.data + (int64_t)gnomon_dtype_size(b.dtype) * cut * b.row_stride;
                ASSERT_OK(gpu, gnomon_sketch(gpu, op, &a, &b, &o));
                free_matrix(&parts);
                drop(&from, DEVICE);
                owned back = fetch(&to, DEVICE);
                back.m.memory = GNOMON_HOST;
                assert_same_bits(&back.m, &whole.m, describe(&t));
                free_matrix(&back);
            }
            for (int place = PAGEABLE; place < DEVICE; place++) {
                t.x_place = place;
                t.y_place = place ? DEVICE : PINNED;
                owned host = on_gpu(gpu, op, &t, &x, &y, &o);
                assert_same_bits(&host.m, &whole.m, describe(&t));
                free_matrix(&host);
                t.y_place = place;
                host = on_gpu(small, op, &t, &x, &y, &o);
                assert_same_bits(&host.m, &whole.m, describe(&t));
                free_matrix(&host);
            }
            free_matrix(&whole);
            free_matrix(&x);
            free_matrix(&y);
            gnomon_operator_destroy(op);
        }
}

/* Pieces of columns of any widths, and little memory: the bits of one call. */
static void streams(void **state)
{
    (void)state;
    for (int kind = 0; kind < OPERATORS; kind++)
        for (int form = 0; form < (reduced ? 1 : 6); form++) {
            const gnomon_dtype types[] = {GNOMON_F32, GNOMON_F64, GNOMON_F16};
            const int64_t n = form % 2 ? 9 : 70, k = 90, d = form % 2 ? 5001 : 30011;
            const gnomon_dtype dtype = types[form % 3];
            const gnomon_dtype sums = dtype == GNOMON_F64 ? GNOMON_F64 : GNOMON_F32;
            gnomon_operator *op = make_operator(cpu, &all_operators[kind], k, d);
            owned x = make_matrix(n, d, dtype, form % 2 ? ROW_PADDED : COL_MAJOR);
            owned y = make_matrix(n, k, sums, form % LAYOUTS);
            owned whole = make_matrix(n, k, sums, ROW_MAJOR);
            fill_random(&x.m, seed++);
            ASSERT_OK(gpu, gnomon_sketch(gpu, op, &x.m, &whole.m, NULL));
            gnomon_context *ctx = form % 2 ? small : gpu;
            gnomon_stream *stream;
            ASSERT_OK(ctx, gnomon_stream_create(ctx, op, n, sums, NULL, &stream));
            for (int64_t col = 0, width; col < d; col += width) {
                gnomon_matrix piece = x.m;
                width = 1 + (int64_t)(next_random(&seed) % (uint64_t)(form % 2 ? 500 : 6000));
                if (width > d - col) width = d - col;
                piece.cols = width;
                piece.data =
                    (char *)x.m.data + col * x.m.col_stride * (int64_t)gnomon_dtype_size(dtype);
                ASSERT_OK(ctx, gnomon_stream_push(stream, &piece));
            }
            ASSERT_OK(ctx, gnomon_stream_finish(stream, &y.m));
            assert_int_equal(gnomon_context_worked_on(ctx), GNOMON_DEVICE_PLUGIN);
            gnomon_stream_destroy(stream);
            assert_same_bits(&y.m, &whole.m, all_operators[kind].name);
            check_sentinels(&y);
            free_matrix(&x);
            free_matrix(&y);
            free_matrix(&whole);
            gnomon_operator_destroy(op);
        }
}

/* Adjoints beside the CPU's in fp64, from and to every kind of memory, whole and in pieces. */
static void one_adjoint(gnomon_context *ctx, const job *t, const owned *vectors, const owned *old,
                        const double *wanted, const double *norms, gnomon_operator *op)
{
    const gnomon_sketch_options o = options_of(t);
    const bool f64 = is_f64(t->y_type);
    const double u = f64 ? 0x1p-53 : 0x1p-24, c = 4 + 0.5 * sqrt((double)vectors->m.cols);
    owned from = move(vectors, t->y_place), to = move(old, t->x_place);
    const gnomon_status status = gnomon_adjoint(ctx, op, &from.m, &to.m, &o);
    if (status != GNOMON_OK) fail_msg("%s: %s", describe(t), gnomon_last_error(ctx));
    drop(&from, t->y_place);
    owned back = fetch(&to, t->x_place);
    back.m.memory = GNOMON_HOST;
    check_sentinels(&back);
    for (int64_t i = 0; i < back.m.rows; i++)
        for (int64_t q = 0; q < back.m.cols; q++) {
            const double want = wanted[i * back.m.cols + q];
            const double error = fabs(element(&back.m, i, q) - want);
            if (!(error <= c * u * (norms[i] + fabs(want))))
                fail_msg("adjoint %s: (%lld, %lld) is off by %.3g", describe(t), (long long)i,
                         (long long)q, error);
        }
    free_matrix(&back);
}

static void adjoints(void **state)
{
    (void)state;
    for (int kind = 0; kind < OPERATORS; kind++)
        for (int s = 0; s < (reduced ? 2 : 6); s++) {
            job t = plain(kind, sizes[s][0], sizes[s][1], sizes[s][2]);
            t.alpha = -1.5;
            t.beta = s % 2 ? 0.5 : 0;
            t.y_layout = s % 2;
            t.x_layout = s % 3 == 0;
            t.y_type = s == 4 ? GNOMON_F64 : s == 2 ? GNOMON_F16 : GNOMON_F32;
            t.x_type = s == 4 ? GNOMON_F64 : GNOMON_F32;
            if (s % 2) {
                t.row = 1;
                t.rows = t.k - 3;
                t.col = t.d / 3;
                t.cols = t.d / 2;
            }
            gnomon_operator *op = make_operator(cpu, &all_operators[kind], t.k, t.d);
            owned vectors, x;
            make_views(&t, &x, &vectors);
            fill_random(&vectors.m, seed++);
            double *y = room(vectors.m.rows, vectors.m.cols), *wanted = room(x.m.rows, x.m.cols);
            double *norms = room(x.m.rows, 1);
            const gnomon_matrix from = doubles(&vectors.m, y);
            gnomon_matrix to = doubles(&x.m, wanted);
            for (int64_t i = 0; i < from.rows; i++) {
                norms[i] = 0;
                for (int64_t a = 0; a < from.cols; a++)
                    norms[i] += y[i * from.cols + a] * y[i * from.cols + a];
                norms[i] = 16 * sqrt(norms[i]) + 4;
            }
            const gnomon_sketch_options o = options_of(&t);
            ASSERT_OK(cpu, gnomon_adjoint(cpu, op, &from, &to, &o));
            for (int places = 0; places < PLACES * PLACES; places++) {
                if (places % 4 != s % 4 && places != PLACES * PLACES - 1) continue;
                t.x_place = places % PLACES;
                t.y_place = places / PLACES;
                one_adjoint(gpu, &t, &vectors, &x, wanted, norms, op);
                if (places % 2) one_adjoint(small, &t, &vectors, &x, wanted, norms, op);
            }
            free(y);
            free(wanted);
            free(norms);
            free_matrix(&vectors);
            free_matrix(&x);
            gnomon_operator_destroy(op);
        }
}

static void nonfinite(void **state)
{
    (void)state;
    static const gnomon_dtype types[] = {GNOMON_F32, GNOMON_F64, GNOMON_BF16};
    gnomon_operator *op = make_operator(cpu, &all_operators[2], 16, 30011);
    for (int place = 0; place < PLACES; place++)
        for (int layout = 0; layout < LAYOUTS; layout++) {
            if (reduced && layout > COL_MAJOR) continue;
            for (int t = 0; t < 3; t++) {
                job j = plain(2, 23, 16, 30011);
                j.x_type = types[t];
                j.y_type = is_f64(j.x_type) ? GNOMON_F64 : GNOMON_F32;
                j.x_layout = layout;
                j.beta = 1; /* numbers in y */
                owned x, y;
                make_views(&j, &x, &y);
                const int64_t row = 11, col = (int64_t)(next_random(&seed) % 30011u);
                set_element(&x.m, row, col, layout % 2 ? NAN : INFINITY);
                set_element(&x.m, 22, 0, NAN);
                owned from = move(&x, place), to = move(&y, (place + layout) % PLACES);
                char where[64];
                snprintf(where, sizeof where, "x: element (%lld, %lld)", (long long)row,
                         (long long)col);
                gnomon_context *ctx = layout % 2 ? small : gpu;
                ASSERT_FAILS(ctx, gnomon_sketch(ctx, op, &from.m, &to.m, NULL),
                             GNOMON_ERROR_NONFINITE, where);
                drop(&from, place);
                owned back = fetch(&to, (place + layout) % PLACES);
                assert_memory_equal(back.block, y.block,
                                    (size_t)y.elements * gnomon_dtype_size(y.m.dtype));
                free_matrix(&back);
                free_matrix(&x);
                free_matrix(&y);
            }
        }
    gnomon_operator_destroy(op);
}

static void empty(void **state)
{
    (void)state;
    for (int kind = 0; kind < OPERATORS; kind++) {
        job t = plain(kind, 4, 16, 256);
        gnomon_operator *op = make_operator(cpu, &all_operators[kind], t.k, t.d);
        owned x, y;
        make_views(&t, &x, &y);
        owned from = move(&x, DEVICE), to = move(&y, DEVICE);
        gnomon_matrix no_points = from.m, no_sketch = to.m;
        no_points.rows = no_sketch.rows = 0;
        ASSERT_OK(gpu, gnomon_sketch(gpu, op, &no_points, &no_sketch, NULL));
        gnomon_sketch_options o = GNOMON_SKETCH_OPTIONS_INIT;
        o.col = 100;
        gnomon_matrix no_columns = from.m;
        no_columns.cols = 0;
        ASSERT_OK(gpu, gnomon_sketch(gpu, op, &no_columns, &to.m, &o));
        drop(&from, DEVICE);
        owned back = fetch(&to, DEVICE);
        for (int64_t i = 0; i < t.n * t.k; i++)
            assert_true(((const float *)back.m.data)[i] == 0.0f);
        free_matrix(&back);
        free_matrix(&x);
        free_matrix(&y);
        gnomon_operator_destroy(op);
    }
}

/* On the caller's stream, after what was put there before; the call need not wait. */
static void callers_stream(void **state)
{
    (void)state;
    job t = plain(0, 64, 128, 4096);
    gnomon_operator *op = make_operator(cpu, &all_operators[t.kind], t.k, t.d);
    owned x, y;
    make_views(&t, &x, &y);
    gnomon_sketch_options o = options_of(&t);
    owned plainly = on_gpu(gpu, op, &t, &x, &y, &o);
    cudaStream_t stream;
    CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    owned pinned = move(&x, PINNED), from = move(&y, DEVICE), to = move(&y, DEVICE);
    drop(&from, DEVICE);
    const size_t bytes = (size_t)x.elements * sizeof(float);
    from = move(&x, DEVICE);
    CUDA_OK(cudaMemset(from.block, 0, bytes));
    CUDA_OK(cudaDeviceSynchronize());
    CUDA_OK(cudaMemcpyAsync(from.block, pinned.block, bytes, cudaMemcpyHostToDevice, stream));
    o.device_stream = stream;
    o.allow_nonfinite = 1;
    ASSERT_OK(gpu, gnomon_sketch(gpu, op, &from.m, &to.m, &o));
    CUDA_OK(cudaStreamSynchronize(stream));
    CUDA_OK(cudaStreamDestroy(stream));
    int device = -1;
    CUDA_OK(cudaGetDevice(&device));
    assert_int_equal(device, 0);
    owned back = fetch(&to, DEVICE);
    back.m.memory = GNOMON_HOST;
    assert_same_bits(&back.m, &plainly.m, "on the caller's stream");
    drop(&from, DEVICE);
    drop(&pinned, PINNED);
    free_matrix(&back);
    free_matrix(&plainly);
    free_matrix(&x);
    free_matrix(&y);
    gnomon_operator_destroy(op);
}

/* Products of matrices beside the CPU's, from and to every kind of memory, whole and in pieces. */
static void one_product(const int64_t *size, gnomon_dtype a_type, gnomon_dtype b_type,
                        gnomon_dtype c_type, int layout, double beta)
{
    const int64_t m = size[0], n = size[1], k = size[2];
    gnomon_gemm_options o = GNOMON_GEMM_OPTIONS_INIT;
    o.alpha = -1.5;
    o.beta = beta;
    owned a = make_matrix(m, k, a_type, layout % LAYOUTS);
    owned b = make_matrix(k, n, b_type, (layout + 1) % LAYOUTS);
    owned c = make_matrix(m, n, c_type, (layout + 2) % LAYOUTS);
    fill_random(&a.m, seed++);
    fill_random(&b.m, seed++);
    fill_random(&c.m, seed++);
    owned wanted = make_matrix(m, n, GNOMON_F64, ROW_MAJOR);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            set_element(&wanted.m, i, j, element(&c.m, i, j));
    ASSERT_OK(cpu, gnomon_gemm(cpu, &a.m, &b.m, &wanted.m, &o));
    for (int places = 0; places < PLACES * PLACES * PLACES; places++) {
        if (places % 5 != layout % 5 && places != PLACES * PLACES * PLACES - 1) continue;
        const int a_place = places % PLACES, b_place = places / PLACES % PLACES,
                  c_place = places / PLACES / PLACES;
        for (int less = 0; less < 2; less++) {
            gnomon_context *ctx = less ? small : gpu;
            owned x = move(&a, a_place), y = move(&b, b_place), to = move(&c, c_place);
            const gnomon_status status = gnomon_gemm(ctx, &x.m, &y.m, &to.m, &o);
            if (status != GNOMON_OK) fail_msg("product: %s", gnomon_last_error(ctx));
            drop(&x, a_place);
            drop(&y, b_place);
            owned back = fetch(&to, c_place);
            back.m.memory = GNOMON_HOST;
            check_sentinels(&back);
            /* entries of A and B are below 1, and some quarter of k on average */
            const double bound = 1.5 * (20 + (double)(k / 64)) * 0x1p-24 * (0.3 * (double)k + 2);
            for (int64_t i = 0; i < m; i++)
                for (int64_t j = 0; j < n; j++) {
                    const double want = element(&wanted.m, i, j), got = element(&back.m, i, j);
                    if (!(fabs(got - want) <= bound + 0x1p-23 * fabs(want)))
                        fail_msg("product %lld x %lld x %lld, %d: (%lld, %lld) is %.9g, not %.9g",
                                 (long long)m, (long long)n, (long long)k, places, (long long)i,
                                 (long long)j, got, want);
                }
            free_matrix(&back);
        }
    }
    free_matrix(&a);
    free_matrix(&b);
    free_matrix(&c);
    free_matrix(&wanted);
}

static void products(void **state)
{
    (void)state;
    const int64_t shapes[][3] = {{700, 130, 1000}, {130, 700, 333}, {1, 300, 77},
                                 {50, 60, 0},      {0, 5, 6},       {2000, 40, 2000}};
    for (int s = 0; s < (reduced ? 2 : 6); s++) {
        one_product(shapes[s], GNOMON_F32, GNOMON_F16, GNOMON_F32, s, 0.0);
        one_product(shapes[s], s % 2 ? GNOMON_F16 : GNOMON_F32, GNOMON_F32,
                    s % 2 ? GNOMON_F32 : GNOMON_F64, s + 1, 0.25);
    }
    one_product(shapes[1], GNOMON_F16, GNOMON_F16, GNOMON_F32, 0, 0.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products),
        cmocka_unit_test(streams),
        cmocka_unit_test(conforms),
        cmocka_unit_test(every_kind),
        cmocka_unit_test(every_layout_and_type),
        cmocka_unit_test(ranges),
        cmocka_unit_test(huge_range),
        cmocka_unit_test(same_bits),
        cmocka_unit_test(nonfinite),
        cmocka_unit_test(empty),
        cmocka_unit_test(callers_stream),
        cmocka_unit_test(adjoints),
    };
    const char *word = getenv("GNOMON_TEST_REDUCED"), *given = getenv("GNOMON_TEST_SEED");
    reduced = word && *word && *word != '0';
    seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    gpu = open_gpu();
    if (!gpu) {
        printf("skipped: %s\n", gnomon_last_error(NULL));
        return 77;
    }
    printf("%s; GNOMON_TEST_SEED=%llu\n", gnomon_context_device_reason(gpu),
           (unsigned long long)seed);
    setenv("GNOMON_CUDA_MEMORY", "4", 1);
    small = open_gpu();
    unsetenv("GNOMON_CUDA_MEMORY");
    cpu = make_context(0, 0);
    if (!small) return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    printf("largest error, as a part of what is allowed:\n");
    for (int kind = 0; kind < OPERATORS; kind++)
        printf("  %-22s %.3f\n", all_operators[kind].name, worst[kind]);
    gnomon_context_destroy(gpu);
    gnomon_context_destroy(small);
    gnomon_context_destroy(cpu);
    return failed;
}

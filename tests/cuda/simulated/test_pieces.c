/* The CUDA plugin's core on a simulated GPU: jobs cut into batches and pieces, transfers, checks,
 * memory that runs out. The kernels are a simple family on the host (simulated.cu). */
#include "../device.h"
#include "project.h"

#include <gnomon/gemm.h>
#include <gnomon/join.h>
#include <gnomon/svd.h>

#include <dlfcn.h>

static void *(*take)(size_t bytes, int device);
static void (*give)(void *data);
static void (*set)(size_t limit, uint64_t seed);
static size_t (*in_use)(void);
static void (*limit)(int gpu, size_t bytes);
static gnomon_context *gpu, *single, *cpu;
static bool several; /* GPUs */

/* ISO C has no cast from object to function. */
static void find(void *library, const char *name, void *pointer)
{
    void *symbol = dlsym(library, name);
    assert_non_null(symbol);
    memcpy(pointer, &symbol, sizeof symbol);
}

static gnomon_context *make_gpu(const char *name, int64_t memory_limit)
{
    gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
    o.device = name;
    o.threads = 2;
    o.memory_limit = memory_limit;
    gnomon_context *ctx = NULL;
    if (gnomon_context_create(&o, &ctx) != GNOMON_OK) fail_msg("%s", gnomon_last_error(NULL));
    return ctx;
}

static int open_all(void **state)
{
    (void)state;
    setenv("GNOMON_PLUGIN_DIR", SIMULATED, 1);
    setenv("SIMULATED_SVD", "1", 1); /* products that are no factorisation */
    gpu = make_gpu(tested_device(), (int64_t)8 << 20);
    single = make_gpu("cuda:0", (int64_t)8 << 20);
    several = strcmp(tested_device(), "cuda") != 0;
    cpu = make_context(1, 0);
    void *library = dlopen(SIMULATED "/libgnomon_cuda.so", RTLD_NOW | RTLD_NOLOAD);
    if (!library) return 1;
    find(library, "simulated_take", &take);
    find(library, "simulated_give", &give);
    find(library, "simulated_set", &set);
    find(library, "simulated_in_use", &in_use);
    find(library, "simulated_limit", &limit);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    gnomon_context_destroy(gpu);
    gnomon_context_destroy(single);
    gnomon_context_destroy(cpu);
    return in_use() == 0 ? 0 : 1;
}

enum { PAGEABLE, PINNED, DEVICE, PLACES };

/* A copy of m, with all that lies around it, in another kind of memory. */
static owned move(const owned *m, int place)
{
    owned copy = *m;
    const size_t bytes = (size_t)m->elements * gnomon_dtype_size(m->m.dtype);
    copy.block = place == PAGEABLE ? malloc(bytes) : take(bytes, place == DEVICE);
    assert_non_null(copy.block);
    memcpy(copy.block, m->block, bytes);
    copy.m.data = (char *)copy.block + ((char *)m->m.data - (char *)m->block);
    copy.m.memory = place == DEVICE ? GNOMON_DEVICE_MEMORY : GNOMON_HOST;
    return copy;
}

static void drop(owned *m, int place)
{
    if (place == PAGEABLE)
        free(m->block);
    else
        give(m->block);
}

typedef struct shape {
    int64_t n, k, d;
    int64_t row, rows, col, cols; /* cols 0: all of them */
} shape;

static gnomon_matrix as_host(const gnomon_matrix *m)
{
    gnomon_matrix host = *m; /* simulated device memory is the host's */
    host.memory = GNOMON_HOST;
    return host;
}

/* One job on the simulated GPU with these limits of its memory: near the CPU's result, the same
 * bits with every limit and place, nothing written beside the output, nothing left behind. */
static void one_job(const any_operator *kind, const shape *s, gnomon_dtype dtype, int x_layout,
                    int y_layout, double beta, int allow)
{
    static const size_t limits[] = {(size_t)1 << 30, 300000, 90000, 40000};
    static uint64_t order = 7;
    gnomon_operator *op = make_operator(cpu, kind, s->k, s->d);
    gnomon_sketch_options o = GNOMON_SKETCH_OPTIONS_INIT;
    o.alpha = 1.5;
    o.beta = beta;
    o.row = s->row;
    o.rows = s->rows;
    o.col = s->cols ? s->col : -1;
    o.allow_nonfinite = allow;
    const int64_t rows = s->rows ? s->rows : s->k - s->row;
    owned x = make_matrix(s->n, s->cols ? s->cols : s->d, dtype, x_layout);
    fill_random(&x.m, 3);
    owned old =
        make_matrix(s->n, rows, gnomon_dtype_size(dtype) == 8 ? GNOMON_F64 : GNOMON_F32, y_layout);
    fill_random(&old.m, 4);
    owned expected = move(&old, PAGEABLE), first = move(&old, PAGEABLE);
    owned alone = move(&old, PAGEABLE);
    ASSERT_OK(cpu, gnomon_sketch(cpu, op, &x.m, &expected.m, &o));
    ASSERT_OK(single, gnomon_sketch(single, op, &x.m, &alone.m, &o));
    bool have_first = false;
    for (size_t l = 0; l < sizeof limits / sizeof *limits; l++)
        for (int places = 0; places < PLACES * PLACES; places++) {
            const int x_place = places % PLACES, y_place = places / PLACES;
            if (l > 0 && places % 4 != (int)l) continue;
            owned from = move(&x, x_place), to = move(&old, y_place);
            const size_t held = in_use();
            set(held + limits[l], order++);
            ASSERT_OK(gpu, gnomon_sketch(gpu, op, &from.m, &to.m, &o));
            assert_int_equal(in_use(), held);
            const gnomon_matrix got = as_host(&to.m);
            if (!have_first) {
                copy_matrix(&got, &first.m);
                have_first = true;
                for (int64_t i = 0; i < s->n; i++)
                    for (int64_t j = 0; j < rows; j++) {
                        const double a = element(&expected.m, i, j), b = element(&got, i, j);
                        if (!(fabs(a - b) <= 2e-5 * (1.0 + fabs(a))))
                            fail_msg("%s: (%lld, %lld) is %g, not %g", kind->name, (long long)i,
                                     (long long)j, b, a);
                    }
            }
            assert_same_bits(&got, &first.m, kind->name);
            assert_same_bits(&got, &alone.m, "one GPU");
            to.m.memory = GNOMON_HOST;
            check_sentinels(&to);
            drop(&from, x_place);
            drop(&to, y_place);
        }
    set((size_t)1 << 30, 1);
    free_matrix(&x);
    free_matrix(&old);
    free_matrix(&expected);
    free_matrix(&first);
    free_matrix(&alone);
    gnomon_operator_destroy(op);
}

static const any_operator simple = {"rademacher", GNOMON_RADEMACHER, 0, 0, 0, 0, 0, 0, 0, 0};
static const any_operator dense = {"gaussian", GNOMON_GAUSSIAN, 0, 0, 0, 0, 0, 0, 0, 0};
static const any_operator hadamard = {"srht", GNOMON_SRHT, 0, 0, 0, 0, 0, 0, 0, 0};
static const any_operator blocks = {"block", GNOMON_BLOCK, GNOMON_ACHLIOPTAS, 0, 0, 0, 4, 0, 0, 0};
static const any_operator narrow = {
    "block of 19", GNOMON_BLOCK, GNOMON_RADEMACHER, 0, 0, 0, 19, 0, 0, 0};

static const any_operator cascade = {
    "kronecker", GNOMON_KRONECKER, GNOMON_ACHLIOPTAS, 0, 0, 0, 0, 3, 0, 0};
static const any_operator normal = {
    "kronecker gaussian", GNOMON_KRONECKER, GNOMON_GAUSSIAN, 0, 0, 0, 0, 0, 0, 0};

static void every_shape(void **state)
{
    (void)state;
    static const shape shapes[] = {
        {1, 5, 700, 0, 0, 0, 0},         {9, 21, 1001, 0, 0, 0, 0},     {33, 21, 333, 2, 15, 0, 0},
        {9, 21, 1001, 0, 0, 250, 1},     {5, 21, 1001, 3, 9, 130, 700}, {200, 20, 64, 0, 0, 0, 0},
        {3, 21, 2000, 19, 2, 1500, 500},
    };
    static const any_operator *const kinds[] = {&simple, &hadamard, &blocks,
                                                &narrow, &cascade,  &normal};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            if (kinds[k] == &narrow && shapes[s].k < 19) continue;
            one_job(kinds[k], &shapes[s], GNOMON_F32, (int)s % 2 ? COL_MAJOR : ROW_MAJOR, ROW_MAJOR,
                    0.0, 0);
            one_job(kinds[k], &shapes[s], GNOMON_F32, (int)s % 2 ? ROW_MAJOR : COL_MAJOR, COL_MAJOR,
                    -0.5, (int)k % 2);
        }
}

/* So much work a point that other GPUs fetch their points from the one that has them. */
static void much_work(void **state)
{
    (void)state;
    static const shape s = {130, 520, 520, 0, 0, 0, 0}, part = {130, 520, 700, 4, 514, 30, 400};
    one_job(&dense, &s, GNOMON_F32, ROW_MAJOR, COL_MAJOR, 0.0, 0);
    if (!several) return; /* for one GPU it is a job like the others */
    one_job(&dense, &part, GNOMON_F32, COL_PADDED, ROW_PADDED, 0.5, 0);
    one_job(&dense, &part, GNOMON_F32, ROW_MAJOR, ROW_MAJOR, 0.0, 1);
}

static void every_layout_and_type(void **state)
{
    (void)state;
    static const shape s = {7, 12, 500, 1, 10, 0, 0};
    static const gnomon_dtype types[] = {GNOMON_F32, GNOMON_F64, GNOMON_I8, GNOMON_I32};
    for (int layout = 0; layout < LAYOUTS; layout++)
        for (size_t t = 0; t < sizeof types / sizeof *types; t++)
            one_job(&simple, &s, types[t], layout, (layout + 3) % LAYOUTS, layout % 2 ? 0.25 : 0.0,
                    0);
}

/* An adjoint: near the CPU's, the same bits with every limit of memory and every place, nothing
 * written beside the output, nothing left behind. */
static void one_adjoint(const shape *s, gnomon_dtype dtype, int y_layout, int x_layout, double beta)
{
    static const size_t limits[] = {(size_t)1 << 30, 100000, 20000, 3000};
    static uint64_t order = 77;
    gnomon_operator *op = make_operator(cpu, &simple, s->k, s->d);
    gnomon_sketch_options o = GNOMON_SKETCH_OPTIONS_INIT;
    o.alpha = -1.5;
    o.beta = beta;
    o.row = s->row;
    o.rows = s->rows;
    o.col = s->cols ? s->col : -1;
    owned y = make_matrix(s->n, s->rows ? s->rows : s->k - s->row, dtype, y_layout);
    fill_random(&y.m, 3);
    owned old = make_matrix(s->n, s->cols ? s->cols : s->d,
                            gnomon_dtype_size(dtype) == 8 ? GNOMON_F64 : GNOMON_F32, x_layout);
    fill_random(&old.m, 4);
    owned expected = move(&old, PAGEABLE), first = move(&old, PAGEABLE);
    ASSERT_OK(cpu, gnomon_adjoint(cpu, op, &y.m, &expected.m, &o));
    bool have_first = false;
    for (size_t l = 0; l < sizeof limits / sizeof *limits; l++)
        for (int places = 0; places < PLACES * PLACES; places++) {
            owned from = move(&y, places % PLACES), to = move(&old, places / PLACES);
            const size_t held = in_use();
            set(held + limits[l], order++);
            ASSERT_OK(gpu, gnomon_adjoint(gpu, op, &from.m, &to.m, &o));
            assert_int_equal(in_use(), held);
            const gnomon_matrix got = as_host(&to.m);
            if (!have_first) {
                copy_matrix(&got, &first.m);
                have_first = true;
                for (int64_t i = 0; i < got.rows; i++)
                    for (int64_t j = 0; j < got.cols; j++) {
                        const double a = element(&expected.m, i, j), b = element(&got, i, j);
                        if (!(fabs(a - b) <= 2e-5 * (1.0 + fabs(a))))
                            fail_msg("(%lld, %lld) is %g, not %g", (long long)i, (long long)j, b,
                                     a);
                    }
            }
            assert_same_bits(&got, &first.m, "adjoint");
            to.m.memory = GNOMON_HOST;
            check_sentinels(&to);
            drop(&from, places % PLACES);
            drop(&to, places / PLACES);
        }
    set((size_t)1 << 30, 1);
    free_matrix(&y);
    free_matrix(&old);
    free_matrix(&expected);
    free_matrix(&first);
    gnomon_operator_destroy(op);
}

static void adjoints(void **state)
{
    (void)state;
    static const shape shapes[] = {
        {1, 5, 700, 0, 0, 0, 0},         {9, 21, 1001, 0, 0, 0, 0},     {33, 21, 333, 2, 15, 0, 0},
        {9, 21, 1001, 0, 0, 250, 1},     {5, 21, 1001, 3, 9, 130, 700}, {200, 20, 64, 0, 0, 0, 0},
        {3, 21, 2000, 19, 2, 1500, 500},
    };
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        one_adjoint(&shapes[s], GNOMON_F32, ROW_MAJOR, s % 2 ? COL_MAJOR : ROW_MAJOR, 0.0);
        one_adjoint(&shapes[s], s % 2 ? GNOMON_I8 : GNOMON_F64, COL_MAJOR, (int)s % LAYOUTS, 0.25);
    }
}

/* A product: as above. */
static void one_product(const int64_t *size, gnomon_dtype a_type, gnomon_dtype b_type,
                        gnomon_dtype c_type, int layout, double beta)
{
    static const size_t limits[] = {(size_t)1 << 30, 420000, 190000};
    static uint64_t order = 99;
    const int64_t m = size[0], n = size[1], k = size[2];
    gnomon_gemm_options o = GNOMON_GEMM_OPTIONS_INIT;
    o.alpha = -1.5;
    o.beta = beta;
    owned a = make_matrix(m, k, a_type, layout % LAYOUTS);
    owned b = make_matrix(k, n, b_type, (layout + 1) % LAYOUTS);
    owned old = make_matrix(m, n, c_type, (layout + 2) % LAYOUTS);
    fill_random(&a.m, 5);
    fill_random(&b.m, 6);
    fill_random(&old.m, 7);
    owned expected = move(&old, PAGEABLE), first = move(&old, PAGEABLE);
    ASSERT_OK(cpu, gnomon_gemm(cpu, &a.m, &b.m, &expected.m, &o));
    bool have_first = false;
    for (size_t l = 0; l < sizeof limits / sizeof *limits; l++)
        for (int places = 0; places < PLACES * PLACES * PLACES; places += l ? 2 : 1) {
            const int a_place = places % PLACES, b_place = places / PLACES % PLACES,
                      c_place = places / PLACES / PLACES;
            owned x = move(&a, a_place), y = move(&b, b_place), to = move(&old, c_place);
            const size_t held = in_use();
            set(held + limits[l], order++);
            ASSERT_OK(gpu, gnomon_gemm(gpu, &x.m, &y.m, &to.m, &o));
            assert_int_equal(in_use(), held);
            const gnomon_matrix got = as_host(&to.m);
            if (!have_first) {
                copy_matrix(&got, &first.m);
                have_first = true;
                for (int64_t i = 0; i < m; i++)
                    for (int64_t j = 0; j < n; j++) {
                        const double want = element(&expected.m, i, j), is = element(&got, i, j);
                        if (!(fabs(want - is) <= 2e-5 * (1.0 + fabs(want))))
                            fail_msg("(%lld, %lld) is %g, not %g", (long long)i, (long long)j, is,
                                     want);
                    }
            }
            assert_same_bits(&got, &first.m, "product");
            to.m.memory = GNOMON_HOST;
            check_sentinels(&to);
            drop(&x, a_place);
            drop(&y, b_place);
            drop(&to, c_place);
        }
    set((size_t)1 << 30, 1);
    free_matrix(&a);
    free_matrix(&b);
    free_matrix(&old);
    free_matrix(&expected);
    free_matrix(&first);
}

static void products(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {{1, 1, 1},      {300, 40, 33}, {40, 300, 33}, {700, 130, 9},
                                       {257, 200, 20}, {50, 60, 0},   {0, 5, 6}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        const int layout = (int)s;
        one_product(sizes[s], GNOMON_F32, GNOMON_F16, GNOMON_F32, layout, 0.0);
        one_product(sizes[s], s % 2 ? GNOMON_F16 : GNOMON_F32, GNOMON_F32,
                    s % 2 ? GNOMON_F32 : GNOMON_F64, layout + 1, 0.25);
    }
    const int64_t large[] = {300, 200, 100};
    owned a = make_matrix(large[0], large[2], GNOMON_F32, 0);
    owned b = make_matrix(large[2], large[1], GNOMON_F32, 0);
    owned c = make_matrix(large[0], large[1], GNOMON_F32, 0);
    fill_random(&a.m, 5);
    fill_random(&b.m, 6);
    set(in_use() + 20000, 1);
    ASSERT_FAILS(gpu, gnomon_gemm(gpu, &a.m, &b.m, &c.m, NULL), GNOMON_ERROR_MEMORY,
                 "one part of the product needs ");
    set((size_t)1 << 30, 1);
    free_matrix(&a);
    free_matrix(&b);
    free_matrix(&c);
}

static void adjoint_of_nonfinite(void **state)
{
    (void)state;
    gnomon_operator *op = make_operator(cpu, &simple, 11, 600);
    owned y = make_matrix(140, 11, GNOMON_F32, ROW_PADDED);
    owned x = make_matrix(140, 600, GNOMON_F32, 0);
    fill_random(&y.m, 8);
    fill_random(&x.m, 9);
    set_element(&y.m, 131, 7, NAN);
    set_element(&y.m, 117, 10, INFINITY);
    for (int places = 0; places < PLACES * PLACES; places++) {
        owned from = move(&y, places % PLACES), to = move(&x, places / PLACES);
        set(in_use() + 20000, (uint64_t)places);
        ASSERT_FAILS(gpu, gnomon_adjoint(gpu, op, &from.m, &to.m, NULL), GNOMON_ERROR_NONFINITE,
                     "y: element (117, 10) is NaN");
        const gnomon_matrix got = as_host(&to.m);
        assert_same_bits(&got, &x.m, "x after NONFINITE");
        gnomon_sketch_options o = GNOMON_SKETCH_OPTIONS_INIT;
        o.allow_nonfinite = 1;
        ASSERT_OK(gpu, gnomon_adjoint(gpu, op, &from.m, &to.m, &o));
        drop(&from, places % PLACES);
        drop(&to, places / PLACES);
    }
    set(in_use() + 100, 1);
    ASSERT_FAILS(gpu, gnomon_adjoint(gpu, op, &y.m, &x.m, NULL), GNOMON_ERROR_MEMORY,
                 "one coordinate needs ");
    set((size_t)1 << 30, 1);
    free_matrix(&y);
    free_matrix(&x);
    gnomon_operator_destroy(op);
}

static void nonfinite_is_named_and_nothing_written(void **state)
{
    (void)state;
    static const size_t limits[] = {(size_t)1 << 30, 90000, 40000};
    const shape s = {160, 11, 600, 0, 0, 0, 0};
    gnomon_operator *op = make_operator(cpu, &blocks, s.k, s.d);
    for (size_t l = 0; l < sizeof limits / sizeof *limits; l++)
        for (int places = 0; places < PLACES * PLACES; places++) {
            owned x = make_matrix(s.n, s.d, GNOMON_F32, places % 2 ? COL_PADDED : ROW_PADDED);
            fill_random(&x.m, 8);
            /* of several GPUs the first has good rows alone */
            set_element(&x.m, 137, 7, NAN);
            set_element(&x.m, 93, 599, INFINITY);
            set_element(&x.m, 150, 0, -INFINITY);
            owned y = make_matrix(s.n, s.k, GNOMON_F32, ROW_MAJOR);
            fill_random(&y.m, 9);
            owned from = move(&x, places % PLACES), to = move(&y, places / PLACES);
            set(in_use() + limits[l], (uint64_t)places);
            gnomon_sketch_options o = GNOMON_SKETCH_OPTIONS_INIT;
            ASSERT_FAILS(gpu, gnomon_sketch(gpu, op, &from.m, &to.m, NULL), GNOMON_ERROR_NONFINITE,
                         "x: element (93, 599) is NaN");
            gnomon_matrix got = as_host(&to.m);
            assert_same_bits(&got, &y.m, "y after NONFINITE");
            /* A block away from the bad elements gives a result, but they are told all the same. */
            o.row = 3;
            o.rows = 2;
            got.cols = 2;
            got.memory = to.m.memory;
            ASSERT_FAILS(gpu, gnomon_sketch(gpu, op, &from.m, &got, &o), GNOMON_ERROR_NONFINITE,
                         "(93, 599)");
            o.allow_nonfinite = 1;
            ASSERT_OK(gpu, gnomon_sketch(gpu, op, &from.m, &got, &o));
            drop(&from, places % PLACES);
            drop(&to, places / PLACES);
            free_matrix(&x);
            free_matrix(&y);
        }
    set((size_t)1 << 30, 1);
    gnomon_operator_destroy(op);
}

/* Pieces of columns cut anywhere: the bits of one call. */
static void streams(void **state)
{
    (void)state;
    static const any_operator *const kinds[] = {&simple, &hadamard, &blocks, &narrow, &cascade};
    static const int64_t widths[] = {1, 37, 96, 400, 5000};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int form = 0; form < 12; form++) {
            const int64_t n = form % 3 ? 9 : form ? 40 : 200, d = 1001;
            const gnomon_dtype dtype = form % 4 == 3 ? GNOMON_F64 : GNOMON_F32;
            const gnomon_dtype y_type = form == 3 ? GNOMON_F32 : dtype;
            gnomon_operator *op = make_operator(cpu, kinds[k], 21, d);
            owned x = make_matrix(n, d, dtype, form % 2 ? COL_MAJOR : ROW_PADDED);
            owned y = make_matrix(n, 21, y_type, form % 5), z = make_matrix(n, 21, y_type, 0);
            fill_random(&x.m, 5);
            gnomon_sketch_options o = GNOMON_SKETCH_OPTIONS_INIT;
            o.alpha = 0.75;
            gnomon_matrix sketch = y.m, whole = z.m, points = x.m;
            if (form > 5) { /* a part of the rows, and of the columns */
                o.row = 8;
                o.rows = sketch.cols = whole.cols = 7;
                o.col = 150;
                points.cols -= 150;
                points.data = (char *)points.data +
                              150 * points.col_stride * (int64_t)gnomon_dtype_size(dtype);
            }
            set(in_use() + 2000000, (uint64_t)form + 1);
            ASSERT_OK(gpu, gnomon_sketch(gpu, op, &points, &whole, &o));
            gnomon_stream *stream;
            ASSERT_OK(gpu, gnomon_stream_create(gpu, op, n, dtype, &o, &stream));
            const int64_t width = widths[form % 5];
            for (int64_t col = 0; col < points.cols; col += width) {
                gnomon_matrix piece = points;
                piece.cols = points.cols - col < width ? points.cols - col : width;
                piece.data = (char *)points.data +
                             col * points.col_stride * (int64_t)gnomon_dtype_size(dtype);
                ASSERT_OK(gpu, gnomon_stream_push(stream, &piece));
            }
            ASSERT_OK(gpu, gnomon_stream_finish(stream, &sketch));
            gnomon_stream_destroy(stream);
            assert_same_bits(&sketch, &whole, kinds[k]->name);
            y.m = sketch;
            check_sentinels(&y);
            free_matrix(&x);
            free_matrix(&y);
            free_matrix(&z);
            gnomon_operator_destroy(op);
        }
    set((size_t)1 << 30, 1);
}

static void streams_refuse(void **state)
{
    (void)state;
    gnomon_operator *op = make_operator(cpu, &simple, 4, 96);
    gnomon_stream *stream;
    gnomon_sketch_options o = GNOMON_SKETCH_OPTIONS_INIT;
    o.beta = 1;
    ASSERT_FAILS(gpu, gnomon_stream_create(gpu, op, 3, GNOMON_F32, &o, &stream),
                 GNOMON_ERROR_DEVICE, "options.beta is 1; a stream on the GPU takes 0 only");
    assert_null(stream);
    ASSERT_OK(gpu, gnomon_stream_create(gpu, op, 3, GNOMON_F32, NULL, &stream));
    owned x = make_matrix(3, 96, GNOMON_F32, ROW_MAJOR), b = make_matrix(3, 96, GNOMON_I8, 0);
    owned y = make_matrix(3, 4, GNOMON_F32, ROW_MAJOR);
    fill_random(&x.m, 1);
    fill_random(&b.m, 1);
    gnomon_matrix half = x.m, other = b.m;
    half.cols = other.cols = 48;
    set_element(&x.m, 1, 7, NAN);
    ASSERT_FAILS(gpu, gnomon_stream_push(stream, &half), GNOMON_ERROR_NONFINITE,
                 "piece: element (1, 7) is NaN");
    set_element(&x.m, 1, 7, 0.5);
    ASSERT_OK(gpu, gnomon_stream_push(stream, &half));
    ASSERT_FAILS(gpu, gnomon_stream_push(stream, &other), GNOMON_ERROR_DTYPE,
                 "piece.dtype is i8; the pieces before it were f32");
    ASSERT_OK(gpu, gnomon_stream_push(stream, &half));
    ASSERT_OK(gpu, gnomon_stream_finish(stream, &y.m));
    gnomon_stream_destroy(stream);
    set(in_use() + 1000, 1);
    ASSERT_OK(gpu, gnomon_stream_create(gpu, op, 3, GNOMON_F32, NULL, &stream));
    ASSERT_FAILS(gpu, gnomon_stream_push(stream, &half), GNOMON_ERROR_MEMORY,
                 "a stream of so many points needs ");
    ASSERT_FAILS(gpu, gnomon_stream_push(stream, &half), GNOMON_ERROR_ARGUMENT, "failed before");
    gnomon_stream_destroy(stream);
    set((size_t)1 << 30, 1);
    free_matrix(&x);
    free_matrix(&b);
    free_matrix(&y);
    gnomon_operator_destroy(op);
}

/* Under auto a stream goes to the GPU, with less than the best work memory too, or to the CPU when
 * its first piece shows that the GPU has no room for it. */
static void streams_under_auto(void **state)
{
    (void)state;
    gnomon_context *ctx;
    assert_int_equal(gnomon_context_create(NULL, &ctx), GNOMON_OK);
    gnomon_operator *op = make_operator(cpu, &hadamard, 8, 500);
    owned x = make_matrix(3, 500, GNOMON_F32, ROW_MAJOR), y = make_matrix(3, 8, GNOMON_F32, 0);
    owned z = make_matrix(3, 8, GNOMON_F32, ROW_MAJOR);
    fill_random(&x.m, 1);
    static const size_t limits[] = {1000000, 14000, 1000};
    for (int l = 0; l < 3; l++) {
        const bool little = l == 2;
        gnomon_stream *stream;
        set(in_use() + limits[l], 1);
        ASSERT_OK(ctx, gnomon_stream_create(ctx, op, 3, GNOMON_F32, NULL, &stream));
        for (int64_t col = 0; col < 500; col += 250) {
            gnomon_matrix piece = x.m;
            piece.cols = 250;
            piece.data = (float *)x.m.data + col;
            ASSERT_OK(ctx, gnomon_stream_push(stream, &piece));
        }
        ASSERT_OK(ctx, gnomon_stream_finish(stream, &y.m));
        gnomon_stream_destroy(stream);
        assert_int_equal(gnomon_context_worked_on(ctx),
                         little ? GNOMON_DEVICE_CPU : GNOMON_DEVICE_PLUGIN);
        set((size_t)1 << 30, 1);
        gnomon_context *same = little ? cpu : gpu;
        ASSERT_OK(same, gnomon_sketch(same, op, &x.m, &z.m, NULL));
        assert_same_bits(&y.m, &z.m, "a stream under auto");
    }
    free_matrix(&x);
    free_matrix(&y);
    free_matrix(&z);
    gnomon_operator_destroy(op);
    gnomon_context_destroy(ctx);
}

static void too_little_memory(void **state)
{
    (void)state;
    gnomon_operator *op = make_operator(cpu, &hadamard, 8, 4000);
    owned x = make_matrix(6, 4000, GNOMON_F32, ROW_MAJOR), y = make_matrix(6, 8, GNOMON_F32, 0);
    fill_random(&x.m, 1);
    set(in_use() + 10000, 1);
    ASSERT_FAILS(gpu, gnomon_sketch(gpu, op, &x.m, &y.m, NULL), GNOMON_ERROR_MEMORY,
                 "one point needs ");
    set((size_t)1 << 30, 1);
    ASSERT_OK(gpu, gnomon_sketch(gpu, op, &x.m, &y.m, NULL));
    free_matrix(&x);
    free_matrix(&y);
    gnomon_operator_destroy(op);
}

static void memory_that_is_not_what_it_says(void **state)
{
    (void)state;
    gnomon_operator *op = make_operator(cpu, &simple, 4, 32);
    owned x = make_matrix(3, 32, GNOMON_F32, ROW_MAJOR), y = make_matrix(3, 4, GNOMON_F32, 0);
    fill_random(&x.m, 1);
    owned there = move(&x, DEVICE);
    x.m.memory = GNOMON_DEVICE_MEMORY;
    ASSERT_FAILS(gpu, gnomon_sketch(gpu, op, &x.m, &y.m, NULL), GNOMON_ERROR_ARGUMENT,
                 "x.memory is 1 (cuda); its data is host memory");
    there.m.memory = GNOMON_HOST;
    ASSERT_FAILS(gpu, gnomon_sketch(gpu, op, &there.m, &y.m, NULL), GNOMON_ERROR_ARGUMENT,
                 "x.memory is 0 (host); its data lies in the memory of GPU 0");
    drop(&there, DEVICE);
    free_matrix(&x);
    free_matrix(&y);
    gnomon_operator_destroy(op);
}

static void empty(void **state)
{
    (void)state;
    gnomon_operator *op = make_operator(cpu, &blocks, 8, 32);
    owned y = make_matrix(3, 8, GNOMON_F32, ROW_MAJOR), x = make_matrix(0, 32, GNOMON_F32, 0);
    fill_random(&y.m, 2);
    gnomon_matrix none = y.m;
    none.rows = 0;
    ASSERT_OK(gpu, gnomon_sketch(gpu, op, &x.m, &none, NULL));
    gnomon_sketch_options o = GNOMON_SKETCH_OPTIONS_INIT;
    o.beta = 0.5;
    o.col = 7;
    gnomon_matrix no_columns = {NULL, GNOMON_F32, GNOMON_HOST, 3, 0, 0, 1};
    const float before = ((const float *)y.m.data)[5];
    ASSERT_OK(gpu, gnomon_sketch(gpu, op, &no_columns, &y.m, &o));
    assert_true(((const float *)y.m.data)[5] == 0.5f * before);
    free_matrix(&x);
    free_matrix(&y);
    gnomon_operator_destroy(op);
}

static int reports;

static int stop_soon(void *user, const char *phase, int64_t done, int64_t total)
{
    (void)user;
    assert_string_equal(phase, "project");
    assert_true(done <= total && total == 192);
    return ++reports > 0;
}

static void cancelled(void **state)
{
    (void)state;
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    options.device = tested_device();
    options.progress = stop_soon;
    gnomon_context *ctx;
    assert_int_equal(gnomon_context_create(&options, &ctx), GNOMON_OK);
    gnomon_operator *op = make_operator(cpu, &simple, 8, 2000);
    owned x = make_matrix(192, 2000, GNOMON_F32, ROW_MAJOR);
    owned y = make_matrix(192, 8, GNOMON_F32, 0);
    fill_random(&x.m, 1);
    const size_t held = in_use();
    set(held + 100000, 1);
    ASSERT_FAILS(ctx, gnomon_sketch(ctx, op, &x.m, &y.m, NULL), GNOMON_ERROR_CANCELLED,
                 "cancelled");
    assert_int_equal(in_use(), held);
    assert_int_equal(reports, 1);
    set((size_t)1 << 30, 1);
    free_matrix(&x);
    free_matrix(&y);
    gnomon_operator_destroy(op);
    gnomon_context_destroy(ctx);
}

/* Joins: the pairs of the CPU in their order, wherever the points lie and in however many pieces
 * they come, found by whichever GPU. Whole numbers make ties. */
static void joins(void **state)
{
    (void)state;
    static const size_t limits[] = {(size_t)1 << 30, 2000000, 1200000};
    for (int form = 0; form < 4; form++) {
        owned p =
            make_matrix(form % 2 ? 1100 : 700, 6, GNOMON_F32, form < 2 ? ROW_MAJOR : COL_MAJOR);
        owned q = make_matrix(900, 6, GNOMON_F32, ROW_PADDED);
        fill_random(&p.m, 5);
        fill_random(&q.m, 6);
        for (int which = 0; which < 2; which++) {
            const gnomon_matrix *m = which ? &q.m : &p.m;
            for (int64_t i = 0; i < m->rows; i++)
                for (int64_t j = 0; j < m->cols; j++)
                    set_element(m, i, j, floor(4 * element(m, i, j)));
        }
        gnomon_join_options o = GNOMON_JOIN_OPTIONS_INIT;
        gnomon_join_result told = {.struct_size = sizeof told};
        gnomon_pairs want = {.struct_size = sizeof want};
        o.threshold = 4;
        const bool self = form % 2;
        ASSERT_OK(cpu, gnomon_join_collect(cpu, &p.m, self ? NULL : &q.m, &o, 0, &want, NULL));
        assert_true(want.count > 1000);
        for (size_t l = 0; l < sizeof limits / sizeof *limits; l++)
            for (int place = 0; place < PLACES; place++) {
                gnomon_pairs got = {.struct_size = sizeof got};
                owned a = move(&p, place), b = move(&q, (place + form) % PLACES);
                const gnomon_matrix *other = self ? NULL : &b.m;
                const size_t held = in_use();
                set(held + limits[l], (uint64_t)(7 * place + form + 1));
                ASSERT_OK(gpu, gnomon_join_collect(gpu, &a.m, other, &o, 0, &got, &told));
                assert_int_equal(gnomon_context_worked_on(gpu), GNOMON_DEVICE_PLUGIN);
                assert_int_equal(in_use(), held);
                assert_int_equal(got.count, want.count);
                assert_memory_equal(got.offsets, want.offsets, (size_t)(want.rows + 1) * 8);
                assert_memory_equal(got.columns, want.columns, (size_t)want.count * 8);
                assert_memory_equal(got.distances, want.distances, (size_t)want.count * 8);
                ASSERT_OK(gpu, gnomon_join(gpu, &a.m, other, &o, &told));
                assert_int_equal(told.pairs, want.count);
                gnomon_pairs_free(gpu, &got);
                drop(&a, place);
                drop(&b, (place + form) % PLACES);
            }
        gnomon_pairs_free(cpu, &want);
        free_matrix(&p);
        free_matrix(&q);
    }
    set((size_t)1 << 30, 1);
}

/* ---- products with sparse rows ---- */

typedef struct sparse {
    gnomon_csr csr;
    int64_t *offsets, *indices;
    void *values;
} sparse;

/* Rows of very different lengths, whose offsets do not begin at 0. */
static sparse make_sparse(int64_t rows, int64_t cols, gnomon_dtype dtype, int form)
{
    sparse a = {.offsets = malloc((size_t)(rows + 1) * 8)};
    const size_t size = gnomon_dtype_size(dtype);
    uint64_t dice = 77 + (uint64_t)form;
    int64_t count = 5;
    for (int64_t i = 0; i < rows; i++) {
        a.offsets[i] = count;
        dice = dice * 6364136223846793005u + 1442695040888963407u;
        if (form == 1) /* all entries in the last rows */
            count += i < rows - 2 ? 0 : cols;
        else if (i % 50 == 49)
            count += cols;
        else
            count += (int64_t)((dice >> 33) % 9);
    }
    a.offsets[rows] = count;
    count -= a.offsets[0];
    a.indices = calloc((size_t)count, 8);
    a.values = calloc((size_t)count, size);
    for (int64_t i = 0; i < rows; i++) {
        const int64_t each = a.offsets[i + 1] - a.offsets[i];
        for (int64_t e = 0; e < each; e++) {
            const int64_t at = a.offsets[i] - a.offsets[0] + e;
            dice = dice * 6364136223846793005u + 1442695040888963407u;
            const double x = (double)(dice >> 40) / 0x1p24 - 0.5;
            a.indices[at] = each == cols ? e : e * (cols / 9) + (int64_t)((dice >> 33) % 5);
            if (dtype == GNOMON_F64)
                ((double *)a.values)[at] = x;
            else
                ((float *)a.values)[at] = (float)x;
        }
    }
    a.csr = (gnomon_csr){.values = a.values,
                         .offsets = a.offsets,
                         .indices = a.indices,
                         .dtype = dtype,
                         .rows = rows,
                         .cols = cols};
    return a;
}

static void free_sparse(sparse *a)
{
    free(a->offsets);
    free(a->indices);
    free(a->values);
}

/* The simulated factorisation: U = A W for a W of such entries, and Vt the transpose of A^T U
 * (simulated_svd.cu). */
static double w_entry(int64_t row, int64_t column)
{
    return (double)((row * 7 + column * 3) % 11) / 8 - 0.5;
}

static void check_products(const sparse *a, const gnomon_svd *got, const double *mean)
{
    const int64_t m = a->csr.rows, n = a->csr.cols, k = got->rank, first = a->offsets[0];
    double *left = calloc((size_t)(m * k), 8), *right = calloc((size_t)(n * k), 8);
    double worst = 0;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < k; j++) {
            double sum = 0;
            for (int64_t e = a->offsets[i] - first; e < a->offsets[i + 1] - first; e++) {
                const double x = a->csr.dtype == GNOMON_F64 ? ((double *)a->values)[e]
                                                            : (double)((float *)a->values)[e];
                sum += x * w_entry(a->indices[e], j);
            }
            for (int64_t c = 0; c < n && mean; c++)
                sum -= mean[c] * w_entry(c, j);
            left[i * k + j] = sum;
            worst = fmax(worst, fabs(sum - element(&got->u, i, j)));
        }
    assert_true(worst < 1e-3);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < k; j++) {
            for (int64_t e = a->offsets[i] - first; e < a->offsets[i + 1] - first; e++) {
                const double x = a->csr.dtype == GNOMON_F64 ? ((double *)a->values)[e]
                                                            : (double)((float *)a->values)[e];
                right[a->indices[e] * k + j] += x * left[i * k + j];
            }
            for (int64_t c = 0; c < n && mean; c++)
                right[c * k + j] -= mean[c] * left[i * k + j];
        }
    worst = 0;
    double most = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < k; j++) {
            worst = fmax(worst, fabs(right[i * k + j] - element(&got->vt, j, i)));
            most = fmax(most, fabs(right[i * k + j]));
        }
    assert_true(most > 0.1);
    assert_true(worst < 1e-4 * most);
    free(left);
    free(right);
}

/* The factorisation of sparse rows or, where they are NULL, of a matrix while another GPU has room
 * for so much: 'want' to the bit, and nothing left behind. */
static void check_beside(const gnomon_csr *rows, const gnomon_matrix *matrix,
                         const gnomon_svd_options *o, const gnomon_svd *want, size_t held,
                         const size_t limits[3], uint64_t order)
{
    gnomon_svd got = {.struct_size = sizeof got};
    for (uint64_t l = 0; l < 3; l++) {
        set((size_t)1 << 30, order + l);
        if (several) limit(1, limits[l]);
        ASSERT_OK(gpu, rows ? gnomon_svd_csr(gpu, rows, o, &got)
                            : gnomon_svd_dense(gpu, matrix, o, &got));
        assert_int_equal(gnomon_context_worked_on(gpu), GNOMON_DEVICE_PLUGIN);
        assert_same_bits(&got.u, &want->u, "U");
        assert_same_bits(&got.vt, &want->vt, "Vt");
        gnomon_svd_free(gpu, &got);
        assert_int_equal(in_use(), held);
    }
    set((size_t)1 << 30, 1);
}

static void sparse_products(void **state)
{
    (void)state;
    const gnomon_dtype types[] = {GNOMON_F32, GNOMON_F64};
    for (int run = 0; run < 12; run++) {
        const int form = run % 3, center = run / 6;
        const int64_t rows = form == 2 ? 3 : 301, cols = form == 2 ? 64 : 97;
        sparse a = make_sparse(rows, cols, types[run / 3 % 2], form);
        gnomon_svd_options o = GNOMON_SVD_OPTIONS_INIT;
        o.rank = 2;
        o.oversample = 1;
        o.dtype = types[run / 3 % 2];
        o.center = center;
        gnomon_svd want = {.struct_size = sizeof want};
        const size_t held = in_use();
        set((size_t)1 << 30, (uint64_t)run + 1);
        ASSERT_OK(single, gnomon_svd_csr(single, &a.csr, &o, &want));
        check_products(&a, &want, center ? want.mean : NULL);
        /* Another GPU has room for nothing, for the links' buffers alone, for all. */
        const size_t limits[] = {0, 2500, (size_t)1 << 30};
        check_beside(&a.csr, NULL, &o, &want, held, limits, (uint64_t)(3 * run));
        gnomon_svd_free(single, &want);
        free_sparse(&a);
    }
}

/* Products in double precision, in segments, by rows and by columns, with and without gaps. */
static void f64_products(void **state)
{
    (void)state;
    const int64_t rows = 2500, cols = 2061;
    for (int layout = 0; layout < 2; layout++) {
        owned a = make_matrix(rows, cols, GNOMON_F64, layout ? COL_MAJOR : ROW_PADDED);
        fill_random(&a.m, (unsigned)layout + 3);
        gnomon_svd_options o = GNOMON_SVD_OPTIONS_INIT;
        o.rank = 2;
        o.oversample = 400;
        o.power = 1;
        o.dtype = GNOMON_F64;
        gnomon_svd want = {.struct_size = sizeof want};
        const size_t held = in_use();
        ASSERT_OK(single, gnomon_svd_dense(single, &a.m, &o, &want));
        double worst = 0, back = 0;
        for (int64_t i = 0; i < rows; i += 7)
            for (int64_t j = 0; j < 2; j++) {
                double sum = -element(&want.u, i, j);
                for (int64_t c = 0; c < cols; c++)
                    sum += element(&a.m, i, c) * w_entry(c, j);
                worst = fmax(worst, fabs(sum));
            }
        for (int64_t i = 0; i < cols; i += 7)
            for (int64_t j = 0; j < 2; j++) {
                double sum = -element(&want.vt, j, i);
                for (int64_t r = 0; r < rows; r++)
                    sum += element(&a.m, r, i) * element(&want.u, r, j);
                back = fmax(back, fabs(sum));
            }
        assert_true(worst < 1e-9);
        assert_true(back < 1e-7);
        /* Another GPU has room for the links' buffers alone, for a part, for all. */
        const size_t limits[] = {2500, 40000000, (size_t)1 << 30};
        check_beside(NULL, &a.m, &o, &want, held, limits, (uint64_t)(3 * layout));
        gnomon_svd_free(single, &want);
        free_matrix(&a);
    }
}

static bool refuses;
static size_t held_before;

/* Refuses what has room for singular vectors, once the GPU is at work. */
static void *take_unless(void *user, size_t size, size_t alignment)
{
    (void)user;
    if (refuses && size >= 2048 && in_use() > held_before) return NULL;
    return aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

static void give_all(void *user, void *data, size_t size)
{
    (void)user;
    (void)size;
    free(data);
}

/* A GPU that has no room for its part is no reason of what fails later. */
static void no_room_for_vectors(void **state)
{
    (void)state;
    const gnomon_allocator allocator = {NULL, take_unless, give_all};
    gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
    o.device = tested_device();
    o.threads = 2;
    o.allocator = &allocator;
    gnomon_context *ctx = NULL;
    if (gnomon_context_create(&o, &ctx) != GNOMON_OK) fail_msg("%s", gnomon_last_error(NULL));
    sparse a = make_sparse(301, 97, GNOMON_F64, 0);
    owned full = make_matrix(2500, 2061, GNOMON_F64, ROW_MAJOR);
    fill_random(&full.m, 3);
    held_before = in_use();
    for (int of_dense = 0; of_dense < 2; of_dense++) {
        gnomon_svd_options s = GNOMON_SVD_OPTIONS_INIT;
        s.rank = 2;
        s.oversample = of_dense ? 400 : 1;
        s.power = 1;
        s.dtype = GNOMON_F64;
        gnomon_svd got = {.struct_size = sizeof got};
        set((size_t)1 << 30, 3);
        if (several) limit(1, 2500);
        refuses = true;
        const gnomon_status status = of_dense ? gnomon_svd_dense(ctx, &full.m, &s, &got)
                                              : gnomon_svd_csr(ctx, &a.csr, &s, &got);
        refuses = false;
        assert_int_equal(status, GNOMON_ERROR_MEMORY);
        if (!strstr(gnomon_last_error(ctx), "vectors")) fail_msg("%s", gnomon_last_error(ctx));
        assert_int_equal(in_use(), held_before);
    }
    set((size_t)1 << 30, 1);
    free_matrix(&full);
    free_sparse(&a);
    gnomon_context_destroy(ctx);
}

/* Of several GPUs one that is full fails the job, and nothing is written. */
static void one_is_full(void **state)
{
    (void)state;
    if (!several) skip();
    gnomon_operator *op = make_operator(cpu, &simple, 8, 2000);
    owned x = make_matrix(300, 2000, GNOMON_F32, ROW_MAJOR), y = make_matrix(300, 8, GNOMON_F32, 0);
    fill_random(&x.m, 1);
    fill_random(&y.m, 2);
    owned before = move(&y, PAGEABLE);
    for (int full = 0; full < 3; full++) {
        char text[64];
        snprintf(text, sizeof text, "cuda: device %d: one point needs ", full);
        set((size_t)1 << 30, 5);
        limit(full, 500);
        ASSERT_FAILS(gpu, gnomon_sketch(gpu, op, &x.m, &y.m, NULL), GNOMON_ERROR_MEMORY, text);
        assert_same_bits(&y.m, &before.m, "y after MEMORY");
    }
    set((size_t)1 << 30, 1);
    ASSERT_OK(gpu, gnomon_sketch(gpu, op, &x.m, &y.m, NULL));
    free_matrix(&x);
    free_matrix(&y);
    free_matrix(&before);
    gnomon_operator_destroy(op);
}

static void which_gpu(void **state)
{
    (void)state;
    gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context *ctx;
    o.device = "cuda:3";
    assert_int_equal(gnomon_context_create(&o, &ctx), GNOMON_ERROR_DEVICE);
    if (!strstr(gnomon_last_error(NULL), "the device index is 3; the visible GPUs are 0 to 2"))
        fail_msg("%s", gnomon_last_error(NULL));
    o.device = "cuda:-2";
    assert_int_equal(gnomon_context_create(&o, &ctx), GNOMON_ERROR_ARGUMENT);
    if (!strstr(gnomon_last_error(NULL), "options.device is \"cuda:-2\""))
        fail_msg("%s", gnomon_last_error(NULL));
    setenv("GNOMON_CUDA_MEMORY", "1x", 1);
    o.device = "cuda:0";
    assert_int_equal(gnomon_context_create(&o, &ctx), GNOMON_ERROR_DEVICE);
    if (!strstr(gnomon_last_error(NULL),
                "GNOMON_CUDA_MEMORY is \"1x\"; it must be a number of MiB"))
        fail_msg("%s", gnomon_last_error(NULL));
    unsetenv("GNOMON_CUDA_MEMORY");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_shape),
        cmocka_unit_test(much_work),
        cmocka_unit_test(every_layout_and_type),
        cmocka_unit_test(adjoints),
        cmocka_unit_test(adjoint_of_nonfinite),
        cmocka_unit_test(products),
        cmocka_unit_test(nonfinite_is_named_and_nothing_written),
        cmocka_unit_test(streams),
        cmocka_unit_test(streams_refuse),
        cmocka_unit_test(streams_under_auto),
        cmocka_unit_test(too_little_memory),
        cmocka_unit_test(memory_that_is_not_what_it_says),
        cmocka_unit_test(empty),
        cmocka_unit_test(cancelled),
        cmocka_unit_test(joins),
        cmocka_unit_test(sparse_products),
        cmocka_unit_test(f64_products),
        cmocka_unit_test(no_room_for_vectors),
        cmocka_unit_test(one_is_full),
        cmocka_unit_test(which_gpu),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}

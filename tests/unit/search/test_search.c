/* Exact search of dense points against every pair in fp64: sets, order, bits. */
#include "search_testing.h"

#include "base/isa.h"
#include "search/state.h"

/* What points are like. */
typedef enum kind {
    BELL,       /* bell-shaped around 0 */
    OFFSET,     /* all coordinates + 1000 */
    DUPLICATES, /* few distinct points */
    ZEROS,      /* a third are zero vectors */
    TERNARY,    /* coordinates 0, 1, 2: ties everywhere */
    BYTES,      /* integers 0 ... 255 */
    HUGE_ONES,  /* near the top of the type */
    TINY,       /* subnormal in fp32 */
    WILD,       /* each point of a scale of its own */
    ALIKE,      /* all within rounding of fp32 of each other */
    TAILS,      /* few coordinates far from the others */
    KINDS
} kind;

static const char *const kind_names[] = {"bell",    "offset", "duplicates", "zeros",
                                         "ternary", "bytes",  "huge",       "tiny",
                                         "wild",    "alike",  "tails"};

static bool is_f64(gnomon_dtype dtype)
{
    return dtype == GNOMON_F64;
}

static double value_of(kind like, gnomon_dtype dtype, int64_t row, int64_t col, uint64_t *state)
{
    const bool integer =
        dtype != GNOMON_F32 && dtype != GNOMON_F64 && dtype != GNOMON_F16 && dtype != GNOMON_BF16;
    double x = draw(state);
    if (integer) x = floor((x + 1) * (dtype == GNOMON_I8 ? 63 : 127));
    switch (like) {
    case OFFSET:
        return integer ? x : x + 1000;
    case DUPLICATES: {
        uint64_t s = (uint64_t)(row % 7) * 1000 + (uint64_t)col;
        const double y = draw(&s);
        return integer ? floor((y + 1) * 60) : y;
    }
    case ZEROS:
        return row % 3 == 1 ? 0 : x;
    case TERNARY:
        return (double)(draw_bits(state) % 3);
    case BYTES:
        return (double)(draw_bits(state) % (dtype == GNOMON_I8 ? 128 : 256));
    case HUGE_ONES:
        return integer ? x : dtype == GNOMON_F16 ? x * 3e4 : x * (is_f64(dtype) ? 1e140 : 1e37);
    case TINY:
        return integer ? x : dtype == GNOMON_F16 ? x * 1e-6 : x * (is_f64(dtype) ? 1e-290 : 1e-41);
    case WILD:
        return integer || dtype == GNOMON_F16
                   ? x
                   : ldexp(x, (int)(row % 61 - 30) * (is_f64(dtype) ? 6 : 3));
    case ALIKE:
        return integer               ? 100 + (double)(draw_bits(state) % 2)
               : is_f64(dtype)       ? 1 + x * 1e-12
               : dtype == GNOMON_F16 ? 1 + x * 1e-2
                                     : 1 + x * 3e-7;
    case TAILS:
        return integer ? x : x * x * x * x * x;
    default:
        return x;
    }
}

static uint16_t half_of(double x)
{
    int exponent;
    const double m = frexp(fabs(x), &exponent); /* x = m 2^exponent, 1/2 <= m < 1 */
    const uint16_t sign = x < 0 ? 0x8000 : 0;
    if (x == 0) return sign;
    if (exponent < -13) return (uint16_t)(sign | (uint16_t)rint(ldexp(fabs(x), 24)));
    return (uint16_t)(sign | (uint16_t)(((exponent + 14) << 10) + (int)rint(ldexp(m, 11)) - 1024));
}

static double of_half(uint16_t h)
{
    const int exponent = h >> 10 & 31, mantissa = h & 1023;
    const double x = exponent == 0 ? ldexp(mantissa, -24) : ldexp(1024 + mantissa, exponent - 25);
    return h & 0x8000 ? -x : x;
}

/* Stores x and returns what was stored. */
static double store(void *data, gnomon_dtype dtype, int64_t i, double x)
{
    switch (dtype) {
    case GNOMON_F32:
        return (double)(((float *)data)[i] = (float)x);
    case GNOMON_F64:
        return ((double *)data)[i] = x;
    case GNOMON_F16:
        return of_half(((uint16_t *)data)[i] = half_of(x));
    case GNOMON_BF16: {
        float f = (float)x;
        uint32_t bits;
        memcpy(&bits, &f, 4);
        bits &= 0xffff0000u;
        ((uint16_t *)data)[i] = (uint16_t)(bits >> 16);
        memcpy(&f, &bits, 4);
        return (double)f;
    }
    case GNOMON_I8:
        return ((int8_t *)data)[i] = (int8_t)x;
    case GNOMON_U8:
        return ((uint8_t *)data)[i] = (uint8_t)x;
    case GNOMON_I16:
        return ((int16_t *)data)[i] = (int16_t)x;
    case GNOMON_U16:
        return ((uint16_t *)data)[i] = (uint16_t)x;
    case GNOMON_I32:
        return ((int32_t *)data)[i] = (int32_t)x;
    case GNOMON_U32:
        return ((uint32_t *)data)[i] = (uint32_t)x;
    case GNOMON_I64:
        return (double)(((int64_t *)data)[i] = (int64_t)x);
    default:
        return (double)(((uint64_t *)data)[i] = (uint64_t)x);
    }
}

typedef struct points {
    gnomon_matrix m;
    double *values; /* rows x cols */
} points;

static points make_points(kind like, gnomon_dtype dtype, int64_t rows, int64_t cols,
                          bool by_columns, uint64_t seed)
{
    points p;
    const size_t count = (size_t)(rows * cols);
    void *data = malloc(count * gnomon_dtype_size(dtype) + 1);
    p.m = by_columns ? gnomon_matrix_colmajor(data, dtype, rows, cols)
                     : gnomon_matrix_rowmajor(data, dtype, rows, cols);
    p.values = malloc(count * sizeof *p.values + 1);
    uint64_t state = seed;
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < cols; j++)
            p.values[i * cols + j] = store(data, dtype, i * p.m.row_stride + j * p.m.col_stride,
                                           value_of(like, dtype, i, j, &state));
    }
    return p;
}

static void drop_points(points *p)
{
    free(p->m.data);
    free(p->values);
}

/* All pairs, sorted: queries x base. */
static answer *all_answers(gnomon_metric metric, const points *base, const points *queries)
{
    const int64_t n = base->m.rows, d = base->m.cols;
    answer *all = malloc((size_t)(n * queries->m.rows) * sizeof *all + 1);
    answer_sign = metric == GNOMON_IP ? -1 : 1;
    for (int64_t q = 0; q < queries->m.rows; q++) {
        for (int64_t i = 0; i < n; i++)
            all[q * n + i] =
                (answer){distance_of(metric, queries->values + q * d, base->values + i * d, d), i};
        qsort(all + q * n, (size_t)n, sizeof *all, by_distance);
    }
    return all;
}

typedef struct wish {
    gnomon_search_options o;
    int64_t piece; /* the base comes in pieces of so many; 0: at once */
} wish;

static gnomon_neighbors search(gnomon_context *ctx, const points *base, const points *queries,
                               const wish *w)
{
    gnomon_neighbors found = {.struct_size = sizeof found};
    if (w->piece == 0) {
        expect(ctx, gnomon_neighbors_exact(ctx, &base->m, &queries->m, &w->o, &found), GNOMON_OK);
        return found;
    }
    gnomon_search *s;
    expect(ctx, gnomon_search_create(ctx, &queries->m, &w->o, &s), GNOMON_OK);
    for (int64_t at = 0; at < base->m.rows; at += w->piece) {
        gnomon_matrix part = base->m;
        part.data =
            (char *)part.data + at * part.row_stride * (int64_t)gnomon_dtype_size(part.dtype);
        part.rows = base->m.rows - at < w->piece ? base->m.rows - at : w->piece;
        expect(ctx, gnomon_search_add(s, &part), GNOMON_OK);
    }
    expect(ctx, gnomon_search_finish(s, &found), GNOMON_OK);
    gnomon_search_destroy(s);
    return found;
}

static bool may_answer(const wish *w, int64_t query, int64_t id)
{
    if (w->o.exclude >= 0 && id == w->o.exclude + query) return false;
    return w->o.filter == NULL ||
           (id < w->o.filter_bits && (w->o.filter[id / 8] >> (id % 8) & 1) != 0);
}

/* The found ones are the first of all: same ids in the same order, same bits. */
static void compare(const gnomon_neighbors *found, const answer *all, int64_t n, const wish *w,
                    const char *what)
{
    for (int64_t q = 0; q < found->queries; q++) {
        int64_t at = found->offsets[q], rank = 0;
        for (int64_t i = 0; i < n; i++) {
            const answer want = all[q * n + i];
            if (!may_answer(w, q, want.id)) continue;
            if (w->o.k > 0 && rank == w->o.k) break;
            if (w->o.k == 0 && (w->o.metric == GNOMON_IP ? want.distance < w->o.radius
                                                         : want.distance > w->o.radius))
                break;
            if (at >= found->offsets[q + 1]) fail_msg("%s: query %d lacks answers", what, (int)q);
            if (found->ids[at] != want.id || found->distances[at] != want.distance)
                fail_msg("%s: query %d, rank %d: got %d at %.17g, want %d at %.17g", what, (int)q,
                         (int)rank, (int)found->ids[at], found->distances[at], (int)want.id,
                         want.distance);
            at++;
            rank++;
        }
        if (at != found->offsets[q + 1])
            fail_msg("%s: query %d has too many answers", what, (int)q);
    }
}

/* k nearest and a radius, at once and in pieces. */
static void check(gnomon_context *ctx, gnomon_metric metric, const points *base,
                  const points *queries, const char *what)
{
    const int64_t n = base->m.rows;
    answer *all = all_answers(metric, base, queries);
    const int64_t ks[] = {1, 10, 150, n};
    for (int i = 0; i < 4; i++) {
        if (ks[i] > n) continue;
        wish w = {.o = GNOMON_SEARCH_OPTIONS_INIT};
        w.o.metric = metric;
        w.o.k = ks[i];
        w.piece = i % 2 == 1 ? n / 3 + 1 : 0;
        gnomon_neighbors found = search(ctx, base, queries, &w);
        compare(&found, all, n, &w, what);
        gnomon_neighbors_free(ctx, &found);
    }
    for (int64_t i = 0; i < 2; i++) {
        wish w = {.o = GNOMON_SEARCH_OPTIONS_INIT};
        w.o.metric = metric;
        w.o.radius = all[i == 0 ? n / 50 : n - 1].distance; /* just reached */
        w.piece = i == 0 ? n / 2 + 1 : 0;
        gnomon_neighbors found = search(ctx, base, queries, &w);
        compare(&found, all, n, &w, what);
        gnomon_neighbors_free(ctx, &found);
    }
    free(all);
}

static const gnomon_metric metrics[] = {GNOMON_L2, GNOMON_COSINE, GNOMON_IP, GNOMON_L1};
enum { METRICS = sizeof metrics / sizeof metrics[0] };

static void every_kind_of_points(void **state)
{
    (void)state;
    static const int64_t dims[] = {1, 3, 17, 129, 300};
    gnomon_context *ctx = context_of(2, 0);
    for (int k = 0; k < KINDS; k++) {
        for (int m = 0; m < METRICS; m++) {
            for (int i = 0; i < 5; i++) {
                const gnomon_dtype dtype = i % 2 == 0 ? GNOMON_F32 : GNOMON_F64;
                char what[100];
                snprintf(what, sizeof what, "%s, %s, %s, %d dimensions", kind_names[k],
                         gnomon_metric_name(metrics[m]), gnomon_dtype_name(dtype), (int)dims[i]);
                points base = make_points((kind)k, dtype, 401, dims[i], false, 1);
                points queries = make_points((kind)k, dtype, 13, dims[i], false, 2);
                check(ctx, metrics[m], &base, &queries, what);
                if (metrics[m] == GNOMON_L2) { /* one query goes another way */
                    points one = queries;
                    one.m.rows = 1;
                    check(ctx, GNOMON_L2, &base, &one, what);
                }
                drop_points(&base);
                drop_points(&queries);
            }
        }
    }
    gnomon_context_destroy(ctx);
}

static void every_type_of_elements(void **state)
{
    (void)state;
    gnomon_context *ctx = context_of(2, 0);
    for (int t = GNOMON_F32; t <= GNOMON_U64; t++) {
        for (int m = 0; m < METRICS; m++) {
            /* queries of another type, the other layout */
            const gnomon_dtype other = (gnomon_dtype)(t % 12 + 1);
            char what[100];
            snprintf(what, sizeof what, "%s and %s, %s", gnomon_dtype_name((gnomon_dtype)t),
                     gnomon_dtype_name(other), gnomon_metric_name(metrics[m]));
            for (int few = 0; few < 2; few++) {
                points base =
                    make_points(t % 2 ? BELL : ZEROS, (gnomon_dtype)t, 250, 37, t % 3 == 1, 3);
                points queries = make_points(BELL, other, few ? 1 : 9, 37, t % 3 == 0, 4);
                check(ctx, metrics[m], &base, &queries, what);
                drop_points(&base);
                drop_points(&queries);
            }
        }
    }
    gnomon_context_destroy(ctx);
}

static void same_bits(const gnomon_neighbors *a, const gnomon_neighbors *b)
{
    assert_int_equal(a->queries, b->queries);
    assert_memory_equal(a->offsets, b->offsets, (size_t)(a->queries + 1) * sizeof *a->offsets);
    assert_memory_equal(a->ids, b->ids, (size_t)a->offsets[a->queries] * sizeof *a->ids);
    assert_memory_equal(a->distances, b->distances,
                        (size_t)a->offsets[a->queries] * sizeof *a->distances);
}

/* Threads, memory, pieces, instruction sets; many queries, so that they come in chunks, and few
 * points, of which there are no ranges. */
static void the_cut_leaves_no_trace(void **state)
{
    (void)state;
    static const int64_t sizes[3][2] = {{4500, 700}, {4500, 30}, {600, 700}};
    for (int m = 0; m < METRICS; m++) {
        for (int size = 0; size < 3; size++) {
            points base = make_points(BELL, GNOMON_F32, sizes[size][0], 19, false, 5);
            points queries = make_points(BELL, GNOMON_F32, sizes[size][1], 19, false, 6);
            for (int by_radius = 0; by_radius < 2; by_radius++) {
                wish w = {.o = GNOMON_SEARCH_OPTIONS_INIT};
                w.o.metric = metrics[m];
                w.o.k = by_radius ? 0 : 20;
                w.o.radius = m == 0 ? 1.1 : m == 1 ? 0.3 : 1.5;
                gnomon_context *ctx = context_of(1, 0);
                gnomon_neighbors first = search(ctx, &base, &queries, &w);
                for (int c = 0; c < 6; c++) {
                    static const int threads[] = {2, 5, 3, 2, 1, 16};
                    static const int64_t memory[] = {0, 0, 100000, 1 << 20, 1 << 22, 0};
                    static const int64_t pieces[] = {0, 1000, 4499, 3333, 77, 0};
                    if (size == 0 && c == 4) continue; /* slow */
                    gnomon_context *other = context_of(threads[c], memory[c]);
                    w.piece = pieces[c];
                    gnomon_neighbors again = search(other, &base, &queries, &w);
                    same_bits(&first, &again);
                    gnomon_neighbors_free(other, &again);
                    gnomon_context_destroy(other);
                }
                w.piece = 0;
                for (int level = 0; level < GNOMON_ISA_COUNT; level++) {
                    if (!gnomon_isa_available((gnomon_isa)level)) continue;
                    const char *before = getenv("GNOMON_ISA");
                    char *saved = before != NULL ? strdup(before) : NULL;
                    setenv("GNOMON_ISA", gnomon_isa_name((gnomon_isa)level), 1);
                    gnomon_context *other = context_of(2, 0);
                    gnomon_neighbors again = search(other, &base, &queries, &w);
                    same_bits(&first, &again);
                    gnomon_neighbors_free(other, &again);
                    gnomon_context_destroy(other);
                    if (saved != NULL)
                        setenv("GNOMON_ISA", saved, 1);
                    else
                        unsetenv("GNOMON_ISA");
                    free(saved);
                }
                gnomon_neighbors_free(ctx, &first);
                gnomon_context_destroy(ctx);
            }
            drop_points(&base);
            drop_points(&queries);
        }
    }
}

static void the_nearest_are_a_prefix(void **state)
{
    (void)state;
    gnomon_context *ctx = context_of(2, 0);
    points base = make_points(TERNARY, GNOMON_F32, 12000, 7, false, 5);
    points queries = make_points(TERNARY, GNOMON_F32, 20, 7, false, 6);
    wish w = {.o = GNOMON_SEARCH_OPTIONS_INIT};
    w.o.k = 10000;
    gnomon_neighbors many = search(ctx, &base, &queries, &w);
    w.o.k = 100;
    gnomon_neighbors few = search(ctx, &base, &queries, &w);
    for (int64_t q = 0; q < 20; q++) {
        assert_memory_equal(few.ids + q * 100, many.ids + q * 10000, 100 * sizeof *few.ids);
        assert_memory_equal(few.distances + q * 100, many.distances + q * 10000,
                            100 * sizeof *few.distances);
    }
    gnomon_neighbors_free(ctx, &many);
    gnomon_neighbors_free(ctx, &few);
    drop_points(&base);
    drop_points(&queries);
    gnomon_context_destroy(ctx);
}

static void filters_and_self(void **state)
{
    (void)state;
    gnomon_context *ctx = context_of(2, 0);
    static const kind kinds[] = {BELL, DUPLICATES, TERNARY};
    for (int i = 0; i < 3; i++) {
        points base = make_points(kinds[i], GNOMON_F32, 500, 33, false, 7);
        for (int few = 0; few < 2; few++) {
            points queries = base;
            queries.m.rows = few ? 1 : 40;
            queries.values = base.values + 100 * 33;
            queries.m.data = (float *)base.m.data + (size_t)100 * 33;
            uint8_t bitmap[60]; /* ends at id 480 */
            uint64_t bits = 9;
            for (int b = 0; b < 60; b++)
                bitmap[b] = (uint8_t)(draw_bits(&bits) & draw_bits(&bits));
            for (int m = 0; m < METRICS; m++) {
                answer *all = all_answers(metrics[m], &base, &queries);
                for (int c = 0; c < 8; c++) {
                    wish w = {.o = GNOMON_SEARCH_OPTIONS_INIT};
                    w.o.metric = metrics[m];
                    if (c & 1) w.o.exclude = 100;
                    if (c & 2) {
                        w.o.filter = bitmap;
                        w.o.filter_bits = 477;
                    }
                    w.o.k = c & 4 ? 0 : 12;
                    w.o.radius = all[30].distance;
                    w.piece = m == 1 ? 119 : 0;
                    gnomon_neighbors found = search(ctx, &base, &queries, &w);
                    compare(&found, all, 500, &w, "filters");
                    gnomon_neighbors_free(ctx, &found);
                }
                free(all);
            }
        }
        drop_points(&base);
    }
    gnomon_context_destroy(ctx);
}

/* The distances themselves against long doubles. */
static void distances_are_true(void **state)
{
    (void)state;
    gnomon_context *ctx = context_of(1, 0);
    static const kind kinds[] = {BELL, OFFSET, ALIKE, WILD};
    for (int i = 0; i < 4; i++) {
        points base = make_points(kinds[i], GNOMON_F32, 100, 200, false, 8);
        points queries = make_points(kinds[i], GNOMON_F32, 8, 200, false, 9);
        for (int m = 0; m < METRICS; m++) {
            wish w = {.o = GNOMON_SEARCH_OPTIONS_INIT};
            w.o.metric = metrics[m];
            w.o.k = 100;
            gnomon_neighbors found = search(ctx, &base, &queries, &w);
            for (int64_t a = 0; a < 800; a++) {
                const double *q = queries.values + a / 100 * 200;
                const double *b = base.values + found.ids[a] * 200;
                long double qb = 0, qq = 0, bb = 0, dd = 0;
                for (int j = 0; j < 200; j++) {
                    const long double x = q[j], y = b[j];
                    qb += x * y;
                    qq += x * x;
                    bb += y * y;
                    dd += (x - y) * (x - y);
                }
                const double got = found.distances[a];
                if (m == 0)
                    assert_true(fabsl((long double)got - sqrtl(dd)) <= 0x1p-48L * sqrtl(dd));
                if (m == 1)
                    assert_true(fabsl((long double)got - (1 - qb / sqrtl(qq * bb))) <= 0x1p-50L);
                if (m == 2) assert_true(fabsl((long double)got - qb) <= 0x1p-48L * sqrtl(qq * bb));
            }
            gnomon_neighbors_free(ctx, &found);
        }
        drop_points(&base);
        drop_points(&queries);
    }
    gnomon_context_destroy(ctx);
}

/* Coordinates whose boosted values overflow, beside differences whose squares underflow. */
static void equal_giants_are_near(void **state)
{
    (void)state;
    gnomon_context *ctx = context_of(1, 0);
    double b[3][2] = {{0x1p450, 0}, {0x1p450, 0x1p-300}, {0x1p450, 0x1p-600}};
    const gnomon_matrix base = gnomon_matrix_rowmajor(b, GNOMON_F64, 3, 2);
    gnomon_search_options o = GNOMON_SEARCH_OPTIONS_INIT;
    gnomon_neighbors found = {.struct_size = sizeof found};
    o.k = 3;
    assert_int_equal(gnomon_neighbors_exact(ctx, &base, &base, &o, &found), GNOMON_OK);
    for (int i = 0; i < 9; i++)
        assert_true(found.distances[i] >= 0 && found.distances[i] <= 0x1p-300);
    assert_true(found.ids[0] == 0 && found.distances[2] == 0x1p-300);
    gnomon_neighbors_free(ctx, &found);
    gnomon_context_destroy(ctx);
}

/* Many points and few answers: the filter sees them in 8 bits. */
static void coarse_filters_lose_nothing(void **state)
{
    (void)state;
    gnomon_context *ctx = context_of(2, 0);
    static const kind kinds[] = {BELL, BYTES, TERNARY};
    for (int i = 0; i < 9; i++) {
        points base = make_points(kinds[i % 3], GNOMON_F32, 9000, 18, false, 10);
        points queries = make_points(kinds[i % 3], GNOMON_F32, 17, 18, false, 11);
        wish w = {.o = GNOMON_SEARCH_OPTIONS_INIT};
        w.o.metric = metrics[i / 3];
        w.o.k = 1;
        gnomon_search *s;
        gnomon_neighbors found = {.struct_size = sizeof found};
        expect(ctx, gnomon_search_create(ctx, &queries.m, &w.o, &s), GNOMON_OK);
        expect(ctx, gnomon_search_add(s, &base.m), GNOMON_OK);
        assert_int_equal(s->centre.bits, 8);
        expect(ctx, gnomon_search_finish(s, &found), GNOMON_OK);
        gnomon_search_destroy(s);
        answer *all = all_answers(w.o.metric, &base, &queries);
        compare(&found, all, base.m.rows, &w, "in 8 bits");
        free(all);
        gnomon_neighbors_free(ctx, &found);
        drop_points(&base);
        drop_points(&queries);
    }
    gnomon_context_destroy(ctx);
}

/* Rounding takes more than a thousandth of a typical point, and integers are taken all the same. */
static void integers_serve_long_tails(void **state)
{
    (void)state;
    gnomon_context *ctx = context_of(1, 0);
    for (int i = 0; i < 3; i++) {
        points base = make_points(TAILS, GNOMON_F32, 2000, 128, false, 20);
        points queries = make_points(TAILS, GNOMON_F32, 17, 128, false, 21);
        wish w = {.o = GNOMON_SEARCH_OPTIONS_INIT};
        w.o.metric = metrics[i];
        w.o.k = 1;
        gnomon_search *s;
        gnomon_neighbors found = {.struct_size = sizeof found};
        expect(ctx, gnomon_search_create(ctx, &queries.m, &w.o, &s), GNOMON_OK);
        expect(ctx, gnomon_search_add(s, &base.m), GNOMON_OK);
        assert_true(s->centre.bits < 32);
        expect(ctx, gnomon_search_finish(s, &found), GNOMON_OK);
        gnomon_search_destroy(s);
        answer *all = all_answers(w.o.metric, &base, &queries);
        compare(&found, all, base.m.rows, &w, "of long tails");
        free(all);
        gnomon_neighbors_free(ctx, &found);
        drop_points(&base);
        drop_points(&queries);
    }
    gnomon_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_points),      cmocka_unit_test(every_type_of_elements),
        cmocka_unit_test(the_cut_leaves_no_trace),   cmocka_unit_test(the_nearest_are_a_prefix),
        cmocka_unit_test(filters_and_self),          cmocka_unit_test(distances_are_true),
        cmocka_unit_test(equal_giants_are_near),     cmocka_unit_test(coarse_filters_lose_nothing),
        cmocka_unit_test(integers_serve_long_tails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* LSH joins against exact ones: no wrong pair, none twice, and as many as guaranteed. */
#include <gnomon/join.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "join/lsh/lsh.h"

static uint64_t state;

static uint32_t word(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 32);
}

static double uniform(void)
{
    return ((double)word() + 0.5) * 0x1p-32;
}

static double normal(void)
{
    return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform());
}

static gnomon_context *context(int threads, int64_t memory)
{
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context *ctx;
    options.threads = threads;
    options.memory_limit = memory;
    options.device = "cpu";
    assert_int_equal(gnomon_context_create(&options, &ctx), GNOMON_OK);
    return ctx;
}

/* ---- data ---- */

enum { ROWS = 750, COLS = 24, SETS = 800, MEMBERS = 30, UNIVERSE = 4000 };

typedef enum shape { CLUSTERS, UNIFORM, SKEWED } shape;

static void fill(shape how, float *x)
{
    static float centres[ROWS][COLS];
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLS; j++)
            centres[i][j] = (float)(3 * normal());
    for (int i = 0; i < ROWS; i++) {
        /* skewed: a tenth of the points lie close together */
        const int c = how == CLUSTERS ? i % (ROWS / 6) : how == SKEWED && i % 10 == 0 ? 0 : i;
        for (int j = 0; j < COLS; j++)
            x[i * COLS + j] =
                how == UNIFORM ? (float)uniform() : centres[c][j] + (float)(0.3 * normal());
    }
}

typedef struct some_sets {
    int64_t offsets[SETS + 1], indices[SETS * MEMBERS];
    float values[SETS * MEMBERS];
} some_sets;

static gnomon_csr fill_sets(some_sets *s)
{
    for (int i = 0; i <= SETS; i++)
        s->offsets[i] = (int64_t)i * MEMBERS;
    for (int i = 0; i < SETS; i++) {
        int64_t *to = s->indices + (size_t)i * MEMBERS;
        const bool copy = i % 4 != 0;
        for (int m = 0; m < MEMBERS; m++) {
            const bool change = !copy || uniform() < 0.08;
            to[m] = change ? (int64_t)(word() % UNIVERSE) : to[m - MEMBERS];
            s->values[i * MEMBERS + m] = 1;
        }
    }
    gnomon_csr csr;
    memset(&csr, 0, sizeof csr);
    csr.rows = SETS;
    csr.cols = UNIVERSE;
    csr.dtype = GNOMON_F32;
    csr.offsets = s->offsets;
    csr.indices = s->indices;
    csr.values = s->values;
    return csr;
}

/* ---- runs ---- */

typedef struct run {
    gnomon_pairs pairs;
    gnomon_join_result result;
} run;

static void join(gnomon_context *ctx, const gnomon_matrix *p, const gnomon_matrix *q,
                 const gnomon_csr *sets, const gnomon_join_options *o, run *r)
{
    memset(r, 0, sizeof *r);
    r->pairs.struct_size = sizeof r->pairs;
    r->result.struct_size = sizeof r->result;
    gnomon_status status =
        sets != NULL ? gnomon_join_collect_csr(ctx, sets, NULL, o, 0, &r->pairs, &r->result)
                     : gnomon_join_collect(ctx, p, q, o, 0, &r->pairs, &r->result);
    if (status != GNOMON_OK) print_error("%s\n", gnomon_last_error(ctx));
    assert_int_equal(status, GNOMON_OK);
    assert_true(r->result.complete);
    assert_int_equal(r->result.pairs, r->pairs.count);
}

/* Every pair found is an exact join's, once, with its distance. */
static void expect_within(const run *some, const run *all)
{
    for (int64_t i = 0; i < some->pairs.rows; i++) {
        int64_t at = all->pairs.offsets[i];
        for (int64_t e = some->pairs.offsets[i]; e < some->pairs.offsets[i + 1]; e++) {
            if (e > some->pairs.offsets[i])
                assert_true(some->pairs.columns[e - 1] < some->pairs.columns[e]);
            while (at < all->pairs.offsets[i + 1] &&
                   all->pairs.columns[at] < some->pairs.columns[e])
                at++;
            assert_true(at < all->pairs.offsets[i + 1]);
            assert_int_equal(all->pairs.columns[at], some->pairs.columns[e]);
            assert_true(all->pairs.distances[at] == some->pairs.distances[e]);
        }
    }
}

static void expect_same(const run *x, const run *y)
{
    assert_int_equal(x->pairs.count, y->pairs.count);
    expect_within(x, y);
}

static void drop(gnomon_context *ctx, run *r)
{
    gnomon_pairs_free(ctx, &r->pairs);
}

/* So many seeds: no share of found pairs below the guarantee in more of them than one in twenty
 * would allow (of thirty, with four or more the chance is below 7 %, were it exactly one in twenty;
 * the miss probability is a bound for the farthest pairs, so none is what one sees). */
static void check_guarantee(const gnomon_matrix *p, const gnomon_csr *sets, gnomon_join_options o,
                            double recall, int seeds)
{
    gnomon_context *ctx = context(2, 0);
    run all;
    o.recall = 1;
    join(ctx, p, NULL, sets, &o, &all);
    assert_int_equal(all.result.method, GNOMON_JOIN_EXACT);
    assert_true(all.pairs.count > 100);
    int below = 0;
    o.recall = recall;
    o.method = GNOMON_JOIN_LSH;
    for (int seed = 0; seed < seeds; seed++) {
        run r;
        o.seed = (uint64_t)seed;
        join(ctx, p, NULL, sets, &o, &r);
        assert_int_equal(r.result.method, GNOMON_JOIN_LSH);
        expect_within(&r, &all);
        const double share = (double)r.pairs.count / (double)all.pairs.count;
        if (seed == 0) print_message("%s; found %.4f\n", r.result.why, share);
        below += share < recall;
        drop(ctx, &r);
    }
    drop(ctx, &all);
    gnomon_context_destroy(ctx);
    assert_true(below < 4);
}

static void dense_guarantees(void **unused)
{
    static float x[ROWS * COLS];
    static const double radius[] = {2.0, 1.35, 2.0}, angle[] = {0.03, 0.08, 0.03};
    (void)unused;
    for (int how = CLUSTERS; how <= SKEWED; how++) {
        state = (uint64_t)(how + 1);
        fill((shape)how, x);
        const gnomon_matrix p = gnomon_matrix_rowmajor(x, GNOMON_F32, ROWS, COLS);
        gnomon_join_options o = GNOMON_JOIN_OPTIONS_INIT;
        o.threshold = radius[how];
        check_guarantee(&p, NULL, o, 0.9, 30);
        o.metric = GNOMON_COSINE;
        o.threshold = angle[how];
        check_guarantee(&p, NULL, o, 0.9, 30);
    }
}

/* Rounding in products must not cost pairs: points far from the origin, and huge and tiny ones. */
static void far_from_the_origin(void **unused)
{
    static float x[ROWS * COLS], y[ROWS * COLS];
    static const float scale[] = {1, 0x1p60f, 0x1p-60f};
    (void)unused;
    state = 5;
    fill(CLUSTERS, x);
    for (int s = 0; s < 4; s++) {
        for (int e = 0; e < ROWS * COLS; e++)
            y[e] = s == 3 ? x[e] + 1000 : x[e] * scale[s];
        const gnomon_matrix p = gnomon_matrix_rowmajor(y, GNOMON_F32, ROWS, COLS);
        gnomon_join_options o = GNOMON_JOIN_OPTIONS_INIT;
        o.threshold = 2.0 * (s == 3 ? 1 : (double)scale[s]);
        check_guarantee(&p, NULL, o, 0.9, 6);
    }
}

static void bits_and_sets(void **unused)
{
    enum { BYTES = 16 };
    static uint8_t bits[ROWS * BYTES];
    static some_sets s;
    (void)unused;
    state = 7;
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < BYTES; j++) {
            bits[i * BYTES + j] = (uint8_t)(i % 5 == 0 ? word() : bits[(i - 1) * BYTES + j]);
            if (uniform() < 0.1) bits[i * BYTES + j] ^= (uint8_t)(1u << word() % 8);
        }
    gnomon_join_options o = GNOMON_JOIN_OPTIONS_INIT;
    const gnomon_matrix p = gnomon_matrix_rowmajor(bits, GNOMON_U8, ROWS, BYTES);
    o.metric = GNOMON_HAMMING;
    o.threshold = 9;
    check_guarantee(&p, NULL, o, 0.95, 30);
    const gnomon_csr csr = fill_sets(&s);
    o.metric = GNOMON_JACCARD;
    o.threshold = 0.3;
    check_guarantee(NULL, &csr, o, 0.95, 30);
}

static void same_for_all(void **unused)
{
    static float x[ROWS * COLS];
    (void)unused;
    state = 9;
    fill(SKEWED, x);
    const gnomon_matrix p = gnomon_matrix_rowmajor(x, GNOMON_F32, ROWS, COLS);
    const gnomon_matrix q = gnomon_matrix_rowmajor(x + 200 * COLS, GNOMON_F32, ROWS - 200, COLS);
    for (int sides = 1; sides <= 2; sides++) {
        gnomon_join_options o = GNOMON_JOIN_OPTIONS_INIT;
        run first, all;
        o.threshold = 2.5;
        gnomon_context *ctx = context(1, 0);
        join(ctx, &p, sides == 2 ? &q : NULL, NULL, &o, &all);
        o.recall = 0.9;
        o.method = GNOMON_JOIN_LSH;
        join(ctx, &p, sides == 2 ? &q : NULL, NULL, &o, &first);
        expect_within(&first, &all);
        assert_true((double)first.pairs.count >= 0.9 * (double)all.pairs.count);
        /* so little memory that few pairs may wait */
        for (int threads = 1; threads <= 3; threads++) {
            gnomon_context *other = context(threads, threads == 1 ? 350000 : 400000);
            run r;
            join(other, &p, sides == 2 ? &q : NULL, NULL, &o, &r);
            assert_true(r.result.bands > 1);
            expect_same(&r, &first);
            drop(other, &r);
            gnomon_context_destroy(other);
        }
        drop(ctx, &first);
        drop(ctx, &all);
        gnomon_context_destroy(ctx);
    }
}

static void goes_on(void **unused)
{
    static float x[ROWS * COLS];
    gnomon_context *ctx = context(2, 0);
    (void)unused;
    state = 11;
    fill(CLUSTERS, x);
    const gnomon_matrix p = gnomon_matrix_rowmajor(x, GNOMON_F32, ROWS, COLS);
    gnomon_join_options o = GNOMON_JOIN_OPTIONS_INIT;
    gnomon_join_result whole = {.struct_size = sizeof whole}, part = {.struct_size = sizeof part};
    int64_t pairs = 0;
    o.threshold = 2;
    o.recall = 0.9;
    o.method = GNOMON_JOIN_LSH;
    assert_int_equal(gnomon_join(ctx, &p, NULL, &o, &whole), GNOMON_OK);
    o.first_row = 375;
    assert_int_equal(gnomon_join(ctx, &p, NULL, &o, &part), GNOMON_OK);
    pairs = part.pairs;
    assert_true(pairs > 0 && pairs < whole.pairs);
    o.first_row = 0;
    o.max_pairs = whole.pairs - 1;
    assert_int_equal(gnomon_join(ctx, &p, NULL, &o, &part), GNOMON_OK);
    assert_int_equal(part.pairs, whole.pairs - 1);
    assert_false(part.complete);
    o.max_pairs = 0;
    o.top = 5;
    assert_int_equal(gnomon_join(ctx, &p, NULL, &o, &part), GNOMON_OK);
    assert_int_equal(part.pairs, 5);
    gnomon_context_destroy(ctx);
}

typedef struct kept {
    gnomon_pair *pairs;
    int64_t count, room, rows_done;
    int stop_after, batches; /* 0: never */
} kept;

static int keep(void *user, const gnomon_join_batch *batch)
{
    kept *k = user;
    assert_true(k->count + batch->count <= k->room);
    for (int64_t at = 0; at < batch->count; at++)
        k->pairs[k->count++] = batch->pairs[at];
    k->rows_done = batch->rows_done;
    return ++k->batches == k->stop_after;
}

/* Handed out in bands, and interrupted after each: the pairs of one uninterrupted join, in their
 * order, whether of one side or two. */
static void in_bands(void **unused)
{
    static float x[ROWS * COLS];
    gnomon_context *ctx = context(2, 0);
    (void)unused;
    state = 15;
    fill(SKEWED, x);
    const gnomon_matrix p = gnomon_matrix_rowmajor(x, GNOMON_F32, ROWS, COLS);
    const gnomon_matrix q = gnomon_matrix_rowmajor(x + 100 * COLS, GNOMON_F32, ROWS - 100, COLS);
    for (int sides = 1; sides <= 2; sides++) {
        const gnomon_matrix *other = sides == 2 ? &q : NULL;
        gnomon_join_options o = GNOMON_JOIN_OPTIONS_INIT;
        gnomon_join_result r = {.struct_size = sizeof r};
        kept whole = {0}, parts = {0};
        o.threshold = 2;
        o.recall = 0.9;
        o.method = GNOMON_JOIN_LSH;
        o.sink = keep;
        o.user = &whole;
        whole.room = parts.room = ROWS * ROWS;
        whole.pairs = malloc((size_t)whole.room * sizeof *whole.pairs);
        parts.pairs = malloc((size_t)parts.room * sizeof *parts.pairs);
        assert_true(whole.pairs != NULL && parts.pairs != NULL);
        assert_int_equal(gnomon_join(ctx, &p, other, &o, &r), GNOMON_OK);
        assert_int_equal(r.bands, 1);
        o.band_rows = 100;
        o.user = &parts;
        parts.stop_after = 1;
        int times = 0;
        for (int64_t row = 0; row < ROWS; row = parts.rows_done, times++) {
            parts.batches = 0;
            o.first_row = row;
            assert_int_equal(gnomon_join(ctx, &p, other, &o, &r), GNOMON_ERROR_CANCELLED);
            assert_int_equal(parts.rows_done, row + 100 < ROWS ? row + 100 : ROWS);
        }
        assert_int_equal(times, (ROWS + 99) / 100);
        assert_int_equal(parts.count, whole.count);
        assert_true(whole.count > 100);
        assert_memory_equal(parts.pairs, whole.pairs, (size_t)whole.count * sizeof *whole.pairs);
        /* nothing is left, and still it is told how it was done */
        o.first_row = ROWS;
        assert_int_equal(gnomon_join(ctx, &p, other, &o, &r), GNOMON_OK);
        assert_int_equal(r.method, GNOMON_JOIN_LSH);
        assert_true(r.complete && r.pairs == 0);
        o.band_rows = -1;
        assert_int_equal(gnomon_join(ctx, &p, other, &o, &r), GNOMON_ERROR_ARGUMENT);
        free(whole.pairs);
        free(parts.pairs);
    }
    gnomon_context_destroy(ctx);
}

static void chooses_and_refuses(void **unused)
{
    static float x[ROWS * COLS];
    gnomon_context *ctx = context(1, 0);
    (void)unused;
    state = 13;
    fill(UNIFORM, x);
    const gnomon_matrix p = gnomon_matrix_rowmajor(x, GNOMON_F32, 200, COLS);
    gnomon_join_options o = GNOMON_JOIN_OPTIONS_INIT;
    gnomon_join_result r = {.struct_size = sizeof r};
    /* few points far apart: exactly, with the reason */
    o.threshold = 1.5;
    o.recall = 0.9;
    assert_int_equal(gnomon_join(ctx, &p, NULL, &o, &r), GNOMON_OK);
    assert_int_equal(r.method, GNOMON_JOIN_EXACT);
    assert_true(r.recall == 1);
    assert_non_null(strstr(r.why, "an LSH join would cost"));
    /* duplicates */
    memcpy(x + 100 * COLS, x, 50 * COLS * sizeof *x);
    o.threshold = 0;
    o.method = GNOMON_JOIN_LSH;
    assert_int_equal(gnomon_join(ctx, &p, NULL, &o, &r), GNOMON_OK);
    assert_int_equal(r.pairs, 50);
    o.metric = GNOMON_IP;
    assert_int_equal(gnomon_join(ctx, &p, NULL, &o, &r), GNOMON_ERROR_UNSUPPORTED);
    o.metric = GNOMON_L2;
    o.recall = 1;
    assert_int_equal(gnomon_join(ctx, &p, NULL, &o, &r), GNOMON_ERROR_UNSUPPORTED);
    o.recall = 0;
    assert_int_equal(gnomon_join(ctx, &p, NULL, &o, &r), GNOMON_ERROR_ARGUMENT);
    o.recall = 0.9;
    o.threshold = 0.1;
    gnomon_context *little = context(1, 4096);
    assert_int_equal(gnomon_join(little, &p, NULL, &o, &r), GNOMON_ERROR_MEMORY);
    gnomon_context_destroy(little);
    const gnomon_matrix none = gnomon_matrix_rowmajor(x, GNOMON_F32, 0, COLS);
    assert_int_equal(gnomon_join(ctx, &none, NULL, &o, &r), GNOMON_OK);
    assert_int_equal(r.pairs, 0);
    /* points without coordinates are all the same, and nothing can be hashed */
    const gnomon_matrix flat = gnomon_matrix_rowmajor(x, GNOMON_F32, 5, 0);
    assert_int_equal(gnomon_join(ctx, &flat, NULL, &o, &r), GNOMON_ERROR_UNSUPPORTED);
    o.method = GNOMON_JOIN_AUTO;
    assert_int_equal(gnomon_join(ctx, &flat, NULL, &o, &r), GNOMON_OK);
    assert_int_equal(r.pairs, 10);
    gnomon_context_destroy(ctx);
}

/* A device's costs choose tables under AUTO alone, and none that break the guarantee: where a table
 * is dear and a candidate is not, there are fewer. The CPU's are the same for every device. */
static void by_device(void **unused)
{
    (void)unused;
    static float x[ROWS * COLS], some[2][GNOMON_JOIN_SOME * COLS];
    uint32_t rows[GNOMON_JOIN_SOME];
    gnomon_context *ctx = context(1, 0);
    gnomon_join_result result = {.struct_size = sizeof result};
    gnomon_join_sample sample = {.squares = {-1, -1}};
    gnomon_join_plan plan[4];
    state = 77;
    fill(CLUSTERS, x);
    const gnomon_matrix points = gnomon_matrix_rowmajor(x, GNOMON_F32, ROWS, COLS);
    gnomon_join_state join = {.ctx = ctx, .result = &result, .self = true};
    join.options = (gnomon_join_options)GNOMON_JOIN_OPTIONS_INIT;
    join.options.threshold = 3;
    join.options.recall = 0.9;
    join.p = (gnomon_side){
        .name = "p", .dense = &points, .rows = ROWS, .cols = COLS, .dtype = GNOMON_F32};
    join.q = join.p;
    for (int second = 0; second < 2; second++) {
        const int64_t count = gnomon_join_some(ROWS, second, rows);
        for (int64_t i = 0; i < count; i++)
            memcpy(some[second] + i * COLS, x + (int64_t)rows[i] * COLS, COLS * sizeof *x);
        *(second ? &sample.q : &sample.p) =
            gnomon_matrix_rowmajor(some[second], GNOMON_F32, count, COLS);
    }
    sample.costs = (gnomon_join_costs){.product_term = 1e-5, .placing = 1e4, .filtering = 1e-3};
    for (int which = 0; which < 4; which++) {
        const bool there = which % 2;
        join.options.method = which < 2 ? GNOMON_JOIN_AUTO : GNOMON_JOIN_LSH;
        assert_int_equal(gnomon_join_plan_make(&join, there ? &sample : NULL, &plan[which]),
                         GNOMON_OK);
        assert_true(gnomon_plan_tables(&plan[which]) > 0);
        assert_true(plan[which].miss > 0 && plan[which].miss <= (1 - 0.9) / 20);
        assert_int_equal(plan[which].by_device, which == 1);
    }
    assert_true(gnomon_plan_tables(&plan[1]) < gnomon_plan_tables(&plan[0]));
    for (int which = 2; which < 4; which++) {
        assert_int_equal(plan[which].shallow, plan[0].shallow);
        assert_int_equal(plan[which].deep, plan[0].deep);
        assert_int_equal(plan[which].depth, plan[0].depth);
        assert_true(plan[which].functions.width == plan[0].functions.width);
    }
    /* what it costs is the device's, whoever's tables they are */
    assert_true(plan[2].cost == plan[0].cost && plan[2].exact_cost == plan[0].exact_cost);
    assert_true(plan[3].exact_cost == plan[1].exact_cost && plan[3].cost > plan[1].cost);
    join.options.method = GNOMON_JOIN_AUTO;
    assert_false(gnomon_join_plan_pays(&join, &plan[1]));
    assert_non_null(strstr(result.why, "times as much"));
    /* lengths may be known there: with the same ones it is the same plan */
    result.why[0] = 0;
    for (int i = 0; i < ROWS; i++) {
        double squares = 0;
        for (int j = 0; j < COLS; j++)
            squares += (double)x[i * COLS + j] * (double)x[i * COLS + j];
        sample.squares[0] = fmax(sample.squares[0], squares);
    }
    assert_int_equal(gnomon_join_plan_make(&join, &sample, &plan[0]), GNOMON_OK);
    assert_int_equal(plan[0].deep, plan[1].deep);
    assert_int_equal(plan[0].shallow, plan[1].shallow);
    gnomon_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense_guarantees), cmocka_unit_test(far_from_the_origin),
        cmocka_unit_test(bits_and_sets),    cmocka_unit_test(same_for_all),
        cmocka_unit_test(goes_on),          cmocka_unit_test(in_bands),
        cmocka_unit_test(by_device),        cmocka_unit_test(chooses_and_refuses)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Tests of kernels at every level that this machine can run: against the scalar entries of
 * src/operator, and level against level, to the bit. */
#ifndef GNOMON_TESTS_KERNELS_TESTING_H
#define GNOMON_TESTS_KERNELS_TESTING_H

#include "base/isa.h"
#include "kernels.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <gnomon.h>

enum { LANES = GNOMON_LANES };

/* ---- the levels ---- */

static const gnomon_kernels *levels[GNOMON_ISA_COUNT];
static int level_count;

static int find_levels(void **state)
{
    (void)state;
    for (int l = 0; l < GNOMON_ISA_COUNT; l++) {
        const gnomon_kernels *k = gnomon_cpu_kernels(gnomon_isa_name((gnomon_isa)l));
        if (k && gnomon_isa_available((gnomon_isa)l)) levels[level_count++] = k;
    }
    return level_count > 0 ? 0 : -1;
}

/* ---- memory with guards on both sides ---- */

enum { GUARD = 256 };

typedef struct guarded {
    unsigned char *base, *data;
    size_t bytes;
} guarded;

static guarded guarded_new(int64_t bytes)
{
    guarded g = {.bytes = (size_t)bytes};
    const size_t total = (g.bytes + 2 * (size_t)GUARD + 63) / 64 * 64;
    g.base = aligned_alloc(64, total);
    assert_non_null(g.base);
    memset(g.base, 0xa5, GUARD);
    g.data = g.base + GUARD;
    memset(g.data, 0, g.bytes);
    memset(g.data + bytes, 0xa5, total - GUARD - g.bytes);
    return g;
}

static void guarded_end(guarded g)
{
    for (int i = 0; i < GUARD; i++) {
        assert_int_equal(g.base[i], 0xa5);
        assert_int_equal(g.data[g.bytes + (size_t)i], 0xa5);
    }
    free(g.base);
}

/* ---- operators ---- */

typedef struct shape {
    gnomon_kind kind;
    int64_t k, d;
    double density;         /* very-sparse */
    int64_t nonzeros;       /* sjlt */
    gnomon_dtype precision; /* gaussian */
    int64_t blocks, wiring; /* blockperm-sjlt */
} shape;

static gnomon_context *operators_context;

static void drop_operators_context(void)
{
    gnomon_context_destroy(operators_context);
}

static gnomon_operator *create(shape s)
{
    gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
    d.kind = s.kind;
    d.k = s.k;
    d.d = s.d;
    d.seed = UINT64_C(0x0123456789abcdef);
    d.density = s.density;
    d.nonzeros = s.nonzeros;
    d.precision = s.precision;
    d.blocks = s.blocks;
    d.wiring = s.wiring;
    gnomon_operator *op;
    if (operators_context == NULL) {
        assert_int_equal(gnomon_context_create(NULL, &operators_context), GNOMON_OK);
        atexit(drop_operators_context);
    }
    assert_int_equal(gnomon_operator_create(operators_context, &d, &op), GNOMON_OK);
    return op;
}

/* ---- one pass of the kernels over columns [col, col + cols) ---- */

typedef struct job {
    const gnomon_kernels *level;
    const gnomon_simple *a;
    int64_t row, rows; /* rows of the operator; row a multiple of rows_multiple */
    int64_t cut;       /* panels of at most so many rows; 0: as many as panel_rows allows */
    int64_t part;      /* sketch calls of at most so many rows; 0: whole panels */
    int64_t col, cols;
    int64_t tiles;
    bool adjoint, f64; /* f64: fp64 */
    void *x, *acc;     /* tiles * cols (rows) * LANES numbers */
} job;

static int64_t minimum(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void run_panel(const job *j, const gnomon_kind_kernels *k, gnomon_panel *panel)
{
    const int64_t size = j->f64 ? sizeof(double) : sizeof(float);
    guarded data = guarded_new(k->panel_bytes(j->a, panel->rows, panel->cols));
    guarded scratch = guarded_new(k->scratch_bytes(j->a));
    memset(data.data, 0x5a, data.bytes); /* fill clears what it needs */
    panel->data = data.data;
    for (int64_t p = k->pieces(panel) - 1; p >= 0; p--)
        k->fill(panel, p);
    if (k->seal) k->seal(panel);
    const gnomon_tiles tiles = {
        .count = j->tiles,
        .x = (char *)j->x + (panel->col - j->col) * LANES * size,
        .x_stride = j->cols * LANES,
        .acc = (char *)j->acc + (panel->row - j->row) * LANES * size,
        .acc_stride = j->rows * LANES,
        .scratch = scratch.data,
    };
    if (j->adjoint) {
        (j->f64 ? k->adjoint_f64 : k->adjoint_f32)(panel, &tiles);
    } else {
        const int64_t part = j->part ? j->part : panel->rows;
        for (int64_t first = 0; first < panel->rows; first += part)
            (j->f64 ? k->sketch_f64 : k->sketch_f32)(panel, first,
                                                     minimum(part, panel->rows - first), &tiles);
    }
    guarded_end(data);
    guarded_end(scratch);
}

static void run(const job *j)
{
    const gnomon_kind_kernels *k = gnomon_kernels_for(j->level, j->a);
    const int64_t chunk = k->chunk_cols(j->a);
    const int64_t most = j->cut ? j->cut : k->panel_rows(j->a);
    assert_true(chunk > 0 && most > 0);
    for (int64_t col = j->col; col < j->col + j->cols;) {
        const int64_t next = minimum((col / chunk + 1) * chunk, j->col + j->cols);
        for (int64_t row = j->row; row < j->row + j->rows; row += most) {
            gnomon_panel panel = {.a = j->a, .row = row, .col = col, .cols = next - col};
            panel.rows = minimum(most, j->row + j->rows - row);
            run_panel(j, k, &panel);
        }
        col = next;
    }
}

/* ---- what is tested ---- */

/* Columns [col, col + cols) of rows [row, row + rows). */
typedef struct block {
    shape s;
    int64_t row, rows, col, cols;
} block;

typedef struct tested {
    gnomon_operator *op;
    const gnomon_simple *a;
    block b;
    float *values; /* rows x cols, from the scalar code */
} tested;

static tested tested_new(const block *b)
{
    tested t = {.op = create(b->s), .b = *b};
    t.a = &t.op->factor[0];
    t.values = malloc((size_t)(b->rows * b->cols) * sizeof(float));
    assert_non_null(t.values);
    gnomon_simple_values(t.a, b->row, b->rows, b->col, b->cols, t.values, b->cols, 1);
    return t;
}

static void tested_end(tested *t)
{
    free(t->values);
    gnomon_operator_destroy(t->op);
}

static job job_of(const tested *t, const gnomon_kernels *level)
{
    return (job){.level = level,
                 .a = t->a,
                 .row = t->b.row,
                 .rows = t->b.rows,
                 .col = t->b.col,
                 .cols = t->b.cols};
}

/* Numbers in [-1, 1), the same on every machine. */
static double noise(uint64_t i)
{
    i = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
    i = (i ^ (i >> 29)) * UINT64_C(0xbf58476d1ce4e5b9);
    i ^= i >> 32;
    return (double)(int64_t)i * 0x1p-63;
}

static void set(void *data, bool f64, int64_t i, double value)
{
    if (f64)
        ((double *)data)[i] = value;
    else
        ((float *)data)[i] = (float)value;
}

static double get(const void *data, bool f64, int64_t i)
{
    return f64 ? ((const double *)data)[i] : (double)((const float *)data)[i];
}

static guarded numbers(int64_t count, bool f64)
{
    return guarded_new(count * (int64_t)(f64 ? sizeof(double) : sizeof(float)));
}

static guarded noises(int64_t count, bool f64, uint64_t salt)
{
    guarded g = numbers(count, f64);
    for (int64_t i = 0; i < count; i++)
        set(g.data, f64, i, noise((uint64_t)i + (salt << 40)));
    return g;
}

/* What the tests below run over: main sets them. */
static const block *blocks;
static int block_count;

/* ---- tests ---- */

/* Lane l of tile t is the unit vector of coordinate from + 16 t + l (of such a row for the
 * adjoint): the result is that column (row) of S. */
static void unit_vectors(const block *b, bool adjoint, bool f64)
{
    tested t = tested_new(b);
    const int64_t units = adjoint ? b->rows : b->cols;
    const int64_t tiles = minimum((units + LANES - 1) / LANES, 8);
    /* the first coordinates, some in the middle, the last */
    const int64_t rest = units > tiles * LANES ? units - tiles * LANES : 0;
    for (int l = 0; l < level_count; l++) {
        for (int64_t third = 0; third < (rest ? 3 : 1); third++) {
            const int64_t from = rest * third / 2;
            guarded x = numbers(tiles * b->cols * LANES, f64);
            guarded acc = numbers(tiles * b->rows * LANES, f64);
            for (int64_t u = 0; u < tiles * LANES && from + u < units; u++) {
                const int64_t tile = u / LANES, at = (from + u) * LANES + u % LANES;
                if (adjoint)
                    set(acc.data, f64, tile * b->rows * LANES + at, 1);
                else
                    set(x.data, f64, tile * b->cols * LANES + at, 1);
            }
            job j = job_of(&t, levels[l]);
            j.tiles = tiles;
            j.adjoint = adjoint;
            j.f64 = f64;
            j.x = x.data;
            j.acc = acc.data;
            run(&j);
            const int64_t others = adjoint ? b->cols : b->rows;
            const void *out = adjoint ? x.data : acc.data;
            int64_t wrong = 0;
            for (int64_t u = 0; u < tiles * LANES; u++) {
                for (int64_t o = 0; o < others; o++) {
                    const double found =
                        get(out, f64, ((u / LANES) * others + o) * LANES + u % LANES);
                    double value = 0;
                    if (from + u < units)
                        value = (double)(adjoint ? t.values[(from + u) * b->cols + o]
                                                 : t.values[o * b->cols + from + u]);
                    wrong += found != value;
                }
            }
            assert_int_equal(wrong, 0);
            guarded_end(x);
            guarded_end(acc);
        }
    }
    tested_end(&t);
}

static void unit_vectors_give_the_entries(void **state)
{
    (void)state;
    for (int b = 0; b < block_count; b++) {
        unit_vectors(&blocks[b], false, false);
        unit_vectors(&blocks[b], false, true);
    }
}

static void unit_vectors_of_the_adjoint_too(void **state)
{
    (void)state;
    for (int b = 0; b < block_count; b++) {
        unit_vectors(&blocks[b], true, false);
        unit_vectors(&blocks[b], true, true);
    }
}

/* A run on noise; returns what was written. */
static guarded run_noise(const tested *t, const gnomon_kernels *level, job like)
{
    const int64_t tiles = 2;
    job j = job_of(t, level);
    j.cut = like.cut;
    j.part = like.part;
    j.adjoint = like.adjoint;
    j.f64 = like.f64;
    j.tiles = tiles;
    guarded x = noises(tiles * j.cols * LANES, j.f64, 1);
    guarded acc = noises(tiles * j.rows * LANES, j.f64, 2);
    guarded x_before = noises(tiles * j.cols * LANES, j.f64, 1);
    guarded acc_before = noises(tiles * j.rows * LANES, j.f64, 2);
    j.x = x.data;
    j.acc = acc.data;
    run(&j);
    /* the input side is only read */
    if (j.adjoint)
        assert_memory_equal(acc.data, acc_before.data, acc.bytes);
    else
        assert_memory_equal(x.data, x_before.data, x.bytes);
    guarded_end(x_before);
    guarded_end(acc_before);
    guarded_end(j.adjoint ? acc : x);
    return j.adjoint ? x : acc;
}

static void levels_and_cuts_agree_to_the_bit(void **state)
{
    (void)state;
    for (int b = 0; b < block_count; b++) {
        tested t = tested_new(&blocks[b]);
        for (int way = 0; way < 4; way++) {
            job like = {.adjoint = (way & 1) != 0, .f64 = (way & 2) != 0};
            guarded first = run_noise(&t, levels[0], like);
            for (int l = 0; l < level_count; l++) {
                const int64_t multiple = gnomon_kernels_for(levels[l], t.a)->rows_multiple;
                for (int cuts = 0; cuts < (multiple ? 3 : 1); cuts++) {
                    like.cut = cuts == 1 ? multiple : 0;
                    like.part = cuts == 2 ? multiple : 0;
                    guarded again = run_noise(&t, levels[l], like);
                    assert_memory_equal(again.data, first.data, first.bytes);
                    guarded_end(again);
                }
            }
            guarded_end(first);
        }
        tested_end(&t);
    }
}

/* The error of a sum in any order is at most (terms - 1) u times the sum of absolute values. */
static void sums_are_within_their_bound(void **state)
{
    (void)state;
    for (int b = 0; b < block_count; b++) {
        tested t = tested_new(&blocks[b]);
        const int64_t rows = t.b.rows, cols = t.b.cols;
        for (int way = 0; way < 4; way++) {
            const job like = {.adjoint = (way & 1) != 0, .f64 = (way & 2) != 0};
            guarded out = run_noise(&t, levels[level_count - 1], like);
            guarded in =
                noises(2 * (like.adjoint ? rows : cols) * LANES, like.f64, like.adjoint ? 2 : 1);
            guarded before =
                noises(2 * (like.adjoint ? cols : rows) * LANES, like.f64, like.adjoint ? 1 : 2);
            const int64_t outs = like.adjoint ? cols : rows, ins = like.adjoint ? rows : cols;
            const double u = like.f64 ? 0x1p-53 : 0x1p-24;
            for (int64_t o = 0; o < outs; o += outs / 40 + 1) {
                for (int64_t i = 0; i < 2 * LANES; i++) {
                    const int64_t tile = i / LANES, lane = i % LANES;
                    const int64_t at = (tile * outs + o) * LANES + lane;
                    long double sum = get(before.data, like.f64, at), size = fabsl(sum);
                    for (int64_t k = 0; k < ins; k++) {
                        const long double term =
                            (long double)get(in.data, like.f64, (tile * ins + k) * LANES + lane) *
                            (long double)(like.adjoint ? t.values[k * cols + o]
                                                       : t.values[o * cols + k]);
                        sum += term;
                        size += fabsl(term);
                    }
                    const long double error = fabsl(get(out.data, like.f64, at) - sum);
                    /* srht sums every term to every element of a block */
                    const long double bound = t.a->kind == GNOMON_SRHT ? 4 * size + 1 : size;
                    assert_true(error <= (long double)(ins + 16) * u * bound);
                }
            }
            guarded_end(out);
            guarded_end(in);
            guarded_end(before);
        }
        tested_end(&t);
    }
}

/* NaN in one lane stays there. */
static void lanes_do_not_mix(void **state)
{
    (void)state;
    for (int b = 0; b < block_count; b++) {
        tested t = tested_new(&blocks[b]);
        for (int way = 0; way < 4; way++) {
            const bool adjoint = (way & 1) != 0, f64 = (way & 2) != 0;
            const size_t size = f64 ? sizeof(double) : sizeof(float);
            const int64_t outs = adjoint ? t.b.cols : t.b.rows;
            for (int l = 0; l < level_count; l++) {
                guarded out[2];
                for (int bad = 0; bad < 2; bad++) {
                    job j = job_of(&t, levels[l]);
                    j.tiles = 1;
                    j.adjoint = adjoint;
                    j.f64 = f64;
                    guarded in = noises((adjoint ? t.b.rows : t.b.cols) * LANES, f64, 3);
                    if (bad) {
                        for (int64_t i = 0; i < (adjoint ? t.b.rows : t.b.cols); i++)
                            set(in.data, f64, i * LANES + 5, i % 2 == 0 ? (double)NAN : INFINITY);
                    }
                    out[bad] = numbers(outs * LANES, f64);
                    j.x = adjoint ? out[bad].data : in.data;
                    j.acc = adjoint ? in.data : out[bad].data;
                    run(&j);
                    guarded_end(in);
                }
                for (int64_t o = 0; o < outs; o++) {
                    const unsigned char *p = out[0].data + (size_t)o * LANES * size;
                    const unsigned char *q = out[1].data + (size_t)o * LANES * size;
                    assert_memory_equal(p, q, 5 * size);
                    assert_memory_equal(p + 6 * size, q + 6 * size, 10 * size);
                }
                guarded_end(out[0]);
                guarded_end(out[1]);
            }
        }
        tested_end(&t);
    }
}

/* Some of the block's columns, ascending: all of them when there are few. */
static int64_t pick(const block *b, int64_t begin, int64_t end, int64_t step, int64_t *cols)
{
    int64_t count = 0;
    for (int64_t c = begin; c < end; c += step)
        cols[count++] = b->col + c;
    return count;
}

/* All rows of a block, and odd ranges of them; false when the block is too small for it. */
static bool row_range(const tested *t, int which, int64_t *row, int64_t *rows)
{
    const int64_t ranges[3][2] = {{0, t->b.rows}, {t->b.rows / 3, t->b.rows / 2}, {1, 1}};
    *row = t->b.row + ranges[which][0];
    *rows = ranges[which][1];
    return *rows > 0 && ranges[which][0] + *rows <= t->b.rows;
}

static void check_columns(const tested *t, const gnomon_kind_kernels *k, int64_t row, int64_t rows,
                          const int64_t *cols, int64_t count)
{
    guarded out = guarded_new(rows * count * 4);
    k->columns_f32(t->a, row, rows, cols, count, (float *)out.data);
    for (int64_t c = 0; c < count; c++) {
        for (int64_t i = 0; i < rows; i++) {
            const float value = ((const float *)out.data)[c * rows + i];
            assert_true(value == t->values[(row - t->b.row + i) * t->b.cols + cols[c] - t->b.col]);
        }
    }
    guarded_end(out);
}

static void columns_hold_the_entries(void **state)
{
    (void)state;
    for (int b = 0; b < block_count; b++) {
        tested t = tested_new(&blocks[b]);
        int64_t *cols = malloc((size_t)t.b.cols * sizeof *cols);
        assert_non_null(cols);
        for (int l = 0; l < level_count; l++) {
            const gnomon_kind_kernels *k = gnomon_kernels_for(levels[l], t.a);
            if (!k->columns_f32) continue;
            for (int r = 0; r < 3; r++) {
                int64_t row, rows;
                if (!row_range(&t, r, &row, &rows)) continue;
                const int64_t count = pick(&t.b, 0, t.b.cols, t.b.cols / 50 + 1, cols);
                check_columns(&t, k, row, rows, cols, count);
            }
        }
        free(cols);
        tested_end(&t);
    }
}

/* The tests that every kind's kernels must pass. */
#define KERNELS_TESTS                                                                      \
    cmocka_unit_test(unit_vectors_give_the_entries),                                       \
        cmocka_unit_test(unit_vectors_of_the_adjoint_too),                                 \
        cmocka_unit_test(levels_and_cuts_agree_to_the_bit),                                \
        cmocka_unit_test(sums_are_within_their_bound), cmocka_unit_test(lanes_do_not_mix), \
        cmocka_unit_test(columns_hold_the_entries)

#endif

/* The sketch of a join: its directions, whether they pay, and points in its coordinates.
 *
 * X is a point's centred coordinates as filter.c prepares them, rounded to fp32; what that rounding
 * does is part of the filter's own bound. V's rows, in fp32, are not quite orthonormal: in the
 * Frobenius norm |V V^T - I| <= e, measured in fp64. Let U be an orthonormal basis of V's row
 * space, V = R U: then |(V P).(V B) - (U P).(U B)| = |(U P)^T (R^T R - I) (U B)| <= e |P||B|, and
 * the part of X outside the space, of length r with r^2 = |X|^2 - |U X|^2, is within e |X|^2 of
 * |X|^2 - |V X|^2.
 *
 * V X is summed by chains of at most c fused multiply-adds in fp32 that are added in fp64: each of
 * its n coordinates is off by less than (c + 2) u |X|, u = 2^-24, and it as a whole by less than
 * f |X| / 2 with f = 2 sqrt(n) (c + 2) u, which also pays for sums in fp64. With d = e + f and V X
 * as it is computed,
 *
 *   R(X) = sqrt(max(0, |X|^2 - |V X|^2) + 2 d |X|^2) is at least r,
 *   the length of (V X, R(X)) is at most |X| sqrt(1 + 4 d), and
 *   P.B <= (V P).(V B) + R(P) R(B) + d |P||B|.
 *
 * The products of the sketched points are those of the filter, with its error for so many steps; 8
 * d and 8 u, for the rounding of these coordinates, join it. Distances follow from products:
 *
 *   |P - B|^2 >= |(V P, R(P)) - (V B, R(B))|^2 - 5 d (|P|^2 + |B|^2).
 *
 * 8-bit coordinates share a scale, which the largest one asks for, and the first directions are the
 * longest. So the sketched points are turned: their signs changed in a fixed order, then Hadamard's
 * matrix, in fp64, which leaves products as they are and makes all coordinates about equally large.
 * Rounding to 8 bits moves P by p and B by b, which are known, to P' and B'. Under L2 and COSINE a
 * distance of at most t, what the sketch takes included, is one of at most t + p + b between P' and
 * B', so that
 *
 *   P'.B' - |B'|^2 / 2 >= (|P'|^2 - (t + p)^2) / 2 - (t + p) b - b^2 / 2,
 *
 * which takes less from the threshold than errors of products, in proportion to norms, would. As B
 * is no farther than the threshold, |B| is at most |P| and that.
 *
 * The second filter does the same in more directions, with 8 bits of a scale that all points share:
 * then squared distances are integers. The few points that this cuts off have a large p. */
#include "join/sketch.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "join/out.h"
#include "search/centre.h"
#include "search/filter.h"

#include <math.h>
#include <string.h>

enum {
    LANES = GNOMON_LANES,
    SAMPLE = 640,    /* points in the sample */
    WHOLE = 8,       /* of which every eighth's pairs are compared in all coordinates too */
    ITERATIONS = 4,  /* of orthogonal iteration */
    LEAST_COLS = 48, /* of points that a sketch pays for */
    CHAIN = 16,      /* steps of a sum in fp32; 1 where the threshold is small */
    GROUP = 48       /* points, or coordinates, of a task */
};

/* ---- the directions ---- */

/* Everything that finding V needs. V's rows are a tile's lanes: number k is lane k % LANES of tile
 * k / LANES, and so are those of z = V x^T. */
typedef struct finding {
    gnomon_join_sketch *sketch;
    const gnomon_kernels *kernels;
    const gnomon_matrix *some;
    int64_t points, step, cols, directions;
    float *x;               /* points x cols */
    double *f64, *rows, *z; /* rows: V, row-major; z: tiles x points x LANES */
    double *sums;           /* of V's coordinates: tiles x cols x LANES */
    float *z32;
    gnomon_sketched *facts;
    double defect; /* of V alone */
} finding;

static double product(const gnomon_join_sketch *s, const double *a, const double *b, int64_t d)
{
    return s->search.kernels->products(a, b, GNOMON_F64, 1, d, 1);
}

/* The number of direction k at a place of so many in tiles. */
static int64_t tile_at(int64_t k, int64_t place, int64_t places)
{
    return (k / LANES * places + place) * LANES + k % LANES;
}

static void prepare_point(void *arg, int64_t task, int worker)
{
    const finding *f = arg;
    gnomon_search search = f->sketch->search;
    search.queries = *f->some;
    const int64_t steps = f->cols + (search.options.metric == GNOMON_COSINE ? 2 : 0);
    double *f64 = f->f64 + worker * (2 * f->cols + steps);
    float *out = (float *)(f64 + 2 * f->cols);
    gnomon_sketched *facts = &f->facts[task];
    gnomon_filter_prepare(&search, task * f->step, steps, 256, f64, out, &facts->facts,
                          &facts->filter);
    memcpy(f->x + task * f->cols, out, (size_t)f->cols * sizeof *out);
}

/* z = V x^T, some points a task. */
static void forward(void *arg, int64_t task, int worker)
{
    (void)worker;
    const finding *f = arg;
    const int64_t first = task * GROUP;
    const int64_t rows = f->points - first < GROUP ? f->points - first : GROUP;
    f->kernels->product(f->cols, CHAIN, f->x + first * f->cols, f->cols, 1, rows, f->sketch->v,
                        f->cols * LANES, f->directions / LANES, f->z + first * LANES,
                        f->points * LANES, false);
}

/* V = z x, some coordinates a task. */
static void backward(void *arg, int64_t task, int worker)
{
    (void)worker;
    const finding *f = arg;
    const int64_t first = task * GROUP;
    const int64_t rows = f->cols - first < GROUP ? f->cols - first : GROUP;
    f->kernels->product(f->points, CHAIN, f->x + first, 1, f->cols, rows, f->z32, f->points * LANES,
                        f->directions / LANES, f->sums + first * LANES, f->cols * LANES, false);
}

/* Gram and Schmidt, twice; directions without length become zero. */
static void orthonormalise(finding *f)
{
    gnomon_join_sketch *s = f->sketch;
    const int64_t cols = f->cols;
    for (int64_t k = 0; k < f->directions; k++) {
        double *v = f->rows + k * cols;
        const double before = sqrt(product(s, v, v, cols));
        for (int round = 0; round < 2; round++) {
            for (int64_t other = 0; other < k; other++) {
                const double *u = f->rows + other * cols;
                const double share = product(s, u, v, cols);
                for (int64_t j = 0; j < cols; j++)
                    v[j] -= share * u[j];
            }
        }
        const double norm = sqrt(product(s, v, v, cols));
        const bool none = !(norm > 1e-9 * before) || !(norm > 0x1p-300) || !(norm < 0x1p300);
        for (int64_t j = 0; j < cols; j++) {
            v[j] = none ? 0 : v[j] / norm;
            s->v[tile_at(k, j, cols)] = (float)v[j];
        }
    }
}

/* How far V's rows are from orthonormal; zero rows are none. */
static double defect_of(const finding *f)
{
    const gnomon_join_sketch *s = f->sketch;
    const int64_t directions = f->directions, cols = f->cols;
    double squares = 0;
    for (int64_t k = 0; k < directions; k++)
        for (int64_t j = 0; j < cols; j++)
            f->rows[k * cols + j] = (double)s->v[tile_at(k, j, cols)];
    for (int64_t a = 0; a < directions; a++) {
        const double *v = f->rows + a * cols;
        const double norm = product(s, v, v, cols);
        if (norm == 0) continue;
        squares += (norm - 1) * (norm - 1);
        for (int64_t b = 0; b < a; b++) {
            const double share = product(s, v, f->rows + b * cols, cols);
            squares += 2 * share * share;
        }
    }
    const double rounding = (double)(cols + 64) * 0x1p-50;
    return 2 * sqrt(squares) + (double)directions * rounding;
}

/* The same of products by chains of so many steps. */
static double defect_by(const finding *f, int64_t chain)
{
    return f->defect + 2 * sqrt((double)f->directions) * (double)(chain + 2) * 0x1p-24;
}

static void find_directions(finding *f)
{
    gnomon_join_sketch *s = f->sketch;
    gnomon_context *ctx = s->search.ctx;
    const int64_t all = f->directions * f->cols;
    const int64_t point_tasks = (f->points + GROUP - 1) / GROUP;
    const int64_t col_tasks = (f->cols + GROUP - 1) / GROUP;
    uint64_t state = 1;
    for (int64_t i = 0; i < all; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        s->v[i] = (float)((double)(int64_t)(state >> 11) * 0x1p-52 - 1);
    }
    for (int round = 0; round < ITERATIONS; round++) {
        gnomon_parallel(ctx, point_tasks, forward, f);
        for (int64_t i = 0; i < f->directions * f->points; i++)
            f->z32[i] = (float)f->z[i];
        gnomon_parallel(ctx, col_tasks, backward, f);
        for (int64_t k = 0; k < f->directions; k++)
            for (int64_t j = 0; j < f->cols; j++)
                f->rows[k * f->cols + j] = f->sums[tile_at(k, j, f->cols)];
        orthonormalise(f);
    }
    f->defect = defect_of(f);
    gnomon_parallel(ctx, point_tasks, forward, f);
}

/* ---- whether they pay ---- */

/* Coordinates of sketched points: a direction each, but for the rest, and two under COSINE. */
static const int64_t choices[] = {16, 32, 64, 128};
enum { CHOICES = sizeof choices / sizeof choices[0] };

static int64_t extra_of(const gnomon_join_sketch *s)
{
    return s->search.options.metric == GNOMON_COSINE ? 3 : 1;
}

typedef struct trial {
    const finding *f;
    float *y;        /* points x directions */
    float *rest;     /* points x CHOICES */
    int64_t *passed; /* points x CHOICES */
    int64_t *coarse; /* the same of 8-bit coordinates */
    int64_t *whole;  /* points: of pairs in all coordinates */
    float rounding;  /* what 8 bits take, as a share of a product of norms or of the next */
    double radius;   /* the threshold as a distance; 0 under IP */
    const double *biases;
    double key;
} trial;

static float sum_of(const float *p, const float *q, int64_t count)
{
    float part[8] = {0}, sum = 0;
    int64_t k = 0;
    for (; k + 8 <= count; k += 8)
        for (int l = 0; l < 8; l++)
            part[l] += p[k + l] * q[k + l];
    for (; k < count; k++)
        sum += p[k] * q[k];
    for (int l = 0; l < 8; l++)
        sum += part[l];
    return sum;
}

static void try_point(void *arg, int64_t task, int worker)
{
    (void)worker;
    const trial *t = arg;
    const finding *f = t->f;
    const int64_t n = f->points;
    const gnomon_sketched *facts = &f->facts[task];
    const float least = gnomon_filter_least(&f->sketch->search, &facts->facts, t->key, false);
    const int64_t extra = extra_of(f->sketch);
    int64_t *passed = t->passed + task * CHOICES, *coarse = t->coarse + task * CHOICES;
    for (int64_t b = 0; b < n; b++) {
        if (b == task) continue;
        const float *p = t->y + task * f->directions, *q = t->y + b * f->directions;
        const double norms = facts->facts.norm + f->facts[b].facts.norm;
        const float coarsely =
            t->rounding * (float)(t->radius > 0 ? t->radius * norms / 2
                                                : facts->facts.norm * f->facts[b].facts.norm);
        float sum = 0;
        int64_t k = 0;
        int c = 0;
        for (; c < CHOICES && choices[c] <= f->directions; c++) {
            sum += sum_of(p + k, q + k, choices[c] - extra - k);
            k = choices[c] - extra;
            const float bound =
                sum + t->rest[task * CHOICES + c] * t->rest[b * CHOICES + c] + (float)t->biases[b];
            /* a little beyond, as errors will let pass */
            const float blur = 1e-5f * (fabsf(sum) + fabsf((float)t->biases[b]));
            if (bound + coarsely < least) break;
            coarse[c]++;
            passed[c] += !(bound + blur < least);
        }
        if (task % WHOLE != 0 || (c < CHOICES && choices[c] <= f->directions)) continue;
        const float all = sum_of(f->x + task * f->cols, f->x + b * f->cols, f->cols);
        t->whole[task] += all + (float)t->biases[b] >= least;
    }
}

static double bias_of(const gnomon_join_sketch *s, const float *x, double squares)
{
    if (s->search.options.metric != GNOMON_IP) return -squares / 2;
    return s->search.kernels->products(s->search.centre.mean64, x, GNOMON_F32, 1, s->search.cols,
                                       1);
}

/* Nanoseconds of a pair's distance in fp64, about: it comes from far away. */
static double exact_ns(const finding *f)
{
    const double cols = (double)f->cols;
    switch (f->some->dtype) {
    case GNOMON_F32:
    case GNOMON_F64:
        return 60 + 0.12 * cols;
    case GNOMON_U8:
    case GNOMON_I8:
        if (f->sketch->search.options.metric == GNOMON_L2) return 30 + 0.07 * cols;
        /* fall through */
    default:
        return 90 + 0.6 * cols;
    }
}

/* The coordinates and bits that make a pair cheapest, in nanoseconds of a thread or so: a step of
 * the filter, what passed it, the second filter and a distance in fp64. None where the filter on
 * all coordinates is cheaper, which lets 'whole' pass. */
static void cheapest(finding *f, const double *share, const double *coarse, double whole)
{
    gnomon_join_sketch *s = f->sketch;
    const gnomon_quads *quads = &s->search.kernels->quads;
    const double keep = 18, exact = exact_ns(f);
    const int64_t extra = extra_of(s);
    double best = 0.9 * (0.0165 * (double)f->cols + 0.15 + exact * whole);
    for (int bits = 8; bits <= 16; bits += 8) {
        for (int a = 0; a < CHOICES && choices[a] <= f->directions; a++) {
            const double steps = (double)choices[a], pass = bits == 8 ? coarse[a] : share[a];
            const double sift = bits == 8
                                    ? (double)quads->product_ns * steps + (double)quads->compare_ns
                                    : 0.0165 * steps + 0.15;
            for (int b = a; b < CHOICES && choices[b] <= f->directions; b++) {
                const bool twice = b > a;
                const double second = twice ? 20 + 0.1 * (double)choices[b] : 0;
                const double left = twice ? share[b] : pass; /* for distances */
                const double cost = sift + pass * (keep + second) + left * exact;
                if (cost >= best) continue;
                best = cost;
                s->bits = bits;
                s->directions = choices[a] - extra;
                s->second = choices[b] - extra;
                s->twice = twice;
                s->pass = pass;
            }
        }
    }
}

static gnomon_status choose(finding *f, double threshold)
{
    gnomon_join_sketch *s = f->sketch;
    gnomon_context *ctx = s->search.ctx;
    const int64_t n = f->points;
    trial t = {.f = f};
    double *biases = NULL;
    const int64_t extra = extra_of(s);
    t.key = gnomon_metric_turn(s->search.options.metric, threshold);
    if (s->search.options.metric == GNOMON_L2)
        t.radius = threshold * s->search.centre.scale;
    else if (s->search.options.metric == GNOMON_COSINE)
        t.radius = sqrt(fmax(2 * threshold, 0));
    t.rounding = 1.46F / (float)s->search.kernels->quads.most;
    gnomon_status status =
        gnomon_alloc(ctx, gnomon_times(n, f->directions), sizeof *t.y, "a sample", &t.y);
    if (status == GNOMON_OK)
        status = gnomon_alloc(ctx, gnomon_times(n, CHOICES), sizeof *t.rest, "a sample", &t.rest);
    if (status == GNOMON_OK)
        status = gnomon_alloc_zero(ctx, gnomon_times(n, CHOICES), sizeof *t.passed, "a sample",
                                   &t.passed);
    if (status == GNOMON_OK)
        status = gnomon_alloc_zero(ctx, gnomon_times(n, CHOICES), sizeof *t.coarse, "a sample",
                                   &t.coarse);
    if (status == GNOMON_OK)
        status = gnomon_alloc_zero(ctx, n, sizeof *t.whole, "a sample", &t.whole);
    if (status == GNOMON_OK) status = gnomon_alloc(ctx, n, sizeof *biases, "a sample", &biases);
    if (status == GNOMON_OK) {
        for (int64_t i = 0; i < n; i++) {
            const float *x = f->x + i * f->cols;
            const double squares = s->search.kernels->squares(x, GNOMON_F32, 1, f->cols, 1);
            double left = squares;
            int c = 0;
            for (int64_t k = 0; k < f->directions; k++) {
                const double y = f->z[tile_at(k, i, n)];
                t.y[i * f->directions + k] = (float)y;
                left -= y * y;
                if (c < CHOICES && k + 1 == choices[c] - extra)
                    t.rest[i * CHOICES + c++] = (float)sqrt(fmax(left, 0));
            }
            biases[i] = bias_of(s, x, squares);
        }
        t.biases = biases;
        gnomon_parallel(ctx, n, try_point, &t);
        double share[CHOICES] = {0}, coarse[CHOICES] = {0}, whole = 0;
        for (int64_t i = 0; i < n; i += WHOLE)
            whole += (double)t.whole[i];
        whole /= (double)((n + WHOLE - 1) / WHOLE) * (double)(n - 1);
        for (int64_t i = 0; i < n; i++)
            for (int c = 0; c < CHOICES; c++) {
                const double all = (double)n * (double)(n - 1);
                share[c] += (double)t.passed[i * CHOICES + c] / all;
                coarse[c] += (double)t.coarse[i * CHOICES + c] / all;
            }
        cheapest(f, share, coarse, whole);
    }
    gnomon_free(ctx, t.y);
    gnomon_free(ctx, t.rest);
    gnomon_free(ctx, t.passed);
    gnomon_free(ctx, t.coarse);
    gnomon_free(ctx, t.whole);
    gnomon_free(ctx, biases);
    return status;
}

/* How exactly points are sketched: what errors take is to be small beside the threshold. 16-bit
 * coordinates where they do, else fp32. */
static void choose_errors(finding *f, double threshold)
{
    gnomon_join_sketch *s = f->sketch;
    const double k = (double)s->steps;
    const int most = gnomon_filter_most(s->steps);
    double peak = 0, squares = 0;
    for (int64_t i = 0; i < f->points; i++) {
        double norm = f->facts[i].facts.norm;
        squares += norm * norm;
        for (int64_t a = 0; a < s->directions; a++)
            peak = fmax(peak, fabs(f->z[tile_at(a, i, f->points)]));
    }
    const double typical = sqrt(squares / (double)f->points);
    const double lost = peak / most * sqrt(k / 12), error = 4 * lost * typical;
    double matters = typical * typical / 50;
    if (s->search.options.metric == GNOMON_L2) {
        const double t = threshold * s->search.centre.scale;
        matters = t * t / 8;
    } else if (s->search.options.metric == GNOMON_COSINE) {
        matters = 2 * threshold / 8;
    }
    /* of the second filter's coordinates few are beyond four times their usual size */
    s->scale = fmax(4 * typical / sqrt((double)s->bytes_ld) / 127, 0x1p-200);
    s->chain = 16 * defect_by(f, CHAIN) * typical * typical < matters ? CHAIN : 1;
    s->defect = defect_by(f, s->chain);
    if (s->bits > 8) s->bits = error < matters ? 16 : 32;
    s->most = s->bits == 8 ? s->search.kernels->quads.most : most;
}

gnomon_status gnomon_sketch_open(gnomon_join_sketch *s, const gnomon_join_state *join,
                                 const gnomon_matrix *some)
{
    gnomon_context *ctx = join->ctx;
    const int64_t cols = some->cols;
    const gnomon_metric metric = join->options.metric;
    *s = (gnomon_join_sketch){.search = {.ctx = ctx, .cols = cols, .whole = false}};
    s->search.options = (gnomon_search_options)GNOMON_SEARCH_OPTIONS_INIT;
    s->search.options.metric = metric;
    s->kernels = gnomon_cpu_kernels(gnomon_context_isa(ctx));
    s->search.kernels = s->kernels->search;
    /* it keeps distances that follow from products of coordinates */
    if (gnomon_metric_takes(metric, GNOMON_POINTS_BITS) ||
        !gnomon_metric_row_of(metric)->filtered || cols < LEAST_COLS || some->rows < SAMPLE)
        return GNOMON_OK;
    const double threshold = gnomon_join_threshold(join);
    if (!isfinite(threshold)) return GNOMON_OK;
    GNOMON_TRY(gnomon_centre_estimate(&s->search, some));
    s->search.centre.whole = false;
    finding f = {.sketch = s, .kernels = s->kernels, .some = some, .points = SAMPLE, .cols = cols};
    f.step = some->rows / SAMPLE;
    f.directions = GNOMON_SKETCH_MOST;
    while (2 * f.directions > cols)
        f.directions /= 2;
    const int64_t threads = gnomon_context_threads(ctx);
    const int64_t all = gnomon_times(f.directions, cols);
    gnomon_status status = gnomon_alloc(ctx, all, sizeof *s->v, "directions", &s->v);
    if (status == GNOMON_OK) status = gnomon_alloc(ctx, all, sizeof *f.rows, "directions", &f.rows);
    if (status == GNOMON_OK) status = gnomon_alloc(ctx, all, sizeof *f.sums, "directions", &f.sums);
    if (status == GNOMON_OK)
        status = gnomon_alloc(ctx, gnomon_times(SAMPLE, cols), sizeof *f.x, "a sample", &f.x);
    if (status == GNOMON_OK)
        status =
            gnomon_alloc(ctx, gnomon_times(SAMPLE, f.directions), sizeof *f.z, "a sample", &f.z);
    if (status == GNOMON_OK)
        status = gnomon_alloc(ctx, gnomon_times(SAMPLE, f.directions), sizeof *f.z32, "a sample",
                              &f.z32);
    if (status == GNOMON_OK)
        status = gnomon_alloc(ctx, gnomon_times(threads, gnomon_plus(gnomon_times(3, cols), 2)),
                              sizeof *f.f64, "points", &f.f64);
    if (status == GNOMON_OK)
        status = gnomon_alloc_zero(ctx, SAMPLE, sizeof *f.facts, "a sample", &f.facts);
    if (status == GNOMON_OK) {
        gnomon_parallel(ctx, SAMPLE, prepare_point, &f);
        find_directions(&f);
        status = choose(&f, threshold);
    }
    if (status == GNOMON_OK && s->directions > 0) {
        s->steps = s->directions + extra_of(s);
        s->bytes_ld = (s->second + LANES) / LANES * LANES;
        choose_errors(&f, threshold);
        s->words = gnomon_filter_words(&s->search.kernels->quads, s->steps, s->bits);
        s->ld = (s->words + 15) / 16 * 16 + 16;
    }
    gnomon_free(ctx, f.x);
    gnomon_free(ctx, f.rows);
    gnomon_free(ctx, f.sums);
    gnomon_free(ctx, f.z);
    gnomon_free(ctx, f.z32);
    gnomon_free(ctx, f.f64);
    gnomon_free(ctx, f.facts);
    return status;
}

void gnomon_sketch_close(gnomon_join_sketch *s)
{
    gnomon_context *ctx = s->search.ctx;
    if (ctx == NULL) return;
    gnomon_free(ctx, s->v);
    gnomon_free(ctx, s->search.centre.mean);
    gnomon_free(ctx, s->search.centre.mean64);
    *s = (gnomon_join_sketch){0};
}

/* ---- points in its coordinates ---- */

int64_t gnomon_sketch_bytes(const gnomon_join_sketch *s)
{
    return s->bytes_ld + (s->words + s->ld) * 4 + (int64_t)sizeof(gnomon_sketched) + 8;
}

typedef struct filling {
    gnomon_join_sketch *sketch;
    gnomon_search search; /* with m as its queries */
    gnomon_sketch_block *block;
    double *f64; /* a worker's */
    int64_t f64_size;
    float *f32; /* a worker's: GROUP points, GROUP sketched ones, a tile */
    int64_t f32_size;
    bool as_queries, as_tiles;
} filling;

/* A little more than the rest may be, for the rounding to fp32 too. */
static float rest_of(const gnomon_join_sketch *s, double left, double squares)
{
    return (float)(sqrt(fmax(left, 0) + 2 * s->defect * squares) * (1 + 0x1p-23));
}

/* Turns count coordinates, a power of two. */
static void turn(int64_t count, double *x)
{
    for (int64_t k = 0; k < count; k++)
        if ((UINT64_C(0x9e3779b97f4a7c15) >> (k * 7 % 61) & 1) != 0) x[k] = -x[k];
    for (int64_t half = 1; half < count; half *= 2) {
        for (int64_t i = 0; i < count; i += 2 * half) {
            for (int64_t k = i; k < i + half; k++) {
                const double a = x[k], b = x[k + half];
                x[k] = a + b;
                x[k + half] = a - b;
            }
        }
    }
    const double by = 1 / sqrt((double)count);
    for (int64_t k = 0; k < count; k++)
        x[k] *= by;
}

/* A sketched point's coordinates for the filter; as_query: else a base point's. */
static void coordinates_of(const gnomon_join_sketch *s, const float *row,
                           const gnomon_sketched *point, bool as_query, float *out)
{
    const int64_t directions = s->directions;
    memcpy(out, row, (size_t)directions * sizeof *out);
    out[directions] = point->rest;
    if (s->steps > directions + 1) {
        out[directions + 1] = point->zero && !as_query ? 1 : 0;
        out[directions + 2] = point->zero && as_query ? 1 : 0;
    }
    if (s->bits != 8) return;
    double x[GNOMON_SKETCH_MOST];
    for (int64_t k = 0; k < s->steps; k++)
        x[k] = (double)out[k];
    turn(s->steps, x);
    for (int64_t k = 0; k < s->steps; k++)
        out[k] = (float)x[k];
}

/* A point in the second filter's bytes; what rounding takes, a little more than less. */
static float round_second(const gnomon_join_sketch *s, const float *row, int8_t *out)
{
    double x[GNOMON_SKETCH_MOST], lost = 0;
    for (int64_t k = 0; k < s->bytes_ld; k++)
        x[k] = k <= s->second ? (double)row[k] : 0;
    turn(s->bytes_ld, x);
    for (int64_t k = 0; k < s->bytes_ld; k++) {
        double y = (x[k] / s->scale + 0x1.8p52) - 0x1.8p52;
        y = y > 127 ? 127 : y > -127 ? y : -127; /* NaN too */
        out[k] = (int8_t)y;
        const double gone = x[k] - y * s->scale;
        lost += gone * gone;
    }
    /* what fp32 took of the coordinates joins the errors of products */
    return (float)(sqrt(lost) * (1 + 0x1p-20)) + 0x1p-120f;
}

/* How far rounding moved a query of the filter, a little more than less, and where to. */
static void note_moved(const gnomon_join_sketch *s, const float *coordinates, const uint32_t *query,
                       gnomon_sketched *point)
{
    const double scale = (double)point->filter.scale;
    double lost = 0, squares = 0;
    for (int64_t k = 0; k < s->steps; k++) {
        const double y = scale * (double)(int8_t)(query[k / 4] >> (k % 4 * 8) & 0xff);
        const double gone = (double)coordinates[k] - y;
        lost += gone * gone;
        squares += y * y;
    }
    point->moved = (float)(sqrt(lost) * (1 + 0x1p-20)) + 0x1p-120f;
    point->moved_squares = squares;
}

/* A point whose products with V are sums[(k / LANES) * stride + k % LANES], and x itself. */
static void fill_point(const filling *w, int64_t i, const float *x, const double *sums,
                       int64_t stride, float *out)
{
    const gnomon_join_sketch *s = w->sketch;
    const int64_t cols = s->search.cols;
    gnomon_sketched *point = &w->block->points[i];
    point->facts.whole = false;
    point->filter.whole = INFINITY;
    const double squares = s->search.kernels->squares(x, GNOMON_F32, 1, cols, 1);
    double left = squares;
    for (int64_t k = 0; k < s->second; k++) {
        const double y = sums[k / LANES * stride + k % LANES];
        out[k] = (float)y;
        left -= y * y;
        if (k + 1 == s->directions) point->rest = rest_of(s, left, squares);
    }
    out[s->second] = rest_of(s, left, squares);
    if (s->twice) point->lost = round_second(s, out, w->block->bytes + i * s->bytes_ld);
    point->zero = s->search.options.metric == GNOMON_COSINE && x[cols + 1] != 0;
    const double length = squares + (point->zero ? 1 : 0);
    point->bias = bias_of(s, x, length);
    point->squares = length * (1 + 8 * s->defect);
    point->norm = sqrt(point->squares);
    /* the errors of so many steps, and of the sketch */
    const double norm = point->facts.norm;
    if (norm < 0x1p60) {
        const double gamma = gnomon_filter_gamma(s->steps, s->bits < 32 ? 0 : 256);
        const double slack = (gamma + 0x1p-21 + 8 * s->defect) * norm * (1 + 8 * s->defect);
        point->filter.slack = (float)slack * (1 + 0x1p-20f) + 0x1p-126f;
    }
    if (!w->as_queries) return;
    float coordinates[GNOMON_SKETCH_MOST];
    coordinates_of(s, out, point, true, coordinates);
    uint32_t *query = w->block->queries + i * s->ld;
    if (s->bits < 32) {
        gnomon_filter_round(coordinates, s->steps, s->bits, s->most, s->search.kernels,
                            &point->facts, &point->filter, query);
        if (gnomon_sketch_by_distance(s)) note_moved(s, coordinates, query, point);
        /* the length in these coordinates may be a little more */
        point->filter.norm *= (1 + 0x1p-20f) * (1 + 4 * (float)s->defect);
    } else {
        memcpy(query, coordinates, (size_t)s->steps * sizeof *coordinates);
    }
}

/* Half the squared lengths of a tile's points as their bytes have them, instead of their own. */
static void bias_of_bytes(const gnomon_join_sketch *s, const uint32_t *tile, float scale,
                          float *bias)
{
    const int shift = s->search.kernels->quads.shift;
    for (int l = 0; l < LANES; l++) {
        int64_t sum = 0;
        for (int64_t k = 0; k < s->steps; k++) {
            const uint32_t byte = tile[k / 4 * LANES + l] >> (k % 4 * 8) & 0xff;
            const int64_t x = shift > 0 ? (int64_t)byte - shift : (int64_t)(int8_t)(uint8_t)byte;
            sum += x * x;
        }
        bias[l] = (float)(-(double)sum * ((double)scale * (double)scale) / 2);
    }
}

static void fill_tile(const filling *w, int64_t tile_number, const float *rows, float *tile)
{
    const gnomon_join_sketch *s = w->sketch;
    const gnomon_sketch_block *b = w->block;
    const int64_t first = tile_number * LANES;
    const int lanes = (int)(b->count - first < LANES ? b->count - first : LANES);
    uint32_t *packed = (uint32_t *)b->tiles + tile_number * s->words * LANES;
    if (s->bits == 32) tile = (float *)b->tiles + tile_number * s->steps * LANES;
    double squares[LANES];
    for (int l = 0; l < LANES; l++) {
        const int64_t i = l < lanes ? l : lanes - 1;
        float coordinates[GNOMON_SKETCH_MOST];
        coordinates_of(s, rows + i * GNOMON_SKETCH_MOST, &b->points[first + i], false, coordinates);
        for (int64_t k = 0; k < s->steps; k++)
            tile[k * LANES + l] = coordinates[k];
        squares[l] = b->points[first + i].squares;
        b->bias[first + l] = (float)b->points[first + i].bias;
    }
    gnomon_blur blur =
        gnomon_filter_blur(&s->search, s->steps, s->bits < 32 ? 0 : 256, squares, lanes, false);
    if (s->bits < 32) {
        float lost[LANES] = {0};
        const gnomon_search_kernels *k = s->search.kernels;
        const float scale =
            (s->bits == 16 ? k->halve : k->quarter)(tile, s->steps, s->most, false, packed, lost);
        gnomon_blur_halve(s->steps, scale, lost, lanes, &blur);
        if (gnomon_sketch_by_distance(s) && blur.blur < INFINITY) {
            bias_of_bytes(s, packed, scale, b->bias + first);
            blur.blur = (blur.blur + blur.fuzz * blur.fuzz) * (1 + 0x1p-20f);
        }
    }
    b->blurs[tile_number] = blur;
}

static void fill_group(void *arg, int64_t task, int worker)
{
    const filling *w = arg;
    const gnomon_join_sketch *s = w->sketch;
    const int64_t cols = s->search.cols, first = task * GROUP;
    const int64_t ld = cols + (s->search.options.metric == GNOMON_COSINE ? 2 : 0);
    const int64_t count = w->block->count - first < GROUP ? w->block->count - first : GROUP;
    double *f64 = w->f64 + worker * w->f64_size, *sums = f64 + 2 * cols;
    float *x = w->f32 + worker * w->f32_size, *rows = x + GROUP * ld;
    float *tile = rows + GROUP * GNOMON_SKETCH_MOST;
    for (int64_t i = 0; i < count; i++) {
        gnomon_sketched *point = &w->block->points[first + i];
        *point = (gnomon_sketched){.filter = {.self = UINT32_MAX}};
        gnomon_filter_prepare(&w->search, first + i, ld, 256, f64, x + i * ld, &point->facts,
                              &point->filter);
    }
    s->kernels->product(cols, s->chain, x, ld, 1, count, s->v, cols * LANES,
                        (s->second + LANES - 1) / LANES, sums, GROUP * LANES, false);
    for (int64_t i = 0; i < count; i++)
        fill_point(w, first + i, x + i * ld, sums + i * LANES, GROUP * LANES,
                   rows + i * GNOMON_SKETCH_MOST);
    for (int64_t i = 0; i < count && w->as_tiles; i += LANES)
        fill_tile(w, (first + i) / LANES, rows + i * GNOMON_SKETCH_MOST, tile);
}

void gnomon_sketch_ask(const gnomon_join_sketch *s, const gnomon_sketched *point, double key,
                       gnomon_filter *filter)
{
    *filter = point->filter;
    filter->least = gnomon_filter_least(&s->search, &point->facts, key, false);
    if (!gnomon_sketch_by_distance(s) || !(filter->least > -INFINITY)) return;
    /* t^2: no less than what 'least' asks for, and what the sketch takes */
    const double squared = fmax(point->facts.squares - 2 * (double)filter->least, 0);
    const double own = point->facts.norm, other = own + sqrt(squared);
    const double both = own * own + other * other;
    const double t = sqrt(squared * (1 + 0x1p-40) + (5 * s->defect + 0x1p-20) * both);
    const double reach = (t + (double)point->moved) * (1 + 0x1p-22);
    const double gamma = gnomon_filter_gamma(s->steps, 0);
    const double least = (point->moved_squares - reach * reach) / 2;
    filter->least = (float)(least - (fabs(least) + reach * reach) * 0x1p-22);
    filter->norm = (float)reach * (1 + 0x1p-20f);
    filter->slack = (float)(gamma * point->norm) * (1 + 0x1p-20f) + 0x1p-126f;
}

bool gnomon_sketch_may(const gnomon_join_sketch *s, const gnomon_sketch_block *p, int64_t first,
                       const gnomon_sketch_block *q, int64_t at, double least)
{
    const gnomon_sketched *a = &p->points[first], *b = &q->points[at];
    const int64_t sum = s->search.kernels->differences_bytes(
        p->bytes + first * s->bytes_ld, q->bytes + at * s->bytes_ld, true, s->bytes_ld);
    const double far = s->scale * sqrt((double)sum) * (1 - 0x1p-40);
    const double apart = fmax(far - (double)a->lost - (double)b->lost, 0);
    const double both = a->facts.squares + b->squares;
    double score = (a->facts.squares - apart * apart) / 2;
    double error = (0x1p-20 + 8 * s->defect) * both + (double)a->filter.floor;
    if (s->search.options.metric == GNOMON_IP) {
        score += b->bias + b->squares / 2;
        error += 0x1p-19 * s->search.centre.norm * b->norm;
    }
    /* of what overflows nothing is known */
    return !(score + error < least) || !(both < 0x1p122);
}

static gnomon_status reserve(gnomon_join_sketch *s, int64_t count, gnomon_sketch_block *b)
{
    gnomon_context *ctx = s->search.ctx;
    const int64_t tiles = (count + LANES - 1) / LANES;
    if (b->room >= count) return GNOMON_OK;
    gnomon_sketch_drop(s, b);
    if (s->twice)
        GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(count, s->bytes_ld), sizeof *b->bytes,
                                "sketched points", &b->bytes));
    GNOMON_TRY(gnomon_alloc(ctx, count, sizeof *b->points, "sketched points", &b->points));
    GNOMON_TRY(gnomon_alloc_zero(ctx, gnomon_times(gnomon_plus(count, GNOMON_SIFT_QUERIES), s->ld),
                                 sizeof *b->queries, "sketched points", &b->queries));
    GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(gnomon_times(tiles, LANES), s->words),
                            sizeof(uint32_t), "sketched points", &b->tiles));
    GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(tiles, LANES), sizeof *b->bias, "sketched points",
                            &b->bias));
    GNOMON_TRY(gnomon_alloc(ctx, tiles, sizeof *b->blurs, "sketched points", &b->blurs));
    b->room = count;
    return GNOMON_OK;
}

gnomon_status gnomon_sketch_fill(gnomon_join_sketch *s, const gnomon_matrix *m, bool as_queries,
                                 bool as_tiles, gnomon_sketch_block *block)
{
    gnomon_context *ctx = s->search.ctx;
    const int64_t threads = gnomon_context_threads(ctx);
    filling w = {.sketch = s, .search = s->search, .block = block};
    GNOMON_TRY(reserve(s, m->rows, block));
    block->count = m->rows;
    w.search.queries = *m;
    w.as_queries = as_queries;
    w.as_tiles = as_tiles;
    w.f64_size = gnomon_plus(gnomon_times(2, s->search.cols), GROUP * GNOMON_SKETCH_MOST);
    w.f32_size = gnomon_plus(gnomon_times(GROUP, gnomon_plus(s->search.cols, 2)),
                             (GROUP + LANES) * GNOMON_SKETCH_MOST);
    gnomon_status status =
        gnomon_alloc(ctx, gnomon_times(threads, w.f64_size), sizeof *w.f64, "points", &w.f64);
    if (status == GNOMON_OK)
        status =
            gnomon_alloc(ctx, gnomon_times(threads, w.f32_size), sizeof *w.f32, "points", &w.f32);
    if (status == GNOMON_OK) gnomon_parallel(ctx, (m->rows + GROUP - 1) / GROUP, fill_group, &w);
    gnomon_free(ctx, w.f64);
    gnomon_free(ctx, w.f32);
    return status;
}

void gnomon_sketch_drop(gnomon_join_sketch *s, gnomon_sketch_block *b)
{
    gnomon_context *ctx = s->search.ctx;
    gnomon_free(ctx, b->bytes);
    gnomon_free(ctx, b->points);
    gnomon_free(ctx, b->queries);
    gnomon_free(ctx, b->tiles);
    gnomon_free(ctx, b->bias);
    gnomon_free(ctx, b->blurs);
    *b = (gnomon_sketch_block){.first = -1};
}

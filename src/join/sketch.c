/* The sketch of a join: its directions, whether they pay, and points in its coordinates.
 *
 * X is a point's centred coordinates as filter.c prepares them, rounded to fp32; what that rounding
 * does is part of the filter's own bound. V's rows are not quite orthonormal: |V V^T - I| <= e, in
 * the Frobenius norm, measured. Let U be an orthonormal basis of V's row space, V = R U: then
 * |(V P).(V B) - (U P).(U B)| = |(U P)^T (R^T R - I) (U B)| <= e |P||B|, and the part of X outside
 * the space, of length r with r^2 = |X|^2 - |U X|^2, is within e |X|^2 of |X|^2 - |V X|^2. Sums in
 * fp64 add f = (d + 64) 2^-50 at most to each, relative to norms. So
 *   R(X) = sqrt(max(0, |X|^2 - |V X|^2) + 2 (e + f) |X|^2) is at least r,
 * the length of (V X, R(X)) is at most |X| sqrt(1 + 4 (e + f)), and
 *   P.B <= (V P).(V B) + R(P) R(B) + (e + f) |P||B|.
 * The products of the sketched points are those of the filter, with its error for so many steps; 8
 * (e + f) and 4 u, for the rounding of these coordinates, join it. */
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
    SAMPLE = 640,   /* points in the sample */
    WHOLE = 8,      /* of which every eighth's pairs are compared in all coordinates too */
    ITERATIONS = 4, /* of orthogonal iteration */
    LEAST_COLS = 48 /* of points that a sketch pays for */
};

/* ---- the directions ---- */

/* Everything that finding V needs: x: points x cols; xt: its transpose; z: directions x points. */
typedef struct finding {
    gnomon_join_sketch *sketch;
    const gnomon_matrix *some;
    int64_t points, step, cols, directions;
    float *x, *xt;
    double *f64, *z;
    gnomon_sketched *facts;
} finding;

static double product(const gnomon_join_sketch *s, const double *a, const double *b, int64_t d)
{
    return s->search.kernels->products(a, b, GNOMON_F64, 1, d, 1);
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
    for (int64_t j = 0; j < f->cols; j++)
        f->xt[j * f->points + task] = out[j];
}

/* z = V x^T, a point a task. */
static void forward(void *arg, int64_t task, int worker)
{
    (void)worker;
    const finding *f = arg;
    const gnomon_join_sketch *s = f->sketch;
    for (int64_t k = 0; k < f->directions; k++)
        f->z[k * f->points + task] = s->search.kernels->products(
            s->v + k * f->cols, f->x + task * f->cols, GNOMON_F32, 1, f->cols, 1);
}

/* V = z x, a coordinate a task. */
static void backward(void *arg, int64_t task, int worker)
{
    (void)worker;
    const finding *f = arg;
    const gnomon_join_sketch *s = f->sketch;
    for (int64_t k = 0; k < f->directions; k++)
        s->v[k * f->cols + task] = s->search.kernels->products(
            f->z + k * f->points, f->xt + task * f->points, GNOMON_F32, 1, f->points, 1);
}

/* Gram and Schmidt, twice; directions without length become zero. */
static void orthonormalise(gnomon_join_sketch *s, int64_t directions, int64_t cols)
{
    for (int64_t k = 0; k < directions; k++) {
        double *v = s->v + k * cols;
        double before = sqrt(product(s, v, v, cols));
        for (int round = 0; round < 2; round++) {
            for (int64_t other = 0; other < k; other++) {
                const double *u = s->v + other * cols;
                const double share = product(s, u, v, cols);
                for (int64_t j = 0; j < cols; j++)
                    v[j] -= share * u[j];
            }
        }
        const double norm = sqrt(product(s, v, v, cols));
        const bool none = !(norm > 1e-9 * before) || !(norm > 0x1p-300) || !(norm < 0x1p300);
        for (int64_t j = 0; j < cols; j++)
            v[j] = none ? 0 : v[j] / norm;
    }
}

/* How far V's rows are from orthonormal; zero rows are none. */
static double defect_of(const gnomon_join_sketch *s, int64_t directions, int64_t cols)
{
    double squares = 0;
    for (int64_t a = 0; a < directions; a++) {
        const double *v = s->v + a * cols;
        const double norm = product(s, v, v, cols);
        if (norm == 0) continue;
        squares += (norm - 1) * (norm - 1);
        for (int64_t b = 0; b < a; b++) {
            const double share = product(s, v, s->v + b * cols, cols);
            squares += 2 * share * share;
        }
    }
    const double rounding = (double)(cols + 64) * 0x1p-50;
    return 2 * sqrt(squares) + (double)directions * rounding;
}

static void find_directions(finding *f)
{
    gnomon_join_sketch *s = f->sketch;
    uint64_t state = 1;
    for (int64_t i = 0; i < f->directions * f->cols; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        s->v[i] = (double)(int64_t)(state >> 11) * 0x1p-52 - 1;
    }
    gnomon_context *ctx = s->search.ctx;
    for (int round = 0; round < ITERATIONS; round++) {
        gnomon_parallel(ctx, f->points, forward, f);
        gnomon_parallel(ctx, f->cols, backward, f);
        orthonormalise(s, f->directions, f->cols);
    }
    s->defect = defect_of(s, f->directions, f->cols);
    gnomon_parallel(ctx, f->points, forward, f);
}

/* ---- whether they pay ---- */

static const int64_t choices[] = {16, 32, 64, 128};
enum { CHOICES = sizeof choices / sizeof choices[0] };

typedef struct trial {
    const finding *f;
    float *y;        /* points x directions */
    float *rest;     /* points x CHOICES */
    int64_t *passed; /* points x CHOICES */
    int64_t *whole;  /* points: of pairs in all coordinates */
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
    int64_t *passed = t->passed + task * CHOICES;
    for (int64_t b = 0; b < n; b++) {
        if (b == task) continue;
        const float *p = t->y + task * f->directions, *q = t->y + b * f->directions;
        float sum = 0;
        int64_t k = 0;
        int c = 0;
        for (; c < CHOICES && choices[c] <= f->directions; c++) {
            sum += sum_of(p + k, q + k, choices[c] - k);
            k = choices[c];
            const float bound =
                sum + t->rest[task * CHOICES + c] * t->rest[b * CHOICES + c] + (float)t->biases[b];
            /* a little beyond, as errors will let pass */
            const float blur = 1e-5f * (fabsf(sum) + fabsf((float)t->biases[b]));
            if (bound + blur < least) break;
            passed[c]++;
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

/* The numbers of directions that make a pair cheapest, in cycles or so: a step of the filter is a
 * fraction of one, the second filter and a distance in fp64 cost by their coordinates and their way
 * to memory. None where the filter on all coordinates is cheaper, which lets 'whole' pass. */
static void cheapest(finding *f, const double *share, double whole)
{
    gnomon_join_sketch *s = f->sketch;
    const double step = 0.09, each = 3;
    const bool small_type = f->some->dtype != GNOMON_F32 && f->some->dtype != GNOMON_F64;
    const double exact = small_type ? 300 + 1.9 * (double)f->cols : 200 + 0.4 * (double)f->cols;
    double best = 0.9 * (step * (double)f->cols + each + exact * whole);
    for (int a = 0; a < CHOICES && choices[a] <= f->directions; a++) {
        for (int b = a; b < CHOICES && choices[b] <= f->directions; b++) {
            const double sample = b == a ? 0 : 250 + 0.8 * (double)choices[b];
            const double cost =
                step * (double)(choices[a] + 2) + each + share[a] * sample + share[b] * exact;
            if (cost >= best) continue;
            best = cost;
            s->directions = choices[a];
            s->second = choices[b];
            s->pass = share[a];
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
    t.key = gnomon_metric_turn(s->search.options.metric, threshold);
    gnomon_status status =
        gnomon_alloc(ctx, gnomon_times(n, f->directions), sizeof *t.y, "a sample", &t.y);
    if (status == GNOMON_OK)
        status = gnomon_alloc(ctx, gnomon_times(n, CHOICES), sizeof *t.rest, "a sample", &t.rest);
    if (status == GNOMON_OK)
        status = gnomon_alloc_zero(ctx, gnomon_times(n, CHOICES), sizeof *t.passed, "a sample",
                                   &t.passed);
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
                const double y = f->z[k * n + i];
                t.y[i * f->directions + k] = (float)y;
                left -= y * y;
                if (k + 1 == choices[c]) t.rest[i * CHOICES + c++] = (float)sqrt(fmax(left, 0));
            }
            biases[i] = bias_of(s, x, squares);
        }
        t.biases = biases;
        gnomon_parallel(ctx, n, try_point, &t);
        double share[CHOICES] = {0}, whole = 0;
        for (int64_t i = 0; i < n; i += WHOLE)
            whole += (double)t.whole[i];
        whole /= (double)((n + WHOLE - 1) / WHOLE) * (double)(n - 1);
        for (int64_t i = 0; i < n; i++)
            for (int c = 0; c < CHOICES; c++)
                share[c] += (double)t.passed[i * CHOICES + c] / ((double)n * (double)(n - 1));
        cheapest(f, share, whole);
    }
    gnomon_free(ctx, t.y);
    gnomon_free(ctx, t.rest);
    gnomon_free(ctx, t.passed);
    gnomon_free(ctx, t.whole);
    gnomon_free(ctx, biases);
    return status;
}

/* 16-bit coordinates do where what rounding takes is small beside the threshold. */
static void choose_most(finding *f, double threshold)
{
    gnomon_join_sketch *s = f->sketch;
    const double k = (double)s->steps;
    const int most = (int)floor(sqrt(0x1p31 / (k + 2))) - 1;
    double peak = 0, squares = 0;
    for (int64_t i = 0; i < f->points; i++) {
        double norm = f->facts[i].facts.norm;
        squares += norm * norm;
        for (int64_t a = 0; a < s->directions; a++)
            peak = fmax(peak, fabs(f->z[a * f->points + i]));
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
    s->most = error < matters ? most : 0;
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
    s->search.kernels = gnomon_cpu_kernels(gnomon_context_isa(ctx))->search;
    /* it keeps distances that follow from products of coordinates */
    if (gnomon_metric_takes(metric, GNOMON_POINTS_BITS) ||
        !gnomon_metric_row_of(metric)->filtered || cols < LEAST_COLS || some->rows < SAMPLE)
        return GNOMON_OK;
    const double threshold = gnomon_join_threshold(join);
    if (!isfinite(threshold)) return GNOMON_OK;
    GNOMON_TRY(gnomon_centre_estimate(&s->search, some));
    s->search.centre.whole = false;
    finding f = {.sketch = s, .some = some, .points = SAMPLE, .cols = cols};
    f.step = some->rows / SAMPLE;
    f.directions = GNOMON_SKETCH_MOST;
    while (2 * f.directions > cols)
        f.directions /= 2;
    const int64_t threads = gnomon_context_threads(ctx);
    gnomon_status status =
        gnomon_alloc(ctx, gnomon_times(f.directions, cols), sizeof *s->v, "directions", &s->v);
    if (status == GNOMON_OK)
        status = gnomon_alloc(ctx, gnomon_times(SAMPLE, cols), sizeof *f.x, "a sample", &f.x);
    if (status == GNOMON_OK)
        status = gnomon_alloc(ctx, gnomon_times(SAMPLE, cols), sizeof *f.xt, "a sample", &f.xt);
    if (status == GNOMON_OK)
        status =
            gnomon_alloc(ctx, gnomon_times(SAMPLE, f.directions), sizeof *f.z, "a sample", &f.z);
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
        s->steps = s->directions + 1 + (metric == GNOMON_COSINE ? 2 : 0);
        choose_most(&f, threshold);
        const int64_t words = s->most > 0 ? (s->steps + 1) / 2 : s->steps;
        s->ld = (words + 15) / 16 * 16 + 16;
    }
    gnomon_free(ctx, f.x);
    gnomon_free(ctx, f.xt);
    gnomon_free(ctx, f.z);
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
    return (s->second + 1 + s->steps + s->ld) * 4 + (int64_t)sizeof(gnomon_sketched) + 8;
}

typedef struct filling {
    gnomon_join_sketch *sketch;
    gnomon_search search; /* with m as its queries */
    gnomon_sketch_block *block;
    double *f64; /* a worker's */
    int64_t f64_size;
    float *tile; /* a worker's */
    bool as_queries, as_tiles;
} filling;

/* A little more than the rest may be, for the rounding to fp32 too. */
static float rest_of(const gnomon_join_sketch *s, double left, double squares)
{
    return (float)(sqrt(fmax(left, 0) + 2 * s->defect * squares) * (1 + 0x1p-23));
}

static void fill_point(void *arg, int64_t task, int worker)
{
    const filling *w = arg;
    const gnomon_join_sketch *s = w->sketch;
    const int64_t cols = s->search.cols, directions = s->directions;
    const bool cosine = s->search.options.metric == GNOMON_COSINE;
    const int64_t all = cols + (cosine ? 2 : 0);
    double *f64 = w->f64 + worker * w->f64_size;
    float *x = (float *)(f64 + 2 * cols), *coordinates = (float *)(f64 + 3 * cols + 2);
    float *out = w->block->rows + task * (s->second + 1);
    gnomon_sketched *point = &w->block->points[task];
    *point = (gnomon_sketched){.filter = {.self = UINT32_MAX}};
    gnomon_filter_prepare(&w->search, task, all, 256, f64, x, &point->facts, &point->filter);
    point->facts.whole = false;
    point->filter.whole = INFINITY;
    const double squares = s->search.kernels->squares(x, GNOMON_F32, 1, cols, 1);
    double left = squares;
    for (int64_t k = 0; k < s->second; k++) {
        const double y = s->search.kernels->products(s->v + k * cols, x, GNOMON_F32, 1, cols, 1);
        out[k] = (float)y;
        left -= y * y;
        if (k + 1 == directions) point->rest = rest_of(s, left, squares);
    }
    out[s->second] = rest_of(s, left, squares);
    point->zero = cosine && x[cols + 1] != 0;
    const double length = squares + (point->zero ? 1 : 0);
    point->bias = bias_of(s, x, length);
    point->squares = length * (1 + 8 * s->defect);
    point->norm = sqrt(point->squares);
    /* the errors of so many steps, and of the sketch */
    const double norm = point->facts.norm;
    if (norm < 0x1p60) {
        const double gamma = gnomon_filter_gamma(s->steps, s->most > 0 ? 0 : 256);
        const double slack = (gamma + 0x1p-22 + 8 * s->defect) * norm * (1 + 8 * s->defect);
        point->filter.slack = (float)slack * (1 + 0x1p-20f) + 0x1p-126f;
    }
    if (!w->as_queries) return;
    memcpy(coordinates, out, (size_t)directions * sizeof *out);
    coordinates[directions] = point->rest;
    if (cosine) {
        coordinates[directions + 1] = 0;
        coordinates[directions + 2] = point->zero ? 1 : 0;
    }
    uint32_t *query = w->block->queries + task * s->ld;
    if (s->most > 0) {
        gnomon_filter_round(coordinates, s->steps, 16, s->most, &s->search.kernels->quads,
                            &point->facts, &point->filter, query);
        /* the length in these coordinates may be a little more */
        point->filter.norm *= 1 + 0x1p-20f;
    } else {
        memcpy(query, coordinates, (size_t)s->steps * sizeof *coordinates);
    }
}

bool gnomon_sketch_may(const gnomon_join_sketch *s, const double *f64, const gnomon_sketched *p,
                       float least, const gnomon_sketch_block *q, int64_t at)
{
    const gnomon_sketched *b = &q->points[at];
    const double score = b->bias + s->search.kernels->products(f64, q->rows + at * (s->second + 1),
                                                               GNOMON_F32, 1, s->second + 1, 1);
    double error = (0x1p-21 + 8 * s->defect) * (p->facts.norm + b->norm) * b->norm;
    if (s->search.options.metric == GNOMON_IP) error += 0x1p-19 * s->search.centre.norm * b->norm;
    return !(score + error + (double)p->filter.floor < (double)least);
}

static void fill_tile(void *arg, int64_t task, int worker)
{
    const filling *w = arg;
    const gnomon_join_sketch *s = w->sketch;
    const gnomon_sketch_block *b = w->block;
    const int64_t first = task * LANES, directions = s->directions;
    const int lanes = (int)(b->count - first < LANES ? b->count - first : LANES);
    float *tile = s->most > 0 ? w->tile + worker * s->steps * LANES
                              : (float *)b->tiles + task * s->steps * LANES;
    double squares[LANES];
    for (int l = 0; l < LANES; l++) {
        const int64_t i = first + (l < lanes ? l : lanes - 1);
        const float *row = b->rows + i * (s->second + 1);
        for (int64_t k = 0; k < directions; k++)
            tile[k * LANES + l] = row[k];
        tile[directions * LANES + l] = b->points[i].rest;
        if (s->steps > directions + 1) {
            tile[(directions + 1) * LANES + l] = b->points[i].zero ? 1 : 0;
            tile[(directions + 2) * LANES + l] = 0;
        }
        squares[l] = b->points[i].squares;
        b->bias[first + l] = (float)b->points[i].bias;
    }
    gnomon_blur blur =
        gnomon_filter_blur(&s->search, s->steps, s->most > 0 ? 0 : 256, squares, lanes, false);
    if (s->most > 0) {
        float lost[LANES] = {0};
        const float scale = s->search.kernels->halve(
            tile, s->steps, s->most, false,
            (uint32_t *)b->tiles + task * ((s->steps + 1) / 2) * LANES, lost);
        gnomon_blur_halve(s->steps, scale, lost, lanes, &blur);
    }
    b->blurs[task] = blur;
}

static gnomon_status reserve(gnomon_join_sketch *s, int64_t count, gnomon_sketch_block *b)
{
    gnomon_context *ctx = s->search.ctx;
    const int64_t tiles = (count + LANES - 1) / LANES;
    const int64_t words = s->most > 0 ? (s->steps + 1) / 2 : s->steps;
    if (b->room >= count) return GNOMON_OK;
    gnomon_sketch_drop(s, b);
    GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(count, s->second + 1), sizeof *b->rows,
                            "sketched points", &b->rows));
    GNOMON_TRY(gnomon_alloc(ctx, count, sizeof *b->points, "sketched points", &b->points));
    GNOMON_TRY(gnomon_alloc_zero(ctx, gnomon_times(count, s->ld), sizeof *b->queries,
                                 "sketched points", &b->queries));
    GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(gnomon_times(tiles, LANES), words), sizeof(uint32_t),
                            "sketched points", &b->tiles));
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
    w.f64_size = gnomon_plus(gnomon_times(3, s->search.cols), 2 + s->steps);
    gnomon_status status =
        gnomon_alloc(ctx, gnomon_times(threads, w.f64_size), sizeof *w.f64, "points", &w.f64);
    if (status == GNOMON_OK)
        status = gnomon_alloc(ctx, gnomon_times(gnomon_times(threads, s->steps), LANES),
                              sizeof *w.tile, "a tile", &w.tile);
    if (status == GNOMON_OK) {
        gnomon_parallel(ctx, m->rows, fill_point, &w);
        if (as_tiles) gnomon_parallel(ctx, (m->rows + LANES - 1) / LANES, fill_tile, &w);
    }
    gnomon_free(ctx, w.f64);
    gnomon_free(ctx, w.tile);
    return status;
}

void gnomon_sketch_drop(gnomon_join_sketch *s, gnomon_sketch_block *b)
{
    gnomon_context *ctx = s->search.ctx;
    gnomon_free(ctx, b->rows);
    gnomon_free(ctx, b->points);
    gnomon_free(ctx, b->queries);
    gnomon_free(ctx, b->tiles);
    gnomon_free(ctx, b->bias);
    gnomon_free(ctx, b->blurs);
    *b = (gnomon_sketch_block){.first = -1};
}

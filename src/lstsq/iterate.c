/* Conjugate gradients on H y = P^T r, H = P^T A^T A P, and again on what that leaves.
 *
 * H is well conditioned, so squaring A does no harm (Epperly, Meier & Nakatsukasa 2024). Nothing of
 * A's length is kept: a step takes one pass that needs no b. */
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "linalg/blas.h"
#include "lstsq/lstsq.h"
#include "lstsq/underdetermined.h"

#include <math.h>
#include <string.h>

/* One round of conjugate gradients gains no more than this: beyond, rounding is all it follows. */
#define LEAST_GAIN 1e-12
/* It ends when it foresees this share of the tolerance: a step or two more for a tenth of the
 * error. Rounding may leave more; another round follows while it is more than this share. */
#define SAFETY  0.02
#define REACHED (1.0 / 16)

/* What the backward error depends on beside the gradient. */
typedef struct weights {
    double omega, rest; /* rest: omega |r| */
} weights;

static weights weigh(const gnomon_solver *s, int64_t j, double norm_x, double squares)
{
    const double theta = s->norm_of_columns / s->norm_b[j];
    weights w;
    w.omega = theta / hypot(1, theta * norm_x);
    w.rest = w.omega * sqrt(squares);
    return w;
}

/* Direction i's share of the backward error, squared: Walden, Karlson & Sun's (1995) estimate, with
 * the sketch's singular values for A's. */
static double share(const gnomon_solver *s, const weights *w, int64_t i, double g)
{
    if (g == 0) return 0;
    const double x = w->omega * g / s->norm_of_columns;
    return x * x / (s->sigma[i] * s->sigma[i] + w->rest * w->rest);
}

/* The backward error of state's x, were g (d x m) its gradient. */
static double error_of(const gnomon_solver *s, const gnomon_state *state, const double *g,
                       int64_t j)
{
    /* Without A any x is as good, and 0 the shortest. */
    if (state->squares[j] == 0 || s->norm_b[j] == 0 || s->norm == 0) return 0;
    const weights w = weigh(s, j, state->norm_dx[j], state->squares[j]);
    double sum = 0;
    for (int64_t i = 0; i < s->d; i++)
        sum += share(s, &w, i, g[i * s->m + j]);
    return sqrt(sum);
}

gnomon_status gnomon_solver_evaluate(gnomon_solver *s, gnomon_state *state, gnomon_matrix *residual)
{
    const int64_t d = s->d, m = s->m;
    double *g = NULL;
    if (s->underdetermined != NULL) return gnomon_underdetermined_evaluate(s, state);
    GNOMON_TRY(gnomon_alloc(s->ctx, gnomon_times(d, m), sizeof *g, "a gradient", &g));
    memset(state->norm_dx, 0, (size_t)m * sizeof *state->norm_dx);
    const gnomon_sweep sweep = {s->x, m, true, g, state->plain, residual, NULL};
    gnomon_status status = gnomon_sweep_rows(s, &sweep);
    for (int64_t j = 0; j < m && status == GNOMON_OK; j++) {
        double sum = 0;
        for (int64_t i = 0; i < d; i++) {
            const double x = s->x[i * m + j];
            sum += x * x;
            g[i * m + j] -= s->lambda * s->lambda * x;
        }
        state->norm_x[j] = sqrt(sum);
        state->squares[j] = state->plain[j] + s->lambda * s->lambda * sum;
    }
    if (status == GNOMON_OK) {
        gnomon_solver_scale(s, g, m);
        gnomon_blas_gemm(true, true, false, d, m, d, 1.0, s->v, d, g, m, 0.0, state->g, m);
        for (int64_t i = 0; i < d * m; i++) { /* from here on g is D x */
            g[i] = s->columns != NULL ? s->x[i] / s->columns[i / m] : s->x[i];
            state->norm_dx[i % m] += g[i] * g[i];
        }
        gnomon_blas_gemm(true, true, false, d, m, d, 1.0, s->v, d, g, m, 0.0, state->transposed, m);
        for (int64_t j = 0; j < m; j++) {
            state->norm_dx[j] = sqrt(state->norm_dx[j]);
            state->error[j] = error_of(s, state, state->g, j);
        }
    }
    gnomon_free(s->ctx, g);
    return status;
}

/* One round: columns of conjugate gradients, and the test vectors beside them. */
typedef struct gradients {
    gnomon_solver *s;
    int64_t cols;       /* m + test vectors */
    double *y, *q, *p;  /* rank x m */
    double *in, *h;     /* rank x cols */
    double *scratch;    /* for apply */
    double *rr, *first; /* m: |q|^2, now and at first */
    double *squares;    /* m: what |b - A x|^2 will be */
    bool *active;       /* m: whether steps still change it */
    bool *updated;      /* m: whether this round took it up */
    bool *careful;      /* m: whether small directions are left alone */
    double *best;       /* d x m: the x of the least error */
    double *least;      /* m: that error */
    double *before;     /* d x m: the state's g a round ago */
    double *error;      /* m: its error then */
    bool *stalled;      /* m */
} gradients;

static gnomon_status allocate(gradients *r)
{
    gnomon_solver *s = r->s;
    const char *what = "conjugate gradients";
    const int64_t m = s->m, numbers = s->d * m, all = s->d * r->cols;
    GNOMON_TRY(gnomon_alloc(s->ctx, numbers, sizeof(double), what, &r->y));
    GNOMON_TRY(gnomon_alloc(s->ctx, numbers, sizeof(double), what, &r->q));
    GNOMON_TRY(gnomon_alloc(s->ctx, numbers, sizeof(double), what, &r->p));
    GNOMON_TRY(gnomon_alloc(s->ctx, all, sizeof(double), what, &r->in));
    GNOMON_TRY(gnomon_alloc(s->ctx, all, sizeof(double), what, &r->h));
    GNOMON_TRY(gnomon_alloc(s->ctx, gnomon_times(2, all), sizeof(double), what, &r->scratch));
    GNOMON_TRY(gnomon_alloc(s->ctx, m, sizeof(double), what, &r->rr));
    GNOMON_TRY(gnomon_alloc(s->ctx, m, sizeof(double), what, &r->first));
    GNOMON_TRY(gnomon_alloc(s->ctx, m, sizeof(double), what, &r->squares));
    GNOMON_TRY(gnomon_alloc(s->ctx, m, sizeof(bool), what, &r->active));
    GNOMON_TRY(gnomon_alloc(s->ctx, m, sizeof(bool), what, &r->updated));
    GNOMON_TRY(gnomon_alloc_zero(s->ctx, m, sizeof(bool), what, &r->careful));
    GNOMON_TRY(gnomon_alloc(s->ctx, numbers, sizeof(double), what, &r->best));
    GNOMON_TRY(gnomon_alloc(s->ctx, m, sizeof(double), what, &r->least));
    GNOMON_TRY(gnomon_alloc(s->ctx, numbers, sizeof(double), what, &r->before));
    GNOMON_TRY(gnomon_alloc(s->ctx, m, sizeof(double), what, &r->error));
    return gnomon_alloc_zero(s->ctx, m, sizeof(bool), what, &r->stalled);
}

static void release(gradients *r)
{
    gnomon_context *ctx = r->s->ctx;
    gnomon_free(ctx, r->y);
    gnomon_free(ctx, r->q);
    gnomon_free(ctx, r->p);
    gnomon_free(ctx, r->in);
    gnomon_free(ctx, r->h);
    gnomon_free(ctx, r->scratch);
    gnomon_free(ctx, r->rr);
    gnomon_free(ctx, r->first);
    gnomon_free(ctx, r->squares);
    gnomon_free(ctx, r->active);
    gnomon_free(ctx, r->updated);
    gnomon_free(ctx, r->careful);
    gnomon_free(ctx, r->best);
    gnomon_free(ctx, r->least);
    gnomon_free(ctx, r->before);
    gnomon_free(ctx, r->error);
    gnomon_free(ctx, r->stalled);
}

/* Whether direction i is as good as the tolerance wants it: all such together leave a quarter. */
static bool is_small(const gnomon_solver *s, const gnomon_state *state, int64_t i, int64_t j)
{
    const double g = state->g[i * s->m + j], most = 0.25 * s->options.tolerance;
    double part;
    if (s->underdetermined != NULL) {
        part = gnomon_underdetermined_error(s, state, j, g * g);
    } else {
        const weights w = weigh(s, j, state->norm_dx[j], state->squares[j]);
        part = sqrt(share(s, &w, i, g));
    }
    return part <= most / sqrt((double)s->rank);
}

static void begin(gradients *r, const gnomon_state *state)
{
    const gnomon_solver *s = r->s;
    const int64_t m = s->m;
    memset(r->y, 0, (size_t)(s->rank * m) * sizeof *r->y);
    memset(r->rr, 0, (size_t)m * sizeof *r->rr);
    for (int64_t i = 0; i < s->rank; i++) {
        for (int64_t j = 0; j < m; j++) {
            const bool leave = r->careful[j] && is_small(s, state, i, j);
            const double c = leave ? 0 : state->g[i * m + j] / s->sigma[i];
            r->q[i * m + j] = r->p[i * m + j] = c;
            r->rr[j] += c * c;
        }
    }
    for (int64_t j = 0; j < m; j++) {
        r->first[j] = r->rr[j];
        r->squares[j] = state->squares[j];
        r->active[j] =
            state->error[j] > REACHED * s->options.tolerance && !r->stalled[j] && r->rr[j] > 0;
        r->updated[j] = r->active[j];
    }
}

/* The backward error that x + P y will have, as far as the recurrences tell. */
static double foresee(const gradients *r, const gnomon_state *state, int64_t j)
{
    const gnomon_solver *s = r->s;
    double norm = 0, sum = 0;
    if (s->underdetermined != NULL) {
        for (int64_t i = 0; i < s->rank; i++) {
            const double left = s->sigma[i] * r->q[i * s->m + j];
            sum += left * left;
        }
        return gnomon_underdetermined_error(s, state, j, sum);
    }
    for (int64_t i = 0; i < s->d; i++) {
        double x = state->transposed[i * s->m + j];
        if (i < s->rank) x += r->y[i * s->m + j] / s->sigma[i];
        norm += x * x;
    }
    const weights w = weigh(s, j, sqrt(norm), r->squares[j]);
    for (int64_t i = 0; i < s->d; i++)
        sum += share(s, &w, i,
                     i < s->rank ? s->sigma[i] * r->q[i * s->m + j] : state->g[i * s->m + j]);
    return sqrt(sum);
}

static bool any(const bool *flags, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (flags[i]) return true;
    return false;
}

/* Column j's share of a step. */
static void advance(gradients *r, const gnomon_state *state, int64_t j)
{
    const int64_t m = r->s->m, rank = r->s->rank;
    double ph = 0, sum = 0;
    for (int64_t i = 0; i < rank; i++)
        ph += r->p[i * m + j] * r->h[i * r->cols + j];
    if (!(ph > 0)) {
        r->active[j] = false;
        return;
    }
    const double alpha = r->rr[j] / ph;
    for (int64_t i = 0; i < rank; i++) {
        r->y[i * m + j] += alpha * r->p[i * m + j];
        r->q[i * m + j] -= alpha * r->h[i * r->cols + j];
        sum += r->q[i * m + j] * r->q[i * m + j];
    }
    const double beta = sum / r->rr[j];
    r->squares[j] = fmax(r->squares[j] - alpha * r->rr[j], 0);
    r->rr[j] = sum;
    for (int64_t i = 0; i < rank; i++)
        r->p[i * m + j] = r->q[i * m + j] + beta * r->p[i * m + j];
    if (sum <= LEAST_GAIN * LEAST_GAIN * r->first[j] ||
        foresee(r, state, j) <= SAFETY * r->s->options.tolerance)
        r->active[j] = false;
}

static gnomon_status step(gradients *r, const gnomon_state *state)
{
    gnomon_solver *s = r->s;
    const int64_t m = s->m, test_vectors = r->cols - m;
    for (int64_t i = 0; i < s->rank; i++) {
        memcpy(r->in + i * r->cols, r->p + i * m, (size_t)m * sizeof *r->in);
        if (test_vectors > 0)
            memcpy(r->in + i * r->cols + m, s->test_vectors.now + i * test_vectors,
                   (size_t)test_vectors * sizeof *r->in);
    }
    GNOMON_TRY(gnomon_solver_apply_in(s, r->in, r->cols, r->scratch, r->h));
    for (int64_t j = 0; j < m; j++)
        if (r->active[j]) advance(r, state, j);
    if (test_vectors > 0) gnomon_test_vectors_step(s, r->h, r->cols, m);
    s->out->iterations++;
    return GNOMON_OK;
}

/* x += P y. */
static void update(gradients *r)
{
    gnomon_solver *s = r->s;
    gnomon_solver_multiply_p(s, r->y, s->m, r->h, r->scratch);
    for (int64_t i = 0; i < s->d * s->m; i++)
        s->x[i] += r->scratch[i];
    if (s->underdetermined != NULL) gnomon_underdetermined_change(s, r->scratch);
}

static void copy_column(const gradients *r, const double *from, double *to, int64_t j)
{
    for (int64_t i = 0; i < r->s->d; i++)
        to[i * r->s->m + j] = from[i * r->s->m + j];
}

/* What column j's backward error must fall below half of, for the round to count as progress:
 * that of a round ago, or the error of the gradient of then with the x of now, if that is more. The
 * first falls where x gets longer and its gradient with it (from an x of 0); the second where a
 * round takes away most of x's length, as after a start far off in the direction of a tiny singular
 * value: then what is left falls although its share of |A| |x| rises. */
static double error_before(const gradients *r, const gnomon_state *state, int64_t j)
{
    const gnomon_solver *s = r->s;
    double error = 0;
    if (s->underdetermined != NULL) {
        for (int64_t i = 0; i < s->rank; i++)
            error += r->before[i * s->m + j] * r->before[i * s->m + j];
        error = gnomon_underdetermined_error(s, state, j, error);
    } else {
        error = error_of(s, state, r->before, j);
    }
    return fmax(error, r->error[j]);
}

static void note(gradients *r, const gnomon_state *state)
{
    memcpy(r->before, state->g, (size_t)(r->s->d * r->s->m) * sizeof *r->before);
    memcpy(r->error, state->error, (size_t)r->s->m * sizeof *r->error);
}

/* Goes back to the best x; state is then another one's. */
static bool go_back(gradients *r, const gnomon_state *state)
{
    bool any_did = false;
    for (int64_t j = 0; j < r->s->m; j++) {
        if (state->error[j] == r->least[j]) continue; /* greater, or NaN */
        copy_column(r, r->best, r->s->x, j);
        if (r->s->underdetermined != NULL) gnomon_underdetermined_go_back(r->s, j);
        any_did = true;
    }
    return any_did;
}

/* Keeps the best x. A round that does not halve what the last one left met rounding, and mostly
 * that of the directions with the least singular values: there b - A x, as good as 0, asks for a
 * change by 1 / sigma^2 of its rounding, and rounding of that change is in every direction. So from
 * then on what is small is left alone, and when that does not help either, or the tolerance was
 * reached before, the column is done.
 * *rounding: whether there is one that met it now. */
static void judge(gradients *r, const gnomon_state *state, bool *rounding)
{
    *rounding = false;
    for (int64_t j = 0; j < r->s->m; j++) {
        if (state->error[j] < r->least[j]) {
            r->least[j] = state->error[j];
            copy_column(r, r->s->x, r->best, j);
            if (r->s->underdetermined != NULL) gnomon_underdetermined_keep(r->s, j);
        }
        if (!r->updated[j] || state->error[j] <= 0.5 * error_before(r, state, j)) continue;
        if (r->careful[j] || r->least[j] <= r->s->options.tolerance) r->stalled[j] = true;
        r->careful[j] = true;
        *rounding = true;
    }
}

static gnomon_status iterate(gradients *r, gnomon_state *state)
{
    gnomon_solver *s = r->s;
    bool rounding;
    GNOMON_TRY(gnomon_solver_evaluate(s, state, NULL));
    memcpy(r->best, s->x, (size_t)(s->d * s->m) * sizeof *r->best);
    memcpy(r->least, state->error, (size_t)s->m * sizeof *r->least);
    note(r, state);
    for (int64_t j = 0; j < s->m && s->underdetermined != NULL; j++)
        gnomon_underdetermined_keep(s, j);
    s->out->certify_seconds += gnomon_lap(&s->clock);
    while (s->rank > 0 && s->out->iterations < s->options.iterations) {
        begin(r, state);
        if (!any(r->active, s->m)) break;
        while (any(r->active, s->m) && s->out->iterations < s->options.iterations) {
            r->cols =
                s->m + (s->test_vectors.steps < GNOMON_TEST_STEPS ? s->test_vectors.count : 0);
            GNOMON_TRY(step(r, state));
        }
        update(r);
        s->out->refinements++;
        s->out->iterate_seconds += gnomon_lap(&s->clock);
        GNOMON_TRY(gnomon_solver_evaluate(s, state, NULL));
        judge(r, state, &rounding);
        if (rounding && go_back(r, state)) GNOMON_TRY(gnomon_solver_evaluate(s, state, NULL));
        note(r, state);
        s->out->certify_seconds += gnomon_lap(&s->clock);
    }
    return go_back(r, state) ? gnomon_solver_evaluate(s, state, NULL) : GNOMON_OK;
}

gnomon_status gnomon_solver_iterate(gnomon_solver *s, gnomon_state *state)
{
    gradients r = {.s = s, .cols = s->m + s->test_vectors.count};
    gnomon_status status = allocate(&r);
    if (status == GNOMON_OK) status = iterate(&r, state);
    release(&r);
    return status;
}

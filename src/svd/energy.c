/* As many columns as a tolerance asks for, by the squares of the singular values: with Z
 * orthonormal, |A - A Z Z^T|_F^2 = |A|_F^2 - |A Z|_F^2, and what the leading r values s_i of A Z
 * take away is the sum of their squares. So r is enough when that sum is (1 - T^2) |A|_F^2, and an
 * allowance for rounding, which is what bounds how small T can be (Yu, Gu & Li 2018).
 *
 * The s_i are no larger than A's, so r is never too small, and it is the smallest one when they
 * have converged far enough. So the columns grow until the sum is reached, and then the shifted
 * iterations of range.c go on until what they still add to the leading r - 1 values can't reach it.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "linalg/blas.h"
#include "svd/factor.h"

#include <math.h>
#include <string.h>

enum {
    CYCLE = 6,        /* iterations whose shifts are the zeros of one polynomial */
    AT_LEAST = 3,     /* checks at the same number of columns before anything counts as converged */
    ROUNDS = 120,     /* checks at the same number of columns at most */
    DENSE_UNITS = 64, /* roundings of the sum of squares of dense data, which is measured later */
    KEPT = 3          /* looks whose values are at hand */
};

typedef struct energy {
    gnomon_factor *f;
    gnomon_tall z, y; /* n x columns, orthonormal; m x columns, A z or what that spans */
    int64_t columns, most;
    double *r;             /* columns x columns: y = q r */
    double span;           /* of its diagonal; 0: it is not to be divided by */
    double *squares[KEPT]; /* of the singular values of A z, falling; the latest first */
    double wanted;         /* the sum of squares to be reached */
    int checks, steps;     /* checks at this number of columns, iterations in all */
    int64_t needed;        /* more columns that a check requires; 0: none */
} energy;

static double square(double x)
{
    return x * x;
}

static double unit(const gnomon_factor *f)
{
    return f->f64 ? 0x1p-53 : 0x1p-24;
}

/* What rounding may do to the sums of squares beside |A|_F^2, with 'off' = |Z^T Z - I|_F. Of sparse
 * rows each product is a sum in double precision of at most as many terms as a row has: |A Z| is
 * off by as many roundings of | |A| |Z| |_F <= sqrt(columns) |A|_F, and each entry is rounded.
 * Dense data is measured in full later. */
static double allowance(const energy *e, double off, int64_t columns)
{
    const gnomon_factor *f = e->f;
    if (!f->source.sparse) return DENSE_UNITS * unit(f);
    const double s = (double)columns;
    /* Less their mean the rows are shorter than what the products are sums of. */
    const double each = f->source.centered ? f->source.center.rounding / f->source.norm
                                           : ((double)f->source.longest + 1) * 0x1p-53;
    const double product = unit(f) + sqrt(s) * each;
    const double columns_more = f->source.centered ? (double)f->source.cols : 0;
    const double sums = ((double)f->source.nonzeros / 8 + columns_more + 8 * s + 64) * 0x1p-53;
    return 2 * off + 2 * product + sums;
}

static void drop(energy *e)
{
    gnomon_context *ctx = e->f->ctx;
    gnomon_tall_drop(ctx, &e->z);
    gnomon_tall_drop(ctx, &e->y);
    gnomon_free(ctx, e->r);
    e->r = NULL;
    for (int i = 0; i < KEPT; i++) {
        gnomon_free(ctx, e->squares[i]);
        e->squares[i] = NULL;
    }
}

/* *z: what 'count' fresh columns of the projection span in A's row space, less what e->z has. */
static gnomon_status draw(energy *e, int64_t count, gnomon_tall *z)
{
    gnomon_factor *f = e->f;
    gnomon_tall y = {0};
    GNOMON_TRY(gnomon_tall_make(f->ctx, f->f64, f->source.cols, count, false, "the row space", z));
    gnomon_status status =
        gnomon_tall_make(f->ctx, f->f64, f->source.rows, count, false, "the range", &y);
    if (status == GNOMON_OK) status = gnomon_row_source_sketch(&f->source, f->op, e->columns, &y);
    f->out->project_seconds += gnomon_lap(&f->clock);
    if (status == GNOMON_OK) status = gnomon_condition(f->ctx, &y, NULL, NULL, &f->orth);
    if (status == GNOMON_OK) status = gnomon_row_source_adjoint(&f->source, &y, z);
    gnomon_tall_drop(f->ctx, &y);
    f->out->power_seconds += gnomon_lap(&f->clock);
    /* Twice: the first makes what is left of unit length, the second takes out what rounding left
     * of the others. */
    for (int i = 0; i < 2 && status == GNOMON_OK && e->columns > 0; i++) {
        status = gnomon_tall_deflate(f->ctx, &e->z, z);
        if (status == GNOMON_OK) status = gnomon_condition(f->ctx, z, NULL, NULL, &f->orth);
    }
    return status;
}

/* Memory for e->columns columns but z. */
static gnomon_status make_room(energy *e)
{
    gnomon_context *ctx = e->f->ctx;
    const int64_t n = e->columns;
    int64_t numbers;
    GNOMON_FAIL_IF(!gnomon_mul(n, n, &numbers), ctx, GNOMON_ERROR_OVERFLOW,
                   "the columns' square does not fit 63 bits");
    GNOMON_TRY(gnomon_tall_make(ctx, e->f->f64, e->f->source.rows, n, false, "the range", &e->y));
    GNOMON_TRY(gnomon_alloc(ctx, numbers, sizeof *e->r, "a triangle", &e->r));
    for (int i = 0; i < KEPT; i++)
        GNOMON_TRY(
            gnomon_alloc_zero(ctx, n, sizeof *e->squares[i], "singular values", &e->squares[i]));
    return GNOMON_OK;
}

/* 'more' columns beside those that are there. */
static gnomon_status grow(energy *e, int64_t more)
{
    gnomon_factor *f = e->f;
    gnomon_tall fresh = {0}, all = {0};
    const int64_t columns = e->columns + more;
    gnomon_status status = draw(e, more, &fresh);
    if (status == GNOMON_OK && e->columns > 0) {
        status =
            gnomon_tall_make(f->ctx, f->f64, f->source.cols, columns, false, "the row space", &all);
        if (status == GNOMON_OK) {
            gnomon_tall_copy(f->ctx, &e->z, 0, e->z.cols, &all, 0);
            gnomon_tall_copy(f->ctx, &fresh, 0, fresh.cols, &all, e->columns);
        }
        gnomon_tall_drop(f->ctx, &fresh);
        fresh = all;
    }
    drop(e);
    e->z = fresh;
    e->columns = columns;
    e->checks = 0;
    return status == GNOMON_OK ? make_room(e) : status;
}

/* The squares of the singular values of the triangle r, falling. */
static gnomon_status values_of(energy *e, double *squares)
{
    gnomon_context *ctx = e->f->ctx;
    const int64_t n = e->columns;
    int64_t count, index_count;
    double *gram = NULL, *work = NULL;
    int *index = NULL;
    gnomon_blas_eigen_work(n, &count, &index_count);
    gnomon_status status =
        gnomon_alloc_zero(ctx, gnomon_times(n, n), sizeof *gram, "the small problem", &gram);
    if (status == GNOMON_OK)
        status = gnomon_alloc(ctx, count, sizeof *work, "the small problem", &work);
    if (status == GNOMON_OK)
        status = gnomon_alloc(ctx, index_count, sizeof *index, "the small problem", &index);
    if (status == GNOMON_OK) {
        gnomon_blas_gram(n, n, e->r, n, gram, n);
        if (!gnomon_blas_eigenvalues(n, gram, squares, work, count, index, index_count))
            status = gnomon_fail(ctx, GNOMON_ERROR_INTERNAL,
                                 "the eigenvalues of the %lld x %lld problem did not converge",
                                 (long long)n, (long long)n);
    }
    for (int64_t i = 0; status == GNOMON_OK && i < n / 2; i++) {
        const double low = squares[i];
        squares[i] = squares[n - 1 - i];
        squares[n - 1 - i] = low;
    }
    gnomon_free(ctx, gram);
    gnomon_free(ctx, work);
    gnomon_free(ctx, index);
    return status;
}

static double sum_of(const double *squares, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += squares[i];
    return sum;
}

/* How many of the latest values reach the sum; limit + 1 when 'limit' of them don't. */
static int64_t rank_of(const energy *e, int64_t limit)
{
    double sum = 0;
    for (int64_t i = 0; i < limit; i++) {
        sum += e->squares[0][i];
        if (sum >= e->wanted) return i + 1;
    }
    return limit + 1;
}

/* Whether further iterations would leave the first 'count' values short of the sum. What they
 * bring is held to fall as it did between the last two looks, and to be four times as much. */
static bool has_converged(const energy *e, int64_t count, int at_least)
{
    const int64_t least =
        e->f->source.rows < e->f->source.cols ? e->f->source.rows : e->f->source.cols;
    if (e->columns == least || e->checks >= ROUNDS) return true;
    if (e->checks < at_least) return false;
    const double now = sum_of(e->squares[0], count);
    const double gain = now - sum_of(e->squares[1], count);
    const double before = sum_of(e->squares[1], count) - sum_of(e->squares[2], count);
    if (gain <= 64 * unit(e->f) * e->wanted * (e->f->f64 ? 1 : 0x1p-10)) return true;
    const double ratio = before > 0 ? gain / before : 1;
    const double rest = ratio < 0.9 ? gain * fmax(1, ratio / (1 - ratio)) : 10 * gain;
    return now + 4 * rest < e->wanted;
}

/* One check: y = q r = A z with z orthonormal, and the squares. */
static gnomon_status check(energy *e)
{
    gnomon_factor *f = e->f;
    GNOMON_TRY(gnomon_condition(f->ctx, &e->z, NULL, NULL, &f->orth));
    f->out->orthonormalise_seconds += gnomon_lap(&f->clock);
    GNOMON_TRY(gnomon_row_source_apply(&f->source, &e->z, &e->y));
    f->out->power_seconds += gnomon_lap(&f->clock);
    GNOMON_TRY(gnomon_condition(f->ctx, &e->y, &e->span, e->r, &f->orth));
    f->out->orthonormalise_seconds += gnomon_lap(&f->clock);
    double *last = e->squares[KEPT - 1];
    for (int i = KEPT - 1; i > 0; i--)
        e->squares[i] = e->squares[i - 1];
    e->squares[0] = last;
    GNOMON_TRY(values_of(e, last));
    e->checks++;
    f->out->small_seconds += gnomon_lap(&f->clock);
    return GNOMON_OK;
}

/* What the check tells: whether it is done; else e->needed. */
static bool decide(energy *e)
{
    const gnomon_svd_options *o = &e->f->options;
    const int64_t limit = o->rank < e->columns ? o->rank : e->columns;
    const int64_t rank = rank_of(e, limit), room = e->most - e->columns;
    const double least = e->squares[0][e->columns - 1];
    int64_t more = 0;
    if (rank > limit && room > 0) {
        /* No further value is larger than these seem; where they have not converged, a few may be
         * missing that iterations bring. */
        const double missing = e->wanted - sum_of(e->squares[0], limit);
        const double count = least > 0 ? missing / least : INFINITY;
        const double most = 3 * (double)e->columns;
        more = (int64_t)(count < most ? count : most) + o->oversample + 1;
        if (e->checks < AT_LEAST && more < e->columns / 4) more = 0;
    } else if (rank + o->oversample > e->columns) {
        more = rank + o->oversample - e->columns;
    }
    e->needed = more < room ? more : room;
    if (e->needed > 0) return false;
    /* Out of reach: what a fixed rank gets. */
    if (rank > limit) return has_converged(e, limit, CYCLE + 1);
    return has_converged(e, rank - 1, AT_LEAST);
}

/* z = what the next look is to be at. */
static gnomon_status step(energy *e)
{
    gnomon_factor *f = e->f;
    const int phase = (e->checks - 1) % CYCLE;
    const double least = e->squares[0][e->columns - 1];
    const bool shifted = phase > 0 && least > 0 && e->span > 0;
    if (shifted)
        GNOMON_TRY(gnomon_shift_begin(f, &e->z, gnomon_shift_share(CYCLE, phase) * least, e->r));
    GNOMON_TRY(shifted ? gnomon_row_source_add_adjoint(&f->source, &e->y, &e->z)
                       : gnomon_row_source_adjoint(&f->source, &e->y, &e->z));
    f->out->power_seconds += gnomon_lap(&f->clock);
    e->steps++;
    return GNOMON_OK;
}

static gnomon_status iterate(energy *e)
{
    for (;;) {
        GNOMON_TRY(check(e));
        if (decide(e)) return GNOMON_OK;
        GNOMON_TRY(e->needed > 0 ? grow(e, e->needed) : step(e));
    }
}

/* z orthonormal and y = A z as closely as they can be had, f->rest and f->rounding. */
static gnomon_status finish(energy *e)
{
    gnomon_factor *f = e->f;
    bool finite;
    GNOMON_TRY(gnomon_orthonormalise(f->ctx, &e->z, NULL, &f->orth));
    f->out->orthonormalise_seconds += gnomon_lap(&f->clock);
    GNOMON_TRY(gnomon_row_source_apply_f64(&f->source, &e->z, &e->y));
    f->out->power_seconds += gnomon_lap(&f->clock);
    if (!f->source.sparse) {
        GNOMON_TRY(gnomon_row_source_residual(&f->source, &e->y, &e->z, &f->rest));
        f->out->certify_seconds += gnomon_lap(&f->clock);
        return GNOMON_OK;
    }
    const int64_t n = e->columns;
    double off = 0, kept = 0;
    GNOMON_TRY(gnomon_tall_gram(f->ctx, &e->z, e->r, &finite));
    for (int64_t i = 0; i < n * n; i++)
        off += square(e->r[i] - (i % (n + 1) == 0 ? 1 : 0));
    GNOMON_TRY(gnomon_tall_gram(f->ctx, &e->y, e->r, &finite));
    for (int64_t i = 0; i < n; i++)
        kept += e->r[i * n + i];
    const double all = square(f->source.norm);
    f->rounding = allowance(e, sqrt(off), n) * all;
    f->rest = sqrt(fmax(all - kept, 0) + f->rounding);
    f->out->certify_seconds += gnomon_lap(&f->clock);
    return GNOMON_OK;
}

static gnomon_status run(energy *e)
{
    gnomon_factor *f = e->f;
    const int64_t begin = f->options.block < e->most ? f->options.block : e->most;
    GNOMON_TRY(gnomon_factor_operator(f, e->most, false));
    GNOMON_TRY(grow(e, begin));
    GNOMON_TRY(iterate(e));
    GNOMON_TRY(finish(e));
    f->of_transpose = true;
    f->out->columns = e->columns;
    f->options.power = e->steps;
    f->q = e->z;
    f->bt = e->y;
    e->z.data = e->y.data = NULL;
    return GNOMON_OK;
}

gnomon_status gnomon_range_energy(gnomon_factor *f, bool *reached)
{
    energy e = {.f = f, .most = gnomon_factor_columns(f)};
    const double tolerance = square(f->options.tolerance), all = square(f->source.norm);
    const double off = 4 * unit(f) * sqrt((double)e.most);
    const double lost = allowance(&e, off, e.most);
    *reached = false;
    /* Below, rounding would ask for more columns than the tolerance does. */
    if (!(tolerance >= 64 * lost) || f->options.power == 0) return GNOMON_OK;
    e.wanted = (1 - tolerance + lost) * all;
    gnomon_status status = run(&e);
    drop(&e);
    *reached = status == GNOMON_OK;
    return status;
}

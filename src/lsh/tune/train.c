/* Centres of k-means: Lloyd's iterations on some of the points (Lloyd 1982; for cosine Dhillon &
 * Modha 2001). Assignments are exact searches and sums are of fp64 in the order of the points, so
 * that the centres are the same on every machine. */
#include "base/arithmetic.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "kernels.h"
#include "lsh/families/family.h"
#include "lsh/tune/assign.h"
#include "lsh/tune/tune.h"
#include "points/view.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct training {
    gnomon_context *ctx;
    const gnomon_search_kernels *kernels;
    gnomon_metric metric;
    const gnomon_matrix *points; /* which the sample is of */
    const int64_t *rows;         /* the sample's; NULL: it is all points */
    int64_t sampled, count;
    gnomon_assign *assign; /* of the points */
    float *centres;
    int32_t *nearest; /* the sample's centres, and how far they are */
    double *far;
    int64_t *first, *members; /* a centre's points: members[first[c]] ... */
    double *sums;             /* a worker's: twice dim */
} training;

static int64_t row_of(const training *t, int64_t i)
{
    return t->rows != NULL ? t->rows[i] : i;
}

/* Points that a round looks at: the first ones move centres that are far from where they will be.
 */
static int64_t points_of_round(const training *t, int round)
{
    const int each =
        round < GNOMON_LSH_BRIEF_ROUNDS ? GNOMON_LSH_TRAINED_BRIEFLY : GNOMON_LSH_TRAINED;
    return gnomon_min(t->sampled, t->count * each);
}

static void gather(training *t, int64_t n)
{
    memset(t->first, 0, (size_t)(t->count + 1) * sizeof *t->first);
    for (int64_t i = 0; i < n; i++)
        t->first[t->nearest[i] + 1]++;
    for (int64_t c = 0; c < t->count; c++)
        t->first[c + 1] += t->first[c];
    for (int64_t i = n - 1; i >= 0; i--) /* each ends where its members begin */
        t->members[--t->first[t->nearest[i] + 1]] = i;
    memmove(t->first, t->first + 1, (size_t)t->count * sizeof *t->first);
    t->first[t->count] = n;
}

static void put_centre(const training *t, int64_t c, const double *x)
{
    const int64_t dim = t->points->cols;
    for (int64_t j = 0; j < dim; j++) {
        const double low = x[j] < -(double)FLT_MAX ? -(double)FLT_MAX : x[j];
        t->centres[c * dim + j] = (float)(low > (double)FLT_MAX ? (double)FLT_MAX : low);
    }
}

/* The mean of a centre's points; one without any stays where it is for now. */
static void move_centre(void *arg, int64_t c, int worker)
{
    training *t = arg;
    const int64_t dim = t->points->cols, begin = t->first[c], end = t->first[c + 1];
    double *sum = t->sums + worker * 2 * dim, *x = sum + dim;
    const int64_t bytes = dim * (int64_t)gnomon_dtype_size(t->points->dtype);
    if (begin == end) return;
    memset(sum, 0, (size_t)dim * sizeof *sum);
    for (int64_t e = begin; e < end; e++) {
        const int64_t i = row_of(t, t->members[e]);
        if (e + 1 < end) /* they lie apart */
            gnomon_prefetch(gnomon_row_at(t->points, row_of(t, t->members[e + 1])), bytes);
        double factor = 1 / (double)(end - begin);
        if (t->metric == GNOMON_COSINE) factor *= gnomon_inverse_norm(t->kernels, t->points, i);
        t->kernels->to_f64(gnomon_row_at(t->points, i), t->points->dtype, t->points->col_stride,
                           dim, x);
        for (int64_t j = 0; j < dim; j++)
            sum[j] += x[j] * factor;
    }
    put_centre(t, c, sum);
}

static void take_point(training *t, int64_t c, int64_t i)
{
    const int64_t dim = t->points->cols;
    t->kernels->to_f64(gnomon_row_at(t->points, row_of(t, i)), t->points->dtype,
                       t->points->col_stride, dim, t->sums);
    put_centre(t, c, t->sums);
}

/* Centres without points move to those that are farthest from their own, one each. */
static void fill_empty(training *t, int64_t n)
{
    double *far = t->far;
    for (int64_t c = 0; c < t->count; c++) {
        if (t->first[c] < t->first[c + 1]) continue;
        int64_t best = 0;
        for (int64_t i = 1; i < n; i++)
            if (far[i] > far[best]) best = i;
        if (!(far[best] > 0)) return; /* there are no more places than centres */
        take_point(t, c, best);
        far[best] = 0;
    }
}

static gnomon_status reserve(training *t)
{
    gnomon_context *ctx = t->ctx;
    const int64_t numbers = gnomon_times(gnomon_context_threads(ctx), 2 * t->points->cols);
    GNOMON_TRY(gnomon_alloc(ctx, t->count + 1, sizeof *t->first, "centres' points", &t->first));
    GNOMON_TRY(gnomon_alloc(ctx, t->sampled, sizeof *t->members, "centres' points", &t->members));
    GNOMON_TRY(gnomon_alloc(ctx, t->sampled, sizeof *t->nearest, "points' centres", &t->nearest));
    GNOMON_TRY(gnomon_alloc(ctx, t->sampled, sizeof *t->far, "points' centres", &t->far));
    return gnomon_alloc(ctx, numbers, sizeof *t->sums, "sums of points", &t->sums);
}

/* Rounds [from, to) of all. lists: of all points, the nearest centre so far or -1; NULL: not known,
 * and not wanted. */
static gnomon_status iterate(training *t, int from, int to, int32_t *lists)
{
    for (int64_t i = 0; i < t->sampled; i++)
        t->nearest[i] = lists != NULL ? lists[row_of(t, i)] : -1;
    for (int64_t c = 0; c < t->count && from == 0; c++)
        take_point(t, c, c); /* the sample is in a random order */
    for (int round = from; round < to; round++) {
        const int64_t n = points_of_round(t, round);
        GNOMON_TRY(
            gnomon_assign_nearest(t->assign, t->centres, t->count, t->rows, n, t->nearest, t->far));
        gather(t, n);
        gnomon_parallel(t->ctx, t->count, move_centre, t);
        fill_empty(t, n);
        GNOMON_TRY(gnomon_progress(t->ctx, "training", round + 1, GNOMON_LSH_ROUNDS));
    }
    for (int64_t i = 0; i < t->sampled && lists != NULL; i++)
        lists[row_of(t, i)] = t->nearest[i];
    return GNOMON_OK;
}

static gnomon_status train(training *t, int from, int to, int32_t *lists)
{
    gnomon_context *ctx = t->ctx;
    gnomon_status status = reserve(t);
    if (status == GNOMON_OK) status = iterate(t, from, to, lists);
    gnomon_free(ctx, t->first);
    gnomon_free(ctx, t->members);
    gnomon_free(ctx, t->nearest);
    gnomon_free(ctx, t->far);
    gnomon_free(ctx, t->sums);
    return status;
}

/* All rounds, on all of these points. */
static gnomon_status train_all(training *t, const gnomon_matrix *points)
{
    t->points = points;
    t->sampled = points->rows;
    GNOMON_TRY(gnomon_assign_open(t->ctx, t->metric, points, &t->assign));
    const gnomon_status status = train(t, 0, GNOMON_LSH_ROUNDS, NULL);
    gnomon_assign_close(t->assign);
    return status;
}

/* ---- the calls ---- */

static gnomon_status open(gnomon_context *ctx, gnomon_lsh_family family, const void *points,
                          int64_t count, float *centres, training *t)
{
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_NEED(ctx, centres, "centres");
    GNOMON_NEED(ctx, points, "points");
    GNOMON_TRY(gnomon_lsh_check_device(ctx));
    const gnomon_family_row *row = gnomon_family_row_of(family);
    GNOMON_FAIL_IF(row == NULL || row->centres == 0, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("family") " is %s; it must be k-means or spherical-k-means",
                   gnomon_lsh_family_name(family));
    *t = (training){.ctx = ctx,
                    .kernels = gnomon_cpu_kernels(gnomon_context_isa(ctx))->search,
                    .metric = row->centres,
                    .count = count,
                    .centres = centres};
    return GNOMON_OK;
}

static gnomon_status check_count(const training *t, int64_t rows)
{
    GNOMON_FAIL_IF(t->count < 2 || t->count > GNOMON_LSH_MOST_CENTRES || t->count > rows, t->ctx,
                   GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("count") " is %" PRId64 "; it must be 2 to 65536, and at most the "
                                       "%" PRId64 " points",
                   t->count, rows);
    return GNOMON_OK;
}

gnomon_status gnomon_lsh_train_behind(gnomon_context *ctx, gnomon_lsh_family family,
                                      const gnomon_lsh_behind *behind, int64_t count, int from,
                                      int to, float *centres, int32_t *lists)
{
    training t;
    int64_t *rows = NULL;
    const gnomon_matrix *points = behind->points;
    GNOMON_TRY(open(ctx, family, points, count, centres, &t));
    GNOMON_TRY(check_count(&t, points->rows - behind->skip));
    t.points = points;
    t.assign = behind->assign;
    t.sampled = points->rows - behind->skip;
    t.sampled = points_of_round(&t, to - 1);
    GNOMON_TRY(gnomon_alloc(ctx, t.sampled, sizeof *rows, "a sample", &rows));
    gnomon_some_rows_draw(points->rows, behind->seed, behind->skip, t.sampled, rows);
    t.rows = rows;
    const gnomon_status status = train(&t, from, to, lists);
    gnomon_free(ctx, rows);
    return status;
}

gnomon_status gnomon_lsh_train(gnomon_context *ctx, gnomon_lsh_family family,
                               const gnomon_matrix *points, int64_t count, uint64_t seed,
                               float *centres)
{
    training t;
    const gnomon_points all = {points, NULL};
    GNOMON_TRY(open(ctx, family, points, count, centres, &t));
    GNOMON_TRY(gnomon_points_check(ctx, &all, "points"));
    GNOMON_TRY(check_count(&t, points->rows));
    GNOMON_TRY(gnomon_check_rows(ctx, points, "points", 0));
    gnomon_some_points some;
    GNOMON_TRY(gnomon_some_points_draw(
        ctx, &all, seed, 0, gnomon_min(points->rows, count * GNOMON_LSH_TRAINED), &some));
    const gnomon_status status = train_all(&t, some.points.dense);
    gnomon_some_points_free(ctx, &some);
    return status;
}

typedef struct wanted {
    int64_t row, place; /* of all points, of the sample */
} wanted;

static int by_row(const void *a, const void *b)
{
    const wanted *x = a, *y = b;
    return (x->row > y->row) - (x->row < y->row);
}

static gnomon_status read_sample(gnomon_context *ctx, const gnomon_join_points *points,
                                 uint64_t seed, const gnomon_matrix *sample)
{
    const int64_t n = sample->rows;
    int64_t *rows = NULL;
    wanted *order = NULL;
    gnomon_status status = gnomon_alloc(ctx, n, sizeof *rows, "a sample", &rows);
    if (status == GNOMON_OK) status = gnomon_alloc(ctx, n, sizeof *order, "a sample", &order);
    if (status == GNOMON_OK) {
        gnomon_some_rows_draw(points->rows, seed, 0, n, rows);
        for (int64_t i = 0; i < n; i++)
            order[i] = (wanted){rows[i], i};
        qsort(order, (size_t)n, sizeof *order, by_row);
    }
    for (int64_t i = 0; i < n && status == GNOMON_OK; i++) {
        const gnomon_matrix to = gnomon_rows(sample, order[i].place, 1);
        status = points->read(points->user, order[i].row, &to);
        if (status == GNOMON_OK) status = gnomon_check_rows(ctx, &to, "points", order[i].row);
    }
    gnomon_free(ctx, rows);
    gnomon_free(ctx, order);
    return status;
}

gnomon_status gnomon_lsh_train_stream(gnomon_context *ctx, gnomon_lsh_family family,
                                      const gnomon_join_points *points, int64_t count,
                                      uint64_t seed, float *centres)
{
    training t;
    void *data;
    GNOMON_TRY(open(ctx, family, points, count, centres, &t));
    GNOMON_TRY(gnomon_lsh_check_stream(ctx, points));
    GNOMON_TRY(check_count(&t, points->rows));
    const int64_t most = gnomon_min(points->rows, count * GNOMON_LSH_TRAINED);
    GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(most, points->cols), gnomon_dtype_size(points->dtype),
                            "a sample", &data));
    const gnomon_matrix sample = gnomon_matrix_rowmajor(data, points->dtype, most, points->cols);
    gnomon_status status = read_sample(ctx, points, seed, &sample);
    if (status == GNOMON_OK) status = train_all(&t, &sample);
    gnomon_free(ctx, data);
    return status;
}

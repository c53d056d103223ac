/* Centres of k-means: Lloyd's iterations on some of the points (Lloyd 1982; for cosine Dhillon &
 * Modha 2001). Assignments are exact searches and sums are of fp64 in the order of the points, so
 * that the centres are the same on every machine. */
#include "base/arithmetic.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "kernels.h"
#include "lsh/families/family.h"
#include "lsh/tune/tune.h"
#include "points/view.h"
#include "search/state.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct training {
    gnomon_context *ctx;
    const gnomon_search_kernels *kernels;
    gnomon_metric metric;
    const gnomon_matrix *points; /* the sample's */
    int64_t count;
    int each, rounds; /* of the sample's points a centre, at most; iterations */
    float *centres;
    gnomon_neighbors nearest;
    int64_t *first, *members; /* a centre's points: members[first[c]] ... */
    double *sums;             /* a worker's: twice dim */
} training;

static void gather(training *t)
{
    const int64_t n = t->points->rows;
    memset(t->first, 0, (size_t)(t->count + 1) * sizeof *t->first);
    for (int64_t i = 0; i < n; i++)
        t->first[t->nearest.ids[i] + 1]++;
    for (int64_t c = 0; c < t->count; c++)
        t->first[c + 1] += t->first[c];
    for (int64_t i = n - 1; i >= 0; i--) /* each ends where its members begin */
        t->members[--t->first[t->nearest.ids[i] + 1]] = i;
    memmove(t->first, t->first + 1, (size_t)t->count * sizeof *t->first);
    t->first[t->count] = n;
}

/* The mean of a centre's points; one without any stays where it is for now. */
static void move_centre(void *arg, int64_t c, int worker)
{
    training *t = arg;
    const int64_t dim = t->points->cols, begin = t->first[c], end = t->first[c + 1];
    double *sum = t->sums + worker * 2 * dim, *x = sum + dim;
    if (begin == end) return;
    memset(sum, 0, (size_t)dim * sizeof *sum);
    for (int64_t e = begin; e < end; e++) {
        const int64_t i = t->members[e];
        double factor = 1 / (double)(end - begin);
        if (t->metric == GNOMON_COSINE) factor *= gnomon_inverse_norm(t->kernels, t->points, i);
        t->kernels->to_f64(gnomon_row_at(t->points, i), t->points->dtype, t->points->col_stride,
                           dim, x);
        for (int64_t j = 0; j < dim; j++)
            sum[j] += x[j] * factor;
    }
    for (int64_t j = 0; j < dim; j++)
        t->centres[c * dim + j] = (float)fmin(fmax(sum[j], -FLT_MAX), FLT_MAX);
}

static void take_point(training *t, int64_t c, int64_t i)
{
    const int64_t dim = t->points->cols;
    t->kernels->to_f64(gnomon_row_at(t->points, i), t->points->dtype, t->points->col_stride, dim,
                       t->sums);
    for (int64_t j = 0; j < dim; j++)
        t->centres[c * dim + j] = (float)fmin(fmax(t->sums[j], -FLT_MAX), FLT_MAX);
}

/* Centres without points move to those that are farthest from their own, one each. */
static void fill_empty(training *t)
{
    double *far = t->nearest.distances;
    for (int64_t c = 0; c < t->count; c++) {
        if (t->first[c] < t->first[c + 1]) continue;
        int64_t best = 0;
        for (int64_t i = 1; i < t->points->rows; i++)
            if (far[i] > far[best]) best = i;
        if (!(far[best] > 0)) return; /* there are no more places than centres */
        take_point(t, c, best);
        far[best] = 0;
    }
}

static gnomon_status iterate(training *t)
{
    gnomon_search_options o = GNOMON_SEARCH_OPTIONS_INIT;
    const gnomon_matrix base =
        gnomon_matrix_rowmajor(t->centres, GNOMON_F32, t->count, t->points->cols);
    o.metric = t->metric;
    o.k = 1;
    for (int round = 0; round < t->rounds; round++) {
        t->nearest = (gnomon_neighbors){.struct_size = sizeof t->nearest};
        GNOMON_TRY(gnomon_neighbors_exact(t->ctx, &base, t->points, &o, &t->nearest));
        gather(t);
        gnomon_parallel(t->ctx, t->count, move_centre, t);
        fill_empty(t);
        gnomon_neighbors_free(t->ctx, &t->nearest);
        GNOMON_TRY(gnomon_progress(t->ctx, "training", round + 1, t->rounds));
    }
    return GNOMON_OK;
}

static gnomon_status train(training *t)
{
    gnomon_context *ctx = t->ctx;
    const int64_t numbers = gnomon_times(gnomon_context_threads(ctx), 2 * t->points->cols);
    gnomon_status status =
        gnomon_alloc(ctx, t->count + 1, sizeof *t->first, "centres' points", &t->first);
    if (status == GNOMON_OK)
        status =
            gnomon_alloc(ctx, t->points->rows, sizeof *t->members, "centres' points", &t->members);
    if (status == GNOMON_OK)
        status = gnomon_alloc(ctx, numbers, sizeof *t->sums, "sums of points", &t->sums);
    for (int64_t c = 0; c < t->count && status == GNOMON_OK; c++)
        take_point(t, c, c); /* the sample is in a random order */
    if (status == GNOMON_OK) status = iterate(t);
    gnomon_free(ctx, t->first);
    gnomon_free(ctx, t->members);
    gnomon_free(ctx, t->sums);
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
                    .each = GNOMON_LSH_TRAINED,
                    .rounds = GNOMON_LSH_ROUNDS,
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

/* On points behind the first 'skip' of the seed's order. */
static gnomon_status train_on(training *t, const gnomon_points *all, uint64_t seed, int64_t skip)
{
    const int64_t rest = all->dense->rows - skip;
    gnomon_some_points some;
    GNOMON_TRY(gnomon_some_points_draw(t->ctx, all, seed, skip,
                                       gnomon_min(rest, t->count * t->each), &some));
    t->points = some.points.dense;
    const gnomon_status status = train(t);
    gnomon_some_points_free(t->ctx, &some);
    return status;
}

gnomon_status gnomon_lsh_train_behind(gnomon_context *ctx, gnomon_lsh_family family,
                                      const gnomon_matrix *points, int64_t count, uint64_t seed,
                                      int64_t skip, bool briefly, float *centres)
{
    training t;
    const gnomon_points all = {points, NULL};
    GNOMON_TRY(open(ctx, family, points, count, centres, &t));
    if (briefly) {
        t.each = GNOMON_LSH_TRAINED_BRIEFLY;
        t.rounds = GNOMON_LSH_BRIEF_ROUNDS;
    }
    GNOMON_TRY(check_count(&t, points->rows - skip));
    return train_on(&t, &all, seed, skip);
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
    return train_on(&t, &all, seed, 0);
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
    t.points = &sample;
    gnomon_status status = read_sample(ctx, points, seed, &sample);
    if (status == GNOMON_OK) status = train(&t);
    gnomon_free(ctx, data);
    return status;
}

/* A plugin of four devices that search and join by their definition, project by sums of rows and
 * check the sets that they are to hash, for the test of jobs that several devices share.
 * GNOMON_TEST_FAILS names a device that fails with its work begun, or with GNOMON_TEST_LATE set
 * once a sketch is written, GNOMON_TEST_REFUSES one that finds points it refuses then, of a join,
 * GNOMON_TEST_MISSING one that can't be opened. */
#include "hosvd/job.h"
#include "join/job.h"
#include "lsh/job.h"
#include "project/job.h"
#include "search/job.h"
#include "svd/job.h"

#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const gnomon_device_table *gnomon_plugin_entry(void);

enum { DEVICES = 4 };

typedef struct device {
    int index;
    int jobs;
    int joins;
} device;

/* Joins in which the device that is to fail has asked for rows. */
static atomic_int failing;

static int is_named(const char *variable, int index)
{
    const char *text = getenv(variable);
    return text != NULL && atoi(text) == index;
}

static gnomon_status fails(const device *d, char *why, size_t why_size)
{
    if (!is_named("GNOMON_TEST_FAILS", d->index)) return GNOMON_OK;
    snprintf(why, why_size, "it is on fire");
    return GNOMON_ERROR_DEVICE;
}

static gnomon_status refuses(const device *d, const gnomon_join_job *job, int64_t row, char *why,
                             size_t why_size)
{
    if (!is_named("GNOMON_TEST_REFUSES", d->index)) return GNOMON_OK;
    job->host->about(job->host->user, "p", row, 0);
    snprintf(why, why_size, "p has NaN or infinity in row %lld, column 0", (long long)row);
    return GNOMON_ERROR_NONFINITE;
}

static int count_devices(void)
{
    return DEVICES;
}

static gnomon_status open_device(int index, void **state, char *why, size_t why_size)
{
    if (index < 0) index = 0;
    if (index >= DEVICES) {
        snprintf(why, why_size, "there are %d devices", (int)DEVICES);
        return GNOMON_ERROR_ARGUMENT;
    }
    if (is_named("GNOMON_TEST_MISSING", index)) {
        snprintf(why, why_size, "it is missing");
        return GNOMON_ERROR_DEVICE;
    }
    device *d = calloc(1, sizeof *d);
    if (d == NULL) return GNOMON_ERROR_MEMORY;
    d->index = index;
    atomic_store(&failing, 0);
    snprintf(why, why_size, "slow device");
    *state = d;
    return GNOMON_OK;
}

static void close_device(void *state)
{
    free(state);
}

static const float *row_of(const gnomon_matrix *m, int64_t i)
{
    return (const float *)m->data + i * m->row_stride;
}

/* ---- sketches: y[i][j] = alpha * (j + 1) * the sum of x[i] ---- */

static void sum_row(void *arg, int64_t i, int worker)
{
    const gnomon_sketch_job *job = arg;
    (void)worker;
    double sum = 0;
    for (int64_t c = 0; c < job->x->cols; c++)
        sum += row_of(job->x, i)[c * job->x->col_stride];
    float *y = (float *)job->y->data + i * job->y->row_stride;
    for (int64_t j = 0; j < job->rows; j++)
        y[j * job->y->col_stride] = (float)(job->alpha * (double)(j + 1) * sum);
}

static int supports(void *state, const gnomon_sketch_job *job, int adjoint, char *why,
                    size_t why_size)
{
    (void)state;
    snprintf(why, why_size, "the slow device takes fp32");
    return !adjoint && job->x->dtype == GNOMON_F32;
}

static gnomon_status sketch(void *state, const gnomon_sketch_job *job, char *why, size_t why_size)
{
    device *d = state;
    const gnomon_matrix *x = job->x;
    d->jobs++;
    for (int64_t i = 0; i < x->rows; i++)
        for (int64_t c = 0; c < x->cols && job->check; c++) {
            if (isfinite(row_of(x, i)[c * x->col_stride])) continue;
            job->host->about(job->host->user, "x", job->host->row + i, c);
            snprintf(why, why_size, "x: element (%lld, %lld) is not finite",
                     (long long)(job->host->row + i), (long long)c);
            return GNOMON_ERROR_NONFINITE;
        }
    const bool late = getenv("GNOMON_TEST_LATE") != NULL;
    gnomon_status status = late ? GNOMON_OK : fails(d, why, why_size);
    if (status == GNOMON_OK && job->check) status = job->host->checked(job->host->user);
    if (status != GNOMON_OK) return status;
    if (job->host->progress(job->host->user, x->rows / 2, x->rows)) return GNOMON_ERROR_CANCELLED;
    job->host->parallel(job->host->user, x->rows, sum_row, (void *)job);
    return late ? fails(d, why, why_size) : GNOMON_OK;
}

static gnomon_status no_stream(void *state, const gnomon_sketch_job *job, void **stream, char *why,
                               size_t why_size)
{
    (void)state;
    (void)job;
    *stream = NULL;
    snprintf(why, why_size, "the slow device has no streams");
    return GNOMON_ERROR_DEVICE;
}

/* ---- searches ---- */

typedef struct seeking {
    const gnomon_search_job *job;
    int64_t queries, k;
    gnomon_nearest *nearest;
    gnomon_ranked *heaps;
} seeking;

static double distance(const float *a, const float *b, int64_t cols)
{
    double sum = 0;
    for (int64_t c = 0; c < cols; c++)
        sum += ((double)a[c] - b[c]) * ((double)a[c] - b[c]);
    return sqrt(sum);
}

static int search_supports(void *state, const gnomon_search_job *job, char *why, size_t why_size)
{
    (void)state;
    snprintf(why, why_size, "the slow device takes dense points by L2");
    return job->sets == NULL && job->options->metric == GNOMON_L2;
}

static void search_close(void *state, void *search)
{
    (void)state;
    seeking *s = search;
    free(s->nearest);
    free(s->heaps);
    free(s);
}

static gnomon_status search_open(void *state, const gnomon_search_job *job, void **search,
                                 char *why, size_t why_size)
{
    (void)state;
    (void)why;
    (void)why_size;
    seeking *s = calloc(1, sizeof *s);
    if (s == NULL) return GNOMON_ERROR_MEMORY;
    s->job = job;
    s->queries = job->queries->rows;
    s->k = job->options->k;
    s->nearest = calloc((size_t)s->queries + 1, sizeof *s->nearest);
    s->heaps = calloc((size_t)(s->queries * s->k) + 1, sizeof *s->heaps);
    if (s->nearest == NULL || s->heaps == NULL) {
        search_close(state, s);
        return GNOMON_ERROR_MEMORY;
    }
    *search = s;
    return GNOMON_OK;
}

/* The k nearest in order, by insertion. */
static void offer(seeking *s, int64_t q, gnomon_ranked point)
{
    gnomon_ranked *list = s->heaps + q * s->k;
    int64_t *count = &s->nearest[q].count, at = *count;
    if (at == s->k && !gnomon_ranked_before(point, list[at - 1])) return;
    if (at == s->k) at--;
    for (; at > 0 && gnomon_ranked_before(point, list[at - 1]); at--)
        list[at] = list[at - 1];
    list[at] = point;
    if (*count < s->k) ++*count;
}

static gnomon_status search_add(void *state, void *search, gnomon_search_piece *piece, char *why,
                                size_t why_size)
{
    seeking *s = search;
    const gnomon_search_job *job = s->job;
    const gnomon_search_options *o = job->options;
    const gnomon_status status = fails(state, why, why_size);
    if (status != GNOMON_OK) return status;
    for (int64_t q = 0; q < s->queries; q++)
        for (int64_t i = 0; i < piece->base->rows; i++) {
            const int64_t id = piece->first + i;
            if (o->exclude >= 0 && o->exclude + q == id) continue;
            if (o->filter && (id >= o->filter_bits || !(o->filter[id / 8] >> (id % 8) & 1)))
                continue;
            const gnomon_ranked point = {
                distance(row_of(job->queries, q), row_of(piece->base, i), piece->base->cols), id};
            gnomon_hit *at;
            if (s->k > 0) {
                offer(s, q, point);
            } else if (point.key <= job->limit) {
                const gnomon_status got = job->calls->hits(job->calls->user, 1, &at);
                if (got != GNOMON_OK) return got;
                *at = (gnomon_hit){q, point};
            }
        }
    piece->compared = s->queries * piece->base->rows;
    return GNOMON_OK;
}

static gnomon_status search_finish(void *state, void *search, int64_t *counts, int64_t *ids,
                                   double *distances, char *why, size_t why_size)
{
    (void)state;
    (void)why;
    (void)why_size;
    const seeking *s = search;
    for (int64_t q = 0; q < s->queries; q++) {
        counts[q] = s->nearest[q].count;
        for (int64_t i = 0; i < counts[q]; i++) {
            ids[q * s->k + i] = s->heaps[q * s->k + i].id;
            distances[q * s->k + i] = s->heaps[q * s->k + i].key;
        }
    }
    return GNOMON_OK;
}

/* ---- joins ---- */

static int join_supports(void *state, const gnomon_join_job *job, char *why, size_t why_size)
{
    (void)state;
    snprintf(why, why_size, "the slow device joins dense points by L2");
    return job->p != NULL && job->metric == GNOMON_L2 && job->hashing != GNOMON_JOIN_MUST_HASH;
}

/* The next rows; but the device that is to fail gets some before all others. */
static void next_rows(const device *d, const gnomon_join_host *calls, int64_t *first, int64_t *end)
{
    const bool fails_here =
        is_named("GNOMON_TEST_FAILS", d->index) || is_named("GNOMON_TEST_REFUSES", d->index);
    const bool one_fails = getenv("GNOMON_TEST_FAILS") || getenv("GNOMON_TEST_REFUSES");
    while (one_fails && !fails_here && atomic_load(&failing) < d->joins)
        sched_yield();
    calls->rows(calls->user, first, end);
    if (fails_here) atomic_store(&failing, d->joins);
}

static gnomon_status join(void *state, gnomon_join_job *job, char *why, size_t why_size)
{
    enum { FEW = 37 };
    device *d = state;
    const gnomon_matrix *p = job->p, *q = job->q ? job->q : job->p;
    const gnomon_join_host *calls = job->calls;
    gnomon_pair some[FEW];
    gnomon_status status = calls->check(calls->user);
    int64_t first, end;
    if (status != GNOMON_OK) return status;
    snprintf(job->why, sizeof job->why, "by definition");
    d->joins++;
    for (next_rows(d, calls, &first, &end); first < end; next_rows(d, calls, &first, &end)) {
        int64_t count = 0;
        status = fails(d, why, why_size);
        if (status == GNOMON_OK) status = refuses(d, job, first, why, why_size);
        for (int64_t i = first; i < end && status == GNOMON_OK; i++) {
            for (int64_t j = job->q ? 0 : i + 1; j < q->rows && status == GNOMON_OK; j++) {
                const double apart = distance(row_of(p, i), row_of(q, j), p->cols);
                job->compared++;
                if (apart > job->threshold) continue;
                if (!job->want_pairs) job->pairs++;
                if (!job->want_pairs) continue;
                if (count == FEW) {
                    status = calls->emit(calls->user, some[FEW - 1].i, some, FEW);
                    count = 0;
                }
                some[count++] = (gnomon_pair){i, j, apart};
            }
            if (status == GNOMON_OK && job->host->progress(job->host->user, i, p->rows))
                status = GNOMON_ERROR_CANCELLED;
        }
        if (status == GNOMON_OK && job->want_pairs)
            status = calls->emit(calls->user, end, some, count);
        if (status != GNOMON_OK) return status;
    }
    return GNOMON_OK;
}

/* ---- values of sets, all 7 ---- */

static int lsh_supports(void *state, const gnomon_lsh_job *job, char *why, size_t why_size)
{
    (void)state;
    snprintf(why, why_size, "the slow device hashes sets of fp32");
    return job->sets != NULL && job->values != NULL && job->sets->dtype == GNOMON_F32;
}

static gnomon_status lsh(void *state, const gnomon_lsh_job *job, char *why, size_t why_size)
{
    (void)state;
    const gnomon_csr *m = job->sets;
    const gnomon_matrix *values = job->values;
    for (int64_t e = 0; e < m->offsets[m->rows] - m->offsets[0]; e++) {
        if (isfinite(((const float *)m->values)[e])) continue;
        job->host->about(job->host->user, "points", -1, -1);
        snprintf(why, why_size, "points has NaN or infinity in entry %lld",
                 (long long)(job->first_entry + e));
        return GNOMON_ERROR_NONFINITE;
    }
    for (int64_t i = 0; i < values->rows; i++)
        for (int64_t j = 0; j < values->cols; j++)
            ((int32_t *)values->data)[i * values->row_stride + j * values->col_stride] = 7;
    return GNOMON_OK;
}

/* ---- factorisations, which fail by telling what they were given ---- */

static atomic_int awaited;

static gnomon_status await(void *state, void *stream, char *why, size_t why_size)
{
    (void)state, (void)stream, (void)why, (void)why_size;
    atomic_fetch_add(&awaited, 1);
    return GNOMON_OK;
}

static gnomon_status tell(const device *d, int others, int64_t memory, char *why, size_t why_size)
{
    snprintf(why, why_size, "device %d with %d others and %lld bytes behind %d devices", d->index,
             others, (long long)memory, atomic_exchange(&awaited, 0));
    return GNOMON_ERROR_DEVICE;
}

static int svd_supports(void *state, const gnomon_svd_job *job, char *why, size_t why_size)
{
    (void)state, (void)job, (void)why, (void)why_size;
    return 1;
}

static gnomon_status svd(void *state, gnomon_svd_job *job, char *why, size_t why_size)
{
    return tell(state, job->other_count, job->memory_limit, why, why_size);
}

static int hosvd_supports(void *state, const gnomon_hosvd_job *job, char *why, size_t why_size)
{
    (void)state, (void)job, (void)why, (void)why_size;
    return 1;
}

static gnomon_status hosvd(void *state, gnomon_hosvd_job *job, char *why, size_t why_size)
{
    return tell(state, job->other_count, job->memory_limit, why, why_size);
}

const gnomon_device_table *gnomon_plugin_entry(void)
{
    static const gnomon_device_table table = {
        .interface_version = GNOMON_DEVICE_INTERFACE,
        .name = "slow",
        .open = open_device,
        .close = close_device,
        .count = count_devices,
        .await = await,
        .supports = supports,
        .sketch = sketch,
        .adjoint = sketch,
        .stream_open = no_stream,
        .search_supports = search_supports,
        .search_open = search_open,
        .search_add = search_add,
        .search_finish = search_finish,
        .search_close = search_close,
        .join_supports = join_supports,
        .join = join,
        .lsh_supports = lsh_supports,
        .lsh = lsh,
        .svd_supports = svd_supports,
        .svd = svd,
        .hosvd_supports = hosvd_supports,
        .hosvd = hosvd,
    };
    return &table;
}

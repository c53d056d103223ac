/* A device plugin of no device, for the test of finding and asking one. The build makes it in
 * several forms: see CMakeLists.txt here. */
#include "gemm/job.h"
#include "hosvd/job.h"
#include "lsh/job.h"
#include "project/job.h"
#include "search/job.h"
#include "svd/job.h"

#include <stdio.h>

#ifdef PLUGIN_SECOND
#define PLUGIN_NAME "second"
#else
#define PLUGIN_NAME "test"
#endif

const gnomon_device_table *gnomon_plugin_entry(void);

static gnomon_status open_device(int device, void **state, char *why, size_t why_size)
{
    static int opened;
#ifdef PLUGIN_DECLINES
    (void)device;
    (void)state;
    (void)opened;
    snprintf(why, why_size, "the test device is out of order");
    return GNOMON_ERROR_DEVICE;
#else
    *state = &opened;
    snprintf(why, why_size, "test device %d", device);
    return GNOMON_OK;
#endif
}

static void close_device(void *state)
{
    (void)state;
}

/* It takes operators of two rows only; the second, of three. */
static int supports(void *state, const struct gnomon_sketch_job *job, int adjoint, char *why,
                    size_t why_size)
{
    (void)state;
#ifdef PLUGIN_SECOND
    snprintf(why, why_size, "the test device takes three rows");
    return job->rows == 3 && !adjoint;
#else
    snprintf(why, why_size, "the test device takes two rows, no more%s", adjoint ? "!" : "");
    return job->rows == 2;
#endif
}

/* Tells what it was given through the first numbers of the output, and fails with the status that
 * alpha is. */
static gnomon_status work(const struct gnomon_sketch_job *job, const gnomon_matrix *out, char *why,
                          size_t why_size)
{
    float *first = out->data;
    first[0] = (float)job->row;
    first[1] = job->stream == (void *)job->op ? 1.0f : 0.0f;
    snprintf(why, why_size, "the test device gives status %g", job->alpha);
    if (job->alpha == GNOMON_ERROR_CANCELLED)
        return job->host->progress(job->host->user, 1, 2) ? GNOMON_ERROR_CANCELLED : GNOMON_OK;
    return (gnomon_status)job->alpha;
}

static gnomon_status sketch(void *state, const struct gnomon_sketch_job *job, char *why,
                            size_t why_size)
{
    (void)state;
    return work(job, job->y, why, why_size);
}

static gnomon_status adjoint(void *state, const struct gnomon_sketch_job *job, char *why,
                             size_t why_size)
{
    (void)state;
    return work(job, job->x, why, why_size);
}

static gnomon_status stream_open(void *state, const struct gnomon_sketch_job *job, void **stream,
                                 char *why, size_t why_size)
{
    (void)state;
    (void)job;
    *stream = NULL;
    snprintf(why, why_size, "the test device has no streams");
    return GNOMON_ERROR_DEVICE;
}

static gnomon_status stream_use(void *state, void *stream, const gnomon_matrix *m, char *why,
                                size_t why_size)
{
    (void)state;
    (void)stream;
    (void)m;
    snprintf(why, why_size, "the test device has no streams");
    return GNOMON_ERROR_DEVICE;
}

static void stream_close(void *state, void *stream)
{
    (void)state;
    (void)stream;
}

#ifdef PLUGIN_NO_GEMM
#define rows_support NULL
#define sketch_rows  NULL
#else
/* Sparse rows by operators of two rows. */
static int rows_support(void *state, const struct gnomon_sketch_job *job, char *why,
                        size_t why_size)
{
    (void)state;
    snprintf(why, why_size, "the test device projects sparse rows to two numbers");
    return job->rows == 2;
}

/* Tells where the rows lie, and whether they are known to ascend; the status is alpha. */
static gnomon_status sketch_rows(void *state, const struct gnomon_sketch_job *job, char *why,
                                 size_t why_size)
{
    (void)state;
    float *first = job->y->data;
    first[0] = (float)job->csr_memory;
    first[1] = job->sorted ? 1.0f : 0.0f;
    first[2] = (float)job->csr->rows;
    snprintf(why, why_size, "the test device gives status %g", job->alpha);
    job->host->about(job->host->user, "x", 7, 9);
    return (gnomon_status)job->alpha;
}
#endif

#ifdef PLUGIN_NO_GEMM
#define factor_supports NULL
#define factor          NULL
#else
/* It takes rank 3 only. */
static int factor_supports(void *state, const struct gnomon_svd_job *job, char *why,
                           size_t why_size)
{
    (void)state;
    snprintf(why, why_size, "the test device takes rank 3 only");
    return job->options->rank == 3;
}

/* What the core does for sparse rows: U is their sketch, 'norm' a bound; one pass is told by psi.
 */
static gnomon_status factor_lists(struct gnomon_svd_job *job)
{
    double lengths[4] = {3, 3, 3, 3};
    gnomon_matrix u, vt;
    const int64_t rank = job->columns;
    job->exponent = 1;
    for (int64_t i = 0; i < job->columns; i++)
        job->s[i] = 1;
    gnomon_status status = job->calls->make_room(job->calls->user, rank, &u, &vt);
    if (status == GNOMON_OK) status = job->calls->sketch(job->calls->user, &u);
    job->norm = job->calls->bound_of(job->calls->user, lengths, 4);
    job->used_columns = job->columns;
    job->passes = job->psi != NULL && job->options->single_pass ? 1 : 2;
    for (int64_t i = 0; i < job->options->test_vectors; i++)
        job->lengths[i] = 3; /* of more steps there is nothing in one pass */
    return status;
}

/* Singular values columns, columns - 1 ...; a number of its own for every other figure. The first
 * number of the matrix is the status. */
static gnomon_status factor(void *state, struct gnomon_svd_job *job, char *why, size_t why_size)
{
    (void)state;
    const float *a = job->a->data;
    gnomon_matrix u, vt;
    why[0] = 0;
    if (job->csr != NULL) return factor_lists(job);
    snprintf(why, why_size, "the test device gives status %g", a[0]);
    if (a[0] == GNOMON_ERROR_CANCELLED)
        return job->host->progress(job->host->user, 1, 2) ? GNOMON_ERROR_CANCELLED : GNOMON_OK;
    if (a[0] != GNOMON_OK) return (gnomon_status)a[0];
    for (int64_t i = 0; i < job->columns; i++)
        job->s[i] = (double)(job->columns - i);
    if (job->options->center) { /* 'norm' is the last mean: of 2 where it is to be found here */
        if (!job->has_mean)
            for (int64_t j = 0; j < job->a->cols; j++)
                job->mean[j] = job->sum_rows == 256 ? 2 : 0;
        if (job->exponent != 0) return GNOMON_ERROR_INTERNAL;
    }
    job->exponent = 1;
    job->norm = job->options->center ? job->mean[job->a->cols - 1] : 10;
    const int64_t rank = job->calls->choose_rank(job->calls->user, job->s, job->columns, job->rest);
    const gnomon_status status = job->calls->make_room(job->calls->user, rank, &u, &vt);
    if (status != GNOMON_OK) {
        why[0] = 0;
        return status;
    }
    for (int64_t i = 0; i < u.rows * u.cols; i++)
        ((float *)u.data)[i / u.cols * u.row_stride + i % u.cols * u.col_stride] = 1;
    for (int64_t i = 0; i < vt.rows * vt.cols; i++)
        ((float *)vt.data)[i / vt.cols * vt.row_stride + i % vt.cols * vt.col_stride] = 2;
    const int64_t steps = job->options->test_vectors * (job->options->test_power + 1);
    for (int64_t i = 0; i < steps; i++)
        job->lengths[i] = i < job->options->test_vectors ? 3 : 9;
    job->used_columns = job->columns;
    job->passes = 11;
    job->cholesky = 4;
    job->householder = 5;
    job->project_seconds = 6;
    job->residual = 7;
    return GNOMON_OK;
}
#endif

#ifdef PLUGIN_NO_GEMM
#define tensor_supports NULL
#define factor_tensor   NULL
#else
/* It takes tensors of three modes only. */
static int tensor_supports(void *state, const struct gnomon_hosvd_job *job, char *why,
                           size_t why_size)
{
    (void)state;
    snprintf(why, why_size, "the test device takes three modes only");
    return job->modes == 3;
}

/* The core counts on in the job's order of modes; factor n is full of n + 1, and tells how its
 * operator looks. The first number of the tensor is the status. */
static gnomon_status factor_tensor(void *state, struct gnomon_hosvd_job *job, char *why,
                                   size_t why_size)
{
    (void)state;
    const float *x = job->x.data;
    int64_t index[3], count = 0;
    snprintf(why, why_size, "the test device gives status %g", x[0]);
    if (x[0] == GNOMON_ERROR_CANCELLED)
        return job->host->progress(job->host->user, 1, 2) ? GNOMON_ERROR_CANCELLED : GNOMON_OK;
    job->bad_row = 0;
    job->bad_col = 17;
    if (x[0] != GNOMON_OK) return (gnomon_status)x[0];
    const gnomon_status status = job->calls->make_room(job->calls->user, job->rank);
    if (status != GNOMON_OK) return status;
    float *const core = job->core;
    for (index[0] = 0; index[0] < job->rank[0]; index[0]++)
        for (index[1] = 0; index[1] < job->rank[1]; index[1]++)
            for (index[2] = 0; index[2] < job->rank[2]; index[2]++)
                core[index[0] * job->core_step[0] + index[1] * job->core_step[1] +
                     index[2] * job->core_step[2]] = (float)count++;
    for (int n = 0; n < 3; n++) {
        float *const factor = job->factor[n];
        for (int64_t i = 0; i < job->size[n] * job->rank[n]; i++)
            factor[i] = (float)(n + 1);
        for (int64_t j = 0; j < job->rank[n]; j++)
            job->values[n][j] = (double)(job->rank[n] - j);
        if (job->op[n] == NULL) continue;
        factor[0] = (float)job->op[n]->descriptor.k;
        factor[1] = (float)job->op[n]->descriptor.d;
    }
    job->exponent = 1;
    job->norm = 10;
    job->residual = 3;
    job->residual_by = GNOMON_RESIDUAL_MEASURED;
    job->passes = 11;
    job->cholesky = 4;
    job->householder = job->order[0];
    job->shrink_seconds = 6;
    return GNOMON_OK;
}
#endif

#ifdef PLUGIN_NO_GEMM
#define multiply_supports NULL
#define multiply          NULL
#else
/* It takes products of two columns only. */
static int multiply_supports(void *state, const struct gnomon_gemm_job *job, char *why,
                             size_t why_size)
{
    (void)state;
    snprintf(why, why_size, "the test device takes two columns, no more");
    return job->b->cols == 2;
}

/* As 'work': what it was given goes into C, alpha is the status. */
static gnomon_status multiply(void *state, const struct gnomon_gemm_job *job, char *why,
                              size_t why_size)
{
    (void)state;
    float *first = job->c->data;
    first[0] = (float)job->form;
    first[1] = (float)job->beta;
    first[2] = job->stream == job->a->data ? 1.0f : 0.0f;
    snprintf(why, why_size, "the test device gives status %g", job->alpha);
    if (job->alpha == GNOMON_ERROR_CANCELLED)
        return job->host->progress(job->host->user, 1, 2) ? GNOMON_ERROR_CANCELLED : GNOMON_OK;
    return (gnomon_status)job->alpha;
}
#endif

#ifdef PLUGIN_NO_GEMM
#define seek_supports NULL
#define seek_open     NULL
#define seek_add      NULL
#define seek_finish   NULL
#define seek_close    NULL
#else
/* It takes two queries only. */
static int seek_supports(void *state, const struct gnomon_search_job *job, char *why,
                         size_t why_size)
{
    (void)state;
    snprintf(why, why_size, "the test device takes two queries, no more");
    return (job->sets ? job->sets->rows : job->queries->rows) == 2;
}

static gnomon_status seek_open(void *state, const struct gnomon_search_job *job, void **search,
                               char *why, size_t why_size)
{
    (void)state;
    (void)why;
    (void)why_size;
    *search = (void *)job;
    return GNOMON_OK;
}

/* The base's first number is the status; by radius each piece gives three hits of query 1. */
static gnomon_status seek_add(void *state, void *search, struct gnomon_search_piece *piece,
                              char *why, size_t why_size)
{
    (void)state;
    const gnomon_search_job *job = search;
    if (piece->sets) { /* a base of three is not sound */
        piece->faulty = piece->sets->rows == 3;
        return GNOMON_OK;
    }
    const float *first = piece->base->data;
    snprintf(why, why_size, "the test device gives status %g", first[0]);
    piece->compared = 10 + piece->first;
    piece->verified = 1;
    if (first[0] == GNOMON_ERROR_CANCELLED)
        return job->host->progress(job->host->user, 1, 2) ? GNOMON_ERROR_CANCELLED : GNOMON_OK;
    if (first[0] != GNOMON_OK || job->options->k > 0) return (gnomon_status)first[0];
    gnomon_hit *at;
    const gnomon_status status = job->calls->hits(job->calls->user, 3, &at);
    for (int i = 0; i < 3 && status == GNOMON_OK; i++)
        at[i] = (gnomon_hit){1, {job->limit - i, piece->first + i}};
    return status;
}

/* Query q's i-th nearest is point 10 q + i at distance i; query 1 of k 3 has but two. Sets have
 * one: point 2 - q at 1 / 2. */
static gnomon_status seek_finish(void *state, void *search, int64_t *counts, int64_t *ids,
                                 double *distances, char *why, size_t why_size)
{
    (void)state;
    (void)why;
    (void)why_size;
    const gnomon_search_job *job = search;
    const int64_t k = job->options->k;
    for (int64_t q = 0; q < 2 && job->sets; q++) {
        counts[q] = 1;
        ids[q * k] = 2 - q;
        distances[q * k] = 0.5;
    }
    for (int64_t q = 0; q < 2 && !job->sets; q++) {
        counts[q] = q == 1 && k == 3 ? 2 : k;
        for (int64_t i = 0; i < k; i++) {
            ids[q * k + i] = 10 * q + i;
            distances[q * k + i] = (double)i;
        }
    }
    return GNOMON_OK;
}

static void seek_close(void *state, void *search)
{
    (void)state;
    (void)search;
}
#endif

#ifdef PLUGIN_NO_GEMM
#define hash_supports NULL
#define hash          NULL
#else
/* It takes three functions only. */
static int hash_supports(void *state, const struct gnomon_lsh_job *job, char *why, size_t why_size)
{
    (void)state;
    snprintf(why, why_size, "the test device takes three functions%s", job->same ? ", alike" : "");
    return job->hasher->f.count == 3;
}

/* Value 77 and whether they must be the CPU's; keys of 5 for all; tables of one bucket with that
 * key. The first number of the points is the status. */
static gnomon_status hash(void *state, const struct gnomon_lsh_job *job, char *why, size_t why_size)
{
    (void)state;
    const float *x = job->points->data;
    const int64_t n = job->points->rows;
    snprintf(why, why_size, "the test device gives status %g", x[0]);
    if (x[0] != GNOMON_OK) return (gnomon_status)x[0];
    if (job->values) {
        int32_t *first = job->values->data;
        first[0] = 77;
        first[1] = job->same;
    }
    for (int64_t i = 0; job->keys && i < job->tables * n; i++)
        job->keys[i] = 5;
    for (int64_t t = 0; job->rooms && t < job->tables; t++) {
        gnomon_table table;
        const gnomon_status status = job->rooms->make(job->rooms->user, t, n, 1, &table);
        if (status != GNOMON_OK) {
            why[0] = 0;
            return status;
        }
        table.keys[0] = 5;
        table.first[0] = 0;
        table.first[1] = (uint32_t)n;
        for (int64_t i = 0; i < n; i++)
            table.ids[i] = job->first_id + (uint32_t)i;
        table.directory[0] = 0;
        table.directory[1] = 1;
    }
    return GNOMON_OK;
}
#endif

#ifndef PLUGIN_VERSION
#define PLUGIN_VERSION GNOMON_DEVICE_INTERFACE
#endif
#ifdef PLUGIN_NO_ENTRY
#define gnomon_plugin_entry gnomon_another_name
const gnomon_device_table *gnomon_another_name(void);
#endif

const gnomon_device_table *gnomon_plugin_entry(void)
{
    static const gnomon_device_table table = {
        .interface_version = PLUGIN_VERSION,
        .name = PLUGIN_NAME,
        .open = open_device,
        .close = close_device,
        .supports = supports,
        .sketch = sketch,
        .adjoint = adjoint,
        .stream_open = stream_open,
        .stream_push = stream_use,
        .stream_finish = stream_use,
        .stream_close = stream_close,
        .gemm_supports = multiply_supports,
        .gemm = multiply,
        .svd_supports = factor_supports,
        .svd = factor,
        .hosvd_supports = tensor_supports,
        .hosvd = factor_tensor,
        .search_supports = seek_supports,
        .search_open = seek_open,
        .search_add = seek_add,
        .search_finish = seek_finish,
        .search_close = seek_close,
        .lsh_supports = hash_supports,
        .lsh = hash,
        .sparse_supports = rows_support,
        .sparse_sketch = sketch_rows,
    };
    return &table;
}

/* A device plugin of no device, for the test of finding and asking one. The build makes it in
 * several forms: see CMakeLists.txt here. */
#include "gemm/job.h"
#include "project/job.h"
#include "svd/job.h"

#include <stdio.h>

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

/* It takes operators of two rows only. */
static int supports(void *state, const struct gnomon_sketch_job *job, int adjoint, char *why,
                    size_t why_size)
{
    (void)state;
    snprintf(why, why_size, "the test device takes two rows, no more%s", adjoint ? "!" : "");
    return job->rows == 2;
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
#define svd_supports NULL
#define svd          NULL
#else
/* It takes rank 3 only. */
static int svd_supports(void *state, const struct gnomon_svd_job *job, char *why, size_t why_size)
{
    (void)state;
    snprintf(why, why_size, "the test device takes rank 3 only");
    return job->options->rank == 3;
}

/* Singular values columns, columns - 1 ...; a number of its own for every other figure. The first
 * number of the matrix is the status. */
static gnomon_status svd(void *state, struct gnomon_svd_job *job, char *why, size_t why_size)
{
    (void)state;
    const float *a = job->a->data;
    gnomon_matrix u, vt;
    snprintf(why, why_size, "the test device gives status %g", a[0]);
    if (a[0] == GNOMON_ERROR_CANCELLED)
        return job->host->progress(job->host->user, 1, 2) ? GNOMON_ERROR_CANCELLED : GNOMON_OK;
    if (a[0] != GNOMON_OK) return (gnomon_status)a[0];
    for (int64_t i = 0; i < job->columns; i++)
        job->s[i] = (double)(job->columns - i);
    job->exponent = 1;
    job->norm = 10;
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
    const int64_t steps = job->options->probes * (job->options->probe_power + 1);
    for (int64_t i = 0; i < steps; i++)
        job->lengths[i] = i < job->options->probes ? 3 : 9;
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
#define gemm_supports NULL
#define gemm          NULL
#else
/* It takes products of two columns only. */
static int gemm_supports(void *state, const struct gnomon_gemm_job *job, char *why, size_t why_size)
{
    (void)state;
    snprintf(why, why_size, "the test device takes two columns, no more");
    return job->b->cols == 2;
}

/* As 'work': what it was given goes into C, alpha is the status. */
static gnomon_status gemm(void *state, const struct gnomon_gemm_job *job, char *why,
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
        PLUGIN_VERSION, "test",       open_device, close_device, supports,     sketch,
        adjoint,        stream_open,  stream_use,  stream_use,   stream_close, gemm_supports,
        gemm,           svd_supports, svd,         NULL,         NULL,         NULL,
        NULL,           NULL,         NULL,        NULL,
    };
    return &table;
}

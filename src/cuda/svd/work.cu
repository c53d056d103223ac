/* A factorisation at work: what its steps need, its clock, what it tells. */
#include "cuda/svd/svd.h"

#include <stdlib.h>

gnomon_status gcu_svd_lap(gcu_svd *v, gcu_phase phase)
{
    gcu_laps *l = &v->laps;
    if (l->count == l->room) {
        const int room = l->room ? 2 * l->room : 64;
        void *events = realloc(l->event, (size_t)room * sizeof *l->event);
        if (events) l->event = static_cast<cudaEvent_t *>(events);
        void *phases = events ? realloc(l->phase, (size_t)room * sizeof *l->phase) : nullptr;
        if (!phases) return gcu_fail(v->why, GNOMON_ERROR_MEMORY, "no memory for events");
        l->phase = static_cast<gcu_phase *>(phases);
        l->room = room;
    }
    GCU_TRY(v->why, cudaEventCreate(&l->event[l->count]));
    l->phase[l->count++] = phase;
    GCU_TRY(v->why, cudaEventRecord(l->event[l->count - 1], v->stream));
    return GNOMON_OK;
}

gnomon_status gcu_svd_tell(gcu_svd *v)
{
    const gnomon_device_host *host = v->job->host;
    return host->progress(host->user, v->job->passes, -1) ? GNOMON_ERROR_CANCELLED : GNOMON_OK;
}

gnomon_status gcu_svd_close(gcu_svd *v, double seconds[GCU_PHASES], gnomon_status status)
{
    gcu_laps *l = &v->laps;
    gcu_svd_free(v, 0);
    gcu_free(v->product_work, v->stream);
    const cudaError_t error = cudaStreamSynchronize(v->stream);
    if (status == GNOMON_OK && error != cudaSuccess) status = gcu_status(v->why, error, "kernels");
    for (int i = 0; i < GCU_PHASES; i++)
        seconds[i] = 0;
    for (int i = 0; i < l->count; i++) {
        float ms = 0;
        if (i > 0 && cudaEventElapsedTime(&ms, l->event[i - 1], l->event[i]) == cudaSuccess)
            seconds[l->phase[i]] += 1e-3 * (double)ms;
    }
    for (int i = 0; i < l->count; i++)
        cudaEventDestroy(l->event[i]);
    free(l->event);
    free(l->phase);
    free(v->eigen_host);
    return status;
}

/* Numbers of a tall matrix: rows for whole chunks. */
static int64_t tall_numbers(const gcu_svd *v, int64_t columns)
{
    return ((v->m > v->n ? v->m : v->n) + GCU_SVD_CHUNKS) * columns;
}

gnomon_status gcu_svd_alloc_small(gcu_svd *v, int64_t n)
{
    const int64_t small = n * n;
    free(v->eigen_host);
    v->eigen_host = nullptr;
    gnomon_status status = gcu_svd_room(v, (GCU_SVD_CHUNKS + 1) * small, &v->chunks);
    double **const smalls[] = {&v->gram, &v->factor, &v->vectors, &v->kept};
    for (double **one : smalls)
        if (status == GNOMON_OK) status = gcu_svd_room(v, small, one);
    if (status == GNOMON_OK) status = gcu_svd_room(v, n, &v->values);
    if (status == GNOMON_OK) status = gcu_svd_room(v, n, &v->sign);
    if (status == GNOMON_OK) status = gcu_svd_room(v, 1, &v->info);
    if (status == GNOMON_OK) status = gcu_svd_room(v, 1, &v->stats);
    if (status == GNOMON_OK) status = gcu_cholesky_work(v->blas, n, &v->work_count, v->why);
    if (status == GNOMON_OK) status = gcu_svd_room(v, v->work_count, &v->work);
    if (status == GNOMON_OK)
        status = gcu_eigen_work(v->blas, n, &v->eigen_device_bytes, &v->eigen_host_bytes, v->why);
    if (status == GNOMON_OK) status = gcu_svd_alloc(v, v->eigen_device_bytes, &v->eigen_device);
    if (status != GNOMON_OK) return status;
    v->eigen_host = malloc(v->eigen_host_bytes + 1);
    return v->eigen_host ? GNOMON_OK
                         : gcu_fail(v->why, GNOMON_ERROR_MEMORY, "no memory for eigenvalues");
}

gnomon_status gcu_svd_alloc_columns(gcu_svd *v, int64_t columns, bool both)
{
    const int64_t tall = both ? tall_numbers(v, columns) : (v->m + GCU_SVD_CHUNKS) * columns;
    v->columns = columns;
    gnomon_status status = gcu_svd_room(v, v->m * columns, &v->y);
    if (status == GNOMON_OK && both) status = gcu_svd_room(v, v->n * columns, &v->z);
    if (status == GNOMON_OK && both) status = gcu_svd_alloc(v, (size_t)tall * 2, &v->half);
    if (status == GNOMON_OK) status = gcu_svd_room(v, tall, &v->q);
    for (double *&one : v->tall)
        if (status == GNOMON_OK) status = gcu_svd_room(v, tall, &one);
    return status == GNOMON_OK ? gcu_svd_alloc_small(v, columns) : status;
}

/* The plugin's table, and one GPU taken into use. */
#include "cuda/dedup/dedup.h"
#include "cuda/gemm/job.h"
#include "cuda/hosvd/hosvd.h"
#include "cuda/join/sets.h"
#include "cuda/lsh/lsh.h"
#include "cuda/project/job.h"
#include "cuda/project/pieces.h"
#include "cuda/runtime/transfer.h"
#include "cuda/search/search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern "C" {
#include "backend.h"
}

static void close_state(gcu_state *s)
{
    gcu_blas_close(s);
    gcu_stages_close(s);
    if (s->notes) cudaFreeHost(s->notes);
    cudaStream_t streams[] = {s->stream, s->in, s->out};
    for (cudaStream_t stream : streams)
        if (stream) cudaStreamDestroy(stream);
    if (s->pool) cudaMemPoolDestroy(s->pool);
    gcu_gpu_close(&s->gpu);
    free(s);
}

static gnomon_status make_streams(gcu_state *s, gcu_why why)
{
    cudaMemPoolProps properties = {};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = s->gpu.device;
    GCU_TRY(why, cudaMemPoolCreate(&s->pool, &properties));
    /* Kept between calls, so that they need not wait for the driver: an eighth of the memory. */
    size_t free = 0, total = 0;
    GCU_TRY(why, cudaMemGetInfo(&free, &total));
    s->memory_total = total;
    uint64_t kept = total / 8;
    GCU_TRY(why, cudaMemPoolSetAttribute(s->pool, cudaMemPoolAttrReleaseThreshold, &kept));
    GCU_TRY(why, cudaStreamCreate(&s->stream));
    GCU_TRY(why, cudaStreamCreateWithFlags(&s->in, cudaStreamNonBlocking));
    GCU_TRY(why, cudaStreamCreateWithFlags(&s->out, cudaStreamNonBlocking));
    return GNOMON_OK;
}

static gnomon_status open_gpu(int device, gcu_state *s, gcu_why why)
{
    if (device < 0 && cudaGetDevice(&device) != cudaSuccess) device = 0;
    const gnomon_status status = gcu_gpu_open(device, &s->gpu, why.text, why.size);
    if (status != GNOMON_OK) return status;
    const char *most = getenv("GNOMON_CUDA_MEMORY");
    if (most && *most) {
        char *end = nullptr;
        const long long mebibytes = strtoll(most, &end, 10);
        if (*end || mebibytes < 1 || mebibytes > 1 << 30)
            return gcu_fail(why, GNOMON_ERROR_ARGUMENT,
                            "GNOMON_CUDA_MEMORY is \"%.32s\"; it must be a number of MiB", most);
        s->memory_most = (size_t)mebibytes << 20;
    }
    char failure[256];
    const gnomon_status made = make_streams(s, {failure, sizeof failure});
    return made == GNOMON_OK ? made : gcu_fail(why, made, "GPU %d: %s", device, failure);
}

static gnomon_status open_device(int device, void **state, char *text, size_t size)
{
    const gcu_why why = {text, size};
    gcu_state *s = static_cast<gcu_state *>(calloc(1, sizeof *s));
    if (!s) return gcu_fail(why, GNOMON_ERROR_MEMORY, "no memory for the plugin's state");
    const gcu_scope scope = gcu_enter(-1);
    const gnomon_status status = open_gpu(device, s, why);
    if (status != GNOMON_OK) close_state(s);
    gcu_leave(scope);
    if (status == GNOMON_OK) *state = s;
    return status;
}

/* A call's state, on whose GPU the thread is until the call ends. */
struct call {
    gcu_state *s;
    gcu_scope scope;

    explicit call(void *state) : s(static_cast<gcu_state *>(state)), scope(gcu_enter(s->gpu.device))
    {
    }
    call(const call &) = delete;
    ~call()
    {
        gcu_leave(scope);
    }
};

static void close_device(void *state)
{
    const call on(state);
    close_state(on.s);
}

static int count_devices(void)
{
    return gcu_gpu_count();
}

/* Views in the memory of GPUs that can't be reached are refused (gcu_place_of). */
static gnomon_status together(void *const *states, int count, char *text, size_t size)
{
    const gcu_why why = {text, size};
    for (int i = 0; i < count; i++) {
        const call on(states[i]);
        const gcu_gpu *gpu = &on.s->gpu, *first = &static_cast<gcu_state *>(states[0])->gpu;
        if (strcmp(gpu->name, first->name) != 0 || gpu->sms != first->sms)
            return gcu_fail(why, GNOMON_ERROR_ARGUMENT,
                            "GPU %d is %s, GPU %d is %s: those of one context must be alike",
                            first->device, first->name, gpu->device, gpu->name);
        on.s->others = 0;
        for (int o = 0; o < count; o++) {
            const int other = static_cast<gcu_state *>(states[o])->gpu.device;
            int can = 0;
            if (o == i || other >= 64) continue;
            cudaError_t error = cudaDeviceCanAccessPeer(&can, gpu->device, other);
            if (error != cudaSuccess || !can) continue;
            error = cudaDeviceEnablePeerAccess(other, 0);
            cudaGetLastError();
            if (error != cudaSuccess && error != cudaErrorPeerAccessAlreadyEnabled) continue;
            /* what is taken from the other's pool, too */
            cudaMemAccessDesc access = {};
            access.location.type = cudaMemLocationTypeDevice;
            access.location.id = gpu->device;
            access.flags = cudaMemAccessFlagsProtReadWrite;
            GCU_TRY(why,
                    cudaMemPoolSetAccess(static_cast<gcu_state *>(states[o])->pool, &access, 1));
            on.s->others |= 1ull << other;
        }
    }
    return GNOMON_OK;
}

static int holds(void *state, const gnomon_matrix *view)
{
    char why[256];
    const call on(state);
    gcu_place place;
    return gcu_place_of(on.s, view, "", &place, {why, sizeof why}) == GNOMON_OK &&
           place == GCU_DEVICE;
}

static gnomon_status await(void *state, void *stream, char *text, size_t size)
{
    const call on(state);
    const gcu_why why = {text, size};
    GCU_TRY(why,
            cudaStreamSynchronize(stream ? static_cast<cudaStream_t>(stream) : cudaStreamLegacy));
    return GNOMON_OK;
}

static bool sketch_supported(const gcu_state *s, const gnomon_sketch_job *job, gcu_why why)
{
    const gnomon_matrix *x = job->x, *y = job->y;
    const gnomon_matrix there =
        x->memory == GNOMON_DEVICE_MEMORY ? *x : gcu_packed(x, x->rows, x->cols);
    gcu_pieces pieces;
    return gcu_pieces_open(&pieces, s, job, &there, y, why);
}

static int supports(void *state, const gnomon_sketch_job *job, int backwards, char *text,
                    size_t size)
{
    const gcu_state *s = static_cast<gcu_state *>(state);
    const gcu_why why = {text, size};
    return backwards ? gcu_adjoint_supported(s, job, why) : sketch_supported(s, job, why);
}

static gnomon_status sketch(void *state, const gnomon_sketch_job *job, char *text, size_t size)
{
    const call on(state);
    return gcu_sketch_job(on.s, job, {text, size});
}

static gnomon_status adjoint(void *state, const gnomon_sketch_job *job, char *text, size_t size)
{
    const call on(state);
    return gcu_adjoint_job(on.s, job, {text, size});
}

static gnomon_status stream_open(void *state, const gnomon_sketch_job *job, void **stream,
                                 char *text, size_t size)
{
    const call on(state);
    gcu_sketch_stream *t = nullptr;
    const gnomon_status status = gcu_sketch_stream_open(on.s, job, &t, {text, size});
    *stream = t;
    return status;
}

static gnomon_status stream_push(void *state, void *stream, const gnomon_matrix *piece, char *text,
                                 size_t size)
{
    const call on(state);
    return gcu_sketch_stream_push(on.s, static_cast<gcu_sketch_stream *>(stream), piece,
                                  {text, size});
}

static gnomon_status stream_finish(void *state, void *stream, const gnomon_matrix *y, char *text,
                                   size_t size)
{
    const call on(state);
    return gcu_sketch_stream_finish(on.s, static_cast<gcu_sketch_stream *>(stream), y,
                                    {text, size});
}

static void stream_close(void *state, void *stream)
{
    const call on(state);
    gcu_sketch_stream_close(on.s, static_cast<gcu_sketch_stream *>(stream));
}

/* Every product that the core lets pass. */
static int gemm_supports(void *, const gnomon_gemm_job *, char *, size_t)
{
    return 1;
}

static gnomon_status gemm(void *state, const gnomon_gemm_job *job, char *text, size_t size)
{
    const call on(state);
    return gcu_gemm_job(on.s, job, {text, size});
}

static int svd_supports(void *state, const gnomon_svd_job *job, char *text, size_t size)
{
    return gcu_svd_supported(static_cast<gcu_state *>(state), job, {text, size});
}

static gnomon_status svd(void *state, gnomon_svd_job *job, char *text, size_t size)
{
    const call on(state);
    const gcu_why why = {text, size};
    const gnomon_status status = gcu_wait_for(on.s, job->options->device_stream, why);
    return status == GNOMON_OK ? gcu_svd_job(on.s, job, why) : status;
}

static int search_supports(void *state, const gnomon_search_job *job, char *text, size_t size)
{
    return gcu_search_supported(static_cast<gcu_state *>(state), job, {text, size});
}

static gnomon_status search_open(void *state, const gnomon_search_job *job, void **search,
                                 char *text, size_t size)
{
    const call on(state);
    gcu_search *v = nullptr;
    const gnomon_status status = gcu_search_open(on.s, job, &v, {text, size});
    *search = v;
    return status;
}

static gnomon_status search_add(void *state, void *search, gnomon_search_piece *piece, char *text,
                                size_t size)
{
    const call on(state);
    return gcu_search_add(on.s, static_cast<gcu_search *>(search), piece, {text, size});
}

static gnomon_status search_finish(void *state, void *search, int64_t *counts, int64_t *ids,
                                   double *distances, char *text, size_t size)
{
    const call on(state);
    return gcu_search_finish(on.s, static_cast<gcu_search *>(search), counts, ids, distances,
                             {text, size});
}

static void search_close(void *state, void *search)
{
    const call on(state);
    gcu_search_close(on.s, static_cast<gcu_search *>(search));
}

static int join_supports(void *state, const gnomon_join_job *job, char *text, size_t size)
{
    gcu_state *s = static_cast<gcu_state *>(state);
    return job->p_sets != nullptr ? gcu_join_sets_supported(s, job, {text, size})
                                  : gcu_join_supported(s, job, {text, size});
}

static gnomon_status join(void *state, gnomon_join_job *job, char *text, size_t size)
{
    const call on(state);
    const gcu_why why = {text, size};
    const gnomon_status status = gcu_wait_for(on.s, job->device_stream, why);
    if (status != GNOMON_OK) return status;
    return job->p_sets != nullptr ? gcu_join_sets(on.s, job, why) : gcu_join_job(on.s, job, why);
}

static int hosvd_supports(void *state, const gnomon_hosvd_job *job, char *text, size_t size)
{
    return gcu_hosvd_supported(static_cast<gcu_state *>(state), job, {text, size});
}

static gnomon_status hosvd(void *state, gnomon_hosvd_job *job, char *text, size_t size)
{
    const call on(state);
    return gcu_hosvd_job(on.s, job, {text, size});
}

static int lsh_supports(void *state, const gnomon_lsh_job *job, char *text, size_t size)
{
    return gcu_lsh_supported(static_cast<gcu_state *>(state), job, {text, size});
}

static gnomon_status lsh(void *state, const gnomon_lsh_job *job, char *text, size_t size)
{
    const call on(state);
    return gcu_lsh_job(on.s, job, {text, size});
}

static int sparse_supports(void *state, const gnomon_sketch_job *job, char *text, size_t size)
{
    return gcu_csr_supported(static_cast<gcu_state *>(state), job, {text, size});
}

static gnomon_status sparse_sketch(void *state, const gnomon_sketch_job *job, char *text,
                                   size_t size)
{
    const call on(state);
    return gcu_csr_job(on.s, job, {text, size});
}

static int dedup_supports(void *state, const gnomon_dedup_job *job, char *text, size_t size)
{
    return gcu_dedup_supported(static_cast<gcu_state *>(state), job, {text, size});
}

static gnomon_status dedup_open(void *state, const gnomon_dedup_job *job, void **texts, char *text,
                                size_t size)
{
    const call on(state);
    gcu_texts *t = nullptr;
    const gnomon_status status = gcu_dedup_open(on.s, job, &t, {text, size});
    *texts = t;
    return status;
}

static void dedup_slot(void *, void *texts, gnomon_dedup_slot *slot)
{
    gcu_dedup_slot(static_cast<gcu_texts *>(texts), slot);
}

static gnomon_status dedup_push(void *state, void *texts, int64_t count, int64_t bytes, char *text,
                                size_t size)
{
    const call on(state);
    return gcu_dedup_push(static_cast<gcu_texts *>(texts), count, bytes, {text, size});
}

static gnomon_status dedup_take(void *state, void *texts, gnomon_dedup_sets *sets, char *text,
                                size_t size)
{
    const call on(state);
    return gcu_dedup_take(static_cast<gcu_texts *>(texts), sets, {text, size});
}

static void dedup_close(void *state, void *texts)
{
    const call on(state);
    gcu_dedup_close(static_cast<gcu_texts *>(texts));
}

static gnomon_status dedup_keys(void *state, const gnomon_keys_job *job, char *text, size_t size)
{
    const call on(state);
    return gcu_dedup_keys(on.s, job, {text, size});
}

extern "C" __attribute__((visibility("default"))) const gnomon_device_table *
gnomon_plugin_entry(void)
{
    static const gnomon_device_table table = {
        GNOMON_DEVICE_INTERFACE,
        "cuda",
        open_device,
        close_device,
        count_devices,
        together,
        holds,
        await,
        supports,
        sketch,
        adjoint,
        stream_open,
        stream_push,
        stream_finish,
        stream_close,
        gemm_supports,
        gemm,
        svd_supports,
        svd,
        join_supports,
        join,
        search_supports,
        search_open,
        search_add,
        search_finish,
        search_close,
        hosvd_supports,
        hosvd,
        lsh_supports,
        lsh,
        sparse_supports,
        sparse_sketch,
        dedup_supports,
        dedup_open,
        dedup_slot,
        dedup_push,
        dedup_take,
        dedup_close,
        dedup_keys,
    };
    return &table;
}

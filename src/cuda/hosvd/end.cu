/* The end: what the factorisation leaves of X, and the result on its way to the caller. */
#include "cuda/hosvd/hosvd.h"

#include <math.h>
#include <string.h>

/* The core, blown up along all modes but X's first, is c: size of that rank x X's columns. */
static gnomon_status blow_up(gcu_hosvd *h)
{
    gnomon_status status = GNOMON_OK;
    while (status == GNOMON_OK && h->place[h->modes - 1] != 0)
        status = gcu_hosvd_rotate(h);
    for (int mode = 1; mode < h->modes && status == GNOMON_OK; mode++) {
        const int64_t size = h->job->size[mode], rank = h->length[mode];
        GCU_TRY(h->v.why, gcu_svd_to_f32(h->q[mode], size * rank, h->f32, h->v.stream));
        status = gcu_hosvd_multiply(h, mode, gcu_svd_transposed(h->f32, rank), size);
    }
    return status;
}

/* Of the tensor as far as it has shrunk. */
static gnomon_status squares_of(gcu_hosvd *h, double *squares)
{
    gcu_svd *v = &h->v;
    const int64_t count = gcu_hosvd_numbers(h), units = gcu_svd_units(1, count);
    gcu_svd_figures seen, *figures = nullptr;
    const int held = v->bag.count;
    const gnomon_status status = gcu_svd_room(v, units + 1, &figures);
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, gcu_svd_scan(h->now, 1, count, count, figures + 1, figures, v->stream));
    GCU_TRY(v->why,
            cudaMemcpyAsync(&seen, figures, sizeof seen, cudaMemcpyDeviceToHost, v->stream));
    GCU_TRY(v->why, cudaStreamSynchronize(v->stream));
    gcu_svd_free(v, held);
    *squares = seen.squares;
    return GNOMON_OK;
}

gnomon_status gcu_hosvd_measure(gcu_hosvd *h)
{
    gcu_svd *v = &h->v;
    gnomon_hosvd_job *job = h->job;
    double core = 0;
    gnomon_status status = GNOMON_OK;
    if (h->core_squares)
        for (int64_t j = 0; j < h->length[0]; j++)
            core += h->seen->values[0][j];
    else
        status = squares_of(h, &core);
    const double whole = job->norm * job->norm, left = whole - core;
    job->residual_by = GNOMON_RESIDUAL_NORMS;
    if (status != GNOMON_OK) return status;
    if (!job->measure && left >= 4096 * 0x1p-24 * whole) {
        job->residual = sqrt(left);
        return GNOMON_OK;
    }
    job->residual_by = GNOMON_RESIDUAL_MEASURED;
    const gcu_hosvd before = *h;
    h->own = false; /* the core is needed once more */
    status = blow_up(h);
    const int64_t size = job->size[0], rank = h->length[0];
    if (status == GNOMON_OK) {
        v->m = size;
        v->n = gcu_hosvd_numbers(h) / rank;
        v->run = 0;
        v->a = gnomon_matrix_rowmajor(h->x, GNOMON_F32, v->m, v->n);
        GCU_TRY(v->why, gcu_svd_to_f32(h->q[0], size * rank, h->f32, v->stream));
        job->passes++;
        status = gcu_svd_residual(v, h->f32, h->now, false, rank, &job->residual);
    }
    if (h->own) gcu_free(h->now, v->stream);
    h->now = before.now;
    h->own = before.own;
    for (int n = 0; n < h->modes; n++) {
        h->place[n] = before.place[n];
        h->length[n] = before.length[n];
    }
    return status;
}

/* ---- the result ---- */

enum {
    SMALL_CORE = 1 << 20,
    TOUCHED = 1 << 20, /* bytes of one thread at a time */
    COPIED = 1 << 15
};

/* Where numbers go on the host, in the order in which they come: each is cut for several threads.
 */
struct parcel {
    gcu_hosvd *h;
    char *to[GNOMON_TENSOR_MODES + 2];
    int64_t begin[GNOMON_TENSOR_MODES + 3]; /* of each, among all bytes */
    int count;
    const char *from; /* a piece of all: */
    int64_t first, bytes;
};

static void unpack_task(void *arg, int64_t task, int)
{
    const parcel *p = static_cast<const parcel *>(arg);
    int64_t at = p->first + task * COPIED;
    const int64_t piece = p->first + p->bytes, end = at + COPIED < piece ? at + COPIED : piece;
    for (int i = 0; i < p->count; i++) {
        if (at >= p->begin[i + 1]) continue;
        const int64_t to = end < p->begin[i + 1] ? end : p->begin[i + 1];
        if (to <= at) break;
        memcpy(p->to[i] + (at - p->begin[i]), p->from + (at - p->first), (size_t)(to - at));
        at = to;
    }
}

static gnomon_status unpack(void *user, const void *data, int64_t count, bool)
{
    parcel *p = static_cast<parcel *>(user);
    const gnomon_device_host *host = p->h->job->host;
    p->from = static_cast<const char *>(data);
    p->bytes = count * (int64_t)sizeof(float);
    host->parallel(host->user, (p->bytes + COPIED - 1) / COPIED, unpack_task, p);
    p->first += p->bytes;
    return GNOMON_OK;
}

static void add(parcel *p, void *to, int64_t bytes)
{
    p->to[p->count] = static_cast<char *>(to);
    p->begin[p->count + 1] = p->begin[p->count] + bytes;
    p->count++;
}

struct touched {
    char *data;
    int64_t bytes;
};

static void touch(void *arg, int64_t task, int)
{
    const touched *t = static_cast<const touched *>(arg);
    const int64_t from = task * TOUCHED, left = t->bytes - from;
    memset(t->data + from, 0, left < TOUCHED ? (size_t)left : (size_t)TOUCHED);
}

/* A system gives memory when it is first written to, which takes longer than to write: so that is
 * done while the GPU is still at work. */
static void touch_all(gcu_hosvd *h)
{
    const gnomon_device_host *host = h->job->host;
    for (int n = 0; n <= h->modes; n++) {
        const bool core = n == h->modes;
        const int64_t count = core ? gcu_hosvd_numbers(h) : h->job->size[n] * h->length[n];
        void *data = core ? h->job->core : h->job->factor[n];
        touched t = {static_cast<char *>(data), count * (int64_t)sizeof(float)};
        host->parallel(host->user, (t.bytes + TOUCHED - 1) / TOUCHED, touch, &t);
    }
}

/* The notes, the factors, one after the other, and behind them the core. */
static gnomon_status make_result(gcu_hosvd *h, float **all, float **core)
{
    gcu_svd *v = &h->v;
    gcu_hosvd_way way = {};
    gcu_hosvd_signed list[GNOMON_TENSOR_MODES] = {};
    const int64_t count = gcu_hosvd_numbers(h);
    const int64_t noted = sizeof *h->notes / sizeof(float);
    int64_t numbers = noted, signs = 0;
    float *at = nullptr, *sign = nullptr;
    for (int n = 0; n < h->modes; n++) {
        numbers += h->job->size[n] * h->length[n];
        signs += h->length[n];
    }
    gnomon_status status = gcu_svd_room(v, numbers + count, &at);
    if (status == GNOMON_OK) status = gcu_svd_room(v, signs, &sign);
    if (status != GNOMON_OK) return status;
    *all = at;
    at += noted;
    for (int n = 0; n < h->modes; n++) {
        list[n] = {h->job->size[n], h->length[n], h->q[n], at, sign};
        at += h->job->size[n] * h->length[n];
        sign += h->length[n];
    }
    *core = at;
    way.modes = h->modes;
    for (int p = 0; p < h->modes; p++) {
        way.size[p] = h->length[h->place[p]];
        way.step[p] = h->job->core_step[h->place[p]];
        way.sign[p] = list[h->place[p]].sign;
    }
    GCU_TRY(v->why, gcu_hosvd_sign(list, h->modes, v->stream));
    GCU_TRY(v->why, cudaMemsetAsync(&h->notes->large, 0, sizeof h->notes->large, v->stream));
    GCU_TRY(v->why, gcu_hosvd_put(h->now, count, &way, ldexp(1.0, h->job->exponent), *core,
                                  &h->notes->large, v->stream));
    GCU_TRY(v->why,
            cudaMemcpyAsync(*all, h->notes, sizeof *h->notes, cudaMemcpyDeviceToDevice, v->stream));
    return GNOMON_OK;
}

gnomon_status gcu_hosvd_hand_out(gcu_hosvd *h)
{
    gcu_svd *v = &h->v;
    const int64_t count = gcu_hosvd_numbers(h);
    const int held = v->bag.count;
    const gnomon_hosvd_calls *calls = h->job->calls;
    float *all = nullptr, *core = nullptr;
    parcel p = {};
    gnomon_status status = GNOMON_OK;
    if (!h->job->core) status = calls->make_room(calls->user, h->length);
    if (status == GNOMON_OK) status = make_result(h, &all, &core);
    if (status != GNOMON_OK) return status;
    touch_all(h);
    p.h = h;
    add(&p, h->seen, sizeof *h->seen);
    for (int n = 0; n < h->modes; n++)
        add(&p, h->job->factor[n], h->job->size[n] * h->length[n] * (int64_t)sizeof *core);
    add(&p, h->job->core, count * (int64_t)sizeof *core);
    const gcu_transfer transfer = gcu_transfer_of(v->job);
    const bool small = count <= SMALL_CORE;
    status = gcu_download_each(v->s, transfer, all, core - all + (small ? count : 0), sizeof *core,
                               v->stream, unpack, &p, v->why);
    if (status == GNOMON_OK && !small) {
        const gnomon_matrix to = gnomon_matrix_rowmajor(h->job->core, GNOMON_F32, 1, count);
        status = gcu_svd_hand_out(v, &to, core);
    }
    GCU_TRY(v->why, cudaStreamSynchronize(v->stream));
    gcu_svd_free(v, held);
    for (int n = 0; n < h->modes && h->core_squares; n++)
        for (int64_t j = 0; j < h->length[n]; j++)
            h->job->values[n][j] = sqrt(fmax(h->seen->values[n][h->length[n] - 1 - j], 0.0));
    return status;
}

void gcu_hosvd_report(gnomon_hosvd_job *job, const gnomon_svd_job *range,
                      const double seconds[GCU_PHASES])
{
    job->cholesky = range->cholesky;
    job->householder = range->householder;
    job->check_seconds = seconds[GCU_SCAN];
    job->project_seconds = seconds[GCU_PROJECT];
    job->power_seconds = seconds[GCU_POWER];
    job->orthonormalise_seconds = seconds[GCU_ORTHONORMALISE];
    job->shrink_seconds = seconds[GCU_SHRINK];
    job->small_seconds = seconds[GCU_SMALL];
    job->measure_seconds = seconds[GCU_CERTIFY];
}

#include "cuda/runtime/transfer.h"

#include "base/arithmetic.h"

#include <limits.h>
#include <string.h>

static const int64_t stage_most = 32 << 20; /* half a millisecond of the link */
static const int64_t stage_least = 64 << 10;
/* Of one thread at a time: so little that threads which wake up late still find some. */
static const int64_t task_bytes = 256 << 10;
static const int64_t long_line = 64 << 10; /* begins at a multiple of 16 bytes */
static const int64_t short_line = 2 << 10; /* the copy engine is slow with shorter ones */

gnomon_status gcu_place_of(gcu_state *s, const gnomon_matrix *m, const char *name, gcu_place *place,
                           gcu_why why)
{
    *place = m->memory == GNOMON_DEVICE_MEMORY ? GCU_DEVICE : GCU_PAGEABLE;
    if (m->rows == 0 || m->cols == 0) return GNOMON_OK;
    cudaPointerAttributes at[2];
    const int64_t size = (int64_t)gnomon_dtype_size(m->dtype);
    const char *last = static_cast<const char *>(m->data) +
                       ((m->rows - 1) * m->row_stride + (m->cols - 1) * m->col_stride) * size;
    GCU_TRY(why, cudaPointerGetAttributes(&at[0], m->data));
    GCU_TRY(why, cudaPointerGetAttributes(&at[1], last));
    bool device = true, pinned = true;
    for (int i = 0; i < 2; i++) {
        const bool managed = at[i].type == cudaMemoryTypeManaged;
        device = device &&
                 (managed || at[i].type == cudaMemoryTypeDevice ||
                  (at[i].type == cudaMemoryTypeHost && at[i].devicePointer == at[i].hostPointer));
        pinned = pinned && (managed || at[i].type == cudaMemoryTypeHost);
    }
    if (m->memory == GNOMON_DEVICE_MEMORY) {
        if (!device)
            return gcu_fail(why, GNOMON_ERROR_ARGUMENT,
                            "%s.memory is 1 (cuda); its data is host memory that no GPU can use",
                            name);
        const bool own = at[0].type != cudaMemoryTypeDevice || at[0].device == s->gpu.device ||
                         (s->others && at[1].device == s->gpu.device); /* it is mapped here, too */
        if (!own && at[0].device < 64 && (s->others >> at[0].device & 1)) {
            *place = GCU_PEER;
            return GNOMON_OK;
        }
        if (!own)
            return gcu_fail(why, GNOMON_ERROR_ARGUMENT,
                            "%s lies in the memory of GPU %d; the context uses GPU %d", name,
                            at[0].device, s->gpu.device);
        return GNOMON_OK;
    }
    if (at[0].type == cudaMemoryTypeDevice)
        return gcu_fail(why, GNOMON_ERROR_ARGUMENT,
                        "%s.memory is 0 (host); its data lies in the memory of GPU %d", name,
                        at[0].device);
    if (pinned) *place = GCU_PINNED;
    return GNOMON_OK;
}

/* Whether a view's lines are its rows. */
static bool by_rows(const gnomon_matrix *m)
{
    return gnomon_abs(m->col_stride) <= gnomon_abs(m->row_stride);
}

gnomon_matrix gcu_part(const gnomon_matrix *m, int64_t row, int64_t rows, int64_t col, int64_t cols)
{
    gnomon_matrix part = *m;
    part.rows = rows;
    part.cols = cols;
    if (m->data)
        part.data = static_cast<char *>(m->data) + (row * m->row_stride + col * m->col_stride) *
                                                       (int64_t)gnomon_dtype_size(m->dtype);
    return part;
}

gnomon_matrix gcu_packed(const gnomon_matrix *host, int64_t rows, int64_t cols)
{
    gnomon_matrix m = *host;
    const bool rowwise = by_rows(host);
    const int64_t size = (int64_t)gnomon_dtype_size(m.dtype);
    int64_t pitch = rowwise ? cols : rows;
    if (pitch * size >= long_line) {
        const int64_t unit = 16 / size;
        pitch = (pitch + unit - 1) / unit * unit;
    }
    m.data = nullptr;
    m.memory = GNOMON_DEVICE_MEMORY;
    m.rows = rows;
    m.cols = cols;
    m.row_stride = rowwise ? pitch : 1;
    m.col_stride = rowwise ? 1 : pitch;
    return m;
}

size_t gcu_packed_bytes(const gnomon_matrix *m)
{
    if (m->rows == 0 || m->cols == 0) return 0;
    const size_t size = gnomon_dtype_size(m->dtype);
    return (size_t)(m->col_stride == 1 && m->row_stride >= m->cols ? m->rows * m->row_stride
                                                                   : m->cols * m->col_stride) *
           size;
}

/* A copy as lines of elements: from one side to the other. */
struct lines {
    char *host, *device;
    int64_t count, length; /* elements of a line */
    int64_t size;
    int64_t host_line, host_step, device_line; /* elements; the device's step is 1 */
};

static lines lines_of(const gnomon_matrix *host, const gnomon_matrix *device)
{
    lines l;
    l.host = static_cast<char *>(host->data);
    l.device = static_cast<char *>(device->data);
    l.size = (int64_t)gnomon_dtype_size(device->dtype);
    /* packed views have one stride of 1 and the other no shorter than a line */
    const bool rowwise = device->col_stride == 1 &&
                         (device->row_stride != 1 || device->rows == 1 || device->cols == 1);
    l.count = rowwise ? device->rows : device->cols;
    l.length = rowwise ? device->cols : device->rows;
    l.host_line = rowwise ? host->row_stride : host->col_stride;
    l.host_step = rowwise ? host->col_stride : host->row_stride;
    l.device_line = rowwise ? device->row_stride : device->col_stride;
    if (l.length == 1) l.host_step = 1;
    if (l.count > 1 && l.host_step == 1 && l.host_line == l.length && l.device_line == l.length) {
        l.length *= l.count; /* no gaps on either side: one line */
        l.count = 1;
    }
    return l;
}

static cudaError_t copy_lines(char *to, int64_t to_line, const char *from, int64_t from_line,
                              int64_t bytes, int64_t count, cudaMemcpyKind kind,
                              cudaStream_t stream)
{
    if (count == 1) return cudaMemcpyAsync(to, from, (size_t)bytes, kind, stream);
    if (to_line <= INT_MAX && from_line <= INT_MAX)
        return cudaMemcpy2DAsync(to, (size_t)to_line, from, (size_t)from_line, (size_t)bytes,
                                 (size_t)count, kind, stream);
    cudaError_t error = cudaSuccess; /* pitches beyond what a 2D copy takes */
    for (int64_t i = 0; i < count && error == cudaSuccess; i++)
        error =
            cudaMemcpyAsync(to + i * to_line, from + i * from_line, (size_t)bytes, kind, stream);
    return error;
}

/* ---- stages ---- */

void gcu_stages_close(gcu_state *s)
{
    for (int i = 0; i < GCU_STAGES; i++) {
        if (s->stage[i].data) cudaFreeHost(s->stage[i].data);
        if (s->stage[i].idle) cudaEventDestroy(s->stage[i].idle);
        s->stage[i] = gcu_stage{};
    }
    s->stage_bytes = 0;
}

/* Makes the stages, which take a quarter of the call's memory at most. */
static gnomon_status open_stages(gcu_state *s, int64_t memory_limit, gcu_why why)
{
    int64_t bytes = memory_limit / 4 / GCU_STAGES;
    bytes = bytes > stage_most ? stage_most : bytes < stage_least ? stage_least : bytes;
    bytes -= bytes % 4096;
    if (s->stage_bytes == (size_t)bytes) return GNOMON_OK;
    gcu_stages_close(s);
    for (int i = 0; i < GCU_STAGES; i++) {
        void *data = nullptr;
        cudaError_t error = cudaHostAlloc(&data, (size_t)bytes, cudaHostAllocDefault);
        s->stage[i].data = static_cast<char *>(data);
        if (error == cudaSuccess)
            error = cudaEventCreateWithFlags(&s->stage[i].idle, cudaEventDisableTiming);
        if (error != cudaSuccess) {
            gcu_stages_close(s);
            return gcu_status(why, error, "page-locked memory for transfers");
        }
    }
    s->stage_bytes = (size_t)bytes;
    return GNOMON_OK;
}

/* Copies part of a line between the host and a stage, by the context's threads. */
struct stage_copy {
    char *host, *stage;
    int64_t count, length, size;
    int64_t host_line, host_step;
    int64_t per_line, cut; /* tasks of a line, and their elements; lines of a task when 1 */
    int64_t lines_each;
    bool up;
};

template <typename T>
static void stride_copy(const stage_copy *c, char *host, char *stage, int64_t length)
{
    T *h = reinterpret_cast<T *>(host), *t = reinterpret_cast<T *>(stage);
    if (c->up)
        for (int64_t i = 0; i < length; i++)
            t[i] = h[i * c->host_step];
    else
        for (int64_t i = 0; i < length; i++)
            h[i * c->host_step] = t[i];
}

static void copy_part(const stage_copy *c, int64_t line, int64_t from, int64_t length)
{
    char *host = c->host + (line * c->host_line + from * c->host_step) * c->size;
    char *stage = c->stage + (line * c->length + from) * c->size;
    if (c->host_step == 1) {
        if (c->up)
            memcpy(stage, host, (size_t)(length * c->size));
        else
            memcpy(host, stage, (size_t)(length * c->size));
        return;
    }
    switch (c->size) {
    case 8:
        stride_copy<uint64_t>(c, host, stage, length);
        break;
    case 4:
        stride_copy<uint32_t>(c, host, stage, length);
        break;
    case 2:
        stride_copy<uint16_t>(c, host, stage, length);
        break;
    default:
        stride_copy<uint8_t>(c, host, stage, length);
        break;
    }
}

static void stage_task(void *arg, int64_t task, int worker)
{
    (void)worker;
    const stage_copy *c = static_cast<const stage_copy *>(arg);
    if (c->per_line > 1) {
        const int64_t from = task % c->per_line * c->cut, left = c->length - from;
        copy_part(c, task / c->per_line, from, left < c->cut ? left : c->cut);
        return;
    }
    const int64_t end = (task + 1) * c->lines_each;
    for (int64_t line = task * c->lines_each; line < (end < c->count ? end : c->count); line++)
        copy_part(c, line, 0, c->length);
}

static void fill_or_empty(gcu_transfer t, stage_copy *c)
{
    const int64_t bytes = c->length * c->size;
    c->per_line = bytes > task_bytes ? (bytes + task_bytes - 1) / task_bytes : 1;
    c->cut = (c->length + c->per_line - 1) / c->per_line;
    c->lines_each = bytes < task_bytes ? task_bytes / bytes : 1;
    const int64_t tasks =
        c->per_line > 1 ? c->count * c->per_line : (c->count + c->lines_each - 1) / c->lines_each;
    t.host->parallel(t.host->user, tasks, stage_task, c);
}

/* The next part of the lines that fits a stage: 'count' lines from 'line' on, of each the elements
 * [from, from + length). */
struct portion {
    int64_t line, count, from, length;
};

static bool next_portion(const lines *l, int64_t room, portion *p)
{
    const int64_t elements = room / l->size;
    if (p->from + p->length < l->length) { /* the rest of a line that is too long */
        p->from += p->length;
    } else {
        p->line += p->count;
        p->from = 0;
    }
    if (p->line >= l->count) return false;
    p->length = l->length - p->from < elements ? l->length - p->from : elements;
    p->count = 1;
    if (p->from == 0 && p->length == l->length) {
        p->count = elements / l->length;
        if (p->count > l->count - p->line) p->count = l->count - p->line;
    }
    return true;
}

static stage_copy stage_copy_of(const lines *l, const portion *p, char *stage, bool up)
{
    stage_copy c = {};
    c.host = l->host + (p->line * l->host_line + p->from * l->host_step) * l->size;
    c.stage = stage;
    c.count = p->count;
    c.length = p->length;
    c.size = l->size;
    c.host_line = l->host_line;
    c.host_step = l->host_step;
    c.up = up;
    return c;
}

static char *device_at(const lines *l, const portion *p)
{
    return l->device + (p->line * l->device_line + p->from) * l->size;
}

/* Whether the copy engine can take the host's side as it is, at speed. */
static bool direct(const lines *l, gcu_place place)
{
    if (place == GCU_PEER) return true; /* there is no other way */
    return place == GCU_PINNED && l->host_step == 1 &&
           (l->count == 1 || (l->host_line >= l->length && l->length * l->size >= short_line));
}

/* The host's side as it is. Lines of another GPU's memory may have steps: their elements are the
 * lines of a copy, if they ascend. */
static cudaError_t copy_direct(const lines *l, bool up, gcu_place place, cudaStream_t stream)
{
    const cudaMemcpyKind kind = place == GCU_PEER ? cudaMemcpyDefault
                                : up              ? cudaMemcpyHostToDevice
                                                  : cudaMemcpyDeviceToHost;
    const int64_t here = l->device_line * l->size, there = l->host_line * l->size;
    const bool steps = l->host_step != 1 || (l->count > 1 && l->host_line < l->length);
    if (!steps)
        return up ? copy_lines(l->device, here, l->host, there, l->length * l->size, l->count, kind,
                               stream)
                  : copy_lines(l->host, there, l->device, here, l->length * l->size, l->count, kind,
                               stream);
    const int64_t step = l->host_step * l->size;
    const int64_t each = step >= l->size ? l->length : 1; /* elements of a copy */
    cudaError_t error = cudaSuccess;
    for (int64_t line = 0; line < l->count; line++)
        for (int64_t i = 0; i < l->length && error == cudaSuccess; i += each) {
            char *host = l->host + line * there + i * step;
            char *device = l->device + line * here + i * l->size;
            error = up ? copy_lines(device, l->size, host, step, l->size, each, kind, stream)
                       : copy_lines(host, step, device, l->size, l->size, each, kind, stream);
        }
    return error;
}

gnomon_status gcu_upload(gcu_state *s, gcu_transfer t, const gnomon_matrix *from, gcu_place place,
                         const gnomon_matrix *to, cudaStream_t stream, gcu_why why)
{
    if (to->rows == 0 || to->cols == 0) return GNOMON_OK;
    const lines l = lines_of(from, to);
    if (direct(&l, place)) {
        GCU_TRY(why, copy_direct(&l, true, place, stream));
        return GNOMON_OK;
    }
    const gnomon_status status = open_stages(s, t.memory_limit, why);
    if (status != GNOMON_OK) return status;
    portion p = {};
    while (next_portion(&l, (int64_t)s->stage_bytes, &p)) {
        gcu_stage *stage = &s->stage[s->next_stage];
        s->next_stage = (s->next_stage + 1) % GCU_STAGES;
        GCU_TRY(why, cudaEventSynchronize(stage->idle));
        stage_copy c = stage_copy_of(&l, &p, stage->data, true);
        fill_or_empty(t, &c);
        GCU_TRY(why, copy_lines(device_at(&l, &p), l.device_line * l.size, stage->data,
                                p.length * l.size, p.length * l.size, p.count,
                                cudaMemcpyHostToDevice, stream));
        GCU_TRY(why, cudaEventRecord(stage->idle, stream));
    }
    return GNOMON_OK;
}

struct converting {
    const int64_t *from;
    uint32_t *to;
    int64_t count;
};

static const int64_t convert_each = task_bytes / 8;

static void convert_task(void *arg, int64_t task, int worker)
{
    (void)worker;
    const converting *n = static_cast<const converting *>(arg);
    const int64_t end = (task + 1) * convert_each;
    for (int64_t i = task * convert_each; i < (end < n->count ? end : n->count); i++) {
        const uint64_t x = (uint64_t)n->from[i];
        n->to[i] = x < UINT32_MAX ? (uint32_t)x : UINT32_MAX;
    }
}

gnomon_status gcu_upload_u32(gcu_state *s, gcu_transfer t, const int64_t *from, int64_t count,
                             uint32_t *to, cudaStream_t stream, gcu_why why)
{
    if (count == 0) return GNOMON_OK;
    const gnomon_status status = open_stages(s, t.memory_limit, why);
    if (status != GNOMON_OK) return status;
    const int64_t each = (int64_t)s->stage_bytes / 4;
    for (int64_t at = 0; at < count; at += each) {
        gcu_stage *stage = &s->stage[s->next_stage];
        s->next_stage = (s->next_stage + 1) % GCU_STAGES;
        GCU_TRY(why, cudaEventSynchronize(stage->idle));
        const int64_t some = count - at < each ? count - at : each;
        converting n = {from + at, reinterpret_cast<uint32_t *>(stage->data), some};
        t.host->parallel(t.host->user, (some + convert_each - 1) / convert_each, convert_task, &n);
        GCU_TRY(why, cudaMemcpyAsync(to + at, stage->data, (size_t)some * 4, cudaMemcpyHostToDevice,
                                     stream));
        GCU_TRY(why, cudaEventRecord(stage->idle, stream));
    }
    return GNOMON_OK;
}

/* Waits for the stage and hands its elements to the host. */
static gnomon_status empty_stage(gcu_transfer t, gcu_stage *stage, const lines *l, const portion *p,
                                 gcu_why why)
{
    GCU_TRY(why, cudaEventSynchronize(stage->idle));
    stage_copy c = stage_copy_of(l, p, stage->data, false);
    fill_or_empty(t, &c);
    return GNOMON_OK;
}

gnomon_status gcu_download(gcu_state *s, gcu_transfer t, const gnomon_matrix *from,
                           const gnomon_matrix *to, gcu_place place, cudaStream_t stream,
                           gcu_why why)
{
    return gcu_download_all(s, t, from, to, 1, place, stream, why);
}

gnomon_status gcu_download_all(gcu_state *s, gcu_transfer t, const gnomon_matrix *from,
                               const gnomon_matrix *to, int count, gcu_place place,
                               cudaStream_t stream, gcu_why why)
{
    gnomon_status status = GNOMON_OK;
    gcu_stage *full = nullptr;
    portion of_full = {};
    lines lines_of_full = {};
    for (int m = 0; m < count && status == GNOMON_OK; m++) {
        if (to[m].rows == 0 || to[m].cols == 0) continue;
        const lines l = lines_of(&to[m], &from[m]);
        if (direct(&l, place)) {
            GCU_TRY(why, copy_direct(&l, false, place, stream));
            continue;
        }
        status = open_stages(s, t.memory_limit, why);
        portion p = {};
        while (status == GNOMON_OK && next_portion(&l, (int64_t)s->stage_bytes, &p)) {
            gcu_stage *stage = &s->stage[s->next_stage];
            s->next_stage = (s->next_stage + 1) % GCU_STAGES;
            GCU_TRY(why, cudaEventSynchronize(stage->idle));
            GCU_TRY(why, copy_lines(stage->data, p.length * l.size, device_at(&l, &p),
                                    l.device_line * l.size, p.length * l.size, p.count,
                                    cudaMemcpyDeviceToHost, stream));
            GCU_TRY(why, cudaEventRecord(stage->idle, stream));
            if (full) status = empty_stage(t, full, &lines_of_full, &of_full, why);
            full = stage;
            of_full = p;
            lines_of_full = l;
        }
    }
    if (status == GNOMON_OK && full) status = empty_stage(t, full, &lines_of_full, &of_full, why);
    return status;
}

gnomon_status gcu_download_each(gcu_state *s, gcu_transfer t, const void *from, int64_t count,
                                int64_t size, cudaStream_t stream,
                                gnomon_status (*sink)(void *user, const void *data, int64_t count,
                                                      bool last),
                                void *user, gcu_why why)
{
    gnomon_status status = open_stages(s, t.memory_limit, why);
    const int64_t each = (int64_t)s->stage_bytes / size;
    const char *next = static_cast<const char *>(from);
    gcu_stage *full = nullptr;
    int64_t in_full = 0;
    for (int64_t left = count; status == GNOMON_OK && (left > 0 || full);) {
        gcu_stage *stage = nullptr;
        const int64_t some = left < each ? left : each;
        if (some > 0) {
            stage = &s->stage[s->next_stage];
            s->next_stage = (s->next_stage + 1) % GCU_STAGES;
            GCU_TRY(why, cudaEventSynchronize(stage->idle));
            GCU_TRY(why, cudaMemcpyAsync(stage->data, next, (size_t)(some * size),
                                         cudaMemcpyDeviceToHost, stream));
            GCU_TRY(why, cudaEventRecord(stage->idle, stream));
            next += some * size;
            left -= some;
        }
        if (full) {
            GCU_TRY(why, cudaEventSynchronize(full->idle));
            status = sink(user, full->data, in_full, stage == nullptr);
        }
        full = stage;
        in_full = some;
    }
    return status;
}

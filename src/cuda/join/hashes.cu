#include "cuda/join/hashes.h"
#include "cuda/lsh/lsh.h"
#include "cuda/search/search.h"

#include <string.h>
#include <vector>

namespace
{

/* Of an H200. A point's place in a table is sorted with its key and has its coordinates read in a
 * tile; a candidate is a share of a tile's products. Coordinates go by chunks, and of bits there
 * are eight in one. */
gnomon_join_costs costs_of(gnomon_metric metric, int64_t cols)
{
    const int64_t all = metric == GNOMON_HAMMING ? 8 * cols : cols;
    const double chunks = (double)((all + GCU_FILTER_CHUNK - 1) / GCU_FILTER_CHUNK);
    const double each = cols > 0 ? chunks * GCU_FILTER_CHUNK / (double)cols : 1;
    gnomon_join_costs c = {};
    c.product_term = 1.0 / 20e3;
    c.bit = 0.01;
    c.start = 5e6;
    c.table = 50e3;
    c.placing = 0.5;
    c.placing_coordinate = each * 0.8e-3;
    c.verifying_coordinate = each / 60e3;
    c.filtering_coordinate = each / 240e3;
    c.filter_coordinates = (double)cols;
    return c;
}

/* ---- the plan ---- */

/* Rows of a view on the GPU. */
gnomon_status gather_there(gcu_state *s, const gnomon_matrix *from, const uint32_t *rows,
                           int64_t count, size_t size, char *to, cudaStream_t stream, gcu_why why)
{
    char *room = nullptr;
    cudaError_t error =
        gcu_alloc(s, reinterpret_cast<void **>(&room), size + (size_t)count * 4 + 16, stream);
    char *list = room + (size + 15) / 16 * 16;
    if (error == cudaSuccess)
        error = cudaMemcpyAsync(list, rows, (size_t)count * 4, cudaMemcpyHostToDevice, stream);
    if (error == cudaSuccess)
        error =
            gcu_search_gather(from, reinterpret_cast<const uint32_t *>(list), count, room, stream);
    if (error == cudaSuccess)
        error = cudaMemcpyAsync(to, room, size, cudaMemcpyDeviceToHost, stream);
    if (error == cudaSuccess) error = cudaStreamSynchronize(stream);
    gcu_free(room, stream);
    return error == cudaSuccess ? GNOMON_OK : gcu_status(why, error, "a sample of the points");
}

void gather_here(const gnomon_matrix *from, const uint32_t *rows, int64_t count, char *to)
{
    const int64_t size = (int64_t)gnomon_dtype_size(from->dtype);
    const char *data = static_cast<const char *>(from->data);
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; j < from->cols; j++, to += size)
            memcpy(to, data + (rows[i] * from->row_stride + j * from->col_stride) * size,
                   (size_t)size);
}

/* Some rows of a view, on the host, and the largest square of all where the view is not. */
gnomon_status read_at(gcu_state *s, const gnomon_matrix *from, const uint32_t *rows, int64_t count,
                      std::vector<char> *bytes, gnomon_matrix *some, bool measure, double *squares,
                      unsigned long long *number, cudaStream_t stream, gcu_why why)
{
    const size_t size = (size_t)(count * from->cols) * gnomon_dtype_size(from->dtype);
    double *most = reinterpret_cast<double *>(number);
    bytes->resize(size + 8);
    *some = gnomon_matrix_rowmajor(bytes->data(), from->dtype, count, from->cols);
    *squares = -1;
    if (from->memory == GNOMON_HOST) {
        gather_here(from, rows, count, bytes->data());
        return GNOMON_OK;
    }
    const gnomon_status status =
        gather_there(s, from, rows, count, size, bytes->data(), stream, why);
    if (status != GNOMON_OK || !measure) return status;
    GCU_TRY(why, cudaMemsetAsync(most, 0, 8, stream));
    GCU_TRY(why, gcu_bucket_squares(from, most, stream));
    GCU_TRY(why, cudaMemcpyAsync(squares, most, 8, cudaMemcpyDeviceToHost, stream));
    GCU_TRY(why, cudaStreamSynchronize(stream));
    return GNOMON_OK;
}

/* ---- keys ---- */

struct keying {
    uint32_t *keys;
    int64_t n, stride, first; /* table */
};

cudaError_t store_keys(void *user, const uint64_t *keys, int64_t table, int64_t tables,
                       cudaStream_t stream)
{
    const keying *k = static_cast<const keying *>(user);
    return gcu_bucket_keys(keys, k->n, k->first + table, tables, k->keys, k->stride, stream);
}

} // namespace

gnomon_status gcu_join_hashes_plan(gcu_state *s, gnomon_join_job *job, const gnomon_matrix *p,
                                   const gnomon_matrix *q, gcu_join_hashes *h,
                                   unsigned long long *number, cudaStream_t stream, gcu_why why)
{
    std::vector<char> p_bytes, q_bytes;
    gnomon_join_sample sample = {};
    sample.costs = costs_of(job->metric, p->cols);
    const bool measure = job->metric == GNOMON_L2;
    gnomon_status status = read_at(s, p, job->p_some, job->p_some_count, &p_bytes, &sample.p,
                                   measure, &sample.squares[0], number, stream, why);
    /* of a self-join they are other rows of the same points */
    if (status == GNOMON_OK)
        status = read_at(s, q ? q : p, job->q_some, job->q_some_count, &q_bytes, &sample.q,
                         measure && q, &sample.squares[1], number, stream, why);
    if (status != GNOMON_OK) return status;
    why.text[0] = 0; /* what the core fails with has its text */
    status = job->calls->plan(job->calls->user, &sample, &h->tables);
    if (status != GNOMON_OK) return status;
    h->count = h->tables.shallow + h->tables.deep;
    h->stride = (h->count + 3) / 4 * 4;
    return GNOMON_OK;
}

size_t gcu_join_hashes_key_bytes(const gcu_join_hashes *h, int64_t rows)
{
    return (size_t)(rows * h->stride) * 4;
}

gnomon_status gcu_join_hashes_keys(gcu_state *s, const gnomon_join_job *join,
                                   const gcu_join_hashes *h, const gnomon_matrix *points,
                                   uint32_t *keys, gcu_why why)
{
    gnomon_matrix there = *points;
    const gnomon_join_tables &t = h->tables;
    const int64_t counts[2] = {t.shallow, t.deep};
    int64_t table = 0, function = 0;
    there.memory = GNOMON_DEVICE_MEMORY;
    for (int deeper = 0; deeper < 2; deeper++) {
        gnomon_lsh_job job = {};
        job.hasher = t.hasher;
        job.points = &there;
        job.tables = counts[deeper];
        job.depth = job.coarse = t.depth + deeper;
        job.multipliers = t.multipliers;
        job.same = true;
        job.memory_limit = join->memory_limit;
        job.host = join->host;
        keying k = {keys, points->rows, h->stride, table};
        const gcu_lsh_key_sink key_sink = {&k, store_keys};
        if (job.tables == 0) continue;
        const gnomon_status status = gcu_lsh_hand_keys(s, &job, function, &key_sink, why);
        if (status != GNOMON_OK) return status;
        table += job.tables;
        function += job.tables * job.depth;
    }
    return GNOMON_OK;
}

cudaError_t gcu_join_hashes_band(const gcu_join_hashes *h, const gcu_filter_call *call,
                                 uint32_t *p_keys, uint32_t *q_keys, int64_t above,
                                 gcu_filter_sink sink, unsigned long long *compared, void *work,
                                 const gcu_gpu *gpu, cudaStream_t stream)
{
    gcu_bucket_call c = {};
    c.p = {call->p, call->p_limits, p_keys, h->stride};
    c.q = {call->q, call->q_limits, q_keys, h->stride};
    c.self = call->half;
    c.above = above;
    c.row = call->row;
    c.end = call->row + call->rows;
    c.compared = compared;
    c.work = work;
    cudaError_t error = cudaMemsetAsync(compared, 0, 8, stream);
    for (c.table = 0; c.table < h->count && error == cudaSuccess; c.table++)
        error = gcu_bucket_pairs(&c, sink, gpu, stream);
    return error;
}

#include "cuda/join_hashes.h"
#include "cuda/lsh.h"
#include "cuda/search.h"

#include <stdio.h>
#include <string.h>
#include <vector>

namespace
{

/* Nanoseconds of an H200: a multiply-add of the sieve, of a table's tiles and of hashing; a point's
 * place in a table; a table; the plan. */
const double sieving = 1.0 / 240e3, meeting = 1.0 / 60e3, hashing = 1.0 / 20e3, placing = 0.6,
             table_start = 50e3, planning = 5e6;

double points_of(const gnomon_matrix *p, const gnomon_matrix *q)
{
    return (double)p->rows + (q ? (double)q->rows : 0);
}

double coordinates_of(gnomon_metric metric, const gnomon_matrix *p)
{
    const int64_t cols = metric == GNOMON_HAMMING ? 8 * p->cols : p->cols;
    return (double)((cols + GCU_SIEVE_CHUNK - 1) / GCU_SIEVE_CHUNK * GCU_SIEVE_CHUNK);
}

double exact_cost(gnomon_metric metric, const gnomon_matrix *p, const gnomon_matrix *q)
{
    const double pairs = (double)p->rows * (q ? (double)q->rows : (double)p->rows / 2);
    return pairs * coordinates_of(metric, p) * sieving;
}

double hashed_cost(gnomon_metric metric, const gnomon_matrix *p, const gnomon_matrix *q,
                   const gnomon_join_tables &t)
{
    const double tables = (double)(t.shallow + t.deep), points = points_of(p, q);
    const double functions = (double)(t.depth * t.shallow + (t.depth + 1) * t.deep);
    const double hash = metric == GNOMON_HAMMING ? points * functions * 0.01
                                                 : points * functions * (double)p->cols * hashing;
    return planning + hash + tables * (table_start + points * placing) +
           t.candidates * coordinates_of(metric, p) * meeting;
}

/* ---- the plan ---- */

/* Some rows of a view on the GPU, on the host. */
gnomon_status gather(gcu_state *s, const gnomon_matrix *from, const uint32_t *rows, int64_t count,
                     std::vector<char> *bytes, gnomon_matrix *out, cudaStream_t stream, gcu_why why)
{
    const size_t size = (size_t)(count * from->cols) * gnomon_dtype_size(from->dtype);
    char *room = nullptr;
    bytes->resize(size + 8);
    *out = gnomon_matrix_rowmajor(bytes->data(), from->dtype, count, from->cols);
    cudaError_t error =
        gcu_take(s, reinterpret_cast<void **>(&room), size + (size_t)count * 4 + 16, stream);
    char *list = room + (size + 15) / 16 * 16;
    if (error == cudaSuccess)
        error = cudaMemcpyAsync(list, rows, (size_t)count * 4, cudaMemcpyHostToDevice, stream);
    if (error == cudaSuccess)
        error =
            gcu_search_gather(from, reinterpret_cast<const uint32_t *>(list), count, room, stream);
    if (error == cudaSuccess)
        error = cudaMemcpyAsync(bytes->data(), room, size, cudaMemcpyDeviceToHost, stream);
    if (error == cudaSuccess) error = cudaStreamSynchronize(stream);
    gcu_give(room, stream);
    return error == cudaSuccess ? GNOMON_OK : gcu_status(why, error, "a sample of the points");
}

gnomon_status plan(gcu_state *s, const gnomon_join_job *job, const gnomon_matrix *p,
                   const gnomon_matrix *q, gcu_join_hashes *h, cudaStream_t stream, gcu_why why)
{
    std::vector<char> p_bytes, q_bytes;
    gnomon_join_sample sample = {};
    gnomon_status status =
        gather(s, p, job->p_some, job->p_some_count, &p_bytes, &sample.p, stream, why);
    if (status == GNOMON_OK)
        status =
            gather(s, q ? q : p, job->q_some, job->q_some_count, &q_bytes, &sample.q, stream, why);
    if (status != GNOMON_OK) return status;
    if (job->metric == GNOMON_L2) {
        double *most = reinterpret_cast<double *>(h->compared);
        GCU_TRY(why, cudaMemsetAsync(most, 0, 8, stream));
        GCU_TRY(why, gcu_bucket_squares(p, most, stream));
        if (q) GCU_TRY(why, gcu_bucket_squares(q, most, stream));
        GCU_TRY(why, cudaMemcpyAsync(&sample.squares, most, 8, cudaMemcpyDeviceToHost, stream));
        GCU_TRY(why, cudaStreamSynchronize(stream));
    }
    why.text[0] = 0; /* what the core fails with has its text */
    return job->calls->plan(job->calls->user, &sample, &h->tables);
}

/* ---- keys ---- */

struct keying {
    uint32_t *keys;
    int64_t n, stride, first; /* table */
};

cudaError_t take_keys(void *user, const uint64_t *keys, int64_t table, int64_t tables,
                      cudaStream_t stream)
{
    const keying *k = static_cast<const keying *>(user);
    return gcu_bucket_keys(keys, k->n, k->first + table, tables, k->keys, k->stride, stream);
}

gnomon_status hash_side(gcu_state *s, const gnomon_join_job *join, const gcu_join_hashes *h,
                        const gnomon_matrix *points, uint32_t *keys, gcu_why why)
{
    const gnomon_join_tables &t = h->tables;
    const int64_t counts[2] = {t.shallow, t.deep};
    int64_t table = 0, function = 0;
    for (int deeper = 0; deeper < 2; deeper++) {
        gnomon_lsh_job job = {};
        job.hasher = t.hasher;
        job.points = points;
        job.tables = counts[deeper];
        job.depth = job.broad = t.depth + deeper;
        job.multipliers = t.multipliers;
        job.same = true;
        job.memory_limit = join->memory_limit;
        job.host = join->host;
        keying k = {keys, points->rows, h->stride, table};
        const gcu_lsh_taker taker = {&k, take_keys};
        if (job.tables == 0) continue;
        const gnomon_status status = gcu_lsh_hand_keys(s, &job, function, &taker, why);
        if (status != GNOMON_OK) return status;
        table += job.tables;
        function += job.tables * job.depth;
    }
    return GNOMON_OK;
}

void add_why(gnomon_join_job *job, const char *reason)
{
    const size_t said = strlen(job->why);
    snprintf(job->why + said, sizeof job->why - said, "%s%s", said > 0 ? "; " : "", reason);
}

/* Whether the join is to be exact, as the plan or its cost have it. */
bool is_exact(gnomon_join_job *job, const gnomon_matrix *p, const gnomon_matrix *q,
              const gnomon_join_tables &t)
{
    char reason[80];
    if (t.shallow + t.deep == 0) return true;
    job->times = exact_cost(job->metric, p, q) / hashed_cost(job->metric, p, q, t);
    if (job->hashing == GNOMON_JOIN_MUST_HASH || job->times > 1) return false;
    snprintf(reason, sizeof reason, "an LSH join would cost %.2g times as much by the model",
             1 / job->times);
    add_why(job, reason);
    return true;
}

} // namespace

gnomon_status gcu_join_hashes_open(gcu_state *s, gnomon_join_job *job, const gnomon_matrix *p,
                                   const gnomon_matrix *q, gcu_join_hashes *h, cudaStream_t stream,
                                   gcu_why why)
{
    gnomon_matrix p_there = *p, q_there = q ? *q : *p;
    p_there.memory = q_there.memory = GNOMON_CUDA;
    h->self = q == nullptr;
    GCU_TRY(why, gcu_take(s, reinterpret_cast<void **>(&h->compared), 8, stream));
    gnomon_status status = plan(s, job, p, q, h, stream, why);
    if (status != GNOMON_OK || is_exact(job, p, q, h->tables)) return status;
    const int64_t count = h->tables.shallow + h->tables.deep;
    h->stride = (count + 3) / 4 * 4;
    cudaError_t error = gcu_take(s, reinterpret_cast<void **>(&h->p_keys),
                                 (size_t)(p->rows * h->stride) * 4, stream);
    h->q_keys = h->p_keys;
    if (error == cudaSuccess && q)
        error = gcu_take(s, reinterpret_cast<void **>(&h->q_keys),
                         (size_t)(q->rows * h->stride) * 4, stream);
    if (error == cudaSuccess)
        error =
            gcu_take(s, &h->work, gcu_bucket_work(p->rows, q ? q->rows : p->rows, h->self), stream);
    if (error == cudaErrorMemoryAllocation && job->hashing == GNOMON_JOIN_MAY_HASH) {
        add_why(job, "keys of an LSH join don't fit into the GPU's memory");
        return GNOMON_OK;
    }
    if (error != cudaSuccess) return gcu_status(why, error, "taking memory for keys");
    h->count = count;
    job->hashed = 1;
    status = hash_side(s, job, h, &p_there, h->p_keys, why);
    return status == GNOMON_OK && q ? hash_side(s, job, h, &q_there, h->q_keys, why) : status;
}

void gcu_join_hashes_close(gcu_join_hashes *h, cudaStream_t stream)
{
    gcu_give(h->p_keys, stream);
    if (h->q_keys != h->p_keys) gcu_give(h->q_keys, stream);
    gcu_give(h->compared, stream);
    gcu_give(h->work, stream);
    *h = gcu_join_hashes{};
}

cudaError_t gcu_join_hashes_band(const gcu_join_hashes *h, const gcu_sieve_call *call,
                                 gcu_sieve_sink sink, const gcu_gpu *gpu, cudaStream_t stream)
{
    gcu_bucket_call c = {};
    c.p = {call->p, call->p_limits, h->p_keys, h->stride};
    c.q = {call->q, call->q_limits, h->q_keys, h->stride};
    c.self = h->self;
    c.row = call->row;
    c.end = call->row + call->rows;
    c.compared = h->compared;
    c.work = h->work;
    cudaError_t error = cudaMemsetAsync(h->compared, 0, 8, stream);
    for (c.table = 0; c.table < h->count && error == cudaSuccess; c.table++)
        error = gcu_bucket_pairs(&c, sink, gpu, stream);
    return error;
}

/* What a join by L2 has kernels for, on the host: packed points are doubles, and the filter lets a
 * little more than the pairs within the radius pass. There is no hashing. */
#include "base/arithmetic.h"
#include "cuda/join/hashes.h"
#include "simulated.h"

#include <algorithm>
#include <cmath>

static void need(const void *data, size_t bytes)
{
    if (bytes > 0 && !inside(data, bytes, true)) broken("a kernel outside of device memory");
}

static double coordinate(const gnomon_matrix *m, int64_t i, int64_t j)
{
    const float *at = static_cast<const float *>(m->data) + i * m->row_stride + j * m->col_stride;
    need(at, sizeof *at);
    return *at;
}

static double distance(const double *a, const double *b, int64_t cols)
{
    double sum = 0;
    for (int64_t c = 0; c < cols; c++)
        sum += (a[c] - b[c]) * (a[c] - b[c]);
    return std::sqrt(sum);
}

size_t gcu_filter_centre_bytes(int64_t)
{
    return 64;
}

cudaError_t gcu_filter_estimate_centre(gnomon_metric metric, const gnomon_matrix *points, void *,
                                       gcu_filter_centre *out, const gcu_gpu *, cudaStream_t)
{
    *out = {metric, points->cols, nullptr, nullptr};
    return cudaSuccess;
}

size_t gcu_filter_pack_bytes(gnomon_metric, int64_t rows, int64_t cols)
{
    return (size_t)(rows * cols) * sizeof(double) + 64;
}

cudaError_t gcu_filter_pack(const gcu_filter_centre *, const gnomon_matrix *points, void *memory,
                            gcu_filter_points *out, unsigned long long *fault, const gcu_gpu *,
                            cudaStream_t stream)
{
    const gnomon_matrix m = *points;
    *out = {};
    out->rows = m.rows;
    out->padded = gnomon_round_up(m.rows, GCU_FILTER_PAD);
    out->cols = m.cols;
    out->halves = static_cast<uint8_t *>(memory);
    double *packed = static_cast<double *>(memory);
    return enqueue(stream, [=] {
        need(packed, (size_t)(m.rows * m.cols) * sizeof *packed);
        for (int64_t i = 0; i < m.rows; i++)
            for (int64_t j = 0; j < m.cols; j++) {
                const double value = packed[i * m.cols + j] = coordinate(&m, i, j);
                const unsigned long long at = (unsigned long long)(i * m.cols + j);
                if (!std::isfinite(value) && fault != nullptr && at < *fault) *fault = at;
            }
    });
}

size_t gcu_filter_limits_work(void)
{
    return 64;
}

cudaError_t gcu_filter_limits(const gcu_filter_centre *, const gcu_filter_points *p,
                              const gcu_filter_points *q, const double *, double radius,
                              float *p_limits, float *q_limits, void *, cudaStream_t stream)
{
    const int64_t p_rows = p->padded, q_rows = q->padded;
    return enqueue(stream, [=] {
        need(p_limits, (size_t)p_rows * sizeof *p_limits);
        need(q_limits, (size_t)q_rows * sizeof *q_limits);
        std::fill(p_limits, p_limits + p_rows, (float)radius);
        std::fill(q_limits, q_limits + q_rows, 0.5f);
    });
}

cudaError_t gcu_filter(const gcu_filter_call *call, gcu_filter_sink sink, const gcu_gpu *,
                       cudaStream_t stream)
{
    const gcu_filter_call c = *call;
    const gcu_filter_points p = *c.p, q = *c.q;
    return enqueue(stream, [=] {
        const double *a = reinterpret_cast<const double *>(p.halves);
        const double *b = reinterpret_cast<const double *>(q.halves);
        need(a, (size_t)(p.rows * p.cols) * sizeof *a);
        need(b, (size_t)(q.rows * q.cols) * sizeof *b);
        need(c.p_limits, (size_t)p.rows * sizeof *c.p_limits);
        need(c.q_limits, (size_t)q.rows * sizeof *c.q_limits);
        need(sink.pairs, (size_t)sink.room * 8);
        for (int64_t i = c.row; i < std::min(c.row + c.rows, p.rows); i++)
            for (int64_t j = c.half ? i + 1 : 0; j < q.rows; j++) {
                if (distance(a + i * p.cols, b + j * p.cols, p.cols) >
                    (double)c.p_limits[i] + c.q_limits[j])
                    continue;
                const unsigned long long at = (*sink.count)++;
                if ((int64_t)at < sink.room) sink.pairs[at] = (uint64_t)i << 32 | (uint64_t)j;
            }
        const unsigned long long kept = std::min(*sink.count, (unsigned long long)sink.room);
        std::reverse(sink.pairs, sink.pairs + kept);
    });
}

size_t gcu_verify_work(int64_t)
{
    return 64;
}

cudaError_t gcu_verify_pairs(const gcu_verify *verify, uint64_t *pairs, int64_t count,
                             double *distances, unsigned long long *kept, void *, size_t,
                             const gcu_gpu *, cudaStream_t stream)
{
    const gcu_verify v = *verify;
    const gnomon_matrix p = *v.p, q = *v.q;
    return enqueue(stream, [=] {
        int64_t left = 0;
        std::sort(pairs, pairs + count);
        for (int64_t at = 0; at < count; at++) {
            const int64_t i = (int64_t)(pairs[at] >> 32), j = (int64_t)(uint32_t)pairs[at];
            double sum = 0;
            for (int64_t c = 0; c < p.cols; c++) {
                const double apart = coordinate(&p, i, c) - coordinate(&q, j, c);
                sum += apart * apart;
            }
            if (std::sqrt(sum) > v.radius || (v.above != INT64_MIN && j - i <= v.above)) continue;
            pairs[left] = pairs[at];
            distances[left++] = std::sqrt(sum);
        }
        *kept = (unsigned long long)left;
    });
}

cudaError_t gcu_join_pairs(const uint64_t *pairs, const double *distances, int64_t count,
                           int64_t p_first, int64_t q_first, gnomon_pair *out, cudaStream_t stream)
{
    return enqueue(stream, [=] {
        for (int64_t at = 0; at < count; at++)
            out[at] = {p_first + (int64_t)(pairs[at] >> 32), q_first + (int64_t)(uint32_t)pairs[at],
                       distances[at]};
    });
}

size_t gcu_bucket_work(int64_t, int64_t, bool)
{
    return 0;
}

gnomon_status gcu_join_hashes_plan(gcu_state *, gnomon_join_job *, const gnomon_matrix *,
                                   const gnomon_matrix *, gcu_join_hashes *, unsigned long long *,
                                   cudaStream_t, gcu_why)
{
    return GNOMON_OK;
}

size_t gcu_join_hashes_key_bytes(const gcu_join_hashes *, int64_t)
{
    return 0;
}

gnomon_status gcu_join_hashes_keys(gcu_state *, const gnomon_join_job *, const gcu_join_hashes *,
                                   const gnomon_matrix *, uint32_t *, gcu_why)
{
    return GNOMON_OK;
}

cudaError_t gcu_join_hashes_band(const gcu_join_hashes *, const gcu_filter_call *, uint32_t *,
                                 uint32_t *, int64_t, gcu_filter_sink, unsigned long long *, void *,
                                 const gcu_gpu *, cudaStream_t)
{
    return cudaErrorInvalidValue;
}

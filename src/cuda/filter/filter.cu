/* The filter: which way a call goes. */
#include "cuda/filter/walk.cuh"

cudaError_t gcu_filter(const gcu_filter_call *call, gcu_filter_sink sink, const gcu_gpu *gpu,
                       cudaStream_t stream)
{
    const gcu_filter_points *p = call->p, *q = call->q;
    const int64_t left = p->rows - call->row;
    if (call->row < 0 || p->chunks != q->chunks || p->rows > GCU_FILTER_ROWS ||
        q->rows > GCU_FILTER_ROWS)
        return cudaErrorInvalidValue;
    if (left <= 0 || call->rows <= 0 || q->rows == 0) return cudaSuccess;
    filter_launch l = {};
    l.p = p->halves;
    l.q = q->halves;
    l.p_padded = p->padded;
    l.q_padded = q->padded;
    l.chunks = (int)p->chunks;
    l.p_limits = call->p_limits;
    l.q_limits = call->q_limits;
    l.row = call->row;
    l.end = call->row + (call->rows < left ? call->rows : left);
    l.sink = sink;
    l.walk.half = call->half;
    return gcu_filter_hopper_supported(gpu) ? gcu_filter_hopper(l, gpu, stream)
                                            : gcu_filter_mma(l, gpu, stream);
}

/* The sieve: which way a call goes. */
#include "cuda/filter/walk.cuh"

cudaError_t gcu_sieve(const gcu_sieve_call *call, gcu_sieve_sink sink, const gcu_gpu *gpu,
                      cudaStream_t stream)
{
    const gcu_sieve_points *p = call->p, *q = call->q;
    const int64_t left = p->rows - call->row;
    if (call->row < 0 || p->chunks != q->chunks || p->rows > GCU_SIEVE_ROWS ||
        q->rows > GCU_SIEVE_ROWS)
        return cudaErrorInvalidValue;
    if (left <= 0 || call->rows <= 0 || q->rows == 0) return cudaSuccess;
    sieve_launch l = {};
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
    return gcu_sieve_takes_hopper(gpu) ? gcu_sieve_hopper(l, gpu, stream)
                                       : gcu_sieve_mma(l, gpu, stream);
}

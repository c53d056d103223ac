/* Scaling and copying views, whatever their strides. */
#include "cuda/runtime/grid.cuh"
#include "cuda/runtime/state.h"

enum { THREADS = 256 };

/* A view with the side of the smaller stride inside. */
struct plane {
    int64_t lines, length, line_stride, step;
    bool by_rows; /* a line is a row */
};

static plane plane_of(const gnomon_matrix *m)
{
    const int64_t rs = m->row_stride < 0 ? -m->row_stride : m->row_stride;
    const int64_t cs = m->col_stride < 0 ? -m->col_stride : m->col_stride;
    if (cs <= rs) return {m->rows, m->cols, m->row_stride, m->col_stride, true};
    return {m->cols, m->rows, m->col_stride, m->row_stride, false};
}

template <typename T> __global__ void scale_kernel(T *data, plane p, double beta)
{
    const int64_t count = p.lines * p.length, jump = (int64_t)gridDim.x * THREADS;
    for (int64_t e = (int64_t)blockIdx.x * THREADS + threadIdx.x; e < count; e += jump) {
        T *y = data + e / p.length * p.line_stride + e % p.length * p.step;
        *y = beta == 0.0 ? (T)0 : (T)(beta * (double)*y);
    }
}

cudaError_t gcu_scale(const gnomon_matrix *view, double beta, cudaStream_t stream)
{
    if (view->rows == 0 || view->cols == 0 || beta == 1.0) return cudaSuccess;
    const plane p = plane_of(view);
    const unsigned grid = gcu_grid(p.lines * p.length, THREADS, 1 << 20);
    if (view->dtype == GNOMON_F64)
        scale_kernel<<<grid, THREADS, 0, stream>>>(static_cast<double *>(view->data), p, beta);
    else
        scale_kernel<<<grid, THREADS, 0, stream>>>(static_cast<float *>(view->data), p, beta);
    return cudaGetLastError();
}

template <typename From, typename To>
__global__ void copy_kernel(const From *from, To *to, plane p, int64_t from_line, int64_t from_step)
{
    const int64_t count = p.lines * p.length, jump = (int64_t)gridDim.x * THREADS;
    for (int64_t e = (int64_t)blockIdx.x * THREADS + threadIdx.x; e < count; e += jump) {
        const int64_t line = e / p.length, at = e % p.length;
        to[line * p.line_stride + at * p.step] = (To)from[line * from_line + at * from_step];
    }
}

template <typename From, typename To>
static cudaError_t copy(const gnomon_matrix *from, const gnomon_matrix *to, cudaStream_t stream)
{
    const plane p = plane_of(to);
    copy_kernel<<<gcu_grid(p.lines * p.length, THREADS, 1 << 20), THREADS, 0, stream>>>(
        static_cast<const From *>(from->data), static_cast<To *>(to->data), p,
        p.by_rows ? from->row_stride : from->col_stride,
        p.by_rows ? from->col_stride : from->row_stride);
    return cudaGetLastError();
}

cudaError_t gcu_copy(const gnomon_matrix *from, const gnomon_matrix *to, cudaStream_t stream)
{
    if (to->rows == 0 || to->cols == 0) return cudaSuccess;
    if (to->dtype == GNOMON_F64) return copy<double, double>(from, to, stream);
    if (from->dtype == GNOMON_F64) return copy<double, float>(from, to, stream);
    return copy<float, float>(from, to, stream);
}

/* Looking for NaN and infinity: one read of the view, 16 bytes at a time where they lie together.
 * A floating-point number is not finite exactly when its exponent bits are all ones; adding the
 * lowest of them to the exponent field then carries into the sign's place. */
#include "cuda/runtime/state.h"

enum { THREADS = 256, WARPS = THREADS / 32, SEGMENT = 16384 /* elements a warp takes */ };

/* Lines of elements 'step' apart. */
struct lines {
    int64_t count, length, stride, step;
    int64_t segments; /* of a line */
    /* Element e of line l is element l * line_is + e * step_is of the whole input, in row order;
     * when lines that lie end to end are taken as one, e stands for e / fold lines on. */
    int64_t base, line_is, step_is, fold;
};

template <typename T> struct exponent;
template <> struct exponent<uint64_t> {
    static __device__ bool bad(uint64_t bits, uint64_t mask)
    {
        return ((bits & mask) + (mask & -mask)) >> 63;
    }
};
template <> struct exponent<uint32_t> {
    static __device__ bool bad(uint32_t bits, uint32_t mask)
    {
        return ((bits & mask) + (mask & -mask)) >> 31;
    }
};
template <> struct exponent<uint16_t> {
    static __device__ bool bad(uint16_t bits, uint16_t mask)
    {
        return (bits & mask) == mask;
    }
};

__device__ __forceinline__ void found(const lines &v, int64_t line, int64_t e,
                                      unsigned long long *first)
{
    if (v.fold) {
        line = e / v.fold;
        e %= v.fold;
    }
    atomicMin(first, (unsigned long long)(v.base + line * v.line_is + e * v.step_is));
}

/* Whether any of a vector's 32-bit words holds a bad element; 64-bit elements show in their upper
 * words, 16-bit ones in either half. */
template <typename T> __device__ __forceinline__ bool any_bad(uint4 w, T mask)
{
    if (sizeof(T) == 8) {
        const uint32_t m = (uint32_t)((uint64_t)mask >> 32);
        return exponent<uint32_t>::bad(w.y, m) || exponent<uint32_t>::bad(w.w, m);
    }
    if (sizeof(T) == 4) {
        const uint32_t m = (uint32_t)mask, low = m & -m;
        return (((w.x & m) + low) | ((w.y & m) + low) | ((w.z & m) + low) | ((w.w & m) + low)) >>
               31;
    }
    const uint32_t m = (uint32_t)mask * 0x10001u,
                   low = ((uint32_t)mask & -(uint32_t)mask) * 0x10001u;
    return ((((w.x & m) + low) | ((w.y & m) + low) | ((w.z & m) + low) | ((w.w & m) + low)) &
            0x80008000u) != 0;
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    nonfinite_kernel(const T *data, lines v, T mask, unsigned long long *first)
{
    constexpr int EACH = 16 / sizeof(T);
    const int lane = threadIdx.x % 32;
    const int64_t units = v.count * v.segments, jump = (int64_t)gridDim.x * WARPS;
    for (int64_t u = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32; u < units; u += jump) {
        const int64_t line = u / v.segments, from = u % v.segments * SEGMENT;
        const int64_t left = v.length - from, count = left < SEGMENT ? left : SEGMENT;
        const T *p = data + line * v.stride + from * v.step;
        if (v.step != 1) {
            for (int64_t e = lane; e < count; e += 32)
                if (exponent<T>::bad(p[e * v.step], mask)) found(v, line, from + e, first);
            continue;
        }
        int64_t head = (int64_t)((16 - (uintptr_t)p % 16) % 16 / sizeof(T));
        if (head > count) head = count;
        const int64_t body = (count - head) / EACH;
        const uint4 *q = reinterpret_cast<const uint4 *>(p + head);
        if (lane < head && exponent<T>::bad(p[lane], mask)) found(v, line, from + lane, first);
        int64_t i = lane;
        for (; i + 96 < body; i += 128) {
            const uint4 a = __ldcs(q + i), b = __ldcs(q + i + 32), c = __ldcs(q + i + 64),
                        d = __ldcs(q + i + 96);
            if (any_bad<T>(a, mask) || any_bad<T>(b, mask) || any_bad<T>(c, mask) ||
                any_bad<T>(d, mask))
                for (int64_t t = i; t <= i + 96; t += 32)
                    for (int e = 0; e < EACH; e++)
                        if (exponent<T>::bad(p[head + t * EACH + e], mask))
                            found(v, line, from + head + t * EACH + e, first);
        }
        for (; i < body; i += 32)
            for (int e = 0; e < EACH; e++)
                if (exponent<T>::bad(p[head + i * EACH + e], mask))
                    found(v, line, from + head + i * EACH + e, first);
        for (int64_t e = head + body * EACH + lane; e < count; e += 32)
            if (exponent<T>::bad(p[e], mask)) found(v, line, from + e, first);
    }
}

bool gcu_may_be_nonfinite(gnomon_dtype dtype)
{
    return dtype == GNOMON_F64 || dtype == GNOMON_F32 || dtype == GNOMON_F16 ||
           dtype == GNOMON_BF16;
}

template <typename T>
static cudaError_t scan(const gnomon_matrix *m, const lines &v, T mask, unsigned long long *first,
                        cudaStream_t stream)
{
    const int64_t largest_grid = 1 << 16;
    const int64_t blocks = (v.count * v.segments + WARPS - 1) / WARPS;
    nonfinite_kernel<<<(unsigned)(blocks < largest_grid ? blocks : largest_grid), THREADS, 0,
                       stream>>>(static_cast<const T *>(m->data), v, mask, first);
    return cudaGetLastError();
}

cudaError_t gcu_find_nonfinite(const gnomon_matrix *m, int64_t row, int64_t col, int64_t cols,
                               unsigned long long *first, cudaStream_t stream)
{
    if (m->rows == 0 || m->cols == 0 || !gcu_may_be_nonfinite(m->dtype)) return cudaSuccess;
    const int64_t rs = m->row_stride < 0 ? -m->row_stride : m->row_stride;
    const int64_t cs = m->col_stride < 0 ? -m->col_stride : m->col_stride;
    const bool by_rows = m->rows == 1 || (m->cols > 1 && cs <= rs);
    lines v = {};
    v.count = by_rows ? m->rows : m->cols;
    v.length = by_rows ? m->cols : m->rows;
    v.stride = by_rows ? m->row_stride : m->col_stride;
    v.step = by_rows ? m->col_stride : m->row_stride;
    v.base = row * cols + col;
    v.line_is = by_rows ? cols : 1;
    v.step_is = by_rows ? 1 : cols;
    if (v.count > 1 && v.stride == v.length * v.step) {
        v.fold = v.length;
        v.length *= v.count;
        v.count = 1;
    }
    v.segments = (v.length + SEGMENT - 1) / SEGMENT;
    switch (m->dtype) {
    case GNOMON_F64:
        return scan<uint64_t>(m, v, UINT64_C(0x7ff0000000000000), first, stream);
    case GNOMON_F32:
        return scan<uint32_t>(m, v, 0x7f800000u, first, stream);
    case GNOMON_F16:
        return scan<uint16_t>(m, v, 0x7c00, first, stream);
    default:
        return scan<uint16_t>(m, v, 0x7f80, first, stream);
    }
}

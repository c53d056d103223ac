/* cuda/project/srht/transform.cuh: a Hadamard transform of 2^LOG2 elements in shared memory, for
 * srht's sums and its adjoint.
 *
 * A point has 2^LOG2 / 32 threads; a thread has 32 elements of it at a time. Levels come in three
 * groups, of what a thread holds: the outer bits (0, 1 and the highest three), the middle ones (2
 * to 6) and those left (7 to LOG2 - 4). In between the elements change hands through shared memory.
 */
#ifndef GNOMON_CUDA_SRHT_TRANSFORM_CUH
#define GNOMON_CUDA_SRHT_TRANSFORM_CUH

#include <stdint.h>

/* One level of the transform on registers: bit BIT of the register's number. */
template <int COUNT, int BIT> static __device__ __forceinline__ void level(float *v)
{
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        if ((i >> BIT & 1) == 0) {
            const float a = v[i], b = v[i | 1 << BIT];
            v[i] = a + b;
            v[i | 1 << BIT] = a - b;
        }
}

template <int COUNT, int FIRST, int END> static __device__ __forceinline__ void levels(float *v)
{
    if constexpr (FIRST < END) {
        level<COUNT, FIRST>(v);
        levels<COUNT, FIRST + 1, END>(v);
    }
}

/* Where element i of a lone point lies: a step of four banks at every 128 elements. */
static __device__ __forceinline__ int place(int i)
{
    return i + (i >> 7 << 2);
}

/* Shared memory of POINTS points whose elements alternate, lanes being points first: 1 (which lies
 * as 'place' says) or 4 to 16. */
template <int LOG2, int POINTS> struct lanes {
    static constexpr int points = POINTS;
    static constexpr int threads = (1 << LOG2) / 32; /* a point's */
    static constexpr int block = threads * POINTS;
    static constexpr int groups = 32 / POINTS; /* elements that a warp reaches at once */
    static constexpr int left = LOG2 - 10;     /* levels, and their count of elements */
    static constexpr int count = 1 << left;
    static constexpr int floats = POINTS == 1 ? (1 << LOG2) + (1 << LOG2) / 32 : POINTS << LOG2;

    /* Those elements shall lie in different banks whichever bits the lanes stand for: the lowest
     * bits of an element's number take in bits 2 to 4, the third one bit 7 too. Linear over the
     * bits. */
    static __device__ __forceinline__ int at(int i)
    {
        if constexpr (POINTS == 1)
            return place(i);
        else
            return i ^ (i >> 2 & (groups - 1)) ^ (groups == 8 ? i >> 5 & 4 : 0);
    }

    /* The part of at(i) in its lowest three bits, for i a multiple of 4; the rest, 'high', adds. */
    static __device__ __forceinline__ int low(int i)
    {
        return at(i) & 7;
    }

    static __device__ __forceinline__ int high(int i)
    {
        return i & ~7;
    }

    /* The element of a thread's register 4 j + u before and after the outer levels. */
    static __device__ __forceinline__ int outer(int t, int j, int u)
    {
        return j << (LOG2 - 3) | t << 2 | u;
    }

    static __device__ __forceinline__ void put_outer(const float *v, float *shared, int t)
    {
        if constexpr (POINTS == 1) {
#pragma unroll
            for (int j = 0; j < 8; j++)
                *reinterpret_cast<float4 *>(shared + place(outer(t, j, 0))) =
                    make_float4(v[4 * j], v[4 * j + 1], v[4 * j + 2], v[4 * j + 3]);
        } else {
            const int base = at(t << 2);
#pragma unroll
            for (int u = 0; u < 4; u++) {
                float *const p = shared + (base ^ u) * POINTS;
#pragma unroll
                for (int j = 0; j < 8; j++)
                    p[(j << (LOG2 - 3)) * POINTS] = v[4 * j + u];
            }
        }
    }

    static __device__ __forceinline__ void get_outer(float *v, const float *shared, int t)
    {
        if constexpr (POINTS == 1) {
#pragma unroll
            for (int j = 0; j < 8; j++) {
                const float4 x = *reinterpret_cast<const float4 *>(shared + place(outer(t, j, 0)));
                v[4 * j] = x.x, v[4 * j + 1] = x.y, v[4 * j + 2] = x.z, v[4 * j + 3] = x.w;
            }
        } else {
            const int base = at(t << 2);
#pragma unroll
            for (int u = 0; u < 4; u++) {
                const float *const p = shared + (base ^ u) * POINTS;
#pragma unroll
                for (int j = 0; j < 8; j++)
                    v[4 * j + u] = p[(j << (LOG2 - 3)) * POINTS];
            }
        }
    }

    static __device__ __forceinline__ void middle(float *shared, int t)
    {
        float v[32];
        if constexpr (POINTS == 1) {
            float *const p = shared + place((t >> 2) << 7) + (t & 3);
#pragma unroll
            for (int i = 0; i < 32; i++)
                v[i] = p[4 * i];
            levels<32, 0, 5>(v);
#pragma unroll
            for (int i = 0; i < 32; i++)
                p[4 * i] = v[i];
        } else {
            const int base = at((t >> 2) << 7 | (t & 3));
#pragma unroll
            for (int i = 0; i < 32; i++)
                v[i] = shared[(base ^ low(4 * i)) * POINTS + high(4 * i) * POINTS];
            levels<32, 0, 5>(v);
#pragma unroll
            for (int i = 0; i < 32; i++)
                shared[(base ^ low(4 * i)) * POINTS + high(4 * i) * POINTS] = v[i];
        }
    }

    /* Nothing for 10. */
    static __device__ __forceinline__ void rest(float *shared, int t)
    {
        if constexpr (left > 0 && POINTS == 1) {
            /* the other bits of an element: 0 and 1 (a vector of W), 2 to 6 and above 'left' */
            constexpr int W = left <= 3 ? 4 : 2;
            constexpr int sets = 32 / (count * W);
#pragma unroll
            for (int s = 0; s < sets; s++) {
                const int other = s * threads + t; /* 2^LOG2 / (count * W) of them */
                const int below = other & (128 / W - 1), above = other / (128 / W);
                float *const p = shared + place(above << (7 + left)) + below * W;
                float w[W][count];
#pragma unroll
                for (int i = 0; i < count; i++) {
                    if constexpr (W == 4) {
                        const float4 x = *reinterpret_cast<const float4 *>(p + i * 132);
                        w[0][i] = x.x, w[1][i] = x.y, w[2][i] = x.z, w[3][i] = x.w;
                    } else {
                        const float2 x = *reinterpret_cast<const float2 *>(p + i * 132);
                        w[0][i] = x.x, w[1][i] = x.y;
                    }
                }
#pragma unroll
                for (int u = 0; u < W; u++)
                    levels<count, 0, left>(w[u]);
#pragma unroll
                for (int i = 0; i < count; i++) {
                    if constexpr (W == 4)
                        *reinterpret_cast<float4 *>(p + i * 132) =
                            make_float4(w[0][i], w[1][i], w[2][i], w[3][i]);
                    else
                        *reinterpret_cast<float2 *>(p + i * 132) = make_float2(w[0][i], w[1][i]);
                }
            }
        } else if constexpr (left > 0) {
#pragma unroll
            for (int s = 0; s < 32 / count; s++) {
                const int other = s * threads + t;
                const int base = at((other >> 7) << (7 + left) | (other & 127));
                float w[count];
#pragma unroll
                for (int i = 0; i < count; i++)
                    w[i] = shared[(base ^ low(i << 7)) * POINTS + high(i << 7) * POINTS];
                levels<count, 0, left>(w);
#pragma unroll
                for (int i = 0; i < count; i++)
                    shared[(base ^ low(i << 7)) * POINTS + high(i << 7) * POINTS] = w[i];
            }
        }
    }

    /* Where the signs lie that a lane holds for its warp's elements; bits of element (j, u) are
     * taken by signs_of. With several points the warp's threads of a point are within 8 adjacent
     * ones, so lane j holds the word of register 4 j. */
    static __device__ __forceinline__ int sign_word(int lane, int t)
    {
        if constexpr (POINTS == 1)
            return lane / 4 * ((1 << LOG2) / 256) + t / 32 * 4 + t % 4;
        else
            return ((lane & 7) << (LOG2 - 3) | t << 2) >> 5;
    }

    /* The signs of register 4 j ... 4 j + 3 in the lowest bits. */
    static __device__ __forceinline__ uint32_t signs_of(uint32_t word, int t, int j)
    {
        if constexpr (POINTS == 1)
            return __shfl_sync(0xFFFFFFFFu, word, j * 4 + (t & 31) / 8) >> (t % 8 * 4);
        else
            return __shfl_sync(0xFFFFFFFFu, word, j) >> (t % 8 * 4);
    }
};

/* Waits for the threads of one lone point (a warp where LOG2 is 10), or of all points. */
template <int LOG2, int POINTS> static __device__ __forceinline__ void sync_points()
{
    if constexpr (LOG2 == 10 && POINTS == 1)
        __syncwarp();
    else
        __syncthreads();
}

/* All levels of what a thread has, before the outer ones, in registers. The result is in shared
 * memory for all threads. */
template <int LOG2, int POINTS>
static __device__ __forceinline__ void transform(float *v, float *shared, int t)
{
    using L = lanes<LOG2, POINTS>;
    levels<32, 0, 5>(v);
    L::put_outer(v, shared, t);
    sync_points<LOG2, POINTS>();
    L::middle(shared, t);
    sync_points<LOG2, POINTS>();
    if constexpr (L::left > 0) {
        L::rest(shared, t);
        sync_points<LOG2, POINTS>();
    }
}

static __device__ __forceinline__ float with_sign(float x, uint32_t bits, int u)
{
    return __uint_as_float(__float_as_uint(x) ^ (bits << (31 - u) & 0x80000000u));
}

/* The block that begins at element 2^LOG2 * (16 * segment + u) takes element 'sample' mod 2^LOG2
 * with sign (-1)^popcount((sample >> LOG2) & block): from bit 16 on, those of the segment's 16
 * blocks. */
template <int LOG2>
static __device__ __forceinline__ uint32_t block_signs(uint64_t sample, uint64_t segment)
{
    const uint64_t high = sample >> LOG2;
    uint32_t signs = __popcll(high >> 4 & segment) & 1 ? 0xFFFFu : 0;
    signs ^= high & 1 ? 0xAAAAu : 0;
    signs ^= high & 2 ? 0xCCCCu : 0;
    signs ^= high & 4 ? 0xF0F0u : 0;
    signs ^= high & 8 ? 0xFF00u : 0;
    return signs << 16;
}

#endif

/* cuda/linalg/jacobi.cuh: what one thread does in a round of Jacobi's rotations (linalg/jacobi.cu).
 *
 * Rows stand in places that go round: those in places 2 i and 2 i + 1 are a pair. The matrix is
 * held by places, so a thread always rotates the same numbers of memory, and writes them where they
 * are to be in the next round: a round computes no index. */
#ifndef GNOMON_CUDA_SVD_JACOBI_CUH
#define GNOMON_CUDA_SVD_JACOBI_CUH

#include "cuda/linalg/small.h"

enum { JACOBI_PAIRS = GCU_SVD_JACOBI_MOST / 2, JACOBI_SWEEPS = 40 };

/* One that is no larger than this of the trace is nothing: Gram matrices are not more exact, and
 * rotations leave as much. */
#define JACOBI_NOTHING 0x1p-50
/* A pair is orthogonal when the square of its cosine is no larger. */
#define JACOBI_ORTHOGONAL 0x1p-100f

/* What is on and above the diagonal: the diagonal, by places; what each pair has in common; and of
 * two pairs first and first, first and second, second and first, second and second, each of all
 * such blocks, so that neighbours in memory are what neighbours rotate. */
struct jacobi_matrix {
    int size, pairs, blocks; /* an even number of rows, at least 4; half of it; of two pairs */
};

static __host__ __device__ __forceinline__ jacobi_matrix jacobi_matrix_of(int n)
{
    const int size = n < 4 ? 4 : n + n % 2, pairs = size / 2;
    return {size, pairs, pairs * (pairs - 1) / 2};
}

/* An even number of numbers, of which the last may be none. */
static __host__ __device__ __forceinline__ int jacobi_numbers(const jacobi_matrix &a)
{
    return (a.size * (a.size + 1) / 2 + 1) / 2 * 2;
}

/* Two different pairs. */
struct jacobi_block {
    int i, j; /* i negative: none */
};
static __host__ __device__ __forceinline__ jacobi_block jacobi_block_of(const jacobi_matrix &a,
                                                                        int e)
{
    if (e < 0 || e >= a.blocks) return {-1, 0};
    const int i = e % a.pairs, apart = i + e / a.pairs + 1;
    return {i, apart < a.pairs ? apart : apart - a.pairs};
}

/* Where the number of two places lies. */
static __host__ __device__ __forceinline__ int jacobi_index(const jacobi_matrix &a, int r, int c)
{
    const int i = r / 2, j = c / 2;
    if (r == c) return r;
    if (i == j) return a.size + i;
    const int apart = j > i ? j - i : j - i + a.pairs;
    const bool mirrored = 2 * apart > a.pairs || (2 * apart == a.pairs && j < i);
    const int block = mirrored ? (a.pairs - apart - 1) * a.pairs + j : (apart - 1) * a.pairs + i;
    const int quarter = mirrored ? c % 2 * 2 + r % 2 : r % 2 * 2 + c % 2;
    return a.size + a.pairs + quarter * a.blocks + block;
}

/* A place's next one: the first stays, the others go round, once in a sweep. And the one before. */
static __host__ __device__ __forceinline__ int jacobi_next(const jacobi_matrix &a, int place)
{
    if (place == 0) return 0;
    if (place == 1) return 2;
    if (place % 2) return place - 2;
    return place + 2 < a.size ? place + 2 : place + 1;
}

static __host__ __device__ __forceinline__ int jacobi_last(const jacobi_matrix &a, int place)
{
    if (place == 0) return 0;
    if (place == 2) return 1;
    if (place % 2) return place + 2 < a.size ? place + 2 : place - 1;
    return place - 2;
}

/* Where the numbers of a block go; two halves of 16 bits, the earlier one low. */
struct jacobi_way {
    uint32_t to[2];
};
static __host__ __device__ __forceinline__ jacobi_way jacobi_way_of(const jacobi_matrix &a,
                                                                    jacobi_block block)
{
    if (block.i < 0) return {{0, 0}};
    const int p = jacobi_next(a, 2 * block.i), q = jacobi_next(a, 2 * block.i + 1);
    const int r = jacobi_next(a, 2 * block.j), s = jacobi_next(a, 2 * block.j + 1);
    return {{(uint32_t)jacobi_index(a, p, r) | (uint32_t)jacobi_index(a, p, s) << 16,
             (uint32_t)jacobi_index(a, q, r) | (uint32_t)jacobi_index(a, q, s) << 16}};
}

/* ---- angles ---- */

/* A pair's own numbers, and its rotation. */
struct jacobi_pair {
    double aa, bb, x, cosine, sine;
};

/* Which sums decide: what is no larger than 'least' is nothing; a pair whose cosine's square is
 * larger than 'last' calls for another sweep. */
struct jacobi_limits {
    float least, last;
};

static __device__ __forceinline__ float jacobi_root(float x)
{
    float root;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(x));
    return root;
}

static __device__ __forceinline__ float jacobi_inverse(float x)
{
    float inverse;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(x));
    return inverse;
}

/* The rotation that brings what a pair has in common near to 0; whether that is so much that
 * another sweep is needed. The angle is that of fp32, cosine and sine belong to it in fp64: a
 * rotation that stops a little short is one all the same. */
static __device__ __forceinline__ bool jacobi_find(const jacobi_limits &limits, jacobi_pair *p)
{
    /* in fp32, which is quick: what is below its range counts as 0 */
    const float d = (float)(p->bb - p->aa), x = fabsf((float)p->x), y = 2 * (float)p->x;
    const float square = x * x, product = fabsf((float)p->aa * (float)p->bb);
    const bool rotates = x > limits.least && square > JACOBI_ORTHOGONAL * product;
    const float square_length = fmaf(y, y, d * d); /* of what rotates neither 0 nor beyond fp32 */
    const float length = fmaf(square_length, jacobi_root(square_length), fabsf(d));
    const float tangent = rotates ? copysignf(y, d * y) * jacobi_inverse(length) : 0.0f;
    /* one step of third order: 2^-22 becomes 2^-65 */
    const double t = (double)tangent, w = fma(t, t, 1.0);
    const double near = (double)jacobi_root(fmaf(tangent, tangent, 1.0f)), sine = t * near;
    const double rest = fma(-w * near, near, 1.0), more = fma(0.375, rest, 0.5);
    p->cosine = fma(near * rest, more, near);
    p->sine = fma(sine * rest, more, sine);
    return rotates && square > limits.last * product;
}

/* What the thread of a pair needs to find the next round's, before that is there: it comes of two
 * pairs, one row of each: the row's number on the diagonal, its partner's, what the two have in
 * common; the sign that the sine has for it. */
struct jacobi_source {
    int own, other, common, pair;
    uint32_t sign;
};
struct jacobi_ahead {
    jacobi_source row[2];
    int cross[4];     /* where row 0, or its partner, meets row 1, or its partner */
    int common_place; /* where what the pair has in common goes after its rotation */
};

static __host__ __device__ __forceinline__ jacobi_source jacobi_source_of(const jacobi_matrix &a,
                                                                          int place)
{
    return {place, place ^ 1, a.size + place / 2, place / 2, place % 2 ? 1u << 31 : 0u};
}

static __host__ __device__ __forceinline__ jacobi_ahead jacobi_ahead_of(const jacobi_matrix &a,
                                                                        int pair)
{
    const int p = jacobi_last(a, 2 * pair), q = jacobi_last(a, 2 * pair + 1);
    return {{jacobi_source_of(a, p), jacobi_source_of(a, q)},
            {jacobi_index(a, p, q), jacobi_index(a, p, q ^ 1), jacobi_index(a, p ^ 1, q),
             jacobi_index(a, p ^ 1, q ^ 1)},
            jacobi_index(a, jacobi_next(a, 2 * pair), jacobi_next(a, 2 * pair + 1))};
}

/* The numbers of this round from which those of the next one's pair come. */
struct jacobi_sources {
    double own[2], other[2], common[2], cross[4];
    double2 angle[2];
};

static __device__ __forceinline__ jacobi_sources jacobi_load(const double *at,
                                                             const jacobi_ahead &of,
                                                             const double2 *angles)
{
    jacobi_sources s;
#pragma unroll
    for (int r = 0; r < 2; r++) {
        s.own[r] = at[of.row[r].own];
        s.other[r] = at[of.row[r].other];
        s.common[r] = at[of.row[r].common];
        s.angle[r] = angles[of.row[r].pair];
    }
#pragma unroll
    for (int e = 0; e < 4; e++)
        s.cross[e] = at[of.cross[e]];
    return s;
}

/* p becomes the next round's pair, but for its angle. */
static __device__ __forceinline__ void jacobi_step(const jacobi_ahead &of, const jacobi_sources &s,
                                                   jacobi_pair *p)
{
    double diagonal[2], sine[2];
#pragma unroll
    for (int r = 0; r < 2; r++) { /* a chain as short as that of x */
        const double c = s.angle[r].x, t = s.angle[r].y;
        sine[r] = __hiloint2double(__double2hiint(t) ^ (int)of.row[r].sign, __double2loint(t));
        diagonal[r] = fma(-2 * c * s.common[r], sine[r], fma(c * c, s.own[r], t * t * s.other[r]));
    }
    p->aa = diagonal[0];
    p->bb = diagonal[1];
    const double c = s.angle[0].x, d = s.angle[1].x;
    const double x = fma(c, s.cross[0], -(sine[0] * s.cross[2]));
    const double y = fma(c, s.cross[1], -(sine[0] * s.cross[3]));
    p->x = fma(d, x, -(sine[1] * y));
}

/* ---- rotations ---- */

/* Block e: from where it is to where the next round has it. */
static __device__ __forceinline__ void jacobi_rotate(const jacobi_matrix &a, int e,
                                                     jacobi_block block, const jacobi_way &way,
                                                     const double2 *angles, const double *from,
                                                     double *to)
{
    double x[4];
#pragma unroll
    for (int q = 0; q < 4; q++)
        x[q] = from[a.size + a.pairs + q * a.blocks + e];
    const double2 u = angles[block.i], v = angles[block.j];
    const double tp = fma(u.x, x[0], -(u.y * x[2])), tq = fma(u.x, x[1], -(u.y * x[3]));
    const double lp = fma(u.y, x[0], u.x * x[2]), lq = fma(u.y, x[1], u.x * x[3]);
    to[way.to[0] & 0xFFFF] = fma(v.x, tp, -(v.y * tq));
    to[way.to[0] >> 16] = fma(v.y, tp, v.x * tq);
    to[way.to[1] & 0xFFFF] = fma(v.x, lp, -(v.y * lq));
    to[way.to[1] >> 16] = fma(v.y, lp, v.x * lq);
}

/* Number e of pairs x columns of the vectors, by places. */
struct jacobi_vector {
    int pair, from[2], to[2]; /* pair negative: none */
};
static __host__ __device__ __forceinline__ jacobi_vector jacobi_vector_of(const jacobi_matrix &a,
                                                                          int columns, int e)
{
    const int pair = e / columns, column = e % columns;
    if (pair >= a.pairs) return {-1, {0, 0}, {0, 0}};
    const int p = 2 * pair, q = p + 1;
    return {pair,
            {p * columns + column, q * columns + column},
            {jacobi_next(a, p) * columns + column, jacobi_next(a, q) * columns + column}};
}

static __device__ __forceinline__ void
jacobi_rotate_vector(const jacobi_vector &v, const double2 *angles, const double *from, double *to)
{
    const double2 u = angles[v.pair];
    const double x = from[v.from[0]], y = from[v.from[1]];
    to[v.to[0]] = fma(u.x, x, -(u.y * y));
    to[v.to[1]] = fma(u.y, x, u.x * y);
}

#endif

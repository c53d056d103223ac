/* cuda/svd_jacobi.cuh: what one thread does in a round of Jacobi's rotations (svd_jacobi.cu). */
#ifndef GNOMON_CUDA_SVD_JACOBI_CUH
#define GNOMON_CUDA_SVD_JACOBI_CUH

#include "cuda/svd.h"

enum {
    JACOBI_COLUMNS = 15, /* of the vectors, that a block of threads has: 32 or 64 pairs' are as many
                            as its threads that find no angles */
    JACOBI_PAIRS = GCU_SVD_JACOBI_MOST / 2,
    JACOBI_SWEEPS = 40
};

/* One that is no larger than this of the trace is nothing: Gram matrices are not more exact, and
 * rotations leave as much. */
#define JACOBI_NOTHING 0x1p-50
/* A pair is orthogonal when the square of its cosine is no larger. */
#define JACOBI_ORTHOGONAL 0x1p-100

struct jacobi_matrix {
    double *at;      /* size x size, of which what is on and above the diagonal counts; size being
                        even, no two of the neighbours that a round takes share a bank */
    int size, pairs; /* an even number of rows; half of it */
};

struct jacobi_angles {
    double cosine[JACOBI_PAIRS], sine[JACOBI_PAIRS];
};

static __host__ __device__ __forceinline__ jacobi_matrix jacobi_matrix_of(double *at, int n)
{
    const int size = n + n % 2;
    return {at, size, size / 2};
}

/* Who meets whom: the last one stays, the others go round. */
static __host__ __device__ __forceinline__ int jacobi_first(const jacobi_matrix &a, int pair,
                                                            int round)
{
    const int at = round + pair;
    return at < a.size - 1 ? at : at - (a.size - 1);
}

static __host__ __device__ __forceinline__ int jacobi_second(const jacobi_matrix &a, int pair,
                                                             int round)
{
    const int at = round - pair;
    return pair == 0 ? a.size - 1 : at < 0 ? at + a.size - 1 : at;
}

static __host__ __device__ __forceinline__ double *jacobi_place(const jacobi_matrix &a, int i,
                                                                int j)
{
    return a.at + (i < j ? i * a.size + j : j * a.size + i);
}

/* A pair's own numbers, and its rotation. */
struct jacobi_pair {
    double aa, bb, x, cosine, sine;
};

/* The rotation that brings what a pair has in common near to 0; whether that was so much that
 * another sweep is needed. The angle is that of fp32, cosine and sine belong to it in fp64: a
 * rotation that stops a little short is one all the same. */
static __device__ __forceinline__ bool jacobi_find(const jacobi_matrix &a, int pair, int round,
                                                   double least, double last, jacobi_angles *angles,
                                                   jacobi_pair *own)
{
    const int p = jacobi_first(a, pair, round), q = jacobi_second(a, pair, round);
    const double x = *jacobi_place(a, p, q);
    const double aa = a.at[p * (a.size + 1)], bb = a.at[q * (a.size + 1)];
    const double square = x * x, both = fabs(aa * bb);
    own->sine = 0;
    if (!(fabs(x) > least && square > JACOBI_ORTHOGONAL * both)) {
        angles->cosine[pair] = 1;
        angles->sine[pair] = 0;
        return false;
    }
    const float d = (float)(bb - aa), y = (float)(2 * x);
    const float square_length = fmaf(d, d, y * y); /* neither 0 nor beyond fp32 */
    const float length = square_length * rsqrtf(square_length);
    const float tangent = __fdividef(copysignf(y, d * y), fabsf(d) + length);
    const double t = (double)tangent, w = fma(t, t, 1.0);
    /* one step of third order: 2^-22 becomes 2^-65 */
    const double near = (double)rsqrtf(fmaf(tangent, tangent, 1.0f));
    const double rest = fma(-w * near, near, 1.0);
    const double c = fma(near * rest, fma(0.375, rest, 0.5), near);
    angles->cosine[pair] = c;
    angles->sine[pair] = t * c;
    *own = {aa, bb, x, c, t * c};
    return square > last * both;
}

/* The pair's own numbers after its rotation, which no other pair's turns meet. */
static __host__ __device__ __forceinline__ void jacobi_settle(const jacobi_matrix &a, int pair,
                                                              int round, const jacobi_pair &own)
{
    const double c = own.cosine, s = own.sine, x = own.x, cross = 2 * c * s * x;
    if (s == 0) return;
    const int p = jacobi_first(a, pair, round), q = jacobi_second(a, pair, round);
    a.at[p * (a.size + 1)] = fma(c * c, own.aa, fma(s * s, own.bb, -cross));
    a.at[q * (a.size + 1)] = fma(s * s, own.aa, fma(c * c, own.bb, cross));
    *jacobi_place(a, p, q) = fma((c - s) * (c + s), x, c * s * (own.aa - own.bb));
}

/* Two different pairs; block e of pairs (pairs - 1) / 2 is what they have in common. */
struct jacobi_block {
    int i, j; /* i negative: none */
};
static __host__ __device__ __forceinline__ jacobi_block jacobi_block_of(const jacobi_matrix &a,
                                                                        int e)
{
    if (e >= a.pairs * (a.pairs - 1) / 2) return {-1, 0};
    const int i = e % a.pairs, apart = i + e / a.pairs + 1;
    return {i, apart < a.pairs ? apart : apart - a.pairs};
}

static __host__ __device__ __forceinline__ void jacobi_turn_block(const jacobi_matrix &a,
                                                                  jacobi_block block, int round,
                                                                  const jacobi_angles *angles)
{
    const int i = block.i, j = block.j;
    const double ci = angles->cosine[i], si = angles->sine[i];
    const double cj = angles->cosine[j], sj = angles->sine[j];
    if (si == 0 && sj == 0) return;
    const int ip = jacobi_first(a, i, round), iq = jacobi_second(a, i, round);
    const int jp = jacobi_first(a, j, round), jq = jacobi_second(a, j, round);
    double *const pp = jacobi_place(a, ip, jp), *const pq = jacobi_place(a, ip, jq);
    double *const qp = jacobi_place(a, iq, jp), *const qq = jacobi_place(a, iq, jq);
    const double tp = ci * *pp - si * *qp, tq = ci * *pq - si * *qq;
    const double lp = si * *pp + ci * *qp, lq = si * *pq + ci * *qq;
    *pp = cj * tp - sj * tq;
    *pq = sj * tp + cj * tq;
    *qp = cj * lp - sj * lq;
    *qq = sj * lp + cj * lq;
}

/* Number e of pairs x JACOBI_COLUMNS of the vectors: row i of w becomes the vector of the matrix's
 * i-th diagonal number. */
static __host__ __device__ __forceinline__ void jacobi_turn_vectors(const jacobi_matrix &a,
                                                                    double *w, int e, int round,
                                                                    const jacobi_angles *angles)
{
    const int pair = e / JACOBI_COLUMNS, column = e % JACOBI_COLUMNS;
    const double c = angles->cosine[pair], s = angles->sine[pair];
    if (s == 0) return;
    double *const p = w + jacobi_first(a, pair, round) * JACOBI_COLUMNS + column;
    double *const q = w + jacobi_second(a, pair, round) * JACOBI_COLUMNS + column;
    const double x = *p, y = *q;
    *p = c * x - s * y;
    *q = s * x + c * y;
}

#endif

#include "lstsq/skinny.h"

#include <string.h>

/* Sums of four rows and three columns fill twelve of sixteen registers. */
enum { LANES = 4, ROWS = 4, COLS = 3 };
typedef double lanes __attribute__((vector_size(LANES * sizeof(double))));

#define INLINE static inline __attribute__((always_inline))

/* out[r * cols + c] = the product of row r of a and row c of w. */
INLINE void multiply(int rows, int cols, const gnomon_skinny_job *job, const double *a,
                     const double *w, double *out)
{
    lanes sum[ROWS][COLS];
    const int64_t whole = job->d / LANES * LANES;
    memset(sum, 0, sizeof sum);
    for (int64_t j = 0; j < whole; j += LANES) {
        lanes x[COLS], y;
#pragma GCC unroll 3
        for (int c = 0; c < cols; c++)
            memcpy(&x[c], w + c * job->d + j, sizeof x[c]);
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) {
            memcpy(&y, a + r * job->lda + j, sizeof y);
#pragma GCC unroll 3
            for (int c = 0; c < cols; c++)
                sum[r][c] += y * x[c];
        }
    }
    for (int r = 0; r < rows; r++) {
        for (int c = 0; c < cols; c++) {
            const lanes s = sum[r][c];
            double total = (s[0] + s[1]) + (s[2] + s[3]);
            for (int64_t j = whole; j < job->d; j++)
                total += a[r * job->lda + j] * w[c * job->d + j];
            out[r * cols + c] = total;
        }
    }
}

/* Row c of z += t[r * cols + c] * row r of a, for each r in turn. */
INLINE void add(int rows, int cols, const gnomon_skinny_job *job, const double *a, const double *t,
                double *z)
{
    const int64_t whole = job->d / LANES * LANES;
    for (int64_t j = 0; j < whole; j += LANES) {
        lanes y[ROWS], x;
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++)
            memcpy(&y[r], a + r * job->lda + j, sizeof y[r]);
#pragma GCC unroll 3
        for (int c = 0; c < cols; c++) {
            memcpy(&x, z + c * job->d + j, sizeof x);
#pragma GCC unroll 4
            for (int r = 0; r < rows; r++)
                x += y[r] * t[r * cols + c];
            memcpy(z + c * job->d + j, &x, sizeof x);
        }
    }
    for (int c = 0; c < cols; c++) {
        for (int64_t j = whole; j < job->d; j++) {
            for (int r = 0; r < rows; r++)
                z[c * job->d + j] += a[r * job->lda + j] * t[r * cols + c];
        }
    }
}

/* Some rows and columns, of sizes that the compiler knows. */
INLINE void tile(int rows, int cols, const gnomon_skinny_job *job, int64_t row, int64_t col)
{
    double out[ROWS * COLS];
    const double *a = job->a + row * job->lda;
    multiply(rows, cols, job, a, job->w + col * job->d, out);
    for (int r = 0; r < rows; r++) {
        for (int c = 0; c < cols; c++) {
            double *t = job->t + (row + r) * job->cols + col + c;
            out[r * cols + c] =
                job->add ? *t + job->sign * out[r * cols + c] : job->sign * out[r * cols + c];
            *t = out[r * cols + c];
        }
    }
    add(rows, cols, job, a, out, job->z + col * job->d);
}

INLINE void tiles(int rows, const gnomon_skinny_job *job, int64_t row)
{
    int64_t col = 0;
    for (; col + COLS <= job->cols; col += COLS)
        tile(rows, COLS, job, row, col);
    if (job->cols - col == 2) tile(rows, 2, job, row, col);
    if (job->cols - col == 1) tile(rows, 1, job, row, col);
}

INLINE void all(const gnomon_skinny_job *job)
{
    int64_t row = 0;
    for (; row + ROWS <= job->rows; row += ROWS)
        tiles(ROWS, job, row);
    for (; row < job->rows; row++)
        tiles(1, job, row);
}

static void portable(const gnomon_skinny_job *job)
{
    all(job);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void avx2(const gnomon_skinny_job *job)
{
    all(job);
}
#endif

gnomon_skinny_fn gnomon_skinny_kernel(gnomon_isa isa)
{
#if defined(__x86_64__)
    if (isa >= GNOMON_ISA_AVX2 && isa <= GNOMON_ISA_AMX) return avx2;
#endif
    (void)isa;
    return portable;
}

/* The kernels of products with rows: against sums written out here, to the bit at every
 * level. */
#include "base/isa.h"
#include "kernels.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Rows of 0, 1, ... nonzeros, the last column among them, stored from offset 3 on. */
enum { ROWS = 9, COLS = 50, STRIDE = 37, FIRST = 3, SIZE = COLS * STRIDE };

static int64_t offsets[ROWS + 1], indices[ROWS * ROWS];
static double values_f64[ROWS * ROWS];
static float values_f32[ROWS * ROWS];

static double number(int64_t i)
{
    return (double)((i * 7919 + 13) % 1009 - 500) / 97;
}

static void make_rows(void)
{
    offsets[0] = FIRST;
    for (int64_t row = 0; row < ROWS; row++) {
        offsets[row + 1] = offsets[row] + row;
        for (int64_t i = 0; i < row; i++)
            indices[offsets[row] - FIRST + i] = i == row - 1 ? COLS - 1 : row + 5 * i;
    }
    for (int64_t i = 0; i < ROWS * ROWS; i++) {
        values_f64[i] = number(i);
        values_f32[i] = (float)number(i);
    }
}

#define DEFINE_TEST(type, suffix, fused)                                                           \
    static void level_##suffix(const gnomon_kernels *k)                                            \
    {                                                                                              \
        static type z[SIZE], w[SIZE], expected[SIZE], halves[SIZE];                                \
        type less[GNOMON_NORMAL];                                                                  \
        for (int64_t i = 0; i < SIZE; i++) {                                                       \
            z[i] = (type)number(3 * i);                                                            \
            w[i] = halves[i] = expected[i] = (type)number(5 * i + 1);                              \
        }                                                                                          \
        for (int64_t l = 0; l < GNOMON_NORMAL; l++)                                                \
            less[l] = (type)number(11 * l);                                                        \
        for (int64_t row = 0; row < ROWS; row++) {                                                 \
            const int64_t begin = offsets[row] - FIRST, end = offsets[row + 1] - FIRST;            \
            for (int64_t l = 0; l < GNOMON_NORMAL; l++) {                                          \
                type y = -less[l];                                                                 \
                for (int64_t i = begin; i < end; i++)                                              \
                    y = fused(values_##suffix[i], z[indices[i] * STRIDE + l], y);                  \
                for (int64_t i = begin; i < end; i++)                                              \
                    expected[indices[i] * STRIDE + l] =                                            \
                        fused(values_##suffix[i], y, expected[indices[i] * STRIDE + l]);           \
            }                                                                                      \
        }                                                                                          \
        k->normal_##suffix(ROWS, offsets, indices, values_##suffix, less, STRIDE, z, w);           \
        assert_memory_equal(w, expected, sizeof w);                                                \
        for (int64_t l = 0; l < GNOMON_NORMAL; l += GNOMON_NORMAL / 2)                             \
            k->half_##suffix(ROWS, offsets, indices, values_##suffix, less + l, STRIDE, z + l,     \
                             halves + l);                                                          \
        assert_memory_equal(halves, expected, sizeof w);                                           \
        for (int of_f64 = 0; of_f64 < 2; of_f64++) {                                               \
            for (int64_t row = 0; row < ROWS; row++) {                                             \
                const int64_t begin = offsets[row] - FIRST, end = offsets[row + 1] - FIRST;        \
                const void *values = of_f64 ? (const void *)(values_f64 + begin)                   \
                                            : (const void *)(values_f32 + begin);                  \
                double sums[GNOMON_LANES];                                                         \
                const int64_t known = of_f64 ? end - begin : offsets[ROWS] - FIRST - begin;        \
                k->gather_##suffix(end - begin, known, indices + begin, values, of_f64, STRIDE, z, \
                                   sums);                                                          \
                for (int64_t l = 0; l < GNOMON_LANES; l++) {                                       \
                    double sum = 0;                                                                \
                    for (int64_t i = begin; i < end; i++) {                                        \
                        const double value = of_f64 ? values_f64[i] : (double)values_f32[i];       \
                        const int64_t at = indices[i] * STRIDE + l;                                \
                        sum = fma(value, (double)z[at], sum);                                      \
                        expected[at] = fused((type)value, less[l], expected[at]);                  \
                    }                                                                              \
                    assert_memory_equal(&sums[l], &sum, sizeof sum);                               \
                }                                                                                  \
                k->scatter_##suffix(end - begin, known, indices + begin, values, of_f64, STRIDE,   \
                                    less, w);                                                      \
                assert_memory_equal(w, expected, sizeof w);                                        \
            }                                                                                      \
        }                                                                                          \
    }

DEFINE_TEST(float, f32, fmaf)
DEFINE_TEST(double, f64, fma)

/* Blocks of 0, 1, ... rows, more than have their sums in registers together. */
enum { MOST_ROWS = 11 };

#define DEFINE_BLOCKS(type, suffix, fused)                                                   \
    static void blocks_##suffix(const gnomon_kernels *k)                                     \
    {                                                                                        \
        enum { N = GNOMON_NORMAL };                                                          \
        static type a[MOST_ROWS * N], b[MOST_ROWS * N], sums[N * N], found[N * N];           \
        static type out[MOST_ROWS * N], expected[MOST_ROWS * N];                             \
        for (int64_t i = 0; i < MOST_ROWS * N; i++) {                                        \
            a[i] = (type)number(3 * i + 2);                                                  \
            b[i] = (type)number(7 * i + 5);                                                  \
        }                                                                                    \
        for (int64_t rows = 0; rows <= MOST_ROWS; rows++) {                                  \
            memset(sums, 0, sizeof sums);                                                    \
            for (int64_t row = 0; row < rows; row++)                                         \
                for (int64_t i = 0; i < N * N; i++)                                          \
                    sums[i] = fused(a[row * N + i / N], b[row * N + i % N], sums[i]);        \
            k->cross_##suffix(rows, a, b, found);                                            \
            assert_memory_equal(found, sums, sizeof sums);                                   \
            memcpy(expected, b, sizeof b);                                                   \
            memcpy(out, b, sizeof b);                                                        \
            for (int64_t i = 0; i < rows * N; i++)                                           \
                for (int64_t j = 0; j < N; j++)                                              \
                    expected[i] = fused(a[i / N * N + j], sums[j * N + i % N], expected[i]); \
            k->combine_##suffix(rows, a, sums, out);                                         \
            assert_memory_equal(out, expected, sizeof out);                                  \
        }                                                                                    \
    }

DEFINE_BLOCKS(float, f32, fmaf)
DEFINE_BLOCKS(double, f64, fma)

/* Two tiles of 0, 1, ... rows, whose sums are added to others or not. */
static void tiles_of_columns(const gnomon_kernels *k, bool floats)
{
    enum { N = GNOMON_LANES };
    static double a[MOST_ROWS * N], b[MOST_ROWS * N], sums[N * N], found[N * N];
    for (int64_t i = 0; i < MOST_ROWS * N; i++) {
        a[i] = floats ? (double)(float)number(3 * i + 2) : number(3 * i + 2);
        b[i] = floats ? (double)(float)number(7 * i + 5) : number(7 * i + 5);
    }
    for (int64_t rows = 0; rows <= MOST_ROWS; rows++) {
        for (int onto = 0; onto < 2; onto++) {
            for (int64_t i = 0; i < N * N; i++) {
                found[i] = number(i);
                sums[i] = 0;
                for (int64_t row = 0; row < rows; row++)
                    sums[i] = fma(a[row * N + i / N], b[row * N + i % N], sums[i]);
                if (onto) sums[i] = found[i] + sums[i];
            }
            k->gram(rows, a, b, floats, onto, found);
            assert_memory_equal(found, sums, sizeof sums);
        }
    }
}

/* Products with few columns: fewer and more rows and columns than have their sums in registers
 * together, steps that are no whole vectors, and gaps. */
#define DEFINE_FEW(type, suffix)                                                  \
    static void few_##suffix(const gnomon_kernels *k)                             \
    {                                                                             \
        enum { LINES = 7, FEW = 9, STEPS = 70, LD = 75 };                         \
        static type a[LINES * LD], w[FEW * LD], out[LINES * LD], due[LINES * LD]; \
        for (int64_t i = 0; i < LINES * LD; i++) {                                \
            a[i] = (type)number(3 * i + 2);                                       \
            out[i] = due[i] = (type)number(i);                                    \
        }                                                                         \
        for (int64_t i = 0; i < FEW * LD; i++)                                    \
            w[i] = (type)number(7 * i + 5);                                       \
        for (int64_t steps = 0; steps <= STEPS; steps += 7) {                     \
            const bool onto = steps % 2 != 0;                                     \
            for (int64_t r = 0; r < LINES; r++) {                                 \
                for (int64_t c = 0; c < FEW; c++) {                               \
                    type sums[GNOMON_LANES] = {0};                                \
                    for (int64_t s = 0; s < steps; s++)                           \
                        sums[s % GNOMON_LANES] += a[r * LD + s] * w[c * LD + s];  \
                    for (int64_t half = GNOMON_LANES / 2; half > 0; half /= 2)    \
                        for (int64_t l = 0; l < half; l++)                        \
                            sums[l] += sums[l + half];                            \
                    due[r * LD + c] = onto ? due[r * LD + c] + sums[0] : sums[0]; \
                }                                                                 \
            }                                                                     \
            k->few_##suffix(LINES, FEW, steps, a, LD, w, LD, onto, out, LD);      \
            assert_memory_equal(out, due, sizeof out);                            \
        }                                                                         \
    }

DEFINE_FEW(float, f32)
DEFINE_FEW(double, f64)

static void rows_at_every_level(void **state)
{
    (void)state;
    int tried = 0;
    make_rows();
    for (int l = 0; l < GNOMON_ISA_COUNT; l++) {
        const gnomon_kernels *k = gnomon_cpu_kernels(gnomon_isa_name((gnomon_isa)l));
        if (k == NULL || !gnomon_isa_available((gnomon_isa)l)) continue;
        level_f32(k);
        level_f64(k);
        blocks_f32(k);
        blocks_f64(k);
        few_f32(k);
        few_f64(k);
        tiles_of_columns(k, false);
        tiles_of_columns(k, true);
        tried++;
    }
    assert_true(tried > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_at_every_level)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Pinned results: the bits of every kind's entries, sketches and adjoints, the same on every
 * processor, instruction set level and number of threads. A change here is a change of
 * somebody's data: see docs/reference/operators.md on versions. With GNOMON_PRINT_DIGESTS set, the
 * table is printed instead of compared. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/isa.h"

#include <gnomon.h>

enum { POINTS = 37, K = 24, D = 1500 };

typedef struct pinned {
    const char *name;
    gnomon_descriptor descriptor;
    uint64_t entries, sketch_f32, sketch_f64, sparse, adjoint;
} pinned;

#define DESCRIPTOR(...)                                                                         \
    {                                                                                           \
        .struct_size = sizeof(gnomon_descriptor), .seed = 20260101, .k = K, .d = D, __VA_ARGS__ \
    }

static const pinned table[] = {
    {"gaussian", DESCRIPTOR(.kind = GNOMON_GAUSSIAN), UINT64_C(0x0439c28e9cac7d15),
     UINT64_C(0xb6f29d8384a96388), UINT64_C(0x8adc16e0a19d5833), UINT64_C(0x4f24ffa64fafb25c),
     UINT64_C(0x425e2cef03f7a9e8)},
    {"gaussian fp16", DESCRIPTOR(.kind = GNOMON_GAUSSIAN, .precision = GNOMON_F16),
     UINT64_C(0xaa7a770d92e4e7fb), UINT64_C(0xa8b86da8d4089f7f), UINT64_C(0xcbca7f2a5fad1623),
     UINT64_C(0x038f807ebbb73080), UINT64_C(0xa105e3d4d17121b2)},
    {"rademacher", DESCRIPTOR(.kind = GNOMON_RADEMACHER), UINT64_C(0xb0d3cc98b3053b25),
     UINT64_C(0x2b86408993d561d2), UINT64_C(0xa3f5c91f9bd5ffaf), UINT64_C(0x18360c1cd100f249),
     UINT64_C(0x2979f80c2ca9dde7)},
    {"achlioptas", DESCRIPTOR(.kind = GNOMON_ACHLIOPTAS), UINT64_C(0x695c6a9b4ac1e705),
     UINT64_C(0x29b63959e7754d59), UINT64_C(0x639e8c2eb18e940e), UINT64_C(0x0e1f3df4b683ff98),
     UINT64_C(0xfd5b51cca3dd936e)},
    {"very-sparse", DESCRIPTOR(.kind = GNOMON_VERY_SPARSE), UINT64_C(0x0f2ad0f08a69a89d),
     UINT64_C(0x73a774e2fdb3afe1), UINT64_C(0x132c7a20af709424), UINT64_C(0x9bd1b4c338d3e7dd),
     UINT64_C(0xd6a3b3605a619b5b)},
    {"sjlt", DESCRIPTOR(.kind = GNOMON_SJLT), UINT64_C(0x42df9e8514d994e5),
     UINT64_C(0x18c0a0a64ff34fc7), UINT64_C(0x199b64b9bd081a52), UINT64_C(0xda996a1ff3d7b775),
     UINT64_C(0x8d5d7ab7de116928)},
    {"countsketch", DESCRIPTOR(.kind = GNOMON_SJLT, .nonzeros = 1), UINT64_C(0x69c9e267486e9d65),
     UINT64_C(0xb84651117de75ec8), UINT64_C(0x16afedb6c64d48ac), UINT64_C(0xc350a8b6d5a3325a),
     UINT64_C(0x95ccedf3a628885d)},
    {"srht", DESCRIPTOR(.kind = GNOMON_SRHT), UINT64_C(0x3546060d3fdcf425),
     UINT64_C(0xf80bff3062f2bc0c), UINT64_C(0xf24314412c65efa7), UINT64_C(0x04596e7dfc83ac62),
     UINT64_C(0x38e9452d10141702)},
    {"blockperm-sjlt", DESCRIPTOR(.kind = GNOMON_BLOCKPERM_SJLT, .blocks = 4, .wiring = 3),
     UINT64_C(0x6d673e2fe577e965), UINT64_C(0xd7e10d52482751f9), UINT64_C(0xed3babf2ce379765),
     UINT64_C(0x1c04116efe870f62), UINT64_C(0xce310b4b6549b2b3)},
    {"block", DESCRIPTOR(.kind = GNOMON_BLOCK, .blocks = 5), UINT64_C(0xc988c4c03c323645),
     UINT64_C(0xd64a6a2f1b37a262), UINT64_C(0xaf7b3f76306b487b), UINT64_C(0xf55ea6af961f6448),
     UINT64_C(0xa193cad6e2a595a7)},
    {"kronecker", DESCRIPTOR(.kind = GNOMON_KRONECKER), UINT64_C(0xb035a766e4ea4c5b),
     UINT64_C(0x07274e2f2cb68b1c), UINT64_C(0x2f406f97a8a56be7), UINT64_C(0x501b23d41284c7d3),
     UINT64_C(0x1354569511fddaa1)},
};
enum { COUNT = sizeof table / sizeof *table };

/* FNV-1a over the elements' bytes, in little-endian order. */
static uint64_t digest(const void *data, size_t count, size_t size)
{
    const unsigned char *p = data;
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < count * size; i++)
        h = (h ^ p[i]) * UINT64_C(0x100000001b3);
    return h;
}

/* The test's data: exact in fp32, of many magnitudes, made without the library. */
static float number(uint64_t i)
{
    uint64_t h = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
    h ^= h >> 29;
    h *= UINT64_C(0xbf58476d1ce4e5b9);
    h ^= h >> 32;
    const float mantissa = (float)(int32_t)(h & 0xffffff) - 8388607.5f;
    static const float powers[] = {0x1p-30f, 0x1p-23f, 0x1p-20f, 0x1p-12f};
    return mantissa * powers[h >> 60 & 3];
}

typedef struct data {
    float x32[POINTS * D];
    double x64[POINTS * D];
    int64_t offsets[POINTS + 1], indices[POINTS * 16];
    float values[POINTS * 16];
    float y[POINTS * K];
} data;

static data *points;

static int make_points(void **state)
{
    (void)state;
    points = calloc(1, sizeof *points);
    if (!points) return 1;
    for (uint64_t i = 0; i < POINTS * D; i++) {
        points->x32[i] = number(i);
        points->x64[i] = (double)number(i) + 0x1p-40 * (double)number(i + 1000000);
    }
    for (uint64_t i = 0; i < POINTS * K; i++)
        points->y[i] = number(i + 2000000);
    for (int64_t i = 0; i < POINTS; i++) {
        points->offsets[i + 1] = points->offsets[i] + i % 17;
        for (int64_t e = points->offsets[i]; e < points->offsets[i + 1]; e++) {
            points->indices[e] = (e * 7919 + i * 104729) % D;
            points->values[e] = number((uint64_t)e + 3000000);
        }
    }
    return 0;
}

static int drop_points(void **state)
{
    (void)state;
    free(points);
    unsetenv("GNOMON_ISA");
    return 0;
}

static void compute(gnomon_context *ctx, const pinned *p, pinned *found)
{
    static float entries[K * D], y32[POINTS * K], x32[POINTS * D];
    static double y64[POINTS * K];
    *found = *p;
    gnomon_operator *op;
    assert_int_equal(gnomon_operator_create(ctx, &p->descriptor, &op), GNOMON_OK);

    gnomon_matrix m = gnomon_matrix_rowmajor(entries, GNOMON_F32, K, D);
    assert_int_equal(gnomon_operator_block(ctx, op, 0, 0, &m), GNOMON_OK);
    found->entries = digest(entries, K * D, sizeof *entries);

    gnomon_matrix x = gnomon_matrix_rowmajor(points->x32, GNOMON_F32, POINTS, D);
    m = gnomon_matrix_rowmajor(y32, GNOMON_F32, POINTS, K);
    assert_int_equal(gnomon_sketch(ctx, op, &x, &m, NULL), GNOMON_OK);
    found->sketch_f32 = digest(y32, POINTS * K, sizeof *y32);

    x = gnomon_matrix_rowmajor(points->x64, GNOMON_F64, POINTS, D);
    gnomon_matrix m64 = gnomon_matrix_rowmajor(y64, GNOMON_F64, POINTS, K);
    assert_int_equal(gnomon_sketch(ctx, op, &x, &m64, NULL), GNOMON_OK);
    found->sketch_f64 = digest(y64, POINTS * K, sizeof *y64);

    const gnomon_csr csr = {POINTS,         D,         points->offsets, points->indices,
                            points->values, GNOMON_F32};
    assert_int_equal(gnomon_sketch_csr(ctx, op, &csr, &m, NULL), GNOMON_OK);
    found->sparse = digest(y32, POINTS * K, sizeof *y32);

    const gnomon_matrix y = gnomon_matrix_rowmajor(points->y, GNOMON_F32, POINTS, K);
    x = gnomon_matrix_rowmajor(x32, GNOMON_F32, POINTS, D);
    assert_int_equal(gnomon_adjoint(ctx, op, &y, &x, NULL), GNOMON_OK);
    found->adjoint = digest(x32, POINTS * D, sizeof *x32);
    gnomon_operator_destroy(op);
}

static void compare(const pinned *p, const pinned *found, const char *isa, int threads)
{
    const uint64_t a[] = {p->entries, p->sketch_f32, p->sketch_f64, p->sparse, p->adjoint};
    const uint64_t b[] = {found->entries, found->sketch_f32, found->sketch_f64, found->sparse,
                          found->adjoint};
    static const char *const what[] = {"entries", "fp32 sketch", "fp64 sketch", "sparse sketch",
                                       "adjoint"};
    for (int i = 0; i < 5; i++)
        if (a[i] != b[i])
            fail_msg("%s, %s at %s with %d threads: %016llx, pinned %016llx", p->name, what[i], isa,
                     threads, (unsigned long long)b[i], (unsigned long long)a[i]);
}

static void every_kind_on_every_level(void **state)
{
    (void)state;
    const int print = getenv("GNOMON_PRINT_DIGESTS") != NULL;
    for (int level = 0; level < GNOMON_ISA_COUNT; level++) {
        if (!gnomon_isa_available((gnomon_isa)level)) continue;
        const char *isa = gnomon_isa_name((gnomon_isa)level);
        setenv("GNOMON_ISA", isa, 1);
        for (int threads = 1; threads <= 3; threads += 2) {
            gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
            o.threads = threads;
            o.device = "cpu";
            gnomon_context *ctx;
            assert_int_equal(gnomon_context_create(&o, &ctx), GNOMON_OK);
            for (int i = 0; i < COUNT; i++) {
                pinned f;
                compute(ctx, &table[i], &f);
                if (print)
                    print_message("%s %s %d: 0x%016llx 0x%016llx 0x%016llx 0x%016llx 0x%016llx\n",
                                  f.name, isa, threads, (unsigned long long)f.entries,
                                  (unsigned long long)f.sketch_f32,
                                  (unsigned long long)f.sketch_f64, (unsigned long long)f.sparse,
                                  (unsigned long long)f.adjoint);
                else
                    compare(&table[i], &f, isa, threads);
            }
            gnomon_context_destroy(ctx);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_kind_on_every_level, make_points, drop_points),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

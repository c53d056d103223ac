/* The kernels of gaussian, rademacher and achlioptas; packing; axpy. */
#include "kernels_testing.h"

static const block dense_blocks[] = {
    /* odd sizes, several chunks, the last one cut */
    {{GNOMON_GAUSSIAN, 75, 1001, 0, 0, GNOMON_F32, 0, 0}, 0, 75, 0, 1001},
    {{GNOMON_GAUSSIAN, 75, 1001, 0, 0, GNOMON_F16, 0, 0}, 0, 75, 0, 1001},
    {{GNOMON_RADEMACHER, 75, 2001, 0, 0, 0, 0, 0}, 0, 75, 0, 2001},
    {{GNOMON_ACHLIOPTAS, 75, 2001, 0, 0, 0, 0, 0}, 0, 75, 0, 2001},
    /* begins and ends inside chunks, passes, words; rows cut by the adjoint's chains */
    {{GNOMON_GAUSSIAN, 600, 900, 0, 0, GNOMON_F32, 0, 0}, 4, 559, 251, 301},
    {{GNOMON_GAUSSIAN, 600, 900, 0, 0, GNOMON_F16, 0, 0}, 4, 559, 251, 301},
    {{GNOMON_RADEMACHER, 600, 2000, 0, 0, 0, 0, 0}, 8, 557, 605, 99},
    {{GNOMON_ACHLIOPTAS, 600, 2000, 0, 0, 0, 0, 0}, 252, 301, 431, 131},
    /* more rows than a panel may hold */
    {{GNOMON_GAUSSIAN, 900, 1000, 0, 0, GNOMON_F32, 0, 0}, 0, 900, 512, 3},
    {{GNOMON_RADEMACHER, 2500, 3000, 0, 0, 0, 0, 0}, 0, 2500, 639, 2},
    /* a single entry, one column, one row */
    {{GNOMON_GAUSSIAN, 1, 1, 0, 0, GNOMON_F32, 0, 0}, 0, 1, 0, 1},
    {{GNOMON_GAUSSIAN, 1, 1, 0, 0, GNOMON_F16, 0, 0}, 0, 1, 0, 1},
    {{GNOMON_RADEMACHER, 1, 1, 0, 0, 0, 0, 0}, 0, 1, 0, 1},
    {{GNOMON_ACHLIOPTAS, 1, 1, 0, 0, 0, 0, 0}, 0, 1, 0, 1},
    {{GNOMON_RADEMACHER, 70, 500, 0, 0, 0, 0, 0}, 0, 70, 63, 1},
    {{GNOMON_ACHLIOPTAS, 70, 500, 0, 0, 0, 0, 0}, 0, 70, 47, 1},
    {{GNOMON_GAUSSIAN, 70, 5000, 0, 0, GNOMON_F16, 0, 0}, 68, 1, 1, 1000},
    /* at the far corner; column counters carry into their upper half */
    {{GNOMON_GAUSSIAN, INT64_C(1) << 32, INT64_C(1) << 56, 0, 0, GNOMON_F32, 0, 0},
     (INT64_C(1) << 32) - 20,
     20,
     (INT64_C(1) << 56) - 70,
     70},
    {{GNOMON_GAUSSIAN, 30, INT64_C(1) << 40, 0, 0, GNOMON_F32, 0, 0},
     0,
     30,
     (INT64_C(1) << 32) - 21,
     40},
    {{GNOMON_GAUSSIAN, 30, INT64_C(1) << 40, 0, 0, GNOMON_F16, 0, 0},
     0,
     30,
     (INT64_C(1) << 33) - 21,
     40},
    {{GNOMON_RADEMACHER, INT64_C(1) << 32, INT64_C(1) << 56, 0, 0, 0, 0, 0},
     INT64_C(1) << 31,
     20,
     (INT64_C(1) << 56) - 70,
     70},
    {{GNOMON_ACHLIOPTAS, 30, INT64_C(1) << 40, 0, 0, 0, 0, 0}, 0, 30, INT64_C(1000000000000), 100},
};

/* The value of the table's end, one in 32768, must turn up among the blocks' entries. */
static void fp16_tail_is_reached(void **state)
{
    (void)state;
    const block b = {{GNOMON_GAUSSIAN, 200, 2000, 0, 0, GNOMON_F16, 0, 0}, 0, 200, 0, 2000};
    tested t = tested_new(&b);
    const float last = gnomon_gaussian16_table()[32766];
    int64_t beyond = 0;
    for (int64_t i = 0; i < b.rows * b.cols; i++)
        beyond += fabsf(t.values[i]) > last;
    assert_true(beyond > 0);
    tested_end(&t);
    unit_vectors(&b, true, false);
}

/* Sums over a wide exponent range and long rows are no worse than a plain float sum's: the root
 * mean square of the errors over rows and points, against double, in which products
 * are exact and whose own error is 2^-29 of theirs. */
static void errors_are_no_worse_than_a_plain_sum(void **state)
{
    (void)state;
    static const block long_rows[] = {
        {{GNOMON_GAUSSIAN, 48, 6000, 0, 0, GNOMON_F32, 0, 0}, 0, 48, 0, 6000},
        {{GNOMON_GAUSSIAN, 48, 6000, 0, 0, GNOMON_F16, 0, 0}, 0, 48, 0, 6000},
        {{GNOMON_RADEMACHER, 48, 6000, 0, 0, 0, 0, 0}, 0, 48, 0, 6000},
        {{GNOMON_ACHLIOPTAS, 48, 6000, 0, 0, 0, 0, 0}, 0, 48, 0, 6000},
    };
    for (size_t b = 0; b < sizeof long_rows / sizeof *long_rows; b++) {
        tested t = tested_new(&long_rows[b]);
        for (int wide_range = 0; wide_range < 2; wide_range++) {
            const int64_t rows = t.b.rows, cols = t.b.cols;
            guarded x = numbers(cols * LANES, false);
            guarded acc = numbers(rows * LANES, false);
            float *const points = (float *)x.data;
            for (int64_t i = 0; i < cols * LANES; i++) {
                points[i] = (float)(noise((uint64_t)i) + 0.25);
                if (wide_range)
                    points[i] = ldexpf(points[i], (int)(60 * noise((uint64_t)i + 977)) - 60);
            }
            job j = job_of(&t, levels[level_count - 1]);
            j.tiles = 1;
            j.x = x.data;
            j.acc = acc.data;
            run(&j);
            double ours = 0, plain = 0;
            for (int64_t i = 0; i < rows; i++) {
                for (int64_t l = 0; l < LANES; l++) {
                    double exact = 0;
                    float sum = 0;
                    for (int64_t c = 0; c < cols; c++) {
                        const float v = t.values[i * cols + c], p = points[c * LANES + l];
                        exact += (double)v * (double)p;
                        sum = fmaf(v, p, sum);
                    }
                    const double e = (double)((float *)acc.data)[i * LANES + l] - exact;
                    ours += e * e;
                    plain += ((double)sum - exact) * ((double)sum - exact);
                }
            }
            assert_true(ours <= plain);
            guarded_end(x);
            guarded_end(acc);
        }
        tested_end(&t);
    }
}

/* ---- packing ---- */

static const gnomon_dtype dtypes[] = {GNOMON_F32, GNOMON_F64, GNOMON_F16, GNOMON_BF16,
                                      GNOMON_I8,  GNOMON_U8,  GNOMON_I16, GNOMON_U16,
                                      GNOMON_I32, GNOMON_U32, GNOMON_I64, GNOMON_U64};

enum { DTYPES = sizeof dtypes / sizeof *dtypes };

/* fp16 to double by the format's definition. */
static double half_value(uint16_t h)
{
    const int exponent = h >> 10 & 31, fraction = h & 1023;
    double value = exponent == 0    ? ldexp(fraction, -24)
                   : exponent == 31 ? (fraction ? (double)NAN : INFINITY)
                                    : ldexp(1024 + fraction, exponent - 25);
    return h & 0x8000 ? -value : value;
}

/* Element i of data as double, and as the float it becomes. */
static double element(const void *data, gnomon_dtype dtype, int64_t i, float *single)
{
    double value = 0;
    switch (dtype) {
    case GNOMON_F32:
        value = (double)((const float *)data)[i];
        break;
    case GNOMON_F64:
        value = ((const double *)data)[i];
        break;
    case GNOMON_F16:
        value = half_value(((const uint16_t *)data)[i]);
        break;
    case GNOMON_BF16: {
        const uint32_t bits = (uint32_t)((const uint16_t *)data)[i] << 16;
        float f;
        memcpy(&f, &bits, sizeof f);
        value = (double)f;
        break;
    }
    case GNOMON_I8:
        value = ((const int8_t *)data)[i];
        break;
    case GNOMON_U8:
        value = ((const uint8_t *)data)[i];
        break;
    case GNOMON_I16:
        value = ((const int16_t *)data)[i];
        break;
    case GNOMON_U16:
        value = ((const uint16_t *)data)[i];
        break;
    case GNOMON_I32:
        value = ((const int32_t *)data)[i];
        break;
    case GNOMON_U32:
        value = ((const uint32_t *)data)[i];
        break;
    case GNOMON_I64:
        *single = (float)((const int64_t *)data)[i];
        return (double)((const int64_t *)data)[i];
    case GNOMON_U64:
        *single = (float)((const uint64_t *)data)[i];
        return (double)((const uint64_t *)data)[i];
    }
    *single = (float)value;
    return value;
}

static bool same(double a, double b)
{
    return a == b ? signbit(a) == signbit(b) : isnan(a) && isnan(b);
}

typedef struct layout {
    int64_t w, col_stride, lane_stride;
    int lanes;        /* points there */
    int64_t short_by; /* of the last point's columns, not there */
    bool adjacent;
} layout;

static void check_pack(const gnomon_kernels *k, gnomon_dtype dtype, const layout *y, bool special)
{
    const int64_t size = (int64_t)gnomon_dtype_size(dtype);
    const int64_t lanes = y->lanes ? y->lanes : 1;
    const int64_t extent =
        (y->w ? (y->w - 1) * y->col_stride : 0) + (lanes - 1) * y->lane_stride + 1;
    guarded data = guarded_new(extent * size);
    for (int64_t i = 0; i < extent * size; i++)
        data.data[i] = (unsigned char)(int)(noise((uint64_t)i + 31) * 128);
    if (!special) { /* no exponent of all ones, nor an fp64 beyond fp32's range */
        for (int64_t i = 0; i < extent; i++) {
            if (dtype == GNOMON_F32)
                ((float *)data.data)[i] = (float)noise((uint64_t)i);
            else if (dtype == GNOMON_F64)
                ((double *)data.data)[i] = noise((uint64_t)i);
            else if (dtype == GNOMON_F16 || dtype == GNOMON_BF16)
                ((uint16_t *)data.data)[i] &= 0xbfff;
        }
    }
    const void *lane[LANES];
    int64_t valid[LANES];
    bool finite_f32 = true, finite_f64 = true;
    for (int l = 0; l < LANES; l++) {
        lane[l] = l < y->lanes ? data.data + l * y->lane_stride * size : NULL;
        valid[l] = l + 1 == y->lanes ? y->w - y->short_by : y->w;
    }
    if (y->adjacent && y->short_by) {
        for (int l = 0; l < y->lanes; l++)
            valid[l] = y->w - y->short_by;
    }
    guarded f32 = guarded_new(y->w * LANES * 4), f64 = guarded_new(y->w * LANES * 8);
    memset(f32.data, 0x77, f32.bytes);
    memset(f64.data, 0x77, f64.bytes);
    const bool found_f32 =
        k->pack_f32(lane, valid, dtype, y->col_stride, y->adjacent, y->w, (float *)f32.data);
    const bool found_f64 =
        k->pack_f64(lane, valid, dtype, y->col_stride, y->adjacent, y->w, (double *)f64.data);
    for (int64_t j = 0; j < y->w; j++) {
        for (int l = 0; l < LANES; l++) {
            double value = 0;
            float single = 0;
            if (lane[l] && j < valid[l])
                value = element(lane[l], dtype, j * y->col_stride, &single);
            finite_f32 &= isfinite(single) != 0;
            finite_f64 &= isfinite(value) != 0;
            assert_true(same((double)((float *)f32.data)[j * LANES + l], (double)single));
            assert_true(same(((double *)f64.data)[j * LANES + l], value));
        }
    }
    assert_int_equal(found_f32, finite_f32);
    assert_int_equal(found_f64, finite_f64);
    if (!special) assert_true(finite_f32 && finite_f64);
    guarded_end(data);
    guarded_end(f32);
    guarded_end(f64);
}

static void packing_holds_every_element(void **state)
{
    (void)state;
    static const layout layouts[] = {
        {100, 1, 100, 16, 0, false}, {100, 1, 131, 16, 37, false}, {7, 1, 7, 16, 0, false},
        {65, 1, 65, 5, 3, false},    {33, 3, 100, 16, 1, false},   {70, 1, 0, 16, 0, false},
        {40, 16, 1, 16, 0, true},    {41, 29, 1, 11, 0, true},     {41, 20, 1, 16, 5, true},
        {1, 1, 1, 1, 0, false},      {64, 1, 64, 16, 64, false},   {20, 0, 1, 16, 0, true},
        {12, 1, 12, 0, 0, false},    {12, 1, 12, 0, 0, true},      {200, 2, 1, 16, 0, true},
    };
    for (int l = 0; l < level_count; l++) {
        for (int d = 0; d < DTYPES; d++) {
            for (size_t y = 0; y < sizeof layouts / sizeof *layouts; y++) {
                check_pack(levels[l], dtypes[d], &layouts[y], false);
                check_pack(levels[l], dtypes[d], &layouts[y], true);
            }
        }
    }
}

/* A NaN or infinity is seen wherever it stands. */
static void packing_sees_every_nonfinite_element(void **state)
{
    (void)state;
    enum { W = 70 };
    static float data[LANES * W];
    static double doubles[LANES * W];
    static float tile[LANES * W];
    static double f64_tile[LANES * W];
    const void *lane[LANES], *f64_lane[LANES];
    int64_t valid[LANES];
    for (int l = 0; l < LANES; l++) {
        lane[l] = data + l * W;
        f64_lane[l] = doubles + l * W;
        valid[l] = W;
    }
    for (int l = 0; l < level_count; l++) {
        for (int i = 0; i < LANES * W; i++) {
            data[i] = i % 3 == 0 ? INFINITY : i % 3 == 1 ? -INFINITY : (float)NAN;
            doubles[i] = (double)data[i];
            assert_false(levels[l]->pack_f32(lane, valid, GNOMON_F32, 1, false, W, tile));
            assert_false(levels[l]->pack_f64(f64_lane, valid, GNOMON_F64, 1, false, W, f64_tile));
            data[i] = i % 2 ? 3.4e38f : -1e-45f;
            doubles[i] = i % 2 ? 1.7e308 : -5e-324;
        }
        assert_true(levels[l]->pack_f32(lane, valid, GNOMON_F32, 1, false, W, tile));
        assert_true(levels[l]->pack_f64(f64_lane, valid, GNOMON_F64, 1, false, W, f64_tile));
    }
}

static void every_half_is_converted(void **state)
{
    (void)state;
    static uint16_t data[LANES];
    static float tile[LANES];
    const void *lane[LANES];
    int64_t valid[LANES];
    for (int l = 0; l < LANES; l++) {
        lane[l] = data + l;
        valid[l] = 1;
    }
    for (int v = 0; v < level_count; v++) {
        for (int h = 0; h < 65536; h += LANES) {
            for (int l = 0; l < LANES; l++)
                data[l] = (uint16_t)(h + l);
            levels[v]->pack_f32(lane, valid, GNOMON_F16, 1, true, 1, tile);
            for (int l = 0; l < LANES; l++)
                assert_true(same((double)tile[l], half_value(data[l])));
        }
    }
}

/* ---- axpy ---- */

static void axpy_is_one_fma_an_element(void **state)
{
    (void)state;
    for (int l = 0; l < level_count; l++) {
        for (int64_t count = 0; count < 70; count++) {
            guarded src = noises(count, false, 7);
            guarded y = noises(count, false, 8), doubles = noises(count, true, 9);
            levels[l]->axpy_f32(count, -0.7f, (const float *)src.data, (float *)y.data);
            levels[l]->axpy_f64(count, -0.7, (const float *)src.data, (double *)doubles.data);
            for (int64_t i = 0; i < count; i++) {
                const float s = ((const float *)src.data)[i];
                const float before = (float)noise((uint64_t)i + (UINT64_C(8) << 40));
                const double before_f64 = noise((uint64_t)i + (UINT64_C(9) << 40));
                assert_true(((const float *)y.data)[i] == fmaf(-0.7f, s, before));
                assert_true(((const double *)doubles.data)[i] == fma(-0.7, (double)s, before_f64));
            }
            guarded_end(src);
            guarded_end(y);
            guarded_end(doubles);
        }
    }
}

/* Sums of squares go lane by lane, in order; NaN is seen in them, infinity in the largest. */
static void figures_are_lane_by_lane(void **state)
{
    (void)state;
    enum { COUNT = 1024 + 5 * GNOMON_FIGURES };
    static float narrow[COUNT];
    static double wide[COUNT];
    double expected[GNOMON_FIGURES];
    for (int l = 0; l < GNOMON_FIGURES; l++)
        expected[l] = l;
    for (int64_t i = 0; i < COUNT; i++) {
        narrow[i] = (float)((i * 7919 + 13) % 1009 - 500) / 97 * (i == COUNT - 3 ? -100.0F : 1.0F);
        wide[i] = narrow[i];
        expected[i % GNOMON_FIGURES] += wide[i] * wide[i];
    }
    for (int l = 0; l < level_count; l++) {
        double squares[2][GNOMON_FIGURES], most[2] = {0.5, 1e9};
        for (int lane = 0; lane < GNOMON_FIGURES; lane++)
            squares[0][lane] = squares[1][lane] = lane;
        levels[l]->figures_f32(narrow, COUNT, squares[0], &most[0]);
        levels[l]->figures_f64(wide, COUNT, squares[1], &most[1]);
        assert_memory_equal(squares[0], expected, sizeof expected);
        assert_memory_equal(squares[1], expected, sizeof expected);
        assert_true(most[0] == fabs(wide[COUNT - 3]) && most[1] == 1e9);
        narrow[9] = NAN;
        wide[17] = -INFINITY;
        levels[l]->figures_f32(narrow, COUNT, squares[0], &most[0]);
        levels[l]->figures_f64(wide, COUNT, squares[1], &most[1]);
        assert_true(isnan(squares[0][1]) && isfinite(squares[0][2]));
        assert_true(isinf(squares[1][1]) && isinf(most[1]));
        narrow[9] = (float)((9 * 7919 + 13) % 1009 - 500) / 97;
        wide[17] = narrow[17];
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        KERNELS_TESTS,
        cmocka_unit_test(fp16_tail_is_reached),
        cmocka_unit_test(errors_are_no_worse_than_a_plain_sum),
        cmocka_unit_test(packing_holds_every_element),
        cmocka_unit_test(packing_sees_every_nonfinite_element),
        cmocka_unit_test(every_half_is_converted),
        cmocka_unit_test(figures_are_lane_by_lane),
        cmocka_unit_test(axpy_is_one_fma_an_element),
    };
    blocks = dense_blocks;
    block_count = sizeof dense_blocks / sizeof *dense_blocks;
    return cmocka_run_group_tests(tests, find_levels, NULL);
}

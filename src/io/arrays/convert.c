#include "io/arrays/convert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Elements pass through a run of doubles, which hold every type's values exactly but for the
 * 64-bit integers; those have their own way to F32, so that each value is rounded once. */
enum { RUN = 512 };

bool gnomon_big_endian(void)
{
    const uint16_t one = 1;
    unsigned char first;
    memcpy(&first, &one, 1);
    return first == 0;
}

void gnomon_swap_bytes(void *data, int64_t count, size_t size)
{
    unsigned char *p = data;
    for (int64_t i = 0; i < count && size == 2; i++) {
        uint16_t v;
        memcpy(&v, p + 2 * i, 2);
        v = __builtin_bswap16(v);
        memcpy(p + 2 * i, &v, 2);
    }
    for (int64_t i = 0; i < count && size == 4; i++) {
        uint32_t v;
        memcpy(&v, p + 4 * i, 4);
        v = __builtin_bswap32(v);
        memcpy(p + 4 * i, &v, 4);
    }
    for (int64_t i = 0; i < count && size == 8; i++) {
        uint64_t v;
        memcpy(&v, p + 8 * i, 8);
        v = __builtin_bswap64(v);
        memcpy(p + 8 * i, &v, 8);
    }
}

/* The bits of |value| rounded to nearest even at a precision of 'digits' stored mantissa bits
 * and a smallest normal exponent of 'lowest', as a 16-bit pattern with the sign. */
static uint16_t to_16_bits(double value, int digits, int lowest, int highest)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    unsigned sign = (unsigned)(bits >> 48) & 0x8000u;
    unsigned infinity = (unsigned)(highest - lowest + 2) << digits;
    if (isnan(value)) /* quiet, with what fits of the payload */
        return (uint16_t)(sign | infinity | (1u << (digits - 1)) |
                          ((unsigned)(bits >> (52 - digits)) & ((1u << digits) - 1u)));
    double magnitude = fabs(value);
    int exponent = (int)((bits >> 52) & 0x7ff) - 1023;
    if (exponent > highest) return (uint16_t)(sign | infinity);
    if (exponent < lowest) exponent = lowest; /* subnormals share the lowest exponent's grid */
    /* In units of the last place: exact, but where it is so small that it can't matter. Adding
     * and taking off 2^52 leaves the nearest integer, ties to even. */
    uint64_t scale_bits = (uint64_t)(1023 + digits - exponent) << 52;
    double scale;
    memcpy(&scale, &scale_bits, sizeof scale);
    double scaled = (magnitude * scale + 0x1p52) - 0x1p52;
    /* scaled is at most 2^(digits + 1): carrying into the exponent comes by itself */
    unsigned pattern = (unsigned)scaled + ((unsigned)(exponent - lowest) << digits);
    return (uint16_t)(sign | (pattern < infinity ? pattern : infinity));
}

uint16_t gnomon_f16_from_f64(double value)
{
    return to_16_bits(value, 10, -14, 15);
}

uint16_t gnomon_bf16_from_f64(double value)
{
    return to_16_bits(value, 7, -126, 127);
}

double gnomon_f64_from_f16(uint16_t bits)
{
    /* The fields put where a double has them are the value times 2^-1008, subnormals too. */
    uint64_t bits_out = (uint64_t)(bits & 0x7fffu) << 42;
    double value;
    if ((bits & 0x7c00u) == 0x7c00u) {
        bits_out |= UINT64_C(0x7ff0000000000000);
        memcpy(&value, &bits_out, sizeof value);
    } else {
        memcpy(&value, &bits_out, sizeof value);
        value *= 0x1p1008;
    }
    return (bits & 0x8000u) != 0 ? -value : value;
}

double gnomon_f64_from_bf16(uint16_t bits)
{
    uint32_t bits_out = (uint32_t)bits << 16;
    float f;
    memcpy(&f, &bits_out, sizeof f);
    return (double)f;
}

#define LOAD_LOOP(type, expression)                     \
    for (int64_t i = 0; i < n; i++) {                   \
        const type x = ((const type *)src)[i * stride]; \
        out[i] = expression;                            \
    }                                                   \
    return

static void load(const void *src, gnomon_dtype dtype, int64_t stride, int64_t n, double *out)
{
    switch (dtype) {
    case GNOMON_F32:
        LOAD_LOOP(float, (double)x);
    case GNOMON_F64:
        LOAD_LOOP(double, x);
    case GNOMON_F16:
        LOAD_LOOP(uint16_t, gnomon_f64_from_f16(x));
    case GNOMON_BF16:
        LOAD_LOOP(uint16_t, gnomon_f64_from_bf16(x));
    case GNOMON_I8:
        LOAD_LOOP(int8_t, (double)x);
    case GNOMON_U8:
        LOAD_LOOP(uint8_t, (double)x);
    case GNOMON_I16:
        LOAD_LOOP(int16_t, (double)x);
    case GNOMON_U16:
        LOAD_LOOP(uint16_t, (double)x);
    case GNOMON_I32:
        LOAD_LOOP(int32_t, (double)x);
    case GNOMON_U32:
        LOAD_LOOP(uint32_t, (double)x);
    case GNOMON_I64:
        LOAD_LOOP(int64_t, (double)x);
    case GNOMON_U64:
        LOAD_LOOP(uint64_t, (double)x);
    }
}

#define STORE_LOOP(type, expression)                    \
    for (int64_t i = 0; i < n; i++) {                   \
        const double x = in[i];                         \
        ((type *)dst)[i * stride] = (type)(expression); \
    }                                                   \
    return n

/* below is the least value allowed, above the first that no longer is */
#define STORE_INTEGER(type, below, above)             \
    for (int64_t i = 0; i < n; i++) {                 \
        const double x = nearbyint(in[i]);            \
        if (!(x >= (below) && x < (above))) return i; \
        ((type *)dst)[i * stride] = (type)x;          \
    }                                                 \
    return n

/* Returns how many fitted: n, or the place of the first that does not. */
static int64_t store(const double *in, void *dst, gnomon_dtype dtype, int64_t stride, int64_t n)
{
    switch (dtype) {
    case GNOMON_F32:
        STORE_LOOP(float, x);
    case GNOMON_F64:
        STORE_LOOP(double, x);
    case GNOMON_F16:
        STORE_LOOP(uint16_t, gnomon_f16_from_f64(x));
    case GNOMON_BF16:
        STORE_LOOP(uint16_t, gnomon_bf16_from_f64(x));
    case GNOMON_I8:
        STORE_INTEGER(int8_t, -128.0, 128.0);
    case GNOMON_U8:
        STORE_INTEGER(uint8_t, 0.0, 256.0);
    case GNOMON_I16:
        STORE_INTEGER(int16_t, -32768.0, 32768.0);
    case GNOMON_U16:
        STORE_INTEGER(uint16_t, 0.0, 65536.0);
    case GNOMON_I32:
        STORE_INTEGER(int32_t, -0x1p31, 0x1p31);
    case GNOMON_U32:
        STORE_INTEGER(uint32_t, 0.0, 0x1p32);
    case GNOMON_I64:
        STORE_INTEGER(int64_t, -0x1p63, 0x1p63);
    case GNOMON_U64:
        STORE_INTEGER(uint64_t, 0.0, 0x1p64);
    }
    return 0;
}

#define DIRECT_LOOP(from, to)                                                      \
    do {                                                                           \
        for (int64_t i = 0; i < n; i++)                                            \
            ((to *)dst)[i * dst_stride] = (to)((const from *)src)[i * src_stride]; \
        return true;                                                               \
    } while (0)

/* The pairs that need no run of doubles, or must not have one. */
static bool direct(const void *src, gnomon_dtype from, int64_t src_stride, void *dst,
                   gnomon_dtype to, int64_t dst_stride, int64_t n)
{
    if (from == to) {
        size_t size = gnomon_dtype_size(from);
        if (src_stride == 1 && dst_stride == 1) {
            memcpy(dst, src, (size_t)n * size);
            return true;
        }
        switch (size) {
        case 1:
            DIRECT_LOOP(uint8_t, uint8_t);
        case 2:
            DIRECT_LOOP(uint16_t, uint16_t);
        case 4:
            DIRECT_LOOP(uint32_t, uint32_t);
        case 8:
            DIRECT_LOOP(uint64_t, uint64_t);
        }
    }
    if (from == GNOMON_F64 && to == GNOMON_F32) DIRECT_LOOP(double, float);
    if (from == GNOMON_F32 && to == GNOMON_F64) DIRECT_LOOP(float, double);
    if (from == GNOMON_U8 && to == GNOMON_F32) DIRECT_LOOP(uint8_t, float);
    if (from == GNOMON_I64 && to == GNOMON_F32) DIRECT_LOOP(int64_t, float);
    if (from == GNOMON_U64 && to == GNOMON_F32) DIRECT_LOOP(uint64_t, float);
    return false;
}

static bool floating(gnomon_dtype dtype)
{
    return dtype == GNOMON_F32 || dtype == GNOMON_F64;
}

gnomon_status gnomon_convert(gnomon_context *ctx, const gnomon_matrix *src,
                             const gnomon_matrix *dst, int64_t first_row, int64_t first_col,
                             const char *name)
{
    GNOMON_FAIL_IF(src->rows != dst->rows || src->cols != dst->cols, ctx, GNOMON_ERROR_SHAPE,
                   GNOMON_ARG("%s") ": %lld x %lld elements do not fit %lld x %lld", name,
                   (long long)src->rows, (long long)src->cols, (long long)dst->rows,
                   (long long)dst->cols);
    size_t from = gnomon_dtype_size(src->dtype), to = gnomon_dtype_size(dst->dtype);
    GNOMON_FAIL_IF(from == 0 || to == 0 ||
                       (src->dtype != dst->dtype && !floating(src->dtype) && !floating(dst->dtype)),
                   ctx, GNOMON_ERROR_DTYPE, GNOMON_ARG("%s") ": can't convert %s to %s", name,
                   gnomon_dtype_name(src->dtype), gnomon_dtype_name(dst->dtype));
    /* The inner loop runs where dst is densest. */
    bool across =
        dst->rows == 1 || (dst->cols > 1 && llabs(dst->col_stride) <= llabs(dst->row_stride));
    int64_t outer = across ? src->rows : src->cols, inner = across ? src->cols : src->rows;
    int64_t src_outer = across ? src->row_stride : src->col_stride;
    int64_t src_inner = across ? src->col_stride : src->row_stride;
    int64_t dst_outer = across ? dst->row_stride : dst->col_stride;
    int64_t dst_inner = across ? dst->col_stride : dst->row_stride;
    double run[RUN];
    for (int64_t o = 0; o < outer; o++) {
        const char *s = (const char *)src->data + o * src_outer * (int64_t)from;
        char *d = (char *)dst->data + o * dst_outer * (int64_t)to;
        if (inner > 0 && direct(s, src->dtype, src_inner, d, dst->dtype, dst_inner, inner))
            continue;
        for (int64_t i = 0; i < inner; i += RUN) {
            int64_t n = inner - i < RUN ? inner - i : RUN;
            load(s + i * src_inner * (int64_t)from, src->dtype, src_inner, n, run);
            int64_t fitted = store(run, d + i * dst_inner * (int64_t)to, dst->dtype, dst_inner, n);
            if (fitted == n) continue;
            int64_t row = first_row + (across ? o : i + fitted);
            int64_t col = first_col + (across ? i + fitted : o);
            return gnomon_fail(
                ctx, GNOMON_ERROR_DATA,
                GNOMON_ARG("%s") ": the value %.9g at row %lld, column %lld does not fit %s", name,
                run[fitted], (long long)row, (long long)col, gnomon_dtype_name(dst->dtype));
        }
    }
    return GNOMON_OK;
}

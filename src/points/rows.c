#include "points/rows.h"

#include <math.h>
#include <string.h>

static double from_bf16(uint16_t h)
{
    const uint32_t bits = (uint32_t)h << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return (double)f;
}

static double from_f16(uint16_t h)
{
    const int exponent = (h >> 10) & 31;
    const double mantissa = h & 1023;
    double magnitude;
    if (exponent == 31)
        magnitude = mantissa == 0 ? (double)INFINITY : (double)NAN;
    else if (exponent == 0)
        magnitude = ldexp(mantissa, -24);
    else
        magnitude = ldexp(1024 + mantissa, exponent - 25);
    return h & 0x8000u ? -magnitude : magnitude;
}

static double from_number(double v)
{
    return v;
}

/* One case a type: the loop's body is the same, the element's type is not. */
#define EACH_DTYPE(CASE)                    \
    CASE(GNOMON_F32, float, from_number)    \
    CASE(GNOMON_F64, double, from_number)   \
    CASE(GNOMON_F16, uint16_t, from_f16)    \
    CASE(GNOMON_BF16, uint16_t, from_bf16)  \
    CASE(GNOMON_I8, int8_t, from_number)    \
    CASE(GNOMON_U8, uint8_t, from_number)   \
    CASE(GNOMON_I16, int16_t, from_number)  \
    CASE(GNOMON_U16, uint16_t, from_number) \
    CASE(GNOMON_I32, int32_t, from_number)  \
    CASE(GNOMON_U32, uint32_t, from_number) \
    CASE(GNOMON_I64, int64_t, (double))     \
    CASE(GNOMON_U64, uint64_t, (double))

void gnomon_row_as_f64(const gnomon_matrix *m, int64_t i, int64_t col, int64_t count, double *out)
{
    switch (m->dtype) {
#define COPY_ROW(name, type, convert)                                                    \
    case name: {                                                                         \
        const type *p = (const type *)m->data + i * m->row_stride + col * m->col_stride; \
        if (m->col_stride == 1)                                                          \
            for (int64_t j = 0; j < count; j++)                                          \
                out[j] = convert(p[j]);                                                  \
        else                                                                             \
            for (int64_t j = 0; j < count; j++)                                          \
                out[j] = convert(p[j * m->col_stride]);                                  \
        break;                                                                           \
    }
        EACH_DTYPE(COPY_ROW)
    }
}

double gnomon_value_as_f64(const void *values, gnomon_dtype dtype, int64_t index)
{
    switch (dtype) {
#define ONE_VALUE(name, type, convert) \
    case name:                         \
        return convert(((const type *)values)[index]);
        EACH_DTYPE(ONE_VALUE)
    }
    return 0;
}

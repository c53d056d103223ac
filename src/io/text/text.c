#include "io/text/text.h"

#include "io/arrays/convert.h"
#include "io/text/lines.h"
#include "io/text/number.h"
#include "points/view.h"

#include <math.h>
#include <stdio.h>

gnomon_status gnomon_text_dtype(gnomon_reader *reader)
{
    gnomon_dtype asked = reader->options.text_dtype;
    GNOMON_FAIL_IF(asked != 0 && asked != GNOMON_F32 && asked != GNOMON_F64, reader->ctx,
                   GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("text_dtype") " is %s, allowed are f32 and f64",
                   gnomon_dtype_name(asked));
    reader->info.dtype = asked != 0 ? asked : GNOMON_F32;
    return GNOMON_OK;
}

bool gnomon_text_beyond(const char *text, size_t length, double value, gnomon_dtype dtype)
{
    /* half of F32's last unit above its largest number rounds up */
    if (fabs(value) < (dtype == GNOMON_F32 ? 0x1.ffffffp127 : HUGE_VAL) || isnan(value))
        return false;
    if (!isinf(value)) return true;
    for (size_t i = 0; i < length; i++)
        if (text[i] >= '0' && text[i] <= '9') return true;
    return false;
}

gnomon_status gnomon_text_fail_beyond(gnomon_reader *reader, int64_t line, int64_t column,
                                      const char *quoted, gnomon_dtype dtype)
{
    char at[32] = "";
    if (column > 0) snprintf(at, sizeof at, ", column %lld", (long long)column);
    return gnomon_fail(reader->ctx, GNOMON_ERROR_DATA,
                       GNOMON_ARG("%s") ": line %lld%s: %s is beyond what %s holds%s",
                       gnomon_source_name(reader->source), (long long)line, at, quoted,
                       gnomon_dtype_name(dtype),
                       dtype == GNOMON_F32 ? " (text can be read or converted as f64)" : "");
}

gnomon_status gnomon_text_rows_start(gnomon_text_rows *rows, gnomon_writer *writer,
                                     const gnomon_matrix *src)
{
    *rows = (gnomon_text_rows){.writer = writer, .src = src};
    return gnomon_alloc(writer->ctx, src->cols, gnomon_dtype_size(writer->dtype), "a point",
                        &rows->row);
}

gnomon_status gnomon_text_rows_convert(gnomon_text_rows *rows, int64_t i)
{
    const gnomon_matrix one = gnomon_rows(rows->src, i, 1);
    gnomon_matrix row = gnomon_matrix_rowmajor(rows->row, rows->writer->dtype, 1, one.cols);
    return gnomon_convert(rows->writer->ctx, &one, &row, rows->writer->written + i, 0,
                          gnomon_sink_name(rows->writer->sink));
}

static double as_double(const void *data, gnomon_dtype dtype, int64_t index)
{
    switch (dtype) {
    case GNOMON_F32:
        return (double)((const float *)data)[index];
    case GNOMON_F64:
        return ((const double *)data)[index];
    case GNOMON_F16:
        return gnomon_f64_from_f16(((const uint16_t *)data)[index]);
    case GNOMON_BF16:
        return gnomon_f64_from_bf16(((const uint16_t *)data)[index]);
    case GNOMON_I8:
        return ((const int8_t *)data)[index];
    case GNOMON_U8:
        return ((const uint8_t *)data)[index];
    case GNOMON_I16:
        return ((const int16_t *)data)[index];
    case GNOMON_U16:
        return ((const uint16_t *)data)[index];
    case GNOMON_I32:
        return ((const int32_t *)data)[index];
    case GNOMON_U32:
        return ((const uint32_t *)data)[index];
    case GNOMON_I64:
        return (double)((const int64_t *)data)[index];
    case GNOMON_U64:
        return (double)((const uint64_t *)data)[index];
    }
    return 0;
}

size_t gnomon_text_element(const void *data, gnomon_dtype dtype, int64_t index, int digits,
                           char *out)
{
    /* beyond 2^53 a double would not do */
    if (dtype == GNOMON_I64) return gnomon_number_print_i64(((const int64_t *)data)[index], out);
    if (dtype == GNOMON_U64) return gnomon_number_print_u64(((const uint64_t *)data)[index], out);
    double value = as_double(data, dtype, index);
    bool integer =
        dtype != GNOMON_F32 && dtype != GNOMON_F64 && dtype != GNOMON_F16 && dtype != GNOMON_BF16;
    if (integer) return gnomon_number_print_i64((int64_t)value, out);
    if (digits > 0) return gnomon_number_print_digits(value, digits, out);
    return dtype == GNOMON_F64 ? gnomon_number_print_f64(value, out)
                               : gnomon_number_print_f32((float)value, out);
}

size_t gnomon_text_sparse_value(const gnomon_csr *csr, gnomon_dtype dtype, int64_t index, char *out)
{
    double value = as_double(csr->values, csr->dtype, index);
    return dtype == GNOMON_F64 ? gnomon_number_print_f64(value, out)
                               : gnomon_number_print_f32((float)value, out);
}

size_t gnomon_text_number(const gnomon_text_rows *rows, int64_t j, int digits, char *out)
{
    return gnomon_text_element(rows->row, rows->writer->dtype, j, digits, out);
}

bool gnomon_text_nonzero(const gnomon_text_rows *rows, int64_t j)
{
    return as_double(rows->row, rows->writer->dtype, j) != 0;
}

void gnomon_text_rows_free(gnomon_text_rows *rows)
{
    gnomon_free(rows->writer->ctx, rows->row);
}

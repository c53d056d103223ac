/* io/text/text.h: what the text formats share: the type they are read as, and points
 * ready to be printed. */
#ifndef GNOMON_IO_TEXT_H
#define GNOMON_IO_TEXT_H

#include "io/format.h"

/* Every type can be printed. */
#define GNOMON_TEXT_DTYPES                                                                        \
    (GNOMON_DTYPE_BIT(GNOMON_F32) | GNOMON_DTYPE_BIT(GNOMON_F64) | GNOMON_DTYPE_BIT(GNOMON_F16) | \
     GNOMON_DTYPE_BIT(GNOMON_BF16) | GNOMON_DTYPE_BIT(GNOMON_I8) | GNOMON_DTYPE_BIT(GNOMON_U8) |  \
     GNOMON_DTYPE_BIT(GNOMON_I16) | GNOMON_DTYPE_BIT(GNOMON_U16) | GNOMON_DTYPE_BIT(GNOMON_I32) | \
     GNOMON_DTYPE_BIT(GNOMON_U32) | GNOMON_DTYPE_BIT(GNOMON_I64) | GNOMON_DTYPE_BIT(GNOMON_U64))

/* Sets info.dtype to what options.text_dtype asks for: F32 or F64, F32 when it is 0.
 * ARGUMENT for another. */
gnomon_status gnomon_text_dtype(gnomon_reader *reader);

/* Whether text, a decimal that reads as the double value, is beyond what dtype (F32 or F64) holds:
 * rounding to dtype gives infinity. Infinity written as such isn't. */
bool gnomon_text_beyond(const char *text, size_t length, double value, gnomon_dtype dtype);

/* DATA: that text, as gnomon_quote gives it, at this line (and column, both counted from 1; 0: not
 * told) is. */
gnomon_status gnomon_text_fail_beyond(gnomon_reader *reader, int64_t line, int64_t column,
                                      const char *quoted, gnomon_dtype dtype);

/* A block's points one after the other, in the stored type. */
typedef struct gnomon_text_rows {
    gnomon_writer *writer;
    const gnomon_matrix *src;
    void *row; /* cols elements of the stored type */
} gnomon_text_rows;

gnomon_status gnomon_text_rows_start(gnomon_text_rows *rows, gnomon_writer *writer,
                                     const gnomon_matrix *src);
/* Makes src's point i the current one. DATA when a value is out of an integer's range. */
gnomon_status gnomon_text_rows_convert(gnomon_text_rows *rows, int64_t i);
/* Prints the current point's coordinate j to out (GNOMON_NUMBER_TEXT bytes), with at most
 * digits significant digits, 0 for the shortest; returns the length. */
size_t gnomon_text_number(const gnomon_text_rows *rows, int64_t j, int digits, char *out);
/* Whether that coordinate is not zero (a NaN is not). */
bool gnomon_text_nonzero(const gnomon_text_rows *rows, int64_t j);
void gnomon_text_rows_free(gnomon_text_rows *rows);

/* Prints element index of an array of any type. */
size_t gnomon_text_element(const void *data, gnomon_dtype dtype, int64_t index, int digits,
                           char *out);

/* Prints the value of entry index of a CSR of F32 or F64, stored as dtype (one of those). */
size_t gnomon_text_sparse_value(const gnomon_csr *csr, gnomon_dtype dtype, int64_t index,
                                char *out);

#endif

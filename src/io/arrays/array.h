/* io/arrays/array.h: reading and writing elements that lie one after another in a file, which most
 * binary formats come down to. */
#ifndef GNOMON_IO_ARRAY_H
#define GNOMON_IO_ARRAY_H

#include "io/format.h"

/* What a header told. A 'line' is a row, or with fortran a column: what is contiguous. */
typedef struct gnomon_array {
    gnomon_source *source; /* not owned */
    int64_t offset;        /* of the first line in source */
    int64_t rows, cols;    /* rows -1: to the end of the source */
    gnomon_dtype dtype;
    bool boolean;  /* truth values */
    bool swapped;  /* elements in the other byte order than this machine's */
    bool fortran;  /* lines are columns */
    bool prefixed; /* each row begins with its dimension, 4 bytes, low end first */
    bool whole;    /* nothing may follow the last line */
    /* gnomon_array_start's own */
    int64_t next_row;
    bool ended;
    unsigned char *scratch;
} gnomon_array;

/* Checks the header against the source, completes array and fills in reader->info. A source
 * of columns that is no file is kept in a temporary one. */
gnomon_status gnomon_array_start(gnomon_reader *reader, gnomon_array *array);
void gnomon_array_stop(gnomon_context *ctx, gnomon_array *array);

/* For formats whose state is an array, or begins with one: gnomon_array_open makes the
 * state from a header; the rest goes into the format's table. */
gnomon_status gnomon_array_open(gnomon_reader *reader, const gnomon_array *header);
gnomon_status gnomon_array_next(gnomon_reader *reader, const gnomon_matrix *dst, int64_t *got);
gnomon_status gnomon_array_seek(gnomon_reader *reader, int64_t row);
gnomon_status gnomon_array_block(gnomon_reader *reader, int64_t row, int64_t col,
                                 const gnomon_matrix *dst);
void gnomon_array_close(gnomon_reader *reader);

/* Where written elements go: appended, or (column-major) placed. */
typedef struct gnomon_array_out {
    void *to;
    gnomon_status (*append)(void *to, const void *data, size_t size);
    gnomon_status (*place)(void *to, int64_t offset, const void *data, size_t size);
    int64_t offset; /* of the first element, for place */
    bool swap;      /* store in the other byte order than this machine's */
    bool prefixed;  /* begin each row with its dimension */
    unsigned char *scratch;
} gnomon_array_out;

/* An out into the writer's sink, from where the sink stands now on. */
gnomon_status gnomon_array_out_start(gnomon_writer *writer, gnomon_array_out *out);
void gnomon_array_out_stop(gnomon_context *ctx, gnomon_array_out *out);
/* Converts and stores the writer's next points; column-major when its options say so. */
gnomon_status gnomon_array_out_put(gnomon_writer *writer, gnomon_array_out *out,
                                   const gnomon_matrix *src);

/* For formats whose writing state is an out, or begins with one. */
gnomon_status gnomon_array_create(gnomon_writer *writer, bool swap, bool prefixed);
gnomon_status gnomon_array_put(gnomon_writer *writer, const gnomon_matrix *src);
void gnomon_array_discard(gnomon_writer *writer);

#endif

/* io/formats/csv.h: one line of delimited numbers. */
#ifndef GNOMON_IO_CSV_H
#define GNOMON_IO_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The delimiter that a line's fields seem to have: a tab, ';', ',' or ' ', the first of these
 * that stands in it outside quotes; ',' when there is none. */
char gnomon_csv_guess_delimiter(const char *line, size_t length);

/* Walks a line's fields. A ' ' delimiter is any run of blanks and tabs, those at the line's
 * ends not counting; other delimiters stand alone, with blanks around fields not counting. */
typedef struct gnomon_csv_fields {
    const char *p, *end;
    char delimiter;
    bool over;
} gnomon_csv_fields;

void gnomon_csv_start(gnomon_csv_fields *fields, const char *line, size_t length, char delimiter);

/* What the next field is. */
typedef enum gnomon_csv_kind {
    GNOMON_CSV_END,    /* there is none */
    GNOMON_CSV_NUMBER, /* *value, written as *text[0, *length) */
    GNOMON_CSV_EMPTY,
    GNOMON_CSV_OTHER,   /* *text[0, *length) */
    GNOMON_CSV_UNCLOSED /* a quote without its other */
} gnomon_csv_kind;

gnomon_csv_kind gnomon_csv_next(gnomon_csv_fields *fields, double *value, const char **text,
                                size_t *length);

/* Whether a line holds no point: blank, or its first character but blanks is '#'. */
bool gnomon_csv_skipped(const char *line, size_t length);

#endif

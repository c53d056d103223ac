/* search/scan.h: all queries against rows of a base. */
#ifndef GNOMON_SEARCH_SCAN_H
#define GNOMON_SEARCH_SCAN_H

#include "search/state.h"

/* All queries against base's rows, the first of which is point search->base. rows: which,
 * ascending; NULL: all. */
gnomon_status gnomon_scan(gnomon_search *search, const gnomon_matrix *base, const uint32_t *rows,
                          int64_t count);

/* Points of lists in coordinates of few bits, a place each. */
typedef struct gnomon_scan_packed {
    uint32_t *words;
    float *bias;
    gnomon_blur *blurs;
} gnomon_scan_packed;

/* Lists of base rows, of which each query asks for some. */
typedef struct gnomon_scan_lists {
    int64_t count;
    const int64_t *first;   /* count + 1: where a list's rows begin in 'rows': multiples of
                               GNOMON_LANES; */
    const int64_t *rows_of; /* count: so many they are, and the last stands for the rest */
    const uint32_t *rows;
    const int32_t *asked; /* the search's queries x each: lists, the nearest first */
    int64_t each;
    const uint32_t *self; /* a query's own row's place in 'rows', or UINT32_MAX; NULL: none has one
                           */
    const float *centres; /* count x the search's columns: a vector near each list's rows, */
    const double *keys;   /* and the queries' keys of those that they ask for */
    const gnomon_scan_packed *packed; /* what gnomon_scan_pack makes of the rows; NULL: they are
                                         packed each time that they are scanned */
} gnomon_scan_lists;

/* Bytes of so many packed places, in coordinates that the search's estimated centre chooses: a
 * multiple of GNOMON_ALIGN; 0: these are not packed. */
int64_t gnomon_scan_packed_bytes(const gnomon_search *search, int64_t places);
/* Where they are in memory of so many bytes, at a multiple of GNOMON_ALIGN. */
gnomon_scan_packed gnomon_scan_packed_in(const gnomon_search *search, int64_t places, void *memory);
/* Packs lists of base's rows: 'count' to 'rows', and 'centres'. The numbers are the same for all
 * searches whose centres are alike. Errors: MEMORY; NONFINITE, UNSUPPORTED: base has such a row. */
gnomon_status gnomon_scan_pack(gnomon_search *search, const gnomon_matrix *base,
                               const gnomon_scan_lists *lists, const gnomon_scan_packed *to);

/* The k nearest of each query among the rows of its lists, under a metric that is filtered. base's
 * first row is point search->base. */
gnomon_status gnomon_scan_lists_of(gnomon_search *search, const gnomon_matrix *base,
                                   const gnomon_scan_lists *lists);

#endif

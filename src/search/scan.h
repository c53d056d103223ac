/* search/scan.h: all queries against rows of a base. */
#ifndef GNOMON_SEARCH_SCAN_H
#define GNOMON_SEARCH_SCAN_H

#include "search/state.h"

/* All queries against base's rows, the first of which is point search->base. rows: which,
 * ascending; NULL: all. */
gnomon_status gnomon_scan(gnomon_search *search, const gnomon_matrix *base, const uint32_t *rows,
                          int64_t count);

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
} gnomon_scan_lists;

/* The k nearest of each query among the rows of its lists, under a metric that is filtered. base's
 * first row is point search->base. */
gnomon_status gnomon_scan_lists_of(gnomon_search *search, const gnomon_matrix *base,
                                   const gnomon_scan_lists *lists);

#endif

/* join/order/places.h: pairs brought into the order of rows by several threads. Each
 * takes a part of the pairs, one after the other as they are, and counts those of each row; then it
 * is known where a part's pairs of a row go. However many parts there are, a row's pairs keep their
 * order. */
#ifndef GNOMON_JOIN_ORDER_PLACES_H
#define GNOMON_JOIN_ORDER_PLACES_H

#include "base/error.h"

typedef struct gnomon_row_places {
    int64_t rows, count, parts;
    int64_t *places; /* parts x rows */
} gnomon_row_places;

/* For 'count' pairs; all zero. Errors: MEMORY. */
gnomon_status gnomon_row_places_open(gnomon_context *ctx, int64_t rows, int64_t count,
                                     gnomon_row_places *p);
void gnomon_row_places_free(gnomon_context *ctx, gnomon_row_places *p);

/* A part's pairs begin here; its end is where the next one's begin. */
int64_t gnomon_row_places_begin(const gnomon_row_places *p, int64_t part);

static inline int64_t *gnomon_row_places_of(const gnomon_row_places *p, int64_t part)
{
    return p->places + part * p->rows;
}

/* Once each part has counted its pairs of each row: starts[row], of rows + 1, is where a row
 * begins, and a part's place of it how far from there its own pairs do. */
void gnomon_row_places_set(gnomon_context *ctx, gnomon_row_places *p, int64_t *starts);

#endif

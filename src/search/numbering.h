/* search/numbering.h: members of sets (columns of sparse rows) numbered by how often they occur,
 * rarest first, so that lists and bounds go by small numbers. */
#ifndef GNOMON_SEARCH_NUMBERING_H
#define GNOMON_SEARCH_NUMBERING_H

#include "metric/metric.h"

/* A table by the member itself where members are not much fewer than what they are taken from,
 * else by hashing; or, in a file, ascending members. */
typedef struct gnomon_numbering {
    bool direct;
    bool sorted; /* keys ascend, 'used' of them; there are no counts */
    int64_t places;
    int64_t *keys; /* -1: none; NULL when direct */
    uint32_t *counts, *numbers;
    int shift;
    int64_t used; /* members that occur, once it is closed: numbers are 0 ... used - 1, which must
                     be below 2^32 */
} gnomon_numbering;

/* Of members in [0, cols), of which about so many will be counted. Errors: MEMORY. */
gnomon_status gnomon_numbering_open(gnomon_context *ctx, int64_t cols, int64_t members,
                                    gnomon_numbering *numbering);
/* Counts the members of all sets. Errors: MEMORY. */
gnomon_status gnomon_numbering_count(gnomon_context *ctx, gnomon_numbering *numbering,
                                     const gnomon_sets *sets);
/* After the last: gives the numbers. Errors: MEMORY. */
gnomon_status gnomon_numbering_close(gnomon_context *ctx, gnomon_numbering *numbering);
/* A member's number, -1 of one that was not counted. */
int64_t gnomon_numbering_find(const gnomon_numbering *numbering, int64_t member);
/* All members that were counted, ascending, with their numbers: 'used' of each. Errors: MEMORY. */
gnomon_status gnomon_numbering_list(gnomon_context *ctx, const gnomon_numbering *numbering,
                                    int64_t *members, uint32_t *numbers);
void gnomon_numbering_free(gnomon_context *ctx, gnomon_numbering *numbering);

#endif

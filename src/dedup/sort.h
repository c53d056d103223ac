/* dedup/sort.h: sorting 64-bit numbers. */
#ifndef GNOMON_DEDUP_SORT_H
#define GNOMON_DEDUP_SORT_H

#include <stdint.h>

/* Ascending, for numbers that are spread evenly over all 64 bits, in linear time; others take
 * longer, n log n. scratch has room for count. */
void gnomon_sort_hashes(uint64_t *hashes, uint64_t *scratch, int64_t count);
/* Any numbers, ascending, in place. */
void gnomon_sort_numbers(uint64_t *numbers, int64_t count);
/* The same by a digit at a time, with scratch for count. */
void gnomon_sort_digits(uint64_t *numbers, uint64_t *scratch, int64_t count);
/* The same, where the lower halves of numbers with equal upper halves ascend already. */
void gnomon_sort_upper(uint64_t *numbers, uint64_t *scratch, int64_t count);

#endif

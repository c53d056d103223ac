/* lsh/probe.h: which buckets to probe, the likeliest first (Lv et al. 2007).
 *
 * A table's items are the other values of its functions, ascending by cost. A probe takes a set of
 * items, at most one per function, and costs their sum. All tables' probes come in the order of
 * (cost, table, set), from a heap: from each set that is taken follow the one whose last item is
 * moved on by one, and the one with the next item added. */
#ifndef GNOMON_LSH_PROBE_H
#define GNOMON_LSH_PROBE_H

#include <stdbool.h>
#include <stdint.h>

enum { GNOMON_PROBE_ITEMS = 48 }; /* of a table; the cheapest */

typedef struct gnomon_probe_item {
    float cost;
    uint32_t function; /* of the table's */
    uint64_t step;     /* what it adds to the sum of its half */
    bool fine;
} gnomon_probe_item;

typedef struct gnomon_probe_set {
    float cost;
    uint32_t table;
    uint64_t items;
} gnomon_probe_set;

typedef struct gnomon_prober {
    int64_t tables;
    /* a table's sums of its two halves, and its items */
    uint64_t (*sums)[2];
    int32_t *counts;
    gnomon_probe_item *items; /* GNOMON_PROBE_ITEMS a table */
    gnomon_probe_set *heap;
    int64_t count, room;
    int64_t spent; /* sets taken, those that are no probes too */
} gnomon_prober;

/* Heap places for so many probes, and bytes of a prober's arrays. */
int64_t gnomon_prober_room(int64_t tables, int64_t probes);
int64_t gnomon_prober_bytes(int64_t tables, int64_t probes);
/* Lays the arrays into memory of that size, aligned to 64 bytes. */
void gnomon_prober_place(gnomon_prober *p, int64_t tables, int64_t probes, void *memory);

/* Adds an item to a table, in its place. */
void gnomon_prober_add(gnomon_prober *p, int64_t table, float cost, uint32_t function,
                       uint64_t step, bool fine);
/* After the items: the first sets. */
void gnomon_prober_begin(gnomon_prober *p);
/* The next probe after the tables' own buckets: its table and sums. False when there is none. */
bool gnomon_prober_next(gnomon_prober *p, int64_t *table, uint64_t sums[2]);

#endif

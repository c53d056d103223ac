#include "lsh/probe.h"

#include "base/arithmetic.h"
#include "base/memory.h"

/* A heap of so many places a probe: each set taken leaves one more behind, and sets that are no
 * probes are few. */
int64_t gnomon_prober_room(int64_t tables, int64_t probes)
{
    return tables + 4 * probes + 64;
}

int64_t gnomon_prober_bytes(int64_t tables, int64_t probes)
{
    return gnomon_round_up(tables * (int64_t)sizeof(uint64_t[2]), GNOMON_ALIGN) +
           gnomon_round_up(tables * (int64_t)sizeof(int32_t), GNOMON_ALIGN) +
           gnomon_round_up(tables * GNOMON_PROBE_ITEMS * (int64_t)sizeof(gnomon_probe_item),
                           GNOMON_ALIGN) +
           gnomon_round_up(gnomon_prober_room(tables, probes) * (int64_t)sizeof(gnomon_probe_set),
                           GNOMON_ALIGN);
}

void gnomon_prober_place(gnomon_prober *p, int64_t tables, int64_t probes, void *memory)
{
    char *at = memory;
    *p = (gnomon_prober){.tables = tables, .room = gnomon_prober_room(tables, probes)};
    p->sums = (uint64_t(*)[2])(void *)at;
    at += gnomon_round_up(tables * (int64_t)sizeof *p->sums, GNOMON_ALIGN);
    p->counts = (int32_t *)(void *)at;
    at += gnomon_round_up(tables * (int64_t)sizeof *p->counts, GNOMON_ALIGN);
    p->items = (gnomon_probe_item *)(void *)at;
    at += gnomon_round_up(tables * GNOMON_PROBE_ITEMS * (int64_t)sizeof *p->items, GNOMON_ALIGN);
    p->heap = (gnomon_probe_set *)(void *)at;
}

void gnomon_prober_add(gnomon_prober *p, int64_t table, float cost, uint32_t function,
                       uint64_t step, bool fine)
{
    gnomon_probe_item *items = p->items + table * GNOMON_PROBE_ITEMS;
    int32_t at = p->counts[table];
    if (at == GNOMON_PROBE_ITEMS && !(cost < items[at - 1].cost)) return;
    if (at == GNOMON_PROBE_ITEMS)
        at--;
    else
        p->counts[table]++;
    for (; at > 0 && cost < items[at - 1].cost; at--)
        items[at] = items[at - 1];
    items[at] = (gnomon_probe_item){cost, function, step, fine};
}

static bool before(const gnomon_probe_set *a, const gnomon_probe_set *b)
{
    if (a->cost != b->cost) return a->cost < b->cost;
    if (a->table != b->table) return a->table < b->table;
    return a->items < b->items;
}

static void push(gnomon_prober *p, gnomon_probe_set set)
{
    if (p->count == p->room) return; /* far more than will be asked for are there */
    int64_t at = p->count++;
    while (at > 0 && before(&set, &p->heap[(at - 1) / 2])) {
        p->heap[at] = p->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    p->heap[at] = set;
}

/* Puts a set in the place of the first. */
static void replace(gnomon_prober *p, gnomon_probe_set set)
{
    int64_t at = 0;
    for (;;) {
        int64_t child = 2 * at + 1;
        if (child >= p->count) break;
        if (child + 1 < p->count && before(&p->heap[child + 1], &p->heap[child])) child++;
        if (!before(&p->heap[child], &set)) break;
        p->heap[at] = p->heap[child];
        at = child;
    }
    p->heap[at] = set;
}

void gnomon_prober_begin(gnomon_prober *p)
{
    p->count = 0;
    p->spent = 0;
    for (int64_t t = 0; t < p->tables; t++)
        if (p->counts[t] > 0)
            push(p, (gnomon_probe_set){p->items[t * GNOMON_PROBE_ITEMS].cost, (uint32_t)t, 1});
}

/* Adds the items' steps; false when two are of one function. */
static bool apply(const gnomon_probe_item *items, uint64_t set, uint64_t sums[2])
{
    for (uint64_t rest = set; rest != 0; rest &= rest - 1) {
        const gnomon_probe_item *item = &items[__builtin_ctzll(rest)];
        for (uint64_t others = rest & (rest - 1); others != 0; others &= others - 1)
            if (items[__builtin_ctzll(others)].function == item->function) return false;
        sums[item->fine] += item->step;
    }
    return true;
}

bool gnomon_prober_next(gnomon_prober *p, int64_t *table, uint64_t sums[2])
{
    while (p->count > 0) {
        const gnomon_probe_set set = p->heap[0];
        const gnomon_probe_item *items = p->items + set.table * GNOMON_PROBE_ITEMS;
        const int last = 63 - __builtin_clzll(set.items);
        p->spent++;
        if (last + 1 < p->counts[set.table]) {
            const uint64_t next = UINT64_C(1) << (last + 1);
            replace(p, (gnomon_probe_set){set.cost - items[last].cost + items[last + 1].cost,
                                          set.table, (set.items & ~(UINT64_C(1) << last)) | next});
            push(p,
                 (gnomon_probe_set){set.cost + items[last + 1].cost, set.table, set.items | next});
        } else {
            const gnomon_probe_set end = p->heap[--p->count];
            if (p->count > 0) replace(p, end);
        }
        sums[0] = p->sums[set.table][0];
        sums[1] = p->sums[set.table][1];
        if (!apply(items, set.items, sums)) continue;
        *table = set.table;
        return true;
    }
    return false;
}

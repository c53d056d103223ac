#include "dedup/sort.h"

#include <string.h>

static void insert(uint64_t *a, int64_t count)
{
    for (int64_t i = 1; i < count; i++) {
        const uint64_t x = a[i];
        int64_t j = i;
        for (; j > 0 && a[j - 1] > x; j--)
            a[j] = a[j - 1];
        a[j] = x;
    }
}

static void sink_down(uint64_t *a, int64_t root, int64_t count)
{
    const uint64_t x = a[root];
    for (int64_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && a[child + 1] > a[child]) child++;
        if (a[child] <= x) break;
        a[root] = a[child];
    }
    a[root] = x;
}

/* By heap: no input makes it quadratic. */
void gnomon_sort_numbers(uint64_t *a, int64_t count)
{
    if (count <= 24) {
        insert(a, count);
        return;
    }
    for (int64_t root = count / 2 - 1; root >= 0; root--)
        sink_down(a, root, count);
    for (int64_t last = count - 1; last > 0; last--) {
        const uint64_t top = a[0];
        a[0] = a[last];
        a[last] = top;
        sink_down(a, 0, last);
    }
}

void gnomon_sort_hashes(uint64_t *a, uint64_t *scratch, int64_t count)
{
    enum { MOST_BITS = 8, SMALL = 24, FEW = 32 };
    if (count <= SMALL) {
        insert(a, count);
        return;
    }
    if (count >= 4096) {
        gnomon_sort_digits(a, scratch, count);
        return;
    }
    int bits = 1;
    while (bits < MOST_BITS && ((int64_t)4 << bits) < count)
        bits++;
    const int shift = 64 - bits, buckets = 1 << bits;
    int32_t ends[1 << MOST_BITS] = {0};
    for (int64_t i = 0; i < count; i++)
        ends[a[i] >> shift]++;
    for (int32_t b = 0, at = 0; b < buckets; b++) {
        const int32_t here = ends[b];
        ends[b] = at;
        at += here;
    }
    for (int64_t i = 0; i < count; i++)
        scratch[ends[a[i] >> shift]++] = a[i];
    for (int32_t b = 0, begin = 0; b < buckets; begin = ends[b++]) {
        if (ends[b] - begin <= FEW)
            insert(scratch + begin, ends[b] - begin);
        else
            gnomon_sort_numbers(scratch + begin, ends[b] - begin);
    }
    memcpy(a, scratch, (size_t)count * sizeof *a);
}

/* By the digits from bit 'low' on. */
static void sort_from(int low, uint64_t *a, uint64_t *scratch, int64_t count)
{
    enum { DIGIT = 11, VALUES = 1 << DIGIT };
    static const int64_t few = 1024;
    if (count < few) {
        gnomon_sort_numbers(a, count);
        return;
    }
    uint64_t *from = a, *to = scratch, all = 0, both = UINT64_MAX;
    for (int64_t i = 0; i < count; i++) {
        all |= a[i];
        both &= a[i];
    }
    for (int shift = low; shift < 64; shift += DIGIT) {
        if (((all ^ both) >> shift & (VALUES - 1)) == 0) continue; /* the same everywhere */
        int64_t ends[VALUES] = {0};
        for (int64_t i = 0; i < count; i++)
            ends[from[i] >> shift & (VALUES - 1)]++;
        for (int64_t v = 0, at = 0; v < VALUES; v++) {
            const int64_t here = ends[v];
            ends[v] = at;
            at += here;
        }
        for (int64_t i = 0; i < count; i++)
            to[ends[from[i] >> shift & (VALUES - 1)]++] = from[i];
        uint64_t *const other = from;
        from = to;
        to = other;
    }
    if (from != a) memcpy(a, from, (size_t)count * sizeof *a);
}

void gnomon_sort_digits(uint64_t *a, uint64_t *scratch, int64_t count)
{
    sort_from(0, a, scratch, count);
}

void gnomon_sort_upper(uint64_t *a, uint64_t *scratch, int64_t count)
{
    sort_from(32, a, scratch, count);
}

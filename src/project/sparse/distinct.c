#include "project/sparse/distinct.h"

#include "base/arithmetic.h"
#include "base/context.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"

#include <string.h>

/* Sorts by the bytes that differ, the lowest first; 'spare' has as much room. Returns where
 * the result is. */
static int64_t *sort(int64_t *a, int64_t *spare, int64_t count, int64_t spread)
{
    for (int shift = 0; shift < 63 && spread >> shift > 0; shift += 8) {
        int64_t place[257] = {0};
        for (int64_t e = 0; e < count; e++)
            place[(a[e] >> shift & 255) + 1]++;
        for (int i = 0; i < 256; i++)
            place[i + 1] += place[i];
        for (int64_t e = 0; e < count; e++)
            spare[place[a[e] >> shift & 255]++] = a[e];
        int64_t *const sorted = spare;
        spare = a;
        a = sorted;
    }
    return a;
}

/* Whose columns they are. */
typedef struct segments {
    int64_t points;
    const int64_t *start, *stop, *cols;
} segments;

static gnomon_status by_sorting(gnomon_context *ctx, gnomon_distinct *d, const segments *s,
                                int64_t count, int64_t first, int64_t last)
{
    int64_t *spare = NULL;
    GNOMON_TRY(gnomon_alloc(ctx, count, sizeof *d->list, "the touched columns", &d->list));
    GNOMON_TRY(gnomon_alloc(ctx, count, sizeof *spare, "room to sort", &spare));
    int64_t n = 0;
    for (int64_t v = 0; v < s->points; v++)
        for (int64_t e = s->start[v]; e < s->stop[v]; e++)
            d->list[n++] = s->cols[e] - first;
    const int64_t *sorted = sort(d->list, spare, count, last - first);
    int64_t *to = d->list; /* in place: what is written has been read */
    for (int64_t e = 0; e < count; e++) {
        const int64_t col = sorted[e] + first;
        if (d->count == 0 || to[d->count - 1] != col) to[d->count++] = col;
    }
    gnomon_free(ctx, spare);
    return GNOMON_OK;
}

/* Some points after the other as a part, whose touched columns have bits of their own; the first
 * part's become those of all. */
typedef struct marking {
    const gnomon_distinct *d;
    const segments *s;
    int64_t parts;
    uint64_t *bits; /* of the parts after the first: words each */
} marking;

static uint64_t *bits_of(const marking *m, int64_t part)
{
    return part == 0 ? m->d->bits : m->bits + (part - 1) * m->d->words;
}

static void mark_part(void *arg, int64_t part, int worker)
{
    (void)worker;
    const marking *m = arg;
    const segments *s = m->s;
    const int64_t end = gnomon_part_begin(s->points, part + 1, m->parts);
    uint64_t *bits = bits_of(m, part);
    for (int64_t v = gnomon_part_begin(s->points, part, m->parts); v < end; v++) {
        for (int64_t e = s->start[v]; e < s->stop[v]; e++) {
            const int64_t at = s->cols[e] - m->d->first;
            bits[at >> 6] |= UINT64_C(1) << (at & 63);
        }
    }
}

static gnomon_status mark(gnomon_context *ctx, const gnomon_distinct *d, const segments *s,
                          int64_t count, int64_t bytes)
{
    marking m = {.d = d, .s = s};
    /* parts but the first have bits that are gone through in less time than their columns, in what
     * d's leave of the bytes */
    const int64_t others = gnomon_min(count / 4, bytes / 8 - 2 * d->words) / d->words;
    m.parts = gnomon_min(gnomon_min(gnomon_context_threads(ctx), s->points), 1 + others);
    GNOMON_TRY(gnomon_alloc_zero(ctx, gnomon_times(m.parts - 1, d->words), sizeof *m.bits,
                                 "the touched columns", &m.bits));
    gnomon_parallel(ctx, m.parts, mark_part, &m);
    for (int64_t part = 1; part < m.parts; part++)
        for (int64_t w = 0; w < d->words; w++)
            d->bits[w] |= bits_of(&m, part)[w];
    gnomon_free(ctx, m.bits);
    return GNOMON_OK;
}

static gnomon_status by_bits(gnomon_context *ctx, gnomon_distinct *d, const segments *s,
                             int64_t count, int64_t bytes)
{
    GNOMON_TRY(gnomon_alloc_zero(ctx, d->words, sizeof *d->bits, "the touched columns", &d->bits));
    GNOMON_TRY(gnomon_alloc(ctx, d->words, sizeof *d->before, "the touched columns", &d->before));
    GNOMON_TRY(mark(ctx, d, s, count, bytes));
    for (int64_t w = 0; w < d->words; w++) {
        d->before[w] = d->count;
        d->count += __builtin_popcountll(d->bits[w]);
    }
    GNOMON_TRY(gnomon_alloc(ctx, d->count, sizeof *d->list, "the touched columns", &d->list));
    int64_t n = 0;
    for (int64_t w = 0; w < d->words; w++) {
        for (uint64_t left = d->bits[w]; left; left &= left - 1)
            d->list[n++] = d->first + w * 64 + __builtin_ctzll(left);
    }
    return GNOMON_OK;
}

gnomon_status gnomon_distinct_open(gnomon_context *ctx, gnomon_distinct *d, int64_t points,
                                   const int64_t *start, const int64_t *stop, const int64_t *cols,
                                   int64_t bytes)
{
    *d = (gnomon_distinct){0};
    int64_t count = 0, first = INT64_MAX, last = 0;
    for (int64_t v = 0; v < points; v++) {
        if (start[v] == stop[v]) continue;
        count += stop[v] - start[v];
        if (cols[start[v]] < first) first = cols[start[v]];
        if (cols[stop[v] - 1] > last) last = cols[stop[v] - 1];
    }
    if (count == 0) return GNOMON_OK;
    const segments s = {points, start, stop, cols};
    d->first = first;
    d->words = ((last - first) >> 6) + 1;
    const bool few = d->words <= bytes / 16 && d->words <= 8 * count + 1024;
    gnomon_status status =
        few ? by_bits(ctx, d, &s, count, bytes) : by_sorting(ctx, d, &s, count, first, last);
    if (status != GNOMON_OK) gnomon_distinct_close(ctx, d);
    return status;
}

void gnomon_distinct_close(gnomon_context *ctx, gnomon_distinct *d)
{
    gnomon_free(ctx, d->list);
    gnomon_free(ctx, d->bits);
    gnomon_free(ctx, d->before);
    *d = (gnomon_distinct){0};
}

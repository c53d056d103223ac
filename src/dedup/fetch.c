/* Documents' sets, read from where they are. */
#include "base/arithmetic.h"
#include "base/memory.h"
#include "base/threads.h"
#include "dedup/state.h"

void gnomon_fetch_start(gnomon_fetch *f, gnomon_dedup *d, int64_t most)
{
    *f = (gnomon_fetch){.d = d, .most = most};
    gnomon_window_start(&f->places, &d->documents, GNOMON_DOCUMENT_WINDOW);
}

/* Where the sets are, for as many documents as fit. */
static gnomon_status find(gnomon_fetch *f, const uint32_t *documents, int64_t count, int64_t least,
                          int64_t *taken, int64_t *total)
{
    const bool held = f->d->sets.fd < 0;
    *total = 0;
    for (*taken = 0; *taken < count; ++*taken) {
        const gnomon_document *two;
        GNOMON_TRY(gnomon_dedup_document(&f->places, documents[*taken], &two));
        const int64_t begin = two[0].set_end, bytes = two[1].set_end - begin;
        if (!held && *taken >= least && *total + bytes > f->most) break;
        f->begins[*taken] = begin;
        f->sets[*taken] = (gnomon_set){NULL, bytes};
        *total += bytes;
    }
    return GNOMON_OK;
}

/* Those that follow one another in the file are read at once. */
static gnomon_status read_sets(gnomon_fetch *f, int64_t count)
{
    char *to = f->arena;
    for (int64_t first = 0, end; first < count; first = end) {
        int64_t bytes = 0;
        for (end = first; end < count && f->begins[end] == f->begins[first] + bytes; end++) {
            f->sets[end].members = (const uint64_t *)(const void *)(to + bytes);
            bytes += f->sets[end].bytes;
        }
        GNOMON_TRY(gnomon_store_read(&f->d->sets, f->begins[first], bytes, to));
        to += bytes;
    }
    return GNOMON_OK;
}

gnomon_status gnomon_fetch_some(gnomon_fetch *f, const uint32_t *documents, int64_t count,
                                int64_t least, int64_t *taken)
{
    gnomon_dedup *d = f->d;
    int64_t total;
    if (count > f->room) {
        gnomon_free(d->ctx, f->sets);
        gnomon_free(d->ctx, f->begins);
        f->sets = NULL;
        f->begins = NULL;
        f->room = 0;
        GNOMON_TRY(gnomon_alloc(d->ctx, count, sizeof *f->sets, "sets", &f->sets));
        GNOMON_TRY(gnomon_alloc(d->ctx, count, sizeof *f->begins, "sets", &f->begins));
        f->room = count;
    }
    GNOMON_TRY(find(f, documents, count, least, taken, &total));
    if (d->sets.fd < 0) {
        for (int64_t i = 0; i < *taken; i++)
            f->sets[i].members = (const uint64_t *)(const void *)(d->sets.data + f->begins[i]);
        return GNOMON_OK;
    }
    if (total > f->arena_room) {
        const int64_t room = gnomon_max(total, gnomon_min(f->most, d->sets.size));
        GNOMON_TRY(gnomon_renew(d->ctx, &f->arena, &f->arena_room, room, 1, "sets"));
    }
    return read_sets(f, *taken);
}

void gnomon_fetch_end(gnomon_fetch *f)
{
    if (f->d == NULL) return;
    gnomon_window_end(&f->places);
    gnomon_free(f->d->ctx, f->arena);
    gnomon_free(f->d->ctx, f->sets);
    gnomon_free(f->d->ctx, f->begins);
    *f = (gnomon_fetch){0};
}

/* ---- all distinct sets ---- */

gnomon_status gnomon_scan_open(gnomon_scan *s, gnomon_dedup *d, int64_t bytes)
{
    *s = (gnomon_scan){.room = gnomon_min(GNOMON_SCAN_MOST, gnomon_max(1, d->distinct))};
    gnomon_fetch_start(&s->fetch, d, bytes);
    return gnomon_alloc(d->ctx, s->room, sizeof *s->documents, "documents", &s->documents);
}

gnomon_status gnomon_scan_next(gnomon_scan *s, int64_t most, int64_t *count)
{
    const gnomon_dedup *d = s->fetch.d;
    int64_t some = 0;
    most = gnomon_min(most, s->room);
    for (int64_t i = s->next; i < d->count && some < most; i++)
        if (gnomon_bit(d->firsts, i)) s->documents[some++] = (uint32_t)i;
    *count = 0;
    if (some == 0) return GNOMON_OK;
    GNOMON_TRY(gnomon_fetch_some(&s->fetch, s->documents, some, 1, count));
    s->next = (int64_t)s->documents[*count - 1] + 1;
    return GNOMON_OK;
}

void gnomon_scan_close(gnomon_scan *s)
{
    if (s->fetch.d == NULL) return;
    gnomon_free(s->fetch.d->ctx, s->documents);
    gnomon_fetch_end(&s->fetch);
    *s = (gnomon_scan){0};
}

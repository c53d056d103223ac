#include "dedup/runs.h"

#include "base/arithmetic.h"
#include "base/memory.h"
#include "base/threads.h"

#include <string.h>

/* ---- merging ---- */

static bool before(struct gnomon_merge_head a, struct gnomon_merge_head b)
{
    return a.key < b.key || (a.key == b.key && a.run < b.run);
}

static void sift(gnomon_merge *m, int64_t at)
{
    const struct gnomon_merge_head x = m->heap[at];
    for (int64_t child; (child = 2 * at + 1) < m->left; at = child) {
        if (child + 1 < m->left && before(m->heap[child + 1], m->heap[child])) child++;
        if (!before(m->heap[child], x)) break;
        m->heap[at] = m->heap[child];
    }
    m->heap[at] = x;
}

/* More of a run that has been read as far as its buffer went. */
static gnomon_status refill(gnomon_merge *m, int64_t r)
{
    gnomon_run *run = &m->runs[r];
    uint64_t *buffer = m->buffers + r * m->each;
    const int64_t some = gnomon_min(m->each * (int64_t)sizeof *buffer, run->end - run->next);
    if (some > 0) GNOMON_TRY(gnomon_store_read(m->file, run->next, some, buffer));
    run->next += some;
    run->at = buffer;
    run->limit = buffer + some / (int64_t)sizeof *buffer;
    return GNOMON_OK;
}

gnomon_status gnomon_merge_open(gnomon_merge *m, const gnomon_store *file, int64_t words,
                                const int64_t *begins, const int64_t *ends, int64_t count,
                                int64_t bytes)
{
    enum { LEAST = 64, MOST = 1 << 17 };
    gnomon_context *ctx = file->ctx;
    const int64_t each = bytes / gnomon_max(1, count) / (int64_t)sizeof *m->buffers;
    *m = (gnomon_merge){
        .file = file, .words = words, .each = gnomon_max(LEAST, gnomon_min(MOST, each) & ~1)};
    GNOMON_TRY(gnomon_alloc(ctx, count, sizeof *m->runs, "runs", &m->runs));
    GNOMON_TRY(gnomon_alloc(ctx, count, sizeof *m->heap, "runs", &m->heap));
    GNOMON_TRY(
        gnomon_alloc(ctx, gnomon_times(count, m->each), sizeof *m->buffers, "runs", &m->buffers));
    for (int64_t r = 0; r < count; r++) {
        m->runs[r] = (gnomon_run){.next = begins[r], .end = ends[r]};
        if (begins[r] == ends[r]) continue;
        GNOMON_TRY(refill(m, r));
        m->heap[m->left++] = (struct gnomon_merge_head){m->runs[r].at[0], r};
    }
    for (int64_t at = m->left / 2 - 1; at >= 0; at--)
        sift(m, at);
    return GNOMON_OK;
}

gnomon_status gnomon_merge_next(gnomon_merge *m, const uint64_t **record)
{
    *record = NULL;
    if (m->begun && m->left > 0) {
        gnomon_run *run = &m->runs[m->heap[0].run];
        run->at += m->words;
        if (run->at == run->limit) GNOMON_TRY(refill(m, m->heap[0].run));
        if (run->at == run->limit)
            m->heap[0] = m->heap[--m->left];
        else
            m->heap[0].key = run->at[0];
        if (m->left > 0) sift(m, 0);
    }
    m->begun = true;
    if (m->left > 0) *record = m->runs[m->heap[0].run].at;
    return GNOMON_OK;
}

void gnomon_merge_close(gnomon_merge *m)
{
    if (m->file == NULL) return;
    gnomon_free(m->file->ctx, m->runs);
    gnomon_free(m->file->ctx, m->heap);
    gnomon_free(m->file->ctx, m->buffers);
    *m = (gnomon_merge){0};
}

/* ---- sorting ---- */

/* By a digit of the key at a time, from the lowest. */
static void sort_records(gnomon_record *a, gnomon_record *scratch, int64_t count)
{
    enum { DIGIT = 11, DIGITS = 6, VALUES = 1 << DIGIT, FEW = 32 };
    if (count <= FEW) {
        for (int64_t i = 1; i < count; i++) {
            const gnomon_record x = a[i];
            int64_t at = i;
            for (; at > 0 && a[at - 1].key > x.key; at--)
                a[at] = a[at - 1];
            a[at] = x;
        }
        return;
    }
    gnomon_record *from = a, *to = scratch;
    uint64_t all = 0, both = UINT64_MAX;
    for (int64_t i = 0; i < count; i++) {
        all |= a[i].key;
        both &= a[i].key;
    }
    for (int d = 0; d < DIGITS; d++) {
        const int shift = d * DIGIT;
        if (((all ^ both) >> shift & (VALUES - 1)) == 0) continue; /* the same everywhere */
        int64_t ends[VALUES] = {0};
        for (int64_t i = 0; i < count; i++)
            ends[from[i].key >> shift & (VALUES - 1)]++;
        for (int64_t v = 0, at = 0; v < VALUES; v++) {
            const int64_t here = ends[v];
            ends[v] = at;
            at += here;
        }
        for (int64_t i = 0; i < count; i++)
            to[ends[from[i].key >> shift & (VALUES - 1)]++] = from[i];
        gnomon_record *const other = from;
        from = to;
        to = other;
    }
    if (from != a) memcpy(a, from, (size_t)count * sizeof *a);
}

/* Many records are divided first, by all threads: by the highest digit in which keys differ, each
 * in its order. The parts are sorted apart, in a processor's cache. */
enum { PART_BITS = 8, PARTS = 1 << PART_BITS, SLICES = 64, MANY = 1 << 15 };
typedef struct dividing {
    gnomon_record *from, *to;
    int64_t count, each; /* records of a slice */
    int shift;
    uint64_t all[SLICES], both[SLICES];
    int64_t *places; /* SLICES x PARTS: how many, then where the next one goes */
    int64_t begins[PARTS + 1];
} dividing;

static int part_of(const dividing *v, uint64_t key)
{
    return (int)(key >> v->shift & (PARTS - 1));
}

static void look_over(void *arg, int64_t slice, int worker)
{
    (void)worker;
    dividing *v = arg;
    uint64_t all = 0, both = UINT64_MAX;
    for (int64_t i = slice * v->each; i < gnomon_min((slice + 1) * v->each, v->count); i++) {
        all |= v->from[i].key;
        both &= v->from[i].key;
    }
    v->all[slice] = all;
    v->both[slice] = both;
}

static void count_slice(void *arg, int64_t slice, int worker)
{
    (void)worker;
    dividing *v = arg;
    int64_t *counts = v->places + slice * PARTS;
    memset(counts, 0, PARTS * sizeof *counts);
    for (int64_t i = slice * v->each; i < gnomon_min((slice + 1) * v->each, v->count); i++)
        counts[part_of(v, v->from[i].key)]++;
}

static void move_slice(void *arg, int64_t slice, int worker)
{
    (void)worker;
    dividing *v = arg;
    int64_t *places = v->places + slice * PARTS;
    for (int64_t i = slice * v->each; i < gnomon_min((slice + 1) * v->each, v->count); i++)
        v->to[places[part_of(v, v->from[i].key)]++] = v->from[i];
}

static void sort_part(void *arg, int64_t part, int worker)
{
    (void)worker;
    const dividing *v = arg;
    const int64_t begin = v->begins[part];
    sort_records(v->to + begin, v->from + begin, v->begins[part + 1] - begin);
}

/* The records in memory, in order. */
static gnomon_status sort_held(gnomon_sorter *s)
{
    gnomon_context *ctx = s->file.ctx;
    dividing v = {.from = s->records, .to = s->scratch, .count = s->held};
    if (s->held < MANY) {
        sort_records(s->records, s->scratch, s->held);
        return GNOMON_OK;
    }
    GNOMON_TRY(gnomon_alloc(ctx, SLICES * PARTS, sizeof *v.places, "records", &v.places));
    v.each = gnomon_ceil_div(s->held, SLICES);
    gnomon_parallel(ctx, SLICES, look_over, &v);
    uint64_t differ = 0;
    for (int slice = 0; slice < SLICES; slice++)
        differ |= (v.all[slice] | v.all[0]) & ~(v.both[slice] & v.both[0]);
    const int bits = differ == 0 ? 0 : 64 - __builtin_clzll(differ);
    v.shift = bits > PART_BITS ? bits - PART_BITS : 0;
    gnomon_parallel(ctx, SLICES, count_slice, &v);
    int64_t at = 0;
    for (int part = 0; part < PARTS; part++) {
        v.begins[part] = at;
        for (int slice = 0; slice < SLICES; slice++) {
            const int64_t here = v.places[slice * PARTS + part];
            v.places[slice * PARTS + part] = at;
            at += here;
        }
    }
    v.begins[PARTS] = at;
    gnomon_parallel(ctx, SLICES, move_slice, &v);
    gnomon_parallel(ctx, PARTS, sort_part, &v);
    gnomon_free(ctx, v.places);
    s->scratch = s->records;
    s->records = v.to;
    return GNOMON_OK;
}

void gnomon_sorter_start(gnomon_sorter *s, gnomon_context *ctx, const char *folder, int64_t bytes)
{
    enum { WRITES = 1 << 18, LEAST = 1 << 8 };
    *s = (gnomon_sorter){.most = gnomon_max(LEAST, bytes / 2 / (int64_t)sizeof *s->records)};
    gnomon_store_start(&s->file, ctx, folder, WRITES);
}

static gnomon_status enlarge(gnomon_sorter *s, int64_t least)
{
    const int64_t room = gnomon_min(s->most, gnomon_max(least, 2 * s->room));
    gnomon_free(s->file.ctx, s->scratch);
    s->scratch = NULL;
    GNOMON_TRY(gnomon_grow(s->file.ctx, &s->records, s->held, room, sizeof *s->records, "records"));
    GNOMON_TRY(gnomon_alloc(s->file.ctx, room, sizeof *s->scratch, "records", &s->scratch));
    s->room = room;
    return GNOMON_OK;
}

gnomon_status gnomon_sorter_expect(gnomon_sorter *s, int64_t count)
{
    return s->room < s->most && s->room - s->held < count ? enlarge(s, s->held + count) : GNOMON_OK;
}

gnomon_status gnomon_sorter_claim(gnomon_sorter *s, int64_t count, gnomon_record **records)
{
    *records = NULL;
    if (count == 0 || count > s->most - s->held) return GNOMON_OK;
    GNOMON_TRY(gnomon_sorter_expect(s, count));
    *records = s->records + s->held;
    s->held += count;
    s->count += count;
    return GNOMON_OK;
}

gnomon_status gnomon_sorter_add(gnomon_sorter *s, uint64_t key, uint64_t value)
{
    enum { FIRST = 256 };
    if (s->held == s->room)
        GNOMON_TRY(s->room < s->most ? enlarge(s, FIRST) : gnomon_sorter_flush(s));
    s->records[s->held++] = (gnomon_record){key, value};
    s->count++;
    return GNOMON_OK;
}

gnomon_status gnomon_sorter_note_run(gnomon_sorter *s, int64_t end)
{
    if (s->runs == s->run_room) {
        const int64_t room = 2 * s->run_room + 16;
        GNOMON_TRY(gnomon_grow(s->file.ctx, &s->ends, s->run_room, room, sizeof *s->ends, "runs"));
        s->run_room = room;
    }
    s->count += (end - (s->runs > 0 ? s->ends[s->runs - 1] : 0)) / (int64_t)sizeof *s->records;
    s->ends[s->runs++] = end;
    return GNOMON_OK;
}

gnomon_status gnomon_sorter_flush(gnomon_sorter *s)
{
    if (s->held == 0) return GNOMON_OK;
    GNOMON_TRY(sort_held(s));
    GNOMON_TRY(gnomon_store_append(&s->file, s->records, s->held * (int64_t)sizeof *s->records));
    s->count -= s->held;
    s->held = 0;
    return gnomon_sorter_note_run(s, s->file.size);
}

gnomon_status gnomon_sorter_finish(gnomon_sorter *s)
{
    gnomon_context *ctx = s->file.ctx;
    s->at = 0;
    if (s->runs == 0) {
        GNOMON_TRY(sort_held(s));
        gnomon_free(ctx, s->scratch);
        s->scratch = NULL;
        return GNOMON_OK;
    }
    GNOMON_TRY(gnomon_sorter_flush(s));
    /* few runs of few records: the store has them in memory */
    if (s->file.fd >= 0) GNOMON_TRY(gnomon_store_seal(&s->file));
    gnomon_free(ctx, s->records);
    gnomon_free(ctx, s->scratch);
    s->records = s->scratch = NULL;
    int64_t *begins = NULL;
    GNOMON_TRY(gnomon_alloc(ctx, s->runs, sizeof *begins, "runs", &begins));
    for (int64_t r = 0; r < s->runs; r++)
        begins[r] = r > 0 ? s->ends[r - 1] : 0;
    const gnomon_status status = gnomon_merge_open(&s->merge, &s->file, 2, begins, s->ends, s->runs,
                                                   s->most * 2 * (int64_t)sizeof *s->records);
    gnomon_free(ctx, begins);
    return status;
}

gnomon_status gnomon_sorter_next(gnomon_sorter *s, const gnomon_record **record)
{
    if (s->runs > 0) {
        const uint64_t *two;
        GNOMON_TRY(gnomon_merge_next(&s->merge, &two));
        *record = (const gnomon_record *)(const void *)two;
        return GNOMON_OK;
    }
    *record = s->at < s->held ? &s->records[s->at++] : NULL;
    return GNOMON_OK;
}

void gnomon_sorter_end(gnomon_sorter *s)
{
    if (s->file.ctx == NULL) return;
    gnomon_context *ctx = s->file.ctx;
    gnomon_merge_close(&s->merge);
    gnomon_free(ctx, s->records);
    gnomon_free(ctx, s->scratch);
    gnomon_free(ctx, s->ends);
    gnomon_store_free(&s->file);
    *s = (gnomon_sorter){.file = {.fd = -1}};
}

/* What sjlt and its relatives share: a band of rows gets one nonzero of a column, placed by a keyed
 * permutation of the chunk's slots, so that it can be walked from either side. */
#include "operator/kinds/kinds.h"
#include "operator/philox.h"

#include <stdlib.h>

/* Slots of one row in one chunk that the walk from the row's side sorts at most. */
enum { SLOTS_MAX = 1024 };

void gnomon_sjlt_keys(const gnomon_simple *a, int64_t chunk, int64_t band, uint32_t key[6])
{
    const gnomon_words first =
        gnomon_call_general(a, a->key_tag, (uint32_t)band, (uint64_t)chunk, 0);
    const gnomon_words second =
        gnomon_call_general(a, a->key_tag, (uint32_t)band, (uint64_t)chunk, 1);
    for (int i = 0; i < 4; i++)
        key[i] = first.w[i];
    key[4] = second.w[0];
    key[5] = second.w[1];
}

static int64_t row_of(const gnomon_simple *a, int64_t within, int64_t first_row, int64_t band_rows,
                      const uint32_t key[6])
{
    const uint64_t slot = gnomon_perm((uint64_t)within, a->chunk_log2, key);
    return first_row + (int64_t)(slot * (uint64_t)band_rows >> a->chunk_log2);
}

int64_t gnomon_sjlt_row(const gnomon_simple *a, int64_t col, int64_t band)
{
    uint32_t key[6];
    gnomon_sjlt_keys(a, col / a->chunk, band, key);
    const int64_t first_row = gnomon_sjlt_band_first(a, band);
    return row_of(a, col % a->chunk, first_row, gnomon_sjlt_band_first(a, band + 1) - first_row,
                  key);
}

/* The part of one band and one chunk that an enumeration wants. */
typedef struct part {
    const gnomon_simple *a;
    int64_t band, band_first, band_rows;
    int64_t row, row_end; /* wanted rows, within the band */
    int64_t origin;       /* the chunk's first column */
    int64_t begin, end;   /* wanted columns, counted from origin */
    uint32_t key[6];
    gnomon_entry_fn fn;
    void *arg;
} part;

typedef struct sign_cache {
    int64_t q;
    uint32_t word;
} sign_cache;

static bool is_negative(const part *p, int64_t col, sign_cache *cache)
{
    if (cache->q != col >> 5) {
        cache->q = col >> 5;
        cache->word = gnomon_sign_word(p->a, p->a->sign_tag, p->band, cache->q);
    }
    return (cache->word >> (col & 31) & 1) != 0;
}

static void from_columns(const part *p)
{
    sign_cache cache = {-1, 0};
    for (int64_t y = p->begin; y < p->end; y++) {
        const int64_t row = row_of(p->a, y, p->band_first, p->band_rows, p->key);
        if (row < p->row || row >= p->row_end) continue;
        p->fn(p->arg, row, p->origin + y, is_negative(p, p->origin + y, &cache));
    }
}

static int64_t first_slot(const part *p, int64_t row)
{
    const int64_t r = row - p->band_first;
    return (r * ((int64_t)1 << p->a->chunk_log2) + p->band_rows - 1) / p->band_rows;
}

static int ascending(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a;
    const uint32_t y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void from_rows(const part *p)
{
    uint32_t found[SLOTS_MAX];
    for (int64_t row = p->row; row < p->row_end; row++) {
        const int64_t last = first_slot(p, row + 1);
        size_t count = 0;
        for (int64_t slot = first_slot(p, row); slot < last; slot++) {
            const int64_t y =
                (int64_t)gnomon_perm_inverse((uint64_t)slot, p->a->chunk_log2, p->key);
            if (y >= p->begin && y < p->end) found[count++] = (uint32_t)y;
        }
        qsort(found, count, sizeof found[0], ascending);
        sign_cache cache = {-1, 0};
        for (size_t i = 0; i < count; i++) {
            const int64_t col = p->origin + found[i];
            p->fn(p->arg, row, col, is_negative(p, col, &cache));
        }
    }
}

static void each_in_chunk(part *p)
{
    gnomon_sjlt_keys(p->a, p->origin / p->a->chunk, p->band, p->key);
    /* An inverse costs a sort beside it: the rows' side pays when it has far fewer slots. */
    const int64_t row_slots = ((int64_t)1 << p->a->chunk_log2) / p->band_rows + 1;
    const int64_t slots = row_slots * (p->row_end - p->row);
    if (row_slots <= SLOTS_MAX && slots < (p->end - p->begin) / 4)
        from_rows(p);
    else
        from_columns(p);
}

void gnomon_bands_each(const gnomon_simple *a, gnomon_wired_fn wired, int64_t row, int64_t rows,
                       int64_t col, int64_t cols, gnomon_entry_fn fn, void *arg)
{
    const int64_t row_end = row + rows;
    const int64_t col_end = col + cols;
    if (rows == 0 || cols == 0) return;
    /* the band of a row: the largest b with floor(b k / s) <= row */
    int64_t band = (int64_t)((((unsigned __int128)row + 1) * (unsigned __int128)a->bands - 1) /
                             (unsigned __int128)a->rows);
    for (; band < a->bands && gnomon_sjlt_band_first(a, band) < row_end; band++) {
        part p = {.a = a, .band = band, .fn = fn, .arg = arg};
        p.band_first = gnomon_sjlt_band_first(a, band);
        const int64_t band_end = gnomon_sjlt_band_first(a, band + 1);
        p.band_rows = band_end - p.band_first;
        p.row = p.band_first > row ? p.band_first : row;
        p.row_end = band_end < row_end ? band_end : row_end;
        for (int64_t at = col; at < col_end; at = p.origin + p.end) {
            p.origin = at / a->chunk * a->chunk;
            p.begin = at - p.origin;
            p.end = col_end - p.origin < a->chunk ? col_end - p.origin : a->chunk;
            if (wired == NULL || wired(a, p.origin / a->chunk, band)) each_in_chunk(&p);
        }
    }
}

#include "search/inverted.h"

#include "base/arithmetic.h"
#include "base/context.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "search/jaccard.h"

#include <math.h>
#include <string.h>

enum {
    ROWS = 1024, /* of a task, or lists */
};

/* Multiplies by 2^by, quicker than ldexp where 2^by is a normal number. */
typedef struct power {
    int by;
    double factor; /* 0: ldexp does it */
} power;

static power power_of(int by)
{
    return (power){by, by >= -1022 && by <= 1023 ? ldexp(1, by) : 0};
}

static double times_power(double x, power p)
{
    return p.factor > 0 ? x * p.factor : ldexp(x, p.by);
}

double gnomon_sparse_norm(const gnomon_sparse_row *row, bool l1)
{
    double most = 0, sum = 0;
    int exponent = 0;
    for (int64_t e = 0; e < row->count; e++)
        most = fmax(most, fabs(row->values[e]));
    most *= row->factor;
    if (most == 0) return 0;
    frexp(most, &exponent);
    const power scale = power_of(-exponent);
    for (int64_t e = 0; e < row->count; e++) {
        const double x = times_power(row->values[e] * row->factor, scale);
        sum += l1 ? fabs(x) : x * x;
    }
    return ldexp(l1 ? sum : sqrt(sum), exponent);
}

int64_t gnomon_inverted_padded(int64_t rows)
{
    return rows + 2 * GNOMON_LANES;
}

/* x rounded up. */
static float not_less(double x)
{
    return nextafterf((float)(x * (1 + 0x1p-40)), INFINITY);
}

/* ---- what rows have ---- */

typedef struct measuring {
    gnomon_inverted *x;
    double *norms;
    bool l1;
} measuring;

static void measure_rows(void *arg, int64_t task, int worker)
{
    (void)worker;
    const measuring *m = arg;
    const int64_t end = gnomon_min((task + 1) * ROWS, m->x->rows.count);
    for (int64_t i = task * ROWS; i < end; i++) {
        const gnomon_sparse_row row = gnomon_sparse_row_at(&m->x->rows, i);
        m->norms[i] = gnomon_sparse_norm(&row, m->l1);
    }
}

static gnomon_status measure(gnomon_context *ctx, gnomon_inverted *x)
{
    const int64_t count = x->rows.count, padded = gnomon_inverted_padded(count);
    measuring m = {.x = x, .l1 = x->metric == GNOMON_L1};
    double most = 0;
    GNOMON_TRY(gnomon_alloc_zero(ctx, padded, sizeof *x->norm, "norms", &x->norm));
    if (x->metric == GNOMON_L2 || m.l1)
        GNOMON_TRY(gnomon_alloc_zero(ctx, padded, sizeof *x->bias, "norms", &x->bias));
    GNOMON_TRY(gnomon_alloc(ctx, count, sizeof *m.norms, "norms", &m.norms));
    gnomon_parallel(ctx, gnomon_ceil_div(count, ROWS), measure_rows, &m);
    for (int64_t i = 0; i < count; i++)
        most = fmax(most, m.norms[i]);
    if (most > 0 && x->metric != GNOMON_COSINE) frexp(most, &x->exponent);
    for (int64_t i = 0; i < count; i++) {
        const double norm = ldexp(m.norms[i], -x->exponent);
        x->norm[i] = not_less(norm);
        if (x->bias != NULL) x->bias[i] = (float)(m.l1 ? -norm : -norm * norm / 2);
    }
    gnomon_free(ctx, m.norms);
    return GNOMON_OK;
}

/* ---- lists and the block ---- */

/* Columns are numbered rarest first, so that the heavy ones are the last. */
static gnomon_status count_columns(gnomon_context *ctx, gnomon_inverted *x, int64_t cols)
{
    const int64_t members = x->rows.offsets[x->rows.count];
    GNOMON_TRY(gnomon_numbering_open(ctx, cols, members, &x->columns));
    GNOMON_TRY(gnomon_numbering_count(ctx, &x->columns, &x->rows));
    GNOMON_TRY(gnomon_numbering_close(ctx, &x->columns));
    const int64_t columns = x->columns.used;
    GNOMON_TRY(gnomon_alloc_zero(ctx, columns + 2, sizeof *x->lists, "lists", &x->lists));
    /* a column's rows are fewer than 2^32, so that its count is exact */
    for (int64_t at = 0; at < x->columns.places; at++)
        if (x->columns.counts[at] > 0) x->lists[x->columns.numbers[at] + 2] = x->columns.counts[at];
    x->heavy_from = columns;
    while (x->metric != GNOMON_L1 && x->heavy_from > 0 &&
           columns - x->heavy_from < GNOMON_HEAVY_MOST &&
           x->lists[x->heavy_from + 1] > x->rows.count / GNOMON_HEAVY_SHARE)
        x->heavy_from--;
    x->width = gnomon_round_up(columns - x->heavy_from, GNOMON_LANES);
    for (int64_t c = 0; c < x->heavy_from; c++)
        x->lists[c + 2] += x->lists[c + 1];
    return GNOMON_OK;
}

void gnomon_inverted_fill_block(const gnomon_inverted *x, int64_t first, int64_t count,
                                float *block, float *heavy)
{
    const power scale = power_of(-x->exponent);
    memset(block, 0, (size_t)(count * x->width) * sizeof *block);
    for (int64_t i = 0; i < count; i++) {
        const gnomon_sparse_row row = gnomon_sparse_row_at(&x->rows, first + i);
        double squares = 0;
        for (int64_t e = 0; e < row.count; e++) {
            const int64_t c = gnomon_numbering_find(&x->columns, row.cols[e]);
            if (c < x->heavy_from) continue;
            const double v = times_power(row.values[e] * row.factor, scale);
            block[i * x->width + c - x->heavy_from] = (float)v;
            squares += v * v;
        }
        heavy[i] = not_less(sqrt(squares) + 0x1p-500);
    }
}

void gnomon_inverted_take_most(const gnomon_inverted *x, const float *block, int64_t count,
                               int64_t from, int64_t to, float *most)
{
    for (int64_t i = 0; i < count; i++)
        for (int64_t c = from; c < to; c++) {
            const float size = fabsf(block[i * x->width + c]);
            if (size > most[c]) most[c] = size;
        }
}

void gnomon_inverted_set_steps(const gnomon_inverted *x, const float *most, float *steps)
{
    for (int64_t c = 0; c < x->columns.used - x->heavy_from; c++)
        steps[c] = fmaxf(most[c] / 127, 0x1p-100F);
}

void gnomon_inverted_fill_codes(const gnomon_inverted *x, const float *steps, const float *block,
                                int64_t first, int64_t count, int64_t from, int64_t to,
                                int8_t *codes)
{
    const int64_t padded = gnomon_inverted_padded(x->rows.count);
    for (int64_t i = 0; i < count; i++)
        for (int64_t c = from; c < to; c++) {
            const float code = rintf(block[i * x->width + c] / steps[c]);
            codes[(c - from) * padded + first + i] = (int8_t)fminf(fmaxf(code, -127), 127);
        }
}

void gnomon_inverted_fill_lists(gnomon_inverted *x, int64_t from, int64_t to, uint32_t *ids,
                                float *values)
{
    const power scale = power_of(-x->exponent);
    const int64_t start = x->lists[from + 1];
    for (int64_t i = 0; i < x->rows.count; i++) {
        const gnomon_sparse_row row = gnomon_sparse_row_at(&x->rows, i);
        for (int64_t e = 0; e < row.count; e++) {
            const int64_t c = gnomon_numbering_find(&x->columns, row.cols[e]);
            if (c < from || c >= to) continue;
            /* the next list's start is where this one is filled */
            const int64_t at = x->lists[c + 1]++ - start;
            ids[at] = (uint32_t)i;
            values[at] = (float)times_power(row.values[e] * row.factor, scale);
        }
    }
}

/* Rows of the block, or columns of it, by tasks. */
typedef struct filling {
    gnomon_inverted *x;
    float *most;
    power scale;
    int64_t parts;   /* of the rows */
    int64_t *places; /* parts x lists: entries of the part's rows, and then where they begin */
} filling;

static void fill_block_rows(void *arg, int64_t task, int worker)
{
    (void)worker;
    const filling *f = arg;
    gnomon_inverted *x = f->x;
    const int64_t first = task * ROWS, count = gnomon_min(ROWS, x->rows.count - first);
    gnomon_inverted_fill_block(x, first, count, x->block + first * x->width, x->heavy + first);
}

/* LANES columns: of all rows. */
static void take_most_of(void *arg, int64_t task, int worker)
{
    (void)worker;
    const filling *f = arg;
    const gnomon_inverted *x = f->x;
    const int64_t from = task * GNOMON_LANES;
    gnomon_inverted_take_most(x, x->block, x->rows.count, from, from + GNOMON_LANES, f->most);
}

static void fill_codes_of(void *arg, int64_t task, int worker)
{
    (void)worker;
    const filling *f = arg;
    const gnomon_inverted *x = f->x;
    const int64_t first = task * ROWS, count = gnomon_min(ROWS, x->rows.count - first);
    gnomon_inverted_fill_codes(x, x->steps, x->block + first * x->width, first, count, 0,
                               x->columns.used - x->heavy_from, x->codes);
}

static gnomon_status fill_codes(gnomon_context *ctx, gnomon_inverted *x)
{
    const int64_t columns = x->columns.used - x->heavy_from, n = x->rows.count;
    float *most;
    GNOMON_TRY(gnomon_alloc(ctx, columns, sizeof *x->steps, "heavy columns", &x->steps));
    GNOMON_TRY(gnomon_alloc_zero(ctx, gnomon_times(columns, gnomon_inverted_padded(n)),
                                 sizeof *x->codes, "heavy columns", &x->codes));
    GNOMON_TRY(gnomon_alloc_zero(ctx, x->width, sizeof *most, "heavy columns", &most));
    filling f = {.x = x, .most = most};
    gnomon_parallel(ctx, x->width / GNOMON_LANES, take_most_of, &f);
    gnomon_inverted_set_steps(x, most, x->steps);
    gnomon_free(ctx, most);
    gnomon_parallel(ctx, gnomon_ceil_div(n, ROWS), fill_codes_of, &f);
    return GNOMON_OK;
}

/* The part's entries of each list, counted or brought to their places. */
static void go_through(const filling *f, int64_t part, bool placing)
{
    gnomon_inverted *x = f->x;
    int64_t *places = f->places + part * x->heavy_from;
    const int64_t rows = x->rows.count, end = rows * (part + 1) / f->parts;
    for (int64_t i = rows * part / f->parts; i < end; i++) {
        const gnomon_sparse_row row = gnomon_sparse_row_at(&x->rows, i);
        for (int64_t e = 0; e < row.count; e++) {
            const int64_t c = gnomon_numbering_find(&x->columns, row.cols[e]);
            if (c >= x->heavy_from) continue;
            const int64_t at = places[c]++;
            if (!placing) continue;
            x->ids[at] = (uint32_t)i;
            x->values[at] = (float)times_power(row.values[e] * row.factor, f->scale);
        }
    }
}

static void count_part(void *arg, int64_t part, int worker)
{
    (void)worker;
    go_through(arg, part, false);
}

static void put_part(void *arg, int64_t part, int worker)
{
    (void)worker;
    go_through(arg, part, true);
}

/* Some lists: where each part's entries begin, and the list's end in the place of its start. */
static void place_lists(void *arg, int64_t task, int worker)
{
    (void)worker;
    const filling *f = arg;
    const int64_t count = f->x->heavy_from, end = gnomon_min((task + 1) * ROWS, count);
    for (int64_t c = task * ROWS; c < end; c++) {
        int64_t at = f->x->lists[c + 1];
        for (int64_t part = 0; part < f->parts; part++) {
            int64_t *place = &f->places[part * count + c];
            const int64_t entries = *place;
            *place = at;
            at += entries;
        }
        f->x->lists[c + 1] = at;
    }
}

/* All lists, as gnomon_inverted_fill_lists fills them: each thread takes some of the rows, whose
 * places in every list are counted first. */
static gnomon_status fill_lists(gnomon_context *ctx, gnomon_inverted *x)
{
    const int64_t members = x->rows.offsets[x->rows.count];
    filling f = {.x = x, .scale = power_of(-x->exponent)};
    /* the places take no more than a third of what the lists do */
    f.parts = gnomon_min(gnomon_context_threads(ctx), members / 3 / x->heavy_from);
    f.parts = gnomon_min(f.parts, x->rows.count);
    if (f.parts < 2) {
        gnomon_inverted_fill_lists(x, 0, x->heavy_from, x->ids, x->values);
        return GNOMON_OK;
    }
    GNOMON_TRY(gnomon_alloc_zero(ctx, gnomon_times(f.parts, x->heavy_from), sizeof *f.places,
                                 "lists' places", &f.places));
    gnomon_parallel(ctx, f.parts, count_part, &f);
    gnomon_parallel(ctx, gnomon_ceil_div(x->heavy_from, ROWS), place_lists, &f);
    gnomon_parallel(ctx, f.parts, put_part, &f);
    gnomon_free(ctx, f.places);
    return GNOMON_OK;
}

static gnomon_status fill(gnomon_context *ctx, gnomon_inverted *x)
{
    const int64_t count = x->rows.count, listed = x->lists[x->heavy_from + 1];
    GNOMON_TRY(gnomon_alloc(ctx, listed, sizeof *x->ids, "lists", &x->ids));
    GNOMON_TRY(gnomon_alloc(ctx, listed, sizeof *x->values, "lists", &x->values));
    if (x->width > 0) {
        GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(count, x->width), sizeof *x->block,
                                "heavy columns", &x->block));
        GNOMON_TRY(gnomon_alloc_zero(ctx, gnomon_inverted_padded(count), sizeof *x->heavy, "norms",
                                     &x->heavy));
        filling f = {.x = x};
        gnomon_parallel(ctx, gnomon_ceil_div(count, ROWS), fill_block_rows, &f);
        GNOMON_TRY(fill_codes(ctx, x));
    }
    return x->heavy_from > 0 ? fill_lists(ctx, x) : GNOMON_OK;
}

int64_t gnomon_inverted_rows(const gnomon_csr *rows, int64_t from, int64_t bytes)
{
    /* of a row its norms and its part of the block; of a column its number and its list's place, by
     * the column itself or, where columns are many, by hashing */
    enum { NONZERO = 24, ROW = 224, COLUMN = 16, HASHED = 72, MOST = 1 << 30 };
    const int64_t left = gnomon_min(rows->rows - from, MOST);
    const int64_t columns = gnomon_min(rows->cols, bytes / COLUMN) * COLUMN;
    int64_t count = gnomon_min(left, 1);
    for (; count < left; count++) {
        const int64_t nonzeros = rows->offsets[from + count + 1] - rows->offsets[from];
        if (nonzeros > bytes / NONZERO ||
            NONZERO * nonzeros + gnomon_min(columns, HASHED * nonzeros) + ROW * (count + 1) > bytes)
            break;
    }
    return count;
}

/* Whether scores and their bounds here and in sparse.c are those of the metric. */
static bool is_known(gnomon_metric metric)
{
    return metric == GNOMON_L2 || metric == GNOMON_COSINE || metric == GNOMON_IP ||
           metric == GNOMON_L1;
}

gnomon_status gnomon_inverted_begin(gnomon_context *ctx, gnomon_metric metric, gnomon_sets *rows,
                                    bool lent, int64_t cols, gnomon_inverted *index)
{
    *index = (gnomon_inverted){.metric = metric, .rows = *rows, .lent = lent, .cols = cols};
    *rows = (gnomon_sets){0};
    for (int64_t i = 0; i < index->rows.count; i++)
        index->longest =
            gnomon_max(index->longest, index->rows.offsets[i + 1] - index->rows.offsets[i]);
    gnomon_status status = GNOMON_OK;
    if (!is_known(metric))
        status = gnomon_fail(ctx, GNOMON_ERROR_INTERNAL, "sparse rows have no bound for %s",
                             gnomon_metric_name(metric));
    if (status == GNOMON_OK) status = measure(ctx, index);
    if (status == GNOMON_OK) status = count_columns(ctx, index, cols);
    if (status != GNOMON_OK) gnomon_inverted_close(ctx, index);
    return status;
}

gnomon_status gnomon_inverted_open(gnomon_context *ctx, gnomon_metric metric, gnomon_sets *rows,
                                   int64_t cols, gnomon_inverted *index)
{
    GNOMON_TRY(gnomon_inverted_begin(ctx, metric, rows, false, cols, index));
    const gnomon_status status = fill(ctx, index);
    if (status != GNOMON_OK) gnomon_inverted_close(ctx, index);
    return status;
}

void gnomon_inverted_close(gnomon_context *ctx, gnomon_inverted *x)
{
    if (x->sound != NULL) {
        gnomon_free(ctx, x->sound);
    } else {
        if (!x->lent) gnomon_sets_free(ctx, &x->rows);
        gnomon_numbering_free(ctx, &x->columns);
        gnomon_free(ctx, x->lists);
        gnomon_free(ctx, x->ids);
        gnomon_free(ctx, x->values);
        gnomon_free(ctx, x->block);
        gnomon_free(ctx, x->codes);
        gnomon_free(ctx, x->steps);
        gnomon_free(ctx, x->norm);
        gnomon_free(ctx, x->heavy);
        gnomon_free(ctx, x->bias);
    }
    *x = (gnomon_inverted){0};
}

int64_t gnomon_inverted_lists_at_once(const gnomon_inverted *x, int64_t from, int64_t bytes)
{
    const int64_t entry = sizeof *x->ids + sizeof *x->values;
    int64_t to = from + 1;
    while (to < x->heavy_from && (x->lists[to + 2] - x->lists[from + 1]) <= bytes / entry)
        to++;
    return to - from;
}

/* ---- what a file may hold ---- */

bool gnomon_inverted_list_sound(const gnomon_inverted *x, int64_t list)
{
    if (x->sound == NULL) return true;
    const unsigned char bit = (unsigned char)(1u << (list % 8));
    atomic_uchar *cell = &x->sound[list / 8];
    if ((atomic_load_explicit(cell, memory_order_relaxed) & bit) != 0) return true;
    const uint32_t *ids = x->ids + x->lists[list];
    const int64_t count = x->lists[list + 1] - x->lists[list];
    bool sound = count == 0 || (int64_t)ids[count - 1] < x->rows.count;
    for (int64_t i = 1; i < count; i++)
        sound &= ids[i - 1] < ids[i];
    if (sound) atomic_fetch_or_explicit(cell, bit, memory_order_relaxed);
    return sound;
}

bool gnomon_inverted_row_sound(const gnomon_inverted *x, int64_t row)
{
    if (x->sound == NULL) return true;
    const int64_t begin = x->rows.offsets[row], end = x->rows.offsets[row + 1];
    if (begin < 0 || begin > end || end > x->rows.offsets[x->rows.count] ||
        end - begin > x->longest)
        return false;
    for (int64_t e = begin; e < end; e++)
        if (x->rows.members[e] < 0 || x->rows.members[e] >= x->cols ||
            (e > begin && x->rows.members[e] <= x->rows.members[e - 1]))
            return false;
    return true;
}

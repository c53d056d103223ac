#include "join/order/places.h"

#include "base/arithmetic.h"
#include "base/context.h"
#include "base/memory.h"
#include "base/threads.h"

enum { ROWS = 1024 }; /* of a task */

gnomon_status gnomon_row_places_open(gnomon_context *ctx, int64_t rows, int64_t count,
                                     gnomon_row_places *p)
{
    /* a place for every third pair at most, or for each row */
    const int64_t pay = rows > 0 ? count / 3 / rows : 1;
    *p = (gnomon_row_places){.rows = rows, .count = count};
    p->parts = gnomon_max(gnomon_min(gnomon_context_threads(ctx), pay), 1);
    return gnomon_alloc_zero(ctx, gnomon_times(p->parts, rows), sizeof *p->places, "places",
                             &p->places);
}

void gnomon_row_places_free(gnomon_context *ctx, gnomon_row_places *p)
{
    gnomon_free(ctx, p->places);
    p->places = NULL;
}

int64_t gnomon_row_places_begin(const gnomon_row_places *p, int64_t part)
{
    return gnomon_part_begin(p->count, part, p->parts);
}

typedef struct setting {
    const gnomon_row_places *p;
    int64_t *starts;
} setting;

/* Pairs of earlier parts in the place of a part's, and those of all parts in starts[row + 1]. */
static void add_parts(void *arg, int64_t task, int worker)
{
    (void)worker;
    const setting *s = arg;
    const int64_t end = gnomon_min((task + 1) * ROWS, s->p->rows);
    for (int64_t row = task * ROWS; row < end; row++) {
        int64_t before = 0;
        for (int64_t part = 0; part < s->p->parts; part++) {
            int64_t *place = gnomon_row_places_of(s->p, part) + row;
            const int64_t own = *place;
            *place = before;
            before += own;
        }
        s->starts[row + 1] = before;
    }
}

void gnomon_row_places_set(gnomon_context *ctx, gnomon_row_places *p, int64_t *starts)
{
    setting s = {p, starts};
    gnomon_parallel(ctx, gnomon_ceil_div(p->rows, ROWS), add_parts, &s);
    starts[0] = 0;
    for (int64_t row = 0; row < p->rows; row++)
        starts[row + 1] += starts[row];
}

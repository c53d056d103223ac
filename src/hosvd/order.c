#include "hosvd/work.h"

/* A mode of size I with s columns costs a pass in proportion to s and leaves s / I of the tensor
 * for the next. Of two neighbours the first is better first when 1 / s - 1 / I is larger, so
 * sorting by that gives the cheapest order of all. */
static double gain(const gnomon_hosvd_work *w, int mode)
{
    const int64_t s = w->columns[mode];
    return s == 0 ? 0 : 1 / (double)s - 1 / (double)w->size[mode];
}

void gnomon_hosvd_order(gnomon_hosvd_work *w)
{
    for (int n = 0; n < w->modes; n++) {
        int at = n;
        for (; at > 0 && gain(w, n) > gain(w, w->order[at - 1]); at--)
            w->order[at] = w->order[at - 1];
        w->order[at] = n;
    }
    for (int i = 0; i < w->modes; i++)
        w->out->order[i] = w->name[w->order[i]];
}

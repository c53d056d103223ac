#include "hosvd/work.h"

/* What a mode costs, in numbers of the tensor that there is when its turn comes, and which share of
 * it is left then. Of two neighbours the one with the larger (1 - share) / cost is better first, so
 * sorting by that gives the cheapest order of all.
 *
 * A mode that is projected is gone through by its columns for the projection, for each power
 * iteration twice, and for the product; one that is not projected, for its Gram matrix and the
 * product. When all modes are projected of x, only the products are left to be put in order. The
 * outermost mode can't be cut unprojected slab by slab, so then it comes last. */
static double gain(const gnomon_hosvd_work *w, int mode)
{
    const double size = (double)w->size[mode], columns = (double)w->columns[mode];
    const double rank = w->options.tolerance > 0 ? size / 4 : (double)w->rank[mode];
    const bool one_by_one = w->options.sequential || w->options.tolerance > 0;
    if (w->columns[mode] == 0) return mode == 0 ? 0 : (1 - rank / size) / (size + rank);
    if (!one_by_one) return (1 - columns / size) / columns;
    return (1 - rank / size) / (columns * (2 + 2 * (double)w->options.power));
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

void gnomon_hosvd_order_at_ends(gnomon_hosvd_work *w)
{
    const int last = w->modes - 1;
    const bool begin = gain(w, 0) >= gain(w, last);
    for (int i = 0; i < w->modes; i++) {
        w->order[i] = begin ? i : i == 0 ? last : i - 1;
        w->out->order[i] = w->name[w->order[i]];
    }
}

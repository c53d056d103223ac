/* Distances of bits and of sets, which are counted. */
#include "search/search.h"

#include <string.h>

double gnomon_bits_apart(const gnomon_matrix *a, int64_t i, const gnomon_matrix *b, int64_t j)
{
    const uint8_t *x = gnomon_row_at(a, i), *y = gnomon_row_at(b, j);
    int64_t bits = 0, c = 0;
    if (a->col_stride == 1 && b->col_stride == 1) {
        for (; c + 8 <= a->cols; c += 8) {
            uint64_t u, v;
            memcpy(&u, x + c, sizeof u);
            memcpy(&v, y + c, sizeof v);
            bits += __builtin_popcountll(u ^ v);
        }
    }
    for (; c < a->cols; c++)
        bits += __builtin_popcount((unsigned)(x[c * a->col_stride] ^ y[c * b->col_stride]));
    return (double)bits;
}

double gnomon_sets_apart(const gnomon_sets *a, int64_t i, const gnomon_sets *b, int64_t j)
{
    int64_t x = a->offsets[i], y = b->offsets[j], shared = 0;
    const int64_t x_end = a->offsets[i + 1], y_end = b->offsets[j + 1];
    const int64_t size = x_end - x + y_end - y;
    while (x < x_end && y < y_end) {
        const int64_t u = a->members[x], v = b->members[y];
        shared += u == v;
        x += u <= v;
        y += v <= u;
    }
    return gnomon_jaccard(size, shared);
}

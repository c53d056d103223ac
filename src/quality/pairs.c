#include "quality/pairs.h"

#include "operator/operator.h"

#include <Random123/philox.h>
#include <math.h>

gnomon_pairs gnomon_pairs_choose(int64_t n, int64_t max_pairs, uint64_t seed)
{
    gnomon_pairs pairs = {n, 0, true, seed};
    if (n < 2) return pairs;
    const unsigned __int128 all = (unsigned __int128)n * (unsigned __int128)(n - 1) / 2;
    pairs.all = all <= (unsigned __int128)max_pairs;
    pairs.count = pairs.all ? (int64_t)all : max_pairs;
    return pairs;
}

/* Pairs in order: (0,1) ... (0,n-1), (1,2) ...; row i begins at place i n - i (i + 1) / 2. */
static int64_t row_begin(int64_t n, int64_t i)
{
    return (int64_t)((__int128)i * n - (__int128)i * (i + 1) / 2);
}

static void ordered_pair(int64_t n, int64_t t, int64_t *i, int64_t *j)
{
    const double b = 2.0 * (double)n - 1;
    int64_t row = (int64_t)((b - sqrt(fmax(0, b * b - 8.0 * (double)t))) / 2);
    if (row < 0) row = 0;
    if (row > n - 2) row = n - 2;
    /* the square root is only near: step to the row that holds t */
    while (row_begin(n, row) > t)
        row--;
    while (row + 1 <= n - 2 && row_begin(n, row + 1) <= t)
        row++;
    *i = row;
    *j = row + 1 + (t - row_begin(n, row));
}

/* A number in [0, n) from 64 random bits: the high half of the product. */
static int64_t below(uint32_t high, uint32_t low, int64_t n)
{
    const uint64_t bits = (uint64_t)high << 32 | low;
    return (int64_t)((unsigned __int128)bits * (unsigned __int128)n >> 64);
}

void gnomon_pairs_get(const gnomon_pairs *pairs, int64_t t, int64_t *i, int64_t *j)
{
    const int64_t n = pairs->points;
    if (pairs->all) {
        ordered_pair(n, t, i, j);
        return;
    }
    const philox4x32_ctr_t counter = {
        {(uint32_t)t, (uint32_t)((uint64_t)t >> 32), 0, (uint32_t)GNOMON_TAG_SAMPLE << 24}};
    const philox4x32_key_t key = {{(uint32_t)pairs->seed, (uint32_t)(pairs->seed >> 32)}};
    const philox4x32_ctr_t w = philox4x32_R(10, counter, key);
    const int64_t a = below(w.v[0], w.v[1], n), other = below(w.v[2], w.v[3], n - 1);
    const int64_t b = other + (other >= a); /* any point but a, each as likely */
    *i = a < b ? a : b;
    *j = a < b ? b : a;
}

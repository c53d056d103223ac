/* search/filter.h: what fp32 can tell. */
#ifndef GNOMON_SEARCH_FILTER_H
#define GNOMON_SEARCH_FILTER_H

#include "base/arithmetic.h"
#include "search/state.h"

#include <math.h>

/* The error of scores at so many steps, as a share of the product of norms; most_steps 0: of 16-bit
 * coordinates, beside what their rounding takes. */
double gnomon_filter_gamma(int64_t steps, int64_t most_steps);
/* What a query is to the filter. */
typedef struct gnomon_filter_query {
    double norm, squares; /* of the centred query */
    double constant;      /* IP: what a score lacks to be the (scaled) product */
    bool whole;           /* all coordinates are integers */
} gnomon_filter_query;
/* Centres a query into out, steps numbers, and sets up its filter's errors. f64: room for 2 * cols.
 */
void gnomon_filter_prepare(const gnomon_search *search, int64_t query, int64_t steps,
                           int64_t most_steps, double *f64, float *out, gnomon_filter_query *facts,
                           gnomon_filter *filter);
/* Words of a point in coordinates of so many bits: 32 (fp32), 16 or 8. */
static inline int64_t gnomon_filter_words(const gnomon_quads *quads, int64_t steps, int bits)
{
    const int64_t group = 4 * (int64_t)quads->words;
    return bits == 32   ? steps
           : bits == 16 ? (steps + 1) / 2
                        : (steps + group - 1) / group * quads->words;
}
/* Words that queries of so many lie apart, an odd number of a cache's lines: rows a power of two
 * apart would share few places of the caches. */
static inline int64_t gnomon_filter_ld(int64_t words)
{
    return gnomon_round_up(words + 16, 32) - 16;
}
/* The largest 16-bit coordinate where sums of so many products, and two, fit in 32 bits. */
static inline int gnomon_filter_most(int64_t steps)
{
    return (int)floor(sqrt(0x1p31 / ((double)steps + 2))) - 1;
}
/* Turns a centred query of so many steps into integers of 16 or 8 bits, with what that means for
 * its filter. They are at most 'most' large; where products are summed in 16 bits as large as these
 * sums allow. */
void gnomon_filter_round(const float *centred, int64_t steps, int bits, int most,
                         const gnomon_search_kernels *kernels, const gnomon_filter_query *facts,
                         gnomon_filter *filter, uint32_t *out);
/* The least score of any point whose key is at most 'key'. With 'whole': key is that of a point
 * with integer coordinates and a smaller id, so that an equal one no longer matters. */
float gnomon_filter_least(const gnomon_search *search, const gnomon_filter_query *facts, double key,
                          bool whole);
/* A tile's share of the error. squares: of its points' norms; whole: their coordinates are. */
gnomon_blur gnomon_filter_blur(const gnomon_search *search, int64_t steps, int64_t most_steps,
                               const double *squares, int lanes, bool whole);
/* The same of a tile in coordinates less another vector V than the mean M, which no coordinates
 * are integers in; length: |V - M|. */
gnomon_blur gnomon_filter_blur_of_list(const gnomon_search *search, int64_t steps,
                                       int64_t most_steps, const double *squares, int lanes,
                                       double length);
/* What is to be added to a query's scores in such coordinates: at least 'low', at most 'high'. */
typedef struct gnomon_filter_shift {
    float low, high;
} gnomon_filter_shift;
/* That of a query whose distance from V has this key. */
gnomon_filter_shift gnomon_filter_shift_of(const gnomon_search *search,
                                           const gnomon_filter_query *facts, double key);
/* A score in those coordinates that all points reach whose score is at least 'least'. */
float gnomon_filter_least_in_list(float least, gnomon_filter_shift shift);
/* The other way round, what is told of a survivor. The sums are rounded, and so are the products.
 */
static inline void gnomon_filter_leave_list(gnomon_survivor *x, gnomon_filter_shift shift)
{
    const float low = x->low + shift.low, high = x->high + shift.high;
    x->low = low - fabsf(low) * 0x1p-22f;
    x->high = high + fabsf(high) * 0x1p-22f;
}
/* The same of a tile in integer coordinates, of this scale and with squares lost to rounding. */
void gnomon_blur_halve(int64_t steps, float scale, const float *lost, int lanes, gnomon_blur *blur);
/* Drops survivors that k others surely come before; raises 'least'. reached: a score that k points
 * surely reach, here or elsewhere. exactly: all such, which takes longer; else most. values: room
 * for 'room'. */
void gnomon_filter_shrink(gnomon_filter *filter, int64_t k, float reached, bool exactly,
                          float *values);

#endif

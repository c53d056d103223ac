/* choose/kinds/kinds.h: what a choice knows of a kind: one row a kind, at the end of its file:
 * which operators of it are compared, its laws and the work of a sketch. A kind without a row is
 * never chosen. */
#ifndef GNOMON_CHOOSE_KINDS_H
#define GNOMON_CHOOSE_KINDS_H

#include "choose/choose.h"

/* At most this many rows are ever asked for; beyond any operator's. */
#define GNOMON_MOST_ROWS 0x1p40
/* How much more than that of dense kinds the variance of an admitted kind may be. */
#define GNOMON_VARIANCE_SLACK 1.1

/* What laws are asked. */
typedef struct gnomon_asked {
    const gnomon_choose_options *o;
    double pairs, log_delta;
    bool incoherent;
    double weight; /* incoherent: at most |x|_4^4 / |x|_2^4; else 1 */
} gnomon_asked;

/* What the counts of a sketch of n points are made of: n and k as multiples of the cost's tiles. */
typedef struct gnomon_work_sizes {
    const gnomon_simple *a;
    double k, d, points, rows;
    double nonzeros, columns, chunks; /* sparse points: stored entries, columns that have any */
} gnomon_work_sizes;

enum { GNOMON_CHOOSE_EACH = 4 };

typedef struct gnomon_choose_row {
    gnomon_kind kind;
    /* The operators that are compared. Each has its default parameters but for those that stand
     * here, and what 'complete' sets. */
    struct {
        gnomon_dtype precision;
        int blocks, zeta;
    } candidates[GNOMON_CHOOSE_EACH];
    int count;
    /* Sets members of d that the laws go by, before k is known. NULL: none. */
    void (*complete)(const gnomon_choose_options *o, gnomon_descriptor *d);
    /* The laws, told by gnomon_choose_say. by_eps finds k for eps: exact and signs are what the
     * chi-square law and Achlioptas 2003 ask for. by_rows says whether a given k does as well as
     * with dense kinds. */
    void (*by_eps)(const gnomon_asked *a, double exact, double signs, gnomon_candidate *c);
    void (*by_rows)(const gnomon_asked *a, double k, gnomon_candidate *c);
    /* Simple kinds: sets w's made, multiplied and steps. NULL: the kind has no cost of its own. */
    void (*work)(const gnomon_work_sizes *s, bool sparse, gnomon_work *w);
} gnomon_choose_row;

#define GNOMON_CHOOSE(name) extern const gnomon_choose_row gnomon_choose_##name;
#include "choose/kinds/list.h"
#undef GNOMON_CHOOSE

/* The row of that place in the list, NULL past the end; the row of a kind, NULL when it has none.
 */
const gnomon_choose_row *gnomon_choose_row_at(int index);
const gnomon_choose_row *gnomon_choose_row_of(gnomon_kind kind);
/* What k the row's kind needs, and whether it then keeps what is asked for; candidate->descriptor
 * is complete but for k, which is filled in. */
gnomon_status gnomon_law(gnomon_context *ctx, const gnomon_choose_options *o,
                         const gnomon_choose_row *row, gnomon_candidate *candidate);
/* Whether the candidate is admitted, the rows that it needs and the law that says so. */
__attribute__((format(printf, 4, 5))) void gnomon_choose_say(gnomon_candidate *c, bool admitted,
                                                             double rows, const char *format, ...);
/* k with pairs * variance / (k eps^2) = delta */
double gnomon_chebyshev(const gnomon_asked *a, double variance);

/* ---- cost.c ---- */
/* Share of 'places' that so many random picks touch. */
double gnomon_share_touched(double picks, double places);

/* ---- kinds/dense.c ---- */
void gnomon_dense_count(const gnomon_work_sizes *s, bool sparse, gnomon_work *w);

#endif

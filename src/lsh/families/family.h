/* lsh/families/family.h: what a family is to hashing, indexes and joins: one row a family, at the
 * end of the family's file. */
#ifndef GNOMON_LSH_FAMILY_H
#define GNOMON_LSH_FAMILY_H

#include "lsh/families/list.h"
#include "lsh/hasher.h"

/* Points of a batch, what has been computed of them, and where values go. */
typedef struct gnomon_hash_batch {
    const gnomon_hasher *h;
    const gnomon_points *points;
    int64_t first;
    const void *products;
    const gnomon_hashes *out;
} gnomon_hash_batch;

typedef struct gnomon_family_row {
    gnomon_lsh_family family;
    const char *name;      /* on the command line, in JSON and in files */
    unsigned points;       /* GNOMON_POINTS_...: what it hashes */
    const char *refusal;   /* of the other form: what stands behind "is dense; " or "is sparse; " */
    bool width;            /* parameters: w, */
    bool sides;            /* directions per function, */
    bool directions;       /* of an operator, */
    gnomon_metric centres; /* trained centres, nearest by this metric: one function, one table. 0 */
    bool any_dim;          /* members are any numbers: dim may be beyond 2^56 */
    int others;            /* other values a function has, for probes */
    int products;          /* numbers that a function's value is made of, of 4 bytes; times sides */
    double most;           /* the largest distance; 0: the bits of a point */
    double members;        /* of rows of sets, what a member takes, in minhash's; 0: other points */
    int64_t member_bytes;  /* of rows of sets: working memory of a member beside products */
    const char *no_device; /* why no GPU hashes by it; NULL: one does */

    /* Samples that are made once. NULL: none. Errors: MEMORY. */
    gnomon_status (*setup)(gnomon_context *ctx, gnomon_hasher *h);
    /* Bytes a point of working memory beside products. NULL: none. */
    int64_t (*more_bytes)(const gnomon_hasher *h);
    /* The products of points [first, first + n); NULL: the operator's, or none without one. */
    gnomon_status (*project)(gnomon_context *ctx, const gnomon_hasher *h,
                             const gnomon_points *points, int64_t first, int64_t n, void *products);
    /* Values of the batch's point, and other values where those are wanted, from 'at' on. */
    void (*hash)(const gnomon_hash_batch *b, int64_t point, int64_t at);
    /* How often one function brings two points at this distance together. NULL: that depends on the
     * data. */
    double (*collision)(const gnomon_lsh_functions *f, double distance);
    /* What fp32 sums that are off by 'error', as a share of the longest point's length, may take
     * from that. NULL: nothing. */
    double (*rounding)(const gnomon_lsh_functions *f, double error, double length);
} gnomon_family_row;

#define GNOMON_ROW(number, name) extern const gnomon_family_row gnomon_family_row_##name;
GNOMON_FAMILIES(GNOMON_ROW)
#undef GNOMON_ROW

/* The row of a family, NULL when there is none. */
const gnomon_family_row *gnomon_family_row_of(gnomon_lsh_family family);

/* The largest distance of two points. */
static inline double gnomon_family_most(const gnomon_family_row *row, int64_t dim)
{
    return row->most > 0 ? row->most : 8 * (double)dim;
}

/* ---- what families share ---- */

/* Sets other value 'which' of a function of a point. */
static inline void gnomon_set_other(const gnomon_hash_batch *b, int64_t at, int which,
                                    int32_t value, float cost)
{
    const int64_t place = at * b->h->others + which;
    b->out->others[place] = value;
    b->out->costs[place] = cost;
}

/* pstable.c: uniform offsets, and the steps that products lie in. */
gnomon_status gnomon_make_offsets(gnomon_context *ctx, gnomon_hasher *h);
void gnomon_hash_steps(const gnomon_hash_batch *b, int64_t point, int64_t at);
/* minhash.c: products are the least and the second least of a set, two numbers per function. */
void gnomon_hash_least(const gnomon_hash_batch *b, int64_t point, int64_t at);
double gnomon_similarity_collision(const gnomon_lsh_functions *f, double distance);

#endif

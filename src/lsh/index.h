/* lsh/index.h: an index as the files of this room share it. */
#ifndef GNOMON_LSH_INDEX_H
#define GNOMON_LSH_INDEX_H

#include "lsh/hasher.h"
#include "lsh/table.h"
#include "search/state.h"

#include <gnomon/lsh.h>

#include <stdatomic.h>
#include <sys/types.h>

enum { GNOMON_LSH_MOST_DEPTH = 256 }; /* functions per table */

/* Dense points that came in one call. */
typedef struct gnomon_lsh_block {
    int64_t first; /* id of its first point */
    gnomon_matrix points;
} gnomon_lsh_block;

/* Points' codes: projections to 'count' dimensions by an operator, less a centre, in 8 bits. */
typedef struct gnomon_codes {
    int64_t count; /* 0: none */
    gnomon_operator *op;
    bool trained;
    float *centre; /* count */
    float factor;  /* of differences from it */
    int8_t *code;  /* count a point */
} gnomon_codes;

typedef struct gnomon_packed_lists gnomon_packed_lists;
enum { GNOMON_LISTS_WIDTHS = 2 };

/* The file that an index was opened from. */
typedef struct gnomon_origin {
    char *path; /* resolved */
    dev_t device;
    ino_t inode;
} gnomon_origin;

struct gnomon_lsh {
    gnomon_context *ctx; /* whose allocator */
    gnomon_lsh_options options;
    gnomon_hasher *hasher;
    int64_t depth; /* functions per table */
    int64_t points, removed;
    gnomon_table *tables;
    uint8_t *gone; /* a bit a point; NULL: none is removed */
    gnomon_lsh_block *blocks;
    int64_t block_count;
    gnomon_sets sets; /* sparse points; NULL offsets: there are none, or dense ones */
    gnomon_codes codes;
    /* An opened file: arrays of tables, codes and sets, and points may lie in it. */
    const char *map;
    size_t map_bytes;
    gnomon_origin *origin; /* NULL: of no file */
    atomic_int users;      /* queries under way; -1: a change is */
    int64_t memory;        /* bytes that it may use in addition to the points; 0: no limit */
    /* inverted lists in 16 and in 8 bits, once a batch has packed them; NULL */
    gnomon_packed_lists *_Atomic packed[GNOMON_LISTS_WIDTHS];
};

/* Frees an array of the index's, unless it lies in the file. */
void gnomon_lsh_drop(const gnomon_lsh *index, const void *array);
/* Bytes in addition to the points: of sets, of codes, of what is neither these nor tables, and of
 * all that an index can't do without. */
int64_t gnomon_lsh_sets_bytes(const gnomon_sets *sets);
int64_t gnomon_lsh_code_bytes(const gnomon_lsh *index);
int64_t gnomon_lsh_other_bytes(const gnomon_lsh *index);
int64_t gnomon_lsh_bytes(const gnomon_lsh *index);

/* Queries enter and leave; false while the index is being changed. */
static inline bool gnomon_lsh_enter(const gnomon_lsh *index)
{
    atomic_int *users = (atomic_int *)&index->users;
    int now = atomic_load(users);
    while (now >= 0)
        if (atomic_compare_exchange_weak(users, &now, now + 1)) return true;
    return false;
}

static inline void gnomon_lsh_leave(const gnomon_lsh *index)
{
    atomic_fetch_sub((atomic_int *)&index->users, 1);
}

static inline int64_t gnomon_lsh_bitmap_bytes(int64_t points)
{
    return (points + 7) / 8;
}

static inline bool gnomon_lsh_is_gone(const gnomon_lsh *index, uint32_t id)
{
    return index->gone != NULL && (index->gone[id / 8] >> (id % 8) & 1) != 0;
}

static inline const gnomon_lsh_block *gnomon_lsh_block_of(const gnomon_lsh *index, int64_t id)
{
    const gnomon_lsh_block *b = index->blocks + index->block_count - 1;
    while (id < b->first)
        b--;
    return b;
}

/* Whether the index holds sparse rows for a metric that also takes dense ones. */
static inline bool gnomon_lsh_is_sparse(const gnomon_lsh *index)
{
    return index->sets.offsets != NULL && !gnomon_metric_of_sets(index->options.metric);
}

/* ---- index.c ---- */
/* What an addition refuses. */
gnomon_status gnomon_lsh_check_points(gnomon_lsh *index, const gnomon_points *points);
/* Fails where so many more points are more than an index holds. */
gnomon_status gnomon_lsh_check_count(gnomon_lsh *index, int64_t n);
/* Fails where the index holds points of the other form, sparse or dense. */
gnomon_status gnomon_lsh_check_form(gnomon_context *ctx, const gnomon_lsh *index,
                                    const gnomon_points *points, const char *name);

/* ---- options.c ---- */
/* What is wrong with points that are to be read. */
gnomon_status gnomon_lsh_check_stream(gnomon_context *ctx, const gnomon_join_points *points);
/* Whether a family's functions are for this metric. */
bool gnomon_lsh_of_metric(gnomon_metric metric, gnomon_lsh_family family);
/* Completes options; d: whether params fit the index. Errors: ARGUMENT, UNSUPPORTED. */
gnomon_status gnomon_lsh_check_options(gnomon_context *ctx, const gnomon_lsh_options *given,
                                       gnomon_lsh_options *o);
gnomon_status gnomon_lsh_check_search_params(gnomon_context *ctx, const gnomon_lsh_options *o,
                                             const gnomon_lsh_search_params *params);

/* ---- codes.c ---- */
gnomon_status gnomon_codes_open(gnomon_context *ctx, const gnomon_lsh_options *o, gnomon_codes *c);
void gnomon_codes_close(gnomon_context *ctx, gnomon_codes *c);
/* Trains centre and factor on some of the points. */
gnomon_status gnomon_codes_train(gnomon_context *ctx, gnomon_codes *c, gnomon_metric metric,
                                 const gnomon_matrix *points);
/* Codes of points [first, first + n) to out, n * count. */
gnomon_status gnomon_codes_make(gnomon_context *ctx, const gnomon_codes *c, gnomon_metric metric,
                                const gnomon_matrix *points, int64_t first, int64_t n, int8_t *out);
/* ---- keys.c ---- */
/* keys[t * n + i] of table t and point first + i. */
gnomon_status gnomon_lsh_keys(gnomon_context *ctx, const gnomon_lsh *index,
                              const gnomon_points *points, uint64_t *keys);

/* ---- merge.c ---- */
/* Tables of the index's points (less the removed) and of new ones, whose ids begin at 'first':
 * keys[t * n + i] as above, n may be 0. Errors: MEMORY, CANCELLED. */
gnomon_status gnomon_lsh_merge(gnomon_context *ctx, const gnomon_lsh *index, uint64_t *keys,
                               int64_t n, bool drop, gnomon_table *out);
/* The index's, or those to replace them. */
void gnomon_lsh_free_tables(const gnomon_lsh *index, gnomon_table *tables);
/* The arrays of a table of so many entries and buckets. What a failure leaves is freed with the
 * others. Errors: MEMORY. */
gnomon_status gnomon_table_make_room(gnomon_context *ctx, int64_t entries, int64_t buckets,
                                     gnomon_table *t);

/* ---- query.c ---- */
/* A measurement of what queries would find after so many buckets or candidates, and with so many
 * candidates verified. The index may hold some points alone: true neighbours first, then a sample
 * of all points. */
typedef struct gnomon_lsh_trace {
    const int64_t *offsets, *ids; /* query q's true neighbours: ids[offsets[q]] ... */
    int64_t least;                /* with fewer candidates a query is answered exactly */
    bool limits;                  /* steps are limits of candidates, not counts of buckets */
    const int64_t *step;          /* after how many, ascending */
    int64_t steps;
    const int64_t *verified; /* with codes: of how many candidates, 0: of all */
    int64_t choices;         /* at least 1, the first 0 */
    int64_t sampled;         /* points from this id on stand for 'scale' points each, */
    double scale;            /* those before for none */
    /* what comes out */
    float *buckets;    /* with limits: (query, step), probed until there */
    float *candidates; /* (query, step); -1: too few */
    float *share;      /* (query, step, choice): of the true neighbours; 1 where there are too few
                          candidates or no neighbours */
} gnomon_lsh_trace;

/* Looks into buckets as queries with these parameters would. */
gnomon_status gnomon_lsh_trace_queries(gnomon_context *ctx, const gnomon_lsh *index,
                                       const gnomon_points *queries,
                                       const gnomon_lsh_search_params *params,
                                       const gnomon_lsh_trace *trace);

#endif

/* cuda/join/sets.h: similarity join of sets on the GPU (join/sets.cu), by the lists of their rarest
 * members (join/sets_lists.cu) and what meets there (join/sets_candidates.cu).
 *
 * Two sets that share s members have one in common among the first |A| - s + 1 of A and |B| - s + 1
 * of B, members coming in one order, rarest first (src/join/prefix.h). Q's sets stand by size, and
 * each has the first of its members in their lists; a list holds its sets in that order, so that
 * sizes that are near enough lie side by side. Each first member of a set of P asks its list for a
 * run of sets; all runs of some of P's sets are laid end to end, and threads take equal shares of
 * that line, however long any run is. A pair may meet in several lists: what stands before the
 * member by which it met, and after it, drops it in all but the first, and most pairs altogether.
 * Those that are left are counted, a warp a pair. A set without members holds one that no other set
 * has: so two of them share all they have.
 *
 * Bounds are taken from the distance as fp64 computes it, as src/join/prefix.c does. */
#ifndef GNOMON_CUDA_JOIN_SETS_H
#define GNOMON_CUDA_JOIN_SETS_H

#include "cuda/join/join.h"
#include "cuda/sets/sets.h"

bool gcu_join_sets_supported(gcu_state *s, const gnomon_join_job *job, gcu_why why);
gnomon_status gcu_join_sets(gcu_state *s, gnomon_join_job *job, gcu_why why);

struct gcu_set {
    int64_t start; /* of its members */
    uint32_t size; /* 1 or more */
    uint32_t row;  /* of its side */
};

/* Which sets meet. */
enum gcu_set_pairing {
    GCU_SETS_EACH,      /* rows of P those of Q */
    GCU_SETS_LATER,     /* rows of P its later rows */
    GCU_SETS_PRECEDING, /* P's sets by size those before them: each pair once */
};

/* What sizes allow. */
struct gcu_set_bounds {
    int64_t most;    /* the largest size */
    uint32_t *need;  /* 0 ... 2 most: of two sizes' sum, how many members must be shared */
    uint32_t *low;   /* 0 ... most: the least size that one may be near to */
    uint32_t *reach; /* 0 ... most: the largest sum for which so many shared members do */
    uint32_t *first; /* 0 ... most + 1: how many of Q's sets are smaller */
};

/* Sets of P that ask, and Q's that are asked. */
struct gcu_set_sides {
    gcu_set_pairing pairing;
    bool all; /* every pair is near enough: there are no lists, and Q's sets stand by rows */
    double limit;
    const uint32_t *members;
    const gcu_set *p, *q;
    int64_t q_count;
    gcu_set_bounds bounds;
    const uint32_t *lists;    /* where each member's list begins, and the last one's end */
    const uint64_t *postings; /* member << 32 | set of Q */
    const uint32_t *places;   /* which of that set's members it is */
};

/* ---- join/sets_lists.cu ---- */

/* sets = rows [first, first + count) of x: by size, or as they come. */
gnomon_status gcu_set_order(gcu_set_memory *m, const gcu_sets *x, int64_t first, int64_t count,
                            bool by_size, gcu_set *sets);
/* Fills the bounds, room for which was taken. */
gnomon_status gcu_set_make_bounds(gcu_set_memory *m, double limit, const gcu_set *q, int64_t count,
                                  const gcu_set_bounds *bounds);
/* starts (count + 1) = sums of how many members of each set ask. */
gnomon_status gcu_set_askers(gcu_set_memory *m, const gcu_set_sides *x, int64_t count,
                             int64_t *starts);
/* Makes the lists, whose memory stays taken. */
gnomon_status gcu_set_make_lists(gcu_set_memory *m, gcu_set_sides *x, int64_t numbers);

/* ---- join/sets_candidates.cu ---- */

/* Members of P's sets [first, end) that ask, and the runs that they ask for. */
struct gcu_set_run {
    int64_t first, end, count;
    uint32_t *set, *place, *begin; /* of P; of its members; of the run, in the postings */
    int64_t *starts;               /* sums of the runs' lengths, count + 1 */
};

/* A pair that is left. */
struct gcu_set_pair {
    uint32_t p, q, place; /* p's member that it met by */
};

/* *cut = as many of P's sets from run->first on, at most up to run->end, as have 'room' askers,
 * one at least; cut[1]: how many askers. */
cudaError_t gcu_set_cut(const int64_t *starts, int64_t first, int64_t end, int64_t room,
                        int64_t *cut, cudaStream_t stream);
/* Sets what askers ask for; 'askers' are the sums of gcu_set_askers. starts: lengths yet. */
cudaError_t gcu_set_ask(const gcu_set_sides *x, const int64_t *askers, const gcu_set_run *run,
                        cudaStream_t stream);
/* Pairs at places [from, from + count) of the line of runs that may be near enough. *left: how many
 * those are, of which as many as there is room for are kept. */
cudaError_t gcu_set_candidates(const gcu_set_sides *x, const gcu_set_run *run, int64_t from,
                               int64_t count, gcu_set_pair *pairs, int64_t room,
                               unsigned long long *left, cudaStream_t stream);
/* Counts what pairs share: those near enough as i << 32 | j and how many members they share, in any
 * order; *found grows by how many those are, beyond 'room' too. keys NULL: they are counted. */
cudaError_t gcu_set_verify(const gcu_set_sides *x, const gcu_set_pair *pairs, int64_t count,
                           uint64_t *keys, uint32_t *shared, int64_t room,
                           unsigned long long *found, int sms, cudaStream_t stream);
/* Pairs in order as the library's callers see them. q_first: Q's first row among x's. */
cudaError_t gcu_set_pairs(const gcu_sets *x, int64_t q_first, const uint64_t *keys,
                          const uint32_t *shared, int64_t count, gnomon_pair *out,
                          cudaStream_t stream);

#endif

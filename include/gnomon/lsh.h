/* gnomon/lsh.h: locality-sensitive hashing: hash functions that give near points the same value
 * more often than far ones, and indexes made of them for approximate nearest neighbours.
 *
 * The header has, in this order: hash functions; tables (an index in memory and its queries);
 * files; tuning, which finds an index with a guaranteed recall.
 *
 * The smallest complete program:
 *
 *     #include <gnomon/lsh.h>
 *     #include <stdio.h>
 *
 *     int main(void)
 *     {
 *         float points[4 * 2] = {0, 0, 1, 0, 5, 5, 6, 5}, point[2] = {5, 5};
 *         const gnomon_matrix base = gnomon_matrix_rowmajor(points, GNOMON_F32, 4, 2);
 *         const gnomon_matrix query = gnomon_matrix_rowmajor(point, GNOMON_F32, 1, 2);
 *         gnomon_lsh_options o = GNOMON_LSH_OPTIONS_INIT;
 *         gnomon_search_options wanted = GNOMON_SEARCH_OPTIONS_INIT;
 *         gnomon_neighbors found = {.struct_size = sizeof found};
 *         gnomon_lsh *index = NULL;
 *         gnomon_context *ctx;
 *         o.functions.family = GNOMON_LSH_PSTABLE;
 *         o.functions.dim = 2;
 *         o.functions.width = 4;
 *         o.tables = 4;
 *         o.coarse = 2;
 *         wanted.k = 1;
 *         gnomon_status status = gnomon_context_create(NULL, &ctx);
 *         if (status == GNOMON_OK) status = gnomon_lsh_create(ctx, &o, &index);
 *         if (status == GNOMON_OK) status = gnomon_lsh_add(index, &base);
 *         if (status == GNOMON_OK)
 *             status = gnomon_lsh_query(ctx, index, &query, &wanted, NULL, &found, NULL);
 *         if (status == GNOMON_OK) printf("%d\n", (int)found.ids[0]); // 2
 *         gnomon_neighbors_free(ctx, &found);
 *         gnomon_lsh_destroy(index);
 *         gnomon_context_destroy(ctx);
 *         return status;
 *     }
 *
 * docs/reference/lsh.md specifies every family to the last bit. */
#ifndef GNOMON_LSH_H
#define GNOMON_LSH_H

#include <gnomon/operator.h>
#include <gnomon/search.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Families; numbers pinned. With x and y at distance r, each function gives them the same value
 * with probability p(r) (gnomon_lsh_collision). */
typedef enum gnomon_lsh_family {
    GNOMON_LSH_PSTABLE = 1,        /* l2: floor((a.x + b) / w), a standard normal, b uniform in
                                      [0, w) (Datar, Immorlica, Indyk & Mirrokni 2004) */
    GNOMON_LSH_PSTABLE_L1 = 2,     /* l1: the same with a standard Cauchy */
    GNOMON_LSH_SIMHASH = 3,        /* cosine: the sign of a.x (Charikar 2002) */
    GNOMON_LSH_CROSS_POLYTOPE = 4, /* cosine: which of 'sides' random directions, or of their
                                      opposites, x is nearest to (Andoni et al. 2015) */
    GNOMON_LSH_BIT_SAMPLING = 5,   /* hamming: one bit of the point (Indyk & Motwani 1998) */
    GNOMON_LSH_MINHASH = 6,        /* jaccard: the least hash of the set's members (Broder 1997) */
    GNOMON_LSH_ICWS = 7            /* weighted-jaccard: improved consistent weighted sampling (Ioffe
                                      2010): a column and a step of its weight */
} gnomon_lsh_family;

/* "p-stable", "p-stable-l1", "simhash", "cross-polytope", "bit-sampling", "minhash", "icws"; "?"
 * for a number that is no family. Static storage. */
GNOMON_API const char *gnomon_lsh_family_name(gnomon_lsh_family family);
/* The family of that name, 0 when there is none. */
GNOMON_API gnomon_lsh_family gnomon_lsh_family_from_name(const char *name);

enum { GNOMON_METRIC_FAMILIES = 3 }; /* of one metric, at most */
/* The families whose functions are for a metric, from index 0 on, the usual one first; 0 past the
 * last. */
GNOMON_API gnomon_lsh_family gnomon_metric_family(gnomon_metric metric, int index);

/* What defines 'count' hash functions. Members that a family does not use must be 0. Functions do
 * not depend on count (but for an operator whose rows do): more of them begin with the fewer. */
typedef struct gnomon_lsh_functions {
    size_t struct_size; /* see gnomon/base.h */
    gnomon_lsh_family family;
    /* the points' columns, 1 ... 2^56, of minhash and icws any number; bit-sampling: U8 elements of
     * eight bits each */
    int64_t dim;
    int64_t count; /* 1 ... 2^24; count * sides too */
    double width;  /* p-stable, p-stable-l1: w > 0, in units of the points */
    int64_t sides; /* cross-polytope: 2 ... 4096; 0: 16 */
    uint64_t seed; /* of everything that no operator makes */
    /* p-stable, simhash, cross-polytope: where the directions a come from: kind, seed and
     * parameters of an operator, any kind but kronecker; its k, d and scaling are filled in (k the
     * directions, d the larger of dim and k, scaling by sqrt(k), so that entries have variance 1).
     * NULL: gaussian with 'seed'. Directions are made as they are needed and never stored. Kinds
     * other than gaussian are near to normal directions only when no few coordinates of x - y hold
     * most of its length. */
    const gnomon_descriptor *descriptor;
} gnomon_lsh_functions;

#define GNOMON_LSH_FUNCTIONS_INIT                                                 \
    {                                                                             \
        sizeof(gnomon_lsh_functions), (gnomon_lsh_family)0, 0, 0, 0.0, 0, 0, NULL \
    }
/* The same for bindings: see gnomon_context_options_init. */
GNOMON_API gnomon_status gnomon_lsh_functions_init(gnomon_lsh_functions *options, size_t size);

/* p(r), the probability that one function of the family gives two points at distance r the same
 * value; dim, count, seed and descriptor are not read, except dim by bit-sampling. Distances: l2,
 * l1, 1 - cos in [0, 2] for both of cosine's families, bits that differ in [0, 8 dim], 1 - |A n B|
 * / |A u B| and 1 - sum min / sum max in [0, 1].
 *
 *   p-stable        1 - 2 F(-t) - 2 (1 - exp(-t^2 / 2)) / (sqrt(2 pi) t), t = w / r,
 *                   F the normal law (Datar et al. 2004)
 *   p-stable-l1     2 atan(t) / pi - ln(1 + t^2) / (pi t), t = w / r
 *   simhash         1 - acos(1 - r) / pi
 *   cross-polytope  by quadrature of the integral over the coordinate that wins in both, to an
 *                   absolute error below 1e-5
 *   bit-sampling    1 - r / (8 dim)
 *   minhash, icws   1 - r; two different samples share their 32 bits once in 2^32 times
 *
 * They are exact for Gaussian directions. Errors: ARGUMENT. */
GNOMON_API gnomon_status gnomon_lsh_collision(gnomon_context *ctx,
                                              const gnomon_lsh_functions *functions,
                                              double distance, double *p);

/* Functions, checked and ready. Read-only after creation: any number of threads may use one at
 * once, each with its own context. Made in the C library's memory, as operators are. */
typedef struct gnomon_hasher gnomon_hasher;

/* Errors:
 *  - ARGUMENT: a member outside what its comment allows, or set for a family that does not use it
 *  - MEMORY
 * On failure *out is NULL. */
GNOMON_API gnomon_status gnomon_hasher_create(gnomon_context *ctx,
                                              const gnomon_lsh_functions *functions,
                                              gnomon_hasher **out);
/* NULL is allowed. */
GNOMON_API void gnomon_hasher_destroy(gnomon_hasher *hasher);

/* The values of all functions at points (n x dim, any strides): values is n x count, I32, any
 * strides but 0. Values: p-stable the floor, held in 32 bits; simhash 1 where a.x < 0;
 * cross-polytope 2 i for direction i and 2 i + 1 for its opposite; bit-sampling the bit; minhash
 * the least hash's 32 bits; icws a hash of the sample. Points may be of any type, for bit-sampling
 * U8; minhash and icws take sparse points only. Products are those of gnomon_sketch (Cauchy: of
 * gnomon_gemm), in pieces within the context's memory limit; the bits depend neither on pieces nor
 * on threads or instruction set.
 *
 * On a GPU points and values may lie in its memory, and p-stable-l1 and icws are declined. Of
 * gaussian directions, either precision, and of bit-sampling and minhash the values are the CPU's,
 * bit for bit: where the difference of two sums could change one, it is made again in the CPU's
 * order of additions. Of other kinds of directions the products are those of gnomon_sketch on the
 * GPU, which may differ in their last bits, and a value with them where a product lies that close
 * to where the value changes: about one in 10^6. GNOMON_DEVICE_AUTO takes the GPU only where the
 * bits are the same, a named device for all it can do. Errors: ARGUMENT, SHAPE, DTYPE, NONFINITE,
 * UNSUPPORTED (dense points for minhash), DEVICE, MEMORY, CANCELLED; values is undefined
 * after a failure. */
GNOMON_API gnomon_status gnomon_hasher_apply(gnomon_context *ctx, const gnomon_hasher *hasher,
                                             const gnomon_matrix *points,
                                             const gnomon_matrix *values);
/* The same for sparse points, in the families of gnomon_sketch_csr, in minhash, for which a point
 * is the set of the columns of its entries that are not zero, and in icws, for which values are
 * weights, none negative or above 2^500. The empty set has the value -1. Errors: also DATA for a
 * broken view, UNSUPPORTED for p-stable-l1 and bit-sampling and for such weights. */
GNOMON_API gnomon_status gnomon_hasher_apply_csr(gnomon_context *ctx, const gnomon_hasher *hasher,
                                                 const gnomon_csr *points,
                                                 const gnomon_matrix *values);

/* ---- tables ---- */

/* How far a query looks; part of an index as what its queries do unless told otherwise. */
typedef struct gnomon_lsh_search_params {
    size_t struct_size; /* see gnomon/base.h */
    int64_t tables;     /* only the first so many; 0 (default): all */
    int64_t probes; /* buckets beside each table's own, over all tables, the likeliest first (Lv et
                       al. 2007); default 0 */
    int64_t coarse; /* with fine functions: coarse buckets probed after the fine ones, those of the
                      tables first, then  the likeliest others; default 0 */
    int64_t candidates; /* no more candidates than that, those of the first buckets; 0
                           (default): as many as there are */
    int64_t rerank;     /* with codes: distances are computed of so many candidates whose codes are
                           nearest; 0 (default): of all. Radius queries compute all */
} gnomon_lsh_search_params;

#define GNOMON_LSH_SEARCH_PARAMS_INIT                   \
    {                                                   \
        sizeof(gnomon_lsh_search_params), 0, 0, 0, 0, 0 \
    }
/* The same for bindings: see gnomon_context_options_init. */
GNOMON_API gnomon_status gnomon_lsh_search_params_init(gnomon_lsh_search_params *options,
                                                       size_t size);

typedef struct gnomon_lsh_options {
    size_t struct_size;             /* see gnomon/base.h */
    gnomon_metric metric;           /* L2 (p-stable), COSINE (simhash, cross-polytope), HAMMING
                                       (bit-sampling), JACCARD (minhash), L1 (p-stable-l1),
                                       WEIGHTED_JACCARD (icws) */
    gnomon_lsh_functions functions; /* dim is the points'; count is filled in */
    int64_t tables;                 /* 1 ... 4096 */
    int64_t coarse;                 /* functions that a table's buckets are made by: 1 ... 256 */
    int64_t fine;  /* functions that buckets are cut further by: 0 (default) ... 256 with coarse */
    int64_t codes; /* L2, COSINE: bytes of a point's code, its projection to so many dimensions in 8
                      bits each, by which candidates are ordered before they are verified; 0
                      (default): none; at most 1024 */
    int64_t memory; /* bytes the index may take beside the points; 0 (default): any */
    gnomon_lsh_search_params search_params; /* of queries that say nothing */
} gnomon_lsh_options;

#define GNOMON_LSH_OPTIONS_INIT                                                          \
    {                                                                                    \
        sizeof(gnomon_lsh_options), GNOMON_L2, GNOMON_LSH_FUNCTIONS_INIT, 0, 0, 0, 0, 0, \
            GNOMON_LSH_SEARCH_PARAMS_INIT                                                \
    }
/* The same for bindings: see gnomon_context_options_init. */
GNOMON_API gnomon_status gnomon_lsh_options_init(gnomon_lsh_options *options, size_t size);

/* An index: tables of hashed points, flat and sorted. It keeps views of the points, not the
 * points: they must stay as they are until it is destroyed (sets of JACCARD are copied). Any number
 * of threads may query or save one index at once, each with its own context. gnomon_lsh_add,
 * _remove and _compact need it for themselves: beside another call they return BUSY and change
 * nothing, and queries that come while they are at work return BUSY (a change beside a change tells
 * why in gnomon_last_error(NULL), since the index's context is in use); nothing waits and nothing
 * is lost. gnomon_lsh_describe and _destroy must not run beside a change. Made with the allocator
 * of the context that created it, which must outlive it and works for every call that takes none.
 */
typedef struct gnomon_lsh gnomon_lsh;

/* An index without points.
 * Errors:
 *  - ARGUMENT: a member outside what its comment allows; a family that is not the metric's
 *  - UNSUPPORTED: IP
 *  - MEMORY
 * On failure *out is NULL. */
GNOMON_API gnomon_status gnomon_lsh_create(gnomon_context *ctx, const gnomon_lsh_options *options,
                                           gnomon_lsh **out);
/* NULL is allowed. */
GNOMON_API void gnomon_lsh_destroy(gnomon_lsh *index);

/* Adds points, whose ids go on from those before. At most 2^32 - 2 points in all. Takes for the
 * time of the call, beside the context's memory limit, 8 bytes per point and table and 24 a point
 * and thread. What a query finds does not depend on how the points were cut into calls, except
 * through the codes' scale, which the first call determines. Points lie on the host. A GPU makes
 * the keys, and of the first points the tables, where they are the CPU's, bit for bit (see
 * gnomon_hasher_apply), and declines other directions; codes are made on the CPU. On failure the
 * index is as before. Errors: as gnomon_hasher_apply; UNSUPPORTED (a magnitude above 2^500; too
 * many points), MEMORY (also when options.memory is too little; the text says how much is needed).
 */
GNOMON_API gnomon_status gnomon_lsh_add(gnomon_lsh *index, const gnomon_matrix *points);
GNOMON_API gnomon_status gnomon_lsh_add_csr(gnomon_lsh *index, const gnomon_csr *points);

/* Removes points by id: queries no longer find them; the other ids stay as they are. An id that is
 * removed already stays so. On failure nothing is removed. Errors: ARGUMENT (an id that there is
 * not), MEMORY. */
GNOMON_API gnomon_status gnomon_lsh_remove(gnomon_lsh *index, const int64_t *ids, int64_t count);
/* Drops removed points from the tables, so that queries no longer pass over them. On failure the
 * index is as before. Errors: MEMORY. */
GNOMON_API gnomon_status gnomon_lsh_compact(gnomon_lsh *index);

typedef struct gnomon_lsh_info {
    size_t struct_size;         /* see gnomon/base.h */
    gnomon_lsh_options options; /* completed; descriptor is the index's own */
    int64_t points;             /* all that were added; ids are below it */
    int64_t removed;
    int64_t buckets;     /* over all tables */
    int64_t largest;     /* points of the largest bucket */
    int64_t table_bytes; /* what the index takes beside the points: tables, */
    int64_t code_bytes;  /* codes, */
    int64_t other_bytes; /* copied sets, the removed ones' bitmap */
} gnomon_lsh_info;

/* Tells what an index is; info->struct_size must be set. info->options.functions.descriptor lives
 * as long as the index. */
GNOMON_API void gnomon_lsh_describe(const gnomon_lsh *index, gnomon_lsh_info *info);

/* What queries did; all are sums over the queries. */
typedef struct gnomon_lsh_work {
    size_t struct_size; /* set by the caller; see gnomon/base.h */
    int64_t buckets;    /* looked into, empty ones too */
    int64_t candidates; /* different points found there */
    int64_t verified;   /* whose distance was computed */
    int64_t exact;      /* queries with fewer than k candidates: all points were verified */
    double hash_seconds, search_seconds; /* elapsed */
} gnomon_lsh_work;

/* For each query the k nearest of its candidates, or those within the radius, by exact distances,
 * in the order of (distance, id): what gnomon_neighbors_exact would find if the candidates were the
 * base. options as there; its metric must be the index's. A query with fewer than k candidates is
 * answered exactly. params NULL: the index's own. The bits depend neither on threads nor on how
 * queries are cut into calls. Working memory beside the context's limit: a thread's 4 bytes per
 * point and 12 a candidate. On the CPU. out and its ownership are as for gnomon_neighbors_exact;
 * work may be NULL. Errors: as there, and ARGUMENT for params, BUSY (see gnomon_lsh), DEVICE under
 * a named device. */
GNOMON_API gnomon_status gnomon_lsh_query(gnomon_context *ctx, const gnomon_lsh *index,
                                          const gnomon_matrix *queries,
                                          const gnomon_search_options *options,
                                          const gnomon_lsh_search_params *params,
                                          gnomon_neighbors *out, gnomon_lsh_work *work);
GNOMON_API gnomon_status gnomon_lsh_query_csr(gnomon_context *ctx, const gnomon_lsh *index,
                                              const gnomon_csr *queries,
                                              const gnomon_search_options *options,
                                              const gnomon_lsh_search_params *params,
                                              gnomon_neighbors *out, gnomon_lsh_work *work);

/* ---- files ---- */

/* Writes an index with its points to one file (docs/reference/formats.md), by the same safe way as
 * all files: the target is the old one or the whole new one. "-" is standard output. It may be the
 * file that the index was opened from: that file is then locked (flock) until it is replaced, and
 * BUSY is returned, with nothing written, while another process or thread holds the lock, or when
 * the file is no longer the one that was opened: open it again. What an opened index has in its
 * file is held against its checksums before it is written again: DATA tells of damage. Any number
 * of threads at once, as for queries. Errors: IO, NOT_FOUND, MEMORY, CANCELLED, BUSY, DATA. */
GNOMON_API gnomon_status gnomon_lsh_save(gnomon_context *ctx, const gnomon_lsh *index,
                                         const char *path);

/* Opens an index's file: it is mapped into memory, read-only, so that opening reads the tables
 * alone and several processes share one copy. The index is like any other: it may be queried, added
 * to, thinned, saved; what changes is held in memory, and the file stays as it is. Header, layout,
 * settings and everything in the tables that a query relies on are checked; a file that somebody
 * made up is an error, never a crash. Checksums, and whether coordinates are finite, are not: see
 * gnomon_lsh_check. The file must not be changed in place while the index lives (gnomon never does
 * that: it replaces files); it may be removed or replaced.
 * Errors:
 *  - FORMAT: no index
 *  - UNSUPPORTED: a newer version, features that this library does not know, no regular file
 *  - NOT_FOUND, IO, TRUNCATED, DATA, MEMORY
 * On failure *out is NULL. */
GNOMON_API gnomon_status gnomon_lsh_open(gnomon_context *ctx, const char *path, gnomon_lsh **out);

/* Told of each fault: which section, and what is wrong with it. */
typedef void (*gnomon_lsh_fault_fn)(void *user, const char *section, const char *fault);

/* Holds a file against everything that docs/reference/formats.md says of it: checksums, order, ids,
 * finite coordinates, each point in each table, and in the bucket that it hashes to (which takes as
 * long as hashing all points). DATA when there is a fault (the text tells the first); fn may be
 * NULL. Errors: as gnomon_lsh_open; CANCELLED. */
GNOMON_API gnomon_status gnomon_lsh_check(gnomon_context *ctx, const char *path,
                                          gnomon_lsh_fault_fn fn, void *user);

/* An index that is written to a file as its points come, from first to last: neither points nor
 * tables need to fit in memory. The file has the same bytes as one saved after gnomon_lsh_add of
 * the same points, but for codes, whose scale the first call determines. Sorted runs of keys, 12
 * bytes per point and table, and codes wait in nameless temporary files in TMPDIR (else /tmp). One
 * thread at a time, as its context. */
typedef struct gnomon_lsh_builder gnomon_lsh_builder;

/* Errors: as gnomon_lsh_create; IO, NOT_FOUND. On failure *out is NULL. */
GNOMON_API gnomon_status gnomon_lsh_builder_create(gnomon_context *ctx,
                                                   const gnomon_lsh_options *options,
                                                   const char *path, gnomon_lsh_builder **out);
/* Begins with what an index has: its points are written at once, its tables merged with those of
 * the points that are added. index must not change until the builder is gone (calls that would
 * change it return BUSY); path may be the file it was opened from. compact 1: removed points leave
 * the tables, and zeros take the place of their coordinates (sets become empty), so that the file
 * no longer holds them. Ids stay what they are. Errors: as gnomon_lsh_save. */
GNOMON_API gnomon_status gnomon_lsh_builder_extend(gnomon_context *ctx, const gnomon_lsh *index,
                                                   const char *path, int compact,
                                                   gnomon_lsh_builder **out);
/* The next points, which may be gone afterwards. Dense points of another type than those before
 * are stored as they are. Errors: as gnomon_lsh_add, IO. Points that are refused leave the builder
 * as it was; after any other failure it can only be aborted. */
GNOMON_API gnomon_status gnomon_lsh_builder_add(gnomon_lsh_builder *builder,
                                                const gnomon_matrix *points);
GNOMON_API gnomon_status gnomon_lsh_builder_add_csr(gnomon_lsh_builder *builder,
                                                    const gnomon_csr *points);
/* Writes the tables and completes the file. Frees the builder whatever it returns; on failure the
 * target is as before.
 * Errors:
 *  - MEMORY: also when options.memory is too little
 *  - BUSY: the file that the index was opened from, and is to be replaced, was replaced by somebody
 *    else meanwhile
 *  - IO, CANCELLED */
GNOMON_API gnomon_status gnomon_lsh_builder_finish(gnomon_lsh_builder *builder);
/* Drops everything written; the target is as before. NULL is allowed. */
GNOMON_API void gnomon_lsh_builder_abort(gnomon_lsh_builder *builder);

/* ---- tuning by a recall guarantee ---- */

/* What is guaranteed of an index: that the share of true neighbours that queries find, averaged
 * over queries, is at least 'recall'. */
typedef struct gnomon_lsh_guarantee {
    size_t struct_size;   /* see gnomon/base.h */
    gnomon_metric metric; /* default L2 */
    double recall;        /* above 0, below 1; default 0.9 */
    double confidence;    /* above 0.5, below 1; default 0.95 */
    int64_t k;            /* so many nearest; 0 (default): all within radius */
    double radius;        /* read with k 0 */
    int64_t memory;       /* bytes the index may take beside the points; 0 (default): as many as the
                             points take */
    int64_t queries; /* that the guarantee is tested by, at most: 100 ... 100000; default 1000 */
    uint64_t seed;
    const gnomon_descriptor *descriptor; /* of gnomon_lsh_functions; NULL: gaussian */
    int slower; /* 1: an index also where exact search is expected to be faster; default 0 */
    gnomon_lsh_family family; /* of hash functions, one of the metric's; 0 (default): any */
    int64_t uses; /* queries that the index will answer: tuning and building are then part of its
                     cost; 0 (default): not known, an index that stays */
} gnomon_lsh_guarantee;

#define GNOMON_LSH_GUARANTEE_INIT                                                        \
    {                                                                                    \
        sizeof(gnomon_lsh_guarantee), GNOMON_L2, 0.9, 0.95, 0, 0.0, 0, 1000, 0, NULL, 0, \
            (gnomon_lsh_family)0, 0                                                      \
    }
/* The same for bindings: see gnomon_context_options_init. */
GNOMON_API gnomon_status gnomon_lsh_guarantee_init(gnomon_lsh_guarantee *options, size_t size);

/* A way that was considered. Recall and candidates were measured by other queries than the test's;
 * of ways that were not tested, on a sample of the points where there are many. cost is by the
 * model of docs/reference/lsh.md. */
typedef struct gnomon_lsh_trial {
    gnomon_lsh_family family;
    double width;
    int64_t sides, tables, functions; /* of a table; with two levels those of its coarse buckets, */
    int64_t fine;                     /* and those by which they are cut further; 0: one level */
    int64_t probes, rerank;           /* rerank 0: all candidates */
    int64_t coarse,
        limit; /* two levels: coarse buckets probed after the fine ones, until so many candidates */
    double recall, candidates, cost; /* candidates per query; nanoseconds per query on one thread */
    int64_t bytes;                   /* that the index would take beside the points */
    int chosen;                      /* tested: 1 failed, 2 kept */
} gnomon_lsh_trial;

typedef struct gnomon_lsh_tuning {
    size_t struct_size; /* set by the caller; see gnomon/base.h */
    int exact;          /* 1: no index meets the guarantee, or none is faster than exact search */
    const char *reason; /* of that; "" otherwise; static storage */
    double recall;      /* measured: mean over the test's queries; a test that ends early ends
                           when it looks well */
    double bound;       /* recall is above it with the guarantee's confidence */
    int64_t tested, asked; /* queries of the test, and those that the trials were measured by */
    double exact_cost; /* of exact search, nanoseconds per query on one thread, by the same model */
    gnomon_lsh_trial
        *trials; /* by family, width, functions and tables; of the context's allocator */
    int64_t trial_count;
} gnomon_lsh_tuning;

/* Frees what a call allocated into tuning, by the same context, and clears it; NULL is allowed. */
GNOMON_API void gnomon_lsh_tuning_free(gnomon_context *ctx, gnomon_lsh_tuning *tuning);

/* Chooses family, parameters and params for the points, builds the index and tests it. queries
 * (dense or NULL): of the kind that will be asked; NULL: points themselves, each without itself.
 * Half or fewer of them serve the choice, the others the test.
 *
 * The test: of each query the share of its true neighbours that is found, a number in [0, 1];
 * shares of different queries are independent, and a lower bound on their mean by betting holds
 * whatever their law and after any number of queries (Waudby-Smith & Ramdas 2024), so that the test
 * ends as soon as it can tell. The guarantee is met when that bound reaches guarantee.recall; up to
 * four ways are tested with the same queries, at a half, a quarter, an eighth and an eighth of the
 * doubt, so that the confidence holds for the whole. When none passes, none is expected to, or
 * exact search is cheaper by the model, *out is NULL and tuning->exact is 1: search exactly. With
 * guarantee.uses the model compares what is left to do with exact search of so many queries: before
 * anything (asked is then 0), before an index is built, and before each test. Otherwise it compares
 * one query. With k
 * it holds too when the queries given are all that will be asked; those of a radius count where
 * they have neighbours.
 *
 * The choice depends on the points, queries and guarantee alone, not on measured times. points must
 * stay as they are until *out, the caller's, is destroyed. tuning->struct_size must be set; what it
 * then points to is for gnomon_lsh_tuning_free. On the CPU. Threads: see gnomon_context. Errors:
 * ARGUMENT, UNSUPPORTED (IP), DEVICE with a named device, and those of
 * gnomon_neighbors_exact and gnomon_lsh_add; on failure *out is NULL. */
GNOMON_API gnomon_status gnomon_lsh_tune(gnomon_context *ctx, const gnomon_lsh_guarantee *guarantee,
                                         const gnomon_matrix *points, const gnomon_matrix *queries,
                                         gnomon_lsh **out, gnomon_lsh_tuning *tuning);
GNOMON_API gnomon_status gnomon_lsh_tune_csr(gnomon_context *ctx,
                                             const gnomon_lsh_guarantee *guarantee,
                                             const gnomon_csr *points, const gnomon_csr *queries,
                                             gnomon_lsh **out, gnomon_lsh_tuning *tuning);

#ifdef __cplusplus
}
#endif
#endif

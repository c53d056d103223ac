/* gnomon/lsh.h: locality-sensitive hashing: hash functions that give near points the same value
 * more often than far ones, and indexes made of them for approximate nearest neighbours: hash
 * tables, or by trained centres inverted lists (IVF).
 *
 * The header has, in this order: hash functions; tables (an index in memory and its queries);
 * files; tuning, which finds an index with a recall guarantee.
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
 * docs/reference/lsh.md specifies every family exactly. */
#ifndef GNOMON_LSH_H
#define GNOMON_LSH_H

#include <gnomon/join.h>
#include <gnomon/operator.h>
#include <gnomon/search.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Families; the numbers never change. For x and y at distance r, each function has the same value
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
    GNOMON_LSH_ICWS = 7,           /* weighted-jaccard: improved consistent weighted sampling (Ioffe
                                      2010): a column and a step of its weight */
    GNOMON_LSH_KMEANS = 8,         /* l2: the nearest of some centres that gnomon_lsh_train made of
                                      such points (Pauleve, Jegou & Amsaleg 2010): an index by it
                                      has inverted lists (IVF). It depends on the data: there is no
                                      p(r) */
    GNOMON_LSH_SPHERICAL_KMEANS = 9 /* cosine: the same (Dhillon & Modha 2001) */
} gnomon_lsh_family;

/* "p-stable", "p-stable-l1", "simhash", "cross-polytope", "bit-sampling", "minhash", "icws",
 * "k-means", "spherical-k-means"; "?" for an unknown number. Static storage. */
GNOMON_API const char *gnomon_lsh_family_name(gnomon_lsh_family family);
/* The family of that name, 0 when there is none. */
GNOMON_API gnomon_lsh_family gnomon_lsh_family_from_name(const char *name);

enum { GNOMON_METRIC_FAMILIES = 3 }; /* of one metric, at most */
/* The families of a metric, from index 0 on, the default first; 0 past the last. */
GNOMON_API gnomon_lsh_family gnomon_metric_family(gnomon_metric metric, int index);

/* The definition of 'count' hash functions. Members that a family does not use must be 0. The first
 * functions do not depend on count (except with an operator whose rows depend on k). */
typedef struct gnomon_lsh_functions {
    size_t struct_size; /* see gnomon/base.h */
    gnomon_lsh_family family;
    /* the points' columns, 1 ... 2^56; any number for minhash and icws; for bit-sampling U8
     * elements of eight bits each */
    int64_t dim;
    int64_t count; /* 1 ... 2^24; count * sides too */
    double width;  /* p-stable, p-stable-l1: w > 0, in units of the points */
    int64_t sides; /* cross-polytope: 2 ... 4096; 0: 16 */
    uint64_t seed; /* of all that does not come from an operator */
    /* p-stable, simhash, cross-polytope: the operator whose rows are the directions a: its kind,
     * seed and parameters, any kind but kronecker; k, d and scaling are filled in (k the number of
     * directions, d the larger of dim and k, scaling by sqrt(k), so that entries have variance 1).
     * NULL: gaussian with 'seed'. Directions are computed as needed and never stored. Kinds other
     * than gaussian approximate normal directions only if x - y is not dominated by few
     * coordinates. */
    const gnomon_descriptor *descriptor;
    /* k-means, spherical-k-means: centre_count centres, 2 ... 65536, finite, row-major,
     * centre_count x dim (see gnomon_lsh_train); they are copied. count is 1. */
    int64_t centre_count;
    const float *centres;
} gnomon_lsh_functions;

#define GNOMON_LSH_FUNCTIONS_INIT                                                          \
    {                                                                                      \
        sizeof(gnomon_lsh_functions), (gnomon_lsh_family)0, 0, 0, 0.0, 0, 0, NULL, 0, NULL \
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
 * The formulas are exact for Gaussian directions.
 * Errors: ARGUMENT; UNSUPPORTED: k-means. */
GNOMON_API gnomon_status gnomon_lsh_collision(gnomon_context *ctx,
                                              const gnomon_lsh_functions *functions,
                                              double distance, double *p);

/* Trains centres for k-means or spherical-k-means on points (n x dim, of any type and strides, in
 * host memory), n >= count: count x dim numbers of fp32, row-major, to 'centres'. Lloyd's
 * iterations on at most 32 points a centre, which the seed chooses, begin with some of these; a
 * centre that no point is nearest to moves to the point that is farthest from its own.
 * spherical-k-means divides points by their norms. Sums are of fp64 in a fixed order: the centres
 * depend on family, points, count and seed alone. On the CPU.
 * Errors:
 *  - ARGUMENT: count is not in 2 ... 65536 or is above n; a family without centres
 *  - those of gnomon_neighbors_exact
 * centres is undefined after a failure. */
GNOMON_API gnomon_status gnomon_lsh_train(gnomon_context *ctx, gnomon_lsh_family family,
                                          const gnomon_matrix *points, int64_t count, uint64_t seed,
                                          float *centres);
/* The same centres of points that need not fit in memory: only those that it trains on are read,
 * each once (rows ascend from call to call) and each in one call. The others are not looked at.
 * Errors: those of gnomon_lsh_train, and what 'read' returns. */
GNOMON_API gnomon_status gnomon_lsh_train_stream(gnomon_context *ctx, gnomon_lsh_family family,
                                                 const gnomon_join_points *points, int64_t count,
                                                 uint64_t seed, float *centres);

/* Checked hash functions. Read-only after creation: any number of threads may use one at once, each
 * with its own context. Allocated by malloc, as operators are. */
typedef struct gnomon_hasher gnomon_hasher;

/* Errors:
 *  - ARGUMENT: a member outside what its comment allows, or set for a family that does not use it
 *  - NONFINITE: a centre
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
 * the least hash's 32 bits; icws a hash of the sample; k-means the number of the nearest centre,
 * the smallest of equally near ones. Points may have any type, for bit-sampling U8; minhash and
 * icws require sparse points. Products are computed by gnomon_sketch (Cauchy: by gnomon_gemm), in
 * pieces within the context's memory limit; the bits do not depend on pieces, threads or
 * instruction set.
 *
 * On a GPU points and values may be in its memory; p-stable-l1, icws, k-means and spherical-k-means
 * are not supported. For gaussian directions in either precision, bit-sampling and minhash the
 * values are the CPU's, bit for bit: values that rounding could change are computed again in the
 * CPU's order of additions. For other directions the products are those of gnomon_sketch on the
 * GPU, whose last bits may differ, and so about one value in 10^6. With device "auto" the GPU is
 * used only if the bits are the same, with a named device for all that it supports.
 *
 * Errors:
 *  - UNSUPPORTED: dense points for minhash
 *  - ARGUMENT, SHAPE, DTYPE, NONFINITE, DEVICE, MEMORY, CANCELLED
 * values is undefined after a failure. */
GNOMON_API gnomon_status gnomon_hasher_apply(gnomon_context *ctx, const gnomon_hasher *hasher,
                                             const gnomon_matrix *points,
                                             const gnomon_matrix *values);
/* The same for sparse points, for p-stable, simhash and cross-polytope; for minhash, where a point
 * is the set of its nonzero columns; and for icws, where values are weights from 0 to 2^500. The
 * empty set has the value -1.
 * Errors:
 *  - DATA: a broken view
 *  - UNSUPPORTED: p-stable-l1, bit-sampling and k-means; such weights
 *  - those of gnomon_hasher_apply */
GNOMON_API gnomon_status gnomon_hasher_apply_csr(gnomon_context *ctx, const gnomon_hasher *hasher,
                                                 const gnomon_csr *points,
                                                 const gnomon_matrix *values);

/* ---- tables ---- */

/* The search parameters of a query. An index stores those that its queries use by default. */
typedef struct gnomon_lsh_search_params {
    size_t struct_size; /* see gnomon/base.h */
    int64_t tables;     /* search only the first tables; 0 (default): all */
    int64_t probes; /* buckets probed in addition to the query's own, over all tables, the likeliest
                       first (Lv et al. 2007), of k-means those of the next nearest centres; default
                       0 */
    int64_t coarse; /* with fine functions: coarse buckets probed after the fine ones, those of the
                      tables first, then  the likeliest others; default 0 */
    int64_t candidates; /* the most candidates, those of the first buckets; 0 (default): no limit */
    int64_t rerank; /* with codes: the number of candidates, the nearest by code, whose distances
                       are computed; 0 (default): all. Radius queries compute all */
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
    gnomon_metric metric;           /* L2 (p-stable, k-means), COSINE (simhash, cross-polytope,
                                       spherical-k-means), HAMMING (bit-sampling), JACCARD
                                       (minhash), L1 (p-stable-l1), WEIGHTED_JACCARD (icws) */
    gnomon_lsh_functions functions; /* dim is the points'; count is filled in */
    int64_t tables;                 /* 1 ... 4096; k-means: 1 */
    int64_t coarse;                 /* functions per table, which define its buckets: 1 ... 256;
                                       k-means: 1, and no fine ones and no codes */
    int64_t fine;  /* further functions, which split each bucket: 0 (default) ...; coarse + fine <=
                      256 */
    int64_t codes; /* L2, COSINE: bytes of a point's code, its projection to so many dimensions in 8
                      bits each, by which candidates are ordered before they are verified; 0
                      (default): none; at most 1024 */
    int64_t
        memory; /* bytes that the index may use in addition to the points; 0 (default): no limit */
    gnomon_lsh_search_params search_params; /* the default of queries */
} gnomon_lsh_options;

#define GNOMON_LSH_OPTIONS_INIT                                                          \
    {                                                                                    \
        sizeof(gnomon_lsh_options), GNOMON_L2, GNOMON_LSH_FUNCTIONS_INIT, 0, 0, 0, 0, 0, \
            GNOMON_LSH_SEARCH_PARAMS_INIT                                                \
    }
/* The same for bindings: see gnomon_context_options_init. */
GNOMON_API gnomon_status gnomon_lsh_options_init(gnomon_lsh_options *options, size_t size);

/* An index: sorted tables of hashed points. It holds views of the points, which must not change
 * until it is destroyed (sets of JACCARD are copied). Any number of threads may query or save one
 * index at once, each with its own context. gnomon_lsh_add, _remove and _compact need exclusive
 * access: during another call they return BUSY and change nothing, and queries during a change
 * return BUSY (for a change during a change the text is at gnomon_last_error(NULL), since the
 * index's context is in use). No call waits. gnomon_lsh_describe and _destroy must not run during a
 * change. The index is allocated by the context that created it, which must outlive it and is used
 * by calls that have no context argument.
 */
typedef struct gnomon_lsh gnomon_lsh;

/* An index without points.
 * Errors:
 *  - ARGUMENT: a member outside what its comment allows; a family that is not the metric's
 *  - NONFINITE: a centre
 *  - UNSUPPORTED: IP
 *  - MEMORY
 * On failure *out is NULL. */
GNOMON_API gnomon_status gnomon_lsh_create(gnomon_context *ctx, const gnomon_lsh_options *options,
                                           gnomon_lsh **out);
/* NULL is allowed. */
GNOMON_API void gnomon_lsh_destroy(gnomon_lsh *index);

/* Adds points, whose ids follow those before. At most 2^32 - 2 points in all. The call needs, in
 * addition to the context's memory limit, 8 bytes per point and table and 24 per point and thread.
 * Query results do not depend on how the points were divided into calls, except through the codes'
 * scale, which the first call determines. Points are in host memory. A GPU computes the keys, and
 * for the first points the tables, if they are the CPU's, bit for bit (see gnomon_hasher_apply);
 * other directions are not supported there. Codes are computed on the CPU. On failure the index is
 * unchanged.
 * Errors:
 *  - UNSUPPORTED: a magnitude above 2^500; too many points
 *  - MEMORY: also if options.memory is too small; the text says how much is needed
 *  - those of gnomon_hasher_apply */
GNOMON_API gnomon_status gnomon_lsh_add(gnomon_lsh *index, const gnomon_matrix *points);
/* The same for sparse points, which are copied. An index by L2 or COSINE holds sparse points or
 * dense ones, as the first call adds them; sparse ones on the CPU, without codes.
 * Errors:
 *  - DATA: a broken view
 *  - UNSUPPORTED: sparse points where the index holds dense ones, or the reverse; with codes; with
 *    L1 and HAMMING
 *  - those of gnomon_lsh_add */
GNOMON_API gnomon_status gnomon_lsh_add_csr(gnomon_lsh *index, const gnomon_csr *points);

/* Removes points by id: queries no longer find them. Other points keep their ids; removing a point
 * twice is no error. On failure nothing is removed.
 * Errors:
 *  - ARGUMENT: an id that does not exist
 *  - MEMORY */
GNOMON_API gnomon_status gnomon_lsh_remove(gnomon_lsh *index, const int64_t *ids, int64_t count);
/* Drops removed points from the tables, so that queries no longer skip them. On failure the index
 * is unchanged.
 * Errors: MEMORY. */
GNOMON_API gnomon_status gnomon_lsh_compact(gnomon_lsh *index);

typedef struct gnomon_lsh_info {
    size_t struct_size;         /* see gnomon/base.h */
    gnomon_lsh_options options; /* completed; descriptor and centres are the index's own */
    int64_t points;             /* number of points added; ids are below it */
    int64_t removed;
    int64_t buckets;     /* over all tables */
    int64_t largest;     /* points in the largest bucket */
    int64_t table_bytes; /* memory in addition to the points: tables, */
    int64_t code_bytes;  /* codes, */
    int64_t other_bytes; /* copied sets, the bitmap of removed points, centres, and the points of
                            k-means' lists as queries keep them: see gnomon_lsh_query */
} gnomon_lsh_info;

/* Describes an index; info->struct_size must be set. info->options.functions.descriptor and centres
 * are valid as long as the index. */
GNOMON_API void gnomon_lsh_describe(const gnomon_lsh *index, gnomon_lsh_info *info);

/* Statistics of queries, summed over the queries. */
typedef struct gnomon_lsh_work {
    size_t struct_size; /* set by the caller; see gnomon/base.h */
    int64_t buckets;    /* probed, including empty ones */
    int64_t candidates; /* distinct points found in them */
    int64_t verified;   /* whose distance was computed */
    int64_t exact;      /* queries with fewer than k candidates: all points were verified */
    double hash_seconds, search_seconds; /* elapsed */
} gnomon_lsh_work;

/* For each query, the k nearest of its candidates, or those within the radius, by exact distances,
 * in the order of (distance, id): the result of gnomon_neighbors_exact with the candidates as base.
 * options as there; its metric must be the index's. A query with fewer than k candidates is
 * answered by exact search. params NULL: those of the index. The bits do not depend on threads or
 * on the division of queries into calls. Working memory: the context's limit, and per thread 4
 * bytes per point and 12 per candidate; of k-means 8 more per point in all. By k-means a batch of
 * queries keeps what it packs in the index, until points are added or removed: a byte or two a
 * coordinate, if an eighth of the context's limit and options.memory allow it. On the CPU. out is
 * as for gnomon_neighbors_exact; work may be NULL.
 * Errors:
 *  - ARGUMENT: params
 *  - BUSY: see gnomon_lsh
 *  - DEVICE: a named device
 *  - those of gnomon_neighbors_exact */
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

/* Writes an index with its points to one file (docs/reference/formats.md), atomically: the target
 * is the old file or the complete new one. "-" is standard output. It may be the file that the
 * index was opened from: that file is then locked (flock) until it is replaced. BUSY is returned,
 * with nothing written, if another process or thread holds the lock, or if the file was replaced
 * since it was opened: open it again. Any other file that is replaced is locked too; it may have
 * been replaced meanwhile. The checksums of the file that an index was opened from are verified
 * before its content is written again: DATA if it is damaged. Any number of threads at once, as for
 * queries.
 * Errors: IO, NOT_FOUND, MEMORY, CANCELLED, BUSY, DATA; UNSUPPORTED: sparse points by L2 or COSINE.
 */
GNOMON_API gnomon_status gnomon_lsh_save(gnomon_context *ctx, const gnomon_lsh *index,
                                         const char *path);

/* Opens an index's file. It is mapped read-only, so that only the tables are read and several
 * processes share one copy. The index is like any other: it may be queried, extended, reduced and
 * saved; changes are held in memory, and the file is not modified. Header, layout, settings and
 * everything in the tables that queries rely on are checked: a malformed file is an error, never a
 * crash. Checksums and finite coordinates are not checked: see gnomon_lsh_check. The file must not
 * be modified in place while the index is open (gnomon never does that: it replaces files); it may
 * be removed or replaced.
 * Errors:
 *  - FORMAT: not an index
 *  - UNSUPPORTED: a newer version, features that this library does not know, not a regular file
 *  - NOT_FOUND, IO, TRUNCATED, DATA, MEMORY
 * On failure *out is NULL. */
GNOMON_API gnomon_status gnomon_lsh_open(gnomon_context *ctx, const char *path, gnomon_lsh **out);

/* Called for each fault, with the section and a description. */
typedef void (*gnomon_lsh_fault_fn)(void *user, const char *section, const char *fault);

/* Verifies a file against docs/reference/formats.md: checksums, order, ids, finite coordinates, and
 * that each point is in each table, in the bucket that it hashes to (which takes as long as hashing
 * all points). DATA if there is a fault (the text names the first); fn may be NULL.
 * Errors: as gnomon_lsh_open; CANCELLED. */
GNOMON_API gnomon_status gnomon_lsh_check(gnomon_context *ctx, const char *path,
                                          gnomon_lsh_fault_fn fn, void *user);

/* Writes an index to a file while its points come: neither points nor tables need to fit in memory.
 * The file has the same bytes as one saved after gnomon_lsh_add of the same points, except for
 * codes, whose scale the first call determines. Sorted runs of keys, 12 bytes per point and table,
 * and codes are kept in unnamed temporary files in TMPDIR (else /tmp). One thread at a time may use
 * a builder and its context. */
typedef struct gnomon_lsh_builder gnomon_lsh_builder;

/* A file that path leads to is locked (flock) until the builder is finished or aborted.
 * Errors: as gnomon_lsh_create; IO, NOT_FOUND; BUSY if another process or thread holds that lock.
 * On failure *out is NULL. */
GNOMON_API gnomon_status gnomon_lsh_builder_create(gnomon_context *ctx,
                                                   const gnomon_lsh_options *options,
                                                   const char *path, gnomon_lsh_builder **out);
/* Starts from an index: its points are written first, and its tables are merged with those of the
 * added points. index must not change until the builder is finished or aborted (calls that would
 * change it return BUSY); path may be the file that it was opened from. compact 1: removed points
 * are dropped from the tables and their coordinates become zeros (sets become empty), so that the
 * file no longer contains them. Other points keep their ids.
 * Errors: as gnomon_lsh_save. */
GNOMON_API gnomon_status gnomon_lsh_builder_extend(gnomon_context *ctx, const gnomon_lsh *index,
                                                   const char *path, int compact,
                                                   gnomon_lsh_builder **out);
/* Adds the next points, which may be freed afterwards. Dense points may have another type than
 * those before. After a refusal of points the builder is unchanged; after any other failure it can
 * only be aborted.
 * Errors: as gnomon_lsh_add, IO. */
GNOMON_API gnomon_status gnomon_lsh_builder_add(gnomon_lsh_builder *builder,
                                                const gnomon_matrix *points);
GNOMON_API gnomon_status gnomon_lsh_builder_add_csr(gnomon_lsh_builder *builder,
                                                    const gnomon_csr *points);
/* Writes the tables and completes the file. Frees the builder in any case; on failure the target is
 * unchanged.
 * Errors:
 *  - MEMORY: also when options.memory is too little
 *  - BUSY: the file that the index was opened from, which is to be replaced, was replaced by
 *    another process
 *  - IO, CANCELLED */
GNOMON_API gnomon_status gnomon_lsh_builder_finish(gnomon_lsh_builder *builder);
/* Discards everything written; the target is unchanged. NULL is allowed. */
GNOMON_API void gnomon_lsh_builder_abort(gnomon_lsh_builder *builder);

/* ---- tuning by a recall guarantee ---- */

/* The guarantee for an index: the recall, the share of true neighbours that queries find, averaged
 * over queries, is at least 'recall'. */
typedef struct gnomon_lsh_guarantee {
    size_t struct_size;   /* see gnomon/base.h */
    gnomon_metric metric; /* default L2 */
    double recall;        /* above 0, below 1; default 0.9 */
    double confidence;    /* above 0.5, below 1; default 0.95 */
    int64_t k;            /* the number of neighbours; 0 (default): all within radius */
    double radius;        /* read with k 0 */
    int64_t memory;  /* bytes that the index may use in addition to the points; 0 (default): as many
                        as the points use */
    int64_t queries; /* the most queries for the test: 100 ... 100000; default 1000 */
    uint64_t seed;
    const gnomon_descriptor *descriptor; /* of gnomon_lsh_functions; NULL: gaussian */
    int slower; /* 1: build an index even if exact search is expected to be faster; default 0 */
    gnomon_lsh_family family; /* of hash functions, one of the metric's; 0 (default): any */
    int64_t uses; /* queries that the index will answer, so that tuning and building count in its
                     cost; 0 (default): unknown, many */
} gnomon_lsh_guarantee;

#define GNOMON_LSH_GUARANTEE_INIT                                                        \
    {                                                                                    \
        sizeof(gnomon_lsh_guarantee), GNOMON_L2, 0.9, 0.95, 0, 0.0, 0, 1000, 0, NULL, 0, \
            (gnomon_lsh_family)0, 0                                                      \
    }
/* The same for bindings: see gnomon_context_options_init. */
GNOMON_API gnomon_status gnomon_lsh_guarantee_init(gnomon_lsh_guarantee *options, size_t size);

/* Settings that were considered. Recall and candidates were measured with other queries than the
 * test's; for settings that were not tested, on a sample of the points if there are many. cost is
 * by the model of docs/reference/lsh.md. */
typedef struct gnomon_lsh_trial {
    gnomon_lsh_family family;
    double width;
    int64_t sides, tables, functions; /* per table; with two levels those of the coarse buckets, */
    int64_t fine;                     /* and the fine functions; 0: one level */
    int64_t probes, rerank;           /* rerank 0: all candidates */
    int64_t coarse, limit; /* two levels: coarse buckets probed after the fine ones, until there are
                              'limit' candidates */
    double recall, candidates, cost; /* candidates per query; nanoseconds per query on one thread */
    int64_t bytes;   /* memory of the index in addition to the points, without what queries keep */
    int chosen;      /* tested: 1 failed, 2 kept */
    int64_t centres; /* k-means */
} gnomon_lsh_trial;

typedef struct gnomon_lsh_tuning {
    size_t struct_size; /* set by the caller; see gnomon/base.h */
    int exact;          /* 1: no index meets the guarantee, or none is faster than exact search */
    const char *reason; /* for exact search; "" otherwise; static storage */
    double
        recall; /* measured: mean over the test's queries; biased upwards if the test ended early */
    double bound;          /* recall is above it with the guarantee's confidence */
    int64_t tested, asked; /* queries of the test, and those used to measure the trials */
    double exact_cost; /* of exact search, nanoseconds per query on one thread, by the same model */
    gnomon_lsh_trial
        *trials; /* by family, width, functions and tables; from the context's allocator */
    int64_t trial_count;
} gnomon_lsh_tuning;

/* Frees what a call allocated into tuning, by the same context, and clears it; NULL is allowed. */
GNOMON_API void gnomon_lsh_tuning_free(gnomon_context *ctx, gnomon_lsh_tuning *tuning);

/* Chooses family, parameters and search parameters for the points, builds the index and tests it.
 * queries (dense or NULL): a sample of the expected queries; NULL: points, each without itself,
 * which centres are not trained on where half of the points are others. At most half of them are
 * used for the choice, the others for the test.
 *
 * The test measures the recall of each query, a number in [0, 1]. Recalls of different queries are
 * independent, and a lower confidence bound on their mean by betting holds for any distribution and
 * after any number of queries (Waudby-Smith & Ramdas 2024), so that the test ends as soon as it is
 * decided. The guarantee is met when that bound reaches guarantee.recall. Up to four settings are
 * tested with the same queries, with a half, a quarter, an eighth and an eighth of the failure
 * probability, so that the confidence holds for the whole. If no settings pass or are expected to,
 * or exact search is cheaper by the model, *out is NULL and tuning->exact is 1: search exactly.
 * With guarantee.uses the model compares the remaining work with exact search of that many queries:
 * at the start (asked is then 0), before an index is built, and before each test. Otherwise it
 * compares one query. With k the guarantee also holds if the given queries are all that will be
 * asked; with a radius only queries with neighbours count.
 *
 * The choice depends on the points, queries and guarantee alone, not on measured times. points must
 * not change until the caller destroys *out. tuning->struct_size must be set;
 * gnomon_lsh_tuning_free frees its content. On the CPU. Threads: see gnomon_context.
 * Errors:
 *  - ARGUMENT
 *  - UNSUPPORTED: IP
 *  - DEVICE: a named device
 *  - those of gnomon_neighbors_exact and gnomon_lsh_add
 * On failure *out is NULL. */
GNOMON_API gnomon_status gnomon_lsh_tune(gnomon_context *ctx, const gnomon_lsh_guarantee *guarantee,
                                         const gnomon_matrix *points, const gnomon_matrix *queries,
                                         gnomon_lsh **out, gnomon_lsh_tuning *tuning);
/* The same for sparse points; by L1 exact search is the answer. */
GNOMON_API gnomon_status gnomon_lsh_tune_csr(gnomon_context *ctx,
                                             const gnomon_lsh_guarantee *guarantee,
                                             const gnomon_csr *points, const gnomon_csr *queries,
                                             gnomon_lsh **out, gnomon_lsh_tuning *tuning);

#ifdef __cplusplus
}
#endif
#endif

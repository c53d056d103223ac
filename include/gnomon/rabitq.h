/* gnomon/rabitq.h: codes of 1 to 8 bits a coordinate, and nearest neighbours by them: RaBitQ (Gao &
 * Long 2024) and its form of several bits (Gao et al. 2024).
 *
 * A point less the mean of all points is rotated at random and rounded, coordinate by coordinate.
 * From a code the squared distance of any query is estimated without bias, with a bound on the
 * error. A search scans all codes, then computes in fp64 the distances of those points that the
 * bound does not exclude, so that its answers come with a guarantee.
 *
 * The smallest complete program:
 *
 *     #include <gnomon/rabitq.h>
 *     #include <stdio.h>
 *
 *     int main(void)
 *     {
 *         float points[4 * 2] = {0, 0, 1, 0, 5, 5, 6, 5}, point[2] = {5, 5};
 *         const gnomon_matrix base = gnomon_matrix_rowmajor(points, GNOMON_F32, 4, 2);
 *         const gnomon_matrix query = gnomon_matrix_rowmajor(point, GNOMON_F32, 1, 2);
 *         gnomon_rabitq_options o = GNOMON_RABITQ_OPTIONS_INIT;
 *         gnomon_search_options wanted = GNOMON_SEARCH_OPTIONS_INIT;
 *         gnomon_neighbors found = {.struct_size = sizeof found};
 *         gnomon_rabitq *index = NULL;
 *         gnomon_context *ctx;
 *         wanted.k = 1;
 *         gnomon_status status = gnomon_context_create(NULL, &ctx);
 *         if (status == GNOMON_OK) status = gnomon_rabitq_create(ctx, &o, &base, &index);
 *         if (status == GNOMON_OK)
 *             status = gnomon_rabitq_query(ctx, index, &query, &wanted, NULL, &found);
 *         if (status == GNOMON_OK) printf("%d\n", (int)found.ids[0]); // 2
 *         gnomon_neighbors_free(ctx, &found);
 *         gnomon_rabitq_destroy(index);
 *         gnomon_context_destroy(ctx);
 *         return status;
 *     }
 *
 * docs/reference/rabitq.md specifies codes, estimates and bounds. */
#ifndef GNOMON_RABITQ_H
#define GNOMON_RABITQ_H

#include <gnomon/search.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gnomon_rabitq_options {
    size_t struct_size;   /* see gnomon/base.h */
    gnomon_metric metric; /* L2 (default) or COSINE, whose points are divided by their norms */
    int64_t bits;         /* of a coordinate's code: 1 ... 8; default 4 */
    uint64_t seed;        /* of the rotation; default 0 */
    int codes_only; /* 1: the points are not kept: queries are answered by estimates alone; default
                       0 */
} gnomon_rabitq_options;

#define GNOMON_RABITQ_OPTIONS_INIT                                                \
    {                                                                             \
        sizeof(gnomon_rabitq_options), GNOMON_L2, (int64_t)4, (uint64_t)0, (int)0 \
    }
/* The same for bindings: see gnomon_context_options_init. */
GNOMON_API gnomon_status gnomon_rabitq_options_init(gnomon_rabitq_options *options, size_t size);

/* How much of the answers a query finds. */
typedef struct gnomon_rabitq_params {
    size_t struct_size; /* see gnomon/base.h */
    double recall; /* above 0, at most 1. 1 (default): the answers are exact, by a bound that always
                      holds. Less: each of the k nearest is found with at least this probability by
                      the law of uniformly drawn rotations, so that the expected recall is no less.
                      The index's rotations come near that law: docs/reference/rabitq.md */
    int64_t rerank; /* 0 (default): what 'recall' needs. Else the distances of so many points are
                       computed, the nearest by estimate, at least k; recall is not read */
} gnomon_rabitq_params;

#define GNOMON_RABITQ_PARAMS_INIT                           \
    {                                                       \
        sizeof(gnomon_rabitq_params), (double)1, (int64_t)0 \
    }
/* The same for bindings: see gnomon_context_options_init. */
GNOMON_API gnomon_status gnomon_rabitq_params_init(gnomon_rabitq_params *options, size_t size);

/* Codes of points. It holds a view of the points, which must not change until it is destroyed,
 * unless codes_only. It does not change once it is made: any number of threads may use it at once,
 * each with its own context. Allocated by the context that created it, which must outlive it. */
typedef struct gnomon_rabitq gnomon_rabitq;

/* Codes of points (n x dim, n from 1 to 2^32 - 2, dim from 1 to 65,536), of any type and strides,
 * in host memory. On the CPU. The bits do not depend on threads, memory limit or instruction set.
 * Codes take ceil(dim / 16) * 2 * bits bytes a point (dim at least 32) and 8 (1 bit) or 12 more;
 * the call needs 16 bytes a point beside them.
 * Errors:
 *  - ARGUMENT: an option outside what its comment allows; no points; a metric that has no codes
 *  - UNSUPPORTED: a magnitude above 2^500; larger sizes
 *  - NONFINITE: naming row and column
 *  - DTYPE, DEVICE (a named device), MEMORY, CANCELLED
 * On failure *out is NULL. */
GNOMON_API gnomon_status gnomon_rabitq_create(gnomon_context *ctx,
                                              const gnomon_rabitq_options *options,
                                              const gnomon_matrix *points, gnomon_rabitq **out);
/* NULL is allowed. */
GNOMON_API void gnomon_rabitq_destroy(gnomon_rabitq *index);

typedef struct gnomon_rabitq_info {
    size_t struct_size; /* see gnomon/base.h */
    gnomon_rabitq_options options;
    int64_t points, dim;
    int64_t code_bytes; /* of all codes with their factors; the points come beside them */
} gnomon_rabitq_info;

/* Describes an index; info->struct_size must be set. */
GNOMON_API void gnomon_rabitq_describe(const gnomon_rabitq *index, gnomon_rabitq_info *info);

/* Estimates of squared distances: L2 |q - x|^2, COSINE |q/|q| - x/|x||^2 = 2 (1 - cos), a zero
 * vector staying one. estimates is queries x points, F32 or F64, any strides but 0. Over uniformly
 * drawn rotations they are unbiased. bounds, of the same shape, or NULL: |estimate - squared
 * distance| is at most that, for each pair with a probability of at least 1 - failure by the law of
 * such rotations, which the index's come near; with failure 0 always. failure: 0 to below 1; not
 * read without bounds. Queries are not rounded here. Both are infinite where a query is 2^511 times
 * as far from the points' mean as the farthest point, or farther. One estimate takes about as long
 * as a distance in fp64.
 * Errors:
 *  - ARGUMENT, SHAPE, DTYPE, NONFINITE, DEVICE, MEMORY, CANCELLED
 *  - UNSUPPORTED: a magnitude above 2^500 */
GNOMON_API gnomon_status gnomon_rabitq_estimate(gnomon_context *ctx, const gnomon_rabitq *index,
                                                const gnomon_matrix *queries, double failure,
                                                const gnomon_matrix *estimates,
                                                const gnomon_matrix *bounds);

/* For each query the k nearest points, in the order of (distance, id), as params tell; NULL: those
 * of GNOMON_RABITQ_PARAMS_INIT. The metric of options must be the index's, and k at least 1; filter
 * and exclude are as for gnomon_neighbors_exact. Distances are those of gnomon_neighbors_exact, bit
 * for bit; with codes_only they and their order come from estimates, a negative one counting as 0,
 * and params must be NULL. out as there: 'compared' counts codes, 'verified' distances in fp64. The
 * bits do not depend on threads, memory limit, instruction set or the division of queries into
 * calls. Working memory: the context's limit, or, where that is more, what one query and the
 * threads take: 16 bytes and 4 a thread for each of 12 k + 64 candidates (8 rerank; 16 k + 256 with
 * codes_only), at least 2048 and no more than points; 132 bytes a coordinate; and for each thread
 * 272 KiB and 82 bytes a coordinate. On the CPU.
 * Errors:
 *  - ARGUMENT: options, params; more neighbours than points that may be answers
 *  - those of gnomon_neighbors_exact */
GNOMON_API gnomon_status gnomon_rabitq_query(gnomon_context *ctx, const gnomon_rabitq *index,
                                             const gnomon_matrix *queries,
                                             const gnomon_search_options *options,
                                             const gnomon_rabitq_params *params,
                                             gnomon_neighbors *out);

/* ---- files ---- */

/* Writes codes, and the points unless codes_only, to one file (docs/reference/formats.md),
 * atomically: the target is the old file or the complete new one. "-" is standard output.
 * Errors: IO, NOT_FOUND, MEMORY, CANCELLED, BUSY; DATA: the file that the index was opened from is
 * damaged. */
GNOMON_API gnomon_status gnomon_rabitq_save(gnomon_context *ctx, const gnomon_rabitq *index,
                                            const char *path);

/* Opens such a file, mapped read-only. Header, layout and settings are checked: a malformed file is
 * an error, never a crash. Checksums of codes and points are not checked: see gnomon_rabitq_check.
 * The file must not be modified in place while the index is open.
 * Errors:
 *  - FORMAT: not such an index
 *  - UNSUPPORTED: a newer version, features that this library does not know, not a regular file
 *  - NOT_FOUND, IO, TRUNCATED, DATA, MEMORY
 * On failure *out is NULL. */
GNOMON_API gnomon_status gnomon_rabitq_open(gnomon_context *ctx, const char *path,
                                            gnomon_rabitq **out);

/* Called for each fault, with the section and a description. */
typedef void (*gnomon_rabitq_fault_fn)(void *user, const char *section, const char *fault);

/* Verifies a file: checksums, finite coordinates, and with the points that codes and factors are
 * theirs. DATA if there is a fault (the text names the first); fn may be NULL.
 * Errors: as gnomon_rabitq_open; CANCELLED. */
GNOMON_API gnomon_status gnomon_rabitq_check(gnomon_context *ctx, const char *path,
                                             gnomon_rabitq_fault_fn fn, void *user);

#ifdef __cplusplus
}
#endif
#endif

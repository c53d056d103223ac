/* gnomon/sparse_index.h: inverted indexes of sparse points: exact nearest neighbours by queries
 * that read only the lists of their own columns, and files that are searched without being read.
 *
 * The header has, in this order: indexes and their queries; files; builders, which make and change
 * files.
 *
 * The smallest complete program:
 *
 *     #include <gnomon/sparse_index.h>
 *     #include <stdio.h>
 *
 *     int main(void)
 *     {
 *         const int64_t offsets[] = {0, 2, 3, 5}, columns[] = {0, 1, 1, 0, 2}, row[] = {0, 1};
 *         const float values[] = {1, 2, 1, 3, 1};
 *         const gnomon_csr points = {3, 4, offsets, columns, values, GNOMON_F32};
 *         const gnomon_csr query = {1, 4, row, columns, values, GNOMON_F32};
 *         gnomon_search_options wanted = GNOMON_SEARCH_OPTIONS_INIT;
 *         gnomon_neighbors found = {.struct_size = sizeof found};
 *         gnomon_sparse_index *index = NULL;
 *         gnomon_context *ctx;
 *         wanted.metric = GNOMON_COSINE;
 *         wanted.k = 1;
 *         gnomon_status status = gnomon_context_create(NULL, &ctx);
 *         if (status == GNOMON_OK)
 *             status = gnomon_sparse_index_create(ctx, GNOMON_COSINE, &points, &index);
 *         if (status == GNOMON_OK)
 *             status = gnomon_sparse_index_query_csr(ctx, index, &query, &wanted, &found);
 *         if (status == GNOMON_OK) printf("%d\n", (int)found.ids[0]); // 2
 *         gnomon_neighbors_free(ctx, &found);
 *         gnomon_sparse_index_destroy(index);
 *         gnomon_context_destroy(ctx);
 *         return status;
 *     }
 *
 * docs/reference/search.md explains the method, docs/reference/formats.md defines the file. */
#ifndef GNOMON_SPARSE_INDEX_H
#define GNOMON_SPARSE_INDEX_H

#include <gnomon/search.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An index of sparse points for one metric: L2, COSINE, IP or L1. It never changes: any number of
 * threads may query it at once, each with its own context. A builder makes a changed copy in a
 * file. It is allocated by the context that created it, which must outlive it. */
typedef struct gnomon_sparse_index gnomon_sparse_index;

/* An index in memory. The points are copied, in fp64, 16 bytes a nonzero, and the lists take 8
 * bytes a nonzero. At most 2^32 - 2 points.
 * Errors:
 *  - ARGUMENT: a metric that is none of the four; a view
 *  - UNSUPPORTED: a magnitude above 2^500; too many points
 *  - DATA, NONFINITE: naming the point and column
 *  - MEMORY
 * On failure *out is NULL. */
GNOMON_API gnomon_status gnomon_sparse_index_create(gnomon_context *ctx, gnomon_metric metric,
                                                    const gnomon_csr *points,
                                                    gnomon_sparse_index **out);
/* NULL is allowed. */
GNOMON_API void gnomon_sparse_index_destroy(gnomon_sparse_index *index);

typedef struct gnomon_sparse_index_info {
    size_t struct_size; /* set by the caller; see gnomon/base.h */
    gnomon_metric metric;
    int64_t points; /* that were ever added, removed ones too; ids are below it */
    int64_t removed;
    int64_t dim;           /* columns of the points */
    int64_t nonzeros;      /* of all points */
    int64_t columns;       /* that have a nonzero */
    int64_t heavy_columns; /* of these, in the block */
    int64_t point_bytes;   /* of the rows in fp64 */
    int64_t index_bytes;   /* of lists, block and norms */
} gnomon_sparse_index_info;

/* Describes an index; info->struct_size must be set. */
GNOMON_API void gnomon_sparse_index_describe(const gnomon_sparse_index *index,
                                             gnomon_sparse_index_info *info);

/* The k nearest points of each query, or those within the radius: ids and distances, ties too, are
 * those of gnomon_neighbors_exact_csr with the index's points as base and a filter that leaves
 * removed ones out, bit for bit. options as there; its metric must be the index's. Working memory:
 * the context's limit, and per thread 1.5 MiB and 24 bytes per k. On the CPU. out is as for
 * gnomon_neighbors_exact.
 * Errors:
 *  - DATA: a part of the file that the query reads is damaged
 *  - DEVICE: a named device, queries in a device's memory
 *  - those of gnomon_neighbors_exact_csr */
GNOMON_API gnomon_status gnomon_sparse_index_query(gnomon_context *ctx,
                                                   const gnomon_sparse_index *index,
                                                   const gnomon_matrix *queries,
                                                   const gnomon_search_options *options,
                                                   gnomon_neighbors *out);
GNOMON_API gnomon_status gnomon_sparse_index_query_csr(gnomon_context *ctx,
                                                       const gnomon_sparse_index *index,
                                                       const gnomon_csr *queries,
                                                       const gnomon_search_options *options,
                                                       gnomon_neighbors *out);

/* ---- files ---- */

/* Opens an index's file. It is mapped read-only: queries read the lists of their columns, the block
 * and the rows that they verify, and several processes share one copy. Opening reads the header,
 * the section table, the settings and what is kept per column. A query checks what it reads, so
 * that a malformed file is an error, never a crash; checksums are not verified: see
 * gnomon_sparse_index_check. The file must not be modified in place while the index is open (gnomon
 * never does that: it replaces files); it may be removed or replaced.
 * Errors:
 *  - FORMAT: not an index of sparse points
 *  - UNSUPPORTED: a newer version, features that this library does not know, not a regular file
 *  - NOT_FOUND, IO, TRUNCATED, DATA, MEMORY
 * On failure *out is NULL. */
GNOMON_API gnomon_status gnomon_sparse_index_open(gnomon_context *ctx, const char *path,
                                                  gnomon_sparse_index **out);

/* Called for each fault, with the section and a description. */
typedef void (*gnomon_sparse_fault_fn)(void *user, const char *section, const char *fault);

/* Verifies a file against docs/reference/formats.md: checksums, the order of columns and ids,
 * finite coordinates, and that lists, block and norms are those of the rows, which are computed
 * again. DATA if there is a fault (the text names the first); fn may be NULL.
 * Errors: as gnomon_sparse_index_open; CANCELLED. */
GNOMON_API gnomon_status gnomon_sparse_index_check(gnomon_context *ctx, const char *path,
                                                   gnomon_sparse_fault_fn fn, void *user);

/* ---- builders ---- */

/* Writes an index to a file while its points come, atomically: the target is the old file or the
 * complete new one. Points and half of the lists are kept in unnamed temporary files in TMPDIR
 * (else /tmp), 28 bytes a nonzero. Working memory: the context's limit, 24 bytes a point, and what
 * the longest list takes. The bytes of the file depend only on the points in their order and on
 * which are removed. One thread at a time may use a builder and its context. */
typedef struct gnomon_sparse_builder gnomon_sparse_builder;

/* An index of points with 'dim' columns, 1 ... 2^56. path "-" is standard output. A file that path
 * leads to is locked (flock) until the builder is finished or aborted.
 * Errors:
 *  - ARGUMENT: metric, dim
 *  - IO, NOT_FOUND, MEMORY
 *  - BUSY: another process or thread holds that lock
 * On failure *out is NULL. */
GNOMON_API gnomon_status gnomon_sparse_builder_create(gnomon_context *ctx, gnomon_metric metric,
                                                      int64_t dim, const char *path,
                                                      gnomon_sparse_builder **out);
/* Starts from an index: its points come first, and its removed points stay removed. path may be the
 * file that it was opened from: that file is then locked until it is replaced; BUSY if another
 * process or thread holds the lock, or if the file was replaced since it was opened: open it again.
 * compact 1: the rows of removed points become empty, so that the file no longer contains them.
 * Other points keep their ids. The checksums of the file that the index was opened from are
 * verified first: DATA if it is damaged. The index must not be destroyed before the builder.
 * Errors: those of gnomon_sparse_builder_create; DATA, CANCELLED. */
GNOMON_API gnomon_status gnomon_sparse_builder_extend(gnomon_context *ctx,
                                                      const gnomon_sparse_index *index,
                                                      const char *path, int compact,
                                                      gnomon_sparse_builder **out);
/* Adds the next points, whose ids follow those before; they may be freed afterwards. After a
 * refusal of points the builder is unchanged; after any other failure it can only be aborted.
 * Errors:
 *  - SHAPE: another number of columns
 *  - those of gnomon_sparse_index_create; IO */
GNOMON_API gnomon_status gnomon_sparse_builder_add_csr(gnomon_sparse_builder *builder,
                                                       const gnomon_csr *points);
/* Removes points by id: queries no longer find them. Other points keep their ids; removing a point
 * twice is no error. On failure nothing is removed.
 * Errors:
 *  - ARGUMENT: an id that does not exist
 *  - MEMORY */
GNOMON_API gnomon_status gnomon_sparse_builder_remove(gnomon_sparse_builder *builder,
                                                      const int64_t *ids, int64_t count);
/* Writes the lists and completes the file. Frees the builder in any case; on failure the target is
 * unchanged.
 * Errors:
 *  - BUSY: the file that the index was opened from, which is to be replaced, was replaced by
 *    another process
 *  - IO, MEMORY, CANCELLED */
GNOMON_API gnomon_status gnomon_sparse_builder_finish(gnomon_sparse_builder *builder);
/* Discards everything written; the target is unchanged. NULL is allowed. */
GNOMON_API void gnomon_sparse_builder_abort(gnomon_sparse_builder *builder);

#ifdef __cplusplus
}
#endif
#endif

/* gnomon/comm.h: jobs on several processes (ranks), whose messages an existing engine moves.
 *
 * An engine (MPI, a task system, threads of one process) fills a table of calls, a gnomon_comm. The
 * jobs below divide their work among the ranks and give the bytes of the plain call for every
 * number of ranks: what a rank computes does not depend on the division, and rank 0 puts partial
 * results together in the order of the data, not of their arrival.
 *
 * The smallest complete program:
 *
 *     #include <gnomon/comm.h>
 *     #include <stdio.h>
 *
 *     int main(void)
 *     {
 *         float points[4 * 2] = {0, 0, 1, 0, 5, 5, 9, 9}, point[2] = {6, 6};
 *         const gnomon_matrix query = gnomon_matrix_rowmajor(point, GNOMON_F32, 1, 2);
 *         gnomon_search_options o = GNOMON_SEARCH_OPTIONS_INIT;
 *         gnomon_neighbors found = {.struct_size = sizeof found};
 *         gnomon_search *search = NULL;
 *         gnomon_comm_group *group = NULL;
 *         gnomon_comm comm = GNOMON_COMM_INIT;
 *         gnomon_context *ctx;
 *         int64_t first, count;
 *         o.k = 1;
 *         gnomon_status status = gnomon_context_create(NULL, &ctx);
 *         if (status == GNOMON_OK) status = gnomon_comm_group_create(ctx, 1, &group);
 *         if (status == GNOMON_OK) status = gnomon_comm_group_rank(group, 0, &comm);
 *         if (status == GNOMON_OK) status = gnomon_search_create(ctx, &query, &o, &search);
 *         if (status == GNOMON_OK) status = gnomon_comm_share(ctx, &comm, 4, &first, &count);
 *         if (status == GNOMON_OK) {
 *             const gnomon_matrix rows =
 *                 gnomon_matrix_rowmajor(points + 2 * first, GNOMON_F32, count, 2);
 *             status = gnomon_search_first_id(search, first);
 *             if (status == GNOMON_OK) status = gnomon_search_add(search, &rows);
 *         }
 *         if (status == GNOMON_OK) status = gnomon_comm_neighbors(ctx, &comm, search, &found);
 *         if (status == GNOMON_OK && comm.rank == 0) printf("%d\n", (int)found.ids[0]); // 2
 *         if (status != GNOMON_OK && comm.abort != NULL) comm.abort(comm.user, status);
 *         gnomon_neighbors_free(ctx, &found);
 *         gnomon_search_destroy(search);
 *         gnomon_comm_close(&comm);
 *         gnomon_comm_group_destroy(group);
 *         gnomon_context_destroy(ctx);
 *         return status;
 *     }
 *
 * That is a group of one rank, which searches its share of the base, all of it. Under mpiexec
 * gnomon_comm_open(ctx, "mpi", &comm) takes the place of the group.
 *
 * Every call below is collective, if not said otherwise: all ranks make the same calls in the same
 * order, each with a context of its own. A rank that fails between two of them tells the others by
 * gnomon_comm_agree, or ends them by the engine's abort; else they wait for it. Inside a call the
 * failure of a rank is that of all: each returns its status, and the text names the rank. That goes
 * for bad arguments of gnomon_comm_deal, gnomon_comm_neighbors, joins and deduplications too, but
 * for a comm that is none.
 *
 * Partial results travel in the messages of docs/reference/formats.md, with a version and a
 * checksum. All ranks must run the same version on processors of the same byte order.
 *
 * docs/reference/comm.md shows how to start ranks, docs/internals/scale.md what they cost. */
#ifndef GNOMON_COMM_H
#define GNOMON_COMM_H

#include <gnomon/join.h>
#include <gnomon/lsh.h>
#include <gnomon/search.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The engine: one rank's calls. Filled by gnomon_comm_open, by gnomon_comm_group_rank, or by the
 * caller, who initialises it by GNOMON_COMM_INIT. Jobs copy the struct; what 'user' points to stays
 * the engine's and must outlive the job. Calls come from the thread that made the collective call,
 * one at a time. 'to' and 'from' are in [0, size) and never the own rank; bytes is never 0.
 *
 * Messages of one rank to another arrive in the order in which they were sent, whole and unchanged;
 * between other pairs there is no order. */
typedef struct gnomon_comm {
    size_t struct_size;       /* see gnomon/base.h */
    void *user;               /* of the calls below */
    int rank, size;           /* this rank, in [0, size) */
    int host_rank, host_size; /* the same among the ranks of this host; 0 and 1 if not known */
    /* Sends bytes to a rank. The data may be changed on return. May wait for the receiver. */
    gnomon_status (*send)(void *user, int to, const void *data, int64_t bytes);
    /* Waits for the next bytes of a rank: as many as one call of its send gives. */
    gnomon_status (*receive)(void *user, int from, void *data, int64_t bytes);
    /* Why the last call failed: a line that names the rank where one is at fault. Static, or valid
     * until the next call. */
    const char *(*reason)(void *user);
    /* Ends all ranks at once, with this exit code where the engine has one. Need not return. */
    void (*abort)(void *user, int code);
    /* Waits until all ranks close, and ends the engine. NULL: there is nothing to end. */
    void (*close)(void *user);
} gnomon_comm;

#define GNOMON_COMM_INIT                                                    \
    {                                                                       \
        sizeof(gnomon_comm), NULL, 0, 1, 0, 1, NULL, NULL, NULL, NULL, NULL \
    }
/* The same for bindings: see gnomon_context_options_init. */
GNOMON_API gnomon_status gnomon_comm_init(gnomon_comm *options, size_t size);

/* ---- engines ---- */

/* Opens an engine that is a plugin, libgnomon_comm_NAME.so, looked for where device plugins are:
 *  - "mpich", "openmpi": MPI by that implementation. MPI is initialised unless the program has done
 *    so, for calls of one thread;
 *  - "mpi": of those the one whose mpiexec started this process; else the first that is found, with
 *    one rank.
 * Fills *comm, whose struct_size must be set; the caller ends it by gnomon_comm_close. A process
 * opens one engine at a time.
 * Errors:
 *  - ARGUMENT: name
 *  - UNSUPPORTED: no such plugin, or it can't be loaded; the text has the reason
 *  - COMM: the engine does not start */
GNOMON_API gnomon_status gnomon_comm_open(gnomon_context *ctx, const char *name, gnomon_comm *comm);
/* Closes an engine after success, on all ranks, by its own call: MPI is finalised if
 * gnomon_comm_open initialised it. After a failure call abort instead. NULL is allowed. */
GNOMON_API void gnomon_comm_close(const gnomon_comm *comm);

/* Ranks that are threads of this process: for tests, and for programs that have one thread per
 * device. */
typedef struct gnomon_comm_group gnomon_comm_group;

/* Not collective. size: from 1 to 1024. The caller frees *out by gnomon_comm_group_destroy when all
 * ranks are done; the context may be gone before. On failure *out is NULL.
 * Errors: ARGUMENT, MEMORY. */
GNOMON_API gnomon_status gnomon_comm_group_create(gnomon_context *ctx, int size,
                                                  gnomon_comm_group **out);
/* Fills *comm, whose struct_size must be set, with a rank's calls. Not collective; a thread uses
 * the result with a context of its own. After abort the calls of all ranks fail.
 * Errors: ARGUMENT. */
GNOMON_API gnomon_status gnomon_comm_group_rank(gnomon_comm_group *group, int rank,
                                                gnomon_comm *comm);
/* NULL is allowed. */
GNOMON_API void gnomon_comm_group_destroy(gnomon_comm_group *group);

/* ---- what jobs are made of ---- */

/* A rank's share of 'total' rows: count of them from first on, in the order of the ranks, as equal
 * as can be. Not collective.
 * Errors: ARGUMENT (comm; total is negative). */
GNOMON_API gnomon_status gnomon_comm_share(gnomon_context *ctx, const gnomon_comm *comm,
                                           int64_t total, int64_t *first, int64_t *count);

/* Rank 0's bytes to all ranks: data is read there and written elsewhere. bytes is the same on all
 * ranks, and may be 0.
 * Errors: ARGUMENT; COMM, after which only abort is of use, since others may wait for this rank:
 * also where a message is damaged, is of another call, or there is no memory for it. */
GNOMON_API gnomon_status gnomon_comm_broadcast(gnomon_context *ctx, const gnomon_comm *comm,
                                               void *data, int64_t bytes);

/* Each rank says how it fares, in *code: 0 for well. All get the code of the first rank, in their
 * order, that is not well, and that rank in *rank (may be NULL); 0 and -1 if all are.
 * Errors: those of gnomon_comm_broadcast. */
GNOMON_API gnomon_status gnomon_comm_agree(gnomon_context *ctx, const gnomon_comm *comm, int *code,
                                           int *rank);

/* Makes a piece: sets *data and *bytes, valid until the next call; or *bytes to -1 when there is no
 * such piece, nor any after it. Called with ascending numbers, on the rank that owns them. */
typedef gnomon_status (*gnomon_comm_make_fn)(void *user, int64_t piece, const void **data,
                                             int64_t *bytes);
/* Takes a piece, on rank 0: each of them, in ascending order. */
typedef gnomon_status (*gnomon_comm_take_fn)(void *user, int64_t piece, const void *data,
                                             int64_t bytes);

/* Deals pieces 0, 1, ... out: piece i is made by rank i modulo size and taken by rank 0. A rank
 * makes its next piece while rank 0 takes the last one. It ends with the first piece that is not
 * there, or with the failure of a make or take, which all ranks return. 'take' may be NULL except
 * on rank 0. Functions that fail without the context's text have the name of their status for one.
 * Errors: ARGUMENT; those of the functions and of gnomon_comm_broadcast. */
GNOMON_API gnomon_status gnomon_comm_deal(gnomon_context *ctx, const gnomon_comm *comm,
                                          gnomon_comm_make_fn make, gnomon_comm_take_fn take,
                                          void *user);

/* ---- jobs ----
 *
 * Joins, deduplications, factorisations and least squares take the ranks as options.comm: see
 * gnomon/join.h, gnomon/dedup.h, gnomon/svd.h, gnomon/lstsq.h. */

/* gnomon_search_finish of a search whose base is divided among the ranks. Every rank has searched
 * the same queries with the same options in its own rows of the base, which follow those of the
 * rank before (gnomon_search_first_id; some ranks may have none). Rank 0 gets the answers in *out,
 * with the bits of one search of the whole base, and frees them by gnomon_neighbors_free; compared
 * and verified are sums over the ranks, which depend on the division. Elsewhere *out has no
 * answers. Moves 16 bytes per query and neighbour from each rank; working memory: three times that
 * on top of the search.
 * Errors:
 *  - those of gnomon_search_finish; so is ARGUMENT if a query has fewer than k possible answers in
 *    the whole base
 *  - SHAPE: ranks with other queries or other options
 *  - those of gnomon_comm_broadcast */
GNOMON_API gnomon_status gnomon_comm_neighbors(gnomon_context *ctx, const gnomon_comm *comm,
                                               gnomon_search *search, gnomon_neighbors *out);

/* Builds an index of dense points and writes it to path: the file of gnomon_lsh_builder_create,
 * _add and _finish with the same points and options, byte for byte, whose options.codes must be 0.
 * Each rank gives the same points, reads its own pieces of them by points->read (rows ascend from
 * call to call) and hashes these; rank 0 takes points and keys in their order, merges the tables
 * and writes. path is rank 0's; elsewhere it is not looked at. Moves a point and 8 bytes for each
 * of its tables from the rank that has hashed it, in pieces of at most 8 MiB and an eighth of the
 * memory limit, or one point; two such pieces are in a rank's memory on top of a builder's.
 * Errors:
 *  - those of a builder's calls, and what 'read' returns
 *  - NONFINITE: the text has the row among all points
 *  - UNSUPPORTED: a metric of sets; options.codes
 *  - SHAPE: ranks with other points or other options
 *  - those of gnomon_comm_broadcast
 * On failure the file is not changed. */
GNOMON_API gnomon_status gnomon_comm_lsh_build(gnomon_context *ctx, const gnomon_comm *comm,
                                               const gnomon_lsh_options *options,
                                               const gnomon_join_points *points, const char *path);

#ifdef __cplusplus
}
#endif
#endif

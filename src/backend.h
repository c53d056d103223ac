/* backend.h: what a device plugin offers the core.
 *
 * A plugin is a shared library that exports one function, gnomon_plugin_entry, and is
 * found by src/base/plugin.c. It never calls back into the core (whose internal symbols
 * are hidden), so each entry that can fail writes its reason, one line without a final
 * full stop, into the buffer it is given. */
#ifndef GNOMON_BACKEND_H
#define GNOMON_BACKEND_H

#include <gnomon/base.h>

/* Raised whenever the table or a job struct changes; both sides must agree. */
enum { GNOMON_DEVICE_INTERFACE = 24 };

/* What a device may ask of the core while it does a job, from the calling thread. */
typedef struct gnomon_device_host {
    void *user;
    /* Tells how many points are done; nonzero asks to stop and return CANCELLED. */
    int (*progress)(void *user, int64_t done, int64_t total);
    /* Runs tasks 0 ... count - 1 on the context's threads and returns when all are done. */
    void (*parallel)(void *user, int64_t count, void (*task)(void *arg, int64_t task, int worker),
                     void *arg);
    /* Names the argument, and the row and column there (-1: none), that the failure is about with
     * which the call is going to return: beside its reason, which names it too. */
    void (*about)(void *user, const char *argument, int64_t row, int64_t col);
    /* Called once all input has been checked, before the first result is written, unless input is
     * not checked at all: other devices may have parts of it. Ends the job unless it returns OK. */
    gnomon_status (*checked)(void *user);
    int64_t row; /* number of the job's first point or query, for reasons and 'about' */
} gnomon_device_host;

/* Defined by src/project: the points, the operator, the output and the scaling. */
struct gnomon_sketch_job;
struct gnomon_matrix;
/* Defined by src/gemm: the three matrices and the scaling. */
struct gnomon_gemm_job;
/* Defined by src/svd: the matrix, what is asked for, and what comes back. */
struct gnomon_svd_job;
/* Defined by src/join: the points, the threshold, and who takes the pairs. */
struct gnomon_join_job;
/* Defined by src/search: queries and what is asked for; base points; what was found. */
struct gnomon_search_job;
struct gnomon_search_piece;
/* Defined by src/hosvd: the tensor, the ranks, the operators, and what comes back. */
struct gnomon_hosvd_job;
/* Defined by src/lsh: the functions, the points, and where values, keys or tables go. */
struct gnomon_lsh_job;
/* Defined by src/dedup: how texts become sets; where they go, and what came of them. */
struct gnomon_dedup_job;
struct gnomon_dedup_slot;
struct gnomon_dedup_sets;
/* Likewise: sets, and where the keys of their bands go. */
struct gnomon_keys_job;

typedef struct gnomon_device_table {
    int interface_version; /* GNOMON_DEVICE_INTERFACE; always first */
    const char *name;      /* NAME of libgnomon_NAME.so, "cuda" */

    /* Takes the device of that index, -1 for the calling thread's current one, into use. On
     * failure nothing is held, *state is untouched and why says what is missing; on success why
     * names the device. */
    gnomon_status (*open)(int device, void **state, char *why, size_t why_size);
    void (*close)(void *state);
    /* The number of devices: NAME:all. NULL: it can't be told. */
    int (*count)(void);
    /* May be NULL, where memory is the host's alone. The states, of different devices, are going to
     * have parts of the same jobs from now on, in threads of their own: views in the memory of any
     * of them are taken by each. Fails where they would not compute the same bits. */
    gnomon_status (*together)(void *const *states, int count, char *why, size_t why_size);
    /* Whether a view in device memory lies in this device's. May be NULL, too. */
    int (*holds)(void *state, const struct gnomon_matrix *view);
    /* Returns when all that the caller's stream (NULL: the default one) has to do so far is done.
     * May be NULL, too. */
    gnomon_status (*await)(void *state, void *stream, char *why, size_t why_size);

    /* 1 when sketch (adjoint) can do this job; 0 declines it and says why. */
    int (*supports)(void *state, const struct gnomon_sketch_job *job, int adjoint, char *why,
                    size_t why_size);
    gnomon_status (*sketch)(void *state, const struct gnomon_sketch_job *job, char *why,
                            size_t why_size);
    gnomon_status (*adjoint)(void *state, const struct gnomon_sketch_job *job, char *why,
                             size_t why_size);

    /* A sketch whose columns come in pieces. The job's views have no data: x is as large as all
     * that will come, y's type is that of the sums; op and host outlive the stream. Pieces lie
     * on the host, are checked by then, and have been read when push returns. stream_finish writes
     * y, whose type may be F32 when the sums are F64. */
    gnomon_status (*stream_open)(void *state, const struct gnomon_sketch_job *job, void **stream,
                                 char *why, size_t why_size);
    gnomon_status (*stream_push)(void *state, void *stream, const struct gnomon_matrix *piece,
                                 char *why, size_t why_size);
    gnomon_status (*stream_finish)(void *state, void *stream, const struct gnomon_matrix *y,
                                   char *why, size_t why_size);
    void (*stream_close)(void *state, void *stream);

    /* Products of matrices, as supports and sketch; both NULL when there are none. */
    int (*gemm_supports)(void *state, const struct gnomon_gemm_job *job, char *why,
                         size_t why_size);
    gnomon_status (*gemm)(void *state, const struct gnomon_gemm_job *job, char *why,
                          size_t why_size);

    /* Randomized SVD of a dense or sparse matrix, likewise. */
    int (*svd_supports)(void *state, const struct gnomon_svd_job *job, char *why, size_t why_size);
    gnomon_status (*svd)(void *state, struct gnomon_svd_job *job, char *why, size_t why_size);

    /* Similarity join, likewise. */
    int (*join_supports)(void *state, const struct gnomon_join_job *job, char *why,
                         size_t why_size);
    gnomon_status (*join)(void *state, struct gnomon_join_job *job, char *why, size_t why_size);

    /* Exact search; all NULL when there is none. Job, queries and host outlive the search. A base
     * has been read when search_add returns; texts call it base. After a failure the search can
     * only be closed. search_finish, of k nearest, tells how many each query has (k or less; of
     * sets those alone that share something), and their ids and distances in the order of answers,
     * k places per query. */
    int (*search_supports)(void *state, const struct gnomon_search_job *job, char *why,
                           size_t why_size);
    gnomon_status (*search_open)(void *state, const struct gnomon_search_job *job, void **search,
                                 char *why, size_t why_size);
    gnomon_status (*search_add)(void *state, void *search, struct gnomon_search_piece *piece,
                                char *why, size_t why_size);
    gnomon_status (*search_finish)(void *state, void *search, int64_t *counts, int64_t *ids,
                                   double *distances, char *why, size_t why_size);
    void (*search_close)(void *state, void *search);

    /* HOSVD of a dense tensor, likewise. */
    int (*hosvd_supports)(void *state, const struct gnomon_hosvd_job *job, char *why,
                          size_t why_size);
    gnomon_status (*hosvd)(void *state, struct gnomon_hosvd_job *job, char *why, size_t why_size);

    /* Hashing of points, likewise. */
    int (*lsh_supports)(void *state, const struct gnomon_lsh_job *job, char *why, size_t why_size);
    gnomon_status (*lsh)(void *state, const struct gnomon_lsh_job *job, char *why, size_t why_size);

    /* A sketch of sparse rows, the job's csr, likewise. */
    int (*sparse_supports)(void *state, const struct gnomon_sketch_job *job, char *why,
                           size_t why_size);
    gnomon_status (*sparse_sketch)(void *state, const struct gnomon_sketch_job *job, char *why,
                                   size_t why_size);

    /* Texts that become sets of hashed n-grams, with the bits of src/dedup/ngrams.c, likewise.
     * There are GNOMON_DEDUP_SLOTS slots, used in turn: dedup_slot tells where the next texts go,
     * dedup_push gives so many texts of so many bytes, and returns while the device is at work;
     * dedup_take waits for the slot that was pushed first of those not taken. A slot has been taken
     * before it is asked for again. After a failure the texts can only be closed. */
    int (*dedup_supports)(void *state, const struct gnomon_dedup_job *job, char *why,
                          size_t why_size);
    gnomon_status (*dedup_open)(void *state, const struct gnomon_dedup_job *job, void **texts,
                                char *why, size_t why_size);
    void (*dedup_slot)(void *state, void *texts, struct gnomon_dedup_slot *slot);
    gnomon_status (*dedup_push)(void *state, void *texts, int64_t count, int64_t bytes, char *why,
                                size_t why_size);
    gnomon_status (*dedup_take)(void *state, void *texts, struct gnomon_dedup_sets *sets, char *why,
                                size_t why_size);
    void (*dedup_close)(void *state, void *texts);
    /* Keys of bands of sets, of every job; NULL: the CPU makes them. */
    gnomon_status (*dedup_keys)(void *state, const struct gnomon_keys_job *job, char *why,
                                size_t why_size);
} gnomon_device_table;

typedef const gnomon_device_table *(*gnomon_plugin_entry_fn)(void);

#define GNOMON_PLUGIN_ENTRY "gnomon_plugin_entry"

#endif

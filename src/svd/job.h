/* svd/job.h: a factorisation as a device is given it: arguments checked, defaults filled in. */
#ifndef GNOMON_SVD_JOB_H
#define GNOMON_SVD_JOB_H

#include "backend.h"
#include "operator/operator.h"

#include <gnomon/svd.h>

/* What the core does for a device in the middle of the work, from the calling thread. */
typedef struct gnomon_svd_host {
    void *user;
    /* How many of the falling singular values s[0 .. columns) to keep, rest being what A - Q B
     * measures (NaN: not known). */
    int64_t (*choose_rank)(void *user, const double *s, int64_t columns, double rest);
    /* Makes room for U (rows x rank) and Vt (rank x cols), row-major, or hands out the caller's
     * views. */
    gnomon_status (*make_room)(void *user, int64_t rank, gnomon_matrix *u, gnomon_matrix *vt);
    /* What |E|_F is below, E g having these lengths for fresh test vectors g. */
    double (*bound_of)(void *user, const double *lengths, int64_t count);
    /* y (rows x columns, row-major, of the work's type, in host memory) = sparse rows times
     * 2^-job->exponent times the operator's first rows, transposed. What it fails with is handed
     * on, and no reason is given. */
    gnomon_status (*sketch)(void *user, const gnomon_matrix *y);
} gnomon_svd_host;

typedef struct gnomon_svd_job {
    const gnomon_matrix *a;      /* of rows that come piece by piece: without data */
    const gnomon_csr *csr;       /* sparse rows, in host memory; a is then without data, too */
    const gnomon_svd_rows *rows; /* these, in the work's type, as often as it takes (with
                                    options->single_pass once); NULL: none. What 'next' or 'rewind'
                                    fails with is handed on, and no reason is given */
    const gnomon_svd_options *options; /* rank is set */
    const gnomon_operator *op; /* of the projection, as many rows as columns may be needed */
    const gnomon_operator *test_vectors; /* gaussian, not scaled */
    const gnomon_operator *psi; /* the same for rows that are read once: of their second sketch */
    int64_t columns;            /* of the projection, at most */
    int64_t memory_limit;       /* bytes of working memory on the host, for each device */
    void *const *others; /* states of other devices of the plugin's, which may do parts of it */
    int other_count;
    /* With options->center, what is factored is A less the mean of its columns: */
    double *mean;     /* theirs, of the unscaled matrix, in host memory */
    int has_mean;     /* 0: a lies in the device's memory, which is read there; mean has room */
    int64_t sum_rows; /* then it is summed in pairs of numbers by groups of so many rows, which are
                         added in order (svd/center.h) */
    double centered_norm; /* of sparse rows less the mean, times 2^-centered_exponent */
    int centered_exponent;
    const gnomon_device_host *host;
    const gnomon_svd_host *calls;

    /* ---- results. Numbers are those of A times 2^-exponent. ---- */
    int exponent; /* with has_mean, dense rows: begins as what their magnitudes ask for */
    double norm;
    int64_t used_columns;
    double *s;       /* room for 'columns' of them */
    double rest;     /* |A - Q B|_F where it was measured, else NaN */
    double residual; /* |A - U S Vt|_F where options->measure asks for it */
    /* For each of test_power + 1 steps and each test vector: the length of (E E^T)^i E g, each step
     * begun with what the one before gave divided by its longest. */
    double *lengths;
    int64_t passes, cholesky, householder;
    double project_seconds, power_seconds, orthonormalise_seconds, small_seconds, certify_seconds;
} gnomon_svd_job;

#endif

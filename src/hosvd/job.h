/* hosvd/job.h: a tensor's factorisation as a device is given it: arguments checked, defaults filled
 * in. Modes are in the inner order (hosvd/slabs.h). */
#ifndef GNOMON_HOSVD_JOB_H
#define GNOMON_HOSVD_JOB_H

#include "backend.h"
#include "operator/operator.h"

#include <gnomon/hosvd.h>

/* What a device asks for on the way, from the calling thread; the core has the reason of a failure.
 */
typedef struct gnomon_hosvd_calls {
    /* job->op[mode] = an operator of so many rows (or as many as there are columns) for the
     * unfolding of that mode of a tensor of such sizes; the one before it is destroyed. */
    gnomon_status (*draw)(void *user, int mode, const int64_t *size, int64_t columns);
    /* job->core, core_step, factor and values, for these ranks; once. */
    gnomon_status (*make_room)(void *user, const int64_t *rank);
    void *user;
} gnomon_hosvd_calls;

typedef struct gnomon_hosvd_job {
    gnomon_matrix x; /* one row of all elements; or, with gaps between them, the indices of the
                        outermost mode as rows */
    bool f64;        /* work in double precision */
    int modes;
    int64_t size[GNOMON_TENSOR_MODES], rank[GNOMON_TENSOR_MODES];
    int64_t columns[GNOMON_TENSOR_MODES]; /* of the projection; 0: not projected */
    /* A mode that is projected has an operator of min(columns, d) rows, d being the product of the
     * other sizes or, with 'sequential', of those and of the ranks of the modes before it. With a
     * tolerance there is none yet, columns are 0 and ranks the most that are allowed; the device
     * puts what it finds in their place. */
    const gnomon_operator *op[GNOMON_TENSOR_MODES];
    int order[GNOMON_TENSOR_MODES]; /* as gnomon_hosvd_order_at_ends makes it */
    double tolerance;
    int64_t oversample; /* with a tolerance */
    int sequential, power, measure;
    int64_t memory_limit; /* bytes of working memory on the host, for each device */
    void *const *others;  /* states of other devices of the plugin's, which may bring parts of x */
    int other_count;
    const gnomon_device_host *host;
    const gnomon_hosvd_calls *calls;

    /* Host memory for the result, in X's scale, as make_room gives it: the core, whose mode n steps
     * by core_step[n], and the factors, row-major. */
    void *core, *factor[GNOMON_TENSOR_MODES]; /* F64 when f64, else F32 */
    int64_t core_step[GNOMON_TENSOR_MODES];

    /* ---- results. Numbers are those of X times 2^-exponent. ---- */
    int exponent;
    double *values[GNOMON_TENSOR_MODES]; /* room for rank[n] */
    double norm, residual;
    gnomon_residual residual_by;
    int64_t bad_row, bad_col; /* in x, after NONFINITE */
    int64_t passes, cholesky, householder;
    double check_seconds, project_seconds, power_seconds, orthonormalise_seconds, shrink_seconds,
        small_seconds, measure_seconds;
} gnomon_hosvd_job;

#endif

/* gemm/alone.h: the product on the calling thread, for tasks that make many small ones. */
#ifndef GNOMON_GEMM_ALONE_H
#define GNOMON_GEMM_ALONE_H

#include "gemm/job.h"
#include "kernels.h"

/* Bytes of scratch that it takes. */
int64_t gnomon_gemm_alone_bytes(void);

/* job->c = alpha a b + beta c, no size 0 and alpha not 0; memory_limit, form and stream do not
 * apply. scratch is aligned to GNOMON_ALIGN. The bits are those of gnomon_gemm_on_cpu for inner
 * sizes up to 4096; of longer ones, sums of so many are added up in c's type. */
void gnomon_gemm_alone(const gnomon_kernels *kernels, const gnomon_gemm_job *job, void *scratch);

#endif

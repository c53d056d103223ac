/* cuda/gemm/job.h: what the plugin does with a product's job (gemm/job.h). */
#ifndef GNOMON_CUDA_GEMM_JOB_H
#define GNOMON_CUDA_GEMM_JOB_H

#include "cuda/runtime/state.h"

struct gnomon_gemm_job;
gnomon_status gcu_gemm_job(gcu_state *s, const gnomon_gemm_job *job, gcu_why why);

#endif

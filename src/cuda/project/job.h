/* cuda/project/job.h: what the plugin does with a sketch's job. */
#ifndef GNOMON_CUDA_PROJECT_JOB_H
#define GNOMON_CUDA_PROJECT_JOB_H

#include "cuda/runtime/state.h"

/* ---- sketch.cu, adjoint/job.cu ---- */

gnomon_status gcu_sketch_job(gcu_state *s, const gnomon_sketch_job *job, gcu_why why);
bool gcu_adjoint_supported(const gcu_state *s, const gnomon_sketch_job *job, gcu_why why);
gnomon_status gcu_adjoint_job(gcu_state *s, const gnomon_sketch_job *job, gcu_why why);

/* ---- csr/job.cu ---- */

bool gcu_csr_supported(gcu_state *s, const gnomon_sketch_job *job, gcu_why why);
gnomon_status gcu_csr_job(gcu_state *s, const gnomon_sketch_job *job, gcu_why why);

/* ---- stream.cu ---- */

struct gcu_sketch_stream;
gnomon_status gcu_sketch_stream_open(gcu_state *s, const gnomon_sketch_job *job,
                                     gcu_sketch_stream **out, gcu_why why);
gnomon_status gcu_sketch_stream_push(gcu_state *s, gcu_sketch_stream *t, const gnomon_matrix *piece,
                                     gcu_why why);
gnomon_status gcu_sketch_stream_finish(gcu_state *s, gcu_sketch_stream *t, const gnomon_matrix *y,
                                       gcu_why why);
void gcu_sketch_stream_close(gcu_state *s, gcu_sketch_stream *t);

#endif

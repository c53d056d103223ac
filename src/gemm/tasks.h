/* gemm/tasks.h: what products on the CPU have in common when they are divided. */
#ifndef GNOMON_GEMM_TASKS_H
#define GNOMON_GEMM_TASKS_H

#include <gnomon/base.h>

/* Of 'tasks', how many go between two reports of progress, for about a tenth of a second, in which
 * a slot does 'some' multiplications and a task takes 'work'. Without a listener there is nothing
 * to stop for. */
int64_t gnomon_gemm_wave(gnomon_context *ctx, int64_t tasks, int64_t slots, double some,
                         double work);

/* The failure of a product whose least memory is more than the limit. */
gnomon_status gnomon_gemm_no_room(gnomon_context *ctx, int64_t limit, int64_t needed);

#endif

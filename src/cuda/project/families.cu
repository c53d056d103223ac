/* Which family of kernels does which task. */
#include "cuda/project/family.h"

extern "C" {
#include "base/dtype.h"
}

#include <stdio.h>

/* In the order in which they are asked; the last one takes everything. */
static const gcu_family *const families[] = {
    &gcu_dense_points, &gcu_dense_rows, &gcu_very_sparse, &gcu_sjlt,
    &gcu_srht,         &gcu_generic,    nullptr,
};

bool gcu_sums_in_fp32(const gcu_task *task, char *why, size_t why_size)
{
    if (task->f64 || task->out.dtype != GNOMON_F32) {
        snprintf(why, why_size, "sums in fp64 are asked for");
        return false;
    }
    if (gnomon_dtype_needs_f64(task->x.dtype)) {
        snprintf(why, why_size, "points of type %s need sums in fp64",
                 gnomon_dtype_name(task->x.dtype));
        return false;
    }
    return true;
}

const gcu_family *gcu_choose(const gcu_task *task, char *why, size_t why_size)
{
    snprintf(why, why_size, "no kernels for this operator and element type");
    for (const gcu_family *const *f = families; *f; f++)
        if ((*f)->supports(task, why, why_size)) return *f;
    return nullptr;
}

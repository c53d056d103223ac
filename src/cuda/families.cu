/* Which family of kernels does which task. */
#include "cuda/family.h"

#include <stdio.h>

/* In the order in which they are asked; the last one takes everything. */
static const gcu_family *const families[] = {
    &gcu_dense_points, &gcu_dense_rows, &gcu_very_sparse, &gcu_sjlt,
    &gcu_srht,         &gcu_generic,    nullptr,
};

const gcu_family *gcu_choose(const gcu_task *task, char *why, size_t why_size)
{
    snprintf(why, why_size, "no kernels for this operator and element type");
    for (const gcu_family *const *f = families; *f; f++)
        if ((*f)->supports(task, why, why_size)) return *f;
    return nullptr;
}

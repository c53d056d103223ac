/* cpu/kernels.c: the tables by name. */
#include "cpu/levels.h"

#include <string.h>

const gnomon_kernels *gnomon_cpu_kernels(const char *isa)
{
    static const gnomon_kernels *const tables[] = {
        &gnomon_kernels_portable,
#if defined(__x86_64__)
        &gnomon_kernels_avx2,
        &gnomon_kernels_avx512,
        &gnomon_kernels_avx512_vnni,
        &gnomon_kernels_amx,
#elif defined(__aarch64__)
        &gnomon_kernels_neon,
#endif
    };
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
        if (strcmp(tables[t]->isa, isa) == 0) return tables[t];
    }
    return NULL;
}

const gnomon_kernels *gnomon_context_kernels(const gnomon_context *ctx)
{
    const gnomon_kernels *kernels = gnomon_cpu_kernels(gnomon_context_isa(ctx));
    return kernels ? kernels : gnomon_cpu_kernels("portable");
}

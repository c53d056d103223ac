/* What an index holds, freed: the context's memory, or a part of the file that is mapped. */
#include "rabitq/rabitq.h"

#include "base/memory.h"
#include "lsh/index.h"

#include <sys/mman.h>

void gnomon_rabitq_destroy(gnomon_rabitq *index)
{
    if (index == NULL) return;
    gnomon_context *ctx = index->ctx;
    gnomon_free(ctx, index->signs);
    gnomon_free(ctx, index->dither);
    if (index->map == NULL) {
        gnomon_free(ctx, index->centre);
        gnomon_free(ctx, index->codes);
        gnomon_free(ctx, index->factors);
    } else {
        munmap((void *)index->map, (size_t)index->map_bytes);
    }
    if (index->origin != NULL) gnomon_free(ctx, index->origin->path);
    gnomon_free(ctx, index->origin);
    gnomon_free(ctx, index);
}

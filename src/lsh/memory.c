/* An index's arrays: the context's memory, or a part of the file that is mapped. */
#include "base/memory.h"
#include "lsh/index.h"

void gnomon_lsh_drop(const gnomon_lsh *index, const void *array)
{
    const uintptr_t at = (uintptr_t)array, map = (uintptr_t)index->map;
    if (index->map && at >= map && at - map < index->map_bytes) return;
    gnomon_free(index->ctx, (void *)array);
}

void gnomon_lsh_free_tables(const gnomon_lsh *index, gnomon_table *tables)
{
    for (int64_t t = 0; tables && t < index->options.tables; t++) {
        gnomon_lsh_drop(index, tables[t].keys);
        gnomon_lsh_drop(index, tables[t].first);
        gnomon_lsh_drop(index, tables[t].ids);
        gnomon_lsh_drop(index, tables[t].directory);
        tables[t] = (gnomon_table){0};
    }
}

/* An index's arrays: the context's memory, or a part of the file that is mapped; how many bytes
 * they are. */
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

int64_t gnomon_lsh_sets_bytes(const gnomon_sets *s)
{
    if (s->offsets == NULL) return 0;
    return 8 * (s->count + 1 + s->offsets[s->count] * (s->weights != NULL ? 2 : 1)) +
           (s->factors != NULL ? 8 * s->count : 0);
}

int64_t gnomon_lsh_other_bytes(const gnomon_lsh *index)
{
    const gnomon_sets *s = &index->sets;
    return (index->gone ? gnomon_lsh_bitmap_bytes(index->points) : 0) + gnomon_lsh_sets_bytes(s) +
           gnomon_hasher_centre_bytes(index->hasher);
}

int64_t gnomon_lsh_code_bytes(const gnomon_lsh *index)
{
    return index->codes.code ? index->points * index->codes.count : 0;
}

int64_t gnomon_lsh_bytes(const gnomon_lsh *index)
{
    int64_t bytes = gnomon_lsh_code_bytes(index) + gnomon_lsh_other_bytes(index);
    for (int64_t t = 0; t < index->options.tables && index->tables[t].first; t++)
        bytes += gnomon_table_bytes(&index->tables[t]);
    return bytes;
}

/* What test_lsh.cu needs of an index's inside, whose headers are C. */
#include "lsh/index.h"

#include <stdio.h>
#include <string.h>

int lsh_same_tables(const gnomon_lsh *a, const gnomon_lsh *b);

int lsh_same_tables(const gnomon_lsh *a, const gnomon_lsh *b)
{
    for (int64_t t = 0; t < a->options.tables; t++) {
        const gnomon_table *x = &a->tables[t], *y = &b->tables[t];
        if (x->entries != y->entries || x->buckets != y->buckets || x->bits != y->bits) {
            printf("table %lld: %lld and %lld buckets\n", (long long)t, (long long)x->buckets,
                   (long long)y->buckets);
            return 0;
        }
        const size_t cells = ((size_t)1 << x->bits) + 1, buckets = (size_t)x->buckets;
        const int keys = memcmp(x->keys, y->keys, buckets * 8) != 0;
        const int first = memcmp(x->first, y->first, (buckets + 1) * 4) != 0;
        const int ids = memcmp(x->ids, y->ids, (size_t)x->entries * 4) != 0;
        const int directory = memcmp(x->directory, y->directory, cells * 4) != 0;
        if (keys || first || ids || directory) {
            printf("table %lld: differ in keys %d, first %d, ids %d, directory %d\n", (long long)t,
                   keys, first, ids, directory);
            return 0;
        }
    }
    return 1;
}

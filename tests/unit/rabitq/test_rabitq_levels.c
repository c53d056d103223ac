/* Answers by codes at every instruction set level. */
#include "rabitq_testing.h"

#include "base/isa.h"

/* Threads, memory, instruction sets, division into calls: the same bits, where bounds fail too. */
static void the_cut_leaves_no_trace(void **state)
{
    (void)state;
    static const kind some[] = {CLUSTERS, TERNARY, EQUAL};
    const char *before = getenv("GNOMON_ISA");
    char saved[32] = "";
    if (before != NULL) snprintf(saved, sizeof saved, "%s", before);
    for (int like = 0; like < 3; like++) {
        const gnomon_matrix base = make_points(some[like], GNOMON_F32, 8401, 51, 1);
        const gnomon_matrix queries = make_points(some[like], GNOMON_F32, 70, 51, 2);
        for (int64_t bits = 1; bits <= 8; bits += like > 0 ? 7 : bits == 2 ? 2 : 1) {
            gnomon_neighbors first = {0};
            double *estimates = malloc(70 * 8401 * 8), *others = malloc(70 * 8401 * 8);
            for (int level = -1; level < 2 * GNOMON_ISA_COUNT; level++) {
                const gnomon_isa isa = (gnomon_isa)(level < 0 ? 0 : level / 2);
                if (!gnomon_isa_available(isa)) continue;
                setenv("GNOMON_ISA", gnomon_isa_name(isa), 1);
                gnomon_context *ctx =
                    context_of(level % 2 == 0 ? 1 : 5, level % 2 == 0 ? 0 : 1 << 20);
                const gnomon_search_options o = wish(GNOMON_L2, 10);
                gnomon_rabitq *index = index_of(ctx, GNOMON_L2, bits, 1, &base);
                gnomon_neighbors got = search(ctx, index, &queries, &o, 0.3, 0);
                const gnomon_matrix e =
                    gnomon_matrix_rowmajor(level < 0 ? estimates : others, GNOMON_F64, 70, 8401);
                expect(ctx, gnomon_rabitq_estimate(ctx, index, &queries, 0, &e, NULL), GNOMON_OK);
                if (level < 0) {
                    first.struct_size = sizeof first;
                    first.queries = 70;
                    first.k = 10;
                    first.ids = malloc(700 * 8);
                    first.distances = malloc(700 * 8);
                    memcpy(first.ids, got.ids, 700 * 8);
                    memcpy(first.distances, got.distances, 700 * 8);
                } else {
                    same_answers(&got, &first, gnomon_isa_name(isa));
                    assert_memory_equal(estimates, others, 70 * 8401 * 8);
                }
                gnomon_neighbors_free(ctx, &got);
                /* one query, a few queries */
                for (int64_t from = 0; from < 70; from += 23) {
                    gnomon_matrix part = queries;
                    part.rows = from == 23 ? 1 : 70 - from < 23 ? 70 - from : 23;
                    part.data = (float *)queries.data + from * 51;
                    gnomon_neighbors few = search(ctx, index, &part, &o, 0.3, 0);
                    gnomon_neighbors due = first;
                    due.queries = part.rows;
                    due.ids += from * 10;
                    due.distances += from * 10;
                    same_answers(&few, &due, "a part of the queries");
                    gnomon_neighbors_free(ctx, &few);
                }
                gnomon_rabitq_destroy(index);
                gnomon_context_destroy(ctx);
            }
            free(first.ids);
            free(first.distances);
            free(estimates);
            free(others);
        }
        free(base.data);
        free(queries.data);
    }
    if (before != NULL)
        setenv("GNOMON_ISA", saved, 1);
    else
        unsetenv("GNOMON_ISA");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cut_leaves_no_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

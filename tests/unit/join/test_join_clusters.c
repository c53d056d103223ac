/* Clusters beside a search of the graph: labels in order of first points, representatives by their
 * pairs. */
#include "search_testing.h"

#include <gnomon/join.h>

enum { N = 200 };

/* Labels the points that can be reached from 'from'. */
static void reach(const bool (*near)[N], int64_t from, int64_t label, int64_t *labels)
{
    labels[from] = label;
    for (int64_t j = 0; j < N; j++)
        if (near[from][j] && labels[j] < 0) reach(near, j, label, labels);
}

static void clusters_of_random_graphs(void **state)
{
    (void)state;
    gnomon_context *ctx = context_of(1, 0);
    uint64_t seed = 3;
    for (int round = 0; round < 60; round++) {
        static bool near[N][N];
        int64_t degree[N] = {0}, want[N], labels[N], representatives[N];
        gnomon_clusters *c;
        memset(near, 0, sizeof near);
        expect(ctx, gnomon_clusters_create(ctx, N, &c), GNOMON_OK);
        for (int pair = 0; pair < 4 * round; pair++) { /* none, few, one giant */
            const int64_t i = (int64_t)(draw_bits(&seed) % N), j = (int64_t)(draw_bits(&seed) % N);
            if (i == j) continue;
            near[i][j] = near[j][i] = true;
            degree[i]++;
            degree[j]++;
            expect(ctx, gnomon_clusters_add(c, i, j), GNOMON_OK);
        }
        int64_t count = 0, first[N];
        for (int64_t i = 0; i < N; i++)
            want[i] = -1;
        for (int64_t i = 0; i < N; i++) {
            if (want[i] >= 0) continue;
            first[count] = i;
            reach((const bool(*)[N])near, i, count++, want);
        }
        assert_int_equal(gnomon_clusters_label(c, labels, representatives), count);
        assert_memory_equal(labels, want, sizeof want);
        for (int64_t l = 0; l < count; l++) { /* the most pairs, and of those the first */
            int64_t best = first[l];
            for (int64_t i = first[l]; i < N; i++)
                if (want[i] == l && degree[i] > degree[best]) best = i;
            assert_int_equal(representatives[l], best);
        }
        gnomon_clusters_destroy(c);
    }
    gnomon_context_destroy(ctx);
}

/* Chains that are added from either end and from the middle: the trees are joined by their sizes,
 * so that a million pairs stay quick. */
static void long_chains(void **state)
{
    (void)state;
    enum { MANY = 1000000 };
    gnomon_context *ctx = context_of(1, 0);
    int64_t *labels = malloc(MANY * sizeof *labels);
    for (int order = 0; order < 3; order++) {
        gnomon_clusters *c;
        expect(ctx, gnomon_clusters_create(ctx, MANY, &c), GNOMON_OK);
        for (int64_t at = 0; at + 1 < MANY; at++) {
            const int64_t i = order == 0   ? at
                              : order == 1 ? MANY - 2 - at
                                           : (at * 7919) % (MANY - 1);
            expect(ctx, gnomon_clusters_add(c, i, i + 1), GNOMON_OK);
        }
        assert_int_equal(gnomon_clusters_label(c, labels, NULL), 1);
        assert_int_equal(labels[MANY - 1], 0);
        gnomon_clusters_destroy(c);
    }
    free(labels);
    gnomon_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clusters_of_random_graphs),
        cmocka_unit_test(long_chains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

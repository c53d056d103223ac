/* Sorted tables and the order of probes, against plain enumeration. */
#include "lsh/probe.h"
#include "lsh/table.h"
#include "project.h"

typedef struct made {
    gnomon_table t;
    gnomon_table_scratch scratch;
    void *memory[8];
} made;

static made make_table(const uint64_t *keys, int64_t n)
{
    made m = {0};
    for (int i = 0; i < 2; i++) {
        m.memory[i] = m.scratch.keys[i] = malloc((size_t)n * 8 + 8);
        m.memory[2 + i] = m.scratch.ids[i] = malloc((size_t)n * 4 + 4);
    }
    m.t.buckets = gnomon_table_sort(keys, n, 100, &m.scratch);
    m.t.entries = n;
    m.t.bits = gnomon_table_bits(m.t.buckets);
    m.memory[4] = m.t.keys = malloc((size_t)m.t.buckets * 8 + 8);
    m.memory[5] = m.t.first = malloc((size_t)m.t.buckets * 4 + 4);
    m.memory[6] = m.t.ids = malloc((size_t)n * 4 + 4);
    m.memory[7] = m.t.directory = malloc((((size_t)1 << m.t.bits) + 1) * 4);
    gnomon_table_fill(&m.t, m.scratch.keys[0], m.scratch.ids[0]);
    return m;
}

static void free_table(made *m)
{
    for (int i = 0; i < 8; i++)
        free(m->memory[i]);
}

static void every_bucket_is_found(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 2, 3, 17, 1000, 20000};
    for (int kind = 0; kind < 4; kind++) {
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            const int64_t n = sizes[s];
            uint64_t *keys = malloc((size_t)n * 8), seed = (uint64_t)kind + 7;
            for (int64_t i = 0; i < n; i++) {
                keys[i] = next_random(&seed);
                if (kind == 1) keys[i] &= UINT64_C(0x0000001f0000000f); /* many alike, few cells */
                if (kind == 2) keys[i] |= UINT64_C(0xfffffffffffffff0); /* the top of the range */
                if (kind == 3) keys[i] &= UINT64_C(0xf00000000000000f);
            }
            made m = make_table(keys, n);
            int64_t members = 0;
            for (int64_t b = 0; b < m.t.buckets; b++) {
                assert_true(b == 0 || m.t.keys[b - 1] < m.t.keys[b]);
                assert_int_equal(gnomon_table_find(&m.t, m.t.keys[b]), b);
                for (uint32_t e = m.t.first[b]; e < m.t.first[b + 1]; e++, members++) {
                    assert_true(keys[m.t.ids[e] - 100] == m.t.keys[b]);
                    assert_true(e == m.t.first[b] || m.t.ids[e - 1] < m.t.ids[e]);
                }
            }
            assert_int_equal(members, n);
            for (int64_t i = 0; i < n; i += 1 + n / 500) {
                const uint64_t other = keys[i] ^ (UINT64_C(1) << (i % 64));
                int64_t begin, end, same = 0, in = 0;
                for (int64_t j = 0; j < n; j++) {
                    same += keys[j] == other;
                    in += keys[j] >> 32 == other >> 32;
                }
                const int64_t b = gnomon_table_find(&m.t, other);
                assert_int_equal(b < 0 ? 0 : m.t.first[b + 1] - m.t.first[b], same);
                gnomon_table_find_coarse(&m.t, (uint32_t)(other >> 32), &begin, &end);
                assert_int_equal(m.t.first[end] - m.t.first[begin], in);
            }
            free_table(&m);
            free(keys);
        }
    }
}

typedef struct expected {
    double cost;
    uint64_t sums[2];
} expected;

static int by_cost(const void *a, const void *b)
{
    const double x = ((const expected *)a)->cost, y = ((const expected *)b)->cost;
    return (x > y) - (x < y);
}

/* All sets of at most one item a function, of every table, against what the prober gives. */
static void probes_come_by_cost(void **state)
{
    (void)state;
    enum { TABLES = 3, FUNCTIONS = 4, OTHERS = 2, SETS = TABLES * 81 };
    uint64_t seed = 3;
    for (int round = 0; round < 20; round++) {
        void *memory = aligned_alloc(64, (size_t)gnomon_prober_bytes(TABLES, SETS));
        gnomon_prober p;
        expected all[SETS];
        int count = 0;
        gnomon_prober_place(&p, TABLES, SETS, memory);
        for (int t = 0; t < TABLES; t++) {
            float cost[FUNCTIONS][OTHERS];
            uint64_t step[FUNCTIONS][OTHERS];
            p.counts[t] = 0;
            p.sums[t][0] = next_random(&seed);
            p.sums[t][1] = next_random(&seed);
            for (int f = 0; f < FUNCTIONS; f++) {
                for (int o = 0; o < OTHERS; o++) {
                    /* sums of small integers are exact; equal costs in some rounds */
                    cost[f][o] = (float)(next_random(&seed) % (round % 2 ? 4 : 1000));
                    step[f][o] = next_random(&seed);
                    gnomon_prober_add(&p, t, cost[f][o], (uint32_t)f, step[f][o], f >= 2);
                }
            }
            for (int set = 1; set < 81; set++) {
                expected e = {0, {p.sums[t][0], p.sums[t][1]}};
                for (int f = 0, rest = set; f < FUNCTIONS; f++, rest /= 3) {
                    if (rest % 3 == 0) continue;
                    e.cost += (double)cost[f][rest % 3 - 1];
                    e.sums[f >= 2] += step[f][rest % 3 - 1];
                }
                all[count++] = e;
            }
        }
        qsort(all, (size_t)count, sizeof all[0], by_cost);
        gnomon_prober_begin(&p);
        bool used[SETS] = {false};
        for (int i = 0; i < count; i++) {
            int64_t table;
            uint64_t sums[2];
            assert_true(gnomon_prober_next(&p, &table, sums));
            int found = -1;
            for (int j = 0; j < count && found < 0; j++)
                if (!used[j] && all[j].sums[0] == sums[0] && all[j].sums[1] == sums[1]) found = j;
            assert_true(found >= 0);
            assert_true(all[found].cost == all[i].cost);
            used[found] = true;
        }
        int64_t table;
        uint64_t sums[2];
        assert_false(gnomon_prober_next(&p, &table, sums));
        free(memory);
    }
}

static void only_the_cheapest_items_stay(void **state)
{
    (void)state;
    enum { MANY = 500 };
    void *memory = aligned_alloc(64, (size_t)gnomon_prober_bytes(1, 10));
    gnomon_prober p;
    gnomon_prober_place(&p, 1, 10, memory);
    p.counts[0] = 0;
    for (int i = 0; i < MANY; i++)
        gnomon_prober_add(&p, 0, (float)(i * 7 % MANY), (uint32_t)i, 1, false);
    assert_int_equal(p.counts[0], GNOMON_PROBE_ITEMS);
    for (int i = 0; i < GNOMON_PROBE_ITEMS; i++)
        assert_true(p.items[i].cost == (float)i);
    free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_bucket_is_found),
                                       cmocka_unit_test(probes_come_by_cost),
                                       cmocka_unit_test(only_the_cheapest_items_stay)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

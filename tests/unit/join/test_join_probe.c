/* Members of sets that all hash to the last place of their table: probes go on at its first place,
 * and nothing behind the table is touched. */
#include <gnomon/join.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BEHIND = 4096, MARK = 0xff }; /* behind a table: what looks like places that are free */
enum { MEMBERS = 40, SETS = 60, FILLER = 3000, COLS = 1 << 21 };

static void *guarded(void *user, size_t size, size_t alignment)
{
    (void)user;
    const size_t whole = (size + BEHIND + alignment - 1) / alignment * alignment;
    unsigned char *block = aligned_alloc(alignment, whole);
    if (block != NULL) memset(block + size, MARK, whole - size);
    return block;
}

static void check_guard(void *user, void *block, size_t size)
{
    for (size_t i = size; i < size + BEHIND; i++)
        *(int *)user += ((unsigned char *)block)[i] != MARK;
    free(block);
}

/* Members in the last place of every table of up to 2^14 places. */
static void find_last(int64_t *members)
{
    int64_t count = 0;
    for (int64_t m = 0; count < MEMBERS; m++)
        if ((uint64_t)m * UINT64_C(0x9e3779b97f4a7c15) >> 50 == (1 << 14) - 1) members[count++] = m;
    assert_true(members[MEMBERS - 1] < COLS);
}

static int64_t shared_by(const gnomon_csr *x, int64_t i, int64_t j)
{
    int64_t shared = 0;
    for (int64_t a = x->offsets[i]; a < x->offsets[i + 1]; a++)
        for (int64_t b = x->offsets[j]; b < x->offsets[j + 1]; b++)
            shared += x->indices[a] == x->indices[b];
    return shared;
}

static int count_pairs(void *user, const gnomon_join_batch *batch)
{
    *(int64_t *)user += batch->count;
    return 0;
}

/* Each set has every member but those whose number plus its own is divisible by four. filler: sets
 * of other members, for which the table must grow. */
static void join_sets(int64_t filler)
{
    static int64_t members[MEMBERS], offsets[SETS + 2], indices[SETS * MEMBERS + FILLER];
    static double values[SETS * MEMBERS + FILLER];
    int64_t count = 0, want = 0, got = 0;
    find_last(members);
    for (int64_t i = 0; i < SETS; i++) {
        offsets[i] = count;
        for (int64_t m = 0; m < MEMBERS; m++)
            if ((m + i) % 4 != 0 && (m * 7 + i * 3) % 11 != 0) indices[count++] = members[m];
    }
    offsets[SETS] = count;
    for (int64_t m = 0; m < filler; m++)
        indices[count++] = m * 5;
    offsets[SETS + 1] = count;
    for (int64_t e = 0; e < count; e++)
        values[e] = 1;
    const gnomon_csr x = {SETS + 1, COLS, offsets, indices, values, GNOMON_F64};
    for (int64_t i = 0; i < SETS; i++) {
        for (int64_t j = i + 1; j < SETS; j++) {
            const double both = (double)shared_by(&x, i, j);
            const double all =
                (double)(offsets[i + 1] - offsets[i] + offsets[j + 1] - offsets[j]) - both;
            want += both > 0.6999 * all;
        }
    }
    int touched = 0;
    const gnomon_allocator allocator = {&touched, guarded, check_guard};
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_join_options o = GNOMON_JOIN_OPTIONS_INIT;
    gnomon_join_result result = {.struct_size = sizeof result};
    gnomon_context *ctx;
    options.device = "cpu";
    options.threads = 1;
    options.allocator = &allocator;
    assert_int_equal(gnomon_context_create(&options, &ctx), GNOMON_OK);
    o.metric = GNOMON_JACCARD;
    o.threshold = 0.3001;
    o.sink = count_pairs;
    o.user = &got;
    assert_int_equal(gnomon_join_csr(ctx, &x, NULL, &o, &result), GNOMON_OK);
    gnomon_context_destroy(ctx);
    assert_true(want > 0);
    assert_int_equal(got, want);
    assert_int_equal(touched, 0);
}

static void probes_go_on_at_the_first_place(void **state)
{
    (void)state;
    join_sets(0);
}

static void so_in_a_table_that_grew(void **state)
{
    (void)state;
    join_sets(FILLER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(probes_go_on_at_the_first_place),
        cmocka_unit_test(so_in_a_table_that_grew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

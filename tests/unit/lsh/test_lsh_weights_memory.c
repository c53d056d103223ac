/* Hashing rows of weights takes no more memory than the limit allows, however many members a batch
 * of rows has, and the values do not show it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <gnomon/lsh.h>

#include <stdatomic.h>
#include <stdlib.h>

enum { N = 3000, MEMBERS = 120, COUNT = 4, LIMIT = 1 << 20 };

static _Atomic int64_t held, most;

static void *allocate(void *user, size_t size, size_t alignment)
{
    (void)user;
    const int64_t now = atomic_fetch_add(&held, (int64_t)size) + (int64_t)size;
    if (now > atomic_load(&most)) atomic_store(&most, now);
    return aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

static void release(void *user, void *pointer, size_t size)
{
    (void)user;
    if (pointer != NULL) atomic_fetch_sub(&held, (int64_t)size);
    free(pointer);
}

static int64_t offsets[N + 1], indices[N * MEMBERS];
static double weights[N * MEMBERS];
static int32_t values[2][N * COUNT];

static int64_t hash(int64_t limit, const gnomon_csr *m, int32_t *out)
{
    const gnomon_allocator counted = {NULL, allocate, release};
    gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_lsh_functions f = GNOMON_LSH_FUNCTIONS_INIT;
    gnomon_context *ctx;
    gnomon_hasher *h;
    o.device = "cpu";
    o.threads = 1;
    o.allocator = &counted;
    o.memory_limit = limit;
    f.family = GNOMON_LSH_ICWS;
    f.dim = m->cols;
    f.count = COUNT;
    assert_int_equal(gnomon_context_create(&o, &ctx), GNOMON_OK);
    assert_int_equal(gnomon_hasher_create(ctx, &f, &h), GNOMON_OK);
    const int64_t before = atomic_load(&held);
    atomic_store(&most, before);
    const gnomon_matrix to = gnomon_matrix_rowmajor(out, GNOMON_I32, m->rows, COUNT);
    assert_int_equal(gnomon_hasher_apply_csr(ctx, h, m, &to), GNOMON_OK);
    gnomon_hasher_destroy(h);
    gnomon_context_destroy(ctx);
    return atomic_load(&most) - before;
}

static void members_are_counted(void **state)
{
    (void)state;
    for (int64_t i = 0; i < N; i++) {
        /* one row has more than a batch may */
        const int64_t size = i == 7 ? 20000 : (i * 37) % MEMBERS;
        for (int64_t e = 0; e < size && offsets[i] + e < N * MEMBERS; e++) {
            indices[offsets[i] + e] = e * 3;
            weights[offsets[i] + e] = (double)(1 + (i + e) % 5);
        }
        offsets[i + 1] = offsets[i] + size;
    }
    const gnomon_csr m = {N, 60000, offsets, indices, weights, GNOMON_F64};
    const int64_t large = hash((int64_t)1 << 30, &m, values[0]);
    const int64_t small = hash(LIMIT, &m, values[1]);
    assert_true(large > 2 * LIMIT);
    assert_true(small <= LIMIT);
    assert_memory_equal(values[0], values[1], sizeof values[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(members_are_counted)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Nothing is written beside what was allocated: every block has a guard on either side, and shapes
 * are those whose last block, chunk or tile is far shorter than the others. */
#include "project.h"

enum { ZONE = 16384, MARK = 0xA7 };

/* Blocks that are held, with a guard of ZONE bytes before and behind each. */
typedef struct guarded {
    unsigned char *block;
    size_t size;
} guarded;

typedef struct guards {
    guarded held[256];
    int count;
    int broken; /* guards that were written to */
} guards;

static bool intact(const guarded *g)
{
    for (size_t i = 0; i < ZONE; i++)
        if (g->block[i] != MARK || g->block[ZONE + g->size + i] != MARK) return false;
    return true;
}

static void *guarded_allocate(void *user, size_t size, size_t alignment)
{
    guards *all = user;
    assert_true(all->count < (int)(sizeof all->held / sizeof *all->held));
    const size_t whole = (size + 2 * ZONE + alignment - 1) / alignment * alignment;
    unsigned char *block = aligned_alloc(alignment, whole);
    if (!block) return NULL;
    memset(block, MARK, whole);
    memset(block + ZONE, 0x3C, size); /* what was never set is no zero */
    all->held[all->count++] = (guarded){block, size};
    return block + ZONE;
}

static void guarded_release(void *user, void *pointer, size_t size)
{
    guards *all = user;
    for (int i = 0; i < all->count; i++) {
        guarded *g = &all->held[i];
        if (g->block + ZONE != pointer) continue;
        assert_int_equal(g->size, size);
        all->broken += !intact(g);
        free(g->block);
        *g = all->held[--all->count];
        return;
    }
    fail_msg("a block that was never allocated is released");
}

static gnomon_context *guarded_context(guards *all, gnomon_allocator *allocator, int threads)
{
    *allocator = (gnomon_allocator){all, guarded_allocate, guarded_release};
    gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
    o.device = "cpu";
    o.threads = threads;
    o.allocator = allocator;
    gnomon_context *ctx = NULL;
    assert_int_equal(gnomon_context_create(&o, &ctx), GNOMON_OK);
    return ctx;
}

static void check_guards(guards *all, const char *name, int64_t n, int64_t d, int64_t k)
{
    for (int i = 0; i < all->count; i++)
        all->broken += !intact(&all->held[i]);
    if (all->broken)
        fail_msg("%s: %lld points of %lld coordinates to %lld: %d guards were written to", name,
                 (long long)n, (long long)d, (long long)k, all->broken);
}

/* The points in one call, in pieces of 'width' columns, and back. */
static void run_shape(const any_operator *a, int64_t n, int64_t d, int64_t k, int64_t width,
                      gnomon_dtype dtype, int threads)
{
    guards all = {.count = 0};
    gnomon_allocator allocator;
    gnomon_context *ctx = guarded_context(&all, &allocator, threads);
    gnomon_operator *op = make_operator(ctx, a, k, d);
    owned x = make_matrix(n, d, dtype, ROW_MAJOR), y = make_matrix(n, k, dtype, ROW_MAJOR);
    owned z = make_matrix(n, k, dtype, COL_MAJOR);
    fill_random(&x.m, 3);
    ASSERT_OK(ctx, gnomon_sketch(ctx, op, &x.m, &y.m, NULL));
    check_guards(&all, a->name, n, d, k);
    gnomon_stream *s = NULL;
    ASSERT_OK(ctx, gnomon_stream_create(ctx, op, n, dtype, NULL, &s));
    for (int64_t col = 0; col < d; col += width) {
        gnomon_matrix piece = x.m;
        piece.data = (char *)x.m.data + col * (int64_t)gnomon_dtype_size(dtype);
        piece.cols = d - col < width ? d - col : width;
        ASSERT_OK(ctx, gnomon_stream_push(s, &piece));
        check_guards(&all, a->name, n, d, k);
    }
    ASSERT_OK(ctx, gnomon_stream_finish(s, &z.m));
    gnomon_stream_destroy(s);
    assert_same_bits(&y.m, &z.m, a->name);
    ASSERT_OK(ctx, gnomon_adjoint(ctx, op, &y.m, &x.m, NULL));
    check_guards(&all, a->name, n, d, k);
    check_sentinels(&x);
    check_sentinels(&y);
    check_sentinels(&z);
    free_matrix(&x);
    free_matrix(&y);
    free_matrix(&z);
    gnomon_operator_destroy(op);
    gnomon_context_destroy(ctx);
    assert_int_equal(all.count, 0);
    assert_int_equal(all.broken, 0);
}

/* 1171 columns in 30 blocks: 29 of 40 columns and one of 11; in 12: 11 of 98 and one of 93. */
static void blocks_whose_last_is_short(void **state)
{
    (void)state;
    static const struct {
        int64_t d, k, r;
    } shapes[] = {{1171, 30, 30}, {1171, 61, 30}, {1171, 12, 12}, {145, 24, 12}, {33, 8, 8}};
    for (gnomon_kind inner = GNOMON_GAUSSIAN; inner <= GNOMON_SJLT; inner++) {
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            const int64_t d = shapes[i].d, k = shapes[i].k, r = shapes[i].r;
            if (inner == GNOMON_SJLT && k % r != 0) continue;
            const any_operator a = {gnomon_kind_name(inner),
                                    GNOMON_BLOCK,
                                    inner,
                                    0,
                                    0,
                                    inner == GNOMON_SJLT ? 1 : 0,
                                    r,
                                    0,
                                    0,
                                    0};
            static const int64_t widths[] = {5000, 1000, 40, 17};
            for (int w = 0; w < 4; w++) {
                run_shape(&a, 16, d, k, widths[w], GNOMON_F32, 1);
                run_shape(&a, 35, d, k, widths[w], GNOMON_F64, 2);
            }
        }
    }
}

/* Every kind with a chunk that is cut short, few points and many. */
static void chunks_whose_last_is_short(void **state)
{
    (void)state;
    for (int o = 0; o < OPERATORS; o++) {
        run_shape(&all_operators[o], 1, 1171, 30, 999, GNOMON_F32, 1);
        run_shape(&all_operators[o], 17, 4099, 33, 4096, GNOMON_F32, 2);
        run_shape(&all_operators[o], 33, 515, 29, 512, GNOMON_F64, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_whose_last_is_short),
        cmocka_unit_test(chunks_whose_last_is_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

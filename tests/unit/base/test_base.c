/* Statuses, contexts, error texts and the sizes that allocation checks. */
#include "base/context.h"
#include "base/error.h"
#include "base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <gnomon.h>

static void statuses_are_pinned(void **state)
{
    (void)state;
    static const struct {
        int number;
        const char *name;
    } pinned[] = {{0, "GNOMON_OK"},
                  {10, "GNOMON_ERROR_ARGUMENT"},
                  {11, "GNOMON_ERROR_SHAPE"},
                  {12, "GNOMON_ERROR_DTYPE"},
                  {13, "GNOMON_ERROR_OVERFLOW"},
                  {14, "GNOMON_ERROR_UNSUPPORTED"},
                  {15, "GNOMON_ERROR_BUSY"},
                  {30, "GNOMON_ERROR_DATA"},
                  {31, "GNOMON_ERROR_NONFINITE"},
                  {32, "GNOMON_ERROR_TRUNCATED"},
                  {33, "GNOMON_ERROR_FORMAT"},
                  {50, "GNOMON_ERROR_IO"},
                  {51, "GNOMON_ERROR_NOT_FOUND"},
                  {70, "GNOMON_ERROR_MEMORY"},
                  {90, "GNOMON_ERROR_DEVICE"},
                  {91, "GNOMON_ERROR_COMM"},
                  {110, "GNOMON_ERROR_CANCELLED"},
                  {127, "GNOMON_ERROR_INTERNAL"}};
    size_t next = 0;
    for (int number = -5; number < 300; number++) {
        const char *expected = "GNOMON_UNKNOWN_STATUS";
        if (next < sizeof pinned / sizeof *pinned && pinned[next].number == number)
            expected = pinned[next++].name;
        assert_string_equal(gnomon_status_name((gnomon_status)number), expected);
    }
    assert_int_equal(next, sizeof pinned / sizeof *pinned);
}

static void version_is_the_headers(void **state)
{
    (void)state;
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", GNOMON_VERSION_MAJOR, GNOMON_VERSION_MINOR,
             GNOMON_VERSION_PATCH);
    assert_string_equal(gnomon_version(), text);
    assert_string_equal(GNOMON_VERSION_STRING, text);
}

static void dtypes_are_pinned(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t size;
    } types[] = {{"?", 0},   {"f32", 4}, {"f64", 8}, {"f16", 2}, {"bf16", 2}, {"i8", 1},  {"u8", 1},
                 {"i16", 2}, {"u16", 2}, {"i32", 4}, {"u32", 4}, {"i64", 8},  {"u64", 8}, {"?", 0}};
    for (int i = 0; i < (int)(sizeof types / sizeof *types); i++) {
        assert_string_equal(gnomon_dtype_name((gnomon_dtype)i), types[i].name);
        assert_int_equal(gnomon_dtype_size((gnomon_dtype)i), types[i].size);
    }
    assert_int_equal(gnomon_dtype_size((gnomon_dtype)-1), 0);
}

/* Creation must fail with this status and a text that holds this part. */
static void refuses(const gnomon_context_options *options, gnomon_status status, const char *part)
{
    gnomon_context *ctx = (gnomon_context *)&ctx;
    assert_int_equal(gnomon_context_create(options, &ctx), status);
    assert_null(ctx);
    if (!strstr(gnomon_last_error(NULL), part))
        fail_msg("\"%s\" does not say \"%s\"", gnomon_last_error(NULL), part);
}

static void options_are_checked(void **state)
{
    (void)state;
    const gnomon_context_options good = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context_options o = good;
    o.threads = -1;
    refuses(&o, GNOMON_ERROR_ARGUMENT, "options.threads is -1");
    o.threads = 4097;
    refuses(&o, GNOMON_ERROR_ARGUMENT, "4096");
    o = good;
    o.memory_limit = -7;
    refuses(&o, GNOMON_ERROR_ARGUMENT, "options.memory_limit is -7");
    o = good;
    o.device = "?";
    refuses(&o, GNOMON_ERROR_ARGUMENT, "options.device is \"?\"");
    o = good;
    o.struct_size = 4;
    refuses(&o, GNOMON_ERROR_ARGUMENT, "struct_size is 4");
    const gnomon_allocator half = {NULL, NULL, NULL};
    o = good;
    o.allocator = &half;
    refuses(&o, GNOMON_ERROR_ARGUMENT, "options.allocator");
    assert_int_equal(gnomon_context_create(&good, NULL), GNOMON_ERROR_ARGUMENT);
}

static void a_context_holds_its_options(void **state)
{
    (void)state;
    gnomon_context *ctx;
    assert_int_equal(gnomon_context_create(NULL, &ctx), GNOMON_OK);
    assert_in_range(gnomon_context_threads(ctx), 1, 4096);
    assert_int_equal(gnomon_memory_limit(ctx), INT64_C(1) << 30);
    assert_int_equal(gnomon_context_device(ctx), GNOMON_DEVICE_AUTO);
    assert_string_equal(gnomon_last_error(ctx), "");
    gnomon_context_destroy(ctx);

    gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
    o.threads = 3;
    o.memory_limit = 12345;
    o.seed = UINT64_MAX;
    o.device = "cpu";
    assert_int_equal(gnomon_context_create(&o, &ctx), GNOMON_OK);
    assert_int_equal(gnomon_context_threads(ctx), 3);
    assert_int_equal(gnomon_memory_limit(ctx), 12345);
    assert_true(gnomon_context_seed(ctx) == UINT64_MAX);
    assert_int_equal(gnomon_context_device(ctx), GNOMON_DEVICE_CPU);
    gnomon_context_destroy(ctx);
    gnomon_context_destroy(NULL);
}

static void error_texts(void **state)
{
    (void)state;
    gnomon_context *a, *b;
    assert_int_equal(gnomon_context_create(NULL, &a), GNOMON_OK);
    assert_int_equal(gnomon_context_create(NULL, &b), GNOMON_OK);
    assert_int_equal(gnomon_fail(a, GNOMON_ERROR_SHAPE, "x has %d rows", 7), GNOMON_ERROR_SHAPE);
    assert_string_equal(gnomon_last_error(a), "x has 7 rows");
    assert_string_equal(gnomon_last_error(b), "");
    assert_int_equal(gnomon_fail_prefix(a, GNOMON_ERROR_DATA, "file %s", "f"), GNOMON_ERROR_DATA);
    assert_string_equal(gnomon_last_error(a), "file f: x has 7 rows");
    /* the old text as an argument of the new one */
    gnomon_fail(a, GNOMON_ERROR_DATA, "<%s>", gnomon_last_error(a));
    assert_string_equal(gnomon_last_error(a), "<file f: x has 7 rows>");
    /* too long a text is cut, never overrun */
    char big[3000];
    memset(big, 'y', sizeof big - 1);
    big[sizeof big - 1] = 0;
    gnomon_fail(b, GNOMON_ERROR_DATA, "%s", big);
    assert_int_equal(strlen(gnomon_last_error(b)), GNOMON_ERROR_TEXT - 1);
    gnomon_fail_prefix(b, GNOMON_ERROR_DATA, "%s", big);
    assert_int_equal(strlen(gnomon_last_error(b)), GNOMON_ERROR_TEXT - 1);
    gnomon_context_destroy(a);
    gnomon_context_destroy(b);
}

static void sizes_are_checked(void **state)
{
    (void)state;
    int64_t out;
    assert_true(gnomon_mul(INT64_C(3037000499), INT64_C(3037000499), &out));
    assert_true(out == INT64_C(9223372030926249001));
    assert_false(gnomon_mul(INT64_C(3037000500), INT64_C(3037000500), &out));
    assert_false(gnomon_mul(-1, 0, &out));
    assert_false(gnomon_mul(0, -1, &out));
    assert_true(gnomon_mul(0, INT64_MAX, &out) && out == 0);
    assert_true(gnomon_add(INT64_MAX - 1, 1, &out) && out == INT64_MAX);
    assert_false(gnomon_add(INT64_MAX, 1, &out));
    assert_false(gnomon_add(-1, 1, &out));

    gnomon_context *ctx;
    assert_int_equal(gnomon_context_create(NULL, &ctx), GNOMON_OK);
    void *p = &out;
    assert_int_equal(gnomon_alloc(ctx, INT64_MAX / 8 + 1, 8, "the sketch", &p),
                     GNOMON_ERROR_OVERFLOW);
    assert_null(p);
    assert_non_null(strstr(gnomon_last_error(ctx), "the sketch"));
    assert_int_equal(gnomon_alloc(ctx, INT64_MAX, 1, "x", &p), GNOMON_ERROR_OVERFLOW);
    assert_int_equal(gnomon_alloc(ctx, -1, 1, "x", &p), GNOMON_ERROR_OVERFLOW);
    assert_int_equal(gnomon_alloc(ctx, 1, SIZE_MAX, "x", &p), GNOMON_ERROR_OVERFLOW);
    assert_int_equal(gnomon_alloc(ctx, INT64_C(1) << 56, 1, "x", &p), GNOMON_ERROR_MEMORY);
    assert_null(p);
    gnomon_context_destroy(ctx);
}

/* An allocator that fails the n-th call and checks what it is given back. */
typedef struct counting {
    int64_t calls, fail_at, live_blocks, live_bytes;
} counting;

static void *counting_allocate(void *user, size_t size, size_t alignment)
{
    counting *c = user;
    assert_true(size > 0);
    assert_true(alignment && (alignment & (alignment - 1)) == 0);
    if (c->calls++ == c->fail_at) return NULL;
    c->live_blocks++;
    c->live_bytes += (int64_t)size;
    return aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

static void counting_release(void *user, void *pointer, size_t size)
{
    counting *c = user;
    assert_non_null(pointer);
    c->live_blocks--;
    c->live_bytes -= (int64_t)size;
    free(pointer);
}

static gnomon_status use_memory(gnomon_context *ctx)
{
    int64_t *numbers = NULL, *grown = NULL, *zeros = NULL;
    char *text = NULL;
    gnomon_status status = gnomon_alloc(ctx, 100, sizeof *numbers, "numbers", &numbers);
    if (status == GNOMON_OK) {
        assert_int_equal((uintptr_t)numbers % GNOMON_ALIGN, 0);
        for (int i = 0; i < 100; i++)
            numbers[i] = i;
        grown = numbers;
        status = gnomon_grow(ctx, &grown, 100, 1000, sizeof *grown, "numbers");
        for (int i = 0; i < 100; i++)
            assert_int_equal(grown[i], i);
    }
    if (status == GNOMON_OK) status = gnomon_alloc_zero(ctx, 333, 8, "zeros", &zeros);
    for (int i = 0; zeros && i < 333; i++)
        assert_int_equal(zeros[i], 0);
    if (status == GNOMON_OK) status = gnomon_copy_text(ctx, "a text", &text);
    if (text) assert_string_equal(text, "a text");
    gnomon_free(ctx, text);
    gnomon_free(ctx, zeros);
    gnomon_free(ctx, grown);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    int64_t n = 0;
    for (;; n++) {
        counting c = {.fail_at = n};
        const gnomon_allocator allocator = {&c, counting_allocate, counting_release};
        gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
        o.allocator = &allocator;
        o.threads = 2;
        gnomon_context *ctx;
        gnomon_status status = gnomon_context_create(&o, &ctx);
        if (status == GNOMON_OK) status = use_memory(ctx);
        gnomon_context_destroy(ctx);
        assert_int_equal(c.live_blocks, 0);
        assert_int_equal(c.live_bytes, 0);
        if (c.calls <= n) {
            assert_int_equal(status, GNOMON_OK);
            break;
        }
        assert_int_equal(status, GNOMON_ERROR_MEMORY);
    }
    assert_in_range(n, 6, 20); /* context, threads, and the four of use_memory */
}

static void nothing_allocated_is_null(void **state)
{
    (void)state;
    gnomon_context *ctx;
    assert_int_equal(gnomon_context_create(NULL, &ctx), GNOMON_OK);
    void *p = &ctx;
    assert_int_equal(gnomon_alloc(ctx, 0, 8, "x", &p), GNOMON_OK);
    assert_null(p);
    gnomon_free(ctx, p);
    assert_int_equal(gnomon_grow(ctx, &p, 0, 5, 8, "x"), GNOMON_OK);
    assert_non_null(p);
    assert_int_equal(gnomon_grow(ctx, &p, 5, 0, 8, "x"), GNOMON_OK);
    assert_null(p);
    gnomon_context_destroy(ctx);
}

static void rooms_are_renewed(void **state)
{
    (void)state;
    counting c = {.fail_at = -1};
    const gnomon_allocator allocator = {&c, counting_allocate, counting_release};
    gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context *ctx;
    o.allocator = &allocator;
    assert_int_equal(gnomon_context_create(&o, &ctx), GNOMON_OK);
    const int64_t before = c.live_blocks;
    int64_t room = 0, *p = NULL;
    assert_int_equal(gnomon_renew(ctx, &p, &room, 0, sizeof *p, "x"), GNOMON_OK);
    assert_null(p);
    assert_int_equal(gnomon_renew(ctx, &p, &room, 5, sizeof *p, "x"), GNOMON_OK);
    const int64_t *held = p;
    p[4] = 7;
    assert_int_equal(gnomon_renew(ctx, &p, &room, 5, sizeof *p, "x"), GNOMON_OK);
    assert_ptr_equal(p, held);
    assert_int_equal(p[4], 7);
    assert_int_equal(gnomon_renew(ctx, &p, &room, 600, sizeof *p, "x"), GNOMON_OK);
    assert_int_equal(room, 600);
    p[599] = 7;
    assert_int_equal(c.live_blocks, before + 1);
    c.fail_at = c.calls;
    assert_int_equal(gnomon_renew(ctx, &p, &room, 601, sizeof *p, "x"), GNOMON_ERROR_MEMORY);
    assert_true(p == NULL && room == 0 && c.live_blocks == before);
    assert_int_equal(gnomon_renew(ctx, &p, &room, 9, sizeof *p, "x"), GNOMON_OK);
    assert_int_equal(gnomon_renew(ctx, &p, &room, -1, sizeof *p, "x"), GNOMON_ERROR_OVERFLOW);
    assert_true(p == NULL && room == 0 && c.live_blocks == before);
    gnomon_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statuses_are_pinned),         cmocka_unit_test(version_is_the_headers),
        cmocka_unit_test(dtypes_are_pinned),           cmocka_unit_test(options_are_checked),
        cmocka_unit_test(a_context_holds_its_options), cmocka_unit_test(error_texts),
        cmocka_unit_test(sizes_are_checked),           cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(nothing_allocated_is_null),   cmocka_unit_test(rooms_are_renewed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

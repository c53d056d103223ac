/* Descriptors: defaults, what follows from them, and what is refused. */
#include "operator_testing.h"

#include "operator/operator.h"

static gnomon_descriptor plain(gnomon_kind kind)
{
    gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
    d.kind = kind;
    d.k = 10;
    d.d = 1000;
    return d;
}

static void check_refused(const gnomon_descriptor *d, gnomon_status expected, const char *word,
                          const char *value)
{
    gnomon_context *ctx = new_context(1);
    gnomon_operator *op = (gnomon_operator *)ctx; /* must be cleared */
    const gnomon_status status = gnomon_operator_create(ctx, d, &op);
    const char *text = gnomon_last_error(ctx);
    if (status != expected || strstr(text, word) == NULL || strstr(text, value) == NULL)
        fail_msg("%s, \"%s\"; due: %s, with \"%s\" and \"%s\"", gnomon_status_name(status), text,
                 gnomon_status_name(expected), word, value);
    assert_null(op);
    gnomon_context_destroy(ctx);
}

#define REFUSED(base, member, v, status, value)     \
    do {                                            \
        gnomon_descriptor d_ = plain(base);         \
        d_.member = v;                              \
        check_refused(&d_, status, #member, value); \
    } while (0)

static void every_member_is_checked(void **state)
{
    (void)state;
    const gnomon_status bad = GNOMON_ERROR_ARGUMENT;
    REFUSED(GNOMON_GAUSSIAN, struct_size, 0, bad, "0");
    REFUSED(GNOMON_GAUSSIAN, struct_size, sizeof(gnomon_descriptor) - 1, bad, "no size of");
    REFUSED(GNOMON_GAUSSIAN, version, 2, bad, "2");
    REFUSED(GNOMON_GAUSSIAN, kind, (gnomon_kind)0, bad, "0");
    REFUSED(GNOMON_GAUSSIAN, kind, (gnomon_kind)1000, bad, "1000");
    REFUSED(GNOMON_GAUSSIAN, kind, (gnomon_kind)-1, bad, "-1");
    REFUSED(GNOMON_BLOCK, inner, GNOMON_SRHT, bad, "srht");
    REFUSED(GNOMON_BLOCK, inner, GNOMON_BLOCK, bad, "block");
    REFUSED(GNOMON_KRONECKER, inner, (gnomon_kind)77, bad, "77");
    REFUSED(GNOMON_GAUSSIAN, precision, GNOMON_F64, bad, "2");
    REFUSED(GNOMON_GAUSSIAN, scaling, (gnomon_scaling)3, bad, "3");
    REFUSED(GNOMON_GAUSSIAN, k, 0, bad, "0");
    REFUSED(GNOMON_GAUSSIAN, k, -1, bad, "-1");
    REFUSED(GNOMON_GAUSSIAN, k, 1001, bad, "1001");
    REFUSED(GNOMON_GAUSSIAN, k, (INT64_C(1) << 32) + 1, bad, "4294967297");
    REFUSED(GNOMON_GAUSSIAN, d, 0, bad, "0");
    REFUSED(GNOMON_GAUSSIAN, d, INT64_MIN, bad, "-9223372036854775808");
    REFUSED(GNOMON_GAUSSIAN, d, (INT64_C(1) << 56) + 1, bad, "72057594037927937");
    REFUSED(GNOMON_VERY_SPARSE, density, 1.5, bad, "1.5");
    REFUSED(GNOMON_VERY_SPARSE, density, -0.25, bad, "-0.25");
    REFUSED(GNOMON_VERY_SPARSE, density, 0x1p-31, bad, "4.6566128730773926e-10");
    REFUSED(GNOMON_VERY_SPARSE, density, (double)NAN, bad, "nan");
    REFUSED(GNOMON_VERY_SPARSE, density, (double)INFINITY, bad, "inf");
    REFUSED(GNOMON_SJLT, nonzeros, -1, bad, "-1");
    REFUSED(GNOMON_SJLT, nonzeros, 11, bad, "11");
    REFUSED(GNOMON_BLOCK, blocks, -3, bad, "-3");
    REFUSED(GNOMON_BLOCK, blocks, 11, bad, "11");
    REFUSED(GNOMON_KRONECKER, zeta, 1, bad, "1");
    REFUSED(GNOMON_KRONECKER, zeta, -2, bad, "-2");
    REFUSED(GNOMON_KRONECKER, width, 9, bad, "9");
    REFUSED(GNOMON_KRONECKER, width, INT64_MAX, GNOMON_ERROR_OVERFLOW, "9223372036854775807");
    REFUSED(GNOMON_KRONECKER, zeta, INT64_MAX, GNOMON_ERROR_OVERFLOW, "9223372036854775807");

    gnomon_context *ctx = new_context(1);
    gnomon_operator *op;
    assert_int_equal(gnomon_operator_create(ctx, NULL, &op), bad);
    const gnomon_descriptor d = plain(GNOMON_GAUSSIAN);
    assert_int_equal(gnomon_operator_create(ctx, &d, NULL), bad);
    gnomon_context_destroy(ctx);
}

static void members_of_other_kinds_are_refused(void **state)
{
    (void)state;
    const gnomon_kind_info *info;
    for (int at = 0; (info = gnomon_kind_at(at)) != NULL; at++) {
        const gnomon_kind k = info->kind;
        const gnomon_status bad = GNOMON_ERROR_ARGUMENT;
        const bool nonzeros = k == GNOMON_SJLT || k == GNOMON_BLOCKPERM_SJLT;
        const bool blocks = k == GNOMON_BLOCK || k == GNOMON_BLOCKPERM_SJLT;
        if (k != GNOMON_BLOCK && k != GNOMON_KRONECKER)
            REFUSED(k, inner, GNOMON_GAUSSIAN, bad, info->name);
        if (k != GNOMON_GAUSSIAN) REFUSED(k, precision, GNOMON_F16, bad, info->name);
        if (k != GNOMON_VERY_SPARSE) REFUSED(k, density, 0.5, bad, info->name);
        if (k != GNOMON_VERY_SPARSE) REFUSED(k, density, (double)NAN, bad, info->name);
        if (!nonzeros) REFUSED(k, nonzeros, 2, bad, info->name);
        if (!blocks) REFUSED(k, blocks, 2, bad, info->name);
        if (k != GNOMON_BLOCKPERM_SJLT) REFUSED(k, wiring, 2, bad, info->name);
        if (k != GNOMON_KRONECKER) REFUSED(k, zeta, 2, bad, info->name);
        if (k != GNOMON_KRONECKER) REFUSED(k, width, 10, bad, info->name);
    }
}

static void rows_of_kinds_are_whole(void **state)
{
    (void)state;
    const gnomon_kind_info *info;
    int count = 0;
    for (; (info = gnomon_kind_at(count)) != NULL; count++) {
        assert_true(info->kind > 0 && info->name != NULL && info->about != NULL);
        assert_int_equal(gnomon_kind_from_name(info->name), info->kind);
        assert_string_equal(gnomon_kind_name(info->kind), info->name);
        for (int other = 0; other < count; other++)
            assert_int_not_equal(gnomon_kind_at(other)->kind, info->kind);
        assert_int_equal((info->flags & GNOMON_KIND_COMPOSED) != 0,
                         (info->uses & GNOMON_USES_INNER) != 0);
    }
    assert_true(count >= 9);
    assert_null(gnomon_kind_at(-1));
    /* each kind can be made with nothing but sizes, and no number beside them can */
    gnomon_context *ctx = new_context(1);
    for (int number = -1; number <= 300; number++) {
        gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
        gnomon_operator *op = NULL;
        d.kind = (gnomon_kind)number;
        d.k = 40;
        d.d = 900;
        const bool known = strcmp(gnomon_kind_name(d.kind), "?") != 0;
        assert_int_equal(gnomon_operator_create(ctx, &d, &op),
                         known ? GNOMON_OK : GNOMON_ERROR_ARGUMENT);
        if (!known) assert_non_null(strstr(gnomon_last_error(ctx), "srht"));
        gnomon_operator_destroy(op);
    }
    gnomon_context_destroy(ctx);
    for (int i = 0; i < GNOMON_PARAMETERS; i++) {
        const gnomon_parameter_info *p = gnomon_parameter_at(i);
        assert_non_null(p);
        assert_true(p->offset < sizeof(gnomon_descriptor) && p->help != NULL && p->unit != NULL);
        for (int other = 0; other < i; other++)
            assert_int_equal(gnomon_parameter_at(other)->uses & p->uses, 0);
    }
    assert_null(gnomon_parameter_at(GNOMON_PARAMETERS));
}

static void blockperm_sjlt_checks_its_members(void **state)
{
    (void)state;
    const gnomon_status bad = GNOMON_ERROR_ARGUMENT;
    REFUSED(GNOMON_BLOCKPERM_SJLT, blocks, -1, bad, "-1");
    REFUSED(GNOMON_BLOCKPERM_SJLT, blocks, 3, bad, "power of two");
    REFUSED(GNOMON_BLOCKPERM_SJLT, blocks, 16, bad, "16");
    REFUSED(GNOMON_BLOCKPERM_SJLT, nonzeros, 11, bad, "11");
    REFUSED(GNOMON_BLOCKPERM_SJLT, nonzeros, -1, bad, "-1");
    REFUSED(GNOMON_BLOCKPERM_SJLT, wiring, 2, bad, "2"); /* one block by default */
    REFUSED(GNOMON_BLOCKPERM_SJLT, wiring, -2, bad, "-2");
    gnomon_descriptor d = plain(GNOMON_BLOCKPERM_SJLT);
    d.blocks = 8; /* one row a block */
    d.nonzeros = 2;
    check_refused(&d, bad, "nonzeros", "blocks");
    d = plain(GNOMON_BLOCKPERM_SJLT); /* a band of 2^30 rows */
    d.k = INT64_C(1) << 32;
    d.d = INT64_C(1) << 40;
    d.blocks = 2;
    d.nonzeros = 2;
    check_refused(&d, bad, "nonzeros", "2^28");
    d = plain(GNOMON_BLOCK); /* not made of it */
    d.inner = GNOMON_BLOCKPERM_SJLT;
    check_refused(&d, bad, "inner", "blockperm-sjlt");

    gnomon_context *ctx = new_context(1);
    static const int64_t wanted[][4] = {
        {1, 1, 1, 1}, {31, 1, 2, 1}, {64, 4, 2, 4}, {100, 4, 2, 4}, {128, 8, 2, 4}};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        d = (gnomon_descriptor)GNOMON_DESCRIPTOR_INIT;
        d.kind = GNOMON_BLOCKPERM_SJLT;
        d.k = wanted[i][0];
        d.d = 1000;
        gnomon_operator *op = new_operator(ctx, &d);
        gnomon_operator_describe(op, &d);
        assert_int_equal(d.blocks, wanted[i][1]);
        assert_int_equal(d.nonzeros, wanted[i][2]);
        assert_int_equal(d.wiring, wanted[i][3]);
        gnomon_operator_destroy(op);
    }
    gnomon_context_destroy(ctx);
}

static void composed_kinds_check_their_factors(void **state)
{
    (void)state;
    gnomon_descriptor d = plain(GNOMON_BLOCK);
    d.inner = GNOMON_SJLT;
    d.blocks = 3; /* does not divide 10 */
    check_refused(&d, GNOMON_ERROR_ARGUMENT, "blocks", "divide");
    d.blocks = 5; /* two rows a block */
    d.nonzeros = 3;
    check_refused(&d, GNOMON_ERROR_ARGUMENT, "nonzeros", "3");

    d = plain(GNOMON_SJLT); /* bands of 2^30 rows */
    d.k = INT64_C(1) << 32;
    d.d = INT64_C(1) << 40;
    check_refused(&d, GNOMON_ERROR_ARGUMENT, "nonzeros", "16");

    d = plain(GNOMON_KRONECKER); /* a factor of more than 2^32 rows */
    d.d = INT64_C(1) << 40;
    d.width = INT64_C(1) << 31;
    check_refused(&d, GNOMON_ERROR_OVERFLOW, "width", "2147483648");
    d.d = INT64_C(1) << 56; /* 6 * 5^23 is less, 6 * 5^24 above 2^57 */
    d.k = 6;
    d.width = 6;
    d.zeta = 5;
    check_refused(&d, GNOMON_ERROR_OVERFLOW, "zeta", "2^57");
}

static void unknown_tails_are_refused(void **state)
{
    (void)state;
    gnomon_context *ctx = new_context(1);
    struct {
        gnomon_descriptor d;
        unsigned char later[16];
    } longer;
    memset(&longer, 0, sizeof longer);
    longer.d = plain(GNOMON_RADEMACHER);
    longer.d.struct_size = sizeof longer;
    gnomon_operator *op;
    assert_int_equal(gnomon_operator_create(ctx, &longer.d, &op), GNOMON_OK);
    gnomon_operator_destroy(op);
    longer.later[15] = 1;
    assert_int_equal(gnomon_operator_create(ctx, &longer.d, &op), GNOMON_ERROR_ARGUMENT);
    gnomon_context_destroy(ctx);
}

static gnomon_descriptor completed(const gnomon_descriptor *d)
{
    gnomon_context *ctx = new_context(1);
    gnomon_operator *op = new_operator(ctx, d);
    gnomon_descriptor out = GNOMON_DESCRIPTOR_INIT;
    gnomon_operator_describe(op, &out);
    gnomon_operator_destroy(op);
    gnomon_context_destroy(ctx);
    return out;
}

static void defaults_are_filled_in(void **state)
{
    (void)state;
    gnomon_descriptor d = plain(GNOMON_GAUSSIAN);
    gnomon_descriptor c = completed(&d);
    assert_int_equal(c.version, 1);
    assert_int_equal(c.precision, GNOMON_F32);
    assert_int_equal(c.scaling, GNOMON_ISOMETRIC);
    assert_int_equal(c.struct_size, sizeof c);

    d = plain(GNOMON_VERY_SPARSE);
    c = completed(&d);
    assert_true(c.density == 1.0 / sqrt(1000.0));

    d = plain(GNOMON_SJLT);
    assert_int_equal(completed(&d).nonzeros, 4);
    d.k = 3;
    assert_int_equal(completed(&d).nonzeros, 3);

    d = plain(GNOMON_BLOCK);
    c = completed(&d);
    assert_int_equal(c.inner, GNOMON_RADEMACHER);
    assert_int_equal(c.blocks, 1);

    d = plain(GNOMON_KRONECKER);
    d.inner = GNOMON_VERY_SPARSE;
    c = completed(&d);
    assert_int_equal(c.zeta, 2);
    assert_int_equal(c.width, 10);
    assert_true(c.density == 0.0);
}

static void a_short_descriptor_is_not_overrun(void **state)
{
    (void)state;
    gnomon_context *ctx = new_context(1);
    const gnomon_descriptor d = plain(GNOMON_VERY_SPARSE);
    gnomon_operator *op = new_operator(ctx, &d);
    unsigned char memory[sizeof(gnomon_descriptor)];
    memset(memory, 0xAB, sizeof memory);
    gnomon_descriptor out;
    memcpy(&out, memory, sizeof out);
    out.struct_size = offsetof(gnomon_descriptor, density);
    gnomon_operator_describe(op, &out);
    assert_int_equal(out.k, 10);
    assert_memory_equal(&out.density, memory, sizeof out - offsetof(gnomon_descriptor, density));
    gnomon_operator_destroy(op);
    gnomon_context_destroy(ctx);
}

/* The cascade of section 5.2, for a case worked out by hand. */
static void cascade_has_the_shapes_of_the_page(void **state)
{
    (void)state;
    gnomon_context *ctx = new_context(1);
    gnomon_descriptor d = plain(GNOMON_KRONECKER);
    d.k = 5;
    d.d = 100;
    d.width = 6;
    d.zeta = 3;
    gnomon_operator *op = new_operator(ctx, &d);
    assert_int_equal(op->levels, 3); /* 6 * 27 = 162 */
    static const int64_t rows[] = {6, 12, 5}, cols[] = {18, 18, 36}, repeat[] = {9, 3, 1};
    for (int t = 0; t < 3; t++) {
        assert_int_equal(op->factor[t].rows, rows[t]);
        assert_int_equal(op->factor[t].cols, cols[t]);
        assert_int_equal(op->repeat[t], repeat[t]);
        assert_int_equal(op->factor[t].level, t + 1);
    }
    assert_true(op->scale == 1 / sqrt(6.0) * (1 / sqrt(12.0)) * (1 / sqrt(5.0)));
    gnomon_operator_destroy(op);

    d.width = 0; /* k and d so that one level is enough, and the deepest there is */
    d.zeta = 0;
    d.d = 7;
    op = new_operator(ctx, &d);
    assert_int_equal(op->levels, 1);
    gnomon_operator_destroy(op);
    d.k = 1;
    d.d = INT64_C(1) << 56;
    op = new_operator(ctx, &d);
    assert_int_equal(op->levels, 56);
    gnomon_operator_destroy(op);
    gnomon_context_destroy(ctx);
}

static void blocks_own_all_rows(void **state)
{
    (void)state;
    gnomon_context *ctx = new_context(1);
    gnomon_descriptor d = plain(GNOMON_BLOCK);
    for (d.k = 1; d.k < 40; d.k += 7) {
        for (d.blocks = 1; d.blocks <= d.k; d.blocks++) {
            gnomon_operator *op = new_operator(ctx, &d);
            assert_int_equal(gnomon_block_first_row(op, 0), 0);
            assert_int_equal(gnomon_block_first_row(op, d.blocks), d.k);
            for (int64_t a = 0; a < d.blocks; a++) {
                const int64_t first = gnomon_block_first_row(op, a);
                const int64_t end = gnomon_block_first_row(op, a + 1);
                assert_true(end > first && end - first <= op->factor[0].rows);
                for (int64_t i = first; i < end; i++)
                    assert_true(gnomon_operator_row_scale(op, i) ==
                                1.0 / sqrt((double)(end - first)));
            }
            assert_true(isnan(gnomon_operator_row_scale(op, -1)));
            assert_true(isnan(gnomon_operator_row_scale(op, d.k)));
            gnomon_operator_destroy(op);
        }
    }
    gnomon_context_destroy(ctx);
}

static void names_and_kinds_agree(void **state)
{
    (void)state;
    assert_string_equal(gnomon_kind_name(GNOMON_VERY_SPARSE), "very-sparse");
    assert_string_equal(gnomon_kind_name((gnomon_kind)0), "?");
    assert_string_equal(gnomon_kind_name((gnomon_kind)-5), "?");
    assert_string_equal(gnomon_kind_name((gnomon_kind)10), "?");
    assert_int_equal(gnomon_kind_from_name("Gaussian"), 0);
    assert_int_equal(gnomon_kind_from_name(""), 0);
    assert_int_equal(gnomon_kind_from_name(NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_member_is_checked),
        cmocka_unit_test(members_of_other_kinds_are_refused),
        cmocka_unit_test(composed_kinds_check_their_factors),
        cmocka_unit_test(unknown_tails_are_refused),
        cmocka_unit_test(defaults_are_filled_in),
        cmocka_unit_test(a_short_descriptor_is_not_overrun),
        cmocka_unit_test(cascade_has_the_shapes_of_the_page),
        cmocka_unit_test(blocks_own_all_rows),
        cmocka_unit_test(names_and_kinds_agree),
        cmocka_unit_test(rows_of_kinds_are_whole),
        cmocka_unit_test(blockperm_sjlt_checks_its_members),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Known answers: the generator's own, and entries of every kind. */
#include "operator_testing.h"

#include "kat_operators.h"
#include "operator/philox.h"

static void the_generator_gives_its_published_answers(void **state)
{
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], answer[4];
    } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX},
         {UINT32_MAX, UINT32_MAX},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const gnomon_words w =
            gnomon_philox(known[i].counter[0], known[i].counter[1], known[i].counter[2],
                          known[i].counter[3], known[i].key[0], known[i].key[1]);
        assert_memory_equal(w.w, known[i].answer, sizeof w.w);
    }
}

static void check_entry(gnomon_context *ctx, const gnomon_operator *op, const kat_entry *e)
{
    double value;
    float single;
    const gnomon_matrix f64 = gnomon_matrix_rowmajor(&value, GNOMON_F64, 1, 1);
    const gnomon_matrix f32 = gnomon_matrix_rowmajor(&single, GNOMON_F32, 1, 1);
    assert_int_equal(gnomon_operator_block(ctx, op, e->row, e->col, &f64), GNOMON_OK);
    assert_int_equal(gnomon_operator_block(ctx, op, e->row, e->col, &f32), GNOMON_OK);
    if (value != e->value || single != (float)e->value)
        fail_msg("entry (%lld, %lld) is %a (f32 %a), not %a", (long long)e->row, (long long)e->col,
                 value, (double)single, e->value);

    gnomon_csr csr;
    assert_int_equal(gnomon_operator_block_csr(ctx, op, e->row, e->col, 1, 1, GNOMON_F64, &csr),
                     GNOMON_OK);
    assert_int_equal(csr.offsets[1], e->value != 0.0);
    if (e->value != 0.0) {
        assert_int_equal(csr.indices[0], 0);
        assert_true(*(const double *)csr.values == e->value);
    }
    gnomon_csr_free(ctx, &csr);
}

static void entries_are_the_known_ones(void **state)
{
    (void)state;
    gnomon_context *ctx = new_context(1);
    for (size_t i = 0; i < sizeof kat_cases / sizeof kat_cases[0]; i++) {
        gnomon_operator *op = new_operator(ctx, &kat_cases[i].descriptor);
        for (int e = 0; e < KAT_ENTRIES; e++)
            check_entry(ctx, op, &kat_cases[i].entry[e]);
        gnomon_operator_destroy(op);
    }
    gnomon_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_generator_gives_its_published_answers),
        cmocka_unit_test(entries_are_the_known_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

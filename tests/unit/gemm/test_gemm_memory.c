/* Products of a long inner dimension under small memory limits: sums of pieces lie beside their
 * totals with no room to spare, and have the bits of those with room. */
#include "project.h"

static void pieces_with_no_room_to_spare(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {
        {96, 16, 12288}, {150, 40, 9000}, {480, 3, 8200}, {16, 130, 13000}};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        const int64_t m = shapes[s][0], n = shapes[s][1], k = shapes[s][2];
        owned a = make_matrix(m, k, GNOMON_F32, ROW_MAJOR);
        owned b = make_matrix(k, n, GNOMON_F32, ROW_MAJOR);
        owned want = make_matrix(m, n, GNOMON_F64, ROW_MAJOR);
        owned got = make_matrix(m, n, GNOMON_F64, ROW_PADDED);
        fill_random(&a.m, s);
        fill_random(&b.m, s + 50);
        gnomon_context *rich = make_context(1, 0);
        ASSERT_OK(rich, gnomon_gemm(rich, &a.m, &b.m, &want.m, NULL));
        gnomon_context_destroy(rich);
        for (int64_t j = 0; j < n; j++) {
            double sum = 0, size = 0;
            for (int64_t p = 0; p < k; p++) {
                const double term = element(&a.m, m - 1, p) * element(&b.m, p, j);
                sum += term;
                size += fabs(term);
            }
            assert_true(fabs(element(&want.m, m - 1, j) - sum) <= 64 * 0x1p-24 * size);
        }
        int ran = 0;
        for (int64_t limit = 1 << 15; limit <= 1 << 24; limit *= 2) {
            gnomon_context *ctx = make_context(1, limit);
            const gnomon_status status = gnomon_gemm(ctx, &a.m, &b.m, &got.m, NULL);
            if (status == GNOMON_OK) {
                ran++;
                assert_same_bits(&got.m, &want.m, "a small limit");
                check_sentinels(&got);
            } else {
                assert_int_equal(status, GNOMON_ERROR_MEMORY);
            }
            gnomon_context_destroy(ctx);
        }
        assert_true(ran >= 4);
        free_matrix(&a);
        free_matrix(&b);
        free_matrix(&want);
        free_matrix(&got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pieces_with_no_room_to_spare)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

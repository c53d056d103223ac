/* The kernels of very-sparse, sjlt and srht. */
#include "kernels_testing.h"

static const double default_density = 0.0;

static const block sparse_blocks[] = {
    /* more nonzeros in 64 rows than a panel has room for: see full_pieces_are_made_again */
    {{GNOMON_VERY_SPARSE, 1 << 20, 1 << 21, 0.0625, 0, 0, 0, 0}, 11648, 64, 768, 256},
    {{GNOMON_SJLT, 20000, INT64_C(1) << 40, 0, 1, 0, 0, 0}, 2496, 64, 180224, 4096},
    /* p = 1/sqrt(D), whole, odd sizes */
    {{GNOMON_VERY_SPARSE, 75, 7001, default_density, 0, 0, 0, 0}, 0, 75, 0, 7001},
    /* walks shorter than a chunk, which begins and ends inside them */
    {{GNOMON_VERY_SPARSE, 9, 9001, 0.3, 0, 0, 0, 0}, 0, 9, 4090, 300},
    {{GNOMON_VERY_SPARSE, 130, 700, 1.0, 0, 0, 0, 0}, 64, 66, 3, 600},
    {{GNOMON_VERY_SPARSE, 1, 1, 1.0, 0, 0, 0, 0}, 0, 1, 0, 1},
    {{GNOMON_VERY_SPARSE, 67, 3000, 0.01, 0, 0, 0, 0}, 0, 67, 2399, 1},
    /* walks far longer than a chunk */
    {{GNOMON_VERY_SPARSE, 70, INT64_C(1) << 40, 0.001, 0, 0, 0, 0},
     64,
     6,
     INT64_C(1000000000000),
     5000},
    {{GNOMON_VERY_SPARSE, 640, INT64_C(1) << 40, 0x1p-20, 0, 0, 0, 0}, 0, 640, 4190000, 9000},
    {{GNOMON_VERY_SPARSE, 640, INT64_C(1) << 56, 0x1p-30, 0, 0, 0, 0},
     0,
     640,
     (INT64_C(1) << 56) - 5000,
     5000},
    {{GNOMON_SJLT, 64, 6000, 0, 1, 0, 0, 0}, 0, 64, 0, 6000},
    {{GNOMON_SJLT, 100, 5000, 0, 3, 0, 0, 0}, 0, 100, 4090, 910},
    {{GNOMON_SJLT, 100, 5000, 0, 3, 0, 0, 0}, 64, 36, 17, 1},
    {{GNOMON_SJLT, 130, 4200, 0, 130, 0, 0, 0}, 0, 130, 3900, 300},
    {{GNOMON_SJLT, 1, 1, 0, 1, 0, 0, 0}, 0, 1, 0, 1},
    /* a chunk of the operator longer than the kernel's */
    {{GNOMON_SJLT, 6000, INT64_C(1) << 40, 0, 2, 0, 0, 0}, 1920, 1500, INT64_C(1000000000000), 700},
    {{GNOMON_SJLT, INT64_C(1) << 32, INT64_C(1) << 56, 0, 16, 0, 0, 0},
     INT64_C(1) << 31,
     64,
     (INT64_C(1) << 56) - 40,
     40},
    {{GNOMON_BLOCKPERM_SJLT, 64, 784, 0, 0, 0, 0, 0}, 0, 64, 0, 784},
    {{GNOMON_BLOCKPERM_SJLT, 130, 40007, 0, 3, 0, 4, 3}, 64, 66, 9001, 3000},
    {{GNOMON_BLOCKPERM_SJLT, 200, 900, 0, 1, 0, 128, 5}, 0, 200, 0, 900},
    {{GNOMON_BLOCKPERM_SJLT, 130, 4200, 0, 65, 0, 2, 2}, 0, 130, 3900, 300},
    {{GNOMON_BLOCKPERM_SJLT, 1, 1, 0, 0, 0, 0, 0}, 0, 1, 0, 1},
    {{GNOMON_BLOCKPERM_SJLT, 16, 19, 0, 1, 0, 16, 16}, 0, 16, 0, 19},
    {{GNOMON_BLOCKPERM_SJLT, 6000, INT64_C(1) << 40, 0, 2, 0, 1, 1},
     1920,
     1500,
     INT64_C(1000000000000),
     700},
    {{GNOMON_BLOCKPERM_SJLT, INT64_C(1) << 32, INT64_C(1) << 56, 0, 16, 0, 1 << 28, 7},
     INT64_C(1) << 31,
     64,
     (INT64_C(1) << 56) - 40,
     40},
    {{GNOMON_SRHT, 100, 9000, 0, 0, 0, 0, 0}, 0, 100, 0, 9000},
    {{GNOMON_SRHT, 300, 9000, 0, 0, 0, 0, 0}, 7, 290, 4000, 1200},
    {{GNOMON_SRHT, 1030, 5000, 0, 0, 0, 0, 0}, 0, 1030, 70, 2100},
    {{GNOMON_SRHT, 3000, 4097, 0, 0, 0, 0, 0}, 0, 3000, 4090, 7},
    {{GNOMON_SRHT, 100, 100, 0, 0, 0, 0, 0}, 0, 100, 0, 100},
    {{GNOMON_SRHT, 2, 3, 0, 0, 0, 0, 0}, 0, 2, 1, 2},
    {{GNOMON_SRHT, 1, 1, 0, 0, 0, 0, 0}, 0, 1, 0, 1},
    {{GNOMON_SRHT, 33, INT64_C(1) << 56, 0, 0, 0, 0, 0}, 2, 30, INT64_C(1000000000000) + 5, 600},
};

static void check_lists(const tested *t, const gnomon_kind_kernels *k, int64_t row, int64_t rows,
                        const int64_t *cols, int64_t count)
{
    guarded scratch = guarded_new(k->lists_scratch(t->a));
    memset(scratch.data, 0x5a, scratch.bytes);
    guarded start = guarded_new((count + 1) * 8);
    int64_t *const starts = (int64_t *)start.data;
    /* first without room, as a caller would who guessed too low */
    guarded none = guarded_new(0);
    const int64_t total =
        k->lists(t->a, row, rows, cols, count, 0, starts, (int64_t *)none.data, scratch.data);
    guarded_end(none);
    guarded entry = guarded_new(total * 8);
    int64_t *const entries = (int64_t *)entry.data;
    assert_int_equal(k->lists(t->a, row, rows, cols, count, total, starts, entries, scratch.data),
                     total);
    assert_int_equal(starts[0], 0);
    assert_int_equal(starts[count], total);
    float *column = malloc((size_t)rows * sizeof(float));
    assert_non_null(column);
    for (int64_t c = 0; c < count; c++) {
        for (int64_t i = 0; i < rows; i++)
            column[i] = 0;
        for (int64_t e = starts[c]; e < starts[c + 1]; e++) {
            const int64_t i = entries[e] < 0 ? ~entries[e] : entries[e];
            assert_in_range(i, 0, rows - 1);
            assert_true(column[i] == 0);
            column[i] = entries[e] < 0 ? -1 : 1;
        }
        for (int64_t i = 0; i < rows; i++)
            assert_true(column[i] ==
                        t->values[(row - t->b.row + i) * t->b.cols + cols[c] - t->b.col]);
    }
    free(column);
    guarded_end(scratch);
    guarded_end(start);
    guarded_end(entry);
}

static void lists_hold_the_entries(void **state)
{
    (void)state;
    for (int b = 0; b < block_count; b++) {
        tested t = tested_new(&blocks[b]);
        int64_t *cols = malloc((size_t)t.b.cols * sizeof *cols);
        assert_non_null(cols);
        for (int l = 0; l < level_count; l++) {
            const gnomon_kind_kernels *k = gnomon_kernels_for(levels[l], t.a);
            if (!k->lists) continue;
            for (int r = 0; r < 3; r++) {
                int64_t row, rows;
                if (!row_range(&t, r, &row, &rows)) continue;
                const int64_t chunk = k->lists_cols(t.a);
                for (int64_t c = 0; c < t.b.cols;) {
                    const int64_t end =
                        minimum(((t.b.col + c) / chunk + 1) * chunk - t.b.col, t.b.cols);
                    const int64_t step = r == 0 ? 1 : 7;
                    check_lists(&t, k, row, rows, cols, pick(&t.b, c, end, step, cols));
                    c = end;
                }
            }
        }
        free(cols);
        tested_end(&t);
    }
}

/* The first two blocks are such that the kernels mark the panel's one piece as too full (its first
 * word is -1, see src/cpu/project/nonzeros.inc): so the tests above went the way of those. */
static void full_pieces_are_made_again(void **state)
{
    (void)state;
    for (int b = 0; b < 2; b++) {
        gnomon_operator *op = create(blocks[b].s);
        const gnomon_simple *a = &op->factor[0];
        for (int l = 0; l < level_count; l++) {
            const gnomon_kind_kernels *k = gnomon_kernels_for(levels[l], a);
            gnomon_panel panel = {a, blocks[b].row, 64, blocks[b].col, blocks[b].cols, NULL};
            guarded data = guarded_new(k->panel_bytes(a, panel.rows, panel.cols));
            panel.data = data.data;
            assert_int_equal(k->pieces(&panel), 1);
            k->fill(&panel, 0);
            assert_int_equal(*(const int32_t *)panel.data, -1);
            guarded_end(data);
        }
        gnomon_operator_destroy(op);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        KERNELS_TESTS,
        cmocka_unit_test(lists_hold_the_entries),
        cmocka_unit_test(full_pieces_are_made_again),
    };
    blocks = sparse_blocks;
    block_count = sizeof sparse_blocks / sizeof *sparse_blocks;
    return cmocka_run_group_tests(tests, find_levels, NULL);
}

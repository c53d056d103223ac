/* Raw values of any simple kind. */
#include "operator/kinds/kinds.h"

bool gnomon_simple_is_sparse(const gnomon_simple *a)
{
    return gnomon_kind_row_of(a->kind)->each != NULL;
}

void gnomon_simple_tile(const gnomon_simple *a, uint32_t group, int64_t col, int64_t cols,
                        gnomon_tile out)
{
    gnomon_kind_row_of(a->kind)->tile(a, group, col, cols, out);
}

void gnomon_simple_each(const gnomon_simple *a, int64_t row, int64_t rows, int64_t col,
                        int64_t cols, gnomon_entry_fn fn, void *arg)
{
    gnomon_kind_row_of(a->kind)->each(a, row, rows, col, cols, fn, arg);
}

double gnomon_norm_of_rows(const gnomon_simple *a, double rows)
{
    (void)a;
    return rows;
}

typedef struct target {
    float *out;
    int64_t row, col, row_stride, col_stride;
} target;

static void store(void *arg, int64_t row, int64_t col, bool negative)
{
    const target *t = arg;
    t->out[(row - t->row) * t->row_stride + (col - t->col) * t->col_stride] =
        negative ? -1.0f : 1.0f;
}

void gnomon_simple_values(const gnomon_simple *a, int64_t row, int64_t rows, int64_t col,
                          int64_t cols, float *out, int64_t row_stride, int64_t col_stride)
{
    if (gnomon_simple_is_sparse(a)) {
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < cols; j++)
                out[i * row_stride + j * col_stride] = 0.0f;
        target t = {out, row, col, row_stride, col_stride};
        gnomon_simple_each(a, row, rows, col, cols, store, &t);
        return;
    }
    gnomon_tile tile;
    for (int64_t i = row; i < row + rows; i = (i | 3) + 1) {
        const int64_t last = (i | 3) < row + rows ? (i | 3) : row + rows - 1;
        for (int64_t c = 0; c < cols; c += GNOMON_TILE_COLS) {
            const int64_t width = cols - c < GNOMON_TILE_COLS ? cols - c : GNOMON_TILE_COLS;
            gnomon_simple_tile(a, (uint32_t)(i >> 2), col + c, width, tile);
            for (int64_t r = i; r <= last; r++)
                for (int64_t u = 0; u < width; u++)
                    out[(r - row) * row_stride + (c + u) * col_stride] = tile[r & 3][u];
        }
    }
}

/* Operators' descriptors. What is accepted must come back the same from its own text, and its
 * corners must be there to be made. */
#include <gnomon/operator.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(condition)                                                    \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                        \
        }                                                                   \
    } while (0)

static void check_text(gnomon_context *ctx, const gnomon_operator *op)
{
    char *text, *again;
    gnomon_operator *back;
    CHECK(gnomon_operator_to_json(ctx, op, &text) == GNOMON_OK);
    CHECK(gnomon_operator_from_json(ctx, text, strlen(text), &back) == GNOMON_OK);
    CHECK(gnomon_operator_to_json(ctx, back, &again) == GNOMON_OK);
    CHECK(strcmp(text, again) == 0);
    gnomon_operator_destroy(back);
    free(again);
    free(text);
}

/* The last rows and columns. A cascade's cost grows with the square of its width. */
static void check_corner(gnomon_context *ctx, const gnomon_operator *op)
{
    gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
    gnomon_operator_describe(op, &d);
    CHECK(d.k >= 1 && d.k <= d.d);
    CHECK(gnomon_operator_row_scale(op, d.k - 1) > 0.0);
    CHECK(gnomon_operator_fill(op) > 0.0 && gnomon_operator_fill(op) <= 1.0);
    if (d.kind == GNOMON_KRONECKER && d.width > 8) return;
    enum { ROWS = 3, COLS = 5 };
    double cells[ROWS * COLS];
    const int64_t rows = d.k < ROWS ? d.k : ROWS;
    const int64_t cols = d.d < COLS ? d.d : COLS;
    const gnomon_matrix m = gnomon_matrix_rowmajor(cells, GNOMON_F64, rows, cols);
    gnomon_csr csr;
    CHECK(gnomon_operator_block(ctx, op, d.k - rows, d.d - cols, &m) == GNOMON_OK);
    CHECK(gnomon_operator_block_csr(ctx, op, d.k - rows, d.d - cols, rows, cols, GNOMON_F64,
                                    &csr) == GNOMON_OK);
    int64_t nonzeros = 0;
    for (int64_t i = 0; i < rows * cols; i++)
        nonzeros += cells[i] != 0.0;
    CHECK(csr.offsets[rows] == nonzeros);
    gnomon_csr_free(ctx, &csr);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    options.threads = 1;
    options.device = "cpu";
    gnomon_context *ctx;
    CHECK(gnomon_context_create(&options, &ctx) == GNOMON_OK);
    gnomon_operator *op;
    const gnomon_status status = gnomon_operator_from_json(ctx, (const char *)data, size, &op);
    CHECK((status == GNOMON_OK) == (op != NULL));
    if (op != NULL) {
        check_text(ctx, op);
        check_corner(ctx, op);
        gnomon_operator_destroy(op);
    } else {
        CHECK(status == GNOMON_ERROR_DATA || status == GNOMON_ERROR_ARGUMENT ||
              status == GNOMON_ERROR_OVERFLOW);
        CHECK(gnomon_last_error(ctx)[0] != '\0');
    }
    gnomon_context_destroy(ctx);
    return 0;
}

#include <math.h>
#include <stdio.h>

#include <gnomon.h>

int main(void)
{
    float x[6] = {1, 2, 3, 4, 5, NAN};
    const gnomon_matrix m = gnomon_matrix_rowmajor(x, GNOMON_F32, 2, 3);
    gnomon_context *ctx;
    if (gnomon_context_create(NULL, &ctx) != GNOMON_OK) return 1;
    int64_t row = 0, col = 0;
    const gnomon_status status = gnomon_matrix_check_finite(ctx, &m, &row, &col);
    gnomon_context_destroy(ctx);
    if (status != GNOMON_ERROR_NONFINITE) return 1;
    printf("gnomon %s: NaN at (%d, %d)\n", gnomon_version(), (int)row, (int)col);
    return 0;
}

/* Projects the rows of an fp32 matrix: with a random matrix stored in fp16, then with an operator
 * that is not stored at all. */
#include <gnomon.h>

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 300, COLUMNS = 2000, K = 64 };

static double length(const float *x, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

static int run(gnomon_context *ctx, gnomon_operator **op, float *a, uint16_t *s, float *c)
{
    const double norm = length(a, ROWS * COLUMNS);
    const gnomon_matrix as = gnomon_matrix_rowmajor(a, GNOMON_F32, ROWS, COLUMNS);
    const gnomon_matrix cs = gnomon_matrix_rowmajor(c, GNOMON_F32, ROWS, K);

    /* S of +1 and -1 in fp16, K x COLUMNS; its transpose is a view with the strides exchanged */
    const gnomon_matrix st = gnomon_matrix_colmajor(s, GNOMON_F16, COLUMNS, K);
    gnomon_gemm_options options = GNOMON_GEMM_OPTIONS_INIT;
    options.alpha = 1 / sqrt(K);
    if (gnomon_gemm(ctx, &as, &st, &cs, &options) != GNOMON_OK) return 0;
    printf("stored:  |A S^T| / |A| = %.3f\n", length(c, ROWS * K) / norm);

    gnomon_descriptor descriptor = GNOMON_DESCRIPTOR_INIT;
    descriptor.kind = GNOMON_RADEMACHER;
    descriptor.k = K;
    descriptor.d = COLUMNS;
    if (gnomon_operator_create(ctx, &descriptor, op) != GNOMON_OK ||
        gnomon_gemm_operator(ctx, *op, GNOMON_GEMM_ST_RIGHT, &as, &cs, NULL) != GNOMON_OK)
        return 0;
    printf("made as it goes: |A S^T| / |A| = %.3f\n", length(c, ROWS * K) / norm);
    return 1;
}

int main(void)
{
    gnomon_context *ctx = NULL;
    gnomon_operator *op = NULL;
    float *a = malloc(sizeof *a * ROWS * COLUMNS), *c = malloc(sizeof *c * ROWS * K);
    uint16_t *s = malloc(sizeof *s * K * COLUMNS);
    if (a == NULL || c == NULL || s == NULL) return 1;
    uint32_t state = 1;
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        state = state * 1664525u + 1013904223u;
        a[i] = (float)(state >> 8) / (1 << 24) - 0.5f;
    }
    for (int i = 0; i < K * COLUMNS; i++) {
        state = state * 1664525u + 1013904223u;
        s[i] = state >> 31 ? 0xbc00 : 0x3c00; /* -1 or 1 */
    }

    int done = gnomon_context_create(NULL, &ctx) == GNOMON_OK && run(ctx, &op, a, s, c);
    if (!done) fprintf(stderr, "gemm: %s\n", gnomon_last_error(ctx));

    gnomon_operator_destroy(op);
    gnomon_context_destroy(ctx);
    free(a);
    free(c);
    free(s);
    return done ? 0 : 1;
}

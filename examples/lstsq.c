/* Fits a plane through noisy points by least squares, and tells how far off the coefficients can
 * be. */
#include <gnomon.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 100000, COLS = 3 };

int main(void)
{
    static const double truth[COLS] = {2, -1, 0.5};
    gnomon_context *ctx = NULL;
    gnomon_lstsq fit = {.struct_size = sizeof fit};
    double *a = malloc(sizeof *a * ROWS * COLS), *b = malloc(sizeof *b * ROWS);
    if (a == NULL || b == NULL) return 1;
    uint32_t state = 1;
    for (int i = 0; i < ROWS; i++) {
        double noise = 0;
        for (int j = 0; j <= COLS; j++) {
            state = state * 1664525u + 1013904223u;
            const double uniform = (double)state / 0x1p32 - 0.5;
            if (j < COLS)
                a[i * COLS + j] = j == COLS - 1 ? 1 : uniform;
            else
                noise = 0.1 * uniform;
        }
        b[i] = noise;
        for (int j = 0; j < COLS; j++)
            b[i] += truth[j] * a[i * COLS + j];
    }

    const gnomon_matrix features = gnomon_matrix_rowmajor(a, GNOMON_F64, ROWS, COLS);
    const gnomon_matrix targets = gnomon_matrix_rowmajor(b, GNOMON_F64, ROWS, 1);
    int done = gnomon_context_create(NULL, &ctx) == GNOMON_OK &&
               gnomon_lstsq_dense(ctx, &features, &targets, NULL, &fit) == GNOMON_OK;
    if (done) {
        const double *x = fit.x.data;
        printf("%.3f %.3f %.3f, rank %d, condition %.1f\n", x[0], x[1], x[2], (int)fit.rank,
               fit.condition);
        printf("root mean square left: %.4f; the solver's own error is below 1e-12: %s\n",
               fit.target[0].residual / sqrt(ROWS),
               fit.target[0].forward_bound < 1e-12 ? "yes" : "no");
    } else {
        fprintf(stderr, "lstsq: %s\n", gnomon_last_error(ctx));
    }

    gnomon_lstsq_free(ctx, &fit);
    gnomon_context_destroy(ctx);
    free(a);
    free(b);
    return done ? 0 : 1;
}

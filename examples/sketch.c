/* Projects random points to fewer dimensions and looks at what that did to their norms. */
#include <gnomon.h>

#include <stdio.h>
#include <stdlib.h>

enum { POINTS = 100, DIMENSIONS = 10000, K = 256 };

static int run(gnomon_context *ctx, gnomon_operator **op, float *x, float *y)
{
    gnomon_descriptor descriptor = GNOMON_DESCRIPTOR_INIT;
    descriptor.kind = GNOMON_VERY_SPARSE;
    descriptor.k = K;
    descriptor.d = DIMENSIONS;
    descriptor.seed = 7;
    if (gnomon_operator_create(ctx, &descriptor, op) != GNOMON_OK) return 0;

    gnomon_matrix points = gnomon_matrix_rowmajor(x, GNOMON_F32, POINTS, DIMENSIONS);
    gnomon_matrix sketch = gnomon_matrix_rowmajor(y, GNOMON_F32, POINTS, K);
    if (gnomon_sketch(ctx, *op, &points, &sketch, NULL) != GNOMON_OK) return 0;

    gnomon_distortion norms, distances;
    gnomon_distortion_options options = GNOMON_DISTORTION_OPTIONS_INIT;
    options.eps = 0.2;
    if (gnomon_measure_distortion(ctx, &points, &sketch, &options, &norms, &distances, NULL) !=
        GNOMON_OK)
        return 0;
    printf("norms:     mean distortion %+.4f, worst %.4f\n", norms.mean, norms.worst);
    printf("distances: mean distortion %+.4f, worst %.4f, outside +-20 %%: %.2f %%\n",
           distances.mean, distances.worst, 100 * distances.outside);
    return 1;
}

int main(void)
{
    gnomon_context *ctx = NULL;
    gnomon_operator *op = NULL;
    float *x = malloc(sizeof(float) * POINTS * DIMENSIONS);
    float *y = malloc(sizeof(float) * POINTS * K);
    if (x == NULL || y == NULL) return 1;
    uint32_t state = 1;
    for (int i = 0; i < POINTS * DIMENSIONS; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)(state >> 8) / (1 << 24) - 0.5f;
    }

    int done = gnomon_context_create(NULL, &ctx) == GNOMON_OK && run(ctx, &op, x, y);
    if (!done) fprintf(stderr, "sketch: %s\n", gnomon_last_error(ctx));

    gnomon_operator_destroy(op);
    gnomon_context_destroy(ctx);
    free(x);
    free(y);
    return done ? 0 : 1;
}

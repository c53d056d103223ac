/* An operator's three uses: the sketch of points, the adjoint, and a sketch of points whose
 * coordinates come in pieces, which has the same bits. */
#include <gnomon.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS = 50, DIMENSIONS = 5000, K = 128, PIECE = 700 };

typedef struct space {
    gnomon_context *ctx;
    gnomon_operator *op;
    gnomon_stream *stream;
    float *x, *y, *again, *back;
} space;

static double norm(const float *v, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += (double)v[i] * (double)v[i];
    return sqrt(sum);
}

static int run(space *s)
{
    gnomon_descriptor descriptor = GNOMON_DESCRIPTOR_INIT;
    descriptor.kind = GNOMON_RADEMACHER;
    descriptor.k = K;
    descriptor.d = DIMENSIONS;
    descriptor.seed = 7;
    if (gnomon_operator_create(s->ctx, &descriptor, &s->op) != GNOMON_OK) return 0;

    /* Y = X S^T: points are rows, in the layout of NumPy */
    gnomon_matrix x = gnomon_matrix_rowmajor(s->x, GNOMON_F32, POINTS, DIMENSIONS);
    gnomon_matrix y = gnomon_matrix_rowmajor(s->y, GNOMON_F32, POINTS, K);
    if (gnomon_sketch(s->ctx, s->op, &x, &y, NULL) != GNOMON_OK) return 0;
    printf("sketch: the first point's norm is %.3f, its sketch's %.3f\n", norm(s->x, DIMENSIONS),
           norm(s->y, K));

    /* X' = Y S, an unbiased estimate of X */
    gnomon_matrix back = gnomon_matrix_rowmajor(s->back, GNOMON_F32, POINTS, DIMENSIONS);
    if (gnomon_adjoint(s->ctx, s->op, &y, &back, NULL) != GNOMON_OK) return 0;
    double inner = 0;
    for (int j = 0; j < DIMENSIONS; j++)
        inner += (double)s->x[j] * (double)s->back[j];
    printf("adjoint: <x, S'Sx> is %.3f, |Sx|^2 is %.3f\n", inner, norm(s->y, K) * norm(s->y, K));

    /* the same points, a few columns at a time */
    gnomon_matrix again = gnomon_matrix_rowmajor(s->again, GNOMON_F32, POINTS, K);
    if (gnomon_stream_create(s->ctx, s->op, POINTS, GNOMON_F32, NULL, &s->stream) != GNOMON_OK)
        return 0;
    for (int col = 0; col < DIMENSIONS; col += PIECE) {
        gnomon_matrix piece = x; /* a view: columns col and on of every point */
        piece.data = s->x + col;
        piece.cols = DIMENSIONS - col < PIECE ? DIMENSIONS - col : PIECE;
        if (gnomon_stream_push(s->stream, &piece) != GNOMON_OK) return 0;
    }
    if (gnomon_stream_finish(s->stream, &again) != GNOMON_OK) return 0;
    const int same = memcmp(s->y, s->again, sizeof(float) * POINTS * K) == 0;
    printf("stream: %s\n", same ? "the same bits" : "other bits");
    return same;
}

int main(void)
{
    space s = {.x = malloc(sizeof(float) * POINTS * DIMENSIONS),
               .y = malloc(sizeof(float) * POINTS * K),
               .again = malloc(sizeof(float) * POINTS * K),
               .back = malloc(sizeof(float) * POINTS * DIMENSIONS)};
    if (!s.x || !s.y || !s.again || !s.back) return 1;
    uint32_t state = 1;
    for (int i = 0; i < POINTS * DIMENSIONS; i++) {
        state = state * 1664525u + 1013904223u;
        s.x[i] = (float)(state >> 8) / (1 << 24) - 0.5f;
    }
    const int done = gnomon_context_create(NULL, &s.ctx) == GNOMON_OK && run(&s);
    if (!done) fprintf(stderr, "project: %s\n", gnomon_last_error(s.ctx));
    gnomon_stream_destroy(s.stream);
    gnomon_operator_destroy(s.op);
    gnomon_context_destroy(s.ctx);
    free(s.x);
    free(s.y);
    free(s.again);
    free(s.back);
    return done ? 0 : 1;
}

/* Rounding errors of single-precision sketches, beside those of OpenBLAS SGEMM with the stored
 * matrix, for every kind and growing D. The reference is the same sketch of the same points in
 * FP64, which the unit tests hold to the operator's entries.
 *
 * The error of a sketch is |y - exact| / |exact| (Euclidean, a point's k numbers), the largest of
 * the points. Points are uniform in [-1, 1) ('centred') or in [0, 1) ('positive', where partial
 * sums of dense kinds wander no further but those of the data do). Operators are unscaled, so that
 * the stored matrix has the operator's very entries.
 *
 * usage: bench_accuracy [FILE.json] */
#include <cblas.h>
#include <gnomon.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS = 8, K = 32, LARGEST = 20 };

typedef struct kind_row {
    const char *name;
    gnomon_descriptor descriptor;
    int64_t most_stored; /* D up to which the stored matrix is made */
} kind_row;

static kind_row kinds[9];
static int kind_count;

static void add(const char *name, gnomon_kind kind, gnomon_dtype precision, int64_t blocks)
{
    kind_row *row = &kinds[kind_count++];
    row->name = name;
    row->descriptor = (gnomon_descriptor)GNOMON_DESCRIPTOR_INIT;
    row->descriptor.kind = kind;
    row->descriptor.precision = precision;
    row->descriptor.blocks = blocks;
    row->descriptor.scaling = GNOMON_UNSCALED;
    row->descriptor.seed = 42;
    row->descriptor.k = K;
    /* an entry of a cascade takes all of its levels */
    row->most_stored = kind == GNOMON_KRONECKER ? 4096 : INT64_C(1) << LARGEST;
}

static float uniform(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (float)((z ^ (z >> 31)) >> 40) / 16777216.0f;
}

static double worst(const float *y, const double *exact)
{
    double most = 0;
    for (int i = 0; i < POINTS; i++) {
        double error = 0, norm = 0;
        for (int r = 0; r < K; r++) {
            const double d = (double)y[i * K + r] - exact[i * K + r];
            error += d * d;
            norm += exact[i * K + r] * exact[i * K + r];
        }
        if (sqrt(error / norm) > most) most = sqrt(error / norm);
    }
    return most;
}

typedef struct space {
    gnomon_context *ctx;
    float *x, *stored;
    double *f64;
} space;

/* Errors of one kind, D and set of points; *sgemm is NaN where there is no stored matrix. */
static int measure(space *s, const kind_row *row, int64_t d, int positive, double *ours,
                   double *sgemm)
{
    gnomon_descriptor descriptor = row->descriptor;
    gnomon_operator *op = NULL;
    float y[POINTS * K], z[POINTS * K];
    double exact[POINTS * K];
    descriptor.d = d;
    if (gnomon_operator_create(s->ctx, &descriptor, &op) != GNOMON_OK) return 0;
    uint64_t state = 1;
    for (int64_t e = 0; e < POINTS * d; e++) {
        s->x[e] = positive ? uniform(&state) : 2 * uniform(&state) - 1;
        s->f64[e] = (double)s->x[e];
    }
    const gnomon_matrix x = gnomon_matrix_rowmajor(s->x, GNOMON_F32, POINTS, d);
    const gnomon_matrix f64 = gnomon_matrix_rowmajor(s->f64, GNOMON_F64, POINTS, d);
    const gnomon_matrix to = gnomon_matrix_rowmajor(y, GNOMON_F32, POINTS, K);
    const gnomon_matrix exactly = gnomon_matrix_rowmajor(exact, GNOMON_F64, POINTS, K);
    const gnomon_matrix stored = gnomon_matrix_rowmajor(s->stored, GNOMON_F32, K, d);
    int ok = gnomon_sketch(s->ctx, op, &x, &to, NULL) == GNOMON_OK &&
             gnomon_sketch(s->ctx, op, &f64, &exactly, NULL) == GNOMON_OK;
    if (ok) *ours = worst(y, exact);
    *sgemm = NAN;
    if (ok && d <= row->most_stored) {
        ok = gnomon_operator_block(s->ctx, op, 0, 0, &stored) == GNOMON_OK;
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, POINTS, K, (int)d, 1, s->x, (int)d,
                    s->stored, (int)d, 0, z, K);
        *sgemm = worst(z, exact);
    }
    gnomon_operator_destroy(op);
    return ok;
}

static int run(space *s, FILE *json)
{
    const char *separator = "";
    printf("| kind | points | D | gnomon | SGEMM | gnomon / SGEMM |\n|---|---|---|---|---|---|\n");
    if (json) fprintf(json, "{\"k\": %d, \"points\": %d, \"results\": [", K, POINTS);
    for (int i = 0; i < kind_count; i++) {
        for (int positive = 0; positive < 2; positive++) {
            for (int log2 = 6; log2 <= LARGEST; log2 += log2 == 18 ? 2 : 3) {
                const int64_t d = INT64_C(1) << log2;
                const char *points = positive ? "positive" : "centred";
                double ours, sgemm;
                if (!measure(s, &kinds[i], d, positive, &ours, &sgemm)) return 0;
                printf("| `%s` | %s | %lld | %.1e | ", kinds[i].name, points, (long long)d, ours);
                if (isnan(sgemm))
                    printf("| |\n");
                else
                    printf("%.1e | %.2f |\n", sgemm, ours / sgemm);
                fflush(stdout);
                if (!json) continue;
                fprintf(json, "%s\n {\"kind\": \"%s\", \"data\": \"%s\", \"d\": %lld, ", separator,
                        kinds[i].name, points, (long long)d);
                fprintf(json, "\"gnomon\": %.3e", ours);
                if (!isnan(sgemm)) fprintf(json, ", \"sgemm\": %.3e", sgemm);
                fprintf(json, "}");
                separator = ",";
            }
        }
    }
    if (json) fprintf(json, "\n]}\n");
    return 1;
}

int main(int argc, char **argv)
{
    const int64_t largest = INT64_C(1) << LARGEST;
    space s = {NULL, malloc(sizeof(float) * POINTS * (size_t)largest),
               malloc(sizeof(float) * K * (size_t)largest),
               malloc(sizeof(double) * POINTS * (size_t)largest)};
    FILE *json = argc > 1 ? fopen(argv[1], "w") : NULL;
    if (!s.x || !s.stored || !s.f64 || (argc > 1 && !json)) {
        fprintf(stderr, "accuracy: no memory, or %s can't be written\n", argc > 1 ? argv[1] : "");
        return 1;
    }
    add("gaussian", GNOMON_GAUSSIAN, GNOMON_F32, 0);
    add("gaussian fp16", GNOMON_GAUSSIAN, GNOMON_F16, 0);
    add("rademacher", GNOMON_RADEMACHER, 0, 0);
    add("achlioptas", GNOMON_ACHLIOPTAS, 0, 0);
    add("very-sparse", GNOMON_VERY_SPARSE, 0, 0);
    add("sjlt", GNOMON_SJLT, 0, 0);
    add("srht", GNOMON_SRHT, 0, 0);
    add("block", GNOMON_BLOCK, 0, 4);
    add("kronecker", GNOMON_KRONECKER, 0, 0);
    int done = gnomon_context_create(NULL, &s.ctx) == GNOMON_OK && run(&s, json);
    if (!done) fprintf(stderr, "accuracy: %s\n", gnomon_last_error(s.ctx));
    gnomon_context_destroy(s.ctx);
    if (json && fclose(json) != 0) done = 0;
    free(s.x);
    free(s.stored);
    free(s.f64);
    return done ? 0 : 1;
}

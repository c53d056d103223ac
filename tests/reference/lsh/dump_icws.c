/* The values of functions of consistent weighted sampling at one row.
 * usage: dump_icws SEED COUNT [COLUMN WEIGHT]... */
#include <gnomon/lsh.h>

#include <stdio.h>
#include <stdlib.h>

enum { MOST = 64 };

static int fail(gnomon_context *ctx)
{
    fprintf(stderr, "dump_icws: %s\n", ctx ? gnomon_last_error(ctx) : "no context");
    return 1;
}

int main(int argc, char **argv)
{
    gnomon_context *ctx = NULL;
    gnomon_hasher *hasher = NULL;
    gnomon_lsh_functions f = GNOMON_LSH_FUNCTIONS_INIT;
    int64_t indices[MOST], offsets[2] = {0, 0};
    double values[MOST];
    if (argc < 3 || argc > 3 + 2 * MOST || argc % 2 == 0) return 2;
    f.family = GNOMON_LSH_ICWS;
    f.dim = INT64_MAX;
    f.seed = strtoull(argv[1], NULL, 10);
    f.count = strtoll(argv[2], NULL, 10);
    for (int i = 3; i < argc; i += 2, offsets[1]++) {
        indices[offsets[1]] = strtoll(argv[i], NULL, 10);
        values[offsets[1]] = strtod(argv[i + 1], NULL);
    }
    if (gnomon_context_create(NULL, &ctx) != GNOMON_OK) return fail(ctx);
    if (gnomon_hasher_create(ctx, &f, &hasher) != GNOMON_OK) return fail(ctx);
    int32_t *out = calloc((size_t)f.count, sizeof *out);
    if (out == NULL) return fail(NULL);
    const gnomon_csr row = {1, f.dim, offsets, indices, values, GNOMON_F64};
    const gnomon_matrix to = gnomon_matrix_rowmajor(out, GNOMON_I32, 1, f.count);
    if (gnomon_hasher_apply_csr(ctx, hasher, &row, &to) != GNOMON_OK) return fail(ctx);
    for (int64_t i = 0; i < f.count; i++)
        printf("%lu\n", (unsigned long)(uint32_t)out[i]);
    free(out);
    gnomon_hasher_destroy(hasher);
    gnomon_context_destroy(ctx);
    return 0;
}

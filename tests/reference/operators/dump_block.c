/* Serves blocks of operators to the Python tests. Each line on standard input is
 *   f32|f64 row rows col cols DESCRIPTOR-JSON
 * and is answered on standard output by the block, row-major, in the machine's byte order;
 * "csr" for the type answers the block made through gnomon_operator_block_csr, filled out, as f64.
 */
#include <gnomon.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int complain(gnomon_context *ctx, const char *line)
{
    fprintf(stderr, "%s\n  in: %s\n", gnomon_last_error(ctx), line);
    return 1;
}

static gnomon_status fill_from_csr(gnomon_context *ctx, const gnomon_operator *op, int64_t row,
                                   int64_t col, const gnomon_matrix *out)
{
    gnomon_csr csr;
    const gnomon_status status =
        gnomon_operator_block_csr(ctx, op, row, col, out->rows, out->cols, GNOMON_F64, &csr);
    if (status != GNOMON_OK) return status;
    double *values = out->data;
    memset(values, 0, (size_t)(out->rows * out->cols) * sizeof *values);
    for (int64_t i = 0; i < csr.rows; i++)
        for (int64_t e = csr.offsets[i]; e < csr.offsets[i + 1]; e++)
            values[i * out->cols + csr.indices[e]] += ((const double *)csr.values)[e];
    gnomon_csr_free(ctx, &csr);
    return GNOMON_OK;
}

static int serve(gnomon_context *ctx, const char *line)
{
    char type[4];
    int64_t row, rows, col, cols;
    int at;
    if (sscanf(line, "%3s %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %n", type, &row, &rows,
               &col, &cols, &at) != 5) {
        fprintf(stderr, "not a request: %s\n", line);
        return 1;
    }
    gnomon_operator *op;
    if (gnomon_operator_from_json(ctx, line + at, strlen(line + at), &op) != GNOMON_OK)
        return complain(ctx, line);
    const int single = strcmp(type, "f32") == 0;
    const size_t size = single ? sizeof(float) : sizeof(double);
    gnomon_matrix out = gnomon_matrix_rowmajor(NULL, single ? GNOMON_F32 : GNOMON_F64, rows, cols);
    out.data = malloc((size_t)(rows * cols) * size);
    if (!out.data) return 1;
    memset(out.data, 0xff, (size_t)(rows * cols) * size); /* NaN: every entry must be written */
    const gnomon_status status = strcmp(type, "csr") == 0
                                     ? fill_from_csr(ctx, op, row, col, &out)
                                     : gnomon_operator_block(ctx, op, row, col, &out);
    if (status != GNOMON_OK) complain(ctx, line);
    fwrite(out.data, size, (size_t)(rows * cols), stdout);
    fflush(stdout);
    free(out.data);
    gnomon_operator_destroy(op);
    return status != GNOMON_OK;
}

int main(void)
{
    gnomon_context *ctx;
    if (gnomon_context_create(NULL, &ctx) != GNOMON_OK) return complain(NULL, "context");
    char *line = NULL;
    size_t room = 0;
    int failed = 0;
    while (!failed && getline(&line, &room, stdin) > 0)
        failed = serve(ctx, line);
    free(line);
    gnomon_context_destroy(ctx);
    return failed;
}

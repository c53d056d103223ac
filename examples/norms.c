/* norms: the length of every point of a file, one a line, in any format that the library
 * reads; "-" is standard input.
 *
 *   norms points.fvecs
 *   zcat points.csv.gz | norms -
 */
#include <gnomon/io.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: norms FILE\n");
        return 2;
    }
    gnomon_context *ctx;
    gnomon_status status = gnomon_context_create(NULL, &ctx);
    gnomon_reader *reader = NULL;
    if (status == GNOMON_OK) status = gnomon_reader_open(ctx, argv[1], NULL, &reader);
    gnomon_data_info info = {.struct_size = sizeof info};
    if (status == GNOMON_OK) status = gnomon_reader_info(reader, &info);
    double *point = calloc((size_t)info.cols + 1, sizeof *point);
    if (point == NULL) return 1;

    /* one point at a time; a program that works on them would take more */
    gnomon_matrix dst = gnomon_matrix_rowmajor(point, GNOMON_F64, 1, info.cols);
    int64_t got = 1;
    while (status == GNOMON_OK && got > 0) {
        status = gnomon_reader_next(reader, &dst, &got);
        if (status != GNOMON_OK || got == 0) break;
        double sum = 0;
        for (int64_t j = 0; j < info.cols; j++)
            sum += point[j] * point[j];
        printf("%.17g\n", sqrt(sum));
    }
    if (status != GNOMON_OK)
        fprintf(stderr, "norms: %s (%s)\n", gnomon_last_error(ctx), gnomon_status_name(status));
    free(point);
    gnomon_reader_close(reader);
    gnomon_context_destroy(ctx);
    return status != GNOMON_OK;
}

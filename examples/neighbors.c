/* neighbors: the five nearest base points of each query, from files in any format that the library
 * reads; the base is read piece by piece.
 *
 *   neighbors base.fvecs queries.fvecs
 */
#include <gnomon/io.h>
#include <gnomon/search.h>

#include <stdio.h>
#include <stdlib.h>

enum { K = 5, PIECE = 4096 };

/* Reads up to 'rows' points from where the reader stands. */
static gnomon_status read_points(gnomon_reader *reader, gnomon_matrix *points, int64_t rows)
{
    points->rows = rows;
    gnomon_status status = gnomon_reader_next(reader, points, &rows);
    points->rows = rows;
    return status;
}

static gnomon_status search_file(gnomon_context *ctx, gnomon_search *search, const char *path)
{
    gnomon_reader *reader = NULL;
    gnomon_status status = gnomon_reader_open(ctx, path, NULL, &reader);
    gnomon_data_info info = {.struct_size = sizeof info};
    if (status == GNOMON_OK) status = gnomon_reader_info(reader, &info);
    float *data = malloc(sizeof *data * PIECE * (size_t)info.cols + 1);
    if (data == NULL) exit(1);
    gnomon_matrix piece = gnomon_matrix_rowmajor(data, GNOMON_F32, PIECE, info.cols);
    while (status == GNOMON_OK) {
        status = read_points(reader, &piece, PIECE);
        if (status != GNOMON_OK || piece.rows == 0) break;
        status = gnomon_search_add(search, &piece);
    }
    free(data);
    gnomon_reader_close(reader);
    return status;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: neighbors BASE QUERIES\n");
        return 2;
    }
    gnomon_context *ctx;
    gnomon_reader *reader = NULL;
    gnomon_search *search = NULL;
    gnomon_data_info info = {.struct_size = sizeof info};
    gnomon_neighbors found = {.struct_size = sizeof found};
    gnomon_search_options options = GNOMON_SEARCH_OPTIONS_INIT;
    options.k = K;
    gnomon_status status = gnomon_context_create(NULL, &ctx);
    if (status != GNOMON_OK) return 1;
    status = gnomon_reader_open(ctx, argv[2], NULL, &reader);
    if (status == GNOMON_OK) status = gnomon_reader_info(reader, &info);
    const int64_t rows = info.rows >= 0 ? info.rows : 1000000;
    float *data = malloc(sizeof *data * (size_t)(rows * info.cols) + 1);
    if (data == NULL) return 1;
    gnomon_matrix queries = gnomon_matrix_rowmajor(data, GNOMON_F32, rows, info.cols);
    if (status == GNOMON_OK) status = read_points(reader, &queries, rows);
    if (status == GNOMON_OK) status = gnomon_search_create(ctx, &queries, &options, &search);
    if (status == GNOMON_OK) status = search_file(ctx, search, argv[1]);
    if (status == GNOMON_OK) status = gnomon_search_finish(search, &found);
    for (int64_t i = 0; status == GNOMON_OK && i < found.offsets[found.queries]; i++)
        printf("%lld %lld %g\n", (long long)(i / K), (long long)found.ids[i], found.distances[i]);
    if (status != GNOMON_OK)
        fprintf(stderr, "neighbors: %s (%s)\n", gnomon_last_error(ctx), gnomon_status_name(status));
    gnomon_neighbors_free(ctx, &found);
    gnomon_search_destroy(search);
    gnomon_reader_close(reader);
    free(data);
    gnomon_context_destroy(ctx);
    return status != GNOMON_OK;
}

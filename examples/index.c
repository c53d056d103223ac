/* Writes an index of points to a file, opens it, and prints each query's neighbours as lines of
 * query, neighbour, distance.
 *
 * usage: index BASE QUERIES INDEX */
#include <gnomon.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static double *read_points(gnomon_context *ctx, const char *path, gnomon_matrix *points)
{
    gnomon_reader *reader;
    gnomon_data_info info = {.struct_size = sizeof info};
    double *data = NULL;
    int64_t got = 0;
    if (gnomon_reader_open(ctx, path, NULL, &reader) != GNOMON_OK) return NULL;
    if (gnomon_reader_info(reader, &info) == GNOMON_OK && info.cols > 0) {
        const int64_t room = info.rows > 0 ? info.rows : 1 << 16;
        data = malloc((size_t)(room * info.cols) * sizeof *data);
        *points = gnomon_matrix_rowmajor(data, GNOMON_F64, room, info.cols);
        if (data != NULL && gnomon_reader_next(reader, points, &got) == GNOMON_OK)
            points->rows = got;
    }
    gnomon_reader_close(reader);
    return data;
}

/* Given settings; gnomon_lsh_tune chooses them by the recall that is wanted. */
static gnomon_status build(gnomon_context *ctx, const gnomon_matrix *base, const char *path)
{
    gnomon_lsh_options options = GNOMON_LSH_OPTIONS_INIT;
    gnomon_lsh_builder *builder;
    options.metric = GNOMON_L2;
    options.functions.family = GNOMON_LSH_PSTABLE;
    options.functions.dim = base->cols;
    options.functions.width = 4;
    options.tables = 8;
    options.coarse = 3;
    options.search_params.probes = 8;
    gnomon_status status = gnomon_lsh_builder_create(ctx, &options, path, &builder);
    if (status != GNOMON_OK) return status;
    /* as many pieces as one likes */
    status = gnomon_lsh_builder_add(builder, base);
    if (status == GNOMON_OK) return gnomon_lsh_builder_finish(builder);
    gnomon_lsh_builder_abort(builder);
    return status;
}

static gnomon_status print_neighbours(gnomon_context *ctx, const char *path,
                                      const gnomon_matrix *queries)
{
    gnomon_lsh *index;
    gnomon_search_options options = GNOMON_SEARCH_OPTIONS_INIT;
    gnomon_neighbors found = {.struct_size = sizeof found};
    gnomon_status status = gnomon_lsh_open(ctx, path, &index);
    if (status != GNOMON_OK) return status;
    options.k = 2;
    status = gnomon_lsh_query(ctx, index, queries, &options, NULL, &found, NULL);
    for (int64_t i = 0; status == GNOMON_OK && i < found.queries * found.k; i++)
        printf("%" PRId64 " %" PRId64 " %g\n", i / found.k, found.ids[i], found.distances[i]);
    gnomon_neighbors_free(ctx, &found);
    gnomon_lsh_destroy(index);
    return status;
}

int main(int argc, char **argv)
{
    gnomon_context *ctx;
    gnomon_matrix base, queries;
    if (argc != 4) {
        fputs("usage: index BASE QUERIES INDEX\n", stderr);
        return 2;
    }
    if (gnomon_context_create(NULL, &ctx) != GNOMON_OK) return 1;
    double *points = read_points(ctx, argv[1], &base);
    double *asked = points != NULL ? read_points(ctx, argv[2], &queries) : NULL;
    int failed = asked == NULL || build(ctx, &base, argv[3]) != GNOMON_OK ||
                 print_neighbours(ctx, argv[3], &queries) != GNOMON_OK;
    if (failed) fprintf(stderr, "index: %s\n", gnomon_last_error(ctx));
    free(points);
    free(asked);
    gnomon_context_destroy(ctx);
    return failed;
}

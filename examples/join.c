/* join: near-duplicates among points from a file in any format that the library reads: pairs within
 * a distance, and the clusters that they make.
 *
 *   join points.npy 0.5
 */
#include <gnomon/io.h>
#include <gnomon/join.h>

#include <stdio.h>
#include <stdlib.h>

/* Called with some pairs at a time, in the order of (i, j). */
static int take(void *user, const gnomon_join_batch *batch)
{
    gnomon_clusters *clusters = user;
    for (int64_t at = 0; at < batch->count; at++) {
        const gnomon_pair *pair = &batch->pairs[at];
        printf("%lld %lld %g\n", (long long)pair->i, (long long)pair->j, pair->distance);
        gnomon_clusters_add(clusters, pair->i, pair->j);
    }
    return 0;
}

static gnomon_status read_points(gnomon_context *ctx, const char *path, gnomon_matrix *points)
{
    gnomon_reader *reader;
    gnomon_data_info info = {.struct_size = sizeof info};
    gnomon_status status = gnomon_reader_open(ctx, path, NULL, &reader);
    if (status != GNOMON_OK) return status;
    status = gnomon_reader_info(reader, &info);
    const int64_t room = info.rows >= 0 ? info.rows : 1000000;
    float *data = malloc(sizeof *data * (size_t)(room * info.cols) + 1);
    if (data == NULL) exit(1);
    *points = gnomon_matrix_rowmajor(data, GNOMON_F32, room, info.cols);
    int64_t rows = 0;
    if (status == GNOMON_OK) status = gnomon_reader_next(reader, points, &rows);
    points->rows = rows;
    gnomon_reader_close(reader);
    return status;
}

static void print_clusters(gnomon_clusters *clusters, int64_t points)
{
    int64_t *labels = malloc(sizeof *labels * (size_t)points + 1);
    int64_t *representatives = malloc(sizeof *labels * (size_t)points + 1);
    if (labels == NULL || representatives == NULL) exit(1);
    gnomon_clusters_label(clusters, labels, representatives);
    for (int64_t i = 0; i < points; i++)
        if (representatives[labels[i]] != i)
            printf("%lld is like %lld\n", (long long)i, (long long)representatives[labels[i]]);
    free(labels);
    free(representatives);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: join POINTS DISTANCE\n");
        return 2;
    }
    gnomon_context *ctx;
    gnomon_matrix points = {0};
    gnomon_clusters *clusters = NULL;
    gnomon_join_options options = GNOMON_JOIN_OPTIONS_INIT;
    gnomon_status status = gnomon_context_create(NULL, &ctx);
    if (status != GNOMON_OK) return 1;
    status = read_points(ctx, argv[1], &points);
    if (status == GNOMON_OK) status = gnomon_clusters_create(ctx, points.rows, &clusters);
    options.threshold = strtod(argv[2], NULL);
    options.sink = take;
    options.user = clusters;
    if (status == GNOMON_OK) status = gnomon_join(ctx, &points, NULL, &options, NULL);
    if (status == GNOMON_OK) print_clusters(clusters, points.rows);
    if (status != GNOMON_OK)
        fprintf(stderr, "join: %s (%s)\n", gnomon_last_error(ctx), gnomon_status_name(status));
    gnomon_clusters_destroy(clusters);
    gnomon_context_destroy(ctx);
    free(points.data);
    return status == GNOMON_OK ? 0 : 1;
}

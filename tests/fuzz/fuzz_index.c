/* Index files: whatever opens must answer a query, whatever the check says of it. */
#include "fuzz_io.h"

#include <gnomon/lsh.h>
#include <gnomon/rabitq.h>
#include <gnomon/sparse_index.h>

/* A file of sparse points: its nearest points, and all within a radius, of one query. */
static void ask_sparse(gnomon_context *ctx, const gnomon_sparse_index *index)
{
    gnomon_sparse_index_info info = {.struct_size = sizeof info};
    gnomon_sparse_index_describe(index, &info);
    const int64_t offsets[] = {0, info.dim < 3 ? info.dim : 3}, columns[] = {0, 1, 2};
    const double values[] = {1, 2, -1};
    const gnomon_csr query = {1, info.dim, offsets, columns, values, GNOMON_F64};
    gnomon_search_options wanted = GNOMON_SEARCH_OPTIONS_INIT;
    wanted.metric = info.metric;
    for (wanted.k = 0; wanted.k < 2; wanted.k++) {
        gnomon_neighbors found = {.struct_size = sizeof found};
        wanted.radius = 1;
        const gnomon_status status =
            gnomon_sparse_index_query_csr(ctx, index, &query, &wanted, &found);
        CHECK(status != GNOMON_ERROR_INTERNAL);
        if (status == GNOMON_OK) gnomon_neighbors_free(ctx, &found);
    }
}

/* A file of codes: the nearest point of a query, exactly, nearly and by estimates. */
static void ask_codes(gnomon_context *ctx, const gnomon_rabitq *index)
{
    gnomon_rabitq_info info = {.struct_size = sizeof info};
    gnomon_rabitq_describe(index, &info);
    float point[64] = {1, 2, -1};
    if (info.dim > 64) return;
    const gnomon_matrix query = gnomon_matrix_rowmajor(point, GNOMON_F32, 1, info.dim);
    gnomon_search_options wanted = GNOMON_SEARCH_OPTIONS_INIT;
    gnomon_rabitq_params nearly = GNOMON_RABITQ_PARAMS_INIT;
    wanted.metric = info.options.metric;
    wanted.k = 1;
    nearly.recall = 0.5;
    for (int way = 0; way < 2; way++) {
        gnomon_neighbors found = {.struct_size = sizeof found};
        const gnomon_status status =
            gnomon_rabitq_query(ctx, index, &query, &wanted, way == 0 ? NULL : &nearly, &found);
        CHECK(status != GNOMON_ERROR_INTERNAL);
        if (status == GNOMON_OK) gnomon_neighbors_free(ctx, &found);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    options.threads = 1;
    options.device = "cpu";
    gnomon_context *ctx;
    CHECK(gnomon_context_create(&options, &ctx) == GNOMON_OK);
    char path[64];
    int fd = fuzz_file(data, size, path);
    gnomon_lsh *index;
    gnomon_status status = gnomon_lsh_open(ctx, path, &index);
    CHECK((status == GNOMON_OK) == (index != NULL));
    CHECK(status != GNOMON_ERROR_INTERNAL);
    if (index != NULL) gnomon_lsh_destroy(index);
    status = gnomon_lsh_check(ctx, path, NULL, NULL);
    CHECK(status != GNOMON_ERROR_INTERNAL);
    gnomon_sparse_index *sparse;
    status = gnomon_sparse_index_open(ctx, path, &sparse);
    CHECK((status == GNOMON_OK) == (sparse != NULL));
    CHECK(status != GNOMON_ERROR_INTERNAL);
    if (sparse != NULL) ask_sparse(ctx, sparse);
    gnomon_sparse_index_destroy(sparse);
    CHECK(gnomon_sparse_index_check(ctx, path, NULL, NULL) != GNOMON_ERROR_INTERNAL);
    gnomon_rabitq *codes;
    status = gnomon_rabitq_open(ctx, path, &codes);
    CHECK((status == GNOMON_OK) == (codes != NULL));
    CHECK(status != GNOMON_ERROR_INTERNAL);
    if (codes != NULL) ask_codes(ctx, codes);
    gnomon_rabitq_destroy(codes);
    CHECK(gnomon_rabitq_check(ctx, path, NULL, NULL) != GNOMON_ERROR_INTERNAL);
    close(fd);
    gnomon_context_destroy(ctx);
    return 0;
}

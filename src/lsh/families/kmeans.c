/* The nearest of some trained centres, for l2 and cosine (Pauleve, Jegou & Amsaleg, "Locality
 * sensitive hashing: a comparison of hash function types and querying mechanisms", 2010). Which is
 * nearest is told by exact search, so that it is the same on every machine. */
#include "base/arithmetic.h"
#include "base/error.h"
#include "base/memory.h"
#include "lsh/families/family.h"
#include "points/view.h"

#include <stdlib.h>
#include <string.h>

static gnomon_status copy_centres(gnomon_context *ctx, gnomon_hasher *h)
{
    const size_t bytes =
        (size_t)gnomon_times(gnomon_times(h->f.centre_count, h->f.dim), sizeof *h->centres);
    h->centres = malloc(bytes);
    GNOMON_FAIL_IF(h->centres == NULL, ctx, GNOMON_ERROR_MEMORY, "no memory for centres");
    memcpy(h->centres, h->f.centres, bytes);
    h->f.centres = h->centres;
    return GNOMON_OK;
}

gnomon_status gnomon_hasher_lists(gnomon_context *ctx, const gnomon_hasher *h,
                                  const gnomon_points *points, int64_t first, int64_t n,
                                  int64_t count, int32_t *lists, double *distances)
{
    const gnomon_matrix base =
        gnomon_matrix_rowmajor(h->centres, GNOMON_F32, h->f.centre_count, h->f.dim);
    const int64_t each = 2 * (int64_t)(sizeof(int64_t) + sizeof(double)); /* found, and answered */
    const int64_t batch = gnomon_hasher_batch_points(ctx, gnomon_times(each, count), n);
    gnomon_search_options o = GNOMON_SEARCH_OPTIONS_INIT;
    o.metric = gnomon_family_row_of(h->f.family)->centres;
    o.k = count;
    for (int64_t at = 0; at < n; at += batch) {
        const int64_t here = gnomon_min(batch, n - at);
        const gnomon_matrix queries = gnomon_rows(points->dense, first + at, here);
        gnomon_neighbors found = {.struct_size = sizeof found};
        GNOMON_TRY(gnomon_neighbors_exact(ctx, &base, &queries, &o, &found));
        for (int64_t i = 0; i < here * count; i++)
            lists[at * count + i] = (int32_t)found.ids[i];
        if (distances != NULL)
            memcpy(distances + at * count, found.distances,
                   (size_t)(here * count) * sizeof *distances);
        gnomon_neighbors_free(ctx, &found);
    }
    return GNOMON_OK;
}

static gnomon_status nearest(gnomon_context *ctx, const gnomon_hasher *h,
                             const gnomon_points *points, int64_t first, int64_t n, void *products)
{
    if (h->known == NULL) return gnomon_hasher_lists(ctx, h, points, first, n, 1, products, NULL);
    memcpy(products, h->known + first, (size_t)n * sizeof *h->known);
    return GNOMON_OK;
}

static void hash_nearest(const gnomon_hash_batch *b, int64_t point, int64_t at)
{
    b->out->values[at] = ((const int32_t *)b->products)[point];
}

#define NEAREST(number, text, row, metric)                 \
    const gnomon_family_row row = {                        \
        .family = number,                                  \
        .name = text,                                      \
        .points = GNOMON_POINTS_DENSE,                     \
        .refusal = "dense points",                         \
        .centres = metric,                                 \
        .products = 1,                                     \
        .no_device = "it searches its centres on the CPU", \
        .setup = copy_centres,                             \
        .project = nearest,                                \
        .hash = hash_nearest,                              \
    }

NEAREST(GNOMON_LSH_KMEANS, "k-means", gnomon_family_row_kmeans, GNOMON_L2);
NEAREST(GNOMON_LSH_SPHERICAL_KMEANS, "spherical-k-means", gnomon_family_row_spherical_kmeans,
        GNOMON_COSINE);

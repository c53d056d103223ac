/* Connected components: union by size, with paths halved. */
#include "base/error.h"
#include "base/memory.h"

#include <gnomon/join.h>

#include <inttypes.h>
#include <stdbool.h>

struct gnomon_clusters {
    gnomon_context *ctx;
    int64_t points;
    int64_t *parent; /* of a root: minus its cluster's size */
    int64_t *pairs;  /* a point is in */
};

gnomon_status gnomon_clusters_create(gnomon_context *ctx, int64_t points, gnomon_clusters **out)
{
    gnomon_clusters *c;
    GNOMON_FAIL_IF(out == NULL, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("out") " is NULL");
    *out = NULL;
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_FAIL_IF(points < 0, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("points") " is %" PRId64 "; it must not be negative", points);
    GNOMON_TRY(gnomon_alloc_zero(ctx, 1, sizeof *c, "clusters", &c));
    c->ctx = ctx;
    c->points = points;
    gnomon_status status = gnomon_alloc(ctx, points, sizeof *c->parent, "clusters", &c->parent);
    if (status == GNOMON_OK)
        status = gnomon_alloc_zero(ctx, points, sizeof *c->pairs, "clusters", &c->pairs);
    if (status != GNOMON_OK) {
        gnomon_clusters_destroy(c);
        return status;
    }
    for (int64_t i = 0; i < points; i++)
        c->parent[i] = -1;
    *out = c;
    return GNOMON_OK;
}

void gnomon_clusters_destroy(gnomon_clusters *c)
{
    if (c == NULL) return;
    gnomon_free(c->ctx, c->parent);
    gnomon_free(c->ctx, c->pairs);
    gnomon_free(c->ctx, c);
}

static int64_t root_of(const gnomon_clusters *c, int64_t i)
{
    while (c->parent[i] >= 0) {
        const int64_t above = c->parent[c->parent[i]];
        if (above < 0) return c->parent[i];
        c->parent[i] = above;
        i = above;
    }
    return i;
}

gnomon_status gnomon_clusters_add(gnomon_clusters *c, int64_t i, int64_t j)
{
    GNOMON_NEED(NULL, c, "clusters");
    GNOMON_FAIL_IF(
        i < 0 || j < 0 || i >= c->points || j >= c->points, c->ctx, GNOMON_ERROR_ARGUMENT,
        GNOMON_ARG("i") " is %" PRId64 " and j %" PRId64 "; both must be in [0, %" PRId64 ")", i, j,
        c->points);
    c->pairs[i]++;
    c->pairs[j]++;
    int64_t a = root_of(c, i), b = root_of(c, j);
    if (a == b) return GNOMON_OK;
    if (c->parent[a] > c->parent[b]) {
        const int64_t swap = a;
        a = b;
        b = swap;
    }
    c->parent[a] += c->parent[b];
    c->parent[b] = a;
    return GNOMON_OK;
}

int64_t gnomon_clusters_label(gnomon_clusters *c, int64_t *labels, int64_t *representatives)
{
    if (c == NULL || labels == NULL) return -1;
    if (((uintptr_t)labels | (uintptr_t)representatives) % sizeof *labels != 0) return -1;
    int64_t count = 0;
    for (int64_t i = 0; i < c->points; i++)
        labels[i] = -1;
    /* A root that comes after its cluster's first point is labelled ahead of its turn. */
    for (int64_t i = 0; i < c->points; i++) {
        const int64_t root = root_of(c, i);
        if (labels[root] < 0) {
            if (representatives != NULL) representatives[count] = i;
            labels[root] = count++;
        }
        labels[i] = labels[root];
        if (representatives == NULL) continue;
        int64_t *best = &representatives[labels[i]];
        if (c->pairs[i] > c->pairs[*best]) *best = i;
    }
    return count;
}

/* What tuning knows of the points: true neighbours, distances, and where codes put them. */
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "lsh/tune/tuning.h"

#include <stdlib.h>

static gnomon_status exact(const gnomon_tuning *t, const gnomon_points *base,
                           const gnomon_points *queries, int64_t k, double radius,
                           gnomon_neighbors *out)
{
    gnomon_search_options o = GNOMON_SEARCH_OPTIONS_INIT;
    *out = (gnomon_neighbors){.struct_size = sizeof *out};
    o.metric = t->p.metric;
    o.k = k;
    o.radius = radius;
    return base->dense ? gnomon_neighbors_exact(t->ctx, base->dense, queries->dense, &o, out)
                       : gnomon_neighbors_exact_csr(t->ctx, base->sparse, queries->sparse, &o, out);
}

/* Without the queries themselves. */
static gnomon_status keep_others(const gnomon_tuning *t, const gnomon_neighbors *found,
                                 gnomon_asked *out)
{
    const int64_t count = out->some.count, k = t->p.k;
    int64_t at = 0;
    GNOMON_TRY(gnomon_alloc_zero(t->ctx, count + 1, sizeof *out->offsets, "true neighbours",
                                 &out->offsets));
    GNOMON_TRY(gnomon_alloc(t->ctx, found->offsets[count], sizeof *out->ids, "true neighbours",
                            &out->ids));
    for (int64_t q = 0; q < count; q++) {
        for (int64_t i = found->offsets[q]; i < found->offsets[q + 1]; i++) {
            if (t->self && found->ids[i] == out->some.rows[q]) continue;
            if (k > 0 && at - out->offsets[q] == k) break;
            out->ids[at++] = found->ids[i];
        }
        out->offsets[q + 1] = at;
    }
    return GNOMON_OK;
}

gnomon_status gnomon_tuning_ask(gnomon_tuning *t, int64_t skip, int64_t count, gnomon_asked *out,
                                double *typical)
{
    gnomon_neighbors found;
    const int64_t k = t->p.k > 0 ? t->p.k + t->self : 0;
    GNOMON_TRY(gnomon_some_points_draw(t->ctx, t->queries, t->p.seed, skip, count, &out->some));
    GNOMON_TRY(exact(t, t->points, &out->some.points, k, t->p.radius, &found));
    const gnomon_status status = keep_others(t, &found, out);
    if (typical) {
        int64_t with = 0;
        double sum = 0;
        for (int64_t q = 0; q < count; q++) {
            if (found.offsets[q + 1] == found.offsets[q]) continue;
            sum += found.distances[found.offsets[q + 1] - 1];
            with++;
        }
        *typical = with > 0 ? sum / (double)with : 0;
    }
    gnomon_neighbors_free(t->ctx, &found);
    return status;
}

void gnomon_asked_free(gnomon_context *ctx, gnomon_asked *asked)
{
    gnomon_some_points_free(ctx, &asked->some);
    gnomon_free(ctx, asked->offsets);
    gnomon_free(ctx, asked->ids);
    asked->offsets = asked->ids = NULL;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

gnomon_status gnomon_tuning_sample_far(gnomon_tuning *t)
{
    enum { POINTS = 256, QUERIES = 32 };
    gnomon_some_points base = {0}, queries = {0};
    gnomon_neighbors found = {.struct_size = sizeof found};
    const int64_t n = t->sizes.points, m = t->asked.some.count;
    const int64_t count = n < POINTS ? n : POINTS;
    gnomon_status status =
        gnomon_some_points_draw(t->ctx, t->points, t->p.seed + 1, 0, count, &base);
    if (status == GNOMON_OK)
        status = gnomon_some_points_draw(t->ctx, &t->asked.some.points, t->p.seed, 0,
                                         m < QUERIES ? m : QUERIES, &queries);
    if (status == GNOMON_OK) status = exact(t, &base.points, &queries.points, count, 0, &found);
    if (status == GNOMON_OK) {
        t->far = found.distances;
        t->far_count = found.offsets[found.queries];
        found.distances = NULL;
        qsort(t->far, (size_t)t->far_count, sizeof *t->far, ascending);
    }
    gnomon_neighbors_free(t->ctx, &found);
    gnomon_some_points_free(t->ctx, &base);
    gnomon_some_points_free(t->ctx, &queries);
    return status;
}

/* ---- codes ---- */

typedef struct ranking {
    const gnomon_tuning *t;
    const gnomon_kernels *kernels;
    const int8_t *codes; /* of the queries */
    const uint32_t *ids; /* all */
    uint64_t *ranked;    /* points a worker */
    int64_t *inside;     /* choices a query */
} ranking;

/* How many of a query's neighbours are among so many nearest codes. */
static void rank_query(void *arg, int64_t q, int worker)
{
    const ranking *r = arg;
    const gnomon_tuning *t = r->t;
    const gnomon_codes *c = &t->codes;
    const int64_t n = t->sizes.points;
    uint64_t *ranked = r->ranked + worker * n;
    r->kernels->rank_codes(r->codes + q * c->count, c->code, c->count, r->ids, n, ranked);
    for (int64_t i = t->asked.offsets[q]; i < t->asked.offsets[q + 1]; i++) {
        const uint64_t own = ranked[t->asked.ids[i]];
        int64_t before = 0;
        for (int64_t j = 0; j < n; j++)
            before += ranked[j] < own;
        for (int v = 1; v < GNOMON_TUNING_CHOICES; v++)
            r->inside[q * GNOMON_TUNING_CHOICES + v] += before < t->verified[v];
    }
}

static gnomon_status rank_neighbours(gnomon_tuning *t, int64_t queries, int8_t *codes,
                                     uint32_t *ids, uint64_t *ranked, int64_t *inside)
{
    const ranking r = {t,     gnomon_cpu_kernels(gnomon_context_isa(t->ctx)), codes, ids, ranked,
                       inside};
    GNOMON_TRY(
        gnomon_codes_make(t->ctx, &t->codes, t->p.metric, &t->asked.some.dense, 0, queries, codes));
    for (int64_t i = 0; i < t->sizes.points; i++)
        ids[i] = (uint32_t)i;
    gnomon_parallel(t->ctx, queries, rank_query, (void *)&r);
    for (int v = 1; v < GNOMON_TUNING_CHOICES; v++) {
        int64_t sum = 0;
        for (int64_t q = 0; q < queries; q++)
            sum += inside[q * GNOMON_TUNING_CHOICES + v];
        t->captured[v] = (double)sum / (double)t->asked.offsets[queries];
    }
    return GNOMON_OK;
}

gnomon_status gnomon_tuning_encode(gnomon_tuning *t)
{
    enum { QUERIES = 64 };
    gnomon_context *ctx = t->ctx;
    const int64_t n = t->sizes.points, m = t->asked.some.count;
    const int64_t queries = m < QUERIES ? m : QUERIES;
    const int64_t k = t->p.k > 0 ? t->p.k + t->self : 1;
    int8_t *codes = NULL;
    uint32_t *ids = NULL;
    uint64_t *ranked = NULL;
    int64_t *inside = NULL;
    gnomon_lsh_options o = GNOMON_LSH_OPTIONS_INIT;
    o.codes = GNOMON_TUNING_CODES;
    o.functions.dim = t->sizes.dim;
    o.functions.seed = t->p.seed;
    for (int v = 1; v < GNOMON_TUNING_CHOICES; v++)
        t->verified[v] = v % 2 == 1 ? k << (v + 1) / 2 : 3 * (k << v / 2) / 2;
    GNOMON_TRY(gnomon_codes_open(ctx, &o, &t->codes));
    GNOMON_TRY(gnomon_codes_train(ctx, &t->codes, t->p.metric, t->points->dense));
    GNOMON_TRY(gnomon_alloc(ctx, n, GNOMON_TUNING_CODES, "codes", &t->codes.code));
    GNOMON_TRY(
        gnomon_codes_make(ctx, &t->codes, t->p.metric, t->points->dense, 0, n, t->codes.code));
    gnomon_status status = gnomon_alloc(ctx, queries, GNOMON_TUNING_CODES, "codes", &codes);
    if (status == GNOMON_OK) status = gnomon_alloc(ctx, n, sizeof *ids, "ids", &ids);
    if (status == GNOMON_OK)
        status = gnomon_alloc(ctx, gnomon_times(n, gnomon_context_threads(ctx)), sizeof *ranked,
                              "ranked codes", &ranked);
    if (status == GNOMON_OK)
        status = gnomon_alloc_zero(ctx, gnomon_times(queries, GNOMON_TUNING_CHOICES),
                                   sizeof *inside, "counts", &inside);
    if (status == GNOMON_OK) status = rank_neighbours(t, queries, codes, ids, ranked, inside);
    gnomon_free(ctx, codes);
    gnomon_free(ctx, ids);
    gnomon_free(ctx, ranked);
    gnomon_free(ctx, inside);
    return status;
}

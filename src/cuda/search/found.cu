/* What a search finds, and the memory that it is in: see search/found.h. */
#include "cuda/search/found.h"

#include <math.h>

/* ---- memory ---- */

gnomon_status gcu_search_alloc(gcu_search *v, size_t bytes, void **data)
{
    GCU_TRY(v->why, gcu_alloc(v->s, data, bytes, v->stream));
    if (*data) v->parts[v->held++] = *data;
    return GNOMON_OK;
}

void gcu_search_free(gcu_search *v, int held)
{
    while (v->held > held)
        gcu_free(v->parts[--v->held], v->stream);
}

/* ---- what was found ---- */

gnomon_status gcu_search_read_words(gcu_search *v)
{
    GCU_TRY(v->why,
            cudaMemcpyAsync(v->seen, v->words, sizeof *v->seen, cudaMemcpyDeviceToHost, v->stream));
    GCU_TRY(v->why, cudaStreamSynchronize(v->stream));
    return GNOMON_OK;
}

gnomon_status gcu_search_begin_found(gcu_search *v)
{
    GCU_TRY(v->why, cudaMemsetAsync(v->words, 0, 2 * sizeof(unsigned long long), v->stream));
    return GNOMON_OK;
}

gnomon_status gcu_search_bring(gcu_search *v, void *const *from, void *const *to, int count,
                               int64_t bytes)
{
    gnomon_matrix here[2] = {}, there[2];
    for (int i = 0; i < count; i++) {
        gnomon_matrix *m = &here[i];
        m->data = to[i];
        m->dtype = GNOMON_F64;
        m->rows = 1;
        m->cols = m->row_stride = bytes / 8;
        m->col_stride = 1;
        there[i] = *m;
        there[i].data = from[i];
        there[i].memory = GNOMON_DEVICE_MEMORY;
    }
    const gcu_transfer transfer = gcu_transfer_of(v->job);
    return gcu_download_all(v->s, transfer, there, here, count, GCU_PAGEABLE, v->stream, v->why);
}

gnomon_status gcu_search_hand_hits(gcu_search *v, const gcu_search_pairs *pairs, int64_t count)
{
    gnomon_hit *at = nullptr;
    GCU_TRY(v->why, gcu_search_hits(pairs, v->found, count, v->hits, &v->words->hits, v->stream));
    TRY(gcu_search_read_words(v));
    const int64_t hits = (int64_t)v->seen->hits;
    if (hits == 0) return GNOMON_OK;
    v->why.text[0] = 0;
    TRY(v->job->calls->hits(v->job->calls->user, hits, &at));
    void *const from = v->hits, *const to = at;
    TRY(gcu_search_bring(v, &from, &to, 1, hits * (int64_t)sizeof *at));
    GCU_TRY(v->why, cudaStreamSynchronize(v->stream));
    return GNOMON_OK;
}

gnomon_status gcu_search_choose(gcu_search *v, const gcu_search_pairs *pairs, int64_t query,
                                int64_t queries, int64_t count, bool sample)
{
    gcu_search_news news = {};
    news.query = query;
    news.queries = queries;
    news.keys = v->sorted_keys;
    news.places = v->sorted_places;
    news.offsets = v->offsets;
    news.typical = count / queries;
    GCU_TRY(v->why, gcu_search_offsets(v->counts + query, queries, v->offsets + query, v->stream));
    GCU_TRY(v->why, gcu_search_scatter(v->found, count, v->offsets, v->sorted_keys,
                                       v->sorted_places, v->stream));
    const gcu_search_lists from = {sample ? nullptr : v->lists[v->now], v->list_counts, v->k};
    const gcu_search_lists to = {v->lists[1 - v->now], sample ? v->sample_counts : v->list_counts,
                                 v->k};
    GCU_TRY(v->why, gcu_search_select(pairs, &from, &to, &news, gcu_search_limits_of(v), v->radii,
                                      v->stream));
    return GNOMON_OK;
}

/* ---- progress ---- */

gnomon_status gcu_search_tell(gcu_search *v, int64_t pairs)
{
    v->done += pairs;
    if (v->done >= v->total) return GNOMON_OK;
    v->why.text[0] = 0;
    const gnomon_device_host *host = v->job->host;
    return host->progress(host->user, v->done, v->total) ? GNOMON_ERROR_CANCELLED : GNOMON_OK;
}

gnomon_status gcu_search_begin(gcu_search *v)
{
    if (v->begun) return GNOMON_OK;
    v->begun = true;
    GCU_TRY(v->why,
            gcu_search_fill(v->limits, v->count, v->k > 0 ? INFINITY : v->job->limit, v->stream));
    GCU_TRY(v->why, gcu_search_fill(v->radii, v->count,
                                    v->job->options->metric == GNOMON_IP ? -INFINITY : INFINITY,
                                    v->stream));
    if (v->k > 0)
        GCU_TRY(v->why,
                cudaMemsetAsync(v->list_counts, 0, (size_t)v->count * sizeof(int64_t), v->stream));
    return GNOMON_OK;
}

gcu_search_limits gcu_search_limits_of(const gcu_search *v)
{
    return {v->limits, v->job->sets ? nullptr : v->last};
}

gnomon_status gcu_search_alloc_found(gcu_search *v)
{
    const double wanted = v->k > 0 ? 24.0 * (double)v->count * (double)v->k : 0x1p24;
    const int64_t each = v->k > 0 ? 32 : 16 + (int64_t)sizeof(gnomon_hit) + 12;
    int64_t pairs = wanted < 0x1p22 ? 1 << 22 : wanted > 0x1p26 ? 1 << 26 : (int64_t)wanted;
    while (pairs > 1 << 12 && !gcu_can_have(v->s, 4 * (size_t)(pairs * each)))
        pairs /= 2;
    v->found.room = pairs;
    TRY(gcu_search_room(v, pairs, &v->found.pairs));
    TRY(gcu_search_room(v, pairs, &v->found.keys));
    if (v->k > 0) TRY(gcu_search_room(v, pairs, &v->found.ranks));
    TRY(gcu_search_room(v, pairs, &v->sorted_keys));
    TRY(gcu_search_room(v, pairs, &v->sorted_places));
    if (v->k == 0) TRY(gcu_search_room(v, pairs, &v->hits));
    v->found.count = &v->words->pairs;
    return GNOMON_OK;
}

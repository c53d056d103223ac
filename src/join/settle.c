#include "join/settle.h"

#include "base/memory.h"

gnomon_status gnomon_settler_open(gnomon_join_state *join, gnomon_settler *settler)
{
    gnomon_context *ctx = join->ctx;
    const gnomon_metric metric = join->options.metric;
    *settler = (gnomon_settler){.join = join};
    settler->search.ctx = ctx;
    settler->search.kernels = gnomon_cpu_kernels(gnomon_context_isa(ctx))->search;
    settler->search.options.metric = metric;
    settler->search.cols = join->p.cols;
    if (metric == GNOMON_HAMMING || metric == GNOMON_JACCARD) return GNOMON_OK;
    settler->search.queries = *join->p.dense;
    return gnomon_alloc(
        ctx,
        gnomon_times(gnomon_context_threads(ctx), gnomon_times(2, gnomon_plus(join->p.cols, 1))),
        sizeof *settler->f64, "points", &settler->f64);
}

void gnomon_settler_close(gnomon_settler *settler)
{
    gnomon_free(settler->search.ctx, settler->f64);
}

gnomon_query gnomon_settler_row(const gnomon_settler *settler, int64_t i, int worker)
{
    if (settler->f64 == NULL) return (gnomon_query){NULL, 0};
    return gnomon_query_widen(&settler->search, i,
                              settler->f64 + worker * 2 * (settler->search.cols + 1));
}

double gnomon_settle(const gnomon_settler *settler, gnomon_query query, int64_t i, int64_t j)
{
    const gnomon_join_state *join = settler->join;
    if (join->options.metric == GNOMON_HAMMING)
        return gnomon_bits_apart(join->p.dense, i, join->q.dense, j);
    if (join->options.metric == GNOMON_JACCARD)
        return gnomon_sets_apart(&join->p.sets, i, &join->q.sets, j);
    const double key = gnomon_exact_key(&settler->search, query, join->q.dense, j);
    return join->options.metric == GNOMON_IP ? -key : key;
}

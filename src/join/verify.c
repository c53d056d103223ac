#include "join/verify.h"

#include "base/memory.h"
#include "search/exact.h"

gnomon_status gnomon_verifier_open(gnomon_join_state *join, gnomon_verifier *verifier)
{
    gnomon_context *ctx = join->ctx;
    const gnomon_metric metric = join->options.metric;
    *verifier = (gnomon_verifier){.join = join};
    verifier->search.ctx = ctx;
    verifier->search.kernels = gnomon_cpu_kernels(gnomon_context_isa(ctx))->search;
    verifier->search.options.metric = metric;
    verifier->search.cols = join->p.cols;
    if (gnomon_metric_row_of(metric)->key == NULL || join->p.csr != NULL) return GNOMON_OK;
    verifier->search.queries = *join->p.dense;
    return gnomon_alloc(
        ctx,
        gnomon_times(gnomon_context_threads(ctx), gnomon_times(2, gnomon_plus(join->p.cols, 1))),
        sizeof *verifier->f64, "points", &verifier->f64);
}

void gnomon_verifier_close(gnomon_verifier *verifier)
{
    gnomon_free(verifier->search.ctx, verifier->f64);
}

gnomon_query gnomon_verifier_row(const gnomon_verifier *verifier, int64_t i, int worker)
{
    if (verifier->f64 == NULL) return (gnomon_query){.factor = 0};
    return gnomon_query_to_f64(&verifier->search, i,
                               verifier->f64 + worker * 2 * (verifier->search.cols + 1));
}

double gnomon_verifier_distance(const gnomon_verifier *verifier, gnomon_query query, int64_t i,
                                int64_t j)
{
    const gnomon_join_state *join = verifier->join;
    const gnomon_metric_row *row = gnomon_metric_row_of(join->options.metric);
    if (row->bits != NULL) return row->bits(join->p.dense, i, join->q.dense, j);
    if (row->sets != NULL) return row->sets(&join->p.sets, i, &join->q.sets, j);
    const double key =
        join->p.csr != NULL
            ? gnomon_sparse_key(row, verifier->search.kernels, &join->p.sets, i, &join->q.sets, j)
            : gnomon_exact_key(&verifier->search, query, join->q.dense, j);
    return gnomon_metric_turn(join->options.metric, key);
}

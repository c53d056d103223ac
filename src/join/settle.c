#include "join/settle.h"

#include "base/memory.h"

#include <string.h>

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
    return gnomon_alloc(ctx, gnomon_context_threads(ctx) * 2 * (join->p.cols + 1),
                        sizeof *settler->wide, "points", &settler->wide);
}

void gnomon_settler_close(gnomon_settler *settler)
{
    gnomon_free(settler->search.ctx, settler->wide);
}

gnomon_query gnomon_settler_row(const gnomon_settler *settler, int64_t i, int worker)
{
    if (settler->wide == NULL) return (gnomon_query){NULL, 0};
    return gnomon_query_widen(&settler->search, i,
                              settler->wide + worker * 2 * (settler->search.cols + 1));
}

static double bits_between(const gnomon_matrix *p, int64_t i, const gnomon_matrix *q, int64_t j)
{
    const uint8_t *x = gnomon_row_at(p, i), *y = gnomon_row_at(q, j);
    int64_t bits = 0, c = 0;
    if (p->col_stride == 1 && q->col_stride == 1) {
        for (; c + 8 <= p->cols; c += 8) {
            uint64_t a, b;
            memcpy(&a, x + c, sizeof a);
            memcpy(&b, y + c, sizeof b);
            bits += __builtin_popcountll(a ^ b);
        }
    }
    for (; c < p->cols; c++)
        bits += __builtin_popcount(x[c * p->col_stride] ^ (unsigned)y[c * q->col_stride]);
    return (double)bits;
}

static double sets_apart(const gnomon_sets *p, int64_t i, const gnomon_sets *q, int64_t j)
{
    const int64_t *a = p->members + p->offsets[i], *b = q->members + q->offsets[j];
    const int64_t m = p->offsets[i + 1] - p->offsets[i], n = q->offsets[j + 1] - q->offsets[j];
    int64_t shared = 0;
    for (int64_t x = 0, y = 0; x < m && y < n;) {
        const int64_t u = a[x], v = b[y];
        shared += u == v;
        x += u <= v;
        y += v <= u;
    }
    const double either = (double)(m + n - shared), apart = (double)(m + n - 2 * shared);
    return either == 0 ? 0 : apart / either;
}

double gnomon_settle(const gnomon_settler *settler, gnomon_query query, int64_t i, int64_t j)
{
    const gnomon_join_state *join = settler->join;
    if (join->options.metric == GNOMON_HAMMING)
        return bits_between(join->p.dense, i, join->q.dense, j);
    if (join->options.metric == GNOMON_JACCARD)
        return sets_apart(&join->p.sets, i, &join->q.sets, j);
    const double key = gnomon_exact_key(&settler->search, query, join->q.dense, j);
    return join->options.metric == GNOMON_IP ? -key : key;
}

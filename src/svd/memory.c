/* What a factorisation of sparse rows on the CPU takes, step by step: the largest of the sums of
 * what is there together. */
#include "base/context.h"
#include "base/error.h"
#include "base/threads.h"
#include "kernels.h"
#include "svd/factor.h"
#include "svd/panels.h"

#include <math.h>
#include <string.h>

/* The projection of sparse rows takes a share of the limit, but not more than so many bytes. */
#define SKETCH 0x1p24

/* Of a problem as far as memory depends on it. */
typedef struct problem {
    gnomon_context *ctx;
    double m, n, element; /* bytes of a number */
    double columns, rank, test_vectors;
    bool centered, standardized, streams;
    int power;
    double threads;
    double sketch; /* what the projection may take: src/project/sparse */
} problem;

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* Columns in panels that are at work at a time. */
static double panels(const problem *p, double columns, double element)
{
    const double lanes = GNOMON_LANES, all = ceil(columns / lanes);
    const double now = p->streams || all < p->threads ? all : p->threads;
    return p->n * now * lanes * element;
}

/* The sums of A^T Q: of rows in memory a part of a panel for each thread, but all parts of one. */
static double sums(const problem *p, double columns, double element)
{
    const double all = ceil(columns / GNOMON_LANES), panel = p->n * GNOMON_LANES * element;
    if (p->streams) return gnomon_panels_parts(p->ctx, p->m, all * panel) * all * panel;
    const double now = ceil(p->threads / GNOMON_PARTS);
    return GNOMON_PARTS * panel * (all < now ? all : now);
}

static double adjoint(const problem *p, double columns)
{
    return sums(p, columns, p->centered ? sizeof(double) : p->element);
}

/* What is there all the time, and while the means are found. */
static double means(const problem *p)
{
    const double numbers = p->standardized ? 26 : p->centered ? 13 : 0;
    return p->n * sizeof(double) * numbers;
}

static double krylov(const problem *p)
{
    const double dims = (double)gnomon_krylov_columns((int64_t)p->columns, p->power);
    const double blocks = (dims + GNOMON_PARTS * GNOMON_NORMAL) * p->n * p->element;
    const double places = 16 * GNOMON_NORMAL * dims * sizeof(double);
    return blocks + larger(places, 4 * dims * dims * sizeof(double)) +
           dims * dims * sizeof(double) + p->threads * 512 * p->columns * p->element;
}

static double iterations(const problem *p)
{
    const double y = p->columns * p->m * p->element;
    const double products = y + p->columns * p->n * p->element + adjoint(p, p->columns) +
                            2 * p->columns * p->columns * sizeof(double);
    return larger(y + p->sketch, products);
}

/* From the range to the result. */
static double rest(const problem *p)
{
    const double s = p->columns, k = p->rank, r = p->test_vectors, e = p->element;
    const double factors = k * (p->m + p->n) * e;
    const double range = s * (p->m + p->n) * e + panels(p, s, e);
    const double small = larger(s * (p->m + p->n) + k * p->n, s * p->m + k * (p->m + p->n)) * e +
                         8 * s * s * sizeof(double);
    const double both = p->power > 1 ? 0 : (k + r) * (p->m + p->n) * e; /* U beside test vectors */
    const double test =
        factors + r * (p->m + p->n) * e + both + adjoint(p, r) + (p->streams ? sums(p, k, e) : 0);
    const double handed = factors + k * p->n * e;
    return larger(larger(range, small), r > 0 ? larger(test, handed) : handed);
}

static double bytes_of(const problem *p, bool by_krylov)
{
    return larger(by_krylov ? krylov(p) : iterations(p), rest(p)) + means(p);
}

static int64_t rounded(double bytes)
{
    return bytes < 0x1p62 ? (int64_t)bytes : -1;
}

/* A Krylov space may take what the context's limit leaves, and what is needed in any case. */
static bool krylov_fits(const gnomon_context *ctx, const problem *p)
{
    const double bytes = bytes_of(p, true);
    return !ctx->memory_limited || bytes <= (double)gnomon_memory_limit(ctx) ||
           bytes <= bytes_of(p, false);
}

static problem problem_of(gnomon_context *ctx, int64_t rows, int64_t cols, bool f64,
                          const gnomon_svd_options *o, bool streams)
{
    const int64_t least = rows < cols ? rows : cols;
    const int64_t rank = o->rank > 0 && o->rank < least ? o->rank : least;
    const int64_t columns = o->oversample < least - rank ? rank + o->oversample : least;
    return (problem){.ctx = ctx,
                     .m = (double)rows,
                     .n = (double)cols,
                     .element = (double)gnomon_tall_size(f64),
                     .columns = (double)columns,
                     .rank = (double)rank,
                     .test_vectors = (double)o->test_vectors,
                     .centered = o->center || o->standardize,
                     .standardized = o->standardize,
                     .streams = streams,
                     .power = o->power,
                     .threads = gnomon_context_threads(ctx),
                     .sketch = fmin((double)gnomon_memory_limit(ctx) / 2, SKETCH)};
}

static problem problem_at_work(const gnomon_factor *f, bool streams)
{
    return problem_of(f->ctx, f->source.rows, f->source.cols, f->f64, &f->options, streams);
}

bool gnomon_factor_krylov_fits(const gnomon_factor *f)
{
    /* Rows in memory take the same form. */
    const problem p = problem_at_work(f, true);
    return krylov_fits(f->ctx, &p);
}

gnomon_status gnomon_factor_check_memory(const gnomon_factor *f, bool iterates)
{
    const problem p = problem_at_work(f, f->source.csr == NULL);
    const double bytes = (iterates ? larger(iterations(&p), rest(&p)) : rest(&p)) + means(&p);
    GNOMON_FAIL_IF(f->source.sparse && f->options.tolerance == 0 && f->ctx->memory_limited &&
                       bytes > (double)gnomon_memory_limit(f->ctx),
                   f->ctx, GNOMON_ERROR_MEMORY,
                   GNOMON_ARG("memory_limit") " is %.0f MiB; %.0f singular vectors of %.0f x %.0f "
                                              "need %.0f MiB",
                   floor((double)gnomon_memory_limit(f->ctx) / 0x1p20), p.rank, p.m, p.n,
                   ceil(bytes / 0x1p20));
    return GNOMON_OK;
}

int64_t gnomon_factor_memory(gnomon_context *ctx, int64_t rows, int64_t cols, bool f64,
                             const gnomon_svd_options *options)
{
    const problem p = problem_of(ctx, rows, cols, f64, options, true);
    const bool suits = options->tolerance == 0 && !options->single_pass &&
                       gnomon_krylov_suits(rows, cols, (int64_t)p.columns, options->power);
    return rounded(bytes_of(&p, suits && krylov_fits(ctx, &p)));
}

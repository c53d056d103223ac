/* Examines a sample of the points where the operator, or the user's word about the points, counts
 * on their weight not lying in few coordinates: see docs/reference/choosing.md. */
#include "verbs/project/project.h"

#include <math.h>
#include <stdio.h>

/* The most points of the first chunk that are sampled, and of later ones; and the most numbers. */
enum { FIRST_POINTS = 512, POINTS = 128, NUMBERS = 1 << 24, NONZEROS = 1 << 18 };

/* What a very sparse operator's variance is to that of dense kinds, at a coherence. */
static double variance(const cli_scan *l, double coherence)
{
    return 1 + fmax(0, 1 / l->density - 3) * coherence / 2;
}

/* The largest coherence of a difference of incoherent points: that of normal coordinates, with room
 * for how theirs vary. */
static double largest_coherence(const cli_scan *l)
{
    return (2 + 10 / sqrt(l->carriers)) * 3 / l->carriers;
}

static void add(gnomon_coherence *sum, const gnomon_coherence *c, int64_t row)
{
    const double points = (double)(sum->points + c->points);
    const double pairs = (double)(sum->pairs + c->pairs);
    if (points > 0)
        sum->point_mean =
            (sum->point_mean * (double)sum->points + c->point_mean * (double)c->points) / points;
    if (pairs > 0)
        sum->pair_mean =
            (sum->pair_mean * (double)sum->pairs + c->pair_mean * (double)c->pairs) / pairs;
    sum->point_most = fmax(sum->point_most, c->point_most);
    if (c->pairs > 0 && (sum->pairs == 0 || c->pair_most > sum->pair_most)) {
        sum->pair_most = c->pair_most;
        sum->pair_most_i = row + c->pair_most_i;
        sum->pair_most_j = row + c->pair_most_j;
    }
    sum->points += c->points;
    sum->pairs += c->pairs;
}

/* Refuses the assumption where the sample refutes it. */
static int judge_spread(cli_job *job)
{
    const cli_scan *l = &job->scan;
    const gnomon_coherence *c = &l->seen;
    const double mean = 1.5 * 3 / l->carriers, most = largest_coherence(l);
    if (c->pairs == 0 || (c->pair_most <= most && c->pair_mean <= mean)) return -1;
    return cli_fail(job->app, CLI_EXIT_DATA,
                    "the points are coherent: of %lld differences of two points the coherence "
                    "|x|_4^4 / |x|_2^4 is %.3g on average and %.3g at most (rows %lld and %lld); "
                    "--assume incoherent stands for %.3g, and at most %.3g. Leave it out",
                    (long long)c->pairs, c->pair_mean, c->pair_most, (long long)c->pair_most_i,
                    (long long)c->pair_most_j, 3 / l->carriers, most);
}

static const char *times_words(double times, char buffer[32])
{
    snprintf(buffer, 32, times >= 100 ? "%.0f" : "%.3g", times);
    return buffer;
}

/* Says once that very-sparse does badly here. */
static void judge_density(cli_job *job)
{
    cli_scan *l = &job->scan;
    const gnomon_coherence *c = &l->seen;
    const int pairs =
        c->pairs > 0 && (variance(l, c->pair_mean) >= 1.25 || variance(l, c->pair_most) >= 2);
    const int points =
        c->points > 0 && (variance(l, c->point_mean) >= 1.25 || variance(l, c->point_most) >= 2);
    if (l->told || (!pairs && !points)) return;
    l->told = 1;
    char mean[32], most[32];
    cli_say(job->app,
            "gnomon project: few coordinates hold much of the weight of %s: with this density "
            "very-sparse keeps %s with %s times the variance of dense kinds on average, and up to "
            "%s times (of %lld sampled); rademacher and sjlt do better\n",
            pairs ? "the points' differences" : "the points",
            pairs ? "their squared distances" : "their squared lengths",
            times_words(variance(l, pairs ? c->pair_mean : c->point_mean), mean),
            times_words(variance(l, pairs ? c->pair_most : c->point_most), most),
            (long long)(pairs ? c->pairs : c->points));
}

static int judge(cli_job *job, gnomon_status status, const gnomon_coherence *c, int64_t row)
{
    if (status != GNOMON_OK) return cli_fail_status(job->app, status);
    add(&job->scan.seen, c, row);
    const int code = job->scan.carriers > 0 ? judge_spread(job) : -1;
    if (code < 0 && job->scan.density > 0) judge_density(job);
    return code;
}

static int64_t points_to_scan(int64_t row)
{
    return row == 0 ? FIRST_POINTS : POINTS;
}

int cli_scan_dense(cli_job *job, const gnomon_matrix *x, int64_t row)
{
    if (job->scan.density <= 0 && job->scan.carriers <= 0) return -1;
    gnomon_matrix m = *x;
    gnomon_coherence c = {.struct_size = sizeof c};
    int64_t most = points_to_scan(row);
    if (most > NUMBERS / m.cols) most = NUMBERS / m.cols;
    if (m.rows > most) m.rows = most;
    if (m.rows < 1) return -1;
    return judge(job, gnomon_measure_coherence(job->app->ctx, &m, m.rows, (uint64_t)row, &c), &c,
                 row);
}

int cli_scan_csr(cli_job *job, const gnomon_csr *x, int64_t row)
{
    if (job->scan.density <= 0 && job->scan.carriers <= 0) return -1;
    gnomon_csr m = *x;
    gnomon_coherence c = {.struct_size = sizeof c};
    int64_t most = points_to_scan(row);
    if (m.rows > most) m.rows = most;
    while (m.rows > 0 && m.offsets[m.rows] - m.offsets[0] > NONZEROS)
        m.rows--;
    if (m.rows < 1) return -1;
    return judge(job, gnomon_measure_coherence_csr(job->app->ctx, &m, m.rows, (uint64_t)row, &c),
                 &c, row);
}

json_t *cli_scan_json(const cli_scan *l)
{
    if (l->density <= 0 && l->carriers <= 0) return NULL;
    const gnomon_coherence *c = &l->seen;
    return json_pack("{s:I, s:f, s:f, s:I, s:f, s:f}", "points", (json_int_t)c->points,
                     "point_mean", c->point_mean, "point_most", c->point_most, "pairs",
                     (json_int_t)c->pairs, "pair_mean", c->pair_mean, "pair_most", c->pair_most);
}

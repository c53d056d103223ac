#include "quality/summary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The quantile of sorted values, linear between neighbours (Hyndman and Fan 1996, type 7;
 * NumPy's default). */
static double quantile(const double *sorted, int64_t count, double q)
{
    const double place = q * (double)(count - 1);
    const int64_t low = (int64_t)place;
    if (low + 1 >= count) return sorted[count - 1];
    const double part = place - (double)low;
    return sorted[low] + part * (sorted[low + 1] - sorted[low]);
}

void gnomon_summarize(double *values, int64_t count, double eps, gnomon_distortion *out,
                      int64_t *worst)
{
    static const double levels[9] = {0.001, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 0.999};
    memset(out, 0, sizeof *out);
    out->worst_i = out->worst_j = -1;
    *worst = -1;

    int64_t kept = 0, outside = 0;
    double sum = 0, sum_abs = 0;
    for (int64_t i = 0; i < count; i++) {
        const double v = values[i];
        if (isnan(v)) continue;
        if (fabs(v) > out->worst || *worst < 0) {
            out->worst = fabs(v);
            *worst = i;
        }
        sum += v;
        sum_abs += fabs(v);
        outside += fabs(v) > eps;
        kept++;
    }
    out->count = kept;
    out->skipped = count - kept;
    if (kept == 0) return;

    const double mean = sum / (double)kept;
    double squares = 0;
    for (int64_t i = 0, next = 0; i < count; i++) {
        const double v = values[i];
        if (isnan(v)) continue;
        squares += (v - mean) * (v - mean);
        values[next++] = v;
    }
    qsort(values, (size_t)kept, sizeof *values, compare);
    out->mean = mean;
    out->mean_abs = sum_abs / (double)kept;
    out->variance = kept > 1 ? squares / (double)(kept - 1) : 0;
    out->outside = (double)outside / (double)kept;
    out->min = values[0];
    out->max = values[kept - 1];
    for (int q = 0; q < 9; q++)
        out->quantile[q] = quantile(values, kept, levels[q]);

    const int bins = (int)(sizeof out->histogram / sizeof *out->histogram);
    out->histogram_low = out->min;
    out->histogram_high = out->max;
    const double width = out->max - out->min;
    for (int64_t i = 0; i < kept; i++) {
        int bin = width > 0 ? (int)((values[i] - out->min) / width * bins) : 0;
        if (bin >= bins) bin = bins - 1;
        out->histogram[bin]++;
    }
}

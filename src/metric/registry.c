/* The list of metrics. */
#include "metric/metric.h"

#include <math.h>
#include <string.h>

#define ROW(number, name) [GNOMON_##number] = &gnomon_metric_row_##name,
static const gnomon_metric_row *const by_number[] = {GNOMON_METRICS(ROW)};
#undef ROW
#define ROW(number, name) &gnomon_metric_row_##name,
static const gnomon_metric_row *const listed[] = {GNOMON_METRICS(ROW)};
#undef ROW

enum { NUMBERS = sizeof by_number / sizeof *by_number, ROWS = sizeof listed / sizeof *listed };

const gnomon_metric_row *gnomon_metric_row_of(gnomon_metric metric)
{
    return (unsigned)metric < NUMBERS ? by_number[metric] : NULL;
}

const gnomon_metric_info *gnomon_metric_at(int index)
{
    return index >= 0 && index < ROWS ? &listed[index]->info : NULL;
}

const char *gnomon_metric_name(gnomon_metric metric)
{
    const gnomon_metric_row *row = gnomon_metric_row_of(metric);
    return row != NULL ? row->info.name : "?";
}

gnomon_metric gnomon_metric_from_name(const char *name)
{
    for (int i = 0; name != NULL && i < ROWS; i++)
        if (strcmp(name, listed[i]->info.name) == 0) return listed[i]->info.metric;
    return (gnomon_metric)0;
}

double gnomon_similarity_threshold(double similarity)
{
    /* A pair counts when its similarity s, rounded, is at least S: then s >= S - 2^-54, and its
     * distance is at most 1 - S + 2^-54 before it is rounded. */
    if (similarity == 1) return 0;
    if (similarity >= 0.5) return (1 - similarity) + 0x1p-54;
    return nextafter(1 - similarity, INFINITY);
}

gnomon_lsh_family gnomon_metric_family(gnomon_metric metric, int index)
{
    const gnomon_metric_row *row = gnomon_metric_row_of(metric);
    return row != NULL && index >= 0 && index < GNOMON_METRIC_FAMILIES ? row->families[index]
                                                                       : (gnomon_lsh_family)0;
}

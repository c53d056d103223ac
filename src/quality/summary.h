/* quality/summary.h: from a list of distortions to what a person reads. */
#ifndef GNOMON_QUALITY_SUMMARY_H
#define GNOMON_QUALITY_SUMMARY_H

#include <gnomon/quality.h>

/* Summarises count distortions, in place (values is reordered); NaN marks a skipped one.
 * The figures depend on the values and their order alone. worst_i and worst_j are left
 * to the caller, who gets the worst one's place in *worst (-1 when there is none). */
void gnomon_summarize(double *values, int64_t count, double eps, gnomon_distortion *out,
                      int64_t *worst);

#endif

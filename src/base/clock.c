#include "base/clock.h"

#include <time.h>

double gnomon_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double gnomon_lap(double *clock)
{
    const double now = gnomon_seconds(), before = *clock;
    *clock = now;
    return now - before;
}

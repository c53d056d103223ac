/* base/clock.h: the time that work takes. */
#ifndef GNOMON_BASE_CLOCK_H
#define GNOMON_BASE_CLOCK_H

/* Seconds on the monotonic clock. */
double gnomon_seconds(void);

/* Seconds since *clock, which is set to now. */
double gnomon_lap(double *clock);

#endif

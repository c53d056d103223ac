/* project/overflow.h: sums of finite points that leave what their type holds. They end as infinity
 * or NaN, whatever is added to them later, and are seen when they are written out. */
#ifndef GNOMON_PROJECT_OVERFLOW_H
#define GNOMON_PROJECT_OVERFLOW_H

#include <gnomon/base.h>

#include <stdatomic.h>
#include <stdbool.h>

typedef struct gnomon_overflow {
    int64_t base;             /* the output's row that the writers number 0 */
    atomic_int_least64_t row; /* the first that is not finite; INT64_MAX: none */
} gnomon_overflow;

static inline void gnomon_overflow_none(gnomon_overflow *o)
{
    o->base = 0;
    atomic_init(&o->row, INT64_MAX);
}

/* A writer's row turned out not to be finite. From any thread; o may be NULL. */
void gnomon_overflow_note(gnomon_overflow *o, int64_t row);

/* Fails with NONFINITE, naming the row of the output 'name', if one was noted. f64: the sums were
 * fp64. */
gnomon_status gnomon_overflow_check(gnomon_context *ctx, const gnomon_overflow *o, const char *name,
                                    bool f64);

#endif

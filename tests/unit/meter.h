/* An allocator that counts what is held, and the most that was. */
#ifndef GNOMON_TESTS_METER_H
#define GNOMON_TESTS_METER_H

#include <stdint.h>
#include <stdlib.h>

typedef struct meter {
    int64_t held, peak;
} meter;

static void *meter_allocate(void *user, size_t size, size_t alignment)
{
    meter *m = user;
    m->held += (int64_t)size;
    if (m->held > m->peak) m->peak = m->held;
    return aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

static void meter_release(void *user, void *pointer, size_t size)
{
    meter *m = user;
    m->held -= (int64_t)size;
    free(pointer);
}

#endif

/* An allocator that refuses one request and counts what is out. */
#ifndef REFUSAL_H
#define REFUSAL_H

#include <stddef.h>
#include <stdlib.h>

typedef struct refusal {
    _Atomic long calls, at, out;
} refusal;

static void *refusing(void *user, size_t size, size_t alignment)
{
    refusal *r = user;
    if (r->calls++ == r->at) return NULL;
    r->out++;
    return aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

static void releasing(void *user, void *pointer, size_t size)
{
    refusal *r = user;
    (void)size;
    if (pointer != NULL) r->out--;
    free(pointer);
}

#endif

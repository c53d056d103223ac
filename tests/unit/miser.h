/* An allocator that refuses all after the first 'left', and counts what is out. */
#ifndef GNOMON_TESTS_MISER_H
#define GNOMON_TESTS_MISER_H

#include <stdint.h>
#include <stdlib.h>

typedef struct misers {
    int64_t left, out;
} misers;

static void *miser_allocate(void *user, size_t size, size_t alignment)
{
    misers *m = user;
    if (m->left-- <= 0) return NULL;
    m->out++;
    return aligned_alloc(alignment, size);
}

static void miser_release(void *user, void *pointer, size_t size)
{
    (void)size;
    ((misers *)user)->out--;
    free(pointer);
}

#endif

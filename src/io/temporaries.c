#include "io/temporaries.h"

#include <gnomon/io.h>

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

/* A fixed table: a signal handler may look at it at any moment, so nothing in it is ever
 * freed and a slot is complete before it is marked live. */
enum { SLOTS = 64, FREE = 0, TAKEN = 1, LIVE = 2 };

typedef struct slot {
    atomic_int use;
    int folder_fd;
    char name[256];
} slot;

static slot slots[SLOTS];

int gnomon_temporary_note(int folder_fd, const char *name)
{
    size_t length = strlen(name);
    if (length >= sizeof slots[0].name) return -1;
    for (int i = 0; i < SLOTS; i++) {
        int expected = FREE;
        if (!atomic_compare_exchange_strong(&slots[i].use, &expected, TAKEN)) continue;
        slots[i].folder_fd = folder_fd;
        memcpy(slots[i].name, name, length + 1);
        atomic_store(&slots[i].use, LIVE);
        return i;
    }
    return -1;
}

void gnomon_temporary_forget(int ticket)
{
    if (ticket >= 0) atomic_store(&slots[ticket].use, FREE);
}

void gnomon_io_abandon_all(void)
{
    int saved = errno;
    for (int i = 0; i < SLOTS; i++)
        if (atomic_load(&slots[i].use) == LIVE) unlinkat(slots[i].folder_fd, slots[i].name, 0);
    errno = saved;
}

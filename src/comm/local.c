/* Ranks that are threads of one process. A message waits in its sender's hands until the receiver
 * has copied it; short ones are kept in the group, so that their sender need not wait. */
#include "comm/comm.h"

#include "base/error.h"
#include "base/options.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1024, SHORT = 128 };

/* What one rank sends another: one message at a time. */
typedef struct slot {
    const void *data; /* NULL: none */
    int64_t bytes;
    char copy[SHORT]; /* of a short one */
} slot;

typedef struct member {
    gnomon_comm_group *group;
    int rank;
    char reason[64];
} member;

struct gnomon_comm_group {
    int size;
    pthread_mutex_t mutex;
    pthread_cond_t change;
    int ended; /* by rank ended - 1; 0: not */
    member *members;
    slot *slots; /* size x size, the sender's row */
};

/* Waits until the group has ended (false), or slot s has a message (full) or none (not full). */
static bool wait_for(member *m, slot *s, bool full)
{
    gnomon_comm_group *g = m->group;
    while (g->ended == 0 && (s->data != NULL) != full)
        pthread_cond_wait(&g->change, &g->mutex);
    if (g->ended == 0) return true;
    snprintf(m->reason, sizeof m->reason, "rank %d has ended the job", g->ended - 1);
    return false;
}

static gnomon_status send_bytes(void *user, int to, const void *data, int64_t bytes)
{
    member *m = user;
    gnomon_comm_group *g = m->group;
    slot *s = &g->slots[m->rank * g->size + to];
    pthread_mutex_lock(&g->mutex);
    bool good = wait_for(m, s, false);
    if (good) {
        const bool is_short = bytes <= SHORT;
        if (is_short) memcpy(s->copy, data, (size_t)bytes);
        s->data = is_short ? s->copy : data;
        s->bytes = bytes;
        pthread_cond_broadcast(&g->change);
        if (!is_short) good = wait_for(m, s, false);
        if (!good && s->data == data) s->data = NULL; /* nobody reads it any more */
    }
    pthread_mutex_unlock(&g->mutex);
    return good ? GNOMON_OK : GNOMON_ERROR_COMM;
}

static gnomon_status receive_bytes(void *user, int from, void *data, int64_t bytes)
{
    member *m = user;
    gnomon_comm_group *g = m->group;
    slot *s = &g->slots[from * g->size + m->rank];
    pthread_mutex_lock(&g->mutex);
    bool good = wait_for(m, s, true);
    if (good && s->bytes != bytes) {
        snprintf(m->reason, sizeof m->reason, "it sent %lld bytes where %lld are expected",
                 (long long)s->bytes, (long long)bytes);
        good = false;
    } else if (good) {
        memcpy(data, s->data, (size_t)bytes);
        s->data = NULL;
        pthread_cond_broadcast(&g->change);
    }
    pthread_mutex_unlock(&g->mutex);
    return good ? GNOMON_OK : GNOMON_ERROR_COMM;
}

static const char *reason(void *user)
{
    const member *m = user;
    return m->reason;
}

static void end_all(void *user, int code)
{
    (void)code;
    member *m = user;
    gnomon_comm_group *g = m->group;
    pthread_mutex_lock(&g->mutex);
    if (g->ended == 0) g->ended = m->rank + 1;
    pthread_cond_broadcast(&g->change);
    pthread_mutex_unlock(&g->mutex);
}

/* A group lives without its context, so its memory is the C library's. */
gnomon_status gnomon_comm_group_create(gnomon_context *ctx, int size, gnomon_comm_group **out)
{
    GNOMON_FAIL_IF(out == NULL, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("out") " is NULL");
    *out = NULL;
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_FAIL_IF(size < 1 || size > MOST, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("size") " is %d; it must be from 1 to %d", size, MOST);
    const size_t pairs = (size_t)size * (size_t)size;
    gnomon_comm_group *g = calloc(1, sizeof *g);
    if (g != NULL) {
        g->size = size;
        g->members = calloc((size_t)size, sizeof *g->members);
        g->slots = calloc(pairs, sizeof *g->slots);
    }
    if (g == NULL || g->members == NULL || g->slots == NULL) {
        if (g != NULL) {
            free(g->members);
            free(g->slots);
        }
        free(g);
        return gnomon_fail(ctx, GNOMON_ERROR_MEMORY, "out of memory for %d ranks", size);
    }
    for (int rank = 0; rank < size; rank++)
        g->members[rank] = (member){.group = g, .rank = rank};
    pthread_mutex_init(&g->mutex, NULL);
    pthread_cond_init(&g->change, NULL);
    *out = g;
    return GNOMON_OK;
}

gnomon_status gnomon_comm_group_rank(gnomon_comm_group *group, int rank, gnomon_comm *comm)
{
    GNOMON_NEED(NULL, group, "group");
    GNOMON_FAIL_IF(rank < 0 || rank >= group->size, NULL, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("rank") " is %d; the group has ranks 0 to %d", rank, group->size - 1);
    GNOMON_TRY(GNOMON_OPEN_RESULT(NULL, "comm", gnomon_comm, comm));
    const gnomon_comm full = {.struct_size = sizeof full,
                              .user = &group->members[rank],
                              .rank = rank,
                              .size = group->size,
                              .host_rank = rank,
                              .host_size = group->size,
                              .send = send_bytes,
                              .receive = receive_bytes,
                              .reason = reason,
                              .abort = end_all};
    gnomon_write_result(comm, &full, sizeof full);
    return GNOMON_OK;
}

void gnomon_comm_group_destroy(gnomon_comm_group *group)
{
    if (group == NULL) return;
    pthread_cond_destroy(&group->change);
    pthread_mutex_destroy(&group->mutex);
    free(group->members);
    free(group->slots);
    free(group);
}

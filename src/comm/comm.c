/* Checks of an engine's table, and what all ranks do together. */
#include "comm/comm.h"

#include "base/arithmetic.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

GNOMON_OPTIONS_INIT(gnomon_comm, GNOMON_COMM_INIT)

gnomon_status gnomon_comm_take(gnomon_context *ctx, const gnomon_comm *given, gnomon_comm *comm)
{
    GNOMON_NEED(NULL, ctx, "ctx");
    *comm = (gnomon_comm)GNOMON_COMM_INIT;
    GNOMON_TRY(GNOMON_COPY_OPTIONS(ctx, "comm", gnomon_comm, given, comm));
    GNOMON_FAIL_IF(
        comm->size < 1 || comm->rank < 0 || comm->rank >= comm->size, ctx, GNOMON_ERROR_ARGUMENT,
        GNOMON_ARG("comm") " has rank %d of %d; ranks count from 0", comm->rank, comm->size);
    GNOMON_FAIL_IF(comm->size > 1 && (comm->send == NULL || comm->receive == NULL ||
                                      comm->reason == NULL || comm->abort == NULL),
                   ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("comm") " lacks one of the calls send, receive, reason and abort");
    return GNOMON_OK;
}

void gnomon_comm_close(const gnomon_comm *given)
{
    gnomon_comm comm = GNOMON_COMM_INIT;
    if (given == NULL || GNOMON_COPY_OPTIONS(NULL, "comm", gnomon_comm, given, &comm) != GNOMON_OK)
        return;
    if (comm.close != NULL) comm.close(comm.user);
}

gnomon_status gnomon_comm_share(gnomon_context *ctx, const gnomon_comm *given, int64_t total,
                                int64_t *first, int64_t *count)
{
    gnomon_comm comm;
    GNOMON_TRY(gnomon_comm_take(ctx, given, &comm));
    GNOMON_NEED(ctx, first, "first");
    GNOMON_NEED(ctx, count, "count");
    GNOMON_FAIL_IF(total < 0, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("total") " is %" PRId64 "; it must not be negative", total);
    const int64_t each = total / comm.size, more = total % comm.size;
    *first = each * comm.rank + gnomon_min(comm.rank, more);
    *count = each + (comm.rank < more);
    return GNOMON_OK;
}

/* The ranks are a binomial tree with rank 0 as its root: a rank's parent is it without its lowest
 * bit, and the message goes to the child with the largest subtree first. */
static int lowest_bit(const gnomon_comm *comm)
{
    int bit = 1;
    while (bit < comm->size && (comm->rank & bit) == 0)
        bit *= 2;
    return bit;
}

static gnomon_status pass_down(gnomon_context *ctx, const gnomon_comm *comm,
                               gnomon_message_kind kind, void *data, int64_t bytes,
                               gnomon_message *message)
{
    const int bit = lowest_bit(comm);
    if (comm->rank > 0) {
        GNOMON_TRY(gnomon_message_receive(ctx, comm, comm->rank - bit, kind, message));
        if (message->kind == GNOMON_MESSAGE_FAILURE)
            return gnomon_message_failed(ctx, comm, message);
        /* those below this rank wait, and get nothing */
        GNOMON_FAIL_IF(message->bytes != bytes, ctx, GNOMON_ERROR_COMM,
                       GNOMON_ARG("bytes") " is %" PRId64 " on rank %d and %" PRId64 " on rank 0",
                       bytes, comm->rank, message->bytes);
        if (bytes > 0) memcpy(data, message->data, (size_t)bytes);
    }
    for (int child = bit / 2; child > 0; child /= 2)
        if (comm->rank + child < comm->size)
            GNOMON_TRY(gnomon_message_send(ctx, comm, comm->rank + child, kind, data, bytes));
    return GNOMON_OK;
}

gnomon_status gnomon_comm_broadcast(gnomon_context *ctx, const gnomon_comm *given, void *data,
                                    int64_t bytes)
{
    gnomon_comm comm;
    GNOMON_TRY(gnomon_comm_take(ctx, given, &comm));
    GNOMON_FAIL_IF(bytes < 0, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("bytes") " is %" PRId64 "; it must not be negative", bytes);
    GNOMON_FAIL_IF(data == NULL && bytes > 0, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("data") " is NULL");
    gnomon_message message = {0};
    const gnomon_status status = pass_down(ctx, &comm, GNOMON_MESSAGE_BYTES, data, bytes, &message);
    gnomon_message_drop(ctx, &message);
    return status;
}

/* A code, and the rank that it is of. */
typedef struct told {
    int32_t code, rank;
} told;

static gnomon_status pass_up(gnomon_context *ctx, const gnomon_comm *comm, told *t,
                             gnomon_message *message)
{
    const int bit = lowest_bit(comm);
    for (int child = 1; child < bit; child *= 2) {
        told theirs;
        if (comm->rank + child >= comm->size) break;
        GNOMON_TRY(
            gnomon_message_receive(ctx, comm, comm->rank + child, GNOMON_MESSAGE_CODES, message));
        GNOMON_FAIL_IF(message->bytes != sizeof theirs, ctx, GNOMON_ERROR_COMM,
                       "a message of rank %d is damaged: its length", comm->rank + child);
        memcpy(&theirs, message->data, sizeof theirs);
        if (t->code == 0 && theirs.code != 0) *t = theirs; /* children's ranks ascend */
    }
    if (comm->rank == 0) return GNOMON_OK;
    return gnomon_message_send(ctx, comm, comm->rank - bit, GNOMON_MESSAGE_CODES, t, sizeof *t);
}

gnomon_status gnomon_comm_agree(gnomon_context *ctx, const gnomon_comm *given, int *code, int *rank)
{
    gnomon_comm comm;
    GNOMON_TRY(gnomon_comm_take(ctx, given, &comm));
    GNOMON_NEED(ctx, code, "code");
    told t = {*code, *code != 0 ? comm.rank : -1};
    gnomon_message message = {0};
    gnomon_status status = pass_up(ctx, &comm, &t, &message);
    if (status == GNOMON_OK)
        status = pass_down(ctx, &comm, GNOMON_MESSAGE_CODES, &t, sizeof t, &message);
    gnomon_message_drop(ctx, &message);
    if (status != GNOMON_OK) return status;
    *code = t.code;
    if (rank != NULL) *rank = t.rank;
    return GNOMON_OK;
}

void gnomon_comm_note(gnomon_context *ctx, gnomon_comm_failure *bad, gnomon_status status, int rank,
                      const char *text)
{
    if (status == GNOMON_OK || bad->status != GNOMON_OK) return;
    bad->status = (int32_t)status;
    bad->rank = rank;
    snprintf(bad->text, sizeof bad->text, "%s", text != NULL ? text : gnomon_last_error(ctx));
}

gnomon_status gnomon_comm_end(gnomon_context *ctx, const gnomon_comm *comm,
                              gnomon_comm_failure *bad)
{
    GNOMON_TRY(gnomon_comm_broadcast(ctx, comm, bad, sizeof *bad));
    const gnomon_status status = (gnomon_status)bad->status;
    bad->text[sizeof bad->text - 1] = '\0';
    if (status == GNOMON_OK || bad->rank == comm->rank) return status;
    return gnomon_fail(ctx, status, "rank %d: %s", bad->rank, bad->text);
}

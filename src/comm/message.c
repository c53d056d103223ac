/* Messages between ranks: a header with version and checksums, and a body. */
#include "comm/comm.h"

#include "base/arithmetic.h"
#include "base/error.h"
#include "base/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { VERSION = 1, TEXT = 512 };

static const char magic[8] = {'G', 'N', 'O', 'M', 'O', 'N', 'C', 'M'};

/* docs/reference/formats.md, "Messages between ranks". All ranks have one byte order. */
typedef struct header {
    char magic[8];
    uint32_t version, kind;
    int32_t status, rank;
    int64_t bytes;     /* of the body */
    uint64_t body_sum; /* XXH3 of the body, 64 bits, seed 0 */
    uint64_t sum;      /* of the header before it */
} header;

_Static_assert(sizeof(header) == 48, "the header has no gaps");

static gnomon_status lost(gnomon_context *ctx, const gnomon_comm *comm, int rank, const char *what)
{
    const char *reason = comm->reason(comm->user);
    return gnomon_fail(ctx, GNOMON_ERROR_COMM, "rank %d %s rank %d: %s", comm->rank, what, rank,
                       reason != NULL && reason[0] != '\0' ? reason : "no reason is given");
}

static gnomon_status put(gnomon_context *ctx, const gnomon_comm *comm, int to, const void *data,
                         int64_t bytes)
{
    if (bytes == 0 || comm->send(comm->user, to, data, bytes) == GNOMON_OK) return GNOMON_OK;
    return lost(ctx, comm, to, "can't send to");
}

static gnomon_status get(gnomon_context *ctx, const gnomon_comm *comm, int from, void *data,
                         int64_t bytes)
{
    if (bytes == 0 || comm->receive(comm->user, from, data, bytes) == GNOMON_OK) return GNOMON_OK;
    return lost(ctx, comm, from, "gets nothing from");
}

static gnomon_status send_all(gnomon_context *ctx, const gnomon_comm *comm, int to, header *h,
                              const void *data, int64_t bytes)
{
    memcpy(h->magic, magic, sizeof magic);
    h->version = VERSION;
    h->bytes = bytes;
    h->body_sum = XXH3_64bits(bytes > 0 ? data : "", (size_t)bytes);
    h->sum = XXH3_64bits(h, offsetof(header, sum));
    GNOMON_TRY(put(ctx, comm, to, h, sizeof *h));
    return put(ctx, comm, to, data, bytes);
}

gnomon_status gnomon_message_send(gnomon_context *ctx, const gnomon_comm *comm, int to,
                                  gnomon_message_kind kind, const void *data, int64_t bytes)
{
    header h = {.kind = (uint32_t)kind, .rank = comm->rank};
    return send_all(ctx, comm, to, &h, data, bytes);
}

gnomon_status gnomon_message_fail(gnomon_context *ctx, const gnomon_comm *comm, int to, int rank,
                                  gnomon_status status, const char *text)
{
    header h = {.kind = GNOMON_MESSAGE_FAILURE, .status = (int32_t)status, .rank = rank};
    return send_all(ctx, comm, to, &h, text, gnomon_min((int64_t)strlen(text), TEXT - 1));
}

static gnomon_status check(gnomon_context *ctx, const gnomon_comm *comm, const header *h, int from,
                           gnomon_message_kind kind)
{
    GNOMON_FAIL_IF(memcmp(h->magic, magic, sizeof magic) != 0 ||
                       h->sum != XXH3_64bits(h, offsetof(header, sum)),
                   ctx, GNOMON_ERROR_COMM, "a message of rank %d is damaged: its header", from);
    GNOMON_FAIL_IF(h->version != VERSION, ctx, GNOMON_ERROR_COMM,
                   "a message of rank %d has version %" PRIu32 ", and this library's is %d", from,
                   h->version, VERSION);
    const bool failure = h->kind == GNOMON_MESSAGE_FAILURE;
    GNOMON_FAIL_IF(!failure && h->kind != (uint32_t)kind &&
                       !(kind == GNOMON_MESSAGE_PIECE && h->kind == GNOMON_MESSAGE_END),
                   ctx, GNOMON_ERROR_COMM,
                   "rank %d sent a message of kind %" PRIu32 " where rank %d expects kind %d: all "
                   "ranks must make the same calls in the same order",
                   from, h->kind, comm->rank, (int)kind);
    GNOMON_FAIL_IF(h->bytes < 0 || h->rank < 0 || h->rank >= comm->size ||
                       (failure ? h->status == GNOMON_OK || h->bytes >= TEXT : h->rank != from),
                   ctx, GNOMON_ERROR_COMM, "a message of rank %d is damaged: its header", from);
    return GNOMON_OK;
}

gnomon_status gnomon_message_receive(gnomon_context *ctx, const gnomon_comm *comm, int from,
                                     gnomon_message_kind kind, gnomon_message *message)
{
    header h = {0};
    GNOMON_TRY(get(ctx, comm, from, &h, sizeof h));
    GNOMON_TRY(check(ctx, comm, &h, from, kind));
    const int64_t room = gnomon_plus(h.bytes, 1); /* a text's end */
    /* it can't be passed over, so that nothing behind it can be read either */
    GNOMON_FAIL_IF(
        gnomon_renew(ctx, &message->data, &message->room, room, 1, "a message") != GNOMON_OK, ctx,
        GNOMON_ERROR_COMM, "rank %d has no memory for a message of %" PRId64 " bytes of rank %d",
        comm->rank, h.bytes, from);
    GNOMON_TRY(get(ctx, comm, from, message->data, h.bytes));
    GNOMON_FAIL_IF(h.body_sum != XXH3_64bits(message->data, (size_t)h.bytes), ctx,
                   GNOMON_ERROR_COMM, "a message of rank %d is damaged: its body", from);
    message->data[h.bytes] = '\0';
    message->bytes = h.bytes;
    message->kind = (gnomon_message_kind)h.kind;
    message->status = (gnomon_status)h.status;
    message->rank = h.rank;
    return GNOMON_OK;
}

gnomon_status gnomon_message_failed(gnomon_context *ctx, const gnomon_comm *comm,
                                    const gnomon_message *message)
{
    if (message->rank == comm->rank) return message->status; /* the context has its text */
    return gnomon_fail(ctx, message->status, "rank %d: %s", message->rank, message->data);
}

void gnomon_message_drop(gnomon_context *ctx, gnomon_message *message)
{
    gnomon_free(ctx, message->data);
    *message = (gnomon_message){0};
}

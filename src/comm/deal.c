/* Pieces of work, dealt out to the ranks and taken by rank 0 in their order.
 *
 * Every piece that a rank sends is answered by GO, or by END or FAILURE for all that is left. A
 * rank makes the next piece before it reads the answer, so that it works while rank 0 does. */
#include "comm/comm.h"

#include "base/error.h"

#include <stdio.h>

typedef struct deal {
    gnomon_context *ctx;
    gnomon_comm comm;
    gnomon_comm_make_fn make;
    gnomon_comm_take_fn take;
    void *user;
    gnomon_message message;
    /* the end: the status that all return, its rank and text */
    gnomon_status status;
    int failed;
    char text[512];
} deal;

/* Functions of the caller need not leave a text; that of an earlier failure is none of theirs. */
static void forget(deal *d)
{
    d->ctx->error = (gnomon_error){.row = -1, .col = -1};
}

/* This rank's failure, by the context's text. */
static void note(deal *d, gnomon_status status)
{
    const char *text = gnomon_last_error(d->ctx);
    if (text[0] == '\0') gnomon_fail(d->ctx, status, "%s", gnomon_status_name(status));
    d->status = status;
    d->failed = d->comm.rank;
    snprintf(d->text, sizeof d->text, "%s", text);
}

static gnomon_status make(deal *d, int64_t piece, const void **data, int64_t *bytes)
{
    *data = NULL;
    *bytes = -1;
    forget(d);
    /* told by the first piece, since the others wait for it */
    GNOMON_NEED(d->ctx, d->make, "make");
    GNOMON_FAIL_IF(d->comm.rank == 0 && d->take == NULL, d->ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("take") " is NULL");
    const gnomon_status status = d->make(d->user, piece, data, bytes);
    if (status == GNOMON_OK && *bytes > 0 && *data == NULL)
        return gnomon_fail(d->ctx, GNOMON_ERROR_ARGUMENT,
                           GNOMON_ARG("make") " gave no data for a piece of bytes");
    return status;
}

/* ---- the ranks that send ---- */

static gnomon_status send_piece(deal *d, gnomon_status made, const void *data, int64_t bytes)
{
    if (made != GNOMON_OK)
        return gnomon_message_fail(d->ctx, &d->comm, 0, d->comm.rank, made, d->text);
    if (bytes < 0) return gnomon_message_send(d->ctx, &d->comm, 0, GNOMON_MESSAGE_END, NULL, 0);
    return gnomon_message_send(d->ctx, &d->comm, 0, GNOMON_MESSAGE_PIECE, data, bytes);
}

/* Rank 0's answer to a piece; *more: it wants the next. */
static gnomon_status read_answer(deal *d, bool *more)
{
    GNOMON_TRY(gnomon_message_receive(d->ctx, &d->comm, 0, GNOMON_MESSAGE_GO, &d->message));
    if (d->message.kind == GNOMON_MESSAGE_FAILURE)
        return gnomon_message_failed(d->ctx, &d->comm, &d->message);
    GNOMON_FAIL_IF(d->message.bytes != 1, d->ctx, GNOMON_ERROR_COMM,
                   "a message of rank 0 is damaged: its length");
    *more = d->message.data[0] != 0;
    return GNOMON_OK;
}

static gnomon_status give(deal *d)
{
    bool more = true;
    for (int64_t piece = d->comm.rank; more; piece += d->comm.size) {
        const void *data;
        int64_t bytes;
        const gnomon_status made = make(d, piece, &data, &bytes);
        if (made != GNOMON_OK) note(d, made);
        if (piece >= d->comm.size) GNOMON_TRY(read_answer(d, &more));
        if (!more) break;
        GNOMON_TRY(send_piece(d, made, data, bytes));
        if (made == GNOMON_OK && bytes >= 0) continue;
        return read_answer(d, &more); /* nothing more is sent */
    }
    return GNOMON_OK;
}

/* ---- rank 0 ---- */

/* Answers the piece of a rank: whether there is to be another, or how it ended. */
static gnomon_status answer(deal *d, int to, bool more)
{
    const char go = more;
    if (d->status != GNOMON_OK)
        return gnomon_message_fail(d->ctx, &d->comm, to, d->failed, d->status, d->text);
    return gnomon_message_send(d->ctx, &d->comm, to, GNOMON_MESSAGE_GO, &go, 1);
}

/* The next piece, of whichever rank; *end: there is none, or a failure was noted. */
static gnomon_status collect_piece(deal *d, int64_t piece, bool *end)
{
    const int owner = (int)(piece % d->comm.size);
    const void *data;
    int64_t bytes;
    gnomon_status status = GNOMON_OK;
    *end = true;
    if (owner == 0) {
        status = make(d, piece, &data, &bytes);
    } else {
        GNOMON_TRY(
            gnomon_message_receive(d->ctx, &d->comm, owner, GNOMON_MESSAGE_PIECE, &d->message));
        data = d->message.data;
        bytes = d->message.kind == GNOMON_MESSAGE_PIECE ? d->message.bytes : -1;
        if (d->message.kind == GNOMON_MESSAGE_FAILURE) {
            d->status = d->message.status;
            d->failed = d->message.rank;
            snprintf(d->text, sizeof d->text, "%s", d->message.data);
            return GNOMON_OK;
        }
    }
    if (status == GNOMON_OK && bytes < 0) return GNOMON_OK;
    if (status == GNOMON_OK) {
        forget(d);
        status = d->take(d->user, piece, data, bytes);
    }
    if (status != GNOMON_OK) note(d, status);
    *end = status != GNOMON_OK;
    return GNOMON_OK;
}

static gnomon_status gather(deal *d)
{
    int64_t piece = 0;
    for (bool end = false; !end; piece++) {
        const int owner = (int)(piece % d->comm.size);
        GNOMON_TRY(collect_piece(d, piece, &end));
        if (owner > 0) GNOMON_TRY(answer(d, owner, !end));
    }
    /* Each other rank has sent, or will send, one piece more: that behind the last. */
    const int last = (int)((piece - 1) % d->comm.size);
    for (int step = 1; step < d->comm.size; step++) {
        const int rank = (last + step) % d->comm.size;
        if (rank == 0) continue;
        GNOMON_TRY(
            gnomon_message_receive(d->ctx, &d->comm, rank, GNOMON_MESSAGE_PIECE, &d->message));
        GNOMON_TRY(answer(d, rank, false));
    }
    if (d->failed == 0) return d->status; /* the context has its text */
    return gnomon_fail(d->ctx, d->status, "rank %d: %s", d->failed, d->text);
}

gnomon_status gnomon_comm_deal(gnomon_context *ctx, const gnomon_comm *comm,
                               gnomon_comm_make_fn make_piece, gnomon_comm_take_fn take, void *user)
{
    deal d = {.ctx = ctx, .make = make_piece, .take = take, .user = user};
    GNOMON_TRY(gnomon_comm_take(ctx, comm, &d.comm));
    const gnomon_status status = d.comm.rank == 0 ? gather(&d) : give(&d);
    gnomon_message_drop(ctx, &d.message);
    return status;
}

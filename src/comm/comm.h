/* comm/comm.h: what the jobs on several ranks are made of. */
#ifndef GNOMON_COMM_COMM_H
#define GNOMON_COMM_COMM_H

#include "base/context.h"

#include <gnomon/comm.h>

#include <stdbool.h>

/* Checks a caller's table and copies it. Errors: ARGUMENT. */
gnomon_status gnomon_comm_take(gnomon_context *ctx, const gnomon_comm *given, gnomon_comm *comm);

/* What a message holds; the numbers stand in docs/reference/formats.md. */
typedef enum gnomon_message_kind {
    GNOMON_MESSAGE_BYTES = 1,     /* of gnomon_comm_broadcast */
    GNOMON_MESSAGE_PIECE = 2,     /* of gnomon_comm_deal */
    GNOMON_MESSAGE_END = 3,       /* there is no such piece, nor any after it */
    GNOMON_MESSAGE_GO = 4,        /* the piece is taken: send the next one */
    GNOMON_MESSAGE_CODES = 5,     /* of gnomon_comm_agree */
    GNOMON_MESSAGE_NEIGHBORS = 6, /* answers of a search in a part of the base */
    GNOMON_MESSAGE_FAILURE = 7,   /* a status and its text, in the place of any other */
    GNOMON_MESSAGE_PAIRS = 8,     /* pairs of a join, or a rank's last word of it */
    GNOMON_MESSAGE_DOCUMENTS = 9, /* sets of documents of a deduplication */
    GNOMON_MESSAGE_ROWS = 10      /* rows of a factor, for a step of a factorisation */
} gnomon_message_kind;

/* A message that was received. Zeroed before the first; the buffer is used again. */
typedef struct gnomon_message {
    gnomon_message_kind kind;
    gnomon_status status; /* of a FAILURE; else OK */
    int rank;             /* of a FAILURE: the rank that failed; else the sender */
    char *data;
    int64_t bytes, room;
} gnomon_message;

/* Sends a message. Errors: COMM. */
gnomon_status gnomon_message_send(gnomon_context *ctx, const gnomon_comm *comm, int to,
                                  gnomon_message_kind kind, const void *data, int64_t bytes);
/* Tells of a failure of rank 'rank'. */
gnomon_status gnomon_message_fail(gnomon_context *ctx, const gnomon_comm *comm, int to, int rank,
                                  gnomon_status status, const char *text);
/* Receives the next message, of this kind or a FAILURE. Errors: COMM: nothing behind it can be
 * told apart any more where there is no memory for it, it is damaged, or of another kind. */
gnomon_status gnomon_message_receive(gnomon_context *ctx, const gnomon_comm *comm, int from,
                                     gnomon_message_kind kind, gnomon_message *message);
/* A FAILURE as this rank's own: "rank 2: text"; what this rank failed by stays. Returns its status.
 */
gnomon_status gnomon_message_failed(gnomon_context *ctx, const gnomon_comm *comm,
                                    const gnomon_message *message);
void gnomon_message_drop(gnomon_context *ctx, gnomon_message *message);

/* A failure under way: the first one, whose it is, and what that rank says of it. Zeroed: none. */
typedef struct gnomon_comm_failure {
    int32_t status, rank;
    char text[480];
} gnomon_comm_failure;

/* Takes a failure down, unless it is OK or one is known already. text NULL: the context's. */
void gnomon_comm_note(gnomon_context *ctx, gnomon_comm_failure *bad, gnomon_status status, int rank,
                      const char *text);
/* What rank 0 has heard becomes that of all: its status, and the text that names the rank. Errors:
 * those of gnomon_comm_broadcast. */
gnomon_status gnomon_comm_end(gnomon_context *ctx, const gnomon_comm *comm,
                              gnomon_comm_failure *bad);

#endif

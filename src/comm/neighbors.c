/* A search whose base is divided among the ranks: the partial answers go up a tree of ranks, in
 * which each merges those of its children with its own. Ids tell whose are the first among equals,
 * so the order in which they are merged does not matter. */
#include "comm/comm.h"
#include "search/state.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"

#include <string.h>

/* The fixed part of such a message: docs/reference/formats.md. */
typedef struct facts {
    int64_t queries, k, metric;
    double radius;
    int64_t base, compared, verified, answers;
    char why[GNOMON_SEARCH_WHY];
} facts;

/* Answers as a message's body, to be freed. */
static gnomon_status pack_answers(gnomon_context *ctx, const gnomon_search *s,
                                  const gnomon_neighbors *n, char **body, int64_t *bytes)
{
    facts f = {.queries = n->queries,
               .k = n->k,
               .metric = s->options.metric,
               .radius = n->k > 0 ? 0 : s->options.radius,
               .base = n->base,
               .compared = n->compared,
               .verified = n->verified,
               .answers = n->offsets[n->queries]};
    memcpy(f.why, n->why, sizeof f.why);
    const int64_t offsets = (n->queries + 1) * (int64_t)sizeof *n->offsets;
    const int64_t answers = gnomon_times(f.answers, sizeof *n->ids);
    *bytes = gnomon_plus(gnomon_times(answers, 2), offsets + (int64_t)sizeof f);
    GNOMON_TRY(gnomon_alloc(ctx, *bytes, 1, "answers for another rank", body));
    char *at = *body;
    memcpy(at, &f, sizeof f);
    memcpy(at += sizeof f, n->offsets, (size_t)offsets);
    at += offsets;
    if (answers > 0) {
        memcpy(at, n->ids, (size_t)answers);
        memcpy(at + answers, n->distances, (size_t)answers);
    }
    return GNOMON_OK;
}

/* Whether the offsets are those of so many answers, at most k to a query. */
static bool good_offsets(const gnomon_neighbors *n, int64_t answers)
{
    if (n->offsets[0] != 0 || n->offsets[n->queries] != answers) return false;
    for (int64_t q = 0; q < n->queries; q++) {
        const int64_t count = n->offsets[q + 1] - n->offsets[q];
        if (n->offsets[q] < 0 || count < 0 || (n->k > 0 && count > n->k)) return false;
    }
    return true;
}

/* Answers in a message, which they point into. */
static gnomon_status read_answers(gnomon_context *ctx, const gnomon_search *s, int from,
                                  const gnomon_message *message, gnomon_neighbors *n)
{
    facts f;
    GNOMON_FAIL_IF(message->bytes < (int64_t)sizeof f, ctx, GNOMON_ERROR_DATA,
                   "a message of rank %d is damaged: its length", from);
    memcpy(&f, message->data, sizeof f);
    GNOMON_FAIL_IF(
        f.queries != s->count || f.k != s->options.k || f.metric != (int64_t)s->options.metric ||
            (f.k == 0 && f.radius != s->options.radius),
        ctx, GNOMON_ERROR_SHAPE, "rank %d searches other queries, or by other options", from);
    const int64_t size = sizeof(int64_t);
    int64_t numbers, bytes;
    GNOMON_FAIL_IF(f.answers < 0 || !gnomon_mul(f.answers, 2, &numbers) ||
                       !gnomon_add(numbers, f.queries + 1, &numbers) ||
                       !gnomon_mul(numbers, size, &bytes) ||
                       bytes != message->bytes - (int64_t)sizeof f,
                   ctx, GNOMON_ERROR_DATA, "a message of rank %d is damaged: its length", from);
    char *at = message->data + sizeof f;
    *n = (gnomon_neighbors){.struct_size = sizeof *n,
                            .queries = f.queries,
                            .k = f.k,
                            .base = f.base,
                            .offsets = (int64_t *)(void *)at,
                            .compared = f.compared,
                            .verified = f.verified};
    n->ids = n->offsets + f.queries + 1;
    n->distances = (double *)(void *)(n->ids + f.answers);
    memcpy(n->why, f.why, sizeof n->why);
    n->why[sizeof n->why - 1] = '\0';
    GNOMON_FAIL_IF(!good_offsets(n, f.answers), ctx, GNOMON_ERROR_DATA,
                   "a message of rank %d is damaged: its offsets", from);
    return GNOMON_OK;
}

/* Adds what a child has found. */
static gnomon_status add_child(gnomon_context *ctx, int child, gnomon_search *s,
                               gnomon_neighbors *found, const gnomon_message *message)
{
    gnomon_neighbors theirs, both;
    GNOMON_TRY(read_answers(ctx, s, child, message, &theirs));
    GNOMON_TRY(gnomon_neighbors_merge(s, found, &theirs, &both));
    gnomon_neighbors_free(ctx, found);
    *found = both;
    return GNOMON_OK;
}

static gnomon_status merge_up(gnomon_context *ctx, const gnomon_comm *comm, gnomon_search *s,
                              gnomon_neighbors *found, gnomon_comm_failure *bad)
{
    gnomon_message message = {0};
    gnomon_status status = GNOMON_OK;
    int bit = 1;
    for (; bit < comm->size && (comm->rank & bit) == 0 && status == GNOMON_OK; bit *= 2) {
        const int child = comm->rank + bit;
        if (child >= comm->size) continue;
        status = gnomon_message_receive(ctx, comm, child, GNOMON_MESSAGE_NEIGHBORS, &message);
        if (status != GNOMON_OK) continue;
        if (message.kind == GNOMON_MESSAGE_FAILURE)
            gnomon_comm_note(ctx, bad, message.status, message.rank, message.data);
        else if (bad->status == GNOMON_OK)
            gnomon_comm_note(ctx, bad, add_child(ctx, child, s, found, &message), comm->rank, NULL);
    }
    gnomon_message_drop(ctx, &message);
    if (status != GNOMON_OK || comm->rank == 0) return status;
    const int parent = comm->rank - bit;
    char *body = NULL;
    int64_t bytes = 0;
    if (bad->status == GNOMON_OK)
        gnomon_comm_note(ctx, bad, pack_answers(ctx, s, found, &body, &bytes), comm->rank, NULL);
    status = bad->status == GNOMON_OK
                 ? gnomon_message_send(ctx, comm, parent, GNOMON_MESSAGE_NEIGHBORS, body, bytes)
                 : gnomon_message_fail(ctx, comm, parent, bad->rank, (gnomon_status)bad->status,
                                       bad->text);
    gnomon_free(ctx, body);
    return status;
}

static gnomon_status check(gnomon_context *ctx, const gnomon_search *search, gnomon_neighbors *out)
{
    GNOMON_NEED(ctx, search, "search");
    GNOMON_FAIL_IF(search->ctx != ctx, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("search") " belongs to another context");
    return GNOMON_OPEN_RESULT(ctx, "out", gnomon_neighbors, out);
}

gnomon_status gnomon_comm_neighbors(gnomon_context *ctx, const gnomon_comm *given,
                                    gnomon_search *search, gnomon_neighbors *out)
{
    gnomon_comm comm;
    gnomon_neighbors found = {.struct_size = sizeof found};
    GNOMON_TRY(gnomon_comm_take(ctx, given, &comm));
    gnomon_comm_failure bad = {0};
    gnomon_status status = check(ctx, search, out);
    if (status == GNOMON_OK) status = gnomon_search_finish_partial(search, &found);
    gnomon_comm_note(ctx, &bad, status, comm.rank, NULL);
    status = merge_up(ctx, &comm, search, &found, &bad);
    if (status == GNOMON_OK && comm.rank == 0 && bad.status == GNOMON_OK)
        gnomon_comm_note(ctx, &bad, gnomon_neighbors_check(search, &found), 0, NULL);
    if (status == GNOMON_OK) status = gnomon_comm_end(ctx, &comm, &bad);
    if (status == GNOMON_OK && comm.rank == 0) gnomon_return_result(out, &found, sizeof found);
    gnomon_neighbors_free(ctx, &found);
    return status;
}

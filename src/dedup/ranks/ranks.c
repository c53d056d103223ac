/* A deduplication on several ranks: see dedup/ranks/ranks.h.
 *
 * Every message of a rank is answered by rank 0: by GO, by its failure, or, at the end, by its
 * result. A rank works on before it reads the answer, but no call ends without it. Its own failure
 * is not answered. */
#include "dedup/ranks/ranks.h"

#include "base/arithmetic.h"
#include "base/memory.h"
#include "base/options.h"
#include "dedup/state.h"

#include <inttypes.h>
#include <string.h>

/* The fixed part of a message: docs/reference/formats.md, "Sets of documents". */
typedef struct facts {
    int64_t slice; /* or what the rank waits for: */
    int64_t count, numbers, documents;
} facts;

/* The result, as there are no more documents; that rank 0 has done what it does alone. */
enum { RESULT = -1, ALONE = -2 };

/* What all ranks must agree on. */
typedef struct terms {
    int64_t ngram, characters, lower, punctuation, normalize, exact, weighted, restored;
} terms;

gnomon_status gnomon_dedup_ranks_take(gnomon_context *ctx, const gnomon_dedup_options *options,
                                      gnomon_comm *comm)
{
    *comm = (gnomon_comm)GNOMON_COMM_INIT;
    return options->comm != NULL ? gnomon_comm_take(ctx, options->comm, comm) : GNOMON_OK;
}

/* After a failed message nothing more can be said. */
static gnomon_status say(gnomon_dedup_ranks *r, gnomon_status status)
{
    if (status == GNOMON_OK) return status;
    r->lost = true;
    return GNOMON_ERROR_COMM;
}

static gnomon_status damaged(gnomon_dedup *d, int from)
{
    gnomon_fail(d->ctx, GNOMON_ERROR_COMM, "a message of rank %d is damaged: its length", from);
    return say(&d->ranks, GNOMON_ERROR_COMM);
}

/* ---- the beginning ---- */

/* The first rank's status that is not OK is that of all. */
static gnomon_status agree(gnomon_context *ctx, const gnomon_comm *comm, gnomon_status status)
{
    int code = (int)status, rank = -1;
    GNOMON_TRY(gnomon_comm_agree(ctx, comm, &code, &rank));
    if (code == 0 || status != GNOMON_OK) return status;
    return gnomon_fail(ctx, (gnomon_status)code, "rank %d can't begin", rank);
}

static terms terms_of(const gnomon_dedup *d)
{
    const gnomon_dedup_options *o = &d->options;
    return (terms){.ngram = o->ngram,
                   .characters = o->characters,
                   .lower = o->lower,
                   .punctuation = o->punctuation,
                   .normalize = o->normalize,
                   .exact = o->exact,
                   .weighted = o->weighted,
                   .restored = d->checkpoint.restored};
}

gnomon_status gnomon_dedup_ranks_begin(gnomon_context *ctx, const gnomon_comm *comm,
                                       gnomon_dedup *d, gnomon_status status)
{
    GNOMON_TRY(agree(ctx, comm, status));
    terms told = terms_of(d);
    gnomon_dedup_ranks *r = &d->ranks;
    r->comm = *comm;
    GNOMON_TRY(gnomon_comm_broadcast(ctx, comm, &told, sizeof told));
    r->restored = told.restored;
    told.restored = d->checkpoint.restored;
    const terms own = terms_of(d);
    if (comm->rank == 0)
        status = gnomon_alloc_zero(ctx, comm->size, sizeof *r->heard, "ranks", &r->heard);
    else if (memcmp(&own, &told, sizeof own) != 0)
        status =
            gnomon_fail(ctx, GNOMON_ERROR_ARGUMENT,
                        GNOMON_ARG("options") ": rank %d makes other sets than rank 0", comm->rank);
    return agree(ctx, comm, status);
}

/* ---- slices ---- */

int gnomon_dedup_ranks_owner(gnomon_dedup *d)
{
    /* texts that are compared byte by byte need no work that could be divided */
    return d->options.exact ? 0 : (int)(d->ranks.slices++ % d->ranks.comm.size);
}

/* Rank 0's answer to what was sent last. */
gnomon_status gnomon_dedup_ranks_wait(gnomon_dedup *d)
{
    gnomon_dedup_ranks *r = &d->ranks;
    if (!r->waiting) return GNOMON_OK;
    r->waiting = false;
    GNOMON_TRY(say(r, gnomon_message_receive(d->ctx, &r->comm, 0, GNOMON_MESSAGE_GO, &r->message)));
    if (r->message.kind != GNOMON_MESSAGE_FAILURE) return GNOMON_OK;
    r->over = true;
    return gnomon_message_failed(d->ctx, &r->comm, &r->message);
}

static gnomon_status send_sets(gnomon_dedup *d, int64_t bytes)
{
    gnomon_dedup_ranks *r = &d->ranks;
    GNOMON_TRY(gnomon_dedup_ranks_wait(d));
    GNOMON_TRY(
        say(r, gnomon_message_send(d->ctx, &r->comm, 0, GNOMON_MESSAGE_DOCUMENTS, r->body, bytes)));
    r->waiting = true;
    return GNOMON_OK;
}

static gnomon_status make_room(gnomon_dedup *d, int64_t bytes)
{
    return gnomon_renew(d->ctx, &d->ranks.body, &d->ranks.room, bytes, 1, "sets for rank 0");
}

gnomon_status gnomon_dedup_ranks_send(gnomon_dedup *d, int64_t count, const int64_t *counts,
                                      const uint64_t *hashes, const uint64_t *sets,
                                      const int64_t *places)
{
    const int64_t size = sizeof *sets;
    facts f = {d->ranks.slices - 1, count, 0, d->ranks.given};
    for (int64_t at = 0; at < count; at++)
        f.numbers += counts[at];
    const int64_t bytes = (int64_t)sizeof f + (2 * count + f.numbers) * size;
    GNOMON_TRY(make_room(d, bytes));
    char *to = d->ranks.body;
    memcpy(to, &f, sizeof f);
    to += sizeof f;
    memcpy(to, counts, (size_t)(count * size));
    to += count * size;
    memcpy(to, hashes, (size_t)(count * size));
    to += count * size;
    for (int64_t at = 0; at < count; at++) {
        if (counts[at] > 0) memcpy(to, sets + places[at], (size_t)(counts[at] * size));
        to += counts[at] * size;
    }
    return send_sets(d, bytes);
}

/* The next message of a rank; its failure becomes this one's. */
static gnomon_status receive(gnomon_dedup *d, int from, facts *f)
{
    gnomon_dedup_ranks *r = &d->ranks;
    GNOMON_TRY(say(
        r, gnomon_message_receive(d->ctx, &r->comm, from, GNOMON_MESSAGE_DOCUMENTS, &r->message)));
    if (r->message.kind == GNOMON_MESSAGE_FAILURE) {
        r->heard[from] = GNOMON_RANK_ENDED;
        gnomon_comm_note(d->ctx, &r->bad, r->message.status, r->message.rank, r->message.data);
        return gnomon_message_failed(d->ctx, &r->comm, &r->message);
    }
    r->heard[from] = GNOMON_RANK_WAITS;
    if (r->message.bytes < (int64_t)sizeof *f) return damaged(d, from);
    memcpy(f, r->message.data, sizeof *f);
    return GNOMON_OK;
}

gnomon_status gnomon_dedup_ranks_receive(gnomon_dedup *d, int from, int64_t count,
                                         gnomon_slice_sets *slice)
{
    gnomon_dedup_ranks *r = &d->ranks;
    const char go = 1;
    facts f;
    GNOMON_TRY(receive(d, from, &f));
    GNOMON_FAIL_IF(f.slice != r->slices - 1 || f.count != count || f.documents != r->given, d->ctx,
                   GNOMON_ERROR_DATA,
                   "rank %d was given other documents than rank 0, or in other batches", from);
    int64_t numbers = 0, bytes = 0;
    const int64_t size = sizeof *slice->sets;
    const char *at = r->message.data + sizeof f;
    if (f.numbers < 0 || !gnomon_add(2 * count, f.numbers, &bytes) ||
        !gnomon_mul(bytes, size, &bytes) || bytes != r->message.bytes - (int64_t)sizeof f)
        return damaged(d, from);
    *slice = (gnomon_slice_sets){.count = count, .numbers = f.numbers};
    slice->counts = (const int64_t *)(const void *)at;
    slice->hashes = (const uint64_t *)(const void *)(at + count * size);
    slice->sets = slice->hashes + count;
    for (int64_t i = 0; i < count; i++) {
        if (slice->counts[i] < 0 || slice->counts[i] > f.numbers - numbers) return damaged(d, from);
        numbers += slice->counts[i];
    }
    if (numbers != f.numbers) return damaged(d, from);
    r->heard[from] = GNOMON_RANK_WORKS;
    return say(r, gnomon_message_send(d->ctx, &r->comm, from, GNOMON_MESSAGE_GO, &go, 1));
}

/* ---- the end ---- */

/* Rank 0: all others wait for it. Others: it is told that this one does. */
static gnomon_status gather(gnomon_dedup *d, int64_t what)
{
    gnomon_dedup_ranks *r = &d->ranks;
    facts f = {what, 0, 0, r->given};
    for (int from = 1; from < r->comm.size && r->comm.rank == 0; from++) {
        GNOMON_TRY(receive(d, from, &f));
        GNOMON_FAIL_IF(f.slice != what || f.documents != r->given, d->ctx, GNOMON_ERROR_DATA,
                       "rank %d was given %" PRId64 " documents and rank 0 %" PRId64
                       ", or other calls were made there",
                       from, f.documents, r->given);
    }
    if (r->comm.rank == 0) return GNOMON_OK;
    GNOMON_TRY(make_room(d, sizeof f));
    memcpy(r->body, &f, sizeof f);
    return send_sets(d, sizeof f);
}

/* Rank 0: the others go on. */
static gnomon_status let_go(gnomon_dedup *d)
{
    gnomon_dedup_ranks *r = &d->ranks;
    const char go = 1;
    for (int to = 1; to < r->comm.size; to++) {
        r->heard[to] = GNOMON_RANK_WORKS;
        GNOMON_TRY(say(r, gnomon_message_send(d->ctx, &r->comm, to, GNOMON_MESSAGE_GO, &go, 1)));
    }
    return GNOMON_OK;
}

gnomon_status gnomon_dedup_ranks_alone(gnomon_dedup *d,
                                       gnomon_status (*work)(gnomon_dedup *d, void *arg), void *arg)
{
    if (!gnomon_dedup_divided(&d->ranks)) return work(d, arg);
    const bool first = d->ranks.comm.rank == 0;
    gnomon_status status = gather(d, ALONE);
    if (status == GNOMON_OK && first) status = work(d, arg);
    if (status == GNOMON_OK) status = first ? let_go(d) : gnomon_dedup_ranks_wait(d);
    if (status == GNOMON_OK) return GNOMON_OK;
    d->broken = true;
    return gnomon_dedup_ranks_fail(d, status);
}

gnomon_status gnomon_dedup_ranks_meet(gnomon_dedup *d)
{
    gnomon_dedup_ranks *r = &d->ranks;
    GNOMON_TRY(gather(d, RESULT));
    if (r->comm.rank == 0) return GNOMON_OK;
    r->waiting = false;
    GNOMON_TRY(
        say(r, gnomon_message_receive(d->ctx, &r->comm, 0, GNOMON_MESSAGE_BYTES, &r->message)));
    if (r->message.kind == GNOMON_MESSAGE_FAILURE) {
        r->over = true;
        return gnomon_message_failed(d->ctx, &r->comm, &r->message);
    }
    if (r->message.bytes != (int64_t)sizeof d->result) return damaged(d, 0);
    memcpy(&d->result, r->message.data, sizeof d->result);
    return GNOMON_OK;
}

gnomon_status gnomon_dedup_ranks_finish(gnomon_dedup *d)
{
    gnomon_dedup_ranks *r = &d->ranks;
    for (int to = 1; to < r->comm.size && r->comm.rank == 0; to++) {
        r->heard[to] = GNOMON_RANK_WORKS;
        GNOMON_TRY(say(r, gnomon_message_send(d->ctx, &r->comm, to, GNOMON_MESSAGE_BYTES,
                                              &d->result, sizeof d->result)));
    }
    return GNOMON_OK;
}

/* Rank 0 tells each rank that has not ended, in the place of the answer that it waits for, or will
 * wait for. */
static gnomon_status tell_all(gnomon_dedup *d)
{
    gnomon_dedup_ranks *r = &d->ranks;
    const gnomon_comm_failure *bad = &r->bad;
    for (int to = 1; to < r->comm.size; to++) {
        if (r->heard[to] == GNOMON_RANK_ENDED) continue;
        if (r->heard[to] == GNOMON_RANK_WORKS)
            GNOMON_TRY(say(r, gnomon_message_receive(d->ctx, &r->comm, to, GNOMON_MESSAGE_DOCUMENTS,
                                                     &r->message)));
        if (r->heard[to] == GNOMON_RANK_WORKS && r->message.kind == GNOMON_MESSAGE_FAILURE)
            continue;
        GNOMON_TRY(say(r, gnomon_message_fail(d->ctx, &r->comm, to, bad->rank,
                                              (gnomon_status)bad->status, bad->text)));
    }
    return (gnomon_status)bad->status;
}

gnomon_status gnomon_dedup_ranks_fail(gnomon_dedup *d, gnomon_status status)
{
    gnomon_dedup_ranks *r = &d->ranks;
    if (!gnomon_dedup_divided(r) || r->lost || r->over) return status;
    gnomon_comm_note(d->ctx, &r->bad, status, r->comm.rank, NULL);
    r->over = true;
    if (r->comm.rank > 0) {
        GNOMON_TRY(gnomon_dedup_ranks_wait(d));
        GNOMON_TRY(
            say(r, gnomon_message_fail(d->ctx, &r->comm, 0, r->comm.rank, status, r->bad.text)));
        return status;
    }
    return tell_all(d);
}

void gnomon_dedup_ranks_close(gnomon_dedup *d)
{
    gnomon_message_drop(d->ctx, &d->ranks.message);
    gnomon_free(d->ctx, d->ranks.heard);
    gnomon_free(d->ctx, d->ranks.body);
}

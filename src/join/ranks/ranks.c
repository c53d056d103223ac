/* A join divided among ranks: see join/ranks/ranks.h.
 *
 * Every message of pairs is answered by rank 0, as in comm/deal.c: whether it wants more, and when
 * the ranks meet next. A rank works on before it reads the answer. Its last word, or its failure,
 * is not answered; then rank 0 tells all how it ended.
 *
 * When ranks meet, all pass on what waits, behind the same round of tiles: a rank that did so by a
 * clock of its own would wait for as long as rank 0 has to its own next tile. */
#include "join/ranks/ranks.h"

#include "base/arithmetic.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "join/out.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum {
    TILES = 8,     /* of a rank; of one by hashing, which sorts its tables anew for each, 1 */
    CHUNK = 16384, /* pairs in a message */
    SHARE = 8,     /* of the memory limit, for pairs that wait */
    LEAST_ROOM = 1024,
    MEETING = 2, /* rounds before the ranks first meet: there and back */
    LONGEST = 10 /* seconds to the next meeting: so long a failure may be unknown to the others */
};

/* What all ranks must agree on. */
typedef struct facts {
    int64_t p_rows, q_rows, cols, first_row, top, max_pairs, band_rows;
    int64_t metric, method, self, counted, failed;
    double threshold, recall;
    uint64_t seed;
} facts;

/* The fixed part of a message of pairs: docs/reference/formats.md, "Pairs". */
typedef struct part {
    int64_t tile; /* last_word: nothing follows */
    int64_t tiles, count, rows_done, last;
    int64_t compared, verified, bands; /* of the rank so far */
} part;

static const int64_t last_word = -1;

/* Rank 0's answer to it: docs/reference/formats.md. */
typedef struct reply {
    int64_t more, meeting;
} reply;

gnomon_status gnomon_join_ranks_open(gnomon_context *ctx, const gnomon_join_options *options,
                                     gnomon_join_ranks *r)
{
    gnomon_join_options o = GNOMON_JOIN_OPTIONS_INIT;
    *r = (gnomon_join_ranks){.ctx = ctx, .comm = GNOMON_COMM_INIT, .tile = -1};
    /* what is wrong with the options is told by who takes all of them */
    if (options == NULL ||
        GNOMON_COPY_OPTIONS(NULL, "options", gnomon_join_options, options, &o) != GNOMON_OK ||
        o.comm == NULL)
        return GNOMON_OK;
    return gnomon_comm_take(ctx, o.comm, &r->comm);
}

/* ---- messages ---- */

/* After a failed message nothing more can be said: COMM, and no other status, tells that. */
static gnomon_status say(gnomon_join_ranks *r, gnomon_status status)
{
    if (status == GNOMON_OK) return status;
    r->lost = true;
    return GNOMON_ERROR_COMM;
}

/* Rank 0's answer to what was sent last. */
static gnomon_status read_answer(gnomon_join_ranks *r)
{
    if (!r->waiting) return GNOMON_OK;
    r->waiting = false;
    reply told;
    GNOMON_TRY(say(r, gnomon_message_receive(r->ctx, &r->comm, 0, GNOMON_MESSAGE_GO, &r->message)));
    if (r->message.kind == GNOMON_MESSAGE_FAILURE || r->message.bytes != (int64_t)sizeof told)
        return say(r, gnomon_fail(r->ctx, GNOMON_ERROR_COMM,
                                  "a message of rank 0 is damaged: it is no answer"));
    memcpy(&told, r->message.data, sizeof told);
    r->stopped = told.more == 0;
    r->meeting = told.meeting;
    return GNOMON_OK;
}

static gnomon_status answer(gnomon_join_ranks *r, int to, bool more, int64_t meeting)
{
    const reply told = {more, meeting};
    return say(r, gnomon_message_send(r->ctx, &r->comm, to, GNOMON_MESSAGE_GO, &told, sizeof told));
}

/* Sends a part and its pairs, of at most CHUNK. */
static gnomon_status send_part(gnomon_join_state *join, part p, const gnomon_pair *pairs)
{
    gnomon_join_ranks *r = join->ranks;
    const int64_t bytes = r->counted || p.tile == last_word ? 0 : p.count * (int64_t)sizeof *pairs;
    p.tiles = r->tiles;
    p.compared = join->result->compared;
    p.verified = join->result->verified;
    p.bands = join->result->bands;
    if (r->body == NULL)
        GNOMON_TRY(gnomon_alloc(r->ctx, (int64_t)sizeof p + CHUNK * (int64_t)sizeof *pairs, 1,
                                "pairs for rank 0", &r->body));
    memcpy(r->body, &p, sizeof p);
    if (bytes > 0) memcpy(r->body + sizeof p, pairs, (size_t)bytes);
    GNOMON_TRY(read_answer(r));
    if (r->stopped && p.tile != last_word) return GNOMON_OK;
    GNOMON_TRY(say(r, gnomon_message_send(r->ctx, &r->comm, 0, GNOMON_MESSAGE_PAIRS, r->body,
                                          (int64_t)sizeof p + bytes)));
    r->waiting = p.tile != last_word;
    return GNOMON_OK;
}

/* Sends a run, in as many parts as it takes. */
static gnomon_status send_run(gnomon_join_state *join, const gnomon_join_run *run,
                              const gnomon_pair *pairs)
{
    gnomon_join_ranks *r = join->ranks;
    for (int64_t at = 0; (at == 0 || at < run->count) && !r->stopped;) {
        const int64_t left = run->count - at;
        const int64_t some = r->counted ? left : gnomon_min(left, CHUNK);
        const bool all = some == left;
        const part p = {.tile = run->tile,
                        .count = some,
                        .rows_done = all ? run->rows_done : pairs[at + some - 1].i,
                        .last = all && run->last};
        GNOMON_TRY(send_part(join, p, r->counted ? NULL : pairs + at));
        at += some;
        if (some == 0) break;
    }
    if (r->stopped) join->full = true;
    return GNOMON_OK;
}

/* ---- rank 0 ---- */

/* Who joins a tile: they go there and back. */
static int owner_of(const gnomon_join_ranks *r, int64_t tile)
{
    const int64_t round = tile / r->comm.size, place = tile % r->comm.size;
    return (int)(round % 2 == 0 ? place : r->comm.size - 1 - place);
}

/* Whether the pairs of a message can be those of a tile, in their order. */
static bool good_pairs(const gnomon_join_state *join, const part *p, const gnomon_pair *pairs)
{
    for (int64_t at = 0; at < p->count; at++) {
        const gnomon_pair *pair = &pairs[at];
        if (pair->i < 0 || pair->i >= join->p.rows || pair->j < 0 || pair->j >= join->q.rows ||
            (join->self && pair->j <= pair->i))
            return false;
        if (join->heap == NULL && at > 0 &&
            (pair[-1].i > pair->i || (pair[-1].i == pair->i && pair[-1].j >= pair->j)))
            return false;
    }
    return true;
}

/* The next message of a rank, taken apart; its failure becomes this one's. *end: it is the last. */
static gnomon_status receive_part(gnomon_join_ranks *r, int from, part *p, bool *end)
{
    *end = false;
    GNOMON_TRY(
        say(r, gnomon_message_receive(r->ctx, &r->comm, from, GNOMON_MESSAGE_PAIRS, &r->message)));
    if (r->message.kind == GNOMON_MESSAGE_FAILURE) {
        *end = true;
        if (r->ended != NULL) r->ended[from] = true;
        const bool known = r->bad.status != GNOMON_OK; /* the context has the text of that */
        gnomon_comm_note(r->ctx, &r->bad, r->message.status, r->message.rank, r->message.data);
        return known ? r->message.status : gnomon_message_failed(r->ctx, &r->comm, &r->message);
    }
    const int64_t bytes = r->message.bytes - (int64_t)sizeof *p;
    int64_t due = 0;
    if (bytes >= 0) memcpy(p, r->message.data, sizeof *p);
    const bool has_pairs = bytes >= 0 && !r->counted && p->tile != last_word;
    if (bytes < 0 || p->count < 0 ||
        (has_pairs && !gnomon_mul(p->count, sizeof(gnomon_pair), &due)) || bytes != due)
        return say(r, gnomon_fail(r->ctx, GNOMON_ERROR_COMM,
                                  "a message of rank %d is damaged: its length", from));
    *end = p->tile == last_word;
    if (*end && r->ended != NULL) r->ended[from] = true;
    return GNOMON_OK;
}

/* Hands pairs of any rank out, or adds up how many there are. */
static gnomon_status hand_on(gnomon_join_state *join, const gnomon_pair *pairs, int64_t count,
                             int64_t end)
{
    if (!join->ranks->counted) return gnomon_join_emit(join, pairs, count, end);
    join->result->pairs += count;
    join->result->rows_done = end;
    gnomon_join_tell_result(join);
    return GNOMON_OK;
}

/* The meeting after the next one: said to a rank with which that one is over, so that no rank
 * leaves it out, and none holds it twice. */
static int64_t later_meeting(gnomon_join_state *join)
{
    gnomon_join_ranks *r = join->ranks;
    if (r->later > 0) return r->later;
    const int64_t done = gnomon_max(r->dealt - r->met_at, 1);
    const double each = (gnomon_seconds() - r->met) / (double)done;
    const double rounds = fmin(LONGEST / (each + 1e-9), TILES);
    const bool often = join->options.max_pairs > 0 || rounds < 2;
    return r->later = r->dealt + (often ? 1 : (int64_t)rounds / 2 * 2);
}

/* Takes the next part of a rank's tile; *last: its last one. */
static gnomon_status collect_part(gnomon_join_state *join, int from, int64_t tile, bool *last)
{
    gnomon_join_ranks *r = join->ranks;
    part p = {0};
    bool end;
    GNOMON_TRY(receive_part(r, from, &p, &end));
    const gnomon_pair *pairs = (const void *)(r->message.data + sizeof p);
    gnomon_status status = GNOMON_OK;
    if (p.tile != tile || p.tiles != r->tiles || p.rows_done < 0 || p.rows_done > join->p.rows)
        status = gnomon_fail(r->ctx, GNOMON_ERROR_DATA,
                             "rank %d sent tile %" PRId64 " of %" PRId64 " where rank 0 expects "
                             "%" PRId64 " of %" PRId64 ": all ranks must join the same points",
                             from, p.tile, p.tiles, tile, r->tiles);
    else if (!r->counted && !good_pairs(join, &p, pairs))
        status = gnomon_fail(r->ctx, GNOMON_ERROR_DATA,
                             "rank %d sent pairs that are none of this join", from);
    else if (join->heap != NULL)
        gnomon_join_offer(join, pairs, p.count);
    else
        status = hand_on(join, pairs, p.count, p.rows_done);
    *last = p.last != 0;
    if (end) return status; /* it doesn't wait */
    const bool met = *last && tile / r->comm.size + 1 >= r->meeting;
    const gnomon_status answered =
        answer(r, from, status == GNOMON_OK && !join->full, met ? later_meeting(join) : r->meeting);
    return status != GNOMON_OK ? status : answered;
}

/* Hands out what other ranks have of the tiles before this one, which come next. */
static gnomon_status collect_until(gnomon_join_state *join, int64_t tile)
{
    gnomon_join_ranks *r = join->ranks;
    while (r->next < tile && !join->full) {
        bool last = false;
        GNOMON_TRY(collect_part(join, owner_of(r, r->next), r->next, &last));
        r->next += last;
    }
    return GNOMON_OK;
}

static gnomon_status hand_run(gnomon_join_state *join, const gnomon_join_run *run,
                              const gnomon_pair *pairs)
{
    gnomon_join_ranks *r = join->ranks;
    GNOMON_TRY(collect_until(join, run->tile));
    if (join->full) return GNOMON_OK;
    GNOMON_TRY(hand_on(join, pairs, run->count, run->rows_done));
    r->next += run->last;
    return GNOMON_OK;
}

/* ---- the pairs that wait ---- */

static gnomon_status pass_on(gnomon_join_state *join, const gnomon_join_run *run,
                             const gnomon_pair *pairs)
{
    return join->ranks->comm.rank == 0 ? hand_run(join, run, pairs) : send_run(join, run, pairs);
}

static gnomon_status flush(gnomon_join_state *join)
{
    gnomon_join_ranks *r = join->ranks;
    for (int64_t at = 0; at < r->run_count && !join->full; at++)
        GNOMON_TRY(pass_on(join, &r->runs[at], r->counted ? NULL : r->pairs + r->runs[at].first));
    r->run_count = r->count = 0;
    return GNOMON_OK;
}

/* Behind a round of tiles: passes on what waits, if all do so now. */
static gnomon_status meet(gnomon_join_state *join)
{
    gnomon_join_ranks *r = join->ranks;
    if (r->dealt < r->meeting) return GNOMON_OK;
    GNOMON_TRY(read_answer(r)); /* which may tell of a later one */
    if (r->stopped) join->full = true;
    if (r->dealt < r->meeting || join->full) return GNOMON_OK;
    if (r->comm.rank > 0) return flush(join);
    const int64_t later = later_meeting(join);
    r->met = gnomon_seconds();
    r->met_at = r->dealt;
    GNOMON_TRY(flush(join));
    if (join->heap == NULL)
        GNOMON_TRY(collect_until(join, gnomon_min(r->dealt * r->comm.size, r->tiles)));
    r->meeting = later;
    r->later = 0;
    return GNOMON_OK;
}

/* Room for more pairs; *fits is false when they are more than may wait. */
static gnomon_status make_room(gnomon_join_ranks *r, int64_t more, bool *fits)
{
    const int64_t limit = gnomon_memory_limit(r->ctx) / SHARE / (int64_t)sizeof *r->pairs;
    const int64_t most = gnomon_max(limit, LEAST_ROOM);
    *fits = more <= most - r->count;
    if (!*fits || more <= r->room - r->count) return GNOMON_OK;
    const int64_t room = gnomon_min(gnomon_max(2 * (r->count + more), LEAST_ROOM), most);
    GNOMON_TRY(gnomon_grow(r->ctx, &r->pairs, r->count, room, sizeof *r->pairs, "pairs"));
    r->room = room;
    return GNOMON_OK;
}

gnomon_status gnomon_join_ranks_add(gnomon_join_state *join, const gnomon_pair *pairs,
                                    int64_t count, int64_t end)
{
    gnomon_join_ranks *r = join->ranks;
    bool fits = true;
    if (r->comm.rank > 0) join->result->pairs += count;
    if (!r->counted) GNOMON_TRY(make_room(r, count, &fits));
    if (!fits) {
        GNOMON_TRY(flush(join));
        GNOMON_TRY(make_room(r, count, &fits));
    }
    if (join->full) return GNOMON_OK;
    gnomon_join_run *run = r->run_count > 0 ? &r->runs[r->run_count - 1] : NULL;
    if (run == NULL || run->tile != r->tile) {
        run = &r->runs[r->run_count++];
        *run = (gnomon_join_run){.tile = r->tile, .first = r->count};
    }
    run->rows_done = end;
    if (!fits) { /* more than may wait: they are passed on from where they are */
        const gnomon_join_run alone = {.tile = r->tile, .count = count, .rows_done = end};
        return pass_on(join, &alone, pairs);
    }
    run->count += count;
    if (!r->counted && count > 0) memcpy(r->pairs + r->count, pairs, (size_t)count * sizeof *pairs);
    r->count += count;
    return GNOMON_OK;
}

/* ---- tiles ---- */

static int64_t tile_begin(const gnomon_join_ranks *r, int64_t tile)
{
    const int64_t rows = r->rows - r->first_row;
    const int64_t each = rows / r->tiles, more = rows % r->tiles;
    return r->first_row + each * tile + gnomon_min(tile, more);
}

static gnomon_status begin_tiles(gnomon_join_state *join)
{
    gnomon_join_ranks *r = join->ranks;
    const int64_t each = join->result->method == GNOMON_JOIN_LSH ? 1 : TILES;
    r->first_row = join->options.first_row;
    r->rows = join->p.rows;
    r->tiles = gnomon_min(each * r->comm.size, r->rows - r->first_row);
    r->meeting = join->options.max_pairs > 0 ? 1 : MEETING;
    r->met = gnomon_seconds();
    if (r->runs != NULL) return GNOMON_OK;
    return gnomon_alloc(r->ctx, TILES + 2, sizeof *r->runs, "tiles", &r->runs);
}

gnomon_status gnomon_join_more(gnomon_join_state *join, bool *more)
{
    gnomon_join_ranks *r = join->ranks;
    *more = join->next_row < join->end_row && !join->full;
    if (*more || !gnomon_join_divided(r)) return GNOMON_OK;
    if (r->tile < 0) GNOMON_TRY(begin_tiles(join));
    if (r->run_count > 0) r->runs[r->run_count - 1].last = true; /* of the tile that is done */
    if (r->dealt > 0) GNOMON_TRY(meet(join));
    const int64_t place = r->dealt % 2 == 0 ? r->comm.rank : r->comm.size - 1 - r->comm.rank;
    r->tile = r->dealt++ * r->comm.size + place;
    if (r->tile >= r->tiles || join->full) {
        r->tile = r->tiles;
        return GNOMON_OK;
    }
    join->next_row = tile_begin(r, r->tile);
    join->end_row = tile_begin(r, r->tile + 1);
    *more = true;
    return GNOMON_OK;
}

/* The closest pairs of this rank, in the place of a tile. */
static gnomon_status send_closest(gnomon_join_state *join)
{
    const gnomon_join_run closest = {.tile = join->ranks->tiles,
                                     .count = join->heap_count,
                                     .rows_done = join->p.rows,
                                     .last = true};
    return send_run(join, &closest, join->heap);
}

gnomon_status gnomon_join_ranks_collect(gnomon_join_state *join)
{
    gnomon_join_ranks *r = join->ranks;
    if (r->tile < 0) GNOMON_TRY(begin_tiles(join)); /* there was nothing to do */
    GNOMON_TRY(flush(join));
    if (r->comm.rank > 0) {
        if (join->heap != NULL) GNOMON_TRY(send_closest(join));
        join->result->rows_done = join->p.rows;
    } else if (join->heap == NULL) {
        GNOMON_TRY(collect_until(join, r->tiles));
    } else {
        for (int from = 1; from < r->comm.size; from++)
            for (bool last = false; !last;)
                GNOMON_TRY(collect_part(join, from, r->tiles, &last));
    }
    join->next_row = join->p.rows;
    return GNOMON_OK;
}

/* ---- the beginning and the end ---- */

static void describe(const gnomon_join_state *join, facts *f)
{
    const gnomon_join_options *o = &join->options;
    *f = (facts){.p_rows = join->p.rows,
                 .q_rows = join->q.rows,
                 .cols = join->p.cols,
                 .first_row = o->first_row,
                 .top = o->top,
                 .max_pairs = o->max_pairs,
                 .band_rows = o->band_rows,
                 .metric = (int64_t)o->metric,
                 .method = (int64_t)o->method,
                 .self = join->self,
                 .threshold = o->threshold,
                 .recall = o->recall,
                 .seed = o->seed,
                 .counted = o->sink == NULL && o->p_counts == NULL && o->q_counts == NULL &&
                            o->top == 0 && o->max_pairs == 0};
}

/* Rank 0 tells what it joins; f NULL: that it has failed. */
static gnomon_status exchange(gnomon_join_ranks *r, const facts *own, facts *told)
{
    *told = own != NULL ? *own : (facts){.failed = 1};
    r->begun = true;
    return say(r, gnomon_comm_broadcast(r->ctx, &r->comm, told, sizeof *told));
}

gnomon_status gnomon_join_ranks_begin(gnomon_join_state *join)
{
    gnomon_join_ranks *r = join->ranks;
    facts own, told;
    describe(join, &own);
    if (r->comm.rank == 0)
        GNOMON_TRY(gnomon_alloc_zero(r->ctx, r->comm.size, sizeof *r->ended, "ranks", &r->ended));
    GNOMON_TRY(exchange(r, &own, &told));
    r->counted = told.counted != 0;
    /* the others have no sink; rank 0 has failed: what it says of that comes last */
    own.counted = told.counted;
    GNOMON_FAIL_IF(told.failed, r->ctx, GNOMON_ERROR_CANCELLED, "rank 0 has failed");
    GNOMON_FAIL_IF(memcmp(&own, &told, sizeof own) != 0, r->ctx, GNOMON_ERROR_SHAPE,
                   "it joins other points than rank 0, or by other options");
    return GNOMON_OK;
}

/* Hears all other ranks to their end; what they did is added up. */
static gnomon_status hear_out(gnomon_join_ranks *r, gnomon_join_result *result)
{
    for (int from = 1; from < r->comm.size; from++)
        for (bool end = r->ended != NULL && r->ended[from]; !end;) {
            part p = {0};
            const gnomon_status status = receive_part(r, from, &p, &end);
            if (r->lost) return status;
            if (!end) GNOMON_TRY(answer(r, from, false, r->meeting));
            if (!end || status != GNOMON_OK) continue;
            result->compared += p.compared;
            result->verified += p.verified;
            result->bands += p.bands;
        }
    return GNOMON_OK;
}

static gnomon_status say_last_word(gnomon_join_ranks *r, const gnomon_join_result *own,
                                   gnomon_status status)
{
    GNOMON_TRY(read_answer(r));
    if (status != GNOMON_OK)
        return say(r, gnomon_message_fail(r->ctx, &r->comm, 0, r->comm.rank, status, r->bad.text));
    const part p = {.tile = last_word,
                    .tiles = r->tiles,
                    .compared = own->compared,
                    .verified = own->verified,
                    .bands = own->bands};
    return say(r, gnomon_message_send(r->ctx, &r->comm, 0, GNOMON_MESSAGE_PAIRS, &p, sizeof p));
}

gnomon_status gnomon_join_ranks_end(gnomon_join_ranks *r, gnomon_join_result *result,
                                    gnomon_status status)
{
    facts told;
    if (r->finished || r->lost) return status;
    r->finished = true;
    gnomon_comm_note(r->ctx, &r->bad, status, r->comm.rank, NULL);
    if (!r->begun) GNOMON_TRY(exchange(r, NULL, &told));
    GNOMON_TRY(r->comm.rank == 0 ? hear_out(r, result) : say_last_word(r, result, status));
    status = gnomon_comm_end(r->ctx, &r->comm, &r->bad);
    return status == (gnomon_status)r->bad.status ? status : say(r, status);
}

gnomon_status gnomon_join_ranks_close(gnomon_join_ranks *r, gnomon_status status)
{
    gnomon_join_result none = {0};
    if (gnomon_join_divided(r)) status = gnomon_join_ranks_end(r, &none, status);
    gnomon_message_drop(r->ctx, &r->message);
    gnomon_free(r->ctx, r->ended);
    gnomon_free(r->ctx, r->pairs);
    gnomon_free(r->ctx, r->runs);
    gnomon_free(r->ctx, r->body);
    return status;
}

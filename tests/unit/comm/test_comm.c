/* gnomon/comm.h: what jobs on several ranks are made of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "comm_testing.h"

/* ---- the engine ---- */

/* Every rank sends every other one messages of lengths around those that are kept, in order. */
static void all_to_all(rank_run *r)
{
    static const int lengths[] = {1, 48, 128, 129, 4096, 100000};
    const gnomon_comm *c = &r->comm;
    char *out = malloc(100000), *in = malloc(100000);
    for (int shift = 1; shift < c->size; shift++) {
        const int to = (c->rank + shift) % c->size, from = (c->rank - shift + c->size) % c->size;
        for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
            const int n = lengths[i];
            memset(out, 16 * c->rank + (int)i, (size_t)n);
            /* long messages wait for their receiver: some ranks receive first */
            for (int step = 0; step < 2; step++) {
                const int sends =
                    lengths[i] <= 128 ? step == 0 : (c->rank / shift % 2 == 0) == (step == 0);
                r->status = sends ? c->send(c->user, to, out, n) : c->receive(c->user, from, in, n);
                if (r->status != GNOMON_OK) goto end;
            }
            for (int b = 0; b < n; b++)
                if (in[b] != (char)(16 * from + (int)i)) r->status = GNOMON_ERROR_DATA;
        }
    }
end:
    free(out);
    free(in);
}

static void test_engine(void **state)
{
    (void)state;
    rank_run runs[MOST_RANKS];
    for (int size = 2; size <= 4; size += 2) {
        run_ranks(size, all_to_all, NULL, runs);
        for (int i = 0; i < size; i++)
            assert_int_equal(runs[i].status, GNOMON_OK);
    }
}

/* One rank ends all while the others wait for it. */
static void wait_or_end(rank_run *r)
{
    char data[1000] = "";
    int code = 0;
    if (r->comm.rank == 1) {
        r->comm.abort(r->comm.user, 3);
        r->status = GNOMON_ERROR_COMM;
        return;
    }
    if (r->comm.rank == 2) /* in the hands of a rank that has not asked for it */
        r->status = r->comm.send(r->comm.user, 1, data, sizeof data);
    else
        r->status = gnomon_comm_agree(r->ctx, &r->comm, &code, NULL);
}

static void test_abort(void **state)
{
    (void)state;
    rank_run runs[MOST_RANKS];
    run_ranks(4, wait_or_end, NULL, runs);
    for (int i = 0; i < 4; i++)
        assert_int_equal(runs[i].status, GNOMON_ERROR_COMM);
    assert_non_null(strstr(runs[0].text, "rank 1 has ended the job"));
}

/* ---- shares, broadcast, agreement ---- */

static void test_share(void **state)
{
    (void)state;
    gnomon_context *ctx;
    gnomon_comm c = GNOMON_COMM_INIT;
    gnomon_comm_group *group;
    assert_int_equal(gnomon_context_create(NULL, &ctx), GNOMON_OK);
    for (int size = 1; size <= 7; size++) {
        assert_int_equal(gnomon_comm_group_create(ctx, size, &group), GNOMON_OK);
        for (int64_t total = 0; total < 30; total++) {
            int64_t next = 0, least = total, most = 0;
            for (int rank = 0; rank < size; rank++) {
                int64_t first, count;
                assert_int_equal(gnomon_comm_group_rank(group, rank, &c), GNOMON_OK);
                assert_int_equal(gnomon_comm_share(ctx, &c, total, &first, &count), GNOMON_OK);
                assert_int_equal(first, next);
                next += count;
                if (count < least) least = count;
                if (count > most) most = count;
            }
            assert_int_equal(next, total);
            assert_true(most - least <= 1);
        }
        gnomon_comm_group_destroy(group);
    }
    int64_t first, count;
    assert_int_equal(gnomon_comm_share(ctx, &c, -1, &first, &count), GNOMON_ERROR_ARGUMENT);
    c.rank = c.size;
    assert_int_equal(gnomon_comm_share(ctx, &c, 1, &first, &count), GNOMON_ERROR_ARGUMENT);
    c.rank = 0;
    c.send = NULL;
    assert_int_equal(gnomon_comm_share(ctx, &c, 1, &first, &count), GNOMON_ERROR_ARGUMENT);
    assert_int_equal(gnomon_comm_group_create(ctx, 0, &group), GNOMON_ERROR_ARGUMENT);
    assert_int_equal(gnomon_comm_group_create(ctx, 1025, &group), GNOMON_ERROR_ARGUMENT);
    assert_int_equal(gnomon_comm_open(ctx, "carrier-pigeons", &c), GNOMON_ERROR_ARGUMENT);
    gnomon_context_destroy(ctx);
}

static void speak(rank_run *r)
{
    const int *bad = r->arg; /* two ranks that are not well, -1 for none */
    char said[300] = "";
    int code = r->comm.rank == bad[0] ? 7 : r->comm.rank == bad[1] ? 8 : 0, rank = 99;
    if (r->comm.rank == 0) memset(said, 'x', sizeof said);
    r->status = gnomon_comm_broadcast(r->ctx, &r->comm, said, sizeof said);
    for (size_t i = 0; i < sizeof said; i++)
        if (said[i] != 'x') r->status = GNOMON_ERROR_DATA;
    if (r->status == GNOMON_OK) r->status = gnomon_comm_broadcast(r->ctx, &r->comm, NULL, 0);
    if (r->status == GNOMON_OK) r->status = gnomon_comm_agree(r->ctx, &r->comm, &code, &rank);
    const int first = bad[0] >= 0 && (bad[1] < 0 || bad[0] < bad[1]) ? 0 : 1;
    if (rank != bad[first] || code != (bad[first] < 0 ? 0 : first == 0 ? 7 : 8))
        r->status = GNOMON_ERROR_DATA;
}

static void test_agree(void **state)
{
    (void)state;
    rank_run runs[MOST_RANKS];
    for (int size = 1; size <= MOST_RANKS; size++)
        for (int a = -1; a < size; a++)
            for (int b = a < 0 ? -1 : 0; b < size; b++) {
                int bad[2] = {a, b};
                if (a >= 0 && a == b) continue;
                run_ranks(size, speak, bad, runs);
                for (int i = 0; i < size; i++)
                    assert_int_equal(runs[i].status, GNOMON_OK);
            }
}

static gnomon_status make_none(void *user, int64_t piece, const void **data, int64_t *bytes)
{
    (void)user, (void)piece, (void)data;
    *bytes = -1;
    return GNOMON_OK;
}

/* Ranks that do not make the same calls are told so, or wait until one ends them. */
static void differ(rank_run *r)
{
    char data[8] = "";
    int code = 0;
    r->status = gnomon_comm_broadcast(r->ctx, &r->comm, data, r->comm.rank == 0 ? 8 : 4);
    if (r->comm.rank == 1 && r->status != GNOMON_ERROR_COMM) return;
    if (r->comm.rank == 0) r->status = gnomon_comm_agree(r->ctx, &r->comm, &code, NULL);
    r->comm.abort(r->comm.user, 1);
}

static void test_differ(void **state)
{
    (void)state;
    gnomon_context *ctx;
    gnomon_comm_group *group;
    gnomon_comm a = GNOMON_COMM_INIT, b = GNOMON_COMM_INIT;
    rank_run runs[MOST_RANKS];
    char data[8];
    run_ranks(2, differ, NULL, runs);
    assert_int_equal(runs[0].status, GNOMON_ERROR_COMM);
    assert_int_equal(runs[1].status, GNOMON_ERROR_COMM);
    /* a message of a kind that is not expected; it is kept, so that one thread does */
    assert_int_equal(gnomon_context_create(NULL, &ctx), GNOMON_OK);
    assert_int_equal(gnomon_comm_group_create(ctx, 2, &group), GNOMON_OK);
    assert_int_equal(gnomon_comm_group_rank(group, 0, &a), GNOMON_OK);
    assert_int_equal(gnomon_comm_group_rank(group, 1, &b), GNOMON_OK);
    assert_int_equal(gnomon_comm_broadcast(ctx, &a, data, 0), GNOMON_OK);
    assert_int_equal(gnomon_comm_deal(ctx, &b, make_none, NULL, &b), GNOMON_ERROR_COMM);
    assert_non_null(strstr(gnomon_last_error(ctx), "the same calls in the same order"));
    gnomon_comm_group_destroy(group);
    gnomon_context_destroy(ctx);
}

/* Damage between engine and receiver: each byte of a message in turn. */
enum { HEAD = 48, BODY = 24 };

static void hear(rank_run *r)
{
    char said[BODY] = "0123456789";
    r->status = gnomon_comm_broadcast(r->ctx, &r->comm, said, sizeof said);
}

static void test_damage(void **state)
{
    (void)state;
    rank_run runs[MOST_RANKS];
    damage d = {.rank = 1};
    damaged = &d;
    for (int way = 0; way < DAMAGE_WAYS; way++)
        for (int64_t at = 0; at < HEAD + BODY; at++) {
            d.way = (damage_way)way;
            d.at = at >= HEAD;
            d.byte = at >= HEAD ? at - HEAD : at;
            d.seen = 0;
            run_ranks(2, hear, NULL, runs);
            assert_int_equal(runs[1].status, GNOMON_ERROR_COMM);
            assert_non_null(strstr(runs[1].text, "a message of rank 0 is damaged"));
        }
    damaged = NULL;
}

/* ---- pieces dealt out ---- */

typedef struct pieces {
    int64_t count;            /* that there are */
    int64_t no_make, no_take; /* the piece that fails, or -1 */
    uint64_t taken;           /* a digest of what rank 0 got, in order */
    int64_t next;
} pieces;

typedef struct maker {
    rank_run *run;
    char data[5000];
    int64_t made;
} maker;

static int64_t length_of(int64_t piece)
{
    return piece * 977 % 5000 * (piece % 3 > 0); /* some are empty */
}

static gnomon_status make(void *user, int64_t piece, const void **data, int64_t *bytes)
{
    maker *m = user;
    const pieces *p = m->run->arg;
    if (piece % m->run->comm.size != m->run->comm.rank) return GNOMON_ERROR_INTERNAL;
    if (piece == p->no_make) { /* in the context, where a caller's own call would leave it */
        gnomon_comm_share(m->run->ctx, &m->run->comm, -5, NULL, NULL);
        int64_t a, b;
        return gnomon_comm_share(m->run->ctx, &m->run->comm, -5, &a, &b);
    }
    m->made++;
    *bytes = piece < p->count ? length_of(piece) : -1;
    memset(m->data, (int)(piece + 1), *bytes > 0 ? (size_t)*bytes : 0);
    *data = m->data;
    return GNOMON_OK;
}

static gnomon_status take(void *user, int64_t piece, const void *data, int64_t bytes)
{
    maker *m = user;
    pieces *p = m->run->arg;
    if (piece != p->next++ || bytes != length_of(piece)) return GNOMON_ERROR_INTERNAL;
    for (int64_t i = 0; i < bytes; i++)
        p->taken = p->taken * 31 + ((const unsigned char *)data)[i];
    if (piece == p->no_take) {
        int64_t a, b;
        return gnomon_comm_share(m->run->ctx, &m->run->comm, -6, &a, &b);
    }
    return GNOMON_OK;
}

static void deal(rank_run *r)
{
    maker *m = calloc(1, sizeof *m);
    m->run = r;
    r->status = gnomon_comm_deal(r->ctx, &r->comm, make, r->comm.rank == 0 ? take : NULL, m);
    free(m);
}

static void test_deal(void **state)
{
    (void)state;
    rank_run runs[MOST_RANKS];
    for (int64_t count = 0; count <= 20; count += count < 5 ? 1 : 5) {
        uint64_t due = 0;
        for (int size = 1; size <= 5; size++) {
            pieces p = {count, -1, -1, 0, 0};
            run_ranks(size, deal, &p, runs);
            for (int i = 0; i < size; i++)
                assert_int_equal(runs[i].status, GNOMON_OK);
            assert_int_equal(p.next, count);
            if (size == 1) due = p.taken;
            assert_true(p.taken == due);
        }
    }
}

/* A failure anywhere is that of all ranks, by the name of its rank. */
static void test_deal_failure(void **state)
{
    (void)state;
    rank_run runs[MOST_RANKS];
    char who[32];
    for (int size = 1; size <= 4; size++)
        for (int64_t bad = 0; bad < 9; bad++)
            for (int taking = 0; taking < 2; taking++) {
                pieces p = {9, taking ? -1 : bad, taking ? bad : -1, 0, 0};
                run_ranks(size, deal, &p, runs);
                const int owner = taking ? 0 : (int)(bad % size);
                snprintf(who, sizeof who, "rank %d: total is %d", owner, taking ? -6 : -5);
                assert_int_equal(p.next, taking ? bad + 1 : bad);
                for (int i = 0; i < size; i++) {
                    assert_int_equal(runs[i].status, GNOMON_ERROR_ARGUMENT);
                    assert_non_null(strstr(runs[i].text, i == owner ? strchr(who, 't') : who));
                }
            }
}

static gnomon_status fail_silently(void *user, int64_t piece, const void **data, int64_t *bytes)
{
    (void)data;
    *bytes = 0;
    return piece == *(int *)user ? GNOMON_ERROR_IO : GNOMON_OK;
}

static gnomon_status take_any(void *user, int64_t piece, const void *data, int64_t bytes)
{
    (void)user;
    (void)piece;
    (void)data;
    (void)bytes;
    return GNOMON_OK;
}

static void deal_silently(rank_run *r)
{
    int64_t a, b;
    gnomon_comm_share(r->ctx, &r->comm, -1, &a, &b);
    r->status = gnomon_comm_deal(r->ctx, &r->comm, fail_silently, take_any, r->arg);
}

/* A function without a text is told by its status, and not by an earlier failure. */
static void test_deal_without_text(void **state)
{
    (void)state;
    rank_run runs[MOST_RANKS];
    for (int bad = 0; bad < 3; bad++) {
        char who[64];
        snprintf(who, sizeof who, "rank %d: %s", bad, gnomon_status_name(GNOMON_ERROR_IO));
        run_ranks(3, deal_silently, &bad, runs);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(runs[i].status, GNOMON_ERROR_IO);
            assert_string_equal(runs[i].text, i == bad ? strchr(who, ':') + 2 : who);
        }
    }
}

/* One rank gives no function: the others must not wait for it. */
static void deal_nothing(rank_run *r)
{
    const int bad = *(const int *)r->arg;
    enum { ANY = 7 };
    int any = ANY;
    r->status = gnomon_comm_deal(r->ctx, &r->comm, r->comm.rank == bad ? NULL : fail_silently,
                                 take_any, &any);
}

static void take_nothing(rank_run *r)
{
    int any = 7;
    r->status = gnomon_comm_deal(r->ctx, &r->comm, fail_silently, NULL, &any);
}

static void test_deal_refused(void **state)
{
    (void)state;
    rank_run runs[MOST_RANKS];
    char said[64];
    for (int bad = 0; bad < 4; bad++) {
        run_ranks(4, bad < 3 ? deal_nothing : take_nothing, &bad, runs);
        const int rank = bad < 3 ? bad : 0;
        snprintf(said, sizeof said, "rank %d: ", rank);
        for (int i = 0; i < 4; i++) {
            assert_int_equal(runs[i].status, GNOMON_ERROR_ARGUMENT);
            assert_true(i == rank || strncmp(runs[i].text, said, strlen(said)) == 0);
            assert_non_null(strstr(runs[i].text, bad < 3 ? "make" : "take"));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_engine),
                                       cmocka_unit_test(test_abort),
                                       cmocka_unit_test(test_share),
                                       cmocka_unit_test(test_agree),
                                       cmocka_unit_test(test_differ),
                                       cmocka_unit_test(test_damage),
                                       cmocka_unit_test(test_deal),
                                       cmocka_unit_test(test_deal_failure),
                                       cmocka_unit_test(test_deal_without_text),
                                       cmocka_unit_test(test_deal_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

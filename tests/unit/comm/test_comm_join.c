/* A join whose rows are divided among ranks gives the pairs of one join, in the same order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <math.h>

#include "comm_testing.h"
#include "refusal.h"

#include <gnomon/join.h>

/* MOST: rows of the largest join, whose tiles have more pairs than go into a message */
enum { ROWS = 173, OTHERS = 61, COLS = 5, MOST = 800 };

typedef struct kept {
    gnomon_pair *pairs;
    int64_t count, room;
    int64_t batches, rows_done, end_after; /* end_after > 0: the sink's own failure */
} kept;

/* How the points are given. */
typedef enum form { DENSE, SPARSE, MIXED, READ, READ_SPARSE, FORMS } form;

typedef struct job {
    float p[MOST * COLS], q[OTHERS * COLS];
    uint8_t p_bits[MOST * COLS], q_bits[OTHERS * COLS];
    int64_t p_offsets[MOST + 1], q_offsets[OTHERS + 1], p_indices[MOST * COLS],
        q_indices[OTHERS * COLS];
    float p_values[MOST * COLS], q_values[OTHERS * COLS];
    int64_t rows, others;
    bool self, counted, with_counts;
    form form;
    gnomon_join_options options;
    int64_t memory;
    int way, odd; /* of failures: what fails, and the rank */
    long at;      /* the allocation that is refused */
    /* of rank 0, and of the plain call */
    kept all, whole;
    gnomon_join_result result, due;
    int64_t p_counts[ROWS], q_counts[OTHERS], p_due[ROWS], q_due[OTHERS];
} job;

static int keep(void *user, const gnomon_join_batch *batch)
{
    kept *k = user;
    k->batches++;
    if (k->end_after > 0 && k->batches >= k->end_after) return 1;
    if (k->count + batch->count > k->room) {
        k->room = 2 * (k->count + batch->count) + 64;
        k->pairs = realloc(k->pairs, (size_t)k->room * sizeof *k->pairs);
    }
    if (batch->count > 0)
        memcpy(k->pairs + k->count, batch->pairs, (size_t)batch->count * sizeof *k->pairs);
    k->count += batch->count;
    assert_true(batch->rows_done >= k->rows_done);
    k->rows_done = batch->rows_done;
    return 0;
}

/* Few different coordinates: many distances are equal. */
static void make(float *to, uint8_t *bits, int64_t rows, int64_t *offsets, int64_t *indices,
                 float *values)
{
    offsets[0] = 0;
    for (int64_t i = 0; i < rows; i++) {
        int64_t at = offsets[i];
        for (int64_t j = 0; j < COLS; j++) {
            const float x = (float)(next_random() % 3);
            to[i * COLS + j] = x;
            bits[i * COLS + j] = (uint8_t)(next_random() & 0x11);
            if (x != 0) {
                indices[at] = j;
                values[at++] = x;
            }
        }
        offsets[i + 1] = at;
    }
}

static gnomon_status read_rows(void *user, int64_t first, const gnomon_matrix *to)
{
    const float *from = user;
    memcpy(to->data, from + first * COLS, (size_t)(to->rows * COLS) * sizeof *from);
    return GNOMON_OK;
}

static gnomon_status read_sparse(void *user, int64_t first, int64_t count, gnomon_csr *to)
{
    *to = *(const gnomon_csr *)user;
    to->offsets += first;
    to->indices += to->offsets[0];
    to->values = (const float *)to->values + to->offsets[0];
    to->rows = count;
    return GNOMON_OK;
}

static gnomon_status join(gnomon_context *ctx, const job *j, const gnomon_join_options *o,
                          gnomon_join_result *result)
{
    const bool bits = o->metric == GNOMON_HAMMING;
    const gnomon_dtype type = bits ? GNOMON_U8 : GNOMON_F32;
    const gnomon_matrix p = gnomon_matrix_rowmajor(bits ? (void *)j->p_bits : (void *)j->p, type,
                                                   j->rows, COLS),
                        q = gnomon_matrix_rowmajor(bits ? (void *)j->q_bits : (void *)j->q, type,
                                                   j->others, COLS);
    gnomon_csr p_rows = {j->rows, COLS, j->p_offsets, j->p_indices, j->p_values, GNOMON_F32},
               q_rows = {j->others, COLS, j->q_offsets, j->q_indices, j->q_values, GNOMON_F32};
    const gnomon_join_side dense = {&p, NULL}, sparse = {NULL, &q_rows};
    const gnomon_join_points p_read = {(void *)j->p, j->rows, COLS, GNOMON_F32, read_rows},
                             q_read = {(void *)j->q, j->others, COLS, GNOMON_F32, read_rows};
    const gnomon_join_rows p_from = {&p_rows, j->rows, COLS, j->p_offsets, read_sparse},
                           q_from = {&q_rows, j->others, COLS, j->q_offsets, read_sparse};
    switch (j->form) {
    case SPARSE:
        return gnomon_join_csr(ctx, &p_rows, j->self ? NULL : &q_rows, o, result);
    case MIXED:
        return gnomon_join_sides(ctx, &dense, j->self ? NULL : &sparse, o, result);
    case READ:
        return gnomon_join_stream(ctx, &p_read, j->self ? NULL : &q_read, o, result);
    case READ_SPARSE:
        return gnomon_join_stream_csr(ctx, &p_from, j->self ? NULL : &q_from, o, result);
    case DENSE:
    case FORMS:
        break;
    }
    return gnomon_join(ctx, &p, j->self ? NULL : &q, o, result);
}

/* A context of a rank, with little memory or one that fails. */
static gnomon_context *context_of(const rank_run *r, const job *j,
                                  const gnomon_allocator *allocator)
{
    gnomon_context_options c = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context *ctx = NULL;
    c.threads = 1 + r->comm.rank % 2;
    c.device = "cpu";
    c.memory_limit = j->memory;
    c.allocator = allocator;
    assert_int_equal(gnomon_context_create(&c, &ctx), GNOMON_OK);
    return ctx;
}

/* Listens to what a rank sends and hears: it must be told of another meeting with the last part of
 * a tile that it sends to the one before, so that it leaves none out and holds none twice. */
typedef struct listener {
    gnomon_comm to;
    int64_t size, tile, last; /* of the part that was sent last */
    int64_t meeting;
    uint32_t kind;       /* of the message that is under way */
    int64_t sent, heard; /* bytes that are to come of it */
    bool late, early;    /* what was wrong */
} listener;

enum { HEADER = 48, OF_KIND = 12, OF_BYTES = 24, ANSWER = 4, PAIRS = 8, PARTS = 5 };

static void read_header(const void *data, uint32_t *kind, int64_t *bytes)
{
    memcpy(kind, (const char *)data + OF_KIND, sizeof *kind);
    memcpy(bytes, (const char *)data + OF_BYTES, sizeof *bytes);
}

static gnomon_status send_heard(void *user, int to, const void *data, int64_t bytes)
{
    listener *l = user;
    int64_t part[PARTS];
    if (l->sent == 0) {
        read_header(data, &l->kind, &l->sent);
    } else {
        l->sent = 0;
        if (l->kind == PAIRS) {
            memcpy(part, data, sizeof part);
            l->tile = part[0];
            l->last = part[4];
        }
    }
    return l->to.send(l->to.user, to, data, bytes);
}

static gnomon_status receive_heard(void *user, int from, void *data, int64_t bytes)
{
    listener *l = user;
    int64_t answer[2];
    const gnomon_status status = l->to.receive(l->to.user, from, data, bytes);
    if (status != GNOMON_OK) return status;
    if (l->heard == 0) {
        read_header(data, &l->kind, &l->heard);
        return GNOMON_OK;
    }
    l->heard = 0;
    if (l->kind != ANSWER || bytes != (int64_t)sizeof answer) return GNOMON_OK;
    memcpy(answer, data, sizeof answer);
    const bool met = l->last != 0 && l->tile / l->size + 1 >= l->meeting;
    if (answer[0] != 0 && met) l->late |= answer[1] <= l->meeting;
    if (answer[0] != 0 && !met) l->early |= answer[1] != l->meeting;
    l->meeting = answer[1];
    return GNOMON_OK;
}

static const char *reason_heard(void *user)
{
    const listener *l = user;
    return l->to.reason(l->to.user);
}

static void abort_heard(void *user, int code)
{
    const listener *l = user;
    l->to.abort(l->to.user, code);
}

static gnomon_comm listen_to(listener *l, const rank_run *r, const gnomon_join_options *o)
{
    gnomon_comm comm = r->comm;
    *l = (listener){.to = r->comm, .size = r->comm.size, .meeting = o->max_pairs > 0 ? 1 : 2};
    comm.user = l;
    comm.send = send_heard;
    comm.receive = receive_heard;
    comm.reason = reason_heard;
    comm.abort = abort_heard;
    return comm;
}

static void join_part(rank_run *r)
{
    job *j = r->arg;
    gnomon_context *ctx = context_of(r, j, NULL);
    gnomon_join_options o = j->options;
    listener heard;
    const gnomon_comm comm = listen_to(&heard, r, &o);
    gnomon_join_result result = {.struct_size = sizeof result};
    kept none = {0};
    int64_t counts[ROWS] = {0}, others[OTHERS] = {0};
    const bool first = r->comm.rank == 0;
    o.comm = first ? &r->comm : &comm;
    if (!j->counted) {
        o.sink = keep;
        o.user = first ? &j->all : &none;
    }
    if (j->with_counts) {
        o.p_counts = first ? j->p_counts : counts;
        o.q_counts = j->self ? NULL : first ? j->q_counts : others;
    }
    r->status = join(ctx, j, &o, &result);
    if (first) j->result = result;
    /* the pairs are rank 0's */
    if (none.batches > 0 || counts[0] != 0) r->status = GNOMON_ERROR_INTERNAL;
    if (heard.late || heard.early) r->status = GNOMON_ERROR_COMM;
    free(none.pairs);
    snprintf(r->text, sizeof r->text, "%s", gnomon_last_error(ctx));
    gnomon_context_destroy(ctx);
}

static void check_same(const job *j)
{
    assert_int_equal(j->result.pairs, j->due.pairs);
    assert_int_equal(j->result.complete, j->due.complete);
    assert_int_equal(j->result.method, j->due.method);
    if (j->options.max_pairs == 0) assert_int_equal(j->result.rows_done, j->due.rows_done);
    assert_int_equal(j->all.count, j->whole.count);
    if (j->whole.count > 0)
        assert_memory_equal(j->all.pairs, j->whole.pairs,
                            (size_t)j->whole.count * sizeof(gnomon_pair));
    assert_memory_equal(j->p_counts, j->p_due, sizeof j->p_due);
    assert_memory_equal(j->q_counts, j->q_due, sizeof j->q_due);
}

static void try_job(gnomon_context *ctx, job *j)
{
    rank_run runs[MOST_RANKS];
    gnomon_join_options o = j->options;
    j->whole.count = j->whole.rows_done = j->whole.batches = 0;
    j->due = (gnomon_join_result){.struct_size = sizeof j->due};
    memset(j->p_due, 0, sizeof j->p_due);
    memset(j->q_due, 0, sizeof j->q_due);
    if (!j->counted) {
        o.sink = keep;
        o.user = &j->whole;
    }
    if (j->with_counts) {
        o.p_counts = j->p_due;
        o.q_counts = j->self ? NULL : j->q_due;
    }
    assert_int_equal(join(ctx, j, &o, &j->due), GNOMON_OK);
    for (int size = 1; size <= 5; size++) {
        j->all.count = j->all.rows_done = j->all.batches = 0;
        memset(j->p_counts, 0, sizeof j->p_counts);
        memset(j->q_counts, 0, sizeof j->q_counts);
        run_ranks(size, join_part, j, runs);
        for (int i = 0; i < size; i++)
            assert_int_equal(runs[i].status, GNOMON_OK);
        check_same(j);
    }
}

static void drop(job *j)
{
    free(j->all.pairs);
    free(j->whole.pairs);
    memset(j, 0, sizeof *j);
}

static void make_job(job *j, int64_t rows, int64_t others)
{
    j->rows = rows;
    j->others = others;
    make(j->p, j->p_bits, rows, j->p_offsets, j->p_indices, j->p_values);
    make(j->q, j->q_bits, others, j->q_offsets, j->q_indices, j->q_values);
    j->options = (gnomon_join_options)GNOMON_JOIN_OPTIONS_INIT;
}

static const struct {
    gnomon_metric metric;
    double threshold;
    unsigned forms; /* a bit each */
} metrics[] = {
    {GNOMON_L2, 1.5, 1u << DENSE | 1u << SPARSE | 1u << MIXED | 1u << READ | 1u << READ_SPARSE},
    {GNOMON_COSINE, 0.2, 1u << DENSE | 1u << SPARSE | 1u << READ_SPARSE},
    {GNOMON_IP, 9, 1u << DENSE | 1u << SPARSE | 1u << READ},
    {GNOMON_L1, 2, 1u << DENSE | 1u << SPARSE},
    {GNOMON_HAMMING, 3, 1u << DENSE},
    {GNOMON_JACCARD, 0.3, 1u << SPARSE},
    {GNOMON_WEIGHTED_JACCARD, 0.3, 1u << DENSE | 1u << SPARSE}};
enum { METRICS = sizeof metrics / sizeof metrics[0] };

static void test_same_pairs(void **state)
{
    (void)state;
    static job j;
    static const int64_t sizes[][2] = {{ROWS, OTHERS}, {7, 3}, {2, 5}, {1, 1}, {0, 4}, {4, 0}};
    gnomon_context *ctx;
    assert_int_equal(gnomon_context_create(NULL, &ctx), GNOMON_OK);
    for (int m = 0; m < METRICS; m++)
        for (int f = 0; f < FORMS; f++)
            for (int size = 0; size < 6; size++) {
                if ((metrics[m].forms >> f & 1) == 0) continue;
                make_job(&j, sizes[size][0], sizes[size][1]);
                j.form = (form)f;
                j.self = (size + m) % 2 == 0;
                j.with_counts = size % 3 == 0;
                j.options.metric = metrics[m].metric;
                j.options.threshold = metrics[m].threshold;
                try_job(ctx, &j);
                j.self = !j.self;
                try_job(ctx, &j);
                drop(&j);
            }
    gnomon_context_destroy(ctx);
}

/* Options that change which pairs are handed out, and how. */
static void test_options(void **state)
{
    (void)state;
    static job j;
    gnomon_context *ctx;
    assert_int_equal(gnomon_context_create(NULL, &ctx), GNOMON_OK);
    for (int way = 0; way < 12; way++) {
        make_job(&j, ROWS, OTHERS);
        j.self = way % 2 == 0;
        j.options.threshold = 1.5;
        if (way / 2 == 0) j.options.first_row = 57;
        if (way / 2 == 1) j.options.max_pairs = 100;
        if (way / 2 == 2) j.options.top = 77;
        if (way / 2 == 3) j.counted = true;
        if (way / 2 == 4) j.options.first_row = ROWS;
        if (way / 2 == 5) {
            j.options.recall = 0.9;
            j.options.method = GNOMON_JOIN_LSH;
            j.options.seed = 5;
        }
        try_job(ctx, &j);
        if (way / 2 == 2) {
            j.options.threshold = INFINITY;
            try_job(ctx, &j);
            j.options.top = ROWS * ROWS;
            try_job(ctx, &j);
        }
        if (way / 2 == 5) assert_int_equal(j.due.method, GNOMON_JOIN_LSH);
        drop(&j);
    }
    gnomon_context_destroy(ctx);
}

/* More pairs than may wait at a rank, and than go into one message. */
static void test_little_memory(void **state)
{
    (void)state;
    static job j;
    gnomon_context *ctx;
    assert_int_equal(gnomon_context_create(NULL, &ctx), GNOMON_OK);
    for (int way = 0; way < 4; way++) {
        make_job(&j, ROWS, OTHERS);
        j.self = way % 2 == 0;
        j.options.threshold = 100; /* all pairs */
        j.memory = way < 2 ? 200000 : 1;
        try_job(ctx, &j);
        j.options.max_pairs = 5000;
        try_job(ctx, &j);
        drop(&j);
    }
    make_job(&j, MOST, OTHERS);
    j.self = true;
    j.options.threshold = 100;
    try_job(ctx, &j);
    drop(&j);
    gnomon_context_destroy(ctx);
}

/* ---- failures ---- */

static int refuse_at_once(void *user, const gnomon_join_batch *batch)
{
    (void)user;
    (void)batch;
    return 1;
}

static void join_badly(rank_run *r)
{
    job *j = r->arg;
    gnomon_context *ctx = context_of(r, j, NULL);
    gnomon_join_options o = j->options;
    kept own = {0};
    job *mine = malloc(sizeof *mine);
    *mine = *j;
    const bool odd = r->comm.rank == j->odd;
    o.comm = &r->comm;
    o.sink = keep;
    o.user = &own;
    if (odd && j->way == 0) mine->p[7 * COLS + 1] = NAN;
    if (odd && j->way == 1) o.threshold = 1.25;
    if (odd && j->way == 2) o.threshold = -1;
    if (odd && j->way == 3) mine->rows--;
    if (j->way == 4 && r->comm.rank == 0) o.sink = refuse_at_once;
    r->status = join(ctx, mine, &o, NULL);
    snprintf(r->text, sizeof r->text, "%s", gnomon_last_error(ctx));
    gnomon_context_destroy(r->ctx); /* whose text is taken down: that of this context */
    r->ctx = ctx;
    free(own.pairs);
    free(mine);
}

static void test_failures(void **state)
{
    (void)state;
    static job j;
    rank_run runs[MOST_RANKS];
    static const struct {
        gnomon_status status;
        const char *text;
    } due[] = {{GNOMON_ERROR_NONFINITE, "NaN or infinity in row 7, column 1"},
               {GNOMON_ERROR_SHAPE, "other points"},
               {GNOMON_ERROR_ARGUMENT, "a distance is not negative"},
               {GNOMON_ERROR_SHAPE, "other points"},
               {GNOMON_ERROR_CANCELLED, "the taker of pairs ended the join"}};
    for (int size = 2; size <= 5; size++)
        for (int way = 0; way < 5; way++)
            for (int odd = 0; odd < size; odd++) {
                make_job(&j, ROWS, OTHERS);
                j.self = way % 2 == 0;
                j.options.threshold = 1.5;
                j.way = way;
                j.odd = way == 4 ? 0 : odd;
                run_ranks(size, join_badly, &j, runs);
                for (int i = 0; i < size; i++) {
                    assert_int_equal(runs[i].status, due[way].status);
                    char rank[32];
                    const char *from = strstr(runs[i].text, "rank ");
                    snprintf(rank, sizeof rank, "rank %d: ", j.odd);
                    if (due[way].status != GNOMON_ERROR_SHAPE) {
                        assert_non_null(strstr(runs[i].text, due[way].text));
                        assert_true(i == j.odd || (from != NULL && strncmp(from, rank, 8) == 0));
                    }
                }
                drop(&j);
            }
}

/* An allocation that a rank is refused: all are told of it, or that rank ends all. */
static void join_without_memory(rank_run *r)
{
    job *j = r->arg;
    refusal refused = {.at = -1};
    const gnomon_allocator allocator = {&refused, refusing, releasing};
    gnomon_join_options o = j->options;
    kept own = {0};
    gnomon_context *ctx = context_of(r, j, &allocator);
    o.comm = &r->comm;
    o.sink = keep;
    o.user = &own;
    refused.calls = 0;
    if (r->comm.rank == j->odd) refused.at = j->at;
    r->status = join(ctx, j, &o, NULL);
    gnomon_context_destroy(ctx);
    assert_int_equal(refused.out, 0);
    free(own.pairs);
}

static void test_memory(void **state)
{
    (void)state;
    enum { SIZE = 3 };
    static job j;
    for (j.odd = 0; j.odd < SIZE; j.odd++) {
        int told = 0, ended = 0;
        make_job(&j, ROWS, OTHERS);
        j.self = true;
        j.options.threshold = 1.5;
        for (j.at = 0;; j.at++) {
            const gnomon_status status = run_refused(SIZE, join_without_memory, &j, j.odd);
            if (status == GNOMON_OK) break;
            told += status == GNOMON_ERROR_MEMORY;
            ended += status == GNOMON_ERROR_COMM;
            assert_true(j.at < 1000);
        }
        assert_true(told > 0 && ended > 0);
    }
    drop(&j);
}

static void join_anew(rank_run *r)
{
    job *j = r->arg;
    if (r->comm.rank == 0) j->all.count = j->all.rows_done = j->all.batches = 0;
    join_part(r);
}

static void test_damage(void **state)
{
    (void)state;
    static job j;
    for (int way = 0; way < 4; way++) {
        make_job(&j, ROWS, OTHERS);
        j.self = way % 2 == 0;
        j.options.threshold = 1.5;
        if (way == 1) j.options.top = 77;
        if (way == 2) j.memory = 1;
        if (way == 3) j.counted = true;
        all_end_by_damage(3, join_anew, &j, 40);
        drop(&j);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_pairs),    cmocka_unit_test(test_options),
        cmocka_unit_test(test_little_memory), cmocka_unit_test(test_failures),
        cmocka_unit_test(test_memory),        cmocka_unit_test(test_damage)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A search whose base is divided among ranks gives the bits of one search. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "comm_testing.h"
#include "refusal.h"

enum { BASE = 101, QUERIES = 13, COLS = 6 };

/* Few different coordinates: many distances are equal, and ids decide. */
typedef struct points {
    float base[BASE * COLS], queries[QUERIES * COLS];
    uint8_t bits[BASE * COLS], query_bits[QUERIES * COLS];
    int64_t offsets[BASE + 1], indices[BASE * COLS];
    float values[BASE * COLS];
    int64_t query_offsets[QUERIES + 1], query_indices[QUERIES * COLS];
    float query_values[QUERIES * COLS];
    uint8_t allowed[BASE / 8 + 1];
} points;

typedef struct job {
    points p;
    gnomon_search_options options;
    bool sparse;
    int cut; /* 0: equal shares; else all rows on this rank, or most */
    gnomon_neighbors whole, divided;
    gnomon_context *ctx;
} job;

static void fill_sparse(const float *dense, int64_t rows, int64_t *offsets, int64_t *indices,
                        float *values)
{
    offsets[0] = 0;
    for (int64_t i = 0; i < rows; i++) {
        int64_t at = offsets[i];
        for (int64_t j = 0; j < COLS; j++)
            if (dense[i * COLS + j] != 0) {
                indices[at] = j;
                values[at++] = dense[i * COLS + j];
            }
        offsets[i + 1] = at;
    }
}

static void make_points(points *p, int levels)
{
    for (int i = 0; i < BASE * COLS; i++) {
        p->base[i] = (float)(next_random() % (unsigned)levels);
        p->bits[i] = (uint8_t)(next_random() & 0x11);
    }
    for (int i = 0; i < QUERIES * COLS; i++) {
        p->queries[i] = (float)(next_random() % (unsigned)levels);
        p->query_bits[i] = (uint8_t)(next_random() & 0x11);
    }
    fill_sparse(p->base, BASE, p->offsets, p->indices, p->values);
    fill_sparse(p->queries, QUERIES, p->query_offsets, p->query_indices, p->query_values);
    memset(p->allowed, 0, sizeof p->allowed);
    for (int i = 0; i < BASE; i++)
        if (next_random() % 3 > 0) p->allowed[i / 8] |= (uint8_t)(1 << i % 8);
}

static gnomon_status create(gnomon_context *ctx, const job *j, gnomon_search **search)
{
    const bool bits = j->options.metric == GNOMON_HAMMING;
    const gnomon_matrix dense =
        bits ? gnomon_matrix_rowmajor((void *)j->p.query_bits, GNOMON_U8, QUERIES, COLS)
             : gnomon_matrix_rowmajor((void *)j->p.queries, GNOMON_F32, QUERIES, COLS);
    const gnomon_csr csr = {QUERIES,           COLS,      j->p.query_offsets, j->p.query_indices,
                            j->p.query_values, GNOMON_F32};
    return j->sparse ? gnomon_search_create_csr(ctx, &csr, &j->options, search)
                     : gnomon_search_create(ctx, &dense, &j->options, search);
}

static gnomon_status add(const job *j, gnomon_search *search, int64_t first, int64_t count)
{
    const bool bits = j->options.metric == GNOMON_HAMMING;
    const gnomon_matrix dense =
        bits ? gnomon_matrix_rowmajor((uint8_t *)j->p.bits + first * COLS, GNOMON_U8, count, COLS)
             : gnomon_matrix_rowmajor((float *)j->p.base + first * COLS, GNOMON_F32, count, COLS);
    const int64_t at = j->p.offsets[first];
    const gnomon_csr csr = {
        count, COLS, j->p.offsets + first, j->p.indices + at, j->p.values + at, GNOMON_F32};
    return j->sparse ? gnomon_search_add_csr(search, &csr) : gnomon_search_add(search, &dense);
}

static void search_part(rank_run *r)
{
    job *j = r->arg;
    gnomon_search *search = NULL;
    gnomon_neighbors found = {.struct_size = sizeof found};
    int64_t first, count;
    r->status = gnomon_comm_share(r->ctx, &r->comm, BASE, &first, &count);
    if (j->cut > 0) { /* a rank has nearly all, another the last row, others none */
        const int owner = j->cut % r->comm.size;
        first = r->comm.rank <= owner ? 0 : BASE - 1;
        count = r->comm.rank == owner ? BASE - (owner + 1 < r->comm.size) : 0;
        if (r->comm.rank == owner + 1) count = 1;
        if (r->comm.rank > owner + 1) first = BASE;
    }
    if (r->status == GNOMON_OK) r->status = create(r->ctx, j, &search);
    if (r->status == GNOMON_OK) r->status = gnomon_search_first_id(search, first);
    for (int64_t done = 0; done < count && r->status == GNOMON_OK;) { /* in pieces */
        const int64_t some = done + 7 < count ? 7 : count - done;
        r->status = add(j, search, first + done, some);
        done += some;
    }
    if (r->status != GNOMON_OK)
        r->comm.abort(r->comm.user, 1);
    else
        r->status = gnomon_comm_neighbors(r->ctx, &r->comm, search, &found);
    if (r->comm.rank == 0 && r->status == GNOMON_OK) {
        /* in memory that outlives the rank's context */
        j->divided = found;
        const size_t n = (size_t)found.offsets[QUERIES];
        j->divided.offsets = malloc((QUERIES + 1) * sizeof(int64_t));
        j->divided.ids = malloc(n * sizeof(int64_t) + 1);
        j->divided.distances = malloc(n * sizeof(double) + 1);
        memcpy(j->divided.offsets, found.offsets, (QUERIES + 1) * sizeof(int64_t));
        if (n > 0) memcpy(j->divided.ids, found.ids, n * sizeof(int64_t));
        if (n > 0) memcpy(j->divided.distances, found.distances, n * sizeof(double));
    } else if (r->status == GNOMON_OK && (found.ids != NULL || found.queries != 0)) {
        r->status = GNOMON_ERROR_INTERNAL; /* answers are rank 0's */
    }
    gnomon_neighbors_free(r->ctx, &found);
    gnomon_search_destroy(search);
}

static void check_same(const job *j)
{
    const gnomon_neighbors *a = &j->whole, *b = &j->divided;
    const size_t n = (size_t)a->offsets[QUERIES];
    assert_int_equal(a->queries, b->queries);
    assert_int_equal(a->k, b->k);
    assert_int_equal(a->base, b->base);
    assert_memory_equal(a->offsets, b->offsets, (QUERIES + 1) * sizeof(int64_t));
    if (n == 0) return;
    assert_memory_equal(a->ids, b->ids, n * sizeof(int64_t));
    assert_memory_equal(a->distances, b->distances, n * sizeof(double));
}

static void try_job(job *j)
{
    rank_run runs[MOST_RANKS];
    gnomon_search *search = NULL;
    j->whole = (gnomon_neighbors){.struct_size = sizeof j->whole};
    assert_int_equal(create(j->ctx, j, &search), GNOMON_OK);
    assert_int_equal(add(j, search, 0, BASE), GNOMON_OK);
    const gnomon_status due = gnomon_search_finish(search, &j->whole);
    for (int size = 1; size <= MOST_RANKS; size += size < 5 ? 1 : 4)
        for (j->cut = 0; j->cut < 3; j->cut++) {
            run_ranks(size, search_part, j, runs);
            for (int i = 0; i < size; i++)
                assert_int_equal(runs[i].status, due);
            if (due != GNOMON_OK) { /* told by rank 0, as of the whole base */
                const char *text = strstr(runs[size - 1].text, "k is");
                assert_non_null(text);
                assert_string_equal(text, gnomon_last_error(j->ctx));
                continue;
            }
            check_same(j);
            free(j->divided.offsets);
            free(j->divided.ids);
            free(j->divided.distances);
        }
    gnomon_neighbors_free(j->ctx, &j->whole);
    gnomon_search_destroy(search);
}

static void test_same_bits(void **state)
{
    (void)state;
    static job j;
    static const struct {
        gnomon_metric metric;
        bool sparse;
        double radius;
    } cases[] = {{GNOMON_L2, false, 3},      {GNOMON_COSINE, false, 0.4},
                 {GNOMON_IP, false, 8},      {GNOMON_L1, false, 5},
                 {GNOMON_HAMMING, false, 4}, {GNOMON_WEIGHTED_JACCARD, false, 0.7},
                 {GNOMON_L2, true, 3},       {GNOMON_IP, true, 8},
                 {GNOMON_COSINE, true, 0.4}, {GNOMON_JACCARD, true, 0.6},
                 {GNOMON_L1, true, 5},       {GNOMON_WEIGHTED_JACCARD, true, 0.7}};
    assert_int_equal(gnomon_context_create(NULL, &j.ctx), GNOMON_OK);
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
        for (int way = 0; way < 6; way++) {
            static const int64_t ks[] = {1, 5, BASE - 1, 0, 0, 40};
            make_points(&j.p, 2 + way % 3);
            j.sparse = cases[c].sparse;
            j.options = (gnomon_search_options)GNOMON_SEARCH_OPTIONS_INIT;
            j.options.metric = cases[c].metric;
            j.options.k = ks[way];
            j.options.radius = ks[way] == 0 ? cases[c].radius : 0;
            if (way == 2 || way == 4) j.options.exclude = 3; /* query i is base point 3 + i */
            if (way == 1 || way >= 4) {
                j.options.filter = j.p.allowed;
                j.options.filter_bits = BASE - 5;
            }
            try_job(&j);
        }
    /* more than there are */
    j.options.k = BASE - 6;
    try_job(&j);
    gnomon_context_destroy(j.ctx);
}

/* A rank that fails, or has other options, is named to all. */
static void search_badly(rank_run *r)
{
    const int way = *(const int *)r->arg;
    float data[4 * COLS] = {0};
    gnomon_search_options o = GNOMON_SEARCH_OPTIONS_INIT;
    gnomon_search *search = NULL;
    gnomon_neighbors found = {.struct_size = sizeof found};
    const bool odd = r->comm.rank == 2;
    const gnomon_matrix rows = gnomon_matrix_rowmajor(data, GNOMON_F32, 4, COLS);
    o.k = way == 0 && odd ? 2 : 1;
    r->status = gnomon_search_create(r->ctx, &rows, &o, &search);
    if (r->status == GNOMON_OK) r->status = gnomon_search_add(search, &rows);
    if (way == 1 && odd) gnomon_search_finish(search, &found);
    gnomon_neighbors_free(r->ctx, &found);
    if (r->status == GNOMON_OK) r->status = gnomon_comm_neighbors(r->ctx, &r->comm, search, &found);
    gnomon_neighbors_free(r->ctx, &found);
    gnomon_search_destroy(search);
}

static void test_failures(void **state)
{
    (void)state;
    rank_run runs[MOST_RANKS];
    int way = 0;
    for (int size = 3; size <= 7; size++) {
        way = 0;
        run_ranks(size, search_badly, &way, runs);
        for (int i = 0; i < size; i++) {
            assert_int_equal(runs[i].status, GNOMON_ERROR_SHAPE);
            assert_non_null(strstr(runs[i].text, "searches other queries, or by other options"));
        }
        way = 1;
        run_ranks(size, search_badly, &way, runs);
        for (int i = 0; i < size; i++) {
            assert_int_equal(runs[i].status, GNOMON_ERROR_ARGUMENT);
            assert_non_null(strstr(runs[i].text, i == 2 ? "has handed out"
                                                        : "rank 2: the search has handed out"));
        }
    }
}

/* An allocation that a rank is refused: all are told of it, or that rank ends all. */
static void search_without_memory(rank_run *r)
{
    const int64_t *way = r->arg; /* the rank, and which of its allocations */
    static float data[4 * COLS];
    refusal refused = {.at = -1};
    const gnomon_allocator allocator = {&refused, refusing, releasing};
    gnomon_context_options c = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_search_options o = GNOMON_SEARCH_OPTIONS_INIT;
    gnomon_search *search = NULL;
    gnomon_neighbors found = {.struct_size = sizeof found};
    gnomon_context *ctx;
    const gnomon_matrix rows = gnomon_matrix_rowmajor(data, GNOMON_F32, 4, COLS);
    c.threads = 1;
    c.device = "cpu";
    c.allocator = &allocator;
    o.k = 1;
    r->status = gnomon_context_create(&c, &ctx);
    if (r->status == GNOMON_OK) r->status = gnomon_search_create(ctx, &rows, &o, &search);
    if (r->status == GNOMON_OK) r->status = gnomon_search_add(search, &rows);
    if (r->status == GNOMON_OK) {
        refused.calls = 0;
        if (r->comm.rank == way[0]) refused.at = way[1];
        r->status = gnomon_comm_neighbors(ctx, &r->comm, search, &found);
    }
    gnomon_neighbors_free(ctx, &found);
    gnomon_search_destroy(search);
    gnomon_context_destroy(ctx);
}

static void test_memory(void **state)
{
    (void)state;
    enum { SIZE = 4 };
    for (int64_t rank = 0; rank < SIZE; rank++) {
        int told = 0, ended = 0;
        for (int64_t way[2] = {rank, 0};; way[1]++) {
            const gnomon_status status = run_refused(SIZE, search_without_memory, way, (int)rank);
            if (status == GNOMON_OK) break;
            told += status == GNOMON_ERROR_MEMORY;
            ended += status == GNOMON_ERROR_COMM;
            assert_true(way[1] < 1000);
        }
        assert_true(told > 0 && ended > 0);
    }
}

/* One rank has no search: the others must not wait for it. */
static void search_nothing(rank_run *r)
{
    const int bad = *(const int *)r->arg;
    float data[4 * COLS] = {0};
    const gnomon_matrix rows = gnomon_matrix_rowmajor(data, GNOMON_F32, 4, COLS);
    gnomon_neighbors found = {.struct_size = sizeof found};
    gnomon_search_options o = GNOMON_SEARCH_OPTIONS_INIT;
    gnomon_search *s = NULL;
    o.k = 2;
    assert_int_equal(gnomon_search_create(r->ctx, &rows, &o, &s), GNOMON_OK);
    assert_int_equal(gnomon_search_first_id(s, 4 * r->comm.rank), GNOMON_OK);
    assert_int_equal(gnomon_search_add(s, &rows), GNOMON_OK);
    r->status = gnomon_comm_neighbors(r->ctx, &r->comm, r->comm.rank == bad ? NULL : s, &found);
    gnomon_neighbors_free(r->ctx, &found);
    gnomon_search_destroy(s);
}

static void test_refused(void **state)
{
    (void)state;
    rank_run runs[MOST_RANKS];
    char said[64];
    for (int bad = 0; bad < 5; bad++) {
        run_ranks(5, search_nothing, &bad, runs);
        snprintf(said, sizeof said, "rank %d: ", bad);
        for (int i = 0; i < 5; i++) {
            assert_int_equal(runs[i].status, GNOMON_ERROR_ARGUMENT);
            assert_true(i == bad || strncmp(runs[i].text, said, strlen(said)) == 0);
        }
    }
}

static void test_first_id(void **state)
{
    (void)state;
    gnomon_context *ctx;
    gnomon_search *s = NULL;
    float data[4 * COLS] = {0};
    const gnomon_matrix rows = gnomon_matrix_rowmajor(data, GNOMON_F32, 4, COLS);
    gnomon_search_options o = GNOMON_SEARCH_OPTIONS_INIT;
    gnomon_neighbors found = {.struct_size = sizeof found};
    o.k = 2;
    assert_int_equal(gnomon_context_create(NULL, &ctx), GNOMON_OK);
    assert_int_equal(gnomon_search_create(ctx, &rows, &o, &s), GNOMON_OK);
    assert_int_equal(gnomon_search_first_id(s, -1), GNOMON_ERROR_ARGUMENT);
    assert_int_equal(gnomon_search_first_id(s, 1000), GNOMON_OK);
    assert_int_equal(gnomon_search_first_id(s, INT64_MAX), GNOMON_OK);
    assert_int_equal(gnomon_search_add(s, &rows), GNOMON_ERROR_OVERFLOW);
    assert_int_equal(gnomon_search_first_id(s, 70), GNOMON_OK);
    assert_int_equal(gnomon_search_add(s, &rows), GNOMON_OK);
    assert_int_equal(gnomon_search_first_id(s, 70), GNOMON_ERROR_ARGUMENT);
    assert_int_equal(gnomon_search_finish(s, &found), GNOMON_OK);
    assert_int_equal(found.ids[0], 70);
    assert_int_equal(found.ids[1], 71);
    assert_int_equal(found.base, 4);
    gnomon_neighbors_free(ctx, &found);
    gnomon_search_destroy(s);
    gnomon_context_destroy(ctx);
}

static void search_and_forget(rank_run *r)
{
    job *j = r->arg;
    search_part(r);
    if (r->comm.rank > 0 || r->status != GNOMON_OK) return;
    free(j->divided.offsets);
    free(j->divided.ids);
    free(j->divided.distances);
}

static void test_damage(void **state)
{
    (void)state;
    static job j;
    make_points(&j.p, 3);
    j.options = (gnomon_search_options)GNOMON_SEARCH_OPTIONS_INIT;
    j.options.k = 5;
    for (int size = 2; size < 6; size++)
        all_end_by_damage(size, search_and_forget, &j, 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits), cmocka_unit_test(test_failures),
        cmocka_unit_test(test_memory),    cmocka_unit_test(test_refused),
        cmocka_unit_test(test_first_id),  cmocka_unit_test(test_damage)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

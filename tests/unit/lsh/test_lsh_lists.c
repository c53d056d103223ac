/* Inverted lists that batches of queries keep packed in an index: the same answers with and
 * without, counted where the index's memory is told, dropped by changes, none where memory does not
 * allow it, and made by several threads at once. */
#include "lsh/index.h"
#include "miser.h"
#include "project.h"

#include <pthread.h>
#include <unistd.h>

static gnomon_context *ctx;

static int open_context(void **state)
{
    (void)state;
    ctx = make_context(2, 0);
    return 0;
}

static int close_context(void **state)
{
    (void)state;
    gnomon_context_destroy(ctx);
    return 0;
}

/* Enough for the filter to take coordinates of few bits. */
enum { N = 6000, Q = 500, D = 64, CENTRES = 40, K = 5, PROBES = 7, MORE = 90 };

typedef struct data {
    float x[N * D], more[MORE * D], queries[Q * D], centres[CENTRES * D];
    uint8_t all[(N + MORE + 7) / 8];
    gnomon_matrix base, added, asked;
    gnomon_metric metric;
} data;

static data *make_data(uint64_t seed, gnomon_metric metric)
{
    data *d = calloc(1, sizeof *d);
    assert_non_null(d);
    for (int i = 0; i < CENTRES * D; i++)
        d->centres[i] = (float)next_uniform(&seed);
    for (int i = 0; i < (N + MORE + Q) * D; i++) {
        const int row = i / D, from = row % CENTRES * D + i % D;
        float *to = row < N          ? &d->x[i]
                    : row < N + MORE ? &d->more[i - N * D]
                                     : &d->queries[i - (N + MORE) * D];
        *to = d->centres[from] + 0.3F * (float)next_uniform(&seed);
    }
    memset(d->all, 0xFF, sizeof d->all);
    d->base = gnomon_matrix_rowmajor(d->x, GNOMON_F32, N, D);
    d->added = gnomon_matrix_rowmajor(d->more, GNOMON_F32, MORE, D);
    d->asked = gnomon_matrix_rowmajor(d->queries, GNOMON_F32, Q, D);
    d->metric = metric;
    return d;
}

static gnomon_lsh *make_index(gnomon_context *with, const data *d, int64_t memory)
{
    gnomon_lsh_options o = GNOMON_LSH_OPTIONS_INIT;
    gnomon_lsh *index;
    o.metric = d->metric;
    o.functions.family = d->metric == GNOMON_L2 ? GNOMON_LSH_KMEANS : GNOMON_LSH_SPHERICAL_KMEANS;
    o.functions.dim = D;
    o.functions.centre_count = CENTRES;
    o.functions.centres = d->centres;
    o.tables = o.coarse = 1;
    o.memory = memory;
    o.search_params.probes = PROBES;
    ASSERT_OK(with, gnomon_lsh_create(with, &o, &index));
    ASSERT_OK(with, gnomon_lsh_add(index, &d->base));
    return index;
}

static int64_t bytes_of(const gnomon_lsh *index)
{
    gnomon_lsh_info info = {.struct_size = sizeof info};
    gnomon_lsh_describe(index, &info);
    return info.table_bytes + info.code_bytes + info.other_bytes;
}

typedef struct answers {
    int64_t ids[Q * K];
    double distances[Q * K];
} answers;

/* 'filter': all points, by a filter, with which nothing is kept. */
static void ask(gnomon_context *with, const data *d, const gnomon_lsh *index, bool filter,
                answers *out)
{
    gnomon_search_options s = GNOMON_SEARCH_OPTIONS_INIT;
    gnomon_neighbors found = {.struct_size = sizeof found};
    gnomon_lsh_work work = {.struct_size = sizeof work};
    s.metric = d->metric;
    s.k = K;
    if (filter) {
        s.filter = d->all;
        s.filter_bits = N + MORE;
    }
    ASSERT_OK(with, gnomon_lsh_query(with, index, &d->asked, &s, NULL, &found, &work));
    assert_int_equal(work.exact, 0);
    memcpy(out->ids, found.ids, sizeof out->ids);
    memcpy(out->distances, found.distances, sizeof out->distances);
    gnomon_neighbors_free(with, &found);
}

static void assert_same(const answers *a, const answers *b)
{
    assert_memory_equal(a->ids, b->ids, sizeof a->ids);
    assert_memory_equal(a->distances, b->distances, sizeof a->distances);
}

/* Without anything kept, of an index of its own: the bits that the others must have. */
static void ask_anew(const data *d, const gnomon_lsh *index, answers *out)
{
    const int64_t before = bytes_of(index);
    ask(ctx, d, index, true, out);
    assert_int_equal(bytes_of(index), before);
}

/* The index keeps lists now, of a byte or two a coordinate. */
static void assert_kept(const gnomon_lsh *index, int64_t without)
{
    const int64_t kept = bytes_of(index) - without;
    assert_true(kept > (int64_t)N * D);
    assert_true(kept < (int64_t)N * D * 3);
}

static void kept_until_a_change(void **state)
{
    (void)state;
    answers wanted, found;
    for (int m = 0; m < 2; m++) {
        data *d = make_data(3, m == 0 ? GNOMON_L2 : GNOMON_COSINE);
        gnomon_lsh *index = make_index(ctx, d, 0);
        int64_t without = bytes_of(index);
        ask_anew(d, index, &wanted);
        for (int i = 0; i < 3; i++) {
            ask(ctx, d, index, false, &found);
            assert_same(&found, &wanted);
            assert_kept(index, without);
        }
        ask_anew(d, index, &found); /* beside what is kept */
        assert_same(&found, &wanted);
        /* a point that many find is removed, and no longer found */
        const int64_t gone = wanted.ids[0];
        ASSERT_OK(ctx, gnomon_lsh_remove(index, &gone, 1));
        without += (N + 7) / 8;
        assert_int_equal(bytes_of(index), without);
        ask_anew(d, index, &wanted);
        for (int i = 0; i < Q * K; i++)
            assert_true(wanted.ids[i] != gone);
        ask(ctx, d, index, false, &found);
        assert_same(&found, &wanted);
        assert_kept(index, without);
        ASSERT_OK(ctx, gnomon_lsh_compact(index));
        ask(ctx, d, index, false, &found);
        assert_same(&found, &wanted);
        /* added ones are found */
        ASSERT_OK(ctx, gnomon_lsh_add(index, &d->added));
        without = bytes_of(index);
        ask_anew(d, index, &wanted);
        int64_t later = 0;
        for (int i = 0; i < Q * K; i++)
            later += wanted.ids[i] >= N;
        assert_true(later > 0);
        for (int i = 0; i < 2; i++) {
            ask(ctx, d, index, false, &found);
            assert_same(&found, &wanted);
            assert_kept(index, without);
        }
        /* and when all of them are removed, lists hold none of that block */
        for (int64_t i = N; i < N + MORE; i++)
            ASSERT_OK(ctx, gnomon_lsh_remove(index, &i, 1));
        ask_anew(d, index, &wanted);
        ask(ctx, d, index, false, &found);
        assert_same(&found, &wanted);
        gnomon_lsh_destroy(index);
        free(d);
    }
}

/* One's own point is left out also of lists that are kept. */
static void without_oneself(void **state)
{
    (void)state;
    data *d = make_data(4, GNOMON_L2);
    gnomon_lsh *index = make_index(ctx, d, 0);
    gnomon_search_options s = GNOMON_SEARCH_OPTIONS_INIT;
    gnomon_neighbors found[3];
    const gnomon_matrix own = gnomon_matrix_rowmajor(d->x + 100 * D, GNOMON_F32, Q, D);
    s.k = K;
    s.exclude = 100;
    for (int i = 0; i < 3; i++) {
        found[i] = (gnomon_neighbors){.struct_size = sizeof *found};
        s.filter = i == 0 ? d->all : NULL;
        s.filter_bits = i == 0 ? N : 0;
        ASSERT_OK(ctx, gnomon_lsh_query(ctx, index, &own, &s, NULL, &found[i], NULL));
        for (int64_t j = 0; j < Q * K; j++)
            assert_true(found[i].ids[j] != 100 + j / K);
        assert_memory_equal(found[i].ids, found[0].ids, Q * K * sizeof *found->ids);
        assert_memory_equal(found[i].distances, found[0].distances,
                            Q * K * sizeof *found->distances);
    }
    for (int i = 0; i < 3; i++)
        gnomon_neighbors_free(ctx, &found[i]);
    gnomon_lsh_destroy(index);
    free(d);
}

/* Where the index's memory, the context's limit or its allocator do not allow it. */
static void not_kept(void **state)
{
    (void)state;
    answers wanted, found;
    data *d = make_data(5, GNOMON_L2);
    gnomon_lsh *index = make_index(ctx, d, 0);
    const int64_t without = bytes_of(index);
    ask(ctx, d, index, false, &wanted);
    const int64_t with = bytes_of(index);
    gnomon_lsh_destroy(index);
    for (int enough = 0; enough < 2; enough++) {
        index = make_index(ctx, d, enough ? with : with - 1);
        for (int i = 0; i < 2; i++) {
            ask(ctx, d, index, false, &found);
            assert_same(&found, &wanted);
            assert_int_equal(bytes_of(index), enough ? with : without);
        }
        gnomon_lsh_destroy(index);
    }
    gnomon_context *poor = make_context(2, 8 * (with - without) - 8);
    index = make_index(ctx, d, 0);
    ask(poor, d, index, false, &found);
    assert_same(&found, &wanted);
    assert_int_equal(bytes_of(index), without);
    ask(ctx, d, index, false, &found);
    assert_int_equal(bytes_of(index), with);
    ask(poor, d, index, false, &found); /* what is there serves it too */
    assert_same(&found, &wanted);
    gnomon_lsh_destroy(index);
    gnomon_context_destroy(poor);
    /* the index's context refuses, and the query's does not */
    for (int left = 0; left < 3; left++) {
        misers m = {.left = INT64_MAX};
        const gnomon_allocator a = {&m, miser_allocate, miser_release};
        gnomon_context_options c = GNOMON_CONTEXT_OPTIONS_INIT;
        c.allocator = &a;
        c.device = "cpu";
        ASSERT_OK(ctx, gnomon_context_create(&c, &poor));
        index = make_index(poor, d, 0);
        const int64_t out = m.out;
        m.left = left;
        ask(ctx, d, index, false, &found);
        assert_same(&found, &wanted);
        assert_int_equal(bytes_of(index), left < 2 ? without : with); /* two blocks */
        assert_int_equal(m.out, left < 2 ? out : out + 2);
        gnomon_lsh_destroy(index);
        gnomon_context_destroy(poor);
        assert_int_equal(m.out, 0);
    }
    free(d);
}

/* What one level keeps is not another's. */
static void levels(void **state)
{
    (void)state;
    static const char *const names[] = {"portable", "avx2", "avx512", "avx512_vnni", "amx"};
    answers wanted, found;
    data *d = make_data(6, GNOMON_COSINE);
    gnomon_lsh *first = make_index(ctx, d, 0);
    ask(ctx, d, first, false, &wanted);
    for (int i = 0; i < 5; i++) {
        gnomon_context *other;
        gnomon_context_options c = GNOMON_CONTEXT_OPTIONS_INIT;
        const char *given = getenv("GNOMON_ISA");
        char *before = given ? strdup(given) : NULL;
        c.device = "cpu";
        setenv("GNOMON_ISA", names[i], 1);
        const gnomon_status status = gnomon_context_create(&c, &other);
        if (before)
            setenv("GNOMON_ISA", before, 1);
        else
            unsetenv("GNOMON_ISA");
        free(before);
        if (status != GNOMON_OK) continue; /* not this processor's */
        gnomon_lsh *own = make_index(other, d, 0);
        for (int j = 0; j < 2; j++) {
            ask(other, d, first, false, &found);
            assert_same(&found, &wanted);
            ask(other, d, own, false, &found);
            assert_same(&found, &wanted);
            ask(ctx, d, own, false, &found);
            assert_same(&found, &wanted);
        }
        gnomon_lsh_destroy(own);
        gnomon_context_destroy(other);
    }
    gnomon_lsh_destroy(first);
    free(d);
}

static void of_a_file(void **state)
{
    (void)state;
    answers wanted, found;
    char path[] = "/tmp/gnomon-lists-XXXXXX";
    const int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    data *d = make_data(7, GNOMON_L2);
    gnomon_lsh *index = make_index(ctx, d, 0), *opened;
    ask(ctx, d, index, false, &wanted);
    ASSERT_OK(ctx, gnomon_lsh_save(ctx, index, path));
    gnomon_lsh_destroy(index);
    ASSERT_OK(ctx, gnomon_lsh_open(ctx, path, &opened));
    const int64_t without = bytes_of(opened);
    for (int i = 0; i < 2; i++) {
        ask(ctx, d, opened, false, &found);
        assert_same(&found, &wanted);
        assert_kept(opened, without);
    }
    gnomon_lsh_destroy(opened);
    unlink(path);
    free(d);
}

typedef struct asker {
    const data *d;
    const gnomon_lsh *index;
    answers found;
} asker;

static void *ask_twice(void *arg)
{
    asker *a = arg;
    gnomon_context *own = make_context(1, 0);
    for (int i = 0; i < 2; i++)
        ask(own, a->d, a->index, false, &a->found);
    gnomon_context_destroy(own);
    return NULL;
}

/* Threads that ask at once, each with its own context. */
static void of_threads(void **state)
{
    (void)state;
    enum { THREADS = 4, ROUNDS = 2 };
    answers wanted;
    data *d = make_data(8, GNOMON_L2);
    asker *askers = calloc(THREADS, sizeof *askers);
    assert_non_null(askers);
    gnomon_lsh *index = make_index(ctx, d, 0);
    const int64_t without = bytes_of(index);
    ask(ctx, d, index, false, &wanted);
    const int64_t with = bytes_of(index);
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t threads[THREADS];
        ASSERT_OK(ctx, gnomon_lsh_remove(index, &(int64_t){0}, round)); /* drops them */
        for (int t = 0; t < THREADS; t++) {
            askers[t].d = d;
            askers[t].index = index;
            assert_int_equal(pthread_create(&threads[t], NULL, ask_twice, &askers[t]), 0);
        }
        for (int t = 0; t < THREADS; t++)
            assert_int_equal(pthread_join(threads[t], NULL), 0);
        for (int t = 0; t < THREADS; t++)
            assert_same(&askers[t].found, &askers[0].found);
        if (round == 0) assert_same(&askers[0].found, &wanted);
        assert_kept(index, without);
        assert_true(bytes_of(index) <= with + (N + 7) / 8);
    }
    gnomon_lsh_destroy(index);
    free(askers);
    free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(kept_until_a_change),
                                       cmocka_unit_test(without_oneself),
                                       cmocka_unit_test(not_kept),
                                       cmocka_unit_test(levels),
                                       cmocka_unit_test(of_a_file),
                                       cmocka_unit_test(of_threads)};
    return cmocka_run_group_tests(tests, open_context, close_context);
}

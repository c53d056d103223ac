/* Indexes: what queries find, against plain enumeration of points with the same hash values; their
 * life; the same bits whatever the threads, batches and level; every allocation refused in turn. */
#include "lsh/index.h"
#include "miser.h"
#include "project.h"

#include <pthread.h>

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

enum { N = 900, Q = 40, D = 24 };

/* Clusters, with planted near neighbours of the queries. */
typedef struct data {
    float base[N * D], queries[Q * D];
    uint8_t bits[N * D], query_bits[Q * D];
    int64_t offsets[N + Q + 1];
    int64_t members[(N + Q) * 20];
    float ones[(N + Q) * 20];
    gnomon_matrix dense, asked, binary, binary_asked;
    gnomon_csr sets, asked_sets;
} data;

static data *make_data(uint64_t seed)
{
    data *d = malloc(sizeof *d);
    assert_non_null(d);
    float centre[30 * D];
    for (int i = 0; i < 30 * D; i++)
        centre[i] = (float)(4 * next_uniform(&seed));
    for (int i = 0; i < N + Q; i++) {
        float *x = i < N ? d->base + i * D : d->queries + (i - N) * D;
        uint8_t *b = i < N ? d->bits + i * D : d->query_bits + (i - N) * D;
        const int c = (int)(next_random(&seed) % 30);
        for (int j = 0; j < D; j++) {
            x[j] = centre[c * D + j] + (float)next_uniform(&seed);
            b[j] = (uint8_t)(c * 37 + j * 11) ^
                   (uint8_t)(next_random(&seed) & next_random(&seed) & next_random(&seed));
        }
        d->offsets[i] = i * 20;
        for (int j = 0; j < 20; j++) {
            d->members[i * 20 + j] =
                c * 20 + j +
                (next_random(&seed) % 4 == 0 ? 1000 + (int64_t)(next_random(&seed) % 99) : 0);
            d->ones[i * 20 + j] = 1;
        }
    }
    d->offsets[N + Q] = (N + Q) * 20;
    d->dense = gnomon_matrix_rowmajor(d->base, GNOMON_F32, N, D);
    d->asked = gnomon_matrix_rowmajor(d->queries, GNOMON_F32, Q, D);
    d->binary = gnomon_matrix_rowmajor(d->bits, GNOMON_U8, N, D);
    d->binary_asked = gnomon_matrix_rowmajor(d->query_bits, GNOMON_U8, Q, D);
    d->sets = (gnomon_csr){N, 3000, d->offsets, d->members, d->ones, GNOMON_F32};
    d->asked_sets = (gnomon_csr){Q, 3000, d->offsets + N, d->members + N * 20, d->ones, GNOMON_F32};
    return d;
}

static const gnomon_lsh_family families[] = {GNOMON_LSH_PSTABLE, GNOMON_LSH_SIMHASH,
                                             GNOMON_LSH_CROSS_POLYTOPE, GNOMON_LSH_BIT_SAMPLING,
                                             GNOMON_LSH_MINHASH};
enum { FAMILIES = 5 };

static gnomon_metric metric_of(gnomon_lsh_family family)
{
    if (family == GNOMON_LSH_PSTABLE) return GNOMON_L2;
    if (family == GNOMON_LSH_BIT_SAMPLING) return GNOMON_HAMMING;
    return family == GNOMON_LSH_MINHASH ? GNOMON_JACCARD : GNOMON_COSINE;
}

static gnomon_lsh_options options_of(gnomon_lsh_family family)
{
    gnomon_lsh_options o = GNOMON_LSH_OPTIONS_INIT;
    o.metric = metric_of(family);
    o.functions.family = family;
    o.functions.dim = family == GNOMON_LSH_MINHASH ? 3000 : D;
    o.functions.seed = 5;
    o.tables = 6;
    o.coarse = 4;
    if (family == GNOMON_LSH_PSTABLE) o.functions.width = 8;
    if (family == GNOMON_LSH_SIMHASH) o.coarse = 10;
    if (family == GNOMON_LSH_BIT_SAMPLING) o.coarse = 12;
    if (family == GNOMON_LSH_CROSS_POLYTOPE) {
        o.functions.sides = 4;
        o.coarse = 2;
    }
    if (family == GNOMON_LSH_MINHASH) o.coarse = 2;
    return o;
}

static bool is_sparse(const gnomon_lsh_options *o)
{
    return o->metric == GNOMON_JACCARD;
}

static const gnomon_matrix *base_of(const data *d, const gnomon_lsh_options *o)
{
    return o->metric == GNOMON_HAMMING ? &d->binary : &d->dense;
}

static gnomon_lsh *create(gnomon_context *with, const gnomon_lsh_options *o)
{
    gnomon_lsh *index = NULL;
    ASSERT_OK(with, gnomon_lsh_create(with, o, &index));
    return index;
}

static gnomon_lsh *index_of(gnomon_context *with, const data *d, const gnomon_lsh_options *o)
{
    gnomon_lsh *index = create(with, o);
    if (is_sparse(o))
        ASSERT_OK(with, gnomon_lsh_add_csr(index, &d->sets));
    else
        ASSERT_OK(with, gnomon_lsh_add(index, base_of(d, o)));
    return index;
}

static gnomon_search_options by_k(const gnomon_lsh_options *o, int64_t k)
{
    gnomon_search_options s = GNOMON_SEARCH_OPTIONS_INIT;
    s.metric = o->metric;
    s.k = k;
    return s;
}

static gnomon_status ask(gnomon_context *with, const data *d, const gnomon_lsh *index,
                         const gnomon_search_options *s, const gnomon_lsh_search_params *e,
                         gnomon_neighbors *out, gnomon_lsh_work *work)
{
    *out = (gnomon_neighbors){.struct_size = sizeof *out};
    if (s->metric == GNOMON_JACCARD)
        return gnomon_lsh_query_csr(with, index, &d->asked_sets, s, e, out, work);
    const gnomon_matrix *q = s->metric == GNOMON_HAMMING ? &d->binary_asked : &d->asked;
    return gnomon_lsh_query(with, index, q, s, e, out, work);
}

static gnomon_neighbors exactly(const data *d, const gnomon_search_options *s)
{
    gnomon_neighbors out = {.struct_size = sizeof out};
    if (s->metric == GNOMON_JACCARD)
        ASSERT_OK(ctx, gnomon_neighbors_exact_csr(ctx, &d->sets, &d->asked_sets, s, &out));
    else if (s->metric == GNOMON_HAMMING)
        ASSERT_OK(ctx, gnomon_neighbors_exact(ctx, &d->binary, &d->binary_asked, s, &out));
    else
        ASSERT_OK(ctx, gnomon_neighbors_exact(ctx, &d->dense, &d->asked, s, &out));
    return out;
}

static void check_same(const gnomon_neighbors *a, const gnomon_neighbors *b)
{
    assert_int_equal(a->queries, b->queries);
    assert_memory_equal(a->offsets, b->offsets, (size_t)(a->queries + 1) * sizeof *a->offsets);
    const size_t count = (size_t)a->offsets[a->queries];
    if (count == 0) return;
    assert_memory_equal(a->ids, b->ids, count * sizeof *a->ids);
    assert_memory_equal(a->distances, b->distances, count * sizeof *a->distances);
}

static double recall(const gnomon_neighbors *found, const gnomon_neighbors *truth)
{
    int64_t hits = 0;
    for (int64_t q = 0; q < truth->queries; q++)
        for (int64_t i = found->offsets[q]; i < found->offsets[q + 1]; i++)
            for (int64_t j = truth->offsets[q]; j < truth->offsets[q + 1]; j++)
                hits += found->ids[i] == truth->ids[j];
    return (double)hits / (double)truth->offsets[truth->queries];
}

static int32_t *values_of(const gnomon_lsh_options *o, const data *d, bool asked)
{
    gnomon_lsh_functions f = o->functions;
    gnomon_hasher *h;
    f.count = o->tables * (o->coarse + o->fine);
    ASSERT_OK(ctx, gnomon_hasher_create(ctx, &f, &h));
    const int64_t n = asked ? Q : N;
    int32_t *values = malloc((size_t)(n * f.count) * sizeof *values);
    const gnomon_matrix out = gnomon_matrix_rowmajor(values, GNOMON_I32, n, f.count);
    if (is_sparse(o))
        ASSERT_OK(ctx, gnomon_hasher_apply_csr(ctx, h, asked ? &d->asked_sets : &d->sets, &out));
    else if (o->metric == GNOMON_HAMMING)
        ASSERT_OK(ctx, gnomon_hasher_apply(ctx, h, asked ? &d->binary_asked : &d->binary, &out));
    else
        ASSERT_OK(ctx, gnomon_hasher_apply(ctx, h, asked ? &d->asked : &d->dense, &out));
    gnomon_hasher_destroy(h);
    return values;
}

/* A radius query must find exactly the points that agree with the query on the first 'agree'
 * functions of some table and are within the radius. */
static void check_buckets(const data *d, const gnomon_lsh_options *o,
                          const gnomon_lsh_search_params *e, int64_t agree, double radius)
{
    int32_t *base = values_of(o, d, false), *asked = values_of(o, d, true);
    const int64_t depth = o->coarse + o->fine, count = o->tables * depth;
    gnomon_search_options s = by_k(o, 0);
    s.radius = radius;
    gnomon_neighbors truth = exactly(d, &s), found;
    gnomon_lsh *index = index_of(ctx, d, o);
    gnomon_lsh_work work = {.struct_size = sizeof work};
    ASSERT_OK(ctx, ask(ctx, d, index, &s, e, &found, &work));
    int64_t candidates = 0, missed = 0;
    for (int64_t q = 0; q < Q; q++) {
        bool in[N] = {false};
        for (int64_t i = 0; i < N; i++) {
            for (int64_t t = 0; t < o->tables && !in[i]; t++)
                in[i] = memcmp(base + i * count + t * depth, asked + q * count + t * depth,
                               (size_t)agree * sizeof *base) == 0;
            candidates += in[i];
        }
        int64_t at = found.offsets[q];
        for (int64_t i = truth.offsets[q]; i < truth.offsets[q + 1]; i++) {
            if (!in[truth.ids[i]]) {
                missed++;
                continue;
            }
            assert_true(at < found.offsets[q + 1]);
            assert_int_equal(found.ids[at], truth.ids[i]);
            assert_true(found.distances[at] == truth.distances[i]);
            at++;
        }
        assert_int_equal(at, found.offsets[q + 1]);
    }
    assert_int_equal(work.candidates, candidates);
    assert_int_equal(work.verified, candidates);
    assert_true(candidates > Q && missed > 0);
    gnomon_neighbors_free(ctx, &truth);
    gnomon_neighbors_free(ctx, &found);
    gnomon_lsh_destroy(index);
    free(base);
    free(asked);
}

static const double radii[] = {6, 0.3, 0.3, 60, 0.8};

static void queries_find_their_buckets(void **state)
{
    (void)state;
    data *d = make_data(1);
    for (int f = 0; f < FAMILIES; f++) {
        gnomon_lsh_options o = options_of(families[f]);
        check_buckets(d, &o, NULL, o.coarse, radii[f]);
    }
    free(d);
}

static void fine_buckets_grow_to_coarse_ones(void **state)
{
    (void)state;
    data *d = make_data(2);
    for (int f = 0; f < FAMILIES; f++) {
        gnomon_lsh_options o = options_of(families[f]);
        o.fine =
            families[f] == GNOMON_LSH_BIT_SAMPLING || families[f] == GNOMON_LSH_SIMHASH ? 3 : 1;
        gnomon_lsh_search_params e = GNOMON_LSH_SEARCH_PARAMS_INIT;
        check_buckets(d, &o, &e, o.coarse + o.fine, radii[f]);
        e.coarse = o.tables;
        check_buckets(d, &o, &e, o.coarse, radii[f]);
    }
    free(d);
}

/* Looking into more buckets finds more, and in the end all. */
static void more_buckets_raise_recall(void **state)
{
    (void)state;
    data *d = make_data(3);
    for (int f = 0; f < FAMILIES; f++) {
        for (int fine = 0; fine < 2; fine++) {
            gnomon_lsh_options o = options_of(families[f]);
            o.fine = fine ? o.coarse / 2 : 0;
            o.coarse -= o.fine;
            gnomon_lsh *index = index_of(ctx, d, &o);
            const gnomon_search_options s = by_k(&o, 5);
            gnomon_neighbors truth = exactly(d, &s), found;
            double before = 0, first = 0;
            for (int probes = 0; probes <= 4000; probes = probes ? 8 * probes : 8) {
                gnomon_lsh_search_params e = GNOMON_LSH_SEARCH_PARAMS_INIT;
                gnomon_lsh_work work = {.struct_size = sizeof work};
                e.probes = probes;
                e.coarse = fine ? probes : 0;
                ASSERT_OK(ctx, ask(ctx, d, index, &s, &e, &found, &work));
                const double r = recall(&found, &truth);
                if (probes == 0) first = r;
                /* a query that goes exact with few candidates does so no more with some */
                assert_true(r >= before - 0.25);
                before = r;
                gnomon_neighbors_free(ctx, &found);
            }
            if (!(before >= 0.9 && before >= first))
                fail_msg("%s: recall %g, at first %g", gnomon_lsh_family_name(families[f]), before,
                         first);
            gnomon_neighbors_free(ctx, &truth);
            gnomon_lsh_destroy(index);
        }
    }
    free(d);
}

/* With one function that has few values, enough probes reach every bucket: the answer is exact. */
static void all_buckets_are_all_points(void **state)
{
    (void)state;
    data *d = make_data(4);
    for (int f = 1; f < 4; f++) {
        gnomon_lsh_options o = options_of(families[f]);
        o.tables = 1;
        o.coarse = families[f] == GNOMON_LSH_CROSS_POLYTOPE ? 1 : 5;
        if (families[f] == GNOMON_LSH_CROSS_POLYTOPE) o.functions.sides = 2;
        gnomon_lsh *index = index_of(ctx, d, &o);
        gnomon_lsh_search_params e = GNOMON_LSH_SEARCH_PARAMS_INIT;
        e.probes = 31;
        const gnomon_search_options s = by_k(&o, 7);
        gnomon_neighbors truth = exactly(d, &s), found;
        ASSERT_OK(ctx, ask(ctx, d, index, &s, &e, &found, NULL));
        if (families[f] == GNOMON_LSH_CROSS_POLYTOPE)
            assert_true(recall(&found, &truth) > 0.9); /* two of four values are no other values */
        else
            check_same(&found, &truth);
        gnomon_neighbors_free(ctx, &truth);
        gnomon_neighbors_free(ctx, &found);
        gnomon_lsh_destroy(index);
    }
    free(d);
}

static void few_candidates_mean_exact(void **state)
{
    (void)state;
    data *d = make_data(5);
    for (int f = 0; f < FAMILIES; f++) {
        gnomon_lsh_options o = options_of(families[f]);
        gnomon_lsh *index = index_of(ctx, d, &o);
        gnomon_search_options s = by_k(&o, N - 1);
        gnomon_lsh_work work = {.struct_size = sizeof work};
        s.exclude = 3; /* query 0 is told to be point 3 */
        gnomon_neighbors truth = exactly(d, &s), found;
        ASSERT_OK(ctx, ask(ctx, d, index, &s, NULL, &found, &work));
        check_same(&found, &truth);
        assert_int_equal(work.exact, Q);
        gnomon_neighbors_free(ctx, &truth);
        gnomon_neighbors_free(ctx, &found);
        gnomon_lsh_destroy(index);
    }
    free(d);
}

static void codes_choose_what_is_verified(void **state)
{
    (void)state;
    data *d = make_data(6);
    for (int f = 0; f < 2; f++) {
        gnomon_lsh_options o = options_of(families[f]);
        o.coarse = 2;
        o.codes = 40; /* more than there are coordinates */
        gnomon_lsh *index = index_of(ctx, d, &o);
        gnomon_lsh_search_params e = GNOMON_LSH_SEARCH_PARAMS_INIT;
        const gnomon_search_options s = by_k(&o, 5);
        gnomon_neighbors all, some, truth = exactly(d, &s);
        gnomon_lsh_work work = {.struct_size = sizeof work}, less = work;
        e.probes = 30;
        ASSERT_OK(ctx, ask(ctx, d, index, &s, &e, &all, &work));
        e.rerank = 20;
        ASSERT_OK(ctx, ask(ctx, d, index, &s, &e, &some, &less));
        assert_int_equal(work.candidates, less.candidates);
        assert_int_equal(less.verified, 20 * Q);
        assert_true(work.verified > 2 * less.verified);
        assert_true(recall(&all, &truth) > 0.9);
        assert_true(recall(&some, &all) > 0.97);
        gnomon_neighbors_free(ctx, &all);
        gnomon_neighbors_free(ctx, &some);
        e.rerank = 0;
        e.candidates = 30;
        ASSERT_OK(ctx, ask(ctx, d, index, &s, &e, &some, &less));
        assert_true(less.candidates <= 30 * Q && less.candidates > 20 * Q);
        gnomon_neighbors_free(ctx, &some);
        gnomon_neighbors_free(ctx, &truth);
        gnomon_lsh_destroy(index);
    }
    free(d);
}

static gnomon_lsh_search_params some_params(const gnomon_lsh_options *o)
{
    gnomon_lsh_search_params e = GNOMON_LSH_SEARCH_PARAMS_INIT;
    e.probes = 25;
    e.coarse = o->fine > 0 ? 9 : 0;
    e.rerank = o->codes > 0 ? 15 : 0;
    return e;
}

static void the_same_bits(void **state)
{
    (void)state;
    data *d = make_data(7);
    static const char *const levels[] = {"portable", "avx2", "neon"};
    for (int f = 0; f < FAMILIES; f++) {
        gnomon_lsh_options o = options_of(families[f]);
        o.fine = 1;
        o.codes = f < 3 ? 24 : 0;
        const gnomon_lsh_search_params e = some_params(&o);
        gnomon_search_options s = by_k(&o, 4);
        gnomon_lsh *index = index_of(ctx, d, &o);
        gnomon_neighbors first, second;
        ASSERT_OK(ctx, ask(ctx, d, index, &s, &e, &first, NULL));
        for (int round = 0; round < 5; round++) {
            gnomon_context *other;
            gnomon_context_options c = GNOMON_CONTEXT_OPTIONS_INIT;
            c.device = "cpu";
            c.threads = round == 0 ? 1 : 4;
            c.memory_limit = round == 1 ? 100000 : 0;
            if (round >= 2) setenv("GNOMON_ISA", levels[round - 2], 1);
            const gnomon_status status = gnomon_context_create(&c, &other);
            unsetenv("GNOMON_ISA");
            if (status != GNOMON_OK) continue; /* not this processor's */
            gnomon_lsh *same = index_of(other, d, &o);
            ASSERT_OK(other, ask(other, d, same, &s, &e, &second, NULL));
            check_same(&first, &second);
            gnomon_neighbors_free(other, &second);
            /* the first index with another context */
            ASSERT_OK(other, ask(other, d, index, &s, &e, &second, NULL));
            check_same(&first, &second);
            gnomon_neighbors_free(other, &second);
            gnomon_lsh_destroy(same);
            gnomon_context_destroy(other);
        }
        gnomon_neighbors_free(ctx, &first);
        gnomon_lsh_destroy(index);
    }
    free(d);
}

/* A point's number in its piece: pieces of several sizes, the first empty. */
static const int64_t cuts[] = {0, 0, 1, 300, 301, 880, N};

static void points_in_pieces(void **state)
{
    (void)state;
    data *d = make_data(8);
    for (int f = 0; f < FAMILIES; f++) {
        gnomon_lsh_options o = options_of(families[f]);
        o.fine = 1;
        const gnomon_lsh_search_params e = some_params(&o);
        gnomon_lsh *whole = index_of(ctx, d, &o), *parts = create(ctx, &o);
        for (int c = 0; c < 6; c++) {
            const int64_t first = cuts[c], count = cuts[c + 1] - first;
            if (is_sparse(&o)) {
                const gnomon_csr part = {
                    count, 3000, d->offsets + first, d->members + first * 20, d->ones, GNOMON_F32};
                ASSERT_OK(ctx, gnomon_lsh_add_csr(parts, &part));
            } else {
                gnomon_matrix part = *base_of(d, &o);
                part.data = (char *)part.data + first * D * (int64_t)gnomon_dtype_size(part.dtype);
                part.rows = count;
                ASSERT_OK(ctx, gnomon_lsh_add(parts, &part));
            }
        }
        for (int64_t t = 0; t < o.tables; t++) {
            const gnomon_table *a = &whole->tables[t], *b = &parts->tables[t];
            assert_int_equal(a->buckets, b->buckets);
            assert_memory_equal(a->keys, b->keys, (size_t)a->buckets * 8);
            assert_memory_equal(a->ids, b->ids, N * 4);
            assert_memory_equal(a->first, b->first, (size_t)(a->buckets + 1) * 4);
        }
        const gnomon_search_options s = by_k(&o, 4);
        gnomon_neighbors first, second;
        ASSERT_OK(ctx, ask(ctx, d, whole, &s, &e, &first, NULL));
        ASSERT_OK(ctx, ask(ctx, d, parts, &s, &e, &second, NULL));
        check_same(&first, &second);
        gnomon_neighbors_free(ctx, &first);
        gnomon_neighbors_free(ctx, &second);
        gnomon_lsh_destroy(whole);
        gnomon_lsh_destroy(parts);
    }
    free(d);
}

static void removed_points_are_not_found(void **state)
{
    (void)state;
    data *d = make_data(9);
    for (int f = 0; f < FAMILIES; f++) {
        gnomon_lsh_options o = options_of(families[f]);
        o.codes = f < 3 ? 16 : 0;
        const gnomon_lsh_search_params e = some_params(&o);
        gnomon_lsh *index = index_of(ctx, d, &o);
        gnomon_search_options s = by_k(&o, 4);
        int64_t ids[N / 3 + 1], bad[2] = {1, N};
        uint8_t allowed[(N + 7) / 8];
        memset(allowed, 0xff, sizeof allowed);
        for (int64_t i = 0; i < N / 3; i++) {
            ids[i] = i * 3;
            allowed[3 * i / 8] &= (uint8_t) ~(1u << (3 * i % 8));
        }
        ids[N / 3] = 0; /* twice */
        gnomon_neighbors before, filtered, removed, compacted, none;
        ASSERT_OK(ctx, ask(ctx, d, index, &s, &e, &before, NULL));
        ASSERT_FAILS(ctx, gnomon_lsh_remove(index, bad, 2), GNOMON_ERROR_ARGUMENT, "ids[1]");
        s.filter = allowed;
        s.filter_bits = N;
        ASSERT_OK(ctx, ask(ctx, d, index, &s, &e, &filtered, NULL));
        s.filter = NULL;
        s.filter_bits = 0;
        ASSERT_OK(ctx, gnomon_lsh_remove(index, ids, N / 3 + 1));
        ASSERT_OK(ctx, ask(ctx, d, index, &s, &e, &removed, NULL));
        check_same(&filtered, &removed);
        ASSERT_OK(ctx, gnomon_lsh_compact(index));
        ASSERT_OK(ctx, ask(ctx, d, index, &s, &e, &compacted, NULL));
        check_same(&removed, &compacted);
        gnomon_lsh_info info = {.struct_size = sizeof info};
        gnomon_lsh_describe(index, &info);
        assert_int_equal(info.points, N);
        assert_int_equal(info.removed, N / 3);
        assert_int_equal(index->tables[0].entries, N - N / 3);
        s.k = N - N / 3 + 1;
        ASSERT_FAILS(ctx, ask(ctx, d, index, &s, &e, &none, NULL), GNOMON_ERROR_ARGUMENT, "k is");
        gnomon_neighbors_free(ctx, &before);
        gnomon_neighbors_free(ctx, &filtered);
        gnomon_neighbors_free(ctx, &removed);
        gnomon_neighbors_free(ctx, &compacted);
        gnomon_lsh_destroy(index);
    }
    free(d);
}

typedef struct asker {
    const data *d;
    const gnomon_lsh *index;
    const gnomon_neighbors *expected;
    const gnomon_search_options *s;
} asker;

static void *ask_again(void *arg)
{
    const asker *a = arg;
    gnomon_context *own = make_context(2, 0);
    for (int i = 0; i < 3; i++) {
        gnomon_neighbors found;
        ASSERT_OK(own, ask(own, a->d, a->index, a->s, NULL, &found, NULL));
        check_same(&found, a->expected);
        gnomon_neighbors_free(own, &found);
    }
    gnomon_context_destroy(own);
    return NULL;
}

static void many_threads_at_once(void **state)
{
    (void)state;
    data *d = make_data(10);
    gnomon_lsh_options o = options_of(GNOMON_LSH_PSTABLE);
    o.codes = 16;
    o.search_params.probes = 20;
    o.search_params.rerank = 12;
    gnomon_lsh *index = index_of(ctx, d, &o);
    const gnomon_search_options s = by_k(&o, 4);
    gnomon_neighbors expected;
    ASSERT_OK(ctx, ask(ctx, d, index, &s, NULL, &expected, NULL));
    asker a = {d, index, &expected, &s};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_again, &a), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    gnomon_neighbors_free(ctx, &expected);
    gnomon_lsh_destroy(index);
    free(d);
}

static gnomon_status whole_life(gnomon_context *with, const data *d, const gnomon_lsh_options *o,
                                gnomon_neighbors *found)
{
    gnomon_lsh *index = NULL;
    const gnomon_lsh_search_params e = some_params(o);
    const gnomon_search_options s = by_k(o, 3);
    const int64_t ids[2] = {4, 7};
    gnomon_status status = gnomon_lsh_create(with, o, &index);
    for (int i = 0; i < 2 && status == GNOMON_OK; i++)
        status = is_sparse(o) ? gnomon_lsh_add_csr(index, &d->sets)
                              : gnomon_lsh_add(index, base_of(d, o));
    if (status == GNOMON_OK) status = gnomon_lsh_remove(index, ids, 2);
    if (status == GNOMON_OK) status = gnomon_lsh_compact(index);
    if (status == GNOMON_OK) status = ask(with, d, index, &s, &e, found, NULL);
    gnomon_lsh_destroy(index);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    data *d = make_data(11);
    for (int f = 0; f < FAMILIES; f += 2) { /* a family of each kind of points */
        gnomon_lsh_options o = options_of(families[f == 2 ? 3 : f]);
        o.codes = f == 0 ? 16 : 0;
        int failures = 0;
        for (int64_t n = 0;; n++) {
            misers m = {n, 0};
            const gnomon_allocator a = {&m, miser_allocate, miser_release};
            gnomon_context_options c = GNOMON_CONTEXT_OPTIONS_INIT;
            c.allocator = &a;
            c.threads = 2;
            c.device = "cpu";
            gnomon_context *poor;
            if (gnomon_context_create(&c, &poor) != GNOMON_OK) continue;
            gnomon_neighbors found = {.struct_size = sizeof found};
            const gnomon_status status = whole_life(poor, d, &o, &found);
            if (status != GNOMON_OK) {
                assert_int_equal(status, GNOMON_ERROR_MEMORY);
                failures++;
            }
            gnomon_neighbors_free(poor, &found);
            gnomon_context_destroy(poor);
            assert_int_equal(m.out, 0);
            if (status == GNOMON_OK) break;
        }
        assert_true(failures > 20);
    }
    free(d);
}

static void a_failed_addition_changes_nothing(void **state)
{
    (void)state;
    data *d = make_data(12);
    gnomon_lsh_options o = options_of(GNOMON_LSH_PSTABLE);
    o.codes = 16;
    gnomon_lsh *index = index_of(ctx, d, &o);
    gnomon_lsh_info info = {.struct_size = sizeof info}, after = info;
    gnomon_lsh_describe(index, &info);
    gnomon_lsh_destroy(index);
    o.memory = info.table_bytes + info.code_bytes;
    index = index_of(ctx, d, &o);
    const gnomon_search_options s = by_k(&o, 3);
    gnomon_neighbors first, second;
    ASSERT_OK(ctx, ask(ctx, d, index, &s, NULL, &first, NULL));
    ASSERT_FAILS(ctx, gnomon_lsh_add(index, &d->dense), GNOMON_ERROR_MEMORY, "options.memory");
    d->queries[3] = NAN;
    ASSERT_FAILS(ctx, gnomon_lsh_add(index, &d->asked), GNOMON_ERROR_NONFINITE, "row 0, column 3");
    d->queries[3] = 0;
    gnomon_lsh_describe(index, &after);
    assert_int_equal(after.points, N);
    assert_int_equal(after.buckets, info.buckets);
    d->queries[3] = 0;
    gnomon_neighbors_free(ctx, &first);
    ASSERT_OK(ctx, ask(ctx, d, index, &s, NULL, &first, NULL));
    ASSERT_OK(ctx, ask(ctx, d, index, &s, NULL, &second, NULL));
    check_same(&first, &second);
    gnomon_neighbors_free(ctx, &first);
    gnomon_neighbors_free(ctx, &second);
    gnomon_lsh_destroy(index);
    free(d);
}

static void bad_arguments(void **state)
{
    (void)state;
    data *d = make_data(13);
    gnomon_lsh *index;
    gnomon_neighbors found = {.struct_size = sizeof found};
#define REFUSED(change, status, part)                                        \
    do {                                                                     \
        gnomon_lsh_options o = options_of(GNOMON_LSH_PSTABLE);               \
        change;                                                              \
        ASSERT_FAILS(ctx, gnomon_lsh_create(ctx, &o, &index), status, part); \
        assert_null(index);                                                  \
    } while (0)
    REFUSED(o.metric = GNOMON_IP, GNOMON_ERROR_UNSUPPORTED, "ip");
    REFUSED(o.metric = GNOMON_COSINE, GNOMON_ERROR_ARGUMENT, "family");
    REFUSED(o.functions.width = 0, GNOMON_ERROR_ARGUMENT, "width");
    REFUSED(o.functions.dim = 0, GNOMON_ERROR_ARGUMENT, "dim");
    REFUSED(o.tables = 0, GNOMON_ERROR_ARGUMENT, "tables");
    REFUSED(o.tables = 5000, GNOMON_ERROR_ARGUMENT, "tables");
    REFUSED(o.coarse = 0, GNOMON_ERROR_ARGUMENT, "coarse");
    REFUSED(o.fine = -1, GNOMON_ERROR_ARGUMENT, "fine");
    REFUSED(o.fine = 253, GNOMON_ERROR_ARGUMENT, "fine");
    REFUSED(o.codes = 1025, GNOMON_ERROR_ARGUMENT, "codes");
    REFUSED(o.memory = -1, GNOMON_ERROR_ARGUMENT, "memory");
    REFUSED(o.search_params.probes = -1, GNOMON_ERROR_ARGUMENT, "probes");
    REFUSED(o.search_params.coarse = 1, GNOMON_ERROR_ARGUMENT, "coarse");
    REFUSED(o.search_params.candidates = -1, GNOMON_ERROR_ARGUMENT, "candidates");
    REFUSED(o.search_params.rerank = 3, GNOMON_ERROR_ARGUMENT, "rerank");
    REFUSED(o.struct_size = 4, GNOMON_ERROR_ARGUMENT, "struct_size");
#undef REFUSED
    gnomon_lsh_options o = options_of(GNOMON_LSH_BIT_SAMPLING);
    o.codes = 8;
    ASSERT_FAILS(ctx, gnomon_lsh_create(ctx, &o, &index), GNOMON_ERROR_ARGUMENT, "codes");

    o = options_of(GNOMON_LSH_PSTABLE);
    index = create(ctx, &o);
    gnomon_search_options s = by_k(&o, 1);
    ASSERT_FAILS(ctx, ask(ctx, d, index, &s, NULL, &found, NULL), GNOMON_ERROR_ARGUMENT,
                 "0 points");
    s.k = 0;
    s.radius = 1;
    ASSERT_OK(ctx, ask(ctx, d, index, &s, NULL, &found, NULL));
    assert_int_equal(found.offsets[Q], 0);
    gnomon_neighbors_free(ctx, &found);
    ASSERT_OK(ctx, gnomon_lsh_add(index, &d->binary_asked)); /* any type is taken */
    gnomon_matrix fewer_cols = d->dense;
    fewer_cols.cols = D - 1;
    ASSERT_FAILS(ctx, gnomon_lsh_add(index, &fewer_cols), GNOMON_ERROR_SHAPE, "columns");
    ASSERT_FAILS(ctx, gnomon_lsh_add_csr(index, &d->sets), GNOMON_ERROR_UNSUPPORTED, "sparse");
    double huge[D] = {0x1p501};
    const gnomon_matrix far = gnomon_matrix_rowmajor(huge, GNOMON_F64, 1, D);
    ASSERT_FAILS(ctx, gnomon_lsh_add(index, &far), GNOMON_ERROR_UNSUPPORTED, "2^500");
    s.metric = GNOMON_COSINE;
    ASSERT_FAILS(ctx, ask(ctx, d, index, &s, NULL, &found, NULL), GNOMON_ERROR_ARGUMENT, "metric");
    s.metric = GNOMON_L2;
    s.radius = -1;
    ASSERT_FAILS(ctx, ask(ctx, d, index, &s, NULL, &found, NULL), GNOMON_ERROR_ARGUMENT, "radius");
    s.radius = 1;
    gnomon_matrix asked = d->asked;
    asked.cols = D - 1;
    ASSERT_FAILS(ctx, gnomon_lsh_query(ctx, index, &asked, &s, NULL, &found, NULL),
                 GNOMON_ERROR_SHAPE, "queries");
    gnomon_lsh_search_params e = GNOMON_LSH_SEARCH_PARAMS_INIT;
    e.coarse = 1;
    ASSERT_FAILS(ctx, ask(ctx, d, index, &s, &e, &found, NULL), GNOMON_ERROR_ARGUMENT, "coarse");
    gnomon_lsh_destroy(index);
    gnomon_lsh_destroy(NULL);
    free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(queries_find_their_buckets),
                                       cmocka_unit_test(fine_buckets_grow_to_coarse_ones),
                                       cmocka_unit_test(more_buckets_raise_recall),
                                       cmocka_unit_test(all_buckets_are_all_points),
                                       cmocka_unit_test(few_candidates_mean_exact),
                                       cmocka_unit_test(codes_choose_what_is_verified),
                                       cmocka_unit_test(the_same_bits),
                                       cmocka_unit_test(points_in_pieces),
                                       cmocka_unit_test(removed_points_are_not_found),
                                       cmocka_unit_test(many_threads_at_once),
                                       cmocka_unit_test(every_allocation_may_fail),
                                       cmocka_unit_test(a_failed_addition_changes_nothing),
                                       cmocka_unit_test(bad_arguments)};
    return cmocka_run_group_tests(tests, open_context, close_context);
}

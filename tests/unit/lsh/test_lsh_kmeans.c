/* Inverted lists by trained centres: values, and what queries find, many at once and one by one,
 * against plain enumeration; the same bits whatever the threads, batches and level; what is
 * refused; every allocation refused in turn. */
#include "lsh/index.h"
#include "meter.h"
#include "miser.h"
#include "project.h"

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

enum { N = 400, Q = 90, MOST_D = 40, CENTRES = 14, BLOCKS = 3 };

static const gnomon_lsh_family families[] = {GNOMON_LSH_KMEANS, GNOMON_LSH_SPHERICAL_KMEANS};

/* Points in several additions, each of its own type and layout; their numbers, and queries. */
typedef struct data {
    bool cosine;
    int d;
    owned blocks[BLOCKS], queries;
    double *x, *q;
    float centres[CENTRES * MOST_D];
    bool gone[N], allowed[N];
    uint8_t filter[(N + 7) / 8];
} data;

static const int64_t cuts[BLOCKS + 1] = {0, 250, 251, N};

/* Where 'whole', numbers are few and small, so that many distances are equal. */
static void fill(const gnomon_matrix *m, uint64_t *seed, bool whole)
{
    for (int64_t i = 0; i < m->rows; i++)
        for (int64_t j = 0; j < m->cols; j++) {
            const double v =
                whole ? 0.125 * (double)(1 + next_random(seed) % 4) : next_uniform(seed);
            set_element(m, i, j, v);
        }
}

/* Squares of larger numbers than these are rounded, in the order in which they are added. */
static bool has_ties(bool cosine, int type)
{
    return !cosine && type < GNOMON_I64;
}

/* All blocks of one type, so that their numbers have one scale. */
static data *make_data(uint64_t seed, bool cosine, int d, gnomon_dtype dtype, bool whole)
{
    data *p = calloc(1, sizeof *p);
    assert_non_null(p);
    p->cosine = cosine;
    p->d = d;
    p->x = malloc((size_t)(N * d) * sizeof *p->x);
    p->q = malloc((size_t)(Q * d) * sizeof *p->q);
    assert_true(p->x != NULL && p->q != NULL);
    for (int b = 0; b < BLOCKS; b++) {
        p->blocks[b] = make_matrix(cuts[b + 1] - cuts[b], d, dtype, b % LAYOUTS);
        fill(&p->blocks[b].m, &seed, whole);
        for (int64_t i = cuts[b]; i < cuts[b + 1]; i++)
            for (int j = 0; j < d; j++)
                p->x[i * d + j] = element(&p->blocks[b].m, i - cuts[b], j);
    }
    p->queries = make_matrix(Q, d, dtype, ROW_MAJOR);
    fill(&p->queries.m, &seed, whole);
    for (int64_t i = 0; i < Q; i++)
        for (int j = 0; j < d; j++)
            p->q[i * d + j] = element(&p->queries.m, i, j);
    for (int i = 0; i < N; i++) {
        p->gone[i] = next_random(&seed) % 9 == 0;
        p->allowed[i] = next_random(&seed) % 5 != 0;
        if (p->allowed[i]) p->filter[i / 8] |= (uint8_t)(1u << (i % 8));
    }
    /* centres as points are, some of them equal */
    for (int c = 0; c < CENTRES; c++)
        for (int j = 0; j < d; j++)
            p->centres[c * d + j] = (float)p->x[(c < 12 ? c : c - 12) * 17 * d + j];
    return p;
}

static void free_data(data *p)
{
    for (int b = 0; b < BLOCKS; b++)
        free_matrix(&p->blocks[b]);
    free_matrix(&p->queries);
    free(p->x);
    free(p->q);
    free(p);
}

static gnomon_lsh_options options_of(const data *p)
{
    gnomon_lsh_options o = GNOMON_LSH_OPTIONS_INIT;
    o.metric = p->cosine ? GNOMON_COSINE : GNOMON_L2;
    o.functions.family = families[p->cosine];
    o.functions.dim = p->d;
    o.functions.centre_count = CENTRES;
    o.functions.centres = p->centres;
    o.tables = o.coarse = 1;
    return o;
}

static gnomon_lsh *index_of(gnomon_context *with, const data *p, bool removed)
{
    const gnomon_lsh_options o = options_of(p);
    gnomon_lsh *index;
    ASSERT_OK(with, gnomon_lsh_create(with, &o, &index));
    for (int b = 0; b < BLOCKS; b++)
        ASSERT_OK(with, gnomon_lsh_add(index, &p->blocks[b].m));
    for (int64_t i = 0; i < N && removed; i++)
        if (p->gone[i]) ASSERT_OK(with, gnomon_lsh_remove(index, &i, 1));
    return index;
}

/* ---- plain enumeration ---- */

static double distance_of(const double *x, const double *y, int d, bool cosine)
{
    double sum = 0, a = 0, b = 0;
    for (int j = 0; j < d; j++) {
        sum += cosine ? x[j] * y[j] : (x[j] - y[j]) * (x[j] - y[j]);
        a += x[j] * x[j];
        b += y[j] * y[j];
    }
    if (!cosine) return sqrt(sum);
    return a > 0 && b > 0 ? 1 - sum / sqrt(a * b) : 1;
}

static double to_centre(const data *p, const double *x, int c)
{
    double y[MOST_D];
    for (int j = 0; j < p->d; j++)
        y[j] = (double)p->centres[c * p->d + j];
    return distance_of(x, y, p->d, p->cosine);
}

typedef struct ranked {
    double distance;
    int64_t id;
} ranked;

static int by_rank(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->distance != y->distance) return x->distance < y->distance ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

/* The centres, the nearest first. */
static void rank_centres(const data *p, const double *x, ranked centres[CENTRES])
{
    for (int c = 0; c < CENTRES; c++)
        centres[c] = (ranked){to_centre(p, x, c), c};
    qsort(centres, CENTRES, sizeof *centres, by_rank);
}

typedef struct asking {
    int64_t k, probes, candidates, exclude;
    double radius;
    bool removed, filtered;
} asking;

static bool may_be(const data *p, const asking *a, int64_t query, int64_t id)
{
    return !(a->removed && p->gone[id]) && (!a->filtered || p->allowed[id]) &&
           !(a->exclude >= 0 && id == a->exclude + query);
}

/* The answers of a query, nearest first, and how many candidates it has. */
static int64_t slow_answers(const data *p, const asking *a, const int *own, int64_t query,
                            ranked out[N], int64_t *candidates)
{
    ranked centres[CENTRES];
    const double *q = p->q + query * p->d;
    int64_t count = 0;
    const int64_t most = a->candidates > 0 ? (a->candidates > a->k ? a->candidates : a->k) : N;
    rank_centres(p, q, centres);
    for (int64_t l = 0; l <= a->probes && l < CENTRES; l++)
        for (int64_t id = 0; id < N && count < most; id++)
            if (own[id] == centres[l].id && may_be(p, a, query, id))
                out[count++] = (ranked){distance_of(q, p->x + id * p->d, p->d, p->cosine), id};
    *candidates = count;
    if (count < a->k) {
        count = 0;
        for (int64_t id = 0; id < N; id++)
            if (may_be(p, a, query, id))
                out[count++] = (ranked){distance_of(q, p->x + id * p->d, p->d, p->cosine), id};
    }
    qsort(out, (size_t)count, sizeof *out, by_rank);
    if (a->k > 0) return a->k;
    int64_t within = 0;
    while (within < count && out[within].distance <= a->radius)
        within++;
    return within;
}

static gnomon_search_options search_of(const data *p, const asking *a, int64_t first)
{
    gnomon_search_options s = GNOMON_SEARCH_OPTIONS_INIT;
    s.metric = p->cosine ? GNOMON_COSINE : GNOMON_L2;
    s.k = a->k;
    s.radius = a->radius;
    s.exclude = a->exclude >= 0 ? a->exclude + first : -1;
    if (a->filtered) {
        s.filter = p->filter;
        s.filter_bits = N;
    }
    return s;
}

static void ask(gnomon_context *with, const data *p, const gnomon_lsh *index, const asking *a,
                int64_t first, int64_t count, gnomon_neighbors *out, gnomon_lsh_work *work)
{
    gnomon_lsh_search_params e = GNOMON_LSH_SEARCH_PARAMS_INIT;
    const gnomon_search_options s = search_of(p, a, first);
    gnomon_matrix q = p->queries.m;
    q.data = (char *)q.data + first * q.row_stride * (int64_t)gnomon_dtype_size(q.dtype);
    q.rows = count;
    e.probes = a->probes;
    e.candidates = a->candidates;
    *out = (gnomon_neighbors){.struct_size = sizeof *out};
    *work = (gnomon_lsh_work){.struct_size = sizeof *work};
    ASSERT_OK(with, gnomon_lsh_query(with, index, &q, &s, &e, out, work));
}

/* Many queries at once, then one by one: the same bits, and those of plain enumeration. */
static void check(const data *p, const gnomon_lsh *index, const asking *a)
{
    gnomon_neighbors all, one;
    gnomon_lsh_work work, single;
    int own[N];
    ranked answers[N];
    int64_t candidates, sum = 0, exact = 0;
    for (int i = 0; i < N; i++) {
        ranked centres[CENTRES];
        rank_centres(p, p->x + i * p->d, centres);
        own[i] = (int)centres[0].id;
    }
    ask(ctx, p, index, a, 0, Q, &all, &work);
    for (int64_t q = 0; q < Q; q++) {
        const int64_t count = slow_answers(p, a, own, q, answers, &candidates);
        const int64_t begin = all.offsets[q];
        sum += candidates;
        exact += candidates < a->k;
        assert_int_equal(all.offsets[q + 1] - begin, count);
        for (int64_t i = 0; i < count; i++) {
            assert_int_equal(all.ids[begin + i], answers[i].id);
            const double off = fabs(all.distances[begin + i] - answers[i].distance);
            assert_true(off <= 1e-7 * (1 + answers[i].distance)); /* of cosine 1 - cos cancels */
        }
        if (q % 7 > 0) continue;
        ask(ctx, p, index, a, q, 1, &one, &single);
        assert_int_equal(one.offsets[1], count);
        assert_memory_equal(one.ids, all.ids + begin, (size_t)count * sizeof *one.ids);
        assert_memory_equal(one.distances, all.distances + begin,
                            (size_t)count * sizeof *one.distances);
        assert_int_equal(single.candidates, candidates);
        gnomon_neighbors_free(ctx, &one);
    }
    assert_int_equal(work.exact, exact);
    /* its own point is told of where it stands in a list that is scanned */
    if (a->exclude < 0) assert_int_equal(work.candidates, sum);
    if (a->candidates == 0)
        assert_int_equal(work.buckets, Q * (a->probes < CENTRES ? a->probes + 1 : CENTRES));
    gnomon_neighbors_free(ctx, &all);
}

/* ---- values ---- */

static void values_are_the_nearest_centres(void **state)
{
    (void)state;
    for (int cosine = 0; cosine < 2; cosine++)
        for (int type = GNOMON_F32; type <= GNOMON_U64; type++) {
            data *p =
                make_data((uint64_t)type, cosine, 7, (gnomon_dtype)type, has_ties(cosine, type));
            const gnomon_lsh_options o = options_of(p);
            gnomon_lsh_functions f = o.functions;
            gnomon_hasher *h;
            int32_t values[Q];
            const gnomon_matrix out = gnomon_matrix_rowmajor(values, GNOMON_I32, Q, 1);
            f.count = 1;
            ASSERT_OK(ctx, gnomon_hasher_create(ctx, &f, &h));
            memset(p->centres, 0, 4); /* they have been copied */
            ASSERT_OK(ctx, gnomon_hasher_apply(ctx, h, &p->queries.m, &out));
            p->centres[0] = (float)p->x[0];
            for (int i = 0; i < Q; i++) {
                ranked centres[CENTRES];
                rank_centres(p, p->q + i * p->d, centres);
                assert_int_equal(values[i], centres[0].id);
            }
            gnomon_hasher_destroy(h);
            free_data(p);
        }
}

/* ---- queries ---- */

static void queries_of_every_type(void **state)
{
    (void)state;
    for (int cosine = 0; cosine < 2; cosine++)
        for (int type = GNOMON_F32; type <= GNOMON_U64; type++) {
            data *p = make_data((uint64_t)type + 20, cosine, 9, (gnomon_dtype)type,
                                has_ties(cosine, type));
            gnomon_lsh *index = index_of(ctx, p, true);
            check(p, index,
                  &(asking){.k = 5, .probes = 3, .exclude = -1, .removed = true, .filtered = true});
            gnomon_lsh_destroy(index);
            free_data(p);
        }
}

/* Some or all lists, with fewer candidates than neighbours too; points removed, left out, one's
 * own. */
static void queries_of_every_kind(void **state)
{
    (void)state;
    static const int64_t probes[] = {0, 1, 4, CENTRES - 1, CENTRES, 1 << 24};
    static const int64_t ks[] = {1, 10, 60, 200};
    for (int round = 0; round < 8; round++) {
        const bool cosine = round % 2 == 1, removed = round / 2 % 2 == 1, whole = round < 4;
        data *p = make_data((uint64_t)round + 40, cosine, round < 6 ? 12 : MOST_D, GNOMON_F32,
                            whole && !cosine);
        gnomon_lsh *index = index_of(ctx, p, removed);
        for (int i = 0; i < 6; i++)
            for (int j = 0; j < 4; j++) {
                asking a = {.k = ks[j],
                            .probes = probes[i],
                            .exclude = (i + j) % 3 == 0   ? 100
                                       : (i + j) % 3 == 1 ? 230
                                                          : -1,
                            .removed = removed,
                            .filtered = (i * 4 + j) % 5 < 2};
                check(p, index, &a);
            }
        gnomon_lsh_destroy(index);
        free_data(p);
    }
}

static void a_limit_and_a_radius(void **state)
{
    (void)state;
    for (int cosine = 0; cosine < 2; cosine++) {
        data *p = make_data((uint64_t)cosine + 60, cosine, 8, GNOMON_F64, cosine == 0);
        gnomon_lsh *index = index_of(ctx, p, true);
        for (int64_t probes = 0; probes < 20; probes += 4)
            for (int i = 0; i < 3; i++) {
                asking a = {.k = 4,
                            .probes = probes,
                            .exclude = i == 1 ? 3 : -1,
                            .candidates = 1 + 20 * i,
                            .removed = true,
                            .filtered = i == 2};
                check(p, index, &a);
                a.candidates = 0;
                a.k = 0;
                a.radius = cosine ? 0.5 : 0.4;
                check(p, index, &a);
            }
        gnomon_lsh_destroy(index);
        free_data(p);
    }
}

/* Compacted, and with a point's own query. */
static void compacted_lists(void **state)
{
    (void)state;
    data *p = make_data(70, false, 10, GNOMON_U8, true);
    gnomon_lsh *index = index_of(ctx, p, true);
    ASSERT_OK(ctx, gnomon_lsh_compact(index));
    for (int64_t probes = 0; probes < CENTRES; probes += 2)
        check(p, index, &(asking){.k = 7, .probes = probes, .exclude = -1, .removed = true});
    gnomon_lsh_destroy(index);
    free_data(p);
}

static void same_whatever_threads_batches_and_level(void **state)
{
    (void)state;
    static const char *const levels[] = {"portable", "avx2", "avx512", "avx512_vnni", "amx"};
    for (int round = 0; round < 4; round++) {
        data *p = make_data((uint64_t)round + 80, round % 2, 33, round < 2 ? GNOMON_F32 : GNOMON_I8,
                            round == 2);
        gnomon_lsh *index = index_of(ctx, p, true);
        const asking a = {.k = 6, .probes = 2, .exclude = 4, .removed = true, .filtered = true};
        gnomon_neighbors first, second;
        gnomon_lsh_work work;
        ask(ctx, p, index, &a, 0, Q, &first, &work);
        for (int i = 0; i < 8; i++) {
            gnomon_context *other;
            gnomon_context_options c = GNOMON_CONTEXT_OPTIONS_INIT;
            c.device = "cpu";
            c.threads = i == 0 ? 1 : 4;
            c.memory_limit = i == 1 ? 1000 : i == 2 ? 100000 : 0;
            if (i > 2) setenv("GNOMON_ISA", levels[i - 3], 1);
            const gnomon_status status = gnomon_context_create(&c, &other);
            unsetenv("GNOMON_ISA");
            if (status != GNOMON_OK) continue; /* not this processor's */
            gnomon_lsh *same = index_of(other, p, true);
            for (int x = 0; x < 2; x++) {
                ask(other, p, x == 0 ? same : index, &a, 0, Q, &second, &work);
                assert_memory_equal(first.ids, second.ids, Q * 6 * sizeof *first.ids);
                assert_memory_equal(first.distances, second.distances,
                                    Q * 6 * sizeof *first.distances);
                gnomon_neighbors_free(other, &second);
            }
            gnomon_lsh_destroy(same);
            gnomon_context_destroy(other);
        }
        gnomon_neighbors_free(ctx, &first);
        gnomon_lsh_destroy(index);
        free_data(p);
    }
}

/* One batch whose queries are answered one by one, and one whose are not, but for a query with too
 * few points in its list, which all points answer: none is counted for it that another had. */
static void work_of_batches(void **state)
{
    (void)state;
    enum { FEW = 5, MANY = 300, LAST = 2, POINTS = FEW + MANY + LAST, ASKED = 20, K = 3 };
    const float centres[] = {0, 1000, 2000};
    float points[POINTS], queries[ASKED];
    gnomon_context_options c = GNOMON_CONTEXT_OPTIONS_INIT;
    c.device = "cpu";
    c.threads = 1;
    c.memory_limit = 480; /* of which ten queries are a batch */
    gnomon_context *poor;
    gnomon_lsh *index;
    gnomon_neighbors found = {.struct_size = sizeof found};
    gnomon_lsh_work work = {.struct_size = sizeof work};
    gnomon_lsh_options o = GNOMON_LSH_OPTIONS_INIT;
    gnomon_search_options s = GNOMON_SEARCH_OPTIONS_INIT;
    o.metric = s.metric = GNOMON_L2;
    o.functions.family = GNOMON_LSH_KMEANS;
    o.functions.dim = 1;
    o.functions.centre_count = 3;
    o.functions.centres = centres;
    o.tables = o.coarse = 1;
    s.k = K;
    for (int i = 0; i < POINTS; i++)
        points[i] = centres[i < FEW ? 0 : i < FEW + MANY ? 1 : 2] + (float)i / 8;
    for (int i = 0; i < ASKED; i++)
        queries[i] = centres[i < ASKED / 2 ? 0 : i < ASKED - 1 ? 1 : 2];
    const gnomon_matrix base = gnomon_matrix_rowmajor(points, GNOMON_F32, POINTS, 1),
                        asked = gnomon_matrix_rowmajor(queries, GNOMON_F32, ASKED, 1);
    ASSERT_OK(ctx, gnomon_context_create(&c, &poor));
    ASSERT_OK(poor, gnomon_lsh_create(poor, &o, &index));
    ASSERT_OK(poor, gnomon_lsh_add(index, &base));
    ASSERT_OK(poor, gnomon_lsh_query(poor, index, &asked, &s, NULL, &found, &work));
    assert_int_equal(work.buckets, ASKED);
    assert_int_equal(work.exact, 1);
    assert_int_equal(work.candidates, ASKED / 2 * FEW + (ASKED / 2 - 1) * MANY + LAST);
    gnomon_neighbors_free(poor, &found);
    gnomon_lsh_destroy(index);
    gnomon_context_destroy(poor);
}

/* Each list is one bucket: the keys of all numbers that a list can have differ. */
static int by_key(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void no_two_lists_are_one_bucket(void **state)
{
    (void)state;
    uint64_t *keys = malloc(GNOMON_LSH_MOST_CENTRES * sizeof *keys);
    assert_non_null(keys);
    for (uint64_t l = 0; l < GNOMON_LSH_MOST_CENTRES; l++)
        keys[l] = gnomon_key_of(l * gnomon_key_multiplier(0), 0);
    qsort(keys, GNOMON_LSH_MOST_CENTRES, sizeof *keys, by_key);
    for (int64_t l = 1; l < GNOMON_LSH_MOST_CENTRES; l++)
        assert_true(keys[l - 1] < keys[l]);
    free(keys);
}

/* ---- what is refused ---- */

static void what_is_refused(void **state)
{
    (void)state;
    data *p = make_data(90, false, 6, GNOMON_F32, false);
    gnomon_lsh *index;
    gnomon_lsh_options o;
#define REFUSED(change, status, part)                                            \
    do {                                                                         \
        o = options_of(p);                                                       \
        change;                                                                  \
        ASSERT_FAILS(ctx, gnomon_lsh_create(ctx, &o, &index), (status), (part)); \
        assert_null(index);                                                      \
    } while (0)
    REFUSED(o.tables = 2, GNOMON_ERROR_ARGUMENT, "options.tables is 2; of k-means it must be 1");
    assert_string_equal(gnomon_last_error_argument(ctx), "options.tables");
    REFUSED(o.coarse = 2, GNOMON_ERROR_ARGUMENT, "coarse is 2; of k-means it must be 1");
    assert_string_equal(gnomon_last_error_argument(ctx), "options.coarse");
    REFUSED(o.fine = 1, GNOMON_ERROR_ARGUMENT, "fine is 1; of k-means it must be 0");
    assert_string_equal(gnomon_last_error_argument(ctx), "options.fine");
    REFUSED(o.codes = 8, GNOMON_ERROR_ARGUMENT, "codes is 8; of k-means it must be 0");
    assert_string_equal(gnomon_last_error_argument(ctx), "options.codes");
    REFUSED(o.search_params.rerank = 8, GNOMON_ERROR_ARGUMENT, "rerank");
    REFUSED(o.search_params.coarse = 8, GNOMON_ERROR_ARGUMENT, "coarse");
    REFUSED(o.search_params.tables = 2, GNOMON_ERROR_ARGUMENT, "tables");
    REFUSED(o.functions.width = 1, GNOMON_ERROR_ARGUMENT, "width");
    REFUSED(o.functions.sides = 4, GNOMON_ERROR_ARGUMENT, "sides");
    gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
    REFUSED(o.functions.descriptor = &d, GNOMON_ERROR_ARGUMENT, "descriptor");
    REFUSED(o.metric = GNOMON_COSINE, GNOMON_ERROR_ARGUMENT, "k-means");
    REFUSED(o.functions.centre_count = 1, GNOMON_ERROR_ARGUMENT, "it must be 2 to 65536");
    REFUSED(o.functions.centre_count = 65537, GNOMON_ERROR_ARGUMENT, "it must be 2 to 65536");
    REFUSED(o.functions.centre_count = 0, GNOMON_ERROR_ARGUMENT, "centre_count is 0");
    REFUSED(o.functions.centres = NULL, GNOMON_ERROR_ARGUMENT, "gnomon_lsh_train makes them");
    REFUSED(o.functions.dim = (int64_t)1 << 60, GNOMON_ERROR_ARGUMENT, "2^56");
    REFUSED(p->centres[8] = NAN, GNOMON_ERROR_NONFINITE, "row 1, column 2");
    p->centres[8] = 0;
    /* centres of others */
    REFUSED((o.functions.family = GNOMON_LSH_PSTABLE, o.functions.width = 1), GNOMON_ERROR_ARGUMENT,
            "p-stable takes none");
    REFUSED((o.functions.family = GNOMON_LSH_PSTABLE, o.functions.width = 1,
             o.functions.centres = NULL),
            GNOMON_ERROR_ARGUMENT, "p-stable takes none");
#undef REFUSED
    o = options_of(p);
    gnomon_hasher *h;
    double law;
    o.functions.count = 2;
    ASSERT_FAILS(ctx, gnomon_hasher_create(ctx, &o.functions, &h), GNOMON_ERROR_ARGUMENT,
                 "of k-means it must be 1");
    ASSERT_FAILS(ctx, gnomon_lsh_collision(ctx, &o.functions, 1, &law), GNOMON_ERROR_UNSUPPORTED,
                 "depends on its centres");
    /* sparse points and queries */
    index = index_of(ctx, p, false);
    const int64_t offsets[] = {0, 1}, members[] = {3};
    const float one = 1;
    const gnomon_csr csr = {1, 6, offsets, members, &one, GNOMON_F32};
    const gnomon_search_options s = search_of(p, &(asking){.k = 1, .exclude = -1}, 0);
    gnomon_neighbors found = {.struct_size = sizeof found};
    ASSERT_FAILS(ctx, gnomon_lsh_add_csr(index, &csr), GNOMON_ERROR_UNSUPPORTED, "sparse");
    ASSERT_FAILS(ctx, gnomon_lsh_query_csr(ctx, index, &csr, &s, NULL, &found, NULL),
                 GNOMON_ERROR_UNSUPPORTED, "sparse");
    gnomon_lsh_destroy(index);
    o = options_of(p);
    ASSERT_OK(ctx, gnomon_lsh_create(ctx, &o, &index)); /* without a point */
    ASSERT_FAILS(ctx, gnomon_lsh_add_csr(index, &csr), GNOMON_ERROR_UNSUPPORTED, "sparse");
    ASSERT_FAILS(ctx, gnomon_lsh_query(ctx, index, &p->queries.m, &s, NULL, &found, NULL),
                 GNOMON_ERROR_ARGUMENT, "0 points");
    /* points that have no distance */
    set_element(&p->blocks[0].m, 9, 2, (double)INFINITY);
    ASSERT_FAILS(ctx, gnomon_lsh_add(index, &p->blocks[0].m), GNOMON_ERROR_NONFINITE,
                 "row 9, column 2");
    gnomon_lsh_info info = {.struct_size = sizeof info};
    gnomon_lsh_describe(index, &info);
    assert_int_equal(info.points, 0);
    assert_int_equal(info.other_bytes, CENTRES * 6 * 4);
    assert_int_equal(info.options.functions.centre_count, CENTRES);
    assert_memory_equal(info.options.functions.centres, p->centres, CENTRES * 6 * 4);
    gnomon_lsh_destroy(index);
    /* more memory than allowed: centres count */
    o.memory = CENTRES * 6 * 4;
    ASSERT_OK(ctx, gnomon_lsh_create(ctx, &o, &index));
    ASSERT_FAILS(ctx, gnomon_lsh_add(index, &p->blocks[1].m), GNOMON_ERROR_MEMORY,
                 "options.memory is 336");
    gnomon_lsh_destroy(index);
    free_data(p);
}

/* ---- memory ---- */

static gnomon_status whole_life(gnomon_context *with, const data *p, gnomon_neighbors *found)
{
    const gnomon_lsh_options o = options_of(p);
    const gnomon_search_options s = search_of(p, &(asking){.k = 3, .exclude = 2}, 0);
    gnomon_lsh_search_params e = GNOMON_LSH_SEARCH_PARAMS_INIT;
    const int64_t id = 4;
    gnomon_lsh *index = NULL;
    e.probes = 3;
    gnomon_status status = gnomon_lsh_create(with, &o, &index);
    for (int b = 0; b < BLOCKS && status == GNOMON_OK; b++)
        status = gnomon_lsh_add(index, &p->blocks[b].m);
    if (status == GNOMON_OK) status = gnomon_lsh_remove(index, &id, 1);
    if (status == GNOMON_OK) status = gnomon_lsh_compact(index);
    if (status == GNOMON_OK)
        status = gnomon_lsh_query(with, index, &p->queries.m, &s, &e, found, NULL);
    gnomon_lsh_destroy(index);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    for (int cosine = 0; cosine < 2; cosine++) {
        data *p = make_data(95, cosine, 8, GNOMON_F32, false);
        int failures = 0;
        for (int64_t n = 0;; n++) {
            misers m = {.left = n};
            const gnomon_allocator a = {&m, miser_allocate, miser_release};
            gnomon_context_options c = GNOMON_CONTEXT_OPTIONS_INIT;
            c.allocator = &a;
            c.threads = 2;
            c.device = "cpu";
            gnomon_context *poor;
            if (gnomon_context_create(&c, &poor) != GNOMON_OK) continue;
            gnomon_neighbors found = {.struct_size = sizeof found};
            const gnomon_status status = whole_life(poor, p, &found);
            gnomon_neighbors_free(poor, &found);
            gnomon_context_destroy(poor);
            assert_int_equal(m.out, 0);
            if (status == GNOMON_OK) break;
            assert_int_equal(status, GNOMON_ERROR_MEMORY);
            failures++;
        }
        assert_true(failures > 60);
        free_data(p);
    }
}

/* Of many queries that ask for many lists some are answered at a time: found with their distances,
 * the numbers of all that a batch has would take twice the limit. */
static void many_lists_within_the_limit(void **state)
{
    (void)state;
    enum { ASKED = 20000, LISTS = 128, LIMIT = 16 << 20, SCRATCH = 4 << 20 };
    float *x = malloc(ASKED * sizeof *x);
    assert_non_null(x);
    for (int i = 0; i < ASKED; i++)
        x[i] = (float)(i * 7919 % ASKED);
    const gnomon_matrix queries = gnomon_matrix_rowmajor(x, GNOMON_F32, ASKED, 1),
                        base = gnomon_matrix_rowmajor(x, GNOMON_F32, 2 * LISTS, 1);
    meter m = {0};
    const gnomon_allocator a = {&m, meter_allocate, meter_release};
    gnomon_context_options c = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context *poor;
    gnomon_lsh *index;
    gnomon_neighbors found = {.struct_size = sizeof found};
    gnomon_lsh_options o = GNOMON_LSH_OPTIONS_INIT;
    gnomon_search_options s = GNOMON_SEARCH_OPTIONS_INIT;
    gnomon_lsh_search_params e = GNOMON_LSH_SEARCH_PARAMS_INIT;
    c.allocator = &a;
    c.device = "cpu";
    c.threads = 2;
    c.memory_limit = LIMIT;
    o.metric = s.metric = GNOMON_L2;
    o.functions.family = GNOMON_LSH_KMEANS;
    o.functions.dim = 1;
    o.functions.centre_count = LISTS;
    o.functions.centres = x;
    o.tables = o.coarse = 1;
    s.k = 1;
    e.probes = LISTS - 1;
    e.candidates = 4; /* one by one */
    ASSERT_OK(ctx, gnomon_context_create(&c, &poor));
    ASSERT_OK(poor, gnomon_lsh_create(poor, &o, &index));
    ASSERT_OK(poor, gnomon_lsh_add(index, &base));
    const int64_t before = m.peak = m.held;
    ASSERT_OK(poor, gnomon_lsh_query(poor, index, &queries, &s, &e, &found, NULL));
    const int64_t answers = ASKED * 3 * 16; /* found, and as they are returned */
    assert_true(m.peak - before < LIMIT + SCRATCH + answers);
    gnomon_neighbors_free(poor, &found);
    gnomon_lsh_destroy(index);
    gnomon_context_destroy(poor);
    free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(values_are_the_nearest_centres),
                                       cmocka_unit_test(queries_of_every_type),
                                       cmocka_unit_test(queries_of_every_kind),
                                       cmocka_unit_test(a_limit_and_a_radius),
                                       cmocka_unit_test(compacted_lists),
                                       cmocka_unit_test(same_whatever_threads_batches_and_level),
                                       cmocka_unit_test(work_of_batches),
                                       cmocka_unit_test(no_two_lists_are_one_bucket),
                                       cmocka_unit_test(what_is_refused),
                                       cmocka_unit_test(every_allocation_may_fail),
                                       cmocka_unit_test(many_lists_within_the_limit)};
    return cmocka_run_group_tests(tests, open_context, close_context);
}

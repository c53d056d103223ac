/* What the tests of index files share: small points of every metric, indexes of them, files as
 * bytes. */
#ifndef TESTS_LSH_FILE_TESTING_H
#define TESTS_LSH_FILE_TESTING_H

#include "lsh/file/file.h"
#include "project.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { N = 300, Q = 12, D = 12, MEMBERS = 9, FAMILIES = 8, CENTRES = 5 };

typedef struct points {
    float x[(N + Q) * D];
    double f64[N * D];
    uint8_t bits[(N + Q) * D];
    int64_t offsets[N + Q + 1], members[(N + Q) * MEMBERS];
    float ones[(N + Q) * MEMBERS];
} points;

static MAYBE_UNUSED points *make_points(uint64_t seed)
{
    points *p = malloc(sizeof *p);
    assert_non_null(p);
    float centres[20 * D];
    for (int i = 0; i < 20 * D; i++)
        centres[i] = (float)(4 * next_uniform(&seed));
    for (int i = 0; i < N + Q; i++) {
        const int c = (int)(next_random(&seed) % 20);
        for (int j = 0; j < D; j++) {
            p->x[i * D + j] = centres[c * D + j] + (float)next_uniform(&seed);
            if (i < N) p->f64[i * D + j] = (double)p->x[i * D + j] + 0.25;
            p->bits[i * D + j] =
                (uint8_t)(c * 37 + j * 11) ^
                (uint8_t)(next_random(&seed) & next_random(&seed) & next_random(&seed));
        }
        p->offsets[i] = i * MEMBERS;
        for (int j = 0; j < MEMBERS; j++) {
            p->members[i * MEMBERS + j] =
                c * MEMBERS + j +
                (next_random(&seed) % 4 == 0 ? 200 + (int64_t)(next_random(&seed) % 99) : 0);
            p->ones[i * MEMBERS + j] = 1;
        }
    }
    p->offsets[N + Q] = (N + Q) * MEMBERS;
    return p;
}

static const gnomon_lsh_family file_families[FAMILIES] = {
    GNOMON_LSH_PSTABLE,      GNOMON_LSH_SIMHASH,         GNOMON_LSH_CROSS_POLYTOPE,
    GNOMON_LSH_BIT_SAMPLING, GNOMON_LSH_MINHASH,         GNOMON_LSH_PSTABLE_L1,
    GNOMON_LSH_KMEANS,       GNOMON_LSH_SPHERICAL_KMEANS};

/* One table of one function: centres somewhere among the points. */
static void set_centres(gnomon_lsh_options *o)
{
    static float centres[CENTRES * D];
    for (int i = 0; i < CENTRES * D; i++)
        centres[i] = (float)(i * 37 % 101) / 20;
    o->functions.centre_count = CENTRES;
    o->functions.centres = centres;
    o->tables = o->coarse = 1;
    o->fine = 0;
}

static MAYBE_UNUSED gnomon_lsh_options file_options(int f)
{
    gnomon_lsh_options o = GNOMON_LSH_OPTIONS_INIT;
    o.functions.family = file_families[f];
    o.metric = f == 0 || f == 6 ? GNOMON_L2
               : f == 3         ? GNOMON_HAMMING
               : f == 4         ? GNOMON_JACCARD
               : f == 5         ? GNOMON_L1
                                : GNOMON_COSINE;
    o.functions.dim = f == 4 ? 600 : D;
    o.functions.seed = f == 1 ? UINT64_C(0xfedcba9876543210) : 5;
    if (f == 0) o.functions.width = 7.3;
    if (f == 5) o.functions.width = 20;
    if (f == 2) o.functions.sides = 4;
    o.tables = 3;
    o.coarse = f == 1 || f == 3 ? 6 : 2;
    o.fine = f % 2;
    if (f >= 6) set_centres(&o);
    o.codes = f < 2 ? 8 : 0;
    o.search_params.probes = 7;
    o.search_params.coarse = o.fine > 0 ? 4 : 0;
    o.search_params.rerank = o.codes > 0 ? 20 : 0;
    return o;
}

static MAYBE_UNUSED gnomon_matrix rows_of(points *p, const gnomon_lsh_options *o, int64_t first,
                                          int64_t count)
{
    if (o->metric == GNOMON_HAMMING)
        return gnomon_matrix_rowmajor(p->bits + first * D, GNOMON_U8, count, D);
    return gnomon_matrix_rowmajor(p->x + first * D, GNOMON_F32, count, D);
}

static MAYBE_UNUSED gnomon_csr sets_of(const points *p, int64_t first, int64_t count)
{
    return (gnomon_csr){count,   600,       p->offsets + first, p->members + first * MEMBERS,
                        p->ones, GNOMON_F32};
}

static MAYBE_UNUSED gnomon_status add_rows(gnomon_lsh *index, points *p,
                                           const gnomon_lsh_options *o, int64_t first,
                                           int64_t count)
{
    const gnomon_matrix m = rows_of(p, o, first, count);
    const gnomon_csr csr = sets_of(p, first, count);
    return o->metric == GNOMON_JACCARD ? gnomon_lsh_add_csr(index, &csr)
                                       : gnomon_lsh_add(index, &m);
}

static MAYBE_UNUSED gnomon_status build_rows(gnomon_lsh_builder *b, points *p,
                                             const gnomon_lsh_options *o, int64_t first,
                                             int64_t count)
{
    const gnomon_matrix m = rows_of(p, o, first, count);
    const gnomon_csr csr = sets_of(p, first, count);
    return o->metric == GNOMON_JACCARD ? gnomon_lsh_builder_add_csr(b, &csr)
                                       : gnomon_lsh_builder_add(b, &m);
}

static MAYBE_UNUSED gnomon_lsh *index_of(gnomon_context *ctx, points *p,
                                         const gnomon_lsh_options *o, int64_t count)
{
    gnomon_lsh *index;
    ASSERT_OK(ctx, gnomon_lsh_create(ctx, o, &index));
    ASSERT_OK(ctx, add_rows(index, p, o, 0, count));
    return index;
}

static MAYBE_UNUSED gnomon_status ask(gnomon_context *ctx, points *p, const gnomon_lsh *index,
                                      int64_t k, gnomon_neighbors *out)
{
    gnomon_search_options s = GNOMON_SEARCH_OPTIONS_INIT;
    *out = (gnomon_neighbors){.struct_size = sizeof *out};
    s.metric = index->options.metric;
    s.k = k;
    const gnomon_matrix m = rows_of(p, &index->options, N, Q);
    const gnomon_csr csr = sets_of(p, N, Q);
    return s.metric == GNOMON_JACCARD ? gnomon_lsh_query_csr(ctx, index, &csr, &s, NULL, out, NULL)
                                      : gnomon_lsh_query(ctx, index, &m, &s, NULL, out, NULL);
}

static MAYBE_UNUSED void same_answers(gnomon_context *ctx, points *p, const gnomon_lsh *a,
                                      const gnomon_lsh *b)
{
    gnomon_neighbors x, y;
    ASSERT_OK(ctx, ask(ctx, p, a, 4, &x));
    ASSERT_OK(ctx, ask(ctx, p, b, 4, &y));
    assert_memory_equal(x.ids, y.ids, Q * 4 * sizeof *x.ids);
    assert_memory_equal(x.distances, y.distances, Q * 4 * sizeof *x.distances);
    assert_int_equal(x.compared, y.compared);
    gnomon_neighbors_free(ctx, &x);
    gnomon_neighbors_free(ctx, &y);
}

/* ---- files ---- */

typedef struct bytes {
    unsigned char *data;
    size_t size;
} bytes;

static MAYBE_UNUSED bytes read_bytes(const char *path)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    bytes b = {malloc(1 << 20), 0};
    assert_non_null(b.data);
    b.size = fread(b.data, 1, 1 << 20, file);
    assert_true(b.size < 1 << 20);
    fclose(file);
    return b;
}

static MAYBE_UNUSED void write_bytes(const char *path, const void *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static MAYBE_UNUSED void same_file(const char *a, const char *b)
{
    bytes x = read_bytes(a), y = read_bytes(b);
    assert_int_equal(x.size, y.size);
    assert_memory_equal(x.data, y.data, x.size);
    free(x.data);
    free(y.data);
}

/* A folder of the test's own, as the current one. */
static MAYBE_UNUSED void own_folder(void)
{
    char folder[] = "/tmp/gnomon-test-XXXXXX";
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
}

static MAYBE_UNUSED void leave_folder(void)
{
    char folder[256];
    assert_non_null(getcwd(folder, sizeof folder));
    assert_int_equal(chdir("/"), 0);
    /* what is left there is a test's mistake */
    if (rmdir(folder) != 0) fail_msg("%s is not empty", folder);
}

#endif

/* An index that several ranks build is the file of one process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "comm_testing.h"
#include "refusal.h"

#include <math.h>
#include <unistd.h>

enum { MOST = 9000, COLS = 7 };

typedef struct job {
    double f64[MOST * COLS];
    float f32[MOST * COLS];
    uint8_t u8[MOST * COLS];
    int64_t rows;
    gnomon_dtype dtype;
    gnomon_lsh_options options;
    int way, odd; /* of failures: what rank 'odd' does */
    double bad;   /* its coordinate, in f64 */
    int bogus;    /* bytes of its pieces */
    long at;      /* the allocation that is refused */
    int64_t reads[MOST_RANKS];
} job;

static job the;
static char due[64], got[64];

static void make(job *j)
{
    for (int64_t i = 0; i < (int64_t)MOST * COLS; i++) {
        j->u8[i] = (uint8_t)next_random();
        j->f64[i] = (double)(next_random() % 2000) / 300 - 3;
        j->f32[i] = (float)j->f64[i];
    }
    j->options = (gnomon_lsh_options)GNOMON_LSH_OPTIONS_INIT;
    j->options.metric = GNOMON_L2;
    j->options.functions.family = GNOMON_LSH_PSTABLE;
    j->options.functions.width = 4;
    j->options.functions.dim = COLS;
    j->options.tables = 3;
    j->options.coarse = 4;
}

/* Lists by some of the points as centres. */
static void use_centres(job *j)
{
    j->options.metric = GNOMON_L2;
    j->options.functions.family = GNOMON_LSH_KMEANS;
    j->options.functions.width = 0;
    j->options.functions.centre_count = 20;
    j->options.functions.centres = j->f32 + COLS;
    j->options.tables = j->options.coarse = 1;
}

static const void *data_of(const job *j)
{
    return j->dtype == GNOMON_F64 ? j->f64 : j->dtype == GNOMON_F32 ? (const void *)j->f32 : j->u8;
}

typedef struct reader {
    job *j;
    int rank;
    int64_t next;
} reader;

static gnomon_status read_rows(void *user, int64_t first, const gnomon_matrix *to)
{
    reader *r = user;
    const job *j = r->j;
    const size_t row = COLS * gnomon_dtype_size(j->dtype);
    assert_true(first >= r->next && to->rows > 0 && first + to->rows <= j->rows);
    assert_true(to->col_stride == 1 && to->row_stride == COLS && to->dtype == j->dtype);
    r->next = first + to->rows;
    r->j->reads[r->rank] += to->rows;
    if (j->way == 1 && r->rank == j->odd) return GNOMON_ERROR_IO;
    memcpy(to->data, (const char *)data_of(j) + (size_t)first * row, (size_t)to->rows * row);
    if (j->way == 2 && r->rank == j->odd) {
        if (j->dtype == GNOMON_F64)
            ((double *)to->data)[COLS + 2] = j->bad;
        else
            ((float *)to->data)[COLS + 2] = NAN;
    }
    return GNOMON_OK;
}

static void build(rank_run *run)
{
    job *j = run->arg;
    const bool odd = run->comm.rank == j->odd;
    reader r = {j, run->comm.rank, 0};
    gnomon_lsh_options options = j->options;
    gnomon_join_points points = {&r, j->rows, COLS, j->dtype, read_rows};
    const char *path = run->comm.rank == 0 ? got : "nowhere/at all";
    if (odd && j->way == 3) options.tables++;
    if (odd && j->way == 4) points.rows--;
    if (odd && j->way == 5) points.read = NULL;
    if (odd && j->way == 6) options.coarse = -1;
    if (odd && j->way == 9) options.functions.seed++;
    if (odd && j->way == 10) options.functions.width = 5;
    if (odd && j->way == 11) options.functions.centres++; /* another number in each place */
    if (j->way == 7) path = "nowhere/at all";
    run->status = gnomon_comm_lsh_build(run->ctx, &run->comm, &options,
                                        odd && j->way == 8 ? NULL : &points, path);
}

static void expect_same(void)
{
    FILE *a = fopen(due, "rb"), *b = fopen(got, "rb");
    assert_true(a != NULL && b != NULL);
    for (int x = 0, y = 0; x != EOF;) {
        x = getc(a);
        y = getc(b);
        assert_int_equal(x, y);
    }
    fclose(a);
    fclose(b);
}

static void build_alone(const job *j)
{
    gnomon_context *ctx;
    gnomon_lsh_builder *b = NULL;
    const gnomon_matrix all =
        gnomon_matrix_rowmajor((void *)(uintptr_t)data_of(j), j->dtype, j->rows, COLS);
    assert_int_equal(gnomon_context_create(NULL, &ctx), GNOMON_OK);
    assert_int_equal(gnomon_lsh_builder_create(ctx, &j->options, due, &b), GNOMON_OK);
    if (j->rows > 0) assert_int_equal(gnomon_lsh_builder_add(b, &all), GNOMON_OK);
    assert_int_equal(gnomon_lsh_builder_finish(b), GNOMON_OK);
    gnomon_context_destroy(ctx);
}

static void test_same_bytes(void **state)
{
    static const int64_t rows[] = {0, 1, 255, 257, 3000, MOST};
    (void)state;
    job *j = &the;
    rank_run runs[MOST_RANKS];
    make(j);
    j->odd = -1;
    for (int way = 0; way < 4; way++) {
        j->dtype = way == 0 || way == 3 ? GNOMON_F32 : way == 1 ? GNOMON_F64 : GNOMON_U8;
        if (way == 2) {
            j->options.metric = GNOMON_HAMMING;
            j->options.functions.family = GNOMON_LSH_BIT_SAMPLING;
            j->options.functions.width = 0;
        }
        if (way == 3) use_centres(j);
        for (size_t n = 0; n < sizeof rows / sizeof rows[0]; n++) {
            j->rows = rows[n];
            build_alone(j);
            for (int size = 1; size <= 7; size += 1 + size / 4) {
                memset(j->reads, 0, sizeof j->reads);
                run_ranks(size, build, j, runs);
                int64_t all = 0;
                for (int i = 0; i < size; i++) {
                    assert_int_equal(runs[i].status, GNOMON_OK);
                    all += j->reads[i];
                    assert_true(j->rows < MOST || j->reads[i] >= MOST / size / 2);
                }
                assert_int_equal(all, j->rows);
                expect_same();
            }
        }
    }
}

/* The file that a failure must leave as it is. */
static void build_both(job *j)
{
    rank_run runs[MOST_RANKS];
    j->way = 0;
    j->odd = -1;
    build_alone(j);
    run_ranks(2, build, j, runs);
    expect_same();
}

/* A failure of any rank is that of all, names it, and leaves the file as it was. */
static void test_failures(void **state)
{
    static const struct {
        gnomon_status status;
        const char *said;
    } ways[] = {{GNOMON_OK, ""},
                {GNOMON_ERROR_IO, ""},
                {GNOMON_ERROR_NONFINITE, "column 2"},
                {GNOMON_ERROR_SHAPE, "by other options"},
                {GNOMON_ERROR_SHAPE, "other points"},
                {GNOMON_ERROR_ARGUMENT, "points.read"},
                {GNOMON_ERROR_ARGUMENT, "coarse"},
                {GNOMON_ERROR_NOT_FOUND, "nowhere"},
                {GNOMON_ERROR_ARGUMENT, "points"},
                {GNOMON_ERROR_SHAPE, "by other options"},
                {GNOMON_ERROR_SHAPE, "by other options"}};
    (void)state;
    job *j = &the;
    rank_run runs[MOST_RANKS];
    make(j);
    j->rows = 3000;
    j->dtype = GNOMON_F32;
    build_both(j);
    for (j->way = 1; j->way < (int)(sizeof ways / sizeof ways[0]); j->way++)
        for (j->odd = 0; j->odd < 4; j->odd++) {
            if (j->way == 7 && j->odd > 0) break;
            char said[32];
            run_ranks(4, build, j, runs);
            /* where all are compared with rank 0, it is the others that differ */
            const bool compared = j->way == 3 || j->way == 4 || j->way > 8;
            const int rank = compared && j->odd == 0 ? 1 : j->odd;
            snprintf(said, sizeof said, "rank %d: ", rank);
            for (int i = 0; i < 4; i++) {
                assert_int_equal(runs[i].status, ways[j->way].status);
                assert_non_null(strstr(runs[i].text, ways[j->way].said));
                assert_true(i == rank || strncmp(runs[i].text, said, strlen(said)) == 0);
            }
            expect_same(); /* as the last test left it, and the one alone */
        }
    j->way = 0;
}

/* The row is that among all points, in fp64 too, where numbers may also be too large. */
static void test_bad_rows(void **state)
{
    enum { PIECE = 256 }; /* the least, which 3000 points on 4 ranks come to */
    static const struct {
        gnomon_dtype dtype;
        double bad;
        gnomon_status status;
    } ways[] = {{GNOMON_F32, NAN, GNOMON_ERROR_NONFINITE},
                {GNOMON_F64, NAN, GNOMON_ERROR_NONFINITE},
                {GNOMON_F64, 1e200, GNOMON_ERROR_UNSUPPORTED}};
    (void)state;
    job *j = &the;
    rank_run runs[MOST_RANKS];
    char said[64];
    make(j);
    j->rows = 3000;
    j->way = 2;
    for (size_t n = 0; n < sizeof ways / sizeof ways[0]; n++)
        for (j->odd = 0; j->odd < 4; j->odd++) {
            j->dtype = ways[n].dtype;
            j->bad = ways[n].bad;
            snprintf(said, sizeof said, "in row %d, column 2", j->odd * PIECE + 1);
            run_ranks(4, build, j, runs);
            for (int i = 0; i < 4; i++) {
                assert_int_equal(runs[i].status, ways[n].status);
                assert_non_null(strstr(runs[i].text, said));
            }
        }
    j->way = 0;
}

/* Ranks with other centres would give points to other lists. */
static void test_other_centres(void **state)
{
    (void)state;
    job *j = &the;
    rank_run runs[MOST_RANKS];
    make(j);
    use_centres(j);
    j->rows = 3000;
    j->dtype = GNOMON_F32;
    build_both(j);
    j->way = 11;
    j->odd = 2;
    run_ranks(4, build, j, runs);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(runs[i].status, GNOMON_ERROR_SHAPE);
        assert_non_null(strstr(runs[i].text, "by other options"));
    }
    expect_same();
    j->way = 0;
}

static void test_refusals(void **state)
{
    (void)state;
    job *j = &the;
    rank_run runs[MOST_RANKS];
    make(j);
    j->rows = 10;
    j->way = 0;
    j->odd = -1;
    j->dtype = GNOMON_F32;
    j->options.codes = 4;
    run_ranks(2, build, j, runs);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(runs[i].status, GNOMON_ERROR_UNSUPPORTED);
        assert_non_null(strstr(runs[i].text, "options.codes"));
    }
    j->options.codes = 0;
    j->options.metric = GNOMON_JACCARD;
    j->options.functions.family = GNOMON_LSH_MINHASH;
    j->options.functions.width = 0;
    run_ranks(2, build, j, runs);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(runs[i].status, GNOMON_ERROR_UNSUPPORTED);
        assert_non_null(strstr(runs[i].text, "dense points"));
    }
}

/* ---- a rank that sends what can't be pieces of this index ---- */

static gnomon_status make_ready(void *user, int64_t piece, const void **data, int64_t *bytes)
{
    (void)user;
    (void)data;
    if (piece < 3) *bytes = 0;
    return GNOMON_OK;
}

static gnomon_status make_bogus(void *user, int64_t piece, const void **data, int64_t *bytes)
{
    static const char some[40];
    (void)piece;
    *data = some;
    *bytes = *(const int *)user;
    return GNOMON_OK;
}

static void build_against(rank_run *run)
{
    job *j = run->arg;
    int64_t terms[6];
    if (run->comm.rank != j->odd) {
        build(run);
        return;
    }
    assert_int_equal(gnomon_comm_broadcast(run->ctx, &run->comm, terms, sizeof terms), GNOMON_OK);
    assert_int_equal(gnomon_comm_deal(run->ctx, &run->comm, make_ready, NULL, j), GNOMON_OK);
    run->status = gnomon_comm_deal(run->ctx, &run->comm, make_bogus, NULL, &j->bogus);
}

static void test_hostile_pieces(void **state)
{
    static const int bytes[] = {0, 13, 40};
    (void)state;
    job *j = &the;
    rank_run runs[MOST_RANKS];
    make(j);
    j->rows = 3000;
    j->dtype = GNOMON_F32;
    build_both(j);
    for (size_t n = 0; n < sizeof bytes / sizeof bytes[0]; n++)
        for (j->odd = 1; j->odd < 3; j->odd++) {
            j->bogus = bytes[n];
            run_ranks(3, build_against, j, runs);
            for (int i = 0; i < 3; i++) {
                assert_int_equal(runs[i].status, GNOMON_ERROR_DATA);
                assert_non_null(strstr(runs[i].text, "points are due"));
            }
            expect_same();
        }
    j->way = 0;
}

/* An allocation that a rank is refused: all are told of it, or that rank ends all. */
static void build_without_memory(rank_run *run)
{
    job *j = run->arg;
    refusal refused = {.at = run->comm.rank == j->odd ? j->at : -1};
    const gnomon_allocator allocator = {&refused, refusing, releasing};
    gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context *own = run->ctx;
    o.threads = 1;
    o.device = "cpu";
    o.allocator = &allocator;
    run->status = gnomon_context_create(&o, &run->ctx);
    if (run->status == GNOMON_OK) {
        refused.calls = 0;
        build(run);
        gnomon_context_destroy(run->ctx);
    } else {
        run->comm.abort(run->comm.user, 1);
    }
    assert_int_equal(refused.out, 0);
    run->ctx = own;
}

static void test_memory(void **state)
{
    (void)state;
    job *j = &the;
    rank_run runs[MOST_RANKS];
    make(j);
    j->rows = 600;
    j->dtype = GNOMON_F32;
    build_both(j);
    for (j->odd = 0; j->odd < 3; j->odd++) {
        int told = 0;
        for (j->at = 0;; j->at++) {
            run_ranks(3, build_without_memory, j, runs);
            const gnomon_status status = runs[j->odd].status;
            for (int i = 0; i < 3 && status != GNOMON_ERROR_COMM; i++)
                assert_true(runs[i].status == status || runs[i].status == GNOMON_ERROR_COMM);
            if (status == GNOMON_OK) break;
            assert_true(status == GNOMON_ERROR_MEMORY || status == GNOMON_ERROR_COMM);
            told += status == GNOMON_ERROR_MEMORY;
            assert_true(j->at < 3000);
        }
        assert_true(told > 0);
        expect_same();
    }
}

static void test_damage(void **state)
{
    (void)state;
    job *j = &the;
    make(j);
    j->rows = 3000;
    j->dtype = GNOMON_F32;
    j->odd = -1;
    all_end_by_damage(3, build, j, 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bytes), cmocka_unit_test(test_failures),
        cmocka_unit_test(test_bad_rows),   cmocka_unit_test(test_other_centres),
        cmocka_unit_test(test_refusals),   cmocka_unit_test(test_hostile_pieces),
        cmocka_unit_test(test_memory),     cmocka_unit_test(test_damage)};
    snprintf(due, sizeof due, "comm-lsh-due-%d", (int)getpid());
    snprintf(got, sizeof got, "comm-lsh-got-%d", (int)getpid());
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    remove(due);
    remove(got);
    return failed;
}

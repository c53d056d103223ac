/* Indexes in files: what is saved comes back the same, however it was written; their life there;
 * threads; every allocation refused in turn. */
#include "lsh_file_testing.h"
#include "miser.h"

#include <pthread.h>

static gnomon_context *ctx;

static int open_context(void **state)
{
    (void)state;
    ctx = make_context(2, 0);
    own_folder();
    return 0;
}

static int close_context(void **state)
{
    (void)state;
    gnomon_context_destroy(ctx);
    leave_folder();
    return 0;
}

static gnomon_lsh *open_index(const char *path)
{
    gnomon_lsh *index;
    ASSERT_OK(ctx, gnomon_lsh_check(ctx, path, NULL, NULL));
    ASSERT_OK(ctx, gnomon_lsh_open(ctx, path, &index));
    return index;
}

static void same_description(const gnomon_lsh *a, const gnomon_lsh *b)
{
    gnomon_lsh_info x = {.struct_size = sizeof x}, y = x;
    gnomon_lsh_describe(a, &x);
    gnomon_lsh_describe(b, &y);
    assert_int_equal(x.points, y.points);
    assert_int_equal(x.removed, y.removed);
    assert_int_equal(x.buckets, y.buckets);
    assert_int_equal(x.largest, y.largest);
    assert_int_equal(x.table_bytes, y.table_bytes);
    assert_int_equal(x.code_bytes, y.code_bytes);
    assert_int_equal(x.other_bytes, y.other_bytes);
    assert_int_equal(x.options.functions.centre_count, y.options.functions.centre_count);
    assert_int_equal(x.options.metric, y.options.metric);
    assert_int_equal(x.options.tables, y.options.tables);
    assert_int_equal(x.options.search_params.probes, y.options.search_params.probes);
    assert_int_equal(x.options.search_params.rerank, y.options.search_params.rerank);
    assert_int_equal(x.options.functions.seed, y.options.functions.seed);
    assert_true(x.options.functions.width == y.options.functions.width);
    assert_int_equal(x.options.functions.descriptor != NULL,
                     y.options.functions.descriptor != NULL);
}

static void what_is_saved_comes_back(void **state)
{
    (void)state;
    points *p = make_points(1);
    for (int f = 0; f < FAMILIES; f++) {
        gnomon_lsh_options o = file_options(f);
        gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
        d.kind = f == 0 ? GNOMON_SJLT : GNOMON_BLOCK;
        d.seed = 77;
        if (f == 1) d.blocks = 2;
        if (f < 2) o.functions.descriptor = &d;
        gnomon_lsh *index = index_of(ctx, p, &o, N);
        const int64_t gone[] = {0, 3, N - 1};
        if (f != 3) ASSERT_OK(ctx, gnomon_lsh_remove(index, gone, 3));
        ASSERT_OK(ctx, gnomon_lsh_save(ctx, index, "a.idx"));
        gnomon_lsh *opened = open_index("a.idx");
        same_description(index, opened);
        same_answers(ctx, p, index, opened);
        ASSERT_OK(ctx, gnomon_lsh_save(ctx, opened, "b.idx"));
        same_file("a.idx", "b.idx");
        gnomon_lsh_destroy(index);
        gnomon_lsh_destroy(opened);
    }
    unlink("a.idx");
    unlink("b.idx");
    free(p);
}

/* However the points were cut into calls and runs, and on any number of threads. */
static void a_builder_writes_the_same(void **state)
{
    (void)state;
    points *p = make_points(2);
    gnomon_context *poor = make_context(3, 20000); /* runs of 256 points */
    static const int64_t cuts[] = {0, 170, 170, 171, 290, N};
    for (int f = 0; f < FAMILIES; f++) {
        gnomon_lsh_options o = file_options(f);
        gnomon_lsh_builder *b;
        o.codes = 0; /* whose scale depends on the first call */
        o.search_params.rerank = 0;
        gnomon_lsh *index = index_of(ctx, p, &o, N);
        ASSERT_OK(ctx, gnomon_lsh_save(ctx, index, "a.idx"));
        ASSERT_OK(poor, gnomon_lsh_builder_create(poor, &o, "b.idx", &b));
        for (int i = 0; i < 5; i++)
            ASSERT_OK(poor, build_rows(b, p, &o, cuts[i], cuts[i + 1] - cuts[i]));
        ASSERT_OK(poor, gnomon_lsh_builder_finish(b));
        same_file("a.idx", "b.idx");
        /* from a part that is a file already */
        ASSERT_OK(poor, gnomon_lsh_builder_create(poor, &o, "b.idx", &b));
        ASSERT_OK(poor, build_rows(b, p, &o, 0, 100));
        ASSERT_OK(poor, gnomon_lsh_builder_finish(b));
        gnomon_lsh *part = open_index("b.idx");
        ASSERT_OK(poor, gnomon_lsh_builder_extend(poor, part, "b.idx", 1, &b));
        ASSERT_FAILS(ctx, gnomon_lsh_compact(part), GNOMON_ERROR_BUSY, "queried");
        ASSERT_OK(poor, build_rows(b, p, &o, 100, N - 100));
        ASSERT_OK(poor, gnomon_lsh_builder_finish(b));
        same_file("a.idx", "b.idx");
        gnomon_lsh_destroy(part);
        gnomon_lsh_destroy(index);
    }
    gnomon_context_destroy(poor);
    unlink("a.idx");
    unlink("b.idx");
    free(p);
}

/* An index that was opened lives on as one in memory does, and so do its files. */
static void a_whole_life(void **state)
{
    (void)state;
    points *p = make_points(3);
    for (int f = 0; f < FAMILIES; f++) {
        const gnomon_lsh_options o = file_options(f);
        const int64_t first[] = {5, 6, 99}, second[] = {7, 250};
        gnomon_lsh *index = index_of(ctx, p, &o, 200);
        ASSERT_OK(ctx, gnomon_lsh_save(ctx, index, "a.idx"));
        gnomon_lsh *opened = open_index("a.idx");
        for (int round = 0; round < 2; round++) {
            gnomon_lsh *x = round == 0 ? index : opened;
            ASSERT_OK(ctx, gnomon_lsh_remove(x, first, 3));
            ASSERT_OK(ctx, add_rows(x, p, &o, 200, 80));
            ASSERT_OK(ctx, gnomon_lsh_compact(x));
            ASSERT_OK(ctx, gnomon_lsh_remove(x, second, 2));
            ASSERT_OK(ctx, add_rows(x, p, &o, 280, 20));
        }
        same_description(index, opened);
        same_answers(ctx, p, index, opened);
        ASSERT_OK(ctx, gnomon_lsh_save(ctx, opened, "a.idx")); /* where it came from */
        same_answers(ctx, p, index, opened);
        gnomon_lsh_destroy(opened);
        opened = open_index("a.idx");
        same_description(index, opened);
        same_answers(ctx, p, index, opened);
        /* compacted on its way to the file, as in memory */
        gnomon_lsh_builder *b;
        ASSERT_OK(ctx, gnomon_lsh_builder_extend(ctx, opened, "b.idx", 1, &b));
        ASSERT_OK(ctx, gnomon_lsh_builder_finish(b));
        ASSERT_OK(ctx, gnomon_lsh_compact(opened));
        ASSERT_OK(ctx, gnomon_lsh_save(ctx, opened, "a.idx"));
        same_file("a.idx", "b.idx");
        gnomon_lsh_destroy(opened);
        opened = open_index("b.idx");
        ASSERT_OK(ctx, gnomon_lsh_compact(index));
        same_answers(ctx, p, index, opened);
        gnomon_lsh_destroy(opened);
        gnomon_lsh_destroy(index);
    }
    unlink("a.idx");
    unlink("b.idx");
    free(p);
}

static bool holds(const char *path, const void *what, size_t size)
{
    const bytes b = read_bytes(path);
    const bool found = memmem(b.data, b.size, what, size) != NULL;
    free(b.data);
    return found;
}

/* Once compacted, a file has nothing of the points removed. */
static void compacting_erases(void **state)
{
    (void)state;
    points *p = make_points(4);
    const int64_t id = 123;
    /* members ascend in the file: a set's two largest are neighbours there */
    for (int f = 0; f < FAMILIES; f++) {
        const gnomon_lsh_options o = file_options(f);
        const gnomon_matrix row = rows_of(p, &o, id, 1);
        int64_t members[2] = {500, 599};
        const bool sets = o.metric == GNOMON_JACCARD;
        if (sets) memcpy(p->members + id * MEMBERS, members, sizeof members);
        const void *what = sets ? (const void *)members : row.data;
        const size_t size = sets ? sizeof members : D * gnomon_dtype_size(row.dtype);
        gnomon_lsh *index = index_of(ctx, p, &o, N);
        ASSERT_OK(ctx, gnomon_lsh_remove(index, &id, 1));
        ASSERT_OK(ctx, gnomon_lsh_save(ctx, index, "a.idx"));
        assert_true(holds("a.idx", what, size));
        ASSERT_OK(ctx, gnomon_lsh_compact(index));
        ASSERT_OK(ctx, gnomon_lsh_save(ctx, index, "a.idx"));
        assert_false(holds("a.idx", what, size));
        gnomon_lsh *opened = open_index("a.idx");
        same_answers(ctx, p, index, opened);
        gnomon_lsh_destroy(opened);
        gnomon_lsh_destroy(index);
    }
    unlink("a.idx");
    free(p);
}

/* Points of several types, without gaps between rows or with, are stored as they are. */
static void types_and_strides(void **state)
{
    (void)state;
    points *p = make_points(5);
    const gnomon_lsh_options o = file_options(0);
    gnomon_lsh *index;
    const gnomon_matrix f32 = gnomon_matrix_rowmajor(p->x, GNOMON_F32, 50, D);
    gnomon_matrix every_other = gnomon_matrix_rowmajor(p->x + 50 * D, GNOMON_F32, 50, D);
    every_other.row_stride = 2 * D;
    const gnomon_matrix across = gnomon_matrix_colmajor(p->f64, GNOMON_F64, 100, D);
    ASSERT_OK(ctx, gnomon_lsh_create(ctx, &o, &index));
    ASSERT_OK(ctx, gnomon_lsh_add(index, &f32));
    ASSERT_OK(ctx, gnomon_lsh_add(index, &every_other));
    ASSERT_OK(ctx, gnomon_lsh_add(index, &across));
    ASSERT_OK(ctx, gnomon_lsh_add(index, &f32));
    ASSERT_OK(ctx, gnomon_lsh_save(ctx, index, "a.idx"));
    gnomon_lsh *opened = open_index("a.idx");
    assert_int_equal(opened->block_count, 3);
    same_description(index, opened);
    same_answers(ctx, p, index, opened);
    gnomon_lsh_destroy(opened);
    gnomon_lsh_destroy(index);
    unlink("a.idx");
    free(p);
}

static void empty_ones(void **state)
{
    (void)state;
    points *p = make_points(6);
    int64_t all[40];
    for (int i = 0; i < 40; i++)
        all[i] = i;
    for (int f = 0; f < FAMILIES; f++) {
        const gnomon_lsh_options o = file_options(f);
        gnomon_lsh *index, *opened;
        ASSERT_OK(ctx, gnomon_lsh_create(ctx, &o, &index));
        ASSERT_OK(ctx, gnomon_lsh_save(ctx, index, "a.idx"));
        opened = open_index("a.idx");
        ASSERT_OK(ctx, add_rows(opened, p, &o, 0, 40));
        ASSERT_OK(ctx, add_rows(index, p, &o, 0, 40));
        same_answers(ctx, p, index, opened);
        gnomon_lsh_destroy(index);
        /* all removed, and out of the tables too */
        ASSERT_OK(ctx, gnomon_lsh_remove(opened, all, 40));
        ASSERT_OK(ctx, gnomon_lsh_compact(opened));
        ASSERT_OK(ctx, gnomon_lsh_save(ctx, opened, "a.idx"));
        gnomon_lsh_destroy(opened);
        opened = open_index("a.idx");
        gnomon_neighbors found;
        ASSERT_FAILS(ctx, ask(ctx, p, opened, 1, &found), GNOMON_ERROR_ARGUMENT, "0 points");
        ASSERT_OK(ctx, add_rows(opened, p, &o, 40, 40));
        ASSERT_OK(ctx, ask(ctx, p, opened, 40, &found));
        for (int i = 0; i < 40; i++)
            assert_true(found.ids[i] >= 40 && found.ids[i] < 80);
        gnomon_neighbors_free(ctx, &found);
        gnomon_lsh_destroy(opened);
    }
    unlink("a.idx");
    free(p);
}

/* ---- threads ---- */

static void a_change_needs_the_index_for_itself(void **state)
{
    (void)state;
    points *p = make_points(7);
    const gnomon_lsh_options o = file_options(0);
    const int64_t id = 3;
    gnomon_neighbors found;
    gnomon_lsh *index = index_of(ctx, p, &o, 100);
    assert_true(gnomon_lsh_enter(index)); /* as a query of another thread's does */
    ASSERT_FAILS(ctx, add_rows(index, p, &o, 100, 9), GNOMON_ERROR_BUSY, "queried");
    ASSERT_FAILS(ctx, gnomon_lsh_remove(index, &id, 1), GNOMON_ERROR_BUSY, "queried");
    ASSERT_FAILS(ctx, gnomon_lsh_compact(index), GNOMON_ERROR_BUSY, "queried");
    ASSERT_OK(ctx, ask(ctx, p, index, 100, &found));
    gnomon_neighbors_free(ctx, &found);
    gnomon_lsh_leave(index);
    atomic_store(&index->users, -1); /* as an addition of another thread's does */
    ASSERT_FAILS(ctx, ask(ctx, p, index, 1, &found), GNOMON_ERROR_BUSY, "changed");
    ASSERT_FAILS(ctx, gnomon_lsh_save(ctx, index, "a.idx"), GNOMON_ERROR_BUSY, "changed");
    assert_int_equal(gnomon_lsh_remove(index, &id, 1), GNOMON_ERROR_BUSY);
    assert_non_null(strstr(gnomon_last_error(NULL), "changed"));
    atomic_store(&index->users, 0);
    ASSERT_OK(ctx, add_rows(index, p, &o, 100, 9));
    ASSERT_OK(ctx, ask(ctx, p, index, 109, &found));
    gnomon_neighbors_free(ctx, &found);
    ASSERT_FAILS(ctx, ask(ctx, p, index, 110, &found), GNOMON_ERROR_ARGUMENT, "109");
    gnomon_lsh_destroy(index);
    free(p);
}

typedef struct asker {
    points *p;
    const gnomon_lsh *index;
    atomic_int *stop, *waiting; /* a change has been refused */
    atomic_int *answered;
} asker;

static void *keep_asking(void *arg)
{
    asker *a = arg;
    gnomon_context *own = make_context(1, 0);
    while (!atomic_load(a->stop)) {
        gnomon_neighbors found;
        const gnomon_status status = ask(own, a->p, a->index, 5, &found);
        if (atomic_load(a->waiting)) usleep(4000);
        if (status == GNOMON_ERROR_BUSY) continue;
        assert_int_equal(status, GNOMON_OK);
        for (int i = 0; i < Q * 5; i++)
            assert_true(found.ids[i] >= 1 && found.ids[i] < N);
        atomic_fetch_add(a->answered, 1);
        gnomon_neighbors_free(own, &found);
    }
    gnomon_context_destroy(own);
    return NULL;
}

/* Queries, additions and removals at once on an opened index: each gets through or is told to come
 * again, and nothing is lost. */
static void queries_beside_changes(void **state)
{
    (void)state;
    points *p = make_points(8);
    const gnomon_lsh_options o = file_options(3);
    gnomon_lsh *index = index_of(ctx, p, &o, 100);
    ASSERT_OK(ctx, gnomon_lsh_save(ctx, index, "a.idx"));
    gnomon_lsh_destroy(index);
    index = open_index("a.idx");
    const int64_t id = 0;
    ASSERT_OK(ctx, gnomon_lsh_remove(index, &id, 1));
    atomic_int stop = 0, waiting = 0, answered = 0;
    pthread_t threads[3];
    asker askers[3];
    for (int i = 0; i < 3; i++) {
        askers[i] = (asker){p, index, &stop, &waiting, &answered};
        assert_int_equal(pthread_create(&threads[i], NULL, keep_asking, &askers[i]), 0);
    }
    while (atomic_load(&answered) < 3)
        usleep(1000);
    int64_t at = 100;
    while (at < N) {
        const gnomon_status status = add_rows(index, p, &o, at, 20);
        if (status == GNOMON_OK) at += 20;
        atomic_store(&waiting, status == GNOMON_ERROR_BUSY);
        assert_true(status == GNOMON_OK || status == GNOMON_ERROR_BUSY);
        const int64_t more = at / 2;
        if (status == GNOMON_OK)
            while (gnomon_lsh_remove(index, &more, 1) == GNOMON_ERROR_BUSY)
                atomic_store(&waiting, 1);
        usleep(300);
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    gnomon_lsh_info info = {.struct_size = sizeof info};
    gnomon_lsh_describe(index, &info);
    assert_int_equal(info.points, N);
    assert_int_equal(info.removed, 11);
    gnomon_lsh_destroy(index);
    unlink("a.idx");
    free(p);
}

/* ---- failures ---- */

static gnomon_status use_files(gnomon_context *with, points *p, const gnomon_lsh_options *o)
{
    gnomon_lsh *index = NULL;
    gnomon_lsh_builder *b = NULL;
    const int64_t id = 4;
    gnomon_status status = gnomon_lsh_builder_create(with, o, "p.idx", &b);
    if (status == GNOMON_OK) {
        status = build_rows(b, p, o, 0, 60);
        if (status == GNOMON_OK)
            status = gnomon_lsh_builder_finish(b);
        else
            gnomon_lsh_builder_abort(b);
    }
    if (status == GNOMON_OK) status = gnomon_lsh_check(with, "p.idx", NULL, NULL);
    if (status == GNOMON_OK) status = gnomon_lsh_open(with, "p.idx", &index);
    if (status == GNOMON_OK) status = add_rows(index, p, o, 60, 10);
    if (status == GNOMON_OK) status = gnomon_lsh_remove(index, &id, 1);
    if (status == GNOMON_OK) {
        status = gnomon_lsh_builder_extend(with, index, "p.idx", 1, &b);
        if (status == GNOMON_OK) status = gnomon_lsh_builder_finish(b);
    }
    if (status == GNOMON_OK) status = gnomon_lsh_compact(index);
    gnomon_lsh_destroy(index);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    points *p = make_points(9);
    static const int some[] = {0, 4, 6};
    for (int i = 0; i < 3; i++) {
        const gnomon_lsh_options o = file_options(some[i]);
        int failures = 0;
        for (int64_t n = 0;; n++) {
            misers m = {n, 0};
            const gnomon_allocator a = {&m, miser_allocate, miser_release};
            gnomon_context_options c = GNOMON_CONTEXT_OPTIONS_INIT;
            c.allocator = &a;
            c.threads = 1;
            c.device = "cpu";
            c.memory_limit = 1 << 20;
            gnomon_context *poor;
            if (gnomon_context_create(&c, &poor) != GNOMON_OK) continue;
            unlink("p.idx");
            const gnomon_status status = use_files(poor, p, &o);
            if (status != GNOMON_OK) {
                if (status != GNOMON_ERROR_MEMORY) fail_msg("%s", gnomon_last_error(poor));
                failures++;
                /* the file is the old one, the new one, or not there */
                if (access("p.idx", F_OK) == 0)
                    ASSERT_OK(ctx, gnomon_lsh_check(ctx, "p.idx", NULL, NULL));
            }
            gnomon_context_destroy(poor);
            assert_int_equal(m.out, 0);
            if (status == GNOMON_OK) break;
        }
        assert_true(failures > 50);
    }
    unlink("p.idx");
    free(p);
}

static void failures_leave_the_target(void **state)
{
    (void)state;
    points *p = make_points(10);
    gnomon_lsh_options o = file_options(0);
    gnomon_lsh_builder *b;
    gnomon_lsh *index = index_of(ctx, p, &o, 100);
    ASSERT_OK(ctx, gnomon_lsh_save(ctx, index, "a.idx"));
    ASSERT_OK(ctx, gnomon_lsh_save(ctx, index, "b.idx"));
    ASSERT_FAILS(ctx, gnomon_lsh_save(ctx, index, "no/such/folder"), GNOMON_ERROR_NOT_FOUND,
                 "no/such/folder");
    ASSERT_FAILS(ctx, gnomon_lsh_save(ctx, index, "."), GNOMON_ERROR_IO, "folder");
    /* refused points leave the builder as it was */
    ASSERT_OK(ctx, gnomon_lsh_builder_create(ctx, &o, "a.idx", &b));
    ASSERT_OK(ctx, build_rows(b, p, &o, 0, 50));
    const float old = p->x[50 * D + 3];
    p->x[50 * D + 3] = NAN;
    ASSERT_FAILS(ctx, build_rows(b, p, &o, 50, 50), GNOMON_ERROR_NONFINITE, "row 0, column 3");
    p->x[50 * D + 3] = old;
    gnomon_matrix thin = rows_of(p, &o, 0, 3);
    thin.cols--;
    ASSERT_FAILS(ctx, gnomon_lsh_builder_add(b, &thin), GNOMON_ERROR_SHAPE, "columns");
    const gnomon_csr csr = sets_of(p, 0, 2);
    ASSERT_FAILS(ctx, gnomon_lsh_builder_add_csr(b, &csr), GNOMON_ERROR_UNSUPPORTED, "sparse");
    ASSERT_OK(ctx, build_rows(b, p, &o, 50, 50));
    gnomon_lsh_builder_abort(b);
    same_file("a.idx", "b.idx");
    /* more memory than allowed */
    o.memory = 1000;
    ASSERT_OK(ctx, gnomon_lsh_builder_create(ctx, &o, "a.idx", &b));
    ASSERT_OK(ctx, build_rows(b, p, &o, 0, N));
    ASSERT_FAILS(ctx, gnomon_lsh_builder_finish(b), GNOMON_ERROR_MEMORY, "options.memory is 1000");
    same_file("a.idx", "b.idx");
    o.functions.width = 0;
    ASSERT_FAILS(ctx, gnomon_lsh_builder_create(ctx, &o, "a.idx", &b), GNOMON_ERROR_ARGUMENT,
                 "width");
    assert_null(b);
    gnomon_lsh_builder_abort(NULL);
    gnomon_lsh_destroy(index);
    /* an opened index is asked as any other is */
    ASSERT_OK(ctx, gnomon_lsh_open(ctx, "a.idx", &index));
    gnomon_search_options s = GNOMON_SEARCH_OPTIONS_INIT;
    gnomon_neighbors found = {.struct_size = sizeof found};
    const gnomon_matrix q = rows_of(p, &o, N, Q);
#define REFUSED(change, status, part)                                                              \
    do {                                                                                           \
        s = (gnomon_search_options)GNOMON_SEARCH_OPTIONS_INIT;                                     \
        change;                                                                                    \
        ASSERT_FAILS(ctx, gnomon_lsh_query(ctx, index, &q, &s, NULL, &found, NULL), status, part); \
    } while (0)
    REFUSED((s.k = 1, s.metric = GNOMON_COSINE), GNOMON_ERROR_ARGUMENT, "the index is for l2");
    REFUSED(s.k = 101, GNOMON_ERROR_ARGUMENT, "k is 101");
    REFUSED(s.radius = -1, GNOMON_ERROR_ARGUMENT, "radius");
    REFUSED(s.radius = (double)NAN, GNOMON_ERROR_ARGUMENT, "radius");
#undef REFUSED
    gnomon_lsh_destroy(index);
    unlink("a.idx");
    unlink("b.idx");
    free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_saved_comes_back),
                                       cmocka_unit_test(a_builder_writes_the_same),
                                       cmocka_unit_test(a_whole_life),
                                       cmocka_unit_test(compacting_erases),
                                       cmocka_unit_test(types_and_strides),
                                       cmocka_unit_test(empty_ones),
                                       cmocka_unit_test(a_change_needs_the_index_for_itself),
                                       cmocka_unit_test(queries_beside_changes),
                                       cmocka_unit_test(every_allocation_may_fail),
                                       cmocka_unit_test(failures_leave_the_target)};
    return cmocka_run_group_tests(tests, open_context, close_context);
}

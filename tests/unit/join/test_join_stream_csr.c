/* Joins of sparse rows that are read: the pairs and bits of gnomon_join_csr, which
 * test_join_sparse.c holds against every pair, whatever the memory; nothing but what was asked for
 * is read at a time; what is refused. */
#include "join_testing.h"
#include "sparse_testing.h"

enum { P = 4500, Q = 900, D = 150 };

/* Rows handed out as copies that are gone with the next call. */
typedef struct stored {
    const gnomon_csr *all;
    int64_t *offsets, *indices;
    double *values;
    int64_t calls, most; /* entries that were asked for at a time */
    int64_t fail_at;     /* the call that fails; 0: none does */
    int64_t odd;         /* 1: a row too few, 2: an entry too few, 3: other columns */
} stored;

static void forget(stored *s)
{
    free(s->offsets);
    free(s->indices);
    free(s->values);
    s->offsets = s->indices = NULL;
    s->values = NULL;
}

static gnomon_status read_rows(void *user, int64_t first, int64_t count, gnomon_csr *to)
{
    stored *s = user;
    const int64_t *offsets = s->all->offsets;
    forget(s);
    assert_true(first >= 0 && count > 0 && first + count <= s->all->rows);
    if (++s->calls == s->fail_at) return GNOMON_ERROR_IO;
    if (s->odd == 1) count--;
    const int64_t begin = offsets[first] - offsets[0],
                  entries = offsets[first + count] - offsets[first];
    s->offsets = malloc((size_t)(count + 1) * sizeof *s->offsets);
    s->indices = malloc((size_t)(entries + 1) * sizeof *s->indices);
    s->values = malloc((size_t)(entries + 1) * sizeof *s->values);
    for (int64_t i = 0; i <= count; i++)
        s->offsets[i] = offsets[first + i] - offsets[first] + 3; /* they may begin anywhere */
    memcpy(s->indices, s->all->indices + begin, (size_t)entries * sizeof *s->indices);
    memcpy(s->values, (const double *)s->all->values + begin, (size_t)entries * sizeof *s->values);
    if (entries > s->most) s->most = entries;
    if (s->odd == 2) s->offsets[count]--;
    *to = (gnomon_csr){count,     s->all->cols + (s->odd == 3), s->offsets, s->indices, s->values,
                       GNOMON_F64};
    return GNOMON_OK;
}

static gnomon_join_rows rows_of(stored *s)
{
    return (gnomon_join_rows){s, s->all->rows, s->all->cols, s->all->offsets, read_rows};
}

static void same_as_in_memory(const sparse_rows *p, const sparse_rows *q, gnomon_join_options o,
                              int64_t memory, bool pieces)
{
    gnomon_context *ctx = context_of(2, 0), *small = context_of(2, memory);
    gathered want = {0}, got = {0};
    stored p_rows = {.all = &p->csr}, q_rows = {.all = q != NULL ? &q->csr : NULL};
    const gnomon_join_rows first = rows_of(&p_rows);
    gnomon_join_rows second = {0};
    gnomon_join_result whole = {.struct_size = sizeof whole}, read = whole;
    if (q != NULL) second = rows_of(&q_rows);
    o.sink = gather;
    o.user = &want;
    expect(ctx, gnomon_join_csr(ctx, &p->csr, q != NULL ? &q->csr : NULL, &o, &whole), GNOMON_OK);
    o.user = &got;
    expect(small, gnomon_join_stream_csr(small, &first, q != NULL ? &second : NULL, &o, &read),
           GNOMON_OK);
    assert_true(want.count > 20);
    same_pairs(&got, &want, gnomon_metric_name(o.metric));
    assert_int_equal(read.pairs, whole.pairs);
    assert_int_equal(read.rows_done, whole.rows_done);
    assert_int_equal(read.complete, whole.complete);
    assert_non_null(strstr(read.why, "the points are read in pieces"));
    assert_true((strstr(read.why, "pieces of") != NULL) == pieces);
    if (pieces) assert_true(p_rows.most < p->csr.offsets[p->csr.rows] / 2);
    forget(&p_rows);
    forget(&q_rows);
    free(want.pairs);
    free(got.pairs);
    gnomon_context_destroy(ctx);
    gnomon_context_destroy(small);
}

static void pairs_are_those_of_rows_in_memory(void **state)
{
    (void)state;
    const double thresholds[] = {8, 0.3, 300, 14};
    sparse_rows p = sparse_make(SPARSE_TEXT, P, D, false, 71);
    sparse_rows q = sparse_make(SPARSE_TEXT, Q, D, false, 72);
    for (int m = 0; m < SPARSE_METRICS; m++) {
        gnomon_join_options o = GNOMON_JOIN_OPTIONS_INIT;
        o.metric = sparse_metrics[m];
        o.threshold = thresholds[m];
        same_as_in_memory(&p, NULL, o, (int64_t)1 << 20, true);
        same_as_in_memory(&p, &q, o, (int64_t)1 << 20, false);
        same_as_in_memory(&q, &p, o, (int64_t)1 << 20, true);
        same_as_in_memory(&q, NULL, o, 0, false);
        o.first_row = 311;
        o.max_pairs = 90;
        same_as_in_memory(&p, NULL, o, (int64_t)1 << 20, true);
        o.first_row = o.max_pairs = 0;
        o.top = 60;
        o.threshold = sparse_larger(o.metric) ? -INFINITY : INFINITY;
        same_as_in_memory(&q, &p, o, (int64_t)1 << 20, true);
    }
    sparse_drop(&p);
    sparse_drop(&q);
}

static void what_is_refused(void **state)
{
    (void)state;
    gnomon_context *ctx = context_of(1, (int64_t)1 << 20);
    sparse_rows p = sparse_make(SPARSE_TEXT, P, D, false, 73);
    stored s = {.all = &p.csr};
    gnomon_join_rows rows = rows_of(&s), broken = rows;
    gathered got = {0};
    gnomon_join_options o = GNOMON_JOIN_OPTIONS_INIT;
    o.metric = GNOMON_COSINE;
    o.threshold = 0.05;
    o.sink = gather;
    o.user = &got;
    /* the reader's own failure, at any call; what was found before it has been handed out */
    for (int64_t at = 1; at < 40; at += 6) {
        s.calls = 0;
        s.fail_at = at;
        expect(ctx, gnomon_join_stream_csr(ctx, &rows, NULL, &o, NULL), GNOMON_ERROR_IO);
        free(got.pairs);
        got = (gathered){0};
    }
    s.fail_at = 0;
    const char *const texts[] = {"p.read gave", "p.read gave rows from", "p.read gave"};
    for (s.odd = 1; s.odd <= 3; s.odd++) {
        expect(ctx, gnomon_join_stream_csr(ctx, &rows, NULL, &o, NULL), GNOMON_ERROR_DATA);
        assert_non_null(strstr(gnomon_last_error(ctx), texts[s.odd - 1]));
    }
    s.odd = 0;
    /* a bad entry in the last row is refused before there are pairs */
    int64_t *index = (int64_t *)p.csr.indices + p.csr.offsets[P] - 1, kept = *index;
    double *value = (double *)p.csr.values + p.csr.offsets[P - 1];
    *index = D;
    expect(ctx, gnomon_join_stream_csr(ctx, &rows, NULL, &o, NULL), GNOMON_ERROR_DATA);
    assert_non_null(strstr(gnomon_last_error(ctx), "p has the column index 150 in row 4499"));
    *index = kept;
    *value = NAN;
    expect(ctx, gnomon_join_stream_csr(ctx, &rows, NULL, &o, NULL), GNOMON_ERROR_NONFINITE);
    *value = 1;
    assert_int_equal(got.count, 0);
    broken.read = NULL;
    expect(ctx, gnomon_join_stream_csr(ctx, &broken, NULL, &o, NULL), GNOMON_ERROR_ARGUMENT);
    const int64_t falling[] = {0, 2, 1};
    broken = (gnomon_join_rows){&s, 2, D, falling, read_rows};
    expect(ctx, gnomon_join_stream_csr(ctx, &rows, &broken, &o, NULL), GNOMON_ERROR_DATA);
    assert_non_null(strstr(gnomon_last_error(ctx), "q.offsets"));
    broken = rows;
    broken.cols = D + 1;
    expect(ctx, gnomon_join_stream_csr(ctx, &rows, &broken, &o, NULL), GNOMON_ERROR_SHAPE);
    o.metric = GNOMON_JACCARD;
    expect(ctx, gnomon_join_stream_csr(ctx, &rows, NULL, &o, NULL), GNOMON_ERROR_UNSUPPORTED);
    o.metric = GNOMON_L2;
    o.recall = 0.9;
    o.method = GNOMON_JOIN_LSH;
    expect(ctx, gnomon_join_stream_csr(ctx, &rows, NULL, &o, NULL), GNOMON_ERROR_UNSUPPORTED);
    free(got.pairs);
    forget(&s);
    sparse_drop(&p);
    gnomon_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pairs_are_those_of_rows_in_memory),
                                       cmocka_unit_test(what_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

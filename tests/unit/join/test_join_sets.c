/* Exact joins of sets against every pair counted. */
#include "join_testing.h"

#include "base/threads.h"

typedef struct sets {
    int64_t rows, cols, *offsets, *indices;
    uint8_t *values;
} sets;

/* Sets of up to 'most' members out of 'cols'; every third one is an earlier one, changed a little.
 */
static sets make(int64_t rows, int64_t cols, int64_t most, uint64_t seed)
{
    sets s = {rows, cols, NULL, NULL, NULL};
    s.offsets = calloc((size_t)rows + 1, sizeof *s.offsets);
    s.indices = malloc((size_t)(rows * (most + 2)) * sizeof *s.indices);
    s.values = malloc((size_t)(rows * (most + 2)));
    memset(s.values, 1, (size_t)(rows * (most + 2)));
    for (int64_t i = 0; i < rows; i++) {
        int64_t *to = s.indices + s.offsets[i], count = 0;
        if (i % 3 == 2) {
            const int64_t like = (int64_t)(draw_bits(&seed) % (uint64_t)i);
            count = s.offsets[like + 1] - s.offsets[like];
            memcpy(to, s.indices + s.offsets[like], (size_t)count * sizeof *to);
            for (int64_t turn = draw_bits(&seed) % 3; turn > 0 && count > 0; turn--)
                to[draw_bits(&seed) % (uint64_t)count] =
                    (int64_t)(draw_bits(&seed) % (uint64_t)cols);
        } else {
            const int64_t size = (int64_t)(draw_bits(&seed) % (uint64_t)(most + 1));
            for (; count < size; count++) {
                const uint64_t a = draw_bits(&seed) % (uint64_t)cols;
                /* small ones are common */
                to[count] = (int64_t)(a * (draw_bits(&seed) % (uint64_t)cols) / (uint64_t)cols);
            }
        }
        s.offsets[i + 1] = s.offsets[i] + count;
    }
    return s;
}

static gnomon_csr view(const sets *s)
{
    return (gnomon_csr){s->rows, s->cols, s->offsets, s->indices, s->values, GNOMON_U8};
}

static void drop(sets *s)
{
    free(s->offsets);
    free(s->indices);
    free(s->values);
}

static void mark(const sets *s, int64_t i, uint8_t *has)
{
    memset(has, 0, (size_t)s->cols);
    for (int64_t e = s->offsets[i]; e < s->offsets[i + 1]; e++)
        has[s->indices[e]] = 1;
}

static gathered brute(const sets *p, const sets *q, double threshold)
{
    gathered all = {0};
    const bool self = q == NULL;
    if (self) q = p;
    uint8_t *a = malloc((size_t)p->cols), *b = malloc((size_t)p->cols);
    for (int64_t i = 0; i < p->rows; i++) {
        mark(p, i, a);
        for (int64_t j = self ? i + 1 : 0; j < q->rows; j++) {
            int64_t both = 0, either = 0;
            mark(q, j, b);
            for (int64_t c = 0; c < p->cols; c++) {
                both += a[c] & b[c];
                either += a[c] | b[c];
            }
            const double distance = either == 0 ? 0 : (double)(either - both) / (double)either;
            const gnomon_pair pair = {i, j, distance};
            const gnomon_join_batch batch = {&pair, 1, i};
            if (distance <= threshold) gather(&all, &batch);
        }
    }
    free(a);
    free(b);
    return all;
}

static void check(const sets *p, const sets *q, double threshold, int threads, int64_t memory)
{
    gnomon_context *ctx = context_of(threads, memory);
    gnomon_join_options o = GNOMON_JOIN_OPTIONS_INIT;
    gnomon_join_result result = {.struct_size = sizeof result};
    gathered got = {0}, want = brute(p, q, threshold);
    const gnomon_csr a = view(p), b = view(q == NULL ? p : q);
    char what[100];
    o.metric = GNOMON_JACCARD;
    o.threshold = threshold;
    o.sink = gather;
    o.user = &got;
    expect(ctx, gnomon_join_csr(ctx, &a, q == NULL ? NULL : &b, &o, &result), GNOMON_OK);
    snprintf(what, sizeof what, "threshold %.17g, %d threads", threshold, threads);
    same_pairs(&got, &want, what);
    assert_int_equal(result.complete, 1);
    free(got.pairs);
    free(want.pairs);
    gnomon_context_destroy(ctx);
}

static void thresholds(void **state)
{
    (void)state;
    sets p = make(240, 60, 14, 1), q = make(90, 60, 20, 2);
    /* those of the middle are distances themselves */
    const double all[] = {0, 1.0 / 7, 0.2, 0.25, 1.0 / 3, 0.4, 0.5, 0.6, 2.0 / 3, 0.9, 1, 3};
    for (int t = 0; t < 12; t++) {
        check(&p, NULL, all[t], 1 + t % 3, t % 2 == 0 ? 0 : 1);
        check(&p, &q, all[t], 1 + t % 2, 0);
        check(&p, NULL, nextafter(all[t], -1) < 0 ? 0 : nextafter(all[t], -1), 2, 0);
    }
    drop(&p);
    drop(&q);
}

/* Long sets, some of them empty. */
static void long_sets(void **state)
{
    (void)state;
    sets p = make(150, 3000, 400, 3);
    check(&p, NULL, 0.05, 2, 0);
    check(&p, NULL, 0.3, 2, 100000);
    drop(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(thresholds),
        cmocka_unit_test(long_sets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

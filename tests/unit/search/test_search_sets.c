/* Bits and sets: Hamming and Jaccard distances against every pair, counted apart. */
#include "search_testing.h"

#include "base/isa.h"

/* Points given by all their distances: queries x base, sorted. */
static void compare(const gnomon_neighbors *found, const answer *all, int64_t n,
                    const gnomon_search_options *o, const char *what)
{
    for (int64_t q = 0; q < found->queries; q++) {
        int64_t at = found->offsets[q];
        for (int64_t i = 0; i < n; i++) {
            const answer want = all[q * n + i];
            if (o->exclude >= 0 && want.id == o->exclude + q) continue;
            if (o->filter != NULL && (o->filter[want.id / 8] >> (want.id % 8) & 1) == 0) continue;
            if (o->k > 0 ? at == (q + 1) * o->k : want.distance > o->radius) break;
            if (at == found->offsets[q + 1] || found->ids[at] != want.id ||
                found->distances[at] != want.distance)
                fail_msg("%s: query %d: place %d should be %d at %.17g", what, (int)q, (int)at,
                         (int)want.id, want.distance);
            at++;
        }
        if (at != found->offsets[q + 1])
            fail_msg("%s: query %d has too many answers", what, (int)q);
    }
}

/* ---- bits ---- */

static int bits_apart(const uint8_t *a, const uint8_t *b, int64_t bytes)
{
    int bits = 0;
    for (int64_t j = 0; j < bytes; j++)
        for (int x = a[j] ^ b[j]; x != 0; x &= x - 1)
            bits++;
    return bits;
}

static void bits_against_every_pair(void **state)
{
    (void)state;
    enum { N = 700, Q = 30 };
    static const int64_t widths[] = {1, 7, 8, 32, 61};
    uint64_t random = 1;
    for (int w = 0; w < 5; w++) {
        const int64_t bytes = widths[w], step = w % 2 ? 2 : 1; /* a stride too */
        uint8_t *x = malloc((size_t)(N * bytes * step));
        for (int64_t i = 0; i < N * bytes * step; i++)
            x[i] = (uint8_t)(draw_bits(&random) & draw_bits(&random));
        gnomon_matrix base = {x, GNOMON_U8, GNOMON_HOST, N, bytes, bytes * step, step};
        gnomon_matrix queries = base;
        queries.rows = Q;
        answer *all = malloc(sizeof *all * N * Q);
        for (int q = 0; q < Q; q++) {
            for (int i = 0; i < N; i++) {
                int bits = 0;
                for (int64_t j = 0; j < bytes; j++)
                    bits += bits_apart(&x[(q * bytes + j) * step], &x[(i * bytes + j) * step], 1);
                all[q * N + i] = (answer){bits, i};
            }
            qsort(all + q * N, N, sizeof *all, by_distance);
        }
        for (int c = 0; c < 6; c++) {
            gnomon_context *ctx = context_of(c % 3 + 1, c == 5 ? 20000 : 0);
            gnomon_search_options o = GNOMON_SEARCH_OPTIONS_INIT;
            o.metric = GNOMON_HAMMING;
            o.k = c == 0 ? 1 : c == 1 ? 25 : c == 2 ? N - 1 : 0;
            o.radius = (double)(2 * bytes) + (c == 4 ? 0.5 : 0);
            o.exclude = c % 2 ? 0 : -1;
            if (c == 2) o.exclude = 0;
            gnomon_neighbors found = {.struct_size = sizeof found};
            expect(ctx, gnomon_neighbors_exact(ctx, &base, &queries, &o, &found), GNOMON_OK);
            compare(&found, all, N, &o, "bits");
            gnomon_neighbors_free(ctx, &found);
            gnomon_context_destroy(ctx);
        }
        free(all);
        free(x);
    }
}

/* ---- sets ---- */

typedef struct sets {
    gnomon_csr csr;
    int64_t *offsets, *indices;
    float *values;
    uint8_t *has; /* rows x cols */
} sets;

/* Rows in any order of columns, with duplicates and stored zeros; every ninth is empty. */
static sets make_sets(int64_t rows, int64_t cols, int64_t first, uint64_t *random)
{
    sets s;
    const int64_t most = 12;
    s.offsets = malloc((size_t)(rows + 1) * sizeof *s.offsets);
    s.indices = malloc((size_t)(rows * most) * sizeof *s.indices);
    s.values = malloc((size_t)(rows * most) * sizeof *s.values);
    s.has = calloc((size_t)(rows * cols), 1);
    s.offsets[0] = first; /* offsets need not begin at 0 */
    int64_t at = 0;
    for (int64_t i = 0; i < rows; i++) {
        const int64_t count = i % 9 == 4 ? 0 : (int64_t)(draw_bits(random) % (uint64_t)most) + 1;
        for (int64_t e = 0; e < count; e++) {
            const int64_t member = (int64_t)(draw_bits(random) % (uint64_t)cols);
            const bool zero = draw_bits(random) % 8 == 0;
            s.indices[at] = member;
            s.values[at++] = zero ? 0 : 1.5F;
            if (!zero) s.has[i * cols + member] = 1;
        }
        s.offsets[i + 1] = first + at;
    }
    s.csr = (gnomon_csr){rows, cols, s.offsets, s.indices, s.values, GNOMON_F32};
    return s;
}

static void drop_sets(sets *s)
{
    free(s->offsets);
    free(s->indices);
    free(s->values);
    free(s->has);
}

static double jaccard_of(const uint8_t *a, const uint8_t *b, int64_t cols)
{
    int both = 0, either = 0;
    for (int64_t j = 0; j < cols; j++) {
        both += a[j] && b[j];
        either += a[j] || b[j];
    }
    return either == 0 ? 0 : (double)(either - both) / either;
}

static void sets_against_every_pair(void **state)
{
    (void)state;
    enum { N = 300, Q = 40 };
    static const int64_t columns[] = {3, 30, 400};
    uint64_t random = 2;
    for (int w = 0; w < 3; w++) {
        const int64_t cols = columns[w];
        sets base = make_sets(N, cols, 5, &random), queries = make_sets(Q, cols, 0, &random);
        answer *all = malloc(sizeof *all * N * Q);
        for (int q = 0; q < Q; q++) {
            for (int i = 0; i < N; i++)
                all[q * N + i] =
                    (answer){jaccard_of(queries.has + q * cols, base.has + i * cols, cols), i};
            qsort(all + q * N, N, sizeof *all, by_distance);
        }
        uint8_t allowed[N / 8 + 1];
        for (size_t b = 0; b < sizeof allowed; b++)
            allowed[b] = (uint8_t)draw_bits(&random);
        for (int c = 0; c < 12; c++) {
            gnomon_context *ctx = context_of(c % 3 + 1, 0);
            gnomon_search_options o = GNOMON_SEARCH_OPTIONS_INIT;
            o.metric = GNOMON_JACCARD;
            o.k = c % 6 == 0 ? 1 : c % 6 == 1 ? 20 : c % 6 == 2 ? 90 : 0;
            o.radius = c % 6 == 3 ? 0 : c % 6 == 4 ? 0.75 : 1;
            if (c % 4 == 1) o.exclude = 7;
            if (c >= 6) {
                o.filter = allowed;
                o.filter_bits = N;
            }
            gnomon_neighbors found = {.struct_size = sizeof found};
            if (c % 2 == 0) {
                expect(ctx, gnomon_neighbors_exact_csr(ctx, &base.csr, &queries.csr, &o, &found),
                       GNOMON_OK);
            } else {
                gnomon_search *s;
                expect(ctx, gnomon_search_create_csr(ctx, &queries.csr, &o, &s), GNOMON_OK);
                gnomon_csr part = base.csr;
                part.rows = 111;
                expect(ctx, gnomon_search_add_csr(s, &part), GNOMON_OK);
                part.rows = N - 111;
                part.offsets += 111;
                part.indices += base.offsets[111] - base.offsets[0];
                part.values = base.values + base.offsets[111] - base.offsets[0];
                expect(ctx, gnomon_search_add_csr(s, &part), GNOMON_OK);
                expect(ctx, gnomon_search_finish(s, &found), GNOMON_OK);
                gnomon_search_destroy(s);
            }
            compare(&found, all, N, &o, "sets");
            gnomon_neighbors_free(ctx, &found);
            gnomon_context_destroy(ctx);
        }
        free(all);
        drop_sets(&base);
        drop_sets(&queries);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_against_every_pair),
        cmocka_unit_test(sets_against_every_pair),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

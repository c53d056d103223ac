/* A scan of the base in several pieces: ids, a query's own point, filters, every metric, k and
 * radius. The pieces are a matter of work, so that none of a test's size would have a second one by
 * itself. */
#include "search_testing.h"

#include "points/view.h"
#include "search/state.h"

#include <inttypes.h>

enum { N = 700, D = 24, Q = 23, BYTES = 5, FIRST = 40 /* the queries' own points */ };

static const int64_t pieces[] = {0, 64, 333, 699}; /* 0: as it comes */

typedef struct sides {
    float *dense;
    double *f64;
    uint8_t *bits;
    uint8_t allowed[(N + 7) / 8];
} sides;

static sides make_sides(void)
{
    sides s = {
        malloc(sizeof(float) * N * D), malloc(sizeof(double) * N * D), malloc(N * BYTES), {0}};
    uint64_t state = 5;
    for (int i = 0; i < N * D; i++)
        s.f64[i] = (double)(s.dense[i] = (float)draw(&state));
    for (int i = 0; i < N * BYTES; i++)
        s.bits[i] = (uint8_t)draw_bits(&state);
    for (size_t i = 0; i < sizeof s.allowed; i++)
        s.allowed[i] = (uint8_t)(draw_bits(&state) | draw_bits(&state));
    return s;
}

static void drop_sides(sides *s)
{
    free(s->dense);
    free(s->f64);
    free(s->bits);
}

static double apart(const sides *s, gnomon_metric metric, int64_t i, int64_t j)
{
    if (metric != GNOMON_HAMMING) return distance_of(metric, s->f64 + i * D, s->f64 + j * D, D);
    int count = 0;
    for (int b = 0; b < BYTES; b++)
        count += __builtin_popcount(s->bits[i * BYTES + b] ^ s->bits[j * BYTES + b]);
    return count;
}

static void check(const sides *s, gnomon_metric metric, const gnomon_search_options *o,
                  int64_t queries, int64_t rows)
{
    gnomon_context *ctx = context_of(2, 0);
    const bool bits = metric == GNOMON_HAMMING;
    const gnomon_matrix base = bits ? gnomon_matrix_rowmajor(s->bits, GNOMON_U8, N, BYTES)
                                    : gnomon_matrix_rowmajor(s->dense, GNOMON_F32, N, D);
    const gnomon_matrix asked =
        bits ? gnomon_matrix_rowmajor(s->bits + FIRST * BYTES, GNOMON_U8, queries, BYTES)
             : gnomon_matrix_rowmajor(s->dense + FIRST * D, GNOMON_F32, queries, D);
    gnomon_search *search;
    gnomon_neighbors found = {.struct_size = sizeof found};
    expect(ctx, gnomon_search_create(ctx, &asked, o, &search), GNOMON_OK);
    search->rows = rows;
    expect(ctx, gnomon_search_add(search, &base), GNOMON_OK);
    expect(ctx, gnomon_search_finish(search, &found), GNOMON_OK);
    answer_sign = metric == GNOMON_IP ? -1 : 1;
    answer all[N];
    for (int64_t q = 0; q < queries; q++) {
        int64_t count = 0;
        for (int64_t i = 0; i < N; i++) {
            if (o->exclude >= 0 && i == o->exclude + q) continue;
            if (o->filter && !(s->allowed[i / 8] >> (i % 8) & 1)) continue;
            const double distance = apart(s, metric, FIRST + q, i);
            if (o->k == 0 && (metric == GNOMON_IP ? distance < o->radius : distance > o->radius))
                continue;
            all[count++] = (answer){distance, i};
        }
        qsort(all, (size_t)count, sizeof *all, by_distance);
        if (o->k > 0 && count > o->k) count = o->k;
        const int64_t at = found.offsets[q];
        assert_int_equal(found.offsets[q + 1] - at, count);
        for (int64_t i = 0; i < count; i++) {
            assert_int_equal(found.ids[at + i], all[i].id);
            assert_true(found.distances[at + i] == all[i].distance);
        }
    }
    gnomon_search_destroy(search);
    gnomon_neighbors_free(ctx, &found);
    gnomon_context_destroy(ctx);
}

static void later_pieces_of_the_base(void **state)
{
    (void)state;
    static const gnomon_metric metrics[] = {GNOMON_L2, GNOMON_COSINE, GNOMON_IP, GNOMON_L1,
                                            GNOMON_HAMMING};
    static const double radii[] = {0.9, 0.5, 0.6, 3, 14};
    sides s = make_sides();
    for (int m = 0; m < 5; m++) {
        for (int way = 0; way < 8; way++) {
            gnomon_search_options o = GNOMON_SEARCH_OPTIONS_INIT;
            o.metric = metrics[m];
            o.k = way & 1 ? 0 : 9;
            o.radius = radii[m];
            if (way & 2) o.exclude = FIRST;
            if (way & 4) {
                o.filter = s.allowed;
                o.filter_bits = N;
            }
            for (int p = 0; p < 4; p++) {
                check(&s, metrics[m], &o, Q, pieces[p]);
                check(&s, metrics[m], &o, 1, pieces[p]); /* a few queries go another way */
            }
        }
    }
    drop_sides(&s);
}

/* Queries whose own points lie in each piece, the last one too. */
static void own_points_are_excluded_in_every_piece(void **state)
{
    (void)state;
    sides s = make_sides();
    gnomon_context *ctx = context_of(2, 0);
    const gnomon_matrix all = gnomon_matrix_rowmajor(s.dense, GNOMON_F32, N, D);
    for (int p = 0; p < 4; p++) {
        gnomon_search_options o = GNOMON_SEARCH_OPTIONS_INIT;
        gnomon_neighbors found = {.struct_size = sizeof found};
        gnomon_search *search;
        o.k = 1;
        o.exclude = 0;
        expect(ctx, gnomon_search_create(ctx, &all, &o, &search), GNOMON_OK);
        search->rows = pieces[p];
        expect(ctx, gnomon_search_add(search, &all), GNOMON_OK);
        expect(ctx, gnomon_search_finish(search, &found), GNOMON_OK);
        for (int64_t q = 0; q < N; q++)
            assert_true(found.ids[q] != q && found.distances[q] > 0);
        gnomon_search_destroy(search);
        gnomon_neighbors_free(ctx, &found);
    }
    gnomon_context_destroy(ctx);
    drop_sides(&s);
}

/* Enough points for a sample of them to tell how many bits the filter takes. */
enum { MANY = 20000, WIDE = 64, ASKED = 64, K = 10, LEFT = 12 };

/* A column without numbers is told, also where the sample has no others; points that are filtered
 * out may hold anything. */
static void no_numbers(void **state)
{
    (void)state;
    gnomon_context *ctx = context_of(1, 0);
    float *x = malloc(sizeof *x * MANY * WIDE), *q = malloc(sizeof *q * ASKED * WIDE);
    uint8_t *allowed = calloc((MANY + 7) / 8, 1);
    assert_true(x != NULL && q != NULL && allowed != NULL);
    uint64_t draws = 11;
    for (int i = 0; i < MANY * WIDE; i++)
        x[i] = i % WIDE == 3 ? NAN : (float)draw(&draws);
    for (int i = 0; i < ASKED * WIDE; i++)
        q[i] = (float)draw(&draws);
    const gnomon_matrix base = gnomon_matrix_rowmajor(x, GNOMON_F32, MANY, WIDE),
                        asked = gnomon_matrix_rowmajor(q, GNOMON_F32, ASKED, WIDE);
    gnomon_search_options o = GNOMON_SEARCH_OPTIONS_INIT;
    gnomon_neighbors found = {.struct_size = sizeof found};
    o.k = K;
    assert_int_equal(gnomon_neighbors_exact(ctx, &base, &asked, &o, &found),
                     GNOMON_ERROR_NONFINITE);
    for (int i = 0; i < LEFT; i++) {
        const int row = 7 + i * (MANY / LEFT);
        x[row * WIDE + 3] = (float)draw(&draws);
        allowed[row / 8] |= (uint8_t)(1 << row % 8);
    }
    o.filter = allowed;
    o.filter_bits = MANY;
    assert_int_equal(gnomon_neighbors_exact(ctx, &base, &asked, &o, &found), GNOMON_OK);
    for (int i = 0; i < ASKED; i += 9) {
        const gnomon_matrix one = gnomon_rows(&asked, i, 1);
        gnomon_neighbors alone = {.struct_size = sizeof alone};
        assert_int_equal(gnomon_neighbors_exact(ctx, &base, &one, &o, &alone), GNOMON_OK);
        assert_memory_equal(alone.ids, found.ids + i * K, K * sizeof *alone.ids);
        assert_memory_equal(alone.distances, found.distances + i * K, K * sizeof(double));
        gnomon_neighbors_free(ctx, &alone);
    }
    gnomon_neighbors_free(ctx, &found);
    gnomon_context_destroy(ctx);
    free(allowed);
    free(q);
    free(x);
}

/* The stride of one row is never taken, however long. */
static void one_row(void **state)
{
    (void)state;
    static const int64_t strides[] = {0, -1000000, INT64_MAX, -INT64_MAX};
    gnomon_context *ctx = context_of(2, 0);
    sides s = make_sides();
    gnomon_search_options o = GNOMON_SEARCH_OPTIONS_INIT;
    const gnomon_matrix asked = gnomon_matrix_rowmajor(s.dense + D, GNOMON_F32, N - 1, D);
    o.k = 1;
    for (size_t i = 0; i < sizeof strides / sizeof *strides; i++) {
        gnomon_matrix base = gnomon_matrix_rowmajor(s.dense, GNOMON_F32, 1, D);
        gnomon_neighbors found = {.struct_size = sizeof found};
        base.row_stride = strides[i];
        if (gnomon_neighbors_exact(ctx, &base, &asked, &o, &found) != GNOMON_OK)
            fail_msg("stride %" PRId64 ": %s", strides[i], gnomon_last_error(ctx));
        for (int j = 0; j < N - 1; j++)
            assert_int_equal(found.ids[j], 0);
        gnomon_neighbors_free(ctx, &found);
    }
    drop_sides(&s);
    gnomon_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(later_pieces_of_the_base),
        cmocka_unit_test(own_points_are_excluded_in_every_piece),
        cmocka_unit_test(no_numbers),
        cmocka_unit_test(one_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

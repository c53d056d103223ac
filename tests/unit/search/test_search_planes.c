/* Bits by planes against a count of every pair, at every level: scores, the order of what passes,
 * limits that rise meanwhile, and that nothing is lost. */
#include "search_testing.h"

#include "base/isa.h"
#include "kernels.h"

enum { POINTS = GNOMON_PLANE_POINTS, QUERIES = 6, ROOM = 24, MOST_BYTES = 200 };

typedef enum kind { EVEN, SPARSE, DENSE, ZEROS, ONES, NEAR, KINDS } kind;

static uint64_t drawn = 1;

static uint64_t any(void)
{
    return draw_bits(&drawn);
}

static uint8_t byte_of(kind like, int64_t at)
{
    switch (like) {
    case SPARSE:
        return (uint8_t)(any() & any() & any() & any());
    case DENSE:
        return (uint8_t)(any() | any() | any());
    case ZEROS:
        return 0;
    case ONES:
        return 0xff;
    case NEAR:
        return (uint8_t)((at * 37 ^ 90) ^ (any() % 5 == 0 ? 1 << any() % 8 : 0));
    default:
        return (uint8_t)any();
    }
}

typedef struct task {
    int64_t bytes, stride, col_stride, count, k;
    uint32_t row;
    const uint8_t *points, *queries; /* query rows follow each other */
    gnomon_filter *filters;
    float asked[QUERIES];          /* limits so far, of those who ask */
    gnomon_survivor *all[QUERIES]; /* what was handed on */
    int64_t taken[QUERIES];
} task;

static int apart(const task *t, int64_t q, int64_t p)
{
    int bits = 0;
    for (int64_t j = 0; j < t->bytes; j++)
        bits += __builtin_popcount((unsigned)(t->queries[q * t->bytes + j] ^
                                              t->points[p * t->stride + j * t->col_stride]));
    return bits;
}

/* Takes what there is, and raises the limit to the middle of it at times. */
static void take(void *arg, int64_t q)
{
    task *t = arg;
    gnomon_filter *f = &t->filters[q];
    for (int32_t i = 0; i < f->count; i++)
        t->all[q][t->taken[q]++] = f->kept[i];
    if (f->count > 0 && any() % 2 == 0) {
        const float middle = f->kept[f->count / 2].low;
        t->asked[q] = fmaxf(t->asked[q], any() % 2 == 0 ? middle : nextafterf(middle, INFINITY));
        f->least = fmaxf(f->least, t->asked[q]);
    }
    f->count = 0;
}

static void check_query(const char *isa, const task *t, int64_t q, float least)
{
    const gnomon_filter *f = &t->filters[q];
    int64_t at = 0, nearer[8 * MOST_BYTES + 2] = {0}; /* than so many bits */
    int bits[POINTS];
    for (int64_t p = 0; p < t->count; p++) {
        bits[p] = apart(t, q, p);
        if (t->row + (uint32_t)p != f->self) nearer[bits[p] + 1]++;
    }
    for (int64_t i = 0; i <= 8 * t->bytes; i++)
        nearer[i + 1] += nearer[i];
    for (int64_t p = 0; p < t->count; p++) {
        const float score = -(float)bits[p];
        const uint32_t row = t->row + (uint32_t)p;
        const gnomon_survivor *x = at < t->taken[q] ? &t->all[q][at] : NULL;
        const bool kept = x != NULL && x->row == row;
        if (kept && (memcmp(&x->low, &score, sizeof score) != 0 || x->high != score ||
                     score < least || row == f->self))
            fail_msg("%s: %lld bytes, point %lld has score %g, not %g", isa, (long long)t->bytes,
                     (long long)p, (double)x->low, (double)score);
        /* the limit has risen, or k others come before */
        const bool may_go =
            score < t->asked[q] || row == f->self || (t->k > 0 && nearer[bits[p]] >= t->k);
        if (!kept && !may_go)
            fail_msg("%s: %lld bytes, point %lld with score %g is lost", isa, (long long)t->bytes,
                     (long long)p, (double)score);
        at += kept;
    }
    assert_int_equal(at, t->taken[q]);
}

static void check_task(const char *isa, task *t, const float *least)
{
    const gnomon_search_kernels *k = gnomon_cpu_kernels(isa)->search;
    const int64_t bits = 8 * t->bytes, ld = gnomon_picks_words(bits);
    gnomon_survivor kept[QUERIES][ROOM], all[QUERIES][POINTS];
    gnomon_filter filters[QUERIES];
    const uint8_t *rows[POINTS];
    uint64_t query[MOST_BYTES / 8 + 1];
    gnomon_bit_planes *planes = aligned_alloc(64, (sizeof *planes + 63) / 64 * 64);
    const size_t sums = (size_t)(QUERIES * gnomon_plane_levels(bits)) * (POINTS / 8);
    uint32_t *made = malloc((size_t)(QUERIES * ld) * sizeof *made), *carried = malloc(sums);
    assert_true(planes != NULL && made != NULL && carried != NULL);
    for (int64_t q = 0; q < QUERIES; q++) {
        memset(query, 0, sizeof query);
        memcpy(query, t->queries + q * t->bytes, (size_t)t->bytes);
        if (q + 1 < QUERIES) made[(q + 1) * ld] = 0xa5a5a5a5; /* none writes behind its own */
        k->pick_bits(query, bits, made + q * ld);
        if (q + 1 < QUERIES) assert_int_equal(made[(q + 1) * ld], 0xa5a5a5a5);
        filters[q] = (gnomon_filter){.least = least[q], .room = ROOM, .kept = kept[q]};
        filters[q].self = q == 1 ? t->row + (uint32_t)(t->count / 2) : UINT32_MAX;
        t->all[q] = all[q];
        t->taken[q] = 0;
        t->asked[q] = least[q];
    }
    for (int64_t p = 0; p < t->count; p++)
        rows[p] = t->points + p * t->stride;
    t->filters = filters;
    gnomon_sift_planes s = {.picks = made,
                            .ld = ld,
                            .count = QUERIES,
                            .filters = filters,
                            .planes = planes,
                            .bits = bits,
                            .k = t->k,
                            .sums = bits > GNOMON_PLANES ? carried : NULL,
                            .row = t->row,
                            .rows = (uint32_t)t->count,
                            .full = take,
                            .arg = t};
    for (; s.part * GNOMON_PLANES < bits; s.part++) {
        k->turn_bits(rows, t->count, t->col_stride, bits, s.part, planes);
        k->sift_planes(&s);
    }
    for (int64_t q = 0; q < QUERIES; q++) {
        const float asked = t->asked[q];
        take(t, q);
        t->asked[q] = asked; /* all that was to pass has */
        check_query(isa, t, q, least[q]);
    }
    free(carried);
    free(planes);
    free(made);
}

static void check_points(kind like, int64_t bytes, int64_t count, int64_t col_stride, int64_t k)
{
    const int64_t stride = bytes * col_stride + (int64_t)(any() % 3);
    const int64_t size = (count - 1) * stride + (bytes - 1) * col_stride + 1;
    uint8_t *points = malloc((size_t)size), *queries = malloc((size_t)(QUERIES * bytes));
    assert_true(points != NULL && queries != NULL);
    for (int64_t i = 0; i < size; i++)
        points[i] = byte_of(like, i % stride);
    for (int64_t q = 0; q < QUERIES; q++)
        for (int64_t j = 0; j < bytes; j++)
            queries[q * bytes + j] = byte_of(q < 2 ? like : q < 4 ? SPARSE : DENSE, j);
    /* a query may be its own point, which is left out */
    for (int64_t j = 0; j < bytes; j++)
        queries[bytes + j] = points[count / 2 * stride + j * col_stride];
    task t = {.bytes = bytes,
              .stride = stride,
              .col_stride = col_stride,
              .count = count,
              .k = k,
              .row = (uint32_t)(any() % 100000),
              .points = points,
              .queries = queries};
    float least[QUERIES];
    for (int64_t q = 0; q < QUERIES; q++) {
        const float some = -(float)apart(&t, q, (int64_t)(any() % (uint64_t)count));
        least[q] = q == 0           ? -INFINITY
                   : any() % 8 == 0 ? 0.5F
                   : any() % 2 == 0 ? some
                                    : nextafterf(some, any() % 2 ? INFINITY : -INFINITY);
    }
    for (int level = 0; level < GNOMON_ISA_COUNT; level++)
        if (gnomon_isa_available((gnomon_isa)level))
            check_task(gnomon_isa_name((gnomon_isa)level), &t, least);
    free(points);
    free(queries);
}

static void planes_count_bits(void **state)
{
    (void)state;
    static const int64_t bytes[] = {1,  2,  7,  8,  9,   16,  31,  32,
                                    33, 63, 64, 65, 100, 128, 129, MOST_BYTES};
    static const int64_t counts[] = {1, 31, 33, 130, 300, 511, POINTS}, ks[] = {0, 1, 10, 600};
    int turn = 0;
    for (size_t b = 0; b < sizeof bytes / sizeof *bytes; b++)
        for (int i = 0; i < 4 * KINDS; i++, turn++)
            check_points((kind)(i % KINDS), bytes[b], counts[turn % 7], turn % 5 == 4 ? 2 : 1,
                         ks[turn / 7 % 4]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(planes_count_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

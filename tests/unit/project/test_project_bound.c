/* The error bound of gnomon/project.h against sums in double-double arithmetic, on inputs that are
 * hard for it: every kind, type, layout and call. */
#include "project.h"

#include "operator/operator.h"

/* A sum of two doubles, of about 106 bits. */
typedef struct dd {
    double hi, lo;
} dd;

static dd two_sum(double a, double b)
{
    const double s = a + b, t = s - a;
    return (dd){s, (a - (s - t)) + (b - t)};
}

static dd dd_add(dd a, dd b)
{
    dd s = two_sum(a.hi, b.hi);
    const dd t = two_sum(a.lo, b.lo);
    s = two_sum(s.hi, s.lo + t.hi);
    return two_sum(s.hi, s.lo + t.lo);
}

static dd dd_times(dd a, double b)
{
    const double p = a.hi * b;
    return two_sum(p, fma(a.hi, b, -p) + a.lo * b);
}

/* A vector with what bounds its errors: sums of absolute terms, and the additions behind each. */
typedef struct number {
    dd exact;
    double most;
} number;

typedef struct level {
    const gnomon_simple *a;
    int64_t blocks; /* of the level's matrix side by side */
    float *values;  /* a->rows x a->cols */
} level;

typedef struct reference {
    const gnomon_operator *op;
    int levels;
    level level[GNOMON_MAX_LEVELS];
    int64_t k, d, padded;
} reference;

static reference make_reference(const gnomon_operator *op)
{
    reference r = {.op = op, .levels = op->levels, .k = op->descriptor.k, .d = op->descriptor.d};
    for (int t = 0; t < op->levels; t++) {
        level *l = &r.level[t];
        l->a = &op->factor[t];
        l->blocks = op->levels > 1 ? op->repeat[t] : op->blocks;
        l->values = malloc((size_t)(l->a->rows * l->a->cols) * sizeof *l->values);
        assert_non_null(l->values);
        gnomon_simple_values(l->a, 0, l->a->rows, 0, l->a->cols, l->values, l->a->cols, 1);
    }
    r.padded = r.level[0].blocks * r.level[0].a->cols;
    return r;
}

static void free_reference(reference *r)
{
    for (int t = 0; t < r->levels; t++)
        free(r->level[t].values);
}

/* Rows [first, first + rows) of a block's matrix and where they stand in the operator. */
static void block_rows(const reference *r, int64_t block, int64_t *first, int64_t *rows)
{
    *first = gnomon_block_first_row(r->op, block);
    *rows = gnomon_block_first_row(r->op, block + 1) - *first;
}

/* One level onto its input, or its transpose; *chain grows by the longest sum's roundings. */
static number *apply_level(const reference *r, int t, bool adjoint, const number *in, double *chain)
{
    const level *l = &r->level[t];
    const bool one = r->levels == 1;
    const int64_t across = l->a->cols, down = l->a->rows;
    const int64_t out_size = adjoint ? l->blocks * across : one ? r->k : l->blocks * down;
    number *out = calloc((size_t)out_size, sizeof *out);
    assert_non_null(out);
    int64_t longest = 0;
    for (int64_t b = 0; b < l->blocks; b++) {
        int64_t first = b * down, rows = down;
        if (one) block_rows(r, b, &first, &rows);
        for (int64_t o = 0; o < (adjoint ? across : rows); o++) {
            number sum = {{0, 0}, 0};
            int64_t terms = 0;
            for (int64_t i = 0; i < (adjoint ? rows : across); i++) {
                const double v = (double)l->values[adjoint ? i * across + o : o * across + i];
                const number *x = &in[adjoint ? first + i : b * across + i];
                if (v == 0 || x->most == 0) continue;
                sum.exact = dd_add(sum.exact, dd_times(x->exact, v));
                sum.most += fabs(v) * x->most;
                terms++;
            }
            out[adjoint ? b * across + o : first + o] = sum;
            if (terms > longest) longest = terms;
        }
    }
    *chain += (double)longest - (l->a->kind == GNOMON_GAUSSIAN || longest == 0 ? 0 : 1);
    return out;
}

/* S x, or S' y: in has d (k) numbers, the result k (d at least). */
static number *apply(const reference *r, bool adjoint, const number *in, double *chain)
{
    number *now = calloc((size_t)(r->padded > r->k ? r->padded : r->k), sizeof *now);
    assert_non_null(now);
    memcpy(now, in, (size_t)(adjoint ? r->k : r->d) * sizeof *now);
    *chain = 0;
    for (int t = 0; t < r->levels; t++) {
        number *next = apply_level(r, adjoint ? r->levels - 1 - t : t, adjoint, now, chain);
        free(now);
        now = next;
    }
    return now;
}

enum { SKETCH, STREAM, CSR, COO, ADJOINT, CALLS };
static const char *const call_names[] = {"sketch", "stream", "csr", "coo", "adjoint"};
enum { ONE_WAY, ONE_TERM, WILD, CANCELS, TINY, PLAIN, INPUTS };
static const char *const input_names[] = {"one way", "one term", "wild",
                                          "cancels", "tiny",     "plain"};

/* Points that are hard: sums whose every addition rounds the same way, a single term, numbers of
 * all sizes, sums that are far smaller than their terms, numbers near the smallest. */
static void fill_hard(const gnomon_matrix *m, int input, uint64_t *random)
{
    const bool f64 = m->dtype == GNOMON_F64, f32 = m->dtype == GNOMON_F32;
    const bool real = f64 || f32 || m->dtype == GNOMON_BF16;
    const int digits = f64 ? 52 : f32 ? 23 : 7;
    for (int64_t i = 0; i < m->rows; i++)
        for (int64_t j = 0; j < m->cols; j++) {
            const double v = next_uniform(random);
            double x = v;
            if (input == ONE_TERM)
                x = j == (i * 37 + 11) % m->cols ? v : 0;
            else if (!real)
                x = v;
            else if (input == ONE_WAY)
                x = j == 0 ? 1 : ldexp(0.5 + 0x1p-6 * (double)(i + 1), -digits);
            else if (input == WILD)
                x = ldexp(v, (int)(next_random(random) % 60) - 30);
            else if (input == CANCELS)
                x = (j % 2 ? -1 : 1) * ldexp(1 + (double)(j / 2 % 7) * 0x1p-6, 20) + v;
            else if (input == TINY)
                x = ldexp(v, f64 ? -1060 : -135);
            set_element(m, i, j, x);
        }
}

static gnomon_status run_call(gnomon_context *ctx, const gnomon_operator *op, int call,
                              const gnomon_matrix *x, const gnomon_matrix *y, bool is_f64_work,
                              const gnomon_sketch_options *o)
{
    if (call == SKETCH) return gnomon_sketch(ctx, op, x, y, o);
    if (call == ADJOINT) return gnomon_adjoint(ctx, op, x, y, o);
    if (call == STREAM) {
        gnomon_stream *s = NULL;
        gnomon_status status =
            gnomon_stream_create(ctx, op, x->rows, is_f64_work ? GNOMON_F64 : GNOMON_F32, o, &s);
        for (int64_t at = 0; at < x->cols && status == GNOMON_OK; at += 57) {
            gnomon_matrix piece = *x;
            piece.data =
                (char *)x->data + at * x->col_stride * (int64_t)gnomon_dtype_size(x->dtype);
            piece.cols = x->cols - at < 57 ? x->cols - at : 57;
            status = gnomon_stream_push(s, &piece);
        }
        if (status == GNOMON_OK) status = gnomon_stream_finish(s, y);
        gnomon_stream_destroy(s);
        return status;
    }
    const int64_t n = x->rows, d = x->cols;
    int64_t *const offsets = malloc((size_t)(n + 1 + 2 * n * d) * sizeof *offsets);
    assert_non_null(offsets);
    int64_t *const rows = offsets + n + 1, *const cols = rows + n * d;
    owned values = make_matrix(1, n * d, x->dtype, ROW_MAJOR);
    int64_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        offsets[i] = at;
        for (int64_t j = d - 1; j >= 0; j--) { /* not sorted */
            if (element(x, i, j) == 0) continue;
            rows[at] = i;
            cols[at] = j;
            memcpy((char *)values.m.data + at * (int64_t)gnomon_dtype_size(x->dtype),
                   (const char *)x->data + (i * x->row_stride + j * x->col_stride) *
                                               (int64_t)gnomon_dtype_size(x->dtype),
                   gnomon_dtype_size(x->dtype));
            at++;
        }
    }
    offsets[n] = at;
    const gnomon_csr csr = {n, d, offsets, cols, values.m.data, x->dtype};
    const gnomon_coo coo = {n, d, at, rows, cols, values.m.data, x->dtype};
    const gnomon_status status = call == CSR ? gnomon_sketch_csr(ctx, op, &csr, y, o)
                                             : gnomon_sketch_coo(ctx, op, &coo, y, o);
    free(offsets);
    free_matrix(&values);
    return status;
}

static bool is_f64(gnomon_dtype dtype)
{
    return dtype == GNOMON_F64 || dtype == GNOMON_I32 || dtype == GNOMON_U32 ||
           dtype == GNOMON_I64 || dtype == GNOMON_U64;
}

/* The largest error in parts of the bound. */
static double check(gnomon_context *ctx, const reference *r, const char *name, int call, int input,
                    gnomon_dtype in_type, gnomon_dtype out_type, int layout, double alpha,
                    double beta)
{
    enum { N = 3 };
    const bool adjoint = call == ADJOINT, is_f64_work = is_f64(in_type) || out_type == GNOMON_F64;
    const int64_t from = adjoint ? r->k : r->d, to = adjoint ? r->d : r->k;
    uint64_t random = 7 + (uint64_t)input;
    owned x = make_matrix(N, from, in_type, layout), y = make_matrix(N, to, out_type, layout);
    owned before = make_matrix(N, to, out_type, layout);
    fill_hard(&x.m, input, &random);
    fill_random(&before.m, 3);
    if (input == TINY)
        for (int64_t i = 0; i < N; i++)
            for (int64_t j = 0; j < to; j++)
                set_element(&before.m, i, j,
                            ldexp(element(&before.m, i, j), in_type == GNOMON_F64 ? -1060 : -135));
    copy_matrix(&before.m, &y.m);
    gnomon_sketch_options o = GNOMON_SKETCH_OPTIONS_INIT;
    o.alpha = alpha;
    o.beta = beta;
    ASSERT_OK(ctx, run_call(ctx, r->op, call, &x.m, &y.m, is_f64_work, &o));

    /* tiny numbers are compared 2^500 times as large, where double-double holds them */
    const double up = input == TINY ? 0x1p500 : 1;
    const double u = is_f64_work ? 0x1p-53 : 0x1p-24;
    const double w = out_type == GNOMON_F64 ? 0x1p-51 : 0x1p-24 + 0x1p-50;
    const double least_sum = is_f64_work ? DBL_TRUE_MIN * up : 0x1p-149 * up;
    const double least_out = out_type == GNOMON_F64 ? DBL_TRUE_MIN * up : 0x1p-149 * up;
    const bool gaussian = r->level[0].a->kind == GNOMON_GAUSSIAN;
    double worst = 0;
    number *in = malloc((size_t)from * sizeof *in);
    assert_non_null(in);
    for (int64_t i = 0; i < N; i++) {
        for (int64_t j = 0; j < from; j++) {
            const double v = element(&x.m, i, j) * up;
            in[j] = (number){{v, 0}, fabs(v)};
        }
        double c;
        number *out = apply(r, adjoint, in, &c);
        for (int64_t j = 0; j < to; j++) {
            /* the scale of the rows that take part: of one block */
            const int64_t block = j / r->op->block_cols;
            const int64_t row = !adjoint            ? j
                                : r->op->blocks > 1 ? gnomon_block_first_row(r->op, block)
                                                    : 0;
            const double scale = gnomon_operator_row_scale(r->op, row < r->k ? row : 0);
            const double old = element(&before.m, i, j) * up;
            dd exact = dd_times(dd_times(out[j].exact, scale), alpha);
            if (beta != 0) exact = dd_add(exact, dd_times((dd){old, 0}, beta));
            const double e = c * u + w, gamma = e / (1 - e);
            const double growth =
                r->levels > 1 ? 0x1p20 : 1; /* of what underflows, level by level */
            const double most = gamma * fabs(alpha) * scale * out[j].most +
                                w / (1 - w) * fabs(beta * old) + 2 * least_out +
                                (gaussian ? c * fabs(alpha) * scale * growth * least_sum : 0);
            const dd off = dd_add(exact, (dd){-element(&y.m, i, j) * up, 0});
            const double error = fabs(off.hi);
            if (!(error <= most))
                fail_msg("%s, %s, %s, %s to %s, layout %d, alpha %g, beta %g: (%lld, %lld) is "
                         "%.17g, not %.17g, off by %g; the bound is %g, c = %g",
                         name, call_names[call], input_names[input], gnomon_dtype_name(in_type),
                         gnomon_dtype_name(out_type), layout, alpha, beta, (long long)i,
                         (long long)j, element(&y.m, i, j), exact.hi / up, error / up, most / up,
                         c);
            if (most > 0 && error / most > worst) worst = error / most;
        }
        free(out);
    }
    free(in);
    check_sentinels(&y);
    free_matrix(&x);
    free_matrix(&y);
    free_matrix(&before);
    return worst;
}

static const struct {
    any_operator a;
    int64_t k, d;
} cases[] = {
    {{"gaussian", GNOMON_GAUSSIAN, 0, 0, 0, 0, 0, 0, 0, 0}, 13, 331},
    {{"gaussian fp16", GNOMON_GAUSSIAN, 0, GNOMON_F16, 0, 0, 0, 0, 0, 0}, 13, 331},
    {{"rademacher", GNOMON_RADEMACHER, 0, 0, 0, 0, 0, 0, 0, 0}, 13, 331},
    {{"achlioptas", GNOMON_ACHLIOPTAS, 0, 0, 0, 0, 0, 0, 0, 0}, 13, 331},
    {{"very-sparse", GNOMON_VERY_SPARSE, 0, 0, 0, 0, 0, 0, 0, 0}, 13, 331},
    {{"very-sparse 1", GNOMON_VERY_SPARSE, 0, 0, 1, 0, 0, 0, 0, 0}, 13, 331},
    {{"sjlt", GNOMON_SJLT, 0, 0, 0, 0, 0, 0, 0, 0}, 13, 331},
    {{"srht", GNOMON_SRHT, 0, 0, 0, 0, 0, 0, 0, 0}, 13, 331},
    {{"blockperm-sjlt", GNOMON_BLOCKPERM_SJLT, 0, 0, 0, 1, 4, 0, 0, 3}, 13, 331},
    {{"block gaussian", GNOMON_BLOCK, GNOMON_GAUSSIAN, 0, 0, 0, 4, 0, 0, 0}, 13, 331},
    {{"block rademacher", GNOMON_BLOCK, GNOMON_RADEMACHER, 0, 0, 0, 5, 0, 0, 0}, 13, 331},
    {{"block sjlt", GNOMON_BLOCK, GNOMON_SJLT, 0, 0, 2, 3, 0, 0, 0}, 12, 331},
    {{"kronecker rademacher", GNOMON_KRONECKER, GNOMON_RADEMACHER, 0, 0, 0, 0, 2, 0, 0}, 9, 250},
    {{"kronecker gaussian", GNOMON_KRONECKER, GNOMON_GAUSSIAN, 0, 0, 0, 0, 3, 11, 0}, 9, 250},
    {{"kronecker fp16", GNOMON_KRONECKER, GNOMON_GAUSSIAN, GNOMON_F16, 0, 0, 0, 2, 0, 0}, 9, 100},
    {{"kronecker sparse", GNOMON_KRONECKER, GNOMON_VERY_SPARSE, 0, 0.2, 0, 0, 2, 0, 0}, 12, 190},
    {{"kronecker sjlt", GNOMON_KRONECKER, GNOMON_SJLT, 0, 0, 2, 0, 4, 0, 0}, 9, 250},
    {{"gaussian, several chunks", GNOMON_GAUSSIAN, 0, 0, 0, 0, 0, 0, 0, 0}, 2, 9001},
    {{"srht, several chunks", GNOMON_SRHT, 0, 0, 0, 0, 0, 0, 0, 0}, 2, 9001},
};

static void errors_stay_within_the_bound(void **state)
{
    (void)state;
    gnomon_context *ctx = make_context(2, 0);
    double worst = 0;
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        gnomon_operator *op = make_operator(ctx, &cases[n].a, cases[n].k, cases[n].d);
        reference r = make_reference(op);
        int turn = (int)n; /* of the types, layouts and factors that are tried together */
        for (int call = 0; call < CALLS; call++)
            for (int input = 0; input < INPUTS; input++)
                for (int f64 = 0; f64 < 3; f64++, turn++) {
                    const gnomon_dtype in = f64 == 2   ? (gnomon_dtype)(GNOMON_F32 + turn % 12)
                                            : f64 == 1 ? GNOMON_F64
                                                       : GNOMON_F32;
                    const gnomon_dtype out = turn % 3 == 0 ? GNOMON_F64 : GNOMON_F32;
                    static const double alphas[] = {1, -0.3, 1, 1e-3}, betas[] = {0, 1.7, -1};
                    if (input == TINY && f64 == 2) continue;
                    const double part =
                        check(ctx, &r, cases[n].a.name, call, input, in, out, turn % LAYOUTS,
                              alphas[turn % 4], betas[turn / 2 % 3]);
                    if (part > worst) worst = part;
                }
        free_reference(&r);
        gnomon_operator_destroy(op);
    }
    /* the inputs are hard: a bound of two thirds would be broken */
    if (!(worst > 0.66)) fail_msg("the largest error is %g of the bound", worst);
    gnomon_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(errors_stay_within_the_bound)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

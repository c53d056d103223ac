/* Choosing an operator: the laws' numbers of rows, what is admitted when, the counts of the cost
 * model, the choice itself. Models from JSON: test_model.c. */
#include "choose/choose.h"

#include <gnomon/choose.h>
#include <gnomon/project.h>
#include <gnomon/quality.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static gnomon_context *ctx;

static int make(void **state)
{
    (void)state;
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    options.device = "cpu";
    options.threads = 2;
    return gnomon_context_create(&options, &ctx) == GNOMON_OK ? 0 : -1;
}

static int drop(void **state)
{
    (void)state;
    gnomon_context_destroy(ctx);
    return 0;
}

static gnomon_choose_options ask(int64_t n, int64_t d, int64_t k, double eps)
{
    gnomon_choose_options o = GNOMON_CHOOSE_OPTIONS_INIT;
    o.n = n;
    o.d = d;
    o.k = k;
    o.eps = eps;
    return o;
}

static gnomon_choice choose(const gnomon_choose_options *o)
{
    gnomon_choice choice;
    choice.struct_size = sizeof choice;
    if (gnomon_operator_choose(ctx, o, &choice) != GNOMON_OK)
        fail_msg("%s", gnomon_last_error(ctx));
    return choice;
}

/* The nth candidate of a kind. */
static const gnomon_candidate *of(const gnomon_choice *choice, gnomon_kind kind, int nth)
{
    for (int i = 0; i < choice->count; i++)
        if (choice->candidate[i].descriptor.kind == kind && nth-- == 0)
            return &choice->candidate[i];
    fail_msg("no candidate of kind %d", (int)kind);
    return NULL;
}

static int64_t dim(gnomon_bound bound, int64_t n, double eps, double delta)
{
    int64_t k;
    assert_int_equal(gnomon_dim(ctx, bound, n, eps, 0, delta, NULL, &k), GNOMON_OK);
    return k;
}

/* With eps and no assumption every kind has the rows of a theorem that holds for any points. */
static void test_laws_for_any_points(void **state)
{
    (void)state;
    const int64_t n = 1000, d = INT64_C(1) << 24;
    gnomon_choose_options o = ask(n, d, 0, 0.5);
    o.delta = 0.01;
    const gnomon_choice c = choose(&o);
    const int64_t signs = dim(GNOMON_BOUND_ACHLIOPTAS, n, 0.5, 0.01);
    const double pairs = 1000.0 * 999 / 2;
    assert_int_equal(of(&c, GNOMON_RADEMACHER, 0)->descriptor.k, signs);
    assert_int_equal(of(&c, GNOMON_ACHLIOPTAS, 0)->descriptor.k, signs);
    assert_int_equal(of(&c, GNOMON_GAUSSIAN, 0)->descriptor.k,
                     dim(GNOMON_BOUND_GAUSSIAN_EXACT, n, 0.5, 0.01));
    assert_int_equal(of(&c, GNOMON_GAUSSIAN, 1)->admitted, 0); /* fp16 */
    assert_int_equal(of(&c, GNOMON_BLOCK, 0)->descriptor.k, 4 * signs);
    /* which is no bargain, however quick */
    assert_int_equal(of(&c, GNOMON_BLOCK, 0)->admitted, 0);
    assert_non_null(strstr(of(&c, GNOMON_BLOCK, 0)->reason, "more than 2 times"));
    assert_int_equal(of(&c, GNOMON_BLOCK, 1)->descriptor.k, 16 * signs);

    /* Chebyshev: sparse kinds need far more than there are coordinates here */
    const gnomon_candidate *sjlt = of(&c, GNOMON_SJLT, 0);
    assert_int_equal(sjlt->admitted, 0);
    assert_int_equal(sjlt->descriptor.k % 4, 0);
    assert_true(fabs((double)sjlt->descriptor.k - pairs * 2 * 65 / 64 / (0.01 * 0.25)) <= 4);
    const gnomon_candidate *sparse = of(&c, GNOMON_VERY_SPARSE, 0);
    assert_true(fabs((double)sparse->descriptor.k - pairs * 4095 / (0.01 * 0.25)) <= 1);

    /* srht: both failures, of the flattening and of the sample, come to half of delta */
    const gnomon_candidate *srht = of(&c, GNOMON_SRHT, 0);
    const double k = (double)srht->descriptor.k;
    const double most = 2 * log(2 * (double)d * pairs / 0.005);
    const double above = 1.5 * log(1.5) - 0.5, below = 0.5 + 0.5 * log(0.5);
    assert_true(pairs * (exp(-k / most * above) + exp(-k / most * below)) <= 0.005);
    assert_true(2 * pairs * exp(-(k - 2) / most * above) > 0.005);

    /* kronecker: wider than signs, for its levels add up; narrower levels cost less */
    for (int i = 0; i < 3; i++)
        assert_true(of(&c, GNOMON_KRONECKER, i)->descriptor.k > signs);
    assert_true(of(&c, GNOMON_KRONECKER, 2)->descriptor.k <
                of(&c, GNOMON_KRONECKER, 0)->descriptor.k);
}

/* The cascade's rows, checked from outside: the best split of eps over the levels just keeps
 * delta, and with a tenth fewer rows no split does. */
static double cascade_failure(double k, int levels, double c, double pairs)
{
    double failure = 0;
    for (int t = 1; t <= levels; t++) {
        const double rows = t < levels ? t * k : k, eps = c / sqrt(rows);
        failure += 2 * pairs * exp(-rows / 2 * (eps * eps / 2 - eps * eps * eps / 3));
    }
    return failure;
}

static void test_cascade_law(void **state)
{
    (void)state;
    gnomon_choose_options o = ask(100, 1 << 20, 0, 0.4);
    const gnomon_choice choice = choose(&o);
    const double pairs = 4950, k = (double)of(&choice, GNOMON_KRONECKER, 1)->descriptor.k;
    int levels = 1;
    while (k * pow(4, levels) < 1 << 20)
        levels++;
    assert_true(levels > 2);
    for (int fewer = 0; fewer < 2; fewer++) {
        const double rows = fewer ? 0.9 * k : k;
        double best = INFINITY;
        for (double c = 0.1; c < 20; c += 0.001) {
            double product = 1;
            for (int t = 1; t <= levels; t++)
                product *= 1 + c / sqrt(t < levels ? t * rows : rows);
            if (product <= 1.4) best = fmin(best, cascade_failure(rows, levels, c, pairs));
        }
        if (fewer)
            assert_true(best > 0.05);
        else
            assert_true(best <= 0.0502);
    }
}

static void test_laws_for_spread_points(void **state)
{
    (void)state;
    gnomon_choose_options o = ask(1000, 1 << 20, 0, 0.5);
    o.assume = GNOMON_ASSUME_INCOHERENT;
    const gnomon_choice dense = choose(&o);
    const int64_t exact = dim(GNOMON_BOUND_GAUSSIAN_EXACT, 1000, 0.5, 0.05);
    const gnomon_kind same[] = {GNOMON_RADEMACHER, GNOMON_GAUSSIAN, GNOMON_ACHLIOPTAS, GNOMON_SRHT};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(of(&dense, same[i], 0)->descriptor.k, exact);
        assert_true(of(&dense, same[i], 0)->admitted);
    }
    assert_int_equal(of(&dense, GNOMON_VERY_SPARSE, 0)->descriptor.k,
                     (int64_t)ceil((double)exact * (2 + (1024 - 3) * 3.0 / (1 << 20)) / 2));
    /* Few nonzeros a point hold more weight each. */
    o.nonzeros = 1000 * 50;
    const gnomon_choice sparse = choose(&o);
    assert_int_equal(of(&sparse, GNOMON_VERY_SPARSE, 0)->descriptor.k,
                     (int64_t)ceil((double)exact * (2 + (1024 - 3) * 3.0 / 50) / 2));
    assert_true(dense.candidate[dense.chosen].admitted);
}

/* With k given the kinds are held to what dense ones do. */
static void test_admitted_at_k(void **state)
{
    (void)state;
    gnomon_choose_options o = ask(100, 10000, 64, 0);
    for (int spread = 0; spread < 2; spread++) {
        if (spread) o.assume = GNOMON_ASSUME_INCOHERENT;
        const gnomon_choice c = choose(&o);
        for (int i = 0; i < c.count; i++) {
            const gnomon_kind kind = c.candidate[i].descriptor.kind;
            const bool dense = kind <= GNOMON_ACHLIOPTAS, composed = kind >= GNOMON_BLOCK;
            assert_int_equal(c.candidate[i].admitted, dense || (spread && !composed));
            assert_int_equal(c.candidate[i].descriptor.k, 64);
            assert_true(c.candidate[i].reason[0] != '\0');
        }
    }
    /* nine coordinates: a third of very-sparse's entries are not zero */
    o = ask(100, 9, 4, 0);
    const gnomon_choice few = choose(&o);
    assert_true(of(&few, GNOMON_VERY_SPARSE, 0)->admitted);
    /* points of a few nonzeros */
    o = ask(100, 1000000, 64, 0);
    o.assume = GNOMON_ASSUME_INCOHERENT;
    o.nonzeros = 100 * 20;
    const gnomon_choice hot = choose(&o);
    assert_false(of(&hot, GNOMON_VERY_SPARSE, 0)->admitted);
    assert_true(of(&hot, GNOMON_SJLT, 0)->admitted);
    /* a cascade of one level is a dense matrix */
    o = ask(100, 100, 64, 0);
    const gnomon_choice one = choose(&o);
    assert_true(of(&one, GNOMON_KRONECKER, 0)->admitted);
}

/* What the laws say of variances, on the points that are worst: measured over seeds. */
static double variance(gnomon_descriptor d, const float *x, int seeds)
{
    double sum = 0, squares = 0, y[64];
    for (int s = 0; s < seeds; s++) {
        gnomon_operator *op;
        d.seed = (uint64_t)s;
        assert_int_equal(gnomon_operator_create(ctx, &d, &op), GNOMON_OK);
        const gnomon_matrix in = gnomon_matrix_rowmajor((void *)(uintptr_t)x, GNOMON_F32, 1, d.d);
        const gnomon_matrix out = gnomon_matrix_rowmajor(y, GNOMON_F64, 1, d.k);
        assert_int_equal(gnomon_sketch(ctx, op, &in, &out, NULL), GNOMON_OK);
        gnomon_operator_destroy(op);
        double norm = 0;
        for (int64_t i = 0; i < d.k; i++)
            norm += y[i] * y[i];
        sum += norm;
        squares += norm * norm;
    }
    return squares / seeds - sum / seeds * (sum / seeds);
}

static void test_variances(void **state)
{
    (void)state;
    enum { D = 1024, K = 64, SEEDS = 2000 };
    static float x[D];
    gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
    d.k = K;
    d.d = D;
    /* sjlt: at most that of dense kinds, 2/k, on any points; here two coordinates: 1/k */
    x[3] = x[700] = (float)sqrt(0.5);
    d.kind = GNOMON_SJLT;
    d.nonzeros = 4;
    assert_true(variance(d, x, SEEDS) * K < 1.2 && variance(d, x, SEEDS) * K > 0.8);
    d.nonzeros = 0;
    d.kind = GNOMON_SRHT;
    assert_true(variance(d, x, SEEDS) * K < 2);
    /* very-sparse: 1/p - 1 on one coordinate */
    memset(x, 0, sizeof x);
    x[5] = 1;
    d.kind = GNOMON_VERY_SPARSE;
    assert_true(fabs(variance(d, x, SEEDS) * K - 31) < 4);
    /* block: one block's rows alone see a point that lies in it */
    for (int i = 0; i < 64; i++)
        x[i] = 0.125f;
    d.kind = GNOMON_BLOCK;
    d.blocks = 16;
    assert_true(fabs(variance(d, x, SEEDS) * K - 2 * 16 * (1 - 1.0 / 64)) < 4);
    /* kronecker: the levels add up */
    d.kind = GNOMON_KRONECKER;
    d.blocks = 0;
    for (int i = 0; i < D; i++)
        x[i] = 1.0f / 32;
    const gnomon_choose_options o = ask(100, D, K, 0);
    const gnomon_choice c = choose(&o);
    double most = 0;
    assert_int_equal(
        sscanf(strstr(of(&c, GNOMON_KRONECKER, 0)->reason, "variance ") + 9, "%lf", &most), 1);
    const double measured = variance(d, x, SEEDS) * K / 2;
    assert_true(measured > 1.2 && measured < 1.15 * most);
}

/* A model in which only one count has a price. */
static gnomon_model priced(size_t member)
{
    gnomon_model m = {.name = "priced", .device = GNOMON_DEVICE_CPU, .threads = 1};
    for (int kind = GNOMON_GAUSSIAN; kind <= GNOMON_SRHT; kind++)
        for (int form = 0; form < 3; form++) {
            gnomon_cost *c = &m.cost[m.count++];
            *c = (gnomon_cost){.kind = (gnomon_kind)kind,
                               .form = (gnomon_form)form,
                               .precision = kind == GNOMON_GAUSSIAN ? GNOMON_F32 : 0,
                               .point_tile = 16,
                               .row_tile = 8,
                               .half = 0.5,
                               .f64 = 2};
            *(double *)((char *)c + member) = 1;
        }
    return m;
}

static double price(size_t member, gnomon_descriptor d, gnomon_load load)
{
    const gnomon_model m = priced(member);
    gnomon_operator *op;
    assert_int_equal(gnomon_operator_create(ctx, &d, &op), GNOMON_OK);
    if (load.threads == 0) load.threads = 1;
    if (load.element_size == 0) load.element_size = 4;
    const double seconds = gnomon_predict(&m, op, &load);
    gnomon_operator_destroy(op);
    return seconds;
}

#define PRICE(member, ...) price(offsetof(gnomon_cost, member), __VA_ARGS__)

static void test_counts(void **state)
{
    (void)state;
    gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
    gnomon_load load = {.n = 20};
    d.kind = GNOMON_RADEMACHER;
    d.k = 12;
    d.d = 1000;
    assert_true(PRICE(start, d, load) == 1);
    assert_true(PRICE(make, d, load) == 12000);
    assert_true(PRICE(multiply, d, load) == 32 * 16 * 1000); /* whole tiles */
    assert_true(PRICE(read, d, load) == 20000);
    assert_true(PRICE(write, d, load) == 240);
    assert_true(PRICE(step, d, load) == 0);
    load.f64 = true;
    assert_true(PRICE(write, d, load) == 480);
    load.f64 = false;
    load.element_size = 2;
    assert_true(PRICE(write, d, load) == 120);
    load.element_size = 4;
    load.threads = 4;
    assert_true(PRICE(write, d, load) == 60 && PRICE(start, d, load) == 1);
    load.threads = 1;

    d.kind = GNOMON_SJLT;
    d.nonzeros = 3;
    assert_true(PRICE(make, d, load) == 3000 && PRICE(multiply, d, load) == 32 * 3000);
    d.nonzeros = 0;
    d.kind = GNOMON_VERY_SPARSE;
    d.density = 0.1;
    assert_true(fabs(PRICE(make, d, load) - 1200) < 1e-9);
    d.density = 0;
    d.kind = GNOMON_SRHT;
    assert_true(PRICE(multiply, d, load) == 32 * 1024 * 10);

    /* block: A on n r points */
    d.kind = GNOMON_BLOCK;
    d.blocks = 4;
    assert_true(PRICE(make, d, load) == 3 * 250 && PRICE(read, d, load) == 20000);
    assert_true(PRICE(multiply, d, load) == 80 * 8 * 250);
    d.blocks = 0;
    /* kronecker, k = 12, zeta = 2: 7 levels, the first of 1000 / 24 -> 42 blocks */
    d.kind = GNOMON_KRONECKER;
    assert_true(PRICE(start, d, load) == 7);
    assert_true(PRICE(write, d, load) ==
                20.0 * 12 * (42 * 1 + 21 * 2 + 11 * 3 + 6 * 4 + 3 * 5 + 2 * 6 + 1));

    /* sparse: the touched columns are made, the nonzeros are multiplied */
    load.form = GNOMON_FORM_SPARSE;
    load.nonzeros = 100;
    d.kind = GNOMON_RADEMACHER;
    assert_true(PRICE(multiply, d, load) == 1200 && PRICE(read, d, load) == 100);
    assert_true(fabs(PRICE(make, d, load) - 12000 * (1 - exp(-0.1))) < 1e-6);
}

static void test_choice(void **state)
{
    (void)state;
    gnomon_choose_options o = ask(500, 2000, 100, 0);
    o.seed = 7;
    o.assume = GNOMON_ASSUME_INCOHERENT;
    const gnomon_choice c = choose(&o);
    const gnomon_candidate *best = &c.candidate[c.chosen];
    assert_int_equal(c.device, GNOMON_DEVICE_CPU);
    assert_string_equal(c.model, gnomon_shipped_models[0].name);
    for (int i = 0; i < c.count; i++)
        assert_true(!c.candidate[i].admitted || c.candidate[i].seconds >= best->seconds);
    gnomon_operator *op;
    gnomon_descriptor again = GNOMON_DESCRIPTOR_INIT;
    assert_int_equal(gnomon_operator_create(ctx, &best->descriptor, &op), GNOMON_OK);
    gnomon_operator_describe(op, &again);
    gnomon_operator_destroy(op);
    assert_memory_equal(&again, &best->descriptor, sizeof again);
    assert_int_equal(again.seed, 7);
    /* a kind without figures is ruled out, the dearest kind made free is taken */
    gnomon_model m = priced(offsetof(gnomon_cost, multiply));
    for (int i = 0; i < m.count; i++)
        if (m.cost[i].kind == GNOMON_ACHLIOPTAS) m.cost[i].multiply = 0;
    m.count -= 3; /* srht */
    o.model = &m;
    const gnomon_choice other = choose(&o);
    assert_int_equal(other.candidate[other.chosen].descriptor.kind, GNOMON_ACHLIOPTAS);
    assert_false(of(&other, GNOMON_SRHT, 0)->admitted);
    assert_true(isnan(of(&other, GNOMON_SRHT, 0)->seconds));
}

/* Which model a device gets, and what is said when it is another's. */
static void model_is(const gnomon_model *list, gnomon_device device, const char *gpu,
                     const char *name, const char *said)
{
    char note[sizeof((gnomon_choice *)NULL)->note] = "x";
    const gnomon_model *m = gnomon_model_for(list, device, gpu, note, sizeof note);
    if (name == NULL)
        assert_null(m);
    else
        assert_string_equal(m->name, name);
    assert_string_equal(note, said);
}

static void test_model_for(void **state)
{
    (void)state;
    const gnomon_model list[] = {
        {.name = "a cpu", .device = GNOMON_DEVICE_CPU, .count = 1},
        {.name = "another cpu", .device = GNOMON_DEVICE_CPU, .count = 1},
        {.name = "NVIDIA H200", .device = GNOMON_DEVICE_PLUGIN, .count = 1},
        {.name = "NVIDIA H100 80GB HBM3", .device = GNOMON_DEVICE_PLUGIN, .count = 1},
        {.count = 0},
    };
    model_is(list, GNOMON_DEVICE_CPU, "", "a cpu", "");
    model_is(list, GNOMON_DEVICE_PLUGIN, "NVIDIA H200, compute capability 9.0, 139.8 GiB",
             "NVIDIA H200", "");
    model_is(list, GNOMON_DEVICE_PLUGIN, "NVIDIA H100 80GB HBM3, compute capability 9.0, 79.2 GiB",
             "NVIDIA H100 80GB HBM3", "");
    /* neither longer nor shorter names are the same GPU */
    model_is(list, GNOMON_DEVICE_PLUGIN, "NVIDIA H200 NVL, compute capability 9.0", "NVIDIA H200",
             "no costs were measured on NVIDIA H200 NVL: those of NVIDIA H200 are taken");
    model_is(list, GNOMON_DEVICE_PLUGIN, "NVIDIA H20, compute capability 9.0", "NVIDIA H200",
             "no costs were measured on NVIDIA H20: those of NVIDIA H200 are taken");
    model_is(list, GNOMON_DEVICE_PLUGIN, "", "NVIDIA H200",
             "no costs were measured on this GPU: those of NVIDIA H200 are taken");
    char endless[200];
    memset(endless, 'x', sizeof endless - 1);
    endless[sizeof endless - 1] = '\0';
    model_is(list, GNOMON_DEVICE_PLUGIN, endless, "NVIDIA H200",
             "no costs were measured on this GPU: those of NVIDIA H200 are taken");
    /* no GPU was measured at all */
    const gnomon_model few[] = {list[0], list[1], list[4]};
    model_is(few, GNOMON_DEVICE_PLUGIN, "NVIDIA A100-SXM4-80GB, compute capability 8.0, 79 GiB",
             "a cpu", "no costs were measured on NVIDIA A100-SXM4-80GB: those of a cpu are taken");
    model_is(&list[4], GNOMON_DEVICE_PLUGIN, "", NULL, "");
    model_is(&list[4], GNOMON_DEVICE_CPU, "", NULL, "");
    model_is(&list[2], GNOMON_DEVICE_CPU, "", NULL, "");
}

/* Every shipped model has all kinds and forms of its device, with sane figures. */
static void test_shipped(void **state)
{
    (void)state;
    int models = 0;
    for (const gnomon_model *m = gnomon_shipped_models; m->count > 0; m++, models++) {
        assert_true(m->name[0] != '\0' && m->threads >= 1);
        /* What a GPU was not measured with is never chosen there; dense kinds it has. */
        assert_in_range(m->count, m->device == GNOMON_DEVICE_CPU ? 21 : 8, GNOMON_MODEL_COSTS);
        if (m->device == GNOMON_DEVICE_PLUGIN) assert_true(m->upload > 0 && m->download > 0);
        for (int i = 0; i < m->count; i++) {
            const gnomon_cost *c = &m->cost[i];
            assert_true(c->start >= 0 && c->make >= 0 && c->multiply >= 0 && c->read >= 0);
            assert_true(c->make + c->multiply + c->read > 0 && c->half > 0 && c->f64 > 0);
        }
    }
    assert_true(models >= 1);
}

static void refused(const gnomon_choose_options *o, gnomon_status status, const char *text)
{
    gnomon_choice choice;
    choice.struct_size = sizeof choice;
    assert_int_equal(gnomon_operator_choose(ctx, o, &choice), status);
    if (!strstr(gnomon_last_error(ctx), text)) fail_msg("%s", gnomon_last_error(ctx));
}

static void test_refusals(void **state)
{
    (void)state;
    gnomon_choose_options o = ask(0, 10, 2, 0);
    gnomon_choice choice;
    refused(&o, GNOMON_ERROR_ARGUMENT, "n is 0");
    o = ask(10, 0, 0, 0.5);
    refused(&o, GNOMON_ERROR_ARGUMENT, "d is 0");
    o = ask(10, 10, 11, 0);
    refused(&o, GNOMON_ERROR_ARGUMENT, "k is 11");
    o = ask(10, 10, 5, 0.5);
    refused(&o, GNOMON_ERROR_ARGUMENT, "give k or eps");
    o = ask(10, 10, 0, 0);
    refused(&o, GNOMON_ERROR_ARGUMENT, "eps is 0");
    o = ask(10, 10, 0, 0.1);
    refused(&o, GNOMON_ERROR_ARGUMENT, "gaussian the fewest: k = ");
    o = ask(10, 10, 5, 0);
    o.assume = (gnomon_assumption)9;
    refused(&o, GNOMON_ERROR_ARGUMENT, "assume is 9");
    o = ask(10, 10, 5, 0);
    o.dtype = (gnomon_dtype)99;
    refused(&o, GNOMON_ERROR_ARGUMENT, "dtype is 99");
    o = ask(10, 10, 5, 0);
    o.nonzeros = -2;
    refused(&o, GNOMON_ERROR_ARGUMENT, "nonzeros is -2");
    o = ask(10, 10, 5, 0);
    o.struct_size = 4;
    refused(&o, GNOMON_ERROR_ARGUMENT, "options.struct_size is 4");
    gnomon_model m = priced(offsetof(gnomon_cost, multiply));
    o = ask(10, 10, 5, 0);
    o.model = &m;
    m.device = GNOMON_DEVICE_PLUGIN;
    strcpy(m.plugin, "other");
    refused(&o, GNOMON_ERROR_UNSUPPORTED, "model 'priced' is for other");
    m.device = GNOMON_DEVICE_CPU;
    m.plugin[0] = '\0';
    m.count = 0;
    refused(&o, GNOMON_ERROR_UNSUPPORTED, "has no figures");
    choice.struct_size = 1;
    assert_int_equal(gnomon_operator_choose(ctx, &o, &choice), GNOMON_ERROR_ARGUMENT);
    assert_int_equal(gnomon_operator_choose(ctx, NULL, NULL), GNOMON_ERROR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_laws_for_any_points),
                                       cmocka_unit_test(test_cascade_law),
                                       cmocka_unit_test(test_laws_for_spread_points),
                                       cmocka_unit_test(test_admitted_at_k),
                                       cmocka_unit_test(test_variances),
                                       cmocka_unit_test(test_counts),
                                       cmocka_unit_test(test_choice),
                                       cmocka_unit_test(test_model_for),
                                       cmocka_unit_test(test_shipped),
                                       cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, make, drop);
}

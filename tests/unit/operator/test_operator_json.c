/* Descriptors as JSON: the round trip, and texts that are refused. */
#include "operator_testing.h"

#include <locale.h>

static void same_descriptor(const gnomon_operator *a, const gnomon_operator *b)
{
    gnomon_descriptor x = GNOMON_DESCRIPTOR_INIT, y = GNOMON_DESCRIPTOR_INIT;
    gnomon_operator_describe(a, &x);
    gnomon_operator_describe(b, &y);
    assert_int_equal(x.version, y.version);
    assert_int_equal(x.kind, y.kind);
    assert_int_equal(x.inner, y.inner);
    assert_int_equal(x.precision, y.precision);
    assert_int_equal(x.scaling, y.scaling);
    assert_true(x.seed == y.seed);
    assert_int_equal(x.k, y.k);
    assert_int_equal(x.d, y.d);
    assert_true(x.density == y.density);
    assert_int_equal(x.nonzeros, y.nonzeros);
    assert_int_equal(x.blocks, y.blocks);
    assert_int_equal(x.zeta, y.zeta);
    assert_int_equal(x.width, y.width);
}

static void round_trip(gnomon_context *ctx, const gnomon_descriptor *d)
{
    gnomon_operator *op = new_operator(ctx, d);
    char *json, *again;
    assert_int_equal(gnomon_operator_to_json(ctx, op, &json), GNOMON_OK);
    gnomon_operator *back;
    if (gnomon_operator_from_json(ctx, json, strlen(json), &back) != GNOMON_OK)
        fail_msg("%s: %s", json, gnomon_last_error(ctx));
    same_descriptor(op, back);
    assert_int_equal(gnomon_operator_to_json(ctx, back, &again), GNOMON_OK);
    assert_string_equal(json, again);
    free(json);
    free(again);
    gnomon_operator_destroy(back);
    gnomon_operator_destroy(op);
}

static void every_kind_makes_the_round_trip(void **state)
{
    (void)state;
    static const uint64_t seeds[] = {0, 1, (UINT64_C(1) << 53) - 1, UINT64_C(1) << 53, UINT64_MAX};
    gnomon_context *ctx = new_context(1);
    uint64_t random = 5;
    for (int n = 0; n < VARIANTS; n++) {
        for (size_t s = 0; s < sizeof seeds / sizeof seeds[0]; s++) {
            gnomon_descriptor d = describe_variant(n, 22, 100000 + draw(&random, 100000));
            d.seed = seeds[s];
            d.scaling = s & 1 ? GNOMON_UNSCALED : GNOMON_ISOMETRIC;
            if (d.density != 0.0) d.density = 1.0 / (double)(1 + draw(&random, 1000000));
            round_trip(ctx, &d);
        }
    }
    gnomon_context_destroy(ctx);
}

static void the_text_is_the_documented_one(void **state)
{
    (void)state;
    gnomon_context *ctx = new_context(1);
    gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
    d.kind = GNOMON_VERY_SPARSE;
    d.k = 64;
    d.d = INT64_C(1) << 56;
    d.seed = UINT64_MAX;
    d.density = 0.1;
    gnomon_operator *op = new_operator(ctx, &d);
    char *json;
    /* a locale with a decimal comma, where there is one, must not show */
    setlocale(LC_ALL, "de_DE.UTF-8");
    assert_int_equal(gnomon_operator_to_json(ctx, op, &json), GNOMON_OK);
    gnomon_operator *back;
    assert_int_equal(gnomon_operator_from_json(ctx, json, strlen(json), &back), GNOMON_OK);
    setlocale(LC_ALL, "C");
    assert_string_equal(json, "{\n  \"gnomon\": \"operator\",\n  \"version\": 1,\n"
                              "  \"kind\": \"very-sparse\",\n  \"k\": 64,\n"
                              "  \"d\": 72057594037927936,\n"
                              "  \"seed\": \"18446744073709551615\",\n"
                              "  \"scaling\": \"isometric\",\n  \"density\": 0.1\n}");
    same_descriptor(op, back);
    free(json);
    gnomon_operator_destroy(op);
    gnomon_operator_destroy(back);
    gnomon_context_destroy(ctx);
}

#define HEAD "{\"gnomon\":\"operator\",\"version\":1,"
#define BODY HEAD "\"k\":10,\"d\":1000,\"seed\":7,"

static void defaults_may_be_left_out(void **state)
{
    (void)state;
    gnomon_context *ctx = new_context(1);
    static const char *const texts[] = {
        BODY "\"kind\":\"gaussian\"}",
        BODY "\"kind\":\"very-sparse\",\"density\":1}",
        BODY "\"kind\":\"kronecker\"}",
        HEAD "\"k\":10,\"d\":1000,\"seed\":\"7\",\"kind\":\"sjlt\"}",
        " \r\n\t" BODY "\"kind\":\"block\",\"inner\":\"sjlt\",\"blocks\":5,\"nonzeros\":2}\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        gnomon_operator *op;
        if (gnomon_operator_from_json(ctx, texts[i], strlen(texts[i]), &op) != GNOMON_OK)
            fail_msg("%s: %s", texts[i], gnomon_last_error(ctx));
        gnomon_operator_destroy(op);
    }
    gnomon_context_destroy(ctx);
}

static void bad_texts_are_refused(void **state)
{
    (void)state;
    enum { DATA = GNOMON_ERROR_DATA, RANGE = GNOMON_ERROR_ARGUMENT };
    static const struct {
        const char *json;
        int status;
        const char *word; /* that the message must hold */
    } texts[] = {
        {"", DATA, "JSON"},
        {"{", DATA, "JSON"},
        {"null", DATA, "JSON"},
        {"[]", DATA, "object"},
        {"[[[[[[[[", DATA, "JSON"},
        {BODY "\"kind\":\"gaussian\"} x", DATA, "JSON"},
        {BODY "\"kind\":\"gaussian\",}", DATA, "JSON"},
        {BODY "\"kind\":\"gaussian\",\"k\":10}", DATA, "duplicate"},
        {BODY "\"kind\":\"very-sparse\",\"density\":NaN}", DATA, "JSON"},
        {BODY "\"kind\":\"very-sparse\",\"density\":1e999}", DATA, "JSON"},
        {BODY "\"kind\":\"gaussian\",\"colour\":1}", DATA, "colour"},
        {BODY "\"kind\":\"gaussian\",\"\\u0007\\n\":1}", DATA, "\"??\""},
        {BODY "\"kind\":\"gaussian\",\"K\":1}", DATA, "\"K\""},
        {"{}", DATA, "gnomon"},
        {"{\"gnomon\":\"operator\"}", DATA, "version"},
        {HEAD "\"k\":1,\"d\":1,\"seed\":0}", DATA, "kind"},
        {HEAD "\"kind\":\"gaussian\",\"d\":1,\"seed\":0}", DATA, "\"k\""},
        {HEAD "\"kind\":\"gaussian\",\"k\":1,\"seed\":0}", DATA, "\"d\""},
        {HEAD "\"kind\":\"gaussian\",\"k\":1,\"d\":1}", DATA, "seed"},
        {"{\"gnomon\":\"index\",\"version\":1,\"kind\":\"gaussian\",\"k\":1,\"d\":1,\"seed\":0}",
         DATA, "index"},
        {"{\"gnomon\":1,\"version\":1,\"kind\":\"gaussian\",\"k\":1,\"d\":1,\"seed\":0}", DATA,
         "gnomon"},
        {"{\"gnomon\":\"operator\",\"version\":2,\"kind\":\"gaussian\",\"k\":1,\"d\":1,\"seed\":0}",
         RANGE, "2"},
        {"{\"gnomon\":\"operator\",\"version\":\"1\",\"kind\":\"gaussian\",\"k\":1,\"d\":1,"
         "\"seed\":0}",
         DATA, "version"},
        {"{\"gnomon\":\"operator\",\"version\":1.0,\"kind\":\"gaussian\",\"k\":1,\"d\":1,"
         "\"seed\":0}",
         DATA, "version"},
        {BODY "\"kind\":1}", DATA, "kind"},
        {BODY "\"kind\":null}", DATA, "null"},
        {BODY "\"kind\":\"sparse\"}", RANGE, "sparse"},
        {BODY "\"kind\":\"block\",\"inner\":\"srht\"}", RANGE, "srht"},
        {BODY "\"kind\":\"block\",\"inner\":\"x\"}", RANGE, "inner"},
        {BODY "\"kind\":\"gaussian\",\"inner\":\"gaussian\"}", RANGE, "inner"},
        {BODY "\"kind\":\"gaussian\",\"precision\":\"fp64\"}", RANGE, "fp64"},
        {BODY "\"kind\":\"gaussian\",\"precision\":32}", DATA, "precision"},
        {BODY "\"kind\":\"gaussian\",\"scaling\":true}", DATA, "scaling"},
        {BODY "\"kind\":\"gaussian\",\"scaling\":\"unit\"}", RANGE, "unit"},
        {BODY "\"kind\":\"gaussian\",\"density\":0.1}", RANGE, "density"},
        {BODY "\"kind\":\"very-sparse\",\"density\":0}", RANGE, "density"},
        {BODY "\"kind\":\"very-sparse\",\"density\":-0.0}", RANGE, "density"},
        {BODY "\"kind\":\"very-sparse\",\"density\":2}", RANGE, "density"},
        {BODY "\"kind\":\"very-sparse\",\"density\":\"0.1\"}", DATA, "density"},
        {BODY "\"kind\":\"sjlt\",\"nonzeros\":0}", RANGE, "nonzeros"},
        {BODY "\"kind\":\"sjlt\",\"nonzeros\":1.5}", DATA, "nonzeros"},
        {BODY "\"kind\":\"sjlt\",\"nonzeros\":11}", RANGE, "11"},
        {BODY "\"kind\":\"block\",\"blocks\":0}", RANGE, "blocks"},
        {BODY "\"kind\":\"kronecker\",\"zeta\":1}", RANGE, "zeta"},
        {BODY "\"kind\":\"kronecker\",\"width\":-1}", RANGE, "width"},
        {BODY "\"kind\":\"kronecker\",\"width\":{}}", DATA, "width"},
        {HEAD "\"k\":0,\"d\":9,\"seed\":0,\"kind\":\"gaussian\"}", RANGE, "\"k\""},
        {HEAD "\"k\":10,\"d\":9,\"seed\":0,\"kind\":\"gaussian\"}", RANGE, "10"},
        {HEAD "\"k\":1e1,\"d\":90,\"seed\":0,\"kind\":\"gaussian\"}", DATA, "\"k\""},
        {HEAD "\"k\":1,\"d\":99999999999999999999,\"seed\":0,\"kind\":\"gaussian\"}", DATA, "JSON"},
        {HEAD "\"k\":1,\"d\":72057594037927937,\"seed\":0,\"kind\":\"gaussian\"}", RANGE, "2^56"},
        {HEAD "\"k\":1,\"d\":9,\"seed\":-1,\"kind\":\"gaussian\"}", RANGE, "-1"},
        {HEAD "\"k\":1,\"d\":9,\"seed\":9007199254740992,\"kind\":\"gaussian\"}", RANGE, "text"},
        {HEAD "\"k\":1,\"d\":9,\"seed\":1.5,\"kind\":\"gaussian\"}", DATA, "seed"},
        {HEAD "\"k\":1,\"d\":9,\"seed\":\"\",\"kind\":\"gaussian\"}", RANGE, "seed"},
        {HEAD "\"k\":1,\"d\":9,\"seed\":\"0x1\",\"kind\":\"gaussian\"}", RANGE, "0x1"},
        {HEAD "\"k\":1,\"d\":9,\"seed\":\"+1\",\"kind\":\"gaussian\"}", RANGE, "seed"},
        {HEAD "\"k\":1,\"d\":9,\"seed\":\"01\",\"kind\":\"gaussian\"}", RANGE, "seed"},
        {HEAD "\"k\":1,\"d\":9,\"seed\":\"18446744073709551616\",\"kind\":\"gaussian\"}", RANGE,
         "2^64"},
        {BODY "\"kind\":\"\xff\"}", DATA, "JSON"},
        {"\xef\xbb\xbf" BODY "\"kind\":\"gaussian\"}", DATA, "JSON"},
        {BODY "\"kind\":\"gaussian\\u0000\"}", DATA, "JSON"},
    };
    gnomon_context *ctx = new_context(1);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        gnomon_operator *op = (gnomon_operator *)ctx; /* must be cleared */
        const gnomon_status status =
            gnomon_operator_from_json(ctx, texts[i].json, strlen(texts[i].json), &op);
        if ((int)status != texts[i].status || strstr(gnomon_last_error(ctx), texts[i].word) == NULL)
            fail_msg("%s: %s, %s", texts[i].json, gnomon_status_name(status),
                     gnomon_last_error(ctx));
        assert_null(op);
    }
    gnomon_context_destroy(ctx);
}

/* The length counts, not a terminator; a zero byte is no JSON. */
static void the_length_is_obeyed(void **state)
{
    (void)state;
    static const char json[] = BODY "\"kind\":\"gaussian\"}";
    const size_t length = sizeof json - 1;
    gnomon_context *ctx = new_context(1);
    gnomon_operator *op;
    for (size_t n = 0; n < length; n++) {
        char *exact = malloc(n + 1); /* so that a sanitizer sees a read too far */
        assert_non_null(exact);
        memcpy(exact, json, n);
        assert_int_equal(gnomon_operator_from_json(ctx, exact, n, &op), GNOMON_ERROR_DATA);
        free(exact);
    }
    assert_int_equal(gnomon_operator_from_json(ctx, json, length + 1, &op), GNOMON_ERROR_DATA);
    assert_int_equal(gnomon_operator_from_json(ctx, json, length, &op), GNOMON_OK);
    assert_int_equal(gnomon_operator_to_json(ctx, op, NULL), GNOMON_ERROR_ARGUMENT);
    gnomon_operator_destroy(op);
    assert_int_equal(gnomon_operator_from_json(ctx, NULL, 0, &op), GNOMON_ERROR_ARGUMENT);
    assert_int_equal(gnomon_operator_from_json(ctx, json, length, NULL), GNOMON_ERROR_ARGUMENT);
    char *text = (char *)ctx;
    assert_int_equal(gnomon_operator_to_json(ctx, NULL, &text), GNOMON_ERROR_ARGUMENT);
    assert_null(text);
    gnomon_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_makes_the_round_trip),
        cmocka_unit_test(the_text_is_the_documented_one),
        cmocka_unit_test(defaults_may_be_left_out),
        cmocka_unit_test(bad_texts_are_refused),
        cmocka_unit_test(the_length_is_obeyed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

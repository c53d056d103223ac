/* Cost models from JSON. */
#include "choose/choose.h"

#include <gnomon/choose.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define HEAD                                                                          \
    "{\"gnomon\": \"model\", \"version\": 1, \"name\": \"m\", \"device\": \"cuda\", " \
    "\"threads\": 1, \"upload\": 1e-10, \"download\": 2e-10, \"costs\": ["
#define REST                                                                                    \
    "\"point_tile\": 32, \"row_tile\": 64, \"start\": 1e-5, \"make\": 0, \"multiply\": 2e-12, " \
    "\"read\": 3e-12, \"write\": 4e-12, \"step\": 5e-12, \"half\": 0.5, \"wide\": 8}"

static gnomon_context *ctx;

static gnomon_status parse(const char *text, gnomon_model **m)
{
    return gnomon_model_from_json(ctx, text, strlen(text), m);
}

static void test_read(void **state)
{
    (void)state;
    gnomon_model *m;
    assert_int_equal(parse(HEAD "{\"operator\": \"sjlt\", \"form\": \"coordinates\", " REST
                                ", {\"operator\": \"gaussian\", \"precision\": \"fp16\", "
                                "\"form\": \"points\", " REST "]}",
                           &m),
                     GNOMON_OK);
    assert_string_equal(m->name, "m");
    assert_int_equal(m->device, GNOMON_DEVICE_PLUGIN);
    assert_int_equal(m->count, 2);
    assert_true(m->upload == 1e-10 && m->download == 2e-10);
    const gnomon_cost *c = &m->cost[0];
    assert_true(c->kind == GNOMON_SJLT && c->form == GNOMON_FORM_COORDINATES && c->precision == 0);
    assert_true(c->point_tile == 32 && c->row_tile == 64 && c->start == 1e-5 && c->make == 0 &&
                c->multiply == 2e-12 && c->read == 3e-12 && c->write == 4e-12 && c->step == 5e-12 &&
                c->half == 0.5 && c->f64 == 8);
    assert_int_equal(m->cost[1].precision, GNOMON_F16);
    gnomon_model_destroy(m);
    gnomon_model_destroy(NULL);
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"", "line"},
        {"[]", "Expected object"},
        {"{\"gnomon\": \"model\"}", "version"},
        {HEAD "]}", "1 to 24 objects"},
        {HEAD "3]}", "costs[0]"},
        {HEAD "{\"operator\": \"block\", \"form\": \"points\", " REST "]}", "simple kind"},
        {HEAD "{\"operator\": \"srht\", \"form\": \"point\", " REST "]}", "\"form\""},
        {HEAD "{\"operator\": \"gaussian\", \"form\": \"points\", " REST "]}", "\"precision\""},
        {HEAD "{\"operator\": \"srht\", \"precision\": \"fp32\", \"form\": \"points\", " REST "]}",
         "\"precision\""},
        {HEAD "{\"operator\": \"srht\", \"form\": \"points\", \"extra\": 1, " REST "]}", "extra"},
        {HEAD "{\"operator\": \"srht\", \"form\": \"points\", " REST
              ", {\"operator\": \"srht\", \"form\": \"points\", " REST "]}",
         "costs[0] and costs[1]"},
        {HEAD "{\"operator\": \"srht\", \"form\": \"points\", \"form\": \"points\", " REST "]}",
         "duplicate"},
        {"{\"gnomon\": \"model\", \"version\": 2, \"name\": \"m\", \"device\": \"cpu\", "
         "\"threads\": "
         "1, \"upload\": 0, \"download\": 0, \"costs\": []}",
         "\"version\" 1"},
        {"{\"gnomon\": \"model\", \"version\": 1, \"name\": \"m\", \"device\": \"cuda:1\", "
         "\"threads\": "
         "1, \"upload\": 0, \"download\": 0, \"costs\": []}",
         "cpu or a device's name"},
        {"{\"gnomon\": \"model\", \"version\": 1, \"name\": \"m\", \"device\": \"auto\", "
         "\"threads\": "
         "1, \"upload\": 0, \"download\": 0, \"costs\": []}",
         "cpu or a device's name"},
        {"{\"gnomon\": \"model\", \"version\": 1, \"name\": \"m\", \"device\": \"cpu\", "
         "\"threads\": "
         "0, \"upload\": 0, \"download\": 0, \"costs\": []}",
         "\"threads\" is 0"},
        {"{\"gnomon\": \"model\", \"version\": 1, \"name\": \"m\", \"device\": \"cpu\", "
         "\"threads\": "
         "1, \"upload\": -1, \"download\": 0, \"costs\": []}",
         "upload"},
        {"{\"gnomon\": \"model\", \"version\": 1, \"name\": \"\", \"device\": \"cpu\", "
         "\"threads\": "
         "1, \"upload\": 0, \"download\": 0, \"costs\": []}",
         "\"name\""},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        gnomon_model *m = (gnomon_model *)ctx;
        assert_int_equal(parse(bad[i][0], &m), GNOMON_ERROR_DATA);
        assert_null(m);
        if (!strstr(gnomon_last_error(ctx), bad[i][1]))
            fail_msg("%s\n%s", bad[i][0], gnomon_last_error(ctx));
    }
    /* every number below its range */
    static const char *const members[] = {"\"start\": 1e-5", "\"half\": 0.5", "\"point_tile\": 32"};
    for (int i = 0; i < 3; i++) {
        char text[1024];
        gnomon_model *m;
        strcpy(text, HEAD "{\"operator\": \"srht\", \"form\": \"points\", " REST "]}");
        char *colon = strchr(strstr(text, members[i]), ':');
        memcpy(colon + 1, "-", 1);
        assert_int_equal(parse(text, &m), GNOMON_ERROR_DATA);
    }
    gnomon_model *m;
    assert_int_equal(gnomon_model_from_json(ctx, NULL, 0, &m), GNOMON_ERROR_ARGUMENT);
    assert_int_equal(gnomon_model_from_json(ctx, "{}", 2, NULL), GNOMON_ERROR_ARGUMENT);
}

int main(void)
{
    if (gnomon_context_create(NULL, &ctx) != GNOMON_OK) return 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_read), cmocka_unit_test(test_refused)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    gnomon_context_destroy(ctx);
    return failed;
}

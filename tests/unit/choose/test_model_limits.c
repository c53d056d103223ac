/* Cost models from JSON: the values at the edges of what is allowed, and those just beyond. */
#include "choose/choose.h"

#include <gnomon/choose.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static gnomon_status parse(gnomon_context *ctx, const char *device, const char *upload,
                           const char *download, const char *point_tile, const char *row_tile,
                           gnomon_model **m)
{
    char text[1024];
    snprintf(text, sizeof text,
             "{\"gnomon\": \"model\", \"version\": 1, \"name\": \"m\", \"device\": \"%s\", "
             "\"threads\": 1, \"upload\": %s, \"download\": %s, \"costs\": [{\"operator\": "
             "\"sjlt\", \"form\": \"points\", \"point_tile\": %s, \"row_tile\": %s, \"start\": 0, "
             "\"make\": 0, \"multiply\": 0, \"read\": 0, \"write\": 0, \"step\": 0, \"half\": 1, "
             "\"wide\": 1}]}",
             device, upload, download, point_tile, row_tile);
    return gnomon_model_from_json(ctx, text, strlen(text), m);
}

static void edges(void **state)
{
    (void)state;
    static const struct {
        const char *upload, *download, *point_tile, *row_tile, *fault;
    } cases[] = {
        {"0", "1.0", "1", "1048576", NULL},
        {"1.0", "0", "1048576", "1", NULL},
        {"1.0", "1.0", "16", "16", NULL},
        {"1.0001", "0.5", "16", "16", "\"upload\""},
        {"0.5", "1.0001", "16", "16", "\"upload\""},
        {"-0.0001", "0.5", "16", "16", "\"upload\""},
        {"0.5", "-0.0001", "16", "16", "\"upload\""},
        {"0", "0", "1048577", "16", "tiles"},
        {"0", "0", "16", "1048577", "tiles"},
        {"0", "0", "0", "16", "tiles"},
        {"0", "0", "16", "0", "tiles"},
    };
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context *ctx;
    options.device = "cpu";
    assert_int_equal(gnomon_context_create(&options, &ctx), GNOMON_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gnomon_model *m;
        const gnomon_status status = parse(ctx, "cpu", cases[i].upload, cases[i].download,
                                           cases[i].point_tile, cases[i].row_tile, &m);
        if (cases[i].fault == NULL) {
            assert_int_equal(status, GNOMON_OK);
            assert_int_equal(m->device, GNOMON_DEVICE_CPU);
        } else {
            assert_int_equal(status, GNOMON_ERROR_DATA);
            assert_non_null(strstr(gnomon_last_error(ctx), cases[i].fault));
            assert_null(m);
        }
        gnomon_model_destroy(m);
    }
    gnomon_model *m;
    assert_int_equal(parse(ctx, "cuda", "0", "0", "1", "1", &m), GNOMON_OK);
    assert_int_equal(m->device, GNOMON_DEVICE_PLUGIN);
    gnomon_model_destroy(m);
    gnomon_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(edges)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

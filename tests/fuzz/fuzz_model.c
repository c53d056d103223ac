/* Cost models: what is accepted can be chosen by. */
#include "fuzz_io.h"

#include <gnomon/choose.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    options.threads = 1;
    options.device = "cpu";
    gnomon_context *ctx;
    CHECK(gnomon_context_create(&options, &ctx) == GNOMON_OK);
    gnomon_model *model;
    const gnomon_status status = gnomon_model_from_json(ctx, (const char *)data, size, &model);
    CHECK((status == GNOMON_OK) == (model != NULL));
    if (model == NULL) {
        CHECK(status == GNOMON_ERROR_DATA || status == GNOMON_ERROR_ARGUMENT ||
              status == GNOMON_ERROR_OVERFLOW);
        CHECK(gnomon_last_error(ctx)[0] != '\0');
    } else {
        gnomon_choose_options request = GNOMON_CHOOSE_OPTIONS_INIT;
        request.n = 1000;
        request.d = 5000;
        request.k = 64;
        request.model = model;
        gnomon_choice choice = {.struct_size = sizeof choice};
        CHECK(gnomon_operator_choose(ctx, &request, &choice) != GNOMON_ERROR_INTERNAL);
        gnomon_model_destroy(model);
    }
    gnomon_context_destroy(ctx);
    return 0;
}

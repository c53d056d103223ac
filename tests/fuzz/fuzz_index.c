/* Index files: whatever opens must answer a query, whatever the check says of it. */
#include "fuzz_io.h"

#include <gnomon/lsh.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    options.threads = 1;
    options.device = "cpu";
    gnomon_context *ctx;
    CHECK(gnomon_context_create(&options, &ctx) == GNOMON_OK);
    char path[64];
    int fd = fuzz_file(data, size, path);
    gnomon_lsh *index;
    gnomon_status status = gnomon_lsh_open(ctx, path, &index);
    CHECK((status == GNOMON_OK) == (index != NULL));
    CHECK(status != GNOMON_ERROR_INTERNAL);
    if (index != NULL) gnomon_lsh_destroy(index);
    status = gnomon_lsh_check(ctx, path, NULL, NULL);
    CHECK(status != GNOMON_ERROR_INTERNAL);
    close(fd);
    gnomon_context_destroy(ctx);
    return 0;
}

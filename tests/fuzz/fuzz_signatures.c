/* Signature files: what is taken makes a result, whatever its hashes are. */
#include "fuzz_io.h"

#include <gnomon/dedup.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_memory memory = {0, (128u << 20) + 100 * size};
    gnomon_allocator allocator = {&memory, fuzz_allocate, fuzz_release};
    gnomon_context_options context = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_dedup_options o = GNOMON_DEDUP_OPTIONS_INIT;
    gnomon_context *ctx;
    gnomon_dedup *d;
    char path[64];
    context.allocator = &allocator;
    context.threads = 1;
    context.device = "cpu";
    context.memory_limit = 16 << 20;
    CHECK(gnomon_context_create(&context, &ctx) == GNOMON_OK);
    const int fd = fuzz_file(data, size, path);
    const char *const paths[] = {path, path};
    for (int files = 1; files <= 2; files++) {
        o.ngram = 0;
        o.containment = files == 2;
        CHECK(gnomon_dedup_create(ctx, &o, &d) == GNOMON_OK);
        const gnomon_status status = gnomon_dedup_add_signed(d, paths, files);
        CHECK(status != GNOMON_ERROR_INTERNAL && status != GNOMON_ERROR_MEMORY);
        if (status == GNOMON_OK) {
            gnomon_dedup_result result = {.struct_size = sizeof result};
            CHECK(gnomon_dedup_run(d, &result) == GNOMON_OK);
            CHECK(result.documents % files == 0 && result.kept <= result.documents);
            for (int64_t i = 0; i < result.documents; i++)
                CHECK(gnomon_dedup_name(d, i) != NULL);
        }
        gnomon_dedup_destroy(d);
    }
    close(fd);
    gnomon_context_destroy(ctx);
    CHECK(memory.held == 0);
    return 0;
}

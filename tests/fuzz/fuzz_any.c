/* Whatever the bytes look like: the choice of a format, gzip, the members of archives. */
#include "fuzz_io.h"

static void visit(void *user, const char *name)
{
    size_t *length = user;
    *length += strlen(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gnomon_read_options options = GNOMON_READ_OPTIONS_INIT;
    fuzz_read(data, size, &options, 64);
    gnomon_context *ctx;
    CHECK(gnomon_context_create(NULL, &ctx) == GNOMON_OK);
    char path[64];
    int fd = fuzz_file(data, size, path);
    size_t length = 0;
    (void)gnomon_file_members(ctx, path, visit, &length);
    close(fd);
    gnomon_context_destroy(ctx);
    return 0;
}

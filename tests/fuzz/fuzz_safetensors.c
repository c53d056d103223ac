#include "fuzz_io.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gnomon_read_options options = GNOMON_READ_OPTIONS_INIT;
    options.format = "safetensors";
    fuzz_read(data, size, &options, 64);
    return 0;
}

/* The first two bytes choose the shape and the type. */
#include "fuzz_io.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gnomon_read_options options = GNOMON_READ_OPTIONS_INIT;
    if (size < 2) return 0;
    options.format = "raw";
    options.raw_cols = data[0];
    options.raw_dtype = (gnomon_dtype)(data[1] & 15);
    options.raw_rows = (data[1] >> 4) - 1;
    fuzz_read(data + 2, size - 2, &options, 64);
    return 0;
}

#include "fuzz_io.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gnomon_read_options options = GNOMON_READ_OPTIONS_INIT;
    options.format = "csv";
    fuzz_read(data, size, &options, 64);
    options.format = "tsv";
    options.csv_header = 0;
    fuzz_read(data, size, &options, 64);
    options.format = NULL; /* whatever the content tells */
    fuzz_read(data, size, &options, 64);
    return 0;
}

#include "fuzz_io.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gnomon_read_options options = GNOMON_READ_OPTIONS_INIT;
    static const char *const formats[] = {"u8bin", "i8bin", "f16bin"};
    for (int i = 0; i < 3; i++) {
        options.format = formats[i];
        fuzz_read(data, size, &options, 64);
    }
    return 0;
}

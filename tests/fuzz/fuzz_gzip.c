/* What gzip packs: content of each kind that is read through it. */
#include "fuzz_io.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const formats[] = {"csv", "npy", "idx", "fvecs", "svmlight", "mtx"};
    gnomon_read_options options = GNOMON_READ_OPTIONS_INIT;
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        options.format = formats[i];
        fuzz_read(data, size, &options, 2000); /* deflate packs a thousand bytes in one */
    }
    return 0;
}

/* The members of scipy's layout without the archive around them, which has a target of its
 * own: the input names the layout and cuts the rest into arrays, whose headers and bytes it
 * makes. */
#include "fuzz_io.h"

#include "io/compress/zip.h"
#include "io/formats/npy.h"

/* Puts a member of count elements (told) made of bytes into the archive. */
static void put(gnomon_zip_writer *zip, const char *name, gnomon_dtype dtype, int64_t count,
                const void *bytes, size_t size)
{
    unsigned char header[GNOMON_NPY_HEADER];
    gnomon_npy_make_header(header, dtype, 1, count, 0, false);
    CHECK(gnomon_zip_writer_begin(zip, name, header, sizeof header) == GNOMON_OK);
    if (size > 0) CHECK(gnomon_zip_writer_write(zip, bytes, size) == GNOMON_OK);
    CHECK(gnomon_zip_writer_end(zip, NULL) == GNOMON_OK);
}

/* The input's layout: a byte of choices, the shape, the lengths told of the arrays (one byte
 * each, wrong ones too), then the arrays' bytes, of which data gets what is left. */
typedef struct recipe {
    uint8_t choices, counts[3];
    int16_t rows, cols;
} recipe;

static bool make_archive(gnomon_context *ctx, const char *path, const uint8_t *data, size_t size)
{
    recipe r;
    if (size < sizeof r) return false;
    memcpy(&r, data, sizeof r);
    data += sizeof r;
    size -= sizeof r;
    static const char *const formats[] = {"csr", "csc", "coo", "dia"};
    const char *format = formats[r.choices & 3];
    bool coo = strcmp(format, "coo") == 0;
    gnomon_dtype indices = r.choices & 4 ? GNOMON_I32 : GNOMON_I8;
    gnomon_dtype values = r.choices & 8 ? GNOMON_F64 : r.choices & 16 ? GNOMON_U8 : GNOMON_F32;

    gnomon_sink *sink;
    const gnomon_sink_options options = {true, true};
    gnomon_zip_writer *zip;
    CHECK(gnomon_sink_open(ctx, path, &options, &sink) == GNOMON_OK);
    CHECK(gnomon_zip_writer_open(ctx, sink, (r.choices & 32) != 0, &zip) == GNOMON_OK);
    unsigned char text[GNOMON_NPY_HEADER + 3];
    gnomon_npy_make_header(text, GNOMON_U8, 1, 3, 0, false);
    char *type = memmem(text, GNOMON_NPY_HEADER, "|u1", 3);
    CHECK(type != NULL);
    memcpy(type, "|S3", 3);
    char *shape = memmem(text, GNOMON_NPY_HEADER, "(3,)", 4);
    CHECK(shape != NULL);
    memcpy(shape, "()  ", 4);
    memcpy(text + GNOMON_NPY_HEADER, format, 3);
    CHECK(gnomon_zip_writer_begin(zip, "format.npy", NULL, 0) == GNOMON_OK);
    CHECK(gnomon_zip_writer_write(zip, text, sizeof text) == GNOMON_OK);
    CHECK(gnomon_zip_writer_end(zip, NULL) == GNOMON_OK);
    const int64_t sizes[2] = {r.rows, r.cols};
    put(zip, "shape.npy", GNOMON_I64, 2, sizes, sizeof sizes);

    const char *names[] = {coo ? "row.npy" : "indptr.npy", coo ? "col.npy" : "indices.npy",
                           "data.npy"};
    for (int i = 0; i < 3; i++) {
        gnomon_dtype dtype = i < 2 ? indices : values;
        size_t bytes = r.counts[i] * gnomon_dtype_size(dtype);
        if (bytes > size) bytes = size;
        put(zip, names[i], dtype, r.counts[i], data, bytes);
        data += bytes;
        size -= bytes;
    }
    CHECK(gnomon_zip_writer_complete(zip) == GNOMON_OK);
    gnomon_zip_writer_close(zip);
    CHECK(gnomon_sink_finish(sink) == GNOMON_OK);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char folder[64] = "/dev/shm/gnomon_fuzz_XXXXXX", path[96];
    if (mkdtemp(folder) == NULL) { /* a folder in memory is not everywhere */
        strcpy(folder, "/tmp/gnomon_fuzz_XXXXXX");
        CHECK(mkdtemp(folder) != NULL);
    }
    snprintf(path, sizeof path, "%s/a.npz", folder);
    gnomon_context *ctx;
    CHECK(gnomon_context_create(NULL, &ctx) == GNOMON_OK);
    if (make_archive(ctx, path, data, size)) {
        static uint8_t bytes[1 << 20];
        FILE *file = fopen(path, "rb");
        CHECK(file != NULL);
        size_t length = fread(bytes, 1, sizeof bytes, file);
        fclose(file);
        unlink(path);
        gnomon_read_options options = GNOMON_READ_OPTIONS_INIT;
        options.format = "npz";
        fuzz_read(bytes, length, &options, 1100 * 16); /* deflate shrinks to a 1030th */
    }
    gnomon_context_destroy(ctx);
    rmdir(folder);
    return 0;
}

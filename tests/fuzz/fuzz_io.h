/* fuzz_io.h: reads bytes as a file of some format by every way that the reader has, and
 * checks what it promises. */
#ifndef FUZZ_IO_H
#define FUZZ_IO_H

#include <gnomon/io.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(condition)                                                    \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                        \
        }                                                                   \
    } while (0)

/* What libhdf5 loses of damaged object headers is its own (seen with 1.10.8): whatever the reader
 * would forget to close stays reachable in that library's tables of handles and is no leak to the
 * sanitizer. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libhdf5\n";
}

/* That library asks for what a damaged header claims, and goes on when there is not so much. What
 * the reader itself takes is held to account below. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

/* An allocator that knows how much it has given out: a file must not make the reader
 * take more than some multiple of what the file holds. */
typedef struct fuzz_memory {
    size_t held, most;
} fuzz_memory;

static inline void *fuzz_allocate(void *user, size_t size, size_t alignment)
{
    fuzz_memory *memory = user;
    memory->held += size;
    if (memory->held > memory->most) {
        fprintf(stderr, "%zu bytes are held, %zu are allowed\n", memory->held, memory->most);
        abort();
    }
    return aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

static inline void fuzz_release(void *user, void *pointer, size_t size)
{
    fuzz_memory *memory = user;
    memory->held -= size;
    free(pointer);
}

/* data as a file that can be opened by its name, and its descriptor. */
static inline int fuzz_file(const uint8_t *data, size_t size, char path[64])
{
    int fd = memfd_create("fuzz", 0);
    CHECK(fd >= 0);
    CHECK(write(fd, data, size) == (ssize_t)size);
    snprintf(path, 64, "/proc/self/fd/%d", fd);
    return fd;
}

static inline void fuzz_check_csr(const gnomon_csr *csr, int64_t max_rows, int64_t max_nonzeros)
{
    CHECK(csr->rows >= 0 && csr->rows <= max_rows);
    for (int64_t i = 0; i < csr->rows; i++)
        CHECK(csr->offsets[i + 1] >= csr->offsets[i]);
    int64_t nonzeros = csr->offsets[csr->rows] - csr->offsets[0];
    CHECK(nonzeros <= max_nonzeros || csr->rows == 1);
    double sum = 0; /* reads every value */
    for (int64_t e = 0; e < nonzeros; e++) {
        CHECK(csr->indices[e] >= 0 && csr->indices[e] < csr->cols);
        sum += csr->dtype == GNOMON_F64 ? ((const double *)csr->values)[e]
                                        : (double)((const float *)csr->values)[e];
    }
    volatile double kept = sum;
    (void)kept;
}

/* Reads some thousand points, from the start and after a seek. */
static inline void fuzz_points(gnomon_reader *reader, const gnomon_data_info *info)
{
    enum { ROWS = 7, CELLS = 1 << 16, READS = 300 };
    if (info->cols > CELLS / ROWS) return;
    static double cells[CELLS];
    gnomon_matrix dst = gnomon_matrix_rowmajor(cells, GNOMON_F64, ROWS, info->cols);
    int64_t got = 0, seen = 0;
    for (int i = 0; i < READS; i++) {
        if (gnomon_reader_next(reader, &dst, &got) != GNOMON_OK) return;
        CHECK(got >= 0 && got <= ROWS);
        if (got == 0) break;
        seen += got;
    }
    if (got == 0 && info->rows >= 0) CHECK(seen == info->rows);
    if (info->access & GNOMON_ACCESS_SEEK) {
        int64_t row = seen / 2;
        if (gnomon_reader_seek(reader, row) != GNOMON_OK) return;
        dst.dtype = GNOMON_F32;
        if (gnomon_reader_next(reader, &dst, &got) != GNOMON_OK) return;
        if (seen > row) CHECK(got > 0);
    }
    if ((info->access & GNOMON_ACCESS_COLUMNS) && info->rows > 0 && info->cols > 0) {
        gnomon_matrix one = gnomon_matrix_rowmajor(cells, GNOMON_F64, 1, 1);
        (void)gnomon_reader_block(reader, info->rows - 1, info->cols - 1, &one);
    }
}

static inline void fuzz_csr(gnomon_reader *reader, const gnomon_data_info *info)
{
    gnomon_csr csr;
    int64_t seen = 0;
    for (int i = 0; i < 300; i++) {
        if (gnomon_reader_next_csr(reader, 5, 11, &csr) != GNOMON_OK) return;
        fuzz_check_csr(&csr, 5, 11);
        CHECK(csr.cols == info->cols);
        if (csr.rows == 0) break;
        seen += csr.rows;
    }
    if (csr.rows == 0 && info->rows >= 0) CHECK(seen == info->rows);
    if ((info->access & GNOMON_ACCESS_SEEK) == 0) return;
    int64_t row = info->rows > 0 ? info->rows - 1 : 0;
    if (gnomon_reader_seek(reader, row) != GNOMON_OK) return;
    if (gnomon_reader_next_csr(reader, INT64_MAX, INT64_MAX, &csr) != GNOMON_OK) return;
    fuzz_check_csr(&csr, INT64_MAX, INT64_MAX);
}

/* memory_factor: how many bytes the reader may take for one of the file. */
static inline void fuzz_read(const uint8_t *data, size_t size, const gnomon_read_options *options,
                             size_t memory_factor)
{
    fuzz_memory memory = {0, (32u << 20) + memory_factor * size};
    gnomon_allocator allocator = {&memory, fuzz_allocate, fuzz_release};
    gnomon_context_options context = GNOMON_CONTEXT_OPTIONS_INIT;
    context.allocator = &allocator;
    context.threads = 1;
    context.device = "cpu"; /* no search for a plugin each time */
    gnomon_context *ctx;
    CHECK(gnomon_context_create(&context, &ctx) == GNOMON_OK);
    char path[64];
    int fd = fuzz_file(data, size, path);
    gnomon_read_options as_tensor = *options;
    as_tensor.tensor = 1;
    for (int pass = 0; pass < 3; pass++) {
        gnomon_reader *reader;
        gnomon_status status =
            gnomon_reader_open(ctx, path, pass == 2 ? &as_tensor : options, &reader);
        CHECK((status == GNOMON_OK) == (reader != NULL));
        CHECK(status != GNOMON_ERROR_INTERNAL);
        if (reader == NULL) continue;
        gnomon_data_info info = {.struct_size = sizeof info};
        CHECK(gnomon_reader_info(reader, &info) == GNOMON_OK);
        CHECK(info.rows >= -1 && info.cols >= 0 && info.nonzeros >= -1);
        CHECK(info.dimensions >= 1);
        if (info.rows >= 0 && info.dimensions <= GNOMON_TENSOR_MODES &&
            (info.access & GNOMON_ACCESS_SPARSE) == 0) {
            int64_t count = 1; /* as rows * cols, which is known to fit */
            for (int i = 0; i < info.dimensions && count > 0; i++)
                CHECK(info.shape[i] >= 0 && !__builtin_mul_overflow(count, info.shape[i], &count));
            CHECK(count == info.rows * info.cols);
        }
        if (pass != 1)
            fuzz_points(reader, &info);
        else if (info.access & GNOMON_ACCESS_SPARSE)
            fuzz_csr(reader, &info);
        gnomon_reader_close(reader);
    }
    close(fd);
    gnomon_context_destroy(ctx);
    CHECK(memory.held == 0);
}

#endif

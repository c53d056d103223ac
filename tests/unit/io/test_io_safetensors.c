/* safetensors: sound files by hand, which tensor is read, what is written byte for byte, and
 * headers that lie. */
#include "io/format.h"
#include "io_text.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* The file of a header and data of so many bytes: 0, 1, 2, ... */
static void make(const char *header, size_t data)
{
    unsigned char bytes[8192];
    const size_t length = strlen(header);
    assert_true(length + data + 8 <= sizeof bytes);
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(length >> (8 * i) & 255);
    memcpy(bytes + 8, header, length);
    for (size_t i = 0; i < data; i++)
        bytes[8 + length + i] = (unsigned char)i;
    make_file("a.safetensors", bytes, 8 + length + data);
}

static gnomon_status opens(const char *member)
{
    char full[256];
    gnomon_reader *reader = NULL;
    snprintf(full, sizeof full, "%s%s%s", path, member[0] != '\0' ? ":" : "", member);
    const gnomon_status status = gnomon_reader_open(ctx, full, NULL, &reader);
    assert_true((status == GNOMON_OK) == (reader != NULL));
    gnomon_reader_close(reader);
    return status;
}

static void refused(const char *header, size_t data, gnomon_status due, const char *text)
{
    make(header, data);
    const gnomon_status status = opens("");
    if (status != due || strstr(gnomon_last_error(ctx), text) == NULL)
        fail_msg("%s: %s: %s", header, gnomon_status_name(status), gnomon_last_error(ctx));
    assert_non_null(strstr(gnomon_last_error(ctx), path)); /* it names the file */
    unlink(path);
}

static void expect(const char *member, int64_t rows, int64_t cols, gnomon_dtype dtype,
                   const double *values)
{
    char full[256];
    gnomon_reader *reader;
    double data[64];
    int64_t got;
    gnomon_data_info info = {.struct_size = sizeof info};
    snprintf(full, sizeof full, "%s%s%s", path, member[0] != '\0' ? ":" : "", member);
    expect_ok(gnomon_reader_open(ctx, full, NULL, &reader));
    expect_ok(gnomon_reader_info(reader, &info));
    assert_string_equal(info.format, "safetensors");
    assert_int_equal(info.rows, rows);
    assert_int_equal(info.cols, cols);
    assert_int_equal(info.dtype, dtype);
    if (member[0] != '\0') assert_string_equal(info.member, member);
    gnomon_matrix dst = gnomon_matrix_rowmajor(data, GNOMON_F64, rows, cols);
    expect_ok(gnomon_reader_next(reader, &dst, &got));
    assert_int_equal(got, rows);
    for (int64_t i = 0; i < rows * cols; i++)
        assert_true(data[i] == values[i]);
    gnomon_reader_close(reader);
}

static void several_tensors(void **unused)
{
    (void)unused;
    /* in any order, with whatever stands beside them; names with escapes */
    make("{\"__metadata__\":{\"a\":\"{\\\"b\",\"c\":\"\"}, \"b\\u00e4\\n\":{\"shape\":[3],"
         "\"data_offsets\":[6,9],\"dtype\":\"U8\",\"more\":[[1]]},"
         "\"a\":{\"dtype\":\"I16\",\"shape\":[3,1],\"data_offsets\":[0,6]},"
         "\"none\":{\"dtype\":\"F64\",\"shape\":[0,7],\"data_offsets\":[9,9]},"
         "\"one\":{\"dtype\":\"I8\",\"shape\":[],\"data_offsets\":[9,10]},"
         "\"yes\":{\"dtype\":\"BOOL\",\"shape\":[2,1,2],\"data_offsets\":[10,14]},"
         "\"f8\":{\"dtype\":\"F8_E4M3\",\"shape\":[2],\"data_offsets\":[14,16]},"
         "\"f4\":{\"dtype\":\"F4\",\"shape\":[2,2],\"data_offsets\":[16,18]},"
         "\"new\":{\"dtype\":\"F128\",\"shape\":[2,2],\"data_offsets\":[18,21]}}  \n",
         21);
    expect("a", 3, 1, GNOMON_I16, (const double[]){256, 770, 1284});
    expect("b\xc3\xa4\n", 1, 3, GNOMON_U8, (const double[]){6, 7, 8});
    expect("none", 0, 7, GNOMON_F64, NULL);
    expect("yes", 2, 2, GNOMON_U8, (const double[]){10, 11, 12, 13});
    assert_int_equal(opens("one"), GNOMON_ERROR_DATA);
    assert_int_equal(opens("f8"), GNOMON_ERROR_UNSUPPORTED);
    assert_non_null(strstr(gnomon_last_error(ctx), "F8_E4M3; read are F16"));
    assert_int_equal(opens("f4"), GNOMON_ERROR_UNSUPPORTED);
    assert_int_equal(opens("new"), GNOMON_ERROR_UNSUPPORTED);
    assert_int_equal(opens("__metadata__"), GNOMON_ERROR_DATA);
    assert_int_equal(opens("A"), GNOMON_ERROR_DATA);
    assert_int_equal(opens(""), GNOMON_ERROR_ARGUMENT);
    assert_non_null(strstr(gnomon_last_error(ctx), "a, b"));
    unlink(path);
    /* the only one of two dimensions */
    make("{\"v\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]},"
         "\"m\":{\"dtype\":\"U8\",\"shape\":[2,1],\"data_offsets\":[3,5]}}",
         5);
    expect("", 2, 1, GNOMON_U8, (const double[]){3, 4});
    unlink(path);
}

typedef struct told {
    char names[256];
    int unread;
} told;

static void tell_name(void *user, const char *name)
{
    told *t = user;
    strcat(strcat(t->names, name), ";");
}

static void tell_info(void *user, const char *name, const gnomon_data_info *info)
{
    told *t = user;
    tell_name(user, name);
    if (info == NULL)
        t->unread++;
    else
        assert_string_equal(info->member, name);
}

static void lists_tensors(void **unused)
{
    (void)unused;
    told members = {.unread = 0}, described = {.unread = 0};
    make("{\"z\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]},"
         "\"f\":{\"dtype\":\"F8_E5M2\",\"shape\":[1],\"data_offsets\":[3,4]},"
         "\"__metadata__\":{},"
         "\"a\":{\"dtype\":\"U8\",\"shape\":[2,1],\"data_offsets\":[4,6]}}",
         6);
    expect_ok(gnomon_file_members(ctx, path, tell_name, &members));
    assert_string_equal(members.names, "z;a;");
    expect_ok(gnomon_file_describe(ctx, path, tell_info, &described));
    assert_string_equal(described.names, "z;f;a;");
    assert_int_equal(described.unread, 1);
    unlink(path);
    make("{}", 0);
    assert_int_equal(gnomon_reader_open(ctx, path, NULL, &(gnomon_reader *){NULL}),
                     GNOMON_ERROR_DATA);
    members.names[0] = '\0';
    expect_ok(gnomon_file_members(ctx, path, tell_name, &members));
    assert_string_equal(members.names, "");
    unlink(path);
}

#define ONE(dtype, shape, begin, end) \
    "\"a\":{\"dtype\":\"" dtype "\",\"shape\":[" shape "],\"data_offsets\":[" #begin "," #end "]}"

static void lies(void **unused)
{
    (void)unused;
    const gnomon_status data = GNOMON_ERROR_DATA, cut = GNOMON_ERROR_TRUNCATED;
    /* the length */
    make_file("a.safetensors", "\2\0\0\0\0\0\0", 7);
    assert_int_equal(opens(""), cut);
    make_file("a.safetensors", "\3\0\0\0\0\0\0\0{}", 10);
    assert_int_equal(opens(""), cut);
    make_file("a.safetensors", "\1\xe1\xf5\5\0\0\0\0{}", 10);
    assert_int_equal(opens(""), data);
    assert_non_null(strstr(gnomon_last_error(ctx), "100000001 bytes long; at most 100000000"));
    make_file("a.safetensors", "\377\377\377\377\377\377\377\377{}", 10);
    assert_int_equal(opens(""), data);
    make_file("a.safetensors", "\0\0\0\0\0\0\0\0", 8);
    assert_int_equal(opens(""), data);
    unlink(path);
    /* the text */
    refused(" {}", 0, data, "begin with '{'");
    refused("[]", 0, data, "begin with '{'");
    refused("{} x", 0, data, "follows");
    refused("{", 0, data, "string is due");
    refused("{\"a", 0, data, "does not end");
    refused("{\"a\\", 0, data, "escape");
    refused("{\"a\\u00\":1}", 0, data, "escape");
    refused("{\"a\\ud800\":"
            "{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]}}",
            3, data, "header at byte");
    refused("{\"a\\u0000b\":"
            "{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]}}",
            3, data, "header at byte");
    refused("{\"a\n\":1}", 0, data, "control character");
    refused("{\"\xc3\":1}", 0, data, "no UTF-8");
    refused("{\"\xed\xa0\x80\":1}", 0, data, "no UTF-8"); /* a surrogate */
    refused("{\"\xc0\xaf\":1}", 0, data, "no UTF-8");     /* longer than need be */
    refused("{\"a\":1}", 0, data, "must be an object");
    refused("{\"a\":{}}", 0, data, "too short");
    refused("{" ONE("U8", "3", 0, 3) ",}", 3, data, "string is due");
    refused("{" ONE("U8", "3", 0, 3), 3, data, "',' or '}'");
    refused("{" ONE("U8", "3", 0, 3) "," ONE("U8", "3", 3, 6) "}", 6, data, "stands there twice");
    refused("{" ONE("U8", "3", 0,
                    3) ",\"\\u0061\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[3,6]}}",
            6, data, "stands there twice");
    refused("{\"__metadata__\":{},\"__metadata__\":{}}", 0, data, "twice");
    refused("{\"\\u005f_metadata__\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]}}", 3,
            data, "not to be escaped");
    refused("{\"__metadata__\":{\"a\":1}}", 0, data, "string is due");
    refused("{\"__metadata__\":[]}", 0, data, "object of texts");
    /* an entry */
    refused("{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]}}", 3,
            data, "duplicate");
    refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3],\"x\":[[[[[1]]]]]}}", 3,
            data, "nested too deep");
    refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3,3]}}", 3, data, "due");
    refused("{\"a\":{\"dtype\":8,\"shape\":[3],\"data_offsets\":[0,3]           }}", 3, data,
            "due");
    refused("{\"a\":{\"dtype\":\"U8\",\"shape\":3,\"data_offsets\":[0,3]            }}", 3, data,
            "due");
    refused("{" ONE("U8", "-3", 0, 3) "}", 3, data, "a size is");
    refused("{" ONE("U8", "3.0", 0, 3) "}", 3, data, "a size is");
    refused("{" ONE("U8", "true", 0, 3) "}", 3, data, "a size is");
    refused("{" ONE("U8", "99999999999999999999", 0, 3) "}", 3, data, "too big");
    refused("{" ONE("U8", "4611686018427387904,4", 0, 3) "}", 3, data, "more than any file");
    refused("{" ONE("U64", "1152921504606846976", 0, 3) "}", 3, data, "more than any file");
    refused("{" ONE("U8", "0,4611686018427387904,4", 0, 0) "}", 0, data, "more than any file");
    refused("{" ONE("U8", "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1", 0,
                    1) "}",
            1, GNOMON_ERROR_UNSUPPORTED, "33 dimensions");
    refused("{" ONE("U8", "4", 0, 3) "}", 3, data, "are not the 3 bytes");
    refused("{" ONE("F4", "3", 0, 2) "}", 2, data, "are not the 2 bytes");
    /* places */
    refused("{" ONE("U8", "3", 3, 0) "}", 3, data, "ascending");
    refused("{" ONE("U8", "3", -3, 0) "}", 3, data, "ascending");
    refused("{" ONE("U8", "3", 1, 4) "}", 4, data, "gaps");
    refused("{" ONE("U8", "3", 0, 3) "}", 4, data, "but it has");
    refused("{" ONE("U8", "3", 0, 3) "}", 2, cut, "at most");
    refused("{" ONE("U8", "9223372036854775807", 0, 9223372036854775807) "}", 2, data, "any file");
    refused("{" ONE("F128", "1", 0, 9223372036854775807) "}", 2, cut, "at most");
    refused(
        "{" ONE("U8", "3", 0, 3) ",\"b\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[2,5]}}",
        5, data, "overlap");
    refused(
        "{" ONE("U8", "3", 0, 3) ",\"b\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[4,7]}}",
        7, data, "gaps");
}

/* A long entry is refused where it stands; a long header is none of the memory's. */
static void long_headers(void **unused)
{
    (void)unused;
    enum { LONG = 300000 };
    char *bytes = malloc(LONG + 128);
    assert_non_null(bytes);
    static const char tail[] =
        "\"},\"a\":{\"dtype\":\"U8\",\"shape\":[2,1],\"data_offsets\":[0,2]}}\7\11";
    memset(bytes, 0, 8);
    int n = snprintf(bytes + 8, 64, "{\"__metadata__\":{\"k\":\"");
    memset(bytes + 8 + n, 'x', LONG);
    memcpy(bytes + 8 + n + LONG, tail, sizeof tail);
    const size_t length = (size_t)n + LONG + sizeof tail - 1 - 2;
    for (int i = 0; i < 8; i++)
        bytes[i] = (char)(length >> (8 * i) & 255);
    make_file("a.safetensors", bytes, 8 + length + 2);
    expect("a", 2, 1, GNOMON_U8, (const double[]){7, 9});
    memcpy(bytes + 8, "{\"a\":{\"k\":\"            ", 20);
    make_file("a.safetensors", bytes, 8 + length + 2);
    assert_int_equal(opens(""), GNOMON_ERROR_DATA);
    assert_non_null(strstr(gnomon_last_error(ctx), "too long"));
    unlink(path);
    free(bytes);
}

/* The bytes that another reader will see; told or not, the same. */
static void written_bytes(void **unused)
{
    (void)unused;
    static const char header[] = "{\"a\\\"\\u0001\xc3\xa4\":{\"dtype\":\"BF16\",\"shape\":[2,3],"
                                 "\"data_offsets\":[0,12]}}";
    const float x[] = {1, -2, 0.5f, 3, 4, -0.0f};
    const unsigned char elements[] = {0x80, 0x3f, 0x00, 0xc0, 0x00, 0x3f,
                                      0x40, 0x40, 0x80, 0x40, 0x00, 0x80};
    gnomon_matrix src = gnomon_matrix_rowmajor((void *)(uintptr_t)x, GNOMON_F32, 2, 3);
    char full[256];
    for (int rows = -1; rows <= 2; rows += 3) {
        unsigned char bytes[1024];
        gnomon_writer *writer;
        snprintf(path, sizeof path, "%s/a.safetensors", folder);
        snprintf(full, sizeof full, "%s:a\"\1\xc3\xa4", path);
        expect_ok(gnomon_writer_open(ctx, full, rows, 3, GNOMON_BF16, NULL, &writer));
        expect_ok(gnomon_writer_rows(writer, &src));
        expect_ok(gnomon_writer_finish(writer));
        FILE *file = fopen(path, "rb");
        assert_non_null(file);
        const size_t size = fread(bytes, 1, sizeof bytes, file);
        fclose(file);
        const size_t length = bytes[0] | (size_t)bytes[1] << 8;
        for (int i = 2; i < 8; i++)
            assert_int_equal(bytes[i], 0);
        assert_int_equal((8 + length) % 64, 0);
        assert_int_equal(size, 8 + length + sizeof elements);
        assert_memory_equal(bytes + 8, header, sizeof header - 1);
        for (size_t i = 8 + sizeof header - 1; i < 8 + length; i++)
            assert_int_equal(bytes[i], ' ');
        assert_memory_equal(bytes + 8 + length, elements, sizeof elements);
        expect("a\"\1\xc3\xa4", 2, 3, GNOMON_BF16, (const double[]){1, -2, 0.5, 3, 4, -0.0});
        unlink(path);
    }
    gnomon_writer *writer;
    snprintf(full, sizeof full, "%s:__metadata__", path);
    assert_int_equal(gnomon_writer_open(ctx, full, 2, 3, GNOMON_F32, NULL, &writer),
                     GNOMON_ERROR_ARGUMENT);
    snprintf(full, sizeof full, "%s:\xff", path);
    assert_int_equal(gnomon_writer_open(ctx, full, 2, 3, GNOMON_F32, NULL, &writer),
                     GNOMON_ERROR_ARGUMENT);
    assert_int_equal(access(path, F_OK), -1); /* nothing is left */
}

/* A pipe whose header claims much: what there is is read, no more is taken, and a sound one works.
 */
static void pipes(void **unused)
{
    (void)unused;
    static const char claim[] = "\0\341\365\5\0\0\0\0{\"a\":";
    gnomon_read_options options = GNOMON_READ_OPTIONS_INIT;
    options.format = "safetensors";
    snprintf(path, sizeof path, "%s/pipe", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    make("{\"z\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]},"
         "\"m\":{\"dtype\":\"U8\",\"shape\":[2,2],\"data_offsets\":[3,7]}}",
         7);
    for (int lying = 0; lying < 2; lying++) {
        char bytes[512], pipe_path[160];
        snprintf(pipe_path, sizeof pipe_path, "%s/pipe", folder);
        FILE *file = fopen(path, "rb");
        assert_non_null(file);
        size_t size = fread(bytes, 1, sizeof bytes, file);
        fclose(file);
        if (lying) memcpy(bytes, claim, size = sizeof claim - 1);
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            const int fd = open(pipe_path, O_WRONLY);
            const ssize_t n = write(fd, bytes, size);
            _exit(n != (ssize_t)size);
        }
        gnomon_reader *reader;
        const gnomon_status status = gnomon_reader_open(ctx, pipe_path, &options, &reader);
        assert_int_equal(status, lying ? GNOMON_ERROR_TRUNCATED : GNOMON_OK);
        if (!lying) {
            double data[4];
            int64_t got;
            gnomon_matrix dst = gnomon_matrix_rowmajor(data, GNOMON_F64, 2, 2);
            expect_ok(gnomon_reader_next(reader, &dst, &got));
            assert_int_equal(got, 2);
            for (int i = 0; i < 4; i++)
                assert_true(data[i] == 3 + i);
        }
        gnomon_reader_close(reader);
        int how;
        assert_int_equal(waitpid(child, &how, 0), child);
    }
    unlink(path);
    snprintf(path, sizeof path, "%s/pipe", folder);
    unlink(path);
}

/* Recognised by content alone, whatever the name; what only begins alike is not. */
static void recognised(void **unused)
{
    (void)unused;
    const gnomon_format *format = gnomon_format_find("safetensors");
    static const char sound[] = "\100\0\0\0\0\0\0\0{\"a\":{\"dtype\":\"U8\"";
    const unsigned char *head = (const unsigned char *)sound;
    assert_int_equal(format->sniff(head, sizeof sound - 1, 1000), GNOMON_SNIFF_YES);
    assert_int_equal(format->sniff(head, sizeof sound - 1, -1), GNOMON_SNIFF_YES);
    assert_int_equal(format->sniff(head, sizeof sound - 1, 60), GNOMON_SNIFF_NO);
    assert_int_equal(format->sniff(head, 9, 1000), GNOMON_SNIFF_NO);
    static const unsigned char vecs[24] = {128, 0, 0, 0, 0, 0, 0, 0, '{', '"', '}'};
    assert_int_equal(format->sniff(vecs, sizeof vecs, 1000), GNOMON_SNIFF_NO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_tensors), cmocka_unit_test(lists_tensors), cmocka_unit_test(lies),
        cmocka_unit_test(long_headers),    cmocka_unit_test(written_bytes), cmocka_unit_test(pipes),
        cmocka_unit_test(recognised),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

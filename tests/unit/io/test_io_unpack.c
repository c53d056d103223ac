/* Compressed streams: members and frames one after another, in pieces of any size, again after a
 * seek; each cut and each changed byte is an error that names the file, or changes nothing. */
#include "io/format.h"
#include "io/open.h"
#include "io_text.h"

#include <zlib.h>
#if GNOMON_WITH_ZSTD
#include <zstd.h>
#endif

enum { PLAIN = 300000, PACKED = 1 << 19, SMALL = 700 };

static unsigned char plain[PLAIN], packed[PACKED], out[PLAIN + 1];

/* Text that compresses to a third or so. */
static void write_plain(void)
{
    uint64_t state = 5;
    for (int i = 0; i < PLAIN; i++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
        plain[i] = (unsigned char)("etaoin\nshrdlu cm"[state >> 60]);
    }
}

static size_t gzip_member(unsigned char *to, const unsigned char *from, size_t size)
{
    z_stream z = {.next_in = (unsigned char *)(uintptr_t)from, .avail_in = (uInt)size};
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_out = to;
    z.avail_out = PACKED / 4;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return z.total_out;
}

#if GNOMON_WITH_ZSTD
static size_t zstd_frame(unsigned char *to, const unsigned char *from, size_t size)
{
    ZSTD_CCtx *z = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(z, ZSTD_c_checksumFlag, 1);
    const size_t length = ZSTD_compress2(z, to, PACKED / 4, from, size);
    assert_false(ZSTD_isError(length));
    ZSTD_freeCCtx(z);
    return length;
}
#endif

typedef size_t packing(unsigned char *to, const unsigned char *from, size_t size);

/* Three members, the second one empty; for zstd a frame to skip before each. */
static size_t pack(packing *one, bool zstd, size_t size)
{
    const size_t cuts[] = {0, size / 3, size / 3, size};
    size_t at = 0;
    for (int i = 0; i < 3; i++) {
        if (zstd) {
            memcpy(packed + at, "\x53\x2a\x4d\x18\x02\0\0\0xy", 10);
            at += 10;
        }
        at += one(packed + at, plain + cuts[i], cuts[i + 1] - cuts[i]);
    }
    return at;
}

/* Reads the file in pieces; the status, and how many bytes came. */
static gnomon_status read_all(size_t piece, size_t *length)
{
    gnomon_source *source = NULL;
    size_t got = 1;
    *length = 0;
    gnomon_status status = gnomon_source_open(ctx, path, GNOMON_UNPACK_AUTO, &source);
    while (status == GNOMON_OK && got > 0 && *length < sizeof out) {
        const size_t left = sizeof out - *length;
        status = gnomon_source_read(source, out + *length, piece < left ? piece : left, &got);
        if (status == GNOMON_OK) *length += got;
    }
    gnomon_source_close(source);
    return status;
}

static void whole(packing *one, bool zstd)
{
    size_t length;
    make_file("packed", packed, pack(one, zstd, PLAIN));
    for (size_t piece = 1; piece <= PLAIN; piece = piece * 37 + 2) {
        expect_ok(read_all(piece, &length));
        assert_int_equal(length, PLAIN);
        assert_memory_equal(out, plain, PLAIN);
    }
    gnomon_source *source;
    size_t got;
    expect_ok(gnomon_source_open(ctx, path, GNOMON_UNPACK_AUTO, &source));
    for (int64_t at = PLAIN - 1000; at >= 0; at -= 149500) { /* back to the start each time */
        expect_ok(gnomon_source_seek(source, at));
        expect_ok(gnomon_source_read(source, out, 1000, &got));
        assert_memory_equal(out, plain + at, 1000);
    }
    gnomon_source_close(source);
    unlink(path);
}

static void damaged(packing *one, bool zstd)
{
    size_t length;
    const size_t size = pack(one, zstd, SMALL);
    int cut_short = 0;
    for (size_t cut = 11; cut < size; cut++) {
        make_file("packed", packed, cut);
        const gnomon_status status = read_all(100, &length);
        if (status == GNOMON_OK) { /* between two members */
            assert_memory_equal(out, plain, length);
            assert_true(length == 0 || length == SMALL / 3);
        } else {
            /* DATA: a header of which a part is there */
            assert_true(status == GNOMON_ERROR_TRUNCATED || status == GNOMON_ERROR_DATA);
            cut_short += status == GNOMON_ERROR_TRUNCATED;
            assert_non_null(strstr(gnomon_last_error(ctx), path));
        }
    }
    assert_true(cut_short > (int)size / 2);
    int refused = 0;
    for (size_t at = 11; at < size; at++) {
        packed[at] ^= 0x41;
        make_file("packed", packed, size);
        if (read_all(100, &length) == GNOMON_OK) {
            assert_true(length == SMALL || length == 0);
            assert_memory_equal(out, plain, length);
        } else {
            assert_non_null(strstr(gnomon_last_error(ctx), path));
            refused++;
        }
        packed[at] ^= 0x41;
    }
    assert_true(refused > (int)size / 2);
    memcpy(packed + size, "zz", 2);
    make_file("packed", packed, size + 2);
    assert_int_equal(read_all(100, &length), GNOMON_ERROR_DATA);
    unlink(path);
}

static void gzip(void **unused)
{
    (void)unused;
    write_plain();
    whole(gzip_member, false);
    damaged(gzip_member, false);
}

static void zstd(void **unused)
{
    (void)unused;
    write_plain();
#if GNOMON_WITH_ZSTD
    whole(zstd_frame, true);
    damaged(zstd_frame, true);
#else
    size_t length;
    make_file("packed", "\x28\xb5\x2f\xfd\x24\x00\x01\x00\x00\x99\xe9\xd8\x51", 13);
    assert_int_equal(read_all(100, &length), GNOMON_ERROR_UNSUPPORTED);
    assert_non_null(strstr(gnomon_last_error(ctx), "zstd"));
    unlink(path);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gzip),
        cmocka_unit_test(zstd),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

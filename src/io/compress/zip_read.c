#include "io/compress/unpack.h"
#include "io/compress/zip.h"
#include "io/format.h"

#if GNOMON_WITH_LIBZIP

#include <stdio.h>
#include <string.h>
#include <zip.h>
#include <zlib.h>

struct gnomon_zip {
    gnomon_context *ctx;
    gnomon_source *source;
    zip_t *archive;
    int64_t position; /* where libzip reads next */
    zip_error_t error;
    gnomon_status failed; /* of the source, which libzip may tell as the end of the file */
};

/* libzip reads through the source, so that a spooled pipe and a file are the same to it. */
static zip_int64_t read_archive(void *user, void *data, zip_uint64_t length, zip_source_cmd_t cmd)
{
    gnomon_zip *zip = user;
    int64_t size = gnomon_source_size(zip->source);
    switch (cmd) {
    case ZIP_SOURCE_OPEN:
        zip->position = 0;
        return 0;
    case ZIP_SOURCE_READ: {
        int64_t left = zip->position < size ? size - zip->position : 0;
        int64_t n = length < (zip_uint64_t)left ? (int64_t)length : left;
        zip->failed =
            gnomon_source_read_at(zip->source, zip->position, data, (size_t)n, "the archive");
        if (zip->failed != GNOMON_OK) {
            zip_error_set(&zip->error, ZIP_ER_READ, 0);
            return -1;
        }
        zip->position += n;
        return n;
    }
    case ZIP_SOURCE_CLOSE:
    case ZIP_SOURCE_FREE:
        return 0;
    case ZIP_SOURCE_STAT: {
        zip_stat_t *st = data;
        zip_stat_init(st);
        st->size = (zip_uint64_t)size;
        st->valid = ZIP_STAT_SIZE;
        return sizeof *st;
    }
    case ZIP_SOURCE_ERROR:
        return zip_error_to_data(&zip->error, data, length);
    case ZIP_SOURCE_SEEK: {
        zip_int64_t to = zip_source_seek_compute_offset(
            (zip_uint64_t)zip->position, (zip_uint64_t)size, data, length, &zip->error);
        if (to < 0) return -1;
        zip->position = to;
        return 0;
    }
    case ZIP_SOURCE_TELL:
        return zip->position;
    case ZIP_SOURCE_SUPPORTS:
        return zip_source_make_command_bitmap(
            ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE, ZIP_SOURCE_STAT, ZIP_SOURCE_ERROR,
            ZIP_SOURCE_FREE, ZIP_SOURCE_SEEK, ZIP_SOURCE_TELL, ZIP_SOURCE_SUPPORTS, -1);
    default:
        zip_error_set(&zip->error, ZIP_ER_OPNOTSUPP, 0);
        return -1;
    }
}

static gnomon_status zip_status(const zip_error_t *error)
{
    const int code = zip_error_code_zip(error);
    /* of zlib, whose memory is none of libzip's errors */
    if (code == ZIP_ER_ZLIB && zip_error_code_system(error) == Z_MEM_ERROR)
        return GNOMON_ERROR_MEMORY;
    return code == ZIP_ER_MEMORY                                               ? GNOMON_ERROR_MEMORY
           : code == ZIP_ER_READ || code == ZIP_ER_SEEK || code == ZIP_ER_OPEN ? GNOMON_ERROR_IO
                                                                               : GNOMON_ERROR_DATA;
}

gnomon_status gnomon_zip_open(gnomon_source *source, gnomon_zip **out)
{
    gnomon_context *ctx = gnomon_source_context(source);
    *out = NULL;
    GNOMON_TRY(gnomon_source_make_random(source));
    gnomon_zip *zip = NULL;
    GNOMON_TRY(gnomon_alloc_zero(ctx, 1, sizeof *zip, "an archive", &zip));
    zip->ctx = ctx;
    zip->source = source;
    zip_error_init(&zip->error);
    zip_error_t error;
    zip_error_init(&error);
    zip_source_t *input = zip_source_function_create(read_archive, zip, &error);
    if (input != NULL) zip->archive = zip_open_from_source(input, ZIP_RDONLY, &error);
    gnomon_status status = GNOMON_OK;
    if (zip->archive == NULL) {
        status = zip->failed;
        if (status == GNOMON_OK)
            status = gnomon_fail(ctx, zip_status(&error),
                                 GNOMON_ARG("%s") ": can't be read as a zip archive: %s",
                                 gnomon_source_name(source), zip_error_strerror(&error));
        if (input != NULL) zip_source_free(input);
        gnomon_zip_close(zip);
        zip = NULL;
    }
    zip_error_fini(&error);
    *out = zip;
    return status;
}

void gnomon_zip_close(gnomon_zip *zip)
{
    if (zip == NULL) return;
    if (zip->archive != NULL) zip_discard(zip->archive);
    zip_error_fini(&zip->error);
    gnomon_free(zip->ctx, zip);
}

int64_t gnomon_zip_count(const gnomon_zip *zip)
{
    return zip_get_num_entries(zip->archive, 0);
}

const char *gnomon_zip_name(const gnomon_zip *zip, int64_t index)
{
    const char *name = zip_get_name(zip->archive, (zip_uint64_t)index, 0);
    return name != NULL ? name : "";
}

int64_t gnomon_zip_find(const gnomon_zip *zip, const char *name)
{
    return zip_name_locate(zip->archive, name, 0);
}

typedef struct member_state {
    gnomon_zip *zip;
    zip_file_t *file;
    int64_t index;
    int64_t position, size;
    bool random;
} member_state;

static void member_close(gnomon_context *ctx, void *state)
{
    member_state *member = state;
    if (member == NULL) return;
    if (member->file != NULL) zip_fclose(member->file);
    gnomon_free(ctx, member);
}

static gnomon_status member_reopen(member_state *member, const char *name)
{
    if (member->file != NULL) zip_fclose(member->file);
    member->position = 0;
    member->file = zip_fopen_index(member->zip->archive, (zip_uint64_t)member->index, 0);
    if (member->file != NULL) return GNOMON_OK;
    GNOMON_TRY(member->zip->failed);
    zip_error_t *error = zip_get_error(member->zip->archive);
    return gnomon_fail(member->zip->ctx, zip_status(error),
                       GNOMON_ARG("%s") ": can't open it in the archive: %s", name,
                       zip_error_strerror(error));
}

static gnomon_status member_read(gnomon_source *source, member_state *member, void *data,
                                 size_t size, size_t *got)
{
    char none;
    zip_int64_t n = zip_fread(member->file, data, size);
    /* libzip compares the checksum when it is asked for more than there is */
    const bool last = n > 0 && member->position + n == member->size;
    if (last && zip_fread(member->file, &none, 1) < 0) n = -1;
    if (n < 0) {
        GNOMON_TRY(member->zip->failed);
        zip_error_t *error = zip_file_get_error(member->file);
        return gnomon_fail(member->zip->ctx, zip_status(error),
                           GNOMON_ARG("%s") ": can't read it in the archive at byte %lld: %s",
                           gnomon_source_name(source), (long long)member->position,
                           zip_error_strerror(error));
    }
    member->position += n;
    *got = (size_t)n;
    return GNOMON_OK;
}

static gnomon_status member_pull(gnomon_source *source, void *state, int64_t offset, void *data,
                                 size_t size, size_t *got)
{
    member_state *member = state;
    if (offset != member->position && member->random) {
        const bool there = zip_fseek(member->file, offset, SEEK_SET) == 0;
        GNOMON_TRY(there ? GNOMON_OK : member->zip->failed);
        GNOMON_FAIL_IF(!there, member->zip->ctx, GNOMON_ERROR_IO,
                       GNOMON_ARG("%s") ": can't go to byte %lld in the archive",
                       gnomon_source_name(source), (long long)offset);
        member->position = offset;
    }
    if (offset < member->position) GNOMON_TRY(member_reopen(member, gnomon_source_name(source)));
    while (member->position < offset) {
        char passed[4096];
        int64_t left = offset - member->position;
        GNOMON_TRY(member_read(source, member, passed,
                               left < (int64_t)sizeof passed ? (size_t)left : sizeof passed, got));
        if (*got == 0) return GNOMON_OK;
    }
    return member_read(source, member, data, size, got);
}

static gnomon_status check_member(gnomon_zip *zip, int64_t index, zip_stat_t *st, const char *name)
{
    gnomon_context *ctx = zip->ctx;
    const zip_uint64_t due =
        ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
    zip_stat_init(st);
    GNOMON_FAIL_IF(
        zip_stat_index(zip->archive, (zip_uint64_t)index, 0, st) != 0 || (st->valid & due) != due,
        ctx, GNOMON_ERROR_DATA, GNOMON_ARG("%s") ": the archive does not tell its size", name);
    GNOMON_FAIL_IF(st->encryption_method != ZIP_EM_NONE, ctx, GNOMON_ERROR_UNSUPPORTED,
                   GNOMON_ARG("%s") ": is encrypted", name);
    GNOMON_FAIL_IF(
        st->comp_method != ZIP_CM_STORE && st->comp_method != ZIP_CM_DEFLATE, ctx,
        GNOMON_ERROR_UNSUPPORTED,
        GNOMON_ARG("%s") ": is compressed by method %d; stored (0) and deflated (8) are read", name,
        st->comp_method);
    int64_t archive = gnomon_source_size(zip->source);
    GNOMON_FAIL_IF(st->comp_size > (zip_uint64_t)archive, ctx, GNOMON_ERROR_TRUNCATED,
                   GNOMON_ARG("%s") ": takes %llu bytes in the archive, which has %lld", name,
                   (unsigned long long)st->comp_size, (long long)archive);
    int64_t most = st->comp_method == ZIP_CM_STORE ? (int64_t)st->comp_size
                                                   : gnomon_deflate_limit((int64_t)st->comp_size);
    GNOMON_FAIL_IF(
        st->size > (zip_uint64_t)most, ctx, GNOMON_ERROR_DATA,
        GNOMON_ARG("%s") ": %llu bytes can't come from the %llu that it takes in the archive", name,
        (unsigned long long)st->size, (unsigned long long)st->comp_size);
    return GNOMON_OK;
}

static gnomon_status open_member(gnomon_zip *zip, int64_t index, const char *name,
                                 gnomon_source **out)
{
    static const gnomon_source_backend backend = {.pull = member_pull, .close = member_close};
    zip_stat_t st;
    GNOMON_TRY(check_member(zip, index, &st, name));
    member_state *member = NULL;
    GNOMON_TRY(gnomon_alloc_zero(zip->ctx, 1, sizeof *member, "an archive's member", &member));
    member->zip = zip;
    member->index = index;
    member->size = (int64_t)st.size;
    gnomon_status status = member_reopen(member, name);
    if (status != GNOMON_OK) {
        member_close(zip->ctx, member);
        return status;
    }
    /* libzip 1.7 crashes when it seeks in an empty member */
    member->random = st.comp_method == ZIP_CM_STORE && st.size > 0 && st.comp_size > 0 &&
                     zip_fseek(member->file, 0, SEEK_SET) == 0;
    return gnomon_source_open_backend(zip->ctx, name, &backend, member,
                                      member->random ? GNOMON_SOURCE_RANDOM
                                                     : GNOMON_SOURCE_REWINDABLE,
                                      (int64_t)st.size, (int64_t)st.size, out);
}

gnomon_status gnomon_zip_member(gnomon_zip *zip, int64_t index, gnomon_source **out)
{
    const char *archive = gnomon_source_name(zip->source), *member = gnomon_zip_name(zip, index);
    size_t length = strlen(archive) + strlen(member) + 2;
    char *name = NULL;
    *out = NULL;
    GNOMON_TRY(gnomon_alloc(zip->ctx, (int64_t)length, 1, "a name", &name));
    snprintf(name, length, "%s:%s", archive, member);
    gnomon_status status = open_member(zip, index, name, out);
    gnomon_free(zip->ctx, name);
    return status;
}

#else

gnomon_status gnomon_zip_open(gnomon_source *source, gnomon_zip **out)
{
    *out = NULL;
    return gnomon_fail(
        gnomon_source_context(source), GNOMON_ERROR_UNSUPPORTED,
        GNOMON_ARG("%s") ": is a zip archive; this build reads none (it was made without libzip)",
        gnomon_source_name(source));
}

void gnomon_zip_close(gnomon_zip *zip)
{
    (void)zip;
}

int64_t gnomon_zip_count(const gnomon_zip *zip)
{
    (void)zip;
    return 0;
}

const char *gnomon_zip_name(const gnomon_zip *zip, int64_t index)
{
    (void)zip;
    (void)index;
    return "";
}

int64_t gnomon_zip_find(const gnomon_zip *zip, const char *name)
{
    (void)zip;
    (void)name;
    return -1;
}

gnomon_status gnomon_zip_member(gnomon_zip *zip, int64_t index, gnomon_source **out)
{
    (void)zip;
    (void)index;
    *out = NULL;
    return gnomon_fail(NULL, GNOMON_ERROR_UNSUPPORTED, "this build reads no zip archives");
}

#endif

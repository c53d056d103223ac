/* Faults of a file: those of its bytes, and how those of any kind are told. */
#include "lsh/file/file.h"

#include "base/threads.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

void gnomon_tell(gnomon_checker *c, const char *section, const char *fault)
{
    if (c->faults++ == 0) snprintf(c->first, sizeof c->first, "%s: %s", section, fault);
    if (c->fn != NULL) c->fn(c->user, section, fault);
}

gnomon_status gnomon_tell_error(gnomon_checker *c, gnomon_status status)
{
    char text[256], section[64];
    if (status != GNOMON_ERROR_DATA && status != GNOMON_ERROR_TRUNCATED) return status;
    snprintf(text, sizeof text, "%s", gnomon_last_error(c->ctx));
    snprintf(section, sizeof section, "%s", gnomon_last_error_argument(c->ctx));
    const size_t length = strlen(section) + 2; /* "section: " */
    if (section[0] != '\0' && strlen(text) > length)
        gnomon_tell(c, section, text + length);
    else
        gnomon_tell(c, "layout", text);
    return GNOMON_OK;
}

/* Tells of sections whose checksums do not fit, and of bytes between sections that are not 0. */
static gnomon_status check_sums(gnomon_checker *c, const gnomon_layout *l)
{
    int64_t end = GNOMON_LSH_HEADER;
    for (int64_t i = 0; i <= l->sections; i++) {
        gnomon_section s = {.kind = (gnomon_section_kind)0, .offset = l->table};
        if (i < l->sections) s = gnomon_layout_section(l, i);
        const gnomon_section_name name = gnomon_section_name_of(s.kind, s.number);
        bool zero = true;
        for (; end < s.offset; end++)
            zero = zero && l->map[end] == 0;
        if (!zero)
            gnomon_tell(c, i < l->sections ? name.text : "section table",
                        "the bytes between it and the section before are not 0");
        if (i == l->sections) break;
        if (gnomon_lsh_checksum(l->map + s.offset, (size_t)s.length) != s.checksum)
            gnomon_tell(c, name.text, "damaged: its checksum does not fit");
        end = s.offset + s.length;
        GNOMON_TRY(gnomon_progress(c->ctx, "checksums", end, l->bytes));
    }
    return GNOMON_OK;
}

gnomon_status gnomon_file_check_bytes(gnomon_context *ctx, const gnomon_file_kind *kind,
                                      const unsigned char *map, int64_t bytes)
{
    gnomon_layout layout;
    gnomon_checker c = {.ctx = ctx};
    if (map == NULL) return GNOMON_OK;
    GNOMON_TRY(gnomon_layout_check(ctx, kind, map, bytes, &layout));
    GNOMON_TRY(check_sums(&c, &layout));
    return c.faults == 0 ? GNOMON_OK : gnomon_fail(ctx, GNOMON_ERROR_DATA, "%s", c.first);
}

gnomon_status gnomon_file_check(gnomon_context *ctx, const gnomon_file_kind *kind, const char *path,
                                gnomon_check_fn check, gnomon_lsh_fault_fn fn, void *user)
{
    gnomon_layout layout;
    gnomon_checker c = {.ctx = ctx, .fn = fn, .user = user};
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_TRY(gnomon_layout_map(ctx, kind, path, &layout));
    gnomon_status status = check_sums(&c, &layout);
    if (status == GNOMON_OK && c.faults == 0)
        status = check(&c, &layout);
    else
        munmap((void *)layout.map, (size_t)layout.bytes);
    GNOMON_TRY(status);
    if (c.faults == 0) return GNOMON_OK;
    return gnomon_fail(ctx, GNOMON_ERROR_DATA, GNOMON_ARG("%s") ": %s", path, c.first);
}

#include "io/format.h"

#include <string.h>
#include <strings.h>
#include <sys/stat.h>

static bool exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

static bool holds_members(const char *path)
{
    const gnomon_format *format = gnomon_format_by_extension(path, false);
    return format != NULL && (format->flags & GNOMON_FORMAT_MEMBERS) != 0;
}

gnomon_status gnomon_split_member(gnomon_context *ctx, const char *path, bool for_writing,
                                  char **file, char **member)
{
    *file = *member = NULL;
    gnomon_status status = gnomon_copy_text(ctx, path, file);
    if (status == GNOMON_OK) status = gnomon_copy_text(ctx, "", member);
    if (status != GNOMON_OK || (!for_writing && exists(path))) return status;
    /* from the right, so that a folder or file name with a colon in it wins */
    for (char *end = *file + strlen(*file); end > *file; end--) {
        if (*end != ':') continue;
        *end = '\0';
        if (for_writing ? holds_members(*file) : exists(*file)) {
            char *text = NULL;
            GNOMON_TRY(gnomon_copy_text(ctx, end + 1, &text));
            gnomon_free(ctx, *member);
            *member = text;
            return GNOMON_OK;
        }
        *end = ':';
    }
    return GNOMON_OK;
}

/* Where a path's file part ends for gnomon_same_file, which has no context to allocate in. */
static int find(const char *path, struct stat *st)
{
    char part[4096];
    size_t length = strlen(path);
    if (strcmp(path, "-") == 0 || length >= sizeof part) return 0;
    memcpy(part, path, length + 1);
    if (stat(part, st) == 0) return 1;
    for (size_t end = length; end > 0; end--) {
        if (part[end] != ':') continue;
        part[end] = '\0';
        if (stat(part, st) == 0) return 1;
        part[end] = ':';
    }
    return 0;
}

int gnomon_same_file(const char *a, const char *b)
{
    struct stat x, y;
    if (a == NULL || b == NULL || !find(a, &x) || !find(b, &y)) return 0;
    return x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

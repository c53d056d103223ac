#include "io/open.h"

#include "io/compress/gunzip.h"

#include <string.h>

static bool named_gz(const char *path)
{
    size_t length = strlen(path);
    return length > 3 && strcmp(path + length - 3, ".gz") == 0;
}

/* Puts a gunzip between the file and the reader when the bytes ask for it. */
static gnomon_status unfold(gnomon_source **source, const char *path, gnomon_gunzip gunzip)
{
    const unsigned char *head;
    size_t got;
    if (gunzip == GNOMON_GUNZIP_NAMED && !named_gz(path)) return GNOMON_OK;
    GNOMON_TRY(gnomon_source_peek(*source, GNOMON_GZIP_HEADER, &head, &got));
    if (!gnomon_gzip_header(head, got)) return GNOMON_OK;
    gnomon_source *inner = *source;
    *source = NULL; /* gunzip owns it from here on */
    return gnomon_gunzip_open(inner, source);
}

gnomon_status gnomon_source_open(gnomon_context *ctx, const char *path, gnomon_gunzip gunzip,
                                 gnomon_source **out)
{
    *out = NULL;
    gnomon_source *source = NULL;
    GNOMON_TRY(gnomon_source_open_file(ctx, path, &source));
    const gnomon_status status = unfold(&source, path, gunzip);
    if (status != GNOMON_OK) {
        gnomon_source_close(source);
        return status;
    }
    *out = source;
    return GNOMON_OK;
}

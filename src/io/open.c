#include "io/open.h"

#include "io/compress/unpack.h"

/* Puts a decompressor between the file and the reader when the bytes ask for it. */
static gnomon_status unfold(gnomon_source **source, const char *path, gnomon_unpack unpack)
{
    const unsigned char *head;
    const gnomon_codec *named;
    size_t got;
    gnomon_codec_ending(path, &named);
    if (unpack == GNOMON_UNPACK_NAMED && named == NULL) return GNOMON_OK;
    GNOMON_TRY(gnomon_source_peek(*source, GNOMON_CODEC_HEAD, &head, &got));
    const gnomon_codec *codec = gnomon_codec_of(head, got);
    if (codec == NULL || (unpack == GNOMON_UNPACK_NAMED && codec != named)) return GNOMON_OK;
    gnomon_source *inner = *source;
    *source = NULL; /* the decompressor owns it from here on */
    return gnomon_unpack_open(inner, codec, source);
}

gnomon_status gnomon_source_open(gnomon_context *ctx, const char *path, gnomon_unpack unpack,
                                 gnomon_source **out)
{
    *out = NULL;
    gnomon_source *source = NULL;
    GNOMON_TRY(gnomon_source_open_file(ctx, path, &source));
    const gnomon_status status = unfold(&source, path, unpack);
    if (status != GNOMON_OK) {
        gnomon_source_close(source);
        return status;
    }
    *out = source;
    return GNOMON_OK;
}

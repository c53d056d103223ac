/* io/compress/unpack.h: a source that unfolds another one's compressed stream. */
#ifndef GNOMON_IO_UNPACK_H
#define GNOMON_IO_UNPACK_H

#include "io/source.h"

/* What came of a step of a codec. */
typedef enum gnomon_unpacked {
    GNOMON_UNPACK_MORE,   /* within a member (a frame) */
    GNOMON_UNPACK_MEMBER, /* at the end of one */
    GNOMON_UNPACK_BROKEN, /* by *why, in memory that stays */
    GNOMON_UNPACK_NO_MEMORY
} gnomon_unpacked;

typedef struct gnomon_unpack_step {
    const unsigned char *in;
    size_t have, taken; /* of in */
    unsigned char *out;
    size_t room, made; /* of out */
    const char *why;
} gnomon_unpack_step;

/* A way to compress, whose streams are one or several members, one after another. */
typedef struct gnomon_codec {
    const char *name;   /* "gzip" */
    const char *ending; /* of a file's name, ".gz" */
    size_t head;        /* bytes that 'recognise' wants to see */
    bool padded;        /* zeros may follow the last member */
    bool (*recognise)(const unsigned char *head, size_t length);
    /* NULL: no memory. most_bytes: of memory, where the stream says how much it takes. All three
     * are NULL in a build without the codec. */
    void *(*open)(int64_t most_bytes);
    void (*restart)(void *state); /* before a member */
    gnomon_unpacked (*step)(void *state, gnomon_unpack_step *step);
    void (*close)(void *state);
    int64_t ratio; /* bytes at most that one unfolds to */
} gnomon_codec;

extern const gnomon_codec gnomon_codec_gzip, gnomon_codec_zstd;

/* The codec of a stream that begins so, NULL: none. GNOMON_CODEC_HEAD bytes are enough. */
enum { GNOMON_CODEC_HEAD = 10 };
const gnomon_codec *gnomon_codec_of(const unsigned char *head, size_t length);
/* The length of a path without the ending of a codec, which *codec tells; NULL: it has none. */
size_t gnomon_codec_ending(const char *path, const gnomon_codec **codec);

/* Owns inner from the call on, also when it fails. Members that follow one another read as one;
 * what else follows is DATA. Errors: UNSUPPORTED (a build without the codec), MEMORY. */
gnomon_status gnomon_unpack_open(gnomon_source *inner, const gnomon_codec *codec,
                                 gnomon_source **out);

/* The most bytes that this many deflated ones can unfold to: 1032 for 1, by the format. */
int64_t gnomon_deflate_limit(int64_t deflated);

#endif

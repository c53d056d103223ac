/* io/format.h: what a file format is to the reader and the writer: one table a format. */
#ifndef GNOMON_IO_FORMAT_H
#define GNOMON_IO_FORMAT_H

#include <gnomon/io.h>

#include "base/error.h"
#include "base/memory.h"
#include "io/sink.h"
#include "io/source.h"

#include <stdbool.h>

/* 0 builds without the format; the build system says, otherwise they are in. */
#ifndef GNOMON_WITH_HDF5
#define GNOMON_WITH_HDF5 1
#endif
#ifndef GNOMON_WITH_LIBZIP
#define GNOMON_WITH_LIBZIP 1
#endif
#ifndef GNOMON_WITH_ZSTD
#define GNOMON_WITH_ZSTD 1
#endif

typedef struct gnomon_format gnomon_format;

/* What a reader holds of dense points that are read as sparse ones. */
typedef struct gnomon_dense_csr {
    void *block; /* dense rows */
    int64_t *offsets, *indices;
    void *values;
    int64_t offset_room, entry_room;
} gnomon_dense_csr;

/* An open reader. reader.c fills everything but state and info before format->open. */
struct gnomon_reader {
    gnomon_context *ctx;
    const gnomon_format *format; /* open may hand over to a variant by changing it */
    gnomon_source *source;       /* at its first byte when open is called; closed by reader.c */
    char *path;                  /* without the member */
    char *member;                /* what the path asked for, "" when nothing */
    gnomon_read_options options; /* complete; strings live as long as the reader */
    gnomon_data_info info;       /* open fills rows, cols, dtype, access,
                                    coordinates_contiguous, nonzeros, member
                                    (preset: -1, 0, 0, 0, 0, -1, ""), and where
                                    there are more than two dimensions the shape */
    gnomon_dtype csr_dtype;      /* what next_csr's values are best given as: info.dtype, or
                                    dst's type when dense points are to be filled */
    void *state;                 /* the format's own */
    gnomon_dense_csr dense;
    gnomon_status spent; /* the failure after which the reader is of no more use */
};

/* An open writer. writer.c fills everything but state before format->create. */
struct gnomon_writer {
    gnomon_context *ctx;
    const gnomon_format *format; /* create may hand over to a variant by changing it */
    gnomon_sink *sink;
    char *path;
    char *member; /* what the path asked for, "" when nothing */
    int64_t rows; /* as open was told, -1 unknown */
    int64_t cols; /* >= 0 */
    gnomon_dtype dtype;
    gnomon_write_options options;
    int64_t written;      /* points so far, kept by writer.c */
    void *state;          /* the format's own */
    gnomon_status failed; /* of an earlier call: then finish drops everything */
};

#define GNOMON_DTYPE_BIT(dtype) (1u << (dtype))

/* What sniff can say. */
enum { GNOMON_SNIFF_NO = 0, GNOMON_SNIFF_MAYBE = 1, GNOMON_SNIFF_YES = 2 };

/* A row of the registry: all that is to know about a format. The first part is what
 * gnomon_format_describe tells of it. */
struct gnomon_format {
    const char *name;
    const char *about;   /* a phrase for lists */
    const char *endings; /* of file names, lower case, the usual one first: ".h5 .hdf5"; a
                            compressed file's ending is cut off before they are compared */
    const char *member;  /* what a path may name after a colon, as "KEY"; NULL: no members */
    int holds;           /* GNOMON_HOLDS_... */
    int takes;           /* GNOMON_TAKES_... */
    unsigned writes;     /* types that can be stored, GNOMON_DTYPE_BITs; 0: not written */
    bool headless;       /* nothing in the bytes tells it from noise: unpacked by name only */

    /* Why files of it can't be read or written on this machine, NULL when they can: a library that
     * it needs is looked for. NULL: needs none. */
    const char *(*missing)(void);

    /* Looks at the first bytes (length is smaller than GNOMON_SOURCE_PEEK only when that is
     * all there is) of data of size bytes, -1 when unknown. YES beats the extension, MAYBE is
     * taken only when no extension is known. NULL: never recognised by content. */
    int (*sniff)(const unsigned char *head, size_t length, int64_t size);

    /* Reads the header and fills info. On failure close is called all the same. */
    gnomon_status (*open)(gnomon_reader *reader);
    /* dst has been checked: host, cols as info, a type that may be asked for, rows > 0 and
     * data not NULL when there are cols. *got is 0 on entry. NULL for a sparse format:
     * reader.c fills out what next_csr gives. */
    gnomon_status (*next)(gnomon_reader *reader, const gnomon_matrix *dst, int64_t *got);
    gnomon_status (*next_csr)(gnomon_reader *reader, int64_t max_rows, int64_t max_nonzeros,
                              gnomon_csr *csr);
    /* row is in [0, rows], or not negative when rows is -1. */
    gnomon_status (*seek)(gnomon_reader *reader, int64_t row);
    /* The block has been checked to lie within. */
    gnomon_status (*block)(gnomon_reader *reader, int64_t row, int64_t col,
                           const gnomon_matrix *dst);
    void (*close)(gnomon_reader *reader); /* frees state; state may be NULL */
    /* Calls fn for each member that can be read, of a reader that was not opened: source is at its
     * first byte, state NULL, and close is not called. NULL for formats without members. */
    gnomon_status (*members)(gnomon_reader *reader, gnomon_member_fn fn, void *user);
    /* Describes the members, for gnomon_file_describe. NULL: each is opened in turn. */
    gnomon_status (*describe)(gnomon_reader *reader, gnomon_describe_fn fn, void *user);

    /* Whether the sink must be revisited (see gnomon_sink_options); NULL: never. */
    bool (*revisits)(const gnomon_writer *writer);
    gnomon_status (*create)(gnomon_writer *writer); /* on failure discard is called all the same */
    /* src has been checked: host, cols fit, F32, F64 or the stored type, rows > 0;
     * writer->written is the number of the first of them. */
    gnomon_status (*put)(gnomon_writer *writer, const gnomon_matrix *src);
    gnomon_status (*put_csr)(gnomon_writer *writer, const gnomon_csr *src);
    gnomon_status (*complete)(gnomon_writer *writer); /* all is written but what ends the file */
    void (*discard)(gnomon_writer *writer); /* frees state, also after complete; may be NULL */
};

/* Tells info of the stored shape; formats that don't have it filled in as rows x cols. DATA when
 * its sizes but those of 0 have a product that doesn't fit, so that any order of multiplying does.
 */
gnomon_status gnomon_reader_shape(gnomon_reader *reader, int dimensions, const int64_t *shape,
                                  bool fortran);

/* registry.c: the table of all, in the order of formats/list.h. */
const gnomon_format *gnomon_format_at(int index);          /* NULL past the end */
const gnomon_format *gnomon_format_find(const char *name); /* NULL when unknown */
/* By the path's ending, in any case of letters; NULL when none fits. */
const gnomon_format *gnomon_format_by_ending(const char *path, bool packed);
/* The ending of a path's last part, from its last dot on, when it stands for no format; NULL where
 * there is none, or it does. */
const char *gnomon_unknown_ending(const char *path);
/* "npy, npz, csv, ...": for error texts. Static. */
const char *gnomon_format_names(void);

/* Splits "file.npz:key". For reading the file is the longest part before a ':' that exists; for
 * writing the part that ends in the extension of a format with members. *file and *member
 * (never NULL) are to be given to gnomon_free. */
gnomon_status gnomon_split_member(gnomon_context *ctx, const char *path, bool for_writing,
                                  char **file, char **member);

/* One row a format, each in its own file. */
#define GNOMON_FORMAT(name) extern const gnomon_format gnomon_format_##name;
#include "io/formats/list.h"
#undef GNOMON_FORMAT
/* The variant of npz that holds scipy's sparse layout; gnomon_format_npz hands over to it. */
extern const gnomon_format gnomon_format_npz_csr;

#endif

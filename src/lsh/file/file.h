/* lsh/file/file.h: indexes in files, as docs/reference/formats.md specifies them. */
#ifndef GNOMON_LSH_FILE_H
#define GNOMON_LSH_FILE_H

#include "io/sink.h"
#include "lsh/index.h"

enum {
    GNOMON_LSH_HEADER = 128, /* bytes */
    GNOMON_LSH_ENTRY = 40,   /* of the section table */
    GNOMON_LSH_MOST_SETTINGS = 1 << 16
};

/* What a reader must know of: all flags that this library knows. */
enum {
    GNOMON_LSH_SETS = 1,
    GNOMON_LSH_CODED = 2,
    GNOMON_LSH_REMOVED = 4,
    GNOMON_LSH_WEIGHTED = 8,
    GNOMON_LSH_CENTRED = 16,
    GNOMON_LSH_FEATURES = 31
};

/* A kind of file that has this header, sections and section table. */
typedef struct gnomon_file_kind {
    unsigned char magic[8];
    uint64_t version;
    uint64_t features; /* those that this library knows */
    const char *what;  /* "index of gnomon's": for texts */
} gnomon_file_kind;

extern const gnomon_file_kind gnomon_lsh_file, gnomon_sparse_file, gnomon_rabitq_file;

/* Sections, in the file's order; the four of a table come together. */
typedef enum gnomon_section_kind {
    GNOMON_SECTION_POINTS = 1,
    GNOMON_SECTION_MEMBERS = 2,
    GNOMON_SECTION_OFFSETS = 3,
    GNOMON_SECTION_SCALE = 4,
    GNOMON_SECTION_CODES = 5,
    GNOMON_SECTION_REMOVED = 6,
    GNOMON_SECTION_IDS = 7,
    GNOMON_SECTION_KEYS = 8,
    GNOMON_SECTION_STARTS = 9,
    GNOMON_SECTION_DIRECTORY = 10,
    GNOMON_SECTION_SETTINGS = 11,
    GNOMON_SECTION_WEIGHTS = 12, /* behind the offsets */
    /* of sparse points, in this order */
    GNOMON_SECTION_ROW_COLUMNS = 13,
    GNOMON_SECTION_ROW_VALUES = 14,
    GNOMON_SECTION_ROW_OFFSETS = 15,
    GNOMON_SECTION_ROW_FACTORS = 16,
    GNOMON_SECTION_GONE = 17,
    GNOMON_SECTION_COLUMNS = 18,
    GNOMON_SECTION_NUMBERS = 19,
    GNOMON_SECTION_LISTS = 20,
    GNOMON_SECTION_LIST_IDS = 21,
    GNOMON_SECTION_LIST_VALUES = 22,
    GNOMON_SECTION_BLOCK = 23,
    GNOMON_SECTION_NORMS = 24,
    GNOMON_SECTION_BLOCK_NORMS = 25,
    GNOMON_SECTION_BIAS = 26,
    GNOMON_SECTION_SPARSE_SETTINGS = 27,
    GNOMON_SECTION_STEPS = 28,       /* behind the block */
    GNOMON_SECTION_BLOCK_CODES = 29, /* behind the steps */
    /* of codes; the points may stand before them */
    GNOMON_SECTION_CENTRE = 30,
    GNOMON_SECTION_RABITQ_CODES = 31,
    GNOMON_SECTION_FACTORS = 32,
    GNOMON_SECTION_RABITQ_SETTINGS = 33,
    GNOMON_SECTION_CENTRES = 34, /* behind the codes */
    GNOMON_SECTION_LAST = 34
} gnomon_section_kind;

typedef struct gnomon_section {
    gnomon_section_kind kind;
    uint32_t number;    /* of points in several types, or of the table */
    gnomon_dtype dtype; /* of points; else 0 */
    int64_t offset, length;
    uint64_t checksum;
} gnomon_section;

typedef struct gnomon_section_name {
    char text[40];
} gnomon_section_name;
/* "points", "table 3's keys": for texts. */
gnomon_section_name gnomon_section_name_of(gnomon_section_kind kind, uint32_t number);

/* The first place for a section at or behind 'at'. */
static inline int64_t gnomon_section_place(int64_t at)
{
    return (at + 63) / 64 * 64;
}

/* ---- file_stream.c ---- */
/* XXH3, 64 bits, seed 0. */
uint64_t gnomon_lsh_checksum(const void *data, size_t size);

/* A section on its way to the file. */
typedef struct gnomon_stream_out gnomon_stream_out;
gnomon_status gnomon_stream_out_open(gnomon_context *ctx, gnomon_sink *sink, int64_t offset,
                                     gnomon_stream_out **out);
gnomon_status gnomon_stream_out_put(gnomon_stream_out *stream, const void *data, int64_t size);
gnomon_status gnomon_stream_out_zeros(gnomon_stream_out *stream, int64_t size);
/* Fills in the section's place, length and checksum; frees the stream whatever it returns. */
gnomon_status gnomon_stream_out_close(gnomon_stream_out *stream, gnomon_section *section);
/* NULL is allowed. */
void gnomon_stream_out_drop(gnomon_stream_out *stream);

/* A nameless temporary file, opened when something is first written. */
typedef struct gnomon_spool {
    gnomon_context *ctx;
    int fd; /* -1: not there yet */
    int64_t end;
} gnomon_spool;
gnomon_status gnomon_spool_append(gnomon_spool *spool, const void *data, int64_t size);
gnomon_status gnomon_spool_write(gnomon_spool *spool, int64_t offset, const void *data,
                                 int64_t size);
gnomon_status gnomon_spool_read(gnomon_spool *spool, int64_t offset, void *data, int64_t size);
void gnomon_spool_close(gnomon_spool *spool);

/* ---- file_settings.c ---- */
/* What makes the index, as JSON; free() it. */
gnomon_status gnomon_lsh_settings_to_json(gnomon_context *ctx, const gnomon_lsh *index,
                                          char **json);
/* *descriptor is what options->functions.descriptor points at then; of centres only the count is
 * told. Errors: DATA, UNSUPPORTED. */
gnomon_status gnomon_lsh_settings_from_json(gnomon_context *ctx, const char *json, size_t length,
                                            gnomon_lsh_options *options,
                                            gnomon_descriptor *descriptor);

/* ---- file_runs.c ---- */
/* Sorted runs of new points: in the spool at 'offset', table after table, a table's keys before its
 * ids. */
typedef struct gnomon_run {
    int64_t offset, count;
} gnomon_run;

typedef struct gnomon_merging {
    gnomon_context *ctx;
    gnomon_sink *sink;
    const gnomon_lsh *from; /* whose points come first; NULL: none */
    bool drop;              /* its removed points */
    int64_t tables;
    gnomon_spool *spool;
    const gnomon_run *runs;
    int64_t run_count;
} gnomon_merging;

/* Writes table t's four sections from *end on, which moves. */
gnomon_status gnomon_lsh_write_table(const gnomon_merging *m, int64_t t, int64_t *end,
                                     gnomon_section sections[4]);

/* ---- write.c ---- */
/* What a builder hashes by; its own. */
gnomon_lsh *gnomon_lsh_builder_shape(const gnomon_lsh_builder *builder);
/* gnomon_lsh_builder_add of checked dense points, of an index without codes, whose keys are known:
 * [table * rows + row]. */
gnomon_status gnomon_lsh_builder_take(gnomon_lsh_builder *builder, const gnomon_matrix *points,
                                      const uint64_t *keys);

/* ---- file_layout.c ---- */
/* A file that is mapped, its header and section table checked. */
typedef struct gnomon_layout {
    const gnomon_file_kind *kind;
    const unsigned char *map;
    int64_t bytes;
    int64_t points, removed, sections, table;
    uint64_t features;
    dev_t device; /* of the file */
    ino_t inode;
} gnomon_layout;

gnomon_status gnomon_layout_check(gnomon_context *ctx, const gnomon_file_kind *kind,
                                  const unsigned char *map, int64_t bytes, gnomon_layout *layout);
gnomon_section gnomon_layout_section(const gnomon_layout *layout, int64_t i);
/* Header and section table in the file's bytes; entries has room for count of them. */
void gnomon_layout_write(const gnomon_layout *layout, const gnomon_section *sections,
                         unsigned char *entries, unsigned char header[GNOMON_LSH_HEADER]);

/* ---- faults.c ---- */
/* What is found in a file that is checked. */
typedef struct gnomon_checker {
    gnomon_context *ctx;
    gnomon_lsh_fault_fn fn; /* hears of each fault; NULL: nobody */
    void *user;
    int64_t faults;
    char first[256]; /* of them */
} gnomon_checker;

void gnomon_tell(gnomon_checker *c, const char *section, const char *fault);
/* After a load that failed: where the file is to blame (DATA, TRUNCATED), the last error's text
 * stands for a fault, and OK is returned; otherwise the status. */
gnomon_status gnomon_tell_error(gnomon_checker *c, gnomon_status status);
/* Loads the index of a mapped file, which becomes its own, and tells of faults that no checksum
 * shows. */
typedef gnomon_status (*gnomon_check_fn)(gnomon_checker *c, const gnomon_layout *layout);
/* Verifies a file: checksums, zeros between sections and, where those are right, what 'check' does.
 * Errors: DATA (there is a fault: the text names the first), those of gnomon_layout_map and of
 * 'check', CANCELLED. */
gnomon_status gnomon_file_check(gnomon_context *ctx, const gnomon_file_kind *kind, const char *path,
                                gnomon_check_fn check, gnomon_lsh_fault_fn fn, void *user);
/* Whether a mapped file's bytes fit their checksums; map NULL: there is none. Errors: DATA,
 * CANCELLED. */
gnomon_status gnomon_file_check_bytes(gnomon_context *ctx, const gnomon_file_kind *kind,
                                      const unsigned char *map, int64_t bytes);

/* ---- file_check.c ---- */
/* Whether an opened index's bytes fit their checksums; what was added since is not in them. Errors:
 * DATA, CANCELLED. */
gnomon_status gnomon_lsh_check_bytes(gnomon_context *ctx, const gnomon_lsh *index);

/* ---- file_origin.c ---- */
/* *out is NULL where the path leads nowhere any more. Errors: MEMORY. */
gnomon_status gnomon_origin_open(gnomon_context *ctx, const char *path, const gnomon_layout *layout,
                                 gnomon_origin **out);
/* Where path leads to the origin: locks that file until *lock is closed. Otherwise *lock is -1.
 * Errors: BUSY (locked, or no longer the file that was opened), IO. */
gnomon_status gnomon_origin_lock(gnomon_context *ctx, const gnomon_origin *origin, const char *path,
                                 int *lock);
/* Locks the regular file that path leads to, if there is one, until *lock is closed. Otherwise, and
 * where files can't be locked, *lock is -1. Errors: BUSY. */
gnomon_status gnomon_target_lock(gnomon_context *ctx, const char *path, int *lock);
/* Whether the path still leads to the file that was opened. Errors: BUSY. */
gnomon_status gnomon_origin_still(gnomon_context *ctx, const gnomon_origin *origin);

/* ---- file_open.c ---- */
/* Maps the file and checks its layout. */
gnomon_status gnomon_layout_map(gnomon_context *ctx, const gnomon_file_kind *kind, const char *path,
                                gnomon_layout *layout);
/* The index of a mapped file, which becomes its own; on failure too. */
gnomon_status gnomon_lsh_load(gnomon_context *ctx, const gnomon_layout *layout, gnomon_lsh **out);

#endif

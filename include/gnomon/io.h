/* gnomon/io.h: one reader and one writer for every file format of points, dense and sparse.
 *
 * The smallest complete program:
 *
 *     #include <gnomon/io.h>
 *     #include <stdio.h>
 *
 *     int main(void)
 *     {
 *         float numbers[2 * 3] = {1, 2, 3, 4, 5, 6};
 *         const gnomon_matrix points = gnomon_matrix_rowmajor(numbers, GNOMON_F32, 2, 3);
 *         gnomon_data_info info = {.struct_size = sizeof info};
 *         gnomon_context *ctx;
 *         gnomon_writer *writer = NULL;
 *         gnomon_reader *reader = NULL;
 *         gnomon_status status = gnomon_context_create(NULL, &ctx);
 *         if (status == GNOMON_OK)
 *             status = gnomon_writer_open(ctx, "points.npy", 2, 3, GNOMON_F32, NULL, &writer);
 *         if (status == GNOMON_OK) status = gnomon_writer_rows(writer, &points);
 *         if (status == GNOMON_OK) status = gnomon_writer_finish(writer);
 *         if (status == GNOMON_OK) status = gnomon_reader_open(ctx, "points.npy", NULL, &reader);
 *         if (status == GNOMON_OK) status = gnomon_reader_info(reader, &info);
 *         printf("%d x %d\n", (int)info.rows, (int)info.cols); // 2 x 3
 *         gnomon_reader_close(reader);
 *         gnomon_context_destroy(ctx);
 *         return status;
 *     }
 *
 * gnomon_format_describe lists the formats: NumPy arrays, text, HDF5, Matrix Market, svmlight and
 * more; docs/reference/formats.md defines each. A path may name one array of a file:
 * "file.npz:key", "file.h5:/dataset", "file.safetensors:tensor". "-" is standard input or output.
 * Formats are detected from the content, then from the extension; options.format overrides that.
 *
 * Files are not trusted: every length is checked against the file's size and for overflow before
 * memory is allocated. */
#ifndef GNOMON_IO_H
#define GNOMON_IO_H

#include <gnomon/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gnomon_reader gnomon_reader;
typedef struct gnomon_writer gnomon_writer;

typedef struct gnomon_read_options {
    size_t struct_size; /* see gnomon/base.h */
    const char *format; /* NULL: detect it; else a name that gnomon_format_describe lists */
    /* raw only: shape and element type; rows may be -1 (from the file's size) */
    int64_t raw_rows, raw_cols;
    gnomon_dtype raw_dtype;
    int csv_header;          /* -1: detect it (default), 0: none, 1: the first line holds names */
    char csv_delimiter;      /* 0: tab for tsv; for csv detected (tab, ';', ',' or blanks) */
    int64_t svmlight_cols;   /* 0: from the file's largest index (two passes) */
    int svmlight_zero_based; /* -1: detect it as scikit-learn does (any index 0), 0, 1 */
    gnomon_dtype text_dtype; /* of GNOMON_HOLDS_TEXT: the type that counts as stored, F32 or F64; 0:
                                F32. Reading into F64 always gives every digit; a number beyond its
                                range is DATA */
    int tensor; /* 1: read an array of any number of dimensions in the file's order: a row is the
                   slice of one index of the outermost dimension, which is the first one or, in
                   Fortran order, the last one; see shape and fortran_order of gnomon_data_info */
} gnomon_read_options;

#define GNOMON_READ_OPTIONS_INIT                                                                  \
    {                                                                                             \
        sizeof(gnomon_read_options), NULL, -1, 0, (gnomon_dtype)0, -1, 0, 0, -1, (gnomon_dtype)0, \
            0                                                                                     \
    }
/* The same for bindings: see gnomon_context_options_init. */
GNOMON_API gnomon_status gnomon_read_options_init(gnomon_read_options *options, size_t size);

/* What a reader supports in addition to reading points in order. */
enum {
    GNOMON_ACCESS_SEEK = 1,     /* gnomon_reader_seek works (a file, not a stream) */
    GNOMON_ACCESS_COLUMNS = 2,  /* gnomon_reader_block works for any rows and columns, at a cost
                                   proportional to the block */
    GNOMON_ACCESS_SPARSE = 4,   /* points are stored sparse */
    GNOMON_ACCESS_BOOLEAN = 8,  /* the elements are booleans (NumPy's bool), read as 0 and 1 */
    GNOMON_ACCESS_GATHERED = 16 /* sparse points do not lie row by row: from the first read on all
                                   entries are held in memory, 24 bytes each, and twice that while
                                   they are put in order */
};

typedef struct gnomon_data_info {
    size_t struct_size;         /* see gnomon/base.h */
    const char *format;         /* its name; static */
    int64_t rows, cols;         /* rows is -1 if it is known only at the end */
    gnomon_dtype dtype;         /* as stored */
    int access;                 /* GNOMON_ACCESS_... */
    int coordinates_contiguous; /* stored column-major (Fortran order) */
    int64_t nonzeros;           /* sparse: stored entries, -1 unknown; dense: -1 */
    const char
        *member; /* the key, dataset or tensor read, "" if none; valid until the reader is closed */
    int dimensions; /* as stored: 2, or any number for formats with GNOMON_HOLDS_TENSOR */
    int64_t shape[GNOMON_TENSOR_MODES]; /* as stored, the first GNOMON_TENSOR_MODES dimensions; -1
                                           if known only at the end */
    int fortran_order;                  /* the first dimension's elements are adjacent */
} gnomon_data_info;

/* Opens path and reads its header. On success the caller owns *out and frees it with
 * gnomon_reader_close. On failure *out is NULL. options may be NULL. One thread at a time.
 * Errors:
 *  - NOT_FOUND, IO
 *  - FORMAT, DATA, TRUNCATED, OVERFLOW: the file; the text names the place
 *  - ARGUMENT, MEMORY */
GNOMON_API gnomon_status gnomon_reader_open(gnomon_context *ctx, const char *path,
                                            const gnomon_read_options *options,
                                            gnomon_reader **out);
GNOMON_API void gnomon_reader_close(gnomon_reader *reader);

/* Describes the points. info->struct_size must be set by the caller. */
GNOMON_API gnomon_status gnomon_reader_info(gnomon_reader *reader, gnomon_data_info *info);

/* Reads the next points, at most dst->rows, into dst (dtype F32 or F64, or the stored type itself;
 * host memory, any strides, cols as info) and converts. *got is the number read, 0 at the end.
 * Sparse points are expanded with zeros.
 * Errors:
 *  - DATA: naming line or record and column; also a decimal beyond the range of dst's type, 1e39
 *    into F32
 *  - TRUNCATED, IO
 * After these dst is undefined and the reader can only be closed. */
GNOMON_API gnomon_status gnomon_reader_next(gnomon_reader *reader, const gnomon_matrix *dst,
                                            int64_t *got);

/* Reads the next points as CSR: at most max_rows points and, unless a single point has more, at
 * most max_nonzeros entries. *csr points to the reader's memory, valid until its next call.
 * csr->rows is 0 at the end. Values are F32, or F64 if stored as such. Dense points come without
 * their zeros; then max_nonzeros counts all coordinates.
 */
GNOMON_API gnomon_status gnomon_reader_next_csr(gnomon_reader *reader, int64_t max_rows,
                                                int64_t max_nonzeros, gnomon_csr *csr);

/* Makes the next read start at a point. Requires GNOMON_ACCESS_SEEK. */
GNOMON_API gnomon_status gnomon_reader_seek(gnomon_reader *reader, int64_t row);

/* Reads the block [row, row + dst->rows) x [col, col + dst->cols). Requires GNOMON_ACCESS_COLUMNS.
 * It does not change the position of gnomon_reader_next. */
GNOMON_API gnomon_status gnomon_reader_block(gnomon_reader *reader, int64_t row, int64_t col,
                                             const gnomon_matrix *dst);

typedef struct gnomon_write_options {
    size_t struct_size;         /* see gnomon/base.h */
    const char *format;         /* NULL: by the path's extension, npy for "-" and unknown ones */
    int coordinates_contiguous; /* store column-major; see GNOMON_TAKES_ORDER */
    int sparse;                 /* the points come as CSR; see GNOMON_HOLDS_SPARSE */
    int csv_digits;             /* 0: the shortest decimal that reads back the same */
    int compress;               /* deflate (default 1); see GNOMON_TAKES_COMPRESS */
    int overwrite_ok;           /* 1 (default): an existing target is replaced at the end */
} gnomon_write_options;

#define GNOMON_WRITE_OPTIONS_INIT                         \
    {                                                     \
        sizeof(gnomon_write_options), NULL, 0, 0, 0, 1, 1 \
    }
/* The same for bindings: see gnomon_context_options_init. */
GNOMON_API gnomon_status gnomon_write_options_init(gnomon_write_options *options, size_t size);

/* Opens a writer of points with cols coordinates, stored as the given type. rows may be -1 if
 * unknown. Output goes to a temporary file in the target's folder, which replaces the target in
 * gnomon_writer_finish, after a sync; "-" is standard output (formats whose header needs rows are
 * then kept in a temporary file until the end). Column-major output requires rows. A closed pipe
 * raises SIGPIPE, as in any write; a process that ignores that signal gets IO.
 * Errors:
 *  - ARGUMENT: for example a type that the format can't store
 *  - NOT_FOUND: no such folder
 *  - OVERFLOW, IO, MEMORY
 * On success the caller owns *out and frees it with gnomon_writer_finish or gnomon_writer_abort; on
 * failure it is NULL. */
GNOMON_API gnomon_status gnomon_writer_open(gnomon_context *ctx, const char *path, int64_t rows,
                                            int64_t cols, gnomon_dtype dtype,
                                            const gnomon_write_options *options,
                                            gnomon_writer **out);

/* Appends src's points (F32, F64 or the stored type; any strides), converted to the stored type;
 * for integers they are rounded to nearest even, and a value out of range is DATA. */
GNOMON_API gnomon_status gnomon_writer_rows(gnomon_writer *writer, const gnomon_matrix *src);

/* Appends sparse points; requires options.sparse. */
GNOMON_API gnomon_status gnomon_writer_csr(gnomon_writer *writer, const gnomon_csr *src);

/* Completes the file: the header, the sync, the rename. Frees the writer in any case; on failure
 * the target file is unchanged. SHAPE if the number of points differs from that given to
 * gnomon_writer_open. */
GNOMON_API gnomon_status gnomon_writer_finish(gnomon_writer *writer);

/* Drops everything written; the target is as before. NULL is allowed. */
GNOMON_API void gnomon_writer_abort(gnomon_writer *writer);

/* A table as text, csv or tsv, written to a temporary file first like points: a line of column
 * names, then lines of as many fields, written one field after another; the last field of a line
 * ends it. Integers are written exactly, reals as the shortest decimal that reads back the same.
 * Text (NUL-terminated, of any bytes): in csv a field with a comma, a quote or a line break is
 * quoted, with quotes doubled (RFC 4180); in tsv, and on a terminal, a tab is \t, a line feed \n, a
 * carriage return \r, a backslash \\, and any other control character or byte that is not UTF-8 is
 * \xHH. One thread at a time.
 *
 * format: csv, tsv or NULL, by path's ending.
 * Errors of open:
 *  - ARGUMENT: another format
 *  - NOT_FOUND: no such folder
 *  - IO, MEMORY
 * Errors of the other calls: IO. After an error the table can only be aborted. finish also fails
 * with SHAPE if the last line has too few fields; it frees the table in any case, and on failure
 * the target file is unchanged. */
typedef struct gnomon_table gnomon_table;

GNOMON_API gnomon_status gnomon_table_open(gnomon_context *ctx, const char *path,
                                           const char *format, const char *const *columns,
                                           int count, gnomon_table **out);
GNOMON_API gnomon_status gnomon_table_integer(gnomon_table *table, int64_t value);
GNOMON_API gnomon_status gnomon_table_real(gnomon_table *table, double value);
GNOMON_API gnomon_status gnomon_table_text(gnomon_table *table, const char *text);
GNOMON_API gnomon_status gnomon_table_finish(gnomon_table *table);
/* Drops everything written; the target is as before. NULL is allowed. */
GNOMON_API void gnomon_table_abort(gnomon_table *table);

/* Writes a text (a descriptor, a plot) to path, through a temporary file like points. */
GNOMON_API gnomon_status gnomon_write_text(gnomon_context *ctx, const char *path, const char *text,
                                           size_t length);

/* An array for gnomon_write_npz: rows contiguous (col_stride 1), host memory, any type but BF16.
 * With vector 1 it has one row and is stored with one dimension. */
typedef struct gnomon_named_array {
    const char *name; /* without ".npy" */
    gnomon_matrix matrix;
    int vector;
} gnomon_named_array;

/* Writes the arrays to one compressed .npz, through a temporary file like points; "-" is standard
 * output.
 * Errors: ARGUMENT, DTYPE, IO, NOT_FOUND, MEMORY; the target is then unchanged. */
GNOMON_API gnomon_status gnomon_write_npz(gnomon_context *ctx, const char *path,
                                          const gnomon_named_array *arrays, int count);

/* A tensor for gnomon_write_npz_tensors: host memory, C order without gaps, any type but BF16. */
typedef struct gnomon_named_tensor {
    const char *name; /* without ".npy" */
    gnomon_tensor tensor;
} gnomon_named_tensor;

/* The same for arrays of any number of dimensions.
 * Errors: also OVERFLOW. */
GNOMON_API gnomon_status gnomon_write_npz_tensors(gnomon_context *ctx, const char *path,
                                                  const gnomon_named_tensor *tensors, int count);

/* Like gnomon_write_npz, as datasets of one compressed HDF5 file, all with two dimensions.
 * Errors: also UNSUPPORTED in a build without HDF5. */
GNOMON_API gnomon_status gnomon_write_hdf5(gnomon_context *ctx, const char *path,
                                           const gnomon_named_array *arrays, int count);

/* The names of the formats, in order; NULL past the end. *can_write (may be NULL) is set to 1 if
 * the format can be written. Static storage. */
GNOMON_API const char *gnomon_format_name(int index, int *can_write);

/* Removes the temporary files of all writers that are open in this process. For a signal handler
 * that ends the process: async-signal-safe, takes no lock, frees nothing. The writers can't be used
 * afterwards: gnomon_writer_finish fails with IO. */
GNOMON_API void gnomon_io_abandon_all(void);

/* What files of a format can hold. */
enum {
    GNOMON_HOLDS_DENSE = 1,  /* dense points, in files that are written too */
    GNOMON_HOLDS_SPARSE = 2, /* sparse points, in files that are written too */
    GNOMON_HOLDS_TENSOR =
        4,                /* arrays of any number of dimensions, for gnomon_read_options.tensor */
    GNOMON_HOLDS_TEXT = 8 /* as text */
};

/* The options of readers and writers that a format uses; the others are ignored, except
 * coordinates_contiguous, which gnomon_writer_open then refuses. */
enum {
    GNOMON_TAKES_SHAPE = 1,     /* raw_rows, raw_cols, raw_dtype: must be given */
    GNOMON_TAKES_DELIMITER = 2, /* csv_delimiter, csv_header */
    GNOMON_TAKES_COLUMNS = 4,   /* svmlight_cols, svmlight_zero_based */
    GNOMON_TAKES_ORDER = 8,     /* coordinates_contiguous */
    GNOMON_TAKES_DIGITS = 16,   /* csv_digits */
    GNOMON_TAKES_COMPRESS = 32  /* compress */
};

/* A format. All text is static. */
typedef struct gnomon_format_info {
    size_t struct_size;  /* see gnomon/base.h */
    const char *name;    /* as in options.format */
    const char *about;   /* a phrase, as "NumPy array" */
    const char *endings; /* of file names, the usual one first, as ".h5 .hdf5 .hdf" */
    const char *member; /* what a path may name after a colon, as "KEY" in file.npz:KEY; "": none */
    unsigned writes; /* the element types that can be written, 1u << type for each; 0: read only */
    int holds;       /* sum of GNOMON_HOLDS_... */
    int takes;       /* sum of GNOMON_TAKES_... */
} gnomon_format_info;

/* Describes a format, from index 0 on, in the order of gnomon_format_name. info->struct_size must
 * be set by the caller. Thread-safe.
 * Errors: ARGUMENT, past the end too. */
GNOMON_API gnomon_status gnomon_format_describe(int index, gnomon_format_info *info);

/* The reason why files of a format can't be read or written: a text that names the missing library,
 * valid until the thread's next call. NULL if they can be, or if the format is unknown or NULL. The
 * HDF5 library is opened with the first HDF5 file, or by this call. Thread-safe. */
GNOMON_API const char *gnomon_format_missing(const char *format);

/* The name of the format that gnomon_writer_open uses for path: 'format' if it is not NULL, else by
 * path's ending; npy for a name without one. *holds (may be NULL) is set to a sum of
 * GNOMON_HOLDS_...; NULL if the format or the ending is unknown or can't be written. Static
 * storage.
 */
GNOMON_API const char *gnomon_format_for(const char *path, const char *format, int *holds);

/* Called for each member of a file, in the file's order; name is valid during the call. */
typedef void (*gnomon_member_fn)(void *user, const char *name);

/* Calls fn with the names of all members that can be read as points with path:NAME (arrays,
 * datasets, tensors); never for formats without members. A member named in path is ignored.
 * Errors: as gnomon_reader_open. */
GNOMON_API gnomon_status gnomon_file_members(gnomon_context *ctx, const char *path,
                                             gnomon_member_fn fn, void *user);

/* Called for each member; info as from gnomon_reader_info for path:NAME (its member is name), NULL
 * if the member can't be read as points: gnomon_last_error(ctx) has the reason. Both are valid
 * during the call. */
typedef void (*gnomon_describe_fn)(void *user, const char *name, const gnomon_data_info *info);

/* Describes all members that gnomon_file_members names, and arrays whose header is broken, in one
 * pass over the file's directory.
 * Errors: as gnomon_reader_open; a member that can't be read as points is not an error. */
GNOMON_API gnomon_status gnomon_file_describe(gnomon_context *ctx, const char *path,
                                              gnomon_describe_fn fn, void *user);

/* 1 when both paths name the same file, also through links, or a file that does not exist yet and
 * would be created in the same folder under the same name, however the folder is spelled; else 0.
 * Member suffixes are ignored. "-" is never the same as anything. Thread-safe. */
GNOMON_API int gnomon_same_file(const char *a, const char *b);

#ifdef __cplusplus
}
#endif
#endif

/* io/formats/npz_sparse.h: the layout in which scipy.sparse.save_npz keeps a sparse matrix. */
#ifndef GNOMON_IO_NPZ_SPARSE_H
#define GNOMON_IO_NPZ_SPARSE_H

#include <gnomon/matrix.h>

#include "io/compress/zip.h"

/* Whether an archive has that layout: arrays named format, shape and data. */
bool gnomon_npz_is_sparse(const gnomon_zip *zip);

/* One array of the archive, read in order from anywhere on. */
typedef struct gnomon_npz_array {
    gnomon_source *source;
    const char *name;      /* "indptr" */
    int64_t count;         /* elements */
    gnomon_dtype dtype;    /* as stored */
    bool swapped;          /* stored in the other byte order than this machine's */
    int64_t offset;        /* of the first element in source */
    int64_t next;          /* the element that the next read gives */
    unsigned char *buffer; /* a few elements, as stored */
} gnomon_npz_array;

/* Opens the array of one dimension called name; integers says that no other type will do.
 * Errors: DATA, naming the archive and the array. array, zeroed before, is to be closed even
 * after a failure, before the archive is. */
gnomon_status gnomon_npz_array_open(gnomon_zip *zip, const char *archive, const char *name,
                                    bool integers, gnomon_npz_array *array);
void gnomon_npz_array_close(gnomon_context *ctx, gnomon_npz_array *array);
gnomon_status gnomon_npz_array_seek(gnomon_npz_array *array, int64_t element);
/* The next count elements, which must be there. As integers (DATA beyond INT64_MAX), or
 * as dtype F32 or F64. */
gnomon_status gnomon_npz_array_integers(gnomon_npz_array *array, int64_t count, int64_t *out);
gnomon_status gnomon_npz_array_values(gnomon_npz_array *array, int64_t count, gnomon_dtype dtype,
                                      void *out);

#endif

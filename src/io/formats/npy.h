/* io/formats/npy.h: the header of NumPy's array format (versions 1, 2 and 3). */
#ifndef GNOMON_IO_NPY_H
#define GNOMON_IO_NPY_H

#include <gnomon/matrix.h>

#include "io/source.h"

enum { GNOMON_NPY_DIMENSIONS = 32, GNOMON_NPY_HEADER = 128, GNOMON_NPY_LONGEST = 832 };

typedef struct gnomon_npy_header {
    gnomon_dtype dtype; /* of numbers (text_bytes 0); bool reads as U8 */
    int text_bytes;     /* '|S5': 5 bytes an element, for scipy's format.npy; else 0 */
    bool boolean;       /* of truth values */
    bool swapped;       /* stored in the other byte order than this machine's */
    bool fortran;
    int dimensions;
    int64_t shape[GNOMON_NPY_DIMENSIONS];
    int64_t elements; /* the product of shape */
    int64_t offset;   /* of the first element in the source */
} gnomon_npy_header;

/* Reads the header at the source's place and leaves it at the first element. The elements are
 * checked to fit in what the source can hold. Errors: DATA, TRUNCATED, OVERFLOW, UNSUPPORTED
 * (object, structured, complex, date and text types but '|S'). */
gnomon_status gnomon_npy_read_header(gnomon_source *source, gnomon_npy_header *header);

/* Makes the header of a rows x cols (dimensions 2) or a rows-long (dimensions 1) array of this
 * machine's byte order, padded to GNOMON_NPY_HEADER bytes whatever the sizes. */
void gnomon_npy_make_header(unsigned char header[GNOMON_NPY_HEADER], gnomon_dtype dtype,
                            int dimensions, int64_t rows, int64_t cols, bool fortran);

/* The same for any shape; returns its bytes, GNOMON_NPY_HEADER or as much more as it takes. */
size_t gnomon_npy_make_shape(unsigned char header[GNOMON_NPY_LONGEST], gnomon_dtype dtype,
                             int dimensions, const int64_t *shape, bool fortran);

#endif

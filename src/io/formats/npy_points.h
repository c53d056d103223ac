/* io/formats/npy_points.h: an npy array taken as points, for npy files and npz members. */
#ifndef GNOMON_IO_NPY_POINTS_H
#define GNOMON_IO_NPY_POINTS_H

#include "io/arrays/array.h"

/* Reads the header at the source's first byte and says what points it holds: one dimension is one
 * point; more than two are flattened to coordinates as NumPy's reshape(n, -1) does. With the
 * reader's option tensor, Fortran order is read as C order of the dimensions turned round. Fills in
 * what reader->info tells of the shape. */
gnomon_status gnomon_npy_points(gnomon_reader *reader, gnomon_source *source, gnomon_array *array);

/* The types that can be written. */
#define GNOMON_NPY_WRITES                                                                         \
    (GNOMON_DTYPE_BIT(GNOMON_F16) | GNOMON_DTYPE_BIT(GNOMON_F32) | GNOMON_DTYPE_BIT(GNOMON_F64) | \
     GNOMON_DTYPE_BIT(GNOMON_I8) | GNOMON_DTYPE_BIT(GNOMON_U8) | GNOMON_DTYPE_BIT(GNOMON_I16) |   \
     GNOMON_DTYPE_BIT(GNOMON_U16) | GNOMON_DTYPE_BIT(GNOMON_I32) | GNOMON_DTYPE_BIT(GNOMON_U32) | \
     GNOMON_DTYPE_BIT(GNOMON_I64) | GNOMON_DTYPE_BIT(GNOMON_U64))

#endif

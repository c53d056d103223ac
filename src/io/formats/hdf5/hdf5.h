/* io/formats/hdf5/hdf5.h: the two halves of the HDF5 format, which its table puts together. */
#ifndef GNOMON_IO_HDF5_H
#define GNOMON_IO_HDF5_H

#include "io/format.h"

/* Why the library can't be opened; NULL when it can. */
const char *gnomon_hdf5_missing(void);

gnomon_status gnomon_hdf5_open(gnomon_reader *reader);
gnomon_status gnomon_hdf5_next(gnomon_reader *reader, const gnomon_matrix *dst, int64_t *got);
gnomon_status gnomon_hdf5_seek(gnomon_reader *reader, int64_t row);
gnomon_status gnomon_hdf5_block(gnomon_reader *reader, int64_t row, int64_t col,
                                const gnomon_matrix *dst);
gnomon_status gnomon_hdf5_members(gnomon_reader *reader, gnomon_member_fn fn, void *user);
void gnomon_hdf5_close(gnomon_reader *reader);

gnomon_status gnomon_hdf5_create(gnomon_writer *writer);
/* After all points of a dataset: the next one, of the writer's member, rows, cols and dtype. */
gnomon_status gnomon_hdf5_another(gnomon_writer *writer);
gnomon_status gnomon_hdf5_put(gnomon_writer *writer, const gnomon_matrix *src);
gnomon_status gnomon_hdf5_complete(gnomon_writer *writer);
void gnomon_hdf5_discard(gnomon_writer *writer);

#endif

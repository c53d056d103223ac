/* io/formats/hdf5/guard.h: the HDF5 library, one thread at a time and silent. */
#ifndef GNOMON_IO_HDF5_GUARD_H
#define GNOMON_IO_HDF5_GUARD_H

#include <gnomon/matrix.h>

#include "io/formats/hdf5/api.h"

/* Opens the library if need be. Before anything else; errors: UNSUPPORTED, which names the file and
 * the reason. */
gnomon_status gnomon_hdf5_ready(gnomon_context *ctx, const char *file);

/* Around every group of HDF5 calls, and of none where the library is not open: the library is not
 * safe for threads unless it was built so, and prints what goes wrong unless it is told not to. */
typedef struct gnomon_hdf5_guard {
    H5E_auto2_t print;
    void *print_data;
} gnomon_hdf5_guard;

void gnomon_hdf5_enter(gnomon_hdf5_guard *guard);
void gnomon_hdf5_leave(const gnomon_hdf5_guard *guard);

/* What HDF5 says of its last failure, the innermost cause; inside the guard. */
void gnomon_hdf5_reason(char *text, size_t size);

/* Our type of an HDF5 one, 0 when there is none; and a new HDF5 type (little-endian), -1
 * when there is none. Inside the guard. */
gnomon_dtype gnomon_hdf5_dtype_of(hid_t type);
hid_t gnomon_hdf5_type(gnomon_dtype dtype);
/* A new copy of type in this machine's byte order. */
hid_t gnomon_hdf5_native(hid_t type);

#endif

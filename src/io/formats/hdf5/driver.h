/* io/formats/hdf5/driver.h: HDF5's reads and writes by way of our own sources and sinks, so that
 * pipes and compressed files can be read, and so that a full disk is an error of ours:
 * a file whose closing fails makes the library crash when the process ends. */
#ifndef GNOMON_IO_HDF5_DRIVER_H
#define GNOMON_IO_HDF5_DRIVER_H

#include "io/formats/hdf5/guard.h"
#include "io/sink.h"
#include "io/source.h"

typedef struct gnomon_hdf5_io {
    gnomon_context *ctx;
    gnomon_source *source; /* to read, RANDOM; or NULL and */
    gnomon_sink *sink;     /* to write, opened with revisit */
    gnomon_status status;  /* the first failure; its text is the context's last error. Writes
                              after it go nowhere and seem to succeed. */
} gnomon_hdf5_io;

/* Inside the guard: opens (or, for a sink, creates) the file; -1 on failure. io must outlive it. */
hid_t gnomon_hdf5_file(gnomon_hdf5_io *io);

#endif

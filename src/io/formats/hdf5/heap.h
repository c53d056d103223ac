/* io/formats/hdf5/heap.h: the local heaps of old groups, which hold their names. Their free blocks
 * are a list in the file; libhdf5 (1.10.8) follows one that goes in a circle without end, taking
 * memory at every step, and takes memory for all that a heap claims to be; so that heaps are looked
 * at before they come to the library. */
#ifndef GNOMON_IO_HDF5_HEAP_H
#define GNOMON_IO_HDF5_HEAP_H

#include "io/formats/hdf5/driver.h"

/* Whether bytes that were read at 'at' begin with a local heap. */
bool gnomon_hdf5_is_heap(const unsigned char *bytes, size_t size);

/* DATA when the heap is not in the file or its list goes in a circle; any other damage is left for
 * the library to find. */
gnomon_status gnomon_hdf5_check_heap(const gnomon_hdf5_io *io, const unsigned char *bytes,
                                     size_t size, int64_t at);

#endif

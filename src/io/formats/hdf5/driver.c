#include "io/format.h"

#if GNOMON_WITH_HDF5

#include "io/formats/hdf5/heap.h"

#include <string.h>

typedef struct driver_file {
    H5FD_t common; /* HDF5's own part comes first */
    gnomon_hdf5_io *io;
    haddr_t eoa; /* end of what HDF5 has claimed */
    haddr_t eof; /* end of what is there */
} driver_file;

static H5FD_t *driver_open(const char *name, unsigned flags, hid_t access, haddr_t maxaddr)
{
    (void)name;
    (void)flags;
    (void)maxaddr;
    gnomon_hdf5_io *const *info = gnomon_h5.H5Pget_driver_info(access);
    driver_file *file = NULL;
    if (info == NULL) return NULL;
    gnomon_hdf5_io *io = *info;
    io->status = gnomon_alloc_zero(io->ctx, 1, sizeof *file, "an HDF5 file", &file);
    if (io->status != GNOMON_OK) return NULL;
    file->io = io;
    if (io->source != NULL) file->eof = (haddr_t)gnomon_source_size(io->source);
    return &file->common;
}

static herr_t driver_close(H5FD_t *common)
{
    driver_file *file = (driver_file *)common;
    gnomon_free(file->io->ctx, file);
    return 0;
}

static herr_t driver_query(const H5FD_t *common, unsigned long *flags)
{
    const driver_file *file = (const driver_file *)common;
    *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_DATA_SIEVE | H5FD_FEAT_AGGREGATE_SMALLDATA;
    /* what is read comes block by block, so that a heap can be told */
    if (file == NULL || file->io->sink != NULL) *flags |= H5FD_FEAT_ACCUMULATE_METADATA;
    return 0;
}

static haddr_t driver_get_eoa(const H5FD_t *common, H5FD_mem_t type)
{
    (void)type;
    return ((const driver_file *)common)->eoa;
}

static herr_t driver_set_eoa(H5FD_t *common, H5FD_mem_t type, haddr_t eoa)
{
    (void)type;
    ((driver_file *)common)->eoa = eoa;
    return 0;
}

static haddr_t driver_get_eof(const H5FD_t *common, H5FD_mem_t type)
{
    (void)type;
    return ((const driver_file *)common)->eof;
}

static herr_t driver_read(H5FD_t *common, H5FD_mem_t type, hid_t transfer, haddr_t at, size_t size,
                          void *data)
{
    driver_file *file = (driver_file *)common;
    gnomon_hdf5_io *io = file->io;
    (void)transfer;
    /* zeros beyond the end, as with HDF5's own drivers */
    size_t there = at >= file->eof ? 0 : file->eof - at < size ? (size_t)(file->eof - at) : size;
    memset((char *)data + there, 0, size - there);
    if (there == 0) return 0;
    gnomon_status status =
        io->source != NULL
            ? gnomon_source_read_at(io->source, (int64_t)at, data, there, "HDF5's data")
            : gnomon_sink_read_at(io->sink, (int64_t)at, data, there);
    if (status == GNOMON_OK && io->source != NULL && type == H5FD_MEM_LHEAP &&
        gnomon_hdf5_is_heap(data, there))
        status = gnomon_hdf5_check_heap(io, data, there, (int64_t)at);
    if (status != GNOMON_OK && io->status == GNOMON_OK) io->status = status;
    return status == GNOMON_OK ? 0 : -1;
}

static herr_t driver_write(H5FD_t *common, H5FD_mem_t type, hid_t transfer, haddr_t at, size_t size,
                           const void *data)
{
    driver_file *file = (driver_file *)common;
    gnomon_hdf5_io *io = file->io;
    (void)type;
    (void)transfer;
    if (io->sink == NULL) return -1;
    if (io->status == GNOMON_OK)
        io->status = gnomon_sink_write_at(io->sink, (int64_t)at, data, size);
    if (at + size > file->eof) file->eof = at + size;
    return 0; /* never a failure to HDF5: see the header */
}

/* A file must reach to what has been claimed, or it counts as cut short. */
static herr_t driver_truncate(H5FD_t *common, hid_t transfer, hbool_t closing)
{
    driver_file *file = (driver_file *)common;
    (void)closing;
    if (file->io->sink == NULL || file->eoa <= file->eof) return 0;
    return driver_write(common, H5FD_MEM_DEFAULT, transfer, file->eoa - 1, 1, "");
}

static const H5FD_class_t driver = {
#ifdef H5FD_CLASS_VERSION
    .version = H5FD_CLASS_VERSION,
    .value = (H5FD_class_value_t)600, /* of the range for private use */
#endif
    .name = "gnomon",
    .maxaddr = INT64_MAX,
    .fc_degree = H5F_CLOSE_STRONG,
    .fapl_size = sizeof(gnomon_hdf5_io *),
    .open = driver_open,
    .close = driver_close,
    .query = driver_query,
    .get_eoa = driver_get_eoa,
    .set_eoa = driver_set_eoa,
    .get_eof = driver_get_eof,
    .read = driver_read,
    .write = driver_write,
    .truncate = driver_truncate,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

hid_t gnomon_hdf5_file(gnomon_hdf5_io *io)
{
    hid_t id = gnomon_h5.H5FDregister(&driver),
          access = gnomon_h5.H5Pcreate(GNOMON_H5P(FILE_ACCESS)), file = -1;
    io->status = GNOMON_OK;
    if (id >= 0 && access >= 0 && gnomon_h5.H5Pset_driver(access, id, &io) >= 0 &&
        gnomon_h5.H5Pset_fclose_degree(access, H5F_CLOSE_STRONG) >= 0)
        file = io->sink != NULL ? gnomon_h5.H5Fcreate("gnomon", H5F_ACC_TRUNC, H5P_DEFAULT, access)
                                : gnomon_h5.H5Fopen("gnomon", H5F_ACC_RDONLY, access);
    if (access >= 0) gnomon_h5.H5Pclose(access);
    if (id >= 0) gnomon_h5.H5FDunregister(id); /* the file keeps it as long as it needs it */
    return file;
}

#endif

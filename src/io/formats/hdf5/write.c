#include "io/formats/hdf5/hdf5.h"

#if GNOMON_WITH_HDF5

#include "io/arrays/convert.h"
#include "io/formats/hdf5/driver.h"

enum { SCRATCH = 4 * 1024 * 1024, CHUNK = 1024 * 1024, LEVEL = 4 };

typedef struct hdf5_out {
    hid_t file, dataset, memory_type;
    gnomon_hdf5_io io;
    unsigned char *scratch;
} hdf5_out;

static gnomon_status failed(gnomon_writer *writer, const char *doing)
{
    const hdf5_out *out = writer->state;
    char reason[256];
    if (out->io.status != GNOMON_OK) return out->io.status; /* the cause has its text */
    gnomon_hdf5_reason(reason, sizeof reason);
    return gnomon_fail(writer->ctx, GNOMON_ERROR_IO, GNOMON_ARG("%s") ": HDF5 can't %s: %s",
                       writer->path, doing, reason);
}

/* About a megabyte of whole rows, or of a part of one. */
static void chunk_shape(const gnomon_writer *writer, hsize_t chunk[2])
{
    int64_t elements = CHUNK / (int64_t)gnomon_dtype_size(writer->dtype);
    chunk[1] = (hsize_t)(writer->cols < elements ? writer->cols : elements);
    chunk[0] = (hsize_t)elements / chunk[1];
    if (writer->rows > 0 && chunk[0] > (hsize_t)writer->rows) chunk[0] = (hsize_t)writer->rows;
}

static hid_t creation_list(const gnomon_writer *writer)
{
    hid_t list = gnomon_h5.H5Pcreate(GNOMON_H5P(DATASET_CREATE));
    bool good =
        list >= 0 && gnomon_h5.H5Pset_obj_track_times(list, 0) >= 0; /* same data, same bytes */
    bool empty = writer->rows == 0 || writer->cols == 0;
    if (good && !empty && (writer->rows < 0 || writer->options.compress)) {
        hsize_t chunk[2];
        chunk_shape(writer, chunk);
        good = gnomon_h5.H5Pset_chunk(list, 2, chunk) >= 0;
        if (good && writer->options.compress)
            good =
                gnomon_h5.H5Pset_shuffle(list) >= 0 && gnomon_h5.H5Pset_deflate(list, LEVEL) >= 0;
    }
    if (good || list < 0) return list;
    gnomon_h5.H5Pclose(list);
    return -1;
}

static bool create_dataset(gnomon_writer *writer, hdf5_out *out, const char *name)
{
    hsize_t dims[2] = {writer->rows < 0 ? 0 : (hsize_t)writer->rows, (hsize_t)writer->cols};
    hsize_t most[2] = {writer->rows < 0 && writer->cols > 0 ? H5S_UNLIMITED : dims[0], dims[1]};
    hid_t type = gnomon_hdf5_type(writer->dtype), list = creation_list(writer);
    hid_t links = gnomon_h5.H5Pcreate(GNOMON_H5P(LINK_CREATE)),
          space = gnomon_h5.H5Screate_simple(2, dims, most);
    if (type >= 0) out->memory_type = gnomon_hdf5_native(type);
    if (type >= 0 && list >= 0 && links >= 0 && space >= 0 &&
        gnomon_h5.H5Pset_create_intermediate_group(links, 1) >= 0)
        out->dataset = gnomon_h5.H5Dcreate2(out->file, name, type, space, links, list, H5P_DEFAULT);
    if (space >= 0) gnomon_h5.H5Sclose(space);
    if (links >= 0) gnomon_h5.H5Pclose(links);
    if (list >= 0) gnomon_h5.H5Pclose(list);
    if (type >= 0) gnomon_h5.H5Tclose(type);
    return out->dataset >= 0 && out->memory_type >= 0;
}

gnomon_status gnomon_hdf5_create(gnomon_writer *writer)
{
    hdf5_out *out = NULL;
    GNOMON_FAIL_IF(writer->rows < 0 && writer->cols == 0, writer->ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("%s") ": HDF5 can't count points without coordinates", writer->path);
    GNOMON_TRY(gnomon_hdf5_ready(writer->ctx, writer->path));
    GNOMON_TRY(gnomon_alloc_zero(writer->ctx, 1, sizeof *out, "a writer", &out));
    out->file = out->dataset = out->memory_type = -1;
    writer->state = out;
    out->io.ctx = writer->ctx;
    out->io.sink = writer->sink;
    GNOMON_TRY(gnomon_alloc(writer->ctx, SCRATCH, 1, "a write buffer", &out->scratch));
    gnomon_hdf5_guard guard;
    gnomon_status status = GNOMON_OK;
    gnomon_hdf5_enter(&guard);
    out->file = gnomon_hdf5_file(&out->io);
    if (out->file < 0)
        status = failed(writer, "create the file");
    else if (!create_dataset(writer, out, writer->member[0] != '\0' ? writer->member : "/data"))
        status = failed(writer, "create the dataset");
    gnomon_hdf5_leave(&guard);
    return status;
}

gnomon_status gnomon_hdf5_another(gnomon_writer *writer)
{
    hdf5_out *out = writer->state;
    gnomon_hdf5_guard guard;
    gnomon_status status = GNOMON_OK;
    gnomon_hdf5_enter(&guard);
    gnomon_h5.H5Tclose(out->memory_type);
    const bool closed = gnomon_h5.H5Dclose(out->dataset) >= 0;
    out->memory_type = out->dataset = -1;
    if (!closed || out->io.status != GNOMON_OK || !create_dataset(writer, out, writer->member))
        status = failed(writer, "create the dataset");
    gnomon_hdf5_leave(&guard);
    return status;
}

static gnomon_status write_packed(gnomon_writer *writer, hdf5_out *out, int64_t row, int64_t rows,
                                  int64_t col, int64_t cols, const void *data)
{
    hsize_t start[2] = {(hsize_t)row, (hsize_t)col}, count[2] = {(hsize_t)rows, (hsize_t)cols};
    hsize_t all = (hsize_t)(rows * cols);
    gnomon_hdf5_guard guard;
    gnomon_status status = GNOMON_OK;
    gnomon_hdf5_enter(&guard);
    hid_t space = gnomon_h5.H5Dget_space(out->dataset),
          memory = gnomon_h5.H5Screate_simple(1, &all, NULL);
    if (space < 0 || memory < 0 ||
        gnomon_h5.H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) < 0 ||
        gnomon_h5.H5Dwrite(out->dataset, out->memory_type, memory, space, H5P_DEFAULT, data) < 0 ||
        out->io.status != GNOMON_OK)
        status = failed(writer, "write points");
    if (memory >= 0) gnomon_h5.H5Sclose(memory);
    if (space >= 0) gnomon_h5.H5Sclose(space);
    gnomon_hdf5_leave(&guard);
    return status;
}

static gnomon_status extend(gnomon_writer *writer, hdf5_out *out, int64_t rows)
{
    hsize_t dims[2] = {(hsize_t)rows, (hsize_t)writer->cols};
    gnomon_hdf5_guard guard;
    gnomon_status status = GNOMON_OK;
    gnomon_hdf5_enter(&guard);
    if (gnomon_h5.H5Dset_extent(out->dataset, dims) < 0)
        status = failed(writer, "extend the dataset");
    gnomon_hdf5_leave(&guard);
    return status;
}

gnomon_status gnomon_hdf5_put(gnomon_writer *writer, const gnomon_matrix *src)
{
    hdf5_out *out = writer->state;
    if (src->cols == 0) return GNOMON_OK;
    if (writer->rows < 0) GNOMON_TRY(extend(writer, out, writer->written + src->rows));
    int64_t elements = SCRATCH / (int64_t)gnomon_dtype_size(writer->dtype);
    int64_t cols_each = src->cols < elements ? src->cols : elements, tall = elements / cols_each;
    for (int64_t i = 0; i < src->rows;) {
        int64_t rows = src->rows - i < tall ? src->rows - i : tall;
        for (int64_t j = 0; j < src->cols;) {
            int64_t cols = src->cols - j < cols_each ? src->cols - j : cols_each;
            gnomon_matrix part = *src;
            part.rows = rows;
            part.cols = cols;
            part.data = (char *)src->data + (i * src->row_stride + j * src->col_stride) *
                                                (int64_t)gnomon_dtype_size(src->dtype);
            gnomon_matrix packed = gnomon_matrix_rowmajor(out->scratch, writer->dtype, rows, cols);
            GNOMON_TRY(
                gnomon_convert(writer->ctx, &part, &packed, writer->written + i, j, writer->path));
            GNOMON_TRY(write_packed(writer, out, writer->written + i, rows, j, cols, out->scratch));
            j += cols;
        }
        i += rows;
    }
    return GNOMON_OK;
}

/* Inside the guard; false when something could not be written. */
static bool close_all(hdf5_out *out)
{
    bool good = true;
    if (out->memory_type >= 0) gnomon_h5.H5Tclose(out->memory_type);
    if (out->dataset >= 0) good = gnomon_h5.H5Dclose(out->dataset) >= 0;
    if (out->file >= 0) good = gnomon_h5.H5Fclose(out->file) >= 0 && good;
    out->memory_type = out->dataset = out->file = -1;
    return good;
}

gnomon_status gnomon_hdf5_complete(gnomon_writer *writer)
{
    gnomon_hdf5_guard guard;
    gnomon_status status = GNOMON_OK;
    gnomon_hdf5_enter(&guard);
    hdf5_out *out = writer->state;
    if (!close_all(out) || out->io.status != GNOMON_OK)
        status = failed(writer, "complete the file");
    gnomon_hdf5_leave(&guard);
    return status;
}

void gnomon_hdf5_discard(gnomon_writer *writer)
{
    hdf5_out *out = writer->state;
    if (out == NULL) return;
    gnomon_hdf5_guard guard;
    gnomon_hdf5_enter(&guard);
    close_all(out);
    gnomon_hdf5_leave(&guard);
    gnomon_free(writer->ctx, out->scratch);
    gnomon_free(writer->ctx, out);
    writer->state = NULL;
}

#endif

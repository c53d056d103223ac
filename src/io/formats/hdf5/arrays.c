/* Several datasets in one HDF5 file. */
#include "io/formats/hdf5/hdf5.h"

#include "points/view.h"

#include <string.h>

gnomon_status gnomon_write_hdf5(gnomon_context *ctx, const char *path,
                                const gnomon_named_array *arrays, int count)
{
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_FAIL_IF(path == NULL, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("path") " is NULL");
    GNOMON_FAIL_IF(count < 1 || arrays == NULL, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("arrays") " is NULL or count, %d, below 1", count);
    for (int i = 0; i < count; i++) {
        GNOMON_FAIL_IF(arrays[i].name == NULL || arrays[i].name[0] == '\0', ctx,
                       GNOMON_ERROR_ARGUMENT, "an array has no name");
        GNOMON_TRY(gnomon_check_view(ctx, &arrays[i].matrix, arrays[i].name));
    }
#if GNOMON_WITH_HDF5
    const gnomon_sink_options options = {.overwrite_ok = true, .revisit = true};
    gnomon_writer writer = {.ctx = ctx, .path = (char *)(uintptr_t)path};
    writer.options = (gnomon_write_options)GNOMON_WRITE_OPTIONS_INIT;
    GNOMON_TRY(gnomon_sink_open(ctx, path, &options, &writer.sink));
    gnomon_status status = GNOMON_OK;
    for (int i = 0; i < count && status == GNOMON_OK; i++) {
        const gnomon_matrix *m = &arrays[i].matrix;
        writer.member = (char *)(uintptr_t)arrays[i].name;
        writer.rows = m->rows;
        writer.cols = m->cols;
        writer.dtype = m->dtype;
        status = i == 0 ? gnomon_hdf5_create(&writer) : gnomon_hdf5_another(&writer);
        if (status == GNOMON_OK) status = gnomon_hdf5_put(&writer, m);
    }
    if (status == GNOMON_OK) status = gnomon_hdf5_complete(&writer);
    gnomon_hdf5_discard(&writer);
    if (status == GNOMON_OK) return gnomon_sink_finish(writer.sink);
    gnomon_sink_abort(writer.sink);
    return status;
#else
    return gnomon_fail(ctx, GNOMON_ERROR_UNSUPPORTED, GNOMON_ARG("%s") ": this build has no HDF5",
                       path);
#endif
}

#include "io/formats/hdf5/hdf5.h"

#if GNOMON_WITH_HDF5

#include "base/threads.h"
#include "io/arrays/convert.h"
#include "io/compress/unpack.h"
#include "io/formats/hdf5/driver.h"

#include <stdio.h>
#include <string.h>

enum { SCRATCH = 4 * 1024 * 1024, CACHE_LEAST = 1 << 20, CACHE_MOST = 64 << 20, NAME = 512 };

typedef struct hdf5_state {
    hid_t file, dataset, space, memory_type;
    int rank;
    hsize_t dims[H5S_MAX_RANK];
    int64_t next_row;
    gnomon_hdf5_io io;
    char member[NAME];
    unsigned char *scratch;
    int64_t scratch_elements;
} hdf5_state;

static gnomon_status failed(gnomon_reader *reader, gnomon_status status, const char *doing)
{
    const hdf5_state *state = reader->state;
    char reason[256];
    if (state->io.status != GNOMON_OK) return state->io.status; /* the cause has its text */
    gnomon_hdf5_reason(reason, sizeof reason);
    return gnomon_fail(reader->ctx, status, GNOMON_ARG("%s") ": HDF5 can't %s: %s",
                       gnomon_source_name(reader->source), doing, reason);
}

/* A link into another file is not followed: the file may come from anybody. */
static herr_t no_other_file(const char *parent_file, const char *parent_group, const char *file,
                            const char *object, unsigned *flags, hid_t fapl, void *data)
{
    (void)parent_file;
    (void)parent_group;
    (void)file;
    (void)object;
    (void)flags;
    (void)fapl;
    (void)data;
    return -1;
}

static hid_t open_dataset(hid_t file, const char *name, size_t cache)
{
    hid_t access = gnomon_h5.H5Pcreate(GNOMON_H5P(DATASET_ACCESS)), dataset = -1;
    if (access >= 0 && gnomon_h5.H5Pset_elink_cb(access, no_other_file, NULL) >= 0 &&
        (cache == 0 || gnomon_h5.H5Pset_chunk_cache(access, 12421, cache, 1.0) >= 0))
        dataset = gnomon_h5.H5Dopen2(file, name, access);
    if (access >= 0) gnomon_h5.H5Pclose(access);
    return dataset;
}

typedef struct listing {
    char names[400];
    size_t used;
    int64_t with_points; /* datasets of two dimensions or more */
    int64_t any;
    char last[NAME]; /* of those */
    char last_seen[NAME];
    gnomon_member_fn fn; /* told of each dataset of numbers; may be NULL */
    void *user;
} listing;

static herr_t visit(hid_t object, const char *name, const H5O_info_t *info, void *data)
{
    listing *list = data;
    if (info->type != H5O_TYPE_DATASET) return 0;
    list->any++;
    int n = snprintf(list->names + list->used, sizeof list->names - list->used, "%s/%s",
                     list->used > 0 ? ", " : "", name);
    if (n > 0 && list->used + (size_t)n < sizeof list->names)
        list->used += (size_t)n;
    else
        list->names[list->used] = '\0';
    hid_t dataset = open_dataset(object, name, 0);
    hid_t space = dataset >= 0 ? gnomon_h5.H5Dget_space(dataset) : -1;
    hid_t type = dataset >= 0 ? gnomon_h5.H5Dget_type(dataset) : -1;
    int rank = space >= 0 && type >= 0 && gnomon_hdf5_dtype_of(type) != (gnomon_dtype)0
                   ? gnomon_h5.H5Sget_simple_extent_ndims(space)
                   : 0;
    n = snprintf(list->last_seen, NAME, "/%s", name);
    if (rank >= 1 && n < NAME && list->fn != NULL) list->fn(list->user, list->last_seen);
    if (rank >= 2 && n < NAME) {
        list->with_points++;
        memcpy(list->last, list->last_seen, NAME);
    }
    if (type >= 0) gnomon_h5.H5Tclose(type);
    if (space >= 0) gnomon_h5.H5Sclose(space);
    if (dataset >= 0) gnomon_h5.H5Dclose(dataset);
    return 0;
}

static bool exists(hid_t file, const char *name)
{
    hid_t dataset = open_dataset(file, name, 0);
    if (dataset >= 0) gnomon_h5.H5Dclose(dataset);
    return dataset >= 0;
}

/* The dataset that was asked for; else 'train', as in ann-benchmarks; else the only one. */
static gnomon_status choose_member(gnomon_reader *reader, hdf5_state *state)
{
    gnomon_context *ctx = reader->ctx;
    const char *asked = reader->member;
    listing list = {.used = 0};
    GNOMON_FAIL_IF(strlen(asked) + 2 > NAME, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("%s") ": a dataset's name has at most %d bytes", reader->path,
                   NAME - 2);
    if (asked[0] != '\0') {
        snprintf(state->member, NAME, "%s%s", asked[0] == '/' ? "" : "/", asked);
        if (exists(state->file, state->member)) return GNOMON_OK;
    } else if (exists(state->file, "/train")) {
        snprintf(state->member, NAME, "/train");
        return GNOMON_OK;
    }
    if (gnomon_h5.H5Ovisit(state->file, H5_INDEX_NAME, H5_ITER_INC, visit, &list) < 0)
        return failed(reader, GNOMON_ERROR_DATA, "list the datasets");
    GNOMON_FAIL_IF(asked[0] != '\0', ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("%s") ": has no dataset '%s'; it has %s", reader->path, state->member,
                   list.any > 0 ? list.names : "none at all");
    GNOMON_FAIL_IF(list.any == 0, ctx, GNOMON_ERROR_DATA, GNOMON_ARG("%s") ": has no datasets",
                   reader->path);
    GNOMON_FAIL_IF(list.with_points != 1, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("%s") ": name a dataset as %s:/DATASET; it has %s", reader->path,
                   reader->path, list.names);
    snprintf(state->member, NAME, "%s", list.last);
    return GNOMON_OK;
}

/* Data in other files is refused, and so is a chunk that nothing in this file can fill. */
static gnomon_status check_layout(gnomon_reader *reader, const hdf5_state *state, hid_t creation,
                                  gnomon_dtype dtype, int64_t *band)
{
    gnomon_context *ctx = reader->ctx;
    const char *name = gnomon_source_name(reader->source), *member = state->member;
    int64_t size = (int64_t)gnomon_dtype_size(dtype),
            file_size = gnomon_source_size(reader->source);
    *band = 0;
    H5D_layout_t layout = gnomon_h5.H5Pget_layout(creation);
    GNOMON_FAIL_IF(layout == H5D_VIRTUAL || gnomon_h5.H5Pget_external_count(creation) > 0, ctx,
                   GNOMON_ERROR_UNSUPPORTED,
                   GNOMON_ARG("%s") ":%s: keeps its data in other files, which are not opened",
                   name, member);
    for (int i = 0; i < gnomon_h5.H5Pget_nfilters(creation); i++) {
        unsigned flags, config;
        size_t values = 0;
        char filter[64] = "";
        H5Z_filter_t id = gnomon_h5.H5Pget_filter2(creation, (unsigned)i, &flags, &values, NULL,
                                                   sizeof filter, filter, &config);
        GNOMON_FAIL_IF(
            id < 0 || gnomon_h5.H5Zfilter_avail(id) <= 0, ctx, GNOMON_ERROR_UNSUPPORTED,
            GNOMON_ARG("%s") ":%s: needs the HDF5 filter %d (%s), which is not installed", name,
            member, (int)id, filter);
    }
    if (layout == H5D_CONTIGUOUS) {
        haddr_t offset = gnomon_h5.H5Dget_offset(state->dataset);
        hsize_t stored = gnomon_h5.H5Dget_storage_size(state->dataset);
        GNOMON_FAIL_IF(
            offset != HADDR_UNDEF && file_size >= 0 &&
                (offset > (haddr_t)file_size || stored > (haddr_t)file_size - offset),
            ctx, GNOMON_ERROR_TRUNCATED,
            GNOMON_ARG("%s") ":%s: %llu bytes from byte %llu on are more than the file's %lld",
            name, member, (unsigned long long)stored, (unsigned long long)offset,
            (long long)file_size);
    }
    if (layout != H5D_CHUNKED) return GNOMON_OK;
    hsize_t chunk[H5S_MAX_RANK];
    GNOMON_FAIL_IF(gnomon_h5.H5Pget_chunk(creation, H5S_MAX_RANK, chunk) != state->rank, ctx,
                   GNOMON_ERROR_DATA,
                   GNOMON_ARG("%s") ":%s: its chunks have other dimensions than it", name, member);
    int64_t bytes = size, across = 1;
    bool fits = true;
    for (int i = 0; i < state->rank; i++) {
        fits = fits && chunk[i] > 0 && chunk[i] <= INT64_MAX &&
               gnomon_mul(bytes, (int64_t)chunk[i], &bytes);
        if (fits && i > 0)
            fits = gnomon_mul(across, (int64_t)(state->dims[i] / chunk[i]) + 1, &across);
    }
    GNOMON_FAIL_IF(
        !fits || bytes > gnomon_deflate_limit(file_size < 4096 ? 4096 : file_size), ctx,
        GNOMON_ERROR_DATA,
        GNOMON_ARG(
            "%s") ":%s: its chunks are larger than anything that the file's %lld bytes can hold",
        name, member, (long long)file_size);
    if (!gnomon_mul(bytes, across, band)) *band = INT64_MAX;
    return GNOMON_OK;
}

static gnomon_status read_shape(gnomon_reader *reader, hdf5_state *state)
{
    gnomon_context *ctx = reader->ctx;
    const char *name = gnomon_source_name(reader->source), *member = state->member;
    state->rank = gnomon_h5.H5Sget_simple_extent_ndims(state->space);
    GNOMON_FAIL_IF(
        gnomon_h5.H5Sget_simple_extent_type(state->space) != H5S_SIMPLE || state->rank < 1, ctx,
        GNOMON_ERROR_DATA,
        GNOMON_ARG("%s") ":%s: is a single value without dimensions; points have one or two", name,
        member);
    if (gnomon_h5.H5Sget_simple_extent_dims(state->space, state->dims, NULL) < 0)
        return failed(reader, GNOMON_ERROR_DATA, "tell the shape");
    int64_t rows = state->rank == 1 ? 1 : (int64_t)state->dims[0], cols = 1, all;
    bool fits = state->dims[0] <= INT64_MAX;
    for (int i = state->rank == 1 ? 0 : 1; i < state->rank; i++)
        fits =
            fits && state->dims[i] <= INT64_MAX && gnomon_mul(cols, (int64_t)state->dims[i], &cols);
    GNOMON_FAIL_IF(!fits || !gnomon_mul(rows, cols, &all) ||
                       !gnomon_mul(all, (int64_t)gnomon_dtype_size(reader->info.dtype), &all),
                   ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("%s") ":%s: its shape is more than any file holds", name, member);
    reader->info.rows = rows;
    reader->info.cols = cols;
    int64_t shape[H5S_MAX_RANK];
    for (int i = 0; i < state->rank; i++)
        shape[i] = (int64_t)state->dims[i];
    GNOMON_TRY(gnomon_reader_shape(reader, state->rank, shape, false));
    return GNOMON_OK;
}

static gnomon_status read_dataset(gnomon_reader *reader, hdf5_state *state)
{
    gnomon_context *ctx = reader->ctx;
    state->dataset = open_dataset(state->file, state->member, 0);
    if (state->dataset < 0) return failed(reader, GNOMON_ERROR_DATA, "open the dataset");
    state->space = gnomon_h5.H5Dget_space(state->dataset);
    hid_t type = gnomon_h5.H5Dget_type(state->dataset);
    gnomon_dtype dtype = type >= 0 ? gnomon_hdf5_dtype_of(type) : (gnomon_dtype)0;
    if (dtype != (gnomon_dtype)0) state->memory_type = gnomon_hdf5_native(type);
    if (type >= 0) gnomon_h5.H5Tclose(type);
    GNOMON_FAIL_IF(dtype == (gnomon_dtype)0, ctx, GNOMON_ERROR_UNSUPPORTED,
                   GNOMON_ARG("%s") ":%s: its elements are no plain numbers",
                   gnomon_source_name(reader->source), state->member);
    if (state->space < 0 || state->memory_type < 0)
        return failed(reader, GNOMON_ERROR_DATA, "describe the dataset");
    reader->info.dtype = dtype;
    GNOMON_TRY(read_shape(reader, state));

    hid_t creation = gnomon_h5.H5Dget_create_plist(state->dataset);
    if (creation < 0) return failed(reader, GNOMON_ERROR_DATA, "tell the dataset's layout");
    int64_t band = 0;
    gnomon_status status = check_layout(reader, state, creation, dtype, &band);
    gnomon_h5.H5Pclose(creation);
    GNOMON_TRY(status);
    /* Points come row by row: the chunks across one row must stay until they are used up. */
    int64_t most =
        gnomon_memory_limit(ctx) / 4 < CACHE_MOST ? gnomon_memory_limit(ctx) / 4 : CACHE_MOST;
    if (band > most) band = most;
    if (band <= CACHE_LEAST) return GNOMON_OK;
    gnomon_h5.H5Dclose(state->dataset);
    state->dataset = open_dataset(state->file, state->member, (size_t)band);
    return state->dataset < 0 ? failed(reader, GNOMON_ERROR_DATA, "open the dataset") : GNOMON_OK;
}

/* What is done with the open file, inside the guard. */
typedef gnomon_status (*use_fn)(gnomon_reader *reader, hdf5_state *state, listing *list);

static gnomon_status use_dataset(gnomon_reader *reader, hdf5_state *state, listing *list)
{
    (void)list;
    GNOMON_TRY(choose_member(reader, state));
    return read_dataset(reader, state);
}

static gnomon_status use_names(gnomon_reader *reader, hdf5_state *state, listing *list)
{
    if (gnomon_h5.H5Ovisit(state->file, H5_INDEX_NAME, H5_ITER_INC, visit, list) < 0)
        return failed(reader, GNOMON_ERROR_DATA, "list the datasets");
    return GNOMON_OK;
}

static gnomon_status open_file(gnomon_reader *reader, hdf5_state *state, use_fn use, listing *list)
{
    GNOMON_TRY(gnomon_hdf5_ready(reader->ctx, gnomon_source_name(reader->source)));
    GNOMON_TRY(gnomon_source_make_random(reader->source));
    state->io.source = reader->source;
    state->io.ctx = reader->ctx;
    gnomon_hdf5_guard guard;
    gnomon_hdf5_enter(&guard);
    state->file = gnomon_hdf5_file(&state->io);
    gnomon_status status =
        state->file < 0 ? failed(reader, GNOMON_ERROR_DATA, "open it") : use(reader, state, list);
    gnomon_hdf5_leave(&guard);
    return status;
}

static gnomon_status make_state(gnomon_reader *reader, hdf5_state **out)
{
    hdf5_state *state = NULL;
    GNOMON_TRY(gnomon_alloc_zero(reader->ctx, 1, sizeof *state, "a reader", &state));
    state->file = state->dataset = state->space = state->memory_type = -1;
    reader->state = *out = state;
    return GNOMON_OK;
}

gnomon_status gnomon_hdf5_members(gnomon_reader *reader, gnomon_member_fn fn, void *user)
{
    hdf5_state *state = NULL;
    listing list = {.fn = fn, .user = user};
    GNOMON_TRY(make_state(reader, &state));
    gnomon_status status = open_file(reader, state, use_names, &list);
    gnomon_hdf5_close(reader);
    return status;
}

gnomon_status gnomon_hdf5_open(gnomon_reader *reader)
{
    hdf5_state *state = NULL;
    GNOMON_TRY(make_state(reader, &state));
    GNOMON_TRY(open_file(reader, state, use_dataset, NULL));
    /* whole rows when there are more than two dimensions, else any piece of one */
    int64_t size = (int64_t)gnomon_dtype_size(reader->info.dtype);
    state->scratch_elements = SCRATCH / size;
    if (state->rank > 2 && reader->info.cols > state->scratch_elements)
        state->scratch_elements = reader->info.cols;
    GNOMON_TRY(gnomon_alloc(reader->ctx, state->scratch_elements, (size_t)size, "a read buffer",
                            &state->scratch));
    reader->info.access =
        state->rank > 2 ? GNOMON_ACCESS_SEEK : GNOMON_ACCESS_SEEK | GNOMON_ACCESS_COLUMNS;
    reader->info.member = state->member;
    return GNOMON_OK;
}

void gnomon_hdf5_close(gnomon_reader *reader)
{
    hdf5_state *state = reader->state;
    if (state == NULL) return;
    gnomon_hdf5_guard guard;
    gnomon_hdf5_enter(&guard);
    if (state->memory_type >= 0) gnomon_h5.H5Tclose(state->memory_type);
    if (state->space >= 0) gnomon_h5.H5Sclose(state->space);
    if (state->dataset >= 0) gnomon_h5.H5Dclose(state->dataset);
    if (state->file >= 0) gnomon_h5.H5Fclose(state->file);
    gnomon_hdf5_leave(&guard);
    gnomon_free(reader->ctx, state->scratch);
    gnomon_free(reader->ctx, state);
    reader->state = NULL;
}

/* Rows [row, row + rows) and columns [col, col + cols) as stored, packed, to data. */
static gnomon_status read_packed(gnomon_reader *reader, hdf5_state *state, int64_t row,
                                 int64_t rows, int64_t col, int64_t cols, void *data)
{
    hsize_t start[H5S_MAX_RANK] = {0}, count[H5S_MAX_RANK], all = (hsize_t)(rows * cols);
    for (int i = 0; i < state->rank; i++)
        count[i] = state->dims[i];
    if (state->rank <= 2) {
        start[state->rank - 1] = (hsize_t)col;
        count[state->rank - 1] = (hsize_t)cols;
    }
    if (state->rank > 1) {
        start[0] = (hsize_t)row;
        count[0] = (hsize_t)rows;
    }
    gnomon_hdf5_guard guard;
    gnomon_status status = GNOMON_OK;
    gnomon_hdf5_enter(&guard);
    hid_t memory = gnomon_h5.H5Screate_simple(1, &all, NULL);
    if (memory < 0 ||
        gnomon_h5.H5Sselect_hyperslab(state->space, H5S_SELECT_SET, start, NULL, count, NULL) < 0 ||
        gnomon_h5.H5Dread(state->dataset, state->memory_type, memory, state->space, H5P_DEFAULT,
                          data) < 0) {
        char doing[64];
        snprintf(doing, sizeof doing, "read rows %lld to %lld", (long long)row,
                 (long long)(row + rows - 1));
        status = failed(reader, GNOMON_ERROR_DATA, doing);
    }
    if (memory >= 0) gnomon_h5.H5Sclose(memory);
    gnomon_hdf5_leave(&guard);
    return status;
}

gnomon_status gnomon_hdf5_block(gnomon_reader *reader, int64_t row, int64_t col,
                                const gnomon_matrix *dst)
{
    hdf5_state *state = reader->state;
    if (dst->cols == 0 || dst->rows == 0) return GNOMON_OK;
    if (dst->dtype == reader->info.dtype && dst->col_stride == 1 && dst->row_stride == dst->cols)
        return read_packed(reader, state, row, dst->rows, col, dst->cols, dst->data);
    int64_t cols_each = dst->cols < state->scratch_elements ? dst->cols : state->scratch_elements;
    int64_t tall = state->scratch_elements / cols_each;
    for (int64_t i = 0; i < dst->rows;) {
        int64_t rows = dst->rows - i < tall ? dst->rows - i : tall;
        for (int64_t j = 0; j < dst->cols;) {
            int64_t cols = dst->cols - j < cols_each ? dst->cols - j : cols_each;
            GNOMON_TRY(read_packed(reader, state, row + i, rows, col + j, cols, state->scratch));
            gnomon_matrix src =
                gnomon_matrix_rowmajor(state->scratch, reader->info.dtype, rows, cols);
            gnomon_matrix part = *dst;
            part.rows = rows;
            part.cols = cols;
            part.data = (char *)dst->data + (i * dst->row_stride + j * dst->col_stride) *
                                                (int64_t)gnomon_dtype_size(dst->dtype);
            GNOMON_TRY(gnomon_convert(reader->ctx, &src, &part, row + i, col + j, reader->path));
            j += cols;
        }
        i += rows;
    }
    return GNOMON_OK;
}

gnomon_status gnomon_hdf5_next(gnomon_reader *reader, const gnomon_matrix *dst, int64_t *got)
{
    hdf5_state *state = reader->state;
    int64_t left = reader->info.rows - state->next_row;
    gnomon_matrix part = *dst;
    if (part.rows > left) part.rows = left;
    GNOMON_TRY(gnomon_hdf5_block(reader, state->next_row, 0, &part));
    state->next_row += part.rows;
    *got = part.rows;
    return GNOMON_OK;
}

gnomon_status gnomon_hdf5_seek(gnomon_reader *reader, int64_t row)
{
    hdf5_state *state = reader->state;
    state->next_row = row;
    return GNOMON_OK;
}

#endif

/* An index written piece by piece: points go to the file as they come, their keys as sorted runs to
 * a temporary file, and at the end the runs are merged into tables. */
#include "lsh/file/file.h"

#include "base/memory.h"
#include "base/threads.h"
#include "points/view.h"
#include "search/jaccard.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RUN_BYTES = 64 << 20 }; /* of keys that wait, at most */

struct gnomon_lsh_builder {
    gnomon_context *ctx;
    gnomon_lsh *shape;      /* hashes; counts points; its codes are trained on the first ones */
    const gnomon_lsh *from; /* NULL: none; entered */
    bool drop, erase;       /* removed points leave the tables; their coordinates the file */
    gnomon_sink *sink;
    gnomon_status failed;
    gnomon_section *sections;
    int64_t count, room, end;
    gnomon_stream_out *points; /* or members */
    gnomon_dtype dtype;        /* of the stream's points */
    gnomon_spool side;         /* codes, or sets' offsets without the first */
    gnomon_spool weights;      /* of sets' members */
    int64_t members;
    uint64_t *keys; /* that wait: [t * capacity + i] */
    int64_t capacity, waiting;
    gnomon_spool spool;
    gnomon_run *runs;
    int64_t run_count, run_room;
    int lock;   /* on the file that is replaced by what was made of it; -1: none */
    int target; /* the lock on any other file that is replaced; -1: none */
    bool other; /* the file will hold more or less than the index does */
};

static bool of_sets(const gnomon_lsh_builder *b)
{
    return gnomon_metric_of_sets(b->shape->options.metric);
}

static bool of_weights(const gnomon_lsh_builder *b)
{
    return gnomon_metric_is(b->shape->options.metric, GNOMON_METRIC_WEIGHTS);
}

/* ---- sections ---- */

static gnomon_status add_section(gnomon_lsh_builder *b, gnomon_section section)
{
    if (b->count == b->room) {
        const int64_t room = b->room > 0 ? 2 * b->room : 64;
        GNOMON_TRY(
            gnomon_grow(b->ctx, &b->sections, b->room, room, sizeof *b->sections, "sections"));
        b->room = room;
    }
    b->sections[b->count++] = section;
    b->end = section.offset + section.length;
    return GNOMON_OK;
}

static gnomon_status open_section(gnomon_lsh_builder *b, gnomon_stream_out **stream)
{
    return gnomon_stream_out_open(b->ctx, b->sink, gnomon_section_place(b->end), stream);
}

static gnomon_status close_section(gnomon_lsh_builder *b, gnomon_stream_out *stream,
                                   gnomon_section_kind kind, uint32_t number, gnomon_dtype dtype)
{
    gnomon_section section = {.kind = kind, .number = number, .dtype = dtype};
    GNOMON_TRY(gnomon_stream_out_close(stream, &section));
    return add_section(b, section);
}

static gnomon_status write_section(gnomon_lsh_builder *b, gnomon_section_kind kind,
                                   const void *data, int64_t size)
{
    gnomon_stream_out *stream;
    GNOMON_TRY(open_section(b, &stream));
    const gnomon_status status = gnomon_stream_out_put(stream, data, size);
    if (status == GNOMON_OK) return close_section(b, stream, kind, 0, (gnomon_dtype)0);
    gnomon_stream_out_drop(stream);
    return status;
}

/* A section of the spool's bytes after 'before', zeros where 'before' is NULL. */
static gnomon_status write_side(gnomon_lsh_builder *b, gnomon_section_kind kind,
                                gnomon_spool *spool, const void *before, int64_t size)
{
    enum { PIECE = 64 * 1024 };
    gnomon_stream_out *stream;
    void *piece;
    GNOMON_TRY(gnomon_alloc(b->ctx, PIECE, 1, "a buffer", &piece));
    gnomon_status status = open_section(b, &stream);
    if (status != GNOMON_OK) {
        gnomon_free(b->ctx, piece);
        return status;
    }
    status = before ? gnomon_stream_out_put(stream, before, size)
                    : gnomon_stream_out_zeros(stream, size);
    for (int64_t at = 0; at < spool->end && status == GNOMON_OK; at += PIECE) {
        const int64_t here = spool->end - at < PIECE ? spool->end - at : PIECE;
        status = gnomon_spool_read(spool, at, piece, here);
        if (status == GNOMON_OK) status = gnomon_stream_out_put(stream, piece, here);
    }
    gnomon_free(b->ctx, piece);
    if (status == GNOMON_OK) return close_section(b, stream, kind, 0, (gnomon_dtype)0);
    gnomon_stream_out_drop(stream);
    return status;
}

/* ---- points ---- */

static gnomon_status close_points(gnomon_lsh_builder *b)
{
    gnomon_stream_out *stream = b->points;
    b->points = NULL;
    if (!stream) return GNOMON_OK;
    if (of_sets(b)) return close_section(b, stream, GNOMON_SECTION_MEMBERS, 0, (gnomon_dtype)0);
    return close_section(b, stream, GNOMON_SECTION_POINTS, (uint32_t)b->count, b->dtype);
}

static gnomon_status write_row(gnomon_lsh_builder *b, const gnomon_matrix *m, int64_t i)
{
    const int64_t size = (int64_t)gnomon_dtype_size(m->dtype);
    const char *row = gnomon_row_at(m, i);
    if (m->col_stride == 1) return gnomon_stream_out_put(b->points, row, m->cols * size);
    for (int64_t j = 0; j < m->cols; j++)
        GNOMON_TRY(gnomon_stream_out_put(b->points, row + j * m->col_stride * size, size));
    return GNOMON_OK;
}

/* 'first' tells the points' ids where those of 'from' are erased; -1: none is. */
static gnomon_status write_points(gnomon_lsh_builder *b, const gnomon_matrix *m, int64_t first)
{
    const int64_t row = m->cols * (int64_t)gnomon_dtype_size(m->dtype);
    if (b->points && b->dtype != m->dtype) GNOMON_TRY(close_points(b));
    if (!b->points) GNOMON_TRY(open_section(b, &b->points));
    b->dtype = m->dtype;
    if (first < 0 && m->col_stride == 1 && m->row_stride == m->cols)
        return gnomon_stream_out_put(b->points, m->data, m->rows * row);
    for (int64_t i = 0; i < m->rows; i++)
        GNOMON_TRY(first >= 0 && gnomon_lsh_is_gone(b->from, (uint32_t)(first + i))
                       ? gnomon_stream_out_zeros(b->points, row)
                       : write_row(b, m, i));
    return GNOMON_OK;
}

static gnomon_status write_set(gnomon_lsh_builder *b, const gnomon_sets *sets, int64_t i,
                               bool erased)
{
    const int64_t size = erased ? 0 : sets->offsets[i + 1] - sets->offsets[i];
    b->members += size;
    GNOMON_TRY(gnomon_spool_append(&b->side, &b->members, 8));
    if (size > 0 && sets->weights != NULL)
        GNOMON_TRY(gnomon_spool_append(&b->weights, sets->weights + sets->offsets[i], size * 8));
    return size > 0 ? gnomon_stream_out_put(b->points, sets->members + sets->offsets[i], size * 8)
                    : GNOMON_OK;
}

/* What another index holds already. */
static gnomon_status copy_points(gnomon_lsh_builder *b)
{
    const gnomon_lsh *from = b->from;
    if (of_sets(b)) {
        for (int64_t i = 0; i < from->sets.count; i++)
            GNOMON_TRY(
                write_set(b, &from->sets, i, b->erase && gnomon_lsh_is_gone(from, (uint32_t)i)));
        return GNOMON_OK;
    }
    for (int64_t i = 0; i < from->block_count; i++)
        GNOMON_TRY(write_points(b, &from->blocks[i].points, b->erase ? from->blocks[i].first : -1));
    return GNOMON_OK;
}

/* ---- runs ---- */

typedef struct sorting {
    gnomon_lsh_builder *b;
    int64_t table;
    gnomon_table_scratch *scratch;
} sorting;

static void sort_table(void *arg, int64_t task, int worker)
{
    (void)worker;
    const sorting *s = arg;
    const gnomon_lsh_builder *b = s->b;
    gnomon_table_sort(b->keys + (s->table + task) * b->capacity, b->waiting,
                      (uint32_t)(b->shape->points - b->waiting), &s->scratch[task]);
}

static gnomon_status sort_run(gnomon_lsh_builder *b, sorting *s, int64_t at_once)
{
    const int64_t tables = b->shape->options.tables;
    for (s->table = 0; s->table < tables; s->table += at_once) {
        const int64_t here = tables - s->table < at_once ? tables - s->table : at_once;
        gnomon_parallel(b->ctx, here, sort_table, s);
        for (int64_t i = 0; i < here; i++) {
            GNOMON_TRY(gnomon_spool_append(&b->spool, s->scratch[i].keys[0], b->waiting * 8));
            GNOMON_TRY(gnomon_spool_append(&b->spool, s->scratch[i].ids[0], b->waiting * 4));
        }
    }
    return GNOMON_OK;
}

/* Sorts the keys that wait and puts them away. */
static gnomon_status end_run(gnomon_lsh_builder *b)
{
    gnomon_context *ctx = b->ctx;
    const int64_t threads = gnomon_context_threads(ctx), tables = b->shape->options.tables;
    const int64_t at_once = threads < tables ? threads : tables;
    if (b->waiting == 0) return GNOMON_OK;
    if (b->run_count == b->run_room) {
        const int64_t room = b->run_room > 0 ? 2 * b->run_room : 16;
        GNOMON_TRY(gnomon_grow(ctx, &b->runs, b->run_room, room, sizeof *b->runs, "runs"));
        b->run_room = room;
    }
    b->runs[b->run_count++] = (gnomon_run){b->spool.end, b->waiting};
    sorting s = {.b = b};
    gnomon_status status =
        gnomon_alloc_zero(ctx, at_once, sizeof *s.scratch, "lists to sort", &s.scratch);
    for (int64_t i = 0; i < 2 * at_once && status == GNOMON_OK; i++) {
        gnomon_table_scratch *w = &s.scratch[i / 2];
        status = gnomon_alloc(ctx, b->waiting, 8, "keys to sort", &w->keys[i % 2]);
        if (status == GNOMON_OK)
            status = gnomon_alloc(ctx, b->waiting, 4, "points to sort", &w->ids[i % 2]);
    }
    if (status == GNOMON_OK) status = sort_run(b, &s, at_once);
    for (int64_t i = 0; s.scratch && i < 2 * at_once; i++) {
        gnomon_free(ctx, s.scratch[i / 2].keys[i % 2]);
        gnomon_free(ctx, s.scratch[i / 2].ids[i % 2]);
    }
    gnomon_free(ctx, s.scratch);
    b->waiting = 0;
    return status;
}

static gnomon_status open_keys(gnomon_lsh_builder *b)
{
    const int64_t tables = b->shape->options.tables;
    const int64_t threads = gnomon_context_threads(b->ctx);
    const int64_t limit = gnomon_memory_limit(b->ctx) / 2;
    const int64_t point = 8 * tables + 24 * (threads < tables ? threads : tables);
    b->capacity = (limit < RUN_BYTES ? limit : RUN_BYTES) / point;
    if (b->capacity < 256) b->capacity = 256;
    return gnomon_alloc(b->ctx, gnomon_times(b->capacity, tables), sizeof *b->keys, "keys",
                        &b->keys);
}

/* Takes points [at, at + n) of those that have these keys, of 'rows' points a table: they are in
 * the file already and are counted here. */
static void take_keys(gnomon_lsh_builder *b, const uint64_t *keys, int64_t rows, int64_t at,
                      int64_t n)
{
    for (int64_t t = 0; t < b->shape->options.tables; t++)
        memcpy(b->keys + t * b->capacity + b->waiting, keys + t * rows + at,
               (size_t)n * sizeof *keys);
    b->waiting += n;
    b->shape->points += n;
}

static gnomon_status add_keys(gnomon_lsh_builder *b, const gnomon_points *points)
{
    const int64_t n = gnomon_points_rows(points), tables = b->shape->options.tables;
    uint64_t *keys = NULL;
    GNOMON_TRY(gnomon_alloc(b->ctx, gnomon_times(n, tables), sizeof *keys, "keys", &keys));
    const gnomon_status status = gnomon_lsh_keys(b->ctx, b->shape, points, keys);
    if (status == GNOMON_OK) take_keys(b, keys, n, 0, n);
    gnomon_free(b->ctx, keys);
    return status;
}

static gnomon_status add_codes(gnomon_lsh_builder *b, const gnomon_matrix *points)
{
    const gnomon_codes *c = &b->shape->codes;
    const gnomon_metric metric = b->shape->options.metric;
    int8_t *code = NULL;
    if (c->count == 0) return GNOMON_OK;
    GNOMON_TRY(gnomon_alloc(b->ctx, points->rows, (size_t)c->count, "codes", &code));
    gnomon_status status = gnomon_codes_make(b->ctx, c, metric, points, 0, points->rows, code);
    if (status == GNOMON_OK) status = gnomon_spool_append(&b->side, code, points->rows * c->count);
    gnomon_free(b->ctx, code);
    return status;
}

static gnomon_status add_dense(gnomon_lsh_builder *b, const gnomon_matrix *points)
{
    GNOMON_TRY(write_points(b, points, -1));
    GNOMON_TRY(add_codes(b, points));
    const gnomon_points p = {points, NULL};
    return add_keys(b, &p);
}

static gnomon_status add_sparse(gnomon_lsh_builder *b, const gnomon_csr *points)
{
    gnomon_sets sets;
    GNOMON_TRY(gnomon_sets_make(b->ctx, points, "points", 0, b->shape->options.metric, &sets));
    gnomon_status status = GNOMON_OK;
    for (int64_t i = 0; i < sets.count && status == GNOMON_OK; i++)
        status = write_set(b, &sets, i, false);
    gnomon_sets_free(b->ctx, &sets);
    GNOMON_TRY(status);
    const gnomon_points p = {NULL, points};
    return add_keys(b, &p);
}

/* Piece by piece, as many as the run that is being made has room for. */
static gnomon_status add_pieces(gnomon_lsh_builder *b, const gnomon_points *points)
{
    const int64_t n = gnomon_points_rows(points);
    const int64_t most = b->capacity / 8 > 256 ? b->capacity / 8 : 256;
    for (int64_t at = 0; at < n;) {
        int64_t here = b->capacity - b->waiting < most ? b->capacity - b->waiting : most;
        if (here > n - at) here = n - at;
        if (points->dense) {
            const gnomon_matrix part = gnomon_rows(points->dense, at, here);
            GNOMON_TRY(add_dense(b, &part));
        } else {
            const gnomon_csr part = gnomon_csr_rows(points->sparse, at, here);
            GNOMON_TRY(add_sparse(b, &part));
        }
        if (b->waiting == b->capacity) GNOMON_TRY(end_run(b));
        at += here;
    }
    return GNOMON_OK;
}

static gnomon_status add(gnomon_lsh_builder *b, const gnomon_points *points)
{
    GNOMON_FAIL_IF(b->failed != GNOMON_OK, b->ctx, b->failed,
                   "an earlier call on the builder failed; it can only be finished or aborted");
    /* these refuse points before anything is written */
    GNOMON_FAIL_IF(points->sparse && !of_sets(b), b->ctx, GNOMON_ERROR_UNSUPPORTED,
                   GNOMON_ARG("points") " is sparse; an index by %s in a file holds dense points",
                   gnomon_metric_name(b->shape->options.metric));
    GNOMON_TRY(gnomon_lsh_check_points(b->shape, points));
    GNOMON_TRY(gnomon_hasher_check_finite(b->ctx, points, "points"));
    if (gnomon_points_rows(points) == 0) return GNOMON_OK;
    b->other = true;
    gnomon_status status = b->keys ? GNOMON_OK : open_keys(b);
    if (status == GNOMON_OK && points->dense)
        status =
            gnomon_codes_train(b->ctx, &b->shape->codes, b->shape->options.metric, points->dense);
    if (status == GNOMON_OK) status = add_pieces(b, points);
    return b->failed = status;
}

gnomon_lsh *gnomon_lsh_builder_shape(const gnomon_lsh_builder *b)
{
    return b->shape;
}

gnomon_status gnomon_lsh_builder_take(gnomon_lsh_builder *b, const gnomon_matrix *m,
                                      const uint64_t *keys)
{
    GNOMON_TRY(gnomon_lsh_check_count(b->shape, m->rows));
    gnomon_status status = b->keys ? GNOMON_OK : open_keys(b);
    if (status == GNOMON_OK) status = write_points(b, m, -1);
    for (int64_t at = 0; at < m->rows && status == GNOMON_OK;) {
        const int64_t left = m->rows - at, room = b->capacity - b->waiting;
        const int64_t here = left < room ? left : room;
        take_keys(b, keys, m->rows, at, here);
        at += here;
        if (b->waiting == b->capacity) status = end_run(b);
    }
    return b->failed = status;
}

/* ---- the calls ---- */

static gnomon_status create(gnomon_context *ctx, const gnomon_lsh_options *options,
                            const gnomon_lsh *from, const char *path, gnomon_lsh_builder **out)
{
    static const gnomon_sink_options safe = {.overwrite_ok = true, .revisit = true};
    GNOMON_FAIL_IF(!path, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("path") " is NULL");
    GNOMON_FAIL_IF(__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__, ctx, GNOMON_ERROR_UNSUPPORTED,
                   "index files are little-endian, and this machine is not");
    gnomon_lsh_builder *b;
    GNOMON_TRY(gnomon_alloc_zero(ctx, 1, sizeof *b, "a builder", &b));
    b->ctx = ctx;
    b->from = from;
    b->end = GNOMON_LSH_HEADER;
    b->lock = b->target = -1;
    b->side = b->weights = b->spool = (gnomon_spool){ctx, -1, 0};
    *out = b;
    if (from) {
        GNOMON_TRY(gnomon_origin_lock(ctx, from->origin, path, &b->lock));
        /* damage would get a fresh checksum */
        const gnomon_status status = gnomon_lsh_check_bytes(ctx, from);
        if (status != GNOMON_OK)
            return gnomon_fail_prefix(ctx, status, GNOMON_ARG("%s"),
                                      from->origin ? from->origin->path : "the index");
    }
    GNOMON_TRY(gnomon_lsh_create(ctx, options, &b->shape));
    if (b->lock < 0) GNOMON_TRY(gnomon_target_lock(ctx, path, &b->target));
    return gnomon_sink_open(ctx, path, &safe, &b->sink);
}

/* Sets have their one section also without a point. */
static gnomon_status begin(gnomon_lsh_builder *b)
{
    return of_sets(b) ? open_section(b, &b->points) : GNOMON_OK;
}

gnomon_status gnomon_lsh_builder_create(gnomon_context *ctx, const gnomon_lsh_options *options,
                                        const char *path, gnomon_lsh_builder **out)
{
    GNOMON_FAIL_IF(!out, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("out") " is NULL");
    *out = NULL;
    GNOMON_NEED(NULL, ctx, "ctx");
    gnomon_lsh_builder *b = NULL;
    gnomon_status status = create(ctx, options, NULL, path, &b);
    if (status == GNOMON_OK) status = begin(b);
    if (status != GNOMON_OK) {
        gnomon_lsh_builder_abort(b);
        return status;
    }
    *out = b;
    return GNOMON_OK;
}

static gnomon_status extend(gnomon_context *ctx, const gnomon_lsh *index, const char *path,
                            int compact, gnomon_lsh_builder **out)
{
    gnomon_lsh_options options = index->options;
    GNOMON_FAIL_IF(gnomon_lsh_is_sparse(index), ctx, GNOMON_ERROR_UNSUPPORTED,
                   GNOMON_ARG("index") " holds sparse points; an index by %s in a file holds dense "
                                       "ones",
                   gnomon_metric_name(options.metric));
    options.functions = index->hasher->f;
    GNOMON_TRY(create(ctx, &options, index, path, out));
    gnomon_lsh_builder *b = *out;
    gnomon_lsh *shape = b->shape;
    shape->points = index->points;
    b->drop = b->other = compact != 0 && index->removed > 0;
    /* all that are removed have left, or leave, the tables: nothing reads them any more */
    b->erase = b->drop ||
               (index->removed > 0 && index->tables[0].entries == index->points - index->removed);
    if (index->codes.trained) {
        shape->codes.trained = true;
        shape->codes.factor = index->codes.factor;
        memcpy(shape->codes.centre, index->codes.centre,
               (size_t)index->codes.count * sizeof *index->codes.centre);
    }
    GNOMON_TRY(begin(b));
    return copy_points(b);
}

gnomon_status gnomon_lsh_builder_extend(gnomon_context *ctx, const gnomon_lsh *index,
                                        const char *path, int compact, gnomon_lsh_builder **out)
{
    GNOMON_FAIL_IF(!out, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("out") " is NULL");
    *out = NULL;
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_FAIL_IF(!index, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("index") " is NULL");
    GNOMON_FAIL_IF(!gnomon_lsh_enter(index), ctx, GNOMON_ERROR_BUSY,
                   "the index is being changed by another thread");
    gnomon_lsh_builder *b = NULL;
    const gnomon_status status = extend(ctx, index, path, compact, &b);
    if (status != GNOMON_OK) {
        if (!b) gnomon_lsh_leave(index);
        gnomon_lsh_builder_abort(b);
        return status;
    }
    *out = b;
    return GNOMON_OK;
}

gnomon_status gnomon_lsh_builder_add(gnomon_lsh_builder *builder, const gnomon_matrix *points)
{
    GNOMON_FAIL_IF(!builder, NULL, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("builder") " is NULL");
    GNOMON_FAIL_IF(!points, builder->ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("points") " is NULL");
    const gnomon_points p = {points, NULL};
    return add(builder, &p);
}

gnomon_status gnomon_lsh_builder_add_csr(gnomon_lsh_builder *builder, const gnomon_csr *points)
{
    GNOMON_FAIL_IF(!builder, NULL, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("builder") " is NULL");
    GNOMON_FAIL_IF(!points, builder->ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("points") " is NULL");
    const gnomon_points p = {NULL, points};
    return add(builder, &p);
}

/* ---- the end ---- */

/* Offsets, which begin with 0, and the weights. */
static gnomon_status write_offsets(gnomon_lsh_builder *b)
{
    GNOMON_TRY(write_side(b, GNOMON_SECTION_OFFSETS, &b->side, NULL, 8));
    return of_weights(b) ? write_side(b, GNOMON_SECTION_WEIGHTS, &b->weights, NULL, 0) : GNOMON_OK;
}

/* The old codes without those of erased points, then the new ones. */
static gnomon_status write_codes(gnomon_lsh_builder *b)
{
    const gnomon_codes *c = &b->shape->codes;
    const gnomon_lsh *from = b->from;
    const int64_t old = from ? from->points : 0;
    float scale[1025];
    if (c->count == 0 || b->shape->points == 0) return GNOMON_OK;
    scale[0] = c->factor;
    memcpy(scale + 1, c->centre, (size_t)c->count * sizeof *c->centre);
    GNOMON_TRY(write_section(b, GNOMON_SECTION_SCALE, scale, (c->count + 1) * 4));
    if (old == 0 || !b->erase)
        return write_side(b, GNOMON_SECTION_CODES, &b->side, old > 0 ? from->codes.code : NULL,
                          old * c->count);
    int8_t *kept;
    GNOMON_TRY(gnomon_alloc(b->ctx, old, (size_t)c->count, "codes", &kept));
    memcpy(kept, from->codes.code, (size_t)(old * c->count));
    for (int64_t i = 0; i < old; i++)
        if (gnomon_lsh_is_gone(from, (uint32_t)i)) memset(kept + i * c->count, 0, (size_t)c->count);
    const gnomon_status status =
        write_side(b, GNOMON_SECTION_CODES, &b->side, kept, old * c->count);
    gnomon_free(b->ctx, kept);
    return status;
}

static gnomon_status write_centres(gnomon_lsh_builder *b)
{
    const gnomon_hasher *h = b->shape->hasher;
    if (h->centres == NULL) return GNOMON_OK;
    return write_section(b, GNOMON_SECTION_CENTRES, h->centres, gnomon_hasher_centre_bytes(h));
}

static gnomon_status write_removed(gnomon_lsh_builder *b)
{
    const gnomon_lsh *from = b->from;
    if (!from || from->removed == 0) return GNOMON_OK;
    const int64_t bytes = gnomon_lsh_bitmap_bytes(b->shape->points);
    uint8_t *gone;
    GNOMON_TRY(gnomon_alloc_zero(b->ctx, bytes, 1, "removed points", &gone));
    memcpy(gone, from->gone, (size_t)gnomon_lsh_bitmap_bytes(from->points));
    const gnomon_status status = write_section(b, GNOMON_SECTION_REMOVED, gone, bytes);
    gnomon_free(b->ctx, gone);
    return status;
}

static gnomon_status write_tables(gnomon_lsh_builder *b)
{
    const int64_t tables = b->shape->options.tables, most = b->shape->options.memory;
    const gnomon_merging m = {b->ctx, b->sink,   b->from, b->drop,
                              tables, &b->spool, b->runs, b->run_count};
    const int64_t before = gnomon_section_place(b->end);
    for (int64_t t = 0; t < tables; t++) {
        gnomon_section parts[4];
        int64_t end = b->end;
        GNOMON_TRY(gnomon_lsh_write_table(&m, t, &end, parts));
        for (int i = 0; i < 4; i++)
            GNOMON_TRY(add_section(b, parts[i]));
        GNOMON_FAIL_IF(most > 0 && b->end - before > most, b->ctx, GNOMON_ERROR_MEMORY,
                       "%" PRId64 " of the index's %" PRId64 " tables take %" PRId64
                       " bytes; options.memory is %" PRId64 ": take fewer tables",
                       t + 1, tables, b->end - before, most);
        GNOMON_TRY(gnomon_progress(b->ctx, "tables", t + 1, tables));
    }
    return GNOMON_OK;
}

static gnomon_status write_settings(gnomon_lsh_builder *b)
{
    char *json;
    GNOMON_TRY(gnomon_lsh_settings_to_json(b->ctx, b->shape, &json));
    const gnomon_status status =
        write_section(b, GNOMON_SECTION_SETTINGS, json, (int64_t)strlen(json));
    free(json);
    return status;
}

static gnomon_status write_layout(gnomon_lsh_builder *b)
{
    unsigned char header[GNOMON_LSH_HEADER], *entries;
    gnomon_layout l = {.kind = &gnomon_lsh_file,
                       .points = b->shape->points,
                       .removed = b->from ? b->from->removed : 0,
                       .sections = b->count,
                       .table = gnomon_section_place(b->end)};
    l.bytes = l.table + l.sections * GNOMON_LSH_ENTRY;
    if (of_sets(b)) l.features |= GNOMON_LSH_SETS;
    if (of_weights(b)) l.features |= GNOMON_LSH_WEIGHTED;
    if (b->shape->codes.count > 0) l.features |= GNOMON_LSH_CODED;
    if (b->shape->hasher->centres != NULL) l.features |= GNOMON_LSH_CENTRED;
    if (l.removed > 0) l.features |= GNOMON_LSH_REMOVED;
    GNOMON_TRY(gnomon_alloc(b->ctx, l.sections, GNOMON_LSH_ENTRY, "the section table", &entries));
    gnomon_layout_write(&l, b->sections, entries, header);
    gnomon_status status =
        gnomon_sink_write_at(b->sink, l.table, entries, (size_t)(l.sections * GNOMON_LSH_ENTRY));
    if (status == GNOMON_OK) status = gnomon_sink_write_at(b->sink, 0, header, GNOMON_LSH_HEADER);
    gnomon_free(b->ctx, entries);
    return status;
}

static gnomon_status finish(gnomon_lsh_builder *b)
{
    GNOMON_FAIL_IF(b->failed != GNOMON_OK, b->ctx, b->failed,
                   "an earlier call on the builder failed");
    GNOMON_TRY(end_run(b));
    gnomon_free(b->ctx, b->keys);
    b->keys = NULL;
    GNOMON_TRY(close_points(b));
    GNOMON_TRY(of_sets(b) ? write_offsets(b) : write_codes(b));
    GNOMON_TRY(write_centres(b));
    GNOMON_TRY(write_removed(b));
    GNOMON_TRY(write_tables(b));
    GNOMON_TRY(write_settings(b));
    GNOMON_TRY(write_layout(b));
    struct stat st = {0};
    if (b->lock >= 0) {
        GNOMON_TRY(gnomon_origin_still(b->ctx, b->from->origin));
        GNOMON_TRY(gnomon_sink_stat(b->sink, &st));
    }
    gnomon_sink *sink = b->sink;
    b->sink = NULL;
    GNOMON_TRY(gnomon_sink_finish(sink));
    if (b->lock >= 0 && !b->other) { /* the index is the new file's now */
        b->from->origin->device = st.st_dev;
        b->from->origin->inode = st.st_ino;
    }
    return GNOMON_OK;
}

gnomon_status gnomon_lsh_builder_finish(gnomon_lsh_builder *builder)
{
    GNOMON_FAIL_IF(!builder, NULL, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("builder") " is NULL");
    const gnomon_status status = finish(builder);
    gnomon_lsh_builder_abort(builder);
    return status;
}

void gnomon_lsh_builder_abort(gnomon_lsh_builder *b)
{
    if (!b) return;
    gnomon_context *ctx = b->ctx;
    gnomon_stream_out_drop(b->points);
    gnomon_sink_abort(b->sink);
    gnomon_spool_close(&b->side);
    gnomon_spool_close(&b->weights);
    gnomon_spool_close(&b->spool);
    gnomon_free(ctx, b->keys);
    gnomon_free(ctx, b->runs);
    gnomon_free(ctx, b->sections);
    gnomon_lsh_destroy(b->shape);
    if (b->lock >= 0) close(b->lock);
    if (b->target >= 0) close(b->target);
    if (b->from) gnomon_lsh_leave(b->from);
    gnomon_free(ctx, b);
}

gnomon_status gnomon_lsh_save(gnomon_context *ctx, const gnomon_lsh *index, const char *path)
{
    gnomon_lsh_builder *b;
    GNOMON_TRY(gnomon_lsh_builder_extend(ctx, index, path, 0, &b));
    return gnomon_lsh_builder_finish(b);
}

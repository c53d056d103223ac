/* Passes over rows, segment by segment, by one process or by several ranks. */
#include "svd/row_pass.h"

#include "base/arithmetic.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "linalg/blas.h"

#include <inttypes.h>
#include <string.h>

/* ---- segments ---- */

int64_t gnomon_row_segment(int64_t rows, int64_t piece_rows)
{
    const int64_t pieces = gnomon_ceil_div(rows, piece_rows);
    return gnomon_ceil_div(pieces > 0 ? pieces : 1, GNOMON_SEGMENTS) * piece_rows;
}

/* What the calls below check, and what they answer where there is no such stretch. */
static gnomon_status open_stretch(gnomon_context *ctx, const struct gnomon_comm *given,
                                  int64_t rows, int64_t stretch, int64_t *first, int64_t *count,
                                  gnomon_comm *comm)
{
    GNOMON_TRY(gnomon_comm_take(ctx, given, comm));
    GNOMON_NEED(ctx, first, "first");
    GNOMON_NEED(ctx, count, "count");
    GNOMON_FAIL_IF(rows < 0, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("rows") " is %" PRId64 "; it must not be negative", rows);
    GNOMON_FAIL_IF(stretch < 0, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("stretch") " is %" PRId64 "; it must not be negative", stretch);
    *first = rows;
    *count = 0;
    return GNOMON_OK;
}

gnomon_status gnomon_row_stretch(gnomon_context *ctx, const struct gnomon_comm *given, int64_t rows,
                                 int64_t piece_rows, int64_t stretch, int64_t *first,
                                 int64_t *count)
{
    gnomon_comm comm;
    GNOMON_TRY(open_stretch(ctx, given, rows, stretch, first, count, &comm));
    const int64_t each = gnomon_row_segment(rows, piece_rows);
    const int64_t segments = gnomon_ceil_div(rows, each);
    if (stretch >= GNOMON_SEGMENTS) return GNOMON_OK;
    const int64_t segment = stretch * comm.size + comm.rank;
    if (segment >= segments) return GNOMON_OK;
    *first = segment * each;
    *count = gnomon_min(each, rows - *first);
    return GNOMON_OK;
}

gnomon_status gnomon_svd_rank_rows(gnomon_context *ctx, const struct gnomon_comm *given,
                                   int64_t rows, int64_t cols, int64_t stretch, int64_t *first,
                                   int64_t *count)
{
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_FAIL_IF(cols < 1, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("cols") " is %" PRId64 "; it must be at least 1", cols);
    return gnomon_row_stretch(ctx, given, rows, gnomon_row_source_piece_rows(cols), stretch, first,
                              count);
}

gnomon_status gnomon_svd_rank_sparse_rows(gnomon_context *ctx, const struct gnomon_comm *given,
                                          int64_t rows, int64_t stretch, int64_t *first,
                                          int64_t *count)
{
    gnomon_comm comm;
    gnomon_row_source source = {.sparse = true};
    int64_t own;
    GNOMON_TRY(open_stretch(ctx, given, rows, stretch, first, count, &comm));
    gnomon_parts_have(&source, comm.rank, comm.size);
    if (source.parts == 0 || !gnomon_mul(stretch, (int64_t)GNOMON_CHUNK * GNOMON_PARTS, &own))
        return GNOMON_OK;
    const int64_t row = gnomon_place_of(&source, stretch * GNOMON_CHUNK);
    if (row >= rows) return GNOMON_OK;
    *first = row;
    *count = gnomon_min(GNOMON_CHUNK, rows - row);
    return GNOMON_OK;
}

/* How many rows of the whole are this rank's. */
static int64_t rows_of(const gnomon_row_source *source, int rank, int size)
{
    int64_t all = 0;
    if (source->sparse) {
        const int64_t round = (int64_t)GNOMON_PARTS * GNOMON_CHUNK;
        for (int part = rank; part < GNOMON_PARTS; part += size) {
            const int64_t rest = source->rows % round - (int64_t)part * GNOMON_CHUNK;
            all +=
                source->rows / round * GNOMON_CHUNK + gnomon_min(GNOMON_CHUNK, gnomon_max(rest, 0));
        }
        return all;
    }
    for (int64_t row = rank * source->segment_rows; row < source->rows;
         row += size * source->segment_rows)
        all += gnomon_min(source->segment_rows, source->rows - row);
    return all;
}

/* ---- ranks ---- */

gnomon_status gnomon_row_ranks_open(gnomon_context *ctx, const struct gnomon_comm *given,
                                    gnomon_row_ranks *ranks)
{
    *ranks = (gnomon_row_ranks){.comm = GNOMON_COMM_INIT};
    return given != NULL ? gnomon_comm_take(ctx, given, &ranks->comm) : GNOMON_OK;
}

/* After a failed message nothing more can be said. */
static gnomon_status say(gnomon_row_source *source, gnomon_status status)
{
    if (status != GNOMON_OK) source->ranks->over = true;
    return status;
}

gnomon_status gnomon_row_step_ready(gnomon_row_source *source, gnomon_status status)
{
    gnomon_row_ranks *ranks = source->ranks;
    int code = (int)status, rank = -1;
    if (ranks == NULL) return status;
    GNOMON_TRY(say(source, gnomon_comm_agree(source->ctx, &ranks->comm, &code, &rank)));
    if (code == 0) return GNOMON_OK;
    ranks->over = true;
    if (status != GNOMON_OK) return status;
    return gnomon_fail(source->ctx, (gnomon_status)code, "rank %d fails: %s", rank,
                       gnomon_status_name((gnomon_status)code));
}

gnomon_status gnomon_row_step_share(gnomon_row_source *source, void *data, int64_t bytes)
{
    if (source->ranks == NULL) return GNOMON_OK;
    return say(source, gnomon_comm_broadcast(source->ctx, &source->ranks->comm, data, bytes));
}

/* A piece that can't be what was asked for. */
static gnomon_status bad_length(const gnomon_row_source *source, int64_t piece)
{
    return gnomon_fail(source->ctx, GNOMON_ERROR_COMM,
                       "a message of rank %d is damaged: its length",
                       (int)(piece % source->ranks->comm.size));
}

/* The rows of all ranks are counted by rank 0. */
typedef struct census {
    const gnomon_row_source *source;
    int rank, size;
    int64_t own, all;
} census;

static gnomon_status tell_own(void *user, int64_t piece, const void **data, int64_t *bytes)
{
    census *c = user;
    if (piece >= c->size) return GNOMON_OK;
    *data = &c->own;
    *bytes = sizeof c->own;
    return GNOMON_OK;
}

static gnomon_status count_own(void *user, int64_t piece, const void *data, int64_t bytes)
{
    census *c = user;
    int64_t own;
    if (bytes != sizeof own) return bad_length(c->source, piece);
    memcpy(&own, data, sizeof own);
    return gnomon_add(c->all, own, &c->all) ? GNOMON_OK : GNOMON_ERROR_OVERFLOW;
}

/* What all ranks must have alike. */
typedef struct terms {
    int64_t rows, cols, f64, stored; /* the type of sparse values; 0: dense rows */
    int64_t centered, standardized;
} terms;

static gnomon_status check_terms(gnomon_row_source *source, const terms *t)
{
    const gnomon_comm *comm = &source->ranks->comm;
    const int64_t own = source->rows;
    GNOMON_FAIL_IF(
        t->cols != source->cols || t->f64 != source->f64, source->ctx, GNOMON_ERROR_SHAPE,
        GNOMON_ARG("a") " has %" PRId64 " columns of %s on rank %d, and %" PRId64
                        " of %s on rank 0",
        source->cols, source->f64 ? "f64" : "f32", comm->rank, t->cols, t->f64 ? "f64" : "f32");
    GNOMON_FAIL_IF(t->stored != (int64_t)source->stored, source->ctx, GNOMON_ERROR_DTYPE,
                   GNOMON_ARG("a") " has %s rows on rank %d, and others on rank 0",
                   source->stored != 0 ? gnomon_dtype_name(source->stored) : "dense", comm->rank);
    GNOMON_FAIL_IF(t->centered != source->centered || t->standardized != source->standardized,
                   source->ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("center") " or standardize is another on rank %d than on rank 0",
                   comm->rank);
    source->rows = t->rows;
    source->segment_rows = gnomon_row_segment(t->rows, source->piece_rows);
    gnomon_parts_have(source, comm->rank, comm->size);
    const int64_t due = rows_of(source, comm->rank, comm->size);
    GNOMON_FAIL_IF(own != due, source->ctx, GNOMON_ERROR_SHAPE,
                   GNOMON_ARG("a") " has %" PRId64 " rows on rank %d; of %" PRId64
                                   " rows in all it must have %" PRId64 ", those that %s tells",
                   own, comm->rank, t->rows, due,
                   source->sparse ? "gnomon_svd_rank_sparse_rows" : "gnomon_svd_rank_rows");
    source->own_rows = own;
    return GNOMON_OK;
}

gnomon_status gnomon_row_ranks_begin(gnomon_row_source *source, gnomon_row_ranks *ranks,
                                     gnomon_status status)
{
    source->ranks = ranks;
    GNOMON_TRY(gnomon_row_step_ready(source, status));
    census c = {source, ranks->comm.rank, ranks->comm.size, source->rows, 0};
    GNOMON_TRY(say(source, gnomon_comm_deal(source->ctx, &ranks->comm, tell_own, count_own, &c)));
    terms t = {c.all,
               source->cols,
               source->f64,
               (int64_t)source->stored,
               source->centered,
               source->standardized};
    GNOMON_TRY(gnomon_row_step_share(source, &t, sizeof t));
    status = check_terms(source, &t);
    if (status == GNOMON_OK && t.rows == 0)
        status = gnomon_fail(source->ctx, GNOMON_ERROR_SHAPE,
                             GNOMON_ARG("a") " is 0 x %" PRId64 "; it must have rows and columns",
                             t.cols);
    return gnomon_row_step_ready(source, status);
}

gnomon_status gnomon_row_step_tell(gnomon_row_source *source, gnomon_step_kind kind,
                                   const int64_t numbers[6])
{
    gnomon_row_step step = {.kind = kind, .exponent = source->exponent};
    if (source->ranks == NULL || gnomon_row_serves(source)) return GNOMON_OK;
    if (numbers != NULL) memcpy(step.numbers, numbers, sizeof step.numbers);
    return gnomon_row_step_share(source, &step, sizeof step);
}

gnomon_status gnomon_row_ranks_end(gnomon_row_source *source, gnomon_status status)
{
    gnomon_row_ranks *ranks = source->ranks;
    gnomon_comm_failure bad = {0};
    if (ranks == NULL || ranks->over) return status;
    gnomon_comm_note(source->ctx, &bad, status, ranks->comm.rank, NULL);
    GNOMON_TRY(gnomon_row_step_tell(source, GNOMON_STEP_END, NULL));
    ranks->over = true;
    return gnomon_comm_end(source->ctx, &ranks->comm, &bad);
}

static gnomon_status serve_steps(gnomon_row_source *source, gnomon_row_step_fn serve, void *user)
{
    for (;;) {
        gnomon_row_step step = {0};
        GNOMON_TRY(gnomon_row_step_share(source, &step, sizeof step));
        if (step.kind == GNOMON_STEP_END) {
            gnomon_comm_failure bad = {0};
            source->ranks->over = true;
            return gnomon_comm_end(source->ctx, &source->ranks->comm, &bad);
        }
        source->exponent = (int)step.exponent;
        GNOMON_TRY(serve(user, &step));
    }
}

gnomon_status gnomon_row_ranks_serve(gnomon_row_source *source, gnomon_row_step_fn serve,
                                     void *user)
{
    if (!gnomon_row_serves(source)) return GNOMON_OK;
    gnomon_blas_enter();
    const gnomon_status status = serve_steps(source, serve, user);
    gnomon_blas_leave();
    return status;
}

/* The rows of t that are of another rank's sparse rows, to or from 'rows', one behind the other. */
static void move_rows(const gnomon_row_source *source, int rank, const gnomon_tall *t, char *rows,
                      bool back)
{
    gnomon_row_source other = {.rows = source->rows, .sparse = true};
    const int64_t line = t->cols * (int64_t)gnomon_tall_size(t->f64);
    gnomon_parts_have(&other, rank, source->ranks->comm.size);
    const int64_t count = rows_of(&other, rank, source->ranks->comm.size);
    for (int64_t own = 0; own < count; own += GNOMON_CHUNK) {
        const int64_t bytes = gnomon_min(GNOMON_CHUNK, count - own) * line;
        void *place = gnomon_tall_row(t, gnomon_place_of(&other, own));
        if (back)
            memcpy(place, rows + own * line, (size_t)bytes);
        else
            memcpy(rows + own * line, place, (size_t)bytes);
    }
}

static gnomon_status send_sparse_rows(gnomon_row_source *source, const gnomon_tall *t)
{
    const gnomon_comm *comm = &source->ranks->comm;
    const int64_t line = t->cols * (int64_t)gnomon_tall_size(t->f64);
    char *rows = NULL;
    gnomon_status status = gnomon_alloc(
        source->ctx, gnomon_times(rows_of(source, 1, comm->size), line), 1, "rows to send", &rows);
    const bool failed = status != GNOMON_OK;
    /* all others wait for a message, those without rows too, so that each is told of a failure */
    for (int rank = 1; rank < comm->size && (failed || status == GNOMON_OK); rank++) {
        if (failed) {
            GNOMON_TRY(gnomon_message_fail(source->ctx, comm, rank, 0, status,
                                           gnomon_last_error(source->ctx)));
            continue;
        }
        move_rows(source, rank, t, rows, false);
        status = gnomon_message_send(source->ctx, comm, rank, GNOMON_MESSAGE_ROWS, rows,
                                     rows_of(source, rank, comm->size) * line);
    }
    gnomon_free(source->ctx, rows);
    return status;
}

static gnomon_status send_rows(gnomon_row_source *source, const gnomon_tall *t)
{
    const gnomon_comm *comm = &source->ranks->comm;
    const int64_t line = t->cols * (int64_t)gnomon_tall_size(t->f64);
    int64_t segment = 0;
    if (source->sparse) return send_sparse_rows(source, t);
    for (int64_t row = 0; row < source->rows; row += source->segment_rows) {
        const int64_t rows = gnomon_min(source->segment_rows, source->rows - row);
        const int owner = (int)(segment++ % comm->size);
        if (owner == 0) continue;
        GNOMON_TRY(gnomon_message_send(source->ctx, comm, owner, GNOMON_MESSAGE_ROWS,
                                       gnomon_tall_row(t, row), rows * line));
    }
    return GNOMON_OK;
}

/* Rows of t from this rank's number 'own' on. */
static gnomon_status receive_some(gnomon_row_source *source, const gnomon_tall *t, int64_t own,
                                  int64_t rows, gnomon_message *message)
{
    const gnomon_comm *comm = &source->ranks->comm;
    const int64_t bytes = rows * t->cols * (int64_t)gnomon_tall_size(t->f64);
    GNOMON_TRY(gnomon_message_receive(source->ctx, comm, 0, GNOMON_MESSAGE_ROWS, message));
    if (message->kind == GNOMON_MESSAGE_FAILURE)
        return gnomon_message_failed(source->ctx, comm, message);
    GNOMON_FAIL_IF(message->bytes != bytes, source->ctx, GNOMON_ERROR_COMM,
                   "a message of rank 0 is damaged: its length");
    if (bytes > 0) memcpy(gnomon_tall_row(t, own), message->data, (size_t)bytes);
    return GNOMON_OK;
}

static gnomon_status receive_rows(gnomon_row_source *source, const gnomon_tall *t,
                                  gnomon_message *message)
{
    if (source->sparse) return receive_some(source, t, 0, source->own_rows, message);
    for (int64_t own = 0, rows; own < source->own_rows; own += rows) {
        rows = gnomon_min(source->segment_rows, source->own_rows - own);
        GNOMON_TRY(receive_some(source, t, own, rows, message));
    }
    return GNOMON_OK;
}

gnomon_status gnomon_row_step_rows(gnomon_row_source *source, const gnomon_tall *t)
{
    gnomon_message message = {0};
    if (source->ranks == NULL) return GNOMON_OK;
    const gnomon_status status =
        gnomon_row_serves(source) ? receive_rows(source, t, &message) : send_rows(source, t);
    gnomon_message_drop(source->ctx, &message);
    return say(source, status);
}

gnomon_status gnomon_row_step_operator(gnomon_row_source *source, gnomon_operator **op)
{
    gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
    gnomon_status status = GNOMON_OK;
    if (source->ranks == NULL) return GNOMON_OK;
    const bool serves = gnomon_row_serves(source);
    if (!serves) gnomon_operator_describe(*op, &d);
    GNOMON_TRY(gnomon_row_step_share(source, &d, sizeof d));
    if (serves) status = gnomon_operator_create(source->ctx, &d, op);
    return gnomon_row_step_ready(source, status);
}

/* ---- passes ---- */

typedef struct run {
    gnomon_row_source *source;
    const gnomon_row_pass *pass;
    void *buffer; /* of one segment's result */
} run;

/* Of the segment's result; own: computed here. -1: it does not fit 63 bits. */
static int64_t bytes_of(const run *r, int64_t rows, bool own)
{
    const bool elsewhere = own && r->pass->rows_in_place && !gnomon_row_serves(r->source);
    const int64_t of_rows = elsewhere ? 0 : gnomon_times(rows, r->pass->row_bytes);
    return of_rows < 0 ? -1 : gnomon_plus(r->pass->bytes, of_rows);
}

static void *place_of(const run *r, int64_t row)
{
    const bool may = r->pass->place != NULL && !gnomon_row_serves(r->source);
    return may ? r->pass->place(r->pass->user, row) : NULL;
}

/* The next piece's rows, which nobody has read. */
static void number_rows(gnomon_row_source *source, gnomon_piece *piece)
{
    *piece = (gnomon_piece){.row = source->row, .own = source->own};
    piece->rows = gnomon_min(source->piece_rows, source->rows - source->row);
    source->row += piece->rows;
    source->own += piece->rows;
}

static gnomon_status make(void *user, int64_t segment, const void **data, int64_t *bytes)
{
    run *r = user;
    gnomon_row_source *source = r->source;
    const int64_t row = segment * source->segment_rows;
    if (row >= source->rows) return GNOMON_OK;
    const int64_t end = gnomon_min(row + source->segment_rows, source->rows);
    void *result = place_of(r, row);
    if (result == NULL && r->buffer == NULL)
        GNOMON_TRY(gnomon_alloc(source->ctx,
                                bytes_of(r, gnomon_min(source->segment_rows, source->rows), true),
                                1, "a segment's result", &r->buffer));
    if (result == NULL) result = r->buffer;
    source->row = row;
    for (bool first = true; source->row < end; first = false) {
        gnomon_piece piece;
        if (r->pass->unread)
            number_rows(source, &piece);
        else
            GNOMON_TRY(gnomon_row_source_next(source, &piece));
        GNOMON_FAIL_IF(piece.rows == 0, source->ctx, GNOMON_ERROR_SHAPE,
                       GNOMON_ARG("rows.next") " gave fewer rows than in the first pass");
        GNOMON_TRY(r->pass->add(r->pass->user, &piece, row, first, result));
    }
    if (r->pass->finish != NULL) r->pass->finish(r->pass->user, result);
    *data = result;
    *bytes = bytes_of(r, end - row, true);
    return GNOMON_OK;
}

static gnomon_status take(void *user, int64_t segment, const void *data, int64_t bytes)
{
    const run *r = user;
    gnomon_row_source *source = r->source;
    const int64_t row = segment * source->segment_rows;
    const int64_t rows = gnomon_min(source->segment_rows, source->rows - row);
    const bool own = source->ranks == NULL || segment % source->ranks->comm.size == 0;
    if (own && data == place_of(r, row)) return GNOMON_OK;
    if (row >= source->rows || bytes != bytes_of(r, rows, own)) return bad_length(source, segment);
    return r->pass->take(r->pass->user, row, rows, data, own);
}

static gnomon_status run_alone(run *r)
{
    gnomon_row_source *source = r->source;
    gnomon_piece piece;
    for (int64_t segment = 0; segment * source->segment_rows < source->rows; segment++) {
        const void *data;
        int64_t bytes;
        GNOMON_TRY(make(r, segment, &data, &bytes));
        GNOMON_TRY(take(r, segment, data, bytes));
    }
    GNOMON_TRY(gnomon_row_source_next(source, &piece)); /* sees the end */
    GNOMON_FAIL_IF(piece.rows > 0, source->ctx, GNOMON_ERROR_SHAPE,
                   GNOMON_ARG("rows.next") " gave more rows than in the first pass");
    return GNOMON_OK;
}

static gnomon_status run_divided(run *r)
{
    gnomon_row_source *source = r->source;
    GNOMON_TRY(say(source, gnomon_comm_deal(source->ctx, &source->ranks->comm, make, take, r)));
    source->passes++;
    return GNOMON_OK;
}

gnomon_status gnomon_row_pass_run(gnomon_row_source *source, const gnomon_row_pass *pass,
                                  gnomon_status status)
{
    run r = {.source = source, .pass = pass};
    if (source->ranks == NULL)
        source->segment_rows = gnomon_row_segment(source->rows, source->piece_rows);
    if (status == GNOMON_OK) status = gnomon_row_source_rewind(source);
    status = gnomon_row_step_ready(source, status);
    if (status == GNOMON_OK) status = source->ranks == NULL ? run_alone(&r) : run_divided(&r);
    gnomon_free(source->ctx, r.buffer);
    return status;
}

/* ---- parts of sparse rows ---- */

typedef struct part_run {
    gnomon_row_source *source;
    const gnomon_part_pass *pass;
    /* of a pass that makes rows */
    gnomon_status (*rows)(void *user);
    void *user;
    const gnomon_tall *out;
    bool ran; /* on this rank */
} part_run;

static gnomon_status make_part(void *user, int64_t part, const void **data, int64_t *bytes)
{
    part_run *r = user;
    if (part >= gnomon_parts_in_use(r->source)) return GNOMON_OK;
    if (!r->ran) GNOMON_TRY(r->pass->run(r->pass->user, GNOMON_OK));
    r->ran = true;
    *data = r->pass->result(r->pass->user, (int)(part / r->source->ranks->comm.size));
    *bytes = r->pass->bytes;
    return GNOMON_OK;
}

static gnomon_status take_part(void *user, int64_t part, const void *data, int64_t bytes)
{
    const part_run *r = user;
    if (bytes != r->pass->bytes) return bad_length(r->source, part);
    return r->pass->take(r->pass->user, (int)part, data, part % r->source->ranks->comm.size == 0);
}

gnomon_status gnomon_part_pass_run(gnomon_row_source *source, const gnomon_part_pass *pass,
                                   gnomon_status status)
{
    part_run r = {.source = source, .pass = pass};
    if (source->ranks != NULL) {
        GNOMON_TRY(gnomon_row_step_ready(source, status));
        return say(source,
                   gnomon_comm_deal(source->ctx, &source->ranks->comm, make_part, take_part, &r));
    }
    GNOMON_TRY(pass->run(pass->user, status));
    for (int part = 0; part < gnomon_parts_in_use(source); part++)
        GNOMON_TRY(pass->take(pass->user, part, pass->result(pass->user, part), true));
    return GNOMON_OK;
}

static gnomon_status make_rows(void *user, int64_t rank, const void **data, int64_t *bytes)
{
    part_run *r = user;
    const gnomon_comm *comm = &r->source->ranks->comm;
    if (rank >= comm->size) return GNOMON_OK;
    if (r->source->own_rows > 0) GNOMON_TRY(r->rows(r->user));
    *data = rank > 0 ? r->out->data : "";
    *bytes =
        rank > 0 ? r->source->own_rows * r->out->cols * (int64_t)gnomon_tall_size(r->out->f64) : 0;
    return GNOMON_OK;
}

static gnomon_status take_rows(void *user, int64_t rank, const void *data, int64_t bytes)
{
    const part_run *r = user;
    const gnomon_row_source *source = r->source;
    const int64_t line = r->out->cols * (int64_t)gnomon_tall_size(r->out->f64);
    if (rank == 0) return GNOMON_OK;
    if (bytes != rows_of(source, (int)rank, source->ranks->comm.size) * line)
        return bad_length(source, rank);
    move_rows(source, (int)rank, r->out, (char *)(uintptr_t)data, true);
    return GNOMON_OK;
}

gnomon_status gnomon_part_rows_run(gnomon_row_source *source, gnomon_status (*rows)(void *user),
                                   void *user, const gnomon_tall *out, gnomon_status status)
{
    part_run r = {.source = source, .rows = rows, .user = user, .out = out};
    GNOMON_TRY(gnomon_row_step_ready(source, status));
    if (source->ranks == NULL) return rows(user);
    return say(source,
               gnomon_comm_deal(source->ctx, &source->ranks->comm, make_rows, take_rows, &r));
}

typedef struct sum {
    bool f64;
    int64_t count;
    const void *from;
    void *to;
} sum;

enum { SUM = 1 << 14 };

static void add_some(void *arg, int64_t task, int worker)
{
    (void)worker;
    const sum *s = arg;
    const int64_t end = gnomon_min((task + 1) * SUM, s->count);
    for (int64_t i = task * SUM; i < end; i++) {
        if (s->f64)
            ((double *)s->to)[i] += ((const double *)s->from)[i];
        else
            ((float *)s->to)[i] += ((const float *)s->from)[i];
    }
}

void gnomon_row_pass_sum(gnomon_context *ctx, bool f64, int64_t count, const void *from, void *to)
{
    sum s = {f64, count, from, to};
    gnomon_parallel(ctx, gnomon_ceil_div(count, SUM), add_some, &s);
}

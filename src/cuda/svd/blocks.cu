/* A matrix that stays on the host, or comes row by row: blocks of rows, two of them on the GPU.
 * While one is at work the next is on its way, and of a stream is read. How rows are cut into
 * blocks depends on the shape alone. A matrix of the caller's in the GPU's memory that is to be
 * less its mean comes from there in the same way, so that it is not copied. */
#include "cuda/svd/svd.h"

static const int64_t block_numbers = 1 << 25; /* of a block, at most */
static const int64_t least_rows = 128;

int64_t gcu_svd_block_rows(int64_t rows, int64_t cols)
{
    const int64_t fit = block_numbers / cols, share = rows / 8, wanted = fit < share ? fit : share;
    const int64_t whole = wanted / least_rows * least_rows;
    return whole < least_rows ? least_rows : whole;
}

gnomon_matrix gcu_svd_part(const gnomon_matrix *a, int64_t row, int64_t rows)
{
    return gcu_part(a, row, rows, 0, a->cols);
}

gnomon_status gcu_svd_blocks_open(gcu_svd *v)
{
    gcu_svd_blocks *b = &v->blocks;
    const gnomon_matrix *a = v->job->a;
    b->rows = gcu_svd_block_rows(v->m, v->n);
    const gnomon_matrix there = gcu_packed(a, b->rows, v->n);
    gnomon_status status = GNOMON_OK;
    if (!v->job->rows) status = gcu_place_of(v->s, a, "a", &b->place, v->why);
    const bool comes = v->job->rows || b->place != GCU_DEVICE;
    for (int i = 0; i < 2 && status == GNOMON_OK && comes; i++)
        status = gcu_svd_alloc(v, gcu_packed_bytes(&there), &b->raw[i]);
    if (status != GNOMON_OK) return status;
    for (int i = 0; i < 2; i++) {
        GCU_TRY(v->why, cudaEventCreateWithFlags(&b->arrived[i], cudaEventDisableTiming));
        GCU_TRY(v->why, cudaEventCreateWithFlags(&b->idle[i], cudaEventDisableTiming));
        GCU_TRY(v->why,
                cudaEventRecord(b->idle[i], v->stream)); /* the memory is there from then on */
        if (v->job->rows)
            GCU_TRY(v->why,
                    cudaHostAlloc(&b->page[i],
                                  (size_t)(b->rows * v->n) * gnomon_dtype_size(a->dtype), 0));
    }
    const bool as_they_come = a->dtype == gcu_svd_type(v) && !v->job->options->center;
    return as_they_come ? GNOMON_OK : gcu_svd_blocks_converted(v);
}

gnomon_matrix gcu_svd_converted_block(const gcu_svd *v, const gnomon_matrix *block)
{
    gnomon_matrix like = *block;
    like.dtype = gcu_svd_type(v);
    like = gcu_packed(&like, block->rows, block->cols);
    like.data = v->blocks.converted;
    return like;
}

gnomon_status gcu_svd_blocks_converted(gcu_svd *v)
{
    gcu_svd_blocks *b = &v->blocks;
    gnomon_matrix most = *v->job->a;
    most.rows = b->rows;
    most = gcu_svd_converted_block(v, &most);
    return b->converted ? GNOMON_OK : gcu_svd_alloc(v, gcu_packed_bytes(&most), &b->converted);
}

void gcu_svd_blocks_close(gcu_svd *v)
{
    gcu_svd_blocks *b = &v->blocks;
    cudaStreamSynchronize(v->s->in); /* a call that failed may have left copies on their way */
    for (int i = 0; i < 2; i++) {
        if (b->arrived[i]) cudaEventDestroy(b->arrived[i]);
        if (b->idle[i]) cudaEventDestroy(b->idle[i]);
        if (b->page[i]) cudaFreeHost(b->page[i]);
    }
}

/* Fills the page-locked memory with the next rows. */
static gnomon_status read_rows(gcu_svd *v, const gnomon_matrix *to, int64_t row)
{
    const gnomon_svd_rows *stream = v->job->rows;
    for (int64_t have = 0; have < to->rows;) {
        const gnomon_matrix rest = gcu_svd_part(to, have, to->rows - have);
        int64_t got = 0;
        if (v->why.size) v->why.text[0] = 0; /* a call back leaves its own text */
        const gnomon_status status = stream->next(stream->user, &rest, &got);
        if (status != GNOMON_OK) return status;
        if (got < 0 || got > rest.rows)
            return gcu_fail(v->why, GNOMON_ERROR_ARGUMENT,
                            "rows.next gave %lld rows; at most %lld were asked for", (long long)got,
                            (long long)rest.rows);
        if (got == 0)
            return gcu_fail(v->why, GNOMON_ERROR_SHAPE,
                            "rows.next gave %lld rows in all; %lld were due",
                            (long long)(row + have), (long long)v->m);
        have += got;
    }
    return GNOMON_OK;
}

/* Enqueues the copy of a block to raw[i]; *to tells how it lies there. */
static gnomon_status fetch(gcu_svd *v, int64_t row, int64_t rows, int i, gnomon_matrix *to)
{
    gcu_svd_blocks *b = &v->blocks;
    const gnomon_matrix from = gcu_svd_part(v->job->a, row, rows);
    gnomon_status status = GNOMON_OK;
    *to = from;
    if (!v->job->rows && b->place == GCU_DEVICE) return GNOMON_OK; /* it is there */
    *to = gcu_packed(&from, rows, v->n);
    to->data = b->raw[i];
    if (v->job->rows) {
        const size_t size = gnomon_dtype_size(from.dtype), line = (size_t)v->n * size;
        const gnomon_matrix page = gnomon_matrix_rowmajor(b->page[i], from.dtype, rows, v->n);
        GCU_TRY(v->why, cudaEventSynchronize(b->arrived[i])); /* what it held has gone */
        status = read_rows(v, &page, row);
        if (status != GNOMON_OK) return status;
        GCU_TRY(v->why, cudaStreamWaitEvent(v->s->in, b->idle[i], 0));
        GCU_TRY(v->why, cudaMemcpy2DAsync(to->data, (size_t)to->row_stride * size, page.data, line,
                                          line, (size_t)rows, cudaMemcpyHostToDevice, v->s->in));
    } else {
        const gcu_transfer transfer = gcu_transfer_of(v->job);
        GCU_TRY(v->why, cudaStreamWaitEvent(v->s->in, b->idle[i], 0));
        status = gcu_upload(v->s, transfer, &from, b->place, to, v->s->in, v->why);
        if (status != GNOMON_OK) return status;
    }
    GCU_TRY(v->why, cudaEventRecord(b->arrived[i], v->s->in));
    return GNOMON_OK;
}

/* The block of the scaled matrix, less its mean, in the work's type. */
static gnomon_status convert(gcu_svd *v, const gnomon_matrix *raw, gnomon_matrix *block)
{
    *block = *raw;
    /* Of a block that did not come, but is where the caller has it, the strides may be any. */
    const bool packed = v->job->rows || v->blocks.place != GCU_DEVICE;
    if (packed && raw->dtype == gcu_svd_type(v) && v->job->exponent == 0 && !v->mean)
        return GNOMON_OK;
    *block = gcu_svd_converted_block(v, raw);
    return gcu_svd_centered_copy(v, raw, block);
}

gnomon_status gcu_svd_each(gcu_svd *v, gcu_svd_block_fn fn, void *arg)
{
    gcu_svd_blocks *b = &v->blocks;
    if (!b->rows) return fn(v, &v->a, 0, arg);
    gnomon_status status = GNOMON_OK;
    if (v->job->rows && b->begun) {
        if (v->why.size) v->why.text[0] = 0;
        status = v->job->rows->rewind(v->job->rows->user);
    }
    b->begun = true;
    int i = 0;
    for (int64_t row = 0; row < v->m && status == GNOMON_OK; row += b->rows, i ^= 1) {
        const int64_t rows = b->rows < v->m - row ? b->rows : v->m - row;
        gnomon_matrix raw, block;
        status = fetch(v, row, rows, i, &raw);
        if (status != GNOMON_OK) break;
        GCU_TRY(v->why, cudaStreamWaitEvent(v->stream, b->arrived[i], 0));
        status = convert(v, &raw, &block);
        if (status == GNOMON_OK) status = fn(v, &block, row, arg);
        GCU_TRY(v->why, cudaEventRecord(b->idle[i], v->stream));
    }
    return status;
}

#include "cuda/project/pieces.h"

extern "C" {
#include "base/arithmetic.h"
#include "operator/kinds/kinds.h"
}

static gcu_reach reach_of(const gnomon_sketch_job *job)
{
    const gnomon_operator *op = job->op;
    if (op->blocks == 1) return {0, 0, job->row, job->rows};
    gcu_reach r = {gnomon_block_of_row(op, job->row),
                   gnomon_block_of_row(op, job->row + job->rows - 1), 0, op->factor[0].rows};
    if (r.first != r.last) return r;
    r.row = job->row - gnomon_block_first_row(op, r.first);
    r.rows = job->rows;
    return r;
}

/* Columns of a block: all of them when there is one. */
static int64_t block_cols(const gnomon_sketch_job *job)
{
    return job->op->blocks == 1 ? job->op->descriptor.d : job->op->block_cols;
}

static gcu_out out_of(const gnomon_sketch_job *job, const gnomon_matrix *y)
{
    const gnomon_operator *op = job->op;
    gcu_out out = {};
    out.y = y->data;
    out.dtype = y->dtype;
    out.row_stride = y->row_stride;
    out.col_stride = y->col_stride;
    out.k = op->descriptor.k;
    out.r = op->blocks;
    out.row = job->row;
    out.rows = job->rows;
    out.factor_most = out.factor_least = job->alpha * op->scale;
    if (op->blocks > 1 && op->descriptor.k % op->blocks != 0) {
        const int64_t rows = op->factor[0].rows; /* ceil(k / r) */
        out.factor_most = job->alpha * gnomon_simple_scale(&op->factor[0], rows);
        out.factor_least = job->alpha * gnomon_simple_scale(&op->factor[0], rows - 1);
    }
    out.beta = job->beta;
    out.begins = out.finishes = true;
    return out;
}

static gcu_points points_of(const gcu_pieces *p, const gcu_piece *piece, const gcu_piece_call *call)
{
    const gnomon_matrix *x = &call->x;
    gcu_points points = {};
    const int64_t ahead = piece->col - call->x_col; /* columns of x before the piece, or fewer */
    points.data = reinterpret_cast<const void *>(
        reinterpret_cast<uintptr_t>(x->data) +
        (uintptr_t)(ahead * x->col_stride * (int64_t)gnomon_dtype_size(x->dtype)));
    points.dtype = x->dtype;
    points.row_stride = x->row_stride;
    points.col_stride = x->col_stride;
    points.block_stride = block_cols(p->job) * x->col_stride;
    points.n = x->rows;
    points.blocks = piece->blocks;
    points.block_cols = piece->cols;
    points.first = gnomon_max(-ahead, 0);
    points.end = gnomon_min(piece->blocks * piece->cols, x->cols - ahead);
    if (points.end < points.first) points.end = points.first;
    return points;
}

static gcu_task task_of(const gcu_pieces *p, const gcu_piece *piece, const gcu_piece_call *call)
{
    gcu_task t = {};
    t.a = &p->job->op->factor[0];
    t.row = p->reach.row;
    t.rows = p->reach.rows;
    t.col = piece->in_block;
    t.x = points_of(p, piece, call);
    t.out = out_of(p->job, &call->y);
    t.out.block = piece->block;
    t.out.begins = piece->begins;
    t.out.finishes = piece->finishes;
    t.out.carry = piece->begins && piece->finishes ? nullptr : call->carry;
    t.f64 = p->job->f64;
    t.gpu = call->gpu;
    t.stream = call->stream;
    t.work = call->work;
    t.work_bytes = call->work_bytes;
    return t;
}

static gcu_cascade_task cascade_of(const gcu_pieces *p, const gcu_piece *piece,
                                   const gcu_piece_call *call)
{
    gcu_cascade_task t = {};
    t.op = p->job->op;
    t.x = points_of(p, piece, call);
    t.out = out_of(p->job, &call->y);
    t.f64 = p->job->f64;
    t.gpu = call->gpu;
    t.stream = call->stream;
    t.work = call->work;
    t.work_bytes = call->work_bytes;
    return t;
}

bool gcu_pieces_open(gcu_pieces *p, const gcu_state *s, const gnomon_sketch_job *job,
                     const gnomon_matrix *x, const gnomon_matrix *y, gcu_why why)
{
    *p = gcu_pieces{};
    p->job = job;
    p->reach = reach_of(job);
    p->granule = job->op->descriptor.d;
    gcu_piece_call call = {};
    call.x = *x;
    call.y = *y;
    call.x_col = job->col;
    call.gpu = &s->gpu;
    gcu_piece all = {};
    all.blocks = job->op->blocks;
    all.cols = block_cols(job);
    all.begins = all.finishes = true;
    if (job->op->levels > 1) {
        const gcu_cascade_task t = cascade_of(p, &all, &call);
        return gcu_cascade_supports(&t, why.text, why.size);
    }
    const gcu_task t = task_of(p, &all, &call);
    p->family = gcu_choose(&t, why.text, why.size);
    if (!p->family) return false;
    p->granule = gnomon_min(p->family->granule(t.a), all.cols);
    return true;
}

int64_t gcu_piece_width(const gcu_pieces *p, int64_t wanted)
{
    const int64_t block = block_cols(p->job);
    if (wanted >= block) return wanted / block * block;
    return wanted > p->granule ? wanted / p->granule * p->granule : p->granule;
}

bool gcu_next_piece(const gcu_pieces *p, int64_t width, int64_t *at, gcu_piece *piece)
{
    const gnomon_sketch_job *job = p->job;
    const int64_t c = block_cols(job);
    const int64_t begin = gnomon_max(job->col, p->reach.first * c);
    const int64_t end = gnomon_min(job->col + job->x->cols, (p->reach.last + 1) * c);
    if (begin >= end) return false;
    const bool inside = job->op->blocks == 1 || width < c;
    if (*at < 0) *at = begin / c * c + (inside ? begin % c / p->granule * p->granule : 0);
    if (*at >= end) return false;
    *piece = gcu_piece{};
    piece->col = *at;
    piece->block = *at / c;
    piece->in_block = *at % c;
    if (!inside) {
        piece->blocks = gnomon_min(width / c, (end - *at + c - 1) / c);
        piece->cols = c;
        piece->begins = piece->finishes = true;
        *at += piece->blocks * c;
        return true;
    }
    const int64_t block_begin = gnomon_max(begin, piece->block * c);
    const int64_t block_end = gnomon_min(end, (piece->block + 1) * c);
    piece->blocks = 1;
    const int64_t granules = (block_end - *at + p->granule - 1) / p->granule;
    piece->cols = gnomon_min(gnomon_min(width, c - piece->in_block), granules * p->granule);
    piece->begins = *at <= block_begin;
    piece->finishes = *at + piece->cols >= block_end;
    *at = piece->finishes ? (piece->block + 1) * c : *at + piece->cols;
    return true;
}

size_t gcu_piece_work(const gcu_pieces *p, const gcu_piece *piece, const gcu_piece_call *call,
                      bool least)
{
    if (!p->family) {
        const gcu_cascade_task t = cascade_of(p, piece, call);
        return least ? gcu_cascade_least_work(&t) : gcu_cascade_best_work(&t);
    }
    const gcu_task t = task_of(p, piece, call);
    return least ? p->family->least_work(&t) : p->family->best_work(&t);
}

cudaError_t gcu_run_piece(const gcu_pieces *p, const gcu_piece *piece, const gcu_piece_call *call)
{
    if (!p->family) {
        const gcu_cascade_task t = cascade_of(p, piece, call);
        return gcu_cascade(&t);
    }
    const gcu_task t = task_of(p, piece, call);
    return p->family->run(&t);
}

cudaError_t gcu_scale_unreached(const gcu_pieces *p, const gnomon_matrix *y, cudaStream_t stream)
{
    const gnomon_sketch_job *job = p->job;
    const gnomon_operator *op = job->op;
    const int64_t c = block_cols(job);
    const int64_t begin = gnomon_max(job->col, p->reach.first * c);
    const int64_t end = gnomon_min(job->col + job->x->cols, (p->reach.last + 1) * c);
    if (begin >= end) return gcu_scale(y, job->beta, stream);
    if (op->blocks == 1) return cudaSuccess;
    const int64_t size = (int64_t)gnomon_dtype_size(y->dtype);
    const int64_t from = gnomon_block_first_row(op, begin / c) - job->row;
    const int64_t to = gnomon_block_first_row(op, (end + c - 1) / c) - job->row;
    gnomon_matrix part = *y;
    part.cols = gnomon_max(from, 0);
    const cudaError_t error = gcu_scale(&part, job->beta, stream);
    if (error != cudaSuccess || to >= y->cols) return error;
    part.cols = y->cols - to;
    part.data = static_cast<char *>(y->data) + to * y->col_stride * size;
    return gcu_scale(&part, job->beta, stream);
}

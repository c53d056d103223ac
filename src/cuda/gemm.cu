/* Products of fp32 and fp16 matrices: what a call becomes. */
#include "cuda/gemm_launch.h"

#include "cuda/state.h"

#include <string.h>

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static bool takes(const gcu_gemm *g)
{
    const bool a16 = g->a.dtype == GNOMON_F16, b16 = g->b.dtype == GNOMON_F16;
    if ((!a16 && g->a.dtype != GNOMON_F32) || (!b16 && g->b.dtype != GNOMON_F32)) return false;
    if (g->m < 0 || g->n < 0 || g->k < 0) return false;
    return g->form == GCU_GEMM_THREE ? !a16 && !b16 : a16 != b16;
}

static bool empty(const gcu_gemm *g)
{
    return g->m == 0 || g->n == 0 || g->k == 0 || g->alpha == 0.0f;
}

/* A becomes the fp32 side, B the one that is packed. */
static gcu_gemm_launch launch_of(const gcu_gemm *g)
{
    gcu_gemm_launch l;
    memset(&l, 0, sizeof l);
    const bool turned = g->form == GCU_GEMM_THREE ? g->m < g->n : g->a.dtype == GNOMON_F16;
    const gcu_gemm_view &a = turned ? g->b : g->a, &b = turned ? g->a : g->b;
    l.m = turned ? g->n : g->m;
    l.n = turned ? g->m : g->n;
    l.k = g->k;
    l.a = static_cast<const float *>(a.data);
    l.a_row = turned ? a.col_stride : a.row_stride;
    l.a_col = turned ? a.row_stride : a.col_stride;
    l.b = b.data;
    l.b_dtype = b.dtype;
    l.b_row = turned ? b.col_stride : b.row_stride;
    l.b_col = turned ? b.row_stride : b.col_stride;
    l.c = g->c;
    l.c_row = turned ? g->c_col_stride : g->c_row_stride;
    l.c_col = turned ? g->c_row_stride : g->c_col_stride;
    l.alpha = g->alpha;
    l.beta = g->beta;
    l.chunks = ceil_div(l.k, GCU_GEMM_CHUNK);
    l.mark_rows = ceil_div(l.m, GCU_GEMM_MARK_ROWS);
    l.mark_cols = ceil_div(l.n, GCU_GEMM_MARK_COLS);
    return l;
}

/* Small products are cut along k, into parts of at least 512, until there is work for a large GPU;
 * by the product's shape alone. */
static void split(gcu_gemm_launch *l, int64_t tiles)
{
    const int64_t wanted = 128 / tiles, most = l->chunks / 8;
    const int64_t splits = wanted < most ? wanted : most;
    l->split_chunks = splits > 1 ? ceil_div(l->chunks, splits) : l->chunks;
    l->splits = ceil_div(l->chunks, l->split_chunks);
}

/* Chooses the way (Hopper's has 'columns' to a block) and lays out the work; returns its bytes. */
static size_t plan(const gcu_gemm *g, gcu_gemm_launch *l, int *columns, uint8_t *work)
{
    const bool three = g->form == GCU_GEMM_THREE;
    *columns = gcu_gemm_hopper_columns(*l, g->form, g->gpu);
    const int64_t width = *columns ? *columns : 64;
    l->quads = *columns && l->a_col == 1;
    l->cols = ceil_div(l->n, width) * width;
    split(l, ceil_div(l->m, 128) * (l->cols / width));
    size_t at = 0;
    const auto take = [&](size_t bytes) {
        uint8_t *part = work + at;
        at += (bytes + 255) / 256 * 256;
        return part;
    };
    const size_t packed = (size_t)l->chunks * (size_t)l->cols;
    l->packed = take(packed * 2 * GCU_GEMM_CHUNK);
    l->packed_low = take(three ? packed * 2 * GCU_GEMM_CHUNK : 0);
    l->scales = reinterpret_cast<float *>(take(three ? packed * 4 : 0));
    l->marks = take((size_t)l->mark_rows * (size_t)l->mark_cols);
    l->parts = reinterpret_cast<float *>(
        take(l->splits > 1 ? (size_t)l->splits * (size_t)l->m * (size_t)l->n * 4 : 0));
    return at;
}

size_t gcu_gemm_work(const gcu_gemm *g)
{
    if (!takes(g) || empty(g)) return 0;
    gcu_gemm_launch l = launch_of(g);
    int columns;
    return plan(g, &l, &columns, nullptr);
}

cudaError_t gcu_gemm_run(const gcu_gemm *g, void *work, size_t work_bytes, cudaStream_t stream)
{
    if (!takes(g)) return cudaErrorInvalidValue;
    if (empty(g)) {
        gnomon_matrix c;
        memset(&c, 0, sizeof c);
        c.data = g->c;
        c.dtype = GNOMON_F32;
        c.rows = g->m;
        c.cols = g->n;
        c.row_stride = g->c_row_stride;
        c.col_stride = g->c_col_stride;
        return gcu_scale(&c, g->beta, stream);
    }
    gcu_gemm_launch l = launch_of(g);
    int columns;
    if (plan(g, &l, &columns, static_cast<uint8_t *>(work)) > work_bytes)
        return cudaErrorInvalidValue;
    cudaError_t error = gcu_gemm_pack(l, g->form == GCU_GEMM_THREE, stream);
    if (error == cudaSuccess)
        error = columns ? gcu_gemm_hopper(l, g->form, columns, g->gpu, stream)
                        : gcu_gemm_mma(l, g->form, g->gpu, stream);
    if (error == cudaSuccess && l.splits > 1) error = gcu_gemm_add(l, stream);
    if (error == cudaSuccess) error = gcu_gemm_redo(l, g->gpu, stream);
    return error;
}

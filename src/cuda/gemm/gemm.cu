/* Products of fp32 and fp16 matrices: what a call becomes. */
#include "base/arithmetic.h"
#include "cuda/gemm/launch.h"
#include "cuda/gemm/skinny.h"

#include "cuda/runtime/state.h"

#include <string.h>

static bool supported(const gcu_gemm *g)
{
    const bool a16 = g->a.dtype == GNOMON_F16, b16 = g->b.dtype == GNOMON_F16;
    if ((!a16 && g->a.dtype != GNOMON_F32) || (!b16 && g->b.dtype != GNOMON_F32)) return false;
    if (g->m < 0 || g->n < 0 || g->k < 0) return false;
    if (g->b_made && (a16 || g->b_made->rows < g->n)) return false;
    if (g->b_packed && (a16 || !b16)) return false;
    const bool by_rows = g->a.col_stride != 1;
    if (g->a_run && (a16 || g->a_run % (by_rows ? GCU_GEMM_RUN_ROWS : GCU_GEMM_CHUNK) ||
                     (by_rows ? g->m : g->k) % g->a_run))
        return false;
    return g->form != GCU_GEMM_THREE || (!a16 && !b16);
}

static bool empty(const gcu_gemm *g)
{
    return g->m == 0 || g->n == 0 || g->k == 0 || g->alpha == 0.0;
}

struct product {
    gcu_gemm_launch l;
    gcu_gemm_form form;
    int columns;        /* of a block in Hopper's own way; 0 in the other */
    bool skinny, three; /* or in one of those of few columns (gemm/skinny.h) */
    bool presplit;      /* A is cut once for all columns */
    bool to_f32;        /* A is to be converted from fp16 */
    bool swapped;       /* A and B have changed places */
    gcu_gemm_view half; /* A as it is then */
    float *converted;
    int64_t whole_m, whole_n;
};

/* A becomes the fp32 side, B the one that is packed. */
static product product_of(const gcu_gemm *g)
{
    product p;
    memset(&p, 0, sizeof p);
    const bool same = g->a.dtype == g->b.dtype;
    p.to_f32 = same && g->a.dtype == GNOMON_F16;
    p.form = !p.to_f32 && same && g->form != GCU_GEMM_TF32 ? GCU_GEMM_THREE : g->form;
    const int64_t m = g->whole_m ? g->whole_m : g->m, n = g->whole_n ? g->whole_n : g->n;
    const bool swapped = !g->a_run && !g->b_made &&
                         (!same      ? g->a.dtype == GNOMON_F16
                          : p.to_f32 ? m > n
                                     : m < n);
    const gcu_gemm_view &a = swapped ? g->b : g->a, &b = swapped ? g->a : g->b;
    gcu_gemm_launch *l = &p.l;
    p.swapped = swapped;
    p.whole_m = swapped ? n : m;
    p.whole_n = swapped ? m : n;
    l->m = swapped ? g->n : g->m;
    l->n = swapped ? g->m : g->n;
    l->k = g->k;
    l->a = static_cast<const float *>(a.data);
    l->a_row = swapped ? a.col_stride : a.row_stride;
    l->a_col = swapped ? a.row_stride : a.col_stride;
    l->a_run = g->a_run;
    l->a_run_stride = g->a_run_stride;
    if (p.to_f32) {
        p.half = {a.data, a.dtype, l->a_row, l->a_col};
        l->a = nullptr; /* aligned, as it will be */
        l->a_row = gnomon_ceil_div(l->k, 4) * 4;
        l->a_col = 1;
    }
    l->b = g->b_made || g->b_packed ? nullptr : b.data;
    l->b_dtype = b.dtype;
    l->b_row = swapped ? b.col_stride : b.row_stride;
    l->b_col = swapped ? b.row_stride : b.col_stride;
    l->c = g->c;
    l->c64 = g->c64;
    l->c_row = swapped ? g->c_col_stride : g->c_row_stride;
    l->c_col = swapped ? g->c_row_stride : g->c_col_stride;
    l->alpha = g->alpha;
    l->beta = g->beta;
    l->chunks = gnomon_ceil_div(l->k, GCU_GEMM_CHUNK);
    l->mark_rows = gnomon_ceil_div(l->m, GCU_GEMM_MARK_ROWS);
    l->mark_cols = gnomon_ceil_div(l->n, GCU_GEMM_MARK_COLS);
    return p;
}

/* Small products are cut along k, into parts of at least 512, until there is work for a large GPU;
 * by the product's shape alone. */
static void split(gcu_gemm_launch *l, int64_t tiles)
{
    const int64_t wanted = 128 / tiles, most = l->chunks / 8;
    const int64_t splits = wanted < most ? wanted : most;
    l->split_chunks = splits > 1 ? gnomon_ceil_div(l->chunks, splits) : l->chunks;
    l->splits = gnomon_ceil_div(l->chunks, l->split_chunks);
}

/* Chooses the way and lays out the work; returns its bytes. */
static size_t plan(const gcu_gemm *g, product *p, uint8_t *work)
{
    gcu_gemm_launch *l = &p->l;
    const bool both = l->b_dtype == GNOMON_F32;
    size_t at = 0;
    const auto carve = [&](size_t bytes) {
        uint8_t *part = work + at;
        at += (bytes + 255) / 256 * 256;
        return part;
    };
    if (p->to_f32) {
        p->converted = reinterpret_cast<float *>(carve((size_t)l->m * (size_t)l->a_row * 4));
        l->a = p->converted;
    }
    const bool halves = g->b_made || g->b_packed; /* and not what TF32's own way takes */
    p->columns = p->form == GCU_GEMM_TF32 && halves
                     ? 0
                     : gcu_gemm_hopper_columns(*l, p->whole_n, p->form, g->gpu);
    p->skinny = p->columns && g->b_made && !both && p->form == GCU_GEMM_SCALED &&
                gcu_gemm_is_skinny(*l, g->b_made, p->whole_n, g->gpu);
    if (p->skinny) {
        gcu_gemm_skinny_split(l, p->whole_m);
        l->parts = reinterpret_cast<float *>(
            carve((size_t)l->splits * (size_t)l->m * (size_t)l->n * sizeof *l->parts));
        l->squares_count =
            g->a_squares ? gnomon_ceil_div(l->m, 128) * l->splits * GCU_GEMM_SKINNY_SQUARES : 0;
        double *squares = reinterpret_cast<double *>(carve((size_t)l->squares_count * 8));
        l->squares = l->squares_count ? squares : nullptr;
        return at;
    }
    p->three = p->columns && both && p->form == GCU_GEMM_THREE && !g->b_made &&
               gcu_gemm_is_skinny_three(*l, p->whole_m, p->whole_n, g->gpu);
    if (p->three) {
        carve(1); /* none is a product that is not taken */
        return at;
    }
    const int64_t width = p->columns ? p->columns : 64;
    l->quads = p->columns && l->a_col == 1;
    l->tf32 = p->columns && p->form == GCU_GEMM_TF32;
    l->cols = gnomon_ceil_div(l->n, width) * width;
    split(l, gnomon_ceil_div(p->whole_m, 128) * gnomon_ceil_div(p->whole_n, width));
    p->presplit = p->form == GCU_GEMM_SCALED && !halves && l->splits == 1 &&
                  gcu_gemm_is_presplit(*l, p->whole_m, p->whole_n, p->columns, g->gpu);
    const size_t packed = (size_t)l->chunks * (size_t)l->cols;
    l->packed = g->b_packed ? static_cast<uint8_t *>(const_cast<void *>(g->b_packed))
                            : carve(packed * (l->tf32 ? 4 : 2) * GCU_GEMM_CHUNK);
    l->packed_low = carve(both ? packed * 2 * GCU_GEMM_CHUNK : 0);
    l->scales = reinterpret_cast<float *>(carve(both ? packed * 4 : 0));
    l->marks = carve((size_t)l->mark_rows * (size_t)l->mark_cols);
    if (p->presplit) { /* an even number of blocks, since they go in pairs */
        l->presplit_blocks = gnomon_ceil_div(l->m, 2 * GCU_GEMM_PRESPLIT_ROWS) * 2;
        l->mixed = reinterpret_cast<unsigned *>(
            carve((size_t)(l->presplit_blocks + 2) * sizeof *l->mixed));
        l->presplit_rests = gcu_gemm_presplit_rests(*l);
        l->presplit = carve(gcu_gemm_presplit_bytes(*l));
        l->rests = carve(gcu_gemm_rests_bytes(*l));
    }
    l->parts = reinterpret_cast<float *>(
        carve(l->splits > 1 ? (size_t)l->splits * (size_t)l->m * (size_t)l->n * 4 : 0));
    const bool sums_squares = p->columns && p->columns <= 128 && l->a_col == 1 && !p->swapped &&
                              !p->to_f32 && p->form != GCU_GEMM_FP16 && p->form != GCU_GEMM_TF32;
    l->squares_count =
        g->a_squares && sums_squares
            ? gnomon_ceil_div(l->m, 256) * (l->cols / width) * l->splits * GCU_GEMM_SQUARES_EACH
            : 0;
    double *squares = reinterpret_cast<double *>(carve((size_t)l->squares_count * 8));
    l->squares = l->squares_count ? squares : nullptr;
    return at;
}

size_t gcu_gemm_work(const gcu_gemm *g)
{
    if (!supported(g) || empty(g)) return 0;
    product p = product_of(g);
    const size_t bytes = plan(g, &p, nullptr);
    return g->a_run && !p.columns ? 0 : bytes;
}

bool gcu_gemm_alike(const gcu_gemm *g, const gcu_gemm *other)
{
    if (!supported(g) || !supported(other) || empty(g) || empty(other)) return false;
    product p = product_of(g), q = product_of(other);
    plan(g, &p, nullptr);
    plan(other, &q, nullptr);
    return p.form == q.form && p.columns == q.columns && p.skinny == q.skinny &&
           p.three == q.three && p.presplit == q.presplit && p.to_f32 == q.to_f32 &&
           p.swapped == q.swapped && p.l.splits == q.l.splits &&
           p.l.split_chunks == q.l.split_chunks && p.l.quads == q.l.quads && p.l.tf32 == q.l.tf32 &&
           (p.l.a_col == 1) == (q.l.a_col == 1) && (p.l.a_row == 1) == (q.l.a_row == 1);
}

bool gcu_gemm_packing_of(const gcu_gemm *g, gcu_gemm_packing *packing)
{
    if (!supported(g) || empty(g) || g->a.dtype != GNOMON_F32 || g->b.dtype != GNOMON_F16)
        return false;
    product p = product_of(g);
    plan(g, &p, nullptr);
    *packing = {p.l.chunks, p.l.cols, p.l.quads};
    return true;
}

bool gcu_gemm_sums_squares(const gcu_gemm *g)
{
    if (!supported(g) || empty(g)) return false;
    double any;
    gcu_gemm scanning = *g;
    scanning.a_squares = &any;
    product p = product_of(g);
    plan(&scanning, &p, nullptr);
    return p.l.squares_count > 0;
}

static cudaError_t scale(const gcu_gemm *g, cudaStream_t stream)
{
    gnomon_matrix c;
    memset(&c, 0, sizeof c);
    c.data = g->c64 ? static_cast<void *>(g->c64) : g->c;
    c.dtype = g->c64 ? GNOMON_F64 : GNOMON_F32;
    c.rows = g->m;
    c.cols = g->n;
    c.row_stride = g->c_row_stride;
    c.col_stride = g->c_col_stride;
    return gcu_scale(&c, g->beta, stream);
}

cudaError_t gcu_gemm_run(const gcu_gemm *g, void *work, size_t work_bytes, cudaStream_t stream)
{
    if (!supported(g)) return cudaErrorInvalidValue;
    if (empty(g)) return scale(g, stream);
    product p = product_of(g);
    const gcu_gemm_launch &l = p.l;
    if (plan(g, &p, static_cast<uint8_t *>(work)) > work_bytes || (g->a_run && !p.columns))
        return cudaErrorInvalidValue;
    cudaError_t error = cudaSuccess;
    if (p.skinny) return gcu_gemm_skinny(l, g->b_made, g->a_squares, g->gpu, stream);
    if (p.three) return gcu_gemm_skinny_three(l, g->gpu, stream);
    if (p.to_f32) error = gcu_gemm_to_f32(&p.half, l.m, l.k, p.converted, l.a_row, stream);
    if (error == cudaSuccess)
        error = g->b_packed
                    ? cudaMemsetAsync(l.marks, 0, (size_t)(l.mark_rows * l.mark_cols), stream)
                : p.presplit ? gcu_gemm_presplit(l, g->gpu, stream)
                : g->b_made  ? gcu_gemm_make(l, g->b_made, g->gpu, stream)
                             : gcu_gemm_pack(l, stream);
    if (error == cudaSuccess)
        error = p.columns ? gcu_gemm_hopper(l, p.form, p.columns, g->gpu, stream)
                          : gcu_gemm_mma(l, p.form, g->gpu, stream);
    if (error == cudaSuccess && l.splits > 1) error = gcu_gemm_add(l, stream);
    if (error == cudaSuccess) error = gcu_gemm_redo(l, g->gpu, stream);
    if (error == cudaSuccess && l.squares) error = gcu_gemm_add_squares(l, g->a_squares, stream);
    return error;
}

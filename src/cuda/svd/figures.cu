/* Numbers of the work's type: their squares and largest, the scaling that follows, scaled copies.
 */
#include "cuda/svd/f64.h"

#include <math.h>

/* to = (from - mean) * 2^-exponent, in place where both are the same; mean NULL: none. */
static gnomon_status copy_less(gcu_svd *v, const gnomon_matrix *from, const double *mean,
                               int exponent, const gnomon_matrix *to)
{
    const bool across = gcu_svd_is_across(to);
    const int64_t pitch = across ? to->col_stride : to->row_stride;
    if (v->f64)
        GCU_TRY(v->why, gcu_svd_f64_convert(from, mean, exponent, across, pitch,
                                            static_cast<double *>(to->data), v->stream));
    else
        GCU_TRY(v->why, gcu_svd_convert(from, mean, exponent, across, pitch,
                                        static_cast<float *>(to->data), v->stream));
    return GNOMON_OK;
}

gnomon_status gcu_svd_scaled_copy(gcu_svd *v, const gnomon_matrix *from, int exponent,
                                  const gnomon_matrix *to)
{
    return copy_less(v, from, nullptr, exponent, to);
}

gnomon_status gcu_svd_centered_copy(gcu_svd *v, const gnomon_matrix *from, const gnomon_matrix *to)
{
    return copy_less(v, from, v->mean, v->job->exponent, to);
}

gnomon_status gcu_svd_alloc_figures(gcu_svd *v, int64_t units, void **figures)
{
    return gcu_svd_alloc(v,
                         v->f64 ? (GCU_SVD_F64_PARTS + 1) * sizeof(gcu_svd_f64_figures)
                                : (size_t)(units + 1) * sizeof(gcu_svd_figures),
                         figures);
}

/* What was seen of fp32 numbers: NaN is the largest of them, then infinity. */
static double largest_of(const gcu_svd_figures *f)
{
    float most;
    memcpy(&most, &f->most, sizeof most);
    return (double)most;
}

/* The figures of fp32 numbers, by several GPUs where these have them. */
static gnomon_status scan_f32(gcu_svd *v, const gnomon_matrix *a, int64_t lines, int64_t length,
                              int64_t pitch, gcu_svd_figures *total)
{
    if (a->data == v->a.data && a->rows == v->m && a->cols == v->n) {
        bool done = false;
        const gnomon_status status = gcu_svd_shares_scan(v, lines, length, pitch, total, &done);
        if (status != GNOMON_OK || done) return status;
    }
    GCU_TRY(v->why, gcu_svd_scan(static_cast<const float *>(a->data), lines, length, pitch,
                                 total + 1, total, v->stream));
    return GNOMON_OK;
}

gnomon_status gcu_svd_add_figures(gcu_svd *v, const gnomon_matrix *a, gcu_svd_scan_state *l)
{
    const bool across = gcu_svd_is_across(a);
    int64_t lines = across ? a->cols : a->rows, length = across ? a->rows : a->cols;
    const int64_t pitch = across ? a->col_stride : a->row_stride;
    if (pitch == length) { /* no gaps: one line */
        length *= lines;
        lines = 1;
    }
    gcu_svd_figures f32 = {};
    gcu_svd_f64_figures f64 = {};
    if (v->f64) {
        GCU_TRY(v->why,
                gcu_svd_f64_scan(static_cast<const double *>(a->data), lines, length, pitch,
                                 static_cast<gcu_svd_f64_figures *>(l->figures), v->stream));
    } else {
        const gnomon_status status =
            scan_f32(v, a, lines, length, pitch, static_cast<gcu_svd_figures *>(l->figures));
        if (status != GNOMON_OK) return status;
    }
    GCU_TRY(v->why,
            cudaMemcpyAsync(v->f64 ? (void *)&f64 : (void *)&f32, l->figures,
                            v->f64 ? sizeof f64 : sizeof f32, cudaMemcpyDeviceToHost, v->stream));
    GCU_TRY(v->why, cudaStreamSynchronize(v->stream));
    const double most = v->f64 ? f64.most : largest_of(&f32);
    l->largest = most <= l->largest ? l->largest : most;
    l->squares += v->f64 ? f64.squares : f32.squares;
    return GNOMON_OK;
}

gnomon_status gcu_svd_figures_of(gcu_svd *v, const void *data, int64_t count, gcu_svd_scan_state *l)
{
    const gnomon_matrix line =
        gnomon_matrix_rowmajor(const_cast<void *>(data), gcu_svd_type(v), 1, count);
    const int held = v->bag.count;
    *l = {};
    gnomon_status status = gcu_svd_alloc_figures(v, gcu_svd_units(1, count), &l->figures);
    if (status == GNOMON_OK) status = gcu_svd_add_figures(v, &line, l);
    gcu_svd_free(v, held);
    return status;
}

/* Within these no product of the work overflows or loses more than rounding does. */
static bool is_tame(const gcu_svd *v, double largest)
{
    return v->f64 ? largest < 0x1p300 && largest > 0x1p-300 : largest < 0x1p60 && largest > 0x1p-60;
}

void gcu_svd_set_scale(gcu_svd *v, double norm, double largest)
{
    int more;
    v->job->norm = norm;
    if (largest == 0 || is_tame(v, largest)) return;
    frexp(largest, &more);
    if (more < -1020) more = -1020;
    v->job->exponent += more;
    v->job->norm = ldexp(norm, -more);
}

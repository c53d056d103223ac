#include "project/fold.h"

#include "base/arithmetic.h"
#include "base/threads.h"

#include <math.h>
#include <string.h>

/* Where a lane's coordinates [q, q + w) lie: element lo (0: the first wanted) to hi - 1 are
 * there, the first of them at 'at'. */
typedef struct span {
    char *at;
    int64_t lo, hi;
    int64_t block;
} span;

gnomon_fold gnomon_fold_view(const gnomon_matrix *m, int64_t col)
{
    return (gnomon_fold){.data = m->data,
                         .dtype = m->dtype,
                         .size = (int64_t)gnomon_dtype_size(m->dtype),
                         .row_stride = m->row_stride,
                         .col_stride = m->col_stride,
                         .col = col,
                         .cols = m->cols,
                         .points = m->rows,
                         .end = m->rows,
                         .block = col + m->cols};
}

int64_t gnomon_fold_block(const gnomon_fold *f, int64_t a)
{
    if (f->block) return a * f->block;
    return (int64_t)((unsigned __int128)a * (unsigned __int128)f->k / (unsigned __int128)f->r);
}

/* The 16 lanes of a tile, their blocks found by one division. */
static void find_spans(const gnomon_fold *f, int64_t tile, int64_t q, int64_t w,
                       span s[GNOMON_LANES])
{
    int64_t v = tile * GNOMON_LANES;
    if (f->offset) {
        const int64_t lo = q < f->col ? f->col - q : 0, hi = gnomon_min(w, f->col + f->cols - q);
        for (int l = 0; l < GNOMON_LANES; l++, v++) {
            s[l] = (span){NULL, 0, 0, 0};
            if (v < f->begin || v >= f->end || lo >= hi) continue;
            s[l].lo = lo;
            s[l].hi = hi;
            s[l].at = f->data + (f->offset[v] + (q + lo - f->col) * f->col_stride) * f->size;
        }
        return;
    }
    int64_t a = f->first + v / f->points, i = v % f->points;
    int64_t start = gnomon_fold_block(f, a), stop = gnomon_fold_block(f, a + 1);
    for (int l = 0; l < GNOMON_LANES; l++, v++) {
        s[l] = (span){NULL, 0, 0, a};
        if (v >= f->begin && v < f->end) {
            const int64_t from = start + q;
            const int64_t lo = from < f->col ? f->col - from : 0;
            const int64_t hi = gnomon_min(w, gnomon_min(stop, f->col + f->cols) - from);
            if (lo < hi) {
                s[l].lo = lo;
                s[l].hi = hi;
                s[l].at =
                    f->data + (i * f->row_stride + (from + lo - f->col) * f->col_stride) * f->size;
            }
        }
        if (++i == f->points) {
            i = 0;
            a++;
            start = stop;
            stop = gnomon_fold_block(f, a + 1);
        }
    }
}

/* Packs coordinates [from, to) of the w that the spans are about. */
static bool pack_part(const gnomon_fold *f, const gnomon_kernels *kernels, bool f64,
                      const span s[GNOMON_LANES], int64_t from, int64_t to, char *out)
{
    const void *lane[GNOMON_LANES];
    int64_t valid[GNOMON_LANES];
    bool adjacent = f->row_stride == 1;
    for (int l = 0; l < GNOMON_LANES; l++) {
        lane[l] = NULL;
        valid[l] = 0;
        if (s[l].lo <= from && s[l].hi > from) {
            lane[l] = s[l].at + (from - s[l].lo) * f->col_stride * f->size;
            valid[l] = gnomon_min(to, s[l].hi) - from;
        }
        if (l > 0 && lane[l] &&
            (!lane[l - 1] || valid[l] != valid[0] ||
             (const char *)lane[l] != (const char *)lane[l - 1] + f->size))
            adjacent = false;
    }
    adjacent = adjacent && lane[0];
    if (f64)
        return kernels->pack_f64(lane, valid, f->dtype, f->col_stride, adjacent, to - from,
                                 (double *)out + from * GNOMON_LANES);
    return kernels->pack_f32(lane, valid, f->dtype, f->col_stride, adjacent, to - from,
                             (float *)out + from * GNOMON_LANES);
}

bool gnomon_fold_pack(const gnomon_fold *f, const gnomon_kernels *kernels, bool f64, int64_t tile,
                      int64_t q, int64_t w, void *out)
{
    span s[GNOMON_LANES];
    find_spans(f, tile, q, w, s);
    /* Only one block, the first, can lack its front, so there is one place to cut. */
    int64_t cut = 0;
    for (int l = 0; l < GNOMON_LANES; l++) {
        if (s[l].lo > cut) cut = s[l].lo;
    }
    bool finite = true;
    if (cut > 0) finite = pack_part(f, kernels, f64, s, 0, cut, out);
    return pack_part(f, kernels, f64, s, cut, w, out) && finite;
}

/* One element. Sums of nothing but zeros may carry either sign, by how they were padded: adding +0
 * makes them one. spoilt: lanes that got a number that is not finite although
 * what they had was. */
#define DEFINE_STORE(name, sum_type, out_type)                                              \
    static void name(const span *s, const gnomon_fold *f, const sum_type *sums,             \
                     const double *factor, double beta, int64_t from, int64_t to,           \
                     unsigned *spoilt)                                                      \
    {                                                                                       \
        for (int l = 0; l < GNOMON_LANES; l++) {                                            \
            const int64_t lo = s[l].lo > from ? s[l].lo : from;                             \
            const int64_t hi = s[l].hi < to ? s[l].hi : to;                                 \
            if (lo >= hi) continue;                                                         \
            out_type *y = (out_type *)(void *)s[l].at + (lo - s[l].lo) * f->col_stride;     \
            const sum_type *x = sums + lo * GNOMON_LANES + l;                               \
            const double c = factor[l];                                                     \
            out_type mark = 0; /* 0 times all that was written: 0, or NaN */                \
            if (beta == 0) {                                                                \
                for (int64_t j = 0; j < hi - lo; j++) {                                     \
                    const out_type v = (out_type)(c * ((double)x[j * GNOMON_LANES] + 0.0)); \
                    mark += 0 * v;                                                          \
                    y[j * f->col_stride] = v;                                               \
                }                                                                           \
            } else {                                                                        \
                for (int64_t j = 0; j < hi - lo; j++) {                                     \
                    const out_type before = y[j * f->col_stride];                           \
                    const out_type v = (out_type)(c * ((double)x[j * GNOMON_LANES] + 0.0) + \
                                                  beta * (double)before);                   \
                    mark += isfinite(before) ? 0 * v : 0;                                   \
                    y[j * f->col_stride] = v;                                               \
                }                                                                           \
            }                                                                               \
            if (mark != 0) *spoilt |= 1u << l;                                              \
        }                                                                                   \
    }

DEFINE_STORE(store_f32_f32, float, float)
DEFINE_STORE(store_f64_f32, double, float)
DEFINE_STORE(store_f64_f64, double, double)

void gnomon_fold_store(const gnomon_fold *f, bool f64, int64_t tile, int64_t q, int64_t w,
                       const void *sums, const gnomon_finish *finish)
{
    enum { STRIP = 64 }; /* coordinates at a time, so that they stay in the first cache */
    span s[GNOMON_LANES];
    double factor[GNOMON_LANES];
    find_spans(f, tile, q, w, s);
    for (int l = 0; l < GNOMON_LANES; l++) {
        factor[l] = finish->alpha * finish->scale;
        if (!finish->op || s[l].hi <= s[l].lo) continue;
        factor[l] = finish->alpha * gnomon_operator_row_scale(
                                        finish->op, gnomon_block_first_row(finish->op, s[l].block));
    }
    unsigned spoilt = 0;
    const int64_t strip = f->col_stride == 1 || f->col_stride == -1 ? STRIP : 1;
    for (int64_t from = 0; from < w; from += strip) {
        const int64_t to = gnomon_min(w, from + strip);
        if (!f64)
            store_f32_f32(s, f, sums, factor, finish->beta, from, to, &spoilt);
        else if (f->dtype == GNOMON_F32)
            store_f64_f32(s, f, sums, factor, finish->beta, from, to, &spoilt);
        else
            store_f64_f64(s, f, sums, factor, finish->beta, from, to, &spoilt);
    }
    for (int l = 0; finish->overflow && spoilt != 0 && l < GNOMON_LANES; l++) {
        if (spoilt >> l & 1)
            gnomon_overflow_note(finish->overflow, (tile * GNOMON_LANES + l) % f->points);
    }
}

typedef struct scale_job {
    const gnomon_matrix *m;
    double beta;
    gnomon_overflow *overflow;
} scale_job;

static void scale_row(void *arg, int64_t task, int worker)
{
    (void)worker;
    const scale_job *job = arg;
    const gnomon_matrix *m = job->m;
    const bool by_rows = m->rows <= m->cols; /* the side that gives longer tasks */
    const int64_t count = by_rows ? m->cols : m->rows;
    const int64_t step = by_rows ? m->col_stride : m->row_stride;
    const int64_t at = task * (by_rows ? m->row_stride : m->col_stride);
    int64_t spoilt = -1;
    for (int64_t j = count - 1; j >= 0; j--) {
        double before = 0, after = 0;
        if (m->dtype == GNOMON_F32) {
            float *y = (float *)m->data + at + j * step;
            if (job->beta != 0) {
                before = (double)*y;
                after = (double)(float)(job->beta * before);
            }
            *y = (float)after;
        } else {
            double *y = (double *)m->data + at + j * step;
            if (job->beta != 0) {
                before = *y;
                after = job->beta * before;
            }
            *y = after;
        }
        if (!isfinite(after) && isfinite(before)) spoilt = j;
    }
    if (spoilt >= 0) gnomon_overflow_note(job->overflow, by_rows ? task : spoilt);
}

void gnomon_scale_view(gnomon_context *ctx, const gnomon_matrix *m, double beta,
                       gnomon_overflow *overflow)
{
    if (m->rows == 0 || m->cols == 0 || beta == 1) return;
    scale_job job = {m, beta, overflow};
    gnomon_parallel(ctx, m->rows <= m->cols ? m->rows : m->cols, scale_row, &job);
}

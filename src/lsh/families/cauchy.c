/* Directions of standard Cauchy numbers, for l1.
 *
 * The tangent of an angle that is uniform over a half turn is a standard Cauchy number. Its fp32
 * cosine and sine are those of operators' Gaussian entries (docs/reference/operators.md,
 * section 4.1), so the quotient has the same bits everywhere. */
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "gemm/job.h"
#include "lsh/families/family.h"
#include "operator/philox.h"
#include "operator/quarter.h"
#include "points/rows.h"

#include <math.h>

/* tan(pi / 4 * (z + 2 quarter)) for the quarter turn that the upper bit names, z the centre of one
 * of 2^31 cells of (-1, 1): never 0, so that the quotient is finite. */
static float cauchy(uint32_t word)
{
    const int64_t cell = (int64_t)(word & UINT32_C(0x7fffffff)) * 2 + 1 - (INT64_C(1) << 31);
    const float z = (float)cell * 0x1p-31f;
    float c, s;
    gnomon_quarter(z, &c, &s);
    return word >> 31 ? -c / s : s / c;
}

void gnomon_cauchy_block(const gnomon_simple *key, int64_t row, int64_t rows, int64_t col,
                         int64_t cols, float *out)
{
    for (int64_t i = row; i < row + rows;) {
        const int64_t end = (i / 4 + 1) * 4 < row + rows ? (i / 4 + 1) * 4 : row + rows;
        for (int64_t j = 0; j < cols; j++) {
            const gnomon_words w = gnomon_call(key, GNOMON_TAG_LSH_CAUCHY, (uint32_t)(i / 4),
                                               (uint64_t)col + (uint64_t)j);
            for (int64_t r = i; r < end; r++)
                out[(r - row) * cols + j] = cauchy(w.w[r % 4]);
        }
        i = end;
    }
}

/* A point's coordinates are summed in pieces of so many, each a product of matrices, added up in
 * fp64: the pieces are the same whatever the memory. */
enum { PIECE_COLS = 4096, PIECE_ROWS = 64 };

typedef struct conversion {
    const gnomon_matrix *points;
    int64_t first, col, cols;
    float *out;
} conversion;

static void convert_point(void *arg, int64_t task, int worker)
{
    (void)worker;
    const conversion *w = arg;
    double f64[256];
    for (int64_t j = 0; j < w->cols; j += 256) {
        const int64_t count = w->cols - j < 256 ? w->cols - j : 256;
        gnomon_row_as_f64(w->points, w->first + task, w->col + j, count, f64);
        for (int64_t i = 0; i < count; i++)
            w->out[task * w->cols + j + i] = (float)f64[i];
    }
}

typedef struct panel {
    const gnomon_simple *key;
    int64_t row, rows, col, cols;
    float *out;
} panel;

static void make_rows(void *arg, int64_t task, int worker)
{
    (void)worker;
    const panel *p = arg;
    const int64_t row = p->row + 4 * task, end = p->row + p->rows;
    gnomon_cauchy_block(p->key, row, end - row < 4 ? end - row : 4, p->col, p->cols,
                        p->out + 4 * task * p->cols);
}

static gnomon_status add_piece(gnomon_context *ctx, const gnomon_hasher *h, int64_t n, int64_t col,
                               int64_t cols, const float *points, float *directions, double *sums)
{
    for (int64_t row = 0; row < h->f.count; row += PIECE_ROWS) {
        const int64_t rows = h->f.count - row < PIECE_ROWS ? h->f.count - row : PIECE_ROWS;
        panel p = {&h->key, row, rows, col, cols, directions};
        gnomon_parallel(ctx, (rows + 3) / 4, make_rows, &p);
        const gnomon_matrix a = gnomon_matrix_rowmajor((void *)points, GNOMON_F32, n, cols);
        const gnomon_matrix b = gnomon_matrix_colmajor(directions, GNOMON_F32, cols, rows);
        gnomon_matrix c = gnomon_matrix_rowmajor(sums + row, GNOMON_F64, n, rows);
        c.row_stride = h->f.count;
        gnomon_gemm_options o = GNOMON_GEMM_OPTIONS_INIT;
        o.beta = 1;
        GNOMON_TRY(gnomon_gemm_at(ctx, GNOMON_ON_CPU, &a, &b, &c, &o));
    }
    return GNOMON_OK;
}

static gnomon_status cauchy_products(gnomon_context *ctx, const gnomon_hasher *h,
                                     const gnomon_points *p, int64_t first, int64_t n, void *out)
{
    const gnomon_matrix *points = p->dense;
    float *products = out;
    const int64_t most = h->f.dim < PIECE_COLS ? h->f.dim : PIECE_COLS;
    float *f32 = NULL, *directions = NULL;
    double *sums = NULL;
    gnomon_status status = gnomon_alloc(ctx, gnomon_times(n, most), sizeof *f32, "points", &f32);
    if (status == GNOMON_OK)
        status = gnomon_alloc(ctx, gnomon_times(PIECE_ROWS, most), sizeof *directions, "directions",
                              &directions);
    if (status == GNOMON_OK)
        status = gnomon_alloc_zero(ctx, gnomon_times(n, h->f.count), sizeof *sums, "sums", &sums);
    for (int64_t col = 0; col < h->f.dim && status == GNOMON_OK; col += most) {
        const int64_t cols = h->f.dim - col < most ? h->f.dim - col : most;
        conversion w = {points, first, col, cols, f32};
        gnomon_parallel(ctx, n, convert_point, &w);
        status = add_piece(ctx, h, n, col, cols, f32, directions, sums);
    }
    for (int64_t i = 0; i < n * h->f.count && status == GNOMON_OK; i++)
        products[i] = (float)sums[i];
    gnomon_free(ctx, sums);
    gnomon_free(ctx, directions);
    gnomon_free(ctx, f32);
    return status;
}

/* Sums in fp64 and a piece of the points. */
static int64_t more_bytes(const gnomon_hasher *h)
{
    return 8 * h->f.count + 4 * (h->f.dim < PIECE_COLS ? h->f.dim : PIECE_COLS);
}

static double pstable_l1(double t)
{
    return (2 * atan(t) - log1p(t * t) / t) / acos(-1.0);
}

static double collision(const gnomon_lsh_functions *f, double distance)
{
    const double t = distance > 0 ? f->width / distance : INFINITY;
    return isinf(t) ? 1 : t > 0 ? pstable_l1(t) : 0;
}

const gnomon_family_row gnomon_family_row_pstable_l1 = {
    .family = GNOMON_LSH_PSTABLE_L1,
    .name = "p-stable-l1",
    .points = GNOMON_POINTS_DENSE,
    .refusal = "dense points",
    .width = true,
    .others = 2,
    .products = 1,
    .most = INFINITY,
    .no_device = "it has no Cauchy directions, those of p-stable-l1",
    .setup = gnomon_make_offsets,
    .more_bytes = more_bytes,
    .project = cauchy_products,
    .hash = gnomon_hash_steps,
    .collision = collision,
};

/* Rows of points as metrics see them: norms, and what no metric takes. */
#include "kernels.h"
#include "metric/metric.h"

#include "base/arithmetic.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Of the coordinates of points whose norms have small squares: they are then at most 2^150. */
static const double boost = 0x1p600;

/* |x| of norms below it counts as zero for COSINE. */
static const double least_norm = 0x1p-1000;

double gnomon_inverse_norm(const gnomon_search_kernels *kernels, const gnomon_matrix *m, int64_t i)
{
    const void *x = gnomon_row_at(m, i);
    double norm = sqrt(kernels->squares(x, m->dtype, m->col_stride, m->cols, 1));
    if (m->dtype == GNOMON_F64 && norm < 0x1p-450)
        norm = sqrt(kernels->squares(x, m->dtype, m->col_stride, m->cols, boost)) / boost;
    int64_t col;
    if (!(norm <= 0x1p500) && gnomon_row_fault(m, i, &col) != GNOMON_OK) return (double)NAN;
    return norm < least_norm ? 0 : 1 / norm;
}

bool gnomon_rows_of_f32(const gnomon_matrix *m, const int64_t *rows, int64_t count,
                        const float **begin)
{
    if (m->dtype != GNOMON_F32 || m->col_stride != 1) return false;
    for (int64_t i = 0; i < count; i++)
        begin[i] = (const float *)m->data + rows[i] * m->row_stride;
    return true;
}

double gnomon_sparse_inverse_norm(const gnomon_search_kernels *kernels,
                                  const gnomon_sparse_row *row)
{
    gnomon_sparse_row x = *row;
    x.factor = 1;
    double norm = sqrt(kernels->sparse_products(&x, &x));
    if (norm < 0x1p-450) {
        x.factor = boost;
        norm = sqrt(kernels->sparse_products(&x, &x)) / boost;
    }
    return norm < least_norm ? 0 : 1 / norm;
}

gnomon_sparse_row gnomon_sparse_row_at(const gnomon_sets *rows, int64_t i)
{
    const int64_t begin = rows->offsets[i];
    return (gnomon_sparse_row){rows->members + begin, rows->weights + begin,
                               rows->offsets[i + 1] - begin,
                               rows->factors != NULL ? rows->factors[i] : 1};
}

double gnomon_sparse_key(const gnomon_metric_row *metric, const gnomon_search_kernels *kernels,
                         const gnomon_sets *a, int64_t i, const gnomon_sets *b, int64_t j)
{
    const gnomon_sparse_row x = gnomon_sparse_row_at(a, i), y = gnomon_sparse_row_at(b, j);
    return metric->sparse(kernels, &x, &y);
}

/* Whether the bits of a row tell that it is sound, without a look at each number; of other types
 * and layouts false. */
static bool is_sound(const gnomon_matrix *m, int64_t i)
{
    const char *x = gnomon_row_at(m, i);
    uint32_t most = 0;
    if (m->dtype >= GNOMON_I8) return true; /* integers */
    if (m->dtype != GNOMON_F32 || m->col_stride != 1) return false;
    for (int64_t j = 0; j < m->cols; j++) {
        uint32_t bits;
        memcpy(&bits, x + 4 * j, sizeof bits);
        bits &= 0x7fffffff;
        most = bits > most ? bits : most;
    }
    return most < 0x7f800000;
}

gnomon_status gnomon_row_fault(const gnomon_matrix *m, int64_t i, int64_t *col)
{
    enum { PIECE = 256 };
    const gnomon_search_kernels *k = gnomon_cpu_kernels("portable")->search;
    const int64_t step = m->col_stride * (int64_t)gnomon_dtype_size(m->dtype);
    const char *x = gnomon_row_at(m, i);
    double f64[PIECE];
    for (int64_t j = 0; j < m->cols; j += PIECE) {
        const int64_t count = m->cols - j < PIECE ? m->cols - j : PIECE;
        k->to_f64(x + j * step, m->dtype, m->col_stride, count, f64);
        for (int64_t c = 0; c < count; c++) {
            *col = j + c;
            if (!isfinite(f64[c])) return GNOMON_ERROR_NONFINITE;
            if (fabs(f64[c]) > 0x1p500) return GNOMON_ERROR_UNSUPPORTED;
        }
    }
    return GNOMON_OK;
}

enum { CHECK_ROWS = 256 };

typedef struct checking {
    const gnomon_matrix *m;
    int64_t *faults; /* a task's first row that is refused, or -1 */
} checking;

static void check_some(void *arg, int64_t task, int worker)
{
    (void)worker;
    const checking *c = arg;
    const int64_t end = gnomon_min((task + 1) * CHECK_ROWS, c->m->rows);
    int64_t col;
    c->faults[task] = -1;
    for (int64_t i = task * CHECK_ROWS; i < end; i++) {
        if (is_sound(c->m, i) || gnomon_row_fault(c->m, i, &col) == GNOMON_OK) continue;
        c->faults[task] = i;
        return;
    }
}

gnomon_status gnomon_check_rows(gnomon_context *ctx, const gnomon_matrix *m, const char *name,
                                int64_t first)
{
    const int64_t tasks = gnomon_ceil_div(m->rows, CHECK_ROWS);
    int64_t bad = -1, col = 0;
    checking c = {m, NULL};
    if (tasks == 0) return GNOMON_OK;
    GNOMON_TRY(gnomon_alloc(ctx, tasks, sizeof *c.faults, "a check", &c.faults));
    gnomon_parallel(ctx, tasks, check_some, &c);
    for (int64_t task = 0; task < tasks && bad < 0; task++)
        bad = c.faults[task];
    gnomon_free(ctx, c.faults);
    if (bad < 0) return GNOMON_OK;
    const gnomon_status status = gnomon_row_fault(m, bad, &col);
    return gnomon_fail(
        ctx, status,
        GNOMON_ARG("%s") " has %s in row " GNOMON_AT_ROW "%" PRId64 ", column " GNOMON_AT_COL
                         "%" PRId64,
        name, status == GNOMON_ERROR_NONFINITE ? "NaN or infinity" : "a magnitude above 2^500",
        first + bad, col);
}

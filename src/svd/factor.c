/* What every way through a factorisation takes: its operator, and room for its result. */
#include "svd/factor.h"

#include "base/arithmetic.h"
#include "base/error.h"
#include "base/memory.h"
#include "kernels.h"

#include <inttypes.h>

int64_t gnomon_factor_columns(const gnomon_factor *f)
{
    const int64_t least = f->source.rows < f->source.cols ? f->source.rows : f->source.cols;
    const int64_t over = f->options.oversample, rank = f->options.rank;
    return over < least - rank ? rank + over : least;
}

enum {
    KRYLOV_COLUMNS = 64, /* fewer take the iterations */
    KRYLOV_THIN = 4      /* the space is at most such a share of either side */
};

int64_t gnomon_krylov_columns(int64_t columns, int power)
{
    /* The first start's: for q iterations of s columns s (1 + 0.3 q). */
    const int64_t blocks = gnomon_ceil_div(columns * (10 + 3 * (int64_t)power), 10 * GNOMON_NORMAL);
    return (blocks + GNOMON_KRYLOV_AGAIN) * GNOMON_NORMAL;
}

bool gnomon_krylov_suits(int64_t rows, int64_t cols, int64_t columns, int power)
{
    if (power < 2 || columns < KRYLOV_COLUMNS) return false;
    /* The basis replaces room that the rows would take. */
    return gnomon_krylov_columns(columns, power) <= gnomon_min(rows, cols) / KRYLOV_THIN &&
           cols / 2 <= rows;
}

/* Of a column of the operator that is only where iterations start: with 4 they start worse than
 * from a gaussian one where singular vectors lie along coordinates, with 8 as well. */
enum { START_NONZEROS = 8 };

gnomon_status gnomon_factor_operator(gnomon_factor *f, int64_t columns, bool start)
{
    gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
    if (f->options.descriptor != NULL) {
        d = *f->options.descriptor;
    } else {
        d.kind = start ? GNOMON_SJLT : GNOMON_GAUSSIAN;
        d.nonzeros = start ? START_NONZEROS : 0;
        d.seed = f->options.seed;
    }
    d.k = columns;
    d.d = f->source.cols;
    GNOMON_TRY(gnomon_operator_create(f->ctx, &d, &f->op));
    gnomon_operator_describe(f->op, &f->out->descriptor);
    f->out->columns = columns;
    return GNOMON_OK;
}

gnomon_status gnomon_factor_room(gnomon_factor *f, const gnomon_matrix *given, int64_t rows,
                                 int64_t cols, const char *what, gnomon_matrix *out)
{
    void *data = NULL;
    if (given != NULL) {
        /* rows that come piece by piece may turn out to be more */
        GNOMON_FAIL_IF(given->rows < rows || given->cols < cols, f->ctx, GNOMON_ERROR_SHAPE,
                       "the view for the %s is %" PRId64 " x %" PRId64 "; they are %" PRId64
                       " x %" PRId64,
                       what, given->rows, given->cols, rows, cols);
        *out = *given;
        out->rows = rows;
        out->cols = cols;
        return GNOMON_OK;
    }
    GNOMON_TRY(
        gnomon_alloc(f->ctx, gnomon_times(rows, cols), gnomon_tall_size(f->f64), what, &data));
    *out = gnomon_matrix_rowmajor(data, f->f64 ? GNOMON_F64 : GNOMON_F32, rows, cols);
    return GNOMON_OK;
}

/* The right-hand sides: read by blocks of rows, as double numbers, each scaled by a power of two so
 * that squares neither overflow nor underflow. */
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "lstsq/lstsq.h"
#include "points/rows.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { LINES = 256 };

void gnomon_solver_read_b(const gnomon_solver *s, int64_t row, int64_t rows, double *out)
{
    double line[LINES];
    const gnomon_matrix transposed =
        gnomon_matrix_transposed(s->b); /* whose rows are b's columns */
    for (int64_t j = 0; j < s->m; j++) {
        const double factor = ldexp(1.0, -s->exponent[j]);
        for (int64_t begin = 0; begin < rows; begin += LINES) {
            const int64_t count = rows - begin < LINES ? rows - begin : LINES;
            gnomon_row_as_f64(&transposed, j, row + begin, count, line);
            for (int64_t i = 0; i < count; i++)
                out[(begin + i) * s->m + j] = line[i] * factor;
        }
    }
}

typedef struct scan {
    const gnomon_solver *s;
    bool squares; /* else the largest */
    double *places, *scratch;
} scan;

static void scan_rows(void *arg, int64_t task, int worker)
{
    const scan *l = arg;
    const int64_t m = l->s->m, row = task * LINES;
    const int64_t rest = l->s->n - row, rows = rest < LINES ? rest : LINES;
    double *t = l->scratch + worker * LINES * m, *place = l->places + task * m;
    gnomon_solver_read_b(l->s, row, rows, t);
    memset(place, 0, (size_t)m * sizeof *place);
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < m; j++) {
            const double x = fabs(t[i * m + j]);
            if (l->squares)
                place[j] += x * x;
            else
                place[j] = x <= place[j] ? place[j] : x;
        }
    }
}

static gnomon_status scan_all(gnomon_solver *s, scan *l, double *out)
{
    const int64_t tasks = (s->n + LINES - 1) / LINES;
    int64_t places;
    GNOMON_FAIL_IF(!gnomon_mul(tasks, s->m, &places), s->ctx, GNOMON_ERROR_OVERFLOW,
                   GNOMON_ARG("b") " is too large for 63 bits");
    l->places = NULL;
    l->scratch = NULL;
    gnomon_status status = gnomon_alloc(s->ctx, places, sizeof(double), "figures of b", &l->places);
    if (status == GNOMON_OK)
        status = gnomon_alloc(
            s->ctx, gnomon_times(gnomon_times(gnomon_context_threads(s->ctx), LINES), s->m),
            sizeof(double), "rows of b", &l->scratch);
    if (status == GNOMON_OK) {
        gnomon_parallel(s->ctx, tasks, scan_rows, l);
        memset(out, 0, (size_t)s->m * sizeof *out);
        for (int64_t i = 0; i < tasks * s->m; i++) {
            double *to = &out[i % s->m];
            if (l->squares)
                *to += l->places[i];
            else
                *to = l->places[i] > *to ? l->places[i] : *to;
        }
    }
    gnomon_free(s->ctx, l->places);
    gnomon_free(s->ctx, l->scratch);
    return status;
}

gnomon_status gnomon_solver_scan_b(gnomon_solver *s)
{
    int64_t row = 0, col = 0;
    scan l = {.s = s};
    GNOMON_FAIL_IF(gnomon_matrix_check_finite(s->ctx, s->b, &row, &col) == GNOMON_ERROR_NONFINITE,
                   s->ctx, GNOMON_ERROR_NONFINITE,
                   GNOMON_ARG("b") " has NaN or infinity in row " GNOMON_AT_ROW "%" PRId64
                                   ", column " GNOMON_AT_COL "%" PRId64 " (both counted from 0)",
                   row, col);
    GNOMON_TRY(scan_all(s, &l, s->norm_b));
    for (int64_t j = 0; j < s->m; j++) {
        if (s->norm_b[j] > 0) frexp(s->norm_b[j], &s->exponent[j]);
        if (s->exponent[j] < -1020) s->exponent[j] = -1020; /* its power of two must not overflow */
    }
    l.squares = true;
    GNOMON_TRY(scan_all(s, &l, s->norm_b));
    for (int64_t j = 0; j < s->m; j++)
        s->norm_b[j] = sqrt(s->norm_b[j]);
    return GNOMON_OK;
}

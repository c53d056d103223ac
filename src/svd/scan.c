/* The pass that scans every entry: finite, the largest, the sum of squares. */
#include "base/arithmetic.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "project/blocks.h"
#include "svd/center.h"
#include "svd/row_pass.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { LINES = 16, LENGTH = 1 << 16 };

typedef struct figures {
    double most, squares;
} figures;

typedef struct scan {
    const gnomon_piece *piece;
    const gnomon_kernels *kernels;
    bool f64;
    int64_t cuts; /* of a line, so that few long ones keep all threads at work */
    figures *out; /* one a task */
} scan;

/* A NaN shows in the squares, infinity in the largest. Numbers that go on from others take the lane
 * that is next. */
static void add_line(const gnomon_kernels *kernels, bool f64, const void *numbers, int64_t count,
                     gnomon_figures *f)
{
    const double *wide = numbers;
    const float *narrow = numbers;
    for (int64_t i = 0; i < count;) {
        const int lane = (int)(f->count % GNOMON_FIGURES);
        const int64_t whole = lane == 0 ? (count - i) / GNOMON_FIGURES * GNOMON_FIGURES : 0;
        if (f64)
            kernels->figures_f64(wide + i, whole, f->squares, &f->most);
        else
            kernels->figures_f32(narrow + i, whole, f->squares, &f->most);
        i += whole;
        f->count += whole;
        if (i == count) break;
        const double x = fabs(f64 ? wide[i] : (double)narrow[i]);
        f->squares[lane] += x * x;
        f->most = x <= f->most ? f->most : x;
        f->count++;
        i++;
    }
}

static void add_lanes(const gnomon_figures *lanes, figures *f)
{
    for (int l = 0; l < GNOMON_FIGURES; l++)
        f->squares += lanes->squares[l];
    f->most = lanes->most <= f->most ? f->most : lanes->most;
}

static void scan_part(void *arg, int64_t task, int worker)
{
    (void)worker;
    const scan *l = arg;
    const gnomon_matrix *m = &l->piece->dense;
    const bool by_rows = m->col_stride == 1;
    const int64_t lines = by_rows ? m->rows : m->cols, length = by_rows ? m->cols : m->rows;
    const int64_t stride = by_rows ? m->row_stride : m->col_stride;
    const int64_t group = task / l->cuts, from = task % l->cuts * LENGTH;
    const int64_t count = length - from < LENGTH ? length - from : LENGTH;
    const int64_t end = (group + 1) * LINES < lines ? (group + 1) * LINES : lines;
    figures f = {0, 0};
    for (int64_t i = group * LINES; i < end; i++) {
        gnomon_figures lanes = {.count = 0};
        add_line(l->kernels, l->f64,
                 (const char *)m->data + (size_t)(i * stride + from) * gnomon_tall_size(l->f64),
                 count, &lanes);
        add_lanes(&lanes, &f);
    }
    l->out[task] = f;
}

/* Names the first entry that is not finite. */
static gnomon_status fail_nonfinite(gnomon_row_source *s, const gnomon_piece *piece)
{
    int64_t row = 0, col = 0;
    if (piece->sparse) {
        const gnomon_csr *a = &piece->csr;
        for (; row < a->rows; row++) {
            for (int64_t i = a->offsets[row] - a->offsets[0];
                 i < a->offsets[row + 1] - a->offsets[0]; i++) {
                const double value = a->dtype == GNOMON_F64 ? ((const double *)a->values)[i]
                                                            : (double)((const float *)a->values)[i];
                col = a->indices[i];
                if (!isfinite(value)) goto found;
            }
        }
    } else {
        (void)gnomon_matrix_check_finite(s->ctx, &piece->dense, &row, &col);
    }
found:
    return gnomon_row_source_refuse(
        s, piece->sparse ? gnomon_place_of(s, piece->own + row) : piece->row + row, col);
}

/* Sparse rows: the figures of their parts, of all so far. */
static gnomon_status note_sparse(gnomon_row_source *s, const gnomon_piece *piece)
{
    const gnomon_csr *a = &piece->csr;
    figures all = {0, 0};
    for (int64_t from = 0, end; from < a->rows; from = end) {
        const int64_t own = piece->own + from;
        gnomon_part_figures *part = &s->figures[gnomon_part_of(s, own)];
        end = gnomon_min(a->rows, from + GNOMON_CHUNK - own % GNOMON_CHUNK);
        const int64_t first = a->offsets[from] - a->offsets[0];
        const int64_t count = a->offsets[end] - a->offsets[from];
        add_line(gnomon_context_kernels(s->ctx), s->f64,
                 (const char *)a->values + (size_t)first * gnomon_tall_size(s->f64), count,
                 &part->lanes);
        for (int64_t i = from; i < end; i++)
            part->longest = gnomon_max(part->longest, a->offsets[i + 1] - a->offsets[i]);
    }
    for (int part = 0; part < s->parts; part++)
        add_lanes(&s->figures[part].lanes, &all);
    return isnan(all.squares) || !isfinite(all.most) ? fail_nonfinite(s, piece) : GNOMON_OK;
}

static gnomon_status note(gnomon_row_source *s, const gnomon_piece *piece)
{
    figures all = {0, 0};
    const gnomon_matrix *m = &piece->dense;
    const int64_t lines = m->col_stride == 1 ? m->rows : m->cols;
    const int64_t length = m->col_stride == 1 ? m->cols : m->rows;
    scan l = {.piece = piece,
              .kernels = gnomon_context_kernels(s->ctx),
              .f64 = s->f64,
              .cuts = (length + LENGTH - 1) / LENGTH};
    const int64_t tasks = (lines + LINES - 1) / LINES * l.cuts;
    GNOMON_TRY(gnomon_alloc(s->ctx, tasks, sizeof *l.out, "sums of squares", &l.out));
    gnomon_parallel(s->ctx, tasks, scan_part, &l);
    for (int64_t i = 0; i < tasks; i++) {
        all.squares += l.out[i].squares;
        all.most = l.out[i].most <= all.most ? all.most : l.out[i].most;
    }
    gnomon_free(s->ctx, l.out);
    if (isnan(all.squares) || !isfinite(all.most)) return fail_nonfinite(s, piece);
    const double most = fmin(ldexp(all.most, s->exponent), DBL_MAX);
    if (most > s->largest) s->largest = most;
    s->squares += all.squares;
    return GNOMON_OK;
}

static gnomon_status scan_all(gnomon_row_source *s)
{
    gnomon_piece piece;
    s->largest = 0;
    s->squares = 0;
    GNOMON_TRY(gnomon_row_source_rewind(s));
    for (;;) {
        GNOMON_TRY(gnomon_row_source_next(s, &piece));
        if (piece.rows == 0) break;
        GNOMON_TRY(note(s, &piece));
    }
    s->norm = sqrt(s->squares);
    return GNOMON_OK;
}

/* ---- rows that are divided among ranks: each piece's figures, which are added one by one ---- */

static gnomon_status add_figures(void *user, const gnomon_piece *piece, int64_t row, bool first,
                                 void *result)
{
    gnomon_row_source *s = user;
    figures *all = result;
    if (first) memset(all, 0, (size_t)(s->segment_rows / s->piece_rows) * sizeof *all);
    const double squares = s->squares, largest = s->largest;
    s->squares = s->largest = 0;
    const gnomon_status status = note(s, piece);
    all[(piece->row - row) / s->piece_rows] = (figures){s->largest, s->squares};
    s->squares = squares;
    s->largest = largest;
    return status;
}

static gnomon_status take_figures(void *user, int64_t row, int64_t rows, const void *result,
                                  bool own)
{
    gnomon_row_source *s = user;
    const figures *all = result;
    (void)row;
    (void)own;
    for (int64_t i = 0; i * s->piece_rows < rows; i++) {
        s->squares += all[i].squares;
        if (all[i].most > s->largest) s->largest = all[i].most;
    }
    return GNOMON_OK;
}

static gnomon_status scan_divided(gnomon_row_source *s)
{
    const gnomon_row_pass pass = {.user = s,
                                  .add = add_figures,
                                  .take = take_figures,
                                  .bytes =
                                      s->segment_rows / s->piece_rows * (int64_t)sizeof(figures)};
    s->largest = s->squares = 0;
    GNOMON_TRY(gnomon_row_step_tell(s, GNOMON_STEP_SCAN, NULL));
    GNOMON_TRY(gnomon_row_pass_run(s, &pass, GNOMON_OK));
    s->norm = sqrt(s->squares);
    return GNOMON_OK;
}

/* ---- sparse rows: the figures of their parts ---- */

static gnomon_status scan_parts(void *user, gnomon_status status)
{
    gnomon_row_source *s = user;
    gnomon_piece piece;
    GNOMON_TRY(status);
    memset(s->figures, 0, sizeof s->figures);
    GNOMON_TRY(gnomon_row_source_rewind(s));
    for (;;) {
        GNOMON_TRY(gnomon_row_source_next(s, &piece));
        if (piece.rows == 0) return GNOMON_OK;
        GNOMON_TRY(note_sparse(s, &piece));
    }
}

static const void *part_figures(void *user, int part)
{
    const gnomon_row_source *s = user;
    return &s->figures[part];
}

static gnomon_status take_part(void *user, int part, const void *result, bool own)
{
    gnomon_row_source *s = user;
    figures all = {0, s->squares};
    gnomon_part_figures f;
    (void)part;
    (void)own;
    memcpy(&f, result, sizeof f);
    add_lanes(&f.lanes, &all);
    s->squares = all.squares;
    s->largest = fmax(s->largest, fmin(ldexp(all.most, s->exponent), DBL_MAX));
    s->nonzeros += f.lanes.count;
    s->longest = gnomon_max(s->longest, f.longest);
    return GNOMON_OK;
}

static gnomon_status scan_sparse(gnomon_row_source *s)
{
    const gnomon_part_pass pass = {.user = s,
                                   .run = scan_parts,
                                   .result = part_figures,
                                   .take = take_part,
                                   .bytes = sizeof *s->figures};
    s->largest = s->squares = 0;
    s->nonzeros = s->longest = 0;
    GNOMON_TRY(gnomon_row_step_tell(s, GNOMON_STEP_SCAN, NULL));
    GNOMON_TRY(gnomon_part_pass_run(s, &pass, GNOMON_OK));
    s->norm = sqrt(s->squares);
    return GNOMON_OK;
}

static gnomon_status scan_once(gnomon_row_source *s)
{
    if (s->sparse) return scan_sparse(s);
    return gnomon_row_divided(s) ? scan_divided(s) : scan_all(s);
}

gnomon_status gnomon_row_source_scan(gnomon_row_source *s)
{
    if (gnomon_row_serves(s)) return scan_once(s);
    if (s->centered) {
        GNOMON_TRY(gnomon_center_find(s));
        if (s->sparse) return GNOMON_OK; /* norm and scaling are known by that */
    }
    const int before = s->exponent;
    GNOMON_TRY(scan_once(s));
    s->exponent = gnomon_row_source_exponent(s->f64, s->largest);
    return s->exponent == before ? GNOMON_OK : scan_once(s);
}

gnomon_status gnomon_row_source_note(gnomon_row_source *s, const gnomon_piece *piece)
{
    const bool first = piece->row == 0;
    if (s->centered) return GNOMON_OK; /* gnomon_center_next does it */
    GNOMON_TRY(note(s, piece));
    const int exponent = first ? gnomon_row_source_exponent(s->f64, s->largest) : 0;
    if (exponent != 0) {
        s->exponent = exponent;
        gnomon_row_source_rescale(s, piece->rows);
        s->squares = 0;
        GNOMON_TRY(note(s, piece));
    }
    s->norm = sqrt(s->squares);
    return GNOMON_OK;
}

#include "hosvd/cube.h"

#include "base/arithmetic.h"
#include "base/error.h"
#include "base/memory.h"
#include "linalg/blas.h"

#include <string.h>

/* Lines shorter than SHORT are copied together; a copied strip has about ROOM numbers. */
enum { SHORT = 256, LEAST = 16, ROOM = 1 << 20 };

int64_t gnomon_cube_count(const gnomon_cube *c)
{
    int64_t count = 1;
    for (int i = 0; i < c->modes; i++)
        count *= c->size[i];
    return count;
}

gnomon_status gnomon_cube_make(gnomon_context *ctx, const char *what, gnomon_cube *c)
{
    int64_t count = 1;
    c->data = NULL;
    for (int i = 0; i < c->modes; i++)
        GNOMON_FAIL_IF(!gnomon_mul(count, c->size[i], &count), ctx, GNOMON_ERROR_OVERFLOW,
                       "%s: a product of sizes does not fit 63 bits", what);
    return gnomon_alloc(ctx, count, gnomon_tall_size(c->f64), what, &c->data);
}

void gnomon_cube_drop(gnomon_context *ctx, gnomon_cube *c)
{
    gnomon_free(ctx, c->data);
    c->data = NULL;
}

gnomon_strips gnomon_strips_cut(const gnomon_cube *c, int mode, int64_t width, int64_t length)
{
    gnomon_strips s = {.left = 1, .right = 1};
    for (int i = 0; i < mode; i++)
        s.left *= c->size[i];
    for (int i = mode + 1; i < c->modes; i++)
        s.right *= c->size[i];
    s.columns = s.left * s.right;
    s.column_major = s.right == 1;
    s.gathered = (s.right < SHORT || s.right > GNOMON_BLAS_MAX) && !s.column_major;
    s.width = width;
    if (length > 0 && s.width > ROOM / length)
        s.width = ROOM / length > LEAST ? ROOM / length : LEAST;
    if (s.column_major || s.gathered) {
        s.count = (s.columns + s.width - 1) / s.width;
    } else {
        s.per_left = (s.right + s.width - 1) / s.width;
        s.count = s.left * s.per_left;
    }
    return s;
}

gnomon_matrix gnomon_sheet_view(const gnomon_sheet *s)
{
    return (gnomon_matrix){.data = s->data,
                           .dtype = GNOMON_F32,
                           .memory = GNOMON_HOST,
                           .rows = s->rows,
                           .cols = s->cols,
                           .row_stride = s->column_major ? 1 : s->stride,
                           .col_stride = s->column_major ? s->stride : 1};
}

int64_t gnomon_strip_first(const gnomon_strips *s, int64_t number, int64_t *cols)
{
    int64_t first = number * s->width, end = s->columns;
    if (s->per_left > 0) {
        const int64_t l = number / s->per_left;
        first = l * s->right + number % s->per_left * s->width;
        end = (l + 1) * s->right;
    }
    *cols = gnomon_min(s->width, end - first);
    return first;
}

/* Element (0, col) of the unfolding. */
static char *place_of(const gnomon_strips *s, const gnomon_cube *c, int mode, int64_t col)
{
    const int64_t at = col / s->right * c->size[mode] * s->right + col % s->right;
    return (char *)c->data + (size_t)at * gnomon_tall_size(c->f64);
}

/* Copies the strip's lines between c and packed. */
static void copy(const gnomon_strips *s, const gnomon_cube *c, int mode, int64_t col, int64_t cols,
                 char *packed, bool to_cube)
{
    const size_t size = gnomon_tall_size(c->f64);
    const size_t line = (size_t)s->right * size, row = (size_t)cols * size;
    for (int64_t at = 0; at < cols;) {
        const int64_t run = gnomon_min(s->right - (col + at) % s->right, cols - at);
        char *inside = place_of(s, c, mode, col + at), *outside = packed + (size_t)at * size;
        for (int64_t i = 0; i < c->size[mode]; i++) {
            if (to_cube)
                memcpy(inside, outside, (size_t)run * size);
            else
                memcpy(outside, inside, (size_t)run * size);
            inside += line;
            outside += row;
        }
        at += run;
    }
}

gnomon_sheet gnomon_strip_open(const gnomon_strips *s, int64_t number, const gnomon_cube *c,
                               int mode, void *scratch, bool load)
{
    int64_t cols;
    const int64_t col = gnomon_strip_first(s, number, &cols);
    gnomon_sheet sheet = {.rows = c->size[mode], .cols = cols, .column_major = s->column_major};
    if (s->gathered) {
        sheet.data = scratch;
        sheet.stride = cols;
        if (load) copy(s, c, mode, col, cols, scratch, false);
    } else {
        sheet.data = place_of(s, c, mode, col);
        sheet.stride = s->column_major ? c->size[mode] : s->right;
    }
    return sheet;
}

void gnomon_strip_store(const gnomon_strips *s, int64_t number, const gnomon_cube *c, int mode,
                        const gnomon_sheet *sheet)
{
    int64_t cols;
    const int64_t col = gnomon_strip_first(s, number, &cols);
    if (s->gathered) copy(s, c, mode, col, cols, sheet->data, true);
}

void gnomon_strip_to_f64(const gnomon_strips *s, const gnomon_cube *c, int mode, int64_t col,
                         int64_t cols, double *out)
{
    const int64_t length = c->size[mode];
    for (int64_t at = 0; at < cols;) {
        const int64_t run = gnomon_min(s->right - (col + at) % s->right, cols - at);
        const char *from = place_of(s, c, mode, col + at);
        double *to = out + at * length;
        for (int64_t i = 0; i < length; i++) {
            if (c->f64) {
                const double *line = (const double *)from + i * s->right;
                for (int64_t r = 0; r < run; r++)
                    to[r * length + i] = line[r];
            } else {
                const float *line = (const float *)from + i * s->right;
                for (int64_t r = 0; r < run; r++)
                    to[r * length + i] = (double)line[r];
            }
        }
        at += run;
    }
}

/* A file of sparse points held against everything that docs/reference/formats.md says of it. */
#include "inverted/file/file.h"

#include "base/arithmetic.h"
#include "base/memory.h"
#include "kernels.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void tell_of(gnomon_checker *c, gnomon_section_kind kind, const char *fault)
{
    gnomon_tell(c, gnomon_section_name_of(kind, 0).text, fault);
}

gnomon_status gnomon_sparse_check_bytes(gnomon_context *ctx, const gnomon_sparse_index *index)
{
    return gnomon_file_check_bytes(ctx, &gnomon_sparse_file, index->map, index->map_bytes);
}

/* ---- what the sections tell ---- */

static bool check_rows(gnomon_checker *c, const gnomon_inverted *x)
{
    const gnomon_search_kernels *kernels = gnomon_cpu_kernels(gnomon_context_isa(c->ctx))->search;
    const int64_t before = c->faults;
    for (int64_t i = 0; i < x->rows.count && c->faults == before; i++) {
        char text[96];
        if (!gnomon_inverted_row_sound(x, i)) {
            snprintf(text, sizeof text, "those of row %" PRId64 " do not ascend within bounds", i);
            tell_of(c, GNOMON_SECTION_ROW_COLUMNS, text);
            break;
        }
        gnomon_sparse_row row = gnomon_sparse_row_at(&x->rows, i);
        for (int64_t e = 0; e < row.count; e++)
            if (!(fabs(row.values[e]) <= 0x1p500)) {
                snprintf(text, sizeof text, "row %" PRId64 " has NaN or a magnitude above 2^500",
                         i);
                tell_of(c, GNOMON_SECTION_ROW_VALUES, text);
                break;
            }
        if (x->rows.factors == NULL || c->faults > before) continue;
        row.factor = 1;
        const double factor = gnomon_sparse_inverse_norm(kernels, &row);
        if (memcmp(&factor, &x->rows.factors[i], sizeof factor) != 0) {
            snprintf(text, sizeof text, "that of row %" PRId64 " is not 1 by its norm", i);
            tell_of(c, GNOMON_SECTION_ROW_FACTORS, text);
        }
    }
    return c->faults == before;
}

static void compare(gnomon_checker *c, gnomon_section_kind kind, const void *a, const void *b,
                    int64_t bytes)
{
    if (bytes > 0 && memcmp(a, b, (size_t)bytes) != 0)
        tell_of(c, kind, "is not what the rows give");
}

static gnomon_status check_columns(gnomon_checker *c, const gnomon_inverted *x,
                                   const gnomon_inverted *y)
{
    const int64_t used = x->columns.used;
    int64_t *members = NULL;
    uint32_t *numbers = NULL;
    gnomon_status status = gnomon_alloc(c->ctx, used, sizeof *members, "columns", &members);
    if (status == GNOMON_OK)
        status = gnomon_alloc(c->ctx, used, sizeof *numbers, "columns", &numbers);
    if (status == GNOMON_OK) status = gnomon_numbering_list(c->ctx, &y->columns, members, numbers);
    if (status == GNOMON_OK) {
        compare(c, GNOMON_SECTION_COLUMNS, members, x->columns.keys, used * 8);
        compare(c, GNOMON_SECTION_NUMBERS, numbers, x->columns.numbers, used * 4);
    }
    gnomon_free(c->ctx, members);
    gnomon_free(c->ctx, numbers);
    return status;
}

/* Lists [from, to) of y, filled now, against x's. */
static gnomon_status check_some_lists(gnomon_checker *c, const gnomon_inverted *x,
                                      gnomon_inverted *y, int64_t from, int64_t to)
{
    const int64_t begin = x->lists[from], count = x->lists[to] - begin;
    uint32_t *ids = NULL;
    float *values = NULL;
    gnomon_status status = gnomon_alloc(c->ctx, count, sizeof *ids, "lists", &ids);
    if (status == GNOMON_OK) status = gnomon_alloc(c->ctx, count, sizeof *values, "lists", &values);
    if (status == GNOMON_OK) {
        gnomon_inverted_fill_lists(y, from, to, ids, values);
        compare(c, GNOMON_SECTION_LIST_IDS, ids, x->ids + begin, count * 4);
        compare(c, GNOMON_SECTION_LIST_VALUES, values, x->values + begin, count * 4);
    }
    gnomon_free(c->ctx, ids);
    gnomon_free(c->ctx, values);
    return status;
}

/* The steps and codes, held against the block, which has been found to be as due. */
static gnomon_status check_codes(gnomon_checker *c, const gnomon_inverted *x)
{
    const int64_t n = x->rows.count, padded = gnomon_inverted_padded(n);
    const int64_t columns = x->columns.used - x->heavy_from;
    float *most = NULL, *steps = NULL;
    int8_t *codes = NULL;
    gnomon_status status = gnomon_alloc_zero(c->ctx, x->width, sizeof *most, "columns", &most);
    if (status == GNOMON_OK)
        status = gnomon_alloc(c->ctx, columns, sizeof *steps, "columns", &steps);
    if (status == GNOMON_OK) status = gnomon_alloc_zero(c->ctx, padded, 1, "columns", &codes);
    if (status == GNOMON_OK) {
        gnomon_inverted_take_most(x, x->block, n, 0, x->width, most);
        gnomon_inverted_set_steps(x, most, steps);
        compare(c, GNOMON_SECTION_STEPS, steps, x->steps, columns * (int64_t)sizeof *steps);
    }
    for (int64_t i = 0; i < columns && status == GNOMON_OK && c->faults == 0; i++) {
        gnomon_inverted_fill_codes(x, steps, x->block, 0, n, i, i + 1, codes);
        compare(c, GNOMON_SECTION_BLOCK_CODES, codes, x->codes + i * padded, padded);
    }
    gnomon_free(c->ctx, most);
    gnomon_free(c->ctx, steps);
    gnomon_free(c->ctx, codes);
    return status;
}

static gnomon_status check_block(gnomon_checker *c, const gnomon_inverted *x,
                                 const gnomon_inverted *y)
{
    const int64_t n = x->rows.count, row = x->width * (int64_t)sizeof *x->block;
    if (row == 0) return GNOMON_OK;
    const int64_t most = gnomon_min(n, gnomon_max(gnomon_memory_limit(c->ctx) / 4 / (row + 4), 1));
    float *block = NULL, *heavy = NULL;
    gnomon_status status = gnomon_alloc(c->ctx, most, (size_t)row, "heavy columns", &block);
    if (status == GNOMON_OK) status = gnomon_alloc(c->ctx, most, sizeof *heavy, "norms", &heavy);
    for (int64_t at = 0; at < n && status == GNOMON_OK && c->faults == 0; at += most) {
        const int64_t here = gnomon_min(most, n - at);
        gnomon_inverted_fill_block(y, at, here, block, heavy);
        compare(c, GNOMON_SECTION_BLOCK, block, x->block + at * x->width, here * row);
        compare(c, GNOMON_SECTION_BLOCK_NORMS, heavy, x->heavy + at, here * 4);
    }
    for (int64_t i = n; i < gnomon_inverted_padded(n) && status == GNOMON_OK; i++)
        if (x->heavy[i] != 0) {
            tell_of(c, GNOMON_SECTION_BLOCK_NORMS, "those behind the last point are not 0");
            break;
        }
    gnomon_free(c->ctx, block);
    gnomon_free(c->ctx, heavy);
    return status == GNOMON_OK && c->faults == 0 ? check_codes(c, x) : status;
}

/* x, as a file has it, beside y, which begins with the same rows. */
static gnomon_status check_made(gnomon_checker *c, const gnomon_inverted *x, gnomon_inverted *y)
{
    const int64_t norms = gnomon_inverted_padded(x->rows.count) * (int64_t)sizeof *x->norm;
    if (y->columns.used != x->columns.used || y->heavy_from != x->heavy_from ||
        y->exponent != x->exponent || y->longest != x->longest) {
        tell_of(c, GNOMON_SECTION_SPARSE_SETTINGS, "they are not those of the rows");
        return GNOMON_OK;
    }
    GNOMON_TRY(check_columns(c, x, y));
    compare(c, GNOMON_SECTION_NORMS, x->norm, y->norm, norms);
    if (x->bias != NULL) compare(c, GNOMON_SECTION_BIAS, x->bias, y->bias, norms);
    compare(c, GNOMON_SECTION_LISTS, x->lists, y->lists + 1, (x->heavy_from + 1) * 8);
    if (c->faults > 0) return GNOMON_OK;
    GNOMON_TRY(check_block(c, x, y));
    const int64_t room = gnomon_max(gnomon_memory_limit(c->ctx) / 4, 1);
    for (int64_t from = 0; from < x->heavy_from && c->faults == 0;) {
        const int64_t to = from + gnomon_inverted_lists_at_once(y, from, room);
        GNOMON_TRY(check_some_lists(c, x, y, from, to));
        from = to;
        GNOMON_TRY(gnomon_progress(c->ctx, "lists", from, x->heavy_from));
    }
    return GNOMON_OK;
}

static gnomon_status check_index(gnomon_checker *c, const gnomon_inverted *x)
{
    gnomon_inverted y;
    gnomon_sets lent = x->rows;
    if (!check_rows(c, x)) return GNOMON_OK;
    GNOMON_TRY(gnomon_inverted_begin(c->ctx, x->metric, &lent, true, x->cols, &y));
    const gnomon_status status = check_made(c, x, &y);
    gnomon_inverted_close(c->ctx, &y);
    return status;
}

static gnomon_status check(gnomon_checker *c, const gnomon_layout *layout)
{
    gnomon_sparse_index *index = NULL;
    gnomon_status status = gnomon_sparse_load(c->ctx, layout, &index);
    if (status != GNOMON_OK) return gnomon_tell_error(c, status);
    status = check_index(c, &index->inverted);
    gnomon_sparse_index_destroy(index);
    return status;
}

gnomon_status gnomon_sparse_index_check(gnomon_context *ctx, const char *path,
                                        gnomon_sparse_fault_fn fn, void *user)
{
    return gnomon_file_check(ctx, &gnomon_sparse_file, path, check, fn, user);
}

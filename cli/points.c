/* All points of a file in memory. */
#include "cli.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

double cli_beyond(gnomon_dtype dtype)
{
    /* the middle between the largest number and what would be the next one rounds up */
    return dtype == GNOMON_F16    ? 65520
           : dtype == GNOMON_BF16 ? 0x1.ffp127
           : dtype == GNOMON_F32  ? 0x1.ffffffp127
                                  : HUGE_VAL;
}

cli_room cli_memory_words(double bytes)
{
    const double has = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    const double tib = 1024.0 * 1024 * 1024 * 1024;
    cli_room room;
    if (bytes < tib || bytes <= has)
        snprintf(room.text, sizeof room.text, "--memory %.0fM or more", ceil(bytes / (1 << 20)));
    else
        snprintf(room.text, sizeof room.text, "%.3g TiB, more than this machine has", bytes / tib);
    return room;
}

int cli_points_too_large(cli_app *app, const char *path, double bytes)
{
    return cli_fail(app, CLI_EXIT_MEMORY, "%s: all points must fit in memory: they need %s", path,
                    cli_memory_words(bytes + (double)CLI_OVERHEAD_BYTES).text);
}

gnomon_dtype cli_held_dtype(const gnomon_data_info *info)
{
    if ((info->access & GNOMON_ACCESS_SPARSE) != 0 && info->dtype != GNOMON_F32) return GNOMON_F64;
    return info->dtype;
}

gnomon_status cli_read_rows(gnomon_reader *reader, const gnomon_matrix *to)
{
    const int64_t row = to->row_stride * (int64_t)gnomon_dtype_size(to->dtype);
    for (int64_t have = 0, got; have < to->rows; have += got) {
        gnomon_matrix part = *to;
        part.data = (char *)to->data + have * row;
        part.rows = to->rows - have;
        got = 0;
        const gnomon_status status = gnomon_reader_next(reader, &part, &got);
        if (status != GNOMON_OK) return status;
        if (cli_interrupted()) return GNOMON_ERROR_CANCELLED;
        if (got == 0) return GNOMON_ERROR_TRUNCATED;
    }
    return GNOMON_OK;
}

/* Reads everything into p->data, taking 'budget' bytes at most; *used tells how many. */
static int load_dense(cli_app *app, const char *path, cli_points *p, int64_t budget, int64_t *used)
{
    const gnomon_dtype dtype = p->wanted != 0 ? p->wanted : cli_held_dtype(&p->info);
    size_t element = gnomon_dtype_size(dtype);
    int64_t row, capacity = p->info.rows >= 0 ? p->info.rows : 1024, have = 0;
    if (__builtin_mul_overflow(p->info.cols, (int64_t)element, &row) || row > budget)
        return cli_points_too_large(app, path, (double)p->info.cols * (double)element);
    if (row < 1) row = 1;
    for (;;) {
        if (capacity > budget / row)
            return cli_points_too_large(app, path,
                                        (double)(app->memory - CLI_OVERHEAD_BYTES - budget) +
                                            (double)capacity * (double)row);
        void *grown = realloc(p->data, cli_bytes(capacity, row));
        if (grown == NULL)
            return cli_fail(app, CLI_EXIT_MEMORY, "%s: out of memory for %lld points", path,
                            (long long)capacity);
        p->data = grown;
        while (have < capacity) {
            int64_t got = 0;
            int64_t step = capacity - have < 65536 ? capacity - have : 65536;
            gnomon_matrix part =
                gnomon_matrix_rowmajor((char *)p->data + have * row, dtype, step, p->info.cols);
            gnomon_status status = gnomon_reader_next(p->reader, &part, &got);
            if (status == GNOMON_OK && cli_interrupted()) status = GNOMON_ERROR_CANCELLED;
            if (status != GNOMON_OK) return cli_fail_status(app, status);
            if (got == 0) break;
            have += got;
        }
        if (have < capacity || p->info.rows >= 0) break;
        capacity *= 2;
    }
    p->dense = gnomon_matrix_rowmajor(p->data, dtype, have, p->info.cols);
    *used = have * row;
    return -1;
}

double cli_entries(const gnomon_data_info *info)
{
    if (info->nonzeros >= 0) return (double)info->nonzeros;
    if ((info->access & GNOMON_ACCESS_SPARSE) != 0 || info->rows < 0) return 0;
    return (double)info->rows * (double)info->cols;
}

double cli_gathered_bytes(const gnomon_data_info *info)
{
    return (info->access & GNOMON_ACCESS_GATHERED) != 0 ? 48 * cli_entries(info) : 0;
}

static int load_sparse(cli_app *app, const char *path, cli_points *p, int64_t budget, int64_t *used)
{
    gnomon_status status =
        gnomon_reader_next_csr(p->reader, INT64_MAX / 16, budget / 32, &p->sparse);
    if (status != GNOMON_OK) return cli_fail_status(app, status);
    if (p->info.rows >= 0 && p->sparse.rows < p->info.rows)
        return cli_points_too_large(app, path,
                                    32.0 * cli_entries(&p->info) + 16.0 * (double)p->info.rows);
    *used = 32 * (p->sparse.offsets[p->sparse.rows] - p->sparse.offsets[0]);
    p->is_sparse = 1;
    return -1;
}

/* Whether the reader has more sparse points than it has given. */
int cli_points_at_end(cli_points *p)
{
    gnomon_csr rest;
    if (!p->is_sparse || p->info.rows >= 0) return 1;
    return gnomon_reader_next_csr(p->reader, 1, 1, &rest) == GNOMON_OK && rest.rows == 0;
}

int cli_points_read(cli_app *app, const char *path, int may_be_sparse, cli_points *p,
                    int64_t *budget)
{
    int64_t used = 0;
    int code = may_be_sparse == CLI_FORM_ANY ||
                       (may_be_sparse && (p->info.access & GNOMON_ACCESS_SPARSE) != 0)
                   ? load_sparse(app, path, p, *budget, &used)
                   : load_dense(app, path, p, *budget, &used);
    *budget -= used;
    return code;
}

int cli_points_load(cli_app *app, const char *path, const cli_input_options *in, int may_be_sparse,
                    cli_points *p, int64_t *budget)
{
    int code = cli_open_input(app, path, in, &p->reader, &p->info);
    return code >= 0 ? code : cli_points_read(app, path, may_be_sparse, p, budget);
}

void cli_points_drop(cli_points *p)
{
    gnomon_reader_close(p->reader);
    free(p->data);
}

int cli_check_form(cli_app *app, const char *path, const gnomon_data_info *info,
                   gnomon_metric metric)
{
    char names[CLI_FORMATS_TEXT];
    if (cli_metric_form(metric) != CLI_FORM_SPARSE || (info->access & GNOMON_ACCESS_SPARSE) != 0)
        return -1;
    return cli_fail(app, CLI_EXIT_USAGE, "%s: --metric %s takes sparse points (%s)", path,
                    gnomon_metric_name(metric), cli_formats(names, GNOMON_HOLDS_SPARSE, 0, 0));
}

/* Sparse points that do not fit in memory: their rows are read again for each band of P. */
#include "verbs/join/join.h"

#include <stdlib.h>
#include <string.h>

typedef struct cursor {
    gnomon_reader *reader;
    int64_t next; /* the row that the reader is at */
} cursor;

/* One side's rows. */
typedef struct rows_reading {
    cli_join *j;
    const char *path;
    int64_t cols;
    /* The second one (reader NULL: there is none) is for self-joins, where bands go on from where
     * they were while pieces come again and again. */
    cursor at, again;
    gnomon_join_rows rows;
    int64_t *counted; /* rows.offsets */
    /* rows that came in parts */
    int64_t *offsets, *indices;
    char *values;
    int64_t row_room, room;
} rows_reading;

/* Appends rows of a part. */
static gnomon_status append_rows(rows_reading *r, gnomon_csr *all, const gnomon_csr *part)
{
    const int64_t size = (int64_t)gnomon_dtype_size(part->dtype);
    const int64_t have = all->rows > 0 ? r->offsets[all->rows] : 0;
    const int64_t more = part->offsets[part->rows] - part->offsets[0];
    if (all->rows + part->rows >= r->row_room) {
        const int64_t room = (all->rows + part->rows) * 2 + 1;
        int64_t *grown = realloc(r->offsets, cli_bytes(room, sizeof *grown));
        if (grown == NULL) return GNOMON_ERROR_MEMORY;
        r->offsets = grown;
        r->row_room = room;
    }
    if (have + more > r->room || r->indices == NULL) {
        const int64_t room = (have + more) / 2 * 3 + 1;
        int64_t *indices = realloc(r->indices, cli_bytes(room, sizeof *indices));
        if (indices != NULL) r->indices = indices;
        char *values = realloc(r->values, cli_bytes(room, sizeof(double)));
        if (values != NULL) r->values = values;
        if (indices == NULL || values == NULL) return GNOMON_ERROR_MEMORY;
        r->room = room;
    }
    for (int64_t i = 0; i <= part->rows; i++)
        r->offsets[all->rows + i] = have + part->offsets[i] - part->offsets[0];
    if (more > 0) {
        memcpy(r->indices + have, part->indices, (size_t)more * sizeof *r->indices);
        memcpy(r->values + have * size, part->values, (size_t)(more * size));
    }
    *all = (gnomon_csr){.rows = all->rows + part->rows,
                        .cols = part->cols,
                        .offsets = r->offsets,
                        .indices = r->indices,
                        .values = r->values,
                        .dtype = part->dtype};
    return GNOMON_OK;
}

static gnomon_status read_rows(void *user, int64_t first, int64_t count, gnomon_csr *to)
{
    rows_reading *r = user;
    const double begin = cli_seconds();
    gnomon_status status = GNOMON_OK;
    const int other = r->again.reader != NULL && r->at.next != first &&
                      (r->again.next == first || r->again.next > r->at.next);
    cursor *at = other ? &r->again : &r->at;
    if (at->next != first) status = gnomon_reader_seek(at->reader, first);
    for (int64_t have = 0; have < count && status == GNOMON_OK; have = to->rows) {
        gnomon_csr part;
        status = gnomon_reader_next_csr(at->reader, count - have, INT64_MAX / 16, &part);
        if (status == GNOMON_OK && cli_interrupted()) status = GNOMON_ERROR_CANCELLED;
        if (status == GNOMON_OK && part.rows == 0) status = GNOMON_ERROR_TRUNCATED;
        if (status != GNOMON_OK) break;
        if (have == 0 && part.rows == count)
            *to = part;
        else
            status = append_rows(r, to, &part);
    }
    at->next = first + count;
    r->j->read_seconds += cli_seconds() - begin;
    return status;
}

/* Counts the entries of each row: the file is read once for that. */
static int count_rows(cli_join *j, rows_reading *r, const char *path, gnomon_reader *reader,
                      const gnomon_data_info *info)
{
    enum { ROWS = 65536, NONZEROS = 1 << 18 };
    cli_app *app = j->app;
    const int64_t most = (app->memory - CLI_OVERHEAD_BYTES) / 8 / (int64_t)sizeof *r->counted;
    int64_t room = 0, rows = 0;
    *r = (rows_reading){.j = j, .path = path, .cols = info->cols, .at.reader = reader};
    for (;;) {
        gnomon_csr part;
        gnomon_status status = gnomon_reader_next_csr(reader, ROWS, NONZEROS, &part);
        if (status == GNOMON_OK && cli_interrupted()) status = GNOMON_ERROR_CANCELLED;
        if (status != GNOMON_OK) return cli_fail_status(app, status);
        if (rows + part.rows >= most)
            return cli_points_too_large(app, path, 64.0 * (double)cli_max(info->rows, rows));
        if (rows + part.rows >= room) {
            room = (rows + part.rows) / 2 * 3 + 1024;
            int64_t *grown = realloc(r->counted, cli_bytes(room, sizeof *grown));
            if (grown == NULL)
                return cli_fail(app, CLI_EXIT_MEMORY, "%s: out of memory for %lld rows", path,
                                (long long)room);
            r->counted = grown;
            r->counted[0] = 0;
        }
        for (int64_t i = 0; i < part.rows; i++, rows++)
            r->counted[rows + 1] = r->counted[rows] + part.offsets[i + 1] - part.offsets[i];
        if (part.rows == 0) break;
    }
    r->at.next = rows;
    r->rows = (gnomon_join_rows){
        .user = r, .rows = rows, .cols = r->cols, .offsets = r->counted, .read = read_rows};
    return -1;
}

static void rows_drop(rows_reading *r)
{
    free(r->counted);
    free(r->offsets);
    free(r->indices);
    free(r->values);
}

int cli_join_open_rows(cli_join *j)
{
    gnomon_data_info same;
    const double begin = cli_seconds();
    j->rows = calloc(2, sizeof *j->rows);
    if (j->rows == NULL) return cli_fail(j->app, CLI_EXIT_MEMORY, "out of memory for a reader");
    int code = count_rows(j, &j->rows[0], j->p_path, j->p.reader, &j->p_info);
    if (code < 0 && j->q_path != NULL)
        code = count_rows(j, &j->rows[1], j->q_path, j->q.reader, &j->q_info);
    else if (code < 0 && (j->p_info.access & GNOMON_ACCESS_GATHERED) == 0) {
        code = cli_open_input(j->app, j->p_path, &j->p_input, &j->q.reader, &same);
        j->rows[0].again.reader = j->q.reader;
    }
    j->p_info.rows = j->rows[0].rows.rows;
    if (j->q_path != NULL) j->q_info.rows = j->rows[1].rows.rows;
    j->read_seconds += cli_seconds() - begin;
    return code;
}

void cli_join_drop_rows(cli_join *j)
{
    if (j->rows == NULL) return;
    rows_drop(&j->rows[0]);
    rows_drop(&j->rows[1]);
    free(j->rows);
    j->rows = NULL;
}

gnomon_status cli_join_rows(cli_join *j)
{
    return gnomon_join_stream_csr(j->app->ctx, &j->rows[0].rows,
                                  j->q_path != NULL ? &j->rows[1].rows : NULL, &j->options,
                                  &j->result);
}

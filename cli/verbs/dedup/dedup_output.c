/* What gnomon dedup writes: the kept lines, and tables. */
#include "verbs/dedup/dedup.h"

#include <string.h>

typedef struct table {
    cli_dedup_job *job;
    gnomon_table *out;
    gnomon_status status;
} table;

static void integer(table *t, int64_t value)
{
    if (t->status == GNOMON_OK) t->status = gnomon_table_integer(t->out, value);
}

static void name(table *t, int64_t document)
{
    const char *text = gnomon_dedup_name(t->job->dedup, document);
    if (text == NULL && t->status == GNOMON_OK) t->status = GNOMON_ERROR_IO;
    if (t->status == GNOMON_OK) t->status = gnomon_table_text(t->out, text);
}

static int write_table(cli_dedup_job *j, const char *path, const char *const *columns, int count,
                       void (*rows)(table *))
{
    table t = {.job = j};
    if (path == NULL) return -1;
    t.status = gnomon_table_open(j->app->ctx, path, strcmp(path, "-") == 0 ? "tsv" : NULL, columns,
                                 count, &t.out);
    if (t.status != GNOMON_OK) return cli_fail_status(j->app, t.status);
    rows(&t);
    if (t.status == GNOMON_OK)
        t.status = gnomon_table_finish(t.out);
    else
        gnomon_table_abort(t.out);
    return t.status == GNOMON_OK ? -1 : cli_fail_status(j->app, t.status);
}

/* Rows between two calls of the library, each of which lets go of the pages that were read. */
enum { ROWS = 1 << 16 };

static int more_kept(table *t, int64_t i, const int64_t **kept)
{
    if (i % ROWS == 0) *kept = gnomon_dedup_representatives(t->job->dedup);
    if (*kept == NULL) t->status = GNOMON_ERROR_IO;
    return *kept != NULL;
}

static void id_rows(table *t)
{
    const int64_t *kept = NULL;
    for (int64_t i = 0; i < t->job->result.documents && t->status == GNOMON_OK; i++) {
        if (!more_kept(t, i, &kept)) return;
        if (kept[i] != i) continue;
        integer(t, i);
        name(t, i);
    }
}

static void cluster_rows(table *t)
{
    const int64_t *kept = NULL;
    for (int64_t i = 0; i < t->job->result.documents && t->status == GNOMON_OK; i++) {
        if (!more_kept(t, i, &kept)) return;
        integer(t, i);
        name(t, i);
        integer(t, kept[i]);
        integer(t, kept[i] == i);
        if (t->job->against != NULL) name(t, kept[i]);
    }
}

static void pair_rows(table *t)
{
    const int64_t count = t->job->result.pairs;
    const gnomon_dedup_pair *pairs = NULL;
    for (int64_t at = 0; at < count && t->status == GNOMON_OK; at++) {
        if (at % ROWS == 0) pairs = gnomon_dedup_pairs(t->job->dedup, NULL);
        if (pairs == NULL) t->status = GNOMON_ERROR_IO;
        if (pairs == NULL) return;
        integer(t, pairs[at].i);
        integer(t, pairs[at].j);
        t->status = gnomon_table_real(t->out, pairs[at].similarity);
        name(t, pairs[at].i);
        name(t, pairs[at].j);
    }
}

int cli_dedup_write(cli_dedup_job *j)
{
    static const char *const ids[] = {"document", "name"};
    static const char *const pairs[] = {"i", "j", "similarity", "i_name", "j_name"};
    static const char *const clusters[] = {"document", "name", "representative", "kept",
                                           "representative_name"};
    int code = write_table(j, j->ids, ids, 2, id_rows);
    if (code < 0) code = write_table(j, j->pairs_path, pairs, 5, pair_rows);
    if (code < 0)
        code = write_table(j, j->clusters_path, clusters, j->against != NULL ? 5 : 4, cluster_rows);
    if (code >= 0 || j->output == NULL) return code;
    const gnomon_status status =
        j->again
            ? gnomon_dedup_write_again(j->dedup, j->inputs, j->input_count, &j->corpus, j->output)
            : gnomon_dedup_write(j->dedup, j->output);
    return status == GNOMON_OK ? -1 : cli_fail_status(j->app, status);
}

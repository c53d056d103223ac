/* Indexes in files, as the verbs that ask them share them. */
#include "cli.h"

int cli_index_fail(cli_app *app, const char *path, gnomon_status status)
{
    const char *text = gnomon_last_error(app->ctx);
    const int code = cli_interrupted() ? -1 : 0;
    if (code == 0 && status == GNOMON_ERROR_UNSUPPORTED && cli_error_about(app, path))
        return cli_fail(app, CLI_EXIT_DATA, "%s", text);
    return cli_fail_status(app, status);
}

int cli_index_open(cli_app *app, const char *path, cli_index_file *index)
{
    *index = (cli_index_file){NULL, NULL, NULL};
    gnomon_status status = gnomon_sparse_index_open(app->ctx, path, &index->inverted);
    if (status == GNOMON_ERROR_FORMAT) status = gnomon_rabitq_open(app->ctx, path, &index->coded);
    if (status == GNOMON_ERROR_FORMAT) status = gnomon_lsh_open(app->ctx, path, &index->hashed);
    return status == GNOMON_OK ? -1 : cli_index_fail(app, path, status);
}

void cli_index_close(cli_index_file *index)
{
    gnomon_lsh_destroy(index->hashed);
    gnomon_sparse_index_destroy(index->inverted);
    gnomon_rabitq_destroy(index->coded);
    *index = (cli_index_file){NULL, NULL, NULL};
}

void cli_index_describe(const cli_index_file *index, gnomon_lsh_info *info)
{
    gnomon_sparse_index_info told = {.struct_size = sizeof told};
    gnomon_rabitq_info coded = {.struct_size = sizeof coded};
    *info = (gnomon_lsh_info){.struct_size = sizeof *info};
    if (index->hashed != NULL) {
        gnomon_lsh_describe(index->hashed, info);
    } else if (index->inverted != NULL) {
        gnomon_sparse_index_describe(index->inverted, &told);
        info->points = told.points;
        info->removed = told.removed;
        info->options.metric = told.metric;
        info->options.functions.dim = told.dim;
    } else if (index->coded != NULL) {
        gnomon_rabitq_describe(index->coded, &coded);
        info->points = coded.points;
        info->options.metric = coded.options.metric;
        info->options.functions.dim = coded.dim;
        info->code_bytes = coded.code_bytes;
    }
}

int cli_index_read(cli_app *app, const char *path, gnomon_metric metric, int sparse, cli_points *p,
                   int64_t *budget)
{
    const cli_form form = sparse ? CLI_FORM_SPARSE : cli_metric_form(metric);
    int code = cli_check_form(app, path, &p->info, metric);
    if (code < 0) code = cli_points_read(app, path, form, p, budget);
    if (code < 0 && !cli_points_at_end(p))
        code = cli_points_too_large(app, path, 2.0 * (double)app->memory);
    return code;
}

int64_t cli_index_bytes(const gnomon_lsh_info *info)
{
    return info->table_bytes + info->code_bytes + info->other_bytes;
}

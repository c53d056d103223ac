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

int cli_index_open(cli_app *app, const char *path, gnomon_lsh **index)
{
    const gnomon_status status = gnomon_lsh_open(app->ctx, path, index);
    return status == GNOMON_OK ? -1 : cli_index_fail(app, path, status);
}

int cli_index_read(cli_app *app, const char *path, gnomon_metric metric, cli_points *p,
                   int64_t *budget)
{
    int code = cli_check_form(app, path, &p->info, metric);
    if (code < 0) code = cli_points_read(app, path, cli_metric_form(metric), p, budget);
    if (code < 0 && !cli_points_at_end(p))
        code = cli_points_too_large(app, path, 2.0 * (double)app->memory);
    return code;
}

int64_t cli_index_bytes(const gnomon_lsh_info *info)
{
    return info->table_bytes + info->code_bytes + info->other_bytes;
}

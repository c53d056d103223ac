/* A verb on several ranks: --comm. */
#include "cli.h"

#include <string.h>

/* The verbs that run so. */
static const char *const verbs[] = {"project", "neighbors", "join", "dedup", "svd", "lstsq"};
enum { VERBS = sizeof verbs / sizeof verbs[0] };

static int check_verb(cli_app *app)
{
    char list[128] = "";
    for (int i = 0; i < VERBS; ++i) {
        if (strcmp(verbs[i], app->verb) == 0) return -1;
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i > 0 ? ", " : "",
                 verbs[i]);
    }
    return cli_usage(app, "--comm: %s runs in one process; these run on several: %s", app->verb,
                     list);
}

int cli_comm_open(cli_app *app)
{
    static const gnomon_comm one = GNOMON_COMM_INIT;
    app->comm = one;
    if (app->comm_name == NULL) return -1;
    app->comm.size = 0; /* nothing to close yet */
    const int code = check_verb(app);
    if (code >= 0) return code;
    const gnomon_status status = gnomon_comm_open(app->ctx, app->comm_name, &app->comm);
    if (status == GNOMON_ERROR_UNSUPPORTED)
        return cli_fail(app, CLI_EXIT_DEVICE, "--comm %s: %s", app->comm_name,
                        gnomon_last_error(app->ctx));
    if (cli_error_about(app, "name") && status == GNOMON_ERROR_ARGUMENT)
        return cli_usage(app, "--comm%s", cli_error_rest(app));
    if (status != GNOMON_OK) return cli_fail_status(app, status);
    if (app->comm.rank > 0) { /* rank 0 reports */
        app->quiet = 1;
        app->json = 0;
        app->bar.mode = CLI_BAR_NEVER;
    }
    return -1;
}

int cli_comm_agree(cli_app *app, int code)
{
    int told = code + 1; /* 0 is well there, -1 here */
    if (app->comm.size == 1) return code;
    const gnomon_status status = gnomon_comm_agree(app->ctx, &app->comm, &told, NULL);
    if (status != GNOMON_OK) return cli_fail_status(app, status);
    app->agreed = told > 0;
    return told - 1;
}

int cli_comm_begin(cli_app *app, int (*work)(void *user), void *user)
{
    int code = app->comm.rank == 0 ? work(user) : -1;
    if (app->comm.size == 1) return code;
    code = cli_comm_agree(app, code);
    if (code < 0) code = cli_comm_agree(app, app->comm.rank > 0 ? work(user) : -1);
    return code;
}

int cli_comm_check_input(cli_app *app, const char *path, const gnomon_data_info *info)
{
    if (app->comm_name == NULL) return -1;
    if (strcmp(path, "-") != 0 && info->rows >= 0 && (info->access & GNOMON_ACCESS_SEEK) != 0)
        return -1;
    return cli_usage(app,
                     "--comm: each rank reads its own rows, and %s can be read from the beginning "
                     "alone: gnomon convert writes files of another format, as npy",
                     strcmp(path, "-") == 0 ? "standard input" : path);
}

void cli_comm_close(cli_app *app, int code)
{
    const gnomon_comm comm = app->comm;
    if (app->comm_name == NULL || comm.size == 0) return;
    app->comm.size = 0;
    /* the others wait for what this rank will not do */
    if (code > CLI_EXIT_DONE && !app->agreed && comm.abort != NULL)
        comm.abort(comm.user, code);
    else
        gnomon_comm_close(&comm);
}

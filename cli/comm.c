/* A verb on several ranks: --comm. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

/* Whether this process has met the other ranks. */
static int has_met;

/* The verbs that run so. */
static const char *const verbs[] = {"project", "neighbors", "join",  "dedup",
                                    "svd",     "hosvd",     "lstsq", "index build"};
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

/* Ranks of other verbs would wait for other messages than these send. */
static int check_same_verb(cli_app *app)
{
    char verb[64] = "";
    int code = -1;
    snprintf(verb, sizeof verb, "%s", app->verb);
    const gnomon_status status = gnomon_comm_broadcast(app->ctx, &app->comm, verb, sizeof verb);
    if (status != GNOMON_OK) return cli_fail_status(app, status);
    verb[sizeof verb - 1] = '\0';
    if (strcmp(verb, app->verb) != 0)
        code = cli_usage(app, "--comm: rank %d runs this verb and rank 0 runs %s; all must run one",
                         app->comm.rank, verb);
    return cli_comm_agree(app, code);
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
    has_met = 1;
    if (app->comm.rank > 0) { /* rank 0 reports */
        app->quiet = 1;
        app->json = 0;
        app->bar.mode = CLI_BAR_NEVER;
    }
    return app->comm.size > 1 ? check_same_verb(app) : -1;
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

/* What is said before a launcher ends all ranks, and ranks that are about to end, come first. */
static void pause_before_the_end(void)
{
    const struct timespec a_moment = {.tv_nsec = 200000000};
    nanosleep(&a_moment, NULL);
}

int cli_comm_close(cli_app *app, int code)
{
    const gnomon_comm comm = app->comm;
    if (app->comm_name == NULL || comm.size == 0) return code;
    app->comm.size = 0;
    /* the others wait for what this rank will not do */
    if (code > CLI_EXIT_DONE && !app->agreed && comm.abort != NULL) {
        comm.abort(comm.user, code);
        return code;
    }
    gnomon_comm_close(&comm);
    if (code <= CLI_EXIT_DONE || comm.size == 1) return code;
    /* Open MPI's launcher kills all ranks when the first one ends with an error, and at times hangs
     * where others are just ending: so the job's code is that of rank 0, which ends last. */
    if (comm.rank > 0) return CLI_EXIT_DONE;
    pause_before_the_end();
    return code;
}

/* ---- ranks that the others would wait for ---- */

static int has_comm(int argc, char **argv)
{
    static const char option[] = "--comm";
    const size_t length = sizeof option - 1;
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], option, length) == 0 &&
            (argv[i][length] == '\0' || argv[i][length] == '='))
            return 1;
    return 0;
}

/* MPICH's launcher does not mind a process that ends before it has begun with MPI; it hears an
 * abort from the socket that it gave the process, which is how MPICH's own library tells it. */
static void tell_launcher(int code)
{
    char text[64], *end;
    struct stat file;
    const char *number = getenv("PMI_FD");
    if (number == NULL) return;
    const long fd = strtol(number, &end, 10);
    if (end == number || *end != '\0' || fd < 0 || fd > 1 << 20 || fstat((int)fd, &file) != 0 ||
        !S_ISSOCK(file.st_mode))
        return;
    const int length = snprintf(text, sizeof text, "cmd=abort exitcode=%d\n", code);
    (void)!send((int)fd, text, (size_t)length, MSG_NOSIGNAL | MSG_DONTWAIT);
}

int cli_comm_refuse(int argc, char **argv, int code)
{
    static const char *const launchers[][2] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                               {"PMI_RANK", "PMI_SIZE"}};
    if (has_met || code <= CLI_EXIT_DONE || !has_comm(argc, argv)) return code;
    for (size_t i = 0; i < sizeof launchers / sizeof launchers[0]; i++) {
        const char *rank = getenv(launchers[i][0]), *size = getenv(launchers[i][1]);
        if (rank == NULL || size == NULL || strtol(size, NULL, 10) < 2) continue;
        fprintf(stderr, "gnomon: rank %ld of %ld ends before it has met the others\n",
                strtol(rank, NULL, 10), strtol(size, NULL, 10));
        pause_before_the_end();
        tell_launcher(code);
        break;
    }
    return code;
}

/* The run of one verb: common options, the context. */
#include "cli.h"

#include <string.h>

size_t cli_bytes(int64_t count, int64_t size)
{
    int64_t bytes;
    if (count < 0 || size < 0 || __builtin_mul_overflow(count, size, &bytes)) return PTRDIFF_MAX;
    return (size_t)bytes + (bytes == 0);
}

void cli_init(cli_app *app, const char *verb)
{
    memset(app, 0, sizeof *app);
    app->verb = verb;
    app->started = cli_seconds();
    app->memory = (int64_t)1 << 30;
    app->device = "auto";
}

void cli_common_options(cli_app *app, cli_option table[CLI_COMMON_OPTIONS])
{
    static const cli_choice modes[] = {
        {"auto", CLI_BAR_AUTO}, {"always", CLI_BAR_ALWAYS}, {"never", CLI_BAR_NEVER}, {NULL, 0}};
    const cli_option options[CLI_COMMON_OPTIONS] = {
        {.name = "device",
         .type = CLI_TEXT,
         .target = &app->device,
         .value = "DEVICE",
         .help = "auto (default), cpu or cuda; cuda:N is the GPU with index N. With auto the CPU "
                 "is used where the GPU can't do the job; cuda fails then, with the reason"},
        {.name = "threads",
         .type = CLI_INT,
         .target = &app->threads,
         .value = "N",
         .high = 4096,
         .help = "worker threads; 0 (default): one per core. Results never depend on it"},
        {.name = "memory",
         .type = CLI_SIZE,
         .target = &app->memory,
         .value = "SIZE",
         .low = CLI_OVERHEAD_BYTES + ((int64_t)1 << 20),
         .help = "memory to use (default 1G). K, M, G, T and KiB, MiB ... count in 1024s, KB, MB "
                 "... in 1000s. On the CPU results never depend on it"},
        {.name = "comm",
         .type = CLI_TEXT,
         .target = &app->comm_name,
         .value = "ENGINE",
         .help = "run on all processes that mpiexec started, with the same output: mpi, or mpich "
                 "or openmpi. --threads and --memory are those of each; by default the cores of a "
                 "host are shared out"},
        {.name = "json",
         .type = CLI_FLAG,
         .target = &app->json,
         .flag = 1,
         .help = "print the results and facts about the run as one JSON object on standard output"},
        {.name = "progress",
         .type = CLI_CHOICE,
         .target = &app->bar.mode,
         .value = "WHEN",
         .choices = modes,
         .help =
             "auto (default: on a terminal, for what takes over half a second), always or never"},
        {.name = "quiet",
         .type = CLI_FLAG,
         .target = &app->quiet,
         .flag = 1,
         .help = "print nothing on standard error but errors"},
    };
    memcpy(table, options, sizeof options);
}

static int make_context(cli_app *app, int threads)
{
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    options.device = app->device;
    options.threads = threads;
    /* Chunks are cut so that this and the process itself fit in CLI_OVERHEAD_BYTES. */
    options.memory_limit = CLI_OVERHEAD_BYTES / 2;
    if (app->working > options.memory_limit) options.memory_limit = app->working;
    options.progress = cli_bar_progress;
    options.progress_user = app;
    gnomon_status status = gnomon_context_create(&options, &app->ctx);
    if (status == GNOMON_OK) return -1;
    if (status == GNOMON_ERROR_DEVICE)
        return cli_fail(app, CLI_EXIT_DEVICE, "--device %s: %s", app->device,
                        gnomon_last_error(NULL));
    if (cli_error_about(app, "options.device"))
        return cli_usage(app, "--device%s", cli_error_rest(app));
    return cli_fail_status(app, status);
}

int cli_start(cli_app *app)
{
    int code = make_context(app, (int)app->threads);
    if (code < 0) code = cli_comm_open(app);
    if (code < 0 && app->threads == 0 && app->comm.host_size > 1) {
        /* the cores that a rank may use are shared by all ranks of its host */
        const int cores = gnomon_context_threads(app->ctx);
        gnomon_context_destroy(app->ctx);
        app->ctx = NULL;
        code = make_context(app, (int)cli_max(cores / app->comm.host_size, 1));
    }
    return code < 0 ? code : cli_end(app, code);
}

int cli_end(cli_app *app, int code)
{
    cli_bar_clear(app);
    code = cli_comm_close(app, code);
    gnomon_context_destroy(app->ctx);
    app->ctx = NULL;
    return code;
}

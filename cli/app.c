/* The run of one verb: common options, the context, words and errors. */
#include "cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double cli_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

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
         .help =
             "auto (default), cpu, or cuda, which must work or fail with the reason; cuda:N is the "
             "GPU with index N"},
        {.name = "threads",
         .type = CLI_INT,
         .target = &app->threads,
         .value = "N",
         .high = 4096,
         .help = "worker threads; 0 (default): one a core. Results never depend on it"},
        {.name = "memory",
         .type = CLI_SIZE,
         .target = &app->memory,
         .value = "SIZE",
         .low = CLI_OVERHEAD_BYTES + ((int64_t)1 << 20),
         .help = "memory to use (default 1G). K, M, G, T and KiB, MiB ... count in 1024s, KB, MB "
                 "... in 1000s. On the CPU results never depend on it"},
        {.name = "json",
         .type = CLI_FLAG,
         .target = &app->json,
         .flag = 1,
         .help = "print one JSON object on standard output: the results and the run's facts"},
        {.name = "progress",
         .type = CLI_CHOICE,
         .target = &app->bar.mode,
         .value = "WHEN",
         .choices = modes,
         .help = "auto (default: on a terminal, for what takes over half a second), always or "
                 "never"},
        {.name = "quiet",
         .type = CLI_FLAG,
         .target = &app->quiet,
         .flag = 1,
         .help = "say nothing on standard error but errors"},
    };
    memcpy(table, options, sizeof options);
}

int cli_start(cli_app *app)
{
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    options.device = app->device;
    options.threads = (int)app->threads;
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

int cli_end(cli_app *app, int code)
{
    cli_bar_clear(app);
    gnomon_context_destroy(app->ctx);
    app->ctx = NULL;
    return code;
}

void cli_say(cli_app *app, const char *format, ...)
{
    va_list arguments;
    if (app->quiet) return;
    cli_bar_clear(app);
    va_start(arguments, format);
    char *text = cli_vmessage(format, arguments);
    va_end(arguments);
    if (text != NULL) fputs(text, stderr);
    free(text);
}

static void complain(cli_app *app, const char *format, va_list arguments)
{
    cli_bar_clear(app);
    char *text = cli_vmessage(format, arguments);
    fprintf(stderr, "gnomon %s: %s\n", app->verb, text != NULL ? text : "out of memory");
    free(text);
}

int cli_fail(cli_app *app, int code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    complain(app, format, arguments);
    va_end(arguments);
    return code;
}

int cli_usage(cli_app *app, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    complain(app, format, arguments);
    va_end(arguments);
    fprintf(stderr, "Try 'gnomon %s --help'.\n", app->verb);
    return CLI_EXIT_USAGE;
}

static int exit_code(gnomon_status status)
{
    switch (status) {
    case GNOMON_OK:
        return CLI_EXIT_DONE;
    case GNOMON_ERROR_ARGUMENT:
    case GNOMON_ERROR_SHAPE:
    case GNOMON_ERROR_DTYPE:
    case GNOMON_ERROR_OVERFLOW:
    case GNOMON_ERROR_UNSUPPORTED:
    case GNOMON_ERROR_BUSY:
        return CLI_EXIT_USAGE;
    case GNOMON_ERROR_DATA:
    case GNOMON_ERROR_NONFINITE:
    case GNOMON_ERROR_TRUNCATED:
    case GNOMON_ERROR_FORMAT:
        return CLI_EXIT_DATA;
    case GNOMON_ERROR_IO:
    case GNOMON_ERROR_NOT_FOUND:
        return CLI_EXIT_FILE;
    case GNOMON_ERROR_MEMORY:
        return CLI_EXIT_MEMORY;
    case GNOMON_ERROR_DEVICE:
        return CLI_EXIT_DEVICE;
    case GNOMON_ERROR_CANCELLED:
        return CLI_EXIT_INTERRUPTED;
    case GNOMON_ERROR_INTERNAL:
        break;
    }
    return CLI_EXIT_DEFECT;
}

int cli_error_about(const cli_app *app, const char *argument)
{
    return strcmp(gnomon_last_error_argument(app->ctx), argument) == 0;
}

const char *cli_error_rest(const cli_app *app)
{
    const char *text = gnomon_last_error(app->ctx);
    const char *argument = gnomon_last_error_argument(app->ctx);
    const size_t length = strlen(argument);
    return strncmp(text, argument, length) == 0 ? text + length : text;
}

int cli_fail_status(cli_app *app, gnomon_status status)
{
    int code = exit_code(status);
    const char *text = gnomon_last_error(app->ctx);
    if (code == CLI_EXIT_INTERRUPTED || cli_interrupted())
        return cli_fail(app, CLI_EXIT_INTERRUPTED, "interrupted; no file was changed");
    /* whoever read standard output has seen enough, as of head */
    if (code == CLI_EXIT_FILE && cli_error_about(app, "standard output") && cli_pipe_closed())
        return CLI_EXIT_PIPE;
    if (code == CLI_EXIT_DEFECT)
        return cli_fail(app, code, "a defect of gnomon, please report it: %s", text);
    /* an argument of the library's is told as the option that sets it */
    const char *option = cli_option_of(gnomon_last_error_argument(app->ctx));
    const char *rest = cli_error_rest(app);
    if (code == CLI_EXIT_USAGE && option != NULL && rest > text)
        return cli_fail(app, code, "%s%s", option, rest);
    return cli_fail(app, code, "%s", text[0] != '\0' ? text : gnomon_status_name(status));
}

int cli_flush_output(const char *verb)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout)) return CLI_EXIT_DONE;
    if (cli_pipe_closed()) return CLI_EXIT_PIPE;
    fprintf(stderr, "gnomon %s: writing to standard output failed: %s\n", verb, strerror(errno));
    return CLI_EXIT_FILE;
}

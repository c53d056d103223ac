/* Words and errors on standard error, and the exit codes that go with them. */
#include "cli.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    char rank[32] = "";
    if (app->comm.rank > 0) snprintf(rank, sizeof rank, "rank %d: ", app->comm.rank);
    fprintf(stderr, "gnomon %s: %s%s\n", app->verb, rank, text != NULL ? text : "out of memory");
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
    case GNOMON_ERROR_COMM:
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
    /* the reader of standard output has closed it, as head does */
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

/* Standard output: flushed, or given up when its reader has gone. */
#include "cli.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int cli_pipe_closed(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&out, 1, 0) > 0 && (out.revents & POLLERR) != 0;
}

int cli_leave(int code)
{
    if (code != CLI_EXIT_PIPE) return code;
    signal(SIGPIPE, SIG_DFL);
    raise(SIGPIPE);
    return code;
}

static int failed(const char *verb, int why)
{
    if (cli_pipe_closed()) return CLI_EXIT_PIPE;
    fprintf(stderr, "gnomon %s: writing to standard output failed: %s\n", verb, strerror(why));
    return CLI_EXIT_FILE;
}

int cli_flush_output(const char *verb)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout)) return CLI_EXIT_DONE;
    return failed(verb, errno);
}

int cli_print_line(const char *verb, const char *text)
{
    errno = 0;
    /* a text longer than the buffer fails here, and the flush no longer knows why */
    if (puts(text) == EOF) return failed(verb, errno);
    return cli_flush_output(verb);
}

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

int cli_flush_output(const char *verb)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout)) return CLI_EXIT_DONE;
    if (cli_pipe_closed()) return CLI_EXIT_PIPE;
    fprintf(stderr, "gnomon %s: writing to standard output failed: %s\n", verb, strerror(errno));
    return CLI_EXIT_FILE;
}

/* Interruption: orderly at first, at once when asked twice. */
#include "cli.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t interrupted;

static void abandon(void)
{
    static const char text[] = "\r\033[Kgnomon: interrupted; no file was changed\n";
    /* Without a terminal there is no bar to wipe away. */
    size_t skip = isatty(STDERR_FILENO) ? 0 : 4;
    gnomon_io_abandon_all();
    ssize_t written = write(STDERR_FILENO, text + skip, sizeof text - 1 - skip);
    (void)written;
    _exit(CLI_EXIT_INTERRUPTED);
}

static void on_signal(int number)
{
    if (interrupted || number == SIGALRM) abandon();
    interrupted = 1;
    /* A read from a silent pipe, say, never asks whether it was cancelled. */
    alarm(2);
}

void cli_signals_install(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGXCPU, SIGALRM};
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; ++i) {
        struct sigaction before;
        /* nohup and background jobs of a plain shell start with these ignored. */
        if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler == SIG_IGN) continue;
        sigaction(numbers[i], &action, NULL);
    }
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, NULL);
    sigaction(SIGXFSZ, &action, NULL);
}

int cli_interrupted(void)
{
    return interrupted;
}

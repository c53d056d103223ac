/* Pictures by gnuplot, which reads its script from a pipe and writes the picture to another, so no
 * name of a file ever passes through its language or a shell. */
#include "cli.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Reads all of fd; NULL when memory or reading fails. */
static char *read_all(int fd, size_t *length)
{
    size_t capacity = 1 << 16, have = 0;
    char *data = malloc(capacity);
    while (data != NULL) {
        ssize_t got = read(fd, data + have, capacity - have);
        if (got < 0 && errno == EINTR && !cli_interrupted()) continue;
        if (got < 0) break;
        have += (size_t)got;
        if (got == 0) {
            *length = have;
            return data;
        }
        if (have == capacity) {
            capacity *= 2;
            char *grown = realloc(data, capacity);
            if (grown == NULL) break;
            data = grown;
        }
    }
    free(data);
    return NULL;
}

static int write_all(int fd, const char *text, size_t length)
{
    while (length > 0) {
        ssize_t put = write(fd, text, length);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return 0;
        text += put;
        length -= (size_t)put;
    }
    return 1;
}

/* Starts gnuplot between two pipes; 0 or an errno. */
static int start_gnuplot(pid_t *child, int *to, int *from)
{
    char name[] = "gnuplot", ignore_settings[] = "-d", standard_input[] = "-";
    char *const words[] = {name, ignore_settings, standard_input, NULL};
    int script[2], picture[2];
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t restored;
    if (pipe(script) != 0) return errno;
    if (pipe(picture) != 0) {
        close(script[0]);
        close(script[1]);
        return errno;
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, script[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, picture[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", 1, 0);
    for (int i = 0; i < 2; ++i) {
        posix_spawn_file_actions_addclose(&actions, script[i]);
        posix_spawn_file_actions_addclose(&actions, picture[i]);
    }
    posix_spawnattr_init(&attributes);
    sigemptyset(&restored);
    sigaddset(&restored, SIGPIPE);
    posix_spawnattr_setsigdefault(&attributes, &restored);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    int error = posix_spawnp(child, name, &actions, &attributes, words, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    close(script[0]);
    close(picture[1]);
    if (error != 0) {
        close(script[1]);
        close(picture[0]);
        return error;
    }
    *to = script[1];
    *from = picture[0];
    return 0;
}

int cli_is_picture(const char *path)
{
    const char *ending = strrchr(path, '.');
    if (ending == NULL) return 0;
    return strcasecmp(ending, ".svg") == 0   ? CLI_SVG
           : strcasecmp(ending, ".png") == 0 ? CLI_PNG
                                             : 0;
}

void cli_plot_terminal(FILE *script, const char *path)
{
    fprintf(script, "set encoding utf8\n");
    fprintf(script, cli_is_picture(path) == CLI_PNG
                        ? "set terminal png size 900,560\n"
                        : "set terminal svg size 900,560 enhanced background rgb 'white'\n");
}

int cli_gnuplot(cli_app *app, const char *path, char *script, size_t script_length)
{
    size_t length = 0;
    pid_t child;
    int to, from, state = 0;
    if (script == NULL) return cli_fail(app, CLI_EXIT_MEMORY, "out of memory for the plot");
    int error = start_gnuplot(&child, &to, &from);
    if (error != 0) {
        free(script);
        if (error == ENOENT)
            return cli_fail(app, CLI_EXIT_FILE,
                            "--plot needs the program gnuplot, which is not there (Debian's "
                            "package gnuplot-nox)");
        return cli_fail(app, CLI_EXIT_FILE, "starting gnuplot failed: %s", strerror(error));
    }
    /* A script is far shorter than a pipe holds, so this does not wait for the picture. */
    write_all(to, script, script_length);
    close(to);
    free(script);
    char *picture = read_all(from, &length);
    close(from);
    while (waitpid(child, &state, 0) < 0 && errno == EINTR)
        continue;
    int code = -1;
    if (cli_interrupted()) {
        code = cli_fail_status(app, GNOMON_ERROR_CANCELLED);
    } else if (picture == NULL || length == 0 || !WIFEXITED(state) || WEXITSTATUS(state) != 0) {
        code = cli_fail(app, CLI_EXIT_FILE, "gnuplot failed to draw %s", path);
    } else {
        gnomon_status status = gnomon_write_text(app->ctx, path, picture, length);
        if (status != GNOMON_OK) code = cli_fail_status(app, status);
    }
    free(picture);
    if (code < 0) cli_say(app, "gnomon %s: wrote %s\n", app->verb, path);
    return code;
}

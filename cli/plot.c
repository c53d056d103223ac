/* Histograms of distortion: as text, and by gnuplot.
 *
 * gnuplot reads its script from a pipe and writes the picture to another, so no name of a
 * file ever passes through its language or a shell. */
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

enum { BINS = 64, BAR_WIDTH = 50 };

void cli_print_histogram(const gnomon_distortion *d, double eps)
{
    enum { ROWS = 16 };
    int64_t counts[ROWS] = {0}, most = 1;
    double width = (d->histogram_high - d->histogram_low) / ROWS;
    for (int i = 0; i < BINS; ++i)
        counts[i * ROWS / BINS] += d->histogram[i];
    for (int i = 0; i < ROWS; ++i)
        most = counts[i] > most ? counts[i] : most;
    for (int i = 0; i < ROWS; ++i) {
        double middle = d->histogram_low + (i + 0.5) * width;
        int length = (int)((double)counts[i] / (double)most * BAR_WIDTH + 0.5);
        char mark = middle >= -eps && middle <= eps ? '*' : '#';
        printf("  %+7.1f %% |", 100 * middle);
        for (int j = 0; j < length; ++j)
            putchar(mark);
        printf(length > 0 ? " %.2f %%\n" : "%.2f %%\n",
               100 * (double)counts[i] / (double)(d->count > 0 ? d->count : 1));
    }
}

/* A histogram as gnuplot's data: middles and densities. */
static void print_block(FILE *script, const char *name, const gnomon_distortion *d)
{
    double width = (d->histogram_high - d->histogram_low) / BINS;
    double area = width * (double)d->count;
    fprintf(script, "$%s << EOD\n", name);
    for (int i = 0; i < BINS; ++i)
        fprintf(script, "%.9g %.9g\n", 100 * (d->histogram_low + (i + 0.5) * width),
                area > 0 ? (double)d->histogram[i] / area / 100 : 0);
    fprintf(script, "EOD\n");
}

static char *make_script(int png, const gnomon_distortion *norms, const gnomon_distortion *pairs,
                         double eps, size_t *length)
{
    char *text = NULL;
    FILE *script = open_memstream(&text, length);
    if (script == NULL) return NULL;
    fprintf(script, "set encoding utf8\n");
    fprintf(script, png ? "set terminal png size 900,560\n"
                        : "set terminal svg size 900,560 enhanced background rgb 'white'\n");
    fprintf(script,
            "set title 'Distortion |Sx|²/|x|² − 1 of %lld norms and %lld distances'\n"
            "set xlabel 'distortion in percent'\nset ylabel 'density'\nset grid\nset yrange [0:*]\n"
            "set style fill transparent solid 0.35\n"
            "set arrow from %.9g, graph 0 to %.9g, graph 1 nohead lw 1 dt 2\n"
            "set arrow from %.9g, graph 0 to %.9g, graph 1 nohead lw 1 dt 2\n",
            (long long)norms->count, (long long)pairs->count, 100 * eps, 100 * eps, -100 * eps,
            -100 * eps);
    print_block(script, "distances", pairs);
    print_block(script, "norms", norms);
    fprintf(script,
            "plot $distances with boxes title 'distances (outside ±%g %%: %.3g %%)', "
            "$norms with histeps lw 2 title 'norms (outside ±%g %%: %.3g %%)'\n",
            100 * eps, 100 * pairs->outside, 100 * eps, 100 * norms->outside);
    if (fclose(script) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

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
            char *grown = realloc(data, capacity *= 2);
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

int cli_plot_distortion(cli_app *app, const char *path, const gnomon_distortion *norms,
                        const gnomon_distortion *pairs, double eps)
{
    const char *ending = strrchr(path, '.');
    size_t script_length = 0, length = 0;
    pid_t child;
    int to, from, state = 0;
    int png = ending != NULL && strcasecmp(ending, ".png") == 0;
    char *script = make_script(png, norms, pairs, eps, &script_length);
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
    if (code < 0) cli_say(app, "gnomon distortion: wrote %s\n", path);
    return code;
}

/* Names of points: a line each. */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int cli_names_add(cli_names *names, const char *name)
{
    if (names->count == names->room) {
        const int64_t room = names->room * 2 + 64;
        char **grown = realloc(names->name, cli_bytes(room, sizeof *grown));
        if (grown == NULL) return 0;
        names->name = grown;
        names->room = room;
    }
    names->name[names->count] = strdup(name);
    if (names->name[names->count] == NULL) return 0;
    names->count++;
    return 1;
}

/* Takes a line without its end. */
static int take_line(cli_app *app, const char *path, char *line, size_t length, cli_names *names)
{
    if (length > 0 && line[length - 1] == '\n') line[--length] = '\0';
    if (length > 0 && line[length - 1] == '\r') line[--length] = '\0';
    if (strlen(line) != length)
        return cli_fail(app, CLI_EXIT_DATA, "%s: line %lld holds a NUL byte", path,
                        (long long)names->count + 1);
    if (!cli_names_add(names, line))
        return cli_fail(app, CLI_EXIT_MEMORY, "%s: out of memory for names", path);
    if (cli_interrupted()) return cli_fail(app, CLI_EXIT_INTERRUPTED, "interrupted");
    return -1;
}

int cli_lines_end(cli_app *app, const char *path, FILE *file)
{
    if (feof(file)) return -1; /* getline without memory sets no ferror */
    return cli_fail(app, errno == ENOMEM ? CLI_EXIT_MEMORY : CLI_EXIT_FILE, "%s: %s", path,
                    strerror(errno));
}

int cli_names_read(cli_app *app, const char *path, cli_names *names)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) return cli_fail(app, CLI_EXIT_FILE, "%s: %s", path, strerror(errno));
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    int code = -1;
    while (code < 0 && (length = getline(&line, &room, file)) >= 0)
        code = take_line(app, path, line, (size_t)length, names);
    if (code < 0) code = cli_lines_end(app, path, file);
    free(line);
    fclose(file);
    return code;
}

int cli_names_check(cli_app *app, const char *option, const char *path, const char *of,
                    int64_t points, const cli_names *names)
{
    if (path == NULL || points < 0 || names->count == points) return -1;
    return cli_fail(app, CLI_EXIT_DATA,
                    "%s %s: has %lld lines; %s has %lld points, and each needs a line", option,
                    path, (long long)names->count, of, (long long)points);
}

void cli_names_drop(cli_names *names)
{
    for (int64_t i = 0; i < names->count; i++)
        free(names->name[i]);
    free(names->name);
    *names = (cli_names){0};
}

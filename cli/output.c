/* Where output may go. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Whether what is written by one name can be lost by the other. */
static int are_one(const cli_file *a, const cli_file *b)
{
    if (a->path == NULL || b->path == NULL || (!a->written && !b->written)) return 0;
    /* standard input and standard output have the same name */
    if (strcmp(a->path, "-") == 0 || strcmp(b->path, "-") == 0)
        return a->written && b->written && strcmp(a->path, b->path) == 0;
    return strcmp(a->path, b->path) == 0 || gnomon_same_file(a->path, b->path);
}

int cli_check_apart(cli_app *app, const cli_file *files, int count)
{
    for (int a = 0; a < count; ++a) {
        for (int b = 0; b < a; ++b) {
            /* An option's own files have names of their own. Another run on the same checkpoint may
             * rename one of them to another just now, which would look as if both were one. */
            if (!are_one(&files[a], &files[b]) || strcmp(files[a].title, files[b].title) == 0)
                continue;
            if (!files[a].written || !files[b].written)
                return cli_usage(app, "%s is also read: the output must be another file",
                                 files[files[a].written ? a : b].path);
            return cli_usage(app, "%s %s: is also that of %s", files[a].title, files[a].path,
                             files[b].title);
        }
    }
    return -1;
}

int cli_output_is(cli_app *app, const char *option, const char *path, const char *name, int holds,
                  const char **format)
{
    char written[CLI_FORMATS_TEXT];
    int has = 0;
    *format = gnomon_format_for(path, name, &has);
    if (*format != NULL && (has & holds) != 0) return -1;
    if (*format != NULL)
        return cli_usage(app, "%s %s: the format %s does not hold %s points; these do: %s", option,
                         path, *format, holds == GNOMON_HOLDS_SPARSE ? "sparse" : "dense",
                         cli_formats(written, holds, 0, 1));
    return cli_usage(app, "%s %s: the ending names no format that is written; those are %s%s",
                     option, path, cli_formats(written, 0, 0, 1),
                     strcmp(option, "-o") == 0 ? " (or use --output-format)" : "");
}

int cli_check_output(cli_app *app, const char *path, const char *format, const char *const *inputs,
                     int input_count)
{
    if (strcmp(path, "-") == 0) {
        if (app->json)
            return cli_usage(
                app, "--json and the data can't both go to standard output; name a file with -o");
        if (isatty(STDOUT_FILENO) && !cli_format_is(format, GNOMON_HOLDS_TEXT, 0))
            return cli_usage(app,
                             "%s is binary and standard output is a terminal; name a file with -o, "
                             "or use --output-format csv",
                             format);
    }
    for (int i = 0; i < input_count; ++i) {
        if (inputs[i] != NULL && gnomon_same_file(path, inputs[i]))
            return cli_usage(app, "%s is also read: the output must be another file", path);
    }
    return -1;
}

/* Bytes free where the file is or will be, -1 when that can't be told. */
static double room_beside(const char *path)
{
    struct statvfs room;
    const char *slash = strrchr(path, '/');
    char *folder = slash != NULL ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    const int known = folder != NULL && statvfs(folder, &room) == 0;
    free(folder);
    return known ? (double)room.f_bavail * (double)room.f_frsize : -1;
}

cli_option cli_large_option(int *large)
{
    return (cli_option){.name = "large",
                        .type = CLI_FLAG,
                        .target = large,
                        .flag = 1,
                        .help = "allow an output that is larger than 1 GiB and 1,000 times the "
                                "input, or than the free space"};
}

int cli_check_told(cli_app *app, int told)
{
    if (told || app->json || !app->quiet) return -1;
    return cli_usage(app, "--quiet without -o and --json: the result would be lost");
}

int cli_check_room(cli_app *app, const char *input, const char *output, const char *format,
                   int64_t rows, int64_t cols, gnomon_dtype dtype)
{
    enum { RATIO = 1000 };
    static const double small = 1024.0 * 1024 * 1024;
    struct stat in, out;
    const char *name = gnomon_format_for(output, format, NULL);
    if (rows < 0 || name == NULL || strcmp(output, "-") == 0) return -1;
    if (stat(output, &out) == 0 && !S_ISREG(out.st_mode)) return -1;
    /* text has two bytes a number at least */
    const double element =
        cli_format_is(name, GNOMON_HOLDS_TEXT, 0) ? 2 : (double)gnomon_dtype_size(dtype);
    const double bytes = (double)rows * (double)cols * element;
    const int known = strcmp(input, "-") != 0 && stat(input, &in) == 0 && S_ISREG(in.st_mode);
    if (known && bytes > small && bytes > RATIO * (double)in.st_size)
        return cli_fail(app, CLI_EXIT_USAGE,
                        "%s: %lld x %lld numbers take about %.3g bytes, and %s has %lld: if that "
                        "is intended, give --large",
                        output, (long long)rows, (long long)cols, bytes, input,
                        (long long)in.st_size);
    const double room = room_beside(output);
    /* what is compressed may take a thousandth */
    if (cli_format_is(name, 0, GNOMON_TAKES_COMPRESS) || room < 0 || bytes <= room) return -1;
    return cli_fail(app, CLI_EXIT_FILE,
                    "%s: %lld x %lld numbers take about %.3g bytes, and %.3g are free there: if "
                    "that is intended, give --large",
                    output, (long long)rows, (long long)cols, bytes, room);
}

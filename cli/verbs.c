/* Finding a verb by its name. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

enum { MOST = 32 };

void cli_list_verbs(FILE *stream, const cli_named *verbs)
{
    for (; verbs->name != NULL; ++verbs)
        if (verbs->about != NULL) fprintf(stream, "  %-12s%s\n", verbs->name, verbs->about);
}

int cli_run_verb(const char *command, const cli_named *verbs, int argc, char **argv)
{
    const char *names[MOST];
    size_t count = 0;
    for (const cli_named *v = verbs; v->name != NULL; ++v)
        if (v->run != NULL && strcmp(argv[0], v->name) == 0) return v->run(argc, argv);
    for (const cli_named *v = verbs; v->name != NULL && count < MOST; ++v)
        names[count++] = v->name;
    const char *near = cli_nearest(argv[0], names, count);
    if (near != NULL)
        fprintf(stderr, "%s: unknown verb '%s'; did you mean %s?\n", command, argv[0], near);
    else
        fprintf(stderr, "%s: unknown verb '%s'\n", command, argv[0]);
    fprintf(stderr, "Try '%s --help'.\n", command);
    return CLI_EXIT_USAGE;
}

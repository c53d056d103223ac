/* Small texts: an operator's descriptor, a cost model. */
#include "cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* None comes near to this. */
enum { TEXT_LIMIT = 1 << 16 };

int cli_read_text(cli_app *app, const char *path, char **text, size_t *length)
{
    *text = NULL;
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    if (file == NULL) return cli_fail(app, CLI_EXIT_FILE, "%s: %s", path, strerror(errno));
    char *read = malloc(TEXT_LIMIT + 1);
    if (read == NULL) {
        if (file != stdin) fclose(file);
        return cli_fail(app, CLI_EXIT_MEMORY, "out of memory for %s", path);
    }
    *length = fread(read, 1, TEXT_LIMIT + 1, file);
    const int failed = ferror(file) ? errno : 0;
    int code = -1;
    if (file != stdin) fclose(file);
    if (failed != 0)
        code = cli_fail(app, CLI_EXIT_FILE, "%s: %s", path, strerror(failed));
    else if (*length > TEXT_LIMIT)
        code = cli_fail(app, CLI_EXIT_DATA, "%s: too long for a JSON text of gnomon's", path);
    if (code >= 0)
        free(read);
    else
        *text = read;
    return code;
}

/* cli/verbs/join/join_text.h: texts as sets of shingles. */
#ifndef GNOMON_CLI_JOIN_TEXT_H
#define GNOMON_CLI_JOIN_TEXT_H

#include "cli.h"

enum cli_text_mode { CLI_TEXT_NONE, CLI_TEXT_LINES, CLI_TEXT_FILES };

/* Texts and the sets of their shingles; files have their paths for names. Zeroed before
 * use; dropped whatever came of it. */
typedef struct cli_texts {
    int64_t count, room;
    cli_names names;
    gnomon_csr sets;
    int64_t *offsets, *members;
    uint8_t *values;
    int64_t member_count, member_room;
    int64_t bytes; /* read */
    /* files that will be written, NULL for none: set before reading, which refuses them */
    const char *const *outputs;
    int output_count;
} cli_texts;

/* Reads the lines of a file (or of standard input), or all files of a folder and the folders in it
 * (or one file), by name. A shingle is so many words that follow each other, a word the letters and
 * digits of any script between others, ASCII letters in lower case; a text of fewer words is one
 * shingle. -1 or an exit code. */
int cli_texts_read(cli_app *app, const char *path, int mode, int64_t shingle, cli_texts *texts);
void cli_texts_drop(cli_texts *texts);

#endif

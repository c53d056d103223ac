/* cli/verbs/join/join_text.h: texts as sets of n-grams. */
#ifndef GNOMON_CLI_JOIN_TEXT_H
#define GNOMON_CLI_JOIN_TEXT_H

#include "cli.h"

enum cli_text_mode { CLI_TEXT_NONE, CLI_TEXT_LINES, CLI_TEXT_FILES };

/* Texts and the sets of their n-grams; files have their paths for names. Zeroed before
 * use; dropped whatever came of it. */
typedef struct cli_texts {
    int64_t count, room;
    cli_names names;
    gnomon_csr sets;
    int64_t *offsets;
    uint64_t *members;
    uint8_t *values;
    int64_t member_count, member_room;
    int64_t bytes; /* read */
    /* files that will be written, NULL for none: set before reading, which refuses them */
    const char *const *outputs;
    int output_count;
} cli_texts;

/* What a text's set is made of: runs of so many words or characters. */
typedef struct cli_ngram {
    int64_t length; /* 1 ... 64 */
    int characters; /* else words */
} cli_ngram;

/* Reads the lines of a file (or of standard input), or all files of a folder and the folders in it
 * (or one file), by name. n-grams are gnomon_text_ngrams's: words
 * without ASCII punctuation, or characters with it; ASCII letters count in lower case. A text of
 * fewer words or characters is one n-gram; one of none is an empty set. -1 or an exit code. */
int cli_texts_read(cli_app *app, const char *path, int mode, const cli_ngram *ngram,
                   cli_texts *texts);
void cli_texts_drop(cli_texts *texts);

#endif

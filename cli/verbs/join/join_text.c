#include "verbs/join/join_text.h"

#include <errno.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>

static int out_of_memory(cli_app *app, const char *path)
{
    return cli_fail(app, CLI_EXIT_MEMORY, "%s: out of memory for texts", path);
}

/* Adds a text, of a name or NULL; -1 or an exit code. */
static int add_text(cli_app *app, const char *path, cli_texts *t, const char *name,
                    const char *text, size_t length, const cli_ngram *ngram)
{
    gnomon_dedup_options o = GNOMON_DEDUP_OPTIONS_INIT;
    const int64_t most = (int64_t)length;
    int64_t count;
    o.ngram = ngram->length;
    o.characters = ngram->characters;
    o.lower = GNOMON_LOWER_ASCII;
    o.punctuation = ngram->characters ? GNOMON_PUNCTUATION_KEEP : GNOMON_PUNCTUATION_DROP;
    if (t->count + 1 >= t->room) {
        const int64_t room = t->room * 2 + 64;
        int64_t *offsets = realloc(t->offsets, cli_bytes(room + 1, sizeof *offsets));
        if (offsets == NULL) return out_of_memory(app, path);
        t->offsets = offsets;
        if (t->room == 0) t->offsets[0] = 0;
        t->room = room;
    }
    if (t->member_room - t->member_count < most) {
        const int64_t room = t->member_room * 2 + most + 4096;
        uint64_t *grown = realloc(t->members, cli_bytes(room, sizeof *grown));
        if (grown == NULL) return out_of_memory(app, path);
        t->members = grown;
        t->member_room = room;
    }
    const gnomon_status status =
        gnomon_text_ngrams(app->ctx, &o, text, most, t->members + t->member_count, most, &count);
    if (status != GNOMON_OK) return cli_fail_status(app, status);
    for (int64_t i = 0; i < count; i++) /* the join's columns are of 62 bits */
        t->members[t->member_count++] >>= 2;
    if (name != NULL && !cli_names_add(&t->names, name)) return out_of_memory(app, path);
    t->offsets[++t->count] = t->member_count;
    t->bytes += (int64_t)length;
    return -1;
}

/* ---- lines and files ---- */

static int read_lines(cli_app *app, const char *path, const cli_ngram *ngram, cli_texts *t)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    if (file == NULL) return cli_fail(app, CLI_EXIT_FILE, "%s: %s", path, strerror(errno));
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    int code = -1;
    while (code < 0 && (length = getline(&line, &room, file)) >= 0) {
        code = add_text(app, path, t, NULL, line, (size_t)length, ngram);
        if (code < 0 && cli_interrupted())
            code = cli_fail(app, CLI_EXIT_INTERRUPTED, "interrupted");
    }
    if (code < 0 && ferror(file) && errno == EISDIR)
        code =
            cli_fail(app, CLI_EXIT_USAGE, "--text lines: %s is a folder; use --text files", path);
    if (code < 0) code = cli_lines_end(app, path, file);
    free(line);
    if (file != stdin) fclose(file);
    return code;
}

static int read_file(cli_app *app, const char *path, const cli_ngram *ngram, cli_texts *t)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) return cli_fail(app, CLI_EXIT_FILE, "%s: %s", path, strerror(errno));
    char *text = NULL;
    size_t length = 0, room = 0;
    int code = -1;
    for (;;) {
        if (length == room) {
            room = room * 2 + 65536;
            char *grown = realloc(text, room);
            if (grown == NULL) {
                code = out_of_memory(app, path);
                break;
            }
            text = grown;
        }
        const size_t got = fread(text + length, 1, room - length, file);
        length += got;
        if (got == 0) break;
    }
    if (code < 0 && ferror(file))
        code = cli_fail(app, CLI_EXIT_FILE, "%s: %s", path, strerror(errno));
    fclose(file);
    if (code < 0) code = add_text(app, path, t, path, text, length, ngram);
    free(text);
    return code;
}

/* Refuses a file that is also to be written. */
static int check_output(cli_app *app, const char *path, const cli_texts *t)
{
    for (int i = 0; i < t->output_count; i++)
        if (gnomon_same_file(t->outputs[i], path))
            return cli_usage(app, "%s is also read, as %s: the output must be another file",
                             t->outputs[i], path);
    return -1;
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

static int read_folder(cli_app *app, const char *path, const cli_ngram *ngram, cli_texts *t)
{
    char *copy = strdup(path);
    if (copy == NULL) return out_of_memory(app, path);
    char *const paths[] = {copy, NULL};
    /* links are not followed: a folder may hold a link to itself */
    FTS *tree = fts_open(paths, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, by_name);
    int code = tree == NULL ? cli_fail(app, CLI_EXIT_FILE, "%s: %s", path, strerror(errno)) : -1;
    while (code < 0) {
        errno = 0;
        const FTSENT *entry = fts_read(tree);
        if (entry == NULL) {
            if (errno != 0) code = cli_fail(app, CLI_EXIT_FILE, "%s: %s", path, strerror(errno));
            break;
        }
        if (entry->fts_info == FTS_F) code = check_output(app, entry->fts_path, t);
        if (entry->fts_info == FTS_F && code < 0) code = read_file(app, entry->fts_path, ngram, t);
        if (entry->fts_info == FTS_NS || entry->fts_info == FTS_ERR || entry->fts_info == FTS_DNR)
            code =
                cli_fail(app, CLI_EXIT_FILE, "%s: %s", entry->fts_path, strerror(entry->fts_errno));
        if (cli_interrupted()) code = cli_fail(app, CLI_EXIT_INTERRUPTED, "interrupted");
    }
    if (tree != NULL) fts_close(tree);
    free(copy);
    return code;
}

int cli_texts_read(cli_app *app, const char *path, int mode, const cli_ngram *ngram, cli_texts *t)
{
    int code =
        mode == CLI_TEXT_LINES ? read_lines(app, path, ngram, t) : read_folder(app, path, ngram, t);
    if (code >= 0) return code;
    if (t->offsets == NULL) t->offsets = calloc(1, sizeof *t->offsets);
    t->values = malloc((size_t)t->member_count + 1);
    if (t->values == NULL || t->offsets == NULL) return out_of_memory(app, path);
    memset(t->values, 1, (size_t)t->member_count);
    t->sets = (gnomon_csr){t->count,  (int64_t)1 << 62, t->offsets, (const int64_t *)t->members,
                           t->values, GNOMON_U8};
    return -1;
}

void cli_texts_drop(cli_texts *t)
{
    cli_names_drop(&t->names);
    free(t->offsets);
    free(t->members);
    free(t->values);
}

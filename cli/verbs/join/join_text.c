#include "verbs/join/join_text.h"

#include <errno.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>

/* Texts are few beside their n-grams; a folder's files are read one at a time. */
enum { MOST_NGRAM = 64 };

static int out_of_memory(cli_app *app, const char *path)
{
    return cli_fail(app, CLI_EXIT_MEMORY, "%s: out of memory for texts", path);
}

/* ---- n-grams ---- */

static int is_word(unsigned char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c >= 128;
}

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* The next word's hash; 0 at the end. */
static uint64_t next_word(const unsigned char **at, const unsigned char *end)
{
    while (*at < end && !is_word(**at))
        ++*at;
    if (*at == end) return 0;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *at < end && is_word(**at); ++*at) {
        const unsigned char c = **at >= 'A' && **at <= 'Z' ? (unsigned char)(**at + 32) : **at;
        hash = mix((hash ^ c) + UINT64_C(0x9e3779b97f4a7c15));
    }
    return hash | 1;
}

static int is_space(unsigned char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* How many bytes the character at 'at' has in UTF-8; 1 for a byte that begins none. */
static int character_bytes(const unsigned char *at, const unsigned char *end)
{
    const int bytes = *at >= 0xf0 ? 4 : *at >= 0xe0 ? 3 : *at >= 0xc0 ? 2 : 1;
    if (end - at < bytes || *at >= 0xf8) return 1;
    for (int i = 1; i < bytes; i++)
        if ((at[i] & 0xc0) != 0x80) return 1;
    return bytes;
}

/* The next character's hash; 0 at the end. White space is one space, and none at the end. */
static uint64_t next_character(const unsigned char **at, const unsigned char *end)
{
    if (*at == end) return 0;
    if (is_space(**at)) {
        while (*at < end && is_space(**at))
            ++*at;
        return *at == end ? 0 : mix(' ') | 1;
    }
    uint64_t hash = 0;
    for (int left = character_bytes(*at, end); left > 0; left--, ++*at) {
        const unsigned char c = **at >= 'A' && **at <= 'Z' ? (unsigned char)(**at + 32) : **at;
        hash = hash << 8 | c;
    }
    return mix(hash) | 1;
}

static int add_member(cli_texts *t, uint64_t hash)
{
    if (t->member_count == t->member_room) {
        const int64_t room = t->member_room * 2 + 4096;
        int64_t *grown = realloc(t->members, cli_bytes(room, sizeof *grown));
        if (grown == NULL) return 0;
        t->members = grown;
        t->member_room = room;
    }
    t->members[t->member_count++] = (int64_t)(hash >> 2);
    return 1;
}

/* Adds a text, of a name or NULL; 0 when memory is out. */
static int add_text(cli_texts *t, const char *name, const char *text, size_t length,
                    const cli_ngram *ngram)
{
    if (t->count + 1 >= t->room) {
        const int64_t room = t->room * 2 + 64;
        int64_t *offsets = realloc(t->offsets, cli_bytes(room + 1, sizeof *offsets));
        if (offsets == NULL) return 0;
        t->offsets = offsets;
        if (t->room == 0) t->offsets[0] = 0;
        t->room = room;
    }
    const unsigned char *at = (const unsigned char *)text, *end = at + length;
    uint64_t last[MOST_NGRAM], token;
    const int64_t n = ngram->length;
    int64_t tokens = 0, made = 0;
    if (ngram->characters)
        while (at < end && is_space(*at))
            ++at;
    while ((token = ngram->characters ? next_character(&at, end) : next_word(&at, end)) != 0) {
        last[tokens++ % n] = token;
        if (tokens < n) continue;
        uint64_t hash = 0;
        for (int64_t w = 0; w < n; w++)
            hash = mix(hash + last[(tokens + w) % n] + UINT64_C(0x9e3779b97f4a7c15));
        if (!add_member(t, hash)) return 0;
        made++;
    }
    if (made == 0 && tokens > 0) {
        uint64_t hash = 0;
        for (int64_t w = 0; w < tokens; w++)
            hash = mix(hash + last[w] + UINT64_C(0x9e3779b97f4a7c15));
        if (!add_member(t, hash)) return 0;
    }
    if (name != NULL && !cli_names_add(&t->names, name)) return 0;
    t->offsets[++t->count] = t->member_count;
    t->bytes += (int64_t)length;
    return 1;
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
    errno = 0;
    while (code < 0 && (length = getline(&line, &room, file)) >= 0) {
        if (!add_text(t, NULL, line, (size_t)length, ngram)) code = out_of_memory(app, path);
        if (cli_interrupted()) code = cli_fail(app, CLI_EXIT_INTERRUPTED, "interrupted");
    }
    if (code < 0 && ferror(file) && errno == EISDIR)
        code =
            cli_fail(app, CLI_EXIT_USAGE, "--text lines: %s is a folder; use --text files", path);
    if (code < 0 && ferror(file))
        code = cli_fail(app, CLI_EXIT_FILE, "%s: %s", path, strerror(errno));
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
    if (code < 0 && !add_text(t, path, text, length, ngram)) code = out_of_memory(app, path);
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
    t->sets =
        (gnomon_csr){t->count, (int64_t)1 << 62, t->offsets, t->members, t->values, GNOMON_U8};
    return -1;
}

void cli_texts_drop(cli_texts *t)
{
    cli_names_drop(&t->names);
    free(t->offsets);
    free(t->members);
    free(t->values);
}

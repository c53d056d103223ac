#include "join_checkpoint.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BATCH = 4096 };
static const double save_interval = 2; /* seconds */

static int fail_file(cli_checkpoint *c, const char *path, int number)
{
    return cli_fail(c->app, CLI_EXIT_FILE, "%s: %s", path, strerror(number));
}

/* What FILE says of the same join: its rows and pairs. -1 or an exit code. */
static int read_state(cli_checkpoint *c)
{
    char *text = NULL;
    size_t length = 0;
    json_int_t rows = 0, pairs = 0;
    const char *identity = NULL;
    const int code = cli_read_text(c->app, c->path, &text, &length);
    if (code >= 0) return code;
    json_t *state = json_loadb(text, length, 0, NULL);
    free(text);
    int result = -1;
    if (state == NULL ||
        json_unpack(state, "{s:s, s:I, s:I}", "gnomon join", &identity, "rows_done", &rows, "pairs",
                    &pairs) != 0 ||
        rows < 0 || pairs < 0 || pairs > INT64_MAX / 32)
        result = cli_fail(c->app, CLI_EXIT_DATA, "%s is no checkpoint of gnomon join", c->path);
    else if (strcmp(identity, c->identity) != 0)
        result =
            cli_fail(c->app, CLI_EXIT_DATA,
                     "%s is the checkpoint of another join: %s, and not %s; take another file, "
                     "or remove it",
                     c->path, identity, c->identity);
    c->rows_done = rows;
    c->complete = c->written = pairs;
    json_decref(state);
    return result;
}

int cli_checkpoint_open(cli_checkpoint *c, cli_app *app, const char *path, char *identity,
                        int64_t *rows_done)
{
    c->app = app;
    c->path = path;
    c->identity = identity;
    c->pairs_path = malloc(strlen(path) + sizeof ".pairs");
    if (identity == NULL || c->pairs_path == NULL)
        return cli_fail(app, CLI_EXIT_MEMORY, "out of memory for a checkpoint");
    strcat(strcpy(c->pairs_path, path), ".pairs");
    if (access(path, F_OK) == 0) {
        const int code = read_state(c);
        if (code >= 0) return code;
        c->pairs = fopen(c->pairs_path, "rb+");
        if (c->pairs == NULL) return fail_file(c, c->pairs_path, errno);
        c->kept = c->complete;
        c->kept_rows = c->rows_done;
        const int64_t bytes = c->complete * (int64_t)sizeof(gnomon_pair);
        if (fseeko(c->pairs, 0, SEEK_END) != 0 || ftello(c->pairs) < bytes)
            return cli_fail(app, CLI_EXIT_DATA, "%s holds less than %s says", c->pairs_path, path);
        if (ftruncate(fileno(c->pairs), bytes) != 0 || fseeko(c->pairs, bytes, SEEK_SET) != 0)
            return fail_file(c, c->pairs_path, errno);
        cli_say(app, "gnomon join: goes on at row %lld, with %lld pairs\n", (long long)c->rows_done,
                (long long)c->complete);
    } else {
        /* never over a file that is not its own */
        c->pairs = fopen(c->pairs_path, "wb+x");
        if (c->pairs == NULL) return fail_file(c, c->pairs_path, errno);
        const int code = cli_checkpoint_save(c);
        if (code >= 0) return code;
    }
    *rows_done = c->rows_done;
    return -1;
}

/* Says in FILE what FILE.pairs holds for good. */
static gnomon_status write_state(cli_checkpoint *c)
{
    json_t *state = json_pack("{s:s, s:I, s:I}", "gnomon join", c->identity, "rows_done",
                              (json_int_t)c->rows_done, "pairs", (json_int_t)c->complete);
    char *text = state != NULL ? json_dumps(state, JSON_COMPACT) : NULL;
    json_decref(state);
    if (text == NULL) return GNOMON_ERROR_MEMORY;
    const gnomon_status status = gnomon_write_text(c->app->ctx, c->path, text, strlen(text));
    free(text);
    if (status != GNOMON_OK) return status;
    c->kept = c->complete;
    c->kept_rows = c->rows_done;
    return GNOMON_OK;
}

int cli_checkpoint_save(cli_checkpoint *c)
{
    if (fflush(c->pairs) != 0 || fsync(fileno(c->pairs)) != 0) {
        /* what was on disk before stands */
        c->failed = fail_file(c, c->pairs_path, errno);
        return c->failed;
    }
    const gnomon_status status = write_state(c);
    c->saved = cli_seconds();
    if (status == GNOMON_ERROR_MEMORY)
        return c->failed = cli_fail(c->app, CLI_EXIT_MEMORY, "out of memory for a checkpoint");
    if (status != GNOMON_OK) return c->failed = cli_fail_status(c->app, status);
    return -1;
}

/* A batch could not be written: those before it are kept where they reached the disk. */
static int stop_writing(cli_checkpoint *c, int number)
{
    struct stat file;
    c->failed = fail_file(c, c->pairs_path, number);
    if (fstat(fileno(c->pairs), &file) != 0 || fsync(fileno(c->pairs)) != 0) return 1;
    /* should this fail too, the state before it stands */
    if (file.st_size >= c->complete * (int64_t)sizeof(gnomon_pair)) (void)write_state(c);
    return 1;
}

int cli_checkpoint_take(cli_checkpoint *c, const gnomon_join_batch *batch)
{
    const size_t count = (size_t)batch->count;
    int64_t complete = batch->count;
    while (complete > 0 && batch->pairs[complete - 1].i >= batch->rows_done)
        complete--;
    if (count > 0 && fwrite(batch->pairs, sizeof *batch->pairs, count, c->pairs) != count)
        return stop_writing(c, errno);
    /* a row that goes on in the next batch is not complete */
    if (batch->rows_done > c->rows_done) {
        c->complete = c->written + complete;
        c->rows_done = batch->rows_done;
    }
    c->written += batch->count;
    if (cli_seconds() - c->saved < save_interval) return 0;
    return cli_checkpoint_save(c) >= 0;
}

int cli_checkpoint_replay(cli_checkpoint *c, int64_t rows, gnomon_join_sink sink, void *user)
{
    gnomon_pair pairs[BATCH];
    int64_t left = c->complete, last = 0;
    if (fflush(c->pairs) != 0 || fseeko(c->pairs, 0, SEEK_SET) != 0)
        return fail_file(c, c->pairs_path, errno);
    do {
        const int64_t some = left < BATCH ? left : BATCH;
        if (some > 0 && fread(pairs, sizeof *pairs, (size_t)some, c->pairs) != (size_t)some)
            return fail_file(c, c->pairs_path, ferror(c->pairs) ? errno : EIO);
        for (int64_t at = 0; at < some; at++) {
            if (pairs[at].i < last || pairs[at].i >= rows || pairs[at].j < 0)
                return cli_fail(c->app, CLI_EXIT_DATA, "%s holds what is no pair", c->pairs_path);
            last = pairs[at].i;
        }
        left -= some;
        const gnomon_join_batch batch = {pairs, some, left > 0 ? last : rows};
        if (sink(user, &batch) != 0) return CLI_EXIT_FILE;
        if (cli_interrupted()) return cli_fail(c->app, CLI_EXIT_INTERRUPTED, "interrupted");
    } while (left > 0);
    return -1;
}

void cli_checkpoint_remove(cli_checkpoint *c)
{
    if (c->path == NULL) return;
    unlink(c->path);
    unlink(c->pairs_path);
}

void cli_checkpoint_drop(cli_checkpoint *c)
{
    if (c->pairs != NULL) fclose(c->pairs);
    free(c->pairs_path);
    free(c->identity);
}

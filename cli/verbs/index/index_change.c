/* gnomon index add, remove and compact: an index's file written anew. */
#include "verbs/index/index.h"

#include <stdlib.h>
#include <string.h>

typedef struct change {
    cli_app *app;
    const char *path, *other; /* the index; points or ids */
    const char *output;       /* NULL: in place of the index */
    cli_input_options input;
    cli_index_file index;
    int64_t count;  /* points or ids */
    int64_t before; /* removed ones, where their new number tells the count; else -1 */
    int waiting;    /* for another process, and that was said */
} change;

static int parse(change *c, const char *synopsis, const char *about, const char *input_title,
                 const char *examples, int argc, char **argv)
{
    cli_app *app = c->app;
    const char *operands[2] = {NULL, NULL};
    int count = 0;
    const cli_option output[] = {
        {.name = "output",
         .letter = 'o',
         .type = CLI_TEXT,
         .target = &c->output,
         .value = "OUT",
         .help = "where the new index goes (default: it replaces INDEX)"},
    };
    cli_option input_table[CLI_INPUT_OPTIONS], common[CLI_COMMON_OPTIONS];
    cli_input_init(&c->input);
    cli_input_table(&c->input, input_table);
    cli_common_options(app, common);
    const cli_group all[] = {CLI_GROUP("Output", output), CLI_GROUP(input_title, input_table),
                             CLI_GROUP("Common", common)};
    const cli_group few[] = {CLI_GROUP("Output", output), CLI_GROUP("Common", common)};
    const cli_verb verb = {.name = app->verb,
                           .synopsis = synopsis,
                           .about = about,
                           .groups = input_title != NULL ? all : few,
                           .group_count = input_title != NULL ? 3 : 2,
                           .examples = examples,
                           .min_operands = input_title != NULL ? 2 : 1,
                           .max_operands = input_title != NULL ? 2 : 1};
    const int code = cli_parse(&verb, argc, argv, operands, &count);
    c->path = operands[0];
    c->other = operands[1];
    if (code < 0 && c->output == NULL) c->output = c->path;
    if (code < 0 && c->other != NULL && gnomon_same_file(c->output, c->other))
        return cli_usage(app, "-o %s: is also the input", c->output);
    if (code < 0 && app->json && strcmp(c->output, "-") == 0)
        return cli_usage(app, "--json and -o - would mix on standard output");
    return code;
}

/* Tells what came of it. */
static int report(change *c, const char *done)
{
    gnomon_lsh_info info = {.struct_size = sizeof info};
    cli_app *app = c->app;
    if (strcmp(c->output, "-") == 0) return CLI_EXIT_DONE;
    cli_index_close(&c->index);
    int code = cli_index_open(app, c->output, &c->index);
    if (code >= 0) return code;
    cli_index_describe(&c->index, &info);
    if (c->before >= 0) c->count = info.removed - c->before;
    if (app->json) {
        json_t *out = json_pack("{s:o*, s:o*, s:I}", "index", cli_json_name(c->path), "output",
                                cli_json_name(c->output), done, (json_int_t)c->count);
        return cli_print_report(app, cli_json_join(out, cli_index_json(&c->index)));
    }
    cli_say(app, "gnomon %s: %lld %s; %s has %lld points, %lld of them removed\n", app->verb,
            (long long)c->count, done, c->output, (long long)info.points, (long long)info.removed);
    return CLI_EXIT_DONE;
}

static int open_index(change *c)
{
    const int code = cli_index_open(c->app, c->path, &c->index);
    if (code >= 0 || c->index.coded == NULL) return code;
    return cli_fail(c->app, CLI_EXIT_USAGE,
                    "%s is an index of codes, which is not changed: build it again", c->path);
}

static int start(change *c)
{
    const int code = cli_start(c->app);
    return code < 0 ? open_index(c) : code;
}

/* After BUSY: another process is changing the file that is to be replaced, or has changed it since
 * it was opened. Waits a little and opens the index again. */
static int wait_and_open(change *c)
{
    const int code = cli_index_wait(c->app, c->output, &c->waiting);
    if (code >= 0) return code;
    cli_index_close(&c->index);
    return open_index(c);
}

/* Opens a builder with what the index has. */
static int extend(change *c, int compact, cli_builder *builder)
{
    for (;;) {
        const gnomon_status status =
            cli_index_extend(c->app, &c->index, c->output, compact, builder);
        if (status == GNOMON_OK) return -1;
        if (status != GNOMON_ERROR_BUSY) return cli_fail_status(c->app, status);
        const int code = wait_and_open(c);
        if (code >= 0) return code;
    }
}

static int end(change *c, int code)
{
    cli_index_close(&c->index);
    return cli_end(c->app, code);
}

/* ---- add ---- */

static int add(change *c)
{
    cli_app *app = c->app;
    gnomon_reader *reader = NULL;
    gnomon_data_info data;
    gnomon_lsh_info info = {.struct_size = sizeof info};
    cli_builder builder = {NULL, NULL};
    int code = cli_open_input(app, c->other, &c->input, &reader, &data);
    cli_index_describe(&c->index, &info);
    if (code < 0)
        code = cli_same_width(app, c->other, data.cols, c->path, info.options.functions.dim);
    if (code < 0) code = extend(c, 0, &builder);
    cli_index_describe(&c->index, &info);
    if (code < 0) /* another process may have put another index there meanwhile */
        code = cli_same_width(app, c->other, data.cols, c->path, info.options.functions.dim);
    if (code < 0)
        code =
            cli_index_add_points(app, c->other, reader, &data, info.options.metric,
                                 info.options.codes > 0 && info.points == 0, &builder, &c->count);
    code = cli_index_complete(app, &builder, code);
    gnomon_reader_close(reader);
    return code < 0 ? report(c, "added") : code;
}

int cli_index_add(int argc, char **argv)
{
    cli_app app;
    change c = {.app = &app, .before = -1};
    cli_init(&app, "index add");
    int code = parse(
        &c, "INDEX POINTS [-o OUT] [options]",
        "Adds points to an index; their ids follow those of the points in it. A new file is "
        "written, which replaces the old one when it is complete. Neither points nor tables need "
        "to fit in memory.",
        "Input (how to read POINTS)",
        "Add points, and write a second copy that has them twice\n"
        "gnomon index add given.lsh queries.npy\n"
        "gnomon index add given.lsh queries.npy -o twice.lsh\n",
        argc, argv);
    if (code >= 0) return code;
    code = start(&c);
    return end(&c, code < 0 ? add(&c) : code);
}

/* ---- remove ---- */

static int read_ids(change *c, int64_t **ids)
{
    cli_points p;
    cli_app *app = c->app;
    int64_t budget = (app->memory - CLI_OVERHEAD_BYTES) / 2;
    memset(&p, 0, sizeof p);
    p.wanted = GNOMON_F64; /* ids are below 2^32 */
    int code = cli_points_load(app, c->other, &c->input, 0, &p, &budget);
    const double *given = p.data;
    if (code < 0) c->count = p.dense.rows * p.dense.cols;
    if (code < 0) *ids = malloc(cli_bytes(c->count, sizeof **ids));
    if (code < 0 && *ids == NULL) code = cli_fail(app, CLI_EXIT_MEMORY, "out of memory for ids");
    for (int64_t i = 0; i < c->count && code < 0; i++) {
        if (!(given[i] >= 0 && given[i] < 0x1p40) || given[i] != (double)(int64_t)given[i])
            code = cli_fail(app, CLI_EXIT_DATA, "%s: %g is no id", c->other, given[i]);
        else
            (*ids)[i] = (int64_t)given[i];
    }
    cli_points_drop(&p);
    return code;
}

static gnomon_status remove_hashed(change *c, const int64_t *ids, int64_t given)
{
    gnomon_lsh_info info;
    cli_index_describe(&c->index, &info);
    const int64_t before = info.removed;
    const gnomon_status status = gnomon_lsh_remove(c->index.hashed, ids, given);
    cli_index_describe(&c->index, &info);
    c->count = info.removed - before;
    return status == GNOMON_OK ? gnomon_lsh_save(c->app->ctx, c->index.hashed, c->output) : status;
}

static gnomon_status remove_inverted(change *c, const int64_t *ids, int64_t given)
{
    gnomon_lsh_info info;
    cli_builder builder = {NULL, NULL};
    cli_index_describe(&c->index, &info);
    c->before = info.removed;
    gnomon_status status = cli_index_extend(c->app, &c->index, c->output, 0, &builder);
    if (status == GNOMON_OK) status = gnomon_sparse_builder_remove(builder.inverted, ids, given);
    if (status == GNOMON_OK) return gnomon_sparse_builder_finish(builder.inverted);
    gnomon_sparse_builder_abort(builder.inverted);
    return status;
}

static int remove_ids(change *c)
{
    cli_app *app = c->app;
    int64_t *ids = NULL;
    gnomon_lsh_info info = {.struct_size = sizeof info};
    int code = read_ids(c, &ids);
    const int64_t given = c->count;
    gnomon_status status = GNOMON_ERROR_BUSY;
    while (code < 0 && status == GNOMON_ERROR_BUSY) {
        cli_index_describe(&c->index, &info);
        for (int64_t i = 0; i < given && code < 0; i++)
            if (ids[i] >= info.points)
                code =
                    cli_fail(app, CLI_EXIT_DATA, "%s: the id %lld is beyond the %lld points of %s",
                             c->other, (long long)ids[i], (long long)info.points, c->path);
        if (code >= 0) break;
        status =
            c->index.hashed != NULL ? remove_hashed(c, ids, given) : remove_inverted(c, ids, given);
        if (status == GNOMON_ERROR_BUSY)
            code = wait_and_open(c);
        else if (status != GNOMON_OK)
            code = cli_fail_status(app, status);
    }
    free(ids);
    return code < 0 ? report(c, "removed") : code;
}

int cli_index_remove(int argc, char **argv)
{
    cli_app app;
    change c = {.app = &app, .before = -1};
    cli_init(&app, "index remove");
    int code = parse(
        &c, "INDEX IDS [-o OUT] [options]",
        "Removes the points whose ids are in the file IDS: queries no longer find them. Other "
        "points keep their ids; removing a point twice is no error. The file keeps the coordinates "
        "until gnomon index compact.",
        "Input (how to read IDS)",
        "Ids from a file\n"
        "gnomon index remove given.lsh allowed.csv\n"
        "Ids from another program\n"
        "printf '3\\n"
        "5\\n"
        "' | gnomon index remove given.lsh - --format csv\n",
        argc, argv);
    if (code >= 0) return code;
    code = start(&c);
    return end(&c, code < 0 ? remove_ids(&c) : code);
}

/* ---- compact ---- */

static int compact(change *c)
{
    cli_builder builder = {NULL, NULL};
    gnomon_lsh_info info = {.struct_size = sizeof info};
    int code = extend(c, 1, &builder);
    if (code >= 0) return code;
    cli_index_describe(&c->index, &info);
    c->count = info.removed;
    code = cli_index_complete(c->app, &builder, code);
    return code < 0 ? report(c, "compacted") : code;
}

int cli_index_compact(int argc, char **argv)
{
    cli_app app;
    change c = {.app = &app, .before = -1};
    cli_init(&app, "index compact");
    int code = parse(&c, "INDEX [-o OUT] [options]",
                     "Drops removed points from the tables and erases their coordinates from the "
                     "file (they become zeros; sets and sparse points become empty). The other "
                     "points keep their ids.",
                     NULL,
                     "Erase removed points\n"
                     "gnomon index compact given.lsh\n",
                     argc, argv);
    if (code >= 0) return code;
    code = start(&c);
    return end(&c, code < 0 ? compact(&c) : code);
}

/* gnomon index info and check. */
#include "verbs/index/index.h"

#include <stdlib.h>
#include <string.h>

static int parse(cli_app *app, const char *about, const char *examples, int argc, char **argv,
                 const char **path)
{
    cli_option common[CLI_COMMON_OPTIONS];
    int count;
    cli_common_options(app, common);
    const cli_group groups[] = {CLI_GROUP("Common", common)};
    const cli_verb verb = {.name = app->verb,
                           .synopsis = "INDEX [--json]",
                           .about = about,
                           .groups = groups,
                           .group_count = 1,
                           .examples = examples,
                           .min_operands = 1,
                           .max_operands = 1};
    return cli_parse(&verb, argc, argv, path, &count);
}

static int scan(cli_app *app, const char *path)
{
    cli_index_file index;
    int code = cli_index_open(app, path, &index);
    if (code >= 0) return code;
    if (app->json) {
        json_t *out = json_pack("{s:o*}", "index", cli_json_name(path));
        code = cli_print_report(app, cli_json_join(out, cli_index_json(&index)));
    } else {
        cli_index_words(stdout, &index);
        code = cli_flush_output(app->verb);
    }
    cli_index_close(&index);
    return code;
}

int cli_index_info(int argc, char **argv)
{
    cli_app app;
    const char *path = NULL;
    cli_init(&app, "index info");
    int code = parse(&app,
                     "Describes an index: metric, points, memory, and hash functions, tables and "
                     "search parameters, the columns of an inverted index, or the bits of codes.",
                     "What is in an index\n"
                     "gnomon index info given.lsh\n",
                     argc, argv, &path);
    if (code >= 0) return code;
    code = cli_start(&app);
    if (code < 0) code = scan(&app, path);
    return cli_end(&app, code);
}

typedef struct faults {
    const char *path;
    json_t *list; /* NULL: told as words */
    int count;
} faults;

static void hear(void *user, const char *section, const char *fault)
{
    faults *f = user;
    f->count++;
    if (f->list != NULL) {
        json_array_append_new(f->list, json_pack("{s:s, s:s}", "section", section, "fault", fault));
        return;
    }
    char *shown = cli_escape(f->path);
    printf("%s: %s: %s\n", shown != NULL ? shown : "?", section, fault);
    free(shown);
}

static int check(cli_app *app, const char *path)
{
    faults f = {path, app->json ? json_array() : NULL, 0};
    gnomon_status status = gnomon_sparse_index_check(app->ctx, path, hear, &f);
    if (status == GNOMON_ERROR_FORMAT) status = gnomon_rabitq_check(app->ctx, path, hear, &f);
    if (status == GNOMON_ERROR_FORMAT) status = gnomon_lsh_check(app->ctx, path, hear, &f);
    const int damaged = status == GNOMON_ERROR_DATA || status == GNOMON_ERROR_TRUNCATED;
    if (status != GNOMON_OK && !damaged) {
        json_decref(f.list);
        return cli_index_fail(app, path, status);
    }
    /* what is wrong with the header, or with the whole, is the error's text alone */
    if (damaged && f.count == 0) {
        const int named = cli_error_about(app, path);
        hear(&f, "layout", named ? cli_error_rest(app) + 2 : gnomon_last_error(app->ctx));
    }
    int code;
    if (app->json) {
        code = cli_print_report(app, json_pack("{s:o*, s:b, s:o}", "index", cli_json_name(path),
                                               "sound", f.count == 0, "faults", f.list));
    } else {
        char *shown = cli_escape(path);
        if (f.count == 0) printf("%s: sound\n", shown != NULL ? shown : "?");
        free(shown);
        code = cli_flush_output(app->verb);
    }
    return code == CLI_EXIT_DONE && f.count > 0 ? CLI_EXIT_NEGATIVE : code;
}

int cli_index_check(int argc, char **argv)
{
    cli_app app;
    const char *path = NULL;
    cli_init(&app, "index check");
    int code = parse(&app,
                     "Verifies an index's file: its checksums, and that buckets and ids are in "
                     "order, coordinates are finite, and each point is in every table, in the "
                     "bucket that it hashes to; of an inverted index, that its lists, and of codes "
                     "that each of them, are those of the points. Every damaged section is "
                     "reported, and the exit "
                     "code is then 1.",
                     "Verify a file\n"
                     "gnomon index check given.lsh\n",
                     argc, argv, &path);
    if (code >= 0) return code;
    code = cli_start(&app);
    if (code < 0) code = check(&app, path);
    return cli_end(&app, code);
}

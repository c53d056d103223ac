/* gnomon dedup: its options, and the order of its work. */
#include "verbs/dedup/dedup.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct given {
    int64_t characters;
    int kind, keep, punctuation, ascii, fold;
    int ngram, char_ngram, similarity, recall, bands, rows, bucket, seed, lower, fold_case,
        normalize, field, min_part, keep_given;
} given;

static int parse(cli_dedup_job *j, given *g, int argc, char **argv)
{
    static const cli_choice kinds[] = {{"lines", GNOMON_CORPUS_LINES},
                                       {"json", GNOMON_CORPUS_JSON},
                                       {"files", GNOMON_CORPUS_FILES},
                                       {NULL, 0}};
    static const cli_choice keeps[] = {
        {"first", GNOMON_DEDUP_FIRST}, {"longest", GNOMON_DEDUP_LONGEST}, {NULL, 0}};
    static const cli_choice marks[] = {{"drop", GNOMON_PUNCTUATION_DROP},
                                       {"keep", GNOMON_PUNCTUATION_KEEP},
                                       {"drop-all", GNOMON_PUNCTUATION_DROP_ALL},
                                       {NULL, 0}};
    static const cli_choice parts_of[] = {{"documents", 0},
                                          {"lines", GNOMON_PART_LINE},
                                          {"paragraphs", GNOMON_PART_PARAGRAPH},
                                          {NULL, 0}};
    static const cli_choice forms[] = {{"none", GNOMON_NORMAL_NONE},
                                       {"nfc", GNOMON_NORMAL_NFC},
                                       {"nfkc", GNOMON_NORMAL_NFKC},
                                       {NULL, 0}};
    const cli_option documents[] = {
        {.name = "text",
         .type = CLI_CHOICE,
         .target = &g->kind,
         .choices = kinds,
         .value = "WHAT",
         .help = "a document is a line, the text in a line's JSON object, or a file of a folder. "
                 "Default: files for a folder, json for names in .jsonl, .ndjson and .json "
                 "(.gz or .zst behind or not), else lines"},
        {.name = "field",
         .type = CLI_TEXT,
         .target = &j->corpus.field,
         .given = &g->field,
         .value = "NAME",
         .help = "json: the member with the text (default text)"},
        {.name = "id",
         .type = CLI_TEXT,
         .target = &j->corpus.id,
         .value = "NAME",
         .help = "json: the member, a string or an integer, that names the document in --ids, "
                 "--pairs and --clusters. Without it FILE:LINE does"},
        {.name = "skip-bad",
         .type = CLI_FLAG,
         .target = &j->skip_bad,
         .flag = 1,
         .help = "leave out documents that are empty, not UTF-8, too large or broken JSON, and "
                 "report them. Without it the first one ends the run with exit code 3"},
        {.name = "max-document",
         .type = CLI_SIZE,
         .target = &j->corpus.max_bytes,
         .low = 1,
         .high = (int64_t)1 << 40,
         .value = "SIZE",
         .help = "a larger document is bad (default 16M); memory for the largest one comes on top "
                 "of --memory, 16 times its size for words and 24 times for characters"},
    };
    const cli_option parts[] = {
        {.name = "sign",
         .type = CLI_TEXT,
         .target = &j->sign,
         .value = "FILE",
         .help = "write a signature file: names and sets of n-grams of the documents, from which "
                 "--merge finds the duplicates. With no other output nothing else is done"},
        {.name = "merge",
         .type = CLI_FLAG,
         .target = &j->merge,
         .flag = 1,
         .help = "inputs are signature files, in any order: their documents together, numbered by "
                 "name in the order of bytes; n-grams are those of the files"},
        {.name = "against",
         .type = CLI_TEXT,
         .target = &j->against,
         .value = "FILE",
         .help = "the signature file of an old corpus: documents near one of it are not kept, "
                 "and it is not written. n-grams must be those of the file"},
    };
    const cli_option near[] = {
        {.name = "similarity",
         .type = CLI_REAL,
         .target = &j->options.similarity,
         .given = &g->similarity,
         .reals = CLI_POSITIVE,
         .value = "S",
         .help = "documents whose sets of n-grams have Jaccard similarity S or more are near "
                 "(default 0.8)"},
        {.name = "ngram",
         .type = CLI_INT,
         .target = &j->options.ngram,
         .given = &g->ngram,
         .low = 1,
         .high = 64,
         .value = "N",
         .help = "a document is the set of its n-grams of N words (default 3)"},
        {.name = "char-ngram",
         .type = CLI_INT,
         .target = &g->characters,
         .given = &g->char_ngram,
         .low = 1,
         .high = 64,
         .value = "N",
         .help = "n-grams of N characters (UTF-8)"},
        {.name = "weighted",
         .type = CLI_FLAG,
         .target = &j->options.weighted,
         .flag = 1,
         .help = "an n-gram counts as often as a document has it (weighted Jaccard)"},
        {.name = "containment",
         .type = CLI_FLAG,
         .target = &j->options.containment,
         .flag = 1,
         .help =
             "documents are near if the larger has the share S of the smaller one's n-grams; all "
             "such pairs are found"},
        {.name = "lower",
         .type = CLI_FLAG,
         .target = &g->ascii,
         .given = &g->lower,
         .flag = 1,
         .help = "ASCII letters count in lower case"},
        {.name = "fold-case",
         .type = CLI_FLAG,
         .target = &g->fold,
         .given = &g->fold_case,
         .flag = 1,
         .help = "all letters do: Unicode's full case folding"},
        {.name = "normalize",
         .type = CLI_CHOICE,
         .target = &j->options.normalize,
         .given = &g->normalize,
         .choices = forms,
         .value = "FORM",
         .help =
             "none (default), or a normal form of Unicode: nfc (composed) or nfkc (also without "
             "ligatures, full width, superscripts)"},
        {.name = "punctuation",
         .type = CLI_CHOICE,
         .target = &j->options.punctuation,
         .given = &g->punctuation,
         .choices = marks,
         .value = "WHAT",
         .help = "drop (default): ASCII punctuation separates words as white space does; keep: it "
                 "belongs to words; drop-all: all of Unicode's punctuation, symbols and separators "
                 "do"},
        {.name = "exact",
         .type = CLI_FLAG,
         .target = &j->options.exact,
         .flag = 1,
         .help = "only documents of equal bytes are duplicates"},
        {.name = "parts",
         .type = CLI_CHOICE,
         .target = &j->part,
         .choices = parts_of,
         .value = "WHAT",
         .help = "with --exact: documents (default), or lines or paragraphs within the texts of "
                 "JSON lines: of equal ones, in a document and among all, the first stays and the "
                 "others are cut out; a document of which nothing is left is left out"},
        {.name = "min-part",
         .type = CLI_SIZE,
         .target = &j->parts_options.min_bytes,
         .given = &g->min_part,
         .low = 1,
         .high = (int64_t)1 << 40,
         .value = "SIZE",
         .help = "lines or paragraphs of fewer bytes stay (default 1)"},
    };
    const cli_option how[] = {
        {.name = "recall",
         .type = CLI_REAL,
         .target = &j->options.recall,
         .given = &g->recall,
         .reals = CLI_POSITIVE,
         .value = "R",
         .help = "find at least a share R of all near pairs, in at least 19 of 20 runs (default "
                 "0.95), but for those that --bucket leaves out; 1: all, by the exact join, in "
                 "memory"},
        {.name = "bands",
         .type = CLI_INT,
         .target = &j->options.bands,
         .given = &g->bands,
         .low = 1,
         .high = 1024,
         .value = "N",
         .help = "instead of --recall: so many bands, with --rows"},
        {.name = "rows",
         .type = CLI_INT,
         .target = &j->options.rows,
         .given = &g->rows,
         .low = 1,
         .high = 64,
         .value = "N",
         .help = "MinHash values in each band"},
        {.name = "seed",
         .type = CLI_SEED,
         .target = &j->options.seed,
         .given = &g->seed,
         .value = "N",
         .help = "the seed of the hash functions, 0 (default) to 2^64 - 1"},
        {.name = "unverified",
         .type = CLI_FLAG,
         .target = &j->options.unverified,
         .flag = 1,
         .help = "documents that share a band and an n-gram are near, whatever their similarity"},
        {.name = "bucket",
         .type = CLI_INT,
         .target = &j->options.bucket,
         .given = &g->bucket,
         .low = 2,
         .high = 1 << 20,
         .value = "N",
         .help = "in buckets of more than N distinct sets (default 256) each set is compared with "
                 "at most 64 others; the report counts the pairs left out"},
        {.name = "work",
         .type = CLI_TEXT,
         .target = &j->options.work,
         .value = "DIR",
         .help = "the folder of temporary files, which have no names (default $TMPDIR, else "
                 "/tmp)"},
        {.name = "checkpoint",
         .type = CLI_TEXT,
         .target = &j->options.checkpoint,
         .value = "FILE",
         .help = "keep what has been done in FILE, and in files beside it named as it; after an "
                 "interruption or a full disk the same command goes on. They are removed when the "
                 "output is written"},
    };
    const cli_option output[] = {
        {.name = "output",
         .letter = 'o',
         .type = CLI_TEXT,
         .target = &j->output,
         .value = "KEPT",
         .help = "the lines of the kept documents, as they were; - is standard output"},
        {.name = "keep",
         .type = CLI_CHOICE,
         .target = &g->keep,
         .given = &g->keep_given,
         .choices = keeps,
         .value = "WHICH",
         .help = "of each cluster the first document (default), or the longest text"},
        {.name = "ids",
         .type = CLI_TEXT,
         .target = &j->ids,
         .value = "OUT",
         .help = "a .csv or .tsv of the kept documents: number from 0, name"},
        {.name = "pairs",
         .type = CLI_TEXT,
         .target = &j->pairs_path,
         .value = "OUT",
         .help = "a .csv or .tsv of the pairs found: i, j, similarity, names. Of documents with "
                 "equal sets each is paired with the first"},
        {.name = "clusters",
         .type = CLI_TEXT,
         .target = &j->clusters_path,
         .value = "OUT",
         .help = "a .csv or .tsv of all documents: number, name, the number of the document kept "
                 "for it, and 1 if that is itself"},
    };
    cli_option common[CLI_COMMON_OPTIONS];
    cli_common_options(j->app, common);
    for (int o = 0; o < CLI_COMMON_OPTIONS; o++)
        if (strcmp(common[o].name, "memory") == 0) common[o].low = CLI_OVERHEAD_BYTES;
    const cli_group groups[] = {
        CLI_GROUP("Documents", documents), CLI_GROUP("Parts of a corpus", parts),
        CLI_GROUP("Near", near),           CLI_GROUP("How", how),
        CLI_GROUP("Output", output),       CLI_GROUP("Common", common)};
    const cli_verb verb = {
        .name = j->app->verb,
        .synopsis = "INPUT... -o KEPT [--similarity S] [options]\n"
                    "INPUT... --ids OUT | --pairs OUT | --clusters OUT [options]\n"
                    "INPUT... --exact [--parts lines|paragraphs] -o KEPT [options]\n"
                    "INPUT... --sign FILE [options]\n"
                    "FILE... --merge --ids OUT [options]\n"
                    "INPUT... --against FILE -o KEPT [options]",
        .about = "Removes near-duplicates from texts. Documents become sets of n-grams; MinHash "
                 "bands select candidate pairs; the similarity of every candidate is computed from "
                 "its sets; documents that pairs connect are a cluster, of which one is kept. "
                 "The result does not depend on the number of threads or the memory.",
        .groups = groups,
        .group_count = sizeof groups / sizeof groups[0],
        .examples =
            "Near-duplicate lines of a text\n"
            "gnomon dedup notes.txt --similarity 0.7 --skip-bad -o kept.txt\n"
            "JSON lines, of several files, with what was found\n"
            "gnomon dedup part-*.jsonl.gz --field text --id id -o kept.jsonl --clusters "
            "clusters.tsv\n"
            "Lines that share runs of characters: those to keep, and all pairs\n"
            "gnomon dedup notes.txt --skip-bad --char-ngram 5 --ids kept.tsv --pairs pairs.tsv\n"
            "Parts of a corpus, each on a machine of its own, and the documents to keep of all\n"
            "gnomon dedup part-1.jsonl.gz --id id --sign 1.sig\n"
            "gnomon dedup part-2.jsonl.gz --id id --sign 2.sig\n"
            "gnomon dedup 2.sig 1.sig --merge --ids kept.tsv\n"
            "Of new documents those that an old corpus does not hold\n"
            "gnomon dedup part-2.jsonl.gz --id id --against 1.sig -o new.jsonl\n"
            "Lines of 20 bytes and more that stand in several texts, or twice in one\n"
            "gnomon dedup part-*.jsonl.gz --exact --parts lines --min-part 20 -o cut.jsonl\n",
        .min_operands = 1,
        .max_operands = CLI_DEDUP_INPUTS,
    };
    return cli_parse(&verb, argc, argv, j->inputs, &j->input_count);
}

static int check_table(cli_app *app, const char *option, const char *path)
{
    if (path == NULL) return -1;
    if (strcmp(path, "-") == 0)
        return app->json
                   ? cli_usage(app, "--json and %s - can't both go to standard output", option)
                   : -1;
    const char *format = gnomon_format_for(path, NULL, NULL);
    if (format != NULL && (strcmp(format, "csv") == 0 || strcmp(format, "tsv") == 0)) return -1;
    return cli_usage(app, "%s %s: must be .csv or .tsv", option, path);
}

/* Whether duplicates are to be found; else documents are signed alone. */
static int finds(const cli_dedup_job *j)
{
    return j->output != NULL || j->ids != NULL || j->pairs_path != NULL ||
           j->clusters_path != NULL || j->app->json;
}

static int is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* What signature files hold, and what not. */
static int check_parts(cli_dedup_job *j, const given *g)
{
    cli_app *app = j->app;
    if (j->sign != NULL && j->options.exact)
        return cli_usage(app, "--sign keeps sets of n-grams, and --exact has none");
    if (j->against != NULL && j->options.exact)
        return cli_usage(app, "--against compares sets of n-grams, and --exact has none");
    if (j->against != NULL && is_folder(j->against))
        return cli_usage(app, "--against: %s is a folder; it takes a signature file", j->against);
    if (!j->merge) return -1;
    if (j->output != NULL || j->options.exact)
        return cli_usage(app,
                         "%s needs texts, which signature files don't hold: --ids lists the "
                         "documents to keep",
                         j->options.exact ? "--exact" : "-o");
    if (g->ngram || g->char_ngram || g->lower || g->fold_case || g->normalize || g->punctuation ||
        j->options.weighted || g->kind || g->field || j->corpus.id != NULL || j->skip_bad)
        return cli_usage(app, "--merge: signature files hold sets of n-grams already: options of "
                              "documents and n-grams have no meaning with it");
    for (int i = 0; i < j->input_count; i++)
        if (is_folder(j->inputs[i]))
            return cli_usage(app, "--merge: %s is a folder; it takes signature files",
                             j->inputs[i]);
    return -1;
}

/* No output is another, an input, or a file of the checkpoint. */
static int check_files(cli_dedup_job *j)
{
    enum { OUTPUTS = 5, ENDINGS = 7 };
    static const char *const endings[ENDINGS] = {"",       ".documents", ".sets", ".texts",
                                                 ".names", ".pairs",     ".new"};
    cli_file files[OUTPUTS + ENDINGS + 1] = {{"-o", j->output, 1},
                                             {"--ids", j->ids, 1},
                                             {"--pairs", j->pairs_path, 1},
                                             {"--clusters", j->clusters_path, 1},
                                             {"--sign", j->sign, 1}};
    const char *checkpoint = j->options.checkpoint;
    const size_t room = checkpoint != NULL ? strlen(checkpoint) + sizeof ".documents" : 1;
    char *names = checkpoint != NULL ? calloc(ENDINGS, room) : NULL;
    int count = OUTPUTS, code = -1;
    if (checkpoint != NULL && names == NULL)
        return cli_fail(j->app, CLI_EXIT_MEMORY, "out of memory for names");
    for (int e = 0; e < ENDINGS && checkpoint != NULL; e++) {
        snprintf(names + (size_t)e * room, room, "%s%s", checkpoint, endings[e]);
        files[count++] = (cli_file){"--checkpoint", names + (size_t)e * room, 1};
    }
    /* the outputs with each other, and each with each input, but not the inputs with each other */
    code = cli_check_apart(j->app, files, count);
    for (int i = j->against != NULL ? -1 : 0; i < j->input_count && code < 0; i++) {
        files[count] =
            i < 0 ? (cli_file){"--against", j->against, 0} : (cli_file){"INPUT", j->inputs[i], 0};
        code = cli_check_apart(j->app, files, count + 1);
    }
    free(names);
    return code;
}

/* What parts of documents can be asked for. */
static int check_within(cli_dedup_job *j, const given *g)
{
    cli_app *app = j->app;
    if (j->part == 0)
        return g->min_part ? cli_usage(app, "--min-part needs --parts lines or paragraphs") : -1;
    if (!j->options.exact) return cli_usage(app, "--parts compares bytes: it needs --exact");
    if (j->ids != NULL || j->pairs_path != NULL || j->clusters_path != NULL || g->keep_given)
        return cli_usage(app, "--ids, --pairs, --clusters and --keep are of whole documents, and "
                              "have no meaning with --parts");
    if (g->kind == GNOMON_CORPUS_LINES || g->kind == GNOMON_CORPUS_FILES)
        return cli_usage(app, "--parts is of the texts of JSON lines: --text json");
    return -1;
}

static int check(cli_dedup_job *j, const given *g)
{
    cli_app *app = j->app;
    const struct {
        const char *name, *path;
    } tables[] = {{"--ids", j->ids}, {"--pairs", j->pairs_path}, {"--clusters", j->clusters_path}};
    if (!finds(j) && j->sign == NULL)
        return cli_usage(app,
                         "one of -o, --ids, --pairs, --clusters, --sign and --json is needed, else "
                         "the result would be lost");
    if (!finds(j) && j->against != NULL)
        return cli_usage(app, "--against needs one of -o, --ids, --pairs, --clusters and --json");
    int code = check_parts(j, g);
    if (code >= 0) return code;
    if (g->ngram && g->char_ngram)
        return cli_usage(app, "--ngram and --char-ngram exclude each other");
    if (g->ascii && g->fold)
        return cli_usage(app, "--lower and --fold-case exclude each other: the one lowers ASCII "
                              "letters, the other all");
    if (g->bands != g->rows) return cli_usage(app, "--bands and --rows go together");
    if (g->bands && g->recall) return cli_usage(app, "--bands and --recall exclude each other");
    if (j->options.exact &&
        (g->ngram || g->char_ngram || g->similarity || g->recall || g->bands || g->bucket ||
         g->seed || g->lower || g->fold_case || g->normalize || g->punctuation ||
         j->options.unverified || j->options.weighted || j->options.containment))
        return cli_usage(app, "--exact compares bytes: options of n-grams and of how pairs are "
                              "found have no meaning with it");
    if (j->options.containment &&
        (g->recall || g->bands || g->seed || g->bucket || j->options.unverified))
        return cli_usage(
            app, "--containment finds all pairs, without hash functions: --recall, --bands, "
                 "--rows, --bucket, --seed and --unverified have no meaning with it");
    if (j->options.similarity > 1)
        return cli_usage(app, "--similarity %g: must be above 0 and at most 1",
                         j->options.similarity);
    if (j->options.recall > 1)
        return cli_usage(app, "--recall %g: must be above 0 and at most 1", j->options.recall);
    if (j->options.unverified && j->options.recall == 1 && !g->bands)
        return cli_usage(app, "--unverified and --recall 1 exclude each other");
    for (size_t t = 0; t < sizeof tables / sizeof tables[0]; t++) {
        code = check_table(app, tables[t].name, tables[t].path);
        if (code >= 0) return code;
    }
    code = check_within(j, g);
    if (code >= 0) return code;
    if (j->output != NULL && strcmp(j->output, "-") == 0 && app->json)
        return cli_usage(app, "--json and the documents can't both go to standard output; name a "
                              "file with -o");
    int standard = 0;
    for (int i = 0; i < j->input_count; i++)
        standard += strcmp(j->inputs[i], "-") == 0;
    if (standard > 0 && j->options.checkpoint != NULL)
        return cli_usage(app, "--checkpoint: standard input can't be read again");
    if (standard > 1) return cli_usage(app, "standard input can be read once only");
    if (app->comm_name != NULL && (standard > 0 || j->merge || j->part != 0))
        return cli_usage(app, "--comm: %s",
                         standard > 0 ? "each rank reads the documents, and standard input can't "
                                        "be read by all"
                         : j->merge   ? "merging signature files runs in one process"
                                      : "--parts runs in one process");
    code = check_files(j);
    if (code >= 0) return code;
    if (g->char_ngram) {
        j->options.ngram = g->characters;
        j->options.characters = 1;
    }
    j->options.lower = g->fold ? GNOMON_LOWER_FOLD : g->ascii;
    j->options.keep = (gnomon_dedup_keep)g->keep;
    j->corpus.kind = (gnomon_corpus_kind)g->kind;
    return -1;
}

/* ---- reading ---- */

static void bad(void *user, const char *file, int64_t line, const char *why)
{
    cli_dedup_job *j = user;
    if (j->skipped++ >= CLI_DEDUP_SHOWN) return;
    if (line > 0)
        cli_say(j->app, "gnomon dedup: %s: line %lld: %s; left out\n", file, (long long)line, why);
    else
        cli_say(j->app, "gnomon dedup: %s: %s; left out\n", file, why);
    json_array_append_new(j->skipped_list, json_pack("{s:o, s:I, s:s}", "file", cli_json_name(file),
                                                     "line", (json_int_t)line, "why", why));
}

/* A failure of the library's is that of all ranks, told by the one that it is of, or by rank 0. */
static int fail_together(cli_dedup_job *j, gnomon_status status)
{
    cli_app *app = j->app;
    if (status == GNOMON_ERROR_COMM || app->comm.size == 1) return cli_fail_status(app, status);
    const int own = strncmp(gnomon_last_error(app->ctx), "rank ", 5) != 0;
    const int code = own || app->comm.rank == 0 ? cli_fail_status(app, status) : CLI_EXIT_DEFECT;
    return cli_comm_agree(app, code);
}

/* What a file holds is wrong for all ranks, which have come as far: rank 0 tells it. */
static int fail_reading(cli_dedup_job *j, gnomon_status status)
{
    cli_app *app = j->app;
    const int alike = status != GNOMON_ERROR_IO && status != GNOMON_ERROR_MEMORY;
    const int code = app->comm.rank > 0 && alike ? CLI_EXIT_DEFECT : cli_fail_status(app, status);
    return alike ? cli_comm_agree(app, code) : code;
}

static int add_batch(cli_dedup_job *j, const gnomon_documents *batch)
{
    j->read += batch->count;
    const gnomon_status status =
        j->part ? gnomon_parts_add(j->parts, batch) : gnomon_dedup_add(j->dedup, batch);
    if (status != GNOMON_OK) return fail_together(j, status);
    return cli_interrupted() ? cli_fail(j->app, CLI_EXIT_INTERRUPTED, "interrupted") : -1;
}

static int read_input(cli_dedup_job *j, const char *path)
{
    gnomon_corpus *corpus = NULL;
    gnomon_documents batch = {.struct_size = sizeof batch};
    int code = -1;
    if (j->corpus.kind != GNOMON_CORPUS_AUTO && j->corpus.kind != GNOMON_CORPUS_FILES &&
        is_folder(path))
        return cli_usage(j->app, "--text: %s is a folder; use --text files", path);
    gnomon_status status = gnomon_corpus_open(j->app->ctx, path, &j->corpus, &corpus);
    if (status == GNOMON_OK && gnomon_corpus_kind_of(corpus) == GNOMON_CORPUS_FILES) {
        j->files = 1;
        if (j->output != NULL)
            code = cli_usage(j->app,
                             "%s: -o holds lines, and these documents are files: --ids lists those "
                             "to keep",
                             path);
    }
    if (status == GNOMON_OK && j->part && code < 0 &&
        gnomon_corpus_kind_of(corpus) != GNOMON_CORPUS_JSON)
        code = cli_usage(
            j->app, "--parts is of the texts of JSON lines, and %s is none: --text json", path);
    while (status == GNOMON_OK && code < 0) {
        status = gnomon_corpus_next(corpus, &batch, NULL);
        if (status != GNOMON_OK || batch.count == 0) break;
        code = add_batch(j, &batch);
    }
    if (status != GNOMON_OK) code = fail_reading(j, status);
    gnomon_corpus_close(corpus);
    return code;
}

/* Whether every rank can read every input. */
static int check_inputs(void *user)
{
    cli_dedup_job *j = user;
    gnomon_status status = GNOMON_OK;
    for (int i = 0; i < j->input_count && status == GNOMON_OK && j->app->comm.size > 1; i++) {
        gnomon_corpus *corpus = NULL;
        status = gnomon_corpus_open(j->app->ctx, j->inputs[i], &j->corpus, &corpus);
        gnomon_corpus_close(corpus);
    }
    return status == GNOMON_OK ? -1 : cli_fail_status(j->app, status);
}

static int read_all(cli_dedup_job *j)
{
    int code = -1;
    for (int i = 0; i < j->input_count && code < 0; i++)
        code = read_input(j, j->inputs[i]);
    return code;
}

static int signed_only(const cli_dedup_job *j)
{
    cli_bar_clear(j->app);
    if (!j->merge) cli_say(j->app, "%lld documents signed.\n", (long long)j->read);
    if (j->skipped > 0)
        cli_say(j->app, "%lld bad documents were left out.\n", (long long)j->skipped);
    return CLI_EXIT_DONE;
}

/* What the documents come from: with another of these a checkpoint is of no use. */
static json_t *input_identity(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0) return json_pack("{s:o}", "path", cli_json_name(path));
    char *real = realpath(path, NULL);
    json_t *one =
        json_pack("{s:o, s:I, s:[I, I], s:[I, I]}", "path",
                  cli_json_name(real != NULL ? real : path), "bytes", (json_int_t)st.st_size,
                  "modified", (json_int_t)st.st_mtim.tv_sec, (json_int_t)st.st_mtim.tv_nsec,
                  "changed", (json_int_t)st.st_ctim.tv_sec, (json_int_t)st.st_ctim.tv_nsec);
    free(real);
    return one;
}

/* The text is free()'s; NULL: memory was out. */
static char *identity_of(const cli_dedup_job *j)
{
    json_t *inputs = json_array();
    for (int i = 0; i < j->input_count; i++)
        json_array_append_new(inputs, input_identity(j->inputs[i]));
    json_t *all =
        json_pack("{s:o, s:b, s:i, s:o*, s:o*, s:b, s:I, s:b}", "inputs", inputs, "merge", j->merge,
                  "text", (int)j->corpus.kind, "field", cli_json_name(j->corpus.field), "id",
                  cli_json_name(j->corpus.id), "skip_bad", j->skip_bad, "max_document",
                  (json_int_t)j->corpus.max_bytes, "names", j->corpus.names);
    if (j->against != NULL && all != NULL)
        json_object_set_new(all, "against", input_identity(j->against));
    char *text = cli_json_text(all, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(all);
    return text;
}

/* Takes up a checkpoint, or begins. */
static int create(cli_dedup_job *j)
{
    int64_t restored;
    char *identity = j->options.checkpoint != NULL ? identity_of(j) : NULL;
    if (j->options.checkpoint != NULL && identity == NULL)
        return cli_fail(j->app, CLI_EXIT_MEMORY, "out of memory for a checkpoint");
    gnomon_status status;
    if (j->part) {
        gnomon_parts_options *o = &j->parts_options;
        o->part = j->part;
        o->field = j->corpus.field;
        o->work = j->options.work;
        o->checkpoint = j->options.checkpoint;
        o->identity = identity;
        status = gnomon_parts_create(j->app->ctx, o, &j->parts);
        o->identity = NULL;
        restored = gnomon_parts_restored(j->parts);
    } else {
        j->options.identity = identity;
        j->options.comm = j->app->comm.size > 1 ? &j->app->comm : NULL;
        status = gnomon_dedup_create(j->app->ctx, &j->options, &j->dedup);
        j->options.identity = NULL;
        restored = gnomon_dedup_restored(j->dedup);
    }
    free(identity);
    if (status != GNOMON_OK) return fail_together(j, status);
    if (restored > 0)
        cli_say(j->app, "gnomon dedup: goes on with %lld %s\n", (long long)restored,
                j->part ? "parts" : "documents");
    return -1;
}

/* Whether the kept documents are read again when they are written, rather than held: where all
 * inputs are files, and the library would hold them in a file. With a checkpoint it always does. */
static int read_again(const cli_dedup_job *j)
{
    enum { HELD = 8 }; /* the part of the memory up to which they stay there */
    int64_t bytes = 0;
    for (int i = 0; i < j->input_count; i++) {
        struct stat st;
        if (strcmp(j->inputs[i], "-") == 0) return 0; /* a file of that name isn't read */
        if (stat(j->inputs[i], &st) != 0 || !S_ISREG(st.st_mode)) return 0;
        bytes += st.st_size <= INT64_MAX - bytes ? st.st_size : INT64_MAX - bytes;
    }
    return j->options.checkpoint != NULL || bytes > j->app->working / HELD;
}

/* What parts of documents become, when all have been read. */
static int parts(cli_dedup_job *j)
{
    cli_app *app = j->app;
    j->parts_result.struct_size = sizeof j->parts_result;
    gnomon_status status = gnomon_parts_run(j->parts, &j->parts_result);
    cli_bar_clear(app);
    if (status == GNOMON_OK && j->output != NULL) status = gnomon_parts_write(j->parts, j->output);
    if (status != GNOMON_OK) return cli_fail_status(app, status);
    const int code =
        app->json ? cli_print_report(app, cli_dedup_parts_json(j)) : cli_flush_output(app->verb);
    if (code == CLI_EXIT_DONE) gnomon_parts_forget(j->parts);
    if (code == CLI_EXIT_DONE && !app->json) cli_dedup_parts_words(j);
    return code;
}

static int work(cli_dedup_job *j)
{
    cli_app *app = j->app;
    int code = -1;
    const double begin = cli_seconds();
    j->again = j->output != NULL && !j->part && read_again(j);
    j->options.keep_raw = j->output == NULL ? GNOMON_RAW_NONE
                          : j->again        ? GNOMON_RAW_SUM
                                            : GNOMON_RAW_HELD;
    if (j->merge) j->options.ngram = 0;
    code = cli_comm_begin(app, check_inputs, j);
    if (code < 0) code = create(j);
    if (code >= 0) return code;
    gnomon_status status = GNOMON_OK;
    if (j->merge) status = gnomon_dedup_add_signed(j->dedup, j->inputs, j->input_count);
    if (status != GNOMON_OK) return cli_fail_status(app, status);
    if (!j->merge) code = read_all(j);
    if (code >= 0) return code;
    j->read_seconds = cli_seconds() - begin;
    if (j->part) return parts(j);
    if (j->against != NULL) status = gnomon_dedup_add_old(j->dedup, &j->against, 1);
    if (status == GNOMON_OK && j->sign != NULL) status = gnomon_dedup_sign(j->dedup, NULL, j->sign);
    if (status != GNOMON_OK) return fail_together(j, status);
    if (!finds(j)) {
        gnomon_dedup_forget(j->dedup);
        return signed_only(j);
    }
    j->result.struct_size = sizeof j->result;
    status = gnomon_dedup_run(j->dedup, &j->result);
    if (status != GNOMON_OK) return fail_together(j, status);
    cli_bar_clear(app);
    const double written = cli_seconds();
    code = cli_comm_agree(app, app->comm.rank == 0 ? cli_dedup_write(j) : -1);
    j->write_seconds = cli_seconds() - written;
    if (code >= 0) return code;
    if (app->comm.rank > 0) return CLI_EXIT_DONE;
    code = app->json ? cli_print_report(app, cli_dedup_json(j)) : cli_flush_output(app->verb);
    if (code == CLI_EXIT_DONE) gnomon_dedup_forget(j->dedup);
    if (code == CLI_EXIT_DONE && !app->json) cli_dedup_words(j);
    return code;
}

int cli_dedup(int argc, char **argv)
{
    cli_app app;
    given g = {0};
    static cli_dedup_job j; /* large: the names of many inputs */
    j = (cli_dedup_job){.app = &app,
                        .corpus = GNOMON_CORPUS_OPTIONS_INIT,
                        .options = GNOMON_DEDUP_OPTIONS_INIT,
                        .parts_options = GNOMON_PARTS_OPTIONS_INIT};
    cli_init(&app, "dedup");
    int code = parse(&j, &g, argc, argv);
    if (code < 0) code = check(&j, &g);
    if (code >= 0) return code;
    j.corpus.names = j.ids != NULL || j.pairs_path != NULL || j.clusters_path != NULL ||
                     j.sign != NULL || j.against != NULL;
    j.skipped_list = json_array();
    if (j.skip_bad) {
        j.corpus.bad = bad;
        j.corpus.user = &j;
    }
    app.working = app.memory - CLI_OVERHEAD_BYTES;
    code = cli_start(&app);
    if (code < 0) code = work(&j);
    gnomon_dedup_destroy(j.dedup);
    gnomon_parts_destroy(j.parts);
    json_decref(j.skipped_list);
    return cli_end(&app, code);
}

/* cli/verbs/dedup/dedup.h: what the files of gnomon dedup share. */
#ifndef GNOMON_CLI_DEDUP_H
#define GNOMON_CLI_DEDUP_H

#include "cli.h"

enum { CLI_DEDUP_INPUTS = 4096, CLI_DEDUP_SHOWN = 10 };

typedef struct cli_dedup_job {
    cli_app *app;
    const char *inputs[CLI_DEDUP_INPUTS];
    int input_count;
    const char *output, *ids, *pairs_path, *clusters_path, *sign, *against;
    int skip_bad, merge;
    gnomon_corpus_options corpus;
    gnomon_dedup_options options;
    int part; /* gnomon_part; 0: documents are compared as a whole */
    gnomon_parts_options parts_options;
    gnomon_dedup *dedup; /* one of these two */
    gnomon_parts *parts;
    gnomon_parts_result parts_result;
    gnomon_dedup_result result;
    int files;             /* documents are files */
    int again;             /* kept ones are read again when they are written */
    int64_t read, skipped; /* documents */
    json_t *skipped_list;  /* the first ones */
    double read_seconds, write_seconds;
} cli_dedup_job;

/* dedup_report.c */
void cli_dedup_words(const cli_dedup_job *j);
json_t *cli_dedup_json(const cli_dedup_job *j);
/* The same of --parts. */
void cli_dedup_parts_words(const cli_dedup_job *j);
json_t *cli_dedup_parts_json(const cli_dedup_job *j);
/* dedup_output.c: writes everything that was asked for. -1 or an exit code. */
int cli_dedup_write(cli_dedup_job *j);

#endif

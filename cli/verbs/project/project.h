/* cli/verbs/project/project.h: points streaming through an operator within a memory limit.
 *
 * Three ways, which give the same bits: chunks of whole points; chunks of sparse points; and,
 * for points stored coordinate by coordinate or too wide for the limit, pieces of columns. */
#ifndef GNOMON_CLI_PROJECT_H
#define GNOMON_CLI_PROJECT_H

#include "cli.h"

/* What the points are examined for, and what a sample showed. */
typedef struct cli_scan {
    double density; /* of a very sparse operator; 0: another */
    double
        carriers; /* --assume incoherent: how many coordinates hold a point's weight; 0: not said */
    int told;
    gnomon_coherence seen;
} cli_scan;

typedef struct cli_job {
    cli_app *app;
    const char *path; /* of the points, as named */
    gnomon_reader *reader;
    gnomon_data_info info;
    gnomon_operator *op;
    gnomon_writer *writer;
    gnomon_sketch_options options;
    int64_t k;
    gnomon_dtype element;  /* of the chunks: as stored, or F32 or F64 for sparse points */
    gnomon_dtype computed; /* of the sketch in memory: F32 or F64 */
    gnomon_dtype stored;   /* of the sketch in the file */
    int by_columns;
    int64_t chunk_points, chunk_cols, chunk_nonzeros;
    /* what came of it */
    int64_t points;
    double read_seconds, sketch_seconds, write_seconds;
    cli_scan scan;
    /* a piece of a job on several ranks */
    void *chunk, *sketch; /* buffers of the chunk and its sketch */
    double mark;
    int code; /* what a piece failed by; -1 */
} cli_job;

/* Says how much of --memory the library's own work may take; before cli_start. */
void cli_job_share(cli_app *app);
/* Settles the element types; wanted 0: by the input's. Needs info and op. */
void cli_job_types(cli_job *job, gnomon_dtype wanted);
/* Chooses the way and the chunks so that everything fits in app->memory. -1 or an exit code. */
int cli_job_plan(cli_job *job);
/* Reads, sketches and writes all points. -1 or an exit code. */
int cli_job_run(cli_job *job);

/* coherence.c: examine the first of x's points, which are those from 'row' on. -1 or an exit code.
 */
int cli_scan_dense(cli_job *job, const gnomon_matrix *x, int64_t row);
int cli_scan_csr(cli_job *job, const gnomon_csr *x, int64_t row);
/* What the sample showed; NULL without one. */
json_t *cli_scan_json(const cli_scan *l);

#endif

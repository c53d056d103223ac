/* dedup/runs.h: sorting records in memory that does not hold them all: sorted runs in a temporary
 * file, merged. */
#ifndef GNOMON_DEDUP_RUNS_H
#define GNOMON_DEDUP_RUNS_H

#include "dedup/store.h"

/* ---- merging ---- */

/* A run and what of it has been read. */
typedef struct gnomon_run {
    int64_t next, end; /* bytes of the file that are still to be read */
    const uint64_t *at, *limit;
} gnomon_run;

/* Runs of records of one or two numbers, ascending by the first; equal ones come in the order of
 * the runs. */
typedef struct gnomon_merge {
    const gnomon_store *file;
    int64_t words; /* of a record */
    gnomon_run *runs;
    struct gnomon_merge_head {
        uint64_t key;
        int64_t run;
    } * heap;
    int64_t left; /* runs in the heap */
    uint64_t *buffers;
    int64_t each; /* numbers of a buffer */
    bool begun;
} gnomon_merge;

/* Run r is bytes [begins[r], ends[r]) of the sealed file, which outlives the merge. 'bytes' of
 * memory are divided among the runs. */
gnomon_status gnomon_merge_open(gnomon_merge *merge, const gnomon_store *file, int64_t words,
                                const int64_t *begins, const int64_t *ends, int64_t count,
                                int64_t bytes);
/* The next record, valid until the next call; NULL at the end. */
gnomon_status gnomon_merge_next(gnomon_merge *merge, const uint64_t **record);
void gnomon_merge_close(gnomon_merge *merge);

/* ---- sorting ---- */

typedef struct gnomon_record {
    uint64_t key, value;
} gnomon_record;

/* Records by key; equal ones in the order in which they were added. */
typedef struct gnomon_sorter {
    gnomon_store file;
    gnomon_record *records, *scratch;
    int64_t room, most, held; /* records: of the arrays, at most, and in them */
    int64_t *ends;            /* of runs in the file */
    int64_t runs, run_room, count;
    int64_t at; /* of records in memory, the next one */
    gnomon_merge merge;
} gnomon_sorter;

/* In 'bytes' of memory, and a temporary file in folder. */
void gnomon_sorter_start(gnomon_sorter *sorter, gnomon_context *ctx, const char *folder,
                         int64_t bytes);
/* So many records will be added, about: room is made for them at once, as far as memory goes. */
gnomon_status gnomon_sorter_expect(gnomon_sorter *sorter, int64_t count);
/* Adds so many records, which the caller writes to *records before any other call; NULL: there is
 * no room for them in memory, or there are none, and nothing is added. */
gnomon_status gnomon_sorter_claim(gnomon_sorter *sorter, int64_t count, gnomon_record **records);
gnomon_status gnomon_sorter_add(gnomon_sorter *sorter, uint64_t key, uint64_t value);
/* The file has a run, which ends there, behind the others. */
gnomon_status gnomon_sorter_note_run(gnomon_sorter *sorter, int64_t end);
/* What is in memory becomes a run. */
gnomon_status gnomon_sorter_flush(gnomon_sorter *sorter);
/* All were added. */
gnomon_status gnomon_sorter_finish(gnomon_sorter *sorter);
/* The next record, valid until the next call; NULL at the end. */
gnomon_status gnomon_sorter_next(gnomon_sorter *sorter, const gnomon_record **record);
void gnomon_sorter_end(gnomon_sorter *sorter);

#endif

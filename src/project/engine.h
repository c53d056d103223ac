/* project/engine.h: applying a simple operator to folded points, within a given memory.
 *
 * Sketch: sums of A's rows [row, row + rows) over its columns [col, col + cols), of every virtual
 * point of 'in', go to 'out' (coordinates: A's rows). Adjoint: the other way round. */
#ifndef GNOMON_PROJECT_ENGINE_H
#define GNOMON_PROJECT_ENGINE_H

#include "project/fold.h"
#include "project/panels.h"

#include <stdatomic.h>

typedef struct gnomon_plan {
    int64_t tile_bytes, acc_bytes; /* a tile's coordinates of one chunk; its sums of all rows */
    int64_t scratch;               /* a slot's, of the kernels */
    int64_t window;                /* bytes of panels */
    bool whole;                    /* one window holds the operator */
    bool smallest;                 /* panels of the fewest rows */
    bool direct;                   /* sums live in the slot, and leave it at once */
    bool shared;                   /* tiles are packed once for tasks that cut the rows */
    bool own_rows;                 /* one tile: each task makes and applies rows of its own */
    int64_t own_chunks;            /* one tile: chunks a round, a task each; 0: not so */
    int64_t cuts, panel_bytes;     /* own_rows: tasks; both: bytes of a slot's panel */
    bool split;                    /* adjoint: a chunk takes several windows */
    int64_t slots;                 /* tasks at once */
    int64_t group;                 /* tiles a task */
    int64_t shared_chunks;         /* chunks packed at a time */
    int64_t batch;                 /* tiles whose sums are held at once */
    int64_t bytes;                 /* what all that takes */
} gnomon_plan;

typedef struct gnomon_engine {
    gnomon_context *ctx;
    const gnomon_kernels *kernels;
    const gnomon_simple *a;
    bool f64;                     /* fp64 sums */
    int64_t row, rows, col, cols; /* of A; not empty */
    gnomon_fold in, out;
    gnomon_finish finish;
    int64_t memory; /* bytes the run may take */
    /* Sketch only: sums that live on, T[rows][GNOMON_LANES] a tile, 'rows' as gnomon_engine_align
     * has it; the run adds to them and writes nothing to out. NULL: its own. */
    void *sums;
    /* Nothing is written until all of the input has been seen to be finite, if memory allows to
     * hold the sums so long (gnomon_engine_keeps). */
    bool keep;
    gnomon_panels *whole; /* NULL, or the whole operator's panels that outlive the run */
    const char *phase;    /* of progress, which goes from 'from' to 'to' of 'of' in this run */
    int64_t from, to, of;
    atomic_bool bad; /* an input was NaN or infinite; with keep, nothing has been written */
} gnomon_engine;

/* Moves row down and rows up to where the kind lets panels begin. */
void gnomon_engine_align(const gnomon_kernels *kernels, const gnomon_simple *a, int64_t *row,
                         int64_t *rows);

/* How a run would go. Errors: MEMORY (tells how much is needed). */
gnomon_status gnomon_engine_plan(const gnomon_engine *e, bool adjoint, gnomon_plan *plan);

/* With keep set and bad found true the sketch writes nothing and returns OK: the caller
 * finds the element. Errors: MEMORY, CANCELLED. */
gnomon_status gnomon_engine_sketch(gnomon_engine *e);
gnomon_status gnomon_engine_adjoint(gnomon_engine *e);

/* Reports that so much of the run's own total is done. */
gnomon_status gnomon_engine_report(const gnomon_engine *e, int64_t done, int64_t total);

/* Writes sums that lived on, of the tiles that 'out' reaches. */
void gnomon_engine_store(gnomon_engine *e);

#endif

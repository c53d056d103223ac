/* svd/row_pass.h: passes over rows, by one process or by several ranks.
 *
 * Rows are cut into segments of whole pieces, by the shape alone. What a pass sums over rows is
 * summed for each segment apart, and then over the segments in ascending order: so ranks, to which
 * segments are dealt out in turn, change no bit. Sparse rows have parts in the place of segments
 * (svd/row_source.h): the number of nonzeros tells where their pieces end.
 *
 * Rank 0 does all other work. Before a pass it tells the other ranks which it is, a step, and what
 * they need for it; they compute their segments, and rank 0 takes them. */
#ifndef GNOMON_SVD_ROW_PASS_H
#define GNOMON_SVD_ROW_PASS_H

#include "comm/comm.h"
#include "svd/row_source.h"

/* At most as many segments. */
enum { GNOMON_SEGMENTS = 32 };

typedef struct gnomon_row_ranks {
    gnomon_comm comm; /* of one rank: nothing of this is used */
    bool over;        /* all know how it ended, or can't speak with each other any more */
} gnomon_row_ranks;

typedef enum gnomon_step_kind {
    GNOMON_STEP_END = 0,
    GNOMON_STEP_SCAN = 1,
    GNOMON_STEP_SKETCH = 2,
    GNOMON_STEP_APPLY = 3,
    GNOMON_STEP_APPLY_F64 = 4,
    GNOMON_STEP_ADJOINT = 5,
    GNOMON_STEP_ADJOINT_F64 = 6,
    GNOMON_STEP_RESIDUAL = 7,
    /* of least squares */
    GNOMON_STEP_SWEEP = 8,
    GNOMON_STEP_SKETCH_COLUMNS = 9,
    GNOMON_STEP_COPY = 10,
    /* of sparse rows, and of means */
    GNOMON_STEP_MISFIT = 11,
    GNOMON_STEP_NORMAL = 12,
    GNOMON_STEP_MEANS = 13,
    GNOMON_STEP_SPREAD = 14,
    GNOMON_STEP_SQUARES = 15,
    GNOMON_STEP_CENTERED = 16,
    /* of tensors */
    GNOMON_STEP_TENSOR_PROJECT = 17,
    GNOMON_STEP_TENSOR_SHRINK = 18,
    GNOMON_STEP_TENSOR_REST = 19,
    GNOMON_STEP_TENSOR_CROSS = 20,
    GNOMON_STEP_TENSOR_SHRUNK_CROSS = 21,
    GNOMON_STEP_TENSOR_RESIDUAL = 22,
    GNOMON_STEP_TENSOR_GRAM = 23,
    GNOMON_STEP_TENSOR_TRIANGLE = 24
} gnomon_step_kind;

/* What rank 0 tells the others; docs/reference/formats.md has what the numbers are. */
typedef struct gnomon_row_step {
    int64_t kind, exponent; /* that of the source */
    int64_t numbers[6];
} gnomon_row_step;

/* Rows of a segment, by the shape alone. Whole pieces, at most GNOMON_SEGMENTS of such. */
int64_t gnomon_row_segment(int64_t rows, int64_t piece_rows);
/* The rows of a rank's segment number 'stretch'; none behind the last. Errors: ARGUMENT. */
gnomon_status gnomon_row_stretch(gnomon_context *ctx, const struct gnomon_comm *given, int64_t rows,
                                 int64_t piece_rows, int64_t stretch, int64_t *first,
                                 int64_t *count);

/* Takes a caller's ranks; of one rank where given is NULL. Errors: ARGUMENT. */
gnomon_status gnomon_row_ranks_open(gnomon_context *ctx, const struct gnomon_comm *given,
                                    gnomon_row_ranks *ranks);
/* Before the work, on all ranks: how each fares becomes the status of all, and source->rows becomes
 * that of the whole matrix. Sets source->ranks. */
gnomon_status gnomon_row_ranks_begin(gnomon_row_source *source, gnomon_row_ranks *ranks,
                                     gnomon_status status);
/* After the work, on rank 0: its status becomes that of all. */
gnomon_status gnomon_row_ranks_end(gnomon_row_source *source, gnomon_status status);
/* Behind gnomon_row_ranks_begin: the other ranks do what rank 0 tells, to the end, which needs
 * gnomon_blas_prepare; rank 0 goes on at once. */
typedef gnomon_status (*gnomon_row_step_fn)(void *user, const gnomon_row_step *step);
gnomon_status gnomon_row_ranks_serve(gnomon_row_source *source, gnomon_row_step_fn serve,
                                     void *user);

/* What a factorisation asks for; user is the source. */
gnomon_status gnomon_row_source_serve(void *user, const gnomon_row_step *step);

/* Whether there are several ranks; whether this is one that rank 0 tells what to do. */
static inline bool gnomon_row_divided(const gnomon_row_source *source)
{
    return source->ranks != NULL;
}
static inline bool gnomon_row_serves(const gnomon_row_source *source)
{
    return source->ranks != NULL && source->ranks->comm.rank > 0;
}

/* The parts of a step, in this order. Each does nothing where there is one rank. Rank 0 tells which
 * it is; all say whether they have room for what comes; data of rank 0 becomes that of all; and the
 * other ranks get their own rows of a tall matrix (on those ranks t has just these). */
gnomon_status gnomon_row_step_tell(gnomon_row_source *source, gnomon_step_kind kind,
                                   const int64_t numbers[6]);
gnomon_status gnomon_row_step_ready(gnomon_row_source *source, gnomon_status status);
gnomon_status gnomon_row_step_share(gnomon_row_source *source, void *data, int64_t bytes);
gnomon_status gnomon_row_step_rows(gnomon_row_source *source, const gnomon_tall *t);
/* The operator of a step, which the other ranks draw; they destroy it. */
gnomon_status gnomon_row_step_operator(gnomon_row_source *source, gnomon_operator **op);

/* How a pass over dense rows makes and takes the result of a segment. */
typedef struct gnomon_row_pass {
    void *user;
    /* Adds a piece; first: of its segment, whose result has anything. 'row': the segment's first */
    gnomon_status (*add)(void *user, const gnomon_piece *piece, int64_t row, bool first,
                         void *result);
    /* Unless NULL: completes a segment's result. */
    void (*finish)(void *user, void *result);
    /* Not on the ranks that serve, and unless NULL: where the result of a segment goes straight to;
     * it gives NULL for a buffer, which take gets then. */
    void *(*place)(void *user, int64_t row);
    /* Takes the result of a segment, in ascending order; own: computed here. */
    gnomon_status (*take)(void *user, int64_t row, int64_t rows, const void *result, bool own);
    int64_t bytes, row_bytes; /* of the result, and of each row of the segment beside it */
    bool rows_in_place;       /* but not where the ranks don't serve: add puts rows elsewhere */
    bool unread;              /* add reads the piece's rows, which has their numbers alone */
} gnomon_row_pass;

/* status: how this rank fares so far; the first that is not OK is that of all. */
gnomon_status gnomon_row_pass_run(gnomon_row_source *source, const gnomon_row_pass *pass,
                                  gnomon_status status);

/* A pass over sparse rows: what it sums over the rows of each part. */
typedef struct gnomon_part_pass {
    void *user;
    /* Goes through the rows that are here, unless status is not OK, which it returns then. */
    gnomon_status (*run)(void *user, gnomon_status status);
    /* The result of source->part[part] after that. */
    const void *(*result)(void *user, int part);
    /* Takes the result of a part of all, in ascending order; own: it is of a part that is here. */
    gnomon_status (*take)(void *user, int part, const void *result, bool own);
    int64_t bytes; /* of a result */
} gnomon_part_pass;

/* status: as for gnomon_row_pass_run. 'run' fails on this rank only: that becomes the status of
 * all. */
gnomon_status gnomon_part_pass_run(gnomon_row_source *source, const gnomon_part_pass *pass,
                                   gnomon_status status);
/* A pass that makes rows of 'out', of a matrix of all rows or, on the ranks that serve, of their
 * own one behind the other: 'rows' makes those that are here, and those of the other ranks come to
 * their places on rank 0. status: as above. */
gnomon_status gnomon_part_rows_run(gnomon_row_source *source, gnomon_status (*rows)(void *user),
                                   void *user, const gnomon_tall *out, gnomon_status status);
/* Where the sparse row that is this rank's number 'own' lies in a tall matrix: serving ranks have
 * their own rows of it only. */
static inline int64_t gnomon_row_in_tall(const gnomon_row_source *source, int64_t own)
{
    return source->ranks == NULL || gnomon_row_serves(source) ? own : gnomon_place_of(source, own);
}

/* to += from, of the type that f64 tells. */
void gnomon_row_pass_sum(gnomon_context *ctx, bool f64, int64_t count, const void *from, void *to);

#endif

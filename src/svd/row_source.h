/* svd/row_source.h: the matrix to be factored, piece of rows by piece of rows, in the type that the
 * work is done in, and scaled by a power of two so that no product overflows.
 *
 * A piece has a number of rows that depends on the columns alone, so that where the rows come from
 * does not show in the result. */
#ifndef GNOMON_SVD_ROW_SOURCE_H
#define GNOMON_SVD_ROW_SOURCE_H

#include <gnomon/project.h>
#include <gnomon/svd.h>

#include "kernels.h"
#include "linalg/tall.h"

typedef struct gnomon_piece {
    int64_t row, rows; /* rows 0: there are no more. Of sparse rows row is own */
    int64_t own;       /* the first one's number among those of this rank; alone: row */
    bool sparse;
    gnomon_matrix dense; /* of the work's type; one of the strides is 1, the other fits BLAS */
    gnomon_csr csr;      /* of the work's type; less means F32 or F64, whatever the work's */
} gnomon_piece;

/* Figures of some numbers: lane l has those numbered l, l + GNOMON_FIGURES, ... */
typedef struct gnomon_figures {
    double squares[GNOMON_FIGURES], most;
    int64_t count;
} gnomon_figures;

/* Sparse rows are in parts, which have chunks of so many rows by turns: chunk c is of part c %
 * GNOMON_PARTS. What is summed over rows is summed for each part apart, and then over the parts in
 * order, whether the parts are in one process or dealt out to ranks. */
enum { GNOMON_PARTS = 4, GNOMON_CHUNK = 256 };
typedef struct gnomon_part_figures {
    gnomon_figures lanes;
    int64_t longest; /* entries of a row */
} gnomon_part_figures;

/* What centring needs. */
typedef struct gnomon_centering {
    double *mean;   /* cols, of the unscaled matrix; NULL while it is not known */
    double *scale;  /* standardized: cols, the standard deviations; 0: none, all its numbers are
                       equal, and what is left of the column is exactly 0 */
    double *offset; /* of sparse rows: what every row is less, unscaled: the mean, over 'scale' */
    double *rows;   /* 'capacity' rows as they are stored, in fp64 */
    double *sums;   /* of the columns, each the sum of two numbers: 2 cols of them */
    double *parts;  /* the same of some rows each */
    int64_t capacity, group; /* of it; as many rows are summed at a time */
    bool halved;             /* differences to the mean are halved, so that none overflows */
    int shift;               /* once: the sums are of the numbers times 2^-shift */
    bool once;               /* rows are read once: 'mean' is that of the first ones */
    double squares;          /* once: |A|_F^2 of the rows so far less their own mean, scaled */
    double *so_far;          /* once: their mean */
    /* Of sparse rows, and of those that are read once: products with A and with A^T differ from
     * exact ones by at most so much times the other factor's norm, beside the rounding that other
     * data has. Of the scaled matrix. */
    double rounding, rounding_adjoint;
    double magnitude; /* of sparse rows: |A|_F + |1 mean^T|_F, scaled; else 0 */
} gnomon_centering;

struct gnomon_row_ranks; /* svd/row_pass.h */

typedef struct gnomon_row_source {
    gnomon_context *ctx;
    struct gnomon_row_ranks *ranks; /* that the rows are divided among; NULL: all are here */
    int64_t segment_rows;           /* svd/row_pass.h */
    int64_t own_rows;               /* of this rank */
    int parts, part[GNOMON_PARTS];  /* of sparse rows: those that are here, ascending */
    bool f64;
    int64_t rows, cols; /* rows -1 until a source that did not know has come to its end */
    int64_t row;        /* where it stands */
    int64_t own;        /* how many rows of this rank are behind it; alone: row */
    int64_t piece_rows;
    int exponent;   /* pieces hold the matrix times 2^-exponent */
    int64_t passes; /* how often the rows were gone through */
    double norm;    /* Frobenius, of the scaled matrix; set by gnomon_row_source_scan */
    double squares; /* norm squared, while it is summed */
    double largest; /* the largest magnitude, unscaled */
    /* Unless NULL: fails with NONFINITE by names of its own for a row and a column. */
    gnomon_status (*refuse)(void *user, int64_t row, int64_t col);
    void *refuse_user;
    /* one of these */
    const gnomon_matrix *matrix;
    const gnomon_csr *csr;
    const gnomon_svd_rows *stream;
    const gnomon_svd_sparse_rows *sparse_stream;
    /* Products with many columns may be coarse (gemm/coarse.h): the processor's matrix unit then
     * does them, where there is one. */
    bool coarse;
    bool direct;            /* the caller's memory is handed out as it is */
    void *buffer;           /* of one piece, or the values of sparse rows */
    int64_t buffer_numbers; /* of those, that there is room for */

    /* Of sparse rows, in memory or from a stream. Where their pieces end shows in no result: what
     * is summed over a part's rows goes on from piece to piece. */
    bool sparse;
    gnomon_dtype stored;       /* the type of their values */
    int64_t nonzeros, longest; /* of all rows, of the longest one; known after the scan */
    gnomon_part_figures figures[GNOMON_PARTS]; /* of the rows that were scanned so far */

    /* Of the matrix less its columns' means (svd/center.h). Pieces of dense rows hold that; of
     * sparse rows the products do. */
    bool centered;
    bool standardized; /* centered, and its columns divided by their standard deviations */
    gnomon_centering center;
} gnomon_row_source;

/* Opens; matrix, csr and stream: one is not NULL. Checks the argument. */
gnomon_status gnomon_row_source_open(gnomon_context *ctx, const gnomon_matrix *matrix,
                                     const gnomon_csr *csr, const gnomon_svd_rows *stream, bool f64,
                                     gnomon_row_source *source);
/* The same of sparse rows that come piece by piece. */
gnomon_status gnomon_row_source_open_sparse(gnomon_context *ctx, const gnomon_svd_sparse_rows *rows,
                                            bool f64, gnomon_row_source *source);
/* The rows of a piece of dense ones. */
int64_t gnomon_row_source_piece_rows(int64_t cols);
/* Opens the rows of one of several ranks, of which there may be none; gnomon_row_ranks_begin is
 * next. */
gnomon_status gnomon_row_source_open_part(gnomon_context *ctx, const gnomon_matrix *matrix,
                                          const gnomon_csr *csr, const gnomon_svd_rows *stream,
                                          bool f64, gnomon_row_source *source);
void gnomon_row_source_close(gnomon_row_source *source);
/* Sparse rows that a caller hands in: gnomon_check_csr, and every index. */
gnomon_status gnomon_row_source_check_csr(gnomon_context *ctx, const gnomon_csr *a,
                                          const char *name);

/* One pass that refuses NaN and infinity and finds norm, largest and the scaling. */
gnomon_status gnomon_row_source_scan(gnomon_row_source *source);
/* The same for the next piece of a stream that is read once; the first one determines the scaling.
 */
gnomon_status gnomon_row_source_note(gnomon_row_source *source, const gnomon_piece *piece);

/* Scales the rows of a stream that are in the buffer. */
void gnomon_row_source_rescale(gnomon_row_source *source, int64_t rows);

/* Fails with NONFINITE. */
gnomon_status gnomon_row_source_refuse(gnomon_row_source *source, int64_t row, int64_t col);
/* The power of two that the work takes the matrix times for this largest magnitude; 0: none. */
int gnomon_row_source_exponent(bool f64, double largest);

/* The next rows of a stream, as many as there are up to 'rows', row-major at 'data'. */
gnomon_status gnomon_row_source_read(gnomon_row_source *source, int64_t row, int64_t rows,
                                     gnomon_dtype dtype, void *data, int64_t *got);

gnomon_status gnomon_row_source_rewind(gnomon_row_source *source);
gnomon_status gnomon_row_source_next(gnomon_row_source *source, gnomon_piece *piece);
/* The parts of sparse rows that one of so many ranks has. */
static inline void gnomon_parts_have(gnomon_row_source *source, int rank, int size)
{
    source->parts = 0;
    for (int part = rank; part < GNOMON_PARTS; part += size)
        source->part[source->parts++] = part;
}
/* How many parts of all sparse rows have any. */
static inline int gnomon_parts_in_use(const gnomon_row_source *source)
{
    const int64_t chunks = (source->rows + GNOMON_CHUNK - 1) / GNOMON_CHUNK;
    return chunks < GNOMON_PARTS ? (int)chunks : GNOMON_PARTS;
}
/* How many parts a pass has sums of in this process. */
static inline int gnomon_parts_here(const gnomon_row_source *source)
{
    return source->ranks != NULL ? source->parts : gnomon_parts_in_use(source);
}
/* Which of source->part the sparse row is in that is this rank's number 'own'; its number among all
 * rows. */
static inline int gnomon_part_of(const gnomon_row_source *source, int64_t own)
{
    return (int)(own / GNOMON_CHUNK % source->parts);
}
static inline int64_t gnomon_place_of(const gnomon_row_source *source, int64_t own)
{
    const int64_t chunk = own / GNOMON_CHUNK;
    const int64_t place =
        chunk / source->parts * GNOMON_PARTS + source->part[chunk % source->parts];
    return place * GNOMON_CHUNK + own % GNOMON_CHUNK;
}
/* The next sparse rows as they are stored: any type, not scaled. */
gnomon_status gnomon_row_source_next_stored(gnomon_row_source *source, gnomon_piece *piece);
/* Whether rows come from a caller's functions. */
static inline bool gnomon_row_source_streams(const gnomon_row_source *source)
{
    return source->stream != NULL || source->sparse_stream != NULL;
}

/* out (piece rows x op rows) = the piece times rows [row, row + out->cols) of the operator,
 * transposed. */
gnomon_status gnomon_piece_sketch(gnomon_row_source *source, const gnomon_piece *piece,
                                  const gnomon_operator *op, int64_t row, const gnomon_tall *out);
/* out (piece rows x w.cols) = the piece times w (cols x w.cols). */
gnomon_status gnomon_piece_apply(gnomon_row_source *source, const gnomon_piece *piece,
                                 const gnomon_tall *w, const gnomon_tall *out);
/* z (cols x q.cols) += the piece transposed times q (piece rows x q.cols). */
gnomon_status gnomon_piece_adjoint(gnomon_row_source *source, const gnomon_piece *piece,
                                   const gnomon_tall *q, const gnomon_tall *z);

/* The same over all rows: Y = A S^T, Y = A W, Z = A^T Q. */
gnomon_status gnomon_row_source_sketch(gnomon_row_source *source, const gnomon_operator *op,
                                       int64_t row, const gnomon_tall *y);
gnomon_status gnomon_row_source_apply(gnomon_row_source *source, const gnomon_tall *w,
                                      const gnomon_tall *y);
gnomon_status gnomon_row_source_adjoint(gnomon_row_source *source, const gnomon_tall *q,
                                        const gnomon_tall *z);
/* Z += A^T Q. */
gnomon_status gnomon_row_source_add_adjoint(gnomon_row_source *source, const gnomon_tall *q,
                                            const gnomon_tall *z);
/* Y = A W and Z = A^T Q with sums of single-precision products in fp64 every few terms, for the
 * last product: what is lost there no later step mends. */
gnomon_status gnomon_row_source_apply_f64(gnomon_row_source *source, const gnomon_tall *w,
                                          const gnomon_tall *y);
gnomon_status gnomon_row_source_adjoint_f64(gnomon_row_source *source, const gnomon_tall *q,
                                            const gnomon_tall *z);

/* gnomon_panels_misfit; out: svd/panels.h. */
struct gnomon_misfit;
gnomon_status gnomon_row_source_misfit(gnomon_row_source *source, const gnomon_tall *q,
                                       const gnomon_tall *u, int64_t first, int64_t end,
                                       const struct gnomon_misfit *out);

/* *residual = |A - B C^T|_F of the scaled matrix, B: rows x s, C: cols x s. Dense sources only. */
gnomon_status gnomon_row_source_residual(gnomon_row_source *source, const gnomon_tall *b,
                                         const gnomon_tall *c, double *residual);

#endif

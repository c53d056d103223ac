/* search/inverted.h: an inverted index of sparse rows: for each column the rows that have it, and
 * the columns that most rows have as a dense block beside the lists. */
#ifndef GNOMON_SEARCH_INVERTED_H
#define GNOMON_SEARCH_INVERTED_H

#include "search/numbering.h"

/* The rows of a piece that scores are kept for at a time; 128 KiB of them. */
enum { GNOMON_INVERTED_PIECE = 32768 };

/* A column that more than one row of so many has is heavy: of the most frequent ones so many at
 * most are in the block instead of the lists. */
enum { GNOMON_HEAVY_SHARE = 128, GNOMON_HEAVY_MOST = 32 };

typedef struct gnomon_inverted {
    gnomon_metric metric;
    gnomon_sets rows; /* owned */
    gnomon_numbering columns;
    int exponent; /* coordinates here are those of the rows times 2^-exponent (COSINE: times the
                     row's factor), so that no norm is above 1 */
    int64_t heavy_from; /* columns of this number and above are in the block */
    int64_t width;      /* of the block: a multiple of GNOMON_LANES, 0: there is none */
    float *block;       /* rows x width */
    int64_t *lists;     /* heavy_from + 1 */
    uint32_t *ids;      /* ascending in a list */
    float *values;
    float *norm;  /* of rows, not less than it is; L1: the sum of magnitudes. Zeros for twice
                     GNOMON_LANES more, as in the others */
    float *heavy; /* of their part in the block; NULL: width is 0 */
    float *bias;  /* what a score has beside the products: L2 -|b|^2 / 2, L1 -|b|; else NULL */
} gnomon_inverted;

/* Of rows that are sparse points under L2, COSINE, IP or L1, below 2^32 of them; takes them over,
 * whether it fails or not. cols: how many columns there are. Errors: MEMORY. */
gnomon_status gnomon_inverted_open(gnomon_context *ctx, gnomon_metric metric, gnomon_sets *rows,
                                   int64_t cols, gnomon_inverted *index);
void gnomon_inverted_close(gnomon_context *ctx, gnomon_inverted *index);

/* How many rows of a view, from 'from' on, an index takes with so many bytes, the rows' copies
 * among them; one at least, if there is one. */
int64_t gnomon_inverted_rows(const gnomon_csr *rows, int64_t from, int64_t bytes);

/* |x|_2 of a row's coordinates times its factor, or |x|_1; without overflow. */
double gnomon_sparse_norm(const gnomon_sparse_row *row, bool l1);

#endif

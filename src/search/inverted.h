/* search/inverted.h: an inverted index of sparse rows: for each column the rows that have it, and
 * the columns that most rows have as a dense block beside the lists. It is made for one call, kept
 * by a gnomon_sparse_index, or lies in a mapped file, whose content is not trusted. */
#ifndef GNOMON_SEARCH_INVERTED_H
#define GNOMON_SEARCH_INVERTED_H

#include "search/numbering.h"

#include <stdatomic.h>

/* The rows of a piece that scores are kept for at a time; 128 KiB of them. */
enum { GNOMON_INVERTED_PIECE = 32768 };

/* A column that more than one row of so many has is heavy: of the most frequent ones so many at
 * most are in the block instead of the lists. */
enum { GNOMON_HEAVY_SHARE = 128, GNOMON_HEAVY_MOST = 32 };

typedef struct gnomon_inverted {
    gnomon_metric metric;
    gnomon_sets rows;
    bool lent;       /* the rows' arrays are another's */
    int64_t cols;    /* of the rows' view */
    int64_t longest; /* columns of a row, at most */
    gnomon_numbering columns;
    int exponent; /* coordinates here are those of the rows times 2^-exponent (COSINE: times the
                     row's factor), so that no norm is above 1 */
    int64_t heavy_from; /* columns of this number and above are in the block */
    int64_t width;      /* of the block: a multiple of GNOMON_LANES, 0: there is none */
    float *block;       /* rows x width */
    int8_t *codes;  /* the block's columns again, in 8 bits, each of gnomon_inverted_padded(rows):
                       about a coordinate divided by the column's step */
    float *steps;   /* of each column of the block; NULL as codes: width is 0 */
    int64_t *lists; /* heavy_from + 1; the last is the number of entries */
    uint32_t *ids;  /* ascending in a list */
    float *values;
    float *norm;  /* of rows, not less than it is; L1: the sum of magnitudes. Zeros for twice
                     GNOMON_LANES more, as in the others */
    float *heavy; /* of their part in the block; NULL: width is 0 */
    float *bias;  /* what a score has beside the products: L2 -|b|^2 / 2, L1 -|b|; else NULL */
    /* Of an index in a file, NULL of one that was made here: a bit a list, set when its rows have
     * been checked. Arrays then lie in the file, whose settings and lists' places were checked. */
    atomic_uchar *sound;
} gnomon_inverted;

/* The length of norm, heavy and bias: kernels read whole vectors from any row on. */
int64_t gnomon_inverted_padded(int64_t rows);

/* Of rows that are sparse points under L2, COSINE, IP or L1, below 2^32 of them; takes them over,
 * whether it fails or not. cols: how many columns there are. Errors: MEMORY. */
gnomon_status gnomon_inverted_open(gnomon_context *ctx, gnomon_metric metric, gnomon_sets *rows,
                                   int64_t cols, gnomon_inverted *index);
/* Frees the arrays, but for those of a file. */
void gnomon_inverted_close(gnomon_context *ctx, gnomon_inverted *index);

/* How many rows of a view, from 'from' on, an index takes with so many bytes, the rows' copies
 * among them; one at least, if there is one. */
int64_t gnomon_inverted_rows(const gnomon_csr *rows, int64_t from, int64_t bytes);

/* The parts of gnomon_inverted_open, for a writer that has no room for lists and block at once.
 * After begin there are norms, bias and columns; lists[c + 1] is where list c will begin and
 * lists[heavy_from + 1] where the last one ends. */
gnomon_status gnomon_inverted_begin(gnomon_context *ctx, gnomon_metric metric, gnomon_sets *rows,
                                    bool lent, int64_t cols, gnomon_inverted *index);
/* Rows [first, first + count) of the block, and what heavy has of them; to arrays of count. */
void gnomon_inverted_fill_block(const gnomon_inverted *index, int64_t first, int64_t count,
                                float *block, float *heavy);
/* The step of each column of the block is 1 / 127 of its largest magnitude, at least 2^-100. Takes
 * columns [from, to) of so many rows of the block into 'most', width of them, zeros at first. */
void gnomon_inverted_take_most(const gnomon_inverted *index, const float *block, int64_t count,
                               int64_t from, int64_t to, float *most);
/* The steps, used - heavy_from of them, by these. */
void gnomon_inverted_set_steps(const gnomon_inverted *index, const float *most, float *steps);
/* The codes of columns [from, to) of the block for its rows [first, first + count); column 'from'
 * begins at codes. Each is the nearest integer, a half to the even one. */
void gnomon_inverted_fill_codes(const gnomon_inverted *index, const float *steps,
                                const float *block, int64_t first, int64_t count, int64_t from,
                                int64_t to, int8_t *codes);
/* Lists [from, to), whose entries begin at ids and values; in order, each list once. The lists'
 * places are final after the last. */
void gnomon_inverted_fill_lists(gnomon_inverted *index, int64_t from, int64_t to, uint32_t *ids,
                                float *values);

/* How many lists, from one that is not filled yet, have entries of at most so many bytes; one at
 * least. */
int64_t gnomon_inverted_lists_at_once(const gnomon_inverted *index, int64_t from, int64_t bytes);

/* Whether all rows of a list are in order and in the index; whether a row's columns are. An index
 * that was made here has nothing to check. */
bool gnomon_inverted_list_sound(const gnomon_inverted *index, int64_t list);
bool gnomon_inverted_row_sound(const gnomon_inverted *index, int64_t row);

/* |x|_2 of a row's coordinates times its factor, or |x|_1; without overflow. */
double gnomon_sparse_norm(const gnomon_sparse_row *row, bool l1);

#endif

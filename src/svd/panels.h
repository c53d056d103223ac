/* svd/panels.h: products of sparse rows with many columns. Where pieces of rows end, and whether
 * they are in memory, shows in no number. */
#ifndef GNOMON_SVD_PANELS_H
#define GNOMON_SVD_PANELS_H

#include "svd/row_source.h"

/* All of them also do the part of a rank that serves, whose rows are its own, and which gets no
 * result: z and out are NULL there. They agree on memory before the rows are gone through.
 *
 * y = A w, sums in fp64. */
gnomon_status gnomon_panels_apply(gnomon_row_source *source, const gnomon_tall *w,
                                  const gnomon_tall *y);
/* z += A^T q, sums in the work's type; of centred rows in fp64. */
gnomon_status gnomon_panels_adjoint(gnomon_row_source *source, const gnomon_tall *q,
                                    const gnomon_tall *z);
/* z = A^T q, and in the same pass squares[j] = |A^T u_j - s[j] v_j|^2 for u's columns
 * [first, end). closely: as gnomon_panels_misfit_is_close says on rank 0. */
typedef struct gnomon_misfit {
    const gnomon_tall *z, *v;
    const double *s;
    double *squares;
} gnomon_misfit;
bool gnomon_panels_misfit_is_close(const gnomon_row_source *source);
gnomon_status gnomon_panels_misfit(gnomon_row_source *source, const gnomon_tall *q,
                                   const gnomon_tall *u, int64_t first, int64_t end, bool closely,
                                   const gnomon_misfit *out);

/* Of rows that come piece by piece, how many parts' sums are in memory at a time, those of one part
 * taking so many bytes. */
double gnomon_panels_parts(gnomon_context *ctx, double rows, double bytes);

#endif

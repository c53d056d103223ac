/* svd/panels.h: products of sparse rows with many columns. Where pieces of rows end, and whether
 * they are in memory, shows in no number. */
#ifndef GNOMON_SVD_PANELS_H
#define GNOMON_SVD_PANELS_H

#include "svd/row_source.h"

/* y = A w, sums in fp64. */
gnomon_status gnomon_panels_apply(gnomon_row_source *source, const gnomon_tall *w,
                                  const gnomon_tall *y);
/* z += A^T q, sums in the work's type; of centred rows in fp64. */
gnomon_status gnomon_panels_adjoint(gnomon_row_source *source, const gnomon_tall *q,
                                    const gnomon_tall *z);
/* z = A^T q, and in the same pass squares[j] = |A^T u_j - s[j] v_j|^2 for u's columns. */
gnomon_status gnomon_panels_misfit(gnomon_row_source *source, const gnomon_tall *q,
                                   const gnomon_tall *z, const gnomon_tall *u, const double *s,
                                   const gnomon_tall *v, double *squares);

#endif

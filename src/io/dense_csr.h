/* io/dense_csr.h: dense points read as sparse ones. */
#ifndef GNOMON_IO_DENSE_CSR_H
#define GNOMON_IO_DENSE_CSR_H

#include "io/format.h"

/* The next points without their zeros, as gnomon_reader_next_csr gives them, with room for all
 * coordinates of a row before it is read. Errors: those of the format, MEMORY. */
gnomon_status gnomon_dense_csr_next(gnomon_reader *reader, gnomon_dense_csr *held, int64_t max_rows,
                                    int64_t max_nonzeros, gnomon_csr *csr);
void gnomon_dense_csr_free(gnomon_context *ctx, gnomon_dense_csr *held);

#endif

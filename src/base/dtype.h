/* base/dtype.h: what the library knows of element types beyond gnomon/matrix.h. */
#ifndef GNOMON_BASE_DTYPE_H
#define GNOMON_BASE_DTYPE_H

#include <gnomon/matrix.h>

#include <stdbool.h>

/* Whether fp32 does not hold the type's values, so that elements are worked with in fp64: F64 and
 * the 32- and 64-bit integers. */
bool gnomon_dtype_needs_f64(gnomon_dtype dtype);

#endif

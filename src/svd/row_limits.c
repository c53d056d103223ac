/* The entries that the work can take: finite ones, in a range that scaling brings them to. */
#include "base/error.h"
#include "svd/row_source.h"

#include <inttypes.h>
#include <math.h>

gnomon_status gnomon_row_source_refuse(gnomon_row_source *s, int64_t row, int64_t col)
{
    if (s->refuse != NULL) return s->refuse(s->refuse_user, row, col);
    return gnomon_fail(s->ctx, GNOMON_ERROR_NONFINITE,
                       GNOMON_ARG("a") " has NaN or infinity in row " GNOMON_AT_ROW "%" PRId64
                                       ", column " GNOMON_AT_COL "%" PRId64
                                       " (both counted from 0)",
                       row, col);
}

/* The power of two that brings x near 1, short of overflowing itself where x is subnormal. */
static int exponent_of(double x)
{
    int exponent;
    frexp(x, &exponent);
    return exponent < -1020 ? -1020 : exponent;
}

/* Within these no product of the work overflows or loses more than rounding does. */
static bool is_tame(bool f64, double largest)
{
    return f64 ? largest < 0x1p300 && largest > 0x1p-300 : largest < 0x1p60 && largest > 0x1p-60;
}

int gnomon_row_source_exponent(bool f64, double largest)
{
    return largest == 0 || is_tame(f64, largest) ? 0 : exponent_of(largest);
}

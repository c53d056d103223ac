/* base/share.h: work divided into shares as equal as can be. */
#ifndef GNOMON_BASE_SHARE_H
#define GNOMON_BASE_SHARE_H

#include "base/arithmetic.h"

/* Where share 'number' of so many begins; it ends where the next one begins. */
static inline int64_t gnomon_share(int64_t count, int64_t number, int64_t shares)
{
    return count / shares * number + gnomon_min(number, count % shares);
}

#endif

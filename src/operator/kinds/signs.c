/* Sign bits (section 3.3) and rademacher. */
#include "operator/kinds/kinds.h"
#include "operator/philox.h"

uint32_t gnomon_sign_word(const gnomon_simple *a, uint32_t tag, int64_t row, int64_t q)
{
    return gnomon_call(a, tag, (uint32_t)(row >> 2), (uint64_t)q).w[row & 3];
}

static void tile(const gnomon_simple *a, uint32_t group, int64_t col, int64_t cols, gnomon_tile out)
{
    int64_t c = 0;
    while (c < cols) {
        const int64_t j = col + c;
        const gnomon_words call = gnomon_call(a, GNOMON_TAG_SIGN, group, (uint64_t)j >> 5);
        const int64_t first = j & 31;
        const int64_t count = 32 - first < cols - c ? 32 - first : cols - c;
        for (int r = 0; r < 4; r++) {
            const uint32_t bits = call.w[r] >> first;
            for (int64_t u = 0; u < count; u++)
                out[r][c + u] = (bits >> u & 1) != 0 ? -1.0f : 1.0f;
        }
        c += count;
    }
}

const gnomon_kind_row gnomon_kind_row_rademacher = {
    .info = {.kind = GNOMON_RADEMACHER,
             .name = "rademacher",
             .about = "random signs, for any data",
             .flags = GNOMON_KIND_INNER | GNOMON_KIND_ANY_POINTS},
    .column_norm = gnomon_norm_of_rows,
    .unscaled = 1.0,
    .tile = tile,
};

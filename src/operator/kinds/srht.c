/* srht (Ailon and Chazelle 2009; Tropp 2011): sampled rows of a Hadamard matrix after random
 * signs. */
#include "operator/kinds/kinds.h"
#include "operator/philox.h"

static gnomon_status set_up(gnomon_context *ctx, gnomon_simple *a, const gnomon_descriptor *d)
{
    (void)ctx;
    (void)d;
    a->order_log2 = gnomon_log2_at_least(a->cols);
    const gnomon_words first = gnomon_call(a, GNOMON_TAG_SRHT_KEYS, 0, 0);
    const gnomon_words second = gnomon_call(a, GNOMON_TAG_SRHT_KEYS, 0, 1);
    for (int i = 0; i < 4; i++)
        a->srht_key[i] = first.w[i];
    a->srht_key[4] = second.w[0];
    a->srht_key[5] = second.w[1];
    return GNOMON_OK;
}

static void tile(const gnomon_simple *a, uint32_t group, int64_t col, int64_t cols, gnomon_tile out)
{
    uint64_t hadamard_row[4];
    for (unsigned r = 0; r < 4; r++)
        hadamard_row[r] = gnomon_perm(4 * (uint64_t)group + r, a->order_log2, a->srht_key);
    int64_t q = -1;
    uint32_t signs = 0;
    for (int64_t c = 0; c < cols; c++) {
        const uint64_t j = (uint64_t)col + (uint64_t)c;
        if (q != (int64_t)(j >> 5)) {
            q = (int64_t)(j >> 5);
            signs = gnomon_sign_word(a, GNOMON_TAG_SRHT_SIGNS, 0, q);
        }
        const unsigned sign = signs >> (j & 31) & 1;
        for (int r = 0; r < 4; r++) {
            const unsigned parity = (unsigned)__builtin_parityll(hadamard_row[r] & j);
            out[r][c] = (parity ^ sign) != 0 ? -1.0f : 1.0f;
        }
    }
}

const gnomon_kind_row gnomon_kind_row_srht = {
    .info = {.kind = GNOMON_SRHT, .name = "srht", .about = "", .flags = GNOMON_KIND_FAST},
    .set_up = set_up,
    .column_norm = gnomon_norm_of_rows,
    .unscaled = 1.0,
    .tile = tile,
};

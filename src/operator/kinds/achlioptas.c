/* achlioptas (Achlioptas 2003): base-6 digits of a word read as a fraction, eight to a word. */
#include "operator/kinds/kinds.h"
#include "operator/philox.h"

static void tile(const gnomon_simple *a, uint32_t group, int64_t col, int64_t cols, gnomon_tile out)
{
    static const float value[6] = {1.0f, -1.0f, 0.0f, 0.0f, 0.0f, 0.0f};
    int64_t c = 0;
    while (c < cols) {
        const int64_t j = col + c;
        const gnomon_words call = gnomon_call(a, GNOMON_TAG_ACHLIOPTAS, group, (uint64_t)j >> 3);
        const int64_t first = j & 7;
        const int64_t count = 8 - first < cols - c ? 8 - first : cols - c;
        for (int r = 0; r < 4; r++) {
            uint32_t x = call.w[r];
            for (int64_t u = 0; u < first; u++)
                x *= 6;
            for (int64_t u = 0; u < count; u++) {
                const uint64_t digit_and_rest = UINT64_C(6) * x;
                out[r][c + u] = value[digit_and_rest >> 32];
                x = (uint32_t)digit_and_rest;
            }
        }
        c += count;
    }
}

static gnomon_status set_up(gnomon_context *ctx, gnomon_simple *a, const gnomon_descriptor *d)
{
    (void)ctx;
    (void)d;
    a->fill = 1.0 / 3.0;
    return GNOMON_OK;
}

static double column_norm(const gnomon_simple *a, double rows)
{
    (void)a;
    return rows / 3.0;
}

const gnomon_kind_row gnomon_kind_row_achlioptas = {
    .info = {.kind = GNOMON_ACHLIOPTAS,
             .name = "achlioptas",
             .about = "",
             .flags = GNOMON_KIND_INNER | GNOMON_KIND_ANY_POINTS},
    .set_up = set_up,
    .column_norm = column_norm,
    .unscaled = 0x1.bb67ae8584caap+0, /* the root of 3 */
    .tile = tile,
};

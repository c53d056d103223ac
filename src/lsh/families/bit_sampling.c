/* Bits of points, for hamming (Indyk & Motwani 1998). */
#include "base/error.h"
#include "lsh/families/family.h"
#include "operator/philox.h"

#include <inttypes.h>
#include <stdlib.h>

static gnomon_status setup(gnomon_context *ctx, gnomon_hasher *h)
{
    h->bit = calloc((size_t)h->f.count, sizeof *h->bit);
    GNOMON_FAIL_IF(!h->bit, ctx, GNOMON_ERROR_MEMORY, "no memory for %" PRId64 " bits", h->f.count);
    for (int64_t i = 0; i < h->f.count; i++) {
        const gnomon_words w = gnomon_call(&h->key, GNOMON_TAG_LSH_BIT, (uint32_t)(i / 2), 0);
        const int first = (int)(i % 2) * 2;
        const uint64_t word = (uint64_t)w.w[first] << 32 | w.w[first + 1];
        h->bit[i] = (int64_t)((unsigned __int128)word * ((unsigned __int128)h->f.dim * 8) >> 64);
    }
    return GNOMON_OK;
}

static void hash_bits(const gnomon_hash_batch *b, int64_t point, int64_t at)
{
    const gnomon_matrix *m = b->points->dense;
    const uint8_t *row = (const uint8_t *)m->data + (b->first + point) * m->row_stride;
    for (int64_t i = 0; i < b->h->f.count; i++, at++) {
        const int64_t bit = b->h->bit[i];
        const int32_t value = row[bit / 8 * m->col_stride] >> (bit % 8) & 1;
        b->out->values[at] = value;
        if (b->out->others) gnomon_set_other(b, at, 0, !value, 1);
    }
}

static double collision(const gnomon_lsh_functions *f, double distance)
{
    return 1 - distance / (8 * (double)f->dim);
}

const gnomon_family_row gnomon_family_row_bit_sampling = {
    .family = GNOMON_LSH_BIT_SAMPLING,
    .name = "bit-sampling",
    .points = GNOMON_POINTS_BITS,
    .refusal = "dense points",
    .others = 1,
    .setup = setup,
    .hash = hash_bits,
    .collision = collision,
};

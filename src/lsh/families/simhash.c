/* Signs of products with normal directions, for cosine (Charikar 2002). */
#include "lsh/families/family.h"

#include <math.h>

static void hash_signs(const gnomon_hash_batch *b, int64_t point, int64_t at)
{
    const float *x = (const float *)b->products + point * b->h->products;
    for (int64_t i = 0; i < b->h->f.count; i++, at++) {
        b->out->values[at] = x[i] < 0;
        if (b->out->others) gnomon_set_other(b, at, 0, !(x[i] < 0), x[i] * x[i]);
    }
}

static double collision(const gnomon_lsh_functions *f, double distance)
{
    (void)f;
    /* acos(1 - r) by the half angle: exact to the last digits for small r */
    return 1 - 2 * asin(sqrt(distance / 2)) / acos(-1.0);
}

/* A sign of a product that is off by e |x| differs with 0.8 e more a point: the density of a normal
 * at 0. */
static double rounding(const gnomon_lsh_functions *f, double error, double length)
{
    (void)f;
    (void)length;
    return 2 * 0.8 * error;
}

const gnomon_family_row gnomon_family_row_simhash = {
    .family = GNOMON_LSH_SIMHASH,
    .name = "simhash",
    .points = GNOMON_POINTS_DENSE | GNOMON_POINTS_SPARSE,
    .directions = true,
    .others = 1,
    .products = 1,
    .most = 2,
    .hash = hash_signs,
    .collision = collision,
    .rounding = rounding,
};

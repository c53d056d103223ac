/* Families by name, their functions checked and made. */
#include "lsh/families/family.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "operator/philox.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

GNOMON_OPTIONS_INIT(gnomon_lsh_functions, GNOMON_LSH_FUNCTIONS_INIT)

#define ROW(number, name) [GNOMON_LSH_##number] = &gnomon_family_row_##name,
static const gnomon_family_row *const by_number[] = {GNOMON_FAMILIES(ROW)};
#undef ROW

enum { NUMBERS = sizeof by_number / sizeof *by_number };

static const int64_t most_functions = (int64_t)1 << 24;
static const int64_t most_dim = (int64_t)1 << 56;

const gnomon_family_row *gnomon_family_row_of(gnomon_lsh_family family)
{
    return (unsigned)family < NUMBERS ? by_number[family] : NULL;
}

const char *gnomon_lsh_family_name(gnomon_lsh_family family)
{
    const gnomon_family_row *row = gnomon_family_row_of(family);
    return row != NULL ? row->name : "?";
}

gnomon_lsh_family gnomon_lsh_family_from_name(const char *name)
{
    for (int i = 1; name && i < NUMBERS; i++)
        if (by_number[i] != NULL && strcmp(name, by_number[i]->name) == 0)
            return by_number[i]->family;
    return (gnomon_lsh_family)0;
}

static gnomon_status check_family(gnomon_context *ctx, const gnomon_lsh_functions *f)
{
    const gnomon_family_row *row = gnomon_family_row_of(f->family);
    GNOMON_FAIL_IF(row == NULL, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("functions.family") " is %d; it must be one of gnomon_lsh_family",
                   (int)f->family);
    if (row->width)
        GNOMON_FAIL_IF(!(f->width > 0) || !isfinite(f->width), ctx, GNOMON_ERROR_ARGUMENT,
                       GNOMON_ARG("functions.width") " is %g; it must be above 0 and finite",
                       f->width);
    else
        GNOMON_FAIL_IF(f->width != 0, ctx, GNOMON_ERROR_ARGUMENT,
                       GNOMON_ARG("functions.width") " is %g; %s takes none", f->width, row->name);
    if (row->sides)
        GNOMON_FAIL_IF(
            f->sides != 0 && (f->sides < 2 || f->sides > 4096), ctx, GNOMON_ERROR_ARGUMENT,
            GNOMON_ARG("functions.sides") " is %" PRId64 "; it must be 2 to 4096, or 0 for 16",
            f->sides);
    else
        GNOMON_FAIL_IF(f->sides != 0, ctx, GNOMON_ERROR_ARGUMENT,
                       GNOMON_ARG("functions.sides") " is %" PRId64 "; %s takes none", f->sides,
                       row->name);
    return GNOMON_OK;
}

static gnomon_status check_centres(gnomon_context *ctx, const gnomon_lsh_functions *f)
{
    const gnomon_family_row *row = gnomon_family_row_of(f->family);
    if (row->centres == 0) {
        GNOMON_FAIL_IF(f->centre_count != 0 || f->centres != NULL, ctx, GNOMON_ERROR_ARGUMENT,
                       GNOMON_ARG("functions.centres") " are set; %s takes none", row->name);
        return GNOMON_OK;
    }
    int64_t numbers;
    GNOMON_FAIL_IF(f->centre_count < 2 || f->centre_count > GNOMON_LSH_MOST_CENTRES, ctx,
                   GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("functions.centre_count") " is %" PRId64 "; it must be 2 to 65536",
                   f->centre_count);
    GNOMON_FAIL_IF(f->centres == NULL, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("functions.centres") " is NULL; gnomon_lsh_train makes them");
    GNOMON_FAIL_IF(f->count != 1, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("functions.count") " is %" PRId64 "; of %s it must be 1", f->count,
                   row->name);
    GNOMON_FAIL_IF(!gnomon_mul(f->centre_count, f->dim, &numbers), ctx, GNOMON_ERROR_OVERFLOW,
                   "%" PRId64 " centres of %" PRId64 " coordinates are more than can be counted",
                   f->centre_count, f->dim);
    for (int64_t i = 0; i < numbers; i++)
        GNOMON_FAIL_IF(!isfinite(f->centres[i]), ctx, GNOMON_ERROR_NONFINITE,
                       GNOMON_ARG("functions.centres") " has NaN or infinity in row " GNOMON_AT_ROW
                                                       "%" PRId64 ", column " GNOMON_AT_COL
                                                       "%" PRId64,
                       i / f->dim, i % f->dim);
    return GNOMON_OK;
}

static gnomon_status check_functions(gnomon_context *ctx, const gnomon_lsh_functions *f)
{
    GNOMON_TRY(check_family(ctx, f));
    const gnomon_family_row *row = gnomon_family_row_of(f->family);
    GNOMON_FAIL_IF(f->dim < 1, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("functions.dim") " is %" PRId64 "; it must be at least 1", f->dim);
    /* a member of a set is any number: texts hash their n-grams to 62 bits */
    GNOMON_FAIL_IF(f->dim > most_dim && !row->any_dim, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("functions.dim") " is %" PRId64 "; of %s it must be at most 2^56",
                   f->dim, row->name);
    GNOMON_FAIL_IF(f->count < 1 || f->count > most_functions / (f->sides > 0 ? f->sides : 1), ctx,
                   GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("functions.count") " is %" PRId64 "; it must be 1 to 2^24%s",
                   f->count, f->sides > 0 ? " / sides" : "");
    GNOMON_FAIL_IF(f->descriptor && !row->directions, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("functions.descriptor") " is set; %s takes no operator", row->name);
    GNOMON_FAIL_IF(
        f->descriptor && f->descriptor->kind == GNOMON_KRONECKER, ctx, GNOMON_ERROR_ARGUMENT,
        GNOMON_ARG("functions.descriptor.kind") " is kronecker; it must be a simple kind or block");
    return check_centres(ctx, f);
}

static gnomon_status make_operator(gnomon_context *ctx, gnomon_hasher *h)
{
    gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
    if (h->f.descriptor) {
        d = h->descriptor;
    } else {
        d.kind = GNOMON_GAUSSIAN;
        d.seed = h->f.seed;
    }
    d.k = h->products;
    d.d = h->f.dim > d.k ? h->f.dim : d.k;
    d.scaling = GNOMON_ISOMETRIC;
    GNOMON_TRY(gnomon_operator_create(ctx, &d, &h->op));
    gnomon_operator_describe(h->op, &h->descriptor);
    h->f.descriptor = &h->descriptor;
    /* a gaussian's own entries are what is wanted: no rounding by a scale and back */
    if (d.kind == GNOMON_GAUSSIAN) {
        gnomon_operator_destroy(h->op);
        h->op = NULL;
        d.scaling = GNOMON_UNSCALED;
        GNOMON_TRY(gnomon_operator_create(ctx, &d, &h->op));
        h->factor = 1;
    } else {
        h->factor = sqrt((double)d.k);
    }
    return GNOMON_OK;
}

gnomon_status gnomon_hasher_create(gnomon_context *ctx, const gnomon_lsh_functions *functions,
                                   gnomon_hasher **out)
{
    GNOMON_FAIL_IF(!out, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("out") " is NULL");
    *out = NULL;
    GNOMON_NEED(NULL, ctx, "ctx");
    gnomon_lsh_functions f = GNOMON_LSH_FUNCTIONS_INIT;
    gnomon_descriptor descriptor = GNOMON_DESCRIPTOR_INIT;
    GNOMON_TRY(GNOMON_COPY_OPTIONS(ctx, "functions", gnomon_lsh_functions, functions, &f));
    if (f.descriptor) {
        GNOMON_TRY(GNOMON_COPY_OPTIONS(ctx, "functions.descriptor", gnomon_descriptor, f.descriptor,
                                       &descriptor));
        f.descriptor = &descriptor;
    }
    GNOMON_TRY(check_functions(ctx, &f));
    gnomon_hasher *h = calloc(1, sizeof *h);
    GNOMON_FAIL_IF(!h, ctx, GNOMON_ERROR_MEMORY, "no memory for hash functions");
    h->f = f;
    h->descriptor = descriptor;
    if (h->f.descriptor) h->f.descriptor = &h->descriptor;
    h->key.key0 = (uint32_t)f.seed;
    h->key.key1 = (uint32_t)(f.seed >> 32);
    const gnomon_family_row *row = gnomon_family_row_of(f.family);
    if (row->sides && h->f.sides == 0) h->f.sides = 16;
    h->products = h->f.count * row->products * (row->sides ? h->f.sides : 1);
    h->others = row->others;
    gnomon_status status = row->setup ? row->setup(ctx, h) : GNOMON_OK;
    if (status == GNOMON_OK && row->directions) status = make_operator(ctx, h);
    if (status != GNOMON_OK) {
        gnomon_hasher_destroy(h);
        return status;
    }
    *out = h;
    return GNOMON_OK;
}

void gnomon_hasher_destroy(gnomon_hasher *hasher)
{
    if (!hasher) return;
    gnomon_operator_destroy(hasher->op);
    free(hasher->offset);
    free(hasher->bit);
    free(hasher->centres);
    free(hasher);
}

gnomon_status gnomon_lsh_collision(gnomon_context *ctx, const gnomon_lsh_functions *given,
                                   double distance, double *p)
{
    gnomon_lsh_functions functions = GNOMON_LSH_FUNCTIONS_INIT;
    GNOMON_FAIL_IF(!ctx, NULL, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("ctx") " is NULL");
    GNOMON_FAIL_IF(!p, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("p") " is NULL");
    GNOMON_TRY(GNOMON_COPY_OPTIONS(ctx, "functions", gnomon_lsh_functions, given, &functions));
    GNOMON_TRY(check_family(ctx, &functions));
    const gnomon_family_row *row = gnomon_family_row_of(functions.family);
    GNOMON_FAIL_IF(row->collision == NULL, ctx, GNOMON_ERROR_UNSUPPORTED,
                   "how often %s brings two points together depends on its centres", row->name);
    const double most = gnomon_family_most(row, functions.dim);
    GNOMON_FAIL_IF(!(row->most > 0) && functions.dim < 1, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("functions.dim") " is %" PRId64 "; it must be at least 1",
                   functions.dim);
    GNOMON_FAIL_IF(!(distance >= 0 && distance <= most), ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("distance") " is %g; it must be 0 to %g", distance, most);
    *p = row->collision(&functions, distance);
    return GNOMON_OK;
}

/* Codes from a file: mapped, and checked closely enough that nothing a query does can leave it. */
#include "rabitq/file/file.h"

#include "base/arithmetic.h"
#include "base/memory.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>

typedef struct loading {
    gnomon_context *ctx;
    const gnomon_layout *l;
    int64_t next; /* section */
} loading;

/* The next section, which is due to be so long; negative: of any length. */
static gnomon_status expect(loading *w, gnomon_section_kind kind, int64_t length, gnomon_section *s)
{
    const gnomon_section_name name = gnomon_section_name_of(kind, 0);
    const bool there = w->next < w->l->sections;
    *s = there ? gnomon_layout_section(w->l, w->next) : (gnomon_section){.length = -1};
    GNOMON_FAIL_IF(!there || s->kind != kind || s->number != 0 ||
                       (kind != GNOMON_SECTION_POINTS && s->dtype != 0),
                   w->ctx, GNOMON_ERROR_DATA,
                   "section %" PRId64 " is not that of the %s, which is due there", w->next,
                   name.text);
    GNOMON_FAIL_IF(length >= 0 && s->length != length, w->ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("%s") ": %" PRId64 " bytes long; %" PRId64 " are due", name.text,
                   s->length, length);
    w->next++;
    return GNOMON_OK;
}

static gnomon_status read_settings(loading *w, gnomon_rabitq **out)
{
    const gnomon_layout *l = w->l;
    int64_t numbers[GNOMON_RABITQ_NUMBERS];
    gnomon_rabitq_options o = GNOMON_RABITQ_OPTIONS_INIT, checked;
    gnomon_section s;
    w->next = l->sections - 1;
    GNOMON_TRY(expect(w, GNOMON_SECTION_RABITQ_SETTINGS, (int64_t)sizeof numbers, &s));
    GNOMON_FAIL_IF(gnomon_lsh_checksum(l->map + s.offset, (size_t)s.length) != s.checksum, w->ctx,
                   GNOMON_ERROR_DATA,
                   GNOMON_ARG("settings") ": the section is damaged: its checksum does not fit");
    memcpy(numbers, l->map + s.offset, sizeof numbers);
    const int64_t metric = numbers[GNOMON_RABITQ_METRIC], dim = numbers[GNOMON_RABITQ_DIM];
    const int64_t exponent = numbers[GNOMON_RABITQ_EXPONENT];
    GNOMON_FAIL_IF(
        metric < 0 || metric > 100 || exponent < -1000 || exponent > 1000 || dim < 1 ||
            dim > GNOMON_RABITQ_MOST_DIM || l->points < 1 || l->removed != 0 || l->features != 0,
        w->ctx, GNOMON_ERROR_DATA,
        GNOMON_ARG("settings") ": metric %" PRId64 ", %" PRId64 " points, %" PRId64
                               " of them removed, %" PRId64 " dimensions, scale 2^%" PRId64,
        metric, l->points, l->removed, dim, exponent);
    o.metric = (gnomon_metric)metric;
    o.bits = numbers[GNOMON_RABITQ_BITS];
    o.seed = (uint64_t)numbers[GNOMON_RABITQ_SEED];
    o.codes_only =
        gnomon_layout_section(l, 0).kind == GNOMON_SECTION_POINTS ? 0 : 1; /* first of them */
    if (gnomon_rabitq_check_options(w->ctx, &o, &checked) != GNOMON_OK)
        return gnomon_fail_prefix(w->ctx, GNOMON_ERROR_DATA, GNOMON_ARG("settings"));
    GNOMON_TRY(gnomon_rabitq_open_empty(w->ctx, &checked, l->points, dim, out));
    (*out)->scale = ldexp(1, (int)exponent);
    w->next = 0;
    return GNOMON_OK;
}

static gnomon_status load_points(loading *w, gnomon_rabitq *index)
{
    gnomon_section s;
    int64_t bytes;
    GNOMON_TRY(expect(w, GNOMON_SECTION_POINTS, -1, &s));
    const size_t size = gnomon_dtype_size(s.dtype);
    GNOMON_FAIL_IF(size == 0, w->ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("points") ": of the type %d, which there is not", (int)s.dtype);
    GNOMON_FAIL_IF(!gnomon_mul(index->points, index->dim * (int64_t)size, &bytes) ||
                       bytes != s.length,
                   w->ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("points") ": %" PRId64 " bytes for %" PRId64 " points of %" PRId64
                                        " coordinates of type %s",
                   s.length, index->points, index->dim, gnomon_dtype_name(s.dtype));
    index->x =
        gnomon_matrix_rowmajor((void *)(w->l->map + s.offset), s.dtype, index->points, index->dim);
    return GNOMON_OK;
}

static gnomon_status load(loading *w, gnomon_rabitq *index)
{
    const int bits = (int)index->options.bits;
    const int64_t each = (int64_t)sizeof(float) * gnomon_rabitq_factors(bits);
    gnomon_section s;
    if (!index->options.codes_only) GNOMON_TRY(load_points(w, index));
    GNOMON_TRY(expect(w, GNOMON_SECTION_CENTRE, index->dim * (int64_t)sizeof(double), &s));
    index->centre = (double *)(w->l->map + s.offset);
    GNOMON_TRY(expect(w, GNOMON_SECTION_RABITQ_CODES,
                      index->points * gnomon_rabitq_bytes(index->m, bits), &s));
    index->codes = (uint8_t *)(w->l->map + s.offset);
    GNOMON_TRY(expect(w, GNOMON_SECTION_FACTORS, index->points * each, &s));
    index->factors = (float *)(w->l->map + s.offset);
    GNOMON_FAIL_IF(w->next != w->l->sections - 1, w->ctx, GNOMON_ERROR_DATA,
                   "there are %" PRId64 " sections; %" PRId64 " are due", w->l->sections,
                   w->next + 1);
    for (int64_t j = 0; j < index->dim; j++)
        GNOMON_FAIL_IF(!isfinite(index->centre[j]), w->ctx, GNOMON_ERROR_DATA,
                       GNOMON_ARG("centre") ": NaN or infinity in column %" PRId64, j);
    /* an estimate of these is a number */
    const int count = gnomon_rabitq_factors(bits);
    for (int64_t i = 0; i < index->points * count; i++)
        GNOMON_FAIL_IF(!(index->factors[i] >= 0 && index->factors[i] <= 0x1p20f), w->ctx,
                       GNOMON_ERROR_DATA, GNOMON_ARG("factors") ": that of point %" PRId64 " is %g",
                       i / count, (double)index->factors[i]);
    return GNOMON_OK;
}

gnomon_status gnomon_rabitq_load(gnomon_context *ctx, const gnomon_layout *layout,
                                 gnomon_rabitq **out)
{
    loading w = {ctx, layout, 0};
    gnomon_rabitq *index = NULL;
    gnomon_status status = read_settings(&w, &index);
    if (index == NULL) {
        munmap((void *)layout->map, (size_t)layout->bytes);
        return status;
    }
    index->map = layout->map;
    index->map_bytes = layout->bytes;
    status = load(&w, index);
    if (status == GNOMON_OK)
        *out = index;
    else
        gnomon_rabitq_destroy(index);
    return status;
}

gnomon_status gnomon_rabitq_open(gnomon_context *ctx, const char *path, gnomon_rabitq **out)
{
    gnomon_layout layout;
    GNOMON_FAIL_IF(out == NULL, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("out") " is NULL");
    *out = NULL;
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_TRY(gnomon_layout_map(ctx, &gnomon_rabitq_file, path, &layout));
    gnomon_status status = gnomon_rabitq_load(ctx, &layout, out);
    if (status != GNOMON_OK) return gnomon_fail_prefix(ctx, status, GNOMON_ARG("%s"), path);
    status = gnomon_origin_open(ctx, path, &layout, &(*out)->origin);
    if (status != GNOMON_OK) {
        gnomon_rabitq_destroy(*out);
        *out = NULL;
    }
    return status;
}

/* An index read from a file: mapped, and checked closely enough that nothing a query does can
 * leave it. Points' coordinates, codes and checksums are not checked (file_check.c does that). */
#include "lsh/file/file.h"

#include "base/memory.h"
#include "base/threads.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static gnomon_status map_file(gnomon_context *ctx, const gnomon_file_kind *kind, int fd,
                              gnomon_layout *l)
{
    struct stat st;
    GNOMON_FAIL_IF(fstat(fd, &st) != 0, ctx, GNOMON_ERROR_IO, "%s", strerror(errno));
    GNOMON_FAIL_IF(S_ISDIR(st.st_mode), ctx, GNOMON_ERROR_IO, "is a folder, not a file");
    GNOMON_FAIL_IF(!S_ISREG(st.st_mode), ctx, GNOMON_ERROR_UNSUPPORTED,
                   "an index is mapped into memory: it must be a file");
    if (st.st_size == 0) return gnomon_layout_check(ctx, kind, (const unsigned char *)"", 0, l);
    void *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    GNOMON_FAIL_IF(map == MAP_FAILED, ctx, GNOMON_ERROR_IO, "can't map it into memory: %s",
                   strerror(errno));
    const gnomon_status status = gnomon_layout_check(ctx, kind, map, (int64_t)st.st_size, l);
    if (status != GNOMON_OK) munmap(map, (size_t)st.st_size);
    l->device = st.st_dev;
    l->inode = st.st_ino;
    return status;
}

gnomon_status gnomon_layout_map(gnomon_context *ctx, const gnomon_file_kind *kind, const char *path,
                                gnomon_layout *layout)
{
    GNOMON_FAIL_IF(!path, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("path") " is NULL");
    GNOMON_FAIL_IF(__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__, ctx, GNOMON_ERROR_UNSUPPORTED,
                   "index files are little-endian, and this machine is not");
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) {
        const bool absent = errno == ENOENT || errno == ENOTDIR;
        return gnomon_fail(ctx, absent ? GNOMON_ERROR_NOT_FOUND : GNOMON_ERROR_IO,
                           GNOMON_ARG("%s") ": can't open: %s", path, strerror(errno));
    }
    const gnomon_status status = map_file(ctx, kind, fd, layout);
    close(fd); /* the mapping stays */
    return status == GNOMON_OK ? status : gnomon_fail_prefix(ctx, status, GNOMON_ARG("%s"), path);
}

/* ---- sections in their order ---- */

typedef struct loading {
    gnomon_context *ctx;
    const gnomon_layout *l;
    gnomon_lsh *index;
    int64_t next; /* section */
} loading;

static gnomon_status expect(loading *w, gnomon_section_kind kind, uint32_t number,
                            gnomon_section *s)
{
    const bool there = w->next < w->l->sections;
    *s = there ? gnomon_layout_section(w->l, w->next) : (gnomon_section){.length = -1};
    GNOMON_FAIL_IF(!there || s->kind != kind || s->number != number ||
                       (kind != GNOMON_SECTION_POINTS && s->dtype != 0),
                   w->ctx, GNOMON_ERROR_DATA,
                   "section %" PRId64 " is not that of the %s, which is due there", w->next,
                   gnomon_section_name_of(kind, number).text);
    w->next++;
    return GNOMON_OK;
}

/* One whose length is known. */
static gnomon_status expect_length(loading *w, gnomon_section_kind kind, uint32_t number,
                                   int64_t length, const void **data)
{
    gnomon_section s;
    GNOMON_TRY(expect(w, kind, number, &s));
    GNOMON_FAIL_IF(s.length != length, w->ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("%s") ": %" PRId64 " bytes long; %" PRId64 " are due",
                   gnomon_section_name_of(kind, number).text, s.length, length);
    *data = w->l->map + s.offset;
    return GNOMON_OK;
}

/* Where the centres lie that the hash functions are made of, before their section's turn. */
static gnomon_status find_centres(loading *w, gnomon_lsh_functions *f)
{
    const gnomon_layout *l = w->l;
    int64_t bytes, i = 0;
    if (f->centre_count == 0) return GNOMON_OK;
    while (i < l->sections && gnomon_layout_section(l, i).kind != GNOMON_SECTION_CENTRES)
        i++;
    GNOMON_FAIL_IF(i == l->sections, w->ctx, GNOMON_ERROR_DATA,
                   "there is no section of the %" PRId64 " centres", f->centre_count);
    const gnomon_section s = gnomon_layout_section(l, i);
    GNOMON_FAIL_IF(!gnomon_mul(f->centre_count, f->dim, &bytes) || !gnomon_mul(bytes, 4, &bytes) ||
                       s.length != bytes,
                   w->ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("centres") ": %" PRId64 " bytes are not %" PRId64
                                         " centres of %" PRId64 " coordinates",
                   s.length, f->centre_count, f->dim);
    f->centres = (const float *)(const void *)(l->map + s.offset);
    return GNOMON_OK;
}

static gnomon_status load_settings(loading *w)
{
    const gnomon_layout *l = w->l;
    const gnomon_section s = gnomon_layout_section(l, l->sections - 1);
    gnomon_lsh_options o;
    gnomon_descriptor descriptor;
    GNOMON_FAIL_IF(s.kind != GNOMON_SECTION_SETTINGS || s.number != 0 || s.dtype != 0, w->ctx,
                   GNOMON_ERROR_DATA, "the last section is not that of the settings");
    GNOMON_FAIL_IF(s.length > GNOMON_LSH_MOST_SETTINGS, w->ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("settings") ": %" PRId64 " bytes long; at most %d may be", s.length,
                   GNOMON_LSH_MOST_SETTINGS);
    GNOMON_FAIL_IF(gnomon_lsh_checksum(l->map + s.offset, (size_t)s.length) != s.checksum, w->ctx,
                   GNOMON_ERROR_DATA,
                   GNOMON_ARG("settings") ": the section is damaged: its checksum does not fit");
    GNOMON_TRY(gnomon_lsh_settings_from_json(w->ctx, (const char *)l->map + s.offset,
                                             (size_t)s.length, &o, &descriptor));
    GNOMON_TRY(find_centres(w, &o.functions));
    const gnomon_status status = gnomon_lsh_create(w->ctx, &o, &w->index);
    if (status == GNOMON_ERROR_NONFINITE)
        return gnomon_fail(w->ctx, GNOMON_ERROR_DATA, GNOMON_ARG("centres") ": NaN or infinity");
    if (status == GNOMON_ERROR_ARGUMENT || status == GNOMON_ERROR_OVERFLOW) /* the file's fault */
        return gnomon_fail_prefix(w->ctx, GNOMON_ERROR_DATA, GNOMON_ARG("settings"));
    return status;
}

static gnomon_status load_dense(loading *w)
{
    gnomon_context *ctx = w->ctx;
    gnomon_lsh *index = w->index;
    const int64_t dim = index->options.functions.dim;
    int64_t blocks = 0;
    while (blocks < w->l->sections &&
           gnomon_layout_section(w->l, blocks).kind == GNOMON_SECTION_POINTS)
        blocks++;
    GNOMON_TRY(gnomon_alloc(ctx, blocks, sizeof *index->blocks, "blocks", &index->blocks));
    for (int64_t i = 0; i < blocks; i++) {
        gnomon_section s;
        int64_t row;
        GNOMON_TRY(expect(w, GNOMON_SECTION_POINTS, (uint32_t)i, &s));
        const gnomon_section_name label = gnomon_section_name_of(s.kind, s.number);
        const char *name = label.text;
        GNOMON_FAIL_IF(gnomon_dtype_size(s.dtype) == 0, ctx, GNOMON_ERROR_DATA,
                       GNOMON_ARG("%s") ": %d is no element type", name, (int)s.dtype);
        GNOMON_FAIL_IF(gnomon_metric_takes(index->options.metric, GNOMON_POINTS_BITS) &&
                           s.dtype != GNOMON_U8,
                       ctx, GNOMON_ERROR_DATA, GNOMON_ARG("%s") ": of type %s; %s takes u8", name,
                       gnomon_dtype_name(s.dtype), gnomon_metric_name(index->options.metric));
        GNOMON_FAIL_IF(!gnomon_mul(dim, (int64_t)gnomon_dtype_size(s.dtype), &row) ||
                           s.length % row != 0 || s.length == 0 ||
                           s.length / row > w->l->points - index->points,
                       ctx, GNOMON_ERROR_DATA,
                       GNOMON_ARG("%s") ": %" PRId64 " bytes are not so many points of %" PRId64
                                        " coordinates",
                       name, s.length, dim);
        index->blocks[i] =
            (gnomon_lsh_block){index->points, gnomon_matrix_rowmajor((void *)(w->l->map + s.offset),
                                                                     s.dtype, s.length / row, dim)};
        index->points += s.length / row;
        index->block_count++;
    }
    GNOMON_FAIL_IF(index->points != w->l->points, ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("points") ": there are %" PRId64 "; the header tells of %" PRId64,
                   index->points, w->l->points);
    return GNOMON_OK;
}

static gnomon_status load_sets(loading *w)
{
    gnomon_context *ctx = w->ctx;
    gnomon_sets *sets = &w->index->sets;
    const int64_t n = w->l->points, dim = w->index->options.functions.dim;
    gnomon_section s;
    const void *offsets;
    GNOMON_TRY(expect(w, GNOMON_SECTION_MEMBERS, 0, &s));
    GNOMON_TRY(expect_length(w, GNOMON_SECTION_OFFSETS, 0, (n + 1) * 8, &offsets));
    const int64_t members = s.length / 8, *at = offsets;
    GNOMON_FAIL_IF(s.length % 8 != 0, ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("set members") ": %" PRId64 " bytes are no whole number of members",
                   s.length);
    const int64_t *member = (const int64_t *)(const void *)(w->l->map + s.offset);
    GNOMON_FAIL_IF(at[0] != 0 || at[n] != members, ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("set offsets") ": from %" PRId64 " to %" PRId64 " for %" PRId64
                                             " members",
                   at[0], at[n], members);
    for (int64_t i = 0; i < n; i++) {
        GNOMON_FAIL_IF(at[i] > at[i + 1] || at[i + 1] > members, ctx, GNOMON_ERROR_DATA,
                       GNOMON_ARG("set offsets") ": they fall after set %" PRId64, i);
        for (int64_t e = at[i]; e < at[i + 1]; e++)
            GNOMON_FAIL_IF(member[e] < 0 || member[e] >= dim ||
                               (e > at[i] && member[e] <= member[e - 1]),
                           ctx, GNOMON_ERROR_DATA,
                           GNOMON_ARG("set members") ": those of set %" PRId64
                                                     " do not ascend from 0 to %" PRId64,
                           i, dim - 1);
    }
    const void *weights = NULL;
    if (gnomon_metric_is(w->index->options.metric, GNOMON_METRIC_WEIGHTS)) {
        GNOMON_TRY(expect_length(w, GNOMON_SECTION_WEIGHTS, 0, s.length, &weights));
        const double *weight = weights;
        for (int64_t e = 0; e < members; e++)
            GNOMON_FAIL_IF(!(weight[e] > 0 && weight[e] <= 0x1p500), ctx, GNOMON_ERROR_DATA,
                           GNOMON_ARG("weights") ": number %" PRId64 " is %g; it must be above 0 "
                                                 "and at most 2^500",
                           e, weight[e]);
    }
    *sets = (gnomon_sets){.count = n,
                          .offsets = (int64_t *)offsets,
                          .members = (int64_t *)member,
                          .weights = (double *)weights};
    w->index->points = n;
    return GNOMON_OK;
}

static gnomon_status load_codes(loading *w)
{
    gnomon_codes *c = &w->index->codes;
    const void *scale, *code;
    if (c->count == 0 || w->index->points == 0) return GNOMON_OK;
    int64_t bytes;
    GNOMON_FAIL_IF(!gnomon_mul(w->index->points, c->count, &bytes), w->ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("codes") ": more than can be counted");
    GNOMON_TRY(expect_length(w, GNOMON_SECTION_SCALE, 0, (c->count + 1) * 4, &scale));
    GNOMON_TRY(expect_length(w, GNOMON_SECTION_CODES, 0, bytes, &code));
    memcpy(&c->factor, scale, 4);
    memcpy(c->centre, (const char *)scale + 4, (size_t)c->count * 4);
    c->code = (int8_t *)code;
    c->trained = true;
    return GNOMON_OK;
}

/* They have been read already. */
static gnomon_status pass_centres(loading *w)
{
    gnomon_section s;
    if (w->index->hasher->centres == NULL) return GNOMON_OK;
    return expect(w, GNOMON_SECTION_CENTRES, 0, &s);
}

static gnomon_status load_removed(loading *w)
{
    gnomon_lsh *index = w->index;
    const int64_t n = index->points, bytes = gnomon_lsh_bitmap_bytes(n);
    const void *bits;
    int64_t removed = 0;
    if (w->l->removed == 0) return GNOMON_OK;
    GNOMON_TRY(expect_length(w, GNOMON_SECTION_REMOVED, 0, bytes, &bits));
    GNOMON_TRY(gnomon_alloc(w->ctx, bytes, 1, "removed points", &index->gone));
    memcpy(index->gone, bits, (size_t)bytes);
    for (int64_t i = 0; i < bytes; i++)
        removed += __builtin_popcount(index->gone[i]);
    GNOMON_FAIL_IF(
        removed != w->l->removed || (n % 8 != 0 && index->gone[bytes - 1] >> (n % 8) != 0), w->ctx,
        GNOMON_ERROR_DATA,
        GNOMON_ARG("removed") ": the bits of %" PRId64 " points do not tell of the %" PRId64
                              " that the header does",
        n, w->l->removed);
    index->removed = removed;
    return GNOMON_OK;
}

/* ---- tables ---- */

static gnomon_status load_table(loading *w, int64_t t)
{
    gnomon_table *table = &w->index->tables[t];
    gnomon_section ids, keys;
    const void *starts, *directory;
    GNOMON_TRY(expect(w, GNOMON_SECTION_IDS, (uint32_t)t, &ids));
    GNOMON_TRY(expect(w, GNOMON_SECTION_KEYS, (uint32_t)t, &keys));
    const int64_t entries = ids.length / 4, buckets = keys.length / 8;
    GNOMON_FAIL_IF(ids.length % 4 != 0 || entries > w->index->points ||
                       entries < w->index->points - w->index->removed ||
                       (t > 0 && entries != w->index->tables[0].entries),
                   w->ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("table %" PRId64 "'s ids") ": %" PRId64
                                                         " bytes are not right for %" PRId64
                                                         " points, %" PRId64 " removed",
                   t, ids.length, w->index->points, w->index->removed);
    GNOMON_FAIL_IF(keys.length % 8 != 0 || buckets > entries, w->ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("table %" PRId64
                              "'s keys") ": %" PRId64 " bytes are not right for %" PRId64 " points",
                   t, keys.length, entries);
    GNOMON_TRY(expect_length(w, GNOMON_SECTION_STARTS, (uint32_t)t, (buckets + 1) * 4, &starts));
    const int bits = gnomon_table_bits(buckets);
    GNOMON_TRY(expect_length(w, GNOMON_SECTION_DIRECTORY, (uint32_t)t,
                             (((int64_t)1 << bits) + 1) * 4, &directory));
    *table = (gnomon_table){.entries = entries,
                            .buckets = buckets,
                            .keys = (uint64_t *)(void *)(w->l->map + keys.offset),
                            .first = (uint32_t *)starts,
                            .ids = (uint32_t *)(void *)(w->l->map + ids.offset),
                            .directory = (uint32_t *)directory,
                            .bits = bits};
    return GNOMON_OK;
}

/* What is wrong with tables: for each a section kind, and the bucket, entry or cell; 0 for none. */
typedef struct checking {
    const gnomon_lsh *index;
    gnomon_section_kind *wrong;
    int64_t *place;
} checking;

static gnomon_section_kind table_fault(const gnomon_table *t, int64_t points, int64_t *place)
{
    int64_t b = 0;
    for (*place = 0; *place < t->buckets; ++*place) {
        const int64_t i = *place;
        if (t->first[i] >= t->first[i + 1] || t->first[i + 1] > t->entries)
            return GNOMON_SECTION_STARTS;
        if (i > 0 && t->keys[i] <= t->keys[i - 1]) return GNOMON_SECTION_KEYS;
    }
    if (t->first[0] != 0 || t->first[t->buckets] != t->entries) return GNOMON_SECTION_STARTS;
    for (int64_t i = 0; i < t->buckets; i++)
        for (*place = t->first[i]; *place < t->first[i + 1]; ++*place)
            if (t->ids[*place] >= points ||
                (*place > t->first[i] && t->ids[*place] <= t->ids[*place - 1]))
                return GNOMON_SECTION_IDS;
    const int64_t cells = (int64_t)1 << t->bits;
    for (*place = 0; *place <= cells; ++*place) {
        while (b < t->buckets && t->bits > 0 && (int64_t)(t->keys[b] >> (64 - t->bits)) < *place)
            b++;
        if (t->directory[*place] != (uint32_t)(*place == cells ? t->buckets : b))
            return GNOMON_SECTION_DIRECTORY;
    }
    return (gnomon_section_kind)0;
}

static void check_table(void *arg, int64_t t, int worker)
{
    (void)worker;
    const checking *c = arg;
    c->wrong[t] = table_fault(&c->index->tables[t], c->index->points, &c->place[t]);
}

static gnomon_status load_tables(loading *w)
{
    const int64_t tables = w->index->options.tables;
    checking c = {.index = w->index};
    for (int64_t t = 0; t < tables; t++)
        GNOMON_TRY(load_table(w, t));
    GNOMON_FAIL_IF(w->next != w->l->sections - 1, w->ctx, GNOMON_ERROR_DATA,
                   "there are %" PRId64 " sections; %" PRId64 " are due", w->l->sections,
                   w->next + 1);
    gnomon_status status = gnomon_alloc_zero(w->ctx, tables, sizeof *c.wrong, "faults", &c.wrong);
    if (status == GNOMON_OK)
        status = gnomon_alloc_zero(w->ctx, tables, sizeof *c.place, "faults", &c.place);
    if (status == GNOMON_OK) gnomon_parallel(w->ctx, tables, check_table, &c);
    for (int64_t t = 0; t < tables && status == GNOMON_OK; t++)
        if (c.wrong[t] != 0)
            status = gnomon_fail(w->ctx, GNOMON_ERROR_DATA,
                                 GNOMON_ARG("%s") ": entry %" PRId64 " does not fit the others",
                                 gnomon_section_name_of(c.wrong[t], (uint32_t)t).text, c.place[t]);
    gnomon_free(w->ctx, c.wrong);
    gnomon_free(w->ctx, c.place);
    return status;
}

static gnomon_status load(loading *w)
{
    const gnomon_layout *l = w->l;
    GNOMON_TRY(load_settings(w));
    w->index->map = (const char *)l->map;
    w->index->map_bytes = (size_t)l->bytes;
    const bool sets = gnomon_metric_of_sets(w->index->options.metric);
    const bool weights = gnomon_metric_is(w->index->options.metric, GNOMON_METRIC_WEIGHTS);
    const uint64_t due = (sets ? GNOMON_LSH_SETS : 0u) | (weights ? GNOMON_LSH_WEIGHTED : 0u) |
                         (w->index->options.codes > 0 ? GNOMON_LSH_CODED : 0u) |
                         (w->index->hasher->centres != NULL ? GNOMON_LSH_CENTRED : 0u) |
                         (l->removed > 0 ? GNOMON_LSH_REMOVED : 0u);
    GNOMON_FAIL_IF(l->features != due, w->ctx, GNOMON_ERROR_DATA,
                   "the header's flags are 0x%" PRIx64 "; 0x%" PRIx64 " are due", l->features, due);
    GNOMON_TRY(sets ? load_sets(w) : load_dense(w));
    GNOMON_TRY(load_codes(w));
    GNOMON_TRY(pass_centres(w));
    GNOMON_TRY(load_removed(w));
    return load_tables(w);
}

gnomon_status gnomon_lsh_load(gnomon_context *ctx, const gnomon_layout *layout, gnomon_lsh **out)
{
    loading w = {ctx, layout, NULL, 0};
    const gnomon_status status = load(&w);
    if (status == GNOMON_OK) {
        *out = w.index;
        return GNOMON_OK;
    }
    if (w.index && w.index->map)
        gnomon_lsh_destroy(w.index); /* with the mapping */
    else
        munmap((void *)layout->map, (size_t)layout->bytes);
    return status;
}

gnomon_status gnomon_lsh_open(gnomon_context *ctx, const char *path, gnomon_lsh **out)
{
    gnomon_layout layout;
    GNOMON_FAIL_IF(!out, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("out") " is NULL");
    *out = NULL;
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_TRY(gnomon_layout_map(ctx, &gnomon_lsh_file, path, &layout));
    gnomon_status status = gnomon_lsh_load(ctx, &layout, out);
    if (status != GNOMON_OK) return gnomon_fail_prefix(ctx, status, GNOMON_ARG("%s"), path);
    status = gnomon_origin_open(ctx, path, &layout, &(*out)->origin);
    if (status != GNOMON_OK) {
        gnomon_lsh_destroy(*out);
        *out = NULL;
    }
    return status;
}

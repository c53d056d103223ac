/* The header and the section table. */
#include "lsh/file/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const gnomon_file_kind gnomon_lsh_file = {
    {0x89, 'G', 'N', 'M', 'L', 'S', 'H', 0x0a}, 1, GNOMON_LSH_FEATURES, "index of gnomon's"};
const gnomon_file_kind gnomon_sparse_file = {{0x89, 'G', 'N', 'M', 'I', 'N', 'V', 0x0a},
                                             2,
                                             GNOMON_LSH_REMOVED,
                                             "index of sparse points of gnomon's"};
const gnomon_file_kind gnomon_rabitq_file = {
    {0x89, 'G', 'N', 'M', 'R', 'B', 'Q', 0x0a}, 1, 0, "index of codes of gnomon's"};

gnomon_section_name gnomon_section_name_of(gnomon_section_kind kind, uint32_t number)
{
    static const char *const alone[] = {"?",
                                        "points",
                                        "set members",
                                        "set offsets",
                                        "codes' scale",
                                        "codes",
                                        "removed",
                                        NULL,
                                        NULL,
                                        NULL,
                                        NULL,
                                        "settings",
                                        "weights",
                                        "rows' columns",
                                        "rows' values",
                                        "rows' offsets",
                                        "rows' factors",
                                        "removed",
                                        "columns",
                                        "columns' numbers",
                                        "lists",
                                        "lists' ids",
                                        "lists' values",
                                        "block",
                                        "norms",
                                        "block's norms",
                                        "bias",
                                        "settings",
                                        "block's steps",
                                        "block's codes",
                                        "centre",
                                        "codes",
                                        "factors",
                                        "settings",
                                        "centres"};
    static const char *const parts[] = {"ids", "keys", "starts", "directory"};
    gnomon_section_name name;
    if (kind == GNOMON_SECTION_POINTS && number > 0)
        snprintf(name.text, sizeof name.text, "points %" PRIu32, number);
    else if (kind >= GNOMON_SECTION_IDS && kind <= GNOMON_SECTION_DIRECTORY)
        snprintf(name.text, sizeof name.text, "table %" PRIu32 "'s %s", number,
                 parts[kind - GNOMON_SECTION_IDS]);
    else
        snprintf(name.text, sizeof name.text, "%s",
                 (int)kind > 0 && kind <= GNOMON_SECTION_LAST ? alone[kind] : alone[0]);
    return name;
}

/* ---- little-endian numbers ---- */

static void put(unsigned char *to, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        to[i] = (unsigned char)(value >> (8 * i));
}

static uint64_t get(const unsigned char *from, int bytes)
{
    uint64_t value = 0;
    for (int i = bytes - 1; i >= 0; i--)
        value = value << 8 | from[i];
    return value;
}

/* A length or a place; negative when it is beyond 63 bits. */
static int64_t size_at(const unsigned char *from)
{
    const uint64_t value = get(from, 8);
    return value > INT64_MAX ? -1 : (int64_t)value;
}

void gnomon_layout_write(const gnomon_layout *l, const gnomon_section *sections,
                         unsigned char *entries, unsigned char header[GNOMON_LSH_HEADER])
{
    for (int64_t i = 0; i < l->sections; i++) {
        const gnomon_section *s = &sections[i];
        unsigned char *to = entries + i * GNOMON_LSH_ENTRY;
        put(to, s->kind, 4);
        put(to + 4, s->number, 4);
        put(to + 8, s->dtype, 4);
        put(to + 12, 0, 4);
        put(to + 16, (uint64_t)s->offset, 8);
        put(to + 24, (uint64_t)s->length, 8);
        put(to + 32, s->checksum, 8);
    }
    memset(header, 0, GNOMON_LSH_HEADER);
    memcpy(header, l->kind->magic, 8);
    put(header + 8, l->kind->version, 4);
    put(header + 12, GNOMON_LSH_HEADER, 4);
    put(header + 16, l->features, 8);
    put(header + 32, (uint64_t)l->bytes, 8);
    put(header + 40, (uint64_t)l->table, 8);
    put(header + 48, (uint64_t)l->sections, 8);
    put(header + 56, gnomon_lsh_checksum(entries, (size_t)(l->sections * GNOMON_LSH_ENTRY)), 8);
    put(header + 64, (uint64_t)l->points, 8);
    put(header + 72, (uint64_t)l->removed, 8);
    put(header + 120, gnomon_lsh_checksum(header, 120), 8);
}

gnomon_section gnomon_layout_section(const gnomon_layout *l, int64_t i)
{
    const unsigned char *from = l->map + l->table + i * GNOMON_LSH_ENTRY;
    return (gnomon_section){(gnomon_section_kind)get(from, 4),
                            (uint32_t)get(from + 4, 4),
                            (gnomon_dtype)get(from + 8, 4),
                            size_at(from + 16),
                            size_at(from + 24),
                            get(from + 32, 8)};
}

/* What may stand in a file of this version at all. */
static gnomon_status check_head(gnomon_context *ctx, const gnomon_file_kind *kind,
                                const unsigned char *h, int64_t bytes)
{
    GNOMON_FAIL_IF(bytes < 8 || memcmp(h, kind->magic, 8) != 0, ctx, GNOMON_ERROR_FORMAT,
                   "not an %s: it does not begin with an index's mark", kind->what);
    GNOMON_FAIL_IF(bytes < GNOMON_LSH_HEADER, ctx, GNOMON_ERROR_TRUNCATED,
                   "the file ends within the header, after %" PRId64 " bytes of %d", bytes,
                   GNOMON_LSH_HEADER);
    const uint64_t version = get(h + 8, 4);
    GNOMON_FAIL_IF(version > kind->version, ctx, GNOMON_ERROR_UNSUPPORTED,
                   "the index is of version %" PRIu64 "; this library reads version %" PRIu64
                   ": use a newer one",
                   version, kind->version);
    GNOMON_FAIL_IF(version >= 1 && version < kind->version, ctx, GNOMON_ERROR_UNSUPPORTED,
                   "the index is of version %" PRIu64 "; this library reads version %" PRIu64
                   ": build it again",
                   version, kind->version);
    GNOMON_FAIL_IF(get(h + 120, 8) != gnomon_lsh_checksum(h, 120), ctx, GNOMON_ERROR_DATA,
                   "the header is damaged: its checksum does not fit");
    GNOMON_FAIL_IF(version != kind->version || get(h + 12, 4) != GNOMON_LSH_HEADER, ctx,
                   GNOMON_ERROR_DATA, "the header tells of version %" PRIu64 ", %" PRIu64 " bytes",
                   version, get(h + 12, 4));
    const uint64_t unknown = get(h + 16, 8) & ~kind->features;
    GNOMON_FAIL_IF(unknown != 0, ctx, GNOMON_ERROR_UNSUPPORTED,
                   "the index has features that this library does not know (flags 0x%" PRIx64
                   "): use a newer one",
                   unknown);
    for (int i = 80; i < 120; i++)
        GNOMON_FAIL_IF(h[i] != 0, ctx, GNOMON_ERROR_DATA, "the header's byte %d is not 0", i);
    return GNOMON_OK;
}

gnomon_status gnomon_layout_check(gnomon_context *ctx, const gnomon_file_kind *kind,
                                  const unsigned char *map, int64_t bytes, gnomon_layout *l)
{
    GNOMON_TRY(check_head(ctx, kind, map, bytes));
    const int64_t told = size_at(map + 32);
    GNOMON_FAIL_IF(bytes < told, ctx, GNOMON_ERROR_TRUNCATED,
                   "the file has %" PRId64 " bytes; its header tells of %" PRId64, bytes, told);
    GNOMON_FAIL_IF(bytes != told, ctx, GNOMON_ERROR_DATA,
                   "the file has %" PRId64 " bytes; its header tells of %" PRId64, bytes, told);
    *l = (gnomon_layout){.kind = kind,
                         .map = map,
                         .bytes = bytes,
                         .points = size_at(map + 64),
                         .removed = size_at(map + 72),
                         .sections = size_at(map + 48),
                         .table = size_at(map + 40),
                         .features = get(map + 16, 8)};
    GNOMON_FAIL_IF(
        l->points < 0 || l->points >= UINT32_MAX || l->removed < 0 || l->removed > l->points, ctx,
        GNOMON_ERROR_DATA, "the header tells of %" PRId64 " points, %" PRId64 " of them removed",
        l->points, l->removed);
    GNOMON_FAIL_IF(l->table < GNOMON_LSH_HEADER || l->table > bytes || l->sections < 1 ||
                       l->sections > (bytes - l->table) / GNOMON_LSH_ENTRY ||
                       l->table + l->sections * GNOMON_LSH_ENTRY != bytes,
                   ctx, GNOMON_ERROR_DATA,
                   "the header places %" PRId64 " sections' table at byte %" PRId64
                   " of a file of %" PRId64,
                   l->sections, l->table, bytes);
    GNOMON_FAIL_IF(
        get(map + 56, 8) != gnomon_lsh_checksum(map + l->table, (size_t)(bytes - l->table)), ctx,
        GNOMON_ERROR_DATA, "the section table is damaged: its checksum does not fit");
    int64_t end = GNOMON_LSH_HEADER;
    for (int64_t i = 0; i < l->sections; i++) {
        const gnomon_section s = gnomon_layout_section(l, i);
        const int64_t place = gnomon_section_place(end);
        GNOMON_FAIL_IF(
            s.offset != place || s.length < 0 || place > l->table || s.length > l->table - place ||
                get(map + l->table + i * GNOMON_LSH_ENTRY + 12, 4) != 0,
            ctx, GNOMON_ERROR_DATA,
            "section %" PRId64 " (%s) is told to be %" PRId64 " bytes at %" PRId64
            "; it must begin at %" PRId64 " and end before %" PRId64,
            i, gnomon_section_name_of(s.kind, s.number).text, s.length, s.offset, place, l->table);
        end = place + s.length;
    }
    GNOMON_FAIL_IF(gnomon_section_place(end) != l->table, ctx, GNOMON_ERROR_DATA,
                   "the section table is at byte %" PRId64 "; it must be at %" PRId64, l->table,
                   gnomon_section_place(end));
    return GNOMON_OK;
}

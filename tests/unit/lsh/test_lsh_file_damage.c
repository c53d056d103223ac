/* Index files that are cut, damaged or made up: always a status that tells why, never a crash, and
 * a check that names the section. */
#include "lsh_file_testing.h"

static gnomon_context *ctx;

static int open_context(void **state)
{
    (void)state;
    ctx = make_context(1, 1 << 20);
    own_folder();
    return 0;
}

static int close_context(void **state)
{
    (void)state;
    gnomon_context_destroy(ctx);
    unlink("a.idx");
    leave_folder();
    return 0;
}

enum { SMALL = 24 };

/* A small file of each metric, with points removed. */
static bytes small_file(points *p, int f)
{
    gnomon_lsh_options o = file_options(f);
    const int64_t gone[] = {2, SMALL - 2};
    if (f < 6) o.tables = 2;
    o.search_params.tables = 1;
    gnomon_lsh *index = index_of(ctx, p, &o, SMALL);
    ASSERT_OK(ctx, gnomon_lsh_remove(index, gone, 2));
    ASSERT_OK(ctx, gnomon_lsh_save(ctx, index, "a.idx"));
    gnomon_lsh_destroy(index);
    return read_bytes("a.idx");
}

/* What a file's user would do with it: all that may come of a file that is not sound is an error,
 * or answers. */
static gnomon_status use_file(points *p)
{
    gnomon_lsh *index;
    gnomon_neighbors found;
    const gnomon_status status = gnomon_lsh_open(ctx, "a.idx", &index);
    assert_int_equal(status == GNOMON_OK, index != NULL);
    assert_int_not_equal(status, GNOMON_ERROR_INTERNAL);
    assert_int_not_equal(status, GNOMON_ERROR_ARGUMENT);
    if (status != GNOMON_OK) {
        if (!strstr(gnomon_last_error(ctx), "a.idx: ")) fail_msg("%s", gnomon_last_error(ctx));
        return status;
    }
    if (index->options.functions.dim == D || index->options.functions.dim == 600) {
        if (ask(ctx, p, index, 3, &found) == GNOMON_OK) {
            for (int64_t i = 0; i < found.offsets[Q]; i++)
                assert_true(found.ids[i] >= 0 && found.ids[i] < index->points);
            gnomon_neighbors_free(ctx, &found);
        }
        (void)add_rows(index, p, &index->options, 100, 3);
        (void)gnomon_lsh_compact(index);
    }
    gnomon_lsh_destroy(index);
    return status;
}

static gnomon_status use(points *p, const bytes *b)
{
    write_bytes("a.idx", b->data, b->size);
    return use_file(p);
}

typedef struct named {
    char wanted[64];
    int faults, found;
} named;

static void hear(void *user, const char *section, const char *fault)
{
    named *n = user;
    assert_true(fault[0] != '\0');
    n->faults++;
    n->found += strstr(section, n->wanted) != NULL;
}

/* The section that byte 'at' belongs to, or that it lies before. */
static gnomon_section section_of(const gnomon_layout *l, int64_t at)
{
    for (int64_t i = 0; i < l->sections; i++) {
        const gnomon_section s = gnomon_layout_section(l, i);
        if (at < s.offset + s.length) return s;
    }
    return (gnomon_section){.kind = (gnomon_section_kind)0};
}

/* Every byte in turn, of some families every third. */
static void flipped_bytes_are_named(void **state)
{
    (void)state;
    points *p = make_points(21);
    for (int f = 0; f < FAMILIES; f++) {
        const bytes good = small_file(p, f);
        gnomon_layout l;
        ASSERT_OK(ctx,
                  gnomon_layout_check(ctx, &gnomon_lsh_file, good.data, (int64_t)good.size, &l));
        const int file = open("a.idx", O_WRONLY);
        assert_true(file >= 0);
        uint64_t kinds = 0;
        for (size_t at = 0; at < good.size; at += f % 4 == 0 ? 1 : 3) {
            const unsigned char flipped = good.data[at] ^ (unsigned char)(1u << (at % 8));
            const bool inside = at >= GNOMON_LSH_HEADER && at < (size_t)l.table;
            named n = {"", 0, 0};
            if (inside) {
                const gnomon_section s = section_of(&l, (int64_t)at);
                const gnomon_section_name name = gnomon_section_name_of(s.kind, s.number);
                snprintf(n.wanted, sizeof n.wanted, "%s",
                         s.kind != 0 ? name.text : "section table");
                kinds |= UINT64_C(1) << s.kind;
            }
            assert_int_equal(pwrite(file, &flipped, 1, (off_t)at), 1);
            const gnomon_status status = gnomon_lsh_check(ctx, "a.idx", hear, &n);
            assert_int_not_equal(status, GNOMON_OK);
            const char *text = gnomon_last_error(ctx);
            if (inside) {
                assert_int_equal(status, GNOMON_ERROR_DATA);
                if (n.faults != 1 || n.found != 1) fail_msg("byte %zu: %s: %s", at, n.wanted, text);
            } else if (at >= (size_t)l.table) {
                if (!strstr(text, "section table")) fail_msg("byte %zu: %s", at, text);
            } else if (at >= 12) { /* before: mark and version, which are looked at first */
                if (!strstr(text, "header")) fail_msg("byte %zu: %s", at, text);
            }
            if (at % 48 == 0) (void)use_file(p);
            assert_int_equal(pwrite(file, &good.data[at], 1, (off_t)at), 1);
        }
        assert_int_equal(kinds >> 6 & 0x3f, 0x3f); /* removed, tables and settings, all */
        assert_int_equal(kinds >> GNOMON_SECTION_CENTRES, f >= 6);
        close(file);
        ASSERT_OK(ctx, gnomon_lsh_check(ctx, "a.idx", NULL, NULL));
        free(good.data);
    }
    free(p);
}

/* At the sections' ends and beside them, and at many places between. */
static bool is_cut(const gnomon_layout *l, int64_t size)
{
    if (size % 24 == 0 || size < 12) return true;
    for (int64_t i = 0; i < l->sections; i++) {
        const gnomon_section s = gnomon_layout_section(l, i);
        if (llabs(size - s.offset) < 2 || llabs(size - s.offset - s.length) < 2) return true;
    }
    return llabs(size - l->table) < 2 || l->bytes - size < 2;
}

static void cut_files(void **state)
{
    (void)state;
    points *p = make_points(22);
    for (int f = 0; f < FAMILIES; f++) {
        const bytes b = small_file(p, f);
        gnomon_layout l;
        ASSERT_OK(ctx, gnomon_layout_check(ctx, &gnomon_lsh_file, b.data, (int64_t)b.size, &l));
        assert_int_equal(truncate("a.idx", (off_t)b.size + 1), 0);
        assert_int_equal(use_file(p), GNOMON_ERROR_DATA);
        for (size_t size = b.size; size-- > 0;) {
            if (!is_cut(&l, (int64_t)size)) continue;
            assert_int_equal(truncate("a.idx", (off_t)size), 0);
            assert_int_equal(use_file(p), size < 8 ? GNOMON_ERROR_FORMAT : GNOMON_ERROR_TRUNCATED);
        }
        free(b.data);
    }
    free(p);
}

/* ---- made-up files, whose checksums fit ---- */

static void place(unsigned char *to, uint64_t value, int size)
{
    for (int i = 0; i < size; i++)
        to[i] = (unsigned char)(value >> (8 * i));
}

static void seal_header(bytes *b)
{
    place(b->data + 120, gnomon_lsh_checksum(b->data, 120), 8);
}

static void seal(bytes *b, const gnomon_layout *l)
{
    for (int64_t i = 0; i < l->sections; i++) {
        const gnomon_section s = gnomon_layout_section(l, i);
        place(b->data + l->table + i * GNOMON_LSH_ENTRY + 32,
              gnomon_lsh_checksum(b->data + s.offset, (size_t)s.length), 8);
    }
    place(b->data + 56, gnomon_lsh_checksum(b->data + l->table, b->size - (size_t)l->table), 8);
    seal_header(b);
}

#define USED(status, part)                                                                 \
    do {                                                                                   \
        assert_int_equal(use(p, &b), status);                                              \
        if (!strstr(gnomon_last_error(ctx), part)) fail_msg("%s", gnomon_last_error(ctx)); \
        memcpy(b.data, good.data, good.size);                                              \
    } while (0)

static void newer_files_and_strange_numbers(void **state)
{
    (void)state;
    points *p = make_points(23);
    const bytes good = small_file(p, 0);
    gnomon_layout l;
    bytes b = {malloc(good.size), good.size};
    memcpy(b.data, good.data, good.size);
    ASSERT_OK(ctx, gnomon_layout_check(ctx, &gnomon_lsh_file, b.data, (int64_t)b.size, &l));
    assert_int_equal(use(p, &b), GNOMON_OK);
    place(b.data + 8, 2, 4); /* whatever follows */
    USED(GNOMON_ERROR_UNSUPPORTED, "version 2; this library reads version 1");
    place(b.data + 16, 1u << 20 | GNOMON_LSH_CODED | GNOMON_LSH_REMOVED, 8);
    seal_header(&b);
    USED(GNOMON_ERROR_UNSUPPORTED, "features that this library does not know (flags 0x100000)");
    place(b.data + 24, 99, 8); /* flags that may be passed over */
    seal_header(&b);
    USED(GNOMON_OK, "");
    place(b.data + 16, GNOMON_LSH_CODED, 8);
    seal_header(&b);
    USED(GNOMON_ERROR_DATA, "flags");
    static const uint64_t strange[] = {
        0, 1, 39, 41, UINT32_MAX - 1, UINT32_MAX, INT64_MAX, UINT64_MAX, UINT64_C(1) << 61};
    for (int at = 32; at <= 72; at += 8) {
        for (int i = 0; i < 9; i++) {
            place(b.data + at, strange[i], 8);
            seal_header(&b);
            assert_int_not_equal(use(p, &b), GNOMON_OK);
            memcpy(b.data, good.data, good.size);
        }
    }
    for (int64_t s = 0; s < l.sections; s++) {
        for (int at = 0; at < 32; at += 4) {
            for (int i = 0; i < 9; i++) {
                const int64_t entry = l.table + s * GNOMON_LSH_ENTRY + at;
                place(b.data + entry, strange[i], at < 16 ? 4 : 8);
                if (at % 8 == 4 && at >= 16) place(b.data + entry - 4, strange[i], 8);
                seal_header(&b);
                place(b.data + 56, gnomon_lsh_checksum(b.data + l.table, b.size - (size_t)l.table),
                      8);
                seal_header(&b);
                if (memcmp(b.data, good.data, good.size) != 0)
                    assert_int_not_equal(use(p, &b), GNOMON_OK);
                memcpy(b.data, good.data, good.size);
            }
        }
    }
    write_bytes("a.idx", "\x93NUMPY and so on", 15);
    gnomon_lsh *index;
    ASSERT_FAILS(ctx, gnomon_lsh_open(ctx, "a.idx", &index), GNOMON_ERROR_FORMAT,
                 "a.idx: not an index");
    ASSERT_FAILS(ctx, gnomon_lsh_open(ctx, "none.idx", &index), GNOMON_ERROR_NOT_FOUND, "none.idx");
    ASSERT_FAILS(ctx, gnomon_lsh_open(ctx, ".", &index), GNOMON_ERROR_IO, "folder");
    ASSERT_FAILS(ctx, gnomon_lsh_open(ctx, "/dev/null", &index), GNOMON_ERROR_UNSUPPORTED,
                 "must be a file");
    ASSERT_FAILS(ctx, gnomon_lsh_open(ctx, NULL, &index), GNOMON_ERROR_ARGUMENT, "path");
    free(b.data);
    free(good.data);
    free(p);
}

/* The settings, told otherwise in as many letters. */
static void strange_settings(void **state)
{
    (void)state;
    points *p = make_points(24);
    static const struct {
        const char *from, *to, *part;
    } changes[] = {{"\"l2\"", "\"ip\"", "ip"},
                   {"\"metric\"", "\"metrik\"", "settings"},
                   {"\"dim\": 12", "\"dim\": 10", "coordinates"},
                   {"\"dim\": 12", "\"dim\": -2", "dim"},
                   {"\"width\": 7.", "\"width\":-7.", "width"},
                   {"\"width\": 7", "\"width\":\"\"", "settings"},
                   {"\"tables\": 2", "\"tables\": 3", ""},
                   {"\"tables\": 2", "\"tables\": 0", "tables"},
                   {"\"broad\": 2", "\"broad\": 0", "coarse"},
                   {"\"codes\": 8", "\"codes\": 9", "codes"},
                   {"\"kind\": \"gaussian\"", "\"kind\": \"kroneckr\"", "kind"},
                   {"\"probes\": 7", "\"probes\":-7", "probes"},
                   {"\"verified\": 20", "\"verified\": \"\"", "verified"},
                   {"\"seed\": 5", "\"seed\":-5", "seed"},
                   {"{", "[", "settings"}};
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        bytes b = small_file(p, 0);
        gnomon_layout l;
        ASSERT_OK(ctx, gnomon_layout_check(ctx, &gnomon_lsh_file, b.data, (int64_t)b.size, &l));
        const gnomon_section s = gnomon_layout_section(&l, l.sections - 1);
        assert_int_equal(strlen(changes[i].from), strlen(changes[i].to));
        char *at =
            memmem(b.data + s.offset, (size_t)s.length, changes[i].from, strlen(changes[i].from));
        if (!at) fail_msg("%s is not in the settings", changes[i].from);
        memcpy(at, changes[i].to, strlen(changes[i].to));
        seal(&b, &l);
        const gnomon_status status = use(p, &b);
        if ((status != GNOMON_ERROR_DATA && status != GNOMON_ERROR_UNSUPPORTED) ||
            !strstr(gnomon_last_error(ctx), changes[i].part))
            fail_msg("%s: %s: %s", changes[i].to, gnomon_status_name(status),
                     gnomon_last_error(ctx));
        free(b.data);
    }
    free(p);
}

/* Centres that are not as the settings tell, or no numbers; and settings that tell of none. */
static void strange_centres(void **state)
{
    (void)state;
    points *p = make_points(28);
    static const struct {
        const char *from, *to, *part;
    } changes[] = {{"\"centres\": 5", "\"centres\": 4", "centres"},
                   {"\"centres\": 5", "\"centres\": 6", "centres"},
                   {"\"centres\": 5", "\"centres\": 0", "centre_count is 0"},
                   {"\"centres\": 5", "\"centres\":-5", "centres"},
                   {"\"centres\": 5", "\"centrez\": 5", "settings"},
                   {"\"dim\": 12", "\"dim\": 10", "centres"},
                   {"\"k-means\"", "\"simhash\"", "settings"},
                   {"\"sides\": 0,", "\"sides\": 4,", "sides"},
                   {"\"tables\": 1", "\"tables\": 2", "settings"},
                   {NULL, NULL, "centres: NaN or infinity"},
                   {NULL, NULL, "there is no section of the 5 centres"},
                   {NULL, NULL, "section 2 is not that of the removed"},
                   {NULL, NULL, "flags are 0x4; 0x14 are due"}};
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        bytes b = small_file(p, 6);
        gnomon_layout l;
        ASSERT_OK(ctx, gnomon_layout_check(ctx, &gnomon_lsh_file, b.data, (int64_t)b.size, &l));
        const gnomon_section s = gnomon_layout_section(&l, l.sections - 1);
        const gnomon_section centres = gnomon_layout_section(&l, 1);
        assert_int_equal(centres.kind, GNOMON_SECTION_CENTRES);
        assert_int_equal(centres.length, CENTRES * D * 4);
        const float nan = NAN;
        if (changes[i].from != NULL) {
            assert_int_equal(strlen(changes[i].from), strlen(changes[i].to));
            char *at = memmem(b.data + s.offset, (size_t)s.length, changes[i].from,
                              strlen(changes[i].from));
            if (!at) fail_msg("%s is not in the settings", changes[i].from);
            memcpy(at, changes[i].to, strlen(changes[i].to));
        } else if (i == 9) {
            memcpy(b.data + centres.offset + 44, &nan, 4);
        } else if (i == 10) {
            place(b.data + l.table + GNOMON_LSH_ENTRY, GNOMON_SECTION_SCALE, 4);
        } else if (i == 11) { /* a second one behind it */
            place(b.data + l.table + 2 * GNOMON_LSH_ENTRY, GNOMON_SECTION_CENTRES, 4);
        } else {
            place(b.data + 16, GNOMON_LSH_REMOVED, 8);
        }
        seal(&b, &l);
        assert_int_equal(use(p, &b), GNOMON_ERROR_DATA);
        if (!strstr(gnomon_last_error(ctx), changes[i].part))
            fail_msg("%d: %s", (int)i, gnomon_last_error(ctx));
        assert_int_equal(gnomon_lsh_check(ctx, "a.idx", NULL, NULL), GNOMON_ERROR_DATA);
        free(b.data);
    }
    /* a centre elsewhere: its points belong to other lists */
    gnomon_layout l;
    gnomon_lsh *index;
    named n = {"table", 0, 0};
    bytes b = small_file(p, 6);
    ASSERT_OK(ctx, gnomon_layout_check(ctx, &gnomon_lsh_file, b.data, (int64_t)b.size, &l));
    float far[D];
    for (int j = 0; j < D; j++)
        far[j] = 1e9f;
    for (int c = 0; c < CENTRES - 1; c++)
        memcpy(b.data + gnomon_layout_section(&l, 1).offset + c * sizeof far, far, sizeof far);
    seal(&b, &l);
    write_bytes("a.idx", b.data, b.size);
    ASSERT_OK(ctx, gnomon_lsh_open(ctx, "a.idx", &index));
    gnomon_lsh_destroy(index);
    assert_int_equal(gnomon_lsh_check(ctx, "a.idx", hear, &n), GNOMON_ERROR_DATA);
    assert_true(n.faults == 1 && n.found == 1);
    free(b.data);
    /* of another family there are none */
    b = small_file(p, 0);
    ASSERT_OK(ctx, gnomon_layout_check(ctx, &gnomon_lsh_file, b.data, (int64_t)b.size, &l));
    place(b.data + 16, GNOMON_LSH_CODED | GNOMON_LSH_REMOVED | GNOMON_LSH_CENTRED, 8);
    seal(&b, &l);
    assert_int_equal(use(p, &b), GNOMON_ERROR_DATA);
    free(b.data);
    free(p);
}

/* What only check sees: all that a query relies on is as it must be. */
static void check_sees_more(void **state)
{
    (void)state;
    points *p = make_points(25);
    const bytes good = small_file(p, 0);
    gnomon_layout l;
    gnomon_lsh *index;
    bytes b = {malloc(good.size), good.size};
    ASSERT_OK(ctx, gnomon_layout_check(ctx, &gnomon_lsh_file, good.data, (int64_t)good.size, &l));
    for (int round = 0; round < 3; round++) {
        named n = {"", 0, 0};
        const gnomon_section s = gnomon_layout_section(&l, 0), ids = gnomon_layout_section(&l, 4);
        memcpy(b.data, good.data, good.size);
        static const char *const wanted[] = {"points", "points", "table"};
        const float nan = NAN;
        float x;
        if (round == 0) memcpy(b.data + s.offset + 16, &nan, 4);
        if (round == 1) { /* another point: it no longer is in its buckets */
            memcpy(&x, b.data + s.offset + 16, 4);
            x += 100;
            memcpy(b.data + s.offset + 16, &x, 4);
        }
        if (round == 2) { /* two buckets of one point change places */
            assert_int_equal(ids.kind, GNOMON_SECTION_IDS);
            uint32_t id[SMALL];
            memcpy(id, b.data + ids.offset, sizeof id);
            const uint32_t swap = id[0];
            id[0] = id[SMALL - 1];
            id[SMALL - 1] = swap;
            memcpy(b.data + ids.offset, id, sizeof id);
        }
        memcpy(n.wanted, round == 1 ? "table" : wanted[round], 6);
        seal(&b, &l);
        write_bytes("a.idx", b.data, b.size);
        if (round < 2) {
            ASSERT_OK(ctx, gnomon_lsh_open(ctx, "a.idx", &index));
            gnomon_lsh_destroy(index);
        }
        assert_int_equal(gnomon_lsh_check(ctx, "a.idx", hear, &n), GNOMON_ERROR_DATA);
        assert_true(n.faults > 0 && n.found == n.faults);
    }
    free(b.data);
    free(good.data);
    free(p);
}

/* Anything may stand anywhere. */
static void made_up_files(void **state)
{
    (void)state;
    points *p = make_points(26);
    uint64_t seed = 27;
    int sound = 0, refused = 0;
    for (int f = 0; f < FAMILIES; f++) {
        const bytes good = small_file(p, f);
        gnomon_layout l;
        ASSERT_OK(ctx,
                  gnomon_layout_check(ctx, &gnomon_lsh_file, good.data, (int64_t)good.size, &l));
        bytes b = {malloc(good.size), good.size};
        for (int round = 0; round < 150; round++) {
            memcpy(b.data, good.data, good.size);
            for (uint64_t i = next_random(&seed) % 3; i < 3; i++) {
                const gnomon_section s =
                    gnomon_layout_section(&l, (int64_t)(next_random(&seed) % (uint64_t)l.sections));
                if (s.length < 8) continue;
                const size_t at =
                    (size_t)s.offset + (size_t)(next_random(&seed) % (uint64_t)(s.length - 7));
                const uint64_t what = next_random(&seed);
                const int size = 1 << what % 4;
                place(b.data + at,
                      what % 5 == 0   ? UINT64_MAX
                      : what % 5 == 1 ? 0
                                      : what >> 9,
                      size);
            }
            seal(&b, &l);
            if (use(p, &b) == GNOMON_OK)
                sound++;
            else
                refused++;
            (void)gnomon_lsh_check(ctx, "a.idx", NULL, NULL);
        }
        free(b.data);
        free(good.data);
    }
    assert_true(sound > 50 && refused > 50);
    free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(flipped_bytes_are_named),
                                       cmocka_unit_test(cut_files),
                                       cmocka_unit_test(newer_files_and_strange_numbers),
                                       cmocka_unit_test(strange_settings),
                                       cmocka_unit_test(strange_centres),
                                       cmocka_unit_test(check_sees_more),
                                       cmocka_unit_test(made_up_files)};
    return cmocka_run_group_tests(tests, open_context, close_context);
}

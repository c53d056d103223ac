/* Indexes of sparse points: answers against every pair in fp64 after any additions, removals and
 * compactions, files with the bytes of a fresh build, and damage in every section. */
#include "lsh/file/file.h"
#include "sparse_testing.h"

#include <gnomon/sparse_index.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BASE = 260, QUERIES = 12, D = 150 };

/* What an index should have. */
typedef struct model {
    sparse_rows rows;
    int64_t points;
    bool gone[BASE];
} model;

static int64_t live_of(const model *m)
{
    int64_t live = 0;
    for (int64_t i = 0; i < m->points; i++)
        live += !m->gone[i];
    return live;
}

static gnomon_status ask(gnomon_context *ctx, const gnomon_sparse_index *index,
                         const gnomon_csr *queries, const gnomon_search_options *o,
                         gnomon_neighbors *found)
{
    *found = (gnomon_neighbors){.struct_size = sizeof *found};
    return gnomon_sparse_index_query_csr(ctx, index, queries, o, found);
}

/* The answers are those of every pair with a point that is there. */
static void compare(gnomon_context *ctx, const gnomon_sparse_index *index, const model *m,
                    const sparse_rows *queries, gnomon_search_options o)
{
    gnomon_neighbors found;
    answer *all = malloc(BASE * sizeof *all);
    expect(ctx, ask(ctx, index, &queries->csr, &o, &found), GNOMON_OK);
    assert_int_equal(found.base, m->points);
    answer_sign = sparse_larger(o.metric) ? -1 : 1;
    for (int64_t q = 0; q < queries->csr.rows; q++) {
        int64_t count = 0, wanted = 0;
        for (int64_t i = 0; i < m->points; i++) {
            if (m->gone[i] || (o.exclude >= 0 && i == o.exclude + q)) continue;
            if (o.filter != NULL && (i >= o.filter_bits || !(o.filter[i / 8] >> (i % 8) & 1)))
                continue;
            all[count++] = (answer){
                distance_of(o.metric, queries->dense + q * D, m->rows.dense + i * D, D), i};
        }
        qsort(all, (size_t)count, sizeof *all, by_distance);
        while (wanted < count &&
               (o.k > 0 ? wanted < o.k : sparse_within(o.metric, all[wanted].distance, o.radius)))
            wanted++;
        assert_int_equal(found.offsets[q + 1] - found.offsets[q], wanted);
        for (int64_t r = 0; r < wanted; r++) {
            const int64_t at = found.offsets[q] + r;
            if (found.ids[at] != all[r].id ||
                memcmp(&found.distances[at], &all[r].distance, sizeof(double)) != 0)
                fail_msg("metric %d, query %lld, rank %lld: %lld at %.17g, want %lld at %.17g",
                         (int)o.metric, (long long)q, (long long)r, (long long)found.ids[at],
                         found.distances[at], (long long)all[r].id, all[r].distance);
        }
    }
    free(all);
    gnomon_neighbors_free(ctx, &found);
}

static gnomon_search_options options_of(gnomon_metric metric, int64_t k, double radius)
{
    gnomon_search_options o = GNOMON_SEARCH_OPTIONS_INIT;
    o.metric = metric;
    o.k = k;
    o.radius = radius;
    return o;
}

/* k, radius, filter, exclusion; all queries, and one at a time. */
static void every_question(gnomon_context *ctx, const gnomon_sparse_index *index, const model *m,
                           const sparse_rows *queries, gnomon_metric metric)
{
    const int64_t live = live_of(m);
    uint8_t allowed[BASE / 8];
    for (size_t i = 0; i < sizeof allowed; i++)
        allowed[i] = (uint8_t)(0xb7 * (i + 1));
    for (int64_t k = 1; k <= live; k = k == 1 ? 7 : k == 7 ? live : live + 1)
        compare(ctx, index, m, queries, options_of(metric, k, 0));
    for (int64_t i = 0; i < m->points; i += 97) { /* a radius that falls on a distance */
        gnomon_search_options o =
            options_of(metric, 0, distance_of(metric, queries->dense, m->rows.dense + i * D, D));
        compare(ctx, index, m, queries, o);
        o.filter = allowed;
        o.filter_bits = 8 * (int64_t)sizeof allowed - 3;
        compare(ctx, index, m, queries, o);
        o.exclude = 1;
        compare(ctx, index, m, queries, o);
    }
    for (int64_t q = 0; q < QUERIES && live > 2; q++) {
        sparse_rows one = *queries;
        one.csr = sparse_part(&queries->csr, q, 1);
        one.dense += q * D;
        compare(ctx, index, m, &one, options_of(metric, 2, 0));
    }
}

static void answers_are_those_of_every_pair(void **state)
{
    (void)state;
    for (int kind = 0; kind < SPARSE_KINDS; kind++)
        for (int wide = 0; wide < 2; wide++) {
            sparse_rows queries = sparse_make((sparse_kind)kind, QUERIES, D, wide != 0, 32);
            model m = {.rows = sparse_make((sparse_kind)kind, BASE, D, wide != 0, 31),
                       .points = BASE};
            for (int t = 0; t < SPARSE_METRICS; t++) {
                gnomon_context *ctx = context_of(1 + t % 3, 0);
                gnomon_sparse_index *index;
                expect(ctx, gnomon_sparse_index_create(ctx, sparse_metrics[t], &m.rows.csr, &index),
                       GNOMON_OK);
                every_question(ctx, index, &m, &queries, sparse_metrics[t]);
                if (!wide) { /* dense queries are sparse ones */
                    const gnomon_search_options o = options_of(sparse_metrics[t], 5, 0);
                    const gnomon_matrix dense =
                        gnomon_matrix_rowmajor(queries.dense, GNOMON_F64, QUERIES, D);
                    gnomon_neighbors a, b = {.struct_size = sizeof b};
                    expect(ctx, ask(ctx, index, &queries.csr, &o, &a), GNOMON_OK);
                    expect(ctx, gnomon_sparse_index_query(ctx, index, &dense, &o, &b), GNOMON_OK);
                    assert_memory_equal(a.ids, b.ids, QUERIES * 5 * sizeof *a.ids);
                    assert_memory_equal(a.distances, b.distances, QUERIES * 5 * sizeof(double));
                    gnomon_neighbors_free(ctx, &a);
                    gnomon_neighbors_free(ctx, &b);
                }
                gnomon_sparse_index_destroy(index);
                gnomon_context_destroy(ctx);
            }
            sparse_drop(&m.rows);
            sparse_drop(&queries);
        }
}

/* ---- files ---- */

typedef struct bytes {
    unsigned char *data;
    size_t size;
} bytes;

static bytes read_bytes(const char *path)
{
    struct stat st;
    const int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &st), 0);
    bytes b = {malloc((size_t)st.st_size), (size_t)st.st_size};
    assert_int_equal(read(fd, b.data, b.size), b.size);
    close(fd);
    return b;
}

static void write_bytes(const char *path, const bytes *b)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, b->data, b->size), b->size);
    close(fd);
}

static void same_file(const char *a, const char *b)
{
    bytes x = read_bytes(a), y = read_bytes(b);
    assert_int_equal(x.size, y.size);
    assert_memory_equal(x.data, y.data, x.size);
    free(x.data);
    free(y.data);
}

static int own_folder(void **state)
{
    char folder[] = "/tmp/gnomon-test-XXXXXX";
    (void)state;
    assert_non_null(mkdtemp(folder));
    return chdir(folder);
}

static int leave_folder(void **state)
{
    char folder[256];
    (void)state;
    assert_non_null(getcwd(folder, sizeof folder));
    unlink("a.gnx");
    unlink("b.gnx");
    assert_int_equal(chdir("/"), 0);
    return rmdir(folder); /* what is left there is a test's mistake */
}

/* The rows of the model, those of removed points empty where 'erased', and the removals. */
static void build(gnomon_context *ctx, gnomon_metric metric, const model *m, const bool *erased,
                  const char *path)
{
    gnomon_sparse_builder *b;
    const int64_t none[] = {0, 0};
    expect(ctx, gnomon_sparse_builder_create(ctx, metric, m->rows.csr.cols, path, &b), GNOMON_OK);
    for (int64_t i = 0; i < m->points; i++) {
        gnomon_csr one = sparse_part(&m->rows.csr, i, 1);
        if (erased[i]) one.offsets = none;
        expect(ctx, gnomon_sparse_builder_add_csr(b, &one), GNOMON_OK);
        if (m->gone[i]) expect(ctx, gnomon_sparse_builder_remove(b, &i, 1), GNOMON_OK);
    }
    expect(ctx, gnomon_sparse_builder_finish(b), GNOMON_OK);
}

static gnomon_sparse_index *open_index(gnomon_context *ctx, const char *path)
{
    gnomon_sparse_index *index;
    expect(ctx, gnomon_sparse_index_open(ctx, path, &index), GNOMON_OK);
    return index;
}

/* Steps drawn at random on one file; after each the file has the bytes of a fresh build. */
static void change_at_random(gnomon_metric metric, sparse_kind kind, uint64_t seed)
{
    gnomon_context *ctx = context_of(2, seed % 2 ? (int64_t)1 << 16 : 0);
    sparse_rows queries = sparse_make(kind, QUERIES, D, seed % 3 == 0, seed + 1);
    model m = {.rows = sparse_make(kind, BASE, D, seed % 3 == 0, seed)};
    bool erased[BASE] = {false};
    build(ctx, metric, &m, erased, "a.gnx"); /* without a point */
    for (int step = 0; step < 5; step++) {
        gnomon_sparse_index *index = open_index(ctx, "a.gnx");
        gnomon_sparse_builder *b;
        const bool compact = step % 4 == 3;
        expect(ctx, gnomon_sparse_builder_extend(ctx, index, "a.gnx", compact, &b), GNOMON_OK);
        for (int64_t i = 0; i < m.points && compact; i++)
            erased[i] = erased[i] || m.gone[i];
        int64_t more = (int64_t)(draw_bits(&seed) % 60);
        if (more > BASE - m.points) more = BASE - m.points;
        const gnomon_csr part = sparse_part(&m.rows.csr, m.points, more);
        expect(ctx, gnomon_sparse_builder_add_csr(b, &part), GNOMON_OK);
        m.points += more;
        for (int i = 0; i < 9 && m.points > 0; i++) {
            const int64_t id = (int64_t)(draw_bits(&seed) % (uint64_t)m.points);
            m.gone[id] = true;
            expect(ctx, gnomon_sparse_builder_remove(b, &id, 1), GNOMON_OK);
        }
        expect(ctx, gnomon_sparse_builder_finish(b), GNOMON_OK);
        gnomon_sparse_index_destroy(index);
        expect(ctx, gnomon_sparse_index_check(ctx, "a.gnx", NULL, NULL), GNOMON_OK);
        build(ctx, metric, &m, erased, "b.gnx");
        same_file("a.gnx", "b.gnx");
        if (step % 4 != 0) continue;
        index = open_index(ctx, "a.gnx");
        every_question(ctx, index, &m, &queries, metric);
        gnomon_sparse_index_destroy(index);
    }
    sparse_drop(&m.rows);
    sparse_drop(&queries);
    gnomon_context_destroy(ctx);
}

static void changes_are_those_of_a_fresh_build(void **state)
{
    (void)state;
    for (int kind = 0; kind < SPARSE_KINDS; kind++)
        for (int t = 0; t < SPARSE_METRICS; t++)
            change_at_random(sparse_metrics[t], (sparse_kind)kind, (uint64_t)(kind * 5 + t));
}

/* An index in memory is written as one that came to a file point by point. */
static void memory_and_file_are_the_same(void **state)
{
    (void)state;
    gnomon_context *ctx = context_of(2, 0);
    model m = {.rows = sparse_make(SPARSE_TEXT, BASE, D, false, 3), .points = BASE};
    const bool none[BASE] = {false};
    gnomon_sparse_index *index;
    gnomon_sparse_builder *b;
    expect(ctx, gnomon_sparse_index_create(ctx, GNOMON_COSINE, &m.rows.csr, &index), GNOMON_OK);
    expect(ctx, gnomon_sparse_builder_extend(ctx, index, "a.gnx", 0, &b), GNOMON_OK);
    expect(ctx, gnomon_sparse_builder_finish(b), GNOMON_OK);
    build(ctx, GNOMON_COSINE, &m, none, "b.gnx");
    same_file("a.gnx", "b.gnx");
    gnomon_sparse_index_info x = {.struct_size = sizeof x}, y = {.struct_size = sizeof y};
    gnomon_sparse_index *opened = open_index(ctx, "b.gnx");
    gnomon_sparse_index_describe(index, &x);
    gnomon_sparse_index_describe(opened, &y);
    assert_memory_equal(&x, &y, sizeof x);
    assert_int_equal(x.points, BASE);
    assert_int_equal(x.dim, D);
    gnomon_sparse_index_destroy(opened);
    gnomon_sparse_index_destroy(index);
    sparse_drop(&m.rows);
    gnomon_context_destroy(ctx);
}

static void refusals(void **state)
{
    (void)state;
    gnomon_context *ctx = context_of(1, 0);
    const int64_t offsets[] = {0, 2, 3};
    int64_t columns[] = {0, 2, 1};
    double values[] = {1, 2, 3};
    gnomon_csr rows = {2, 3, offsets, columns, values, GNOMON_F64};
    gnomon_sparse_index *index;
    gnomon_sparse_builder *b, *other;
    gnomon_neighbors found;
    expect(ctx, gnomon_sparse_index_create(ctx, GNOMON_JACCARD, &rows, &index),
           GNOMON_ERROR_ARGUMENT);
    values[1] = NAN;
    expect(ctx, gnomon_sparse_index_create(ctx, GNOMON_IP, &rows, &index), GNOMON_ERROR_NONFINITE);
    assert_null(index);
    expect(ctx, gnomon_sparse_builder_create(ctx, GNOMON_IP, 3, "a.gnx", &b), GNOMON_OK);
    expect(ctx, gnomon_sparse_builder_add_csr(b, &rows), GNOMON_ERROR_NONFINITE);
    values[1] = 0x1p501;
    expect(ctx, gnomon_sparse_builder_add_csr(b, &rows), GNOMON_ERROR_UNSUPPORTED);
    values[1] = 2;
    columns[2] = 3;
    expect(ctx, gnomon_sparse_builder_add_csr(b, &rows), GNOMON_ERROR_DATA);
    columns[2] = 1;
    rows.cols = 4;
    expect(ctx, gnomon_sparse_builder_add_csr(b, &rows), GNOMON_ERROR_SHAPE);
    rows.cols = 3;
    const int64_t id = 2;
    expect(ctx, gnomon_sparse_builder_add_csr(b, &rows), GNOMON_OK);
    expect(ctx, gnomon_sparse_builder_remove(b, &id, 1), GNOMON_ERROR_ARGUMENT);
    expect(ctx, gnomon_sparse_builder_finish(b), GNOMON_OK);
    index = open_index(ctx, "a.gnx");
    gnomon_sparse_index_info info = {.struct_size = sizeof info};
    gnomon_sparse_index_describe(index, &info);
    assert_int_equal(info.points, 2); /* what was refused is not there */
    assert_int_equal(info.nonzeros, 3);
    gnomon_search_options o = options_of(GNOMON_COSINE, 1, 0);
    expect(ctx, ask(ctx, index, &rows, &o, &found), GNOMON_ERROR_ARGUMENT);
    o = options_of(GNOMON_IP, 3, 0);
    expect(ctx, ask(ctx, index, &rows, &o, &found), GNOMON_ERROR_ARGUMENT);
    rows.cols = 5;
    o.k = 1;
    expect(ctx, ask(ctx, index, &rows, &o, &found), GNOMON_ERROR_SHAPE);
    /* one change at a time, and none of a file that is another by now */
    expect(ctx, gnomon_sparse_builder_extend(ctx, index, "a.gnx", 0, &b), GNOMON_OK);
    expect(ctx, gnomon_sparse_builder_extend(ctx, index, "a.gnx", 0, &other), GNOMON_ERROR_BUSY);
    expect(ctx, gnomon_sparse_builder_create(ctx, GNOMON_IP, 3, "a.gnx", &other),
           GNOMON_ERROR_BUSY);
    expect(ctx, gnomon_sparse_builder_finish(b), GNOMON_OK);
    expect(ctx, gnomon_sparse_builder_extend(ctx, index, "a.gnx", 0, &other), GNOMON_ERROR_BUSY);
    gnomon_sparse_index_destroy(index);
    expect(ctx, gnomon_sparse_builder_create(ctx, GNOMON_IP, 0, "b.gnx", &b),
           GNOMON_ERROR_ARGUMENT);
    expect(ctx, gnomon_sparse_builder_create(ctx, GNOMON_IP, ((int64_t)1 << 56) + 1, "b.gnx", &b),
           GNOMON_ERROR_ARGUMENT);
    gnomon_lsh *hashed;
    expect(ctx, gnomon_lsh_open(ctx, "a.gnx", &hashed), GNOMON_ERROR_FORMAT);
    gnomon_context_destroy(ctx);
}

/* ---- damage ---- */

typedef struct heard {
    char section[64];
    int faults;
} heard;

static void hear(void *user, const char *section, const char *fault)
{
    heard *h = user;
    (void)fault;
    h->faults++;
    snprintf(h->section, sizeof h->section, "%s", section);
}

static bytes small_file(gnomon_context *ctx, gnomon_metric metric, sparse_rows *rows)
{
    model m = {.rows = sparse_make(SPARSE_TEXT, 40, 60, false, 8), .points = 40};
    const bool none[BASE] = {false};
    m.gone[7] = m.gone[12] = true;
    build(ctx, metric, &m, none, "a.gnx");
    *rows = m.rows;
    return read_bytes("a.gnx");
}

/* The section that byte 'at' belongs to, or that it lies before; kind 0: the table. */
static int64_t section_at(const gnomon_layout *l, int64_t at)
{
    int64_t i = 0;
    while (i < l->sections) {
        const gnomon_section s = gnomon_layout_section(l, i);
        if (at < s.offset + s.length) break;
        i++;
    }
    return i;
}

static void flipped_bytes_are_named(void **state)
{
    (void)state;
    gnomon_context *ctx = context_of(1, 0);
    for (int t = 0; t < SPARSE_METRICS; t++) {
        sparse_rows rows;
        bytes file = small_file(ctx, sparse_metrics[t], &rows);
        gnomon_layout l;
        expect(ctx,
               gnomon_layout_check(ctx, &gnomon_sparse_file, file.data, (int64_t)file.size, &l),
               GNOMON_OK);
        const int fd = open("a.gnx", O_WRONLY);
        for (size_t at = (size_t)t; at < file.size; at += SPARSE_METRICS) {
            const unsigned char flipped = file.data[at] ^ (unsigned char)(1u << (at % 8));
            assert_int_equal(pwrite(fd, &flipped, 1, (off_t)at), 1);
            heard h = {"", 0};
            const gnomon_status status = gnomon_sparse_index_check(ctx, "a.gnx", hear, &h);
            assert_int_not_equal(status, GNOMON_OK);
            if (at >= GNOMON_LSH_HEADER && at < (size_t)l.table) {
                const int64_t s = section_at(&l, (int64_t)at);
                const gnomon_section_name name = gnomon_section_name_of(
                    s < l.sections ? gnomon_layout_section(&l, s).kind : (gnomon_section_kind)0, 0);
                assert_int_equal(h.faults, 1);
                assert_string_equal(h.section, s < l.sections ? name.text : "section table");
            }
            assert_int_equal(pwrite(fd, &file.data[at], 1, (off_t)at), 1);
        }
        close(fd);
        expect(ctx, gnomon_sparse_index_check(ctx, "a.gnx", NULL, NULL), GNOMON_OK);
        free(file.data);
        sparse_drop(&rows);
    }
    gnomon_context_destroy(ctx);
}

static void put_number(unsigned char *to, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        to[i] = (unsigned char)(value >> (8 * i));
}

/* The checksums of a file whose sections were changed. */
static void sign(unsigned char *data, gnomon_layout *l)
{
    for (int64_t i = 0; i < l->sections; i++) {
        const gnomon_section s = gnomon_layout_section(l, i);
        put_number(data + l->table + i * GNOMON_LSH_ENTRY + 32,
                   gnomon_lsh_checksum(data + s.offset, (size_t)s.length));
    }
    put_number(data + 56,
               gnomon_lsh_checksum(data + l->table, (size_t)(l->sections * GNOMON_LSH_ENTRY)));
    put_number(data + 120, gnomon_lsh_checksum(data, 120));
}

/* An index whose file is not sound answers or tells that it is damaged. */
static void question(gnomon_context *ctx, const gnomon_sparse_index *index,
                     const gnomon_csr *queries, int64_t k, bool sound)
{
    gnomon_neighbors found;
    gnomon_sparse_index_info info = {.struct_size = sizeof info};
    gnomon_sparse_index_describe(index, &info);
    gnomon_csr fitting = *queries;
    const gnomon_search_options o = options_of(info.metric, k, 1);
    if (info.dim < queries->cols) return;
    fitting.cols = info.dim; /* the settings may tell of others */
    const gnomon_status status = ask(ctx, index, &fitting, &o, &found);
    if (status != GNOMON_OK && (status != GNOMON_ERROR_DATA || sound))
        fail_msg("a %s file: %s", sound ? "sound" : "damaged", gnomon_last_error(ctx));
    if (status == GNOMON_OK) gnomon_neighbors_free(ctx, &found);
}

/* Files made by somebody else: the checksums fit. No query reads outside, and what the check
 * finds sound is, byte for byte, what a builder writes. */
static void forged_files_are_refused(void **state)
{
    (void)state;
    gnomon_context *ctx = context_of(2, 0);
    uint64_t draws = 5;
    for (int t = 0; t < SPARSE_METRICS; t++) {
        sparse_rows rows;
        bytes file = small_file(ctx, sparse_metrics[t], &rows);
        gnomon_layout l;
        unsigned char *forged = malloc(file.size);
        int opened = 0, refused = 0;
        expect(ctx, gnomon_layout_check(ctx, &gnomon_sparse_file, forged, 0, &l),
               GNOMON_ERROR_FORMAT);
        for (int64_t trial = 0; trial < 300; trial++) {
            memcpy(forged, file.data, file.size);
            expect(ctx,
                   gnomon_layout_check(ctx, &gnomon_sparse_file, forged, (int64_t)file.size, &l),
                   GNOMON_OK);
            const gnomon_section s = gnomon_layout_section(&l, trial % l.sections);
            if (s.length == 0) continue;
            unsigned char *at = forged + s.offset + draw_bits(&draws) % (uint64_t)s.length;
            const unsigned char before = *at;
            *at ^= (unsigned char)(draw_bits(&draws) % 255 + 1);
            if (draw_bits(&draws) % 4 == 0) *at = 0xff;
            if (*at == before) continue;
            sign(forged, &l);
            const bytes b = {forged, file.size};
            write_bytes("b.gnx", &b);
            const bool sound = gnomon_sparse_index_check(ctx, "b.gnx", NULL, NULL) == GNOMON_OK;
            gnomon_sparse_index *index;
            const gnomon_status status = gnomon_sparse_index_open(ctx, "b.gnx", &index);
            if (status != GNOMON_OK) {
                assert_int_equal(status, GNOMON_ERROR_DATA);
                assert_false(sound);
                refused++;
                continue;
            }
            opened++;
            question(ctx, index, &rows.csr, 5, sound);
            question(ctx, index, &rows.csr, 0, sound);
            gnomon_sparse_builder *again;
            if (gnomon_sparse_builder_extend(ctx, index, "a.gnx", !sound, &again) != GNOMON_OK) {
                assert_false(sound);
            } else if (sound) { /* points that may be others, and what belongs to them */
                expect(ctx, gnomon_sparse_builder_finish(again), GNOMON_OK);
                same_file("a.gnx", "b.gnx");
            } else {
                gnomon_sparse_builder_abort(again);
            }
            gnomon_sparse_index_destroy(index);
        }
        assert_true(opened > 50 && refused > 20);
        free(forged);
        free(file.data);
        sparse_drop(&rows);
    }
    gnomon_context_destroy(ctx);
}

/* ---- memory that runs out ---- */

typedef struct misers {
    int64_t left, out; /* allocations until one is refused; blocks that are there */
} misers;

static void *miser_allocate(void *user, size_t size, size_t alignment)
{
    misers *m = user;
    if (m->left-- == 0) return NULL;
    m->out++;
    return aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

static void miser_release(void *user, void *block, size_t size)
{
    misers *m = user;
    (void)size;
    m->out--;
    free(block);
}

static gnomon_status answer_and_drop(gnomon_context *ctx, gnomon_status status,
                                     gnomon_sparse_index *index, const gnomon_csr *queries)
{
    gnomon_neighbors found;
    const gnomon_search_options o = options_of(GNOMON_COSINE, 4, 0);
    if (status == GNOMON_OK) status = ask(ctx, index, queries, &o, &found);
    if (status == GNOMON_OK) gnomon_neighbors_free(ctx, &found);
    return status;
}

/* A file is made, queried, changed in place and checked; an index in memory queried. */
static gnomon_status use_all(gnomon_context *ctx, const gnomon_csr *points)
{
    const int64_t ids[] = {2, 3, 5};
    gnomon_sparse_builder *b = NULL;
    gnomon_sparse_index *index = NULL;
    gnomon_status status =
        gnomon_sparse_builder_create(ctx, GNOMON_COSINE, points->cols, "a.gnx", &b);
    if (status == GNOMON_OK) status = gnomon_sparse_builder_add_csr(b, points);
    if (status == GNOMON_OK) status = gnomon_sparse_builder_remove(b, ids, 2);
    if (status != GNOMON_OK) {
        gnomon_sparse_builder_abort(b);
        return status;
    }
    status = gnomon_sparse_builder_finish(b);
    if (status == GNOMON_OK) status = gnomon_sparse_index_open(ctx, "a.gnx", &index);
    status = answer_and_drop(ctx, status, index, points);
    b = NULL;
    if (status == GNOMON_OK) status = gnomon_sparse_builder_extend(ctx, index, "a.gnx", 1, &b);
    if (status == GNOMON_OK) status = gnomon_sparse_builder_add_csr(b, points);
    if (status == GNOMON_OK) status = gnomon_sparse_builder_remove(b, ids + 2, 1);
    if (status == GNOMON_OK)
        status = gnomon_sparse_builder_finish(b);
    else
        gnomon_sparse_builder_abort(b);
    gnomon_sparse_index_destroy(index);
    if (status == GNOMON_OK) status = gnomon_sparse_index_check(ctx, "a.gnx", NULL, NULL);
    index = NULL;
    if (status == GNOMON_OK)
        status = gnomon_sparse_index_create(ctx, GNOMON_COSINE, points, &index);
    status = answer_and_drop(ctx, status, index, points);
    gnomon_sparse_index_destroy(index);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    gnomon_context *ctx = context_of(1, 0);
    sparse_rows rows = sparse_make(SPARSE_TEXT, 40, 60, false, 8);
    int failures = 0;
    for (int64_t n = 0;; n++) {
        misers m = {n, 0};
        const gnomon_allocator a = {&m, miser_allocate, miser_release};
        gnomon_context_options c = GNOMON_CONTEXT_OPTIONS_INIT;
        c.allocator = &a;
        c.threads = 1;
        c.device = "cpu";
        c.memory_limit = 1 << 20;
        gnomon_context *poor;
        if (gnomon_context_create(&c, &poor) != GNOMON_OK) continue;
        unlink("a.gnx");
        const gnomon_status status = use_all(poor, &rows.csr);
        if (status != GNOMON_OK) {
            if (status != GNOMON_ERROR_MEMORY) fail_msg("%s", gnomon_last_error(poor));
            failures++;
            /* the file is the old one, the new one, or not there */
            if (access("a.gnx", F_OK) == 0)
                expect(ctx, gnomon_sparse_index_check(ctx, "a.gnx", NULL, NULL), GNOMON_OK);
        }
        gnomon_context_destroy(poor);
        assert_int_equal(m.out, 0);
        if (status == GNOMON_OK) break;
    }
    assert_true(failures > 50);
    sparse_drop(&rows);
    gnomon_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_those_of_every_pair),
        cmocka_unit_test(changes_are_those_of_a_fresh_build),
        cmocka_unit_test(memory_and_file_are_the_same),
        cmocka_unit_test(refusals),
        cmocka_unit_test(flipped_bytes_are_named),
        cmocka_unit_test(forged_files_are_refused),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, own_folder, leave_folder);
}

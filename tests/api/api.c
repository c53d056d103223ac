/* What holds of every public function, by calls that calls.py makes from the headers:
 *   valid  the fixture's arguments are taken, so that the other groups test what they say
 *   null   a pointer that is required and is NULL gives ARGUMENT, and the text names it
 *   views  a view that is spoilt (memory that is missing or not aligned, sizes, strides, offsets)
 *          is refused
 *   init   the function beside each GNOMON_..._INIT fills a struct as the macro does, and nothing
 *          behind it
 *   sizes  every struct that begins with its struct_size may be shorter or longer, as
 *          gnomon/base.h says
 * Each call is made in a process of its own. usage: test_api GROUP [FUNCTION] */
#include <gnomon.h>
#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 8 }; /* points, coordinates, rows of the operator */

/* An argument of every type, named as calls.py looks for it: options by their type's name, objects
 * too. */
static const char *const column_names[] = {"id"}, *const signed_files[] = {"signed.sig"},
                         *const corpus_files[] = {"corpus.txt"};

/* ---- structs of other sizes: what the tables tell of them, and how one is given ---- */

typedef struct api_member {
    size_t offset, size;
    int pointer;
    const char *name;
} api_member;

typedef void (*free_function)(gnomon_context *ctx, void *result);

/* Where a call takes a struct that has a struct_size. */
typedef struct api_size {
    const char *name, *type; /* "options.descriptor", "gnomon_descriptor" */
    size_t size;
    const void *defaults; /* NULL: a result */
    int inside;           /* another struct */
    const api_member *members;
    free_function free; /* of a result, NULL: it owns nothing */
} api_size;

enum { POISON = 0xa5, MORE = 64, LONGEST = 2 * 4096 };

typedef struct resizing {
    int place; /* of the call, from 1; 0: none */
    const api_size *what;
    size_t size;
    int tail;           /* the byte behind what the library knows, of longer options */
    bool whole;         /* give the struct that should do the same, in the library's size */
    unsigned char *got; /* a result: where it was to go */
} resizing;

typedef struct fixture {
    gnomon_context *ctx;
    resizing size;
    gnomon_allocator allocator;
    void *out;
    int64_t numbers[2 * N + 2], more_numbers[2 * N], ids[N];
    double reals[N];
    int flags[N];
    float room[3][N * N];
    int32_t hashes[N * N];
    gnomon_matrix matrix[3], values;
    int64_t offsets[N + 1], indices[N], rows_of[N];
    float entries[N];
    gnomon_csr csr[2];
    gnomon_coo coo;
    gnomon_tensor tensor;
    gnomon_named_array named_array;
    gnomon_named_tensor named_tensor;
    int64_t ranks[2], next_row;

    gnomon_context_options context_options;
    gnomon_choose_options choose_options;
    gnomon_gemm_options gemm_options;
    gnomon_hosvd_options hosvd_options;
    gnomon_read_options read_options;
    gnomon_write_options write_options;
    gnomon_join_options join_options, set_join_options;
    gnomon_lsh_functions lsh_functions;
    gnomon_lsh_search_params lsh_search_params;
    gnomon_rabitq_options rabitq_options;
    gnomon_rabitq_params rabitq_params;
    gnomon_lsh_options lsh_options;
    gnomon_lsh_guarantee lsh_guarantee, set_lsh_guarantee;
    gnomon_lstsq_options lstsq_options;
    gnomon_descriptor descriptor;
    gnomon_sketch_options sketch_options;
    gnomon_distortion_options distortion_options;
    gnomon_search_options search_options, set_search_options;
    gnomon_comm comm;
    gnomon_comm_group *comm_group;
    gnomon_svd_options svd_options;
    gnomon_svd_transform_options svd_transform_options;
    gnomon_svd_rows svd_rows, tensor_rows;
    gnomon_svd_sparse_rows svd_sparse_rows;
    gnomon_join_points join_points;
    gnomon_join_side join_side;
    gnomon_join_rows join_rows;

    gnomon_csr csr_out;

    gnomon_operator *op;
    gnomon_reader *reader, *sparse_reader;
    gnomon_writer *writer, *sparse_writer, *full_writer;
    gnomon_table *table;
    gnomon_clusters *clusters;
    gnomon_documents documents;
    gnomon_dedup_options dedup_options;
    gnomon_corpus_options corpus_options;
    gnomon_parts_options parts_options;
    gnomon_parts *parts, *full_parts;
    gnomon_dedup *dedup, *full_dedup, *again_dedup, *signed_dedup, *old_dedup;
    gnomon_corpus *corpus;
    gnomon_hasher *hasher, *set_hasher;
    gnomon_lsh *lsh, *set_index, *full_index;
    gnomon_lsh_builder *lsh_builder, *set_builder;
    gnomon_sparse_index *sparse_index;
    gnomon_rabitq *rabitq;
    gnomon_sparse_builder *sparse_builder, *full_sparse_builder;
    gnomon_stream *stream, *full_stream;
    gnomon_search *search, *set_search, *full_search;
    gnomon_model *model;
    char *operator_json;
    const char *model_json, *npy, *index_file, *sparse_file, *rabitq_file;
} fixture;

/* ---- what the library calls ---- */

static gnomon_status make_piece(void *user, int64_t piece, const void **data, int64_t *bytes)
{
    (void)user;
    *data = "piece";
    *bytes = piece < 3 ? 5 : -1;
    return GNOMON_OK;
}

static gnomon_status take_piece(void *user, int64_t piece, const void *data, int64_t bytes)
{
    (void)user, (void)piece, (void)data, (void)bytes;
    return GNOMON_OK;
}

static void take_member(void *user, const char *name)
{
    (void)user, (void)name;
}

static void take_description(void *user, const char *name, const gnomon_data_info *info)
{
    (void)user, (void)name, (void)info;
}

static void take_fault(void *user, const char *section, const char *fault)
{
    (void)user, (void)section, (void)fault;
}

static gnomon_status next_rows(void *user, const gnomon_matrix *dst, int64_t *got)
{
    fixture *f = user;
    *got = 0;
    for (; f->next_row < N && *got < dst->rows; f->next_row++, ++*got)
        for (int64_t j = 0; j < N; j++) {
            const float value = f->room[0][f->next_row * N + j];
            if (dst->dtype == GNOMON_F64)
                ((double *)dst->data)[*got * dst->row_stride + j] = value;
            else
                ((float *)dst->data)[*got * dst->row_stride + j] = value;
        }
    return GNOMON_OK;
}

static gnomon_status first_row(void *user)
{
    ((fixture *)user)->next_row = 0;
    return GNOMON_OK;
}

static gnomon_status next_sparse_rows(void *user, int64_t max_rows, int64_t max_nonzeros,
                                      gnomon_csr *csr)
{
    fixture *f = user;
    (void)max_nonzeros;
    const int64_t rows = N - f->next_row < max_rows ? N - f->next_row : max_rows;
    const int64_t first = f->offsets[f->next_row];
    *csr = f->csr[0];
    csr->rows = rows;
    csr->offsets = f->offsets + f->next_row;
    csr->indices = f->indices + first;
    csr->values = f->entries + first;
    f->next_row += rows;
    return GNOMON_OK;
}

static gnomon_status read_points(void *user, int64_t first, const gnomon_matrix *to)
{
    fixture *f = user;
    for (int64_t i = 0; i < to->rows; i++)
        memcpy((float *)to->data + i * to->row_stride, f->room[0] + (first + i) * N,
               N * sizeof(float));
    return GNOMON_OK;
}

static gnomon_status read_sparse(void *user, int64_t first, int64_t count, gnomon_csr *to)
{
    const fixture *f = user;
    const int64_t before = f->offsets[first] - f->offsets[0];
    *to = (gnomon_csr){count,     N, f->offsets + first, f->indices + before, f->entries + before,
                       GNOMON_F32};
    return GNOMON_OK;
}

/* Offsets of N rows, the last of which has all the entries. */
static const int64_t *offsets(int64_t first, int64_t last)
{
    static int64_t at[N + 1];
    for (int i = 0; i < N; i++)
        at[i] = first;
    at[N] = last;
    return at;
}

/* Room for a struct, with nothing behind it that can be touched. */
static unsigned char *room_of(size_t size)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (LONGEST + page - 1) / page + 1;
    unsigned char *at =
        mmap(NULL, (pages + 1) * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED || mprotect(at + pages * page, page, PROT_NONE) != 0) exit(3);
    return at + pages * page - (size < sizeof(size_t) ? sizeof(size_t) : size);
}

static void set_size(void *to, size_t size)
{
    memcpy(to, &size, sizeof size);
}

static void *resized_options(fixture *f, const void *given)
{
    static unsigned char whole[LONGEST];
    const resizing *r = &f->size;
    const size_t size = r->what->size, both = r->size < size ? r->size : size;
    if (r->whole) {
        memcpy(whole, given, both);
        memcpy(whole + both, (const char *)r->what->defaults + both, size - both);
        set_size(whole, size);
        return whole;
    }
    unsigned char *to = room_of(r->size);
    memcpy(to, given, both);
    for (size_t at = both; at < r->size; at++)
        to[at] = (unsigned char)r->tail;
    set_size(to, r->size);
    return to;
}

/* One that stands inside another: only its members can be fewer. */
static void resize_inside(fixture *f, void *options)
{
    const resizing *r = &f->size;
    const size_t size = r->what->size;
    for (size_t at = r->size < sizeof size ? sizeof size : r->size; at < size; at++)
        ((unsigned char *)options)[at] =
            r->whole ? ((const unsigned char *)r->what->defaults)[at] : POISON;
    set_size(options, r->whole ? size : r->size);
}

static void *resized_result(fixture *f, void *given, int to_free)
{
    resizing *r = &f->size;
    r->got = given;
    if (r->whole) return given;
    r->got = room_of(r->size);
    memset(r->got, to_free ? 0 : POISON, r->size);
    set_size(r->got, r->size);
    return r->got;
}

/* ---- the tables that calls.py makes ---- */

typedef struct api_argument {
    int place;
    const char *name;
    int optional;
} api_argument;

typedef struct api_spoil {
    const char *what;
    int due; /* 1: ARGUMENT, 2: any status but OK and INTERNAL */
} api_spoil;

typedef struct api_call {
    const char *name;
    gnomon_status (*call)(fixture *f, int null, int spoil);
    int has_status, makes_object;
    int argument_count, spoil_count, size_count;
    const api_argument *arguments;
    const api_spoil *spoils;
    const api_size *sizes;
} api_call;

static bool same_bytes(const void *a, const void *b, size_t size)
{
    return memcmp(a, b, size) == 0;
}

/* Texts by what they say: the library's is another literal than that of this program. */
static bool same_text(const void *a, const void *b, size_t size)
{
    const char *const one = *(const char *const *)a, *const two = *(const char *const *)b;
    (void)size;
    return one == NULL || two == NULL ? one == two : strcmp(one, two) == 0;
}

/* Whether members of two const structs are the same. */
#define SAME_MEMBER(a, b) \
    _Generic(&(a), const char *const * : same_text, default : same_bytes)(&(a), &(b), sizeof(a))

/* 1, with a line, when a struct is not as the macro makes it, or what lies behind it was touched.
 */
static int different(const char *function, bool same, const unsigned char *made, size_t size,
                     size_t room)
{
    for (size_t i = size; i < room; i++)
        same &= made[i] == 0xa5;
    if (!same) printf("%s does not give what the macro gives\n", function);
    return !same;
}

typedef gnomon_status (*init_function)(void *options, size_t size);

/* The struct of a binding that is older than the library, and of one that is newer. */
static int other_sizes(const char *name, init_function init, size_t size)
{
    enum { MOST = 1024, SHORT = 2 * sizeof(size_t) };
    _Alignas(16) unsigned char whole[MOST], room[MOST];
    const size_t longer = size + 24;
    size_t told;
    memset(whole, 0xa5, sizeof whole);
    bool same = longer < MOST && init(whole, size) == GNOMON_OK;
    memset(room, 0xa5, sizeof room);
    same &= init(room, SHORT) == GNOMON_OK;
    memcpy(&told, room, sizeof told);
    same &=
        told == SHORT && memcmp(room + sizeof told, whole + sizeof told, SHORT - sizeof told) == 0;
    int bad = different(name, same, room, SHORT, sizeof room);
    memset(room, 0xa5, sizeof room);
    same = init(room, longer) == GNOMON_OK;
    memcpy(&told, room, sizeof told);
    same &= told == longer;
    for (size_t i = size; i < longer; i++)
        same &= room[i] == 0;
    bad += different(name, same, room, longer, sizeof room);
    if (init(room, sizeof(size_t) - 1) != GNOMON_ERROR_ARGUMENT) {
        printf("%s takes a size that can't be one\n", name);
        bad++;
    }
    return bad;
}

#include "calls.inc"

/* ---- the fixture ---- */

#define MUST(call)                                                           \
    do {                                                                     \
        if ((call) != GNOMON_OK) {                                           \
            printf("fixture: %s: %s %s\n", #call, gnomon_last_error(f->ctx), \
                   gnomon_last_error(NULL));                                 \
            exit(1);                                                         \
        }                                                                    \
    } while (0)

static char *read_all(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, 1 << 16);
    if (file == NULL || text == NULL || fread(text, 1, (1 << 16) - 1, file) == 0) {
        printf("fixture: %s can't be read\n", path);
        exit(1);
    }
    fclose(file);
    return text;
}

static void make_views(fixture *f)
{
    for (int m = 0; m < 3; m++) {
        for (int i = 0; i < N * N; i++)
            f->room[m][i] = (float)((i * 7 + m * 3 + 1) % 11) + (i % (N + 1) == 0 ? 20 : 0);
        f->matrix[m] = gnomon_matrix_rowmajor(f->room[m], GNOMON_F32, N, N);
    }
    f->values = gnomon_matrix_rowmajor(f->hashes, GNOMON_I32, N, N);
    for (int i = 0; i <= N; i++)
        f->offsets[i] = i;
    for (int i = 0; i < N; i++) {
        f->indices[i] = f->rows_of[i] = i;
        f->entries[i] = (float)(i + 1);
    }
    for (int i = 0; i < 2; i++)
        f->csr[i] = (gnomon_csr){N, N, f->offsets, f->indices, f->entries, GNOMON_F32};
    f->coo = (gnomon_coo){N, N, N, f->rows_of, f->indices, f->entries, GNOMON_F32};
    const int64_t sizes[2] = {N, N};
    f->tensor = gnomon_tensor_packed(f->room[0], GNOMON_F32, 2, sizes, 0);
    f->named_array = (gnomon_named_array){"a", f->matrix[0], 0};
    f->named_tensor = (gnomon_named_tensor){"a", f->tensor};
    f->svd_rows = (gnomon_svd_rows){f, N, N, GNOMON_F32, next_rows, first_row};
    f->tensor_rows = f->svd_rows;
    f->svd_sparse_rows = (gnomon_svd_sparse_rows){f, N, N, GNOMON_F32, next_sparse_rows, first_row};
    f->join_side = (gnomon_join_side){.dense = &f->matrix[0]};
    f->join_points = (gnomon_join_points){f, N, N, GNOMON_F32, read_points};
    f->join_rows = (gnomon_join_rows){f, N, N, f->offsets, read_sparse};
}

static void make_options(fixture *f)
{
    f->context_options = (gnomon_context_options)GNOMON_CONTEXT_OPTIONS_INIT;
    f->context_options.device = "cpu";
    f->context_options.threads = 1;
    f->choose_options = (gnomon_choose_options)GNOMON_CHOOSE_OPTIONS_INIT;
    f->choose_options.n = f->choose_options.d = N;
    f->choose_options.k = N;
    f->gemm_options = (gnomon_gemm_options)GNOMON_GEMM_OPTIONS_INIT;
    f->hosvd_options = (gnomon_hosvd_options)GNOMON_HOSVD_OPTIONS_INIT;
    f->ranks[0] = f->ranks[1] = 2;
    f->hosvd_options.ranks = f->ranks;
    f->hosvd_options.rank_count = 2;
    f->read_options = (gnomon_read_options)GNOMON_READ_OPTIONS_INIT;
    f->write_options = (gnomon_write_options)GNOMON_WRITE_OPTIONS_INIT;
    f->join_options = (gnomon_join_options)GNOMON_JOIN_OPTIONS_INIT;
    f->set_join_options = f->join_options;
    f->set_join_options.metric = GNOMON_JACCARD;
    f->lsh_functions = (gnomon_lsh_functions)GNOMON_LSH_FUNCTIONS_INIT;
    f->lsh_functions.family = GNOMON_LSH_SIMHASH;
    f->lsh_functions.dim = f->lsh_functions.count = N;
    f->lsh_search_params = (gnomon_lsh_search_params)GNOMON_LSH_SEARCH_PARAMS_INIT;
    f->rabitq_options = (gnomon_rabitq_options)GNOMON_RABITQ_OPTIONS_INIT;
    f->rabitq_params = (gnomon_rabitq_params)GNOMON_RABITQ_PARAMS_INIT;
    f->lsh_options = (gnomon_lsh_options)GNOMON_LSH_OPTIONS_INIT;
    f->lsh_options.metric = GNOMON_L2;
    f->lsh_options.functions.family = GNOMON_LSH_PSTABLE;
    f->lsh_options.functions.dim = N;
    f->lsh_options.functions.width = 100;
    f->lsh_options.tables = 2;
    f->lsh_options.coarse = 2;
    f->lsh_guarantee = (gnomon_lsh_guarantee)GNOMON_LSH_GUARANTEE_INIT;
    f->lsh_guarantee.k = 1;
    f->set_lsh_guarantee = f->lsh_guarantee;
    f->set_lsh_guarantee.metric = GNOMON_JACCARD;
    f->lstsq_options = (gnomon_lstsq_options)GNOMON_LSTSQ_OPTIONS_INIT;
    f->descriptor = (gnomon_descriptor)GNOMON_DESCRIPTOR_INIT;
    f->descriptor.kind = GNOMON_GAUSSIAN;
    f->descriptor.k = f->descriptor.d = N;
    f->sketch_options = (gnomon_sketch_options)GNOMON_SKETCH_OPTIONS_INIT;
    f->distortion_options = (gnomon_distortion_options)GNOMON_DISTORTION_OPTIONS_INIT;
    f->search_options = (gnomon_search_options)GNOMON_SEARCH_OPTIONS_INIT;
    f->search_options.k = 1;
    f->set_search_options = f->search_options;
    f->set_search_options.metric = GNOMON_JACCARD;
    f->svd_options = (gnomon_svd_options)GNOMON_SVD_OPTIONS_INIT;
    f->svd_options.rank = 2;
    f->svd_transform_options = (gnomon_svd_transform_options)GNOMON_SVD_TRANSFORM_OPTIONS_INIT;
    f->svd_transform_options.vt = &f->matrix[1];
}

/* Once for all calls: each file takes a sync. */
static void make_files(fixture *f)
{
    gnomon_writer *w;
    gnomon_lsh *index;
    gnomon_write_options sparse = GNOMON_WRITE_OPTIONS_INIT;
    sparse.sparse = 1;
    MUST(gnomon_writer_open(f->ctx, "in.npy", N, N, GNOMON_F32, NULL, &w));
    MUST(gnomon_writer_rows(w, &f->matrix[0]));
    MUST(gnomon_writer_finish(w));
    MUST(gnomon_writer_open(f->ctx, "in.mtx", N, N, GNOMON_F32, &sparse, &w));
    MUST(gnomon_writer_csr(w, &f->csr[0]));
    MUST(gnomon_writer_finish(w));
    MUST(gnomon_lsh_create(f->ctx, &f->lsh_options, &index));
    MUST(gnomon_lsh_add(index, &f->matrix[0]));
    MUST(gnomon_lsh_save(f->ctx, index, "in.index"));
    gnomon_lsh_destroy(index);
    gnomon_sparse_builder *b;
    MUST(gnomon_sparse_builder_create(f->ctx, GNOMON_L2, N, "in.sparse", &b));
    MUST(gnomon_sparse_builder_add_csr(b, &f->csr[0]));
    MUST(gnomon_sparse_builder_finish(b));
    gnomon_rabitq *coded;
    MUST(gnomon_rabitq_create(f->ctx, NULL, &f->matrix[0], &coded));
    MUST(gnomon_rabitq_save(f->ctx, coded, "in.rabitq"));
    gnomon_rabitq_destroy(coded);
}

static void make_objects(fixture *f)
{
    gnomon_context *ctx = f->ctx;
    const gnomon_matrix *m = f->matrix;
    gnomon_write_options sparse = GNOMON_WRITE_OPTIONS_INIT;
    sparse.sparse = 1;
    f->npy = "in.npy";
    f->index_file = "in.index";
    f->sparse_file = "in.sparse";
    f->rabitq_file = "in.rabitq";
    MUST(gnomon_reader_open(ctx, f->npy, NULL, &f->reader));
    MUST(gnomon_reader_open(ctx, "in.mtx", NULL, &f->sparse_reader));
    MUST(gnomon_writer_open(ctx, "writer.npy", N, N, GNOMON_F32, NULL, &f->writer));
    MUST(gnomon_writer_open(ctx, "sparse.mtx", N, N, GNOMON_F32, &sparse, &f->sparse_writer));
    MUST(gnomon_writer_open(ctx, "full.npy", N, N, GNOMON_F32, NULL, &f->full_writer));
    MUST(gnomon_writer_rows(f->full_writer, &m[0]));
    MUST(gnomon_table_open(ctx, "table.csv", NULL, column_names, 1, &f->table));

    MUST(gnomon_operator_create(ctx, &f->descriptor, &f->op));
    MUST(gnomon_operator_to_json(ctx, f->op, &f->operator_json));
    f->model_json = read_all(MODEL);
    MUST(gnomon_model_from_json(ctx, f->model_json, strlen(f->model_json), &f->model));
    MUST(gnomon_clusters_create(ctx, N, &f->clusters));
    static const int64_t begins[] = {0}, ends[] = {6};
    f->documents =
        (gnomon_documents){sizeof f->documents, 1, "a text", begins, ends, NULL, NULL, NULL};
    f->dedup_options = (gnomon_dedup_options)GNOMON_DEDUP_OPTIONS_INIT;
    f->corpus_options = (gnomon_corpus_options)GNOMON_CORPUS_OPTIONS_INIT;
    MUST(gnomon_dedup_create(ctx, &f->dedup_options, &f->dedup));
    gnomon_dedup_options raw = f->dedup_options;
    raw.keep_raw = 1;
    MUST(gnomon_dedup_create(ctx, &raw, &f->full_dedup));
    MUST(gnomon_dedup_add(f->full_dedup, &f->documents));
    MUST(gnomon_dedup_run(f->full_dedup, NULL));
    MUST(gnomon_dedup_sign(f->full_dedup, column_names, signed_files[0]));
    static const int64_t raw_ends[] = {7};
    const gnomon_documents lines = {sizeof lines, 1,      "a text\n", begins,
                                    ends,         begins, raw_ends,   NULL};
    raw.keep_raw = GNOMON_RAW_SUM;
    MUST(gnomon_dedup_create(ctx, &raw, &f->again_dedup));
    MUST(gnomon_dedup_add(f->again_dedup, &lines));
    MUST(gnomon_dedup_run(f->again_dedup, NULL));
    MUST(gnomon_dedup_create(ctx, &f->dedup_options, &f->signed_dedup));
    MUST(gnomon_dedup_create(ctx, &f->dedup_options, &f->old_dedup));
    f->parts_options = (gnomon_parts_options)GNOMON_PARTS_OPTIONS_INIT;
    MUST(gnomon_parts_create(ctx, &f->parts_options, &f->parts));
    MUST(gnomon_parts_create(ctx, &f->parts_options, &f->full_parts));
    MUST(gnomon_parts_add(f->full_parts, &f->documents));
    MUST(gnomon_parts_run(f->full_parts, NULL));
    MUST(gnomon_write_text(ctx, "corpus.txt", "a text\n", 7));
    MUST(gnomon_corpus_open(ctx, "corpus.txt", NULL, &f->corpus));
    MUST(gnomon_hasher_create(ctx, &f->lsh_functions, &f->hasher));
    gnomon_lsh_functions minhash = GNOMON_LSH_FUNCTIONS_INIT;
    minhash.family = GNOMON_LSH_MINHASH;
    minhash.dim = minhash.count = N;
    MUST(gnomon_hasher_create(ctx, &minhash, &f->set_hasher));

    gnomon_lsh_options sets = f->lsh_options;
    sets.metric = GNOMON_JACCARD;
    sets.functions = minhash;
    MUST(gnomon_lsh_create(ctx, &f->lsh_options, &f->lsh));
    MUST(gnomon_lsh_create(ctx, &f->lsh_options, &f->full_index));
    MUST(gnomon_lsh_add(f->full_index, &m[0]));
    MUST(gnomon_lsh_create(ctx, &sets, &f->set_index));
    MUST(gnomon_lsh_add_csr(f->set_index, &f->csr[0]));
    MUST(gnomon_lsh_builder_create(ctx, &f->lsh_options, "built.index", &f->lsh_builder));
    MUST(gnomon_lsh_builder_create(ctx, &sets, "set.index", &f->set_builder));
    MUST(gnomon_sparse_index_create(ctx, GNOMON_L2, &f->csr[0], &f->sparse_index));
    MUST(gnomon_rabitq_create(ctx, NULL, &m[0], &f->rabitq));
    MUST(gnomon_sparse_builder_create(ctx, GNOMON_L2, N, "built.sparse", &f->sparse_builder));
    MUST(gnomon_sparse_builder_create(ctx, GNOMON_L2, N, "full.sparse", &f->full_sparse_builder));
    MUST(gnomon_sparse_builder_add_csr(f->sparse_builder, &f->csr[0]));

    MUST(gnomon_stream_create(ctx, f->op, N, GNOMON_F32, NULL, &f->stream));
    MUST(gnomon_stream_create(ctx, f->op, N, GNOMON_F32, NULL, &f->full_stream));
    MUST(gnomon_stream_push(f->full_stream, &m[0]));
    f->comm = (gnomon_comm)GNOMON_COMM_INIT;
    MUST(gnomon_comm_group_create(ctx, 2, &f->comm_group));
    MUST(gnomon_search_create(ctx, &m[1], &f->search_options, &f->search));
    MUST(gnomon_search_create(ctx, &m[1], &f->search_options, &f->full_search));
    MUST(gnomon_search_add(f->full_search, &m[0]));
    MUST(gnomon_search_create_csr(ctx, &f->csr[1], &f->set_search_options, &f->set_search));
}

/* ---- the groups ---- */

static const char *text_of(const fixture *f, const char *argument)
{
    return gnomon_last_error(
        strcmp(argument, "ctx") == 0 || gnomon_last_error(f->ctx)[0] == '\0' ? NULL : f->ctx);
}

/* Whether a build or a machine may lack what the function needs. */
static bool left_out(const char *name)
{
    if (strstr(name, "npz") != NULL) return !GNOMON_WITH_LIBZIP;
    if (strstr(name, "hdf5") != NULL) return !GNOMON_WITH_HDF5;
    if (strcmp(name, "gnomon_comm_open") == 0) return true;
    return gnomon_svd_missing() != NULL &&
           (strstr(name, "svd") != NULL || strstr(name, "lstsq") != NULL);
}

/* In a process of its own: 0 when the call did what is due, with a line about it when not. */
static int judge(fixture *f, const api_call *c, const api_argument *null, int spoil)
{
    static char touched;
    f->out = &touched;
    const gnomon_status status = c->call(f, null != NULL ? null->place : -1, spoil);
    const char *text = null != NULL ? text_of(f, null->name) : gnomon_last_error(f->ctx);
    if (null != NULL && !null->optional && c->has_status) {
        if (status != GNOMON_ERROR_ARGUMENT || strstr(text, null->name) == NULL ||
            strstr(text, "NULL") == NULL) {
            printf("%s, %s NULL: %s '%s'\n", c->name, null->name, gnomon_status_name(status), text);
            return 1;
        }
    } else if (spoil > 0) {
        const api_spoil *s = &c->spoils[spoil - 1];
        if (status == GNOMON_OK || status == GNOMON_ERROR_INTERNAL ||
            (s->due == 1 && status != GNOMON_ERROR_ARGUMENT)) {
            printf("%s, %s: %s '%s'\n", c->name, s->what, gnomon_status_name(status), text);
            return 1;
        }
    } else if (status != GNOMON_OK && !(status == GNOMON_ERROR_UNSUPPORTED && left_out(c->name))) {
        printf("%s%s%s: %s '%s'\n", c->name, null != NULL ? ", optional and NULL: " : "",
               null != NULL ? null->name : "", gnomon_status_name(status), text);
        return 1;
    }
    if (status != GNOMON_OK && c->makes_object && f->out == &touched &&
        (null == NULL || strstr("out json", null->name) == NULL)) {
        printf("%s, %s: *out was left as it was\n", c->name,
               null != NULL ? null->name : c->spoils[spoil - 1].what);
        return 1;
    }
    return 0;
}

/* ---- other sizes ---- */

static atomic_long live_blocks;

static void *count_block(void *user, size_t size, size_t alignment)
{
    (void)user;
    void *block = aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
    if (block != NULL) atomic_fetch_add(&live_blocks, 1);
    return block;
}

static void release_block(void *user, void *block, size_t size)
{
    (void)user, (void)size;
    free(block);
    atomic_fetch_sub(&live_blocks, 1);
}

/* What a call with a resized struct did. */
typedef struct outcome {
    gnomon_status status;
    char text[512];
    unsigned char result[LONGEST];
    long kept; /* blocks that are still there after the result was freed */
} outcome;

static void run_resized(fixture *f, const api_call *c, bool whole, outcome *o)
{
    resizing *r = &f->size;
    f->next_row = 0;
    make_objects(f);
    r->whole = whole;
    r->got = NULL;
    memset(o, 0, sizeof *o);
    const long before = atomic_load(&live_blocks);
    o->status = c->call(f, -1, 0);
    snprintf(o->text, sizeof o->text, "%s", text_of(f, r->what->name));
    if (r->got != NULL) {
        memcpy(o->result, r->got, whole ? r->what->size : r->size);
        if (r->what->free != NULL) r->what->free(f->ctx, r->got);
    }
    o->kept = atomic_load(&live_blocks) - before;
}

/* The name of what differs in what both have of a result, NULL: nothing. */
static const char *different_member(const resizing *r, const outcome *a, const outcome *b)
{
    for (const api_member *m = r->what->members; m->name != NULL; m++) {
        const void *x = a->result + m->offset, *y = b->result + m->offset;
        if (m->offset + m->size > r->size) continue;
        void *p, *q;
        memcpy(&p, x, m->pointer ? sizeof p : 0);
        memcpy(&q, y, m->pointer ? sizeof q : 0);
        if (m->pointer ? (p == NULL) != (q == NULL) : memcmp(x, y, m->size) != 0) return m->name;
    }
    for (size_t at = r->what->size; at < r->size; at++)
        if (a->result[at] != 0) return "what is behind the last member";
    return NULL;
}

/* "descriptor" of "options.functions.descriptor": a step of a call may name what is its own. */
static const char *last_part(const char *name)
{
    return strrchr(name, '.') != NULL ? strrchr(name, '.') + 1 : name;
}

/* In a process of its own, as judge. */
static int judge_size(fixture *f, const api_call *c)
{
    static outcome whole, other;
    static char touched;
    const resizing *r = &f->size;
    const bool options = r->what->defaults != NULL, bad_size = r->size < sizeof(size_t);
    f->out = &touched;
    run_resized(f, c, false, &other);
    if (bad_size || (options && r->size > r->what->size && (r->tail != 0 || r->what->inside))) {
        /* a call without a status must do nothing, and there is nothing that it could touch */
        if (!c->has_status || (other.status == GNOMON_ERROR_ARGUMENT &&
                               strstr(other.text, last_part(r->what->name)) != NULL &&
                               strstr(other.text, r->what->type) != NULL))
            return 0;
        printf("%s, %s of %zu bytes: %s '%s'\n", c->name, r->what->name, r->size,
               gnomon_status_name(other.status), other.text);
        return 1;
    }
    run_resized(f, c, true, &whole);
    const char *member = r->got != NULL ? different_member(r, &other, &whole) : NULL;
    if (other.status == whole.status && other.kept == whole.kept && member == NULL &&
        (other.status == GNOMON_OK || strcmp(other.text, whole.text) == 0))
        return 0;
    printf("%s, %s of %zu bytes: %s '%s', %ld blocks kept; of %zu bytes: %s '%s', %ld; %s\n",
           c->name, r->what->name, r->size, gnomon_status_name(other.status), other.text,
           other.kept, r->what->size, gnomon_status_name(whole.status), whole.text, whole.kept,
           member != NULL ? member : "");
    return 1;
}

static int attempt(fixture *f, const api_call *c, const api_argument *null, int spoil)
{
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        const struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        alarm(60);
        if (f->size.place == 0) make_objects(f);
        const int bad = f->size.place > 0 ? judge_size(f, c) : judge(f, c, null, spoil);
        fflush(stdout);
        _exit(bad);
    }
    int how;
    if (child < 0 || waitpid(child, &how, 0) != child) return 1;
    if (WIFSIGNALED(how) || WEXITSTATUS(how) > 1)
        printf("%s, %s: died of %s %d\n", c->name,
               null != NULL        ? null->name
               : spoil > 0         ? c->spoils[spoil - 1].what
               : f->size.place > 0 ? f->size.what->name
                                   : "valid arguments",
               WIFSIGNALED(how) ? "signal" : "a sanitizer,",
               WIFSIGNALED(how) ? WTERMSIG(how) : WEXITSTATUS(how));
    return how != 0;
}

static int attempt_sizes(fixture *f, const api_call *c, int *tried)
{
    int bad = 0;
    for (int place = 1; place <= c->size_count; place++) {
        const api_size *s = &c->sizes[place - 1];
        /* none; less than the member; nothing but the member; one member fewer; all; more */
        const struct {
            size_t size;
            int tail;
        } sizes[] = {{0, 0},
                     {4, 0},
                     {sizeof(size_t), 0},
                     {s->size - 8, 0},
                     {s->size, 0},
                     {s->size + MORE, 0},
                     {s->size + MORE, 1}};
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++, ++*tried) {
            f->size = (resizing){place, s, sizes[i].size, sizes[i].tail, false, NULL};
            bad += attempt(f, c, NULL, 0);
        }
    }
    f->size = (resizing){0};
    return bad;
}

int main(int count, char **words)
{
    const char *group = count > 1 ? words[1] : "";
    if (strcmp(group, "init") == 0) return check_inits() != 0;
    char folder[] = "/tmp/gnomon-api-XXXXXX";
    if (mkdtemp(folder) == NULL || chdir(folder) != 0) return 1;
    static fixture made;
    fixture *f = &made;
    make_views(f);
    make_options(f);
    f->allocator = (gnomon_allocator){NULL, count_block, release_block};
    f->context_options.allocator = &f->allocator;
    MUST(gnomon_context_create(&f->context_options, &f->ctx));
    make_files(f);

    int tried = 0, bad = 0;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        const api_call *c = &calls[i];
        if (count > 2 && strcmp(words[2], c->name) != 0) continue;
        if (strcmp(group, "valid") == 0) {
            tried++;
            bad += attempt(f, c, NULL, 0);
            for (int a = 0; a < c->argument_count; a++)
                if (c->arguments[a].optional) tried++, bad += attempt(f, c, &c->arguments[a], 0);
        } else if (strcmp(group, "null") == 0) {
            for (int a = 0; a < c->argument_count; a++)
                if (!c->arguments[a].optional) tried++, bad += attempt(f, c, &c->arguments[a], 0);
        } else if (strcmp(group, "views") == 0) {
            for (int s = 1; s <= c->spoil_count; s++)
                tried++, bad += attempt(f, c, NULL, s);
        } else if (strcmp(group, "sizes") == 0) {
            bad += attempt_sizes(f, c, &tried);
        }
    }
    gnomon_context_destroy(f->ctx);
    printf("%d calls of %zu functions, %d not as they should be\n", tried,
           sizeof calls / sizeof *calls, bad);
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) != 0 || bad > 0 || tried == 0;
}

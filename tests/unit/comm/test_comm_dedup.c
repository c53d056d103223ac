/* Sets that several ranks make give the deduplication of one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "comm_testing.h"

#include <gnomon/dedup.h>

/* Texts of LONG words: a slice of documents has some hundred of them. */
enum { DOCUMENTS = 900, LONG = 2400, WORDS = 40 };

typedef struct job {
    char *text;
    int64_t begins[DOCUMENTS], ends[DOCUMENTS];
    char names[DOCUMENTS][8];
    const char *name[DOCUMENTS];
    int64_t count, piece; /* documents of a call */
    gnomon_dedup_options options;
    bool named;
    int way, odd; /* of failures */
    long at;      /* the allocation that is refused */
    /* of one process, and of rank 0 */
    gnomon_dedup_result due, result;
    int64_t due_kept[DOCUMENTS], kept[DOCUMENTS];
    gnomon_dedup_pair *due_pairs, *pairs;
} job;

static void make(job *j, int64_t count, int64_t longest)
{
    int64_t at = 0;
    j->count = count;
    j->text = realloc(j->text, (size_t)(count * (longest + 2) * 4 + 1));
    for (int64_t i = 0; i < count; i++) {
        j->begins[i] = at;
        const int64_t copy = i > 0 && next_random() % 3 == 0 ? (int64_t)(next_random() % i) : -1;
        if (copy >= 0) {
            const int64_t bytes = j->ends[copy] - j->begins[copy];
            memcpy(j->text + at, j->text + j->begins[copy], (size_t)bytes);
            at += bytes;
        } else {
            const int64_t words = next_random() % (unsigned)longest;
            for (int64_t w = 0; w < words; w++)
                at += sprintf(j->text + at, "w%u ", next_random() % WORDS);
        }
        if (copy >= 0 && next_random() % 2 == 0 && at > j->begins[i] + 2) j->text[at - 2] = 'x';
        j->ends[i] = at;
        snprintf(j->names[i], sizeof j->names[i], "n%d", (int)(i * 37 % count));
        j->name[i] = j->names[i];
    }
    j->options = (gnomon_dedup_options)GNOMON_DEDUP_OPTIONS_INIT;
    j->options.ngram = 1;
    j->options.recall = 1;
    j->options.similarity = 0.9;
}

static gnomon_status add_all(gnomon_dedup *d, const job *j)
{
    gnomon_status status = GNOMON_OK;
    for (int64_t first = 0; first < j->count && status == GNOMON_OK; first += j->piece) {
        gnomon_documents some = GNOMON_DOCUMENTS_INIT;
        some.count = j->count - first < j->piece ? j->count - first : j->piece;
        some.text = j->text;
        some.begins = j->begins + first;
        some.ends = j->ends + first;
        some.names = j->named ? j->name + first : NULL;
        status = gnomon_dedup_add(d, &some);
    }
    return status;
}

static void take(gnomon_dedup *d, int64_t count, int64_t *kept, gnomon_dedup_pair **pairs)
{
    int64_t found = 0;
    const int64_t *all = gnomon_dedup_representatives(d);
    if (count > 0) memcpy(kept, all, (size_t)count * sizeof *kept);
    const gnomon_dedup_pair *those = gnomon_dedup_pairs(d, &found);
    *pairs = realloc(*pairs, (size_t)found * sizeof **pairs + 1);
    if (found > 0) memcpy(*pairs, those, (size_t)found * sizeof **pairs);
}

static void dedup_part(rank_run *r)
{
    job *j = r->arg;
    gnomon_dedup_options o = j->options;
    gnomon_dedup_result result = {.struct_size = sizeof result};
    gnomon_dedup *d = NULL;
    o.comm = &r->comm;
    r->status = gnomon_dedup_create(r->ctx, &o, &d);
    if (r->status == GNOMON_OK) r->status = add_all(d, j);
    if (r->status == GNOMON_OK) r->status = gnomon_dedup_run(d, &result);
    if (r->status == GNOMON_OK && r->comm.rank == 0) {
        take(d, j->count, j->kept, &j->pairs);
        j->result = result;
        gnomon_dedup_forget(d);
    } else if (r->status == GNOMON_OK) {
        if (gnomon_dedup_representatives(d) != NULL) r->status = GNOMON_ERROR_INTERNAL;
    }
    gnomon_dedup_destroy(d);
}

static void try_job(gnomon_context *ctx, job *j)
{
    rank_run runs[MOST_RANKS];
    gnomon_dedup *d = NULL;
    j->due = (gnomon_dedup_result){.struct_size = sizeof j->due};
    assert_int_equal(gnomon_dedup_create(ctx, &j->options, &d), GNOMON_OK);
    assert_int_equal(add_all(d, j), GNOMON_OK);
    assert_int_equal(gnomon_dedup_run(d, &j->due), GNOMON_OK);
    take(d, j->count, j->due_kept, &j->due_pairs);
    gnomon_dedup_destroy(d);
    for (int size = 1; size <= 5; size++) {
        run_ranks(size, dedup_part, j, runs);
        for (int i = 0; i < size; i++)
            assert_int_equal(runs[i].status, GNOMON_OK);
        assert_int_equal(j->result.pairs, j->due.pairs);
        assert_int_equal(j->result.kept, j->due.kept);
        assert_int_equal(j->result.ngrams, j->due.ngrams);
        assert_int_equal(j->result.text_bytes, j->due.text_bytes);
        if (j->count > 0) assert_memory_equal(j->kept, j->due_kept, (size_t)j->count * 8);
        if (j->due.pairs > 0)
            assert_memory_equal(j->pairs, j->due_pairs,
                                (size_t)j->due.pairs * sizeof *j->due_pairs);
    }
}

static void test_same_result(void **state)
{
    (void)state;
    static job j;
    gnomon_context *ctx;
    assert_int_equal(gnomon_context_create(NULL, &ctx), GNOMON_OK);
    static const int64_t sizes[][3] = {
        {300, 30, 70}, {DOCUMENTS, LONG, 400}, {3, 10, 1}, {1, 2, 1}, {0, 2, 1}};
    for (int size = 0; size < 5; size++)
        for (int way = 0; way < 4; way++) {
            if (size == 1 && way > 0) continue;
            make(&j, sizes[size][0], sizes[size][1]);
            j.piece = sizes[size][2];
            j.named = way % 2 == 0;
            if (way > 0) j.options.recall = 0.95;
            if (way == 2) j.options.exact = 1;
            if (way == 3) j.options.keep = GNOMON_DEDUP_LONGEST;
            try_job(ctx, &j);
        }
    gnomon_context_destroy(ctx);
    free(j.text);
    free(j.pairs);
    free(j.due_pairs);
}

static void dedup_badly(rank_run *r)
{
    job own = *(const job *)r->arg;
    const int64_t bytes = own.ends[own.count - 1];
    char *text = malloc((size_t)bytes + 1);
    gnomon_dedup *d = NULL;
    const bool odd = r->comm.rank == own.odd;
    memcpy(text, own.text, (size_t)bytes);
    own.text = text;
    own.options.comm = &r->comm;
    if (own.way == 0) text[own.begins[own.count - 2]] = (char)0xff; /* for all */
    if (own.way == 1 && odd) own.options.ngram = 2;
    if (own.way == 2 && odd) own.options.similarity = 2;
    if (own.way == 3 && odd) own.count--;
    r->status = gnomon_dedup_create(r->ctx, &own.options, &d);
    if (r->status == GNOMON_OK) r->status = add_all(d, &own);
    if (r->status == GNOMON_OK) r->status = gnomon_dedup_run(d, NULL);
    gnomon_dedup_destroy(d);
    free(text);
}

static void test_failures(void **state)
{
    (void)state;
    static job j;
    rank_run runs[MOST_RANKS];
    for (int size = 2; size <= 5; size++)
        for (int way = 0; way < 4; way++) {
            make(&j, 200, 30);
            j.piece = 11;
            j.way = way;
            j.odd = 1 + way % (size - 1);
            while (j.ends[j.count - 2] == j.begins[j.count - 2])
                make(&j, 200, 30);
            j.options.ngram = 1;
            run_ranks(size, dedup_badly, &j, runs);
            for (int i = 0; i < size; i++)
                assert_int_equal(runs[i].status,
                                 way == 0 || way == 3 ? GNOMON_ERROR_DATA : GNOMON_ERROR_ARGUMENT);
            if (way == 0) assert_non_null(strstr(runs[0].text, "document 198 is not UTF-8"));
        }
    free(j.text);
}

/* ---- signature files, which rank 0 reads and writes while the others wait ---- */

static gnomon_status through_files(gnomon_dedup *d, const job *j, const char *signed_to,
                                   const char *const *old)
{
    gnomon_status status = add_all(d, j);
    if (status == GNOMON_OK && old != NULL) status = gnomon_dedup_add_old(d, old, 1);
    if (status == GNOMON_OK) status = gnomon_dedup_sign(d, NULL, signed_to);
    if (status == GNOMON_OK) status = gnomon_dedup_run(d, NULL);
    return status;
}

static void sign_part(rank_run *r)
{
    job own = *(const job *)r->arg;
    gnomon_dedup *d = NULL;
    const char *old = own.way == 1 ? "comm-dedup.missing" : "comm-dedup.signed";
    const char *to = own.way == 2 ? "missing/comm-dedup.signed" : "comm-dedup-ranks.signed";
    own.options.comm = &r->comm;
    r->status = gnomon_dedup_create(r->ctx, &own.options, &d);
    if (own.way == 3 && r->comm.rank == own.odd) { /* rank 0 does not hear of it before it signs */
        own.begins[0] = 1;
        own.ends[0] = 0;
    }
    if (r->status == GNOMON_OK) r->status = through_files(d, &own, to, &old);
    if (r->status == GNOMON_OK && damaged == NULL) {
        gnomon_documents more = GNOMON_DOCUMENTS_INIT;
        r->status = gnomon_dedup_add(d, &more);
        if (r->status == GNOMON_ERROR_ARGUMENT &&
            (gnomon_dedup_name(d, 0) != NULL) == (r->comm.rank == 0))
            r->status = GNOMON_OK;
    }
    gnomon_dedup_destroy(d);
}

static size_t read_file(const char *path, char *to, size_t room)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    const size_t bytes = fread(to, 1, room, file);
    fclose(file);
    return bytes;
}

static void test_signature_files(void **state)
{
    (void)state;
    enum { ROOM = 1 << 20 };
    static const gnomon_status due[] = {GNOMON_OK, GNOMON_ERROR_NOT_FOUND, GNOMON_ERROR_NOT_FOUND,
                                        GNOMON_ERROR_ARGUMENT};
    static job j;
    rank_run runs[MOST_RANKS];
    gnomon_context *ctx;
    gnomon_dedup *d = NULL;
    char *one = malloc(ROOM), *several = malloc(ROOM);
    assert_int_equal(gnomon_context_create(NULL, &ctx), GNOMON_OK);
    make(&j, 60, 12);
    j.piece = 60;
    j.named = true;
    assert_int_equal(gnomon_dedup_create(ctx, &j.options, &d), GNOMON_OK);
    assert_int_equal(through_files(d, &j, "comm-dedup.signed", NULL), GNOMON_OK);
    gnomon_dedup_destroy(d);
    const size_t bytes = read_file("comm-dedup.signed", one, ROOM);
    for (int size = 2; size <= 5; size++)
        for (j.way = 0; j.way < 4; j.way++) {
            j.odd = size - 1;
            j.count = j.way == 3 ? 1 : 60; /* one slice, which is rank 0's */
            remove("comm-dedup-ranks.signed");
            run_ranks(size, sign_part, &j, runs);
            for (int i = 0; i < size; i++)
                assert_int_equal(runs[i].status, due[j.way]);
            if (j.way != 0) continue;
            assert_int_equal(read_file("comm-dedup-ranks.signed", several, ROOM), bytes);
            assert_memory_equal(one, several, bytes);
        }
    remove("comm-dedup.signed");
    remove("comm-dedup-ranks.signed");
    gnomon_context_destroy(ctx);
    free(one);
    free(several);
    free(j.text);
}

/* ---- a checkpoint, which other ranks go on with ---- */

static void half(gnomon_context *ctx, const job *j, const gnomon_comm *comm)
{
    job some = *j;
    gnomon_dedup *d = NULL;
    some.count = j->count / 2;
    some.options.checkpoint = "comm-dedup.checkpoint";
    some.options.comm = comm;
    assert_int_equal(gnomon_dedup_create(ctx, &some.options, &d), GNOMON_OK);
    assert_int_equal(add_all(d, &some), GNOMON_OK);
    gnomon_dedup_destroy(d);
}

static void half_part(rank_run *r)
{
    half(r->ctx, r->arg, &r->comm);
}

static void test_checkpoint(void **state)
{
    (void)state;
    static job j;
    rank_run runs[MOST_RANKS];
    gnomon_context *ctx;
    gnomon_dedup *d = NULL;
    assert_int_equal(gnomon_context_create(NULL, &ctx), GNOMON_OK);
    make(&j, DOCUMENTS, LONG);
    j.piece = 90;
    j.named = true;
    assert_int_equal(gnomon_dedup_create(ctx, &j.options, &d), GNOMON_OK);
    assert_int_equal(add_all(d, &j), GNOMON_OK);
    j.due = (gnomon_dedup_result){.struct_size = sizeof j.due};
    assert_int_equal(gnomon_dedup_run(d, &j.due), GNOMON_OK);
    take(d, j.count, j.due_kept, &j.due_pairs);
    gnomon_dedup_destroy(d);
    for (int size = 1; size <= 4; size++) {
        if (size == 3)
            half(ctx, &j, NULL);
        else
            run_ranks(5 - size, half_part, &j, runs);
        j.options.checkpoint = "comm-dedup.checkpoint";
        run_ranks(size, dedup_part, &j, runs);
        j.options.checkpoint = NULL;
        for (int i = 0; i < size; i++)
            assert_int_equal(runs[i].status, GNOMON_OK);
        assert_int_equal(j.result.pairs, j.due.pairs);
        assert_int_equal(j.result.ngrams, j.due.ngrams);
        assert_memory_equal(j.kept, j.due_kept, (size_t)j.count * 8);
        assert_memory_equal(j.pairs, j.due_pairs, (size_t)j.due.pairs * sizeof *j.due_pairs);
    }
    gnomon_context_destroy(ctx);
    free(j.text);
    free(j.pairs);
    free(j.due_pairs);
}

/* An allocation that a rank is refused: all are told of it, or that rank ends all. */
static void dedup_without_memory(rank_run *r)
{
    const job *j = r->arg;
    run_limited(r, r->comm.rank == j->odd ? j->at : -1, dedup_part);
}

static void test_memory(void **state)
{
    (void)state;
    enum { SIZE = 3 };
    static job j;
    make(&j, 60, 12);
    j.piece = 20;
    j.named = true;
    for (j.odd = 0; j.odd < SIZE; j.odd++)
        for (j.at = 0;; j.at++) {
            if (run_refused(SIZE, dedup_without_memory, &j, j.odd) == GNOMON_OK) break;
            assert_true(j.at < 1000);
        }
    free(j.text);
    free(j.pairs);
}

static void test_damage(void **state)
{
    (void)state;
    static job j;
    make(&j, 200, 900);
    j.piece = 70;
    all_end_by_damage(3, dedup_part, &j, 40);
    make(&j, 60, 12);
    j.piece = 60;
    j.named = true;
    gnomon_context *ctx;
    gnomon_dedup *d = NULL;
    assert_int_equal(gnomon_context_create(NULL, &ctx), GNOMON_OK);
    assert_int_equal(gnomon_dedup_create(ctx, &j.options, &d), GNOMON_OK);
    assert_int_equal(through_files(d, &j, "comm-dedup.signed", NULL), GNOMON_OK);
    gnomon_dedup_destroy(d);
    gnomon_context_destroy(ctx);
    all_end_by_damage(3, sign_part, &j, 40);
    remove("comm-dedup.signed");
    remove("comm-dedup-ranks.signed");
    free(j.text);
    free(j.pairs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_result),     cmocka_unit_test(test_failures),
        cmocka_unit_test(test_signature_files), cmocka_unit_test(test_checkpoint),
        cmocka_unit_test(test_memory),          cmocka_unit_test(test_damage)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Seconds of one thread from texts to sets of hashed n-grams, by step and instruction set.
 *
 * usage: bench_ngrams TEXTS      a text a line; prints a JSON array, of the best of ROUNDS rounds
 *
 * The steps are those of gnomon_dedup_add: whether a text is UTF-8, its n-grams in order without
 * repetitions, and the hash of the set. */
#include "dedup/ngrams.h"
#include "base/isa.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 7, STEPS = 3 };

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static char *read_all(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) return NULL;
    *size = (size_t)ftell(file);
    rewind(file);
    text = malloc(*size + 1);
    if (text != NULL && fread(text, 1, *size, file) != *size) {
        free(text);
        text = NULL;
    }
    fclose(file);
    return text;
}

/* Seconds of each step; the sum of what they give, so that no step is left out. */
static uint64_t one_round(const gnomon_ngrams *n, const char *text, size_t size, uint64_t *set,
                          uint64_t *scratch, double took[STEPS])
{
    uint64_t sum = 0;
    for (int step = 0; step < STEPS; step++) {
        const double begin = seconds();
        for (const char *at = text; at < text + size;) {
            const char *end = memchr(at, '\n', (size_t)(text + size - at));
            if (end == NULL) end = text + size;
            sum += (uint64_t)gnomon_utf8_fault(at, end - at);
            const int64_t count = step > 0 ? gnomon_ngrams_of(n, at, end - at, set, scratch) : 0;
            sum += count > 0 ? set[count - 1] : 0;
            if (step > 1) sum += gnomon_set_hash(set, count);
            at = end + 1;
        }
        const double passed = seconds() - begin;
        if (passed < took[step]) took[step] = passed;
    }
    return sum;
}

int main(int argc, char **argv)
{
    size_t size = 0;
    char *text = argc == 2 ? read_all(argv[1], &size) : NULL;
    uint64_t *set = malloc((size + 1) * sizeof *set), *scratch = malloc((size + 1) * sizeof *set);
    if (text == NULL || set == NULL || scratch == NULL) {
        fprintf(stderr, "usage: bench_ngrams TEXTS\n");
        return 2;
    }
    const char *comma = "[";
    for (int isa = GNOMON_ISA_PORTABLE; isa <= GNOMON_ISA_AVX512; isa += GNOMON_ISA_AVX512) {
        for (int characters = 0; characters < 2; characters++) {
            gnomon_dedup_options o = GNOMON_DEDUP_OPTIONS_INIT;
            gnomon_ngrams n;
            double took[STEPS] = {1e9, 1e9, 1e9};
            uint64_t sum = 0;
            if (!gnomon_isa_available((gnomon_isa)isa)) continue;
            o.characters = characters;
            o.ngram = characters ? 5 : 3;
            gnomon_ngrams_start(&n, &o, (gnomon_isa)isa);
            for (int round = 0; round < ROUNDS; round++)
                sum = one_round(&n, text, size, set, scratch, took);
            printf("%s{\"isa\": \"%s\", \"ngram\": %d, \"characters\": %s, \"bytes\": %zu, "
                   "\"check_seconds\": %.6f, \"sets_seconds\": %.6f, \"seconds\": %.6f, "
                   "\"sum\": \"%016llx\"}",
                   comma, gnomon_isa_name((gnomon_isa)isa), (int)o.ngram,
                   characters ? "true" : "false", size, took[0], took[1], took[2],
                   (unsigned long long)sum);
            comma = ",\n ";
        }
    }
    printf("]\n");
    free(text);
    free(set);
    free(scratch);
    return 0;
}

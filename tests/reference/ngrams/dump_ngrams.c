/* dump_ngrams NGRAM CHARACTERS LOWER PUNCTUATION NORMALIZE: the n-grams of each text on standard
 * input, a count of bytes of 32 bits and the bytes, to standard output: a count of 32 bits and so
 * many hashes of 64. */
#include <gnomon/dedup.h>

#include <stdio.h>
#include <stdlib.h>

static int failed(gnomon_context *ctx)
{
    fprintf(stderr, "%s\n", gnomon_last_error(ctx));
    return 1;
}

int main(int argc, char **argv)
{
    gnomon_context *ctx;
    gnomon_dedup_options o = GNOMON_DEDUP_OPTIONS_INIT;
    uint32_t bytes;
    if (argc != 6 || gnomon_context_create(NULL, &ctx) != GNOMON_OK) return 2;
    o.ngram = atoi(argv[1]);
    o.characters = atoi(argv[2]);
    o.lower = atoi(argv[3]);
    o.punctuation = atoi(argv[4]);
    o.normalize = atoi(argv[5]);
    while (fread(&bytes, sizeof bytes, 1, stdin) == 1) {
        char *text = malloc((size_t)bytes + 1);
        int64_t count, again;
        if (text == NULL || fread(text, 1, bytes, stdin) != bytes) return 2;
        if (gnomon_text_ngrams(ctx, &o, text, bytes, NULL, 0, &count) != GNOMON_OK)
            return failed(ctx);
        uint64_t *hashes = malloc((size_t)(count + 1) * sizeof *hashes);
        if (hashes == NULL) return 2;
        if (gnomon_text_ngrams(ctx, &o, text, bytes, hashes, count, &again) != GNOMON_OK)
            return failed(ctx);
        const uint32_t told = (uint32_t)again;
        fwrite(&told, sizeof told, 1, stdout);
        fwrite(hashes, sizeof *hashes, (size_t)again, stdout);
        free(hashes);
        free(text);
    }
    gnomon_context_destroy(ctx);
    return 0;
}

/* gnomon/dedup.h: near-duplicates of texts: documents become sets of n-grams, MinHash bands select
 * candidate pairs, every candidate is verified by the Jaccard similarity of its sets, and one
 * document of each connected component is kept.
 *
 * The smallest complete program:
 *
 *     #include <gnomon/dedup.h>
 *     #include <stdio.h>
 *
 *     int main(void)
 *     {
 *         static const char text[] = "a b c d e f g" "a b c d e f h" "another text than those two";
 *         const int64_t begins[] = {0, 13, 26}, ends[] = {13, 26, 53};
 *         const gnomon_documents documents = {.struct_size = sizeof documents, .count = 3,
 *                                             .text = text, .begins = begins, .ends = ends};
 *         gnomon_dedup_options o = GNOMON_DEDUP_OPTIONS_INIT;
 *         gnomon_dedup_result result = {.struct_size = sizeof result};
 *         gnomon_context *ctx;
 *         gnomon_dedup *d = NULL;
 *         o.similarity = 0.5;
 *         gnomon_status status = gnomon_context_create(NULL, &ctx);
 *         if (status == GNOMON_OK) status = gnomon_dedup_create(ctx, &o, &d);
 *         if (status == GNOMON_OK) status = gnomon_dedup_add(d, &documents);
 *         if (status == GNOMON_OK) status = gnomon_dedup_run(d, &result);
 *         printf("%d\n", (int)result.kept); // 2
 *         gnomon_dedup_destroy(d);
 *         gnomon_context_destroy(ctx);
 *         return status;
 *     }
 *
 * The result is the same for every number of threads, memory limit, instruction set, device and
 * division of the documents into calls of gnomon_dedup_add. docs/reference/dedup.md explains how it
 * is found.
 */
#ifndef GNOMON_DEDUP_H
#define GNOMON_DEDUP_H

#include <gnomon/join.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The document of a cluster that is kept. The numbers never change. */
typedef enum gnomon_dedup_keep {
    GNOMON_DEDUP_FIRST = 0,  /* the first one */
    GNOMON_DEDUP_LONGEST = 1 /* the one of the most bytes of text, the first of those */
} gnomon_dedup_keep;

/* What becomes of documents' own bytes. The numbers never change. */
typedef enum gnomon_raw {
    GNOMON_RAW_NONE = 0,
    GNOMON_RAW_HELD = 1, /* they are held, for gnomon_dedup_write */
    GNOMON_RAW_SUM = 2   /* a checksum of them all is, for gnomon_dedup_write_again */
} gnomon_raw;

/* How texts count, besides their ASCII letters and digits. The numbers never change. What needs
 * Unicode's tables is UNSUPPORTED in a build without utf8proc. A text counts as N(F(N(text))), with
 * N the normal form and F the folding, where they are asked for, and then without punctuation; of
 * more than 1024 characters that belong together, as marks on one letter do, parts are normalised.
 */
typedef enum gnomon_lower {
    GNOMON_LOWER_NONE = 0,
    GNOMON_LOWER_ASCII = 1, /* ASCII letters */
    GNOMON_LOWER_FOLD = 2   /* all letters: Unicode's full case folding */
} gnomon_lower;
typedef enum gnomon_punctuation {
    GNOMON_PUNCTUATION_DROP = 0,    /* ASCII punctuation and control characters separate words */
    GNOMON_PUNCTUATION_KEEP = 1,    /* it belongs to words (characters) */
    GNOMON_PUNCTUATION_DROP_ALL = 2 /* all punctuation, symbols, separators and controls separate
                                       words: Unicode's categories P, S, Z and Cc */
} gnomon_punctuation;
typedef enum gnomon_normal_form {
    GNOMON_NORMAL_NONE = 0,
    GNOMON_NORMAL_NFC = 1, /* composed */
    GNOMON_NORMAL_NFKC = 2 /* composed, and without what only looks different: ligatures, full
                              width, superscripts */
} gnomon_normal_form;
/* Unicode's version in the tables; NULL: this library was built without. */
GNOMON_API const char *gnomon_unicode_version(void);

typedef struct gnomon_dedup_options {
    size_t struct_size; /* see gnomon/base.h */
    int64_t
        ngram;         /* words (characters) of an n-gram, 1 to 64. Default 3. A text of fewer is
                          one n-gram; one of none is an empty set, which is near no other. 0: this,
                          the next three, normalize and weighted are those of the first signature file */
    int characters;    /* n-grams of characters, of UTF-8, rather than of words. Default 0 */
    int lower;         /* gnomon_lower: letters count in lower case. Default NONE */
    int punctuation;   /* gnomon_punctuation: what separates words besides white space. White space
                          is that of ASCII; a run of it is one space. Default DROP */
    double similarity; /* documents of this Jaccard similarity or more are near, in (0, 1]. Default
                          0.8 */
    double recall;     /* in (0, 1]. Below 1: a pair of near documents is missed with probability
                          (1 - recall) / 20 at most, so that at least this share of all near pairs
                          is found in 19 of 20 runs (Markov's inequality); see 'uncompared' of the
                          result for the one exception. 1: the exact join of the sets, which must
                          fit in memory. Default 0.95 */
    int64_t bands, rows; /* both or neither (0, the default): so many bands of so many hashes, 1 to
                            1024 and 1 to 64. recall is then ignored, and the result's recall_bound
                            says what these give */
    uint64_t seed;       /* of the hash functions. Default 0 */
    int exact;           /* only documents of equal bytes are duplicates; nothing above matters.
                            Default 0 */
    int unverified;      /* documents that share a band are near, whatever their similarity. Default
                            0. Not with recall 1 or exact */
    int64_t bucket;      /* pairs of a bucket of at most this many distinct sets are all compared;
                            in a larger one each set is compared with at most 64 of them. 2 to 2^20,
                            default 256 */
    gnomon_dedup_keep keep; /* default FIRST */
    int keep_raw;           /* gnomon_raw. Default NONE */
    const char *work;       /* the folder of temporary files; NULL (default): $TMPDIR, else /tmp */
    int normalize; /* gnomon_normal_form, of texts that have more than ASCII. Default NONE */
    /* A file: what has been done is kept in it and in files named as it, with .documents, .sets,
     * .texts, .names and .pairs behind, every two seconds or, if keeping takes long, so that it
     * takes a tenth of the time. With the same options and documents gnomon_dedup_create goes on
     * there; see gnomon_dedup_restored. NULL (default): nothing is kept. */
    const char *checkpoint;
    /* With checkpoint: a text that must be the same to go on with it, UTF-8, such as what the
     * documents come from. Default NULL. */
    const char *identity;
    /* A document is the multiset of its n-grams: one that it has several times counts so often, and
     * the similarity of two documents is the sum of the lesser counts over that of the greater ones
     * (weighted Jaccard). The k-th occurrence is a member of its own, so that all of the above
     * holds. The CPU makes such sets: DEVICE where the context names another device. Default 0 */
    int weighted;
    /* The similarity is the share of the smaller document's n-grams that the larger one has:
     * |A n B| / min(|A|, |B|). All near pairs of distinct sets are found, as with recall 1, by
     * lists of the sets that have an n-gram, which take 16 bytes of memory each n-gram; recall and
     * seed are ignored. Not with exact, unverified or bands. Runs on the CPU. Default 0 */
    int containment;
    /* The ranks that share the work (gnomon/comm.h). All make the same calls: create with the same
     * options (checkpoint is rank 0's), add of the same documents, and run. Each makes the sets of
     * a part of the documents, on the CPU; rank 0 has all of them and does the rest, with the same
     * result as without. The others have the result of gnomon_dedup_run alone: the calls for
     * representatives, pairs and names give them nothing; those that write or read files do nothing
     * there, but all ranks must make the calls of signature files, too, and wait for rank 0 in
     * them. A failure in create, add, run or a call of signature files is that of all, in the call
     * that comes next. NULL (default): this process alone. */
    const struct gnomon_comm *comm;
} gnomon_dedup_options;

#define GNOMON_DEDUP_OPTIONS_INIT                                                   \
    {                                                                               \
        sizeof(gnomon_dedup_options), 3, 0, 0, 0, 0.8, 0.95, 0, 0, 0, 0, 0, 256,    \
            GNOMON_DEDUP_FIRST, 0, NULL, GNOMON_NORMAL_NONE, NULL, NULL, 0, 0, NULL \
    }
/* The same for bindings: see gnomon_context_options_init. */
GNOMON_API gnomon_status gnomon_dedup_options_init(gnomon_dedup_options *options, size_t size);

/* Documents as a caller gives them: document i is the bytes text[begins[i], ends[i]). */
typedef struct gnomon_documents {
    size_t struct_size; /* set by the caller; see gnomon/base.h */
    int64_t count;
    const char *text;
    const int64_t *begins, *ends;
    /* With options.keep_raw: what gnomon_dedup_write and gnomon_dedup_write_again write of document
     * i, the bytes text[raw_begins[i], raw_ends[i]); NULL: the document itself. */
    const int64_t *raw_begins, *raw_ends;
    /* A name for each, of at most 2^20 bytes, for gnomon_dedup_name and gnomon_dedup_sign; NULL:
     * they have none, and no later ones may. */
    const char *const *names;
} gnomon_documents;

#define GNOMON_DOCUMENTS_INIT                                           \
    {                                                                   \
        sizeof(gnomon_documents), 0, NULL, NULL, NULL, NULL, NULL, NULL \
    }
/* The same for bindings: see gnomon_context_options_init. */
GNOMON_API gnomon_status gnomon_documents_init(gnomon_documents *options, size_t size);

/* Documents and what was found. One thread at a time may use it and its context, which must outlive
 * it. */
typedef struct gnomon_dedup gnomon_dedup;

/* Errors: ARGUMENT (options), NOT_FOUND (options.work), MEMORY, DEVICE (a device that the context
 * names and that makes no such sets: recall 1, exact and ngram 0 are the CPU's); of
 * options.checkpoint: IO (its files, or another run uses it), DATA (of another deduplication, or
 * damaged), CANCELLED. On failure *out is NULL. */
GNOMON_API gnomon_status gnomon_dedup_create(gnomon_context *ctx,
                                             const gnomon_dedup_options *options,
                                             gnomon_dedup **out);
/* Adds documents, which are copied as far as they are needed: 8 bytes for each distinct n-gram (or,
 * with exact, the text), in memory up to the context's limit and beyond that in a temporary file
 * without a name. They are numbered from 0 in the order in which they are added. After a failure
 * only gnomon_dedup_destroy is allowed.
 * Errors:
 *  - ARGUMENT: documents; begins and ends that aren't ascending offsets; names that are NULL, too
 *    long, or follow documents without; after gnomon_dedup_run
 *  - DATA: a text that isn't UTF-8, naming the document
 *  - UNSUPPORTED: 2^32 - 1 documents or more
 *  - IO: the temporary file
 *  - MEMORY, DEVICE: of texts of an earlier call, too, on a device. gnomon_dedup_run and
 *    gnomon_dedup_sign take the last ones from there, and may fail likewise */
GNOMON_API gnomon_status gnomon_dedup_add(gnomon_dedup *dedup, const gnomon_documents *documents);

/* Documents that options.checkpoint holds. They must be added again, the same ones in the same
 * order: they are skipped, and of them the lengths alone are checked. Signature files
 * are added again likewise. */
GNOMON_API int64_t gnomon_dedup_restored(const gnomon_dedup *dedup);
/* Removes the files of options.checkpoint: what was found is written, and they have done their
 * work. NULL is allowed. */
GNOMON_API void gnomon_dedup_forget(gnomon_dedup *dedup);

enum { GNOMON_DEDUP_HISTOGRAM = 20, GNOMON_DEDUP_LARGEST = 10, GNOMON_DEDUP_WHY = 256 };

/* What was found. Counts but for 'candidates' are the same for every memory limit. */
typedef struct gnomon_dedup_result {
    size_t struct_size; /* set by the caller; see gnomon/base.h */
    int64_t documents, text_bytes;
    int64_t empty;            /* documents without an n-gram */
    int64_t distinct;         /* distinct sets (with exact: texts), empty ones not counted */
    int64_t ngrams;           /* of them all: distinct n-grams of each set */
    int64_t kept, kept_bytes; /* bytes of text */
    int64_t clusters;         /* of two documents or more */
    int64_t clustered;        /* documents in them */
    int64_t largest[GNOMON_DEDUP_LARGEST]; /* documents in the largest clusters, descending */
    int64_t pairs; /* found: those of distinct sets, and one for each further document of a set */
    /* Pairs of distinct sets by similarity: number b counts those in [b / 20, (b + 1) / 20). */
    int64_t histogram[GNOMON_DEDUP_HISTOGRAM];
    int64_t bands, rows; /* 0: the exact join */
    double recall_bound; /* 1 - 20 x the probability that all bands miss a pair of exactly the
                            similarity; 1 of the exact join; it may be negative */
    int64_t large;       /* buckets of more distinct sets than options.bucket */
    int64_t uncompared;  /* pairs in them that weren't compared there; 0: the guarantee of
                            'recall' holds for all pairs */
    int64_t candidates;  /* pairs that were verified, some of them more than once */
    double add_seconds, group_seconds, plan_seconds, hash_seconds, verify_seconds, cluster_seconds;
    int spilled; /* a temporary file was used */
    char why[GNOMON_DEDUP_WHY];
    int64_t old;  /* documents of gnomon_dedup_add_old: not counted above but in distinct sets,
                     n-grams, clusters and their sizes */
    int64_t held; /* documents that aren't kept for one of those */
} gnomon_dedup_result;

/* Finds the near-duplicates; once for a gnomon_dedup. result may be NULL, else its struct_size must
 * be set.
 * Errors:
 *  - ARGUMENT: a second call
 *  - MEMORY: the exact join's sets don't fit in the context's limit; no memory for the documents,
 *    about 5 bytes each beside that limit
 *  - IO: the temporary file
 *  - CANCELLED: the progress callback */
GNOMON_API gnomon_status gnomon_dedup_run(gnomon_dedup *dedup, gnomon_dedup_result *result);

/* Documents' representatives, after gnomon_dedup_run: entry i is the document that is kept of i's
 * cluster, i itself where it is kept. One entry a document but the old ones; owned by dedup. NULL
 * before, or where they are in a file that can't be mapped. Entries that the context's memory limit
 * does not hold are a map of a temporary file: each further call lets go of the pages that were
 * read. */
GNOMON_API const int64_t *gnomon_dedup_representatives(gnomon_dedup *dedup);

/* The pairs that were found, after gnomon_dedup_run, sorted by (i, j): of the first documents i < j
 * of two distinct sets, and of the first document of a set with each further one. 'similarity' is
 * |A and B| / |A or B| as fp64 divides. They are owned by dedup, and a map as the representatives
 * are; *count is 0 before. count may be NULL. */
typedef struct gnomon_dedup_pair {
    uint32_t i, j;
    double similarity;
} gnomon_dedup_pair;
GNOMON_API const gnomon_dedup_pair *gnomon_dedup_pairs(gnomon_dedup *dedup, int64_t *count);

/* Writes the bytes of the kept documents, in their order, to path ("-": standard output), through a
 * temporary file that replaces it at the end.
 * Errors: ARGUMENT (keep_raw is not HELD; before gnomon_dedup_run), IO, NOT_FOUND. */
GNOMON_API gnomon_status gnomon_dedup_write(gnomon_dedup *dedup, const char *path);

/* ---- the n-grams of one text ---- */

/* The distinct n-grams of the text [text, text + bytes) as hashes of 64 bits, ascending; of the
 * options ngram, characters, lower, punctuation and normalize count. docs/reference/formats.md
 * defines the hash: it is the same on every machine. The text need not be UTF-8 unless it is
 * normalised; then what is not counts as U+FFFD. *count tells how many there are; hashes has room
 * for 'room' of them, or is NULL. bytes are enough room for a text that is not normalised.
 * Errors: ARGUMENT (options, bytes, too little room), UNSUPPORTED (a build without utf8proc),
 * MEMORY. */
GNOMON_API gnomon_status gnomon_text_ngrams(gnomon_context *ctx,
                                            const gnomon_dedup_options *options, const char *text,
                                            int64_t bytes, uint64_t *hashes, int64_t room,
                                            int64_t *count);

/* ---- signature files: parts of a corpus, merged ----
 *
 * A signature file holds documents' names, the bytes of their texts and their sets, so that pairs
 * are verified without the texts. Documents of merged files are numbered by name, in the order of
 * bytes (then by the text's bytes, then by set): the result is the same for any division of a
 * corpus into files and any order of these, as long as names don't depend on it.
 * docs/reference/formats.md has the layout; files are the same on every machine. */

/* Writes the documents that were added to path ("-": standard output), through a temporary file
 * that replaces it at the end; before or after gnomon_dedup_run. names holds one text for each
 * document that has no name yet; NULL where all have. No document can be added afterwards.
 * Errors: ARGUMENT (options.exact; a name that is NULL or of over 2^20 bytes), IO, NOT_FOUND,
 * MEMORY. */
GNOMON_API gnomon_status gnomon_dedup_sign(gnomon_dedup *dedup, const char *const *names,
                                           const char *path);
/* Adds the documents of count signature files, merged; before any others, once. One document of
 * each file is in memory at a time.
 * Errors:
 *  - ARGUMENT: documents were added before; options.exact or keep_raw
 *  - NOT_FOUND, IO, TRUNCATED
 *  - UNSUPPORTED: no signature file, or a later version
 *  - DATA: made with other n-grams than options say; damaged, which the checksum finds
 *  - MEMORY */
GNOMON_API gnomon_status gnomon_dedup_add_signed(gnomon_dedup *dedup, const char *const *paths,
                                                 int64_t count);
/* Adds the documents of an old corpus: those of count signature files, merged; after all others,
 * once. gnomon_dedup_run then finds the new documents that are near old ones, too, or connected
 * with them by others: their representative is the first old one of the cluster, and none of them
 * is kept. Pairs of old documents are not looked for, and old documents are not written. The old
 * one number k has the number 'documents' of the result + k; numbers in pairs and representatives
 * of 'documents' or more are old ones, and gnomon_dedup_name has their names.
 * Errors: as gnomon_dedup_add_signed, but that other documents and keep_raw are allowed, and
 * ARGUMENT: after gnomon_dedup_sign; a second call. */
GNOMON_API gnomon_status gnomon_dedup_add_old(gnomon_dedup *dedup, const char *const *paths,
                                              int64_t count);
/* The name that a document came with, after gnomon_dedup_run or gnomon_dedup_sign; owned by dedup.
 * NULL of any other. */
GNOMON_API const char *gnomon_dedup_name(gnomon_dedup *dedup, int64_t document);

/* NULL is allowed. */
GNOMON_API void gnomon_dedup_destroy(gnomon_dedup *dedup);

/* ---- repeated parts of documents ---- */

/* The numbers never change. */
typedef enum gnomon_part {
    GNOMON_PART_LINE = 1,     /* a line of a text, without its end, "\n" or "\r\n" */
    GNOMON_PART_PARAGRAPH = 2 /* lines between blank ones, without the end of the last */
} gnomon_part;

typedef struct gnomon_parts_options {
    size_t struct_size; /* see gnomon/base.h */
    int part;           /* gnomon_part. Default LINE */
    int64_t min_bytes;  /* shorter parts stay, and are not compared; at least 1. Default 1 */
    const char *field;  /* raw bytes of documents are JSON objects, and the text is this member's
                           string. NULL (default): the text stands among the raw bytes as it is */
    const char *work;   /* these three as in gnomon_dedup_options */
    const char *checkpoint;
    const char *identity;
} gnomon_parts_options;

#define GNOMON_PARTS_OPTIONS_INIT                                                 \
    {                                                                             \
        sizeof(gnomon_parts_options), GNOMON_PART_LINE, 1, NULL, NULL, NULL, NULL \
    }
/* The same for bindings: see gnomon_context_options_init. */
GNOMON_API gnomon_status gnomon_parts_options_init(gnomon_parts_options *options, size_t size);

/* Documents and their parts. Of equal parts, within a document and among all, the first one stays
 * and the others are removed: with the end of the line, of a paragraph with the blank lines behind
 * it. A document of which nothing but white space is left is removed as a whole. Blank lines are no
 * parts. Parts are compared byte by byte. The result is the same for every number of threads,
 * memory limit and division of the documents into calls. One thread at a time may use it and its
 * context, which must outlive it. */
typedef struct gnomon_parts gnomon_parts;

/* Errors: ARGUMENT (options), and those of gnomon_dedup_create. On failure *out is NULL. */
GNOMON_API gnomon_status gnomon_parts_create(gnomon_context *ctx,
                                             const gnomon_parts_options *options,
                                             gnomon_parts **out);
/* Adds documents, which are copied: in memory up to the context's limit, and beyond that in a
 * temporary file without a name. names are not used. After a failure only gnomon_parts_destroy is
 * allowed.
 * Errors: as gnomon_dedup_add, with 2^32 - 2 parts and pieces between them at most; ARGUMENT: raw
 * bytes that don't hold the text as options.field says. */
GNOMON_API gnomon_status gnomon_parts_add(gnomon_parts *parts, const gnomon_documents *documents);

typedef struct gnomon_parts_result {
    size_t struct_size; /* set by the caller; see gnomon/base.h */
    int64_t documents, text_bytes;
    int64_t kept;    /* documents of which something is left */
    int64_t changed; /* those of them that lost a part */
    int64_t parts;   /* of min_bytes or more */
    int64_t distinct;
    int64_t removed, removed_bytes;        /* parts, and their bytes without ends of lines */
    int64_t largest[GNOMON_DEDUP_LARGEST]; /* how often the most frequent parts occur, of those that
                                              occur more than once; descending */
    int spilled;                           /* a temporary file was used */
} gnomon_parts_result;

/* Finds the repeated parts; once. result may be NULL, else its struct_size must be set.
 * Errors: ARGUMENT (a second call), MEMORY (about 5 bytes for each part beside the context's
 * limit), IO (the temporary file), CANCELLED. */
GNOMON_API gnomon_status gnomon_parts_run(gnomon_parts *parts, gnomon_parts_result *result);
/* What is left of a document's raw bytes, after gnomon_parts_run: *out is NULL where the document
 * is removed. It is owned by parts and valid until the next call. Reading in ascending order is
 * fastest.
 * Errors: ARGUMENT, IO, MEMORY. */
GNOMON_API gnomon_status gnomon_parts_left(gnomon_parts *parts, int64_t document, const char **out,
                                           int64_t *bytes);
/* Writes what is left of all documents, one after another, to path ("-": standard output), through
 * a temporary file that replaces it at the end.
 * Errors: ARGUMENT, IO, NOT_FOUND, MEMORY. */
GNOMON_API gnomon_status gnomon_parts_write(gnomon_parts *parts, const char *path);
/* As gnomon_dedup_restored, of parts and what is between them, and gnomon_dedup_forget. */
GNOMON_API int64_t gnomon_parts_restored(const gnomon_parts *parts);
GNOMON_API void gnomon_parts_forget(gnomon_parts *parts);
/* NULL is allowed. */
GNOMON_API void gnomon_parts_destroy(gnomon_parts *parts);

/* ---- documents in files ---- */

/* The numbers never change. */
typedef enum gnomon_corpus_kind {
    GNOMON_CORPUS_AUTO = 0,  /* by the name: FILES of a folder; JSON of .jsonl, .ndjson and .json,
                                with .gz or .zst behind or not; else LINES */
    GNOMON_CORPUS_LINES = 1, /* each line is a document */
    GNOMON_CORPUS_JSON = 2,  /* each line is a JSON object, with the text in a member */
    GNOMON_CORPUS_FILES = 3  /* each file of a folder and the folders in it, by name, or one file */
} gnomon_corpus_kind;

/* A document that is left out: the file, its line from 1 on (0: the whole file), and why. */
typedef void (*gnomon_corpus_bad)(void *user, const char *file, int64_t line, const char *why);

typedef struct gnomon_corpus_options {
    size_t struct_size; /* see gnomon/base.h */
    gnomon_corpus_kind kind;
    const char *field;     /* JSON: the member with the text. Default "text" */
    const char *id;        /* JSON: a member, text or an integer, that names the document. Default
                              NULL: file and line */
    int64_t max_bytes;     /* of a document (JSON: of its line), at least 1. Default 16 MiB */
    int names;             /* whether batches have names. Default 0 */
    gnomon_corpus_bad bad; /* NULL (default): a bad document is an error */
    void *user;            /* for bad */
} gnomon_corpus_options;

#define GNOMON_CORPUS_OPTIONS_INIT                                                            \
    {                                                                                         \
        sizeof(gnomon_corpus_options), GNOMON_CORPUS_AUTO, "text", NULL, (int64_t)1 << 24, 0, \
            NULL, NULL                                                                        \
    }
GNOMON_API gnomon_status gnomon_corpus_options_init(gnomon_corpus_options *options, size_t size);

/* A file or folder of documents that is read once, from its start. One thread at a time. */
typedef struct gnomon_corpus gnomon_corpus;

/* Opens path; "-" is standard input. A gzip or zstd stream is read through.
 * Errors: ARGUMENT (options), NOT_FOUND, IO, DATA (a broken gzip or zstd stream), UNSUPPORTED
 * (zstd, where the library was built without), MEMORY. On failure *out is NULL. */
GNOMON_API gnomon_status gnomon_corpus_open(gnomon_context *ctx, const char *path,
                                            const gnomon_corpus_options *options,
                                            gnomon_corpus **out);
/* The next documents, with the bytes of their lines (files) as raw ones; count 0 at the end. Valid
 * until the next call. names, unless NULL, receives one text for each of them, or NULL if
 * options.names is 0.
 * Errors: DATA (a document that is empty, white space only, no UTF-8, larger than max_bytes or
 * broken JSON, unless there is options.bad, naming file and line), IO, MEMORY. */
GNOMON_API gnomon_status gnomon_corpus_next(gnomon_corpus *corpus, gnomon_documents *documents,
                                            const char *const **names);
/* The kind that AUTO stood for. */
GNOMON_API gnomon_corpus_kind gnomon_corpus_kind_of(const gnomon_corpus *corpus);
/* NULL is allowed. */
GNOMON_API void gnomon_corpus_close(gnomon_corpus *corpus);

/* As gnomon_dedup_write, with keep_raw SUM: the bytes are read again from the 'count' files whose
 * documents were added, in their order, with the same options (NULL: the defaults; names don't
 * matter, and bad is not called but says whether bad documents are left out). No copy of the corpus
 * is needed then.
 * Errors: as gnomon_dedup_write and gnomon_corpus_next; ARGUMENT (count, inputs); DATA: the files
 * don't hold the bytes that were added, which the checksum tells. Nothing is written to path then,
 * unless it is standard output, a pipe or a device. */
GNOMON_API gnomon_status gnomon_dedup_write_again(gnomon_dedup *dedup, const char *const *inputs,
                                                  int64_t count,
                                                  const gnomon_corpus_options *options,
                                                  const char *path);

#ifdef __cplusplus
}
#endif
#endif

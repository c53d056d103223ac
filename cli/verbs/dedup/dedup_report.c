/* What came of gnomon dedup, in words and as JSON. */
#include "verbs/dedup/dedup.h"

#include <string.h>

static void print_histogram(const cli_dedup_job *j)
{
    enum { WIDTH = 40 };
    int64_t most = 0;
    int first = GNOMON_DEDUP_HISTOGRAM;
    for (int b = GNOMON_DEDUP_HISTOGRAM - 1; b >= 0; b--) {
        if (j->result.histogram[b] > 0) first = b;
        most = cli_max(most, j->result.histogram[b]);
    }
    if (most == 0) return;
    cli_say(j->app, "Pairs of distinct documents by similarity:\n");
    for (int b = first; b < GNOMON_DEDUP_HISTOGRAM; b++) {
        char bar[WIDTH + 1];
        const int64_t count = j->result.histogram[b];
        const int64_t length = (int64_t)((double)count / (double)most * WIDTH + 0.5);
        memset(bar, '#', WIDTH);
        bar[length] = '\0';
        cli_say(j->app, "  %.2f  %10lld%s%s\n", b / (double)GNOMON_DEDUP_HISTOGRAM,
                (long long)count, length > 0 ? "  " : "", bar);
    }
}

void cli_dedup_words(const cli_dedup_job *j)
{
    const gnomon_dedup_result *r = &j->result;
    cli_say(j->app, "%lld documents, %lld bytes of text; %lld kept, %lld bytes.\n",
            (long long)r->documents, (long long)r->text_bytes, (long long)r->kept,
            (long long)r->kept_bytes);
    if (j->skipped > 0)
        cli_say(j->app, "%lld bad documents were left out.\n", (long long)j->skipped);
    if (j->against != NULL)
        cli_say(j->app, "%lld old documents; %lld documents were removed for one of them.\n",
                (long long)r->old, (long long)r->held);
    cli_say(j->app, "%lld distinct %s", (long long)r->distinct,
            j->options.exact ? "texts" : "sets of n-grams");
    if (r->empty > 0)
        cli_say(j->app, ", and %lld documents without an n-gram", (long long)r->empty);
    if (r->bands > 0)
        cli_say(j->app, "; %lld bands of %lld MinHash values, %lld candidates", (long long)r->bands,
                (long long)r->rows, (long long)r->candidates);
    cli_say(j->app, ".\n%lld pairs; %lld clusters, with %lld documents in them",
            (long long)r->pairs, (long long)r->clusters, (long long)r->clustered);
    for (int c = 0; c < GNOMON_DEDUP_LARGEST && r->largest[c] > 0; c++)
        cli_say(j->app, "%s%lld", c == 0 ? "; the largest: " : ", ", (long long)r->largest[c]);
    cli_say(j->app, ".\n");
    if (r->uncompared > 0)
        cli_say(j->app,
                "%lld buckets had more than %lld sets: %lld pairs in them were not compared there, "
                "and the recall is not guaranteed for these.\n",
                (long long)r->large, (long long)j->options.bucket, (long long)r->uncompared);
    print_histogram(j);
}

static json_t *counts_of(const int64_t *values, int count)
{
    json_t *list = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(list, json_integer(values[i]));
    return list;
}

/* Those of the largest that there are, which fall to 0. */
static json_t *largest_of(const int64_t largest[GNOMON_DEDUP_LARGEST])
{
    int count = 0;
    while (count < GNOMON_DEDUP_LARGEST && largest[count] > 0)
        count++;
    return counts_of(largest, count);
}

static json_t *inputs_of(const cli_dedup_job *j)
{
    json_t *inputs = json_array();
    for (int i = 0; i < j->input_count; i++)
        json_array_append_new(inputs, cli_json_name(j->inputs[i]));
    return inputs;
}

/* The old corpus, and the first documents that are removed for one of it. */
static json_t *against_of(const cli_dedup_job *j)
{
    json_t *removed = json_array();
    const int64_t *kept = gnomon_dedup_representatives(j->dedup);
    for (int64_t i = 0; kept != NULL && i < j->result.documents; i++) {
        if (kept[i] < j->result.documents) continue;
        json_array_append_new(removed,
                              json_pack("{s:I, s:o, s:I, s:o}", "document", (json_int_t)i, "name",
                                        cli_json_name(gnomon_dedup_name(j->dedup, i)), "old",
                                        (json_int_t)kept[i], "old_name",
                                        cli_json_name(gnomon_dedup_name(j->dedup, kept[i]))));
        if (json_array_size(removed) == CLI_DEDUP_SHOWN) break;
    }
    return json_pack("{s:o, s:I, s:I, s:o}", "against", cli_json_name(j->against), "old_documents",
                     (json_int_t)j->result.old, "removed_for_old", (json_int_t)j->result.held,
                     "first_removed", removed);
}

json_t *cli_dedup_json(const cli_dedup_job *j)
{
    const gnomon_dedup_result *r = &j->result;
    json_t *figures = json_pack(
        "{s:o, s:o*, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:b, s:b, "
        "s:b, s:f, s:f}",
        "inputs", inputs_of(j), "output", cli_json_name(j->output), "documents",
        (json_int_t)r->documents, "text_bytes", (json_int_t)r->text_bytes, "kept",
        (json_int_t)r->kept, "kept_bytes", (json_int_t)r->kept_bytes, "skipped",
        (json_int_t)j->skipped, "empty", (json_int_t)r->empty, "distinct", (json_int_t)r->distinct,
        "ngrams", (json_int_t)r->ngrams, "pairs", (json_int_t)r->pairs, "clusters",
        (json_int_t)r->clusters, "clustered", (json_int_t)r->clustered, "largest_clusters",
        largest_of(r->largest), "histogram", counts_of(r->histogram, GNOMON_DEDUP_HISTOGRAM),
        "exact", j->options.exact, "weighted", j->options.weighted, "containment",
        j->options.containment, "similarity", j->options.similarity, "recall_bound",
        r->recall_bound);
    figures = cli_json_join(
        figures, json_pack("{s:I, s:I, s:I, s:I, s:I, s:b, s:s}", "bands", (json_int_t)r->bands,
                           "rows", (json_int_t)r->rows, "candidates", (json_int_t)r->candidates,
                           "large_buckets", (json_int_t)r->large, "uncompared",
                           (json_int_t)r->uncompared, "spilled", r->spilled, "why", r->why));
    figures =
        cli_json_join(figures, json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "read_seconds",
                                         cli_json_seconds(j->read_seconds - r->add_seconds),
                                         "ngram_seconds", cli_json_seconds(r->add_seconds),
                                         "group_seconds", cli_json_seconds(r->group_seconds),
                                         "plan_seconds", cli_json_seconds(r->plan_seconds),
                                         "hash_seconds", cli_json_seconds(r->hash_seconds),
                                         "verify_seconds", cli_json_seconds(r->verify_seconds),
                                         "cluster_seconds", cli_json_seconds(r->cluster_seconds),
                                         "write_seconds", cli_json_seconds(j->write_seconds)));
    if (j->against != NULL) figures = cli_json_join(figures, against_of(j));
    if (figures != NULL && j->skipped > 0)
        json_object_set(figures, "skipped_documents", j->skipped_list);
    return figures;
}

/* ---- parts ---- */

static const char *part_name(const cli_dedup_job *j)
{
    return j->part == GNOMON_PART_LINE ? "lines" : "paragraphs";
}

void cli_dedup_parts_words(const cli_dedup_job *j)
{
    const gnomon_parts_result *r = &j->parts_result;
    cli_say(j->app, "%lld documents, %lld bytes of text; %lld kept, of which %lld lost %s.\n",
            (long long)r->documents, (long long)r->text_bytes, (long long)r->kept,
            (long long)r->changed, part_name(j));
    if (j->skipped > 0)
        cli_say(j->app, "%lld bad documents were left out.\n", (long long)j->skipped);
    cli_say(j->app, "%lld %s, %lld distinct; %lld removed, %lld bytes", (long long)r->parts,
            part_name(j), (long long)r->distinct, (long long)r->removed,
            (long long)r->removed_bytes);
    for (int c = 0; c < GNOMON_DEDUP_LARGEST && r->largest[c] > 0; c++)
        cli_say(j->app, "%s%lld", c == 0 ? "; the most frequent occur so often: " : ", ",
                (long long)r->largest[c]);
    cli_say(j->app, ".\n");
}

json_t *cli_dedup_parts_json(const cli_dedup_job *j)
{
    const gnomon_parts_result *r = &j->parts_result;
    json_t *figures = json_pack(
        "{s:o, s:o*, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:b, s:f}",
        "inputs", inputs_of(j), "output", cli_json_name(j->output), "parts_are", part_name(j),
        "min_part", (json_int_t)j->parts_options.min_bytes, "documents", (json_int_t)r->documents,
        "text_bytes", (json_int_t)r->text_bytes, "skipped", (json_int_t)j->skipped, "kept",
        (json_int_t)r->kept, "changed", (json_int_t)r->changed, "parts", (json_int_t)r->parts,
        "distinct", (json_int_t)r->distinct, "removed", (json_int_t)r->removed, "removed_bytes",
        (json_int_t)r->removed_bytes, "most_frequent", largest_of(r->largest), "spilled",
        r->spilled, "read_seconds", cli_json_seconds(j->read_seconds));
    if (figures != NULL && j->skipped > 0)
        json_object_set(figures, "skipped_documents", j->skipped_list);
    return figures;
}

/* What an index is made of, and how points come into it. */
#include "verbs/index/index.h"

#include <stdlib.h>
#include <time.h>

static void hashed_words(FILE *stream, const gnomon_lsh_info *i)
{
    const gnomon_lsh_options *o = &i->options;
    const gnomon_lsh_functions *f = &o->functions;
    fprintf(stream, "%s", gnomon_lsh_family_name(f->family));
    if (f->centre_count > 0) {
        fprintf(stream,
                ", seed %llu: %lld centres, %lld lists that are not empty, at most %lld points in "
                "one\na query probes %lld more lists; beside the points the index takes %.1f MiB\n",
                (unsigned long long)f->seed, (long long)f->centre_count, (long long)i->buckets,
                (long long)i->largest, (long long)o->search_params.probes,
                (double)cli_index_bytes(i) / (1 << 20));
        return;
    }
    if (f->width > 0) fprintf(stream, ", width %g", f->width);
    if (f->sides > 0) fprintf(stream, ", %lld directions per function", (long long)f->sides);
    if (f->descriptor != NULL) fprintf(stream, ", %s", gnomon_kind_name(f->descriptor->kind));
    fprintf(stream, ", seed %llu: %lld tables of %lld", (unsigned long long)f->seed,
            (long long)o->tables, (long long)o->coarse);
    if (o->fine > 0) fprintf(stream, " + %lld", (long long)o->fine);
    fprintf(stream, " functions, %lld buckets, at most %lld points in one\n", (long long)i->buckets,
            (long long)i->largest);
    fprintf(stream, "a query probes %lld more buckets", (long long)o->search_params.probes);
    if (o->search_params.coarse > 0)
        fprintf(stream, ", %lld coarse ones", (long long)o->search_params.coarse);
    if (o->search_params.candidates > 0)
        fprintf(stream, ", until it has %lld candidates", (long long)o->search_params.candidates);
    if (o->search_params.rerank > 0)
        fprintf(stream, ", reranks the nearest %lld by code", (long long)o->search_params.rerank);
    fprintf(stream, "; beside the points the index takes %.1f MiB\n",
            (double)cli_index_bytes(i) / (1 << 20));
}

void cli_index_words(FILE *stream, const cli_index_file *index)
{
    gnomon_lsh_info info;
    gnomon_sparse_index_info i = {.struct_size = sizeof i};
    cli_index_describe(index, &info);
    const gnomon_metric metric = info.options.metric;
    fprintf(stream, "%lld points of %lld %s, %lld removed, by %s\n", (long long)info.points,
            (long long)info.options.functions.dim, cli_metric(metric)->unit,
            (long long)info.removed, gnomon_metric_name(metric));
    if (index->hashed != NULL) {
        hashed_words(stream, &info);
        return;
    }
    if (index->coded != NULL) {
        gnomon_rabitq_info coded = {.struct_size = sizeof coded};
        gnomon_rabitq_describe(index->coded, &coded);
        fprintf(stream,
                "RaBitQ codes of %lld bit%s a coordinate, seed %llu%s; beside the points they take "
                "%.1f MiB\n",
                (long long)coded.options.bits, coded.options.bits == 1 ? "" : "s",
                (unsigned long long)coded.options.seed,
                coded.options.codes_only ? ", without points" : "",
                (double)coded.code_bytes / (1 << 20));
        return;
    }
    gnomon_sparse_index_describe(index->inverted, &i);
    fprintf(stream,
            "inverted index of %lld nonzeros in %lld columns, %lld of them in a dense block; "
            "beside the points it takes %.1f MiB\n",
            (long long)i.nonzeros, (long long)i.columns, (long long)i.heavy_columns,
            (double)i.index_bytes / (1 << 20));
}

static json_t *inverted_json(const gnomon_sparse_index *index)
{
    gnomon_sparse_index_info i = {.struct_size = sizeof i};
    gnomon_sparse_index_describe(index, &i);
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "metric",
                     gnomon_metric_name(i.metric), "points", (json_int_t)i.points, "removed",
                     (json_int_t)i.removed, "dimensions", (json_int_t)i.dim, "nonzeros",
                     (json_int_t)i.nonzeros, "columns", (json_int_t)i.columns, "heavy_columns",
                     (json_int_t)i.heavy_columns, "point_bytes", (json_int_t)i.point_bytes,
                     "index_bytes", (json_int_t)i.index_bytes);
}

static json_t *coded_json(const gnomon_rabitq *index)
{
    gnomon_rabitq_info i = {.struct_size = sizeof i};
    char seed[24];
    gnomon_rabitq_describe(index, &i);
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)i.options.seed);
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:s, s:b, s:I}", "metric",
                     gnomon_metric_name(i.options.metric), "points", (json_int_t)i.points,
                     "removed", (json_int_t)0, "dimensions", (json_int_t)i.dim, "bits",
                     (json_int_t)i.options.bits, "seed", seed, "codes_only", i.options.codes_only,
                     "index_bytes", (json_int_t)i.code_bytes);
}

static json_t *hashed_json(const gnomon_lsh_info *i)
{
    const gnomon_lsh_options *o = &i->options;
    const gnomon_lsh_functions *f = &o->functions;
    json_t *out = json_pack(
        "{s:s, s:I, s:I, s:I, s:s, s:f, s:I, s:s*, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, "
        "s:I, s:I}",
        "metric", gnomon_metric_name(o->metric), "points", (json_int_t)i->points, "removed",
        (json_int_t)i->removed, "dimensions", (json_int_t)f->dim, "family",
        gnomon_lsh_family_name(f->family), "width", f->width, "sides", (json_int_t)f->sides,
        "directions", f->descriptor != NULL ? gnomon_kind_name(f->descriptor->kind) : NULL,
        "tables", (json_int_t)o->tables, "functions", (json_int_t)o->coarse, "fine",
        (json_int_t)o->fine, "codes", (json_int_t)o->codes, "probes",
        (json_int_t)o->search_params.probes, "coarse_probes", (json_int_t)o->search_params.coarse,
        "limit", (json_int_t)o->search_params.candidates, "rerank",
        (json_int_t)o->search_params.rerank, "buckets", (json_int_t)i->buckets, "largest_bucket",
        (json_int_t)i->largest, "index_bytes", (json_int_t)cli_index_bytes(i));
    char seed[24];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)f->seed);
    if (out != NULL) json_object_set_new(out, "seed", json_string(seed));
    if (out != NULL && f->centre_count > 0)
        json_object_set_new(out, "centres", json_integer((json_int_t)f->centre_count));
    return out;
}

json_t *cli_index_json(const cli_index_file *index)
{
    gnomon_lsh_info info;
    if (index->inverted != NULL) return inverted_json(index->inverted);
    if (index->coded != NULL) return coded_json(index->coded);
    cli_index_describe(index, &info);
    return hashed_json(&info);
}

gnomon_status cli_index_extend(cli_app *app, const cli_index_file *index, const char *path,
                               int compact, cli_builder *builder)
{
    if (index->hashed != NULL)
        return gnomon_lsh_builder_extend(app->ctx, index->hashed, path, compact, &builder->hashed);
    return gnomon_sparse_builder_extend(app->ctx, index->inverted, path, compact,
                                        &builder->inverted);
}

int cli_index_complete(cli_app *app, cli_builder *builder, int code)
{
    gnomon_status status = GNOMON_OK;
    if (code >= 0) {
        gnomon_lsh_builder_abort(builder->hashed);
        gnomon_sparse_builder_abort(builder->inverted);
    } else if (builder->hashed != NULL) {
        status = gnomon_lsh_builder_finish(builder->hashed);
    } else {
        status = gnomon_sparse_builder_finish(builder->inverted);
    }
    *builder = (cli_builder){NULL, NULL};
    return status == GNOMON_OK ? code : cli_fail_status(app, status);
}

int cli_index_wait(cli_app *app, const char *path, int *waiting)
{
    const struct timespec a_moment = {.tv_nsec = 50000000};
    if (!*waiting)
        cli_say(app, "gnomon %s: %s is being changed by another process; waiting for it\n",
                app->verb, path);
    *waiting = 1;
    nanosleep(&a_moment, NULL);
    return cli_interrupted() ? cli_fail_status(app, GNOMON_ERROR_CANCELLED) : -1;
}

/* Pieces larger than this gain nothing. */
static const int64_t enough_bytes = (int64_t)64 << 20;
static const int64_t first_bytes = (int64_t)4 << 20;
enum { MOST_NONZEROS = 1 << 21, LEAST_FIRST = 64, MOST_FIRST = 4096 };

static int too_little(cli_app *app, const char *path, double bytes)
{
    return cli_fail(app, CLI_EXIT_MEMORY,
                    "%s: points of %.0f bytes must be in memory at once: give more --memory", path,
                    bytes);
}

int cli_index_add_points(cli_app *app, const char *path, gnomon_reader *reader,
                         const gnomon_data_info *info, gnomon_metric metric, int coded,
                         const cli_builder *builder, int64_t *points)
{
    const gnomon_dtype dtype = cli_held_dtype(info);
    int64_t row = 0, rows = 0;
    void *data = NULL;
    const int sparse = builder->inverted != NULL || cli_metric_form(metric) != CLI_FORM_DENSE;
    *points = 0;
    int code = cli_check_form(app, path, info, metric);
    if (code >= 0) return code;
    if (!sparse) {
        const int64_t budget = (app->memory - CLI_OVERHEAD_BYTES) / 2;
        if (__builtin_mul_overflow(info->cols, (int64_t)gnomon_dtype_size(dtype), &row) ||
            row > budget)
            return too_little(app, path, (double)info->cols * (double)gnomon_dtype_size(dtype));
        rows = (budget < enough_bytes ? budget : enough_bytes) / (row > 0 ? row : 1);
        if (rows < 1) rows = 1;
        data = malloc(cli_bytes(rows, row));
        if (data == NULL) return cli_fail(app, CLI_EXIT_MEMORY, "out of memory for points");
    }
    cli_bar_begin(app, "indexing", info->rows >= 0 ? info->rows : -1);
    /* the first piece determines the codes' scale, so it must not depend on --memory */
    int64_t wanted = rows;
    if (coded && !sparse) {
        wanted = first_bytes / (row > 0 ? row : 1);
        wanted = wanted < LEAST_FIRST ? LEAST_FIRST : wanted > MOST_FIRST ? MOST_FIRST : wanted;
        if (wanted > rows) {
            code = too_little(app, path, (double)wanted * (double)row);
            wanted = rows;
        }
    }
    while (code < 0) {
        gnomon_csr csr = {0};
        int64_t got = 0;
        gnomon_status status = GNOMON_OK;
        if (sparse) {
            status = gnomon_reader_next_csr(reader, INT64_MAX / 16, MOST_NONZEROS, &csr);
            got = csr.rows;
        }
        for (int64_t some = 1; !sparse && got < wanted && some > 0 && status == GNOMON_OK;) {
            const gnomon_matrix part =
                gnomon_matrix_rowmajor((char *)data + got * row, dtype, wanted - got, info->cols);
            status = gnomon_reader_next(reader, &part, &some);
            got += status == GNOMON_OK ? some : 0;
        }
        wanted = rows;
        if (status == GNOMON_OK && cli_interrupted()) status = GNOMON_ERROR_CANCELLED;
        if (status == GNOMON_OK && got == 0) break;
        cli_bar_at(app, *points, got);
        const gnomon_matrix some = gnomon_matrix_rowmajor(data, dtype, got, info->cols);
        const int read = status == GNOMON_OK;
        if (read)
            status = builder->inverted != NULL
                         ? gnomon_sparse_builder_add_csr(builder->inverted, &csr)
                     : sparse ? gnomon_lsh_builder_add_csr(builder->hashed, &csr)
                              : gnomon_lsh_builder_add(builder->hashed, &some);
        int64_t place = -1; /* what is told of a row is the file's fault */
        gnomon_last_error_place(app->ctx, &place, NULL);
        if (read && status != GNOMON_OK && (place >= 0 || status == GNOMON_ERROR_SHAPE))
            code = cli_fail(app, CLI_EXIT_DATA, "%s, points from %lld on: %s", path,
                            (long long)*points, gnomon_last_error(app->ctx));
        else if (status != GNOMON_OK)
            code = cli_fail_status(app, status);
        *points += got;
    }
    free(data);
    return code;
}

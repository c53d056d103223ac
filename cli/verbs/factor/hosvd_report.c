/* What came of a tensor: words, JSON. */
#include "cli.h"

#include <stdio.h>

static void print_sizes(cli_app *app, int modes, const int64_t *size)
{
    for (int n = 0; n < modes; ++n)
        cli_say(app, "%s%lld", n > 0 ? " x " : "", (long long)size[n]);
}

static void print_mode(cli_app *app, const gnomon_hosvd *h, int n)
{
    enum { SHOWN = 5 };
    cli_say(app, "mode %-2d %lld -> %lld, ", n, (long long)h->size[n], (long long)h->rank[n]);
    if (h->columns[n] > 0)
        cli_say(app, "from %lld columns:", (long long)h->columns[n]);
    else
        cli_say(app, "not projected:");
    for (int64_t i = 0; i < h->rank[n]; ++i) {
        if (i == SHOWN && h->rank[n] > SHOWN + 1) {
            cli_say(app, " ...");
            i = h->rank[n] - 1;
        }
        cli_say(app, " %.6g", h->values[n][i]);
    }
    cli_say(app, "\n");
}

/* Numbers of core and factors. */
static double stored(const gnomon_hosvd *h)
{
    double core = 1, factors = 0;
    for (int n = 0; n < h->modes; ++n) {
        core *= (double)h->rank[n];
        factors += (double)h->size[n] * (double)h->rank[n];
    }
    return core + factors;
}

static double elements(const gnomon_hosvd *h)
{
    double count = 1;
    for (int n = 0; n < h->modes; ++n)
        count *= (double)h->size[n];
    return count;
}

static double relative(const gnomon_hosvd *h)
{
    return h->norm > 0 ? h->residual / h->norm : 0;
}

void cli_hosvd_words(cli_app *app, const cli_hosvd_facts *facts)
{
    const gnomon_hosvd *h = facts->hosvd;
    print_sizes(app, h->modes, h->size);
    cli_say(app, ": core ");
    print_sizes(app, h->modes, h->rank);
    cli_say(app, ", by %s projections%s, %d power iteration%s, %lld pass%s\n",
            gnomon_kind_name(h->descriptor.kind), h->sequential ? " one after the other" : "",
            h->power, h->power == 1 ? "" : "s", (long long)h->passes, h->passes == 1 ? "" : "es");
    for (int n = 0; n < h->modes; ++n)
        print_mode(app, h, n);
    cli_say(app, "%-20s %.6g\n", "|X|", h->norm);
    cli_say(app, "%-20s %.6g, %s\n", "|X - X'| / |X|", relative(h),
            h->residual_by == GNOMON_RESIDUAL_NORMS ? "by the norms" : "measured");
    cli_say(app, "%-20s %.0f, of %.0f elements\n", "numbers", stored(h), elements(h));
}

static json_t *sizes(int modes, const int64_t *size)
{
    json_t *list = json_array();
    for (int n = 0; n < modes; ++n)
        json_array_append_new(list, json_integer((json_int_t)size[n]));
    return list;
}

static json_t *values(const gnomon_hosvd *h)
{
    json_t *lists = json_array();
    for (int n = 0; n < h->modes; ++n) {
        json_t *list = json_array();
        for (int64_t i = 0; i < h->rank[n]; ++i)
            json_array_append_new(list, json_real(h->values[n][i]));
        json_array_append_new(lists, list);
    }
    return lists;
}

json_t *cli_hosvd_json(const cli_hosvd_facts *facts)
{
    const gnomon_hosvd *h = facts->hosvd;
    json_t *order = json_array();
    for (int i = 0; i < h->modes; ++i)
        json_array_append_new(order, json_integer(h->order[i]));
    json_t *figures = json_pack(
        "{s:o, s:o*, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:s, s:I, s:i, s:b, s:o, s:f, s:f, s:f, "
        "s:s, s:b, s:I, s:I, s:I, s:f}",
        "input", cli_json_name(facts->input), "output", cli_json_name(facts->output), "format",
        facts->info->format, "dtype", cli_dtype_name(h->core.dtype), "held", facts->held, "size",
        sizes(h->modes, h->size), "ranks", sizes(h->modes, h->rank), "columns",
        sizes(h->modes, h->columns), "order", order, "operator",
        gnomon_kind_name(h->descriptor.kind), "seed", (json_int_t)h->descriptor.seed, "power",
        h->power, "sequential", h->sequential, "mode_values", values(h), "norm", h->norm,
        "residual", h->residual, "relative_error", relative(h), "residual_by",
        h->residual_by == GNOMON_RESIDUAL_NORMS ? "norms" : "measured", "converged", h->converged,
        "passes", (json_int_t)h->passes, "cholesky_qr", (json_int_t)h->cholesky, "householder_qr",
        (json_int_t)h->householder, "stored_numbers", stored(h));
    json_t *times = json_pack(
        "{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "read_seconds",
        cli_json_seconds(facts->read_seconds), "hosvd_seconds",
        cli_json_seconds(facts->hosvd_seconds), "write_seconds",
        cli_json_seconds(facts->write_seconds), "check_seconds", cli_json_seconds(h->check_seconds),
        "project_seconds", cli_json_seconds(h->project_seconds), "power_seconds",
        cli_json_seconds(h->power_seconds), "orthonormalise_seconds",
        cli_json_seconds(h->orthonormalise_seconds), "shrink_seconds",
        cli_json_seconds(h->shrink_seconds), "small_seconds", cli_json_seconds(h->small_seconds),
        "measure_seconds", cli_json_seconds(h->measure_seconds));
    if (facts->tolerance > 0 && figures != NULL)
        json_object_set_new(figures, "tolerance", json_real(facts->tolerance));
    return cli_json_join(figures, times);
}

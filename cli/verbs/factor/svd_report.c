/* What came of a factorisation: words, JSON, a picture. */
#include "cli.h"

#include <math.h>
#include <stdio.h>

static double relative(const gnomon_svd *svd, double value)
{
    return svd->norm > 0 ? value / svd->norm : 0;
}

static const char *centering(const gnomon_svd *svd)
{
    return svd->standardized ? ", standardized" : svd->centered ? ", centred" : "";
}

/* The share of the whole that each component explains: of the variance of centred points, else of
 * |A|^2. */
static void print_explained(cli_app *app, const gnomon_svd *svd)
{
    enum { SHOWN = 5 };
    double sum = 0;
    if (svd->centered) cli_say(app, "%-36s %.6g\n", "Total variance", svd->total_variance);
    if (!(svd->norm > 0)) return;
    cli_say(app, svd->centered ? "Explained, each:" : "Share of |A|^2, each:");
    for (int64_t i = 0; i < svd->rank; ++i) {
        const double share = 100 * svd->explained_ratio[i];
        sum += share;
        if (i < SHOWN || i == svd->rank - 1)
            cli_say(app, "%s %.4g %%", i > SHOWN ? " ..." : "", share);
    }
    cli_say(app, "; together %.4g %%\n", fmin(sum, 100));
}

static void print_values(cli_app *app, const gnomon_svd *svd)
{
    enum { SHOWN = 5 };
    cli_say(app, "Singular values:");
    for (int64_t i = 0; i < svd->rank; ++i) {
        if (i == SHOWN && svd->rank > SHOWN + 1) {
            cli_say(app, " ...");
            i = svd->rank - 1;
        }
        cli_say(app, " %.6g", svd->s[i]);
    }
    cli_say(app, "\n");
}

static void print_converged(cli_app *app, const gnomon_svd *svd)
{
    if (svd->converged_values < 0) return;
    cli_say(app, "Converged, within %g %%: ", 100 * GNOMON_SVD_CONVERGED);
    if (svd->converged_values == svd->rank)
        cli_say(app, "all\n");
    else if (svd->converged_values == 0)
        cli_say(app, "none; they may be too small\n");
    else
        cli_say(app, "the first %lld of %lld; the others may be too small\n",
                (long long)svd->converged_values, (long long)svd->rank);
}

/* How far the singular values of A, or of what is made of it, have converged. */
static void print_accuracy(cli_app *app, const gnomon_svd *svd, const char *decomposed)
{
    if (svd->norm == 0) {
        cli_say(app, "They are exact: %s is zero.\n", decomposed);
        return;
    }
    print_converged(app, svd);
    if (svd->numerical_rank == 0)
        cli_say(app, "None is above rounding.\n");
    else if (svd->numerical_rank < svd->rank)
        cli_say(app, "Beyond the first %lld they are rounding.\n", (long long)svd->numerical_rank);
}

void cli_svd_words(cli_app *app, const cli_svd_facts *facts)
{
    const gnomon_svd *svd = facts->svd;
    cli_say(app,
            "%lld points, %lld dimensions%s: rank %lld, from %lld columns of a %s projection, ",
            (long long)svd->rows, (long long)svd->cols, centering(svd), (long long)svd->rank,
            (long long)svd->columns, gnomon_kind_name(svd->descriptor.kind));
    if (svd->single_pass)
        cli_say(app, "every row read once\n");
    else
        cli_say(app, "%d power iteration%s, %lld passes\n", svd->power, svd->power == 1 ? "" : "s",
                (long long)svd->passes);
    const char *decomposed = svd->standardized ? "A standardized"
                             : svd->centered   ? "A less its mean"
                                               : "A";
    char norm[32] = "|A|";
    print_values(app, svd);
    print_accuracy(app, svd, decomposed);
    print_explained(app, svd);
    if (svd->centered || svd->standardized) snprintf(norm, sizeof norm, "|A|, %s", decomposed);
    cli_say(app, "%-36s %.6g\n", norm, svd->norm);
    if (!isnan(svd->residual))
        cli_say(app, "%-36s %.6g\n", "|A - U S Vt| / |A|, measured", relative(svd, svd->residual));
    if (isnan(svd->residual_estimate)) return;
    cli_say(app, "%-36s %.6g, bound %.6g\n", "|A - U S Vt| / |A|, estimate",
            relative(svd, svd->residual_estimate), relative(svd, svd->residual_bound));
    cli_say(app, "%-36s %.6g, bound %.6g\n", "the same as a spectral norm",
            relative(svd, svd->spectral_estimate), relative(svd, svd->spectral_bound));
    cli_say(app, "Each bound fails in one of %.0f runs.\n", 1 / svd->failure);
}

static json_t *reals(const double *x, int64_t count)
{
    json_t *array = json_array();
    for (int64_t i = 0; i < count; ++i)
        json_array_append_new(array, cli_json_real(x[i]));
    return array;
}

static void add_explained(json_t *figures, const gnomon_svd *svd)
{
    json_object_set_new(figures, "centered", json_boolean(svd->centered));
    json_object_set_new(figures, "standardized", json_boolean(svd->standardized));
    json_object_set_new(figures,
                        svd->centered ? "explained_variance_ratio" : "explained_norm_ratio",
                        reals(svd->explained_ratio, svd->rank));
    if (!svd->centered) return;
    json_object_set_new(figures, "total_variance", cli_json_real(svd->total_variance));
    json_object_set_new(figures, "explained_variance", reals(svd->explained_variance, svd->rank));
}

json_t *cli_svd_json(cli_app *app, const cli_svd_facts *facts)
{
    const gnomon_svd *svd = facts->svd;
    gnomon_operator *op = NULL;
    json_t *values = reals(svd->s, svd->rank);
    json_t *descriptor = NULL;
    const gnomon_status status = gnomon_operator_create(app->ctx, &svd->descriptor, &op);
    if (status == GNOMON_OK || status == GNOMON_ERROR_MEMORY)
        descriptor = cli_descriptor_json(app, op);
    gnomon_operator_destroy(op);
    json_t *figures = json_pack(
        "{s:o, s:o*, s:s, s:I, s:I, s:s, s:s, s:I, s:I, s:i, s:b, s:I, s:o, s:I, s:o, s:o, s:o, "
        "s:o, s:o, s:o, s:f, s:b, s:I, s:I, s:o, s:f, s:o*}",
        "input", cli_json_name(facts->input), "output", cli_json_name(facts->output), "format",
        facts->info->format, "points", (json_int_t)svd->rows, "dimensions", (json_int_t)svd->cols,
        "dtype", cli_dtype_name(svd->u.dtype), "held", facts->held, "rank", (json_int_t)svd->rank,
        "columns", (json_int_t)svd->columns, "power", svd->power, "single_pass", svd->single_pass,
        "passes", (json_int_t)svd->passes, "singular_values", values, "numerical_rank",
        (json_int_t)svd->numerical_rank, "norm", cli_json_real(svd->norm), "residual",
        cli_json_real(svd->residual), "residual_estimate", cli_json_real(svd->residual_estimate),
        "residual_bound", cli_json_real(svd->residual_bound), "spectral_estimate",
        cli_json_real(svd->spectral_estimate), "spectral_bound", cli_json_real(svd->spectral_bound),
        "failure", svd->failure, "converged", svd->converged, "cholesky_qr",
        (json_int_t)svd->cholesky, "householder_qr", (json_int_t)svd->householder,
        "converged_values",
        svd->converged_values < 0 ? json_null() : json_integer((json_int_t)svd->converged_values),
        "converged_within", GNOMON_SVD_CONVERGED, "descriptor", descriptor);
    json_t *times = json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "read_seconds",
                              cli_json_seconds(facts->read_seconds), "svd_seconds",
                              cli_json_seconds(facts->svd_seconds), "write_seconds",
                              cli_json_seconds(facts->write_seconds), "project_seconds",
                              cli_json_seconds(svd->project_seconds), "power_seconds",
                              cli_json_seconds(svd->power_seconds), "orthonormalise_seconds",
                              cli_json_seconds(svd->orthonormalise_seconds), "small_seconds",
                              cli_json_seconds(svd->small_seconds), "certify_seconds",
                              cli_json_seconds(svd->certify_seconds));
    if (figures != NULL) add_explained(figures, svd);
    if (facts->tolerance > 0 && figures != NULL)
        json_object_set_new(figures, "tolerance", json_real(facts->tolerance));
    return cli_json_join(figures, times);
}

static char *make_script(const char *path, const cli_svd_facts *facts, size_t *length)
{
    enum { MOST = 2000 };
    const gnomon_svd *svd = facts->svd;
    const int64_t step = svd->rank / MOST + 1;
    char *text = NULL;
    FILE *script = open_memstream(&text, length);
    if (script == NULL) return NULL;
    cli_plot_terminal(script, path);
    fprintf(script,
            "set title 'Singular values of %lld points in %lld dimensions%s'\n"
            "set xlabel 'index'\nset ylabel 'singular value'\nset grid\nset xrange [0:%lld]\n",
            (long long)svd->rows, (long long)svd->cols, svd->centered ? ", centred" : "",
            (long long)svd->rank + 1);
    /* Zeros have no place on a logarithmic axis. */
    if (svd->s[0] > 0)
        fprintf(script, "set logscale y\nset format y '%%g'\n");
    else
        fprintf(script, "set yrange [-1:1]\n");
    fprintf(script, "$values << EOD\n");
    for (int64_t i = 0; i < svd->rank; i += step)
        if (svd->s[i] > 0 || svd->s[0] == 0)
            fprintf(script, "%lld %.9g\n", (long long)i + 1, svd->s[i]);
    fprintf(script, "EOD\nplot $values with linespoints pt 7 ps 0.4 title 'rank %lld",
            (long long)svd->rank);
    if (!isnan(svd->residual_estimate))
        fprintf(script, ", leaving %.3g %% of |A|", 100 * relative(svd, svd->residual_estimate));
    fprintf(script, "'");
    /* Without pairs of passes the estimate is no singular value, but of the size of |A - U S Vt|.
     */
    if (svd->spectral_estimate > 0 && facts->test_power > 0)
        fprintf(script, ", %.9g with lines dt 2 title 'left, spectral norm'",
                svd->spectral_estimate);
    fprintf(script, "\n");
    if (fclose(script) != 0) return NULL;
    return text;
}

int cli_plot_spectrum(cli_app *app, const char *path, const cli_svd_facts *facts)
{
    size_t length = 0;
    char *script = make_script(path, facts, &length);
    return cli_gnuplot(app, path, script, length);
}

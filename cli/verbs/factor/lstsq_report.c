/* What came of least squares: words, JSON. */
#include "cli.h"

#include <math.h>
#include <stdio.h>

static double share(double part, double whole)
{
    return whole > 0 ? part / whole : part > 0 ? INFINITY : 0;
}

/* The figures that are told in words; of several solutions the worst. */
enum { RESIDUAL, GRADIENT, BACKWARD, SUBOPTIMAL, FORWARD, SENSITIVITY, FIGURES };

static void figures_of(const gnomon_lstsq_target *t, double out[FIGURES])
{
    out[RESIDUAL] = share(t->residual, t->norm_b);
    out[GRADIENT] = t->gradient;
    out[BACKWARD] = t->backward_error;
    out[SUBOPTIMAL] = t->suboptimality;
    out[FORWARD] = share(t->forward_bound, t->norm_x);
    out[SENSITIVITY] = t->sensitivity;
}

void cli_lstsq_words(cli_app *app, const cli_lstsq_facts *facts)
{
    static const char *const names[FIGURES] = {
        "|b - A x| / |b|",          "|A^T r| / (|A| |r|), r = b - A x",
        "backward error, estimate", "|r| above the least, bound",
        "|x - x*| / |x|, bound",    "sensitivity, estimate"};
    const gnomon_lstsq *l = facts->lstsq;
    double worst[FIGURES];
    cli_say(app, "%lld x %lld, %lld right-hand side%s: ", (long long)l->rows, (long long)l->cols,
            (long long)l->targets, l->targets == 1 ? "" : "s");
    if (l->sketched)
        cli_say(app, "%lld step%s, by a sketch of %lld rows (%s)\n", (long long)l->iterations,
                l->iterations == 1 ? "" : "s", (long long)l->k,
                gnomon_kind_name(l->descriptor.kind));
    else
        cli_say(app, "%lld step%s, A itself factored\n", (long long)l->iterations,
                l->iterations == 1 ? "" : "s");
    cli_say(app, "%-36s %lld of %lld\n", "rank", (long long)l->rank,
            (long long)(l->rows < l->cols ? l->rows : l->cols));
    cli_say(app, "%-36s %.3g", "condition, estimate", l->condition);
    if (l->low > 0) cli_say(app, ", bound %.3g", l->condition * (l->high / l->low));
    cli_say(app, "\n");
    figures_of(&l->target[0], worst);
    for (int64_t j = 1; j < l->targets; ++j) {
        double figures[FIGURES];
        figures_of(&l->target[j], figures);
        for (int i = 0; i < FIGURES; ++i)
            if (!(figures[i] <= worst[i])) worst[i] = figures[i];
    }
    if (l->targets > 1) cli_say(app, "The worst of the %lld solutions:\n", (long long)l->targets);
    for (int i = 0; i < FIGURES; ++i)
        if (!isnan(worst[i])) cli_say(app, "%-36s %.3g\n", names[i], worst[i]);
    if (!isnan(worst[FORWARD]))
        cli_say(app, "Each bound fails in one of %.0f runs.\n", 1 / l->failure);
}

static json_t *solution_json(const gnomon_lstsq_target *t)
{
    return json_pack("{s:f, s:f, s:f, s:o, s:o, s:f, s:o, s:o, s:o, s:o, s:b}", "norm_b", t->norm_b,
                     "norm_x", t->norm_x, "residual", t->residual, "gradient",
                     cli_json_real(t->gradient), "backward_bound", cli_json_real(t->backward_bound),
                     "backward_error", t->backward_error, "fit_bound", cli_json_real(t->fit_bound),
                     "suboptimality", cli_json_real(t->suboptimality), "forward_bound",
                     cli_json_real(t->forward_bound), "sensitivity", cli_json_real(t->sensitivity),
                     "converged", t->converged);
}

json_t *cli_lstsq_json(cli_app *app, const cli_lstsq_facts *facts)
{
    const gnomon_lstsq *l = facts->lstsq;
    gnomon_operator *op = NULL;
    json_t *solutions = json_array(), *descriptor = NULL;
    for (int64_t j = 0; j < l->targets; ++j)
        json_array_append_new(solutions, solution_json(&l->target[j]));
    if (l->sketched) {
        (void)gnomon_operator_create(app->ctx, &l->descriptor, &op);
        descriptor = cli_descriptor_json(app, op);
    }
    gnomon_operator_destroy(op);
    json_t *figures = json_pack(
        "{s:o, s:o, s:o*, s:o*, s:s, s:I, s:I, s:I, s:s, s:s, s:f, s:f, s:b, s:I, s:f, s:f, s:f, "
        "s:f, s:o, s:o, s:f, s:b, s:I, s:I, s:I, s:I, s:o*, s:o}",
        "input", cli_json_name(facts->input), "right", cli_json_name(facts->right), "output",
        cli_json_name(facts->output), "residual_output", cli_json_name(facts->residual), "format",
        facts->info->format, "points", (json_int_t)l->rows, "dimensions", (json_int_t)l->cols,
        "right_hand_sides", (json_int_t)l->targets, "dtype", cli_dtype_name(l->x.dtype), "held",
        facts->held, "damp", facts->damp, "tolerance", facts->tolerance, "converged", l->converged,
        "rank", (json_int_t)l->rank, "norm", l->norm, "largest", l->largest, "least", l->least,
        "condition", l->condition, "low", cli_json_real(l->low), "high", cli_json_real(l->high),
        "failure", l->failure, "sketched", l->sketched, "sketch_size", (json_int_t)l->k,
        "iterations", (json_int_t)l->iterations, "refinements", (json_int_t)l->refinements,
        "passes", (json_int_t)l->passes, "descriptor", descriptor, "solutions", solutions);
    json_t *times = json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "read_seconds",
                              cli_json_seconds(facts->read_seconds), "solve_seconds",
                              cli_json_seconds(facts->solve_seconds), "write_seconds",
                              cli_json_seconds(facts->write_seconds), "check_seconds",
                              cli_json_seconds(l->check_seconds), "sketch_seconds",
                              cli_json_seconds(l->sketch_seconds), "factor_seconds",
                              cli_json_seconds(l->factor_seconds), "iterate_seconds",
                              cli_json_seconds(l->iterate_seconds), "certify_seconds",
                              cli_json_seconds(l->certify_seconds));
    return cli_json_join(figures, times);
}

/* Histograms of distortion: as text, and by gnuplot. */
#include "cli.h"

#include <stdlib.h>

enum { BINS = 64, BAR_WIDTH = 50 };

void cli_print_histogram(const gnomon_distortion *d, double eps)
{
    enum { ROWS = 16 };
    int64_t counts[ROWS] = {0}, most = 1;
    double width = (d->histogram_high - d->histogram_low) / ROWS;
    for (int i = 0; i < BINS; ++i)
        counts[i * ROWS / BINS] += d->histogram[i];
    for (int i = 0; i < ROWS; ++i)
        most = counts[i] > most ? counts[i] : most;
    for (int i = 0; i < ROWS; ++i) {
        double middle = d->histogram_low + (i + 0.5) * width;
        int length = (int)((double)counts[i] / (double)most * BAR_WIDTH + 0.5);
        char mark = middle >= -eps && middle <= eps ? '*' : '#';
        printf("  %+7.1f %% |", 100 * middle);
        for (int j = 0; j < length; ++j)
            putchar(mark);
        printf(length > 0 ? " %.2f %%\n" : "%.2f %%\n",
               100 * (double)counts[i] / (double)(d->count > 0 ? d->count : 1));
    }
}

/* A histogram as gnuplot's data: middles and densities. */
static void print_block(FILE *script, const char *name, const gnomon_distortion *d)
{
    double width = (d->histogram_high - d->histogram_low) / BINS;
    double area = width * (double)d->count;
    fprintf(script, "$%s << EOD\n", name);
    for (int i = 0; i < BINS; ++i)
        fprintf(script, "%.9g %.9g\n", 100 * (d->histogram_low + (i + 0.5) * width),
                area > 0 ? (double)d->histogram[i] / area / 100 : 0);
    fprintf(script, "EOD\n");
}

static char *make_script(const char *path, const gnomon_distortion *norms,
                         const gnomon_distortion *pairs, double eps, size_t *length)
{
    char *text = NULL;
    FILE *script = open_memstream(&text, length);
    if (script == NULL) return NULL;
    cli_plot_terminal(script, path);
    fprintf(script,
            "set title 'Distortion |Sx|²/|x|² − 1 of %lld norms and %lld distances'\n"
            "set xlabel 'distortion in percent'\nset ylabel 'density'\nset grid\nset yrange [0:*]\n"
            "set style fill transparent solid 0.35\n"
            "set arrow from %.9g, graph 0 to %.9g, graph 1 nohead lw 1 dt 2\n"
            "set arrow from %.9g, graph 0 to %.9g, graph 1 nohead lw 1 dt 2\n",
            (long long)norms->count, (long long)pairs->count, 100 * eps, 100 * eps, -100 * eps,
            -100 * eps);
    print_block(script, "distances", pairs);
    print_block(script, "norms", norms);
    fprintf(script,
            "plot $distances with boxes title 'distances (outside ±%g %%: %.3g %%)', "
            "$norms with histeps lw 2 title 'norms (outside ±%g %%: %.3g %%)'\n",
            100 * eps, 100 * pairs->outside, 100 * eps, 100 * norms->outside);
    if (fclose(script) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

int cli_plot_distortion(cli_app *app, const char *path, const gnomon_distortion *norms,
                        const gnomon_distortion *pairs, double eps)
{
    size_t length = 0;
    char *script = make_script(path, norms, pairs, eps, &length);
    return cli_gnuplot(app, path, script, length);
}

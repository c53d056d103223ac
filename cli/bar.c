/* The progress bar. */
#include "cli.h"

#include <stdio.h>
#include <unistd.h>

enum { BAR_CELLS = 30 };
static const double bar_delay = 0.5, bar_interval = 0.1;

static int wanted(const cli_app *app)
{
    if (app->bar.mode == CLI_BAR_NEVER) return 0;
    if (app->bar.mode == CLI_BAR_ALWAYS) return 1;
    return !app->quiet && isatty(STDERR_FILENO);
}

static void draw(cli_app *app, double fraction, double now)
{
    cli_bar *bar = &app->bar;
    double elapsed = now - app->started;
    if (bar->total <= 0) {
        fprintf(stderr, "\r\033[K%s: %lld points", bar->what, (long long)bar->done);
    } else {
        char cells[BAR_CELLS + 1];
        int filled = (int)(fraction * BAR_CELLS);
        for (int i = 0; i < BAR_CELLS; ++i)
            cells[i] = i < filled ? '#' : '.';
        cells[BAR_CELLS] = '\0';
        fprintf(stderr, "\r\033[K%s [%s] %3d %%", bar->what, cells, (int)(100 * fraction));
        if (fraction > 0.02) fprintf(stderr, ", %.0f s left", elapsed * (1 - fraction) / fraction);
    }
    fflush(stderr);
    bar->shown = 1;
    bar->last = now;
}

/* part: how much of the current span is done, 0 to 1. */
static void update(cli_app *app, double part)
{
    cli_bar *bar = &app->bar;
    if (bar->what == NULL || !wanted(app)) return;
    double now = cli_seconds();
    int early = bar->mode == CLI_BAR_AUTO && now - app->started < bar_delay;
    if (early || now - bar->last < bar_interval) return;
    double fraction = 0;
    if (bar->total > 0)
        fraction = ((double)bar->done + part * (double)bar->span) / (double)bar->total;
    draw(app, fraction < 1 ? fraction : 1, now);
}

void cli_bar_begin(cli_app *app, const char *what, int64_t total)
{
    app->bar.what = what;
    app->bar.total = total;
    app->bar.done = app->bar.span = 0;
    app->bar.last = 0;
    update(app, 0);
}

void cli_bar_at(cli_app *app, int64_t done, int64_t span)
{
    app->bar.done = done;
    app->bar.span = span;
    update(app, 0);
}

void cli_bar_clear(cli_app *app)
{
    if (app->bar.shown) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
    app->bar.shown = 0;
}

int cli_bar_progress(void *user, const char *phase, int64_t done, int64_t total)
{
    (void)phase;
    update(user, total > 0 ? (double)done / (double)total : 0);
    return cli_interrupted();
}

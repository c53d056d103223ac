/* The metrics by name, and by what other libraries call them, as the library tells of them. */
#include "cli.h"

#include <string.h>

/* The list of names comes first, then the aliases. */
enum { LISTS = 4, MOST = 40, NAMES = 512 };

typedef struct list {
    unsigned flags;
    cli_choice choices[MOST + 1];
    char names[NAMES]; /* the aliases, each with an end */
    char help[NAMES];
} list;

static const gnomon_metric_info *with(int index, unsigned flags)
{
    const gnomon_metric_info *info;
    for (int i = 0; (info = gnomon_metric_at(i)) != NULL; i++)
        if ((info->flags & flags) == flags && index-- == 0) return info;
    return NULL;
}

static void add(list *l, int *count, const char *name, gnomon_metric metric)
{
    if (*count < MOST) l->choices[(*count)++] = (cli_choice){name, (int)metric};
}

static void add_aliases(list *l, int *count, size_t *used, const gnomon_metric_info *info)
{
    for (const char *at = info->aliases; *at != '\0'; at += strspn(at, " ")) {
        const size_t length = strcspn(at, " ");
        char *name = l->names + *used;
        if (*used + length + 1 > sizeof l->names) return;
        memcpy(name, at, length);
        name[length] = '\0';
        *used += length + 1;
        add(l, count, name, info->metric);
        at += length;
    }
}

/* "l2 or euclidean (default), cosine (1 - cos) or jaccard (sets)" */
static void write_help(list *l)
{
    const gnomon_metric_info *info;
    size_t used = 0;
    for (int i = 0; (info = with(i, l->flags)) != NULL; i++) {
        const char *at = info->aliases;
        const int first = info->metric == GNOMON_L2, told = info->about[0] != '\0';
        const char *next = with(i + 1, l->flags) == NULL   ? ""
                           : with(i + 2, l->flags) == NULL ? " or "
                                                           : ", ";
        char names[NAMES];
        size_t length = (size_t)snprintf(names, sizeof names, "%s", info->name);
        while (*at != '\0' && length < sizeof names) {
            const size_t one = strcspn(at, " ");
            length += (size_t)snprintf(names + length, sizeof names - length, "%s%.*s",
                                       at[one] == '\0' ? " or " : ", ", (int)one, at);
            at += one + strspn(at + one, " ");
        }
        if (used < sizeof l->help)
            used += (size_t)snprintf(l->help + used, sizeof l->help - used, "%s%s%s%s%s%s%s", names,
                                     first || told ? " (" : "", first ? "default" : "",
                                     first && told ? "; " : "", info->about,
                                     first || told ? ")" : "", next);
    }
}

static const list *list_of(unsigned flags)
{
    static list lists[LISTS];
    static int made;
    for (int i = 0; i < made; i++)
        if (lists[i].flags == flags) return &lists[i];
    list *l = &lists[made];
    const gnomon_metric_info *info;
    int count = 0;
    size_t used = 0;
    l->flags = flags;
    for (int i = 0; (info = with(i, flags)) != NULL; i++)
        add(l, &count, info->name, info->metric);
    for (int i = 0; (info = with(i, flags)) != NULL; i++)
        add_aliases(l, &count, &used, info);
    l->choices[count] = (cli_choice){NULL, 0};
    write_help(l);
    if (made < LISTS - 1) made++;
    return l;
}

const cli_choice *cli_metrics(unsigned flags)
{
    return list_of(flags)->choices;
}

const char *cli_metrics_help(unsigned flags)
{
    return list_of(flags)->help;
}

const gnomon_metric_info *cli_metric(gnomon_metric metric)
{
    const gnomon_metric_info *info;
    for (int i = 0; (info = gnomon_metric_at(i)) != NULL; i++)
        if (info->metric == metric) return info;
    return NULL;
}

int cli_metric_is(gnomon_metric metric, unsigned flag)
{
    const gnomon_metric_info *info = cli_metric(metric);
    return info != NULL && (info->flags & flag) != 0;
}

int cli_metric_takes(gnomon_metric metric, unsigned points)
{
    const gnomon_metric_info *info = cli_metric(metric);
    return info != NULL && (info->points & points) != 0;
}

cli_form cli_metric_form(gnomon_metric metric)
{
    if (cli_metric_is(metric, GNOMON_METRIC_WEIGHTS)) return CLI_FORM_ANY;
    return cli_metric_takes(metric, GNOMON_POINTS_SPARSE) &&
                   !cli_metric_takes(metric, GNOMON_POINTS_DENSE)
               ? CLI_FORM_SPARSE
               : CLI_FORM_DENSE;
}

static int names_gpu(const cli_app *app)
{
    const char *device = app->device != NULL ? app->device : "auto";
    return strcmp(device, "auto") != 0 && strcmp(device, "cpu") != 0;
}

cli_form cli_points_form(const cli_app *app, gnomon_metric metric)
{
    const cli_form form = cli_metric_form(metric);
    if (form != CLI_FORM_DENSE || !cli_metric_takes(metric, GNOMON_POINTS_SPARSE)) return form;
    return names_gpu(app) ? CLI_FORM_DENSE : CLI_FORM_SPARSE;
}

cli_metrics_text cli_metrics_that(unsigned flags)
{
    cli_metrics_text names = {""};
    const gnomon_metric_info *info;
    size_t used = 0;
    for (int i = 0; (info = with(i, flags)) != NULL; i++)
        if (used < sizeof names.text)
            used +=
                (size_t)snprintf(names.text + used, sizeof names.text - used, "%s%s", info->name,
                                 with(i + 1, flags) == NULL   ? ""
                                 : with(i + 2, flags) == NULL ? " or "
                                                              : ", ");
    return names;
}

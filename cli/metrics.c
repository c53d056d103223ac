/* The metrics by name, and by what other libraries call them, as the library tells of them. */
#include "cli.h"

#include <math.h>
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

/* Dense products take about a thirtieth of the time of a sparse one, and of those there are a
 * density's square as many. */
static const double nearly_full = 1.0 / 8;

/* The share of entries that are not zero; negative: not known. */
static double share_of(const gnomon_data_info *info)
{
    if (info->nonzeros < 0 || info->rows < 0) return -1;
    const double entries = (double)info->rows * (double)info->cols;
    return entries > 0 ? (double)info->nonzeros / entries : 0;
}

static int is_sparse(const gnomon_data_info *info)
{
    return (info->access & GNOMON_ACCESS_SPARSE) != 0 && share_of(info) < nearly_full;
}

static int names_gpu(const cli_app *app)
{
    const char *device = app->device != NULL ? app->device : "auto";
    return strcmp(device, "auto") != 0 && strcmp(device, "cpu") != 0;
}

cli_form cli_compared_form(const cli_app *app, gnomon_metric metric, const gnomon_data_info *a,
                           const gnomon_data_info *b)
{
    if (cli_metric_form(metric) != CLI_FORM_DENSE) return cli_metric_form(metric);
    return cli_metric_takes(metric, GNOMON_POINTS_SPARSE) && is_sparse(a) &&
                   (b == NULL || is_sparse(b)) && !names_gpu(app)
               ? CLI_FORM_SPARSE
               : CLI_FORM_DENSE;
}

void cli_compared_json(const cli_app *app, gnomon_metric metric, const gnomon_data_info *a,
                       const gnomon_data_info *b, int sparse, json_t *figures)
{
    char why[160];
    if (b == NULL) b = a;
    const double share = fmax(share_of(a), share_of(b));
    if (figures == NULL || cli_metric_form(metric) != CLI_FORM_DENSE ||
        !cli_metric_takes(metric, GNOMON_POINTS_SPARSE) ||
        ((a->access | b->access) & GNOMON_ACCESS_SPARSE) == 0)
        return;
    if (((a->access & b->access) & GNOMON_ACCESS_SPARSE) == 0)
        snprintf(why, sizeof why, "one file is dense");
    else if (names_gpu(app))
        snprintf(why, sizeof why, "the device %s compares dense rows", app->device);
    else if (share >= nearly_full)
        snprintf(why, sizeof why, "%.3g %% of the entries are nonzero: from %g %% dense is faster",
                 100 * share, 100 * nearly_full);
    else if (!sparse)
        snprintf(why, sizeof why, "hashing takes dense rows");
    else if (share < 0)
        snprintf(why, sizeof why, "the number of nonzero entries is not known before");
    else
        snprintf(why, sizeof why,
                 "%.3g %% of the entries are nonzero: below %g %% sparse is faster", 100 * share,
                 100 * nearly_full);
    json_object_set_new(figures, "points_as", json_string(sparse ? "sparse" : "dense"));
    json_object_set_new(figures, "points_why", json_string(why));
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

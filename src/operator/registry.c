/* The list of kinds, and of the parameters that kinds have. */
#include "operator/kinds/kinds.h"

#include <stdio.h>
#include <string.h>

#define ROW(name) &gnomon_kind_row_##name,
static const gnomon_kind_row *const rows[] = {GNOMON_SIMPLE_KINDS(ROW) GNOMON_COMPOSED_KINDS(ROW)};
#undef ROW

enum { ROWS = sizeof rows / sizeof *rows };

/* In the order of --help and of JSON. */
static const gnomon_parameter_info parameters[] = {
    {.name = "density",
     .uses = GNOMON_USES_DENSITY,
     .is_real = 1,
     .offset = offsetof(gnomon_descriptor, density),
     .range = "at least 2^-30 and at most 1",
     .value = "P",
     .unit = "",
     .help = "the probability of a nonzero, 2^-30 (9.32e-10) to 1 (default 1/sqrt(D))"},
    {.name = "nonzeros",
     .uses = GNOMON_USES_NONZEROS,
     .offset = offsetof(gnomon_descriptor, nonzeros),
     .least = 1,
     .value = "S",
     .unit = "nonzeros per column",
     .help = "nonzeros per column, or per column of each block (default 4 and 2, or what the rows "
             "allow; sjlt with 1 is CountSketch)"},
    {.name = "blocks",
     .uses = GNOMON_USES_BLOCKS,
     .offset = offsetof(gnomon_descriptor, blocks),
     .least = 1,
     .value = "R",
     .unit = "blocks",
     .help =
         "the number of diagonal blocks (default 1), or of blocks along each side, a power of two "
         "(default about k/16)"},
    {.name = "wiring",
     .uses = GNOMON_USES_WIRING,
     .offset = offsetof(gnomon_descriptor, wiring),
     .least = 1,
     .value = "N",
     .unit = "",
     .help = "blocks of rows in which each block of columns has nonzeros (default 4, or all if "
             "fewer)"},
    {.name = "zeta",
     .uses = GNOMON_USES_ZETA,
     .offset = offsetof(gnomon_descriptor, zeta),
     .least = 2,
     .value = "Z",
     .unit = "",
     .help = "the factor by which each level reduces the dimension (default 2)"},
    {.name = "width",
     .uses = GNOMON_USES_WIDTH,
     .offset = offsetof(gnomon_descriptor, width),
     .least = 1,
     .value = "W",
     .unit = "",
     .help = "the output size of each level, at least k (default k)"},
};

_Static_assert(sizeof parameters / sizeof *parameters == GNOMON_PARAMETERS,
               "GNOMON_PARAMETERS counts them");

const gnomon_kind_row *gnomon_kind_row_of(gnomon_kind kind)
{
    for (int i = 0; i < ROWS; i++)
        if (rows[i]->info.kind == kind) return rows[i];
    return NULL;
}

int gnomon_kind_place(gnomon_kind kind)
{
    for (int i = 0; i < GNOMON_SIMPLE_KIND_COUNT; i++)
        if (rows[i]->info.kind == kind) return i;
    return -1;
}

const gnomon_kind_info *gnomon_kind_at(int index)
{
    return index >= 0 && index < ROWS ? &rows[index]->info : NULL;
}

const gnomon_parameter_info *gnomon_parameter_at(int index)
{
    return index >= 0 && index < GNOMON_PARAMETERS ? &parameters[index] : NULL;
}

const char *gnomon_kind_name(gnomon_kind kind)
{
    const gnomon_kind_row *row = gnomon_kind_row_of(kind);
    return row != NULL ? row->info.name : "?";
}

gnomon_kind gnomon_kind_from_name(const char *name)
{
    if (name == NULL) return (gnomon_kind)0;
    for (int i = 0; i < ROWS; i++)
        if (strcmp(name, rows[i]->info.name) == 0) return rows[i]->info.kind;
    return (gnomon_kind)0;
}

gnomon_kind_names gnomon_kind_names_with(unsigned flags)
{
    gnomon_kind_names names = {""};
    size_t used = 0;
    int left = 0;
    for (int i = 0; i < ROWS; i++)
        left += (rows[i]->info.flags & flags) == flags;
    for (int i = 0; i < ROWS; i++) {
        if ((rows[i]->info.flags & flags) != flags) continue;
        left--;
        if (used < sizeof names.text)
            used += (size_t)snprintf(names.text + used, sizeof names.text - used, "%s%s",
                                     rows[i]->info.name,
                                     left > 1    ? ", "
                                     : left == 1 ? " or "
                                                 : "");
    }
    return names;
}

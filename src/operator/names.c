#include "operator/operator.h"

#include <string.h>

static const char *const kind_names[] = {
    [GNOMON_GAUSSIAN] = "gaussian",
    [GNOMON_RADEMACHER] = "rademacher",
    [GNOMON_ACHLIOPTAS] = "achlioptas",
    [GNOMON_VERY_SPARSE] = "very-sparse",
    [GNOMON_SJLT] = "sjlt",
    [GNOMON_SRHT] = "srht",
    [GNOMON_BLOCK] = "block",
    [GNOMON_KRONECKER] = "kronecker",
};

const char *gnomon_kind_name(gnomon_kind kind)
{
    const int number = (int)kind;
    return number >= GNOMON_GAUSSIAN && number <= GNOMON_KRONECKER ? kind_names[number] : "?";
}

gnomon_kind gnomon_kind_from_name(const char *name)
{
    if (name == NULL) return (gnomon_kind)0;
    for (int kind = GNOMON_GAUSSIAN; kind <= GNOMON_KRONECKER; kind++)
        if (strcmp(name, kind_names[kind]) == 0) return (gnomon_kind)kind;
    return (gnomon_kind)0;
}

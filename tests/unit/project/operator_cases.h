/* The one list of operators that everything is tried on: the CPU at every level, and every device
 * plugin. Each kind has a row at least (test_conformance.c looks); sizes of k >= 4 give operators
 * of all of them. For C and C++. */
#ifndef TESTS_OPERATOR_CASES_H
#define TESTS_OPERATOR_CASES_H

#include <gnomon/operator.h>

#define MAYBE_UNUSED __attribute__((unused))
#define NO_KIND      ((gnomon_kind)0)
#define NO_PRECISION ((gnomon_dtype)0)

typedef struct any_operator {
    const char *name;
    gnomon_kind kind, inner;
    gnomon_dtype precision;
    double density;
    int64_t nonzeros, blocks, zeta, width, wiring; /* width: taken where it is above k */
} any_operator;

/* clang-format off */
static MAYBE_UNUSED const any_operator all_operators[] = {
    {"gaussian", GNOMON_GAUSSIAN, NO_KIND, NO_PRECISION, 0, 0, 0, 0, 0, 0},
    {"gaussian fp16", GNOMON_GAUSSIAN, NO_KIND, GNOMON_F16, 0, 0, 0, 0, 0, 0},
    {"rademacher", GNOMON_RADEMACHER, NO_KIND, NO_PRECISION, 0, 0, 0, 0, 0, 0},
    {"achlioptas", GNOMON_ACHLIOPTAS, NO_KIND, NO_PRECISION, 0, 0, 0, 0, 0, 0},
    {"very-sparse", GNOMON_VERY_SPARSE, NO_KIND, NO_PRECISION, 0, 0, 0, 0, 0, 0},
    {"very-sparse 0.4", GNOMON_VERY_SPARSE, NO_KIND, NO_PRECISION, 0.4, 0, 0, 0, 0, 0},
    {"sjlt", GNOMON_SJLT, NO_KIND, NO_PRECISION, 0, 0, 0, 0, 0, 0},
    {"countsketch", GNOMON_SJLT, NO_KIND, NO_PRECISION, 0, 1, 0, 0, 0, 0},
    {"srht", GNOMON_SRHT, NO_KIND, NO_PRECISION, 0, 0, 0, 0, 0, 0},
    {"blockperm-sjlt", GNOMON_BLOCKPERM_SJLT, NO_KIND, NO_PRECISION, 0, 0, 0, 0, 0, 0},
    {"blockperm-sjlt, 2 of 4 blocks", GNOMON_BLOCKPERM_SJLT, NO_KIND, NO_PRECISION, 0, 1, 4, 0, 0, 2},
    {"block rademacher", GNOMON_BLOCK, GNOMON_RADEMACHER, NO_PRECISION, 0, 0, 3, 0, 0, 0},
    {"block gaussian", GNOMON_BLOCK, GNOMON_GAUSSIAN, NO_PRECISION, 0, 0, 4, 0, 0, 0},
    {"block very-sparse", GNOMON_BLOCK, GNOMON_VERY_SPARSE, NO_PRECISION, 0.1, 0, 2, 0, 0, 0},
    {"kronecker rademacher", GNOMON_KRONECKER, GNOMON_RADEMACHER, NO_PRECISION, 0, 0, 0, 0, 0, 0},
    {"kronecker achlioptas", GNOMON_KRONECKER, GNOMON_ACHLIOPTAS, NO_PRECISION, 0, 0, 0, 3, 0, 0},
    {"kronecker gaussian", GNOMON_KRONECKER, GNOMON_GAUSSIAN, NO_PRECISION, 0, 0, 0, 2, 23, 0},
    {"kronecker sjlt", GNOMON_KRONECKER, GNOMON_SJLT, NO_PRECISION, 0, 2, 0, 0, 0, 0},
};
/* clang-format on */
enum { OPERATORS = sizeof all_operators / sizeof all_operators[0] };

#endif

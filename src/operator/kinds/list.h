/* operator/kinds/list.h: the kinds, in the order in which they are listed everywhere. X(name)
 * stands for the kind whose row is gnomon_kind_row_<name>, in the kind's own file, and whose CPU
 * kernels are <name>_kernels, in src/cpu/. */
#ifndef GNOMON_OPERATOR_KINDS_LIST_H
#define GNOMON_OPERATOR_KINDS_LIST_H

#define GNOMON_SIMPLE_KINDS(X) \
    X(gaussian)                \
    X(rademacher)              \
    X(achlioptas)              \
    X(very_sparse)             \
    X(sjlt)                    \
    X(srht)                    \
    X(blockperm_sjlt)

#define GNOMON_COMPOSED_KINDS(X) \
    X(block)                     \
    X(kronecker)

/* A kind's place in the list, for arrays of simple kinds. */
#define GNOMON_PLACE(name) GNOMON_PLACE_##name,
enum { GNOMON_SIMPLE_KINDS(GNOMON_PLACE) GNOMON_SIMPLE_KIND_COUNT };
#undef GNOMON_PLACE

#endif

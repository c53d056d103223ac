/* choose/kinds/list.h: the kinds that 'auto' compares, in this order: of equally quick operators
 * the first is taken. Read several times, so it has no guard: GNOMON_CHOOSE(name) is what becomes
 * of each line, and gnomon_choose_<name> is the row. */
GNOMON_CHOOSE(rademacher)
GNOMON_CHOOSE(gaussian)
GNOMON_CHOOSE(achlioptas)
GNOMON_CHOOSE(very_sparse)
GNOMON_CHOOSE(sjlt)
GNOMON_CHOOSE(srht)
GNOMON_CHOOSE(block)
GNOMON_CHOOSE(kronecker)

/* lsh/families/list.h: the families of hash functions, in the order of lists: the number's name and
 * the row's, gnomon_family_row_<name>, which stands in the family's own file. */
#define GNOMON_FAMILIES(ROW)            \
    ROW(PSTABLE, pstable)               \
    ROW(PSTABLE_L1, pstable_l1)         \
    ROW(SIMHASH, simhash)               \
    ROW(CROSS_POLYTOPE, cross_polytope) \
    ROW(BIT_SAMPLING, bit_sampling)     \
    ROW(MINHASH, minhash)               \
    ROW(ICWS, icws)                     \
    ROW(KMEANS, kmeans)                 \
    ROW(SPHERICAL_KMEANS, spherical_kmeans)

/* metric/list.h: the metrics, in the order of lists: the number's name and the row's. */
#define GNOMON_METRICS(ROW) \
    ROW(L2, l2)             \
    ROW(COSINE, cosine)     \
    ROW(IP, ip)             \
    ROW(HAMMING, hamming)   \
    ROW(JACCARD, jaccard)   \
    ROW(L1, l1)             \
    ROW(WEIGHTED_JACCARD, weighted_jaccard)

/* The metrics by name, and by what other libraries call them. */
#include "cli.h"

const cli_choice cli_metrics[] = {{"l2", GNOMON_L2},
                                  {"cosine", GNOMON_COSINE},
                                  {"ip", GNOMON_IP},
                                  {"hamming", GNOMON_HAMMING},
                                  {"jaccard", GNOMON_JACCARD},
                                  {"l1", GNOMON_L1},
                                  {"euclidean", GNOMON_L2},
                                  {"dot", GNOMON_IP},
                                  {"inner_product", GNOMON_IP},
                                  {"manhattan", GNOMON_L1},
                                  {NULL, 0}};

const cli_choice cli_join_metrics[] = {
    {"l2", GNOMON_L2},           {"cosine", GNOMON_COSINE},    {"ip", GNOMON_IP},
    {"hamming", GNOMON_HAMMING}, {"jaccard", GNOMON_JACCARD},  {"euclidean", GNOMON_L2},
    {"dot", GNOMON_IP},          {"inner_product", GNOMON_IP}, {NULL, 0}};

const cli_choice cli_index_metrics[] = {{"l2", GNOMON_L2},           {"cosine", GNOMON_COSINE},
                                        {"hamming", GNOMON_HAMMING}, {"jaccard", GNOMON_JACCARD},
                                        {"l1", GNOMON_L1},           {"euclidean", GNOMON_L2},
                                        {"manhattan", GNOMON_L1},    {NULL, 0}};

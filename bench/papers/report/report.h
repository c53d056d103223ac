/* bench/papers/report/report.h: the LSH pipelines of a report (El Kazdam & Faraj 2025) as
 * references, written from its description in its plain form: fp64 throughout, hash functions
 * floor((a.x + b) / w) with a stored, and two levels of buckets in nested ordered maps: by the L1
 * values of the first functions, and inside by the L2 values of the second ones. */
#ifndef REPORT_H
#define REPORT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct report_function {
    double *a; /* d normal numbers */
    double b;  /* uniform in [0, w) */
    double w;
} report_function;

/* Level 1: key of L1 ints to a map; level 2: key of L2 ints to the points of a bucket. */
typedef struct report_map report_map;

/* Points of a bucket, in the order in which they came. */
typedef struct report_bucket {
    int64_t count, room;
    int64_t *points;
} report_bucket;

/* a[0] holds all functions' numbers, one after the other. */
report_function *report_parameters(int64_t d, double w, int64_t functions, uint64_t seed);
void report_parameters_free(report_function *functions);

int report_hash(const double *x, const report_function *f, int64_t d);
/* hash1[i * l1 + j], hash2[i * l2 + j] of n points in rows of d numbers. */
void report_hash_all(const double *points, int64_t n, int64_t d, const report_function *first,
                     int64_t l1, const report_function *second, int64_t l2, int *hash1, int *hash2);

report_map *report_map_open(int64_t l1, int64_t l2);
void report_map_close(report_map *map);
/* The keys must stay as they are. */
void report_map_add(report_map *map, const int *key1, const int *key2, int64_t point);
/* NULL when there is none. */
const report_bucket *report_map_find(const report_map *map, const int *key1, const int *key2);

/* The points of x's bucket within the radius; returns how many. found has room for all. */
int64_t report_query(const report_map *map, const double *x, const int *key1, const int *key2,
                     const double *points, int64_t d, double radius, int64_t *found);

/* CSV without a header: numbers of a line, separated by commas. NULL when it is none. */
double *report_read_csv(const char *path, int64_t *n, int64_t *d);

#ifdef __cplusplus
}
#endif
#endif

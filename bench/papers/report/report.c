/* The report's sequential pipeline: see report.h. */
#include "report.h"

#include <math.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *room(size_t bytes)
{
    void *memory = malloc(bytes ? bytes : 1);
    if (memory) return memory;
    fprintf(stderr, "report: too little memory\n");
    exit(1);
}

/* ---- parameters ---- */

static double uniform(uint64_t *state) /* in (0, 1) */
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return ((double)((z ^ (z >> 31)) >> 11) + 0.5) * 0x1p-53;
}

report_function *report_parameters(int64_t d, double w, int64_t functions, uint64_t seed)
{
    report_function *f = room((size_t)functions * sizeof *f);
    double *a = room((size_t)(functions * d) * sizeof *a);
    for (int64_t j = 0; j < functions; j++) {
        f[j].a = a + j * d;
        for (int64_t i = 0; i < d; i++) {
            const double r = sqrt(-2 * log(uniform(&seed)));
            f[j].a[i] = r * cos(2 * 3.14159265358979323846 * uniform(&seed));
        }
        f[j].b = w * uniform(&seed);
        f[j].w = w;
    }
    return f;
}

void report_parameters_free(report_function *functions)
{
    if (functions) free(functions[0].a);
    free(functions);
}

/* ---- hashing ---- */

int report_hash(const double *x, const report_function *f, int64_t d)
{
    double sum = 0;
    for (int64_t i = 0; i < d; i++)
        sum += f->a[i] * x[i];
    return (int)floor((sum + f->b) / f->w);
}

void report_hash_all(const double *points, int64_t n, int64_t d, const report_function *first,
                     int64_t l1, const report_function *second, int64_t l2, int *hash1, int *hash2)
{
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < l1; j++)
            hash1[i * l1 + j] = report_hash(points + i * d, &first[j], d);
        for (int64_t j = 0; j < l2; j++)
            hash2[i * l2 + j] = report_hash(points + i * d, &second[j], d);
    }
}

/* ---- nested maps ---- */

/* A balanced tree of keys in lexicographic order, as C++'s std::map is: glibc's tsearch. A node's
 * item is one of these. */
typedef struct cell {
    const int *key;
    int64_t length;
    void *inside; /* level 1: the tree of level 2 */
    report_bucket bucket;
} cell;

struct report_map {
    void *tree;
    int64_t l1, l2;
};

static int in_order(const void *a, const void *b)
{
    const cell *x = a, *y = b;
    for (int64_t i = 0; i < x->length; i++)
        if (x->key[i] != y->key[i]) return x->key[i] < y->key[i] ? -1 : 1;
    return 0;
}

static void free_fine(void *item)
{
    cell *e = item;
    free(e->bucket.points);
    free(e);
}

static void free_broad(void *item)
{
    cell *e = item;
    tdestroy(e->inside, free_fine);
    free(e);
}

/* The entry with this key, a new one when there is none. */
static cell *entry_at(void **tree, const int *key, int64_t length)
{
    cell *fresh = room(sizeof *fresh);
    *fresh = (cell){.key = key, .length = length};
    cell **node = tsearch(fresh, tree, in_order);
    if (!node) exit(1);
    if (*node != fresh) free(fresh);
    return *node;
}

report_map *report_map_open(int64_t l1, int64_t l2)
{
    report_map *map = room(sizeof *map);
    *map = (report_map){NULL, l1, l2};
    return map;
}

void report_map_close(report_map *map)
{
    if (map) tdestroy(map->tree, free_broad);
    free(map);
}

void report_map_add(report_map *map, const int *key1, const int *key2, int64_t point)
{
    cell *broad = entry_at(&map->tree, key1, map->l1);
    report_bucket *b = &entry_at(&broad->inside, key2, map->l2)->bucket;
    if (b->count == b->room) {
        b->room = b->room ? 2 * b->room : 4;
        b->points = realloc(b->points, (size_t)b->room * sizeof *b->points);
        if (!b->points) exit(1);
    }
    b->points[b->count++] = point;
}

const report_bucket *report_map_find(const report_map *map, const int *key1, const int *key2)
{
    const cell broad = {.key = key1, .length = map->l1}, fine = {.key = key2, .length = map->l2};
    cell *const *node = tfind(&broad, &map->tree, in_order);
    if (!node) return NULL;
    node = tfind(&fine, &(*node)->inside, in_order);
    return node ? &(*node)->bucket : NULL;
}

int64_t report_query(const report_map *map, const double *x, const int *key1, const int *key2,
                     const double *points, int64_t d, double radius, int64_t *found)
{
    const report_bucket *b = report_map_find(map, key1, key2);
    int64_t count = 0;
    for (int64_t e = 0; b && e < b->count; e++) {
        const double *y = points + b->points[e] * d;
        double square = 0;
        for (int64_t i = 0; i < d; i++)
            square += (x[i] - y[i]) * (x[i] - y[i]);
        if (sqrt(square) <= radius) found[count++] = b->points[e];
    }
    return count;
}

/* ---- CSV ---- */

double *report_read_csv(const char *path, int64_t *n, int64_t *d)
{
    FILE *file = fopen(path, "r");
    double *points = NULL;
    char *line = NULL;
    size_t size = 0;
    int64_t numbers = 0, places = 0;
    *n = *d = 0;
    if (!file) return NULL;
    while (getline(&line, &size, file) > 0) {
        int64_t cols = 0;
        char *at = line, *end;
        for (double x = strtod(at, &end); end != at; x = strtod(at, &end)) {
            if (numbers == places) {
                places = places ? 2 * places : 1024;
                points = realloc(points, (size_t)places * sizeof *points);
                if (!points) exit(1);
            }
            points[numbers++] = x;
            cols++;
            at = end + (*end == ',');
        }
        if (cols == 0) continue;
        if (*n == 0) *d = cols;
        if (cols != *d) { /* lines of different lengths */
            free(points);
            points = NULL;
            break;
        }
        ++*n;
    }
    free(line);
    fclose(file);
    return points;
}

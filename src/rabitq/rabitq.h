/* rabitq/rabitq.h: codes of points, as the files of this room share them.
 *
 * Coordinates are those of points less the centre, times 'scale', rotated: m of them. Per point,
 * with o these and y the code's numbers: base = |o|^2, by = 2 |o|^2 / (y . o), and reach = 2 |e|
 * with e = by / 2 * y - o, which is orthogonal to o. */
#ifndef GNOMON_RABITQ_RABITQ_H
#define GNOMON_RABITQ_RABITQ_H

#include "kernels.h"
#include "points/rows.h"

#include <gnomon/rabitq.h>

#include <stdbool.h>

struct gnomon_origin;

struct gnomon_rabitq {
    gnomon_context *ctx; /* whose allocator */
    gnomon_rabitq_options options;
    int64_t points, dim, m;
    double scale;    /* a power of two */
    double *centre;  /* dim */
    double *signs;   /* GNOMON_RABITQ_ROUNDS x m */
    double *dither;  /* m of [0, 1): what coordinates of queries are rounded by */
    uint8_t *codes;  /* points x gnomon_rabitq_bytes */
    float *factors;  /* points x 2 of one bit: base, by; else x 3: and reach */
    gnomon_matrix x; /* the points; data NULL: none */
    /* An opened file, in which centre, codes, factors and points lie. */
    const unsigned char *map;
    int64_t map_bytes;
    struct gnomon_origin *origin; /* NULL: of no file */
};

static inline int gnomon_rabitq_factors(int64_t bits)
{
    return bits == 1 ? 2 : 3;
}

/* Rotated coordinates of so many columns: a multiple of 16, at least 32. */
static inline int64_t gnomon_rabitq_width(int64_t dim)
{
    return dim <= 32 ? 32 : (dim + 15) / 16 * 16;
}

enum { GNOMON_RABITQ_MOST_DIM = 65536 };

/* A query or point of any kind that a thread has at hand. */
typedef struct gnomon_rabitq_room {
    double *x;     /* m */
    double *spare; /* m */
} gnomon_rabitq_room;

/* ---- make.c ---- */
/* Checks options; *o is complete then. Errors: ARGUMENT. */
gnomon_status gnomon_rabitq_check_options(gnomon_context *ctx, const gnomon_rabitq_options *given,
                                          gnomon_rabitq_options *o);
/* An index without centre, codes and factors. */
gnomon_status gnomon_rabitq_open_empty(gnomon_context *ctx, const gnomon_rabitq_options *o,
                                       int64_t points, int64_t dim, gnomon_rabitq **out);
/* Row i of x, less the centre, scaled and rotated, in room->x; factor divides it by its norm. */
void gnomon_rabitq_turn(const gnomon_rabitq *index, const gnomon_kernels *k, const gnomon_matrix *x,
                        int64_t i, gnomon_rabitq_room *room);
/* Code and factors of a row of points. u: m bytes, floats: m. */
void gnomon_rabitq_encode(const gnomon_rabitq *index, const gnomon_kernels *k,
                          const gnomon_matrix *x, int64_t i, gnomon_rabitq_room *room, uint8_t *u,
                          float *floats, uint8_t *code, float *factors);
/* Rooms for all threads; free by gnomon_free of *rooms and *numbers. */
gnomon_status gnomon_rabitq_rooms(gnomon_context *ctx, int64_t m, gnomon_rabitq_room **rooms,
                                  double **numbers);
/* What a tile's points are to the scan; none of rows [count, 16). */
void gnomon_rabitq_lanes_of(const gnomon_rabitq *index, int64_t row, int64_t count,
                            gnomon_rabitq_lanes *lanes);

/* ---- bound.c ---- */
/* t with P(X > t) = failure, X a coordinate of a random point of the unit sphere in n dimensions;
 * an upper bound on it, at most 1. failure 0: 1. */
double gnomon_rabitq_quantile(int64_t n, double failure);
/* The smallest float that is not below a number of at least 0. */
float gnomon_rabitq_above(double x);

#endif

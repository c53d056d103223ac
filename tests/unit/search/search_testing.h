/* What the tests of search compare with: every pair in fp64, sorted. */
#ifndef SEARCH_TESTING_H
#define SEARCH_TESTING_H

#include <gnomon/search.h>

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static inline uint64_t draw_bits(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* In [-1, 1), the sum of four uniforms over two: bell-shaped. */
static inline double draw(uint64_t *state)
{
    double sum = 0;
    for (int i = 0; i < 4; i++)
        sum += (double)(draw_bits(state) >> 11) * 0x1p-53 - 0.5;
    return sum / 2;
}

typedef struct answer {
    double distance;
    int64_t id;
} answer;

/* Every pair anew, by the definitions alone: fp64 in the order that the header's bound speaks of
 * (sixteen chains, joined by halves), written apart from the library. */
static inline double chains(const double *terms, int64_t d, bool square, const double *other)
{
    double c[16] = {0};
    for (int64_t j = 0; j < d; j++)
        c[j % 16] = fma(square ? terms[j] : other[j], terms[j], c[j % 16]);
    for (int half = 8; half > 0; half /= 2)
        for (int l = 0; l < half; l++)
            c[l] += c[l + half];
    return c[0];
}

static inline double norm_of(const double *x, int64_t d)
{
    double most = 0;
    for (int64_t j = 0; j < d; j++)
        most = fmax(most, fabs(x[j]));
    if (most > 0x1p-440 || most == 0) return sqrt(chains(x, d, true, NULL));
    double *scaled = malloc((size_t)d * sizeof *scaled);
    for (int64_t j = 0; j < d; j++)
        scaled[j] = x[j] * 0x1p600;
    const double norm = sqrt(chains(scaled, d, true, NULL)) * 0x1p-600;
    free(scaled);
    return norm;
}

/* The distance of the metric in fp64; a and b of d numbers. */
static inline double distance_of(gnomon_metric metric, const double *q, const double *b, int64_t d)
{
    double *v = malloc((size_t)(d > 0 ? d : 1) * sizeof *v), result = 0;
    if (metric == GNOMON_L2) {
        for (int64_t j = 0; j < d; j++)
            v[j] = q[j] - b[j];
        result = norm_of(v, d);
    } else if (metric == GNOMON_L1) {
        double c[16] = {0};
        for (int64_t j = 0; j < d; j++)
            c[j % 16] += fabs(q[j] - b[j]);
        for (int half = 8; half > 0; half /= 2)
            for (int l = 0; l < half; l++)
                c[l] += c[l + half];
        result = c[0];
    } else if (metric == GNOMON_IP) {
        result = chains(b, d, false, q);
    } else {
        const double nq = norm_of(q, d), nb = norm_of(b, d);
        const double fq = 1 / nq, fb = 1 / nb;
        for (int64_t j = 0; j < d; j++)
            v[j] = q[j] * fq - b[j] * fb;
        result = nq < 0x1p-1000 || nb < 0x1p-1000 ? 1 : chains(v, d, true, NULL) / 2;
    }
    free(v);
    return result;
}

/* The comparison's direction: IP's largest come first. */
static int answer_sign = 1;
static inline int by_distance(const void *x, const void *y)
{
    const answer *a = x, *b = y;
    if (a->distance != b->distance)
        return (a->distance < b->distance) == (answer_sign > 0) ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

static inline void expect(gnomon_context *ctx, gnomon_status got, gnomon_status want)
{
    if (got != want)
        fail_msg("status %s, want %s: %s", gnomon_status_name(got), gnomon_status_name(want),
                 gnomon_last_error(ctx));
}

static inline gnomon_context *context_of(int threads, int64_t memory)
{
    gnomon_context *ctx;
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    options.device = "cpu";
    options.threads = threads;
    options.memory_limit = memory;
    assert_int_equal(gnomon_context_create(&options, &ctx), GNOMON_OK);
    return ctx;
}

#endif

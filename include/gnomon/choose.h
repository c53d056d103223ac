/* gnomon/choose.h: chooses the fastest operator that keeps a required distortion, by a measured
 * cost model.
 *
 * The smallest complete program:
 *
 *     #include <gnomon/choose.h>
 *     #include <stdio.h>
 *
 *     int main(void)
 *     {
 *         gnomon_choose_options o = GNOMON_CHOOSE_OPTIONS_INIT;
 *         gnomon_choice choice = {.struct_size = sizeof choice};
 *         gnomon_context *ctx;
 *         o.n = 10000;
 *         o.d = 100000;
 *         o.eps = 0.2;
 *         gnomon_status status = gnomon_context_create(NULL, &ctx);
 *         if (status == GNOMON_OK) status = gnomon_operator_choose(ctx, &o, &choice);
 *         printf("%d\n", choice.chosen >= 0 && choice.chosen < choice.count); // 1
 *         gnomon_context_destroy(ctx);
 *         return status;
 *     }
 *
 * docs/reference/choosing.md states which kinds are candidates, the bound by which each gets its k,
 * and the model's format. A choice is a pure function of the request, the model, the number of
 * threads and the kind of device. It reads no points and measures no time. */
#ifndef GNOMON_CHOOSE_H
#define GNOMON_CHOOSE_H

#include <gnomon/operator.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is assumed about the points and their differences x. NOTHING: any points, also coherent ones
 * (dominated by few coordinates). INCOHERENT: |x|_4^4 / |x|_2^4 is at most 3 / D, as for normal
 * coordinates (with sparse points 3 / the mean number of nonzeros per point), and the points are
 * not chosen against the operator: sums of their coordinates with random signs are treated as
 * normal. The library does not check this; gnomon_measure_coherence (quality.h) measures it on a
 * sample. */
typedef enum gnomon_assumption {
    GNOMON_ASSUME_NOTHING = 1,
    GNOMON_ASSUME_INCOHERENT = 2
} gnomon_assumption;

/* A measured cost model: for every kind, seconds per unit of work on one kind of device. */
typedef struct gnomon_model gnomon_model;

/* Reads a model as bench_cost writes it (docs/reference/choosing.md, "The file"): length bytes of
 * UTF-8, no terminator needed. The caller owns *out, for gnomon_model_destroy.
 * Errors:
 *  - DATA: not JSON, an unknown, missing or repeated member, a value out of range; the text names
 *    it
 *  - ARGUMENT, MEMORY
 * On failure *out is NULL. */
GNOMON_API gnomon_status gnomon_model_from_json(gnomon_context *ctx, const char *json,
                                                size_t length, gnomon_model **out);
/* NULL is allowed. */
GNOMON_API void gnomon_model_destroy(gnomon_model *model);

typedef struct gnomon_choose_options {
    size_t struct_size; /* see gnomon/base.h */
    int64_t n, d;       /* points, n >= 1, and their coordinates, d >= 1 */
    int64_t k;          /* 1 ... d; or 0: for each kind the k that its bound requires for eps */
    double eps;         /* with k 0, as gnomon_dim takes it; else 0 */
    double beta, delta; /* as gnomon_dim takes them */
    gnomon_assumption assume;   /* 0: NOTHING */
    gnomon_dtype dtype;         /* of the points; 0: F32 */
    int coordinates_contiguous; /* the points' layout; 0: points contiguous */
    int64_t nonzeros;           /* sparse points: stored entries of all of them; dense: -1 */
    gnomon_memory memory;       /* where the points lie */
    gnomon_scaling scaling;     /* of the descriptors; 0: isometric */
    uint64_t seed;              /* of the descriptors */
    const gnomon_model *model;  /* NULL: the one shipped for the device; for a GPU without one, that
                                   of another GPU, which the choice's note states */
} gnomon_choose_options;

#define GNOMON_CHOOSE_OPTIONS_INIT                                                   \
    {                                                                                \
        sizeof(gnomon_choose_options), 0, 0, 0, 0.0, 0.0, 0.0, (gnomon_assumption)0, \
            (gnomon_dtype)0, 0, -1, GNOMON_HOST, (gnomon_scaling)0, 0, NULL          \
    }
/* The same for bindings: see gnomon_context_options_init. */
GNOMON_API gnomon_status gnomon_choose_options_init(gnomon_choose_options *options, size_t size);

/* One operator that was compared. */
typedef struct gnomon_candidate {
    gnomon_descriptor descriptor; /* complete; k as the kind requires (0: no k is enough) */
    int admitted;                 /* whether it keeps the required distortion */
    double seconds;   /* predicted for one sketch, with the creation of the operator; NaN if the
                         operator can't be created for such points */
    char reason[160]; /* the bound by which it is admitted, or why it is excluded */
} gnomon_candidate;

enum { GNOMON_CANDIDATES = 16 };

typedef struct gnomon_choice {
    size_t struct_size; /* set by the caller; see gnomon/base.h */
    int chosen; /* index of the admitted candidate with the fewest seconds, the first such */
    int count;  /* candidates, in a fixed order; at most GNOMON_CANDIDATES */
    gnomon_candidate candidate[GNOMON_CANDIDATES];
    gnomon_device device; /* where a sketch would run: CPU or PLUGIN */
    char model[64];       /* the model's name */
    char note[192];       /* why a model of another device was used; "" if it is this device's */
} gnomon_choice;

/* Chooses. choice->candidate[choice->chosen].descriptor is for gnomon_operator_create; saved, it
 * gives the same operator whatever a later model says.
 * Errors:
 *  - ARGUMENT: a member outside what its comment allows; or no kind can keep eps with k <= d: the
 *    text names the smallest k that would do
 *  - UNSUPPORTED: the model given is of another kind of device, or lacks every kind that is
 *    admitted
 *  - MEMORY
 * choice is then undefined but for struct_size. */
GNOMON_API gnomon_status gnomon_operator_choose(gnomon_context *ctx,
                                                const gnomon_choose_options *options,
                                                gnomon_choice *choice);

#ifdef __cplusplus
}
#endif
#endif

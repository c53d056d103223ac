/* choose/choose.h: the cost model, which says how long an operator takes; kinds/kinds.h has the
 * laws, which say what k a kind needs and whether it is admitted. */
#ifndef GNOMON_CHOOSE_INTERNAL_H
#define GNOMON_CHOOSE_INTERNAL_H

#include "base/plugin.h"
#include "operator/operator.h"

#include <gnomon/choose.h>

#include <stdbool.h>

/* How points lie in memory; a cost has one of these. */
typedef enum gnomon_form {
    GNOMON_FORM_POINTS = 0,      /* dense, points contiguous */
    GNOMON_FORM_COORDINATES = 1, /* dense, coordinates contiguous */
    GNOMON_FORM_SPARSE = 2
} gnomon_form;

/* Seconds of applying one simple kind, on the model's threads, are
 *     start + make * made + multiply * multiplied + read * n D + write * n k + step * steps
 * with the counts of gnomon_work. */
typedef struct gnomon_work {
    double made, multiplied, read, written, steps;
} gnomon_work;

typedef struct gnomon_cost {
    gnomon_kind kind;
    gnomon_dtype precision; /* gaussian */
    gnomon_form form;
    int point_tile, row_tile; /* n and k count as the next multiple in 'multiplied' */
    double start, make, multiply, read, write, step;
    double half, f64; /* all but start times this for 8- and 16-bit points, and for fp64 sums */
} gnomon_cost;

enum { GNOMON_MODEL_COSTS = 24, GNOMON_MODEL_NAME = 64 };

struct gnomon_model {
    char name[GNOMON_MODEL_NAME];
    gnomon_device device;            /* CPU or PLUGIN */
    char plugin[GNOMON_DEVICE_NAME]; /* PLUGIN: its name */
    int threads;                     /* CPU: how many it was measured with */
    double upload, download; /* PLUGIN: seconds a byte of points and sketch in host memory */
    int count;
    gnomon_cost cost[GNOMON_MODEL_COSTS];
};

/* The models that come with the library; ends with one whose count is 0. */
extern const gnomon_model gnomon_shipped_models[];

/* Of a list as above the model for a device; gpu is what the plugin says of a GPU, its name first,
 * then a comma. A GPU that has none takes the first GPU's, or else the first of all, and note says
 * so; otherwise note is "". NULL: there is none. */
const gnomon_model *gnomon_model_for(const gnomon_model *list, gnomon_device device,
                                     const char *gpu, char *note, size_t note_size);

/* What a sketch works on. */
typedef struct gnomon_load {
    gnomon_form form;
    double n, nonzeros; /* points; stored entries of all of them (sparse) */
    int element_size;   /* bytes of a coordinate */
    bool f64;           /* fp64 sums */
    bool host;          /* points and sketch lie in host memory */
    int threads;
} gnomon_load;

/* The work of one simple matrix on n points, which hold so many nonzeros if they are sparse. Of
 * the cost only form and tiles count. */
gnomon_work gnomon_count(const gnomon_cost *cost, const gnomon_simple *a, double n,
                         double nonzeros);

/* Predicted seconds of a sketch; NaN when the model lacks a cost that it takes. */
double gnomon_predict(const gnomon_model *model, const gnomon_operator *op,
                      const gnomon_load *load);

#endif

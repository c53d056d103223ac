/* What every device must hold for every operator of operator_cases.h: sketches of dense points of
 * all types in both layouts, of sparse points, and adjoints, near those of fp64 with the entries
 * themselves. Runs against the CPU at every level and against the device that GNOMON_TEST_DEVICE
 * names (test_conformance.c), and against the CUDA plugin (tests/cuda/test_cuda.c). */
#ifndef TESTS_CONFORMANCE_H
#define TESTS_CONFORMANCE_H

#include "project.h"

typedef struct conformance_shape {
    int64_t n, k, d;
} conformance_shape;

static const conformance_shape conformance_shapes[] = {
    {3, 37, 611}, {18, 66, 301}, {1, 24, 97}, {2, 20, 4097}, {2, 5, 2003},
};
enum { CONFORMANCE_SHAPES = sizeof conformance_shapes / sizeof *conformance_shapes };

/* What is taken of the results: a digest (FNV-1a) of all bits, so that levels can be compared. */
typedef struct conformance {
    gnomon_context *ctx, *cpu; /* of the device, and one of the CPU for what is exact */
    bool sparse;               /* the device takes sparse points */
    bool partial;              /* the device may decline cases, with DEVICE */
    double product; /* units of single precision by which its products are off: 8 by matrix units */
    int done, declined; /* cases */
    uint64_t digest;
} conformance;

typedef struct conformance_case {
    const any_operator *of;
    const conformance_shape *shape;
    const gnomon_operator *op;
    const double *s;    /* k x d */
    double cascade;     /* kronecker: what sums between levels add to the bound, as norms */
    gnomon_dtype dtype; /* of the input */
    const char *what;
} conformance_case;

/* Whether a case was done; false when the device declined it and may. */
static bool conformance_done(conformance *c, gnomon_status status)
{
    if (c->partial && status == GNOMON_ERROR_DEVICE) {
        c->declined++;
        return false;
    }
    ASSERT_OK(c->ctx, status);
    c->done++;
    return true;
}

static void conformance_take(conformance *c, const gnomon_matrix *m)
{
    const unsigned char *p = m->data;
    const size_t bytes = (size_t)(m->rows * m->cols) * gnomon_dtype_size(m->dtype);
    for (size_t i = 0; i < bytes; i++)
        c->digest = (c->digest ^ p[i]) * UINT64_C(0x100000001b3);
}

/* out (rows x outs) is in (rows x ins) times S' (adjoint: S), within rounding. out is contiguous.
 */
static void conformance_check(conformance *c, const conformance_case *t, const gnomon_matrix *in,
                              const gnomon_matrix *out, bool adjoint)
{
    const double u = out->dtype == GNOMON_F64 ? 0x1p-53 : 0x1p-24;
    const int64_t d = t->shape->d;
    double *x = malloc((size_t)in->cols * sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < in->rows; i++) {
        double norm = 0;
        for (int64_t j = 0; j < in->cols; j++) {
            x[j] = element(in, i, j);
            norm += x[j] * x[j];
        }
        for (int64_t o = 0; o < out->cols; o++) {
            double sum = 0, size = t->cascade * sqrt(norm);
            for (int64_t j = 0; j < in->cols; j++) {
                const double term = x[j] * (adjoint ? t->s[j * d + o] : t->s[o * d + j]);
                sum += term;
                size += fabs(term);
            }
            const double got = element(out, i, o);
            const double units = out->dtype == GNOMON_F64 ? 4 : 4 + c->product;
            const double bound = (units + 0.5 * sqrt((double)in->cols)) * u * size +
                                 0x1p-52 * (double)in->cols * size + 0x1p-149;
            if (!(fabs(got - sum) <= bound))
                fail_msg("%s, %s %s, n %lld, k %lld, d %lld: (%lld, %lld) is %.9g, not %.9g",
                         t->of->name, gnomon_dtype_name(t->dtype), t->what, (long long)in->rows,
                         (long long)t->shape->k, (long long)d, (long long)i, (long long)o, got,
                         sum);
        }
    }
    free(x);
    conformance_take(c, out);
}

static bool conformance_wide(gnomon_dtype dtype)
{
    return dtype == GNOMON_F64 || dtype == GNOMON_I32 || dtype == GNOMON_U32 ||
           dtype == GNOMON_I64 || dtype == GNOMON_U64;
}

static void conformance_dense(conformance *c, conformance_case *t)
{
    for (int type = GNOMON_F32; type <= GNOMON_U64; type++)
        for (int layout = ROW_MAJOR; layout <= COL_MAJOR; layout++) {
            /* each type on one shape, the two floating-point ones on all */
            if (type > GNOMON_F64 && type % CONFORMANCE_SHAPES != t->shape - conformance_shapes)
                continue;
            t->dtype = (gnomon_dtype)type;
            t->what = layout == ROW_MAJOR ? "dense by points" : "dense by coordinates";
            owned x = make_matrix(t->shape->n, t->shape->d, t->dtype, layout);
            owned y = make_matrix(t->shape->n, t->shape->k,
                                  conformance_wide(t->dtype) ? GNOMON_F64 : GNOMON_F32, ROW_MAJOR);
            fill_random(&x.m, 5);
            if (conformance_done(c, gnomon_sketch(c->ctx, t->op, &x.m, &y.m, NULL)))
                conformance_check(c, t, &x.m, &y.m, false);
            free_matrix(&x);
            free_matrix(&y);
        }
}

static void conformance_sparse(conformance *c, conformance_case *t)
{
    const int64_t n = t->shape->n, d = t->shape->d;
    for (int type = GNOMON_F32; type <= GNOMON_F64; type++) {
        t->dtype = (gnomon_dtype)type;
        t->what = "sparse";
        owned x = make_matrix(n, d, t->dtype, ROW_MAJOR),
              y = make_matrix(n, t->shape->k, t->dtype, ROW_MAJOR);
        owned values = make_matrix(1, n * d, t->dtype, ROW_MAJOR);
        int64_t *offsets = calloc((size_t)n + 1, sizeof *offsets);
        int64_t *indices = malloc((size_t)(n * d) * sizeof *indices);
        assert_non_null(offsets);
        assert_non_null(indices);
        fill_random(&x.m, 6);
        for (int64_t i = 0; i < n; i++) {
            offsets[i + 1] = offsets[i];
            for (int64_t j = 0; j < d; j++) {
                if ((i * 7919 + j * 104729) % 11 != 0) {
                    set_element(&x.m, i, j, 0);
                    continue;
                }
                indices[offsets[i + 1]] = j;
                set_element(&values.m, 0, offsets[i + 1]++, element(&x.m, i, j));
            }
        }
        const gnomon_csr csr = {n, d, offsets, indices, values.m.data, t->dtype};
        if (conformance_done(c, gnomon_sketch_csr(c->ctx, t->op, &csr, &y.m, NULL)))
            conformance_check(c, t, &x.m, &y.m, false);
        free(offsets);
        free(indices);
        free_matrix(&values);
        free_matrix(&x);
        free_matrix(&y);
    }
}

static void conformance_adjoint(conformance *c, conformance_case *t)
{
    for (int type = GNOMON_F32; type <= GNOMON_F64; type++) {
        t->dtype = (gnomon_dtype)type;
        t->what = "adjoint";
        owned y = make_matrix(t->shape->n, t->shape->k, t->dtype, ROW_MAJOR);
        owned x = make_matrix(t->shape->n, t->shape->d, t->dtype, ROW_MAJOR);
        fill_random(&y.m, 7);
        if (conformance_done(c, gnomon_adjoint(c->ctx, t->op, &y.m, &x.m, NULL)))
            conformance_check(c, t, &y.m, &x.m, true);
        free_matrix(&x);
        free_matrix(&y);
    }
}

/* All of it for one operator of the list. */
static void conformance_run(conformance *c, const any_operator *of)
{
    for (int i = 0; i < CONFORMANCE_SHAPES; i++) {
        conformance_case t = {.of = of, .shape = &conformance_shapes[i]};
        gnomon_operator *op = make_operator(c->cpu, of, t.shape->k, t.shape->d);
        double *s = operator_block(c->cpu, op, 0, t.shape->k, 0, t.shape->d);
        t.op = op;
        t.s = s;
        t.cascade = of->kind == GNOMON_KRONECKER ? 16 : 0;
        /* srht adds every coordinate to every sum on the way */
        if (of->kind == GNOMON_SRHT) t.cascade = sqrt((double)t.shape->d / (double)t.shape->k);
        conformance_dense(c, &t);
        if (c->sparse) conformance_sparse(c, &t);
        conformance_adjoint(c, &t);
        free(s);
        gnomon_operator_destroy(op);
    }
}

#endif

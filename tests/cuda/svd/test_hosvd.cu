/* Tensors factored on the GPU, by what must hold of any result, in double precision on the host:
 * what is left, beside what the exact singular vectors of the unfoldings leave; orthonormal
 * factors; an all-orthogonal core; signs; the bits of a second run. Tensors of 2 to 6 modes, both
 * orders of memory, gaps, element types, scales, low ranks, zeros, all ways of working, what is
 * refused.
 *
 * Exits with 77 where there is no GPU or no cuSOLVER. */
#include "device.h"
#include "draw.cuh"
#include "must.cuh"

#include <gnomon.h>

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

typedef std::vector<double> numbers;
typedef std::vector<int64_t> sizes;

/* C order. */
struct cube {
    sizes size;
    numbers data;
};

enum what { ALGORITHM_3, NOISE, FALLING, ZERO };
enum layout { C_ORDER, FORTRAN, TRANSPOSED, GAPS };

struct hosvd_case {
    const char *name;
    sizes size, rank;
    what is;
    layout lie;
    bool device;
    gnomon_dtype dtype;
    gnomon_kind kind;
    gnomon_dtype precision;
    int exponent;
};

static gnomon_context *gpu;
static int failures;
static gnomon_dtype working = GNOMON_F32; /* the type that is worked in */

static int64_t count_of(const sizes &size)
{
    int64_t count = 1;
    for (int64_t s : size)
        count *= s;
    return count;
}

static double norm_of(const numbers &x)
{
    double sum = 0;
    for (double v : x)
        sum += v * v;
    return std::sqrt(sum);
}

/* c x_mode f: f rows x c's size, or the other way round. */
static cube times(const cube &c, int mode, int64_t rows, const numbers &f, bool transposed)
{
    cube out = c;
    int64_t left = 1, right = 1;
    const int64_t length = c.size[mode];
    for (int n = 0; n < mode; n++)
        left *= c.size[n];
    for (size_t n = mode + 1; n < c.size.size(); n++)
        right *= c.size[n];
    out.size[mode] = rows;
    out.data.assign((size_t)count_of(out.size), 0.0);
    for (int64_t l = 0; l < left; l++)
        for (int64_t j = 0; j < rows; j++)
            for (int64_t i = 0; i < length; i++) {
                const double x = transposed ? f[i * rows + j] : f[j * length + i];
                const double *from = c.data.data() + (l * length + i) * right;
                double *to = out.data.data() + (l * rows + j) * right;
                for (int64_t r = 0; r < right; r++)
                    to[r] += x * from[r];
            }
    return out;
}

static numbers gram(const cube &c, int mode)
{
    int64_t left = 1, right = 1;
    const int64_t n = c.size[mode];
    for (int k = 0; k < mode; k++)
        left *= c.size[k];
    for (size_t k = mode + 1; k < c.size.size(); k++)
        right *= c.size[k];
    numbers g((size_t)(n * n), 0.0);
    for (int64_t l = 0; l < left; l++)
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j <= i; j++) {
                const double *a = c.data.data() + (l * n + i) * right;
                const double *b = c.data.data() + (l * n + j) * right;
                double sum = 0;
                for (int64_t r = 0; r < right; r++)
                    sum += a[r] * b[r];
                g[i * n + j] += sum;
            }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++)
            g[j * n + i] = g[i * n + j];
    return g;
}

/* Eigenvalues, falling, by Jacobi's rotations. */
static numbers eigenvalues(numbers g, int64_t n)
{
    double all = 0;
    for (double x : g)
        all += x * x;
    for (int sweep = 0; sweep < 60; sweep++) {
        double off = 0;
        for (int64_t p = 0; p < n; p++)
            for (int64_t q = p + 1; q < n; q++) {
                const double x = g[p * n + q];
                off += 2 * x * x;
                if (x == 0) continue;
                const double theta = (g[q * n + q] - g[p * n + p]) / (2 * x);
                const double t =
                    (theta < 0 ? -1 : 1) / (std::fabs(theta) + std::sqrt(theta * theta + 1));
                const double c = 1 / std::sqrt(t * t + 1), s = t * c;
                for (int64_t k = 0; k < n; k++) {
                    const double a = g[k * n + p], b = g[k * n + q];
                    g[k * n + p] = c * a - s * b;
                    g[k * n + q] = s * a + c * b;
                }
                for (int64_t k = 0; k < n; k++) {
                    const double a = g[p * n + k], b = g[q * n + k];
                    g[p * n + k] = c * a - s * b;
                    g[q * n + k] = s * a + c * b;
                }
            }
        if (off <= 1e-30 * all) break;
    }
    numbers values((size_t)n);
    for (int64_t i = 0; i < n; i++)
        values[i] = std::max(g[i * (n + 1)], 0.0);
    std::sort(values.rbegin(), values.rend());
    return values;
}

/* The root of what the unfoldings leave at these ranks, an upper bound for the exact HOSVD; and the
 * largest of them, below which nothing of those ranks comes. */
static void exact(const cube &x, const sizes &rank, double *most, double *least)
{
    double sum = 0, largest = 0;
    for (size_t n = 0; n < x.size.size(); n++) {
        const numbers values = eigenvalues(gram(x, (int)n), x.size[n]);
        double tail = 0;
        for (int64_t j = x.size[n] - 1; j >= rank[n]; j--)
            tail += values[j];
        sum += tail;
        largest = std::max(largest, tail);
    }
    *most = std::sqrt(sum);
    *least = std::sqrt(largest);
}

/* ---- tensors ---- */

static numbers draw(int64_t count)
{
    numbers m((size_t)count);
    for (double &x : m)
        x = 2 * uniform() - 1;
    return m;
}

static cube make(const hosvd_case *c)
{
    cube x;
    const int modes = (int)c->size.size();
    x.size = c->is == ALGORITHM_3 || c->is == NOISE ? c->rank : c->size;
    if (c->is == ZERO) {
        x.data.assign((size_t)count_of(x.size), 0.0);
        return x;
    }
    x.data = draw(count_of(x.size));
    if (c->is == FALLING) {
        for (int64_t e = 0; e < count_of(x.size); e++) {
            int64_t rest = e;
            double sum = 0;
            for (int n = modes - 1; n >= 0; n--) {
                sum += 2.5 * (double)(rest % x.size[n]) / (double)c->rank[n];
                rest /= x.size[n];
            }
            x.data[e] *= std::exp(-sum);
        }
        return x;
    }
    for (int n = 0; n < modes; n++) { /* Ootomo & Yokota 2023, algorithm 3, with p = 1 */
        const int64_t inner = std::max<int64_t>(c->rank[n] - 1, 1);
        x = times(x, n, inner, draw(c->rank[n] * inner), true);
        x = times(x, n, c->size[n], draw(inner * c->size[n]), true);
    }
    if (c->is == NOISE) {
        const double size = 0.01 * norm_of(x.data) / std::sqrt((double)count_of(x.size));
        for (double &v : x.data)
            v += size * normal();
    }
    return x;
}

struct placed {
    gnomon_tensor t;
    void *block;
    bool device;
};

static double store(void *to, gnomon_dtype dtype, int64_t at, double value)
{
    switch (dtype) {
    case GNOMON_F64:
        return static_cast<double *>(to)[at] = value;
    case GNOMON_F16:
        static_cast<__half *>(to)[at] = __float2half((float)value);
        return (double)__half2float(static_cast<__half *>(to)[at]);
    case GNOMON_I8:
        return static_cast<int8_t *>(to)[at] = (int8_t)std::lrint(value);
    default:
        return static_cast<float *>(to)[at] = (float)value;
    }
}

/* Where the case wants it; x then holds the stored numbers. */
static placed place(const hosvd_case *c, cube *x)
{
    const int modes = (int)c->size.size();
    placed p = {};
    int64_t step = 1;
    p.t.dtype = c->dtype;
    p.t.modes = modes;
    p.t.memory = c->device ? GNOMON_DEVICE_MEMORY : GNOMON_HOST;
    for (int i = 0; i < modes; i++) {
        const int n = c->lie == FORTRAN      ? i
                      : c->lie == TRANSPOSED ? (modes - i) % modes
                                             : modes - 1 - i;
        if (c->lie == GAPS && i == modes - 1) step += 5;
        p.t.size[n] = c->size[n];
        p.t.stride[n] = step;
        step *= c->size[n];
    }
    const double largest = norm_of(x->data);
    const size_t bytes = (size_t)step * gnomon_dtype_size(c->dtype);
    void *host = calloc(1, bytes);
    for (int64_t e = 0; e < count_of(x->size); e++) {
        int64_t rest = e, at = 0;
        for (int n = modes - 1; n >= 0; n--) {
            at += rest % c->size[n] * p.t.stride[n];
            rest /= c->size[n];
        }
        double value = std::ldexp(x->data[e], c->exponent);
        if (c->dtype == GNOMON_I8)
            value = 100 * x->data[e] * std::sqrt((double)count_of(x->size)) / (4 * largest);
        x->data[e] = store(host, c->dtype, at, value);
    }
    p.block = host;
    p.device = c->device;
    if (c->device) {
        MUST(cudaMalloc(&p.block, bytes));
        MUST(cudaMemcpy(p.block, host, bytes, cudaMemcpyHostToDevice));
        free(host);
    }
    p.t.data = p.block;
    return p;
}

static void drop(placed *p)
{
    if (p->device)
        MUST(cudaFree(p->block));
    else
        free(p->block);
}

/* ---- checks ---- */

static void at_most(const hosvd_case *c, const char *what, double got, double most)
{
    if (got <= most) return;
    printf("FAILED %s: %s is %g, at most %g was due\n", c->name, what, got, most);
    failures++;
}

static numbers results(const void *data, int64_t count)
{
    const float *f = static_cast<const float *>(data);
    const double *d = static_cast<const double *>(data);
    return working == GNOMON_F64 ? numbers(d, d + count) : numbers(f, f + count);
}

static bool same(const gnomon_hosvd *a, const gnomon_hosvd *b)
{
    const size_t each = gnomon_dtype_size(working);
    int64_t count = 1;
    for (int n = 0; n < a->modes; n++) {
        count *= a->rank[n];
        if (a->rank[n] != b->rank[n] ||
            memcmp(a->values[n], b->values[n], (size_t)a->rank[n] * sizeof(double)) != 0 ||
            memcmp(a->factor[n].data, b->factor[n].data,
                   (size_t)(a->size[n] * a->rank[n]) * each) != 0)
            return false;
    }
    return memcmp(a->core.data, b->core.data, (size_t)count * each) == 0;
}

static bool factor(const hosvd_case *c, const gnomon_tensor *t, const gnomon_hosvd_options *o,
                   gnomon_hosvd *h)
{
    memset(h, 0, sizeof *h);
    h->struct_size = sizeof *h;
    if (gnomon_hosvd_dense(gpu, t, o, h) == GNOMON_OK) return true;
    printf("FAILED %s: %s\n", c->name, gnomon_last_error(gpu));
    failures++;
    return false;
}

static void check(const hosvd_case *c, const cube &x, const gnomon_hosvd_options *o,
                  const gnomon_hosvd *h, double most, double least)
{
    const int modes = (int)c->size.size();
    cube core, whole;
    core.size = c->rank;
    core.data = results(h->core.data, count_of(c->rank));
    whole = core;
    const bool f64 = working == GNOMON_F64;
    const double size = norm_of(x.data), u = f64 ? 0x1p-53 : 0x1p-24;
    /* what the eigenvalues that are due have lost by squaring */
    const double blur = f64 ? 1e-7 * size : 0;
    double off = 0;
    if (h->core.dtype != working || h->modes != modes || !h->converged) {
        printf("FAILED %s: type, modes or converged\n", c->name);
        failures++;
    }
    for (int n = 0; n < modes; n++) {
        const int64_t k = c->rank[n], m = c->size[n];
        const numbers f = results(h->factor[n].data, m * k);
        for (int64_t p = 0; p < k; p++) {
            double largest = 0, value = 0;
            for (int64_t i = 0; i < m; i++)
                if (std::fabs(f[i * k + p]) > largest) {
                    largest = std::fabs(f[i * k + p]);
                    value = f[i * k + p];
                }
            if (value < 0) at_most(c, "the sign of a factor's column", 1, 0);
            for (int64_t q = 0; q <= p; q++) {
                double dot = p == q ? -1 : 0;
                for (int64_t i = 0; i < m; i++)
                    dot += f[i * k + p] * f[i * k + q];
                off = std::max(off, std::fabs(dot));
            }
            if (p > 0) at_most(c, "a singular value", h->values[n][p], h->values[n][p - 1]);
        }
        const numbers g = gram(core, n);
        for (int64_t p = 0; p < k; p++)
            for (int64_t q = 0; q < k; q++)
                at_most(c, "the core's slices off orthogonal",
                        std::fabs(g[p * k + q] - (p == q ? h->values[n][p] * h->values[n][p] : 0)),
                        1024 * u * size * size);
        whole = times(whole, n, m, f, false);
    }
    for (size_t e = 0; e < whole.data.size(); e++)
        whole.data[e] = x.data[e] - whole.data[e];
    const double left = norm_of(whole.data);
    printf("%-26s over %2lld, power %d%s: left %.3e (exact %.3e to %.3e), off %.1e, by %s, %lld "
           "passes, cholesky %lld, householder %lld\n",
           c->name, (long long)o->oversample, o->power, o->sequential ? ", sequential" : "",
           size > 0 ? left / size : 0, size > 0 ? least / size : 0, size > 0 ? most / size : 0, off,
           h->residual_by == GNOMON_RESIDUAL_MEASURED ? "measuring" : "norms", (long long)h->passes,
           (long long)h->cholesky, (long long)h->householder);
    at_most(c, "factors off orthonormal", off, (f64 ? 1024 : 64) * u);
    if (f64 && c->is == ALGORITHM_3 && c->dtype == GNOMON_F64 && o->oversample > 0)
        at_most(c, "what is left of ranks that hold all", left, 1e-12 * size);
    /* few columns more than the rank, or none, find less of what falls slowly */
    const double slack = o->oversample == 0 ? 200 : o->power == 0 ? 4 : 1.1;
    at_most(c, "what is left", left,
            slack * (most + blur) + (o->oversample == 0 ? 0x1p14 : 64) * u * size);
    at_most(c, "the least that must be left", least, left * (1 + 1e-5) + 16 * u * size + blur);
    at_most(c, "the residual's error", std::fabs(h->residual - left),
            0.01 * left + (f64 ? 512 : 32) * u * size);
    at_most(c, "|X|'s error", std::fabs(h->norm - size), 1e-6 * size);
    if (o->measure && h->residual_by != GNOMON_RESIDUAL_MEASURED)
        at_most(c, "measured though not asked for", 1, 0);
}

static void run(const hosvd_case *c)
{
    cube x = make(c);
    placed p = place(c, &x);
    double most, least;
    exact(x, c->rank, &most, &least);
    gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
    d.kind = c->kind;
    d.precision = c->precision;
    d.seed = state;
    for (int way = 0; way < 6; way++) {
        gnomon_hosvd_options o = GNOMON_HOSVD_OPTIONS_INIT;
        gnomon_hosvd h, again;
        o.ranks = c->rank.data();
        o.rank_count = (int)c->rank.size();
        o.descriptor = &d;
        o.dtype = working;
        o.sequential = way % 2;
        o.power = way / 2 == 2 ? 1 : 0;
        o.oversample = way / 2 == 0 ? 0 : 8;
        o.measure = way > 2;
        if (!factor(c, &p.t, &o, &h)) continue;
        if (gnomon_context_worked_on(gpu) != GNOMON_DEVICE_PLUGIN) at_most(c, "the CPU", 1, 0);
        check(c, x, &o, &h, most, least);
        if (factor(c, &p.t, &o, &again)) {
            if (!same(&h, &again)) at_most(c, "bits of a second run that differ", 1, 0);
            gnomon_hosvd_free(gpu, &again);
        }
        gnomon_hosvd_free(gpu, &h);
    }
    drop(&p);
}

/* Ranks for a tolerance: it is met, by what is measured here, with few columns more than the modes'
 * spectra ask for, and none where none are allowed. */
static void check_tolerance(const hosvd_case *c, double tolerance, bool sequential)
{
    cube x = make(c);
    placed p = place(c, &x);
    const int modes = (int)c->size.size();
    const double size = norm_of(x.data);
    gnomon_hosvd_options o = GNOMON_HOSVD_OPTIONS_INIT;
    gnomon_hosvd h, again;
    o.tolerance = tolerance;
    o.sequential = sequential;
    o.seed = state;
    o.dtype = working;
    if (!factor(c, &p.t, &o, &h)) return drop(&p);
    if (gnomon_context_worked_on(gpu) != GNOMON_DEVICE_PLUGIN) at_most(c, "the CPU", 1, 0);
    hosvd_case found = *c;
    std::string ranks;
    for (int n = 0; n < modes; n++) {
        /* of the square, a mode may leave its part; one that leaves half of it has ranks enough */
        const numbers values = eigenvalues(gram(x, n), c->size[n]);
        const double part = tolerance * tolerance * size * size / (2 * modes);
        int64_t enough = c->size[n];
        double tail = 0;
        while (enough > 1 && tail + values[enough - 1] <= part)
            tail += values[--enough];
        found.rank[n] = h.rank[n];
        ranks += " " + std::to_string(h.rank[n]) + "/" + std::to_string(enough);
        at_most(c, "a rank", (double)h.rank[n], (double)enough + 1);
    }
    printf("tolerance %g%s: ranks of enough%s, converged %d\n", tolerance,
           sequential ? ", sequential" : "", ranks.c_str(), h.converged);
    double most, least;
    exact(x, found.rank, &most, &least);
    o.power = 1;
    check(&found, x, &o, &h, std::max(most, tolerance * size), least);
    if (h.converged) at_most(c, "what is left", h.residual, tolerance * h.norm);
    if (!h.converged) at_most(c, "not converged", 1, 0);
    if (factor(c, &p.t, &o, &again)) {
        if (!same(&h, &again)) at_most(c, "bits of a second run that differ", 1, 0);
        gnomon_hosvd_free(gpu, &again);
    }
    gnomon_hosvd_free(gpu, &h);
    /* ranks that do not do */
    const sizes ones((size_t)modes, 1);
    o.ranks = ones.data();
    o.rank_count = modes;
    if (factor(c, &p.t, &o, &h)) {
        for (int n = 0; n < modes; n++)
            at_most(c, "a rank with a limit", (double)h.rank[n], 1);
        if (h.converged) at_most(c, "converged all the same", 1, 0);
        gnomon_hosvd_free(gpu, &h);
    }
    drop(&p);
}

static void refused(const char *name, gnomon_status got, gnomon_status wanted, const char *part)
{
    if (got == wanted && strstr(gnomon_last_error(gpu), part)) return;
    printf("FAILED %s: status %d, \"%s\"; %d and \"%s\" were due\n", name, (int)got,
           gnomon_last_error(gpu), (int)wanted, part);
    failures++;
}

static void check_refusals(void)
{
    const int64_t size[] = {7, 12, 9}, ranks[] = {3, 3, 3};
    std::vector<float> a(7 * 12 * 9);
    for (float &x : a)
        x = (float)normal();
    gnomon_tensor t = gnomon_tensor_packed(a.data(), GNOMON_F32, 3, size, 0);
    gnomon_hosvd_options o = GNOMON_HOSVD_OPTIONS_INIT;
    gnomon_hosvd h = {};
    h.struct_size = sizeof h;
    o.ranks = ranks;
    o.rank_count = 3;
    a[5 * 108 + 3 * 9 + 8] = NAN;
    refused("NaN", gnomon_hosvd_dense(gpu, &t, &o, &h), GNOMON_ERROR_NONFINITE,
            "element (5, 3, 8)");
    a[5 * 108 + 3 * 9 + 8] = INFINITY;
    gnomon_tensor transposed_x = gnomon_tensor_packed(a.data(), GNOMON_F32, 3, size, 1);
    const int64_t at = 5 * 108 + 3 * 9 + 8;
    char element[64];
    snprintf(element, sizeof element, "element (%lld, %lld, %lld)", (long long)(at % 7),
             (long long)(at / 7 % 12), (long long)(at / 84));
    refused("infinity", gnomon_hosvd_dense(gpu, &transposed_x, &o, &h), GNOMON_ERROR_NONFINITE,
            element);
    a[at] = 1;
    t.stride[1] = -9;
    t.data = a.data() + 11 * 9;
    refused("strides", gnomon_hosvd_dense(gpu, &t, &o, &h), GNOMON_ERROR_DEVICE, "no order");
}

int main(void)
{
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    options.device = tested_device();
    if (gnomon_context_create(&options, &gpu) != GNOMON_OK) {
        printf("no GPU: %s\n", gnomon_last_error(nullptr));
        return 77;
    }
    seed();
    const gnomon_dtype F = GNOMON_F32;
    const gnomon_kind G = GNOMON_GAUSSIAN;
    const gnomon_dtype P32 = GNOMON_F32, P16 = GNOMON_F16, P0 = (gnomon_dtype)0;
    const hosvd_case cases[] = {
        {"3 modes", {67, 41, 53}, {12, 9, 11}, ALGORITHM_3, C_ORDER, true, F, G, P32, 0},
        {"3 modes, noise", {67, 41, 53}, {12, 9, 11}, NOISE, C_ORDER, true, F, G, P16, 0},
        {"3 modes, falling", {60, 45, 50}, {12, 9, 11}, FALLING, C_ORDER, true, F, G, P32, 0},
        {"lines of 64", {48, 50, 64}, {10, 9, 11}, NOISE, C_ORDER, true, F, G, P16, 0},
        {"lines of 128, fp32", {33, 45, 128}, {10, 9, 11}, NOISE, C_ORDER, true, F, G, P32, 0},
        {"lines of 64, 4 modes",
         {22, 35, 24, 64},
         {5, 6, 7, 8},
         FALLING,
         C_ORDER,
         true,
         F,
         G,
         P16,
         0},
        {"4 modes, from the host",
         {31, 17, 23, 29},
         {6, 5, 7, 8},
         NOISE,
         C_ORDER,
         false,
         F,
         G,
         P32,
         0},
        {"Fortran order", {40, 31, 52}, {8, 7, 9}, NOISE, FORTRAN, true, F, G, P16, 0},
        {"turned", {40, 31, 52}, {8, 7, 9}, FALLING, TRANSPOSED, false, F, G, P32, 0},
        {"gaps", {40, 31, 52}, {8, 7, 9}, NOISE, GAPS, true, F, G, P16, 0},
        {"gaps, from the host", {40, 31, 53}, {8, 7, 9}, NOISE, GAPS, false, F, G, P32, 0},
        {"2 modes", {150, 80}, {9, 9}, NOISE, C_ORDER, true, F, G, P16, 0},
        {"6 modes", {9, 7, 8, 6, 5, 10}, {3, 3, 3, 3, 3, 3}, FALLING, C_ORDER, true, F, G, P32, 0},
        {"uneven", {5, 190, 3}, {4, 7, 3}, FALLING, C_ORDER, true, F, G, P32, 0},
        {"ranks above what is left", {30, 40}, {3, 3}, FALLING, C_ORDER, true, F, G, P32, 0},
        {"modes of 1", {1, 60, 1, 50, 1}, {1, 8, 1, 8, 1}, NOISE, C_ORDER, true, F, G, P16, 0},
        {"all ranks full", {12, 10, 14}, {12, 10, 14}, FALLING, C_ORDER, true, F, G, P32, 0},
        {"rank 1", {40, 50, 45}, {1, 1, 1}, FALLING, C_ORDER, true, F, G, P32, 0},
        {"zero", {40, 50, 45}, {4, 5, 3}, ZERO, C_ORDER, true, F, G, P32, 0},
        {"huge", {40, 31, 52}, {8, 7, 9}, NOISE, C_ORDER, true, F, G, P32, 100},
        {"huge, from the host", {40, 31, 52}, {8, 7, 9}, NOISE, C_ORDER, false, F, G, P16, 100},
        {"tiny", {40, 31, 52}, {8, 7, 9}, NOISE, C_ORDER, true, F, G, P16, -100},
        {"huge, long lines", {11, 129, 129}, {5, 8, 7}, NOISE, C_ORDER, true, F, G, P32, 100},
        {"halves", {40, 31, 52}, {8, 7, 9}, FALLING, C_ORDER, true, GNOMON_F16, G, P32, 0},
        {"doubles, from the host",
         {40, 31, 52},
         {8, 7, 9},
         NOISE,
         C_ORDER,
         false,
         GNOMON_F64,
         G,
         P32,
         0},
        {"bytes, from the host",
         {40, 31, 52},
         {8, 7, 9},
         NOISE,
         C_ORDER,
         false,
         GNOMON_I8,
         G,
         P32,
         0},
        {"rademacher", {40, 31, 64}, {8, 7, 9}, NOISE, C_ORDER, true, F, GNOMON_RADEMACHER, P0, 0},
        {"sjlt", {40, 31, 64}, {8, 7, 9}, NOISE, C_ORDER, true, F, GNOMON_SJLT, P0, 0},
        {"srht", {40, 31, 52}, {8, 7, 9}, FALLING, C_ORDER, false, F, GNOMON_SRHT, P0, 0},
    };
    for (const hosvd_case &c : cases)
        run(&c);
    const hosvd_case long_ones[] = {
        {"falling", {60, 45, 50}, {12, 9, 11}, FALLING, C_ORDER, true, F, G, P32, 0},
        {"noise, 4 modes", {31, 17, 23, 29}, {6, 5, 7, 8}, NOISE, C_ORDER, false, F, G, P32, 0},
        {"long first mode", {180, 40, 20}, {11, 7, 6}, NOISE, C_ORDER, true, F, G, P32, 0},
        {"long last mode", {24, 30, 200}, {5, 6, 9}, NOISE, FORTRAN, true, F, G, P32, 90}};
    for (const hosvd_case &c : long_ones)
        for (const double tolerance : {0.3, 0.02})
            check_tolerance(&c, tolerance, tolerance < 0.1);
    check_refusals();
    working = GNOMON_F64;
    const gnomon_dtype D = GNOMON_F64;
    const hosvd_case f64[] = {
        {"fp64", {67, 41, 53}, {12, 9, 11}, ALGORITHM_3, C_ORDER, true, D, G, P32, 0},
        {"fp64, noise", {67, 41, 64}, {12, 9, 11}, NOISE, C_ORDER, true, D, G, P16, 0},
        {"fp64, of floats", {31, 17, 23, 29}, {6, 5, 7, 8}, NOISE, C_ORDER, false, F, G, P32, 0},
        {"fp64, Fortran order", {40, 31, 52}, {8, 7, 9}, FALLING, FORTRAN, true, D, G, P32, 0},
        {"fp64, gaps", {40, 31, 53}, {8, 7, 9}, ALGORITHM_3, GAPS, true, D, G, P32, 0},
        {"fp64, 6 modes",
         {9, 7, 8, 6, 5, 10},
         {3, 3, 3, 3, 3, 3},
         FALLING,
         C_ORDER,
         true,
         D,
         G,
         P32,
         0},
        {"fp64, uneven", {5, 190, 3}, {4, 7, 3}, FALLING, C_ORDER, true, D, G, P32, 0},
        {"fp64, ranks above", {30, 40}, {3, 3}, FALLING, C_ORDER, true, D, G, P32, 0},
        {"fp64, modes of 1",
         {1, 60, 1, 50, 1},
         {1, 8, 1, 8, 1},
         NOISE,
         C_ORDER,
         true,
         D,
         G,
         P16,
         0},
        {"fp64, all ranks full", {12, 10, 14}, {12, 10, 14}, FALLING, C_ORDER, true, D, G, P32, 0},
        {"fp64, zero", {40, 50, 45}, {4, 5, 3}, ZERO, C_ORDER, true, D, G, P32, 0},
        {"fp64, huge", {40, 31, 52}, {8, 7, 9}, NOISE, C_ORDER, false, D, G, P32, 200},
        {"fp64, tiny", {40, 31, 52}, {8, 7, 9}, NOISE, C_ORDER, true, D, G, P32, -200},
        {"fp64, sjlt", {40, 31, 64}, {8, 7, 9}, NOISE, C_ORDER, true, D, GNOMON_SJLT, P0, 0},
        {"fp64, srht", {40, 31, 52}, {8, 7, 9}, ALGORITHM_3, C_ORDER, false, D, GNOMON_SRHT, P0, 0},
    };
    for (const hosvd_case &c : f64)
        run(&c);
    for (const hosvd_case &c : long_ones)
        for (const double tolerance : {0.3, 0.02})
            check_tolerance(&c, tolerance, tolerance < 0.1);
    gnomon_context_destroy(gpu);
    printf("%d failed\n", failures);
    return failures != 0;
}

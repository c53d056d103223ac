/* Singular values on the GPU against the same algorithm in fp64 on the host, with the entries of
 * the same operator from the CPU: spectra, layouts, kinds, element types and memory, scales that
 * overflow, what is refused, tolerances; matrices that do not fit the GPU's memory, rows that come
 * piece by piece or are read once; rows less their mean; and the bits of a second run.
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
#include <vector>

typedef std::vector<double> numbers;

enum spectrum { LINEAR, EXPONENTIAL, POLYNOMIAL, CAUCHY, STEP, DEFICIENT, ZERO, DECADES, GROUPS };
enum layout { ROWS, COLUMNS, ROW_GAPS, COLUMN_GAPS, BACKWARDS };

struct svd_case {
    const char *name;
    int64_t m, n, rank;
    spectrum what;
    int power;
    layout lie;
    bool device, given; /* A, and U and Vt, in the GPU's memory */
    gnomon_dtype dtype;
    gnomon_kind kind;
    gnomon_dtype precision;
    int exponent; /* A times 2^exponent */
    double tolerance;
    int64_t over;
};

static gnomon_context *gpu;
static bool streaming, sparse, one_pass, centered; /* how the cases that run now are factored */
static double offset; /* what is added to the columns of those that are centred */
static int failures;

/* ---- matrices, row-major in fp64 ---- */

static void reflect_rows(numbers &a, int64_t m, int64_t n)
{
    numbers v((size_t)m), h((size_t)n, 0.0);
    double square = 0;
    for (double &x : v) {
        x = normal();
        square += x * x;
    }
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            h[j] += v[i] * a[i * n + j];
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            a[i * n + j] -= 2 / square * v[i] * h[j];
}

static numbers transposed(const numbers &a, int64_t m, int64_t n)
{
    numbers t(a.size());
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            t[j * m + i] = a[i * n + j];
    return t;
}

static double singular_value(const svd_case *c, int64_t i)
{
    const double least = 1e-3;
    switch (c->what) {
    case LINEAR:
        return i < c->rank ? 1 - (1 - least) * (double)i / (double)c->rank : least;
    case EXPONENTIAL:
        return std::pow(1e-2, (double)i / (double)c->rank);
    case POLYNOMIAL:
        return i < 5 ? 1e4 : std::pow((double)(i - 3), -3.0);
    case STEP:
        return i < c->rank ? 1 : 1e-4;
    case DEFICIENT:
        return i < c->rank / 2 ? 1 + (double)i : 0;
    case DECADES:
        return std::pow(1e-13, (double)i / (double)c->rank);
    case GROUPS: /* of many that are nearly the same */
        return std::pow(1e-4, (double)(3 * i / c->rank)) * (1 + 1e-10 * (double)(i % 7));
    default:
        return 0;
    }
}

static numbers make(const svd_case *c)
{
    const int64_t m = c->m, n = c->n;
    numbers a((size_t)(m * n), 0.0);
    if (c->what == CAUCHY) {
        numbers x((size_t)m), y((size_t)n);
        for (double &one : x)
            one = 3 * uniform();
        for (double &one : y)
            one = 3 * uniform();
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++)
                a[i * n + j] = 1 / (std::fabs(x[i] - y[j]) + 1e-7);
        return a;
    }
    for (int64_t i = 0; i < (m < n ? m : n); i++)
        a[i * n + i] = singular_value(c, i);
    for (int transposed_a = 0; transposed_a < 2; transposed_a++) {
        for (int h = 0; h < 3; h++)
            reflect_rows(a, transposed_a ? n : m, transposed_a ? m : n);
        a = transposed(a, transposed_a ? n : m, transposed_a ? m : n);
    }
    return a;
}

/* c (m x n) = op(a) b, a m x k or k x m. */
static numbers product(bool transposed_a, const numbers &a, const numbers &b, int64_t m, int64_t k,
                       int64_t n)
{
    numbers c((size_t)(m * n), 0.0);
    for (int64_t i = 0; i < m; i++)
        for (int64_t l = 0; l < k; l++) {
            const double x = transposed_a ? a[l * m + i] : a[i * k + l];
            for (int64_t j = 0; j < n; j++)
                c[i * n + j] += x * b[l * n + j];
        }
    return c;
}

/* Orthonormal columns by Gram and Schmidt, three times over; what is nothing becomes zero. */
static void orthonormalise(numbers &q, int64_t m, int64_t s)
{
    numbers t = transposed(q, m, s);
    double most = 0;
    for (int64_t j = 0; j < s; j++) {
        double *x = &t[j * m], length = 0;
        for (int pass = 0; pass < 3; pass++)
            for (int64_t l = 0; l < j; l++) {
                double dot = 0;
                for (int64_t i = 0; i < m; i++)
                    dot += x[i] * t[l * m + i];
                for (int64_t i = 0; i < m; i++)
                    x[i] -= dot * t[l * m + i];
            }
        for (int64_t i = 0; i < m; i++)
            length += x[i] * x[i];
        length = std::sqrt(length);
        most = std::max(most, length);
        for (int64_t i = 0; i < m; i++)
            x[i] = length > 1e-14 * most ? x[i] / length : 0;
    }
    q = transposed(t, s, m);
}

/* Lengths of the rows of b (s x n) once they are rotated orthogonal to each other: one-sided
 * Jacobi. */
static numbers jacobi(numbers b, int64_t s, int64_t n)
{
    for (int sweep = 0; sweep < 30; sweep++) {
        double worst = 0;
        for (int64_t i = 0; i < s; i++)
            for (int64_t j = i + 1; j < s; j++) {
                double aa = 0, bb = 0, ab = 0;
                double *x = &b[i * n], *y = &b[j * n];
                for (int64_t l = 0; l < n; l++) {
                    aa += x[l] * x[l];
                    bb += y[l] * y[l];
                    ab += x[l] * y[l];
                }
                if (ab == 0 || std::fabs(ab) <= 1e-15 * std::sqrt(aa * bb)) continue;
                worst = std::max(worst, std::fabs(ab) / std::sqrt(aa * bb));
                const double z = (bb - aa) / (2 * ab);
                const double t = (z < 0 ? -1 : 1) / (std::fabs(z) + std::sqrt(1 + z * z));
                const double co = 1 / std::sqrt(1 + t * t), si = co * t;
                for (int64_t l = 0; l < n; l++) {
                    const double p = x[l], q = y[l];
                    x[l] = co * p - si * q;
                    y[l] = si * p + co * q;
                }
            }
        if (worst < 1e-12) break;
    }
    numbers lengths;
    for (int64_t i = 0; i < s; i++) {
        double sum = 0;
        for (int64_t l = 0; l < n; l++)
            sum += b[i * n + l] * b[i * n + l];
        lengths.push_back(std::sqrt(sum));
    }
    std::sort(lengths.begin(), lengths.end(), std::greater<double>());
    return lengths;
}

static double norm(const numbers &a)
{
    double sum = 0;
    for (double x : a)
        sum += x * x;
    return std::sqrt(sum);
}

struct exact {
    numbers s;
    double residual;
};

/* The operator's first rows, transposed: cols x rows; without its factor, whose product with an
 * entry fp32 does not hold, and which changes nothing in what they span. */
static numbers entries_of(gnomon_descriptor d, int64_t rows, int64_t cols)
{
    d.scaling = GNOMON_UNSCALED;
    gnomon_operator *op = nullptr;
    std::vector<float> entries((size_t)(cols * rows));
    gnomon_matrix block = gnomon_matrix_colmajor(entries.data(), GNOMON_F32, rows, cols);
    if (gnomon_operator_create(gpu, &d, &op) != GNOMON_OK ||
        gnomon_operator_block(gpu, op, 0, 0, &block) != GNOMON_OK) {
        printf("operator: %s\n", gnomon_last_error(gpu));
        exit(1);
    }
    gnomon_operator_destroy(op);
    return numbers(entries.begin(), entries.end());
}

/* The least-squares solution B (s x n) of (Psi Q) B = Psi A; q has zeros for columns that depend on
 * others, and B then in their rows. */
static numbers solve_once(const numbers &a, const numbers &q, const gnomon_svd *svd, int64_t m,
                          int64_t n)
{
    const int64_t s = svd->columns, l = 2 * s + 1;
    gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
    d.kind = GNOMON_GAUSSIAN;
    d.seed = svd->descriptor.seed ^ UINT64_C(0x9e3779b97f4a7c15) ^ UINT64_C(0x2545f4914f6cdd1d);
    d.k = (int64_t)1 << 32;
    d.d = (int64_t)1 << 56;
    const numbers psi = entries_of(d, l, m);
    const numbers c = product(true, psi, q, l, m, s), w = product(true, psi, a, l, m, n);
    numbers u = c;
    orthonormalise(u, l, s);
    const numbers t = product(true, u, c, s, l, s);
    numbers b = product(true, u, w, s, l, n);
    for (int64_t i = s - 1; i >= 0; i--)
        for (int64_t j = 0; j < n; j++) {
            double x = b[i * n + j];
            for (int64_t k = i + 1; k < s; k++)
                x -= t[i * s + k] * b[k * n + j];
            b[i * n + j] = std::fabs(t[i * s + i]) > 0 ? x / t[i * s + i] : 0;
        }
    return b;
}

/* The algorithm in fp64 with the operator that the result names. */
static exact reference(const svd_case *c, const numbers &a, const gnomon_svd *svd)
{
    const int64_t m = c->m, n = c->n, s = svd->columns;
    const numbers omega = entries_of(svd->descriptor, s, n); /* n x s */
    numbers y = product(false, a, omega, m, n, s);
    if (one_pass) {
        orthonormalise(y, m, s);
        const numbers b = solve_once(a, y, svd, m, n);
        numbers rest = product(false, y, b, m, s, n);
        for (size_t i = 0; i < a.size(); i++)
            rest[i] = a[i] - rest[i];
        exact e = {jacobi(b, s, n), norm(rest)};
        double tail = 0; /* at most: Q B's remainder is not orthogonal to Q */
        for (int64_t i = svd->rank; i < s; i++)
            tail = std::hypot(tail, e.s[i]);
        e.residual += tail;
        return e;
    }
    for (int i = 0; i < c->power; i++) {
        orthonormalise(y, m, s);
        numbers z = product(true, a, y, n, m, s);
        orthonormalise(z, n, s);
        y = product(false, a, z, m, n, s);
    }
    orthonormalise(y, m, s);
    const numbers b = product(true, y, a, s, m, n);
    numbers rest = product(false, y, b, m, s, n);
    for (size_t i = 0; i < a.size(); i++)
        rest[i] = a[i] - rest[i];
    exact e = {jacobi(b, s, n), norm(rest)};
    for (int64_t i = svd->rank; i < s; i++)
        e.residual = std::hypot(e.residual, e.s[i]);
    return e;
}

/* ---- views ---- */

static void *moved(const void *data, size_t bytes, bool device)
{
    void *to = nullptr;
    if (device) {
        MUST(cudaMalloc(&to, bytes));
        MUST(cudaMemcpy(to, data, bytes, cudaMemcpyDefault));
        return to;
    }
    to = malloc(bytes);
    memcpy(to, data, bytes);
    return to;
}

static void drop(void *data, bool device)
{
    if (device)
        MUST(cudaFree(data));
    else
        free(data);
}

struct placed {
    void *block;
    gnomon_matrix m;
    bool device;
};

/* A in the case's type and layout; 'a' becomes what that type holds. */
static placed place(const svd_case *c, numbers &a)
{
    const int64_t gap = c->lie == ROW_GAPS || c->lie == COLUMN_GAPS ? 5 : 0;
    const bool by_rows = c->lie == ROWS || c->lie == ROW_GAPS || c->lie == BACKWARDS;
    const int64_t pitch = (by_rows ? c->n : c->m) + gap, lines = by_rows ? c->m : c->n;
    const size_t size = gnomon_dtype_size(c->dtype);
    std::vector<char> bytes((size_t)(pitch * lines) * size, (char)0xff);
    placed p = {nullptr, {}, c->device};
    p.m = by_rows ? gnomon_matrix_rowmajor(nullptr, c->dtype, c->m, c->n)
                  : gnomon_matrix_colmajor(nullptr, c->dtype, c->m, c->n);
    p.m.memory = c->device ? GNOMON_DEVICE_MEMORY : GNOMON_HOST;
    p.m.row_stride = by_rows ? pitch : 1;
    p.m.col_stride = by_rows ? 1 : pitch;
    size_t origin = 0;
    if (c->lie == BACKWARDS) {
        origin = (size_t)((c->m - 1) * pitch);
        p.m.row_stride = -pitch;
    }
    for (int64_t i = 0; i < c->m; i++)
        for (int64_t j = 0; j < c->n; j++) {
            double &x = a[i * c->n + j];
            char *at =
                &bytes[(size_t)((int64_t)origin + i * p.m.row_stride + j * p.m.col_stride) * size];
            if (c->dtype == GNOMON_F16) {
                const __half h = __float2half_rn((float)x);
                memcpy(at, &h, size);
                x = (double)__half2float(h);
            } else if (c->dtype == GNOMON_I8) {
                const int8_t v = (int8_t)std::lround(100 * x);
                memcpy(at, &v, size);
                x = (double)v;
            } else if (c->dtype == GNOMON_F64) {
                x = std::ldexp(x, c->exponent);
                memcpy(at, &x, size);
            } else {
                const float f = (float)std::ldexp(x, c->exponent);
                memcpy(at, &f, size);
                x = (double)f;
            }
        }
    p.block = moved(bytes.data(), bytes.size(), c->device);
    p.m.data = static_cast<char *>(p.block) + origin * size;
    return p;
}

/* ---- checks ---- */

static void wrong(const svd_case *c, const char *what, double value, double limit)
{
    printf("FAILED %s: %s is %.4g, at most %.4g\n", c->name, what, value, limit);
    failures++;
}

static void at_most(const svd_case *c, const char *what, double value, double limit)
{
    if (!(value <= limit)) wrong(c, what, value, limit);
}

/* |X X^T - I|, the largest element; x count x length. */
static double off_orthonormal(const numbers &x, int64_t count, int64_t length)
{
    double worst = 0;
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; j <= i; j++) {
            double dot = i == j ? -1 : 0;
            for (int64_t l = 0; l < length; l++)
                dot += x[i * length + l] * x[j * length + l];
            worst = std::max(worst, std::fabs(dot));
        }
    return worst;
}

static double spectral_norm(const numbers &e, int64_t m, int64_t n)
{
    numbers x((size_t)n, 1.0);
    double length = 0;
    for (int i = 0; i < 30; i++) {
        numbers y = product(false, e, x, m, n, 1);
        length = norm(y);
        if (length == 0) return 0;
        x = product(true, e, y, n, m, 1);
        const double size = norm(x);
        for (double &one : x)
            one /= size;
    }
    return length;
}

static numbers as_doubles(const gnomon_matrix *m)
{
    if (m->dtype == GNOMON_F64) {
        numbers d((size_t)(m->rows * m->cols));
        MUST(cudaMemcpy2D(d.data(), (size_t)m->cols * 8, m->data, (size_t)m->row_stride * 8,
                          (size_t)m->cols * 8, (size_t)m->rows, cudaMemcpyDefault));
        return d;
    }
    std::vector<float> f((size_t)(m->rows * m->cols));
    MUST(cudaMemcpy2D(f.data(), (size_t)m->cols * 4, m->data, (size_t)m->row_stride * 4,
                      (size_t)m->cols * 4, (size_t)m->rows, cudaMemcpyDefault));
    return numbers(f.begin(), f.end());
}

/* ---- rows that come piece by piece: never as many as are asked for ---- */

static double number_at(const gnomon_matrix *a, int64_t i, int64_t j)
{
    const int64_t at = i * a->row_stride + j * a->col_stride;
    return a->dtype == GNOMON_F64 ? static_cast<const double *>(a->data)[at]
                                  : (double)static_cast<const float *>(a->data)[at];
}

struct stream {
    const gnomon_matrix *a;
    int64_t row, fail_at; /* fails at that row, when not 0 */
    int rewinds;
};

static gnomon_status next_rows(void *user, const gnomon_matrix *dst, int64_t *got)
{
    stream *s = static_cast<stream *>(user);
    const int64_t rest = s->a->rows - s->row, most = 1 + s->row % 61;
    const int64_t rows = std::min(std::min(dst->rows, rest), most);
    if (s->fail_at > 0 && s->row >= s->fail_at) return GNOMON_ERROR_IO;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < s->a->cols; j++) {
            const int64_t to = i * dst->row_stride + j * dst->col_stride;
            const double x = number_at(s->a, s->row + i, j);
            if (dst->dtype == GNOMON_F64)
                static_cast<double *>(dst->data)[to] = x;
            else
                static_cast<float *>(dst->data)[to] = (float)x;
        }
    s->row += rows;
    *got = rows;
    return GNOMON_OK;
}

static gnomon_status rewind_rows(void *user)
{
    stream *s = static_cast<stream *>(user);
    s->row = 0;
    s->rewinds++;
    return GNOMON_OK;
}

static gnomon_svd_rows rows_of(stream *s)
{
    return {s, s->a->rows, s->a->cols, s->a->dtype, next_rows, one_pass ? nullptr : rewind_rows};
}

static double listed; /* the norm of a list's values: halves of a number count by themselves */

/* The nonzeros of a matrix of the host's as sparse rows, each from its end to its beginning, and
 * every seventh as two that add up. */
struct lists {
    std::vector<int64_t> offsets, indices;
    numbers values;
    std::vector<float> narrow;
    gnomon_csr csr;
};

static void make_lists(const gnomon_matrix *a, lists *l)
{
    l->offsets.push_back(11); /* they may begin anywhere */
    for (int64_t i = 0; i < a->rows; i++) {
        for (int64_t j = a->cols - 1; j >= 0; j--) {
            const double x = number_at(a, i, j);
            if (x == 0) continue;
            const bool two = l->values.size() % 7 == 0;
            l->indices.push_back(j);
            l->values.push_back(two ? x / 2 : x);
            if (!two) continue;
            l->indices.push_back(j);
            l->values.push_back(x / 2);
        }
        l->offsets.push_back(11 + (int64_t)l->values.size());
    }
    listed = 0;
    for (double x : l->values)
        listed = std::hypot(listed, x);
    l->narrow.assign(l->values.begin(), l->values.end());
    l->csr = {a->rows, a->cols, l->offsets.data(), l->indices.data(), l->narrow.data(), a->dtype};
    if (a->dtype == GNOMON_F64) l->csr.values = l->values.data();
}

static bool factor(const svd_case *c, const gnomon_matrix *a, const gnomon_svd_options *o,
                   gnomon_svd *svd)
{
    memset(svd, 0, sizeof *svd);
    svd->struct_size = sizeof *svd;
    stream s = {a, 0, 0, 0};
    const gnomon_svd_rows rows = rows_of(&s);
    lists l;
    if (sparse) make_lists(a, &l);
    const gnomon_status status = sparse      ? gnomon_svd_csr(gpu, &l.csr, o, svd)
                                 : streaming ? gnomon_svd_stream(gpu, &rows, o, svd)
                                             : gnomon_svd_dense(gpu, a, o, svd);
    if (status == GNOMON_OK) return true;
    printf("FAILED %s: %s\n", c->name, gnomon_last_error(gpu));
    failures++;
    return false;
}

static void check_vectors(const svd_case *c, const numbers &a, const gnomon_svd *svd)
{
    const int64_t m = c->m, n = c->n, k = svd->rank;
    const double size = norm(a), scale = std::ldexp(1.0, -c->exponent);
    const bool f64 = c->dtype == GNOMON_F64;
    const double off = f64 ? 1e-13 : 1e-6;
    const numbers u = as_doubles(&svd->u), vt = as_doubles(&svd->vt);
    at_most(c, "U off orthonormal", off_orthonormal(transposed(u, m, k), k, m), off);
    at_most(c, "V off orthonormal", off_orthonormal(vt, k, n), off);
    for (int64_t j = 0; j < k; j++) {
        double most = 0, value = 0;
        for (int64_t i = 0; i < n; i++)
            if (std::fabs(vt[j * n + i]) > most) {
                most = std::fabs(vt[j * n + i]);
                value = vt[j * n + i];
            }
        if (value < 0) wrong(c, "the sign of a row of Vt", value, 0);
        if (j > 0 && svd->s[j] > svd->s[j - 1]) wrong(c, "order", svd->s[j], svd->s[j - 1]);
    }
    numbers us = u;
    for (int64_t i = 0; i < m * k; i++)
        us[i] *= svd->s[i % k] * scale;
    numbers e = product(false, us, vt, m, k, n);
    for (size_t i = 0; i < e.size(); i++)
        e[i] = a[i] * scale - e[i];
    const double left = norm(e) / scale;
    numbers tame = a; /* whose fourth powers the reference can hold */
    for (double &one : tame)
        one *= scale;
    exact x = reference(c, tame, svd);
    x.residual /= scale;
    for (double &one : x.s)
        one /= scale;
    const double noise = (f64 ? 1e-13 : 3e-6) * size;
    printf("%-34s rank %3lld of %3lld, residual %.4e, exact %.4e, |A| %.2e, estimate %.2e, "
           "cholesky %lld, householder %lld\n",
           c->name, (long long)k, (long long)svd->columns, left, x.residual, size,
           svd->residual_estimate, (long long)svd->cholesky, (long long)svd->householder);
    at_most(c, "the residual", left, 1.01 * x.residual + noise);
    for (int64_t j = 0; j < k; j++)
        at_most(c, "a singular value's error", std::fabs(svd->s[j] - x.s[j]),
                f64 ? 1e-8 * x.s[j] + 1e-12 * x.s[0] : 1e-3 * x.s[j] + 3e-6 * x.s[0]);
    if (one_pass && svd->passes != 1) wrong(c, "passes", (double)svd->passes, 1);
    if (!sparse && !one_pass)
        at_most(c, "the measured residual's error", std::fabs(svd->residual - left),
                1e-3 * left + noise);
    at_most(c, "the residual over its bound", left, svd->residual_bound + noise);
    at_most(c, "the spectral norm over its bound", spectral_norm(e, m, n) / scale,
            svd->spectral_bound + noise);
    at_most(c, "the estimate over the residual", svd->residual_estimate, 4 * left + noise);
    at_most(c, "|A|'s error", std::fabs(svd->norm - (sparse && !centered ? listed : size)),
            1e-6 * size);
    if (c->tolerance > 0) {
        if (!svd->converged) wrong(c, "converged", 0, 1);
        at_most(c, "the residual beside the tolerance", left, c->tolerance * size * (1 + 1e-4));
    }
}

static bool same(const gnomon_svd *x, const gnomon_svd *y)
{
    return x->rank == y->rank && memcmp(x->s, y->s, (size_t)x->rank * sizeof *x->s) == 0 &&
           as_doubles(&x->u) == as_doubles(&y->u) && as_doubles(&x->vt) == as_doubles(&y->vt);
}

/* The means as they are, summed in long double; a becomes a matrix less them. */
static numbers take_means(numbers &a, int64_t m, int64_t n)
{
    numbers mean((size_t)n);
    for (int64_t j = 0; j < n; j++) {
        long double sum = 0;
        for (int64_t i = 0; i < m; i++)
            sum += (long double)a[i * n + j];
        mean[j] = (double)(sum / (long double)m);
        for (int64_t i = 0; i < m; i++)
            a[i * n + j] = (double)((long double)a[i * n + j] - sum / (long double)m);
    }
    return mean;
}

static void check_means(const svd_case *c, const numbers &mean, const gnomon_svd *svd)
{
    double worst = 0;
    if (!svd->centered || !svd->mean) return wrong(c, "centered", 0, 1);
    for (int64_t j = 0; j < c->n; j++)
        if (std::fabs(svd->mean[j] - mean[j]) > 0)
            worst = std::max(worst, std::fabs(svd->mean[j] - mean[j]) / std::fabs(mean[j]));
    at_most(c, "a mean's error", worst, 0x1p-52);
}

static void run(const svd_case *c)
{
    numbers a = make(c), mean;
    for (int64_t i = 0; sparse && i < c->m * c->n; i++)
        if (i / c->n != 5 && i % c->n != 7 && uniform() < 0.9) a[i] = 0;
    for (int64_t i = 0; centered && i < c->m * c->n; i++)
        if (!sparse || i % c->n == 7) a[i] += offset * (1 + (double)(i % c->n) / (double)c->n);
    placed p = place(c, a);
    if (centered) mean = take_means(a, c->m, c->n);
    gnomon_svd_options o = GNOMON_SVD_OPTIONS_INIT;
    gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
    gnomon_svd svd, again;
    const gnomon_dtype type = c->dtype == GNOMON_F64 ? GNOMON_F64 : GNOMON_F32;
    const size_t each = gnomon_dtype_size(type);
    gnomon_matrix u = gnomon_matrix_rowmajor(nullptr, type, c->m, c->rank + 3);
    gnomon_matrix vt = gnomon_matrix_rowmajor(nullptr, type, c->rank, c->n);
    d.kind = c->kind;
    d.precision = c->precision;
    d.seed = state;
    o.rank = c->rank;
    o.oversample = c->over;
    o.power = c->power;
    o.tolerance = c->tolerance;
    o.descriptor = &d;
    o.measure = !sparse && !one_pass;
    o.single_pass = one_pass;
    o.center = centered;
    if (c->tolerance > 0) o.block = 16;
    if (c->given) {
        u.memory = vt.memory = GNOMON_DEVICE_MEMORY;
        MUST(cudaMalloc(&u.data, (size_t)(u.rows * u.cols) * each));
        MUST(cudaMalloc(&vt.data, (size_t)(vt.rows * vt.cols) * each));
        MUST(cudaMemset(u.data, 0xff, (size_t)(u.rows * u.cols) * each));
        MUST(cudaMemset(vt.data, 0xff, (size_t)(vt.rows * vt.cols) * each));
        o.u = &u;
        o.vt = &vt;
    }
    if (factor(c, &p.m, &o, &svd)) {
        if (gnomon_context_worked_on(gpu) != GNOMON_DEVICE_PLUGIN) wrong(c, "the device", 0, 1);
        if (centered) check_means(c, mean, &svd);
        if (c->what != ZERO) {
            check_vectors(c, a, &svd);
        } else {
            const numbers left = as_doubles(&svd.u);
            at_most(c, "the largest singular value", svd.s[0], 0);
            at_most(c, "U off orthonormal",
                    off_orthonormal(transposed(left, c->m, c->rank), c->rank, c->m), 1e-6);
        }
        o.u = o.vt = nullptr;
        if (factor(c, &p.m, &o, &again)) {
            if (!same(&svd, &again)) wrong(c, "bits of a second run that differ", 1, 0);
            gnomon_svd_free(gpu, &again);
        }
    }
    gnomon_svd_free(gpu, &svd);
    if (c->given) {
        MUST(cudaFree(u.data));
        MUST(cudaFree(vt.data));
    }
    drop(p.block, p.device);
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
    std::vector<float> a(60 * 40, 1.0f);
    gnomon_matrix m = gnomon_matrix_rowmajor(a.data(), GNOMON_F32, 60, 40);
    gnomon_svd_options o = GNOMON_SVD_OPTIONS_INIT;
    gnomon_svd svd = {};
    svd.struct_size = sizeof svd;
    o.rank = 5;
    a[7 * 40 + 3] = NAN;
    refused("NaN", gnomon_svd_dense(gpu, &m, &o, &svd), GNOMON_ERROR_NONFINITE, "row 7, column 3");
    a[7 * 40 + 3] = -INFINITY;
    refused("infinity", gnomon_svd_dense(gpu, &m, &o, &svd), GNOMON_ERROR_NONFINITE,
            "row 7, column 3");
    a[7 * 40 + 3] = 1;
    o.rank = 41;
    refused("rank", gnomon_svd_dense(gpu, &m, &o, &svd), GNOMON_ERROR_ARGUMENT, "rank is 41");
    o.rank = 5;
    o.dtype = GNOMON_F64;
    a[7 * 40 + 3] = NAN;
    refused("NaN in fp64", gnomon_svd_dense(gpu, &m, &o, &svd), GNOMON_ERROR_NONFINITE,
            "row 7, column 3");
    a[7 * 40 + 3] = 1;
    o.dtype = GNOMON_F32;
    o.single_pass = 1;
    a[31 * 40 + 5] = NAN;
    refused("NaN, one pass", gnomon_svd_dense(gpu, &m, &o, &svd), GNOMON_ERROR_NONFINITE,
            "row 31, column 5");
    a[31 * 40 + 5] = 1;
    o.single_pass = 0;
    lists l;
    make_lists(&m, &l);
    l.narrow[l.narrow.size() - 3] = NAN; /* the last row's third from its beginning, or its half */
    refused("NaN in sparse rows", gnomon_svd_csr(gpu, &l.csr, &o, &svd), GNOMON_ERROR_NONFINITE,
            "row 59, column 2");
    o.dtype = GNOMON_F64;
    refused("NaN in sparse rows, fp64", gnomon_svd_csr(gpu, &l.csr, &o, &svd),
            GNOMON_ERROR_NONFINITE, "row 59, column 2");
    o.dtype = GNOMON_F32;
    o.measure = 1;
    refused("measuring sparse rows", gnomon_svd_csr(gpu, &l.csr, &o, &svd),
            GNOMON_ERROR_UNSUPPORTED, "measure");
    o.measure = 0;
    /* a tolerance that rounding does not allow: the best there is */
    for (float &x : a)
        x = (float)normal();
    o.tolerance = 1e-9;
    o.rank = 0;
    if (gnomon_svd_dense(gpu, &m, &o, &svd) != GNOMON_OK || svd.converged) {
        printf("FAILED tolerance out of reach: %s\n", gnomon_last_error(gpu));
        failures++;
    }
    gnomon_svd_free(gpu, &svd);
}

/* Rows that fail, end too early, or can't be had again. */
static void check_streams(void)
{
    std::vector<float> a(700 * 40);
    for (float &x : a)
        x = (float)normal();
    const gnomon_matrix m = gnomon_matrix_rowmajor(a.data(), GNOMON_F32, 700, 40);
    gnomon_svd_options o = GNOMON_SVD_OPTIONS_INIT;
    gnomon_svd svd = {};
    svd.struct_size = sizeof svd;
    o.rank = 5;
    stream s = {&m, 0, 300, 0};
    gnomon_svd_rows rows = rows_of(&s);
    refused("a stream that fails", gnomon_svd_stream(gpu, &rows, &o, &svd), GNOMON_ERROR_IO, "");
    s = {&m, 0, 0, 0};
    rows.rows = 750;
    refused("a stream that ends early", gnomon_svd_stream(gpu, &rows, &o, &svd), GNOMON_ERROR_SHAPE,
            "700 rows in all; 750 were due");
    s = {&m, 0, 0, 0};
    rows.rows = -1;
    refused("a stream of unknown length", gnomon_svd_stream(gpu, &rows, &o, &svd),
            GNOMON_ERROR_DEVICE, "number is not known");
    s = {&m, 0, 0, 0};
    rows.rows = 700;
    rows.rewind = nullptr;
    refused("a stream that can't be had again", gnomon_svd_stream(gpu, &rows, &o, &svd),
            GNOMON_ERROR_DEVICE, "without single_pass");
    rows.rewind = rewind_rows;
    s = {&m, 0, 0, 0};
    a[651 * 40 + 39] = NAN;
    refused("NaN in a stream", gnomon_svd_stream(gpu, &rows, &o, &svd), GNOMON_ERROR_NONFINITE,
            "row 651, column 39");
    s = {&m, 0, 0, 0};
    o.single_pass = 1;
    refused("NaN in a stream that is read once", gnomon_svd_stream(gpu, &rows, &o, &svd),
            GNOMON_ERROR_NONFINITE, "row 651, column 39");
}

/* fp64 rows whose mean is 10^6 beside a spread of 1, in single precision: from the host, in the
 * GPU's memory, from a stream and block by block the means have the same bits and the values are
 * those of the rows less them. */
static void check_far_means(void)
{
    enum { M = 3000, N = 60 };
    numbers a((size_t)(M * N)), square((size_t)(N * N), 0.0);
    for (int64_t i = 0; i < M * N; i++)
        a[i] = 1e6 + normal() * std::pow(0.7, (double)(i % N));
    numbers copy = a;
    const numbers mean = take_means(copy, M, N);
    square = product(true, copy, copy, N, M, N);
    const numbers squares = jacobi(square, N, N);
    gnomon_matrix m = gnomon_matrix_rowmajor(a.data(), GNOMON_F64, M, N);
    gnomon_matrix there = m;
    there.memory = GNOMON_DEVICE_MEMORY;
    there.data = moved(a.data(), a.size() * sizeof(double), true);
    gnomon_svd_options o = GNOMON_SVD_OPTIONS_INIT;
    o.rank = 8;
    o.dtype = GNOMON_F32;
    o.center = 1;
    numbers first;
    for (int way = 0; way < 3; way++) {
        stream s = {&m, 0, 0, 0};
        const gnomon_svd_rows rows = rows_of(&s);
        gnomon_svd svd = {};
        svd.struct_size = sizeof svd;
        const gnomon_status status = way == 2 ? gnomon_svd_stream(gpu, &rows, &o, &svd)
                                              : gnomon_svd_dense(gpu, way ? &there : &m, &o, &svd);
        bool good = status == GNOMON_OK && svd.u.dtype == GNOMON_F32 &&
                    gnomon_context_worked_on(gpu) == GNOMON_DEVICE_PLUGIN && svd.mean;
        if (good && way == 0) first.assign(svd.mean, svd.mean + N);
        good = good && memcmp(svd.mean, first.data(), N * sizeof(double)) == 0;
        for (int64_t j = 0; good && j < N; j++)
            good = std::fabs(svd.mean[j] - mean[j]) <= 0x1p-52 * mean[j];
        for (int64_t j = 0; good && j < o.rank; j++)
            good = std::fabs(svd.s[j] - std::sqrt(squares[j])) <= 2e-3 * std::sqrt(squares[0]);
        if (!good) {
            printf("FAILED far means, way %d: %s\n", way, gnomon_last_error(gpu));
            failures++;
        }
        gnomon_svd_free(gpu, &svd);
    }
    drop(there.data, true);
}

/* What is refused, and what the CPU has in its place. */
static void check_centered_refusals(void)
{
    std::vector<float> a(300 * 40);
    for (size_t i = 0; i < a.size(); i++)
        a[i] = 1000 + (float)normal();
    const gnomon_matrix m = gnomon_matrix_rowmajor(a.data(), GNOMON_F32, 300, 40);
    gnomon_svd_options o = GNOMON_SVD_OPTIONS_INIT;
    gnomon_svd svd = {};
    svd.struct_size = sizeof svd;
    o.rank = 5;
    o.center = 1;
    lists l;
    make_lists(&m, &l);
    refused("sparse rows far from zero", gnomon_svd_csr(gpu, &l.csr, &o, &svd), GNOMON_ERROR_DEVICE,
            "takes sums in fp64");
    stream s = {&m, 0, 0, 0};
    gnomon_svd_rows rows = rows_of(&s);
    o.single_pass = 1;
    refused("a stream less its mean that is read once", gnomon_svd_stream(gpu, &rows, &o, &svd),
            GNOMON_ERROR_DEVICE, "factored on the CPU");
    o.single_pass = 0;
    a[7 * 40 + 3] = NAN;
    refused("NaN less a mean", gnomon_svd_dense(gpu, &m, &o, &svd), GNOMON_ERROR_NONFINITE,
            "row 7, column 3");
    gnomon_matrix there = m;
    there.memory = GNOMON_DEVICE_MEMORY;
    there.data = moved(a.data(), a.size() * sizeof(float), true);
    refused("NaN less a mean, there", gnomon_svd_dense(gpu, &there, &o, &svd),
            GNOMON_ERROR_NONFINITE, "row 7, column 3");
    drop(there.data, true);
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
    const gnomon_dtype P32 = GNOMON_F32, P16 = GNOMON_F16;
    const svd_case cases[] = {
        {"linear", 300, 200, 20, LINEAR, 0, ROWS, true, true, F, G, P32, 0, 0, 10},
        {"linear, fp16 entries", 300, 200, 20, LINEAR, 0, ROWS, true, true, F, G, P16, 0, 0, 10},
        {"linear, 2 iterations", 300, 200, 20, LINEAR, 2, ROWS, true, true, F, G, P32, 0, 0, 10},
        {"exponential", 257, 401, 33, EXPONENTIAL, 1, ROWS, true, false, F, G, P32, 0, 0, 10},
        {"exponential, from the host", 601, 129, 40, EXPONENTIAL, 2, ROWS, false, false, F, G, P32,
         0, 0, 7},
        {"polynomial", 300, 300, 24, POLYNOMIAL, 0, ROWS, true, true, F, G, P32, 0, 0, 10},
        {"polynomial, 2 iterations", 300, 300, 24, POLYNOMIAL, 2, ROWS, true, true, F, G, P16, 0, 0,
         10},
        {"Cauchy", 400, 333, 30, CAUCHY, 1, ROWS, true, true, F, G, P32, 0, 0, 10},
        {"step, columns adjacent", 350, 280, 17, STEP, 1, COLUMNS, true, true, F, G, P32, 0, 0, 9},
        {"columns adjacent, host", 350, 281, 17, LINEAR, 1, COLUMNS, false, false, F, G, P32, 0, 0,
         9},
        {"rows with gaps", 123, 457, 21, LINEAR, 1, ROW_GAPS, true, true, F, G, P16, 0, 0, 3},
        {"rows with gaps, host", 123, 457, 21, LINEAR, 1, ROW_GAPS, false, true, F, G, P32, 0, 0,
         3},
        {"columns with gaps", 222, 111, 11, STEP, 2, COLUMN_GAPS, true, false, F, G, P32, 0, 0, 5},
        {"backwards", 201, 199, 13, LINEAR, 1, BACKWARDS, true, true, F, G, P32, 0, 0, 5},
        {"backwards, host", 201, 199, 13, LINEAR, 1, BACKWARDS, false, true, F, G, P32, 0, 0, 5},
        {"rank deficient", 280, 240, 40, DEFICIENT, 0, ROWS, true, true, F, G, P32, 0, 0, 10},
        {"rank deficient, 2 iterations", 280, 240, 40, DEFICIENT, 2, ROWS, true, true, F, G, P32, 0,
         0, 10},
        {"zero", 150, 90, 8, ZERO, 1, ROWS, true, true, F, G, P32, 0, 0, 4},
        {"huge", 260, 180, 15, LINEAR, 1, ROWS, true, true, F, G, P32, 120, 0, 10},
        {"huge, host", 260, 180, 15, LINEAR, 1, ROWS, false, true, F, G, P16, 120, 0, 10},
        {"tiny", 260, 180, 15, LINEAR, 1, ROWS, true, true, F, G, P32, -110, 0, 10},
        {"all columns", 90, 70, 70, EXPONENTIAL, 1, ROWS, true, true, F, G, P32, 0, 0, 10},
        {"many columns", 300, 290, 270, EXPONENTIAL, 0, ROWS, true, true, F, G, P32, 0, 0, 10},
        {"many columns, step", 230, 210, 180, STEP, 1, ROWS, true, true, F, G, P32, 0, 0, 10},
        {"one column", 130, 1, 1, LINEAR, 1, ROWS, true, true, F, G, P32, 0, 0, 10},
        {"one row", 1, 130, 1, LINEAR, 1, ROWS, true, true, F, G, P32, 0, 0, 10},
        {"halves", 256, 192, 16, LINEAR, 1, ROWS, true, true, GNOMON_F16, G, P32, 0, 0, 10},
        {"bytes, host", 256, 191, 16, LINEAR, 1, COLUMNS, false, true, GNOMON_I8, G, P32, 0, 0, 10},
        {"rademacher", 300, 200, 20, LINEAR, 1, ROWS, true, true, F, GNOMON_RADEMACHER,
         (gnomon_dtype)0, 0, 0, 10},
        {"achlioptas", 300, 200, 20, LINEAR, 1, ROWS, true, true, F, GNOMON_ACHLIOPTAS,
         (gnomon_dtype)0, 0, 0, 10},
        {"sjlt", 300, 200, 20, LINEAR, 1, ROWS, true, true, F, GNOMON_SJLT, (gnomon_dtype)0, 0, 0,
         10},
        /* the singular vectors lie near the axes, whose columns few sampled rows can't tell apart
         */
        {"srht", 300, 200, 20, LINEAR, 2, ROWS, false, false, F, GNOMON_SRHT, (gnomon_dtype)0, 0, 0,
         60},
        {"tolerance 0.1", 300, 200, 150, EXPONENTIAL, 1, ROWS, true, false, F, G, P32, 0, 0.1, 10},
        {"tolerance 1e-3", 300, 260, 200, EXPONENTIAL, 2, ROWS, false, false, F, G, P32, 0, 0.04,
         10},
    };
    for (const svd_case &c : cases)
        run(&c);
    check_refusals();
    check_streams();
    const svd_case apart[] = {
        {"apart", 1900, 600, 24, LINEAR, 1, ROWS, false, false, F, G, P32, 0, 0, 10},
        {"apart, fp16 entries, given memory", 1900, 601, 24, EXPONENTIAL, 2, ROWS, false, true, F,
         G, P16, 0, 0, 10},
        {"apart, columns adjacent", 1900, 600, 24, STEP, 1, COLUMNS, false, false, F, G, P32, 0, 0,
         10},
        {"apart, rows with gaps", 1901, 600, 24, LINEAR, 0, ROW_GAPS, false, false, F, G, P16, 0, 0,
         10},
        {"apart, rank deficient", 1900, 600, 24, DEFICIENT, 1, ROWS, false, false, F, G, P32, 0, 0,
         10},
        {"apart, huge", 1900, 600, 24, LINEAR, 1, ROWS, false, false, F, G, P32, 120, 0, 10},
        {"apart, halves", 1900, 600, 24, LINEAR, 1, ROWS, false, false, GNOMON_F16, G, P32, 0, 0,
         10},
        {"apart, sjlt", 1900, 600, 24, LINEAR, 1, ROWS, false, false, F, GNOMON_SJLT,
         (gnomon_dtype)0, 0, 0, 10},
        {"apart, tolerance 0.1", 1900, 600, 60, EXPONENTIAL, 1, ROWS, false, false, F, G, P32, 0,
         0.1, 10},
        {"apart, fp64", 1900, 600, 24, LINEAR, 1, ROWS, false, false, GNOMON_F64, G, P32, 0, 0, 10},
        {"apart, fp64, columns adjacent, huge", 1900, 600, 24, STEP, 1, COLUMNS, false, false,
         GNOMON_F64, G, P16, 400, 0, 10},
        {"apart, fp64, sjlt", 1900, 600, 24, LINEAR, 0, ROW_GAPS, false, true, GNOMON_F64,
         GNOMON_SJLT, (gnomon_dtype)0, 0, 0, 10},
        {"apart, fp64, tolerance 0.1", 1900, 600, 60, EXPONENTIAL, 1, ROWS, false, false,
         GNOMON_F64, G, P32, 0, 0.1, 10},
    };
    streaming = true;
    for (const svd_case &c : apart)
        if ((c.dtype == F || c.dtype == GNOMON_F64) && c.lie != COLUMNS) run(&c);
    streaming = false;
    const gnomon_dtype D = GNOMON_F64;
    const svd_case thin[] = {
        {"sparse", 300, 200, 20, LINEAR, 0, ROWS, false, true, F, G, P32, 0, 0, 10},
        {"sparse, 2 iterations", 300, 200, 20, EXPONENTIAL, 2, ROWS, false, false, F, G, P16, 0, 0,
         10},
        {"sparse, odd columns", 300, 201, 21, LINEAR, 1, ROWS, false, true, F, G, P16, 0, 0, 8},
        {"sparse, huge", 260, 180, 15, LINEAR, 1, ROWS, false, true, F, G, P32, 100, 0, 10},
        {"sparse, a long column", 9000, 40, 10, LINEAR, 1, ROWS, false, false, F, G, P32, 0, 0, 6},
        {"sparse, a long row", 40, 9000, 10, LINEAR, 1, ROWS, false, false, F, GNOMON_RADEMACHER,
         (gnomon_dtype)0, 0, 0, 5},
        {"sparse, zero", 150, 90, 8, ZERO, 1, ROWS, false, true, F, G, P32, 0, 0, 4},
        {"sparse, sjlt", 300, 200, 20, LINEAR, 1, ROWS, false, true, F, GNOMON_SJLT,
         (gnomon_dtype)0, 0, 0, 10},
        {"sparse, srht, huge", 300, 200, 21, LINEAR, 0, ROWS, false, false, F, GNOMON_SRHT,
         (gnomon_dtype)0, 100, 0, 10},
        {"sparse, tolerance 0.5", 300, 200, 200, LINEAR, 1, ROWS, false, false, F, G, P32, 0, 0.5,
         10},
        {"sparse, tolerance 0.5, very sparse", 300, 200, 200, LINEAR, 1, ROWS, false, false, F,
         GNOMON_VERY_SPARSE, (gnomon_dtype)0, 0, 0.5, 10},
        {"sparse, fp64", 300, 200, 20, LINEAR, 1, ROWS, false, true, D, G, P32, 0, 0, 10},
        {"sparse, fp64, odd columns", 300, 201, 21, EXPONENTIAL, 2, ROWS, false, false, D, G, P16,
         0, 0, 8},
        {"sparse, fp64, huge", 260, 180, 15, LINEAR, 1, ROWS, false, true, D, G, P32, 400, 0, 10},
        {"sparse, fp64, tiny", 260, 180, 15, LINEAR, 0, ROWS, false, true, D, G, P32, -400, 0, 10},
        {"sparse, fp64, a long column", 9000, 40, 10, LINEAR, 1, ROWS, false, false, D, G, P32, 0,
         0, 6},
        {"sparse, fp64, sjlt", 300, 200, 20, LINEAR, 1, ROWS, false, false, D, GNOMON_SJLT,
         (gnomon_dtype)0, 0, 0, 10},
        {"sparse, fp64, srht", 300, 200, 20, LINEAR, 1, ROWS, false, true, D, GNOMON_SRHT,
         (gnomon_dtype)0, 0, 0, 10},
        {"sparse, fp64, zero", 150, 90, 8, ZERO, 1, ROWS, false, true, D, G, P32, 0, 0, 4},
        {"sparse, fp64, tolerance 0.5", 300, 200, 200, LINEAR, 1, ROWS, false, false, D, G, P32, 0,
         0.5, 10},
    };
    const svd_case single_pass_cases[] = {
        {"once", 300, 200, 20, LINEAR, 0, ROWS, true, true, F, G, P32, 0, 0, 21},
        {"once, from the host, exponential", 601, 129, 30, EXPONENTIAL, 0, ROWS, false, false, F, G,
         P16, 0, 0, 31},
        {"once, columns adjacent", 350, 281, 17, STEP, 0, COLUMNS, true, true, F, G, P32, 0, 0, 18},
        {"once, backwards", 201, 199, 13, LINEAR, 0, BACKWARDS, true, true, F, G, P32, 0, 0, 14},
        {"once, rank deficient", 280, 240, 20, DEFICIENT, 0, ROWS, true, true, F, G, P32, 0, 0, 21},
        {"once, huge", 260, 180, 15, LINEAR, 0, ROWS, false, true, F, G, P32, 120, 0, 16},
        {"once, tiny", 260, 180, 15, LINEAR, 0, ROWS, false, true, F, G, P32, -110, 0, 16},
        {"once, zero", 150, 90, 8, ZERO, 0, ROWS, true, true, F, G, P32, 0, 0, 4},
        {"once, one column", 130, 1, 1, LINEAR, 0, ROWS, true, true, F, G, P32, 0, 0, 2},
        {"once, sjlt", 300, 200, 20, LINEAR, 0, ROWS, true, true, F, GNOMON_SJLT, (gnomon_dtype)0,
         0, 0, 21},
        {"once, rademacher", 300, 200, 20, LINEAR, 0, ROWS, false, false, F, GNOMON_RADEMACHER,
         (gnomon_dtype)0, 0, 0, 21},
        {"once, fp64", 300, 200, 20, LINEAR, 0, ROWS, true, true, D, G, P32, 0, 0, 21},
        {"once, fp64, columns adjacent", 350, 281, 17, EXPONENTIAL, 0, COLUMNS, false, false, D, G,
         P16, 0, 0, 18},
        {"once, fp64, rank deficient", 280, 240, 20, DEFICIENT, 0, ROWS, true, true, D, G, P32, 0,
         0, 21},
        {"once, fp64, huge", 260, 180, 15, LINEAR, 0, ROWS, false, true, D, G, P32, 400, 0, 16},
        {"once, fp64, tiny", 260, 180, 15, LINEAR, 0, ROWS, false, true, D, G, P32, -400, 0, 16},
        {"once, fp64, zero", 150, 90, 8, ZERO, 0, ROWS, false, true, D, G, P32, 0, 0, 4},
    };
    const auto factor_all = [](const svd_case *from, size_t count, bool lists) {
        sparse = lists;
        for (size_t i = 0; i < count; i++)
            if (!lists || (from[i].lie == ROWS && !from[i].device)) run(&from[i]);
        sparse = false;
    };
    factor_all(thin, sizeof thin / sizeof *thin, true);
    one_pass = true;
    factor_all(single_pass_cases, sizeof single_pass_cases / sizeof *single_pass_cases, false);
    factor_all(single_pass_cases, sizeof single_pass_cases / sizeof *single_pass_cases, true);
    streaming = true;
    for (const svd_case &c : single_pass_cases)
        if (c.lie == ROWS && !c.device) run(&c);
    one_pass = streaming = false;
    const svd_case f64[] = {
        {"fp64", 300, 200, 20, LINEAR, 0, ROWS, true, true, D, G, P32, 0, 0, 10},
        {"fp64, 2 iterations, host", 257, 401, 33, EXPONENTIAL, 2, ROWS, false, false, D, G, P16, 0,
         0, 10},
        {"fp64, columns adjacent", 350, 281, 17, STEP, 1, COLUMNS, true, true, D, G, P32, 0, 0, 9},
        {"fp64, rows with gaps", 123, 457, 21, LINEAR, 1, ROW_GAPS, false, true, D, G, P32, 0, 0,
         3},
        {"fp64, backwards", 201, 199, 13, LINEAR, 1, BACKWARDS, true, true, D, G, P32, 0, 0, 5},
        {"fp64, polynomial", 300, 300, 24, POLYNOMIAL, 1, ROWS, true, true, D, G, P32, 0, 0, 10},
        {"fp64, rank deficient", 280, 240, 40, DEFICIENT, 1, ROWS, true, true, D, G, P32, 0, 0, 10},
        {"fp64, zero", 150, 90, 8, ZERO, 1, ROWS, true, true, D, G, P32, 0, 0, 4},
        {"fp64, huge", 260, 180, 15, LINEAR, 1, ROWS, true, true, D, G, P32, 400, 0, 10},
        {"fp64, tiny", 260, 180, 15, LINEAR, 1, ROWS, false, true, D, G, P32, -400, 0, 10},
        {"fp64, all columns", 200, 170, 170, EXPONENTIAL, 1, ROWS, true, true, D, G, P32, 0, 0, 10},
        {"fp64, thirteen decades", 200, 170, 150, DECADES, 1, ROWS, true, true, D, G, P32, 0, 0, 0},
        {"fp64, thirteen decades, all columns", 200, 180, 180, DECADES, 0, ROWS, true, true, D, G,
         P32, 0, 0, 0},
        {"fp64, groups", 200, 170, 120, GROUPS, 2, ROWS, true, true, D, G, P32, 0, 0, 10},
        {"fp64, groups, all columns", 190, 180, 180, GROUPS, 0, ROWS, true, true, D, G, P32, 0, 0,
         0},
        {"fp64, one column", 130, 1, 1, LINEAR, 1, ROWS, true, true, D, G, P32, 0, 0, 10},
        {"fp64, one row", 1, 130, 1, LINEAR, 1, ROWS, true, true, D, G, P32, 0, 0, 10},
        {"fp64, sjlt", 300, 200, 20, LINEAR, 1, ROWS, true, true, D, GNOMON_SJLT, (gnomon_dtype)0,
         0, 0, 10},
        {"fp64, tolerance 0.1", 300, 200, 150, EXPONENTIAL, 1, ROWS, true, false, D, G, P32, 0, 0.1,
         10},
    };
    for (const svd_case &c : f64)
        run(&c);
    const struct {
        double offset;
        svd_case c;
    } less_mean[] = {
        {3, {"centred", 300, 200, 20, LINEAR, 1, ROWS, true, true, F, G, P32, 0, 0, 10}},
        {1000,
         {"centred, far, 2 iterations", 300, 200, 20, EXPONENTIAL, 2, ROWS, true, false, F, G, P16,
          0, 0, 10}},
        {1000,
         {"centred, far, host", 300, 200, 20, EXPONENTIAL, 2, ROWS, false, true, F, G, P32, 0, 0,
          10}},
        {1000,
         {"centred, many rows", 9000, 60, 12, EXPONENTIAL, 1, ROWS, true, false, F, G, P32, 0, 0,
          10}},
        {1000,
         {"centred, many rows, host", 9000, 60, 12, EXPONENTIAL, 1, ROWS, false, false, F, G, P32,
          0, 0, 10}},
        {3,
         {"centred, columns adjacent", 350, 281, 17, STEP, 1, COLUMNS, true, true, F, G, P32, 0, 0,
          9}},
        {3,
         {"centred, columns adjacent, host", 350, 281, 17, STEP, 1, COLUMNS, false, false, F, G,
          P32, 0, 0, 9}},
        {3,
         {"centred, rows with gaps", 323, 157, 21, LINEAR, 1, ROW_GAPS, true, true, F, G, P16, 0, 0,
          3}},
        {3,
         {"centred, columns with gaps, host", 222, 111, 11, STEP, 2, COLUMN_GAPS, false, false, F,
          G, P32, 0, 0, 5}},
        {3,
         {"centred, backwards", 201, 199, 13, LINEAR, 1, BACKWARDS, true, true, F, G, P32, 0, 0,
          5}},
        {3, {"centred, equal rows", 150, 90, 8, ZERO, 1, ROWS, true, true, F, G, P32, 0, 0, 4}},
        {3,
         {"centred, equal rows, host", 150, 90, 8, ZERO, 1, ROWS, false, true, F, G, P32, 0, 0, 4}},
        {3, {"centred, one row", 1, 130, 1, ZERO, 1, ROWS, true, true, F, G, P32, 0, 0, 0}},
        {3, {"centred, huge", 260, 180, 15, LINEAR, 1, ROWS, true, true, F, G, P32, 120, 0, 10}},
        {3,
         {"centred, huge, host", 260, 180, 15, LINEAR, 1, ROWS, false, true, F, G, P16, 120, 0,
          10}},
        {3, {"centred, tiny", 260, 180, 15, LINEAR, 1, ROWS, true, true, F, G, P32, -110, 0, 10}},
        {2,
         {"centred, halves", 256, 192, 16, LINEAR, 1, ROWS, true, true, GNOMON_F16, G, P32, 0, 0,
          10}},
        {0.4,
         {"centred, bytes, host", 256, 191, 16, LINEAR, 1, COLUMNS, false, true, GNOMON_I8, G, P32,
          0, 0, 10}},
        {3,
         {"centred, sjlt", 300, 200, 20, LINEAR, 1, ROWS, true, true, F, GNOMON_SJLT,
          (gnomon_dtype)0, 0, 0, 10}},
        {30,
         {"centred, tolerance 0.1", 300, 200, 150, EXPONENTIAL, 1, ROWS, true, false, F, G, P32, 0,
          0.1, 10}},
        {1e6,
         {"centred, fp64", 300, 200, 20, EXPONENTIAL, 1, ROWS, true, true, D, G, P32, 0, 0, 10}},
        {1e6,
         {"centred, fp64, columns adjacent, host", 300, 201, 20, EXPONENTIAL, 2, COLUMNS, false,
          true, D, G, P16, 0, 0, 10}},
        {3,
         {"centred, fp64, huge", 260, 180, 15, LINEAR, 1, ROWS, true, true, D, G, P32, 400, 0, 10}},
        {3,
         {"centred, fp64, tiny, host", 260, 180, 15, LINEAR, 1, ROWS, false, true, D, G, P32, -400,
          0, 10}},
        {1e3,
         {"centred, fp64, tolerance 0.1", 300, 200, 150, EXPONENTIAL, 1, ROWS, false, false, D, G,
          P32, 0, 0.1, 10}},
    };
    const struct {
        double offset;
        svd_case c;
    } thin_less_mean[] = {
        {0.03,
         {"centred, sparse", 300, 200, 20, LINEAR, 0, ROWS, false, true, F, G, P32, 0, 0, 10}},
        {0.03,
         {"centred, sparse, 2 iterations", 300, 200, 20, EXPONENTIAL, 2, ROWS, false, false, F, G,
          P16, 0, 0, 10}},
        {0.03,
         {"centred, sparse, odd columns", 300, 201, 21, LINEAR, 1, ROWS, false, true, F, G, P16, 0,
          0, 8}},
        {0.03,
         {"centred, sparse, huge", 260, 180, 15, LINEAR, 1, ROWS, false, true, F, G, P32, 100, 0,
          10}},
        {0.005,
         {"centred, sparse, a long column", 9000, 40, 10, LINEAR, 1, ROWS, false, false, F, G, P32,
          0, 0, 6}},
        {0.03,
         {"centred, sparse, sjlt", 300, 200, 20, LINEAR, 1, ROWS, false, true, F, GNOMON_SJLT,
          (gnomon_dtype)0, 0, 0, 10}},
        {0.03,
         {"centred, sparse, tolerance 0.5", 300, 200, 200, LINEAR, 1, ROWS, false, false, F, G, P32,
          0, 0.5, 10}},
        {100,
         {"centred, sparse, fp64, far", 300, 200, 20, LINEAR, 1, ROWS, false, true, D, G, P32, 0, 0,
          10}},
        {3,
         {"centred, sparse, fp64, huge", 260, 180, 15, LINEAR, 1, ROWS, false, true, D, G, P32, 400,
          0, 10}},
        {3,
         {"centred, sparse, fp64, a long column", 9000, 40, 10, LINEAR, 1, ROWS, false, false, D, G,
          P32, 0, 0, 6}},
        {1,
         {"centred, sparse, fp64, tolerance 0.5", 300, 200, 200, LINEAR, 1, ROWS, false, false, D,
          G, P32, 0, 0.5, 10}},
    };
    const auto less_means = [&](bool fitting) {
        centered = true;
        for (const auto &with : less_mean) {
            offset = with.offset;
            /* few columns and rows fit where little memory does */
            if (!fitting && (with.c.tolerance > 0 || with.c.m > 2000)) continue;
            run(&with.c);
            streaming = true;
            if (!with.c.device && with.c.lie == ROWS && (with.c.dtype == F || with.c.dtype == D))
                run(&with.c);
            streaming = false;
            one_pass = true;
            svd_case once = with.c;
            once.power = 0;
            once.over = once.rank < 60 ? once.rank + 1 : 0;
            if (fitting && with.c.tolerance == 0 && with.c.what != EXPONENTIAL) run(&once);
            one_pass = false;
        }
        sparse = true;
        for (const auto &with : thin_less_mean) {
            offset = with.offset;
            if (fitting) run(&with.c);
        }
        sparse = centered = false;
    };
    less_means(true);
    check_far_means();
    check_centered_refusals();
    gnomon_context_destroy(gpu);
    setenv("GNOMON_CUDA_MEMORY", "5", 1);
    if (gnomon_context_create(&options, &gpu) != GNOMON_OK) exit(1);
    for (const svd_case &c : apart)
        run(&c);
    less_means(false);
    check_far_means();
    centered = true;
    offset = 5;
    for (const svd_case &c : apart)
        if (c.exponent == 0) run(&c);
    centered = false;
    one_pass = true;
    for (const svd_case &c : apart)
        if (c.tolerance == 0) run(&c);
    centered = true;
    for (const svd_case &c : apart)
        if (c.tolerance == 0 && c.exponent == 0) run(&c);
    centered = false;
    gnomon_context_destroy(gpu);
    printf("%d failed\n", failures);
    return failures != 0;
}

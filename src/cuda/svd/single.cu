/* Every row read once, as src/svd/single.c defines it: beside Y = A S^T a second, wider sketch W =
 * Psi A of the rows is kept, and with Q = orth(Y) the least-squares solution of (Psi Q) B = W is
 * what Q leaves of A (Tropp, Yurtsever, Udell & Cevher 2017, algorithm 7).
 *
 * Psi Q is well conditioned, so that its Gram matrix in double precision tells B. What does not lie
 * on the GPU as a whole goes there block by block, once. */
#include "cuda/svd/f64.h"

static const int64_t panel_rows = 64; /* of Psi at a time, with sparse rows */

struct sketches {
    int64_t lines; /* of W: 2 columns + 1 */
    int64_t part;  /* rows that Psi's columns are made for at a time */
    void *y;       /* m x columns */
    void *s;       /* the operator's entries; NULL where they are never made */
    gnomon_dtype s_dtype;
    void *g;     /* the test vectors; NULL without */
    void *w;     /* W^T: n x lines */
    void *psi;   /* part x lines */
    void *panel; /* of W^T, with sparse rows */
    gcu_svd_scan_state seen;
};

static int64_t lines_of(int64_t columns)
{
    return 2 * columns + 1;
}

static int64_t part_of(const gcu_svd *v, int64_t lines)
{
    const int64_t rows = gcu_svd_block_rows(v->m, lines);
    return rows < v->m ? rows : v->m;
}

double gcu_svd_single_pass_bytes(const gcu_svd *v, int64_t columns)
{
    const int64_t lines = lines_of(columns);
    const double l = (double)lines, m = (double)v->m, n = (double)v->n;
    const double vectors =
        (double)v->job->options->test_vectors + (v->job->csr ? 2.0 * (double)panel_rows : 0.0);
    return (double)gcu_svd_size(v) * (n * l + (m + n) * vectors) +
           12 * l * (double)part_of(v, lines) + 24 * l * (double)columns;
}

static gnomon_status alloc(gcu_svd *v, sketches *k)
{
    const int64_t columns = v->job->columns, test_vectors = v->job->options->test_vectors;
    const size_t size = gcu_svd_size(v);
    k->lines = lines_of(columns);
    k->part = part_of(v, k->lines);
    int64_t made = k->part * k->lines;
    if (v->job->csr && made < v->m * panel_rows) made = v->m * panel_rows;
    gnomon_status status =
        v->f64 ? gcu_svd_f64_alloc(v, columns) : gcu_svd_alloc_columns(v, columns, true);
    k->y = v->f64 ? (void *)v->tall[0] : (void *)v->y;
    if (status == GNOMON_OK) status = gcu_svd_alloc(v, (size_t)(v->n * k->lines) * size, &k->w);
    if (status == GNOMON_OK) status = gcu_svd_alloc(v, (size_t)made * size, &k->psi);
    if (status == GNOMON_OK && v->job->csr)
        status = gcu_svd_alloc(v, (size_t)(v->n * panel_rows) * size, &k->panel);
    if (status != GNOMON_OK || test_vectors == 0) return status;
    status = gcu_svd_alloc(v, (size_t)(v->n * test_vectors) * size, &k->g);
    if (status == GNOMON_OK)
        status = gcu_svd_alloc(v, (size_t)(v->m * test_vectors) * size, &v->tested);
    return status == GNOMON_OK
               ? gcu_svd_draw(v, v->job->test_vectors, 0, test_vectors, 0, v->n, k->g)
               : status;
}

/* The operator's entries, for all blocks. */
static gnomon_status make_entries(gcu_svd *v, sketches *k)
{
    const gnomon_operator *op = v->job->op;
    k->s_dtype = gcu_svd_entry_dtype(op);
    if (k->s_dtype == 0) return GNOMON_OK;
    if (v->f64) {
        k->s_dtype = GNOMON_F64;
        k->s = v->z64;
        return gcu_svd_draw(v, op, 0, v->columns, 0, v->n, k->s);
    }
    const bool halves = k->s_dtype == GNOMON_F16;
    k->s = halves ? v->half : v->z;
    GCU_TRY(v->why, gcu_svd_entries(&v->s->gpu, &op->factor[0], 0, v->columns, 0, v->n, halves,
                                    k->s, v->stream));
    return GNOMON_OK;
}

/* W^T += block^T Psi^T. */
static gnomon_status press(gcu_svd *v, const sketches *k, const gnomon_matrix *block, int64_t row)
{
    gnomon_status status = GNOMON_OK;
    for (int64_t at = 0; at < block->rows && status == GNOMON_OK; at += k->part) {
        const int64_t rows = k->part < block->rows - at ? k->part : block->rows - at;
        const gnomon_matrix part = gcu_svd_part(block, at, rows);
        status = gcu_svd_draw(v, v->job->psi, 0, k->lines, row + at, rows, k->psi);
        if (status == GNOMON_OK)
            status = gcu_svd_multiply_part(v, true, &part, k->psi, gcu_svd_type(v), k->lines,
                                           row + at > 0, k->w);
    }
    return status;
}

static gnomon_status sketch_block(gcu_svd *v, const gnomon_matrix *given, int64_t row, void *arg)
{
    sketches *k = static_cast<sketches *>(arg);
    const int64_t test_vectors = v->job->options->test_vectors;
    const size_t size = gcu_svd_size(v);
    gnomon_matrix block = *given;
    gcu_svd_sketching sketching = {v->columns, k->y};
    gnomon_status status = GNOMON_OK;
    if (v->blocks.rows) status = gcu_svd_note(v, &block, row, &k->seen);
    if (status == GNOMON_OK)
        status = k->s ? gcu_svd_multiply_part(v, false, &block, k->s, k->s_dtype, v->columns, false,
                                              static_cast<char *>(k->y) +
                                                  (size_t)(row * v->columns) * size)
                      : gcu_svd_sketch_block(v, &block, row, &sketching);
    if (status == GNOMON_OK && k->g)
        status = gcu_svd_multiply_part(v, false, &block, k->g, gcu_svd_type(v), test_vectors, false,
                                       static_cast<char *>(v->tested) +
                                           (size_t)(row * test_vectors) * size);
    if (status == GNOMON_OK) status = press(v, k, &block, row);
    return status == GNOMON_OK ? gcu_svd_tell(v) : status;
}

/* Sparse rows lie on the GPU as a whole. */
static gnomon_status sketch_sparse(gcu_svd *v, sketches *k)
{
    const size_t size = gcu_svd_size(v);
    gnomon_status status = gcu_svd_project(v, v->columns);
    if (status == GNOMON_OK && k->g)
        status = gcu_svd_multiply(v, false, k->g, gcu_svd_type(v), v->job->options->test_vectors,
                                  v->tested);
    for (int64_t first = 0; first < k->lines && status == GNOMON_OK; first += panel_rows) {
        const int64_t count = panel_rows < k->lines - first ? panel_rows : k->lines - first;
        status = gcu_svd_draw(v, v->job->psi, first, count, 0, v->m, k->psi);
        if (status == GNOMON_OK)
            status = gcu_svd_multiply(v, true, k->psi, gcu_svd_type(v), count, k->panel);
        if (status != GNOMON_OK) return status;
        GCU_TRY(v->why, cudaMemcpy2DAsync(static_cast<char *>(k->w) + (size_t)first * size,
                                          (size_t)k->lines * size, k->panel, (size_t)count * size,
                                          (size_t)count * size, (size_t)v->n,
                                          cudaMemcpyDeviceToDevice, v->stream));
    }
    return status;
}

/* c (lines x columns) = Psi Q. */
static gnomon_status press_range(gcu_svd *v, const sketches *k, double *c)
{
    const int64_t l = k->lines, s = v->columns;
    const int held = v->bag.count;
    double *psi = static_cast<double *>(k->psi);
    gnomon_status status = GNOMON_OK;
    if (!v->f64) status = gcu_svd_room(v, k->part * l, &psi);
    for (int64_t row = 0; row < v->m && status == GNOMON_OK; row += k->part) {
        const int64_t rows = k->part < v->m - row ? k->part : v->m - row;
        status = gcu_svd_draw(v, v->job->psi, 0, l, row, rows, k->psi);
        if (status != GNOMON_OK) return status;
        if (!v->f64)
            GCU_TRY(v->why,
                    gcu_svd_to_f64(static_cast<const float *>(k->psi), rows * l, psi, v->stream));
        status = gcu_gemm64(v->blas, false, true, s, l, rows, 1.0, v->q + row * s, s, psi, l,
                            row > 0 ? 1.0 : 0.0, c, s, v->why);
    }
    gcu_svd_free(v, held);
    return status;
}

/* B^T = W^T C (C^T C)^-1, C = Psi Q. */
static gnomon_status solve(gcu_svd *v, const sketches *k)
{
    const int64_t l = k->lines, s = v->columns;
    const int held = v->bag.count;
    double *c = nullptr, *m = nullptr;
    float *f32 = nullptr;
    gnomon_status status = gcu_svd_room(v, (l + GCU_SVD_CHUNKS) * s, &c);
    if (status == GNOMON_OK) status = gcu_svd_room(v, l * s, &m);
    if (status == GNOMON_OK && !v->f64) status = gcu_svd_room(v, l * s, &f32);
    if (status == GNOMON_OK) status = press_range(v, k, c);
    if (status == GNOMON_OK) status = gcu_svd_gram(v, c, l, s);
    if (status == GNOMON_OK) status = gcu_svd_invert_gram(v, s);
    if (status == GNOMON_OK)
        status =
            gcu_gemm64(v->blas, false, false, s, l, s, 1.0, v->kept, s, c, s, 0.0, m, s, v->why);
    if (status != GNOMON_OK) return status;
    if (!v->f64) GCU_TRY(v->why, gcu_svd_to_f32(m, l * s, f32, v->stream));
    status = gcu_svd_times(v, v->n, s, l, 1.0, k->w, false, v->f64 ? (void *)m : f32, false, 0.0,
                           gcu_svd_right(v));
    gcu_svd_free(v, held);
    return status;
}

gnomon_status gcu_svd_single_pass(gcu_svd *v)
{
    sketches k = {};
    gnomon_status status = alloc(v, &k);
    if (status == GNOMON_OK && !v->job->csr) status = make_entries(v, &k);
    if (status == GNOMON_OK)
        status = v->job->csr ? sketch_sparse(v, &k) : gcu_svd_each(v, sketch_block, &k);
    v->job->passes = 1;
    if (status == GNOMON_OK) status = gcu_svd_lap(v, GCU_PROJECT);
    if (status == GNOMON_OK) status = gcu_svd_tell(v);
    if (status == GNOMON_OK)
        status = v->f64 ? gcu_svd_f64_orthonormalise(v, v->m, false, v->q)
                        : gcu_svd_orthonormal_range(v);
    return status == GNOMON_OK ? solve(v, &k) : status;
}

/* sjlt's own kernels: shapes of bands, chunks and lists, layouts, types of points. */
#include "family_check.cuh"

static check_job sjlt(int64_t k, int64_t d, int64_t s, int64_t n, check_layout layout)
{
    check_job j = {};
    j.kind = GNOMON_SJLT;
    j.k = k;
    j.d = d;
    j.nonzeros = s;
    j.n = n;
    j.layout = layout;
    j.dtype = GNOMON_F32;
    return j;
}

static check_job of(check_job j, gnomon_dtype dtype)
{
    j.dtype = dtype;
    return j;
}

static check_job rows(check_job j, int64_t row, int64_t count, double beta)
{
    j.row = row;
    j.rows = count;
    j.beta = beta;
    return j;
}

static check_job blocks(check_job j, int64_t r)
{
    j.blocks = r;
    return j;
}

static check_job from(check_job j, int64_t col, int64_t first)
{
    j.col = col;
    j.first = first;
    return j;
}

static check_job huge(check_job j)
{
    j.huge = true;
    return j;
}

int main(void)
{
    const check_layout P = POINTS_ADJACENT, C = COORDINATES_ADJACENT, PG = POINTS_GAPS,
                       CG = COORDINATES_GAPS, B = BACKWARDS;
    const int64_t far = (int64_t)1 << 40;
    const std::vector<check_job> jobs = {
        /* the reduced set */
        sjlt(300, 9001, 2, 32, P),
        sjlt(4096, 17000, 4, 8, P),
        sjlt(100, 9000, 1, 5, C),
        sjlt(70, 6000, 3, 7, B),
        of(sjlt(64, 5000, 4, 9, C), GNOMON_F16),
        sjlt(1500, 9000, 1, 1, C),
        sjlt(9000, 90000, 1, 3, C),
        /* s = 1, 2, 4 and k = 4096, both layouts, few and many points */
        sjlt(4096, 100000, 1, 32, P),
        sjlt(4096, 100000, 2, 32, P),
        sjlt(4096, 100000, 4, 32, P),
        sjlt(4096, 100000, 1, 32, C),
        sjlt(4096, 100000, 2, 32, C),
        sjlt(4096, 100000, 4, 32, C),
        sjlt(4096, 60000, 1, 100, P),
        sjlt(4096, 60000, 2, 100, C),
        sjlt(4096, 60000, 4, 68, PG),
        sjlt(4096, 300000, 1, 1, P),
        sjlt(4096, 300000, 2, 1, C),
        sjlt(4096, 300000, 4, 1, C),
        sjlt(1024, 300000, 4, 3, P),
        sjlt(1024, 200000, 4, 13, CG),
        huge(sjlt(512, 200000, 2, 32, P)),
        huge(sjlt(512, 200000, 4, 24, C)),
        /* bands of unequal size, lists of few and of many entries, long chunks */
        sjlt(3001, 90001, 2, 33, P),
        sjlt(3001, 90001, 7, 12, C),
        sjlt(5, 70000, 3, 32, P),
        sjlt(1, 50000, 1, 9, C),
        sjlt(600, 20000, 600, 8, P),
        sjlt(601, 20000, 599, 8, C),
        sjlt(10000, 150000, 1, 32, P),
        sjlt(10000, 150000, 1, 17, C),
        sjlt(30011, 300000, 1, 8, P),
        sjlt(30011, 200000, 1, 5, C),
        sjlt(65536, 270000, 2, 4, P),
        sjlt(100000, 1000000, 1, 3, C),
        sjlt(16384, 140000, 4, 32, P),
        /* one point: lists are computed; some points: lines are made on the way, in many turns */
        sjlt(4096, 500001, 1, 1, C),
        sjlt(3001, 300000, 2, 1, P),
        sjlt(1000, 100000, 7, 1, C),
        of(sjlt(16384, 300000, 4, 1, C), GNOMON_BF16),
        sjlt(20000, 3000000, 1, 8, C),
        sjlt(20000, 1500000, 1, 30, C),
        of(sjlt(40000, 1500000, 1, 4, C), GNOMON_F16),
        of(sjlt(20000, 700000, 1, 21, CG), GNOMON_U8),
        /* points in 16 bits held in chunks */
        of(sjlt(16384, 200000, 1, 8, C), GNOMON_F16),
        of(sjlt(16384, 200000, 4, 32, C), GNOMON_F16),
        of(sjlt(4096, 300000, 1, 40, C), GNOMON_BF16),
        of(sjlt(600, 300000, 2, 16, C), GNOMON_F16),
        /* types, strides */
        of(sjlt(4096, 50000, 4, 32, P), GNOMON_F16),
        of(sjlt(4096, 50000, 2, 20, C), GNOMON_BF16),
        of(sjlt(777, 50000, 3, 31, B), GNOMON_I8),
        of(sjlt(777, 50000, 3, 31, P), GNOMON_U8),
        of(sjlt(777, 50000, 2, 6, CG), GNOMON_I16),
        of(sjlt(9000, 50000, 1, 6, PG), GNOMON_U16),
        sjlt(500, 50000, 4, 40, B),
        sjlt(9000, 90000, 1, 9, B),
        /* ranges of rows and columns, blocks, y read */
        rows(sjlt(4096, 60000, 4, 32, P), 1000, 1777, 0.5),
        rows(sjlt(3000, 60000, 2, 11, C), 1499, 3, -1),
        blocks(sjlt(1200, 90000, 4, 8, P), 3),
        blocks(sjlt(1200, 90001, 2, 5, C), 4),
        blocks(sjlt(400, 64000, 1, 32, PG), 8),
        from(sjlt(4096, 70000, 4, 32, P), far, 0),
        from(sjlt(300, 70000, 2, 9, C), far, 777),
        from(sjlt(300, 70000, 1, 64, P), 0, 5000),
    };
    return check_all(gcu_sjlt, jobs, 7);
}

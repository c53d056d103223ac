/* The kernels that take everything: every simple kind, type of points, fp32 and fp64 sums. */
#include "family_check.cuh"

int main(void)
{
    const gnomon_dtype P32 = GNOMON_F32, P16 = GNOMON_F16, P0 = (gnomon_dtype)0;
    const gnomon_kind G = GNOMON_GAUSSIAN, R = GNOMON_RADEMACHER, A = GNOMON_ACHLIOPTAS,
                      V = GNOMON_VERY_SPARSE, S = GNOMON_SJLT, H = GNOMON_SRHT;
    const bool f64 = true, huge = true;
    const int64_t far = (int64_t)1 << 40;
    /* kind, precision, k, D, s, density, blocks, type, n, layout, row, rows, col, first, wide,
     * huge, beta; the first ones are the reduced set */
    const std::vector<check_job> jobs = {
        {G, P32, 70, 601, 0, 0, 1, GNOMON_F32, 5, COORDINATES_ADJACENT, 0, 0, 0, 0, false, false,
         0},
        {R, P0, 66, 1030, 0, 0, 1, GNOMON_F64, 3, POINTS_ADJACENT, 0, 0, 0, 0, f64, false, 0.5},
        {V, P0, 40, 5000, 0, 0.02, 1, GNOMON_F32, 7, POINTS_GAPS, 0, 0, 0, 0, false, false, 0},
        {S, P0, 40, 9000, 3, 0, 1, GNOMON_I16, 7, BACKWARDS, 0, 0, 0, 0, false, false, 0},
        {H, P0, 33, 900, 0, 0, 1, GNOMON_U8, 33, COORDINATES_GAPS, 0, 0, 0, 0, f64, false, 0},
        /* every kind, both sums, blocks of unequal rows, odd ranges */
        {G, P32, 67, 40000, 0, 0, 1, GNOMON_F32, 3, COORDINATES_ADJACENT, 5, 59, 0, 0, false, huge,
         0},
        {G, P32, 67, 20000, 0, 0, 1, GNOMON_F64, 3, COORDINATES_ADJACENT, 5, 59, 0, 0, f64, huge,
         0},
        {G, P32, 90, 9001, 0, 0, 7, GNOMON_F16, 5, POINTS_GAPS, 0, 0, 0, 0, false, false, -2},
        {G, P16, 130, 35000, 0, 0, 1, GNOMON_BF16, 4, POINTS_ADJACENT, 0, 0, 0, 0, false, false, 0},
        {G, P16, 130, 15000, 0, 0, 1, GNOMON_I64, 4, BACKWARDS, 3, 120, 0, 0, f64, false, 0},
        {G, P16, 20, 100000, 0, 0, 1, GNOMON_F32, 2, COORDINATES_ADJACENT, 0, 0, far, 0, false,
         false, 0},
        {R, P0, 129, 33000, 0, 0, 1, GNOMON_F32, 9, BACKWARDS, 2, 126, 0, 0, false, huge, 0},
        {R, P0, 100, 9999, 0, 0, 3, GNOMON_I32, 7, POINTS_ADJACENT, 0, 0, 0, 0, f64, false, 1},
        {R, P0, 40, 20000, 0, 0, 1, GNOMON_U16, 70, POINTS_ADJACENT, 0, 0, far, 100, false, false,
         0},
        {A, P0, 129, 33000, 0, 0, 1, GNOMON_I8, 9, COORDINATES_ADJACENT, 1, 127, 0, 0, false, false,
         0},
        {A, P0, 50, 20000, 0, 0, 1, GNOMON_U32, 4, POINTS_ADJACENT, 0, 0, far, 0, f64, false, 0},
        {V, P0, 300, 100000, 0, 0, 1, GNOMON_F32, 33, POINTS_ADJACENT, 7, 290, 0, 0, false, huge,
         0},
        {V, P0, 300, 300000, 0, 0.001, 1, GNOMON_U64, 5, COORDINATES_ADJACENT, 7, 290, 0, 0, f64,
         false, 0},
        {V, P0, 101, 90000, 0, 0.5, 5, GNOMON_F16, 6, POINTS_GAPS, 0, 0, 0, 0, false, false, 0.25},
        {V, P0, 64, 100000, 0, 0.01, 1, GNOMON_F32, 3, COORDINATES_GAPS, 0, 0, far, 999, false,
         false, 0},
        {S, P0, 300, 200000, 4, 0, 1, GNOMON_F32, 33, POINTS_ADJACENT, 7, 290, 0, 0, false, huge,
         0},
        {S, P0, 5000, 100000, 1, 0, 1, GNOMON_F64, 5, COORDINATES_ADJACENT, 0, 0, 0, 0, f64, huge,
         0},
        {S, P0, 96, 90001, 7, 0, 4, GNOMON_U8, 6, POINTS_GAPS, 0, 0, 0, 0, false, false, 0.25},
        {S, P0, 101, 100000, 101, 0, 1, GNOMON_F32, 3, BACKWARDS, 0, 0, 0, 0, false, false, 0},
        {H, P0, 300, 33000, 0, 0, 1, GNOMON_F32, 9, POINTS_ADJACENT, 7, 290, 0, 0, false, huge, 0},
        {H, P0, 100, 40001, 0, 0, 1, GNOMON_F64, 3, BACKWARDS, 0, 0, 0, 0, f64, false, 0.5},
    };
    return check_all(gcu_generic, jobs, 5);
}

/* gnomon/tensor.h: views of dense tensors with any number of modes. A view does not own its memory.
 *
 * The smallest complete program:
 *
 *     #include <gnomon/tensor.h>
 *     #include <stdio.h>
 *
 *     int main(void)
 *     {
 *         double numbers[2 * 3 * 4] = {0};
 *         const int64_t size[] = {2, 3, 4};
 *         const gnomon_tensor x = gnomon_tensor_packed(numbers, GNOMON_F64, 3, size, 0);
 *         printf("%d %d %d\n", (int)x.stride[0], (int)x.stride[1], (int)x.stride[2]); // 12 4 1
 *         return 0;
 *     } */
#ifndef GNOMON_TENSOR_H
#define GNOMON_TENSOR_H

#include <gnomon/matrix.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Modes that a tensor may have. */
#define GNOMON_TENSOR_MODES 16

/* Element (i_1, ..., i_N) is data[i_1 * stride[0] + ... + i_N * stride[N - 1]], strides counted in
 * elements, any sign, 0 allowed for inputs. Integers are converted without scaling. */
typedef struct gnomon_tensor {
    void *data;
    gnomon_dtype dtype;
    gnomon_memory memory;
    int modes; /* N: 1 ... GNOMON_TENSOR_MODES */
    int64_t size[GNOMON_TENSOR_MODES];
    int64_t stride[GNOMON_TENSOR_MODES];
} gnomon_tensor;

/* A contiguous host view, in C order (the last mode's elements adjacent) or, with first_fastest, in
 * Fortran order (the first mode's). The call that receives the view checks sizes and their product;
 * modes beyond GNOMON_TENSOR_MODES are ignored. */
static inline gnomon_tensor gnomon_tensor_packed(void *data, gnomon_dtype dtype, int modes,
                                                 const int64_t *size, int first_fastest)
{
    gnomon_tensor t = {data, dtype, GNOMON_HOST, modes, {0}, {0}};
    const int held = modes < GNOMON_TENSOR_MODES ? modes : GNOMON_TENSOR_MODES;
    uint64_t step = 1; /* may wrap around where the product does not fit */
    for (int i = 0; i < held; i++) {
        const int n = first_fastest ? i : held - 1 - i;
        t.size[n] = size[n];
        t.stride[n] = (int64_t)step;
        step *= (uint64_t)size[n];
    }
    return t;
}

#ifdef __cplusplus
}
#endif
#endif

#include "base/dtype.h"

typedef struct type_row {
    const char *name;
    size_t size;
} type_row;

static const type_row types[] = {
    [GNOMON_F32] = {"f32", 4},   [GNOMON_F64] = {"f64", 8}, [GNOMON_F16] = {"f16", 2},
    [GNOMON_BF16] = {"bf16", 2}, [GNOMON_I8] = {"i8", 1},   [GNOMON_U8] = {"u8", 1},
    [GNOMON_I16] = {"i16", 2},   [GNOMON_U16] = {"u16", 2}, [GNOMON_I32] = {"i32", 4},
    [GNOMON_U32] = {"u32", 4},   [GNOMON_I64] = {"i64", 8}, [GNOMON_U64] = {"u64", 8},
};

static const type_row *find(gnomon_dtype dtype)
{
    static const type_row none = {"?", 0};
    const size_t index = (size_t)dtype;
    return index >= GNOMON_F32 && index < sizeof types / sizeof *types ? &types[index] : &none;
}

size_t gnomon_dtype_size(gnomon_dtype dtype)
{
    return find(dtype)->size;
}

const char *gnomon_dtype_name(gnomon_dtype dtype)
{
    return find(dtype)->name;
}

bool gnomon_dtype_needs_f64(gnomon_dtype dtype)
{
    return dtype == GNOMON_F64 || dtype == GNOMON_I32 || dtype == GNOMON_U32 ||
           dtype == GNOMON_I64 || dtype == GNOMON_U64;
}

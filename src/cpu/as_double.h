/* cpu/as_double.h: what the bodies that serve both precisions are made of, as doubles. A body names
 * all that it defines by REAL, and functions of vectors by VEC; as_float.h is its twin. */
#undef real
#undef vr
#undef VR
#undef REAL
#undef VEC
#undef LOAD_F64
#undef real_bits
#undef REAL_ABS
#define real       double
#define vr         vd
#define VR         VD
#define REAL(name) name##_f64
#define VEC(name)  vd_##name
#define LOAD_F64   vd_load
#define real_bits  int64_t
#define REAL_ABS   INT64_MAX

/* cpu/as_float.h: what the bodies that serve both precisions are made of, as floats. A body names
 * all that it defines by REAL, and functions of vectors by VEC; as_double.h is its twin. */
#undef real
#undef vr
#undef VR
#undef REAL
#undef VEC
#undef LOAD_F64
#undef real_bits
#undef REAL_ABS
#define real       float
#define vr         vf
#define VR         VW
#define REAL(name) name##_f32
#define VEC(name)  vf_##name
#define LOAD_F64   vd_load_float
#define real_bits  int32_t
#define REAL_ABS   INT32_MAX

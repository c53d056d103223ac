/* cpu/as_double.h: makes the names of the bodies that serve both precisions mean doubles.
 * Included again and again; as_float.h is its twin. */
#undef real
#undef vr
#undef VR
#undef vr_load
#undef vr_store
#undef vr_set1
#undef vr_zero
#undef vr_add
#undef vr_sub
#undef vr_fma
#undef gemm_block
#undef gemm_tiles
#undef gemm_rows
#undef gemm_cols
#undef GEMM_VECTORS
#undef GEMM_ROWS
#undef GEMM_TILES
#undef TABLE_LANES
#undef TABLE_VECTORS
#undef table_sums
#undef table_cross
#undef table_build
#undef table_pass
#undef table_look_up
#undef table_entry
#undef table_pass_groups
#undef table_sketch
#undef table_adjoint
#define real              double
#define vr                vd
#define VR                VD
#define vr_load           vd_load
#define vr_store          vd_store
#define vr_set1           vd_set1
#define vr_zero           vd_zero
#define vr_add            vd_add
#define vr_sub            vd_sub
#define vr_fma            vd_fma
#define gemm_block        gemm_block_f64
#define gemm_tiles        gemm_tiles_f64
#define gemm_rows         gemm_rows_f64
#define gemm_cols         gemm_cols_f64
#define GEMM_VECTORS      GEMM_VECTORS_f64
#define GEMM_ROWS         GEMM_ROWS_f64
#define GEMM_TILES        GEMM_TILES_f64
#define TABLE_LANES       TABLE_LANES_f64
#define TABLE_VECTORS     TABLE_VECTORS_f64
#define table_sums        table_sums_f64
#define table_cross       table_cross_f64
#define table_build       table_build_f64
#define table_pass        table_pass_f64
#define table_pass_groups table_pass_groups_f64
#define table_sketch      table_sketch_f64
#define table_adjoint     table_adjoint_f64
#define table_entry       table_entry_f64
#define table_look_up     table_look_up_f64

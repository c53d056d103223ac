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
#undef vr_mul
#undef NZ_VECTORS
#undef nz_sum
#undef nz_load
#undef nz_zero
#undef nz_join
#undef nz_add_line
#undef nz_add_to_line
#undef nz_add_row
#undef nz_add_to_row
#undef nz_add_sign
#undef nz_add_to_sign
#undef nz_add_single
#undef nz_add_to_single
#undef nz_sketch_piece
#undef nz_adjoint_piece
#undef nz_sketch
#undef nz_adjoint
#undef butterflies
#undef hadamard_first
#undef hadamard_later
#undef hadamard_start
#undef hadamard
#undef srht_sign
#undef srht_element
#undef srht_add
#undef srht_transform
#undef srht_sketch
#undef srht_adjoint
#undef gemm_block
#undef gemm_tiles
#undef gemm_rows
#undef gemm_cols
#undef GEMM_VECTORS
#undef table_low_signs
#undef table_signs_5
#undef table_signs_4
#undef table_ternary_3
#undef table_build_signs
#undef table_build_ternary
#undef table_load
#undef table_store
#undef table_add
#undef table_at
#undef table_four_word
#undef table_four
#undef table_pass
#undef table_pass_any
#undef table_pass_signs
#undef table_pass_ternary
#undef table_sketch
#undef table_adjoint
#undef table_entry
#undef TABLE_LANES
#undef TABLE_VECTORS
#undef GEMM_ROWS
#undef GEMM_TILES
#define real                double
#define vr                  vd
#define VR                  VD
#define vr_load             vd_load
#define vr_store            vd_store
#define vr_set1             vd_set1
#define vr_zero             vd_zero
#define vr_add              vd_add
#define vr_sub              vd_sub
#define vr_fma              vd_fma
#define vr_mul              vd_mul
#define NZ_VECTORS          NZ_VECTORS_f64
#define nz_sum              nz_sum_f64
#define nz_load             nz_load_f64
#define nz_zero             nz_zero_f64
#define nz_join             nz_join_f64
#define nz_add_line         nz_add_line_f64
#define nz_add_to_line      nz_add_to_line_f64
#define nz_add_row          nz_add_row_f64
#define nz_add_to_row       nz_add_to_row_f64
#define nz_add_sign         nz_add_sign_f64
#define nz_add_to_sign      nz_add_to_sign_f64
#define nz_add_single       nz_add_single_f64
#define nz_add_to_single    nz_add_to_single_f64
#define nz_sketch_piece     nz_sketch_piece_f64
#define nz_adjoint_piece    nz_adjoint_piece_f64
#define nz_sketch           nz_sketch_f64
#define nz_adjoint          nz_adjoint_f64
#define butterflies         butterflies_f64
#define hadamard_first      hadamard_first_f64
#define hadamard_later      hadamard_later_f64
#define hadamard_start      hadamard_start_f64
#define hadamard            hadamard_f64
#define srht_sign           srht_sign_f64
#define srht_element        srht_element_f64
#define srht_add            srht_add_f64
#define srht_transform      srht_transform_f64
#define srht_sketch         srht_sketch_f64
#define srht_adjoint        srht_adjoint_f64
#define gemm_block          gemm_block_f64
#define gemm_tiles          gemm_tiles_f64
#define gemm_rows           gemm_rows_f64
#define gemm_cols           gemm_cols_f64
#define GEMM_VECTORS        GEMM_VECTORS_f64
#define table_low_signs     table_low_signs_f64
#define table_signs_5       table_signs_5_f64
#define table_signs_4       table_signs_4_f64
#define table_ternary_3     table_ternary_3_f64
#define table_build_signs   table_build_signs_f64
#define table_build_ternary table_build_ternary_f64
#define table_load          table_load_f64
#define table_store         table_store_f64
#define table_add           table_add_f64
#define table_at            table_at_f64
#define table_four_word     table_four_word_f64
#define table_four          table_four_f64
#define table_pass          table_pass_f64
#define table_pass_any      table_pass_any_f64
#define table_pass_signs    table_pass_signs_f64
#define table_pass_ternary  table_pass_ternary_f64
#define table_sketch        table_sketch_f64
#define table_adjoint       table_adjoint_f64
#define table_entry         table_entry_f64
#define TABLE_LANES         TABLE_LANES_f64
#define TABLE_VECTORS       TABLE_VECTORS_f64
#define GEMM_ROWS           GEMM_ROWS_f64
#define GEMM_TILES          GEMM_TILES_f64

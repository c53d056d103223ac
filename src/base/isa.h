/* base/isa.h: which instruction set level the machine offers and the caller allows. */
#ifndef GNOMON_BASE_ISA_H
#define GNOMON_BASE_ISA_H

#include <gnomon/base.h>

#include <stdbool.h>

/* In rising order on each machine; a level implies the lower ones of its family. */
typedef enum gnomon_isa {
    GNOMON_ISA_PORTABLE = 0,
    GNOMON_ISA_AVX2 = 1,        /* AVX2, FMA and F16C */
    GNOMON_ISA_AVX512 = 2,      /* AVX-512 F, BW, DQ and VL, above AVX2 */
    GNOMON_ISA_AVX512_VNNI = 3, /* its products of 8-bit integers besides */
    GNOMON_ISA_AMX = 4,         /* AMX's tiles of 8-bit integers, above these */
    GNOMON_ISA_NEON = 5,
    GNOMON_ISA_COUNT = 6
} gnomon_isa;

/* "portable", "avx2", "avx512", "avx512_vnni", "amx", "neon". */
const char *gnomon_isa_name(gnomon_isa isa);

/* Whether this processor and its operating system can run the level. */
bool gnomon_isa_available(gnomon_isa isa);

/* The level to use: the best available, or what GNOMON_ISA names. Errors: ARGUMENT when
 * the name is unknown or not available; the text lists the names that are. */
gnomon_status gnomon_isa_choose(gnomon_context *ctx, gnomon_isa *isa);

/* The level ctx was made with. */
gnomon_isa gnomon_context_isa_level(const gnomon_context *ctx);

#endif

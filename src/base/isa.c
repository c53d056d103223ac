#include "base/isa.h"

#include "base/context.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#endif

static const char *const isa_names[GNOMON_ISA_COUNT] = {"portable",    "avx2", "avx512",
                                                        "avx512_vnni", "amx",  "neon"};

const char *gnomon_isa_name(gnomon_isa isa)
{
    return isa_names[isa];
}

#if defined(__x86_64__)

/* The register states the operating system saves (XCR0). */
static uint64_t saved_states(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

/* Asks the kernel to let this process, and its threads, use the tiles' registers: until then their
 * first use is a fault. */
static bool tiles_permitted(void)
{
#if defined(__linux__)
    enum { REQUEST = 0x1023 /* ARCH_REQ_XCOMP_PERM */, TILE_DATA = 18 };
    return syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
#else
    return false;
#endif
}

static gnomon_isa best_x86(void)
{
#if defined(GNOMON_EMULATED_AVX512) /* tests/avx512 */
    return GNOMON_ISA_AMX;
#endif
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return GNOMON_ISA_PORTABLE;
    const unsigned needed = bit_OSXSAVE | bit_AVX | bit_FMA | bit_F16C;
    if ((c & needed) != needed) return GNOMON_ISA_PORTABLE;
    const uint64_t states = saved_states();
    const uint64_t ymm = 0x06, zmm = 0xe6, tiles = 0x60000;
    if ((states & ymm) != ymm) return GNOMON_ISA_PORTABLE;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & bit_AVX2)) return GNOMON_ISA_PORTABLE;
    const unsigned avx512 = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL;
    if ((b & avx512) != avx512 || (states & zmm) != zmm) return GNOMON_ISA_AVX2;
    const unsigned vnni = 1u << 11,
                   amx = 1u << 22 | 1u << 24 | 1u << 25; /* AMX-BF16, -TILE, -INT8 */
    if (!(c & vnni)) return GNOMON_ISA_AVX512;
    if ((d & amx) != amx || (states & tiles) != tiles || !tiles_permitted())
        return GNOMON_ISA_AVX512_VNNI;
    return GNOMON_ISA_AMX;
}

#endif

bool gnomon_isa_available(gnomon_isa isa)
{
    if (isa == GNOMON_ISA_PORTABLE) return true;
#if defined(__x86_64__)
    return isa <= GNOMON_ISA_AMX && isa <= best_x86();
#elif defined(__aarch64__)
    return isa == GNOMON_ISA_NEON;
#else
    return false;
#endif
}

gnomon_status gnomon_isa_choose(gnomon_context *ctx, gnomon_isa *isa)
{
    const char *forced = getenv("GNOMON_ISA");
    if (forced && !*forced) forced = NULL;
    char names[64] = "";
    bool chosen = false;
    *isa = GNOMON_ISA_PORTABLE;
    for (int level = 0; level < GNOMON_ISA_COUNT; level++) {
        if (!gnomon_isa_available((gnomon_isa)level)) continue;
        if (names[0]) strcat(names, ", ");
        strcat(names, isa_names[level]);
        if (!forced || strcmp(forced, isa_names[level]) == 0) {
            *isa = (gnomon_isa)level;
            chosen = true;
        }
    }
    GNOMON_FAIL_IF(!chosen, ctx, GNOMON_ERROR_ARGUMENT,
                   "the environment variable GNOMON_ISA is \"%.64s\"; available here: %s", forced,
                   names);
    return GNOMON_OK;
}

gnomon_isa gnomon_context_isa_level(const gnomon_context *ctx)
{
    return ctx->isa;
}

/* What the machine itself can do: multiply-adds a second of each kind of instruction, and bytes a
 * second read from each cache and from memory, on 1, 2, 4 ... threads. One line of JSON each.
 *
 * usage: ceilings [--only WHAT] [THREADS ...]
 *
 * cc -O2 -pthread bench/cpu/ceilings.c -o ceilings
 *
 * A loop's sums live in registers only when it is unrolled. */
#define _GNU_SOURCE
#include <immintrin.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 5, MOST = 256 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Each does 'times' steps, and returns how many operations or bytes these are. */
typedef double work(char *data, size_t bytes, int64_t times);

#define KEEP(x) __asm__ volatile("" : "+v"(x))

__attribute__((target("avx2,fma"))) static double fma_avx2(char *data, size_t bytes, int64_t times)
{
    (void)data;
    (void)bytes;
    __m256 a = _mm256_set1_ps(0.5F), b = _mm256_set1_ps(0.25F), sum[12];
#pragma GCC unroll 16
    for (int i = 0; i < 12; i++)
        sum[i] = _mm256_setzero_ps();
    for (int64_t t = 0; t < times; t++)
#pragma GCC unroll 16
        for (int i = 0; i < 12; i++) {
            sum[i] = _mm256_fmadd_ps(a, b, sum[i]);
            __asm__ volatile("" : "+x"(sum[i]));
        }
    return (double)times * 12 * 8;
}

__attribute__((target("avx512f"))) static double fma_avx512(char *data, size_t bytes, int64_t times)
{
    (void)data;
    (void)bytes;
    __m512 a = _mm512_set1_ps(0.5F), b = _mm512_set1_ps(0.25F), sum[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++)
        sum[i] = _mm512_setzero_ps();
    for (int64_t t = 0; t < times; t++)
#pragma GCC unroll 16
        for (int i = 0; i < 16; i++) {
            sum[i] = _mm512_fmadd_ps(a, b, sum[i]);
            KEEP(sum[i]);
        }
    return (double)times * 16 * 16;
}

__attribute__((target("avx512f,avx512vnni"))) static double vnni(char *data, size_t bytes,
                                                                 int64_t times)
{
    (void)data;
    (void)bytes;
    __m512i a = _mm512_set1_epi8(3), b = _mm512_set1_epi8(2), sum[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++)
        sum[i] = _mm512_setzero_si512();
    for (int64_t t = 0; t < times; t++)
#pragma GCC unroll 16
        for (int i = 0; i < 16; i++) {
            sum[i] = _mm512_dpbusd_epi32(sum[i], a, b);
            KEEP(sum[i]);
        }
    return (double)times * 16 * 64;
}

/* Tile registers of 16 rows of 64 bytes. */
static const struct {
    uint8_t palette, start, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tiles = {.palette = 1,
           .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
           .rows = {16, 16, 16, 16, 16, 16, 16, 16}};

/* Four sums of zero, and two operands of either side. */
__attribute__((target("amx-tile"), always_inline)) static inline void fill_tiles(const char *data)
{
    _tile_loadconfig(&tiles);
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    _tile_loadd(4, data, 64);
    _tile_loadd(5, data, 64);
    _tile_loadd(6, data, 64);
    _tile_loadd(7, data, 64);
}

__attribute__((target("amx-tile,amx-int8"))) static double amx(char *data, size_t bytes,
                                                               int64_t times)
{
    (void)bytes;
    fill_tiles(data);
    for (int64_t t = 0; t < times; t++) {
        _tile_dpbssd(0, 4, 6);
        _tile_dpbssd(1, 5, 6);
        _tile_dpbssd(2, 4, 7);
        _tile_dpbssd(3, 5, 7);
    }
    _tile_release();
    return (double)times * 4 * 16 * 16 * 64;
}

__attribute__((target("amx-tile,amx-bf16"))) static double amx_bf16(char *data, size_t bytes,
                                                                    int64_t times)
{
    (void)bytes;
    fill_tiles(data);
    for (int64_t t = 0; t < times; t++) {
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 5, 6);
        _tile_dpbf16ps(2, 4, 7);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_release();
    return (double)times * 4 * 16 * 16 * 32;
}

__attribute__((target("avx2"))) static double read_avx2(char *data, size_t bytes, int64_t times)
{
    __m256i sum[4] = {_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256(),
                      _mm256_setzero_si256()};
    for (int64_t t = 0; t < times; t++)
        for (size_t i = 0; i + 128 <= bytes; i += 128)
#pragma GCC unroll 4
            for (int k = 0; k < 4; k++) {
                sum[k] = _mm256_add_epi64(
                    sum[k], _mm256_load_si256((const __m256i *)(data + i + 32 * (size_t)k)));
                __asm__ volatile("" : "+x"(sum[k]));
            }
    return (double)times * (double)(bytes / 128 * 128);
}

__attribute__((target("avx512f"))) static double read_avx512(char *data, size_t bytes,
                                                             int64_t times)
{
    __m512i sum[4] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512(),
                      _mm512_setzero_si512()};
    for (int64_t t = 0; t < times; t++)
        for (size_t i = 0; i + 256 <= bytes; i += 256)
#pragma GCC unroll 4
            for (int k = 0; k < 4; k++) {
                sum[k] = _mm512_add_epi64(sum[k], _mm512_load_si512(data + i + 64 * (size_t)k));
                KEEP(sum[k]);
            }
    return (double)times * (double)(bytes / 256 * 256);
}

typedef struct worker {
    work *call;
    size_t bytes;
    int64_t times;
    pthread_barrier_t *start;
    double done, begin, end;
} worker;

static void *run(void *arg)
{
    worker *w = arg;
    char *data = NULL;
    if (posix_memalign((void **)&data, 4096, w->bytes) != 0) exit(1);
    memset(data, 1, w->bytes);
    w->call(data, w->bytes, w->times);
    pthread_barrier_wait(w->start);
    w->begin = now();
    w->done = w->call(data, w->bytes, w->times);
    w->end = now();
    free(data);
    return NULL;
}

/* The best rate of some rounds. */
static double rate(work *call, size_t bytes, int64_t times, int threads)
{
    double best = 0;
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t thread[MOST];
        worker w[MOST];
        pthread_barrier_t start;
        pthread_barrier_init(&start, NULL, (unsigned)threads);
        for (int i = 0; i < threads; i++) {
            w[i] = (worker){call, bytes, times, &start, 0, 0, 0};
            if (pthread_create(&thread[i], NULL, run, &w[i]) != 0) exit(1);
        }
        double done = 0, begin = 1e300, end = 0;
        for (int i = 0; i < threads; i++) {
            pthread_join(thread[i], NULL);
            done += w[i].done;
            begin = w[i].begin < begin ? w[i].begin : begin;
            end = w[i].end > end ? w[i].end : end;
        }
        pthread_barrier_destroy(&start);
        if (done / (end - begin) > best) best = done / (end - begin);
    }
    return best;
}

static int has_amx(void)
{
    unsigned a = 7, b, c = 0, d;
    __asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    return (d >> 22 & 1) == 1 && (d >> 24 & 3) == 3 && syscall(SYS_arch_prctl, 0x1023, 18) == 0;
}

/* What is measured, on so many threads. */
typedef struct asked {
    const char *only; /* NULL: everything */
    int threads;
} asked;

static void tell(const asked *a, const char *what, work *call, size_t bytes, int64_t times)
{
    if (a->only != NULL && strcmp(a->only, what) != 0) return;
    printf("{\"what\": \"%s\", \"threads\": %d, \"rate\": %.4g}\n", what, a->threads,
           rate(call, bytes, times, a->threads));
    fflush(stdout);
}

int main(int count, char **arg)
{
    const int wide = __builtin_cpu_supports("avx512f") != 0;
    work *reading = wide ? read_avx512 : read_avx2;
    asked a = {NULL, 1};
    int first = 1;
    if (count > 2 && strcmp(arg[1], "--only") == 0) {
        a.only = arg[2];
        first = 3;
    }
    for (int i = first; i < count || i == first; i++) {
        a.threads = i < count ? atoi(arg[i]) : 1;
        if (a.threads < 1 || a.threads > MOST) return 2;
        tell(&a, "fma fp32 avx2", fma_avx2, 64, 10000000);
        if (wide) tell(&a, "fma fp32 avx512", fma_avx512, 64, 10000000);
        if (__builtin_cpu_supports("avx512vnni")) tell(&a, "int8 vnni", vnni, 64, 10000000);
        if (has_amx()) {
            tell(&a, "int8 amx", amx, 1024, 2000000);
            tell(&a, "bf16 amx", amx_bf16, 1024, 2000000);
        }
        tell(&a, "read 24 KiB a thread", reading, 24 << 10, 100000);
        tell(&a, "read 512 KiB a thread", reading, 512 << 10, 4000);
        tell(&a, "read 256 MiB in all", reading, (size_t)(256 << 20) / (size_t)a.threads, 2);
    }
    return 0;
}

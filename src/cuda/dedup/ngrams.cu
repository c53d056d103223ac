/* Texts become sets of n-grams: the bits of src/dedup/ngrams.c.
 *
 * A warp takes a text: its lanes look at 32 bytes at a time for beginnings of words (characters),
 * hash a word each, and an n-gram each. Few n-grams are sorted by a warp and more by a block in
 * shared memory, very many by a block where they are. Sorting compares in one direction alone, so
 * that no place behind the last n-gram is touched. What is left once in each set goes to the host's
 * page-locked memory as it is packed. */
#include "cuda/dedup/dedup.h"
#include "cuda/runtime/grid.cuh"

#include "base/arithmetic.h"

#include <cub/device/device_scan.cuh>
#include <stdlib.h>
#include <string.h>

enum { WARP = 32, WARPS = 8, FEW = 512, THREADS = 256, MANY = 8192 };
enum { TEXTS = 1 << 15, TEXT_MOST = 4 << 20, TEXT_LEAST = 1 << 17 };

struct slot {
    cudaStream_t stream;
    cudaEvent_t done;
    /* on the host, page-locked */
    char *text;
    uint32_t *begins, *lengths, *ends;
    uint64_t *hashes, *members;
    /* on the GPU */
    char *there;
    uint32_t *their_begins, *their_lengths, *grams, *counts, *their_ends;
    uint64_t *their_hashes, *tokens, *numbers;
    void *scan;
};

struct gcu_texts {
    gcu_state *s;
    int64_t length;
    int characters;
    int64_t text_room;
    size_t scan_bytes;
    unsigned char *map;
    slot slots[GNOMON_DEDUP_SLOTS];
    int64_t pushed, taken;
};

/* The texts of a slot, and what becomes of them. A text's tokens and n-grams are as many as half
 * its bytes at most (characters: as its bytes), and lie where it does. */
struct texts {
    const unsigned char *map, *text;
    const uint32_t *begins, *lengths;
    uint64_t *tokens, *numbers;
    uint32_t *grams;  /* n-grams of a text */
    uint32_t *counts; /* distinct ones */
    uint64_t *hashes; /* of the sets */
    int64_t count;
    int length, characters;
};

static __device__ __forceinline__ int64_t place_of(const texts &t, int64_t i)
{
    return t.characters ? t.begins[i] : t.begins[i] / 2;
}

/* ---- tokens ---- */

/* The word that begins there: it ends before a byte that the map makes 0, behind the text at the
 * latest. */
static __device__ uint64_t hash_word(const unsigned char *map, const unsigned char *at)
{
    uint64_t hash = 0, eight = 0, length = 0;
    for (unsigned char c; (c = map[*at]) != 0; at++) {
        eight = eight << 8 | c;
        if (++length % 8 != 0) continue;
        hash = gcu_mix64(hash + eight) * GNOMON_NGRAM_WORD;
        eight = 0;
    }
    return gcu_mix64(hash + eight + length * GNOMON_NGRAM_WORD);
}

static __device__ uint64_t hash_character(const unsigned char *map, const unsigned char *at)
{
    uint64_t code = map[*at];
    while ((*++at & 0xc0) == 0x80)
        code = code << 8 | *at;
    return gcu_mix64(code + GNOMON_NGRAM_BASE);
}

static __device__ uint32_t cut_words(const unsigned char *map, const unsigned char *text,
                                     uint32_t bytes, uint64_t *tokens)
{
    const unsigned lane = threadIdx.x % WARP, below = (1u << lane) - 1;
    uint32_t count = 0;
    unsigned before = 0; /* whether the byte before belongs to a word */
    for (uint32_t base = 0; base < bytes; base += WARP) {
        const uint32_t at = base + lane;
        const unsigned words = __ballot_sync(~0u, at < bytes && map[text[at]] != 0);
        const unsigned starts = words & ~(words << 1 | before);
        before = words >> 31;
        if (starts >> lane & 1) tokens[count + __popc(starts & below)] = at;
        count += __popc(starts);
    }
    __syncwarp();
    for (uint32_t i = lane; i < count; i += WARP)
        tokens[i] = hash_word(map, text + tokens[i]);
    return count;
}

/* A character is one of UTF-8; what is between words is one space, and none at the ends. */
static __device__ uint32_t cut_characters(const unsigned char *map, const unsigned char *text,
                                          uint32_t bytes, uint64_t *tokens)
{
    const unsigned lane = threadIdx.x % WARP, below = (1u << lane) - 1;
    uint32_t count = 0;
    unsigned before = 0; /* whether the byte before is between words */
    for (uint32_t base = 0; base < bytes; base += WARP) {
        const uint32_t at = base + lane;
        const unsigned char c = at < bytes ? text[at] : 0;
        const bool gap = map[c] == 0, begins = !gap && (c & 0xc0) != 0x80;
        const unsigned gaps = __ballot_sync(~0u, gap), starts = __ballot_sync(~0u, begins);
        const bool any = count > 0 || (starts & below) != 0;
        const bool spaced = begins && any && ((gaps << 1 | before) >> lane & 1) != 0;
        const unsigned spaces = __ballot_sync(~0u, spaced);
        before = gaps >> 31;
        if (begins) {
            uint64_t *to = tokens + count + __popc(starts & below) + __popc(spaces & below);
            if (spaced) *to++ = gcu_mix64(' ' + GNOMON_NGRAM_BASE);
            *to = hash_character(map, text + at);
        }
        count += __popc(starts) + __popc(spaces);
    }
    return count;
}

static __global__ void __launch_bounds__(WARP *WARPS) ngrams_kernel(texts t)
{
    __shared__ unsigned char map[256];
    map[threadIdx.x] = t.map[threadIdx.x];
    __syncthreads();
    const unsigned lane = threadIdx.x % WARP;
    const int64_t i = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP;
    if (i >= t.count) return;
    const unsigned char *text = t.text + t.begins[i];
    uint64_t *tokens = t.tokens + place_of(t, i), *numbers = t.numbers + place_of(t, i);
    const uint32_t count = t.characters ? cut_characters(map, text, t.lengths[i], tokens)
                                        : cut_words(map, text, t.lengths[i], tokens);
    __syncwarp();
    const uint32_t length = (uint32_t)t.length, each = count < length ? count : length;
    const uint32_t grams = count == 0 ? 0 : count < length ? 1 : count - length + 1;
    for (uint32_t g = lane; g < grams; g += WARP) {
        uint64_t hash = 0;
        for (uint32_t k = 0; k < each; k++)
            hash = hash * GNOMON_NGRAM_BASE + tokens[g + k];
        numbers[g] = gcu_mix64(count < length ? hash + count : hash);
    }
    if (lane == 0) t.grams[i] = grams;
}

/* ---- sets ---- */

/* GROUP threads that belong together: a warp, or a block. */
template <int GROUP> static __device__ __forceinline__ void meet()
{
    if (GROUP == WARP)
        __syncwarp();
    else
        __syncthreads();
}

template <int GROUP> static __device__ void sort(uint64_t *a, uint32_t count)
{
    const uint32_t lane = threadIdx.x % GROUP;
    for (uint32_t size = 2; size / 2 < count; size *= 2)
        for (uint32_t step = size / 2; step > 0; step /= 2) {
            const bool first = step == size / 2;
            meet<GROUP>();
            for (uint32_t pair = lane;; pair += GROUP) {
                const uint32_t within = pair % step;
                const uint32_t begin = pair / step * step * 2, low = begin + within;
                if (low >= count) break;
                const uint32_t high = first ? begin + size - 1 - within : low + step;
                if (high >= count) continue;
                const uint64_t x = a[low], y = a[high];
                if (x <= y) continue;
                a[low] = y;
                a[high] = x;
            }
        }
    meet<GROUP>();
}

/* How many of the group's threads before this one say yes, and of all. */
template <int GROUP>
static __device__ __forceinline__ uint32_t rank_of(bool yes, uint32_t *sums, uint32_t *all)
{
    const unsigned lane = threadIdx.x % WARP, votes = __ballot_sync(~0u, yes);
    uint32_t rank = __popc(votes & ((1u << lane) - 1));
    *all = __popc(votes);
    if (GROUP == WARP) return rank;
    const unsigned mine = threadIdx.x / WARP;
    __syncthreads();
    if (lane == 0) sums[mine] = *all;
    __syncthreads();
    *all = 0;
    for (unsigned w = 0; w < GROUP / WARP; w++) {
        if (w < mine) rank += sums[w];
        *all += sums[w];
    }
    return rank;
}

/* Sorted numbers, each once, in front; how many are left. What a thread writes has been read: it is
 * no farther behind, and of those right before a round's first one none was moved there but itself.
 */
template <int GROUP> static __device__ uint32_t unite(uint64_t *a, uint32_t count, uint32_t *sums)
{
    uint32_t kept = 0;
    for (uint32_t base = 0; base < count; base += GROUP) {
        const uint32_t at = base + threadIdx.x % GROUP;
        uint32_t all;
        const uint64_t x = at < count ? a[at] : 0;
        const bool distinct = at < count && (at == 0 || a[at - 1] != x);
        const uint32_t rank = rank_of<GROUP>(distinct, sums, &all);
        meet<GROUP>();
        if (distinct) a[kept + rank] = x;
        kept += all;
        meet<GROUP>();
    }
    return kept;
}

static __device__ uint64_t hash_set(const uint64_t *set, uint32_t count)
{
    uint64_t a = count * GNOMON_NGRAM_WORD, b = GNOMON_NGRAM_BASE;
    uint32_t i = 0;
    for (; i + 2 <= count; i += 2) {
        a = (a ^ set[i]) * GNOMON_NGRAM_BASE;
        a ^= a >> 29;
        b = (b ^ set[i + 1]) * GNOMON_NGRAM_WORD;
        b ^= b >> 31;
    }
    if (i < count) a = (a ^ set[i]) * GNOMON_NGRAM_BASE;
    return gcu_mix64(gcu_mix64(a) + b);
}

/* In 'room', or with NULL where they are. */
template <int GROUP>
static __device__ void make_set(const texts &t, int64_t i, uint64_t *room, uint32_t *sums)
{
    const uint32_t lane = threadIdx.x % GROUP, count = t.grams[i];
    uint64_t *numbers = t.numbers + place_of(t, i), *a = room ? room : numbers;
    for (uint32_t g = lane; room && g < count; g += GROUP)
        a[g] = numbers[g];
    sort<GROUP>(a, count);
    const uint32_t kept = unite<GROUP>(a, count, sums);
    for (uint32_t g = lane; room && g < kept; g += GROUP)
        numbers[g] = a[g];
    if (lane == 0) {
        t.counts[i] = kept;
        t.hashes[i] = hash_set(a, kept);
    }
    meet<GROUP>();
}

static __global__ void __launch_bounds__(WARP *WARPS) few_kernel(texts t)
{
    __shared__ uint64_t room[WARPS][FEW];
    const int64_t i = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP;
    if (i < t.count && t.grams[i] <= FEW) make_set<WARP>(t, i, room[threadIdx.x / WARP], nullptr);
}

static __global__ void __launch_bounds__(THREADS) many_kernel(texts t)
{
    extern __shared__ uint64_t many[];
    __shared__ uint32_t sums[THREADS / WARP];
    for (int64_t i = blockIdx.x; i < t.count; i += gridDim.x) {
        if (t.grams[i] <= FEW) continue;
        make_set<THREADS>(t, i, t.grams[i] <= MANY ? many : nullptr, sums);
    }
}

/* A warp a set: it goes to the host. */
static __global__ void __launch_bounds__(WARP *WARPS)
    pack_kernel(texts t, const uint32_t *ends, uint64_t *members)
{
    const int64_t i = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP;
    if (i >= t.count) return;
    const uint32_t count = t.counts[i];
    const uint64_t *from = t.numbers + place_of(t, i);
    uint64_t *to = members + (ends[i] - count);
    for (uint32_t m = threadIdx.x % WARP; m < count; m += WARP)
        to[m] = from[m];
}

/* ---- slots ---- */

static int64_t numbers_of(const gcu_texts *t)
{
    return t->characters ? t->text_room : t->text_room / 2 + 1;
}

bool gcu_dedup_supported(gcu_state *, const gnomon_dedup_job *job, gcu_why why)
{
    if (job->longest + 1 <= TEXT_LEAST) return true;
    snprintf(why.text, why.size, "it takes texts of %d bytes at most", TEXT_LEAST - 1);
    return false;
}

/* Bytes of a slot on the GPU; on the host they are fewer. */
static size_t slot_bytes(const gcu_texts *t)
{
    return (size_t)t->text_room + 2 * sizeof(uint64_t) * (size_t)numbers_of(t) +
           (size_t)TEXTS * (5 * sizeof(uint32_t) + sizeof(uint64_t)) + t->scan_bytes + 4096;
}

template <typename T>
static gnomon_status take_room(gcu_texts *t, slot *s, int64_t count, T **data, gcu_why why)
{
    void *memory = nullptr;
    const size_t bytes = (size_t)count * sizeof(T);
    const cudaError_t error = gcu_alloc(t->s, &memory, bytes, s->stream);
    *data = static_cast<T *>(memory);
    if (error == cudaErrorMemoryAllocation)
        return gcu_fail(why, GNOMON_ERROR_MEMORY,
                        "texts need %zu bytes more of the GPU's memory than are free", bytes);
    GCU_TRY(why, error);
    return GNOMON_OK;
}

template <typename T> static gnomon_status pin(int64_t count, T **data, gcu_why why)
{
    void *memory = nullptr;
    const cudaError_t error =
        cudaHostAlloc(&memory, (size_t)count * sizeof(T), cudaHostAllocMapped);
    *data = static_cast<T *>(memory);
    if (error == cudaErrorMemoryAllocation) {
        cudaGetLastError();
        return gcu_fail(why, GNOMON_ERROR_MEMORY, "no page-locked memory for texts");
    }
    GCU_TRY(why, error);
    return GNOMON_OK;
}

static gnomon_status open_slot(gcu_texts *t, slot *s, gcu_why why)
{
    const int64_t numbers = numbers_of(t);
    char *scan = nullptr;
    GCU_TRY(why, cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking));
    GCU_TRY(why, cudaEventCreateWithFlags(&s->done, cudaEventDisableTiming));
    gnomon_status status = pin(t->text_room, &s->text, why);
    if (status == GNOMON_OK) status = pin(TEXTS, &s->begins, why);
    if (status == GNOMON_OK) status = pin(TEXTS, &s->lengths, why);
    if (status == GNOMON_OK) status = pin(TEXTS, &s->ends, why);
    if (status == GNOMON_OK) status = pin(TEXTS, &s->hashes, why);
    if (status == GNOMON_OK) status = pin(numbers, &s->members, why);
    if (status == GNOMON_OK) status = take_room(t, s, t->text_room, &s->there, why);
    if (status == GNOMON_OK) status = take_room(t, s, TEXTS, &s->their_begins, why);
    if (status == GNOMON_OK) status = take_room(t, s, TEXTS, &s->their_lengths, why);
    if (status == GNOMON_OK) status = take_room(t, s, TEXTS, &s->grams, why);
    if (status == GNOMON_OK) status = take_room(t, s, TEXTS, &s->counts, why);
    if (status == GNOMON_OK) status = take_room(t, s, TEXTS, &s->their_ends, why);
    if (status == GNOMON_OK) status = take_room(t, s, TEXTS, &s->their_hashes, why);
    if (status == GNOMON_OK) status = take_room(t, s, numbers, &s->tokens, why);
    if (status == GNOMON_OK) status = take_room(t, s, numbers, &s->numbers, why);
    if (status == GNOMON_OK) status = take_room(t, s, (int64_t)t->scan_bytes, &scan, why);
    s->scan = scan;
    return status;
}

static void close_slot(slot *s)
{
    void *const pinned[] = {s->text, s->begins, s->lengths, s->ends, s->hashes, s->members};
    void *const there[] = {s->there,      s->their_begins, s->their_lengths, s->grams,   s->counts,
                           s->their_ends, s->their_hashes, s->tokens,        s->numbers, s->scan};
    if (!s->stream) return;
    for (void *data : there)
        gcu_free(data, s->stream);
    cudaStreamSynchronize(s->stream);
    for (void *data : pinned)
        if (data) cudaFreeHost(data);
    if (s->done) cudaEventDestroy(s->done);
    cudaStreamDestroy(s->stream);
}

static gnomon_status open_all(gcu_texts *t, const gnomon_dedup_job *job, gcu_why why)
{
    const size_t free = gcu_free_memory(t->s) / 16 * 15;
    GCU_TRY(why,
            cub::DeviceScan::InclusiveSum(nullptr, t->scan_bytes, static_cast<uint32_t *>(nullptr),
                                          static_cast<uint32_t *>(nullptr), (int)TEXTS));
    t->scan_bytes += 256;
    /* an eighth of what the host may work in is page-locked */
    const size_t most = (size_t)gnomon_max(0, job->memory_limit / 8);
    t->text_room = TEXT_MOST;
    while (t->text_room > TEXT_LEAST &&
           (GNOMON_DEDUP_SLOTS * slot_bytes(t) > free || GNOMON_DEDUP_SLOTS * slot_bytes(t) > most))
        t->text_room /= 2;
    if (GNOMON_DEDUP_SLOTS * slot_bytes(t) > free)
        return gcu_fail(why, GNOMON_ERROR_MEMORY,
                        "texts need %zu bytes of the GPU's memory, %zu are free",
                        GNOMON_DEDUP_SLOTS * slot_bytes(t), free);
    GCU_TRY(why, cudaFuncSetAttribute(many_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      MANY * (int)sizeof(uint64_t)));
    for (slot &s : t->slots) {
        const gnomon_status status = open_slot(t, &s, why);
        if (status != GNOMON_OK) return status;
    }
    void *map = nullptr;
    cudaStream_t stream = t->slots[0].stream;
    GCU_TRY(why, gcu_alloc(t->s, &map, 256, stream));
    t->map = static_cast<unsigned char *>(map);
    GCU_TRY(why, cudaMemcpyAsync(t->map, job->map, 256, cudaMemcpyHostToDevice, stream));
    GCU_TRY(why, cudaStreamSynchronize(stream));
    return GNOMON_OK;
}

gnomon_status gcu_dedup_open(gcu_state *s, const gnomon_dedup_job *job, gcu_texts **out,
                             gcu_why why)
{
    gcu_texts *t = static_cast<gcu_texts *>(calloc(1, sizeof *t));
    if (!t) return gcu_fail(why, GNOMON_ERROR_MEMORY, "no memory for texts");
    t->s = s;
    t->length = job->length;
    t->characters = job->characters;
    const gnomon_status status = open_all(t, job, why);
    if (status == GNOMON_OK)
        *out = t;
    else
        gcu_dedup_close(t);
    return status;
}

void gcu_dedup_close(gcu_texts *t)
{
    if (t->slots[0].stream) gcu_free(t->map, t->slots[0].stream);
    for (slot &s : t->slots)
        close_slot(&s);
    free(t);
}

void gcu_dedup_slot(gcu_texts *t, gnomon_dedup_slot *out)
{
    const slot *s = &t->slots[t->pushed % GNOMON_DEDUP_SLOTS];
    *out = {s->text, s->begins, s->lengths, t->text_room, TEXTS};
}

gnomon_status gcu_dedup_push(gcu_texts *t, int64_t count, int64_t bytes, gcu_why why)
{
    slot *s = &t->slots[t->pushed % GNOMON_DEDUP_SLOTS];
    const size_t words = (size_t)count * sizeof(uint32_t);
    const unsigned grid = (unsigned)((count + WARPS - 1) / WARPS);
    const cudaStream_t stream = s->stream;
    if (count > 0) {
        const texts x = {t->map,          reinterpret_cast<const unsigned char *>(s->there),
                         s->their_begins, s->their_lengths,
                         s->tokens,       s->numbers,
                         s->grams,        s->counts,
                         s->their_hashes, count,
                         (int)t->length,  t->characters};
        GCU_TRY(why,
                cudaMemcpyAsync(s->there, s->text, (size_t)bytes, cudaMemcpyHostToDevice, stream));
        GCU_TRY(why,
                cudaMemcpyAsync(s->their_begins, s->begins, words, cudaMemcpyHostToDevice, stream));
        GCU_TRY(why, cudaMemcpyAsync(s->their_lengths, s->lengths, words, cudaMemcpyHostToDevice,
                                     stream));
        ngrams_kernel<<<grid, WARP * WARPS, 0, stream>>>(x);
        few_kernel<<<grid, WARP * WARPS, 0, stream>>>(x);
        many_kernel<<<gcu_grid(count, 1, 2 * t->s->gpu.sms), THREADS, MANY * sizeof(uint64_t),
                      stream>>>(x);
        GCU_TRY(why, cudaGetLastError());
        GCU_TRY(why, cub::DeviceScan::InclusiveSum(s->scan, t->scan_bytes, s->counts, s->their_ends,
                                                   (int)count, stream));
        pack_kernel<<<grid, WARP * WARPS, 0, stream>>>(x, s->their_ends, s->members);
        GCU_TRY(why, cudaGetLastError());
        GCU_TRY(why,
                cudaMemcpyAsync(s->ends, s->their_ends, words, cudaMemcpyDeviceToHost, stream));
        GCU_TRY(why, cudaMemcpyAsync(s->hashes, s->their_hashes, 2 * words, cudaMemcpyDeviceToHost,
                                     stream));
    }
    GCU_TRY(why, cudaEventRecord(s->done, stream));
    t->pushed++;
    return GNOMON_OK;
}

gnomon_status gcu_dedup_take(gcu_texts *t, gnomon_dedup_sets *sets, gcu_why why)
{
    slot *s = &t->slots[t->taken % GNOMON_DEDUP_SLOTS];
    GCU_TRY(why, cudaEventSynchronize(s->done));
    t->taken++;
    *sets = {s->ends, s->hashes, s->members};
    return GNOMON_OK;
}

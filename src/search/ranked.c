#include "search/ranked.h"

#include <math.h>
#include <string.h>

static void sift_down(gnomon_ranked *heap, int64_t count, int64_t at)
{
    const gnomon_ranked point = heap[at];
    for (;;) {
        int64_t child = 2 * at + 1;
        if (child >= count) break;
        if (child + 1 < count && gnomon_ranked_before(heap[child], heap[child + 1])) child++;
        if (!gnomon_ranked_before(point, heap[child])) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = point;
}

void gnomon_nearest_offer(gnomon_nearest *nearest, gnomon_ranked point)
{
    gnomon_ranked *heap = nearest->heap;
    if (nearest->count == nearest->k) {
        if (!gnomon_ranked_before(point, heap[0])) return;
        heap[0] = point;
        sift_down(heap, nearest->count, 0);
        return;
    }
    int64_t at = nearest->count++;
    while (at > 0 && gnomon_ranked_before(heap[(at - 1) / 2], point)) {
        heap[at] = heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap[at] = point;
}

static void heap_sort(gnomon_ranked *points, int64_t count)
{
    for (int64_t at = count / 2 - 1; at >= 0; at--)
        sift_down(points, count, at);
    for (int64_t last = count - 1; last > 0; last--) {
        const gnomon_ranked farthest = points[0];
        points[0] = points[last];
        points[last] = farthest;
        sift_down(points, last, 0);
    }
}

static gnomon_ranked median(gnomon_ranked a, gnomon_ranked b, gnomon_ranked c)
{
    if (gnomon_ranked_before(b, a)) {
        const gnomon_ranked swap = a;
        a = b;
        b = swap;
    }
    return gnomon_ranked_before(c, a) ? a : gnomon_ranked_before(c, b) ? c : b;
}

/* Quicksort down to runs of FEW, which are left to the insertion that follows; a heap where it goes
 * too deep. */
enum { FEW = 24 };

static void sort_roughly(gnomon_ranked *points, int64_t count, int depth)
{
    while (count > FEW) {
        if (depth-- == 0) {
            heap_sort(points, count);
            return;
        }
        const gnomon_ranked pivot = median(points[0], points[count / 2], points[count - 1]);
        int64_t i = 0, j = count - 1;
        while (i <= j) {
            while (gnomon_ranked_before(points[i], pivot))
                i++;
            while (gnomon_ranked_before(pivot, points[j]))
                j--;
            if (i > j) break;
            const gnomon_ranked swap = points[i];
            points[i++] = points[j];
            points[j--] = swap;
        }
        sort_roughly(points + i, count - i, depth);
        count = j + 1;
    }
}

/* Insertion: of what is nearly in order. */
static void sort_finely(gnomon_ranked *points, int64_t count)
{
    for (int64_t i = 1; i < count; i++) {
        const gnomon_ranked point = points[i];
        int64_t at = i;
        for (; at > 0 && gnomon_ranked_before(point, points[at - 1]); at--)
            points[at] = points[at - 1];
        points[at] = point;
    }
}

static int depth_of(int64_t count)
{
    int depth = 4;
    for (int64_t n = count; n > 0; n /= 2)
        depth += 2;
    return depth;
}

/* Turns points that are in the opposite order round; whether they were. */
static bool turn(gnomon_ranked *points, int64_t count)
{
    for (int64_t i = 1; i < count; i++)
        if (!gnomon_ranked_before(points[i], points[i - 1])) return false;
    for (int64_t i = 0, j = count - 1; i < j; i++, j--) {
        const gnomon_ranked swap = points[i];
        points[i] = points[j];
        points[j] = swap;
    }
    return true;
}

void gnomon_ranked_sort(gnomon_ranked *points, int64_t count)
{
    if (turn(points, count)) return;
    sort_roughly(points, count, depth_of(count));
    sort_finely(points, count);
}

/* What keys are sorted by: their place between the least and the largest, in two digits, with their
 * number below. */
enum { DIGIT = 10, DIGITS = 1 << DIGIT, PLACES = 1 << 2 * DIGIT };

static void sort_by_digit(const uint64_t *from, int64_t count, int shift, uint32_t *places,
                          uint64_t *to)
{
    uint32_t before = 0;
    for (int d = 0; d < DIGITS; d++) {
        const uint32_t here = places[d];
        places[d] = before;
        before += here;
    }
    for (int64_t i = 0; i < count; i++)
        to[places[from[i] >> shift & (DIGITS - 1)]++] = from[i];
}

/* The least and the largest key; false where one is not a number. */
static bool range_of(const gnomon_ranked *points, int64_t count, double *least, double *largest)
{
    enum { CHAINS = 4 }; /* side by side: one alone waits for itself */
    double low[CHAINS], high[CHAINS];
    bool numbers = true;
    for (int c = 0; c < CHAINS; c++)
        low[c] = high[c] = points[0].key;
    for (int64_t i = 0; i < count; i += CHAINS) {
        for (int c = 0; c < CHAINS; c++) {
            const double key = points[i + c < count ? i + c : i].key;
            low[c] = key < low[c] ? key : low[c];
            high[c] = key > high[c] ? key : high[c];
            numbers &= key == key;
        }
    }
    *least = fmin(fmin(low[0], low[1]), fmin(low[2], low[3]));
    *largest = fmax(fmax(high[0], high[1]), fmax(high[2], high[3]));
    return numbers;
}

/* By a radix sort, which no branch that nothing foretells slows down: few points share a place, and
 * an insertion puts those in order. */
int64_t gnomon_ranked_first(const gnomon_ranked *points, int64_t count, int64_t most,
                            uint64_t *spare, gnomon_ranked *out)
{
    enum { SHORT = 64 };
    double least = 0, largest = 0;
    const bool numbers = count > 0 && range_of(points, count, &least, &largest);
    const double by = (PLACES - 1) / (largest - least);
    /* keys that overflow, or are all alike; one that is not a number has no place */
    const bool apart = numbers && largest > least && largest - least < HUGE_VAL && by < HUGE_VAL;
    if (count < SHORT || count > UINT32_MAX || !apart) {
        memcpy(out, points, (size_t)count * sizeof *out);
        gnomon_ranked_sort(out, count);
        return count < most ? count : most;
    }
    uint32_t places[2][DIGITS] = {0};
    uint64_t *other = spare + count;
    for (int64_t i = 0; i < count; i++) {
        const uint32_t place = (uint32_t)((points[i].key - least) * by);
        spare[i] = (uint64_t)place << 32 | (uint64_t)i;
        places[0][place & (DIGITS - 1)]++;
        places[1][place >> DIGIT]++;
    }
    sort_by_digit(spare, count, 32, places[0], other);
    sort_by_digit(other, count, 32 + DIGIT, places[1], spare);
    int64_t some = count < most ? count : most;
    while (some < count && spare[some] >> 32 == spare[some - 1] >> 32)
        some++;
    for (int64_t i = 0, begin = 0; i < some; i++) {
        out[i] = points[(uint32_t)spare[i]];
        if (i + 1 < some && spare[i + 1] >> 32 == spare[i] >> 32) continue;
        const int64_t alike = i + 1 - begin;
        if (alike > FEW) sort_roughly(out + begin, alike, depth_of(alike));
        begin = i + 1;
    }
    sort_finely(out, some);
    return some < most ? some : most;
}

/* Those above the pivot (or, with 'equal', those that are it) to the front; how many. No branch
 * depends on the values, which come in no order. */
static int64_t divide(float *values, int64_t count, float pivot, bool equal)
{
    int64_t front = 0;
    for (int64_t i = 0; i < count; i++) {
        const float value = values[i];
        values[i] = values[front];
        values[front] = value;
        front += equal ? value == pivot : value > pivot;
    }
    return front;
}

float gnomon_rank_largest(float *values, int64_t count, int64_t rank)
{
    for (;;) {
        const float a = values[0], b = values[count / 2], c = values[count - 1];
        const float pivot = a > b ? (b > c ? b : a > c ? c : a) : (a > c ? a : b > c ? c : b);
        const int64_t above = divide(values, count, pivot, false);
        if (rank <= above) {
            count = above;
            continue;
        }
        values += above;
        count -= above;
        rank -= above;
        const int64_t alike = divide(values, count, pivot, true);
        if (rank <= alike) return pivot;
        values += alike;
        count -= alike;
        rank -= alike;
    }
}

float gnomon_rank_about(float *values, int64_t count, int64_t rank)
{
    enum { LEAST = 128, BUCKETS = 512, CHAINS = 4 };
    float low[CHAINS], high[CHAINS];
    if (count < LEAST || count > UINT32_MAX) return gnomon_rank_largest(values, count, rank);
    for (int c = 0; c < CHAINS; c++)
        low[c] = high[c] = values[0];
    for (int64_t i = 0; i < count; i += CHAINS) {
        for (int c = 0; c < CHAINS; c++) {
            const float value = values[i + c < count ? i + c : i];
            low[c] = value < low[c] ? value : low[c];
            high[c] = value > high[c] ? value : high[c];
        }
    }
    const float least = fminf(fminf(low[0], low[1]), fminf(low[2], low[3]));
    const float range = fmaxf(fmaxf(high[0], high[1]), fmaxf(high[2], high[3])) - least;
    const float by = BUCKETS * (1 - 0x1p-20f) / range;
    if (!(range < HUGE_VALF && by < HUGE_VALF)) return gnomon_rank_largest(values, count, rank);
    uint32_t counts[BUCKETS] = {0};
    for (int64_t i = 0; i < count; i++)
        counts[(uint32_t)((values[i] - least) * by)]++;
    int bucket = BUCKETS;
    int64_t reach = 0;
    for (; reach < rank; reach += counts[bucket])
        bucket--;
    if (reach - rank > count / 16) return gnomon_rank_largest(values, count, rank); /* a crowd */
    /* less than where the bucket begins, by more than what rounding takes */
    const float begin = least + range * ((float)bucket / BUCKETS - 0x1p-18f);
    return begin - fabsf(begin) * 0x1p-22f;
}

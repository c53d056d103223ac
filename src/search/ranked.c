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

/* Buckets of equal widths from the least key to the largest: those after the last one wanted are
 * left out. Keys of neighbours crowd at the far end, where more buckets than points still leave few
 * in each: the insertion that ends it would else wait for branches that nothing foretells. */
int64_t gnomon_ranked_first(gnomon_ranked *points, int64_t count, int64_t most,
                            gnomon_ranked *spare, uint32_t *counts)
{
    enum { SHORT = 64, EACH = GNOMON_RANKED_BUCKETS };
    double least = HUGE_VAL, largest = -HUGE_VAL;
    bool numbers = true;
    for (int64_t i = 0; i < count; i++) {
        least = points[i].key < least ? points[i].key : least;
        largest = points[i].key > largest ? points[i].key : largest;
        numbers &= points[i].key == points[i].key;
    }
    const double by = (double)(EACH * count - 1) / (largest - least);
    /* keys that overflow, or are all alike; one that is not a number has no bucket */
    const bool apart = numbers && largest > least && largest - least < HUGE_VAL && by < HUGE_VAL;
    if (count < SHORT || count > UINT32_MAX / EACH || !apart) {
        gnomon_ranked_sort(points, count);
        return count < most ? count : most;
    }
    memset(counts, 0, (size_t)(EACH * count) * sizeof *counts);
    for (int64_t i = 0; i < count; i++)
        counts[(uint32_t)((points[i].key - least) * by)]++;
    uint32_t before = 0, crowd = 0;
    int64_t buckets = 0;
    for (; buckets < EACH * count && before < most; buckets++) {
        const uint32_t here = counts[buckets];
        counts[buckets] = before;
        before += here;
        crowd = here > crowd ? here : crowd;
    }
    /* the others in any order behind them: a branch would be mispredicted */
    uint32_t others = before;
    memcpy(spare, points, (size_t)count * sizeof *spare);
    for (int64_t i = 0; i < count; i++) {
        const uint32_t bucket = (uint32_t)((spare[i].key - least) * by);
        uint32_t *place = bucket < buckets ? &counts[bucket] : &others;
        points[(*place)++] = spare[i];
    }
    uint32_t begin = 0;
    for (int64_t b = 0; b < buckets && crowd > FEW; b++) {
        sort_roughly(points + begin, counts[b] - begin, depth_of(counts[b] - begin));
        begin = counts[b];
    }
    sort_finely(points, before);
    return before < most ? before : most;
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
    enum { SAMPLE = 256, SPARE = 12 }; /* three halves of what such a sample is off by, at most */
    float sample[SAMPLE];
    const int64_t place = rank * SAMPLE / count + SPARE;
    if (count < 4 * SAMPLE || place >= SAMPLE) return gnomon_rank_largest(values, count, rank);
    for (int64_t i = 0; i < SAMPLE; i++)
        sample[i] = values[i * (count / SAMPLE)];
    const float about = gnomon_rank_largest(sample, SAMPLE, place);
    int64_t reach = 0;
    for (int64_t i = 0; i < count; i++)
        reach += values[i] >= about;
    return reach >= rank ? about : gnomon_rank_largest(values, count, rank);
}

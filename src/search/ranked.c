#include "search/ranked.h"

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

void gnomon_ranked_sort(gnomon_ranked *points, int64_t count)
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

float gnomon_rank_largest(float *values, int64_t count, int64_t rank)
{
    int64_t low = 0, high = count - 1;
    const int64_t at = rank - 1;
    while (low < high) {
        /* the median of three, then Hoare's partition, which stops at equal values */
        const float a = values[low], b = values[low + (high - low) / 2], c = values[high];
        const float pivot = a > b ? (b > c ? b : a > c ? c : a) : (a > c ? a : b > c ? c : b);
        int64_t i = low, j = high;
        while (i <= j) {
            while (values[i] > pivot)
                i++;
            while (values[j] < pivot)
                j--;
            if (i > j) break;
            const float swap = values[i];
            values[i++] = values[j];
            values[j--] = swap;
        }
        if (at <= j)
            high = j;
        else if (at >= i)
            low = i;
        else
            return values[at];
    }
    return values[at];
}

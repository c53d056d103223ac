/* Memory, and sorting, of jobs on sets. */
#include "cuda/sets/sets.h"

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>

gnomon_status gcu_set_alloc(gcu_set_memory *m, size_t bytes, void **data)
{
    *data = nullptr;
    if (m->count == GCU_SET_PARTS)
        return gcu_fail(m->why, GNOMON_ERROR_INTERNAL, "too many pieces of device memory");
    if (bytes == 0) bytes = 1;
    GCU_TRY(m->why, gcu_alloc(m->s, data, bytes, m->stream));
    m->part[m->count] = *data;
    m->part_bytes[m->count++] = bytes;
    m->bytes += bytes;
    return GNOMON_OK;
}

void gcu_set_free(gcu_set_memory *m, int count)
{
    while (m->count > count) {
        m->count--;
        gcu_free(m->part[m->count], m->stream);
        m->bytes -= m->part_bytes[m->count];
    }
}

/* Calls 'work' for the bytes it wants, and with them. */
template <typename Work> static gnomon_status with_room(gcu_set_memory *m, Work work)
{
    const int held = m->count;
    size_t bytes = 0;
    void *room = nullptr;
    GCU_TRY(m->why, work(nullptr, &bytes));
    const gnomon_status status = gcu_set_alloc(m, bytes, &room);
    if (status != GNOMON_OK) return status;
    const cudaError_t error = work(room, &bytes);
    gcu_set_free(m, held);
    return error == cudaSuccess ? GNOMON_OK : gcu_status(m->why, error, "sorting");
}

gnomon_status gcu_set_sort(gcu_set_memory *m, uint64_t *const keys[2], int64_t count, int low,
                           int high)
{
    if (count == 0) return GNOMON_OK;
    return with_room(m, [&](void *room, size_t *bytes) {
        return cub::DeviceRadixSort::SortKeys(room, *bytes, keys[0], keys[1], count, low, high,
                                              m->stream);
    });
}

gnomon_status gcu_set_sort_pairs(gcu_set_memory *m, uint64_t *const keys[2],
                                 uint32_t *const values[2], int64_t count, int low, int high)
{
    if (count == 0) return GNOMON_OK;
    return with_room(m, [&](void *room, size_t *bytes) {
        return cub::DeviceRadixSort::SortPairs(room, *bytes, keys[0], keys[1], values[0], values[1],
                                               count, low, high, m->stream);
    });
}

gnomon_status gcu_set_sum(gcu_set_memory *m, int64_t *values, int64_t count)
{
    if (count == 0) return GNOMON_OK;
    return with_room(m, [&](void *room, size_t *bytes) {
        return cub::DeviceScan::ExclusiveSum(room, *bytes, values, values, count, m->stream);
    });
}

gnomon_status gcu_set_unite(gcu_set_memory *m, const uint64_t *from, uint64_t *to, int64_t count,
                            int64_t *left)
{
    int64_t *there = nullptr;
    *left = 0;
    if (count == 0) return GNOMON_OK;
    const int held = m->count;
    gnomon_status status = gcu_set_room(m, 1, &there);
    if (status == GNOMON_OK)
        status = with_room(m, [&](void *room, size_t *bytes) {
            return cub::DeviceSelect::Unique(room, *bytes, from, to, there, count, m->stream);
        });
    if (status != GNOMON_OK) return status;
    GCU_TRY(m->why, cudaMemcpyAsync(left, there, 8, cudaMemcpyDeviceToHost, m->stream));
    GCU_TRY(m->why, cudaStreamSynchronize(m->stream));
    gcu_set_free(m, held);
    return GNOMON_OK;
}

/* From the host's memory to the host's memory: the whole call, beside a plain copy of the same
 * bytes to the GPU in the same run. The plugin is the one that GNOMON_PLUGIN_DIR names. */
#include "bench.cuh"

#include <gnomon.h>

#include <chrono>

#define GNOMON_CHECK(ctx, call)                                         \
    do {                                                                \
        if ((call) != GNOMON_OK) {                                      \
            fprintf(stderr, "%s: %s\n", #call, gnomon_last_error(ctx)); \
            exit(1);                                                    \
        }                                                               \
    } while (0)

template <typename Work> static bench_time by_clock(Work work, int runs)
{
    std::vector<double> ms;
    for (int run = -1; run < runs; run++) {
        const auto begin = std::chrono::steady_clock::now();
        work();
        const std::chrono::duration<double, std::milli> spent =
            std::chrono::steady_clock::now() - begin;
        if (run >= 0) ms.push_back(spent.count());
    }
    return bench_summary(ms);
}

struct shape {
    const char *name;
    gnomon_kind kind;
    int64_t n, d, k;
    bool colwise;
    double density;
    int64_t nonzeros;
};

static const shape shapes[] = {
    {"sjlt s=1, many points", GNOMON_SJLT, 65536, 4096, 256, false, 0, 1},
    {"rademacher, many points", GNOMON_RADEMACHER, 65536, 4096, 64, false, 0, 0},
    {"very-sparse, few wide points", GNOMON_VERY_SPARSE, 32, 1 << 23, 1024, false, 1e-4, 0},
    {"very-sparse, coordinates contiguous", GNOMON_VERY_SPARSE, 32, 1 << 23, 1024, true, 1e-4, 0},
    {"rademacher, few wide points", GNOMON_RADEMACHER, 32, 1 << 23, 256, false, 0, 0},
    {"srht, many points", GNOMON_SRHT, 65536, 4096, 256, false, 0, 0},
};

int main(int argc, char **argv)
{
    bench_json json = bench_open("transfer", argc, argv);
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    options.device = "cuda";
    gnomon_context *ctx = nullptr;
    GNOMON_CHECK(nullptr, gnomon_context_create(&options, &ctx));
    const int64_t most = (int64_t)65536 * 4096;
    float *pinned, *device, *sketch;
    BENCH_CHECK(cudaMallocHost(&pinned, most * sizeof(float)));
    BENCH_CHECK(cudaMallocHost(&sketch, (size_t)65536 * 256 * sizeof(float)));
    BENCH_CHECK(cudaMalloc(&device, most * sizeof(float)));
    bench_fill(device, most, 1);
    BENCH_CHECK(cudaMemcpy(pinned, device, most * sizeof(float), cudaMemcpyDeviceToHost));
    float *pageable = static_cast<float *>(malloc(most * sizeof(float)));
    float *plain_sketch = static_cast<float *>(malloc((size_t)65536 * 256 * sizeof(float)));
    if (!pageable || !plain_sketch) return 1;
    memcpy(pageable, pinned, most * sizeof(float));
    memset(plain_sketch, 1, (size_t)65536 * 256 * sizeof(float));
    const double bytes = (double)most * sizeof(float);
    const bench_time link = by_clock(
        [&] {
            BENCH_CHECK(cudaMemcpyAsync(device, pinned, (size_t)bytes, cudaMemcpyHostToDevice));
            BENCH_CHECK(cudaDeviceSynchronize());
        },
        9);
    const bench_time slow = by_clock(
        [&] { BENCH_CHECK(cudaMemcpy(device, pageable, (size_t)bytes, cudaMemcpyHostToDevice)); },
        3);
    BENCH_CHECK(cudaFree(device));
    printf("plain copy of %.2f GB: pinned %.2f GB/s, pageable %.2f GB/s; %d threads\n",
           bytes * 1e-9, bytes * 1e-6 / link.median_ms, bytes * 1e-6 / slow.median_ms,
           gnomon_context_threads(ctx));
    bench_record(&json, "\"what\": \"plain copy\", \"pinned_GBps\": %.3f, \"pageable_GBps\": %.3f",
                 bytes * 1e-6 / link.median_ms, bytes * 1e-6 / slow.median_ms);
    printf("%-38s %9s %9s %9s %9s\n", "project, host to host", "pinned ms", "of link", "pageable",
           "of link");
    for (const shape &s : shapes) {
        gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
        d.kind = s.kind;
        d.k = s.k;
        d.d = s.d;
        d.seed = 7;
        d.density = s.density;
        d.nonzeros = s.nonzeros;
        gnomon_operator *op;
        GNOMON_CHECK(ctx, gnomon_operator_create(ctx, &d, &op));
        double ms[2];
        bool done = true;
        for (int pageable_now = 0; pageable_now < 2 && done; pageable_now++) {
            float *from = pageable_now ? pageable : pinned;
            const gnomon_matrix x = s.colwise ? gnomon_matrix_colmajor(from, GNOMON_F32, s.n, s.d)
                                              : gnomon_matrix_rowmajor(from, GNOMON_F32, s.n, s.d);
            const gnomon_matrix y =
                gnomon_matrix_rowmajor(pageable_now ? plain_sketch : sketch, GNOMON_F32, s.n, s.k);
            if (gnomon_sketch(ctx, op, &x, &y, nullptr) != GNOMON_OK) {
                printf("%-38s %s\n", s.name, gnomon_last_error(ctx));
                done = false;
                break;
            }
            ms[pageable_now] =
                by_clock([&] { GNOMON_CHECK(ctx, gnomon_sketch(ctx, op, &x, &y, nullptr)); },
                         pageable_now ? 5 : 9)
                    .median_ms;
        }
        gnomon_operator_destroy(op);
        if (!done) continue;
        const double part = (double)s.n * (double)s.d * sizeof(float) / bytes;
        printf("%-38s %9.2f %8.1f%% %9.2f %8.1f%%\n", s.name, ms[0],
               100 * part * link.median_ms / ms[0], ms[1], 100 * part * link.median_ms / ms[1]);
        bench_record(&json,
                     "\"what\": \"%s\", \"n\": %lld, \"d\": %lld, \"k\": %lld, \"pinned_ms\": "
                     "%.4f, \"pinned_of_link\": %.4f, \"pageable_ms\": %.4f, "
                     "\"pageable_of_link\": %.4f",
                     s.name, (long long)s.n, (long long)s.d, (long long)s.k, ms[0],
                     part * link.median_ms / ms[0], ms[1], part * link.median_ms / ms[1]);
    }
    bench_close(&json);
    gnomon_context_destroy(ctx);
    return 0;
}

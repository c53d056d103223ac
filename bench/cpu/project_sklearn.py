"""Times scikit-learn's random projections on points of the shape that bench_project uses.

Prints a table and, with --json, writes the medians. The points are float32, as in bench_project;
the projections run with their defaults (density "auto", which is 1/sqrt(D), dense output).
"""
import argparse
import json
import os
import statistics
import time


def median_ms(call, repeats):
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=2000)
    parser.add_argument("--dims", type=int, default=20000)
    parser.add_argument("-k", type=int, action="append")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json")
    options = parser.parse_args()
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ[name] = str(options.threads)  # read when NumPy loads its BLAS

    import numpy
    import sklearn
    from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

    x = numpy.random.default_rng(1).uniform(-1, 1, (options.points, options.dims))
    x = x.astype(numpy.float32)
    kinds = {
        "GaussianRandomProjection": lambda k: GaussianRandomProjection(k, random_state=1),
        "SparseRandomProjection": lambda k: SparseRandomProjection(
            k, random_state=1, dense_output=True),
    }
    print(f"scikit-learn {sklearn.__version__}, NumPy {numpy.__version__}, "
          f"{options.threads} threads; medians of {options.rounds}")
    print(f"  {'projection':26} {'k':>6} {'fit ms':>10} {'transform ms':>14}")
    results = []
    for k in options.k or [256, 1024]:
        for name, make in kinds.items():
            fit = median_ms(lambda: make(k).fit(x), options.rounds)
            projection = make(k).fit(x)
            transform = median_ms(lambda: projection.transform(x), options.rounds)
            print(f"  {name:26} {k:6} {fit:10.1f} {transform:14.1f}")
            results.append({"projection": name, "k": k, "fit_ms": round(fit, 2),
                            "transform_ms": round(transform, 2)})
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump({"sklearn": sklearn.__version__, "numpy": numpy.__version__,
                       "threads": options.threads, "rounds": options.rounds,
                       "points": options.points, "dims": options.dims,
                       "results": results}, out, indent=1)


if __name__ == "__main__":
    main()

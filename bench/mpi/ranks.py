"""Jobs on several ranks of one host beside the plain command: seconds, and what messages cost.

usage: ranks.py BUILD [--points N] [--clusters N] [--rounds 3] [--ranks 1 2 3 4] [--threads 1 2] [--job NAME ...]
                [--folder DIR] [--sparse FILE.npz] [--output FILE.json]

Each job runs as the plain command with --threads, then under MPICH's mpiexec with one thread to a rank, as
often as --rounds; the median counts, with the start of the processes. Outputs must have the plain command's bytes.
messages.py measures the messages. Needs NumPy."""
import argparse
import json
import os
import platform
import statistics
import subprocess
import time

import numpy as np

JOBS = {
    "project": "project wide.npy -k 256 --operator gaussian -o {}.npy",
    "neighbors": "neighbors base.npy queries.npy -k 10 -o {}.npy",
    "join": "join clusters.npy --threshold 4 -o {}.npy",
    "svd": "svd tall.npy -k 50 -o {}.npz",
    "lstsq": "lstsq tall.npy right.npy -o {}.npy",
    "hosvd": "hosvd cube.npy --ranks 40,40,40 -o {}.npz",
    "sparse-svd": "svd sparse.npz -k 60 -o {}.npz",
}


def make(folder, points, clusters):
    rng = np.random.default_rng(1)

    def save(name, rows, cols, centres=0):
        path = os.path.join(folder, name)
        if os.path.exists(path):
            return
        out = np.lib.format.open_memmap(path, "w+", "f4", (rows, cols))
        near = rng.standard_normal((max(centres, 1), cols)).astype("f4") * 2
        for at in range(0, rows, 1 << 16):
            some = rng.standard_normal((min(1 << 16, rows - at), cols)).astype("f4")
            out[at:at + len(some)] = some + near[rng.integers(0, len(near), len(some))] if not centres else \
                some * 0.3 + near[rng.integers(0, centres, len(some))]

    save("wide.npy", points // 2, 2048)
    save("base.npy", points, 128, points // 100)
    save("queries.npy", points // 50, 128, points // 100)
    save("clusters.npy", clusters, 128, clusters // 100)
    save("tall.npy", points // 2, 512)
    save("right.npy", points // 2, 1)
    if not os.path.exists("cube.npy"):
        cube = np.lib.format.open_memmap("cube.npy", "w+", "f4", (512, 512, 512))
        for part in cube:  # the work does not depend on the numbers
            part[:] = rng.standard_normal(part.shape)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--points", type=int, default=1000000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ranks", type=int, nargs="*", default=[1, 2, 3, 4])
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--clusters", type=int, help="points of the join; half of --points by default")
    parser.add_argument("--job", nargs="*", default=list(JOBS))
    parser.add_argument("--folder", default="/tmp/ranks")
    parser.add_argument("--sparse", help="CSR rows of sparse-svd, as bench/cpu/sparse_svd.py has them")
    parser.add_argument("--output")
    o = parser.parse_args()
    build = os.path.abspath(o.build)
    sparse = o.sparse and os.path.abspath(o.sparse)
    os.makedirs(o.folder, exist_ok=True)
    os.chdir(o.folder)
    make(".", o.points, o.clusters or o.points // 2)
    if sparse and not os.path.exists("sparse.npz"):
        os.symlink(sparse, "sparse.npz")
    if not os.path.exists("sparse.npz"):
        o.job = [name for name in o.job if name != "sparse-svd"]
    gnomon = f"{build}/bin/gnomon"
    around = {**os.environ, "GNOMON_PLUGIN_DIR": build, "GNOMON_LIBRARY": f"{build}/libgnomon.so"}

    def run(words):
        begin = time.perf_counter()
        done = subprocess.run(words, env=around, check=True, capture_output=True, text=True)
        return time.perf_counter() - begin, done.stdout

    def digest(path):
        return subprocess.run(["cksum", path], check=True, capture_output=True).stdout.split()[0]

    figures = []
    for name in o.job:
        times, whole = {}, None
        plain, got = (next(word for word in JOBS[name].format(x).split() if word.startswith(x + "."))
                      for x in ("plain", "got"))
        for _ in range(o.rounds):
            for threads in o.threads:
                words = JOBS[name].format("plain").split()
                times.setdefault(f"{threads} threads", []).append(
                    run([gnomon, *words, "--threads", str(threads)])[0])
            whole = whole or digest(plain)
            for ranks in o.ranks:
                words = ["mpiexec.mpich", "-n", str(ranks), gnomon, *JOBS[name].format("got").split()]
                times.setdefault(f"{ranks} ranks", []).append(
                    run([*words, "--threads", "1", "--comm", "mpi"])[0])
                assert digest(got) == whole, (name, ranks)
        middle = {key: statistics.median(value) for key, value in times.items()}
        line = {"job": name, "seconds": times, "median": middle}
        if "2 ranks" in middle:
            line["efficiency"] = middle["2 threads"] / middle["2 ranks"]
        print(name, {key: round(value, 2) for key, value in middle.items()}, round(line.get("efficiency", 0), 3),
              flush=True)
        figures.append(line)
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "messages.py")
    messages = {}
    for engine in ("mpich", "openmpi"):
        words = [f"mpiexec.{engine}", "-n", "2", "/usr/bin/python3", script, engine]
        if engine == "openmpi" and os.getuid() == 0:
            words.insert(1, "--allow-run-as-root")
        messages[engine] = json.loads(run(words)[1])
    print(messages)
    if o.output:
        with open(o.output, "w", encoding="utf-8") as file:
            json.dump({"machine": platform.processor() or platform.machine(), "cores": os.cpu_count(),
                       "points": o.points, "join_points": o.clusters or o.points // 2, "jobs": figures,
                       "messages": messages}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Every job at 1, 2, 4, ... threads, beside what the machine itself gains: SGEMM by NumPy's BLAS and a read of 1 GiB.

usage: threads.py [--threads 1 2 4 8 16] [--rounds 3] [--job TEXT]... [--gnomon COMMAND] [--ceilings PROGRAM]
                  [--commit TEXT] [--work FOLDER] [--before OLD.json] [-o RECORD.json]

Needs the Python package (PYTHONPATH, GNOMON_LIBRARY) and NumPy; SciPy for sparse points; the command for jobs on files. The
data are made once, in FOLDER (default: a temporary one, in /dev/shm if it has 3 GB). Each number of threads has a process
of its own, since OpenBLAS reads its number once, and in it SGEMM and the read beside the jobs. A job's time is the
least of the rounds after one that isn't counted: as many as half a second takes, at least one. 'busy' is processor
seconds by wall seconds: what lies between it and the threads has waited. With the level amx and the program of
bench/cpu/ceilings.c the products of 8-bit integers alone are measured too, which most of some jobs' work are ('amx').
--before puts the cases of a record that another build of the library made just before into the new one, for the page.
"""
import argparse
import concurrent.futures
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np

ENOUGH = 0.5  # seconds of a job's rounds
AMX = "AMX, int8"


def clusters(seed, n, d, count=64):
    """Points around centers, as data has them: uniform points have no near neighbours to speak of."""
    rng = np.random.default_rng(seed)
    centers = rng.standard_normal((count, d), np.float32)
    return centers[rng.integers(0, count, n)] + np.float32(0.3) * rng.standard_normal((n, d), np.float32)


def normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def low_rank(seed, m, rank, n):
    return normal(seed, m, rank) @ normal(seed + 1, rank, n)


def zipf(seed, n, d, length, tail):
    """Sparse rows whose columns follow Zipf's law, and values uniform in [0, 1)."""
    import scipy.sparse
    rng = np.random.default_rng(seed)
    columns = np.minimum(rng.pareto(tail, size=n * length) * 3, d - 1).astype(np.int64)
    x = scipy.sparse.csr_matrix((rng.random(n * length), columns, np.arange(0, n * length + 1, length)), (n, d))
    x.sum_duplicates()
    return x


ARRAYS = {  # those that take long to make
    "rows": lambda: normal(1, 2048, 1 << 16),
    "wide": lambda: normal(2, 4, 1 << 22),
    "many": lambda: normal(3, 1 << 16, 1024),
    "128": lambda: clusters(4, 210000, 128),
    "784": lambda: clusters(5, 70000, 784),
    "uniform": lambda: np.random.default_rng(6).random((201000, 128), np.float32),
    "hashed": lambda: clusters(7, 110000, 128, 1000),
    "join": lambda: clusters(8, 30000, 128, 4000),
    "svd": lambda: low_rank(9, 4096, 512, 4096),
    "tensor": lambda: normal(11, 256, 256, 256),
    "tall": lambda: normal(12, 100000, 201),
}
TEXTS, INDEX = "texts.txt", "hashed.index"


def texts(path, count=200000, words=60):
    """A text a line, every tenth an earlier one with a word changed."""
    rng = np.random.default_rng(13)
    names = np.array([f"w{i:x}" for i in range(50000)], dtype=object)
    drawn = rng.integers(0, len(names), (count, words))
    for i in range(10, count, 10):
        drawn[i] = drawn[rng.integers(0, i)]
        drawn[i, rng.integers(0, words)] = rng.integers(0, len(names))
    with open(path, "w") as file:
        for row in names[drawn]:
            file.write(" ".join(row) + "\n")


def prepare(work, names):
    """The data, in a process of its own, on all threads."""
    import gnomon
    needed = {need for name, _, make in jobs(work, None) for need in make.needs if chosen(name, names)}
    with concurrent.futures.ThreadPoolExecutor() as pool:  # NumPy's generators let other threads run
        list(pool.map(lambda name: np.save(f"{work}/{name}.npy", ARRAYS[name]()), sorted(needed & set(ARRAYS))))
    if INDEX in needed:
        x = np.load(f"{work}/hashed.npy")[10000:]
        gnomon.Index.tune(x, 10, recall=0.9, n_queries=200, always=True).save(f"{work}/{INDEX}")
    if TEXTS in needed:
        texts(f"{work}/{TEXTS}")


class Make:
    """What a job needs, and the function that makes its call. amx: products of 8-bit integers bind it where there are such
    instructions."""

    def __init__(self, needs, function, *arguments, amx=False, **named):
        self.needs, self.amx = needs, amx
        self.make = lambda: function(*arguments, **named)


def jobs(work, command):
    """Name, what bounds it ('products' or 'reads'), and its Make."""
    def load(name):
        return np.load(f"{work}/{name}.npy")

    def sgemm():
        a = np.ones((4096, 4096), np.float32)
        b = np.ones((4096, 2048), np.float32)
        return lambda threads: a @ b

    def read():
        x = np.ones(1 << 28, np.float32)

        def run(threads):
            cuts = np.linspace(0, x.size, threads + 1).astype(int)
            with concurrent.futures.ThreadPoolExecutor(threads) as pool:
                return sum(pool.map(lambda i: float(x[cuts[i]:cuts[i + 1]].max()), range(threads)))
        return run

    def project(array, kind, n, k, **parameters):
        import gnomon
        x = load(array)[:n]
        s = gnomon.operator(k, x.shape[1], kind=kind, **parameters)
        out = np.empty((n, k), np.float32)
        return lambda threads: gnomon.sketch(x, s, out=out, n_jobs=threads)

    def search(array, n, q, k=10):
        import gnomon
        x = load(array)
        return lambda threads: gnomon.neighbors(x[:n], x[n:n + q], k, n_jobs=threads)

    def tune():
        import gnomon
        x = load("hashed")[10000:]
        return lambda threads: gnomon.Index.tune(x, 10, recall=0.9, n_queries=200, always=True, n_jobs=threads)

    def build():
        import gnomon
        x = load("hashed")[10000:]
        return lambda threads: gnomon.Index.build(x, tables=16, coarse=12, width=6.0, n_jobs=threads)

    def query():
        import gnomon
        x = load("hashed")[:10000]
        opened = {}

        def run(threads):
            if threads not in opened:
                opened[threads] = gnomon.Index.open(f"{work}/{INDEX}", n_jobs=threads)
            return opened[threads].kneighbors(x, 10, n_jobs=threads)
        return run

    def join(recall):
        import gnomon
        x = load("join")
        return lambda threads: gnomon.join(x, radius=4.0, recall=recall, n_jobs=threads)

    def sparse_join():
        import gnomon
        x = zipf(14, 12000, 30000, 60, 0.3)
        return lambda threads: gnomon.join(x, radius=0.3, metric="cosine", n_jobs=threads)

    def sparse_search():
        import gnomon
        x = zipf(14, 20000, 30000, 60, 0.3)
        base, queries = x[:18000], x[18000:]  # SciPy copies them, on one thread
        return lambda threads: gnomon.neighbors(base, queries, 10, metric="cosine", n_jobs=threads)

    def sets():
        import gnomon
        x = zipf(15, 20000, 200000, 40, 0.3)
        return lambda threads: gnomon.join(x, radius=0.5, metric="jaccard", n_jobs=threads)

    def svd():
        import gnomon
        x = load("svd")
        return lambda threads: gnomon.svd(x, 256, n_iter=2, n_jobs=threads)

    def sparse_svd():
        import gnomon
        x = zipf(16, 60000, 30000, 60, 0.3)
        return lambda threads: gnomon.svd(x, 50, n_iter=2, n_jobs=threads)

    def hosvd():
        import gnomon
        x = load("tensor")
        return lambda threads: gnomon.hosvd(x, (32, 32, 32), n_jobs=threads)

    def lstsq():
        import gnomon
        x = load("tall").astype(np.float64)
        a, b = np.ascontiguousarray(x[:, :200]), np.ascontiguousarray(x[:, 200])
        return lambda threads: gnomon.lstsq(a, b, n_jobs=threads)

    def matmul():
        import gnomon
        a, b = load("svd"), normal(17, 4096, 512).astype(np.float16)
        return lambda threads: gnomon.matmul(a, b, n_jobs=threads)

    def verb(*words):
        if not command:
            raise ValueError("no command was named")
        return lambda threads: subprocess.run([command, *words, "--threads", str(threads)], check=True, capture_output=True)

    return [
        ("SGEMM", "", Make([], sgemm)),
        ("read of 1 GiB", "", Make([], read)),
        ("project, rademacher, k = 1024", "products", Make(["rows"], project, "rows", "rademacher", 1024, 1024)),
        ("project, gaussian, k = 256", "products", Make(["rows"], project, "rows", "gaussian", 256, 256)),
        ("project, rademacher, 4 wide points", "products", Make(["wide"], project, "wide", "rademacher", 4, 256)),
        ("project, sjlt", "reads", Make(["rows"], project, "rows", "sjlt", 2048, 1024)),
        ("project, sjlt, 4 wide points", "reads", Make(["wide"], project, "wide", "sjlt", 4, 1024)),
        ("project, srht", "reads", Make(["rows"], project, "rows", "srht", 2048, 1024)),
        ("project, srht, 4 wide points", "reads", Make(["wide"], project, "wide", "srht", 4, 1024)),
        ("project, very-sparse", "reads", Make(["rows"], project, "rows", "very-sparse", 2048, 1024)),
        ("project, file to file", "reads", Make(["many"], verb, "project", f"{work}/many.npy", "-k", "64", "-o",
                                                f"{work}/out.npy")),
        ("search, 1 query in 200,000 x 128", "reads", Make(["128"], search, "128", 200000, 1)),
        ("search, 100 queries in 200,000 x 128", "reads", Make(["128"], search, "128", 200000, 100)),
        ("search, 10,000 queries in 200,000 x 128", "products", Make(["128"], search, "128", 200000, 10000, amx=True)),
        ("search, 1 query in 60,000 x 784", "reads", Make(["784"], search, "784", 60000, 1)),
        ("search, 100 queries in 60,000 x 784", "reads", Make(["784"], search, "784", 60000, 100)),
        ("search, 10,000 queries in 60,000 x 784", "products", Make(["784"], search, "784", 60000, 10000, amx=True)),
        ("search, 1,000 uniform queries", "products", Make(["uniform"], search, "uniform", 200000, 1000, amx=True)),
        ("search of sparse rows", "reads", Make([], sparse_search)),
        ("index tune", "products", Make(["hashed"], tune, amx=True)),
        ("index build", "products", Make(["hashed"], build)),
        ("index query, 10,000 queries", "reads", Make(["hashed", INDEX], query)),
        ("join, exact", "products", Make(["join"], join, 1.0, amx=True)),
        ("join, recall 0.95", "products", Make(["join"], join, 0.95, amx=True)),
        ("join of sets", "reads", Make([], sets)),
        ("join of sparse rows", "reads", Make([], sparse_join)),
        ("dedup, file to file", "reads", Make([TEXTS], verb, "dedup", f"{work}/{TEXTS}", "-o", f"{work}/kept.txt")),
        ("svd 4096 x 4096, rank 256", "products", Make(["svd"], svd)),
        ("svd of sparse rows", "reads", Make([], sparse_svd)),
        ("hosvd 256 x 256 x 256", "products", Make(["tensor"], hosvd)),
        ("lstsq 100,000 x 200", "products", Make(["tall"], lstsq)),
        ("matmul fp32 x fp16", "products", Make(["svd"], matmul)),
    ]


def chosen(name, names):
    return not names or any(text in name for text in names)


def processor_seconds():
    return sum(used.ru_utime + used.ru_stime for used in (resource.getrusage(resource.RUSAGE_SELF),
                                                          resource.getrusage(resource.RUSAGE_CHILDREN)))


def level():
    """The instructions that the library uses."""
    from gnomon._context import owned_context
    from gnomon._library import lib
    context = owned_context()
    return lib.gnomon_context_isa(context.handle).decode()


def measure_amx(ceilings, threads):
    """What a tera of AMX's products takes."""
    wall, cpu = time.perf_counter(), processor_seconds()
    told = subprocess.run([ceilings, "--only", "int8 amx", str(threads)], check=True, capture_output=True, text=True).stdout
    wall, cpu = time.perf_counter() - wall, processor_seconds() - cpu
    seconds, busy = 1e12 / json.loads(told)["rate"], cpu / wall
    print(json.dumps({"job": AMX, "bound": "", "threads": threads, "seconds": seconds, "cpu_seconds": busy * seconds,
                      "busy": busy}), flush=True)


def measure(args):
    """In a process of its own: a line of JSON a job."""
    threads = args.measure
    amx = level() == "amx"
    if amx and args.ceilings and chosen(AMX, args.job):
        measure_amx(args.ceilings, threads)
    for name, bound, make in jobs(args.work, args.gnomon):
        if not chosen(name, args.job):
            continue
        try:
            call = make.make()
            call(threads)
            taken = []
            while not taken or (len(taken) < args.rounds and sum(wall for wall, _ in taken) < ENOUGH):
                wall, cpu = time.perf_counter(), processor_seconds()
                call(threads)
                taken.append((time.perf_counter() - wall, processor_seconds() - cpu))
            wall, cpu = min(taken)
            print(json.dumps({"job": name, "bound": bound, "threads": threads, "seconds": wall, "cpu_seconds": cpu,
                              "busy": cpu / wall, **({"amx": True} if amx and make.amx else {})}), flush=True)
        except Exception as error:  # a job that can't run here is named, the others go on
            print(json.dumps({"job": name, "bound": bound, "threads": threads, "error": str(error)}), flush=True)


def siblings():
    """Threads of a core, as far as the system tells."""
    try:
        with open("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list") as file:
            return file.read().strip()
    except OSError:
        return ""


def facts(args):
    import gnomon
    from gnomon._factor import svd_blas
    cpu = re.search(r"model name\s*:\s*(.*)", open("/proc/cpuinfo").read())
    return {"bench": "threads", "version": gnomon.__version__, "cpu": cpu.group(1).strip() if cpu else "",
            "cores": len(os.sched_getaffinity(0)), "siblings": siblings(),
            "isa": level(), "blas": svd_blas().split(" (")[0],
            "commit": args.commit, "rounds": args.rounds, "load": os.getloadavg()[0]}


def show(found, threads):
    least, gains = min(threads), {}
    print(f"\n{'job':42}" + "".join(f"{t:>9}" for t in threads) + "   gain  share")
    for name, bound in dict.fromkeys((r["job"], r["bound"]) for r in found):
        times = {r["threads"]: r["seconds"] for r in found if r["job"] == name and "seconds" in r}
        line = f"{name:42}" + "".join(f"{times[t]:9.3f}" if t in times else "        -" for t in threads)
        if least in times:
            gains[name] = times[least] / times[max(times)]
            beside = gains.get({"products": "SGEMM", "reads": "read of 1 GiB"}.get(bound))
            line += f"{gains[name]:7.2f}" + (f"{gains[name] / beside:7.2f}" if beside else "")
        print(line)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2, 4, 8, 16])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--job", action="append", default=[])
    parser.add_argument("--gnomon", help="the command, for jobs on files")
    parser.add_argument("--ceilings", help="the program of bench/cpu/ceilings.c, for AMX's products alone")
    parser.add_argument("--commit", default="", help="of the library, for the record")
    parser.add_argument("--work")
    parser.add_argument("--before")
    parser.add_argument("--measure", type=int, help=argparse.SUPPRESS)
    parser.add_argument("-o", "--output")
    args = parser.parse_args()
    if args.measure is not None:
        prepare(args.work, args.job) if args.measure == 0 else measure(args)
        return
    result = facts(args)
    found = result["cases"] = []
    if args.before:
        with open(args.before) as file:
            before = json.load(file)
        result["before"] = {"commit": before["commit"], "cases": before["cases"]}
    roomy = os.path.isdir("/dev/shm") and shutil.disk_usage("/dev/shm").free > 3e9
    work = args.work or tempfile.mkdtemp(prefix="threads-", dir="/dev/shm" if roomy else None)
    try:
        begin = time.perf_counter()
        order = sorted((t for t in args.threads if t <= os.cpu_count()), key=lambda t: (1 < t < max(args.threads), -t))
        for threads in [0] + order:  # the most and one first: a run that is cut off has the gain
            command = [sys.executable, __file__, "--measure", str(threads), "--rounds", str(args.rounds), "--work", work]
            command += ["--gnomon", args.gnomon] if args.gnomon else []
            command += ["--ceilings", args.ceilings] if args.ceilings else []
            for name in args.job:
                command += ["--job", name]
            limit = str(threads or os.cpu_count())
            environment = dict(os.environ, OPENBLAS_NUM_THREADS=limit, OMP_NUM_THREADS=limit)
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
                for line in process.stdout:
                    found.append(json.loads(line))
                    print(line, end="", flush=True)
                    if args.output:  # after each job: a run that is cut off leaves what it has
                        with open(args.output, "w") as file:
                            json.dump(result, file, indent=1)
                            file.write("\n")
            if process.returncode:
                sys.exit(f"threads.py: the process of {threads} threads ended with {process.returncode}")
        show(found, args.threads)
        print(f"{time.perf_counter() - begin:.0f} s in all")
    finally:
        if not args.work:
            shutil.rmtree(work)


main()

"""gnomon.torch's projectors beside fast_jl, TRAK's kernels, and the package sjlt: gradients that lie on the GPU as PyTorch's
tensors.

usage: projectors.py [--json FILE [--resume]] [--least-seconds S] [--most-seconds S] [--budget-seconds S]

Needs PyTorch and a GPU; a peer that can't be imported is left out, and the record says so. Times are medians of calls that
end when the work is done, after one that does not count; where one call takes longer than a quarter of --most-seconds, the
first counts and is the only one. What would take longer than --most-seconds by the time of a smaller job is
left out. A way that may read out of its memory runs in a process of its own, since it takes the GPU's context with it. A
job is right when the projection of the batch's last gradient is that of this gradient alone. --resume keeps what the file has
of the same GPU and does what no time was left for.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import torch

KS = [4096, 16384, 32768]
SIZES = [(10 ** 7, 8, "f32"), (10 ** 7, 32, "f32"), (10 ** 7, 8, "f16"), (10 ** 7, 32, "f16"), (10 ** 9, 8, "f32"),
         (10 ** 9, 32, "f16")]
DTYPES = {"f32": torch.float32, "f16": torch.float16}
LAYERS = [(4096, 4096), (32768, 32768)]
POSITIONS = 128
SEED = 7


def points(n, d, dtype):
    x = torch.empty(n, d, dtype=DTYPES[dtype], device="cuda")
    g = torch.Generator(device="cuda").manual_seed(1)
    for row in x:  # in pieces: no temporary of the whole size
        row.normal_(generator=g)
    return x


class Timer:
    """Times calls, and gives up the ones that would take too long."""

    def __init__(self, least, most, budget):
        self.least, self.most, self.end = least, most, time.perf_counter() + budget

    def __call__(self, call):
        took = []
        result = None
        while True:
            del result
            torch.cuda.synchronize()
            begin = time.perf_counter()
            result = call()
            torch.cuda.synchronize()
            took.append(time.perf_counter() - begin)
            counted = took[1:] if took[0] < self.most / 4 else took
            if counted and (sum(counted) >= self.least and len(counted) >= 5 or sum(took) >= self.most / 4):
                return result, {"ms": 1e3 * statistics.median(counted), "least_ms": 1e3 * min(counted),
                                "most_ms": 1e3 * max(counted), "runs": len(counted)}


def off(a, b):
    a, b = a.double(), b.double()
    return float((a - b).norm() / b.norm())


def ours(kind, **parameters):
    def make(d, k, n):
        from gnomon.torch import Projector
        scaling = "isometric" if kind == "sjlt" else "none"
        projector = Projector(d, k, seed=SEED, proj_type=kind, scaling=scaling, **parameters)
        return lambda x: projector.project(x, 0)
    return make


def fast_jl(kind):
    """As TRAK's CudaProjector calls it: so many tiles as the GPU has multiprocessors, the kernel of the batch's size."""
    def make(d, k, n):
        import fast_jl as peer
        tiles = torch.cuda.get_device_properties(0).multi_processor_count
        function = getattr(peer, f"project_{kind}_{8 if n <= 8 else 32}")
        return lambda x: function(x, k, SEED, tiles)
    return make


def sjlt(c, blocks, rows):
    """rows: gradients of a call, 0 for all at once."""
    def make(d, k, n):
        from sjlt import SJLTProjection
        projection = SJLTProjection(d, k, c=c, fixed_blocks=blocks)

        def project(x):
            if not rows or len(x) <= rows:
                return projection(x)
            return torch.cat([projection(piece) for piece in x.split(rows)])

        project.table_bytes = sum(one.numel() * one.element_size() for one in projection.buffers())
        return project
    return make


MULTIPROCESSORS = 132  # of the H100 and H200: twice as many blocks of 1024 threads fit at a time
WAYS = {  # name: (library, what it is the same distribution as, how it is made)
    "rademacher": ("gnomon", "rademacher", ours("rademacher")),
    "gaussian fp16": ("gnomon", "normal", ours("gaussian", precision="fp16")),
    "sjlt, 1 nonzero": ("gnomon", "sjlt 1", ours("sjlt", nonzeros=1)),
    "sjlt, 4 nonzeros": ("gnomon", "sjlt 4", ours("sjlt", nonzeros=4)),
    "fast_jl rademacher": ("fast_jl", "rademacher", fast_jl("rademacher")),
    "fast_jl normal": ("fast_jl", "normal", fast_jl("normal")),
    "sjlt c = 1": ("sjlt", "sjlt 1", sjlt(1, 84, 0)),
    "sjlt c = 1, 264 blocks": ("sjlt", "sjlt 1", sjlt(1, 2 * MULTIPROCESSORS, 0)),
    "sjlt c = 4": ("sjlt", "sjlt 4", sjlt(4, 84, 0)),
    "sjlt c = 4, 264 blocks": ("sjlt", "sjlt 4", sjlt(4, 2 * MULTIPROCESSORS, 0)),
    # one index of 32 bits spans the batch: two gradients of 10^9 are as many as it can count
    "sjlt c = 1, 2 gradients a call": ("sjlt", "sjlt 1", sjlt(1, 2 * MULTIPROCESSORS, 2)),
}


ORDER = ["rademacher", "fast_jl rademacher", "sjlt, 1 nonzero", "sjlt, 4 nonzeros", "gaussian fp16", "fast_jl normal"]


def groups():
    """Ways and sizes that run in one process: with small gradients all; of 10^9 coordinates the package sjlt, whose index
    of 32 bits overflows, by itself, and with no more than two gradients a call, which it can count."""
    small, large = ([size for size in SIZES if (size[0] == 10 ** 9) == big] for big in (False, True))
    theirs = [name for name in WAYS if WAYS[name][0] == "sjlt"]
    yield ORDER + [name for name in theirs if "a call" not in name], small
    for size in large:
        yield ORDER, [size]
        yield ["sjlt c = 1, 2 gradients a call"], [size]
        yield ["sjlt c = 1"], [size]


def one(name, size, k, x, timer):
    """A call of one way; x: the points, or None, in a list, which is emptied where a library's tables need the room."""
    d, n, dtype = size
    if WAYS[name][0] == "sjlt" and d == 10 ** 9:
        x[0] = None
        torch.cuda.empty_cache()  # else the tables lie in a part of the points' room
    torch.cuda.synchronize()
    begin = time.perf_counter()
    project = WAYS[name][2](d, k, n)
    torch.cuda.synchronize()
    case = {"make_ms": 1e3 * (time.perf_counter() - begin), "table_bytes": getattr(project, "table_bytes", 0)}
    torch.cuda.empty_cache()
    if x[0] is None:
        x[0] = points(n, d, dtype)
    base = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    y, times = timer(lambda: project(x[0]))
    case.update(times)
    case["torch_work_bytes"] = torch.cuda.max_memory_allocated() - base
    if case["ms"] < 3000 or k == KS[0]:
        case["last_row_off"] = off(y[n - 1:], project(x[0][n - 1:]))
        case["right"] = case["last_row_off"] < 1e-2
    if "fast_jl" in name and dtype == "f32" and d == 10 ** 7:
        case["fp32_as_fp16"] = bool(torch.equal(y, project(x[0].half())))
    return case


def key(case):
    return "|".join(str(case[name]) for name in ("way", "d", "n", "dtype", "k"))


def work(names, sizes, options):
    """The jobs of a child process: a line of JSON for each."""
    timer = Timer(options.least_seconds, options.most_seconds, options.budget_seconds)
    known, done = json.loads(options.known), json.loads(options.done)
    for size in sizes:
        x = [None]
        for name in names:
            for k in KS:
                d, n, dtype = size
                case = {"way": name, "library": WAYS[name][0], "family": WAYS[name][1], "d": d, "n": n, "dtype": dtype, "k": k}
                if key(case) in done:
                    continue
                guess = known.get(f"{name}|{n}|{k}", 0) * 100 / 1e3 if d == 10 ** 9 else 0
                if guess > options.most_seconds:
                    case["left_out"] = f"by the time at 10^7 it takes {guess:.0f} s"
                elif time.perf_counter() > timer.end:
                    case["left_out"] = "no time was left"
                else:
                    try:
                        case.update(one(name, size, k, x, timer))
                    except (ImportError, AttributeError) as error:
                        case["left_out"] = f"{type(error).__name__}: {error}"
                    except RuntimeError as error:  # out of memory, or an illegal address, after which nothing works
                        case["failed"] = str(error).splitlines()[0][:200]
                print("RECORD " + json.dumps(case), flush=True)
                if "illegal" in case.get("failed", ""):
                    os._exit(3)


def pieces(options):
    """One gradient as 48 layers: a dict is projected as it is, a peer needs it whole."""
    from gnomon.torch import Projector
    d, n, k = 10 ** 7, 32, 4096
    timer = Timer(options.least_seconds, options.most_seconds, options.budget_seconds)
    widths = [d // 48 + (i < d % 48) for i in range(48)]
    grads = {str(i): points(n, width, "f32") for i, width in enumerate(widths)}
    projector = Projector(d, k, seed=SEED)
    y, times = timer(lambda: projector.project(grads, 0))
    whole = projector.project(torch.cat(list(grads.values()), 1), 0)
    yield {"job": "48 tensors", "way": "rademacher", "library": "gnomon", "d": d, "n": n, "dtype": "f32", "k": k, **times,
           "off_whole": off(y, whole), "right": off(y, whole) < 1e-5}
    try:
        peer = fast_jl("rademacher")(d, k, n)
    except ImportError:
        return
    _, times = timer(lambda: peer(torch.cat(list(grads.values()), 1)))
    yield {"job": "48 tensors", "way": "torch.cat, fast_jl rademacher", "library": "fast_jl", "d": d, "n": n, "dtype": "f32", "k": k,
           **times}


def layers(options):
    """Factored gradients of a linear layer, POSITIONS positions a sample."""
    from gnomon.torch import LinearProjector
    timer = Timer(options.least_seconds, options.most_seconds, options.budget_seconds)
    for width_in, width_out in LAYERS:
        for n in (8, 32):
            a = points(n * POSITIONS, width_in, "f16").reshape(n, POSITIONS, width_in)
            b = points(n * POSITIONS, width_out, "f16").reshape(n, POSITIONS, width_out)
            for kind in ("rademacher", "sjlt"):
                for k_in, k_out in ((64, 64), (128, 128), (256, 128)):
                    projector = LinearProjector(width_in, width_out, k_in, k_out, seed=SEED, kind_in=kind, kind_out=kind)
                    y, times = timer(lambda: projector.project(a, b))
                    case = {"job": "linear layer", "way": kind, "library": "gnomon", "d": width_in * width_out, "n": n,
                            "dtype": "f16", "k": k_in * k_out, "k_in": k_in, "k_out": k_out, "positions": POSITIONS, **times}
                    if width_in <= 4096:  # the gradient of the first sample in double precision
                        g = b[0].double().T @ a[0].double()
                        s_in = torch.from_numpy(projector.inputs.operator(0).toarray("float64")).cuda()
                        s_out = torch.from_numpy(projector.outputs.operator(0).toarray("float64")).cuda()
                        case["off"] = off(y[0], (s_out @ g @ s_in.T).flatten())
                        case["right"] = case["off"] < 1e-4
                        del g, s_in, s_out
                    yield case
            if width_in > 4096:
                continue
            for k in KS:
                try:
                    peer = fast_jl("rademacher")(width_in * width_out, k, n)
                except ImportError:
                    break
                _, times = timer(lambda: peer(torch.bmm(b.transpose(1, 2), a).reshape(n, -1)))
                yield {"job": "linear layer", "way": "torch.bmm, fast_jl rademacher", "library": "fast_jl", "d": width_in * width_out,
                       "n": n, "dtype": "f16", "k": k, "positions": POSITIONS, **times}


def child(job, options, results, left, save):
    command = [sys.executable, os.path.abspath(__file__), "--job", json.dumps(job), "--least-seconds", str(options.least_seconds),
               "--most-seconds", str(options.most_seconds), "--budget-seconds", str(max(1.0, left)), "--known",
               json.dumps({f"{r['way']}|{r['n']}|{r['k']}": r["ms"] for r in results if r.get("d") == 10 ** 7 and "ms" in r}),
               "--done", json.dumps([key(r) for r in results if "job" not in r])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        for line in running.stdout:
            if not line.startswith("RECORD "):
                continue
            case = json.loads(line[7:])
            results.append(case)
            told = case.get("left_out") or case.get("failed") or f"{case['ms']:.3f} ms" + ("" if case.get("right", True) else ", WRONG")
            print(*(f"{key}={case[key]}" for key in ("job", "way", "d", "n", "dtype", "k") if key in case), told, flush=True)
            save()
    if running.returncode not in (0, 3):
        results.append({"job": str(job), "failed": f"the process ended with {running.returncode}"})
        print("job", job, "ended with", running.returncode, flush=True)
        save()


def versions():
    from importlib.metadata import PackageNotFoundError, version
    found = {"torch": torch.__version__}
    for name in ("fast_jl", "sjlt"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = os.environ.get(f"{name.upper()}_VERSION", "")
    return found


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--json")
    p.add_argument("--least-seconds", type=float, default=0.3)
    p.add_argument("--most-seconds", type=float, default=20)
    p.add_argument("--budget-seconds", type=float, default=600)
    p.add_argument("--job", help=argparse.SUPPRESS)
    p.add_argument("--resume", action="store_true")
    p.add_argument("--known", default="{}", help=argparse.SUPPRESS)
    p.add_argument("--done", default="[]", help=argparse.SUPPRESS)
    options = p.parse_args()
    if options.job:
        job = json.loads(options.job)
        if job[0] == "sizes":
            work(job[1], job[2], options)
        else:
            for case in {"layers": layers, "pieces": pieces}[job[0]](options):
                print("RECORD " + json.dumps(case), flush=True)
        return
    end = time.perf_counter() + options.budget_seconds
    results = []
    record = {"program": "projectors", "gpu": torch.cuda.get_device_name(), "versions": versions(),
              "memory_bytes": torch.cuda.get_device_properties(0).total_memory, "commit": os.environ.get("GNOMON_COMMIT", ""),
              "date": time.strftime("%Y-%m-%d"), "settings": {key: getattr(options, key) for key in ("least_seconds", "most_seconds")},
              "results": results}
    if options.resume:
        with open(options.json) as f:
            old = json.load(f)
        if old["gpu"] != record["gpu"]:
            sys.exit(f"{options.json} is of {old['gpu']}, this is {record['gpu']}")
        record["commit"], record["date"] = old["commit"], old["date"]
        results += [r for r in old["results"] if r.get("left_out") != "no time was left"]
    finished = {r["job"] for r in results if "ms" in r and "job" in r}
    jobs = [job for job, name in ((("pieces",), "48 tensors"), (("layers",), "linear layer")) if name not in finished] + [("sizes", names, sizes) for names, sizes in groups()]

    def save():
        if options.json:
            with open(options.json, "w") as f:
                json.dump(record, f, indent=1)

    save()
    for job in jobs:
        child(job, options, results, end - time.perf_counter(), save)


if __name__ == "__main__":
    main()

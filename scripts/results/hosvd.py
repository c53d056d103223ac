"""docs/results/hosvd.md: tensors of Ootomo & Yokota's (2023) Algorithm 3, from the records of bench/cpu/hosvd.py and
bench/gpu/hosvd.cu."""
from pages import gpu_records, load, pages, table

PLAIN = "NumPy, Algorithm 2"
NAMES = {"project": "project", "orthonormalise": "orthonormalise", "shrink": "core", "look": "look", "small": "cut and turn",
         "power": "power", "generate": "generate"}
PHASES = ("generate", "project", "orthonormalise", "shrink", "power", "look", "small")


def seconds(value):
    return f"{value:.3g}"


def case(c):
    mine = {r["who"]: r for r in c["results"]}
    plain = mine[PLAIN]
    sizes = " × ".join(map(str, c["size"]))
    noise = f", noise of {100 * c['noise']:.0f} %" if c["noise"] else ""
    text = (f"\n## {c['name'][0].upper()}{c['name'][1:]}\n\n{sizes}, ranks {', '.join(map(str, c['ranks']))} (of the tensor: "
            f"{c['padding']} fewer a mode){noise}; load average "
            f"{c['load_average']:.1f}.\n\n")
    text += table(["who", "seconds", "of processors", "times as fast", "residual", "over Algorithm 2's", "off orthonormal"],
                  [[r["who"], seconds(r["seconds"]), seconds(r["cpu_seconds"]), f"{plain['cpu_seconds'] / r['cpu_seconds']:.2f}",
                    f"{r['residual']:.3g}", f"{r['residual'] / plain['residual']:.2f}", f"{r['off_orthonormal']:.1e}"]
                   for r in c["results"]])
    timed = [r for r in c["results"] if any(p in r["phases"] for p in PHASES)]
    text += "\n" + table(["seconds by phase", *(NAMES[p] for p in PHASES)],
                         [[r["who"], *(f"{r['phases'][p]:.3f}" if r["phases"].get(p) else "" for p in PHASES)] for r in timed])
    return text


LIBRARIES = "fp32 by libraries"
GPU_PHASES = ("look", "generate", "project", "orthonormalise", "shrink", "power", "small")
GAIN = 2


def on_gpu(gpu, record):
    rows, summary = [], []
    for key in dict.fromkeys((r["size"], r["rank"], r["noise"]) for r in record["results"]):
        some = {r["who"]: r for r in record["results"] if (r["size"], r["rank"], r["noise"]) == key}
        plain = some[LIBRARIES]
        for r in some.values():
            beside = some.get(f"{LIBRARIES}, sequential", plain) if "sequential" in r["who"] else plain
            rows.append([key[0].replace("x", "×"), key[1].split(" ")[0], f"{100 * key[2]:.0f} %" if key[2] else "", r["who"],
                         f"{r['ms']:.2f}", f"{beside['ms'] / r['ms']:.2f}", *(f"{r[p + '_ms']:.2f}" for p in GPU_PHASES),
                         f"{r['residual']:.3g}"])
        mine = some.get("gnomon, as Algorithm 2, fp16")
        if mine:
            gain = plain["ms"] / mine["ms"]
            summary.append([key[0].replace("x", "×"), key[1].split(" ")[0], f"{100 * key[2]:.0f} %" if key[2] else "", f"{gain:.2f}",
                            "yes" if gain >= GAIN else "no", f"{mine['residual'] / plain['residual']:.2f}"])
    runs = min(r["runs"] for r in record["results"])
    return (f"\n## {gpu}\n\nThe tensor lies in the GPU's memory; medians of {runs} runs or more by the host's clock, waiting for "
            "the GPU at both ends, in ms. 'fp32 by libraries' is Algorithm 2 with cuRAND's normal numbers, cuBLAS's SGEMM and cuSOLVER's "
            "geqrf and orgqr; it reads the first and the last unfolding as they lie, as ours does, and copies those between. Ours includes the "
            "scan for NaN, the rotation to an all-orthogonal core, and factors and core on the host; measuring the residual is in neither "
            "time. A sequential way stands beside the libraries' sequential one. The paper gives its shapes in a picture only, so these "
            "are ours; its own gain, on an A100, is 1.75. `bench/gpu/hosvd.cu` takes the record. How it works: "
            "[hosvd.md](../reference/hosvd.md#on-a-gpu).\n\n" +
            table(["size", "ranks", "noise", "times as fast, as Algorithm 2, fp16", f"at least {GAIN}", "residual over theirs"], summary) + "\n" +
            table(["size", "ranks", "noise", "who", "ms", "times as fast", *(NAMES[p] for p in GPU_PHASES), "residual"], rows))


def make():
    record = load("hosvd-cpu.json")
    if record is None:
        return
    gpus = "".join(on_gpu(gpu, programs["hosvd"]) for gpu, programs in sorted(gpu_records().items()) if "hosvd" in programs)
    clean = [c for c in record["cases"] if not c["noise"]]
    rows = [{r["who"]: r for r in c["results"]} for c in clean]
    same = [r[PLAIN]["cpu_seconds"] / r["gnomon, as Algorithm 2"]["cpu_seconds"] for r in rows]
    default = [r[PLAIN]["cpu_seconds"] / r["gnomon"]["cpu_seconds"] for r in rows]
    sequential = [r[PLAIN]["cpu_seconds"] / r["gnomon, sequential"]["cpu_seconds"] for r in rows]
    quick = [r[PLAIN]["cpu_seconds"] / r["gnomon, sequential, no power iteration"]["cpu_seconds"] for r in rows]
    error = [r["gnomon, as Algorithm 2"]["residual"] / r[PLAIN]["residual"] for r in rows]
    over = [r["gnomon"]["residual"] / r[PLAIN]["residual"] for r in rows]
    pages["hosvd.md"] = (
        "# Tensors\n\nThe tensors of Ootomo & Yokota's (2023) Algorithm 3 in single precision: a random core, along each mode times a "
        "random matrix whose rank is the target's less a padding. So the target ranks hold all of the tensor, and what is left is "
        "rounding; one case has noise added. Their Figure 9 compares a faster projection with the plain one; here both are "
        "on the CPU: `gnomon hosvd` as the library calls it, beside Algorithm 2 in NumPy with stored Gaussian matrices, SGEMM "
        "and Householder QR, and beside the full HOSVD by LAPACK's singular vectors of the unfoldings.\n\n"
        f"{record['cpu']}, {record['threads']} threads, NumPy {record['numpy']}, SciPy {record['scipy']}. Medians of "
        f"{max(r['runs'] for c in record['cases'] for r in c['results'])} runs in alternation (LAPACK: one); the means of the residuals. The "
        "machine was not quiet, so 'times as fast' is by processor seconds. Ours draws "
        f"{record['oversample']} columns more a mode and one power iteration unless it says otherwise (as Algorithm 2: neither), makes "
        "its random matrices anew in every run and scans for NaN; measuring the residual is in neither time. `bench/cpu/hosvd.py` "
        "takes the record.\n\n"
        f"- As Algorithm 2, with the same number of columns, ours is {min(same):.1f} to {max(same):.1f} times as fast, at "
        f"{min(error):.2f} to {max(error):.2f} times its residual: each draws matrices of its own, and where rounding is all that is "
        "left it depends on how well conditioned they happen to be.\n"
        f"- As it is set by default it is {min(default):.1f} to {max(default):.1f} times as fast as Algorithm 2, at {min(over):.2f} to "
        f"{max(over):.2f} times the residual; one mode after the other {min(sequential):.1f} to {max(sequential):.1f} times, and "
        f"{min(quick):.1f} to {max(quick):.1f} times without the power iteration.\n"
        "- Where there is noise, columns beyond the rank and a power iteration are what brings the residual down to that of the exact "
        "singular vectors.\n" + "".join(case(c) for c in record["cases"]) + gpus)

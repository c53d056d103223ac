"""The command on a GPU beside the command on the CPU: the same files, the same operators, results
within the error bound; and what it says when the GPU does not do a job.

usage: command.py GNOMON WORK [CASE...]      cases that must not be declined, 'sjlt, fp64' say;
GNOMON_PLUGIN_DIR and the like are for the caller to set. Exits with 77 where there is no GPU.
"""
import json
import os
import subprocess
import sys

import numpy as np

gnomon, work, needed = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3:]
os.makedirs(work, exist_ok=True)
os.chdir(work)
random = np.random.default_rng()
wrong, declined, done = [], set(), 0
KINDS = {
    "rademacher": [], "gaussian": [], "gaussian fp16": ["--operator", "gaussian", "--precision", "fp16"],
    "achlioptas": [], "very-sparse": ["--operator", "very-sparse", "--density", "0.05"],
    "sjlt": ["--operator", "sjlt", "--nonzeros", "3"], "srht": [],
    "block": ["--operator", "block", "--blocks", "4"], "kronecker": ["--operator", "kronecker", "--zeta", "2"],
}


def run(*words):
    result = subprocess.run([gnomon, *words], capture_output=True, text=True)
    return result.returncode, result.stdout, result.stderr


def expect(good, *words):
    if not good:
        wrong.append(" ".join(str(word) for word in words))


def project(device, points, output, options):
    code, out, err = run("project", points, "-o", output, "--device", device, "--json", "--quiet", *options)
    return code, json.loads(out) if code == 0 else None, err


def read(name):
    return np.load(name, allow_pickle=False)


def compare(name, points, file, options, fortran=False):
    """One file through both devices; True when the GPU took it."""
    global done
    np.save(file, np.asfortranarray(points) if fortran else points)
    compare_file(name, points, file, options)


def compare_file(name, points, file, options):
    global done
    code, report, err = project("cuda", file, "cuda.npy", options)
    if code == 6:
        declined.add(f"{name}: {err.strip().split('declined: ')[-1]}")
        expect(name not in needed, name, err)
        return False
    expect(code == 0, name, code, err)
    if code != 0:
        return False
    expect(report["device"] == "cuda" and report["gpu"], name, report)
    code, cpu, err = project("cpu", file, "cpu.npy", options)
    expect(code == 0 and cpu["device"] == "cpu" and "gpu" not in cpu, name, err)
    expect(cpu["descriptor"] == report["descriptor"], name, "descriptors differ")
    d, k = points.shape[1], report["k"]
    got, also, x = read("cuda.npy"), read("cpu.npy"), points.astype(np.float64)
    with open("s.json", "w") as f:
        json.dump(report["descriptor"], f)
    s = np.empty((k, d))
    step = max(1, 2**23 // k)
    for begin in range(0, d, step):
        end = min(d, begin + step)
        code, _, err = run("operator", "--load-operator", "s.json", "--cols", f"{begin}:{end}", "-o", "s.npy",
                           "--device", "cpu", "--output-dtype", "f8")
        expect(code == 0, name, err)
        block = read("s.npy")
        s[:, begin:end] = block.toarray() if hasattr(block, "toarray") else block
    exact = x @ s.T
    u = 2.0**-53 if got.dtype == np.float64 else 2.0**-24
    size = 16 * np.linalg.norm(x, axis=1, keepdims=True) if name.startswith("kron") else np.abs(x) @ np.abs(s).T
    bound = (4 + 0.5 * np.sqrt(d)) * u * size + 2.0**-149
    for who, y in (("cuda", got), ("cpu", also)):
        off = np.abs(y - exact) / bound
        expect(y.shape == (len(x), k) and off.max() <= 1, name, who, "is off by", off.max(), "of the bound")
    done += 1
    return True


def options_of(kind, k):
    return (KINDS[kind] or ["--operator", kind]) + ["-k", str(k), "--seed", str(int(random.integers(1 << 60)))]


code, out, err = run("info", "--json")
info = json.loads(out)
if "cuda" not in info["devices"]:
    print("skipped:", info["device_reason"])
    sys.exit(77)
print(*info["gpus"], sep="\n")
expect(info["gpus"][0] in run("info")[1], "info names no GPU")
code, _, err = run("info", "--device", f"cuda:{len(info['gpus'])}")
expect(code == 6 and "the device index is" in err, "a GPU too many:", code, err)
expect(run("info", "--device", "cuda:0")[0] == 0, "cuda:0")

reduced = os.environ.get("GNOMON_TEST_REDUCED", "0") not in ("", "0")
for kind in KINDS:
    k = int(random.integers(17, 90))
    compare(kind, random.standard_normal((37, 1503), dtype=np.float32), "x.npy", options_of(kind, k))
    compare(f"{kind}, by columns", random.standard_normal((37, 1503), dtype=np.float32), "x.npy",
            options_of(kind, k), True)
    if reduced and kind != "rademacher":
        continue
    compare(f"{kind}, fp64", random.standard_normal((19, 801)), "x.npy", options_of(kind, k))
    compare(f"{kind}, fp16", random.standard_normal((40, 1100)).astype(np.float16), "x.npy", options_of(kind, k))
    compare(f"{kind}, int8", random.integers(-128, 128, (150, 600), dtype=np.int8), "x.npy", options_of(kind, k))
kind = "rademacher"
wide = np.exp2(random.uniform(-90, 60, (33, 4001))).astype(np.float32) * random.choice([-1, 1], (33, 4001))
compare(f"{kind}, all exponents", wide.astype(np.float32), "x.npy", options_of(kind, 40))
text = random.integers(-9999, 9999, (50, 200)) / 64
np.savetxt("x.csv", text, delimiter=",", fmt="%.8g")
compare_file(f"{kind}, csv", text, "x.csv", options_of(kind, 20) + ["--output-dtype", "f4"])

# Points wider than --memory, in pieces of columns, and a file read in chunks: the same bits.
for kind in ("rademacher", "sjlt"):
    options = options_of(kind, 12)
    np.save("wide.npy", random.standard_normal((5, 300001), dtype=np.float32))
    first = project("cuda", "wide.npy", "one.npy", options)
    if first[0] == 0:
        code, report, err = project("cuda", "wide.npy", "two.npy", options + ["--memory", "65M"])
        expect(code == 0 and report["chunk_dimensions"] < 300001, kind, "wide", err)
        expect(code == 0 and (read("one.npy") == read("two.npy")).all(), kind, "wide: other bits")
        np.save("wide.npy", np.asfortranarray(read("wide.npy")))
        code, report, err = project("cuda", "wide.npy", "two.npy", options)
        expect(code == 0 and (read("one.npy") == read("two.npy")).all(), kind, "Fortran: other bits", err)
        code, report, err = project("auto", "wide.npy", "two.npy", options)
        expect(code == 0 and report["device"] == "cuda", kind, "Fortran under auto", err)
    np.save("long.npy", random.standard_normal((9000, 300), dtype=np.float32))
    first = project("cuda", "long.npy", "one.npy", options)
    if first[0] == 0:
        code, report, err = project("cuda", "long.npy", "two.npy", options + ["--memory", "65M"])
        expect(code == 0 and report["chunk_points"] < 9000, kind, "long", err)
        expect(code == 0 and (read("one.npy") == read("two.npy")).all(), kind, "long: other bits")

# The sketch is as good as the CPU's.
np.save("x.npy", random.standard_normal((300, 2000), dtype=np.float32))
options = options_of("rademacher", 256)
means = []
for device in ("cuda", "cpu"):
    code, _, err = project(device, "x.npy", "y.npy", options)
    code, out, err = run("distortion", "x.npy", "y.npy", "--json", "--device", "cpu")
    expect(code == 0, "distortion", device, err)
    means.append(json.loads(out)["distances"]["mean"] if code == 0 else 0)
expect(abs(means[0] - means[1]) < 1e-5, "distortion differs:", *means)

# Singular values: as good as the best there are.
def factor(name, a, *options, file="x.npy"):
    global done
    if file.endswith(".npy"):
        np.save(file, a)
    words = ["svd", file, "-k", "20", "-o", "f.npz", "--json", "--quiet", "--measure", "--device", "cuda", *options]
    code, out, err = run(*words)
    if code == 6:
        declined.add(f"{name}: {err.strip().split('declined: ')[-1]}")
        expect(name not in needed, name, err)
        return
    expect(code == 0, name, code, err)
    if code != 0:
        return
    report, f, a = json.loads(out), np.load("f.npz"), a.astype(np.float64)
    u, s, vt = (f[key].astype(np.float64) for key in ("U", "S", "Vt"))
    left, best = np.linalg.norm(a - (u * s) @ vt), np.linalg.norm(np.linalg.svd(a, compute_uv=False)[len(s):])
    expect(report["device"] == "cuda" and report["gpu"], name, report)
    expect(left <= 1.02 * best + 1e-6 * np.linalg.norm(a), name, "leaves", left, "and", best, "would do")
    expect(abs(report["residual"] - left) <= 1e-3 * left + 1e-6 * np.linalg.norm(a), name, report["residual"], left)
    for vectors in (u.T @ u, vt @ vt.T):
        expect(np.abs(vectors - np.eye(len(s))).max() < 1e-6, name, "not orthonormal")
    done += 1


low = (random.standard_normal((900, 60)) * np.exp(-np.arange(60) / 9)) @ random.standard_normal((60, 500))
low = (low + 1e-3 * random.standard_normal((900, 500))).astype(np.float32)
factor("svd", low)
factor("svd, by columns", np.asfortranarray(low), "--power", "1")
factor("svd, fp16", low.astype(np.float16), "--operator", "rademacher")
np.savetxt("x.csv", low, delimiter=",", fmt="%.9g")
factor("svd, csv", low, "--output-dtype", "f4", "--operator", "sjlt", file="x.csv")
factor("svd, fp64", low.astype(np.float64), "--output-dtype", "f8")
code, out, err = run("svd", "x.npy", "-k", "20", "--single-pass", "--json", "--quiet", "--device", "cuda")
expect(code in (0, 6), "svd, one pass:", code, err)
if code == 0:
    report, best = json.loads(out), np.linalg.norm(np.linalg.svd(low, compute_uv=False)[20:])
    expect(report["device"] == "cuda" and report["passes"] == 1, "svd, one pass:", report)
    expect(report["residual_estimate"] < 4 * best, "svd, one pass, leaves", report["residual_estimate"], "of", best)
low[17, 33] = np.inf
np.save("x.npy", low)
code, _, err = run("svd", "x.npy", "-k", "5", "--device", "cuda")
expect(code == 6 or code == 3 and "row 17, column 33" in err, "svd, infinity:", code, err)
np.save("x.npy", random.standard_normal((300, 2000), dtype=np.float32))

# Nearest neighbours: the same files from either device.
base, asked = (random.standard_normal((n, 40), dtype=np.float32) for n in (4000, 60))
np.save("base.npy", base)
np.save("asked.npy", asked)
for options in (["-k", "7"], ["-k", "3", "--metric", "cosine", "--memory", "66M"], ["--radius", "6"]):
    for device in ("cpu", "cuda"):
        code, _, err = run("neighbors", "base.npy", "asked.npy", *options, "-o", f"{device}.csv", "--device", device)
        if code != 0:
            break
    if code == 6 and "declined" in err:
        declined.add("neighbors: " + err.strip())
    else:
        expect(code == 0 and open("cpu.csv").read() == open("cuda.csv").read(), "neighbors", *options, code, err)

# Sparse points: the CPU's bits; under auto so few stay here, which the report tells.
with open("x.mtx", "w") as f:
    f.write("%%MatrixMarket matrix coordinate real general\n3 50 3\n1 2 0.5\n2 7 1\n3 50 -2\n")
for kind in KINDS:
    options = options_of(kind, 8)
    code, report, err = project("cuda", "x.mtx", "cuda.npy", options)
    if code == 6:
        declined.add(f"{kind}, sparse: {err.strip().split('declined: ')[-1]}")
        expect("sparse" in err, kind, "sparse points:", err)
        continue
    expect(code == 0 and report["device"] == "cuda", kind, "sparse points:", code, err)
    code, report, err = project("cpu", "x.mtx", "cpu.npy", options)
    expect(code == 0 and read("cuda.npy").tobytes() == read("cpu.npy").tobytes(), kind, "sparse points: other bits", err)
    done += 1
code, report, err = project("auto", "x.mtx", "y.npy", options_of("rademacher", 4))
expect(code == 0 and report["device"] == "cpu" and "takes longer" in report["device_reason"], "sparse under auto:", report, err)
with open("x.mtx", "w") as f:
    f.write("%%MatrixMarket matrix coordinate real general\n3 50 3\n1 2 0.5\n2 7 nan\n3 50 -2\n")
code, _, err = project("cuda", "x.mtx", "never.npy", options_of("sjlt", 4))
expect(code in (3, 6), "NaN in sparse points:", code, err)

# What the GPU does not do.
code, report, err = project("auto", "x.npy", "y.npy", options_of("rademacher", 4))
expect(code == 0 and report["device"] == "cuda", "auto:", err)
code, report, err = project("auto", "x.npy", "y.npy", ["--operator", "auto", "-k", "64"])
expect(code == 0, "--operator auto:", err)
points = random.standard_normal((300, 2000), dtype=np.float32)
points[123, 1999] = np.nan
for order in "CF":
    np.save("nan.npy", np.array(points, order=order))
    code, _, err = project("cuda", "nan.npy", "never.npy", options_of("rademacher", 4))
    expect(code == 3 and "row 123, column 1999" in err, "NaN:", order, code, err)
expect(not os.path.exists("never.npy"), "a failed run left its output")

print(f"{done} comparisons, {len(declined)} declined, {len(wrong)} wrong")
for line in sorted(declined):
    print("declined:", line)
print(*wrong, sep="\n")
sys.exit(bool(wrong))

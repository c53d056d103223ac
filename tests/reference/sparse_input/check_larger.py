"""Sparse files larger than --memory: neighbours and joins have the same bytes as with all in memory, and the process
stays within --memory; where readers must put entries in order in memory, it is refused.

usage: check_larger.py GNOMON WORK
"""
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("NumPy is missing")
    sys.exit(77)

gnomon, work = os.path.abspath(sys.argv[1]), sys.argv[2]
rng = np.random.default_rng(9)
ROWS, COLS, EACH, MEMORY = 130000, 20000, 40, 84
failures = []


def write(path, rows, save):
    indices = np.sort(np.minimum(rng.pareto(0.7, (rows, EACH)) * 20, COLS - 1).astype(np.int32), 1)
    kept = np.ones((rows, EACH), bool)
    kept[:, 1:] = indices[:, 1:] != indices[:, :-1]
    ends = np.append(0, np.cumsum(kept.sum(1)))
    save(path, format=np.array(b"csr"), shape=np.array([rows, COLS]), data=rng.random(int(ends[-1])),
         indices=indices[kept], indptr=ends)
    return int(ends[-1])


# A child has at first the memory of who starts it: not of this process, but of a small one.
SMALL = """
import os, sys
process = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(process, 0)
print(usage.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status))
"""


def run(*words):
    """Exit code, error and the most memory in MiB."""
    done = subprocess.run([sys.executable, "-S", "-c", SMALL, gnomon, *words, "--quiet"], capture_output=True, text=True)
    return done.returncode, done.stderr.strip(), int(done.stdout) / 1024


def content(path):
    with open(path, "rb") as file:
        return file.read()


with tempfile.TemporaryDirectory(dir=work) as folder:
    os.chdir(folder)
    entries = write("large.npz", ROWS, np.savez)
    write("few.npz", 60, np.savez_compressed)
    write("some.npz", 4000, np.savez_compressed)
    assert entries * 12 / 2**20 > (MEMORY - 64) * 2
    cases = {
        "few queries": (["neighbors", "large.npz", "few.npz", "-k", "5", "--metric", "cosine"], MEMORY),
        "many queries": (["neighbors", "few.npz", "large.npz", "-k", "3", "--metric", "l2"], MEMORY),
        "join of two": (["join", "large.npz", "few.npz", "--metric", "cosine", "--threshold", "0.7"], MEMORY),
        "join, the large one indexed": (["join", "few.npz", "large.npz", "--metric", "ip", "--threshold", "3"], MEMORY),
        "join with itself": (["join", "some.npz", "--metric", "cosine", "--threshold", "0.5"], 66),
    }
    for name, (words, memory) in cases.items():
        code, error, whole = run(*words, "-o", "one.csv", "--memory", "1G")
        found, error, peak = run(*words, "-o", "two.csv", "--memory", f"{memory}M", "--threads", "2")
        lines = content("one.csv").count(b"\n")
        print(f"{name}: {lines} lines, {whole:.0f} MiB and {peak:.0f} MiB of {memory}")
        if code != 0 or found != 0 or content("one.csv") != content("two.csv") or lines < 100:
            failures.append(f"{name}: {code} {found} {error}")
        if peak > memory:
            failures.append(f"{name}: {peak} MiB, more than {memory}")
    coo = np.load("large.npz")
    np.savez("order.npz", format=np.array(b"coo"), shape=coo["shape"], data=coo["data"], col=coo["indices"],
             row=np.repeat(np.arange(ROWS, dtype=np.int32), np.diff(coo["indptr"])))
    for words in (["neighbors", "order.npz", "few.npz", "-k", "5"], ["join", "order.npz", "few.npz", "--threshold", "1"]):
        code, error, peak = run(*words, "-o", "two.csv", "--memory", f"{MEMORY}M")
        if code != 5 or "need --memory" not in error or peak > 40:
            failures.append(f"{words}: {code} {error} {peak}")
    os.chdir("/")

for failure in failures:
    print("wrong:", failure)
sys.exit(1 if failures else 0)

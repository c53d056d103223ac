"""What a query of an index by hashing must read, by the settings that tuning finds for a recall of 0.95: the lower bound of its time
on a GPU. scripts/results/lsh.py sets it beside exact search there.

usage: lsh_bytes.py GNOMON --output FILE.json [--keep FOLDER]

A million fp32 points of 128 coordinates, k = 10: 1,000 clusters of 1,000 points, as bench/gpu/search.cu has them, and 100,000 groups of
ten. 'gnomon index tune' lists settings with the recall and the candidates of its sample queries. Taken are those that meet the
guarantee or, where none does for exact search is faster, those that reach the recall with the fewest candidates. Counts only: other
work on the machine doesn't matter. Needs NumPy, 3 GB of memory and 1 GB of disk."""
import argparse
import json
import os
import re
import subprocess
import tempfile

import numpy as np

N, D, K, RECALL = 1_000_000, 128, 10, 0.95
DATA = ["clusters of 1,000", "groups of ten"]


def draw():
    """Base points of each kind, in order."""
    rng = np.random.default_rng(5)
    centres = 4 * (rng.random((1000, D), dtype=np.float32) - 0.5)
    yield np.repeat(centres, 1000, axis=0) + np.float32(0.05) * rng.standard_normal((N, D), dtype=np.float32)
    rng.integers(0, 1000, 10000), rng.standard_normal((10000, D), dtype=np.float32)
    groups = rng.standard_normal((100_000, D), dtype=np.float32)
    yield np.repeat(groups, 10, axis=0) + np.float32(0.3) * rng.standard_normal((N, D), dtype=np.float32)


def settings(text):
    """The rows of tuning's table: whether it is guaranteed, tables, functions, rerank (None: all), recall, candidates."""
    found = []
    for line in text.splitlines():
        m = re.match(r"([ +-]) +\S+ +\S+ +(\d+) +(\S+) +\d+ +\d+ +\S+ +(\d+|all) +(\S+) +(\S+) ", line)
        if m:
            found.append({"kept": m[1] == "+", "tables": int(m[2]), "functions": m[3], "rerank": None if m[4] == "all" else int(m[4]),
                          "recall": float(m[5]), "candidates": float(m[6])})
    return found


def case(name, text):
    rows = settings(text)
    kept = [r for r in rows if r["kept"]]
    best = kept[-1] if kept else min((r for r in rows if r["recall"] >= RECALL), key=lambda r: r["candidates"])
    return {"data": name} | best


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("gnomon")
    parser.add_argument("--output", required=True)
    parser.add_argument("--keep", help="tuning's output is written there")
    a = parser.parse_args()
    cases = []
    with tempfile.TemporaryDirectory() as folder:
        for name, points in zip(DATA, draw()):
            path = os.path.join(folder, "base.npy")
            np.save(path, points)
            command = [a.gnomon, "index", "tune", path, "-k", str(K), "--recall", str(RECALL), "--device", "cpu", "--memory", "2G"]
            text = subprocess.run(command, capture_output=True, text=True).stdout
            if a.keep:
                with open(os.path.join(a.keep, name.replace(" ", "-") + ".txt"), "w") as file:
                    file.write(text)
            cases.append(case(name, text))
    with open(a.output, "w") as file:
        json.dump({"bench": "lsh_bytes", "n": N, "d": D, "k": K, "recall": RECALL, "code_bytes": 64, "cases": cases}, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()

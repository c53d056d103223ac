#!/usr/bin/env python3
"""Peak memory of `gnomon project` on a file larger than the limit it is given.

The limit counts everything the command holds: 64 MiB for the program, the rest for the
input chunk, the output and the sums. Writes a file of random numbers, projects it under
several limits, by points and by coordinates, and reports the peak resident set and whether
the outputs are the same, byte for byte.

usage: bench/cpu/memory.py GNOMON [--out FILE.json] [--folder DIR] [--gib SIZE]"""

import argparse
import hashlib
import json
import multiprocessing
import os
import subprocess
import tempfile
import time

MIB = 1 << 20


def write_points(path, rows, cols):
    """An f32 .npy of rows x cols numbers in [1, 2): random mantissas under one exponent."""
    import numpy as np

    rng = np.random.default_rng(1)
    header = np.lib.format.header_data_from_array_1_0(np.zeros((1, 1), np.float32))
    with open(path, "wb") as f:
        np.lib.format.write_array_header_1_0(f, {**header, "shape": (rows, cols)})
        left = rows
        while left:
            n = min(left, max(1, (16 * MIB) // (4 * cols)))
            bits = rng.integers(0, 1 << 23, size=(n, cols), dtype=np.uint32) | np.uint32(0x3F800000)
            f.write(bits.tobytes())
            left -= n


def peak(command):
    """Runs a command: seconds and peak resident bytes. A process of its own, so that its
    figure is not this one's or an earlier child's."""
    start = time.monotonic()
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit(f"{' '.join(command)}: status {status}")
    return time.monotonic() - start, usage.ru_maxrss * 1024


def digest(path):
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("gnomon")
    parser.add_argument("--out")
    parser.add_argument("--folder", default=None)
    parser.add_argument("--gib", type=float, default=1.0)
    a = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory(dir=a.folder) as folder:
        for name, cols, k in [("many points", 4096, 64), ("many coordinates", 2_000_000, 256)]:
            rows = max(1, int(a.gib * 1024 * MIB) // (4 * cols))
            path, out = os.path.join(folder, "x.npy"), os.path.join(folder, "y.npy")
            # in a process of its own: a child's peak begins at what its parent holds
            writer = multiprocessing.Process(target=write_points, args=(path, rows, cols))
            writer.start()
            writer.join()
            if writer.exitcode != 0:
                raise SystemExit("the file of points could not be written")
            digests = set()
            for limit in (96, 128, 256, 512):
                command = [a.gnomon, "project", path, "-o", out, "-k", str(k), "--operator", "very-sparse"]
                command += ["--seed", "7", "--memory", f"{limit}MiB", "--quiet"]
                seconds, memory = peak(command)
                digests.add(digest(out))
                results.append(
                    {
                        "case": name,
                        "rows": rows,
                        "cols": cols,
                        "k": k,
                        "file_mib": os.path.getsize(path) / MIB,
                        "limit_mib": limit,
                        "peak_mib": round(memory / MIB, 1),
                        "seconds": round(seconds, 2),
                    }
                )
                r = results[-1]
                print(
                    f"{name:17} {r['file_mib']:7.0f} MiB file  limit {limit:4} MiB"
                    f"  peak {r['peak_mib']:7.1f} MiB  {r['seconds']:6.2f} s",
                    flush=True,
                )
            if len(digests) != 1:
                raise SystemExit(f"{name}: the outputs differ between limits")
            print(f"{name}: the same output, byte for byte, under every limit")
            os.remove(path)
    if a.out:
        commit = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True)
        with open("/proc/cpuinfo") as f:
            cpu = next((x.split(":")[1].strip() for x in f if x.startswith("model name")), "?")
        with open(a.out, "w") as f:
            json.dump(
                {
                    "benchmark": "peak memory of gnomon project",
                    "cpu": cpu,
                    "commit": commit.stdout.strip(),
                    "date": time.strftime("%Y-%m-%d"),
                    "results": results,
                },
                f,
                indent=1,
            )
            f.write("\n")


if __name__ == "__main__":
    main()

"""A job with a report (--json) while memory runs out or reading fails: each such call of the command fails, alone or with all
after it. Report and output are whole, or the exit code is 5 (memory), 4 (file) or 3 (data: libzip takes a failed allocation of
its own for a broken archive), with a word about it and no report.

usage: report.py GNOMON FAULTS_LIBRARY
"""
import os
import re
import struct
import subprocess
import sys
import tempfile
import zipfile

JOBS = [
    # seeds and densities are the long tokens of a descriptor
    ["operator", "--operator", "very-sparse", "--density", "0.3333333333333333", "--seed", "18446744073709551615",
     "-k", "4", "-D", "200"],
    # a reader of lines that takes a failed allocation for the end of the file reports a whole job over fewer lines
    ["join", "lines.txt", "--text", "lines", "-t", "0.5", "--threads", "1"],
    ["neighbors", "points.csv", "points.csv", "-k", "1", "--exclude-self", "--names", "lines.txt", "-o", "near.csv",
     "--threads", "1"],
    # a member of the archive that can't be read is not one that is not there
    ["transform", "factors.npz", "points.npy", "-o", "near.npy", "--threads", "1"],
    ["info", "packed.npz"],
]
OK, DATA, FILE, MEMORY = 0, 3, 4, 5


def output(folder, arguments):
    """The bytes that a job wrote; None for none."""
    path = f"{folder}/{arguments[arguments.index('-o') + 1]}" if "-o" in arguments else ""
    if not os.path.exists(path):
        return None
    with open(path, "rb") as file:
        bytes_ = file.read()
    os.remove(path)
    return bytes_


def failures(command, faults, folder, arguments, kind):
    """How many runs of one job there were, how many of them not as they should be, and its calls of that kind."""
    def run(at, ever):
        environment = dict(os.environ, LD_PRELOAD=faults, FAULT_KIND=kind, FAULT_AT=str(at), FAULT_EVER=str(ever),
                           FAULT_COUNT=f"{folder}/count")
        done = subprocess.run([command] + arguments + ["--json"], cwd=folder, env=environment, capture_output=True, text=True,
                              timeout=60)
        report = re.sub(r'(seconds|per_second)": [^,]*', "", done.stdout)
        return done.returncode, report, done.stderr, output(folder, arguments)

    code, whole, words, wanted = run(0, 0)
    if code != OK:
        sys.exit(f"{arguments}: exit code {code}: {words}")
    with open(f"{folder}/count") as file:
        calls = int(file.read())
    tried = [(at, 0) for at in range(1, calls + 1)] + [(at, 1) for at in range(1, calls + 1, 5)]
    bad = 0
    for at, ever in tried:
        code, out, words, made = run(at, ever)
        if (code, out, made) != (OK, whole, wanted) and (code not in (DATA, FILE, MEMORY) or out != "" or words == ""):
            print(f"{arguments}: {kind} {at} of {calls}{' and all later' if ever else ''}: exit code {code}\n{out}{words}")
            bad += 1
    return len(tried), bad, calls


def npy(shape, numbers):
    """The bytes of an .npy file of doubles."""
    header = repr({"descr": "<f8", "fortran_order": False, "shape": shape}).ljust(117).encode() + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header + struct.pack(f"<{len(numbers)}d", *numbers)


def main():
    command, faults = map(os.path.abspath, sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/lines.txt", "w") as lines, open(f"{folder}/points.csv", "w") as points:
            for i in range(12):
                lines.write(f"a line of its own, number {i // 2}\n")
                points.write(f"{i},{i * i},{i % 3}\n")
        with open(f"{folder}/points.npy", "wb") as file:
            file.write(npy((12, 5), [i % 7 for i in range(60)]))
        for name, how in (("factors", zipfile.ZIP_STORED), ("packed", zipfile.ZIP_DEFLATED)):
            with zipfile.ZipFile(f"{folder}/{name}.npz", "w", how) as archive:
                archive.writestr("S.npy", npy((2,), [3, 2]))
                archive.writestr("Vt.npy", npy((2, 5), [1, 0, 0, 0, 0, 0, 1, 0, 0, 0]))
                archive.writestr("mean.npy", npy((5,), [1, 2, 3, 4, 5]))
        results = [failures(command, faults, folder, arguments, "malloc") for arguments in JOBS]
        reads = [failures(command, faults, folder, arguments, "read") for arguments in JOBS[1:]]
    print(f"{sum(r[0] for r in results + reads)} tried, {sum(r[1] for r in results + reads)} not as they should be")
    few = min(calls for _, _, calls in results) < 100 or max(calls for _, _, calls in reads) < 10
    sys.exit(few or any(bad > 0 for _, bad, _ in results + reads))


main()

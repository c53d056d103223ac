"""A report (--json) while memory runs out: each allocation of the command fails, alone or with all after it, and the report
is whole, or the exit code is 5 (4 where a file could not be opened), with a word about it and no report.

usage: report.py GNOMON FAULTS_LIBRARY
"""
import os
import re
import subprocess
import sys
import tempfile

JOBS = [
    # seeds and densities are the long tokens of a descriptor
    ["operator", "--operator", "very-sparse", "--density", "0.3333333333333333", "--seed", "18446744073709551615",
     "-k", "4", "-D", "200"],
    # a reader of lines that takes a failed allocation for the end of the file reports a whole job over fewer lines
    ["join", "lines.txt", "--text", "lines", "-t", "0.5", "--threads", "1"],
    ["neighbors", "points.csv", "points.csv", "-k", "1", "--exclude-self", "--names", "lines.txt", "-o", "near.csv",
     "--threads", "1"],
]
OK, FILE, MEMORY = 0, 4, 5


def failures(command, faults, folder, arguments):
    """How many runs of one job there were, how many of them not as they should be, and its calls of the allocator."""
    def run(at, ever):
        environment = dict(os.environ, LD_PRELOAD=faults, FAULT_KIND="malloc", FAULT_AT=str(at), FAULT_EVER=str(ever),
                           FAULT_COUNT=f"{folder}/count")
        done = subprocess.run([command] + arguments + ["--json"], cwd=folder, env=environment, capture_output=True, text=True,
                              timeout=60)
        return done.returncode, re.sub(r'(seconds|per_second)": [^,]*', "", done.stdout), done.stderr

    code, whole, words = run(0, 0)
    if code != OK:
        sys.exit(f"{arguments}: exit code {code}: {words}")
    with open(f"{folder}/count") as file:
        calls = int(file.read())
    tried = [(at, 0) for at in range(1, calls + 1)] + [(at, 1) for at in range(1, calls + 1, 5)]
    bad = 0
    for at, ever in tried:
        code, out, words = run(at, ever)
        if (code, out) != (OK, whole) and (code not in (FILE, MEMORY) or out != "" or words == ""):
            print(f"{arguments}: allocation {at} of {calls}{' and all later' if ever else ''}: exit code {code}\n{out}{words}")
            bad += 1
    return len(tried), bad, calls


def main():
    command, faults = map(os.path.abspath, sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/lines.txt", "w") as lines, open(f"{folder}/points.csv", "w") as points:
            for i in range(12):
                lines.write(f"a line of its own, number {i // 2}\n")
                points.write(f"{i},{i * i},{i % 3}\n")
        results = [failures(command, faults, folder, arguments) for arguments in JOBS]
    print(f"{sum(r[0] for r in results)} tried, {sum(r[1] for r in results)} not as they should be")
    sys.exit(any(bad > 0 or calls < 100 for _, bad, calls in results))


main()

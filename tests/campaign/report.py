"""A report (--json) while memory runs out: each allocation of the command fails, alone or with all after it, and the report
is whole, or the exit code is 5 and nothing is printed.

usage: report.py GNOMON FAULTS_LIBRARY
"""
import os
import re
import subprocess
import sys
import tempfile

# seeds and densities are the long tokens of a descriptor
ARGUMENTS = ["operator", "--operator", "very-sparse", "--density", "0.3333333333333333", "--seed", "18446744073709551615",
             "-k", "4", "-D", "200", "--json"]
OK, MEMORY = 0, 5


def main():
    command, faults = map(os.path.abspath, sys.argv[1:])
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        def run(at, ever):
            environment = dict(os.environ, LD_PRELOAD=faults, FAULT_KIND="malloc", FAULT_AT=str(at), FAULT_EVER=str(ever),
                               FAULT_COUNT=f"{folder}/count")
            done = subprocess.run([command] + ARGUMENTS, cwd=folder, env=environment, capture_output=True, text=True, timeout=60)
            return done.returncode, re.sub(r'"seconds": [^,]*', "", done.stdout), done.stderr

        _, whole, _ = run(0, 0)
        with open(f"{folder}/count") as file:
            calls = int(file.read())
        tried = [(at, 0) for at in range(1, calls + 1)] + [(at, 1) for at in range(1, calls + 1, 5)]
        for at, ever in tried:
            code, out, words = run(at, ever)
            if (code, out) not in ((OK, whole), (MEMORY, "")):
                print(f"allocation {at} of {calls}{' and all later' if ever else ''}: exit code {code}\n{out}{words}")
                bad += 1
    print(f"{len(tried)} tried, {bad} not as they should be")
    sys.exit(bad > 0 or calls < 100)


main()

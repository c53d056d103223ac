"""Runs one test of the command: a script beside what it must print and exit with.

NAME.sh            the script, run by bash in an empty folder with links to the fixtures
NAME.stdout.exact  its standard output, byte for byte; or
NAME.stdout.glob   the same as patterns, a line each: * stands for any text in the line, a line
                   '...' for any number of lines. Without either it must print nothing
NAME.stderr.*      likewise
NAME.exit          its exit code; 0 without the file. 77 skips the test

What a test prints must be the same at every instruction set level: GNOMON_ISA reaches the command, no
other of its variables does. The script finds gnomon on its PATH, Python as $PYTHON and this folder as $TESTS; $SANITIZED
is not empty where a sanitizer is in the command, which takes memory of its own. A temporary file left behind fails the
test.

usage: run.py [--update] GNOMON FIXTURES WORK SCRIPT
"""
import os
import re
import shutil
import subprocess
import sys
import time

SKIPPED = 77


def matches(pattern_lines, lines):
    text = "\n".join(lines) + "\n"
    parts = []
    for pattern in pattern_lines:
        if pattern == "...":
            parts.append("(?:[^\n]*\n)*?")
        else:
            parts.append("[^\n]*".join(re.escape(p) for p in pattern.split("*")) + "\n")
    return re.fullmatch("".join(parts), text) is not None


def check(base, stream, printed, update):
    exact, glob = f"{base}.{stream}.exact", f"{base}.{stream}.glob"
    if update and not os.path.exists(glob):
        if printed:
            with open(exact, "wb") as file:
                file.write(printed)
        elif os.path.exists(exact):
            os.remove(exact)
        return True
    if os.path.exists(glob):
        with open(glob) as file:
            wanted = file.read().splitlines()
        good = matches(wanted, printed.decode(errors="replace").splitlines())
    else:
        wanted = open(exact, "rb").read() if os.path.exists(exact) else b""
        good = wanted == printed
        wanted = wanted.decode(errors="replace").splitlines()
    if not good:
        print(f"{stream} is not as wanted. Wanted:")
        print("\n".join("  | " + line for line in wanted))
        print("Printed:")
        print("\n".join("  | " + line for line in printed.decode(errors="replace").splitlines()))
    return good


def sanitized(program):
    with open(program, "rb") as file:
        return re.search(b"__[at]san_init", file.read()) is not None


def main(arguments):
    update = arguments[0] == "--update"
    gnomon, fixtures, work, script = arguments[update:]
    base = os.path.splitext(os.path.abspath(script))[0]
    folder = os.path.join(work, os.path.basename(base))
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    for name in os.listdir(fixtures):
        if not name.startswith("."):
            os.symlink(os.path.join(os.path.abspath(fixtures), name), os.path.join(folder, name))
    environment = {key: value for key, value in os.environ.items()
                   if not key.startswith(("GNOMON_", "LC_", "LANG")) or key == "GNOMON_ISA"}
    environment.update(PATH=os.path.dirname(os.path.abspath(gnomon)) + ":" + os.environ["PATH"],
                       PYTHON=sys.executable, TESTS=os.path.dirname(os.path.abspath(__file__)), HOME=folder,
                       SANITIZED="yes" if sanitized(gnomon) else "",
                       GNOMON_PLUGIN_DIR="/nonexistent",  # the CPU, also where there is a GPU
                       PYTHONDONTWRITEBYTECODE="1")
    begin = time.time_ns()
    done = subprocess.run(["bash", os.path.abspath(script)], cwd=folder, env=environment,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
    if done.returncode == SKIPPED:
        print((done.stdout + done.stderr).decode(errors="replace"))
        return SKIPPED
    wanted = int(open(base + ".exit").read()) if os.path.exists(base + ".exit") else 0
    good = done.returncode == wanted
    if not good:
        print(f"exit code {done.returncode}, wanted {wanted}")
    good &= check(base, "stdout", done.stdout, update)
    good &= check(base, "stderr", done.stderr, update)
    written = [name for name in os.listdir(fixtures) if os.stat(os.path.join(fixtures, name)).st_mtime_ns > begin]
    if written:
        print("files that all tests share were written to, by this test or one beside it:", *written)
        good = False
    left = [name for name in os.listdir(folder) if name.startswith(".") and name.endswith(".tmp")]
    if left:
        print("temporary files are left:", *left)
        good = False
    if good:
        shutil.rmtree(folder)
    return 0 if good else 1


sys.exit(main(sys.argv[1:]))

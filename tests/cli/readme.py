"""Runs the commands of the README and of the tutorial, and the README's example, and holds what they print against
what the pages show. The tutorial's commands run where their data is and the command was built with LAPACK.

usage: readme.py GNOMON EXAMPLE SOURCES WORK
"""
import os
import re
import shutil
import subprocess
import sys

gnomon, example, sources, work = map(os.path.abspath, sys.argv[1:])
shutil.rmtree(work, ignore_errors=True)
os.makedirs(work)
os.symlink(os.path.join(sources, "data"), os.path.join(work, "data"))
environment = dict(os.environ, GNOMON_PLUGIN_DIR="/nonexistent",
                   PATH=os.path.dirname(gnomon) + ":" + os.environ["PATH"])
with open(os.path.join(sources, "README.md")) as file:
    readme = file.read()
with open(os.path.join(sources, "examples", "sketch.c")) as file:
    code = [line.strip() for line in file]
wrong = 0


NUMBER = r"(?<![\w.])[+-]?\d+(?:\.\d+)?(?:e[+-]\d+)?"


def alike(shown, printed):
    """Figures of a factorisation end in digits that LAPACK's rounding decides; those near rounding are nothing else."""
    if re.split(NUMBER, shown) != re.split(NUMBER, printed):
        return False
    pairs = zip(map(float, re.findall(NUMBER, shown)), map(float, re.findall(NUMBER, printed)))
    return all(abs(a - b) <= 2e-3 * abs(a) or max(abs(a), abs(b)) < 1e-9 for a, b in pairs)


def hold(name, shown, printed):
    global wrong
    shown, printed = (re.sub(r" in [0-9.]+ s\b", " in a moment", text).strip() for text in (shown, printed))
    factors = any(verb in name for verb in ("gnomon svd", "gnomon lstsq", "gnomon hosvd"))
    if factors:  # rounding also decides whether one more step is needed
        shown, printed = (re.sub(r"\b\d+ steps?,", "some steps,", text) for text in (shown, printed))
    if not (alike(shown, printed) if factors else shown == printed):
        wrong += 1
        print(f"{name}: the page shows\n{shown}\nbut it prints\n{printed}")


with open(os.path.join(sources, "docs", "tutorial", "README.md")) as file:
    tutorial = file.read()
facts = subprocess.run([gnomon, "info", "--json"], capture_output=True, text=True, check=True).stdout
left_out = [] if '"svd": true' in facts else ["gnomon svd", "gnomon lstsq", "gnomon hosvd"]
licences = "/usr/share/common-licenses"
if not os.path.exists(licences + "/GFDL-1.3"):
    left_out.append(licences)
pages = [[one for block in re.findall(r"```console\n(\$ (?:.*\n)*?)```", page)
          for one in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.M)] for page in (readme, tutorial)]
assert len(pages[0]) >= 4 and len(pages[1]) >= 12
for command, shown in pages[0] + pages[1]:
    if any(part in command for part in left_out):
        print(f"left out: {command}")
        continue
    done = subprocess.run(command, shell=True, cwd=work, env=environment, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    hold(command, shown, done.stdout)
shown = re.search(r"examples/sketch.c\), which prints:\n\n```\n((?:.*\n)*?)```", readme).group(1)
hold("examples/sketch.c", shown, subprocess.run([example], capture_output=True, text=True).stdout)
for line in re.search(r"```c\n((?:.*\n)*?)```", readme).group(1).splitlines():
    if line.strip() not in code:
        wrong += 1
        print(f"not in examples/sketch.c: {line}")
shutil.rmtree(work)
sys.exit(wrong > 0)

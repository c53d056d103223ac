"""Runs every example that --help prints, in their order, in a folder with the fixtures.

usage: examples.py GNOMON FIXTURES WORK
"""
import os
import re
import shutil
import subprocess
import sys

gnomon, fixtures, work = sys.argv[1:]
shutil.rmtree(work, ignore_errors=True)
shutil.copytree(fixtures, work)
environment = dict(os.environ, GNOMON_PLUGIN_DIR="/nonexistent",
                   PATH=os.path.dirname(os.path.abspath(gnomon)) + ":" + os.environ["PATH"])
failures = count = 0
verbs = ["project", "dim", "operator", "distortion", "neighbors", "join", "convert", "info",
         "index build", "index tune", "index query", "index info", "index check", "index add", "index remove",
         "index compact", "index"]
facts = subprocess.run([gnomon, "info", "--json"], capture_output=True, text=True, check=True).stdout
if '"svd": true' in facts:
    verbs += ["svd", "hosvd", "lstsq"]
else:
    print("left out: svd, hosvd and lstsq, for want of OpenBLAS")
if shutil.which("gnuplot") is None:
    print("left out: the plot, for want of gnuplot")
for verb in verbs:
    text = subprocess.run([gnomon, *verb.split(), "--help"], capture_output=True, text=True, check=True).stdout
    commands = re.findall(r"^    (gnomon .*)$", text.split("\nExamples:\n")[1], re.M)
    assert len(commands) >= (1 if "index" in verb else 3), verb
    for command in commands:
        if "--plot" in command and shutil.which("gnuplot") is None:
            continue
        count += 1
        done = subprocess.run(["bash", "-c", command], cwd=work, env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            failures += 1
            print(f"exit {done.returncode}: {command}\n{done.stderr}")
print(f"{count} examples, {failures} failed")
shutil.rmtree(work)
sys.exit(failures > 0)

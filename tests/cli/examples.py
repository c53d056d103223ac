"""Runs every example that --help prints, in their order, in a folder with the fixtures. The verbs are those that
the command's own help lists. An example is a caption and its commands, two and four columns in; any other line fails.

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


def listed(*verb):
    """The verbs that a help text lists."""
    text = subprocess.run([gnomon, *verb, "--help"], capture_output=True, text=True, check=True).stdout
    return re.findall(r"^  ([a-z]+)  +\S", text.split("\nVerbs:\n")[1].split("\n\n")[0], re.M)


def commands_of(text):
    """The commands of a help text's examples; stops at a line that is neither a caption nor a command below one."""
    commands, caption = [], None
    for line in text.split("\nExamples:\n")[1].split("\n\n")[0].splitlines():
        if re.match(r"    (.*\| )?gnomon \S", line) and caption is not None:
            commands.append(line.strip())
            caption = True
        elif re.match(r"  [A-Z]", line) and caption is not False:
            caption = False
        else:
            raise SystemExit(f"neither a caption nor a command: {line!r}")
    if not caption:
        raise SystemExit(f"an example without a command: {text[-200:]}")
    return commands


for mangled in ("  One\n  gnomon info\n    Two\n", "  One\n    Two\n", "  One\n  Two\n    gnomon info\n", "  One\n", "\n"):
    try:
        commands_of("\nExamples:\n" + mangled)
    except SystemExit:
        continue
    raise SystemExit(f"taken for examples: {mangled!r}")
verbs = [verb for verb in listed() if verb not in ("index", "svd", "transform", "hosvd", "lstsq")]
verbs += ["index " + verb for verb in listed("index")] + ["index"]
assert len(verbs) >= 17, verbs
facts = subprocess.run([gnomon, "info", "--json"], capture_output=True, text=True, check=True).stdout
if '"svd": true' in facts:
    verbs += ["svd", "transform", "hosvd", "lstsq"]
else:
    print("left out: svd, transform, hosvd and lstsq, for want of OpenBLAS")
if shutil.which("gnuplot") is None:
    print("left out: the plot, for want of gnuplot")
for verb in verbs:
    text = subprocess.run([gnomon, *verb.split(), "--help"], capture_output=True, text=True, check=True).stdout
    commands = commands_of(text)
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

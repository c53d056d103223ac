"""Holds the manual pages and the completions against --help: every verb and every option.

usage: documented.py GNOMON SOURCES WORK
"""
import json
import os
import re
import subprocess
import sys

gnomon, sources, work = sys.argv[1:]
wrong = []


def run(*words):
    return subprocess.run([gnomon, *words], capture_output=True, text=True, check=True).stdout


def read(*path):
    with open(os.path.join(*path)) as file:
        return file.read()


def pages():
    listed = run("--help").split("Verbs:\n")[1].split("\n\n")[0]
    verbs = re.findall(r"^  (\w+)  +\S", listed, re.M)
    assert len(verbs) >= 6, verbs
    main_page = read(sources, "docs", "man", "gnomon.1")
    for verb in verbs:
        name = f"gnomon-{verb}.1"
        page = read(sources, "docs", "man", name)
        if f"gnomon-{verb} 1" not in main_page:
            wrong.append(f"{verb} is not in gnomon.1")
        text = run(verb, "--help").split("\nExamples:\n")[0]
        if "Verbs:\n" in text:  # verbs of its own, on one page
            text = "".join(run(verb, own, "--help").split("\nExamples:\n")[0]
                           for own in re.findall(r"^  ([a-z]+)  +\S", text.split("Verbs:\n")[1], re.M))
        helped = {name for names in re.findall(r"^(?:  -\w, |      )(--[a-z-]+(?:, --[a-z-]+)*)", text, re.M)
                  for name in names.replace("--", "").split(", ")}
        helped |= set(re.findall(r"^  -(\w)\b", text, re.M))
        assert {"h", "help", "json"} <= helped and len(helped) > 8, (verb, helped)
        documented = set()
        for line in re.findall(r"^\.It (Fl .*)$", page, re.M):
            documented |= set(re.findall(r"Fl -?([A-Za-z][a-z-]*)", line))
        wrong.extend(f"option {option} of {verb} is not in {name}" for option in helped - documented)
        wrong.extend(f"option {option} of {name} is not in --help" for option in documented - helped)


def formats():
    """The formats' names, endings and members, in the manual and in the page that defines them."""
    rows = json.loads(run("info", "--json"))["formats"]
    names = {row["format"] for row in rows}
    assert len(names) == len(rows) > 15, rows
    page = read(sources, "docs", "man", "gnomon-convert.1")
    listed = {name for line in re.findall(r"^\.It Cm (.*) Ta ", page, re.M) for name in line.split(" , ")}
    wrong.extend(f"format {name} is not in the list of gnomon-convert.1" for name in names - listed)
    wrong.extend(f"format {name} of gnomon-convert.1 is not known" for name in listed - names)
    tried = {"fuzz": "", "campaign": read(sources, "tests", "campaign", "seeds.py")}
    for name in os.listdir(os.path.join(sources, "tests", "fuzz")):
        if re.fullmatch(r"fuzz_\w+\.c", name):
            tried["fuzz"] += read(sources, "tests", "fuzz", name)
    wrong.extend(f"format {name} is not in tests/{where}" for where, text in tried.items() for name in sorted(names)
                 if f'"{name}"' not in text)
    table = {}
    page = read(sources, "docs", "reference", "formats.md")
    for cells in re.findall(r"^\| (`\w+`[^|]*)\|([^|]*)\|.*\|([^|]*)\|$", page.split("'Kept'")[0], re.M):
        for name in re.findall(r"`(\w+)`", cells[0]):
            endings = set(re.findall(r"`([^`]+)`", cells[1])) or {"." + name}  # 'the same'
            table[name] = (endings, "".join(re.findall(r":([^`]+)`", cells[2])))
    known = {row["format"]: (set(row["endings"].split()), row["member"]) for row in rows}
    wrong.extend(f"format {name}: formats.md has {table.get(name)}, gnomon info {known.get(name)}"
                 for name in sorted(table.keys() | known.keys()) if table.get(name) != known.get(name))


def kinds():
    """Every kind that --operator takes is in the manual pages and in the specification."""
    told = subprocess.run([gnomon, "project", "--operator", "?"], capture_output=True, text=True).stderr
    names = set(re.search(r"must be one of (.*)", told)[1].split(", "))
    assert {"auto", "gaussian", "kronecker"} < names and len(names) > 8, names
    for verb in ("project", "operator", "svd", "hosvd", "lstsq"):
        page = read(sources, "docs", "man", f"gnomon-{verb}.1")
        wrong.extend(f"kind {name} is not in gnomon-{verb}.1"
                     for name in names - {"auto"} if not re.search(rf"(?<![\w-]){name}(?![\w-])", page))
    text = read(sources, "docs", "reference", "operators.md")
    wrong.extend(f"kind {name} is not in operators.md" for name in names - {"auto"} if f"`{name}`" not in text)


def completions():
    folder = os.path.join(sources, "cli", "completions")
    subprocess.run([sys.executable, os.path.join(folder, "generate.py"), gnomon, work], check=True)
    for name in ("gnomon.bash", "_gnomon", "gnomon.fish"):
        if read(folder, name) != read(work, name):
            wrong.append(f"{name} is not what generate.py makes of --help: run it again")


pages()
kinds()
formats()
completions()
print(*wrong, sep="\n")
sys.exit(bool(wrong))

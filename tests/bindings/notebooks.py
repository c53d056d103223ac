"""Executes the code cells of every notebook in a folder, in order, without Jupyter: notebooks.py FOLDER

A notebook whose packages are missing is skipped; where all are, the exit status is 77.
"""
import importlib.util
import json
import pathlib
import re
import subprocess
import sys

PACKAGES = ("scipy", "sklearn", "torch")


def cells(path):
    return ["".join(cell["source"]) for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
            if cell["cell_type"] == "code"]


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--one":
        names = {"__name__": "__main__"}
        for number, cell in enumerate(cells(pathlib.Path(sys.argv[2])), 1):
            exec(compile(cell, f"{sys.argv[2]}, code cell {number}", "exec"), names)
        return 0
    ran = failed = 0
    notebooks = sorted(pathlib.Path(sys.argv[1]).resolve().glob("*.ipynb"))
    if not notebooks:
        print("no notebooks in", sys.argv[1])
        return 1
    for path in notebooks:
        used = set(re.findall(r"^(?:from|import) (?:gnomon\.)?(\w+)", "\n".join(cells(path)), re.M))
        missing = [name for name in PACKAGES if name in used and importlib.util.find_spec(name) is None]
        if missing:
            print(f"{path.name}: skipped, without {', '.join(missing)}", flush=True)
            continue
        print(f"{path.name}:", flush=True)
        ran += 1
        failed += subprocess.run([sys.executable, "-B", __file__, "--one", str(path)], cwd=path.parent).returncode != 0
    return 1 if failed else 0 if ran else 77


sys.exit(main())

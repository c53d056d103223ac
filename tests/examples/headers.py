"""Each public header opens with a program that compiles as it stands, runs, and prints what it says.

usage: headers.py INCLUDE_FOLDER LIBRARY COMPILER [FLAG...]

The program is the indented text below "The smallest complete program:" in the header's first comment. What follows
'// ' in its lines is what they print, in order. It ends with a status: UNSUPPORTED stands for a library that is not
there at run time.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

OK, UNSUPPORTED = 0, 14


def program_of(text):
    opening = text[:text.index("*/")].split("\n")
    lines = [re.sub(r"^ ?\*? ?", "", x) for x in opening]
    begin = lines.index("The smallest complete program:") + 2
    end = begin
    while end < len(lines) and (lines[end].startswith("    ") or lines[end] == ""):
        end += 1
    return "\n".join(x[4:] for x in lines[begin:end]).strip() + "\n"


def main():
    include, library, compiler, *flags = sys.argv[1:]
    library = pathlib.Path(library).resolve()
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for header in sorted(pathlib.Path(include, "gnomon").glob("*.h")):
            try:
                program = program_of(header.read_text())
            except ValueError:
                print(f"{header.name}: there is no program in its opening")
                bad += 1
                continue
            source, made = pathlib.Path(folder, header.stem + ".c"), pathlib.Path(folder, header.stem)
            source.write_text(program)
            build = [compiler, "-std=c17", "-Wall", "-Wextra", *flags, f"-I{include}", str(source), str(library),
                     f"-Wl,-rpath,{library.parent}", "-o", str(made)]
            if subprocess.run(build).returncode != 0:
                print(f"{header.name}: its program does not compile")
                bad += 1
                continue
            run = subprocess.run([str(made)], cwd=folder, capture_output=True, text=True, timeout=120)
            due = re.findall(r"// (.*)", program)
            if run.returncode == UNSUPPORTED and "OpenBLAS" in header.read_text():
                print(f"{header.name}: OpenBLAS is not there")
            elif run.returncode != OK or run.stdout.split("\n")[:-1] != due or not due:
                print(f"{header.name}: status {run.returncode}, printed {run.stdout!r} {run.stderr!r}; due {due}")
                bad += 1
    sys.exit(bad > 0)


main()

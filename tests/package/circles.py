"""No circle of files: neither of headers that include each other, nor of sources that call each other.

A source calls another one when it names a function that the other alone defines and a header declares. Calls by
members and pointers are not seen, nor are those of a header's own functions.

usage: circles.py SOURCES
"""
import collections
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1]).resolve()
files = [p for folder in ("src", "cli", "include") for p in sorted((root / folder).rglob("*"))
         if p.suffix in (".c", ".h", ".cu", ".cuh", ".inc")]
dead = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
include = re.compile(r'^ *# *include [<"]([^">]+)[">]', re.M)
# from the first column on: a type, a name, parameters, a body
definition = re.compile(r"^(?!typedef\b|else\b|static\b)[A-Za-z_][^;{}()#]*?\b(\w+)\([^;{}#]*\)\s*\{", re.M)
declaration = re.compile(r"\b(\w+)\([^;{}#]*\)[^;{}#]*;")


def find_circles(arrows):
    """The sets of files each of which reaches all the others (Tarjan 1972)."""
    number, low, stack, circles = {}, {}, [], []

    def visit(a):
        number[a] = low[a] = len(number)
        stack.append(a)
        for b in arrows[a]:
            if b not in number:
                visit(b)
            if b in stack:
                low[a] = min(low[a], low[b])
        if low[a] == number[a]:
            circle = stack[stack.index(a):]
            del stack[stack.index(a):]
            if len(circle) > 1 or a in arrows[a]:
                circles.append(sorted(circle))

    sys.setrecursionlimit(10000)
    for file in files:
        if file not in number:
            visit(file)
    return circles


text = {p: p.read_text() for p in files}
arrows = {p: collections.defaultdict(set) for p in files}
for p in files:
    for name in include.findall(text[p]):
        for folder in (p.parent, root / "src", root / "cli", root / "include"):
            if (folder / name).resolve() in text:
                arrows[p][(folder / name).resolve()].add("#include")
                break
    text[p] = dead.sub(" ", text[p])
sources = [p for p in files if p.suffix in (".c", ".cu")]
declared = {name for p in files if p not in sources for name in declaration.findall(text[p])}
homes = collections.defaultdict(set)
for p in sources:
    for name in definition.findall(text[p]):
        homes[name].add(p)
calls = 0
for p in sources:
    for name in set(re.findall(r"\b[A-Za-z_]\w*\b", text[p])) & declared:
        if len(homes[name]) == 1 and p not in homes[name]:
            arrows[p][min(homes[name])].add(name)
            calls += 1
if calls < 1000:
    sys.exit(f"only {calls} calls are seen: this test no longer reads the sources' form")
circles = find_circles(arrows)
for circle in circles:
    print("a circle of", len(circle), "files:")
    for a in circle:
        for b in sorted(set(arrows[a]) & set(circle)):
            print(f"  {a.relative_to(root)} -> {b.relative_to(root)}: {', '.join(sorted(arrows[a][b]))}")
sys.exit(1 if circles else 0)

"""No circle of files: neither of headers that include each other, nor of sources that call each other. Nor of rooms,
which are the folders of src, src/cuda and cli/verbs.

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
definition = re.compile(r"^(?!typedef\b|else\b)([A-Za-z_][^;{}()#]*?)\b(?!__)(\w+)\([^;{}#]*\)\s*\{", re.M)
declaration = re.compile(r"\b(\w+)\([^;{}#]*\)[^;{}#]*;")


def outside_namespaces(text):
    """Without what unnamed namespaces hold: it is the file's own."""
    while found := re.search(r"^namespace\s*\{", text, re.M):
        depth, end = 1, found.end()
        while depth > 0 and end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        text = text[:found.start()] + text[end:]
    return text


def find_circles(arrows):
    """The sets each of whose members reaches all the others (Tarjan 1972)."""
    number, low, stack, circles = {}, {}, [], []

    def visit(a):
        number[a] = low[a] = len(number)
        stack.append(a)
        for b in arrows.get(a, ()):
            if b not in number:
                visit(b)
            if b in stack:
                low[a] = min(low[a], low[b])
        if low[a] == number[a]:
            circle = stack[stack.index(a):]
            del stack[stack.index(a):]
            if len(circle) > 1 or a in arrows.get(a, ()):
                circles.append(sorted(circle))

    sys.setrecursionlimit(10000)
    for a in list(arrows):
        if a not in number:
            visit(a)
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
own = {p: {name for _, name in definition.findall(text[p])} for p in sources}
for p in sources:
    for before, name in definition.findall(outside_namespaces(text[p])):
        if not re.search(r"\bstatic\b", before):
            homes[name].add(p)
calls = 0
for p in sources:
    for name in set(re.findall(r"\b[A-Za-z_]\w*\b", text[p])) & declared - own[p]:
        if len(homes[name]) == 1:
            arrows[p][min(homes[name])].add(name)
            calls += 1
if calls < 1000:
    sys.exit(f"only {calls} calls are seen: this test no longer reads the sources' form")


def room(p):
    """The folder below src, src/cuda or cli/verbs; what lies there itself has no other room."""
    parts = p.relative_to(root).parts
    depth = 2 + (parts[:2] in (("src", "cuda"), ("cli", "verbs")))
    return root.joinpath(*parts[:depth])


rooms = collections.defaultdict(lambda: collections.defaultdict(set))
for a in files:
    for b in arrows[a]:
        if room(a) != room(b):
            rooms[room(a)][room(b)].add(f"{a.name} to {b.name}")
found = 0
for kind, graph in ("files", arrows), ("rooms", rooms):
    for circle in find_circles(graph):
        found += 1
        print("a circle of", len(circle), f"{kind}:")
        for a in circle:
            for b in sorted(set(graph[a]) & set(circle)):
                print(f"  {a.relative_to(root)} -> {b.relative_to(root)}: {', '.join(sorted(graph[a][b]))}")
sys.exit(1 if found else 0)

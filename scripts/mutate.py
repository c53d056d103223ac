#!/usr/bin/python3
"""Puts small faults into the source, one at a time, and tells which of them no test notices.

usage: mutate.py [options]
  --scratch FOLDER    where the copy of the tree is made and built (default ../gnomon-mutants beside the checkout)
  --seed N            which faults are drawn (default 1)
  --count N           how many, spread evenly over the rooms (default 330)
  --rooms A,B         only these rooms of src/, or cli
  --seconds N         ends after so long; the next call with the same scratch, seed and count goes on
  --jobs N            tests at a time (default 1)
  --new-tests         first adds the tests that the checkout has and the copy lacks (such as need newer source than
                      the copy's fail without a fault, and don't count), and tries again what passed
  --only ID,ID        tries these faults again
  --list              names the faults drawn and what became of each, and ends
  --record FILE       writes the record (bench/records/mutations.json)

Mutant schemata (Untch, Offutt & Harrold 1993): the faults are drawn from clang's syntax tree, and one copy of the
source holds all of them, each behind the value of the environment variable MUTANT, so that there is one build. A run
of the tests without a fault notes which faults each test reaches; a fault is then tried by the tests that reach it
alone, the room's own first (unit.test_ROOM*, and for a verb cli.VERB*), the quickest first, until one fails. A test
that takes ten times as long as without the fault has failed.

The rooms are those of src/ (without cuda) and cli. Faults: a comparison's bound or direction, an operator of
arithmetic or of bits, a condition held to be true, false or its opposite, a constant. What can't change what the
program does for anybody stands with its reason in scripts/mutants.json and does not count.

Needs clang's Python bindings (python3-clang-14), CMake and Ninja. Works on what is committed.
"""
import argparse
import collections
import ctypes
import json
import os
import random
import re
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time

from clang import cindex
from clang.cindex import CursorKind as K

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
REVIEWED = os.path.join(ROOT, "scripts", "mutants.json")
LEFT_OUT = re.compile(r"^(package\.|results\.|cross\.|avx512\.|cli\.man\.|cli\.fixtures$)")  # they run no code of ours,
#                                                                or the same code as others, under emulation
COMPARE = {"<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"), "==": ("!=",), "!=": ("==",)}
ARITHMETIC = {"+": ("-",), "-": ("+",), "*": ("+",), "/": ("*",), "%": ("/",), "<<": (">>",), ">>": ("<<",),
              "&": ("|",), "|": ("&",), "^": ("|",)}
LOGIC = {"&&": ("||",), "||": ("&&",)}
ASSIGN = {"+=": "-=", "-=": "+=", "|=": "&=", "&=": "|="}

OTHER_NAMES = {"base": ["base", "threads", "finite", "isa", "number"], "choose": ["choose", "model"],  # of rooms' tests
               "cpu": ["kernels", "digests", "isa"], "quality": ["quality", "dim", "distortion"]}

HEADER = """#ifndef MUTANT_H
#define MUTANT_H
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
/* The fault in force, 0: none, -1: what is reached is noted in the file MUTANT_REACHED. */
static int mutant __attribute__((unused));
static volatile unsigned char *mutant_reached;
__attribute__((constructor)) static void mutant_begin(void)
{
    const char *file = getenv("MUTANT_REACHED"), *number = getenv("MUTANT");
    if (number) mutant = atoi(number);
    if (!file) return;
    int fd = open(file, O_RDWR | O_CLOEXEC);
    if (fd < 0) return;
    void *at = mmap(NULL, %d, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (at == MAP_FAILED) return;
    mutant_reached = (volatile unsigned char *)at;
    mutant = -1;
}
static inline int mutant_note(int number)
{
    mutant_reached[number] = 1;
    return 0;
}
#define MUTANT(n) (__builtin_expect(mutant == (n) || (mutant < 0 && mutant_note(n)), 0))
#endif
"""


def run(command, **more):
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout[-4000:]}")
    return done.stdout


# ---- what can be changed ----

def kind_of(c):
    """A cursor's kind, None when the bindings do not know it."""
    try:
        return c.kind
    except ValueError:
        return None


class Reader:
    """Finds what can be changed in the functions of one translation unit."""

    def __init__(self, texts):
        self.texts = texts  # path: bytes
        self.found = {}     # (path, begin, end, was's class): a site
        place = cindex.conf.lib.clang_getFileLocation
        spelled = cindex.conf.lib.clang_getSpellingLocation
        for call in (place, spelled):
            call.restype = None
            call.argtypes = [cindex.SourceLocation, ctypes.POINTER(ctypes.c_void_p)] + [ctypes.POINTER(ctypes.c_uint)] * 3
        self.calls = place, spelled
        self.name = cindex.conf.lib.clang_getFileName
        self.name.argtypes = [ctypes.c_void_p]
        self.names = {}

    def at(self, location):
        """(path, offset) where the location is written, None when that is in the body of a macro."""
        both = []
        for call in self.calls:
            f, line, column, offset = ctypes.c_void_p(), ctypes.c_uint(), ctypes.c_uint(), ctypes.c_uint()
            call(location, ctypes.byref(f), ctypes.byref(line), ctypes.byref(column), ctypes.byref(offset))
            both.append((f.value, offset.value))
        if both[0] != both[1] or not both[0][0]:
            return None
        f = both[0][0]
        if f not in self.names:
            said = self.name(f)
            self.names[f] = os.path.abspath(said if isinstance(said, str) else said.decode())
        return self.names[f], both[0][1]

    def range(self, cursor):
        begin, end = self.at(cursor.extent.start), self.at(cursor.extent.end)
        if not begin or not end or begin[0] != end[0] or begin[0] not in self.texts or begin[1] >= end[1]:
            return None
        return begin[0], begin[1], end[1]

    def text(self, where):
        return self.texts[where[0]][where[1]:where[2]].decode()

    def add(self, where, group, was, becomes, function):
        """becomes: (what is written for a reader, the expression with the fault)."""
        if where:
            self.found.setdefault(where + (group,), (where, group, was, becomes, function))

    def walk(self, c, function):
        kind = kind_of(c)
        children = list(c.get_children())
        if kind == K.FUNCTION_DECL:
            if not c.is_definition():
                return
            function = c.spelling
            children = [x for x in children if kind_of(x) == K.COMPOUND_STMT]
        elif kind in (K.ENUM_DECL, K.STRUCT_DECL, K.UNION_DECL, K.TYPEDEF_DECL, K.STATIC_ASSERT, K.CXX_UNARY_EXPR):
            return
        elif kind == K.VAR_DECL:
            if function is None or c.storage_class == cindex.StorageClass.STATIC:
                return
            if c.type.kind in (cindex.TypeKind.CONSTANTARRAY, cindex.TypeKind.VARIABLEARRAY,
                               cindex.TypeKind.INCOMPLETEARRAY):
                children = [x for x in children if kind_of(x) == K.INIT_LIST_EXPR]
        elif kind == K.CASE_STMT:
            children = children[1:]
        elif kind == K.CALL_EXPR and c.spelling.startswith(("_mm", "__builtin")):
            children = [x for x in children if not any(kind_of(y) == K.INTEGER_LITERAL for y in x.walk_preorder())]
        elif function is not None:
            self.look(c, children, function)
        for child in children:
            if function is not None or kind_of(child) == K.FUNCTION_DECL:
                self.walk(child, function)

    def look(self, c, children, function):
        kind = kind_of(c)
        where = self.range(c)
        if kind in (K.BINARY_OPERATOR, K.COMPOUND_ASSIGNMENT_OPERATOR) and len(children) == 2 and where:
            left, right = self.range(children[0]), self.range(children[1])
            if not left or not right or left[1] != where[1] or right[2] != where[2]:
                return
            file, a, b = self.text(left), self.text(right), self.text((where[0], left[2], right[1]))
            op = b.strip()
            l, r = file, a
            if op in ASSIGN and kind == K.COMPOUND_ASSIGNMENT_OPERATOR:
                self.add(where, "assignment", f"{l} {op} {r}", [(f"{l} {ASSIGN[op]} {r}",) * 2], function)
            for group, table in (("comparison", COMPARE), ("arithmetic", ARITHMETIC), ("condition", LOGIC)):
                if op in table and kind == K.BINARY_OPERATOR:
                    self.add(where, group, f"{l} {op} {r}", [(f"{l} {new} {r}",) * 2 for new in table[op]], function)
        elif kind == K.IF_STMT and children:
            where = self.range(children[0])
            if where:
                was = self.text(where)
                self.add(where, "condition", f"if ({was})", [("if (false)", "0"), ("if (true)", "1")], function)
        elif kind == K.CONDITIONAL_OPERATOR and len(children) == 3:
            where = self.range(children[0])
            if where:
                was = self.text(where)
                self.add(where, "condition", f"{was} ?", [(f"!({was}) ?", f"!({was})")], function)
        elif kind == K.UNARY_OPERATOR and where and len(children) == 1:
            was = self.text(where)
            if was.startswith("!"):
                self.add(where, "condition", was, [(was[1:], f"!!({was[1:]})")], function)
            elif was.startswith("-") and not was.startswith("--") and kind_of(children[0]) != K.INTEGER_LITERAL:
                self.add(where, "arithmetic", was, [(was[1:], f"({was[1:]})")], function)
        elif kind == K.INTEGER_LITERAL and where:
            was = self.text(where)
            if re.fullmatch(r"(0x[0-9a-fA-F]+|[0-9]+)[uUlL]*", was):
                digits = was.rstrip("uUlL")
                value = int(digits, 8 if re.fullmatch("0[0-9]+", digits) else 0)
                news = [f"{was} + 1"] + ([f"{was} - 1"] if value > 1 else [])
                self.add(where, "constant", was, [(new, f"({new})") for new in news], function)
        elif kind == K.FLOATING_LITERAL and where:
            was = self.text(where)
            if re.fullmatch(r"[0-9a-fA-FxX.+\-pP]+[fF]?", was):
                suffix = "f" if was[-1] in "fF" and not was.startswith("0x") else ""
                zero = float.fromhex(was.rstrip("f")) == 0 if was.startswith("0x") else float(was.rstrip("fF")) == 0
                new = f"{was} + 1.0{suffix}" if zero else f"{was} * 1.25{suffix}"
                self.add(where, "constant", was, [(new, f"({new})")], function)


def arguments(entry):
    """A compile command's arguments that clang takes."""
    words = shlex.split(entry["command"])[1:]
    out, skip = [], False
    for word in words:
        if skip:
            skip = False
        elif word in ("-o", "-c", "-MF", "-MT"):
            skip = word != "-c"
        elif not word.endswith(".c") and not word.startswith(("-W", "-MD")) and not word.endswith("ccache"):
            out.append(word)
    return [x for x in out if not x.endswith(("/cc", "/gcc", "/clang"))]


def room_of(path):
    parts = path.split("/")
    return parts[1] if parts[0] == "src" else parts[0]


def sites(tree, build):
    """All that can be changed, a list a room, in an order that depends on the source alone."""
    texts = {}
    for path in run(["git", "-C", ROOT, "ls-files", "src", "cli"]).split():
        if path.endswith((".c", ".inc")) and not path.startswith("src/cuda/") and "completions" not in path:
            with open(os.path.join(tree, path), "rb") as f:
                texts[os.path.join(tree, path)] = f.read()
    with open(os.path.join(build, "compile_commands.json")) as f:
        commands = {os.path.abspath(x["file"]): x for x in json.load(f)}
    index = cindex.Index.create()
    reader = Reader(texts)
    for path in sorted(texts):
        if path in commands:
            unit = index.parse(path, args=arguments(commands[path]) + ["-w"])
            worst = [str(d) for d in unit.diagnostics if d.severity >= cindex.Diagnostic.Error]
            if worst:
                print(f"{path}: {worst[0]}", file=sys.stderr)
            reader.walk(unit.cursor, None)
    rooms = collections.defaultdict(list)
    for key in sorted(reader.found):
        where, group, was, becomes, function = reader.found[key]
        path = os.path.relpath(where[0], tree)
        text = texts[where[0]]
        line = text.count(b"\n", 0, where[1]) + 1
        rooms[room_of(path)].append({
            "file": path, "line": line, "begin": where[1], "end": where[2], "group": group, "function": function,
            "was": was, "becomes": becomes, "source": text.split(b"\n")[line - 1].decode().strip()})
    return rooms, texts


def draw(rooms, count, seed, wanted):
    """Draws 'count' faults, as many a room as the others and of each group in turn, none within another."""
    names = sorted(x for x in rooms if not wanted or x in wanted)
    chosen = []
    for at, name in enumerate(names):
        share = count // len(names) + (at < count % len(names))
        rng = random.Random(f"{seed} {name}")
        groups = collections.defaultdict(list)
        for site in rooms[name]:
            groups[site["group"]].append(site)
        for group in sorted(groups):
            rng.shuffle(groups[group])
        taken, turn, order = [], 0, sorted(groups)
        while len(taken) < share and any(groups.values()):
            pool = groups[order[turn % len(order)]]
            turn += 1
            if not pool:
                continue
            site = pool.pop()
            if any(x["file"] == site["file"] and x["begin"] < site["end"] and site["begin"] < x["end"] for x in taken):
                continue
            said, code = rng.choice(site["becomes"])
            taken.append(dict(site, becomes=said, code=code, room=name))
        chosen += taken
    for number, mutant in enumerate(chosen, 1):
        mutant["id"] = number
    return chosen


# ---- the copy that holds them all ----

def rewrite(path, text, mutants, header):
    """The text of a file with its faults, each behind MUTANT(id)."""
    out, at = [], 0
    for m in sorted(mutants, key=lambda m: m["begin"]):
        was = text[m["begin"]:m["end"]].decode()
        if m["group"] == "assignment":
            new = f"(MUTANT({m['id']}) ? ({m['code']}) : ({was}))"
        elif m["group"] == "condition" and m["was"].startswith("if ("):
            new = f"(MUTANT({m['id']}) ? {m['code']} : !!({was}))"
        elif m["was"].endswith(" ?"):
            new = f"(MUTANT({m['id']}) ? {m['code']} : !!({was}))"
        else:
            new = f"(MUTANT({m['id']}) ? ({m['code']}) : ({was}))"
        out += [text[at:m["begin"]].decode(), new]
        at = m["end"]
    out.append(text[at:].decode())
    # a system header has no warnings, whatever the flags
    return f'#pragma GCC system_header\n#include "{header}"\n#line 1 "{path}"\n' + "".join(out)


def compiles(path, text, entry):
    with open(path, "w") as f:
        f.write(text)
    words = shlex.split(entry["command"])
    if os.path.basename(words[0]) == "ccache":
        words = words[1:]
    words = words[:words.index("-o")] + ["-fsyntax-only", "-w", "-Wno-error"] + words[words.index("-o") + 2:]
    return subprocess.run(words, cwd=entry["directory"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def prepare(tree, build, texts, chosen):
    """Writes the faults into the copy; returns those that compile."""
    header = os.path.join(os.path.dirname(tree), "mutant.h")
    with open(header, "w") as f:
        f.write(HEADER % (len(chosen) + 1))
    with open(os.path.join(build, "compile_commands.json")) as f:
        commands = {os.path.abspath(x["file"]): x for x in json.load(f)}
    kept = []
    by_file = collections.defaultdict(list)
    for m in chosen:
        by_file[os.path.join(tree, m["file"])].append(m)
    for path, mutants in sorted(by_file.items()):
        unit = path if path.endswith(".c") else next(x for x in sorted(commands) if os.path.dirname(x) == os.path.dirname(path)
                                                     and "avx2" in x)
        tried = path if path.endswith(".inc") else path + ".mutated"

        def put(some, path=path, tried=tried):
            text = rewrite(path, texts[path], some, header)
            if tried == path:
                return compiles(path, text, commands[unit])
            with open(path, "w") as f:
                f.write(f'#include "{os.path.basename(tried)}"\n')
            with open(tried, "w") as f:
                f.write(text)
            return compiles(path, f'#include "{os.path.basename(tried)}"\n', commands[unit])

        if not put(mutants):
            mutants = [m for m in mutants if put([m])]
            if not put(mutants):
                sys.exit(f"{path}: faults that compile one by one don't together")
        kept += mutants
    return sorted(kept, key=lambda m: m["id"])


# ---- the tests ----

def limits(seconds):
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 5))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (4 << 30, 4 << 30))
    resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))


def attempt(test, environment, limit):
    """(passed, seconds) of one test, whose processes may each take 'limit' seconds of a processor. Elapsed time bounds
    it too, for what waits for ever, but six times as high: other work may slow the machine."""
    begun = time.monotonic()
    with tempfile.TemporaryFile() as sink:
        p = subprocess.Popen(test["command"], cwd=test["folder"], env=dict(os.environ, **test["environment"], **environment),
                             stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, preexec_fn=lambda: limits(limit))
        try:
            code = p.wait(6 * limit)
        except subprocess.TimeoutExpired:
            code = None
        try:
            os.killpg(p.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        p.wait()
    return code is not None and code in (0, test["skip"]), time.monotonic() - begun


def all_tests(build):
    out = []
    for x in json.loads(run(["ctest", "--test-dir", build, "--show-only=json-v1"]))["tests"]:
        properties = {p["name"]: p["value"] for p in x.get("properties", [])}
        if LEFT_OUT.search(x["name"]) or "command" not in x:
            continue
        out.append({"name": x["name"], "command": x["command"], "folder": properties.get("WORKING_DIRECTORY", build),
                    "environment": dict(v.split("=", 1) for v in properties.get("ENVIRONMENT", [])),
                    "skip": properties.get("SKIP_RETURN_CODE", 0)})
    return out


def own(test, mutant):
    """Whether a test is of the mutant's room."""
    words = OTHER_NAMES.get(mutant["room"], [mutant["room"]])
    if mutant["room"] == "cli":
        words = [os.path.basename(mutant["file"])[:-2].split("_")[0]]
    return any(re.match(rf"(unit\.test_{w}|cli\.{w})", test) for w in words)


def reached(tests, scratch, count, old):
    """Notes for each test how long it takes, whether it passes, and which faults it reaches."""
    out = dict(old)
    for test in tests:
        if test["name"] in out:
            continue
        path = os.path.join(scratch, "reached")
        with open(path, "wb") as f:
            f.write(bytes(count + 1))
        passed, seconds = attempt(test, {"MUTANT_REACHED": path}, 900)
        with open(path, "rb") as f:
            noted = f.read()
        out[test["name"]] = {"passed": passed, "seconds": round(seconds, 2), "reached": [i for i, x in enumerate(noted) if x]}
        print(f"  {test['name']}: {'passes' if passed else 'FAILS'}, {seconds:.1f} s, "
              f"reaches {len(out[test['name']]['reached'])}", flush=True)
        with open(os.path.join(scratch, "reached.json"), "w") as f:
            json.dump(out, f)
    return out


def try_one(mutant, tests, looks, locks, of_room):
    """Runs the tests that reach a mutant, those of its room or the others, until one fails."""
    due = [t for t in tests if looks[t["name"]]["passed"] and mutant["id"] in looks[t["name"]]["reached"]]
    if not due:
        return {"result": "unreached"}
    due = sorted((t for t in due if own(t["name"], mutant) == of_room), key=lambda t: looks[t["name"]]["seconds"])
    for test in due:
        with locks[test["name"]]:
            passed, seconds = attempt(test, {"MUTANT": str(mutant["id"])}, 20 + 10 * looks[test["name"]]["seconds"])
        if not passed:
            return {"result": "noticed", "by": test["name"], "room": of_room}
    return {"result": "waits" if of_room else "passed"}


# ---- what came of it ----

def reviewed():
    if not os.path.exists(REVIEWED):
        return {}
    with open(REVIEWED) as f:
        return {(x["file"], x["source"], x["was"], x["becomes"]): x["reason"] for x in json.load(f)}


def outcome(mutants, results):
    """Of each mutant what became of it, and the sums."""
    reasons = reviewed()
    rows, rooms = [], collections.defaultdict(collections.Counter)
    for m in mutants:
        reason = reasons.get((m["file"], m["source"], m["was"], m["becomes"]))
        r = results.get(m["id"], {"result": "waits"})
        if r["result"] == "waits" and not reason:
            continue
        result = r["result"] if r["result"] == "noticed" or not reason else "no difference"
        rooms[m["room"]][result] += 1
        row = {k: m[k] for k in ("id", "file", "line", "function", "source", "was", "becomes")}
        row["result"] = result
        if "by" in r:
            row["by"] = r["by"]
        if result == "no difference":
            row["reason"] = reason
        rows.append(row)
    return rows, rooms


def summary(rooms):
    total = collections.Counter()
    lines = []
    for name in sorted(rooms):
        total.update(rooms[name])
        lines.append((name, rooms[name]))
    lines.append(("all", total))
    return lines


def table(rooms):
    out = [f"{'room':10} {'tried':>6} {'noticed':>8} {'passed':>7} {'unreached':>10} {'no difference':>14} {'share':>6}"]
    for name, c in summary(rooms):
        counted = c["noticed"] + c["passed"] + c["unreached"]
        share = 100 * c["noticed"] / counted if counted else 100
        out.append(f"{name:10} {sum(c.values()):6} {c['noticed']:8} {c['passed']:7} {c['unreached']:10} "
                   f"{c['no difference']:14} {share:5.1f}%")
    return "\n".join(out)


def main():
    ask = argparse.ArgumentParser(usage=__doc__)
    ask.add_argument("--scratch", default=os.path.join(os.path.dirname(ROOT), "gnomon-mutants"))
    ask.add_argument("--seed", type=int, default=1)
    ask.add_argument("--count", type=int, default=330)
    ask.add_argument("--rooms", default="")
    ask.add_argument("--seconds", type=float, default=1e9)
    ask.add_argument("--jobs", type=int, default=1)
    ask.add_argument("--new-tests", action="store_true")
    ask.add_argument("--only", default="")
    ask.add_argument("--list", action="store_true")
    ask.add_argument("--record")
    o = ask.parse_args()
    end = time.monotonic() + o.seconds

    scratch = os.path.abspath(o.scratch)
    tree, build = os.path.join(scratch, "tree"), os.path.join(scratch, "tree", "build-no-cuda")
    state_path, results_path = os.path.join(scratch, "state.json"), os.path.join(scratch, "results.json")
    asked = [o.seed, o.count, o.rooms]
    state = {}
    if os.path.exists(state_path):
        with open(state_path) as f:
            state = json.load(f)
        if state["asked"] != asked:
            sys.exit(f"{scratch} holds the faults of another seed, count or rooms {state['asked']}: name another folder")
    if not state:
        os.makedirs(tree, exist_ok=True)
        commit = run(["git", "-C", ROOT, "rev-parse", "HEAD"]).strip()
        subprocess.run(f"git -C {shlex.quote(ROOT)} archive HEAD | tar -x -C {shlex.quote(tree)}", shell=True, check=True)
        run(["cmake", "--preset", "no-cuda"], cwd=tree)
        print("reading the source", flush=True)
        rooms, texts = sites(tree, build)
        chosen = draw(rooms, o.count, o.seed, set(filter(None, o.rooms.split(","))))
        kept = prepare(tree, build, texts, chosen)
        print(f"{len(kept)} faults of {sum(map(len, rooms.values()))} places; building", flush=True)
        run(["cmake", "--build", "--preset", "no-cuda"], cwd=tree)
        run(["ctest", "--test-dir", build, "-R", "^cli.fixtures$"])
        state = {"asked": asked, "commit": commit, "drawn": len(chosen), "mutants": kept,
                 "places": {k: len(v) for k, v in sorted(rooms.items())}}
        with open(state_path, "w") as f:
            json.dump(state, f)
    mutants = state["mutants"]
    results = {}
    if os.path.exists(results_path):
        with open(results_path) as f:
            results = {int(k): v for k, v in json.load(f).items()}

    if not o.list and not o.record:
        looks = {}
        if os.path.exists(os.path.join(scratch, "reached.json")):
            with open(os.path.join(scratch, "reached.json")) as f:
                looks = json.load(f)
        only = {int(x) for x in o.only.split(",") if x}
        if o.new_tests:
            run(["cp", "-rn", os.path.join(ROOT, "tests") + "/.", os.path.join(tree, "tests")])
            run(["cmake", "--preset", "no-cuda"], cwd=tree)
            subprocess.run(["cmake", "--build", "--preset", "no-cuda", "--", "-k", "0"], cwd=tree,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            only |= {i for i, r in results.items() if r["result"] != "noticed"}
        tests = all_tests(build)
        print("what each test reaches", flush=True)
        looks = reached(tests, scratch, state["drawn"], looks)
        locks = collections.defaultdict(threading.Lock)
        for t in tests:
            locks[t["name"]]
        # room after room in turn, so that a run that ends early has seen all of them; first the rooms' tests of all
        # faults, then the others of those that are left
        turn, place = collections.Counter(), {}
        for m in mutants:
            place[m["id"]] = turn[m["room"]]
            turn[m["room"]] += 1
        order = sorted(mutants, key=lambda m: (place[m["id"]], m["id"]))
        for i in only:
            results.pop(i, None)
        judged = reviewed()
        order = [m for m in order if (m["file"], m["source"], m["was"], m["becomes"]) not in judged]
        pending = [(m, True) for m in order if m["id"] not in results]
        pending += [(m, False) for m in order if results.get(m["id"], {}).get("result", "waits") == "waits"]
        guard = threading.Lock()

        def work():
            while time.monotonic() < end:
                with guard:
                    if not pending:
                        return
                    m, of_room = pending.pop(0)
                    if not of_room and results.get(m["id"], {}).get("result", "waits") != "waits":
                        continue
                r = try_one(m, tests, looks, locks, of_room)
                with guard:
                    results[m["id"]] = r
                    with open(results_path + ".new", "w") as f:
                        json.dump(results, f)
                    os.replace(results_path + ".new", results_path)
                    print(f"{m['id']:4} {r['result']:9} {r.get('by', ''):28} {m['file']}:{m['line']} {m['function']}: "
                          f"{' '.join(m['was'].split())[:60]}  ->  {' '.join(m['becomes'].split())[:60]}", flush=True)

        threads = [threading.Thread(target=work) for _ in range(o.jobs)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()

    rows, rooms = outcome(mutants, results)
    if o.list or not o.record:
        for row in rows:
            if o.list or row["result"] in ("passed", "unreached"):
                print(f"{row['id']:4} {row['result']:13} {row['file']}:{row['line']} {row['function']}: "
                      f"{' '.join(row['was'].split())[:70]}  ->  {' '.join(row['becomes'].split())[:70]}")
    print(table(rooms))
    if o.record:
        record = {"commit": state["commit"], "seed": state["asked"][0], "places": state["places"], "drawn": len(mutants),
                  "tried": len(rows),
                  "rooms": {name: dict(sorted(c.items())) for name, c in summary(rooms)}, "mutants": rows}
        with open(o.record, "w") as f:
            json.dump(record, f, indent=1, ensure_ascii=False)
            f.write("\n")


if __name__ == "__main__":
    main()

"""Makes gnomon/_abi.py from the public headers: constants, structures and prototypes for ctypes.

usage: generate.py INCLUDE_FOLDER OUTPUT.py
       generate.py INCLUDE_FOLDER --probe OUTPUT.c

The probe is a C program that prints every constant, the size of every structure and the offset and size of every
member, as the compiler lays them out: tests/test_abi.py compares these with _abi.py.

The headers hold few forms of declarations; one that is none of these stops the program with its text.
"""
import re
import sys
from pathlib import Path

HEADERS = ["base", "matrix", "tensor", "operator", "project", "gemm", "quality", "choose", "svd", "hosvd", "lstsq",
           "search", "sparse_index", "rabitq", "lsh", "join", "dedup", "io", "comm"]

# C's types by value, and how ctypes calls them.
VALUES = {"void": "None", "int": "c.c_int", "unsigned": "c.c_uint", "char": "c.c_char", "double": "c.c_double",
          "float": "c.c_float", "size_t": "c.c_size_t", "int64_t": "c.c_int64", "uint64_t": "c.c_uint64",
          "uint32_t": "c.c_uint32", "uint8_t": "c.c_uint8"}


class Headers:
    """What the headers declare, in their order."""

    def __init__(self, folder):
        self.constants = {}  # name: value
        self.enums = {}      # name: [(member, value)]
        self.structs = {}    # name: [(type, member, lengths)]
        self.functions = {}  # name: (type, [(type, argument)])
        self.callbacks = {}  # name: (type, [(type, argument)])
        self.opaque = []
        for name in HEADERS:
            self._read((Path(folder) / "gnomon" / (name + ".h")).read_text())
        left = {p.stem for p in (Path(folder) / "gnomon").glob("*.h")} - set(HEADERS)
        if left:
            raise SystemExit(f"generate.py: HEADERS lacks {', '.join(sorted(left))}")

    def _number(self, text):
        text = text.strip().strip("()")
        if text in self.constants:
            return self.constants[text]
        shift = re.fullmatch(r"(\d+)[uU]?\s*<<\s*(\d+)", text)
        if shift:
            return int(shift[1]) << int(shift[2])
        return float(text) if re.fullmatch(r"\d*\.\d+", text) else int(text, 0)

    def _enum(self, name, body):
        members, following = [], 0
        for item in filter(None, (x.strip() for x in body.split(","))):
            member, _, value = (x.strip() for x in item.partition("="))
            following = self._number(value) if value else following
            self.constants[member] = following
            members.append((member, following))
            following += 1
        if name:
            self.enums[name] = members

    @staticmethod
    def _declarator(text):
        """Of 'const int64_t *ids[4]': type, name and lengths."""
        text = re.sub(r"\s+", " ", text.strip())
        found = re.fullmatch(r"((?:const )?\w+(?: ?\*(?:const)?)*) ?(\w+)((?:\[\w+\])*)", text)
        if not found:
            raise SystemExit(f"generate.py: can't read '{text}'")
        return found[1], found[2], re.findall(r"\[(\w+)\]", found[3])

    def _arguments(self, text):
        if text.strip() == "void":
            return []
        return [self._declarator(x)[:2] for x in text.split(",")]

    def _struct(self, name, body):
        members = []
        for item in filter(None, (x.strip() for x in body.split(";"))):
            pointer = re.fullmatch(r"([\w ]+\**)\s*\(\*(\w+)\)\((.*)\)", item, re.S)
            if pointer:
                kind = name + "_" + pointer[2] + "_fn"
                self.callbacks[kind] = (pointer[1].strip(), self._arguments(pointer[3]))
                members.append((kind, pointer[2], []))
                continue
            first, *others = item.split(",")
            base, member, lengths = self._declarator(first)
            members.append((base, member, lengths))
            plain = base.rstrip("* ")  # a '*' belongs to its own name alone
            for other in others:
                base, member, lengths = self._declarator(plain + " " + other.strip())
                members.append((base, member, lengths))
        self.structs[name] = members

    def _read(self, text):
        text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
        text = re.sub(r"//[^\n]*", " ", text)
        text = text.replace("\\\n", " ")
        for name, value in re.findall(r"^#define (GNOMON_\w+)[ \t]+([\d.]+)[ \t]*$", text, re.M):
            self.constants[name] = self._number(value)
        text = re.sub(r"^[ \t]*#[^\n]*", " ", text, flags=re.M)
        text = re.sub(r'extern "C" \{', " ", text)
        text = re.sub(r"static inline [^{]*\{.*?\n\}", " ", text, flags=re.S)
        text = re.sub(r"^struct \w+;", " ", text, flags=re.M)  # of another header
        text = re.sub(r"\bstruct (\w+) \*", r"\1 *", text)
        text = re.sub(r"typedef enum (\w+) \{(.*?)\} \w+;|enum \{(.*?)\};", self._take_enum, text, flags=re.S)
        text = re.sub(r"typedef struct (\w+) \{(.*?)\} \w+;", self._take_struct, text, flags=re.S)
        text = text.replace("GNOMON_API", " ")
        for statement in filter(None, (re.sub(r"\s+", " ", x).strip() for x in text.split(";"))):
            if statement == "}":
                continue  # of extern "C"
            opaque = re.fullmatch(r"typedef struct (\w+) \1", statement)
            callback = re.fullmatch(r"typedef ([\w ]+\**) \(\*(\w+)\)\((.*)\)", statement)
            function = re.fullmatch(r"((?:const )?\w+ \**)(\w+)\((.*)\)", statement)
            if opaque:
                self.opaque.append(opaque[1])
            elif callback:
                self.callbacks[callback[2]] = (callback[1], self._arguments(callback[3]))
            elif function:
                self.functions[function[2]] = (function[1].strip(), self._arguments(function[3]))
            else:
                raise SystemExit(f"generate.py: can't read '{statement}'")

    def _take_enum(self, found):
        self._enum(found[1], found[2] if found[1] else found[3])
        return " "

    def _take_struct(self, found):
        self._struct(found[1], found[2])
        return " "

    def ctype(self, text):
        """What ctypes calls a C type."""
        if text.replace(" ", "") == "char**":
            return "c.POINTER(c.c_void_p)"  # a text that the caller must free
        text = re.sub(r"\bconst\b", "", text)
        base, stars = text.replace("*", "").strip(), text.count("*")
        if base in self.callbacks:
            return base
        if base in self.enums:
            value = "c.c_int"
        elif base in self.structs:
            value = base
        elif base in self.opaque:
            value, stars = "c.c_void_p", stars - 1
        else:
            value = VALUES[base]
        if stars and base == "char":
            value, stars = "c.c_char_p", stars - 1
        if stars and base == "void":
            value, stars = "c.c_void_p", stars - 1
        for _ in range(stars):
            value = f"c.POINTER({value})"
        return value

    def structs_in_order(self):
        """Each after those that it holds by value or points to, and the callbacks between them."""
        done, order = set(), []

        def visit(name):
            if name in done:
                return
            done.add(name)
            parts = self.structs[name] if name in self.structs else self.callbacks[name][1]
            for part in parts:
                base = part[0].replace("const", "").replace("*", "").strip()
                if base in self.structs or base in self.callbacks:
                    visit(base)
            order.append(name)

        for name in [*self.structs, *self.callbacks]:
            visit(name)
        return order


def python(headers):
    out = ['"""Made by generate.py from include/gnomon: do not edit."""', "# fmt: off", "import ctypes as c", "", ""]
    for name, value in headers.constants.items():
        out.append(f"{name} = {value!r}")
    for name in headers.structs_in_order():
        if name in headers.callbacks:
            result, arguments = headers.callbacks[name]
            out += ["", "", f"{name} = c.CFUNCTYPE(" +
                    ", ".join([headers.ctype(result)] + [headers.ctype(t) for t, _ in arguments]) + ")"]
            continue
        out += ["", "", f"class {name}(c.Structure):", "    _fields_ = ["]
        for kind, member, lengths in headers.structs[name]:
            value = headers.ctype(kind)
            for length in reversed(lengths):
                value = f"{value} * {length}"
            out.append(f'        ("{member}", {value}),')
        out.append("    ]")
    out += ["", "", "STRUCTS = ["]
    out += [f"    {name}," for name in headers.structs]
    out += ["]", "", "ENUMS = {"]
    for name, members in headers.enums.items():
        out += [f'    "{name}": [', *(f'        "{member}",' for member, _ in members), "    ],"]
    out += ["}", "", "# name: a function that makes (what it returns, what it takes): types of pointers take time", "FUNCTIONS = {"]
    for name, (result, arguments) in headers.functions.items():
        kinds = ", ".join(headers.ctype(t) for t, _ in arguments)
        out.append(f'    "{name}": lambda: ({headers.ctype(result)}, [{kinds}]),')
    out += ["}", ""]
    return "\n".join(out)


def probe(headers):
    out = ["/* Made by generate.py: prints how the compiler lays out every public structure. */",
           "#include <gnomon.h>", "#include <stddef.h>", "#include <stdio.h>", "", "int main(void)", "{"]
    for name, value in headers.constants.items():
        if isinstance(value, float):
            out.append(f'    printf("constant {name} %.17g\\n", (double){name});')
        else:
            out.append(f'    printf("constant {name} %lld\\n", (long long){name});')
    for name in headers.enums:
        out.append(f'    printf("enum {name} %zu\\n", sizeof({name}));')
    for name, members in headers.structs.items():
        out.append(f'    printf("struct {name} %zu\\n", sizeof({name}));')
        for _, member, _ in members:
            out.append(f'    printf("member {name}.{member} %zu %zu\\n", offsetof({name}, {member}), '
                       f"sizeof((({name} *)0)->{member}));")
    out += ["    return 0;", "}", ""]
    return "\n".join(out)


def main():
    if len(sys.argv) == 4 and sys.argv[2] == "--probe":
        Path(sys.argv[3]).write_text(probe(Headers(sys.argv[1])))
    elif len(sys.argv) == 3:
        Path(sys.argv[2]).write_text(python(Headers(sys.argv[1])))
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main()

"""No name in the public headers, nor in the C sources outside the plugin, is a keyword of C++: bindings and
formatters take it for one.

usage: keywords.py SOURCE
"""
import pathlib
import re
import sys

KEYWORDS = set("""
alignas alignof and and_eq asm bitand bitor catch class compl concept const_cast consteval constexpr constinit
co_await co_return co_yield decltype delete dynamic_cast explicit export friend mutable namespace new noexcept not
not_eq operator or or_eq private protected public reinterpret_cast requires static_cast template this thread_local
throw try typeid typename using virtual xor xor_eq
""".split())
TOKEN = re.compile(r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\])*'|^[ ]*\#[^\n]*|[A-Za-z_]\w*""", re.S | re.M)


def main():
    source, found = pathlib.Path(sys.argv[1]), 0
    for folder in ("include", "src", "cli", "bench", "tests", "examples"):
        for path in sorted(x for x in (source / folder).rglob("*") if x.suffix in (".c", ".h")):
            if "src/cuda" in path.as_posix() or path.name == "cmocka.h":
                continue  # C++ there
            text = path.read_text()
            for token in TOKEN.finditer(text):
                if token.group() in KEYWORDS:
                    line = text.count("\n", 0, token.start()) + 1
                    print(f"{path.relative_to(source)}:{line}: '{token.group()}' is a keyword of C++")
                    found += 1
    sys.exit(found > 0)


main()

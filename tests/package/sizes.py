"""Sizes handed to an allocator: no product with a number that is not constant, and no sum of two
such, stands in one as it is. gnomon_times, gnomon_plus and cli_bytes check them; gnomon_mul and gnomon_add do so
beforehand. Constants are literals, sizeof and names in capitals.

usage: sizes.py SOURCES
"""
import glob
import os
import re
import sys

sources = sys.argv[1]
# which arguments are sizes, by the function's name
calls = {"gnomon_alloc": [1], "gnomon_alloc_zero": [1], "gnomon_grow": [3], "gnomon_renew": [3], "malloc": [0],
         "calloc": [0, 1], "realloc": [1], "aligned_alloc": [1]}


def arguments_of(text, start):
    """The arguments of a call whose first one begins at start."""
    depth, begin, out = 0, start, []
    for at in range(start, len(text)):
        c = text[at]
        if c in "([{":
            depth += 1
        elif c in ")]}":
            if depth == 0:
                return out + [text[begin:at]]
            depth -= 1
        elif c == "," and depth == 0:
            out.append(text[begin:at])
            begin = at + 1
    return out


def is_constant(term):
    return re.fullmatch(r"[A-Z][A-Z0-9_]*|\d+[uUlL]*|= 2|length", term) is not None


def numbers_in(argument):
    """How many factors and summands of a size are no constants; two for a number times a constant.
    A difference, a quotient or one of two numbers counts once."""
    argument = re.sub(r"\((?:size_t|int64_t|uint64_t|int|double)\)", "", argument)  # casts
    argument = re.sub(r"sizeof \*?[\w\[\].>*-]+|sizeof\([^()]*\)", "8", argument)
    argument = re.sub(r"\[[^\]]*\]", "", argument)
    argument = re.sub(r"strlen\([^()]*\)", "length", argument)  # of a text in memory
    while re.search(r"\w+\([^()]*\)", argument):
        argument = re.sub(r"\w+\([^()]*\)", "call", argument)  # what a call returns is one number
    terms = [term.strip(" ()") for term in re.split(r"[*+]+", argument)]
    numbers = sum(1 for term in terms if term and not is_constant(term))
    return 2 if numbers > 0 and "*" in argument.strip(" *") else numbers


def main():
    found = []
    for folder in ("src", "cli"):
        for name in sorted(glob.glob(os.path.join(sources, folder, "**", "*.[ch]"), recursive=True)):
            text = open(name).read()
            for match in re.finditer(r"\b(" + "|".join(calls) + r")\(", text):
                arguments = arguments_of(text, match.end())
                for index in calls[match.group(1)]:
                    if index < len(arguments) and numbers_in(arguments[index]) > 1:
                        line = text.count("\n", 0, match.start()) + 1
                        size = " ".join(arguments[index].split())
                        found.append((os.path.relpath(name, sources), line, match.group(1), size))
    for name, line, call, size in found:
        print(f"{name}:{line}: {call}: {size}")
    return 1 if found else 0


sys.exit(main())

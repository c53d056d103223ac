"""The test vectors beside docs/reference/operators.md: are they what the independent implementation makes,
and does the library agree with each?

usage: test_vectors.py DUMP_BLOCK DUMP_FUNCTIONS VECTORS
"""

import json
import subprocess
import sys

import numpy as np
from library import Library
from make_vectors import text

ARGUMENTS = {
    "philox": lambda v: [*v["counter"], *v["key"]],
    "nl": lambda v: [v["h"]],
    "perm": lambda v: [v["x"], v["b"], *v["keys"]],
    "fp16": lambda v: ["body", v["v"]] if "v" in v else ["tail", v["t"]],
    "jump": lambda v: [v["p"]],
}
RESULT = {
    "philox": lambda v: v["words"],
    "perm": lambda v: [v["result"]],
    "nl": lambda v: [v["bits"]],
    # the library has them as fp32
    "fp16": lambda v: [
        int(np.array([v["bits"]], np.uint16).view(np.float16).astype(np.float32).view(np.uint32)[0])
    ],
    "jump": lambda v: [v["bits"]],
}


def check_functions(program, vectors):
    asked, wanted = [], []
    for name, words in ARGUMENTS.items():
        for v in vectors[name]:
            asked.append(" ".join(map(str, [name, *words(v)])))
            wanted.append(" ".join(map(str, RESULT[name](v))))
    got = subprocess.run(
        [program], input="\n".join(asked) + "\n", capture_output=True, text=True, check=True
    ).stdout.splitlines()
    if len(got) != len(wanted):
        return [f"{len(got)} answers to {len(wanted)} questions"]
    return [f"{a}: {g}, not {w}" for a, g, w in zip(asked, got, wanted) if g != w]


def check_blocks(program, vectors):
    library, wrong = Library(program), []
    for v in vectors["blocks"]:
        place = v["row"], v["rows"], v["col"], v["cols"]
        got = (library.block(v["descriptor"], *place) + 0.0).ravel().view(np.uint64)
        want = np.array([int(e, 16) for e in v["entries"]], dtype=np.uint64)
        if not np.array_equal(got, want):
            wrong.append(f"{v['descriptor']}: {(got != want).sum()} of {want.size} differ")
    library.close()
    return wrong


def main(dump_block, dump_functions, path):
    with open(path) as file:
        stored = file.read()
    vectors = json.loads(stored)
    wrong = check_functions(dump_functions, vectors) + check_blocks(dump_block, vectors)
    if stored != text():
        wrong.append(f"{path} is not what make_vectors.py makes: make it again")
    kinds = {v["descriptor"]["kind"] for v in vectors["blocks"]}
    if len(kinds) != 9 or any(len(list_) < 3 for list_ in vectors.values()):
        wrong.append("there are too few vectors")
    print(*wrong, sep="\n")
    print(", ".join(f"{len(list_)} {name}" for name, list_ in vectors.items()))
    return len(wrong) > 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

"""Makes src/choose/shipped.c, the cost models that come with the library, from measured ones.

usage: ship_models.py [--check] MODEL.json...      --check: fails when the file is not up to date
"""
import json
import pathlib
import sys

FORMS = {"points": "GNOMON_FORM_POINTS", "coordinates": "GNOMON_FORM_COORDINATES", "sparse": "GNOMON_FORM_SPARSE"}
TARGET = pathlib.Path(__file__).resolve().parent.parent / "src" / "choose" / "shipped.c"


def cost(entry):
    kind = "GNOMON_" + entry["operator"].upper().replace("-", "_")
    precision = {"fp32": "GNOMON_FP32", "fp16": "GNOMON_FP16"}.get(entry.get("precision"), "0")
    numbers = ", ".join(repr(entry[name]) for name in
                        ("point_tile", "row_tile", "start", "make", "multiply", "read", "write", "step",
                         "half", "wide"))
    return f"{{{kind}, {precision}, {FORMS[entry['form']]}, {numbers}}}"


def model(path):
    m = json.loads(pathlib.Path(path).read_text())
    costs = ",\n".join(cost(entry) for entry in m["costs"])
    return (f"/* {pathlib.Path(path).name} */\n"
            f"{{.name = {json.dumps(m['name'])}, .device = GNOMON_DEVICE_{m['device'].upper()}, "
            f".threads = {m['threads']}, .upload = {m['upload']!r}, .download = {m['download']!r}, "
            f".count = {len(m['costs'])}, .cost = {{\n{costs}}}}},\n")


arguments = sys.argv[1:]
check = arguments[:1] == ["--check"]
paths = arguments[check:]
text = ("/* The cost models that come with the library; made by scripts/ship_models.py from measured ones in\n"
        " * bench/results/. */\n"
        "/* clang-format off */\n"
        '#include "choose/choose.h"\n\n'
        "const gnomon_model gnomon_shipped_models[] = {\n" + "".join(map(model, paths)) + "{.count = 0},\n};\n")
if check:
    if TARGET.read_text() != text:
        sys.exit("src/choose/shipped.c is not what ship_models.py makes of bench/results/model-*.json: run it again")
else:
    TARGET.write_text(text)

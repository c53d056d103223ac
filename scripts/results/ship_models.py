"""Makes src/choose/shipped.c, the cost models that come with the library, from measured ones.

usage: ship_models.py [--check]      --check: fails when the file is not up to date

Takes every model below bench/records/: the CPU's first, then the GPUs' by name, whose models go by the names that their
drivers give them.
"""
import json
import sys

from pages import RECORDS, ROOT, records

FORMS = {"points": "GNOMON_FORM_POINTS", "coordinates": "GNOMON_FORM_COORDINATES", "sparse": "GNOMON_FORM_SPARSE"}
TARGET = ROOT / "src" / "choose" / "shipped.c"


def cost(entry):
    kind = "GNOMON_" + entry["operator"].upper().replace("-", "_")
    precision = {"fp32": "GNOMON_F32", "fp16": "GNOMON_F16"}.get(entry.get("precision"), "0")
    numbers = ", ".join(repr(entry[name]) for name in
                        ("point_tile", "row_tile", "start", "make", "multiply", "read", "write", "step",
                         "half", "wide"))
    return f"{{{kind}, {precision}, {FORMS[entry['form']]}, {numbers}}}"


def model(path, m):
    costs = ",\n".join(cost(entry) for entry in m["costs"])
    return (f"/* {path.relative_to(RECORDS)} */\n"
            f"{{.name = {json.dumps(m['name'])}, .device = GNOMON_DEVICE_{'CPU' if m['device'] == 'cpu' else 'PLUGIN'}, "
            f".threads = {m['threads']}, .upload = {m['upload']!r}, .download = {m['download']!r}, "
            f".count = {len(m['costs'])}, .cost = {{\n{costs}}}}},\n")


found = sorted(((path, m) for path, m in records("gnomon", "costs") if m["gnomon"] == "model"),
               key=lambda one: (one[1]["device"] != "cpu", one[1]["name"]))
names = [m["name"] for _, m in found]
if len(set(names)) < len(names):
    sys.exit("two models in bench/records/ have one name: " + ", ".join(names))
text = ("/* The cost models that come with the library; made by scripts/results/ship_models.py from measured\n"
        " * ones in bench/records/. */\n"
        "/* clang-format off */\n"
        '#include "choose/choose.h"\n\n'
        "const gnomon_model gnomon_shipped_models[] = {\n" + "".join(model(*one) for one in found) + "{.count = 0},\n};\n")
if sys.argv[1:] == ["--check"]:
    if TARGET.read_text() != text:
        sys.exit("src/choose/shipped.c is not what ship_models.py makes of the models in bench/records/: run it again")
else:
    TARGET.write_text(text)

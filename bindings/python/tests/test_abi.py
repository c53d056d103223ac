"""The declarations for ctypes are those of the headers, as the compiler lays them out."""
import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parents[2]
GENERATE = HERE.parent / "generate.py"


def test_generated_file_is_up_to_date(tmp_path):
    subprocess.run([sys.executable, GENERATE, SOURCE / "include", tmp_path / "abi.py"], check=True)
    assert (tmp_path / "abi.py").read_text() == (HERE.parent / "gnomon" / "_abi.py").read_text(), \
        "run bindings/python/generate.py include bindings/python/gnomon/_abi.py"


def test_layout_is_the_compilers(tmp_path):
    from gnomon import _abi
    compiler = os.environ.get("CC", "cc")
    subprocess.run([sys.executable, GENERATE, SOURCE / "include", "--probe", tmp_path / "probe.c"], check=True)
    try:
        subprocess.run([compiler, "-I", SOURCE / "include", tmp_path / "probe.c", "-o", tmp_path / "probe"], check=True)
    except FileNotFoundError:
        pytest.skip(f"no compiler {compiler}")
    lines = subprocess.run([tmp_path / "probe"], check=True, capture_output=True, text=True).stdout.splitlines()
    seen = set()
    for line in lines:
        what, name, *numbers = line.split()
        seen.add(what)
        if what == "constant":
            assert getattr(_abi, name) == float(numbers[0]), name
        elif what == "enum":
            assert ctypes.sizeof(ctypes.c_int) == int(numbers[0]), name
        elif what == "struct":
            assert ctypes.sizeof(getattr(_abi, name)) == int(numbers[0]), name
        else:
            struct, member = name.split(".")
            field = getattr(getattr(_abi, struct), member)
            assert [field.offset, field.size] == [int(n) for n in numbers], name
    assert seen == {"constant", "enum", "struct", "member"}
    assert sum(line.startswith("struct ") for line in lines) == len(_abi.STRUCTS) > 40


def test_every_init_gives_the_headers_defaults():
    from gnomon import _abi
    from gnomon._library import lib
    names = [name for name in _abi.FUNCTIONS if name.endswith("_init")]
    assert len(names) > 10
    for name in names:
        struct = getattr(_abi, name[:-5])()
        assert getattr(lib, name)(ctypes.byref(struct), ctypes.sizeof(struct)) == 0
        assert struct.struct_size == ctypes.sizeof(struct)

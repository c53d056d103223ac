"""The Python programs of the pages run."""
import re
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[3]
PAGES = ["README.md", "bindings/python/README.md", "docs/reference/python.md"]
PROGRAMS = [(page, text) for page in PAGES
            for text in re.findall(r"^```python\n(.*?)^```$", (SOURCE / page).read_text(encoding="utf-8"), re.M | re.S)]


def test_programs_are_found():
    assert {page for page, _ in PROGRAMS} == set(PAGES)


@pytest.mark.parametrize("page, text", PROGRAMS, ids=[f"{page}-{i}" for i, (page, _) in enumerate(PROGRAMS)])
def test_page(page, text, monkeypatch, tmp_path):
    pytest.importorskip("scipy")
    for other in ("sklearn", "pyarrow", "dask", "distributed", "pyspark", "ray"):
        if other in text:
            pytest.importorskip(other)
    (tmp_path / "data").symlink_to(SOURCE / "data")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    exec(compile(text, page, "exec"), {"__name__": "__main__"})

"""What importing the package imports, and when."""
import ast
import importlib
import inspect
import os
import pathlib
import subprocess
import sys

import pytest

import gnomon

OTHERS = {"scipy", "sklearn", "torch", "pandas", "cupy", "pyarrow", "tqdm", "matplotlib", "h5py"}


def fresh(code, **environment):
    """What a new interpreter prints."""
    paths = [os.path.dirname(os.path.dirname(gnomon.__file__)), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run([sys.executable, "-B", "-c", code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), **environment})
    assert done.returncode == 0, done.stdout
    return done.stdout.split()


LOADED = "; print(*sorted({name for name in sys.modules} - before))"


def test_the_package_alone_is_imported():
    loaded = fresh("import sys; before = set(sys.modules); import gnomon" + LOADED)
    assert [name for name in loaded if name.split(".")[0] not in sys.stdlib_module_names] == ["gnomon"]
    assert not {"ctypes", "json", "inspect", "dataclasses"} & set(loaded)


def test_a_name_imports_what_it_needs():
    loaded = fresh("import sys; before = set(sys.modules); import gnomon; gnomon.sketch([[1.0, 2.0]], 2)" + LOADED)
    assert "numpy" in loaded and not OTHERS & set(loaded)
    ours = {name for name in loaded if name.startswith("gnomon.")}
    assert {"gnomon._abi", "gnomon._library", "gnomon._sketch"} <= ours
    assert not {"gnomon._dedup", "gnomon._factor", "gnomon._index", "gnomon._search", "gnomon.sklearn", "gnomon.torch"} & ours
    loaded = fresh("import sys; before = set(sys.modules); from gnomon import *; Index, Dedup, svd" + LOADED)
    assert not OTHERS & set(loaded)


def test_the_names_of_checkers_and_of_the_package_are_the_same():
    tree = ast.parse(pathlib.Path(gnomon.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    typed = {alias.asname or alias.name: (node.module, alias.name) for node in block.body for alias in node.names}
    assert typed == gnomon._HOME
    assert sorted(typed) == sorted(gnomon.__all__)
    for name, (home, theirs) in typed.items():
        value = getattr(gnomon, name)
        assert value is getattr(sys.modules["gnomon." + home], theirs) and name in dir(gnomon)


def test_an_unknown_name():
    with pytest.raises(AttributeError, match="no attribute 'skech'"):
        gnomon.skech
    assert not hasattr(gnomon, "__wrapped__")
    with pytest.raises(ImportError):
        exec("from gnomon import skech")


def test_a_library_that_is_not_there_is_named_at_the_first_use(tmp_path):
    absent = str(tmp_path / "libgnomon.so.0")
    words = fresh("import gnomon\ntry:\n    gnomon.sketch\nexcept ImportError as error:\n    print(error)", GNOMON_LIBRARY=absent)
    assert absent in " ".join(words) and "GNOMON_LIBRARY" in words


def test_an_older_library_is_refused(tmp_path):
    """A library of the right version without the functions."""
    source = tmp_path / "old.c"
    source.write_text(f'const char *gnomon_version(void) {{ return "{gnomon.__version__}"; }}\n')
    try:
        subprocess.run(["cc", "-shared", "-fPIC", "-o", str(tmp_path / "old.so"), str(source)], check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no C compiler")
    words = fresh("import gnomon\ntry:\n    gnomon.sketch\nexcept ImportError as error:\n    print(error)",
                  GNOMON_LIBRARY=str(tmp_path / "old.so"))
    assert "older" in words


@pytest.mark.parametrize("module", ["gnomon", "gnomon.sklearn", "gnomon.torch"])
def test_what_is_called_has_an_example(module):
    """And results do; exceptions need none."""
    pytest.importorskip({"gnomon.sklearn": "sklearn", "gnomon.torch": "torch"}.get(module, "numpy"))
    home = importlib.import_module(module)
    shown = [(name, getattr(home, name)) for name in home.__all__]
    called = [name for name, one in shown if inspect.isfunction(one) or inspect.isclass(one) and not issubclass(one, Exception)]
    assert len(called) >= 6
    assert [name for name in called if ">>> " not in inspect.getdoc(getattr(home, name))] == []

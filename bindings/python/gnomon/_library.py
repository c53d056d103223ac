"""Finds libgnomon and declares its functions."""
from __future__ import annotations

import ctypes
import importlib.util
import os
from typing import Any

from . import _abi

_FILE = "libgnomon.so.0"
_HERE = os.path.dirname(os.path.realpath(__file__))  # not by pathlib, whose import takes as long as the rest here
_BUNDLED = os.path.join(_HERE, "lib", _FILE)


def _candidates() -> list[str]:
    """Where the library may lie, the first that exists being taken."""
    named = os.environ.get("GNOMON_LIBRARY")
    if named:
        return [named]
    if os.path.exists(_BUNDLED):
        return [_BUNDLED]
    source = os.path.dirname(os.path.dirname(os.path.dirname(_HERE)))  # of bindings/python/gnomon in a checkout
    if os.path.exists(os.path.join(source, "include", "gnomon", "base.h")):
        built = [os.path.join(source, folder, _FILE) for folder in ("build", "build-no-cuda")]
        found = [path for path in built if os.path.exists(path)]
        if found:
            return found
    return [_FILE]  # the system's, by the loader's own search


class _Functions:
    """The library's functions as attributes, each declared when it is first asked for."""

    def __init__(self, library: ctypes.CDLL):
        self._library = library

    def __getattr__(self, name: str) -> Any:
        declared: Any = _abi.FUNCTIONS.get(name)
        if declared is None:
            raise AttributeError(f"libgnomon has no function {name}")
        function = getattr(self._library, name)
        function.restype, function.argtypes = declared()
        setattr(self, name, function)
        return function


def _load() -> tuple[_Functions, str]:
    file = _candidates()[0]
    try:
        library = ctypes.CDLL(file)
    except OSError as error:
        raise ImportError(
            f"libgnomon can't be loaded: {error}. Set GNOMON_LIBRARY to the path of {_FILE}, or build it with 'make'"
        ) from None
    library.gnomon_version.restype = ctypes.c_char_p
    found = library.gnomon_version().decode()
    if found.split(".")[:2] != [str(_abi.GNOMON_VERSION_MAJOR), str(_abi.GNOMON_VERSION_MINOR)]:
        raise ImportError(f"{file} is gnomon {found}; this package is made for "
                          f"{_abi.GNOMON_VERSION_MAJOR}.{_abi.GNOMON_VERSION_MINOR}")
    for name in _abi.FUNCTIONS:
        if not hasattr(library, name):
            raise ImportError(f"{file} lacks {name}: it is older than this package")
    return _Functions(library), file


def choose_blas() -> None:
    """Where nobody has named one: the OpenBLAS of the package scipy-openblas32, when it is installed.

    By the environment, so that the command, when it is started from here, takes the same.
    """
    if "GNOMON_BLAS" in os.environ:
        return
    found = importlib.util.find_spec("scipy_openblas32")
    if found is None or not found.submodule_search_locations:
        return
    for folder in found.submodule_search_locations:
        file = os.path.join(folder, "lib", "libscipy_openblas.so")
        if os.path.exists(file):
            os.environ["GNOMON_BLAS"], os.environ["GNOMON_BLAS_PREFIX"] = file, "scipy_"


def choose_plugins() -> None:
    """Where nobody has named a folder of plugins: that of the package gnomon-cuda13, when it is installed.

    For the library that this package brings alone: another one has its plugins beside it, which may be of another
    version. By the environment, for the same reason as above.
    """
    if "GNOMON_PLUGIN_DIR" in os.environ or _candidates()[0] != _BUNDLED:
        return
    found = importlib.util.find_spec("gnomon_cuda13")
    if found is None or not found.submodule_search_locations:
        return
    for folder in found.submodule_search_locations:
        if os.path.exists(os.path.join(folder, "libgnomon_cuda.so")):
            os.environ["GNOMON_PLUGIN_DIR"] = os.path.abspath(folder)  # a relative one is refused
            return


choose_blas()
choose_plugins()
lib, path = _load()
version: str = lib.gnomon_version().decode()


def free_text(pointer: ctypes.c_void_p) -> str:
    """The text at a pointer of the C library's malloc, which is freed."""
    text = ctypes.string_at(pointer.value or 0).decode()
    _libc.free(pointer)
    return text


_libc = ctypes.CDLL(None)
_libc.free.restype, _libc.free.argtypes = None, [ctypes.c_void_p]

"""What the library's statuses become: exceptions by kind."""
from __future__ import annotations

import errno
import re
from typing import Mapping, NoReturn, Optional

from . import _abi


class GnomonError(Exception):
    """Base of the exceptions that stand for a status of the library.

    Attributes
    ----------
    status : str
        The status' name, ``"GNOMON_ERROR_SHAPE"`` say.
    argument : str
        The name of the argument or file that the error is about, ``""`` for none.
    row, col : int or None
        Where in that argument, counted from 0.
    """

    status: str = ""
    argument: str = ""
    row: Optional[int] = None
    col: Optional[int] = None


class ArgumentError(GnomonError, ValueError):
    """An argument outside what is allowed: its value, shape, element type or size; NaN or infinity in it."""


class UnsupportedError(ArgumentError):
    """A combination of arguments that the library does not support, or one that a missing library would serve."""


class BusyError(GnomonError, RuntimeError):
    """Another call changes the same index or file; nothing was changed."""


class DataError(GnomonError, ValueError):
    """A file, descriptor or sparse array that breaks its format."""


class FileError(GnomonError, OSError):
    """A file that can't be read or written; ``filename`` names it."""


class MissingFileError(FileError, FileNotFoundError):
    """A file or folder that is not there; ``filename`` names it."""


class OutOfMemoryError(GnomonError, MemoryError):
    """Memory for the call could not be had, or the memory limit is too low for it."""


class DeviceError(GnomonError, RuntimeError):
    """The device asked for can't be had, declines the job, or failed; or an array lies on another one."""


class Cancelled(GnomonError, RuntimeError):
    """The progress callable ended the call."""


class InternalError(GnomonError, RuntimeError):
    """A defect of the library: please report it."""


_KINDS: dict[int, type[GnomonError]] = {
    _abi.GNOMON_ERROR_ARGUMENT: ArgumentError,
    _abi.GNOMON_ERROR_SHAPE: ArgumentError,
    _abi.GNOMON_ERROR_DTYPE: ArgumentError,
    _abi.GNOMON_ERROR_OVERFLOW: ArgumentError,
    _abi.GNOMON_ERROR_UNSUPPORTED: UnsupportedError,
    _abi.GNOMON_ERROR_BUSY: BusyError,
    _abi.GNOMON_ERROR_DATA: DataError,
    _abi.GNOMON_ERROR_NONFINITE: ArgumentError,
    _abi.GNOMON_ERROR_TRUNCATED: DataError,
    _abi.GNOMON_ERROR_FORMAT: DataError,
    _abi.GNOMON_ERROR_IO: FileError,
    _abi.GNOMON_ERROR_NOT_FOUND: MissingFileError,
    _abi.GNOMON_ERROR_MEMORY: OutOfMemoryError,
    _abi.GNOMON_ERROR_DEVICE: DeviceError,
    _abi.GNOMON_ERROR_COMM: DeviceError,
    _abi.GNOMON_ERROR_CANCELLED: Cancelled,
}


def _ours(text: str, names: Mapping[str, str]) -> str:
    """A text of the library with Python's names of the arguments: at its beginning, where it names a member or an
    element, and wherever the name is no word of English, nor part of one with a hyphen, as in k-means."""
    for theirs, name in names.items():
        if theirs != name:
            word = re.escape(theirs)
            behind = r"(?=[.\['])" if theirs in ("a", "base", "points", "rows", "power", "rank", "piece") else r"\b"
            text = re.sub(rf"(^{word}\b|(?<![\w.\"-]){word}{behind})(?!-\w)", name, text)
    text = re.sub(r"\b(options|functions|guarantee|search_params)\.", "", text)
    return re.sub(r"(?<=\w)\.(offsets|values)(?=\W)", lambda found: _MEMBERS[found[1]], text)


_MEMBERS = {"offsets": ".indptr", "values": ".data"}


def fail(status: int, name: str, text: str, argument: str, row: int, col: int,
         names: Mapping[str, str]) -> NoReturn:
    """Raises what a status stands for.

    names: what the library's arguments are called in Python.
    """
    kind = _KINDS.get(status, InternalError)
    if issubclass(kind, OSError):
        number = errno.ENOENT if issubclass(kind, MissingFileError) else errno.EIO
        error: GnomonError = kind(number, text, argument) if argument else kind(number, text)
        ours = argument
    else:
        ours = _ours(argument, names)
        error = kind(_ours(text, names))
    error.status, error.argument = name, ours
    error.row, error.col = (row if row >= 0 else None), (col if col >= 0 else None)
    raise error

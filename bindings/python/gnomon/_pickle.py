"""Objects that are pickled as the bytes of the file that they are saved to."""
import os
from collections.abc import Callable
from typing import Any, TypeVar

_T = TypeVar("_T")


def saved(save: Callable[[str], Any]) -> bytes:
    """The bytes of the file that ``save(path)`` writes."""
    import tempfile  # here, as few need it and its import takes milliseconds
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "index")
        save(path)
        with open(path, "rb") as file:
            return file.read()


def opened(data: bytes, opens: Callable[[str], _T]) -> _T:
    """What ``opens(path)`` makes of a file of these bytes; what it maps stays when the file is removed."""
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "index")
        with open(path, "wb") as file:
            file.write(data)
        return opens(path)

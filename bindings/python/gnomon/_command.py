"""Starts the command that the wheel brings."""
from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn


def main() -> NoReturn:
    """In place of this process, with the library beside it, and the BLAS and plugins that the package would take."""
    from ._library import choose_blas, choose_plugins
    here = Path(__file__).resolve().parent
    command = here / "bin" / "gnomon"
    if not command.exists():
        raise SystemExit("gnomon: this package has no command: it is in the checkout's build folder")
    choose_blas()
    choose_plugins()
    os.execv(command, ["gnomon", *sys.argv[1:]])


if __name__ == "__main__":
    main()

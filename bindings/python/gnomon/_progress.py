"""Progress as a bar of tqdm."""
from __future__ import annotations

import warnings
from typing import Any, Optional


class Bar:
    """One bar for each phase of a call, by tqdm."""

    def __init__(self) -> None:
        self._phase: Optional[str] = None
        self._bar: Any = None
        self._tqdm: Any = None
        try:
            from tqdm.auto import tqdm
            self._tqdm = tqdm
        except ImportError:
            warnings.warn("progress=True shows nothing without tqdm: pip install tqdm", RuntimeWarning, stacklevel=4)

    def __call__(self, phase: str, done: int, total: int) -> None:
        if self._tqdm is None:
            return
        if phase != self._phase:
            self.close()
            self._phase = phase
            self._bar = self._tqdm(desc=phase, total=total if total >= 0 else None, leave=False)
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None
        self._phase = None

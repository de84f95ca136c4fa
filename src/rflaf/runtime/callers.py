"""Where a warning points to."""

from __future__ import annotations

import sys
import warnings

_INSIDE = ("rflaf", "sklearn", "torch")  # torch calls the modules of `rflaf.nn`


def warn(text: str) -> None:
    """A warning that points at the first line outside this package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in _INSIDE:
        level, frame = level + 1, frame.f_back
    warnings.warn(text, UserWarning, stacklevel=level)

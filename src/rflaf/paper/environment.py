"""What a figure was measured with."""

from __future__ import annotations

import os
import platform
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rflaf._version import __version__

_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "torch")


def versions() -> dict[str, str]:
    """Of Python, of this package, and of those that its figures depend on, as far as installed."""
    known = {name: _version(name) for name in _PACKAGES}
    found = {name: each for name, each in known.items() if each is not None}
    return {"rflaf": __version__, "python": platform.python_version(), **found}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def machine() -> dict[str, Any]:
    """Processor and number of cores; no name of a host or a user."""
    processor = platform.processor()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        processor = lines[0].split(":")[1].strip() if lines else processor
    return {"processor": processor, "cores": os.cpu_count(), "system": platform.system()}


def today() -> str:
    """The date, as 2026-01-31."""
    return time.strftime("%Y-%m-%d")

"""What a figure was measured with."""

from __future__ import annotations

import os
import platform
import time
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rflaf._version import __version__

_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "torch")


def versions() -> dict[str, str]:
    """Of Python, of this package, and of those that its figures depend on, as far as installed."""
    found = {"rflaf": __version__, "python": platform.python_version()}
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


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


def stamp() -> dict[str, Any]:
    """All of it, as records have it."""
    return {"versions": versions(), "machine": machine(), "date": today()}

"""Where files are looked for, and where this package may write."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from rflaf.datasets.types import File


def cache_folder() -> Path:
    """RFLAF_CACHE, or the user's cache folder, as `pooch.os_cache("rflaf")` has it."""
    if chosen := os.environ.get("RFLAF_CACHE", "").strip():
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA", "") or str(Path.home() / "AppData" / "Local")
        return Path(local) / "rflaf" / "rflaf" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "rflaf"
    shared = os.environ.get("XDG_CACHE_HOME", "").strip()
    return (Path(shared) if shared else Path.home() / ".cache") / "rflaf"


def download_folder() -> Path:
    return cache_folder() / "files"


def candidates(file: File) -> list[tuple[Path, File]]:
    """Each place where a file, or one of its other forms, may be, the best first."""
    named = os.environ.get("RFLAF_DATA", "").split(os.pathsep)
    folders = [*(Path(part).expanduser() for part in named if part.strip()), download_folder()]
    return [(folder / form.path, form) for folder in folders for form in (file, *file.variants)]


def find(file: File) -> tuple[Path, File] | None:
    """The first place where the file is, and in which form."""
    return next(((path, form) for path, form in candidates(file) if path.is_file()), None)

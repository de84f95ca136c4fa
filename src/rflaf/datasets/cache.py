"""Parsed arrays on disk, so that a set is read from text or archives once.

Each set has a folder. In it the arrays of one version of the source files are in a folder named by
their places, sizes and times, written under another name and renamed: processes at work at the same
time write the same thing, whoever comes first. What is there is only ever replaced whole. Whatever
fails here costs time, never a result.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import numpy as np

from rflaf.datasets.types import Dataset

_FORMAT = 3  # to be raised when a reader changes what it makes of the same file
_CONTENTS = "contents.json"  # names of the columns, and of the arrays that are there
_ARRAYS = [field.name for field in fields(Dataset) if field.name != "feature_names"]


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


def kept(name: str, key: str, build: Callable[[], Dataset]) -> Dataset:
    """What `build` returns, from the cache if it is there under this key."""
    digest = hashlib.sha256(f"{_FORMAT} {key}".encode()).hexdigest()[:24]
    folder = cache_folder() / "parsed" / name / digest
    data = _read(folder)
    if data is None:
        data = build()
        _write(folder, data)
    return data


def sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _read(folder: Path) -> Dataset | None:
    """The arrays, mapped into memory; None if they are not there whole."""
    try:
        contents = json.loads((folder / _CONTENTS).read_text())
        arrays = {
            name: np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False)
            for name in contents["arrays"]
        }
        if len(arrays["X"]) != len(arrays["y"]):
            raise ValueError("rows and targets do not match")
        return Dataset(feature_names=tuple(contents["feature_names"]), **arrays)
    except (OSError, ValueError, TypeError, LookupError, EOFError):
        return None


def _write(folder: Path, data: Dataset) -> None:
    temporary, aside = (
        folder.with_name(f".{folder.name}.{secrets.token_hex(8)}.tmp") for _ in range(2)
    )
    try:
        temporary.mkdir(parents=True)
        arrays = {name: getattr(data, name) for name in _ARRAYS}
        arrays = {name: array for name, array in arrays.items() if array.size}  # no bytes, no map
        for name, array in arrays.items():
            np.save(temporary / f"{name}.npy", array, allow_pickle=False)
        contents = {"feature_names": data.feature_names, "arrays": list(arrays)}
        (temporary / _CONTENTS).write_text(json.dumps(contents))
        if folder.exists() and _read(folder) is None:  # damaged
            os.rename(folder, aside)
        os.rename(temporary, folder)
    except OSError:  # no room, no right, or another process was first
        pass
    finally:
        for path in (temporary, aside):
            shutil.rmtree(path, ignore_errors=True)

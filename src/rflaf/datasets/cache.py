"""Parsed arrays on disk, so that a set is read from text or archives once.

Each set has a folder. In it the arrays of one version of the source files are in a folder named by
their digest, written under another name and renamed: processes at work at the same time write the
same thing, whoever comes first. What is there is only ever replaced whole. `sources.json`
records which digest a file had at which size and time, so that an unchanged file is not hashed
again. Whatever fails here costs time, never a result.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from rflaf.datasets.folders import cache_folder
from rflaf.datasets.types import Dataset
from rflaf.runtime.files import write_whole

_FORMAT = 3  # to be raised when a reader changes what it makes of the same file
_CONTENTS = "contents.json"  # names of the columns, and of the arrays that are there
_ARRAYS = [field.name for field in fields(Dataset) if field.name != "feature_names"]


def kept(name: str, key: str, build: Callable[[], Dataset]) -> Dataset:
    """What `build` returns, from the cache if it is there under this key."""
    digest = hashlib.sha256(f"{_FORMAT} {key}".encode()).hexdigest()[:24]
    folder = cache_folder() / "parsed" / name / digest
    data = _read(folder)
    if data is None:
        data = build()
        _write(folder, data)
    return data


def digests(name: str, paths: Sequence[Path]) -> list[str]:
    """SHA-256 of each file; known ones are not computed again while size and time are the same."""
    index = cache_folder() / "parsed" / name / "sources.json"
    known = _known(index)
    found: dict[str, list[Any]] = {}
    for path in dict.fromkeys(paths):
        status = path.stat()
        state = [status.st_size, status.st_mtime_ns]
        entry: Any = known.get(str(path.resolve()))
        same = isinstance(entry, list) and len(entry) == 3 and entry[:2] == state
        found[str(path.resolve())] = entry if same else [*state, sha256(path)]
    if any(known.get(path) != entry for path, entry in found.items()):
        with contextlib.suppress(OSError):
            index.parent.mkdir(parents=True, exist_ok=True)
            write_whole(index, json.dumps({**known, **found}, indent=1).encode())
    return [found[str(path.resolve())][2] for path in paths]


def sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _known(index: Path) -> dict[str, Any]:
    try:
        known = json.loads(index.read_text())
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


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

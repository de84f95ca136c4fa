"""Records of runs: one JSON line per run, in a folder that several processes may share."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rflaf.runtime.callers import warn
from rflaf.runtime.extras import needed

Record = dict[str, Any]


class Store:
    """A folder of records.

    Lines are appended under a lock and flushed to the disk, so that a run that has been reported
    is there after a crash, and what a crash cut off is one line, which is dropped with a warning.

    Parameters
    ----------
    folder : path
        Made when the first record is written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(folder)
    ...     store.append({"key": "protein/…/s72", "test_loss": 0.2})
    ...     [record["test_loss"] for record in store.read()]
    [0.2]
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.path = self.folder / "records.jsonl"

    def read(self) -> list[Record]:
        """All records, in the order in which they were written; of equal keys the last."""
        if not self.path.exists():
            return []
        found: dict[str, Record] = {}
        for number, line in enumerate(self.path.read_bytes().split(b"\n"), 1):
            if not line.strip():
                continue
            record = _parse(line)
            if record is None:
                warn(
                    f"'{self.path}', line {number}, is not a record and was skipped: it is "
                    "incomplete or damaged."
                )
            else:
                found[record["key"]] = record
        return list(found.values())

    def keys(self) -> set[str]:
        """The keys of the runs that are there."""
        return {record["key"] for record in self.read()}

    def append(self, record: Record) -> None:
        """Add a record, durably."""
        line = json.dumps(compact(record), separators=(",", ":"), allow_nan=False) + "\n"
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            with self._lock("records"), open(self.path, "a+b") as file:
                _drop_cut_line(file, self.path)
                file.write(line.encode())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:  # a full disk does not say where
            error.filename = error.filename or str(self.path)
            raise

    @contextmanager
    def claim(self, key: str) -> Iterator[bool]:
        """Whether this process may do the run `key`: no other does it, and it has no record yet.

        The claim ends with the block, or with the process.
        """
        lock = self._lock(hashlib.sha256(key.encode()).hexdigest()[:24])
        try:
            held = lock.acquire(blocking=False)
        except TimeoutError:  # filelock's own is one
            yield False
            return
        with held:
            yield key not in self.keys()

    def _lock(self, name: str) -> Any:
        filelock = needed("filelock", "Writing records needs filelock", "'rflaf[experiments]'")
        folder = self.folder / ".locks"
        folder.mkdir(parents=True, exist_ok=True)
        return filelock.FileLock(folder / f"{name}.lock")


def compact(value: Any) -> Any:
    """Floats with six digits, and None for what JSON cannot represent: NaN and the infinities."""
    if isinstance(value, dict):
        return {key: compact(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [compact(each) for each in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value


def _parse(line: bytes) -> Record | None:
    try:
        record = json.loads(line)
    except ValueError:  # also bytes that are not UTF-8
        return None
    return record if isinstance(record, dict) and isinstance(record.get("key"), str) else None


def _drop_cut_line(file: Any, path: Path) -> None:
    """Cut the file back to its last whole line, so that the next one begins a line."""
    data = path.read_bytes()
    if not data or data.endswith(b"\n"):
        return
    end = data.rfind(b"\n") + 1
    if _parse(data[end:]) is not None:  # whole, except for the end of the line
        file.write(b"\n")
        return
    warn(f"The last line of '{path}' is incomplete and was dropped.")
    file.truncate(end)

"""Readers of the files themselves: bytes and cells in, arrays out, and errors that name the place."""

from __future__ import annotations

import csv
import gzip
import io
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np

from rflaf.datasets.types import Array

_DAMAGE = (EOFError, OSError, zlib.error, zipfile.BadZipFile, tarfile.TarError, NotImplementedError)


def bad(path: Path, what: str) -> ValueError:
    return ValueError(f"'{path}' cannot be read: {what}")


@contextmanager
def opened(path: Path, member: str | None = None) -> Iterator[IO[bytes]]:
    """The bytes of a file, out of its .gz, or of a member of its .zip or .tar.gz."""
    try:
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive, archive.open(_inside(archive, member)) as file:
                yield file
        elif path.name.endswith(".tar.gz"):
            with tarfile.open(path) as archive:
                names = [n for n in archive.getnames() if n.rpartition("/")[2] == member]
                file = archive.extractfile(names[0]) if names else None
                if file is None:
                    raise bad(path, f"it has no member '{member}'.")
                yield file
        elif path.suffix == ".gz":
            with gzip.open(path) as file:
                yield file  # type: ignore[misc]
        else:
            with open(path, "rb") as file:
                yield file
    except FileNotFoundError:
        raise
    except _DAMAGE as error:
        raise bad(path, f"damaged or incomplete ({error}).") from error


def _inside(archive: zipfile.ZipFile, member: str | None) -> zipfile.ZipInfo:
    for entry in archive.infolist():
        if entry.filename.rpartition("/")[2] == member:
            return entry
    raise bad(Path(str(archive.filename)), f"it has no member '{member}'.")


def idx(path: Path, dimensions: int) -> Array:
    """An array of bytes in the IDX format of MNIST."""
    with opened(path) as file:
        data = file.read()
    header = 4 + 4 * dimensions
    if len(data) < header or data[:4] != bytes([0, 0, 8, dimensions]):
        raise bad(path, f"not an IDX file of bytes with {dimensions} dimensions (wrong magic).")
    shape = tuple(np.frombuffer(data[4:header], dtype=">u4").tolist())
    if len(data) - header != np.prod(shape, dtype=object):
        raise bad(path, f"its header says {shape}, but {len(data) - header} bytes follow.")
    return np.frombuffer(data, np.uint8, offset=header).reshape(shape)


def cifar(path: Path, member: str) -> tuple[Array, Array]:
    """Pixels (n × 3072) and labels of one batch in the binary layout of CIFAR-10."""
    with opened(path, member) as file:
        data = np.frombuffer(file.read(), np.uint8)
    if not len(data) or len(data) % 3073:
        raise bad(path, f"'{member}' has {len(data)} bytes, not rows of 3073.")
    rows = data.reshape(-1, 3073)
    if rows[:, 0].max() > 9:
        raise bad(path, f"'{member}' has a label above 9.")
    return rows[:, 1:], rows[:, 0]


def lines(path: Path, member: str | None = None) -> Iterator[tuple[int, list[str]]]:
    """Number and cells of each line that is not blank."""
    with opened(path, member) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        reader = csv.reader(text, skipinitialspace=True)
        try:
            for cells in reader:
                if cells and any(cells):
                    yield reader.line_num, cells
        except (csv.Error, UnicodeDecodeError) as error:
            raise bad(path, f"no plain text after line {reader.line_num} ({error}).") from error


def table(
    path: Path,
    columns: int,
    *,
    member: str | None = None,
    header: tuple[str, ...] | None = None,
    allow_nan: bool = False,
) -> Array:
    """Numbers separated by commas; one error with the line for a cell that is none."""
    rows: list[Array] = []
    expected_header = header
    for number, cells in lines(path, member):
        if expected_header is not None:
            if tuple(cell.strip() for cell in cells) != expected_header:
                raise bad(path, f"line {number} is not the header {','.join(expected_header)}.")
            expected_header = None
            continue
        if len(cells) != columns:
            raise bad(path, f"line {number} has {len(cells)} cells, expected {columns}.")
        rows.append(_numbers(path, number, cells, allow_nan))
    if not rows:
        raise bad(path, "it has no rows.")
    return np.array(rows)


def _numbers(path: Path, number: int, cells: list[str], allow_nan: bool) -> Array:
    try:
        row = np.array([float(cell) if cell or not allow_nan else np.nan for cell in cells])
    except ValueError as error:
        raise bad(path, f"line {number}: {error}.") from error
    if not (allow_nan or np.isfinite(row).all()):
        raise bad(path, f"line {number} has a cell that is no finite number.")
    return row

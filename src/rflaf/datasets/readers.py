"""Readers of the files themselves: bytes and cells in, arrays out, errors that name the place."""

from __future__ import annotations

import gzip
import io
import itertools
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np

from rflaf.datasets.types import Array

# how each form of a file starts; what it holds is the business of its reader
_MAGIC = {".gz": b"\x1f\x8b", ".zip": b"PK"}


class BadFile(ValueError):
    """A file that exists, but does not contain what its name promises."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(f"'{path}' cannot be read: {what}")


@contextmanager
def opened(path: Path, member: str | None = None) -> Iterator[IO[bytes]]:
    """The bytes of a file, unpacked if it ends in .gz, or of a member of its .zip or .tar.gz."""
    try:
        magic = _MAGIC.get(path.suffix, b"")
        with open(path, "rb") as plain:
            if plain.read(len(magic)) != magic:
                raise BadFile(path, f"it does not start as a {path.suffix} file does.")
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as zipped:
                name = _found(path, zipped.namelist(), member)
                with zipped.open(name) as file:
                    yield file
        elif member is not None and path.name.endswith(".tar.gz"):
            with tarfile.open(path) as tarred:
                extracted = tarred.extractfile(_found(path, tarred.getnames(), member))
                if extracted is None:
                    raise BadFile(path, f"its member '{member}' is not a file.")
                yield extracted
        else:
            with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
                yield file  # type: ignore[misc]
    except (BadFile, FileNotFoundError):
        raise
    except Exception as error:  # damaged archives raise a dozen types, some not even documented
        raise BadFile(path, f"damaged or incomplete ({type(error).__name__}: {error}).") from error


def check_gzip(path: Path) -> None:
    """Unpack all of a file: its checksum is at its end, beyond the members of a .tar.gz."""
    with opened(path) as file:
        while file.read(1 << 20):
            pass


def _found(path: Path, names: list[str], member: str | None) -> str:
    for name in names:
        if name.rpartition("/")[2] == member:
            return name
    raise BadFile(path, f"it has no member '{member}'.")


def idx(path: Path, dimensions: int) -> Array:
    """An array of bytes in the IDX format of MNIST."""
    with opened(path) as file:
        data = file.read()
    header = 4 + 4 * dimensions
    if len(data) < header or data[:4] != bytes([0, 0, 8, dimensions]):
        raise BadFile(path, f"not an IDX file of bytes with {dimensions} dimensions (wrong magic).")
    shape = tuple(np.frombuffer(data[4:header], dtype=">u4").tolist())
    if len(data) - header != np.prod(shape, dtype=object):
        raise BadFile(path, f"its header says {shape}, but {len(data) - header} bytes follow.")
    if not all(shape):
        raise BadFile(path, "it has no rows.")
    return np.frombuffer(data, np.uint8, offset=header).reshape(shape)


def cifar(path: Path, member: str) -> tuple[Array, Array]:
    """Pixels (n × 3072) and labels of one batch in the binary layout of CIFAR-10."""
    with opened(path, member) as file:
        data = np.frombuffer(file.read(), np.uint8)
    if not len(data) or len(data) % 3073:
        raise BadFile(path, f"{member} has {len(data)} bytes, not rows of 3073.")
    rows = data.reshape(-1, 3073)
    if rows[:, 0].max() > 9:
        raise BadFile(path, f"{member} has a label above 9.")
    return rows[:, 1:], rows[:, 0]


def npy(path: Path, shape: tuple[int | None, ...]) -> Array:
    """A NumPy file of finite numbers; None in `shape` is any length. Never a pickle."""
    with opened(path) as file:
        array = np.load(file, allow_pickle=False)
    fits = isinstance(array, np.ndarray) and array.dtype.kind == "f" and array.ndim == len(shape)
    if not fits or any(want not in (None, have) for want, have in zip(shape, array.shape)):
        raise BadFile(path, f"expected floating-point numbers of shape {shape}.")
    if not (array.size and np.isfinite(array).all()):
        raise BadFile(path, "it is empty, or has entries that are not finite numbers.")
    return array


def lines(path: Path, member: str | None = None) -> Iterator[tuple[int, list[str]]]:
    """Number and cells of each line that is not blank. No set here has commas inside a cell."""
    with opened(path, member) as file, io.TextIOWrapper(file, encoding="utf-8") as text:
        for number, line in enumerate(text, start=1):
            if line.strip():
                yield number, [cell.strip() for cell in line.split(",")]


def table(
    path: Path,
    columns: int,
    *,
    member: str | None = None,
    header: tuple[str, ...] | None = None,
    allow_nan: bool = False,
) -> Array:
    """Numbers separated by commas, after a header if one is named (its empty names are free).

    NumPy's own reader is ten times faster, but does not report which line is wrong, nor reads empty
    cells: where it fails, or NaN is allowed, each line is looked at.
    """
    values = None if allow_nan else _fast_table(path, member, header)
    if values is None or values.shape[1] != columns or not np.isfinite(values).all():
        values = _careful_table(path, columns, member, header, allow_nan)
    return values


def _fast_table(path: Path, member: str | None, header: tuple[str, ...] | None) -> Array | None:
    with opened(path, member) as file, io.TextIOWrapper(file, encoding="utf-8") as text:
        try:
            if header is not None:
                _check_header(path, text.readline().split(","), header)
            first = next((line for line in text if line.strip()), None)
            if first is None:  # of which NumPy would warn, and warnings are of all threads
                return None
            return np.loadtxt(itertools.chain([first], text), delimiter=",", comments=None, ndmin=2)
        except BadFile:
            raise
        except ValueError:
            return None


def _careful_table(
    path: Path, columns: int, member: str | None, header: tuple[str, ...] | None, allow_nan: bool
) -> Array:
    rows: list[list[float]] = []
    for line, cells in lines(path, member):
        if header is not None:
            _check_header(path, cells, header)
            header = None
            continue
        if len(cells) != columns:
            raise BadFile(path, f"line {line} has {len(cells)} cells, expected {columns}.")
        rows.append([number(path, line, cell, allow_nan) for cell in cells])
    if not rows:
        raise BadFile(path, "it has no rows.")
    return np.array(rows)


def _check_header(path: Path, cells: list[str], header: tuple[str, ...]) -> None:
    if len(cells) != len(header) or any(
        want not in ("", have.strip()) for have, want in zip(cells, header)
    ):
        names = header if len(header) < 12 else (*header[:3], "...", header[-1])
        raise BadFile(path, f"its first line is not the header '{','.join(names)}'.")


def number(path: Path, line: int, cell: str, allow_nan: bool = False) -> float:
    """A cell as a number, or an error that names the line."""
    try:
        value = float(cell) if cell or not allow_nan else np.nan
    except ValueError:
        raise BadFile(path, f"line {line}: '{cell[:40]}' is not a number.") from None
    if not np.isfinite(value) and not (allow_nan and np.isnan(value)):
        raise BadFile(path, f"line {line}: '{cell[:40]}' is not a finite number.")
    return value

"""How many bytes there are, and what they are spent on."""

from __future__ import annotations

import os
from pathlib import Path

SAMPLE_ROWS = 200_000  # rows that the activation is learned on, where there are more,
_SAMPLE_NUMBERS = 1 << 28  # with so many numbers in them at most,
_LEAST_SAMPLE = 1000  # and so many rows at least
_BLOCK_NUMBERS = 1 << 23  # inputs or features of a block of rows
_READ_ROWS = 16384  # of a block while the sample is drawn


def free_bytes() -> int:
    """Memory that this process can still take without pushing others out, as far as known."""
    found = [_physical_bytes()]
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        lines = dict(line.split(":", 1) for line in meminfo.read_text().splitlines())
        if "MemAvailable" in lines:
            found.append(1024 * int(lines["MemAvailable"].split()[0]))
    group = Path("/sys/fs/cgroup")  # a container's own limit
    try:
        limit = int((group / "memory.max").read_text())
        found.append(max(limit - int((group / "memory.current").read_text()), 0))
    except (OSError, ValueError):
        pass
    return min(found)


def _physical_bytes() -> int:
    try:
        return int(os.sysconf("SC_PAGE_SIZE")) * int(os.sysconf("SC_PHYS_PAGES"))
    except (ValueError, OSError, AttributeError):
        return 1 << 33


def gram_bytes(m: int) -> int:
    """What normal equations take, with the copies that choosing the penalty makes."""
    return 5 * 8 * (m + 1) ** 2


def gram_fits(m: int, memory: int | None) -> bool:
    """Whether that is to be had."""
    return gram_bytes(m) <= (_physical_bytes() if memory is None else memory)


def check_gram(m: int, memory: int | None) -> None:
    """The second moments of the features take M² numbers several times over; say so at once."""
    needed, limit = gram_bytes(m), _physical_bytes() if memory is None else memory
    if needed > limit:
        has = "This machine has" if memory is None else "'memory' allows"
        raise MemoryError(
            f"n_components={m} needs {_gigabytes(needed)} for the features' second moments. "
            f"{has} {_gigabytes(limit)}, enough for n_components={int((limit / 40) ** 0.5) - 1}."
        )


def _gigabytes(count: float) -> str:
    return f"{count / 1e9:.3g} GB"


def sample_rows(d: int, itemsize: int, memory: int | None) -> int:
    """How many rows to learn the activation on.

    A fixed number, so that the same rows give the same model on every machine, unless `memory` is
    given or the machine has hardly any. A row is held up to three times while the sample is drawn.
    """
    room = _physical_bytes() // 4 if memory is None else memory // 2
    fits = room // (3 * itemsize * d + 64)
    return max(min(SAMPLE_ROWS, _SAMPLE_NUMBERS // d, fits), _LEAST_SAMPLE)


def block_rows(m: int, d: int, memory: int | None) -> int:
    """Rows of a block for the last solve; they do not depend on how the rows are read."""
    rows = _BLOCK_NUMBERS // max(m, d)
    if memory is not None:  # inputs twice, Z, features and their weighted copy
        rows = min(rows, memory // 8 // (16 * d + 16 * m))
    return max(rows, 1)


def read_rows(d: int, memory: int | None) -> int:
    """Rows of a block while the sample is drawn."""
    return min(_READ_ROWS, block_rows(1, d, memory))


def kept_bytes(memory: int | None) -> int:
    """What may be kept of Z, and as much again of the features, between passes over the rows."""
    return (free_bytes() // 4 if memory is None else memory) // 4

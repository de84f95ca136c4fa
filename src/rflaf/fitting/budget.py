"""How many bytes there are, and what they are spent on."""

from __future__ import annotations

from typing import Any

from scipy import sparse

from rflaf import rules
from rflaf.fitting.settings import FitSettings
from rflaf.rows import Sample
from rflaf.runtime.callers import warn
from rflaf.runtime.memory import free_bytes, gigabytes, physical_bytes

_MOST_POWERS = 8  # with 10 and more, fits of a sine were no better than a constant
_SAMPLE_NUMBERS = 1 << 28  # of the sample that layers are learned on, at most,
_LEAST_SAMPLE = 1000  # and at least this many rows
_BLOCK_NUMBERS = 1 << 23  # inputs or features of a block of rows
EXACT_FEATURES = 4_000_000  # up to this many in all, products of features are taken in float64,
EXACT_OF_STEPS = 300_000  # and where each step takes a pass, and penalties are larger
_PASSES = 9000  # what sixty passes over the rows cost, in the time of a product in a Gram matrix
_WIDE_FEATURES = 1 << 28  # of a block of rows: never held at once, but enough for all threads
_WIDE_INPUTS = 1 << 24
_MOST_KNOWN = 1 << 29
_WIDE_SAMPLE = 500  # rows that conjugate gradients are preconditioned with, or they take for ever


def gram_bytes(m: int) -> int:
    """What normal equations take, with the copies that choosing the penalty makes."""
    return 5 * 8 * (m + 1) ** 2


def gram_fits(m: int, max_bytes: int | None) -> bool:
    return gram_bytes(m) <= (physical_bytes() if max_bytes is None else max_bytes)


def check_gram(m: int, max_bytes: int | None) -> None:
    needed, limit = gram_bytes(m), physical_bytes() if max_bytes is None else max_bytes
    if needed > limit:
        has = "This machine has" if max_bytes is None else "'max_bytes' allows"
        raise MemoryError(
            f"n_components={m} needs {gigabytes(needed)} for the features' second moments. "
            f"{has} {gigabytes(limit)}, enough for n_components={int((limit / 40) ** 0.5) - 1}."
        )


def check_fit(sample: Sample, outputs: int, settings: FitSettings, folds: int) -> None:
    """What a fit holds at least, against what is free; before W is drawn.

    Sums are taken over products of the features, in the span of the rows where these are fewer,
    unless more rows may come.
    """
    n, d, m = sample.used, sample.x.shape[1], settings.components
    if settings.coded is not None:
        d = settings.coded.width(d, outputs)
    members = folds * (1 + settings.mixes)
    needed = d * m * (4 * members + 16)  # L W of all members, and W while one is drawn in float64
    if settings.uses_cg:
        needed += 30 * 8 * m * outputs + 4 * m * min(n, _WIDE_SAMPLE)
    else:
        unknowns = m if settings.online else min(n, m)
        needed += gram_bytes(unknowns) + 2 * 8 * (unknowns + 1) ** 2 * (members - 1)
        needed += 20 * 8 * m * outputs + (20 * n * m if unknowns < m else 0)
    free = free_bytes()
    if needed > free:
        raise MemoryError(
            f"A fit with n_components={m}, n_members={members} and {d} inputs needs at least "
            f"{gigabytes(needed)} of memory. There are {gigabytes(free)} free: use fewer "
            "'n_components'."
        )


def check_projection(d: int, m: int) -> None:
    """W alone, d × M, while it is drawn."""
    needed, free = 20 * d * m, free_bytes()
    if needed > free:
        raise MemoryError(
            f"n_components={m} needs {gigabytes(needed)} of memory for the projection of {d} "
            f"inputs. There are {gigabytes(free)} free."
        )


def check_basis(name: str, n_basis: int) -> None:
    """A function is fitted in the basis, at 16 points for each of its functions."""
    if name == "polynomial" and n_basis > _MOST_POWERS:
        warn(
            f"activation='polynomial' with n_basis={n_basis} rarely learns anything: high powers "
            "are huge where projected inputs lie outside the grid, and may overflow. Use "
            "activation='chebyshev', the same polynomials on the grid, or fewer powers, as "
            "n_basis=6."
        )
    needed, free = 400 * n_basis**2, free_bytes()
    if needed > free:
        raise MemoryError(
            f"n_basis={n_basis} needs {gigabytes(needed)} of memory for a fit in the basis. There "
            f"are {gigabytes(free)} free, enough for n_basis={int((free / 400) ** 0.5)}."
        )


def sample_rows(x: Any, max_bytes: int | None) -> int:
    """How many rows to learn the activation on, for inputs like x.

    A fixed number, so that the same rows give the same model on every machine, unless `max_bytes`
    is given or the machine has hardly any. A row is held up to three times while the sample is
    drawn.
    """
    if sparse.issparse(x):  # it is in memory, and a few of its rows hardly show a column
        return rules.SAMPLE_ROWS
    d, itemsize = x.shape[1], x.dtype.itemsize
    room = physical_bytes() // 4 if max_bytes is None else max_bytes // 2
    fits = room // (3 * itemsize * d + 64)
    return max(min(rules.SAMPLE_ROWS, _SAMPLE_NUMBERS // d, fits), _LEAST_SAMPLE)


def block_rows(m: int, d: int, max_bytes: int | None) -> int:
    """Rows of a block for the last solve; they do not depend on how the rows are read."""
    rows = _BLOCK_NUMBERS // max(m, d)
    if max_bytes is not None:  # inputs twice, Z, features and their weighted copy
        rows = min(rows, max_bytes // 8 // (16 * d + 16 * m))
    return max(rows, 1)


def kept_bytes(max_bytes: int | None) -> int:
    """What may be kept of Z, and as much again of the features, between passes over the rows."""
    return (free_bytes() // 4 if max_bytes is None else max_bytes) // 4


def known_bytes(max_bytes: int | None) -> int:
    """What Z may take while layers without a metric are learned, of all of them together.

    It does not depend on what is free: Z computed once rounds otherwise than Z of a few rows.
    """
    return _MOST_KNOWN if max_bytes is None else min(_MOST_KNOWN, max_bytes // 8)


def takes_cg(solver: str, n: int, m: int, max_bytes: int | None) -> bool:
    """Whether conjugate gradients are asked for, or, for "auto", are the better choice."""
    if solver != "auto":
        return solver == "cg"
    if not gram_fits(m, max_bytes):
        return True
    return m > rules.WIDE_FEATURES and n * m**2 + 4 * m**3 > _PASSES * n * m


def wide_block_rows(m: int, d: int, max_bytes: int | None) -> int:
    """Rows of a block for conjugate gradients."""
    rows = min(_WIDE_FEATURES // m, _WIDE_INPUTS // max(d, 1))
    if max_bytes is not None:  # inputs as they are read, standardised, and a part of them
        rows = min(rows, max_bytes // 8 // (16 * max(d, 1)))
    return max(1, rows)

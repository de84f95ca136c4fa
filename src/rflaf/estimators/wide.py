"""The last solve of a regressor with more features than normal equations can take."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rflaf.estimators.memory import free_bytes, gram_fits
from rflaf.estimators.sample import Keys, fold_numbers
from rflaf.solvers.cg import solve_cg
from rflaf.solvers.result import Solution

Array = NDArray[Any]

_NARROW = 5000  # up to so many features, normal equations where they fit: they give more
# What sixty passes over the rows cost, in the time that a product takes in a Gram matrix.
_PASSES = 9000
_BLOCK_FEATURES = 1 << 28  # of a block of rows: never held at once, but enough for all threads
_BLOCK_INPUTS = 1 << 24


def takes_cg(solver: str, n: int, m: int, memory: int | None) -> bool:
    """Whether conjugate gradients are asked for, or, for "auto", are the better choice."""
    if solver != "auto":
        return solver == "cg"
    if not gram_fits(m, memory):
        return True
    return m > _NARROW and n * m**2 + 4 * m**3 > _PASSES * n * m


def wide_block_rows(m: int, d: int, memory: int | None) -> int:
    """Rows to read at once from a source."""
    rows = min(_BLOCK_FEATURES // m, _BLOCK_INPUTS // max(d, 1))
    if memory is not None:  # inputs as they are read, standardised, and a part of them
        rows = min(rows, memory // 8 // (16 * max(d, 1)))
    return max(1, rows)


def solve_wide(
    model: Any, blocks: Callable[[], Iterable[Any]], cuts: Keys, start: float
) -> Solution:
    """Output weights, by a model's parameters, W and activation.

    `blocks` begins a pass over (inputs, targets, weights, keys); where there is a cut in the range
    of keys, the rows above it say when to stop, and choose the penalty. Where the metric was
    learned they choose its scale too, for it was learned on fewer rows than these.
    """

    def part(number: int) -> Callable[[], Iterator[Any]]:
        def read() -> Iterator[Any]:
            for x, y, weights, keys in blocks():
                at = np.flatnonzero(fold_numbers(cuts, keys) == number)
                plain = bool((weights[at] == 1).all())
                if at.size:
                    yield x[at], y[at], None if plain else weights[at]

        return read

    automatic = model.alpha == "auto"
    return solve_cg(
        model._sigma(),
        model.components_,
        part(0),
        part(1) if cuts.size else None,
        alpha=start if automatic else float(model.alpha),
        rescale=model._metric_kind != "none" and bool(model.history_),
        fit_intercept=model.fit_intercept,
        rng=np.random.default_rng([model._seed, 1]),
        memory=model.memory or free_bytes() // 4,
        max_iter=100 if automatic else 500,
        tol=1e-4 if automatic else 1e-5,
    )

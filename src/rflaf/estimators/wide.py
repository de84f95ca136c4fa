"""The last solve of a regressor with more features than normal equations can take."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rflaf.solvers.cg import solve_cg
from rflaf.solvers.memory import available_memory
from rflaf.solvers.result import Solution

Array = NDArray[Any]

_NARROW = 5000  # up to so many features, normal equations: they give the posterior too
# What sixty passes over the rows cost, in the time that a product takes in a Gram matrix; measured.
_PASSES = 9000
_HELD_ROWS = 20  # fewer rows than this have none to spare


def takes_cg(solver: str, n: int, m: int) -> bool:
    """Whether conjugate gradients are asked for, or, for "auto", are the better choice."""
    if solver != "auto" or m <= _NARROW:
        return solver == "cg"
    fits = 5 * 8 * (m + 1) ** 2 <= available_memory()
    return not fits or n * m**2 + 4 * m**3 > _PASSES * n * m


def solve_wide(
    model: Any, x: Any, y: Array, weights: Array, rng: np.random.Generator, start: float
) -> Solution:
    """Output weights for standardised rows, by a model's parameters, W and activation.

    Of the rows, `validation_fraction` say when to stop, and choose the penalty where it is "auto".
    """
    used = np.flatnonzero(weights > 0)
    held = np.zeros(len(used), bool)
    automatic = model.alpha == "auto"
    if automatic and len(used) >= _HELD_ROWS:
        held = rng.permutation(len(used)) < max(1, round(model.validation_fraction * len(used)))
    plain = bool((weights == 1).all())

    def part(at: Array) -> Any:
        block = x[at], y[at], None if plain else weights[at]
        return lambda: iter([block])

    memory = getattr(model, "memory", None) or available_memory() // 4
    return solve_cg(
        model._sigma(),
        model.components_,
        part(used[~held]),
        part(used[held]) if held.any() else None,
        alpha=start if automatic else float(model.alpha),
        fit_intercept=model.fit_intercept,
        rng=rng,
        memory=memory,
        max_iter=100 if automatic else 500,
        tol=1e-4 if automatic else 1e-5,
    )

"""L-BFGS for a smooth convex function whose unknowns have been scaled to unit curvature.

scipy's takes a first step of length 1 / |gradient|, whatever the scale, and has no way to say that
the unknowns are scaled already. Here the first step tried is always the whole one, and the end is
told by the gradient: half its square is about what is still to gain.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rflaf.arrays import Float64

_MEMORY = 12  # steps that are remembered
_ENOUGH = 1e-4  # of the gain that the slope promises, for a step to be taken
_SHORTEST = 1e-6
_SMALLEST = 1e-300
_ROUNDING = 1e-14  # of the function; within it, its slope decides


def minimise(
    value: Callable[[Float64], tuple[float, Float64]],
    start: Float64,
    tol: float,
    max_iter: int,
    least: int = 0,
    smallest: float = 0.0,
    stop: Callable[[Float64, float], bool] | None = None,
) -> tuple[Float64, int]:
    """Where the function is within `tol` of its least, relatively, and the steps that took.

    `value` gives the function and its gradient. At least `least` steps are taken, if they gain. A
    function below `smallest` is taken to be that large. `stop` is asked after each step, with where
    it led to and what is still to gain, relatively.
    """
    x = start
    f, g = value(x)
    pairs: list[tuple[Float64, Float64, float]] = []
    for step in range(max_iter):
        left = 0.5 * float(np.vdot(g, g)) / max(abs(f), smallest, _SMALLEST)
        stopped = step > 0 and stop is not None and stop(x, left)  # it sees the last one too
        if stopped or (step >= least and left <= tol):
            return x, step
        direction = -_apply_inverse(g, pairs)
        slope = float(np.vdot(direction, g))
        if slope >= 0:  # rounding
            return x, step
        length = 1.0
        while True:
            new = x + length * direction
            f_new, g_new = value(new)
            if f_new <= f + _ENOUGH * length * slope:
                break
            flat = f_new <= f + _ROUNDING * abs(f)
            if flat and abs(float(np.vdot(direction, g_new))) < 0.5 * abs(slope):
                break
            length *= _shorter(f, f_new, length, slope)
            if length < _SHORTEST:
                return x, step
        s, y = new - x, g_new - g
        curve = float(np.vdot(s, y))
        if curve > 1e-12 * float(np.vdot(y, y)):
            pairs = [*pairs, (s, y, 1 / curve)][-_MEMORY:]
        x, f, g = new, f_new, g_new
    return x, max_iter


def _shorter(f: float, f_new: float, length: float, slope: float) -> float:
    """By what to shorten a step: the least of the parabola through what is known."""
    bend = f_new - f - length * slope
    best = -0.5 * length * slope / bend if np.isfinite(bend) and bend > 0 else 0.5
    return float(np.clip(best, 0.1, 0.5))


def _apply_inverse(g: Float64, pairs: list[tuple[Float64, Float64, float]]) -> Any:
    """The inverse Hessian that the remembered steps tell of, times g; without any, g itself."""
    q, shares = g.copy(), []
    for s, y, inverse in reversed(pairs):
        share = inverse * float(np.vdot(s, q))
        q -= share * y
        shares.append(share)
    if pairs:
        s, y, inverse = pairs[-1]
        q *= 1 / (inverse * float(np.vdot(y, y)))
    for (s, y, inverse), share in zip(pairs, reversed(shares)):
        q += (share - inverse * float(np.vdot(y, q))) * s
    return q

"""Ridge regression on more features than a Gram matrix allows, by conjugate gradients.

The problem is that of `ridge`, min over V, b of  sum_i w_i |y_i - V' phi_i - b|² / sum_i w_i
+ alpha |V|². The features are computed anew in every pass over the rows, which may come from a
disk; what is kept are a few vectors of M numbers, a sample of rows for the preconditioner, and as
many features as the memory allows. Held-out rows decide when to stop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rflaf import fused
from rflaf.arrays import Array, Float64
from rflaf.solvers.features import FeatureOverflow, project
from rflaf.solvers.layer import Layer
from rflaf.solvers.parts import RowPart
from rflaf.solvers.penalty import walk
from rflaf.solvers.preconditioner import SampledRows
from rflaf.solvers.result import Solution

# Rows of the preconditioner. Its Gram matrix costs about as much as three passes over 40,000 rows.
_SAMPLE = 4000
_PENALTY = 3.0  # from one penalty that is tried to the next
# From one scale of W to the next. What suits few rows is too smooth for many: activation and metric
# come from sketches, and the more rows there are beyond those, the narrower the kernel may be.
_SCALE = 0.8
_FARTHEST = 6  # steps in either direction
_LAST = 10  # iterations on all rows, from the weights that the held-out rows have chosen
_PATIENCE = 3  # iterations without a gain on the held-out rows before a penalty is given up
_GAIN = 1e-3  # what a penalty has to gain on the last, relatively, for yet another to be tried
_FINE = 1e-4  # what an iteration has to gain; less than that, a few times, is the end
_ROUGH = 1e-3  # the same, while a scale is tried: enough to compare
_SCALE_GAIN = 5e-3  # and what a scale has to gain

Record = dict[str, Any]
Callback = Callable[[Record], None] | None


class System:
    """(mean of centred phi phi' + alpha) V = mean of centred phi y', and how far V is."""

    def __init__(self, layer: Layer, fit_intercept: bool) -> None:
        self.layer = layer
        self.sums = sums = layer.sums()
        self.rows, self.y_square = sums.rows, sums.y_square
        if fit_intercept:
            self.mean, self.y_mean, self.right = sums.mean, sums.y_mean, sums.moment
        else:
            self.mean, self.y_mean = np.zeros_like(sums.mean), np.zeros_like(sums.y_mean)
            self.right = sums.moment + np.outer(sums.mean, sums.y_mean)
            self.y_square = sums.y_square + sums.y_mean**2

    def product(self, p: Float64) -> Float64:
        """The matrix without alpha, times p."""
        return self.layer.normal(p, self.mean @ p) / self.sums.weight

    def intercept(self, v: Float64) -> Float64:
        return self.y_mean - self.mean @ v


class Judge:
    """Held-out rows, and their errors."""

    def __init__(self, layer: Layer) -> None:
        self.layer = layer
        y, weights = layer.targets()
        self.y, self.share = y.astype(np.float64), weights / weights.sum()

    def errors(self, system: System, v: Float64) -> Float64:
        return np.asarray(self.layer.forward(v) + system.intercept(v) - self.y)

    def change(self, system: System, direction: Float64) -> Float64:
        """Of the errors, by a step of length one."""
        return np.asarray(self.layer.forward(direction) - system.mean @ direction)

    def loss(self, errors: Float64) -> Float64:
        return np.asarray(self.share @ errors**2)


class Descent:
    """Conjugate gradients from some V on.

    Flexible in the sense of Notay: the next direction is made with the change of the residual, so
    that rounding in the preconditioner does no harm.
    """

    def __init__(self, system: System, precondition: SampledRows, alpha: float, v: Float64) -> None:
        self.system, self.precondition = system, precondition
        self.move_to(v, alpha)

    def move_to(self, v: Float64, alpha: float) -> None:
        """Start again from V, with another penalty."""
        self.v, self.alpha = v, alpha
        self.r = self.system.right - alpha * v
        if v.any():
            self.r -= self.system.product(v)
        self.precondition.damp(alpha)
        self.p = self.precondition(self.r)
        self.size = np.einsum("mc,mc->c", self.r, self.p)

    def step(self) -> Float64:
        """One iteration; returns how far each column of V has moved along the direction p."""
        product = self.system.product(self.p) + self.alpha * self.p
        curve = np.einsum("mc,mc->c", self.p, product)
        length = _ratio(self.size, curve)
        self.moved, before = self.p, self.r
        self.v = self.v + length * self.p
        self.r = self.r - length * product
        z = self.precondition(self.r)
        change = np.einsum("mc,mc->c", self.r - before, z)
        turn = _ratio(change, self.size)
        self.p = z + np.maximum(turn, 0.0) * self.p
        self.size = np.einsum("mc,mc->c", self.r, z)
        return length

    def losses(self) -> Float64:
        """The mean squared error of each output on the rows of the system."""
        rest = self.system.right + self.alpha * self.v + self.r
        square = self.system.y_square - np.einsum("mc,mc->c", self.v, rest)
        return np.maximum(square, 0)


@dataclass(frozen=True)
class WideProblem:
    """Features and rows.

    Attributes
    ----------
    sigma : Table or Direct
    w : array, d × M
    fit, held_out : callable
        Rows to fit to, and rows that choose when to stop and which penalty is best (None: there
        are none), for a number of bytes in which features may be kept.
    sample_x, sample_weights : array
        Some of the rows to fit to, in memory, for the preconditioner.
    """

    sigma: fused.Sigma
    w: Array
    fit: Callable[[int], RowPart]
    held_out: Callable[[int], RowPart] | None
    sample_x: Any
    sample_weights: Array

    def layer(self, scale: float, parts: list[RowPart]) -> Layer:
        """The features of the rows in `parts`, with W times `scale`."""
        w = self.w if scale == 1 else (scale * self.w).astype(self.w.dtype)
        return Layer(self.sigma, w, parts)


@dataclass(frozen=True)
class WideSettings:
    """How to solve it.

    Attributes
    ----------
    alpha : float
        The penalty, or with `search` and held-out rows the one to start from.
    rescale : bool
        Whether held-out rows may choose a factor for W too; `Solution.scale` has it.
    max_bytes : int
        For the preconditioner's rows, and for features that need not be computed again.
    max_iter, tol : int, float
        Iterations for one penalty, and the fall of the preconditioned residual that ends them.
    """

    alpha: float
    search: bool = True
    rescale: bool = False
    fit_intercept: bool = True
    max_bytes: int = 1 << 30
    max_iter: int = 100
    tol: float = 1e-4


def solve_cg(
    problem: WideProblem,
    settings: WideSettings,
    rng: np.random.Generator,
    callback: Callback = None,
) -> Solution:
    """Output weights for the features sigma(X W).

    Without held-out rows the iterations go on to `tol`. With them they end when these no longer
    gain, and a few last ones use all rows. `callback` is called with the record of each iteration.
    """
    if problem.held_out is None:
        state = _begin(problem, 1.0, settings, rng)
        return _solution(state, [_converge(state, settings, settings.max_iter, callback)])
    path: list[Record] = []
    scale, start = 1.0, None
    if settings.rescale:
        best = _best_scale(problem, settings, rng, path, callback)
        scale, start = best.scale, best.v
    state, judge = _begin(problem, scale, settings, rng), _judge(problem, scale)
    if start is not None:
        state.move_to(start, settings.alpha)
    best = _stop_early(state, judge, settings, scale, _FINE, callback)

    def with_penalty(k: int, near: Best) -> Best:
        # each from the best weights so far, so that most take a few iterations
        state.move_to(near.v, best.alpha * _PENALTY**k)
        return _stop_early(state, judge, settings, scale, _FINE, callback)

    best = _walk(best, path, with_penalty, _GAIN, _FARTHEST if settings.search else 0)
    layer, precondition = state.system.layer, state.precondition
    judge_intercept = state.system.intercept(best.v)
    everything = Layer(layer.sigma, layer.w, [*layer.parts, *judge.layer.parts])
    system = System(everything, settings.fit_intercept)
    state = Descent(system, precondition, best.alpha, best.v)
    honest = np.vstack([best.v, judge_intercept])
    # a penalty that is given deserves its own solution
    _converge(state, settings, _LAST if settings.search else settings.max_iter, callback)
    return _solution(state, path, best.scale, honest)


def _judge(problem: WideProblem, scale: float) -> Judge:
    assert problem.held_out is not None
    return Judge(problem.layer(scale, [problem.held_out(0)]))


def _best_scale(
    problem: WideProblem,
    settings: WideSettings,
    rng: np.random.Generator,
    path: list[Record],
    callback: Callback,
) -> Best:
    """The factor of W with the least held-out error."""

    def at_scale(scale: float) -> Best:
        state = _begin(problem, scale, settings, rng)
        return _stop_early(state, _judge(problem, scale), settings, scale, _ROUGH, callback)

    def with_scale(k: int, near: Best) -> Best:
        try:
            return at_scale(_SCALE**k)
        except FeatureOverflow:
            failed = {**near.record, "loss": np.inf, "scale": _SCALE**k, "steps": 0}
            return near._replace(loss=np.inf, record=failed)

    return _walk(at_scale(1.0), path, with_scale, _SCALE_GAIN, _FARTHEST)


def _begin(
    problem: WideProblem, scale: float, settings: WideSettings, rng: np.random.Generator
) -> Descent:
    """Everything that the iterations need: one pass over the rows, and the preconditioner."""
    m, itemsize = problem.w.shape[1], problem.w.itemsize
    working_set = 8 * m * 30 + (1 << 28)  # the vectors of M numbers, and the strips at work
    room = max(settings.max_bytes - working_set, 0)
    rows = min(_SAMPLE, 2 * m, max(room // 2 // (m * itemsize), 50), problem.sample_x.shape[0])
    kept = room - rows * m * itemsize - 16 * rows**2
    system = System(problem.layer(scale, [problem.fit(kept)]), settings.fit_intercept)
    chosen = np.sort(rng.choice(problem.sample_x.shape[0], rows, replace=False))
    precondition = SampledRows(_centred(problem, system, chosen))
    return Descent(system, precondition, settings.alpha, np.zeros_like(system.right))


def _centred(problem: WideProblem, system: System, chosen: Array) -> Array:
    """Centred features of some rows of the sample, times the roots of their weights."""
    layer, step = system.layer, max(1, (1 << 24) // problem.w.shape[1])
    found = np.empty((len(chosen), problem.w.shape[1]), problem.w.dtype)
    for start in range(0, len(chosen), step):
        z = project(problem.sample_x[chosen[start : start + step]], layer.w)
        fused.apply(layer.sigma, z, out=found[start : start + step])
    found -= system.mean.astype(found.dtype)
    weights = problem.sample_weights[chosen, None] * (system.rows / system.sums.weight)
    found *= np.sqrt(weights).astype(found.dtype)
    return found


class Best(NamedTuple):
    """The least held-out loss so far, and where it was."""

    loss: float
    alpha: float
    v: Float64
    record: Record
    scale: float = 1.0


def _walk(
    first: Best,
    path: list[Record],
    attempt: Callable[[int, Best], Best],
    gain: float,
    farthest: int,
) -> Best:
    """Walk in whichever direction the held-out error falls; adds the records to `path`."""
    known = {0: first}
    path.append(first.record)

    def losses(steps: Sequence[int]) -> list[float]:
        for k in steps:
            if k not in known:
                known[k] = attempt(k, min(known.values(), key=lambda best: best.loss))
                path.append(known[k].record)
        return [known[k].loss for k in steps]

    return known[walk(losses, low=-farthest, high=farthest, gain=gain, together=False).best]


def _stop_early(
    state: Descent,
    judge: Judge,
    settings: WideSettings,
    scale: float,
    gain: float,
    callback: Callback,
) -> Best:
    """Iterate until the residual has fallen by `tol`, or the held-out loss falls too little."""
    errors = judge.errors(state.system, state.v)
    losses, v, first, since, count = judge.loss(errors), state.v, state.size.max(), 0, 0
    end = settings.tol**2 * first
    while count < settings.max_iter and since < _PATIENCE and state.size.max() > end:
        length = state.step()
        errors = errors + length * judge.change(state.system, state.moved)
        now = judge.loss(errors)
        count += 1
        since = 0 if now.mean() < (1 - gain) * losses.mean() else since + 1
        if now.mean() < losses.mean():
            losses, v = now, state.v
        _tell(callback, state, float(now.mean()))
    loss = float(losses.mean())
    record = {"alpha": state.alpha, "loss": loss, "losses": losses.tolist(), "steps": count}
    return Best(loss, state.alpha, v, record | {"scale": scale}, scale)


def _converge(state: Descent, settings: WideSettings, max_iter: int, callback: Callback) -> Record:
    """Iterate until the residual has fallen by `tol`; the losses are those of the rows fitted."""
    first, count = state.size.max(), 0
    while count < max_iter and state.size.max() > settings.tol**2 * first:
        state.step()
        count += 1
        _tell(callback, state, float(state.losses().mean()))
    losses = state.losses()
    loss = float(losses.mean())
    return {"alpha": state.alpha, "loss": loss, "losses": losses.tolist(), "steps": count}


def _ratio(top: Float64, bottom: Float64) -> Float64:
    """top / bottom; 0 where there is nothing to divide by."""
    there = bottom > 1e-300 * np.maximum(np.abs(top), 1.0)
    return np.divide(top, bottom, out=np.zeros_like(top), where=there)


def _tell(callback: Callback, state: Descent, loss: float) -> None:
    if callback is not None:
        residual = float(np.sqrt(np.maximum(state.size, 0).mean()))
        callback({"alpha": state.alpha, "loss": loss, "residual": residual})


def _solution(
    state: Descent, path: list[Record], scale: float = 1.0, honest: Float64 | None = None
) -> Solution:
    return Solution(state.v, state.system.intercept(state.v), state.alpha, path, scale, honest)

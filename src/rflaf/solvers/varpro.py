"""Learn the activation and the metric by variable projection.

The output weights are the ridge solution of a sketch, some rows and some columns of W, and J, its
error on other rows, decides (`sketches` has J and its gradient).

The rows and the columns are drawn anew for every step, the columns from the very W that the model
will use, so that L and sigma suit it. L-BFGS on one fixed sketch was tried: it soon fits L to the
few columns it sees, and the gain does not carry over to the others.

The metric starts from the gradients of a first solution (`starts.turn_metric`). Then come steps
with small sketches first and larger ones later; those of one size end sooner when they gain too
little. The rate rises over a few steps, and falls from then to the last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from rflaf import rules
from rflaf.arrays import Array, Float64
from rflaf.fused import BinnedMatrix
from rflaf.runtime.clock import may_learn
from rflaf.solvers.adam import Adam, penalty_gradient
from rflaf.solvers.features import Workspace, apply_metric, as_array, project
from rflaf.solvers.screening import screened
from rflaf.solvers.sketches import Problem, Sampler, Size, held_out_loss, sketch_ridge
from rflaf.solvers.starts import (
    Kind,
    Learned,
    LearnSettings,
    compiled,
    start_on_sketch,
    turn_metric,
)

Record = dict[str, float]
Callback = Callable[[Record], None] | None
Stages = tuple[tuple[float, float], ...]  # work of a step, and share of all steps

_LONG = 32  # steps; with fewer of them there is nothing to plan


def learn_activation(
    problem: Problem,
    basis: Any,
    kind: Kind,
    settings: LearnSettings,
    *,
    rng: np.random.Generator,
    start: Learned | None = None,
    turns: int | None = None,
    callback: Callback = None,
) -> Learned:
    """Learn coefficients, metric and penalty for a model on a given random projection.

    Parameters
    ----------
    problem : Problem
    basis : Basis
    kind : {"full", "diagonal", "none"}
        Of the metric.
    settings : LearnSettings
    start : Learned, optional
        Where to start from. By default cosines of several frequencies are tried.
    turns : int, optional
        How often to turn the metric by gradients first; by default not at all from a given start.
    callback : callable, optional
        Called with the record of every step.
    """
    if settings.coefficients is None and not basis.learnable:
        settings = replace(settings, coefficients=np.ones(1))
    rows = problem.rows
    problem = replace(problem, rows=rows._replace(y=mix_targets(rows.y, rng)))
    sampler = Sampler(problem, rng)
    n, m = rows.x.shape[0], problem.projection.shape[1]
    work = (rules.STAGES if m <= rules.WIDE_FEATURES else rules.WIDE_STAGES)[0][0]
    first = sketch_size(n, m, work)
    if turns is None:
        turns = rules.TURNS if start is None and settings.max_iter else 0
    if start is None:
        seen = kind != "none" and not isinstance(rows.x, BinnedMatrix)
        shares = screened(*problem.rows[1:4]) if seen else None
        start = start_on_sketch(sampler.draw(first), basis, kind, settings, problem.scales, shares)
    state = start if settings.alpha is None else replace(start, alpha=settings.alpha)
    for _ in range(turns if kind != "none" else 0):
        state = turn_metric(sampler.draw(first), sampler.draw(first), basis, state, settings)
    stages = _plan_stages(state, sampler, basis, settings, (n, m))
    stages = stages[:1] if settings.short else stages
    z_bytes = n * m * sampler.projection.itemsize
    if kind == "none" and settings.max_iter >= _LONG and z_bytes <= settings.known_bytes:
        sampler.know(apply_metric(state.metric, sampler.projection))
    descent = _Descent(state, sampler, basis, kind, settings, callback)
    ends = np.cumsum([0.0, *(share for _, share in stages)])
    ends /= ends[-1]
    steps = np.diff(np.round(settings.max_iter * ends).astype(int)).tolist()
    for (work, _), count, way in zip(stages, steps, pairwise(ends.tolist())):
        descent.run(sketch_size(n, m, work), count, way)
    return descent.learned


def _plan_stages(
    state: Learned, sampler: Sampler, basis: Any, settings: LearnSettings, shape: tuple[int, int]
) -> Stages:
    """Sizes of sketches that suit the model.

    Many steps on small sketches learn more than a few on large ones that take as long. But where
    the error is due to too few features, sketches with few of them have another optimum.
    """
    n, m = shape
    if m > rules.WIDE_FEATURES:
        return rules.WIDE_STAGES
    many = m > rules.MANY_FEATURES
    usual = rules.MANY_STAGE if many else rules.STAGES[-1]
    limited = rules.MANY_LIMITED_STAGE if many else rules.LIMITED_STAGE
    small, large = (sketch_size(n, m, work) for work, _ in (rules.STAGES[0], limited))
    if settings.max_iter < _LONG or large.features < 2 * small.features:
        return *rules.STAGES[:-1], usual
    sigma, intercept = compiled(basis, state.coefficients), settings.fit_intercept
    whole = sampler.draw(large)
    losses = [
        sketch_ridge(sigma, state.metric, sketch, intercept)[0].loss(state.alpha)
        for sketch in (whole.reduced(small), whole)
    ]
    last = limited if losses[1] < rules.LIMITED_GAIN * losses[0] else usual
    return *rules.STAGES[:-1], last


def sketch_size(n: int, m: int, work: float) -> Size:
    """Rows and features of a sketch that keeps the model's ratio of the two.

    The work of a step is about rows × features², so that the whole takes seconds whatever n and M.
    """
    ratio = min(max(0.9 * n / m, 3.0), 12.0)
    wide = int(min(m, (work / ratio) ** (1 / 3), max(0.55 * n / ratio, rules.SKETCH_FEATURES)))
    fit_rows = int(min(ratio * wide, 0.6 * n))
    return Size(wide, fit_rows, int(min(max(fit_rows // 3, 2000), 0.4 * n)))


class _Descent:
    """Adam on log J with fresh sketches, and a rate that soon rises, then falls along a cosine.

    The logarithm keeps an unlucky sketch, whose J and gradient are many times the usual, from
    throwing away what was reached.
    """

    def __init__(
        self,
        start: Learned,
        sampler: Sampler,
        basis: Any,
        kind: Kind,
        settings: LearnSettings,
        callback: Callback,
    ) -> None:
        self.learned = start = replace(start, history=[])
        self._sampler, self._basis, self._kind = sampler, basis, kind
        self._settings, self._callback = settings, callback
        self._space = Workspace()
        length = rules.FILL / np.sqrt(max(sampler.x.shape[1], 1))
        height = float(np.sqrt(np.mean(start.coefficients**2)))
        self._moves = Adam(rules.RATE * height), Adam(rules.RATE * length), Adam(2 * rules.RATE)

    def run(self, size: Size, count: int, way: tuple[float, float]) -> None:
        """Up to `count` steps, which are the part `way` of all."""
        losses: list[float] = []
        for step in range(count):
            if not may_learn():
                return
            done = way[0] + (way[1] - way[0]) * step / count
            risen = min(1.0, (len(self.learned.history) + 1) / rules.RISE)
            loss = self._step(size, risen * float(np.cos(0.5 * np.pi * done)))
            if not loss > 0:  # nothing is left to learn, as with a constant target
                return
            losses.append(np.log(loss))
            if len(losses) % rules.ROUND == 0 and len(losses) >= 2 * rules.ROUND:
                before, now = (
                    np.mean(losses[k:][: rules.ROUND // 2])
                    for k in (-3 * rules.ROUND // 2, -rules.ROUND // 2)
                )
                if now > before + np.log(1 - self._settings.tol):
                    return

    def _step(self, size: Size, fade: float) -> float:
        """One step, and the loss before it."""
        settings, state, learns_metric = self._settings, self.learned, self._kind != "none"
        a, metric, alpha = state.coefficients, state.metric, state.alpha
        sketch = self._sampler.draw(size)
        loss, by_a, by_metric, by_alpha = held_out_loss(
            *(compiled(self._basis, a), metric, alpha, sketch),
            fit_intercept=settings.fit_intercept,
            learn_metric=learns_metric,
            space=self._space,
        )
        if not loss > 0:
            return 0.0
        record = {"loss": loss, "alpha": alpha, "features": size.features}
        if self._callback is not None:
            self._callback(record)
        if settings.coefficients is None:
            bend = penalty_gradient(a, settings.l1, settings.smoothness)
            a = self._moves[0].step(a, by_a / loss + bend, fade)
        if learns_metric:
            metric = self._moves[1].step(metric, np.asarray(by_metric / loss, np.float64), fade)
            metric *= _within_grid(metric, sketch.fit.x, self._basis)
        if settings.alpha is None:
            alpha = float(np.exp(self._moves[2].step(np.log(alpha), by_alpha / loss, fade)))
        state.history.append(record)
        self.learned = Learned(a, metric, alpha, state.history)
        return loss


def _within_grid(metric: Float64, x: Any, basis: Any) -> float:
    """What to multiply the metric by, so that most of Z stays inside the grid."""
    if basis.tail == "direct":
        return 1.0
    rows = x[:500]
    if metric.ndim == 2:
        squares = np.sum(project(rows, metric) ** 2, axis=1)
    else:
        squares = (
            rows.multiply(rows) if sparse.issparse(rows) else as_array(rows) ** 2
        ) @ metric**2
    spread = float(np.sqrt(np.mean(squares)))
    most = rules.MOST_FILL * (basis.high - basis.low) / 4
    return min(1.0, most / max(spread, 1e-300))


def mix_targets(y: Array, rng: np.random.Generator) -> Array:
    """Fewer targets, mixed at random, where there are many."""
    if y.shape[1] <= rules.MOST_TARGETS:
        return y
    mix = rng.standard_normal((y.shape[1], rules.MOST_TARGETS)) / np.sqrt(y.shape[1])
    return (y @ mix).astype(y.dtype)

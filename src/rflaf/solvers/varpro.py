"""Learn the activation and the metric by variable projection.

The output weights are the ridge solution of a sketch, some rows and some columns of W, and J, its
error on other rows, decides (`sketches` has J and its gradient).

The rows and the columns are drawn anew for every step, the columns from the very W that the model
will use, so that L and sigma suit it. L-BFGS on one fixed sketch was tried: it soon fits L to the
few columns it sees, and the gain does not carry over to the others. A step takes the mean gradient
of a fixed number of sketches, which are computed at once, a thread each; how many threads there are
changes no bit.

The metric starts from the gradients of a first solution (`starts.turn_metric`). Steps then come in
rounds, with small sketches first, and those of one size end when a round gains too little.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rflaf.fused.threads import parallel
from rflaf.solvers.adam import Adam, penalty_gradient
from rflaf.solvers.features import project
from rflaf.solvers.sketches import Problem, Sampler, Size, held_out_loss
from rflaf.solvers.starts import (
    FILL,
    Kind,
    Learned,
    LearnSettings,
    compiled,
    sketch_losses,
    start_on_sketch,
    turn_metric,
)

Array = NDArray[Any]
Float64 = NDArray[np.float64]
Record = dict[str, float]
Callback = Callable[[Record], None] | None

TURNS = 3  # of the metric by the gradients of the solution, before the first step
_ROUND = 32  # steps


class Stage(NamedTuple):
    """Steps on sketches of one size.

    `work` is about rows × features², `rate` that of the steps, `share` how many of all there are.
    """

    work: float
    rate: float
    share: float


# Many steps on small sketches learn more than a few on large ones that take as long,
_STAGES = (Stage(3e7, 0.1, 0.5), Stage(4e8, 0.05, 0.4), Stage(4e9, 0.05, 0.1))
# but for functions so smooth that the error is for want of features: a few have another optimum
_FINE_STAGES = (Stage(4e8, 0.1, 0.2), Stage(4e9, 0.05, 0.25))
_MUCH_LESS = 0.5  # of the loss on small sketches, where that is so
_LONG = 32  # steps, with fewer of them there is nothing to plan
_WIDE_STAGES = (Stage(4e8, 0.1, 0.4), Stage(6e9, 0.05, 0.3), Stage(3.2e10, 0.05, 0.3))
_NARROW = 5000  # features; more of them are worth larger sketches
_MOST_FILL = 1.2  # standard deviation of Z on a grid like [-2, 2]
_MOST_TARGETS = 12  # more are mixed down to this many, at random, while the activation is learned


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
    problem = replace(problem, y=_mix_targets(problem.y, rng))
    sampler = Sampler(problem, rng, settings.sketches)
    n, m = problem.x.shape[0], problem.projection.shape[1]
    first = sketch_size(n, m, _STAGES[0].work if m <= _NARROW else _WIDE_STAGES[0].work)
    if turns is None:
        turns = TURNS if start is None and settings.max_iter else 0
    if start is None:
        start = start_on_sketch(sampler.draw(first), basis, kind, settings, problem.scales)
    state = start if settings.alpha is None else replace(start, alpha=settings.alpha)
    for _ in range(turns if kind != "none" else 0):
        state = turn_metric(sampler.draw(first), sampler.draw(first), basis, state, settings)
    history: list[Record] = []
    shares = 0.0
    for stage in _plan_stages(state, sampler, basis, settings, (n, m)):
        size = sketch_size(n, m, stage.work)
        before, shares = round(settings.max_iter * shares), shares + stage.share
        most = round(settings.max_iter * shares) - before
        state = _rounds(
            state, size, stage.rate, most, sampler, basis, kind, settings, history, callback
        )
    return Learned(state.coefficients, state.metric, state.alpha, history)


def _plan_stages(
    state: Learned, sampler: Sampler, basis: Any, settings: LearnSettings, shape: tuple[int, int]
) -> tuple[Stage, ...]:
    """Sizes of sketches that suit the model."""
    n, m = shape
    if m > _NARROW:
        return _WIDE_STAGES
    small, large = (sketch_size(n, m, s.work) for s in (_STAGES[0], _FINE_STAGES[-1]))
    if settings.max_iter < _LONG or large.features < 2 * small.features:
        return _STAGES
    sigma, alphas = compiled(basis, state.coefficients), np.array([state.alpha])
    losses = [
        sketch_losses(sigma, state.metric, alphas, sampler.draw(size), settings.fit_intercept)[0]
        for size in (small, large)
    ]
    return _FINE_STAGES if losses[1] < _MUCH_LESS * losses[0] else _STAGES


def _rounds(
    state: Learned,
    size: Size,
    rate: float,
    most: int,
    sampler: Sampler,
    basis: Any,
    kind: Kind,
    settings: LearnSettings,
    history: list[Record],
    callback: Callback,
) -> Learned:
    """Rounds of steps until one gains too little, or `most` steps are done."""
    before = np.inf
    while most > 0:
        steps = min(_ROUND, most) if most >= 2 * _ROUND else most
        most -= steps
        first = len(history)
        state = _descend(
            state, size, rate, steps, sampler, basis, kind, settings, history, callback
        )
        losses = [record["loss"] for record in history[first:]]
        if len(losses) < steps:
            break
        now = float(np.exp(np.mean(np.log(losses[-(steps // 2) :]))))
        if now > (1 - settings.tol) * before:
            break
        before = now
    return state


def sketch_size(n: int, m: int, work: float) -> Size:
    """Rows and features of a sketch that keeps the model's ratio of the two.

    The work of a step is about rows × features², so that the whole takes seconds whatever n and M.
    """
    ratio = min(max(0.9 * n / m, 3.0), 12.0)
    wide = int(min(m, (work / ratio) ** (1 / 3), max(0.55 * n / ratio, 50)))
    fit_rows = int(min(ratio * wide, 0.6 * n))
    return Size(wide, fit_rows, int(min(max(fit_rows // 3, 2000), 0.4 * n)))


def _descend(
    state: Learned,
    size: Size,
    rate: float,
    steps: int,
    sampler: Sampler,
    basis: Any,
    kind: Kind,
    settings: LearnSettings,
    history: list[Record],
    callback: Callback,
) -> Learned:
    """Adam on log J with fresh sketches, and a rate that falls to zero along a cosine.

    The logarithm keeps an unlucky sketch, whose J and gradient are many times the usual, from
    throwing away what was reached.
    """
    length = FILL / np.sqrt(max(sampler.x.shape[1], 1))
    height = float(np.sqrt(np.mean(state.coefficients**2)))
    a, metric, log_alpha = state.coefficients, state.metric, np.log(state.alpha)
    moves = Adam(rate * height), Adam(rate * length), Adam(2 * rate)
    for step in range(steps):
        sketches = [sampler.draw(size) for _ in range(settings.sketches)]
        sigma, alpha = compiled(basis, a), float(np.exp(log_alpha))
        found: list[Any] = [None] * len(sketches)

        loss_of = partial(
            held_out_loss,
            sigma,
            metric,
            alpha,
            fit_intercept=settings.fit_intercept,
            learn_metric=kind != "none",
        )

        def task(
            k: int, loss_of: Any = loss_of, found: Any = found, sketches: Any = sketches
        ) -> None:
            found[k] = loss_of(sketches[k], space=sampler.spaces[k])

        parallel(task, len(sketches))
        losses = np.array([each[0] for each in found])
        if not (losses > 0).all():  # nothing is left to learn, as with a constant target
            break
        by_a, by_metric, by_alpha = (
            sum(each[k] / each[0] for each in found) / len(found) for k in (1, 2, 3)
        )
        loss = float(np.exp(np.mean(np.log(losses))))
        record = {"loss": loss, "alpha": alpha, "features": size.features}
        history.append(record)
        if callback is not None:
            callback(record)
        fade = 0.5 * (1 + np.cos(np.pi * step / steps))
        if settings.coefficients is None:
            bend = penalty_gradient(a, settings.l1, settings.smoothness)
            a = moves[0].step(a, by_a + bend, fade)
        if kind != "none":
            metric = moves[1].step(metric, np.asarray(by_metric, np.float64), fade)
            metric *= _within_grid(metric, sketches[0].x_fit, basis)
        if settings.alpha is None:
            log_alpha = moves[2].step(log_alpha, by_alpha, fade)
    return Learned(a, metric, float(np.exp(log_alpha)))


def _within_grid(metric: Float64, x: Any, basis: Any) -> float:
    """What to multiply the metric by, so that most of Z stays inside the grid."""
    if basis.tail == "direct":
        return 1.0
    rows = x[:500]
    if metric.ndim == 2:
        squares = np.sum(project(rows, metric) ** 2, axis=1)
    else:
        squares = (rows.multiply(rows) if sparse.issparse(rows) else rows**2) @ metric**2
    spread = float(np.sqrt(np.mean(squares)))
    most = _MOST_FILL * (basis.high - basis.low) / 4
    return min(1.0, most / max(spread, 1e-300))


def _mix_targets(y: Array, rng: np.random.Generator) -> Array:
    if y.shape[1] <= _MOST_TARGETS:
        return y
    mix = rng.standard_normal((y.shape[1], _MOST_TARGETS)) / np.sqrt(y.shape[1])
    return (y @ mix).astype(y.dtype)

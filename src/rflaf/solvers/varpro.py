"""Learn the activation and the metric by variable projection.

The output weights are the ridge solution of a sketch, some rows and some columns of W, and J, its
error on other rows, decides (`sketches` has J and its gradient).

The rows and the columns are drawn anew for every step, the columns from the very W that the model
will use, so that L and sigma suit it. L-BFGS on one fixed sketch was tried: it soon fits L to the
few columns it sees, and the gain does not carry over to the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rflaf.solvers.adam import Adam, penalty_gradient
from rflaf.solvers.sketches import Problem, Sampler, Sketch, Stage, held_out_loss
from rflaf.solvers.starts import (
    FILL,
    Kind,
    Learned,
    LearnSettings,
    compiled,
    sketch_losses,
    start_on_sketch,
)

Array = NDArray[Any]
Float64 = NDArray[np.float64]
Record = dict[str, float]
Callback = Callable[[Record], None] | None
_NARROW = 5000  # features; more of them are worth a stage of larger sketches
# Share of the steps, work of each, and rate, of each stage
_STAGES = ((0.45, 4e8, 0.1), (0.55, 1.2e10, 0.05))
_WIDE_STAGES = ((0.35, 4e8, 0.1), (0.4, 1.2e10, 0.05), (0.25, 6.4e10, 0.05))
_JUDGED = 500  # features to judge kinds of metric by
_MOST_TARGETS = 12  # more are mixed down to this many, at random, while the activation is learned


def learn_activation(
    problem: Problem,
    basis: Any,
    kind: Kind,
    settings: LearnSettings,
    *,
    rng: np.random.Generator,
    start: Learned | None = None,
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
    callback : callable, optional
        Called with the record of every step.
    """
    if settings.coefficients is None and not basis.learnable:
        settings = replace(settings, coefficients=np.ones(1))
    problem = replace(problem, y=_mix_targets(problem.y, rng))
    sampler = Sampler(problem, rng)
    stages = _stages(problem.x.shape[0], problem.projection.shape[1], settings.max_iter)
    state = start or start_on_sketch(sampler.draw(stages[0]), basis, kind, settings, problem.scales)
    history: list[Record] = []
    for stage in stages:
        before = len(history)
        state = _descend(state, stage, sampler, basis, kind, settings, history, callback)
        losses = [record["loss"] for record in history[before:]]
        edge = max(1, len(losses) // 5)
        if losses and np.mean(losses[-edge:]) > (1 - settings.tol) * np.mean(losses[:edge]):
            break
    return Learned(state.coefficients, state.metric, state.alpha, history)


def choose_kind(
    kinds: list[Kind],
    problem: Problem,
    basis: Any,
    settings: LearnSettings,
    *,
    rng: np.random.Generator,
    callback: Callback = None,
) -> tuple[Kind, Learned]:
    """The kind of metric that predicts best, each learned on three quarters of the rows.

    The error on the rest decides, of ridge regressions on some of the model's features. Returns
    what was learned too, to go on from.
    """
    order = rng.permutation(np.flatnonzero(problem.weights > 0))
    fit, held = (problem.at(np.sort(part)) for part in np.split(order, [3 * len(order) // 4]))
    columns = np.ascontiguousarray(problem.projection[:, :_JUDGED])
    sketch = Sketch(fit.x, fit.y, fit.weights, held.x, held.y, held.weights, columns)
    best, chosen = np.inf, None
    for kind in kinds:
        learned = learn_activation(fit, basis, kind, settings, rng=rng, callback=callback)
        sigma = compiled(basis, learned.coefficients)
        around = learned.alpha * 10.0 ** np.arange(-2, 3)
        alphas = around if settings.alpha is None else np.array([settings.alpha])
        losses = sketch_losses(sigma, learned.metric, alphas, sketch, settings.fit_intercept)
        if chosen is None or losses.min() < best:
            best, chosen = losses.min(), (kind, learned)
    assert chosen is not None
    return chosen


def _stages(n: int, m: int, steps: int) -> list[Stage]:
    """Two stages, coarse and fine, with sketches that keep the model's rows per feature.

    The work of a step is about rows × features²; every stage bounds it, so that the whole takes
    seconds whatever n and M are. A wide model has a third stage with larger sketches.
    """
    stages = []
    for share, work, rate in _STAGES if m <= _NARROW else _WIDE_STAGES:
        ratio = min(max(0.9 * n / m, 3.0), 12.0)
        wide = int(min(m, (work / ratio) ** (1 / 3), max(0.55 * n / ratio, 50)))
        fit_rows = int(min(ratio * wide, 0.6 * n))
        held_rows = int(min(max(fit_rows // 3, 2000), 0.4 * n))
        stages.append(Stage(round(share * steps), wide, fit_rows, held_rows, rate))
    return stages


def _descend(
    state: Learned,
    stage: Stage,
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
    size = FILL / np.sqrt(max(sampler.x.shape[1], 1))
    height = float(np.sqrt(np.mean(state.coefficients**2)))
    a, metric, log_alpha = state.coefficients, state.metric, np.log(state.alpha)
    moves = Adam(stage.rate * height), Adam(stage.rate * size), Adam(2 * stage.rate)
    for step in range(stage.steps):
        sketch = sampler.draw(stage)
        sigma = compiled(basis, a)
        loss, by_a, by_metric, by_alpha = held_out_loss(
            sigma, metric, float(np.exp(log_alpha)), sketch, settings.fit_intercept, kind != "none"
        )
        if not loss > 0:  # nothing is left to learn, as with a constant target
            break
        record = {"loss": loss, "alpha": float(np.exp(log_alpha)), "features": stage.features}
        history.append(record)
        if callback is not None:
            callback(record)
        fade = 0.5 * (1 + np.cos(np.pi * step / stage.steps))
        if settings.coefficients is None:
            bend = penalty_gradient(a, settings.l1, settings.smoothness)
            a = moves[0].step(a, by_a / loss + bend, fade)
        if kind != "none":
            metric = moves[1].step(metric, by_metric.astype(np.float64) / loss, fade)
        if settings.alpha is None:
            log_alpha = moves[2].step(log_alpha, by_alpha / loss, fade)
    return Learned(a, metric, float(np.exp(log_alpha)))


def _mix_targets(y: Array, rng: np.random.Generator) -> Array:
    if y.shape[1] <= _MOST_TARGETS:
        return y
    mix = rng.standard_normal((y.shape[1], _MOST_TARGETS)) / np.sqrt(y.shape[1])
    return (y @ mix).astype(y.dtype)

"""Learn the activation and the metric by variable projection.

The output weights are the ridge solution of a sketch, some rows and some columns of W, and J, its
error on other rows, decides (`sketches` has J and its gradient).

The rows and the columns are drawn anew for every step, the columns from the very W that the model
will use, so that L and sigma suit it. L-BFGS on one fixed sketch was tried: it soon fits L to the
few columns it sees, and the gain does not carry over to the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rflaf.solvers.adam import Adam, penalty_gradient
from rflaf.solvers.sketches import Plan, Sampler, Sketch, apply_metric, features, held_out_loss
from rflaf.solvers.starts import FILL, Learned, Metric, compiled, sketch_losses, start_on_sketch

__all__ = [
    "FILL",
    "Learned",
    "Metric",
    "Sketch",
    "apply_metric",
    "choose_metric",
    "features",
    "held_out_loss",
    "learn_activation",
]

Array = NDArray[Any]
Float64 = NDArray[np.float64]
_NARROW = 5000  # features; more of them are worth a stage of larger sketches
# Share of the steps, work of each, and rate, of each stage
_STAGES = ((0.45, 4e8, 0.1), (0.55, 1.2e10, 0.05))
_WIDE_STAGES = ((0.35, 4e8, 0.1), (0.4, 1.2e10, 0.05), (0.25, 6.4e10, 0.05))
_JUDGED = 500  # features to judge kinds of metric by
_MOST_TARGETS = 12  # more are mixed down to so many, at random, while the activation is learned


def learn_activation(
    x: Any,
    y: Array,
    basis: Any,
    *,
    metric: Metric,
    projection: Array,
    rng: np.random.Generator,
    weights: Array | None = None,
    alpha: float | None = None,
    coefficients: Array | None = None,
    start: Learned | None = None,
    scales: Array | None = None,
    fit_intercept: bool = True,
    l1: float = 0.0,
    smoothness: float = 0.0,
    max_iter: int = 140,
    tol: float = 1e-3,
    callback: Callable[[dict[str, float]], None] | None = None,
) -> Learned:
    """Learn coefficients, metric and penalty for a model on a given random projection.

    Parameters
    ----------
    x : array or sparse matrix, n × d
        Inputs, each column of about unit scale.
    y : array, n × C
        Targets, centred and of about unit scale.
    basis : Basis
    metric : {"full", "diagonal", "none"}
    projection : array, d × M
        The model's W. Sketches take some of its columns, and keep its ratio of rows to features
        where that is cheap enough, for the best activation depends on it.
    alpha : float, optional
        A penalty to keep; by default it is learned along.
    coefficients : array of N, optional
        Those of an activation to keep; only the metric and the penalty are learned then.
    start : Learned, optional
        Where to start from. By default cosines of several frequencies are tried.
    scales : array of d, optional
        What the columns of x were divided by. Undoing that is tried too: it suits inputs that have
        one unit, such as pixels.
    l1, smoothness : float
        Penalties on the activation: times the mean |a|, and times the mean squared second
        difference of a, for a of unit mean square.
    max_iter, tol : int, float
        Steps in all; a stage that lowers the loss by less than `tol`, relatively, is the last.
    callback : callable, optional
        Called with the record of every step.
    """
    y = _mix_targets(y, rng)
    weights = np.ones(len(y)) if weights is None else weights
    sampler = Sampler(x, y, weights, projection, rng)
    plans = _plan(x.shape[0], projection.shape[1], max_iter)
    if coefficients is None and not basis.learnable:
        coefficients = np.ones(1)
    state = start or start_on_sketch(
        sampler.draw(plans[0]), basis, coefficients, metric, alpha, scales, fit_intercept
    )
    history: list[dict[str, float]] = []
    for plan in plans:
        before = len(history)
        state = _descend(
            state, plan, sampler, basis, coefficients is None, metric != "none", alpha is None,
            fit_intercept, l1, smoothness, history, callback,
        )  # fmt: skip
        losses = [record["loss"] for record in history[before:]]
        edge = max(1, len(losses) // 5)
        if losses and np.mean(losses[-edge:]) > (1 - tol) * np.mean(losses[:edge]):
            break
    return Learned(state.coefficients, state.metric, state.alpha, history)


def choose_metric(
    kinds: list[Metric],
    x: Any,
    y: Array,
    basis: Any,
    *,
    projection: Array,
    weights: Array,
    rng: np.random.Generator,
    alpha: float | None = None,
    fit_intercept: bool = True,
    **settings: Any,
) -> tuple[Metric, Learned]:
    """The kind of metric that predicts best, each learned on three quarters of the rows.

    The error on the rest decides, of ridge regressions on some of the model's features. Returns
    what was learned too, to go on from. `settings` are those of `learn_activation`.
    """
    order = rng.permutation(np.flatnonzero(weights > 0))
    fit, held = (np.sort(part) for part in np.split(order, [3 * len(order) // 4]))
    columns = np.ascontiguousarray(projection[:, :_JUDGED])
    sketch = Sketch(x[fit], y[fit], weights[fit], x[held], y[held], weights[held], columns)
    best, chosen = np.inf, None
    for kind in kinds:
        learned = learn_activation(
            x[fit], y[fit], basis, metric=kind, projection=projection, weights=weights[fit],
            rng=rng, alpha=alpha, fit_intercept=fit_intercept, **settings,
        )  # fmt: skip
        sigma = compiled(basis, learned.coefficients)
        around = learned.alpha * 10.0 ** np.arange(-2, 3)
        alphas = around if alpha is None else np.array([alpha])
        loss = sketch_losses(sigma, learned.metric, alphas, sketch, fit_intercept).min()
        if chosen is None or loss < best:
            best, chosen = loss, (kind, learned)
    assert chosen is not None
    return chosen


def _plan(n: int, m: int, steps: int) -> list[Plan]:
    """Two stages, coarse and fine, with sketches that keep the model's rows per feature.

    The work of a step is about rows × features²; every stage bounds it, so that the whole takes
    seconds whatever n and M are. A wide model has a third stage with larger sketches.
    """
    stages = _STAGES if m <= _NARROW else _WIDE_STAGES
    plans = []
    for share, work, rate in stages:
        ratio = min(max(0.9 * n / m, 3.0), 12.0)
        wide = int(min(m, (work / ratio) ** (1 / 3), max(0.55 * n / ratio, 50)))
        fit_rows = int(min(ratio * wide, 0.6 * n))
        held_rows = int(min(max(fit_rows // 3, 2000), 0.4 * n))
        plans.append(Plan(round(share * steps), wide, fit_rows, held_rows, rate))
    return plans


def _descend(
    state: Learned,
    plan: Plan,
    sampler: Sampler,
    basis: Any,
    learn_coefficients: bool,
    learn_metric: bool,
    learn_alpha: bool,
    fit_intercept: bool,
    l1: float,
    smoothness: float,
    history: list[dict[str, float]],
    callback: Callable[[dict[str, float]], None] | None,
) -> Learned:
    """Adam on log J with fresh sketches, and a rate that falls to zero along a cosine.

    The logarithm keeps an unlucky sketch, whose J and gradient are many times the usual, from
    throwing away what was reached.
    """
    size = FILL / np.sqrt(max(sampler.x.shape[1], 1))
    height = float(np.sqrt(np.mean(state.coefficients**2)))
    a, metric, log_alpha = state.coefficients, state.metric, np.log(state.alpha)
    moves = Adam(plan.rate * height), Adam(plan.rate * size), Adam(2 * plan.rate)
    for step in range(plan.steps):
        sketch = sampler.draw(plan)
        sigma = compiled(basis, a)
        loss, by_a, by_metric, by_alpha = held_out_loss(
            sigma, metric, float(np.exp(log_alpha)), sketch, fit_intercept, learn_metric
        )
        if not loss > 0:  # nothing is left to learn, as with a constant target
            break
        record = {"loss": loss, "alpha": float(np.exp(log_alpha)), "features": plan.features}
        history.append(record)
        if callback is not None:
            callback(record)
        fade = 0.5 * (1 + np.cos(np.pi * step / plan.steps))
        if learn_coefficients:
            a = moves[0].step(a, by_a / loss + penalty_gradient(a, l1, smoothness), fade)
        if learn_metric:
            metric = moves[1].step(metric, by_metric.astype(np.float64) / loss, fade)
        if learn_alpha:
            log_alpha = moves[2].step(log_alpha, by_alpha / loss, fade)
    return Learned(a, metric, float(np.exp(log_alpha)))


def _mix_targets(y: Array, rng: np.random.Generator) -> Array:
    if y.shape[1] <= _MOST_TARGETS:
        return y
    mix = rng.standard_normal((y.shape[1], _MOST_TARGETS)) / np.sqrt(y.shape[1])
    return (y @ mix).astype(y.dtype)

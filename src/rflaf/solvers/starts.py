"""Where learning starts from, and all there is to choose where rows are few."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from rflaf import fused, rules
from rflaf.arrays import Array, Float64
from rflaf.solvers.features import (
    apply_metric,
    as_array,
    check_finite,
    features,
    project,
)
from rflaf.solvers.gcv import gcv_losses, spectrum_of_rows
from rflaf.solvers.penalty import walk
from rflaf.solvers.ridge import NormalEquations
from rflaf.solvers.sketches import Problem, Sketch, sketch_ridge

Kind = Literal["full", "diagonal", "none"]

PENALTIES = 10.0 ** np.arange(-6, 1)  # that are tried on a sketch
_UNEQUAL = 1.1  # times the least of the columns' scales; nearer ones are no other start
_GROWN = (0.7, 1.0, 1.4)  # scales of a metric that are tried
_SHARES = 10.0 ** np.arange(-8, 1.5, 0.5)  # penalties, in units of the features' total variance


@dataclass(frozen=True)
class Learned:
    """The activation's coefficients, the metric, the penalty, and how they were found.

    `metric` is d × d, a vector of d, or a number, and applies to the inputs as they were given.
    `history` has a record per step, of which the first `before` were taken before the loss's
    quadratic model was taken anew.
    """

    coefficients: Float64
    metric: Float64
    alpha: float
    history: list[dict[str, float]] = field(default_factory=list)
    before: int | None = None

    def of_kind(self, kind: Kind) -> Learned:
        """The same with a metric that a kind takes."""
        if kind == "full" and np.ndim(self.metric) == 1:
            return replace(self, metric=np.diag(self.metric))
        return self

    def suits(self, d: int) -> bool:
        """Whether the metric is one of d inputs."""
        return np.ndim(self.metric) == 0 or len(self.metric) == d


@dataclass(frozen=True)
class LearnSettings:
    """How to learn.

    Attributes
    ----------
    alpha : float, optional
        A penalty to keep; by default it is learned along.
    coefficients : array of N, optional
        Those of an activation to keep; only the metric and the penalty are learned then.
    fit_intercept : bool
    l1, smoothness : float
        Penalties on the activation: times the mean |a|, and times the mean squared second
        difference of a, for a of unit mean square.
    short : bool
        Whether all steps are on the smallest sketches.
    known_bytes : int
        What Z may take, where no metric is learned and it is computed once.
    max_iter, tol : int, float
        Steps in all; those of one size of sketches end when 32 of them lower the loss by less than
        `tol`, relatively.
    """

    alpha: float | None = None
    coefficients: Array | None = None
    fit_intercept: bool = True
    l1: float = 0.0
    smoothness: float = 0.0
    max_iter: int = 240
    known_bytes: int = 1 << 28
    short: bool = False
    tol: float = 0.02


def compiled(basis: Any, a: Float64) -> fused.Sigma:
    """The activation with coefficients a, for the fused kernels."""
    if basis.tail == "direct":
        return fused.Direct(basis, a)
    return fused.basis_layout(basis).table(a)


def start_on_sketch(
    sketch: Sketch,
    basis: Any,
    kind: Kind,
    settings: LearnSettings,
    scales: Array | None,
    shares: Array | None = None,
) -> Learned:
    """The best of a few activations, scales and penalties, judged on one small sketch.

    `shares` is what screening says of the inputs.
    """
    alphas = PENALTIES if settings.alpha is None else np.array([settings.alpha])
    d, given = sketch.fit.x.shape[1], settings.coefficients
    best, chosen, at = np.inf, None, len(alphas) // 2
    for metrics, gain in (
        (_even_metrics(d, scales), 1.0),
        (_screened(shares), rules.SCREENED_GAIN),
    ):
        least = gain * best if np.isfinite(best) else np.inf
        for a, metric in _candidates(basis, given, kind, metrics):
            ridge, _ = sketch_ridge(compiled(basis, a), metric, sketch, settings.fit_intercept)
            place, loss = lowest(ridge.loss, alphas, at)
            if chosen is None or loss < min(best, least):
                best, chosen, at = loss, Learned(a, metric, float(alphas[place])), place
    assert chosen is not None
    return chosen


def start_on_few_rows(problem: Problem, basis: Any, kind: Kind, settings: LearnSettings) -> Learned:
    """The best of the same, by generalised cross-validation over all rows.

    For rows too few to learn from in sketches, and for more than a scale of each input's own.
    """
    if kind == "full":
        kind = "diagonal"
    _, x, y, weights, _ = problem.rows
    x, y, weights = _distinct_rows(x, np.asarray(y, np.float64), weights)
    w = problem.projection
    best, chosen = np.inf, None
    metrics = _even_metrics(x.shape[1], problem.scales)
    for a, metric in _candidates(basis, settings.coefficients, kind, metrics):
        with np.errstate(over="ignore", invalid="ignore"):
            z = project(x, apply_metric(metric, w).astype(w.dtype))
            phi = fused.apply(compiled(basis, a), z, out=z).astype(np.float64)
            if not np.isfinite(np.square(phi).sum()):
                continue
        spectrum = spectrum_of_rows(phi, y, weights, settings.fit_intercept)
        total = float(spectrum.values.sum())
        alphas = (total if total > 1e-12 else 1.0) * _SHARES
        penalties = alphas if settings.alpha is None else np.array([settings.alpha])
        losses = gcv_losses(spectrum, penalties)
        # rounding must not decide: the largest penalty of those that are as good
        at = np.flatnonzero(losses <= (1 + 1e-6) * losses.min())[-1]
        if chosen is None or losses[at] < (1 - 1e-6) * best:
            best, chosen = losses[at], Learned(a, metric, float(penalties[at]))
    if chosen is None:
        check_finite(np.inf)
    assert chosen is not None
    return chosen


def _distinct_rows(x: Any, y: Float64, weights: Array) -> tuple[Array, Float64, Float64]:
    """Distinct rows, total weights: neither copies of a row nor the unit of weights matter."""
    used = weights > 0
    x = as_array(x[used])
    both, place = np.unique(np.hstack([x, y[used]]), axis=0, return_inverse=True)
    total = np.zeros(len(both))
    np.add.at(total, place.ravel(), weights[used] / weights.max())
    return both[:, : x.shape[1]].astype(x.dtype), both[:, x.shape[1] :], total


def lowest(loss: Callable[[float], float], alphas: Array, start: int) -> tuple[int, float]:
    """Which of some penalties in order is best, and its loss, walking from one of them."""
    walked = walk(
        lambda steps: [loss(float(alphas[k])) for k in steps],
        start=start,
        low=0,
        high=len(alphas) - 1,
        together=False,
    )
    return walked.best, walked.least


def turn_metric(
    fit: Sketch, judge: Sketch, basis: Any, state: Learned, settings: LearnSettings
) -> Learned:
    """A metric made of the gradients of the ridge solution, and the scale and penalty that suit it.

    The prediction f varies most along the leading eigenvectors of E[grad f grad f'], and there the
    inputs should count most: L becomes its root, as in recursive feature machines. A few solves of
    this kind bring L near to where hundreds of gradient steps would.
    """
    outer = _gradient_products(fit, basis, state, settings.fit_intercept)
    before = float(np.linalg.norm(state.metric))
    if np.ndim(state.metric) == 2:
        values, vectors = np.linalg.eigh(outer)
        root = (vectors * np.sqrt(np.maximum(values, 1e-6 * values[-1]))) @ vectors.T
    else:
        root = np.sqrt(np.maximum(outer, 1e-6 * outer.max()))
    size = float(np.linalg.norm(root))
    if not np.isfinite(size) or size == 0:
        return state
    sigma = compiled(basis, state.coefficients)
    around = np.clip(state.alpha * 10.0 ** np.arange(-1, 2), PENALTIES[0], PENALTIES[-1])
    alphas = around if settings.alpha is None else np.array([settings.alpha])
    middle = len(alphas) // 2
    metrics = [root * (grown * before / size) for grown in _GROWN]
    ridges: dict[int, Any] = {}

    def losses(steps: Sequence[int]) -> list[float]:
        for k in steps:
            ridges[k], _ = sketch_ridge(sigma, metrics[k], judge, settings.fit_intercept)
        return [ridges[k].loss(float(alphas[middle])) for k in steps]

    walked = walk(losses, start=len(_GROWN) // 2, low=0, high=len(_GROWN) - 1, together=False)
    if not np.isfinite(walked.least):
        return state
    place, _ = lowest(ridges[walked.best].loss, alphas, middle)
    return Learned(state.coefficients, metrics[walked.best], float(alphas[place]))


def _gradient_products(sketch: Sketch, basis: Any, state: Learned, fit_intercept: bool) -> Float64:
    """E[grad f grad f'] summed over outputs, for a sketch's ridge solution f; or its diagonal."""
    dtype = sketch.projection.dtype
    sigma = compiled(basis, state.coefficients)
    w = apply_metric(state.metric, sketch.projection).astype(dtype)
    z = project(sketch.fit.x, w)
    phi = features(sigma, z, float(fit_intercept))
    sums = NormalEquations.empty(w.shape[1], sketch.fit.y.shape[1])
    # in float64: gradients magnify what rounding does to weights with a small penalty
    sums.add(phi.astype(np.float64), sketch.fit.y, sketch.fit.weights)
    v = sums.solve(state.alpha, fit_intercept)[:-1].astype(dtype)
    ones, share = np.ones((len(z), 1), dtype), sketch.fit.weights / sketch.fit.weights.sum()
    full = np.ndim(state.metric) == 2
    total = np.zeros((len(w), len(w)) if full else len(w))
    for column in v.T:
        slopes = fused.slope(sigma, z, (ones, column[:, None])) @ w.T
        total += (slopes * share[:, None]).T @ slopes if full else share @ slopes**2
    return total


def _even_metrics(d: int, scales: Array | None) -> list[Float64]:
    """The same scale for all inputs, and for all columns that they were made of."""
    metrics = [np.full(d, rules.FILL / np.sqrt(max(d, 1)))]
    if scales is not None and scales.max() > _UNEQUAL * scales.min():
        relative = scales / scales.max()
        metrics.append(relative * rules.FILL / np.linalg.norm(relative))
    return metrics


def _screened(shares: Array | None) -> list[Float64]:
    """Scales by what screening says of the inputs."""
    if shares is None:
        return []
    relative = np.maximum(np.sqrt(shares / shares.max()), rules.SCREENED_REST)
    return [relative * rules.FILL / np.linalg.norm(relative)]


def _candidates(
    basis: Any, coefficients: Array | None, kind: Kind, metrics: list[Float64]
) -> list[tuple[Float64, Float64]]:
    """Coefficients and metrics to start from.

    cos(f z) + sin(f z) gives the Gaussian kernel of bandwidth 1 / f: this is the usual choice of a
    bandwidth, as a place to start from.
    """
    if kind == "full":
        metrics = [np.diag(each) for each in metrics]
    if coefficients is None:
        return [(_wave(basis, f), each) for each in metrics for f in rules.FREQUENCIES]
    grow = (1.0,) if kind == "none" else rules.FREQUENCIES
    return [(np.asarray(coefficients, np.float64), f * each) for each in metrics for f in grow]


@lru_cache(maxsize=64)
def _wave(basis: Any, frequency: float) -> Float64:
    """Coefficients of cos(f z) + sin(f z), of unit height."""
    a = basis.fit(lambda z: np.cos(frequency * z) + np.sin(frequency * z), ridge=1e-8)
    at = np.linspace(basis.low, basis.high, 257)
    a /= max(float(np.sqrt(np.mean(basis.combine(a, at) ** 2))), 1e-30)
    a.flags.writeable = False  # many share it
    return np.asarray(a)

"""Learn the activation and the metric by variable projection.

For given coefficients a, metric L and penalty alpha, the output weights are a ridge solution on
rows T, and what decides is its error J on other rows H. With the features Phi = sigma(X L W) and
a column of ones behind them, A = Phi_T'Phi_T / n_T + alpha, A V = Phi_T'y_T / n_T,
R = Phi_H V - y_H and A Q = (2 / n_H) Phi_H'R, the gradient of J = |R|² / n_H is

    dJ/dPhi_H = (2 / n_H) R V',   dJ/dPhi_T = ((y_T - Phi_T V) Q' - (Phi_T Q) V') / n_T,
    dJ/dalpha = -sum of Q ∘ V,

all of low rank, so that the fused kernels turn them into the gradients for a and L without another
n × M matrix.

The rows T and H and the columns of W are drawn anew for every step, the columns from the very W
that the model will use, so that L and sigma suit it. L-BFGS on one fixed sketch was tried: it soon
fits L to the few columns it sees, and the gain does not carry over to the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from rflaf import fused
from rflaf.solvers.ridge import NormalEquations, check_finite

Array = NDArray[Any]
Float64 = NDArray[np.float64]
Metric = Literal["full", "diagonal", "none"]

FILL = 0.6  # standard deviation of Z at the start: L has room to grow before Z leaves [-2, 2]
_FREQUENCIES = (0.3, 1.1, 2.2, 4.5, 9.0)  # of the activation to start from; 0.3: nearly linear
_ALPHAS = 10.0 ** np.arange(-6, 1)
_MOST_TARGETS = 12  # more are mixed down to so many, at random, while the activation is learned


class Sketch(NamedTuple):
    """Rows to fit on, rows to judge by, and a random projection."""

    x_fit: Any
    y_fit: Array
    w_fit: Array
    x_held: Any
    y_held: Array
    w_held: Array
    projection: Array


@dataclass(frozen=True)
class Plan:
    """Sizes of the sketches of one stage, and its rates."""

    steps: int
    features: int
    fit_rows: int
    held_rows: int
    rate: float


@dataclass(frozen=True)
class Learned:
    """The activation's coefficients, the metric, the penalty, and how they were found.

    `metric` is d × d, a vector of d, or a number, and applies to the inputs as they were given.
    """

    coefficients: Float64
    metric: Float64
    alpha: float
    history: list[dict[str, float]] = field(default_factory=list)


def apply_metric(metric: Array, projection: Array) -> Array:
    """L W for a full, diagonal or scalar L."""
    if np.ndim(metric) == 2:
        return np.asarray(metric @ projection)
    return np.asarray(np.reshape(metric, (-1, 1)) * projection)


def features(sigma: fused.Sigma, x: Any, w: Array) -> tuple[Array, Array]:
    """Z = X W, and sigma(Z) with a column of ones behind it."""
    z = np.asarray(x @ w)
    phi = np.ones((z.shape[0], z.shape[1] + 1), z.dtype)
    fused.apply(sigma, z, out=phi[:, :-1])
    return z, phi


def held_out_loss(
    sigma: fused.Sigma,
    metric: Array,
    alpha: float,
    sketch: Sketch,
    fit_intercept: bool = True,
    learn_metric: bool = True,
) -> tuple[float, Float64, Array, float]:
    """J, and its gradients for the coefficients, the metric (0 where not asked) and log alpha."""
    dtype = sketch.projection.dtype
    w = apply_metric(metric, sketch.projection).astype(dtype)
    z_fit, phi_fit = features(sigma, sketch.x_fit, w)
    z_held, phi_held = features(sigma, sketch.x_held, w)
    m, outputs = w.shape[1], sketch.y_fit.shape[1]
    if not fit_intercept:
        phi_fit[:, m] = phi_held[:, m] = 0
    share_fit = (sketch.w_fit / sketch.w_fit.sum())[:, None]
    share_held = (sketch.w_held / (sketch.w_held.sum() * outputs))[:, None]

    root = np.sqrt(share_fit).astype(dtype)
    factor = _factorise(phi_fit * root, alpha)
    right = phi_fit.T @ (share_fit * sketch.y_fit).astype(dtype)
    v = linalg.cho_solve(factor, right.astype(np.float64), check_finite=False)
    error = phi_held @ v.astype(dtype) - sketch.y_held
    loss = float(np.sum(share_held * error**2))
    pull = (2 * share_held * error).astype(dtype)
    q = linalg.cho_solve(factor, (phi_held.T @ pull).astype(np.float64), check_finite=False)

    v_m, q_m = v[:m].astype(dtype), q[:m].astype(dtype)
    residual = sketch.y_fit - phi_fit @ v.astype(dtype)
    back = -(phi_fit @ q.astype(dtype))
    from_fit = ((share_fit * np.hstack([residual, back])).astype(dtype), np.hstack([q_m, v_m]))
    from_held = (pull, v_m)
    coefficients = fused.adjoint(sigma, z_fit, from_fit) + fused.adjoint(sigma, z_held, from_held)
    log_alpha = -alpha * float(np.sum(q[:m] * v[:m]))
    if not learn_metric:
        return loss, coefficients, np.zeros(()), log_alpha
    slope_fit = fused.slope(sigma, z_fit, from_fit, out=z_fit)
    slope_held = fused.slope(sigma, z_held, from_held, out=z_held)
    by_input = np.asarray(sketch.x_fit.T @ slope_fit) + np.asarray(sketch.x_held.T @ slope_held)
    if np.ndim(metric) == 2:
        return loss, coefficients, by_input @ sketch.projection.T, log_alpha
    return loss, coefficients, np.einsum("dm,dm->d", by_input, sketch.projection), log_alpha


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
    sampler = _Sampler(x, y, weights, projection, rng)
    plans = _plan(x.shape[0], projection.shape[1], max_iter)
    if coefficients is None and not basis.learnable:
        coefficients = np.ones(1)
    state = start or _start(
        sampler, basis, coefficients, metric, alpha, scales, plans[0], fit_intercept
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


class _Sampler:
    """Draws sketches."""

    def __init__(
        self, x: Any, y: Array, weights: Array, projection: Array, rng: np.random.Generator
    ) -> None:
        self.x = x.tocsr() if sparse.issparse(x) else x
        self.y, self.weights, self.rng = y, weights, rng
        self.projection = projection.astype(np.float64 if x.dtype == np.float64 else np.float32)
        self.rows = np.flatnonzero(weights > 0)

    def draw(self, plan: Plan) -> Sketch:
        wanted = min(plan.fit_rows + plan.held_rows, len(self.rows))
        rows = self.rng.choice(self.rows, wanted, replace=False)
        split = round(wanted * plan.fit_rows / (plan.fit_rows + plan.held_rows))
        fit, held = np.sort(rows[:split]), np.sort(rows[split:])
        w = self.projection
        if plan.features < w.shape[1]:
            columns = self.rng.choice(w.shape[1], plan.features, replace=False)
            w = np.ascontiguousarray(w[:, columns])
        parts = [(self.x[r], self.y[r], self.weights[r]) for r in (fit, held)]
        return Sketch(*parts[0], *parts[1], w)


def _plan(n: int, m: int, steps: int) -> list[Plan]:
    """Two stages, coarse and fine, with sketches that keep the model's rows per feature.

    The work of a step is about rows × features²; both stages bound it, so that the whole takes
    seconds whatever n and M are.
    """
    plans = []
    for share, work, rate in ((0.45, 4e8, 0.1), (0.55, 1.2e10, 0.05)):
        ratio = min(max(0.9 * n / m, 3.0), 12.0)
        wide = int(min(m, (work / ratio) ** (1 / 3), max(0.55 * n / ratio, 50)))
        fit_rows = int(min(ratio * wide, 0.6 * n))
        held_rows = int(min(max(fit_rows // 3, 2000), 0.4 * n))
        plans.append(Plan(round(share * steps), wide, fit_rows, held_rows, rate))
    return plans


def _start(
    sampler: _Sampler,
    basis: Any,
    coefficients: Array | None,
    metric: Metric,
    alpha: float | None,
    scales: Array | None,
    plan: Plan,
    fit_intercept: bool,
) -> Learned:
    """The best of a few activations, scales and penalties, judged on one small sketch.

    cos(f z) + sin(f z) gives the Gaussian kernel of bandwidth 1 / f: this is the usual choice of a
    bandwidth, as a place to start from.
    """
    d = sampler.x.shape[1]
    sketch = sampler.draw(plan)
    metrics = [np.full(d, FILL / np.sqrt(max(d, 1)))]
    if scales is not None and np.ptp(scales) > 0:
        relative = scales / scales.max()
        metrics.append(relative * FILL / np.linalg.norm(relative))
    if metric == "full":
        metrics = [np.diag(each) for each in metrics]
    if coefficients is None:
        fits = [
            basis.fit(lambda z, f=f: np.cos(f * z) + np.sin(f * z), ridge=1e-8)
            for f in _FREQUENCIES
        ]
        candidates = [(_unit_height(basis, a), each) for each in metrics for a in fits]
    else:
        grow = (1.0,) if metric == "none" else _FREQUENCIES
        candidates = [(coefficients, f * each) for each in metrics for f in grow]
    penalties = _ALPHAS if alpha is None else np.array([alpha])
    best, chosen = np.inf, Learned(*candidates[0], float(penalties[-1]))
    for a, metric_start in candidates:
        losses = _losses(_compiled(basis, a), metric_start, penalties, sketch, fit_intercept)
        if losses.min() < best:
            best, chosen = losses.min(), Learned(a, metric_start, float(penalties[losses.argmin()]))
    return chosen


def _losses(
    sigma: fused.Sigma, metric: Array, alphas: Array, sketch: Sketch, fit_intercept: bool
) -> Float64:
    """J for several penalties."""
    w = apply_metric(metric, sketch.projection).astype(sketch.projection.dtype)
    sums = []
    for x, y, share in (sketch[:3], sketch[3:6]):
        sums.append(NormalEquations.empty(w.shape[1], y.shape[1]))
        sums[-1].add(features(sigma, x, w)[1], y, share)
    fit, held = sums
    return np.array([held.loss(fit.solve(a, fit_intercept)).mean() for a in alphas])


def _descend(
    state: Learned,
    plan: Plan,
    sampler: _Sampler,
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
    moves = _Adam(plan.rate * height), _Adam(plan.rate * size), _Adam(2 * plan.rate)
    for step in range(plan.steps):
        sketch = sampler.draw(plan)
        sigma = _compiled(basis, a)
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
            a = moves[0].step(a, by_a / loss + _penalty_gradient(a, l1, smoothness), fade)
        if learn_metric:
            metric = moves[1].step(metric, by_metric.astype(np.float64) / loss, fade)
        if learn_alpha:
            log_alpha = moves[2].step(log_alpha, by_alpha / loss, fade)
    return Learned(a, metric, float(np.exp(log_alpha)))


class _Adam:
    def __init__(self, rate: float) -> None:
        self.rate, self.mean, self.square, self.count = rate, 0.0, 0.0, 0

    def step(self, x: Any, gradient: Any, fade: float) -> Any:
        self.count += 1
        self.mean = 0.9 * self.mean + 0.1 * gradient
        self.square = 0.99 * self.square + 0.01 * gradient**2
        mean = self.mean / (1 - 0.9**self.count)
        spread = np.sqrt(self.square / (1 - 0.99**self.count))
        return x - self.rate * fade * mean / (spread + 1e-30)


def _penalty_gradient(a: Float64, l1: float, smoothness: float) -> Float64:
    """Of l1 mean|a| + smoothness mean(a'')², for a scaled to unit mean square."""
    gradient = np.zeros_like(a)
    height = np.sqrt(np.mean(a**2)) + 1e-30
    if l1:
        gradient += l1 * np.sign(a) / (a.size * height)
    if smoothness and a.size > 2:
        bends = np.diff(a, 2) / height**2
        for k, factor in enumerate((1, -2, 1)):
            gradient[k : k + bends.size] += 2 * smoothness * factor * bends / bends.size
    return gradient


def _factorise(weighted: Array, alpha: float) -> Any:
    """The Cholesky factor of Phi'Phi + alpha, raising alpha where rounding needs it.

    The products are taken in float64: in float32 their error can be as large as alpha, however
    short the sums, and then the gradient is wrong and the descent climbs.
    """
    wide = weighted.astype(np.float64)
    matrix = wide.T @ wide
    check_finite(np.trace(matrix))
    m = len(matrix) - 1
    floor = 1e-9 * np.trace(matrix) / (m + 1) + 1e-30
    while True:
        trial = matrix.copy()
        trial[np.arange(m), np.arange(m)] += max(alpha, floor)
        trial[m, m] += floor
        try:
            return linalg.cho_factor(trial, lower=True, overwrite_a=True, check_finite=False)
        except linalg.LinAlgError:
            floor *= 10


def _compiled(basis: Any, a: Float64) -> fused.Sigma:
    if basis.tail == "direct":
        return fused.Direct(basis, a)
    return fused.basis_layout(basis).table(a)


def _unit_height(basis: Any, a: Float64) -> Float64:
    at = np.linspace(basis.low, basis.high, 257)
    return a / max(float(np.sqrt(np.mean(basis.combine(a, at) ** 2))), 1e-30)


def _mix_targets(y: Array, rng: np.random.Generator) -> Array:
    if y.shape[1] <= _MOST_TARGETS:
        return y
    mix = rng.standard_normal((y.shape[1], _MOST_TARGETS)) / np.sqrt(y.shape[1])
    return (y @ mix).astype(y.dtype)

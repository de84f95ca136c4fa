"""From a sample of rows to the layer: W drawn, activation, metric and first penalty learned."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from rflaf import fused
from rflaf.activation import Activation
from rflaf.bases import Basis
from rflaf.fitting.scaling import column_moments, standardise
from rflaf.fitting.settings import FEW_ROWS, FitSettings
from rflaf.progress import Progress
from rflaf.projection import draw
from rflaf.solvers.features import apply_metric
from rflaf.solvers.sketches import Problem
from rflaf.solvers.starts import FILL, Kind, Learned, LearnSettings, start_on_few_rows
from rflaf.solvers.varpro import choose_kind, learn_activation

Array = NDArray[Any]


@dataclass(frozen=True)
class FittedLayer:
    """What makes features of inputs: standardise, multiply by `components`, apply the activation.

    Attributes
    ----------
    mean, scale : array of d
    components : array, d × M
        L W.
    activation : Activation
    metric, kind : array, str
        L and its kind.
    alpha : float
        The penalty that learning ended with.
    history : list of dict
        The steps of learning.
    coverage, z_sample : float, array
        The share of Z inside the grid, and some of Z.
    """

    mean: Array
    scale: Array
    components: Array
    activation: Activation
    metric: Array
    kind: Kind
    alpha: float
    history: list[dict[str, float]]
    coverage: float
    z_sample: Array

    @property
    def sigma(self) -> fused.Sigma:
        """The compiled activation."""
        return self.activation.table()

    def inputs(self, x: Any) -> Any:
        """Standardised inputs, in the precision of the layer."""
        return standardise(x, self.mean, self.scale, self.components.dtype)


class _Coverage(NamedTuple):
    share: float
    z: Array


def learn_layer(x: Any, targets: Array, weights: Array, settings: FitSettings) -> FittedLayer:
    """Learn on rows of positive weight, with targets n × C that are centred and of unit scale."""
    few = np.count_nonzero(weights) < FEW_ROWS
    dtype = np.float64 if few and x.dtype == np.float64 else np.float32
    rng = settings.rng()
    mean, scale = column_moments(x, weights)
    x = standardise(x, mean, scale, dtype)
    w = draw(settings.projection, x.shape[1], settings.n_components, rng, dtype)
    problem = Problem(x, targets.astype(dtype), weights, w, scale)
    kind, learned = _learn(problem, settings, rng)
    components = apply_metric(learned.metric, w).astype(dtype)
    coverage = _measure_coverage(x, components, settings.basis, rng)
    return FittedLayer(
        mean=mean,
        scale=scale,
        components=components,
        activation=Activation(settings.basis, learned.coefficients),
        metric=learned.metric,
        kind=kind,
        alpha=learned.alpha,
        history=learned.history,
        coverage=coverage.share,
        z_sample=coverage.z,
    )


def rescaled(layer: FittedLayer, scale: float, x: Any, rng: np.random.Generator) -> FittedLayer:
    """The layer with its metric times `scale`; `x` are inputs to measure Z on."""
    if scale == 1:
        return layer
    components = (scale * layer.components).astype(layer.components.dtype)  # as the solver had it
    coverage = _measure_coverage(layer.inputs(x), components, layer.activation.basis, rng)
    return replace(
        layer,
        metric=scale * layer.metric,
        components=components,
        coverage=coverage.share,
        z_sample=coverage.z,
    )


def _learn(
    problem: Problem, settings: FitSettings, rng: np.random.Generator
) -> tuple[Kind, Learned]:
    """Activation, metric and penalty, by what the number of rows allows."""
    basis, given = settings.basis, settings.coefficients
    n, d = problem.x.shape
    kinds = metric_kinds(settings.metric, n, d)
    old = _previous(settings, kinds, d)
    kind = kinds[-1] if old is None or settings.start is None else settings.start.kind
    frozen = not basis.learnable or given is not None
    rule = LearnSettings(
        alpha=settings.alpha,
        coefficients=given,
        fit_intercept=settings.fit_intercept,
        l1=settings.l1,
        smoothness=settings.smoothness,
        max_iter=settings.max_iter,
        tol=settings.tol,
    )
    if not settings.max_iter:
        return kind, _not_learned(basis, given, d)
    if np.count_nonzero(problem.weights) < FEW_ROWS:
        return kind, start_on_few_rows(problem, basis, kind, rule)
    if frozen and kinds == ["none"]:
        return kind, _not_learned(basis, given, d)
    if old is not None or len(kinds) == 1:
        with Progress("learning the activation", rule.max_iter, settings.verbose) as progress:
            found = learn_activation(
                problem, basis, kind, rule, rng=rng, start=old, callback=progress.step
            )
        return kind, found
    return _learn_with_choice(kinds, problem, settings, rule, rng)


def _learn_with_choice(
    kinds: list[Kind],
    problem: Problem,
    settings: FitSettings,
    rule: LearnSettings,
    rng: np.random.Generator,
) -> tuple[Kind, Learned]:
    """Half of the steps choose the kind of metric, the rest go on from the best."""
    trial, steps = (rule.max_iter + 1) // 2, rule.max_iter // 2
    total = len(kinds) * trial + steps
    with Progress("learning the activation", total, settings.verbose) as progress:
        kind, start = choose_kind(
            kinds,
            problem,
            settings.basis,
            replace(rule, max_iter=trial),
            rng=rng,
            callback=progress.step,
        )
        found = learn_activation(
            problem,
            settings.basis,
            kind,
            replace(rule, max_iter=steps),
            rng=rng,
            start=start,
            callback=progress.step,
        )
    return kind, replace(found, history=[*start.history, *found.history])


def metric_kinds(metric: str, n: int, d: int) -> list[Any]:
    """What "auto" may mean: the kinds that n rows can tell, the one with most unknowns last.

    A full metric has d² unknowns, and is worth far more than a diagonal one where there are rows
    enough to learn it. Between too few rows and enough, held-out rows have to choose.
    """
    if metric != "auto":
        return [metric]
    kinds = ["none"]
    if d <= 256 and 10 * d <= n:
        kinds = ["diagonal"] if 25 * d <= n else ["none", "diagonal"]
    if d <= 64 and 4 * d * d <= n:
        kinds = ["full"] if 25 * d * d <= n else [*kinds, "full"]
    return kinds


def _previous(settings: FitSettings, kinds: list[Any], d: int) -> Learned | None:
    """What an earlier fit has learned, where it is of a kind that is possible now."""
    start, given = settings.start, settings.coefficients
    if start is None or start.basis != settings.basis:
        return None
    if given is not None and not np.array_equal(given, start.learned.coefficients):
        return None
    if start.kind not in kinds or len(start.learned.metric) != d:
        return None
    return start.learned


def _not_learned(basis: Basis, given: Array | None, d: int) -> Learned:
    if given is None:
        given = basis.fit(lambda z: np.cos(2.2 * z) + np.sin(2.2 * z), ridge=1e-8)
    return Learned(given, np.full(d, FILL / np.sqrt(max(d, 1))), 1e-3)


def _measure_coverage(
    x: Any, components: Array, basis: Basis, rng: np.random.Generator
) -> _Coverage:
    """What share of Z lies inside the grid, on a sample of it."""
    rows = rng.choice(x.shape[0], min(x.shape[0], 1000), replace=False)
    columns = rng.choice(components.shape[1], min(components.shape[1], 200), False)
    z = np.asarray(x[np.sort(rows)] @ components[:, columns]).ravel()
    low, high = basis.grid
    inside = 1.0 if basis.tail == "direct" else float(np.mean((z >= low) & (z <= high)))
    return _Coverage(inside, rng.choice(z, min(z.size, 2000), replace=False).astype(np.float32))


def quiet_blas(n: int, m: int) -> Any:
    """One BLAS thread for small problems, where handing work around costs more than it saves."""
    return threadpool_limits(limits=1 if n * m <= 4_000_000 else None, user_api="blas")

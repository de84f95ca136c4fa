"""From a sample of rows to layers: W drawn, activation, metric and first penalty learned."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rflaf import fused
from rflaf.activation import Activation
from rflaf.bases import Basis, Polynomial
from rflaf.fitting.budget import known_bytes
from rflaf.fitting.settings import Choice, FitSettings
from rflaf.inputs.form import InputForm
from rflaf.projection import draw
from rflaf.runtime.progress import Progress
from rflaf.runtime.threads import parallel
from rflaf.solvers.features import apply_metric
from rflaf.solvers.sketches import Problem
from rflaf.solvers.starts import FILL, Kind, Learned, LearnSettings, start_on_few_rows
from rflaf.solvers.varpro import TURNS, learn_activation

Array = NDArray[Any]

_LEARNABLE = 30  # rows of a member; with fewer the activation is the best of a few


@dataclass(frozen=True)
class FittedLayer:
    """What makes features of inputs: their form, times `components`, and the activation.

    Attributes
    ----------
    form : InputForm
    components : array, d' × M
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
    linear : bool
        Whether the features are the inputs themselves.
    """

    form: InputForm
    components: Array
    activation: Activation
    metric: Array
    kind: Kind
    alpha: float
    history: list[dict[str, float]]
    coverage: float
    z_sample: Array
    linear: bool = False

    @property
    def sigma(self) -> fused.Sigma:
        """The compiled activation."""
        return self.activation.table()

    def inputs(self, x: Any) -> Any:
        """Inputs in their form, in the precision of the layer."""
        return self.form(x, self.components.dtype)

    def warp(self, column: int) -> tuple[Array, Array]:
        """The edges of a column's bins, and the sum of the bins' scales up to each."""
        bins = self.form.bins
        if self.form.name != "bins" or bins is None:
            raise ValueError(f"The form of the inputs must be 'bins'. Got {self.form.name!r}.")
        at = np.flatnonzero(bins.column == column)
        scales = np.broadcast_to(self.metric, self.components.shape[:1])[-len(bins.column) :]
        heights = np.cumsum(np.abs(scales[at]) / bins.scale[at])
        edges = np.append(bins.low[at], bins.low[at[-1]] + bins.width[at[-1]])
        return edges, np.concatenate([[0.0], heights])

    def scaled(self, factor: float, x: Any, rng: np.random.Generator) -> FittedLayer:
        """The layer with its metric times `factor`; `x` are inputs to measure Z on."""
        if factor == 1:
            return self
        components = (factor * self.components).astype(self.components.dtype)
        basis = self.activation.basis
        coverage, z = _measure_coverage(self.inputs(x), components, basis, rng)
        return replace(
            self,
            metric=factor * self.metric,
            components=components,
            coverage=coverage,
            z_sample=z,
        )


@dataclass(frozen=True)
class Examples:
    """Rows to learn from: inputs as they are, targets n × C of unit scale, and weights."""

    x: Any
    y: Array
    weights: Array

    def at(self, rows: Array) -> Examples:
        """Some of them."""
        return Examples(self.x[rows], self.y[rows], self.weights[rows])


def learn_layers(
    rows: Examples,
    fold: Array,
    held_folds: list[int],
    inputs: InputForm,
    chosen: list[Choice],
    settings: FitSettings,
) -> list[list[FittedLayer]]:
    """For each choice a layer for each of the folds, learned on the rows outside of it."""
    places = [(c, k) for c in range(len(chosen)) for k in range(len(held_folds))]
    layers: list[Any] = [None] * len(places)
    total = len(places) * settings.max_iter
    least = min(int(np.count_nonzero(fold != held)) for held in held_folds)
    few = not settings.holds_out or least < _LEARNABLE  # for all, so that they are of one kind
    with Progress("learning the activation", total, settings.verbose) as progress:

        def task(i: int) -> None:
            c, k = places[i]
            at = np.flatnonzero(fold != held_folds[k])
            rng = settings.rng() if i == 0 else settings.rng(3, i)
            start = None
            if settings.start is not None:  # each from its own, where there are as many
                learned = settings.start.learned[c]
                start = learned[k] if len(learned) == len(held_folds) else learned[0]
            known = known_bytes(settings.max_bytes) // len(places)
            rule = learn_settings(settings, known_bytes=known)
            layers[i] = learn_layer(
                rows.at(at), inputs, chosen[c], settings, rule, rng, few, start, progress.step
            )

        parallel(task, len(places))
    return [layers[c * len(held_folds) :][: len(held_folds)] for c in range(len(chosen))]


def learn_layer(
    rows: Examples,
    inputs: InputForm,
    choice: Choice,
    settings: FitSettings,
    rule: LearnSettings,
    rng: np.random.Generator,
    few: bool,
    start: Learned | None = None,
    callback: Any = None,
) -> FittedLayer:
    """Learn on rows of positive weight, which may be too `few` for more than a choice."""
    dtype = np.float64 if few and rows.x.dtype == np.float64 else np.float32
    form = replace(inputs, name=choice.form)
    x = form(rows.x, dtype)
    w = draw(settings.projection, x.shape[1], settings.components, rng, dtype)
    problem = Problem(x, rows.y.astype(dtype), rows.weights, w, form.scales)
    if few and settings.max_iter:
        learned = start_on_few_rows(problem, settings.basis, choice.kind, rule)
    else:
        learned = _learn(problem, choice, settings, rule, rng, start, callback)
    kind = choice.kind
    if np.ndim(learned.metric) == 1 and kind == "full":  # few rows: no more than scales
        kind = "diagonal" if settings.max_iter else "none"
    components = apply_metric(learned.metric, w).astype(dtype)
    coverage, z = _measure_coverage(x, components, settings.basis, rng)
    return FittedLayer(
        form=form,
        components=components,
        activation=Activation(settings.basis, learned.coefficients),
        metric=learned.metric,
        kind=kind,
        alpha=learned.alpha,
        history=learned.history,
        coverage=coverage,
        z_sample=z,
    )


def _learn(
    problem: Problem,
    choice: Choice,
    settings: FitSettings,
    rule: LearnSettings,
    rng: np.random.Generator,
    start: Learned | None,
    callback: Any,
) -> Learned:
    """Activation, metric and penalty, by what the number of rows allows."""
    basis, given, kind = settings.basis, settings.coefficients, choice.kind
    d = problem.x.shape[1]
    if not settings.max_iter:
        return not_learned(settings, d)
    if kind == "none" and (not basis.learnable or given is not None):
        return not_learned(settings, d)
    turns = None
    if start is None and choice.start is not None:
        start, turns = choice.start.of_kind(kind), TURNS
    return learn_activation(
        problem, basis, kind, rule, rng=rng, start=start, turns=turns, callback=callback
    )


def learn_settings(settings: FitSettings, **changes: Any) -> LearnSettings:
    """What learning is told of the settings of a fit."""
    rule = LearnSettings(
        alpha=settings.alpha,
        coefficients=settings.coefficients,
        fit_intercept=settings.fit_intercept,
        l1=settings.l1,
        smoothness=settings.smoothness,
        max_iter=settings.max_iter,
        tol=settings.tol,
    )
    return replace(rule, **changes)


def not_learned(settings: FitSettings, d: int) -> Learned:
    """The activation that is given or a cosine, and the same scale for all inputs."""
    given = settings.coefficients
    if given is None:
        given = settings.basis.fit(lambda z: np.cos(2.2 * z) + np.sin(2.2 * z), ridge=1e-8)
    alpha = 1e-3 if settings.alpha is None else settings.alpha
    return Learned(given, np.full(d, FILL / np.sqrt(max(d, 1))), alpha)


def linear_layer(inputs: InputForm, dtype: Any) -> FittedLayer:
    """Standardised inputs as they are: with output weights, a linear model."""
    d = len(inputs.mean)
    return FittedLayer(
        form=replace(inputs, name="raw"),
        components=np.eye(d, dtype=dtype),
        activation=Activation(Polynomial(2), np.array([0.0, 1.0])),
        metric=np.ones(d),
        kind="none",
        alpha=0.01,
        history=[],
        coverage=1.0,
        z_sample=np.zeros(0, np.float32),
        linear=True,
    )


def _measure_coverage(
    x: Any, components: Array, basis: Basis, rng: np.random.Generator
) -> tuple[float, Array]:
    """What share of Z lies inside the grid, on a sample of it, and some of Z."""
    rows = rng.choice(x.shape[0], min(x.shape[0], 1000), replace=False)
    columns = rng.choice(components.shape[1], min(components.shape[1], 200), False)
    z = np.asarray(x[np.sort(rows)] @ components[:, columns]).ravel()
    low, high = basis.grid
    inside = 1.0 if basis.tail == "direct" else float(np.mean((z >= low) & (z <= high)))
    return inside, rng.choice(z, min(z.size, 2000), replace=False).astype(np.float32)

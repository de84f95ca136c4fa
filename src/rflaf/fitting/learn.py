"""From a sample of rows to layers: W drawn, activation, metric and first penalty learned."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rflaf import fused
from rflaf.activation import Activation
from rflaf.bases import Basis
from rflaf.fitting.inputs import InputForm
from rflaf.fitting.settings import FEW_ROWS, Choice, FitSettings
from rflaf.fused.threads import parallel
from rflaf.progress import Progress
from rflaf.projection import draw
from rflaf.solvers.features import apply_metric
from rflaf.solvers.sketches import Problem, Sketch
from rflaf.solvers.starts import (
    FILL,
    Kind,
    Learned,
    LearnSettings,
    compiled,
    sketch_losses,
    start_on_few_rows,
)
from rflaf.solvers.varpro import TURNS, learn_activation

Array = NDArray[Any]


class TrialSize(NamedTuple):
    """Steps of learning, rows at most, and features by whose ridge solution a trial is judged."""

    steps: int
    rows: int
    features: int


_TRIALS = (TrialSize(10, 6000, 400), TrialSize(24, 12_000, 800))
_NEAR = 0.05  # of the best loss: what is nearer than that is tried again,
_FINALISTS = 4  # if it is among the best few
_WELL_TRIED = 6000  # rows up to which a trial is judged on two folds: one alone is too few rows
MOST_INPUTS = {"full": 128, "diagonal": 512}  # more of them are too many unknowns


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

    @property
    def sigma(self) -> fused.Sigma:
        """The compiled activation."""
        return self.activation.table()

    def inputs(self, x: Any) -> Any:
        """Inputs in their form, in the precision of the layer."""
        return self.form(x, self.components.dtype)

    def takes_inputs_of(self, other: FittedLayer) -> bool:
        """Whether both make the same of inputs; members share what was measured of the columns."""
        mine, its = self.form, other.form
        same = mine.name == its.name and mine.mean is its.mean and mine.scale is its.scale
        same = same and mine.knots is its.knots and mine.levels is its.levels
        return same and self.components.dtype == other.components.dtype

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


def choices(inputs: InputForm, n: int, settings: FitSettings) -> list[Choice]:
    """What may be taken for n rows, the one with fewest unknowns first."""
    found: list[Choice] = []
    for form in ("raw", "both") if settings.input_form == "auto" else (settings.input_form,):
        if form != "raw" and not len(inputs.ranked) and settings.input_form == "auto":
            continue
        d = len(replace(inputs, name=form).origin)
        found += [Choice(form, kind) for kind in metric_kinds(settings.metric, n, d)]
    order = ("none", "diagonal", "full")
    return sorted(found, key=lambda choice: (order.index(choice.kind), choice.form != "raw"))


def metric_kinds(metric: str, n: int, d: int) -> list[Any]:
    """The kinds of metric that n rows of d inputs may tell, the one with most unknowns last."""
    if metric != "auto":
        return [metric]
    kinds = ["none"]
    if d <= MOST_INPUTS["diagonal"] and 5 * d <= n:
        kinds.append("diagonal")
    if d <= MOST_INPUTS["full"] and d * d <= n:
        kinds.append("full")
    return kinds


def choose_form(
    rows: Examples,
    fold: Array,
    held_folds: list[int],
    inputs: InputForm,
    settings: FitSettings,
) -> tuple[Choice, list[dict[str, Any]]]:
    """The form and the kind with the least error on rows that they have not learned from.

    Each is learned in short, on rows outside a fold, and judged on those inside by a ridge
    regression. Those near the best are tried again at more length. Returns what was tried, too.
    """
    n = len(rows.weights)
    options = choices(inputs, n, settings)
    held_folds = held_folds[:2] if n <= _WELL_TRIED else held_folds[:1]
    path: list[dict[str, Any]] = []
    for size in _TRIALS:
        if len(options) == 1:
            break
        losses = _try_all(options, rows, fold, held_folds, inputs, settings, size)
        path += [
            {"form": c.form, "kind": c.kind, "steps": size.steps, "loss": loss}
            for c, loss in zip(options, losses)
        ]
        # of equals the one with fewest unknowns
        order = sorted(range(len(options)), key=lambda k: (losses[k], k))
        limit = (1 + _NEAR) * losses[order[0]]
        options = [options[k] for k in order if losses[k] <= limit][:_FINALISTS]
    return options[0], path


def _try_all(
    options: list[Choice],
    rows: Examples,
    fold: Array,
    held_folds: list[int],
    inputs: InputForm,
    settings: FitSettings,
    size: TrialSize,
) -> list[float]:
    """The mean held-out error of each, over some folds."""
    forms = list(dict.fromkeys(choice.form for choice in options))
    trials = [(form, held) for form in forms for held in held_folds]
    found: list[Any] = [None] * len(trials)
    with Progress("choosing the form of the inputs", len(trials), settings.verbose) as progress:

        def task(k: int) -> None:
            form, held = trials[k]
            kinds = [choice.kind for choice in options if choice.form == form]
            rng = settings.rng(2, held)
            shape = replace(inputs, name=form)
            found[k] = _trial(rows, fold == held, shape, kinds, settings, size, rng)
            progress.step({"loss": min(found[k].values())})

        parallel(task, len(trials))
    losses: dict[Choice, list[float]] = {choice: [] for choice in options}
    for (form, _), by_kind in zip(trials, found):
        for kind, loss in by_kind.items():
            losses[Choice(form, kind)].append(loss)
    return [float(np.mean(losses[choice])) for choice in options]


def _trial(
    rows: Examples,
    held: NDArray[np.bool_],
    form: InputForm,
    kinds: list[Kind],
    settings: FitSettings,
    size: TrialSize,
    rng: np.random.Generator,
) -> dict[Kind, float]:
    """The held-out error of kinds of metric, learned in short on the other rows from one start."""
    fit = rows.at(_some(np.flatnonzero(~held), size.rows, rng))
    judge = rows.at(_some(np.flatnonzero(held), size.rows, rng))
    x, x_held = form(fit.x, np.float32), form(judge.x, np.float32)
    y, y_held = fit.y.astype(np.float32), judge.y.astype(np.float32)
    m = min(settings.components, size.features)
    w = draw(settings.projection, x.shape[1], m, rng, np.float32)
    problem = Problem(x, y, fit.weights, w, form.scales)
    sketch = Sketch(x, y, fit.weights, x_held, y_held, judge.weights, w)
    rule = learn_settings(settings, max_iter=min(size.steps, settings.max_iter))
    basis, given = settings.basis, settings.coefficients
    fixed = not basis.learnable or given is not None
    if fixed:
        start = _not_learned(settings, x.shape[1])
    else:
        start = learn_activation(problem, basis, "diagonal", replace(rule, max_iter=0), rng=rng)
    losses: dict[Kind, float] = {}
    for kind in kinds:
        learned = start
        if kind != "none" or not fixed:
            first = replace(start, metric=np.diag(start.metric)) if kind == "full" else start
            learned = learn_activation(
                problem, basis, kind, rule, rng=rng, start=first, turns=TURNS
            )
        around = learned.alpha * 4.0 ** np.arange(-1, 4)
        alphas = around if settings.alpha is None else np.array([settings.alpha])
        sigma = compiled(basis, learned.coefficients)
        found = sketch_losses(sigma, learned.metric, alphas, sketch, settings.fit_intercept)
        losses[kind] = float(found.min())
    return losses


def _some(rows: Array, most: int, rng: np.random.Generator) -> Array:
    return rows if len(rows) <= most else np.sort(rng.choice(rows, most, replace=False))


def learn_layers(
    rows: Examples,
    fold: Array,
    held_folds: list[int],
    inputs: InputForm,
    choice: Choice,
    settings: FitSettings,
) -> list[FittedLayer]:
    """A layer for each of the folds, learned on the rows outside of it."""
    layers: list[Any] = [None] * len(held_folds)
    total = len(held_folds) * settings.max_iter
    with Progress("learning the activation", total, settings.verbose) as progress:

        def task(k: int) -> None:
            at = np.flatnonzero(fold != held_folds[k])
            rng = settings.rng() if k == 0 else settings.rng(3, k)
            start = None
            if settings.start is not None:  # each from its own, where there are as many
                learned = settings.start.learned
                start = learned[k] if len(learned) == len(layers) else learned[0]
            layers[k] = learn_layer(
                rows.at(at), inputs, choice, settings, rng, start, progress.step
            )

        parallel(task, len(held_folds))
    return layers


def learn_layer(
    rows: Examples,
    inputs: InputForm,
    choice: Choice,
    settings: FitSettings,
    rng: np.random.Generator,
    start: Learned | None = None,
    callback: Any = None,
) -> FittedLayer:
    """Learn on rows of positive weight."""
    few = len(rows.weights) < FEW_ROWS
    dtype = np.float64 if few and rows.x.dtype == np.float64 else np.float32
    form = replace(inputs, name=choice.form)
    x = form(rows.x, dtype)
    w = draw(settings.projection, x.shape[1], settings.components, rng, dtype)
    problem = Problem(x, rows.y.astype(dtype), rows.weights, w, form.scales)
    learned = _learn(problem, choice.kind, settings, rng, start, callback)
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
    kind: Kind,
    settings: FitSettings,
    rng: np.random.Generator,
    start: Learned | None,
    callback: Any,
) -> Learned:
    """Activation, metric and penalty, by what the number of rows allows."""
    basis, given = settings.basis, settings.coefficients
    d = problem.x.shape[1]
    rule = learn_settings(settings)
    if not settings.max_iter:
        return _not_learned(settings, d)
    if len(problem.weights) < FEW_ROWS:
        return start_on_few_rows(problem, basis, kind, rule)
    if kind == "none" and (not basis.learnable or given is not None):
        return _not_learned(settings, d)
    return learn_activation(problem, basis, kind, rule, rng=rng, start=start, callback=callback)


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
        sketches=1 if settings.n_members != 1 else 2,
    )
    return replace(rule, **changes)


def _not_learned(settings: FitSettings, d: int) -> Learned:
    given = settings.coefficients
    if given is None:
        given = settings.basis.fit(lambda z: np.cos(2.2 * z) + np.sin(2.2 * z), ridge=1e-8)
    alpha = 1e-3 if settings.alpha is None else settings.alpha
    return Learned(given, np.full(d, FILL / np.sqrt(max(d, 1))), alpha)


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

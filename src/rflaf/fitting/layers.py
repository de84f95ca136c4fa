"""From rows to layers: W drawn, activation, metric and first penalty learned."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rflaf import fused, rules
from rflaf.activation import Activation
from rflaf.bases import Basis
from rflaf.fitting.budget import known_bytes
from rflaf.fitting.honest import honest_scores
from rflaf.fitting.more_metrics import Metrics, apply_metrics, learn_more_metrics
from rflaf.fitting.settings import Choice, FitSettings
from rflaf.fitting.task import MemberRows, Regression, Task
from rflaf.inputs.forms import Form, Standardised
from rflaf.inputs.target_means import TargetMeans
from rflaf.projection import draw, places
from rflaf.rows import Block
from rflaf.runtime.progress import Progress
from rflaf.runtime.threads import parallel
from rflaf.solvers.features import apply_metric, as_array
from rflaf.solvers.objective import FeatureMap
from rflaf.solvers.sketches import Problem
from rflaf.solvers.starts import Kind, Learned, LearnSettings, compiled, start_on_few_rows
from rflaf.solvers.varpro import learn_activation

Array = NDArray[Any]

_COMPARED = 1000  # rows that tell columns apart


@dataclass(frozen=True)
class FittedLayer:
    """What makes features of inputs: their form, times `components`, and the activation."""

    form: Form
    means: TargetMeans | None  # what replaces codes of levels before the form is applied
    components: Array  # L W, d' × M
    activation: Activation
    metrics: Metrics  # L; several of them share the columns of W in turn
    kind: Kind  # of L
    alpha: float  # the penalty that learning ended with, as one of the loss
    history: list[dict[str, float]]  # the steps of learning
    coverage: float  # the share of Z inside the grid
    z_sample: Array  # some of Z
    fold: int = -1  # whose rows it has not seen
    team: int = 0  # layers that differ in their fold alone have the same
    # the median of the last losses of learning, at the best constant scores; NaN without any
    last_loss: float = np.nan

    @property
    def sigma(self) -> fused.Sigma:
        return self.activation.table()

    @property
    def metric(self) -> Array:
        return self.metrics[0]

    @property
    def origin(self) -> NDArray[np.intp]:
        """The input that each row of `components` belongs to."""
        origin = self.form.origin
        return origin if self.means is None else self.means.origin[origin]

    @property
    def axes(self) -> Array:
        """Directions that follow one column each, d' × d, as wide as those of the features."""
        axes = np.zeros((len(self.components), len(self.form.mean)), self.components.dtype)
        axes[np.arange(len(axes)), self.form.origin] = rules.FILL * self.form.along
        return axes

    @property
    def axis_scales(self) -> Array:
        """How far each column moves Z, relative to the others."""
        squares = np.square(self.components, dtype=np.float64).sum(axis=1)
        return np.sqrt(np.bincount(self.form.origin, squares, len(self.form.mean)))

    def inputs(self, x: Any, fold: Array | None = None) -> Any:
        """Inputs in their form, in the precision of the layer.

        `fold` names the inner folds of rows that the means of the target were learned from.
        """
        x = x if self.means is None else self.means(x, fold)
        return self.form(x, self.components.dtype)

    def scaled(self, factor: float, x: Any, rng: np.random.Generator) -> FittedLayer:
        """The layer with its metric times `factor`; `x` are inputs to measure Z on."""
        if factor == 1:
            return self
        components = (factor * self.components).astype(self.components.dtype)
        basis = self.activation.basis
        coverage, z = _measure_coverage(self.inputs(x), components, basis, rng)
        return replace(
            self,
            metrics=tuple(factor * metric for metric in self.metrics),
            components=components,
            coverage=coverage,
            z_sample=z,
        )


def learn_form(form: type[Form], task: Task) -> Form | None:
    """The form that all members share; None where each learns its own, from means of the target."""
    if task.settings.coded is not None:
        return None
    return form.learn(task.sample.x, task.sample.weights)


def learn_layers(task: Task, chosen: list[Choice]) -> list[FittedLayer]:
    """For each choice a layer for each fold, learned on the rows outside of it."""
    settings, folds = task.settings, task.folds.of_member
    shared = {choice.form: learn_form(choice.form, task) for choice in chosen}
    places = [(team, k) for team in range(len(chosen)) for k in range(len(folds))]
    layers: list[Any] = [None] * len(places)
    least = min(int(np.count_nonzero(task.fold != fold)) for fold in folds)
    # for all members, so that they are of one kind
    learnable = settings.holds_out and least >= rules.LEARNABLE_ROWS
    rounds = 1 + rules.FIRST_STEPS * learns_twice(task, least)
    total = round(len(places) * rounds * settings.max_iter)
    with Progress("learning the activation", total, settings.verbose) as progress:

        def learn(i: int, attempt: int = 0) -> FittedLayer:
            team, k = places[i]
            choice = chosen[team]
            start = settings.start
            if start is not None and chosen is start.choices:  # each from its own
                learned = start.learned[team]
                own = learned[k] if len(learned) == len(folds) else learned[0]
                choice = replace(choice, start=own)
            purpose = (3, i, attempt)[: 3 if attempt else 2] if i or attempt else ()
            learner = MemberLearner(
                task=task,
                choice=choice,
                rng=settings.rng(*purpose),
                known_bytes=known_bytes(settings.max_bytes) // len(places),
                learnable=learnable,
                callback=progress.step,
            )
            layer = learner.layer(task.member_rows(folds[k]), shared[choice.form])
            return replace(layer, fold=folds[k], team=team)

        def first(i: int) -> None:
            layers[i] = learn(i)

        parallel(first, len(places))
        for attempt in range(1, rules.RESTARTS + 1):
            behind = _left_behind(layers, chosen)

            def again(k: int, behind: list[int] = behind, attempt: int = attempt) -> None:
                other = learn(behind[k], attempt)
                if other.last_loss < layers[behind[k]].last_loss:
                    layers[behind[k]] = other

            parallel(again, len(behind))
    return layers


def _last_loss(learned: Learned) -> float:
    """The median of the last losses of the first round: a second one has a unit of its own."""
    last = [record["loss"] for record in learned.history[: learned.before][-8:]]
    return float(np.median(last)) if last else np.nan


def _left_behind(layers: list[FittedLayer], chosen: list[Choice]) -> list[int]:
    """Layers whose learning ended far above that of their team, or of the trial of their form.

    Where few inputs matter, and only together, learning may never leave its start. Losses are of
    the member's own rows, that of the trial of the first fold. Where hardly anything is left to be
    learned, nothing is repeated.
    """
    behind = []
    for team, choice in enumerate(chosen):
        at = [i for i, layer in enumerate(layers) if layer.team == team]
        middle = float(np.median([layers[i].last_loss for i in at]))
        usual = max(min(middle, rules.TRIAL_BEHIND * choice.trial_loss), rules.NOTHING_LEFT)
        behind += [i for i in at if layers[i].last_loss > rules.LEFT_BEHIND * usual]
    return behind


def learns_twice(task: Task, rows: int) -> bool:
    """Whether layers of this number of rows are learned twice, the second time at honest scores."""
    slow = not (task.loss.quadratic or task.settings.share.short)
    return slow and rows >= rules.WORKING_ROWS


@dataclass(frozen=True)
class MemberLearner:
    """Learns the layer of one member."""

    task: Task
    choice: Choice
    rng: np.random.Generator
    known_bytes: int
    learnable: bool
    callback: Any = None

    def layer(self, member: MemberRows, form: Form | None) -> FittedLayer:
        """A layer for rows of positive weight, which may be too few for more than a choice."""
        settings, rows = self.task.settings, member.rows
        exact = not self.learnable and rows.x.dtype == np.float64
        dtype = np.float64 if exact else np.float32
        if form is None:
            form = own_form(self.choice.form, rows.x, rows.weights)
        x = form(rows.x, dtype)
        given = member.first.rows._replace(x=x)
        w = draw_layer(settings, given, settings.components, self.rng, dtype)
        member = member._replace(rows=rows._replace(x=x))
        learned, unit = self._learned(member, form, w)
        metrics = self._metrics(member, form, learned, unit, w)
        kind = self.choice.kind
        if np.ndim(learned.metric) == 1 and kind == "full":  # few rows: no more than scales
            kind = "diagonal" if settings.max_iter else "none"
        components = apply_metrics(metrics, w).astype(dtype)
        coverage, z = _measure_coverage(x, components, settings.basis, self.rng)
        return FittedLayer(
            form=form,
            means=member.means,
            components=components,
            activation=Activation(settings.basis, learned.coefficients),
            metrics=metrics,
            kind=kind,
            alpha=learned.alpha * unit,
            history=learned.history,
            coverage=coverage,
            z_sample=z,
            last_loss=_last_loss(learned),
        )

    def _learned(self, member: MemberRows, form: Form, w: Array) -> tuple[Learned, float]:
        """What the rows allow to learn, and the factor that makes its penalty one of the loss."""
        settings, x = self.task.settings, member.rows.x
        first = member.first._replace(rows=member.first.rows._replace(x=x))
        problem = _problem(first, w, form)
        if settings.max_iter and not self.learnable:
            rule = learn_settings(settings, first.unit)
            return start_on_few_rows(problem, settings.basis, self.choice.kind, rule), first.unit
        fixed = self.choice.kind == "none" and not settings.learns_activation
        if not settings.max_iter or fixed:
            return not_learned(settings, x.shape[1]), first.unit
        start = self.choice.start
        if start is not None and start.suits(x.shape[1]):  # if not, it is of a form of other rows
            start = replace(start.of_kind(self.choice.kind), alpha=start.alpha / first.unit)
        else:
            start = None
        if not learns_twice(self.task, x.shape[0]):
            return self._learn(problem, first.unit, start, short=settings.share.short), first.unit
        steps = round(rules.FIRST_STEPS * settings.max_iter)
        learned = self._learn(problem, first.unit, start, max_iter=steps, short=True)
        second = self._second(member, first, learned, w) or first
        learned = replace(learned, alpha=learned.alpha * first.unit / second.unit)
        again = self._learn(_problem(second, w, form), second.unit, learned)
        history = learned.history + again.history
        return replace(again, history=history, before=len(learned.history)), second.unit

    def _metrics(
        self, member: MemberRows, form: Form, learned: Learned, unit: float, w: Array
    ) -> Metrics:
        """The metric, and more of them where it has left something."""
        settings, kind = self.task.settings, self.choice.kind
        if not (self.learnable and settings.max_iter and kind != "none"):
            return (learned.metric,)
        a, rows = learned.coefficients, member.first.rows._replace(x=member.rows.x)
        problem = _problem(member.first._replace(rows=rows), w, form)
        first = replace(learned, alpha=learned.alpha * unit)
        uncounted = replace(self, callback=None)  # nobody knows beforehand that there are these

        def learn(left: Regression, steps: int, start: Learned | None) -> Learned:
            changes = {"coefficients": a, "max_iter": steps, "short": True}
            return uncounted._learn(_problem(left, w, form), left.unit, start, **changes)

        return learn_more_metrics(
            self.task, member, problem, compiled(settings.basis, a), first, self.rng, learn
        )

    def _second(
        self, member: MemberRows, first: Regression, learned: Learned, w: Array
    ) -> Regression | None:
        """The loss's quadratic model at honest scores of a first layer; None where it has none."""
        settings = self.task.settings
        sigma = compiled(settings.basis, learned.coefficients)
        w = apply_metric(learned.metric, w).astype(w.dtype)
        features = FeatureMap(sigma, w, float(settings.fit_intercept))
        scores = honest_scores(member, self.task.loss, features, learned.alpha * first.unit)
        if scores is None:
            return None
        flattest = rules.FLATTEST * 2 * first.unit  # the unit is half the curvature
        return self.task.regression(member.rows, scores, flattest=flattest)

    def _learn(
        self, problem: Problem, unit: float, start: Learned | None, **changes: Any
    ) -> Learned:
        settings = self.task.settings
        rule = learn_settings(settings, unit, known_bytes=self.known_bytes, **changes)
        return learn_activation(
            *(problem, settings.basis, self.choice.kind, rule),
            rng=self.rng,
            start=start,
            callback=self.callback,
        )


def draw_layer(
    settings: FitSettings, rows: Block, m: int, rng: np.random.Generator, dtype: Any
) -> Array:
    """W for rows in their form, d × m; the order of their columns does not matter."""
    w = draw(settings.projection, rows.x.shape[1], m, rng, dtype)
    some = rows.at(slice(_COMPARED))
    return w[places(as_array(some.x), some.y, some.weights)]


def own_form(form: type[Form], x: Any, weights: Array) -> Form:
    """A form of rows that offers them something; standardised columns always do."""
    return form.learn(x, weights) or Standardised.learn(x, weights)


def _problem(given: Regression, w: Array, form: Form) -> Problem:
    rows = given.rows
    return Problem(rows._replace(y=rows.y.astype(w.dtype)), w, form.scales)


def learn_settings(settings: FitSettings, unit: float, **changes: Any) -> LearnSettings:
    """The settings of learning a layer; `unit` is that of its regression."""
    rule = LearnSettings(
        alpha=None if settings.alpha is None else settings.alpha / unit,
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
    return Learned(given, np.full(d, rules.FILL / np.sqrt(max(d, 1))), 1e-3)


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

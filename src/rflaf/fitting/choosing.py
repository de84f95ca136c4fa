"""Which form of the inputs and which kind of metric suit the rows, by trials in short."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rflaf.fitting.learn import Examples, learn_settings, not_learned
from rflaf.fitting.settings import Choice, FitSettings
from rflaf.inputs.form import InputForm
from rflaf.projection import draw
from rflaf.runtime.progress import Progress
from rflaf.runtime.threads import parallel
from rflaf.solvers.sketches import Problem, Sketch
from rflaf.solvers.starts import Kind, Learned, SketchRidge, compiled
from rflaf.solvers.varpro import TURNS, learn_activation

Array = NDArray[Any]


class TrialSize(NamedTuple):
    """Steps of learning, rows at most, and features by whose ridge solution a trial is judged."""

    steps: int
    rows: int
    features: int


_TRIAL = TrialSize(10, 6000, 400)
_WELL_TRIED = 6000  # rows up to which a trial is judged on two folds: one alone is too few rows
_FAR_BEHIND = 1.2  # times the least loss on one fold; then the other is not tried
_ROWS_PER_BIN = 2  # that a scale for each bin takes
_OWN_STARTS = 1000  # rows up to which the choice of a start is chance, and several are better
_MANY = 10_000  # rows beyond which a metric is always learned; of a full one, which learns longer
_HEAD_START = 0.97  # than trials last, so much of the loss is counted then
_MIXED = 1.4  # times the best loss: bins that are worse add nothing to a mean with the best
MOST_INPUTS = {"full": 128, "diagonal": 512}  # more of them are too many unknowns


def choices(inputs: InputForm, n: int, settings: FitSettings) -> list[Choice]:
    """What may be taken for n rows, the one with fewest unknowns first; bins come last."""
    found: list[Choice] = []
    automatic = settings.input_form == "auto"
    for form in ("raw", "both") if automatic else (settings.input_form,):
        if form != "raw" and not len(inputs.ranked) and automatic:
            continue
        d = len(replace(inputs, name=form).origin)
        found += [Choice(form, kind) for kind in metric_kinds(settings.metric, n, d)]
    order = ("none", "diagonal", "full")
    found.sort(key=lambda choice: (order.index(choice.kind), choice.form != "raw"))
    if automatic and inputs.bins is not None and settings.metric != "full":
        many = len(replace(inputs, name="bins").origin)
        kind: Kind = "diagonal" if _ROWS_PER_BIN * many <= n else "none"
        if settings.metric in ("auto", kind):
            found.append(Choice("bins", kind))
        if n > _MANY and settings.metric == "auto":
            found = [c for c in found if c.kind != "none"]
    return found


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


def choose_forms(
    rows: Examples,
    fold: Array,
    held_folds: list[int],
    inputs: InputForm,
    settings: FitSettings,
) -> tuple[list[Choice], list[dict[str, Any]]]:
    """The form and the kind with the least error on rows that they have not learned from.

    With many rows a full metric has a head start.

    Each is learned in short, on rows outside a fold, and judged on those inside by a ridge
    regression. Bins are another thing than the smooth forms, so that the mean of both is often
    better than either: where forms may be mixed, both are taken, the better one first. Returns
    what was tried, too.
    """
    n = len(rows.weights)
    options = choices(inputs, n, settings)
    if len(options) == 1:
        return options, []
    trials = _Trials(rows, fold, inputs, settings, _TRIAL)
    starts = trials.starts([c.form for c in options], held_folds[0])
    losses = trials.losses(options, held_folds[0], starts)
    if n <= _WELL_TRIED and len(held_folds) > 1:
        again = _not_far_behind(losses)
        second = trials.losses(again, held_folds[1], starts)
        both = {c: (losses[c] + second[c]) / 2 for c in again}
        # so much more than on the first fold, or the best of what is left out would come closer
        more = max([both[c] / losses[c] for c in again if 0 < losses[c] < np.inf], default=np.inf)
        losses = {c: both.get(c, more * loss) for c, loss in losses.items()}
    path = [{"form": c.form, "kind": c.kind, "loss": loss} for c, loss in losses.items()]
    found = _mixed(losses, n, settings)
    if n <= _OWN_STARTS:  # each member may look for its own
        return found, path
    return [replace(choice, start=starts[choice.form]) for choice in found], path


def _not_far_behind(losses: dict[Choice, float]) -> list[Choice]:
    """What another fold might make the best, of smooth forms and of bins."""
    smooth = min((loss for c, loss in losses.items() if c.form != "bins"), default=np.inf)
    least = min(losses.values())
    limits = {c: _MIXED * least if c.form == "bins" else smooth for c in losses}
    return [c for c, loss in losses.items() if loss <= _FAR_BEHIND * limits[c]]


def _mixed(losses: dict[Choice, float], n: int, settings: FitSettings) -> list[Choice]:
    """The best smooth form and another to mix it with; of equals the one with fewest unknowns."""
    counted = {
        c: loss * (_HEAD_START if c.kind == "full" and n > _MANY else 1)
        for c, loss in losses.items()
    }
    bins = [c for c in losses if c.form == "bins" and settings.input_form == "auto"]
    smooth = min((c for c in losses if c not in bins), key=lambda choice: counted[choice])
    found = sorted([smooth, *bins], key=lambda choice: losses[choice])
    if not settings.mixes:
        return found[:1]
    if not bins:  # all columns have few values: a model without a learned map differs most
        return found + [c for c in losses if c.kind == "none" and c != smooth][:1]
    return [c for c in found if losses[c] <= _MIXED * losses[found[0]]]


@dataclass(frozen=True)
class _Trials:
    """Short fits of one size."""

    rows: Examples
    fold: Array
    inputs: InputForm
    settings: FitSettings
    size: TrialSize

    def starts(self, forms: Iterable[str], held: int) -> dict[str, Learned]:
        """Where learning starts from, in each form; on the rows outside a fold."""
        names = list(dict.fromkeys(forms))
        found: list[Any] = [None] * len(names)

        def task(k: int) -> None:
            trial = self._trial(names[k], held)
            found[k] = trial.start()

        parallel(task, len(names))
        return dict(zip(names, found))

    def losses(
        self, options: list[Choice], held: int, starts: dict[str, Learned]
    ) -> dict[Choice, float]:
        """The held-out error of each."""
        found = dict.fromkeys(options, np.inf)
        longest = sorted(options, key=lambda c: ("full", "diagonal", "none").index(c.kind))
        verbose = self.settings.verbose
        with Progress("choosing the form of the inputs", len(options), verbose) as progress:

            def task(k: int) -> None:
                choice = longest[k]
                trial = self._trial(choice.form, held)
                found[choice] = trial.loss(choice.kind, starts[choice.form])
                progress.step({"loss": found[choice]})

            parallel(task, len(options))
        return found

    def _trial(self, form: str, held: int) -> _Trial:
        rng = self.settings.rng(2, held)
        shape = replace(self.inputs, name=form)
        inside = self.fold == held
        fit = self.rows.at(_some(np.flatnonzero(~inside), self.size.rows, rng))
        judge = self.rows.at(_some(np.flatnonzero(inside), self.size.rows, rng))
        x, x_held = shape(fit.x, np.float32), shape(judge.x, np.float32)
        y, y_held = fit.y.astype(np.float32), judge.y.astype(np.float32)
        m = min(self.settings.components, self.size.features)
        w = draw(self.settings.projection, x.shape[1], m, rng, np.float32)
        problem = Problem(x, y, fit.weights, w, shape.scales)
        sketch = Sketch(x, y, fit.weights, x_held, y_held, judge.weights, w)
        return _Trial(problem, sketch, self.settings, self.size.steps, rng)


@dataclass(frozen=True)
class _Trial:
    """Rows to learn from in one form, and rows to judge by."""

    problem: Problem
    sketch: Sketch
    settings: FitSettings
    steps: int
    rng: np.random.Generator

    def start(self) -> Learned:
        if self._fixed:
            return not_learned(self.settings, self.problem.x.shape[1])
        rule = learn_settings(self.settings, max_iter=0)
        basis = self.settings.basis
        return learn_activation(self.problem, basis, "diagonal", rule, rng=self.rng)

    def loss(self, kind: Kind, start: Learned) -> float:
        """The held-out error of a kind of metric, learned in short."""
        settings = self.settings
        learned = start
        if kind != "none" or not self._fixed:
            rule = learn_settings(settings, max_iter=min(self.steps, settings.max_iter))
            learned = learn_activation(
                *(self.problem, settings.basis, kind, rule),
                rng=self.rng,
                start=start.of_kind(kind),
                turns=TURNS,
            )
        sigma = compiled(settings.basis, learned.coefficients)
        ridge = SketchRidge(sigma, learned.metric, self.sketch, settings.fit_intercept)
        if settings.alpha is not None:
            return ridge.loss(settings.alpha)
        return ridge.lowest(learned.alpha * 4.0 ** np.arange(-1, 4), 1)[1]

    @property
    def _fixed(self) -> bool:
        return not self.settings.basis.learnable or self.settings.coefficients is not None


def _some(rows: Array, most: int, rng: np.random.Generator) -> Array:
    return rows if len(rows) <= most else np.sort(rng.choice(rows, most, replace=False))

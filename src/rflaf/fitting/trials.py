"""Which form of the inputs and which kind of metric suit the rows, by short trial fits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rflaf import rules
from rflaf.fitting.layers import draw_layer, learn_form, learn_settings, not_learned, own_form
from rflaf.fitting.settings import Choice
from rflaf.fitting.task import Task
from rflaf.inputs.forms import AUTOMATIC, Form, Standardised
from rflaf.rows import Block
from rflaf.rows.sample import some_of
from rflaf.runtime.progress import Progress
from rflaf.runtime.threads import parallel
from rflaf.solvers.sketches import Problem, Sketch, sketch_ridge
from rflaf.solvers.starts import Kind, Learned, compiled, lowest
from rflaf.solvers.varpro import learn_activation

Losses = dict[Choice, float]

_KINDS: tuple[Kind, ...] = ("none", "diagonal", "full")  # the one with fewest unknowns first


def choose_forms(task: Task) -> tuple[list[Choice], list[dict[str, Any]]]:
    """The form and the kind of metric of each team, and what was tried.

    Each choice is learned for a few steps on rows outside a fold, and judged by the error of a
    ridge regression on the rows inside. A form that is not smooth makes other errors than a smooth
    one, so that the mean of both is often better than either: where forms may be mixed, the best of
    each sort is taken, the better one first.
    """
    settings, first = task.settings, Trials(task, task.folds.of_member[0])
    options = first.options()
    start = settings.start
    if start is not None and _suits(start.choices, options, first):
        return start.choices, []
    if not settings.holds_out or not settings.max_iter or not settings.share.trials:
        plain = settings.input_form or Standardised
        simple = [choice for choice in options if choice.form is plain] or options
        return simple[-1:], []
    if len(options) == 1:
        return options, []
    losses = first.losses(options)
    path = [{"form": c.form.name, "kind": c.kind, "loss": loss} for c, loss in losses.items()]
    # few held-out rows cannot say that a form is out of the question, and its members cost little
    few = len(task.sample.weights) <= rules.MIXED_ROWS
    best = _best_of_each_sort(losses, settings.mixes, np.inf if few else rules.MIXED_LOSS)
    return [replace(choice, trial_loss=losses[choice]) for choice in best], path


def _best_of_each_sort(losses: Losses, mixes: bool, most: float) -> list[Choice]:
    """The best smooth form and the best other one; of equals the one with fewest unknowns.

    The second may have up to `most` times the loss of the first.
    """
    sorts = [[c for c in losses if c.form.smooth == smooth] for smooth in (True, False)]
    best = [min(sort, key=lambda choice: losses[choice]) for sort in sorts if sort]
    best.sort(key=lambda choice: losses[choice])
    if not mixes:
        return best[:1]
    if len(best) == 1:  # a model without a learned map differs most
        plain = [c for c in losses if c.kind == "none" and c not in best]
        return best + plain[:1]
    return [c for c in best if c is best[0] or not losses[c] > most * losses[best[0]]]


def _suits(choices: list[Choice], options: list[Choice], trials: Trials) -> bool:
    """Whether what an earlier fit has learned is of a kind that is possible now."""
    settings = trials.task.settings
    start, given = settings.start, settings.coefficients
    assert start is not None
    if len(choices) > 1 and not settings.mixes:
        return False
    if start.basis != settings.basis:
        return False
    if given is not None and not np.array_equal(given, start.learned[0][0].coefficients):
        return False
    for choice, learned in zip(choices, start.learned):
        if choice not in options:
            return False
        width = len(trials.forms[choice.form].origin)
        if not all(each.suits(width) for each in learned):
            return False
    return True


class Trials:
    """Short fits on the rows outside a fold, judged on those inside."""

    def __init__(self, task: Task, fold: int) -> None:
        self.task, self.fold = task, fold
        self.member = task.member_rows(fold)
        settings, rows = task.settings, self.member.rows
        wanted = AUTOMATIC if settings.input_form is None else (settings.input_form,)
        learned: dict[type[Form], Form | None] = {}
        for form in wanted:
            shared = learn_form(form, task)
            learned[form] = shared or form.learn(rows.x, rows.weights)
        self.forms = {form: own for form, own in learned.items() if own is not None}
        if not self.forms:
            self.forms = {Standardised: own_form(Standardised, rows.x, rows.weights)}

    def options(self) -> list[Choice]:
        """What may be taken for these rows: smooth forms first, then those with fewest unknowns."""
        settings, n = self.task.settings, len(self.task.sample.weights)
        options: list[Choice] = []
        for form, own in self.forms.items():
            kinds = self._kinds(own, n)
            options += [Choice(form, kind) for kind in kinds]
        options.sort(key=lambda c: (not c.form.smooth, _KINDS.index(c.kind)))
        several = len({choice.form.smooth for choice in options}) > 1
        if n > rules.ALWAYS_METRIC and settings.metric == "auto" and several:
            learned = [choice for choice in options if choice.kind != "none"]
            return learned or options
        return options

    def _kinds(self, form: Form, n: int) -> list[Kind]:
        """The kinds of metric that n rows may tell."""
        metric, d = self.task.settings.metric, len(form.origin)
        if not form.smooth and self.task.settings.input_form is None:
            # a scale per result is the idea of such a form, and a full metric never is
            kind: Kind = "diagonal" if rules.ROWS_PER_BIN * d <= n else "none"
            return [kind] if metric in ("auto", kind) else []
        if metric != "auto":
            return [metric]  # type: ignore[list-item]
        kinds: list[Kind] = ["none"]
        if d <= rules.METRIC_ROWS["diagonal"] and rules.ROWS_PER_SCALE * d <= n:
            kinds.append("diagonal")
        if d <= rules.METRIC_ROWS["full"] and d * d <= n:
            kinds.append("full")
        return kinds

    def losses(self, options: list[Choice]) -> Losses:
        losses = dict.fromkeys(options, np.inf)
        forms = list(dict.fromkeys(choice.form for choice in options))
        starts: dict[type[Form], Learned] = {}
        longest = sorted(options, key=lambda choice: -_KINDS.index(choice.kind))
        verbose = self.task.settings.verbose
        with Progress("choosing the form of the inputs", len(options), verbose) as progress:

            def begin(k: int) -> None:
                starts[forms[k]] = self._trial(forms[k]).start()

            def end(k: int) -> None:
                choice = longest[k]
                losses[choice] = self._trial(choice.form).loss(choice.kind, starts[choice.form])
                progress.step({"loss": losses[choice]})

            parallel(begin, len(forms))
            parallel(end, len(options))
        return losses

    def _trial(self, form: type[Form]) -> Trial:
        task, member, own = self.task, self.member, self.forms.get(form)
        if own is None:  # other rows had this form, and these have nothing for it
            own = own_form(form, member.rows.x, member.rows.weights)
        rng, sample = task.settings.rng(2, self.fold), task.sample
        share = task.settings.share.trials
        most = round(share * rules.TRIAL_ROWS)
        given = member.first.rows.at(some_of(len(member.rows.weights), most, rng))
        inside = np.flatnonzero(task.fold == self.fold)
        inside = inside[some_of(len(inside), most, rng)]
        x = sample.x[inside] if member.means is None else member.means(sample.x[inside])
        others = Block(0, x, sample.y[inside], sample.weights[inside])
        judge = task.regression(others, member.constant, like=member.first).rows
        fit, held_out = (
            rows._replace(x=own(rows.x, np.float32), y=rows.y.astype(np.float32))
            for rows in (given, judge)
        )
        m = min(task.settings.components, round(share * rules.TRIAL_FEATURES))
        w = draw_layer(task.settings, fit, m, rng, np.float32)
        return Trial(
            Problem(fit, w, own.scales), Sketch(fit, held_out, w), member.first.unit, task, rng
        )


@dataclass(frozen=True)
class Trial:
    """Rows to learn from in one form, and rows to judge by."""

    problem: Problem
    sketch: Sketch
    unit: float
    task: Task
    rng: np.random.Generator

    def start(self) -> Learned:
        """The best of a few activations and scales."""
        settings = self.task.settings
        if not settings.learns_activation:
            return not_learned(settings, self.problem.rows.x.shape[1])
        rule = learn_settings(settings, self.unit, max_iter=0)
        return learn_activation(self.problem, settings.basis, "diagonal", rule, rng=self.rng)

    def loss(self, kind: Kind, start: Learned) -> float:
        """The held-out error of a kind of metric, after a few steps."""
        settings, learned = self.task.settings, start
        if kind != "none" or settings.learns_activation:
            steps = min(round(settings.share.trials * rules.TRIAL_STEPS), settings.max_iter)
            rule = learn_settings(settings, self.unit, max_iter=steps)
            learned = learn_activation(
                *(self.problem, settings.basis, kind, rule),
                rng=self.rng,
                start=start.of_kind(kind),
                turns=rules.TURNS,
            )
        sigma = compiled(settings.basis, learned.coefficients)
        ridge, _ = sketch_ridge(sigma, learned.metric, self.sketch, settings.fit_intercept)
        if settings.alpha is not None:
            return ridge.loss(settings.alpha / self.unit)
        return lowest(ridge.loss, learned.alpha * 4.0 ** np.arange(-1, 4), 1)[1]

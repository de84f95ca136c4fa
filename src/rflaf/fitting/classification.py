"""The way from rows to a classification model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from rflaf import fused
from rflaf.fitting import budget
from rflaf.fitting.classes import ClassEncoding, ClassTally
from rflaf.fitting.growing import Growth, grow, layer_objective
from rflaf.fitting.importance import input_importances
from rflaf.fitting.learn import Examples, FittedLayer
from rflaf.fitting.members import (
    FoldPlan,
    InputsOnce,
    Member,
    Seat,
    few_rows,
    learn_members,
    mix_teams,
    out_of_fold,
    plan_folds,
    resolve,
    rotations,
    teams_of,
    weighted,
)
from rflaf.fitting.settings import FitSettings
from rflaf.inputs.scaling import column_moments
from rflaf.rows import ArrayRows, Block, Rows, Sample
from rflaf.runtime.threads import parallel, use_threads
from rflaf.solvers.features import check_finite, project
from rflaf.solvers.laplace import known_weights
from rflaf.solvers.result import Solution
from rflaf.solvers.softmax import (
    ClassRows,
    SoftmaxProblem,
    SoftmaxSettings,
    cross_entropy,
    fit_softmax,
)
from rflaf.solvers.softmax_few import fit_few

Array = NDArray[Any]

_FEW_ROWS_PENALTY = 1e-4  # of the features' total variance, where no rows can be held out
# Times the penalty of least squares: half of it would do near the least of the cross-entropy, but
# classes that are told apart well want more, and coming from strong penalties costs fewer steps.
_STRONGER = 8.0
_HOTTEST = 3.0  # what scores are divided by, or multiplied by, at most


@dataclass(frozen=True)
class ClassificationFit:
    """A fitted classification model.

    Attributes
    ----------
    members : list of Member
        With two classes there is one output, the log-odds of the second.
    classes : array
    alpha_path, form_path : list of dict
        Penalties, and forms and kinds, that were tried, with their held-out losses.
    oof_scores : array, n × C
        For each row of the sample the scores of a model that has not seen it; NaN where every
        member has.
    oof_score : float
        The share of these rows whose class they find.
    temperature : float
        What the scores were divided by, for these rows' sake.
    importances : array of d
    rows_seen : int
        Rows that were read, those of no weight among them.
    growth : Growth, optional
        What more rows go on from.
    """

    members: list[Member]
    classes: Array
    alpha_path: list[dict[str, Any]]
    form_path: list[dict[str, Any]]
    oof_scores: Array
    oof_score: float
    temperature: float
    importances: Array
    rows_seen: int = 0
    growth: Growth | None = None


@dataclass(frozen=True)
class PrepareClasses:
    """Rows of positive weight in their form, with classes as numbers; without those of `fold`."""

    layer: FittedLayer
    encoding: ClassEncoding
    seed: int
    plan: FoldPlan
    fold: int | None

    def __call__(self, block: Block) -> Block:
        codes, weights = self.encoding.encode(block.y, block.weights)
        x, used = block.x, weights > 0
        if self.fold is not None:
            used &= self.plan.folds(block.fold_keys(self.seed)) != self.fold
        if not used.all():
            x, codes, weights = x[used], codes[used], weights[used]
        return Block(block.start, self.layer.inputs(x), codes, weights)


@dataclass(frozen=True)
class _Task:
    """What the steps of a fit share."""

    sample: Sample  # with classes as numbers
    fold: NDArray[np.intp]
    plan: FoldPlan
    encoding: ClassEncoding
    spread: float  # of the classes as numbers
    settings: FitSettings


def fit_classification(rows: Rows, settings: FitSettings, grows: bool = False) -> ClassificationFit:
    """Learn a model of rows and their classes.

    One pass draws a sample and counts the classes. On the sample the form of the inputs is chosen,
    and activation and metric of each member are learned with the classes as numbers; then comes
    logistic regression, whose penalty held-out rows choose. Its last fit takes all rows, in as
    many passes as it has steps. A model that `grows` keeps what more rows go on from.
    """
    max_bytes = settings.max_bytes
    if settings.n_components is not None:
        budget.check_gram(settings.n_components, max_bytes)
    sample = rows.sample(lambda x: budget.sample_rows(x, max_bytes), settings.seed, ClassTally)
    encoding: ClassEncoding = sample.tally.encoding(settings.class_weight)
    codes, weights = encoding.encode(sample.y, sample.weights)
    coded = replace(sample, y=codes, weights=weights).where(weights > 0)
    # of all rows as many count as of the sample's
    used = round(sample.used * len(coded.y) / len(sample.y))
    settings = resolve(settings, used, False, few_rows(coded))
    plan = plan_folds(coded, settings)
    fold = plan.folds(coded.keys)
    budget.check_fit(
        sample.used, coded.x.shape[1], len(encoding.classes), settings.components,
        len(plan.held) * (1 + settings.mixes), wide=False,
    )  # fmt: skip
    with use_threads(settings.n_jobs):
        numbers, spread = encoding.as_numbers(coded.y, coded.weights)
        examples = Examples(coded.x, numbers, coded.weights)
        seats, form_path = learn_members(examples, fold, plan, settings)
        if grows:
            seats = [seat for seat in seats if not seat.layer.linear]
        task = _Task(coded, fold, plan, encoding, spread, settings)
        if sample.whole and not settings.holds_out:
            solutions = [_solve_few(seats[0].layer, task)]
        else:
            solutions = _solve(seats, None if sample.whole else rows, task)
        fit = _calibrated(seats, solutions, task)
        if grows:
            growth = _growth(fit, seats, solutions, None if sample.whole else rows, task)
            fit = replace(fit, growth=growth)
    return replace(fit, form_path=form_path, rows_seen=sample.seen)


def extend_classification(
    fit: ClassificationFit, x: Any, y: Array, weights: Array, settings: FitSettings
) -> ClassificationFit:
    """Add rows to a fit that grows; what unseen rows have told of it stays."""
    assert fit.growth is not None
    growth, members = grow(fit.growth, fit.members, x, y, weights, settings)
    return replace(fit, growth=growth, members=members)


def _solve_few(layer: FittedLayer, task: _Task) -> Solution:
    sample, settings = task.sample, task.settings
    z = project(layer.inputs(sample.x), layer.components)
    phi = fused.apply(layer.sigma, z, out=z)
    alpha = settings.alpha
    if alpha is None:  # nothing can be held out
        spread = column_moments(phi, sample.weights)[1]
        check_finite(float(spread @ spread))
        alpha = max(_FEW_ROWS_PENALTY * float(spread @ spread), 1e-6)
    n_classes = len(task.encoding.classes)
    return fit_few(phi, sample.y, sample.weights, n_classes, alpha, settings.fit_intercept)


def _solve(seats: list[Seat], rows: Rows | None, task: _Task) -> list[Solution]:
    """Output weights of all members; `rows` are all rows, where the sample is but a part."""
    sample, plan, settings = task.sample, task.plan, task.settings
    size = budget.block_rows(settings.components, sample.width, settings.max_bytes)
    room = budget.kept_bytes(settings.max_bytes)
    at_hand = None if rows is None else rows.held(room)
    turned = rotations(seats, sample, task.fold, plan)
    exact = sample.used * settings.components <= budget.EXACT_OF_CLASSES
    problems = []
    inputs = InputsOnce(sample.x)
    for seat, rotation in zip(seats, turned):
        layer, inside = seat.layer, task.fold == seat.fold
        x = inputs.of(layer)
        fit, judge = (_class_rows(sample, x, at, size) for at in (~inside, inside))
        every = None if at_hand is None else _every(seat, at_hand, task, size)
        w = layer.components.astype(np.float64) if exact else layer.components
        judge_or_none = judge if judge.weight > 0 else None
        start = float(np.clip(_STRONGER * task.spread**2 * layer.alpha, 1e-9, 1.0))
        problems.append(
            SoftmaxProblem(
                layer.sigma, w, fit, judge_or_none, every, start, rotation, held_too=plan.single
            )
        )
    rule = SoftmaxSettings(
        n_classes=len(task.encoding.classes),
        alpha=settings.alpha,
        fit_intercept=settings.fit_intercept,
        room=room // len(teams_of(seats)),
    )
    solutions: list[Any] = [None] * len(seats)
    teams = teams_of(seats)

    def solve(number: int) -> None:
        team = teams[number]
        middle = float(np.exp(np.median([np.log(problems[k].start_alpha) for k in team])))
        found = fit_softmax([replace(problems[k], start_alpha=middle) for k in team], rule)
        for k, solution in zip(team, found):
            solutions[k] = solution

    if at_hand is None:
        parallel(solve, len(teams))
    else:  # rows that are read anew: one pass at a time
        for number in range(len(teams)):
            solve(number)
    return solutions


def _every(seat: Seat, rows: Rows, task: _Task, size: int) -> ClassRows:
    """All rows, which the sample is but a part of, for the last fit of a member."""
    plan, weights = task.plan, task.sample.weights
    fold = None if plan.single else seat.fold
    prepare = PrepareClasses(seat.layer, task.encoding, task.settings.seed, plan, fold)
    seen = weights.sum() if plan.single else weights[task.fold != seat.fold].sum()
    share = float(seen / weights.sum())
    return ClassRows(rows, task.encoding.total * share, size, prepare)


def _class_rows(sample: Sample, x: Any, at: Any, size: int) -> ClassRows:
    """Some of the sample's rows, with inputs in their form."""
    weights = sample.weights[at]
    return ClassRows(ArrayRows(x[at], sample.y[at], weights), float(weights.sum()), size)


def _calibrated(seats: list[Seat], solutions: list[Solution], task: _Task) -> ClassificationFit:
    """The fit, with out-of-fold scores, and weights divided by the temperature that suits them."""
    sample, fold, intercept = task.sample, task.fold, task.settings.fit_intercept
    outputs = solutions[0].coef.shape[1]
    judges = [
        None if s.honest is None else Member(seat, s.honest[:-1], s.honest[-1] * intercept, s.alpha)
        for seat, s in zip(seats, solutions)
    ]
    by_team = out_of_fold(judges, sample, fold, outputs)
    seen = np.isfinite(by_team[0, :, 0])
    parts, temperature, score = np.ones(1), 1.0, float("nan")
    if seen.any():
        target, weights = sample.y[seen], sample.weights[seen]
        known = by_team[:, seen]

        def loss(mix: Array) -> float:
            return cross_entropy(np.tensordot(mix, known, axes=1), target, weights)[0]

        parts = mix_teams(loss, seats)
        scores = np.tensordot(parts, known, axes=1)
        temperature = best_temperature(scores, target, weights)
        chosen = scores[:, 0] > 0 if outputs == 1 else scores.argmax(axis=1)
        score = float(np.average(chosen.astype(int) == target, weights=weights))
    members = [
        Member(seat, s.coef / temperature, s.intercept / temperature, s.alpha)
        for seat, s in zip(seats, solutions)
    ]
    members = weighted(members, parts)
    return ClassificationFit(
        members=members,
        classes=task.encoding.classes,
        alpha_path=solutions[0].path,
        form_path=[],
        oof_scores=np.tensordot(parts, by_team, axes=1) / temperature,
        oof_score=score,
        temperature=temperature,
        importances=input_importances(members, sample.x, task.settings.rng(4)),
    )


def _growth(
    fit: ClassificationFit,
    seats: list[Seat],
    solutions: list[Solution],
    rows: Rows | None,
    task: _Task,
) -> Growth:
    """What more rows go on from; `rows` are all rows, where the sample is but a part."""
    sample, plan, settings = task.sample, task.plan, task.settings
    size = budget.block_rows(settings.components, sample.width, settings.max_bytes)
    exact = sample.used * settings.components <= budget.EXACT_OF_CLASSES
    solved = {(seat.team, seat.fold): solution for seat, solution in zip(seats, solutions)}
    known = []
    for member in fit.members:
        seat = member.seat
        if rows is None:
            at = slice(None) if plan.single else task.fold != seat.fold
            part = _class_rows(sample, seat.layer.inputs(sample.x), at, size)
        else:
            part = _every(seat, rows, task, size)
        objective = layer_objective(seat.layer, part, exact, settings.fit_intercept, 0)
        solution = solved[seat.team, seat.fold]
        v = np.vstack([solution.coef, solution.intercept])
        known.append(known_weights(objective, v, solution.alpha))
    return Growth(
        known=known,
        encoding=task.encoding,
        plan=plan,
        seed=settings.seed,
        rows_seen=sample.seen,
        block_rows=size,
        fit_intercept=settings.fit_intercept,
        temperature=fit.temperature,
        alpha=settings.alpha,
    )


def best_temperature(scores: Array, target: Array, weights: Array) -> float:
    """What to divide scores by for the least cross-entropy, where that makes a difference."""

    def loss(log_temperature: float) -> float:
        return cross_entropy(scores / np.exp(log_temperature), target, weights)[0]

    bounds = (-np.log(_HOTTEST), np.log(_HOTTEST))
    found = optimize.minimize_scalar(loss, bounds=bounds, method="bounded")
    return float(np.exp(found.x)) if found.fun < (1 - 1e-3) * loss(0.0) else 1.0

"""The one fit: from rows, a loss and settings to a model."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rflaf import rules
from rflaf.arrays import Array
from rflaf.distributions import ErrorShape
from rflaf.fitting import budget
from rflaf.fitting.attribution import background_rows
from rflaf.fitting.averaging import mean_error_ratio
from rflaf.fitting.folds import Folds, plan_folds, resolve
from rflaf.fitting.importance import input_importances
from rflaf.fitting.layers import learn_layers
from rflaf.fitting.localise import learn_local, times
from rflaf.fitting.members import Member, mix_teams, mixed_scores, out_of_fold, weighted
from rflaf.fitting.monotone import learn_monotone, monotone_out_of_fold, wanted_signs
from rflaf.fitting.outside import Outside, usual_spread
from rflaf.fitting.settings import FitSettings
from rflaf.fitting.solving import Solved, solve_members
from rflaf.fitting.spread import (
    Spread,
    error_shapes,
    largest_errors,
    root_mean_square,
    scale_settings,
    squared_errors,
)
from rflaf.fitting.sums import Pair
from rflaf.fitting.tails import learn_outside
from rflaf.fitting.task import Task
from rflaf.fitting.trials import choose_forms
from rflaf.losses import Gamma, Loss
from rflaf.rows import ArrayRows, InUnits, Rows, Sample
from rflaf.rows.sample import some_of
from rflaf.runtime.callers import warn
from rflaf.runtime.threads import use_threads
from rflaf.solvers.features import as_array

_MOST_MIXED = 20_000  # rows that weights of teams are chosen on


@dataclass(frozen=True)
class Online:
    """What more rows go on from."""

    sums: list[Pair]  # over the rows so far, for each member: see `SumMembers`
    folds: Folds
    seed: int  # with `folds`, decides on the folds of rows
    first_rows: int  # that were learned from
    block_rows: int  # that are taken at once


@dataclass(frozen=True)
class Fit:
    """A fitted model."""

    loss: Loss  # knows the targets, and makes predictions of the members' scores
    members: list[Member]
    alpha_path: list[dict[str, Any]]  # penalties that were tried, with their held-out losses
    form_path: list[dict[str, Any]]  # forms and kinds of metric, likewise
    oof_scores: Array  # of a model that has not seen the row, n × C; NaN where every member has
    oof_score: float  # how good these are, as the loss measures it
    oof_metrics: dict[str, tuple[float, float]]  # by name, the model's and the best constant's
    temperature: float  # what scores were divided by
    sample_numbers: Array  # of the sample's rows among all
    noise: Array | None  # how far observations lie from predictions, C, where that is a number
    spread: Spread | None  # the distribution of errors, as a function of the inputs
    importances: Array  # of d; see `input_importances`
    importance_deviations: Array  # members × d
    background: Array  # some of the rows, for others to be compared with
    outside: Outside  # how the model goes on beyond the rows of the fit
    rows_seen: int  # also those of no weight
    online: Online | None = None
    left_out: list[str] = field(default_factory=list)  # what there was no time for
    effort: str = "default"  # that of the settings


@dataclass(frozen=True)
class _Learned:
    """Members and their scores out of fold, before anything else is said about them."""

    task: Task
    given: Sample
    solved: Solved
    judges: list[Member | None]
    weights: Array
    temperature: float
    members: list[Member]
    scores: Array
    form_path: list[dict[str, Any]]

    @property
    def in_units(self) -> Array:
        """The out-of-fold scores in the model's units."""
        scores = self.scores / self.temperature
        return self.task.loss.in_units(np.zeros(1), scores)[1]


def fit(rows: Rows, loss: Loss, settings: FitSettings) -> Fit:
    """Learn a model of rows.

    One pass draws a sample, on which layers are learned. What follows needs all rows: a pass that
    sums over them, or a pass per step.
    """
    rows, given, task = _open(rows, loss, settings)
    loss, settings, sample = task.loss, task.settings, task.sample
    if doubts := loss.doubts(sample.y):
        warn(doubts)
    signs = wanted_signs(settings, sample, loss)
    with use_threads(settings.n_jobs):
        learned = _learn(rows, given, task)
        members, temperature = learned.members, learned.temperature
        monotone = learn_monotone(members, task, signs)
        if monotone is not None:
            scores = monotone_out_of_fold(monotone, learned.judges, learned.weights, task)
            learned = replace(learned, scores=scores)
        importances, deviations = input_importances(members, sample.x, settings.rng(4))
        outside = learn_outside(task, learned.judges, learned.weights, learned.scores, importances)
        outside = replace(
            outside.in_units(loss, temperature).constrained(monotone),
            usual=usual_spread(members, sample.x, settings.rng(6)),
        )
        noise, spread = _spread(learned)
        oof_score, oof_metrics = _judged(learned)
        return Fit(
            loss=loss,
            members=members,
            alpha_path=learned.solved.solutions[_places(learned.solved, members)[0]].path,
            form_path=learned.form_path,
            oof_scores=learned.in_units,
            oof_score=oof_score,
            oof_metrics=oof_metrics,
            temperature=temperature,
            sample_numbers=sample.numbers,
            noise=noise,
            spread=spread,
            importances=importances,
            importance_deviations=deviations,
            background=background_rows(sample.x, settings.rng(7)),
            outside=outside,
            rows_seen=sample.seen,
            online=_online(learned.solved, members, task),
            effort=settings.effort,
        )


def _open(rows: Rows, loss: Loss, settings: FitSettings) -> tuple[Rows, Sample, Task]:
    """Draw the sample, and settle what depends on it: units of the targets, sizes and folds."""
    sample = rows.sample(
        lambda x: budget.sample_rows(x, settings.max_bytes), settings.seed, loss.tally
    )
    if sample.heaviest != 1 and not settings.online:  # later rows will come in the unit of these
        rows = InUnits(rows, sample.heaviest)
        sample = replace(sample, weights=sample.weights / sample.heaviest)
    loss = loss.opened(sample, settings.fit_intercept)
    given, sample = encode_sample(sample, loss)
    settings = resolve(settings, sample, loss)
    folds = plan_folds(sample, settings, loss)
    budget.check_fit(sample, loss.outputs, settings, len(folds.of_member))
    return rows, given, Task(sample, folds(sample.keys), folds, loss, settings)


def _learn(rows: Rows, given: Sample, task: Task) -> _Learned:
    """Choose forms, learn layers, solve for output weights, and mix the teams."""
    chosen, form_path = choose_forms(task)
    layers = learn_layers(task, chosen)
    stored = ArrayRows.of_sample(given) if task.sample.whole else rows
    solved = solve_members(stored, task, layers)
    judges = _members(solved, task, honest=True)
    local = learn_local(task, judges, _members(solved, task, in_units=False))
    judges = [judge and replace(judge, local=own.honest) for judge, own in zip(judges, local)]
    scores = out_of_fold(judges, task)
    weights, temperature = _mixed(scores, task)
    none = np.zeros(task.loss.outputs)
    unit = task.loss.in_units(np.ones((1, len(none))) / temperature, none)[0][0]
    members = [
        replace(member, local=times(own.last, unit))
        for member, own in zip(_members(solved, task, temperature=temperature), local)
    ]
    members = weighted(members, weights)
    scores = np.tensordot(weights, scores, axes=1)
    return _Learned(task, given, solved, judges, weights, temperature, members, scores, form_path)


def encode_sample(sample: Sample, loss: Loss) -> tuple[Sample, Sample]:
    """The sample without rows that the loss gives no weight, as it was and with encoded targets."""
    y, weights = loss.encode(sample.y, sample.weights)
    kept = weights > 0
    used = round(sample.used * np.count_nonzero(kept) / len(kept))
    with_targets = replace(sample, y=y, weights=weights, used=used).where(kept)
    return replace(sample, used=used).where(kept), with_targets


def _members(
    solved: Solved,
    task: Task,
    honest: bool = False,
    temperature: float = 1.0,
    in_units: bool = True,
) -> list[Any]:
    """Members with the solved weights, in units of the target or of the loss.

    `honest` ones are in units of the loss. The rows of their fold have no part in their weights;
    None where there are no such rows.
    """
    members: list[Any] = []
    for layer, solution in zip(solved.layers, solved.solutions):
        if honest:
            v, intercept = solution.honest, task.settings.fit_intercept
            member = None if v is None else Member(layer, v[:-1], v[-1] * intercept, solution.alpha)
            members.append(member)
            continue
        if not in_units:
            members.append(Member(layer, solution.coef, solution.intercept, solution.alpha))
            continue
        published = layer
        if layer.means is not None and not task.settings.online:
            published = replace(layer, means=layer.means.published())
        given = solution.coef / temperature, solution.intercept / temperature
        members.append(Member(published, *task.loss.in_units(*given), solution.alpha))
    return members


def _mixed(scores: Array, task: Task) -> tuple[Array, float]:
    """Weights of the teams, and the temperature, by the loss of out-of-fold scores."""
    seen = np.flatnonzero(np.isfinite(scores[0, :, 0]))
    if not len(seen):
        return np.ones(1), 1.0
    seen = seen[some_of(len(seen), _MOST_MIXED, task.settings.rng(9))]
    known, target, of_rows = scores[:, seen], task.sample.y[seen], task.sample.weights[seen]

    def loss(weights: Array) -> float:
        return task.loss.value(np.tensordot(weights, known, axes=1), target, of_rows)

    weights = mix_teams(loss, len(scores))
    mixture = np.tensordot(weights, known, axes=1)
    return weights, task.loss.temperature(mixture, target, of_rows)


def _judged(learned: _Learned) -> tuple[float, dict[str, tuple[float, float]]]:
    """Score and metrics out of fold, by the rows' own weights; NaN and {} without such scores."""
    scores, task = learned.scores / learned.temperature, learned.task
    seen = np.isfinite(scores[:, 0])
    if not seen.any():
        return float("nan"), {}
    given = scores[seen], task.sample.y[seen], learned.given.weights[seen]
    return task.loss.score(*given), task.loss.metrics(*given)


def _spread(learned: _Learned) -> tuple[Array | None, Spread | None]:
    """The standard deviation of observations about predictions, and the distribution of errors."""
    task, given, scores = learned.task, learned.given, learned.in_units
    loss, held_out = task.loss, task.settings.holds_out
    if loss.residuals(scores, given.y) is None:
        return None, None
    if not held_out:
        scores = _left_out_scores(learned)
    at = np.flatnonzero(np.isfinite(scores[:, 0]))
    errors = loss.residuals(scores[at], given.y[at])
    assert errors is not None
    weights = given.weights[at]
    size = noise = root_mean_square(errors, weights)
    known = loss.error_scale(np.asarray(loss.predict(scores[at])).reshape(len(at), -1))
    if known is not None:
        # rows of tiny predictions count for less: a single event there would outweigh all others
        part = known / np.hypot(known, rules.LEAST_SCALE * root_mean_square(known, weights))
        size = root_mean_square(errors / known * part, weights) / root_mean_square(part, weights)
    if known is not None or not held_out:
        return noise, Spread([[]] * len(size), [ErrorShape.normal(float(each)) for each in size])
    unit = largest_errors(errors)
    errors = errors / unit
    # at random: every k-th row would be one hour of the day, or one of two that alternate
    some = some_of(len(at), rules.SCALE_ROWS, task.settings.rng(8))
    at, errors, weights = at[some], errors[some], weights[some]
    several = errors.shape[1] > rules.SCALE_OUTPUTS  # then they share their scale
    parts = [errors] if several else list(errors.T[:, :, None])
    found = [_scale_and_shapes(learned, at, part, weights) for part in parts]
    scales = [members for members, shapes in found for _ in shapes]
    spread = Spread(scales, [shape for _, shapes in found for shape in shapes])
    return noise, spread.scaled(unit * mean_error_ratio(learned.solved, learned.members, task))


def _left_out_scores(learned: _Learned) -> Array:
    """Scores of each row by a fit to the others, where rows are too few for folds.

    The model itself may pass through all of them. A row and its copies are left out together.
    """
    given, task = learned.given, learned.task
    scores = mixed_scores(learned.members, given.x)
    both = np.hstack([as_array(given.x), given.y.reshape(len(scores), -1)])
    copy_of = np.unique(both, axis=0, return_inverse=True)[1].ravel()
    for each in range(copy_of.max() + 1 if copy_of.any() else 0):
        kept = copy_of != each
        rest = ArrayRows(given.x[kept], given.y[kept], given.weights[kept])
        with suppress(ValueError):  # of counts, nothing can be learned from zeros alone
            one = _learn(*_open(rest, task.loss, task.settings))
            scores[~kept] = mixed_scores(one.members, given.x[~kept])
    return scores


def _scale_and_shapes(
    learned: _Learned, at: Array, errors: Array, weights: Array
) -> tuple[list[Member], list[ErrorShape]]:
    """The scale of errors, n × C, as a fit of its own, and the distributions of errors over it.

    The loss of the gamma distribution for squared errors, s + e² exp(-s), is twice the negative log
    likelihood of a normal error with the variance exp(s). Errors are divided by scales that were
    fitted without them. Where these are no better than a constant, that is taken.
    """
    given, loss = learned.given, learned.task.loss
    none: list[Member] = []
    constant = error_shapes(loss, errors, np.zeros(len(errors)), weights)
    keys = given.keys[at]
    if len(np.unique(keys)) < rules.SCALE_LEAST or not errors.any(axis=0).all():
        return none, constant
    rows = ArrayRows(given.x[at], squared_errors(errors, weights), weights, keys=keys)
    opened = _open(rows, Gamma(), scale_settings(learned.task.settings, given.x))
    scale = _learn(*opened)
    log_square = scale.in_units[:, 0]
    known = np.isfinite(log_square)
    if not _judged(scale)[0] > 0:
        return none, constant
    return scale.members, error_shapes(loss, errors[known], log_square[known], weights[known])


def _places(solved: Solved, members: list[Member]) -> list[int]:
    """Where the layers of members are among all."""
    places = {(layer.team, layer.fold): k for k, layer in enumerate(solved.layers)}
    return [places[member.layer.team, member.layer.fold] for member in members]


def _online(solved: Solved, members: list[Member], task: Task) -> Online | None:
    """The sums of the members that have a part in the prediction, in their order."""
    if not task.settings.online:
        return None
    assert solved.sums is not None
    settings, sample = task.settings, task.sample
    return Online(
        sums=[solved.sums[k] for k in _places(solved, members)],
        folds=task.folds,
        seed=settings.seed,
        first_rows=sample.used,
        block_rows=budget.block_rows(settings.components, sample.width, settings.max_bytes),
    )

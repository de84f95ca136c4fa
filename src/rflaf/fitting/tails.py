"""How a model should go on beyond its rows, by what it would have said of rows at its edges.

For each column that matters, the rows at one end are held back from a small copy of the model.
Three ways to go on are compared with the targets of these rows: to ask the copy as far out as they
lie, to ask it no further than some distance, and to follow a straight line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from rflaf import rules
from rflaf.arrays import Array
from rflaf.fitting.layers import FittedLayer
from rflaf.fitting.members import Member, teams_of
from rflaf.fitting.outside import Outside, held_between, plain_outside
from rflaf.fitting.task import Task
from rflaf.rows.sample import some_of
from rflaf.solvers.features import features, project
from rflaf.solvers.linalg import solve_positive

_FEWEST = 10  # rows of a tail, and before it, that can tell anything


def learn_outside(
    task: Task, judges: Sequence[Member | None], weights: Array, scores: Array, importances: Array
) -> Outside:
    """How the model goes on, in the scores' units of the fit.

    Each of the `judges` has not seen the rows of its fold. `weights` are those of the teams.
    `scores` are out of fold, n × C; NaN where there are none.
    """
    sample, settings, loss = task.sample, task.settings, task.loss
    outside = plain_outside(sample.x, sample.weights, settings.coded, loss.outputs)
    rows = np.flatnonzero(np.isfinite(scores[:, 0]))
    if not len(rows):
        return outside
    outside = replace(outside, bounds=loss.bounds(sample.y[rows], scores[rows]))
    if sparse.issparse(sample.x) or not settings.max_iter:
        return outside
    known = [judge for judge in judges if judge is not None]
    probe = Probe.of(task, known, weights, rows, scores)
    wanted = np.isfinite(outside.seen[0]) & (importances >= rules.TAIL_IMPORTANCE)
    most = round(settings.share.tails * rules.MOST_TAILS)
    columns = np.argsort(-importances, kind="stable")[:most]
    for j in columns[wanted[columns]].tolist():
        unit = outside.scale[j]
        tails = [probe.tail(j, side, unit) for side in (0, 1)]
        for side, tail in enumerate(tails):
            if tail is None:
                continue
            end = _trimmed(task, known, weights, scores, (side, j, unit), tail.slope)
            if end is None:
                end = outside.seen[side, j] + (-1, 1)[side] * tail.free * unit
            outside.ends[side, j] = end
            outside.slopes[side, j], outside.doubts[side, j] = tail.slope, tail.doubt
            outside.reach[side, j] = tail.reach
            probe = probe.with_line(j, (-1, 1)[side] * unit, tail)
    return _checked(outside, task, known, weights, scores)


def _checked(
    outside: Outside, task: Task, judges: list[Member], weights: Array, scores: Array
) -> Outside:
    """Drop ends before the last rows, unless all of them together are better for these rows."""
    x = task.sample.x
    inner = held_between(x, outside.ends)
    rows = np.flatnonzero((inner != x).any(axis=1) & np.isfinite(scores[:, 0]))
    if not len(rows):
        return outside
    model = task.loss.quadratic_model(task.loss.moderate(scores[rows]), task.sample.y[rows])
    heavy = task.sample.weights[rows] * model.bend
    found = _unseen(judges, weights, inner[rows], task.fold[rows])
    found = outside.continued(found, x[rows], inner[rows])
    now, then = (heavy @ (model.response - each) ** 2 for each in (scores[rows], found))
    if then.sum() < 0.98 * now.sum():
        return outside
    low, high = outside.seen
    ends = np.array([np.minimum(outside.ends[0], low), np.maximum(outside.ends[1], high)])
    return replace(outside, ends=ends)


class Tail(NamedTuple):
    """How a model goes on beyond one end of a column; distances are in standard deviations."""

    edge: float  # where the rows begin that told so
    free: float  # how far members are asked
    reach: float  # how far the line from there goes
    slope: Array  # of the line, C
    doubt: Array  # standard deviation per unit of distance, C


@dataclass(frozen=True)
class Probe:
    """A small copy of the model, whose weights without some rows are found in a moment.

    It is a ridge regression of the loss's quadratic model on some features of one member per team.
    """

    x: Array
    response: Array
    weights: Array
    # inputs between the edges of the columns that have a line so far, and what the lines add:
    # columns that go together share the way on, instead of each going all of it
    held: Array
    lines: Array
    layers: list[FittedLayer]  # one per team, as in all lists
    parts: list[float]  # the team's part in the prediction
    penalties: list[float]  # of the team
    phi: list[Array]  # features of the rows
    gram: list[Array]  # their weighted products with themselves
    moment: list[Array]  # and with the response

    @classmethod
    def of(
        cls, task: Task, judges: list[Member], weights: Array, rows: Array, scores: Array
    ) -> Probe:
        """The copy of a model, for rows that have out-of-fold scores."""
        rng = task.settings.rng(5)
        rows = rows[some_of(len(rows), rules.TAIL_SAMPLE, rng)]
        sample, loss = task.sample, task.loss
        x = np.asarray(sample.x[rows])
        model = loss.quadratic_model(loss.moderate(scores[rows]), sample.y[rows])
        row_weights = sample.weights[rows] * model.bend / sample.weights[rows].mean()
        teams = teams_of([judge.layer for judge in judges])
        used = [(judges[at[0]], part) for at, part in zip(teams, weights) if part > 0]
        layers = [judge.layer for judge, _ in used]
        count = rules.TAIL_FEATURES
        penalties = [
            judge.alpha * min(count / layer.components.shape[1], 1.0)
            for (judge, _), layer in zip(used, layers)
        ]
        phi = [_features(layer, x) for layer in layers]
        weighted = [each * row_weights[:, None] for each in phi]
        return cls(
            x=x,
            response=model.response,
            weights=row_weights,
            held=x,
            lines=np.zeros_like(model.response),
            layers=layers,
            parts=[float(part) for _, part in used],
            penalties=penalties,
            phi=phi,
            gram=[heavy.T @ each for heavy, each in zip(weighted, phi)],
            moment=[heavy.T @ model.response for heavy in weighted],
        )

    def with_line(self, j: int, unit: float, tail: Tail) -> Probe:
        """The same, with a column that goes on along a line from its edge."""
        if not tail.slope.any():
            return self
        value = self.x[:, j].astype(np.float64) / unit
        held = self.held.copy()
        held[:, j] = np.where(value > tail.edge, unit * tail.edge, held[:, j])
        lines = self.lines + np.maximum(value - tail.edge, 0)[:, None] * tail.slope
        return replace(self, held=held, lines=lines)

    def without(self, rows: Array) -> list[Array]:
        """The weights of each team when some rows are held back."""
        found = []
        kept = len(self.x) - len(rows)
        heavy = self.weights[rows, None]
        for phi, gram, moment, alpha in zip(self.phi, self.gram, self.moment, self.penalties):
            some = phi[rows] * heavy
            system = (gram - some.T @ phi[rows]) / kept
            right = (moment - some.T @ self.response[rows]) / kept
            system[np.diag_indices(len(system) - 1)] += alpha
            found.append(solve_positive(system, right))
        return found

    def scores(self, solution: list[Array], x: Array) -> Array:
        """What the copy says of rows, n × C."""
        parts = zip(self.parts, self.layers, solution)
        return np.asarray(sum(part * (_features(layer, x) @ v) for part, layer, v in parts))

    def tail(self, j: int, side: int, unit: float) -> Tail | None:
        """What the rows at one end of a column say of going on beyond it; None if too few."""
        if unit <= 0:
            return None
        value = self.x[:, j].astype(np.float64) / unit * (-1, 1)[side]
        cuts = _cuts(value)
        if cuts is None:
            return None
        inner, edge = cuts
        tail = np.flatnonzero(value > edge)
        window = np.flatnonzero((value > inner) & (value <= edge))
        if min(len(tail), len(window)) < _FEWEST:
            return None
        trial = _Trial(self, j, (-1, 1)[side] * unit, value, tail, self.without(tail))
        free = {f: trial.errors(edge + f) for f in rules.FREE}
        slope = trial.slope(window, inner)
        beyond = value[tail] - edge
        line = free[0.0] - beyond[:, None] * slope
        best = min(free, key=lambda f: trial.loss(free[f]))
        usual = trial.usual_errors()
        if trial.gains(free[0.0], line, 2) and trial.gains(free[best], line, 2):
            both = np.concatenate([window, tail])
            chosen, asked, slope = line, 0.0, trial.slope(both, inner)
            # a line that leaves little of the error has earned to be followed further
            left, all_of_it = (trial.loss(e) - trial.loss(usual) for e in (line, free[0.0]))
            part = left / all_of_it if all_of_it > 0 else 1.0
            reach = beyond.max() / np.clip(part, 1 / rules.LINE_REACH, 1)
        else:
            asked = best if trial.gains(free[0.0], free[best], 1) else 0.0
            asked, reach = trial.smooth_reach(asked, usual), 0.0
            chosen, slope = free[asked], np.zeros_like(slope)
        square = np.average(beyond**2, weights=self.weights[tail])
        more = np.maximum(trial.mean_square(chosen) - trial.mean_square(usual), 0)
        doubt = np.maximum(np.sqrt(more / square), rules.SLOPE_DOUBT * np.abs(slope))
        return Tail(edge, asked, reach, slope, doubt)


def _cuts(value: Array) -> tuple[float, float] | None:
    """Where a tail begins, and the window before it that a slope is taken from."""
    n, order = len(value), np.sort(value)[::-1]
    low, high = np.quantile(value, [0.005, 0.995])
    span = rules.TAIL_SHARE * (high - low)
    if not span > 0 or n < 4 * _FEWEST or np.count_nonzero(np.diff(order)) < rules.SEVERAL_VALUES:
        return None
    count = int(np.count_nonzero(value > order[0] - span))
    count = int(np.clip(count, min(max(rules.TAIL_ROWS, n // 30), n // 4), n // 4))
    edge = order[count]
    return min(order[min(3 * count, n - 1)], edge - span), edge


@dataclass(frozen=True)
class _Trial:
    """The copy of a model without the rows of a tail, and those rows."""

    probe: Probe
    j: int
    unit: float
    value: Array
    tail: Array
    solution: list[Array]

    def errors(self, end: float) -> Array:
        """Those of the tail's rows, when the copy is asked no further than `end`."""
        return self._errors(self.tail, np.minimum(self.value[self.tail], end))

    def _errors(self, rows: Array, values: Any) -> Array:
        x = self.probe.held[rows].copy()
        x[:, self.j] = self.unit * values
        there = self.probe.scores(self.solution, x) + self.probe.lines[rows]
        return np.asarray(self.probe.response[rows] - there)

    def usual_errors(self) -> Array:
        """Those of the tail's rows when the other half of them is not held back."""
        out = np.empty((len(self.tail), self.probe.response.shape[1]))
        half = np.arange(len(self.tail)) % 2
        for k in (0, 1):
            rows = self.tail[half == k]
            there = self.probe.scores(self.probe.without(rows), self.probe.x[rows])
            out[half == k] = self.probe.response[rows] - there
        return out

    def slope(self, rows: Array, start: float) -> Array:
        """Of a straight line from the copy's scores at `start`, C."""
        errors, beyond = self._errors(rows, start), self.value[rows] - start
        heavy = self.probe.weights[rows] * beyond
        return np.asarray(heavy @ errors / (heavy @ beyond))

    def mean_square(self, errors: Array) -> Array:
        return np.average(errors**2, axis=0, weights=self.probe.weights[self.tail])

    def loss(self, errors: Array) -> float:
        return float(self.mean_square(errors).sum())

    def gains(self, errors: Array, others: Array, least: float) -> bool:
        """Whether the `others` are smaller by some standard errors: their squares, or in most rows.

        Rows are counted because the sum of squares may be that of the last one or two.
        """
        less = (errors**2 - others**2).sum(axis=1) * self.probe.weights[self.tail]
        enough = least * np.sqrt(len(less))
        surplus = 2 * np.count_nonzero(less > 0) - len(less)
        return bool(less.sum() > 0 and (less.sum() > enough * less.std() or surplus > enough))

    def smooth_reach(self, reach: float, usual: Array) -> float:
        """The longest distance, up to `reach`, over which the model's own course is even.

        What it does over this distance must be much the same as over the same distance before: a
        wave cannot be followed. Changes of the size of `usual` errors do not count.
        """
        every = self.probe.without(self.tail[:0])
        rows = self.tail[:100]
        top = self.value.max()
        for free in sorted((f for f in rules.FREE if f <= reach), reverse=True):
            x = self.probe.x[rows].copy()
            points = []
            for k in range(3):
                x[:, self.j] = self.unit * (top - k * free)
                points.append(self.probe.scores(every, x))
            last, change = points[0] - points[1], points[0] - 2 * points[1] + points[2]
            if _root_mean(change) <= 0.5 * (_root_mean(last) + _root_mean(usual)):
                return float(free)
        return 0.0


def _root_mean(values: Array) -> float:
    return float(np.sqrt(np.mean(np.sum(values**2, axis=1))))


def _features(layer: FittedLayer, x: Array) -> Array:
    z = project(layer.inputs(x), layer.components[:, : rules.TAIL_FEATURES])
    return features(layer.sigma, z).astype(np.float64)


def _trimmed(
    task: Task,
    judges: list[Member],
    weights: Array,
    scores: Array,
    place: tuple[int, int, float],
    slope: Array,
) -> float | None:
    """An end before the last rows of a column, where these are few and the line is better for them.

    Judged by errors of members on rows that they have not seen. Without a line there is none: on
    tables with heavy tails a constant was worse for new rows than single rows had promised.
    """
    if not slope.any():
        return None
    side, j, unit = place
    sign, sample = (-1, 1)[side] * unit, task.sample
    rows = np.flatnonzero(np.isfinite(scores[:, 0]))
    value = np.asarray(sample.x[rows, j], np.float64) / sign
    n, order = len(rows), np.argsort(-value, kind="stable")
    counts = sorted({int(share * n) for share in rules.TRIMMED if 3 <= share * n <= 200})
    far = [k for k in counts if value[order[0]] - value[order[k]] > 0.5 * value.std()]
    if not far:
        return None
    last = rows[order[: far[-1]]]
    beyond = value[order[: far[-1]]]
    model = task.loss.quadratic_model(task.loss.moderate(scores[last]), sample.y[last])
    heavy = sample.weights[last] * model.bend

    def squares(found: Array) -> Array:
        return np.asarray(heavy * np.sum((model.response - found) ** 2, axis=1))

    now, best = squares(scores[last]), None
    least = float(now.sum())
    for count in far:
        end = value[order[count]]
        x = sample.x[last].copy()
        x[:, j] = sign * np.minimum(beyond, end)
        line = np.maximum(beyond - end, 0)[:, None] * slope
        found = squares(_unseen(judges, weights, x, task.fold[last]) + line)
        surplus = 2 * np.count_nonzero((found < now)[:count]) - count
        alone = beyond[0] - end > value.std()  # what members say there hangs on single rows
        enough = -1 if alone and found.sum() < 0.5 * now.sum() else 2 * np.sqrt(count)
        if found.sum() < 0.98 * least and surplus > enough:
            least, best = float(found.sum()), float(sign * end)
    return best


def _unseen(judges: list[Member], weights: Array, x: Any, fold: Array) -> Array:
    """Scores of rows by members that have not seen their folds, mixed by the teams' weights."""
    teams = sorted({judge.layer.team for judge in judges})
    scores = np.zeros((len(fold), judges[0].coef.shape[1]))
    for judge in judges:
        part, at = weights[teams.index(judge.layer.team)], fold == judge.layer.fold
        if part > 0 and at.any():
            scores[at] += part * judge.scores(x[at])
    return scores

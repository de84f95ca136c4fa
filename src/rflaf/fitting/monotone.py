"""Scores that never go the wrong way in some columns, whatever the others are.

For a row, the model is asked at a fixed lattice of values of the constrained columns, with the
other columns as they are. Isotonic regression along one axis of the lattice after the other makes
these scores monotone, and the score of the row is interpolated between them. Two rows that differ
in a constrained column alone have the same lattice, so that their scores are in order everywhere
and not only at some rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from rflaf import rules
from rflaf.arrays import Array
from rflaf.fitting.members import Member, mixed_scores, teams_of
from rflaf.fitting.settings import FitSettings
from rflaf.fitting.task import Task
from rflaf.inputs.forms.ranked import RankCurves
from rflaf.losses import Loss
from rflaf.rows import Sample
from rflaf.rows.sample import some_of
from rflaf.solvers.features import as_array

_BLOCK = 1 << 15  # rows that members are asked for at once
_NUMBERS = 1 << 22  # of their slopes at once
_EQUAL = 1e-9  # of their range: scores that differ by rounding alone
_PLACES, _ROWS = 65, 200  # of a column's mean effect


@dataclass(frozen=True)
class Axis:
    """One constrained column."""

    column: int
    sign: int  # 1: scores never fall; -1: they never rise
    knots: Array  # values where the model is asked, G
    weights: Array  # the share of rows near each knot, G
    # a rising curve, the column's mean effect: between knots scores follow it
    places: Array
    heights: Array

    def between(self, values: Array) -> tuple[Array, Array]:
        """The number of the knot below each value, and the part of the way to the next one."""
        below = np.clip(np.searchsorted(self.knots, values, "right") - 1, 0, len(self.knots) - 2)
        height, start, end = (
            np.interp(at, self.places, self.heights)
            for at in (values, self.knots[below], self.knots[below + 1])
        )
        return below, np.clip((height - start) / (end - start), 0, 1)

    def steepness(self, values: Array, below: Array) -> Array:
        """The derivative of that part in the values; 0 beyond the first and the last knot."""
        piece = np.searchsorted(self.places, values, "right") - 1
        piece = np.clip(piece, 0, len(self.places) - 2)
        slopes = np.diff(self.heights) / np.diff(self.places)
        ways = np.diff(np.interp(self.knots, self.places, self.heights))
        inside = (values >= self.knots[0]) & (values <= self.knots[-1])
        return np.where(inside, slopes[piece] / ways[below], 0.0)


@dataclass(frozen=True)
class Monotone:
    """The constraints of a model, as a lattice over the constrained columns."""

    axes: list[Axis]

    def scores(self, members: list[Member], x: Any) -> Array:
        """The members' mixed scores made monotone, n × C."""
        x, size = as_array(x), max(1, _BLOCK // prod(self.shape))
        blocks = [x[start : start + size] for start in range(0, len(x), size)]
        return np.concatenate([self._block(members, rows) for rows in blocks])

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(axis.knots) for axis in self.axes)

    def lattice(self) -> Array:
        """All combinations of knots, in rows."""
        grids = np.meshgrid(*(axis.knots for axis in self.axes), indexing="ij")
        return np.stack([grid.ravel() for grid in grids], axis=1)

    def slopes(
        self, members: list[Member], x: Array, slopes_of: Callable[[list[Member], Array], Array]
    ) -> Array:
        """The derivative of `scores` in each input, n × d × C; `slopes_of` is that of members.

        Scores that isotonic regression has made equal are means, and so are their derivatives.
        """
        size = max(1, min(_BLOCK, _NUMBERS // x.shape[1]) // prod(self.shape))
        blocks = [x[start : start + size] for start in range(0, len(x), size)]
        return np.concatenate([self._block_slopes(members, rows, slopes_of) for rows in blocks])

    def _block_slopes(self, members: list[Member], x: Array, slopes_of: Any) -> Array:
        asked, lattice = self._asked(x), (len(x), *self.shape)
        scores = mixed_scores(members, asked).reshape(*lattice, -1)
        slopes = slopes_of(members, asked).swapaxes(1, 2).reshape(*scores.shape, -1)
        slopes[..., [axis.column for axis in self.axes]] = 0  # the lattice has its own values there
        for number, axis in enumerate(self.axes):
            scores = isotonic(scores, axis.weights, number + 1, axis.sign)
            slopes = _pooled(slopes, scores, axis.weights, number + 1)
        rows = np.arange(len(x))
        for axis in self.axes:
            values = x[:, axis.column].astype(np.float64)
            below, part = axis.between(values)
            low, rise = scores[rows, below], scores[rows, below + 1] - scores[rows, below]
            part, steep = (
                each.reshape(-1, *[1] * (low.ndim - 1))
                for each in (part, axis.steepness(values, below))
            )
            start, end = slopes[rows, below], slopes[rows, below + 1]
            slopes = start + part[..., None] * (end - start)
            slopes[..., axis.column] += steep * rise
            scores = low + part * rise
        return np.asarray(slopes.swapaxes(1, 2))

    def _asked(self, x: Array) -> Array:
        """Each row at all points of the lattice."""
        points = self.lattice()
        asked = np.repeat(x[:, None], len(points), axis=1)
        asked[:, :, [axis.column for axis in self.axes]] = points
        return asked.reshape(-1, x.shape[1])

    def _block(self, members: list[Member], x: Array) -> Array:
        scores = mixed_scores(members, self._asked(x)).reshape(len(x), *self.shape, -1)
        for number, axis in enumerate(self.axes):
            scores = isotonic(scores, axis.weights, number + 1, axis.sign)
        rows = np.arange(len(x))
        for axis in self.axes:
            below, part = axis.between(x[:, axis.column].astype(np.float64))
            low, high = scores[rows, below], scores[rows, below + 1]
            scores = low + part.reshape(-1, *[1] * (low.ndim - 1)) * (high - low)
        return np.asarray(scores)

    def export(
        self, graph: Any, scored: Callable[[str], str], x: str, width: int, outputs: int
    ) -> str:
        """What `scores` gives, n × C, as part of a graph; `scored` adds the members' scores."""
        columns, points = [axis.column for axis in self.axes], self.lattice()
        kept, knots = np.ones(width), np.zeros((len(points), width))
        kept[columns], knots[:, columns] = 0, points
        each = graph.add("Mul", graph.add("Unsqueeze", x, np.array([1])), kept)
        asked = graph.add("Reshape", graph.add("Add", each, knots), np.array([-1, width]))
        scores = scored(asked)
        rest = [prod(self.shape[number + 1 :]) * outputs for number in range(len(self.axes))]
        for axis, after in zip(self.axes, rest):
            lines = graph.add("Reshape", scores, np.array([-1, len(axis.knots), after]))
            scores = _export_isotonic(graph, lines, axis)
        values, heights = ([getattr(axis, n) for axis in self.axes] for n in ("places", "heights"))
        ends = np.cumsum([len(each) for each in values])
        flat = np.concatenate(values), np.concatenate(heights)
        at = RankCurves(np.array(columns), *flat, ends).export(graph, x, width)
        for k, (axis, after) in enumerate(zip(self.axes, rest)):
            lines = graph.add("Reshape", scores, np.array([-1, len(axis.knots), after]))
            parts = _export_parts(graph, graph.columns(at, [k]), axis)
            near = graph.add("Mul", lines, graph.add("Unsqueeze", parts, np.array([2])))
            scores = graph.add("ReduceSum", near, np.array([1]), keepdims=0)
        return scores


def isotonic(values: Array, weights: Array, axis: int, sign: int) -> Array:
    """Values with the nearest ones in their place that never fall (or rise) along an axis.

    Nearest is in weighted squares. The result at i is the largest, over a <= i, of the least mean
    of values from a to b, over b >= i. This only rises where values do, so that what is monotone
    along other axes stays so.
    """
    if sign < 0:
        return -isotonic(-values, weights, axis, 1)
    lines = np.moveaxis(values, axis, -1)
    total, weight = (
        np.concatenate([np.zeros((*each.shape[:-1], 1)), np.cumsum(each, axis=-1)], axis=-1)
        for each in (lines * weights, weights)
    )
    count = len(weights)
    best = np.full(lines.shape, -np.inf)
    for a in range(count):
        means = (total[..., a + 1 :] - total[..., a, None]) / (weight[a + 1 :] - weight[a])
        least = np.minimum.accumulate(means[..., ::-1], axis=-1)[..., ::-1]
        np.maximum(best[..., a:], least, out=best[..., a:])
    return np.moveaxis(best, -1, axis)


def _pooled(slopes: Array, values: Array, weights: Array, axis: int) -> Array:
    """Slopes, with one more axis than `values`, averaged where those are equal along an axis."""
    lines = np.moveaxis(values, axis, -1)
    apart = np.diff(lines, axis=-1, prepend=lines[..., :1])
    equal = _EQUAL * np.ptp(lines, axis=-1, keepdims=True)
    group = np.cumsum(np.abs(apart) > equal, axis=-1)
    share = weights * (group[..., :, None] == group[..., None, :])
    share /= share.sum(axis=-1, keepdims=True)
    return np.moveaxis(share @ np.moveaxis(slopes, axis, -2), -2, axis)


def wanted_signs(settings: FitSettings, sample: Sample, loss: Loss) -> Array | None:
    """-1, 0 or 1 for each input, or None; an error where these cannot be had."""
    signs = None if settings.constraints is None else settings.constraints(loss)
    if signs is None:
        return None
    if sparse.issparse(sample.x):
        raise ValueError("'monotonic_cst' takes a dense 'X'. Got a sparse matrix.")
    count, most = np.count_nonzero(signs), len(rules.LATTICE)
    if count > most:
        raise ValueError(f"'monotonic_cst' takes at most {most} constrained columns. Got {count}.")
    return signs


def learn_monotone(members: list[Member], task: Task, signs: Array | None) -> Monotone | None:
    """The lattice for constraints `signs`, -1, 0 or 1 for each input; None where there are none."""
    if signs is None:
        return None
    x, rng = task.sample.x, task.settings.rng(8)
    columns = [j for j in np.flatnonzero(signs).tolist() if np.ptp(x[:, j]) > 0]
    if not columns:
        return None
    some = x[some_of(len(x), _ROWS, rng)]
    effects = [_effect(members, x[:, j], some, j, int(signs[j])) for j in columns]
    counts = _knot_counts(effects, rules.LATTICE[len(columns) - 1])
    parts = zip(columns, effects, counts)
    return Monotone([_axis(x[:, j], j, int(signs[j]), effect, k) for j, effect, k in parts])


class _Effect(NamedTuple):
    """The mean scores of some rows at values of one column, rising, and how far they rise."""

    places: Array
    curve: Array
    size: float


def _effect(members: list[Member], column: Array, some: Array, j: int, sign: int) -> _Effect:
    shares = np.linspace(0, 1, _PLACES)
    places = np.unique(np.quantile(column.astype(np.float64), shares, method="nearest"))
    asked = np.repeat(some[None], len(places), axis=0)
    asked[:, :, j] = places[:, None]
    scores = mixed_scores(members, asked.reshape(-1, some.shape[1]))
    means = scores.reshape(*asked.shape[:2], -1).mean(axis=1)
    curve = sign * isotonic(means, np.ones(len(places)), 0, sign)
    size = np.ptp(curve, axis=0)
    curve = (curve - curve[0]) / np.where(size > 0, size, 1.0)
    spread = scores.std(axis=0)
    return _Effect(places, curve.mean(axis=1), float((size / np.where(spread, spread, 1)).mean()))


def _knot_counts(effects: list[_Effect], points: int) -> list[int]:
    """How many knots the columns have, for at most so many points: large effects have most."""
    counts = [2] * len(effects)
    most = [min(len(effect.places), rules.MOST_KNOTS) for effect in effects]
    while True:
        room = points / prod(counts)
        free = [k for k, n in enumerate(counts) if n < most[k] and n + 1 <= n * room]
        if not free:
            return counts
        counts[max(free, key=lambda k: (effects[k].size + 1e-9) / (counts[k] - 1) ** 2)] += 1


def _axis(column: Array, j: int, sign: int, effect: _Effect, count: int) -> Axis:
    """Knots at even steps of the column's ranks and of its effect."""
    places, curve, _ = effect
    ranks, way = np.linspace(0, 1, len(places)), (places - places[0]) / np.ptp(places)
    heights = 0.99 * curve + 0.005 * ranks + 0.005 * way  # it has to rise everywhere
    steps = (heights + ranks) / (heights + ranks)[-1]
    chosen = np.abs(steps[:, None] - np.linspace(0, 1, count)).argmin(axis=0)
    knots = places[np.unique(chosen)]
    near = np.searchsorted((knots[1:] + knots[:-1]) / 2, column)
    weights = np.bincount(near, minlength=len(knots)) / len(column) + 1e-3
    return Axis(j, sign, knots, weights, places, heights)


def monotone_out_of_fold(
    monotone: Monotone, judges: list[Member | None], weights: Array, task: Task
) -> Array:
    """What teams of these weights, made monotone, predict for rows that they have not seen."""
    known = [judge for judge in judges if judge is not None]
    scores = np.full((len(task.fold), task.loss.outputs), np.nan)
    parts = zip(teams_of([judge.layer for judge in known]), weights)
    members = [replace(known[k], weight=float(part)) for team, part in parts if part for k in team]
    for fold in {member.layer.fold for member in members}:
        at = task.fold == fold
        if at.any():
            own = [member for member in members if member.layer.fold == fold]
            scores[at] = monotone.scores(own, task.sample.x[at])
    return scores


def _export_isotonic(graph: Any, lines: str, axis: Axis) -> str:
    """`isotonic` along the second axis of three."""
    count, sign = len(axis.knots), np.float64(axis.sign)
    lines = graph.add("Mul", lines, sign)
    best: list[Any] = [None] * count
    for a in range(count):
        mean = np.tril(np.tile(axis.weights, (count, 1)) * (np.arange(count) >= a))[a:]
        means = graph.add("MatMul", mean / mean.sum(axis=1, keepdims=True), lines)
        least = None
        for i in reversed(range(a, count)):
            one = graph.columns(means, [i - a])
            least = one if least is None else graph.add("Min", least, one)
            best[i] = least if best[i] is None else graph.add("Max", best[i], least)
    return graph.add("Mul", graph.add("Concat", *best, axis=1), sign)


def _export_parts(graph: Any, height: str, axis: Axis) -> str:
    """The part of each knot in a row's score, n × G, by the height of the row's value, n × 1."""
    at = np.interp(axis.knots, axis.places, axis.heights)
    way = graph.add("Div", graph.add("Sub", height, at[:-1]), np.diff(at))
    way = graph.add("Min", graph.add("Max", way, np.float64(0)), np.float64(1))
    zero = graph.add("Mul", height, np.float64(0))
    reached = graph.add("Concat", graph.add("Add", zero, np.float64(1)), way, axis=1)
    return graph.add("Sub", reached, graph.add("Concat", way, zero, axis=1))

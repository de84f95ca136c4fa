"""Cross-fitted members: each learns on the rows outside a fold, and is judged inside it.

What chooses must not have been learned from. Rows are therefore cut into folds before anything is
learned. The errors of the members on their own folds choose the form of the inputs, the kind of
metric, the penalty and the weights of the members, and tell how good the model is; its prediction
is the members' weighted mean. Members that differ in their fold alone are a team. With many rows
one member per team is enough, and the rows kept aside for choosing join the others for its last
solve.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rflaf import fused
from rflaf.fitting.budget import gram_fits
from rflaf.fitting.choosing import MOST_INPUTS, choices, choose_forms
from rflaf.fitting.learn import Examples, FittedLayer, learn_layers, linear_layer
from rflaf.fitting.settings import FitSettings
from rflaf.inputs.form import InputForm, measure_inputs
from rflaf.rows import Sample
from rflaf.rows.sample import Keys, fold_cuts, fold_numbers
from rflaf.solvers.features import as_array, project, row_rotation

Array = NDArray[Any]

_MEMBERS = ((5000, 5), (10_000, 3))  # rows up to which there are this many; beyond them, one
_COMPONENTS = ((2000, 500), (10_000, 1000), (30_000, 2000))  # likewise; beyond them, 3000
_LEAST_STEPS = 8
_ROWS_PER_STEP, _ROWS_PER_STEP_ALONE = 100, 50  # few rows gain nothing by many steps of learning
_PARTS, _LEAST_PART = 20, 0.1  # that weights are made of; a team with less does not pay
_FEW_ROWS, _COUNTED = 20, 100  # fewer cannot be held out; among so many, equal ones count once
_LEAST_HELD = 100  # rows to choose by, or a third of all


@dataclass(frozen=True)
class Seat:
    """A layer, the fold that it has not seen, and the number of its team."""

    layer: FittedLayer
    fold: int
    team: int


@dataclass(frozen=True)
class Member:
    """A layer and its output weights, M × C and C.

    `weight` is its part in the prediction, `seat` its fold and team.
    """

    seat: Seat
    coef: Array
    intercept: Array
    alpha: float
    weight: float = 1.0

    @property
    def layer(self) -> FittedLayer:
        """What makes features of inputs."""
        return self.seat.layer

    def scores(self, x: Any) -> Array:
        """Phi V + intercept in float64, for inputs as they are; infinite where sigma overflows."""
        return self.scores_of(self.layer.inputs(x))

    def scores_of(self, inputs: Any) -> Array:
        """The same for inputs in the layer's form.

        Output weights of at most 1 are used, so that float32 need not hold the target's units.
        """
        unit, readout = self._readout
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(readout(inputs), np.float64) * unit + self.intercept

    @cached_property
    def _readout(self) -> tuple[Array, fused.Readout]:
        largest = np.abs(self.coef).max(axis=0)
        unit = np.where(largest > 0, largest, 1.0)
        layer = self.layer
        return unit, fused.Readout(layer.sigma, layer.components, self.coef / unit)

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


class InputsOnce:
    """Some rows in the forms of layers of one fit, each form made once."""

    def __init__(self, x: Any) -> None:
        self._x = x
        self._found: dict[tuple[str, Any], Any] = {}

    def of(self, layer: FittedLayer) -> Any:
        """The rows as a layer takes them."""
        key = layer.form.name, layer.components.dtype
        if key not in self._found:
            self._found[key] = layer.inputs(self._x)
        return self._found[key]


def mixed_scores(members: list[Member], x: Any) -> Array:
    """The weighted mean of the members' scores."""
    inputs = InputsOnce(x)
    total: Any = 0.0
    for member in members:
        total = total + member.weight * member.scores_of(inputs.of(member.layer))
    return np.asarray(total)


@dataclass(frozen=True)
class FoldPlan:
    """Which rows each member does not see while it learns.

    Attributes
    ----------
    cuts : array
        Where the folds end in the range of keys.
    held : list of int
        The fold of each member; -1 where there are too few rows for any.
    of_interval : array of int, optional
        The fold of each interval between the cuts, where it is not its number: a group of rows has
        one key, and an interval of its own.
    """

    cuts: Keys
    held: list[int]
    of_interval: NDArray[np.intp] | None = None

    @property
    def single(self) -> bool:
        """Whether one member takes all rows in the end."""
        return len(self.held) == 1

    def folds(self, keys: Keys) -> NDArray[np.intp]:
        """The folds of rows."""
        intervals = fold_numbers(self.cuts, keys)
        return intervals if self.of_interval is None else self.of_interval[intervals]


def few_rows(sample: Sample) -> bool:
    """Whether there are too few rows for some to be held out.

    Equal rows are one: a row of weight 2 is the same as two rows.
    """
    n = len(sample.weights)
    if _FEW_ROWS <= n <= _COUNTED:
        both = np.hstack([as_array(sample.x), sample.y.reshape(n, -1)])
        n = len(np.unique(both, axis=0))
    return n < _FEW_ROWS


def resolve(settings: FitSettings, n: int, wide: bool, few: bool = False) -> FitSettings:
    """Settings with numbers in place of None, for n rows, which may be too few to hold any out.

    Wide models have one member.
    """
    m, members = settings.n_components, settings.n_members
    free = members is None and settings.input_form == "auto" and settings.max_iter > 0
    if m is None:
        m = next((count for rows, count in _COMPONENTS if n <= rows), 3000)
        while m > 100 and not gram_fits(m, settings.max_bytes):
            m //= 2
    if members is None:
        members = 1 if wide else next((count for rows, count in _MEMBERS if n <= rows), 1)
    rows_per_step = _ROWS_PER_STEP if members > 1 else _ROWS_PER_STEP_ALONE
    return replace(
        settings,
        n_components=m,
        n_members=1 if few else members,
        mixes=free and not (few or wide),
        holds_out=not few,
        max_iter=min(settings.max_iter, _LEAST_STEPS + n // rows_per_step),
    )


def plan_folds(sample: Sample, settings: FitSettings, most_held: int | None = None) -> FoldPlan:
    """Folds for as many members as there are to be; rows of one key have one fold."""
    n, members = len(sample.weights), settings.n_members or 1
    keys, sizes = np.unique(sample.keys, return_counts=True)
    grouped = len(keys) < n
    if grouped and len(keys) < 2:
        raise ValueError(
            f"'groups' must have 2 groups with a positive weight, or more, for rows to be held "
            f"out. Got {len(keys)} for {n} rows."
        )
    if not settings.holds_out:
        return FoldPlan(sample.keys[:0], [-1])
    if members > n // 2:
        raise ValueError(
            f"'n_members' must leave each member some rows of its own to be judged by. Got "
            f"{members} for {n} rows; expected at most {n // 2}."
        )
    if members > 1 and grouped:
        of_group = even_folds(sizes, min(members, len(keys)))
        return FoldPlan(keys[1:], sorted(set(of_group.tolist())), of_group)
    if members > 1:
        return FoldPlan(fold_cuts(sample.keys, [1 / members] * members), list(range(members)))
    share = max(settings.validation_fraction, min(1 / 3, _LEAST_HELD / n))
    if most_held is not None:
        share = min(share, most_held / sample.used)
    if grouped:
        return FoldPlan(keys[1:], [1], held_groups(sizes, share * n).astype(np.intp))
    return FoldPlan(fold_cuts(sample.keys, [1 - share, share]), [1])


def even_folds(sizes: NDArray[np.intp], count: int) -> NDArray[np.intp]:
    """The fold of each group, so that folds have about as many rows: the largest group first,
    each to the fold with fewest rows. Groups of one size are in random order, that of their keys.
    """
    of_group = np.zeros(len(sizes), np.intp)
    folds = [(0, fold) for fold in range(count)]  # a heap of rows and fold
    for group in np.argsort(-sizes, kind="stable"):
        rows, fold = folds[0]
        of_group[group] = fold
        heapq.heapreplace(folds, (rows + int(sizes[group]), fold))
    return of_group


def held_groups(sizes: NDArray[np.intp], wanted: float) -> NDArray[np.bool_]:
    """The groups to hold out, for about `wanted` rows.

    Groups are taken in their order if they bring the number of rows nearer to it. At least one is
    held out, and never all.
    """
    held = np.zeros(len(sizes), bool)
    rows = 0
    for group, size in enumerate(sizes):
        if abs(rows + size - wanted) < abs(rows - wanted):
            held[group] = True
            rows += size
    if not held.any():
        held[np.argmin(sizes)] = True
    elif held.all():
        held[np.argmax(sizes)] = False
    return held


def learn_members(
    examples: Examples, fold: Array, plan: FoldPlan, settings: FitSettings
) -> tuple[list[Seat], list[dict[str, Any]]]:
    """The layers of all members, in the forms and of the kinds that held-out rows choose."""
    inputs = measure_inputs(examples.x, examples.weights)
    start, n = settings.start, len(examples.weights)
    path: list[dict[str, Any]] = []
    if start is not None and _fits(settings, inputs):
        chosen = start.choices
    else:
        settings = replace(settings, start=None)
        if plan.held == [-1] or not settings.max_iter:
            simple = [c for c in choices(inputs, n, settings) if c.form == settings.plain_form]
            chosen = simple[-1:]
        else:
            chosen, path = choose_forms(examples, fold, plan.held, inputs, settings)
    teams = learn_layers(examples, fold, plan.held, inputs, chosen, settings)
    if settings.mixes and settings.fit_intercept and len(inputs.mean) <= MOST_INPUTS["diagonal"]:
        linear = linear_layer(inputs, teams[0][0].components.dtype)
        teams.append([linear] * len(plan.held))
    seats = [
        Seat(layer, held, team)
        for team, layers in enumerate(teams)
        for layer, held in zip(layers, plan.held)
    ]
    return seats, path


def _fits(settings: FitSettings, inputs: InputForm) -> bool:
    """Whether what an earlier fit has learned is of a kind that is asked for now."""
    start, given = settings.start, settings.coefficients
    if start is None or start.basis != settings.basis or start.inputs != len(inputs.mean):
        return False
    if start.ranked != tuple(inputs.ranked.tolist()) or len(start.choices) > 1 + settings.mixes:
        return False
    if given is not None and not np.array_equal(given, start.learned[0][0].coefficients):
        return False
    for choice, learned in zip(start.choices, start.learned):
        kind_fits = settings.metric in ("auto", choice.kind)
        if not kind_fits or settings.input_form not in ("auto", choice.form):
            return False
        if choice.form == "bins" and inputs.bins is None:
            return False
        width = len(replace(inputs, name=choice.form).origin)
        if any(np.ndim(each.metric) and len(each.metric) != width for each in learned):
            return False
    return True


def rotations(seats: list[Seat], sample: Sample, fold: Array, plan: FoldPlan) -> list[Array | None]:
    """For members with fewer rows than features, where to solve: in the span of the rows."""
    found: list[Array | None] = []
    for seat in seats:
        layer = seat.layer
        at = np.ones(len(fold), bool) if plan.single else fold != seat.fold
        if not sample.whole or np.count_nonzero(at) >= layer.components.shape[1]:
            found.append(None)
            continue
        z = project(layer.inputs(sample.x[at]), layer.components)
        phi = fused.apply(layer.sigma, z, out=z)
        found.append(row_rotation(phi) if np.isfinite(phi).all() else None)
    return found


def teams_of(seats: Sequence[Seat]) -> list[list[int]]:
    """The places of each team's members among all."""
    numbers = sorted({seat.team for seat in seats})
    return [[k for k, seat in enumerate(seats) if seat.team == team] for team in numbers]


def leading_team(members: list[Member]) -> list[Member]:
    """The members that differ from the first in their fold alone."""
    return [member for member in members if member.seat.team == members[0].seat.team]


_METRIC_TEXTS = {"none": "one scale", "diagonal": "a scale of each", "full": "a full linear map"}
FORM_TEXTS = {
    "raw": "standardised columns",
    "both": "standardised columns and their ranks",
    "ranks": "ranks of columns",
    "bins": "columns in bins",
}


def describe_members(members: list[Member]) -> list[str]:
    """What there is of each team, and its part in the prediction, for people."""
    found = []
    for places in teams_of([member.seat for member in members]):
        team = [members[k] for k in places]
        layer, part = team[0].layer, sum(member.weight for member in team)
        text = f"{FORM_TEXTS[layer.form.name]}, {_METRIC_TEXTS[layer.kind]}"
        found.append((part, f"{len(team)} × {text}" if not layer.linear else "a linear model"))
    found.sort(key=lambda pair: -pair[0])
    return [text if part > 0.999 else f"{text} ({part:.0%})" for part, text in found]


def out_of_fold(
    judges: Sequence[Member | None], sample: Sample, fold: Array, outputs: int
) -> Array:
    """What each team predicts for rows that it has not seen, teams × n × C; NaN for others."""
    seats = [judge.seat for judge in judges if judge is not None]
    teams = {team: at for at, team in enumerate(sorted({seat.team for seat in seats}))}
    found = np.full((max(len(teams), 1), len(fold), outputs), np.nan)
    for judge in judges:
        if judge is None:
            continue
        at = fold == judge.seat.fold
        if at.any():
            found[teams[judge.seat.team], at] = judge.scores(sample.x[at])
    return found


def mix_teams(loss: Callable[[Array], float], seats: Sequence[Seat]) -> Array:
    """Weights of teams, which sum to one, for the least loss on rows that they have not seen.

    A twentieth at a time goes to the team that lowers the loss most; this does not fit the weights
    to chance as least squares would. A linear team is never alone.
    """
    teams = teams_of(seats)
    count = len(teams)
    if count == 1:
        return np.ones(1)
    linear = [seats[team[0]].layer.linear for team in teams]
    single = [np.inf if linear[k] else loss(np.eye(count)[k]) for k in range(count)]
    alone = np.eye(count)[int(np.argmin(single))]
    best, chosen, parts = min(single), alone, alone
    for total in range(2, _PARTS + 1):
        losses = [loss((parts + one) / total) for one in np.eye(count)]
        parts = parts + np.eye(count)[int(np.argmin(losses))]
        if min(losses) < best:
            best, chosen = min(losses), parts / total
    kept = chosen >= _LEAST_PART
    if not np.any(kept & ~np.array(linear)):
        kept |= alone > 0
    chosen = np.where(kept, chosen, 0.0) / chosen[kept].sum()
    return chosen if loss(chosen) <= min(single) else alone


def weighted(members: list[Member], weights: Array) -> list[Member]:
    """The members of teams that have a weight, each with its part of it, the heaviest first.

    The mean of linear models is one, so that their team becomes a single member, the last.
    """
    teams = teams_of([member.seat for member in members])
    order = sorted(range(len(teams)), key=lambda k: (-weights[k], k))
    found: list[Member] = []
    last: list[Member] = []
    for at in order:
        team = [members[k] for k in teams[at]]
        part = float(weights[at])
        if part > 0 and team[0].layer.linear:
            coef = np.mean([member.coef for member in team], axis=0)
            intercept = np.mean([member.intercept for member in team], axis=0)
            last = [replace(team[0], coef=coef, intercept=intercept, weight=part)]
        elif part > 0:
            found += [replace(member, weight=part / len(team)) for member in team]
    return found + last

"""Members: a layer each with its output weights. The prediction is their weighted mean.

Members that differ in their fold alone are a team. Errors of teams on rows that they have not seen
choose the weights of the teams.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rflaf import fused, rules
from rflaf.fitting.layers import FittedLayer
from rflaf.fitting.local import Local
from rflaf.fitting.task import Task
from rflaf.runtime.cached import computed_once
from rflaf.solvers.features import Projector

Array = NDArray[Any]

_CHUNK = 1 << 18  # elements of Z at once, which stay in the cache


@dataclass(frozen=True)
class Member:
    """A layer and its output weights."""

    layer: FittedLayer
    coef: Array  # M × C
    intercept: Array  # C
    alpha: float
    weight: float = 1.0  # its part in the prediction
    local: tuple[Local, ...] = ()  # their scores come on top

    def scores(self, x: Any) -> Array:
        """Phi V + intercept in float64, for inputs as they are; infinite where sigma overflows."""
        return self.scores_of(self.layer.inputs(x))

    def scores_of(self, inputs: Any) -> Array:
        """The same for inputs in the layer's form.

        Output weights of at most 1 are used, so that float32 need not hold the target's units.
        """
        unit, readout = self._readout
        with np.errstate(over="ignore", invalid="ignore"):
            scores = np.asarray(readout(inputs), np.float64) * unit + self.intercept
            if self.local:
                scores += self.local_scores(inputs)
        return scores

    def scores_at(self, z: Array) -> Array:
        """The same for known z of all directions."""
        unit, layer = self._readout[0], self.layer
        own = z[:, : len(self.coef)]
        scores = fused.predict(layer.sigma, own, self.coef / unit) * unit + self.intercept
        for local in self.local:
            scores += local.scores(layer, z[:, local.columns.ravel()])
        return scores

    def local_scores(self, inputs: Any) -> Array:
        """The scores of local models alone, for inputs in the layer's form."""
        layer, scores = self.layer, np.zeros((inputs.shape[0], len(self.local[0].unit)))

        def task(rows: slice) -> None:
            for local, project in zip(self.local, self.projectors):
                scores[rows] += local.scores(layer, project(inputs[rows]))

        fused.for_each(task, fused.split_rows((len(scores), self.local[0].columns.size), _CHUNK))
        return scores

    @computed_once
    def directions(self) -> Array:
        """L W, and behind it the directions of single columns if local models have them."""
        w = self.layer.components
        if all(np.max(local.columns) < w.shape[1] for local in self.local):
            return w
        return np.hstack([w, self.layer.axes])

    @computed_once
    def projectors(self) -> list[Projector]:
        """What gives the z of each local model."""
        w = self.directions
        return [Projector(w[:, local.columns.ravel()]) for local in self.local]

    @computed_once
    def _readout(self) -> tuple[Array, fused.Readout]:
        largest = np.abs(self.coef).max(axis=0)
        unit = np.where(largest > 0, largest, 1.0)
        layer = self.layer
        return unit, fused.Readout(layer.sigma, layer.components, self.coef / unit)

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


class InputsOnce:
    """Some rows as the layers of one fit take them; layers with one form share the result."""

    def __init__(self, x: Any) -> None:
        self._x = x
        self._known: dict[tuple[int, int, Any], Any] = {}

    def of(self, layer: FittedLayer, fold: Array | None = None) -> Any:
        """The rows as a layer takes them; `fold` as for `FittedLayer.inputs`."""
        key = id(layer.form), id(layer.means), layer.components.dtype
        if key not in self._known:
            self._known[key] = layer.inputs(self._x, fold)
        return self._known[key]


def mixed_scores(members: list[Member], x: Any) -> Array:
    """The weighted mean of the members' scores."""
    inputs = InputsOnce(x)
    total: Any = 0.0
    for member in members:
        total = total + member.weight * member.scores_of(inputs.of(member.layer))
    return np.asarray(total)


def export_mixed(graph: Any, members: list[Member], x: str, readout: Callable[..., str]) -> str:
    """The weighted mean of the members' scores as part of a graph.

    `readout(member, inputs, order)` gives a member's part of Phi V, for inputs in its layer's form
    and in this order.
    """
    total: Any = np.sum([member.weight * member.intercept for member in members], axis=0)
    for member in members:
        means = member.layer.means
        given = x if means is None else means.export(graph, x)
        total = graph.add("Add", readout(member, *member.layer.form.export(graph, given)), total)
    return str(total)


def all_scores(members: list[Member], x: Any) -> Array:
    """The scores of each member, members × n × C."""
    inputs = InputsOnce(x)
    return np.stack([member.scores_of(inputs.of(member.layer)) for member in members])


def teams_of(layers: Sequence[FittedLayer]) -> list[list[int]]:
    """The places of each team's layers among all."""
    numbers = sorted({layer.team for layer in layers})
    return [[k for k, layer in enumerate(layers) if layer.team == team] for team in numbers]


def leading_team(members: list[Member]) -> list[Member]:
    """The members that differ from the first in their fold alone."""
    return [member for member in members if member.layer.team == members[0].layer.team]


_METRIC_TEXTS = {
    "none": "one scale",
    "diagonal": "one learned scale per input",
    "full": "a learned linear map",
}


def describe_members(members: list[Member]) -> list[str]:
    """What there is of each team, and its part in the prediction, for people."""
    parts = []
    for places in teams_of([member.layer for member in members]):
        team = [members[k] for k in places]
        layer, part = team[0].layer, sum(member.weight for member in team)
        models = "model" if len(team) == 1 else "models"
        text = f"{len(team)} {models} on {layer.form.text}, {_METRIC_TEXTS[layer.kind]}"
        text += ", with local models" if team[0].local else ""
        parts.append((part, text))
    parts.sort(key=lambda pair: -pair[0])
    return [text if part > 0.999 else f"{text} ({part:.0%} of the weight)" for part, text in parts]


def out_of_fold(judges: Sequence[Member | None], task: Task) -> Array:
    """What each team predicts for rows that it has not seen, teams × n × C; NaN for others."""
    teams = sorted({judge.layer.team for judge in judges if judge is not None})
    scores = np.full((max(len(teams), 1), len(task.fold), task.loss.outputs), np.nan)
    for judge in judges:
        if judge is None:
            continue
        at = task.fold == judge.layer.fold
        if at.any():
            scores[teams.index(judge.layer.team), at] = judge.scores(task.sample.x[at])
    return scores


def mix_teams(loss: Callable[[Array], float], count: int) -> Array:
    """Weights of teams, which sum to one, for the least loss on rows that they have not seen.

    A part at a time goes to the team that lowers the loss most; this does not fit the weights to
    chance as least squares would.
    """
    single = [loss(one) for one in np.eye(count)] if count > 1 else [0.0]
    alone = np.eye(count)[int(np.argmin(single))]
    if count == 1:
        return alone
    best, chosen, parts = min(single), alone, alone
    for total in range(2, rules.MIX_PARTS + 1):
        losses = [loss((parts + one) / total) for one in np.eye(count)]
        parts = parts + np.eye(count)[int(np.argmin(losses))]
        if min(losses) < best:
            best, chosen = min(losses), parts / total
    chosen = np.where(chosen >= rules.LEAST_PART, chosen, 0.0)
    chosen = chosen / chosen.sum()
    return chosen if loss(chosen) <= min(single) else alone


def weighted(members: list[Member], weights: Array) -> list[Member]:
    """The members of teams that have a weight, each with its part of it, the heaviest first."""
    teams = teams_of([member.layer for member in members])
    order = sorted(range(len(teams)), key=lambda k: (-weights[k], k))
    return [
        replace(members[k], weight=float(weights[at]) / len(teams[at]))
        for at in order
        if weights[at] > 0
        for k in teams[at]
    ]

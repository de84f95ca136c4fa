"""How much the prediction depends on each input."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rflaf import fused, rules
from rflaf.fitting.members import Member, teams_of
from rflaf.runtime.threads import parallel
from rflaf.solvers.features import as_array, project

Array = NDArray[Any]

_MOST_IN_ALL = 16_000  # rows that are compared, for all inputs together


def input_importances(
    members: list[Member], x: Any, rng: np.random.Generator
) -> tuple[Array, Array]:
    """How far predictions move when an input is shuffled: mean squares, summing to one.

    The second result, members × d, has the deviations of the members' own importances from their
    mean, times the root of the member's weight. Their squares add up to the variance, also after
    inputs of one column have been added up.

    It is what permutation importance measures, without the noise of the target; two members of
    each team are asked. Gradients times the spread of an input were tried: they see steep places
    and miss jumps, and order the inputs of heavy-tailed tables otherwise than permutation
    importance does.
    """
    members = _some_of_each_team(members)
    n, d = x.shape
    count = max(min(n, rules.IMPORTANCE_ROWS, _MOST_IN_ALL // max(d, 1)), min(n, 20))
    rows = x[np.sort(rng.choice(n, count, replace=False))]
    order = rng.permutation(count)
    sizes = [np.abs(member.coef).max(axis=0) for member in members]
    sizes += [local.unit for member in members for local in member.local]
    largest = np.max(sizes, axis=0)
    largest = np.where(largest > 0, largest, 1.0)  # the target's units do not matter here
    layers = [_Shuffled(member, rows, order, largest) for member in members]
    before = [_Before(sum(layer.scores for layer in layers))]
    before += [_Before(layer.scores) for layer in layers]
    share = np.zeros((len(before), d))

    def task(j: int) -> None:
        moved = [layer.moved(j) for layer in layers]
        share[:, j] = [each.change(scores) for each, scores in zip(before, [sum(moved), *moved])]

    with np.errstate(over="ignore", invalid="ignore"):
        parallel(task, d)
    share = np.where(np.isfinite(share), share, 0.0)
    total = share.sum(axis=1, keepdims=True)
    share /= np.where(total > 0, total, 1.0)
    weights = np.array([[member.weight] for member in members])
    weights /= weights.sum()
    return share[0], np.sqrt(weights) * (share[1:] - (weights * share[1:]).sum(axis=0))


def _some_of_each_team(members: list[Member]) -> list[Member]:
    """The first members of every team, with the weight of all: they depend on inputs alike."""
    asked: list[Member] = []
    for places in teams_of([member.layer for member in members]):
        some = [members[k] for k in places[: rules.IMPORTANCE_MEMBERS]]
        more = len(places) / len(some)
        asked += [replace(member, weight=more * member.weight) for member in some]
    return asked


class _Before:
    """Scores on some rows, in units of their spread."""

    def __init__(self, scores: Any) -> None:
        self._scores = _centred(scores)
        unit = self._scores.std(axis=0)
        self._unit = np.where(unit > 0, unit, 1.0)

    def change(self, scores: Any) -> float:
        """The mean square of how far other scores are from these."""
        return float(np.mean(((_centred(scores) - self._scores) / self._unit) ** 2))


class _Shuffled:
    """The scores of a member on some rows, and with one input shuffled: only its columns move Z."""

    def __init__(self, member: Member, rows: Any, order: Array, unit: Array) -> None:
        layer = member.layer
        inputs = layer.inputs(rows)
        self._inputs = as_array(inputs)
        self._w, self._sigma, self._order = member.directions, layer.sigma, order
        self._z = project(self._inputs, self._w)
        columns = np.argsort(layer.origin, kind="stable")
        self._columns = np.split(
            columns, np.cumsum(np.bincount(layer.origin, minlength=rows.shape[1]))[:-1]
        )
        self._v = member.weight * member.coef / unit
        self._layer = layer
        self._local = [
            replace(local, unit=member.weight * (local.unit / unit)) for local in member.local
        ]
        with np.errstate(over="ignore", invalid="ignore"):
            self.scores = self._predict(self._z)

    def moved(self, j: int) -> Array:
        """The scores with input j shuffled."""
        columns = self._columns[j]
        change = self._inputs[np.ix_(self._order, columns)] - self._inputs[:, columns]
        if not change.any():
            return self.scores
        return self._predict(self._z + change @ self._w[columns])

    def _predict(self, z: Array) -> Array:
        scores = np.asarray(fused.predict(self._sigma, z[:, : len(self._v)], self._v), np.float64)
        for local in self._local:
            scores = scores + local.scores(self._layer, z[:, local.columns.ravel()])
        return scores


def _centred(scores: Any) -> Array:
    """Scores of more than two classes are free up to a constant per row."""
    return np.asarray(scores - scores.mean(axis=1, keepdims=True) * (scores.shape[1] > 2))

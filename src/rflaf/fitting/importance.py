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


def input_importances(members: list[Member], x: Any, rng: np.random.Generator) -> Array:
    """How far predictions move when an input is shuffled: mean squares, summing to one.

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
    largest = np.max([np.abs(member.coef).max(axis=0) for member in members], axis=0)
    largest = np.where(largest > 0, largest, 1.0)  # the target's units do not matter here
    layers = [_Shuffled(member, rows, order, largest) for member in members]
    before = _centred(sum(layer.scores for layer in layers))
    unit = before.std(axis=0)
    unit = np.where(unit > 0, unit, 1.0)
    share = np.zeros(d)

    def task(j: int) -> None:
        moved = _centred(sum(layer.moved(j) for layer in layers))
        share[j] = np.mean(((moved - before) / unit) ** 2)

    with np.errstate(over="ignore", invalid="ignore"):
        parallel(task, d)
    share = np.where(np.isfinite(share), share, 0.0)
    return share / share.sum() if share.sum() > 0 else share


def _some_of_each_team(members: list[Member]) -> list[Member]:
    """The first members of every team, with the weight of all: they depend on inputs alike."""
    asked: list[Member] = []
    for places in teams_of([member.layer for member in members]):
        some = [members[k] for k in places[: rules.IMPORTANCE_MEMBERS]]
        more = len(places) / len(some)
        asked += [replace(member, weight=more * member.weight) for member in some]
    return asked


class _Shuffled:
    """The scores of a member on some rows, and after one input has been shuffled.

    Z changes by the columns of that input alone.
    """

    def __init__(self, member: Member, rows: Any, order: Array, unit: Array) -> None:
        layer = member.layer
        inputs = layer.inputs(rows)
        self._inputs = as_array(inputs)
        self._w, self._sigma, self._order = layer.components, layer.sigma, order
        self._z = project(self._inputs, self._w)
        columns = np.argsort(layer.origin, kind="stable")
        self._columns = np.split(
            columns, np.cumsum(np.bincount(layer.origin, minlength=rows.shape[1]))[:-1]
        )
        self._v = member.weight * member.coef / unit
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
        return np.asarray(fused.predict(self._sigma, z, self._v), np.float64)


def _centred(scores: Any) -> Array:
    """Scores of more than two classes are free up to a constant per row."""
    return np.asarray(scores - scores.mean(axis=1, keepdims=True) * (scores.shape[1] > 2))

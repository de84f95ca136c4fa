"""Classification models that more rows are added to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rflaf.fitting import budget
from rflaf.fitting.classes import ClassEncoding
from rflaf.fitting.learn import FittedLayer
from rflaf.fitting.members import FoldPlan, Member
from rflaf.fitting.settings import FitSettings
from rflaf.rows import ArrayRows
from rflaf.rows.sample import fold_keys
from rflaf.runtime.threads import parallel, use_threads
from rflaf.solvers.laplace import KnownWeights, add_rows
from rflaf.solvers.softmax import ClassRows, Objective, SoftmaxProblem

Array = NDArray[Any]


@dataclass(frozen=True)
class Growth:
    """What more rows go on from.

    Attributes
    ----------
    known : list of KnownWeights
        For each member, before its weights are divided by the temperature.
    encoding : ClassEncoding
        The classes and their weights.
    plan, seed : FoldPlan, int
        What decides on the folds of rows.
    rows_seen : int
        The number of the next row.
    block_rows : int
        How many rows are taken at once.
    fit_intercept : bool
    temperature : float
    alpha : float, optional
        A penalty to keep.
    """

    known: list[KnownWeights]
    encoding: ClassEncoding
    plan: FoldPlan
    seed: int
    rows_seen: int
    block_rows: int
    fit_intercept: bool
    temperature: float
    alpha: float | None = None

    def member(self, member: Member, known: KnownWeights) -> Member:
        """A member with the weights that are known now."""
        coef, intercept = known.v[:-1], known.v[-1] * self.fit_intercept
        return replace(
            member,
            coef=coef / self.temperature,
            intercept=intercept / self.temperature,
            alpha=known.alpha,
        )


def layer_objective(
    layer: FittedLayer, rows: ClassRows, exact: bool, fit_intercept: bool, room: int
) -> Objective:
    """The loss of rows as a function of a layer's output weights; `exact` in float64."""
    w = layer.components.astype(np.float64) if exact else layer.components
    problem = SoftmaxProblem(layer.sigma, w, rows, None, None, 0.0)
    return Objective(problem, rows, fit_intercept, room)


def grow(
    growth: Growth, members: list[Member], x: Any, y: Array, weights: Array, settings: FitSettings
) -> tuple[Growth, list[Member]]:
    """Add rows, which are numbered from `growth.rows_seen` on.

    Of several members each takes the rows outside of its fold; one alone takes all.
    """
    codes, weights = growth.encoding.encode(y, weights)
    stop = growth.rows_seen + len(codes)
    fold = growth.plan.folds(fold_keys(growth.seed, growth.rows_seen, stop))
    exact = len(codes) * len(members[0].coef) <= budget.EXACT_OF_CLASSES
    room = budget.kept_bytes(settings.max_bytes) // len(members)
    known = list(growth.known)

    def task(k: int) -> None:
        used = weights > 0
        if not growth.plan.single:
            used &= fold != members[k].seat.fold
        if not used.any():
            return
        layer, of_rows = members[k].layer, weights[used]
        rows = ArrayRows(layer.inputs(x[used]), codes[used], of_rows)
        part = ClassRows(rows, float(of_rows.sum()), growth.block_rows)
        objective = layer_objective(layer, part, exact, growth.fit_intercept, room)
        known[k] = add_rows(known[k], objective, growth.alpha)

    with use_threads(settings.n_jobs):
        parallel(task, len(members))
    growth = replace(growth, known=known, rows_seen=stop)
    return growth, [growth.member(member, now) for member, now in zip(members, known)]

"""More rows for a model that has kept the sums of its loss's quadratic model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from rflaf.arrays import Array
from rflaf.fitting import budget
from rflaf.fitting.fit import Fit, Online
from rflaf.fitting.outside import value_range
from rflaf.fitting.settings import FitSettings
from rflaf.fitting.solving import Prepare, solve_sums
from rflaf.fitting.spread import Spread
from rflaf.fitting.sums import Pair, SumMembers, add_sums
from rflaf.rows import Block, Rows
from rflaf.runtime.threads import parallel, use_threads
from rflaf.solvers.features import KeptBlocks
from rflaf.solvers.objective import FeatureMap, Objective
from rflaf.solvers.parts import RowPart
from rflaf.solvers.result import Solution
from rflaf.solvers.ridge import NormalEquations

_FINE = 1e-5  # how far from its least the loss may be


def extend(fitted: Fit, rows: Rows, settings: FitSettings) -> Fit:
    """Add rows to a fit that was made to go on; they are numbered from `fitted.rows_seen` on.

    Of the rows so far only sums are left: the loss's quadratic model near its least. For squared
    error this is the loss itself, and the penalty is chosen anew. For any other loss it holds near
    that least alone. The loss of the new rows is added to it, and the sum is minimised. There the
    quadratic model of the new rows is taken and added to the sums. Far from its least such a model
    tells nothing, so it cannot choose a penalty: the sum of the losses keeps the penalty it had,
    which is a smaller one for the mean over more rows.
    """
    online, loss = fitted.online, fitted.loss
    assert online is not None
    count = rows.reduce(_count_rows, int.__add__, online.block_rows)
    layers = [member.layer for member in fitted.members]
    m = layers[0].components.shape[1]
    settings = replace(settings, n_components=m)
    with use_threads(settings.n_jobs):
        new = None if loss.quadratic else _new_solutions(fitted, online, rows, settings)
        summed = SumMembers(
            layers=layers,
            loss=loss,
            folds=online.folds,
            seed=online.seed,
            exact=count * m <= budget.EXACT_FEATURES,
            rotations=[None] * len(layers),
            at=None if new is None else [np.vstack([each.coef, each.intercept]) for each in new],
        )
        sums = add_sums(online.sums, rows.reduce(summed, add_sums, online.block_rows))
        solutions, noise, spread = new, fitted.noise, fitted.spread
        if solutions is None:
            solutions = solve_sums(sums, layers, settings, online.first_rows)
            noise, spread = _grown_noise(fitted, online, sums, solutions, settings)
    members = []
    for member, solution in zip(fitted.members, solutions):
        given = solution.coef / fitted.temperature, solution.intercept / fitted.temperature
        coef, intercept = loss.in_units(*given)
        members.append(replace(member, coef=coef, intercept=intercept, alpha=solution.alpha))
    grown = rows.reduce(_value_range, _joined_range, online.block_rows)
    return replace(
        fitted,
        members=members,
        outside=fitted.outside.grown(grown),
        alpha_path=solutions[0].path or fitted.alpha_path,
        noise=noise,
        spread=spread,
        rows_seen=fitted.rows_seen + count,
        online=replace(online, sums=sums),
    )


def _count_rows(blocks: Iterable[Block]) -> int:
    return sum(len(block.weights) for block in blocks)


def _value_range(blocks: Iterable[Block]) -> Array:
    return reduce(_joined_range, (value_range(block.x) for block in blocks))


def _joined_range(one: Array, other: Array) -> Array:
    return np.array([np.minimum(one[0], other[0]), np.maximum(one[1], other[1])])


def _sum_weights(blocks: Iterable[Block]) -> float:
    return sum(float(block.weights.sum()) for block in blocks)


def _new_solutions(
    fitted: Fit, online: Online, rows: Rows, settings: FitSettings
) -> list[Solution]:
    """For each member the output weights with the least loss of new rows and of those so far."""
    solutions: list[Any] = [None] * len(fitted.members)
    room = budget.kept_bytes(settings.max_bytes) // len(solutions)

    def task(k: int) -> None:
        member, (fit, held_out) = fitted.members[k], online.sums[k]
        layer = member.layer
        known = fit + held_out
        alpha = settings.alpha or member.alpha
        start = known.solve(alpha, settings.fit_intercept)
        prepare = Prepare(layer, fitted.loss, online.folds, online.seed)
        part = RowPart(rows, online.block_rows, KeptBlocks(room), prepare)
        if settings.alpha is None:
            alpha *= known.weight / (known.weight + part.reduce(_sum_weights))
        features = FeatureMap(layer.sigma, layer.components, float(settings.fit_intercept))
        objective = Objective(features, [part], fitted.loss, known)
        v = objective.solve(objective.curvature(start), alpha, start, _FINE)
        solutions[k] = Solution(v[:-1], v[-1] * settings.fit_intercept, alpha, [])

    parallel(task, len(solutions))
    return solutions


def _grown_noise(
    fitted: Fit, online: Online, sums: list[Pair], solutions: list[Any], settings: FitSettings
) -> tuple[Array | None, Spread | None]:
    """The noise, in proportion to the errors with new rows and without."""
    noise, spread = fitted.noise, fitted.spread
    if noise is None or spread is None:
        return noise, spread
    layers = [member.layer for member in fitted.members]
    before = solve_sums(online.sums, layers, settings, online.first_rows)
    grown = _errors(sums, solutions) / np.maximum(_errors(online.sums, before), 1e-300)
    grown = np.sqrt(grown)
    return noise * grown, spread.scaled(grown)


def _errors(sums: list[Pair], solutions: list[Any]) -> Array:
    """The mean loss of each output on rows that the weights have not seen, or on all."""
    known: list[tuple[NormalEquations, Array]] = []
    for (fit, held_out), solution in zip(sums, solutions):
        if solution.honest is not None:
            known.append((held_out, solution.honest))
        else:
            every = np.vstack([solution.coef, solution.intercept])
            known.append((fit + held_out, every))
    weights = np.array([part.weight for part, _ in known])
    losses = np.array([part.loss(v) for part, v in known])
    return np.asarray(weights / weights.sum() @ losses)

"""Output weights of all members, by what suits the loss and the number of features.

A quadratic loss is solved from sums over rows, in one pass for all members and penalties, or by
conjugate gradients where the features are too many. Any other loss takes steps with a pass each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rflaf import fused, rules
from rflaf.arrays import Array
from rflaf.fitting import budget
from rflaf.fitting.folds import Folds
from rflaf.fitting.layers import FittedLayer
from rflaf.fitting.members import InputsOnce, teams_of
from rflaf.fitting.settings import FitSettings
from rflaf.fitting.sums import Pair, SumMembers, add_sums
from rflaf.fitting.task import Task, means_folds
from rflaf.inputs.scaling import column_moments
from rflaf.losses import Loss
from rflaf.rows import ArrayRows, Block, Rows
from rflaf.runtime.memory import free_bytes
from rflaf.runtime.threads import parallel
from rflaf.solvers.cg import WideProblem, WideSettings, solve_cg
from rflaf.solvers.features import KeptBlocks, check_finite, project, row_rotation, unrotated
from rflaf.solvers.newton import NewtonProblem, NewtonSettings, solve_newton
from rflaf.solvers.objective import FeatureMap
from rflaf.solvers.parts import RowPart
from rflaf.solvers.result import Solution
from rflaf.solvers.ridge import choose_alpha, gcv_penalty


@dataclass(frozen=True)
class Solved:
    """A solution for each layer, and the layers, whose scale a solver may have changed."""

    layers: list[FittedLayer]
    solutions: list[Solution]
    sums: list[Pair] | None = None  # those of the loss's quadratic model, where they were taken,
    rotations: Sequence[Array | None] = ()  # in the span that these have where rows are few


def solve_members(rows: Rows, task: Task, layers: list[FittedLayer]) -> Solved:
    if task.settings.uses_cg:
        return _solve_by_cg(rows, task, layers[0])
    if task.loss.quadratic:
        rotations = _rotations(task, layers)
        sums = sum_rows(rows, task, layers, rotations)
        solutions = solve_sums(sums, layers, task.settings, task.sample.used)
        turned = [_unrotated(*pair) for pair in zip(solutions, rotations)]
        return Solved(layers, turned, sums, rotations)
    solutions = _solve_by_steps(rows, task, layers)
    if not task.settings.online:
        return Solved(layers, solutions)
    weights = [np.vstack([solution.coef, solution.intercept]) for solution in solutions]
    plain = [None] * len(layers)  # later rows leave the span of these
    return Solved(layers, solutions, sum_rows(rows, task, layers, plain, weights))


def sum_rows(
    rows: Rows,
    task: Task,
    layers: list[FittedLayer],
    rotations: Sequence[Array | None],
    at: list[Array] | None = None,
) -> list[Pair]:
    """Sums over all rows, for each member; at some output weights if the loss needs them."""
    settings, sample = task.settings, task.sample
    summed = SumMembers(
        layers=layers,
        loss=task.loss,
        folds=task.folds,
        seed=settings.seed,
        exact=sample.used * settings.components <= budget.EXACT_FEATURES,
        rotations=rotations,
        at=at,
    )
    size = budget.block_rows(settings.components, sample.width, settings.max_bytes)
    return rows.reduce(summed, add_sums, size)


def _rotations(task: Task, layers: list[FittedLayer]) -> list[Array | None]:
    """Where there are fewer rows than features, where to solve: in the span of the rows."""
    rotations: list[Array | None] = []
    for layer in layers:
        few = len(task.fold) < layer.components.shape[1]
        if task.settings.online or not task.sample.whole or not few:  # later rows leave the span
            rotations.append(None)
            continue
        x = layer.inputs(task.sample.x, means_folds(layer, task.folds, task.sample.keys))
        z = project(x, layer.components)
        phi = fused.apply(layer.sigma, z, out=z)
        rotations.append(row_rotation(phi) if np.isfinite(phi).all() else None)
    return rotations


def _unrotated(solution: Solution, rotation: Array | None) -> Solution:
    if rotation is None:
        return solution
    honest = None if solution.honest is None else unrotated(solution.honest, rotation)
    return replace(solution, coef=rotation.astype(np.float64) @ solution.coef, honest=honest)


def solve_sums(
    sums: list[Pair], layers: list[FittedLayer], settings: FitSettings, first_rows: int
) -> list[Solution]:
    """Choose the penalty of each team by the rows held out, and solve.

    `first_rows` rows were there when the layers were learned.
    """
    intercept, teams = settings.fit_intercept, teams_of(layers)
    single = len({layer.fold for layer in layers}) == 1
    solutions: list[Any] = [None] * len(sums)
    chosen: list[Any] = [None] * len(teams)

    def choose(number: int) -> None:
        team = teams[number]
        pairs = [sums[k] for k in team]
        start = float(np.exp(np.median([np.log(layers[k].alpha) for k in team])))
        if settings.alpha is not None:
            chosen[number] = settings.alpha, []
        elif all(fit.rows and held_out.rows for fit, held_out in pairs):
            chosen[number] = choose_alpha(pairs, start, intercept)
        elif sum(part.rows for part in pairs[0]) == first_rows and settings.max_iter:
            chosen[number] = start, []  # chosen with the activation, on these few rows
        else:
            chosen[number] = gcv_penalty(pairs[0][0] + pairs[0][1], intercept)

    parallel(choose, len(teams))

    def solve(k: int) -> None:
        alpha, path = next(chosen[i] for i, team in enumerate(teams) if k in team)
        fit, held_out = sums[k]
        honest = fit.solve(alpha, intercept) if fit.rows and held_out.rows else None
        every = honest
        if single or every is None:
            every = (fit + held_out).solve(alpha, intercept)
        solutions[k] = Solution(every[:-1], every[-1] * intercept, alpha, path, honest=honest)

    parallel(solve, len(sums))
    return solutions


@dataclass(frozen=True)
class Prepare:
    """Rows of positive weight as the solvers take them, of a fold or without it."""

    layer: FittedLayer
    loss: Loss
    folds: Folds
    seed: int
    fold: int | None = None
    inside: bool = False

    def __call__(self, block: Block) -> Block:
        y, weights = self.loss.encode(block.y, block.weights)
        keys = block.fold_keys(self.seed)
        used = weights > 0
        if self.fold is not None:
            used &= (self.folds(keys) == self.fold) == self.inside
        x = block.x
        if not used.all():
            x, y, weights, keys = x[used], y[used], weights[used], keys[used]
        inputs = self.layer.inputs(x, means_folds(self.layer, self.folds, keys))
        return Block(block.start, inputs, y, weights)


def _solve_by_steps(rows: Rows, task: Task, layers: list[FittedLayer]) -> list[Solution]:
    """Output weights for any loss; each team has a penalty of its own."""
    sample, settings = task.sample, task.settings
    size = budget.block_rows(settings.components, sample.width, settings.max_bytes)
    room = budget.kept_bytes(settings.max_bytes)
    stored = None if sample.whole else rows.held(room)
    exact = sample.used * settings.components <= budget.EXACT_OF_STEPS
    teams, inputs = teams_of(layers), InputsOnce(sample.x)
    room //= len(layers)
    problems = []
    for layer, rotation in zip(layers, _rotations(task, layers)):
        x = inputs.of(layer, means_folds(layer, task.folds, sample.keys))
        inside = task.fold == layer.fold
        fit, held_out = (
            _sample_part(task, x, at, size, share)
            for at, share in ((~inside, room), (inside, room // 4))
        )
        w = layer.components.astype(np.float64) if exact else layer.components
        every = None
        if stored is not None:
            prepare = Prepare(layer, task.loss, task.folds, settings.seed)
            every = [RowPart(stored, size, KeptBlocks(room), prepare)]
        elif held_out is not None:
            every = [fit, held_out]
        features = FeatureMap(layer.sigma, w, float(settings.fit_intercept), rotation)
        constant = task.loss.constant(sample.y[~inside], sample.weights[~inside])
        problems.append(NewtonProblem(features, fit, held_out, every, constant))
    solutions: list[Any] = [None] * len(layers)
    fewest = min(int(np.count_nonzero(task.fold == layer.fold)) for layer in layers)
    stalls = task.loss.outputs > rules.STALL_OUTPUTS and fewest >= rules.STALL_ROWS

    def solve(number: int) -> None:
        team = teams[number]
        alpha = float(np.exp(np.median([np.log(layers[k].alpha) for k in team])))
        alpha = float(np.clip(rules.STRONGER_START * alpha, 1e-9, 1.0))
        if settings.alpha is not None:
            alpha = settings.alpha
        elif not settings.holds_out:
            alpha = max(alpha, _few_rows_penalty(problems[team[0]]))
        search = settings.alpha is None
        rule = NewtonSettings(alpha, search, stored is not None, stalls)
        for k, solution in zip(team, solve_newton([problems[k] for k in team], task.loss, rule)):
            solutions[k] = solution

    if stored is None:
        parallel(solve, len(teams))
    else:  # rows that are read anew: one pass at a time
        for number in range(len(teams)):
            solve(number)
    return solutions


def _sample_part(task: Task, x: Any, at: Array, size: int, room: int) -> Any:
    """Some of the sample's rows, with inputs in their form; None where there are none."""
    if not at.any():
        return None
    rows = ArrayRows(x[at], task.sample.y[at], task.sample.weights[at])
    return RowPart(rows, size, KeptBlocks(room))


def _few_rows_penalty(problem: NewtonProblem) -> float:
    """The least penalty where no rows can be held out: a part of the features' variance."""
    rows = problem.fit.rows
    assert isinstance(rows, ArrayRows)
    phi = problem.features(rows.x)[:, :-1].astype(np.float64)
    _, spread = column_moments(phi, rows.weights)  # a row of weight 2 is the same as two rows
    check_finite(float(spread @ spread))
    return max(rules.FEW_ROWS_PENALTY * float(spread @ spread), 1e-6)


def _solve_by_cg(rows: Rows, task: Task, layer: FittedLayer) -> Solved:
    """Output weights of one member with many features.

    Rows held out choose when to stop, and the penalty. Where the metric was learned they choose
    its scale too, for it was learned on fewer rows than these.
    """
    sample, settings, folds = task.sample, task.settings, task.folds
    automatic = settings.alpha is None
    size = budget.wide_block_rows(settings.components, sample.width, settings.max_bytes)
    max_bytes = settings.max_bytes or free_bytes() // 4
    stored = rows.held(max_bytes // 4)

    def part(inside: bool) -> Callable[[int], RowPart]:
        fold = layer.fold if settings.holds_out else None
        prepare = Prepare(layer, task.loss, folds, settings.seed, fold, inside)
        return lambda room: RowPart(stored, size, KeptBlocks(room), prepare)

    outside = task.fold != layer.fold
    fold = means_folds(layer, folds, sample.keys)
    problem = WideProblem(
        sigma=layer.sigma,
        w=layer.components,
        fit=part(inside=False),
        held_out=part(inside=True) if settings.holds_out else None,
        sample_x=layer.inputs(sample.x[outside], None if fold is None else fold[outside]),
        sample_weights=sample.weights[outside],
    )
    rule = WideSettings(
        alpha=layer.alpha if settings.alpha is None else settings.alpha,
        search=automatic,
        rescale=automatic and layer.kind != "none" and bool(layer.history),
        fit_intercept=settings.fit_intercept,
        max_bytes=max_bytes,
        max_iter=100 if automatic else 500,
        tol=1e-4 if automatic else 1e-5,
    )
    solution = solve_cg(problem, rule, settings.rng(1))
    return Solved([layer.scaled(solution.scale, sample.x, settings.rng())], [solution])

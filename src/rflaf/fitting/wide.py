"""The last solve of a regression with more features than normal equations can take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rflaf.fitting import budget
from rflaf.fitting.judged import RegressionFit, TargetScale, in_units, judged_fit
from rflaf.fitting.learn import FittedLayer
from rflaf.fitting.members import FoldPlan, Member, Seat, out_of_fold
from rflaf.fitting.settings import FitSettings
from rflaf.rows import Block, Rows, Sample
from rflaf.runtime.memory import free_bytes
from rflaf.solvers.cg import WideProblem, WideSettings, solve_cg
from rflaf.solvers.features import KeptBlocks
from rflaf.solvers.layer import RowPart

Array = NDArray[Any]


@dataclass(frozen=True)
class Prepare:
    """Rows of positive weight as the solvers take them, with the keys of their folds.

    With `fold` only the rows of that fold are left, or all others.
    """

    layer: FittedLayer
    target: TargetScale
    seed: int
    plan: FoldPlan
    fold: int | None = None
    inside: bool = True

    def __call__(self, block: Block) -> Block:
        used = block.weights > 0
        if self.fold is not None:
            inside = self.plan.folds(block.fold_keys(self.seed)) == self.fold
            used &= inside if self.inside else ~inside
        x, y, weights = block.x, block.y, block.weights
        if not used.all():
            x, y, weights = x[used], y[used], weights[used]
        return Block(block.start, self.layer.inputs(x), self.target.scaled(y), weights)


def solve_wide(
    rows: Rows,
    seat: Seat,
    target: TargetScale,
    plan: FoldPlan,
    sample: Sample,
    settings: FitSettings,
) -> RegressionFit:
    """Output weights by conjugate gradients.

    Rows held out choose when to stop, and the penalty. Where the metric was learned they choose
    its scale too, for it was learned on fewer rows than these.
    """
    layer = seat.layer
    automatic, holds = settings.alpha is None, plan.held != [-1]
    size = budget.wide_block_rows(settings.components, sample.width, settings.max_bytes)
    max_bytes = settings.max_bytes or free_bytes() // 4
    at_hand = rows.held(max_bytes // 4)

    def part(inside: bool) -> Callable[[int], RowPart]:
        fold = plan.held[0] if holds else None
        prepare = Prepare(layer, target, settings.seed, plan, fold, inside)
        return lambda room: RowPart(at_hand, prepare, size, KeptBlocks(room))

    fold = plan.folds(sample.keys)
    fitted = fold != plan.held[0]
    problem = WideProblem(
        sigma=layer.sigma,
        w=layer.components,
        fit=part(inside=False),
        held=part(inside=True) if holds else None,
        sample_x=layer.inputs(sample.x[fitted]),
        sample_weights=sample.weights[fitted],
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
    best = min(solution.path, key=lambda record: float(record["loss"]))
    noise = np.sqrt(best["losses"]) * target.scale
    seat = replace(seat, layer=layer.scaled(solution.scale, sample.x, settings.rng()))
    member = in_units(seat, solution.coef, solution.intercept, solution.alpha, target, settings)
    judges: list[Member] = []
    if solution.honest is not None:
        v = solution.honest
        judges = [in_units(seat, v[:-1], v[-1], solution.alpha, target, settings)]
    found = out_of_fold(judges, sample, fold, len(target.mean))[0]
    fit = judged_fit([member], found, target, plan, sample, noise, settings.rng(4))
    return replace(fit, alpha_path=solution.path)

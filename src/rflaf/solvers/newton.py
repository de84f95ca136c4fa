"""Output weights for any loss, and the penalty that is best for rows held out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from rflaf import rules
from rflaf.arrays import Float64
from rflaf.losses import Loss
from rflaf.runtime.threads import parallel
from rflaf.solvers.features import unrotated
from rflaf.solvers.objective import FeatureMap, Objective
from rflaf.solvers.parts import RowPart
from rflaf.solvers.penalty import walk
from rflaf.solvers.result import Solution

# How far from its least the loss may be, relatively, while choosing and at the end. A rougher loss
# while choosing leaves the weights where the last penalty had them, and then all penalties look the
# same. With many outputs a pass is long, and later steps hardly move the loss of other rows.
_ROUGH, _FINE = 3e-5, 1e-6
_MANY, _MANY_ROUGH, _MANY_FINE = 8, 3e-4, 1e-4  # more outputs than this
_PATIENCE, _GAIN = 4, 1e-3  # steps without so much gain, after which rows held out say stop
_FIRST = 1e-2  # the same, before the curvature is taken anew
_STRONGEST = 16  # steps above the first penalty
_EXACT = 1e-22  # and for so few rows that none are held out, where a step costs nothing


@dataclass(frozen=True)
class NewtonProblem:
    """Features and rows of one model.

    Attributes
    ----------
    features : FeatureMap
    fit : RowPart
        Rows to fit to while the penalty is chosen.
    held_out : RowPart, optional
        Rows that choose it.
    every : list of RowPart, optional
        Rows of the last fit; by default those of `fit`.
    constant : array of C
        The best scores that are the same for all rows.
    """

    features: FeatureMap
    fit: RowPart
    held_out: RowPart | None
    every: list[RowPart] | None
    constant: Float64


@dataclass(frozen=True)
class NewtonSettings:
    """How to solve it.

    Attributes
    ----------
    alpha : float
        The penalty, or with `search` and held-out rows the one to start from.
    one_by_one : bool
        Whether models are solved in turn, because each pass reads the rows again.
    stalls : bool
        Whether steps end where the loss of rows held out no longer falls.
    """

    alpha: float
    search: bool = True
    one_by_one: bool = False
    stalls: bool = False


def solve_newton(
    problems: list[NewtonProblem], loss: Loss, settings: NewtonSettings
) -> list[Solution]:
    """Output weights of several models with one penalty.

    The loss of held-out rows chooses the penalty, over all `problems` together, each trial from the
    last one's solution. Then the weights of all are fitted to every row.
    """
    held_out = all(problem.held_out is not None for problem in problems)
    search = settings.search and held_out
    stalls = settings.stalls and search
    models = [_Model(problem, loss, stalls) for problem in problems]
    parallel(lambda k: models[k].begin(), len(models))
    alpha, path = settings.alpha, list[dict[str, Any]]()
    if search:
        alpha, path = _choose(models, settings.alpha)
    if settings.one_by_one:
        for model in models:
            model.finish(alpha)
    else:
        parallel(lambda k: models[k].finish(alpha), len(models))
    return [model.solution(alpha, path) for model in models]


class _Stall:
    """The output weights with the least loss of rows held out, among those on the way."""

    def __init__(self, judge: Objective, start: Float64) -> None:
        self._judge, self._waited = judge, 0
        self.best, self.left = start, 1.0
        self.loss, _ = judge.mean_loss(start)
        self._mark = self.loss  # what gains are measured against

    def __call__(self, v: Float64, left: float) -> bool:
        """Whether the loss has ceased to fall."""
        loss, _ = self._judge.mean_loss(v)
        self._waited += 1
        if loss < (1 - _GAIN) * self._mark:
            self._mark, self._waited = loss, 0
        if loss < self.loss:
            self.best, self.left, self.loss = v, left, loss
        return self._waited >= _PATIENCE


class _Model:
    """One of the models while the penalty is chosen."""

    def __init__(self, problem: NewtonProblem, loss: Loss, stalls: bool) -> None:
        self.problem, self.loss, self.stalls = problem, loss, stalls
        self.objective = Objective(problem.features, [problem.fit], loss)
        self.tried: dict[float, Float64] = {}
        many = loss.outputs > _MANY
        self.rough, self.fine = (_MANY_ROUGH, _MANY_FINE) if many else (_ROUGH, _FINE)
        self.left: dict[float, float] = {}  # what was still to gain when steps ended early

    def begin(self) -> None:
        """The curvature without a penalty, at no weights."""
        self.v = self.objective.start(self.problem.constant)
        self.curvature = self.objective.curvature(self.v)

    def held_out_loss(self, alpha: float) -> tuple[float, float]:
        """The loss of rows that are held out, for a penalty, and their weight."""
        part = self.problem.held_out
        assert part is not None
        judge, start = Objective(self.problem.features, [part], self.loss), self._near(alpha)
        stall = _Stall(judge, start) if self.stalls else None
        v = self.objective.solve(self.curvature, alpha, start, self.rough, stall)
        if stall is not None:
            v, self.left[alpha] = stall.best, stall.left
        self.tried[alpha] = v
        return judge.mean_loss(v)

    def constant_loss(self) -> tuple[float, float]:
        """The loss of these rows where all scores are the same, and their weight."""
        part = self.problem.held_out
        assert part is not None
        judge = Objective(self.problem.features, [part], self.loss)
        return judge.mean_loss(judge.start(self.problem.constant))

    def finish(self, alpha: float) -> None:
        """Fit to every row."""
        problem, fine = self.problem, self.fine
        if self.stalls and alpha not in self.tried:
            self.held_out_loss(alpha)
        self.v = self._near(alpha)
        self.honest: Float64 | None = None
        if self.stalls:  # the last fit goes as far as that which rows held out have ended
            self.honest, fine = self.v, max(self.left[alpha], fine)
        # The curvature at zero weights is a poor one far from them. For one output it serves as
        # long as passes are cheap; for several it does not.
        elif self.loss.outputs > 1:
            if not self.tried:
                self.v = self.objective.solve(self.curvature, alpha, self.v, _FIRST)
            self.curvature = self.objective.curvature(self.v)
        if problem.held_out is not None and not self.stalls:
            tol = fine if problem.every is None else self.rough
            self.v = self.honest = self.objective.solve(self.curvature, alpha, self.v, tol)
        if problem.every is not None:
            self.objective = Objective(problem.features, problem.every, self.loss)
        if problem.every is not None or self.honest is None:
            tol = _EXACT if problem.held_out is None else fine
            self.v = self.objective.solve(self.curvature, alpha, self.v, tol)

    def _near(self, alpha: float) -> Float64:
        """The solution for the nearest penalty so far, to start from."""
        if not self.tried:
            return self.v
        return self.tried[min(self.tried, key=lambda other: abs(np.log(other / alpha)))]

    def solution(self, alpha: float, path: list[dict[str, Any]]) -> Solution:
        """The weights, back from the span of the rows."""
        features = self.problem.features
        v = unrotated(self.v, features.rotation)
        honest = None if self.honest is None else unrotated(self.honest, features.rotation)
        return Solution(v[:-1], v[-1] * features.constant, alpha, path, honest=honest)


def _choose(models: list[_Model], start: float) -> tuple[float, list[dict[str, Any]]]:
    """The penalty with the least loss on held-out rows, and what was tried."""
    step = rules.PENALTY_STEP

    def mean(loss_of: Callable[[_Model], tuple[float, float]]) -> float:
        pairs: list[Any] = [None] * len(models)

        def task(i: int) -> None:
            pairs[i] = loss_of(models[i])

        parallel(task, len(models))
        values, weights = np.array(pairs).T
        # where all rows are right by far, a lower penalty is no better for any of them
        return max(float(np.average(values, weights=weights)), models[0].loss.enough)

    def losses(steps: Sequence[int]) -> list[float]:
        trials = (partial(_Model.held_out_loss, alpha=start * step**k) for k in steps)
        return [mean(trial) for trial in trials]

    stalls = models[0].stalls
    gain = _GAIN if stalls else 0.0
    given: Any = {"most": rules.MOST_PENALTIES, "low": -12, "gain": gain, "together": False}
    walked = walk(losses, high=8, **given)
    if walked.least > mean(_Model.constant_loss):
        # few events: the loss has a minimum among solutions that explode. Come from the other end
        walked = walk(losses, start=_STRONGEST, high=_STRONGEST, **given)
    path = [{"alpha": start * step**k, "loss": walked.losses[k]} for k in sorted(walked.losses)]
    # losses of steps that ended early follow no parabola, and weights of the best one are there
    return start * step ** (walked.best if stalls else walked.middle), path

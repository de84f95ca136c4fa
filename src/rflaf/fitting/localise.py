"""Learning the local models of all members.

For each member twice: on the rows that it may see, so that those of its fold can choose the penalty
and the strength; and then, with these, on all rows, for the model that predicts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from rflaf import rules
from rflaf.fitting.layers import FittedLayer
from rflaf.fitting.local import Local, by_part, cut_rows, shares
from rflaf.fitting.members import Member, teams_of
from rflaf.fitting.task import Task, means_folds
from rflaf.runtime.progress import Progress
from rflaf.runtime.threads import parallel
from rflaf.solvers.features import features, project

Array = NDArray[Any]
Locals = tuple[Local, ...]


class LocalModels(NamedTuple):
    """Those of a member, in units of the loss; the rows of its fold have no part in `honest`."""

    honest: Locals = ()
    last: Locals = ()


def learn_local(
    task: Task, judges: Sequence[Member | None], members: list[Member]
) -> list[LocalModels]:
    """Local models for each member, none where they gain nothing.

    `judges` have weights that the rows of their fold have no part in, and `members` are what
    predicts in the end, both in units of the loss.
    """
    found = [LocalModels()] * len(members)
    settings, fold = task.settings, task.fold
    # a penalty that is given is that of one ridge regression of all rows
    wanted = settings.local_models and settings.alpha is None and settings.holds_out
    wanted = wanted and not settings.uses_cg and not settings.online
    least = min(np.count_nonzero(fold != each) for each in task.folds.of_member)
    if not wanted or least < rules.LOCAL_LEAST or None in judges:
        return found
    teams = teams_of([member.layer for member in members])
    with Progress("fitting local models", len(teams), settings.verbose) as progress:
        for places in teams:
            plans = [
                _plans(task, k, members[k].layer, number, len(places))
                for number, k in enumerate(places)
            ]
            seen = [
                _Rows(task, judges[k], np.flatnonzero(fold != members[k].layer.fold))
                for k in places
            ]
            # penalties by few partitions; the mean of more takes the same penalty, or a lower one
            penalties: Sequence[float] = rules.LOCAL_PENALTIES
            few = [
                each.learn(plan[: -(-len(plan) // 4)], penalties) for each, plan in zip(seen, plans)
            ]
            chosen = _choose(task, [judges[k] for k in places], few, 1.0)
            progress.step({})
            if chosen is None:
                continue
            penalties = penalties[chosen[0] : chosen[0] + 2]
            every = [each.learn(plan, penalties) for each, plan in zip(seen, plans)]
            chosen = _choose(task, [judges[k] for k in places], every, rules.LOCAL_GAIN)
            if chosen is None:
                continue
            number, strength = chosen
            for k, plan, models in zip(places, plans, every):
                honest = tuple(_of_penalty(each, number, task.loss.outputs) for each in models)
                rows = _Rows(task, members[k], np.arange(len(fold)))
                last = rows.learn(plan, penalties[number : number + 1])
                found[k] = LocalModels(times(honest, strength), times(last, strength))
    return found


def times(models: Locals, factor: Any) -> Locals:
    """Local models whose scores are `factor` times as large."""
    return tuple(each.times(factor) for each in models)


class PartitionPlan(NamedTuple):
    """A partition that is to be learned: the least rows of a part, the depth, and the features."""

    size: int
    depth: int
    columns: NDArray[np.intp]


def _plans(
    task: Task, k: int, layer: FittedLayer, number: int, members: int
) -> list[PartitionPlan]:
    """The partitions of member k, with this number in its team; the same for any of its rows."""
    sizes, share = rules.LOCAL_SIZES, task.settings.share.local
    count = round(share * (rules.LOCAL_ALONE if members == 1 else rules.LOCAL_PARTITIONS / members))
    wanted = (sizes * count)[:count] if members == 1 else (sizes[number % len(sizes)],) * count
    rows, width = np.count_nonzero(task.fold != layer.fold), layer.components.shape[1]
    m = min(rules.LOCAL_FEATURES, width)
    plans, room = [], rules.LOCAL_NUMBERS // (members * task.loss.outputs * (m + 1))
    for i, size in enumerate(wanted):
        depth = min(int(np.log2(max(rows / size, 1))), m)
        room -= 2**depth
        if depth and room >= 0:
            columns = task.settings.rng(11, k, i).permutation(width)[:m]
            plans.append(PartitionPlan(size, depth, columns))
    return plans


def _of_penalty(model: Local, number: int, outputs: int) -> Local:
    """One of the penalties, where the weights for several are side by side."""
    at = slice(number * outputs, (number + 1) * outputs)
    return replace(model, coef=np.ascontiguousarray(model.coef[:, :, at]), unit=model.unit[at])


def _choose(
    task: Task, judges: Sequence[Any], tried: list[Locals], most: float
) -> tuple[int, float] | None:
    """The number of the penalty, and the strength, with the least loss on rows held out.

    None where it is not below `most` times that without local models.
    """
    sample, loss = task.sample, task.loss
    scores, more, at = [], [], []
    for judge, models in zip(judges, tried):
        inside = np.flatnonzero(task.fold == judge.layer.fold)
        inputs = judge.layer.inputs(sample.x[inside])
        if not models:
            return None
        total = replace(judge, local=models).local_scores(inputs)
        scores.append(judge.scores_of(inputs))
        more.append(total.reshape(len(inside), -1, loss.outputs))
        at.append(inside)
    base, added, rows = np.concatenate(scores), np.concatenate(more), np.concatenate(at)
    y, weights = sample.y[rows], sample.weights[rows]
    losses = {
        (number, strength): loss.value(base + strength * added[:, number], y, weights)
        for number in range(added.shape[1])
        for strength in rules.LOCAL_STRENGTHS
    }
    best = min(losses, key=lambda key: losses[key])
    return best if losses[best] < most * loss.value(base, y, weights) else None


class _Rows:
    """Some rows as a member takes them, and what its scores leave of their targets.

    `left` is how far the scores are to move by the loss's quadratic model, n × C, and `weights`
    what rows count for in it.
    """

    def __init__(self, task: Task, member: Any, at: Array) -> None:
        self.layer: FittedLayer = member.layer
        sample, loss = task.sample, task.loss
        fold = means_folds(self.layer, task.folds, sample.keys)
        self.inputs = self.layer.inputs(sample.x[at], None if fold is None else fold[at])
        y, self.own_weights = sample.y[at], sample.weights[at]
        scores = member.scores_of(self.inputs)
        self.intercept = task.settings.fit_intercept
        constant = loss.constant(y, self.own_weights) * self.intercept
        constant = np.broadcast_to(constant, scores.shape)
        usual = np.average(loss.quadratic_model(constant, y).bend, weights=self.own_weights)
        flattest = rules.FLATTEST * 2 * float(usual)  # the bend is half the curvature
        with np.errstate(over="ignore", invalid="ignore"):
            response, bend = loss.quadratic_model(scores, y, flattest)
            left, weights = response - scores, self.own_weights * bend
        usable = np.isfinite(left).all(axis=1) & np.isfinite(weights)  # scores may be extreme
        self.left = np.where(usable[:, None], left, 0.0)
        self.weights = np.where(usable, weights, 0.0)

    def learn(self, plans: list[PartitionPlan], penalties: Sequence[float]) -> Locals:
        """Local models with the weights for all penalties side by side."""
        grown: list[Any] = [None] * len(plans)

        def grow(i: int) -> None:
            grown[i] = self._grow(*plans[i], penalties)

        parallel(grow, len(plans))
        found = []
        for depth in sorted({plan.depth for plan in plans}):
            same = [i for i, plan in enumerate(plans) if plan.depth == depth]
            cuts, widths, coef = (np.stack(each) for each in zip(*(grown[i] for i in same)))
            unit = np.abs(coef).max(axis=(0, 1, 3))
            unit = np.where(unit > 0, unit, 1.0)[:, None]
            columns = np.stack([plans[i].columns for i in same])
            model = Local(columns, cuts, widths, (coef / unit).astype(np.float32), unit[:, 0])
            found.append(model.times(len(same) / len(plans)))
        return tuple(found)

    def _grow(
        self, size: int, depth: int, columns: Array, penalties: Sequence[float]
    ) -> tuple[Array, Array, Array]:
        """A partition: its cuts, their widths, and the output weights of its parts."""
        z = project(self.inputs, np.ascontiguousarray(self.layer.components[:, columns]))
        cuts, widths = cut_rows(z[:, :depth], self.own_weights, depth)
        at = shares(cuts, widths, z)
        phi = features(self.layer.sigma, z, float(self.intercept))
        squares = np.einsum("nm,nm->n", phi, phi, dtype=np.float64) - self.intercept
        unit = np.sqrt(np.average(squares, weights=self.own_weights))
        unit = unit if unit > 0 else 1.0
        count, width, outputs = len(cuts) + 1, phi.shape[1], self.left.shape[1]
        row = self.weights.sum() / (count * size)  # what a row counts for, or a little more
        coef = np.zeros((count, len(penalties) * outputs, width))
        for part, rows, share in by_part(at):
            root = np.sqrt(self.weights[rows] * share)[:, None]
            shared = phi[rows] * (root / unit)
            gram, moment = blas.dsyrk(1.0, shared.T), shared.T @ (root * self.left[rows])
            for k, alpha in enumerate(penalties):
                _, own, failed = lapack.dposv(gram + alpha * row * np.eye(width), moment)
                if not failed and np.isfinite(own).all():  # or the part adds nothing
                    coef[part, k * outputs : (k + 1) * outputs] = own.T / unit
        return cuts, widths, coef

"""How much smaller the error of the mean of members is than that of one of them.

Out of fold one member of a team predicts each row; later all of them do. Their errors at rows that
none has seen follow from output weights without the row, which ridge regression gives in closed
form: e / (1 - h), with h the row's leverage. Activations and metrics have seen the rows, so only
the ratio of such errors is taken, and not their size.
"""

from __future__ import annotations

import numpy as np

from rflaf import rules
from rflaf.arrays import Array
from rflaf.fitting.members import Member
from rflaf.fitting.solving import Solved
from rflaf.fitting.task import Task, means_folds
from rflaf.solvers.features import features, project, rotated

_LEAST_LEFT = 1e-3  # of 1 - h: rounding is below


def mean_error_ratio(solved: Solved, members: list[Member], task: Task) -> Array:
    """The error of the members' mean over that of one member per team, for each output; at most 1.

    1 for losses that are not quadratic, and for fewer than three members of a team.
    """
    folds = task.folds.of_member
    count = len(folds)
    if solved.sums is None or count < 3 or not task.loss.quadratic:  # two cannot tell
        return np.ones(task.loss.outputs)
    at = _some_rows(task)
    if not len(at):  # the first group has more rows: a matrix of their size would be solved
        return np.ones(task.loss.outputs)
    y, weights = task.sample.y[at], task.sample.weights[at]
    parts = {(member.layer.team, member.layer.fold): member.weight for member in members}
    scores = np.zeros((count, len(at), task.loss.outputs))
    for k, layer in enumerate(solved.layers):
        part = count * parts.get((layer.team, layer.fold), 0.0)
        if part > 0:
            scores[folds.index(layer.fold)] += part * (y - _errors_without(k, solved, task, at))
    apart = scores - y
    seen = task.fold[at] != np.array(folds)[:, None]  # a row's own member has less to gain by it
    share = seen * weights
    one = np.einsum("kn,knc->c", share / share.sum(), apart**2)
    mean = np.einsum("kn,knc->nc", seen / seen.sum(axis=0), apart)
    several = weights / weights.sum() @ mean**2
    # the error of the mean of k members is a + b / k, of which k = 1 and count - 1 are known
    own = (one - several) / (1 - 1 / (count - 1))
    ratio = (one - own * (1 - 1 / count)) / np.where(one > 0, one, 1.0)
    return np.where(one > 0, np.sqrt(np.clip(ratio, rules.LEAST_RATIO**2, 1.0)), 1.0)


def _some_rows(task: Task) -> Array:
    """Rows to ask: of rows that share a key, as copies and groups do, all or none."""
    keys, counts = np.unique(task.sample.keys, return_counts=True)
    within = np.count_nonzero(np.cumsum(counts) <= rules.RATIO_ROWS)
    return np.flatnonzero(task.sample.keys <= keys[within - 1]) if within else np.arange(0)


def _errors_without(k: int, solved: Solved, task: Task, at: Array) -> Array:
    """The errors of a member at rows by output weights that were fitted without each, n × C."""
    layer, solution, rotation = solved.layers[k], solved.solutions[k], solved.rotations[k]
    assert solved.sums is not None
    assert solution.honest is not None
    sample, intercept = task.sample, task.settings.fit_intercept
    fold = means_folds(layer, task.folds, sample.keys)
    x = layer.inputs(sample.x[at], None if fold is None else fold[at])
    phi = features(layer.sigma, project(x, layer.components)).astype(np.float64)
    errors = sample.y[at] - phi @ solution.honest
    phi = rotated(phi, rotation)
    sums = solved.sums[k][0]
    inside = task.fold[at] != layer.fold
    phi, weights = phi[inside], sample.weights[at][inside]
    solved_for = sums.solve(solution.alpha, intercept, phi.T * weights)
    left = errors[inside]
    leverage = np.einsum("nm,mn->n", phi, solved_for)
    without = left / np.maximum(1 - leverage, _LEAST_LEFT)[:, None]
    keys = sample.keys[at][inside]
    _, place, sizes = np.unique(keys, return_inverse=True, return_counts=True)
    for group in np.flatnonzero(sizes > 1):  # rows of one group are left out together
        own = np.flatnonzero(place == group)
        hat = phi[own] @ solved_for[:, own]
        without[own] = np.linalg.solve((1 + _LEAST_LEFT) * np.eye(len(own)) - hat, left[own])
    errors[inside] = without
    return errors

"""How much the prediction depends on each input."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rflaf.fitting.members import Member
from rflaf.fused.threads import parallel

Array = NDArray[Any]

_MOST_ROWS = 400  # that the prediction is compared on,
_MOST_IN_ALL = 40_000  # and those for all inputs together


def input_importances(members: list[Member], x: Any, rng: np.random.Generator) -> Array:
    """How far predictions move when an input is shuffled: mean squares, summing to one.

    It is what permutation importance measures, without the noise of the target. Gradients times
    the spread of an input were tried: they see steep places and miss jumps, and order the inputs
    of heavy-tailed tables otherwise than permutation importance does.
    """
    n, d = x.shape
    count = max(min(n, _MOST_ROWS, _MOST_IN_ALL // max(d, 1)), min(n, 20))
    rows = x[np.sort(rng.choice(n, count, replace=False))]
    rows = rows.toarray() if hasattr(rows, "toarray") else rows
    order = rng.permutation(count)
    before = _mean_scores(members, rows)
    unit = before.std(axis=0)
    unit = np.where(unit > 0, unit, 1.0)
    share = np.zeros(d)

    def task(j: int) -> None:
        shuffled = rows.copy()
        shuffled[:, j] = rows[order, j]
        if not np.array_equal(shuffled[:, j], rows[:, j]):
            share[j] = np.mean(((_mean_scores(members, shuffled) - before) / unit) ** 2)

    parallel(task, d)
    share = np.where(np.isfinite(share), share, 0.0)
    return share / share.sum() if share.sum() > 0 else share


def _mean_scores(members: list[Member], x: Any) -> Array:
    scores = np.mean([member.scores(x) for member in members], axis=0)
    return scores - scores.mean(axis=1, keepdims=True) * (scores.shape[1] > 2)

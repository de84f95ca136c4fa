"""Scores of a member for its own rows, by output weights that these have no part in."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rflaf import fused, rules
from rflaf.arrays import Array
from rflaf.fitting.task import MemberRows
from rflaf.losses import Loss
from rflaf.rows import ArrayRows
from rflaf.solvers.features import KeptBlocks
from rflaf.solvers.objective import FeatureMap, Objective
from rflaf.solvers.parts import RowPart

_ROUGH, _MANY_ROUGH = 1e-3, 1e-2  # how far from its least the loss may be, also of many outputs
_ROOM = 1 << 40  # bytes: the features are bounded by the numbers of rows and columns


def honest_scores(
    member: MemberRows, loss: Loss, features: FeatureMap, alpha: float
) -> Array | None:
    """For each half of the rows the scores of weights that were fitted to the other half.

    The halves keep groups together. None where one of them is empty. Of many features the first
    ones are taken.
    """
    rows = member.rows
    assert rows.keys is not None
    features = replace(features, w=np.ascontiguousarray(features.w[:, : rules.HONEST_FEATURES]))
    half = rows.keys // np.uint64(5) % np.uint64(2) == 0  # apart from the inner folds of means
    if half.all() or not half.any():
        return None
    scores = np.empty((len(half), loss.outputs))
    tol = _MANY_ROUGH if loss.outputs > rules.STALL_OUTPUTS else _ROUGH
    for side in (half, ~half):
        at = np.flatnonzero(~side)
        at = at[:: -(-len(at) // rules.HONEST_ROWS)]
        given = ArrayRows(rows.x[at], rows.y[at], rows.weights[at])
        objective = Objective(features, [RowPart(given, len(at), KeptBlocks(_ROOM))], loss)
        start = objective.start(member.constant)
        v = objective.solve(objective.curvature(start), alpha, start, tol)
        readout = fused.Readout(features.sigma, features.w, v[:-1].astype(features.w.dtype))
        scores[side] = readout(rows.x[side]) + v[-1]
    return scores
